//! Walks a plan in full.

use hashbrown::HashSet;
use wherefore_graph::{Direction, EntityId, Graph, Step, Triple, edges_by_relation};

use super::Plan;
use crate::error::Result;

/// The triples of a plan that lead to an end, its ends, and whether that is all of them.
pub(super) fn follow(
    plan: &Plan,
    graph: &dyn Graph,
    limit: usize,
) -> Result<(Vec<Triple>, Vec<EntityId>, bool)> {
    let mut layers: Vec<Vec<Step>> = Vec::new();
    let mut before: Vec<EntityId> = Vec::new();
    let mut front = vec![plan.topic];
    let mut left = limit;
    for (j, hop) in plan.hops.iter().enumerate() {
        let returns = j > 0 && hop.undoes(&plan.hops[j - 1]);
        let back = |e: EntityId| e == plan.topic || returns && before.binary_search(&e).is_ok();
        let mut layer = Vec::new();
        let mut only_back = Vec::new();
        graph.prefetch(
            &front,
            match hop.forward {
                true => Direction::Outgoing,
                false => Direction::Incoming,
            },
        )?;
        for &entity in &front {
            let edges = if hop.forward {
                graph.outgoing(entity)?
            } else {
                graph.incoming(entity)?
            };
            for edge in edges_by_relation(&edges, hop.relation) {
                if left == 0 {
                    break;
                }
                let step = Step::new(entity, *edge, hop.forward);
                if back(edge.entity) {
                    only_back.push(step);
                } else {
                    left -= 1;
                    layer.push(step);
                }
            }
        }
        if layer.is_empty() {
            layer = only_back;
        }
        before = front;
        front = layer.iter().map(Step::to).collect();
        front.sort_unstable();
        front.dedup();
        layers.push(layer);
    }
    // what leads nowhere is no evidence
    let mut wanted: HashSet<EntityId> = front.iter().copied().collect();
    let mut kept = Vec::new();
    for layer in layers.iter().rev() {
        let mut before = HashSet::new();
        for step in layer.iter().filter(|step| wanted.contains(&step.to())) {
            before.insert(step.from());
            kept.push(step.triple);
        }
        wanted = before;
    }
    kept.reverse();
    Ok((kept, front, left > 0))
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{Hop, NameMatch};

    use super::super::tests::movies;
    use super::*;

    #[test]
    fn only_triples_that_lead_to_an_end_are_evidence() {
        let graph = movies();
        let relation = |name: &str| graph.relation_named(name).unwrap().unwrap();
        let hop = |name: &str, forward| Hop {
            relation: relation(name),
            forward,
        };
        let plan = Plan {
            topic: graph.entities_named("Alien", NameMatch::Exact).unwrap()[0],
            hops: vec![
                hop("starred_actors", true),
                hop("starred_actors", false),
                hop("has_genre", true),
            ],
            score: 1.0,
        };
        let (triples, ends, whole) = follow(&plan, &graph, 100).unwrap();
        assert_eq!((triples.len(), ends.len(), whole), (3, 1, true));
        let (_, _, whole) = follow(&plan, &graph, 2).unwrap();
        assert!(!whole);
    }
}
