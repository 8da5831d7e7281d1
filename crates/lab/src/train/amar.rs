//! Training of AMAR's network: which form a question is, around a frozen language model.
//!
//! ```text
//! L = mean over the form's tokens of −log p(token | prompt, tokens before it)
//! ```
//!
//! The prompts are made once, before the first step, and kept beside the checkpoint until the
//! training ends. Forms are the benchmark's own, or follow from gold paths and kinds
//! ([`known_form`]). After each pass the validation questions are judged: the share whose form is
//! written letter by letter by always taking the likeliest token decides, then the loss.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wherefore::model::Random;
use wherefore::model::amar::{self, Asking, Base, Config, Network, Prepared};
use wherefore::model::checkpoint::{Checkpoint, Checkpointable, Description};
use wherefore::model::optimise::AdamWConfig;
use wherefore::model::tensor::{Device, Tensor};
use wherefore::retrieve::amar::{PROMPTING, Prompter, Prompting, target};

use super::config::{Settings, TrainerConfig};
use super::trainer::{Trainer, TrainingTask, description, even_batches};
use super::{Progress, Task, Trained, checksum, work_folder};
use crate::error::{Error, Result};
use crate::forms::known_form;
use crate::questions::GoldQuestion;
use crate::written::asked;

/// Questions whose prompts are made before it is told.
const BLOCK: usize = 256;
/// The file of prompts beside a stopped run.
const PROMPTS: &str = "prompts.json";

/// Everything that can be set of this training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AmarTrainConfig {
    /// The settings that every training has.
    #[serde(flatten)]
    pub trainer: TrainerConfig,
    /// The language model's GGUF file.
    pub llm: PathBuf,
    /// What prompts are made of.
    pub prompting: Prompting,
    /// Sizes of the network; `base` follows from the file.
    pub sizes: Config,
    /// Whether the gold topics are the entities of a prompt, and not those that are linked.
    pub gold_entities: bool,
    /// Tokens in one step, at most, all texts as long as the longest.
    pub batch_tokens: usize,
    /// Most tokens of a form; questions with longer ones are left out.
    pub max_tokens: usize,
    /// Validation questions looked at after each pass, at most, drawn by the seed.
    pub valid_questions: usize,
}

impl Default for AmarTrainConfig {
    fn default() -> Self {
        Self {
            trainer: TrainerConfig {
                // the paper's 5e-5 is for 7B parameters: a small model needs larger steps
                optimiser: AdamWConfig {
                    learning_rate: 1e-3,
                    weight_decay: 0.0,
                    ..AdamWConfig::default()
                },
                epochs: 30,
                patience: 8,
                warm_up: 0.03,
                ..TrainerConfig::default()
            },
            llm: PathBuf::new(),
            prompting: Prompting::default(),
            sizes: Config::default(),
            gold_entities: false,
            batch_tokens: 16_384,
            max_tokens: 256,
            valid_questions: 500,
        }
    }
}

impl Settings for AmarTrainConfig {
    fn set_encoder(&mut self, encoder: &str) {
        encoder.clone_into(&mut self.prompting.encoder);
    }

    fn set_seed(&mut self, seed: u64) {
        self.trainer.seed = seed;
    }
}

impl AmarTrainConfig {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        self.trainer.check()?;
        let wrong = |what: &str| Err(Error::BadSetting(what.to_owned()));
        if self.llm.as_os_str().is_empty() {
            return wrong("no language model is named; `--llm FILE.gguf` does");
        }
        if self.valid_questions == 0 || self.max_tokens == 0 {
            return wrong("`valid_questions` and `max_tokens` must be at least 1");
        }
        Ok(())
    }
}

/// How well forms are written, and what the pass cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FormMetrics {
    /// Share of validation questions whose form is written exactly.
    pub exact: f64,
    /// Mean loss of their tokens.
    pub loss: f64,
    /// Seconds of the pass's steps.
    pub seconds: f64,
    /// Largest memory of the process so far, in megabytes; 0 where it is not known.
    pub memory_mb: f64,
}

impl fmt::Display for FormMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "exact match {:.3}, loss {:.4}; {:.1} s, {:.0} MB",
            self.exact, self.loss, self.seconds, self.memory_mb
        )
    }
}

