//! `wherefore serve` and `wherefore mcp` as they are started and stopped.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use wherefore_lab::questions;

fn wherefore() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
}

struct Started {
    child: Child,
    address: String,
}

fn start(args: &[&str]) -> Started {
    started(wherefore().args(["serve", "--graph", "@toy"]).args(args))
}

fn started(command: &mut Command) -> Started {
    let mut child = command
        .args(["--json", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    Started {
        child,
        address: started["address"].as_str().unwrap().to_owned(),
    }
}

impl Started {
    fn send(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (_, body) = reply.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// Asks the process to end, and gives its exit status.
    fn end(mut self) -> Option<i32> {
        // the shell's own: a bare machine has no program of that name
        let kill = format!("kill -TERM {}", self.child.id());
        let told = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(told.success());
        self.child.wait().unwrap().code()
    }
}

#[test]
fn the_page_offers_questions_of_the_sample_that_are_answered_right() {
    let cache = tempfile::tempdir().unwrap();
    let server = started(
        wherefore()
            .args(["demo", "--serve"])
            .env("XDG_CACHE_HOME", cache.path()),
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/sample/dev.jsonl");
    let shipped = questions::read(&file, None).unwrap();
    let graphs = server.send("GET", "/v1/graphs", "");
    let examples = graphs["graphs"][0]["examples"].as_array().unwrap();
    assert!(examples.len() >= 4);
    for example in examples {
        let text = example.as_str().unwrap();
        let gold = shipped.iter().find(|q| q.question == text).unwrap();
        let body = json!({ "question": text }).to_string();
        let answer = server.send("POST", "/v1/ask", &body);
        let first = answer["answers"][0]["name"].as_str();
        let right = |name: &questions::Name| first == Some(name.name.as_str());
        assert!(gold.answers.iter().any(right), "{text}: {answer}");
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn thumbs_become_questions_that_training_reads() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("opinions");
    let server = start(&["--feedback", kept.to_str().unwrap()]);
    let question = "Who is the mascot of the San Francisco Giants?";
    let answer = server.send(
        "POST",
        "/v1/ask",
        &json!({ "question": question }).to_string(),
    );
    let body = json!({
        "question": question,
        "vote": "up",
        "topics": [answer["links"][0]["id"]],
        "answers": [answer["answers"][0]["name"]],
    });
    let said = server.send("POST", "/v1/feedback", &body.to_string());
    assert_eq!(said["ids"].as_array().unwrap().len(), 1);
    let body = json!({ "question": "Who coaches?", "vote": "down", "answers": ["Lou Seal"] });
    server.send("POST", "/v1/feedback", &body.to_string());
    assert_eq!(server.end(), Some(0));

    let asked = questions::read(&kept.join("toy.jsonl"), None).unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].question, question);
    assert_eq!(asked[0].topics[0].name, "San Francisco Giants");
    assert_eq!(asked[0].answers[0].name, "Lou Seal");
    let rejected = questions::read(&kept.join("toy.down.jsonl"), None).unwrap();
    assert_eq!(rejected[0].kind.as_deref(), Some("rejected"));
}

#[test]
fn runs_of_eval_are_browsed_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("q.jsonl");
    let line = json!({ "question": "Who is the mascot of the San Francisco Giants?",
                       "topics": ["San Francisco Giants"], "answers": ["Lou Seal"] });
    std::fs::write(&file, format!("{line}\n")).unwrap();
    let runs = folder.path().join("runs");
    let out = runs.join("walk");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let ended = wherefore()
        .args([
            "eval",
            "--quiet",
            "--graph",
            "@toy",
            "--questions",
            &text(&file),
        ])
        .args(["--out", &text(&out)])
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let server = start(&["--runs", &text(&runs)]);
    let list = server.send("GET", "/v1/runs", "");
    assert_eq!(list["runs"][0]["name"], "walk");
    assert_eq!(list["runs"][0]["finished"], true);
    let overall = &list["runs"][0]["metrics"]["metrics"];
    assert!(overall.get("lenient.hit@1").is_some(), "{overall}");
    let right = server.send("GET", "/v1/runs/walk/questions?only=right", "");
    let first = &right["questions"][0];
    assert_eq!((&right["total"], &first["f1"]), (&json!(1), &json!(1.0)));
    assert_eq!(first["expected"], json!(["Lou Seal"]));
    assert!(first["confidence"].is_f64(), "{first}");
    let run = server.send("GET", "/v1/runs/walk", "");
    assert_eq!((&run["done"], &run["problem"]), (&json!(1), &Value::Null));
    assert!(run["method"].is_string(), "{run}");
    let one = server.send("GET", "/v1/runs/walk/questions/0", "");
    assert_eq!(one["answer"]["answers"][0]["name"], "Lou Seal");
    assert_eq!(one["expected"]["answers"][0], "Lou Seal");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn mcp_is_spoken_on_standard_input_and_output() {
    let mut child = wherefore()
        .args(["mcp", "--graph", "films=@toy"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "ask", "arguments": { "question": "Whose mascot is Lou Seal?", "graph": "films" } } });
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("{call}\n").as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let answers = &reply["result"]["structuredContent"]["answers"];
    assert_eq!(answers[0]["name"], "San Francisco Giants");
}

#[test]
fn the_container_is_reached_by_its_names_alone() {
    let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/container.toml");
    let mut child = wherefore()
        .args(["serve", "--graph", "@toy", "--json", "--config"])
        .arg(packaged)
        .args(["--listen", "0.0.0.0:0"])
        .env("WHEREFORE_HOSTS", "graph.example, other.example")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let address = told["address"]
        .as_str()
        .unwrap()
        .replace("0.0.0.0", "127.0.0.1");
    for (host, status) in [
        ("localhost:7878", "200"),
        ("127.0.0.1:7878", "200"),
        ("172.17.0.2:7878", "200"),
        ("graph.example", "200"),
        ("other.example:80", "200"),
        // a name that somebody made to lead here
        ("rebound.evil.example:7878", "403"),
    ] {
        let mut stream = TcpStream::connect(&address).unwrap();
        let head = format!("GET /v1/graphs HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert_eq!(reply.split(' ').nth(1), Some(status), "{host}: {reply}");
    }
    assert_eq!(Started { child, address }.end(), Some(0));
}

#[test]
fn what_keeps_it_from_starting_is_told_with_a_hint() {
    let refused = |args: &[&str], status: i32, words: &str| {
        let output = wherefore().arg("serve").args(args).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains(words) && text.contains("hint: "), "{text}");
    };
    refused(&[], 2, "there is no graph to serve");
    refused(&["--graph", "no/such"], 2, "cannot open the graph `such`");
    refused(
        &["--graph", "@toy", "--listen", "0.0.0.0:0"],
        2,
        "no API key is set",
    );
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("open.toml");
    std::fs::write(&config, "anonymous = true\n").unwrap();
    let config = config.to_str().unwrap();
    refused(
        &[
            "--graph",
            "@toy",
            "--listen",
            "0.0.0.0:0",
            "--config",
            config,
        ],
        2,
        "`hosts` names none",
    );
    refused(
        &["--graph", "@toy", "--method", "qsrag"],
        2,
        "cannot prepare the method `qsrag`",
    );
    let key = wherefore()
        .args(["serve", "--new-key", "a"])
        .output()
        .unwrap();
    let shown = String::from_utf8(key.stdout).unwrap();
    assert!(
        shown.starts_with("wf-") && shown.trim().len() == 51,
        "{shown}"
    );
}

/// Queries that once ended the server, or held all of its threads.
#[test]
fn heavy_queries_of_strangers_end_at_their_limits_and_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let lines: Vec<String> = (0..20_000)
        .map(|i| format!("e{i}\tr{}\te{}\n", i % 5, (i * 7919) % 20_000))
        .collect();
    std::fs::write(path("big.tsv"), lines.concat()).unwrap();
    let config = "[limits]\nsparql_seconds = 1.0\nsparql_workers = 2\nsparql_memory = 67108864\n";
    std::fs::write(path("serve.toml"), config).unwrap();
    let loaded = wherefore()
        .args(["load", &path("big.tsv"), "--out", &path("big"), "--quiet"])
        .output()
        .unwrap();
    assert!(loaded.status.success());
    let graph = format!("big={}", path("big"));
    let server =
        started(wherefore().args(["serve", "--graph", &graph, "--config", &path("serve.toml")]));
    let query = |text: &str| {
        let form: String = (text.bytes()).map(|byte| format!("%{byte:02X}")).collect();
        server.send("GET", &format!("/v1/sparql?query={form}"), "")
    };
    let pairs = "{ ?a ?p ?b . ?c ?q ?d }";
    let heavy = [
        (
            format!("SELECT (MAX(STR(?a)) AS ?n) {pairs}"),
            "out-of-time",
        ),
        (
            format!("SELECT (GROUP_CONCAT(?b) AS ?n) {pairs}"),
            "out-of-",
        ),
        (
            format!("SELECT DISTINCT ?a ?d {pairs} ORDER BY ?a"),
            "out-of-",
        ),
    ];
    std::thread::scope(|scope| {
        let query = &query;
        let running: Vec<_> = (heavy.iter())
            .map(|(text, code)| scope.spawn(move || (query(text), *code)))
            .collect();
        let asked = r#"{"question":"which r1 has e1?"}"#;
        for _ in 0..5 {
            let answer = server.send("POST", "/v1/ask", asked);
            assert!(answer["status"].is_string(), "{answer}");
        }
        for thread in running {
            let (reply, code) = thread.join().unwrap();
            assert!(reply["code"].as_str().unwrap().starts_with(code), "{reply}");
        }
    });
    let count = query("SELECT (COUNT(*) AS ?n) { ?a ?p ?b }");
    assert_eq!(count["results"]["bindings"][0]["n"]["value"], "20000");
    assert_eq!(server.send("GET", "/ready", "")["status"], "ready");
    assert_eq!(server.end(), Some(0));
}
