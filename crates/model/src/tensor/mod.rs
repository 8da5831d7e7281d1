//! Tensor operations over graphs that candle lacks or is slow at, each with its gradient.
//!
//! ```text
//! gather           y[e] = x[id(e)]
//! segment_sum      y[s] = Σ_{e: id(e)=s} x[e]                    0 for an empty segment
//! segment_mean     y[s] = segment_sum / number of entries        0 for an empty segment
//! segment_max      y[s] = max_{e: id(e)=s} x[e]                  0 for an empty segment
//! segment_softmax  y[e] = exp(x[e] − m) / Σ_{f: id(f)=id(e)} exp(x[f] − m)     m the maximum
//! layer_norm       y = γ·(x − mean x)/√(var x + ε) + β
//! leaky_relu       y = max(x, slope·x)
//! dropout          y = x·b/(1 − p)                               b is 0 with probability p
//! gru              the last state of each sequence               see its file
//! ```
//!
//! Entries are rows, and columns are independent. On the CPU each operation is one fused pass over
//! memory, in parallel over output rows and in an order that does not depend on the number of
//! threads; on a card rows are gathered and added by kernels of our own (`cuda.rs`), and the rest is
//! composed of candle's operations, with the same result.

#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod gru;
pub(crate) mod lanes;
mod norm;
pub(crate) mod panels;
mod product;
mod segment;

use candle_core::{CpuStorage, D, Layout, Storage, StorageRef};
use pulp::{Arch, Simd, WithSimd};

pub use candle_core::{Device, Result, Tensor, Var};
pub use gru::{Order, Sequences, gru};
pub use norm::layer_norm;
pub(crate) use product::{product_with_constant, product_with_frozen};
pub use segment::{Segments, gather, segment_max, segment_mean, segment_softmax, segment_sum};

use crate::Random;

/// The device of this name: `cpu`, `cuda`, or `cuda:N` for card N.
pub fn device(name: &str) -> crate::Result<Device> {
    let unknown = || crate::Error::BadOption {
        option: "device",
        given: name.to_owned(),
        wanted: "`cpu`, `cuda` or `cuda:N`".into(),
    };
    let card = match (name, name.strip_prefix("cuda:")) {
        ("cpu", _) => return Ok(Device::Cpu),
        ("cuda", _) => 0,
        (_, Some(card)) => card.parse().map_err(|_| unknown())?,
        _ => return Err(unknown()),
    };
    if !candle_core::utils::cuda_is_available() {
        return Err(crate::Error::NoCuda);
    }
    Ok(Device::new_cuda(card)?)
}

/// Rows that one thread takes at a time: enough to outweigh the hand-over. Partial sums are made
/// for each such block and added in order, so results do not depend on the number of threads.
pub(crate) const ROWS: usize = 32;

/// `max(x, slope·x)`, for a slope between 0 and 1.
pub fn leaky_relu(x: &Tensor, slope: f64) -> Result<Tensor> {
    // slope·x + (1 − slope)·relu(x): the gradient at 0 is the slope on every device
    (x * slope)? + (x.relu()? * (1.0 - slope))?
}

/// What keeps a row of zeros from being divided by 0.
pub(crate) const TINY: f32 = 1e-12;

/// Rows scaled to length 1.
pub(crate) fn unit_rows(rows: &Tensor) -> Result<Tensor> {
    let length = (rows.sqr()?.sum_keepdim(1)? + f64::from(TINY))?.sqrt()?;
    rows.broadcast_div(&length)
}

/// The softmax along the last axis, of operations that have gradients on every device.
pub(crate) fn softmax(scores: &Tensor) -> Result<Tensor> {
    let highest = scores.max_keepdim(D::Minus1)?.detach();
    let shares = scores.broadcast_sub(&highest)?.exp()?;
    shares.broadcast_div(&shares.sum_keepdim(D::Minus1)?)
}

/// Zeroes each number with probability `rate` and scales the others by `1/(1 − rate)`.
///
/// The mask is drawn on the CPU, so that a seed gives the same mask on every device.
pub fn dropout(x: &Tensor, rate: f32, random: &mut Random) -> Result<Tensor> {
    if rate <= 0.0 {
        return Ok(x.clone());
    }
    let mask = dropout_mask(x.elem_count(), rate, random);
    x * Tensor::from_vec(mask, x.shape(), &Device::Cpu)?.to_device(x.device())?
}

/// Factors of `count` numbers: 0, or `1/(1 − rate)`.
pub(crate) fn dropout_mask(count: usize, rate: f32, random: &mut Random) -> Vec<f32> {
    let keep = 1.0 / (1.0 - rate);
    // sixteen bits decide one number: the rate is met within 2⁻¹⁷
    let bound = (rate * 65536.0).round() as u64;
    let mut mask = Vec::with_capacity(count + 3);
    while mask.len() < count {
        let bits = random.bits();
        mask.extend((0..4).map(|i| match (bits >> (16 * i)) & 0xffff < bound {
            true => 0.0,
            false => keep,
        }));
    }
    mask.truncate(count);
    mask
}

/// Whether `x` lies where the fused operations run.
pub(crate) fn on_cpu(x: &Tensor) -> bool {
    matches!(x.device(), Device::Cpu)
}

/// The numbers of a contiguous f32 storage.
pub(crate) fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => candle_core::bail!("graph operations take contiguous tensors"),
    }
}

