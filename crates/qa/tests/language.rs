//! A pipeline with a language model that is wrong in every way it can be: what it says is checked
//! against the graph, whatever it and the retriever claim.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;

use wherefore::answer::Status;
use wherefore::graph::{EntityId, Graph, NameMatch, Subgraph, Triple, toy};
use wherefore::link::Link;
use wherefore::model::language::Scripted;
use wherefore::retrieve::{Retriever, ScoredTriples};
use wherefore::verify::{Ungrounded, verify};
use wherefore::{Answer, PipelineConfig, Question, Result};

const MASCOT: &str = "Who is the mascot of the San Francisco Giants?";

/// Finds one true triple, and one that nobody stated.
struct Liar;

fn entity(graph: &dyn Graph, name: &str) -> EntityId {
    graph.entities_named(name, NameMatch::Exact).unwrap()[0]
}

impl Retriever for Liar {
    fn retrieve(
        &self,
        _question: &Question,
        _links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let giants = entity(graph, "San Francisco Giants");
        let coach = entity(graph, "Bruce Bochy");
        let edges = graph.outgoing(giants)?;
        let edge = edges[0];
        let triples = [
            Triple {
                head: giants,
                relation: edge.relation,
                tail: edge.entity,
            },
            Triple {
                head: coach,
                relation: edge.relation,
                tail: giants,
            },
        ];
        Ok(ScoredTriples {
            subgraph: Subgraph::from_triples(&[giants], &triples),
            topics: vec![EntityId(0)],
            triple_scores: vec![0.9, 0.8],
            entity_scores: vec![0.0, 0.5, 0.5],
            ..ScoredTriples::default()
        })
    }
}

fn answered(says: &str, planted: bool, ungrounded: Ungrounded) -> Answer {
    let mut config = PipelineConfig {
        ungrounded,
        ..PipelineConfig::default()
    };
    config.set_llm("script:given");
    let script = serde_json::json!({ "text": says }).to_string();
    let model = Arc::new(Scripted::parse(&script, "given").unwrap());
    let mut pipeline = config.build_with(Some(model)).unwrap();
    if planted {
        pipeline.retriever = Box::new(Liar);
    }
    pipeline
        .answer(&Question::new(MASCOT), &toy::graph(), &mut ())
        .unwrap()
}

#[test]
fn true_names_are_answers_with_a_proof() {
    let answer = answered("So it is.\nans: Lou Seal", false, Ungrounded::Withhold);
    assert_eq!(answer.answers[0].name, "Lou Seal");
    assert_eq!(answer.text.as_deref(), Some("So it is."));
    assert!(answer.evidence.iter().all(|e| e.verified));
    assert!(verify(&answer, &toy::graph()).unwrap().holds);
}

#[test]
fn a_planted_triple_proves_nothing() {
    let answer = answered("ans: Bruce Bochy", true, Ungrounded::Withhold);
    let planted = answer.evidence.iter().find(|e| e.head == "Bruce Bochy");
    assert!(!planted.unwrap().verified);
    assert_eq!(answer.status, Status::Abstained);
    assert_eq!(answer.withheld[0].name, "Bruce Bochy");
    assert!(answer.withheld[0].reason.contains("no verified triples"));

    // given all the same, it is marked, and a later check catches it
    let marked = answered("ans: Bruce Bochy", true, Ungrounded::Mark);
    assert!(marked.answers[0].ungrounded);
    assert!(!verify(&marked, &toy::graph()).unwrap().holds);
}

#[test]
fn a_planted_name_is_held_back() {
    for name in ["Evil Twin", "San Francisco Giants", "?1"] {
        let answer = answered(&format!("ans: {name}"), false, Ungrounded::Withhold);
        assert_eq!(answer.status, Status::Abstained, "{name}");
        assert_eq!(answer.withheld[0].name, name);
        assert_eq!(answer.text, None);
    }
}
