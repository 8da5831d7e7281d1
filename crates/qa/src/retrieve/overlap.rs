//! Scores triples by the words that their path from a topic shares with the question.
//!
//! A plain baseline after inverse document frequency (Spärck Jones, 1972). For a path p from a
//! topic, with Q the stems of the question that are neither stop words nor part of a mention:
//!
//! ```text
//! w(q)     = ln(1 + T / df(q))                                    ln 2 where df(q) = 0
//! cover(p) = Σ_{q ∈ Q ∩ R(p)} w(q) + β · Σ_{q ∈ Q ∩ E(p) \ R(p)} w(q)
//! score(p) = cover(p) / Σ_{q ∈ Q} w(q) · λ^idle(p)
//! ```
//!
//! T is the number of triples in the neighbourhood and df(q) how many of them have q in relation
//! or labels: a word that nobody has tells as little apart as one that everybody has. R(p) are
//! the stems of the path's relations, E(p) those of the entities it reaches. β is
//! `entity_weight`, λ is `idle_factor`, idle(p) counts the hops that add no word. A node without
//! a name is passed through: the hop into it and the hop out of it are one.
//!
//! A triple scores as the best path through it, so the way back to the topic is never worse than
//! the triple it leads to. An entity scores as the best path that ends there. With n topics, the
//! best paths from the m that reach it count together (words joined, idle hops added) times
//! √(m/n), or the best one alone times √(1/n) if that is more. Topics and unnamed nodes score 0.
//!
//! Limits: of the paths to one entity, the best few are continued, and only one of those with the
//! same words on them; 64 words of the question are used. What was cut is told in the notes.

mod paths;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wherefore_graph::{Direction, EntityId, Expansion, Graph, Subgraph, expand};

use super::{Retriever, ScoredTriples};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::question::Question;
use crate::words::for_each_stem;

/// Words of the question are bits of a `u64`.
const MAX_WORDS: usize = 64;

/// Settings of [`Overlap`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OverlapConfig {
    /// Length of the longest path, in triples.
    pub hops: usize,
    /// At most this many triples of one entity are followed in each direction.
    pub max_fan_out: usize,
    /// At most this many triples are looked at.
    pub max_triples: usize,
    /// The neighbourhood is cut out for at most so many milliseconds.
    pub time_limit_ms: u64,
    /// β: what a word is worth in an entity's label, against 1 in a relation.
    pub entity_weight: f32,
    /// λ: what is left of a path's score for each hop that adds no word.
    pub idle_factor: f32,
}

impl Default for OverlapConfig {
    fn default() -> Self {
        Self {
            hops: 2,
            max_fan_out: 1000,
            max_triples: 50_000,
            time_limit_ms: 2000,
            entity_weight: 0.5,
            idle_factor: 0.5,
        }
    }
}

impl OverlapConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=4).contains(&self.hops) {
            return Err(Error::Config("`retrieve.hops` must be from 1 to 4".into()));
        }
        if self.max_fan_out == 0 || self.max_triples == 0 {
            return Err(Error::Config(
                "`retrieve.max_fan_out` and `retrieve.max_triples` must be at least 1".into(),
            ));
        }
        for (name, value) in [
            ("entity_weight", self.entity_weight),
            ("idle_factor", self.idle_factor),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::Config(format!(
                    "`retrieve.{name}` must be from 0 to 1"
                )));
            }
        }
        Ok(())
    }
}

/// Retrieves by word overlap.
#[derive(Clone, Debug, Default)]
pub struct Overlap {
    config: OverlapConfig,
}

impl Overlap {
    /// A retriever with these settings.
    pub fn new(config: OverlapConfig) -> Self {
        Self { config }
    }
}

