//! Better labels for any retriever: a judge picks the paths that are evidence.
//!
//! "Weak-to-Strong GraphRAG" (ReG), section 4.1. For each question there is a small pool of candidate
//! paths (`pool.rs`). A language model is shown them with the question and its answer, after one
//! worked example, and names those that are evidence, one `ans: Path n` a line (`reply.rs`); or an
//! encoder compares them with the question (`judge.rs`). Their triples are the positives.
//!
//! ```text
//! {"id", "paths": [[[head, relation, tail], …], …],      what was picked: `wherefore train --labels`
//!  "pool": ["a -> [r] -> b", …], "picked": [0, 2], "fallback": false, "model", "llm": {…}}
//! ```
//!
//! Where nothing is picked, all shortest paths count, as without labels, and the line says
//! `fallback`. Lines stand in the order of the questions; a run that was stopped goes on after them.

mod judge;
mod pool;
mod reply;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wherefore::answer::LlmUse;
use wherefore::graph::names::normalise;
use wherefore::graph::{Graph, Step};
use wherefore::organize::one_line;

use crate::each::in_order;
use crate::error::{Error, Result};
use crate::questions::{GoldQuestion, NamedTriple, json_records, resolve, utf8};
use crate::supervise::ShortestPaths;

pub use judge::{EncoderJudge, Judge, ModelJudge, Offer};
pub use pool::{Candidate, PoolConfig, pool};

/// How labels are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelConfig {
    /// What is offered.
    pub pool: PoolConfig,
    /// Questions that are judged at the same time; 0 is 1.
    pub threads: usize,
}

/// One line of a label file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelLine {
    /// The question's id.
    pub id: String,
    /// The picked paths with all that they stand for.
    pub paths: Vec<Vec<NamedTriple>>,
    /// What was offered.
    #[serde(default)]
    pub pool: Vec<String>,
    /// The numbers that were picked.
    #[serde(default)]
    pub picked: Vec<usize>,
    /// Whether nothing was picked, so that all shortest paths count.
    #[serde(default)]
    pub fallback: bool,
    /// The judge's identity.
    #[serde(default)]
    pub model: String,
    /// What it cost.
    #[serde(default)]
    pub llm: LlmUse,
}

/// What a labelling came to, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Labelled {
    /// Questions with a line.
    pub questions: usize,
    /// Those that an earlier run had labelled.
    pub resumed: usize,
    /// Those where nothing was picked.
    pub fallbacks: usize,
    /// Those without a path from a topic to an answer.
    pub without_paths: usize,
    /// Candidates offered, all together.
    pub offered: usize,
    /// Candidates picked, all together.
    pub picked: usize,
    /// What it cost.
    pub llm: LlmUse,
}

impl Labelled {
    /// Counts one more question.
    pub fn add(&mut self, line: &LabelLine) {
        self.questions += 1;
        self.fallbacks += usize::from(line.fallback);
        self.without_paths += usize::from(line.paths.is_empty());
        self.offered += line.pool.len();
        self.picked += line.picked.len();
        self.llm.add(line.llm);
    }
}

/// Labels all questions, in order, into a file of lines. `see` is told what was done so far.
pub fn label(
    graph: &dyn Graph,
    questions: &[GoldQuestion],
    judge: &dyn Judge,
    config: &LabelConfig,
    out: &Path,
    see: &mut dyn FnMut(&Labelled),
) -> Result<Labelled> {
    let done = begun(out, questions, judge)?;
    let mut so_far = Labelled::default();
    done.iter().for_each(|line| so_far.add(line));
    so_far.resumed = done.len();
    see(&so_far);
    // what a killed run left half-written goes
    let mut text: Vec<u8> = Vec::new();
    for line in &done {
        text.extend(to_bytes(line));
    }
    if out.exists() {
        crate::atomic_write::write(out, &text)?;
    }
    let file = OpenOptions::new().create(true).append(true).open(out);
    let mut file = BufWriter::new(file.map_err(Error::io("write", out))?);
    let left = &questions[done.len()..];
    in_order(
        left.len(),
        config.threads.max(1),
        |i| line(&left[i], graph, judge, config),
        |line| {
            let write = |file: &mut BufWriter<File>| {
                file.write_all(&to_bytes(&line))?;
                file.flush()
            };
            write(&mut file).map_err(Error::io("write", out))?;
            so_far.add(&line);
            see(&so_far);
            Ok(true)
        },
    )?;
    Ok(so_far)
}

