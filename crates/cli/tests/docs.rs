//! Runs every command of the README and of `docs/`: fenced blocks marked `sh`, page by page, each
//! page in a folder of its own, on small inputs.
//!
//! ```text
//! sh                  runs; must end with status 0
//! sh serves           is started and stopped again
//! sh model            runs with a scripted language model in the place of those it names
//! sh service          runs with a server of ours in the place of those it names
//! sh skip: REASON     is left out, and said so
//! ```
//!
//! A block with any other mark that a shell would read fails. What the pages speak of lies in the
//! folder: `kb.txt` and the graph `movies` made of it, `zoo.sqlite`, `mine.jsonl` and `qa_test.txt`, questions
//! about it. What the README shows of sessions is held against what the program says.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

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

/// A question as MetaQA has them.
const ASKED: &str = "who directed [The Matrix]\tLana Wachowski\n";

/// What a SPARQL service holds.
const SERVED: &str = "\
<http://example.org/dune> <http://example.org/director> <http://example.org/denis> .
<http://example.org/dune> <http://www.w3.org/2000/01/rdf-schema#label> \"Dune\"@en .
<http://example.org/denis> <http://www.w3.org/2000/01/rdf-schema#label> \"Denis Villeneuve\"@en .
<http://example.org/director> <http://www.w3.org/2000/01/rdf-schema#label> \"directed by\"@en .
";

/// What the language models of the pages say here: steps to one prompt, and to all others names
/// and picks, of which the evidence bears out what fits.
const SCRIPT: [(&str, &str); 3] = [
    (
        "You split a question",
        "1. Who directed The Matrix?\n2. When were the films directed by that person released?",
    ),
    (
        "You rewrite a question",
        "When were the films directed by Lana Wachowski released",
    ),
    (
        "",
        "ans: Path 0\nans: Lana Wachowski\nans: Cloud Atlas\nans: 1999\nans: 2012",
    ),
];

/// Names of language models on the pages.
const MODELS: [&str; 3] = [
    "qwen2.5-1.5b-instruct.gguf",
    "http://localhost:8080/v1#qwen2.5",
    "MODEL",
];

struct Block {
    line: usize,
    how: String,
    text: String,
}

