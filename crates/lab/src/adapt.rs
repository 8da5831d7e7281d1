//! Makes the reader better on one graph: with questions drafted from the graph itself, reworded by
//! a language model where there is one, and with people's own where there are some.
//!
//! 1. Every fifth question of each kind is kept aside and never learned from.
//! 2. Half of people's own teach the phrases of its relations what people call them. Drafts speak
//!    the graph's own words, and what a small model makes of them is too often something else:
//!    phrases that were learned from that were worse than none.
//! 3. The others, the drafts and what was made of them teach the weights: phrases fit too well to
//!    what they were learned from.
//! 4. Of what there was before, with the new phrases, and with the new weights as well, the best
//!    on the questions that were kept aside is what comes out: people's own where there are some,
//!    else reworded ones, else drafts.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use wherefore::graph::Graph;
use wherefore::model::language::{Decoding, Message, Prompt, Role};
use wherefore::model::{LanguageModel, checkpoint, encode};
use wherefore::read::{Asked, Known, LearnedPhrases, Learning, Proposal, Weights};
use wherefore::retrieve::{PHRASES_FILE, WEIGHTS_FILE};

use crate::atomic_write;
use crate::draft::{DraftOptions, draft};
use crate::error::{Error, Result};
use crate::questions::GoldQuestion;
use crate::train::reading::{ReadRound, Taught, fitted, right};
use crate::train::{ReadTrainConfig, Settings};

/// Every so many questions, one is kept aside.
const KEPT_ASIDE: usize = 5;
/// Readings of a question whose ways are learned from.
const WAYS: usize = 60;
/// A reading is good from this F1 on.
const GOOD: f64 = 0.999;

/// How a graph is adapted to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptConfig {
    /// Questions that are drafted.
    pub drafts: usize,
    /// The longest path of a draft.
    pub hops: usize,
    /// Seed of the drafts.
    pub seed: u64,
    /// How much a phrase is held at what the matcher gives.
    pub hold_phrases: f32,
    /// How weights are fitted.
    pub read: ReadTrainConfig,
}

impl Default for AdaptConfig {
    fn default() -> Self {
        Self {
            drafts: 1000,
            hops: 3,
            seed: 0,
            hold_phrases: Learning::default().hold,
            read: ReadTrainConfig {
                rounds: 3,
                ..ReadTrainConfig::default()
            },
        }
    }
}

impl Settings for AdaptConfig {
    fn set_encoder(&mut self, encoder: &str) {
        self.read.set_encoder(encoder);
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }
}

/// Questions of one kind that were kept aside: how many are answered exactly right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdaptMetrics {
    /// `own`, `reworded` or `drafted`.
    pub kind: &'static str,
    /// Learned from.
    pub learned: usize,
    /// Kept aside.
    pub questions: usize,
    /// Right before.
    pub before: usize,
    /// Right with the phrases that were learned, and the weights of before.
    pub phrases: usize,
    /// Right with both.
    pub weights: usize,
}

/// What is taken in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chosen {
    /// Nothing was better than what there was.
    Before,
    /// The phrases that were learned, with the weights of before.
    Phrases,
    /// The weights that were fitted, and the phrases where some were learned.
    Weights,
}

/// What came of it.
pub struct Adapted {
    /// The weights.
    pub weights: Weights,
    /// The phrases, where some were learned.
    pub phrases: Option<LearnedPhrases>,
    /// Each kind of questions.
    pub judged: Vec<AdaptMetrics>,
    /// What is taken.
    pub chosen: Chosen,
    /// Passes over the questions.
    pub rounds: Vec<ReadRound>,
}

/// What goes on.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// Drafts are reworded.
    Rewording,
    /// Questions that were kept aside are read.
    Judging,
    /// Questions that phrases are learned from are read.
    Phrases,
    /// Questions that weights are learned from are read.
    Weights,
}

struct Kind {
    name: &'static str,
    phrases: Vec<GoldQuestion>,
    weights: Vec<GoldQuestion>,
    aside: Vec<GoldQuestion>,
}

impl Kind {
    fn new(name: &'static str, questions: Vec<GoldQuestion>, teaches_phrases: bool) -> Self {
        let (mut phrases, mut weights, mut aside) = (Vec::new(), Vec::new(), Vec::new());
        for (place, question) in questions.into_iter().enumerate() {
            match place % KEPT_ASIDE {
                0 => aside.push(question),
                1 | 3 if teaches_phrases => phrases.push(question),
                _ => weights.push(question),
            }
        }
        Self {
            name,
            phrases,
            weights,
            aside,
        }
    }
}

