//! The steps that can be taken from where a path has led.

use hashbrown::{HashMap, HashSet};
use wherefore_graph::{Edge, EntityId, Graph, Hop};

use crate::error::Result;
use crate::read::by_relation;

/// Edges of one entity and relation that are read while paths are grown.
const MAX_EDGES: usize = 512;

/// What a step leads to.
#[derive(Debug, Default)]
pub struct Taken {
    /// Entities that can take it.
    pub takers: usize,
    /// Some of its ends, each once.
    pub ends: Vec<EntityId>,
    /// Whether it only leads back to where the path came from.
    pub only_back: bool,
    back: Vec<EntityId>,
    seen: HashSet<EntityId>,
}

impl Taken {
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

/// Every step that some of a path's `ends` can take, with at most `sample` of the ends that were
/// seen, sorted. `before` are the entities before the last step, `last`.
///
/// A step does not lead back to the topic, nor by the relation that the path came by to where it came
/// from, unless it leads nowhere else.
pub fn steps(
    (ends, before, last): (&[EntityId], &[EntityId], Option<Hop>),
    topic: EntityId,
    graph: &dyn Graph,
    sample: usize,
) -> Result<Vec<(Hop, Taken)>> {
    let naming = graph.naming_relations();
    let mut steps: HashMap<Hop, Taken> = HashMap::new();
    for &entity in ends {
        for (forward, edges) in [
            (true, graph.outgoing(entity)?),
            (false, graph.incoming(entity)?),
        ] {
            // of a long row every relation is still seen
            for (relation, run) in by_relation(&edges) {
                if !naming.contains(&relation) {
                    let hop = Hop { relation, forward };
                    let taken = steps.entry(hop).or_default();
                    let before = match last {
                        Some(last) if hop.undoes(&last) => before,
                        _ => &[],
                    };
                    let back = |e: EntityId| e == topic || before.contains(&e);
                    taken.add(&run[..run.len().min(MAX_EDGES)], &back, sample);
                }
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

#[cfg(test)]
mod tests {
    use wherefore_graph::NameMatch;

    use super::super::follow::tests::movies;
    use super::*;

    #[test]
    fn steps_lead_back_only_where_they_lead_nowhere_else() {
        let graph = movies();
        let named = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let hop = |name: &str, forward| Hop {
            relation: graph.relation_named(name).unwrap().unwrap(),
            forward,
        };
        let (alien, scott) = (named("Alien"), named("Ridley Scott"));
        let first = steps((&[alien], &[], None), alien, &graph, 64).unwrap();
        assert_eq!(first.len(), 4);
        let last = Some(hop("directed_by", true));
        let second = steps((&[scott], &[alien], last), alien, &graph, 64).unwrap();
        assert_eq!(second.len(), 1);
        assert_eq!(second[0].0, hop("directed_by", false));
        assert_eq!(second[0].1.ends, [named("Gladiator")]);
        assert!(!second[0].1.only_back);
        let bannon = named("Dan Bannon");
        let last = Some(hop("written_by", true));
        let back = steps((&[bannon], &[alien], last), alien, &graph, 64).unwrap();
        assert!(back[0].1.only_back);
        assert_eq!(back[0].1.ends, [alien]);
    }
}
