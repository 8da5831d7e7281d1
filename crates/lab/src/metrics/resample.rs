//! Resampling: weighted column sums of a table, for many random weightings at once.
//!
//! Efron and Tibshirani, "An Introduction to the Bootstrap", 1993 (percentile interval);
//! Noreen, "Computer-Intensive Methods for Testing Hypotheses", 1989 (randomisation test):
//!
//! ```text
//! S[trial, cell, column] = Σ_{row ∈ cell} w[trial, row] · x[row, column]
//! ```
//!
//! Every metric is a ratio of two column sums, so one pass over the rows serves all metrics of
//! all groups. w counts how often a row was drawn (bootstrap) or is ±1 (randomisation). Trials
//! run side by side in blocks: the rows are read once per block, and sums of up to
//! `ROWS_AT_ONCE` rows stay in 32 bits before they are added up in 64. Each trial has its own
//! random stream, so results do not depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;
use wherefore::model::Random;

/// Trials that share one pass over the rows.
const TRIALS_AT_ONCE: usize = 8;
/// Rows that are summed in 32 bits.
const ROWS_AT_ONCE: usize = 512;

/// Per-question values: rows of `width` columns, the rows of a cell side by side.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) width: usize,
    /// `[rows, width]`
    pub(super) values: Vec<f32>,
    /// The rows of each cell, one after the other.
    pub(super) cells: Vec<Range<usize>>,
}

impl Table {
    pub(super) fn rows(&self) -> usize {
        self.cells.last().map_or(0, |cell| cell.end)
    }

    /// Column sums of each cell with every row counted once: `[cells, width]`.
    pub(super) fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.cells.len() * self.width];
        for (cell, into) in self.cells.iter().zip(sums.chunks_exact_mut(self.width)) {
            let rows = &self.values[cell.start * self.width..cell.end * self.width];
            for row in rows.chunks_exact(self.width) {
                for (sum, value) in into.iter_mut().zip(row) {
                    *sum += f64::from(*value);
                }
            }
        }
        sums
    }

    /// Column sums for random weights: `[trials, cells, width]`. `weigh` fills the weights of
    /// one trial from its own random stream.
    pub(super) fn weighted_sums(
        &self,
        trials: usize,
        seed: u64,
        weigh: fn(&mut Random, &mut [i8]),
    ) -> Vec<f64> {
        let size = self.cells.len() * self.width;
        let mut sums = vec![0.0; trials * size];
        if size == 0 {
            return sums;
        }
        sums.par_chunks_mut(TRIALS_AT_ONCE * size)
            .enumerate()
            .for_each_init(
                || vec![vec![0i8; self.rows()]; TRIALS_AT_ONCE],
                |weights, (block, into)| {
                    for (trial, weights) in weights.iter_mut().enumerate() {
                        let number = block * TRIALS_AT_ONCE + trial;
                        weigh(&mut stream(seed, number as u64), weights);
                    }
                    self.add_block(weights, into);
                },
            );
        sums
    }

    /// `into` is `[up to TRIALS_AT_ONCE, cells, width]`.
    fn add_block(&self, weights: &[Vec<i8>], into: &mut [f64]) {
        let (width, size) = (self.width, self.cells.len() * self.width);
        let mut partial = vec![0f32; TRIALS_AT_ONCE * width];
        for (number, cell) in self.cells.iter().enumerate() {
            for start in cell.clone().step_by(ROWS_AT_ONCE) {
                let rows = start..cell.end.min(start + ROWS_AT_ONCE);
                partial.fill(0.0);
                let mut row = rows.start;
                while row + 4 <= rows.end {
                    let x = &self.values[row * width..(row + 4) * width];
                    let (x01, x23) = x.split_at(2 * width);
                    let (x0, x1) = x01.split_at(width);
                    let (x2, x3) = x23.split_at(width);
                    for (weights, sums) in weights.iter().zip(partial.chunks_exact_mut(width)) {
                        let w = [0, 1, 2, 3].map(|i| f32::from(weights[row + i]));
                        for ((((sum, a), b), c), d) in
                            sums.iter_mut().zip(x0).zip(x1).zip(x2).zip(x3)
                        {
                            *sum += w[0] * a + w[1] * b + (w[2] * c + w[3] * d);
                        }
                    }
                    row += 4;
                }
                for row in row..rows.end {
                    let x = &self.values[row * width..(row + 1) * width];
                    for (weights, sums) in weights.iter().zip(partial.chunks_exact_mut(width)) {
                        let w = f32::from(weights[row]);
                        for (sum, a) in sums.iter_mut().zip(x) {
                            *sum += w * a;
                        }
                    }
                }
                for (trial, into) in into.chunks_exact_mut(size).enumerate() {
                    let into = &mut into[number * width..(number + 1) * width];
                    for (sum, part) in into.iter_mut().zip(&partial[trial * width..]) {
                        *sum += f64::from(*part);
                    }
                }
            }
        }
    }
}

