//! Full text: BM25 over the labels of entities and over a document for each.
//!
//! Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009:
//!
//! ```text
//! score = Σ_t idf(t) · f_t·(k₁ + 1) / (f_t + k₁·(1 − b + b·|d| / avg|d|))
//! idf(t) = ln(1 + (N − n_t + ½) / (n_t + ½))
//! ```
//!
//! over the words t of the query; f_t is how often t occurs in the text d, n_t in how many of the N
//! texts it does; k₁ = 1.2, b = 0.75. Words are those of
//! [`normalise`](wherefore_graph::names::normalise): lower case, no accents, no punctuation.
//!
//! The document of an entity is its label and its triples as words: for each relation its words
//! and the labels at the other end, at most eight of them, so that a hub's document
//! covers all its relations; a hundred words in all. Entities without a name have none.
//!
//! The files are an inverted index, written by `build.rs`:
//!
//! ```text
//! totals    N, words of all labels, words of all documents
//! words     the words one after another, sorted
//! table     four zeros, then for each word: its end in `words`, n_t (labels | documents << 32),
//!           and where its labels and its documents end in `postings`
//! postings  for each word its labels, then its documents: varints (id − last id, f_t)
//! lengths   for each entity the words of its label and of its document
//! ```

mod build;

use std::cmp::Ordering;
use std::path::PathBuf;

use hashbrown::HashMap;
use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Store, Verified};

use super::manifest::{Manifest, bytes_in, told};
use super::part::Part;
use crate::error::{Error, Result};

pub(crate) use build::build;

/// k₁ and b: the values of the paper's experiments, and of most search engines.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// Words of a query that are looked up; a question has fewer.
const MAX_QUERY_WORDS: usize = 256;
/// Longer words are not indexed: they are no words.
const MAX_WORD_BYTES: usize = 200;

const TOTALS: &str = "totals";
const WORDS: &str = "words";
const TABLE: &str = "table";
const POSTINGS: &str = "postings";
const LENGTHS: &str = "lengths";

/// The two texts of an entity.
#[derive(Clone, Copy)]
enum Field {
    Label = 0,
    Document = 1,
}

/// The full-text index of a graph, opened for reading.
#[derive(Debug)]
pub struct TextIndex {
    folder: PathBuf,
    repair: String,
    words: Verified<u8>,
    table: Verified<[u64; 4]>,
    postings: Verified<u8>,
    lengths: Verified<[u16; 2]>,
    documents: u64,
    /// Words of all labels, and of all documents.
    total: [u64; 2],
}

impl TextIndex {
    /// Opens the full-text index of a graph.
    ///
    /// # Errors
    /// If there is none, or if it belongs to another graph; the hint of the error is the command
    /// that builds it.
    pub fn open(graph: &Store) -> Result<Self> {
        let manifest = Manifest::of_graph(graph, Part::Text)?;
        let folder = manifest.data(graph.path());
        let repair = manifest.mend(graph.path());
        let damaged = |reason: String| Error::DamagedIndex {
            path: folder.clone(),
            reason,
            mend: repair.clone(),
        };
        let bytes = bytes_in(&folder).map_err(|e| damaged(e.to_string()))?;
        if bytes != manifest.bytes {
            let expected = manifest.bytes;
            return Err(damaged(format!(
                "its files have {bytes} bytes instead of {expected}"
            )));
        }
        if !folder.join(TOTALS).exists() {
            return Err(damaged("an older version wrote it".into()));
        }
        let files = manifest.files(graph.path())?;
        let totals: Verified<[u64; 3]> = files.map(TOTALS, 1)?;
        let totals = totals.at(0).map_err(|e| files.told(e))?;
        let [documents, labels, texts] =
            totals.ok_or_else(|| damaged("its totals are missing".into()))?;
        Ok(Self {
            words: files.open(WORDS)?,
            table: files.open(TABLE)?,
            postings: files.open(POSTINGS)?,
            lengths: files.map(LENGTHS, manifest.rows)?,
            documents,
            total: [labels, texts],
            folder,
            repair,
        })
    }

