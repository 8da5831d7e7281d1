//! HNSW: near vectors are linked, and a search walks the links from coarse layers to fine ones.
//!
//! Malkov and Yashunin, "Efficient and Robust Approximate Nearest Neighbor Search Using
//! Hierarchical Navigable Small World Graphs", TPAMI 2020 (arXiv 1603.09320):
//!
//! ```text
//! level of a vector  l = ⌊−ln(u)·mL⌋,  mL = 1 / ln M          u uniform in (0, 1]
//! layer l links a vector to at most M others of that layer, layer 0 to at most 2·M
//! search: greedy in the layers above 0, then the best `ef` vectors of layer 0
//! ```
//!
//! M is `links`, efConstruction `ef_construction`, ef `ef_search`. Nearness is the dot product;
//! rows have length 1. Links lie over the f16 rows of the index, which are not copied.
//!
//! Departures: vectors are inserted in batches (`build.rs`), so that the result
//! depends on rows and seed alone and not on threads. Rows of zeros are left out.
//!
//! Files, all u32: `links` `[vectors, 2·M]`; for the vectors that rise above layer 0
//! `upper.nodes` (ascending), `upper.starts` (first row in `upper.links`, one more at the end)
//! and `upper.links` `[…, M]`, one row for each layer from 1. Unused places hold [`NONE`].

mod build;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use wherefore_graph::Verified;

use super::dot::Query;
use super::manifest::{Files, HnswMark, Manifest};
use crate::error::{Error, Result};

pub(crate) use build::{MAX_LEVEL, build, write};

/// No vector.
pub(crate) const NONE: u32 = u32::MAX;

/// How vectors are linked and searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HnswOptions {
    /// Links of a vector in a layer, and half of those in the lowest: M.
    pub links: usize,
    /// Vectors looked at when one is linked.
    pub ef_construction: usize,
    /// Vectors looked at in a search; more find more and take longer.
    pub ef_search: usize,
    /// Seed of the levels.
    pub seed: u64,
}

impl Default for HnswOptions {
    fn default() -> Self {
        Self {
            links: 16,
            ef_construction: 100,
            ef_search: 96,
            seed: 0,
        }
    }
}

/// Numbers in memory or in a file that is verified where it is read.
pub(crate) trait Numbers<T> {
    fn len(&self) -> usize;

    /// Those of a range.
    fn slice(&self, range: Range<usize>) -> Result<&[T], Astray>;
}

impl Numbers<u32> for Vec<u32> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn slice(&self, range: Range<usize>) -> Result<&[u32], Astray> {
        self.get(range).ok_or(Astray::Nowhere)
    }
}

impl Numbers<u16> for [u16] {
    fn len(&self) -> usize {
        <[u16]>::len(self)
    }

    fn slice(&self, range: Range<usize>) -> Result<&[u16], Astray> {
        self.get(range).ok_or(Astray::Nowhere)
    }
}

impl<T: bytemuck::Pod> Numbers<T> for Verified<T> {
    fn len(&self) -> usize {
        Verified::len(self)
    }

    fn slice(&self, range: Range<usize>) -> Result<&[T], Astray> {
        match Verified::slice(self, range) {
            Ok(found) => found.ok_or(Astray::Nowhere),
            Err(error) => Err(Astray::Damaged(Box::new(error))),
        }
    }
}

/// Rows of f16 numbers.
pub(crate) struct Rows<'a, B: ?Sized = [u16]> {
    pub(crate) values: &'a B,
    pub(crate) dim: usize,
}

impl<B: ?Sized> Clone for Rows<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: ?Sized> Copy for Rows<'_, B> {}

impl<'a, B: Numbers<u16> + ?Sized> Rows<'a, B> {
    pub(crate) fn len(self) -> usize {
        self.values.len() / self.dim
    }

    fn checked_row(self, node: u32) -> Result<&'a [u16], Astray> {
        let from = node as usize * self.dim;
        self.values.slice(from..from + self.dim)
    }
}

