//! The settings of a training.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wherefore::model::optimise::AdamWConfig;
use wherefore::model::{distance_mlp, pna, qr_gat};
use wherefore::retrieve::NeighbourhoodConfig;

use super::labels::Supervision;
use crate::error::{Error, Result};

/// Settings that a file or `--set` can change.
pub trait Settings: Serialize + DeserializeOwned + Default {
    /// Reads settings from TOML; what is left out has its default, inside tables too.
    fn from_toml(text: &str) -> Result<Self> {
        let bad = |fault: String| Error::BadSetting(format!("the settings are not valid: {fault}"));
        let given: toml::Table =
            (text.parse()).map_err(|e| bad(wherefore::config::toml_fault(text, &e)))?;
        let default = Self::default().to_table()?;
        let read = |given: toml::Table| {
            let mut table = default.clone();
            merge(&mut table, given);
            Self::from_table(table)
        };
        read(given.clone()).map_err(|fault| {
            // serde does not say which of the flattened fields is wrong
            let alone = |(key, value): &(String, toml::Value)| {
                read(toml::Table::from_iter([(key.clone(), value.clone())])).is_err()
            };
            match given.into_iter().find(alone) {
                Some((key, _)) => bad(format!("`{key}`: {fault}")),
                None => bad(fault),
            }
        })
    }

    /// The settings as TOML.
    fn to_table(&self) -> Result<toml::Table> {
        toml::Table::try_from(self)
            .map_err(|e| Error::BadSetting(format!("the settings cannot be written: {e}")))
    }

    /// The settings of a table that has all of them, or what is wrong with it.
    fn from_table(table: toml::Table) -> Result<Self, String> {
        // what no field takes is refused here: serde cannot refuse it beside flattened fields
        let known = Self::default().to_table().map_err(|e| e.to_string())?;
        if let Some(key) = table.keys().find(|key| !known.contains_key(*key)) {
            let known: Vec<String> = known.keys().map(|key| format!("`{key}`")).collect();
            let known = known.join(", ");
            return Err(format!("unknown field `{key}`, expected one of {known}"));
        }
        let wrong = |e: toml::de::Error| e.to_string().trim_end().replace('\n', " ");
        table.try_into().map_err(wrong)
    }

    /// Sets `a.b=value`, as in `sizes.hidden=128`.
    fn set(&mut self, setting: &str, value: &str) -> Result<()> {
        let mut table = self.to_table()?;
        // what is no TOML value is a text
        let value = format!("x = {value}")
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut t| t.remove("x"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        crate::sweep::set(&mut table, setting, &value)?;
        *self = Self::from_table(table)
            .map_err(|fault| Error::BadSetting(format!("`{setting}`: {fault}")))?;
        Ok(())
    }

    /// Names the encoder.
    fn set_encoder(&mut self, encoder: &str);

    /// Gives the seed.
    fn set_seed(&mut self, seed: u64);
}

/// Puts what is given in the place of what is there, table by table.
fn merge(table: &mut toml::Table, given: toml::Table) {
    for (key, value) in given {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// The settings that every training has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainerConfig {
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
    /// The seed.
    pub seed: u64,
}

impl Default for TrainerConfig {
    fn default() -> Self {
        Self {
            optimiser: AdamWConfig::default(),
            epochs: 20,
            patience: 4,
            warm_up: 0.05,
            batch_questions: 16,
            seed: 0,
        }
    }
}

impl TrainerConfig {
    /// Refuses settings with which the loop takes no steps.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::BadSetting(what.to_owned()));
        if self.epochs == 0 || self.patience == 0 {
            return wrong("`epochs` and `patience` must be at least 1");
        }
        if !(0.0..1.0).contains(&self.warm_up) {
            return wrong("`warm_up` must be at least 0 and below 1");
        }
        let rate = self.optimiser.learning_rate;
        if !(rate > 0.0 && rate.is_finite()) {
            return wrong("`optimiser.learning_rate` must be above 0");
        }
        if self.batch_questions == 0 {
            return wrong("`batch_questions` must be at least 1");
        }
        Ok(())
    }
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
        self.trainer.seed = seed;
    }
}

/// Everything that can be set of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "S: Serialize", deserialize = "S: DefaultSizes"))]
pub struct TrainConfig<S = qr_gat::Config> {
    /// The settings that every training has.
    #[serde(flatten)]
    pub trainer: TrainerConfig,
    /// The encoder: `static`, `hashing`, a model folder or an added model.
    pub encoder: String,
    /// Sizes of the network; `dim` follows from the encoder.
    pub sizes: S,
    /// What of the graph a question sees.
    pub neighbourhood: NeighbourhoodConfig,
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
}

impl<S: DefaultSizes> Default for TrainConfig<S> {
    fn default() -> Self {
        Self {
            trainer: TrainerConfig::default(),
            encoder: "static".into(),
            sizes: S::default_sizes(),
            neighbourhood: NeighbourhoodConfig::default(),
            batch_triples: 20_000,
            supervision: Supervision::default(),
            positive_weight: 4.0,
            ks: vec![10, 50, 100],
            valid_questions: 500,
        }
    }
}

impl<S: DefaultSizes> TrainConfig<S> {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        self.sizes.check()?;
        self.neighbourhood.check()?;
        self.trainer.check()?;
        let wrong = |what: &str| Err(Error::BadSetting(what.to_owned()));
        if self.batch_triples == 0 || self.valid_questions == 0 {
            return wrong("`batch_triples` and `valid_questions` must be at least 1");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::RelationTrainConfig;

    #[test]
    fn what_a_file_leaves_out_has_the_default_of_the_training() {
        let text = "epochs = 3\n[optimiser]\nweight_decay = 0.5\n[pairs]\nepochs = 1\n";
        let read = RelationTrainConfig::from_toml(text).unwrap();
        let mut wanted = RelationTrainConfig::default();
        wanted.trainer.epochs = 3;
        wanted.trainer.optimiser.weight_decay = 0.5;
        wanted.pairs.epochs = 1;
        assert_eq!(read, wanted);
        assert_eq!(wanted.trainer.optimiser.learning_rate, 2e-3);
        // sizes that are ours unless the paper's are asked for
        let read = TrainConfig::<qr_gat::Config>::from_toml("sizes.hidden = 16").unwrap();
        assert!(read.sizes.answers && read.sizes.hidden == 16);
        // written as before the trainings shared their settings: all on one level
        let table = wanted.to_table().unwrap();
        assert_eq!(table["epochs"].as_integer(), Some(3));
        assert!(!table.contains_key("trainer"));
    }

    #[test]
    fn settings_that_no_training_has_are_refused() {
        let refused = |text: &str| {
            let error = RelationTrainConfig::from_toml(text).unwrap_err();
            error.to_string()
        };
        assert!(refused("epoch = 3").contains("unknown field `epoch`"));
        assert!(refused("trainer.epochs = 3").contains("unknown field `trainer`"));
        assert!(refused("[pairs]\nwarm_up = 0.1").contains("unknown field `warm_up`"));
        assert!(refused("epochs = \"many\"").contains("epochs"));
        assert!(refused("epochs = ").contains("line 1"));
        let mut config = RelationTrainConfig::default();
        assert!(config.set("epoch", "3").is_err());
        assert!(config.set("pairs.epochs", "3").is_ok());
    }
}
