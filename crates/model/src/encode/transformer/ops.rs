//! What all networks are made of: products, activations and norms over packed tokens.
//!
//! Texts of a batch lie end to end, `[tokens, width]`, without padding. The work between two
//! matrix products is one pass over memory, in place on the product's own buffer:
//!
//! ```text
//! activate   x ← f(x + b)
//! gate       y = f(x[.., gate]) · x[.., up]
//! add_norm   x ← γ·(z − mean z)/√(var z + ε) + β      z = x + b + residual
//! rms_norm   y = γ·x/√(mean x² + ε)
//! ```

use candle_core::{
    CpuStorage, CustomOp1, DType, Device, InplaceOp1, InplaceOp2, Layout, Result, Shape, Tensor,
};
use pulp::Arch;
use rayon::prelude::*;
use serde::Deserialize;

use crate::encode::simd::{gelu, gelu_tanh, silu, sum_by};
use crate::tensor::panels::Panels;

/// Rows that one thread takes at a time: enough to outweigh the hand-over.
const ROWS: usize = 16;

/// `y = x·Wᵀ`, whose bias `b` is added by the operation that follows.
pub(super) struct Linear {
    weight: Weight,
    pub(super) bias: Vec<f32>,
}

enum Weight {
    /// `[out, in]`
    Whole(Tensor),
    Packed(Panels),
}

impl Linear {
    /// `bias` may be empty.
    pub(super) fn new(weight: Tensor, bias: Vec<f32>) -> Self {
        let weight = Weight::Whole(weight);
        Self { weight, bias }
    }

    /// Rows of `[out, in]` codes of 8 bits with a scale each, packed once: a few tokens are
    /// multiplied with them faster than with a whole matrix.
    pub(super) fn coded(codes: &[u8], scales: &[f32], input: usize, bias: Vec<f32>) -> Self {
        let weight = Weight::Packed(Panels::coded(codes, scales, input));
        Self { weight, bias }
    }

    /// One product in place of several with the same input: their outputs lie side by side.
    pub(super) fn stacked(parts: Vec<Linear>) -> Result<Self> {
        let mut weights = Vec::new();
        for part in &parts {
            match &part.weight {
                Weight::Whole(weight) => weights.push(weight),
                Weight::Packed(_) => {
                    candle_core::bail!("weights are stacked before they are packed")
                }
            }
        }
        let weight = Tensor::cat(&weights, 0)?;
        let bias = parts.into_iter().flat_map(|part| part.bias).collect();
        Ok(Self::new(weight, bias))
    }

    /// `[tokens, in]` to `[tokens, out]`, without the bias.
    pub(super) fn product(&self, x: &Tensor) -> Result<Tensor> {
        match &self.weight {
            Weight::Packed(panels) => x.apply_op1_no_bwd(&Packed(panels)),
            Weight::Whole(weight) if weight.dtype() == DType::F32 => x.matmul(&weight.t()?),
            Weight::Whole(weight) => x.matmul(&weight.to_dtype(DType::F32)?.t()?),
        }
    }
}

struct Packed<'a>(&'a Panels);

impl CustomOp1 for Packed<'_> {
    fn name(&self) -> &'static str {
        "packed"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, width) = layout.shape().dims2()?;
        let x = values(storage, layout)?;
        let mut y = vec![0.0; tokens * self.0.outputs()];
        self.0
            .product(|row| &x[row * width..(row + 1) * width], &mut y);
        Ok((CpuStorage::F32(y), (tokens, self.0.outputs()).into()))
    }
}

/// The non-linear function between two products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Activation {
    #[serde(rename = "gelu")]
    Gelu,
    #[serde(rename = "gelu_new", alias = "gelu_pytorch_tanh", alias = "gelu_fast")]
    GeluTanh,
    #[serde(rename = "silu", alias = "swish")]
    Silu,
    #[serde(rename = "relu")]
    Relu,
}

/// One monomorphic loop for each activation: `$body` sees it as the function `$f`.
macro_rules! for_activation {
    ($activation:expr, $f:ident => $body:expr) => {
        match $activation {
            Activation::Gelu => {
                let $f = gelu;
                $body
            }
            Activation::GeluTanh => {
                let $f = gelu_tanh;
                $body
            }
            Activation::Silu => {
                let $f = silu;
                $body
            }
            Activation::Relu => {
                let $f = |x: f32| x.max(0.0);
                $body
            }
        }
    };
}

/// `x ← f(x + b)` in place; `bias` may be empty.
pub(super) struct Activate<'a> {
    pub(super) bias: &'a [f32],
    pub(super) activation: Activation,
}

impl InplaceOp1 for Activate<'_> {
    fn name(&self) -> &'static str {
        "activate"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let width = layout.dims()[1];
        let zeros;
        let bias = if self.bias.is_empty() {
            zeros = vec![0.0; width];
            &zeros
        } else {
            self.bias
        };
        let arch = Arch::new();
        values_mut(storage, layout)?
            .par_chunks_mut(ROWS * width)
            .for_each(|rows| {
                for_activation!(self.activation, f => arch.dispatch(
                    #[inline(always)]
                    || for row in rows.chunks_exact_mut(width) {
                        for (x, b) in row.iter_mut().zip(bias) {
                            *x = f(*x + b);
                        }
                    }
                ));
            });
        Ok(())
    }
}

