//! How far a build has come, and what was built.

use serde::Serialize;

use super::manifest::Manifest;
use super::part::Part;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStep {
    /// Labels are read and compared with those that were indexed before.
    Reading,
    /// Texts become vectors.
    Encoding,
    /// Near vectors are linked.
    Linking,
    /// Documents are written.
    Writing,
}

/// How far a step has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    /// The part that is built.
    pub part: Part,
    /// What is being done.
    pub step: IndexStep,
    /// Texts, vectors or documents done.
    pub done: u64,
    /// Of so many.
    pub total: u64,
}

/// One part of an index.
#[derive(Clone, Debug, Serialize)]
pub struct PartReport {
    /// Which.
    pub part: Part,
    /// Whether anything was to be done.
    pub built: bool,
    /// The encoder of its vectors.
    pub encoder: Option<String>,
    /// Numbers in a row.
    pub dim: Option<usize>,
    /// Entities, relations or triples of the graph.
    pub rows: u64,
    /// Those that have a text.
    pub named: u64,
    /// Distinct texts, each with one vector; documents of full text.
    pub vectors: u64,
    /// Texts that were encoded, or documents that were written.
    pub encoded: u64,
    /// Vectors taken over from an older index.
    pub kept: u64,
    /// Vectors or documents that a stopped build had finished.
    pub resumed: u64,
    /// Whether near vectors are linked; otherwise all are scanned.
    pub linked: bool,
    /// Bytes on disk.
    pub bytes: u64,
    /// Time taken.
    pub seconds: f64,
}

impl PartReport {
    /// A part that is up to date.
    pub(super) fn current(manifest: &Manifest) -> Self {
        let encoder = manifest.encoder.as_ref();
        Self {
            part: manifest.part,
            built: false,
            encoder: encoder.map(|e| e.name.clone()),
            dim: encoder.map(|e| e.dim),
            rows: manifest.rows,
            named: manifest.named,
            vectors: manifest.vectors,
            encoded: 0,
            kept: manifest.vectors,
            resumed: 0,
            linked: manifest.hnsw.is_some(),
            bytes: manifest.bytes,
            seconds: 0.0,
        }
    }
}