/// Read access to the numbers of a contiguous f32 tensor on the CPU.
pub(crate) struct Floats<'a> {
    storage: StorageRef<'a>,
    layout: &'a Layout,
}

impl<'a> Floats<'a> {
    pub(crate) fn of(tensor: &'a Tensor) -> Self {
        let (storage, layout) = tensor.storage_and_layout();
        Self { storage, layout }
    }

    pub(crate) fn values(&self) -> Result<&[f32]> {
        match &*self.storage {
            Storage::Cpu(storage) => floats(storage, self.layout),
            _ => candle_core::bail!("this operation runs on the CPU"),
        }
    }
}

/// Runs `body`, marked `#[inline(always)]`, compiled for the widest vectors of this machine.
///
/// [`Arch::dispatch`] takes closures too, but calls them as `FnOnce`: for a closure that borrows,
/// that is a function of its own, which the compiler need not inline, and then compiles for the
/// narrowest.
#[inline(always)]
pub(crate) fn vectorise<R>(arch: Arch, body: impl FnMut() -> R) -> R {
    arch.dispatch(Body(body))
}

struct Body<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Body<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Adds `other` to `sum`, number by number.
#[inline(always)]
pub(crate) fn add_to(sum: &mut [f32], other: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(other) {
        *sum += x;
    }
}

#[cfg(test)]
pub(crate) mod gradient {
    //! Finite differences: what every operation's gradient is held against.

    use super::{Result, Tensor, Var};

    /// Largest difference between the gradient of `f` and central differences of step `step`,
    /// over all numbers of all `inputs`, as a share of the largest gradient (at least 1).
    pub(crate) fn worst_error(
        inputs: &[Var],
        step: f32,
        f: impl Fn() -> Result<Tensor>,
    ) -> Result<f32> {
        let gradients = f()?.backward()?;
        let mut worst = 0.0f32;
        let mut scale = 1.0f32;
        for input in inputs {
            let gradient = match gradients.get(input) {
                Some(gradient) => gradient.flatten_all()?.to_vec1::<f32>()?,
                None => vec![0.0; input.elem_count()],
            };
            let start = input.as_tensor().copy()?;
            let values = start.flatten_all()?.to_vec1::<f32>()?;
            for (i, analytic) in gradient.into_iter().enumerate() {
                let at = |delta: f32| -> Result<f32> {
                    let mut moved = values.clone();
                    moved[i] += delta;
                    input.set(&Tensor::from_vec(moved, input.shape(), input.device())?)?;
                    f()?.to_scalar::<f32>()
                };
                let numeric = (at(step)? - at(-step)?) / (2.0 * step);
                worst = worst.max((analytic - numeric).abs());
                scale = scale.max(analytic.abs());
            }
            input.set(&start)?;
        }
        Ok(worst / scale)
    }

    /// A variable of shape `shape` with numbers spread over `[-1, 1]`, none of them equal.
    pub(crate) fn spread(shape: (usize, usize), seed: u64) -> Var {
        let mut random = crate::Random::new(seed);
        let values: Vec<f32> = (0..shape.0 * shape.1)
            .map(|_| 2.0 * random.uniform() - 1.0)
            .collect();
        Var::from_vec(values, shape, &candle_core::Device::Cpu).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::gradient::{spread, worst_error};
    use super::*;

    #[test]
    fn leaky_relu_keeps_a_share_of_negative_numbers() -> Result<()> {
        let x = Tensor::new(&[-2.0f32, 0.0, 3.0], &Device::Cpu)?;
        assert_eq!(leaky_relu(&x, 0.2)?.to_vec1::<f32>()?, [-0.4, 0.0, 3.0]);
        Ok(())
    }

    #[test]
    fn leaky_relu_gradient_is_the_finite_difference() -> Result<()> {
        let x = spread((3, 4), 1);
        let error = worst_error(std::slice::from_ref(&x), 1e-3, || {
            leaky_relu(&x, 0.2)?.sqr()?.sum_all()
        })?;
        assert!(error < 2e-3, "{error}");
        Ok(())
    }

    #[test]
    fn dropout_keeps_the_mean_and_follows_its_seed() -> Result<()> {
        let x = Tensor::ones((100, 100), candle_core::DType::F32, &Device::Cpu)?;
        let y = dropout(&x, 0.25, &mut Random::new(5))?;
        let again = dropout(&x, 0.25, &mut Random::new(5))?;
        let values = y.flatten_all()?.to_vec1::<f32>()?;
        assert_eq!(values, again.flatten_all()?.to_vec1::<f32>()?);
        // kept numbers become 1/(1 − 0.25) = 4/3
        assert!(
            values
                .iter()
                .all(|v| *v == 0.0 || (*v - 4.0 / 3.0).abs() < 1e-6)
        );
        let mean = values.iter().sum::<f32>() / 1e4;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
        Ok(())
    }

    #[test]
    fn dropout_gradient_is_its_mask() -> Result<()> {
        let x = spread((2, 5), 2);
        let y = dropout(&x, 0.5, &mut Random::new(9))?;
        let gradient = y.sum_all()?.backward()?;
        let gradient = gradient.get(&x).unwrap().flatten_all()?.to_vec1::<f32>()?;
        let x = x.flatten_all()?.to_vec1::<f32>()?;
        let y = y.flatten_all()?.to_vec1::<f32>()?;
        for ((x, y), g) in x.iter().zip(y).zip(gradient) {
            assert!((x * g - y).abs() < 1e-6);
        }
        Ok(())
    }
}
