//! Logical forms: what parses is printed, read back as the same, said in English, written as
//! SPARQL that parses, and run within its time.
#![no_main]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use libfuzzer_sys::{Corpus, fuzz_target};
use tempfile::TempDir;
use wherefore::logic::{Form, Moment, Notation, Plan, RunLimits, run};
use wherefore_fuzz::{scratch, small_graph};
use wherefore_graph::sparql::{self, SparqlOptions};
use wherefore_graph::{Error, Graph, MemoryGraph, Store, toy};

const TIME: Duration = Duration::from_secs(2);
/// What a busy machine is given on top.
const PATIENCE: Duration = Duration::from_secs(10);

static TOY: LazyLock<MemoryGraph> = LazyLock::new(toy::graph);
static SMALL: LazyLock<(TempDir, Store)> = LazyLock::new(|| {
    let scratch = scratch();
    let store = Store::open(small_graph(&scratch)).expect("a whole graph is opened");
    (scratch, store)
});

fuzz_target!(|text: &str| -> Corpus {
    let Ok(form) = text.parse::<Form>() else {
        return Corpus::Keep;
    };
    for notation in [Notation::Plain, Notation::Named] {
        let written = form.written(notation);
        // brackets may make it longer than what is read
        if let Ok(read) = written.parse::<Form>() {
            assert_eq!(read, form, "{written}");
        } else {
            assert!(written.len() > text.len(), "{written}");
        }
    }
    form.written(Notation::Bracketed);
    assert_eq!(form.normal(), form.normal().normal(), "{form}");
    for graph in [&*TOY as &dyn Graph, &SMALL.1] {
        let start = Instant::now();
        let _ = form.english(graph);
        let Ok(plan) = Plan::new(&form, graph, Moment::from_seconds(0)) else {
            continue;
        };
        let limits = RunLimits {
            time: TIME,
            ..RunLimits::default()
        };
        if let Ok(outcome) = run(&plan, graph, &limits) {
            let _ = outcome.claims(graph);
            outcome.computed();
        }
        let took = start.elapsed();
        assert!(took < TIME + PATIENCE, "it took {took:?}");
        if let (Ok(query), Some(store)) = (plan.query(), graph.store()) {
            let options = SparqlOptions {
                timeout: Some(Duration::from_millis(1)),
                ..SparqlOptions::default()
            };
            let asked = sparql::query(store, &query, &options, |_| Ok(()));
            if let Err(Error::SparqlSyntax(reason)) = asked {
                panic!("{form} is written as a query that does not parse: {reason}\n{query}");
            }
        }
    }
    Corpus::Keep
});
