//! A product with fixed weights, packed once for the widest vectors of the machine.
//!
//! ```text
//! y = x·Wᵀ        W [out, in] in panels of 32 outputs, each [in, 32]
//! ```
//!
//! Six rows of x meet one panel at a time: twelve sums stay in registers, and the panel in the
//! first cache while all rows of a block pass it. Unlike a general product it allocates nothing,
//! takes its rows from anywhere (by index) and leaves nothing to pack but x.
//!
//! Weights of 8 bits stay so in memory, and a panel is opened up when rows meet it: a few rows
//! wait for the weights to come from memory, and these are a quarter of the bytes. The scale of an
//! output is a factor of its sums.

use std::cell::RefCell;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Outputs in a panel: two of the widest vectors.
const PANEL: usize = 32;
/// Rows that are multiplied together.
const TILE: usize = 6;
/// Rows that one thread takes at a time, whole tiles.
const BLOCK: usize = 8 * TILE;

/// Weights `[out, in]`, packed.
#[derive(Clone, Debug)]
pub(crate) struct Panels {
    packed: Packed,
    inputs: usize,
    outputs: usize,
}

#[derive(Clone, Debug)]
enum Packed {
    Whole(Vec<f32>), // [panels, in, PANEL]
    Coded {
        codes: Vec<i8>,   // [panels, in, PANEL]
        scales: Vec<f32>, // [panels, PANEL]
    },
}

thread_local! {
    /// Six rows of x, column by column, and a panel of weights; they grow to the largest once.
    static SCRATCH: RefCell<[Vec<f32>; 2]> = const { RefCell::new([vec![], vec![]]) };
}

impl Panels {
    /// Packs columns `columns` of row-major `weights`, whose rows have `width` numbers.
    pub(crate) fn new(weights: &[f32], width: usize, columns: std::ops::Range<usize>) -> Self {
        let rows = weights.chunks_exact(width);
        Self {
            inputs: columns.len(),
            outputs: weights.len() / width,
            packed: Packed::Whole(packed(rows.map(|row| &row[columns.clone()]), columns.len())),
        }
    }

    /// Packs row-major `codes`, each an i8, whose rows have `inputs` numbers and a scale each.
    pub(crate) fn coded(codes: &[u8], scales: &[f32], inputs: usize) -> Self {
        let codes: Vec<i8> = codes.iter().map(|&code| code as i8).collect();
        let outputs = scales.len();
        let mut scales = scales.to_vec();
        scales.resize(outputs.div_ceil(PANEL) * PANEL, 0.0);
        let codes = packed(codes.chunks_exact(inputs), inputs);
        Self {
            inputs,
            outputs,
            packed: Packed::Coded { codes, scales },
        }
    }

