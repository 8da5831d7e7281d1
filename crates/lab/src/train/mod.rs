//! Training of retrievers from questions and answers alone.
//!
//! [`qr_gat`] cuts out the neighbourhood of every question once, labels its triples, and lets the
//! network learn to tell the positive ones:
//!
//! ```text
//! L = mean over questions of  Σ_e w_e·BCE(s_e, y_e) / Σ_e w_e        w_e = β where y_e, else 1
//! ```
//!
//! β is `positive_weight`; the bias of the network that is kept is lowered by ln β, so that its
//! confidences are those of an unweighted loss. With `answers`, the same sum runs over both ends
//! of each triple: an end is positive if it is an answer and the triple is positive, and does not
//! count if it is an answer and the triple is not. Both sums count alike.
//!
//! After each pass the validation questions are scored by the code that answers. What counts is
//! the mean of triple recall at each of `ks`, and where that is equal, as in small graphs, the share
//! of first candidates that are answers; the best network so far is kept in the checkpoint's folder,
//! and `patience` passes without a better one end the training. Order, dropout and initial weights
//! follow from the seed. All that a stopped run needs to go on lies in `CKPT.training`, which goes
//! when the training has come to its end.

mod config;
mod examples;
mod judge;
mod labels;
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wherefore::graph::Graph;
use wherefore::model::checkpoint::{self, Checkpoint, Description};
use wherefore::model::optimise::{AdamW, Schedule};
use wherefore::model::qr_gat::{Batch, Network, Subgraph, Table, loss};
use wherefore::model::tensor::Device;
use wherefore::model::{Encoder, Random, encode};
use wherefore::retrieve::qr_gat::NEIGHBOURHOOD;
use wherefore::retrieve::{entity_texts_to_vectors, relation_texts_to_vectors};
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::{Error, Result};
use crate::questions::{GoldQuestion, to_line};
use examples::{Example, Examples, Origin};
use judge::Judge;
use targets::targets;

pub use config::TrainConfig;
pub use judge::Judged;
pub use labels::{Labels, Refined};

/// How often a run saves what it needs to go on.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// What is trained on.
pub struct Task<'a> {
    /// The graph; not looked at for questions that bring their own.
    pub graph: &'a dyn Graph,
    /// Questions to learn from.
    pub train: &'a [GoldQuestion],
    /// Questions to judge by.
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
    Epoch(Epoch),
}

/// What came of one pass over the questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Its number, from 1.
    pub epoch: u32,
    /// Mean loss of its steps.
    pub loss: f32,
    /// How good the network is now.
    pub valid: Judged,
    /// Whether it is the best so far.
    pub best: bool,
}

/// What a training came to.
#[derive(Clone, Debug, Serialize)]
pub struct Trained {
    /// The checkpoint's folder.
    pub checkpoint: PathBuf,
    /// Questions that had something to learn from.
    pub questions: usize,
    /// Questions left out: no topic in the graph, or no path to an answer.
    pub left_out: usize,
    /// Validation questions that were judged.
    pub valid: usize,
    /// Every pass.
    pub epochs: Vec<Epoch>,
    /// The best of them.
    pub best: Judged,
}

/// Where a stopped run stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    /// Passes that are done.
    epoch: u32,
    /// Steps of the next one that are done.
    step: usize,
    /// Sum of their losses.
    loss: f64,
    waited: u32,
    epochs: Vec<Epoch>,
}

/// The key under which a stopped run's state lies among the training notes.
const STATE: &str = "state";

/// Trains a QR-GAT.
pub fn qr_gat(
    task: &Task<'_>,
    config: &TrainConfig,
    device: &Device,
    see: &mut dyn FnMut(Progress),
) -> Result<Trained> {
    config.check()?;
    let mut work = task.out.as_os_str().to_owned();
    work.push(".training");
    let work = PathBuf::from(work);
    if task.restart && work.exists() {
        fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    }
    fs::create_dir_all(&work).map_err(Error::io("create", &work))?;
    let encoder = encode::open(&config.encoder)?;
    let run = Run::prepare(task, config, &*encoder, device, &work, see)?;
    let trained = run.train(see)?;
    // what a stopped run would have needed
    fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    Ok(trained)
}

