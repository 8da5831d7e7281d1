//! Causal attention over a cache of keys and values.
//!
//! ```text
//! o_r = Σ_{j ≤ pos(r)} softmax_j(cap(s · q_r · k_j)) v_j
//! ```
//!
//! s is `scale`; cap(x) = c·tanh(x/c) where the model caps its logits, otherwise x; with a window
//! w only the last w positions count. Query heads that share a key head are rows of one product.
//! Keys of sixteen positions lie together, dimension by dimension, so that their products with a
//! query need no sum across a vector.

use pulp::{Arch, Simd, WithSimd};

use super::parallel::in_parts;
use crate::encode::simd::exp;

/// Positions whose keys lie together.
const LANES: usize = 16;

/// Rows of queries that share one reading of keys and values.
const ROWS: usize = 4;

/// How a layer attends.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    pub(super) queries: usize,
    pub(super) keys: usize,
    /// Numbers of a head.
    pub(super) size: usize,
    pub(super) scale: f32,
    pub(super) cap: Option<f32>,
    pub(super) window: Option<usize>,
}

/// Keys and values of one layer.
#[derive(Debug, Default)]
pub(super) struct Cache {
    keys: Vec<Vec<f32>>,   // for each key head [positions / 16, size, 16]
    values: Vec<Vec<f32>>, // for each key head [positions, size]
    length: usize,
}

impl Cache {
    /// Forgets all from this position on.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Appends `[tokens, keys · size]` of keys and values.
    fn extend(&mut self, keys: &[f32], values: &[f32], heads: &Heads) {
        self.keys.resize_with(heads.keys, Vec::new);
        self.values.resize_with(heads.keys, Vec::new);
        let size = heads.size;
        let width = heads.keys * size;
        let length = self.length + keys.len() / width;
        for head in 0..heads.keys {
            let (kept, kept_values) = (&mut self.keys[head], &mut self.values[head]);
            kept.resize(length.div_ceil(LANES) * LANES * size, 0.0);
            kept_values.truncate(self.length * size);
            for (i, row) in keys.chunks_exact(width).enumerate() {
                let (group, lane) = ((self.length + i) / LANES, (self.length + i) % LANES);
                let at = &mut kept[group * LANES * size..][..LANES * size];
                for (d, k) in row[head * size..(head + 1) * size].iter().enumerate() {
                    at[d * LANES + lane] = *k;
                }
            }
            for row in values.chunks_exact(width) {
                kept_values.extend_from_slice(&row[head * size..(head + 1) * size]);
            }
        }
        self.length = length;
    }

    /// Takes in new keys and values, and attends from `queries`, `[tokens, queries · size]`.
    pub(super) fn attend(
        &mut self,
        queries: &[f32],
        keys: &[f32],
        values: &[f32],
        heads: &Heads,
    ) -> Vec<f32> {
        let before = self.length;
        self.extend(keys, values, heads);
        let (size, group) = (heads.size, heads.queries / heads.keys);
        let width = heads.queries * size;
        let tokens = queries.len() / width;
        // rows of one key head: its query heads token by token
        let rows = tokens * group;
        let tiles = rows.div_ceil(ROWS);
        let place =
            |head: usize, row: usize| (row / group) * width + (head * group + row % group) * size;
        let mut tiled = vec![0.0; heads.keys * tiles * ROWS * size];
        in_parts(&mut tiled, ROWS * size, |i, out| {
            let (head, tile) = (i / tiles, i % tiles);
            let first = tile * ROWS;
            let count = ROWS.min(rows - first);
            // a row that is missing repeats the last one, and is not read
            let row = |n: usize| first + n.min(count - 1);
            Arch::new().dispatch(Tile {
                queries: std::array::from_fn(|n| &queries[place(head, row(n))..][..size]),
                ends: std::array::from_fn(|n| before + row(n) / group + 1),
                keys: &self.keys[head],
                values: &self.values[head],
                heads,
                out,
            });
        });
        let mut out = vec![0.0; queries.len()];
        for head in 0..heads.keys {
            for row in 0..rows {
                let from = (head * tiles * ROWS + row) * size;
                let to = place(head, row);
                out[to..to + size].copy_from_slice(&tiled[from..from + size]);
            }
        }
        out
    }
}

/// Four rows of queries against the keys and values of one head.
struct Tile<'a> {
    queries: [&'a [f32]; ROWS],
    /// Positions that each row sees end before this.
    ends: [usize; ROWS],
    keys: &'a [f32],
    values: &'a [f32],
    heads: &'a Heads,
    out: &'a mut [f32],
}

impl WithSimd for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            queries,
            ends,
            keys,
            values,
            heads,
            out,
        } = self;
        let size = heads.size;
        let starts = ends.map(|end| heads.window.map_or(0, |window| end.saturating_sub(window)));
        let last = ends.into_iter().max().unwrap_or(0);
        let first = starts.into_iter().min().unwrap_or(0) / LANES * LANES;
        let length = last.div_ceil(LANES) * LANES - first;
        let mut scores: [Vec<f32>; ROWS] = std::array::from_fn(|_| vec![0.0; length]);
        products(
            simd,
            queries,
            &keys[first * size..(first + length) * size],
            &mut scores,
        );
        for (n, scores) in scores.iter_mut().enumerate() {
            let (seen, unseen) = scores.split_at_mut(ends[n] - first);
            unseen.fill(0.0);
            let (before, seen) = seen.split_at_mut(starts[n].saturating_sub(first));
            before.fill(0.0);
            softmax(seen, heads);
        }
        let values = &values[first * size..last * size];
        mix(simd, &scores, values, size, out);
    }
}