/// What a training came to.
#[derive(Clone, Debug, Serialize)]
pub struct TrainedAmar {
    /// The network.
    #[serde(flatten)]
    pub network: Trained<FormMetrics>,
    /// Mean tokens of a prompt with its form.
    pub tokens: f64,
    /// Numbers that were learned.
    pub parameters: usize,
}

/// Trains AMAR's network.
pub fn amar(
    task: &Task<'_>,
    config: &AmarTrainConfig,
    device: &Device,
    see: &mut dyn FnMut(Progress),
) -> Result<TrainedAmar> {
    config.check()?;
    let work = work_folder::<Network>(task)?;
    let run = Run::prepare(task, config, device, &work, see)?;
    let trainer = Trainer {
        config: &config.trainer,
        device,
        last: work.join("last"),
        out: task.out,
    };
    run.begun.set(Instant::now());
    let epochs = trainer.run(&run, see)?;
    fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    let sizes = &run.description.sizes;
    let tokens: usize = (0..run.learn.len())
        .map(|i| run.learn.tokens(i, sizes))
        .sum();
    let shapes = Network::shapes(sizes);
    Ok(TrainedAmar {
        network: Trained::new(task, [run.learn.len(), run.valid.len()], epochs),
        tokens: tokens as f64 / run.learn.len() as f64,
        parameters: shapes.iter().map(|s| s.1.iter().product::<usize>()).sum(),
    })
}

/// Questions with a known form: what they are written from, and the form.
#[derive(Default, Serialize, Deserialize)]
struct Prompts {
    /// What tells them from those of other questions, graphs and settings.
    origin: String,
    learn: Vec<(Asking, String)>,
    valid: Vec<(Asking, String)>,
}

impl Prompts {
    /// Those that `work` keeps, or new ones.
    fn prepare(
        task: &Task<'_>,
        valid: &[GoldQuestion],
        config: &AmarTrainConfig,
        work: &Path,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let origin = json!({
            "graph": task.graph.identity(),
            "train": checksum(task.train),
            "valid": checksum(valid),
            "prompting": config.prompting,
            "gold_entities": config.gold_entities,
        })
        .to_string();
        let path = work.join(PROMPTS);
        if let Ok(text) = fs::read_to_string(&path)
            && let Ok(kept) = serde_json::from_str::<Self>(&text)
            && kept.origin == origin
        {
            return Ok(kept);
        }
        let prompter = Prompter::open(&config.prompting, None)?;
        let total = task.train.len() + valid.len();
        let mut done = 0;
        let mut made = |questions: &[GoldQuestion]| -> Result<Vec<(Asking, String)>> {
            let mut all = Vec::new();
            for block in questions.chunks(BLOCK) {
                let some: Vec<Option<(Asking, String)>> = block
                    .par_iter()
                    .map(|question| {
                        let Some(form) = known_form(question) else {
                            return Ok(None);
                        };
                        let asked = asked(question, config.gold_entities, task.graph)?;
                        if asked.check().is_err() {
                            return Ok(None);
                        }
                        let (asking, _) = prompter.asking(&asked, task.graph)?;
                        Ok(Some((asking, target(&form, task.graph)?)))
                    })
                    .collect::<Result<_>>()?;
                all.extend(some.into_iter().flatten());
                done += block.len();
                see(Progress::Exploring { done, total });
            }
            Ok(all)
        };
        let prompts = Self {
            learn: made(task.train)?,
            valid: made(valid)?,
            origin,
        };
        let text = serde_json::to_string(&prompts).expect("prompts are texts");
        fs::write(&path, text).map_err(Error::io("write", &path))?;
        Ok(prompts)
    }
}

struct Run<'a> {
    task: &'a Task<'a>,
    config: AmarTrainConfig,
    device: &'a Device,
    base: Base,
    description: Description<Config>,
    learn: Prepared,
    valid: Prepared,
    /// When the pass began.
    begun: Cell<Instant>,
    /// Tokens of the longest prompt with its form.
    longest: usize,
}

