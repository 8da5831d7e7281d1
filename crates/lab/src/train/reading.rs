//! Weights of the reader, from questions and answers over any number of graphs.
//!
//! Each round reads all questions with the weights of the round before, and fits anew on the
//! readings of all rounds: what a round took for right is among the others of the next.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wherefore::graph::{EntityId, Graph, Term};
use wherefore::model::{Encoder, encode};
use wherefore::read::{Came, Candidate, Example, Fitting, Known, Proposal, Weights, fit, read};

use super::Settings;
use crate::each::each;
use crate::error::{Error, Result};
use crate::metrics::{AnswerCounts, Matching, PredictedAnswer};
use crate::questions::{GoldQuestion, Name};

/// Readings of a question that are learned from, besides good ones.
const READINGS: usize = 40;
/// The least F1 of a reading that is learned from.
const NEAR: f64 = 0.5;
/// Answers that are compared at most: no gold answer has as many.
const MAX_ANSWERS: usize = 2000;
/// Answers that many wrong readings come to as well.
const CHEAP: [&str; 4] = ["yes", "no", "0", "1"];

/// Settings of a training of the reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadTrainConfig {
    /// Times that all questions are read.
    pub rounds: usize,
    /// How much a weight is held at where it began.
    pub hold: f32,
    /// Steps of each fit.
    pub steps: usize,
    /// How far a step goes.
    pub rate: f32,
    /// How much a question counts whose answer is `yes`, `no`, 0 or 1.
    pub cheap: f32,
    /// Milliseconds for a question.
    pub time_limit_ms: u64,
    /// The encoder that compares words with relations.
    pub encoder: String,
    /// The encoder that compares whole questions with relations.
    pub matcher: String,
    /// Other matchers, by the names of graphs' folders: what a matcher has seen of a graph it
    /// knows too well for weights to be fitted on it.
    pub matchers: BTreeMap<String, String>,
}

impl Default for ReadTrainConfig {
    fn default() -> Self {
        Self {
            rounds: 6,
            hold: 1.5e-3,
            steps: 200,
            rate: 0.03,
            cheap: 0.25,
            time_limit_ms: 2000,
            encoder: "static".into(),
            matcher: "matcher".into(),
            matchers: BTreeMap::new(),
        }
    }
}

impl Settings for ReadTrainConfig {
    fn set_encoder(&mut self, encoder: &str) {
        encoder.clone_into(&mut self.encoder);
    }

    /// Nothing is drawn.
    fn set_seed(&mut self, _: u64) {}
}

impl ReadTrainConfig {
    /// Refuses settings that cannot be trained with.
    pub fn check(&self) -> Result<()> {
        if self.rounds == 0 || self.steps == 0 || !(self.rate > 0.0 && self.hold >= 0.0) {
            return Err(Error::BadSetting(
                "`rounds`, `steps` and `rate` have to be above 0, `hold` at least 0".into(),
            ));
        }
        Ok(())
    }
}

/// Questions over a graph.
pub struct ReadingDataset<'a> {
    /// The graph.
    pub graph: &'a dyn Graph,
    /// Its questions.
    pub questions: &'a [GoldQuestion],
}

/// What one reading of all questions came to.
#[derive(Clone, Debug, Serialize)]
pub struct ReadRound {
    /// Its number, from 1.
    pub round: usize,
    /// Questions.
    pub questions: usize,
    /// Of which the first reading comes to the answers.
    pub first: usize,
    /// Of which some reading does.
    pub found: usize,
}

/// Fits weights, beginning with those given; `see` is told of each question and each round.
pub fn reading(
    lessons: &[ReadingDataset<'_>],
    start: &Weights,
    config: &ReadTrainConfig,
    see: impl FnMut(usize, usize, Option<&ReadRound>),
) -> Result<(Weights, Vec<ReadRound>)> {
    config.check()?;
    let encoder = encode::open(&config.encoder).map_err(wherefore::Error::from)?;
    let mut opened: HashMap<&str, Arc<dyn Encoder>> = HashMap::new();
    let mut known = Vec::with_capacity(lessons.len());
    for lesson in lessons {
        let folder = lesson.graph.folder().and_then(Path::file_name);
        let name = folder.and_then(|name| config.matchers.get(name.to_str()?));
        let name = name.unwrap_or(&config.matcher).as_str();
        let matcher = match opened.entry(name) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(new) => {
                let matcher = encode::open(name).map_err(wherefore::Error::from)?;
                Arc::clone(new.insert(matcher))
            }
        };
        known.push(Known::new(
            lesson.graph,
            Arc::clone(&encoder),
            matcher,
            None,
        )?);
    }
    let taught: Vec<Taught<'_>> = (lessons.iter().zip(&known))
        .map(|(lesson, known)| Taught {
            graph: lesson.graph,
            known,
            questions: lesson.questions.iter().collect(),
        })
        .collect();
    fitted(&taught, start, config, see)
}

/// Questions over a graph of which all is known.
pub(crate) struct Taught<'a> {
    pub graph: &'a dyn Graph,
    pub known: &'a Known,
    pub questions: Vec<&'a GoldQuestion>,
}