/// `scores[n][j] = queries[n] · key j`.
#[inline(always)]
fn products<S: Simd>(
    simd: S,
    queries: [&[f32]; ROWS],
    keys: &[f32],
    scores: &mut [Vec<f32>; ROWS],
) {
    let size = queries[0].len();
    let [a, b, c, d] = queries.map(|q| &q[..size]);
    // lanes of a vector divide 16 on every processor
    let vectors = LANES / S::F32_LANES;
    for (group, keys) in keys.chunks_exact(LANES * size).enumerate() {
        let (keys, _) = S::as_simd_f32s(keys);
        for v in 0..vectors {
            let mut sums = [simd.splat_f32s(0.0); ROWS];
            for i in 0..size {
                let key = keys[i * vectors + v];
                for (sum, q) in sums.iter_mut().zip([a[i], b[i], c[i], d[i]]) {
                    *sum = simd.mul_add_e_f32s(simd.splat_f32s(q), key, *sum);
                }
            }
            for (sum, scores) in sums.into_iter().zip(scores.iter_mut()) {
                let (scores, _) = S::as_mut_simd_f32s(&mut scores[group * LANES..][..LANES]);
                scores[v] = sum;
            }
        }
    }
}

#[inline(always)]
fn softmax(scores: &mut [f32], heads: &Heads) {
    let mut most = f32::NEG_INFINITY;
    for score in scores.iter_mut() {
        *score *= heads.scale;
        if let Some(cap) = heads.cap {
            *score = cap * (*score / cap).tanh();
        }
        most = most.max(*score);
    }
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = exp(*score - most);
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// `out[n] = Σ_j weights[n][j] · value j`.
#[inline(always)]
fn mix<S: Simd>(simd: S, weights: &[Vec<f32>; ROWS], values: &[f32], size: usize, out: &mut [f32]) {
    let lanes = S::F32_LANES;
    let count = values.len() / size;
    let [a, b, c, d] = [0, 1, 2, 3].map(|n| &weights[n][..count]);
    let whole = size / (4 * lanes) * 4 * lanes;
    // four vectors of four rows: sixteen sums stay in registers
    for at in (0..whole).step_by(4 * lanes) {
        let mut sums = [[simd.splat_f32s(0.0); 4]; ROWS];
        for j in 0..count {
            let (value, _) = S::as_simd_f32s(&values[j * size + at..][..4 * lanes]);
            for (sums, w) in sums.iter_mut().zip([a[j], b[j], c[j], d[j]]) {
                let w = simd.splat_f32s(w);
                for (sum, value) in sums.iter_mut().zip(value) {
                    *sum = simd.mul_add_e_f32s(w, *value, *sum);
                }
            }
        }
        for (n, sums) in sums.into_iter().enumerate() {
            let (out, _) = S::as_mut_simd_f32s(&mut out[n * size + at..][..4 * lanes]);
            out.copy_from_slice(&sums);
        }
    }
    for at in whole..size {
        for (n, weights) in [a, b, c, d].into_iter().enumerate() {
            out[n * size + at] = (0..count).map(|j| weights[j] * values[j * size + at]).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Random;

    /// By the definition, one row after another.
    fn naive(
        queries: &[f32],
        keys: &[f32],
        values: &[f32],
        before: usize,
        heads: &Heads,
    ) -> Vec<f32> {
        let (size, group) = (heads.size, heads.queries / heads.keys);
        let mut out = vec![];
        for (row, q) in queries.chunks_exact(size).enumerate() {
            let end = before + row / heads.queries + 1;
            let start = heads.window.map_or(0, |w| end.saturating_sub(w));
            let head = row % heads.queries / group;
            let of = |all: &[f32], j: usize, d: usize| all[(j * heads.keys + head) * size + d];
            let score = |j: usize| {
                let dot: f32 = (0..size).map(|d| q[d] * of(keys, j, d)).sum();
                let score = dot * heads.scale;
                heads.cap.map_or(score, |cap| cap * (score / cap).tanh())
            };
            let weights: Vec<f32> = (start..end).map(|j| score(j).exp()).collect();
            let sum: f32 = weights.iter().sum();
            for d in 0..size {
                let mixed = weights.iter().zip(start..end);
                out.push(mixed.map(|(w, j)| w * of(values, j, d)).sum::<f32>() / sum);
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn attention_is_that_of_the_definition(
            group in 1usize..4, kv in 1usize..3, size in prop::sample::select(vec![4usize, 20, 64]),
            parts in prop::collection::vec(1usize..20, 1..4), cap in prop::option::of(1f32..5.0),
            window in prop::option::of(1usize..20), cut in 0usize..10, seed: u64,
        ) {
            let heads = Heads {
                queries: group * kv, keys: kv, size, scale: 0.3, cap, window,
            };
            let mut random = Random::new(seed);
            let mut cache = Cache::default();
            let (mut keys, mut values) = (vec![], vec![]);
            let mut before = 0;
            for (i, &tokens) in parts.iter().enumerate() {
                if i == 1 {
                    // part of it is forgotten and another text goes on from there
                    before = before.min(cut);
                    cache.truncate(before);
                    keys.truncate(before * kv * size);
                    values.truncate(before * kv * size);
                }
                let mut some = |width: usize| -> Vec<f32> {
                    (0..tokens * width).map(|_| random.normal()).collect()
                };
                let (q, k, v) = (some(group * kv * size), some(kv * size), some(kv * size));
                keys.extend(&k);
                values.extend(&v);
                let found = cache.attend(&q, &k, &v, &heads);
                let want = naive(&q, &keys, &values, before, &heads);
                for (found, want) in found.iter().zip(&want) {
                    prop_assert!((found - want).abs() < 1e-4, "{found} {want}");
                }
                before += tokens;
            }
        }
    }
}
