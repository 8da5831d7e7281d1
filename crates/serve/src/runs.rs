//! Run folders of `wherefore eval`, to be browsed question by question.
//!
//! Runs go by the names under which they were found below one folder; nothing that a request
//! says becomes part of a path.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::engine::clipped;
use crate::problem::Problem;

/// Folders below the given one that runs are looked for in.
const DEPTH: usize = 3;
const MOST_RUNS: usize = 1000;
/// Answers told of a question in a list.
const FEW: usize = 3;

/// The runs below one folder.
pub(crate) struct Runs {
    root: Option<PathBuf>,
    read: Mutex<HashMap<String, Arc<Index>>>,
}

/// Where the lines of a run are.
struct Index {
    stamp: (u64, Option<SystemTime>),
    answers: PathBuf,
    questions: PathBuf,
    lines: Vec<Line>,
    gold: Vec<(u64, usize)>,
}

/// One question of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    index: usize,
    id: String,
    question: String,
    outcome: String,
    status: String,
    answers: Vec<String>,
    #[serde(skip)]
    place: (u64, usize),
}

/// The parts of a line that a list shows.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    answers: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

/// Which questions of a run are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) outcome: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

impl Runs {
    pub(crate) fn new(root: Option<PathBuf>) -> Self {
        Self {
            root,
            read: Mutex::default(),
        }
    }

    /// Whether there are runs to browse.
    pub(crate) fn is_open(&self) -> bool {
        self.root.is_some()
    }

    fn folders(&self) -> BTreeMap<String, PathBuf> {
        let mut found = BTreeMap::new();
        if let Some(root) = &self.root {
            if is_run(root) {
                let name = root.canonicalize().ok();
                let name = (name.as_deref().unwrap_or(root)).file_name();
                let name = name.map_or_else(|| "run".into(), |n| n.to_string_lossy());
                found.insert(name.into_owned(), root.clone());
            } else {
                collect(root, "", DEPTH, &mut found);
            }
        }
        found
    }

    /// All runs with their main figures.
    pub(crate) fn list(&self) -> Vec<Value> {
        let summary = |(name, folder): (String, PathBuf)| {
            let description = read_json(&folder.join("run.json"));
            let metrics = read_json(&folder.join("metrics.json"));
            json!({
                "name": name,
                "questions": description["questions"].as_array().map_or(0, Vec::len),
                "finished": !metrics.is_null(),
                "metrics": metrics["overall"],
            })
        };
        self.folders().into_iter().map(summary).collect()
    }

    /// One run: what it is and how it came out.
    pub(crate) fn describe(&self, name: &str) -> Result<Value, Problem> {
        let folder = self.folder(name)?;
        let index = self.index(name, &folder)?;
        let mut description = read_json(&folder.join("run.json"));
        if let Some(fields) = description.as_object_mut() {
            fields.remove("questions");
        }
        without_folders(&mut description);
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &index.lines {
            *outcomes.entry(&line.outcome).or_default() += 1;
        }
        Ok(json!({
            "name": name,
            "description": description,
            "metrics": read_json(&folder.join("metrics.json")),
            "outcomes": outcomes,
            "questions": index.lines.len(),
        }))
    }

    /// Questions of a run.
    pub(crate) fn questions(&self, name: &str, filter: &Filter) -> Result<Value, Problem> {
        let index = self.index(name, &self.folder(name)?)?;
        let text = filter.text.as_ref().map(|text| text.to_lowercase());
        let fits = |line: &&Line| {
            (filter.outcome.as_ref()).is_none_or(|outcome| *outcome == line.outcome)
                && (text.as_ref()).is_none_or(|text| line.question.to_lowercase().contains(text))
        };
        let all: Vec<&Line> = index.lines.iter().filter(fits).collect();
        let some: Vec<&&Line> = all.iter().skip(filter.offset).take(filter.limit).collect();
        Ok(json!({ "total": all.len(), "questions": some }))
    }

    /// One question of a run with its answer and what was expected.
    pub(crate) fn question(&self, name: &str, number: usize) -> Result<Value, Problem> {
        let index = self.index(name, &self.folder(name)?)?;
        let Some(line) = index.lines.get(number) else {
            return Err(Problem::not_found(
                "no-such-question",
                format!("the run has {} questions", index.lines.len()),
            ));
        };
        let answer = read_at(&index.answers, line.place)?;
        let gold = match index.gold.get(number) {
            Some(&place) => read_at(&index.questions, place)?,
            None => Value::Null,
        };
        Ok(json!({ "index": number, "expected": gold, "answer": answer }))
    }

    fn folder(&self, name: &str) -> Result<PathBuf, Problem> {
        self.folders().remove(name).ok_or_else(|| {
            Problem::not_found(
                "no-such-run",
                format!("there is no run `{}`", clipped(name)),
            )
        })
    }

