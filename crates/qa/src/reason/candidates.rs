//! Answers without a language model: the entities that the retriever holds for answers.
//!
//! ```text
//! answers    = candidates with c(e) ≥ κ · max c, joined to a topic by the evidence
//! rationale  = the path from a topic to e with the greatest Π_{t ∈ path} s(t)
//! confidence = c(e)
//! ```
//!
//! c is the retriever's score of a candidate, s(t) that of a triple, κ is `keep`. Equal
//! candidates: the one with the better path first. Candidates without a name are left out, and so
//! are those that no path within `max_hops` triples of the evidence joins to a topic.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};

use super::{Candidate, Conclusion, Reasoner};
use crate::error::{Error, Result};
use crate::organize::Context;
use crate::question::Question;
use crate::select::Selection;

/// Settings of [`Candidates`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CandidatesConfig {
    /// κ: a candidate is an answer if it scores this share of the best one.
    pub keep: f32,
    /// Length of the longest path, in triples.
    pub max_hops: usize,
}

impl Default for CandidatesConfig {
    /// Ours: QSRAG lets a language model read the evidence, and says no share. κ is the same as that
    /// of [`ChainEnds`](super::ChainEnds).
    fn default() -> Self {
        Self {
            keep: 0.5,
            max_hops: 6,
        }
    }
}

impl CandidatesConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.keep) {
            return Err(Error::Config("`reason.keep` must be from 0 to 1".into()));
        }
        if !(1..=8).contains(&self.max_hops) {
            return Err(Error::Config(
                "`reason.max_hops` must be from 1 to 8".into(),
            ));
        }
        Ok(())
    }
}

/// Answers with the retriever's candidates.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    config: CandidatesConfig,
}

impl Candidates {
    /// A reasoner with these settings.
    pub fn new(config: CandidatesConfig) -> Self {
        Self { config }
    }
}

impl Reasoner for Candidates {
    fn reason(
        &self,
        _question: &Question,
        context: &Context,
        graph: &dyn Graph,
    ) -> Result<Conclusion> {
        let selection = &context.selection;
        let paths = best_paths(selection, self.config.max_hops);
        let mut answers: Vec<(f32, Candidate)> = Vec::new();
        for &(entity, score) in &selection.candidates {
            if let Some((product, path)) = paths.get(&entity)
                && graph.is_named(entity)?
            {
                let candidate = Candidate {
                    entity,
                    confidence: score,
                    path: path.clone(),
                };
                answers.push((*product, candidate));
            }
        }
        let top = answers
            .iter()
            .map(|(_, c)| c.confidence)
            .fold(0.0, f32::max);
        answers.retain(|(_, c)| c.confidence > 0.0 && c.confidence >= self.config.keep * top);
        answers.sort_by(|(p, a), (q, b)| {
            (b.confidence.total_cmp(&a.confidence)).then_with(|| q.total_cmp(p))
        });
        Ok(Conclusion {
            reason: answers
                .is_empty()
                .then(|| "no entity near the topic looks like an answer".into()),
            answers: answers.into_iter().map(|(_, answer)| answer).collect(),
            ..Conclusion::default()
        })
    }
}

/// How far the search has come: the product of the scores, the path, where it ends.
struct Reached {
    product: f32,
    path: Vec<usize>,
    end: EntityId,
}

impl PartialEq for Reached {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Reached {}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> Ordering {
        // the greatest product first, then the shortest, then the one of better evidence
        (self.product.total_cmp(&other.product))
            .then_with(|| other.path.len().cmp(&self.path.len()))
            .then_with(|| other.path.cmp(&self.path))
    }
}

