//! How good a network is on the validation questions: by the code that answers.

use std::collections::BTreeMap;
use std::fmt;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use wherefore::model::qr_gat::Table;
use wherefore::model::scoring::{TripleNetwork, TripleScorer};

use super::examples::{Example, Examples, HEAD, POSITIVE, TAIL};
use super::trainer::above;
use crate::error::Result;
use crate::metrics::recall_at;

/// Recall on the validation questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValidationMetrics {
    /// The mean of triple recall at each k: what decides.
    pub score: f64,
    /// Triple recall by k.
    pub triple_recall: BTreeMap<usize, f64>,
    /// Answer recall by k.
    pub answer_recall: BTreeMap<usize, f64>,
    /// Share of questions whose best candidate is an answer, where the network tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_at_1: Option<f64>,
}

impl ValidationMetrics {
    /// Whether a network judged so is to be kept instead of one judged `other`.
    pub(super) fn is_better_than(&self, other: &Self) -> bool {
        let figures = |of: &Self| [of.score, of.hit_at_1.unwrap_or_default()];
        above(figures(self), figures(other))
    }
}

impl fmt::Display for ValidationMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recalls = |of: &BTreeMap<usize, f64>| -> String {
            let each: Vec<String> = of.iter().map(|(k, r)| format!("{r:.3}@{k}")).collect();
            each.join(" ")
        };
        write!(
            f,
            "triple recall {}, answer recall {}",
            recalls(&self.triple_recall),
            recalls(&self.answer_recall)
        )?;
        match self.hit_at_1 {
            Some(hit) => write!(f, ", Hit@1 {hit:.3}"),
            None => Ok(()),
        }
    }
}

/// The questions to validate by.
pub(super) struct Judge {
    examples: Vec<usize>,
    ks: Vec<usize>,
}

/// One question: recall of triples and of answers at each k, and whether the best candidate is an
/// answer.
type Look = (Vec<(f64, f64)>, Option<bool>);

impl Judge {
    pub(super) fn new(examples: Vec<usize>, ks: Vec<usize>) -> Self {
        Self { examples, ks }
    }

    pub(super) fn len(&self) -> usize {
        self.examples.len()
    }

    pub(super) fn look<N: TripleNetwork>(
        &self,
        network: &N,
        examples: &Examples,
        [questions, entities, relations]: [&[f32]; 3],
    ) -> Result<ValidationMetrics> {
        let dim = N::dim(network.sizes());
        let scored = || -> Result<Vec<Look>, wherefore::model::Error> {
            let scorer = network.scorer()?;
            let entities = scorer.entity_parts(&Table::new(entities, dim)?)?.to_f16();
            let relations = scorer
                .relation_parts(&Table::new(relations, dim)?)?
                .to_f16();
            let entities = Table::new(&entities, scorer.entity_width())?;
            let relations = Table::new(&relations, scorer.relation_width())?;
            self.examples
                .par_iter()
                .map_init(
                    <N::Scorer as TripleScorer>::Scratch::default,
                    |scratch, &index| {
                        let example = examples.get(index);
                        let topics = example.topic_flags();
                        let question = example.subgraph(&topics, questions, dim);
                        let scored = scorer.score(&question, &entities, &relations, scratch)?;
                        let first = scored.answers.map(|ends| best_end(&example, ends));
                        Ok((self.recall(&example, scored.triples), first))
                    },
                )
                .collect()
        };
        let looks = scored()?;
        let mean = |of: &dyn Fn(&Look) -> f64| {
            looks.iter().map(of).sum::<f64>() / looks.len().max(1) as f64
        };
        let by_k = |of: fn(&(f64, f64)) -> f64| -> BTreeMap<usize, f64> {
            let ks = self.ks.iter().enumerate();
            ks.map(|(i, &k)| (k, mean(&|(at, _)| of(&at[i])))).collect()
        };
        let triple_recall = by_k(|at| at.0);
        Ok(ValidationMetrics {
            score: triple_recall.values().sum::<f64>() / triple_recall.len().max(1) as f64,
            triple_recall,
            answer_recall: by_k(|at| at.1),
            hit_at_1: N::tells_answers(network.sizes())
                .then(|| mean(&|(_, first)| f64::from(u8::from(*first == Some(true))))),
        })
    }

