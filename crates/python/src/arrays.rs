//! Neighbourhoods as arrays of numbers, for PyG, DGL and the like.
//!
//! Each is a `bytearray` of native 64-bit integers that is filled where it lies: `numpy.frombuffer`
//! reads and writes it without a copy.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use wherefore_graph::{EntityId, Expanded, Expansion, Graph, NameMatch, Triple, expand};

/// Bytes of a number.
const SIZE: usize = size_of::<i64>();

/// The entities in the graph's ids; heads and then tails by place among them; relations in the
/// graph's ids; hops from the nearest seed; what was left out.
pub(crate) type Arrays<'py> = (
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Vec<String>,
);

/// An array of so many numbers.
fn array(
    py: Python<'_>,
    count: usize,
    numbers: impl Iterator<Item = i64>,
) -> PyResult<Bound<'_, PyByteArray>> {
    PyByteArray::new_with(py, count * SIZE, |bytes| {
        for (place, number) in bytes.chunks_exact_mut(SIZE).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}

/// The neighbourhood of named entities.
pub(crate) fn near(
    graph: &dyn Graph,
    seeds: &[String],
    hops: usize,
    max_triples: usize,
) -> anyhow::Result<Expanded> {
    let mut found = Vec::new();
    for seed in seeds {
        let named = graph.entities_named(seed, NameMatch::Normalised)?;
        if named.is_empty() {
            return Err(wherefore_cli::no_such_name(seed));
        }
        found.extend(named);
    }
    let how = Expansion {
        hops,
        max_triples,
        skip: graph.naming_relations().to_vec(),
        ..Expansion::default()
    };
    Ok(expand(graph, &found, &how)?)
}

/// The arrays of a neighbourhood.
pub(crate) fn of_near<'py>(py: Python<'py>, near: &Expanded) -> PyResult<Arrays<'py>> {
    let subgraph = &near.subgraph;
    let (triples, relations) = (subgraph.triples(), subgraph.relations());
    let heads = triples.iter().map(|t| i64::from(t.head.0));
    let tails = triples.iter().map(|t| i64::from(t.tail.0));
    let entities = subgraph.entities();
    let kinds = (triples.iter()).map(|t| i64::from(relations[t.relation.index()].0));
    Ok((
        array(py, entities.len(), entities.iter().map(|e| i64::from(e.0)))?,
        array(py, 2 * triples.len(), heads.chain(tails))?,
        array(py, triples.len(), kinds)?,
        array(
            py,
            entities.len(),
            near.distance.iter().map(|&d| i64::from(d)),
        )?,
        near.cut.describe(),
    ))
}

/// The arrays of all triples but those that only give names.
pub(crate) fn of_all<'py>(py: Python<'py>, graph: &dyn Graph) -> PyResult<Arrays<'py>> {
    let bound = graph.entity_bound();
    // a row that cannot be read is found by the first pass
    let mut count = 0;
    for head in 0..bound as u32 {
        let row = graph.outgoing(EntityId(head));
        let row = row.map_err(|error| crate::errors::raised(&error.into()))?;
        count += row
            .iter()
            .filter(|edge| !is_name(graph, edge.relation))
            .count();
    }
    let all = || {
        (0..bound as u32).map(EntityId).flat_map(|head| {
            let row = graph.outgoing(head).unwrap_or_default();
            let triples: Vec<Triple> = (row.iter())
                .filter(|edge| !is_name(graph, edge.relation))
                .map(|edge| Triple {
                    head,
                    relation: edge.relation,
                    tail: edge.entity,
                })
                .collect();
            triples
        })
    };
    let heads = all().map(|t| i64::from(t.head.0));
    let tails = all().map(|t| i64::from(t.tail.0));
    Ok((
        array(py, bound, 0..bound as i64)?,
        array(py, 2 * count, heads.chain(tails))?,
        array(py, count, all().map(|t| i64::from(t.relation.0)))?,
        array(py, bound, std::iter::repeat_n(0, bound))?,
        Vec::new(),
    ))
}

fn is_name(graph: &dyn Graph, relation: wherefore_graph::RelationId) -> bool {
    graph.naming_relations().contains(&relation)
}
