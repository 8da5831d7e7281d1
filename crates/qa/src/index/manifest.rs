//! One part of an index on the disk: its manifest, its folder, and how a new one takes its place.
//!
//! `entities.json` leads to the folder `entities-1` and says which graph and encoder it belongs
//! to. A new one is written in `entities.part`, renamed to the next free number, and counts from
//! the moment at which the new manifest is renamed over the old one.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use serde::{Deserialize, Serialize};
use wherefore_graph::{FileInfo, Mapped, Store, Sums, Verified};
use wherefore_model::Encoder;
use xxhash_rust::xxh3::xxh3_64;

use super::part::{FOLDER, Part, command};
use crate::error::{Error, Result};

/// The format that this version reads and writes.
pub(crate) const FORMAT: u32 = 1;

/// A text whose row tells two encoders of one name apart.
const PROBE: &str = "the place where a person was born";
/// Numbers of that row that are kept.
const PROBED: usize = 8;
/// Rows of one encoder differ by less than this from machine to machine.
const PROBE_TOLERANCE: f32 = 0.01;

/// Which encoder made the vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncoderMark {
    pub(crate) name: String,
    pub(crate) dim: usize,
    /// The first numbers of a row that it gives: a model can change and keep its name.
    probe: Vec<f32>,
}

impl EncoderMark {
    pub(crate) fn of(encoder: &dyn Encoder) -> Result<Self> {
        let rows = encoder.encode(&[PROBE])?;
        Ok(Self {
            name: encoder.name().to_owned(),
            dim: encoder.dim(),
            probe: rows.row(0).iter().take(PROBED).copied().collect(),
        })
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        let close = |(a, b): (&f32, &f32)| (a - b).abs() < PROBE_TOLERANCE;
        self.name == other.name
            && self.dim == other.dim
            && self.probe.len() == other.probe.len()
            && self.probe.iter().zip(&other.probe).all(close)
    }

    /// As an error names it, beside another.
    fn told_from(&self, other: &Self) -> String {
        let version = if self.name == other.name && self.dim == other.dim {
            " in another version"
        } else {
            ""
        };
        format!("`{}` of {} numbers{version}", self.name, self.dim)
    }
}

/// What the manifest says of the links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HnswMark {
    pub(crate) links: usize,
    pub(crate) ef_search: usize,
    /// Where searches begin, and its layer.
    pub(crate) entry: u32,
    pub(crate) top: usize,
    /// Vectors above layer 0, and their rows of links.
    pub(crate) upper_nodes: u64,
    pub(crate) upper_rows: u64,
}

/// What a part of an index says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    pub(crate) written_by: String,
    pub(crate) part: Part,
    /// Folder of the files, beside the manifest.
    pub(crate) folder: String,
    /// Checksum of the graph.
    pub(crate) graph: String,
    pub(crate) encoder: Option<EncoderMark>,
    /// Entities, relations or triples of the graph.
    pub(crate) rows: u64,
    /// Those of them that have a text.
    pub(crate) named: u64,
    /// Distinct texts, each with one vector; documents of a full-text index.
    pub(crate) vectors: u64,
    /// The links between near vectors, where there are enough vectors to need them.
    pub(crate) hnsw: Option<HnswMark>,
    /// Bytes of all files.
    pub(crate) bytes: u64,
    /// The file with the checksums of the files' blocks; older indexes have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sums: Option<FileInfo>,
}

/// The field of the manifest that holds the checksum of all others.
const CHECKSUM: &str = "checksum";

fn checksum(manifest: &serde_json::Value) -> String {
    let mut manifest = manifest.clone();
    settle(&mut manifest);
    format!("{:016x}", xxh3_64(manifest.to_string().as_bytes()))
}

/// Numbers with a point as text, in single precision: read back from a file, the last digit of a
/// double may be another.
fn settle(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().unwrap_or_default() as f32;
            *value = Value::String(rounded.to_string());
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(fields) => fields.values_mut().for_each(settle),
        _ => {}
    }
}

/// The files of a part, and what is known of them.
pub(crate) struct Files {
    pub(crate) folder: PathBuf,
    pub(crate) mend: String,
    pub(crate) sums: Option<Sums>,
}

impl Files {
    /// Maps a file that holds exactly `len` numbers; what is read of it is verified.
    pub(crate) fn map<T: Pod>(&self, name: &str, len: u64) -> Result<Verified<T>> {
        let mapped = self.open(name)?;
        let path = self.folder.join(name);
        expect_length(&path, mapped.len(), size_of::<T>(), len, &self.mend)?;
        Ok(mapped)
    }