/// A training with everything that does not change while it learns.
struct Run<'a> {
    task: &'a Task<'a>,
    config: TrainConfig,
    device: &'a Device,
    last: PathBuf,
    description: Description,
    examples: Examples,
    /// Examples to learn from.
    learn: Vec<usize>,
    judge: Judge,
    questions: Vec<f32>, // [questions, dim]
    entities: Vec<f32>,  // [labels, dim]
    relations: Vec<f32>, // [relations, dim]
}

impl<'a> Run<'a> {
    fn prepare(
        task: &'a Task<'a>,
        config: &TrainConfig,
        encoder: &dyn Encoder,
        device: &'a Device,
        work: &Path,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let mut config = config.clone();
        config.sizes.dim = encoder.dim();
        let mut valid = task.valid.to_vec();
        if valid.len() > config.valid_questions {
            valid = crate::sweep::sample(&valid, config.valid_questions, config.seed);
        }
        let all = [task.train, &valid].concat();
        let origin = Origin {
            graph: task.graph.identity().unwrap_or_default().to_owned(),
            questions: checksum(&all),
            labels: task.labels.origin(),
            neighbourhood: config.neighbourhood.clone(),
        };
        let total = all.len();
        let examples =
            Examples::prepare(work, &origin, task.graph, &all, &task.labels, &mut |done| {
                see(Progress::Cutting { done, total });
            })?;
        let usable = |range: std::ops::Range<usize>| -> Vec<usize> {
            range.filter(|i| examples.get(*i).has_positives()).collect()
        };
        let learn = usable(0..task.train.len());
        let judged = usable(task.train.len()..total);
        for (which, usable, questions) in [
            ("training", &learn, task.train.len()),
            ("validation", &judged, valid.len()),
        ] {
            if usable.is_empty() {
                return Err(Error::NothingToLearn { which, questions });
            }
        }
        let texts: Vec<&str> = all.iter().map(|q| q.question.as_str()).collect();
        let asked = encoder.encode_queries(&texts)?;
        let total = examples.labels.len();
        let entities = entity_texts_to_vectors(encoder, &examples.labels, &mut |done| {
            see(Progress::Encoding { done, total });
        })?;
        let relations = relation_texts_to_vectors(encoder, &examples.relations)?;
        let mut description =
            Description::qr_gat(config.sizes.clone(), encoder.name(), config.seed);
        description.data.clone_from(&task.data);
        let notes = &mut description.training;
        notes.insert(
            NEIGHBOURHOOD.into(),
            serde_json::to_value(&config.neighbourhood).expect("settings are numbers"),
        );
        notes.insert(
            "config".into(),
            serde_json::to_value(&config).expect("settings are numbers and texts"),
        );
        notes.insert("questions".into(), json!(origin.questions));
        notes.insert("learned_from".into(), json!(learn.len()));
        if let Some(init) = task.init {
            notes.insert("init".into(), json!(checkpoint::read_description(init)?));
        }
        Ok(Self {
            last: work.join("last"),
            judge: Judge::new(judged, config.ks.clone()),
            task,
            config,
            device,
            description,
            examples,
            learn,
            questions: asked.values().to_vec(),
            entities,
            relations,
        })
    }

