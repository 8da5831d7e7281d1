//! `wherefore ask --llm` against servers and files that do what they should not, and some that do.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

const MASCOT: &str = "Who is the mascot of the San Francisco Giants?";

fn wherefore(home: &Path, arguments: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args(arguments)
        .env("WHEREFORE_COMPLETIONS", home.join("completions"))
        .env("WHEREFORE_MODELS", home.join("models"))
        .env("WHEREFORE_API_KEY", "sk-hunter2")
        .output()
        .unwrap()
}

fn ask(home: &Path, model: &str, more: &[&str]) -> Output {
    let arguments = ["ask", "@toy", MASCOT, "--llm", model];
    wherefore(home, &[&arguments, more].concat())
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

fn script(home: &Path, text: &str) -> String {
    let path = home.join("script.jsonl");
    std::fs::write(&path, serde_json::json!({ "text": text }).to_string()).unwrap();
    format!("script:{}", path.display())
}

/// Serves every connection with `reply` after its request was read.
fn serve(reply: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&stream);
            reply(&mut stream);
        }
    });
    format!("http://{address}#tiny?retries=0&timeout_ms=500")
}

fn read_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
}

fn says(status: &str, kind: &str, body: &[u8]) -> String {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
    let reply = [head.as_bytes(), body].concat();
    serve(move |stream| {
        // whoever hangs up has seen enough
        let _ = stream.write_all(&reply);
    })
}

#[test]
fn a_language_model_answers_from_evidence_that_is_checked() {
    let home = tempfile::tempdir().unwrap();
    let model = script(
        home.path(),
        "It says so.\n1. ans: \"lou seal\"\nans: Evil Twin",
    );
    let output = ask(home.path(), &model, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer = json(&output);
    assert_eq!(answer["answers"][0]["name"], "Lou Seal");
    assert_eq!(answer["answers"].as_array().unwrap().len(), 1);
    assert_eq!(answer["withheld"][0]["name"], "Evil Twin");
    assert_eq!(answer["text"], "It says so.");
    assert_eq!(answer["llm"]["calls"], 1);
    for triple in answer["evidence"].as_array().unwrap() {
        assert_eq!(triple["verified"], true);
    }
    let people = ask(home.path(), &model, &[]);
    let text = String::from_utf8_lossy(&people.stdout).into_owned();
    assert!(text.starts_with("Lou Seal"), "{text}");
    assert!(
        text.contains("because") && text.contains("1 call,"),
        "{text}"
    );
    assert!(text.contains("from the cache"), "{text}");
    assert!(String::from_utf8_lossy(&people.stderr).contains("withheld: Evil Twin"));
}

#[test]
fn nothing_named_by_the_graph_is_no_answer_unless_it_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let model = script(home.path(), "ans: Evil Twin");
    let output = ask(home.path(), &model, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["status"], "abstained");
    let marked = json(&ask(home.path(), &model, &["--json", "--keep-ungrounded"]));
    assert_eq!(marked["answers"][0]["ungrounded"], true);
    assert_eq!(marked["answers"][0]["name"], "Evil Twin");
}

#[test]
fn a_planted_triple_and_a_planted_name_are_caught_later() {
    let home = tempfile::tempdir().unwrap();
    let model = script(home.path(), "ans: Lou Seal");
    let good = json(&ask(home.path(), &model, &["--json"]));
    let verify = |answer: &Value| {
        let file = home.path().join("answer.json");
        std::fs::write(&file, answer.to_string()).unwrap();
        let file = file.to_str().unwrap();
        wherefore(home.path(), &["verify", file, "--graph", "@toy"])
    };
    assert_eq!(verify(&good).status.code(), Some(0));
    let mut triple = good.clone();
    let last = good["answers"][0]["rationale"][0].as_u64().unwrap() as usize;
    for key in ["head", "tail"] {
        if triple["evidence"][last][key] == "Lou Seal" {
            triple["evidence"][last][key] = "Bruce Bochy".into();
        }
    }
    for id in triple["evidence"][last]["ids"].as_array_mut().unwrap() {
        if *id == good["answers"][0]["id"] {
            *id = "Bruce Bochy".into();
        }
    }
    triple["answers"][0]["name"] = "Bruce Bochy".into();
    triple["answers"][0]["id"] = "Bruce Bochy".into();
    let mut name = good.clone();
    name["answers"][0]["name"] = "Evil Twin".into();
    for planted in [triple, name] {
        let output = verify(&planted);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("does not hold"));
    }
}

