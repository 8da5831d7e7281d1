//! The settings of a training of GNN2R.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use wherefore::model::Random;
use wherefore::model::gnn2r::Config;
use wherefore::retrieve::NeighbourhoodConfig;
use wherefore::retrieve::gnn2r::Answering;

use crate::error::{Error, Result};
use crate::questions::GoldQuestion;
use crate::train::config::{Settings, TrainerConfig};

/// Everything that can be set of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gnn2rTrainConfig {
    /// The settings that every training has.
    #[serde(flatten)]
    pub trainer: TrainerConfig,
    /// The encoder of tokens, and of sentences: `static`, `hashing`, a model folder or an added
    /// model.
    pub encoder: String,
    /// Triples in one step, at most; a larger question is a step of its own.
    pub batch_triples: usize,
    /// ε: how much nearer than others answers are to be.
    pub margin: f32,
    /// Pairs of an answer and another entity for a question, at most, drawn by the seed.
    pub max_pairs: usize,
    /// Validation questions looked at after each pass, at most, drawn by the seed.
    pub valid_questions: usize,
    /// What is left out.
    pub ablations: BTreeSet<Ablation>,
    /// Sizes of the network; `dim` follows from the encoder.
    pub sizes: Config,
    /// What of the graph a question sees.
    pub neighbourhood: NeighbourhoodConfig,
    /// How the checkpoint will answer.
    pub answering: Answering,
    /// What the validation questions may choose in its place.
    pub grid: Grid,
    /// The second step.
    pub sentences: SentenceTraining,
    /// What is done to the training questions, to see how much that hurts.
    pub robustness: Robustness,
}

/// A part that is left out (Table 6 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ablation {
    /// What an entity hears replaces its state.
    NoGate,
    /// All messages count alike.
    NoLayerwiseAttention,
    /// Sentences are compared by the encoder as it is.
    NoFineTuning,
    /// Only shortest ways between topics and candidates.
    Fast,
}

/// Values among which the validation questions choose, every one of a list with every one of the
/// other. What [`Answering`] says stays where no other pair answers better, and where a list is
/// empty it stays whatever is better: with `nearnesses` empty, `answering.nearness` is 0 as published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grid {
    /// Of `answering.threshold`.
    pub thresholds: Vec<f32>,
    /// Of `answering.nearness`.
    pub nearnesses: Vec<f32>,
}

impl Default for Grid {
    /// Ours: from what the paper sets (1.05 to 1.2 and none) to far beyond it.
    fn default() -> Self {
        Self {
            thresholds: vec![1.0, 1.05, 1.1, 1.2, 1.4, 1.7, 2.0, 3.0, 5.0],
            nearnesses: vec![0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        }
    }
}

/// How the sentence encoder learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SentenceTraining {
    /// Most passes over the questions.
    pub epochs: u32,
    /// Passes without a better encoder after which the training ends.
    pub patience: u32,
    /// ε': how much more like the question the right sentence is to be.
    pub margin: f32,
    /// Which of the sentences with the highest vote are right.
    pub positives: Positives,
    /// Candidates whose sentences are learned from, beside the answers.
    pub candidates: usize,
    /// Wrong sentences for a question in one pass, at most, drawn by the seed.
    pub negatives: usize,
    /// Questions in one step, at most.
    pub batch_questions: usize,
    /// Sentences in one step, at most.
    pub batch_sentences: usize,
    /// The highest step width; 0.001 for a reader on top, 0.00002 for a transformer, if nothing is
    /// said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f32>,
    /// Share of a weight that each step of width 1 takes away.
    pub weight_decay: f32,
    /// Numbers in a state of the reader on top of an encoder that has no layers to learn.
    pub hidden: usize,
}

/// Which of the sentences with the highest vote are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positives {
    /// Those with the fewest mentions, as published; longer ones are wrong.
    Shortest,
    /// All, each by how like the question it has become; longer ones are not wrong.
    #[default]
    Likeliest,
}

/// Training questions that are taken away or spoilt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Robustness {
    /// Share of the training questions that is taken away.
    pub removed: f32,
    /// Share of the training questions whose words are shuffled.
    pub shuffled: f32,
}

impl Default for Gnn2rTrainConfig {
    fn default() -> Self {
        Self {
            trainer: TrainerConfig {
                epochs: 30,
                patience: 6,
                ..TrainerConfig::default()
            },
            encoder: "static".into(),
            batch_triples: 20_000,
            // the paper's on WebQSP, PQ-3H and PQL (0.5 on the others); as many pairs as its authors' runs
            margin: 1.0,
            max_pairs: 50_000,
            valid_questions: 500,
            ablations: BTreeSet::new(),
            sizes: Config::default(),
            neighbourhood: NeighbourhoodConfig::default(),
            answering: Answering::default(),
            grid: Grid::default(),
            sentences: SentenceTraining::default(),
            robustness: Robustness::default(),
        }
    }
}

impl Default for SentenceTraining {
    fn default() -> Self {
        Self {
            epochs: 20,
            patience: 4,
            margin: 0.2,
            positives: Positives::default(),
            candidates: 20,
            negatives: 32,
            batch_questions: 16,
            batch_sentences: 600,
            learning_rate: None,
            weight_decay: 0.001,
            hidden: 128,
        }
    }
}

impl Settings for Gnn2rTrainConfig {
    fn set_encoder(&mut self, encoder: &str) {
        encoder.clone_into(&mut self.encoder);
    }

