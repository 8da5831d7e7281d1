//! A file that somebody sent becomes a graph that is served.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use axum::http::StatusCode;
use serde::Serialize;
use wherefore::graph::{self, Input, LoadOptions, Mistake};

use super::{Engine, clipped};
use crate::config::GraphConfig;
use crate::loads::{MARK, is_loaded};
use crate::problem::Problem;

/// Memory that a load keeps to, more or less.
const MEMORY: usize = 512 << 20;
/// Text of a packed file, as a multiple of the bytes that may be sent.
const UNPACKED: u64 = 5;
/// Mistakes that are told.
const TOLD: usize = 3;

/// A file that was sent.
#[derive(Debug)]
pub(crate) struct Upload {
    /// The name of the graph.
    pub(crate) graph: String,
    /// What the sender calls the file.
    pub(crate) called: String,
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// How to read it.
    pub(crate) options: LoadOptions,
}

/// What came of a load.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Loaded {
    graph: String,
    triples: u64,
    entities: u64,
    relations: u64,
    seconds: f64,
    /// Questions to try.
    questions: Vec<String>,
    /// Lines that were passed over, and the first of them.
    malformed: u64,
    mistakes: Vec<String>,
    notes: Vec<String>,
}

impl Engine {
    /// Notes which of the graphs came by a load.
    pub(crate) fn mark_loaded(&self, names: impl IntoIterator<Item = String>) {
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        loaded.extend(names);
    }

    /// Refuses a name that another graph has, and more graphs than there may be.
    pub(crate) fn check_new(&self, name: &str, most: usize) -> Result<(), Problem> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        if loaded.contains(name) {
            return Ok(());
        }
        let graphs = self.graphs.read().unwrap_or_else(PoisonError::into_inner);
        if graphs.contains_key(name) {
            return Err(taken(name));
        }
        if loaded.len() < most {
            return Ok(());
        }
        let names: Vec<&str> = loaded.iter().map(String::as_str).collect();
        let message = format!("{most} graphs were loaded here, and there may be no more");
        Err(
            Problem::unprocessable("too-many-graphs", message).hint(format!(
                "load it in the place of one of them: {}",
                names.join(", ")
            )),
        )
    }

    /// Makes a graph of the file and serves it. Only one may be loaded at a time.
    pub(crate) fn load(
        &self,
        mut upload: Upload,
        folder: &Path,
        most_bytes: u64,
    ) -> Result<Loaded, Problem> {
        let name = upload.graph;
        let out = folder.join(&name);
        // somebody else's folder, in a folder that was given
        let existed = out.exists();
        if existed && !is_loaded(&out) {
            return Err(taken(&name));
        }
        upload.options.replace = true;
        upload.options.memory = MEMORY;
        upload.options.max_text = most_bytes.saturating_mul(UNPACKED);
        let input = [Input::File(upload.path)];
        let report = graph::load(&input, &out, &upload.options, &|_| {});
        let report = report.map_err(|error| unreadable(error, &upload.called))?;
        let opened = (|| {
            let mark = serde_json::json!({ "file": upload.called }).to_string();
            let write = std::fs::write(out.join(MARK), mark);
            write.map_err(|e| Problem::internal(format!("`{}`: {e}", out.display())))?;
            let config = GraphConfig {
                path: out.to_string_lossy().into_owned(),
                ..GraphConfig::default()
            };
            let failed = |e| Problem::internal(format!("the loaded graph `{name}`: {e}"));
            self.serve(&name, &config).map_err(failed)
        })();
        let served = opened.inspect_err(|_| {
            if !existed {
                // what is left of it is told by whoever loads the next one
                let _ = std::fs::remove_dir_all(&out);
            }
        })?;
        let mut notes = report.notes;
        if let Err(problem) = self.warm_one(&served) {
            notes.push(format!("a method cannot answer here: {}", problem.message));
        }
        let questions = served.examples().to_vec();
        self.put(served);
        self.mark_loaded([name.clone()]);
        Ok(Loaded {
            graph: name,
            triples: report.counts.triples,
            entities: report.counts.entities,
            relations: report.counts.relations,
            seconds: report.time.as_secs_f64(),
            questions,
            malformed: report.counts.malformed,
            mistakes: report.mistakes.iter().take(TOLD).map(told).collect(),
            notes: (notes.iter()).map(|note| as_parameters(note)).collect(),
        })
    }
}

