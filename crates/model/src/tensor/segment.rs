//! Rows gathered by id, and reduced by id.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp1, DType, Device, Layout, Result, Shape, Tensor};
use pulp::Arch;
use rayon::prelude::*;

use super::{Floats, ROWS, add_to, floats, on_cpu, vectorise};

/// Which segment each entry belongs to, and the entries of each segment.
///
/// Ids need not be sorted, and a segment may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    ids: Vec<u32>,
    offsets: Vec<u32>, // [segments + 1]
    entries: Vec<u32>, // by segment, ascending within one
}

impl Segments {
    /// Groups entries by their segment, in `O(entries + segments)`.
    ///
    /// # Panics
    /// If an id is not below `count`.
    pub fn new(ids: Vec<u32>, count: usize) -> Self {
        let mut offsets = vec![0u32; count + 1];
        for id in &ids {
            assert!((*id as usize) < count, "segment {id} of {count}");
            offsets[*id as usize + 1] += 1;
        }
        for i in 0..count {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut entries = vec![0; ids.len()];
        for (entry, id) in ids.iter().enumerate() {
            let at = &mut next[*id as usize];
            entries[*at as usize] = entry as u32;
            *at += 1;
        }
        Self {
            ids,
            offsets,
            entries,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Number of segments, empty ones included.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The segment of each entry.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The entries of one segment, ascending.
    #[inline(always)]
    pub fn entries(&self, segment: usize) -> &[u32] {
        &self.entries[self.offsets[segment] as usize..self.offsets[segment + 1] as usize]
    }

    /// The entries of one segment as a range, where ids ascend.
    #[inline(always)]
    pub(crate) fn range(&self, segment: usize) -> std::ops::Range<usize> {
        self.offsets[segment] as usize..self.offsets[segment + 1] as usize
    }

    /// The ids as a tensor for candle's own operations.
    fn tensor(&self, device: &Device) -> Result<Tensor> {
        Tensor::from_slice(&self.ids, self.ids.len(), device)
    }

    /// Entries in each segment (at least 1), `[segments, 1]`.
    fn sizes(&self, device: &Device) -> Result<Tensor> {
        let sizes: Vec<f32> = self
            .offsets
            .windows(2)
            .map(|w| (w[1] - w[0]).max(1) as f32)
            .collect();
        Tensor::from_vec(sizes, (self.count(), 1), device)
    }
}

/// `y[e] = x[id(e)]`: `[segments, width]` to `[entries, width]`.
pub fn gather(x: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    apply(Kind::Gather, x, segments)
}

/// Sum of the rows of each segment: `[entries, width]` to `[segments, width]`.
pub fn segment_sum(x: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    apply(Kind::Sum, x, segments)
}

/// Mean of the rows of each segment; zeros where there is none.
pub fn segment_mean(x: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    let sizes = segments.sizes(x.device())?;
    segment_sum(x, segments)?.broadcast_div(&sizes)
}

/// Largest number of each segment, column by column; zeros where there is none. The gradient goes
/// to the first entry that has it.
pub fn segment_max(x: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    if on_cpu(x) {
        return apply(Kind::Max, x, segments);
    }
    composed_max(x, segments)
}

/// Softmax within each segment, column by column: `[entries, width]` to the same.
pub fn segment_softmax(x: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    apply(Kind::Softmax, x, segments)
}

fn apply(kind: Kind, x: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    let rows = x.dims2()?.0;
    let wanted = match kind {
        Kind::Gather => segments.count(),
        _ => segments.len(),
    };
    if rows != wanted {
        candle_core::bail!("{kind:?} takes {wanted} rows, and was given {rows}");
    }
    if on_cpu(x) {
        return x.contiguous()?.apply_op1(SegmentOp {
            kind,
            segments: segments.clone(),
            winners: OnceLock::new(),
        });
    }
    match kind {
        Kind::Gather => x
            .contiguous()?
            .index_select(&segments.tensor(x.device())?, 0),
        Kind::Sum => composed_sum(x, segments),
        Kind::Max => composed_max(x, segments),
        Kind::Softmax => composed_softmax(x, segments),
    }
}

fn composed_sum(x: &Tensor, segments: &Segments) -> Result<Tensor> {
    let zeros = Tensor::zeros((segments.count(), x.dim(1)?), DType::F32, x.device())?;
    zeros.index_add(&segments.tensor(x.device())?, &x.contiguous()?, 0)
}

/// candle has no scatter-maximum: the winners are found on the CPU, the numbers stay where they are.
fn composed_max(x: &Tensor, segments: &Segments) -> Result<Tensor> {
    let width = x.dim(1)?;
    let values = x.detach().flatten_all()?.to_vec1::<f32>()?;
    let winners = winners(&values, width, segments);
    let there: Vec<f32> = winners
        .iter()
        .map(|w| f32::from(u8::from(*w != NONE)))
        .collect();
    let winners: Vec<u32> = winners
        .into_iter()
        .map(|w| if w == NONE { 0 } else { w })
        .collect();
    let shape = (segments.count(), width);
    if segments.is_empty() {
        return Tensor::zeros(shape, DType::F32, x.device());
    }
    let winners = Tensor::from_vec(winners, shape, x.device())?;
    x.contiguous()?.gather(&winners, 0)? * Tensor::from_vec(there, shape, x.device())?
}

fn composed_softmax(x: &Tensor, segments: &Segments) -> Result<Tensor> {
    let ids = segments.tensor(x.device())?;
    let top = composed_max(&x.detach(), segments)?.index_select(&ids, 0)?;
    let powers = (x - top)?.exp()?;
    let sums = composed_sum(&powers, segments)?.index_select(&ids, 0)?;
    powers / sums
}

const NONE: u32 = u32::MAX;

/// The entry with the largest number, for each segment and column; [`NONE`] for empty segments.
fn winners(x: &[f32], width: usize, segments: &Segments) -> Vec<u32> {
    let mut winners = vec![NONE; segments.count() * width];
    for (segment, winners) in winners.chunks_exact_mut(width.max(1)).enumerate() {
        for &entry in segments.entries(segment) {
            for (column, winner) in winners.iter_mut().enumerate() {
                let value = x[entry as usize * width + column];
                if *winner == NONE || value > x[*winner as usize * width + column] {
                    *winner = entry;
                }
            }
        }
    }
    winners
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gather,
    Sum,
    Max,
    Softmax,
}

struct SegmentOp {
    kind: Kind,
    segments: Arc<Segments>,
    /// Kept from the forward pass for the gradient of the maximum.
    winners: OnceLock<Vec<u32>>,
}

impl CustomOp1 for SegmentOp {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Gather => "gather-rows",
            Kind::Sum => "segment-sum",
            Kind::Max => "segment-max",
            Kind::Softmax => "segment-softmax",
        }
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, width) = layout.shape().dims2()?;
        let x = floats(x, layout)?;
        let segments = &*self.segments;
        let (rows, values) = match self.kind {
            Kind::Gather => (segments.len(), gathered(x, width, segments)),
            Kind::Sum => (segments.count(), summed(x, width, segments)),
            Kind::Max => {
                let winners = self.winners.get_or_init(|| winners(x, width, segments));
                let values = winners
                    .iter()
                    .enumerate()
                    .map(|(at, &winner)| match winner {
                        NONE => 0.0,
                        winner => x[winner as usize * width + at % width],
                    });
                (segments.count(), values.collect())
            }
            Kind::Softmax => (segments.len(), softmax(x, width, segments)),
        };
        Ok((CpuStorage::F32(values), (rows, width).into()))
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let (rows, width) = x.dims2()?;
        let segments = &*self.segments;
        let grad = grad.contiguous()?;
        let (y, grad) = (Floats::of(y), Floats::of(&grad));
        let (y, grad) = (y.values()?, grad.values()?);
        let dx = match self.kind {
            Kind::Gather => summed(grad, width, segments),
            Kind::Sum => gathered(grad, width, segments),
            Kind::Max => {
                let mut dx = vec![0.0; rows * width];
                let winners = self.winners.get().map_or(&[][..], |winners| winners);
                for (at, (winner, grad)) in winners.iter().zip(grad).enumerate() {
                    if *winner != NONE {
                        dx[*winner as usize * width + at % width] += grad;
                    }
                }
                dx
            }
            Kind::Softmax => softmax_back(y, grad, width, segments),
        };
        Ok(Some(Tensor::from_vec(dx, (rows, width), &Device::Cpu)?))
    }
}