    fn set_seed(&mut self, seed: u64) {
        self.trainer.seed = seed;
    }
}

impl Gnn2rTrainConfig {
    /// The same with what follows from other settings set, and what the ablations leave out left out.
    pub(super) fn ablated(&self) -> Self {
        let mut config = self.clone();
        // what is farther by the margin was told apart
        config.answering.reach.get_or_insert(self.margin);
        for ablation in &self.ablations {
            match ablation {
                Ablation::NoGate => config.sizes.gate = false,
                Ablation::NoLayerwiseAttention => config.sizes.layerwise = false,
                Ablation::NoFineTuning => config.sentences.epochs = 0,
                Ablation::Fast => config.answering.trails.shortest_only = true,
            }
        }
        config
    }

    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        self.sizes.check()?;
        self.neighbourhood.check()?;
        self.answering.check()?;
        self.trainer.check()?;
        let wrong = |what: &str| Err(Error::BadSetting(what.to_owned()));
        if self.sentences.patience == 0 {
            return wrong("`sentences.patience` must be at least 1");
        }
        let sentences = &self.sentences;
        let counts = [
            self.batch_triples,
            self.valid_questions,
            self.max_pairs,
            sentences.batch_questions,
            sentences.batch_sentences,
            sentences.negatives,
            sentences.candidates,
            sentences.hidden,
        ];
        if counts.contains(&0) {
            return wrong(
                "`batch_questions`, `batch_triples`, `valid_questions`, `max_pairs`, `negatives`, \
                 `candidates`, `batch_sentences` and `hidden` must be at least 1",
            );
        }
        let positive = |x: f32| x > 0.0 && x.is_finite();
        if !sentences.learning_rate.is_none_or(positive) {
            return wrong("`learning_rate` must be above 0");
        }
        for threshold in &self.grid.thresholds {
            if !(*threshold >= 1.0 && threshold.is_finite()) {
                return wrong("`grid.thresholds` must be at least 1");
            }
        }
        for nearness in &self.grid.nearnesses {
            if !(*nearness >= 0.0 && nearness.is_finite()) {
                return wrong("`grid.nearnesses` must be at least 0");
            }
        }
        if !(self.margin >= 0.0 && sentences.margin >= 0.0) {
            return wrong("`margin` must be at least 0");
        }
        let share = 0.0..1.0;
        if !share.contains(&self.robustness.removed)
            || !(0.0..=1.0).contains(&self.robustness.shuffled)
        {
            return wrong("`robustness.removed` and `robustness.shuffled` are shares below 1");
        }
        Ok(())
    }
}

impl Robustness {
    /// The training questions after it; which ones are hit is drawn by the seed.
    pub(super) fn applied(&self, questions: &[GoldQuestion], seed: u64) -> Vec<GoldQuestion> {
        let count = questions.len() as f32;
        let left = (count * (1.0 - self.removed)).round() as usize;
        let mut kept = match self.removed > 0.0 {
            true => crate::sweep::sample(questions, left.max(1), seed),
            false => questions.to_vec(),
        };
        let hit = (kept.len() as f32 * self.shuffled).round() as usize;
        let mut random = Random::stream(seed ^ 0x0b5e, 0);
        let mut order: Vec<usize> = (0..kept.len()).collect();
        random.shuffle(&mut order);
        for &i in &order[..hit] {
            let mut words: Vec<&str> = kept[i].question.split_whitespace().collect();
            random.shuffle(&mut words);
            kept[i].question = words.join(" ");
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ablations_and_settings_go_by_their_names() {
        let mut config = Gnn2rTrainConfig::default();
        config.set("ablations", r#"["no-gate", "fast"]"#).unwrap();
        config.set("sentences.margin", "0.05").unwrap();
        config.set("answering.trails.max_length", "3").unwrap();
        let ablated = config.ablated();
        assert!(!ablated.sizes.gate && ablated.sizes.layerwise);
        assert!(ablated.answering.trails.shortest_only);
        assert_eq!(ablated.sentences.epochs, 20);
        assert_eq!(ablated.answering.reach, Some(1.0));
        config.set("ablations", r#"["no-fine-tuning"]"#).unwrap();
        assert_eq!(config.ablated().sentences.epochs, 0);
        assert!(config.set("ablations", r#"["no-graph"]"#).is_err());
        assert!(config.check().is_ok());
        config.set("grid.nearnesses", "[]").unwrap();
        config.set("answering.reach", "1000").unwrap();
        assert!(config.check().is_ok());
        config.set("grid.thresholds", "[0.9]").unwrap();
        assert!(config.check().is_err());
        config.set("grid.thresholds", "[]").unwrap();
        config.set("answering.threshold", "0.5").unwrap();
        assert!(config.check().is_err());
    }

    #[test]
    fn questions_are_removed_and_shuffled_by_share() {
        let ask = |i: usize| GoldQuestion {
            id: i.to_string(),
            question: "a b c d e f g h".into(),
            ..GoldQuestion::default()
        };
        let all: Vec<GoldQuestion> = (0..40).map(ask).collect();
        let spoilt = Robustness {
            removed: 0.75,
            shuffled: 0.5,
        };
        let kept = spoilt.applied(&all, 3);
        assert_eq!(kept.len(), 10);
        let shuffled = kept.iter().filter(|q| q.question != all[0].question);
        assert_eq!(shuffled.count(), 5);
        assert_eq!(kept, spoilt.applied(&all, 3));
        assert_eq!(Robustness::default().applied(&all, 3), all);
    }
}
