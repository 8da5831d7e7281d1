//! What a network computes of a graph's labels whatever is asked, kept in the graph's folder.
//!
//! ```text
//! index/METHOD-KEY/manifest.json   graph, checkpoint, rows and widths
//!                  entities        f16 [entities, width], little-endian
//!                  relations       f16 [relations, width]
//! ```
//!
//! METHOD is the network's, KEY the beginning of the checkpoint's checksum. The folder is written aside and renamed; one
//! that was made for an earlier state of the graph counts as none.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use half::f16;
use half::slice::HalfBitsSliceExt;
use half::slice::HalfFloatSliceExt;
use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, Mapped};
use wherefore_model::Encoder;
use wherefore_model::qr_gat::{Projected, Table};
use wherefore_model::scoring::TripleScorer;

use super::super::vectors::{entity_vectors, relation_vectors};
use crate::error::{Error, Result};
use crate::index::FOLDER;

const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
/// Entities that are encoded and multiplied at a time.
const BATCH: usize = 4096;

/// The parts of a graph's entities and relations, memory-mapped.
#[derive(Debug)]
pub struct Parts {
    entities: Mapped<u16>,
    relations: Mapped<u16>,
    widths: [usize; 2],
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    graph: String,
    checkpoint: String,
    entities: usize,
    relations: usize,
    widths: [usize; 2],
}

/// What was computed and kept.
#[derive(Clone, Debug, Serialize)]
pub struct PartsReport {
    /// Where.
    pub folder: PathBuf,
    /// Entities.
    pub entities: usize,
    /// Relations.
    pub relations: usize,
    /// Size on disk.
    pub bytes: u64,
}

impl Manifest {
    /// What must be there for this graph and checkpoint; none for graphs without a folder.
    fn wanted<S: TripleScorer>(
        graph: &dyn Graph,
        (method, checkpoint): (&str, &str),
        scorer: &S,
    ) -> Option<(PathBuf, Self)> {
        let (folder, identity) = (graph.folder()?, graph.identity()?);
        let key = checkpoint.get(..16).unwrap_or(checkpoint);
        let folder = folder.join(FOLDER).join(format!("{method}-{key}"));
        let manifest = Self {
            format: FORMAT,
            graph: identity.to_owned(),
            checkpoint: checkpoint.to_owned(),
            entities: graph.entity_bound(),
            relations: graph.relation_bound(),
            widths: [scorer.entity_width(), scorer.relation_width()],
        };
        Some((folder, manifest))
    }
}

impl Parts {
    /// Maps what lies in the graph's folder; none where nothing does.
    pub(super) fn open<S: TripleScorer>(
        graph: &dyn Graph,
        checkpoint: (&str, &str),
        scorer: &S,
    ) -> Result<Option<Self>> {
        let Some((folder, wanted)) = Manifest::wanted(graph, checkpoint, scorer) else {
            return Ok(None);
        };
        // what does not parse or is of another state of the graph is as good as none
        let found = fs::read(folder.join(MANIFEST)).ok();
        let found = found.and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok());
        if found.as_ref() != Some(&wanted) {
            return Ok(None);
        }
        let open = |name: &str, rows: usize, width: usize| -> Result<Mapped<u16>> {
            let path = folder.join(name);
            let map = Mapped::open(&path)?;
            match map.len() == rows * width {
                true => Ok(map),
                false => Err(Error::DamagedIndex {
                    reason: format!("it has {} numbers and not {}", map.len(), rows * width),
                    path,
                    mend: format!(
                        "wherefore index {} --model CHECKPOINT",
                        graph.folder().unwrap_or(Path::new("GRAPH")).display()
                    ),
                }),
            }
        };
        Ok(Some(Self {
            entities: open("entities", wanted.entities, wanted.widths[0])?,
            relations: open("relations", wanted.relations, wanted.widths[1])?,
            widths: wanted.widths,
        }))
    }

    /// One row for each entity of the graph.
    pub(super) fn entities(&self) -> Result<Table<'_, f16>> {
        Ok(Table::new(
            self.entities.reinterpret_cast::<f16>(),
            self.widths[0],
        )?)
    }

    /// One row for each relation of the graph.
    pub(super) fn relations(&self) -> Result<Table<'_, f16>> {
        Ok(Table::new(
            self.relations.reinterpret_cast::<f16>(),
            self.widths[1],
        )?)
    }
}

/// Computes the parts of a whole graph.
pub(super) fn build<S: TripleScorer>(
    graph: &dyn Graph,
    checkpoint: (&str, &str),
    scorer: &S,
    encoder: &dyn Encoder,
    see: &mut dyn FnMut(usize),
) -> Result<PartsReport> {
    let (folder, manifest) =
        Manifest::wanted(graph, checkpoint, scorer).ok_or(Error::NoGraphFolder)?;
    let aside = folder.with_extension("new");
    remove(&aside)?;
    fs::create_dir_all(&aside).map_err(Error::io("create", &aside))?;
    let dim = encoder.dim();

    let mut file = Halves::create(&aside.join("entities"))?;
    let all: Vec<EntityId> = (0..manifest.entities as u32).map(EntityId).collect();
    for (number, batch) in all.chunks(BATCH).enumerate() {
        let labels = entity_vectors(graph, encoder, batch, &mut |_| {})?;
        file.write(&scorer.entity_parts(&Table::new(&labels, dim)?)?)?;
        see(number * BATCH + batch.len());
    }
    file.finish()?;
    let labels = relation_vectors(graph, encoder)?;
    let mut file = Halves::create(&aside.join("relations"))?;
    file.write(&scorer.relation_parts(&Table::new(labels.values(), dim)?)?)?;
    file.finish()?;
    let path = aside.join(MANIFEST);
    let text = serde_json::to_string_pretty(&manifest).expect("a manifest is numbers and texts");
    fs::write(&path, text + "\n").map_err(Error::io("write", &path))?;

    remove(&folder)?;
    fs::rename(&aside, &folder).map_err(Error::io("rename", &aside))?;
    Ok(PartsReport {
        bytes: crate::index::bytes_in(&folder)?,
        folder,
        entities: manifest.entities,
        relations: manifest.relations,
    })
}

/// A file of numbers in half precision.
struct Halves {
    path: PathBuf,
    file: BufWriter<File>,
    halves: Vec<f16>,
}

impl Halves {
    fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, file),
            halves: Vec::new(),
        })
    }

    fn write(&mut self, rows: &Projected<'_>) -> Result<()> {
        let (halves, file) = (&mut self.halves, &mut self.file);
        let mut written = Ok(());
        rows.each_block(|block| {
            halves.resize(block.len(), f16::ZERO);
            halves.convert_from_f32_slice(block);
            if written.is_ok() {
                let bits: &[u16] = halves.reinterpret_cast();
                written = file.write_all(bytemuck::cast_slice(bits));
            }
        });
        written.map_err(Error::io("write", &self.path))
    }

    fn finish(mut self) -> Result<()> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .map_err(Error::io("write", &self.path))
    }
}

fn remove(folder: &Path) -> Result<()> {
    match folder.exists() {
        true => fs::remove_dir_all(folder).map_err(Error::io("remove", folder)),
        false => Ok(()),
    }
}
