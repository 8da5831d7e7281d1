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
mod options;
pub(crate) mod part;
mod report;
mod sort;
mod text;
mod vectors;

use std::fs::{File, TryLockError};
use std::path::Path;

use serde::Serialize;
use wherefore_graph::Store;
use wherefore_model::{Encoder, encode};

use crate::error::{Error, Result};
use build::Build;
use manifest::{Manifest, folder_of};

pub(crate) use manifest::{EncoderMark, bytes_in, write_aside};
pub(crate) use part::FOLDER;

pub use hnsw::HnswOptions;
pub use options::IndexOptions;
pub use part::Part;
pub use report::{IndexProgress, IndexStep, PartReport};
pub use text::TextIndex;
pub use vectors::{SCANNED, Vectors};

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
