//! Dot products of an f32 query with f16 rows, compiled once for each vector width.
//!
//! ```text
//! f32(bits << 13) = x·2⁻¹¹²          for every finite f16 x that is no subnormal
//! ```
//!
//! so the query is scaled by 2¹¹² once, and a row needs no conversion: sign-extend, shift, mask.
//! Rows are written without subnormals ([`to_f16`]), which processors are slow at; those are
//! below 2⁻¹⁴, less than the rounding of the numbers beside them.

use half::f16;
use half::slice::HalfFloatSliceExt;
use pulp::Arch;

const SCALE: f32 = (1u128 << 112) as f32;
/// Sums kept apart: two of the widest vectors, so that one addition need not wait for another.
const LANES: usize = 32;

/// A query made ready to be compared with rows.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    scaled: Vec<f32>,
    arch: Arch,
}

impl Query {
    pub(crate) fn new(values: &[f32]) -> Self {
        Self {
            scaled: values.iter().map(|x| x * SCALE).collect(),
            arch: Arch::new(),
        }
    }

    /// A row as the query.
    pub(crate) fn of_row(row: &[u16]) -> Self {
        let scaled = row.iter().map(|&bits| widen(bits) * SCALE * SCALE);
        Self {
            scaled: scaled.collect(),
            arch: Arch::new(),
        }
    }

    /// The dot product with one row.
    pub(crate) fn dot(&self, row: &[u16]) -> f32 {
        self.arch.dispatch(
            #[inline(always)]
            || dot(&self.scaled, row),
        )
    }

    /// The dot products with the rows that lie in `rows` one after another.
    pub(crate) fn dots(&self, rows: &[u16], out: &mut Vec<f32>) {
        out.clear();
        out.resize(rows.len() / self.scaled.len(), 0.0);
        self.arch.dispatch(
            #[inline(always)]
            || {
                // a plain loop: what an iterator's `fold` holds is compiled without the vectors
                let mut rows = rows.chunks_exact(self.scaled.len());
                for score in out.iter_mut() {
                    let Some(row) = rows.next() else { break };
                    *score = dot(&self.scaled, row);
                }
            },
        );
    }
}

/// The dot product of two rows.
pub(crate) fn dot_rows(arch: Arch, a: &[u16], b: &[u16]) -> f32 {
    arch.dispatch(
        #[inline(always)]
        || {
            let (a, a_rest) = a.as_chunks::<LANES>();
            let (b, b_rest) = b.as_chunks::<LANES>();
            let mut sums = [0.0f32; LANES];
            for (a, b) in a.iter().zip(b) {
                for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                    *sum += (widen(*a) * SCALE) * (widen(*b) * SCALE);
                }
            }
            let mut sum = 0.0;
            for lane in sums {
                sum += lane;
            }
            for (a, b) in a_rest.iter().zip(b_rest) {
                sum += (widen(*a) * SCALE) * (widen(*b) * SCALE);
            }
            sum
        },
    )
}

#[inline(always)]
fn dot(scaled: &[f32], row: &[u16]) -> f32 {
    let (q, q_rest) = scaled.as_chunks::<LANES>();
    let (r, r_rest) = row.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (q, r) in q.iter().zip(r) {
        for (sum, (q, r)) in sums.iter_mut().zip(q.iter().zip(r)) {
            *sum += q * widen(*r);
        }
    }
    let mut sum = 0.0;
    for lane in sums {
        sum += lane;
    }
    for (q, r) in q_rest.iter().zip(r_rest) {
        sum += q * widen(*r);
    }
    sum
}

/// The number times 2⁻¹¹².
#[inline(always)]
fn widen(bits: u16) -> f32 {
    let shifted = (i32::from(bits as i16) << 13) as u32;
    f32::from_bits(shifted & 0x8fff_e000)
}

/// Rounds to f16; what is below its smallest normal number becomes zero.
pub(crate) fn to_f16(values: &[f32], out: &mut Vec<u16>) {
    let mut halves = vec![f16::ZERO; values.len()];
    halves.convert_from_f32_slice(values);
    out.extend(halves.iter().map(|half| {
        let bits = half.to_bits();
        if bits & 0x7c00 == 0 { 0 } else { bits }
    }));
}

/// The numbers of a row.
pub(crate) fn to_f32(row: &[u16], out: &mut [f32]) {
    for (out, &bits) in out.iter_mut().zip(row) {
        *out = widen(bits) * SCALE;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_are_exact() {
        let mut row = Vec::new();
        to_f16(&[0.5, -2.0, 0.0, 1e-6], &mut row);
        assert_eq!(row[3], 0, "subnormals are not kept");
        // 0.5·4 + (−2)·0.25 = 1.5
        assert_eq!(Query::new(&[4.0, 0.25, 9.0, 1.0]).dot(&row), 1.5);
        // 0.25 + 4
        assert_eq!(Query::of_row(&row).dot(&row), 4.25);
        let mut back = [1.0; 4];
        to_f32(&row, &mut back);
        assert_eq!(back, [0.5, -2.0, 0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn dots_are_those_of_the_rounded_numbers(
            values in proptest::collection::vec((-1.0f32..1.0, -1.0f32..1.0), 1..100)
        ) {
            let (query, row): (Vec<f32>, Vec<f32>) = values.into_iter().unzip();
            let mut bits = Vec::new();
            to_f16(&row, &mut bits);
            let naive: f64 = query
                .iter()
                .zip(&bits)
                .map(|(q, b)| f64::from(*q) * f64::from(f16::from_bits(*b)))
                .sum();
            let fast = Query::new(&query);
            prop_assert!((f64::from(fast.dot(&bits)) - naive).abs() < 1e-4);
            let own = Query::of_row(&bits).dot(&bits);
            prop_assert!((dot_rows(Arch::new(), &bits, &bits) - own).abs() < 1e-4);
            let mut many = Vec::new();
            fast.dots(&[&bits[..], &bits[..]].concat(), &mut many);
            prop_assert_eq!(many, vec![fast.dot(&bits); 2]);
        }
    }
}