/// The whole lines of an earlier run over the same questions with the same judge.
fn begun(out: &Path, questions: &[GoldQuestion], judge: &dyn Judge) -> Result<Vec<LabelLine>> {
    if !out.exists() {
        return Ok(Vec::new());
    }
    let bytes = std::fs::read(out).map_err(Error::io("read", out))?;
    let whole = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let records = json_records::<LabelLine>(out, utf8(out, &bytes[..whole])?, "labels")?;
    let lines: Vec<LabelLine> = records.into_iter().map(|(_, line)| line).collect();
    let other = |what| Error::OtherRun {
        path: out.to_owned(),
        what,
    };
    if lines.iter().any(|line| line.model != judge.identity()) {
        return Err(other("model"));
    }
    let same = lines.iter().zip(questions).all(|(line, q)| line.id == q.id);
    if !same || lines.len() > questions.len() {
        return Err(other("list of questions"));
    }
    Ok(lines)
}

fn to_bytes(line: &LabelLine) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(line).expect("a line is texts and numbers");
    bytes.push(b'\n');
    bytes
}

/// Labels one question.
fn line(
    question: &GoldQuestion,
    graph: &dyn Graph,
    judge: &dyn Judge,
    config: &LabelConfig,
) -> Result<LabelLine> {
    let own = question.own_graph();
    let graph = own.as_ref().map_or(graph, |own| own as &dyn Graph);
    let gold = resolve(question, graph)?;
    let (topics, answers) = (gold.topic_entities(), gold.answer_entities());
    let candidates = pool(graph, &topics, &answers, &config.pool)?;
    let mut line = LabelLine {
        id: question.id.clone(),
        model: judge.identity().to_owned(),
        pool: candidates.iter().map(|c| c.text.clone()).collect(),
        ..LabelLine::default()
    };
    if !candidates.iter().any(|c| c.is_path) {
        line.fallback = true;
        return Ok(line);
    }
    let answer = answers.iter().copied().find(|a| {
        let ends = candidates
            .iter()
            .filter(|c| c.is_path)
            .flat_map(|c| &c.paths);
        ends.filter_map(|path| path.last())
            .any(|step| step.to() == *a)
    });
    let answer = match answer {
        Some(answer) => one_line(&graph.entity_label(answer)?),
        None => String::new(),
    };
    let topics = (topics.iter()).map(|topic| graph.entity_label(*topic).map(Cow::into_owned));
    let offer = Offer {
        question: &question.question,
        topics: &topics.collect::<Result<Vec<String>, _>>()?,
        answer: &answer,
        candidates: &candidates,
        graph,
    };
    (line.picked, line.llm) = judge.pick(&offer)?;
    line.fallback = line.picked.is_empty();
    let kept: Vec<&Candidate> = match line.fallback {
        true => candidates.iter().filter(|c| c.is_path).collect(),
        false => line.picked.iter().map(|i| &candidates[*i]).collect(),
    };
    for path in kept.iter().flat_map(|c| &c.paths) {
        line.paths.push(named(path, graph)?);
    }
    Ok(line)
}

fn named(path: &[Step], graph: &dyn Graph) -> Result<Vec<NamedTriple>> {
    let label = |e| graph.entity_label(e).map(Cow::into_owned);
    path.iter()
        .map(|step| {
            let t = step.triple;
            let relation = graph.relation_label(t.relation)?.into_owned();
            Ok([label(t.head)?, relation, label(t.tail)?])
        })
        .collect()
}

/// How two label files become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// Paths that either has.
    Union,
    /// Paths that both have; where there are none, those that either has.
    Intersection,
}

/// Reads a label file.
pub fn read(path: &Path) -> Result<Vec<LabelLine>> {
    let bytes = crate::questions::read_file(path)?;
    let records = json_records::<LabelLine>(path, utf8(path, &bytes)?, "labels")?;
    Ok(records.into_iter().map(|(_, line)| line).collect())
}

/// One file of two: the questions of the first, then those that the second alone has.
pub fn combine(first: &Path, second: &Path, how: Combine, out: &Path) -> Result<Labelled> {
    let (first, second) = (read(first)?, read(second)?);
    let mut others: HashMap<String, LabelLine> =
        second.iter().map(|l| (l.id.clone(), l.clone())).collect();
    let mut lines: Vec<LabelLine> = Vec::new();
    for line in first {
        lines.push(match others.remove(&line.id) {
            Some(other) => joined(line, other, how),
            None => line,
        });
    }
    let rest = second.into_iter().filter(|l| others.contains_key(&l.id));
    lines.extend(rest);
    let mut done = Labelled::default();
    let mut bytes = Vec::new();
    for line in &lines {
        done.add(line);
        bytes.extend(to_bytes(line));
    }
    crate::atomic_write::write(out, bytes)?;
    Ok(done)
}

