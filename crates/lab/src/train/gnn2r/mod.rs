//! Training of GNN2R, both steps in one: the network of step I, then the sentence encoder of step II
//! with what the network finds.
//!
//! After each pass of step I the validation questions are read by the code that answers; what counts is
//! the mean of the share of questions whose nearest entity is an answer and the share of answers
//! among the candidates. Step II is in `sentences.rs`.

mod config;
mod sentences;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wherefore::model::checkpoint::Description;
use wherefore::model::encode::TokenStates;
use wherefore::model::gnn2r::{Batch, Config, Network, Pair, Reader, Shape, margin_loss};
use wherefore::model::tensor::{Device, Tensor};
use wherefore::model::{Encoder, Random, encode};
use wherefore::retrieve::gnn2r::ANSWERING;
use wherefore::retrieve::network::NEIGHBOURHOOD;
use wherefore::retrieve::relation_texts_to_states;

use super::examples::{Example, HEAD, TAIL};
use super::trainer::{Trainer, TrainingTask, above, batches, description, first, means};
use super::{Dataset, Epoch, Progress, Task, Trained, work_folder};
use crate::error::{Error, Result};

pub use config::{Ablation, Gnn2rTrainConfig, Grid, Robustness, SentenceTraining};
pub use sentences::Spoken;

/// What a training of both steps came to.
#[derive(Clone, Debug, Serialize)]
pub struct TrainedGnn2r {
    /// The network of step I.
    #[serde(flatten)]
    pub network: Trained<Nearness>,
    /// Every pass of step II; none where nothing was fine-tuned.
    pub sentence_epochs: Vec<Epoch<Spoken>>,
    /// How well both steps answer the validation questions.
    pub answers: Spoken,
}

/// How near answers are on the validation questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Nearness {
    /// The mean of the other two: what decides.
    pub score: f64,
    /// Share of questions whose nearest entity is an answer.
    pub hit_at_1: f64,
    /// Share of answers among the candidates.
    pub candidate_recall: f64,
}

impl fmt::Display for Nearness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            hit_at_1,
            candidate_recall,
            ..
        } = self;
        write!(
            f,
            "nearest Hit@1 {hit_at_1:.3}, answers among candidates {candidate_recall:.3}"
        )
    }
}

/// Trains both steps of GNN2R.
pub fn gnn2r(
    task: &Task<'_>,
    config: &Gnn2rTrainConfig,
    device: &Device,
    see: &mut dyn FnMut(Progress),
) -> Result<TrainedGnn2r> {
    let config = config.ablated();
    config.check()?;
    let train = config.robustness.applied(task.train, config.trainer.seed);
    let task = &Task {
        train: &train,
        labels: task.labels.clone(),
        data: task.data.clone(),
        ..*task
    };
    let work = work_folder::<Network>(task)?;
    let encoder = encode::open(&config.encoder)?;
    let run = Run::prepare(task, &config, &*encoder, device, &work, see)?;
    let trainer = Trainer {
        config: &config.trainer,
        device,
        last: work.join("last"),
        out: task.out,
    };
    let epochs = trainer.run(&run, see)?;
    let (sentence_epochs, answers) =
        sentences::train(task, &config, &run.material, device, &work, see)?;
    // what a stopped run would have needed
    fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    let counts = [run.material.learn.len(), run.material.judged.len()];
    Ok(TrainedGnn2r {
        network: Trained::new(task, counts, epochs),
        sentence_epochs,
        answers,
    })
}

/// Step I with everything that does not change while it learns.
struct Run<'a> {
    task: &'a Task<'a>,
    config: Gnn2rTrainConfig,
    device: &'a Device,
    description: Description<Config>,
    material: Dataset,
    questions: TokenStates,
    relations: TokenStates,
}

