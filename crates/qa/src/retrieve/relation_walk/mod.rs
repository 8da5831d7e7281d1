//! Follows the relations that the question tells, step by step from the topic. No training, no
//! language model.
//!
//! After KG-RAG's walk over sub-questions, with a rule-and-encoder reader in the place of the
//! language model: the words around the topic are told from the topic outwards (`reading.rs`), each
//! is compared with the relations of the graph (`affinity.rs`), and a path of relations is scored
//! by how well its steps tell those words in that order (`align.rs`). Paths are grown hop by hop,
//! only along edges that are there:
//!
//! ```text
//! score(p) = align(p, question) + κ Σ_j ln f_j  ± ½ if it is asked when and p leads to years, or not
//! ```
//!
//! f_j is the share of the entities before step j that have it: a step that few of them can take
//! is rarely meant. The `beam` best paths of each length are continued. The best `plans` of all
//! lengths are walked in full; each is a [`Plan`], and its triples and ends score σ(2·score).
//!
//! Limits: at most `sample` entities of a step's ends are looked at while paths are grown, so f_j
//! is an estimate. What is asked to be counted, compared or ranked is read off the question first
//! (`plans.rs`), and the kinds of things that a graph knows tell what is asked for (`kinds.rs`). A walk does not return to its topic, nor by the relation that it came by to where
//! it came from, unless it leads nowhere else; that costs ½.

mod affinity;
mod align;
mod kinds;
mod plans;
mod reading;

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use wherefore_graph::names::normalise;
use wherefore_graph::{Direction, EntityId, Graph, Hop};
use wherefore_model::{Encoder, encode};

use self::affinity::RelationWords;
use self::align::{Aligner, Fit, Step};
use self::kinds::Kinds;
use super::follow::walk;
use super::front::steps;
use super::{Plan, Retriever, ScoredTriples, sigmoid, turned_around};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::measure::{Attributes, value};
use crate::per_graph::PerGraph;
use crate::question::Question;
use crate::words::stem;

/// κ
const COVERAGE: f32 = 0.2;

/// What a step costs that only leads back.
const BACK: f32 = 0.5;

/// What a step is worth that leads to what belongs to things, by a relation called after their
/// kind: from a country against `country`.
const BELONGS: f32 = 0.2;

/// What it costs to lead to numbers or dates where it is asked who or where.
const VALUE: f32 = 0.5;

/// Paths that are kept of all lengths.
const MAX_DONE: usize = 64;

/// Steps that only pass a node without a name, beyond `hops`.
const MAX_THROUGH: usize = 2;

/// Settings of [`RelationWalk`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelationWalkConfig {
    /// Length of the longest path; nodes without a name are passed at no charge.
    pub hops: usize,
    /// Paths of each length that are continued.
    pub beam: usize,
    /// Entities of each step that are looked at while paths are grown.
    pub sample: usize,
    /// Paths that are walked in full.
    pub plans: usize,
    /// At most this many triples are walked.
    pub max_triples: usize,
    /// Paths are grown for at most so many milliseconds.
    pub time_limit_ms: u64,
    /// The encoder that compares words with relations.
    pub encoder: String,
}

impl Default for RelationWalkConfig {
    fn default() -> Self {
        Self {
            hops: 3,
            beam: 32,
            sample: 64,
            plans: 3,
            max_triples: 5000,
            time_limit_ms: 2000,
            encoder: "static".into(),
        }
    }
}

impl RelationWalkConfig {
    fn check(&self) -> Result<()> {
        if !(1..=4).contains(&self.hops) {
            return Err(Error::Config("`retrieve.hops` must be from 1 to 4".into()));
        }
        for (name, value) in [
            ("beam", self.beam),
            ("sample", self.sample),
            ("plans", self.plans),
            ("max_triples", self.max_triples),
        ] {
            if value == 0 {
                return Err(Error::Config(format!(
                    "`retrieve.{name}` must be at least 1"
                )));
            }
        }
        Ok(())
    }
}

/// Retrieves along the relations that the question tells.
pub struct RelationWalk {
    config: RelationWalkConfig,
    encoder: Arc<dyn Encoder>,
    words: PerGraph<RelationWords>,
    kinds: PerGraph<Kinds>,
    attributes: PerGraph<Attributes>,
}

impl RelationWalk {
    /// A retriever with these settings; opens the encoder.
    pub fn new(config: RelationWalkConfig) -> Result<Self> {
        config.check()?;
        Ok(Self {
            encoder: encode::open(&config.encoder)?,
            words: PerGraph::default(),
            kinds: PerGraph::default(),
            attributes: PerGraph::default(),
            config,
        })
    }
}

/// A path with its score.
struct Scored {
    steps: Vec<Step>,
    fit: Fit,
    /// Whether it leads to what is asked for, as far as that is known.
    answers: bool,
    score: f32,
}

