//! Training of the relation retriever: which relations a question's logical form uses.
//!
//! ```text
//! L = −mean over questions of  Σ_{r ∈ gold} log softmax_r(s) / |gold|
//! ```
//!
//! Gold relations are those of the gold form, or else of the gold triples and paths. The softmax
//! runs over all relations of the graph where there are at most `negatives`; else over the gold
//! ones of the step, as many of the hardest by the present network, and random ones. After each
//! pass the validation questions are ranked; what counts is recall at 10, then at 1. Where a BERT is
//! to be fine-tuned, its layers learn in the place of tables (`relation_tuning.rs`). Then the
//! re-ranker of the first candidates is trained (`relation_pairs.rs`).

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wherefore::graph::{Graph, RelationId};
use wherefore::link::{Linker, Names, NamesConfig};
use wherefore::logic::aspects::{ENCODER, masked, near, relation_texts};
use wherefore::logic::{Form, relation_called};
use wherefore::model::checkpoint::{self, Checkpoint, Description};
use wherefore::model::optimise::AdamWConfig;
use wherefore::model::relations::{Featured, Near, RelationMatcher, Sizes, features, loss};
use wherefore::model::tensor::{Device, Tensor};
use wherefore::model::{Embeddings, Encoder, Random, encode};

use super::config::Settings;
use super::relation_pairs::{PairTrainConfig, RankedPairs, pairs};
use super::relation_tuning::{TuneConfig, tuned};
use super::trainer::{Trainer, TrainingTask, batches, begun, best, check_schedule};
use super::{Epoch, Progress, Task, work_folder};
use crate::error::{Error, Result};
use crate::forms::gold_form;
use crate::questions::GoldQuestion;

/// Questions that are linked before it is told.
const BLOCK: usize = 512;

/// Everything that can be set of this training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelationTrainConfig {
    /// The encoder, frozen unless it is tuned.
    pub encoder: String,
    /// Sizes of the network; `dim` follows from the encoder.
    pub sizes: Sizes,
    /// How steps are taken.
    pub optimiser: AdamWConfig,
    /// Most passes over the questions.
    pub epochs: u32,
    /// Passes without a better network after which the training ends.
    pub patience: u32,
    /// Share of all steps in which the learning rate rises.
    pub warm_up: f32,
    /// Questions in one step.
    pub batch_questions: usize,
    /// Relations that gold ones are told from in a step, at most.
    pub negatives: usize,
    /// Whether relations near the linked entities have a weight of their own.
    pub near: bool,
    /// How the layers of a BERT learn.
    pub tune: TuneConfig,
    /// The re-ranker that reads question and relation together.
    pub pairs: PairTrainConfig,
    /// The seed.
    pub seed: u64,
}

impl Default for RelationTrainConfig {
    fn default() -> Self {
        Self {
            encoder: "static".into(),
            sizes: Sizes::default(),
            optimiser: AdamWConfig {
                learning_rate: 2e-3,
                weight_decay: 1e-2,
                ..AdamWConfig::default()
            },
            epochs: 12,
            patience: 3,
            warm_up: 0.05,
            batch_questions: 64,
            negatives: 4096,
            near: true,
            tune: TuneConfig::default(),
            pairs: PairTrainConfig::default(),
            seed: 0,
        }
    }
}

impl Settings for RelationTrainConfig {
    fn set_encoder(&mut self, encoder: &str) {
        encoder.clone_into(&mut self.encoder);
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }
}

impl RelationTrainConfig {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        check_schedule((self.epochs, self.patience), self.warm_up, &self.optimiser)?;
        self.tune.check()?;
        self.pairs.check()?;
        let wrong = |what: &str| Err(Error::BadSetting(what.to_owned()));
        if self.batch_questions == 0 || self.negatives < 2 {
            return wrong("`batch_questions` must be at least 1 and `negatives` at least 2");
        }
        Ok(())
    }
}