impl Retriever for Overlap {
    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let seeds: Vec<EntityId> = links.iter().map(|l| l.entity).collect();
        let expansion = Expansion {
            hops: self.config.hops,
            direction: Direction::Both,
            max_fan_out: self.config.max_fan_out,
            max_triples: self.config.max_triples,
            time_limit: Some(Duration::from_millis(self.config.time_limit_ms)),
            skip: graph.naming_relations().to_vec(),
        };
        let expanded = expand(graph, &seeds, &expansion)?;
        let mut words = QuestionWords::new(question, links, graph)?;
        let masks = Masks::new(&expanded.subgraph, &mut words, graph)?;
        let topics: Vec<EntityId> = seeds
            .iter()
            .filter_map(|&seed| expanded.subgraph.find(seed))
            .collect();
        let scores = paths::Walk {
            subgraph: &expanded.subgraph,
            words: &words,
            masks: &masks,
            config: &self.config,
        }
        .score(&topics);
        let mut notes = expanded.cut.describe();
        if words.cut {
            notes.push(format!("only {MAX_WORDS} words of the question were used"));
        }
        Ok(ScoredTriples {
            subgraph: expanded.subgraph,
            topics,
            triple_scores: scores.triples,
            entity_scores: scores.entities,
            notes,
            ..ScoredTriples::default()
        })
    }
}

/// Q with the weights w.
#[derive(Debug, Default)]
struct QuestionWords {
    bits: HashMap<String, usize>,
    weights: Vec<f32>,
    /// Σ w(q) over all words.
    total: f32,
    cut: bool,
}

impl QuestionWords {
    fn new(question: &Question, links: &[Link], graph: &dyn Graph) -> Result<Self> {
        let mut mentioned = HashSet::new();
        for link in links {
            let mut add = |stem: &str| {
                mentioned.insert(stem.to_owned());
            };
            for_each_stem(&link.mention, &mut add);
            for_each_stem(&graph.entity_label(link.entity)?, &mut add);
        }
        // by place where it is known: in `the city of Kansas City` the first one counts
        let mut rest = String::with_capacity(question.text.len());
        let mut spans: Vec<_> = links.iter().filter_map(|l| l.span).collect();
        spans.sort_unstable();
        let mut at = 0;
        for (from, to) in spans {
            if let Some(before) = question.text.get(at..from) {
                rest.push_str(before);
                rest.push(' ');
            }
            at = at.max(to);
        }
        rest.push_str(question.text.get(at..).unwrap_or_default());
        let placed = links.iter().all(|l| l.span.is_some());

        let mut words = Self::default();
        for_each_stem(&rest, |stem| {
            if words.bits.contains_key(stem) || !placed && mentioned.contains(stem) {
                return;
            }
            let next = words.bits.len();
            if next < MAX_WORDS {
                words.bits.insert(stem.to_owned(), next);
            } else {
                words.cut = true;
            }
        });
        Ok(words)
    }

    fn mask(&self, text: &str) -> u64 {
        let mut mask = 0;
        for_each_stem(text, |stem| {
            if let Some(bit) = self.bits.get(stem) {
                mask |= 1 << bit;
            }
        });
        mask
    }

    /// Σ w(q) over a set of words.
    fn sum(&self, mask: u64) -> f32 {
        let mut rest = mask;
        let mut sum = 0.0;
        while rest != 0 {
            sum += self.weights[rest.trailing_zeros() as usize];
            rest &= rest - 1;
        }
        sum
    }
}

/// The question's words in each relation and entity of the subgraph.
struct Masks {
    relations: Vec<u64>,
    entities: Vec<u64>,
    named: Vec<bool>,
}

impl Masks {
    /// Reads all labels, and weighs the words by how many triples have them.
    fn new(subgraph: &Subgraph, words: &mut QuestionWords, graph: &dyn Graph) -> Result<Self> {
        let mut masks = Self {
            relations: Vec::with_capacity(subgraph.relations().len()),
            entities: Vec::with_capacity(subgraph.entities().len()),
            named: Vec::with_capacity(subgraph.entities().len()),
        };
        for &relation in subgraph.relations() {
            masks
                .relations
                .push(words.mask(&graph.relation_label(relation)?));
        }
        for &entity in subgraph.entities() {
            let named = graph.is_named(entity)?;
            masks.named.push(named);
            masks.entities.push(if named {
                words.mask(&graph.entity_label(entity)?)
            } else {
                0
            });
        }
        let mut frequency = vec![0u32; words.bits.len()];
        for t in subgraph.triples() {
            let mut mask = masks.relations[t.relation.index()]
                | masks.entities[t.head.index()]
                | masks.entities[t.tail.index()];
            while mask != 0 {
                frequency[mask.trailing_zeros() as usize] += 1;
                mask &= mask - 1;
            }
        }
        let triples = subgraph.triples().len() as f32;
        words.weights = frequency
            .iter()
            .map(|&df| match df {
                0 => 2.0,
                df => 1.0 + triples / df as f32,
            })
            .map(f32::ln)
            .collect();
        words.total = words.weights.iter().sum();
        Ok(masks)
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, toy};