impl Scored {
    fn hops(&self) -> Vec<Hop> {
        self.steps.iter().map(|s| s.hop).collect()
    }
}

/// A path while it grows.
struct Path {
    steps: Vec<Step>,
    /// Some of the entities it leads to.
    ends: Vec<EntityId>,
    /// Those before its last step.
    before: Vec<EntityId>,
    /// κ Σ ln f, less what steps back cost
    coverage: f32,
    fit: Fit,
    score: f32,
}

impl Retriever for RelationWalk {
    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        if let Some(refused) = turned_around(question, links) {
            return Ok(refused);
        }
        let (plans, in_time) = self.plans(question, links, graph)?;
        let notes = match in_time {
            true => Vec::new(),
            false => vec![format!(
                "paths were grown for {} ms and no longer",
                self.config.time_limit_ms
            )],
        };
        walk(links, plans, notes, self.config.max_triples, graph)
    }
}

impl RelationWalk {
    /// The best paths from the topic, best first, and whether there was time for all.
    fn grow(
        &self,
        topic: EntityId,
        kind: Option<EntityId>,
        aligner: &Aligner<'_>,
        kinds: &Kinds,
        graph: &dyn Graph,
        deadline: Instant,
    ) -> Result<(Vec<Scored>, bool)> {
        let mut layer = vec![Path {
            steps: Vec::new(),
            ends: vec![topic],
            before: Vec::new(),
            coverage: 0.0,
            fit: Fit::Open,
            score: 0.0,
        }];
        let mut done: Vec<Scored> = Vec::new();
        for _ in 0..self.config.hops + MAX_THROUGH {
            let mut next = Vec::new();
            let ends: Vec<EntityId> = layer.iter().flat_map(|p| &p.ends).copied().collect();
            graph.prefetch(&ends, Direction::Both)?;
            for path in &layer {
                if Instant::now() > deadline {
                    return Ok((best(done), false));
                }
                self.longer(path, topic, kind, aligner, kinds, graph, &mut next)?;
            }
            for path in &next {
                let answers = path.ends.iter().any(|&e| e != topic);
                if answers && path.steps.last().is_some_and(|s| !s.through) {
                    done.push(Scored {
                        steps: path.steps.clone(),
                        fit: path.fit,
                        answers: true,
                        score: path.score,
                    });
                }
            }
            next.sort_by(|a, b| b.score.total_cmp(&a.score));
            next.truncate(self.config.beam);
            layer = next;
        }
        Ok((best(done), true))
    }

    /// Adds every path that is one step longer.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, in a loop that has them all"
    )]
    fn longer(
        &self,
        path: &Path,
        topic: EntityId,
        kind: Option<EntityId>,
        aligner: &Aligner<'_>,
        kinds: &Kinds,
        graph: &dyn Graph,
        next: &mut Vec<Path>,
    ) -> Result<()> {
        let told = path.steps.iter().filter(|s| !s.through).count();
        let through = path.steps.len() - told;
        if told == self.config.hops {
            return Ok(());
        }
        let last = path.steps.last().filter(|s| s.through).map(|s| s.hop);
        let before = path.steps.last().map(|s| s.hop);
        let is_of_kind = |entity| match kind {
            Some(kind) => kinds.is(entity, kind, graph),
            None => Ok(false),
        };
        let from = (&path.ends[..], &path.before[..], before);
        for (hop, mut step) in steps(from, topic, graph, self.config.sample, &is_of_kind)? {
            // out of a node without a name by the relation that led in: only back
            if last.is_some_and(|last| hop.undoes(&last)) {
                continue;
            }
            // of what kind a thing is, is no step, unless a kind is the topic
            if kinds.is_type(hop.relation) && !kinds.has(topic) {
                continue;
            }
            let mut unnamed = 0;
            for &end in &step.ends {
                unnamed += usize::from(!graph.is_named(end)?);
            }
            let passing = unnamed * 2 > step.ends.len();
            if passing && through == MAX_THROUGH {
                continue;
            }
            let mut steps = path.steps.clone();
            steps.push(Step {
                hop,
                through: passing,
            });
            let share = step.takers as f32 / path.ends.len() as f32;
            let mut coverage = path.coverage + COVERAGE * share.ln();
            if step.only_back {
                coverage -= BACK;
            }
            if !hop.forward && kinds.belongs(hop.relation, &path.ends, graph)? {
                coverage += BELONGS;
            }
            let fit = match (kind, aligner.target()) {
                _ if passing => Fit::Open,
                (Some(_), _) if !step.notable.is_empty() => Fit::Kind,
                (_, Some(word)) if are_called(&step.ends, word, graph)? => Fit::Called,
                (Some(_), _) => Fit::OtherKind,
                _ => Fit::Open,
            };
            let mut score = aligner.score(&steps, fit) + coverage;
            if aligner.asks_who() && !passing && are_values(&step.ends, graph)? {
                score -= VALUE;
            }
            if aligner.asks_when() && !passing {
                score += if are_years(&step.ends, graph)? {
                    0.5
                } else {
                    -0.5
                };
            }
            next.push(Path {
                steps,
                ends: std::mem::take(&mut step.ends),
                before: path.ends.clone(),
                coverage,
                fit,
                score,
            });
        }
        Ok(())
    }
}

