//! Training of the path writer:
//!
//! ```text
//! L = −mean over questions of mean over their paths of Σ_k ln p(ρ_k | q, ρ_1 … ρ_{k−1})
//! ```
//!
//! The paths of a question are sequences of relations from its topics: those that give the answers
//! best (`supervision = relation-paths`), those of the shortest paths to answers, or those that a
//! label file picked, as far as they begin at a topic. What there was to choose from at each
//! step is read from the graph by the code that answers.
//!
//! After each pass the validation questions are answered by the code that answers. What counts is the
//! share of first answers that are right, and where that is equal the mean F1.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wherefore::graph::{EntityId, Graph, Hop, PathFinder, Subgraph};
use wherefore::link::{Names, NamesConfig};
use wherefore::model::checkpoint::Description;
use wherefore::model::encode::TokenStates;
use wherefore::model::qr_gat::Table;
use wherefore::model::relation_plan::{Config, Item, Network, Tokens};
use wherefore::model::tensor::{Device, Tensor};
use wherefore::model::{Encoder, Random, encode};
use wherefore::organize::{Chains, ChainsConfig};
use wherefore::reason::{ChainEnds, ChainEndsConfig};
use wherefore::retrieve::relation_plan::{GROWTH, Growth, around_mention};
use wherefore::retrieve::{
    Neighbourhood, NeighbourhoodConfig, RelationPlan, RelationPlanConfig, label_span,
    relation_texts_to_vectors, steps,
};
use wherefore::select::{TopK, TopKConfig};
use wherefore::verify::Rules;
use wherefore::{Pipeline, Question};

use super::config::{Settings, TrainerConfig};
use super::labels::{Labels, Supervision};
use super::trainer::{Trainer, TrainingTask, above, batches, description, first, means};
use super::{Progress, Task, Trained, check_usable, checksum, work_folder};
use crate::error::{Error, Result};
use crate::questions::{GoldQuestion, resolve};
use crate::supervise::{Ground, RelationPaths, ShortestPaths, whole};

/// Graphs up to this size are searched whole for the sequences of a question.
const WHOLE: usize = 200_000;
/// Answers whose shortest paths are looked for.
const MAX_ANSWERS: usize = 16;
/// Questions that are looked at before progress is told.
const BLOCK: usize = 256;

/// Everything that can be set of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationPlanTrainConfig {
    /// The settings that every training has.
    #[serde(flatten)]
    pub trainer: TrainerConfig,
    /// The encoder: `static`, `hashing`, a model folder or an added model.
    pub encoder: String,
    /// Sizes of the network; `dim` follows from the encoder.
    pub sizes: Config,
    /// How paths are grown.
    pub growth: Growth,
    /// What of a large graph a question's paths are looked for in.
    pub neighbourhood: NeighbourhoodConfig,
    /// How paths are found where no file has them.
    pub supervision: Supervision,
    /// Paths of a question and topic, at most.
    pub max_paths: usize,
    /// Validation questions looked at after each pass, at most, drawn by the seed.
    pub valid_questions: usize,
}

impl Default for RelationPlanTrainConfig {
    fn default() -> Self {
        Self {
            trainer: TrainerConfig {
                batch_questions: 64,
                ..TrainerConfig::default()
            },
            encoder: "static".into(),
            sizes: Config::default(),
            growth: Growth::default(),
            neighbourhood: NeighbourhoodConfig {
                hops: 3,
                ..NeighbourhoodConfig::default()
            },
            supervision: Supervision::RelationPaths,
            max_paths: 4,
            valid_questions: 500,
        }
    }
}

impl Settings for RelationPlanTrainConfig {
    fn set_encoder(&mut self, encoder: &str) {
        encoder.clone_into(&mut self.encoder);
    }

    fn set_seed(&mut self, seed: u64) {
        self.trainer.seed = seed;
    }
}

impl RelationPlanTrainConfig {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        self.sizes.check()?;
        self.growth.check()?;
        self.neighbourhood.check()?;
        self.trainer.check()?;
        if self.valid_questions == 0 || self.max_paths == 0 {
            return Err(Error::BadSetting(
                "`valid_questions` and `max_paths` must be at least 1".into(),
            ));
        }
        Ok(())
    }
}

