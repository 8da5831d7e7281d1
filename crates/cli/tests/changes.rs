//! `wherefore add`, `remove`, `compact` and `diff` as they are typed, and services as graphs.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn wherefore(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // a command that reads nothing may be gone by now
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const FILMS: &str = "Dune\tdirected_by\tDavid Lynch\nAlien\tdirected_by\tRidley Scott\n\
    Blade Runner\tdirected_by\tRidley Scott\nDune\trelease_year\t1984\n";

fn films() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("films.tsv"), FILMS).unwrap();
    let done = wherefore(folder.path(), &["load", "films.tsv", "--out", "films"], "");
    assert!(done.status.success(), "{}", err(&done));
    folder
}

#[test]
fn a_change_is_seen_at_once_and_survives_folding_in() {
    let folder = films();
    let run = |args: &[&str], input: &str| wherefore(folder.path(), args, input);
    let ask = || out(&run(&["ask", "films", "who directed Dune?"], ""));
    assert!(ask().contains("David Lynch"));
    let new = "Dune\tdirected_by\tDenis Villeneuve\nAlien\tdirected_by\tRidley Scott\n";
    let done = run(&["add", "-", "--format", "tsv", "--graph", "films"], new);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(
        out(&done).contains("1 added, 1 there already; 5 triples"),
        "{}",
        out(&done)
    );
    assert!(ask().contains("Denis Villeneuve") && ask().contains("David Lynch"));
    let gone = "Dune\tdirected_by\tDavid Lynch\n";
    let done = run(
        &[
            "remove", "-", "--format", "tsv", "--graph", "films", "--json",
        ],
        gone,
    );
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (report["removed"].as_u64(), report["triples"].as_u64()),
        (Some(1), Some(4))
    );
    assert!(!ask().contains("David Lynch"));
    let count = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }";
    let rows = run(&["sparql", "films", count, "--results", "csv"], "");
    assert_eq!(out(&rows), "n\r\n4\r\n");

    // which saved questions have another answer, and by which triple
    let saved = "{\"id\":\"1\",\"question\":\"who directed Dune?\",\"topics\":[],\"answers\":[]}\n\
                 {\"id\":\"2\",\"question\":\"who directed Alien?\",\"topics\":[],\"answers\":[]}\n";
    std::fs::write(folder.path().join("saved.jsonl"), saved).unwrap();
    let diff = run(
        &[
            "diff",
            "--graph",
            "films",
            "--questions",
            "saved.jsonl",
            "--json",
        ],
        "",
    );
    assert_eq!(diff.status.code(), Some(1), "{}", err(&diff));
    let report: Value = serde_json::from_slice(&diff.stdout).unwrap();
    assert_eq!(report["questions"], 2);
    let changed = report["changed"].as_array().unwrap();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0]["before"], serde_json::json!(["David Lynch"]));
    assert_eq!(changed[0]["after"], serde_json::json!(["Denis Villeneuve"]));
    let triple = |name: &str| serde_json::json!([["Dune", "directed by", name]]);
    assert_eq!(changed[0]["removed"], triple("David Lynch"));
    assert_eq!(changed[0]["added"], triple("Denis Villeneuve"));
    let told = out(&run(
        &["diff", "--graph", "films", "--questions", "saved.jsonl"],
        "",
    ));
    assert!(
        told.contains("+ Dune → directed by → Denis Villeneuve"),
        "{told}"
    );

    run(&["index", "films", "--encoder", "hashing", "--triples"], "");
    let done = run(&["compact", "films", "--memory", "64M"], "");
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(out(&done).contains("2 changes folded in"), "{}", out(&done));
    assert!(ask().contains("Denis Villeneuve") && !ask().contains("David Lynch"));
    // the index followed
    let info: Value =
        serde_json::from_slice(&run(&["info", "films", "--json"], "").stdout).unwrap();
    let parts = info["indexes"].as_array().unwrap();
    assert_eq!(parts.len(), 4);
    assert!(
        parts.iter().all(|part| part["current"] == true),
        "{parts:?}"
    );
    assert!(info.get("pending").is_none());
    let again = run(&["compact", "films", "--memory", "64M"], "");
    assert!(out(&again).contains("no changes to fold in"));
    // nothing to compare any more
    let diff = run(
        &["diff", "--graph", "films", "--questions", "saved.jsonl"],
        "",
    );
    assert_eq!(diff.status.code(), Some(2));
    assert!(err(&diff).contains("--against"), "{}", err(&diff));
}

#[test]
fn what_cannot_be_changed_is_told_with_what_to_do() {
    let folder = films();
    let run = |args: &[&str], input: &str| wherefore(folder.path(), args, input);
    let bad = run(
        &["add", "-", "--format", "nt", "--graph", "films"],
        "no triple\n",
    );
    assert_eq!(bad.status.code(), Some(2));
    assert!(
        err(&bad).contains("nothing was changed; line 1"),
        "{}",
        err(&bad)
    );
    let none = run(&["add", "films.tsv", "--graph", "nowhere"], "");
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("wherefore load"), "{}", err(&none));
    let missing = run(&["remove", "no.nt", "--graph", "films"], "");
    assert_eq!(missing.status.code(), Some(2), "{}", err(&missing));
    // a log that was cut is told, and the change goes on from there
    run(
        &["add", "-", "--format", "tsv", "--graph", "films"],
        "a\tb\tc\n",
    );
    let data = std::fs::read_dir(folder.path().join("films"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    let log = data.join("changes.log");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, [&bytes[..], &bytes[16..30]].concat()).unwrap();
    let done = run(
        &["add", "-", "--format", "tsv", "--graph", "films"],
        "d\te\tf\n",
    );
    assert_eq!(done.status.code(), Some(0));
    assert!(err(&done).contains("never acknowledged"), "{}", err(&done));
    assert!(out(&done).contains("6 triples"), "{}", out(&done));
}

