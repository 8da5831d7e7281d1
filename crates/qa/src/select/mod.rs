//! Stage four: what the reasoner will read.

mod nucleus;
mod threshold;
mod top_k;

use std::collections::HashSet;

use wherefore_graph::{EntityId, Triple};

use crate::error::Result;
use crate::retrieve::{FormAnswer, Plan, Rationales, ScoredTriples};

pub use nucleus::{Nucleus, NucleusConfig};
pub use threshold::{Threshold, ThresholdConfig};
pub use top_k::{TopK, TopKConfig};

/// The chosen evidence, best first, in the ids of the whole graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The triples with their scores, best first.
    pub triples: Vec<(Triple, f32)>,
    /// The entities the question is about.
    pub topics: Vec<EntityId>,
    /// Entities with the score that the retriever gave them as answers, best first. Topics are
    /// not among them.
    pub candidates: Vec<(EntityId, f32)>,
    /// The retriever's plans, best first.
    pub plans: Vec<Plan>,
    /// The retriever's answers with their proofs.
    pub rationales: Option<Rationales>,
    /// The logical form that the retriever ran.
    pub form: Option<FormAnswer>,
}

impl Selection {
    /// The selection of the given triples of a subgraph, best first: what every selector ends
    /// with. Candidates are the ends of these triples that are no topics and score above 0.
    pub fn of(scored: &ScoredTriples, triples: &[usize]) -> Self {
        let subgraph = &scored.subgraph;
        let mut seen: HashSet<EntityId> = scored.topics.iter().copied().collect();
        let mut candidates = Vec::new();
        for &i in triples {
            let t = subgraph.triples()[i];
            for end in [t.head, t.tail] {
                let score = scored.entity_scores[end.index()];
                if seen.insert(end) && score > 0.0 {
                    candidates.push((subgraph.entity(end), score));
                }
            }
        }
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
        Self {
            triples: triples
                .iter()
                .map(|&i| (subgraph.triple(i), scored.triple_scores[i]))
                .collect(),
            topics: scored.topics.iter().map(|&t| subgraph.entity(t)).collect(),
            candidates,
            plans: scored.plans.clone(),
            rationales: scored.rationales.clone(),
            form: scored.form.clone(),
        }
    }
}

/// The triples that score above `least`, best first. Equal scores keep the order of the subgraph,
/// which lists what is near the topics first.
fn ranked(scored: &ScoredTriples, least: f32) -> Vec<usize> {
    let scores = &scored.triple_scores;
    let mut best: Vec<usize> = (0..scores.len()).filter(|&i| scores[i] > least).collect();
    best.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    best
}

/// Chooses what the reasoner will read, best first.
///
/// An empty selection is legal: nothing was good enough, and the answer must say so.
pub trait Selector: Send + Sync {
    /// Chooses among the scored triples.
    fn select(&self, scored: &ScoredTriples) -> Result<Selection>;
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{EntityId, Subgraph, Triple};

    use super::*;

    /// A topic with one triple for each score.
    pub(super) fn star(scores: &[f32]) -> ScoredTriples {
        let triples: Vec<Triple> = (0..scores.len() as u32)
            .map(|i| Triple::new(0, 0, i + 1))
            .collect();
        ScoredTriples {
            subgraph: Subgraph::from_triples(&[EntityId(0)], &triples),
            topics: vec![EntityId(0)],
            triple_scores: scores.to_vec(),
            entity_scores: vec![0.0; scores.len() + 1],
            ..ScoredTriples::default()
        }
    }
}