    fn index(&self, name: &str, folder: &Path) -> Result<Arc<Index>, Problem> {
        let answers = folder.join("answers.jsonl");
        let meta = fs::metadata(&answers).map_err(|e| unreadable(&answers, &e))?;
        let stamp = (meta.len(), meta.modified().ok());
        let known = |read: &HashMap<String, Arc<Index>>| {
            (read.get(name))
                .filter(|index| index.stamp == stamp)
                .cloned()
        };
        let lock = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = known(&lock()) {
            return Ok(index);
        }
        let questions = folder.join("questions.jsonl");
        let mut lines = Vec::new();
        each_line(&answers, |place, text| {
            let head: Head = serde_json::from_slice(text)?;
            let few = head.answers.into_iter().take(FEW).map(|a| a.name);
            lines.push(Line {
                index: lines.len(),
                id: head.id,
                question: head.question,
                outcome: head.outcome,
                status: head.status,
                answers: few.collect(),
                place,
            });
            Ok(())
        })?;
        let mut gold = Vec::new();
        each_line(&questions, |place, _| {
            gold.push(place);
            Ok(())
        })?;
        let index = Arc::new(Index {
            stamp,
            answers,
            questions,
            lines,
            gold,
        });
        lock().insert(name.to_owned(), Arc::clone(&index));
        Ok(index)
    }
}

fn is_run(folder: &Path) -> bool {
    folder.join("run.json").is_file() && folder.join("answers.jsonl").is_file()
}

fn collect(folder: &Path, name: &str, depth: usize, found: &mut BTreeMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let own = entry.file_name().to_string_lossy().into_owned();
        let name = match name {
            "" => own,
            above => format!("{above}/{own}"),
        };
        if is_run(&path) {
            if found.len() < MOST_RUNS {
                found.insert(name, path);
            }
        } else if depth > 1 && entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&path, &name, depth - 1, found);
        }
    }
}

/// Null where there is none, or none that reads.
fn read_json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Problem {
    Problem::internal(format!("cannot read `{}`: {error}", path.display()))
}

/// Whole lines with their places; a half-written last one is left alone.
fn each_line(
    path: &Path,
    mut take: impl FnMut((u64, usize), &[u8]) -> serde_json::Result<()>,
) -> Result<(), Problem> {
    let file = File::open(path).map_err(|e| unreadable(path, &e))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut line, mut at) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = (reader.read_until(b'\n', &mut line)).map_err(|e| unreadable(path, &e))?;
        if line.pop() != Some(b'\n') {
            return Ok(());
        }
        take((at, line.len()), &line).map_err(|e| unreadable(path, &e))?;
        at += read as u64;
    }
}

fn read_at(path: &Path, (at, length): (u64, usize)) -> Result<Value, Problem> {
    let mut bytes = vec![0; length];
    File::open(path)
        .and_then(|mut file| {
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut bytes)
        })
        .map_err(|e| unreadable(path, &e))?;
    serde_json::from_slice(&bytes).map_err(|e| unreadable(path, &e))
}

/// Paths of this machine are nobody's business: of each, the last part is left.
fn without_folders(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('/') && !text.contains("://") => {
            *text = text.rsplit('/').next().unwrap_or_default().to_owned();
        }
        Value::Array(values) => values.iter_mut().for_each(without_folders),
        Value::Object(fields) => fields.values_mut().for_each(without_folders),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_browsed_by_the_names_they_were_found_under() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("metaqa/walk");
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write(
            "run.json",
            r#"{"version":"1","config":{"model":"/home/me/ckpt"},"questions":["a","b"]}"#,
        );
        write(
            "questions.jsonl",
            "{\"id\":\"a\",\"answers\":[\"x\"]}\n{\"id\":\"b\"}\n",
        );
        write(
            "answers.jsonl",
            "{\"id\":\"a\",\"question\":\"Who is it?\",\"outcome\":\"right\",\"answers\":[{\"name\":\"x\"}]}\n\
             {\"id\":\"b\",\"question\":\"Where?\",\"outcome\":\"not-linked\",\"answers\":[]}\n{\"id\":",
        );
        let runs = Runs::new(Some(root.path().to_owned()));
        let list = runs.list();
        assert_eq!(list.len(), 1);
        assert_eq!(
            (&list[0]["name"], &list[0]["questions"]),
            (&"metaqa/walk".into(), &2.into())
        );
        let about = runs.describe("metaqa/walk").unwrap();
        assert_eq!(about["description"]["config"]["model"], "ckpt");
        assert_eq!(about["outcomes"]["right"], 1);
        let some = runs
            .questions(
                "metaqa/walk",
                &Filter {
                    text: Some("WHERE".into()),
                    limit: 10,
                    ..Filter::default()
                },
            )
            .unwrap();
        assert_eq!(
            (&some["total"], &some["questions"][0]["id"]),
            (&1.into(), &"b".into())
        );
        let one = runs.question("metaqa/walk", 0).unwrap();
        assert_eq!(one["expected"]["answers"][0], "x");
        assert_eq!(one["answer"]["answers"][0]["name"], "x");
        for bad in ["", "..", "../walk", "metaqa", "/etc"] {
            assert_eq!(runs.describe(bad).unwrap_err().status, 404, "{bad}");
        }
        assert_eq!(runs.question("metaqa/walk", 2).unwrap_err().status, 404);
    }
}
