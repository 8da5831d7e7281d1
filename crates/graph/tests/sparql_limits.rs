//! Limits of time and memory that hold whatever a query does.
//!
//! The program is its own worker: started with `worker BYTES` it answers queries, otherwise it runs
//! the tests. Hence no test harness.

#![expect(clippy::unwrap_used, reason = "a test may fail")]
#![expect(clippy::panic, reason = "a test may fail")]
#![expect(clippy::print_stdout, reason = "there is no harness that tells")]

use std::io::{self, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use wherefore_graph::sparql::{self, ResultFormat, SparqlOptions, Workers, run_worker};
use wherefore_graph::{Error, Input, LoadOptions, Store, load};

/// What a query may allocate here.
const MEMORY: u64 = 128 << 20;
/// What a query may take here.
const TIME: Duration = Duration::from_millis(300);
/// What is given on top on a busy machine before a limit counts as broken.
const PATIENCE: Duration = Duration::from_secs(8);

type Test = fn(&Graph);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, worker, bytes] = arguments.as_slice()
        && worker == "worker"
    {
        let bytes = bytes.parse().unwrap();
        let mut input = BufReader::new(io::stdin());
        run_worker(bytes, &mut input, io::stdout()).unwrap();
        return;
    }
    // what `cargo test` passes to every test program: a filter, and flags
    if arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    let tests: [(&str, Test); 6] = [
        (
            "answers_are_the_same_as_inside",
            answers_are_the_same_as_inside,
        ),
        ("heavy_queries_end_at_a_limit", heavy_queries_end_at_a_limit),
        ("heavy_queries_end_inside_too", heavy_queries_end_inside_too),
        (
            "random_heavy_queries_end_at_a_limit",
            random_heavy_queries_end_at_a_limit,
        ),
        (
            "a_query_that_nobody_wants_is_ended",
            a_query_that_nobody_wants_is_ended,
        ),
        (
            "an_answer_too_large_is_refused",
            an_answer_too_large_is_refused,
        ),
    ];
    let graph = Graph::new();
    let filter = arguments.iter().skip(1).find(|a| !a.starts_with('-'));
    let mut passed = 0;
    for (name, test) in tests {
        if filter.is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        let begun = Instant::now();
        test(&graph);
        println!(
            "test {name} ... ok ({:.1} s)",
            begun.elapsed().as_secs_f64()
        );
        passed += 1;
    }
    println!("\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

/// 60,000 triples, one of them with a long text.
struct Graph {
    _folder: tempfile::TempDir,
    store: Store,
    workers: Workers,
}

impl Graph {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("numbers.nt");
        let mut lines: Vec<String> = (0..60_000)
            .map(|i| format!("<e:{i}> <r:{}> <e:{}> .\n", i % 7, (i * 7919) % 60_000))
            .collect();
        lines.push(format!(
            "<e:long> <r:text> \"{}\" .\n",
            "ab ".repeat(300_000)
        ));
        std::fs::write(&file, lines.concat()).unwrap();
        let out = folder.path().join("graph");
        load(&[Input::File(file)], &out, &LoadOptions::default(), &|_| {}).unwrap();
        let program = std::env::current_exe().unwrap();
        Self {
            store: Store::open(&out).unwrap(),
            workers: Workers::new(program, ["worker"], MEMORY),
            _folder: folder,
        }
    }

    fn path(&self) -> &Path {
        self.store.path()
    }

    fn ask(&self, text: &str, limit: Duration) -> Result<Vec<u8>, Error> {
        let options = SparqlOptions {
            timeout: Some(limit),
            max_rows: Some(1000),
            max_bytes: Some(4 << 20),
        };
        let mut out = Vec::new();
        let format = ResultFormat::Json;
        let path = self.path();
        (self.workers).write(path, text, &options, format, &mut out, &|| true)?;
        Ok(out)
    }

    /// Asks, and sees that it ended in time, in a way that a limit ends it.
    fn ends(&self, text: &str) -> Result<Vec<u8>, Error> {
        let begun = Instant::now();
        let answer = self.ask(text, TIME);
        let took = begun.elapsed();
        assert!(took < TIME + PATIENCE, "{text} took {took:?}");
        if let Err(error) = &answer {
            let is_limit = matches!(
                error,
                Error::OutOfTime { .. }
                    | Error::OutOfMemory { .. }
                    | Error::AnswerTooLarge { .. }
                    | Error::SparqlRefused { .. }
                    | Error::SparqlEvaluation(_)
            );
            assert!(is_limit, "{text}: {error}");
        }
        answer
    }
}