/// How good a path writer is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanMetrics {
    /// Share of questions whose first answer is right: what decides.
    pub hit_at_1: f64,
    /// Mean F1 of the answers.
    pub f1: f64,
}

impl fmt::Display for PlanMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hit@1 {:.3}, F1 {:.3}", self.hit_at_1, self.f1)
    }
}

/// Trains a path writer.
pub fn relation_plan(
    task: &Task<'_>,
    config: &RelationPlanTrainConfig,
    device: &Device,
    see: &mut dyn FnMut(Progress),
) -> Result<Trained<PlanMetrics>> {
    config.check()?;
    let work = work_folder::<Network>(task)?;
    let encoder = encode::open(&config.encoder)?;
    let run = Run::prepare(task, config, encoder, device, see)?;
    let trainer = Trainer {
        config: &config.trainer,
        device,
        last: work.join("last"),
        out: task.out,
    };
    let epochs = trainer.run(&run, see)?;
    // what a stopped run would have needed
    fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    let counts = [run.learn.len(), run.valid.len()];
    Ok(Trained::new(task, counts, epochs))
}

/// A question's paths, by the readings of its topics.
struct Lines {
    /// Rows among the texts, before and behind the mention, for each topic with a path.
    readings: Vec<[usize; 2]>,
    /// Paths; their `question` is a place among the readings.
    items: Vec<Item>,
}

/// A training with everything that does not change while it learns.
struct Run<'a> {
    task: &'a Task<'a>,
    config: RelationPlanTrainConfig,
    device: &'a Device,
    description: Description<Config>,
    encoder: Arc<dyn Encoder>,
    lines: Vec<Lines>,
    learn: Vec<usize>,
    valid: Vec<GoldQuestion>,
    texts: TokenStates,
    relations: Vec<f32>, // [relations, dim]
}

/// What was found for a question, before its relations are numbered.
#[derive(Default)]
struct Found {
    texts: Vec<[String; 2]>,
    items: Vec<Item>,
    /// Labels of the relations, by id.
    labels: Option<Vec<String>>,
}

impl<'a> Run<'a> {
    fn prepare(
        task: &'a Task<'a>,
        config: &RelationPlanTrainConfig,
        encoder: Arc<dyn Encoder>,
        device: &'a Device,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let mut config = config.clone();
        config.sizes.dim = encoder.dim();
        let seed = config.trainer.seed;
        let valid = task.valid_sample(config.valid_questions, seed);
        let small = task.graph.entity_bound() <= WHOLE;
        let all = small.then(|| whole(task.graph)).transpose()?;
        let ground = all.as_ref().map(Ground::new);
        let finder = Finder {
            labels: &task.labels,
            config: &config,
            whole: ground.as_ref(),
        };
        let own_labels = labels_of(task.graph)?;
        let mut rows: HashMap<String, u32> = HashMap::new();
        let mut relations: Vec<String> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        let mut lines = Vec::with_capacity(task.train.len());
        let total = task.train.len();
        for (block, questions) in task.train.chunks(BLOCK).enumerate() {
            let found: Vec<Found> = questions
                .par_iter()
                .map(|question| finder.look(question, task.graph))
                .collect::<Result<_>>()?;
            for mut found in found {
                let labels = found.labels.as_ref().unwrap_or(&own_labels);
                let mut row = |id: u32| {
                    let label = &labels[id as usize];
                    if let Some(row) = rows.get(label) {
                        return *row;
                    }
                    relations.push(label.clone());
                    rows.insert(label.clone(), relations.len() as u32 - 1);
                    relations.len() as u32 - 1
                };
                for item in &mut found.items {
                    for choice in item.choices.iter_mut().flatten() {
                        choice.0 = row(choice.0);
                    }
                }
                let first = texts.len();
                lines.push(Lines {
                    readings: (0..found.texts.len())
                        .map(|i| [first + 2 * i, first + 2 * i + 1])
                        .collect(),
                    items: found.items,
                });
                texts.extend(found.texts.into_iter().flatten());
            }
            let done = block * BLOCK + questions.len();
            see(Progress::Cutting { done, total });
        }
        let learn: Vec<usize> = (0..lines.len())
            .filter(|i| !lines[*i].items.is_empty())
            .collect();
        check_usable("training", learn.len(), task.train.len())?;
        check_usable("validation", valid.len(), task.valid.len())?;
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        let states = encoder.token_states(&words)?;
        let sizes = (config.sizes.clone(), encoder.name(), seed);
        let mut description = description::<Network>(&task.data, sizes, &config, learn.len());
        let notes = &mut description.training;
        notes.insert(GROWTH.into(), json!(config.growth));
        notes.insert("labels".into(), task.labels.origin());
        notes.insert("questions".into(), json!(checksum(task.train)));
        task.note_init(notes)?;
        Ok(Self {
            relations: relation_texts_to_vectors(&*encoder, &relations)?,
            task,
            device,
            description,
            encoder,
            lines,
            learn,
            valid,
            texts: states,
            config,
        })
    }
}

