//! Layer normalisation, one pass forward and one back.
//!
//! Ba, Kiros and Hinton, "Layer Normalization", 2016:
//!
//! ```text
//! y = γ·x̂ + β                 x̂ = (x − mean x)/√(var x + ε)
//! ∂L/∂x = (d − mean d − x̂·mean(d·x̂))/√(var x + ε)          d = γ·∂L/∂y
//! ```

use candle_core::{CpuStorage, CustomOp3, D, Device, Layout, Result, Shape, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::lanes::{dot, moments, scaled_dot};
use super::{Floats, ROWS, add_to, floats, on_cpu};

/// Normalises each row of `x` (`[rows, width]`), then scales by γ and shifts by β (`[width]`).
pub fn layer_norm(x: &Tensor, scale: &Tensor, shift: &Tensor, epsilon: f32) -> Result<Tensor> {
    if on_cpu(x) {
        return x
            .contiguous()?
            .apply_op3(scale, shift, LayerNorm { epsilon });
    }
    composed(x, scale, shift, epsilon)
}

fn composed(x: &Tensor, scale: &Tensor, shift: &Tensor, epsilon: f32) -> Result<Tensor> {
    let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let normal = centred.broadcast_div(&(variance + f64::from(epsilon))?.sqrt()?)?;
    normal.broadcast_mul(scale)?.broadcast_add(shift)
}

struct LayerNorm {
    epsilon: f32,
}

impl CustomOp3 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        scale: &CpuStorage,
        scale_layout: &Layout,
        shift: &CpuStorage,
        shift_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, width) = x_layout.shape().dims2()?;
        let scale = &floats(scale, scale_layout)?[..width];
        let shift = &floats(shift, shift_layout)?[..width];
        let mut y = floats(x, x_layout)?.to_vec();
        let arch = Arch::new();
        y.par_chunks_mut(ROWS * width).for_each(|rows| {
            arch.dispatch(Normalise {
                rows,
                scale,
                shift,
                epsilon: self.epsilon,
            });
        });
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        scale: &Tensor,
        _shift: &Tensor,
        _y: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (rows, width) = x.dims2()?;
        let grad = grad.contiguous()?;
        let (x, scale, grad) = (Floats::of(x), Floats::of(scale), Floats::of(&grad));
        let (x, scale, grad) = (x.values()?, scale.values()?, grad.values()?);
        let mut dx = vec![0.0; rows * width];
        let arch = Arch::new();
        let block = ROWS * width;
        // γ's and β's share of each block, side by side
        let partial: Vec<Vec<f32>> = dx
            .par_chunks_mut(block)
            .zip(x.par_chunks(block))
            .zip(grad.par_chunks(block))
            .map(|((dx, x), grad)| {
                let mut learned = vec![0.0; 2 * width];
                let (dscale, dshift) = learned.split_at_mut(width);
                arch.dispatch(Back {
                    x,
                    grad,
                    scale,
                    epsilon: self.epsilon,
                    dx,
                    dscale,
                    dshift,
                });
                learned
            })
            .collect();
        let mut learned = vec![0.0; 2 * width];
        partial.iter().for_each(|part| add_to(&mut learned, part));
        let dshift = learned.split_off(width);
        let tensor = |values, shape: Shape| Tensor::from_vec(values, shape, &Device::Cpu);
        Ok((
            Some(tensor(dx, (rows, width).into())?),
            Some(tensor(learned, width.into())?),
            Some(tensor(dshift, width.into())?),
        ))
    }
}

/// Some rows forward, in place.
struct Normalise<'a> {
    rows: &'a mut [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    epsilon: f32,
}

impl WithSimd for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for row in self.rows.chunks_exact_mut(self.scale.len()) {
            let (mean, inverse) = moments(simd, row, self.epsilon);
            for ((x, scale), shift) in row.iter_mut().zip(self.scale).zip(self.shift) {
                *x = (*x - mean) * inverse * scale + shift;
            }
        }
    }
}

/// Some rows back; what γ and β get from them is added up.
struct Back<'a> {
    x: &'a [f32],
    grad: &'a [f32],
    scale: &'a [f32],
    epsilon: f32,
    dx: &'a mut [f32],
    dscale: &'a mut [f32],
    dshift: &'a mut [f32],
}

impl WithSimd for Back<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.scale.len();
        let (dscale, dshift) = (&mut self.dscale[..width], &mut self.dshift[..width]);
        let rows = self
            .x
            .chunks_exact(width)
            .zip(self.grad.chunks_exact(width));
        for (dx, (x, grad)) in self.dx.chunks_exact_mut(width).zip(rows) {
            let (mean, inverse) = moments(simd, x, self.epsilon);
            for c in 0..width {
                let normal = (x[c] - mean) * inverse;
                dscale[c] += grad[c] * normal;
                dshift[c] += grad[c];
                dx[c] = normal;
            }
            let d_mean = dot(simd, self.scale, grad) / width as f32;
            let d_dot = scaled_dot(simd, self.scale, grad, dx) / width as f32;
            for c in 0..width {
                dx[c] = (self.scale[c] * grad[c] - d_mean - dx[c] * d_dot) * inverse;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::gradient::{spread, worst_error};

    #[test]
    fn rows_are_centred_scaled_and_shifted() -> Result<()> {
        // mean 2, variance (1 + 1)/2 = 1: normalised −1, 1; times 2, 3 plus 10, 20
        let x = Tensor::new(&[[1.0f32, 3.0]], &Device::Cpu)?;
        let scale = Tensor::new(&[2.0f32, 3.0], &Device::Cpu)?;
        let shift = Tensor::new(&[10.0f32, 20.0], &Device::Cpu)?;
        let y = layer_norm(&x, &scale, &shift, 0.0)?.to_vec2::<f32>()?;
        assert_eq!(y, [[8.0, 23.0]]);
        // an empty neighbourhood is a row of zeros, and becomes β
        let zero = layer_norm(&x.zeros_like()?, &scale, &shift, 1e-5)?;
        assert_eq!(zero.to_vec2::<f32>()?, [[10.0, 20.0]]);
        Ok(())
    }

    #[test]
    fn fused_and_composed_agree_and_gradients_are_finite_differences() -> Result<()> {
        let (x, weight) = (spread((5, 6), 1), spread((5, 6), 4).as_tensor().detach());
        let scale = candle_core::Var::from_tensor(&spread((1, 6), 2).flatten_all()?.detach())?;
        let shift = candle_core::Var::from_tensor(&spread((1, 6), 3).flatten_all()?.detach())?;
        let all = [x.clone(), scale.clone(), shift.clone()];
        let fused = || (layer_norm(&x, &scale, &shift, 1e-5)? * &weight)?.sum_all();
        let plain = || (composed(&x, &scale, &shift, 1e-5)? * &weight)?.sum_all();
        assert!((fused()?.to_scalar::<f32>()? - plain()?.to_scalar::<f32>()?).abs() < 1e-5);
        let error = worst_error(&all, 1e-3, fused)?;
        assert!(error < 5e-3, "{error}");
        let error = worst_error(&all, 1e-3, plain)?;
        assert!(error < 5e-3, "{error}");
        Ok(())
    }
}