impl Taught<'_> {
    /// Reads all questions and has each judged; `see` is told how many are done.
    pub(crate) fn each<T: Send>(
        &self,
        weights: &Weights,
        config: &ReadTrainConfig,
        validate: impl Fn(&[Proposal], &GoldQuestion) -> Result<T> + Sync,
        see: impl FnMut(usize),
    ) -> Result<Vec<T>> {
        let time = Duration::from_millis(config.time_limit_ms);
        let one = |question: &&GoldQuestion| {
            let asked = question.without_topics();
            let readings = read(&asked, &[], self.graph, self.known, weights, time)?;
            validate(&readings, question)
        };
        each(&self.questions, one, see)
    }
}

/// Weights after all rounds.
pub(crate) fn fitted(
    taught: &[Taught<'_>],
    start: &Weights,
    config: &ReadTrainConfig,
    mut see: impl FnMut(usize, usize, Option<&ReadRound>),
) -> Result<(Weights, Vec<ReadRound>)> {
    let total: usize = taught.iter().map(|t| t.questions.len()).sum();
    let fitting = Fitting {
        hold: config.hold,
        steps: config.steps,
        rate: config.rate,
    };
    let mut weights = start.clone();
    let (mut examples, mut rounds) = (Vec::new(), Vec::new());
    for round in 1..=config.rounds {
        let (mut done, mut first, mut found) = (0, 0, 0);
        for taught in taught {
            let validate = |readings: &[Proposal], question: &GoldQuestion| {
                candidates(readings, question, taught.graph)
            };
            let judged = taught.each(&weights, config, validate, |some| {
                done += some;
                see(done, total, None);
            })?;
            for (question, judged) in taught.questions.iter().zip(judged) {
                first += usize::from(judged.first().is_some_and(|c| c.is_good));
                let good = judged.iter().filter(|c| c.is_good).count();
                if good > 0 {
                    found += 1;
                    let rare = 1.0 - good as f32 / judged.len() as f32;
                    let cheap = match question.answers.as_slice() {
                        [one] if CHEAP.contains(&one.name.as_str()) => config.cheap,
                        _ => 1.0,
                    };
                    examples.push(Example {
                        candidates: judged,
                        weight: rare * cheap,
                        is_untyped: taught.known.is_untyped(),
                    });
                }
            }
        }
        let came = ReadRound {
            round,
            questions: total,
            first,
            found,
        };
        see(done, total, Some(&came));
        rounds.push(came);
        weights = fit(&examples, start, fitting);
    }
    Ok((weights, rounds))
}

/// The readings of a question, each with whether it is good: it comes to the answers, or where none
/// does, nearest to them. Where a question has no answer, good is what would not be answered.
fn candidates(
    readings: &[Proposal],
    question: &GoldQuestion,
    graph: &dyn Graph,
) -> Result<Vec<Candidate>> {
    let mut scores = Vec::with_capacity(readings.len());
    for reading in readings {
        scores.push(right(reading, question, graph)?);
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    let mut judged = Vec::new();
    for (place, (reading, score)) in readings.iter().zip(scores).enumerate() {
        let is_good = score >= best && best >= NEAR;
        if place < READINGS || is_good {
            judged.push(Candidate {
                features: reading.features.clone(),
                is_good,
            });
        }
    }
    Ok(judged)
}

/// How far a reading is right: F1 of its answers, or where a question has none, whether it would
/// not be answered.
pub(crate) fn right(reading: &Proposal, question: &GoldQuestion, graph: &dyn Graph) -> Result<f64> {
    let answers = reading.unused.is_empty() && reading.is_answer();
    match (question.answers.is_empty(), answers) {
        (true, answers) => Ok(f64::from(!answers)),
        (false, true) => agreement(reading, &question.answers, graph),
        (false, false) => Ok(0.0),
    }
}

/// F1 of what a reading comes to.
pub(crate) fn agreement(reading: &Proposal, gold: &[Name], graph: &dyn Graph) -> Result<f64> {
    let predicted = match &reading.came {
        Came::Entities(all) if all.len() <= MAX_ANSWERS => all
            .iter()
            .map(|&entity| named(entity, graph))
            .collect::<Result<Vec<_>>>()?,
        Came::Number(Some(number)) => vec![PredictedAnswer::new(number.to_string())],
        Came::Truth(truth) => vec![PredictedAnswer::new(if *truth { "yes" } else { "no" })],
        _ => return Ok(0.0),
    };
    Ok(AnswerCounts::of(gold, &predicted, Matching::Lenient).f1())
}

fn named(entity: EntityId, graph: &dyn Graph) -> Result<PredictedAnswer> {
    let label = graph.entity_label(entity)?.into_owned();
    let id = match graph.entity_term(entity)? {
        Term::Literal(literal) => literal.value,
        term => term.to_string(),
    };
    Ok(PredictedAnswer {
        name: Name::with_id(label, id),
        score: None,
    })
}
