//! Neighbourhoods: all that lies within a few hops of some entities, under a budget.
//!
//! ```text
//! distance(seed) = 0,   distance(v) = 1 + min distance(u) over triples that lead from u to v
//! ```
//!
//! A triple belongs to the n-hop neighbourhood if it can be followed from an entity within n − 1
//! hops of a seed. Edges between two entities of the outermost ring therefore do not: neither end
//! was followed. With [`Direction::Outgoing`] a triple is followed from its head, with `Incoming`
//! from its tail, with `Both` from either.
//!
//! Limits cut hubs first. An entity with more than `max_fan_out` edges in a direction gives only
//! so many. If a hop does not fit what is left of `max_triples`, its entities are followed from
//! the smallest degree to the largest, each taking at most an equal share of what is left: small
//! ones come whole, hubs divide the rest. A cut entity gives the same number of edges of each
//! relation as far as they reach, the lowest ids first. The result depends on nothing but the
//! arguments, save where the time limit strikes.

mod expansion;
mod walk;

pub use expansion::{Cut, CutHub, Expanded, Expansion};

use crate::error::Result;
use crate::graph::{Adjacency, EntityId};
use crate::subgraph::Subgraph;
use walk::{Walk, WalkMarks};

/// Cuts out the neighbourhood of the seeds. For many of one graph, keep an [`Expander`].
///
/// ```
/// use wherefore_graph::{Expansion, Graph, NameMatch, expand, toy};
/// let graph = toy::graph();
/// let seal = graph.entities_named("Lou Seal", NameMatch::Exact)?;
/// let near = expand(&graph, &seal, &Expansion::default())?;
/// assert_eq!(near.subgraph.triples().len(), 7); // all of the Giants
/// assert_eq!(near.distance, [0, 1, 2, 2, 2, 2, 2, 2]);
/// # Ok::<(), wherefore_graph::Error>(())
/// ```
pub fn expand(
    graph: &dyn Adjacency,
    seeds: &[EntityId],
    expansion: &Expansion,
) -> Result<Expanded> {
    Expander::default().expand(graph, seeds, expansion)
}

/// Cuts out neighbourhoods and keeps its working memory between them, so that each costs
/// nothing that grows with the graph. Any graph may follow any other.
#[derive(Debug, Default)]
pub struct Expander {
    marks: WalkMarks,
}

