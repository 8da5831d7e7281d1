//! Scaled dot-product attention over packed tokens, each text within itself.
//!
//! Vaswani et al., "Attention Is All You Need", NeurIPS 2017:
//!
//! ```text
//! y_i = Σ_j softmax_j(q_i·k_j/√d + B(j − i)) · v_j
//! ```
//!
//! q, k, v are thirds of one product's row, `[heads·d | kv_heads·d | kv_heads·d]`, d is
//! `head_dim`. Before the product q and k may go through an RMS norm over d (Qwen3) and a
//! rotation by their position (Su et al., "RoFormer", 2021). B is MPNet's bias by distance.
//! `causal` keeps j ≤ i. Several query heads may share one key head (grouped queries).
//!
//! Departures: scores are made for four queries at a time, so that memory is
//! `4·tokens` and not `tokens²`.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape};
use pulp::Arch;
use rayon::prelude::*;

use super::ops::{Norm, RmsNorm, values};
use crate::encode::simd::{TILE, TileProduct, exp};

/// Shape of the heads, and what happens to q, k and the scores.
pub(super) struct Attention {
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) causal: bool,
    /// Norms of q and k, over one head.
    pub(super) norms: Option<(Norm, Norm)>,
}

impl Attention {
    /// As many key heads as query heads, every token sees every other.
    pub(super) fn plain(heads: usize, head_dim: usize) -> Self {
        Self {
            heads,
            kv_heads: heads,
            head_dim,
            causal: false,
            norms: None,
        }
    }

    fn row_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }
}

/// Sines and cosines of every position: `x ← [x₁cos − x₂sin, x₂cos + x₁sin]` over two halves.
pub(super) struct Rotation {
    cos: Vec<f32>, // [positions, head_dim / 2]
    sin: Vec<f32>,
    half: usize,
}

impl Rotation {
    /// `frequencies` has one entry for each pair of dimensions, `[head_dim / 2]`.
    pub(super) fn new(frequencies: &[f64], positions: usize) -> Self {
        let angles = (0..positions)
            .flat_map(|position| frequencies.iter().map(move |f| position as f64 * f));
        let (sin, cos) = angles
            .map(f64::sin_cos)
            .map(|(s, c)| (s as f32, c as f32))
            .unzip();
        Self {
            cos,
            sin,
            half: frequencies.len(),
        }
    }

    fn turn(&self, row: &mut [f32], position: usize) {
        let range = position * self.half..(position + 1) * self.half;
        let angles = self.cos[range.clone()].iter().zip(&self.sin[range]);
        let (first, second) = row[..2 * self.half].split_at_mut(self.half);
        for ((x, y), (cos, sin)) in first.iter_mut().zip(second).zip(angles) {
            (*x, *y) = (*x * cos - *y * sin, *y * cos + *x * sin);
        }
    }
}

/// Added to the score of key `j` for query `i`, by head and distance.
pub(super) struct DistanceBias {
    values: Vec<f32>, // [heads, 2·reach − 1], distance 0 in the middle
    reach: usize,
}

impl DistanceBias {
    /// `bias(head, j − i)` for texts of at most `reach` tokens.
    pub(super) fn new(heads: usize, reach: usize, bias: impl Fn(usize, isize) -> f32) -> Self {
        let reach = reach.max(1);
        let bias = &bias;
        let values = (0..heads)
            .flat_map(|head| {
                (0..2 * reach - 1).map(move |at| bias(head, at as isize - (reach as isize - 1)))
            })
            .collect();
        Self { values, reach }
    }

    /// Biases of query `i` for keys `0..len`.
    fn row(&self, head: usize, i: usize, len: usize) -> &[f32] {
        let start = head * (2 * self.reach - 1) + self.reach - 1 - i;
        &self.values[start..start + len]
    }
}

/// [`Attention`] on one batch: `[tokens, (heads + 2·kv_heads)·d]` to `[tokens, heads·d]`.
pub(super) struct Attend<'a> {
    pub(super) attention: &'a Attention,
    /// Bias of the product that made q, k and v; may be empty.
    pub(super) bias: &'a [f32],
    pub(super) rotation: Option<&'a Rotation>,
    pub(super) distance: Option<&'a DistanceBias>,
    /// Tokens of each text.
    pub(super) lengths: &'a [usize],
}

#[derive(Default)]
struct Scratch {
    queries: Vec<f32>, // [len, padded d]
    keys: Vec<f32>,    // [d, padded len]: transposed
    values: Vec<f32>,  // [len, padded d]
    scores: Vec<f32>,  // [4, padded len]
    out: Vec<f32>,     // [4, padded d]
    row: Vec<f32>,     // [d]
}

