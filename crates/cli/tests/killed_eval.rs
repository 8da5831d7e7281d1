//! An evaluation that is killed half-way and started again ends like one that was left alone.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const QUESTIONS: usize = 4_000;

fn evaluation(questions: &Path, run: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wherefore"));
    command
        .args(["eval", "--graph", "@toy", "--quiet", "--questions"])
        .arg(questions)
        .arg("--out")
        .arg(run)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The answers without their times.
fn answers(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("answers.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("timings_ms");
            line
        })
        .collect()
}

fn metrics(run: &Path) -> Value {
    let text = std::fs::read_to_string(run.join("metrics.json")).unwrap();
    let mut metrics: Value = serde_json::from_str(&text).unwrap();
    metrics.as_object_mut().unwrap().remove("cost");
    metrics
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("questions.jsonl");
    let asked = [
        (
            "Which stadium do the San Francisco Giants play in?",
            "San Francisco Giants",
            "Oracle Park",
        ),
        (
            "Where was Bruce Bochy born?",
            "Bruce Bochy",
            "Landes de Bussac",
        ),
        (
            "Whose mascot is Sluggerrr?",
            "Sluggerrr",
            "Kansas City Royals",
        ),
    ];
    let mut text = String::new();
    for i in 0..QUESTIONS {
        let (question, topic, answer) = asked[i % asked.len()];
        writeln!(
            text,
            r#"{{"id":"q{i}","question":"{question}","topics":["{topic}"],"answers":["{answer}"]}}"#
        )
        .unwrap();
    }
    std::fs::write(&file, text).unwrap();
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    assert!(evaluation(&file, &whole).status().unwrap().success());
    assert_eq!(answers(&whole).len(), QUESTIONS);

    let mut stops = 0;
    for _ in 0..3 {
        let mut child = evaluation(&file, &killed).spawn().unwrap();
        // until some lines more are there
        let lines = || std::fs::metadata(killed.join("answers.jsonl")).map_or(0, |m| m.len());
        let (before, start) = (lines(), Instant::now());
        while lines() < before + 200_000 && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            stops += 1;
        }
        child.wait().unwrap();
    }
    println!(
        "stopped {stops} times, after {} of {QUESTIONS}",
        answers_so_far(&killed)
    );
    assert!(stops > 0, "it was too fast to be killed");
    assert!(evaluation(&file, &killed).status().unwrap().success());
    assert_eq!(answers(&killed), answers(&whole));
    assert_eq!(metrics(&killed), metrics(&whole));
}

fn answers_so_far(run: &Path) -> usize {
    std::fs::read(run.join("answers.jsonl"))
        .unwrap()
        .iter()
        .filter(|b| **b == b'\n')
        .count()
}