fn labels_of(graph: &dyn Graph) -> Result<Vec<String>> {
    (0..graph.relation_bound() as u32)
        .map(|id| {
            let label = graph.relation_label(wherefore::graph::RelationId(id))?;
            Ok(label.into_owned())
        })
        .collect()
}

impl TrainingTask for Run<'_> {
    type Network = Network;
    type ValidationMetrics = PlanMetrics;

    fn description(&self) -> &Description<Config> {
        &self.description
    }

    fn first_network(&self) -> Result<Network> {
        first(self.task.init, &self.description, self.device, Network::new)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let TrainerConfig {
            seed,
            batch_questions,
            ..
        } = self.config.trainer;
        batches(
            &self.learn,
            (seed, epoch),
            (batch_questions, usize::MAX),
            |_| 1,
        )
    }

    fn loss(&self, network: &Network, batch: &[usize], random: &mut Random) -> Result<Tensor> {
        let mut readings = Vec::new();
        let mut items = Vec::new();
        for &index in batch {
            let lines = &self.lines[index];
            let first = readings.len();
            let words = lines.readings.iter();
            readings.extend(words.map(|rows| rows.map(|row| self.texts.text(row))));
            items.extend(lines.items.iter().map(|item| Item {
                question: first + item.question,
                ..item.clone()
            }));
        }
        let tokens: Vec<Tokens<'_>> = (readings.iter())
            .map(|[before, behind]| Tokens { before, behind })
            .collect();
        let relations = Table::new(&self.relations, self.config.sizes.dim)?;
        Ok(network.loss(&tokens, &items, &relations, Some(random), self.device)?)
    }

    fn validate(&self, network: &Network) -> Result<PlanMetrics> {
        let retriever = RelationPlan::from_parts(
            network,
            Arc::clone(&self.encoder),
            self.config.growth.clone(),
            RelationPlanConfig::default(),
        )?;
        let pipeline = Pipeline {
            calibration: None,
            beside: Vec::new(),
            is_costly: false,
            precision: None,
            linker: Arc::new(Names::new(NamesConfig::default())?),
            retriever: Box::new(retriever),
            selector: Box::new(TopK::new(TopKConfig { k: 5000 })),
            organizer: Box::new(Chains::new(ChainsConfig::default())),
            reasoner: Box::new(ChainEnds::new(ChainEndsConfig::default())),
            rules: Rules::default(),
        };
        let looks: Vec<(f64, f64)> = (self.valid.par_iter())
            .map(|question| {
                let own = question.own_graph();
                let graph = own
                    .as_ref()
                    .map_or(self.task.graph, |own| own as &dyn Graph);
                answered(question, &pipeline, graph)
            })
            .collect::<Result<_>>()?;
        let (hit_at_1, f1) = means(&looks);
        Ok(PlanMetrics { hit_at_1, f1 })
    }

    fn is_better(&self, new: &PlanMetrics, old: &PlanMetrics) -> bool {
        above([new.hit_at_1, new.f1], [old.hit_at_1, old.f1])
    }
}

