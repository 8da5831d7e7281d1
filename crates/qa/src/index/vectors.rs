//! Vectors of a graph's labels, and which of them are nearest to a question's.
//!
//! Equal texts share one vector. In the folder, little-endian:
//!
//! ```text
//! vectors   f16 [vectors, dim]    one row for each distinct text
//! hashes    u64 [vectors]         xxh3 of the text: what need not be encoded again
//! rows      u32 [ids]             the vector of an entity, relation or triple, or none
//! starts    u32 [vectors + 1]     where its ids begin
//! ids       u32 [named ids]       the ids that share a vector, ascending
//! links, upper.*                  where there are many vectors: see the HNSW module
//! ```

use std::collections::BinaryHeap;
use std::path::PathBuf;

use rayon::prelude::*;
use wherefore_graph::{Store, Verified};
use wherefore_model::Encoder;

use super::dot::{Query, to_f32};
use super::hnsw::{Astray, Hnsw, NONE, Near, Rows};
use super::manifest::{EncoderMark, Manifest, told};
use super::part::Part;
use crate::error::{Error, Result};

/// Numbers (vectors times dimension) that are scanned; more are linked. Two thirds of so many took
/// 1.7 ms on two busy cores (docs/index.md).
pub const SCANNED: u64 = 16 << 20;

/// Numbers that one thread scans at a time.
const BLOCK: usize = 1 << 19;

/// The vectors of one part of a graph, opened for reading.
#[derive(Debug)]
pub struct Vectors {
    part: Part,
    dim: usize,
    folder: PathBuf,
    /// What to type when a file is damaged.
    mend: String,
    vectors: Verified<u16>,
    rows: Verified<u32>,
    starts: Verified<u32>,
    ids: Verified<u32>,
    hnsw: Option<Hnsw<Verified<u32>>>,
}

impl Vectors {
    /// Opens the vectors that `encoder` gave for a part of the graph.
    ///
    /// # Errors
    /// If there are none, or if they belong to another graph or another encoder; the hint of the
    /// error is the command that mends it.
    pub fn open(graph: &Store, encoder: &dyn Encoder, part: Part) -> Result<Self> {
        let manifest = Manifest::of_graph(graph, part)?;
        let mark = EncoderMark::of(encoder)?;
        manifest.expect_encoder(graph.path(), &mark)?;
        let path = graph.path();
        let (folder, mend) = (manifest.data(path), manifest.mend(path));
        let too_many = manifest.vectors.checked_mul(mark.dim as u64 * 2).is_none();
        if too_many || manifest.vectors >= u64::from(NONE) {
            return Err(Error::DamagedIndex {
                path: folder.join("vectors"),
                reason: "its manifest promises more than a file can hold".into(),
                mend,
            });
        }
        let count = manifest.vectors;
        let files = manifest.files(path)?;
        Ok(Self {
            part,
            dim: mark.dim,
            vectors: files.map("vectors", count * mark.dim as u64)?,
            rows: files.map("rows", manifest.rows)?,
            starts: files.map("starts", count + 1)?,
            ids: files.map("ids", manifest.named)?,
            hnsw: match &manifest.hnsw {
                Some(mark) => Some(Hnsw::open(&files, &manifest, mark)?),
                None => None,
            },
            folder,
            mend,
        })
    }

    /// What the vectors belong to.
    pub fn part(&self) -> Part {
        self.part
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Every id (of an entity, a relation or a triple) is below this number.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the graph has nothing of this part.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Distinct texts.
    pub fn distinct(&self) -> usize {
        self.vectors.len() / self.dim
    }

    /// Whether [`Vectors::nearest`] follows links instead of scanning.
    pub fn is_linked(&self) -> bool {
        self.hnsw.is_some()
    }

    /// Writes the row of an id into `out`, which holds [`Vectors::dim`] numbers: zeros for what
    /// has no name.
    pub fn read(&self, id: u32, out: &mut [f32]) -> Result<()> {
        match self.row(id)? {
            Some(row) => to_f32(row, out),
            None => out.fill(0.0),
        }
        Ok(())
    }

    /// The dot product of a query with the row of each id; 0 for what has no name.
    pub fn similarities(&self, query: &[f32], ids: &[u32]) -> Result<Vec<f32>> {
        self.is_there()?;
        let query = self.query(query)?;
        ids.iter()
            .map(|&id| Ok(self.row(id)?.map_or(0.0, |row| query.dot(row))))
            .collect()
    }

    /// The `k` ids whose rows are nearest to the query, with their dot products, nearest first.
    ///
    /// Up to [`SCANNED`] numbers the answer is exact; beyond, links are followed, and a few in
    /// a hundred of the nearest are missed (docs/index.md). Ids without a name are never among them.
    pub fn nearest(&self, query: &[f32], k: usize) -> Result<Vec<(u32, f32)>> {
        match &self.hnsw {
            // links are for few: a search as wide as a good part of all vectors is slower than a scan
            Some(hnsw) if k < self.distinct() / 16 => {
                self.is_there()?;
                let query = self.query(query)?;
                let near = hnsw.nearest(self.matrix(), &query, k);
                let near = near.map_err(|astray| match astray {
                    Astray::Nowhere => self.damaged("links", "a link leads nowhere"),
                    Astray::Damaged(error) => self.told(*error),
                });
                self.expanded(near?, k)
            }
            _ => self.nearest_exact(query, k),
        }
    }

    /// Like [`Vectors::nearest`], by looking at every row.
    pub fn nearest_exact(&self, query: &[f32], k: usize) -> Result<Vec<(u32, f32)>> {
        let query = self.query(query)?;
        if k == 0 {
            return Ok(Vec::new());
        }
        self.is_there()?;
        let block = (BLOCK / self.dim).max(1);
        let end = self.vectors.len();
        let found = (0..self.distinct().div_ceil(block))
            .into_par_iter()
            .map(|i| {
                let from = i * block * self.dim;
                let rows = self.vectors.slice(from..end.min(from + block * self.dim));
                let rows = rows.map_err(|e| self.told(e))?.unwrap_or_default();
                let from = (i * block) as u32;
                Ok::<_, Error>(best_of(&query, rows, self.dim, from, k))
            })
            .try_reduce(Vec::new, |mut a, b| {
                a.extend(b);
                a.sort_unstable_by(|a, b| b.cmp(a));
                a.truncate(k);
                Ok(a)
            })?;
        self.expanded(found, k)
    }

    fn matrix(&self) -> Rows<'_, Verified<u16>> {
        Rows {
            values: &self.vectors,
            dim: self.dim,
        }
    }

