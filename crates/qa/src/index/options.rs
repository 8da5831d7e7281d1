//! What is built, and how.

use super::hnsw::HnswOptions;
use super::vectors::SCANNED;

/// What [`build`](super::build()) builds, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Vectors of entity labels.
    pub entities: bool,
    /// Vectors of relation labels.
    pub relations: bool,
    /// Vectors of whole triples.
    pub triples: bool,
    /// Full text.
    pub text: bool,
    /// Up to so many numbers (vectors times dimension) are scanned; more are linked.
    pub scanned: u64,
    /// How they are linked.
    pub hnsw: HnswOptions,
}

impl Default for IndexOptions {
    /// Everything but triples.
    fn default() -> Self {
        Self {
            entities: true,
            relations: true,
            triples: false,
            text: true,
            scanned: SCANNED,
            hnsw: HnswOptions::default(),
        }
    }
}
