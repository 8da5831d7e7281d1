//! Rows gathered and reduced by id on an NVIDIA card.
//!
//! candle adds rows by id with one thread for each column, which walks through all rows one after the
//! other. Here a thread adds at most [`PIECE`] rows of a segment in one column, and a second run adds
//! the sums of its pieces: the same order each time, so that a training is repeatable. The kernels
//! are compiled when the first is needed.

use std::sync::OnceLock;

use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{
    CudaSlice, CudaView, LaunchArgs, LaunchConfig, PushKernelArg,
};
use candle_core::cuda_backend::cudarc::nvrtc::compile_ptx;
use candle_core::{CudaDevice, CudaStorage, Layout, Result, Shape};

use super::segment::Segments;

/// Rows that one thread adds.
const PIECE: u32 = 64;

const MODULE: &str = "wherefore-segments";

const KERNELS: &str = r#"
// y[e] = x[id(e)]
extern "C" __global__ void gather_rows(
    const float *x, const unsigned *ids, float *y, const size_t numbers, const unsigned width
) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < numbers) y[i] = x[(size_t)ids[i / width] * width + i % width];
}

// y[s] = sum of x[e] over the entries of s
extern "C" __global__ void sum_rows(
    const float *x, const unsigned *entries, const unsigned *offsets, float *y,
    const size_t numbers, const unsigned width
) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= numbers) return;
    const size_t s = i / width, column = i % width;
    float sum = 0.0f;
    for (unsigned at = offsets[s]; at < offsets[s + 1]; at++)
        sum += x[(size_t)entries[at] * width + column];
    y[i] = sum;
}

// winner[s] = the first entry of s with the largest number, or none
extern "C" __global__ void find_winners(
    const float *x, const unsigned *entries, const unsigned *offsets, unsigned *winner,
    const size_t numbers, const unsigned width
) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= numbers) return;
    const size_t s = i / width, column = i % width;
    unsigned best = 0xffffffffu;
    float most = 0.0f;
    for (unsigned at = offsets[s]; at < offsets[s + 1]; at++) {
        const float value = x[(size_t)entries[at] * width + column];
        if (best == 0xffffffffu || value > most) { best = entries[at]; most = value; }
    }
    winner[i] = best;
}

// y[s] = x[winner(s)], or 0
extern "C" __global__ void take_winners(
    const float *x, const unsigned *winner, float *y, const size_t numbers, const unsigned width
) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= numbers) return;
    const unsigned best = winner[i];
    y[i] = best == 0xffffffffu ? 0.0f : x[(size_t)best * width + i % width];
}

// dx[e] = dy[id(e)] where e has won, or 0
extern "C" __global__ void give_winners(
    const float *dy, const unsigned *winner, const unsigned *ids, float *dx,
    const size_t numbers, const unsigned width
) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= numbers) return;
    const size_t at = (size_t)ids[i / width] * width + i % width;
    dx[i] = winner[at] == (unsigned)(i / width) ? dy[at] : 0.0f;
}
"#;

/// Ids and groups as a card has them.
pub(super) struct OnCard {
    ids: CudaSlice<u32>,
    entries: CudaSlice<u32>,
    /// Where segments begin among the entries.
    offsets: CudaSlice<u32>,
    /// Where pieces begin among the entries; none where every segment is one piece.
    pieces: Option<Pieces>,
}

struct Pieces {
    count: usize,
    offsets: CudaSlice<u32>,
    /// 0, 1, 2, …: pieces lie in the order of their segments.
    order: CudaSlice<u32>,
    /// Where segments begin among the pieces.
    segments: CudaSlice<u32>,
}

impl OnCard {
    fn new(segments: &Segments, device: &CudaDevice) -> Result<Self> {
        let copy = |numbers: &[u32]| match numbers {
            // nothing cannot be copied
            [] => device.clone_htod(&[0][..]),
            numbers => device.clone_htod(numbers),
        };
        let mut starts = vec![];
        let mut of_segments = vec![0u32];
        for bounds in segments.offsets().windows(2) {
            starts.extend((bounds[0]..bounds[1]).step_by(PIECE as usize));
            of_segments.push(starts.len() as u32);
        }
        let longest = segments.offsets().windows(2).map(|w| w[1] - w[0]).max();
        let pieces = match longest.is_some_and(|longest| longest > PIECE) {
            true => {
                let count = starts.len();
                starts.push(segments.len() as u32);
                let order: Vec<u32> = (0..count as u32).collect();
                Some(Pieces {
                    count,
                    offsets: copy(&starts)?,
                    order: copy(&order)?,
                    segments: copy(&of_segments)?,
                })
            }
            false => None,
        };
        Ok(Self {
            ids: copy(segments.ids())?,
            entries: copy(segments.all_entries())?,
            offsets: copy(segments.offsets())?,
            pieces,
        })
    }
}

/// The winners of a maximum, `[segments, width]`.
pub(super) type Winners = CudaSlice<u32>;

/// The operations of one set of segments on a card.
pub(super) struct Card<'a> {
    segments: &'a Segments,
    there: &'a OnCard,
    device: CudaDevice,
}