fn told(mistake: &Mistake) -> String {
    format!("line {}: {}", mistake.line, clipped(&mistake.reason))
}

fn taken(name: &str) -> Problem {
    let message = format!("there is a graph `{}` already", clipped(name));
    Problem::new(StatusCode::CONFLICT, "graph-exists", message)
        .hint("choose another name; only graphs that were loaded in this way are replaced")
}

/// What is wrong with a file, by the sender's name for it.
fn unreadable(error: graph::Error, called: &str) -> Problem {
    use graph::Error;
    let called = clipped(called);
    let bad = |reason: &str, hint: Option<String>| {
        let mut problem =
            Problem::unprocessable("bad-input", format!("`{called}` cannot be read: {reason}"));
        problem.hint = hint.map(|hint| as_parameters(&hint));
        problem
    };
    let hint = error.hint();
    match &error {
        Error::BadInput { reason, .. } => bad(reason, hint),
        Error::Empty | Error::TooMany { .. } => bad(&error.to_string(), hint),
        // another program uses the folder
        Error::Locked { .. } => Problem::busy("busy", "another program writes this graph", 5),
        _ => error.into(),
    }
}

/// A hint of the command line in the words of the API.
fn as_parameters(hint: &str) -> String {
    [
        ("`--format ", "`format="),
        ("`--columns ", "`columns="),
        ("`--name-column`", "`name_column`"),
        ("`--class`", "`class`"),
        ("`--wide`", "`wide=true`"),
        ("`--format`", "`format`"),
    ]
    .iter()
    .fold(hint.to_owned(), |hint, (flag, parameter)| {
        hint.replace(flag, parameter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::toy_engine;

    fn upload(folder: &Path, graph: &str, text: &str) -> Upload {
        let path = folder.join("upload.tsv");
        std::fs::write(&path, text).unwrap();
        Upload {
            graph: graph.into(),
            called: "facts.tsv".into(),
            path,
            options: LoadOptions::default(),
        }
    }

    #[test]
    fn a_file_becomes_a_graph_and_may_be_replaced_by_another() {
        let engine = toy_engine();
        let files = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let load = |name: &str, text: &str| {
            engine.load(upload(files.path(), name, text), folder.path(), 1 << 20)
        };
        let loaded = load("films", "Alien\tdirected by\tRidley Scott\n").unwrap();
        assert_eq!((loaded.triples, loaded.relations), (1, 1));
        let films = engine.graph(Some("films")).unwrap();
        assert_eq!(
            films.current().unwrap().store().unwrap().counts().triples,
            1
        );
        let text = "Alien\tdirected by\tRidley Scott\nonly two\tfields\nAlien\tyear\t1979\n";
        let loaded = load("films", text).unwrap();
        assert_eq!((loaded.triples, loaded.malformed), (2, 1));
        assert_eq!(
            loaded.mistakes,
            ["line 2: 2 fields, and a triple needs three"]
        );
        engine.check_new("films", 1).unwrap();
        assert_eq!(engine.check_new("toy", 9).unwrap_err().status, 409);
        assert_eq!(
            engine.check_new("more", 1).unwrap_err().code,
            "too-many-graphs"
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_by_the_senders_name_and_leaves_nothing() {
        let engine = toy_engine();
        let files = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let upload = upload(files.path(), "films", "a b\nc d\n");
        let problem = engine.load(upload, folder.path(), 1 << 20).unwrap_err();
        assert_eq!((problem.status, problem.code), (422, "bad-input"));
        assert!(problem.message.starts_with("`facts.tsv` cannot be read: "));
        assert!(problem.message.contains("line 1"), "{}", problem.message);
        assert!(!problem.hint.unwrap().contains("--"));
        assert!(engine.graph(Some("films")).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // a folder of somebody else stays
        std::fs::create_dir(folder.path().join("own")).unwrap();
        let upload = self::upload(files.path(), "own", "a\tb\tc\n");
        let problem = engine.load(upload, folder.path(), 1 << 20).unwrap_err();
        assert_eq!((problem.status, problem.code), (409, "graph-exists"));
    }
}