    /// Maps a file of any length; what is read of it is verified.
    pub(crate) fn open<T: Pod>(&self, name: &str) -> Result<Verified<T>> {
        let sums = self.sums.as_ref().and_then(|sums| sums.of(name));
        Verified::open(&self.folder.join(name), sums).map_err(|e| self.told(e))
    }

    /// Reads files whole and verifies them; without checksums there is nothing to verify.
    pub(crate) fn check<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let Some(sums) = &self.sums else {
            return Ok(());
        };
        for name in names {
            let path = self.folder.join(name);
            let file = Verified::<u8>::open(&path, sums.of(name)).map_err(|e| self.told(e))?;
            file.slice(0..file.len()).map_err(|e| self.told(e))?;
        }
        Ok(())
    }

    /// Reads all files whole and verifies them.
    pub(crate) fn check_all(&self) -> Result<()> {
        let names = self.sums.iter().flat_map(Sums::names);
        self.check(names)
    }

    /// What the graph's reader says of a file of the index.
    pub(crate) fn told(&self, error: wherefore_graph::Error) -> Error {
        told(error, &self.mend)
    }
}

/// Damage of a mapped file, told as that of an index.
pub(crate) fn told(error: wherefore_graph::Error, mend: &str) -> Error {
    let damaged = |path: PathBuf, reason: String| Error::DamagedIndex {
        path,
        reason,
        mend: mend.to_owned(),
    };
    match error {
        wherefore_graph::Error::Damaged { path, reason } => damaged(path, reason),
        wherefore_graph::Error::Io { path, source, .. } if source.kind() == ErrorKind::NotFound => {
            damaged(path, "it is missing".into())
        }
        error => Error::Graph(error),
    }
}

fn expect_length(path: &Path, found: usize, size: usize, wanted: u64, mend: &str) -> Result<()> {
    if found as u64 == wanted {
        return Ok(());
    }
    Err(Error::DamagedIndex {
        path: path.to_owned(),
        reason: format!("it holds {found} numbers of {size} bytes instead of {wanted}"),
        mend: mend.to_owned(),
    })
}

/// Where the index of a graph lies.
pub(crate) fn folder_of(graph: &Path) -> PathBuf {
    graph.join(FOLDER)
}

fn manifest_path(graph: &Path, part: Part) -> PathBuf {
    folder_of(graph).join(format!("{}.json", part.name()))
}

