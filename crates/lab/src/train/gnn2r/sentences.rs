//! Step II: the sentence encoder learns to tell which way the question asks for.
//!
//! The network of step I finds candidates for every training question; with the gold answers among
//! them, [`votes`] tells right sentences from wrong ones. A pass takes up to `negatives` wrong ones
//! for each question:
//!
//! ```text
//! L   = mean over questions of Σ_p w_p · the mean over n of max(cos(n, q) − cos(p, q) + ε', 0)
//! w_p = 1 / the number of p                     shortest, as published
//!     = softmax over p of cos(p, q) / τ         likeliest, no gradient through it
//! ```
//!
//! Often several ways lead to the same answers, and votes cannot tell them apart. The published rule
//! takes the shortest for right and the longer ones for wrong, also where the question spells the
//! longer one out (`the child of her son's father`). What questions with a single right way teach,
//! `likeliest` carries over to the others, and it is what `positives` says if nothing is set.
//!
//! After each pass the validation questions are answered, with the threshold and the weight of
//! nearness of [`Grid`](super::config::Grid) that suit them best; what counts is the share whose first
//! answer is right, and where that is equal F1. A BERT is fine-tuned itself and kept as a whole model
//! folder; any other encoder gets a small reader on top.
//!
//! Departures: the loss is a mean over negatives and questions, where the paper's is a sum; threshold
//! and nearness are chosen, where the paper sets the one and has no other; the optimiser is AdamW
//! with the schedule of `trainer.rs`.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wherefore::graph::Graph;
use wherefore::model::checkpoint::{self, Checkpointable, Description};
use wherefore::model::gnn2r::sentence::{
    SentenceEncoder, SentenceNetwork, SentenceReader, Sizes, Triplet, triplet_loss,
};
use wherefore::model::optimise::AdamWConfig;
use wherefore::model::tensor::{Device, Tensor};
use wherefore::model::tuned::{Base, Tuned};
use wherefore::model::vector::{dot, softmax};
use wherefore::model::{Encoder, Random, encode};
use wherefore::retrieve::gnn2r::{ANSWERING, Gnn2r, Gnn2rConfig, SENTENCES, best_sentence};

use super::config::{Gnn2rTrainConfig, Positives};
use crate::atomic_write;
use crate::error::Result;
use crate::questions::resolve;
use crate::supervise::votes;
use crate::train::config::TrainerConfig;
use crate::train::trainer::{Trainer, TrainingTask, above, batches, description, rows};
use crate::train::{Dataset, Epoch, Progress, Task};

/// Wrong sentences of a question that are kept to draw from.
///
/// Ours: four times the usual `negatives`, so that epochs draw different ones.
const POOL: usize = 128;
/// Right sentences of a question that are kept, at most.
///
/// Ours, to bound a step.
const RIGHT: usize = 32;
/// τ: differences of cosines that tell right sentences apart. Ours, as all of `likeliest` is.
const TEMPERATURE: f32 = 0.05;
/// Questions that are explored before it is told.
const BLOCK: usize = 256;

/// How well validation questions are answered by both steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spoken {
    /// Share of questions whose first answer is right.
    pub hit_at_1: f64,
    /// Mean F1 of their answers.
    pub f1: f64,
}

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "answers Hit@1 {:.3}, F1 {:.3}", self.hit_at_1, self.f1)
    }
}

/// A question to learn from.
struct Spoke {
    question: String,
    positive: Vec<String>,
    negative: Vec<String>,
}

/// A validation question: each sentence with the distances of its answers, nearest first, and
/// whether each is right.
struct Heard {
    question: String,
    gold: usize,
    sentences: Vec<(String, Vec<(f32, bool)>)>,
}

impl Heard {
    /// Whether the first answer of a sentence is right, and the F1 of those within the threshold.
    fn worth(&self, sentence: usize, threshold: f32) -> (bool, f64) {
        let near = &self.sentences[sentence].1;
        let least = near.first().map_or(0.0, |first| first.0);
        let given = near.iter().take_while(|(d, _)| *d <= least * threshold);
        let right = given.clone().filter(|(_, right)| *right).count();
        let f1 = 2.0 * right as f64 / (given.count() + self.gold).max(1) as f64;
        (near.first().is_some_and(|(_, right)| *right), f1)
    }
}

