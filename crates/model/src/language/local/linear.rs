//! `y = x·Wᵀ + b` with quantized weights.
//!
//! Formats whose blocks have 32 numbers go to our own kernel (`blocks.rs`) where the processor
//! has it, all others to candle's, which has good ones for blocks of 256.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{CpuStorage, Device, Storage, Tensor};

use super::blocks::Blocks;
use super::gguf::Gguf;
use crate::Result;

/// A matrix, and the bias where there is one.
pub(super) struct Linear {
    weight: Weight, // [out, in]
    bias: Option<Vec<f32>>,
    inputs: usize,
    outputs: usize,
}

enum Weight {
    Candle(Arc<QTensor>),
    Blocks(Blocks),
}

impl Linear {
    /// Reads `NAME.weight` and, if it is there, `NAME.bias`.
    pub(super) fn read(gguf: &mut Gguf, name: &str, outputs: usize, inputs: usize) -> Result<Self> {
        let weight = gguf.matrix(&format!("{name}.weight"), outputs, inputs)?;
        let bias = gguf.vector_or_none(&format!("{name}.bias"), outputs)?;
        Self::new(weight, bias, outputs, inputs)
    }

    pub(super) fn new(
        weight: Arc<QTensor>,
        bias: Option<Vec<f32>>,
        outputs: usize,
        inputs: usize,
    ) -> Result<Self> {
        let weight = match Blocks::of(&weight, outputs, inputs)? {
            Some(blocks) => Weight::Blocks(blocks),
            None => Weight::Candle(weight),
        };
        Ok(Self {
            weight,
            bias,
            inputs,
            outputs,
        })
    }

    /// `[rows, in]` to `[rows, out]`.
    pub(super) fn product(&self, x: &[f32]) -> Result<Vec<f32>> {
        let rows = x.len() / self.inputs;
        let mut y = match &self.weight {
            Weight::Blocks(blocks) => blocks.product(x),
            Weight::Candle(weight) => by_candle(weight, x, rows, self.inputs)?,
        };
        if let Some(bias) = &self.bias {
            for row in y.chunks_exact_mut(self.outputs) {
                row.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
            }
        }
        Ok(y)
    }
}

fn by_candle(weight: &QTensor, x: &[f32], rows: usize, inputs: usize) -> Result<Vec<f32>> {
    let x = Tensor::from_slice(x, (rows, inputs), &Device::Cpu)?;
    let y = x.apply_op1_no_bwd(weight)?;
    let (storage, _) = y.storage_and_layout();
    match &*storage {
        Storage::Cpu(CpuStorage::F32(y)) => Ok(y.clone()),
        _ => Ok(y.flatten_all()?.to_vec1()?),
    }
}
