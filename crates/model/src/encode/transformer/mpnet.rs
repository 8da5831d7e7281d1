//! MPNet: BERT with a bias by distance in every layer's attention.
//!
//! Song et al., "MPNet: Masked and Permuted Pre-training", NeurIPS 2020. As [`super::bert`],
//! without token types, and with
//!
//! ```text
//! score(i, j) = q_i·k_j/√d + R[bucket(j − i), head]
//! ```
//!
//! R is `encoder.relative_attention_bias`, one table for all layers. Buckets are T5's: half of
//! them for keys to the right; of each half the first half one distance each, the rest growing
//! by logarithm up to 128. Positions start at 2 (`padding_idx + 1`).

use std::path::Path;

use candle_core::{DType, Tensor};
use serde::Deserialize;

use super::attention::{Attention, DistanceBias};
use super::bert::PostNormLayer;
use super::files::{Weights, read_config};
use super::ops::{Activation, AddNorm, Linear, Norm, gather};
use super::{Batch, Network, Precision, check_sizes};
use crate::Result;

const FIRST_POSITION: usize = 2;

#[derive(Deserialize)]
struct Config {
    hidden_size: usize,
    intermediate_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    max_position_embeddings: usize,
    relative_attention_num_buckets: usize,
    vocab_size: usize,
    layer_norm_eps: f64,
    hidden_act: Activation,
}

pub(super) struct Mpnet {
    words: Tensor,     // [vocabulary, hidden]
    positions: Tensor, // [positions, hidden]
    norm: Norm,
    layers: Vec<PostNormLayer>,
    distance: DistanceBias,
    attention: Attention,
    activation: Activation,
    sizes: (usize, usize),
}

impl Mpnet {
    pub(super) fn load(folder: &Path, precision: Precision) -> Result<Self> {
        let config: Config = read_config(folder)?;
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let heads = config.num_attention_heads;
        let reach = config
            .max_position_embeddings
            .saturating_sub(FIRST_POSITION);
        check_sizes(folder, hidden, heads, reach)?;
        let weights = Weights::open(folder, precision)?
            .behind(&["", "mpnet."], "embeddings.word_embeddings.weight");
        let layer = |i: usize| -> Result<PostNormLayer> {
            let at = |name: &str| format!("encoder.layer.{i}.{name}");
            let part =
                |name: &str| weights.linear(&at(&format!("attention.attn.{name}")), hidden, hidden);
            let norm = |name: &str| weights.layer_norm(&at(name), hidden, config.layer_norm_eps);
            Ok(PostNormLayer {
                qkv: Linear::stacked(vec![part("q")?, part("k")?, part("v")?])?,
                attention_output: part("o")?,
                attention_norm: norm("attention.LayerNorm")?,
                intermediate: weights.linear(&at("intermediate.dense"), hidden, inner)?,
                output: weights.linear(&at("output.dense"), inner, hidden)?,
                output_norm: norm("output.LayerNorm")?,
            })
        };
        let buckets = config.relative_attention_num_buckets;
        let table = weights
            .matrix("encoder.relative_attention_bias.weight", [buckets, heads])?
            .to_dtype(DType::F32)?
            .to_vec2::<f32>()?;
        Ok(Self {
            words: weights.matrix(
                "embeddings.word_embeddings.weight",
                [config.vocab_size, hidden],
            )?,
            positions: weights.matrix(
                "embeddings.position_embeddings.weight",
                [config.max_position_embeddings, hidden],
            )?,
            norm: weights.layer_norm("embeddings.LayerNorm", hidden, config.layer_norm_eps)?,
            layers: (0..config.num_hidden_layers)
                .map(layer)
                .collect::<Result<_>>()?,
            distance: DistanceBias::new(heads, reach, |head, delta| {
                table
                    .get(bucket(delta, buckets))
                    .map_or(0.0, |row| row[head])
            }),
            attention: Attention::plain(heads, hidden / heads),
            activation: config.hidden_act,
            sizes: (config.vocab_size, reach),
        })
    }
}

/// T5's bucket of the distance `delta` = key − query.
fn bucket(delta: isize, buckets: usize) -> usize {
    const FAR: f64 = 128.0;
    let half = buckets / 2;
    let side = if delta > 0 { half } else { 0 };
    let distance = delta.unsigned_abs();
    let exact = half / 2;
    if distance < exact {
        return side + distance;
    }
    let exact_f = exact as f64;
    let grown = (distance as f64 / exact_f).ln() / (FAR / exact_f).ln() * (half - exact) as f64;
    side + (exact + grown as usize).min(half.saturating_sub(1))
}

impl Network for Mpnet {
    fn hidden(&self) -> usize {
        self.norm.scale.len()
    }

    fn vocabulary(&self) -> usize {
        self.sizes.0
    }

    fn max_tokens(&self) -> usize {
        self.sizes.1
    }

    fn forward(&self, batch: &Batch) -> candle_core::Result<Tensor> {
        let mut h = gather(&self.words, &batch.ids)?;
        h.inplace_op2(
            &gather(&self.positions, &batch.positions(FIRST_POSITION))?,
            &AddNorm {
                bias: &[],
                norm: &self.norm,
            },
        )?;
        for layer in &self.layers {
            let distance = Some(&self.distance);
            h = layer.forward(
                &h,
                &self.attention,
                distance,
                self.activation,
                &batch.lengths,
            )?;
        }
        Ok(h)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_t5() {
        // 32 buckets: 16 a side, 8 exact; 8 + ln(16/8)/ln(128/8)·8 = 8 + 2; 128 and beyond share the last
        assert_eq!(bucket(0, 32), 0);
        assert_eq!(bucket(-7, 32), 7);
        assert_eq!(bucket(7, 32), 23);
        assert_eq!(bucket(-8, 32), 8);
        assert_eq!(bucket(-17, 32), 10);
        assert_eq!(bucket(16, 32), 26);
        assert_eq!(bucket(127, 32), 31);
        assert_eq!(bucket(-500, 32), 15);
    }
}
