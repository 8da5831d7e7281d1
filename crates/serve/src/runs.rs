//! Run folders of `wherefore eval`, to be browsed question by question.
//!
//! Runs go by the names under which they were found below one folder; nothing that a request
//! says becomes part of a path. What is wrong with a run is told beside what could be read of it.

mod files;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::engine::{clipped, cut};
use crate::error::{Error, Result};
use crate::problem::Problem;
use files::{
    ANSWERS, METRICS, Place, QUESTIONS, RUN, Stamp, check, each_line, is_there, modified, read_at,
    read_json, run_folders, stamp,
};

/// Names listed of a question's answers, and of those that were expected.
const FEW: usize = 5;
/// Letters listed of a name or a question.
const MOST_TEXT: usize = 2000;
/// Runs whose lines are known; each line takes about 500 bytes of memory.
const KEPT: usize = 4;

/// The runs below one folder.
pub(crate) struct Runs {
    root: Option<PathBuf>,
    read: Mutex<HashMap<String, Arc<Index>>>,
}

/// Which runs whoever asks may see.
pub(crate) struct Visible {
    /// The graphs that may be asked: the name that each is served under, by its identity.
    pub(crate) graphs: HashMap<String, String>,
    /// Whether runs of all other graphs are seen too.
    pub(crate) others: bool,
}

impl Visible {
    /// The name that the graph of a run is served under.
    fn graph(&self, about: &About) -> Option<&str> {
        self.graphs.get(about.graph.as_ref()?).map(String::as_str)
    }

    fn has(&self, about: &About) -> bool {
        self.others || self.graph(about).is_some()
    }
}

/// What a run tells of itself, but for its lines.
struct About {
    /// `run.json` without paths.
    description: Value,
    /// The identity of the graph.
    graph: Option<String>,
    metrics: Value,
    /// Seconds since 1970 when it was last written to.
    modified: Option<u64>,
    problem: Option<String>,
}

/// Where the lines of a run are.
struct Index {
    stamp: Stamp,
    lines: Vec<Line>,
    problem: Option<String>,
}

/// How a question came out. Answers are neither right nor wrong where the benchmark knows none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// An answer is right.
    Right,
    /// There are answers, and none is right.
    Wrong,
    /// There is no answer.
    Refused,
}

impl Verdict {
    fn of(status: &str, outcome: &str) -> Option<Self> {
        match (status, outcome) {
            ("answered", "right") => Some(Self::Right),
            ("answered", "no-gold") => None,
            ("answered", _) => Some(Self::Wrong),
            _ => Some(Self::Refused),
        }
    }
}

/// One question of a run.
#[derive(Clone, Debug, Serialize)]
struct Line {
    index: usize,
    id: String,
    question: String,
    verdict: Option<Verdict>,
    outcome: String,
    status: String,
    refusal: Option<String>,
    f1: Option<f64>,
    /// Of the best answer.
    confidence: Option<f64>,
    answers: Vec<String>,
    expected: Vec<String>,
    #[serde(skip)]
    answer: Place,
    #[serde(skip)]
    gold: Option<Place>,
}

/// The parts of a line of answers that a list shows.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answered {
    id: String,
    question: String,
    outcome: String,
    status: String,
    refusal: Option<String>,
    f1: Option<f64>,
    answers: Vec<Named>,
}

/// The same of a line of questions.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Gold {
    answers: Vec<Named>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Named {
    Bare(String),
    Full {
        name: String,
        confidence: Option<f64>,
    },
}

/// Which questions of a run are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) only: Option<Verdict>,
    pub(crate) outcome: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

impl Runs {
    pub(crate) fn open(root: Option<PathBuf>) -> Result<Self> {
        if let Some(path) = &root {
            fs::read_dir(path).map_err(|source| Error::Io {
                action: "read the runs in",
                path: path.clone(),
                source,
            })?;
        }
        Ok(Self {
            root,
            read: Mutex::default(),
        })
    }

    /// Whether there are runs to browse.
    pub(crate) fn is_open(&self) -> bool {
        self.root.is_some()
    }

    fn folders(&self) -> Result<BTreeMap<String, PathBuf>, Problem> {
        let Some(root) = &self.root else {
            return Err(
                Problem::not_found("no-runs", "this server has no runs to browse")
                    .hint("start it with `--runs FOLDER`"),
            );
        };
        Ok(run_folders(root))
    }