#[test]
fn a_damaged_log_is_told_by_every_command_and_repaired_when_asked() {
    let folder = films();
    let run = |args: &[&str], input: &str| wherefore(folder.path(), args, input);
    let add = |line: &str| {
        let args = ["add", "-", "--format", "tsv", "--graph", "films"];
        run(&args, line)
    };
    for line in ["a\tb\tc\n", "d\te\tf\n", "g\th\ti\n"] {
        assert_eq!(add(line).status.code(), Some(0));
    }
    let whole = run(&["repair", "films"], "");
    assert_eq!(whole.status.code(), Some(0), "{}", err(&whole));
    assert!(out(&whole).contains("nothing is damaged"));
    let data = std::fs::read_dir(folder.path().join("films"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    let log = data.join("changes.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let place = bytes.len() / 2;
    bytes[place] ^= 2;
    std::fs::write(&log, &bytes).unwrap();
    let query = "SELECT * WHERE { ?s ?p ?o }";
    for told in [
        run(&["info", "films", "--check"], ""),
        run(&["info", "films"], ""),
        run(&["ask", "films", "who directed Dune?"], ""),
        run(&["sparql", "films", query], ""),
        run(&["compact", "films"], ""),
        add("x\ty\tz\n"),
    ] {
        assert_eq!(told.status.code(), Some(2), "{}", out(&told));
        let text = err(&told);
        assert!(
            text.contains("change log") && text.contains("damaged at byte"),
            "{text}"
        );
        assert!(text.contains("hint: `wherefore repair films`"), "{text}");
    }
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
    let told = run(&["repair", "films"], "");
    assert_eq!(told.status.code(), Some(1), "{}", err(&told));
    assert!(out(&told).contains("can be saved"), "{}", out(&told));
    let told = run(&["repair", "films", "--json"], "");
    let report: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(
        (&report["whole"], &report["written"]),
        (&false.into(), &false.into())
    );
    let saved = report["log"]["whole"].as_u64().unwrap();
    assert_eq!(saved + report["log"]["lost_changes"].as_u64().unwrap(), 3);
    let done = run(&["repair", "films", "--write"], "");
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(
        out(&done).contains("kept as `changes.damaged-1`"),
        "{}",
        out(&done)
    );
    assert_eq!(
        std::fs::read(data.join("changes.damaged-1")).unwrap(),
        bytes
    );
    let info = run(&["info", "films", "--check", "--json"], "");
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(info["pending"]["changes"].as_u64(), Some(saved));
    assert_eq!(info["verification"], "when-opened");
}

struct Started {
    child: Child,
    address: String,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(folder: &Path) -> Started {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args([
            "serve",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--graph",
            "films",
        ])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    Started {
        child,
        address: started["address"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn a_served_graph_is_a_service_that_other_commands_ask() {
    let folder = films();
    let nt = "<http://f/dune> <http://f/directed_by> <http://f/denis> .\n\
        <http://f/dune> <http://www.w3.org/2000/01/rdf-schema#label> \"Dune\"@en .\n\
        <http://f/denis> <http://www.w3.org/2000/01/rdf-schema#label> \"Denis Villeneuve\"@en .\n";
    std::fs::write(folder.path().join("rdf.nt"), nt).unwrap();
    let run = |args: &[&str]| wherefore(folder.path(), args, "");
    assert!(
        run(&["load", "rdf.nt", "--out", "films", "--replace"])
            .status
            .success()
    );
    let server = serve(folder.path());
    let url = format!("http://{}/v1/graphs/films/sparql", server.address);
    let asked = run(&["ask", &url, "who directed Dune?"]);
    assert_eq!(asked.status.code(), Some(0), "{}", err(&asked));
    assert!(out(&asked).contains("Denis Villeneuve"), "{}", out(&asked));
    let rows = run(&[
        "sparql",
        &url,
        "SELECT ?d WHERE { ?f <http://f/directed_by> ?d }",
    ]);
    assert!(out(&rows).contains("http://f/denis"), "{}", err(&rows));
    let no = run(&["sparql", &url, "ASK { <http://f/x> ?p ?o }"]);
    assert_eq!(no.status.code(), Some(1));
    let indexed = run(&["index", &url, "--out", "labels"]);
    assert_eq!(indexed.status.code(), Some(0), "{}", err(&indexed));
    let asked = run(&["ask", "labels", "who directed Dunee?"]);
    assert!(
        out(&asked).contains("Denis Villeneuve"),
        "{}{}",
        out(&asked),
        err(&asked)
    );
    let usage = run(&["index", &url]);
    assert_eq!(usage.status.code(), Some(2));
    drop(server);
    let down = run(&["ask", "labels", "who directed Dune?"]);
    assert_eq!(down.status.code(), Some(2));
    assert!(err(&down).contains("cannot be reached"), "{}", err(&down));
}
