//! Walks plans in full.

use hashbrown::{HashMap, HashSet};
use wherefore_graph::{Direction, EntityId, Graph, Hop, Step, Subgraph, Triple, edges_by_relation};

use super::{Plan, ScoredTriples};
use crate::error::Result;
use crate::link::Link;

/// What the plans lead to, at most so many triples: a triple and an end score as the best plan that
/// has them.
pub(super) fn walk(
    links: &[Link],
    plans: Vec<Plan>,
    mut notes: Vec<String>,
    max_triples: usize,
    graph: &dyn Graph,
) -> Result<ScoredTriples> {
    let mut scores: HashMap<Triple, f32> = HashMap::new();
    let mut triples: Vec<Triple> = Vec::new();
    let mut ends: HashMap<EntityId, f32> = HashMap::new();
    let mut cut = false;
    for plan in &plans {
        let left = max_triples.saturating_sub(triples.len());
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
        notes.push(format!("only {max_triples} triples were walked"));
    }
    let seeds: Vec<EntityId> = links.iter().map(|l| l.entity).collect();
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

/// The triples of a plan that lead to an end, its ends, and whether that is all of them.
fn follow(
    plan: &Plan,
    graph: &dyn Graph,
    limit: usize,
) -> Result<(Vec<Triple>, Vec<EntityId>, bool)> {
    let mut left = limit;
    let (layers, ends) = layers(plan.topic, &plan.hops, graph, &mut left)?;
    Ok((leading(&layers, &ends), ends, left > 0))
}

/// Every step from a topic along the relations, layer by layer, and the ends in order.
fn layers(
    topic: EntityId,
    hops: &[Hop],
    graph: &dyn Graph,
    left: &mut usize,
) -> Result<(Vec<Vec<Step>>, Vec<EntityId>)> {
    let mut layers: Vec<Vec<Step>> = Vec::new();
    let mut before: Vec<EntityId> = Vec::new();
    let mut front = vec![topic];
    for (j, hop) in hops.iter().enumerate() {
        let returns = j > 0 && hop.undoes(&hops[j - 1]);
        let back = |e: EntityId| e == topic || returns && before.binary_search(&e).is_ok();
        let mut layer = Vec::new();
        let mut only_back = Vec::new();
        graph.prefetch(&front, Direction::along(hop.forward))?;
        for &entity in &front {
            let edges = if hop.forward {
                graph.outgoing(entity)?
            } else {
                graph.incoming(entity)?
            };
            for edge in edges_by_relation(&edges, hop.relation) {
                if *left == 0 {
                    break;
                }
                let step = Step::new(entity, *edge, hop.forward);
                if back(edge.entity) {
                    only_back.push(step);
                } else {
                    *left -= 1;
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
    Ok((layers, front))
}

/// The triples that lead to one of the ends: what leads nowhere is no evidence.
fn leading(layers: &[Vec<Step>], ends: &[EntityId]) -> Vec<Triple> {
    let mut wanted: HashSet<EntityId> = ends.iter().copied().collect();
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
    kept
}

#[cfg(test)]
pub(super) mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::*;

    pub(in crate::retrieve) fn movies() -> MemoryGraph {
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
