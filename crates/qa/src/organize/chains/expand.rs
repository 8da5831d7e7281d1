//! Walks from the topics over the evidence: Algorithm 1 of ReG, and the retriever's own plans.

use hashbrown::{HashMap, HashSet};
use wherefore_graph::{EntityId, Hop, Triple};

use crate::reason::plan_ends;
use crate::select::Selection;

/// A walk from a topic over triples of the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Where it begins.
    pub topic: EntityId,
    /// The relations it takes, from the topic outwards.
    pub hops: Vec<Hop>,
    /// The entity behind each of them.
    pub nodes: Vec<EntityId>,
    /// Its triples, as indices into the selection's.
    pub triples: Vec<usize>,
    /// The geometric mean of their scores.
    pub score: f32,
}

impl Path {
    /// The entity it leads to.
    pub fn end(&self) -> EntityId {
        *self.nodes.last().expect("a path has a step")
    }
}

/// Which triples a walk may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Along their direction alone.
    Along,
    /// Against it alone.
    Against,
    /// Either.
    Either,
}

/// A walk as its last step; what came before is its parent.
struct Node {
    parent: u32,
    triple: u32,
    forward: bool,
    topic: u32,
    end: u32,
    length: u32,
}

const NONE: u32 = u32::MAX;

/// All walks of at most `max_length` steps (0: any) in the order of the queue.
pub(super) fn expand(
    triples: &[(Triple, f32)],
    topics: &[EntityId],
    max_length: usize,
    way: Way,
) -> Vec<Path> {
    let mut ids: HashMap<EntityId, u32> = HashMap::with_capacity(2 * triples.len());
    let mut entities: Vec<EntityId> = Vec::new();
    let mut own = |entity: EntityId| {
        *ids.entry(entity).or_insert_with(|| {
            entities.push(entity);
            entities.len() as u32 - 1
        })
    };
    let topic_count = topics.iter().map(|t| own(*t) + 1).max().unwrap_or(0) as usize;
    let ends: Vec<[u32; 2]> = (triples.iter())
        .map(|(t, _)| [own(t.head), own(t.tail)])
        .collect();
    let is_topic = |end: u32| (end as usize) < topic_count;

    // steps from each entity that touch no topic, best triples first
    let mut steps: Vec<Vec<(u32, bool, u32)>> = vec![Vec::new(); entities.len()];
    let mut queue: Vec<Node> = Vec::new();
    let mut known: HashSet<Triple> = HashSet::with_capacity(triples.len());
    for (i, &[head, tail]) in ends.iter().enumerate() {
        // a triple that stands twice is one triple
        if !known.insert(triples[i].0) {
            continue;
        }
        let sides = [(head, tail, true), (tail, head, false)];
        for (from, to, forward) in sides {
            if way == Way::Along && !forward || way == Way::Against && forward {
                continue;
            }
            if is_topic(from) {
                queue.push(Node {
                    parent: NONE,
                    triple: i as u32,
                    forward,
                    topic: from,
                    end: to,
                    length: 1,
                });
            } else if !is_topic(to) {
                steps[from as usize].push((i as u32, forward, to));
            }
        }
    }
    let mut visited = vec![false; topic_count * entities.len()];
    let mut next = 0;
    while next < queue.len() {
        let Node {
            topic, end, length, ..
        } = queue[next];
        let parent = next as u32;
        next += 1;
        if max_length > 0 && length as usize >= max_length {
            continue;
        }
        for &(triple, forward, to) in &steps[end as usize] {
            let seen = &mut visited[topic as usize * entities.len() + to as usize];
            if !std::mem::replace(seen, true) {
                queue.push(Node {
                    parent,
                    triple,
                    forward,
                    topic,
                    end: to,
                    length: length + 1,
                });
            }
        }
    }
    (0..queue.len())
        .map(|at| path(&queue, at, triples, &entities))
        .collect()
}

fn path(queue: &[Node], at: usize, triples: &[(Triple, f32)], entities: &[EntityId]) -> Path {
    let length = queue[at].length as usize;
    let mut path = Path {
        topic: entities[queue[at].topic as usize],
        hops: Vec::with_capacity(length),
        nodes: Vec::with_capacity(length),
        triples: Vec::with_capacity(length),
        score: 0.0,
    };
    let mut at = at as u32;
    while at != NONE {
        let node = &queue[at as usize];
        path.hops.push(Hop {
            relation: triples[node.triple as usize].0.relation,
            forward: node.forward,
        });
        path.nodes.push(entities[node.end as usize]);
        path.triples.push(node.triple as usize);
        at = node.parent;
    }
    path.hops.reverse();
    path.nodes.reverse();
    path.triples.reverse();
    path.score = mean_score(&path.triples, triples);
    path
}

