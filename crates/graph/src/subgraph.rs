//! The part of a graph that one question looks at, with dense ids of its own.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::graph::{Adjacency, Edge, EntityId, RelationId, Triple};

/// A small graph cut out of a larger one.
///
/// It numbers its entities, relations and triples from 0, so that arrays can be indexed by them
/// with no hashing; [`entity`](Self::entity) and [`triple`](Self::triple) lead back to the graph
/// it was cut from. Seen through [`Adjacency`], its ids are its own.
#[derive(Debug, Default)]
pub struct Subgraph {
    entities: Vec<EntityId>,
    relations: Vec<RelationId>,
    triples: Vec<Triple>,
    rows: OnceLock<AdjacencyRows>,
}

/// Both adjacencies; made when first asked for.
#[derive(Debug)]
struct AdjacencyRows {
    outgoing: Vec<Edge>,
    outgoing_offsets: Vec<u32>,
    incoming: Vec<Edge>,
    incoming_offsets: Vec<u32>,
}

impl Subgraph {
    /// Takes what an expansion collected: `entities` and `relations` lead from own ids to those
    /// of the larger graph, `triples` are in own ids and distinct.
    pub fn new(entities: Vec<EntityId>, relations: Vec<RelationId>, triples: Vec<Triple>) -> Self {
        debug_assert!(triples.iter().all(|t| t.head.index() < entities.len()
            && t.tail.index() < entities.len()
            && t.relation.index() < relations.len()));
        Self {
            entities,
            relations,
            triples,
            rows: OnceLock::new(),
        }
    }

    /// Cuts out the given triples of a larger graph; `first` entities come first, even those
    /// without a triple.
    pub fn from_triples(first: &[EntityId], triples: &[Triple]) -> Self {
        let mut entities: Vec<EntityId> = Vec::new();
        let mut seen = std::collections::HashMap::new();
        let mut local = |e: EntityId| {
            *seen.entry(e).or_insert_with(|| {
                entities.push(e);
                EntityId(entities.len() as u32 - 1)
            })
        };
        for &e in first {
            local(e);
        }
        let mut relations: Vec<RelationId> = triples.iter().map(|t| t.relation).collect();
        relations.sort_unstable();
        relations.dedup();
        let mut own: Vec<Triple> = triples
            .iter()
            .map(|t| Triple {
                head: local(t.head),
                relation: RelationId(
                    relations
                        .binary_search(&t.relation)
                        .expect("every relation was collected") as u32,
                ),
                tail: local(t.tail),
            })
            .collect();
        let mut distinct = std::collections::HashSet::with_capacity(own.len());
        own.retain(|t| distinct.insert(*t));
        Self::new(entities, relations, own)
    }

    /// Own id → entity of the larger graph.
    pub fn entities(&self) -> &[EntityId] {
        &self.entities
    }

    /// Own id → relation of the larger graph.
    pub fn relations(&self) -> &[RelationId] {
        &self.relations
    }

    /// The triples, in own ids.
    pub fn triples(&self) -> &[Triple] {
        &self.triples
    }

    /// The entity of the larger graph behind an own id.
    pub fn entity(&self, own: EntityId) -> EntityId {
        self.entities[own.index()]
    }

    /// Triple `index` in the ids of the larger graph.
    pub fn triple(&self, index: usize) -> Triple {
        let t = self.triples[index];
        Triple {
            head: self.entities[t.head.index()],
            relation: self.relations[t.relation.index()],
            tail: self.entities[t.tail.index()],
        }
    }

    /// The own id of an entity of the larger graph. Searches; for many, build a map.
    pub fn find(&self, entity: EntityId) -> Option<EntityId> {
        self.entities
            .iter()
            .position(|&e| e == entity)
            .map(|i| EntityId(i as u32))
    }

    fn rows(&self) -> &AdjacencyRows {
        self.rows.get_or_init(|| {
            let by = |row: fn(&Triple) -> EntityId, end: fn(&Triple) -> EntityId| {
                let mut offsets = vec![0u32; self.entities.len() + 1];
                for t in &self.triples {
                    offsets[row(t).index() + 1] += 1;
                }
                for i in 0..self.entities.len() {
                    offsets[i + 1] += offsets[i];
                }
                let mut next = offsets.clone();
                let mut edges = vec![Edge::default(); self.triples.len()];
                for t in &self.triples {
                    let at = &mut next[row(t).index()];
                    edges[*at as usize] = Edge {
                        relation: t.relation,
                        entity: end(t),
                    };
                    *at += 1;
                }
                for w in offsets.windows(2) {
                    edges[w[0] as usize..w[1] as usize].sort_unstable();
                }
                (edges, offsets)
            };
            let (outgoing, outgoing_offsets) = by(|t| t.head, |t| t.tail);
            let (incoming, incoming_offsets) = by(|t| t.tail, |t| t.head);
            AdjacencyRows {
                outgoing,
                outgoing_offsets,
                incoming,
                incoming_offsets,
            }
        })
    }

    fn row<'a>(
        &self,
        edges: &'a [Edge],
        offsets: &[u32],
        entity: EntityId,
    ) -> Result<Cow<'a, [Edge]>> {
        let i = entity.index();
        if i >= self.entities.len() {
            return Err(Error::NoSuchEntity {
                id: entity.0,
                bound: self.entities.len(),
            });
        }
        Ok(Cow::Borrowed(
            &edges[offsets[i] as usize..offsets[i + 1] as usize],
        ))
    }
}

impl Adjacency for Subgraph {
    fn entity_bound(&self) -> usize {
        self.entities.len()
    }

    fn relation_bound(&self) -> usize {
        self.relations.len()
    }

    fn outgoing(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        let rows = self.rows();
        self.row(&rows.outgoing, &rows.outgoing_offsets, entity)
    }

    fn incoming(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        let rows = self.rows();
        self.row(&rows.incoming, &rows.incoming_offsets, entity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ids_lead_back() {
        let triples = [
            Triple::new(7, 3, 9),
            Triple::new(9, 1, 7),
            Triple::new(7, 3, 9),
        ];
        let sub = Subgraph::from_triples(&[EntityId(5)], &triples);
        assert_eq!(sub.entities(), [EntityId(5), EntityId(7), EntityId(9)]);
        assert_eq!(sub.triples().len(), 2);
        assert_eq!(sub.triple(0), triples[0]);
        assert_eq!(sub.triple(1), triples[1]);
        let nine = sub.find(EntityId(9)).unwrap();
        assert_eq!(sub.incoming(nine).unwrap().len(), 1);
        assert!(sub.outgoing(EntityId(0)).unwrap().is_empty());
    }
}
