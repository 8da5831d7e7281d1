//! `wherefore keygen`, `ask --sign` and `verify --key`.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const MASCOT: &str = "Who is the mascot of the San Francisco Giants?";

fn wherefore(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn saved(folder: &Path, file: &str, more: &[&str]) -> Value {
    let output = wherefore(folder, &[&["ask", "@toy", MASCOT, "--json"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    std::fs::write(folder.join(file), &output.stdout).unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn signed_answers_hold_with_the_right_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for key in ["ours.key", "theirs.key"] {
        let made = wherefore(folder, &["keygen", key]);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        assert!(text(&made.stdout).contains("ed25519:"));
    }
    saved(folder, "signed.json", &["--sign", "ours.key"]);
    saved(folder, "plain.json", &[]);
    let verify = |file: &str, more: &[&str]| {
        let output = wherefore(
            folder,
            &[&["verify", file, "--graph", "@toy"], more].concat(),
        );
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (status, said, _) = verify("signed.json", &["--key", "ours.key.pub"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("✓ signature: signed by ed25519:"), "{said}");
    // the private key has the public one inside
    assert_eq!(verify("signed.json", &["--key", "ours.key"]).0, Some(0));
    let (status, said, _) = verify("signed.json", &["--key", "theirs.key.pub"]);
    assert_eq!(status, Some(1));
    assert!(said.contains("✗ signature: it is signed by"), "{said}");
    let (status, said, _) = verify("plain.json", &["--key", "ours.key.pub"]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("✗ signature: the file is not signed"),
        "{said}"
    );
    let (status, said, _) = verify("plain.json", &[]);
    assert_eq!(status, Some(0));
    assert!(said.contains("digest only: shows accidental or careless change, not forgery"));

    // a changed question, and nothing else
    let file = std::fs::read_to_string(folder.join("plain.json")).unwrap();
    std::fs::write(
        folder.join("changed.json"),
        file.replacen("mascot of", "enemy of", 1),
    )
    .unwrap();
    let (status, said, _) = verify("changed.json", &[]);
    assert_eq!(status, Some(1));
    assert!(said.contains("✗ digest: the file was changed"), "{said}");
    let json = wherefore(
        folder,
        &["verify", "changed.json", "--graph", "@toy", "--json"],
    );
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let digest = checks.iter().find(|c| c["subject"] == "digest").unwrap();
    assert_eq!(digest["outcome"], "failed");
    assert_eq!(report["answers"][0]["holds"], true);

    // without its seal, as files were before there were any
    let mut old: Value = serde_json::from_str(&file).unwrap();
    old.as_object_mut().unwrap().remove("seal");
    std::fs::write(folder.join("old.json"), old.to_string()).unwrap();
    let (status, said, _) = verify("old.json", &[]);
    assert_eq!(status, Some(0));
    assert!(said.contains("· digest: the file has none"), "{said}");

    let (status, _, told) = verify("signed.json", &["--key", "signed.json"]);
    assert_eq!(status, Some(2));
    assert!(
        told.contains("hint: make a key with `wherefore keygen FILE`"),
        "{told}"
    );
}

#[test]
fn keys_are_kept_and_secret() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(
        wherefore(folder, &["keygen", "a.key"]).status.code(),
        Some(0)
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.join("a.key"))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }
    let before = std::fs::read(folder.join("a.key")).unwrap();
    let again = wherefore(folder, &["keygen", "a.key"]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(std::fs::read(folder.join("a.key")).unwrap(), before);
    // only JSON can carry a signature
    let people = wherefore(folder, &["ask", "@toy", MASCOT, "--sign", "a.key"]);
    assert_eq!(people.status.code(), Some(2));
    assert!(text(&people.stderr).contains("add `--json`"));
}
