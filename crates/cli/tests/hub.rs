//! `wherefore model add` fetches a model from a hub: here a few lines of HTTP that speak as the hub
//! does, with the small BERT of the model crate's fixtures.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FILES: [&str; 3] = ["config.json", "model.safetensors", "tokenizer.json"];

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures/bert")
}

/// Serves the model `tester/tiny` until the test ends; `cut` files are half of what they should be.
fn serve(cut: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut bodies: HashMap<String, Vec<u8>> = HashMap::new();
    let names: Vec<String> = FILES
        .iter()
        .map(|f| format!("{{\"rfilename\":\"{f}\"}}"))
        .collect();
    let info = format!("{{\"sha\":\"abc\",\"siblings\":[{}]}}", names.join(","));
    bodies.insert("/api/models/tester/tiny/revision/main".into(), info.into());
    for file in FILES {
        let mut body = std::fs::read(fixture().join(file)).unwrap();
        if cut.contains(&file) {
            body.truncate(body.len() / 2);
        }
        bodies.insert(format!("/tester/tiny/resolve/main/{file}"), body);
    }
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let bodies = bodies.clone();
            std::thread::spawn(move || answer(stream.unwrap(), &bodies));
        }
    });
    address
}

fn answer(mut stream: TcpStream, bodies: &HashMap<String, Vec<u8>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let path = first.split(' ').nth(1).unwrap().to_owned();
    let mut range = None;
    for line in lines.map_while(Result::ok).take_while(|l| !l.is_empty()) {
        let line = line.to_ascii_lowercase();
        if let Some(asked) = line.strip_prefix("range: bytes=") {
            let (from, to) = asked.split_once('-').unwrap();
            range = Some((from.parse::<usize>().unwrap(), to.parse::<usize>().ok()));
        }
    }
    let Some(body) = bodies.get(&path) else {
        let gone = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(gone.as_bytes()).unwrap();
        return;
    };
    let (status, part, extra) = match range {
        Some((from, to)) => {
            let to = to.unwrap_or(body.len() - 1).min(body.len() - 1);
            let of = format!("Content-Range: bytes {from}-{to}/{}\r\n", body.len());
            ("206 Partial Content", &body[from..=to], of)
        }
        None => ("200 OK", &body[..], String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"{}\"\r\nx-repo-commit: abc\r\n{extra}Connection: close\r\n\r\n",
        part.len(),
        path.replace('/', "-"),
    );
    // whoever hangs up has seen enough
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(part);
}

fn add(hub: &str, model: &str, home: &Path) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args(["model", "add", model, "--json"])
        .env("HF_ENDPOINT", hub)
        .env("HF_HOME", home.join("hub"))
        .env("WHEREFORE_MODELS", home.join("models"))
        .output()
        .unwrap()
}

#[test]
fn a_model_is_fetched_and_opens() {
    let home = tempfile::tempdir().unwrap();
    let hub = serve(&[]);
    let output = add(&hub, "tester/tiny", home.path());
    assert!(output.status.success(), "{output:?}");
    let added: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(added["name"], "tester--tiny");
    for file in FILES {
        let fetched = std::fs::read(home.path().join("models/tester--tiny").join(file)).unwrap();
        assert!(
            fetched == std::fs::read(fixture().join(file)).unwrap(),
            "{file}"
        );
    }
}

#[test]
fn a_model_that_is_not_there_or_damaged_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let missing = add(&serve(&[]), "tester/other", home.path());
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("model hub"));
    assert!(!home.path().join("models/tester--other").exists());
    let damaged = add(&serve(&["model.safetensors"]), "tester/tiny", home.path());
    assert_eq!(damaged.status.code(), Some(2), "{damaged:?}");
    assert!(String::from_utf8_lossy(&damaged.stderr).contains("damaged"));
}