    /// The `k` entities whose labels match the words of `query` best, best first.
    ///
    /// Any text is a query; one without a known word finds nothing.
    pub fn labels(&self, query: &str, k: usize) -> Result<Vec<(EntityId, f32)>> {
        self.search(Field::Label, query, k)
    }

    /// The `k` entities whose documents match the words of `query` best, best first.
    pub fn documents(&self, query: &str, k: usize) -> Result<Vec<(EntityId, f32)>> {
        self.search(Field::Document, query, k)
    }

    /// Entities that have a document.
    pub fn len(&self) -> u64 {
        self.documents
    }

    /// Whether no entity has a name.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn search(&self, field: Field, query: &str, k: usize) -> Result<Vec<(EntityId, f32)>> {
        self.read(self.words.is_there())?;
        self.read(self.table.is_there())?;
        self.read(self.postings.is_there())?;
        self.read(self.lengths.is_there())?;
        let normal = normalise(query);
        let mut words: Vec<&str> = normal
            .split_whitespace()
            .filter(|word| word.len() <= MAX_WORD_BYTES)
            .take(MAX_QUERY_WORDS)
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut lists = Vec::with_capacity(words.len());
        for word in words {
            lists.extend(self.list(field, word)?);
        }
        // rarest first, so that the common words at the end find the best k decided
        lists.sort_by(|a, b| b.idf.total_cmp(&a.idf));
        let mut left: f32 = lists.iter().map(|list| list.idf * (K1 + 1.0)).sum();
        let average = self.total[field as usize] as f32 / self.documents.max(1) as f32;
        let mut scores = HashMap::new();
        for list in &lists {
            // whether a new entity could still be among the best k
            let is_open = kth_best(&scores, k).is_none_or(|kth| kth <= left);
            self.add(list, (field, average, is_open), &mut scores)?;
            left -= list.idf * (K1 + 1.0);
        }
        let mut found: Vec<(EntityId, f32)> = (scores.into_iter())
            .map(|(id, score)| (EntityId(id), score))
            .collect();
        found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(k);
        Ok(found)
    }

    /// Adds the share of one word to the scores; new entities come in only while they are open.
    fn add(
        &self,
        list: &List<'_>,
        (field, average, is_open): (Field, f32, bool),
        scores: &mut HashMap<u32, f32>,
    ) -> Result<()> {
        let mut rest = list.postings;
        let mut id = 0u32;
        while !rest.is_empty() {
            let (Some(step), Some(count)) = (take_varint(&mut rest), take_varint(&mut rest)) else {
                return Err(self.damaged("a list of entities breaks off"));
            };
            id = id.wrapping_add(step);
            let Some(lengths) = self.read(self.lengths.at(id as usize))? else {
                return Err(self.damaged("it names something outside the graph"));
            };
            let length = f32::from(lengths[field as usize]) / average;
            let frequency = count as f32;
            let share =
                list.idf * frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length));
            match is_open {
                true => *scores.entry(id).or_default() += share,
                false => {
                    if let Some(score) = scores.get_mut(&id) {
                        *score += share;
                    }
                }
            }
        }
        Ok(())
    }

    /// Where a word occurs; none if it does not.
    fn list(&self, field: Field, word: &str) -> Result<Option<List<'_>>> {
        let (mut low, mut high) = (1, self.table.len());
        while low < high {
            let middle = low.midpoint(high);
            let ([start, ..], row @ [end, ..]) = (self.row(middle - 1)?, self.row(middle)?);
            match self.bytes(&self.words, start, end)?.cmp(word.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    let [_, counts, labels, documents] = row;
                    let (count, start, end) = match field {
                        Field::Label => (counts as u32, self.row(middle - 1)?[3], labels),
                        Field::Document => ((counts >> 32) as u32, labels, documents),
                    };
                    return Ok(Some(List {
                        idf: idf(self.documents, count),
                        postings: self.bytes(&self.postings, start, end)?,
                    }));
                }
            }
        }
        Ok(None)
    }

    fn row(&self, word: usize) -> Result<[u64; 4]> {
        let row = self.read(self.table.at(word))?;
        row.ok_or_else(|| self.damaged("its table of words breaks off"))
    }

    fn bytes<'a>(&self, file: &'a Verified<u8>, start: u64, end: u64) -> Result<&'a [u8]> {
        let range = start as usize..end as usize;
        let bytes = self.read(file.slice(range))?;
        bytes.ok_or_else(|| self.damaged("its table of words leads nowhere"))
    }

    fn read<T>(&self, read: wherefore_graph::Result<T>) -> Result<T> {
        read.map_err(|error| told(error, &self.repair))
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::DamagedIndex {
            path: self.folder.clone(),
            reason: reason.to_owned(),
            mend: self.repair.clone(),
        }
    }
}

