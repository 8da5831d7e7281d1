//! How well a word of the question names a relation.
//!
//! ```text
//! a(w, r) = max( lexical(w, r), min(0.9, g·(cos(w, r) − mean over r' of cos(w, r') − o)) )
//! ```
//!
//! `lexical` is 1 where a word of the relation has the same stem, 0.9 where one is the end of a
//! compound (`screenwriter`, `written`). cos is the greatest over the words of the relation: the
//! mean is taken off, for a word that is near to all relations tells none from the others. Below
//! [`FLOOR`] it is 0. Of a path-like label (`people.person.place_of_birth`) the last part counts
//! in full and the others by [`DOMAIN`].

use hashbrown::HashMap;
use wherefore_graph::{Graph, Hop, RelationId};
use wherefore_model::{Embeddings, Encoder};

use super::reading::Word;
use crate::error::Result;
use crate::relations::dot;
use crate::words::{is_stop_word, opened, stem};

/// g
const GAIN: f32 = 1.5;
/// o
const OFFSET: f32 = 0.05;
/// Less is nothing.
const FLOOR: f32 = 0.35;
/// What the first parts of a path-like label are worth.
const DOMAIN: f32 = 0.6;
/// What a stand-in for a word that asks is worth: less than a step costs.
const STAND_IN: f32 = 0.6;

/// Words that relations seldom have, and what relations have instead.
const STAND_INS: &[(&[&str], &[&str])] = &[
    (&["when"], &["year", "date"]),
    (&["where"], &["place", "location"]),
    (
        &[
            "about",
            "describe",
            "described",
            "describes",
            "describing",
            "keyword",
            "keywords",
            "subject",
            "topic",
            "topics",
            "words",
        ],
        &["tags", "subject", "topic"],
    ),
    (
        &[
            "category",
            "categories",
            "kind",
            "kinds",
            "sort",
            "sorts",
            "type",
            "types",
        ],
        &["genre", "type", "category"],
    ),
    (
        &["dad", "father", "mom", "mother", "mum", "parent", "parents"],
        &["parent", "father", "mother"],
    ),
    (
        &[
            "couple", "darling", "half", "husband", "married", "partner", "spouse", "wife",
        ],
        &["spouse", "partner", "married", "marriage"],
    ),
    (
        &[
            "child",
            "children",
            "daughter",
            "heir",
            "kid",
            "kids",
            "offspring",
            "son",
        ],
        &["child", "offspring"],
    ),
    (&["sex"], &["gender"]),
    (&["belief", "faith"], &["religion"]),
    (
        &["citizenship", "nation"],
        &["nationality", "country", "citizenship"],
    ),
    (
        &["career", "job", "occupation", "work"],
        &["profession", "occupation"],
    ),
    (&["birthplace"], &["birth"]),
    (&["year"], &["year", "date"]),
    (
        &[
            "adjacent",
            "around",
            "neighbor",
            "neighboring",
            "neighbors",
            "neighbour",
            "neighbouring",
            "neighbours",
            "next",
            "touch",
            "touches",
            "touching",
        ],
        &["borders", "neighbour", "adjacent"],
    ),
    (&["money", "pay"], &["currency"]),
    (
        &["inhabitants", "people", "populous", "residents"],
        &["population", "inhabitants"],
    ),
    (&["high", "height", "tall"], &["elevation", "height"]),
    (&["long"], &["length", "duration"]),
    (
        &["big", "kilometers", "kilometres", "large", "size", "square"],
        &["area", "size"],
    ),
    (&["speak", "speaks", "spoken"], &["language"]),
    (&["based", "seat", "sits"], &["headquarters", "seat"]),
    (
        &["created", "established", "founded"],
        &["founding", "founded", "inception"],
    ),
    (
        &["cross", "crosses", "pass", "passes", "run", "runs"],
        &["flows", "crosses", "passes"],
    ),
    (
        &["dialling", "phone", "telephone"],
        &["calling", "telephone"],
    ),
    (&["web"], &["internet", "website"]),
];

