//! The words of a graph's names: which names hold a word, and which words are spelt like it.
//!
//! ```text
//! holders(w1 … wn) = ∩ postings(wi)          postings(w) = { e : w ∈ words(normalise(label e)) }
//! spelt_like(w)    = { v : osa(w, v) ≤ d(|w|) }      d = 1 from 4 letters, 2 from 8
//! ```
//!
//! osa is the optimal string alignment distance: insert, delete, change, or swap two neighbours.
//! A typo in the first letter is found as well as any other. The initials of a name of three words
//! or more count as a word of it (`nfl`).
//!
//! Departures: names of more than [`MAX_WORDS`] words are left out, they are sentences.
//!
//! Where a graph was changed, the lexicon of its files stays, and [`Late`] holds the words of the
//! names that came or changed since.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wherefore_graph::names::normalise;
use wherefore_graph::{Adjacency, EntityId, Graph, Store};

use crate::error::Result;
use crate::words::is_stop_word;

/// Longer names are no names.
const MAX_WORDS: usize = 16;

/// Of the holders of a word, at most this many are looked at.
const MAX_POSTINGS: usize = 1 << 16;

/// The words of all names of one graph.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    /// The words, sorted, one after the other.
    text: String,
    /// Where each word begins, and the end of the last.
    starts: Vec<u32>,
    /// Where each word's holders begin, and the end of the last.
    offsets: Vec<u32>,
    /// Holders of each word, sorted.
    postings: Vec<EntityId>,
    /// Words in each entity's name that are not stop words; 0 where it has no name.
    lengths: Vec<u8>,
    /// What came to the lexicon of a graph's files. This one is empty but for that then.
    late: Option<Late>,
}

/// Words of names that came or changed after the files were written.
#[derive(Debug)]
struct Late {
    files: Arc<Lexicon>,
    /// Words that the files do not have; they are numbered after theirs.
    words: Vec<String>,
    ids: HashMap<String, usize>,
    /// Holders that came, by the word's number, sorted.
    postings: HashMap<usize, Vec<EntityId>>,
    /// Words in their names.
    lengths: HashMap<EntityId, u8>,
    /// Entities whose names in the files do not count any more.
    renamed: HashSet<EntityId>,
    names: usize,
}

/// Calls `word` for each word of a name, the initials among them; gives the number of words that
/// are not stop words, 0 where it is no name.
fn each_word(graph: &dyn Graph, entity: EntityId, word: &mut dyn FnMut(&str)) -> Result<u8> {
    if !graph.is_named(entity)? {
        return Ok(0);
    }
    let name = normalise(&graph.entity_label(entity)?);
    if name.split(' ').nth(MAX_WORDS).is_some() {
        return Ok(0);
    }
    let (mut length, mut initials) = (0, String::new());
    for part in name.split(' ') {
        if !is_stop_word(part) {
            length += 1;
            initials.extend(part.chars().next());
        }
        word(part);
    }
    if length >= 3 {
        word(&initials);
    }
    // `The Who` is not found by every `the`, but it is found
    Ok(length.max(1))
}

impl Late {
    fn new(files: Arc<Lexicon>, store: &Store) -> Result<Self> {
        let mut late = Self {
            words: Vec::new(),
            ids: HashMap::new(),
            postings: HashMap::new(),
            lengths: HashMap::new(),
            renamed: store.renamed().into_iter().collect(),
            names: store.entity_bound(),
            files,
        };
        for entity in store.renamed() {
            if store.degree(entity)? == 0 {
                continue;
            }
            let mut places = Vec::new();
            let length = each_word(store, entity, &mut |word| {
                places.push(late.files.find(word).unwrap_or_else(|| {
                    let next = late.files.len() + late.words.len();
                    *late.ids.entry(word.to_owned()).or_insert_with(|| {
                        late.words.push(word.to_owned());
                        next
                    })
                }));
            })?;
            places.sort_unstable();
            places.dedup();
            late.lengths.insert(entity, length);
            for place in places {
                late.postings.entry(place).or_default().push(entity);
            }
        }
        Ok(late)
    }

