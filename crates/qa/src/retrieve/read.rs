//! Reads the question as a logical form and runs it; says which words it could not use.
//!
//! ```text
//! confidence = exp(β s_1) / Σ exp(β s_i)     over readings that come to different things
//! ```
//!
//! A reading that leaves a word unused is not answered: the words are named, with what the graph
//! says about the topic instead.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};
use wherefore_model::encode::Recent;
use wherefore_model::{Encoder, encode};

use super::running::{Candidate, Running};
use super::{Retriever, ScoredTriples};
use crate::answer::{Alternative, Refusal, WordMeaning};
use crate::at_hand::with_rows_at_hand;
use crate::conformal::{Conformal, MOST_READINGS};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::per_graph::PerGraph;
use crate::question::Question;
use crate::read::{Following, Known, LearnedPhrases, Proposal, Weights, by_relation, follow, read};

/// β: how much a better score speaks for a reading.
const SHARPNESS: f32 = 1.0;
/// Scores that tell how sure an answer is: beyond these, they tell how long the question is.
const SCORES: (f32, f32) = (-3.0, 12.0);
/// A reading that fits the words so well needs no noun that speaks for it.
const FITS: f32 = 9.0;
/// Readings that are offered besides the best.
const ALTERNATIVES: usize = 4;
/// Relations of a topic that are named where a word fits none of them.
const NAMED_RELATIONS: usize = 12;

/// What `wherefore adapt` writes into its folder.
pub const WEIGHTS_FILE: &str = "weights.toml";
/// The phrases that it learned, where it learned some.
pub const PHRASES_FILE: &str = "phrases";

/// Settings of [`Read`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadConfig {
    /// Answers that are given with their evidence at most.
    pub answers: usize,
    /// Readings are looked for, and the best is run, for at most so many milliseconds each.
    pub time_limit_ms: u64,
    /// Most entities of a set.
    pub max_rows: usize,
    /// The encoder that compares words with relations.
    pub encoder: String,
    /// The encoder that compares the whole question with relations.
    pub matcher: String,
    /// A file of weights that `wherefore train read` wrote, or a folder that `wherefore adapt`
    /// wrote; none: the weights that are shipped.
    pub weights: Option<PathBuf>,
}

impl Default for ReadConfig {
    fn default() -> Self {
        Self {
            answers: 200,
            time_limit_ms: 2000,
            max_rows: 200_000,
            encoder: "static".into(),
            matcher: "matcher".into(),
            weights: None,
        }
    }
}

/// Retrieves what the best reading of the question matches.
pub struct Read {
    config: ReadConfig,
    encoder: Arc<dyn Encoder>,
    matcher: Arc<dyn Encoder>,
    weights: Weights,
    learned: Option<LearnedPhrases>,
    known: PerGraph<Known>,
}

impl Read {
    /// A retriever with these settings.
    pub fn new(config: ReadConfig) -> Result<Self> {
        for (name, value) in [
            ("retrieve.answers", config.answers),
            ("retrieve.max_rows", config.max_rows),
        ] {
            if value == 0 {
                return Err(Error::BadSetting {
                    name,
                    value: "0".into(),
                    wanted: "at least 1",
                });
            }
        }
        let matcher: Arc<dyn Encoder> = Arc::new(Recent::new(encode::open(&config.matcher)?));
        let (weights, learned) = match &config.weights {
            None => (Weights::shipped().clone(), None),
            Some(path) if path.is_dir() => {
                if !path.join(WEIGHTS_FILE).exists() {
                    return Err(Error::BadSetting {
                        name: "retrieve.weights",
                        value: path.display().to_string(),
                        wanted: "a folder that `wherefore adapt` wrote: this one holds no weights of the reader",
                    });
                }
                let phrases = path.join(PHRASES_FILE);
                let learned = match phrases.exists() {
                    true => Some(LearnedPhrases::load(&phrases, &*matcher)?),
                    false => None,
                };
                (Weights::load(&path.join(WEIGHTS_FILE))?, learned)
            }
            Some(path) => (Weights::load(path)?, None),
        };
        Ok(Self {
            encoder: encode::open(&config.encoder)?,
            matcher,
            weights,
            learned,
            config,
            known: PerGraph::default(),
        })
    }

