//! How fast are all ways between topics and candidates found, beside networkx?
//!
//! ```text
//! PYTHON=python3 cargo bench -p wherefore --bench trails [-- --test]
//! ```
//!
//! The 18 full-size neighbourhoods of WebQSP test: from the topics to 20 candidates (the answers, then
//! entities drawn by a seed), at most two steps. Where `PYTHON` names a Python with networkx,
//! `trails.py` lists the same ways with `all_simple_edge_paths` in the same run. Ours may meet an
//! entity twice and theirs may not, so there are a few more of ours. Medians over the questions;
//! building the graph is counted on our side and told apart on theirs.
//!
//! Data: `freebase/webqsp_test_full_rog_subgraphs_18.jsonl` in `$WHEREFORE_DATA`, or else in
//! `../shared/data` beside the repository; without it, and with `--test`, a made-up graph.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use wherefore::model::Random;
use wherefore::retrieve::gnn2r::{TrailConfig, trails};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CANDIDATES: usize = 20;
const RUNS: usize = 20;

/// One question of the file.
#[derive(Deserialize)]
struct Line {
    graph: Vec<[String; 3]>,
    #[serde(default)]
    q_entity: Vec<String>,
    #[serde(default)]
    a_entity: Vec<String>,
}

/// What is asked of both sides.
#[derive(Serialize)]
struct Case {
    entities: usize,
    triples: Vec<[u32; 3]>,
    topics: Vec<u32>,
    candidates: Vec<u32>,
    length: usize,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let asked = |name: &str| arguments.iter().any(|argument| argument == name);
    let test = asked("--test") || !asked("--bench");
    let cases = match read()? {
        Some(cases) if !test => cases,
        _ => vec![made_up()],
    };
    let config = TrailConfig {
        max_trails: usize::MAX,
        ..TrailConfig::default()
    };
    let mut times = Vec::new();
    let mut ways = 0;
    for case in &cases {
        let named = vec![true; case.entities];
        let find = || {
            trails(
                &case.triples,
                &named,
                &case.topics,
                &case.candidates,
                &config,
            )
        };
        let (found, all) = find();
        assert!(all, "no limit is met");
        ways += found.len();
        let mut runs: Vec<f64> = (0..if test { 1 } else { RUNS })
            .map(|_| {
                let start = Instant::now();
                std::hint::black_box(find());
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.push(median(&mut runs));
    }
    let ours = median(&mut times);
    println!(
        "{} questions, {ways} ways: {ours:.3} ms in the median",
        cases.len()
    );
    match std::env::var("PYTHON") {
        Ok(python) if !test => beside(&python, &cases, ours)?,
        _ => println!("skipped networkx: `PYTHON` names no Python"),
    }
    Ok(())
}

fn beside(python: &str, cases: &[Case], ours: f64) -> Outcome<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/trails.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no input")?;
    input.write_all(&serde_json::to_vec(cases)?)?;
    drop(input);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err("networkx failed".into());
    }
    #[derive(Deserialize)]
    struct Theirs {
        ways: usize,
        build_ms: f64,
        ms: f64,
    }
    let theirs: Theirs = serde_json::from_slice(&output.stdout)?;
    println!(
        "networkx: {} ways: {:.3} ms in the median, and {:.3} ms to build the graph: {:.0} times ours",
        theirs.ways,
        theirs.ms,
        theirs.build_ms,
        theirs.ms / ours
    );
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn read() -> Outcome<Option<Vec<Case>>> {
    let data = std::env::var_os("WHEREFORE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = data.join("freebase/webqsp_test_full_rog_subgraphs_18.jsonl");
    let Ok(text) = fs::read_to_string(path) else {
        return Ok(None);
    };
    let cases = text.lines().map(|line| {
        let line: Line = serde_json::from_str(line)?;
        let (mut entities, mut relations) = (HashMap::new(), HashMap::new());
        let id = |map: &mut HashMap<String, u32>, name: &String| {
            let next = map.len() as u32;
            *map.entry(name.clone()).or_insert(next)
        };
        let triples: Vec<[u32; 3]> = (line.graph.iter())
            .map(|[h, r, t]| {
                [
                    id(&mut entities, h),
                    id(&mut relations, r),
                    id(&mut entities, t),
                ]
            })
            .collect();
        let known = |names: &[String]| -> Vec<u32> {
            names
                .iter()
                .filter_map(|name| entities.get(name).copied())
                .collect()
        };
        let (topics, answers) = (known(&line.q_entity), known(&line.a_entity));
        Ok(case(entities.len(), triples, topics, answers))
    });
    cases.collect::<Outcome<Vec<Case>>>().map(Some)
}

/// Candidates are the answers, then others.
fn case(
    entities: usize,
    triples: Vec<[u32; 3]>,
    topics: Vec<u32>,
    mut candidates: Vec<u32>,
) -> Case {
    let mut random = Random::new(0);
    candidates.truncate(CANDIDATES);
    while candidates.len() < CANDIDATES.min(entities.saturating_sub(topics.len())) {
        let drawn = random.below(entities) as u32;
        if !candidates.contains(&drawn) && !topics.contains(&drawn) {
            candidates.push(drawn);
        }
    }
    Case {
        entities,
        triples,
        topics,
        candidates,
        length: TrailConfig::default().max_length,
    }
}

fn made_up() -> Case {
    let mut random = Random::new(1);
    let mut end = || random.below(200) as u32;
    let triples = (0..600).map(|i| [end(), i % 7, end()]).collect();
    case(200, triples, vec![0], vec![1])
}
