//! Runs a pipeline over questions and leaves a folder that tells all: what was run, every answer,
//! every metric.
//!
//! ```text
//! run.json         version, config, models, graph, seed, topics, questions: what the run is
//! questions.jsonl  the questions with their gold answers, but for graphs of their own
//! answers.jsonl    one line for each question, in the order of the questions
//! metrics.json     written when the last line is there
//! ```
//!
//! Questions are answered on all cores and written in order, so that a run stopped half-way has
//! the first lines of the whole one; run again, it goes on after them. A half-written last line
//! is done anew. Lines differ between runs in `timings_ms` alone.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wherefore::model::checkpoint;
use wherefore::retrieve::ScoredTriples;
use wherefore::{Answer, Observer, Pipeline, Stage};
use wherefore_graph::Graph;
use xxhash_rust::xxh3::Xxh3Default;

use crate::atomic_write::{self, write_json};
use crate::each::in_order;
use crate::error::{Error, Result};
use crate::metrics::{
    AnswerCounts, Matching, Metrics, Observation, Options, RecallAtK, Scores, TopicSource,
    recall_at,
};
use crate::outcome::{Outcome, Trail};
use crate::questions::{self, GoldQuestion, Resolved, json_records, resolve, utf8};
use crate::supervise::ShortestPaths;

const QUESTIONS: &str = "questions.jsonl";
const ANSWERS: &str = "answers.jsonl";

/// What a run is. Two runs are the same if these are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDescription {
    /// Version of this program.
    pub version: String,
    /// The resolved configuration.
    pub config: serde_json::Value,
    /// The checkpoints that it names, each with what tells its files from others.
    #[serde(default)]
    pub models: BTreeMap<String, String>,
    /// The graph's identity; none where each question brings its own.
    #[serde(default)]
    pub graph: Option<String>,
    /// The seed.
    pub seed: u64,
    /// Whether gold topics were given.
    pub topics: TopicSource,
    /// The k at which retrieval was measured.
    pub ks: Vec<usize>,
    /// The ids of the questions, in order.
    pub questions: Vec<String>,
}

impl RunDescription {
    /// Describes a run of `config` over `questions`.
    pub fn new(
        config: serde_json::Value,
        seed: u64,
        topics: TopicSource,
        options: &Options,
        questions: &[GoldQuestion],
        graph: &dyn Graph,
    ) -> Result<Self> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").into(),
            models: models_in(&config)?,
            config,
            graph: graph.identity().map(str::to_owned),
            seed,
            topics,
            ks: options.ks.clone(),
            questions: questions.iter().map(|q| q.id.clone()).collect(),
        })
    }

    fn difference(&self, other: &Self) -> Option<&'static str> {
        [
            (self.version != other.version, "version"),
            (self.config != other.config, "configuration"),
            (self.models != other.models, "checkpoint"),
            (self.graph != other.graph, "graph"),
            (self.seed != other.seed, "seed"),
            (self.topics != other.topics, "source of topics"),
            (self.ks != other.ks, "list of `k`"),
            (self.questions != other.questions, "list of questions"),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
    }
}

/// Every checkpoint that a configuration names, with a checksum of its files.
fn models_in(config: &serde_json::Value) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut open = vec![config];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::String(path) => {
                let folder = checkpoint::in_place(Path::new(path));
                if folder.join("config.json").is_file() {
                    found.insert(path.clone(), checksum(&folder)?);
                }
            }
            serde_json::Value::Array(all) => open.extend(all),
            serde_json::Value::Object(all) => open.extend(all.values()),
            _ => {}
        }
    }
    Ok(found)
}

/// What tells the files of a folder, and of the folders in it, from others.
fn checksum(folder: &Path) -> Result<String> {
    let mut hash = Xxh3Default::new();
    let mut block = vec![0; 1 << 20];
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).map_err(Error::io("read", &folder))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(Error::io("read", &folder))?.path());
        }
        paths.sort_unstable();
        for path in paths {
            hash.update(path.file_name().unwrap_or_default().as_encoded_bytes());
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let mut file = File::open(&path).map_err(Error::io("read", &path))?;
            loop {
                let count = file.read(&mut block).map_err(Error::io("read", &path))?;
                if count == 0 {
                    break;
                }
                hash.update(&block[..count]);
            }
        }
    }
    Ok(format!("{:016x}", hash.digest()))
}

