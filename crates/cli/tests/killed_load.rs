//! A load that is killed leaves the old graph or the new one, never a torn one.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wherefore_graph::Store;

/// Pseudo-random numbers below a bound.
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

fn table(rows: u32, seed: u64) -> String {
    let mut random = Random(seed);
    (0..rows)
        .map(|_| {
            let (h, r, t) = (random.below(9_000), random.below(7), random.below(9_000));
            format!("entity_{h}\trelation_{r}\tentity_{t}\n")
        })
        .collect()
}

fn loader(file: &Path, graph: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wherefore"));
    command
        .args(["load", "--replace", "--quiet", "--memory", "64M", "--out"])
        .arg(graph)
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[test]
fn fifty_killed_loads_leave_a_whole_graph_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let graph = dir.path().join("graph");
    let files = [dir.path().join("a.tsv"), dir.path().join("b.tsv")];
    for (file, seed) in files.iter().zip([1, 2]) {
        std::fs::write(file, table(40_000, seed)).unwrap();
    }
    let mut checksums = Vec::new();
    let mut whole = Duration::ZERO;
    for file in &files {
        let start = Instant::now();
        assert!(loader(file, &graph).status().unwrap().success());
        whole = start.elapsed();
        checksums.push(Store::open(&graph).unwrap().checksum().to_owned());
    }
    assert_ne!(checksums[0], checksums[1]);
    let mut random = Random(12345);
    let (mut killed, mut finished) = (0, 0);
    for round in 0..50 {
        let moment = whole.mul_f64(1.1 * random.below(1000) as f64 / 1000.0);
        let mut child = loader(&files[round % 2], &graph).spawn().unwrap();
        std::thread::sleep(moment);
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                finished += 1;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                killed += 1;
            }
        }
        let store = Store::open(&graph).unwrap_or_else(|e| panic!("round {round}: {e}"));
        store.check().unwrap();
        assert!(
            checksums.iter().any(|c| c == store.checksum()),
            "round {round}"
        );
    }
    println!("{killed} killed, {finished} finished before");
    assert!(killed >= 10, "only {killed} of 50 were killed in time");
    // the next load works and clears up what the killed ones left
    assert!(loader(&files[0], &graph).status().unwrap().success());
    assert_eq!(Store::open(&graph).unwrap().checksum(), checksums[0]);
    assert_eq!(
        std::fs::read_dir(&graph).unwrap().count(),
        4,
        "manifest, two locks and one folder"
    );
}
