//! What a graph speaks of, for people: its classes and relations with counts and examples.
//!
//! It is what the reader knows of the graph (`schema.rs`): large relations are told by a sample, and
//! a service by what it counted, without examples.

use std::cmp::Reverse;

use serde::Serialize;
use wherefore_graph::{EntityId, Graph, RelationId, edges_by_relation};

use super::lang::english;
use super::schema::Schema;
use super::vocabulary::{ClassIx, Kind};
use crate::error::Result;

/// Most classes that are shown.
pub const MAX_CLASSES: usize = 500;
/// Most relations that are shown.
pub const MAX_RELATIONS: usize = 2000;
/// Examples of each.
pub const EXAMPLES: usize = 3;
/// Classes that are shown on either side of a relation.
const SIDES: usize = 8;
/// Things, or triples, among which examples are chosen.
const LOOKED_AT: usize = 50;

/// A graph's classes and relations, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overview {
    /// At most [`MAX_CLASSES`].
    pub classes: Vec<Class>,
    /// At most [`MAX_RELATIONS`]; those that only give names or classes are none of them.
    pub relations: Vec<Relation>,
    /// Classes and relations that are not shown.
    pub left_out: [usize; 2],
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Its label.
    pub name: String,
    /// Its identity: an IRI, or a name where the graph has no IRIs.
    pub iri: String,
    /// Things that the graph says are of it.
    pub count: usize,
    /// Some of them, the best known first.
    pub examples: Vec<Thing>,
}

/// A thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Thing {
    /// Its label.
    pub name: String,
    /// Its identity.
    pub id: String,
}

/// A relation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Relation {
    /// Its label.
    pub name: String,
    /// Its identity.
    pub iri: String,
    /// Its triples.
    pub count: usize,
    /// What most of its tails are: `thing`, `number`, `time` or `text`.
    pub kind: &'static str,
    /// The classes of its heads, with the triples that have such a head.
    pub from: Vec<Side>,
    /// The classes of its tails.
    pub to: Vec<Side>,
    /// Some of its triples, by labels.
    pub examples: Vec<Pair>,
}

/// A class on one side of a relation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The class's label.
    pub class: String,
    /// Triples with a thing of the class on this side, as far as that was looked at.
    pub count: usize,
}

/// Head and tail of a triple.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The head's label.
    pub head: String,
    /// The tail's label.
    pub tail: String,
}

/// What a graph speaks of. Of a large graph it takes seconds; of a service, some queries.
///
/// ```
/// let graph = wherefore::graph::toy::graph();
/// let overview = wherefore::schema::overview(&graph)?;
/// let most = &overview.relations[0];
/// assert_eq!((most.name.as_str(), most.count), ("located in", 8));
/// # Ok::<(), wherefore::Error>(())
/// ```
pub fn overview(graph: &dyn Graph) -> Result<Overview> {
    let schema = Schema::new(graph, english())?;
    let mut classes: Vec<ClassIx> = (0..schema.classes.len() as ClassIx).collect();
    classes.retain(|&ix| schema.classes[ix as usize].instances > 0);
    classes.sort_by_key(|&ix| Reverse(schema.classes[ix as usize].instances));
    let own = schema.relations.len() - schema.mediated.len();
    let mut relations: Vec<RelationId> = (0..own as u32).map(RelationId).collect();
    relations.retain(|&id| !schema.is_idle(id) && schema.relation(id).count > 0);
    relations.sort_by_key(|&id| Reverse(schema.relation(id).count));
    let left_out = [
        classes.len().saturating_sub(MAX_CLASSES),
        relations.len().saturating_sub(MAX_RELATIONS),
    ];
    let classes = classes.into_iter().take(MAX_CLASSES);
    let relations = relations.into_iter().take(MAX_RELATIONS);
    Ok(Overview {
        classes: classes
            .map(|ix| class(&schema, ix, graph))
            .collect::<Result<_>>()?,
        relations: relations
            .map(|id| relation(&schema, id, graph))
            .collect::<Result<_>>()?,
        left_out,
    })
}