/// Each ran past the time limit, or used up all memory, when queries ran inside the server.
fn heavy() -> Vec<String> {
    let all = "{ ?a ?p ?b . ?c ?q ?d }";
    let text = "<e:long> <r:text> ?t";
    let many = vec!["?t"; 1500].join(", ");
    let mut nested = "?t".to_owned();
    for _ in 0..12 {
        nested = format!("REPLACE({nested}, \".\", \"$0$0$0$0$0$0$0$0\")");
    }
    vec![
        format!("SELECT (MAX(STR(?a)) AS ?n) {all}"),
        format!("SELECT (MIN(CONCAT(STR(?a), STR(?d))) AS ?n) {all}"),
        format!("SELECT (GROUP_CONCAT(?b) AS ?n) {all}"),
        format!("SELECT (SUM(STRLEN(STR(?a))) AS ?n) {all}"),
        "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d MINUS { ?a ?q ?c MINUS { ?d ?p ?c } } MINUS { ?e ?r ?b } }".into(),
        "SELECT (COUNT(*) AS ?n) { ?a ?p ?b FILTER NOT EXISTS { ?c ?q ?d FILTER(?d = ?x) } }".into(),
        "SELECT (SUM(?n) AS ?m) { ?a ?p ?b LATERAL { SELECT (COUNT(*) AS ?n) { ?c ?q ?d } } }".into(),
        format!(
            "SELECT * {{ {text} . ?a ?p ?b FILTER REGEX(?t, CONCAT(\"(a|b| )*c\", STR(?a))) }}"
        ),
        format!("SELECT (REPLACE(?t, \"(a|b|ab| )*\", \"$1\") AS ?n) {{ {text} . ?a ?p ?b }}"),
        format!("SELECT (STRLEN({nested}) AS ?n) {{ {text} }}"),
        format!("SELECT (STRLEN(CONCAT({many})) AS ?n) {{ {text} }}"),
        format!("SELECT (COUNT(*) AS ?n) {{ SELECT DISTINCT ?a ?d {all} }}"),
        format!("SELECT ?a {all} ORDER BY DESC(?d) ?a"),
        format!("SELECT ?a (COUNT(DISTINCT ?d) AS ?n) {all} GROUP BY ?a"),
        "SELECT (COUNT(*) AS ?n) { ?a (<r:0>|<r:1>|<r:2>|<r:3>)* ?b . ?c (<r:4>|<r:5>)* ?d }".into(),
    ]
}

fn answers_are_the_same_as_inside(graph: &Graph) {
    let queries = [
        "SELECT ?b { <e:1> <r:1> ?b }",
        "SELECT (COUNT(*) AS ?n) { ?a <r:3> ?b }",
        "ASK { <e:1> <r:2> ?b }",
        "CONSTRUCT { ?b <r:back> ?a } { ?a <r:1> ?b } LIMIT 20",
        "SELECT * { ?a",
        "SELECT * { SERVICE <http://a/> {} }",
        "SELECT ?a { ?a ?p ?b } LIMIT 3000",
    ];
    let options = SparqlOptions {
        timeout: Some(Duration::from_secs(60)),
        max_rows: Some(1000),
        ..SparqlOptions::default()
    };
    for text in queries {
        for format in [ResultFormat::Json, ResultFormat::Table { width: 20 }] {
            let (mut inside, mut outside) = (Vec::new(), Vec::new());
            let wanted = sparql::write(&graph.store, text, &options, format, &mut inside);
            let path = graph.path();
            let given = (graph.workers).write(path, text, &options, format, &mut outside, &|| true);
            match (wanted, given) {
                (Ok(wanted), Ok(given)) => assert_eq!(wanted, given),
                (Err(wanted), Err(given)) => assert_eq!(wanted.to_string(), given.to_string()),
                (wanted, given) => panic!("{text}: {wanted:?} but {given:?}"),
            }
            assert!(inside == outside, "{text}");
        }
    }
}

