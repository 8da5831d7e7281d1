//! An index that is killed while it is built leaves the old one whole, and the next build goes on.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use wherefore::index::{Part, TextIndex, Vectors};
use wherefore_graph::{Input, LoadOptions, Store, load};

const FILES: [&str; 5] = ["vectors", "hashes", "rows", "starts", "ids"];

fn graph(folder: &Path, name: &str, entities: u32) -> std::path::PathBuf {
    let table: String = (0..entities)
        .map(|i| {
            format!(
                "the {} number {i}\tcomes_after\tthe {} number {}\n",
                i % 97,
                i % 31,
                i / 3
            )
        })
        .collect();
    let file = folder.join("table.tsv");
    std::fs::write(&file, table).unwrap();
    let graph = folder.join(name);
    load(
        &[Input::File(file)],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )
    .unwrap();
    graph
}

fn indexer(graph: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wherefore"));
    command
        .arg("index")
        .arg(graph)
        .args(["--json", "--encoder", "hashing", "--triples"])
        .stderr(Stdio::null());
    command
}

#[test]
fn killed_builds_are_taken_up_and_end_with_the_same_files() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, killed) = (
        graph(dir.path(), "whole", 10_000),
        graph(dir.path(), "killed", 10_000),
    );
    let start = Instant::now();
    assert!(
        indexer(&whole)
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let time = start.elapsed();

    let mut kills = 0;
    for round in 1_u8..200 {
        // a little longer each time, so that an index that never gets on fails the test
        let moment = time.mul_f64(0.05 * f64::from(round));
        let mut child = indexer(&killed).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    println!("{kills} killed; undisturbed it takes {time:?}");
    assert!(kills >= 2, "only {kills} were killed in time");
    let report = indexer(&killed).output().unwrap();
    assert!(report.status.success());
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    for part in report["parts"].as_array().unwrap() {
        assert_eq!(part["built"], false, "{part}");
    }

    // whatever was killed, the rows are those of the build that was left alone
    for part in ["entities", "relations", "triples"] {
        for file in FILES {
            let read = |graph: &Path| {
                let index = graph.join("index");
                let manifest = std::fs::read(index.join(format!("{part}.json"))).unwrap();
                let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
                let folder = manifest["folder"].as_str().unwrap().to_owned();
                std::fs::read(index.join(folder).join(file)).unwrap()
            };
            assert!(read(&whole) == read(&killed), "{part}/{file}");
        }
    }
    let store = Store::open(&killed).unwrap();
    let encoder = wherefore::model::encode::open("hashing").unwrap();
    for part in [Part::Entities, Part::Relations, Part::Triples] {
        Vectors::open(&store, &*encoder, part).unwrap();
    }
    let text = TextIndex::open(&store).unwrap();
    assert_eq!(
        text.len(),
        TextIndex::open(&Store::open(&whole).unwrap())
            .unwrap()
            .len()
    );
    let left = std::fs::read_dir(killed.join("index")).unwrap();
    assert_eq!(
        left.count(),
        9,
        "the lock, and four manifests with their folders"
    );
}

#[test]
fn what_a_killed_build_had_finished_is_not_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let graph = graph(dir.path(), "graph", 30_000);
    let half = graph.join("index/entities.part");
    let there = |name: &str| half.join(name).exists();
    // Killed as soon as it says that some rows are safe; a build that ends, or tidies up, before
    // the kill reaches it is tried again.
    let killed_half_way = (0..50).any(|_| {
        let _ = std::fs::remove_dir_all(graph.join("index"));
        let mut child = indexer(&graph).stdout(Stdio::null()).spawn().unwrap();
        while !there("progress.json") && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        ["progress.json", "plan", "plan.json"]
            .into_iter()
            .all(there)
    });
    assert!(killed_half_way, "every build ended before it was killed");
    let report = indexer(&graph).output().unwrap();
    assert!(report.status.success());
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let entities = &report["parts"][1];
    assert_eq!(entities["part"], "entities");
    let number = |name: &str| entities[name].as_u64().unwrap();
    assert!(number("encoded") < number("vectors"), "{entities}");
}