#[test]
fn sentences_that_nothing_proves_are_marked() {
    let home = tempfile::tempdir().unwrap();
    let said = "It is Lou Seal. He was drawn by Picasso.\nans: Lou Seal";
    let model = script(home.path(), said);
    let mut answer = json(&ask(home.path(), &model, &["--json"]));
    assert_eq!(
        answer["unproved"],
        serde_json::json!(["He was drawn by Picasso."])
    );
    let shown = ask(home.path(), &model, &[]);
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains("Not proved: He was drawn by Picasso.")
    );
    // who takes the mark away has a file that does not hold, even without a seal
    let fields = answer.as_object_mut().unwrap();
    fields.remove("unproved");
    fields.remove("seal");
    let file = home.path().join("answer.json");
    std::fs::write(&file, answer.to_string()).unwrap();
    let output = wherefore(
        home.path(),
        &["verify", file.to_str().unwrap(), "--graph", "@toy"],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn completions_are_kept_and_recorded_ones_replay() {
    let home = tempfile::tempdir().unwrap();
    let body = r#"{"choices":[{"message":{"content":"ans: Lou Seal"},"finish_reason":"stop"}],"usage":{"prompt_tokens":300,"completion_tokens":6}}"#;
    let server = says("200 OK", "application/json", body.as_bytes());
    let record = home.path().join("record.jsonl");
    let record = record.to_str().unwrap();
    let first = json(&ask(home.path(), &server, &["--json", "--record", record]));
    assert_eq!(first["llm"]["prompt_tokens"], 300);
    assert_eq!(first["llm"]["cached"], Value::Null);
    let again = json(&ask(home.path(), &server, &["--json"]));
    assert_eq!(again["llm"]["cached"], 1);
    let anew = json(&ask(home.path(), &server, &["--json", "--no-cache"]));
    assert_eq!(anew["llm"]["cached"], Value::Null);
    let replayed = json(&ask(home.path(), &format!("script:{record}"), &["--json"]));
    assert_eq!(replayed["answers"], first["answers"]);
    let kept = std::fs::read_to_string(record).unwrap();
    assert!(!kept.contains("hunter2"));
}

#[test]
fn budgets_are_kept_and_told() {
    let home = tempfile::tempdir().unwrap();
    let model = script(home.path(), "ans: Lou Seal");
    let none = ask(home.path(), &model, &["--max-calls", "0"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stdout).contains("no further call"));
    let few = ask(home.path(), &model, &["--max-tokens", "100"]);
    assert!(String::from_utf8_lossy(&few.stdout).contains("too few"));
    let slow = serve(|stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"ans: Lou Seal\\n\"}}]}\n\n";
        let _ = stream.write_all((head.to_owned() + piece).as_bytes());
        std::thread::sleep(Duration::from_secs(3));
    });
    let output = ask(
        home.path(),
        &slow.replace("500", "5000"),
        &["--max-ms", "300", "--json"],
    );
    let answer = json(&output);
    assert_eq!(answer["answers"][0]["name"], "Lou Seal");
    assert!(
        answer["notes"][0]
            .as_str()
            .unwrap()
            .contains("was stopped after")
    );
    let without = wherefore(home.path(), &["ask", "@toy", MASCOT, "--max-calls", "1"]);
    assert_eq!(without.status.code(), Some(2));
}

