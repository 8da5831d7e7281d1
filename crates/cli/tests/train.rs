//! `train`, `index --model`, `ask --model --html` and `eval --model` as a user types them; a
//! training that is killed goes on; what cannot work is said.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const RELATIONS: [&str; 4] = ["mother", "employer", "home town", "favourite food"];

/// A graph of thirty people, and questions about them.
fn family(folder: &Path) -> (PathBuf, PathBuf) {
    let (mut triples, mut questions) = (String::new(), String::new());
    for person in 0..30 {
        for relation in RELATIONS {
            let answer = format!("{relation} {}", person % 7);
            writeln!(triples, "person {person}|{relation}|{answer}").unwrap();
            writeln!(
                questions,
                r#"{{"id":"{person}-{relation}","question":"what is the {relation} of person {person}?","topics":["person {person}"],"answers":["{answer}"]}}"#
            )
            .unwrap();
        }
    }
    let (file, asked) = (folder.join("kb.txt"), folder.join("questions.jsonl"));
    std::fs::write(&file, triples).unwrap();
    std::fs::write(&asked, questions).unwrap();
    let graph = folder.join("graph");
    let loaded = wherefore(&["load", "--format", "pipe", "--out"], &[&graph, &file]);
    assert!(loaded.status.success(), "{loaded:?}");
    (graph, asked)
}

fn command(args: &[&str], paths: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wherefore"));
    command.args(args).args(paths).stdin(Stdio::null());
    command
}

fn wherefore(args: &[&str], paths: &[&Path]) -> Output {
    command(args, paths).output().unwrap()
}

fn training(graph: &Path, questions: &Path, out: &Path) -> Command {
    let mut train = command(&["train", "qr-gat", "--json"], &[]);
    train.arg("--graph").arg(graph);
    train.arg("--questions").arg(questions);
    train.arg("--out").arg(out);
    for setting in [
        "sizes.hidden=32",
        "epochs=8",
        "patience=8",
        "batch_questions=8",
        "optimiser.learning_rate=0.0033",
        "ks=[1, 3]",
    ] {
        train.args(["--set", setting]);
    }
    train.stdout(Stdio::piped()).stderr(Stdio::piped());
    train
}

#[test]
fn a_killed_training_ends_the_same_and_its_checkpoint_answers() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, questions) = family(dir.path());
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    let done = training(&graph, &questions, &whole).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(
        report["best"]["triple_recall"]["3"].as_f64().unwrap() > 0.9,
        "{report}"
    );

    // killed as soon as a pass is safe
    let mut child = training(&graph, &questions, &killed).spawn().unwrap();
    let start = Instant::now();
    while !killed.join("config.json").exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // what answers with it until then says so
    let mut eval = command(&["eval", "--limit", "1", "--graph"], &[&graph]);
    eval.arg("--questions").arg(&questions);
    eval.arg("--model").arg(&killed);
    let run = eval
        .arg("--out")
        .arg(dir.path().join("unfinished"))
        .output();
    let told = String::from_utf8(run.unwrap().stderr).unwrap();
    assert!(told.contains("was stopped before its end"), "{told}");
    let again = training(&graph, &questions, &killed).output().unwrap();
    assert!(again.status.success(), "{again:?}");
    let weights = |folder: &Path| std::fs::read(folder.join("model.safetensors")).unwrap();
    assert_eq!(weights(&whole), weights(&killed));

    let picture = dir.path().join("answer.html");
    let ask = || {
        let mut ask = command(&["ask"], &[&graph]);
        ask.args(["what is the employer of person 3?", "--json", "--html"]);
        ask.arg(&picture).arg("--model").arg(&whole);
        let asked = ask.output().unwrap();
        assert!(asked.status.success(), "{asked:?}");
        serde_json::from_slice::<serde_json::Value>(&asked.stdout).unwrap()
    };
    let before = ask();
    assert_eq!(before["answers"][0]["name"], "employer 3");
    assert!(
        std::fs::read_to_string(&picture)
            .unwrap()
            .contains("class=\"topic\"")
    );
    let indexed = wherefore(&["index", "--model"], &[&whole, &graph]);
    assert!(indexed.status.success(), "{indexed:?}");
    assert_eq!(ask()["answers"][0]["name"], "employer 3");

    let mut eval = command(&["eval", "--json", "--graph"], &[&graph]);
    eval.arg("--questions")
        .arg(&questions)
        .arg("--model")
        .arg(&whole);
    eval.arg("--out").arg(dir.path().join("run"));
    eval.args(["--require", "lenient.hit@1=0.9"]);
    let evaluated = eval.output().unwrap();
    assert!(evaluated.status.success(), "{evaluated:?}");
}