impl<'a> Rows<'a> {
    pub(crate) fn row(self, node: u32) -> &'a [u16] {
        let from = node as usize * self.dim;
        &self.values[from..from + self.dim]
    }
}

/// The links, in memory while they are made and mapped later.
#[derive(Debug)]
pub(crate) struct Layers<B> {
    m: usize,
    base: B,
    upper_nodes: B,
    upper_starts: B,
    upper_links: B,
}

/// Links that cannot be followed.
#[derive(Debug)]
pub(crate) enum Astray {
    /// One leads nowhere.
    Nowhere,
    /// A file is damaged.
    Damaged(Box<wherefore_graph::Error>),
}

impl<B: Numbers<u32>> Layers<B> {
    /// Where the links of a vector in a layer stand, and whether in the base.
    fn place(&self, node: u32, layer: usize) -> Result<Range<usize>, Astray> {
        if layer == 0 {
            let from = node as usize * 2 * self.m;
            return Ok(from..from + 2 * self.m);
        }
        let one = |numbers: &B, at: usize| match numbers.slice(at..at + 1)? {
            [number] => Ok(*number),
            _ => Err(Astray::Nowhere),
        };
        let (mut low, mut high) = (0, self.upper_nodes.len());
        while low < high {
            let middle = (low + high) / 2;
            match one(&self.upper_nodes, middle)?.cmp(&node) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    let row = one(&self.upper_starts, middle)?;
                    let from = (row as usize + layer - 1) * self.m;
                    return Ok(from..from + self.m);
                }
            }
        }
        Err(Astray::Nowhere)
    }

    fn links(&self, node: u32, layer: usize) -> Result<&[u32], Astray> {
        let place = self.place(node, layer)?;
        let all = if layer == 0 {
            &self.base
        } else {
            &self.upper_links
        };
        let row = all.slice(place)?;
        Ok(match row.iter().position(|&n| n == NONE) {
            Some(end) => &row[..end],
            None => row,
        })
    }

    /// Walks from `from` to the nearest vector of a layer that greed reaches.
    fn greedy<V: Numbers<u16> + ?Sized>(
        &self,
        rows: Rows<'_, V>,
        query: &Query,
        mut from: Near,
        layer: usize,
    ) -> Result<Near, Astray> {
        loop {
            let mut best = from;
            for &node in self.links(from.node, layer)? {
                best = best.max(near(rows, query, node)?);
            }
            if best == from {
                return Ok(best);
            }
            from = best;
        }
    }

    /// The `ef` nearest vectors of a layer that are reached from `from`, nearest first.
    fn search_layer<V: Numbers<u16> + ?Sized>(
        &self,
        rows: Rows<'_, V>,
        query: &Query,
        from: &[Near],
        ef: usize,
        layer: usize,
        visited: &mut Visited,
    ) -> Result<Vec<Near>, Astray> {
        visited.clear();
        let mut open: BinaryHeap<Near> = BinaryHeap::new();
        let mut found: BinaryHeap<Reverse<Near>> = BinaryHeap::with_capacity(ef + 1);
        for &start in from {
            visited.insert(start.node);
            open.push(start);
            found.push(Reverse(start));
        }
        while found.len() > ef {
            found.pop();
        }
        while let Some(current) = open.pop() {
            let is_full = found.len() >= ef;
            if is_full && found.peek().is_some_and(|worst| current < worst.0) {
                break;
            }
            for &node in self.links(current.node, layer)? {
                if node as usize >= rows.len() {
                    return Err(Astray::Nowhere);
                }
                if !visited.insert(node) {
                    continue;
                }
                let next = near(rows, query, node)?;
                if found.len() < ef {
                    found.push(Reverse(next));
                    open.push(next);
                } else if found.peek().is_some_and(|worst| next > worst.0) {
                    found.pop();
                    found.push(Reverse(next));
                    open.push(next);
                }
            }
        }
        let mut nearest: Vec<Near> = found.into_iter().map(|Reverse(n)| n).collect();
        nearest.sort_unstable_by(|a, b| b.cmp(a));
        Ok(nearest)
    }
}