    fn refused(
        &self,
        readings: &[Proposal],
        is_spent: bool,
        topics: &[EntityId],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let (refusal, mut reason) = match readings.first() {
            None => (
                Refusal::NotLinked,
                "nothing in the question names a class, a relation or an entity of the graph"
                    .to_owned(),
            ),
            Some(best) if !best.unused.is_empty() => {
                let words: Vec<String> = best.unused.iter().map(|w| format!("`{w}`")).collect();
                let words = match words.as_slice() {
                    [one] => format!("{one} was"),
                    all => format!("{} were", all.join(", ")),
                };
                (
                    Refusal::WordsNotUsed,
                    format!("{words} not understood: nothing that the graph says fits"),
                )
            }
            Some(best) if best.names_only() => (
                Refusal::RelationAbsent,
                "nothing that is asked about it was understood".to_owned(),
            ),
            Some(best) if best.is_answer() && is_spent => (
                Refusal::BudgetSpent,
                format!(
                    "{} could not be worked out within {} ms and {} entities",
                    best.form.english(graph)?,
                    self.config.time_limit_ms,
                    self.config.max_rows
                ),
            ),
            Some(best) => (
                Refusal::RelationAbsent,
                format!("the graph has no {}", best.form.english(graph)?),
            ),
        };
        if let Some(&topic) = topics.first() {
            let has = with_rows_at_hand(graph, |graph| relations_of(topic, graph))?;
            if !has.is_empty() {
                let name = graph.entity_label(topic)?;
                reason.push_str(&format!("; {name} has: {}", has.join(", ")));
            }
        }
        Ok(ScoredTriples {
            refused: Some((refusal, reason)),
            unused: readings
                .first()
                .map(|r| r.unused.clone())
                .unwrap_or_default(),
            alternatives: alternatives(readings.iter(), &distinct(readings), graph)?,
            ..ScoredTriples::default()
        })
    }

    fn known(&self, graph: &dyn Graph) -> Result<Arc<Known>> {
        self.known.get(graph, |graph| {
            let matcher = Arc::clone(&self.matcher);
            let encoder = Arc::clone(&self.encoder);
            Known::new(graph, encoder, matcher, self.learned.as_ref())
        })
    }

    fn time(&self) -> Duration {
        Duration::from_millis(self.config.time_limit_ms)
    }

    /// Readings of the question, and what was taken over from the one before it.
    fn readings(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
        known: &Known,
    ) -> Result<Following> {
        let begun = Instant::now();
        let topics = || links.iter().map(|link| link.entity).collect();
        // whoever says what the question is about needs no other question for it
        if question.topics.is_empty()
            && let Some(last) = &question.follow
            && let Some(mut found) = follow(
                question,
                last,
                links,
                graph,
                known,
                &self.weights,
                self.time(),
            )?
        {
            if found.carried.is_none() {
                found.topics = topics();
            }
            return Ok(found);
        }
        let left = self.time().saturating_sub(begun.elapsed());
        let readings = read(question, links, graph, known, &self.weights, left)?;
        Ok(Following {
            readings,
            carried: None,
            topics: topics(),
        })
    }

    /// The first readings that come to different things, each with its share of them all.
    pub fn shares(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<Vec<(Proposal, f32)>> {
        let known = self.known(graph)?;
        let readings = read(question, links, graph, &known, &self.weights, self.time())?;
        let distinct = distinct(&readings);
        let firsts = distinct.iter().take(MOST_READINGS);
        let shared = firsts.map(|r| ((*r).clone(), share(r, &distinct)));
        Ok(shared.collect())
    }

    /// Other readings that a coverage takes in, by their numbers.
    fn within(
        &self,
        coverage: f32,
        distinct: &[&Proposal],
        graph: &dyn Graph,
    ) -> Result<Vec<usize>> {
        let folder = graph.folder();
        let known = folder.map(Conformal::load).transpose()?.flatten();
        let known = known.ok_or_else(|| Error::NoConformal {
            graph: folder.map(std::path::Path::to_owned),
        })?;
        let least = 1.0 - known.threshold(coverage)?;
        let others = distinct.iter().take(MOST_READINGS).skip(1);
        let kept = others.filter(|r| share(r, distinct) >= least);
        Ok(kept.map(|r| r.number).collect())
    }
}

impl Retriever for Read {
    fn needs_links(&self) -> bool {
        false
    }

