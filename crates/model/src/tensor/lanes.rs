//! Sums over rows in explicit vectors.
//!
//! The compiler vectorises loops that write rows, but not those that sum them, because that changes
//! the order of additions. These run under [`pulp::Arch::dispatch`] and take its token.

use pulp::Simd;

use crate::encode::simd::exp;

/// `Σ x·y`.
#[inline(always)]
pub(crate) fn dot<S: Simd>(simd: S, x: &[f32], y: &[f32]) -> f32 {
    fold(
        simd,
        [x, y],
        #[inline(always)]
        |[x, y], sum| simd.mul_add_e_f32s(x, y, sum),
        |[x, y]| x * y,
    )
}

/// `Σ a·x·y`.
#[inline(always)]
pub(crate) fn scaled_dot<S: Simd>(simd: S, a: &[f32], x: &[f32], y: &[f32]) -> f32 {
    fold(
        simd,
        [a, x, y],
        #[inline(always)]
        |[a, x, y], sum| simd.mul_add_e_f32s(simd.mul_f32s(a, x), y, sum),
        |[a, x, y]| a * x * y,
    )
}

/// `Σ a·max(u, slope·u)` with `u = x + y + z`.
#[inline(always)]
pub(crate) fn leaky_dot<S: Simd>(
    simd: S,
    slope: f32,
    a: &[f32],
    x: &[f32],
    y: &[f32],
    z: &[f32],
) -> f32 {
    let wide_slope = simd.splat_f32s(slope);
    fold(
        simd,
        [a, x, y, z],
        #[inline(always)]
        |[a, x, y, z], sum| {
            let u = simd.add_f32s(simd.add_f32s(x, y), z);
            let leaky = simd.max_f32s(u, simd.mul_f32s(u, wide_slope));
            simd.mul_add_e_f32s(a, leaky, sum)
        },
        |[a, x, y, z]| {
            let u = x + y + z;
            a * u.max(slope * u)
        },
    )
}

/// `Σ w·max(x + y + z + v, 0)`.
#[inline(always)]
pub(crate) fn relu_dot<S: Simd>(simd: S, w: &[f32], [x, y, z, v]: [&[f32]; 4]) -> f32 {
    let zero = simd.splat_f32s(0.0);
    fold(
        simd,
        [w, x, y, z, v],
        #[inline(always)]
        |[w, x, y, z, v], sum| {
            let u = simd.add_f32s(simd.add_f32s(x, y), simd.add_f32s(z, v));
            simd.mul_add_e_f32s(w, simd.max_f32s(u, zero), sum)
        },
        |[w, x, y, z, v]| w * ((x + y) + (z + v)).max(0.0),
    )
}

/// `out = W·max(x + y + z + v, 0) + b`; of three rows of W, as where answers are scored too, the sum
/// in the middle is computed once.
#[inline(always)]
pub(crate) fn relu_layer<S: Simd>(
    simd: S,
    w: &[f32],
    b: &[f32],
    parts: [&[f32]; 4],
    out: &mut [f32],
) {
    let width = parts[0].len();
    if let ([a, c, d], [b_0, b_1, b_2]) = (&mut *out, b) {
        let (w_0, rest) = w.split_at(width);
        let (w_1, w_2) = rest.split_at(width);
        let sums = relu_dots(simd, [w_0, w_1, w_2], parts);
        (*a, *c, *d) = (b_0 + sums[0], b_1 + sums[1], b_2 + sums[2]);
        return;
    }
    for ((out, w), b) in out.iter_mut().zip(w.chunks_exact(width.max(1))).zip(b) {
        *out = b + relu_dot(simd, w, parts);
    }
}

/// [`relu_dot`] for several rows.
#[inline(always)]
fn relu_dots<S: Simd, const N: usize>(simd: S, w: [&[f32]; N], parts: [&[f32]; 4]) -> [f32; N] {
    let len = parts[0].len();
    let (w, parts) = (w.map(|row| &row[..len]), parts.map(|row| &row[..len]));
    let count = len / S::F32_LANES;
    let wide_w = w.map(|row| &S::as_simd_f32s(row).0[..count]);
    let [x, y, z, v] = parts.map(|row| &S::as_simd_f32s(row).0[..count]);
    let zero = simd.splat_f32s(0.0);
    let mut sums = [zero; N];
    for i in 0..count {
        let u = simd.add_f32s(simd.add_f32s(x[i], y[i]), simd.add_f32s(z[i], v[i]));
        let u = simd.max_f32s(u, zero);
        for (sum, w) in sums.iter_mut().zip(wide_w) {
            *sum = simd.mul_add_e_f32s(w[i], u, *sum);
        }
    }
    let mut totals = sums.map(|sum| simd.reduce_sum_f32s(sum));
    for i in count * S::F32_LANES..len {
        let u = parts.map(|row| row[i]).iter().sum::<f32>().max(0.0);
        for (total, w) in totals.iter_mut().zip(w) {
            *total += w[i] * u;
        }
    }
    totals
}

