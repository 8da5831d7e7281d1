//! One attention layer of the answering path: rows of products in, rows of states out.
//!
//! ```text
//! o_i = Σ_e w_e·z_j / Σ_e w_e        w_e = exp(s_e − largest s so far)
//! h_i = LayerNorm(o_i)
//! ```
//!
//! s_e is `a·LeakyReLU(z_i + z_j + W_e·r) + a_plus`, head by head. The softmax is taken in one pass
//! over the edges (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018): what
//! was summed is scaled down whenever a larger score comes.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::panels::Panels;
use super::plan::{Grouped, Layer};
use super::{EPSILON, SLOPE};
use crate::encode::simd::exp;
use crate::tensor::lanes::{leaky_dot, moments};

/// Rows that one thread takes at a time.
const ROWS: usize = 16;

/// The weights of one layer.
pub(super) struct Weights {
    /// W_s and W_t; none in the first layer, whose products are given.
    pub(super) roles: Option<[Panels; 2]>,
    pub(super) w_q: Option<Panels>,
    pub(super) a: Vec<f32>,
    pub(super) scale: Vec<f32>,
    pub(super) shift: Vec<f32>,
}

/// Attention of one layer over rows.
pub(super) struct Pass<'a> {
    pub(super) heads: usize,
    pub(super) weights: &'a Weights,
    pub(super) edges: &'a Grouped,
    pub(super) layer: &'a Layer,
    pub(super) relations: &'a [f32],
    pub(super) plus: &'a [f32],
    pub(super) hearers: &'a [f32],
    pub(super) heard: &'a [f32],
}

impl Pass<'_> {
    /// Writes the layer's rows to `states`.
    pub(super) fn run(&self, states: &mut [f32]) {
        let arch = Arch::new();
        states
            .par_chunks_mut(ROWS * self.weights.a.len())
            .enumerate()
            .for_each(|(block, rows)| {
                arch.dispatch(Block {
                    pass: self,
                    first: block * ROWS,
                    rows,
                });
            });
    }

    #[inline(always)]
    fn row<S: Simd>(&self, simd: S, index: usize, out: &mut [f32], heads: &mut [Softmax]) {
        let hidden = out.len();
        let own = self.layer.own.len();
        if index < own {
            self.attend(simd, index, out, heads);
        } else if let Some(slot) = self.layer.copies.get(index - own) {
            out.copy_from_slice(&self.heard[*slot as usize * hidden..][..hidden]);
        } else {
            out.copy_from_slice(&self.weights.shift);
            return;
        }
        let (mean, inverse) = moments(simd, out, EPSILON);
        let affine = self.weights.scale.iter().zip(&self.weights.shift);
        for (x, (scale, shift)) in out.iter_mut().zip(affine) {
            *x = (*x - mean) * inverse * scale + shift;
        }
    }

    /// `Σ_e α_e·z_j` of a node that hears different states.
    #[inline(always)]
    fn attend<S: Simd>(&self, simd: S, index: usize, out: &mut [f32], heads: &mut [Softmax]) {
        let hidden = out.len();
        let width = hidden / heads.len();
        let zi = &self.hearers[self.layer.hearer[index] as usize * hidden..][..hidden];
        let a = &self.weights.a[..hidden];
        out.fill(0.0);
        heads.fill(Softmax::default());
        for edge in self.edges.range(self.layer.own[index] as usize) {
            let relation = self.edges.relation[edge] as usize;
            let zj = &self.heard[self.layer.slot[edge] as usize * hidden..][..hidden];
            let we = &self.relations[relation * hidden..][..hidden];
            let plus = &self.plus[relation * heads.len()..][..heads.len()];
            for ((head, state), plus) in heads.iter_mut().enumerate().zip(plus) {
                let at = head * width;
                let (a, zi) = (&a[at..][..width], &zi[at..][..width]);
                let (zj, we) = (&zj[at..][..width], &we[at..][..width]);
                let score = plus + leaky_dot(simd, SLOPE, a, zi, zj, we);
                let out = &mut out[at..][..width];
                let weight = state.take(score, out);
                for (out, z) in out.iter_mut().zip(zj) {
                    *out += weight * z;
                }
            }
        }
        for (out, state) in out.chunks_exact_mut(width).zip(heads) {
            let inverse = 1.0 / state.total;
            out.iter_mut().for_each(|x| *x *= inverse);
        }
    }
}

/// Some rows of the result.
struct Block<'a> {
    pass: &'a Pass<'a>,
    first: usize,
    rows: &'a mut [f32],
}

impl WithSimd for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut heads = vec![Softmax::default(); self.pass.heads];
        let rows = self.rows.chunks_exact_mut(self.pass.weights.a.len());
        for (i, row) in rows.enumerate() {
            self.pass.row(simd, self.first + i, row, &mut heads);
        }
    }
}

/// A softmax that is not finished yet.
#[derive(Clone, Copy)]
struct Softmax {
    top: f32,
    total: f32,
}

impl Default for Softmax {
    fn default() -> Self {
        Self {
            top: f32::NEG_INFINITY,
            total: 0.0,
        }
    }
}

impl Softmax {
    /// The weight of `score`; scales down what was summed before if it is the largest yet.
    #[inline(always)]
    fn take(&mut self, score: f32, summed: &mut [f32]) -> f32 {
        if score > self.top {
            let shrink = exp(self.top - score);
            self.total *= shrink;
            summed.iter_mut().for_each(|x| *x *= shrink);
            self.top = score;
        }
        let weight = exp(score - self.top);
        self.total += weight;
        weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_softmax_taken_as_it_goes_is_the_softmax() {
        // weights 1 : 3 : 2 of the values 10, 20, 40: (10 + 60 + 80)/6 = 25
        let scores = [0.0, 3f32.ln(), 2f32.ln()];
        let mut state = Softmax::default();
        let mut summed = [0.0];
        for (score, value) in scores.into_iter().zip([10.0, 20.0, 40.0]) {
            let weight = state.take(score, &mut summed);
            summed[0] += weight * value;
        }
        assert!((summed[0] / state.total - 25.0).abs() < 1e-5);
    }
}
