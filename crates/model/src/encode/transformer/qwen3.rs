//! Qwen3-Embedding: a causal decoder whose last token stands for the text.
//!
//! Zhang et al., "Qwen3 Embedding: Advancing Text Embedding and Reranking", 2025:
//!
//! ```text
//! h ← h + O·attention(rotate(rms(q)), rotate(rms(k)), v)      q, k, v of rms(h), j ≤ i
//! h ← h + D·(silu(G·x) ⊙ U·x)      x = rms(h)
//! y = rms(h)
//! ```
//!
//! Several query heads share a key head; `head_dim` may differ from hidden / heads.

use std::path::Path;

use candle_core::Tensor;
use serde::Deserialize;

use super::attention::{Attend, Attention, Rotation};
use super::files::{Weights, read_config};
use super::ops::{Activation, Gate, Linear, Norm, RmsNorm, gather};
use super::{Batch, Network, Precision, bad_config, check_sizes};
use crate::Result;

#[derive(Deserialize)]
struct Config {
    hidden_size: usize,
    intermediate_size: usize,
    num_attention_heads: usize,
    num_key_value_heads: usize,
    num_hidden_layers: usize,
    max_position_embeddings: usize,
    vocab_size: usize,
    head_dim: Option<usize>,
    rms_norm_eps: f64,
    // newer files keep it under `rope_parameters`
    rope_theta: Option<f64>,
    rope_parameters: Option<RopeParameters>,
    hidden_act: Activation,
    #[serde(default)]
    attention_bias: bool,
}

#[derive(Deserialize)]
struct RopeParameters {
    rope_theta: f64,
}

struct Layer {
    input_norm: Norm,
    qkv: Linear,
    attention: Attention,
    attention_output: Linear,
    inner_norm: Norm,
    gate_up: Linear,
    down: Linear,
}

pub(super) struct Qwen3 {
    words: Tensor, // [vocabulary, hidden]
    layers: Vec<Layer>,
    norm: Norm,
    rotation: Rotation,
    activation: Activation,
    sizes: (usize, usize),
}

/// Longer texts are cut: sines and cosines are kept for so many positions.
const LONGEST: usize = 8192;

impl Qwen3 {
    pub(super) fn load(folder: &Path, precision: Precision) -> Result<Self> {
        let config: Config = read_config(folder)?;
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        check_sizes(folder, hidden, heads, config.max_position_embeddings)?;
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(bad_config(
                folder,
                format!("{heads} query heads cannot share {kv_heads} key heads"),
            ));
        }
        if config.attention_bias {
            return Err(bad_config(folder, "`attention_bias` is not known".into()));
        }
        let theta = config
            .rope_theta
            .or(config.rope_parameters.as_ref().map(|rope| rope.rope_theta))
            .ok_or_else(|| bad_config(folder, "there is no `rope_theta`".into()))?;
        let d = config.head_dim.unwrap_or(hidden / heads);
        let epsilon = config.rms_norm_eps;
        let weights =
            Weights::open(folder, precision)?.behind(&["", "model."], "embed_tokens.weight");
        let layer = |i: usize| -> Result<Layer> {
            let at = |name: &str| format!("layers.{i}.{name}");
            let part = |name: &str, heads: usize| {
                weights.linear_no_bias(&at(&format!("self_attn.{name}_proj")), hidden, heads * d)
            };
            let inner_part = |name: &str| {
                weights.linear_no_bias(&at(&format!("mlp.{name}_proj")), hidden, inner)
            };
            let norms = (
                weights.rms_norm(&at("self_attn.q_norm"), d, epsilon)?,
                weights.rms_norm(&at("self_attn.k_norm"), d, epsilon)?,
            );
            Ok(Layer {
                input_norm: weights.rms_norm(&at("input_layernorm"), hidden, epsilon)?,
                qkv: Linear::stacked(vec![
                    part("q", heads)?,
                    part("k", kv_heads)?,
                    part("v", kv_heads)?,
                ])?,
                attention: Attention {
                    heads,
                    kv_heads,
                    head_dim: d,
                    causal: true,
                    norms: Some(norms),
                },
                attention_output: weights.linear_no_bias(
                    &at("self_attn.o_proj"),
                    heads * d,
                    hidden,
                )?,
                inner_norm: weights.rms_norm(&at("post_attention_layernorm"), hidden, epsilon)?,
                gate_up: Linear::stacked(vec![inner_part("gate")?, inner_part("up")?])?,
                down: weights.linear_no_bias(&at("mlp.down_proj"), inner, hidden)?,
            })
        };
        let frequencies: Vec<f64> = (0..d / 2)
            .map(|k| theta.powf(-2.0 * k as f64 / d as f64))
            .collect();
        let longest = config.max_position_embeddings.min(LONGEST);
        Ok(Self {
            words: weights.matrix("embed_tokens.weight", [config.vocab_size, hidden])?,
            layers: (0..config.num_hidden_layers)
                .map(layer)
                .collect::<Result<_>>()?,
            norm: weights.rms_norm("norm", hidden, epsilon)?,
            rotation: Rotation::new(&frequencies, longest),
            activation: config.hidden_act,
            sizes: (config.vocab_size, longest),
        })
    }
}

impl Network for Qwen3 {
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
        for layer in &self.layers {
            let x = h.apply_op1_no_bwd(&RmsNorm(&layer.input_norm))?;
            let attended = layer.qkv.product(&x)?.apply_op1_no_bwd(&Attend {
                attention: &layer.attention,
                bias: &[],
                rotation: Some(&self.rotation),
                distance: None,
                lengths: &batch.lengths,
            })?;
            h = (h + layer.attention_output.product(&attended)?)?;
            let x = h.apply_op1_no_bwd(&RmsNorm(&layer.inner_norm))?;
            let gated = layer.gate_up.product(&x)?.apply_op1_no_bwd(&Gate {
                activation: self.activation,
                gate_last: false,
            })?;
            h = (h + layer.down.product(&gated)?)?;
        }
        h.apply_op1_no_bwd(&RmsNorm(&self.norm))
    }
}
