//! Predictions of any system, scored with the same metrics as our own runs.
//!
//! Three formats, one JSON object a line, told apart by content:
//!
//! ```text
//! answers      {"id","answers":["name", {"name","id"?,"score"?,"rationale"?:[i,..]}, ..],
//!               "text"?,"evidence"?:[["h","r","t"], {"head","relation","tail","score"?}, ..],
//!               "logical_forms"?:[..],"timings_ms"?,"llm"?}        (our own run lines are this)
//! rog          {"id","prediction":"one answer\na line"}
//! subgraphrag  {"id","prediction":"…\nans: one answer\nans: another"}
//! ```
//!
//! Other keys are left alone. RoG's `prediction` may also be a list. A SubgraphRAG file is one in
//! which some prediction has a line that begins `ans:`; `ans: not available` is no answer.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use wherefore::answer::LlmUse;
use wherefore_graph::names::normalise;

use crate::error::{Error, Result};
use crate::metrics::{
    Observation, Options, PredictedAnswer, RecallAtK, Scores, ShownTriple, recall_at,
};
use crate::questions::{self, GoldQuestion, Name, NamedTriple, id_text, json_records};

/// The format of a predictions file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionFormat {
    /// A list of answers for each id.
    Answers,
    /// RoG's text with one answer a line.
    Rog,
    /// SubgraphRAG's text whose answer lines begin `ans:`.
    SubgraphRag,
}

impl PredictionFormat {
    /// Every format.
    pub const ALL: [PredictionFormat; 3] = [
        PredictionFormat::Answers,
        PredictionFormat::Rog,
        PredictionFormat::SubgraphRag,
    ];

    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        match self {
            PredictionFormat::Answers => "answers",
            PredictionFormat::Rog => "rog",
            PredictionFormat::SubgraphRag => "subgraphrag",
        }
    }
}

impl fmt::Display for PredictionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PredictionFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        PredictionFormat::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .ok_or_else(|| {
                Error::BadSetting(format!(
                    "`{name}` is no prediction format; known are {}",
                    PredictionFormat::ALL.map(PredictionFormat::name).join(", ")
                ))
            })
    }
}

