//! Training of networks that score the triples of a neighbourhood (QR-GAT, the distance scorer), or
//! its entities (PNA):
//!
//! ```text
//! L = mean over questions of  Σ_e w_e·BCE(s_e, y_e) / Σ_e w_e        w_e = β where y_e, else 1
//! ```
//!
//! Departures from QSRAG, whose loss is the binary cross-entropy over all triples: it is a weighted
//! mean over a question's triples and then a mean over the questions of a step, so that large
//! neighbourhoods do not outweigh small ones; β is 4 unless it is set (`positive_weight = 1` is the
//! unweighted loss); and what `answers` adds. Optimiser and schedule are those of `trainer.rs`.
//!
//! β is `positive_weight`; the bias of the network that is kept is lowered by ln β, so that its
//! confidences are those of an unweighted loss. With `answers`, the same sum runs over both ends
//! of each triple: an end is positive if it is an answer and the triple is positive, and does not
//! count if it is an answer and the triple is not. Both sums count alike. Where entities are scored,
//! the sums run over these: one is positive if it lies at the end of a positive triple.
//!
//! After each pass the validation questions are scored by the code that answers. What counts is
//! the mean of triple recall at each of `ks`, and where that is equal, as in small graphs, the share
//! of first candidates that are answers.

use std::fs;
use std::path::Path;

use serde_json::json;
use wherefore::model::checkpoint::{self, Description};
use wherefore::model::qr_gat::{Subgraph, Table, loss};
use wherefore::model::scoring::TripleNetwork;
use wherefore::model::tensor::{Device, Tensor};
use wherefore::model::{Encoder, Random, distance_mlp, encode, pna, qr_gat};
use wherefore::retrieve::network::NEIGHBOURHOOD;
use wherefore::retrieve::{entity_texts_to_vectors, relation_texts_to_vectors};

use super::config::{DefaultSizes, TrainConfig};
use super::examples::Example;
use super::targets::{entity_targets, targets};
use super::trainer::{Trainer, TrainingTask, batches, description, first, kept};
use super::validation::{Judge, ValidationMetrics};
use super::{Dataset, Epoch, Progress, Task, Trained, work_folder};
use crate::error::{Error, Result};

/// A network that is trained here.
pub trait TrainableNetwork: TripleNetwork<Sizes: DefaultSizes> {
    /// What each row of its logits is about.
    const SCORES: Scores;
}

/// What a network scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// Triples, and their ends as answers.
    Triples,
    /// Entities.
    Entities,
}

impl TrainableNetwork for qr_gat::Network {
    const SCORES: Scores = Scores::Triples;
}

impl TrainableNetwork for distance_mlp::Network {
    const SCORES: Scores = Scores::Triples;
}

impl TrainableNetwork for pna::Network {
    const SCORES: Scores = Scores::Entities;
}

/// Trains a network that scores neighbourhoods.
pub fn network<N: TrainableNetwork>(
    task: &Task<'_>,
    config: &TrainConfig<N::Sizes>,
    device: &Device,
    see: &mut dyn FnMut(Progress),
) -> Result<Trained> {
    config.check()?;
    let work = work_folder::<N>(task)?;
    let encoder = encode::open(&config.encoder)?;
    let run = Run::<N>::prepare(task, config, &*encoder, device, &work, see)?;
    let trainer = Trainer {
        config: &config.trainer,
        device,
        last: work.join("last"),
        out: task.out,
    };
    let epochs = trainer.run(&run, see)?;
    // what a stopped run would have needed
    fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    let counts = [run.material.learn.len(), run.validate.len()];
    Ok(Trained::new(task, counts, epochs))
}

/// A training with everything that does not change while it learns.
struct Run<'a, N: TrainableNetwork> {
    task: &'a Task<'a>,
    config: TrainConfig<N::Sizes>,
    device: &'a Device,
    description: Description<N::Sizes>,
    material: Dataset,
    validate: Judge,
    questions: Vec<f32>, // [questions, dim]
    entities: Vec<f32>,  // [labels, dim]
    relations: Vec<f32>, // [relations, dim]
}