    /// All runs with their main figures.
    pub(crate) fn list(&self, visible: &Visible) -> Result<Value, Problem> {
        let about = |(name, folder): (String, PathBuf)| {
            let about = About::read(&folder);
            let entry = || about.entry(&name, visible.graph(&about));
            visible.has(&about).then(entry)
        };
        let runs: Vec<Value> = self.folders()?.into_iter().filter_map(about).collect();
        Ok(json!({ "runs": runs }))
    }

    /// One run: what it is and how it came out.
    pub(crate) fn describe(&self, name: &str, visible: &Visible) -> Result<Value, Problem> {
        let (mut about, folder) = self.find(name, visible)?;
        let index = self.index(name, &folder);
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &index.lines {
            *outcomes.entry(&line.outcome).or_default() += 1;
        }
        let count = |verdict| {
            let lines = index.lines.iter();
            lines.filter(|line| line.verdict == Some(verdict)).count()
        };
        about.problem = about.problem.or_else(|| index.problem.clone());
        let mut run = about.entry(name, visible.graph(&about));
        if let Some(fields) = about.description.as_object_mut() {
            fields.remove("questions");
            // its keys are paths
            fields.remove("models");
        }
        run["description"] = about.description;
        run["metrics"] = about.metrics;
        run["done"] = index.lines.len().into();
        run["outcomes"] = json!(outcomes);
        run["verdicts"] = json!({
            "right": count(Verdict::Right),
            "wrong": count(Verdict::Wrong),
            "refused": count(Verdict::Refused),
        });
        Ok(run)
    }

    /// Questions of a run.
    pub(crate) fn questions(
        &self,
        name: &str,
        filter: &Filter,
        visible: &Visible,
    ) -> Result<Value, Problem> {
        let (_, folder) = self.find(name, visible)?;
        let index = self.index(name, &folder);
        let text = filter.text.as_ref().map(|text| text.to_lowercase());
        let fits = |line: &&Line| {
            (filter.only).is_none_or(|only| line.verdict == Some(only))
                && (filter.outcome.as_ref()).is_none_or(|outcome| *outcome == line.outcome)
                && (text.as_ref()).is_none_or(|text| line.question.to_lowercase().contains(text))
        };
        let all: Vec<&Line> = index.lines.iter().filter(fits).collect();
        let some: Vec<&&Line> = all.iter().skip(filter.offset).take(filter.limit).collect();
        Ok(json!({ "total": all.len(), "questions": some }))
    }

    /// One question of a run with its answer and what was expected.
    pub(crate) fn question(
        &self,
        name: &str,
        number: usize,
        visible: &Visible,
    ) -> Result<Value, Problem> {
        let (about, folder) = self.find(name, visible)?;
        let index = self.index(name, &folder);
        let Some(line) = index.lines.get(number) else {
            return Err(Problem::not_found(
                "no-such-question",
                format!("the run has {} questions", index.lines.len()),
            )
            .hint("a question of a run goes by its number, from 0"));
        };
        let read = |name, place| {
            read_at(&folder, name, place).map_err(|problem| {
                Problem::unprocessable("damaged-run", problem)
                    .hint("remove the folder of the run, and run `wherefore eval` again")
            })
        };
        let expected = line.gold.map(|place| read(QUESTIONS, place)).transpose()?;
        Ok(json!({
            "index": number,
            "graph": visible.graph(&about),
            "expected": expected,
            "answer": read(ANSWERS, line.answer)?,
        }))
    }

    /// A run that may be seen. Whether there are others is not told.
    fn find(&self, name: &str, visible: &Visible) -> Result<(About, PathBuf), Problem> {
        let folder = self.folders()?.remove(name);
        let found = folder.map(|folder| (About::read(&folder), folder));
        found
            .filter(|(about, _)| visible.has(about))
            .ok_or_else(|| {
                let message = format!("there is no run `{}`", clipped(name));
                Problem::not_found("no-such-run", message).hint("`/v1/runs` lists what there is")
            })
    }

