//! Training of the relation retriever with an encoder that learns: a BERT whose layers are
//! fine-tuned, as in AMAR's paper.
//!
//! The loss is that of `mod.rs`. A step tells the gold relations of its questions from some
//! that lie near their entities, which are the hardest, and from random ones. What is kept is the
//! matcher that answers, and the encoder beside it as a whole model folder.

use std::path::Path;

use wherefore::logic::aspects::ENCODER;
use wherefore::model::Random;
use wherefore::model::checkpoint::{self, Description};
use wherefore::model::relations::{RelationMatcher, TunedMatcher, loss};
use wherefore::model::tensor::Tensor;
use wherefore::model::tuned::{Base, Sizes, Tuned};

use super::dataset::{Ranked, Run, among};
use crate::error::{Error, Result};
use crate::train::trainer::{Trainer, TrainingTask, description, even_batches, kept, rows};
use crate::train::{Epoch, Progress};

/// Texts that are read together when nothing is learned.
const BLOCK: usize = 512;

/// Fine-tunes the encoder, into a checkpoint of `wherefore train relations`.
pub(super) fn tuned(
    run: &Run<'_>,
    work: &Path,
    see: &mut dyn FnMut(Progress),
) -> Result<Vec<Epoch<Ranked>>> {
    let lesson = Tuning::prepare(run)?;
    let config = run.config.tune.trainer(run.config.trainer.seed);
    let trainer = Trainer {
        config: &config,
        device: run.device,
        last: work.join(ENCODER),
        out: run.task.out,
    };
    trainer.run(&lesson, see)
}

struct Tuning<'a> {
    run: &'a Run<'a>,
    base: Base,
    /// As it was read.
    tuned: Tuned,
    description: Description<Sizes>,
}

impl<'a> Tuning<'a> {
    fn prepare(run: &'a Run<'a>) -> Result<Self> {
        let wrong = |what: String| Err(Error::BadSetting(what));
        if let Some(init) = run.task.init {
            let folder = init.join(ENCODER);
            return wrong(format!(
                "an encoder is fine-tuned from an encoder and not from a checkpoint; if it was tuned, \
                 give `--encoder {}` instead of `--init`",
                folder.display()
            ));
        }
        let name = run.config.encoder.as_str();
        let Some(folder) = Tuned::folder(name)? else {
            return wrong(format!(
                "the encoder `{name}` is no BERT and cannot be fine-tuned; give `--encoder minilm`, or \
                 leave `tune.epochs` at 0"
            ));
        };
        let (tuned, base) = Tuned::open(&folder, run.device)?;
        let sizes = tuned.sizes().clone();
        let (config, learned_from) = (&run.config, run.learn.len());
        let sizes = (sizes, base.name(), config.trainer.seed);
        let description = description::<TunedMatcher>(&run.task.data, sizes, config, learned_from);
        Ok(Self {
            run,
            base,
            tuned,
            description,
        })
    }

    /// The rows of texts that are not to be learned from, `[texts, dim]`.
    fn rows(&self, network: &TunedMatcher, texts: &[&str]) -> Result<Tensor> {
        let rows: Vec<Tensor> = (texts.chunks(BLOCK))
            .map(|block| Ok(network.rows(&self.base, block)?.detach()))
            .collect::<Result<_>>()?;
        Ok(Tensor::cat(&rows, 0).map_err(wherefore::model::Error::from)?)
    }

    /// The relations of a step, sorted: gold, near and random ones.
    fn chosen(&self, batch: &[usize], random: &mut Random) -> Vec<u32> {
        let (count, most) = (self.run.names.len(), self.run.config.tune.negatives);
        if count <= most {
            return (0..count as u32).collect();
        }
        let learn = &self.run.learn;
        let mut chosen: Vec<u32> = (batch.iter())
            .flat_map(|&i| learn.gold[i].iter().copied())
            .collect();
        let mut near: Vec<u32> = learn.near(batch).iter().map(|(_, r, _)| *r).collect();
        near.sort_unstable();
        near.dedup();
        random.shuffle(&mut near);
        chosen.extend(near.iter().take(most / 2));
        while chosen.len() < most {
            chosen.push(random.below(count) as u32);
        }
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

impl TrainingTask for Tuning<'_> {
    type Network = TunedMatcher;
    type ValidationMetrics = Ranked;

    fn description(&self) -> &Description<Sizes> {
        &self.description
    }

    fn first_network(&self) -> Result<TunedMatcher> {
        Ok(TunedMatcher::new(&self.tuned, self.run.device)?)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let config = &self.run.config;
        let most = config.tune.batch_questions;
        even_batches(self.run.learn.len(), (config.trainer.seed, epoch), most)
    }

    fn loss(&self, network: &TunedMatcher, batch: &[usize], random: &mut Random) -> Result<Tensor> {
        let learn = &self.run.learn;
        let chosen = self.chosen(batch, random);
        let asked: Vec<&str> = batch.iter().map(|&i| learn.texts[i].as_str()).collect();
        let names: Vec<&str> = (chosen.iter())
            .map(|&r| self.run.names[r as usize].as_str())
            .collect();
        let gold: Vec<Vec<u32>> = batch.iter().map(|&i| learn.gold[i].clone()).collect();
        let (near, gold) = among(&chosen, learn.near(batch), &gold);
        let asked = network.rows(&self.base, &asked)?;
        let relations = network.rows(&self.base, &names)?;
        Ok(loss(&network.scores(&asked, &relations, &near)?, &gold)?)
    }

    fn validate(&self, network: &TunedMatcher) -> Result<Ranked> {
        let valid = &self.run.valid;
        let names: Vec<&str> = self.run.names.iter().map(String::as_str).collect();
        let relations = self.rows(network, &names)?;
        let all: Vec<usize> = (0..valid.len()).collect();
        let mut sum = Ranked::default();
        for batch in all.chunks(BLOCK) {
            let texts: Vec<&str> = batch.iter().map(|&i| valid.texts[i].as_str()).collect();
            let asked = self.rows(network, &texts)?;
            let scores = network.scores(&asked, &relations, &valid.near(batch))?;
            for (&i, row) in batch.iter().zip(rows(&scores)?) {
                sum.add(&row, &valid.gold[i])?;
            }
        }
        Ok(sum.over(valid.len()))
    }

    fn is_better(&self, new: &Ranked, old: &Ranked) -> bool {
        new.is_better_than(old)
    }

    fn keep(&self, network: &TunedMatcher, epochs: &[Epoch<Ranked>], out: &Path) -> Result<()> {
        let (matcher, description) = (network.matcher()?, kept(&self.description, epochs));
        let description = Description {
            data: description.data,
            training: description.training,
            metrics: description.metrics,
            ..Description::of::<RelationMatcher>(
                matcher.sizes().clone(),
                self.base.name(),
                description.seed,
            )
        };
        Ok(checkpoint::replace(out, |aside| {
            checkpoint::write_into(aside, &description, &matcher)?;
            network.encoder().write(&self.base, &aside.join(ENCODER))
        })?)
    }
}
