//! Principal components: the directions in which a set of vectors spreads most.
//!
//! Hestenes, "Inversion of Matrices by Biorthogonalization and Related Results", 1958 (one-sided
//! Jacobi): rows of the second-moment matrix are turned against each other until all are
//! orthogonal,
//!
//! ```text
//! C = Xᵀ·X / n        J·C = Λ·Vᵀ
//! ```
//!
//! J is a product of plane rotations. Rows of J·C are then eigenvalue times eigenvector, so no
//! rotation need be kept.
//!
//! Departures: X is not centred. The student's vectors are compared by cosine from the origin,
//! as the teacher's are, and moving the origin would change every angle.

use rayon::prelude::*;

/// Directions of most spread, most first.
pub(crate) struct Components {
    rows: Vec<Vec<f64>>, // [kept, dim]
    /// The part of the mean squared length that the kept directions hold.
    pub(super) kept: f64,
}

impl Components {
    /// The directions, each of length 1.
    pub(crate) fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    /// The first `keep` components of `vectors`, rows of `dim` numbers.
    pub(crate) fn of(vectors: &[f32], dim: usize, keep: usize) -> Self {
        let mut matrix = second_moments(vectors, dim);
        orthogonalise(&mut matrix);
        let mut found: Vec<(f64, Vec<f64>)> = matrix
            .into_iter()
            .map(|row| {
                let length = dot(&row, &row).sqrt();
                let unit = row
                    .iter()
                    .map(|x| x / length.max(f64::MIN_POSITIVE))
                    .collect();
                (length, unit)
            })
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let total: f64 = found.iter().map(|f| f.0).sum();
        found.truncate(keep);
        let kept: f64 = found.iter().map(|f| f.0).sum();
        for (_, row) in &mut found {
            // an eigenvector has two directions: take the one whose largest number is positive
            let largest = row
                .iter()
                .copied()
                .fold(0.0f64, |m, x| if x.abs() > m.abs() { x } else { m });
            if largest < 0.0 {
                row.iter_mut().for_each(|x| *x = -*x);
            }
        }
        Self {
            rows: found.into_iter().map(|f| f.1).collect(),
            kept: if total > 0.0 { kept / total } else { 1.0 },
        }
    }

    /// `vectors` in the coordinates of the components, `[vectors, kept]`.
    pub(super) fn project(&self, vectors: &[f32], dim: usize) -> Vec<f32> {
        let rows: Vec<Vec<f32>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|x| *x as f32).collect())
            .collect();
        vectors
            .par_chunks_exact(dim)
            .flat_map_iter(|vector| {
                rows.iter()
                    .map(move |row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
            })
            .collect()
    }
}

fn second_moments(vectors: &[f32], dim: usize) -> Vec<Vec<f64>> {
    let count = (vectors.len() / dim).max(1) as f64;
    (0..dim)
        .into_par_iter()
        .map(|i| {
            let mut row = vec![0.0; dim];
            for vector in vectors.chunks_exact(dim) {
                let factor = f64::from(vector[i]);
                for (sum, x) in row.iter_mut().zip(vector) {
                    *sum += factor * f64::from(*x);
                }
            }
            row.iter_mut().for_each(|x| *x /= count);
            row
        })
        .collect()
}

/// Turns pairs of rows until every two are orthogonal.
fn orthogonalise(rows: &mut [Vec<f64>]) {
    const SWEEPS: usize = 60;
    const TOLERANCE: f64 = 1e-10;
    for _ in 0..SWEEPS {
        let mut worst = 0.0f64;
        for p in 1..rows.len() {
            let (before, rest) = rows.split_at_mut(p);
            let second = &mut rest[0];
            for first in before {
                let (a, b, c) = (dot(first, first), dot(second, second), dot(first, second));
                let cosine = c.abs() / (a * b).sqrt().max(f64::MIN_POSITIVE);
                // what lies below is rounding of the largest row, not direction
                if cosine < TOLERANCE || a.max(b) < 1e-300 {
                    continue;
                }
                worst = worst.max(cosine);
                let zeta = (b - a) / (2.0 * c);
                let tangent = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let cos = 1.0 / (1.0 + tangent * tangent).sqrt();
                let sin = cos * tangent;
                for (x, y) in first.iter_mut().zip(second.iter_mut()) {
                    (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
                }
            }
        }
        if worst < 1e-8 {
            return;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for (lane, (x, y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
            *lane += x * y;
        }
    }
    let whole = a.len() / 8 * 8;
    lanes.iter().sum::<f64>()
        + a[whole..]
            .iter()
            .zip(&b[whole..])
            .map(|(x, y)| x * y)
            .sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_a_known_matrix() {
        // XᵀX / 2 for X = [[2, 1], [1, 2]] is [[2.5, 2], [2, 2.5]]: 4.5 along (1, 1)/√2, 0.5 across
        let vectors = [2.0, 1.0, 1.0, 2.0];
        let components = Components::of(&vectors, 2, 1);
        assert!((components.kept - 0.9).abs() < 1e-9);
        let projected = components.project(&vectors, 2);
        // (2 + 1)/√2 = 2.121320
        assert!(projected.iter().all(|x| (x - 2.121_32).abs() < 1e-5));
    }

    #[test]
    fn all_components_keep_every_dot_product() {
        let dim = 12;
        let vectors: Vec<f32> = (0..20 * dim)
            .map(|x| ((x * 7919) % 101) as f32 / 50.0 - 1.0)
            .collect();
        let components = Components::of(&vectors, dim, dim);
        let projected = components.project(&vectors, dim);
        for i in 0..20 {
            for j in 0..20 {
                let dot =
                    |v: &[f32]| -> f32 { (0..dim).map(|k| v[i * dim + k] * v[j * dim + k]).sum() };
                assert!((dot(&vectors) - dot(&projected)).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn vectors_without_spread_do_not_fail() {
        let components = Components::of(&[0.0; 6], 3, 2);
        assert_eq!(components.project(&[0.0; 3], 3), [0.0, 0.0]);
    }
}