/// One line of `answers.jsonl`: the answer with all its stages, and what only the run can know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLine {
    /// The question's id.
    pub id: String,
    /// Entities and triples of the question's subgraph.
    pub subgraph: (usize, usize),
    /// What had to be left out of it; the answer has `notes` of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subgraph_notes: Vec<String>,
    /// Recall of the scored triples at each k.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retrieval: Vec<RecallAtK>,
    /// Where the question was lost, if it was.
    #[serde(default)]
    pub outcome: Outcome,
    /// F1 of the answers, by lenient names; none without gold answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f1: Option<f64>,
    /// The answer.
    #[serde(flatten)]
    pub answer: Answer,
}

impl From<&RunLine> for Observation {
    fn from(line: &RunLine) -> Self {
        Observation {
            retrieval: line.retrieval.clone(),
            ..Observation::from(&line.answer)
        }
    }
}

/// Whether an error is due to what was asked, so that the question is lost and the others are not.
fn is_of_question(error: &wherefore::Error) -> bool {
    use wherefore::Error;
    use wherefore::model::Error as ModelError;
    match error {
        Error::EmptyQuestion
        | Error::QuestionTooLong { .. }
        | Error::NoSuchTopic { .. }
        | Error::FormSyntax { .. }
        | Error::FormNames { .. }
        | Error::FormValue { .. }
        | Error::FormTooLarge { .. }
        | Error::FormTooLong { .. } => true,
        Error::Model(error) => matches!(
            error,
            ModelError::EmptySubgraph
                | ModelError::PromptTooLong { .. }
                | ModelError::Tokenize { .. }
                | ModelError::BadReply { .. }
                // a prompt that is too long for the server, or that it will not read
                | ModelError::ServerRefused {
                    status: 400 | 413 | 422,
                    ..
                }
        ),
        _ => false,
    }
}

/// Answers one question of a benchmark and measures the retrieval on the way.
///
/// Questions that bring their own triples are asked over those. What is wrong with the question
/// itself (no words, a topic that the graph does not have) is an abstention, not an error.
pub fn answer_line(
    pipeline: &Pipeline,
    graph: &dyn Graph,
    question: &GoldQuestion,
    topics: TopicSource,
    ks: &[usize],
) -> Result<RunLine> {
    let own = question.own_graph();
    let graph = own.as_ref().map_or(graph, |own| own as &dyn Graph);
    let asked = match topics {
        TopicSource::Gold => question.with_gold_topics(),
        TopicSource::Linked => question.without_topics(),
    };
    let gold = resolve(question, graph)?;
    let mut watch = Watch {
        gold: &gold,
        ks,
        trail: Trail::default(),
        line: RunLine {
            id: question.id.clone(),
            ..RunLine::default()
        },
        failed: None,
    };
    let answer = match pipeline.answer(&asked, graph, &mut watch) {
        Ok(answer) => answer,
        // a server that is down or a broken file would lose every question: such a run ends
        Err(e) if !is_of_question(&e) => return Err(e.into()),
        Err(e) => Answer {
            question: question.question.clone(),
            reason: Some(e.to_string()),
            ..Answer::default()
        },
    };
    if watch.line.retrieval.is_empty() {
        // lost before anything was retrieved: nothing was found of what was to be found
        let nothing: [(wherefore_graph::Triple, f32); 0] = [];
        let ends = |t: &wherefore_graph::Triple| [t.head, t.tail];
        watch.line.retrieval = recall_at(&nothing, ends, &[], &gold.answers, ks);
    }
    match watch.failed {
        Some(error) => Err(error),
        None => Ok(RunLine {
            outcome: watch.trail.outcome(question, &gold, &answer),
            f1: f1(question, &answer),
            answer,
            ..watch.line
        }),
    }
}

fn f1(question: &GoldQuestion, answer: &Answer) -> Option<f64> {
    let predicted = Observation::from(answer).answers;
    let counts = AnswerCounts::of(&question.answers, &predicted, Matching::Lenient);
    (counts.gold > 0).then(|| counts.f1())
}

/// Sees the scored triples before the selector does.
struct Watch<'a> {
    gold: &'a Resolved,
    ks: &'a [usize],
    trail: Trail,
    line: RunLine,
    failed: Option<Error>,
}

