//! The first minutes: `demo`, drafts of questions, manual pages and completions.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn wherefore(cache: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args(args)
        .env("XDG_CACHE_HOME", cache)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // who has seen enough closes their end
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_demo_answers_three_questions_and_then_what_is_typed() {
    let cache = tempfile::tempdir().unwrap();
    let typed = "\
And how high is it?
Which is longer, the Rhine or the Elbe?
:why
How many countries are there in Africa?
Who is the king of Sweden?
:method similarity
:method nonsense
:graph @toy
Who is the mascot of the Kansas City Royals?
:nonsense
\u{7}
:quit
What is the capital of Peru?
";
    let output = wherefore(cache.path(), &["demo"], typed);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    for said in [
        "Kenyan Shilling",
        "Belgium",
        "Kilimanjaro ── elevation ─▶ 5895",
        "(it = Kilimanjaro)",
        "✓ Rhine ── length ─▶ 1230",
        "`Elbe` is Elbe",
        "54 ",
        "No answer:",
        "similarity answers from now on",
        "there is no method `nonsense` here",
        "mascot of",
        "Sluggerrr",
        "there is no `:nonsense`",
    ] {
        assert!(out.contains(said), "{said} is not in\n{out}");
    }
    assert!(!out.contains("Lima"), "nothing is asked after the end");
    assert!(
        text(&output.stderr).contains("error:"),
        "a line without words"
    );
}

#[test]
fn the_sample_graph_can_be_named_wherever_a_graph_is_asked_for() {
    let cache = tempfile::tempdir().unwrap();
    let said = |args: &[&str]| {
        let output = wherefore(cache.path(), args, "");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(said(&["ask", "@world", "What is the capital of Peru?"]).contains("Lima"));
    assert!(said(&["info", "@world"]).contains("borders"));
    let query = "SELECT (COUNT(*) AS ?n) WHERE { ?c a <http://example.org/world/Country> }";
    assert!(said(&["sparql", "@world", query]).contains("197"));
    let missing = wherefore(cache.path(), &["ask", "@moon", "Who?"], "");
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("`@world` and `@toy`"));
}

#[test]
fn counts_and_choices_can_be_verified_later() {
    let cache = tempfile::tempdir().unwrap();
    for question in [
        "How many countries are there in Africa?",
        "Which is longer, the Rhine or the Elbe?",
        "What is the longest river in the world?",
        "Which countries border both France and Germany?",
    ] {
        let answer = cache.path().join("answer.json");
        let output = wherefore(cache.path(), &["ask", "@world", question, "--json"], "");
        std::fs::write(&answer, &output.stdout).unwrap();
        let path = answer.to_str().unwrap();
        let check = wherefore(cache.path(), &["verify", path, "--graph", "@world"], "");
        assert_eq!(check.status.code(), Some(0), "{question}: {check:?}");
        // another count of the same triples is no longer what they prove
        let changed = text(&output.stdout).replace("\"rationale\": [", "\"rationale\": [99999, ");
        std::fs::write(&answer, changed).unwrap();
        let check = wherefore(cache.path(), &["verify", path, "--graph", "@world"], "");
        assert_ne!(check.status.code(), Some(0), "{question}");
    }
}

#[test]
fn drafts_are_questions_that_can_be_read_and_answered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drafts.jsonl");
    let path = file.to_str().unwrap();
    let made = wherefore(
        folder.path(),
        &["questions", "@toy", "--count", "25", "--out", path],
        "",
    );
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let run = folder.path().join("run");
    let run = [
        "eval",
        "--graph",
        "@toy",
        "--questions",
        path,
        "--out",
        run.to_str().unwrap(),
    ];
    let ran = wherefore(folder.path(), &run, "");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let shown = wherefore(folder.path(), &["questions", "@toy", "--count", "2"], "");
    assert_eq!(text(&shown.stdout).lines().count(), 2);
}

#[test]
fn manual_pages_and_completions_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().join("man1");
    let made = wherefore(folder.path(), &["man", "--out", man.to_str().unwrap()], "");
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    for page in ["wherefore.1", "wherefore-ask.1", "wherefore-demo.1"] {
        let page = std::fs::read_to_string(man.join(page)).unwrap();
        assert!(page.contains(".TH"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let made = wherefore(folder.path(), &["completions", shell], "");
        assert!(text(&made.stdout).contains("wherefore"));
    }
}
