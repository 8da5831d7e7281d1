//! Positive triples: those on any shortest path between a topic and an answer.
//!
//! Zhang et al., "Subgraph Retrieval Enhanced Model", ACL 2022; SubgraphRAG; QSRAG:
//!
//! ```text
//! T⁺ = ⋃_{q ∈ topics, a ∈ answers} { t : t on a shortest path from q to a }
//! ```
//!
//! Shortest is meant for each pair, so a far answer has its paths as well as a near one. Within
//! a question's subgraph the search sees that subgraph alone: a path that leaves it is none.
//! Edges are walked both ways unless `direction` says otherwise, since relations are often
//! stored one way. An answer that is itself a topic gives no triple.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use wherefore_graph::{Adjacency, Direction, EntityId, PathFinder, PathLimits, Subgraph, Triple};

use crate::error::Result;

/// How positive triples are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShortestPaths {
    /// Which way edges are walked from topic to answer.
    pub direction: Direction,
    /// How long paths may be and how long may be looked for them, for each pair.
    pub limits: PathLimits,
}

/// The positive triples of one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positives {
    /// The triples, sorted, each once.
    pub triples: Vec<Triple>,
    /// Steps between a topic and the nearest answer; none where no path was found.
    pub nearest: Option<u32>,
    /// Steps between a topic and the farthest answer that has a path.
    pub farthest: Option<u32>,
    /// Answers that no topic has a path to.
    pub unreached: usize,
    /// Whether every search came to its end within the limits; otherwise triples may be missing.
    pub complete: bool,
}

/// Positives of a subgraph as one label for each of its triples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubgraphLabels {
    /// Whether triple `i` of the subgraph is positive.
    pub positive: Vec<bool>,
    /// The same as triples, in the subgraph's own ids.
    pub positives: Positives,
}

impl ShortestPaths {
    /// The positive triples of a question whose topics and answers are entities of `graph`.
    pub fn positives(
        &self,
        graph: &dyn Adjacency,
        topics: &[EntityId],
        answers: &[EntityId],
    ) -> Result<Positives> {
        let mut finder = PathFinder::default();
        let mut found = Positives {
            complete: true,
            ..Positives::default()
        };
        let mut distinct = answers.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        for &answer in &distinct {
            let mut reached = None;
            for &topic in topics {
                let paths = finder.shortest_paths(
                    graph,
                    &[topic],
                    &[answer],
                    self.direction,
                    &self.limits,
                )?;
                found.complete &= paths.is_complete();
                found.triples.extend(paths.triples());
                if let Some(length) = paths.length() {
                    let length = length as u32;
                    reached = Some(reached.map_or(length, |r: u32| r.min(length)));
                }
            }
            match reached {
                Some(length) => {
                    found.nearest = Some(found.nearest.map_or(length, |n| n.min(length)));
                    found.farthest = Some(found.farthest.map_or(length, |f| f.max(length)));
                }
                None => found.unreached += 1,
            }
        }
        found.triples.sort_unstable();
        found.triples.dedup();
        Ok(found)
    }