fn heavy_queries_end_at_a_limit(graph: &Graph) {
    for text in heavy() {
        let answer = graph.ends(&text);
        assert!(answer.is_err(), "{text} is not heavy");
        // and the next one is answered
        let next = graph.ask("ASK { <e:1> <r:1> ?b }", Duration::from_secs(60));
        assert!(String::from_utf8(next.unwrap()).unwrap().contains("true"));
    }
}

/// Without a process of their own, as far as that goes: those that read triples or copy terms.
fn heavy_queries_end_inside_too(graph: &Graph) {
    for text in heavy()
        .iter()
        .filter(|text| text.contains("?a ?p ?b . ?c ?q ?d"))
    {
        let options = SparqlOptions {
            timeout: Some(TIME),
            ..SparqlOptions::default()
        };
        let begun = Instant::now();
        let format = ResultFormat::Csv;
        let ended = sparql::write(&graph.store, text, &options, format, &mut io::sink());
        let took = begun.elapsed();
        assert!(
            matches!(ended, Err(Error::OutOfTime { .. })),
            "{text}: {ended:?}"
        );
        assert!(took < TIME + PATIENCE, "{text} took {took:?}");
    }
}

fn random_heavy_queries_end_at_a_limit(graph: &Graph) {
    let part = || {
        prop_oneof![
            Just("?a ?p ?b . "),
            Just("?c ?q ?d . "),
            Just("?b ?r ?e . "),
            Just("<e:long> <r:text> ?t . "),
            Just("?a (<r:0>|<r:1>)+ ?e . "),
            Just("OPTIONAL { ?d ?s ?f } "),
            Just("MINUS { ?d ?p ?c } "),
            Just("FILTER NOT EXISTS { ?x ?y ?z FILTER(?z = ?a) } "),
            Just("LATERAL { SELECT (MAX(STR(?v)) AS ?m) { ?u ?v ?w } } "),
            Just("BIND(CONCAT(STR(?t), STR(?t), STR(?t), STR(?t)) AS ?l) "),
            Just("FILTER(!REGEX(COALESCE(?t, STR(?a)), \"(a|b| )*c\")) "),
            Just("VALUES ?g { 1 2 3 4 5 6 7 8 } "),
        ]
    };
    let head = prop_oneof![
        Just("SELECT *"),
        Just("SELECT DISTINCT ?a ?d ?l"),
        Just("SELECT (COUNT(*) AS ?n)"),
        Just("SELECT (MAX(CONCAT(STR(?a), COALESCE(?t, \"\"))) AS ?n)"),
        Just("SELECT (GROUP_CONCAT(STR(?b)) AS ?n)"),
        Just("SELECT (REPLACE(SAMPLE(?t), \"(a|b)\", \"$0$0$0$0$0$0$0$0\") AS ?n)"),
        Just("ASK"),
        Just("CONSTRUCT { ?a ?p ?d }"),
    ];
    let tail = prop_oneof![Just(""), Just("ORDER BY DESC(?d) ?a"), Just("LIMIT 5")];
    let query = (head, prop::collection::vec(part(), 1..5), tail)
        .prop_map(|(head, parts, tail)| format!("{head} {{ {} }} {tail}", parts.concat()));
    let config = Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&query, |text| {
            // whether it is valid, light or heavy: it ends
            match graph.ask(&text, TIME) {
                Err(Error::SparqlSyntax(_)) => {}
                _ => drop(graph.ends(&text)),
            }
            Ok(())
        })
        .unwrap();
}

fn a_query_that_nobody_wants_is_ended(graph: &Graph) {
    let begun = Instant::now();
    let options = SparqlOptions::default();
    let format = ResultFormat::Json;
    let stopped = graph.workers.write(
        graph.path(),
        "SELECT (MAX(STR(?a)) AS ?n) { ?a ?p ?b . ?c ?q ?d }",
        &options,
        format,
        &mut io::sink(),
        &|| begun.elapsed() < Duration::from_millis(100),
    );
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert!(begun.elapsed() < PATIENCE);
}

fn an_answer_too_large_is_refused(graph: &Graph) {
    let text = "SELECT ?t { VALUES ?g { 1 2 3 4 5 6 7 8 } <e:long> <r:text> ?t }";
    let answer = graph.ask(text, Duration::from_secs(60));
    assert!(matches!(answer, Err(Error::AnswerTooLarge { .. })));
}