/// How well relations are ranked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Mean share of a question's gold relations that come first.
    pub recall_at_1: f64,
    /// Among the first ten.
    pub recall_at_10: f64,
}

impl Ranked {
    /// Adds a question: the scores of all relations, and which of them are gold. An error where a
    /// score is no number any more: such a network is not to be kept.
    pub(super) fn add(&mut self, scores: &[f32], gold: &[u32]) -> Result<()> {
        finite(scores)?;
        let share = |k: usize| found(scores, gold, k) as f64 / gold.len() as f64;
        self.recall_at_1 += share(1);
        self.recall_at_10 += share(10);
        Ok(())
    }

    /// The mean over `count` questions that were added.
    pub(super) fn over(&self, count: usize) -> Self {
        Self {
            recall_at_1: self.recall_at_1 / count as f64,
            recall_at_10: self.recall_at_10 / count as f64,
        }
    }

    pub(super) fn is_better_than(&self, old: &Self) -> bool {
        (self.recall_at_10, self.recall_at_1) > (old.recall_at_10, old.recall_at_1)
    }
}

impl fmt::Display for Ranked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "relations recall@1 {:.3}, recall@10 {:.3}",
            self.recall_at_1, self.recall_at_10
        )
    }
}

/// What a training came to.
#[derive(Clone, Debug, Serialize)]
pub struct TrainedRelations {
    /// Questions that had something to learn from.
    pub questions: usize,
    /// Questions left out: no gold relation is known, or the graph has none of them.
    pub left_out: usize,
    /// Validation questions that were judged.
    pub valid: usize,
    /// Every pass.
    pub epochs: Vec<Epoch<Ranked>>,
    /// The best of them.
    pub best: Ranked,
    /// Every pass of the re-ranker; none where it was left out.
    pub pair_epochs: Vec<Epoch<RankedPairs>>,
}

