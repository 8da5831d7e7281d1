//! Training of retrievers from questions and answers alone.
//!
//! [`network`] trains QR-GAT, the distance scorer and PNA, [`relation_plan`] the path writer,
//! [`gnn2r`] both steps of GNN2R, [`relations`] AMAR's relation retriever, and [`amar()`] the network
//! that writes forms; [`reading()`] fits the weights of the reader. All networks go through one loop, `trainer.rs`. The neighbourhood of every
//! question is cut out once (`examples.rs`). Order, dropout and initial weights follow from the seed.
//! All that a stopped run needs to go on lies in `CKPT.training`, which goes when the training has
//! come to its end.

mod amar;
mod config;
mod examples;
mod gnn2r;
mod labels;
pub(crate) mod reading;
mod relation_plan;
mod relations;
mod targets;
mod trainer;
mod triples;
mod validation;

use std::fmt::Display;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wherefore::graph::Graph;
use wherefore::model::checkpoint::{self, Checkpointable};
use wherefore::retrieve::NeighbourhoodConfig;
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::{Error, Result};
use crate::questions::{GoldQuestion, to_line};
use examples::{Example, Examples, Origin};

pub use amar::{AmarTrainConfig, FormMetrics, TrainedAmar, amar};
pub use config::{DefaultSizes, Settings, TrainConfig, TrainerConfig};
pub use gnn2r::{
    Ablation, Gnn2rTrainConfig, Grid, Nearness, Robustness, SentenceTraining, Spoken, TrainedGnn2r,
    gnn2r,
};
pub use labels::{Labels, Refined, Supervision};
pub use reading::{ReadRound, ReadTrainConfig, ReadingDataset, reading};
pub use relation_plan::{PlanMetrics, RelationPlanTrainConfig, relation_plan};
pub use relations::{
    PairTrainConfig, Ranked, RankedPairs, RelationTrainConfig, TrainedRelations, TuneConfig,
    gold_relations, relations,
};
pub use triples::{Scores, TrainableNetwork, network};
pub use validation::ValidationMetrics;

/// What is trained on.
pub struct Task<'a> {
    /// The graph; not looked at for questions that bring their own.
    pub graph: &'a dyn Graph,
    /// Questions to learn from.
    pub train: &'a [GoldQuestion],
    /// Questions to validate by.
    pub valid: &'a [GoldQuestion],
    /// Where labels come from.
    pub labels: Labels,
    /// What the checkpoint is to say of the data.
    pub data: Map<String, Value>,
    /// The checkpoint's folder.
    pub out: &'a Path,
    /// A checkpoint whose weights are the first ones.
    pub init: Option<&'a Path>,
    /// Begin anew even if a stopped run could go on.
    pub restart: bool,
}

/// How far the training has come.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Neighbourhoods are cut out.
    Cutting {
        /// Questions done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// What a network that was just trained makes of the questions is looked at.
    Exploring {
        /// Questions done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// Labels become vectors.
    Encoding {
        /// Labels done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// A stopped run goes on.
    Resumed {
        /// Steps that it had taken.
        steps: u64,
    },
    /// A step was taken.
    Step {
        /// The pass, from 1.
        epoch: u32,
        /// Steps of the pass that are done.
        done: usize,
        /// Of so many.
        total: usize,
        /// Mean loss of the pass so far.
        loss: f32,
    },
    /// A pass was judged.
    Epoch(EpochSummary),
}

/// A pass in words.
#[derive(Clone, Debug)]
pub struct EpochSummary {
    /// Its number, from 1.
    pub epoch: u32,
    /// Mean loss of its steps.
    pub loss: f32,
    /// How good the network is now.
    pub valid: String,
    /// Whether it is the best so far.
    pub best: bool,
}

/// What came of one pass over the questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch<J = ValidationMetrics> {
    /// Its number, from 1.
    pub epoch: u32,
    /// Mean loss of its steps.
    pub loss: f32,
    /// How good the network is now.
    pub valid: J,
    /// Whether it is the best so far.
    pub best: bool,
}

impl<J: Display> Epoch<J> {
    fn pass(&self) -> EpochSummary {
        EpochSummary {
            epoch: self.epoch,
            loss: self.loss,
            valid: self.valid.to_string(),
            best: self.best,
        }
    }
}

/// What a training came to.
#[derive(Clone, Debug, Serialize)]
pub struct Trained<J = ValidationMetrics> {
    /// The checkpoint's folder.
    pub checkpoint: PathBuf,
    /// Questions that had something to learn from.
    pub questions: usize,
    /// Questions left out: no topic in the graph, no path to an answer, or no form that is known.
    pub left_out: usize,
    /// Validation questions that were judged.
    pub valid: usize,
    /// Every pass.
    pub epochs: Vec<Epoch<J>>,
    /// The best of them.
    pub best: J,
}

impl<J: Clone> Trained<J> {
    fn new(task: &Task<'_>, [learned, valid]: [usize; 2], epochs: Vec<Epoch<J>>) -> Self {
        let best = epochs.iter().rfind(|e| e.best);
        let best = best.expect("the first pass is the best so far");
        Self {
            checkpoint: task.out.to_owned(),
            questions: learned,
            left_out: task.train.len() - learned,
            valid,
            best: best.valid.clone(),
            epochs,
        }
    }
}

impl Task<'_> {
    /// The validation questions, at most `count` of them, drawn by the seed.
    fn valid_sample(&self, count: usize, seed: u64) -> Vec<GoldQuestion> {
        crate::sweep::sample(self.valid, count, seed)
    }

    /// Says in the notes of a checkpoint whose weights its first ones are.
    fn note_init(&self, notes: &mut Map<String, Value>) -> Result<()> {
        if let Some(init) = self.init {
            notes.insert("init".into(), json!(checkpoint::read_description(init)?));
        }
        Ok(())
    }
}