/// Trains the sentence encoder, unless it has no passes to take; tells how well both steps answer.
pub(super) fn train(
    task: &Task<'_>,
    config: &Gnn2rTrainConfig,
    material: &Dataset,
    device: &Device,
    work: &Path,
    see: &mut dyn FnMut(Progress),
) -> Result<(Vec<Epoch<Spoken>>, Spoken)> {
    let explorer = |candidates: usize, reach: Option<f32>| {
        let mut answering = config.answering.clone();
        (answering.candidates, answering.reach) = (candidates, reach);
        Gnn2r::new(&Gnn2rConfig {
            model: task.out.to_owned(),
            answering: Some(answering),
            ..Gnn2rConfig::default()
        })
    };
    let fine_tunes = config.sentences.epochs > 0;
    let learn: &[usize] = if fine_tunes { &material.learn } else { &[] };
    let total = learn.len() + material.judged.len();
    let mut done = 0;
    let mut tell = |more: usize| {
        done += more;
        see(Progress::Exploring { done, total });
    };
    let spoke = {
        let explorer = explorer(config.sentences.candidates, None)?;
        explored(learn, &mut tell, |i| {
            spoke(task, config, material, &explorer, i)
        })?
    };
    let heard = {
        let explorer = explorer(config.answering.candidates, config.answering.reach)?;
        explored(&material.judged, &mut tell, |i| {
            heard(task, config, material, &explorer, i)
        })?
    };
    let name = config.answering.encoder.as_ref().unwrap_or(&config.encoder);
    let encoder = encode::open(name)?;
    if !fine_tunes || spoke.is_empty() {
        let texts = |texts: &[&str]| Ok(encoder.encode(texts)?.into_values());
        let cosines = cosines(&heard, encoder.dim(), texts)?;
        return Ok((Vec::new(), calibrate(task.out, config, &heard, &cosines)?));
    }
    let lesson = Common {
        config,
        spoke,
        heard: &heard,
    };
    let bert = Tuned::folder(name)?;
    let usual_rate = if bert.is_some() { 2e-5 } else { 1e-3 };
    let trainer_config = TrainerConfig {
        optimiser: AdamWConfig {
            learning_rate: config.sentences.learning_rate.unwrap_or(usual_rate),
            weight_decay: config.sentences.weight_decay,
            ..config.trainer.optimiser.clone()
        },
        epochs: config.sentences.epochs,
        patience: config.sentences.patience,
        warm_up: config.trainer.warm_up,
        batch_questions: config.sentences.batch_questions,
        seed: config.trainer.seed ^ 0x0002,
    };
    let trainer = Trainer {
        config: &trainer_config,
        device,
        last: work.join("last-sentences"),
        out: &task.out.join(SENTENCES),
    };
    let epochs = match bert {
        Some(folder) => {
            let (network, base) = Tuned::open(&folder, device)?;
            let description = lesson.description::<Tuned>(task, network.sizes().clone(), name);
            let lesson = OfBert {
                common: lesson,
                description,
                network,
                base,
            };
            trainer.run(&lesson, see)?
        }
        None => {
            let sizes = Sizes {
                dim: encoder.dim(),
                hidden: config.sentences.hidden,
            };
            let description = lesson.description::<SentenceReader>(task, sizes, encoder.name());
            let lesson = OnTop {
                common: lesson,
                description,
                base: encoder,
                device,
            };
            trainer.run(&lesson, see)?
        }
    };
    // with the encoder that was kept, as it will answer
    let explorer = explorer(config.answering.candidates, config.answering.reach)?;
    let cosines: Vec<Vec<f32>> = (heard.par_iter())
        .map(|one| {
            let texts: Vec<&str> = one.sentences.iter().map(|s| s.0.as_str()).collect();
            Ok(explorer.similarities(&one.question, &texts)?)
        })
        .collect::<Result<_>>()?;
    Ok((epochs, calibrate(task.out, config, &heard, &cosines)?))
}