    fn follows(&self) -> bool {
        true
    }

    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let known = self.known(graph)?;
        let time = self.time();
        let Following {
            readings,
            carried,
            topics,
        } = self.readings(question, links, graph, &known)?;
        let wanted = question.reading.max(1) - 1;
        let distinct = distinct(&readings);
        let within = match question.coverage {
            Some(coverage) => self.within(coverage, &distinct, graph)?,
            None => Vec::new(),
        };
        let chosen = match (question.reading, readings.first()) {
            // the first of a set is answered as it is
            (0, best) if question.coverage.is_some() => best.filter(|best| best.is_answer()),
            (0, Some(best)) if best.unused.is_empty() && best.is_answer() => Some(best),
            (0, _) => None,
            _ => Some(readings.get(wanted).ok_or(Error::NoSuchReading {
                wanted: question.reading,
                readings: readings.len(),
            })?),
        };
        let Some(chosen) = chosen else {
            return Ok(ScoredTriples {
                within,
                carried,
                words: words(readings.first(), &question.text, graph)?,
                ..self.refused(&readings, false, &topics, graph)?
            });
        };
        let running = Running {
            answers: self.config.answers,
            time,
            max_rows: self.config.max_rows,
            own_names: true,
        };
        let candidate = Candidate {
            form: chosen.form.clone(),
            score: share(chosen, &distinct),
        };
        let mut scored = running.first([Ok(candidate)], &topics, graph)?;
        if scored.form.is_none() {
            return Ok(ScoredTriples {
                carried,
                words: words(readings.first(), &question.text, graph)?,
                ..self.refused(&readings, scored.is_spent, &topics, graph)?
            });
        }
        scored.carried = carried;
        scored.words = words(Some(chosen), &question.text, graph)?;
        let others = (readings.iter()).filter(|r| r.came != chosen.came && r.unused.is_empty());
        scored.alternatives = alternatives(others, &distinct, graph)?;
        scored.within = within;
        scored.unused = chosen.passed_over.clone();
        let yes = |is: bool| f32::from(u8::from(is));
        // where a noun says what things are, words that do not fit leave less to choose from
        let score = chosen.score.clamp(SCORES.0, SCORES.1);
        let is_grouped = known.is_untyped() && chosen.is_grouped() && score < FITS;
        let is_untyped = known.is_untyped() && !is_grouped;
        let score = score * yes(is_untyped);
        let few = known.fewness() * yes(is_untyped);
        scored.signals = vec![
            ("score", score),
            ("matched", yes(chosen.is_matched())),
            ("against", chosen.against()),
            ("untyped", yes(is_untyped)),
            ("grouped", yes(is_grouped)),
            ("few", few),
            ("matched_few", few * yes(chosen.is_matched())),
            (
                "said",
                yes(chosen.is_said_otherwise() && !known.is_untyped()),
            ),
        ];
        Ok(scored)
    }
}

/// What the words of a question stand for in a reading.
fn words(
    reading: Option<&Proposal>,
    question: &str,
    graph: &dyn Graph,
) -> Result<Vec<WordMeaning>> {
    let understood = reading.iter().flat_map(|r| &r.understood);
    understood.map(|u| u.told(question, graph)).collect()
}

/// How much of all that the readings come to a reading has.
fn share(of: &Proposal, distinct: &[&Proposal]) -> f32 {
    let sum: f32 = distinct
        .iter()
        .map(|r| (SHARPNESS * (r.score - of.score)).exp())
        .sum();
    (1.0 / sum.max(1.0)).clamp(0.0, 1.0)
}

/// The best of those that come to the same.
fn distinct(readings: &[Proposal]) -> Vec<&Proposal> {
    let mut distinct: Vec<&Proposal> = Vec::new();
    for reading in readings {
        if !distinct.iter().any(|d| d.came == reading.came) {
            distinct.push(reading);
        }
    }
    distinct
}

fn alternatives<'r>(
    some: impl Iterator<Item = &'r Proposal>,
    distinct: &[&Proposal],
    graph: &dyn Graph,
) -> Result<Vec<Alternative>> {
    let mut told: Vec<Alternative> = Vec::new();
    for reading in some.filter(|r| r.is_answer()) {
        if told.len() == ALTERNATIVES {
            break;
        }
        let english = reading.form.english(graph)?;
        if !told.iter().any(|a| a.reading == english) {
            told.push(Alternative {
                number: reading.number,
                reading: english,
                share: share(reading, distinct),
                logical_form: reading.form.to_string(),
                unused_words: reading.unused.clone(),
            });
        }
    }
    Ok(told)
}

/// What a graph says about an entity, by the labels of its relations.
fn relations_of(entity: EntityId, graph: &dyn Graph) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for row in [graph.outgoing(entity)?, graph.incoming(entity)?] {
        for (relation, _) in by_relation(&row) {
            if found.len() < NAMED_RELATIONS && !crate::phrase::is_silent(relation, graph)? {
                let label = crate::words::opened(&graph.relation_label(relation)?);
                if !found.contains(&label) {
                    found.push(label);
                }
            }
        }
    }
    Ok(found)
}