    fn postings(&self, i: usize) -> Cow<'_, [EntityId]> {
        let came = self.postings.get(&i).map(Vec::as_slice).unwrap_or_default();
        let old = match i < self.files.len() {
            true => self.files.postings(i),
            false => Cow::Borrowed(&[][..]),
        };
        if came.is_empty() && !old.iter().any(|e| self.renamed.contains(e)) {
            return old;
        }
        let kept = old.iter().filter(|e| !self.renamed.contains(*e));
        let mut all: Vec<EntityId> = kept.chain(came).copied().collect();
        all.sort_unstable();
        Cow::Owned(all)
    }
}

impl Lexicon {
    /// The lexicon of a graph that was changed, from the one of its files.
    pub(crate) fn changed(files: Arc<Lexicon>, store: &Store) -> Result<Self> {
        Ok(Self {
            late: Some(Late::new(files, store)?),
            ..Self::default()
        })
    }

    /// Reads all names of a graph.
    pub(crate) fn build(graph: &dyn Graph) -> Result<Self> {
        let mut ids: hashbrown::HashMap<String, u32> = hashbrown::HashMap::new();
        let mut pairs: Vec<(u32, EntityId)> = Vec::new();
        let bound = graph.entity_bound();
        let mut lengths = vec![0; bound];
        for id in 0..u32::try_from(bound).expect("entity ids have 32 bits") {
            let entity = EntityId(id);
            lengths[entity.index()] = each_word(graph, entity, &mut |word| {
                let next = u32::try_from(ids.len()).expect("fewer words than 2^32");
                pairs.push((*ids.entry_ref(word).or_insert(next), entity));
            })?;
        }
        let mut words: Vec<(String, u32)> = ids.into_iter().collect();
        words.sort_unstable();
        let mut rank = vec![0u32; words.len()];
        for (place, (_, id)) in (0..).zip(&words) {
            rank[*id as usize] = place;
        }
        for (word, _) in &mut pairs {
            *word = rank[*word as usize];
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut lexicon = Self {
            starts: vec![0],
            offsets: vec![0; words.len() + 1],
            lengths,
            ..Self::default()
        };
        for (word, _) in &words {
            lexicon.text.push_str(word);
            lexicon.starts.push(
                u32::try_from(lexicon.text.len()).expect("distinct words of less than 4 GiB"),
            );
        }
        for &(word, entity) in &pairs {
            lexicon.offsets[word as usize + 1] += 1;
            lexicon.postings.push(entity);
        }
        for i in 0..words.len() {
            lexicon.offsets[i + 1] += lexicon.offsets[i];
        }
        Ok(lexicon)
    }

    fn len(&self) -> usize {
        match &self.late {
            Some(late) => late.files.len() + late.words.len(),
            None => self.offsets.len().saturating_sub(1),
        }
    }

    fn word(&self, i: usize) -> &str {
        if let Some(late) = &self.late {
            return match i.checked_sub(late.files.len()) {
                Some(i) => &late.words[i],
                None => late.files.word(i),
            };
        }
        &self.text[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    /// The place of a word that some name holds.
    pub(crate) fn find(&self, word: &str) -> Option<usize> {
        if let Some(late) = &self.late {
            return late
                .files
                .find(word)
                .or_else(|| late.ids.get(word).copied());
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.word(middle).cmp(word) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// The entities whose name holds the word.
    fn postings(&self, i: usize) -> Cow<'_, [EntityId]> {
        if let Some(late) = &self.late {
            return late.postings(i);
        }
        let all = &self.postings[self.offsets[i] as usize..self.offsets[i + 1] as usize];
        Cow::Borrowed(&all[..all.len().min(MAX_POSTINGS)])
    }

    /// How telling a word is: 1 for a word of one name, near 0 for a word of all.
    pub(crate) fn rarity(&self, word: &str) -> f32 {
        let names = self.late.as_ref().map_or(self.lengths.len(), |l| l.names);
        let names = names.max(2) as f32;
        // a word may be left over of names that were removed
        let holders = self.find(word).map_or(1, |i| self.postings(i).len().max(1)) as f32;
        1.0 - holders.ln() / names.ln()
    }

    /// The entities whose names hold all the words, given by their places, with the number of
    /// words in their names.
    pub(crate) fn holders(&self, words: &[usize]) -> Vec<(EntityId, u8)> {
        let mut lists: Vec<Cow<'_, [EntityId]>> = words.iter().map(|&w| self.postings(w)).collect();
        lists.sort_by_key(|list| list.len());
        let Some((shortest, rest)) = lists.split_first() else {
            return Vec::new();
        };
        shortest
            .iter()
            .filter(|e| rest.iter().all(|list| list.binary_search(e).is_ok()))
            .map(|&e| (e, self.length(e)))
            .collect()
    }

    fn length(&self, entity: EntityId) -> u8 {
        match &self.late {
            Some(late) => {
                (late.lengths.get(&entity).copied()).unwrap_or_else(|| late.files.length(entity))
            }
            None => self.lengths.get(entity.index()).copied().unwrap_or(0),
        }
    }

    /// Up to `limit` words spelt like this one, with their distance, nearest first; among equals
    /// the word that more names hold. Never the word itself.
    pub(crate) fn spelt_like(&self, word: &str, limit: usize) -> Vec<(&str, usize)> {
        let wanted: Vec<char> = word.chars().collect();
        let allowed = allowed_edits(wanted.len());
        if allowed == 0 {
            return Vec::new();
        }
        let mut found: Vec<(usize, std::cmp::Reverse<usize>, usize)> = Vec::new();
        let mut other = Vec::new();
        let mut rows = Rows::default();
        for i in 0..self.len() {
            let candidate = self.word(i);
            // in UTF-8 a letter has at most four bytes
            if candidate.len() + allowed < wanted.len()
                || candidate.len() > (wanted.len() + allowed) * 4
            {
                continue;
            }
            other.clear();
            other.extend(candidate.chars());
            if other.len().abs_diff(wanted.len()) > allowed {
                continue;
            }
            let distance = rows.distance(&wanted, &other, allowed);
            if (1..=allowed).contains(&distance) {
                let holders = self.postings(i).len();
                if holders == 0 {
                    continue;
                }
                found.push((distance, std::cmp::Reverse(holders), i));
            }
        }
        found.sort_unstable();
        found.truncate(limit);
        found
            .into_iter()
            .map(|(distance, _, i)| (self.word(i), distance))
            .collect()
    }
}

/// Edits that a word of so many letters may be away.
fn allowed_edits(letters: usize) -> usize {
    match letters {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    }
}

/// Rows of the distance table, kept between words.
#[derive(Default)]
struct Rows {
    before: Vec<usize>,
    last: Vec<usize>,
    this: Vec<usize>,
}

impl Rows {
    /// The optimal string alignment distance, or anything above `most` if it is above.
    fn distance(&mut self, a: &[char], b: &[char], most: usize) -> usize {
        self.last.clear();
        self.last.extend(0..=b.len());
        self.before.clone_from(&self.last);
        for (i, x) in a.iter().enumerate() {
            self.this.clear();
            self.this.push(i + 1);
            let mut least = i + 1;
            for (j, y) in b.iter().enumerate() {
                let mut cost = (self.last[j] + usize::from(x != y))
                    .min(self.last[j + 1] + 1)
                    .min(self.this[j] + 1);
                if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                    cost = cost.min(self.before[j - 1] + 1);
                }
                least = least.min(cost);
                self.this.push(cost);
            }
            if least > most {
                return least;
            }
            std::mem::swap(&mut self.before, &mut self.last);
            std::mem::swap(&mut self.last, &mut self.this);
        }
        self.last[b.len()]
    }
}

/// The optimal string alignment distance of two texts.
pub(crate) fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    Rows::default().distance(&a, &b, usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wherefore_graph::{MemoryGraph, toy};

    use super::*;

    fn labels(graph: &dyn Graph, found: Vec<(EntityId, u8)>) -> Vec<String> {
        found
            .into_iter()
            .map(|(e, _)| graph.entity_label(e).unwrap().into_owned())
            .collect()
    }

    #[test]
    fn holders_have_all_the_words() {
        let graph = toy::graph();
        let lexicon = Lexicon::build(&graph).unwrap();
        let holders = |words: &[&str]| {
            let ids: Vec<usize> = words.iter().map(|w| lexicon.find(w).unwrap()).collect();
            labels(&graph, lexicon.holders(&ids))
        };
        let one = holders(&["francisco"]);
        assert!(one.contains(&"San Francisco".into()));
        assert!(one.contains(&"San Francisco Giants".into()));
        assert_eq!(holders(&["giants", "francisco"]), ["San Francisco Giants"]);
        assert!(holders(&["giants", "seal"]).is_empty());
        assert!(holders(&[]).is_empty());
        assert!(lexicon.find("Seal").is_none());
    }

    #[test]
    fn rarity_falls_with_the_number_of_holders() {
        let graph = MemoryGraph::from_names([
            ("red fox", "r", "red cat"),
            ("red owl", "r", "sea"),
            ("m.0abc", "r", "red fox"),
        ]);
        let lexicon = Lexicon::build(&graph).unwrap();
        // five entities; `red` is held by three: 1 − ln 3 / ln 5
        assert!((lexicon.rarity("red") - 0.317_394).abs() < 1e-5);
        assert_eq!(lexicon.rarity("owl"), 1.0);
        assert!(lexicon.find("m").is_none());
    }

    #[test]
    fn a_changed_graph_has_the_lexicon_of_its_names() {
        use wherefore_graph::{Action, ChangeSet, Format, Input, LoadOptions, load};
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("g.tsv");
        std::fs::write(&file, "Red Fox\teats\tBlue Owl\nRed Cat\teats\tRed Fox\n").unwrap();
        let graph = folder.path().join("g");
        load(
            &[Input::File(file)],
            &graph,
            &LoadOptions::default(),
            &|_| {},
        )
        .unwrap();
        let store = Store::open(&graph).unwrap();
        let files = Arc::new(Lexicon::build(&store).unwrap());
        let set = |text: &str, action| ChangeSet::parse(text, action, Format::Tsv, false).unwrap();
        let changes = set("Red Cat\teats\tRed Fox\n", Action::Remove)
            .then(set("Green Fox\teats\tBlue Owl\n", Action::Add));
        let (changed, _) = store.change(&changes).unwrap();
        let lexicon = Lexicon::changed(files, &changed).unwrap();
        let holders = |words: &[&str]| {
            let ids: Option<Vec<usize>> = words.iter().map(|w| lexicon.find(w)).collect();
            ids.map(|ids| labels(&changed, lexicon.holders(&ids)))
                .unwrap_or_default()
        };
        let mut foxes = holders(&["fox"]);
        foxes.sort();
        assert_eq!(foxes, ["Green Fox", "Red Fox"]);
        assert_eq!(holders(&["green", "fox"]), ["Green Fox"]);
        assert!(holders(&["cat"]).is_empty());
        // nobody is called so any more
        assert_eq!(lexicon.rarity("cat"), 1.0);
        assert_eq!(lexicon.spelt_like("gren", 5), [("green", 1)]);
    }

    #[test]
    fn words_spelt_alike_are_found_nearest_first() {
        let graph = MemoryGraph::from_names([
            ("Francisco Goya", "r", "Franciska"),
            ("Francis", "r", "Goyz"),
        ]);
        let lexicon = Lexicon::build(&graph).unwrap();
        assert_eq!(
            lexicon.spelt_like("fransisco", 5),
            [("francisco", 1)] // c → s; `franciska` is three away
        );
        assert_eq!(lexicon.spelt_like("rfancis", 5), [("francis", 1)]);
        assert_eq!(lexicon.spelt_like("goya", 5), [("goyz", 1)]);
        assert_eq!(lexicon.spelt_like("goy", 5), []);
    }

    #[test]
    fn edits_are_counted() {
        // kitten → sitten → sittin → sitting
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "ab"), 2);
        assert_eq!(edits("ab", "ba"), 1);
    }

    /// By definition, from the end of both texts.
    fn naive(a: &[char], b: &[char]) -> usize {
        match (a, b) {
            ([], rest) | (rest, []) => rest.len(),
            ([a0 @ .., x], [b0 @ .., y]) => {
                let mut best = (naive(a0, b0) + usize::from(x != y))
                    .min(naive(a0, b) + 1)
                    .min(naive(a, b0) + 1);
                if let ([a1 @ .., x1], [b1 @ .., y1]) = (a0, b0)
                    && x == y1
                    && x1 == y
                {
                    best = best.min(naive(a1, b1) + 1);
                }
                best
            }
        }
    }

    proptest! {
        #[test]
        fn distance_is_that_of_the_definition(a in "[abc]{0,6}", b in "[abc]{0,6}") {
            let chars = |s: &str| s.chars().collect::<Vec<_>>();
            let want = naive(&chars(&a), &chars(&b));
            prop_assert_eq!(edits(&a, &b), want);
            let bounded = Rows::default().distance(&chars(&a), &chars(&b), 2);
            prop_assert_eq!(bounded.min(3), want.min(3));
        }
    }
}
