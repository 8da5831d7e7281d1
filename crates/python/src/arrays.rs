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
    let entities = subgraph.entities();
    let kinds = (triples.iter()).map(|t| i64::from(relations[t.relation.index()].0));
    Ok((
        array(py, entities.len(), entities.iter().map(|e| i64::from(e.0)))?,
        ends(py, triples)?,
        array(py, triples.len(), kinds)?,
        array(
            py,
            entities.len(),
            near.distance.iter().map(|&d| i64::from(d)),
        )?,
        near.cut.describe(),
    ))
}

/// All triples but those that only give names.
pub(crate) fn all(graph: &dyn Graph) -> anyhow::Result<Vec<Triple>> {
    let naming = graph.naming_relations();
    let mut triples = Vec::new();
    for head in (0..graph.entity_bound() as u32).map(EntityId) {
        let row = graph.outgoing(head)?;
        let edges = row.iter().filter(|edge| !naming.contains(&edge.relation));
        triples.extend(edges.map(|edge| Triple {
            head,
            relation: edge.relation,
            tail: edge.entity,
        }));
    }
    Ok(triples)
}

/// The arrays of a whole graph: places among its entities are ids.
pub(crate) fn of_all<'py>(
    py: Python<'py>,
    triples: &[Triple],
    bound: usize,
) -> PyResult<Arrays<'py>> {
    Ok((
        array(py, bound, 0..bound as i64)?,
        ends(py, triples)?,
        array(
            py,
            triples.len(),
            triples.iter().map(|t| i64::from(t.relation.0)),
        )?,
        array(py, bound, std::iter::repeat_n(0, bound))?,
        Vec::new(),
    ))
}

/// Heads, and then tails.
fn ends<'py>(py: Python<'py>, triples: &[Triple]) -> PyResult<Bound<'py, PyByteArray>> {
    let heads = triples.iter().map(|t| i64::from(t.head.0));
    let tails = triples.iter().map(|t| i64::from(t.tail.0));
    array(py, 2 * triples.len(), heads.chain(tails))
}
