//! The settings of a training of the relation retriever.

use serde::{Deserialize, Serialize};
use wherefore::model::optimise::AdamWConfig;
use wherefore::model::relation_pairs;
use wherefore::model::relations::Sizes;

use crate::error::{Error, Result};
use crate::train::config::{Settings, TrainerConfig};

/// Everything that can be set of this training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationTrainConfig {
    /// The settings that every training has.
    #[serde(flatten)]
    pub trainer: TrainerConfig,
    /// The encoder, frozen unless it is tuned.
    pub encoder: String,
    /// Sizes of the network; `dim` follows from the encoder.
    pub sizes: Sizes,
    /// Relations that gold ones are told from in a step, at most.
    pub negatives: usize,
    /// Whether relations near the linked entities have a weight of their own.
    pub near: bool,
    /// How the layers of a BERT learn.
    pub tune: TuneConfig,
    /// The re-ranker that reads question and relation together.
    pub pairs: PairTrainConfig,
}

impl Default for RelationTrainConfig {
    fn default() -> Self {
        Self {
            trainer: TrainerConfig {
                optimiser: AdamWConfig {
                    learning_rate: 2e-3,
                    ..AdamWConfig::default()
                },
                epochs: 12,
                patience: 3,
                batch_questions: 64,
                ..TrainerConfig::default()
            },
            encoder: "static".into(),
            sizes: Sizes::default(),
            negatives: 4096,
            near: true,
            tune: TuneConfig::default(),
            pairs: PairTrainConfig::default(),
        }
    }
}

impl Settings for RelationTrainConfig {
    fn set_encoder(&mut self, encoder: &str) {
        encoder.clone_into(&mut self.encoder);
    }

    fn set_seed(&mut self, seed: u64) {
        self.trainer.seed = seed;
    }
}

impl RelationTrainConfig {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        self.trainer.check()?;
        self.tune.check()?;
        self.pairs.check()?;
        if self.negatives < 2 {
            return Err(Error::BadSetting("`negatives` must be at least 2".into()));
        }
        Ok(())
    }
}

/// How an encoder's layers learn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuneConfig {
    /// How steps are taken.
    pub optimiser: AdamWConfig,
    /// Most passes over the questions; 0 leaves the encoder as it is.
    pub epochs: u32,
    /// Passes without a better network after which the training ends.
    pub patience: u32,
    /// Questions in one step.
    pub batch_questions: usize,
    /// Relations that gold ones are told from in a step, at most.
    pub negatives: usize,
}

impl Default for TuneConfig {
    fn default() -> Self {
        Self {
            optimiser: AdamWConfig {
                learning_rate: 1e-4,
                ..AdamWConfig::default()
            },
            epochs: 0,
            patience: 2,
            batch_questions: 64,
            negatives: 512,
        }
    }
}

impl TuneConfig {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        if self.epochs == 0 {
            return Ok(());
        }
        self.trainer(0).check()?;
        if self.negatives < 2 {
            return Err(Error::BadSetting(
                "`tune.negatives` must be at least 2".into(),
            ));
        }
        Ok(())
    }

    /// The settings of the loop.
    pub(super) fn trainer(&self, seed: u64) -> TrainerConfig {
        TrainerConfig {
            optimiser: self.optimiser.clone(),
            epochs: self.epochs,
            patience: self.patience,
            batch_questions: self.batch_questions,
            seed,
            ..TrainerConfig::default()
        }
    }
}

/// Everything that can be set of the re-ranker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PairTrainConfig {
    /// Sizes of the network; `dim` follows from the encoder.
    pub sizes: relation_pairs::Sizes,
    /// How steps are taken.
    pub optimiser: AdamWConfig,
    /// Most passes over the questions; 0 leaves the re-ranker out.
    pub epochs: u32,
    /// Passes without a better network after which the training ends.
    pub patience: u32,
    /// Questions in one step.
    pub batch_questions: usize,
}

impl Default for PairTrainConfig {
    fn default() -> Self {
        Self {
            sizes: relation_pairs::Sizes::default(),
            optimiser: AdamWConfig {
                learning_rate: 1e-3,
                ..AdamWConfig::default()
            },
            epochs: 6,
            patience: 2,
            batch_questions: 16,
        }
    }
}

impl PairTrainConfig {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        if self.epochs == 0 {
            return Ok(());
        }
        self.trainer(0).check()?;
        if self.sizes.candidates < 2 {
            return Err(Error::BadSetting(
                "`pairs.sizes.candidates` must be at least 2".into(),
            ));
        }
        Ok(())
    }

    /// The settings of the loop.
    pub(super) fn trainer(&self, seed: u64) -> TrainerConfig {
        TrainerConfig {
            optimiser: self.optimiser.clone(),
            epochs: self.epochs,
            patience: self.patience,
            batch_questions: self.batch_questions,
            seed,
            ..TrainerConfig::default()
        }
    }
}
