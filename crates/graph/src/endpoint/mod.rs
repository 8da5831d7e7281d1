//! A remote SPARQL 1.1 service as a [`Graph`]: Virtuoso, QLever, GraphDB, Neptune, Fuseki,
//! Blazegraph, Oxigraph. What differs between them stands in `engine/`.
//!
//! Entities get ids when they are first returned. All relations are known from the start: they are
//! configured, or queried once, so that methods can prepare what depends on them; a new relation is
//! seen when the service is opened again. Rows of many entities are fetched in one request
//! ([`Adjacency::prefetch`]), and so are their labels; both are cached. A row that is longer than
//! the limit of a reply is truncated by the service.
//!
//! With a label index (`wherefore index URL`) names are looked up in it and labels read from it,
//! and the service is asked for triples alone. Entities of the index come first and in order of
//! their IRIs, as in a store. Without one the service's full text finds names.
//!
//! Queries whose `?x` is wanted, as those of logical forms, run at the service.
//!
//! Departures from a store: triples that only give names are not seen; blank nodes are not, for
//! they cannot be asked for again; a cut hub has the edges that the service chose.

mod config;
mod deferred;
mod engine;
mod fetch;
mod http;
mod index;
mod outline;
mod permit;
mod query;
mod search;
mod summary;
mod trust;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

pub use config::{Method, Search, ServiceConfig, ServiceLimits};
pub use deferred::Deferred;
pub use engine::Engine;
pub use index::{LabelReport, index_labels};
pub use summary::{Around, RelationSummary, SideSummary, Summary};
pub use trust::{Trust, Trusted, TrustedServices};

use crate::error::{Error, Result};
use crate::graph::{
    Adjacency, Direction, Edge, EntityId, Graph, NameMatch, RelationId, Term, Triple,
};
use crate::key;
use crate::names::normalise;
use crate::shape::{is_unnamed_key, readable_key};
use crate::store::Store;
use fetch::{RowCache, RowPart};
use http::Client;
use search::LabelMatches;

/// Terms longer than this are left out, in bytes: they are documents.
const LONGEST_TERM: usize = 1 << 20;
/// Maximum bytes of a label; longer ones are truncated.
const LONGEST_LABEL: usize = 4096;

/// A SPARQL service, opened for reading. Clones share the cache.
#[derive(Clone, Debug)]
pub struct Service {
    config: Arc<ServiceConfig>,
    client: Client,
    /// The label index.
    names: Option<Arc<Store>>,
    relations: Arc<Relations>,
    terms: Arc<RwLock<InternedTerms>>,
    rows: Arc<Mutex<RowCache>>,
    /// Triples that are known to be in the graph.
    stated: Arc<Mutex<HashSet<Triple>>>,
    /// Whether the service failed to count triples for an outline.
    counts_fail: Arc<AtomicBool>,
    /// Fetched labels; `None` for entities without one.
    labels: Arc<RwLock<HashMap<EntityId, Option<String>>>>,
    found: Arc<Mutex<LabelMatches>>,
    identity: Arc<str>,
}

/// The relations, in order of their IRIs.
#[derive(Debug, Default)]
struct Relations {
    iris: Vec<String>,
    labels: Vec<Option<String>>,
    naming: Vec<RelationId>,
}

/// Terms that are not in the label index, numbered as they are met.
#[derive(Debug, Default)]
struct InternedTerms {
    first: usize,
    keys: Vec<Arc<[u8]>>,
    ids: HashMap<Arc<[u8]>, EntityId>,
}

