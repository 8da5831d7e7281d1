//! What is looked up by meaning or by words: vectors of labels, and full text.
//!
//! | part | holds | opened by |
//! |---|---|---|
//! | `entities` | a vector for each named entity's label | [`Vectors::open`] |
//! | `relations` | a vector for each relation's label, opened up into words | [`Vectors::open`] |
//! | `triples` | a vector for each triple, written `head relation tail` | [`Vectors::open`] |
//! | `text` | BM25 over labels and over a document for each entity | [`TextIndex::open`] |
//!
//! All of it lies in the folder `index` of the graph and is bound to the graph's checksum, the
//! vectors also to their encoder. The graph itself does not know of it: it can be removed, and
//! it outlives a `wherefore load --replace`, after which [`build`] encodes only what is new.
//!
//! Every block of every file has a checksum and is verified when something in it is first read;
//! manifests have a checksum of their own. Indexes of versions that wrote none are read as before.

mod build;
mod dot;
mod hnsw;
mod labels;
mod manifest;
mod sort;
mod text;
mod vectors;

use std::fmt;
use std::fs::{File, TryLockError};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wherefore_graph::Store;
use wherefore_model::{Encoder, encode};

use crate::error::{Error, Result};
use build::Build;
use manifest::{Manifest, folder_of};

pub(crate) use manifest::{EncoderMark, bytes_in, write_aside};

pub use hnsw::HnswOptions;
pub use text::TextIndex;
pub use vectors::{SCANNED, Vectors};

/// Name of the folder inside a graph folder.
pub(crate) const FOLDER: &str = "index";

/// A part of an index; each is built and opened by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Vectors of entity labels.
    Entities,
    /// Vectors of relation labels.
    Relations,
    /// Vectors of whole triples.
    Triples,
    /// Full text.
    Text,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 4] = [Part::Entities, Part::Relations, Part::Triples, Part::Text];

    /// Its name, also of its files.
    pub fn name(self) -> &'static str {
        match self {
            Part::Entities => "entities",
            Part::Relations => "relations",
            Part::Triples => "triples",
            Part::Text => "text",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The command that builds a part.
pub(crate) fn command(graph: &Path, encoder: Option<&str>, part: Part) -> String {
    let mut command = format!("wherefore index {}", graph.display());
    if let Some(encoder) = encoder {
        command += &format!(" --encoder {encoder}");
    }
    if part == Part::Triples {
        command += " --triples";
    }
    command
}

/// What [`build`] builds, and how.
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

/// What was built.
#[derive(Clone, Debug, Serialize)]
pub struct IndexReport {
    /// Checksum of the graph.
    pub graph: String,
    /// Name of the encoder.
    pub encoder: String,
    /// The parts that were asked for.
    pub parts: Vec<PartReport>,
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
    fn current(manifest: &Manifest) -> Self {
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

/// Builds the parts of an index that are missing or out of date.
///
/// A build that was stopped goes on where it was when it is called again. Readers of the old
/// index are not disturbed; the new one appears when it is whole.
pub fn build(
    graph: &Store,
    encoder: &dyn Encoder,
    options: &IndexOptions,
    tell: &(dyn Fn(IndexProgress) + Sync),
) -> Result<IndexReport> {
    // an index is bound to files; what was changed since is encoded when it is asked for
    let graph = &graph.files_only()?;
    let folder = folder_of(graph.path());
    std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let _lock = lock(graph.path(), &folder)?;
    let mark = EncoderMark::of(encoder)?;
    let mut parts = Vec::new();
    for (part, wanted) in [
        (Part::Relations, options.relations),
        (Part::Entities, options.entities),
        (Part::Triples, options.triples),
    ] {
        if wanted {
            let build = Build {
                graph,
                encoder,
                mark: &mark,
                part,
                options,
                tell,
            };
            parts.push(build.run()?);
        }
    }
    if options.text {
        parts.push(text::build(graph, tell)?);
    }
    Ok(IndexReport {
        graph: graph.checksum().to_owned(),
        encoder: mark.name,
        parts,
    })
}

/// One builder at a time; held until it is dropped.
fn lock(graph: &Path, folder: &Path) -> Result<File> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(Error::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::IndexLocked {
            graph: graph.to_owned(),
        }),
        Err(TryLockError::Error(e)) => Err(Error::io("lock", &path)(e)),
    }
}

/// An index that is there, whether or not it belongs to the graph as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct ListedPart {
    /// The part.
    #[serde(flatten)]
    pub report: PartReport,
    /// Whether it belongs to the graph as it is now.
    pub current: bool,
}

/// The parts of an index that are there.
pub fn list(graph: &Store) -> Result<Vec<ListedPart>> {
    let mut parts = Vec::new();
    for part in Part::ALL {
        if let Some(manifest) = Manifest::read(graph.path(), part)? {
            parts.push(ListedPart {
                report: PartReport::current(&manifest),
                current: manifest.graph == graph.checksum(),
            });
        }
    }
    Ok(parts)
}

/// Builds the parts of an index again that are there and out of date, with the encoders that made
/// them. Parts whose encoder cannot be opened are left behind, and given back with the reason.
pub fn follow(graph: &Store) -> Result<Vec<(Part, wherefore_model::Error)>> {
    let mut left = Vec::new();
    for stale in list(graph)?.into_iter().filter(|part| !part.current) {
        let part = stale.report.part;
        let options = IndexOptions {
            entities: part == Part::Entities,
            relations: part == Part::Relations,
            triples: part == Part::Triples,
            text: part == Part::Text,
            ..IndexOptions::default()
        };
        // full text has no encoder, and needs none
        let name = stale.report.encoder.as_deref().unwrap_or("hashing");
        match encode::open(name) {
            Ok(encoder) => drop(build(graph, &*encoder, &options, &|_| {})?),
            Err(error) => left.push((part, error)),
        }
    }
    Ok(left)
}

/// Reads every file of the index and verifies its checksum; the first damaged one is the error.
/// Parts of older versions have no checksums: they are given back.
pub fn check(graph: &Store) -> Result<Vec<Part>> {
    let mut unknown = Vec::new();
    for part in Part::ALL {
        let Some(manifest) = Manifest::read(graph.path(), part)? else {
            continue;
        };
        let files = manifest.files(graph.path())?;
        if files.sums.is_none() {
            unknown.push(part);
        }
        files.check_all()?;
    }
    Ok(unknown)
}

#[cfg(test)]
mod tests;