impl Observer for Watch<'_> {
    fn stage(&mut self, stage: Stage<'_>) {
        self.trail.see(stage, self.gold);
        if let Stage::Retrieved(scored) = stage {
            self.line.subgraph = (
                scored.subgraph.entities().len(),
                scored.subgraph.triples().len(),
            );
            self.line.subgraph_notes.clone_from(&scored.notes);
            match self.recall(scored) {
                Ok(recall) => self.line.retrieval = recall,
                Err(error) => self.failed = Some(error),
            }
        }
    }
}

impl Watch<'_> {
    fn recall(&self, scored: &ScoredTriples) -> Result<Vec<RecallAtK>> {
        let found = self.gold;
        let labels = ShortestPaths::default().label(
            &scored.subgraph,
            &found.topic_entities(),
            &found.answer_entities(),
        )?;
        let mut ranked: Vec<_> = scored
            .subgraph
            .triples()
            .iter()
            .copied()
            .zip(scored.triple_scores.iter().copied())
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        let ends =
            |t: &wherefore_graph::Triple| [t.head, t.tail].map(|own| scored.subgraph.entity(own));
        Ok(recall_at(
            &ranked,
            ends,
            &labels.positives.triples,
            &found.answers,
            self.ks,
        ))
    }
}

/// Runs `answer` over the questions into `folder`, after the lines that are there already; `threads`
/// questions at the same time, 0 meaning one for each core.
///
/// `progress` is called after each line with the number done; it may return `false` to stop,
/// which leaves a folder that can be gone on with, and gives `None`.
pub fn run(
    folder: &Path,
    description: &RunDescription,
    questions: &[GoldQuestion],
    options: &Options,
    threads: usize,
    answer: &(dyn Fn(&GoldQuestion) -> Result<RunLine> + Sync),
    progress: &mut dyn FnMut(usize, &RunLine) -> bool,
) -> Result<Option<Scores>> {
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    describe(folder, description)?;
    save_questions(folder, questions)?;
    let path = folder.join(ANSWERS);
    let mut lines = resume(&path, description)?;
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(Error::io("write", &path))?;
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        given => given,
    };
    let left = &questions[lines.len()..];
    let job = |at: usize| answer(&left[at]);
    let finished = in_order(left.len(), threads, job, |line| {
        let mut out = BufWriter::new(&file);
        serde_json::to_writer(&mut out, &line)
            .map_err(std::io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush())
            .map_err(Error::io("write", &path))?;
        lines.push(line);
        Ok(progress(lines.len(), &lines[lines.len() - 1]))
    })?;
    if !finished {
        return Ok(None);
    }
    let observations: Vec<_> = lines.iter().map(|l| Some(Observation::from(l))).collect();
    let scores = Scores::new(questions, &observations, options)?;
    let mut metrics = scores.metrics();
    metrics.topics = Some(description.topics);
    save_metrics(folder, &metrics)?;
    Ok(Some(scores))
}

/// Writes `metrics.json` into a run folder, aside and then renamed.
pub fn save_metrics(folder: &Path, metrics: &Metrics) -> Result<()> {
    write_json(&folder.join("metrics.json"), metrics)
}

/// Writes `run.json`, or holds the one that is there against `description`.
fn describe(folder: &Path, description: &RunDescription) -> Result<()> {
    let path = folder.join("run.json");
    if !path.exists() {
        return write_json(&path, description);
    }
    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
    let found: Option<RunDescription> = serde_json::from_slice(&bytes).ok();
    let what = match &found {
        Some(found) => found.difference(description),
        None => Some("`run.json`"),
    };
    match what {
        Some(what) => Err(Error::OtherRun {
            path: folder.into(),
            what,
        }),
        None => Ok(()),
    }
}

/// The lines that are there; a last line without an end is cut off the file.
fn resume(path: &Path, description: &RunDescription) -> Result<Vec<RunLine>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    let whole = whole_lines(&bytes).len();
    if whole < bytes.len() {
        File::options()
            .write(true)
            .open(path)
            .and_then(|file| file.set_len(whole as u64))
            .map_err(Error::io("write", path))?;
    }
    let lines = json_records::<RunLine>(path, utf8(path, &bytes[..whole])?, "run lines")?;
    let fits = lines.len() <= description.questions.len()
        && lines
            .iter()
            .zip(&description.questions)
            .all(|((_, line), id)| line.id == *id);
    if !fits {
        return Err(Error::OtherRun {
            path: path.into(),
            what: "order of lines",
        });
    }
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

