//! The gte v1.5 family (`model_type` = `new`): BERT with rotated positions and a gated inner layer.
//!
//! Zhang et al., "mGTE: Generalized Long-Context Text Representation and Reranking Models", 2024:
//!
//! ```text
//! h ← LN(word + type₀)
//! h ← LN(h + O·attention(rotate(q), rotate(k), v))      for each layer
//! h ← LN(h + D·(u ⊙ gelu(g)))      [u | g] = U·h
//! ```
//!
//! Rotation frequencies are θ^(−2k/d); with NTK scaling by s, (θ·s)^(−2k/d) / s^(2/d).
//! Type embeddings may be absent.

use std::path::Path;

use candle_core::Tensor;
use serde::Deserialize;

use super::attention::{Attend, Attention, Rotation};
use super::files::{Weights, read_config};
use super::ops::{Activation, AddNorm, Gate, Linear, Norm, gather};
use super::{Batch, Network, Precision, bad_config, check_sizes};
use crate::Result;

#[derive(Deserialize)]
struct Config {
    hidden_size: usize,
    intermediate_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    max_position_embeddings: usize,
    vocab_size: usize,
    #[serde(default)]
    type_vocab_size: usize,
    layer_norm_eps: f64,
    hidden_act: Activation,
    position_embedding_type: String,
    rope_theta: f64,
    rope_scaling: Option<Scaling>,
}

#[derive(Deserialize)]
struct Scaling {
    #[serde(rename = "type", alias = "rope_type")]
    kind: String,
    factor: f64,
}

struct Layer {
    qkv: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    up_gate: Linear,
    down: Linear,
    output_norm: Norm,
}

pub(super) struct Gte {
    words: Tensor, // [vocabulary, hidden]
    first_type: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    attention: Attention,
    rotation: Rotation,
    activation: Activation,
    sizes: (usize, usize),
}

impl Gte {
    pub(super) fn load(folder: &Path, precision: Precision) -> Result<Self> {
        let config: Config = read_config(folder)?;
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let heads = config.num_attention_heads;
        check_sizes(folder, hidden, heads, config.max_position_embeddings)?;
        if config.position_embedding_type != "rope" {
            let kind = &config.position_embedding_type;
            return Err(bad_config(
                folder,
                format!("`position_embedding_type` is `{kind}`, and only `rope` is known"),
            ));
        }
        let weights = Weights::open(folder, precision)?
            .behind(&["", "new."], "embeddings.word_embeddings.weight");
        let layer = |i: usize| -> Result<Layer> {
            let at = |name: &str| format!("encoder.layer.{i}.{name}");
            let norm = |name: &str| weights.layer_norm(&at(name), hidden, config.layer_norm_eps);
            Ok(Layer {
                qkv: weights.linear(&at("attention.qkv_proj"), hidden, 3 * hidden)?,
                attention_output: weights.linear(&at("attention.o_proj"), hidden, hidden)?,
                attention_norm: norm("attn_ln")?,
                up_gate: weights.linear_no_bias(&at("mlp.up_gate_proj"), hidden, 2 * inner)?,
                down: weights.linear(&at("mlp.down_proj"), inner, hidden)?,
                output_norm: norm("mlp_ln")?,
            })
        };
        let first_type = if config.type_vocab_size > 0 {
            let shape = [config.type_vocab_size, hidden];
            let types = weights.matrix("embeddings.token_type_embeddings.weight", shape)?;
            gather(&types, &[0])?.flatten_all()?.to_vec1()?
        } else {
            vec![]
        };
        let frequencies = frequencies(folder, &config, hidden / heads)?;
        Ok(Self {
            words: weights.matrix(
                "embeddings.word_embeddings.weight",
                [config.vocab_size, hidden],
            )?,
            first_type,
            norm: weights.layer_norm("embeddings.LayerNorm", hidden, config.layer_norm_eps)?,
            layers: (0..config.num_hidden_layers)
                .map(layer)
                .collect::<Result<_>>()?,
            attention: Attention::plain(heads, hidden / heads),
            rotation: Rotation::new(&frequencies, config.max_position_embeddings),
            activation: config.hidden_act,
            sizes: (config.vocab_size, config.max_position_embeddings),
        })
    }
}

fn frequencies(folder: &Path, config: &Config, d: usize) -> Result<Vec<f64>> {
    let scale = match &config.rope_scaling {
        None => 1.0,
        Some(scaling) if scaling.kind == "ntk" => scaling.factor,
        Some(scaling) => {
            return Err(bad_config(
                folder,
                format!(
                    "`rope_scaling` is of type `{}`, and only `ntk` is known",
                    scaling.kind
                ),
            ));
        }
    };
    Ok((0..d / 2)
        .map(|k| {
            (config.rope_theta * scale).powf(-2.0 * k as f64 / d as f64)
                / scale.powf(2.0 / d as f64)
        })
        .collect())
}

impl Network for Gte {
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
            &h.zeros_like()?,
            &AddNorm {
                bias: &self.first_type,
                norm: &self.norm,
            },
        )?;
        for layer in &self.layers {
            let attended = layer.qkv.product(&h)?.apply_op1_no_bwd(&Attend {
                attention: &self.attention,
                bias: &layer.qkv.bias,
                rotation: Some(&self.rotation),
                distance: None,
                lengths: &batch.lengths,
            })?;
            let x = layer.attention_output.product(&attended)?;
            x.inplace_op2(
                &h,
                &AddNorm {
                    bias: &layer.attention_output.bias,
                    norm: &layer.attention_norm,
                },
            )?;
            let gated = layer.up_gate.product(&x)?.apply_op1_no_bwd(&Gate {
                activation: self.activation,
                gate_last: true,
            })?;
            h = layer.down.product(&gated)?;
            h.inplace_op2(
                &x,
                &AddNorm {
                    bias: &layer.down.bias,
                    norm: &layer.output_norm,
                },
            )?;
        }
        Ok(h)
    }
}
