//! Training of the relation retriever: which relations a question's logical form uses.
//!
//! ```text
//! L = −mean over questions of  Σ_{r ∈ gold} log softmax_r(s) / |gold|
//! ```
//!
//! Gold relations are those of the gold form, or else of the gold triples and paths. The softmax
//! runs over all relations of the graph where there are at most `negatives`; else over the gold
//! ones of the step, as many of the hardest by the present network, and random ones. After each
//! pass the validation questions are ranked; what counts is recall at 10, then at 1. Then the
//! re-ranker of its first candidates is trained (`relation_pairs.rs`).

use std::fmt;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wherefore::graph::{Graph, RelationId};
use wherefore::link::{Linker, Names, NamesConfig};
use wherefore::logic::aspects::{masked, near, relation_texts};
use wherefore::logic::{Form, relation_called};
use wherefore::model::checkpoint::{self, Checkpoint, Description};
use wherefore::model::optimise::AdamWConfig;
use wherefore::model::relations::{Featured, Near, RelationMatcher, Sizes, features, loss};
use wherefore::model::tensor::{Device, Tensor};
use wherefore::model::{Embeddings, Random, encode};

use super::config::Settings;
use super::course::{Course, Lesson, batches, begun, best, check_course};
use super::relation_pairs::{PairTrainConfig, RankedPairs, pairs};
use super::{Epoch, Progress, Task, work_folder};
use crate::error::{Error, Result};
use crate::forms::gold_form;
use crate::questions::GoldQuestion;

/// Questions that are linked before it is told.
const BLOCK: usize = 512;

/// Everything that can be set of this training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelationTrainConfig {
    /// The frozen encoder.
    pub encoder: String,
    /// Sizes of the network; `dim` follows from the encoder.
    pub sizes: Sizes,
    /// How steps are taken.
    pub optimiser: AdamWConfig,
    /// Most passes over the questions.
    pub epochs: u32,
    /// Passes without a better network after which the training ends.
    pub patience: u32,
    /// Share of all steps in which the learning rate rises.
    pub warm_up: f32,
    /// Questions in one step.
    pub batch_questions: usize,
    /// Relations that gold ones are told from in a step, at most.
    pub negatives: usize,
    /// Whether relations near the linked entities have a weight of their own.
    pub near: bool,
    /// The re-ranker that reads question and relation together.
    pub pairs: PairTrainConfig,
    /// The seed.
    pub seed: u64,
}

impl Default for RelationTrainConfig {
    fn default() -> Self {
        Self {
            encoder: "static".into(),
            sizes: Sizes::default(),
            optimiser: AdamWConfig {
                learning_rate: 2e-3,
                weight_decay: 1e-2,
                ..AdamWConfig::default()
            },
            epochs: 12,
            patience: 3,
            warm_up: 0.05,
            batch_questions: 64,
            negatives: 4096,
            near: true,
            pairs: PairTrainConfig::default(),
            seed: 0,
        }
    }
}

impl Settings for RelationTrainConfig {
    fn set_encoder(&mut self, encoder: &str) {
        encoder.clone_into(&mut self.encoder);
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }
}

impl RelationTrainConfig {
    /// Refuses settings with which nothing can be learned.
    pub fn check(&self) -> Result<()> {
        check_course((self.epochs, self.patience), self.warm_up, &self.optimiser)?;
        self.pairs.check()?;
        let wrong = |what: &str| Err(Error::BadSetting(what.to_owned()));
        if self.batch_questions == 0 || self.negatives < 2 {
            return wrong("`batch_questions` must be at least 1 and `negatives` at least 2");
        }
        Ok(())
    }
}

/// How well relations are ranked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Mean share of a question's gold relations that come first.
    pub recall_at_1: f64,
    /// Among the first ten.
    pub recall_at_10: f64,
}

impl fmt::Display for Ranked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "relations recall@1 {:.3}, recall@10 {:.3}",
            self.recall_at_1, self.recall_at_10
        )
    }
}

