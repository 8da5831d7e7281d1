//! Paths through a graph: shortest ones between two sets, simple ones between two entities, and
//! those that follow a given sequence of relations.
//!
//! Two triples between the same entities are two ways to go, so paths are told apart by their
//! triples, not by their entities. Against its direction a triple is walked only where the
//! [`Direction`](crate::Direction) allows it.

mod ground;
mod path;
mod search;
mod set;
mod shortest;
mod simple;

pub use ground::{Hop, Reached, ground, reach};
pub use path::{Path, Step};
pub use search::{PathFinder, PathLimits};
pub use set::PathSet;
pub use shortest::{shortest_paths, shortest_paths_by_pair};
pub use simple::{SimplePaths, simple_paths};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use std::time::Duration;

    use super::*;
    use crate::error::Error;
    use crate::graph::{Adjacency, Direction, EntityId, RelationId, Triple, edges_by_relation};
    use crate::memory::MemoryGraph;

    /// All walks of exactly so many steps from an entity, by trying every triple.
    fn walks(
        graph: &MemoryGraph,
        start: EntityId,
        length: usize,
        may: &dyn Fn(usize, Step) -> bool,
    ) -> Vec<Path> {
        let mut walks = vec![Path {
            start,
            steps: Vec::new(),
        }];
        for position in 0..length {
            let mut longer = Vec::new();
            for walk in &walks {
                for triple in graph.triples() {
                    for forward in [true, false] {
                        let step = Step { triple, forward };
                        if step.from() == walk.end() && may(position, step) {
                            let mut walk = walk.clone();
                            walk.steps.push(step);
                            longer.push(walk);
                        }
                    }
                }
            }
            walks = longer;
        }
        walks
    }

    fn is_simple(path: &Path) -> bool {
        let mut seen = BTreeSet::from([path.start]);
        path.steps.iter().all(|step| seen.insert(step.to()))
    }

    /// Whether a step may be walked at all.
    fn allowed(direction: Direction, skip: &[RelationId], step: Step) -> bool {
        !skip.contains(&step.triple.relation)
            && match step.forward {
                true => direction.goes_out(),
                false => direction.goes_in(),
            }
    }

    /// The set is exactly these paths, in every way it can be asked.
    fn assert_is(set: &PathSet, mut wanted: Vec<Path>) {
        wanted.sort();
        let mut listed = set.paths(usize::MAX);
        assert_eq!(set.count(), listed.len() as u64);
        if let Some(half) = listed.get(..listed.len() / 2) {
            assert_eq!(set.paths(half.len()), half);
        }
        listed.sort();
        assert_eq!(listed, wanted);
        let triples: BTreeSet<_> = wanted
            .iter()
            .flat_map(|p| p.steps.iter().map(|s| s.triple))
            .collect();
        assert!(set.triples().into_iter().eq(triples));
        let ends: BTreeSet<_> = wanted.iter().map(Path::end).collect();
        assert!(set.ends().into_iter().eq(ends));
        let starts: BTreeSet<_> = wanted.iter().map(|p| p.start).collect();
        assert!(set.starts().iter().copied().eq(starts));
        assert_eq!(set.is_empty(), wanted.is_empty());
        assert_eq!(set.length(), wanted.first().map(|p| p.steps.len()));
    }

    /// Two ways from 0 to 3, one of them by two relations, and a loop.
    fn diamond() -> MemoryGraph {
        MemoryGraph::from_ids(
            5,
            2,
            vec![
                Triple::new(0, 0, 1),
                Triple::new(0, 0, 2),
                Triple::new(1, 0, 3),
                Triple::new(1, 1, 3),
                Triple::new(2, 0, 3),
                Triple::new(2, 0, 2),
                Triple::new(4, 0, 3),
            ],
        )
    }

    #[test]
    fn parallel_relations_are_different_paths() {
        let (graph, limits) = (diamond(), PathLimits::default());
        let out = Direction::Outgoing;
        let paths = shortest_paths(&graph, &[EntityId(0)], &[EntityId(3)], out, &limits).unwrap();
        assert_eq!(paths.count(), 3);
        assert_eq!(paths.triples().len(), 5);
        let four = shortest_paths(&graph, &[EntityId(0)], &[EntityId(4)], out, &limits).unwrap();
        assert!(four.is_empty() && four.is_complete());
    }

    #[test]
    fn each_pair_has_its_own_shortest_paths() {
        let (graph, limits) = (diamond(), PathLimits::default());
        let (sources, targets) = ([EntityId(0), EntityId(1)], [EntityId(3), EntityId(1)]);
        let out = Direction::Outgoing;
        let found: Vec<_> = shortest_paths_by_pair(&graph, &sources, &targets, out, &limits)
            .unwrap()
            .into_iter()
            .map(|(s, t, paths)| (s.0, t.0, paths.length().unwrap(), paths.count()))
            .collect();
        assert_eq!(
            found,
            [(0, 1, 1, 1), (0, 3, 2, 3), (1, 1, 0, 1), (1, 3, 1, 2)]
        );
    }

    #[test]
    fn a_limit_that_strikes_is_told() {
        let graph = diamond();
        let mut finder = PathFinder::default();
        let (zero, three, both) = (EntityId(0), EntityId(3), Direction::Both);
        for limits in [
            PathLimits {
                max_edges: 1,
                ..PathLimits::default()
            },
            PathLimits {
                time_limit: Some(Duration::ZERO),
                ..PathLimits::default()
            },
        ] {
            let paths = finder
                .shortest_paths(&graph, &[zero], &[three], both, &limits)
                .unwrap();
            assert!(!paths.is_complete() && paths.is_empty());
            let paths = finder
                .simple_paths(&graph, zero, three, both, &limits, 10)
                .unwrap();
            assert!(!paths.complete && paths.paths.is_empty());
            let hops = [Hop {
                relation: RelationId(0),
                forward: true,
            }];
            let reached = finder.reach(&graph, &[zero], &hops, &limits).unwrap();
            assert!(!reached.complete);
        }
    }

    #[test]
    fn ids_outside_the_graph_are_errors() {
        let (graph, limits) = (diamond(), PathLimits::default());
        let (here, nowhere, both) = (EntityId(0), EntityId(5), Direction::Both);
        let is_error = |error: Option<Error>| matches!(error, Some(Error::NoSuchEntity { .. }));
        assert!(is_error(
            shortest_paths(&graph, &[here], &[nowhere], both, &limits).err()
        ));
        assert!(is_error(
            simple_paths(&graph, nowhere, here, both, &limits, 1).err()
        ));
        assert!(is_error(reach(&graph, &[nowhere], &[], &limits).err()));
        let hops = [Hop {
            relation: RelationId(2),
            forward: true,
        }];
        assert!(matches!(
            ground(&graph, &[here], &hops, &limits).err(),
            Some(Error::NoSuchRelation { id: 2, bound: 2 })
        ));
    }

    fn arbitrary_graph() -> impl Strategy<Value = MemoryGraph> {
        prop::collection::vec((0u32..8, 0u32..3, 0u32..8), 0..16).prop_map(|triples| {
            let triples = triples
                .into_iter()
                .map(|(h, r, t)| Triple::new(h, r, t))
                .collect();
            MemoryGraph::from_ids(8, 3, triples)
        })
    }

    fn arbitrary_direction() -> impl Strategy<Value = Direction> {
        prop::sample::select(vec![
            Direction::Outgoing,
            Direction::Incoming,
            Direction::Both,
        ])
    }

    fn arbitrary_entities() -> impl Strategy<Value = Vec<EntityId>> {
        prop::collection::vec((0u32..8).prop_map(EntityId), 0..4)
    }

    fn arbitrary_skip() -> impl Strategy<Value = Vec<RelationId>> {
        prop::collection::vec((0u32..3).prop_map(RelationId), 0..2)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn shortest_paths_are_those_of_brute_force(
            graph in arbitrary_graph(),
            sources in arbitrary_entities(),
            targets in arbitrary_entities(),
            direction in arbitrary_direction(),
            max_length in 0usize..5,
            skip in arbitrary_skip(),
        ) {
            let may = |_: usize, step: Step| allowed(direction, &skip, step);
            let from: BTreeSet<_> = sources.iter().copied().collect();
            let wanted = (0..=max_length)
                .map(|length| -> Vec<Path> {
                    from.iter()
                        .flat_map(|&source| walks(&graph, source, length, &may))
                        .filter(|walk| targets.contains(&walk.end()))
                        .collect()
                })
                .find(|walks| !walks.is_empty())
                .unwrap_or_default();
            let limits = PathLimits { max_length, skip: skip.clone(), ..PathLimits::default() };
            let mut finder = PathFinder::default();
            let set = finder.shortest_paths(&graph, &sources, &targets, direction, &limits).unwrap();
            prop_assert!(set.is_complete());
            assert_is(&set, wanted);
            prop_assert_eq!(
                finder.shortest_paths(&graph, &sources, &targets, direction, &limits).unwrap(),
                set
            );
        }

        #[test]
        fn simple_paths_are_those_of_brute_force(
            graph in arbitrary_graph(),
            source in (0u32..8).prop_map(EntityId),
            target in (0u32..8).prop_map(EntityId),
            direction in arbitrary_direction(),
            max_length in 0usize..6,
            skip in arbitrary_skip(),
            max_paths in 0usize..6,
        ) {
            let may = |_: usize, step: Step| allowed(direction, &skip, step);
            let mut wanted = Vec::new();
            for length in 0..=max_length {
                let mut walks = walks(&graph, source, length, &may);
                walks.retain(|walk| walk.end() == target && is_simple(walk));
                walks.sort();
                wanted.extend(walks);
                if length > 3 && wanted.len() > 500 {
                    return Ok(());
                }
            }
            let limits = PathLimits { max_length, skip: skip.clone(), ..PathLimits::default() };
            let mut finder = PathFinder::default();
            let found = finder
                .simple_paths(&graph, source, target, direction, &limits, usize::MAX)
                .unwrap();
            prop_assert!(found.complete);
            prop_assert_eq!(&found.paths, &wanted);

            let few = finder
                .simple_paths(&graph, source, target, direction, &limits, max_paths)
                .unwrap();
            prop_assert_eq!(few.complete, wanted.len() <= max_paths);
            prop_assert_eq!(few.paths.len(), wanted.len().min(max_paths));
            for (path, by_length) in few.paths.iter().zip(&wanted) {
                prop_assert!(wanted.contains(path));
                prop_assert_eq!(path.steps.len(), by_length.steps.len());
            }
        }

        #[test]
        fn grounding_is_that_of_brute_force(
            graph in arbitrary_graph(),
            starts in arbitrary_entities(),
            hops in prop::collection::vec((0u32..3, any::<bool>()), 0..5),
        ) {
            let hops: Vec<Hop> = hops
                .into_iter()
                .map(|(relation, forward)| Hop { relation: RelationId(relation), forward })
                .collect();
            let may = |position: usize, step: Step| {
                step.triple.relation == hops[position].relation
                    && step.forward == hops[position].forward
            };
            let from: BTreeSet<_> = starts.iter().copied().collect();
            let wanted: Vec<Path> = from
                .iter()
                .flat_map(|&start| walks(&graph, start, hops.len(), &may))
                .collect();
            let mut finder = PathFinder::default();
            let limits = PathLimits::default();
            let set = finder.ground(&graph, &starts, &hops, &limits).unwrap();
            prop_assert!(set.is_complete());
            let reached = finder.reach(&graph, &starts, &hops, &limits).unwrap();
            prop_assert!(reached.complete);
            prop_assert_eq!(&reached.entities, &set.ends());
            assert_is(&set, wanted);
        }

        #[test]
        fn edges_of_a_relation_are_those_a_filter_finds(
            graph in arbitrary_graph(),
            relation in (0u32..4).prop_map(RelationId),
        ) {
            for entity in (0..8).map(EntityId) {
                for row in [graph.outgoing(entity).unwrap(), graph.incoming(entity).unwrap()] {
                    let wanted: Vec<_> =
                        row.iter().copied().filter(|e| e.relation == relation).collect();
                    prop_assert_eq!(edges_by_relation(&row, relation), &wanted[..]);
                }
            }
        }
    }
}