impl Attend<'_> {
    fn text(&self, qkv: &[f32], out: &mut [f32], scratch: &mut Scratch) {
        let &Attention {
            heads, kv_heads, ..
        } = self.attention;
        let group = heads / kv_heads;
        for kv_head in 0..kv_heads {
            self.load_keys_and_values(qkv, kv_head, scratch);
            for head in kv_head * group..(kv_head + 1) * group {
                self.load_queries(qkv, head, scratch);
                self.head(head, out, scratch);
            }
        }
    }

    /// `head_dim` numbers of token `t`'s row from `column` on, with bias and norm.
    fn load_row(&self, qkv: &[f32], t: usize, column: usize, norm: Option<&Norm>, row: &mut [f32]) {
        let d = self.attention.head_dim;
        let start = t * self.attention.row_width() + column;
        row.copy_from_slice(&qkv[start..start + d]);
        if let Some(bias) = self.bias.get(column..column + d) {
            row.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
        }
        if let Some(norm) = norm {
            RmsNorm(norm).row(row);
        }
    }

    fn load_keys_and_values(&self, qkv: &[f32], kv_head: usize, scratch: &mut Scratch) {
        let attention = self.attention;
        let d = attention.head_dim;
        let len = qkv.len() / attention.row_width();
        let (wide, padded) = (len.next_multiple_of(TILE), d.next_multiple_of(TILE));
        refill(&mut scratch.keys, d * wide);
        refill(&mut scratch.values, len * padded);
        refill(&mut scratch.row, d);
        let key_column = (attention.heads + kv_head) * d;
        let value_column = (attention.heads + attention.kv_heads + kv_head) * d;
        let key_norm = attention.norms.as_ref().map(|(_, key)| key);
        for t in 0..len {
            self.load_row(qkv, t, key_column, key_norm, &mut scratch.row);
            if let Some(rotation) = self.rotation {
                rotation.turn(&mut scratch.row, t);
            }
            for (k, x) in scratch.row.iter().enumerate() {
                scratch.keys[k * wide + t] = *x;
            }
            let value = &mut scratch.values[t * padded..t * padded + d];
            self.load_row(qkv, t, value_column, None, value);
        }
    }

    fn load_queries(&self, qkv: &[f32], head: usize, scratch: &mut Scratch) {
        let d = self.attention.head_dim;
        let len = qkv.len() / self.attention.row_width();
        let scale = 1.0 / (d as f32).sqrt();
        // three spare rows: the last block of four may reach past the end
        refill(&mut scratch.queries, (len + 3) * d);
        let norm = self.attention.norms.as_ref().map(|(query, _)| query);
        for (t, row) in scratch.queries.chunks_exact_mut(d).take(len).enumerate() {
            self.load_row(qkv, t, head * d, norm, row);
            if let Some(rotation) = self.rotation {
                rotation.turn(row, t);
            }
            row.iter_mut().for_each(|x| *x *= scale);
        }
    }

    fn head(&self, head: usize, out: &mut [f32], scratch: &mut Scratch) {
        let d = self.attention.head_dim;
        let stride = self.attention.heads * d;
        let len = out.len() / stride;
        let (wide, padded) = (len.next_multiple_of(TILE), d.next_multiple_of(TILE));
        refill(&mut scratch.scores, 4 * wide);
        refill(&mut scratch.out, 4 * padded);
        let arch = Arch::new();
        for first in (0..len).step_by(4) {
            arch.dispatch(TileProduct {
                a: std::array::from_fn(|i| &scratch.queries[(first + i) * d..(first + i + 1) * d]),
                b: &scratch.keys,
                width: wide,
                out: &mut scratch.scores,
            });
            let block = 4.min(len - first);
            for (i, row) in scratch.scores.chunks_exact_mut(wide).enumerate() {
                if i >= block {
                    row.fill(0.0);
                    continue;
                }
                let query = first + i;
                if let Some(distance) = self.distance {
                    let bias = distance.row(head, query, len);
                    row.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
                }
                let seen = if self.attention.causal {
                    query + 1
                } else {
                    len
                };
                arch.dispatch(
                    #[inline(always)]
                    || softmax(&mut row[..seen]),
                );
                row[seen..].fill(0.0);
            }
            arch.dispatch(TileProduct {
                a: std::array::from_fn(|i| &scratch.scores[i * wide..i * wide + len]),
                b: &scratch.values,
                width: padded,
                out: &mut scratch.out,
            });
            for i in 0..block {
                out[(first + i) * stride + head * d..][..d]
                    .copy_from_slice(&scratch.out[i * padded..i * padded + d]);
            }
        }
    }
}

/// `len` zeros, in the memory that is there.
fn refill(buffer: &mut Vec<f32>, len: usize) {
    buffer.clear();
    buffer.resize(len, 0.0);
}

#[inline(always)]
fn softmax(row: &mut [f32]) {
    let max = row.iter().fold(f32::NEG_INFINITY, |m, x| m.max(*x));
    row.iter_mut().for_each(|x| *x = exp(*x - max));
    let inverse = 1.0 / row.iter().sum::<f32>();
    row.iter_mut().for_each(|x| *x *= inverse);
}