fn gathered(x: &[f32], width: usize, segments: &Segments) -> Vec<f32> {
    let mut y = vec![0.0; segments.len() * width];
    y.par_chunks_mut(ROWS * width)
        .zip(segments.ids.par_chunks(ROWS))
        .for_each(|(y, ids)| {
            for (y, id) in y.chunks_exact_mut(width).zip(ids) {
                y.copy_from_slice(&x[*id as usize * width..][..width]);
            }
        });
    y
}

fn summed(x: &[f32], width: usize, segments: &Segments) -> Vec<f32> {
    let mut y = vec![0.0; segments.count() * width];
    let arch = Arch::new();
    y.par_chunks_mut(ROWS * width)
        .enumerate()
        .for_each(|(block, y)| {
            vectorise(
                arch,
                #[inline(always)]
                || {
                    for (i, y) in y.chunks_exact_mut(width).enumerate() {
                        for &entry in segments.entries(block * ROWS + i) {
                            add_to(y, &x[entry as usize * width..][..width]);
                        }
                    }
                },
            );
        });
    y
}

/// Sequential: attention itself is fused, so what comes here has one column for each head.
fn softmax(x: &[f32], width: usize, segments: &Segments) -> Vec<f32> {
    let mut y = x.to_vec();
    let mut top = vec![0.0; width];
    let mut sum = vec![0.0; width];
    for segment in 0..segments.count() {
        let entries = segments.entries(segment);
        top.fill(f32::NEG_INFINITY);
        sum.fill(0.0);
        for &entry in entries {
            let row = &x[entry as usize * width..][..width];
            top.iter_mut().zip(row).for_each(|(t, x)| *t = t.max(*x));
        }
        for &entry in entries {
            let row = &mut y[entry as usize * width..][..width];
            for ((y, top), sum) in row.iter_mut().zip(&top).zip(&mut sum) {
                *y = (*y - top).exp();
                *sum += *y;
            }
        }
        for &entry in entries {
            let row = &mut y[entry as usize * width..][..width];
            row.iter_mut().zip(&sum).for_each(|(y, sum)| *y /= sum);
        }
    }
    y
}