/// The best paths, best first; of equals the shorter.
fn best(mut done: Vec<Scored>) -> Vec<Scored> {
    done.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.steps.len().cmp(&b.steps.len()))
            .then_with(|| a.hops().cmp(&b.hops()))
    });
    done.truncate(MAX_DONE);
    done
}

/// Whether most of the labels are years or dates.
fn are_years(entities: &[EntityId], graph: &dyn Graph) -> Result<bool> {
    most(entities, graph, |label| {
        let digits = label.bytes().take_while(u8::is_ascii_digit).count();
        digits == 4 && label.as_bytes().get(4).is_none_or(|&b| b == b'-')
    })
}

/// Whether most of the labels are numbers or dates.
fn are_values(entities: &[EntityId], graph: &dyn Graph) -> Result<bool> {
    most(entities, graph, |label| value(label).is_some())
}

/// Whether most of the labels hold a word with the stem of `word`: World Series 2010, `series`.
fn are_called(entities: &[EntityId], word: &str, graph: &dyn Graph) -> Result<bool> {
    let wanted = stem(word);
    most(entities, graph, |label| {
        normalise(label).split(' ').any(|w| stem(w) == wanted)
    })
}

/// Whether more than half of the labels are so; the first few stand for all.
fn most(entities: &[EntityId], graph: &dyn Graph, is_so: impl Fn(&str) -> bool) -> Result<bool> {
    let looked = &entities[..entities.len().min(16)];
    let mut so = 0;
    for &entity in looked {
        so += usize::from(is_so(&graph.entity_label(entity)?));
    }
    Ok(so * 2 > looked.len())
}

#[cfg(test)]
mod tests {
    use wherefore_graph::toy;

    use super::super::follow::{follow, tests::movies};
    use super::*;
    use crate::link::{Linker, Names, NamesConfig};

    fn plan(text: &str, graph: &dyn Graph) -> (Vec<String>, Vec<String>) {
        let question = Question::new(text);
        let links = Names::new(NamesConfig::default())
            .unwrap()
            .link(&question, graph)
            .unwrap();
        let walk = RelationWalk::new(RelationWalkConfig::default()).unwrap();
        let scored = walk.retrieve(&question, &links[..1], graph).unwrap();
        let best = scored.plans.first().expect("a plan");
        let hops = best.hops.iter().map(|hop| {
            let arrow = if hop.forward { "" } else { "-" };
            let label = graph.relation_label(hop.relation).unwrap();
            format!("{arrow}{label}")
        });
        let (_, ends, _) = follow(best, graph, 1000).unwrap();
        let ends = ends
            .iter()
            .map(|&e| graph.entity_label(e).unwrap().into_owned());
        (hops.collect(), ends.collect())
    }

    #[test]
    fn relations_are_followed_as_the_question_tells_them() {
        let graph = movies();
        for (text, hops, end) in [
            ("who directed Alien", vec!["directed by"], "Ridley Scott"),
            ("when was Alien released", vec!["release year"], "1979"),
            (
                "which films did Ridley Scott direct",
                vec!["-directed by"],
                "Alien",
            ),
            (
                "who starred in the films directed by Ridley Scott",
                vec!["-directed by", "starred actors"],
                "Sigourney Weaver",
            ),
            (
                "who starred in films directed by the director of Alien",
                vec!["directed by", "-directed by", "starred actors"],
                "Russell Crowe",
            ),
            (
                "the films that share actors with Alien were directed by who",
                vec!["starred actors", "-starred actors", "directed by"],
                "Ivan Reitman",
            ),
        ] {
            let (found, ends) = plan(text, &graph);
            assert_eq!(found, hops, "{text}");
            assert!(ends.contains(&end.to_owned()), "{text}: {ends:?}");
        }
    }

    #[test]
    fn a_question_that_tells_nothing_gives_no_plan() {
        let graph = toy::graph();
        let question = Question::new("?? Lou Seal").about(["Lou Seal"]);
        let links = Names::new(NamesConfig::default())
            .unwrap()
            .link(&question, &graph)
            .unwrap();
        let walk = RelationWalk::new(RelationWalkConfig::default()).unwrap();
        let scored = walk.retrieve(&question, &links, &graph).unwrap();
        assert!(scored.plans.is_empty() && scored.subgraph.triples().is_empty());
    }
}
