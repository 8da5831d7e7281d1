//! Every method on one question over the toy graph: a new method is a new row. And the
//! zero-configuration method on a dozen questions.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};

use wherefore::answer::Status;
use wherefore::graph::toy;
use wherefore::method::FORMER_NAMES;
use wherefore::model::checkpoint::{self, Checkpointable, Description};
use wherefore::model::qr_gat::{Config, Network};
use wherefore::model::scoring::TripleNetwork;
use wherefore::model::tensor::Device;
use wherefore::model::{Random, distance_mlp, encode, gnn2r, pna, relation_plan};
use wherefore::{Answer, Method, PipelineConfig, Question};

/// The method's file in `configs/`.
fn file(method: Method) -> String {
    let name = method.name().replace('+', "-");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../configs/{name}.toml"));
    let read = std::fs::read_to_string(&path);
    read.map_err(|e| format!("{}: {e}", path.display()))
        .unwrap()
}

/// Methods that ask a language model.
fn with_model() -> impl Iterator<Item = Method> {
    Method::ALL
        .into_iter()
        .filter(|m| PipelineConfig::of(*m).asks_model())
}

/// Methods that need neither one nor, as `amar` does, its weights.
fn without_model() -> impl Iterator<Item = Method> {
    Method::ALL
        .into_iter()
        .filter(|m| *m != Method::Amar && !PipelineConfig::of(*m).asks_model())
}

fn ask(config: &PipelineConfig, question: &str) -> Answer {
    let answer = config
        .build()
        .unwrap()
        .answer(&Question::new(question), &toy::graph(), &mut ())
        .unwrap();
    for found in &answer.answers {
        assert!((0.0..=1.0).contains(&found.confidence));
        assert!(!found.rationale.is_empty());
        for &i in &found.rationale {
            assert!(answer.evidence[i].verified);
        }
    }
    answer
}

fn names(answer: &Answer) -> Vec<&str> {
    let mut names: Vec<&str> = answer.answers.iter().map(|a| a.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn every_method_answers_with_verified_evidence() {
    for method in without_model() {
        let mut config = PipelineConfig::from_toml(&file(method)).unwrap();
        let place = tempfile::tempdir().unwrap();
        // the reader has its weights
        let trained = !matches!(method, Method::Read | Method::Auto)
            && config
                .set_model(&untrained(method, &place.path().join("model")))
                .unwrap();
        let answer = ask(&config, "Who is the mascot of the San Francisco Giants?");
        assert_eq!(answer.status, Status::Answered, "{method}");
        // what a network says that has learned nothing is right only in form
        if !trained {
            assert_eq!(names(&answer), ["Lou Seal"], "{method}");
        }
    }
}

#[test]
fn methods_with_a_model_answer_what_the_evidence_proves_and_mark_the_rest() {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("script.jsonl");
    std::fs::write(&script, r#"{"text": "ans: Lou Seal"}"#).unwrap();
    for method in with_model() {
        let mut config = PipelineConfig::from_toml(&file(method)).unwrap();
        assert!(config.build().is_err(), "{method} needs a model");
        config.set_llm(format!("script:{}", script.display()));
        let question = Question::new("Who is the mascot of the San Francisco Giants?");
        let pipeline = config.build().unwrap();
        let answer = pipeline.answer(&question, &toy::graph(), &mut ()).unwrap();
        assert_eq!(names(&answer), ["Lou Seal"], "{method}");
        let alone = [Method::Llm, Method::LlmQd].contains(&method);
        assert_eq!(answer.answers[0].ungrounded, alone, "{method}");
        assert_eq!(answer.answers[0].rationale.is_empty(), alone, "{method}");
        let in_steps = [Method::KgRag, Method::KgRagRelations, Method::LlmQd].contains(&method);
        assert_eq!(answer.trace.is_some(), in_steps, "{method}");
    }
}

/// A checkpoint of a network that has learned nothing.
fn keep<N: Checkpointable>(
    folder: &Path,
    sizes: N::Sizes,
    new: fn(N::Sizes, &mut Random, &Device) -> wherefore::model::Result<N>,
) -> PathBuf {
    let network = new(sizes.clone(), &mut Random::new(7), &Device::Cpu).unwrap();
    let description = Description::of::<N>(sizes, "static", 7);
    checkpoint::save(folder, &description, &network, None).unwrap();
    folder.to_owned()
}

/// The one of the method's network.
fn untrained(method: Method, folder: &Path) -> PathBuf {
    let dim = encode::open("static").unwrap().dim();
    let hidden = 8;
    match method {
        Method::DistanceMlp => {
            let sizes = distance_mlp::Config {
                dim,
                hidden,
                answers: true,
                ..distance_mlp::Config::default()
            };
            keep(folder, sizes, distance_mlp::Network::untrained)
        }
        Method::Pna => {
            let sizes = pna::Config {
                dim,
                hidden,
                answers: true,
                relations: true,
                ..pna::Config::default()
            };
            keep(folder, sizes, pna::Network::untrained)
        }
        Method::RelationPlan => {
            let sizes = relation_plan::Config {
                dim,
                hidden,
                ..relation_plan::Config::default()
            };
            keep(folder, sizes, relation_plan::Network::new)
        }
        Method::Gnn2r => {
            let sizes = gnn2r::Config {
                dim,
                hidden,
                ..gnn2r::Config::default()
            };
            keep(folder, sizes, gnn2r::Network::new)
        }
        _ => {
            let sizes = Config {
                dim,
                hidden,
                answers: true,
                ..Config::default()
            };
            keep(folder, sizes, Network::new)
        }
    }
}

#[test]
fn the_files_state_what_the_names_mean() {
    for method in Method::ALL {
        let config = PipelineConfig::from_toml(&file(method)).unwrap();
        assert_eq!(config, PipelineConfig::of(method), "{method}");
    }
    for former in FORMER_NAMES {
        assert_eq!(former.parse::<Method>().unwrap(), Method::Read);
    }
}

#[test]
fn questions_of_one_and_two_hops_are_answered() {
    let config = PipelineConfig::default();
    for (question, answers) in [
        (
            "Which stadium do the San Francisco Giants play in?",
            &["Oracle Park"][..],
        ),
        (
            "Who is the mascot of the Kansas City Royals?",
            &["Sluggerrr"],
        ),
        ("Whose mascot is Lou Seal?", &["San Francisco Giants"]),
        ("Who coaches the San Francisco Giants?", &["Bruce Bochy"]),
        (
            "Which World Series did the San Francisco Giants win?",
            &[
                "World Series 2010",
                "World Series 2012",
                "World Series 2014",
            ],
        ),
        (
            "Which team lost the World Series 2014?",
            &["Kansas City Royals"],
        ),
        ("Where is Oracle Park located?", &["San Francisco"]),
        ("Where was Bruce Bochy born?", &["Landes de Bussac"]),
        // two hops
        (
            "Where was the coach of the San Francisco Giants born?",
            &["Landes de Bussac"],
        ),
        ("What is the capacity of Oracle Park?", &["41915"]),
        (
            "Which stadium does the team with the mascot Lou Seal play in?",
            &["Oracle Park"],
        ),
        (
            "Who coached the team that won the World Series 2010?",
            &["Bruce Bochy"],
        ),
        (
            "Where is the team whose mascot is Sluggerrr located?",
            &["Kansas City"],
        ),
        // two topics
        (
            "Which team won the World Series 2010 and is located in San Francisco?",
            &["San Francisco Giants"],
        ),
    ] {
        let answer = ask(&config, question);
        assert_eq!(names(&answer), answers, "{question}\n{answer:#?}");
    }
}
