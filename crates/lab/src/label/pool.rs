//! The candidates that a judge picks from.
//!
//! ReG, section 4.1 and appendix E.2:
//!
//! ```text
//! P = shortest paths from topics to the answer ∪ one step around topics ∪ one step around the answer
//! ```
//!
//! One answer stands for all (answer merging): the first that a topic has a path to. Paths with the
//! same topic and relations are one candidate (relation-chain merging), shown by the first of
//! them; picking it picks all its paths to any answer.
//!
//! Departures: of an entity with many relations, those with the fewest ends are offered, for they
//! say most; at most [`PoolConfig::per_entity`]. A candidate keeps at most
//! [`PoolConfig::per_candidate`] paths.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use wherefore::graph::{
    Direction, EntityId, Graph, Hop, PathFinder, PathLimits, Step, edges_by_relation,
};
use wherefore::organize::one_line;

use crate::error::Result;

/// How many candidates there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolConfig {
    /// Sequences of relations on shortest paths, at most.
    pub sequences: usize,
    /// Relations around each topic and around the answer, at most.
    pub per_entity: usize,
    /// Paths that a candidate stands for, at most.
    pub per_candidate: usize,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            sequences: 16,
            per_entity: 8,
            per_candidate: 64,
        }
    }
}

/// What a judge may pick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// As it is shown.
    pub text: String,
    /// Whether it leads from a topic to the answer.
    pub is_path: bool,
    /// All that it stands for.
    pub paths: Vec<Vec<Step>>,
}

/// The candidates of a question, paths first.
pub fn pool(
    graph: &dyn Graph,
    topics: &[EntityId],
    answers: &[EntityId],
    config: &PoolConfig,
) -> Result<Vec<Candidate>> {
    let mut finder = PathFinder::default();
    let limits = PathLimits::default();
    let mut shown: BTreeMap<(EntityId, Vec<Hop>), Vec<Step>> = BTreeMap::new();
    let mut order: Vec<(EntityId, Vec<Hop>)> = Vec::new();
    let mut answer = None;
    for &candidate in answers {
        for &topic in topics {
            let (from, to) = ([topic], [candidate]);
            let found = finder.shortest_paths(graph, &from, &to, Direction::Both, &limits)?;
            for path in found.paths(256) {
                if path.steps.is_empty() {
                    continue;
                }
                answer = Some(candidate);
                let key = (topic, hops(&path.steps));
                if let Entry::Vacant(place) = shown.entry(key) {
                    order.push(place.key().clone());
                    place.insert(path.steps);
                }
            }
        }
        if answer.is_some() {
            break;
        }
    }
    let mut candidates = Vec::new();
    order.truncate(config.sequences);
    let mut told: HashSet<(EntityId, Hop)> = HashSet::new();
    for key in order {
        let (topic, sequence) = &key;
        if let [hop] = sequence[..] {
            told.insert((*topic, hop));
        }
        let mut paths = walks(graph, *topic, sequence, answers, config.per_candidate)?;
        let first = &shown[&key];
        if !paths.contains(first) {
            paths.insert(0, first.clone());
        }
        candidates.push(Candidate {
            text: written(graph, first)?,
            is_path: true,
            paths,
        });
    }
    for &topic in topics {
        around(graph, &[topic], topic, &mut told, config, &mut candidates)?;
    }
    if let Some(answer) = answer {
        let all: Vec<EntityId> = answers.to_vec();
        around(graph, &all, answer, &mut told, config, &mut candidates)?;
    }
    Ok(candidates)
}

fn hops(steps: &[Step]) -> Vec<Hop> {
    let hop = |step: &Step| Hop {
        relation: step.triple.relation,
        forward: step.forward,
    };
    steps.iter().map(hop).collect()
}

/// The paths from a topic along some relations to answers.
fn walks(
    graph: &dyn Graph,
    topic: EntityId,
    sequence: &[Hop],
    answers: &[EntityId],
    most: usize,
) -> Result<Vec<Vec<Step>>> {
    let mut done = Vec::new();
    let mut open: Vec<Vec<Step>> = vec![Vec::new()];
    // depth first, so that the limit leaves whole paths
    while let Some(path) = open.pop() {
        let at = path.last().map_or(topic, Step::to);
        if path.len() == sequence.len() {
            if answers.contains(&at) {
                done.push(path);
                if done.len() == most {
                    break;
                }
            }
            continue;
        }
        let hop = sequence[path.len()];
        let edges = match hop.forward {
            true => graph.outgoing(at)?,
            false => graph.incoming(at)?,
        };
        for edge in edges_by_relation(&edges, hop.relation)
            .iter()
            .take(256)
            .rev()
        {
            if edge.entity != topic && open.len() < 4096 {
                let step = Step::new(at, *edge, hop.forward);
                open.push([path.as_slice(), &[step]].concat());
            }
        }
    }
    Ok(done)
}