    fn recall(&self, example: &Example<'_>, logits: &[f32]) -> Vec<(f64, f64)> {
        let mut ranked: Vec<([u32; 3], f32)> = (example.triples.iter().copied())
            .zip(logits.iter().copied())
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        let flagged = example.triples.iter().zip(example.flags);
        let positives: Vec<[u32; 3]> = (flagged.clone())
            .filter(|(_, flags)| **flags & POSITIVE != 0)
            .map(|(triple, _)| *triple)
            .collect();
        let mut answers: Vec<u32> = flagged
            .flat_map(|(triple, flags)| {
                let end = |bit: u32, at: usize| (flags & bit != 0).then_some(triple[at]);
                [end(HEAD, 0), end(TAIL, 2)]
            })
            .flatten()
            .collect();
        answers.sort_unstable();
        answers.dedup();
        let mut answers: Vec<Vec<u32>> = answers.into_iter().map(|a| vec![a]).collect();
        // gold answers that the neighbourhood does not hold are missed
        answers.resize(answers.len().max(example.answers), Vec::new());
        let ends = |t: &[u32; 3]| [t[0], t[2]];
        recall_at(&ranked, ends, &positives, &answers, &self.ks)
            .into_iter()
            .map(|at| {
                let first = |pair: Option<(f64, f64)>| pair.map_or(0.0, |(recall, _)| recall);
                (first(at.triples), first(at.answers))
            })
            .collect()
    }
}

/// Whether the end that looks most like an answer is one. Topics and nodes without a name are none.
fn best_end(example: &Example<'_>, [heads, tails]: [&[f32]; 2]) -> bool {
    let mut best = (f32::NEG_INFINITY, false);
    for (i, (triple, flags)) in example.triples.iter().zip(example.flags).enumerate() {
        for (end, logit, bit) in [(triple[0], heads[i], HEAD), (triple[2], tails[i], TAIL)] {
            let end = end as usize;
            if end >= example.topics && example.entities[end] != 0 && logit > best.0 {
                best = (logit, flags & bit != 0);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_candidates_decide_between_equal_recalls() {
        let judged = |score: f64, hit: f64| ValidationMetrics {
            score,
            hit_at_1: Some(hit),
            ..ValidationMetrics::default()
        };
        assert!(judged(0.8, 0.1).is_better_than(&judged(0.7, 0.9)));
        assert!(!judged(0.7, 0.9).is_better_than(&judged(0.8, 0.1)));
        assert!(judged(1.0, 0.9).is_better_than(&judged(1.0 + 1e-16, 0.7)));
        assert!(!judged(1.0, 0.9).is_better_than(&judged(1.0, 0.9)));
    }

    #[test]
    fn recall_and_first_candidate_have_their_hand_made_values() {
        let example = Example {
            question: 0,
            topics: 1,
            answers: 2,
            entities: &[5, 6, 0, 7],
            relations: &[0],
            // topic 0; answer 3; entity 2 has no name
            triples: &[[0, 0, 1], [0, 0, 2], [2, 0, 3]],
            flags: &[0, POSITIVE, POSITIVE | TAIL],
        };
        let validate = Judge::new(vec![0], vec![1, 2]);
        // best are the last, then the first: one of two positives, one of two answers
        assert_eq!(
            validate.recall(&example, &[1.0, 0.0, 2.0]),
            [(0.5, 0.5), (0.5, 0.5)]
        );
        assert_eq!(validate.recall(&example, &[0.0, 1.0, 2.0])[1], (1.0, 0.5));
        // the topic and the unnamed node score best, and do not count
        let heads = [9.0, 9.0, 9.0];
        assert!(best_end(&example, [&heads, &[0.0, 9.0, 1.0]]));
        assert!(!best_end(&example, [&heads, &[2.0, 9.0, 1.0]]));
    }
}