/// Adapts the reader to a graph; `see` is told what goes on, how much of it is done and of how much.
pub fn adapt(
    graph: &dyn Graph,
    own: Vec<GoldQuestion>,
    start: &Weights,
    model: Option<(&dyn LanguageModel, Instant)>,
    config: &AdaptConfig,
    mut see: impl FnMut(Stage, usize, usize),
) -> Result<Adapted> {
    config.read.check()?;
    let options = DraftOptions {
        count: config.drafts,
        hops: config.hops,
        seed: config.seed,
        ..DraftOptions::default()
    };
    let drafts = draft(graph, &options)?;
    if drafts.is_empty() && own.is_empty() {
        return Err(Error::BadSetting(
            "the graph has nothing to ask about".into(),
        ));
    }
    let reworded = match model {
        None => Vec::new(),
        Some((model, until)) => reworded(&drafts, model, until, |done| {
            see(Stage::Rewording, done, drafts.len());
        })?,
    };
    let kinds = [
        Kind::new("own", own, true),
        Kind::new("reworded", reworded, false),
        Kind::new("drafted", drafts, false),
    ];
    let encoder = encode::open(&config.read.encoder).map_err(wherefore::Error::from)?;
    let matcher = encode::open(&config.read.matcher).map_err(wherefore::Error::from)?;
    let known = |learned: Option<&LearnedPhrases>| {
        Known::new(graph, Arc::clone(&encoder), Arc::clone(&matcher), learned)
    };
    let plain = known(None)?;
    let aside: usize = kinds.iter().map(|kind| kind.aside.len()).sum();
    let judge = |known: &Known, weights: &Weights, see: &mut dyn FnMut(Stage, usize, usize)| {
        let mut done = 0;
        let mut rights = Vec::with_capacity(kinds.len());
        for kind in &kinds {
            let taught = taught(graph, known, kind.aside.iter());
            let strict = |readings: &[Proposal], question: &GoldQuestion| match readings.first() {
                Some(first) => Ok(right(first, question, graph)? >= GOOD),
                None => Ok(question.answers.is_empty()),
            };
            let right = taught.each(weights, &config.read, strict, |some| {
                done += some;
                see(Stage::Judging, done, aside);
            })?;
            rights.push(right.into_iter().filter(|right| *right).count());
        }
        Ok::<_, Error>(rights)
    };
    let before = judge(&plain, start, &mut see)?;

    let teaching: Vec<&GoldQuestion> = kinds.iter().flat_map(|kind| &kind.phrases).collect();
    let phrases = match teaching.is_empty() {
        true => None,
        false => {
            let total = teaching.len();
            let taught = taught(graph, &plain, teaching.into_iter());
            let mut done = 0;
            let asked = taught.each(
                start,
                &config.read,
                |readings, question| asked(readings, question, graph),
                |some| {
                    done += some;
                    see(Stage::Phrases, done, total);
                },
            )?;
            let asked: Vec<Asked> = asked.into_iter().flatten().collect();
            let how = Learning {
                hold: config.hold_phrases,
                ..Learning::default()
            };
            Some(plain.learn(&asked, how)?)
        }
    };
    let adapted = match &phrases {
        None => plain,
        Some(learned) => known(Some(learned))?,
    };
    let with_phrases = match &phrases {
        None => before.clone(),
        Some(_) => judge(&adapted, start, &mut see)?,
    };
    let teaching = kinds.iter().flat_map(|kind| &kind.weights);
    let lesson = [taught(graph, &adapted, teaching)];
    let (weights, rounds) = fitted(&lesson, start, &config.read, |done, total, _| {
        see(Stage::Weights, done, total);
    })?;
    let with_weights = judge(&adapted, &weights, &mut see)?;

    let judged: Vec<AdaptMetrics> = (kinds.iter().enumerate())
        .filter(|(_, kind)| !kind.aside.is_empty())
        .map(|(at, kind)| AdaptMetrics {
            kind: kind.name,
            learned: kind.phrases.len() + kind.weights.len(),
            questions: kind.aside.len(),
            before: before[at],
            phrases: with_phrases[at],
            weights: with_weights[at],
        })
        .collect();
    let chosen = chosen(&judged);
    Ok(Adapted {
        weights: match chosen {
            Chosen::Weights => weights,
            Chosen::Before | Chosen::Phrases => start.clone(),
        },
        phrases: phrases.filter(|_| chosen != Chosen::Before),
        judged,
        chosen,
        rounds,
    })
}

/// What is best on the first kind of questions: own ones come first, then reworded, then drafts.
fn chosen(judged: &[AdaptMetrics]) -> Chosen {
    let Some(first) = judged.first() else {
        return Chosen::Before;
    };
    if first.weights > first.before.max(first.phrases) {
        Chosen::Weights
    } else if first.phrases > first.before {
        Chosen::Phrases
    } else {
        Chosen::Before
    }
}