fn class(schema: &Schema, ix: ClassIx, graph: &dyn Graph) -> Result<Class> {
    let of = &schema.classes[ix as usize];
    let mut things: Vec<EntityId> = Vec::new();
    // a service would be asked for each
    if graph.service().is_none() {
        let row = graph.incoming(of.entity)?;
        for &typed in &schema.typed_by {
            let edges = edges_by_relation(&row, typed);
            things.extend(edges.iter().take(LOOKED_AT).map(|edge| edge.entity));
        }
    }
    let mut known = Vec::new();
    for thing in things {
        known.push((
            !graph.is_named(thing)?,
            Reverse(graph.degree(thing)?),
            thing,
        ));
    }
    known.sort_unstable();
    known.dedup_by_key(|(_, _, thing)| *thing);
    let examples = known.into_iter().take(EXAMPLES).map(|(_, _, thing)| {
        Ok(Thing {
            name: graph.entity_label(thing)?.into_owned(),
            id: graph.entity_term(thing)?.to_string(),
        })
    });
    Ok(Class {
        name: graph.entity_label(of.entity)?.into_owned(),
        iri: graph.entity_term(of.entity)?.to_string(),
        count: of.instances,
        examples: examples.collect::<Result<_>>()?,
    })
}

fn relation(schema: &Schema, id: RelationId, graph: &dyn Graph) -> Result<Relation> {
    let of = schema.relation(id);
    let side = |shares: &[(ClassIx, f32)]| -> Result<Vec<Side>> {
        let mut shares = shares.to_vec();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let shown = shares.into_iter().take(SIDES).map(|(ix, share)| {
            let class = graph.entity_label(schema.classes[ix as usize].entity)?;
            Ok(Side {
                class: class.into_owned(),
                count: (f64::from(share) * of.count as f64).round() as usize,
            })
        });
        shown.collect()
    };
    let mut examples = Vec::new();
    if graph.service().is_none() {
        let (mut named, mut unnamed) = (Vec::new(), Vec::new());
        for triple in graph.with_relation(id)?.take(LOOKED_AT) {
            let triple = triple?;
            let is_named = graph.is_named(triple.head)? && graph.is_named(triple.tail)?;
            let list = if is_named { &mut named } else { &mut unnamed };
            // one of each head says more than all of one
            if list.len() < EXAMPLES && !list.iter().any(|(head, _)| *head == triple.head) {
                list.push((triple.head, triple.tail));
            }
        }
        for (head, tail) in named.into_iter().chain(unnamed).take(EXAMPLES) {
            examples.push(Pair {
                head: graph.entity_label(head)?.into_owned(),
                tail: graph.entity_label(tail)?.into_owned(),
            });
        }
    }
    Ok(Relation {
        name: graph.relation_label(id)?.into_owned(),
        iri: graph.relation_term(id)?.to_string(),
        count: of.count,
        kind: match of.kind {
            Kind::Thing => "thing",
            Kind::Number => "number",
            Kind::Time => "time",
            Kind::Text => "text",
        },
        from: side(&of.domain)?,
        to: side(&of.range)?,
        examples,
    })
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;

    use super::*;

    #[test]
    fn classes_and_relations_come_with_counts_and_examples() {
        let graph = MemoryGraph::from_names([
            ("Ada", "type", "employee"),
            ("Alan", "type", "employee"),
            ("London", "type", "office"),
            ("Ada", "works in", "London"),
            ("Alan", "works in", "London"),
            ("Ada", "age", "36"),
        ]);
        let overview = overview(&graph).unwrap();
        let classes: Vec<_> = (overview.classes.iter())
            .map(|c| (c.name.as_str(), c.count, c.examples.len()))
            .collect();
        assert_eq!(classes, [("employee", 2, 2), ("office", 1, 1)]);
        // Ada stands in three triples, Alan in two
        assert_eq!(overview.classes[0].examples[0].name, "Ada");
        let works = &overview.relations[0];
        assert_eq!((works.name.as_str(), works.count), ("works in", 2));
        assert_eq!(works.kind, "thing");
        let side = |class: &str, count| Side {
            class: class.into(),
            count,
        };
        assert_eq!(works.from, [side("employee", 2)]);
        assert_eq!(works.to, [side("office", 2)]);
        assert_eq!(works.examples.len(), 2);
        let age = &overview.relations[1];
        assert_eq!((age.kind, age.count), ("number", 1));
        // what says the class of a thing is no relation that is asked for
        assert_eq!(overview.relations.len(), 2);
        assert_eq!(overview.left_out, [0, 0]);
    }
}
