//! `train amar`, `logic --questions --model`, `ask --model` and `eval --model` as a user types them,
//! around a language model of two random layers.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod gguf;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn wherefore(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wherefore"))
        .args(args)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).expect(&said)
}

fn questions(file: &Path) {
    let mut lines = String::new();
    for (i, (question, form, topic, answer)) in [
        (
            "mascot of the Kansas City Royals",
            "(JOIN mascot_of [Kansas City Royals])",
            "Kansas City Royals",
            "Sluggerrr",
        ),
        (
            "mascot of the San Francisco Giants",
            "(JOIN mascot_of [San Francisco Giants])",
            "San Francisco Giants",
            "Lou Seal",
        ),
        (
            "who coaches the San Francisco Giants",
            "(JOIN (R coached_by) [San Francisco Giants])",
            "San Francisco Giants",
            "Bruce Bochy",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        lines += &format!(
            r#"{{"id":"{i}","question":"{question}","topics":["{topic}"],"answers":["{answer}"],"logical_form":"{form}"}}"#
        );
        lines.push('\n');
    }
    std::fs::write(file, lines).unwrap();
}

#[test]
fn forms_are_learned_written_run_and_explained() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let (llm, other, asked, out) = (
        path("a.gguf"),
        path("b.gguf"),
        path("q.jsonl"),
        path("ckpt"),
    );
    gguf::write(llm.as_ref(), 1);
    gguf::write(other.as_ref(), 2);
    questions(asked.as_ref());
    let mut train = vec![
        "train",
        "amar",
        "--graph",
        "@toy",
        "--questions",
        &asked,
        "--valid",
        &asked,
        "--llm",
        &llm,
        "--out",
        &out,
        "--json",
    ];
    for setting in [
        "epochs=150",
        "patience=150",
        "optimiser.learning_rate=0.02",
        "sizes.dropout=0.0",
        "sizes.bottleneck=8",
        "sizes.attention=8",
        "sizes.gate=8",
        "prompting.texts.subgraphs=2",
        "prompting.texts.relations=4",
    ] {
        train.extend(["--set", setting]);
    }
    let trained = json(&wherefore(&train));
    assert_eq!(trained["questions"], 3);
    assert_eq!(trained["best"]["exact"], 1.0, "{}", trained["best"]);

    let told = json(&wherefore(&[
        "logic",
        "@toy",
        "--questions",
        &asked,
        "--model",
        &out,
        "--beams",
        "3",
        "--batch",
        "2",
        "--json",
    ]));
    assert_eq!(told["all"]["questions"], 3);
    assert_eq!(told["all"]["exact"], 1.0, "{told}");
    assert_eq!(told["runnable"]["f1"], 1.0, "{told}");

    let answer = json(&wherefore(&[
        "ask",
        "@toy",
        "who coaches the San Francisco Giants",
        "--model",
        &out,
        "--json",
    ]));
    assert_eq!(answer["answers"][0]["name"], "Bruce Bochy", "{answer}");
    assert_eq!(
        answer["logical_form"],
        "(JOIN (R coached_by) [San Francisco Giants])"
    );
    assert_eq!(answer["written_forms"][0], answer["logical_form"]);
    assert_eq!(answer["evidence"][0]["verified"], true);
    let texts = answer["retrieved"].as_array().unwrap();
    assert_eq!(texts[0]["aspect"], "entities");
    assert!(
        texts
            .iter()
            .all(|text| (0.0..=1.0).contains(&text["gate"].as_f64().unwrap()))
    );

    let folder = path("run");
    let run = wherefore(&[
        "eval",
        "--graph",
        "@toy",
        "--questions",
        &asked,
        "--model",
        &out,
        "--out",
        &folder,
        "--json",
    ]);
    assert!(run.status.success());
    let lines = std::fs::read_to_string(place.path().join("run/answers.jsonl")).unwrap();
    let answers: Vec<Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|answer| answer["status"] == "answered"));

    // the same adapter around other weights
    let config = path("other.toml");
    let text = format!("[retrieve]\nkind = \"amar\"\nmodel = {out:?}\nllm = {other:?}\n");
    std::fs::write(&config, text).unwrap();
    let refused = wherefore(&["ask", "@toy", "who?", "--config", &config]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("was trained around `gguf:tiny:"), "{said}");
    assert!(said.contains("hint:"), "{said}");
}

#[test]
fn a_training_without_model_or_forms_says_so() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let (asked, out, llm) = (path("q.jsonl"), path("ckpt"), path("a.gguf"));
    questions(asked.as_ref());
    let begun = [
        "train",
        "amar",
        "--graph",
        "@toy",
        "--questions",
        &asked,
        "--out",
        &out,
    ];
    let done = wherefore(&begun);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("--llm FILE.gguf"), "{said}");
    gguf::write(llm.as_ref(), 1);
    let plain = r#"{"id":"1","question":"who?","topics":["Lou Seal"],"answers":["x"]}"#;
    std::fs::write(&asked, format!("{plain}\n")).unwrap();
    let done = wherefore(&[&begun[..], &["--valid", &asked, "--llm", &llm]].concat());
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains("no training question has a known form"),
        "{said}"
    );
}
