//! Runs every command of the README and of `docs/`: fenced blocks marked `sh`, page by page, each
//! page in a folder of its own, on small inputs.
//!
//! ```text
//! sh                  runs; must end with status 0
//! sh serves           is started and stopped again
//! sh skip: REASON     is left out, and said so
//! ```
//!
//! What the pages speak of lies in the folder: `kb.txt` and the graph `movies` made of it, and
//! `mine.jsonl`, questions about it.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A few films, as MetaQA has them.
const FILMS: &str = "\
The Matrix|directed_by|Lana Wachowski
The Matrix|release_year|1999
The Matrix|starred_actors|Keanu Reeves
The Matrix|has_genre|Science Fiction
Cloud Atlas|directed_by|Lana Wachowski
Cloud Atlas|release_year|2012
Cloud Atlas|starred_actors|Tom Hanks
Forrest Gump|directed_by|Robert Zemeckis
Forrest Gump|starred_actors|Tom Hanks
Forrest Gump|release_year|1994
Somewhere|directed_by|Sofia Coppola
Somewhere|release_year|2010
Somewhere|written_by|Sofia Coppola
The Virgin Suicides|directed_by|Sofia Coppola
The Virgin Suicides|written_by|Jeffrey Eugenides
The Virgin Suicides|release_year|1999
";

struct Block {
    line: usize,
    how: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(page.lines()) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(how)) => {
                open = Some(Block {
                    line: number,
                    how: how.trim().to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text += line;
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    pages.sort();
    pages.insert(0, root.join("README.md"));
    pages
}

fn shell(folder: &Path, script: &str) -> std::process::Output {
    let program = Path::new(env!("CARGO_BIN_EXE_wherefore")).parent().unwrap();
    let path = format!(
        "{}:{}",
        program.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("WHEREFORE_MODELS", folder.join("models"))
        .output()
        .unwrap()
}

#[test]
fn every_command_of_readme_and_docs_runs() {
    let mut ran = 0;
    let mut skipped = Vec::new();
    let mut failed = Vec::new();
    for page in pages() {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&page).unwrap();
        let blocks: Vec<Block> = blocks(&text)
            .into_iter()
            .filter(|b| b.how == "sh" || b.how.starts_with("sh ") || b.how == "console")
            .collect();
        if blocks.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kb.txt"), FILMS).unwrap();
        let prepared = shell(
            folder.path(),
            "wherefore load kb.txt --format pipe --out movies --quiet
             wherefore questions movies --count 40 --out mine.jsonl --quiet",
        );
        assert!(prepared.status.success(), "{prepared:?}");
        // a page is one session: what its first block makes, its last may use
        let mut before = String::new();
        for block in blocks {
            let place = format!("{name}:{}", block.line);
            if let Some(reason) = block.how.strip_prefix("sh skip: ") {
                skipped.push(format!("{place}: {reason}"));
                continue;
            }
            let script = match block.how.as_str() {
                "sh serves" => block
                    .text
                    .lines()
                    .filter(|line| line.starts_with("wherefore"))
                    .map(|line| {
                        format!(
                            "status=0; timeout -s INT 3 {line} --listen 127.0.0.1:0 < /dev/null || status=$?
                             [ $status = 0 ] || [ $status = 124 ]\n"
                        )
                    })
                    .collect(),
                _ => block.text.clone(),
            };
            // functions of earlier blocks are known to later ones
            let output = shell(folder.path(), &format!("{before}\n{script}"));
            for line in block.text.lines().filter(|l| l.contains("() {")) {
                before += line;
                before.push('\n');
            }
            ran += 1;
            if !output.status.success() {
                failed.push(format!(
                    "{place}: {}\n{}{}",
                    output.status,
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
        }
    }
    for line in &skipped {
        eprintln!("skipped {line}");
    }
    eprintln!("{ran} blocks ran, {} were skipped", skipped.len());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(ran >= 10);
}
