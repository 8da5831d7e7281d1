//! Where a question was lost on its way through the pipeline.
//!
//! ```text
//! question ─► linked? ─► answer in the subgraph? ─► in the evidence? ─► among the answers?
//! ```
//!
//! The first no is the bucket. Questions that the benchmark or the graph cannot answer have
//! buckets of their own, so that nobody looks for a fault where there is none.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use wherefore::graph::EntityId;
use wherefore::graph::names::normalise;
use wherefore::{Answer, Stage};

use crate::questions::{GoldQuestion, Resolved};

/// How a question ended.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// At least one answer is right.
    Right,
    /// The right answer is in the evidence, and was not chosen.
    NotChosen,
    /// It is in the subgraph, and was not selected as evidence.
    NotRetrieved,
    /// It is in the graph, and not in the subgraph.
    OutsideSubgraph,
    /// No link leads to a gold topic.
    NotLinked,
    /// No gold answer is in the graph.
    NotInGraph,
    /// The benchmark knows no answer.
    #[default]
    NoGold,
}

impl Outcome {
    /// Every outcome, best first.
    pub const ALL: [Outcome; 7] = [
        Outcome::Right,
        Outcome::NotChosen,
        Outcome::NotRetrieved,
        Outcome::OutsideSubgraph,
        Outcome::NotLinked,
        Outcome::NotInGraph,
        Outcome::NoGold,
    ];

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Outcome::Right => "answered right",
            Outcome::NotChosen => "retrieved, not chosen",
            Outcome::NotRetrieved => "in the subgraph, not retrieved",
            Outcome::OutsideSubgraph => "outside the subgraph",
            Outcome::NotLinked => "topic not linked",
            Outcome::NotInGraph => "answer not in the graph",
            Outcome::NoGold => "no gold answer",
        }
    }
}

/// Watches a question pass and keeps how far its answer came.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    linked: bool,
    in_subgraph: bool,
    in_evidence: bool,
}

impl Trail {
    pub(crate) fn see(&mut self, stage: Stage<'_>, gold: &Resolved) {
        let answers: HashSet<EntityId> = gold.answer_entities().into_iter().collect();
        match stage {
            Stage::Linked(links) => {
                let topics = gold.topic_entities();
                self.linked = links
                    .iter()
                    .any(|link| topics.binary_search(&link.entity).is_ok());
            }
            Stage::Retrieved(scored) => {
                let entities = scored.subgraph.entities();
                self.in_subgraph = entities.iter().any(|e| answers.contains(e));
            }
            Stage::Selected(selection) => {
                self.in_evidence = selection
                    .triples
                    .iter()
                    .any(|(t, _)| answers.contains(&t.head) || answers.contains(&t.tail));
            }
            _ => {}
        }
    }

    pub(crate) fn outcome(
        &self,
        question: &GoldQuestion,
        gold: &Resolved,
        answer: &Answer,
    ) -> Outcome {
        if question.answers.is_empty() {
            return Outcome::NoGold;
        }
        let wanted: HashSet<String> = question
            .answers
            .iter()
            .flat_map(|a| a.all().map(normalise))
            .collect();
        let right = answer
            .answers
            .iter()
            .any(|a| wanted.contains(&normalise(&a.name)) || wanted.contains(&normalise(&a.id)));
        if right {
            Outcome::Right
        } else if gold.answers.iter().all(Vec::is_empty) {
            Outcome::NotInGraph
        } else if !self.linked && !question.topics.is_empty() {
            Outcome::NotLinked
        } else if !self.in_subgraph {
            Outcome::OutsideSubgraph
        } else if !self.in_evidence {
            Outcome::NotRetrieved
        } else {
            Outcome::NotChosen
        }
    }
}

#[cfg(test)]
mod tests {
    use wherefore::graph::toy;
    use wherefore::{Observer, PipelineConfig};

    use super::*;
    use crate::questions::resolve;

    struct Watch<'a>(Trail, &'a Resolved);

    impl Observer for Watch<'_> {
        fn stage(&mut self, stage: Stage<'_>) {
            self.0.see(stage, self.1);
        }
    }

    fn outcome(text: &str, topic: &str, gold: &[&str], config: &str) -> Outcome {
        let graph = toy::graph();
        let question = GoldQuestion {
            question: text.into(),
            topics: vec![topic.into()],
            answers: gold.iter().map(|&a| a.into()).collect(),
            ..GoldQuestion::default()
        };
        let resolved = resolve(&question, &graph).unwrap();
        let mut watch = Watch(Trail::default(), &resolved);
        let near = format!("retrieve = {{ kind = \"similarity\" }}\n{config}");
        let pipeline = PipelineConfig::from_toml(&near).unwrap().build().unwrap();
        let answer = pipeline
            .answer(&question.without_topics(), &graph, &mut watch)
            .unwrap();
        watch.0.outcome(&question, &resolved, &answer)
    }

    #[test]
    fn each_bucket_is_where_the_answer_was_lost() {
        let giants = "San Francisco Giants";
        let mascot = "who is the mascot of the San Francisco Giants";
        assert_eq!(outcome(mascot, giants, &["lou seal"], ""), Outcome::Right);
        assert_eq!(outcome(mascot, giants, &[], ""), Outcome::NoGold);
        assert_eq!(
            outcome(mascot, giants, &["Wembley"], ""),
            Outcome::NotInGraph
        );
        assert_eq!(
            outcome(mascot, "Sluggerrr", &["Kansas City"], ""),
            Outcome::NotLinked
        );
        // the Giants, their city and California are two hops; the United States are three
        assert_eq!(
            outcome(mascot, giants, &["United States"], ""),
            Outcome::OutsideSubgraph
        );
        // one triple of evidence is about the mascot
        let one = "select = { kind = \"top-k\", k = 1 }";
        assert_eq!(
            outcome(mascot, giants, &["Bruce Bochy"], one),
            Outcome::NotRetrieved
        );
        assert_eq!(outcome(mascot, giants, &[giants], one), Outcome::NotChosen);
    }
}
