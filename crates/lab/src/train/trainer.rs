//! The training loop, whatever the network.
//!
//! A [`TrainingTask`] says what a step and a pass are; the loop takes the steps, judges after each pass,
//! keeps the best network, ends after `patience` passes without a better one, and saves every
//! minute and after each pass what a stopped run needs to go on. Every step has random numbers of its
//! own, so that a stopped run ends with the same weights.
//!
//! ```text
//! η(t) = η·t/w                                          t < w        w = `warm_up` · all steps
//!      = η·(f + (1 − f)·½(1 + cos(π·(t − w)/(T − w))))  t ≥ w        T = all steps, at most
//! ```
//!
//! Departures from the papers, which hold for every network that is trained here: the optimiser is
//! AdamW whatever a paper says, with clipped gradients; tensors of one dimension (biases, scales and
//! shifts of norms) do not decay; the rate ends at f = [`FLOOR`] of the highest and not at zero; the
//! best epoch on the validation questions is kept, and `patience` may end the training before T.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wherefore::model::Random;
use wherefore::model::checkpoint::{self, Checkpoint, Checkpointable, Description};
use wherefore::model::optimise::{AdamW, Schedule};
use wherefore::model::tensor::{Device, Tensor};

use super::config::TrainerConfig;
use super::{Epoch, Progress};
use crate::error::{Error, Result};

/// f: the lowest learning rate as a share of the highest. Ours: the last steps still count a little.
const FLOOR: f32 = 0.02;
/// How often a run saves what it needs to go on.
const SAVE_EVERY: Duration = Duration::from_secs(60);
/// The key under which a stopped run's state lies among the training notes.
const STATE: &str = "state";

/// What a checkpoint of `network` is to say of its training before the first step.
pub(super) fn description<N: Checkpointable>(
    data: &Map<String, Value>,
    (sizes, encoder, seed): (N::Sizes, &str, u64),
    config: &impl Serialize,
    learned_from: usize,
) -> Description<N::Sizes> {
    let mut description = Description::of::<N>(sizes, encoder, seed);
    description.data.clone_from(data);
    let notes = &mut description.training;
    notes.insert("config".into(), json!(config));
    notes.insert("learned_from".into(), json!(learned_from));
    description
}

/// What a checkpoint says when the last of `epochs` is kept.
pub(super) fn kept<S: Clone>(
    description: &Description<S>,
    epochs: &[Epoch<impl Serialize>],
) -> Description<S> {
    let mut description = description.clone();
    let valid = epochs.last().map(|epoch| &epoch.valid);
    description.metrics.insert("valid".into(), json!(valid));
    description.training.insert("epochs".into(), json!(epochs));
    description
}

/// The network before the first step: that of the checkpoint `init`, which has the encoder and the
/// shapes that `description` says, or a `new` one.
pub(super) fn first<N: Checkpointable>(
    init: Option<&Path>,
    description: &Description<N::Sizes>,
    device: &Device,
    new: impl FnOnce(N::Sizes, &mut Random, &Device) -> wherefore::model::Result<N>,
) -> Result<N> {
    let Some(init) = init else {
        let mut random = Random::stream(description.seed, 0);
        return Ok(new(description.sizes.clone(), &mut random, device)?);
    };
    let given: Checkpoint<N> = Checkpoint::load(init, device)?;
    let found = &given.description;
    let same_encoder = found.encoder == description.encoder;
    if !same_encoder || N::shapes(&found.sizes) != N::shapes(&description.sizes) {
        return Err(Error::BadSetting(format!(
            "the network in `{}` has other sizes or another encoder",
            init.display()
        )));
    }
    Ok(given.network)
}

/// What a network learns from, and how good it is.
pub(super) trait TrainingTask {
    /// The network.
    type Network: Checkpointable;
    /// How good it is.
    type ValidationMetrics: Clone + Display + Serialize + DeserializeOwned;

    /// What a checkpoint is to say, but for what comes of the training.
    fn description(&self) -> &Description<<Self::Network as Checkpointable>::Sizes>;

