//! Answers without a language model, read off merged chains: whatever the best of them ends in.
//!
//! ```text
//! v(C)       = √( s(C) · max_{e ends C} c(e) )              a chain
//! v(G)       = 1 − Π_{C ∈ G} (1 − v(C))                     chains of several topics with common ends
//! answers    = the ends of the best G with c(e) ≥ κ · max c
//! confidence = v(G) · c(e) / max c
//! ```
//!
//! s is a chain's score ([`Chain::score`]), c the retriever's score of a candidate (that of the
//! path to it, where there is none), κ is `keep`. Chains that agree thus outweigh a better one that
//! stands alone. Ends without a name are no answers, nor are topics; of equal groups the first is
//! taken, and of equal ends the one with the better path.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};

use super::{Candidate, Conclusion, Reasoner};
use crate::error::{Error, Result};
use crate::organize::{Chain, Chains, ChainsConfig, Context, Form};
use crate::question::Question;

/// Settings of [`ChainEnds`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainEndsConfig {
    /// κ: an end is an answer if it scores this share of the best one of its chains.
    pub keep: f32,
}

impl Default for ChainEndsConfig {
    /// κ is ours: ReG lets a language model read the chains. `experiments/reg-chains.toml` compares it
    /// with 0.3 and 0.8.
    fn default() -> Self {
        Self { keep: 0.5 }
    }
}

impl ChainEndsConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.keep) {
            return Err(Error::Config("`reason.keep` must be from 0 to 1".into()));
        }
        Ok(())
    }
}

/// Answers with the ends of the best chains.
#[derive(Clone, Debug, Default)]
pub struct ChainEnds {
    config: ChainEndsConfig,
}

impl ChainEnds {
    /// A reasoner with these settings.
    pub fn new(config: ChainEndsConfig) -> Self {
        Self { config }
    }
}

/// Chains that agree, as answers.
struct Read {
    value: f32,
    /// Score, path score, and the answer with its paths.
    ends: Vec<(f32, f32, Candidate)>,
}

impl Reasoner for ChainEnds {
    fn reason(
        &self,
        _question: &Question,
        context: &Context,
        graph: &dyn Graph,
    ) -> Result<Conclusion> {
        let own;
        let groups = match context.form {
            Form::Chains => &context.chains,
            // the organizer writes something else; chains are made all the same
            Form::Triples => {
                own = Chains::new(ChainsConfig {
                    turns: true,
                    ..ChainsConfig::default()
                })
                .chains(&context.selection);
                &own
            }
        };
        let selection = &context.selection;
        let scores: HashMap<EntityId, f32> = selection.candidates.iter().copied().collect();
        let mut best: Option<Read> = None;
        for group in groups {
            let read = read(group, &scores, &selection.topics, graph)?;
            if read.value > best.as_ref().map_or(0.0, |best| best.value) {
                best = Some(read);
            }
        }
        let Some(Read { value, mut ends }) = best else {
            return Ok(Conclusion {
                reason: Some("no chain from a topic leads to an answer".into()),
                ..Conclusion::default()
            });
        };
        let top = ends.iter().map(|(score, ..)| *score).fold(0.0, f32::max);
        ends.retain(|(score, ..)| *score >= self.config.keep * top);
        ends.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.total_cmp(&a.1)));
        Ok(Conclusion {
            answers: (ends.into_iter())
                .map(|(score, _, answer)| Candidate {
                    confidence: (value * score / top).clamp(0.0, 1.0),
                    ..answer
                })
                .collect(),
            ..Conclusion::default()
        })
    }
}

