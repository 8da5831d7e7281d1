//! A folder cannot choose where questions and secrets go: the user does.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Somebody who listens, and counts who comes.
fn listener() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, count)
}

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args(args)
        .current_dir(folder)
        .env("XDG_CONFIG_HOME", folder.join("settings"))
        .env("BANK_PASSWORD", "hunter2")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("hunter2"), "{text}");
    text + &String::from_utf8_lossy(&output.stdout)
}

fn describe(address: &str) -> String {
    format!(
        "url = \"http://{address}/sparql\"\ntoken_env = \"BANK_PASSWORD\"\n\
         [limits]\nretries = 0\ntimeout_s = 5\n"
    )
}

#[test]
fn a_service_file_needs_the_users_consent() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let (address, visits) = listener();
    fs::create_dir(folder.join("films")).unwrap();
    let file = folder.join("films/service.toml");
    fs::write(&file, describe(&address)).unwrap();
    fs::copy(&file, folder.join("films.toml")).unwrap();
    let config = |trust: &str| format!("[graphs.films]\npath = \"films\"\n{trust}");
    fs::write(folder.join("serve.toml"), config("")).unwrap();
    fs::write(folder.join("trusted.toml"), config("trust = true\n")).unwrap();
    fs::write(folder.join("q.txt"), "who directed [Dune]\tDenis\n").unwrap();
    for args in [
        &["ask", "films", "who?"][..],
        &["ask", "films.toml", "who?"],
        &["sparql", "films", "ASK {}"],
        &["link", "films", "who?"],
        &["logic", "films", "(COUNT x)"],
        &["index", "films", "--out", "new"],
        &[
            "eval",
            "--graph",
            "films",
            "--questions",
            "q.txt",
            "--out",
            "r",
        ],
        &["serve", "--graph", "films", "--listen", "127.0.0.1:0"],
        &["serve", "--config", "serve.toml", "--listen", "127.0.0.1:0"],
        &["mcp", "--graph", "films"],
    ] {
        let output = run(folder, args);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?} {text}");
        assert!(text.contains(&address), "{args:?} {text}");
        assert!(text.contains("`BANK_PASSWORD`"), "{args:?} {text}");
        assert!(text.contains("wherefore trust films"), "{args:?} {text}");
        assert!(text.contains("`--trust`"), "{args:?} {text}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    let visited = |args: &[&str]| {
        let before = visits.load(Ordering::SeqCst);
        let output = run(folder, args);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?} {text}");
        (visits.load(Ordering::SeqCst) > before, text)
    };
    // consent for this once
    for args in [
        &["ask", "films", "who?", "--trust"][..],
        &["mcp", "--graph", "films", "--trust"],
        &[
            "serve",
            "--config",
            "trusted.toml",
            "--listen",
            "127.0.0.1:0",
        ],
    ] {
        assert!(visited(args).0, "{args:?}");
    }
    assert!(!visited(&["ask", "films", "who?"]).0);
    // for good, until the file is another
    let output = run(folder, &["trust", "films"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let text = told(&output);
    assert!(
        text.contains(&address) && text.contains("BANK_PASSWORD"),
        "{text}"
    );
    assert!(visited(&["ask", "films", "who?"]).0);
    assert!(visited(&["serve", "--config", "serve.toml", "--listen", "127.0.0.1:0"]).0);
    assert!(!visited(&["ask", "films.toml", "who?"]).0);
    fs::write(&file, describe(&address) + "# changed\n").unwrap();
    assert!(!visited(&["ask", "films", "who?"]).0);
    run(folder, &["trust", "films"]);
    let list = told(&run(folder, &["trust"]));
    assert!(
        list.lines().count() == 1 && list.contains("films/service.toml"),
        "{list}"
    );
    assert_eq!(
        run(folder, &["trust", "films", "--revoke"]).status.code(),
        Some(0)
    );
    assert_eq!(
        run(folder, &["trust", "films", "--revoke"]).status.code(),
        Some(1)
    );
    assert!(!visited(&["ask", "films", "who?"]).0);
    assert_eq!(run(folder, &["trust", "nothing"]).status.code(), Some(2));
}

#[test]
fn questions_without_end_are_the_users_mistake() {
    let place = tempfile::tempdir().unwrap();
    if !Path::new("/dev/zero").exists() {
        return;
    }
    for args in [
        &[
            "eval",
            "--graph",
            "@toy",
            "--questions",
            "/dev/zero",
            "--out",
            "r",
        ][..],
        &["score", "/dev/zero", "--questions", "/dev/zero"],
        &["link", "@toy", "--questions", "/dev/zero"],
    ] {
        let output = run(place.path(), args);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?} {text}");
        assert!(
            text.contains("/dev/zero") && text.contains("hint:"),
            "{text}"
        );
    }
}
