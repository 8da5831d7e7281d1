//! Relations as vectors: their labels, opened up into words, through an encoder.

use std::fmt;
use std::sync::Arc;

use wherefore_graph::Graph;
use wherefore_model::{Embeddings, Encoder};

use crate::error::Result;
use crate::per_graph::PerGraph;
use crate::retrieve::vectors::relation_vectors;

/// An encoder with the relations of the graph at hand.
#[derive(Clone)]
pub(crate) struct RelationEncoder {
    encoder: Arc<dyn Encoder>,
    rows: Arc<PerGraph<Embeddings>>,
}

impl fmt::Debug for RelationEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelationEncoder({})", self.encoder.name())
    }
}

impl RelationEncoder {
    pub(crate) fn new(encoder: Arc<dyn Encoder>) -> Self {
        Self {
            encoder,
            rows: Arc::default(),
        }
    }

    /// The encoder.
    pub(crate) fn encoder(&self) -> &dyn Encoder {
        &*self.encoder
    }

    /// One row for each relation of the graph.
    pub(crate) fn rows(&self, graph: &dyn Graph) -> Result<Arc<Embeddings>> {
        self.rows
            .get(graph, |graph| relation_vectors(graph, self.encoder()))
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{Adjacency, RelationId, toy};
    use wherefore_model::encode::HashingEncoder;

    use super::*;
    use crate::words::opened;

    #[test]
    fn every_relation_has_the_row_of_its_words() {
        let graph = toy::graph();
        let encoder: Arc<dyn Encoder> = Arc::new(HashingEncoder::default());
        let relations = RelationEncoder::new(Arc::clone(&encoder));
        let rows = relations.rows(&graph).unwrap();
        assert_eq!(rows.len(), graph.relation_bound());
        let words = opened(&graph.relation_label(RelationId(0)).unwrap());
        assert_eq!(rows.row(0), encoder.encode(&[&words]).unwrap().row(0));
    }
}