/// Whether the first answer is right, and F1; nothing where a topic is not in the graph.
fn answered(question: &GoldQuestion, pipeline: &Pipeline, graph: &dyn Graph) -> Result<(f64, f64)> {
    let gold = resolve(question, graph)?;
    let terms: Vec<String> = (gold.answer_entities().into_iter())
        .map(|e| Ok(graph.entity_term(e)?.to_string()))
        .collect::<Result<_>>()?;
    if gold.topic_entities().is_empty() {
        return Ok((0.0, 0.0));
    }
    let topics = (question.topics.iter().zip(&gold.topics))
        .filter(|(_, found)| !found.is_empty())
        .map(|(name, _)| name.name.clone());
    let asked = Question::new(question.question.as_str()).about(topics);
    let answer = match pipeline.answer(&asked, graph, &mut ()) {
        Ok(answer) => answer,
        // a name that stands only among aliases: the question is lost, and not the training
        Err(wherefore::Error::NoSuchTopic { .. }) => return Ok((0.0, 0.0)),
        Err(other) => return Err(other.into()),
    };
    let is_right = |a: &wherefore::answer::AnswerEntity| terms.contains(&a.id);
    let right = answer.answers.iter().filter(|a| is_right(a)).count() as f64;
    let hit = answer.answers.first().is_some_and(is_right);
    let both = (answer.answers.len() + question.answers.len()) as f64;
    Ok((f64::from(u8::from(hit)), 2.0 * right / both.max(1.0)))
}

/// Finds the paths of questions.
struct Finder<'a> {
    labels: &'a Labels,
    config: &'a RelationPlanTrainConfig,
    /// The whole graph, where it is small.
    whole: Option<&'a Ground<'a>>,
}

