//! Questions answered through a SPARQL service give the answers of the store.
//!
//! `.ci/virtuoso` starts Virtuoso with MetaQA's graph and runs this; it needs
//! `WHEREFORE_SERVICE` (the address), `WHEREFORE_SERVICE_NT` (what was loaded there) and the
//! benchmark's questions. Without them it says what it skipped.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wherefore::config::RetrieverConfig;
use wherefore::{PipelineConfig, Question};
use wherefore_graph::{
    Graph, Input, LoadOptions, Search, Service, ServiceConfig, Store, index_labels, load,
};
use wherefore_lab::questions;

/// Questions of each number of hops.
const EACH: usize = 100;

fn data() -> PathBuf {
    let given = std::env::var_os("WHEREFORE_DATA").map(PathBuf::from);
    given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"))
}

fn metaqa() -> Option<Vec<Question>> {
    let mut all = Vec::new();
    for hops in 1..=3 {
        let file = data().join(format!("metaqa/{hops}-hop/qa_test.txt"));
        let gold = questions::read(&file, None).ok()?;
        let step = gold.len() / EACH;
        // names are to be found in the question
        let some = gold.iter().step_by(step).take(EACH);
        all.extend(some.map(questions::GoldQuestion::without_topics));
    }
    Some(all)
}

struct Answered {
    answers: Vec<BTreeSet<String>>,
    time: Duration,
}

fn ask(questions: &[Question], graph: &dyn Graph, method: &str) -> Answered {
    let mut config = PipelineConfig::of_method(method).unwrap();
    // answers that depend on how busy the machine is cannot be compared
    if let RetrieverConfig::RelationWalk(walk) = &mut config.retrieve {
        walk.time_limit_ms = 600_000;
    }
    let pipeline = config.build().unwrap();
    // what is computed once for a graph is not a question's time
    pipeline.answer(&questions[0], graph, &mut ()).unwrap();
    let start = Instant::now();
    let answers = questions
        .iter()
        .map(|question| {
            let answer = pipeline.answer(question, graph, &mut ()).unwrap();
            answer.answers.into_iter().map(|a| a.id).collect()
        })
        .collect();
    Answered {
        answers,
        time: start.elapsed(),
    }
}

#[test]
fn a_service_answers_as_the_store_does() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(url), Some(nt)) = (
        variable("WHEREFORE_SERVICE"),
        variable("WHEREFORE_SERVICE_NT"),
    ) else {
        println!("skipped: questions through a service (`.ci/virtuoso` starts one)");
        return;
    };
    let Some(questions) = metaqa() else {
        println!(
            "skipped: questions through a service (no MetaQA in {})",
            data().display()
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph");
    load(
        &[Input::File(nt.into())],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )
    .unwrap();
    let store = Store::open(&graph).unwrap();
    let mut config = ServiceConfig::at(&url);
    config.graph = variable("WHEREFORE_SERVICE_GRAPH");
    config.search = Search::Virtuoso;
    let index = folder.path().join("labels");
    let start = Instant::now();
    let report = index_labels(config.clone(), &index, 1 << 28, false, &|_| {}, &|_| {}).unwrap();
    println!(
        "label index: {} labels in {} requests, {:.1} s",
        report.labels,
        report.requests,
        start.elapsed().as_secs_f64()
    );
    let indexed = ServiceConfig::read(&index.join("service.toml")).unwrap();
    for method in ["walk", "overlap"] {
        let per = |time: Duration| time.as_secs_f64() * 1e3 / questions.len() as f64;
        let ours = ask(&questions, &store, method);
        let answered = ours.answers.iter().filter(|a| !a.is_empty()).count();
        println!(
            "{method}: store: {:.1} ms a question, {answered} of {} answered",
            per(ours.time),
            questions.len()
        );
        for (name, config) in [("label index", &indexed), ("full text", &config)] {
            let service = Service::open(config.clone()).unwrap();
            let before = service.requests();
            let theirs = ask(&questions, &service, method);
            let sent = (service.requests() - before) as f64 / questions.len() as f64;
            let same = (ours.answers.iter().zip(&theirs.answers))
                .filter(|(a, b)| a == b)
                .count();
            println!(
                "{method}: service with {name}: {:.1} ms and {sent:.1} queries a question, {same} of \
                 {} answers the same",
                per(theirs.time),
                questions.len()
            );
            for (i, question) in questions.iter().enumerate() {
                if ours.answers[i] != theirs.answers[i] {
                    println!("  differs: {}", question.text);
                }
            }
            if name == "label index" {
                assert_eq!(same, questions.len(), "{method}");
            }
        }
    }
}
