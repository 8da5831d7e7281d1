//! Looking around in a graph: names, entities, neighbourhoods, relations, SPARQL.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use wherefore::graph::names::normalise;
use wherefore::graph::sparql::{self, ResultFormat, SparqlOptions, Written};
use wherefore::graph::{Edge, EntityId, Graph, NameMatch, RelationId, Result, Triple};

use super::{Current, Served, clipped};
use crate::problem::Problem;

/// The most words at the end of a text that are tried as the beginning of a name.
const MOST_WORDS: usize = 6;
/// Names with the same beginning that are looked at to find the best known.
const LOOKED_AT: usize = 200;

/// An entity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EntityReport {
    /// Its label.
    pub(crate) name: String,
    /// Its identity in the graph.
    pub(crate) id: String,
    /// Triples that it is head or tail of.
    pub(crate) triples: usize,
}

/// A triple by its labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fact {
    head: String,
    relation: String,
    tail: String,
    ids: [String; 3],
}

/// An entity with what the graph says of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Neighbourhood {
    pub(crate) entity: EntityReport,
    /// Triples in all, but for those that only give names.
    pub(crate) total: usize,
    pub(crate) triples: Vec<Fact>,
}

/// A relation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RelationReport {
    pub(crate) name: String,
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) triples: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) example: Option<Fact>,
}

/// How a text that is being typed may go on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Completions {
    /// The end of the text that is the beginning of these names.
    pub(crate) typed: String,
    pub(crate) entities: Vec<EntityReport>,
}

fn entity_report(graph: &dyn Graph, entity: EntityId) -> Result<EntityReport> {
    Ok(EntityReport {
        name: graph.entity_label(entity)?.into_owned(),
        id: graph.entity_term(entity)?.to_string(),
        triples: graph.degree(entity)?,
    })
}

fn fact(graph: &dyn Graph, triple: Triple) -> Result<Fact> {
    Ok(Fact {
        head: graph.entity_label(triple.head)?.into_owned(),
        relation: graph.relation_label(triple.relation)?.into_owned(),
        tail: graph.entity_label(triple.tail)?.into_owned(),
        ids: [
            graph.entity_term(triple.head)?.to_string(),
            graph.relation_term(triple.relation)?.to_string(),
            graph.entity_term(triple.tail)?.to_string(),
        ],
    })
}

fn search(graph: &dyn Graph, prefix: &str, limit: usize) -> Result<Vec<EntityReport>> {
    if normalise(prefix).is_empty() {
        return Ok(Vec::new());
    }
    let whole = graph.entities_named(prefix, NameMatch::Normalised)?;
    let begun = graph.entities_with_prefix(prefix, LOOKED_AT)?;
    let whole: HashSet<EntityId> = whole.into_iter().collect();
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for &entity in whole.iter().chain(&begun) {
        if seen.insert(entity) && graph.is_named(entity)? {
            let degree = graph.degree(entity)?;
            found.push((!whole.contains(&entity), usize::MAX - degree, entity));
        }
    }
    found.sort_unstable();
    found.truncate(limit);
    found
        .into_iter()
        .map(|(_, _, entity)| entity_report(graph, entity))
        .collect()
}

impl Served {
    /// Entities whose name begins so: the whole name first, then the best known.
    pub(crate) fn search(&self, prefix: &str, limit: usize) -> Result<Vec<EntityReport>> {
        search(&*self.current()?, prefix, limit)
    }

    /// How a text may go on: the longest end of it with which some name begins.
    pub(crate) fn complete(&self, text: &str, limit: usize) -> Result<Completions> {
        let starts: Vec<usize> = (text.char_indices())
            .filter(|&(i, c)| {
                !c.is_whitespace()
                    && text[..i]
                        .chars()
                        .next_back()
                        .is_none_or(char::is_whitespace)
            })
            .map(|(i, _)| i)
            .collect();
        let graph = self.current()?;
        let from = starts.len().saturating_sub(MOST_WORDS);
        for &start in &starts[from..] {
            let typed = &text[start..];
            if normalise(typed).chars().count() < 2 {
                continue;
            }
            let entities = search(&*graph, typed, limit)?;
            if !entities.is_empty() {
                return Ok(Completions {
                    typed: typed.to_owned(),
                    entities,
                });
            }
        }
        Ok(Completions {
            typed: String::new(),
            entities: Vec::new(),
        })
    }

    /// The entity with this identity, or else the best known one of this name.
    fn find(&self, graph: &dyn Graph, id: &str) -> Result<EntityId, Problem> {
        let named = |how| graph.entities_named(id, how);
        if let Some(label) = id.strip_prefix("_:") {
            let blank = graph.entities_named(id, NameMatch::Exact)?;
            if let (Some(&entity), false) = (blank.first(), label.is_empty()) {
                return Ok(entity);
            }
        }
        // a literal is found by its value
        if let Some(value) = id.strip_prefix('"').and_then(|rest| rest.rsplit_once('"')) {
            for entity in graph.entities_named(value.0, NameMatch::Exact)? {
                if graph.entity_term(entity)?.to_string() == id {
                    return Ok(entity);
                }
            }
        }
        for how in [NameMatch::Exact, NameMatch::Normalised] {
            let mut best = None;
            for entity in named(how)? {
                let same = graph.entity_term(entity)?.to_string() == id;
                let rank = (same, graph.degree(entity)?);
                if best.is_none_or(|(known, _)| rank > known) {
                    best = Some((rank, entity));
                }
            }
            if let Some((_, entity)) = best {
                return Ok(entity);
            }
        }
        let near = search(graph, id, 3)?;
        let problem = Problem::not_found(
            "no-such-entity",
            format!("the graph `{}` has no entity `{}`", self.name, clipped(id)),
        );
        Err(match near.as_slice() {
            [] => problem,
            near => {
                let names: Vec<&str> = near.iter().map(|e| e.name.as_str()).collect();
                problem.hint(format!("near it are: {}", names.join(", ")))
            }
        })
    }