/// The relations of a question's gold form that the graph has, sorted; where there is no form,
/// those of its gold triples and paths.
pub fn gold_relations(question: &GoldQuestion, graph: &dyn Graph) -> Result<Vec<RelationId>> {
    let mut names: Vec<String> = match gold_form(question).and_then(|f| f.parse::<Form>().ok()) {
        Some(form) => form.relations().iter().map(|r| r.name.clone()).collect(),
        None => {
            let paths = question.proof.paths.iter().flatten();
            let triples = paths.chain(&question.proof.relevant);
            let mut names: Vec<String> = triples.map(|[_, r, _]| r.clone()).collect();
            if names.is_empty() {
                let first = question.proof.relation_paths.first();
                names.extend(first.into_iter().flatten().cloned());
            }
            names
        }
    };
    names.sort_unstable();
    names.dedup();
    let mut found = Vec::new();
    for name in names {
        found.extend(relation_called(&name, graph)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Trains a relation retriever.
pub fn relations(
    task: &Task<'_>,
    config: &RelationTrainConfig,
    device: &Device,
    see: &mut dyn FnMut(Progress),
) -> Result<TrainedRelations> {
    config.check()?;
    let work = work_folder::<RelationMatcher>(task)?;
    let mut run = Run::prepare(task, config, device, see)?;
    let epochs = match config.tune.epochs {
        0 => {
            run.read_with(Arc::clone(&run.encoder), config.sizes.buckets)?;
            let trainer = Trainer {
                seed: config.seed,
                epochs: config.epochs,
                patience: config.patience,
                warm_up: config.warm_up,
                optimiser: config.optimiser.clone(),
                device,
                last: work.join("last"),
                out: task.out,
            };
            trainer.run(&run, see)?
        }
        _ => {
            let epochs = tuned(&run, &work, see)?;
            if config.pairs.epochs > 0 {
                let folder = checkpoint::in_place(task.out).join(ENCODER);
                run.read_with(encode::open(&folder.to_string_lossy())?, 1)?;
            }
            epochs
        }
    };
    let pair_epochs = match config.pairs.epochs {
        0 => Vec::new(),
        _ => {
            let matcher: Checkpoint<RelationMatcher> = Checkpoint::load(task.out, device)?;
            pairs(&run, &matcher.network, &work, see)?
        }
    };
    std::fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    Ok(TrainedRelations {
        questions: run.learn.len(),
        left_out: task.train.len() - run.learn.len(),
        valid: run.valid.len(),
        best: best(&epochs),
        epochs,
        pair_epochs,
    })
}

/// Questions as the network takes them.
pub(super) struct Asked {
    /// With their mentions masked.
    pub(super) texts: Vec<String>,
    read: Featured,
    near: Vec<Near>,
    pub(super) gold: Vec<Vec<u32>>,
}

impl Asked {
    pub(super) fn len(&self) -> usize {
        self.gold.len()
    }

    fn featured(&self, batch: &[usize]) -> Featured {
        picked(&self.read, batch.iter().copied())
    }

    pub(super) fn near(&self, batch: &[usize]) -> Near {
        (0u32..)
            .zip(batch)
            .flat_map(|(row, &i)| self.near[i].iter().map(move |&(_, r, s)| (row, r, s)))
            .collect()
    }
}

/// Some of the texts.
fn picked(all: &Featured, texts: impl Iterator<Item = usize> + Clone) -> Featured {
    let dim = all.rows.dim();
    let rows = texts.clone().flat_map(|i| all.rows.row(i)).copied();
    Featured {
        rows: Embeddings::new(rows.collect(), dim),
        features: texts.map(|i| all.features[i].clone()).collect(),
    }
}

/// Near and gold relations by their places among the `chosen`, which are sorted.
pub(super) fn among(chosen: &[u32], near: Near, gold: &[Vec<u32>]) -> (Near, Vec<Vec<u32>>) {
    let place = |relation: u32| chosen.binary_search(&relation).ok().map(|p| p as u32);
    let near = (near.into_iter())
        .filter_map(|(row, r, step)| Some((row, place(r)?, step)))
        .collect();
    let gold = (gold.iter())
        .map(|gold| gold.iter().filter_map(|&r| place(r)).collect())
        .collect();
    (near, gold)
}

/// Refuses scores of a network that has diverged; the loop knows the step.
pub(super) fn finite(scores: &[f32]) -> Result<()> {
    match scores.iter().all(|score| score.is_finite()) {
        true => Ok(()),
        false => Err(Error::Diverged {
            what: "score of a relation".into(),
            step: 0,
            kept: None,
        }),
    }
}

/// How many of the gold places are among the first `k` by their scores. Of equal scores the gold
/// ones come last, and what is no number is not found.
pub(super) fn found(scores: &[f32], gold: &[u32], k: usize) -> usize {
    let is_found = |&(place, &r): &(usize, &u32)| {
        let score = scores[r as usize];
        let before = (0u32..).zip(scores).filter(|&(other, &s)| {
            let tied = s == score && !gold.contains(&other);
            s > score || tied || s.is_nan()
        });
        let gold_before = gold[..place]
            .iter()
            .filter(|&&o| scores[o as usize] == score);
        !score.is_nan() && before.count() + gold_before.count() < k
    };
    gold.iter().enumerate().filter(is_found).count()
}

pub(super) struct Run<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) config: RelationTrainConfig,
    pub(super) device: &'a Device,
    pub(super) encoder: Arc<dyn Encoder>,
    pub(super) learn: Asked,
    pub(super) valid: Asked,
    /// The words of every relation.
    pub(super) names: Vec<String>,
    description: Description<Sizes>,
    relations: Featured,
}

impl<'a> Run<'a> {
    fn prepare(
        task: &'a Task<'a>,
        config: &RelationTrainConfig,
        device: &'a Device,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let encoder = encode::open(&config.encoder)?;
        let mut config = config.clone();
        config.sizes.dim = encoder.dim();
        config.sizes.tuned = false;
        let linker = Names::new(NamesConfig::default())?;
        let total = task.train.len() + task.valid.len();
        let mut done = 0;
        let mut asked = |questions: &[GoldQuestion]| -> Result<Asked> {
            let mut texts = Vec::new();
            let (mut nears, mut gold) = (Vec::new(), Vec::new());
            for block in questions.chunks(BLOCK) {
                let read: Vec<Option<(String, Near, Vec<u32>)>> = block
                    .par_iter()
                    .map(|question| {
                        let gold = gold_relations(question, task.graph)?;
                        if gold.is_empty() {
                            return Ok(None);
                        }
                        let links = linker.link(&question.without_topics(), task.graph)?;
                        let near = match config.near {
                            true => near(0, &links, task.graph)?,
                            false => Near::new(),
                        };
                        let gold = gold.iter().map(|r| r.0).collect();
                        Ok(Some((masked(&question.question, &links), near, gold)))
                    })
                    .collect::<Result<_>>()?;
                for (text, near, relations) in read.into_iter().flatten() {
                    texts.push(text);
                    nears.push(near);
                    gold.push(relations);
                }
                done += block.len();
                see(Progress::Exploring { done, total });
            }
            Ok(Asked {
                texts,
                read: Featured::default(),
                near: nears,
                gold,
            })
        };
        let (learn, valid) = (asked(task.train)?, asked(task.valid)?);
        if learn.len() == 0 || valid.len() == 0 {
            return Err(Error::BadSetting(
                "no question has a gold form, path or triple with relations of this graph".into(),
            ));
        }
        let mut description =
            Description::of::<RelationMatcher>(config.sizes.clone(), encoder.name(), config.seed);
        description.data.clone_from(&task.data);
        description.training.insert("config".into(), json!(config));
        description
            .training
            .insert("learned_from".into(), json!(learn.len()));
        if let Some(init) = task.init {
            let init = json!(checkpoint::read_description(init)?);
            description.training.insert("init".into(), init);
        }
        Ok(Self {
            task,
            config,
            device,
            encoder,
            learn,
            valid,
            names: relation_texts(task.graph)?,
            description,
            relations: Featured::default(),
        })
    }

    /// Turns all texts into what the towers take.
    fn read_with(&mut self, encoder: Arc<dyn Encoder>, buckets: usize) -> Result<()> {
        let read = |texts: &[String], whole: bool| -> Result<Featured> {
            let names: Vec<&str> = texts.iter().map(String::as_str).collect();
            Ok(Featured {
                rows: encoder.encode(&names)?,
                features: (texts.iter())
                    .map(|text| features(text, whole, buckets))
                    .collect(),
            })
        };
        self.learn.read = read(&self.learn.texts, false)?;
        self.valid.read = read(&self.valid.texts, false)?;
        self.relations = read(&self.names, true)?;
        self.encoder = encoder;
        Ok(())
    }

    /// The `count` best relations of each question with their scores.
    pub(super) fn ranked(
        &self,
        matcher: &RelationMatcher,
        asked: &Asked,
        count: usize,
    ) -> Result<Vec<Vec<(u32, f32)>>> {
        let relations = matcher.relations(&self.relations)?.detach();
        let all: Vec<usize> = (0..asked.len()).collect();
        let mut ranked = Vec::with_capacity(all.len());
        for batch in all.chunks(self.config.batch_questions) {
            let questions = matcher.questions(&asked.featured(batch))?.detach();
            let scores = matcher.scores(&questions, &relations, &asked.near(batch))?;
            let scores = scores
                .to_vec2::<f32>()
                .map_err(wherefore::model::Error::from)?;
            ranked.par_extend(scores.into_par_iter().map(|row| {
                let mut order: Vec<(u32, f32)> = (0u32..).zip(row).collect();
                order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                order.truncate(count);
                order
            }));
        }
        Ok(ranked)
    }

    /// The relations of a step, and the gold and near ones by their places among them.
    fn chosen(
        &self,
        network: &RelationMatcher,
        batch: &[usize],
        random: &mut Random,
    ) -> Result<Option<Vec<u32>>> {
        let count = self.relations.features.len();
        if count <= self.config.negatives {
            return Ok(None);
        }
        let mut chosen: Vec<u32> = batch
            .iter()
            .flat_map(|&i| self.learn.gold[i].clone())
            .collect();
        let scores = network.scores(
            &network.questions(&self.learn.featured(batch))?.detach(),
            &network.relations(&self.relations)?.detach(),
            &self.learn.near(batch),
        )?;
        let hard = (self.config.negatives / 2 / batch.len().max(1)).max(1);
        for row in scores
            .to_vec2::<f32>()
            .map_err(wherefore::model::Error::from)?
        {
            let mut order: Vec<u32> = (0..count as u32).collect();
            order.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
            chosen.extend(&order[..hard.min(count)]);
        }
        while chosen.len() < self.config.negatives {
            chosen.push(random.below(count) as u32);
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(Some(chosen))
    }
}

impl TrainingTask for Run<'_> {
    type Network = RelationMatcher;
    type ValidationMetrics = Ranked;

    fn description(&self) -> &Description<Sizes> {
        &self.description
    }

    fn first_network(&self) -> Result<RelationMatcher> {
        if let Some(init) = self.task.init {
            return begun(init, &self.description, self.device);
        }
        let mut random = Random::stream(self.config.seed, 0);
        let sizes = self.config.sizes.clone();
        Ok(RelationMatcher::new(sizes, &mut random, self.device)?)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.learn.len()).collect();
        let most = self.config.batch_questions;
        batches(&all, (self.config.seed, epoch), (most, usize::MAX), |_| 1)
    }

    fn loss(
        &self,
        network: &RelationMatcher,
        batch: &[usize],
        random: &mut Random,
    ) -> Result<Tensor> {
        let asked = network.questions(&self.learn.featured(batch))?;
        let near = self.learn.near(batch);
        let gold: Vec<Vec<u32>> = batch.iter().map(|&i| self.learn.gold[i].clone()).collect();
        let Some(chosen) = self.chosen(network, batch, random)? else {
            let relations = network.relations(&self.relations)?;
            return Ok(loss(&network.scores(&asked, &relations, &near)?, &gold)?);
        };
        let relations = picked(&self.relations, chosen.iter().map(|&r| r as usize));
        let relations = network.relations(&relations)?;
        let (near, gold) = among(&chosen, near, &gold);
        Ok(loss(&network.scores(&asked, &relations, &near)?, &gold)?)
    }

    fn validate(&self, network: &RelationMatcher) -> Result<Ranked> {
        let relations = network.relations(&self.relations)?.detach();
        let all: Vec<usize> = (0..self.valid.len()).collect();
        let mut sum = Ranked::default();
        for batch in all.chunks(self.config.batch_questions) {
            let asked = network.questions(&self.valid.featured(batch))?.detach();
            let scores = network.scores(&asked, &relations, &self.valid.near(batch))?;
            let scores = scores
                .to_vec2::<f32>()
                .map_err(wherefore::model::Error::from)?;
            for (&i, row) in batch.iter().zip(scores) {
                sum.add(&row, &self.valid.gold[i])?;
            }
        }
        Ok(sum.over(self.valid.len()))
    }

    fn is_better(&self, new: &Ranked, old: &Ranked) -> bool {
        new.is_better_than(old)
    }

    fn keep(&self, network: &RelationMatcher, epochs: &[Epoch<Ranked>]) -> Result<()> {
        let mut description = self.description.clone();
        let valid = epochs.last().map(|epoch| &epoch.valid);
        description.metrics.insert("valid".into(), json!(valid));
        description.training.insert("epochs".into(), json!(epochs));
        checkpoint::save(self.task.out, &description, network, None)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