    /// The network before the first step.
    fn first_network(&self) -> Result<Self::Network>;

    /// The steps of a pass, from 0: examples in an order of its own.
    fn batches(&self, epoch: u32) -> Vec<Vec<usize>>;

    /// The loss of one step.
    fn loss(&self, network: &Self::Network, batch: &[usize], random: &mut Random)
    -> Result<Tensor>;

    /// How good the network is on the validation questions.
    fn validate(&self, network: &Self::Network) -> Result<Self::ValidationMetrics>;

    /// Whether a network is to be kept instead of another.
    fn is_better(&self, new: &Self::ValidationMetrics, old: &Self::ValidationMetrics) -> bool;

    /// Keeps the best network so far, that of the last of `epochs`, in the folder `out`.
    fn keep(
        &self,
        network: &Self::Network,
        epochs: &[Epoch<Self::ValidationMetrics>],
        out: &Path,
    ) -> Result<()> {
        let description = kept(self.description(), epochs);
        Ok(checkpoint::save(out, &description, network, None)?)
    }
}

/// How the loop runs.
pub(super) struct Trainer<'a> {
    pub(super) config: &'a TrainerConfig,
    pub(super) device: &'a Device,
    /// Where a stopped run is kept.
    pub(super) last: PathBuf,
    /// Where the best network is kept.
    pub(super) out: &'a Path,
}

/// Where a stopped run stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State<J> {
    /// Passes that are done.
    epoch: u32,
    /// Steps of the next one that are done.
    step: usize,
    /// Sum of their losses.
    loss: f64,
    waited: u32,
    epochs: Vec<Epoch<J>>,
}

impl Trainer<'_> {
    /// Runs to the end; all passes, the best of them last marked so.
    pub(super) fn run<L: TrainingTask>(
        &self,
        lesson: &L,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Epoch<L::ValidationMetrics>>> {
        let (mut state, network, mut optimiser) = self.begin(lesson, see)?;
        let mut saved = Instant::now();
        while state.epoch < self.config.epochs && state.waited < self.config.patience {
            let batches = lesson.batches(state.epoch);
            while state.step < batches.len() {
                // every step has its own numbers, so that a stopped run goes on with the same
                let number = optimiser.taken();
                let mut random = Random::stream(self.config.seed, 1 + number);
                let loss = lesson.loss(&network, &batches[state.step], &mut random)?;
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
                    self.save(lesson, &state, &network, &optimiser)?;
                    saved = Instant::now();
                }
            }
            let valid = (lesson.validate(&network))
                .map_err(|e| self.judged_diverged(e, optimiser.taken()))?;
            let best = state.epochs.iter().rfind(|e| e.best);
            let is_best = best.is_none_or(|best| lesson.is_better(&valid, &best.valid));
            state.epochs.push(Epoch {
                epoch: state.epoch + 1,
                loss: (state.loss / state.step.max(1) as f64) as f32,
                valid,
                best: is_best,
            });
            state.waited = if is_best { 0 } else { state.waited + 1 };
            if is_best {
                lesson.keep(&network, &state.epochs, self.out)?;
            }
            (state.epoch, state.step, state.loss) = (state.epoch + 1, 0, 0.0);
            self.save(lesson, &state, &network, &optimiser)?;
            saved = Instant::now();
            let done = &state.epochs[state.epochs.len() - 1];
            see(Progress::Epoch(done.pass()));
        }
        Ok(state.epochs)
    }

    /// Where a stopped run was, or the beginning.
    fn begin<L: TrainingTask>(
        &self,
        lesson: &L,
        see: &mut dyn FnMut(Progress),
    ) -> Result<(State<L::ValidationMetrics>, L::Network, AdamW)> {
        let steps = lesson.batches(0).len() as u64 * u64::from(self.config.epochs);
        let schedule = Schedule {
            warm_up: (steps as f64 * f64::from(self.config.warm_up)) as u64,
            total: steps,
            floor: FLOOR,
        };
        let optimiser = |network: &L::Network| {
            AdamW::new(
                network.parameters(),
                self.config.optimiser.clone(),
                schedule,
            )
        };
        if !checkpoint::exists(&self.last) {
            let network = lesson.first_network()?;
            let optimiser = optimiser(&network)?;
            let state = State {
                epoch: 0,
                step: 0,
                loss: 0.0,
                waited: 0,
                epochs: Vec::new(),
            };
            return Ok((state, network, optimiser));
        }
        let last: Checkpoint<L::Network> = Checkpoint::load(&self.last, self.device)?;
        let mut found = last.description.clone();
        let state = found.training.remove(STATE);
        if found != written_and_read(lesson.description())? {
            return Err(Error::OtherTraining {
                path: self.last.clone(),
            });
        }
        let state = state
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

    /// Saves what a stopped run needs to go on.
    fn save<L: TrainingTask>(
        &self,
        lesson: &L,
        state: &State<L::ValidationMetrics>,
        network: &L::Network,
        optimiser: &AdamW,
    ) -> Result<()> {
        let mut description = lesson.description().clone();
        let state = serde_json::to_value(state).expect("a state is numbers");
        description.training.insert(STATE.into(), state);
        checkpoint::save(&self.last, &description, network, Some(optimiser))?;
        Ok(())
    }

    /// A network whose last step left numbers that cannot be judged.
    fn judged_diverged(&self, error: Error, step: u64) -> Error {
        match error {
            Error::Diverged { what, .. } => Error::Diverged {
                what,
                step,
                kept: self.out.exists().then(|| self.out.to_owned()),
            },
            other => other,
        }
    }

    fn diverged(&self, error: wherefore::model::Error) -> Error {
        match error {
            wherefore::model::Error::Diverged { what, step } => Error::Diverged {
                what,
                step,
                kept: self.out.exists().then(|| self.out.to_owned()),
            },
            other => other.into(),
        }
    }
}