    fn train(&self, see: &mut dyn FnMut(Progress)) -> Result<Trained> {
        let seed = self.config.seed;
        let (mut state, network, mut optimiser) = self.begin(see)?;
        let mut saved = Instant::now();
        while state.epoch < self.config.epochs && state.waited < self.config.patience {
            let batches = self.batches(state.epoch);
            while state.step < batches.len() {
                // every step has its own numbers, so that a stopped run goes on with the same
                let number = optimiser.taken();
                let mut random = Random::stream(seed, 1 + number);
                let loss = self.loss(&network, &batches[state.step], &mut random)?;
                let taken = optimiser.step(&loss).map_err(|e| self.diverged(e))?;
                state.step += 1;
                state.loss += f64::from(taken.loss);
                see(Progress::Step {
                    epoch: state.epoch + 1,
                    done: state.step,
                    total: batches.len(),
                    loss: (state.loss / state.step as f64) as f32,
                });
                if saved.elapsed() > SAVE_EVERY {
                    self.save(&state, &network, &optimiser)?;
                    saved = Instant::now();
                }
            }
            let valid = self.judge.look(
                &network,
                &self.examples,
                [&self.questions, &self.entities, &self.relations],
            )?;
            let best = state.epochs.iter().rfind(|e| e.best);
            let is_best = best.is_none_or(|best| valid.is_better_than(&best.valid));
            let epoch = Epoch {
                epoch: state.epoch + 1,
                loss: (state.loss / state.step.max(1) as f64) as f32,
                valid,
                best: is_best,
            };
            state.epochs.push(epoch.clone());
            state.waited = if is_best { 0 } else { state.waited + 1 };
            if is_best {
                self.keep(&epoch, &state, &network)?;
            }
            (state.epoch, state.step, state.loss) = (state.epoch + 1, 0, 0.0);
            self.save(&state, &network, &optimiser)?;
            saved = Instant::now();
            see(Progress::Epoch(epoch));
        }
        let best = state.epochs.iter().rfind(|e| e.best);
        let best = best
            .expect("the first pass is the best so far")
            .valid
            .clone();
        Ok(Trained {
            checkpoint: self.task.out.to_owned(),
            questions: self.learn.len(),
            left_out: self.task.train.len() - self.learn.len(),
            valid: self.judge.len(),
            epochs: state.epochs,
            best,
        })
    }

    /// Where a stopped run was, or the beginning.
    fn begin(&self, see: &mut dyn FnMut(Progress)) -> Result<(State, Network, AdamW)> {
        let steps = self.batches(0).len() as u64 * u64::from(self.config.epochs);
        let schedule = Schedule {
            warm_up: (steps as f64 * f64::from(self.config.warm_up)) as u64,
            total: steps,
            floor: 0.02,
        };
        let optimiser = |network: &Network| {
            AdamW::new(
                network.parameters(),
                self.config.optimiser.clone(),
                schedule.clone(),
            )
        };
        if !checkpoint::exists(&self.last) {
            let network = self.first_network()?;
            let optimiser = optimiser(&network)?;
            return Ok((State::default(), network, optimiser));
        }
        let last: Checkpoint = Checkpoint::load(&self.last, self.device)?;
        let mut found = last.description.clone();
        let state = found.training.remove(STATE);
        if found != written_and_read(&self.description)? {
            return Err(Error::OtherTraining {
                path: self.last.clone(),
            });
        }
        let state: State = state
            .and_then(|state| serde_json::from_value(state).ok())
            .ok_or_else(|| Error::OtherTraining {
                path: self.last.clone(),
            })?;
        let mut optimiser = optimiser(&last.network)?;
        last.resume(&mut optimiser)?;
        see(Progress::Resumed {
            steps: optimiser.taken(),
        });
        Ok((state, last.network, optimiser))
    }

    /// The network before the first step.
    fn first_network(&self) -> Result<Network> {
        let sizes = &self.config.sizes;
        let Some(init) = self.task.init else {
            let mut random = Random::stream(self.config.seed, 0);
            return Ok(Network::new(sizes.clone(), &mut random, self.device)?);
        };
        let given: Checkpoint = Checkpoint::load(init, self.device)?;
        let found = &given.description;
        let same_encoder = found.encoder == self.description.encoder;
        if !same_encoder || Network::shapes(&found.sizes) != Network::shapes(sizes) {
            return Err(Error::BadSetting(format!(
                "the network in `{}` has other sizes or another encoder",
                init.display()
            )));
        }
        // the bias as it is while positive triples count more
        let given = given.network;
        Ok(given.with_lower_bias(-self.config.positive_weight.ln())?)
    }