impl<'a, N: TrainableNetwork> Run<'a, N> {
    fn prepare(
        task: &'a Task<'a>,
        config: &TrainConfig<N::Sizes>,
        encoder: &dyn Encoder,
        device: &'a Device,
        work: &Path,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let mut config = config.clone();
        config.sizes = N::for_dim(config.sizes, encoder.dim());
        let seed = config.trainer.seed;
        let chosen = (&config.neighbourhood, config.valid_questions, seed);
        let usable = |example: &Example<'_>| example.has_positives();
        let material = Dataset::prepare(task, chosen, work, usable, see)?;
        let examples = &material.examples;
        let asked = encoder.encode_queries(&material.texts())?;
        let total = examples.labels.len();
        let entities = entity_texts_to_vectors(encoder, &examples.labels, &mut |done| {
            see(Progress::Encoding { done, total });
        })?;
        let relations = relation_texts_to_vectors(encoder, &examples.relations)?;
        let sizes = (config.sizes.clone(), encoder.name(), seed);
        let mut description = description::<N>(&task.data, sizes, &config, material.learn.len());
        let notes = &mut description.training;
        notes.insert(NEIGHBOURHOOD.into(), json!(config.neighbourhood));
        notes.insert("questions".into(), json!(material.checksum));
        task.note_init(notes)?;
        Ok(Self {
            validate: Judge::new(material.judged.clone(), config.ks.clone()),
            task,
            config,
            device,
            description,
            material,
            questions: asked.values().to_vec(),
            entities,
            relations,
        })
    }
}

impl<N: TrainableNetwork> TrainingTask for Run<'_, N> {
    type Network = N;
    type ValidationMetrics = ValidationMetrics;

    fn description(&self) -> &Description<N::Sizes> {
        &self.description
    }

    fn first_network(&self) -> Result<N> {
        let network = first(self.task.init, &self.description, self.device, N::untrained)?;
        match self.task.init {
            // the bias as it is while positive triples count more
            Some(_) => Ok(network.with_lower_bias(-self.config.positive_weight.ln())?),
            None => Ok(network),
        }
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        batches(
            &self.material.learn,
            (self.config.trainer.seed, epoch),
            (
                self.config.trainer.batch_questions,
                self.config.batch_triples,
            ),
            |index| self.material.examples.get(index).triples.len(),
        )
    }

    fn loss(&self, network: &N, batch: &[usize], random: &mut Random) -> Result<Tensor> {
        let examples: Vec<Example<'_>> = batch
            .iter()
            .map(|i| self.material.examples.get(*i))
            .collect();
        let topics: Vec<Vec<bool>> = examples.iter().map(Example::topic_flags).collect();
        let dim = N::dim(&self.config.sizes);
        let subgraphs: Vec<Subgraph<'_>> = (examples.iter().zip(&topics))
            .map(|(example, topics)| example.subgraph(topics, &self.questions, dim))
            .collect();
        let (entities, relations) = (
            Table::new(&self.entities, dim)?,
            Table::new(&self.relations, dim)?,
        );
        let logits = network.logits(
            &subgraphs,
            [&entities, &relations],
            Some(random),
            self.device,
        )?;
        let outputs = logits.dims()[1];
        let weight = self.config.positive_weight;
        let (labels, weights) = match N::SCORES {
            Scores::Triples => targets(&examples, outputs, weight),
            Scores::Entities => entity_targets(&examples, outputs, weight),
        };
        Ok(loss(&logits, &labels, weights)?)
    }

    fn validate(&self, network: &N) -> Result<ValidationMetrics> {
        self.validate.look(
            network,
            &self.material.examples,
            [&self.questions, &self.entities, &self.relations],
        )
    }

    fn is_better(&self, new: &ValidationMetrics, old: &ValidationMetrics) -> bool {
        new.is_better_than(old)
    }

    fn keep(&self, network: &N, epochs: &[Epoch], out: &Path) -> Result<()> {
        let description = kept(&self.description, epochs);
        let shifted = network.with_lower_bias(self.config.positive_weight.ln())?;
        Ok(checkpoint::save(out, &description, &shifted, None)?)
    }
}