fn read(
    group: &[Chain],
    scores: &HashMap<EntityId, f32>,
    topics: &[EntityId],
    graph: &dyn Graph,
) -> Result<Read> {
    let mut ends: Vec<(f32, f32, Candidate)> = Vec::new();
    let mut places: HashMap<EntityId, usize> = HashMap::new();
    let mut doubt = 1.0;
    for chain in group {
        let mut top = 0.0f32;
        for path in &chain.paths {
            let entity = path.end();
            if topics.contains(&entity) || !graph.is_named(entity)? {
                continue;
            }
            let score = match scores.get(&entity) {
                Some(score) => *score,
                // a retriever that scores candidates has an opinion of those it leaves out
                None if scores.is_empty() => path.score,
                None => 0.0,
            };
            if score <= 0.0 {
                continue;
            }
            top = top.max(score);
            match places.get(&entity) {
                Some(place) => ends[*place].2.path.extend(&path.triples),
                None => {
                    let candidate = Candidate {
                        entity,
                        confidence: 0.0,
                        path: path.triples.clone(),
                    };
                    places.insert(entity, ends.len());
                    ends.push((score, path.score, candidate));
                }
            }
        }
        doubt *= 1.0 - (chain.score() * top).clamp(0.0, 1.0).sqrt();
    }
    Ok(Read {
        value: 1.0 - doubt,
        ends,
    })
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::*;
    use crate::organize::Organizer;
    use crate::select::Selection;

    fn answers(
        graph: &MemoryGraph,
        topics: &[&str],
        scores: &[f32],
        candidates: &[(&str, f32)],
    ) -> Vec<(String, f32, Vec<usize>)> {
        let named = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let selection = Selection {
            triples: graph.triples().zip(scores.iter().copied()).collect(),
            topics: topics.iter().map(|name| named(name)).collect(),
            candidates: candidates.iter().map(|&(n, s)| (named(n), s)).collect(),
            ..Selection::default()
        };
        let question = Question::new("?");
        let context = Chains::default()
            .organize(&question, &selection, graph)
            .unwrap();
        let done = ChainEnds::default()
            .reason(&question, &context, graph)
            .unwrap();
        assert_eq!(done.answers.is_empty(), done.reason.is_some());
        (done.answers.into_iter())
            .map(|c| {
                let label = graph.entity_label(c.entity).unwrap().into_owned();
                (label, c.confidence, c.path)
            })
            .collect()
    }

    #[test]
    fn the_ends_of_the_best_chain_are_the_answers() {
        let graph = MemoryGraph::from_names([
            ("a", "r", "b"),    // 0
            ("a", "u", "m.0x"), // 1
            ("b", "s", "c"),    // 2
            ("b", "s", "d"),    // 3
            ("b", "s", "e"),    // 4
        ]);
        let scores = [0.64, 0.9, 1.0, 0.81, 0.2];
        let given = [
            ("b", 0.1),
            ("c", 0.8),
            ("d", 0.5),
            ("e", 0.3),
            ("m.0x", 1.0),
        ];
        let found = answers(&graph, &["a"], &scores, &given);
        // chain a-b-{c, d, e}: s = √(0.64 · 1), v = √(0.8 · 0.8); 0.3 is below half of 0.8
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["c", "d"]);
        assert!((found[0].1 - 0.8).abs() < 1e-6 && (found[1].1 - 0.5).abs() < 1e-6);
        assert_eq!(found[1].2, [0, 3]);
        // without candidates the paths decide: √(0.64 · 0.2) is below half of 0.8, √(0.64 · 0.81) not
        let found = answers(&graph, &["a"], &scores, &[]);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn chains_of_two_topics_that_agree_outweigh_a_better_one() {
        let graph = MemoryGraph::from_names([
            ("a", "r", "x"), // 0
            ("a", "r", "y"), // 1
            ("a", "t", "z"), // 2
            ("b", "s", "x"), // 3
        ]);
        let found = answers(
            &graph,
            &["a", "b"],
            &[0.49, 0.49, 0.64, 0.49],
            &[("x", 0.49), ("y", 0.49), ("z", 0.64)],
        );
        // 1 − (1 − 0.49)² = 0.7399 > 0.64; y is no common end
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "x");
        assert!((found[0].1 - 0.7399).abs() < 1e-4);
        assert_eq!(found[0].2, [0, 3]);
        assert!(answers(&graph, &["x"], &[0.0; 4], &[]).is_empty());
    }
}