    /// An error if a file is shorter than when it was opened: reading beyond its end would end
    /// the process.
    fn is_there(&self) -> Result<()> {
        (self.vectors.is_there())
            .and_then(|()| self.rows.is_there())
            .and_then(|()| self.starts.is_there())
            .and_then(|()| self.ids.is_there())
            .and_then(|()| self.hnsw.as_ref().map_or(Ok(()), Hnsw::is_there))
            .map_err(|e| self.told(e))
    }

    fn told(&self, error: wherefore_graph::Error) -> Error {
        told(error, &self.mend)
    }

    fn query(&self, query: &[f32]) -> Result<Query> {
        if query.len() != self.dim {
            return Err(Error::QueryDimension {
                given: query.len(),
                wanted: self.dim,
            });
        }
        Ok(Query::new(query))
    }

    fn row(&self, id: u32) -> Result<Option<&[u16]>> {
        let outside = || self.damaged("rows", &format!("it has no number {id}"));
        let number = self.rows.at(id as usize).map_err(|e| self.told(e))?;
        let number = number.ok_or_else(outside)?;
        if number == NONE {
            return Ok(None);
        }
        let from = number as usize * self.dim;
        let row = self.vectors.slice(from..from + self.dim);
        let outside = || self.damaged("rows", "a row lies outside the vectors");
        let row = row.map_err(|e| self.told(e))?.ok_or_else(outside)?;
        Ok(Some(row))
    }

    /// The ids behind vectors, the nearest `k`.
    fn expanded(&self, found: Vec<Near>, k: usize) -> Result<Vec<(u32, f32)>> {
        let mut ids = Vec::with_capacity(found.len().min(k));
        for near in found {
            let at = near.node as usize;
            let nowhere = || self.damaged("starts", "it leads nowhere");
            let range = self.starts.slice(at..at + 2).map_err(|e| self.told(e))?;
            let Some(&[from, to]) = range else {
                return Err(nowhere());
            };
            let members = self.ids.slice(from as usize..to as usize);
            let members = members.map_err(|e| self.told(e))?.ok_or_else(nowhere)?;
            ids.extend(
                members
                    .iter()
                    .take(k - ids.len())
                    .map(|&id| (id, near.score)),
            );
            if ids.len() == k {
                break;
            }
        }
        if ids.iter().any(|&(id, _)| id as usize >= self.rows.len()) {
            return Err(self.damaged("ids", "it names something outside the graph"));
        }
        Ok(ids)
    }

    fn damaged(&self, file: &str, reason: &str) -> Error {
        Error::DamagedIndex {
            path: self.folder.join(file),
            reason: reason.to_owned(),
            mend: self.mend.clone(),
        }
    }
}

/// The nearest `k` rows of a block whose first row has the number `first`, nearest first.
fn best_of(query: &Query, rows: &[u16], dim: usize, first: u32, k: usize) -> Vec<Near> {
    const TOGETHER: usize = 256;
    let mut best: BinaryHeap<std::cmp::Reverse<Near>> = BinaryHeap::new();
    let mut scores = Vec::with_capacity(TOGETHER);
    for (i, some) in rows.chunks(TOGETHER * dim).enumerate() {
        query.dots(some, &mut scores);
        for (j, &score) in scores.iter().enumerate() {
            let node = first + (i * TOGETHER + j) as u32;
            let near = Near { score, node };
            if best.len() == k && best.peek().is_some_and(|worst| near < worst.0) {
                continue;
            }
            // a text that the encoder knows nothing of is near to nothing
            let row = &some[j * dim..(j + 1) * dim];
            if score == 0.0 && row.iter().all(|bits| bits & 0x7fff == 0) {
                continue;
            }
            best.push(std::cmp::Reverse(near));
            if best.len() > k {
                best.pop();
            }
        }
    }
    let mut best: Vec<Near> = best.into_iter().map(|near| near.0).collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    best
}