/// The words of the relations of a graph.
#[derive(Debug)]
pub(super) struct RelationWords {
    rows: Embeddings, // [words, dim]
    stems: Vec<String>,
    /// The words of each relation, with what they are worth.
    relations: Vec<Vec<(u32, f32)>>,
    /// Whether each is named after what it comes from: `mascot of`.
    of_head: Vec<bool>,
}

impl RelationWords {
    pub(super) fn build(graph: &dyn Graph, encoder: &dyn Encoder) -> Result<Self> {
        let mut ids: HashMap<String, u32> = HashMap::new();
        let mut words: Vec<String> = Vec::new();
        let mut relations = Vec::with_capacity(graph.relation_bound());
        let mut of_head = Vec::with_capacity(graph.relation_bound());
        for id in 0..u32::try_from(graph.relation_bound()).expect("relation ids have 32 bits") {
            let label = graph.relation_label(RelationId(id))?;
            let mut of: Vec<(u32, f32)> = Vec::new();
            let parts = parts(&label);
            for (i, part) in parts.iter().enumerate() {
                let worth = if i + 1 == parts.len() { 1.0 } else { DOMAIN };
                let opened = opened(part);
                let all = || opened.split(' ').filter(|w| !w.is_empty());
                let silent = all().all(is_stop_word);
                for word in all().filter(|w| silent || !is_stop_word(w)) {
                    let next = u32::try_from(words.len()).expect("fewer words than 2^32");
                    let id = *ids.entry_ref(word).or_insert_with(|| {
                        words.push(word.to_owned());
                        next
                    });
                    match of.iter_mut().find(|(old, _)| *old == id) {
                        Some((_, old)) => *old = old.max(worth),
                        None => of.push((id, worth)),
                    }
                }
            }
            relations.push(of);
            of_head.push(opened(&label).ends_with(" of"));
        }
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(Self {
            rows: encoder.encode(&texts)?,
            stems: words.iter().map(|w| stem(w).into_owned()).collect(),
            relations,
            of_head,
        })
    }

    /// a(w, r) for every relation.
    fn of(&self, word: &str, encoder: &dyn Encoder) -> Result<Vec<f32>> {
        let stand_ins = STAND_INS.iter().find(|(words, _)| words.contains(&word));
        let asked: Vec<&str> = match stand_ins {
            Some((_, others)) => others.iter().copied().chain([word]).collect(),
            None => vec![word],
        };
        let rows = encoder.encode(&asked)?;
        let stems: Vec<_> = asked.iter().map(|w| stem(w)).collect();
        let mut cosines = Vec::with_capacity(self.stems.len());
        let mut lexical = Vec::with_capacity(self.stems.len());
        for (row, own) in self.rows.rows().zip(&self.stems) {
            let nearest = rows.rows().map(|asked| dot(asked, row)).fold(0.0, f32::max);
            cosines.push(nearest);
            let same = stems.iter().map(|s| shared(s, own)).fold(0.0, f32::max);
            lexical.push(same);
        }
        let best = |of: &[(u32, f32)], by: &[f32]| {
            of.iter()
                .map(|&(word, worth)| worth * by[word as usize])
                .fold(0.0, f32::max)
        };
        let near: Vec<f32> = self.relations.iter().map(|of| best(of, &cosines)).collect();
        let mean = near.iter().sum::<f32>() / near.len().max(1) as f32;
        let worth = match word {
            "when" | "where" => STAND_IN,
            "about" => 0.8,
            _ => 1.0,
        };
        Ok((self.relations.iter().zip(near))
            .map(|(of, near)| {
                let meant = (GAIN * (near - mean - OFFSET)).min(0.9);
                let value = worth * best(of, &lexical).max(meant);
                if value < FLOOR { 0.0 } else { value }
            })
            .collect())
    }
}

