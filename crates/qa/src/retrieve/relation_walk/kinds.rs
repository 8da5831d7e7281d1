//! What kinds of things a graph has, where it says so (`rdf:type`, `instance of`, `is a`), and
//! which of them a word of the question means.
//!
//! A word means a kind if it is the kind's name, in the singular or the plural, or if of all kinds'
//! names one is nearer to it than [`NEAR`] and nearer by [`APART`] than the next.

use hashbrown::HashMap;
use wherefore_graph::names::normalise;
use wherefore_graph::{Edge, EntityId, Graph, RelationId};
use wherefore_model::{Embeddings, Encoder};

use crate::error::Result;
use crate::relations::dot;
use crate::words::stem;

/// What relations are called that say of what kind a thing is.
const TYPES: [&str; 5] = ["type", "is a", "isa", "instance of", "rdf type"];

/// Entities whose kinds are looked at.
const MAX_LOOKED: usize = 500_000;

/// Kinds that are kept, the most frequent first.
const MAX_KINDS: usize = 2000;

/// The least cosine at which a word means a kind that is called otherwise.
const NEAR: f32 = 0.5;
/// How much nearer it has to be than to the next.
const APART: f32 = 0.05;

/// Other words for what graphs often have.
const OTHER_WORDS: [(&str, &str); 12] = [
    ("aerodrome", "airport"),
    ("film", "movie"),
    ("land", "country"),
    ("movie", "film"),
    ("nation", "country"),
    ("ocean", "sea"),
    ("organization", "organisation"),
    ("organisation", "organization"),
    ("peak", "mountain"),
    ("stream", "river"),
    ("summit", "mountain"),
    ("town", "city"),
];

/// The kinds of one graph.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// The relations that say of what kind a thing is.
    relations: Vec<RelationId>,
    kinds: Vec<EntityId>,
    /// The stem of the last word of each kind's name, and all of it.
    names: Vec<(String, String)>,
    rows: Option<Embeddings>, // [kinds, dim]
}

impl Kinds {
    pub(super) fn build(graph: &dyn Graph, encoder: &dyn Encoder) -> Result<Self> {
        let mut relations = Vec::new();
        for id in 0..u32::try_from(graph.relation_bound()).expect("relation ids have 32 bits") {
            let label = normalise(&graph.relation_label(RelationId(id))?);
            if TYPES.contains(&label.as_str()) {
                relations.push(RelationId(id));
            }
        }
        if relations.is_empty() {
            return Ok(Self::default());
        }
        let mut counts: HashMap<EntityId, usize> = HashMap::new();
        let bound = graph.entity_bound().min(MAX_LOOKED);
        for id in 0..u32::try_from(bound).expect("entity ids have 32 bits") {
            for edge in graph.outgoing(EntityId(id))?.iter() {
                if relations.contains(&edge.relation) {
                    *counts.entry(edge.entity).or_default() += 1;
                }
            }
        }
        let mut kinds: Vec<(EntityId, usize)> = counts.into_iter().collect();
        kinds.sort_by_key(|&(kind, count)| (std::cmp::Reverse(count), kind));
        kinds.truncate(MAX_KINDS);
        let mut names = Vec::with_capacity(kinds.len());
        for &(kind, _) in &kinds {
            let name = crate::words::opened(&graph.entity_label(kind)?);
            let last = name.rsplit(' ').next().unwrap_or_default();
            names.push((stem(last).into_owned(), name.clone()));
        }
        let texts: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
        Ok(Self {
            relations,
            kinds: kinds.into_iter().map(|(kind, _)| kind).collect(),
            rows: Some(encoder.encode(&texts)?),
            names,
        })
    }