    /// Saves what a stopped run needs to go on.
    fn save(&self, state: &State, network: &Network, optimiser: &AdamW) -> Result<()> {
        let mut description = self.description.clone();
        let state = serde_json::to_value(state).expect("a state is numbers");
        description.training.insert(STATE.into(), state);
        checkpoint::save(&self.last, &description, network, Some(optimiser))?;
        Ok(())
    }

    /// Keeps the best network so far.
    fn keep(&self, epoch: &Epoch, state: &State, network: &Network) -> Result<()> {
        let mut description = self.description.clone();
        description
            .metrics
            .insert("valid".into(), json!(epoch.valid));
        description
            .training
            .insert("epochs".into(), json!(state.epochs));
        let shifted = network.with_lower_bias(self.config.positive_weight.ln())?;
        checkpoint::save(self.task.out, &description, &shifted, None)?;
        Ok(())
    }

    fn diverged(&self, error: wherefore::model::Error) -> Error {
        match error {
            wherefore::model::Error::Diverged { what, step } => Error::Diverged {
                what,
                step,
                kept: self.task.out.exists().then(|| self.task.out.to_owned()),
            },
            other => other.into(),
        }
    }

    /// The steps of a pass: examples in an order of its own, as many together as fit.
    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let mut order = self.learn.clone();
        Random::stream(self.config.seed ^ 0x5eed, u64::from(epoch)).shuffle(&mut order);
        let mut batches: Vec<Vec<usize>> = Vec::new();
        let mut triples = 0;
        for index in order {
            let more = self.examples.get(index).triples.len();
            match batches.last_mut() {
                Some(batch)
                    if batch.len() < self.config.batch_questions
                        && triples + more <= self.config.batch_triples =>
                {
                    batch.push(index);
                    triples += more;
                }
                _ => {
                    batches.push(vec![index]);
                    triples = more;
                }
            }
        }
        batches
    }

    fn loss(
        &self,
        network: &Network,
        batch: &[usize],
        random: &mut Random,
    ) -> Result<wherefore::model::tensor::Tensor> {
        let examples: Vec<Example<'_>> = batch.iter().map(|i| self.examples.get(*i)).collect();
        let topics: Vec<Vec<bool>> = examples.iter().map(topic_flags).collect();
        let dim = self.config.sizes.dim;
        let subgraphs: Vec<Subgraph<'_>> = (examples.iter().zip(&topics))
            .map(|(example, topics)| subgraph(example, topics, &self.questions, dim))
            .collect();
        let batch = Batch::new(
            &self.config.sizes,
            &subgraphs,
            &Table::new(&self.entities, dim)?,
            &Table::new(&self.relations, dim)?,
            self.device,
        )?;
        let logits = network.forward(&batch, Some(random))?;
        let (labels, weights) = targets(
            &examples,
            self.config.sizes.outputs(),
            self.config.positive_weight,
        );
        Ok(loss(&logits, &labels, weights)?)
    }
}

/// The description as it comes back from its file: numbers may differ in their last digit.
fn written_and_read(description: &Description) -> Result<Description> {
    let text = serde_json::to_string(description);
    text.and_then(|text| serde_json::from_str(&text))
        .map_err(|e| Error::BadSetting(format!("the settings cannot be written: {e}")))
}

/// An example as the network takes it.
fn subgraph<'e>(
    example: &Example<'e>,
    topics: &'e [bool],
    questions: &'e [f32],
    dim: usize,
) -> Subgraph<'e> {
    Subgraph {
        question: &questions[example.question * dim..][..dim],
        entities: example.entities,
        topics,
        relations: example.relations,
        triples: example.triples,
    }
}

fn topic_flags(example: &Example<'_>) -> Vec<bool> {
    (0..example.entities.len())
        .map(|i| i < example.topics)
        .collect()
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
