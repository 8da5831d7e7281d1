//! Answers without a language model: whatever the best path of relations leads to.
//!
//! ```text
//! s(p)        = √( c(end of p) · (Π_{t ∈ p} s(t))^(1/|p|) )
//! pattern(p)  = the topic and the relations of p with their directions
//! answers     = the ends of the paths with the best pattern, s(p) ≥ κ · s(best p)
//! confidence  = s(p) − ½ · s(best rival)
//! ```
//!
//! c is the retriever's score of a candidate, s(t) that of a triple, κ is `keep`. Equal paths:
//! the shorter, then the one whose triples point away from the topic, then the one found in
//! better evidence. A rival leads elsewhere by a pattern that neither begins with the best one
//! nor is its beginning: those are the same thought, carried on or broken off. A tie with a rival
//! thus halves the confidence. It is no probability.
//!
//! Unnamed nodes are passed through and never answers. Where no candidate scores, it abstains.
//! A retriever that knows which relations to follow says so in its plans; these are then followed
//! (`plan.rs`), and no other path is looked for.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, RelationId};

use super::{Candidate, Conclusion, Reasoner, plan};
use crate::error::{Error, Result};
use crate::organize::Context;
use crate::question::Question;
use crate::select::Selection;

/// Paths looked at, at most: dense evidence has more than anyone needs.
const MAX_PATHS: usize = 200_000;

/// Settings of [`BestPath`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BestPathConfig {
    /// Length of the longest path, in triples.
    pub max_hops: usize,
    /// κ: an end of the best pattern is an answer if it scores this share of the best one.
    pub keep: f32,
}

impl Default for BestPathConfig {
    /// Ours, as the method is. κ is higher than that of [`Candidates`](super::Candidates), for the
    /// scores that are compared here are roots of products and lie nearer to each other.
    fn default() -> Self {
        Self {
            max_hops: 4,
            keep: 0.8,
        }
    }
}

impl BestPathConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=8).contains(&self.max_hops) {
            return Err(Error::Config(
                "`reason.max_hops` must be from 1 to 8".into(),
            ));
        }
        if !(0.0..=1.0).contains(&self.keep) {
            return Err(Error::Config("`reason.keep` must be from 0 to 1".into()));
        }
        Ok(())
    }
}

/// Answers by the best path.
#[derive(Clone, Debug, Default)]
pub struct BestPath {
    config: BestPathConfig,
}

impl BestPath {
    /// A reasoner with these settings.
    pub fn new(config: BestPathConfig) -> Self {
        Self { config }
    }
}

/// A topic, and the relations followed from it; `true` where against their direction.
type Pattern = (EntityId, Vec<(bool, RelationId)>);

/// A path to a candidate.
#[derive(Clone, Debug)]
struct Found {
    end: EntityId,
    triples: Vec<usize>,
    score: f32,
}

impl Reasoner for BestPath {
    fn reason(
        &self,
        _question: &Question,
        context: &Context,
        graph: &dyn Graph,
    ) -> Result<Conclusion> {
        if !context.selection.plans.is_empty() {
            return plan::follow(&context.selection, graph);
        }
        let patterns = self.patterns(&context.selection, graph)?;
        let Some((best, ends)) = patterns.iter().max_by(|a, b| compare(*a, *b)) else {
            return Ok(Conclusion {
                reason: Some("no fact near the topic shares a word with the question".into()),
                ..Conclusion::default()
            });
        };
        let top = top_score(ends);
        let mut answers: Vec<&Found> = ends
            .values()
            .filter(|f| f.score >= self.config.keep * top)
            .collect();
        answers.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.triples.cmp(&b.triples))
        });
        let rival = patterns
            .iter()
            .filter(|(pattern, _)| !is_same_thought(pattern, best))
            .flat_map(|(_, ends)| ends.values())
            .filter(|f| answers.iter().all(|a| a.end != f.end))
            .map(|f| f.score)
            .fold(0.0, f32::max);
        Ok(Conclusion {
            answers: answers
                .into_iter()
                .map(|f| Candidate {
                    entity: f.end,
                    confidence: (f.score - rival / 2.0).clamp(0.0, 1.0),
                    path: f.triples.clone(),
                })
                .collect(),
            ..Conclusion::default()
        })
    }
}