    /// Whether the graph says of what kind things are.
    pub(super) fn are_known(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Whether a relation says so.
    pub(super) fn is_type(&self, relation: RelationId) -> bool {
        self.relations.contains(&relation)
    }

    /// The relation by which things are of this kind.
    pub(super) fn relation_to(
        &self,
        kind: EntityId,
        graph: &dyn Graph,
    ) -> Result<Option<RelationId>> {
        let incoming = graph.incoming(kind)?;
        let found = incoming.iter().find(|e| self.is_type(e.relation));
        Ok(found.map(|e| e.relation))
    }

    /// Whether the entity is a kind.
    pub(super) fn has(&self, entity: EntityId) -> bool {
        self.kinds.contains(&entity)
    }

    /// The kind that a word names; `before` is the word before it, which may belong to it.
    pub(super) fn named(&self, word: &str, before: Option<&str>) -> Option<EntityId> {
        let wanted = stem(word);
        let other = OTHER_WORDS.iter().find(|(w, _)| stem(w) == wanted);
        for wanted in [Some(wanted.as_ref()), other.map(|(_, kind)| *kind)] {
            let Some(wanted) = wanted.map(stem) else {
                continue;
            };
            // `mountain range` before `range`, and a name of one word before both
            let fits = |(last, name): &&(String, String)| {
                *last == wanted
                    && match name.rsplit_once(' ') {
                        None => true,
                        Some((first, _)) => before.is_some_and(|b| first.ends_with(b)),
                    }
            };
            let found = (self.names.iter().enumerate())
                .filter(|(_, name)| fits(name))
                .max_by_key(|(_, (_, name))| name.len());
            if let Some((place, _)) = found {
                return Some(self.kinds[place]);
            }
        }
        None
    }

    /// The kind whose name is nearest in meaning, if one is near.
    pub(super) fn near(&self, word: &str, encoder: &dyn Encoder) -> Result<Option<EntityId>> {
        if !self.are_known() {
            return Ok(None);
        }
        let row = encoder.encode(&[word])?;
        let mut near: Vec<(f32, usize)> = (self.rows.iter().flat_map(Embeddings::rows).enumerate())
            .map(|(place, kind)| (dot(kind, row.row(0)), place))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        match near.as_slice() {
            [(first, place), rest @ ..] => {
                let next = rest.first().map_or(0.0, |(cosine, _)| *cosine);
                let sure = *first >= NEAR && first - next >= APART;
                Ok(sure.then(|| self.kinds[*place]))
            }
            [] => Ok(None),
        }
    }

    /// Whether a relation is called after the kind of the things: `country`, and they are countries.
    pub(super) fn belongs(
        &self,
        relation: RelationId,
        things: &[EntityId],
        graph: &dyn Graph,
    ) -> Result<bool> {
        let Some(&thing) = things.first() else {
            return Ok(false);
        };
        let label = crate::words::opened(&graph.relation_label(relation)?);
        let Some(place) = self.names.iter().position(|(_, name)| *name == label) else {
            return Ok(false);
        };
        self.is(thing, self.kinds[place], graph)
    }

    /// Whether a thing is of this kind.
    pub(super) fn is(&self, thing: EntityId, kind: EntityId, graph: &dyn Graph) -> Result<bool> {
        let row = graph.outgoing(thing)?;
        Ok(self.relations.iter().any(|&relation| {
            let edge = Edge {
                relation,
                entity: kind,
            };
            row.binary_search(&edge).is_ok()
        }))
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};
    use wherefore_model::encode;

    use super::*;

    #[test]
    fn words_mean_kinds_by_name_and_by_meaning() {
        let graph = MemoryGraph::from_names([
            ("France", "type", "country"),
            ("Alps", "type", "mountain range"),
            ("Etna", "type", "mountain"),
            ("Paris", "type", "city"),
            ("Paris", "country", "France"),
        ]);
        let encoder = encode::open("static").unwrap();
        let kinds = Kinds::build(&graph, &*encoder).unwrap();
        let meant = |word: &str, before: Option<&str>| {
            let named = kinds.named(word, before);
            let kind = named.or_else(|| kinds.near(word, &*encoder).unwrap());
            kind.map(|k| graph.entity_label(k).unwrap().into_owned())
        };
        for (word, before, kind) in [
            ("countries", None, Some("country")),
            ("mountains", None, Some("mountain")),
            ("ranges", Some("mountain"), Some("mountain range")),
            ("nations", None, Some("country")),
            ("peaks", None, Some("mountain")),
            ("violin", None, None),
        ] {
            assert_eq!(meant(word, before).as_deref(), kind, "{word}");
        }
        let entity = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let country = entity("country");
        assert!(kinds.is(entity("France"), country, &graph).unwrap());
        assert!(!kinds.is(entity("Paris"), country, &graph).unwrap());
        let relation = graph.relation_named("country").unwrap().unwrap();
        let belongs = |name| kinds.belongs(relation, &[entity(name)], &graph).unwrap();
        assert!(belongs("France") && !belongs("Paris"));
        assert!(kinds.has(country) && !kinds.has(entity("France")));
    }

    #[test]
    fn a_graph_without_types_has_no_kinds() {
        let graph = MemoryGraph::from_names([("a", "r", "b")]);
        let encoder = encode::open("static").unwrap();
        let kinds = Kinds::build(&graph, &*encoder).unwrap();
        assert!(!kinds.are_known());
        assert_eq!(kinds.named("b", None), None);
        assert_eq!(kinds.near("b", &*encoder).unwrap(), None);
    }
}