fn taught<'a>(
    graph: &'a dyn Graph,
    known: &'a Known,
    questions: impl Iterator<Item = &'a GoldQuestion>,
) -> Taught<'a> {
    Taught {
        graph,
        known,
        questions: questions.collect(),
    }
}

/// The ways of a question's readings, where some are good and some are not.
fn asked(
    readings: &[Proposal],
    question: &GoldQuestion,
    graph: &dyn Graph,
) -> Result<Option<Asked>> {
    let mut ways: Vec<(Vec<_>, bool)> = Vec::new();
    for reading in readings.iter().take(WAYS).filter(|r| !r.phrases.is_empty()) {
        let is_good = right(reading, question, graph)? >= GOOD;
        let mut way = reading.phrases.clone();
        way.sort_unstable();
        match ways.iter_mut().find(|(other, _)| *other == way) {
            Some((_, good)) => *good |= is_good,
            None => ways.push((way, is_good)),
        }
    }
    let teaches = ways.iter().any(|(_, good)| *good) && !ways.iter().all(|(_, good)| *good);
    Ok(readings.first().filter(|_| teaches).map(|first| Asked {
        question: Arc::clone(&first.question),
        ways,
    }))
}

/// Drafts in other words, as long as there is time. What lost a name, or says the same again, is
/// left out.
fn reworded(
    drafts: &[GoldQuestion],
    model: &dyn LanguageModel,
    until: Instant,
    mut see: impl FnMut(usize),
) -> Result<Vec<GoldQuestion>> {
    let decoding = Decoding {
        max_tokens: 60,
        ..Decoding::default()
    };
    let mut reworded = Vec::new();
    let mut seen: HashSet<String> = drafts.iter().map(|d| d.question.to_lowercase()).collect();
    for (place, draft) in drafts.iter().enumerate() {
        if Instant::now() >= until {
            break;
        }
        let mut watch = |_: wherefore::model::language::Progress<'_>| match Instant::now() < until {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let said = match model.complete(&prompt(&draft.question), &decoding, &mut watch) {
            Err(_) if Instant::now() >= until => break,
            said => said?,
        };
        let question = one_question(&said.text);
        let named = draft
            .topics
            .iter()
            .all(|topic| question.contains(&topic.name));
        if named && !question.is_empty() && seen.insert(question.to_lowercase()) {
            reworded.push(GoldQuestion {
                id: format!("{}-reworded", draft.id),
                question,
                ..draft.clone()
            });
        }
        see(place + 1);
    }
    Ok(reworded)
}

/// The first line that is a question, without quotation marks.
fn one_question(said: &str) -> String {
    let lines = said
        .lines()
        .map(|line| line.trim().trim_matches(['"', '*', '`']));
    let mut lines = lines.filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or_default();
    line.strip_prefix("Question:")
        .unwrap_or(line)
        .trim()
        .to_owned()
}

fn prompt(question: &str) -> Prompt {
    let examples = [
        (
            "what is the release year of the ones directed by Ridley Scott",
            "When did the films that Ridley Scott made come out?",
        ),
        (
            "which country has the capital Paris",
            "Paris is the capital city of which country?",
        ),
        (
            "what is the currency of the country whose capital is Rome",
            "How do people pay in the country that is governed from Rome?",
        ),
    ];
    let mut messages = vec![Message::new(
        Role::System,
        "Reword the question as a person would ask it in everyday English. Keep its meaning, and keep every name exactly as it is written. Answer with the new question alone.",
    )];
    for (stiff, natural) in examples {
        messages.push(Message::new(Role::User, stiff));
        messages.push(Message::new(Role::Assistant, natural));
    }
    messages.push(Message::new(Role::User, question));
    Prompt::Chat(messages)
}

/// Writes what came of it into a folder that `--model` takes.
pub fn save(folder: &Path, adapted: &Adapted, config: &AdaptConfig, took: Duration) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::io("write", folder))?;
    atomic_write::write(&folder.join(WEIGHTS_FILE), adapted.weights.written())?;
    let phrases = folder.join(PHRASES_FILE);
    match &adapted.phrases {
        Some(learned) => learned
            .save(&phrases)
            .map_err(Error::io("write", &phrases))?,
        None if phrases.exists() => {
            std::fs::remove_file(&phrases).map_err(Error::io("remove", &phrases))?;
        }
        None => {}
    }
    atomic_write::write_json(
        &folder.join("config.json"),
        &json!({
            "format": checkpoint::FORMAT,
            "method": "read",
            "sizes": {},
            "encoder": { "name": config.read.matcher, "dim": 0 },
            "seed": config.seed,
            "data": {},
            "training": config,
            "metrics": {
                "judged": adapted.judged,
                "chosen": adapted.chosen,
                "seconds": took.as_secs_f64().round(),
            },
        }),
    )
}

#[cfg(test)]
mod tests {
    use wherefore_graph::toy;