    use super::*;
    use crate::link::{Linker, Names, NamesConfig};

    fn retrieve(question: &Question, graph: &MemoryGraph) -> ScoredTriples {
        let links = Names::new(NamesConfig::default())
            .unwrap()
            .link(question, graph)
            .unwrap();
        Overlap::default()
            .retrieve(question, &links, graph)
            .unwrap()
    }

    fn entity_score(scored: &ScoredTriples, graph: &MemoryGraph, name: &str) -> f32 {
        let i = scored
            .subgraph
            .entities()
            .iter()
            .position(|&e| graph.entity_label(e).unwrap() == name)
            .unwrap();
        scored.entity_scores[i]
    }

    #[test]
    fn scores_follow_the_equation() {
        let graph = MemoryGraph::from_names([
            ("Giants", "coached_by", "Bochy"),
            ("Bochy", "born_in", "Bussac"),
            ("Giants", "plays_in", "Park"),
        ]);
        let scored = retrieve(
            &Question::new("Where was the coach of the Giants born?"),
            &graph,
        );
        // Q = {coach, birth}, each in one of three triples: equal weights, so one of them is 1/2
        let close = |name, want: f32| {
            let score = entity_score(&scored, &graph, name);
            assert!((score - want).abs() < 1e-6, "{name} {score}");
        };
        close("Bochy", 0.5);
        close("Bussac", 1.0);
        close("Park", 0.0);
        close("Giants", 0.0);
        // the way to Bussac scores like Bussac
        let coached = scored
            .subgraph
            .triples()
            .iter()
            .position(|t| {
                let relation = scored.subgraph.relations()[t.relation.index()];
                graph.relation_label(relation).unwrap() == "coached by"
            })
            .unwrap();
        assert!((scored.triple_scores[coached] - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_hop_that_adds_no_word_halves_the_score_but_not_through_an_unnamed_node() {
        let graph = MemoryGraph::from_names([
            ("Park", "next_to", "Pier"),
            ("Pier", "capacity", "12"),
            ("Park", "venue_record", "m.0seat"),
            ("m.0seat", "capacity", "41915"),
        ]);
        let scored = retrieve(&Question::new("What is the capacity of the Park?"), &graph);
        assert!((entity_score(&scored, &graph, "12") - 0.5).abs() < 1e-6);
        assert!((entity_score(&scored, &graph, "41915") - 1.0).abs() < 1e-6);
        assert_eq!(entity_score(&scored, &graph, "m.0seat"), 0.0);
    }

    #[test]
    fn words_of_the_mention_do_not_count() {
        let graph = toy::graph();
        let scored = retrieve(&Question::new("San Francisco Giants?"), &graph);
        assert!(scored.triple_scores.iter().all(|&s| s == 0.0));
        assert!(!scored.triple_scores.is_empty());
        // a given topic has no place in the question, its words are known all the same
        let given = Question::new("the Giants?").about(["San Francisco Giants"]);
        let scored = retrieve(&given, &graph);
        assert!(scored.triple_scores.iter().all(|&s| s == 0.0));
    }

    #[test]
    fn scores_stay_within_bounds_for_any_question() {
        let graph = toy::graph();
        let long = (0..100).map(|i| format!("word{i} ")).collect::<String>() + "Oracle Park won";
        for text in [
            "Lou Seal mascot located won lost in World Series 2014",
            &long,
        ] {
            let scored = retrieve(&Question::new(text), &graph);
            for s in scored.triple_scores.iter().chain(&scored.entity_scores) {
                assert!((0.0..=1.0).contains(s), "{s}");
            }
        }
        assert_eq!(
            retrieve(&Question::new(long), &graph).notes,
            ["only 64 words of the question were used"]
        );
    }

    #[test]
    fn no_links_give_an_empty_subgraph() {
        let scored = Overlap::default()
            .retrieve(&Question::new("why?"), &[], &toy::graph())
            .unwrap();
        assert!(scored.subgraph.triples().is_empty());
    }
}
