//! A small graph in memory, with the same [`Graph`] trait as the store.
//!
//! For benchmarks that bring one graph per question, for tests, and for the built-in samples.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::graph::{Adjacency, Edge, EntityId, Graph, NameMatch, RelationId, Term, Triple};
use crate::names::{is_machine_id, normalise, readable};

/// A graph of plain names, held in memory.
///
/// ```
/// use wherefore_graph::{Adjacency, Graph, MemoryGraph, NameMatch};
/// let graph = MemoryGraph::from_names([("Lou_Seal", "team", "Giants"), ("Giants", "league", "NL")]);
/// let lou = graph.entities_named("lou seal", NameMatch::Normalised)?[0];
/// assert_eq!(graph.entity_label(lou)?, "Lou Seal");
/// assert_eq!(graph.outgoing(lou)?.len(), 1);
/// # Ok::<(), wherefore_graph::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryGraph {
    entities: NameIndex,
    relations: NameIndex,
    outgoing: MemoryRows,
    incoming: MemoryRows,
    /// Named entities by normalised name, in alphabetical order; made on first use.
    by_name: OnceLock<Vec<(String, EntityId)>>,
}

#[derive(Debug, Default)]
struct NameIndex {
    texts: Vec<String>,
    ids: HashMap<String, u32>,
}

impl NameIndex {
    fn intern(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id =
            u32::try_from(self.texts.len()).expect("a graph in memory has fewer than 2^32 names");
        self.texts.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }
}

/// Edges of each entity, one after the other.
#[derive(Debug, Default)]
struct MemoryRows {
    offsets: Vec<u32>,
    edges: Vec<Edge>,
}

impl MemoryRows {
    /// `keyed` must be sorted by (row, edge).
    fn new(rows: usize, keyed: impl Iterator<Item = (EntityId, Edge)>) -> Self {
        let mut offsets = vec![0u32; rows + 1];
        let mut edges = Vec::new();
        for (row, edge) in keyed {
            offsets[row.index() + 1] += 1;
            edges.push(edge);
        }
        for i in 0..rows {
            offsets[i + 1] += offsets[i];
        }
        Self { offsets, edges }
    }

    fn row(&self, entity: EntityId) -> Result<&[Edge]> {
        let i = entity.index();
        match (self.offsets.get(i), self.offsets.get(i + 1)) {
            (Some(&from), Some(&to)) => Ok(&self.edges[from as usize..to as usize]),
            _ => Err(Error::NoSuchEntity {
                id: entity.0,
                bound: self.offsets.len().saturating_sub(1),
            }),
        }
    }
}

impl MemoryGraph {
    /// Builds a graph from (head, relation, tail) names. Ids follow first appearance; duplicates
    /// are dropped.
    pub fn from_names<S: AsRef<str>>(triples: impl IntoIterator<Item = (S, S, S)>) -> Self {
        let mut entities = NameIndex::default();
        let mut relations = NameIndex::default();
        let triples = triples
            .into_iter()
            .map(|(head, relation, tail)| Triple {
                head: EntityId(entities.intern(head.as_ref())),
                relation: RelationId(relations.intern(relation.as_ref())),
                tail: EntityId(entities.intern(tail.as_ref())),
            })
            .collect();
        Self::assemble(entities, relations, triples)
    }

    /// Builds a graph from ids; entity `i` is called `ei`, relation `i` is called `ri`.
    pub fn from_ids(entities: usize, relations: usize, triples: Vec<Triple>) -> Self {
        let name = |prefix: &str, count: usize| {
            let mut names = NameIndex::default();
            for i in 0..count {
                names.intern(&format!("{prefix}{i}"));
            }
            names
        };
        for t in &triples {
            assert!(
                t.head.index() < entities
                    && t.tail.index() < entities
                    && t.relation.index() < relations,
                "triple {t:?} names an id outside the graph"
            );
        }
        Self::assemble(name("e", entities), name("r", relations), triples)
    }

    fn assemble(entities: NameIndex, relations: NameIndex, mut triples: Vec<Triple>) -> Self {
        triples.sort_unstable();
        triples.dedup();
        let count = entities.texts.len();
        let outgoing = MemoryRows::new(
            count,
            triples.iter().map(|t| {
                (
                    t.head,
                    Edge {
                        relation: t.relation,
                        entity: t.tail,
                    },
                )
            }),
        );
        triples.sort_unstable_by_key(|t| (t.tail, t.relation, t.head));
        let incoming = MemoryRows::new(
            count,
            triples.iter().map(|t| {
                (
                    t.tail,
                    Edge {
                        relation: t.relation,
                        entity: t.head,
                    },
                )
            }),
        );
        Self {
            entities,
            relations,
            outgoing,
            incoming,
            by_name: OnceLock::new(),
        }
    }

    /// Number of distinct triples.
    pub fn triple_count(&self) -> usize {
        self.outgoing.edges.len()
    }