/// `count` examples in an order of their own for each pass, `most` together.
pub(super) fn even_batches(count: usize, of: (u64, u32), most: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..count).collect();
    batches(&all, of, (most, usize::MAX), |_| 1)
}

/// Examples in an order of their own for each pass, as many together as fit: `most` examples, and
/// `room` by their `size`; a larger one is a step of its own.
pub(super) fn batches(
    examples: &[usize],
    (seed, epoch): (u64, u32),
    (most, room): (usize, usize),
    size: impl Fn(usize) -> usize,
) -> Vec<Vec<usize>> {
    let mut order = examples.to_vec();
    Random::stream(seed ^ 0x5eed, u64::from(epoch)).shuffle(&mut order);
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut taken = 0;
    for index in order {
        let more = size(index);
        match batches.last_mut() {
            Some(batch) if batch.len() < most && taken + more <= room => {
                batch.push(index);
                taken += more;
            }
            _ => {
                batches.push(vec![index]);
                taken = more;
            }
        }
    }
    batches
}

/// Whether the first figures are above the others, or equal and the second ones above: figures that
/// were read back may differ in their last digit.
pub(super) fn above(new: [f64; 2], old: [f64; 2]) -> bool {
    let above = |a: f64, b: f64| a > b + 1e-9;
    above(new[0], old[0]) || !above(old[0], new[0]) && above(new[1], old[1])
}

/// The rows of a matrix.
pub(super) fn rows(matrix: &Tensor) -> Result<Vec<Vec<f32>>> {
    Ok(matrix.to_vec2().map_err(wherefore::model::Error::from)?)
}

/// The means of two figures of each question.
pub(super) fn means(looks: &[(f64, f64)]) -> (f64, f64) {
    let count = looks.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| looks.iter().map(of).sum::<f64>() / count;
    (mean(|look| look.0), mean(|look| look.1))
}

/// The description as it comes back from its file: numbers may differ in their last digit.
fn written_and_read<S: Serialize + DeserializeOwned>(
    description: &Description<S>,
) -> Result<Description<S>> {
    let text = serde_json::to_string(description);
    text.and_then(|text| serde_json::from_str(&text))
        .map_err(|e| Error::BadSetting(format!("the settings cannot be written: {e}")))
}
