//! Outlines of rows: which relations an entity has, how many triples of each, and one of them. One
//! request fetches many entities and both directions. The queries are simple because Virtuoso fails
//! on nested groups and on literals among IRIs.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::fetch::{CachedRow, RowPart, written_key};
use super::http::is_too_long;
use super::{LONGEST_TERM, Service, lock};
use crate::error::{Error, Result};
use crate::graph::{Edge, EntityId, RelationId};
use crate::key;

/// Size of a request for outlines, in batches of rows (guess).
const LARGER: usize = 4;
/// Up to this many entities are fetched with all their triples (guess),
const FEW: usize = 48;
/// unless there are more triples than this (guess).
const FEW_TRIPLES: usize = 4000;

/// A request for an outline, or for all triples of one relation of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RowRequest {
    pub(super) entity: EntityId,
    pub(super) outgoing: bool,
    pub(super) relation: Option<RelationId>,
}

/// What a request fetches.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FetchMode {
    /// Relations, each with a number and one triple.
    Counted,
    /// All triples.
    Whole,
    /// All triples of one relation.
    Runs,
}

/// What one request fetches, as SPARQL writes it; none for values, whose rows are short.
type OutlineTask<'t> = Option<(FetchMode, &'t [(RowRequest, String)])>;

/// Edges, and relations that have more edges than these.
type FetchedEdges = (Vec<Edge>, Vec<(RelationId, usize)>);

impl RowRequest {
    pub(super) fn part(self) -> RowPart {
        self.relation.map_or(RowPart::Outline, RowPart::Run)
    }
}

