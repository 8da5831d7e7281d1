//! Queries: they end at the limits of time and memory, and a worker gives the same rows as the
//! evaluation inside this process, which is what is watched for coverage.
#![no_main]

use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use libfuzzer_sys::{Corpus, fuzz_target};
use tempfile::TempDir;
use wherefore_fuzz::{scratch, small_graph};
use wherefore_graph::sparql::{self, ResultFormat, SparqlOptions, Workers, run_worker};
use wherefore_graph::{Error, Store};

const TIME: Duration = Duration::from_secs(1);
/// What a busy machine is given on top.
const PATIENCE: Duration = Duration::from_secs(10);
const MEMORY: u64 = 256 << 20;

struct Graph {
    _scratch: TempDir,
    path: PathBuf,
    store: Store,
    workers: Workers,
}

static GRAPH: LazyLock<Graph> = LazyLock::new(|| {
    let scratch = scratch();
    let path = small_graph(&scratch);
    let program = std::env::current_exe().expect("this program has a path");
    Graph {
        store: Store::open(&path).expect("a whole graph is opened"),
        workers: Workers::new(program, ["worker"], MEMORY),
        path,
        _scratch: scratch,
    }
});

/// This program is its own worker.
fn be_a_worker() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, worker, bytes] = arguments.as_slice()
        && worker == "worker"
    {
        let bytes = bytes.parse().expect("the limit is a number");
        let mut input = BufReader::new(io::stdin());
        let ended = run_worker(bytes, &mut input, io::stdout());
        std::process::exit(i32::from(ended.is_err()));
    }
}

fuzz_target!(init: be_a_worker(), |text: &str| -> Corpus {
    let graph = &*GRAPH;
    let options = SparqlOptions {
        timeout: Some(TIME),
        max_rows: Some(1000),
        max_bytes: Some(1 << 20),
    };
    let mut there = Vec::new();
    let start = Instant::now();
    let format = ResultFormat::Json;
    let written = graph.workers.write(&graph.path, text, &options, format, &mut there, &|| true);
    let took = start.elapsed();
    assert!(took < TIME + PATIENCE, "it took {took:?}");
    match written {
        Err(Error::OutOfTime { .. } | Error::OutOfMemory { .. } | Error::AnswerTooLarge { .. }) => {
            return Corpus::Keep;
        }
        // the same reason is given below
        Err(Error::WorkerFailed(reason)) => panic!("the worker failed: {reason}"),
        _ => {}
    }
    let mut here = Vec::new();
    match sparql::write(&graph.store, text, &options, format, &mut here) {
        // this process may be slower: it is watched
        Err(Error::OutOfTime { .. }) => {}
        Ok(_) => {
            assert!(written.is_ok(), "only here is an answer");
            let names = ["NOW", "RAND", "UUID", "BNODE"];
            let upper = text.to_uppercase();
            if !names.iter().any(|name| upper.contains(name)) {
                assert_eq!(here, there);
            }
        }
        Err(error) => assert!(written.is_err(), "only there is an answer: {error}"),
    }
    Corpus::Keep
});
