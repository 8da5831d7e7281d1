//! A view of a service that collects missing rows and fetches them together, as outlines.
//!
//! A search reads rows one by one, and each would be a request; and most of a hub's row is never
//! used. Instead, a row that is not cached is noted and appears empty. After the search, all noted
//! rows are fetched at once, and the search runs again. The number of rounds is the length of the
//! longest chain of rows that depend on one another.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::fetch::{CachedRow, RowPart};
use super::outline::RowRequest;
use super::{Service, lock};
use crate::error::Result;
use crate::graph::{
    Adjacency, Direction, Edge, EntityId, Graph, NameMatch, RelationId, Term, Triple,
    edges_by_relation,
};

/// The cached part of a service, and what was missing in it.
#[derive(Debug)]
pub struct Deferred<'s> {
    service: &'s Service,
    missed: Mutex<Missed>,
    misses: AtomicUsize,
}

#[derive(Debug, Default)]
struct Missed {
    parts: BTreeSet<RowRequest>,
    labels: BTreeSet<EntityId>,
}

impl Service {
    /// The cached part of the graph.
    pub fn deferred(&self) -> Deferred<'_> {
        Deferred {
            service: self,
            missed: Mutex::default(),
            misses: AtomicUsize::new(0),
        }
    }
}

impl Deferred<'_> {
    /// Longer runs are never fetched and count as missing (guess).
    pub const LONGEST_RUN: usize = 1000;

    /// Fetches what was missing since the last call. Returns whether there was anything to fetch.
    pub fn fetch(&self) -> Result<bool> {
        let missed = std::mem::take(&mut *lock(&self.missed));
        let parts: Vec<RowRequest> = missed.parts.into_iter().collect();
        let labels: Vec<EntityId> = missed.labels.into_iter().collect();
        if !parts.is_empty() {
            self.service.fetch_outlines(&parts)?;
        }
        if !labels.is_empty() {
            self.service.fetch_all(&[], &labels)?;
        }
        Ok(!parts.is_empty() || !labels.is_empty())
    }

    fn miss(&self, note: impl FnOnce(&mut Missed)) {
        self.misses.fetch_add(1, Ordering::Relaxed);
        note(&mut lock(&self.missed));
    }

    /// The cached row or outline. If neither is cached, it is noted as missing.
    fn row(&self, entity: EntityId, outgoing: bool) -> Option<CachedRow> {
        let mut rows = lock(&self.service.rows);
        let row = (rows.get(entity, outgoing, RowPart::Row))
            .or_else(|| rows.get(entity, outgoing, RowPart::Outline));
        drop(rows);
        if row.is_none() {
            self.miss(|missed| {
                missed.parts.insert(RowRequest {
                    entity,
                    outgoing,
                    relation: None,
                });
            });
        }
        row
    }

    fn edges(&self, entity: EntityId, outgoing: bool) -> Cow<'_, [Edge]> {
        let row = self.row(entity, outgoing).unwrap_or_default();
        Cow::Owned(row.edges.to_vec())
    }

    fn has_label(&self, entity: EntityId) -> Result<bool> {
        let is_known = self.service.knows_label(entity)?;
        if !is_known {
            self.miss(|missed| {
                missed.labels.insert(entity);
            });
        }
        Ok(is_known)
    }
}