/// What a training came to.
#[derive(Clone, Debug, Serialize)]
pub struct TrainedRelations {
    /// Questions that had something to learn from.
    pub questions: usize,
    /// Questions left out: no gold relation is known, or the graph has none of them.
    pub left_out: usize,
    /// Validation questions that were judged.
    pub valid: usize,
    /// Every pass.
    pub epochs: Vec<Epoch<Ranked>>,
    /// The best of them.
    pub best: Ranked,
    /// Every pass of the re-ranker; none where it was left out.
    pub pair_epochs: Vec<Epoch<RankedPairs>>,
}

/// The relations of a question's gold form that the graph has, sorted; where there is no form,
/// those of its gold triples and paths.
pub fn gold_relations(question: &GoldQuestion, graph: &dyn Graph) -> Result<Vec<RelationId>> {
    let mut names: Vec<String> = match gold_form(question).and_then(|f| f.parse::<Form>().ok()) {
        Some(form) => form.relations().iter().map(|r| r.name.clone()).collect(),
        None => {
            let paths = question.proof.paths.iter().flatten();
            let triples = paths.chain(&question.proof.relevant);
            let mut names: Vec<String> = triples.map(|[_, r, _]| r.clone()).collect();
            if names.is_empty() {
                let first = question.proof.relation_paths.first();
                names.extend(first.into_iter().flatten().cloned());
            }
            names
        }
    };
    names.sort_unstable();
    names.dedup();
    let mut found = Vec::new();
    for name in names {
        found.extend(relation_called(&name, graph)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Trains a relation retriever.
pub fn relations(
    task: &Task<'_>,
    config: &RelationTrainConfig,
    device: &Device,
    see: &mut dyn FnMut(Progress),
) -> Result<TrainedRelations> {
    config.check()?;
    let work = work_folder(task)?;
    let run = Run::prepare(task, config, device, see)?;
    let course = Course {
        seed: config.seed,
        epochs: config.epochs,
        patience: config.patience,
        warm_up: config.warm_up,
        optimiser: config.optimiser.clone(),
        device,
        last: work.join("last"),
        out: task.out,
    };
    let epochs = course.run(&run, see)?;
    let pair_epochs = match config.pairs.epochs {
        0 => Vec::new(),
        _ => {
            let matcher: Checkpoint<RelationMatcher> = Checkpoint::load(task.out, device)?;
            pairs(&run, &matcher.network, &work, see)?
        }
    };
    std::fs::remove_dir_all(&work).map_err(Error::io("remove", &work))?;
    Ok(TrainedRelations {
        questions: run.learn.len(),
        left_out: task.train.len() - run.learn.len(),
        valid: run.valid.len(),
        best: best(&epochs),
        epochs,
        pair_epochs,
    })
}

/// Questions as the network takes them.
pub(super) struct Asked {
    /// With their mentions masked.
    pub(super) texts: Vec<String>,
    rows: Embeddings,
    features: Vec<Vec<u32>>,
    near: Vec<Near>,
    pub(super) gold: Vec<Vec<u32>>,
}

impl Asked {
    pub(super) fn len(&self) -> usize {
        self.gold.len()
    }

    fn featured(&self, batch: &[usize]) -> Featured {
        let dim = self.rows.dim();
        let mut rows = Vec::with_capacity(batch.len() * dim);
        for &i in batch {
            rows.extend_from_slice(self.rows.row(i));
        }
        Featured {
            rows: Embeddings::new(rows, dim),
            features: batch.iter().map(|&i| self.features[i].clone()).collect(),
        }
    }

    fn near(&self, batch: &[usize]) -> Near {
        (0u32..)
            .zip(batch)
            .flat_map(|(row, &i)| self.near[i].iter().map(move |&(_, r, s)| (row, r, s)))
            .collect()
    }
}

pub(super) struct Run<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) config: RelationTrainConfig,
    pub(super) device: &'a Device,
    description: Description<Sizes>,
    pub(super) learn: Asked,
    pub(super) valid: Asked,
    relations: Featured,
}

impl<'a> Run<'a> {
    fn prepare(
        task: &'a Task<'a>,
        config: &RelationTrainConfig,
        device: &'a Device,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let encoder = encode::open(&config.encoder)?;
        let mut config = config.clone();
        config.sizes.dim = encoder.dim();
        let linker = Names::new(NamesConfig::default())?;
        let total = task.train.len() + task.valid.len();
        let mut done = 0;
        let mut asked = |questions: &[GoldQuestion]| -> Result<Asked> {
            let mut texts = Vec::new();
            let (mut nears, mut gold) = (Vec::new(), Vec::new());
            for block in questions.chunks(BLOCK) {
                let read: Vec<Option<(String, Near, Vec<u32>)>> = block
                    .par_iter()
                    .map(|question| {
                        let gold = gold_relations(question, task.graph)?;
                        if gold.is_empty() {
                            return Ok(None);
                        }
                        let links = linker.link(&question.without_topics(), task.graph)?;
                        let near = match config.near {
                            true => near(0, &links, task.graph)?,
                            false => Near::new(),
                        };
                        let gold = gold.iter().map(|r| r.0).collect();
                        Ok(Some((masked(&question.question, &links), near, gold)))
                    })
                    .collect::<Result<_>>()?;
                for (text, near, relations) in read.into_iter().flatten() {
                    texts.push(text);
                    nears.push(near);
                    gold.push(relations);
                }
                done += block.len();
                see(Progress::Exploring { done, total });
            }
            let names: Vec<&str> = texts.iter().map(String::as_str).collect();
            let rows = encoder.encode(&names)?;
            Ok(Asked {
                rows,
                features: (texts.iter())
                    .map(|text| features(text, false, config.sizes.buckets))
                    .collect(),
                texts,
                near: nears,
                gold,
            })
        };
        let (learn, valid) = (asked(task.train)?, asked(task.valid)?);
        if learn.len() == 0 || valid.len() == 0 {
            return Err(Error::BadSetting(
                "no question has a gold form, path or triple with relations of this graph".into(),
            ));
        }
        let texts = relation_texts(task.graph)?;
        let names: Vec<&str> = texts.iter().map(String::as_str).collect();
        let relations = Featured {
            rows: encoder.encode(&names)?,
            features: (texts.iter())
                .map(|text| features(text, true, config.sizes.buckets))
                .collect(),
        };
        let mut description =
            Description::of::<RelationMatcher>(config.sizes.clone(), encoder.name(), config.seed);
        description.data.clone_from(&task.data);
        description.training.insert("config".into(), json!(config));
        description
            .training
            .insert("learned_from".into(), json!(learn.len()));
        if let Some(init) = task.init {
            let init = json!(checkpoint::read_description(init)?);
            description.training.insert("init".into(), init);
        }
        Ok(Self {
            task,
            config,
            device,
            description,
            learn,
            valid,
            relations,
        })
    }

    /// The `count` best relations of each question with their scores.
    pub(super) fn ranked(
        &self,
        matcher: &RelationMatcher,
        asked: &Asked,
        count: usize,
    ) -> Result<Vec<Vec<(u32, f32)>>> {
        let relations = matcher.relations(&self.relations)?.detach();
        let all: Vec<usize> = (0..asked.len()).collect();
        let mut ranked = Vec::with_capacity(all.len());
        for batch in all.chunks(self.config.batch_questions) {
            let questions = matcher.questions(&asked.featured(batch))?.detach();
            let scores = matcher.scores(&questions, &relations, &asked.near(batch))?;
            let scores = scores
                .to_vec2::<f32>()
                .map_err(wherefore::model::Error::from)?;
            ranked.par_extend(scores.into_par_iter().map(|row| {
                let mut order: Vec<(u32, f32)> = (0u32..).zip(row).collect();
                order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                order.truncate(count);
                order
            }));
        }
        Ok(ranked)
    }

    /// The relations of a step, and the gold and near ones by their places among them.
    fn chosen(
        &self,
        network: &RelationMatcher,
        batch: &[usize],
        random: &mut Random,
    ) -> Result<Option<Vec<u32>>> {
        let count = self.relations.features.len();
        if count <= self.config.negatives {
            return Ok(None);
        }
        let mut chosen: Vec<u32> = batch
            .iter()
            .flat_map(|&i| self.learn.gold[i].clone())
            .collect();
        let scores = network.scores(
            &network.questions(&self.learn.featured(batch))?.detach(),
            &network.relations(&self.relations)?.detach(),
            &self.learn.near(batch),
        )?;
        let hard = (self.config.negatives / 2 / batch.len().max(1)).max(1);
        for row in scores
            .to_vec2::<f32>()
            .map_err(wherefore::model::Error::from)?
        {
            let mut order: Vec<u32> = (0..count as u32).collect();
            order.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
            chosen.extend(&order[..hard.min(count)]);
        }
        while chosen.len() < self.config.negatives {
            chosen.push(random.below(count) as u32);
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(Some(chosen))
    }
}

impl Lesson for Run<'_> {
    type Network = RelationMatcher;
    type Judged = Ranked;

    fn description(&self) -> &Description<Sizes> {
        &self.description
    }

    fn first_network(&self) -> Result<RelationMatcher> {
        if let Some(init) = self.task.init {
            return begun(init, &self.description, self.device);
        }
        let mut random = Random::stream(self.config.seed, 0);
        let sizes = self.config.sizes.clone();
        Ok(RelationMatcher::new(sizes, &mut random, self.device)?)
    }

    fn batches(&self, epoch: u32) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.learn.len()).collect();
        let most = self.config.batch_questions;
        batches(&all, (self.config.seed, epoch), (most, usize::MAX), |_| 1)
    }

    fn loss(
        &self,
        network: &RelationMatcher,
        batch: &[usize],
        random: &mut Random,
    ) -> Result<Tensor> {
        let asked = network.questions(&self.learn.featured(batch))?;
        let near = self.learn.near(batch);
        let gold: Vec<Vec<u32>> = batch.iter().map(|&i| self.learn.gold[i].clone()).collect();
        let Some(chosen) = self.chosen(network, batch, random)? else {
            let relations = network.relations(&self.relations)?;
            return Ok(loss(&network.scores(&asked, &relations, &near)?, &gold)?);
        };
        let place = |relation: u32| chosen.binary_search(&relation).ok().map(|p| p as u32);
        let dim = self.relations.rows.dim();
        let mut rows = Vec::with_capacity(chosen.len() * dim);
        for &relation in &chosen {
            rows.extend_from_slice(self.relations.rows.row(relation as usize));
        }
        let relations = Featured {
            rows: Embeddings::new(rows, dim),
            features: (chosen.iter())
                .map(|&r| self.relations.features[r as usize].clone())
                .collect(),
        };
        let near = (near.into_iter())
            .filter_map(|(row, r, step)| Some((row, place(r)?, step)))
            .collect();
        let gold: Vec<Vec<u32>> = (gold.iter())
            .map(|gold| gold.iter().filter_map(|&r| place(r)).collect())
            .collect();
        let relations = network.relations(&relations)?;
        Ok(loss(&network.scores(&asked, &relations, &near)?, &gold)?)
    }

    fn judge(&self, network: &RelationMatcher) -> Result<Ranked> {
        let relations = network.relations(&self.relations)?.detach();
        let all: Vec<usize> = (0..self.valid.len()).collect();
        let mut sum = Ranked::default();
        for batch in all.chunks(self.config.batch_questions) {
            let asked = network.questions(&self.valid.featured(batch))?.detach();
            let scores = network.scores(&asked, &relations, &self.valid.near(batch))?;
            let scores = scores
                .to_vec2::<f32>()
                .map_err(wherefore::model::Error::from)?;
            for (&i, row) in batch.iter().zip(scores) {
                let gold = &self.valid.gold[i];
                let found = |k: usize| {
                    let before = |&&r: &&u32| {
                        let score = row[r as usize];
                        row.iter().filter(|s| **s > score).count() < k
                    };
                    gold.iter().filter(before).count() as f64 / gold.len() as f64
                };
                sum.recall_at_1 += found(1);
                sum.recall_at_10 += found(10);
            }
        }
        let count = self.valid.len() as f64;
        Ok(Ranked {
            recall_at_1: sum.recall_at_1 / count,
            recall_at_10: sum.recall_at_10 / count,
        })
    }

    fn is_better(&self, new: &Ranked, old: &Ranked) -> bool {
        (new.recall_at_10, new.recall_at_1) > (old.recall_at_10, old.recall_at_1)
    }

    fn keep(&self, network: &RelationMatcher, epochs: &[Epoch<Ranked>]) -> Result<()> {
        let mut description = self.description.clone();
        let valid = epochs.last().map(|epoch| &epoch.valid);
        description.metrics.insert("valid".into(), json!(valid));
        description.training.insert("epochs".into(), json!(epochs));
        checkpoint::save(self.task.out, &description, network, None)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wherefore::Question;
    use wherefore::graph::{Graph, toy};
    use wherefore::link::{Linker, Names, NamesConfig};
    use wherefore::logic::aspects::RelationRetriever;

    use super::*;
    use crate::questions::Proof;
    use crate::train::Labels;

    fn asked(number: usize, question: &str, form: &str) -> GoldQuestion {
        GoldQuestion {
            id: number.to_string(),
            question: question.into(),
            proof: Proof {
                logical_form: Some(form.into()),
                ..Proof::default()
            },
            ..GoldQuestion::default()
        }
    }

    #[test]
    fn gold_relations_come_from_the_form_or_else_from_triples() {
        let graph = toy::graph();
        let id = |name: &str| graph.relation_named(name).unwrap().unwrap();
        let question = asked(
            0,
            "?",
            "(JOIN (R won) (JOIN (R mascot_of) (JOIN (R nothing) x)))",
        );
        let mut wanted = vec![id("won"), id("mascot_of")];
        wanted.sort_unstable();
        assert_eq!(gold_relations(&question, &graph).unwrap(), wanted);
        let question = GoldQuestion {
            proof: Proof {
                relevant: vec![["a", "lost", "b"].map(str::to_owned)],
                logical_form: Some("null".into()),
                ..Proof::default()
            },
            ..GoldQuestion::default()
        };
        assert_eq!(gold_relations(&question, &graph).unwrap(), [id("lost")]);
    }

    #[test]
    fn words_that_no_relation_has_are_learned() {
        let graph = toy::graph();
        let questions: Vec<GoldQuestion> = [
            (
                "who manages the San Francisco Giants",
                "(JOIN (R coached_by) [San Francisco Giants])",
            ),
            (
                "who manages the Kansas City Royals",
                "(JOIN (R coached_by) [Kansas City Royals])",
            ),
            (
                "home ground of the San Francisco Giants",
                "(JOIN (R plays_in) [San Francisco Giants])",
            ),
            (
                "home ground of the Kansas City Royals",
                "(JOIN (R plays_in) [Kansas City Royals])",
            ),
        ]
        .into_iter()
        .enumerate()
        .map(|(i, (question, form))| asked(i, question, form))
        .collect();
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("relations");
        let task = Task {
            graph: &graph,
            train: &questions,
            valid: &questions,
            labels: Labels::Weak(crate::supervise::ShortestPaths::default()),
            data: serde_json::Map::new(),
            out: &out,
            init: None,
            restart: false,
        };
        // 4 of 11 relations a step: gold, hard and random ones
        let config = RelationTrainConfig {
            epochs: 30,
            patience: 30,
            negatives: 4,
            sizes: Sizes {
                buckets: 512,
                ..Sizes::default()
            },
            ..RelationTrainConfig::default()
        };
        let trained = relations(&task, &config, &Device::Cpu, &mut |_| {}).unwrap();
        assert_eq!(trained.questions, 4);
        assert_eq!(trained.best.recall_at_1, 1.0, "{:?}", trained.epochs.last());
        let retriever = RelationRetriever::load(&out).unwrap();
        let question = Question::new("who manages the San Francisco Giants");
        let linker = Names::new(NamesConfig::default()).unwrap();
        let links = linker.link(&question, &graph).unwrap();
        let ranked = retriever.rank(&question, &links, &graph).unwrap();
        assert_eq!(graph.relation_label(ranked[0].0).unwrap(), "coached by");
        // one step from there, and it knows what it knew; another shape is refused
        let more = place.path().join("more");
        let task = Task {
            out: &more,
            init: Some(&out),
            ..task
        };
        let mut config = RelationTrainConfig {
            epochs: 1,
            ..config
        };
        config.optimiser.learning_rate = 1e-9;
        let trained = relations(&task, &config, &Device::Cpu, &mut |_| {}).unwrap();
        assert_eq!(trained.best.recall_at_1, 1.0);
        config.sizes.buckets = 256;
        let task = Task {
            out: &place.path().join("other"),
            ..task
        };
        let refused = relations(&task, &config, &Device::Cpu, &mut |_| {}).unwrap_err();
        assert!(refused.to_string().contains("other sizes"), "{refused}");
    }
}
