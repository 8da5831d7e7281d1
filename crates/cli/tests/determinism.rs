//! The same bytes on one thread and on two: of a graph folder, of every method's checkpoint that
//! is trained on the CPU, and of a run folder but for its times.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const RELATIONS: [&str; 4] = ["mother", "employer", "home town", "favourite food"];

/// Runs the program with so many threads, and fails if it does.
fn wherefore(threads: usize, args: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wherefore"));
    command.args(args).stdin(Stdio::null());
    command.env("RAYON_NUM_THREADS", threads.to_string());
    let done = command.output().unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The files of a folder, and of those inside it, by name.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(folder: &Path, root: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, root, files);
            } else {
                let name = path.strip_prefix(root).unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    add(folder, folder, &mut found);
    found
}

fn assert_same(one: &Path, two: &Path) {
    let (one, two) = (files(one), files(two));
    assert!(!one.is_empty());
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        two.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &one {
        // without the bytes themselves: they fill the screen
        assert!(bytes == &two[name], "`{}` differs", name.display());
    }
}

/// A graph of thirty people, and questions about them.
fn family(folder: &Path) -> (PathBuf, PathBuf) {
    let (mut triples, mut questions) = (String::new(), String::new());
    for person in 0..30 {
        for relation in RELATIONS {
            let answer = format!("{relation} {}", person % 7);
            writeln!(triples, "person {person}|{relation}|{answer}").unwrap();
            writeln!(
                questions,
                r#"{{"id":"{person}-{relation}","question":"what is the {relation} of person {person}?","topics":["person {person}"],"answers":["{answer}"],"paths":[[["person {person}","{relation}","{answer}"]]]}}"#
            )
            .unwrap();
        }
    }
    let (file, asked) = (folder.join("kb.txt"), folder.join("questions.jsonl"));
    std::fs::write(&file, triples).unwrap();
    std::fs::write(&asked, questions).unwrap();
    let graph = folder.join("graph");
    let load = [
        "load",
        "--format",
        "pipe",
        "--out",
        text(&graph),
        text(&file),
    ];
    wherefore(2, &load);
    (graph, asked)
}

#[test]
fn a_graph_has_the_same_bytes_on_one_thread_and_on_two() {
    let dir = tempfile::tempdir().unwrap();
    // some megabytes, so that the workers share them, of triples in no order
    let mut triples = String::new();
    for i in 0..100_000u32 {
        let (head, tail) = (
            i.wrapping_mul(2_654_435_761) % 9973,
            i.wrapping_mul(40_503) % 7919,
        );
        let line = match i % 4 {
            0 => format!(
                "<http://e/{head}> <http://e/p{}> <http://e/{tail}> .",
                i % 13
            ),
            1 => format!(
                "<http://e/{head}> <http://www.w3.org/2000/01/rdf-schema#label> \"number {tail}\"@en ."
            ),
            2 => format!("_:b{head} <http://e/q> <http://e/{tail}> ."),
            _ => format!(
                "<http://e/{head}> <http://e/r> \"{tail}\"^^<http://www.w3.org/2001/XMLSchema#integer> ."
            ),
        };
        writeln!(triples, "{line}").unwrap();
    }
    let file = dir.path().join("some.nt");
    std::fs::write(&file, triples).unwrap();
    let [one, two] = [1, 2].map(|threads| {
        let out = dir.path().join(threads.to_string());
        let count = threads.to_string();
        let args = [
            "load",
            "--threads",
            &count,
            "--out",
            text(&out),
            text(&file),
        ];
        wherefore(threads, &args);
        out
    });
    assert_same(&one, &two);
}

#[test]
fn checkpoints_have_the_same_bytes_on_one_thread_and_on_two() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, questions) = family(dir.path());
    let small: &[&str] = &["epochs=2", "sizes.hidden=32"];
    let methods: [(&str, &[&str]); 7] = [
        ("qr-gat", small),
        ("distance-mlp", small),
        ("pna", small),
        ("pna-relations", small),
        ("relation-plan", &["epochs=1"]),
        ("relations", &["epochs=1"]),
        (
            "gnn2r",
            &[
                "epochs=1",
                "sizes.hidden=32",
                "answering.trails.max_length=1",
                "sentences.epochs=1",
                "sentences.hidden=16",
            ],
        ),
    ];
    for (method, settings) in methods {
        let [one, two] = [1, 2].map(|threads| {
            let out = dir.path().join(format!("{method}-{threads}"));
            let mut args = vec!["train", method, "--graph", text(&graph)];
            args.extend(["--questions", text(&questions), "--out", text(&out)]);
            args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
            wherefore(threads, &args);
            out
        });
        assert!(one.join("model.safetensors").exists(), "{method}");
        assert_same(&one, &two);
    }
}

/// Leaves out how long things took.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !matches!(name.as_str(), "timings_ms" | "latency_ms"));
            fields.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[test]
fn runs_have_the_same_bytes_on_one_thread_and_on_two_but_for_their_times() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, questions) = family(dir.path());
    for method in ["similarity", "read"] {
        let [one, two] = [1, 2].map(|threads| {
            // the same name, for the report says it
            let out = dir.path().join(threads.to_string()).join(method);
            let count = threads.to_string();
            let mut args = vec!["eval", "--graph", text(&graph), "--method", method];
            args.extend(["--questions", text(&questions), "--threads", &count]);
            args.extend(["--out", text(&out)]);
            wherefore(threads, &args);
            let mut files = files(&out);
            // its numbers are those of `metrics.json`, with the times
            let report = files.remove(Path::new("report.html")).unwrap();
            let report = String::from_utf8(report).unwrap();
            // `20 ms` and `19.5 ms` are both a time
            let parts: Vec<&str> = report.split('.').collect();
            let mut words = String::new();
            for (at, part) in parts.iter().enumerate() {
                let digit = |c: char| c.is_ascii_digit();
                let within = at > 0 && parts[at - 1].ends_with(digit) && part.starts_with(digit);
                if at > 0 && !within {
                    words.push('.');
                }
                words.extend(part.chars().filter(|c| !c.is_ascii_digit()));
            }
            let texts = files.into_iter().map(|(name, bytes)| {
                let text = String::from_utf8(bytes).unwrap();
                // whole files of JSON, and lines of it
                let values = serde_json::Deserializer::from_str(&text).into_iter();
                let values = values.map(|value| {
                    let mut value: Value = value.unwrap();
                    without_times(&mut value);
                    value.to_string()
                });
                (name, values.collect::<Vec<_>>())
            });
            (texts.collect::<BTreeMap<_, _>>(), words)
        });
        assert_eq!(one.0[Path::new("answers.jsonl")].len(), 120);
        assert_eq!(one, two);
    }
}
