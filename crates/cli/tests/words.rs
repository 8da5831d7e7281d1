//! `wherefore link` and `wherefore model` as they are typed.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args(args)
        .env("WHEREFORE_MODELS", "/nowhere/at/all")
        .env("COLUMNS", "100")
        .output()
        .unwrap()
}

fn shown(output: &Output) -> String {
    format!(
        "status: {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

macro_rules! assert_shown {
    ($name:expr, $output:expr) => {
        insta::with_settings!({
            filters => vec![(r"\d+ questions a second", "[rate] questions a second")],
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, shown(&$output));
        });
    };
}

#[test]
fn links_for_people_and_programs() {
    assert_shown!(
        "link",
        run(&[
            "link",
            "@toy",
            "Who is the mascot of the giants in San Fransisco?"
        ])
    );
    assert_shown!(
        "link_json",
        run(&["link", "@toy", "whose mascot is Lou Seal", "--json"])
    );
    assert_shown!(
        "link_topic",
        run(&["link", "@toy", "who?", "--topic", "oracle park"])
    );
    assert_shown!("link_nothing", run(&["link", "@toy", "what about Oraxxx?"]));
}

#[test]
fn linking_is_measured_over_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("questions.jsonl");
    let lines = [
        r#"{"id":"1","question":"Whose mascot is Lou Seal?","topics":["Lou Seal"],"answers":["San Francisco Giants"]}"#,
        r#"{"id":"2","question":"Who wrote Hamlet?","topics":["Hamlet"],"answers":["Shakespeare"]}"#,
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let path = file.to_str().unwrap();
    assert_shown!(
        "link_measured",
        run(&["link", "@toy", "--questions", path, "--misses", "5"])
    );
}

#[test]
fn questions_of_any_kind_are_linked_or_refused() {
    let long = "a ".repeat(50_000);
    for (text, status) in [
        ("", 2),
        ("🎉🎉", 2),
        (long.as_str(), 2),
        ("\u{202e}lou seal", 0),
        ("من هو Lou Seal؟", 0),
        ("lou\u{1b}[31m seal\u{7}", 0),
    ] {
        let output = run(&["link", "@toy", text]);
        assert_eq!(output.status.code(), Some(status), "{}", shown(&output));
        assert!(!output.stdout.contains(&0x1b));
    }
}

#[test]
fn alias_files_are_followed_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("aliases.tsv");
    let path = file.to_str().unwrap();
    let link = || run(&["link", "@toy", "where is the ballpark", "--aliases", path]);
    fs::write(&file, "the ballpark\tOracle Park\n").unwrap();
    let found = String::from_utf8(link().stdout).unwrap();
    assert!(
        found.contains("Oracle Park") && found.contains("alias"),
        "{found}"
    );
    fs::write(&file, "the ballpark Oracle Park\n").unwrap();
    let refused = link();
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("line 1") && told.contains("a tab"), "{told}");
}

#[test]
fn models_are_listed_and_a_missing_one_says_how_to_get_it() {
    let list = run(&["model", "list"]);
    assert_shown!("model_list", list);
    let missing = run(&["link", "@toy", "Lou Seal?", "--encoder", "minilm"]);
    assert_shown!("model_missing", missing);
}

#[test]
fn a_folder_that_is_no_model_is_refused() {
    let models = tempfile::tempdir().unwrap();
    let source = tempfile::tempdir().unwrap();
    let add = |args: &[&str]| {
        Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
            .args(["model", "add"])
            .args(args)
            .env("WHEREFORE_MODELS", models.path())
            .output()
            .unwrap()
    };
    let folder = source.path().join("mine");
    fs::create_dir(&folder).unwrap();
    let path = folder.to_str().unwrap();
    let empty = add(&[path]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&empty.stderr).contains("config.json"));
    fs::write(folder.join("config.json"), r#"{"model_type":"bert""#).unwrap();
    let cut = add(&[path]);
    assert_eq!(cut.status.code(), Some(2), "{}", shown(&cut));
}