/// Keeps the questions beside the answers, so that the folder can be read by itself.
fn save_questions(folder: &Path, asked: &[GoldQuestion]) -> Result<()> {
    let path = folder.join(QUESTIONS);
    let bare: Vec<GoldQuestion> = asked
        .iter()
        .map(|q| GoldQuestion {
            triples: Vec::new(),
            ..q.clone()
        })
        .collect();
    let mut text = Vec::new();
    questions::write(&bare, &mut text).map_err(Error::io("write", &path))?;
    atomic_write::write(&path, text)
}

/// A run folder, read.
#[derive(Debug)]
pub struct Run {
    /// What the run is.
    pub description: RunDescription,
    /// Its questions.
    pub questions: Vec<GoldQuestion>,
    /// Its lines, in the order of the questions; fewer if it has not come to its end.
    pub lines: Vec<RunLine>,
}

impl Run {
    /// Reads a run folder.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("run.json");
        let bytes = std::fs::read(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::NotARun {
                path: folder.into(),
            },
            _ => Error::io("read", &path)(source),
        })?;
        let description: RunDescription =
            serde_json::from_slice(&bytes).map_err(|e| Error::BadLine {
                path: path.clone(),
                line: e.line(),
                format: "a run description".into(),
                reason: e.to_string(),
            })?;
        let path = folder.join(QUESTIONS);
        let questions = questions::read(&path, Some(questions::Format::Jsonl))?;
        let path = folder.join(ANSWERS);
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let whole = whole_lines(&bytes);
        let lines = json_records::<RunLine>(&path, utf8(&path, whole)?, "run lines")?;
        Ok(Self {
            description,
            questions,
            lines: lines.into_iter().map(|(_, line)| line).collect(),
        })
    }

    /// Scores the run again.
    pub fn scores(&self, resamples: usize) -> Result<Scores> {
        let options = Options {
            ks: self.description.ks.clone(),
            resamples,
            seed: self.description.seed,
            ..Options::default()
        };
        let mut observations: Vec<_> = self
            .lines
            .iter()
            .map(|l| Some(Observation::from(l)))
            .collect();
        observations.resize(self.questions.len(), None);
        Scores::new(&self.questions, &observations, &options)
    }
}

/// All but a half-written last line.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&b| b == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
}

#[cfg(test)]
mod tests {
    use wherefore::PipelineConfig;
    use wherefore_graph::toy;

    use super::*;

    fn questions() -> Vec<GoldQuestion> {
        (0..40)
            .map(|i| {
                let (topic, text, answer) = [
                    (
                        "San Francisco Giants",
                        "which stadium do the San Francisco Giants play in",
                        "Oracle Park",
                    ),
                    (
                        "Bruce Bochy",
                        "where was Bruce Bochy born",
                        "Landes de Bussac",
                    ),
                    ("Atlantis", "where is Atlantis", "Nowhere"),
                ][i % 3];
                GoldQuestion {
                    id: format!("q{i}"),
                    question: text.into(),
                    topics: vec![topic.into()],
                    answers: vec![answer.into()],
                    ..GoldQuestion::default()
                }
            })
            .collect()
    }

    fn go(folder: &Path, seed: u64, stop_after: usize) -> Result<Option<Scores>> {
        let pipeline = PipelineConfig::default().build()?;
        let graph = toy::graph();
        let questions = questions();
        let options = Options {
            ks: vec![1, 5],
            resamples: 20,
            seed,
            ..Options::default()
        };
        let config = serde_json::json!({"method": "similarity"});
        let description = RunDescription::new(
            config,
            seed,
            TopicSource::Gold,
            &options,
            &questions,
            &graph,
        )?;
        run(
            folder,
            &description,
            &questions,
            &options,
            0,
            &|q| answer_line(&pipeline, &graph, q, TopicSource::Gold, &options.ks),
            &mut |done, _| done < stop_after,
        )
    }

    /// The lines without their times.
    fn timeless(folder: &Path) -> Vec<String> {
        std::fs::read_to_string(folder.join("answers.jsonl"))
            .unwrap()
            .lines()
            .map(|line| {
                let mut line: RunLine = serde_json::from_str(line).unwrap();
                line.answer.timings_ms.clear();
                serde_json::to_string(&line).unwrap()
            })
            .collect()
    }

