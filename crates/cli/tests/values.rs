//! Questions about the sample graph as people ask them, with all their answers: counts, extremes,
//! comparisons and dates, and what the page offers.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const KINDS: [&str; 4] = ["count", "superlative", "compare", "date"];

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn names(answers: &Value) -> BTreeSet<String> {
    let name = |answer: &Value| {
        answer
            .as_str()
            .or(answer["name"].as_str())
            .map(str::to_owned)
    };
    let all = answers.as_array().unwrap().iter();
    all.map(|answer| name(answer).unwrap()).collect()
}

/// Answers questions by `method`; the lines of the run.
fn run(method: &str, questions: &Path, dir: &Path) -> Vec<Value> {
    let run = dir.join(method);
    let done = Command::new(env!("CARGO_BIN_EXE_wherefore"))
        .args(["eval", "--graph", "@world", "--linked", "--quiet"])
        .args(["--method", method, "--questions"])
        .arg(questions)
        .arg("--out")
        .arg(&run)
        .env("XDG_CACHE_HOME", dir)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    lines(&run.join("answers.jsonl"))
}

/// The questions that were not answered with all their answers, each on verified triples.
fn wrong<'a>(asked: &'a [Value], given: &[Value]) -> Vec<&'a str> {
    assert_eq!(asked.len(), given.len());
    let is_right = |question: &Value, answer: &Value| {
        let evidence = answer["evidence"].as_array().unwrap();
        names(&question["answers"]) == names(&answer["answers"])
            && evidence.iter().all(|triple| triple["verified"] == true)
    };
    let pairs = asked.iter().zip(given);
    let wrong = pairs.filter(|(question, answer)| !is_right(question, answer));
    wrong
        .map(|(q, _)| q["question"].as_str().unwrap())
        .collect()
}

#[test]
fn what_the_page_offers_is_answered_right() {
    let dir = tempfile::tempdir().unwrap();
    let questions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/sample/dev.jsonl");
    let mut asked = lines(&questions);
    asked.iter_mut().for_each(|question| {
        // what cannot be answered has none
        if question["answers"].is_null() {
            question["answers"] = Value::Array(Vec::new());
        }
    });
    let wrong = wrong(&asked, &run("read", &questions, dir.path()));
    assert!(wrong.len() <= 2, "{wrong:#?}");
    for offered in [
        "Which rivers flow through Hungary?",
        "What is the capital of the country where Lake Balaton lies?",
        "Which countries are members of both the G20 and ASEAN?",
        "How many mountains of the Alps are in Italy?",
        "What is the largest lake in Africa?",
    ] {
        assert!(asked.iter().any(|q| q["question"] == offered));
        assert!(!wrong.contains(&offered), "{offered}");
    }
}

#[test]
fn counts_extremes_comparisons_and_dates_are_answered_right() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/sample");
    let mut asked = Vec::new();
    for file in ["dev.jsonl", "handwritten.jsonl"] {
        let of_kind = |q: &Value| KINDS.contains(&q["kind"].as_str().unwrap());
        asked.extend(lines(&sample.join(file)).into_iter().filter(of_kind));
    }
    assert!(asked.len() >= 60, "only {} questions", asked.len());
    let questions = dir.path().join("questions.jsonl");
    let text: Vec<String> = asked.iter().map(Value::to_string).collect();
    std::fs::write(&questions, text.join("\n")).unwrap();
    let wrong = wrong(&asked, &run("read", &questions, dir.path()));
    let right = asked.len() - wrong.len();
    assert!(right >= 79, "{right} of {}: {wrong:#?}", asked.len());
}