    /// Numbers in a row of the product.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// `out[i] = row(i)·Wᵀ` for all rows of `out` (`[rows, outputs]`), on all threads.
    pub(crate) fn product<'a>(&self, row: impl Fn(usize) -> &'a [f32] + Sync, out: &mut [f32]) {
        let arch = Arch::new();
        let width = self.outputs;
        out.par_chunks_mut(BLOCK * width)
            .enumerate()
            .for_each(|(block, out)| self.block(arch, |i| row(block * BLOCK + i), out));
    }

    /// `W·x` for one row, or `0` without inputs.
    pub(crate) fn of_row(&self, x: &[f32], out: &mut [f32]) {
        match &self.packed {
            Packed::Whole(packed) => Arch::new().dispatch(RowProduct {
                x: &x[..self.inputs],
                packed,
                out,
            }),
            Packed::Coded { .. } => self.block(Arch::new(), |_| x, out),
        }
    }

    fn block<'a>(&self, arch: Arch, row: impl Fn(usize) -> &'a [f32], out: &mut [f32]) {
        let (inputs, width) = (self.inputs, self.outputs);
        let rows = out.len() / width;
        let tiles = rows.div_ceil(TILE);
        SCRATCH.with_borrow_mut(|[packed, opened]| {
            packed.resize((tiles * TILE * inputs).max(packed.len()), 0.0);
            let packed = &mut packed[..tiles * TILE * inputs];
            for (tile, packed) in packed.chunks_exact_mut(TILE * inputs).enumerate() {
                for i in 0..TILE {
                    // a last tile that is not full repeats its last row
                    let x = row((tile * TILE + i).min(rows - 1));
                    for (packed, x) in packed.chunks_exact_mut(TILE).zip(&x[..inputs]) {
                        packed[i] = *x;
                    }
                }
            }
            let size = inputs * PANEL;
            for panel in 0..width.div_ceil(PANEL) {
                let at = panel * PANEL;
                let of_panel = panel * size..(panel + 1) * size;
                let (weights, scales) = match &self.packed {
                    Packed::Whole(packed) => (&packed[of_panel], None),
                    Packed::Coded { codes, scales } => {
                        opened.resize(size.max(opened.len()), 0.0);
                        arch.dispatch(
                            #[inline(always)]
                            || {
                                for (weight, code) in opened.iter_mut().zip(&codes[of_panel]) {
                                    *weight = f32::from(*code);
                                }
                            },
                        );
                        (&opened[..size], Some(&scales[at..at + PANEL]))
                    }
                };
                let lanes = PANEL.min(width - at);
                for (tile, x) in packed.chunks_exact(TILE * inputs).enumerate() {
                    let mut sums = [0.0; TILE * PANEL];
                    arch.dispatch(TileProduct {
                        x,
                        weights,
                        sums: &mut sums,
                    });
                    let rows = out[tile * TILE * width..].chunks_exact_mut(width);
                    for (row, sums) in rows.zip(sums.chunks_exact_mut(PANEL)) {
                        if let Some(scales) = scales {
                            sums.iter_mut()
                                .zip(scales)
                                .for_each(|(sum, scale)| *sum *= scale);
                        }
                        row[at..at + lanes].copy_from_slice(&sums[..lanes]);
                    }
                }
            }
        });
    }
}

/// Rows of `[outputs, inputs]` as `[panels, in, PANEL]`.
fn packed<'a, T: Copy + Default + 'a>(
    rows: impl ExactSizeIterator<Item = &'a [T]>,
    inputs: usize,
) -> Vec<T> {
    let mut packed = vec![T::default(); rows.len().div_ceil(PANEL) * inputs * PANEL];
    for (output, row) in rows.enumerate() {
        let panel = &mut packed[output / PANEL * inputs * PANEL..][..inputs * PANEL];
        for (input, weight) in row.iter().enumerate() {
            panel[input * PANEL + output % PANEL] = *weight;
        }
    }
    packed
}

/// `sums[6, 32] = x[in, 6]ᵀ · weights[in, 32]`.
struct TileProduct<'a> {
    x: &'a [f32],
    weights: &'a [f32],
    sums: &'a mut [f32; TILE * PANEL],
}

impl WithSimd for TileProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let columns = PANEL / S::F32_LANES;
        let (weights, _) = S::as_simd_f32s(self.weights);
        let (out, _) = S::as_mut_simd_f32s(self.sums);
        for column in (0..columns).step_by(2) {
            let mut sums = [[simd.splat_f32s(0.0); 2]; TILE];
            for (x, row) in self.x.chunks_exact(TILE).zip(weights.chunks_exact(columns)) {
                let (left, right) = (row[column], row[column + 1]);
                for (sum, x) in sums.iter_mut().zip(x) {
                    let x = simd.splat_f32s(*x);
                    sum[0] = simd.mul_add_e_f32s(x, left, sum[0]);
                    sum[1] = simd.mul_add_e_f32s(x, right, sum[1]);
                }
            }
            for (row, sum) in out.chunks_exact_mut(columns).zip(sums) {
                row[column] = sum[0];
                row[column + 1] = sum[1];
            }
        }
    }
}