/// The texts in which a word occurs.
struct List<'a> {
    idf: f32,
    postings: &'a [u8],
}

fn idf(documents: u64, count: u32) -> f32 {
    let (all, with) = (documents as f32, count as f32);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// The score of the k-th best, where there are as many.
fn kth_best(scores: &HashMap<u32, f32>, k: usize) -> Option<f32> {
    let last = k.checked_sub(1).filter(|last| *last < scores.len())?;
    let mut scores: Vec<f32> = scores.values().copied().collect();
    let (_, kth, _) = scores.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
    Some(*kth)
}

fn push_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use tempfile::TempDir;
    use wherefore_graph::{Adjacency, Graph, Input, LoadOptions, load};

    use super::*;
    use crate::index::bytes_in;

    fn graph_of(lines: &str) -> (TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("g.tsv");
        std::fs::write(&file, lines).unwrap();
        let graph = folder.path().join("graph");
        load(
            &[Input::File(file)],
            &graph,
            &LoadOptions::default(),
            &|_| {},
        )
        .unwrap();
        std::fs::create_dir(graph.join("index")).unwrap();
        let store = Store::open(&graph).unwrap();
        (folder, store)
    }

    #[test]
    fn scores_are_those_of_the_formula() {
        // labels: `red boat`, `red red car`, `car`, and the relation's ends `sea`, `road`
        let (_folder, store) =
            graph_of("red boat\ton\tsea\nred red car\ton\troad\ncar\ton\troad\n");
        build(&store, &|_| {}).unwrap();
        let text = TextIndex::open(&store).unwrap();
        assert_eq!(text.len(), 5);
        // N = 5, avg|d| = (2 + 3 + 1 + 1 + 1) / 5 = 1.6; `red` is in two labels:
        // idf = ln(1 + 3.5 / 2.5) = ln 2.4 = 0.875469
        // `red boat`: f = 1, |d| = 2: 0.875469 · 2.2 / (1 + 1.2 · (0.25 + 0.75 · 2 / 1.6))
        //             = 1.926032 / 2.425 = 0.794240
        // `red red car`: f = 2, |d| = 3: 0.875469 · 4.4 / (2 + 1.2 · (0.25 + 0.75 · 3 / 1.6))
        //              = 3.852062 / 3.9875 = 0.966034
        let found = text.labels("Red!", 9).unwrap();
        let name = |id| store.entity_label(id).unwrap().into_owned();
        let found: Vec<_> = found
            .into_iter()
            .map(|(id, score)| (name(id), score))
            .collect();
        assert_eq!(found[0].0, "red red car");
        assert!((found[0].1 - 0.966_034).abs() < 1e-5, "{found:?}");
        assert_eq!(found[1].0, "red boat");
        assert!((found[1].1 - 0.794_240).abs() < 1e-5, "{found:?}");
        assert_eq!(found.len(), 2);
    }

    /// BM25 over all texts, one after another.
    fn naive(texts: &BTreeMap<u32, Vec<String>>, query: &str, k: usize) -> Vec<(u32, f32)> {
        let words: BTreeSet<&str> = query.split_whitespace().collect();
        let total: usize = texts.values().map(Vec::len).sum();
        let average = total as f32 / texts.len() as f32;
        let mut found = Vec::new();
        for (id, text) in texts {
            let mut score = 0.0;
            for word in &words {
                let count = text.iter().filter(|w| w == word).count() as f32;
                let with = texts
                    .values()
                    .filter(|t| t.iter().any(|w| w == word))
                    .count();
                let weight =
                    ((texts.len() as f32 - with as f32 + 0.5) / (with as f32 + 0.5) + 1.0).ln();
                let length = text.len() as f32 / average;
                score += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length));
            }
            if score > 0.0 {
                found.push((*id, score));
            }
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(k);
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_best_k_are_those_of_plain_bm25_however_many_runs_there_were(
            names in prop::collection::vec(prop::collection::vec(0usize..6, 1..6), 20..60),
            query in prop::collection::vec(0usize..7, 1..5),
            k in 1usize..8,
            bytes in prop::sample::select(vec![1usize, 2_000, 1 << 20]),
        ) {
            let spell = |words: &[usize]| {
                let words: Vec<&str> =
                    words.iter().map(|w| ["ant", "bee", "cat", "dog", "eel", "fox", "gnu"][*w]).collect();
                words.join(" ")
            };
            let lines: String = (names.iter().enumerate())
                .map(|(i, name)| format!("{} {i}\tis\tthing\n", spell(name)))
                .collect();
            let (_folder, store) = graph_of(&lines);
            let batch = build::Batch { entities: 16, bytes };
            build::build_with(&store, batch, &|_| {}).unwrap();
            let text = TextIndex::open(&store).unwrap();
            let mut labels = BTreeMap::new();
            for id in 0..store.entity_bound() as u32 {
                let label = store.entity_label(EntityId(id)).unwrap();
                labels.insert(id, label.split(' ').map(str::to_owned).collect());
            }
            let query = spell(&query);
            let found = text.labels(&query, k).unwrap();
            let plain = naive(&labels, &query, k);
            prop_assert_eq!(found.len(), plain.len());
            for (found, plain) in found.iter().zip(&plain) {
                // equal scores may change places by their last digit
                prop_assert!((found.1 - plain.1).abs() < 1e-4, "{:?} {:?}", found, plain);
            }
        }
    }

    #[test]
    fn a_stopped_build_resumes_after_its_last_run_and_comes_to_the_same() {
        let lines: String = (0..100)
            .map(|i| format!("thing {i} of {}\tnear\tthing {}\n", i % 7, i + 1))
            .collect();
        let (_folder, store) = graph_of(&lines);
        let files = |store: &Store| -> Vec<(String, Vec<u8>)> {
            let folder = store.path().join("index/text-1");
            let mut files: Vec<_> = std::fs::read_dir(&folder)
                .unwrap()
                .map(|e| e.unwrap().path())
                .map(|p| {
                    (
                        p.file_name().unwrap().to_string_lossy().into_owned(),
                        std::fs::read(&p).unwrap(),
                    )
                })
                .collect();
            files.sort();
            files
        };
        build(&store, &|_| {}).unwrap();
        let whole = files(&store);
        let (_folder, store) = graph_of(&lines);
        let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let stop = |progress: crate::index::IndexProgress| {
                assert!(progress.done < 64, "stopped");
            };
            let batch = build::Batch {
                entities: 16,
                bytes: 1,
            };
            build::build_with(&store, batch, &stop)
        }));
        assert!(stopped.is_err());
        assert!(bytes_in(&store.path().join("index/text.part")).unwrap() > 0);
        let report = build(&store, &|_| {}).unwrap();
        assert_eq!(report.resumed, 64);
        assert_eq!(files(&store), whole);
    }
}
