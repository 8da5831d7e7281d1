//! Thumbs up and down, kept as question files that `wherefore train` and `eval` read.
//!
//! ```text
//! FOLDER/GRAPH.jsonl       answers that somebody found right, or gave as the right ones
//! FOLDER/GRAPH.down.jsonl  answers that somebody found wrong, of the kind `rejected`
//! ```

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::engine::Served;
use crate::error::{Error, Result};
use crate::problem::Problem;

/// A file that has grown so large is somebody filling the disk.
const MOST_BYTES: u64 = 64 << 20;
const MOST_NAMES: usize = 100;

/// A thumb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Vote {
    Up,
    Down,
}

/// What somebody thought of an answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opinion {
    pub(crate) question: String,
    pub(crate) vote: Vote,
    #[serde(default)]
    pub(crate) graph: Option<String>,
    #[serde(default)]
    pub(crate) topics: Vec<String>,
    /// The answers that the vote is about.
    #[serde(default)]
    pub(crate) answers: Vec<String>,
    /// What would have been right.
    #[serde(default)]
    pub(crate) expected: Vec<String>,
}

/// A line of a question file.
#[derive(Serialize)]
struct Line<'a> {
    id: String,
    question: &'a str,
    topics: &'a [String],
    answers: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

/// Where opinions go.
#[derive(Debug)]
pub(crate) struct Feedback {
    folder: Option<PathBuf>,
    /// One line at a time; the number makes ids of the same millisecond differ.
    written: Mutex<u64>,
}

impl Feedback {
    pub(crate) fn open(folder: Option<PathBuf>) -> Result<Self> {
        if let Some(path) = &folder {
            std::fs::create_dir_all(path).map_err(|source| Error::Io {
                action: "create the folder for feedback",
                path: path.clone(),
                source,
            })?;
        }
        Ok(Self {
            folder,
            written: Mutex::new(0),
        })
    }

    /// Whether opinions are kept.
    pub(crate) fn is_open(&self) -> bool {
        self.folder.is_some()
    }

    /// Keeps an opinion. Gives the ids of the lines that were written.
    pub(crate) fn keep(&self, opinion: &Opinion, graph: &Served) -> Result<Vec<String>, Problem> {
        let Some(folder) = &self.folder else {
            return Err(
                Problem::not_found("no-feedback", "this server keeps no feedback")
                    .hint("start it with `--feedback FOLDER`"),
            );
        };
        let names = [&opinion.topics, &opinion.answers, &opinion.expected];
        let many = names.iter().any(|list| list.len() > MOST_NAMES);
        let long = names.iter().any(|list| list.iter().any(|n| n.len() > 4096));
        if many || long {
            let message = format!("at most {MOST_NAMES} names of 4096 bytes are kept");
            return Err(Problem::unprocessable("too-many-names", message));
        }
        let (right, wrong) = match opinion.vote {
            Vote::Up => (&opinion.answers, None),
            Vote::Down => (&opinion.expected, Some(&opinion.answers)),
        };
        let mut count = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = Vec::new();
        let up = (!right.is_empty()).then_some((right, "jsonl", None));
        let down = wrong.map(|wrong| (wrong, "down.jsonl", Some("rejected")));
        for (answers, ending, kind) in up.into_iter().chain(down) {
            *count += 1;
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let id = format!("feedback-{}-{count}", now.map_or(0, |d| d.as_millis()));
            let line = Line {
                id: id.clone(),
                question: &opinion.question,
                topics: &opinion.topics,
                answers,
                kind,
            };
            let mut text = serde_json::to_vec(&line).expect("texts are JSON");
            text.push(b'\n');
            let path = folder.join(format!("{}.{ending}", graph.name));
            let full = std::fs::metadata(&path).is_ok_and(|m| m.len() > MOST_BYTES);
            if full {
                return Err(Problem::hidden(
                    axum::http::StatusCode::INSUFFICIENT_STORAGE,
                    "feedback-full",
                    "no more feedback is kept",
                    format!("`{}` has more than {MOST_BYTES} bytes", path.display()),
                ));
            }
            // one write of a whole line, so that lines of several processes do not mix
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .and_then(|mut file| file.write_all(&text))
                .map_err(|e| Problem::internal(format!("`{}`: {e}", path.display())))?;
            ids.push(id);
        }
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::toy_engine;

    #[test]
    fn right_and_wrong_answers_go_to_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let feedback = Feedback::open(Some(folder.path().join("opinions"))).unwrap();
        let engine = toy_engine();
        let toy = engine.graph(None).unwrap();
        let opinion = |text: &str| serde_json::from_str::<Opinion>(text).unwrap();
        let up =
            opinion(r#"{"question":"q \"1\"","vote":"up","topics":["t"],"answers":["a","b"]}"#);
        assert_eq!(feedback.keep(&up, &toy).unwrap().len(), 1);
        let down = opinion(r#"{"question":"q2","vote":"down","answers":["x"],"expected":["y"]}"#);
        let ids = feedback.keep(&down, &toy).unwrap();
        assert_eq!(ids.len(), 2);
        assert_ne!(ids[0], ids[1]);
        let read = |name: &str| {
            let text = std::fs::read_to_string(folder.path().join("opinions").join(name)).unwrap();
            let line = |l: &str| serde_json::from_str::<serde_json::Value>(l).unwrap();
            text.lines().map(line).collect::<Vec<_>>()
        };
        let kept = read("toy.jsonl");
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[0]["answers"], serde_json::json!(["a", "b"]));
        assert_eq!(kept[1]["answers"], serde_json::json!(["y"]));
        let rejected = read("toy.down.jsonl");
        assert_eq!(
            (rejected.len(), &rejected[0]["kind"]),
            (1, &"rejected".into())
        );

        let closed = Feedback::open(None).unwrap();
        assert_eq!(closed.keep(&up, &toy).unwrap_err().status, 404);
    }
}
