//! The settings of a training.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wherefore::model::optimise::AdamWConfig;
use wherefore::model::{distance_mlp, pna, qr_gat};
use wherefore::retrieve::NeighbourhoodConfig;

use super::labels::Supervision;
use super::trainer::check_schedule;
use crate::error::{Error, Result};

/// Settings that a file or `--set` can change.
pub trait Settings: Serialize + DeserializeOwned {
    /// Reads settings from TOML; what is left out has its default.
    fn from_toml(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|e| {
            let fault = wherefore::config::toml_fault(text, &e);
            Error::BadSetting(format!("the settings do not parse: {fault}"))
        })
    }

    /// Sets `a.b=value`, as in `sizes.hidden=128`.
    fn set(&mut self, setting: &str, value: &str) -> Result<()> {
        let mut table = toml::Table::try_from(&*self)
            .map_err(|e| Error::BadSetting(format!("the settings cannot be written: {e}")))?;
        // what is no TOML value is a text
        let value = format!("x = {value}")
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut t| t.remove("x"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        crate::sweep::set(&mut table, setting, &value)?;
        *self = table
            .try_into()
            .map_err(|e| Error::BadSetting(format!("`{setting}`: {}", e.message())))?;
        Ok(())
    }

    /// Names the encoder.
    fn set_encoder(&mut self, encoder: &str);

    /// Gives the seed.
    fn set_seed(&mut self, seed: u64);
}

/// Sizes of a network that can be trained.
pub trait DefaultSizes: Clone + PartialEq + Serialize + DeserializeOwned {
    /// The sizes that are taken unless it is said otherwise.
    fn default_sizes() -> Self;

    /// Refuses sizes of which no network can be made.
    fn check(&self) -> Result<()>;
}

impl DefaultSizes for qr_gat::Config {
    fn default_sizes() -> Self {
        Self {
            steps: true,
            answers: true,
            matching: true,
            ..Self::default()
        }
    }

    fn check(&self) -> Result<()> {
        Ok(self.check()?)
    }
}

impl DefaultSizes for distance_mlp::Config {
    fn default_sizes() -> Self {
        Self {
            answers: true,
            matching: true,
            ..Self::default()
        }
    }

    fn check(&self) -> Result<()> {
        Ok(self.check()?)
    }
}

impl DefaultSizes for pna::Config {
    fn default_sizes() -> Self {
        Self {
            answers: true,
            ..Self::default()
        }
    }

    fn check(&self) -> Result<()> {
        Ok(self.check()?)
    }
}

impl<S: DefaultSizes> Settings for TrainConfig<S> {
    fn set_encoder(&mut self, encoder: &str) {
        encoder.clone_into(&mut self.encoder);
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }
}

/// Everything that can be set of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    bound(serialize = "S: Serialize", deserialize = "S: DefaultSizes")
)]
pub struct TrainConfig<S = qr_gat::Config> {
    /// The encoder: `static`, `hashing`, a model folder or an added model.
    pub encoder: String,
    /// Sizes of the network; `dim` follows from the encoder.
    pub sizes: S,
    /// What of the graph a question sees.
    pub neighbourhood: NeighbourhoodConfig,
    /// How steps are taken.
    pub optimiser: AdamWConfig,
    /// Most passes over the questions.
    pub epochs: u32,
    /// Passes without a better network after which the training ends.
    pub patience: u32,
    /// Share of all steps in which the learning rate rises.
    pub warm_up: f32,
    /// Questions in one step, at most.
    pub batch_questions: usize,
    /// Triples in one step, at most; a larger question is a step of its own.
    pub batch_triples: usize,
    /// How triples are labelled where no file does.
    pub supervision: Supervision,
    /// β: how many times a positive triple counts. 1 is the published loss; 4 is ours.
    pub positive_weight: f32,
    /// The k at which triple recall decides which network is best.
    pub ks: Vec<usize>,
    /// Validation questions looked at after each pass, at most, drawn by the seed.
    pub valid_questions: usize,
    /// The seed.
    pub seed: u64,
}

impl<S: DefaultSizes> Default for TrainConfig<S> {
    fn default() -> Self {
        Self {
            encoder: "static".into(),
            sizes: S::default_sizes(),
            neighbourhood: NeighbourhoodConfig::default(),
            optimiser: AdamWConfig::default(),
            epochs: 20,
            patience: 4,
            warm_up: 0.05,
            batch_questions: 16,
            batch_triples: 20_000,
            supervision: Supervision::default(),
            positive_weight: 4.0,
            ks: vec![10, 50, 100],
            valid_questions: 500,
            seed: 0,
        }
    }
}

impl<S: DefaultSizes> TrainConfig<S> {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        self.sizes.check()?;
        self.neighbourhood.check()?;
        check_schedule((self.epochs, self.patience), self.warm_up, &self.optimiser)?;
        let wrong = |what: &str| Err(Error::BadSetting(what.to_owned()));
        if self.batch_questions == 0 || self.batch_triples == 0 || self.valid_questions == 0 {
            return wrong(
                "`batch_questions`, `batch_triples` and `valid_questions` must be at least 1",
            );
        }
        if !(1.0..=1e4).contains(&self.positive_weight) {
            return wrong("`positive_weight` must be from 1 to 10000");
        }
        if self.ks.is_empty() || self.ks.contains(&0) {
            return wrong("`ks` must name at least one k, and each must be at least 1");
        }
        Ok(())
    }
}