/// `y = f(x[.., gate]) · x[.., up]` over rows of two halves.
pub(super) struct Gate {
    pub(super) activation: Activation,
    /// Whether the half that goes through the activation is the second.
    pub(super) gate_last: bool,
}

impl CustomOp1 for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, double) = layout.shape().dims2()?;
        let width = double / 2;
        let x = values(storage, layout)?;
        let mut out = vec![0.0; tokens * width];
        let arch = Arch::new();
        out.par_chunks_mut(ROWS * width)
            .zip(x.par_chunks(ROWS * double))
            .for_each(|(out, x)| {
                for_activation!(self.activation, f => arch.dispatch(
                    #[inline(always)]
                    || for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(double)) {
                        let (first, second) = x.split_at(width);
                        let (gate, up) = if self.gate_last { (second, first) } else { (first, second) };
                        for ((y, g), u) in out.iter_mut().zip(gate).zip(up) {
                            *y = f(*g) * u;
                        }
                    }
                ));
            });
        Ok((CpuStorage::F32(out), (tokens, width).into()))
    }
}

/// Scale and shift of a layer norm, or of an RMS norm when `shift` is empty.
pub(super) struct Norm {
    pub(super) scale: Vec<f32>,
    pub(super) shift: Vec<f32>,
    pub(super) epsilon: f32,
}

/// `x ← LayerNorm(x + b + residual)` in place; `bias` may be empty.
pub(super) struct AddNorm<'a> {
    pub(super) bias: &'a [f32],
    pub(super) norm: &'a Norm,
}

impl AddNorm<'_> {
    #[inline(always)]
    fn row(&self, x: &mut [f32], residual: &[f32]) {
        let width = x.len();
        for (x, r) in x.iter_mut().zip(residual) {
            *x += r;
        }
        for (x, b) in x.iter_mut().zip(self.bias) {
            *x += b;
        }
        let mean = sum_by(width, |i| x[i]) / width as f32;
        let variance = sum_by(width, |i| (x[i] - mean) * (x[i] - mean)) / width as f32;
        let inverse = 1.0 / (variance + self.norm.epsilon).sqrt();
        let affine = self.norm.scale.iter().zip(&self.norm.shift);
        for (x, (scale, shift)) in x.iter_mut().zip(affine) {
            *x = (*x - mean) * inverse * scale + shift;
        }
    }
}

impl InplaceOp2 for AddNorm<'_> {
    fn name(&self) -> &'static str {
        "add-norm"
    }

    fn cpu_fwd(
        &self,
        dst: &mut CpuStorage,
        dst_l: &Layout,
        residual: &CpuStorage,
        residual_l: &Layout,
    ) -> Result<()> {
        let width = dst_l.dims()[1];
        let residual = values(residual, residual_l)?;
        let arch = Arch::new();
        values_mut(dst, dst_l)?
            .par_chunks_mut(ROWS * width)
            .zip(residual.par_chunks(ROWS * width))
            .for_each(|(x, residual)| {
                arch.dispatch(
                    #[inline(always)]
                    || {
                        for (x, r) in x.chunks_exact_mut(width).zip(residual.chunks_exact(width)) {
                            self.row(x, r);
                        }
                    },
                );
            });
        Ok(())
    }
}

/// `y = γ·x/√(mean x² + ε)`.
pub(super) struct RmsNorm<'a>(pub(super) &'a Norm);

impl RmsNorm<'_> {
    /// In place over one row of any width that the scale has.
    #[inline(always)]
    pub(super) fn row(&self, x: &mut [f32]) {
        let inverse =
            1.0 / (sum_by(x.len(), |i| x[i] * x[i]) / x.len() as f32 + self.0.epsilon).sqrt();
        for (x, scale) in x.iter_mut().zip(&self.0.scale) {
            *x *= inverse * scale;
        }
    }
}

impl CustomOp1 for RmsNorm<'_> {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let width = layout.dims()[1];
        let mut out = values(storage, layout)?.to_vec();
        let arch = Arch::new();
        out.par_chunks_mut(ROWS * width).for_each(|rows| {
            arch.dispatch(
                #[inline(always)]
                || rows.chunks_exact_mut(width).for_each(|row| self.row(row)),
            );
        });
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }
}

/// Rows of `table` (in f32 whatever its precision) for `ids`.
pub(super) fn gather(table: &Tensor, ids: &[u32]) -> Result<Tensor> {
    let ids = Tensor::from_slice(ids, ids.len(), &Device::Cpu)?;
    table.index_select(&ids, 0)?.to_dtype(DType::F32)
}

/// The numbers of a contiguous f32 tensor.
pub(super) fn values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let (start, end) = contiguous(layout)?;
    Ok(&storage.as_slice::<f32>()?[start..end])
}

fn values_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    let (start, end) = contiguous(layout)?;
    match storage {
        CpuStorage::F32(values) => Ok(&mut values[start..end]),
        _ => candle_core::bail!("the packed networks compute in f32"),
    }
}

fn contiguous(layout: &Layout) -> Result<(usize, usize)> {
    match layout.contiguous_offsets() {
        Some(range) => Ok(range),
        None => candle_core::bail!("packed activations are contiguous"),
    }
}
