//! The part of the graph that a trained retriever looks at: some hops around the topics, and of
//! these, where they are too many, what a restarting walk from the topics visits most.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wherefore_graph::{
    Direction, EntityId, Expansion, Graph, PageRank, RankBudget, Subgraph, expand,
    pagerank_subgraph,
};

use crate::error::{Error, Result};

/// How the neighbourhood of a question's topics is cut out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NeighbourhoodConfig {
    /// Hops from a topic, along edges and against them.
    pub hops: usize,
    /// Most entities; where there are more, those that rank best around the topics.
    pub max_entities: usize,
    /// Most triples.
    pub max_triples: usize,
    /// Most edges of one entity that are followed in each direction.
    pub max_fan_out: usize,
    /// Most triples that are looked at before entities are ranked.
    pub max_seen: usize,
    /// The neighbourhood is cut out for at most so many milliseconds.
    pub time_limit_ms: u64,
}

impl Default for NeighbourhoodConfig {
    fn default() -> Self {
        Self {
            hops: 2,
            max_entities: 2_000,
            max_triples: 20_000,
            max_fan_out: 10_000,
            max_seen: 200_000,
            time_limit_ms: 5_000,
        }
    }
}

impl NeighbourhoodConfig {
    /// Refuses what no neighbourhood can keep.
    pub fn check(&self) -> Result<()> {
        if !(1..=4).contains(&self.hops) {
            return Err(Error::Config(
                "`neighbourhood.hops` must be from 1 to 4".into(),
            ));
        }
        for (name, value) in [
            ("max_entities", self.max_entities),
            ("max_triples", self.max_triples),
            ("max_fan_out", self.max_fan_out),
            ("max_seen", self.max_seen),
        ] {
            if value == 0 {
                return Err(Error::Config(format!(
                    "`neighbourhood.{name}` must be at least 1"
                )));
            }
        }
        Ok(())
    }
}

/// A neighbourhood. Its entities begin with the topics, each once.
#[derive(Debug, Default)]
pub struct Neighbourhood {
    /// What was cut out.
    pub subgraph: Subgraph,
    /// The topics, in the subgraph's own ids.
    pub topics: Vec<EntityId>,
    /// What had to be left out, in words for the user.
    pub notes: Vec<String>,
}

impl Neighbourhood {
    /// Cuts out the neighbourhood of `topics`.
    pub fn cut(
        graph: &dyn Graph,
        topics: &[EntityId],
        config: &NeighbourhoodConfig,
    ) -> Result<Self> {
        let expansion = Expansion {
            hops: config.hops,
            direction: Direction::Both,
            max_fan_out: config.max_fan_out,
            max_triples: config.max_seen,
            time_limit: Some(Duration::from_millis(config.time_limit_ms)),
            skip: graph.naming_relations().to_vec(),
        };
        let expanded = expand(graph, topics, &expansion)?;
        let mut notes = expanded.cut.describe();
        let mut distinct = topics.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let topics: Vec<EntityId> = (0..distinct.len() as u32).map(EntityId).collect();
        let whole = expanded.subgraph;
        let (entities, triples) = (whole.entities().len(), whole.triples().len());
        if entities <= config.max_entities && triples <= config.max_triples {
            return Ok(Self {
                subgraph: whole,
                topics,
                notes,
            });
        }
        let ranked = pagerank_subgraph(
            &whole,
            &topics,
            &PageRank {
                tolerance: 1e-5,
                ..PageRank::default()
            },
            &RankBudget {
                max_entities: config.max_entities,
                max_triples: config.max_triples,
            },
        )?
        .subgraph;
        notes.push(format!(
            "{} of {entities} entities near the topics were looked at, with {} of {triples} triples",
            ranked.entities().len(),
            ranked.triples().len(),
        ));
        let entities = ranked.entities().iter().map(|e| whole.entity(*e));
        let relations = ranked.relations().iter();
        let relations = relations.map(|r| whole.relations()[r.index()]);
        Ok(Self {
            subgraph: Subgraph::new(
                entities.collect(),
                relations.collect(),
                ranked.triples().to_vec(),
            ),
            topics,
            notes,
        })
    }

    /// For each own entity, whether it is a topic.
    pub fn topic_flags(&self) -> Vec<bool> {
        let mut flags = vec![false; self.subgraph.entities().len()];
        for topic in &self.topics {
            flags[topic.index()] = true;
        }
        flags
    }

    /// The triples as `[head, relation, tail]` in own ids.
    pub fn plain_triples(&self) -> Vec<[u32; 3]> {
        let plain = |t: &wherefore_graph::Triple| [t.head.0, t.relation.0, t.tail.0];
        self.subgraph.triples().iter().map(plain).collect()
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::*;

    #[test]
    fn what_fits_is_whole_and_what_does_not_is_ranked() {
        // a hub with 50 leaves beside a short chain
        let names: Vec<String> = (0..50).map(|i| format!("leaf {i}")).collect();
        let leaves = names.iter().map(|leaf| ("hub", "has", leaf.as_str()));
        let chain = [
            ("topic", "r", "near"),
            ("near", "s", "far"),
            ("topic", "t", "hub"),
        ];
        let graph = MemoryGraph::from_names(chain.into_iter().chain(leaves));
        let named = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let topic = named("topic");
        let whole =
            Neighbourhood::cut(&graph, &[topic, topic], &NeighbourhoodConfig::default()).unwrap();
        assert_eq!(whole.subgraph.triples().len(), 53);
        assert_eq!(whole.topics, [EntityId(0)]);
        assert_eq!(whole.subgraph.entity(EntityId(0)), topic);
        assert!(whole.notes.is_empty());
        let config = NeighbourhoodConfig {
            max_entities: 4,
            ..NeighbourhoodConfig::default()
        };
        let few = Neighbourhood::cut(&graph, &[topic], &config).unwrap();
        let kept = few.subgraph.entities();
        for name in ["topic", "near", "far", "hub"] {
            assert!(kept.contains(&named(name)), "{name}");
        }
        assert_eq!(few.plain_triples().len(), 3);
        assert_eq!(few.topic_flags(), [true, false, false, false]);
        assert_eq!(few.notes.len(), 1);
        for i in 0..3 {
            let triple = few.subgraph.triple(i);
            assert!(whole.subgraph.triples().len() > i && graph.triples().any(|t| t == triple));
        }
    }

    #[test]
    fn a_topic_without_edges_stands_alone() {
        let graph = MemoryGraph::from_ids(2, 1, vec![wherefore_graph::Triple::new(0, 0, 0)]);
        let alone =
            Neighbourhood::cut(&graph, &[EntityId(1)], &NeighbourhoodConfig::default()).unwrap();
        assert_eq!(alone.topic_flags(), [true]);
        assert!(alone.subgraph.triples().is_empty());
    }
}
