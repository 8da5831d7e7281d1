//! Rows, labels and relations, many at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::http::is_too_long;
use super::{LONGEST_TERM, Relations, Service, lock, truncate_label};
use crate::error::{Error, Result};
use crate::graph::{Adjacency, Edge, EntityId, RelationId, Triple};
use crate::key;
use crate::load::naming::label_rank;

/// Relations that are listed; a graph with more of them has a list in its configuration.
const MAX_RELATIONS: usize = 100_000;

/// What is kept of an entity in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RowPart {
    /// All its edges.
    Row,
    /// Its short runs, and of each long one an edge.
    Outline,
    /// Its edges of one relation.
    Run(RelationId),
}

/// A row or a part of one, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct CachedRow {
    pub(super) edges: Arc<[Edge]>,
    /// Relations of which not all edges are here, with how many there are.
    pub(super) long: Arc<[(RelationId, usize)]>,
    /// Whether the service has more than it sent.
    pub(super) cut: bool,
}

/// Rows that were fetched, the last used within a budget of edges.
#[derive(Debug)]
pub(super) struct RowCache {
    rows: HashMap<(EntityId, bool, RowPart), (CachedRow, u64)>,
    edges: usize,
    max_edges: usize,
    clock: u64,
}

impl RowCache {
    pub(super) fn new(max_edges: usize) -> Self {
        Self {
            rows: HashMap::new(),
            edges: 0,
            max_edges,
            clock: 0,
        }
    }

    pub(super) fn get(
        &mut self,
        entity: EntityId,
        outgoing: bool,
        part: RowPart,
    ) -> Option<CachedRow> {
        self.clock += 1;
        let (row, used) = self.rows.get_mut(&(entity, outgoing, part))?;
        *used = self.clock;
        Some(row.clone())
    }

    fn has(&self, entity: EntityId, outgoing: bool) -> bool {
        self.rows.contains_key(&(entity, outgoing, RowPart::Row))
    }

    /// An empty row weighs as much as its place.
    fn weight(row: &CachedRow) -> usize {
        row.edges.len() + row.long.len() + 8
    }

    pub(super) fn put(&mut self, entity: EntityId, outgoing: bool, part: RowPart, row: CachedRow) {
        self.clock += 1;
        self.edges += Self::weight(&row);
        let place = (entity, outgoing, part);
        if let Some((old, _)) = self.rows.insert(place, (row, self.clock)) {
            self.edges -= Self::weight(&old);
        }
        if self.edges > self.max_edges {
            // half of it at once: looking for the oldest costs a pass over all
            let mut ages: Vec<u64> = self.rows.values().map(|(_, used)| *used).collect();
            let middle = ages.len() / 2;
            let (_, median, _) = ages.select_nth_unstable(middle);
            let median = *median;
            self.rows.retain(|_, (_, used)| *used >= median);
            self.edges = self.rows.values().map(|(row, _)| Self::weight(row)).sum();
        }
    }
}