/// Runs `one` on all cores, block by block.
fn explored<T: Send>(
    indices: &[usize],
    tell: &mut dyn FnMut(usize),
    one: impl Fn(usize) -> Result<Option<T>> + Sync,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for block in indices.chunks(BLOCK) {
        let more: Vec<Option<T>> = block.par_iter().map(|i| one(*i)).collect::<Result<_>>()?;
        all.extend(more.into_iter().flatten());
        tell(block.len());
    }
    Ok(all)
}

/// What a training question teaches; none if all of its sentences are right, or wrong.
fn spoke(
    task: &Task<'_>,
    config: &Gnn2rTrainConfig,
    material: &Dataset,
    explorer: &Gnn2r,
    index: usize,
) -> Result<Option<Spoke>> {
    let question = &material.questions[index];
    let own = question.own_graph();
    let graph = own.as_ref().map_or(task.graph, |own| own as &dyn Graph);
    let gold = resolve(question, graph)?;
    let (topics, answers) = (gold.topic_entities(), gold.answer_entities());
    let found = explorer.explore(&question.question, &topics, &answers, graph)?;
    let votes = votes(&found, &answers, graph)?;
    let texts = |places: &[usize]| -> Vec<String> {
        places
            .iter()
            .map(|i| found.sentences[*i].text.clone())
            .collect()
    };
    let (mut positive, mut negative) = (votes.positive, votes.lower);
    match config.sentences.positives {
        Positives::Shortest => negative.extend(votes.longer),
        Positives::Likeliest => positive.extend(votes.longer),
    }
    negative.sort_unstable();
    positive.truncate(RIGHT);
    Random::stream(config.trainer.seed ^ 0x5e47, index as u64).shuffle(&mut negative);
    negative.truncate(POOL);
    Ok(
        (!positive.is_empty() && !negative.is_empty()).then(|| Spoke {
            question: question.question.clone(),
            positive: texts(&positive),
            negative: texts(&negative),
        }),
    )
}

/// What each sentence of a validation question would answer.
fn heard(
    task: &Task<'_>,
    config: &Gnn2rTrainConfig,
    material: &Dataset,
    explorer: &Gnn2r,
    index: usize,
) -> Result<Option<Heard>> {
    let question = &material.questions[index];
    let own = question.own_graph();
    let graph = own.as_ref().map_or(task.graph, |own| own as &dyn Graph);
    let gold = resolve(question, graph)?;
    let (topics, answers) = (gold.topic_entities(), gold.answer_entities());
    let found = explorer.explore(&question.question, &topics, &[], graph)?;
    let subgraph = &found.around.subgraph;
    let sentences = found.sentences.iter().map(|sentence| {
        let mut told: Vec<u32> = sentence.answers.iter().map(|told| told.candidate).collect();
        if config.answering.complete {
            let more = found.completed(sentence, &config.answering.trails);
            told.extend(more.into_iter().map(|(entity, _)| entity));
        }
        let mut near: Vec<(f32, bool)> = (told.into_iter())
            .map(|local| {
                let entity = subgraph.entities()[local as usize];
                let right = answers.binary_search(&entity).is_ok();
                (found.near.distances[local as usize], right)
            })
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        (sentence.text.clone(), near)
    });
    Ok(Some(Heard {
        question: question.question.clone(),
        gold: answers.len(),
        sentences: sentences.collect(),
    }))
}

/// The cosines of each validation question with its sentences, by vectors of texts, rows of `dim`
/// numbers.
fn cosines(
    heard: &[Heard],
    dim: usize,
    mut vectors: impl FnMut(&[&str]) -> Result<Vec<f32>>,
) -> Result<Vec<Vec<f32>>> {
    let mut row: HashMap<&str, usize> = HashMap::new();
    let mut texts = Vec::new();
    for one in heard {
        let own = one.sentences.iter().map(|(text, _)| text.as_str());
        for text in own.chain([one.question.as_str()]) {
            row.entry(text).or_insert_with(|| {
                texts.push(text);
                texts.len() - 1
            });
        }
    }
    let mut rows = Vec::with_capacity(texts.len() * dim);
    for block in texts.chunks(BLOCK) {
        rows.extend(vectors(block)?);
    }
    let vector = |text: &str| &rows[row[text] * dim..][..dim];
    let cosines = |one: &Heard| -> Vec<f32> {
        let asked = vector(&one.question);
        let sentences = one.sentences.iter();
        sentences
            .map(|(text, _)| dot(vector(text), asked))
            .collect()
    };
    Ok(heard.iter().map(cosines).collect())
}