impl Service {
    /// Fetches outlines and runs that are not kept; whole rows where the service cannot count.
    pub(super) fn fetch_outlines(&self, wanted: &[RowRequest]) -> Result<()> {
        if self.counts_fail.load(Ordering::Relaxed) {
            return self.fetch_instead(wanted);
        }
        let (mut outlines, mut runs, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for &one in wanted {
            let key = self.key(one.entity)?;
            let is_value = key.first() == Some(&key::LITERAL);
            let is_label = self.indexed() > one.entity.index();
            match written_key(&key) {
                Some(_) if is_value && !is_label => values.push((one.entity, one.outgoing)),
                Some(text) if !is_value => match one.relation {
                    Some(_) => runs.push((one, text)),
                    None => outlines.push((one, text)),
                },
                // a label leads back to what it is the label of alone
                _ => {
                    lock(&self.rows).put(
                        one.entity,
                        one.outgoing,
                        one.part(),
                        CachedRow::default(),
                    );
                }
            }
        }
        let size = LARGER * self.config.limits.batch;
        let mode = if outlines.len() <= FEW {
            FetchMode::Whole
        } else {
            FetchMode::Counted
        };
        let mut tasks: Vec<OutlineTask<'_>> = Vec::new();
        tasks.extend(outlines.chunks(size).map(|batch| Some((mode, batch))));
        tasks.extend(
            runs.chunks(size)
                .map(|batch| Some((FetchMode::Runs, batch))),
        );
        if !values.is_empty() {
            tasks.push(None);
        }
        self.each_task(&tasks, |task| match task {
            Some((mode, batch)) => self.fetch_parts(batch, *mode, false),
            None => self.fetch_all(&values, &[]),
        })
    }

    fn fetch_instead(&self, wanted: &[RowRequest]) -> Result<()> {
        let rows: Vec<_> = wanted.iter().map(|w| (w.entity, w.outgoing)).collect();
        self.fetch_all(&rows, &[])
    }

    /// `short` leaves long values out: one of them was too long to be read.
    fn fetch_parts(
        &self,
        batch: &[(RowRequest, String)],
        mode: FetchMode,
        short: bool,
    ) -> Result<()> {
        let limit = match mode {
            FetchMode::Whole => FEW_TRIPLES.min(self.config.limits.rows),
            FetchMode::Counted | FetchMode::Runs => self.config.limits.rows,
        };
        let query = self.parts_query(batch, mode, short) + &format!(" LIMIT {}", limit + 1);
        let split = |service: &Self| {
            let (first, second) = batch.split_at(batch.len() / 2);
            service.fetch_parts(first, mode, short)?;
            service.fetch_parts(second, mode, short)
        };
        let reply = match self.client.select(&query, limit) {
            Ok(reply) if reply.cut && mode == FetchMode::Whole => {
                return self.fetch_parts(batch, FetchMode::Counted, short);
            }
            Ok(reply) if reply.cut && batch.len() > 1 => return split(self),
            Ok(reply) => reply,
            Err(Error::ServiceRefused {
                status: 413 | 414, ..
            }) if batch.len() > 1 => return split(self),
            Err(error) if is_too_long(&error) && !short => {
                return self.fetch_parts(batch, mode, true);
            }
            // a query that this service does not understand, or that is too much for it
            Err(
                Error::ServiceRefused {
                    status: 400 | 500 | 501,
                    ..
                }
                | Error::ServiceGaveUp { .. },
            ) => {
                self.counts_fail.store(true, Ordering::Relaxed);
                let wanted: Vec<RowRequest> = batch.iter().map(|(one, _)| *one).collect();
                return self.fetch_instead(&wanted);
            }
            Err(error) => return Err(error),
        };
        let place = |name: &str| reply.variables.iter().position(|v| v == name);
        let places = ["e", "p", "o", "i", "n"].map(place);
        let ids: HashMap<&str, EntityId> = (batch.iter())
            .map(|(one, text)| (text.as_str(), one.entity))
            .collect();
        let mut found: HashMap<RowRequest, FetchedEdges> = HashMap::new();
        for row in &reply.rows {
            let [e, p, o, i, n] = places.map(|at| row.get(at?)?.as_ref());
            let (Some(e), Some(oxrdf::Term::NamedNode(p)), Some(other)) = (e, p, o.or(i)) else {
                return Err(self
                    .client
                    .bad_reply("a row of a neighbourhood is incomplete"));
            };
            let Some(&entity) = ids.get(e.to_string().as_str()) else {
                return Err(self
                    .client
                    .bad_reply("it sent rows that were not requested"));
            };
            let mut bytes = Vec::new();
            key::push_object(&mut bytes, other.as_ref(), 0);
            let known = (self.relations.iris).binary_search_by(|iri| iri.as_str().cmp(p.as_str()));
            // a relation that came after the service was opened is not seen yet
            let (Ok(relation), true) = (known, bytes.len() <= LONGEST_TERM) else {
                continue;
            };
            let relation = RelationId(relation as u32);
            let of = RowRequest {
                entity,
                outgoing: o.is_some(),
                relation: (mode == FetchMode::Runs).then_some(relation),
            };
            let (edges, long) = found.entry(of).or_default();
            edges.push(Edge {
                relation,
                entity: self.intern(&bytes)?,
            });
            if let Some(oxrdf::Term::Literal(n)) = n {
                let n = n.value().parse().ok();
                let n: usize = n.ok_or_else(|| self.client.bad_reply("a count is not a number"))?;
                if n > 1 {
                    long.push((relation, n));
                }
            }
        }
        let mut kept = lock(&self.rows);
        for (one, _) in batch {
            let (mut edges, mut long) = found.remove(one).unwrap_or_default();
            edges.sort_unstable();
            edges.dedup();
            long.sort_unstable();
            let row = CachedRow {
                edges: edges.into(),
                long: long.into(),
                cut: reply.cut,
            };
            kept.put(one.entity, one.outgoing, one.part(), row);
        }
        Ok(())
    }

    /// A query for `?e ?p`, the other end `?o` or `?i`, and how many such there are as `?n`.
    fn parts_query(&self, batch: &[(RowRequest, String)], mode: FetchMode, short: bool) -> String {
        let mut branches = Vec::new();
        for outgoing in [true, false] {
            let (end, pattern) = match outgoing {
                true => ("?o", "?e ?p ?v"),
                false => ("?i", "?v ?p ?e"),
            };
            let of = batch.iter().filter(|(one, _)| one.outgoing == outgoing);
            let written = |(one, text): &(RowRequest, String)| match one.relation {
                Some(relation) => format!("({text} <{}>)", self.relations.iris[relation.index()]),
                None => text.clone(),
            };
            let of: Vec<String> = of.map(written).collect();
            if of.is_empty() {
                continue;
            }
            let mut seen = self.seen("?v");
            if short {
                seen += &format!(" FILTER(isIRI(?v) || STRLEN(STR(?v)) <= {LONGEST_TERM})");
            }
            let given = if mode == FetchMode::Runs {
                "(?e ?p)"
            } else {
                "?e"
            };
            let what = format!(
                "WHERE {{ VALUES {given} {{ {} }} {pattern} {seen} }}",
                of.join(" ")
            );
            branches.push(match mode {
                FetchMode::Counted => format!(
                    "{{ SELECT ?e ?p (SAMPLE(?v) AS {end}) (COUNT(*) AS ?n) {what} GROUP BY ?e ?p }}"
                ),
                FetchMode::Whole | FetchMode::Runs => format!("{{ {} }}", what.replace("?v", end)),
            });
        }
        let branches = branches.join(" UNION ").replace("{ WHERE {", "{ {");
        format!("SELECT ?e ?p ?o ?i ?n WHERE {{ {branches} }}")
    }
}