/// What a predictions file says of one question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// The question's id.
    pub id: String,
    /// Answers and all else that can be scored without the graph.
    pub observation: Observation,
    /// The retrieved triples, best first.
    pub evidence: Option<Vec<(ShownTriple, f32)>>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(deserialize_with = "id_text")]
    id: String,
    answers: Option<Vec<AnswerForm>>,
    prediction: Option<TextForm>,
    text: Option<String>,
    evidence: Option<Vec<EvidenceForm>>,
    logical_form: Option<String>,
    logical_forms: Option<Vec<String>>,
    #[serde(default)]
    timings_ms: BTreeMap<String, f64>,
    #[serde(default)]
    llm: LlmUse,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnswerForm {
    Bare(String),
    Number(serde_json::Number),
    Full {
        name: String,
        #[serde(default)]
        id: String,
        #[serde(alias = "confidence")]
        score: Option<f32>,
        rationale: Option<Vec<usize>>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextForm {
    Text(String),
    List(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum EvidenceForm {
    Names(NamedTriple),
    Full {
        head: String,
        relation: String,
        tail: String,
        ids: Option<NamedTriple>,
        score: Option<f32>,
    },
}

/// Reads a predictions file; the format is told by content where it is not given.
pub fn read_predictions(path: &Path, format: Option<PredictionFormat>) -> Result<Vec<Prediction>> {
    let bytes = crate::questions::read_file(path)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::Empty { path: path.into() });
    }
    let text = questions::utf8(path, &bytes)?;
    let lines: Vec<(usize, Line)> = json_records(
        path,
        text,
        format.map_or("predictions", PredictionFormat::name),
    )?;
    let format = format.unwrap_or_else(|| detect(&lines));
    let mut first_line: HashMap<String, usize> = HashMap::with_capacity(lines.len());
    let mut predictions = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        let prediction = line
            .into_prediction(format)
            .map_err(|reason| Error::BadLine {
                path: path.into(),
                line: number,
                format: format.name().into(),
                reason,
            })?;
        if let Some(first) = first_line.insert(prediction.id.clone(), number) {
            return Err(Error::DuplicateId {
                path: path.into(),
                line: number,
                first,
                id: prediction.id,
            });
        }
        predictions.push(prediction);
    }
    Ok(predictions)
}

fn detect(lines: &[(usize, Line)]) -> PredictionFormat {
    if lines.iter().any(|(_, line)| line.answers.is_some()) {
        return PredictionFormat::Answers;
    }
    let marked = lines.iter().any(|(_, line)| {
        line.prediction
            .as_ref()
            .is_some_and(|text| text.lines().any(|l| marked_answer(l).is_some()))
    });
    if marked {
        PredictionFormat::SubgraphRag
    } else {
        PredictionFormat::Rog
    }
}

impl TextForm {
    fn lines(&self) -> impl Iterator<Item = &str> {
        let texts = match self {
            TextForm::Text(text) => std::slice::from_ref(text),
            TextForm::List(texts) => texts.as_slice(),
        };
        texts.iter().flat_map(|text| text.lines()).map(str::trim)
    }

    fn into_text(self) -> String {
        match self {
            TextForm::Text(text) => text,
            TextForm::List(texts) => texts.join("\n"),
        }
    }
}

/// What follows `ans:` at the beginning of a line.
fn marked_answer(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (mark, answer) = line.split_at_checked(4)?;
    mark.eq_ignore_ascii_case("ans:").then(|| answer.trim())
}

impl Line {
    fn into_prediction(self, format: PredictionFormat) -> Result<Prediction, String> {
        let mut observation = Observation {
            text: self.text,
            forms: self
                .logical_forms
                .or(self.logical_form.map(|form| vec![form])),
            timings_ms: self.timings_ms,
            llm: self.llm,
            ..Observation::default()
        };
        let mut reasons: Option<Vec<usize>> = None;
        match format {
            PredictionFormat::Answers => {
                let answers = self.answers.ok_or("expected a list `answers`")?;
                for answer in answers {
                    let (answer, reason) = answer.into_answer();
                    observation.answers.push(answer);
                    if let Some(reason) = reason {
                        reasons.get_or_insert_default().extend(reason);
                    }
                }
            }
            PredictionFormat::Rog => {
                let prediction = self.prediction.ok_or("expected a text `prediction`")?;
                observation.answers = prediction
                    .lines()
                    .map(|line| line.trim_start_matches(['-', '*', '•']).trim())
                    .filter(|line| !line.is_empty())
                    .map(PredictedAnswer::new)
                    .collect();
                observation.text = Some(prediction.into_text());
            }
            PredictionFormat::SubgraphRag => {
                let prediction = self.prediction.ok_or("expected a text `prediction`")?;
                observation.answers = prediction
                    .lines()
                    .filter_map(marked_answer)
                    .filter(|answer| !is_abstention(answer))
                    .map(PredictedAnswer::new)
                    .collect();
            }
        }
        let evidence = self.evidence.map(into_triples);
        if let (Some(mut reasons), Some((shown, _))) = (reasons, &evidence) {
            reasons.sort_unstable();
            reasons.dedup();
            if let Some(outside) = reasons.iter().find(|&&i| i >= shown.len()) {
                return Err(format!(
                    "`rationale` points at evidence {outside}, and there are {} triples",
                    shown.len()
                ));
            }
            observation.rationale = Some(reasons.into_iter().map(|i| shown[i].clone()).collect());
        }
        Ok(Prediction {
            id: self.id,
            observation,
            evidence: evidence.map(|(_, ranked)| ranked),
        })
    }
}

impl AnswerForm {
    fn into_answer(self) -> (PredictedAnswer, Option<Vec<usize>>) {
        match self {
            AnswerForm::Bare(name) => (PredictedAnswer::new(name), None),
            AnswerForm::Number(number) => (PredictedAnswer::new(number.to_string()), None),
            AnswerForm::Full {
                name,
                id,
                score,
                rationale,
            } => {
                let name = Name::with_id(name, id);
                (PredictedAnswer { name, score }, rationale)
            }
        }
    }
}

fn is_abstention(answer: &str) -> bool {
    matches!(
        normalise(answer).as_str(),
        "" | "not available" | "no information available" | "none" | "unknown"
    )
}

type Evidence = (Vec<ShownTriple>, Vec<(ShownTriple, f32)>);

/// The triples as they were shown, and ranked: by score where each has one, else as listed.
fn into_triples(forms: Vec<EvidenceForm>) -> Evidence {
    let mut shown = Vec::with_capacity(forms.len());
    let mut scores = Vec::with_capacity(forms.len());
    for form in forms {
        match form {
            EvidenceForm::Names(names) => {
                shown.push(ShownTriple::from(names));
                scores.push(None);
            }
            EvidenceForm::Full {
                head,
                relation,
                tail,
                ids,
                score,
            } => {
                shown.push(ShownTriple {
                    names: [head, relation, tail],
                    ids,
                });
                scores.push(score);
            }
        }
    }
    let all_scored = scores.iter().all(Option::is_some);
    let mut ranked: Vec<(ShownTriple, f32)> = shown
        .iter()
        .zip(scores)
        .enumerate()
        .map(|(place, (triple, score))| {
            let score = score.filter(|_| all_scored).unwrap_or(-(place as f32));
            (triple.clone(), score)
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    (shown, ranked)
}

/// Scores predictions against the questions they were made for. Questions without a prediction
/// count as unanswered; [`Counts::missing`](crate::metrics::Counts) says how many there are.
///
/// `paths` are the two files' names for messages: predictions, questions.
pub fn score(
    questions: &[GoldQuestion],
    predictions: Vec<Prediction>,
    options: &Options,
    paths: (&Path, &Path),
) -> Result<Scores> {
    let places: HashMap<&str, usize> = questions
        .iter()
        .enumerate()
        .map(|(at, question)| (question.id.as_str(), at))
        .collect();
    let mut observations: Vec<Option<Observation>> = vec![None; questions.len()];
    let mut unknown = Vec::new();
    for prediction in predictions {
        let Some(&at) = places.get(prediction.id.as_str()) else {
            unknown.push(prediction.id);
            continue;
        };
        let mut observation = prediction.observation;
        if let Some(evidence) = prediction.evidence {
            observation.retrieval = recall_by_name(&questions[at], &evidence, &options.ks);
        }
        observations[at] = Some(observation);
    }
    if let Some(first) = unknown.first() {
        return Err(Error::UnknownIds {
            path: paths.0.into(),
            questions: paths.1.into(),
            count: unknown.len(),
            first: first.clone(),
        });
    }
    Scores::new(questions, &observations, options)
}

/// Recall of named triples against the gold paths, or else the triples known as relevant.
///
/// Without the graph, shortest paths cannot be known; names and ids are compared in normal form.
fn recall_by_name(
    question: &GoldQuestion,
    evidence: &[(ShownTriple, f32)],
    ks: &[usize],
) -> Vec<RecallAtK> {
    let key = |triple: &NamedTriple| triple.each_ref().map(|name| normalise(name));
    let gold = question.proof.path_triples();
    let mut positives: Vec<[String; 3]> = if gold.is_empty() {
        question.proof.relevant.iter().map(key).collect()
    } else {
        gold.into_iter().map(key).collect()
    };
    // gold that is written by ids goes by the names of the triple that has them
    let mut ranked: Vec<([String; 3], f32)> = Vec::with_capacity(evidence.len());
    for (triple, score) in evidence {
        let names = key(&triple.names);
        if let Some(ids) = triple.ids.as_ref().map(key) {
            for positive in positives.iter_mut().filter(|p| **p == ids) {
                positive.clone_from(&names);
            }
        }
        ranked.push((names, *score));
    }
    let answers: Vec<Vec<String>> = question
        .answers
        .iter()
        .map(|name| name.all().map(normalise).collect())
        .collect();
    let ends = |triple: &[String; 3]| [triple[0].clone(), triple[2].clone()];
    recall_at(&ranked, ends, &positives, &answers, ks)
}

/// Reads and scores two files.
///
/// ```no_run
/// use wherefore_lab::{metrics::Options, score};
/// let scores = score::score_files("predictions.jsonl".as_ref(), "qa_test.txt".as_ref(), &Options::default())?;
/// println!("{}", scores.metrics());
/// # Ok::<(), wherefore_lab::Error>(())
/// ```
pub fn score_files(predictions: &Path, questions: &Path, options: &Options) -> Result<Scores> {
    let gold = questions::read(questions, None)?;
    let predicted = read_predictions(predictions, None)?;
    score(&gold, predicted, options, (predictions, questions))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTIONS: &str = "\
{\"id\":\"1\",\"question\":\"q\",\"topics\":[\"t\"],\"answers\":[\"Ann\",\"Bob\"],\"paths\":[[[\"t\",\"r\",\"Ann\"]]]}
{\"id\":\"2\",\"question\":\"q\",\"topics\":[\"t\"],\"answers\":[\"Cy\"]}
{\"id\":\"3\",\"question\":\"q\",\"topics\":[\"t\"],\"answers\":[\"Di\"]}
";

    fn run(predictions: &str) -> Result<crate::Metrics> {
        let folder = tempfile::tempdir().unwrap();
        let (gold, predicted) = (folder.path().join("q.jsonl"), folder.path().join("p.jsonl"));
        std::fs::write(&gold, QUESTIONS).unwrap();
        std::fs::write(&predicted, predictions).unwrap();
        let options = Options {
            ks: vec![1, 2],
            resamples: 10,
            ..Options::default()
        };
        Ok(score_files(&predicted, &gold, &options)?.metrics())
    }

    #[test]
    fn the_three_formats_agree_on_the_same_answers() {
        let plain = run(
            "{\"id\":\"1\",\"answers\":[\"Ann\",\"X\"]}\n{\"id\":\"2\",\"answers\":[\"Cy\"]}\n",
        )
        .unwrap();
        let rog = run("{\"id\":\"1\",\"question\":\"q\",\"prediction\":\"Ann\\n- X\",\"ground_truth\":[\"Ann\"]}\n{\"id\":\"2\",\"prediction\":[\"Cy\"]}\n").unwrap();
        let marked = run("{\"id\":\"1\",\"prediction\":\"Evidence says Bob.\\nans: Ann\\nAns: X\"}\n{\"id\":\"2\",\"prediction\":\"ans: Cy\"}\n{\"id\":\"3\",\"prediction\":\"ans: not available\"}\n").unwrap();
        // hit 2/3; F1 (1/2 + 1 + 0)/3; micro P 2/3, R 2/4
        for metrics in [&plain, &rog, &marked] {
            let value = |name: &str| metrics.overall.value(name).unwrap();
            assert!((value("strict.hit") - 2.0 / 3.0).abs() < 1e-6);
            assert!((value("strict.f1") - 0.5).abs() < 1e-6);
            assert!((value("strict.micro_precision") - 2.0 / 3.0).abs() < 1e-6);
            assert!((value("strict.micro_recall") - 0.5).abs() < 1e-6);
            assert_eq!(metrics.counts.unanswered, 1);
        }
        assert_eq!((plain.counts.missing, marked.counts.missing), (1, 0));
    }

    #[test]
    fn evidence_and_rationales_are_scored_where_they_are_given() {
        let metrics = run(
            "{\"id\":\"1\",\"answers\":[{\"name\":\"ann\",\"confidence\":0.9,\"rationale\":[1]}],\
             \"evidence\":[{\"head\":\"t\",\"relation\":\"s\",\"tail\":\"x\",\"score\":0.1},{\"head\":\"t\",\"relation\":\"r\",\"tail\":\"Ann\",\"score\":0.8}]}\n",
        )
        .unwrap();
        // the gold triple has the best score; one of two answers is covered
        let value = |name: &str| metrics.overall.value(name).unwrap();
        assert_eq!(value("retrieval.triple_recall@1"), 1.0);
        assert_eq!(value("retrieval.answer_recall@1"), 0.5);
        assert_eq!(value("rationale.f1"), 1.0);
    }

    #[test]
    fn gold_paths_of_ids_are_found_by_the_ids_of_the_evidence() {
        let metrics = run(
            "{\"id\":\"1\",\"answers\":[\"Ann\"],\"evidence\":[{\"head\":\"Topic\",\"relation\":\"is\",\
             \"tail\":\"Ann\",\"ids\":[\"t\",\"r\",\"Ann\"],\"score\":0.8}]}\n",
        )
        .unwrap();
        let value = |name: &str| metrics.overall.value(name).unwrap();
        assert_eq!(value("retrieval.triple_recall@1"), 1.0);
        // one of two answers is an end of it
        assert_eq!(value("retrieval.answer_recall@1"), 0.5);
    }

    #[test]
    fn predictions_that_do_not_fit_are_refused() {
        for (predictions, message) in [
            (
                "{\"id\":\"9\",\"answers\":[]}\n{\"id\":\"8\",\"answers\":[]}\n",
                "answers 2 unknown questions, first `9`",
            ),
            (
                "{\"id\":\"1\",\"answers\":[]}\n{\"id\":\"1\",\"answers\":[]}\n",
                "line 2 repeats the id `1` of line 1",
            ),
            (
                "{\"id\":\"1\",\"answers\":[]}\n{\"id\":\"2\"}\n",
                "line 2 does not parse as answers: expected a list `answers`",
            ),
            ("{\"answers\":[]}\n", "missing field `id`"),
            (
                "{\"id\":\"1\",\"answers\":[{\"name\":\"a\",\"rationale\":[3]}],\"evidence\":[]}\n",
                "points at evidence 3",
            ),
            (
                "{\"id\":\"1\",\"prediction\":7}\n",
                "line 1 does not parse as predictions",
            ),
            (" \n", "is empty"),
        ] {
            let error = run(predictions).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.hint().is_some(), "{error}");
        }
    }
}