impl<'a> Run<'a> {
    fn prepare(
        task: &'a Task<'a>,
        config: &Gnn2rTrainConfig,
        encoder: &dyn Encoder,
        device: &'a Device,
        work: &std::path::Path,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let mut config = config.clone();
        config.sizes.dim = encoder.dim();
        let seed = config.trainer.seed;
        let chosen = (&config.neighbourhood, config.valid_questions, seed);
        let usable = |example: &Example<'_>| {
            let answers = answer_flags(example);
            answers.contains(&true) && answers.contains(&false)
        };
        let material = Dataset::prepare(task, chosen, work, usable, see)?;
        let questions = encoder.token_states(&material.texts())?;
        let relations = relation_texts_to_states(encoder, &material.examples.relations)?;
        let sizes = (config.sizes.clone(), encoder.name(), seed);
        let learned_from = material.learn.len();
        let mut description = description::<Network>(&task.data, sizes, &config, learned_from);
        let notes = &mut description.training;
        notes.insert(NEIGHBOURHOOD.into(), json!(config.neighbourhood));
        notes.insert(ANSWERING.into(), json!(config.answering));
        notes.insert("questions".into(), json!(material.checksum));
        task.note_init(notes)?;
        Ok(Self {
            task,
            config,
            device,
            description,
            material,
            questions,
            relations,
        })
    }
}

/// For each entity of an example, whether it is an answer.
fn answer_flags(example: &Example<'_>) -> Vec<bool> {
    let mut answers = vec![false; example.entities.len()];
    for (triple, flags) in example.triples.iter().zip(example.flags) {
        answers[triple[0] as usize] |= flags & HEAD != 0;
        answers[triple[2] as usize] |= flags & TAIL != 0;
    }
    answers
}

fn shape<'e>(example: &Example<'e>, topics: &'e [bool]) -> Shape<'e> {
    Shape {
        topics,
        relations: example.relations,
        triples: example.triples,
    }
}

/// Every answer with every other entity, by class; as many as `most`, drawn, where there are more.
/// The weights of a question add up to `weight`.
fn pairs(
    answers: &[bool],
    classes: &[u32],
    most: usize,
    weight: f32,
    random: &mut Random,
) -> Vec<Pair> {
    let mut counts: [BTreeMap<u32, usize>; 2] = Default::default();
    for (class, is_answer) in classes.iter().zip(answers) {
        *counts[usize::from(*is_answer)].entry(*class).or_default() += 1;
    }
    let [others, answers] = counts;
    let all = (answers.iter()).flat_map(|(&answer, &a)| {
        others.iter().map(move |(&other, &o)| Pair {
            answer,
            other,
            weight: (a * o) as f32,
        })
    });
    let mut pairs: Vec<Pair> = all.collect();
    if pairs.len() > most {
        random.shuffle(&mut pairs);
        pairs.truncate(most);
    }
    let sum: f32 = pairs.iter().map(|pair| pair.weight).sum();
    for pair in &mut pairs {
        pair.weight *= weight / sum;
    }
    pairs
}

