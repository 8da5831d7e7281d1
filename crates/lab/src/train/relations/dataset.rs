//! The questions of a training of the relation retriever, with their gold relations, and how well
//! relations are ranked for them.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use wherefore::graph::{Graph, RelationId};
use wherefore::link::{Linker, Names, NamesConfig};
use wherefore::logic::aspects::{masked, near, relation_texts};
use wherefore::logic::{Form, relation_called};
use wherefore::model::checkpoint::Description;
use wherefore::model::relations::{Featured, Near, RelationMatcher, Sizes, features};
use wherefore::model::tensor::Device;
use wherefore::model::{Embeddings, Encoder, Random, encode};

use super::config::RelationTrainConfig;
use crate::error::{Error, Result};
use crate::forms::gold_form;
use crate::questions::GoldQuestion;
use crate::train::trainer::{description, rows};
use crate::train::{Progress, Task};

/// Questions that are linked before it is told.
const BLOCK: usize = 512;

/// How well relations are ranked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Mean share of a question's gold relations that come first.
    pub recall_at_1: f64,
    /// Among the first ten.
    pub recall_at_10: f64,
}

impl Ranked {
    /// Adds a question: the scores of all relations, and which of them are gold. An error where a
    /// score is no number any more: such a network is not to be kept.
    pub(super) fn add(&mut self, scores: &[f32], gold: &[u32]) -> Result<()> {
        finite(scores)?;
        let share = |k: usize| found(scores, gold, k) as f64 / gold.len() as f64;
        self.recall_at_1 += share(1);
        self.recall_at_10 += share(10);
        Ok(())
    }

    /// The mean over `count` questions that were added.
    pub(super) fn over(&self, count: usize) -> Self {
        Self {
            recall_at_1: self.recall_at_1 / count as f64,
            recall_at_10: self.recall_at_10 / count as f64,
        }
    }

    pub(super) fn is_better_than(&self, old: &Self) -> bool {
        (self.recall_at_10, self.recall_at_1) > (old.recall_at_10, old.recall_at_1)
    }
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

/// Questions as the network takes them.
pub(super) struct Asked {
    /// With their mentions masked.
    pub(super) texts: Vec<String>,
    read: Featured,
    near: Vec<Near>,
    pub(super) gold: Vec<Vec<u32>>,
}

impl Asked {
    pub(super) fn len(&self) -> usize {
        self.gold.len()
    }

    pub(super) fn featured(&self, batch: &[usize]) -> Featured {
        picked(&self.read, batch.iter().copied())
    }

    pub(super) fn near(&self, batch: &[usize]) -> Near {
        (0u32..)
            .zip(batch)
            .flat_map(|(row, &i)| self.near[i].iter().map(move |&(_, r, s)| (row, r, s)))
            .collect()
    }
}

/// Some of the texts.
pub(super) fn picked(all: &Featured, texts: impl Iterator<Item = usize> + Clone) -> Featured {
    let dim = all.rows.dim();
    let rows = texts.clone().flat_map(|i| all.rows.row(i)).copied();
    Featured {
        rows: Embeddings::new(rows.collect(), dim),
        features: texts.map(|i| all.features[i].clone()).collect(),
    }
}

/// Near and gold relations by their places among the `chosen`, which are sorted.
pub(super) fn among(chosen: &[u32], near: Near, gold: &[Vec<u32>]) -> (Near, Vec<Vec<u32>>) {
    let place = |relation: u32| chosen.binary_search(&relation).ok().map(|p| p as u32);
    let near = (near.into_iter())
        .filter_map(|(row, r, step)| Some((row, place(r)?, step)))
        .collect();
    let gold = (gold.iter())
        .map(|gold| gold.iter().filter_map(|&r| place(r)).collect())
        .collect();
    (near, gold)
}

/// Refuses scores of a network that has diverged; the loop knows the step.
pub(super) fn finite(scores: &[f32]) -> Result<()> {
    match scores.iter().all(|score| score.is_finite()) {
        true => Ok(()),
        false => Err(Error::Diverged {
            what: "score of a relation".into(),
            step: 0,
            kept: None,
        }),
    }
}

/// How many of the gold places are among the first `k` by their scores. Of equal scores the gold
/// ones come last, and what is no number is not found.
pub(super) fn found(scores: &[f32], gold: &[u32], k: usize) -> usize {
    let is_found = |&(place, &r): &(usize, &u32)| {
        let score = scores[r as usize];
        let before = (0u32..).zip(scores).filter(|&(other, &s)| {
            let tied = s == score && !gold.contains(&other);
            s > score || tied || s.is_nan()
        });
        let gold_before = gold[..place]
            .iter()
            .filter(|&&o| scores[o as usize] == score);
        !score.is_nan() && before.count() + gold_before.count() < k
    };
    gold.iter().enumerate().filter(is_found).count()
}

pub(super) struct Run<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) config: RelationTrainConfig,
    pub(super) device: &'a Device,
    pub(super) encoder: Arc<dyn Encoder>,
    pub(super) learn: Asked,
    pub(super) valid: Asked,
    /// The words of every relation.
    pub(super) names: Vec<String>,
    pub(super) description: Description<Sizes>,
    pub(super) relations: Featured,
}

impl<'a> Run<'a> {
    pub(super) fn prepare(
        task: &'a Task<'a>,
        config: &RelationTrainConfig,
        device: &'a Device,
        see: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let encoder = encode::open(&config.encoder)?;
        let mut config = config.clone();
        config.sizes.dim = encoder.dim();
        config.sizes.tuned = false;
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
            Ok(Asked {
                texts,
                read: Featured::default(),
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
        let sizes = (config.sizes.clone(), encoder.name(), config.trainer.seed);
        let mut description =
            description::<RelationMatcher>(&task.data, sizes, &config, learn.len());
        task.note_init(&mut description.training)?;
        Ok(Self {
            task,
            config,
            device,
            encoder,
            learn,
            valid,
            names: relation_texts(task.graph)?,
            description,
            relations: Featured::default(),
        })
    }

    /// Turns all texts into what the towers take.
    pub(super) fn read_with(&mut self, encoder: Arc<dyn Encoder>, buckets: usize) -> Result<()> {
        let read = |texts: &[String], whole: bool| -> Result<Featured> {
            let names: Vec<&str> = texts.iter().map(String::as_str).collect();
            Ok(Featured {
                rows: encoder.encode(&names)?,
                features: (texts.iter())
                    .map(|text| features(text, whole, buckets))
                    .collect(),
            })
        };
        self.learn.read = read(&self.learn.texts, false)?;
        self.valid.read = read(&self.valid.texts, false)?;
        self.relations = read(&self.names, true)?;
        self.encoder = encoder;
        Ok(())
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
        for batch in all.chunks(self.config.trainer.batch_questions) {
            let questions = matcher.questions(&asked.featured(batch))?.detach();
            let scores = matcher.scores(&questions, &relations, &asked.near(batch))?;
            ranked.par_extend(rows(&scores)?.into_par_iter().map(|row| {
                let mut order: Vec<(u32, f32)> = (0u32..).zip(row).collect();
                order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                order.truncate(count);
                order
            }));
        }
        Ok(ranked)
    }

    /// The relations of a step, and the gold and near ones by their places among them.
    pub(super) fn chosen(
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
        for row in rows(&scores)? {
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