/// How good the answers of the best sentences are.
fn spoken(heard: &[Heard], cosines: &[Vec<f32>], threshold: f32, nearness: f32) -> Spoken {
    let mut sum = Spoken::default();
    for (one, cosines) in heard.iter().zip(cosines) {
        let least = |near: &[(f32, bool)]| near.first().map_or(f32::INFINITY, |first| first.0);
        let least = one.sentences.iter().map(|(_, near)| least(near));
        if let Some(best) = best_sentence(cosines.iter().copied().zip(least), nearness) {
            let (hit, f1) = one.worth(best, threshold);
            sum.hit_at_1 += f64::from(u8::from(hit));
            sum.f1 += f1;
        }
    }
    let count = heard.len().max(1) as f64;
    Spoken {
        hit_at_1: sum.hit_at_1 / count,
        f1: sum.f1 / count,
    }
}

/// The threshold and the weight of nearness of the grid with the best answers to the validation
/// questions (Hit@1 and F1 added up); the settings' own, or the first, of equals.
fn best_settings(
    config: &Gnn2rTrainConfig,
    heard: &[Heard],
    cosines: &[Vec<f32>],
) -> (f32, f32, Spoken) {
    let own = (config.answering.threshold, config.answering.nearness);
    let or_own = |values: &[f32], own: f32| {
        if values.is_empty() {
            vec![own]
        } else {
            values.to_vec()
        }
    };
    let thresholds = or_own(&config.grid.thresholds, own.0);
    let nearnesses = or_own(&config.grid.nearnesses, own.1);
    let grid = nearnesses.iter().flat_map(|&nearness| {
        let thresholds = thresholds.iter();
        thresholds.map(move |&threshold| (threshold, nearness))
    });
    let mut best = (own.0, own.1, spoken(heard, cosines, own.0, own.1));
    for (threshold, nearness) in grid {
        let new = spoken(heard, cosines, threshold, nearness);
        if new.hit_at_1 + new.f1 > best.2.hit_at_1 + best.2.f1 + 1e-9 {
            best = (threshold, nearness, new);
        }
    }
    best
}

/// Gives the checkpoint the settings with which the validation questions are answered best.
fn calibrate(
    out: &Path,
    config: &Gnn2rTrainConfig,
    heard: &[Heard],
    cosines: &[Vec<f32>],
) -> Result<Spoken> {
    let (threshold, nearness, best) = best_settings(config, heard, cosines);
    let mut description = checkpoint::read_description(out)?;
    let mut answering = config.answering.clone();
    (answering.threshold, answering.nearness) = (threshold, nearness);
    description
        .training
        .insert(ANSWERING.into(), json!(answering));
    description.metrics.insert("answers".into(), json!(best));
    atomic_write::write_json(&out.join("config.json"), &description)?;
    Ok(best)
}

/// What both kinds of encoders learn from.
struct Common<'a> {
    config: &'a Gnn2rTrainConfig,
    spoke: Vec<Spoke>,
    heard: &'a [Heard],
}