/// 1 for the same stem, 0.9 for the end of a compound.
fn shared(word: &str, relation: &str) -> f32 {
    if word == relation {
        1.0
    } else if relation.len() >= 4 && word.ends_with(relation) {
        0.9
    } else {
        0.0
    }
}

/// The parts of a path-like label.
fn parts(label: &str) -> Vec<&str> {
    let parts: Vec<&str> = label
        .split(['.', '/'])
        .flat_map(|part| part.split("__"))
        .flat_map(|part| part.split("  "))
        .filter(|part| !part.trim().is_empty())
        .collect();
    if parts.is_empty() { vec![label] } else { parts }
}

/// The affinities of the words of one question.
pub(super) struct Affinity<'a> {
    relations: &'a RelationWords,
    by_word: Vec<Vec<f32>>, // [words][relations]
    /// The greatest of each word.
    pub(super) best: Vec<f32>,
}

impl<'a> Affinity<'a> {
    pub(super) fn new(
        words: &[Word],
        relations: &'a RelationWords,
        encoder: &dyn Encoder,
    ) -> Result<Self> {
        let by_word = words
            .iter()
            .map(|w| relations.of(&w.text, encoder))
            .collect::<Result<Vec<_>>>()?;
        let greatest = |row: &Vec<f32>| row.iter().copied().fold(0.0, f32::max);
        Ok(Self {
            best: by_word.iter().map(greatest).collect(),
            relations,
            by_word,
        })
    }

    /// The relations that a word names as well as any, by their places.
    pub(super) fn named_by(&self, word: usize) -> impl Iterator<Item = usize> {
        let row = &self.by_word[word];
        (0..row.len()).filter(move |&i| row[i] >= self.best[word])
    }

    /// Whether two words name one relation, each as well as any.
    pub(super) fn name_the_same(&self, a: usize, b: usize) -> bool {
        self.named_by(a).any(|i| self.by_word[b][i] >= self.best[b])
    }

    /// Whether a hop leads to what its relation is named after: `directed by` forward, `mascot of`
    /// backward.
    pub(super) fn leads_to_name(&self, hop: Hop) -> bool {
        hop.forward != self.relations.of_head[hop.relation.index()]
    }

    /// a(w, r)
    pub(super) fn of(&self, word: usize, relation: RelationId) -> f32 {
        self.by_word[word][relation.index()]
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;
    use wherefore_model::encode;

    use super::*;

    #[test]
    fn stems_compounds_and_meanings_name_a_relation() {
        let graph = MemoryGraph::from_names([
            ("a", "directed_by", "b"),
            ("a", "written_by", "c"),
            ("a", "release_year", "d"),
            ("a", "people.person.place_of_birth", "e"),
        ]);
        let encoder = encode::open("static").unwrap();
        let relations = RelationWords::build(&graph, &*encoder).unwrap();
        for (word, relation, at_least) in [
            ("director", 0, 1.0),
            ("screenwriter", 1, 0.9),
            ("when", 2, 0.5),
            ("born", 3, 1.0),
        ] {
            let values = relations.of(word, &*encoder).unwrap();
            let best = (0..4)
                .max_by(|&a, &b| values[a].total_cmp(&values[b]))
                .unwrap();
            assert_eq!(best, relation, "{word}: {values:?}");
            assert!(values[relation] >= at_least, "{word}: {values:?}");
        }
        // the domain of a path-like label counts less
        assert!(relations.of("person", &*encoder).unwrap()[3] <= DOMAIN);
    }

    #[test]
    fn labels_fall_into_parts() {
        assert_eq!(parts("a.b_c.d"), ["a", "b_c", "d"]);
        assert_eq!(
            parts("music  release  track list"),
            ["music", "release", "track list"]
        );
        assert_eq!(parts("..."), ["..."]);
    }
}
