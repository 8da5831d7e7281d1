//! Products of which one factor is not learned.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, CudaStorage, CustomOp1, Layout, Result, Shape, Storage, Tensor};

use super::on_cpu;

/// `x·wᵀ` with `x` `[rows, in]` constant and `w` `[out, in]` learned.
///
/// candle's own product would also compute the gradient of `x`: a third of the work, for nothing.
pub(crate) fn product_with_constant(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    if !on_cpu(x) || x.track_op() {
        // some devices multiply contiguous factors only, and w may be a few columns of a matrix
        return x.matmul(&w.contiguous()?.t()?);
    }
    w.apply_op1(ProductWithConstant { x: x.clone() })
}

/// `x·wᵀ` with `x` `[rows, in]` learned and `w` `[out, in]` constant, on any device.
///
/// candle's own product would also compute the gradient of `w`, and keep as much memory as the
/// weights themselves for it.
pub(crate) fn product_with_frozen(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    if !x.track_op() {
        return x.matmul(&w.t()?);
    }
    x.contiguous()?
        .apply_op1(ProductWithFrozen { w: w.clone() })
}

struct ProductWithConstant {
    x: Tensor,
}

impl CustomOp1 for ProductWithConstant {
    fn name(&self) -> &'static str {
        "product-with-constant"
    }

    fn cpu_fwd(&self, w: &CpuStorage, w_layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, inner) = self.x.dims2()?;
        let (out, w_inner) = w_layout.shape().dims2()?;
        if inner != w_inner {
            candle_core::bail!("rows of {inner} numbers meet weights for {w_inner}");
        }
        let (x, x_layout) = self.x.storage_and_layout();
        let Storage::Cpu(x) = &*x else {
            candle_core::bail!("this operation runs on the CPU");
        };
        let y = x.matmul(
            w,
            (1, rows, out, inner),
            x_layout,
            &w_layout.transpose(0, 1)?,
        )?;
        Ok((y, (rows, out).into()))
    }

    fn bwd(&self, _w: &Tensor, _y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(grad.t()?.matmul(&self.x)?))
    }
}

struct ProductWithFrozen {
    w: Tensor,
}

impl ProductWithFrozen {
    /// Sizes of the product: (1, rows, out, in).
    fn sizes(&self, x: &Layout) -> Result<(usize, usize, usize, usize)> {
        let (rows, inner) = x.shape().dims2()?;
        let (out, w_inner) = self.w.dims2()?;
        if inner != w_inner {
            candle_core::bail!("rows of {inner} numbers meet weights for {w_inner}");
        }
        Ok((1, rows, out, inner))
    }
}

impl CustomOp1 for ProductWithFrozen {
    fn name(&self) -> &'static str {
        "product-with-frozen"
    }

    fn cpu_fwd(&self, x: &CpuStorage, x_layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let sizes = self.sizes(x_layout)?;
        let (w, w_layout) = self.w.storage_and_layout();
        let Storage::Cpu(w) = &*w else {
            candle_core::bail!("the factors of a product lie on two devices");
        };
        let y = x.matmul(w, sizes, x_layout, &w_layout.transpose(0, 1)?)?;
        Ok((y, (sizes.1, sizes.2).into()))
    }

    fn cuda_fwd(&self, x: &CudaStorage, x_layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let sizes = self.sizes(x_layout)?;
        let (w, w_layout) = self.w.storage_and_layout();
        let Storage::Cuda(w) = &*w else {
            candle_core::bail!("the factors of a product lie on two devices");
        };
        let y = x.matmul(w, sizes, x_layout, &w_layout.transpose(0, 1)?)?;
        Ok((y, (sizes.1, sizes.2).into()))
    }

    fn bwd(&self, _x: &Tensor, _y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(grad.contiguous()?.matmul(&self.w)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::gradient::{spread, worst_error};

    #[test]
    fn constant_product_is_the_product_with_its_gradient() -> Result<()> {
        let x = spread((5, 3), 1).as_tensor().detach();
        let w = spread((4, 3), 2);
        let ours = product_with_constant(&x, &w)?;
        let plain = x.matmul(&w.t()?)?;
        let difference = (ours - plain)?.abs()?.max_all()?.to_scalar::<f32>()?;
        assert!(difference < 1e-6, "{difference}");
        let error = worst_error(std::slice::from_ref(&w), 1e-2, || {
            product_with_constant(&x, &w)?.sqr()?.sum_all()
        })?;
        assert!(error < 2e-3, "{error}");
        Ok(())
    }

    #[test]
    fn product_with_frozen_weights_is_the_product_with_its_gradient() -> Result<()> {
        let x = spread((5, 3), 1);
        let w = spread((4, 3), 2).as_tensor().detach();
        let ours = product_with_frozen(&x, &w)?;
        let plain = x.matmul(&w.t()?)?;
        let difference = (ours - plain)?.abs()?.max_all()?.to_scalar::<f32>()?;
        assert!(difference < 1e-6, "{difference}");
        let error = worst_error(std::slice::from_ref(&x), 1e-2, || {
            product_with_frozen(&x, &w)?.sqr()?.sum_all()
        })?;
        assert!(error < 2e-3, "{error}");
        Ok(())
    }
}