    fn index(&self, name: &str, folder: &Path) -> Arc<Index> {
        let stamp = stamp(folder);
        let lock = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = lock().get(name).filter(|index| index.stamp == stamp) {
            return Arc::clone(index);
        }
        let index = Arc::new(Index::read(folder, stamp));
        let mut read = lock();
        if read.len() >= KEPT {
            read.clear();
        }
        read.insert(name.to_owned(), Arc::clone(&index));
        index
    }
}

impl About {
    fn read(folder: &Path) -> Self {
        let mut problems = Vec::new();
        let mut json = |name| {
            read_json(folder, name).unwrap_or_else(|problem| {
                problems.push(problem);
                Value::Null
            })
        };
        let mut description = json(RUN);
        let metrics = if is_there(folder, METRICS) {
            json(METRICS)
        } else {
            Value::Null
        };
        for name in [QUESTIONS, ANSWERS] {
            problems.extend(check(folder, name).err());
        }
        let graph = description["graph"].as_str().map(str::to_owned);
        without_folders(&mut description);
        Self {
            description,
            graph,
            metrics,
            modified: modified(folder),
            problem: (!problems.is_empty()).then(|| problems.join("; ")),
        }
    }

    /// The retriever, or `auto`, and the language model where there is one.
    fn method(&self) -> Option<String> {
        let config = &self.description["config"];
        let method = if config["beside"].is_null() {
            config["retrieve"]["kind"].as_str()?
        } else {
            "auto"
        };
        let model = config["llm"]
            .as_str()
            .and_then(|llm| llm.rsplit('#').next());
        Some(match model {
            Some(model) => format!("{method} + {model}"),
            None => method.to_owned(),
        })
    }

    /// As it stands in a list.
    fn entry(&self, name: &str, graph: Option<&str>) -> Value {
        json!({
            "name": name,
            "graph": graph,
            "method": self.method(),
            "topics": self.description["topics"].as_str(),
            "questions": self.description["questions"].as_array().map_or(0, Vec::len),
            "modified": self.modified,
            "finished": !self.metrics.is_null(),
            "metrics": self.metrics["overall"],
            "problem": self.problem,
        })
    }
}

impl Index {
    /// Reads as many lines as are whole.
    fn read(folder: &Path, stamp: Stamp) -> Self {
        let mut gold = Vec::new();
        let questions = each_line(folder, QUESTIONS, |place, text| {
            let line: Gold = serde_json::from_slice(text)?;
            gold.push((place, few(&line.answers)));
            Ok(())
        });
        let mut gold = gold.into_iter();
        let mut lines = Vec::new();
        let answers = each_line(folder, ANSWERS, |place, text| {
            let line: Answered = serde_json::from_slice(text)?;
            let (gold, expected) = gold.next().unzip();
            lines.push(Line {
                index: lines.len(),
                verdict: Verdict::of(&line.status, &line.outcome),
                id: cut(&line.id, MOST_TEXT),
                question: cut(&line.question, MOST_TEXT),
                outcome: cut(&line.outcome, MOST_TEXT),
                status: cut(&line.status, MOST_TEXT),
                refusal: line.refusal.map(|code| cut(&code, MOST_TEXT)),
                f1: line.f1,
                confidence: line.answers.first().and_then(Named::confidence),
                answers: few(&line.answers),
                expected: expected.unwrap_or_default(),
                answer: place,
                gold,
            });
            Ok(())
        });
        Self {
            stamp,
            lines,
            problem: answers.and(questions).err(),
        }
    }
}

impl Named {
    fn name(&self) -> &str {
        match self {
            Self::Bare(name) | Self::Full { name, .. } => name,
        }
    }

    fn confidence(&self) -> Option<f64> {
        match self {
            Self::Bare(_) => None,
            Self::Full { confidence, .. } => *confidence,
        }
    }
}

/// The names that a list shows.
fn few(names: &[Named]) -> Vec<String> {
    let names = names.iter().take(FEW);
    names.map(|named| cut(named.name(), MOST_TEXT)).collect()
}