fn joined(first: LabelLine, second: LabelLine, how: Combine) -> LabelLine {
    // a model that picked nothing has no say
    let (first, second) = match (first.fallback, second.fallback) {
        (false, true) => return first,
        (true, false) => return second,
        _ => (first, second),
    };
    let theirs: HashSet<&Vec<NamedTriple>> = second.paths.iter().collect();
    let mut paths: Vec<Vec<NamedTriple>> = Vec::new();
    if how == Combine::Intersection {
        paths.extend(first.paths.iter().filter(|p| theirs.contains(p)).cloned());
    }
    if paths.is_empty() {
        paths.clone_from(&first.paths);
        let mine: HashSet<&Vec<NamedTriple>> = first.paths.iter().collect();
        paths.extend(second.paths.iter().filter(|p| !mine.contains(p)).cloned());
    }
    let mut llm = first.llm;
    llm.add(second.llm);
    LabelLine {
        paths,
        llm,
        model: format!("{} + {}", first.model, second.model),
        ..first
    }
}

/// How near labels are to the triples that a benchmark holds for relevant, averaged over questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// Questions with relevant triples and labels.
    pub questions: usize,
    /// Precision and recall of shortest paths.
    pub weak: (f64, f64),
    /// Precision and recall of the file's labels.
    pub refined: (f64, f64),
}