fn mean_score(path: &[usize], triples: &[(Triple, f32)]) -> f32 {
    let product: f32 = path.iter().map(|&i| triples[i].1.clamp(0.0, 1.0)).product();
    product.powf(1.0 / path.len() as f32)
}

/// The retriever's plans as paths, plan by plan, one path for each end: ends that more ways lead to
/// come first.
pub(super) fn along_plans(selection: &Selection) -> Vec<Path> {
    let mut paths = Vec::new();
    for plan in &selection.plans {
        let mut ends: Vec<_> = plan_ends(plan.topic, &plan.hops, selection)
            .into_iter()
            .collect();
        ends.sort_by_key(|&(end, (ways, _))| (std::cmp::Reverse(ways), end));
        for (_, (_, triples)) in ends {
            let mut at = plan.topic;
            let mut nodes = Vec::with_capacity(triples.len());
            for &i in &triples {
                let t = selection.triples[i].0;
                at = if t.head == at { t.tail } else { t.head };
                nodes.push(at);
            }
            if !nodes.is_empty() {
                paths.push(Path {
                    topic: plan.topic,
                    hops: plan.hops.clone(),
                    nodes,
                    triples,
                    score: plan.score,
                });
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use proptest::prelude::*;

    use super::*;

    /// Algorithm 1 word by word, for one direction.
    fn algorithm_1(
        triples: &[Triple],
        topics: &[EntityId],
        max_length: usize,
        way: Way,
    ) -> Vec<Vec<(Triple, bool)>> {
        let ends = |t: &Triple, forward: bool| match forward {
            true => (t.head, t.tail),
            false => (t.tail, t.head),
        };
        let ways: &[bool] = match way {
            Way::Along => &[true],
            Way::Against => &[false],
            Way::Either => &[true, false],
        };
        let touches = |t: &Triple| topics.contains(&t.head) || topics.contains(&t.tail);
        let mut queue: VecDeque<Vec<(Triple, bool)>> = VecDeque::new();
        for t in triples {
            for &forward in ways {
                if topics.contains(&ends(t, forward).0) {
                    queue.push_back(vec![(*t, forward)]);
                }
            }
        }
        let mut found: Vec<Vec<(Triple, bool)>> = Vec::new();
        let mut visited: HashSet<(EntityId, EntityId)> = HashSet::new();
        while let Some(path) = queue.pop_front() {
            if !found.contains(&path) {
                found.push(path.clone());
            }
            if max_length > 0 && path.len() >= max_length {
                continue;
            }
            let start = ends(&path[0].0, path[0].1).0;
            let last = path[path.len() - 1];
            for t in triples.iter().filter(|t| !touches(t)) {
                for &forward in ways {
                    let (from, to) = ends(t, forward);
                    if from == ends(&last.0, last.1).1 && !visited.contains(&(start, to)) {
                        let mut longer = path.clone();
                        longer.push((*t, forward));
                        queue.push_back(longer);
                        visited.insert((start, to));
                    }
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn expansion_is_algorithm_1(
            edges in prop::collection::btree_set((0u32..7, 0u32..3, 0u32..7), 1..14),
            topics in prop::collection::btree_set(0u32..7, 1..3),
            max_length in 0usize..4,
            way in prop::sample::select(vec![Way::Along, Way::Against, Way::Either]),
        ) {
            let triples: Vec<Triple> = edges.iter().map(|&(h, r, t)| Triple::new(h, r, t)).collect();
            let topics: Vec<EntityId> = topics.into_iter().map(EntityId).collect();
            let scored: Vec<(Triple, f32)> = triples.iter().map(|t| (*t, 0.5)).collect();
            let paths = expand(&scored, &topics, max_length, way);
            let ours: Vec<Vec<(Triple, bool)>> = paths
                .iter()
                .map(|p| (p.triples.iter().zip(&p.hops)).map(|(&i, h)| (triples[i], h.forward)).collect())
                .collect();
            prop_assert_eq!(&ours, &algorithm_1(&triples, &topics, max_length, way));
            for path in &paths {
                let mut at = path.topic;
                for ((&i, hop), &node) in path.triples.iter().zip(&path.hops).zip(&path.nodes) {
                    let t = triples[i];
                    let (from, to) = if hop.forward { (t.head, t.tail) } else { (t.tail, t.head) };
                    prop_assert_eq!((from, t.relation, to), (at, hop.relation, node));
                    at = node;
                }
                prop_assert!((path.score - 0.5).abs() < 1e-6);
            }
            // all paths of one length to one end share their beginning with none: each pair once
            let far: Vec<(EntityId, EntityId)> =
                paths.iter().filter(|p| p.nodes.len() > 1).map(|p| (p.topic, p.end())).collect();
            prop_assert_eq!(far.iter().collect::<BTreeSet<_>>().len(), far.len());
        }
    }
}
