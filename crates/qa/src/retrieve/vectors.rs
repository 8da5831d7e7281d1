//! Vectors of the labels of a graph, for networks that take them as input.

use wherefore_graph::{EntityId, Graph, RelationId};
use wherefore_model::encode::TokenStates;
use wherefore_model::{Embeddings, Encoder};

use crate::error::Result;
use crate::words::{beginning, opened};

/// Bytes of a label that are read: literals can be whole books.
const MAX_LABEL: usize = 512;
/// Labels that are encoded at a time.
const BATCH: usize = 4096;

/// One row for each entity: the vector of its label, or zeros where its name tells nothing.
///
/// `see` is told how many are done.
pub(super) fn entity_vectors(
    graph: &dyn Graph,
    encoder: &dyn Encoder,
    entities: &[EntityId],
    see: &mut dyn FnMut(usize),
) -> Result<Vec<f32>> {
    let mut texts = Vec::with_capacity(entities.len());
    for &entity in entities {
        texts.push(match graph.is_named(entity)? {
            true => Some(beginning(&graph.entity_label(entity)?, MAX_LABEL).to_owned()),
            false => None,
        });
    }
    entity_texts_to_vectors(encoder, &texts, see)
}

/// One row for each label of an entity, zeros where there is none. `see` is told how many are
/// done.
pub fn entity_texts_to_vectors(
    encoder: &dyn Encoder,
    texts: &[Option<String>],
    see: &mut dyn FnMut(usize),
) -> Result<Vec<f32>> {
    let dim = encoder.dim();
    let mut vectors = vec![0.0; texts.len() * dim];
    for (number, batch) in texts.chunks(BATCH).enumerate() {
        let named = batch.iter().enumerate();
        let (places, labels): (Vec<usize>, Vec<&str>) = named
            .filter_map(|(i, text)| {
                Some((number * BATCH + i, beginning(text.as_ref()?, MAX_LABEL)))
            })
            .unzip();
        let rows = encoder.encode(&labels)?;
        for (at, row) in places.into_iter().zip(rows.rows()) {
            vectors[at * dim..][..dim].copy_from_slice(row);
        }
        see(number * BATCH + batch.len());
    }
    Ok(vectors)
}

/// One row for each relation of the graph: the vector of its label, opened up into words.
pub(crate) fn relation_vectors(graph: &dyn Graph, encoder: &dyn Encoder) -> Result<Embeddings> {
    let count = u32::try_from(graph.relation_bound()).expect("relation ids have 32 bits");
    let labels = (0..count)
        .map(|id| Ok(opened(&graph.relation_label(RelationId(id))?)))
        .collect::<Result<Vec<String>>>()?;
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    Ok(encoder.encode(&labels)?)
}

/// One row for each label of a relation, opened up into words.
pub fn relation_texts_to_vectors(encoder: &dyn Encoder, texts: &[String]) -> Result<Vec<f32>> {
    let labels: Vec<String> = texts.iter().map(|text| opened(text)).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    Ok(encoder.encode(&labels)?.values().to_vec())
}

/// The token vectors of each label of a relation, opened up into words.
pub fn relation_texts_to_states(encoder: &dyn Encoder, texts: &[String]) -> Result<TokenStates> {
    let labels: Vec<String> = texts.iter().map(|text| opened(text)).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    Ok(encoder.token_states(&labels)?)
}

/// A triple in words: head, relation, tail; what has no name is left out.
pub(super) fn words_of(
    graph: &dyn Graph,
    triple: wherefore_graph::Triple,
    relation: &str,
) -> Result<String> {
    let mut text = String::new();
    if graph.is_named(triple.head)? {
        text += beginning(&graph.entity_label(triple.head)?, MAX_LABEL);
        text.push(' ');
    }
    text += &opened(relation);
    if graph.is_named(triple.tail)? {
        text.push(' ');
        text += beginning(&graph.entity_label(triple.tail)?, MAX_LABEL);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;
    use wherefore_model::encode::HashingEncoder;

    use super::*;

    #[test]
    fn unnamed_nodes_have_zeros_and_leave_a_gap_in_sentences() {
        let long = "é".repeat(400);
        let graph = MemoryGraph::from_names([
            ("Oracle Park", "sports.venue.seats", "m.0seat"),
            ("m.0seat", "of", long.as_str()),
        ]);
        let encoder = HashingEncoder::default();
        let dim = encoder.dim();
        let mut done = 0;
        let entities = [EntityId(1), EntityId(0)];
        let rows = entity_vectors(&graph, &encoder, &entities, &mut |n| done = n).unwrap();
        assert_eq!(done, 2);
        assert!(rows[..dim].iter().all(|x| *x == 0.0));
        let alone = encoder.encode(&["Oracle Park"]).unwrap();
        assert_eq!(&rows[dim..], alone.row(0));
        let says = |triple| {
            let relation = graph.relation_label(RelationId(0)).unwrap();
            words_of(&graph, triple, &relation).unwrap()
        };
        let triples: Vec<_> = graph.triples().collect();
        assert_eq!(says(triples[0]), "Oracle Park sports venue seats");
        assert!(says(triples[1]).len() <= MAX_LABEL + 20);
    }
}