impl Expander {
    /// Cuts out the neighbourhood of the seeds. A seed outside the graph is an error.
    pub fn expand(
        &mut self,
        graph: &dyn Adjacency,
        seeds: &[EntityId],
        expansion: &Expansion,
    ) -> Result<Expanded> {
        let mut walk = Walk::new(graph, expansion, &mut self.marks);
        let walked = walk.run(seeds);
        let Walk {
            entities,
            relations,
            triples,
            cut,
            ..
        } = walk;
        // also after an error: the next walk expects clean marks
        self.marks.entities.wipe(entities.iter().map(|e| e.index()));
        self.marks
            .relations
            .wipe(relations.iter().chain(&expansion.skip).map(|r| r.index()));
        Ok(Expanded {
            distance: walked?,
            subgraph: Subgraph::new(entities, relations, triples),
            cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use std::time::Duration;

    use super::*;
    use crate::graph::{Direction, RelationId, Triple};
    use crate::memory::MemoryGraph;

    /// A hub 0 with four edges by relation 0 and two by relation 1, and a chain 0 → 7 → 8.
    fn hub() -> MemoryGraph {
        let mut triples: Vec<_> = (1..5).map(|i| Triple::new(0, 0, i)).collect();
        triples.extend([Triple::new(0, 1, 5), Triple::new(0, 1, 6)]);
        triples.extend([Triple::new(7, 2, 0), Triple::new(7, 2, 8)]);
        MemoryGraph::from_ids(9, 3, triples)
    }

    fn found(expanded: &Expanded) -> BTreeSet<Triple> {
        let count = expanded.subgraph.triples().len();
        let triples: BTreeSet<_> = (0..count).map(|i| expanded.subgraph.triple(i)).collect();
        assert_eq!(triples.len(), count, "a triple came twice");
        triples
    }

    #[test]
    fn seeds_come_first_and_once() {
        let seeds = [EntityId(8), EntityId(3), EntityId(8)];
        let near = expand(&hub(), &seeds, &Expansion::default()).unwrap();
        assert_eq!(
            near.subgraph.entities()[..4],
            [EntityId(8), EntityId(3), EntityId(7), EntityId(0)]
        );
        assert_eq!(near.distance[..4], [0, 0, 1, 1]);
        assert!(near.cut.is_empty());
        assert!(near.cut.describe().is_empty());
    }

    #[test]
    fn no_seeds_or_no_hops_give_no_triples() {
        let near = expand(&hub(), &[], &Expansion::default()).unwrap();
        assert!(near.subgraph.entities().is_empty());
        let expansion = Expansion {
            hops: 0,
            ..Expansion::default()
        };
        let near = expand(&hub(), &[EntityId(0)], &expansion).unwrap();
        assert_eq!(near.subgraph.entities(), [EntityId(0)]);
        assert!(near.subgraph.triples().is_empty());
    }

    #[test]
    fn seed_outside_the_graph_is_an_error_and_leaves_the_expander_usable() {
        let mut expander = Expander::default();
        let seeds = [EntityId(0), EntityId(9)];
        let error = expander.expand(&hub(), &seeds, &Expansion::default());
        assert_eq!(
            error.unwrap_err().to_string(),
            "entity id 9 is outside the graph, which has 9 entities"
        );
        let near = expander.expand(&hub(), &seeds[..1], &Expansion::default());
        assert_eq!(near.unwrap().subgraph.triples().len(), 8);
    }

    #[test]
    fn a_cut_hub_gives_a_fair_share_of_each_relation() {
        // three of six outgoing edges, in turn: relation 0, relation 1, relation 0
        let expansion = Expansion {
            hops: 1,
            max_fan_out: 3,
            ..Expansion::default()
        };
        let near = expand(&hub(), &[EntityId(0)], &expansion).unwrap();
        assert_eq!(
            found(&near),
            BTreeSet::from([
                Triple::new(0, 0, 1),
                Triple::new(0, 0, 2),
                Triple::new(0, 1, 5),
                Triple::new(7, 2, 0),
            ])
        );
        assert_eq!(
            near.cut.describe(),
            ["1 entity with many edges gave 4 of 7"]
        );
    }

    #[test]
    fn hubs_are_cut_before_small_entities() {
        // Seeds 0 (7 edges) and 7 (2 edges), 5 triples: 7 goes first and may take ⌈5/2⌉ = 3, so
        // both of its edges come; 0 may take the 3 that are left, one of each relation in turn:
        // its edge to 7 is there already, so relations 0, 1, 0.
        let expansion = Expansion {
            hops: 1,
            max_triples: 5,
            ..Expansion::default()
        };
        let near = expand(&hub(), &[EntityId(0), EntityId(7)], &expansion).unwrap();
        assert_eq!(
            found(&near),
            BTreeSet::from([
                Triple::new(0, 0, 1),
                Triple::new(0, 0, 2),
                Triple::new(0, 1, 5),
                Triple::new(7, 2, 0),
                Triple::new(7, 2, 8),
            ])
        );
        assert_eq!(near.cut.hubs.len(), 1);
        assert_eq!(near.cut.hubs[0].entity, EntityId(0));
        assert_eq!(near.cut.hubs[0].taken, 3);
        assert_eq!(
            near.cut.describe(),
            [
                "1 entity with many edges gave 3 of 7",
                "the limit on triples was reached"
            ]
        );
    }

    #[test]
    fn a_time_limit_of_nothing_gives_the_seeds_alone() {
        let expansion = Expansion {
            time_limit: Some(Duration::ZERO),
            ..Expansion::default()
        };
        let near = expand(&hub(), &[EntityId(0), EntityId(1)], &expansion).unwrap();
        assert!(near.subgraph.triples().is_empty());
        assert_eq!(
            near.cut.describe(),
            ["the time limit was reached, and 2 entities were not followed"]
        );
    }

    #[test]
    fn settings_are_read_with_milliseconds_and_unknown_keys_refused() {
        let expansion: Expansion =
            serde_json::from_str(r#"{"hops": 3, "time_limit_ms": 250}"#).unwrap();
        assert_eq!(expansion.hops, 3);
        assert_eq!(expansion.time_limit, Some(Duration::from_millis(250)));
        let text = serde_json::to_string(&expansion).unwrap();
        assert_eq!(serde_json::from_str::<Expansion>(&text).unwrap(), expansion);
        assert!(serde_json::from_str::<Expansion>(r#"{"hop": 3}"#).is_err());
    }

    /// The definition, word by word: distances by relaxing every triple, over and over.
    fn naive(
        graph: &MemoryGraph,
        seeds: &[EntityId],
        expansion: &Expansion,
    ) -> (Vec<usize>, BTreeSet<Triple>) {
        let far = usize::MAX;
        let mut distance = vec![far; graph.entity_bound()];
        for seed in seeds {
            distance[seed.index()] = 0;
        }
        let triples = || {
            graph
                .triples()
                .filter(|t| !expansion.skip.contains(&t.relation))
        };
        for _ in 0..expansion.hops {
            let before = distance.clone();
            for t in triples() {
                for (follow, from, to) in [
                    (expansion.direction.goes_out(), t.head, t.tail),
                    (expansion.direction.goes_in(), t.tail, t.head),
                ] {
                    if follow && before[from.index()] != far {
                        let through = before[from.index()] + 1;
                        distance[to.index()] = distance[to.index()].min(through);
                    }
                }
            }
        }
        let followed = |e: EntityId| distance[e.index()] < expansion.hops;
        let taken = triples()
            .filter(|t| {
                (expansion.direction.goes_out() && followed(t.head))
                    || (expansion.direction.goes_in() && followed(t.tail))
            })
            .collect();
        (distance, taken)
    }

    prop_compose! {
        fn arbitrary_case()(
            triples in prop::collection::vec((0u32..12, 0u32..4, 0u32..12), 0..60),
            seeds in prop::collection::vec(0u32..12, 0..4),
            hops in 0usize..5,
            direction in prop::sample::select(
                vec![Direction::Outgoing, Direction::Incoming, Direction::Both]),
            skip in prop::collection::vec(0u32..4, 0..2),
            max_fan_out in prop_oneof![Just(1000), 0usize..5],
            max_triples in prop_oneof![Just(1000), 0usize..40],
        ) -> (MemoryGraph, Vec<EntityId>, Expansion) {
            let triples = triples.into_iter().map(|(h, r, t)| Triple::new(h, r, t)).collect();
            let expansion = Expansion {
                hops,
                direction,
                max_fan_out,
                max_triples,
                time_limit: None,
                skip: skip.into_iter().map(RelationId).collect(),
            };
            let seeds = seeds.into_iter().map(EntityId).collect();
            (MemoryGraph::from_ids(12, 4, triples), seeds, expansion)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn expansion_is_what_its_definition_says((graph, seeds, expansion) in arbitrary_case()) {
            let (distance, all) = naive(&graph, &seeds, &expansion);
            let mut expander = Expander::default();
            let near = expander.expand(&graph, &seeds, &expansion).unwrap();
            let triples = found(&near);
            prop_assert!(triples.is_subset(&all));
            prop_assert!(triples.len() <= expansion.max_triples);
            prop_assert_eq!(near.distance.len(), near.subgraph.entities().len());
            // the other way does not hold: what a hub did not give may come from the other end
            prop_assert!(!near.cut.is_empty() || triples == all);
            if expansion.max_fan_out == 1000 && expansion.max_triples >= all.len() {
                prop_assert!(near.cut.is_empty());
            }
            for hub in &near.cut.hubs {
                prop_assert!(hub.taken < hub.edges);
            }
            for (&entity, &d) in near.subgraph.entities().iter().zip(&near.distance) {
                if near.cut.is_empty() {
                    prop_assert_eq!(usize::from(d), distance[entity.index()]);
                } else {
                    prop_assert!(usize::from(d) >= distance[entity.index()]);
                }
            }
            // nothing is left behind: the same again gives the same
            let again = expander.expand(&graph, &seeds, &expansion).unwrap();
            prop_assert_eq!(again.subgraph.triples(), near.subgraph.triples());
            prop_assert_eq!(again.subgraph.entities(), near.subgraph.entities());
            prop_assert_eq!(again.subgraph.relations(), near.subgraph.relations());
            prop_assert_eq!(again.cut, near.cut);
        }
    }
}
