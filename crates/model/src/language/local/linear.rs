//! `y = x·Wᵀ + b` with quantized weights.
//!
//! Formats whose blocks have 32 numbers go to our own kernel (`blocks.rs`) where the processor
//! has it, all others to candle's, which has good ones for blocks of 256.

use std::sync::Arc;

use candle_core::quantized::{QStorage, QTensor};
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

/// Several matrices with the same input. Where they have the same format they lie in one, so that
/// a token needs one pass over the threads and not several.
pub(super) struct Stacked {
    parts: Vec<Linear>,
    sizes: Vec<usize>,
}

impl Stacked {
    /// Reads each name with its number of outputs.
    pub(super) fn read(gguf: &mut Gguf, names: &[(String, usize)], inputs: usize) -> Result<Self> {
        let sizes: Vec<usize> = names.iter().map(|(_, outputs)| *outputs).collect();
        let mut weights = Vec::new();
        let mut biases = Vec::new();
        for (name, outputs) in names {
            weights.push(gguf.matrix(&format!("{name}.weight"), *outputs, inputs)?);
            biases.push(gguf.vector_or_none(&format!("{name}.bias"), *outputs)?);
        }
        let kind = weights[0].dtype();
        let same = weights.iter().all(|w| w.dtype() == kind)
            && biases.iter().all(|b| b.is_some() == biases[0].is_some());
        if !same {
            let each = weights.into_iter().zip(biases).zip(&sizes);
            let parts =
                each.map(|((weight, bias), &outputs)| Linear::new(weight, bias, outputs, inputs));
            return Ok(Self {
                parts: parts.collect::<Result<_>>()?,
                sizes,
            });
        }
        let outputs = sizes.iter().sum();
        let mut data = Vec::new();
        for weight in weights {
            data.extend_from_slice(&weight.data()?);
        }
        let storage = QStorage::from_data(data.into(), &Device::Cpu, kind)?;
        let weight = Arc::new(QTensor::new(storage, (outputs, inputs))?);
        let bias: Option<Vec<Vec<f32>>> = biases.into_iter().collect();
        let whole = Linear::new(weight, bias.map(|b| b.concat()), outputs, inputs)?;
        Ok(Self {
            parts: vec![whole],
            sizes,
        })
    }

    /// `[rows, in]` to one `[rows, out]` for each name.
    pub(super) fn products(&self, x: &[f32]) -> Result<Vec<Vec<f32>>> {
        if self.parts.len() == self.sizes.len() {
            return self.parts.iter().map(|part| part.product(x)).collect();
        }
        let whole = self.parts[0].product(x)?;
        let width = self.sizes.iter().sum();
        let mut from = 0;
        let mut products = Vec::with_capacity(self.sizes.len());
        for &size in &self.sizes {
            let mut product = Vec::with_capacity(whole.len() / width * size);
            for row in whole.chunks_exact(width) {
                product.extend_from_slice(&row[from..from + size]);
            }
            from += size;
            products.push(product);
        }
        Ok(products)
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