impl Manifest {
    /// Reads the manifest of a part; none where there is none.
    pub(crate) fn read(graph: &Path, part: Part) -> Result<Option<Self>> {
        let path = manifest_path(graph, part);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", &path)(e)),
        };
        let damaged = |reason: String| Error::DamagedIndex {
            path: path.clone(),
            reason,
            mend: command(graph, None, part),
        };
        // the version first: a newer manifest may hold what this version cannot read
        let mut value: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|e| damaged(format!("it does not parse: {e}")))?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        if let Some(format) = format.filter(|&f| f != u64::from(FORMAT)) {
            return Err(damaged(format!(
                "it has format {format}, and this program reads {FORMAT}"
            )));
        }
        // older ones have none
        let found = (value.as_object_mut()).and_then(|fields| fields.remove(CHECKSUM));
        if found.is_some_and(|found| found != checksum(&value)) {
            return Err(damaged("its checksum does not match".into()));
        }
        let manifest: Self = serde_json::from_value(value)
            .map_err(|e| damaged(format!("it does not parse: {e}")))?;
        let plain = Path::new(&manifest.folder).file_name() == Some(manifest.folder.as_ref());
        if manifest.part != part || !plain {
            return Err(damaged("it is the manifest of something else".into()));
        }
        Ok(Some(manifest))
    }

    /// Reads the manifest of a part that must be there and belong to the graph.
    pub(crate) fn of_graph(graph: &Store, part: Part) -> Result<Self> {
        let manifest = Self::read(graph.path(), part)?.ok_or_else(|| Error::NoIndex {
            graph: graph.path().to_owned(),
            part,
        })?;
        if manifest.graph != graph.checksum() {
            return Err(Error::IndexOfAnotherGraph {
                graph: graph.path().to_owned(),
                part,
                encoder: manifest.encoder.map(|e| e.name),
                found: manifest.graph,
                wanted: graph.checksum().to_owned(),
            });
        }
        Ok(manifest)
    }

    /// Refuses vectors of another encoder.
    pub(crate) fn expect_encoder(&self, graph: &Path, wanted: &EncoderMark) -> Result<()> {
        match &self.encoder {
            Some(found) if found.same(wanted) => Ok(()),
            Some(found) => Err(Error::IndexOfAnotherEncoder {
                graph: graph.to_owned(),
                part: self.part,
                encoder: wanted.name.clone(),
                found: found.told_from(wanted),
                wanted: format!("`{}` of {} numbers", wanted.name, wanted.dim),
            }),
            None => Err(Error::DamagedIndex {
                path: manifest_path(graph, self.part),
                reason: "it names no encoder".into(),
                mend: command(graph, Some(&wanted.name), self.part),
            }),
        }
    }

    /// Where the files of the part are.
    pub(crate) fn data(&self, graph: &Path) -> PathBuf {
        folder_of(graph).join(&self.folder)
    }

    /// What to type when a file turns out to be damaged.
    pub(crate) fn mend(&self, graph: &Path) -> String {
        let encoder = self.encoder.as_ref().map(|e| e.name.as_str());
        command(graph, encoder, self.part)
    }

    /// The files of the part, to be read.
    pub(crate) fn files(&self, graph: &Path) -> Result<Files> {
        let (folder, mend) = (self.data(graph), self.mend(graph));
        let sums = match &self.sums {
            Some(promised) => Some(Sums::read(&folder, promised).map_err(|e| told(e, &mend))?),
            None => None,
        };
        Ok(Files { folder, mend, sums })
    }

    /// Puts the finished folder `aside` in the place of what was there.
    pub(crate) fn publish(mut self, graph: &Path, aside: &Path) -> Result<Self> {
        let index = folder_of(graph);
        let name = self.part.name();
        let mut number = 1;
        while index.join(format!("{name}-{number}")).exists() {
            number += 1;
        }
        self.folder = format!("{name}-{number}");
        let target = index.join(&self.folder);
        std::fs::rename(aside, &target).map_err(Error::io("rename", aside))?;
        let mut value = serde_json::to_value(&self).expect("a manifest is plain data");
        let checksum = checksum(&value);
        value[CHECKSUM] = checksum.into();
        let text = serde_json::to_string_pretty(&value).expect("a manifest is plain data");
        write_aside(&manifest_path(graph, self.part), text.as_bytes())?;
        // what no manifest leads to any more; a reader that has it mapped keeps it
        for entry in std::fs::read_dir(&index).map_err(Error::io("read", &index))? {
            let entry = entry.map_err(Error::io("read", &index))?;
            let found = entry.file_name();
            let stale = found
                .to_str()
                .and_then(|f| f.strip_prefix(name)?.strip_prefix('-'))
                .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()));
            if stale && found != self.folder.as_str() {
                std::fs::remove_dir_all(entry.path()).map_err(Error::io("remove", entry.path()))?;
            }
        }
        Ok(self)
    }
}

/// Maps a file that is being made and holds exactly `len` numbers.
pub(crate) fn map<T: Pod>(path: &Path, len: u64) -> Result<Mapped<T>> {
    let mapped = Mapped::<T>::open(path).map_err(|e| told(e, ""))?;
    expect_length(path, mapped.len(), size_of::<T>(), len, "")?;
    Ok(mapped)
}

/// Makes checksums of the blocks of all files in a folder that is complete.
pub(crate) fn write_sums(folder: &Path) -> Result<FileInfo> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let entry = entry.map_err(Error::io("read", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // locks are made and removed by whoever reads
        if name != wherefore_graph::SUMS && !name.ends_with(".lock") {
            names.push(name);
        }
    }
    Ok(Sums::compute(folder, names)?.write(folder)?)
}

/// Writes a small file so that at every moment the old or the new one is there whole.
pub(crate) fn write_aside(path: &Path, bytes: &[u8]) -> Result<()> {
    let aside = path.with_extension("aside");
    let mut file = File::create(&aside).map_err(Error::io("create", &aside))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(Error::io("write", &aside))?;
    std::fs::rename(&aside, path).map_err(Error::io("rename", &aside))
}

/// Bytes of all files in a folder.
pub(crate) fn bytes_in(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let entry = entry.map_err(Error::io("read", folder))?;
        bytes += entry
            .metadata()
            .map_err(Error::io("read", entry.path()))?
            .len();
    }
    Ok(bytes)
}