impl BestPath {
    /// All patterns that lead to a candidate, each with its ends and the best path to each.
    fn patterns(
        &self,
        selection: &Selection,
        graph: &dyn Graph,
    ) -> Result<BTreeMap<Pattern, BTreeMap<EntityId, Found>>> {
        let mut candidates = HashMap::new();
        for &(entity, score) in &selection.candidates {
            if score > 0.0 && graph.is_named(entity)? {
                candidates.insert(entity, score);
            }
        }
        let mut around: HashMap<EntityId, Vec<(usize, bool, EntityId)>> = HashMap::new();
        for (i, (t, _)) in selection.triples.iter().enumerate() {
            around.entry(t.head).or_default().push((i, false, t.tail));
            around.entry(t.tail).or_default().push((i, true, t.head));
        }

        let mut patterns: BTreeMap<Pattern, BTreeMap<EntityId, Found>> = BTreeMap::new();
        let mut seen = 0;
        for &topic in &selection.topics {
            // shortest first, so that the limit cuts the long ones
            let mut layer = vec![(vec![topic], Vec::<usize>::new(), Vec::new())];
            for _ in 0..self.config.max_hops {
                let mut next = Vec::new();
                for (visited, triples, relations) in &layer {
                    let at = visited[visited.len() - 1];
                    for &(i, against, end) in around.get(&at).map_or(&[][..], Vec::as_slice) {
                        if seen == MAX_PATHS || visited.contains(&end) {
                            continue;
                        }
                        seen += 1;
                        let longer = |list: &[usize]| [list, &[i]].concat();
                        let triples = longer(triples);
                        let relation = (against, selection.triples[i].0.relation);
                        let relations = [&relations[..], &[relation]].concat();
                        if let Some(candidate) = candidates.get(&end) {
                            let found = Found {
                                end,
                                score: (candidate * mean_score(selection, &triples)).sqrt(),
                                triples: triples.clone(),
                            };
                            let ends = patterns.entry((topic, relations.clone())).or_default();
                            let old = ends.entry(end).or_insert_with(|| found.clone());
                            if old.score < found.score {
                                *old = found;
                            }
                        }
                        next.push(([&visited[..], &[end]].concat(), triples, relations));
                    }
                }
                layer = next;
            }
        }
        Ok(patterns)
    }
}

/// The geometric mean of the triples' scores.
fn mean_score(selection: &Selection, triples: &[usize]) -> f32 {
    let product: f32 = triples.iter().map(|&i| selection.triples[i].1).product();
    product.max(0.0).powf(1.0 / triples.len() as f32)
}

fn top_score(ends: &BTreeMap<EntityId, Found>) -> f32 {
    ends.values().map(|f| f.score).fold(0.0, f32::max)
}

/// Whether one pattern begins with the other.
fn is_same_thought(a: &Pattern, b: &Pattern) -> bool {
    a.0 == b.0 && (a.1.starts_with(&b.1) || b.1.starts_with(&a.1))
}