/// What one request fetches.
enum FetchTask<'t> {
    /// Rows of these, outgoing or not.
    Rows(bool, &'t [(EntityId, String)]),
    Labels(&'t [(EntityId, String)]),
}

impl Service {
    /// A term as SPARQL writes it; none where it cannot be asked for.
    pub(super) fn written(&self, entity: EntityId) -> Result<Option<String>> {
        Ok(written_key(&self.key(entity)?))
    }

    /// `FILTER` for what is seen of a graph.
    pub(super) fn seen(&self, other: &str) -> String {
        let naming: Vec<String> = (self.config.labels.iter().chain(&self.config.aliases))
            .map(|iri| format!("<{iri}>"))
            .collect();
        format!(
            "FILTER(?p NOT IN ({})) FILTER(!isBlank({other}))",
            naming.join(", ")
        )
    }

    /// Fetches the rows that are not kept, in batches, several at the same time.
    pub(super) fn fetch_rows(&self, entities: &[EntityId], directions: &[bool]) -> Result<()> {
        let each = |&outgoing: &bool| entities.iter().map(move |&entity| (entity, outgoing));
        let rows: Vec<(EntityId, bool)> = directions.iter().flat_map(each).collect();
        self.fetch_all(&rows, &[])
    }

    /// Fetches rows, and labels, that are not kept, in batches, several at the same time.
    pub(super) fn fetch_all(&self, rows: &[(EntityId, bool)], labels: &[EntityId]) -> Result<()> {
        let mut wanted: [Vec<(EntityId, String)>; 2] = [Vec::new(), Vec::new()];
        let mut seen = std::collections::HashSet::new();
        for &(entity, outgoing) in rows {
            if lock(&self.rows).has(entity, outgoing) || !seen.insert((entity, outgoing)) {
                continue;
            }
            let key = self.key(entity)?;
            let literal = key.first() == Some(&key::LITERAL);
            match written_key(&key).filter(|_| !(literal && outgoing)) {
                Some(text) => wanted[usize::from(outgoing)].push((entity, text)),
                // nothing leaves a value, and a blank node cannot be asked for
                None => lock(&self.rows).put(entity, outgoing, RowPart::Row, CachedRow::default()),
            }
        }
        let mut named = Vec::new();
        for &entity in labels {
            match self.key(entity)? {
                key if key.first() == Some(&key::IRI) => {
                    named.extend(written_key(&key).map(|text| (entity, text)));
                }
                _ => self.keep_labels(&[(entity, String::new())], HashMap::new()),
            }
        }
        let limits = &self.config.limits;
        let mut tasks: Vec<FetchTask<'_>> = Vec::new();
        for outgoing in [true, false] {
            let batches = wanted[usize::from(outgoing)].chunks(limits.batch);
            tasks.extend(batches.map(|batch| FetchTask::Rows(outgoing, batch)));
        }
        tasks.extend(named.chunks(4 * limits.batch).map(FetchTask::Labels));
        self.each_task(&tasks, |task| match task {
            FetchTask::Rows(outgoing, batch) => self.fetch_batch(batch, *outgoing, false),
            FetchTask::Labels(batch) => self.fetch_labels(batch),
        })
    }

    /// Runs tasks on as many threads as there may be connections.
    pub(super) fn each_task<T: Sync>(
        &self,
        tasks: &[T],
        run: impl Fn(&T) -> Result<()> + Sync,
    ) -> Result<()> {
        if let [task] = tasks {
            return run(task);
        }
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.config.limits.connections.min(tasks.len()) {
                scope.spawn(|| {
                    while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(error) = run(task) {
                            lock(&failed).get_or_insert(error);
                            next.store(tasks.len(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }

    /// `short` leaves long values out: one of them was too long to be read.
    fn fetch_batch(&self, batch: &[(EntityId, String)], outgoing: bool, short: bool) -> Result<()> {
        let limit = self.config.limits.rows;
        let terms: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
        let pattern = match outgoing {
            true => "?e ?p ?o",
            false => "?o ?p ?e",
        };
        let length = match short {
            true => format!("FILTER(isIRI(?o) || STRLEN(STR(?o)) <= {LONGEST_TERM})"),
            false => String::new(),
        };
        let query = format!(
            "SELECT ?e ?p ?o WHERE {{ VALUES ?e {{ {} }} {pattern} {} {length} }} LIMIT {}",
            terms.join(" "),
            self.seen("?o"),
            limit + 1
        );
        let split = |service: &Self| {
            let (first, second) = batch.split_at(batch.len() / 2);
            service.fetch_batch(first, outgoing, short)?;
            service.fetch_batch(second, outgoing, short)
        };
        let reply = match self.client.select(&query, limit) {
            Ok(reply) => reply,
            // too long for this service or something before it
            Err(Error::ServiceRefused {
                status: 413 | 414, ..
            }) if batch.len() > 1 => {
                return split(self);
            }
            Err(error) if is_too_long(&error) && !short => {
                return self.fetch_batch(batch, outgoing, true);
            }
            Err(error) => return Err(error),
        };
        if reply.cut && batch.len() > 1 {
            return split(self);
        }
        let ids: HashMap<&str, EntityId> = (batch.iter())
            .map(|(entity, text)| (text.as_str(), *entity))
            .collect();
        let mut rows: HashMap<EntityId, Vec<Edge>> = HashMap::new();
        for row in &reply.rows {
            let [Some(e), Some(p), Some(o)] = row.as_slice() else {
                return Err(self
                    .client
                    .bad_reply("a row of a neighbourhood has no `?e`, `?p`, `?o`"));
            };
            // a service may write a value otherwise than it was asked for
            let is_value = matches!(e, oxrdf::Term::Literal(_));
            let entity = match ids.get(e.to_string().as_str()) {
                Some(&entity) => entity,
                None if batch.len() == 1 && is_value => batch[0].0,
                None => {
                    return Err(self
                        .client
                        .bad_reply("it sent rows that were not requested"));
                }
            };
            let oxrdf::Term::NamedNode(p) = p else {
                return Err(self.client.bad_reply("a predicate is not an IRI"));
            };
            let mut bytes = Vec::new();
            key::push_object(&mut bytes, o.as_ref(), 0);
            // a relation that came after the service was opened is not seen yet
            if let Ok(relation) = self
                .relations
                .iris
                .binary_search_by(|iri| iri.as_str().cmp(p.as_str()))
                && bytes.len() <= LONGEST_TERM
            {
                rows.entry(entity).or_default().push(Edge {
                    relation: RelationId(relation as u32),
                    entity: self.intern(&bytes)?,
                });
            }
        }
        let mut kept = lock(&self.rows);
        for (entity, _) in batch {
            let mut edges = rows.remove(entity).unwrap_or_default();
            edges.sort_unstable();
            edges.dedup();
            let row = CachedRow {
                edges: edges.into(),
                cut: reply.cut,
                ..CachedRow::default()
            };
            kept.put(*entity, outgoing, RowPart::Row, row);
        }
        Ok(())
    }

    /// Triples with a relation, in order of (head, tail), as many as a reply may have.
    pub(super) fn fetch_relation(&self, relation: RelationId) -> Result<Vec<Triple>> {
        let Some(iri) = self.relations.iris.get(relation.index()) else {
            return Ok(Vec::new());
        };
        let limit = self.config.limits.rows;
        let query = format!(
            "SELECT ?h ?t WHERE {{ ?h <{iri}> ?t FILTER(!isBlank(?h) && !isBlank(?t) && \
             (isIRI(?t) || STRLEN(STR(?t)) <= {LONGEST_TERM})) }} LIMIT {limit}"
        );
        let mut triples = Vec::new();
        for row in self.client.select(&query, limit)?.rows {
            let [Some(head), Some(tail)] = row.as_slice() else {
                return Err(self
                    .client
                    .bad_reply("a row of a relation has no head or tail"));
            };
            triples.push(Triple {
                head: self.intern_term(head)?,
                relation,
                tail: self.intern_term(tail)?,
            });
        }
        triples.sort_unstable_by_key(|t| (t.head, t.tail));
        triples.dedup();
        Ok(triples)
    }

    /// What `?x` stands for in a query, sorted, and whether there is more than `limit` or than the
    /// service sends. Blank nodes, which cannot be asked for again, are left out.
    pub(super) fn select_x(&self, query: &str, limit: usize) -> Result<(Vec<EntityId>, bool)> {
        let query = self.with_prefixes(query) + &format!("\nLIMIT {}", limit.saturating_add(1));
        let reply = self.client.select(&query, limit)?;
        if reply.rows.is_empty() {
            return Ok((Vec::new(), reply.cut));
        }
        let Some(x) = reply.variables.iter().position(|name| name == "x") else {
            return Err(self.client.bad_reply("it sent rows without `?x`"));
        };
        let mut found = Vec::new();
        for term in reply.rows.iter().filter_map(|row| row.get(x)?.as_ref()) {
            if !matches!(term, oxrdf::Term::BlankNode(_)) {
                found.push(self.intern_term(term)?);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok((found, reply.cut))
    }

    /// What some variables stand for in each row of a query; none where there are more rows than a
    /// reply may have, or where a blank node stands in one.
    pub fn select_rows(
        &self,
        query: &str,
        variables: &[&str],
    ) -> Result<Option<Vec<Vec<EntityId>>>> {
        let limit = self.config.limits.rows;
        let query = self.with_prefixes(query) + &format!("\nLIMIT {}", limit + 1);
        let reply = self.client.select(&query, limit)?;
        if reply.cut {
            return Ok(None);
        }
        if reply.rows.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let place = |name: &&str| reply.variables.iter().position(|v| v == name);
        let places: Option<Vec<usize>> = variables.iter().map(place).collect();
        let places = places.ok_or_else(|| self.client.bad_reply("a variable is missing"))?;
        let mut found = Vec::with_capacity(reply.rows.len());
        for row in &reply.rows {
            let mut terms = Vec::with_capacity(places.len());
            for &at in &places {
                match row.get(at) {
                    None | Some(None | Some(oxrdf::Term::BlankNode(_))) => return Ok(None),
                    Some(Some(term)) => terms.push(self.intern_term(term)?),
                }
            }
            found.push(terms);
        }
        Ok(Some(found))
    }

    /// The service said so of these triples, and need not be asked again.
    pub fn note_stated(&self, triples: &[Triple]) {
        let mut stated = lock(&self.stated);
        if stated.len() + triples.len() > self.config.limits.cached_edges {
            stated.clear();
        }
        stated.extend(triples);
    }

    fn intern_term(&self, term: &oxrdf::Term) -> Result<EntityId> {
        let mut bytes = Vec::new();
        key::push_object(&mut bytes, term.as_ref(), 0);
        self.intern(&bytes)
    }

    /// Whether the service states a triple.
    pub(super) fn ask_triple(&self, triple: Triple) -> Result<bool> {
        let (Some(head), Some(tail), Some(relation)) = (
            self.written(triple.head)?,
            self.written(triple.tail)?,
            self.relations.iris.get(triple.relation.index()),
        ) else {
            return Ok(false);
        };
        if head.starts_with('"') {
            return Ok(false);
        }
        self.client
            .ask(&format!("ASK {{ {head} <{relation}> {tail} }}"))
    }

    /// Fetches the label of an entity, and of those that were met after it: they were met
    /// together, and will be read together.
    pub(super) fn fetch_labels_around(&self, entity: EntityId) -> Result<()> {
        let bound = self.entity_bound();
        let mut wanted = Vec::new();
        for id in entity.index()..bound {
            if wanted.len() == 4 * self.config.limits.batch {
                break;
            }
            let next = EntityId(id as u32);
            let labels = self.labels.read().unwrap_or_else(PoisonError::into_inner);
            let known = labels.contains_key(&next);
            drop(labels);
            let key = self.key(next)?;
            if !known
                && key.first() == Some(&key::IRI)
                && let Some(text) = written_key(&key)
            {
                wanted.push((next, text));
            }
        }
        if wanted.is_empty() || wanted[0].0 != entity {
            self.keep_labels(&[(entity, String::new())], HashMap::new());
            return Ok(());
        }
        self.fetch_labels(&wanted)
    }

    fn fetch_labels(&self, wanted: &[(EntityId, String)]) -> Result<()> {
        let texts: Vec<&str> = wanted.iter().map(|(_, text)| text.as_str()).collect();
        let found = self.labels_of(&texts)?;
        self.keep_labels(wanted, found);
        Ok(())
    }

    /// Keeps the labels that were found, and that the others have none.
    fn keep_labels(&self, wanted: &[(EntityId, String)], mut found: HashMap<String, String>) {
        let mut labels = self.labels.write().unwrap_or_else(PoisonError::into_inner);
        for (entity, text) in wanted {
            labels.insert(*entity, found.remove(text.as_str()));
        }
    }

    /// The best labels of terms as SPARQL writes them.
    fn labels_of(&self, texts: &[&str]) -> Result<HashMap<String, String>> {
        let predicates: Vec<String> = self
            .config
            .labels
            .iter()
            .map(|p| format!("<{p}>"))
            .collect();
        let language = &self.config.language;
        let query = format!(
            "SELECT ?e ?p ?l WHERE {{ VALUES ?e {{ {} }} VALUES ?p {{ {} }} ?e ?p ?l \
             FILTER(isLiteral(?l) && STRLEN(STR(?l)) <= 65536 && (LANG(?l) = \"\" || LANGMATCHES(LANG(?l), \"{language}\"))) }} \
             LIMIT {}",
            texts.join(" "),
            predicates.join(" "),
            16 * texts.len()
        );
        let reply = match self.client.select(&query, 16 * texts.len()) {
            Err(Error::ServiceRefused {
                status: 413 | 414, ..
            }) if texts.len() > 1 => {
                let (first, second) = texts.split_at(texts.len() / 2);
                let mut all = self.labels_of(first)?;
                all.extend(self.labels_of(second)?);
                return Ok(all);
            }
            // a name of megabytes is none
            Err(error) if is_too_long(&error) => match texts.split_at(texts.len() / 2) {
                ([], _) => return Ok(HashMap::new()),
                (first, second) => {
                    let mut all = self.labels_of(first)?;
                    all.extend(self.labels_of(second)?);
                    return Ok(all);
                }
            },
            reply => reply?,
        };
        let mut best: HashMap<String, (u8, usize, Vec<u8>)> = HashMap::new();
        for row in &reply.rows {
            let [Some(e), Some(oxrdf::Term::NamedNode(p)), Some(l)] = row.as_slice() else {
                return Err(self
                    .client
                    .bad_reply("a row of labels has no `?e`, `?p`, `?l`"));
            };
            let mut bytes = Vec::new();
            key::push_object(&mut bytes, l.as_ref(), 0);
            let place = self.config.labels.iter().position(|iri| iri == p.as_str());
            if let (Some(rank), Some(place)) = (label_rank(&bytes, language), place) {
                let found = (rank, place, bytes);
                let known = best.entry(e.to_string()).or_insert_with(|| found.clone());
                if found < *known {
                    *known = found;
                }
            }
        }
        let text = |bytes: &[u8]| key::text(bytes).map(str::to_owned).unwrap_or_default();
        Ok(best
            .into_iter()
            .map(|(e, (.., bytes))| (e, truncate_label(text(&bytes))))
            .collect())
    }

    /// All relations with their labels, in order of their IRIs; those that give names too.
    pub(super) fn fetch_relations(&self) -> Result<Relations> {
        let mut iris = self.config.relations.clone();
        if iris.is_empty() {
            let query = format!(
                "SELECT DISTINCT ?p WHERE {{ ?s ?p ?o }} LIMIT {}",
                MAX_RELATIONS + 1
            );
            let reply = self.client.select(&query, MAX_RELATIONS)?;
            if reply.cut {
                return Err(Error::BadService {
                    name: self.config.url.clone(),
                    reason: format!(
                        "it has more than {} relations; list those that matter as `relations` in its file",
                        reply.rows.len()
                    ),
                });
            }
            for row in reply.rows {
                if let [Some(oxrdf::Term::NamedNode(p))] = row.as_slice() {
                    iris.push(p.as_str().to_owned());
                }
            }
        }
        // those that give names are relations like any other, and only where they occur: what
        // methods compute over all relations is then what they compute over a store's
        let naming = || self.config.labels.iter().chain(&self.config.aliases);
        iris.sort_unstable();
        iris.dedup();
        let place = |iri: &String| iris.binary_search(iri).ok().map(|i| RelationId(i as u32));
        let mut naming: Vec<RelationId> = naming().filter_map(place).collect();
        naming.sort_unstable();
        naming.dedup();
        let texts: Vec<String> = iris.iter().map(|iri| format!("<{iri}>")).collect();
        let mut labels = vec![None; iris.len()];
        let size = 4 * self.config.limits.batch;
        for (number, chunk) in texts.chunks(size).enumerate() {
            let chunk: Vec<&str> = chunk.iter().map(String::as_str).collect();
            let mut found = self.labels_of(&chunk)?;
            for (i, text) in chunk.iter().enumerate() {
                labels[number * size + i] = found.remove(*text);
            }
        }
        Ok(Relations {
            iris,
            labels,
            naming,
        })
    }
}

/// A key as SPARQL writes the term; none where SPARQL cannot.
pub(super) fn written_key(bytes: &[u8]) -> Option<String> {
    use crate::graph::{Literal, LiteralKind, Term};
    let node = |iri: String| oxrdf::NamedNode::new(iri).ok();
    Some(match key::decode(bytes)? {
        Term::Iri(iri) => node(iri)?.to_string(),
        Term::Literal(Literal { value, kind }) => match kind {
            LiteralKind::Plain => oxrdf::Literal::new_simple_literal(value),
            LiteralKind::Language(tag) => {
                oxrdf::Literal::new_language_tagged_literal(value, tag).ok()?
            }
            LiteralKind::Typed(datatype) => {
                oxrdf::Literal::new_typed_literal(value, node(datatype)?)
            }
        }
        .to_string(),
        Term::Name(_) | Term::Blank(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_what_was_used_last_within_its_budget() {
        let mut cache = RowCache::new(100);
        let row = |n: usize| CachedRow {
            edges: vec![Edge::default(); n].into(),
            ..CachedRow::default()
        };
        for id in 0..5 {
            cache.put(EntityId(id), true, RowPart::Row, row(10)); // 18 each
        }
        assert!(cache.get(EntityId(0), true, RowPart::Row).is_some());
        cache.put(EntityId(9), false, RowPart::Row, row(10)); // 108 > 100: the older half goes
        assert!(cache.has(EntityId(0), true) && cache.has(EntityId(9), false));
        assert!(!cache.has(EntityId(1), true));
        assert!(cache.edges <= 100);
        // the same row again weighs no more
        let before = cache.edges;
        cache.put(EntityId(9), false, RowPart::Row, row(10));
        assert_eq!(cache.edges, before);
    }
}