impl<'a> Run<'a> {
    fn prepare(
        task: &'a Task<'a>,
        config: &AmarTrainConfig,
        device: &'a Device,
        work: &Path,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let mut config = config.clone();
        let base = Base::open(&config.llm, device)?;
        config.sizes.base = base.model().clone();
        let seed = config.trainer.seed;
        let asked = task.valid_sample(config.valid_questions, seed);
        let prompts = Prompts::prepare(task, &asked, &config, work, see)?;
        let prepared = |which: &'static str, all: Vec<(Asking, String)>| -> Result<Prepared> {
            let questions = all.len();
            let mut kept: Vec<(Asking, String)> = Vec::with_capacity(questions);
            for (asking, form) in all {
                if base.tokens(&form)?.len() < config.max_tokens {
                    kept.push((asking, form));
                }
            }
            if kept.is_empty() {
                return Err(Error::BadSetting(format!(
                    "no {which} question has a known form, gold path or kind"
                )));
            }
            let (asking, forms): (Vec<Asking>, Vec<String>) = kept.into_iter().unzip();
            let context = config.prompting.context_tokens;
            Ok(Prepared::new(
                &base,
                &config.sizes,
                &asking,
                &forms,
                context,
            )?)
        };
        let learn = prepared("training", prompts.learn)?;
        let valid = prepared("validation", prompts.valid)?;
        let llm = config.llm.display().to_string();
        let sizes = (config.sizes.clone(), llm.as_str(), seed);
        let mut description = description::<Network>(&task.data, sizes, &config, learn.len());
        let notes = &mut description.training;
        notes.insert(PROMPTING.into(), json!(config.prompting));
        task.note_init(notes)?;
        let lengths = (0..learn.len()).map(|i| learn.tokens(i, &config.sizes));
        let longest = lengths.max().unwrap_or(1);
        Ok(Self {
            task,
            config,
            device,
            base,
            description,
            learn,
            valid,
            begun: Cell::new(Instant::now()),
            longest,
        })
    }
}

impl TrainingTask for Run<'_> {
    type Network = Network;
    type ValidationMetrics = FormMetrics;

    fn description(&self) -> &Description<Config> {
        &self.description
    }

    fn first_network(&self) -> Result<Network> {
        let sizes = &self.config.sizes;
        if let Some(init) = self.task.init {
            let given: Checkpoint<Network> = Checkpoint::load(init, self.device)?;
            self.base.check(&given.description.sizes.base, init)?;
            if given.description.sizes != *sizes {
                return Err(Error::BadSetting(format!(
                    "the network in `{}` has other sizes",
                    init.display()
                )));
            }
            return Ok(given.network);
        }
        let mut random = Random::stream(self.config.trainer.seed, 0);
        let spread = self.base.spread()?;
        Ok(Network::new(
            sizes.clone(),
            spread,
            &mut random,
            self.device,
        )?)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let config = &self.config.trainer;
        let fit = (self.config.batch_tokens / self.longest).max(1);
        let most = config.batch_questions.min(fit);
        even_batches(self.learn.len(), (config.seed, epoch), most)
    }

    fn loss(&self, network: &Network, batch: &[usize], random: &mut Random) -> Result<Tensor> {
        Ok(amar::loss(&self.base, network, &self.learn, batch, random)?)
    }

    fn validate(&self, network: &Network) -> Result<FormMetrics> {
        let seconds = self.begun.get().elapsed().as_secs_f64();
        let all: Vec<usize> = (0..self.valid.len()).collect();
        let mut judged = FormMetrics {
            seconds,
            memory_mb: memory_mb(),
            ..FormMetrics::default()
        };
        for batch in all.chunks(self.config.trainer.batch_questions) {
            for one in amar::judge(&self.base, network, &self.valid, batch)? {
                judged.exact += f64::from(u8::from(one.exact));
                judged.loss += f64::from(one.loss);
            }
        }
        judged.exact /= all.len() as f64;
        judged.loss /= all.len() as f64;
        self.begun.set(Instant::now());
        Ok(judged)
    }

    fn is_better(&self, new: &FormMetrics, old: &FormMetrics) -> bool {
        (new.exact, -new.loss) > (old.exact, -old.loss)
    }
}

/// The process's largest memory so far, as Linux tells it.
fn memory_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}