/// Holds a label file, and shortest paths, against the relevant triples of the questions, by names in
/// normal form: a benchmark writes `currency_used` where the graph's label is `currency used`.
pub fn quality(
    lines: &[LabelLine],
    questions: &[GoldQuestion],
    graph: &dyn Graph,
) -> Result<Quality> {
    let by_id: HashMap<&str, &LabelLine> = lines.iter().map(|l| (l.id.as_str(), l)).collect();
    let key = |triple: &NamedTriple| triple.each_ref().map(|name| normalise(name));
    let mut sum = Quality::default();
    for question in questions {
        let relevant: HashSet<NamedTriple> = question.proof.relevant.iter().map(key).collect();
        let Some(line) = by_id.get(question.id.as_str()) else {
            continue;
        };
        if relevant.is_empty() || line.paths.is_empty() {
            continue;
        }
        let own = question.own_graph();
        let graph = own.as_ref().map_or(graph, |own| own as &dyn Graph);
        let gold = resolve(question, graph)?;
        let weak = ShortestPaths::default().positives(
            graph,
            &gold.topic_entities(),
            &gold.answer_entities(),
        )?;
        let step = |triple| Step {
            triple,
            forward: true,
        };
        let steps: Vec<Step> = weak.triples.into_iter().map(step).collect();
        let weak = named(&steps, graph)?;
        let measure = |labels: HashSet<NamedTriple>| {
            let right = labels.intersection(&relevant).count() as f64;
            let precision = right / labels.len().max(1) as f64;
            (precision, right / relevant.len() as f64)
        };
        let refined = line.paths.iter().flatten().map(key).collect();
        let (w, r) = (measure(weak.iter().map(key).collect()), measure(refined));
        sum.questions += 1;
        sum.weak = (sum.weak.0 + w.0, sum.weak.1 + w.1);
        sum.refined = (sum.refined.0 + r.0, sum.refined.1 + r.1);
    }
    let count = sum.questions.max(1) as f64;
    sum.weak = (sum.weak.0 / count, sum.weak.1 / count);
    sum.refined = (sum.refined.0 / count, sum.refined.1 / count);
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wherefore::graph::toy;
    use wherefore::model::language::{Prompt, Scripted};

    use super::*;

    fn questions() -> Vec<GoldQuestion> {
        let question = |id: &str, text: &str, topic: &str, answer: &str| GoldQuestion {
            id: id.into(),
            question: text.into(),
            topics: vec![topic.into()],
            answers: vec![answer.into()],
            ..GoldQuestion::default()
        };
        vec![
            question(
                "1",
                "Whose mascot is Lou Seal?",
                "Lou Seal",
                "San Francisco Giants",
            ),
            question(
                "2",
                "In which city is Lou Seal?",
                "Lou Seal",
                "San Francisco",
            ),
            question("3", "Who knows Lou Seal?", "Lou Seal", "nobody at all"),
        ]
    }

    fn script() -> Scripted {
        let lines = [
            serde_json::json!({"contains": "Question: Whose mascot", "text": "So.\nans: Path 0"}),
            serde_json::json!({"text": "I cannot tell."}),
        ];
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        Scripted::parse(&text.join("\n"), "script").unwrap()
    }

    fn run(out: &Path, questions: &[GoldQuestion], threads: usize) -> Result<Labelled> {
        let config = LabelConfig {
            threads,
            ..LabelConfig::default()
        };
        let judge = ModelJudge(Arc::new(script()));
        label(&toy::graph(), questions, &judge, &config, out, &mut |_| {})
    }

    #[test]
    fn picked_paths_are_labels_and_shortest_paths_where_nothing_was_picked() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("labels.jsonl");
        let done = run(&out, &questions(), 3).unwrap();
        assert_eq!(
            (done.questions, done.fallbacks, done.without_paths),
            (3, 2, 1)
        );
        assert_eq!(done.llm.calls, 2);
        let lines = read(&out).unwrap();
        let ids: Vec<&str> = lines.iter().map(|l| l.id.as_str()).collect();
        assert_eq!(ids, ["1", "2", "3"]);
        assert_eq!(lines[0].picked, [0]);
        assert_eq!(
            lines[0].paths,
            [[["Lou Seal", "mascot of", "San Francisco Giants"].map(str::to_owned)]]
        );
        assert!(lines[1].fallback && lines[1].paths[0].len() == 2);
        assert!(lines[2].fallback && lines[2].paths.is_empty());
    }

    #[test]
    fn a_stopped_run_goes_on_and_another_one_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("labels.jsonl");
        run(&out, &questions(), 1).unwrap();
        let whole = std::fs::read_to_string(&out).unwrap();
        // the second line is cut in two
        let first = whole.lines().next().unwrap();
        std::fs::write(&out, format!("{first}\n{{\"id\":\"2\",\"pa")).unwrap();
        let done = run(&out, &questions(), 2).unwrap();
        assert_eq!((done.questions, done.resumed), (3, 1));
        assert_eq!(std::fs::read_to_string(&out).unwrap(), whole);
        let mut others = questions();
        others[0].id = "x".into();
        assert!(run(&out, &others, 1).is_err());
    }

    #[test]
    fn two_files_become_one() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, lines: &[LabelLine]| {
            let path = place.path().join(name);
            let bytes: Vec<u8> = lines.iter().flat_map(to_bytes).collect();
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let path = |name: &str| vec![[name, "r", "t"].map(str::to_owned)];
        let line = |id: &str, paths: &[&str], fallback| LabelLine {
            id: id.into(),
            paths: paths.iter().map(|p| path(p)).collect(),
            fallback,
            ..LabelLine::default()
        };
        let a = file(
            "a",
            &[line("1", &["x", "y"], false), line("2", &["x"], true)],
        );
        let b = file(
            "b",
            &[
                line("1", &["y", "z"], false),
                line("2", &["q"], false),
                line("3", &["w"], false),
            ],
        );
        let out = place.path().join("out");
        let counts = |how| {
            combine(&a, &b, how, &out).unwrap();
            let lines = read(&out).unwrap();
            lines.iter().map(|l| l.paths.len()).collect::<Vec<_>>()
        };
        assert_eq!(counts(Combine::Union), [3, 1, 1]);
        assert_eq!(counts(Combine::Intersection), [1, 1, 1]);
        assert_eq!(read(&out).unwrap()[1].paths, [path("q")]);
    }

    #[test]
    fn labels_are_held_against_what_is_relevant() {
        let mut questions = questions();
        questions.truncate(2);
        let triple =
            |relation: &str| ["Lou Seal", relation, "San Francisco Giants"].map(str::to_owned);
        // a benchmark writes relations as it likes
        questions[1].proof.relevant = vec![triple("mascot_of")];
        let lines = [LabelLine {
            id: "2".into(),
            paths: vec![vec![triple("mascot of")]],
            ..LabelLine::default()
        }];
        let measured = quality(&lines, &questions, &toy::graph()).unwrap();
        // shortest paths have the second step too
        assert_eq!(measured.questions, 1);
        assert_eq!(measured.weak, (0.5, 1.0));
        assert_eq!(measured.refined, (1.0, 1.0));
    }

    #[test]
    fn the_prompt_shows_numbered_paths_behind_an_example() {
        let candidates = ["a -> [r] -> b", "a -> [s] -> c"].map(|text| Candidate {
            text: text.into(),
            ..Candidate::default()
        });
        let offer = Offer {
            question: "Who\nis it?",
            topics: &[],
            answer: "b",
            candidates: &candidates,
            graph: &toy::graph(),
        };
        let Prompt::Chat(messages) = judge::prompt(&offer) else {
            panic!("a chat");
        };
        assert_eq!(
            messages[3].content,
            "Paths:\nPath 0. a -> [r] -> b\nPath 1. a -> [s] -> c\n\nQuestion: Who is it?\nAnswer: b"
        );
        assert!(messages[2].content.ends_with("ans: Path 0"));
    }
}
