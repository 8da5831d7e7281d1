//! Questions answered through a SPARQL service give the answers of the store.
//!
//! `.ci/virtuoso` and `.ci/oxigraph` start a service with MetaQA's graph and run this; it needs
//! `WHEREFORE_SERVICE` (the address), `WHEREFORE_SERVICE_ENGINE` (what answers there),
//! `WHEREFORE_SERVICE_NT` (what was loaded there) and the benchmark's questions. Without them it
//! says what it skipped.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wherefore::config::RetrieverConfig;
use wherefore::logic::{self, Form, Moment, Plan, RunLimits};
use wherefore::{Method, PipelineConfig, Question};
use wherefore_graph::{
    Engine, Graph, Input, LoadOptions, Service, ServiceConfig, Store, index_labels, load,
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
    times: Vec<Duration>,
}

impl Answered {
    /// Median and 95th percentile of some of the questions, in milliseconds.
    fn percentiles(&self, of: std::ops::Range<usize>) -> String {
        let mut times: Vec<f64> = self.times[of]
            .iter()
            .map(|t| t.as_secs_f64() * 1e3)
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        format!("{:.0} / {:.0} ms", at(0.5), at(0.95))
    }
}

fn ask<'g>(
    questions: &[Question],
    method: Method,
    graph: &mut dyn FnMut(usize) -> &'g dyn Graph,
) -> Answered {
    let mut config = PipelineConfig::of(method);
    // answers that depend on how busy the machine is cannot be compared
    if let RetrieverConfig::Read(read) = &mut config.retrieve {
        read.time_limit_ms = 600_000;
    }
    let pipeline = config.build().unwrap();
    // what is computed once for a graph is not a question's time
    pipeline.answer(&questions[0], graph(0), &mut ()).unwrap();
    let mut asked = Answered {
        answers: Vec::new(),
        times: Vec::new(),
    };
    for (i, question) in questions.iter().enumerate() {
        let graph = graph(i);
        let start = Instant::now();
        let answer = pipeline.answer(question, graph, &mut ()).unwrap();
        asked.times.push(start.elapsed());
        let ids = answer.answers.into_iter().map(|a| a.id);
        asked.answers.push(ids.collect());
    }
    asked
}

/// Forms about what the questions are about.
fn forms(store: &Store) -> Vec<Form> {
    let gold = questions::read(&data().join("metaqa/1-hop/qa_test.txt"), None).unwrap();
    let topics = gold.iter().step_by(gold.len() / 40).take(40);
    let mut forms: Vec<Form> = topics
        .flat_map(|question| {
            let topic = &question.topics[0].name;
            [
                format!("(JOIN (R directed_by) (JOIN starred_actors [{topic}]))"),
                format!("(AND (JOIN directed_by [{topic}]) (JOIN has_genre [Drama]))"),
                format!(
                    "(COUNT (OR (JOIN (R starred_actors) [{topic}]) (JOIN written_by [{topic}])))"
                ),
            ]
        })
        .filter_map(|text| text.parse().ok())
        .collect();
    let now = Moment::parse("2015-08-10").unwrap();
    // a name that the graph has not, or that a form cannot hold, makes no form that runs
    forms.retain(|form| Plan::new(form, store, now).is_ok_and(|plan| plan.missing().is_empty()));
    forms
}

fn outcome(form: &Form, graph: &dyn Graph) -> BTreeSet<String> {
    let now = Moment::parse("2015-08-10").unwrap();
    let plan = Plan::new(form, graph, now).unwrap();
    let found = logic::run(&plan, graph, &RunLimits::default()).unwrap();
    let entities = found.entities().iter();
    entities
        .map(|e| format!("{:?}", graph.entity_term(*e).unwrap()))
        .collect()
}

/// Logical forms run at the service and come to what they come to on the store. Tells how fast.
fn hold_forms(store: &Store, config: &ServiceConfig) -> String {
    let forms = forms(store);
    let service = Service::open(config.clone()).unwrap();
    let start = Instant::now();
    let ours: Vec<_> = forms.iter().map(|form| outcome(form, store)).collect();
    let here = start.elapsed();
    let (start, before) = (Instant::now(), service.requests());
    let theirs: Vec<_> = forms.iter().map(|form| outcome(form, &service)).collect();
    let per = |time: Duration| time.as_secs_f64() * 1e3 / forms.len() as f64;
    let told = format!(
        "{} forms, {} with answers: store {:.1} ms, service {:.1} ms and {:.1} queries a form",
        forms.len(),
        ours.iter().filter(|answers| !answers.is_empty()).count(),
        per(here),
        per(start.elapsed()),
        (service.requests() - before) as f64 / forms.len() as f64
    );
    for ((form, ours), theirs) in forms.iter().zip(&ours).zip(&theirs) {
        assert_eq!(ours, theirs, "{form}");
    }
    told
}

#[test]
fn a_service_answers_as_the_store_does() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(url), Some(nt)) = (
        variable("WHEREFORE_SERVICE"),
        variable("WHEREFORE_SERVICE_NT"),
    ) else {
        println!("skipped: questions through a service (`.ci/virtuoso`, `.ci/oxigraph` start one)");
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
    config.engine = variable("WHEREFORE_SERVICE_ENGINE").map_or(Engine::Standard, |name| {
        serde_json::from_value(name.into()).expect("an engine that a service file may name")
    });
    let without = match config.engine {
        Engine::Oxigraph | Engine::Standard => "exact labels",
        _ => "full text",
    };
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
    println!("{}", hold_forms(&store, &indexed));
    // a process for each question: nothing is kept from the ones before
    let fresh = variable("WHEREFORE_SERVICE_FRESH").is_some();
    for method in [Method::Read, Method::Similarity] {
        let ours = ask(&questions, method, &mut |_| &store);
        let answered = ours.answers.iter().filter(|a| !a.is_empty()).count();
        let all = questions.len();
        println!(
            "{method}: store: {}, {answered} of {all} answered",
            ours.percentiles(0..all)
        );
        for (name, config) in [("label index", &indexed), (without, &config)] {
            let services: Vec<Service> = (0..if fresh { all } else { 1 })
                .map(|_| Service::open(config.clone()).unwrap())
                .collect();
            let of = |i: usize| &services[i % services.len()];
            let opened: Vec<(u64, u64)> = (services.iter())
                .map(|s| (s.requests(), s.rounds()))
                .collect();
            let theirs = ask(&questions, method, &mut |i| of(i));
            let sum = |count: &dyn Fn(&Service, (u64, u64)) -> u64| {
                let each = services.iter().zip(&opened);
                each.map(|(service, before)| count(service, *before))
                    .sum::<u64>() as f64
                    / all as f64
            };
            let same = (ours.answers.iter().zip(&theirs.answers))
                .filter(|(a, b)| a == b)
                .count();
            println!(
                "{method}: service with {name}: {} in the median and 95th percentile, {:.1} requests in {:.1} \
                 rounds a question, {same} of {all} answers the same",
                theirs.percentiles(0..all),
                sum(&|service, before| service.requests() - before.0),
                sum(&|service, before| service.rounds() - before.1),
            );
            for hops in 0..3 {
                let of_hops = theirs.percentiles(hops * EACH..(hops + 1) * EACH);
                println!("  {} hops: {of_hops}", hops + 1);
            }
            for (i, question) in questions.iter().enumerate() {
                if ours.answers[i] != theirs.answers[i] {
                    println!("  differs: {}", question.text);
                }
            }
            if name == "label index" {
                assert_eq!(same, all, "{method}");
            }
        }
    }
}
