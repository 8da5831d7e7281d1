//! The threat model of `docs/security.md`: every line names a test, and every test that it names
//! is there.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

/// The sources that a line means: a file of tests, or a folder of them.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|e| e.unwrap().path());
        return entries.flat_map(|entry| sources(&entry)).collect();
    }
    let is_source = path.extension().is_some_and(|e| e == "rs") && path.is_file();
    is_source.then(|| path.to_owned()).into_iter().collect()
}

/// Whether one of the sources has a test of that name; some test programs have a list of functions
/// instead of marks.
fn has_test(sources: &[PathBuf], name: &str) -> bool {
    sources.iter().any(|path| {
        let text = fs::read_to_string(path).unwrap();
        let Some(at) = text.find(&format!("fn {name}(")) else {
            return false;
        };
        let before = &text[..at];
        let marked = before.rfind("#[test]").is_some_and(|mark| {
            // nothing but other marks and words between the mark and the function
            !before[mark..].contains('}')
        });
        marked || text.contains(&format!("\"{name}\""))
    })
}

#[test]
fn every_line_of_the_threat_model_names_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let (mut lines, mut faults) = (0, Vec::new());
    let mut is_table = false;
    for line in page.lines() {
        is_table = line.starts_with('|') && (is_table || line == "| line | held by |");
        let Some((promise, held_by)) = line.trim_matches('|').rsplit_once('|') else {
            continue;
        };
        if !is_table || promise.contains("---") || promise.trim() == "line" {
            continue;
        }
        lines += 1;
        let promise = promise.trim();
        let mut files = Vec::new();
        let mut tests = 0;
        // what stands between backticks, every second part
        for name in held_by.split('`').skip(1).step_by(2) {
            if name.contains('/') {
                files = sources(&root.join("crates").join(name));
                if files.is_empty() {
                    faults.push(format!("`{name}` is no test: {promise}"));
                }
            } else {
                tests += 1;
                if !has_test(&files, name) {
                    faults.push(format!("there is no test `{name}`: {promise}"));
                }
            }
        }
        if tests == 0 {
            faults.push(format!("no test is named: {promise}"));
        }
    }
    assert!(lines > 40, "only {lines} lines were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
