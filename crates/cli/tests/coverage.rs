//! A promised coverage from the command line: made, kept, verified, and refused where it cannot be.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn wherefore(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wherefore"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The code of the error that a command ended with.
fn code(output: &Output) -> String {
    let told: Value = serde_json::from_slice(&output.stderr).unwrap();
    told["error"]["code"].as_str().unwrap().to_owned()
}

/// Films whose people are namesakes of relations' words, so that several readings compete.
fn graph(folder: &Path) -> String {
    let mut text = String::new();
    for i in 0..40 {
        text += &format!("Film {i}\tdirected_by\tAnn {}\n", i % 7);
        text += &format!("Film {i}\twritten_by\tBob {}\n", i % 5);
        text += &format!("Film {i}\trelease_year\t{}\n", 1990 + i % 9);
    }
    let (file, graph) = (folder.join("films.tsv"), folder.join("films"));
    std::fs::write(&file, text).unwrap();
    let (file, graph) = (file.to_str().unwrap(), graph.to_str().unwrap());
    assert!(wherefore(&["load", file, "--out", graph]).status.success());
    graph.to_owned()
}

#[test]
fn as_many_readings_as_a_coverage_takes_are_answered_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path());
    let asked = [
        "ask",
        &graph,
        "who made Film 3",
        "--coverage",
        "0.9",
        "--json",
    ];
    let refused = wherefore(&asked);
    assert_eq!(code(&refused), "no-conformal");

    // of ten questions one cannot be read, and two ask for what is not the likeliest
    let questions = folder.path().join("asked.jsonl");
    let mut text = String::new();
    for i in 0..8 {
        text += &format!(
            "{{\"question\":\"who directed Film {i}\",\"answers\":[\"Ann {}\"]}}\n",
            i % 7
        );
    }
    text += "{\"question\":\"who directed Film 9\",\"answers\":[\"1990\"]}\n";
    text += "{\"question\":\"blorp\",\"answers\":[\"Ann 1\"]}\n";
    std::fs::write(&questions, text).unwrap();
    let questions = questions.to_str().unwrap();
    let made = wherefore(&["conformal", &graph, "--questions", questions, "--json"]);
    let made = json(&made);
    assert_eq!(
        (&made["questions"], &made["drafted"]),
        (&10.into(), &false.into())
    );
    let most = made["most"].as_f64().unwrap();
    assert!((8.0 / 11.0..=9.0 / 11.0 + 1e-6).contains(&most), "{most}");
    // more than that cannot be promised
    let refused = wherefore(&asked);
    assert_eq!(code(&refused), "no-such-coverage");

    let coverage = format!("{:.2}", (most * 100.0).floor() / 100.0);
    let asked = [
        "ask",
        &graph,
        "who directed Film 3",
        "--coverage",
        &coverage,
        "--json",
    ];
    let answer = json(&wherefore(&asked));
    assert_eq!(answer["answers"][0]["name"], "Ann 3");
    let file = folder.path().join("answer.json");
    std::fs::write(&file, answer.to_string()).unwrap();
    let file = file.to_str().unwrap();
    assert!(
        wherefore(&["verify", file, "--graph", &graph])
            .status
            .success()
    );

    // another answer that the graph does not state does not hold
    let mut forged = answer;
    let mut other = forged.clone();
    other["others"] = Value::Array(Vec::new());
    other["answers"][0]["name"] = "EVIL CORP".into();
    forged["others"] = Value::Array(vec![other]);
    forged.as_object_mut().unwrap().remove("seal");
    std::fs::write(file, forged.to_string()).unwrap();
    let verified = wherefore(&["verify", file, "--graph", &graph]);
    assert!(!verified.status.success());
}

#[test]
fn drafts_stand_in_for_questions_and_bad_shares_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let graph = graph(folder.path());
    let made = json(&wherefore(&[
        "conformal",
        &graph,
        "--count",
        "40",
        "--json",
    ]));
    assert_eq!(made["drafted"], true);
    let told = wherefore(&["conformal", &graph, "--count", "40"]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("drafted"));
    for (flag, share) in [
        ("--coverage", "1"),
        ("--coverage", "NaN"),
        ("--precision", "-0.5"),
    ] {
        let refused = wherefore(&[
            "ask",
            &graph,
            "who directed Film 1",
            &format!("{flag}={share}"),
            "--json",
        ]);
        assert_eq!(code(&refused), "bad-setting", "{flag} {share}");
    }
}