/// Runs a kernel with a thread for each of so many numbers; these and the width are its last
/// arguments.
macro_rules! launch {
    ($card:ident, $kernel:literal, [$numbers:expr, $width:expr], $($argument:expr),+) => {{
        let (numbers, width) = ($numbers, $width as u32);
        if numbers > 0 {
            let function = $card.device.get_or_load_custom_func($kernel, MODULE, compiled()?)?;
            let mut run = function.builder();
            $(run.arg($argument);)+
            run.arg(&numbers).arg(&width);
            start(run, numbers)?;
        }
    }};
}

impl<'a> Card<'a> {
    pub(super) fn new(segments: &'a Segments, device: &CudaDevice) -> Result<Self> {
        Ok(Self {
            there: segments.on_card(|| OnCard::new(segments, device))?,
            segments,
            device: device.clone(),
        })
    }

    /// `y[e] = x[id(e)]`
    pub(super) fn gather(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let (x, width) = rows(x, layout)?;
        let count = self.segments.len();
        let mut y = self.device.alloc_zeros::<f32>(count * width)?;
        launch!(
            self,
            "gather_rows",
            [count * width, width],
            &x,
            &self.there.ids,
            &mut y
        );
        Ok(self.stored(y, count, width))
    }

    /// `y[s] = Σ x[e]`
    pub(super) fn sum(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let (x, width) = rows(x, layout)?;
        let count = self.segments.count();
        let OnCard {
            entries,
            offsets,
            pieces,
            ..
        } = self.there;
        let y = match pieces {
            None => self.add(&x, [entries, offsets], count, width)?,
            Some(pieces) => {
                let sums = self.add(&x, [entries, &pieces.offsets], pieces.count, width)?;
                let groups = [&pieces.order, &pieces.segments];
                self.add(&sums.slice(..), groups, count, width)?
            }
        };
        Ok(self.stored(y, count, width))
    }

    fn add(
        &self,
        x: &CudaView<'_, f32>,
        [entries, offsets]: [&CudaSlice<u32>; 2],
        count: usize,
        width: usize,
    ) -> Result<CudaSlice<f32>> {
        let mut y = self.device.alloc_zeros::<f32>(count * width)?;
        launch!(
            self,
            "sum_rows",
            [count * width, width],
            x,
            entries,
            offsets,
            &mut y
        );
        Ok(y)
    }

    /// The largest number of each segment and column, and which entries have it.
    pub(super) fn max(
        &self,
        x: &CudaStorage,
        layout: &Layout,
    ) -> Result<((CudaStorage, Shape), Winners)> {
        let (x, width) = rows(x, layout)?;
        let count = self.segments.count();
        let OnCard {
            entries, offsets, ..
        } = self.there;
        let mut winners = self.device.alloc_zeros::<u32>(count * width)?;
        let mut y = self.device.alloc_zeros::<f32>(count * width)?;
        let all = count * width;
        launch!(
            self,
            "find_winners",
            [all, width],
            &x,
            entries,
            offsets,
            &mut winners
        );
        launch!(self, "take_winners", [all, width], &x, &winners, &mut y);
        Ok((self.stored(y, count, width), winners))
    }

    /// The gradient of the maximum.
    pub(super) fn max_back(
        &self,
        dy: &CudaStorage,
        layout: &Layout,
        winners: &Winners,
    ) -> Result<(CudaStorage, Shape)> {
        let (dy, width) = rows(dy, layout)?;
        let count = self.segments.len();
        let mut dx = self.device.alloc_zeros::<f32>(count * width)?;
        launch!(
            self,
            "give_winners",
            [count * width, width],
            &dy,
            winners,
            &self.there.ids,
            &mut dx
        );
        Ok(self.stored(dx, count, width))
    }

    fn stored(&self, y: CudaSlice<f32>, count: usize, width: usize) -> (CudaStorage, Shape) {
        let y = CudaStorage::wrap_cuda_slice(y, self.device.clone());
        (y, (count, width).into())
    }
}

fn start(mut run: LaunchArgs<'_>, threads: usize) -> Result<()> {
    const BLOCK: u32 = 256;
    let blocks = threads.div_ceil(BLOCK as usize);
    let config = LaunchConfig {
        grid_dim: (
            u32::try_from(blocks).map_err(candle_core::Error::wrap)?,
            1,
            1,
        ),
        block_dim: (BLOCK, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: the arguments are those that the kernel takes; ids and offsets stay below the rows of
    // the slices, and a thread beyond the last number does nothing.
    #[expect(unsafe_code, reason = "a kernel can only be launched so")]
    unsafe { run.launch(config) }.w()?;
    Ok(())
}

/// The numbers of contiguous rows, and the width of one.
fn rows<'x>(x: &'x CudaStorage, layout: &Layout) -> Result<(CudaView<'x, f32>, usize)> {
    let (_, width) = layout.shape().dims2()?;
    let Some((start, end)) = layout.contiguous_offsets() else {
        candle_core::bail!("graph operations take contiguous tensors");
    };
    Ok((x.as_cuda_slice::<f32>()?.slice(start..end), width))
}

/// The kernels in the language of the driver.
fn compiled() -> Result<&'static str> {
    static COMPILED: OnceLock<String> = OnceLock::new();
    if let Some(compiled) = COMPILED.get() {
        return Ok(compiled);
    }
    let compiled = compile_ptx(KERNELS)
        .map_err(candle_core::Error::wrap)?
        .to_src();
    Ok(COMPILED.get_or_init(|| compiled))
}