/// Draws as many rows as there are, with replacement; weights count the draws.
pub(super) fn bootstrap(random: &mut Random, weights: &mut [i8]) {
    weights.fill(0);
    let rows = weights.len() as u64;
    let pick = |bits: u64| ((bits * rows) >> 32) as usize;
    for _ in 0..rows / 2 {
        // two draws of 32 bits each; the bias is below rows / 2^32
        let bits = random.bits();
        for at in [pick(bits >> 32), pick(bits & 0xffff_ffff)] {
            weights[at] = weights[at].saturating_add(1);
        }
    }
    if rows % 2 == 1 {
        let at = pick(random.bits() >> 32);
        weights[at] = weights[at].saturating_add(1);
    }
}

/// Flips a coin for each row: 1 or −1.
pub(super) fn signs(random: &mut Random, weights: &mut [i8]) {
    for part in weights.chunks_mut(64) {
        let mut bits = random.bits();
        for weight in part {
            *weight = if bits & 1 == 1 { 1 } else { -1 };
            bits >>= 1;
        }
    }
}

/// The generator of a trial. Its number goes through the mixer, so that neighbouring streams do not
/// overlap.
fn stream(seed: u64, trial: u64) -> Random {
    let base = Random::new(seed ^ 0x5851_f42d_4c95_7f2d).bits();
    Random::new(Random::new(base ^ trial.wrapping_mul(0xd134_2543_de82_ef95)).bits())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bootstrap_draws_as_many_rows_as_there_are() {
        for rows in [1, 2, 7, 100] {
            let mut weights = vec![9; rows];
            bootstrap(&mut stream(1, 2), &mut weights);
            assert_eq!(weights.iter().map(|&w| w as usize).sum::<usize>(), rows);
        }
        let mut weights = vec![0; 1000];
        signs(&mut stream(1, 2), &mut weights);
        let plus = weights.iter().filter(|&&w| w == 1).count();
        assert!((400..600).contains(&plus) && weights.iter().all(|w| w.abs() == 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn blocks_equal_plain_sums(
            sizes in prop::collection::vec(0usize..40, 1..4),
            width in 1usize..7,
            trials in 1usize..20,
            seed in any::<u64>(),
        ) {
            let mut cells = Vec::new();
            let mut rows = 0;
            for size in sizes {
                cells.push(rows..rows + size);
                rows += size;
            }
            let values: Vec<f32> = (0..rows * width).map(|i| ((i * 7919) % 13) as f32).collect();
            let table = Table { width, values, cells };
            let ours = table.weighted_sums(trials, seed, bootstrap);
            for trial in 0..trials {
                let mut weights = vec![0; rows];
                bootstrap(&mut stream(seed, trial as u64), &mut weights);
                for (number, cell) in table.cells.iter().enumerate() {
                    for column in 0..width {
                        let plain: f64 = cell.clone()
                            .map(|row| f64::from(weights[row]) * f64::from(table.values[row * width + column]))
                            .sum();
                        prop_assert_eq!(ours[(trial * table.cells.len() + number) * width + column], plain);
                    }
                }
            }
        }
    }
}
