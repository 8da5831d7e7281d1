//! Neighbourhoods as NumPy arrays, for PyG, DGL and the like.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use wherefore_graph::{EntityId, Expansion, Graph, NameMatch, expand};

/// The arrays of a neighbourhood: its entities in the graph's ids, heads and tails by place among
/// them, the relations in the graph's ids, and hops from the nearest seed.
pub(crate) type Arrays<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray2<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Vec<String>,
);

/// What is computed before any array is made.
pub(crate) struct Cut {
    entities: Vec<i64>,
    /// All heads, then all tails.
    ends: Vec<i64>,
    relations: Vec<i64>,
    distance: Vec<i64>,
    notes: Vec<String>,
}

impl Cut {
    /// The neighbourhood of named entities, or the whole graph where none is named.
    pub(crate) fn of(
        graph: &dyn Graph,
        seeds: &[String],
        hops: usize,
        max_triples: usize,
    ) -> anyhow::Result<Self> {
        if seeds.is_empty() {
            return Self::whole(graph);
        }
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
        let near = expand(graph, &found, &how)?;
        let triples = near.subgraph.triples();
        let heads = triples.iter().map(|t| i64::from(t.head.0));
        let tails = triples.iter().map(|t| i64::from(t.tail.0));
        let relations = near.subgraph.relations();
        Ok(Self {
            entities: near
                .subgraph
                .entities()
                .iter()
                .map(|e| i64::from(e.0))
                .collect(),
            ends: heads.chain(tails).collect(),
            relations: (triples.iter())
                .map(|t| i64::from(relations[t.relation.index()].0))
                .collect(),
            distance: near.distance.iter().map(|&d| i64::from(d)).collect(),
            notes: near.cut.describe(),
        })
    }

    /// Every triple but those that only give names.
    fn whole(graph: &dyn Graph) -> anyhow::Result<Self> {
        let naming = graph.naming_relations();
        let bound = graph.entity_bound();
        let (mut ends, mut tails, mut relations) = (Vec::new(), Vec::new(), Vec::new());
        for head in 0..bound as u32 {
            for edge in &*graph.outgoing(EntityId(head))? {
                if !naming.contains(&edge.relation) {
                    ends.push(i64::from(head));
                    tails.push(i64::from(edge.entity.0));
                    relations.push(i64::from(edge.relation.0));
                }
            }
        }
        ends.append(&mut tails);
        Ok(Self {
            entities: (0..bound as i64).collect(),
            ends,
            relations,
            distance: vec![0; bound],
            notes: Vec::new(),
        })
    }

    /// The arrays, which take the memory over.
    pub(crate) fn into_arrays(self, py: Python<'_>) -> PyResult<Arrays<'_>> {
        let count = self.relations.len();
        Ok((
            self.entities.into_pyarray(py),
            self.ends.into_pyarray(py).reshape([2, count])?,
            self.relations.into_pyarray(py),
            self.distance.into_pyarray(py),
            self.notes,
        ))
    }
}