impl Common<'_> {
    fn description<N: Checkpointable>(
        &self,
        task: &Task<'_>,
        sizes: N::Sizes,
        encoder: &str,
    ) -> Description<N::Sizes> {
        let sizes = (sizes, encoder, self.config.trainer.seed);
        description::<N>(&task.data, sizes, self.config, self.spoke.len())
    }

    fn validate(
        &self,
        dim: usize,
        vectors: impl FnMut(&[&str]) -> Result<Vec<f32>>,
    ) -> Result<Spoken> {
        let cosines = cosines(self.heard, dim, vectors)?;
        Ok(best_settings(self.config, self.heard, &cosines).2)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.spoke.len()).collect();
        let settings = &self.config.sentences;
        batches(
            &all,
            (self.config.trainer.seed, epoch),
            (settings.batch_questions, settings.batch_sentences),
            |i| {
                let one = &self.spoke[i];
                1 + one.positive.len() + one.negative.len().min(settings.negatives)
            },
        )
    }

    fn loss<N: SentenceNetwork>(
        &self,
        network: &N,
        base: &N::Base,
        batch: &[usize],
        random: &mut Random,
    ) -> Result<Tensor> {
        let settings = &self.config.sentences;
        let mut row: HashMap<&str, u32> = HashMap::new();
        let mut texts: Vec<&str> = Vec::new();
        let mut lines = Vec::new();
        for &i in batch {
            let one = &self.spoke[i];
            let mut negative: Vec<&String> = one.negative.iter().collect();
            if negative.len() > settings.negatives {
                random.shuffle(&mut negative);
                negative.truncate(settings.negatives);
            }
            // equal texts are encoded once
            let mut place = |text| {
                *row.entry(text).or_insert_with(|| {
                    texts.push(text);
                    texts.len() as u32 - 1
                })
            };
            let question = place(&one.question);
            let positive: Vec<u32> = one.positive.iter().map(|text| place(text)).collect();
            let negative: Vec<u32> = negative.iter().map(|text| place(text)).collect();
            lines.push((question, positive, negative));
        }
        let vectors = network.vectors(base, &texts)?;
        let rows: Vec<Vec<f32>> = match settings.positives {
            Positives::Shortest => Vec::new(),
            Positives::Likeliest => rows(&vectors.detach())?,
        };
        let mut triplets = Vec::new();
        for (question, positive, negative) in lines {
            let cosine = |sentence: &u32| match rows.is_empty() {
                true => 0.0,
                false => dot(&rows[question as usize], &rows[*sentence as usize]),
            };
            let likeness = positive
                .iter()
                .map(|sentence| cosine(sentence) / TEMPERATURE);
            let mut shares: Vec<f32> = likeness.collect();
            softmax(&mut shares);
            let count = (negative.len() * batch.len()) as f32;
            for (&positive, share) in positive.iter().zip(shares) {
                triplets.extend(negative.iter().map(|&negative| Triplet {
                    question,
                    positive,
                    negative,
                    weight: share / count,
                }));
            }
        }
        Ok(triplet_loss(&vectors, &triplets, settings.margin)?)
    }
}

/// Whether a sentence encoder is to be kept instead of another.
fn is_better(new: &Spoken, old: &Spoken) -> bool {
    above([new.hit_at_1, new.f1], [old.hit_at_1, old.f1])
}

/// A reader on top of an encoder.
struct OnTop<'a> {
    common: Common<'a>,
    description: Description<Sizes>,
    base: Arc<dyn Encoder>,
    device: &'a Device,
}

impl TrainingTask for OnTop<'_> {
    type Network = SentenceReader;
    type ValidationMetrics = Spoken;

    fn description(&self) -> &Description<Sizes> {
        &self.description
    }

    fn first_network(&self) -> Result<SentenceReader> {
        let mut random = Random::stream(self.common.config.trainer.seed ^ 0x0002, 0);
        let sizes = self.description.sizes.clone();
        Ok(SentenceReader::new(sizes, &mut random, self.device)?)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        self.common.batches(epoch)
    }

    fn loss(
        &self,
        network: &SentenceReader,
        batch: &[usize],
        random: &mut Random,
    ) -> Result<Tensor> {
        self.common.loss(network, &self.base, batch, random)
    }

    fn validate(&self, network: &SentenceReader) -> Result<Spoken> {
        let encoder = SentenceEncoder::new(Arc::clone(&self.base), network)?;
        self.common.validate(self.base.dim(), |texts| {
            Ok(encoder.encode(texts)?.into_values())
        })
    }

    fn is_better(&self, new: &Spoken, old: &Spoken) -> bool {
        is_better(new, old)
    }
}

/// The layers of a BERT.
struct OfBert<'a> {
    common: Common<'a>,
    description: Description<wherefore::model::tuned::Sizes>,
    /// As it was read.
    network: Tuned,
    base: Base,
}