impl Finder<'_> {
    fn look(&self, question: &GoldQuestion, graph: &dyn Graph) -> Result<Found> {
        let own = question.own_graph();
        let given = own.as_ref().map_or(graph, |own| own as &dyn Graph);
        let gold = resolve(question, given)?;
        let (topics, answers) = (gold.topic_entities(), gold.answer_entities());
        let whole = if own.is_some() { None } else { self.whole };
        let mut found = Found {
            labels: own.as_ref().map(|own| labels_of(own)).transpose()?,
            ..Found::default()
        };
        let mut sequences = self.sequences(question, given, whole, &topics, &answers)?;
        sequences.sort_unstable();
        sequences.dedup();
        let mut last: Option<(EntityId, usize)> = None;
        for (topic, hops) in sequences {
            let count = match last {
                Some((same, count)) if same == topic => count + 1,
                _ => 1,
            };
            last = Some((topic, count));
            if count > self.config.max_paths {
                continue;
            }
            if let Some((choices, taken)) = self.choices(topic, &hops, given)? {
                if count == 1 || found.texts.is_empty() {
                    let span = label_span(&question.question, &given.entity_label(topic)?);
                    let words = around_mention(&question.question, span);
                    found.texts.push(words.map(str::to_owned));
                }
                found.items.push(Item {
                    question: found.texts.len() - 1,
                    weight: 1.0,
                    choices,
                    taken,
                });
            } else if count == 1 {
                // the next sequence of this topic brings the words
                last = Some((topic, 0));
            }
        }
        let share = 1.0 / found.items.len().max(1) as f32;
        found.items.iter_mut().for_each(|item| item.weight = share);
        Ok(found)
    }

    fn sequences(
        &self,
        question: &GoldQuestion,
        graph: &dyn Graph,
        whole: Option<&Ground<'_>>,
        topics: &[EntityId],
        answers: &[EntityId],
    ) -> Result<Vec<(EntityId, Vec<Hop>)>> {
        if let Some(paths) = self.labels.paths(&question.id) {
            let mut picked = Vec::new();
            for topic in topics {
                for path in paths {
                    let hops = from_topic(*topic, path, graph)?;
                    picked.extend(hops.map(|hops| (*topic, hops)));
                }
            }
            if !picked.is_empty() {
                return Ok(picked);
            }
        }
        let length = self.config.growth.max_length;
        match self.labels {
            Labels::Weak(weak) => self.shortest(weak, graph, topics, answers),
            Labels::Sequences(paths) => {
                let paths = RelationPaths {
                    max_length: length,
                    ..paths.clone()
                };
                Ok(self.best(&paths, graph, whole, topics, answers)?)
            }
            Labels::Refined(_) => {
                let paths = RelationPaths {
                    max_length: length,
                    ..RelationPaths::default()
                };
                match self.config.supervision {
                    Supervision::ShortestPaths => {
                        self.shortest(&ShortestPaths::default(), graph, topics, answers)
                    }
                    Supervision::RelationPaths => self.best(&paths, graph, whole, topics, answers),
                }
            }
        }
    }

    fn best(
        &self,
        paths: &RelationPaths,
        graph: &dyn Graph,
        whole: Option<&Ground<'_>>,
        topics: &[EntityId],
        answers: &[EntityId],
    ) -> Result<Vec<(EntityId, Vec<Hop>)>> {
        if let Some(ground) = whole {
            return Ok(paths.sequences(ground, topics, answers));
        }
        let around: Subgraph =
            Neighbourhood::cut(graph, topics, &self.config.neighbourhood)?.subgraph;
        Ok(paths.sequences(&Ground::new(&around), topics, answers))
    }

    /// The sequences of shortest paths, those that lead to most answers first.
    fn shortest(
        &self,
        weak: &ShortestPaths,
        graph: &dyn Graph,
        topics: &[EntityId],
        answers: &[EntityId],
    ) -> Result<Vec<(EntityId, Vec<Hop>)>> {
        let mut finder = PathFinder::default();
        let mut found = Vec::new();
        for &topic in topics {
            let mut counts: HashMap<Vec<Hop>, usize> = HashMap::new();
            for &answer in answers.iter().take(MAX_ANSWERS) {
                let (from, to) = ([topic], [answer]);
                let set = finder.shortest_paths(graph, &from, &to, weak.direction, &weak.limits)?;
                let mut own: Vec<Vec<Hop>> = (set.paths(64).into_iter())
                    .map(|path| {
                        let hop = |s: &wherefore::graph::Step| Hop {
                            relation: s.triple.relation,
                            forward: s.forward,
                        };
                        path.steps.iter().map(hop).collect()
                    })
                    .filter(|hops: &Vec<Hop>| {
                        (1..=self.config.growth.max_length).contains(&hops.len())
                    })
                    .collect();
                own.sort_unstable();
                own.dedup();
                for hops in own {
                    *counts.entry(hops).or_default() += 1;
                }
            }
            let mut ranked: Vec<(Vec<Hop>, usize)> = counts.into_iter().collect();
            ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            ranked.truncate(self.config.max_paths);
            found.extend(ranked.into_iter().map(|(hops, _)| (topic, hops)));
        }
        Ok(found)
    }

    /// What there was to choose from along a path; none where a step is not among what is seen.
    #[expect(clippy::type_complexity, reason = "the two lists of an item")]
    fn choices(
        &self,
        topic: EntityId,
        hops: &[Hop],
        graph: &dyn Graph,
    ) -> Result<Option<(Vec<Vec<(u32, bool)>>, Vec<Option<usize>>)>> {
        let (mut choices, mut taken) = (Vec::new(), Vec::new());
        let (mut ends, mut before) = (vec![topic], Vec::new());
        for k in 0..=hops.len() {
            let last = k.checked_sub(1).map(|k| hops[k]);
            let front = (ends.as_slice(), before.as_slice(), last);
            let mut offered = steps(front, topic, graph, self.config.growth.sample)?;
            let row = |hop: &Hop| (hop.relation.0, hop.forward);
            choices.push(offered.iter().map(|(hop, _)| row(hop)).collect());
            if k == hops.len() {
                taken.push(None);
                break;
            }
            let Some(place) = offered.iter().position(|(hop, _)| *hop == hops[k]) else {
                return Ok(None);
            };
            taken.push(Some(place));
            before = std::mem::replace(&mut ends, std::mem::take(&mut offered[place].1.ends));
        }
        Ok(Some((choices, taken)))
    }
}

/// A path of named triples as hops from a topic; none where it does not begin there.
fn from_topic(
    topic: EntityId,
    path: &[crate::questions::NamedTriple],
    graph: &dyn Graph,
) -> Result<Option<Vec<Hop>>> {
    let mut at = graph.entity_label(topic)?.into_owned();
    let mut hops = Vec::with_capacity(path.len());
    for [head, relation, tail] in path {
        let Some(relation) = graph.relation_named(relation)? else {
            return Ok(None);
        };
        let forward = *head == at;
        if !forward && *tail != at {
            return Ok(None);
        }
        at = if forward { tail.clone() } else { head.clone() };
        hops.push(Hop { relation, forward });
    }
    Ok((!hops.is_empty()).then_some(hops))
}