    #[test]
    fn a_checkpoint_that_was_trained_again_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model");
        let config = serde_json::json!({"retrieve": {"kind": "gnn2r", "model": model}});
        assert!(models_in(&config).unwrap().is_empty());
        // a file, or a folder that is no checkpoint
        let others = serde_json::json!([file!(), folder.path(), "static", 3]);
        assert!(models_in(&others).unwrap().is_empty());
        std::fs::create_dir_all(model.join("sentences")).unwrap();
        std::fs::write(model.join("config.json"), "{}").unwrap();
        std::fs::write(model.join("model.safetensors"), "a").unwrap();
        let first = models_in(&config).unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(models_in(&config).unwrap(), first);
        std::fs::write(model.join("sentences/model.safetensors"), "b").unwrap();
        assert_ne!(models_in(&config).unwrap(), first);
    }

    #[test]
    fn a_stopped_and_resumed_run_equals_an_uninterrupted_one() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
        let scores = go(&whole, 0, usize::MAX).unwrap().unwrap();
        assert!(go(&parts, 0, 7).unwrap().is_none());
        assert_eq!(timeless(&parts).len(), 7);
        assert!(!parts.join("metrics.json").exists());
        // as if killed in the middle of a line
        let path = parts.join("answers.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 20]).unwrap();
        let resumed = go(&parts, 0, usize::MAX).unwrap().unwrap();
        assert_eq!(timeless(&parts), timeless(&whole));
        assert_eq!(resumed.metrics().overall, scores.metrics().overall);
        // two of three questions can be answered, 14 + 13 of 40
        let hit = scores.metrics().overall.value("lenient.hit").unwrap();
        assert!((hit - 27.0 / 40.0).abs() < 1e-6, "{hit}");
        let recall = *scores
            .metrics()
            .overall
            .get("retrieval.triple_recall@5")
            .unwrap();
        assert_eq!((recall.value, recall.questions), (1.0, 27));
        // done already: nothing is answered again, and the files stay
        let before = std::fs::read(&path).unwrap();
        go(&parts, 0, usize::MAX).unwrap().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_language_model_that_is_gone_ends_the_run_and_is_no_abstention() {
        let mut config = PipelineConfig::default();
        config.set_llm("http://127.0.0.1:1/v1#gone?retries=0");
        let (pipeline, graph) = (config.build().unwrap(), toy::graph());
        let line = |question: &GoldQuestion| {
            answer_line(&pipeline, &graph, question, TopicSource::Gold, &[1])
        };
        let error = line(&questions()[0]).unwrap_err();
        assert!(error.to_string().contains("cannot be reached"), "{error}");
        // a topic that the graph does not have is the question's own fault
        let lost = line(&questions()[2]).unwrap();
        assert_eq!(lost.outcome, Outcome::NotInGraph);
    }

    #[test]
    fn a_question_lost_before_retrieval_has_found_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = go(folder.path(), 1, usize::MAX).unwrap().unwrap().metrics();
        let run = Run::open(folder.path()).unwrap();
        assert_eq!(run.lines[2].outcome, Outcome::NotInGraph);
        assert_eq!(run.lines[2].f1, Some(0.0));
        let f1: f64 = run.lines.iter().filter_map(|line| line.f1).sum();
        let mean = metrics.overall.value("lenient.f1").unwrap();
        assert!((f1 / 40.0 - mean).abs() < 1e-6, "{f1} {mean}");
        assert_eq!(run.lines[2].retrieval[0].answers, Some((0.0, 0.0)));
        assert_eq!(run.lines[2].retrieval[0].triples, None);
        // 14 and 13 of 40 questions are about the graph, and their answers lie in it
        let recall = metrics.overall.get("retrieval.answer_recall@5").unwrap();
        assert_eq!(recall.questions, 40);
        assert!(recall.value <= 27.0 / 40.0 + 1e-9, "{}", recall.value);
        let again = run.scores(20).unwrap().metrics();
        assert_eq!(again.overall, metrics.overall);
    }

    #[test]
    fn a_folder_of_another_run_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        go(folder.path(), 0, usize::MAX).unwrap();
        let before = std::fs::read(folder.path().join("answers.jsonl")).unwrap();
        let error = go(folder.path(), 1, usize::MAX).unwrap_err();
        assert!(
            error.to_string().contains("its seed is not the same"),
            "{error}"
        );
        assert!(error.hint().is_some());
        assert_eq!(
            std::fs::read(folder.path().join("answers.jsonl")).unwrap(),
            before
        );
    }
}