    /// Labels every triple of a question's subgraph. Topics and answers are entities of the
    /// larger graph; those outside the subgraph count as unreached.
    pub fn label(
        &self,
        subgraph: &Subgraph,
        topics: &[EntityId],
        answers: &[EntityId],
    ) -> Result<SubgraphLabels> {
        let own: HashMap<EntityId, EntityId> = subgraph
            .entities()
            .iter()
            .zip(0..)
            .map(|(&entity, own)| (entity, EntityId(own)))
            .collect();
        let inside = |entities: &[EntityId]| -> Vec<EntityId> {
            entities
                .iter()
                .filter_map(|e| own.get(e).copied())
                .collect()
        };
        let within = inside(answers);
        let mut positives = self.positives(subgraph, &inside(topics), &within)?;
        positives.unreached += answers.len() - within.len();
        Ok(SubgraphLabels {
            positive: subgraph
                .triples()
                .iter()
                .map(|t| positives.triples.binary_search(t).is_ok())
                .collect(),
            positives,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wherefore_graph::{Graph, MemoryGraph, NameMatch, toy};

    use super::*;

    fn entity(graph: &dyn Graph, name: &str) -> EntityId {
        graph.entities_named(name, NameMatch::Exact).unwrap()[0]
    }

    fn shown(graph: &dyn Graph, triples: &[Triple]) -> Vec<String> {
        let mut shown: Vec<_> = triples
            .iter()
            .map(|t| {
                let label = |e| graph.entity_label(e).unwrap().into_owned();
                format!(
                    "{} {} {}",
                    label(t.head),
                    graph.relation_label(t.relation).unwrap(),
                    label(t.tail)
                )
            })
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn each_answer_has_its_own_shortest_paths() {
        let graph = toy::graph();
        let topic = entity(&graph, "Lou Seal");
        // 2 steps to the city by way of the club alone; the way over the park has 3
        let city = entity(&graph, "San Francisco");
        let found = ShortestPaths::default()
            .positives(&graph, &[topic], &[city])
            .unwrap();
        assert_eq!(
            shown(&graph, &found.triples),
            [
                "Lou Seal mascot of San Francisco Giants",
                "San Francisco Giants located in San Francisco",
            ]
        );
        // France lies 4 steps away; its paths are added, the shared first step once
        let france = entity(&graph, "France");
        let found = ShortestPaths::default()
            .positives(&graph, &[topic], &[france, city, city])
            .unwrap();
        assert_eq!(found.triples.len(), 2 + 3);
        assert_eq!(
            (found.nearest, found.farthest, found.unreached),
            (Some(2), Some(4), 0)
        );
        assert!(found.complete);
    }

    #[test]
    fn direction_and_length_are_kept() {
        let graph = toy::graph();
        let (series, seal) = (
            entity(&graph, "World Series 2014"),
            entity(&graph, "Lou Seal"),
        );
        let both = ShortestPaths::default();
        assert_eq!(
            both.positives(&graph, &[series], &[seal])
                .unwrap()
                .triples
                .len(),
            2
        );
        let outgoing = ShortestPaths {
            direction: Direction::Outgoing,
            ..ShortestPaths::default()
        };
        let found = outgoing.positives(&graph, &[series], &[seal]).unwrap();
        assert!(found.triples.is_empty() && found.unreached == 1 && found.nearest.is_none());
        let mut short = ShortestPaths::default();
        short.limits.max_length = 1;
        assert_eq!(
            short
                .positives(&graph, &[series], &[seal])
                .unwrap()
                .unreached,
            1
        );
        // a topic that answers itself needs no triple
        let own = both.positives(&graph, &[seal], &[seal]).unwrap();
        assert_eq!(
            (own.triples.len(), own.nearest, own.unreached),
            (0, Some(0), 0)
        );
    }

    #[test]
    fn a_subgraph_is_labelled_by_what_lies_inside_it() {
        let graph = toy::graph();
        let [seal, giants, park, city, france] = [
            "Lou Seal",
            "San Francisco Giants",
            "Oracle Park",
            "San Francisco",
            "France",
        ]
        .map(|n| entity(&graph, n));
        let all: Vec<Triple> = graph.triples().collect();
        let pick = |h, t| *all.iter().find(|x| x.head == h && x.tail == t).unwrap();
        // the direct way from club to city is cut out of the subgraph: 3 steps are left
        let kept = [
            pick(seal, giants),
            pick(giants, park),
            pick(park, city),
            pick(giants, entity(&graph, "Bruce Bochy")),
        ];
        let subgraph = Subgraph::from_triples(&[], &kept);
        let labels = ShortestPaths::default()
            .label(&subgraph, &[seal], &[city, france])
            .unwrap();
        assert_eq!(labels.positive, [true, true, true, false]);
        assert_eq!(labels.positives.nearest, Some(3));
        assert_eq!(labels.positives.unreached, 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn positives_equal_those_by_distances(
            edges in prop::collection::vec((0u32..6, 0u32..2, 0u32..6), 1..12),
        ) {
            let triples: Vec<Triple> = edges.iter().map(|&(h, r, t)| Triple::new(h, r, t)).collect();
            let graph = MemoryGraph::from_ids(6, 2, triples.clone());
            let limits = PathLimits { max_length: 9, ..PathLimits::default() };
            let found = ShortestPaths { limits, ..ShortestPaths::default() }
                .positives(&graph, &[EntityId(0)], &[EntityId(5)])
                .unwrap();
            // a triple is positive if d(topic, one end) + 1 + d(other end, answer) = d(topic, answer)
            let far = 100usize;
            let mut d = [[far; 6]; 6];
            for (i, row) in d.iter_mut().enumerate() { row[i] = 0; }
            for t in &triples {
                if t.head != t.tail {
                    d[t.head.index()][t.tail.index()] = 1;
                    d[t.tail.index()][t.head.index()] = 1;
                }
            }
            for k in 0..6 { for i in 0..6 { for j in 0..6 {
                d[i][j] = d[i][j].min(d[i][k] + d[k][j]);
            } } }
            let mut plain: Vec<Triple> = triples.into_iter().filter(|t| {
                let (h, e) = (t.head.index(), t.tail.index());
                d[0][5] < far && (d[0][h] + 1 + d[e][5] == d[0][5] || d[0][e] + 1 + d[h][5] == d[0][5])
            }).collect();
            plain.sort_unstable();
            plain.dedup();
            prop_assert_eq!(found.triples, plain);
        }
    }
}
