//! Adds and compactions that are killed lose no change that was acknowledged, and nobody ever
//! reads a torn graph.
//!
//! ```text
//! cargo test --workspace --test killed_changes -- --ignored --nocapture     200 kills
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a test may fail"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wherefore_graph::{Action, ChangeSet, Format, Graph, Input, LoadOptions, Store, load};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn line(id: u64) -> String {
    format!("entity_{}\trelation_{}\tvalue_{id}\n", id % 50, id % 7)
}

/// All triples as lines.
fn lines(store: &Store) -> BTreeSet<String> {
    let term = |e| store.entity_term(e).unwrap().to_string();
    let line = |t: wherefore_graph::Triple| {
        let relation = store.relation_term(t.relation).unwrap();
        format!("{}\t{relation}\t{}\n", term(t.head), term(t.tail))
    };
    store.triples().map(|t| line(t.unwrap())).collect()
}

fn wherefore(args: &[&str], graph: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wherefore"));
    command.args(args);
    match args[0] {
        "compact" => command.args(["--memory", "64M", "--quiet"]).arg(graph),
        _ => command.args(["--quiet", "--graph"]).arg(graph),
    };
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Kills `rounds` commands at random moments. Every change adds a pair of triples that belong
/// together, or removes one: whoever sees half a pair sees a torn graph.
fn kill(rounds: usize) {
    let dir = tempfile::tempdir().unwrap();
    let graph = dir.path().join("graph");
    let first = dir.path().join("first.tsv");
    let old: BTreeSet<String> = (0..2000).map(line).collect();
    std::fs::write(&first, old.iter().cloned().collect::<String>()).unwrap();
    load(
        &[Input::File(first)],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )
    .unwrap();
    let pair = |n: u64| [line(10_000 + 2 * n), line(10_001 + 2 * n)];
    let start = Instant::now();
    assert!(wherefore(&["compact"], &graph).status().unwrap().success());
    // how long a command takes; the first one may be slow, so what follows corrects it
    let mut whole = start.elapsed().max(Duration::from_millis(20));

    // a reader that never stops looking
    let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let look = || {
        let mut store = Store::open(&graph).unwrap();
        while !stop.load(Ordering::Relaxed) {
            if let Some(newer) = store.refreshed().unwrap() {
                store = newer;
            }
            let found = lines(&store);
            for n in 0..rounds as u64 {
                let [one, other] = pair(n);
                assert_eq!(
                    found.contains(&one),
                    found.contains(&other),
                    "pair {n} is torn"
                );
            }
            looks.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (mut killed, mut finished, mut compactions) = (0, 0, 0);
    // what must be there, what must not, and what may be either for its command was killed
    let (mut acknowledged, mut open) = (BTreeSet::new(), BTreeSet::new());
    std::thread::scope(|scope| {
        scope.spawn(look);
        let mut random = Random(7);
        for round in 0..rounds as u64 {
            let file = dir.path().join(format!("{round}.tsv"));
            let text = pair(round).concat();
            std::fs::write(&file, &text).unwrap();
            let compacts = random.below(3) == 0;
            let mut child = match compacts {
                true => wherefore(&["compact"], &graph).spawn().unwrap(),
                false => wherefore(&["add", file.to_str().unwrap()], &graph)
                    .spawn()
                    .unwrap(),
            };
            // while that runs, another process writes too, and its changes are acknowledged
            let beside = 100_000 + round;
            let set = ChangeSet::parse(&line(beside), Action::Add, Format::Tsv, false).unwrap();
            let writes = random.below(2) == 0;
            std::thread::sleep(whole.mul_f64(random.below(1000) as f64 / 900.0));
            if writes {
                Store::open(&graph).unwrap().change(&set).unwrap();
                acknowledged.insert(line(beside));
            }
            match child.try_wait().unwrap() {
                Some(status) => {
                    assert!(status.success(), "round {round}");
                    finished += 1;
                    whole = whole.mul_f64(0.8);
                    if !compacts {
                        acknowledged.extend(pair(round));
                    }
                }
                None => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    killed += 1;
                    whole = whole.mul_f64(1.2);
                    if !compacts {
                        open.extend(pair(round));
                    }
                }
            }
            compactions += usize::from(compacts);
            let store = Store::open(&graph).unwrap_or_else(|e| panic!("round {round}: {e}"));
            let found = lines(&store);
            for wanted in &acknowledged {
                assert!(found.contains(wanted), "round {round} lost {wanted}");
            }
            for one in &found {
                let known = old.contains(one) || acknowledged.contains(one) || open.contains(one);
                assert!(known, "round {round} invented {one}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!(
        "{killed} killed, {finished} finished before, {compactions} of them compactions; {} changes \
         acknowledged, all there; {} whole reads beside",
        acknowledged.len(),
        looks.load(Ordering::Relaxed)
    );
    assert!(
        killed >= rounds / 5,
        "only {killed} of {rounds} were killed in time"
    );
    // what was killed does not stand in the way
    assert!(wherefore(&["compact"], &graph).status().unwrap().success());
    let store = Store::open(&graph).unwrap();
    assert_eq!(store.pending(), None);
    let found = lines(&store);
    assert!(acknowledged.iter().all(|wanted| found.contains(wanted)));
    let left = std::fs::read_dir(&graph).unwrap().count();
    assert_eq!(left, 4, "manifest, two locks and one folder");
}

#[test]
fn twenty_kills_lose_no_acknowledged_change() {
    kill(20);
}

#[test]
#[ignore = "two hundred kills take minutes"]
fn two_hundred_kills_lose_no_acknowledged_change() {
    kill(200);
}
