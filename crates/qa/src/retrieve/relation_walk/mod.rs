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
mod follow;
mod kinds;
mod plans;
mod reading;

use std::sync::Arc;
use std::time::Instant;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use wherefore_graph::names::normalise;
use wherefore_graph::{Direction, Edge, EntityId, Graph, Hop, Subgraph, Triple};
use wherefore_model::{Encoder, encode};

use self::affinity::RelationWords;
use self::align::{Aligner, Fit, Step};
use self::follow::follow;
use self::kinds::Kinds;
use super::{Operation, Plan, Retriever, ScoredTriples, sigmoid};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::measure::Attributes;
use crate::per_graph::PerGraph;
use crate::question::Question;
use crate::words::{stem, tokens};

/// κ
const COVERAGE: f32 = 0.2;

/// What a step costs that only leads back.
const BACK: f32 = 0.5;

/// What a step is worth that leads to what belongs to things, by a relation called after their
/// kind: from a country against `country`.
const BELONGS: f32 = 0.2;

/// Things of the kind that is asked for that are kept of a step.
const MAX_OF_KIND: usize = 8;

/// Edges of one entity that are read while paths are grown.
const MAX_EDGES: usize = 512;

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
        let (plans, in_time) = self.plans(question, links, graph)?;
        let notes = match in_time {
            true => Vec::new(),
            false => vec![format!(
                "paths were grown for {} ms and no longer",
                self.config.time_limit_ms
            )],
        };
        self.walk(links, plans, notes, graph)
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
        for (hop, mut step) in self.steps(path, topic, kind, kinds, graph)? {
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
                (Some(_), _) if !step.of_kind.is_empty() => Fit::Kind,
                (_, Some(word)) if are_called(&step.ends, word, graph)? => Fit::Called,
                (Some(_), _) => Fit::OtherKind,
                _ => Fit::Open,
            };
            let mut score = aligner.score(&steps, fit) + coverage;
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

    /// Every step that some of the path's ends can take, with the ends that were seen.
    fn steps(
        &self,
        path: &Path,
        topic: EntityId,
        kind: Option<EntityId>,
        kinds: &Kinds,
        graph: &dyn Graph,
    ) -> Result<Vec<(Hop, Taken)>> {
        let naming = graph.naming_relations();
        let mut steps: HashMap<Hop, Taken> = HashMap::new();
        let last = path.steps.last().map(|s| s.hop);
        for &entity in &path.ends {
            for (forward, edges) in [
                (true, graph.outgoing(entity)?),
                (false, graph.incoming(entity)?),
            ] {
                // rows are sorted by relation; of a long row every relation is still seen
                let mut at = 0;
                while at < edges.len() {
                    let relation = edges[at].relation;
                    let end = at + edges[at..].partition_point(|e| e.relation == relation);
                    if !naming.contains(&relation) {
                        let hop = Hop { relation, forward };
                        let taken = steps.entry(hop).or_default();
                        let before = match last {
                            Some(last) if hop.undoes(&last) => &path.before[..],
                            _ => &[],
                        };
                        let back = |e: EntityId| e == topic || before.contains(&e);
                        let some = &edges[at..end.min(at + MAX_EDGES)];
                        taken.add(some, &back, self.config.sample);
                        if let Some(kind) = kind {
                            taken.add_kind(some, &back, kind, kinds, graph)?;
                        }
                    }
                    at = end;
                }
            }
        }
        let mut steps: Vec<(Hop, Taken)> = steps.into_iter().collect();
        for (_, taken) in &mut steps {
            if taken.ends.is_empty() {
                taken.only_back = true;
                taken.ends = std::mem::take(&mut taken.back);
            }
        }
        steps.sort_by_key(|(hop, _)| *hop);
        Ok(steps)
    }

    /// Walks the plans in full.
    fn walk(
        &self,
        links: &[Link],
        plans: Vec<Plan>,
        mut notes: Vec<String>,
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let mut scores: HashMap<Triple, f32> = HashMap::new();
        let mut triples: Vec<Triple> = Vec::new();
        let mut ends: HashMap<EntityId, f32> = HashMap::new();
        let mut cut = false;
        for plan in &plans {
            let left = self.config.max_triples.saturating_sub(triples.len());
            let (walked, reached, whole) = follow(plan, graph, left)?;
            cut |= !whole;
            for triple in walked {
                let score = scores.entry(triple).or_insert_with(|| {
                    triples.push(triple);
                    0.0
                });
                *score = score.max(plan.score);
            }
            for end in reached {
                if graph.is_named(end)? {
                    let score = ends.entry(end).or_insert(0.0);
                    *score = score.max(plan.score);
                }
            }
        }
        if cut {
            notes.push(format!(
                "only {} triples were walked",
                self.config.max_triples
            ));
        }
        let mut seeds: Vec<EntityId> = links.iter().map(|l| l.entity).collect();
        for plan in &plans {
            // a kind of thing is a topic that nobody linked
            if !seeds.contains(&plan.topic) {
                seeds.push(plan.topic);
            }
        }
        let subgraph = Subgraph::from_triples(&seeds, &triples);
        let triple_scores = (0..subgraph.triples().len())
            .map(|i| scores.get(&subgraph.triple(i)).copied().unwrap_or(0.0))
            .collect();
        let entity_scores = subgraph
            .entities()
            .iter()
            .map(|e| ends.get(e).copied().unwrap_or(0.0))
            .collect();
        Ok(ScoredTriples {
            topics: seeds.iter().filter_map(|&s| subgraph.find(s)).collect(),
            subgraph,
            triple_scores,
            entity_scores,
            plans,
            notes,
            ..ScoredTriples::default()
        })
    }
}