#[test]
fn whatever_a_server_does_is_a_clear_error() {
    let home = tempfile::tempdir().unwrap();
    let event = |data: &str| {
        let body = format!("data: {data}\n\n");
        says("200 OK", "text/event-stream", body.as_bytes())
    };
    let endless = serve(|stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"na \"}}]}\n\n";
        while stream.write_all(piece.as_bytes()).is_ok() {}
    });
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (model, code, told) in [
        (
            format!("http://{nobody}#m?retries=0"),
            "server-unreachable",
            "cannot be reached",
        ),
        (
            serve(|_| std::thread::sleep(Duration::from_secs(2))),
            "server-unreachable",
            "no reply",
        ),
        (
            event(r#"{"choices":[{"delta":{"content":"ans: L"}}]}"#),
            "bad-reply",
            "closed before the end",
        ),
        (
            says("200 OK", "text/html", b"<html>"),
            "bad-reply",
            "text/html",
        ),
        (
            event(r#"{"error":{"message":"out of memory"}}"#),
            "bad-reply",
            "out of memory",
        ),
        (
            says("200 OK", "application/json", b"\xff\xfe"),
            "bad-reply",
            "no UTF-8",
        ),
        (endless, "bad-reply", "goes on after"),
        (
            says(
                "200 OK",
                "application/json",
                br#"{"choices":[{"message":{"content":""}}]}"#,
            ),
            "bad-reply",
            "empty choice",
        ),
        (
            says(
                "401 Unauthorized",
                "application/json",
                br#"{"error":{"message":"wrong key sk-hunter2"}}"#,
            ),
            "server-refused",
            "wrong key",
        ),
        (
            says("500 Oops", "text/plain", b"dead"),
            "server-refused",
            "status 500",
        ),
        ("http://localhost:1".into(), "bad-option", "URL#MODEL"),
        ("nosuch.gguf".into(), "unknown-model", "nosuch.gguf"),
        ("script:nosuch.jsonl".into(), "io", "nosuch.jsonl"),
    ] {
        let output = ask(home.path(), &model, &["--json"]);
        assert_eq!(output.status.code(), Some(2), "{told}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["error"]["code"], code, "{told}: {text}");
        assert!(text.contains(told), "{told}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

/// A GGUF header with these texts and one tensor of this kind, and nothing after it.
fn gguf(texts: &[(&str, &str)], kind: u32) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3u32.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend((texts.len() as u64).to_le_bytes());
    for (key, value) in texts {
        bytes.extend(text(key));
        bytes.extend(8u32.to_le_bytes());
        bytes.extend(text(value));
    }
    bytes.extend(text("token_embd.weight"));
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(32u64.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes
}

#[test]
fn a_file_that_is_no_usable_model_is_a_clear_error() {
    let home = tempfile::tempdir().unwrap();
    let whole = gguf(&[("general.architecture", "llama")], 0);
    for (bytes, code, told) in [
        (Vec::new(), "bad-gguf", "damaged or of another kind"),
        (b"not a model at all".to_vec(), "bad-gguf", "magic"),
        (
            whole[..whole.len() / 2].to_vec(),
            "bad-gguf",
            "damaged or of another kind",
        ),
        (whole.clone(), "bad-gguf", "llama.block_count"),
        (
            gguf(&[("general.architecture", "mamba")], 0),
            "unknown-family",
            "`mamba`",
        ),
        (
            gguf(&[("general.architecture", "llama")], 99),
            "bad-gguf",
            "99",
        ),
        (
            gguf(&[("general.name", "x")], 0),
            "bad-gguf",
            "general.architecture",
        ),
    ] {
        let path = home.path().join("model.gguf");
        std::fs::write(&path, bytes).unwrap();
        let output = ask(home.path(), path.to_str().unwrap(), &["--json"]);
        assert_eq!(output.status.code(), Some(2), "{told}: {output:?}");
        let error: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(error["error"]["code"], code, "{error}");
        assert!(error.to_string().contains(told), "{told}: {error}");
    }
}

#[test]
fn evaluation_asks_a_language_model_too_and_the_second_time_costs_nothing() {
    let home = tempfile::tempdir().unwrap();
    let questions = home.path().join("questions.jsonl");
    let line = format!(
        r#"{{"id":"1","question":"{MASCOT}","topics":["San Francisco Giants"],"answers":["Lou Seal"]}}"#
    );
    std::fs::write(&questions, line).unwrap();
    let model = script(home.path(), "ans: Lou Seal");
    let run = |folder: &str| {
        let out = home.path().join(folder);
        let output = wherefore(
            home.path(),
            &[
                "eval",
                "--graph",
                "@toy",
                "--questions",
                questions.to_str().unwrap(),
                "--out",
                out.to_str().unwrap(),
                "--llm",
                &model,
                "--json",
            ],
        );
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        json(&output)
    };
    let first = run("first");
    let second = run("second");
    assert_eq!(first["overall"]["lenient"], second["overall"]["lenient"]);
    let lines = std::fs::read_dir(home.path().join("second")).unwrap();
    let kept: String = lines
        .filter_map(|e| std::fs::read_to_string(e.unwrap().path()).ok())
        .collect();
    assert!(kept.contains("\"cached\":1"), "{kept}");
}

#[test]
fn steps_are_shown_on_the_terminal_in_json_and_in_the_picture() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path();
    let path = home.join("script.jsonl");
    let lines = [
        r#"{"contains": "You split a question", "text": "Thought: the club, then its city.\n1. Which club has the mascot Lou Seal?\n2. Where is that club?"}"#,
        r#"{"contains": "You rewrite a question", "text": "Where are the San Francisco Giants"}"#,
        r#"{"contains": "the smaller questions it was split into", "text": "ans: San Francisco"}"#,
        r#"{"contains": "Question: Which club", "text": "ans: San Francisco Giants"}"#,
        r#"{"contains": "Question: Where are", "text": "ans: San Francisco"}"#,
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let model = format!("script:{}", path.display());
    let picture = home.join("answer.html");
    let question = "In which city is the club with the mascot Lou Seal?";
    let ask = |more: &[&str]| {
        let arguments = [
            "ask", "@toy", question, "--method", "kg-rag", "--llm", &model,
        ];
        wherefore(home, &[&arguments, more].concat())
    };
    let shown = ask(&["--html", picture.to_str().unwrap()]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("the club, then its city."), "{text}");
    assert!(
        text.contains("2. Where are the San Francisco Giants?"),
        "{text}"
    );
    assert!(text.contains("→ San Francisco Giants"), "{text}");
    let html = std::fs::read_to_string(&picture).unwrap();
    assert!(html.contains("Step by step") && html.contains("Where are the San Francisco Giants?"));
    let answer = json(&ask(&["--json"]));
    assert_eq!(answer["answers"][0]["name"], "San Francisco");
    assert_eq!(
        answer["trace"]["steps"][1]["question"],
        "Where is that club?"
    );
    assert_eq!(answer["llm"]["calls"], 5);
    let short = json(&ask(&["--json", "--max-calls", "2"]));
    assert_eq!(short["llm"]["calls"], 2);
    assert!(short["notes"][0].as_str().unwrap().contains("1 of 2 steps"));
}

#[test]
fn labels_are_written_by_a_model_and_combined() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path();
    let questions = home.join("questions.jsonl");
    let line = serde_json::json!({
        "id": "1", "question": "Whose mascot is Lou Seal?",
        "topics": ["Lou Seal"], "answers": ["San Francisco Giants"],
    });
    std::fs::write(&questions, format!("{line}\n")).unwrap();
    let model = script(home, "It is the mascot.\nans: Path 0");
    let (file, out) = (questions.to_str().unwrap(), home.join("labels.jsonl"));
    let out = out.to_str().unwrap();
    let arguments = [
        "label",
        "--graph",
        "@toy",
        "--questions",
        file,
        "--llm",
        &model,
    ];
    let done = wherefore(home, &[&arguments[..], &["--out", out, "--json"]].concat());
    assert!(done.status.success(), "{done:?}");
    let told = json(&done);
    assert_eq!(
        (&told["questions"], &told["fallbacks"]),
        (&1.into(), &0.into())
    );
    let label: Value = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    assert_eq!(label["picked"], serde_json::json!([0]));
    assert_eq!(label["paths"][0][0][1], "mascot of");
    let both = home.join("both.jsonl");
    let combined = ["label", "--combine", "intersection", out, out, "--out"];
    let done = wherefore(home, &[&combined[..], &[both.to_str().unwrap()]].concat());
    assert!(done.status.success(), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("1 questions"));
    // neither questions nor files
    assert_eq!(
        wherefore(home, &["label", "--out", out]).status.code(),
        Some(2)
    );
}
