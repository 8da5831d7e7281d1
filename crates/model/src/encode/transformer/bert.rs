//! BERT: the encoder of MiniLM, gte-small, bge and e5.
//!
//! Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", NAACL 2019:
//!
//! ```text
//! h ← LN(word + position + type₀)
//! h ← LN(h + O·attention(h))          for each layer
//! h ← LN(h + W₂·gelu(W₁·h))
//! ```
//!
//! Tensors keep their published names. All tokens are of type 0; the pooler is not used.

use std::path::Path;

use candle_core::Tensor;
use serde::Deserialize;

use super::attention::{Attend, Attention, DistanceBias};
use super::files::{Weights, read_config};
use super::ops::{Activate, Activation, AddNorm, Linear, Norm, gather};
use super::{Batch, Network, Precision, check_sizes};
use crate::Result;

#[derive(Deserialize)]
struct Config {
    hidden_size: usize,
    intermediate_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    max_position_embeddings: usize,
    vocab_size: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    layer_norm_eps: f64,
    hidden_act: Activation,
}

fn two() -> usize {
    2
}

/// One layer with norms after each half, as BERT and MPNet have it.
pub(super) struct PostNormLayer {
    pub(super) qkv: Linear,
    pub(super) attention_output: Linear,
    pub(super) attention_norm: Norm,
    pub(super) intermediate: Linear,
    pub(super) output: Linear,
    pub(super) output_norm: Norm,
}

impl PostNormLayer {
    pub(super) fn forward(
        &self,
        h: &Tensor,
        attention: &Attention,
        distance: Option<&DistanceBias>,
        activation: Activation,
        lengths: &[usize],
    ) -> candle_core::Result<Tensor> {
        let attended = self.qkv.product(h)?.apply_op1_no_bwd(&Attend {
            attention,
            bias: &self.qkv.bias,
            rotation: None,
            distance,
            lengths,
        })?;
        let x = self.attention_output.product(&attended)?;
        x.inplace_op2(
            h,
            &AddNorm {
                bias: &self.attention_output.bias,
                norm: &self.attention_norm,
            },
        )?;
        let inner = self.intermediate.product(&x)?;
        inner.inplace_op1(&Activate {
            bias: &self.intermediate.bias,
            activation,
        })?;
        let y = self.output.product(&inner)?;
        y.inplace_op2(
            &x,
            &AddNorm {
                bias: &self.output.bias,
                norm: &self.output_norm,
            },
        )?;
        Ok(y)
    }
}

pub(super) struct Bert {
    words: Tensor,     // [vocabulary, hidden]
    positions: Tensor, // [positions, hidden]
    first_type: Vec<f32>,
    norm: Norm,
    layers: Vec<PostNormLayer>,
    attention: Attention,
    activation: Activation,
    sizes: (usize, usize),
}

impl Bert {
    pub(super) fn load(folder: &Path, precision: Precision) -> Result<Self> {
        let config: Config = read_config(folder)?;
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let heads = config.num_attention_heads;
        check_sizes(folder, hidden, heads, config.max_position_embeddings)?;
        let weights = Weights::open(folder, precision)?
            .behind(&["", "bert."], "embeddings.word_embeddings.weight");
        let types = weights.matrix(
            "embeddings.token_type_embeddings.weight",
            [config.type_vocab_size, hidden],
        )?;
        let layer = |i: usize| -> Result<PostNormLayer> {
            let at = |name: &str| format!("encoder.layer.{i}.{name}");
            let part =
                |name: &str| weights.linear(&at(&format!("attention.self.{name}")), hidden, hidden);
            Ok(PostNormLayer {
                qkv: Linear::stacked(vec![part("query")?, part("key")?, part("value")?])?,
                attention_output: weights.linear(&at("attention.output.dense"), hidden, hidden)?,
                attention_norm: weights.layer_norm(
                    &at("attention.output.LayerNorm"),
                    hidden,
                    config.layer_norm_eps,
                )?,
                intermediate: weights.linear(&at("intermediate.dense"), hidden, inner)?,
                output: weights.linear(&at("output.dense"), inner, hidden)?,
                output_norm: weights.layer_norm(
                    &at("output.LayerNorm"),
                    hidden,
                    config.layer_norm_eps,
                )?,
            })
        };
        Ok(Self {
            words: weights.matrix(
                "embeddings.word_embeddings.weight",
                [config.vocab_size, hidden],
            )?,
            positions: weights.matrix(
                "embeddings.position_embeddings.weight",
                [config.max_position_embeddings, hidden],
            )?,
            first_type: gather(&types, &[0])?.flatten_all()?.to_vec1()?,
            norm: weights.layer_norm("embeddings.LayerNorm", hidden, config.layer_norm_eps)?,
            layers: (0..config.num_hidden_layers)
                .map(layer)
                .collect::<Result<_>>()?,
            attention: Attention::plain(heads, hidden / heads),
            activation: config.hidden_act,
            sizes: (config.vocab_size, config.max_position_embeddings),
        })
    }
}

impl Network for Bert {
    fn hidden(&self) -> usize {
        self.first_type.len()
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
            &gather(&self.positions, &batch.positions(0))?,
            &AddNorm {
                bias: &self.first_type,
                norm: &self.norm,
            },
        )?;
        for layer in &self.layers {
            h = layer.forward(&h, &self.attention, None, self.activation, &batch.lengths)?;
        }
        Ok(h)
    }
}
