//! Rows gathered by id, and reduced by id.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor};
#[cfg(feature = "cuda")]
use candle_core::{CudaStorage, backend::BackendStorage};
use pulp::Arch;
use rayon::prelude::*;

use super::{Floats, ROWS, add_to, floats, on_cpu, vectorise};

/// Which segment each entry belongs to, and the entries of each segment.
///
/// Ids need not be sorted, and a segment may be empty.
pub struct Segments {
    ids: Vec<u32>,
    offsets: Vec<u32>, // [segments + 1]
    entries: Vec<u32>, // by segment, ascending within one
    #[cfg(feature = "cuda")]
    on_card: OnceLock<super::cuda::OnCard>,
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
            #[cfg(feature = "cuda")]
            on_card: OnceLock::new(),
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

    /// Where segments begin among all entries, and the end of the last.
    #[cfg(feature = "cuda")]
    pub(super) fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The entries of all segments, one segment after the other.
    #[cfg(feature = "cuda")]
    pub(super) fn all_entries(&self) -> &[u32] {
        &self.entries
    }

    /// The copy on the card, which is made when it is first needed.
    #[cfg(feature = "cuda")]
    pub(super) fn on_card(
        &self,
        new: impl FnOnce() -> Result<super::cuda::OnCard>,
    ) -> Result<&super::cuda::OnCard> {
        match self.on_card.get() {
            Some(there) => Ok(there),
            None => {
                let there = new()?;
                Ok(self.on_card.get_or_init(|| there))
            }
        }
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
    apply(Kind::Max, x, segments)
}

/// Softmax within each segment, column by column: `[entries, width]` to the same.
pub fn segment_softmax(x: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    if on_cpu(x) {
        return apply(Kind::Softmax, x, segments);
    }
    composed_softmax(x, segments)
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
    x.contiguous()?.apply_op1(SegmentOp {
        kind,
        segments: segments.clone(),
        winners: OnceLock::new(),
        #[cfg(feature = "cuda")]
        winners_on_card: OnceLock::new(),
    })
}

fn composed_softmax(x: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    let top = gather(&segment_max(&x.detach(), segments)?, segments)?;
    let powers = (x - top)?.exp()?;
    let sums = gather(&segment_sum(&powers, segments)?, segments)?;
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
    #[cfg(feature = "cuda")]
    winners_on_card: OnceLock<super::cuda::Winners>,
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

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let card = super::cuda::Card::new(&self.segments, x.device())?;
        match self.kind {
            Kind::Gather => card.gather(x, layout),
            Kind::Sum => card.sum(x, layout),
            Kind::Max => {
                let (y, winners) = card.max(x, layout)?;
                self.winners_on_card.get_or_init(|| winners);
                Ok(y)
            }
            Kind::Softmax => candle_core::bail!("the softmax is composed on a card"),
        }
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let (rows, width) = x.dims2()?;
        let segments = &*self.segments;
        let grad = grad.contiguous()?;
        #[cfg(feature = "cuda")]
        if !on_cpu(x) {
            return self.back_on_card(&grad).map(Some);
        }
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

#[cfg(feature = "cuda")]
impl SegmentOp {
    fn back_on_card(&self, grad: &Tensor) -> Result<Tensor> {
        match (self.kind, self.winners_on_card.get()) {
            (Kind::Gather, _) => apply(Kind::Sum, grad, &self.segments),
            (Kind::Sum, _) => apply(Kind::Gather, grad, &self.segments),
            (Kind::Max, Some(winners)) => {
                let (storage, layout) = grad.storage_and_layout();
                let candle_core::Storage::Cuda(storage) = &*storage else {
                    candle_core::bail!("a gradient lies on another device than what it is of");
                };
                let card = super::cuda::Card::new(&self.segments, storage.device())?;
                let (dx, shape) = card.max_back(storage, layout, winners)?;
                let dx = candle_core::Storage::Cuda(dx);
                let none = candle_core::op::BackpropOp::none();
                Ok(Tensor::from_storage(dx, shape, none, false))
            }
            _ => candle_core::bail!("{:?} has no gradient on a card", self.kind),
        }
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
        let operations: [(&str, Op); 5] = [
            ("sum", segment_sum),
            ("mean", segment_mean),
            ("max", segment_max),
            ("softmax", segment_softmax),
            ("composed softmax", composed_softmax),
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
        fn the_fused_softmax_equals_the_composed_one(
            ids in proptest::collection::vec(0u32..6, 1..90), seed in 0u64..1000,
        ) {
            let segments = Arc::new(Segments::new(ids, 6));
            let x = spread((segments.len(), 2), seed).as_tensor().detach();
            let fused = numbers(&segment_softmax(&x, &segments).unwrap());
            let composed = numbers(&composed_softmax(&x, &segments).unwrap());
            for (a, b) in fused.iter().zip(composed) {
                prop_assert!((a - b).abs() < 1e-5);
            }
        }
    }

    /// Values and gradients, segments of several pieces among them.
    #[cfg(feature = "cuda")]
    #[test]
    #[ignore = "needs an NVIDIA card"]
    fn a_card_does_what_the_cpu_does() -> Result<()> {
        type Op = fn(&Tensor, &Arc<Segments>) -> Result<Tensor>;
        let card = Device::new_cuda(0)?;
        for (entries, count, width) in [(5, 4, 3), (1000, 6, 5), (3000, 900, 64), (700, 1, 1)] {
            let mut random = crate::Random::new(entries as u64);
            let ids = (0..entries).map(|_| random.below(count) as u32).collect();
            let segments = Arc::new(Segments::new(ids, count));
            let operations: [(&str, Op, usize); 5] = [
                ("gather", gather, count),
                ("sum", segment_sum, entries),
                ("mean", segment_mean, entries),
                ("max", segment_max, entries),
                ("softmax", segment_softmax, entries),
            ];
            for (name, operation, rows) in operations {
                let start = spread((rows, width), 3).as_tensor().detach();
                let run = |device: &Device| -> Result<[Vec<f32>; 2]> {
                    let x = candle_core::Var::from_tensor(&start.to_device(device)?)?;
                    let y = operation(&x, &segments)?;
                    let weight = spread(y.dims2()?, 7).as_tensor().to_device(device)?;
                    let gradients = (&y * weight)?.sum_all()?.backward()?;
                    let gradient = gradients.get(&x).expect("x is a variable");
                    Ok([&y, gradient].map(|x| numbers(&x.to_device(&Device::Cpu).unwrap())))
                };
                let (here, there) = (run(&Device::Cpu)?, run(&card)?);
                for (a, b) in here.concat().iter().zip(there.concat()) {
                    assert!((a - b).abs() < 1e-4 * a.abs().max(1.0), "{name}: {a} {b}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_wrong_number_of_rows_is_refused() {
        assert!(segment_sum(&column(&[1.0, 2.0]), &segments()).is_err());
        assert!(gather(&column(&[1.0, 2.0]), &segments()).is_err());
    }
}
