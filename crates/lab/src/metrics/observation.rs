//! What a system did with one question, as far as it can be seen from outside.

use std::collections::BTreeMap;

use wherefore::Answer;
use wherefore::answer::LlmUse;

use super::rationale::ShownTriple;
use super::retrieval::RecallAtK;
use crate::questions::Name;

/// One predicted answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PredictedAnswer {
    /// What it is called; the entity's id, where known, is an alias.
    pub name: Name,
    /// How sure the system is; higher is better.
    pub score: Option<f32>,
}

impl PredictedAnswer {
    /// An answer without a score.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into().into(),
            score: None,
        }
    }
}

/// What a system did with one question. What stays empty or `None` is not scored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The answers, best first.
    pub answers: Vec<PredictedAnswer>,
    /// The answer in prose.
    pub text: Option<String>,
    /// Recall of the retrieved triples at each k of the options, from
    /// [`recall_at`](super::recall_at); empty where nothing is known of the retrieval.
    pub retrieval: Vec<RecallAtK>,
    /// The triples given as the reason for the answers.
    pub rationale: Option<Vec<ShownTriple>>,
    /// Generated logical forms, best first.
    pub forms: Option<Vec<String>>,
    /// The entities that the question was linked to.
    pub linked: Option<Vec<PredictedAnswer>>,
    /// Milliseconds by stage.
    pub timings_ms: BTreeMap<String, f64>,
    /// What language models cost.
    pub llm: LlmUse,
}

impl Observation {
    /// Whether there is an answer at all.
    pub fn is_answered(&self) -> bool {
        self.answers.iter().any(|a| !a.name.name.trim().is_empty())
    }
}

/// Our own answers; retrieval is known only to those who saw the scores.
impl From<&Answer> for Observation {
    fn from(answer: &Answer) -> Self {
        let mut shown: Vec<usize> = answer
            .answers
            .iter()
            .flat_map(|a| a.rationale.iter().copied())
            .collect();
        shown.sort_unstable();
        shown.dedup();
        Observation {
            answers: answer
                .answers
                .iter()
                .map(|a| PredictedAnswer {
                    name: Name::with_id(&a.name, &a.id),
                    score: Some(a.confidence),
                })
                .collect(),
            text: answer.text.clone(),
            retrieval: Vec::new(),
            rationale: Some(
                shown
                    .into_iter()
                    .filter_map(|i| answer.evidence.get(i))
                    .map(|e| ShownTriple {
                        names: [e.head.clone(), e.relation.clone(), e.tail.clone()],
                        ids: Some(e.ids.clone()),
                    })
                    .collect(),
            ),
            forms: answer.logical_form.clone().map(|form| vec![form]),
            linked: Some(
                answer
                    .links
                    .iter()
                    .map(|l| PredictedAnswer {
                        name: Name::with_id(&l.name, &l.id),
                        score: Some(l.score),
                    })
                    .collect(),
            ),
            timings_ms: answer.timings_ms.clone(),
            llm: answer.llm,
        }
    }
}

#[cfg(test)]
mod tests {
    use wherefore::answer::{AnswerEntity, Evidence};

    use super::*;

    #[test]
    fn our_answers_are_observed_with_their_rationale() {
        let evidence = |tail: &str| Evidence {
            tail: tail.into(),
            ..Evidence::default()
        };
        let entity = |name: &str, rationale: &[usize]| AnswerEntity {
            name: name.into(),
            id: format!("id {name}"),
            confidence: 0.5,
            rationale: rationale.to_vec(),
            ..AnswerEntity::default()
        };
        let answer = Answer {
            // 9 points outside the evidence and is left out
            answers: vec![entity("a", &[2, 0]), entity("b", &[0, 9])],
            evidence: vec![evidence("x"), evidence("y"), evidence("z")],
            ..Answer::default()
        };
        let observed = Observation::from(&answer);
        assert!(observed.is_answered());
        assert_eq!(observed.answers[1].name, Name::with_id("b", "id b"));
        let tails: Vec<_> = observed
            .rationale
            .iter()
            .flatten()
            .map(|t| t.names[2].as_str())
            .collect();
        assert_eq!(tails, ["x", "z"]);
        assert!(!Observation::from(&Answer::default()).is_answered());
    }
}