    /// What the graph says of an entity: at most `limit` triples, some of every relation.
    pub(crate) fn neighbourhood(&self, id: &str, limit: usize) -> Result<Neighbourhood, Problem> {
        let current = self.current()?;
        let graph: &dyn Graph = &*current;
        let entity = self.find(graph, id)?;
        let naming = graph.naming_relations();
        let outgoing = graph.outgoing(entity)?;
        let incoming = graph.incoming(entity)?;
        let mut groups: BTreeMap<(RelationId, bool), Vec<Edge>> = BTreeMap::new();
        let mut total = 0;
        for (edges, is_out) in [(&outgoing, true), (&incoming, false)] {
            for &edge in edges.iter().filter(|e| !naming.contains(&e.relation)) {
                if is_out || edge.entity != entity {
                    groups
                        .entry((edge.relation, is_out))
                        .or_default()
                        .push(edge);
                    total += 1;
                }
            }
        }
        let mut triples = Vec::with_capacity(total.min(limit));
        let mut round = 0;
        while triples.len() < total.min(limit) {
            for (&(_, is_out), edges) in &groups {
                if let Some(edge) = edges.get(round)
                    && triples.len() < limit
                {
                    let (head, tail) = match is_out {
                        true => (entity, edge.entity),
                        false => (edge.entity, entity),
                    };
                    triples.push(fact(
                        graph,
                        Triple {
                            head,
                            relation: edge.relation,
                            tail,
                        },
                    )?);
                }
            }
            round += 1;
        }
        Ok(Neighbourhood {
            entity: entity_report(graph, entity)?,
            total,
            triples,
        })
    }

    /// The relations, the most frequent first, each with an example.
    pub(crate) fn relations(&self, limit: usize) -> Result<Vec<RelationReport>> {
        let current = self.current()?;
        let graph: &dyn Graph = &*current;
        let mut counted = Vec::new();
        for id in 0..graph.relation_bound() as u32 {
            let relation = RelationId(id);
            let count = (graph.store()).map(|store| store.relation_count(relation));
            counted.push((count.transpose()?, relation));
        }
        // a service does not say how many there are; a relation whose triples are gone is none
        counted.retain(|(count, _)| *count != Some(0));
        counted.sort_by_key(|&(count, relation)| (Reverse(count), relation));
        counted.truncate(limit);
        let mut reports = Vec::with_capacity(counted.len());
        for (triples, relation) in counted {
            let first = match graph.store() {
                Some(store) => store.triples_by_relation(relation)?.next().transpose()?,
                None => None,
            };
            reports.push(RelationReport {
                name: graph.relation_label(relation)?.into_owned(),
                id: graph.relation_term(relation)?.to_string(),
                triples,
                example: first.map(|triple| fact(graph, triple)).transpose()?,
            });
        }
        Ok(reports)
    }

    /// Runs a SPARQL query.
    pub(crate) fn sparql(
        &self,
        query: &str,
        options: &SparqlOptions,
        format: ResultFormat,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<(Vec<u8>, Written)> {
        let mut out = Vec::new();
        let written = match (self.current()?, &self.workers) {
            (Current::Store(store), Some(workers)) => {
                workers.write(store.path(), query, options, format, &mut out, is_wanted)?
            }
            (Current::Store(store), None) => {
                sparql::write(&store, query, options, format, &mut out)?
            }
            (Current::Service(service), _) => {
                service.write_query(query, options, format, &mut out)?
            }
        };
        Ok((out, written))
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::toy_engine;

    #[test]
    fn the_longest_end_that_begins_a_name_is_completed() {
        let engine = toy_engine();
        let toy = engine.graph(None).unwrap();
        let found = toy
            .complete("who is the mascot of the san fran", 5)
            .unwrap();
        assert_eq!(found.typed, "san fran");
        // the city stands in four triples, the club in seven
        let names: Vec<_> = found.entities.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["San Francisco Giants", "San Francisco"]);
        let whole = toy.complete("San Francisco", 5).unwrap();
        assert_eq!(whole.entities[0].name, "San Francisco");
        assert!(toy.complete("what is", 5).unwrap().entities.is_empty());
        assert!(toy.complete("", 5).unwrap().entities.is_empty());
    }

    #[test]
    fn a_neighbourhood_shows_some_of_every_relation() {
        let engine = toy_engine();
        let toy = engine.graph(None).unwrap();
        // plays_in, located_in, three won, coached_by, and mascot_of from the other side
        let all = toy.neighbourhood("san francisco giants", 50).unwrap();
        assert_eq!((all.total, all.triples.len()), (7, 7));
        let some = toy.neighbourhood("San Francisco Giants", 5).unwrap();
        let relations: std::collections::HashSet<_> =
            some.triples.iter().map(|t| t.relation.clone()).collect();
        assert_eq!(relations.len(), 5);
        let unknown = toy.neighbourhood("San Frantic", 5).unwrap_err();
        assert_eq!((unknown.status, unknown.code), (404, "no-such-entity"));
    }

    #[test]
    fn relations_come_by_frequency() {
        let engine = toy_engine();
        let relations = engine.graph(None).unwrap().relations(2).unwrap();
        assert_eq!(relations.len(), 2);
        // located_in stands in 8 of the facts, won in 4
        assert_eq!(
            (relations[0].name.as_str(), relations[0].triples),
            ("located in", Some(8))
        );
        assert_eq!(
            (relations[1].name.as_str(), relations[1].triples),
            ("won", Some(4))
        );
    }
}