    /// Every triple, sorted.
    pub fn triples(&self) -> impl Iterator<Item = Triple> + '_ {
        (0..self.entities.texts.len()).flat_map(move |i| {
            let head = EntityId(i as u32);
            let (from, to) = (
                self.outgoing.offsets[i] as usize,
                self.outgoing.offsets[i + 1] as usize,
            );
            self.outgoing.edges[from..to].iter().map(move |e| Triple {
                head,
                relation: e.relation,
                tail: e.entity,
            })
        })
    }

    fn entity_text(&self, entity: EntityId) -> Result<&str> {
        self.entities
            .texts
            .get(entity.index())
            .map(String::as_str)
            .ok_or(Error::NoSuchEntity {
                id: entity.0,
                bound: self.entities.texts.len(),
            })
    }

    fn relation_text(&self, relation: RelationId) -> Result<&str> {
        self.relations
            .texts
            .get(relation.index())
            .map(String::as_str)
            .ok_or(Error::NoSuchRelation {
                id: relation.0,
                bound: self.relations.texts.len(),
            })
    }

    fn by_name(&self) -> &[(String, EntityId)] {
        self.by_name.get_or_init(|| {
            let mut names: Vec<_> = self
                .entities
                .texts
                .iter()
                .zip(0..)
                .filter(|(text, _)| !is_machine_id(text))
                .map(|(text, id)| (normalise(text), EntityId(id)))
                .collect();
            names.sort_unstable();
            names
        })
    }
}

impl Adjacency for MemoryGraph {
    fn entity_bound(&self) -> usize {
        self.entities.texts.len()
    }

    fn relation_bound(&self) -> usize {
        self.relations.texts.len()
    }

    fn outgoing(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        self.outgoing.row(entity).map(Cow::Borrowed)
    }

    fn incoming(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        self.incoming.row(entity).map(Cow::Borrowed)
    }
}

impl Graph for MemoryGraph {
    fn entity_label(&self, entity: EntityId) -> Result<Cow<'_, str>> {
        self.entity_text(entity).map(readable)
    }

    fn relation_label(&self, relation: RelationId) -> Result<Cow<'_, str>> {
        self.relation_text(relation).map(readable)
    }

    fn entity_term(&self, entity: EntityId) -> Result<Term> {
        self.entity_text(entity)
            .map(|text| Term::Name(text.to_owned()))
    }

    fn relation_term(&self, relation: RelationId) -> Result<Term> {
        self.relation_text(relation)
            .map(|text| Term::Name(text.to_owned()))
    }

    fn is_named(&self, entity: EntityId) -> Result<bool> {
        self.entity_text(entity).map(|text| !is_machine_id(text))
    }

    fn entities_named(&self, name: &str, matching: NameMatch) -> Result<Vec<EntityId>> {
        let exact = self.entities.ids.get(name).map(|&id| EntityId(id));
        let wanted = normalise(name);
        let names = self.by_name();
        let from = names.partition_point(|(n, _)| *n < wanted);
        let mut found: Vec<EntityId> = names[from..]
            .iter()
            .take_while(|(n, _)| *n == wanted)
            .map(|&(_, id)| id)
            .filter(|&id| match matching {
                NameMatch::Normalised => true,
                NameMatch::Exact => readable(&self.entities.texts[id.index()]) == name,
            })
            .chain(exact)
            .collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn entities_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<EntityId>> {
        let wanted = normalise(prefix);
        let names = self.by_name();
        let from = names.partition_point(|(n, _)| *n < wanted);
        Ok(names[from..]
            .iter()
            .take_while(|(n, _)| n.starts_with(&wanted))
            .take(limit)
            .map(|&(_, id)| id)
            .collect())
    }

    fn relation_named(&self, name: &str) -> Result<Option<RelationId>> {
        if let Some(&id) = self.relations.ids.get(name) {
            return Ok(Some(RelationId(id)));
        }
        let mut labelled = self
            .relations
            .texts
            .iter()
            .zip(0..)
            .filter(|(text, _)| readable(text) == name)
            .map(|(_, id)| RelationId(id));
        Ok(labelled.next().filter(|_| labelled.next().is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_dropped_and_rows_sorted() {
        let graph = MemoryGraph::from_names([
            ("a", "r", "c"),
            ("a", "r", "b"),
            ("a", "r", "c"),
            ("b", "s", "a"),
        ]);
        assert_eq!(graph.triple_count(), 3);
        let a = graph.entities_named("a", NameMatch::Exact).unwrap()[0];
        let out = graph.outgoing(a).unwrap();
        assert!(out.is_sorted());
        assert_eq!(graph.degree(a).unwrap(), 3);
        assert!(
            graph
                .contains(Triple {
                    head: a,
                    relation: RelationId(0),
                    tail: EntityId(1)
                })
                .unwrap()
        );
        assert!(!graph.contains(Triple::new(9, 0, 0)).unwrap());
    }

    #[test]
    fn names_are_found_exactly_normalised_and_by_prefix() {
        let graph =
            MemoryGraph::from_names([("Lou_Seal", "of", "Giants"), ("lou seal", "of", "m.0abc")]);
        assert_eq!(
            graph
                .entities_named("Lou_Seal", NameMatch::Exact)
                .unwrap()
                .len(),
            1
        );
        assert_eq!(
            graph
                .entities_named("Lou Seal", NameMatch::Exact)
                .unwrap()
                .len(),
            1
        );
        assert_eq!(
            graph
                .entities_named("LOU SEAL", NameMatch::Normalised)
                .unwrap()
                .len(),
            2
        );
        assert_eq!(graph.entities_with_prefix("lo", 10).unwrap().len(), 2);
        assert_eq!(graph.entities_with_prefix("", 10).unwrap().len(), 3);
        assert!(!graph.is_named(EntityId(3)).unwrap());
        assert!(graph.outgoing(EntityId(99)).is_err());
    }
}