impl CustomOp1 for Attend<'_> {
    fn name(&self) -> &'static str {
        "attend"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let tokens = layout.dims()[0];
        let (wide, narrow) = (
            self.attention.row_width(),
            self.attention.heads * self.attention.head_dim,
        );
        let mut qkv = values(storage, layout)?;
        let mut all = vec![0.0; tokens * narrow];
        let mut out = &mut all[..];
        let mut texts = Vec::with_capacity(self.lengths.len());
        for &len in self.lengths {
            let (text_qkv, rest_qkv) = qkv.split_at(len * wide);
            let (text_out, rest_out) = out.split_at_mut(len * narrow);
            texts.push((text_qkv, text_out));
            (qkv, out) = (rest_qkv, rest_out);
        }
        texts
            .into_par_iter()
            .for_each_init(Scratch::default, |scratch, (qkv, out)| {
                self.text(qkv, out, scratch);
            });
        Ok((CpuStorage::F32(all), (tokens, narrow).into()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};
    use proptest::prelude::*;

    use super::*;

    /// The equation, term by term.
    fn naive(op: &Attend<'_>, qkv: &[f32]) -> Vec<f32> {
        let a = op.attention;
        let (d, wide) = (a.head_dim, a.row_width());
        let mut out = vec![];
        let mut start = 0;
        for &len in op.lengths {
            let part = |t: usize, column: usize, position: Option<usize>| -> Vec<f32> {
                let mut row: Vec<f32> = (0..d)
                    .map(|k| qkv[(start + t) * wide + column * d + k] + op.bias[column * d + k])
                    .collect();
                if let (Some(rotation), Some(position)) = (op.rotation, position) {
                    rotation.turn(&mut row, position);
                }
                row
            };
            for i in 0..len {
                for head in 0..a.heads {
                    let kv = head / (a.heads / a.kv_heads);
                    let q = part(i, head, Some(i));
                    let seen = if a.causal { i + 1 } else { len };
                    let weights: Vec<f32> = (0..seen)
                        .map(|j| {
                            let k = part(j, a.heads + kv, Some(j));
                            let dot: f32 = q.iter().zip(&k).map(|(x, y)| x * y).sum();
                            let bias = op.distance.map_or(0.0, |b| b.row(head, i, len)[j]);
                            (dot / (d as f32).sqrt() + bias).exp()
                        })
                        .collect();
                    let total: f32 = weights.iter().sum();
                    for k in 0..d {
                        let sum: f32 = (0..seen)
                            .map(|j| weights[j] * part(j, a.heads + a.kv_heads + kv, None)[k])
                            .sum();
                        out.push(sum / total);
                    }
                }
            }
            start += len;
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn packed_attention_is_the_equation(
            lengths in proptest::collection::vec(1usize..40, 1..4),
            kv_heads in 1usize..3,
            group in 1usize..3,
            half in 1usize..20,
            causal: bool,
            rotated: bool,
            biased: bool,
        ) {
            let attention = Attention {
                heads: kv_heads * group, kv_heads, head_dim: 2 * half, causal, norms: None,
            };
            let tokens: usize = lengths.iter().sum();
            let width = attention.row_width();
            let qkv: Vec<f32> =
                (0..tokens * width).map(|x| ((x * 7919) % 1009) as f32 / 500.0 - 1.0).collect();
            let bias: Vec<f32> = (0..width).map(|x| (x % 5) as f32 * 0.1).collect();
            let frequencies: Vec<f64> = (0..half).map(|k| 0.5f64.powi(k as i32)).collect();
            let rotation = Rotation::new(&frequencies, 40);
            let distance = DistanceBias::new(attention.heads, 40, |head, delta| {
                head as f32 * 0.2 + delta as f32 * 0.01
            });
            let op = Attend {
                attention: &attention,
                bias: &bias,
                rotation: rotated.then_some(&rotation),
                distance: biased.then_some(&distance),
                lengths: &lengths,
            };
            let x = Tensor::from_vec(qkv.clone(), (tokens, width), &Device::Cpu).unwrap();
            let got = x.apply_op1_no_bwd(&op).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            for (got, want) in got.iter().zip(naive(&op, &qkv)) {
                prop_assert!((got - want).abs() < 1e-5, "{got} {want}");
            }
        }
    }

    #[test]
    fn rotation_by_a_right_angle_swaps_the_halves() {
        // one pair, frequency π/2: position 1 turns (x, y) to (−y, x)
        let rotation = Rotation::new(&[std::f64::consts::FRAC_PI_2], 2);
        let mut row = [3.0, 5.0];
        rotation.turn(&mut row, 1);
        assert!((row[0] + 5.0).abs() < 1e-6 && (row[1] - 3.0).abs() < 1e-6);
    }
}