    use super::*;
    use crate::questions::Name;

    fn judged(before: usize, phrases: usize, weights: usize) -> AdaptMetrics {
        AdaptMetrics {
            kind: "own",
            learned: 40,
            questions: 10,
            before,
            phrases,
            weights,
        }
    }

    #[test]
    fn the_simplest_of_equals_is_taken() {
        assert_eq!(chosen(&[judged(5, 5, 5)]), Chosen::Before);
        assert_eq!(chosen(&[judged(5, 6, 6), judged(1, 1, 9)]), Chosen::Phrases);
        assert_eq!(chosen(&[judged(5, 4, 6)]), Chosen::Weights);
        assert_eq!(chosen(&[]), Chosen::Before);
    }

    #[test]
    fn no_question_is_both_learned_from_and_kept_aside() {
        let question = |n: usize| GoldQuestion {
            question: n.to_string(),
            ..GoldQuestion::default()
        };
        for teaches in [true, false] {
            let kind = Kind::new("own", (0..23).map(question).collect(), teaches);
            let all = [&kind.phrases, &kind.weights, &kind.aside];
            let texts: HashSet<&str> = all
                .iter()
                .flat_map(|some| some.iter().map(|q| q.question.as_str()))
                .collect();
            assert_eq!(texts.len(), 23);
            assert_eq!(all.iter().map(|some| some.len()).sum::<usize>(), 23);
            assert_eq!(kind.aside.len(), 5);
            assert_eq!(kind.phrases.is_empty(), !teaches);
        }
    }

    #[test]
    fn a_reply_is_a_question_or_nothing() {
        assert_eq!(one_question("\n\"Who made it?\"\nHere"), "Who made it?");
        assert_eq!(one_question("Question: Who?"), "Who?");
        assert_eq!(one_question(" \n "), "");
    }

    #[test]
    fn drafts_that_a_model_rewords_keep_their_names_and_answers() {
        let named = |id: &str, text: &str, name: &str| GoldQuestion {
            id: id.into(),
            question: text.into(),
            topics: vec![Name::with_id(name, name)],
            answers: vec![Name::with_id("answer", "answer")],
            ..GoldQuestion::default()
        };
        let drafts = [
            named("a", "what is the capital of Peru", "Peru"),
            named("b", "what is the capital of Chile", "Chile"),
            named("c", "what is the currency of Peru", "Peru"),
        ];
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script.jsonl");
        let lines = [
            json!({ "contains": "capital of Peru", "text": "\"Where is Peru governed from?\"" }),
            json!({ "contains": "capital of Chile", "text": "Where is Peru governed from?" }),
            json!({ "contains": "currency", "text": "what is the currency of Peru" }),
        ];
        std::fs::write(&script, lines.map(|line| format!("{line}\n")).concat()).unwrap();
        let model = wherefore::model::language::open(&format!("script:{}", script.display()));
        let model = model.unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let reworded = reworded(&drafts, &*model, until, |_| {}).unwrap();
        // one lost its name, one says the same
        assert_eq!(reworded.len(), 1);
        assert_eq!(reworded[0].question, "Where is Peru governed from?");
        assert_eq!(reworded[0].answers, drafts[0].answers);
        assert!(
            super::reworded(&drafts, &*model, Instant::now(), |_| {})
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn what_is_adapted_is_saved_and_asked_with() {
        let graph = toy::graph();
        let config = AdaptConfig {
            drafts: 40,
            hops: 1,
            read: ReadTrainConfig {
                rounds: 1,
                matcher: "static".into(),
                ..ReadTrainConfig::default()
            },
            ..AdaptConfig::default()
        };
        let options = DraftOptions {
            count: 30,
            seed: 7,
            hops: 1,
            ..DraftOptions::default()
        };
        let own = draft(&graph, &options).unwrap();
        let start = Weights::shipped();
        let adapted = adapt(&graph, own.clone(), start, None, &config, |_, _, _| {}).unwrap();
        let kinds: Vec<&str> = adapted.judged.iter().map(|j| j.kind).collect();
        assert_eq!(kinds, ["own", "drafted"]);
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("ckpt");
        save(&out, &adapted, &config, Duration::ZERO).unwrap();
        let config = wherefore::PipelineConfig::of_checkpoint(&out).unwrap();
        let pipeline = config.build().unwrap();
        let is_right = |question: &&GoldQuestion| {
            let asked = question.without_topics();
            let answer = pipeline.answer(&asked, &graph, &mut ()).unwrap();
            let names: HashSet<&str> = answer.answers.iter().map(|a| a.name.as_str()).collect();
            names == question.answers.iter().map(|a| a.name.as_str()).collect()
        };
        assert!(own.iter().filter(is_right).count() > own.len() / 2);
    }
}
