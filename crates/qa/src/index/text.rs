//! Full text: BM25 over the labels of entities and over a document for each.
//!
//! Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, as
//! tantivy computes it:
//!
//! ```text
//! score = Σ_t ln(1 + (N − n_t + ½) / (n_t + ½)) · f_t·(k₁ + 1) / (f_t + k₁·(1 − b + b·|d| / avg|d|))
//! ```
//!
//! over the words t of the query; f_t is how often t stands in the text d, n_t in how many of
//! the N texts it does; k₁ = 1.2, b = 0.75. Words are those of
//! [`normalise`](wherefore_graph::names::normalise): lower case, no accents, no punctuation.
//!
//! The document of an entity is its label and its triples as words: for each relation its words
//! and the labels at the other end, at most [`PER_RELATION`] of them, so that a hub's document
//! speaks of all its relations; [`MAX_WORDS`] words in all. Entities without a name have none.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, TantivyError, Term};
use wherefore_graph::names::normalise;
use wherefore_graph::{Adjacency, Edge, EntityId, Graph, Store, Sums};

use super::directory::VerifiedDirectory;
use super::labels;
use super::manifest::{FORMAT, Manifest, bytes_in, folder_of, write_sums};
use super::{IndexProgress, IndexStep, Part, PartReport};
use crate::error::{Error, Result};

/// Words of a document.
pub(crate) const MAX_WORDS: usize = 100;
/// Neighbours of one relation, and of one direction, that a document names.
pub(crate) const PER_RELATION: usize = 8;
/// Words of a query that are looked up; a question has fewer.
const MAX_QUERY_WORDS: usize = 256;
/// Longer words are not indexed: they are no words.
const MAX_WORD_BYTES: usize = 200;
/// Bytes that the writer may use, over all its threads.
const WRITER_BYTES: usize = 128 << 20;
/// Entities whose documents are made at a time.
const READ: u32 = 16 << 10;
/// How often what was written is made safe.
const SAFE_EVERY: Duration = Duration::from_secs(10);

const LABEL: &str = "label";
const DOCUMENT: &str = "document";
const ID: &str = "id";

/// The full-text index of a graph, opened for reading.
pub struct TextIndex {
    folder: PathBuf,
    mend: String,
    entities: u32,
    /// The files, each with its length: they must not become shorter while they are mapped.
    files: Vec<(File, u64)>,
    reader: IndexReader,
    label: Field,
    document: Field,
}

impl std::fmt::Debug for TextIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextIndex({})", self.folder.display())
    }
}

impl TextIndex {
    /// Opens the full-text index of a graph.
    ///
    /// # Errors
    /// If there is none, or if it belongs to another graph; the hint of the error is the command
    /// that mends it.
    pub fn open(graph: &Store) -> Result<Self> {
        let manifest = Manifest::of_graph(graph, Part::Text)?;
        let folder = manifest.data(graph.path());
        let mend = manifest.mend(graph.path());
        let damaged = |reason: String| Error::DamagedIndex {
            path: folder.clone(),
            reason,
            mend: mend.clone(),
        };
        let bytes = bytes_in(&folder).map_err(|e| damaged(e.to_string()))?;
        if bytes != manifest.bytes {
            let wanted = manifest.bytes;
            return Err(damaged(format!(
                "its files have {bytes} bytes instead of {wanted}"
            )));
        }
        let files = manifest.files(graph.path())?;
        let opened = files.sums.iter().flat_map(Sums::names).map(|name| {
            let file = File::open(folder.join(name))?;
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        });
        let opened: Vec<_> =
            (opened.collect::<std::io::Result<_>>()).map_err(|e| damaged(e.to_string()))?;
        let open = || -> tantivy::Result<_> {
            let index = match files.sums {
                Some(sums) => Index::open(VerifiedDirectory::open(&folder, sums)?)?,
                None => Index::open_in_dir(&folder)?,
            };
            let schema = index.schema();
            let fields = (schema.get_field(LABEL)?, schema.get_field(DOCUMENT)?);
            let reader = index.reader_builder();
            Ok((
                reader.reload_policy(ReloadPolicy::Manual).try_into()?,
                fields,
            ))
        };
        let (reader, (label, document)) = open().map_err(|e| damaged(e.to_string()))?;
        Ok(Self {
            entities: labels::Labels::new(graph, Part::Text).len(),
            files: opened,
            reader,
            label,
            document,
            folder,
            mend,
        })
    }

    /// The `k` entities whose labels match the words of `query` best, best first.
    ///
    /// Any text is a query; one without a known word finds nothing.
    pub fn labels(&self, query: &str, k: usize) -> Result<Vec<(EntityId, f32)>> {
        self.search(self.label, query, k)
    }

