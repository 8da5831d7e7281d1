//! One attention layer of the answering path: rows of products in, rows of states out.
//!
//! ```text
//! o_i = Σ_e α_e·z_j        α_e = softmax of s_e = a·LeakyReLU(z_i + z_j + W_e·r) + a_plus
//! h_i = LayerNorm(o_i)
//! ```
//!
//! head by head, for the rows that the plan names; the others are copies or constant.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::plan::{Grouped, Layer};
use super::{EPSILON, SLOPE};
use crate::tensor::lanes::{exp_all, leaky_dot, moments};
use crate::tensor::panels::Panels;

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
    fn row<S: Simd>(&self, simd: S, index: usize, out: &mut [f32], room: &mut Room) {
        let hidden = out.len();
        let own = self.layer.own.len();
        if index < own {
            self.attend(simd, index, out, room);
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
    fn attend<S: Simd>(&self, simd: S, index: usize, out: &mut [f32], room: &mut Room) {
        let (hidden, heads) = (out.len(), self.heads);
        let width = hidden / heads;
        let zi = &self.hearers[self.layer.hearer[index] as usize * hidden..][..hidden];
        let a = &self.weights.a[..hidden];
        let edges = self.edges.range(self.layer.own[index] as usize);
        let heard = |edge: usize| &self.heard[self.layer.slot[edge] as usize * hidden..][..hidden];

        // whole vectors: the powers of the last ones are not used
        room.scores.clear();
        room.scores
            .resize((edges.len() * heads).next_multiple_of(16), 0.0);
        room.tops.fill(f32::NEG_INFINITY);
        for (edge, scores) in edges.clone().zip(room.scores.chunks_exact_mut(heads)) {
            let relation = self.edges.relation[edge] as usize;
            let zj = heard(edge);
            let we = &self.relations[relation * hidden..][..hidden];
            let plus = &self.plus[relation * heads..][..heads];
            for (head, score) in scores.iter_mut().enumerate() {
                let at = head * width;
                let (a, zi) = (&a[at..][..width], &zi[at..][..width]);
                let (zj, we) = (&zj[at..][..width], &we[at..][..width]);
                *score = plus[head] + leaky_dot(simd, SLOPE, a, zi, zj, we);
                room.tops[head] = room.tops[head].max(*score);
            }
        }
        for scores in room.scores.chunks_exact_mut(heads) {
            for (score, top) in scores.iter_mut().zip(&room.tops) {
                *score -= top;
            }
        }
        exp_all(&mut room.scores);
        room.totals.fill(0.0);
        out.fill(0.0);
        for (edge, weights) in edges.zip(room.scores.chunks_exact(heads)) {
            let zj = heard(edge);
            for (head, weight) in weights.iter().enumerate() {
                room.totals[head] += weight;
                let at = head * width;
                for (out, z) in out[at..][..width].iter_mut().zip(&zj[at..][..width]) {
                    *out += weight * z;
                }
            }
        }
        for (out, total) in out.chunks_exact_mut(width).zip(&room.totals) {
            let inverse = 1.0 / total;
            out.iter_mut().for_each(|x| *x *= inverse);
        }
    }
}

/// Room for the scores of one node.
struct Room {
    scores: Vec<f32>, // [edges, heads]
    tops: Vec<f32>,   // [heads]
    totals: Vec<f32>, // [heads]
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
        let mut room = Room {
            scores: vec![],
            tops: vec![0.0; self.pass.heads],
            totals: vec![0.0; self.pass.heads],
        };
        let rows = self.rows.chunks_exact_mut(self.pass.weights.a.len());
        for (i, row) in rows.enumerate() {
            self.pass.row(simd, self.first + i, row, &mut room);
        }
    }
}
