//! The inner loops of the encoders, compiled once for each vector width and picked at run time.
//!
//! Everything here is branch-free and marked `inline(always)`, so that it takes on the
//! instruction set of the [`pulp::Arch::dispatch`] it is called under.

use pulp::{Simd, WithSimd};

/// `e^x` within 2 units in the last place; flushes to `e^-87` and `e^88` outside of those.
///
/// Cody and Waite's reduction to `|r| ≤ ln 2 / 2`, then a Taylor polynomial of degree 7.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // adding 1.5·2²³ rounds to the nearest integer and leaves it in the low bits
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()))
}

/// `x·Φ(x)`, with erf by Abramowitz and Stegun 7.1.26 (absolute error below 1.5e-7).
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let mut p = 1.061_405_4;
    p = p * t - 1.453_152;
    p = p * t + 1.421_413_7;
    p = p * t - 0.284_496_74;
    p = p * t + 0.254_829_6;
    let tail = 0.5 * p * t * exp(-z * z); // 1 − Φ(|x|)
    let cdf = if x < 0.0 { tail } else { 1.0 - tail };
    x * cdf
}

/// The tanh form of [`gelu`], which some models were trained with.
#[inline(always)]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    // tanh(u) = 1 − 2 / (e^{2u} + 1), so ½(1 + tanh(u)) = 1 / (1 + e^{−2u})
    let u = 0.797_884_6 * (x + 0.044_715 * x * x * x);
    x / (1.0 + exp(-2.0 * u))
}

/// `x / (1 + e^{−x})`.
#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// Sum in sixteen lanes, an order that does not depend on the vector width.
#[inline(always)]
pub(crate) fn sum_by(len: usize, value: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; 16];
    let whole = len / 16 * 16;
    for start in (0..whole).step_by(16) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += value(start + lane);
        }
    }
    let mut sum = lanes.iter().sum::<f32>();
    for i in whole..len {
        sum += value(i);
    }
    sum
}

/// `out[4, width] = a[4, depth] · b[depth, width]`, where rows of `a` and `out` are given apart
/// and `width` is a multiple of [`TILE`].
pub(super) struct TileProduct<'a> {
    pub(super) a: [&'a [f32]; 4],
    pub(super) b: &'a [f32],
    pub(super) width: usize,
    pub(super) out: &'a mut [f32],
}

/// Widths that [`TileProduct`] takes are multiples of this: two of the widest vectors.
pub(super) const TILE: usize = 32;

impl WithSimd for TileProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, b, width, out } = self;
        let depth = a[0].len();
        let [a0, a1, a2, a3] = a.map(|row| &row[..depth]);
        let (b, _) = S::as_simd_f32s(&b[..depth * width]);
        let (out, _) = S::as_mut_simd_f32s(&mut out[..4 * width]);
        let columns = width / S::F32_LANES;
        for column in (0..columns).step_by(2) {
            let mut sums = [[simd.splat_f32s(0.0); 2]; 4];
            for (k, row) in b.chunks_exact(columns).enumerate() {
                let (left, right) = (row[column], row[column + 1]);
                for (sum, factor) in sums.iter_mut().zip([a0[k], a1[k], a2[k], a3[k]]) {
                    let factor = simd.splat_f32s(factor);
                    sum[0] = simd.mul_add_e_f32s(factor, left, sum[0]);
                    sum[1] = simd.mul_add_e_f32s(factor, right, sum[1]);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                out[i * columns + column] = sum[0];
                out[i * columns + column + 1] = sum[1];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_follows_the_standard_library() {
        for i in -8700..8800 {
            let x = i as f32 / 100.0;
            let error = (exp(x) / x.exp() - 1.0).abs();
            assert!(error < 3e-7, "{x}: {error}");
        }
        assert!(exp(-1000.0) < 2e-38);
    }

    #[test]
    fn activations_have_their_known_values() {
        // x·Φ(x) with Φ(1) = 0.841345, Φ(−2) = 0.022750
        assert!((gelu(1.0) - 0.841_345).abs() < 1e-6);
        assert!((gelu(-2.0) + 0.045_500).abs() < 1e-6);
        assert_eq!(gelu(0.0), 0.0);
        assert!((gelu_tanh(1.0) - 0.841_192).abs() < 1e-6);
        // 1 / (1 + e⁻¹) = 0.731059
        assert!((silu(1.0) - 0.731_059).abs() < 1e-6);
    }

    #[test]
    fn tile_product_is_the_plain_product() {
        let (depth, width) = (5, 2 * TILE);
        let a: Vec<Vec<f32>> = (0..4)
            .map(|i| {
                (0..depth)
                    .map(|k| (i * 7 + k) as f32 * 0.25 - 1.0)
                    .collect()
            })
            .collect();
        let b: Vec<f32> = (0..depth * width).map(|x| (x % 13) as f32 - 6.0).collect();
        let mut out = vec![0.0; 4 * width];
        pulp::Arch::new().dispatch(TileProduct {
            a: std::array::from_fn(|i| &a[i][..]),
            b: &b,
            width,
            out: &mut out,
        });
        for (i, row) in a.iter().enumerate() {
            for j in 0..width {
                let want: f32 = (0..depth).map(|k| row[k] * b[k * width + j]).sum();
                assert!((out[i * width + j] - want).abs() < 1e-4, "{i} {j}");
            }
        }
    }
}
