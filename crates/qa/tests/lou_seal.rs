//! The prompt of QSRAG's figure 5, in our words, answered by a real model.
//!
//! Takes a minute, so it runs only where `WHEREFORE_GGUF` names a GGUF file, or a model of the
//! models folder such as `qwen2.5-coder-1.5b-instruct`; it says that it was skipped elsewhere.

use wherefore::graph::{MemoryGraph, NameMatch};
use wherefore::model::language;
use wherefore::organize::{Organizer, TripleLines, TripleLinesConfig};
use wherefore::reason::{Reasoner, SingleCall, SingleCallConfig};
use wherefore::select::Selection;
use wherefore::{Question, graph::Graph};

const FACTS: [(&str, &str, &str, f32); 10] = [
    (
        "Lou Seal",
        "sports.mascot.team",
        "San Francisco Giants",
        0.999_974,
    ),
    (
        "San Francisco Giants",
        "sports.sports_team.team_mascot",
        "Lou Seal",
        0.999_957,
    ),
    (
        "2014 World Series",
        "sports.sports_championship_event.champion",
        "San Francisco Giants",
        0.894_145,
    ),
    (
        "2012 World Series",
        "sports.sports_championship_event.champion",
        "San Francisco Giants",
        0.841_624,
    ),
    (
        "2010 World Series",
        "sports.sports_championship_event.champion",
        "San Francisco Giants",
        0.815_031,
    ),
    (
        "San Francisco Giants",
        "sports.sports_team.championships",
        "2014 World Series",
        0.732_167,
    ),
    (
        "San Francisco Giants",
        "sports.sports_team.championships",
        "2012 World Series",
        0.697_681,
    ),
    (
        "San Francisco Giants",
        "sports.sports_team.championships",
        "2010 World Series",
        0.666_419,
    ),
    (
        "San Francisco Giants",
        "time.participant.event",
        "2012 World Series",
        0.076_132,
    ),
    (
        "San Francisco Giants",
        "time.participant.event",
        "2010 World Series",
        0.070_322,
    ),
];

#[test]
fn the_figures_question_gets_its_three_answers() {
    let Ok(name) = std::env::var("WHEREFORE_GGUF") else {
        println!("skipped: WHEREFORE_GGUF names no model; see docs/language-models.md");
        return;
    };
    let model = language::open(&name).unwrap();
    let graph =
        MemoryGraph::from_names(FACTS.map(|(head, relation, tail, _)| (head, relation, tail)));
    let label = |id| graph.entity_label(id).unwrap().into_owned();
    let mut triples: Vec<_> = graph
        .triples()
        .map(|t| {
            let relation = graph.relation_term(t.relation).unwrap().to_string();
            let fact = FACTS.iter().find(|(head, r, tail, _)| {
                label(t.head) == *head && label(t.tail) == *tail && relation.contains(r)
            });
            (t, fact.unwrap().3)
        })
        .collect();
    triples.sort_by(|a, b| b.1.total_cmp(&a.1));
    let selection = Selection {
        triples,
        topics: graph.entities_named("Lou Seal", NameMatch::Exact).unwrap(),
        ..Selection::default()
    };
    let question =
        Question::new("What year did the team with mascot named Lou Seal win the World Series?");
    for confidence in [true, false] {
        let context = TripleLines::new(TripleLinesConfig { confidence })
            .organize(&question, &selection, &graph)
            .unwrap();
        let reasoner = SingleCall::new(SingleCallConfig::default(), model.clone());
        let conclusion = reasoner.reason(&question, &context, &graph).unwrap();
        println!("{conclusion:#?}");
        let mut names: Vec<String> = conclusion.answers.iter().map(|a| label(a.entity)).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "2010 World Series",
                "2012 World Series",
                "2014 World Series"
            ],
            "confidence {confidence}"
        );
    }
}