/// Which pattern is better; the better one is greater.
fn compare(
    a: (&Pattern, &BTreeMap<EntityId, Found>),
    b: (&Pattern, &BTreeMap<EntityId, Found>),
) -> Ordering {
    // sums of floats differ in the last digit by the order they were made in
    let rounded = |ends| (top_score(ends) * 1e5).round();
    let against = |pattern: &Pattern| pattern.1.iter().filter(|(against, _)| *against).count();
    let first = |ends: &BTreeMap<EntityId, Found>| ends.values().map(|f| f.triples.clone()).min();
    rounded(a.1)
        .total_cmp(&rounded(b.1))
        .then_with(|| b.0.1.len().cmp(&a.0.1.len()))
        .then_with(|| against(b.0).cmp(&against(a.0)))
        .then_with(|| first(b.1).cmp(&first(a.1)))
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{Adjacency, MemoryGraph, NameMatch};

    use super::*;

    fn named(graph: &MemoryGraph, name: &str) -> EntityId {
        graph.entities_named(name, NameMatch::Exact).unwrap()[0]
    }

    fn reason(
        graph: &MemoryGraph,
        topic: &str,
        scores: &[f32],
        candidates: &[(&str, f32)],
    ) -> Vec<(String, f32)> {
        let mut selection = Selection {
            triples: graph.triples().zip(scores.iter().copied()).collect(),
            topics: vec![named(graph, topic)],
            candidates: candidates
                .iter()
                .map(|&(name, score)| (named(graph, name), score))
                .collect(),
            ..Selection::default()
        };
        selection.triples.sort_by(|a, b| b.1.total_cmp(&a.1));
        let context = Context {
            selection,
            ..Context::default()
        };
        let conclusion = BestPath::default()
            .reason(&Question::new("?"), &context, graph)
            .unwrap();
        assert_eq!(conclusion.answers.is_empty(), conclusion.reason.is_some());
        conclusion
            .answers
            .iter()
            .map(|c| {
                let label = graph.entity_label(c.entity).unwrap().into_owned();
                (label, (c.confidence * 1000.0).round() / 1000.0)
            })
            .collect()
    }

    #[test]
    fn all_ends_of_the_best_pattern_answer_together() {
        let graph =
            MemoryGraph::from_names([("a", "won", "x"), ("a", "won", "y"), ("a", "lost", "z")]);
        let answers = reason(
            &graph,
            "a",
            &[0.8, 0.8, 0.4],
            &[("x", 0.8), ("y", 0.8), ("z", 0.4)],
        );
        // s = √(0.8 · 0.8) = 0.8, the rival √(0.4 · 0.4) = 0.4: 0.8 − 0.2 = 0.6
        assert_eq!(answers, [("x".to_owned(), 0.6), ("y".to_owned(), 0.6)]);
    }

    #[test]
    fn ends_far_below_the_best_are_left_out() {
        let graph = MemoryGraph::from_names([("a", "won", "x"), ("a", "won", "y")]);
        let answers = reason(&graph, "a", &[1.0, 0.6], &[("x", 1.0), ("y", 0.6)]);
        // √(0.6 · 0.6) < 0.8 · 1; nothing leads elsewhere by another pattern
        assert_eq!(answers, [("x".to_owned(), 1.0)]);
    }

    #[test]
    fn unnamed_nodes_are_passed_through() {
        let graph = MemoryGraph::from_names([("a", "r", "m.0seat"), ("m.0seat", "s", "5")]);
        let answers = reason(&graph, "a", &[1.0, 0.64], &[("m.0seat", 1.0), ("5", 0.2)]);
        // √(0.2 · √(1 · 0.64)) = √0.16 = 0.4
        assert_eq!(answers, [("5".to_owned(), 0.4)]);
    }

    #[test]
    fn of_equal_paths_the_shorter_and_then_the_forward_one_wins() {
        let graph = MemoryGraph::from_names([("a", "in", "b"), ("b", "in", "c"), ("d", "in", "a")]);
        let answers = reason(
            &graph,
            "a",
            &[1.0, 1.0, 1.0],
            &[("c", 1.0), ("d", 1.0), ("b", 1.0)],
        );
        // c is the same thought carried on, d a tie: 1 − ½
        assert_eq!(answers, [("b".to_owned(), 0.5)]);
    }

    #[test]
    fn nothing_that_scores_is_no_answer() {
        let graph = MemoryGraph::from_names([("a", "in", "b")]);
        assert_eq!(reason(&graph, "a", &[0.0], &[]), []);
        assert_eq!(reason(&graph, "a", &[1.0], &[("b", 0.0)]), []);
    }

    #[test]
    fn dense_evidence_leads_to_the_best_candidate() {
        let names: Vec<String> = (0..40).map(|i| format!("e{i}")).collect();
        let graph = MemoryGraph::from_names(
            names
                .iter()
                .flat_map(|a| names.iter().map(move |b| (a.as_str(), "r", b.as_str()))),
        );
        let scores = vec![1.0; graph.triple_count()];
        let answers = reason(&graph, "e0", &scores, &[("e7", 1.0)]);
        assert_eq!(answers[0].0, "e7");
        assert!(graph.degree(EntityId(0)).unwrap() > 40);
    }
}