/// What a step leads to.
#[derive(Default)]
struct Taken {
    /// Entities that can take it.
    takers: usize,
    /// Some of its ends, each once.
    ends: Vec<EntityId>,
    /// Some of those that are of the kind that is asked for.
    of_kind: Vec<EntityId>,
    /// Some of those that lead back.
    back: Vec<EntityId>,
    /// Whether `ends` are of the latter kind.
    only_back: bool,
    seen: HashSet<EntityId>,
}

impl Taken {
    /// Looks among all ends for things of a kind: of the ends that a country has, few are lakes.
    fn add_kind(
        &mut self,
        edges: &[Edge],
        is_back: &dyn Fn(EntityId) -> bool,
        kind: EntityId,
        kinds: &Kinds,
        graph: &dyn Graph,
    ) -> Result<()> {
        for edge in edges {
            if self.of_kind.len() == MAX_OF_KIND {
                break;
            }
            if !is_back(edge.entity) && kinds.is(edge.entity, kind, graph)? {
                self.of_kind.push(edge.entity);
            }
        }
        Ok(())
    }

    fn add(&mut self, edges: &[Edge], is_back: &dyn Fn(EntityId) -> bool, sample: usize) {
        self.takers += 1;
        for edge in edges {
            if self.ends.len() == sample {
                break;
            }
            if !self.seen.insert(edge.entity) {
                continue;
            }
            if is_back(edge.entity) {
                self.back.push(edge.entity);
            } else {
                self.ends.push(edge.entity);
            }
        }
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

/// Where the label stands in the question, as a byte range.
fn label_span(text: &str, label: &str) -> Option<(usize, usize)> {
    let label = normalise(label);
    let count = label.split(' ').count();
    let words = tokens(text);
    words.windows(count.max(1)).find_map(|window| {
        let (first, last) = (window.first()?, window.last()?);
        [last.end, last.bare_end]
            .into_iter()
            .find(|&end| normalise(&text[first.start..end]) == label)
            .map(|end| (first.start, end))
    })
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, toy};

    use super::*;
    use crate::link::{Linker, Names, NamesConfig};

    pub(super) fn movies() -> MemoryGraph {
        MemoryGraph::from_names([
            ("Alien", "directed_by", "Ridley Scott"),
            ("Alien", "starred_actors", "Sigourney Weaver"),
            ("Alien", "release_year", "1979"),
            ("Alien", "written_by", "Dan Bannon"),
            ("Gladiator", "directed_by", "Ridley Scott"),
            ("Gladiator", "starred_actors", "Russell Crowe"),
            ("Gladiator", "release_year", "2000"),
            ("Ghostbusters", "starred_actors", "Sigourney Weaver"),
            ("Ghostbusters", "directed_by", "Ivan Reitman"),
            ("Ghostbusters", "has_genre", "Comedy"),
        ])
    }

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

    #[test]
    fn labels_are_found_in_the_question() {
        assert_eq!(
            label_span("who is Lou_Seal's friend", "Lou Seal"),
            Some((7, 15))
        );
        assert_eq!(label_span("who is it", "Lou Seal"), None);
    }
}