/// Paths of this machine are nobody's business, nor are addresses: of each, the last part is left.
fn without_folders(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('/') => {
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

    fn all() -> Visible {
        Visible {
            graphs: HashMap::new(),
            others: true,
        }
    }

    #[test]
    fn runs_are_browsed_by_the_names_they_were_found_under() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("metaqa/walk");
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write(
            "run.json",
            r#"{"version":"1","graph":"http://x/sparql","questions":["a","b"],"models":{"/home/me/ckpt":"0"},
                "config":{"retrieve":{"kind":"qr-gat","model":"/home/me/ckpt"},"llm":"http://me:secret@x/v1#qwen"}}"#,
        );
        write(
            "questions.jsonl",
            "{\"id\":\"a\",\"answers\":[\"x\",{\"name\":\"y\",\"aliases\":[\"z\"]}]}\n{\"id\":\"b\"}\n",
        );
        write(
            "answers.jsonl",
            "{\"id\":\"a\",\"question\":\"Who is it?\",\"outcome\":\"right\",\"f1\":0.5,\"status\":\"answered\",\
              \"answers\":[{\"name\":\"x\",\"confidence\":0.75}]}\n\
             {\"id\":\"b\",\"question\":\"Where?\",\"outcome\":\"not-linked\",\"status\":\"abstained\",\"answers\":[]}\n{\"id\":",
        );
        let runs = Runs::open(Some(root.path().to_owned())).unwrap();
        let list = runs.list(&all()).unwrap()["runs"].clone();
        assert_eq!(list.as_array().unwrap().len(), 1);
        assert_eq!(
            (&list[0]["name"], &list[0]["questions"]),
            (&"metaqa/walk".into(), &2.into())
        );
        assert_eq!(
            (&list[0]["method"], &list[0]["finished"]),
            (&"qr-gat + qwen".into(), &false.into())
        );
        let about = runs.describe("metaqa/walk", &all()).unwrap();
        assert_eq!(about["description"]["config"]["retrieve"]["model"], "ckpt");
        assert!(!about.to_string().contains("home") && !about.to_string().contains("secret"));
        assert_eq!(
            (&about["outcomes"]["right"], &about["done"]),
            (&1.into(), &2.into())
        );
        assert_eq!(
            about["verdicts"],
            json!({ "right": 1, "wrong": 0, "refused": 1 })
        );
        assert_eq!(about["problem"], Value::Null);
        let listed = |filter: Filter| {
            let filter = Filter {
                limit: 10,
                ..filter
            };
            runs.questions("metaqa/walk", &filter, &all()).unwrap()
        };
        let some = listed(Filter {
            text: Some("WHERE".into()),
            ..Filter::default()
        });
        assert_eq!(
            (&some["total"], &some["questions"][0]["id"]),
            (&1.into(), &"b".into())
        );
        let right = listed(Filter {
            only: Some(Verdict::Right),
            ..Filter::default()
        });
        let first = &right["questions"][0];
        assert_eq!(
            (&right["total"], &first["verdict"]),
            (&1.into(), &"right".into())
        );
        assert_eq!(
            (&first["expected"], &first["answers"]),
            (&json!(["x", "y"]), &json!(["x"]))
        );
        assert_eq!(
            (&first["f1"], &first["confidence"]),
            (&json!(0.5), &json!(0.75))
        );
        let one = runs.question("metaqa/walk", 0, &all()).unwrap();
        assert_eq!(one["expected"]["answers"][0], "x");
        assert_eq!(one["answer"]["answers"][0]["name"], "x");
        for bad in ["", "..", "../walk", "metaqa", "/etc"] {
            let problem = runs.describe(bad, &all()).unwrap_err();
            assert_eq!(problem.status, 404, "{bad}");
        }
        let problem = runs.question("metaqa/walk", 2, &all()).unwrap_err();
        assert_eq!(problem.status, 404);
        let graphs = HashMap::from([("http://x/sparql".into(), "far".into())]);
        for (graphs, count) in [(graphs, 1), (HashMap::new(), 0)] {
            let visible = Visible {
                graphs,
                others: false,
            };
            let list = runs.list(&visible).unwrap();
            assert_eq!(list["runs"].as_array().unwrap().len(), count);
            assert_eq!(runs.describe("metaqa/walk", &visible).is_ok(), count == 1);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_keeps_the_server_from_starting() {
        let root = tempfile::tempdir().unwrap();
        assert!(Runs::open(Some(root.path().join("nothing"))).is_err());
        assert!(!Runs::open(None).unwrap().is_open());
    }
}
