//! Answers without a language model: those that the retriever proves.
//!
//! ```text
//! answers    = the retriever's answers whose proof is in the evidence
//! rationale  = all paths of the proof, at most `max_paths`
//! confidence = the retriever's
//! ```
//!
//! What the proof says as a sentence is told as a note.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use wherefore_graph::{Graph, Triple};

use super::{Candidate, Conclusion, Reasoner};
use crate::error::Result;
use crate::organize::Context;
use crate::question::Question;

/// Settings of [`Rationale`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RationaleConfig {
    /// Most paths that are given for one answer.
    pub max_paths: usize,
}

impl Default for RationaleConfig {
    fn default() -> Self {
        Self { max_paths: 20 }
    }
}

/// Answers with the retriever's proofs.
#[derive(Clone, Debug, Default)]
pub struct Rationale {
    config: RationaleConfig,
}

impl Rationale {
    /// A reasoner with these settings.
    pub fn new(config: RationaleConfig) -> Self {
        Self { config }
    }
}

impl Reasoner for Rationale {
    fn reason(
        &self,
        _question: &Question,
        context: &Context,
        _graph: &dyn Graph,
    ) -> Result<Conclusion> {
        let selection = &context.selection;
        let Some(rationales) = &selection.rationales else {
            return Ok(Conclusion {
                reason: Some("the retriever proves nothing".into()),
                ..Conclusion::default()
            });
        };
        let triples = selection.triples.iter().enumerate();
        let place: HashMap<Triple, usize> = triples.map(|(i, (t, _))| (*t, i)).collect();
        let mut answers = Vec::with_capacity(rationales.answers.len());
        for answer in &rationales.answers {
            let mut path = Vec::new();
            let mut given = 0;
            for one in &answer.paths {
                let places: Option<Vec<usize>> =
                    one.iter().map(|t| place.get(t).copied()).collect();
                if let Some(places) = places.filter(|_| given < self.config.max_paths) {
                    path.extend(places);
                    given += 1;
                }
            }
            answers.push(Candidate {
                entity: answer.entity,
                confidence: answer.confidence,
                path,
            });
        }
        Ok(Conclusion {
            reason: answers
                .is_empty()
                .then(|| "no entity near the topic looks like an answer".into()),
            answers,
            notes: match rationales.sentence.as_str() {
                "" => Vec::new(),
                sentence => vec![format!("read as `{sentence}`")],
            },
            ..Conclusion::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::EntityId;

    use super::*;
    use crate::retrieve::{Rationale as Proof, Rationales};
    use crate::select::Selection;

    #[test]
    fn proofs_become_paths_and_what_is_not_in_the_evidence_is_left_out() {
        let [a, b, c] = [(0, 0, 2), (1, 1, 2), (0, 0, 3)].map(|(h, r, t)| Triple::new(h, r, t));
        let context = Context {
            selection: Selection {
                triples: vec![(b, 0.9), (a, 0.9)],
                rationales: Some(Rationales {
                    sentence: "what is it".into(),
                    answers: vec![
                        Proof {
                            entity: EntityId(2),
                            confidence: 0.8,
                            paths: vec![vec![a], vec![b], vec![c]],
                        },
                        Proof {
                            entity: EntityId(3),
                            confidence: 0.7,
                            paths: vec![vec![c]],
                        },
                    ],
                }),
                ..Selection::default()
            },
            ..Context::default()
        };
        let graph = wherefore_graph::toy::graph();
        let reason = |max_paths, context: &Context| {
            Rationale::new(RationaleConfig { max_paths })
                .reason(&Question::new("?"), context, &graph)
                .unwrap()
        };
        let said = reason(20, &context);
        assert_eq!(said.answers[0].path, [1, 0]);
        assert!(said.answers[1].path.is_empty());
        assert_eq!(said.notes, ["read as `what is it`"]);
        assert_eq!(reason(1, &context).answers[0].path, [1]);
        assert!(reason(1, &Context::default()).reason.is_some());
    }
}