impl TrainingTask for OfBert<'_> {
    type Network = Tuned;
    type ValidationMetrics = Spoken;

    fn description(&self) -> &Description<wherefore::model::tuned::Sizes> {
        &self.description
    }

    fn first_network(&self) -> Result<Tuned> {
        Ok(self.network.shared())
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        self.common.batches(epoch)
    }

    fn loss(&self, network: &Tuned, batch: &[usize], random: &mut Random) -> Result<Tensor> {
        self.common.loss(network, &self.base, batch, random)
    }

    fn validate(&self, network: &Tuned) -> Result<Spoken> {
        let dim = Tuned::dim(network.sizes());
        self.common.validate(dim, |texts| {
            let rows = network.vectors(&self.base, texts)?.detach();
            Ok(rows
                .flatten_all()
                .and_then(|rows| rows.to_vec1())
                .map_err(wherefore::model::Error::from)?)
        })
    }

    fn is_better(&self, new: &Spoken, old: &Spoken) -> bool {
        is_better(new, old)
    }

    fn keep(&self, network: &Tuned, _: &[Epoch<Spoken>], out: &Path) -> Result<()> {
        Ok(checkpoint::replace(out, |aside| {
            network.write(&self.base, aside)
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_grid_keeps_what_the_settings_say() {
        // the sentence most like the question is wrong, and its answer is farther by 1
        let heard = [Heard {
            question: "like a".into(),
            gold: 2,
            sentences: vec![
                ("a".into(), vec![(2.0, false)]),
                ("b".into(), vec![(1.0, true), (1.5, true)]),
            ],
        }];
        let cosines = [vec![0.95, 0.8]];
        let mut config = Gnn2rTrainConfig::default();
        let chosen = |config: &Gnn2rTrainConfig| {
            let (threshold, nearness, _) = best_settings(config, &heard, &cosines);
            (threshold, nearness)
        };
        // 0.95 − 2λ < 0.8 − λ from λ = 0.15 on; the second answer is within 1.7 times the distance
        assert_eq!(chosen(&config), (1.7, 0.3));
        config.grid.nearnesses.clear();
        assert_eq!(chosen(&config), (1.2, 0.0));
        config.answering.nearness = 0.5;
        config.grid.thresholds.clear();
        assert_eq!(chosen(&config), (1.2, 0.5));
    }

    #[test]
    fn the_sentence_most_like_the_question_answers() {
        let one = |question: &str| Heard {
            question: question.into(),
            gold: 2,
            sentences: vec![
                ("a".into(), vec![(1.0, true), (1.1, true), (1.5, false)]),
                ("b".into(), vec![(1.0, false)]),
            ],
        };
        let vectors = |texts: &[&str]| {
            let row = |text: &&str| match *text {
                "a" | "like a" => [1.0, 0.0],
                _ => [0.0, 1.0],
            };
            Ok(texts.iter().flat_map(row).collect())
        };
        let heard = [one("like a"), one("like b")];
        let cosines = cosines(&heard, 2, vectors).unwrap();
        assert_eq!(cosines, [[1.0, 0.0], [0.0, 1.0]]);
        // within 1.2: both of two answers; within 1: one of two; within 2: two of three given
        assert_eq!(heard[0].worth(0, 1.2), (true, 1.0));
        assert_eq!(heard[0].worth(0, 1.0), (true, 2.0 / 3.0));
        assert_eq!(heard[0].worth(0, 2.0), (true, 0.8));
        let spoken = spoken(&heard, &cosines, 1.2, 0.0);
        assert!((spoken.hit_at_1 - 0.5).abs() < 1e-9 && (spoken.f1 - 0.5).abs() < 1e-9);
        let better = Spoken {
            f1: 0.6,
            ..spoken.clone()
        };
        assert!(is_better(&better, &spoken) && !is_better(&spoken, &better));
        assert!(!is_better(&spoken, &spoken));
        // e^0 and e^-1 of 0.1 and 0.05
        let mut shares = [0.1, 0.05].map(|cosine| cosine / TEMPERATURE);
        softmax(&mut shares);
        assert!((shares[0] - 0.731_06).abs() < 1e-4 && (shares[1] - 0.268_94).abs() < 1e-4);
    }
}