#[test]
fn gnn2r_learns_both_steps_with_one_command_and_shows_its_rationale() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, questions) = family(dir.path());
    let model = dir.path().join("model");
    let mut train = command(&["train", "gnn2r", "--json"], &[]);
    train.arg("--graph").arg(&graph);
    train.arg("--questions").arg(&questions);
    train.arg("--out").arg(&model);
    for setting in [
        "sizes.hidden=32",
        "epochs=4",
        "batch_questions=8",
        "optimiser.learning_rate=0.005",
        "answering.trails.max_length=1",
        "sentences.epochs=2",
        "sentences.hidden=16",
    ] {
        train.args(["--set", setting]);
    }
    let done = train.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(model.join("sentences/config.json").exists(), "{report}");

    let picture = dir.path().join("answer.html");
    let mut ask = command(&["ask"], &[&graph]);
    ask.args(["what is the employer of person 3?", "--explain", "--html"]);
    ask.arg(&picture).arg("--model").arg(&model);
    let asked = ask.output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    let said = String::from_utf8_lossy(&asked.stderr);
    let read = "read as `what is the employer of person 3`";
    assert!(said.contains(read), "{said}");
    let text = String::from_utf8_lossy(&asked.stdout);
    for said in [
        "employer 3",
        "✓ person 3 ── employer ─▶ employer 3",
        "layer",
    ] {
        assert!(text.contains(said), "{said} is missing in\n{text}");
    }
    assert!(std::fs::metadata(&picture).unwrap().len() > 1000);

    // another checkpoint under the same name is another run
    let run = dir.path().join("run");
    let eval = || {
        let mut eval = command(&["eval", "--json", "--graph"], &[&graph]);
        eval.arg("--questions").arg(&questions);
        eval.arg("--model").arg(&model).arg("--out").arg(&run);
        eval.output().unwrap()
    };
    let evaluated = eval();
    assert!(evaluated.status.success(), "{evaluated:?}");
    let metrics: serde_json::Value = serde_json::from_slice(&evaluated.stdout).unwrap();
    let hit = &metrics["overall"]["metrics"]["strict.hit@1"]["value"];
    assert!(hit.as_f64().unwrap() > 0.95, "{hit}");
    assert!(eval().status.success());
    let config = model.join("config.json");
    let changed = std::fs::read_to_string(&config).unwrap() + " ";
    std::fs::write(&config, changed).unwrap();
    let refused = eval();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("checkpoint"));
}

#[test]
fn what_cannot_work_is_said_with_what_to_type() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, questions) = family(dir.path());
    let said = |output: &Output| {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let mut ask = command(&["ask"], &[&graph]);
    ask.args(["who?", "--method", "qsrag"]);
    let text = said(&ask.output().unwrap());
    assert!(
        text.contains("needs a trained model") && text.contains("--model CKPT"),
        "{text}"
    );
    let mut ask = command(&["ask"], &[&graph]);
    ask.args(["who?", "--method", "similarity", "--model"])
        .arg(dir.path());
    assert!(said(&ask.output().unwrap()).contains("takes no checkpoint"));
    let mut ask = command(&["ask"], &[&graph]);
    ask.args(["who?", "--model"]).arg(dir.path().join("none"));
    assert!(said(&ask.output().unwrap()).contains("config.json"));

    let out = dir.path().join("model");
    let mut train = training(&graph, &questions, &out);
    train.args(["--set", "sizes.heads=5"]);
    assert!(said(&train.output().unwrap()).contains("divisor of hidden"));
    let mut train = training(&graph, &questions, &out);
    train.args(["--set", "sizes.width=5"]);
    assert!(said(&train.output().unwrap()).contains("width"));
    let mut train = training(&graph, &questions, &out);
    train.args(["--device", "cuda"]);
    if !cfg!(feature = "cuda") {
        assert!(said(&train.output().unwrap()).contains("--features cuda"));
    }
    let mut train = training(&graph, &questions, &out);
    train.args(["--init"]).arg(dir.path().join("none"));
    assert!(said(&train.output().unwrap()).contains("config.json"));
}