/// Locks a mutex and ignores poisoning: every change is a single insertion, so the content is
/// valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    /// Opens a service: reads its relations, and its label index where there is one.
    pub fn open(config: ServiceConfig) -> Result<Self> {
        let config = config.resolved()?;
        let names = config.index.as_ref().map(Store::open).transpose()?;
        let client = Client::new(&config)?;
        let first = names.as_ref().map_or(0, Adjacency::entity_bound);
        let graph = config.graph.as_deref().unwrap_or_default();
        let index = names
            .as_ref()
            .and_then(|n| n.identity())
            .unwrap_or_default();
        let mut service = Self {
            identity: format!("{} {graph} {index}", config.url).into(),
            relations: Arc::default(),
            terms: Arc::new(RwLock::new(InternedTerms {
                first,
                ..InternedTerms::default()
            })),
            rows: Arc::new(Mutex::new(RowCache::new(config.limits.cached_edges))),
            stated: Arc::default(),
            counts_fail: Arc::default(),
            labels: Arc::default(),
            found: Arc::default(),
            client,
            names: names.map(Arc::new),
            config: Arc::new(config),
        };
        service.relations = Arc::new(service.fetch_relations()?);
        Ok(service)
    }

    /// The same service, for one question: with as many requests, and as much time, as one may
    /// cost (`limits.requests`, `limits.question_s`), and with counts of its own.
    pub fn for_question(&self) -> Self {
        let limits = &self.config.limits;
        let time = Duration::from_secs_f64(limits.question_s);
        Self {
            client: self.client.within(limits.requests, time),
            ..self.clone()
        }
    }

    /// Runs work that is done once for all questions and not charged to one.
    pub fn outside_budget<T>(&self, work: impl FnOnce(&Self) -> T) -> T {
        let start = Instant::now();
        let done = work(&Self {
            client: self.client.without_budget(),
            ..self.clone()
        });
        self.client.extend_deadline(start.elapsed());
        done
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.config.url
    }

    /// Requests that were sent so far, those that were tried again included; where this is for one
    /// question, those for it.
    pub fn requests(&self) -> u64 {
        self.client.traffic().requests.load(Ordering::Relaxed)
    }

    /// Sequential rounds of requests: concurrent requests count once.
    pub fn rounds(&self) -> u64 {
        self.client.traffic().rounds.load(Ordering::Relaxed)
    }

    /// Whether names are looked up in a label index.
    pub fn is_indexed(&self) -> bool {
        self.names.is_some()
    }

    fn key(&self, entity: EntityId) -> Result<Arc<[u8]>> {
        let terms = self.terms.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = entity.index().checked_sub(terms.first) {
            return terms.keys.get(place).cloned().ok_or(Error::NoSuchEntity {
                id: entity.0,
                bound: terms.first + terms.keys.len(),
            });
        }
        drop(terms);
        let names = self
            .names
            .as_ref()
            .expect("ids below the first are those of the index");
        let mut bytes = Vec::new();
        names.changes.key(&names.base, entity, &mut bytes)?;
        Ok(bytes.into())
    }

    /// The id of a term, a new one if it has none yet.
    fn intern(&self, key: &[u8]) -> Result<EntityId> {
        if let Some(names) = &self.names
            && let Some(known) = names.changes.find(&names.base, key)?
        {
            return Ok(known);
        }
        let terms = self.terms.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = terms.ids.get(key) {
            return Ok(known);
        }
        drop(terms);
        let mut terms = self.terms.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = terms.ids.get(key) {
            return Ok(known);
        }
        if terms.keys.len() >= self.config.limits.entities {
            return Err(Error::ServiceFull {
                url: self.config.url.clone(),
                limit: self.config.limits.entities,
            });
        }
        let id = u32::try_from(terms.first + terms.keys.len())
            .ok()
            .filter(|id| *id < u32::MAX)
            .ok_or(Error::TooMany { what: "entities" })?;
        let key: Arc<[u8]> = key.into();
        terms.keys.push(Arc::clone(&key));
        terms.ids.insert(key, EntityId(id));
        Ok(EntityId(id))
    }

    /// The label given by the graph, if there is one.
    fn label(&self, entity: EntityId) -> Result<Option<String>> {
        if let Some(names) = &self.names
            && entity.index() < names.entity_bound()
        {
            let labelled = names.changes.label(&names.base, entity)?.is_some();
            return match labelled {
                true => Ok(Some(truncate_label(
                    names.entity_label(entity)?.into_owned(),
                ))),
                false => Ok(None),
            };
        }
        let known = |labels: &HashMap<EntityId, Option<String>>| labels.get(&entity).cloned();
        let labels = self.labels.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(label) = known(&labels) {
            return Ok(label);
        }
        drop(labels);
        self.fetch_labels_around(entity)?;
        let labels = self.labels.read().unwrap_or_else(PoisonError::into_inner);
        Ok(known(&labels).flatten())
    }

    /// Number of entities in the label index: their ids are below it.
    fn indexed(&self) -> usize {
        (self.names.as_ref()).map_or(0, |names| names.entity_bound())
    }

    /// Whether the label of an entity, or its absence, is known without a request.
    fn knows_label(&self, entity: EntityId) -> Result<bool> {
        let labels = self.labels.read().unwrap_or_else(PoisonError::into_inner);
        Ok(entity.index() < self.indexed()
            || labels.contains_key(&entity)
            || self.key(entity)?.first() != Some(&key::IRI))
    }

    /// The display name of an entity from its identity.
    fn own_name(&self, entity: EntityId) -> Result<String> {
        Ok(truncate_label(
            readable_key(&self.key(entity)?).unwrap_or_default(),
        ))
    }

    /// Whether the identity of an entity is readable; most are.
    fn names_itself(&self, entity: EntityId) -> Result<bool> {
        Ok(!is_unnamed_key(&self.key(entity)?))
    }

    fn row(&self, entity: EntityId, outgoing: bool) -> Result<Arc<[Edge]>> {
        if let Some(row) = lock(&self.rows).get(entity, outgoing, RowPart::Row) {
            return Ok(row.edges);
        }
        self.fetch_rows(&[entity], &[outgoing])?;
        let kept = lock(&self.rows).get(entity, outgoing, RowPart::Row);
        Ok(kept.map_or_else(|| Vec::new().into(), |row| row.edges))
    }
}