impl TrainingTask for Run<'_> {
    type Network = Network;
    type ValidationMetrics = Nearness;

    fn description(&self) -> &Description<Config> {
        &self.description
    }

    fn first_network(&self) -> Result<Network> {
        first(self.task.init, &self.description, self.device, Network::new)
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

    fn loss(&self, network: &Network, batch: &[usize], random: &mut Random) -> Result<Tensor> {
        let examples: Vec<Example<'_>> = batch
            .iter()
            .map(|i| self.material.examples.get(*i))
            .collect();
        let topics: Vec<Vec<bool>> = examples.iter().map(Example::topic_flags).collect();
        let shapes: Vec<Shape<'_>> = (examples.iter().zip(&topics))
            .map(|(example, topics)| shape(example, topics))
            .collect();
        let asked: Vec<usize> = examples.iter().map(|example| example.question).collect();
        let asked = self.questions.select(&asked);
        let batch = Batch::new(
            &self.config.sizes,
            &asked,
            &shapes,
            &self.relations,
            self.device,
        )?;
        let weight = 1.0 / examples.len() as f32;
        let mut all = Vec::new();
        for (i, example) in examples.iter().enumerate() {
            let answers = answer_flags(example);
            let most = self.config.max_pairs;
            all.extend(pairs(&answers, batch.classes(i), most, weight, random));
        }
        let distances = network.distances(&batch)?;
        Ok(margin_loss(&distances, &all, self.config.margin)?)
    }

    fn validate(&self, network: &Network) -> Result<Nearness> {
        let reader = Reader::new(network.shared())?;
        let relations = reader.relations(&self.relations)?;
        let looks: Vec<(f64, f64)> = (self.material.judged.par_iter())
            .map(|&index| {
                let example = self.material.examples.get(index);
                let topics = example.topic_flags();
                let asked = self.questions.select(&[example.question]);
                let near = reader.read(&asked, &shape(&example, &topics), &relations, false)?;
                Ok(look(
                    &example,
                    &near.distances,
                    self.config.answering.candidates,
                ))
            })
            .collect::<Result<_>>()?;
        let (hit_at_1, candidate_recall) = means(&looks);
        Ok(Nearness {
            score: 0.5 * (hit_at_1 + candidate_recall),
            hit_at_1,
            candidate_recall,
        })
    }

    fn is_better(&self, new: &Nearness, old: &Nearness) -> bool {
        above([new.score, 0.0], [old.score, 0.0])
    }
}

/// Whether the nearest entity is an answer, and the share of answers among the candidates. Nodes
/// without a name are neither.
fn look(example: &Example<'_>, distances: &[f32], candidates: usize) -> (f64, f64) {
    let answers = answer_flags(example);
    let mut near: Vec<usize> = (0..distances.len())
        .filter(|i| example.entities[*i] != 0)
        .collect();
    near.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]));
    let hit = near.first().is_some_and(|i| answers[*i]);
    let found = near
        .iter()
        .take(candidates)
        .filter(|i| answers[**i])
        .count();
    let wanted = answers.iter().filter(|is| **is).count();
    (
        f64::from(u8::from(hit)),
        found as f64 / wanted.min(candidates).max(1) as f64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_by_class_and_weigh_as_much_as_the_question() {
        let answers = [true, false, true, false, false];
        let classes = [7, 5, 7, 5, 6];
        let all = pairs(&answers, &classes, 10, 0.5, &mut Random::new(1));
        // 2 · 2 pairs of classes 7 and 5, 2 · 1 of 7 and 6: 4/6 and 2/6 of a half
        let pair = |other, weight| Pair {
            answer: 7,
            other,
            weight,
        };
        assert_eq!(all.len(), 2);
        for (ours, wanted) in all.iter().zip([pair(5, 1.0 / 3.0), pair(6, 1.0 / 6.0)]) {
            assert_eq!((ours.answer, ours.other), (wanted.answer, wanted.other));
            assert!((ours.weight - wanted.weight).abs() < 1e-6);
        }
        let one = pairs(&answers, &classes, 1, 0.5, &mut Random::new(1));
        assert_eq!(one.len(), 1);
        assert!((one[0].weight - 0.5).abs() < 1e-6);
    }

    #[test]
    fn the_nearest_named_entities_are_looked_at() {
        let example = Example {
            question: 0,
            topics: 1,
            answers: 2,
            entities: &[5, 0, 6, 7],
            relations: &[0],
            triples: &[[0, 0, 1], [1, 0, 2], [1, 0, 3]],
            flags: &[0, TAIL, TAIL],
        };
        // nearest is 1, which has no name; then 2, an answer; then 0; then 3
        let distances = [0.5, 0.1, 0.2, 0.9];
        assert_eq!(look(&example, &distances, 1), (1.0, 1.0));
        assert_eq!(look(&example, &distances, 2), (1.0, 0.5));
        assert_eq!(look(&example, &[0.1, 0.1, 0.2, 0.9], 2), (0.0, 0.5));
    }
}