/// For each entity of the evidence, the product and the triples of its best path from a topic
/// (Dijkstra 1959, with products for sums: scores are at most 1).
fn best_paths(selection: &Selection, max_hops: usize) -> BTreeMap<EntityId, (f32, Vec<usize>)> {
    let mut around: HashMap<EntityId, Vec<(usize, EntityId)>> = HashMap::new();
    for (i, (triple, _)) in selection.triples.iter().enumerate() {
        around
            .entry(triple.head)
            .or_default()
            .push((i, triple.tail));
        around
            .entry(triple.tail)
            .or_default()
            .push((i, triple.head));
    }
    let mut queue: BinaryHeap<Reached> = (selection.topics.iter())
        .map(|&end| Reached {
            product: 1.0,
            path: Vec::new(),
            end,
        })
        .collect();
    let mut best = BTreeMap::new();
    while let Some(Reached { product, path, end }) = queue.pop() {
        if best.contains_key(&end) {
            continue;
        }
        if path.len() < max_hops {
            for &(i, next) in around.get(&end).map_or(&[][..], Vec::as_slice) {
                if !best.contains_key(&next) {
                    queue.push(Reached {
                        product: product * selection.triples[i].1.clamp(0.0, 1.0),
                        path: [path.as_slice(), &[i]].concat(),
                        end: next,
                    });
                }
            }
        }
        best.insert(end, (product, path));
    }
    best
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::*;

    fn reason(
        graph: &MemoryGraph,
        scores: &[f32],
        candidates: &[(&str, f32)],
        keep: f32,
    ) -> Vec<(String, f32, Vec<usize>)> {
        let named = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let context = Context {
            selection: Selection {
                triples: graph.triples().zip(scores.iter().copied()).collect(),
                topics: vec![named("a")],
                candidates: candidates.iter().map(|&(n, s)| (named(n), s)).collect(),
                ..Selection::default()
            },
            ..Context::default()
        };
        let config = CandidatesConfig {
            keep,
            ..CandidatesConfig::default()
        };
        let conclusion = Candidates::new(config)
            .reason(&Question::new("?"), &context, graph)
            .unwrap();
        assert_eq!(conclusion.answers.is_empty(), conclusion.reason.is_some());
        let answers = conclusion.answers.into_iter();
        answers
            .map(|c| {
                let label = graph.entity_label(c.entity).unwrap().into_owned();
                (label, c.confidence, c.path)
            })
            .collect()
    }

    #[test]
    fn candidates_answer_in_their_order_with_their_best_path() {
        let graph = MemoryGraph::from_names([
            ("a", "r", "x"),    // 0
            ("a", "s", "m.0b"), // 1
            ("a", "u", "y"),    // 2
            ("m.0b", "t", "x"), // 3
            ("z", "v", "w"),    // 4: joined to nothing
        ]);
        let scores = [0.3, 0.9, 0.8, 0.5, 0.9];
        let candidates = [
            ("x", 0.9),
            ("y", 0.5),
            ("m.0b", 0.8),
            ("w", 0.95),
            ("z", 0.1),
        ];
        let answers = reason(&graph, &scores, &candidates, 0.5);
        // x: 0.9 · 0.5 = 0.45 > 0.3; y: 0.5 ≥ 0.5 · 0.9; m.0b has no name, w no path
        assert_eq!(
            answers,
            [("x".into(), 0.9, vec![1, 3]), ("y".into(), 0.5, vec![2])]
        );
        assert_eq!(reason(&graph, &scores, &candidates, 0.9).len(), 1);
    }

    #[test]
    fn equal_candidates_go_by_their_paths() {
        let graph = MemoryGraph::from_names([("a", "r", "x"), ("a", "r", "y")]);
        let answers = reason(&graph, &[0.2, 0.7], &[("x", 0.5), ("y", 0.5)], 1.0);
        assert_eq!(answers[0].0, "y");
        assert_eq!(answers.len(), 2);
        assert!(reason(&graph, &[0.2, 0.7], &[], 0.5).is_empty());
        assert!(reason(&graph, &[0.2, 0.7], &[("x", 0.0)], 0.5).is_empty());
    }
}
