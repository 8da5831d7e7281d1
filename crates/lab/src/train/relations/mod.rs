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
//! to be fine-tuned, its layers learn in the place of tables (`tuning.rs`). Then the
//! re-ranker of the first candidates is trained (`pairs.rs`).

mod config;
mod dataset;
mod pairs;
mod tuning;

use std::sync::Arc;

use serde::Serialize;
use wherefore::logic::aspects::ENCODER;
use wherefore::model::checkpoint::{self, Checkpoint, Description};
use wherefore::model::relations::{RelationMatcher, Sizes, loss};
use wherefore::model::tensor::{Device, Tensor};
use wherefore::model::{Random, encode};

use super::trainer::{Trainer, TrainingTask, even_batches, first, rows};
use super::{Epoch, Progress, Task, Trained, work_folder};
use crate::error::{Error, Result};
use dataset::{Run, among, picked};

pub use config::{PairTrainConfig, RelationTrainConfig, TuneConfig};
pub use dataset::{Ranked, gold_relations};
pub use pairs::RankedPairs;

/// What a training came to.
#[derive(Clone, Debug, Serialize)]
pub struct TrainedRelations {
    /// The bi-encoder.
    #[serde(flatten)]
    pub matcher: Trained<Ranked>,
    /// Every pass of the re-ranker; none where it was left out.
    pub pair_epochs: Vec<Epoch<RankedPairs>>,
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
                config: &config.trainer,
                device,
                last: work.join("last"),
                out: task.out,
            };
            trainer.run(&run, see)?
        }
        _ => {
            let epochs = tuning::tuned(&run, &work, see)?;
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
            pairs::pairs(&run, &matcher.network, &work, see)?
        }
    };
    std::fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    Ok(TrainedRelations {
        matcher: Trained::new(task, [run.learn.len(), run.valid.len()], epochs),
        pair_epochs,
    })
}

impl TrainingTask for Run<'_> {
    type Network = RelationMatcher;
    type ValidationMetrics = Ranked;

    fn description(&self) -> &Description<Sizes> {
        &self.description
    }

    fn first_network(&self) -> Result<RelationMatcher> {
        let new = RelationMatcher::new;
        first(self.task.init, &self.description, self.device, new)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let config = &self.config.trainer;
        even_batches(
            self.learn.len(),
            (config.seed, epoch),
            config.batch_questions,
        )
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
        for batch in all.chunks(self.config.trainer.batch_questions) {
            let asked = network.questions(&self.valid.featured(batch))?.detach();
            let scores = network.scores(&asked, &relations, &self.valid.near(batch))?;
            for (&i, row) in batch.iter().zip(rows(&scores)?) {
                sum.add(&row, &self.valid.gold[i])?;
            }
        }
        Ok(sum.over(self.valid.len()))
    }

    fn is_better(&self, new: &Ranked, old: &Ranked) -> bool {
        new.is_better_than(old)
    }
}

#[cfg(test)]
mod tests;