/// `∂L/∂x[e] = y[e]·(g[e] − Σ_f y[f]·g[f])`, f over the segment of e.
fn softmax_back(y: &[f32], grad: &[f32], width: usize, segments: &Segments) -> Vec<f32> {
    let mut dx = vec![0.0; y.len()];
    let mut dot = vec![0.0; width];
    for segment in 0..segments.count() {
        let entries = segments.entries(segment);
        dot.fill(0.0);
        for &entry in entries {
            let at = entry as usize * width;
            for (column, dot) in dot.iter_mut().enumerate() {
                *dot += y[at + column] * grad[at + column];
            }
        }
        for &entry in entries {
            let at = entry as usize * width;
            for (column, dot) in dot.iter().enumerate() {
                dx[at + column] = y[at + column] * (grad[at + column] - dot);
            }
        }
    }
    dx
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::gradient::{spread, worst_error};
    use proptest::prelude::*;

    /// Entries 0..5 in segments 2, 0, 2, 3, 0; segment 1 is empty.
    fn segments() -> Arc<Segments> {
        Arc::new(Segments::new(vec![2, 0, 2, 3, 0], 4))
    }

    fn column(values: &[f32]) -> Tensor {
        Tensor::from_slice(values, (values.len(), 1), &Device::Cpu).unwrap()
    }

    fn numbers(x: &Tensor) -> Vec<f32> {
        x.flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn unsorted_entries_are_found_by_segment() {
        let segments = segments();
        assert_eq!(segments.entries(0), [1, 4]);
        assert!(segments.entries(1).is_empty());
        assert_eq!(segments.entries(2), [0, 2]);
        assert_eq!(segments.entries(3), [3]);
    }

    #[test]
    fn reductions_have_their_hand_made_values() -> Result<()> {
        let x = column(&[1.0, 2.0, 4.0, -8.0, 16.0]);
        // segment 0: 2, 16; 1: none; 2: 1, 4; 3: −8
        assert_eq!(
            numbers(&segment_sum(&x, &segments())?),
            [18.0, 0.0, 5.0, -8.0]
        );
        assert_eq!(
            numbers(&segment_mean(&x, &segments())?),
            [9.0, 0.0, 2.5, -8.0]
        );
        assert_eq!(
            numbers(&segment_max(&x, &segments())?),
            [16.0, 0.0, 4.0, -8.0]
        );
        let y = column(&[10.0, 11.0, 12.0, 13.0]);
        assert_eq!(
            numbers(&gather(&y, &segments())?),
            [12.0, 10.0, 12.0, 13.0, 10.0]
        );
        Ok(())
    }

    #[test]
    fn softmax_within_segments_has_its_hand_made_values() -> Result<()> {
        // e^0 : e^ln 3 is 1 : 3, equal numbers are halves, a single entry is 1
        let x = column(&[100.0, 0.0, 100.0, -7.0, 3f32.ln()]);
        let y = numbers(&segment_softmax(&x, &segments())?);
        for (y, wanted) in y.iter().zip([0.5, 0.25, 0.5, 1.0, 0.75]) {
            assert!((y - wanted).abs() < 1e-6, "{y} {wanted}");
        }
        Ok(())
    }

    #[test]
    fn gradients_are_finite_differences_fused_and_composed() -> Result<()> {
        type Op = fn(&Tensor, &Arc<Segments>) -> Result<Tensor>;
        let operations: [(&str, Op); 7] = [
            ("sum", segment_sum),
            ("mean", segment_mean),
            ("max", segment_max),
            ("softmax", segment_softmax),
            ("composed sum", |x, s| composed_sum(x, s)),
            ("composed max", |x, s| composed_max(x, s)),
            ("composed softmax", |x, s| composed_softmax(x, s)),
        ];
        for (name, operation) in operations {
            let x = spread((5, 3), 6);
            let error = worst_error(std::slice::from_ref(&x), 1e-3, || {
                let y = operation(&x, &segments())?;
                let weight = spread(y.dims2()?, 7).as_tensor().detach();
                (y * weight)?.sum_all()
            })?;
            assert!(error < 2e-3, "{name}: {error}");
        }
        let x = spread((4, 3), 8);
        let error = worst_error(std::slice::from_ref(&x), 1e-3, || {
            gather(&x, &segments())?.sqr()?.sum_all()
        })?;
        assert!(error < 2e-3, "gather: {error}");
        Ok(())
    }

    proptest! {
        #[test]
        fn fused_operations_equal_composed_ones(
            ids in proptest::collection::vec(0u32..6, 1..90), seed in 0u64..1000,
        ) {
            let segments = Arc::new(Segments::new(ids, 6));
            let x = spread((segments.len(), 2), seed).as_tensor().detach();
            let pairs = [
                (segment_sum(&x, &segments), composed_sum(&x, &segments)),
                (segment_max(&x, &segments), composed_max(&x, &segments)),
                (segment_softmax(&x, &segments), composed_softmax(&x, &segments)),
            ];
            for (fused, composed) in pairs {
                for (a, b) in numbers(&fused.unwrap()).iter().zip(numbers(&composed.unwrap())) {
                    prop_assert!((a - b).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn a_wrong_number_of_rows_is_refused() {
        assert!(segment_sum(&column(&[1.0, 2.0]), &segments()).is_err());
        assert!(gather(&column(&[1.0, 2.0]), &segments()).is_err());
    }
}
