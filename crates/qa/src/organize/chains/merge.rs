//! Paths become chains: those with the same topic and relations, then those with common ends.
//!
//! ```text
//! multi-answer   same topic, same relations            → one chain with all ends
//! multi-entity   different topics, T(C₁) ∩ T(C₂) ≠ ∅   → side by side, both end in T(C₁) ∩ T(C₂)
//! ```
//!
//! The second merge is greedy: a chain takes along the best later chain of each other topic that
//! still leaves a common end. Topics do not count as common ends.

use hashbrown::{HashMap, HashSet};
use wherefore_graph::{EntityId, Hop};

use super::expand::Path;

/// Paths from one topic by the same relations.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// Where they begin.
    pub topic: EntityId,
    /// The relations, from the topic outwards.
    pub hops: Vec<Hop>,
    /// The paths, best first; they lead to different ends.
    pub paths: Vec<Path>,
}

impl Chain {
    /// The score of its best path.
    pub fn score(&self) -> f32 {
        self.paths.iter().map(|p| p.score).fold(0.0, f32::max)
    }

    /// The entities it leads to, best first.
    pub fn ends(&self) -> impl Iterator<Item = EntityId> + '_ {
        self.paths.iter().map(Path::end)
    }
}

/// One chain for each topic and sequence of relations, in the order in which these first come.
pub(super) fn merge_answers(paths: Vec<Path>) -> Vec<Chain> {
    let mut places: HashMap<(EntityId, Vec<Hop>), usize> = HashMap::new();
    let mut chains: Vec<Chain> = Vec::new();
    for path in paths {
        let place = *places
            .entry((path.topic, path.hops.clone()))
            .or_insert_with(|| {
                chains.push(Chain {
                    topic: path.topic,
                    hops: path.hops.clone(),
                    paths: Vec::new(),
                });
                chains.len() - 1
            });
        chains[place].paths.push(path);
    }
    chains
}

/// Best chains first, and the best paths of each first; equal ones keep their order.
pub(super) fn sort(chains: &mut [Chain]) {
    for chain in chains.iter_mut() {
        chain.paths.sort_by(|a, b| b.score.total_cmp(&a.score));
    }
    chains.sort_by(|a, b| b.score().total_cmp(&a.score()));
}

/// Chains of different topics with common ends together, cut to these; the others alone. The order
/// is that of the first of each.
pub(super) fn merge_entities(chains: Vec<Chain>, topics: &[EntityId]) -> Vec<Vec<Chain>> {
    if topics.len() < 2 {
        return chains.into_iter().map(|chain| vec![chain]).collect();
    }
    let mut by_end: HashMap<EntityId, Vec<usize>> = HashMap::new();
    for (i, chain) in chains.iter().enumerate() {
        for end in chain.ends().filter(|end| !topics.contains(end)) {
            by_end.entry(end).or_default().push(i);
        }
    }
    let mut left: Vec<Option<Chain>> = chains.into_iter().map(Some).collect();
    let mut groups = Vec::new();
    for i in 0..left.len() {
        let Some(first) = left[i].take() else {
            continue;
        };
        let ends = first.ends().filter(|end| !topics.contains(end));
        let mut common: HashSet<EntityId> = ends.collect();
        let mut others: Vec<usize> = (common.iter())
            .flat_map(|end| by_end[end].iter().copied())
            .filter(|&other| other > i)
            .collect();
        others.sort_unstable();
        others.dedup();
        let mut group = vec![first];
        for other in others {
            let Some(chain) = &left[other] else {
                continue;
            };
            if group.iter().any(|c| c.topic == chain.topic) {
                continue;
            }
            let shared: HashSet<EntityId> = chain.ends().filter(|e| common.contains(e)).collect();
            if !shared.is_empty() {
                common = shared;
                group.extend(left[other].take());
            }
        }
        if group.len() > 1 {
            for chain in &mut group {
                chain.paths.retain(|path| common.contains(&path.end()));
            }
        }
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use wherefore_graph::RelationId;

    use super::*;

    fn path(topic: u32, relations: &[u32], end: u32, score: f32) -> Path {
        Path {
            topic: EntityId(topic),
            hops: relations
                .iter()
                .map(|&r| Hop {
                    relation: RelationId(r),
                    forward: true,
                })
                .collect(),
            nodes: vec![EntityId(end); relations.len()],
            triples: vec![0; relations.len()],
            score,
        }
    }

    /// The second merge by sets, word by word.
    fn plain(chains: &[Chain], topics: &[EntityId]) -> Vec<Vec<(usize, BTreeSet<EntityId>)>> {
        let ends = |i: usize| -> BTreeSet<EntityId> {
            let ends = chains[i].ends();
            ends.collect()
        };
        let targets = |i: usize| -> BTreeSet<EntityId> {
            let ends = chains[i].ends().filter(|e| !topics.contains(e));
            ends.collect()
        };
        let mut used = vec![false; chains.len()];
        let mut groups = Vec::new();
        for i in 0..chains.len() {
            if used[i] {
                continue;
            }
            used[i] = true;
            let (mut members, mut common) = (vec![i], targets(i));
            for j in i + 1..chains.len() {
                let new = members.iter().all(|&m| chains[m].topic != chains[j].topic);
                let shared: BTreeSet<EntityId> = &common & &targets(j);
                if !used[j] && new && !shared.is_empty() {
                    used[j] = true;
                    members.push(j);
                    common = shared;
                }
            }
            let alone = members.len() == 1;
            groups.push(
                (members.into_iter())
                    .map(|m| (m, if alone { ends(m) } else { common.clone() }))
                    .collect(),
            );
        }
        groups
    }

    proptest! {
        #[test]
        fn merges_are_those_of_the_definition(
            walks in prop::collection::btree_set(
                (0u32..3, prop::collection::vec(0u32..2, 1..3), 0u32..8), 0..20),
            scores in prop::collection::vec(0u8..4, 20),
        ) {
            let paths: Vec<Path> = walks.iter().zip(&scores)
                .map(|((topic, relations, end), s)| path(*topic, relations, *end, f32::from(*s) / 4.0))
                .collect();
            let mut chains = merge_answers(paths.clone());
            // one for each topic and relations, with exactly the ends of their paths
            let keys: BTreeSet<(u32, Vec<u32>)> =
                walks.iter().map(|(t, r, _)| (*t, r.clone())).collect();
            prop_assert_eq!(chains.len(), keys.len());
            for chain in &chains {
                let of = |p: &&Path| p.topic == chain.topic && p.hops == chain.hops;
                let wanted: BTreeSet<EntityId> = paths.iter().filter(of).map(Path::end).collect();
                prop_assert_eq!(chain.ends().collect::<BTreeSet<_>>(), wanted);
            }
            sort(&mut chains);
            prop_assert!(chains.windows(2).all(|c| c[0].score() >= c[1].score()));
            let topics = [EntityId(0), EntityId(1), EntityId(2)];
            let expected = plain(&chains, &topics);
            let groups = merge_entities(chains.clone(), &topics);
            prop_assert_eq!(groups.len(), expected.len());
            for (group, expected) in groups.iter().zip(expected) {
                prop_assert_eq!(group.len(), expected.len());
                for (chain, (member, ends)) in group.iter().zip(expected) {
                    prop_assert_eq!(chain.topic, chains[member].topic);
                    prop_assert_eq!(&chain.hops, &chains[member].hops);
                    prop_assert_eq!(chain.ends().collect::<BTreeSet<_>>(), ends);
                }
            }
            let one = merge_entities(chains.clone(), &topics[..1]);
            prop_assert_eq!(one.concat(), chains);
        }
    }
}