/// Refuses a training whose `usable` questions, of so many, are none.
fn check_usable(which: &'static str, usable: usize, questions: usize) -> Result<()> {
    if usable == 0 {
        return Err(Error::NothingToLearn { which, questions });
    }
    Ok(())
}

/// Whether the training of the checkpoint in this folder was stopped before its end.
pub fn is_unfinished(checkpoint: &Path) -> bool {
    beside(checkpoint).exists()
}

fn beside(checkpoint: &Path) -> PathBuf {
    // `ckpt/` is `ckpt`
    let mut work = checkpoint.components().as_path().as_os_str().to_owned();
    work.push(".training");
    PathBuf::from(work)
}

/// The folder beside a checkpoint in which a training keeps what it needs to go on. Refused if
/// the checkpoint would replace something else.
fn work_folder<N: Checkpointable>(task: &Task<'_>) -> Result<PathBuf> {
    checkpoint::check_free(task.out, N::METHOD)?;
    let work = beside(task.out);
    if task.restart && work.exists() {
        fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    }
    fs::create_dir_all(&work).map_err(Error::io("create", &work))?;
    Ok(work)
}

/// The questions of a training with their neighbourhoods.
struct Dataset {
    /// Those to learn from, then those to validate by.
    questions: Vec<GoldQuestion>,
    examples: Examples,
    /// Examples to learn from.
    learn: Vec<usize>,
    /// Examples to validate by.
    judged: Vec<usize>,
    /// What tells these questions from others.
    checksum: String,
}

impl Dataset {
    /// Cuts the neighbourhoods out, or opens those that `work` keeps. `usable` tells whether an
    /// example has something to learn from.
    fn prepare(
        task: &Task<'_>,
        (neighbourhood, valid_questions, seed): (&NeighbourhoodConfig, usize, u64),
        work: &Path,
        usable: impl Fn(&Example<'_>) -> bool,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let valid = task.valid_sample(valid_questions, seed);
        let all = [task.train, &valid].concat();
        let origin = Origin {
            graph: task.graph.identity().unwrap_or_default().to_owned(),
            questions: checksum(&all),
            labels: task.labels.origin(),
            neighbourhood: neighbourhood.clone(),
        };
        let total = all.len();
        let examples =
            Examples::prepare(work, &origin, task.graph, &all, &task.labels, &mut |done| {
                see(Progress::Cutting { done, total });
            })?;
        let usable = |range: Range<usize>| -> Vec<usize> {
            range.filter(|i| usable(&examples.get(*i))).collect()
        };
        let learn = usable(0..task.train.len());
        let judged = usable(task.train.len()..total);
        check_usable("training", learn.len(), task.train.len())?;
        check_usable("validation", judged.len(), valid.len())?;
        Ok(Self {
            questions: all,
            examples,
            learn,
            judged,
            checksum: origin.questions,
        })
    }

    /// The words of all questions.
    fn texts(&self) -> Vec<&str> {
        self.questions.iter().map(|q| q.question.as_str()).collect()
    }
}

/// What tells these questions from others.
fn checksum(questions: &[GoldQuestion]) -> String {
    let mut hash = Xxh3Default::new();
    for question in questions {
        hash.update(to_line(question).as_bytes());
        hash.update(b"\n");
    }
    format!("{:016x}", hash.digest())
}
