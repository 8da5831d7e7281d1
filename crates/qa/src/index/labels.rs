//! What is written for the encoder: the text of an entity, a relation or a whole triple.

use rayon::prelude::*;
use wherefore_graph::{Adjacency, EntityId, Graph, RelationId, Store, Triple};

use super::part::Part;
use crate::error::Result;
use crate::words::{beginning, opened};

/// Bytes of a text that are read: literals can be whole books, and no encoder reads so far.
const MAX_TEXT: usize = 2048;

/// The texts of one part of an index, by number.
#[derive(Debug)]
pub(crate) struct Labels<'a> {
    graph: &'a Store,
    part: Part,
    /// For triples: an entity, and the number of its first triple.
    cursor: (u32, u64),
}

impl<'a> Labels<'a> {
    pub(crate) fn new(graph: &'a Store, part: Part) -> Self {
        Self {
            graph,
            part,
            cursor: (0, 0),
        }
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> u32 {
        let len = match self.part {
            Part::Entities | Part::Text => self.graph.entity_bound() as u64,
            Part::Relations => self.graph.relation_bound() as u64,
            Part::Triples => self.graph.counts().triples,
        };
        u32::try_from(len).expect("a graph has fewer than 2³² of anything")
    }

    /// The texts of `ids`, which ascend; none where there is nothing to read.
    pub(crate) fn texts(&mut self, ids: &[u32]) -> Result<Vec<Option<String>>> {
        let graph = self.graph;
        match self.part {
            Part::Entities | Part::Text => each(ids, |&id| entity(graph, EntityId(id))),
            Part::Relations => each(ids, |&id| relation(graph, RelationId(id)).map(Some)),
            Part::Triples => {
                let triples = self.triples(ids)?;
                each(&triples, |&triple| text_of_triple(graph, triple))
            }
        }
    }

    /// The triples with these numbers in the order of [`Store::triples`].
    fn triples(&mut self, ids: &[u32]) -> Result<Vec<Triple>> {
        let mut found = Vec::with_capacity(ids.len());
        if ids.first().is_some_and(|&id| u64::from(id) < self.cursor.1) {
            self.cursor = (0, 0);
        }
        for &id in ids {
            loop {
                let head = EntityId(self.cursor.0);
                let edges = self.graph.outgoing(head)?;
                let place = (u64::from(id) - self.cursor.1) as usize;
                if let Some(edge) = edges.get(place) {
                    found.push(Triple {
                        head,
                        relation: edge.relation,
                        tail: edge.entity,
                    });
                    break;
                }
                self.cursor = (self.cursor.0 + 1, self.cursor.1 + edges.len() as u64);
            }
        }
        Ok(found)
    }
}

fn each<T: Sync>(
    items: &[T],
    text: impl Fn(&T) -> Result<Option<String>> + Send + Sync,
) -> Result<Vec<Option<String>>> {
    items.par_iter().with_min_len(64).map(text).collect()
}

/// The label of an entity, unless it tells people nothing or is itself only a name.
pub(crate) fn entity(graph: &Store, id: EntityId) -> Result<Option<String>> {
    if !graph.is_named(id)? || is_only_a_name(graph, id)? {
        return Ok(None);
    }
    Ok(Some(cut(graph.entity_label(id)?.into_owned())))
}

/// The label of a relation as words.
pub(crate) fn relation(graph: &Store, id: RelationId) -> Result<String> {
    Ok(cut(opened(&graph.relation_label(id)?)))
}

fn text_of_triple(graph: &Store, triple: Triple) -> Result<Option<String>> {
    if graph.naming_relations().contains(&triple.relation) {
        return Ok(None);
    }
    let mut text = String::new();
    if graph.is_named(triple.head)? {
        text = cut(graph.entity_label(triple.head)?.into_owned()) + " ";
    }
    text += &relation(graph, triple.relation)?;
    if graph.is_named(triple.tail)? {
        text.push(' ');
        text += &graph.entity_label(triple.tail)?;
    }
    Ok(Some(cut(text)))
}

/// Whether all that the graph says of the entity is whose name it is.
fn is_only_a_name(graph: &Store, id: EntityId) -> Result<bool> {
    let naming = graph.naming_relations();
    if naming.is_empty() || !graph.is_literal(id) {
        return Ok(false);
    }
    let incoming = graph.incoming(id)?;
    Ok(!incoming.is_empty()
        && incoming.iter().all(|e| naming.contains(&e.relation))
        && graph.outgoing(id)?.is_empty())
}

fn cut(mut text: String) -> String {
    text.truncate(beginning(&text, MAX_TEXT).len());
    text
}