/// Mean and `1/√(var + ε)` of a row.
#[inline(always)]
pub(crate) fn moments<S: Simd>(simd: S, x: &[f32], epsilon: f32) -> (f32, f32) {
    let width = x.len() as f32;
    let add = fold(
        simd,
        [x],
        #[inline(always)]
        |[x], sum| simd.add_f32s(x, sum),
        |[x]| x,
    );
    let mean = add / width;
    let wide_mean = simd.splat_f32s(mean);
    let square = fold(
        simd,
        [x],
        #[inline(always)]
        |[x], sum| {
            let centred = simd.sub_f32s(x, wide_mean);
            simd.mul_add_e_f32s(centred, centred, sum)
        },
        |[x]| (x - mean) * (x - mean),
    );
    (mean, 1.0 / (square / width + epsilon).sqrt())
}

/// `x ← e^x`, in sixteens as far as they go.
#[inline(always)]
pub(crate) fn exp_all(x: &mut [f32]) {
    let mut sixteens = x.chunks_exact_mut(16);
    for part in &mut sixteens {
        part.iter_mut().for_each(|x| *x = exp(*x));
    }
    let rest = sixteens.into_remainder();
    rest.iter_mut().for_each(|x| *x = exp(*x));
}

/// Folds rows of equal length: `wide` adds a vector's worth of terms, `narrow` is one term of the
/// rest.
#[inline(always)]
fn fold<S: Simd, const N: usize>(
    simd: S,
    rows: [&[f32]; N],
    wide: impl Fn([S::f32s; N], S::f32s) -> S::f32s,
    narrow: impl Fn([f32; N]) -> f32,
) -> f32 {
    let len = rows[0].len();
    let rows = rows.map(|row| &row[..len]);
    let vectors = rows.map(|row| S::as_simd_f32s(row).0);
    let count = vectors[0].len();
    let vectors = vectors.map(|row| &row[..count]);
    // two sums: one alone would wait for its own result
    let mut sums = [simd.splat_f32s(0.0); 2];
    let at = |i: usize| std::array::from_fn(|row| vectors[row][i]);
    for i in (0..count / 2).map(|pair| 2 * pair) {
        sums[0] = wide(at(i), sums[0]);
        sums[1] = wide(at(i + 1), sums[1]);
    }
    if count % 2 == 1 {
        sums[0] = wide(at(count - 1), sums[0]);
    }
    let mut total = simd.reduce_sum_f32s(simd.add_f32s(sums[0], sums[1]));
    let rest = count * S::F32_LANES..len;
    total += rest
        .map(|i| narrow(std::array::from_fn(|row| rows[row][i])))
        .sum::<f32>();
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::{Arch, WithSimd};

    struct Check(usize);

    impl WithSimd for Check {
        type Output = ();

        fn with_simd<S: Simd>(self, simd: S) {
            let len = self.0;
            let row = |seed: usize| -> Vec<f32> {
                (0..len)
                    .map(|i| ((i * 31 + seed * 17) % 23) as f32 / 11.0 - 1.0)
                    .collect()
            };
            let [a, x, y, z, v] = std::array::from_fn(row);
            let near = |ours: f32, plain: f32| assert!((ours - plain).abs() < 1e-4, "{len}");
            near(dot(simd, &x, &y), (0..len).map(|i| x[i] * y[i]).sum());
            near(
                scaled_dot(simd, &a, &x, &y),
                (0..len).map(|i| a[i] * x[i] * y[i]).sum(),
            );
            let leaky = |u: f32| if u > 0.0 { u } else { 0.2 * u };
            near(
                leaky_dot(simd, 0.2, &a, &x, &y, &z),
                (0..len).map(|i| a[i] * leaky(x[i] + y[i] + z[i])).sum(),
            );
            near(
                relu_dot(simd, &a, [&x, &y, &z, &v]),
                (0..len)
                    .map(|i| a[i] * (x[i] + y[i] + z[i] + v[i]).max(0.0))
                    .sum(),
            );
            for rows in [1, 3] {
                let w: Vec<f32> = [&a[..], &z, &y][..rows].concat();
                let b = [0.5, -0.25, 1.0];
                let mut out = vec![0.0; rows];
                relu_layer(simd, &w, &b[..rows], [&x, &y, &z, &v], &mut out);
                for (row, out) in out.iter().enumerate() {
                    let u = |i: usize| (x[i] + y[i] + z[i] + v[i]).max(0.0);
                    let sum: f32 = (0..len).map(|i| w[row * len + i] * u(i)).sum();
                    near(*out, if len > 0 { b[row] + sum } else { *out });
                }
            }
            if len > 0 {
                let (mean, inverse) = moments(simd, &x, 0.5);
                let plain = x.iter().sum::<f32>() / len as f32;
                let square = x.iter().map(|x| (x - plain) * (x - plain)).sum::<f32>();
                near(mean, plain);
                near(inverse, 1.0 / (square / len as f32 + 0.5).sqrt());
            }
        }
    }

    #[test]
    fn sums_of_any_length_are_the_plain_sums() {
        for len in [0, 1, 7, 8, 16, 17, 31, 64, 67, 128] {
            Arch::new().dispatch(Check(len));
            Arch::Scalar.dispatch(Check(len));
        }
    }
}
