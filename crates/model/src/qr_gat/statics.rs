//! What does not depend on the question: rows of label vectors, and rows of products with them.
//!
//! A [`Table`] is a plain row-major array in f32 or f16 that may lie in a memory-mapped file;
//! [`Projected`] computes the products of a row when it is asked for, where a table for all
//! entities of a large graph would not pay.

use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::tensor::panels::Panels;
use crate::{Error, Result};

/// A matrix that is read by rows.
pub trait Rows: Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers in a row.
    fn width(&self) -> usize;

    /// Writes columns `columns` of `rows`, one after the other, to `out`.
    ///
    /// # Panics
    /// If a row or column is outside, or `out` is not of `rows.len() · columns.len()` numbers.
    fn read(&self, rows: &[u32], columns: Range<usize>, out: &mut [f32]);
}

/// A row-major array; numbers are f32 or f16.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a, T> {
    values: &'a [T],
    width: usize,
}

impl<'a, T> Table<'a, T> {
    /// Rows of `width` numbers.
    pub fn new(values: &'a [T], width: usize) -> Result<Self> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(Error::Dimension {
                what: "last row of the table",
                wanted: width,
                given: values.len() % width.max(1),
            });
        }
        Ok(Self { values, width })
    }

    fn part(&self, row: u32, columns: &Range<usize>) -> &'a [T] {
        let start = row as usize * self.width;
        &self.values[start..start + self.width][columns.clone()]
    }
}

impl Rows for Table<'_, f32> {
    fn len(&self) -> usize {
        self.values.len() / self.width
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, rows: &[u32], columns: Range<usize>, out: &mut [f32]) {
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(columns.len())) {
            out.copy_from_slice(self.part(*row, &columns));
        }
    }
}

impl Rows for Table<'_, f16> {
    fn len(&self) -> usize {
        self.values.len() / self.width
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, rows: &[u32], columns: Range<usize>, out: &mut [f32]) {
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(columns.len())) {
            self.part(*row, &columns).convert_to_f32_slice(out);
        }
    }
}

/// Products of label vectors, made when they are read.
pub struct Projected<'a> {
    labels: &'a dyn Rows,
    parts: &'a [Panels],
}

impl<'a> Projected<'a> {
    /// `labels` are vectors of the width that `parts` take.
    pub(crate) fn new(labels: &'a dyn Rows, parts: &'a [Panels]) -> Self {
        Self { labels, parts }
    }

    /// All rows, for a [`Table`].
    pub fn to_f32(&self) -> Vec<f32> {
        let mut table = Vec::with_capacity(self.len() * self.width());
        self.each_block(|rows| table.extend_from_slice(rows));
        table
    }

    /// All rows at half the size, for a [`Table`]; each number within 2⁻¹¹ of itself.
    pub fn to_f16(&self) -> Vec<f16> {
        let mut table = Vec::with_capacity(self.len() * self.width());
        self.each_block(|rows| {
            let start = table.len();
            table.resize(start + rows.len(), f16::ZERO);
            table[start..].convert_from_f32_slice(rows);
        });
        table
    }

    /// All rows in order, some at a time.
    pub fn each_block(&self, mut see: impl FnMut(&[f32])) {
        const BLOCK: usize = 1024;
        let (rows, width) = (self.len() as u32, self.width());
        let mut values = vec![];
        for first in (0..rows).step_by(BLOCK) {
            let ids: Vec<u32> = (first..rows.min(first + BLOCK as u32)).collect();
            values.resize(ids.len() * width, 0.0);
            self.read(&ids, 0..width, &mut values);
            see(&values);
        }
    }
}

impl Rows for Projected<'_> {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn width(&self) -> usize {
        self.parts.iter().map(Panels::outputs).sum()
    }

    fn read(&self, rows: &[u32], columns: Range<usize>, out: &mut [f32]) {
        let dim = self.labels.width();
        let mut labels = vec![0.0; rows.len() * dim];
        self.labels.read(rows, 0..dim, &mut labels);
        let stride = columns.len();
        let mut product = vec![];
        let mut start = 0;
        for part in self.parts {
            let whole = start..start + part.outputs();
            start = whole.end;
            let wanted = whole.start.max(columns.start)..whole.end.min(columns.end);
            if wanted.is_empty() {
                continue;
            }
            let row = |i: usize| &labels[i * dim..][..dim];
            if stride == part.outputs() && wanted == whole {
                part.product(row, out);
                return;
            }
            product.resize(rows.len() * part.outputs(), 0.0);
            part.product(row, &mut product);
            let rows = product.chunks_exact(part.outputs());
            for (out, row) in out.chunks_exact_mut(stride).zip(rows) {
                out[wanted.start - columns.start..wanted.end - columns.start]
                    .copy_from_slice(&row[wanted.start - whole.start..wanted.end - whole.start]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_give_columns_of_rows_in_either_precision() -> Result<()> {
        let values: Vec<f32> = (0..12).map(|x| x as f32 / 2.0).collect();
        let halves: Vec<f16> = values.iter().map(|x| f16::from_f32(*x)).collect();
        let full = Table::new(&values, 4)?;
        let half = Table::new(&halves, 4)?;
        for table in [&full as &dyn Rows, &half] {
            assert_eq!((table.len(), table.width()), (3, 4));
            let mut out = [0.0; 4];
            table.read(&[2, 0], 1..3, &mut out);
            assert_eq!(out, [4.5, 5.0, 0.5, 1.0]);
        }
        assert!(Table::new(&values, 5).is_err());
        Ok(())
    }

    #[test]
    fn projected_rows_are_products_in_any_range_of_columns() -> Result<()> {
        // parts [1 2], [3 4; 5 6] of labels [1 0], [1 1]: rows 1 3 5 and 3 7 11
        let labels = [1.0f32, 0.0, 1.0, 1.0];
        let table = Table::new(&labels, 2)?;
        let parts = [
            Panels::new(&[1.0, 2.0], 2, 0..2),
            Panels::new(&[3.0, 4.0, 5.0, 6.0], 2, 0..2),
        ];
        let rows = Projected::new(&table, &parts);
        assert_eq!((rows.len(), rows.width()), (2, 3));
        let mut all = [0.0; 6];
        rows.read(&[1, 0], 0..3, &mut all);
        assert_eq!(all, [3.0, 7.0, 11.0, 1.0, 3.0, 5.0]);
        let mut second = [0.0; 2];
        rows.read(&[1], 1..3, &mut second);
        assert_eq!(second, [7.0, 11.0]);
        let mut last = [0.0; 1];
        rows.read(&[0], 2..3, &mut last);
        assert_eq!(last, [5.0]);
        Ok(())
    }
}