fn near<V: Numbers<u16> + ?Sized>(
    rows: Rows<'_, V>,
    query: &Query,
    node: u32,
) -> Result<Near, Astray> {
    Ok(Near {
        score: query.dot(rows.checked_row(node)?),
        node,
    })
}

/// A vector and its dot product with the query. The greatest is the nearest, and of two equally
/// near ones that with the smaller number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    pub(crate) score: f32,
    pub(crate) node: u32,
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Near {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Near {}

/// A set of vectors that is cleared in the time it was filled.
#[derive(Debug)]
pub(crate) struct Visited {
    bits: Vec<u64>,
    members: Vec<u32>,
}

impl Visited {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            bits: vec![0; len.div_ceil(64)],
            members: Vec::new(),
        }
    }

    /// Whether it was not there before.
    fn insert(&mut self, node: u32) -> bool {
        let (word, bit) = (&mut self.bits[node as usize / 64], 1 << (node % 64));
        let fresh = *word & bit == 0;
        if fresh {
            *word |= bit;
            self.members.push(node);
        }
        fresh
    }

    fn clear(&mut self) {
        for node in self.members.drain(..) {
            self.bits[node as usize / 64] = 0;
        }
    }
}

/// All links, and where searches begin.
#[derive(Debug)]
pub(crate) struct Hnsw<B> {
    layers: Layers<B>,
    pub(crate) mark: HnswMark,
}

impl Hnsw<Verified<u32>> {
    pub(crate) fn open(files: &Files, manifest: &Manifest, mark: &HnswMark) -> Result<Self> {
        let fits = mark.links > 0
            && mark.links <= 1 << 16
            && u64::from(mark.entry) < manifest.vectors
            && mark.top <= MAX_LEVEL
            && mark.upper_nodes <= manifest.vectors
            && mark.upper_rows <= mark.upper_nodes * MAX_LEVEL as u64;
        if !fits {
            return Err(Error::DamagedIndex {
                path: files.folder.join("links"),
                reason: "its numbers in the manifest do not fit together".into(),
                mend: files.mend.clone(),
            });
        }
        let (m, map) = (mark.links as u64, |name: &str, len: u64| {
            files.map(name, len)
        });
        Ok(Self {
            layers: Layers {
                m: mark.links,
                base: map("links", manifest.vectors * 2 * m)?,
                upper_nodes: map("upper.nodes", mark.upper_nodes)?,
                upper_starts: map("upper.starts", mark.upper_nodes + 1)?,
                upper_links: map("upper.links", mark.upper_rows * m)?,
            },
            mark: mark.clone(),
        })
    }

    /// An error if a file is shorter than when it was opened.
    pub(crate) fn is_there(&self) -> Result<(), wherefore_graph::Error> {
        self.layers.base.is_there()?;
        self.layers.upper_nodes.is_there()?;
        self.layers.upper_starts.is_there()?;
        self.layers.upper_links.is_there()
    }
}

impl<B: Numbers<u32>> Hnsw<B> {
    /// The `k` nearest vectors that a search finds, nearest first.
    pub(crate) fn nearest<V: Numbers<u16> + ?Sized>(
        &self,
        rows: Rows<'_, V>,
        query: &Query,
        k: usize,
    ) -> Result<Vec<Near>, Astray> {
        let mut from = near(rows, query, self.mark.entry)?;
        for layer in (1..=self.mark.top).rev() {
            from = self.layers.greedy(rows, query, from, layer)?;
        }
        let ef = self.mark.ef_search.max(k);
        let mut visited = Visited::new(rows.len());
        let mut nearest = self
            .layers
            .search_layer(rows, query, &[from], ef, 0, &mut visited)?;
        nearest.truncate(k);
        Ok(nearest)
    }
}