/// Shortens a long label.
fn truncate_label(mut label: String) -> String {
    if label.len() > LONGEST_LABEL {
        let mut end = LONGEST_LABEL;
        while !label.is_char_boundary(end) {
            end -= 1;
        }
        label.truncate(end);
        label.push('…');
    }
    label
}

impl Adjacency for Service {
    fn entity_bound(&self) -> usize {
        let terms = self.terms.read().unwrap_or_else(PoisonError::into_inner);
        terms.first + terms.keys.len()
    }

    fn relation_bound(&self) -> usize {
        self.relations.iris.len()
    }

    fn outgoing(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        Ok(Cow::Owned(self.row(entity, true)?.to_vec()))
    }

    fn incoming(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        Ok(Cow::Owned(self.row(entity, false)?.to_vec()))
    }

    fn degree(&self, entity: EntityId) -> Result<usize> {
        self.prefetch(&[entity], Direction::Both)?;
        Ok(self.row(entity, true)?.len() + self.row(entity, false)?.len())
    }

    /// The row of a hub may be truncated: then the service is queried.
    fn contains(&self, triple: Triple) -> Result<bool> {
        let bound = self.entity_bound();
        if triple.head.index() >= bound || triple.tail.index() >= bound {
            return Ok(false);
        }
        if lock(&self.stated).contains(&triple) {
            return Ok(true);
        }
        let edge = |entity| Edge {
            relation: triple.relation,
            entity,
        };
        for (row, outgoing, other) in [
            (triple.head, true, triple.tail),
            (triple.tail, false, triple.head),
        ] {
            if let Some(row) = lock(&self.rows).get(row, outgoing, RowPart::Row) {
                let is_in = row.edges.binary_search(&edge(other)).is_ok();
                if is_in || !row.cut {
                    return Ok(is_in);
                }
            }
        }
        self.ask_triple(triple)
    }

