//! Training of the relation re-ranker: which of the bi-encoder's first relations a form uses.
//!
//! ```text
//! L = −mean over questions of  Σ_{r ∈ gold} log softmax_r(s) / |gold|     over its candidates
//! ```
//!
//! The candidates of a training question are the bi-encoder's first ones; gold relations that are
//! missing take the place of the last. The bi-encoder's own scores are no part of the loss: on
//! questions that it has learned it is nearly always right, and nothing would be left to learn.
//! After each pass μ is chosen on the validation questions, from 0 on.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wherefore::logic::aspects::{PAIRS, token_words};
use wherefore::model::Random;
use wherefore::model::checkpoint::Description;
use wherefore::model::relation_pairs::{PairScorer, Sizes, Words};
use wherefore::model::relations::{RelationMatcher, loss};
use wherefore::model::tensor::Tensor;

use super::dataset::{Asked, Run, finite, found};
use crate::error::Result;
use crate::train::trainer::{Trainer, TrainingTask, description, even_batches, first, rows};
use crate::train::{Epoch, Progress};

/// What μ is chosen from.
const MIXES: [f32; 8] = [0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0];

/// How well relations are ranked with the re-ranker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankedPairs {
    /// Mean share of a question's gold relations that come first.
    pub recall_at_1: f64,
    /// Among the first five.
    pub recall_at_5: f64,
    /// Among the first ten.
    pub recall_at_10: f64,
    /// μ.
    pub mix: f32,
}

impl fmt::Display for RankedPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "re-ranked relations recall@1 {:.3}, recall@5 {:.3}, recall@10 {:.3} with a weight of {}",
            self.recall_at_1, self.recall_at_5, self.recall_at_10, self.mix
        )
    }
}

/// Trains the re-ranker of a bi-encoder, into a folder of its checkpoint.
pub(super) fn pairs(
    run: &Run<'_>,
    matcher: &RelationMatcher,
    work: &Path,
    see: &mut dyn FnMut(Progress),
) -> Result<Vec<Epoch<RankedPairs>>> {
    let lesson = Pairs::prepare(run, matcher)?;
    let config = run.config.pairs.trainer(run.config.trainer.seed);
    let out = run.task.out.join(PAIRS);
    let trainer = Trainer {
        config: &config,
        device: run.device,
        last: work.join(PAIRS),
        out: &out,
    };
    trainer.run(&lesson, see)
}

/// Questions with the bi-encoder's candidates.
struct Candidates {
    words: Words,
    /// Relations with their scores, as many for each question.
    ranked: Vec<Vec<(u32, f32)>>,
    /// Places of the gold ones among them, and how many there are in all.
    gold: Vec<(Vec<u32>, usize)>,
}

struct Pairs<'a> {
    run: &'a Run<'a>,
    description: Description<Sizes>,
    relations: Words,
    learn: Candidates,
    valid: Candidates,
}

impl<'a> Pairs<'a> {
    fn prepare(run: &'a Run<'a>, matcher: &RelationMatcher) -> Result<Self> {
        let encoder = &run.encoder;
        let names: Vec<&str> = run.names.iter().map(String::as_str).collect();
        let relations = token_words(&**encoder, &names)?;
        let mut sizes = run.config.pairs.sizes.clone();
        sizes.dim = encoder.dim();
        sizes.candidates = sizes.candidates.min(names.len());
        let candidates = |asked: &Asked, learns: bool| -> Result<Candidates> {
            let names: Vec<&str> = asked.texts.iter().map(String::as_str).collect();
            let mut ranked = run.ranked(matcher, asked, sizes.candidates)?;
            let mut gold = Vec::with_capacity(ranked.len());
            for (ranked, wanted) in ranked.iter_mut().zip(&asked.gold) {
                if learns {
                    let missing: Vec<u32> = (wanted.iter().copied())
                        .filter(|r| ranked.iter().all(|(other, _)| other != r))
                        .collect();
                    for (place, relation) in ranked.iter_mut().rev().zip(missing) {
                        *place = (relation, f32::NEG_INFINITY);
                    }
                }
                let places = (0u32..).zip(ranked.iter());
                let found = places
                    .filter(|(_, (r, _))| wanted.contains(r))
                    .map(|(i, _)| i);
                gold.push((found.collect(), wanted.len()));
            }
            Ok(Candidates {
                words: token_words(&**encoder, &names)?,
                ranked,
                gold,
            })
        };
        let (learn, valid) = (
            candidates(&run.learn, true)?,
            candidates(&run.valid, false)?,
        );
        let sizes = (sizes, encoder.name(), run.config.trainer.seed);
        let config = &run.config.pairs;
        let learned_from = run.learn.len();
        let description = description::<PairScorer>(&run.task.data, sizes, config, learned_from);
        Ok(Self {
            run,
            description,
            relations,
            learn,
            valid,
        })
    }

    fn scores(&self, network: &PairScorer, of: &Candidates, batch: &[usize]) -> Result<Tensor> {
        let pairs: Vec<Vec<u32>> = (batch.iter())
            .map(|&i| of.ranked[i].iter().map(|(r, _)| *r).collect())
            .collect();
        Ok(network.scores(&of.words, batch, &self.relations, &pairs)?)
    }
}

impl TrainingTask for Pairs<'_> {
    type Network = PairScorer;
    type ValidationMetrics = RankedPairs;

    fn description(&self) -> &Description<Sizes> {
        &self.description
    }

    fn first_network(&self) -> Result<PairScorer> {
        first(None, &self.description, self.run.device, PairScorer::new)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let config = &self.run.config;
        let most = config.pairs.batch_questions;
        even_batches(self.run.learn.len(), (config.trainer.seed, epoch), most)
    }

    fn loss(&self, network: &PairScorer, batch: &[usize], _: &mut Random) -> Result<Tensor> {
        let gold: Vec<Vec<u32>> = batch
            .iter()
            .map(|&i| self.learn.gold[i].0.clone())
            .collect();
        Ok(loss(&self.scores(network, &self.learn, batch)?, &gold)?)
    }

    fn validate(&self, network: &PairScorer) -> Result<RankedPairs> {
        let all: Vec<usize> = (0..self.run.valid.len()).collect();
        let mut sums = MIXES.map(|mix| RankedPairs {
            mix,
            ..RankedPairs::default()
        });
        for batch in all.chunks(self.run.config.pairs.batch_questions) {
            let scores = self.scores(network, &self.valid, batch)?;
            for (&i, row) in batch.iter().zip(rows(&scores)?) {
                finite(&row)?;
                let ranked = &self.valid.ranked[i];
                let (gold, total) = &self.valid.gold[i];
                for sum in &mut sums {
                    let mixed: Vec<f32> = (ranked.iter().zip(&row))
                        .map(|((_, first), more)| first + sum.mix * more)
                        .collect();
                    let share = |k: usize| found(&mixed, gold, k) as f64 / *total as f64;
                    sum.recall_at_1 += share(1) / all.len() as f64;
                    sum.recall_at_5 += share(5) / all.len() as f64;
                    sum.recall_at_10 += share(10) / all.len() as f64;
                }
            }
        }
        let [mut best, rest @ ..] = sums;
        for other in rest {
            if self.is_better(&other, &best) {
                best = other;
            }
        }
        network.set_mix(best.mix)?;
        Ok(best)
    }

    fn is_better(&self, new: &RankedPairs, old: &RankedPairs) -> bool {
        let all = |r: &RankedPairs| r.recall_at_1 + r.recall_at_5 + r.recall_at_10;
        all(new) > all(old)
    }
}