impl Adjacency for Deferred<'_> {
    fn entity_bound(&self) -> usize {
        self.service.entity_bound()
    }

    fn relation_bound(&self) -> usize {
        self.service.relation_bound()
    }

    fn outgoing(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        Ok(self.edges(entity, true))
    }

    fn incoming(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        Ok(self.edges(entity, false))
    }

    fn degree(&self, entity: EntityId) -> Result<usize> {
        let mut degree = 0;
        for outgoing in [true, false] {
            let row = self.row(entity, outgoing).unwrap_or_default();
            let more: usize = row.long.iter().map(|(_, triples)| triples - 1).sum();
            degree += row.edges.len() + more;
        }
        Ok(degree)
    }

    fn run(
        &self,
        entity: EntityId,
        relation: RelationId,
        outgoing: bool,
    ) -> Result<Cow<'_, [Edge]>> {
        let mut rows = lock(&self.service.rows);
        let row = (rows.get(entity, outgoing, RowPart::Row))
            .or_else(|| rows.get(entity, outgoing, RowPart::Outline));
        let run = rows.get(entity, outgoing, RowPart::Run(relation));
        drop(rows);
        let long = |row: &CachedRow| {
            let long = row.long.iter().find(|(of, _)| *of == relation);
            long.map(|(_, triples)| *triples)
        };
        let triples = match (&row, run) {
            (_, Some(run)) if run.cut => Some(usize::MAX),
            (_, Some(run)) => return Ok(Cow::Owned(run.edges.to_vec())),
            (Some(row), None) => match long(row) {
                None => {
                    let edges = edges_by_relation(&row.edges, relation);
                    return Ok(Cow::Owned(edges.to_vec()));
                }
                some => some,
            },
            (None, None) => None,
        };
        self.miss(|missed| {
            if triples.is_none_or(|triples| triples <= Self::LONGEST_RUN) {
                missed.parts.insert(RowRequest {
                    entity,
                    outgoing,
                    relation: Some(relation),
                });
            }
        });
        Ok(Cow::Borrowed(&[]))
    }

    fn long_runs(&self, entity: EntityId, outgoing: bool) -> Result<Vec<(RelationId, usize)>> {
        let row = self.row(entity, outgoing).unwrap_or_default();
        Ok(row.long.to_vec())
    }

    fn prefetch(&self, entities: &[EntityId], direction: Direction) -> Result<()> {
        for &entity in entities {
            if direction.goes_out() {
                self.row(entity, true);
            }
            if direction.goes_in() {
                self.row(entity, false);
            }
        }
        Ok(())
    }

    fn contains(&self, triple: Triple) -> Result<bool> {
        self.service.contains(triple)
    }

    fn misses(&self) -> usize {
        self.misses.load(Ordering::Relaxed)
    }
}

impl Graph for Deferred<'_> {
    fn entity_label(&self, entity: EntityId) -> Result<Cow<'_, str>> {
        match self.has_label(entity)? {
            true => self.service.entity_label(entity),
            false => self.service.own_name(entity).map(Cow::Owned),
        }
    }

    fn relation_label(&self, relation: RelationId) -> Result<Cow<'_, str>> {
        self.service.relation_label(relation)
    }

    fn entity_term(&self, entity: EntityId) -> Result<Term> {
        self.service.entity_term(entity)
    }

    fn relation_term(&self, relation: RelationId) -> Result<Term> {
        self.service.relation_term(relation)
    }

    fn is_named(&self, entity: EntityId) -> Result<bool> {
        if self.service.names_itself(entity)? {
            return Ok(true);
        }
        match self.has_label(entity)? {
            true => self.service.is_named(entity),
            false => Ok(true),
        }
    }

    fn entities_named(&self, name: &str, matching: NameMatch) -> Result<Vec<EntityId>> {
        self.service.entities_named(name, matching)
    }

    fn entities_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<EntityId>> {
        self.service.entities_with_prefix(prefix, limit)
    }

    fn relation_named(&self, name: &str) -> Result<Option<RelationId>> {
        self.service.relation_named(name)
    }

    fn with_relation(
        &self,
        relation: RelationId,
    ) -> Result<Box<dyn Iterator<Item = Result<Triple>> + '_>> {
        self.service.with_relation(relation)
    }

    fn identity(&self) -> Option<&str> {
        self.service.identity()
    }

    fn prefetch_names(&self, names: &[&str]) -> Result<()> {
        self.service.prefetch_names(names)
    }

    fn knows_all_names(&self) -> bool {
        self.service.knows_all_names()
    }

    fn service(&self) -> Option<&Service> {
        Some(self.service)
    }

    fn run_there(&self, query: &str, most: usize) -> Result<Option<(Vec<EntityId>, bool)>> {
        self.service.run_there(query, most)
    }

    fn naming_relations(&self) -> &[RelationId] {
        self.service.naming_relations()
    }
}