    fn prefetch(&self, entities: &[EntityId], direction: Direction) -> Result<()> {
        let mut wanted = Vec::new();
        if direction.goes_out() {
            wanted.push(true);
        }
        if direction.goes_in() {
            wanted.push(false);
        }
        self.fetch_rows(entities, &wanted)
    }
}

impl Graph for Service {
    fn entity_label(&self, entity: EntityId) -> Result<Cow<'_, str>> {
        let key = self.key(entity)?;
        if key.first() == Some(&key::IRI)
            && let Some(label) = self.label(entity)?
        {
            return Ok(Cow::Owned(label));
        }
        self.own_name(entity).map(Cow::Owned)
    }

    fn relation_label(&self, relation: RelationId) -> Result<Cow<'_, str>> {
        let no_such = || Error::NoSuchRelation {
            id: relation.0,
            bound: self.relation_bound(),
        };
        let i = relation.index();
        if let Some(label) = self.relations.labels.get(i).ok_or_else(no_such)? {
            return Ok(Cow::Borrowed(label));
        }
        let mut key = Vec::new();
        key::push_iri(&mut key, &self.relations.iris[i]);
        Ok(Cow::Owned(readable_key(&key).unwrap_or_default()))
    }

    fn entity_term(&self, entity: EntityId) -> Result<Term> {
        key::decode(&self.key(entity)?)
            .ok_or_else(|| self.client.bad_reply("it sent an invalid term"))
    }

    fn relation_term(&self, relation: RelationId) -> Result<Term> {
        let iri = self.relations.iris.get(relation.index());
        iri.map(|iri| Term::Iri(iri.clone()))
            .ok_or(Error::NoSuchRelation {
                id: relation.0,
                bound: self.relation_bound(),
            })
    }

    fn is_named(&self, entity: EntityId) -> Result<bool> {
        Ok(self.names_itself(entity)? || self.label(entity)?.is_some())
    }

    fn entities_named(&self, name: &str, matching: NameMatch) -> Result<Vec<EntityId>> {
        let mut found = Vec::new();
        if let Some(entity) = self.find_iri(name)? {
            found.push(entity);
        }
        match &self.names {
            Some(names) => found.extend(self.of_index(names.entities_named(name, matching)?)?),
            None => found.extend(self.search_name(name, matching)?),
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn entities_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<EntityId>> {
        match &self.names {
            Some(names) => self.of_index(names.entities_with_prefix(prefix, limit)?),
            None => self.search_prefix(&normalise(prefix), limit),
        }
    }

    fn relation_named(&self, name: &str) -> Result<Option<RelationId>> {
        if let Ok(i) = self
            .relations
            .iris
            .binary_search_by(|iri| iri.as_str().cmp(name))
        {
            return Ok(Some(RelationId(i as u32)));
        }
        let mut labelled = None;
        for id in 0..self.relations.iris.len() as u32 {
            if self.relation_label(RelationId(id))? == name
                && labelled.replace(RelationId(id)).is_some()
            {
                return Ok(None);
            }
        }
        Ok(labelled)
    }

    /// The service is asked once; a relation with more triples than a reply may have is cut.
    fn with_relation(
        &self,
        relation: RelationId,
    ) -> Result<Box<dyn Iterator<Item = Result<Triple>> + '_>> {
        let triples = self.fetch_relation(relation)?;
        Ok(Box::new(triples.into_iter().map(Ok)))
    }

    fn run_there(&self, query: &str, most: usize) -> Result<Option<(Vec<EntityId>, bool)>> {
        self.select_x(query, most).map(Some)
    }

    fn service(&self) -> Option<&Service> {
        Some(self)
    }

    fn identity(&self) -> Option<&str> {
        Some(&self.identity)
    }

    fn naming_relations(&self) -> &[RelationId] {
        &self.relations.naming
    }

    fn prefetch_names(&self, names: &[&str]) -> Result<()> {
        match self.names {
            Some(_) => Ok(()),
            None => self.search_names(names),
        }
    }

    fn knows_all_names(&self) -> bool {
        self.names.is_some()
    }
}
