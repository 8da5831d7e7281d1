//! Relations that a word comes near to, by vectors of words.

use std::fmt;
use std::sync::Arc;

use wherefore_graph::{Graph, RelationId};
use wherefore_model::{Embeddings, Encoder};

use super::schema::Schema;
use crate::error::Result;
use crate::relations::dot;
use crate::retrieve::relation_vectors;

/// The least cosine at which a word may stand for a relation.
const LEAST: f32 = 0.42;
/// Relations that a word may stand for.
const MOST: usize = 3;

/// The labels of relations as vectors.
pub(super) struct Near {
    encoder: Arc<dyn Encoder>,
    rows: Embeddings,
}

impl fmt::Debug for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Near({})", self.encoder.name())
    }
}

impl Near {
    pub(super) fn new(graph: &dyn Graph, encoder: Arc<dyn Encoder>) -> Result<Self> {
        let rows = relation_vectors(graph, &*encoder)?;
        Ok(Self { encoder, rows })
    }

    /// The relations that a word comes near to, the nearest first, each with its cosine.
    pub(super) fn relations(&self, word: &str, schema: &Schema) -> Result<Vec<(RelationId, f32)>> {
        let word = self.encoder.encode(&[word])?;
        let word = word.row(0);
        let mut found: Vec<(RelationId, f32)> = (0..self.rows.len())
            .map(|id| (RelationId(id as u32), dot(self.rows.row(id), word)))
            .filter(|(id, cosine)| *cosine >= LEAST && !schema.relation(*id).is_silent)
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(MOST);
        Ok(found)
    }
}