impl Block {
    fn language(&self) -> &str {
        self.how.split([' ', ',']).next().unwrap_or_default()
    }
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

fn shell(folder: &Path, script: &str) -> Output {
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
        .env("XDG_CONFIG_HOME", folder.join("settings"))
        .env("WHEREFORE_MODELS", folder.join("models"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A folder with what the pages speak of.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("kb.txt", FILMS);
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo.sqlite");
    fs::copy(zoo, folder.path().join("zoo.sqlite")).unwrap();
    write("qa_test.txt", ASKED);
    write("served.nt", SERVED);
    let line = |(contains, text): (&str, &str)| {
        format!("{}\n", json!({ "contains": contains, "text": text }))
    };
    write("script.jsonl", &SCRIPT.map(line).concat());
    said(&shell(
        folder.path(),
        "wherefore load kb.txt --format pipe --out movies --quiet
         wherefore questions movies --count 40 --out mine.jsonl --quiet",
    ));
    folder
}

/// A server that ends with the block that needs it.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and waits until it says where it is.
fn served(command: &mut Command) -> (Server, String) {
    let mut child = command
        .arg("--json")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.as_mut().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let server = Server(child);
    let started: Value = serde_json::from_str(&line).unwrap();
    (server, started["address"].as_str().unwrap().to_owned())
}

/// Starts what a block with the mark `service` speaks of, and puts its address into the block: our
/// own server over `movies` with a key that may write, or one that holds other films.
fn with_service(folder: &Path, text: &str) -> (Server, String) {
    let key = said(&shell(folder, "wherefore serve --new-key me --json"));
    let key: Value = serde_json::from_str(&key).unwrap();
    let keyed = text.contains("KEY");
    let config = match keyed {
        true => format!(
            "[graphs.movies]\npath = \"movies\"\n[[keys]]\nname = \"me\"\nsha256 = {}\nwrite = true\n",
            key["sha256"]
        ),
        false => {
            said(&shell(
                folder,
                "wherefore load served.nt --out served --replace --quiet",
            ));
            "[graphs.served]\npath = \"served\"\n".to_owned()
        }
    };
    fs::write(folder.join("service.toml"), config).unwrap();
    let (server, address) = served(
        Command::new(env!("CARGO_BIN_EXE_wherefore"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(["--config", "service.toml"])
            .current_dir(folder),
    );
    let service = format!("http://{address}/v1/graphs/served/sparql");
    let text = text
        .replace("https://query.example.org/sparql", &service)
        .replace("localhost:7878", &address)
        .replace("KEY", key["key"].as_str().unwrap());
    (server, text)
}

/// Each line started and stopped again.
fn serving(text: &str) -> String {
    let lines = text.lines().filter(|line| line.starts_with("wherefore"));
    lines
        .map(|line| {
            format!(
                "status=0; timeout -s INT 3 {line} --listen 127.0.0.1:0 || status=$?
                 [ $status = 0 ] || [ $status = 124 ]\n"
            )
        })
        .collect()
}

#[test]
fn every_command_of_readme_and_docs_runs_or_says_why_not() {
    let mut ran = 0;
    let mut skipped = Vec::new();
    // what this machine cannot run, though others can
    let mut lacking = 0;
    let mut failed = Vec::new();
    for page in pages() {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&page).unwrap();
        let blocks: Vec<Block> = blocks(&text)
            .into_iter()
            .filter(|b| ["sh", "bash", "console", "shell", "zsh"].contains(&b.language()))
            .collect();
        if blocks.is_empty() {
            continue;
        }
        let folder = prepared();
        // a page is one session: what its first block makes, its last may use
        let mut before = String::new();
        for block in blocks {
            let place = format!("{name}:{}", block.line);
            let mut server = None;
            let script = match block.how.as_str() {
                "sh" => block.text.clone(),
                "sh serves" => serving(&block.text),
                "sh model" => MODELS.iter().fold(block.text.clone(), |text, model| {
                    text.replace(model, "script:script.jsonl")
                }),
                "sh service" => {
                    let (started, text) = with_service(folder.path(), &block.text);
                    server = Some(started);
                    text
                }
                how => {
                    match how.strip_prefix("sh skip: ").map(str::trim) {
                        None | Some("") => failed.push(format!("{place}: `{how}` is no mark")),
                        Some(reason) => skipped.push(format!("{place}: {reason}")),
                    }
                    continue;
                }
            };
            if script.contains("curl ") && !is_here("curl") {
                eprintln!("skipped {place}: curl is not on this machine");
                lacking += 1;
                continue;
            }
            // functions of earlier blocks are known to later ones
            let output = shell(folder.path(), &format!("{before}\n{script}"));
            drop(server);
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
    assert!(ran + lacking >= 30, "{ran}");
    assert!(skipped.len() <= 9, "{skipped:?}");
}

#[test]
fn the_containers_command_serves() {
    let root = pages()[0].with_file_name("");
    let dockerfile = fs::read_to_string(root.join("Dockerfile")).unwrap();
    let command = dockerfile.lines().find_map(|l| l.strip_prefix("CMD "));
    let command: Vec<String> = serde_json::from_str(command.unwrap()).unwrap();
    let packaged = root.join("packaging/container.toml");
    let packaged = packaged.to_str().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let (_server, address) = served(
        Command::new(env!("CARGO_BIN_EXE_wherefore"))
            .args(
                command
                    .iter()
                    .map(|word| word.replace("/serve.toml", packaged)),
            )
            .args(["--listen", "0.0.0.0:0"])
            .env("XDG_CACHE_HOME", cache.path()),
    );
    assert!(address.starts_with("0.0.0.0:"), "{address}");
}

fn is_here(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

fn readme() -> String {
    fs::read_to_string(&pages()[0]).unwrap()
}

/// The session of the README that begins with this command.
fn session(command: &str) -> String {
    let first = format!("$ {command}\n");
    let found = blocks(&readme())
        .into_iter()
        .find(|b| b.text.starts_with(&first));
    found.unwrap().text
}

#[test]
fn the_readme_shows_what_the_demo_says() {
    let folder = tempfile::tempdir().unwrap();
    let demo = said(&shell(folder.path(), "wherefore demo"));
    let shown = session("wherefore demo");
    let (_, shown) = shown.split_once('\n').unwrap();
    assert_eq!(timeless(shown.trim()), timeless(demo.trim()));
}

#[test]
fn the_readme_tells_the_sizes_and_versions_that_are() {
    let folder = tempfile::tempdir().unwrap();
    let info = said(&shell(folder.path(), "wherefore info @world --json"));
    let info: Value = serde_json::from_str(&info).unwrap();
    let triples = info["triples"].as_u64().unwrap();
    let triples = format!("{},{:03} triples", triples / 1000, triples % 1000);
    let sample = pages()[0].with_file_name("data/sample/README.md");
    for text in [readme(), fs::read_to_string(sample).unwrap()] {
        assert!(text.contains(&triples), "{triples}");
    }
    let rust = format!("({} or newer)", env!("CARGO_PKG_RUST_VERSION"));
    assert!(readme().contains(&rust), "{rust}");
}

/// Without what is the machine's: seconds and rates.
fn timeless(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line
            .rsplit_once(" on disk, ")
            .map_or(line, |(size, _)| size);
        match line.rsplit_once(" · ") {
            Some((rest, time)) if time.ends_with(" ms") || time.ends_with(" s") => rest,
            _ => line,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_readme_shows_what_is_said_of_metaqa() {
    let folder = std::env::var_os("WHEREFORE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let Ok(kb) = folder.join("metaqa/kb.txt").canonicalize() else {
        println!("skipped: no MetaQA; set WHEREFORE_DATA to the folder that has it");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fs::copy(kb, folder.path().join("kb.txt")).unwrap();
    let shown = session("wherefore load kb.txt --out movies");
    for part in shown.split("$ ").skip(1) {
        let (command, rest) = part.split_once('\n').unwrap();
        let output = shell(folder.path(), &format!("{command} 2>&1"));
        assert_eq!(
            timeless(rest.trim()),
            timeless(said(&output).trim()),
            "{command}"
        );
    }
}