/// One step around an entity, each relation once; the others, where there are some, have it too.
fn around(
    graph: &dyn Graph,
    all: &[EntityId],
    shown: EntityId,
    told: &mut HashSet<(EntityId, Hop)>,
    config: &PoolConfig,
    candidates: &mut Vec<Candidate>,
) -> Result<()> {
    let naming = graph.naming_relations();
    let mut found: Vec<(usize, Hop, Step)> = Vec::new();
    for (forward, edges) in [
        (true, graph.outgoing(shown)?),
        (false, graph.incoming(shown)?),
    ] {
        let mut at = 0;
        while at < edges.len() {
            let relation = edges[at].relation;
            let end = at + edges[at..].partition_point(|e| e.relation == relation);
            let hop = Hop { relation, forward };
            if !naming.contains(&relation) && told.insert((shown, hop)) {
                found.push((end - at, hop, Step::new(shown, edges[at], forward)));
            }
            at = end;
        }
    }
    found.sort_by_key(|(count, hop, _)| (*count, *hop));
    found.truncate(config.per_entity);
    for (_, hop, first) in found {
        let mut paths = vec![vec![first]];
        for &entity in all {
            let edges = match hop.forward {
                true => graph.outgoing(entity)?,
                false => graph.incoming(entity)?,
            };
            for edge in edges_by_relation(&edges, hop.relation) {
                let path = vec![Step::new(entity, *edge, hop.forward)];
                if paths.len() < config.per_candidate && !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        candidates.push(Candidate {
            text: written(graph, &[first])?,
            is_path: false,
            paths,
        });
    }
    Ok(())
}

/// `a -> [r] -> b <- [s] <- c`
fn written(graph: &dyn Graph, steps: &[Step]) -> Result<String> {
    let name = |entity: EntityId| -> Result<String> {
        Ok(match graph.is_named(entity)? {
            true => one_line(&graph.entity_label(entity)?),
            false => "?".into(),
        })
    };
    let mut text = match steps.first() {
        Some(first) => name(first.from())?,
        None => String::new(),
    };
    for step in steps {
        let arrow = if step.forward { "->" } else { "<-" };
        let relation = one_line(&graph.relation_label(step.triple.relation)?);
        text += &format!(" {arrow} [{relation}] {arrow} {}", name(step.to())?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use wherefore::graph::{MemoryGraph, NameMatch};

    use super::*;

    fn texts(graph: &MemoryGraph, topics: &[&str], answers: &[&str]) -> Vec<(String, usize)> {
        let named = |names: &[&str]| -> Vec<EntityId> {
            let find = |n: &&str| graph.entities_named(n, NameMatch::Exact).unwrap()[0];
            names.iter().map(find).collect()
        };
        let found = pool(
            graph,
            &named(topics),
            &named(answers),
            &PoolConfig::default(),
        );
        let found = found.unwrap();
        found.into_iter().map(|c| (c.text, c.paths.len())).collect()
    }

    #[test]
    fn one_answer_and_one_path_of_each_kind_stand_for_all() {
        let graph = MemoryGraph::from_names([
            ("Giants", "won", "Series 2010"),
            ("Giants", "won", "Series 2012"),
            ("Giants", "lost", "Series 2002"),
            ("Seal", "mascot of", "Giants"),
            ("Seal", "born", "1996"),
            ("Series 2010", "year", "2010"),
            ("Series 2012", "year", "2012"),
        ]);
        let found = texts(&graph, &["Seal"], &["Series 2010", "Series 2012"]);
        assert_eq!(
            found,
            [
                (
                    "Seal -> [mascot of] -> Giants -> [won] -> Series 2010".into(),
                    2
                ),
                ("Seal -> [mascot of] -> Giants".into(), 1),
                ("Seal -> [born] -> 1996".into(), 1),
                ("Series 2010 <- [won] <- Giants".into(), 2),
                ("Series 2010 -> [year] -> 2010".into(), 2),
            ]
        );
    }

    #[test]
    fn a_question_whose_answer_is_not_reached_has_its_topics_alone() {
        let graph = MemoryGraph::from_names([("a", "r", "b"), ("c", "s", "d")]);
        let found = texts(&graph, &["a"], &["d"]);
        assert_eq!(found, [("a -> [r] -> b".to_owned(), 1)]);
        assert!(texts(&graph, &[], &["d"]).is_empty());
    }
}