    /// The `k` entities whose documents match the words of `query` best, best first.
    pub fn documents(&self, query: &str, k: usize) -> Result<Vec<(EntityId, f32)>> {
        self.search(self.document, query, k)
    }

    /// Entities that have a document.
    pub fn len(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Whether no entity has a name.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn search(&self, field: Field, query: &str, k: usize) -> Result<Vec<(EntityId, f32)>> {
        let searcher = self.reader.searcher();
        let limit = k.min(usize::try_from(searcher.num_docs()).unwrap_or(usize::MAX));
        let normal = normalise(query);
        let mut words: Vec<&str> = normal
            .split_whitespace()
            .filter(|word| word.len() <= MAX_WORD_BYTES)
            .take(MAX_QUERY_WORDS)
            .collect();
        words.sort_unstable();
        words.dedup();
        if words.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let clauses = words.iter().map(|word| {
            let term = Term::from_field_text(field, word);
            let query: Box<dyn Query> =
                Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
            (Occur::Should, query)
        });
        let query = BooleanQuery::new(clauses.collect());
        let search = || -> tantivy::Result<Vec<(u64, f32)>> {
            let top = searcher.search(&query, &TopDocs::with_limit(limit).order_by_score())?;
            let mut found = Vec::with_capacity(top.len());
            for (score, address) in top {
                let segment = searcher.segment_reader(address.segment_ord);
                let ids = segment.fast_fields().u64(ID)?;
                found.push((ids.first(address.doc_id).unwrap_or(u64::MAX), score));
            }
            Ok(found)
        };
        let damaged = |reason: String| Error::DamagedIndex {
            path: self.folder.clone(),
            reason,
            mend: self.mend.clone(),
        };
        for (file, bytes) in &self.files {
            let found = file.metadata().map_err(|e| damaged(e.to_string()))?.len();
            if found < *bytes {
                return Err(damaged("a file was cut short while it was open".into()));
            }
        }
        let found = search().map_err(|e| damaged(e.to_string()))?;
        let mut ids = Vec::with_capacity(found.len());
        for (id, score) in found {
            let known = u32::try_from(id).ok().filter(|id| *id < self.entities);
            let id = known.ok_or_else(|| damaged("it names something outside the graph".into()))?;
            ids.push((EntityId(id), score));
        }
        // equal scores come in the order of segments, which depends on threads
        ids.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(ids)
    }
}

/// What a commit says of itself, so that a stopped build can go on.
#[derive(Serialize, Deserialize)]
struct Commit {
    format: u32,
    graph: String,
    /// Entities below this are in.
    next: u32,
    documents: u64,
}

/// Builds, resumes or confirms the full-text index.
pub(crate) fn build(graph: &Store, tell: &(dyn Fn(IndexProgress) + Sync)) -> Result<PartReport> {
    let began = Instant::now();
    if TextIndex::open(graph).is_ok()
        && let Some(manifest) = Manifest::read(graph.path(), Part::Text)?
        && manifest.files(graph.path())?.check_all().is_ok()
    {
        return Ok(PartReport::current(&manifest));
    }
    let aside = folder_of(graph.path()).join("text.part");
    let failed = |error: TantivyError| Error::FullText {
        path: aside.clone(),
        reason: error.to_string(),
    };
    let resumed = resume(graph, &aside);
    let (index, done) = match resumed {
        Some((index, done)) => (index, done),
        None => {
            if aside.exists() {
                std::fs::remove_dir_all(&aside).map_err(Error::io("remove", &aside))?;
            }
            std::fs::create_dir(&aside).map_err(Error::io("create", &aside))?;
            let index = Index::create_in_dir(&aside, schema()).map_err(failed)?;
            (index, Commit::new(graph))
        }
    };
    let (resumed, commit) = (done.documents, write(graph, &index, &aside, done, tell)?);
    drop(index);
    let manifest = Manifest {
        format: FORMAT,
        written_by: env!("CARGO_PKG_VERSION").into(),
        part: Part::Text,
        folder: String::new(),
        graph: graph.checksum().to_owned(),
        encoder: None,
        rows: commit.next.into(),
        named: commit.documents,
        vectors: commit.documents,
        hnsw: None,
        sums: Some(write_sums(&aside)?),
        bytes: bytes_in(&aside)?,
    };
    let manifest = manifest.publish(graph.path(), &aside)?;
    Ok(PartReport {
        built: true,
        encoded: commit.documents - resumed,
        kept: 0,
        resumed,
        seconds: began.elapsed().as_secs_f64(),
        ..PartReport::current(&manifest)
    })
}

impl Commit {
    fn new(graph: &Store) -> Self {
        Self {
            format: FORMAT,
            graph: graph.checksum().to_owned(),
            next: 0,
            documents: 0,
        }
    }
}

fn schema() -> Schema {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        // texts come normalised: only spaces are left between words
        .set_tokenizer("whitespace")
        .set_index_option(IndexRecordOption::WithFreqs);
    let options = TextOptions::default().set_indexing_options(indexing);
    schema.add_text_field(LABEL, options.clone());
    schema.add_text_field(DOCUMENT, options);
    schema.add_u64_field(ID, NumericOptions::from(FAST));
    schema.build()
}

/// A build of the same graph that was stopped.
fn resume(graph: &Store, aside: &Path) -> Option<(Index, Commit)> {
    let index = Index::open_in_dir(aside).ok()?;
    let payload = index.load_metas().ok()?.payload?;
    let commit: Commit = serde_json::from_str(&payload).ok()?;
    let fits = commit.format == FORMAT
        && commit.graph == graph.checksum()
        && index.schema() == schema()
        && index
            .validate_checksum()
            .is_ok_and(|damaged| damaged.is_empty());
    fits.then_some((index, commit))
}

fn write(
    graph: &Store,
    index: &Index,
    aside: &Path,
    mut commit: Commit,
    tell: &(dyn Fn(IndexProgress) + Sync),
) -> Result<Commit> {
    let failed = |error: TantivyError| Error::FullText {
        path: aside.to_owned(),
        reason: error.to_string(),
    };
    let schema = index.schema();
    let field = |name: &str| schema.get_field(name).map_err(failed);
    let (label, document, id) = (field(LABEL)?, field(DOCUMENT)?, field(ID)?);
    let mut writer: IndexWriter = index.writer(WRITER_BYTES).map_err(failed)?;
    let end = labels::Labels::new(graph, Part::Text).len();
    let mut safe = Instant::now();
    loop {
        tell(IndexProgress {
            part: Part::Text,
            step: IndexStep::Writing,
            done: commit.next.into(),
            total: end.into(),
        });
        let to = end.min(commit.next.saturating_add(READ));
        let texts: Vec<Option<(String, String)>> = (commit.next..to)
            .into_par_iter()
            .with_min_len(64)
            .map(|entity| texts_of(graph, EntityId(entity)))
            .collect::<Result<_>>()?;
        for (entity, texts) in (commit.next..to).zip(texts) {
            let Some((own, words)) = texts else { continue };
            let mut entry = TantivyDocument::default();
            entry.add_u64(id, entity.into());
            entry.add_text(label, own);
            entry.add_text(document, words);
            writer.add_document(entry).map_err(failed)?;
            commit.documents += 1;
        }
        commit.next = to;
        if to == end || safe.elapsed() >= SAFE_EVERY {
            let mut prepared = writer.prepare_commit().map_err(failed)?;
            let payload = serde_json::to_string(&commit).expect("a commit is plain data");
            prepared.set_payload(&payload);
            prepared.commit().map_err(failed)?;
            safe = Instant::now();
        }
        if to == end {
            writer.wait_merging_threads().map_err(failed)?;
            return Ok(commit);
        }
    }
}

/// The normalised label and document of an entity that has a name.
fn texts_of(graph: &Store, id: EntityId) -> Result<Option<(String, String)>> {
    let Some(label) = labels::entity(graph, id)? else {
        return Ok(None);
    };
    let mut words = Words::default();
    let own = normalise(&label);
    words.add(&own);
    let sides = [graph.outgoing(id)?, graph.incoming(id)?];
    for mut edges in sides.iter().map(|edges| &edges[..]) {
        while let Some(&Edge { relation, .. }) = edges.first() {
            let end = edges.partition_point(|e| e.relation == relation);
            let (same, rest) = edges.split_at(end);
            edges = rest;
            if words.are_full() {
                break;
            }
            if graph.naming_relations().contains(&relation) {
                continue;
            }
            words.add(&normalise(&labels::relation(graph, relation)?));
            for edge in same.iter().take(PER_RELATION) {
                if let Some(label) = labels::entity(graph, edge.entity)? {
                    words.add(&normalise(&label));
                }
            }
        }
    }
    Ok(Some((own, words.text)))
}

/// Words up to [`MAX_WORDS`].
#[derive(Default)]
struct Words {
    text: String,
    count: usize,
}

impl Words {
    fn are_full(&self) -> bool {
        self.count == MAX_WORDS
    }

    fn add(&mut self, text: &str) {
        for word in text.split_whitespace().take(MAX_WORDS - self.count) {
            self.count += 1;
            if word.len() <= MAX_WORD_BYTES {
                self.text.push(' ');
                self.text.push_str(word);
            }
        }
    }
}