/// `out = W·x` for one row.
struct RowProduct<'a> {
    x: &'a [f32],
    packed: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for RowProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let columns = PANEL / S::F32_LANES;
        let zero = simd.splat_f32s(0.0);
        let (weights, _) = S::as_simd_f32s(self.packed);
        let panels = weights.chunks_exact((self.x.len() * columns).max(1));
        let mut last = [0.0; PANEL];
        for (out, weights) in self.out.chunks_mut(PANEL).zip(panels) {
            let whole = out.len() == PANEL;
            let into = if whole { &mut *out } else { &mut last[..] };
            let (into, _) = S::as_mut_simd_f32s(into);
            for column in (0..columns).step_by(2) {
                // four sums each: one alone would wait for its own result
                let mut sums = [[zero; 2]; 4];
                let mut rows = weights.chunks_exact(4 * columns);
                let mut xs = self.x.chunks_exact(4);
                for (x, rows) in (&mut xs).zip(&mut rows) {
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let x = simd.splat_f32s(x[i]);
                        let row = &rows[i * columns + column..][..2];
                        sum[0] = simd.mul_add_e_f32s(x, row[0], sum[0]);
                        sum[1] = simd.mul_add_e_f32s(x, row[1], sum[1]);
                    }
                }
                let rest = rows.remainder().chunks_exact(columns);
                for (x, row) in xs.remainder().iter().zip(rest) {
                    let x = simd.splat_f32s(*x);
                    sums[0][0] = simd.mul_add_e_f32s(x, row[column], sums[0][0]);
                    sums[0][1] = simd.mul_add_e_f32s(x, row[column + 1], sums[0][1]);
                }
                for i in 0..2 {
                    let left = simd.add_f32s(sums[0][i], sums[1][i]);
                    let right = simd.add_f32s(sums[2][i], sums[3][i]);
                    into[column + i] = simd.add_f32s(left, right);
                }
            }
            if !whole {
                let count = out.len();
                out.copy_from_slice(&last[..count]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_product_is_the_plain_product(
            rows in 1usize..110, inputs in 1usize..40, outputs in 1usize..70, skip in 0usize..3,
        ) {
            let number = |i: usize| (i * 7919 % 101) as f32 / 50.0 - 1.0;
            let width = inputs + skip + 1;
            let weights: Vec<f32> = (0..outputs * width).map(number).collect();
            let x: Vec<f32> = (0..rows * inputs).map(|i| number(i + 5)).collect();
            let panels = Panels::new(&weights, width, skip..skip + inputs);
            let mut out = vec![0.0; rows * outputs];
            // rows in reverse: they come by index
            panels.product(|i| &x[(rows - 1 - i) * inputs..][..inputs], &mut out);
            let mut one = vec![0.0; outputs];
            for i in 0..rows {
                let x = &x[(rows - 1 - i) * inputs..][..inputs];
                panels.of_row(x, &mut one);
                for o in 0..outputs {
                    let weights = &weights[o * width + skip..][..inputs];
                    let plain: f32 = weights.iter().zip(x).map(|(w, x)| w * x).sum();
                    prop_assert!((out[i * outputs + o] - plain).abs() < 1e-4);
                    prop_assert!((one[o] - plain).abs() < 1e-4);
                }
            }
        }

        #[test]
        fn coded_product_is_the_plain_product(
            rows in 1usize..60, inputs in 1usize..40, outputs in 1usize..70,
        ) {
            let codes: Vec<u8> = (0..outputs * inputs).map(|i| (i * 7919 % 256) as u8).collect();
            let scales: Vec<f32> = (0..outputs).map(|o| 1e-3 * (o + 1) as f32).collect();
            let x: Vec<f32> = (0..rows * inputs).map(|i| (i * 31 % 17) as f32 / 8.0 - 1.0).collect();
            let panels = Panels::coded(&codes, &scales, inputs);
            let mut out = vec![0.0; rows * outputs];
            panels.product(|i| &x[i * inputs..][..inputs], &mut out);
            let mut one = vec![0.0; outputs];
            for (x, out) in x.chunks_exact(inputs).zip(out.chunks_exact(outputs)) {
                panels.of_row(x, &mut one);
                for o in 0..outputs {
                    let weights = codes[o * inputs..][..inputs].iter();
                    let weights = weights.map(|&code| f32::from(code as i8) * scales[o]);
                    let plain: f32 = weights.zip(x).map(|(w, x)| w * x).sum();
                    prop_assert!((out[o] - plain).abs() < 1e-4 * plain.abs().max(1.0));
                    prop_assert!((one[o] - plain).abs() < 1e-4 * plain.abs().max(1.0));
                }
            }
        }
    }
}
