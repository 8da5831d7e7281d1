//! The decoder on a graphics card: the equations of `decoder.rs`, as candle's tensors.
//!
//! Matrices stay quantized in the card's memory. Logits come back to the processor, which picks
//! the token.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Device, Module, Tensor};

use super::Engine;
use super::attention::Heads;
use super::family::{Rotation, Shape};
use super::frozen::normed;
use super::gguf::Gguf;
use crate::Result;
use crate::tensor::softmax;

pub(super) struct Card {
    shape: Shape,
    device: Device,
    /// In the processor's memory: a row is read for each token, and no more.
    embedding: Arc<QTensor>,
    layers: Vec<Layer>,
    norm: Tensor,
    output: QMatMul,
    stretch: Option<Vec<f32>>,
    tokens: Vec<u32>,
    caches: Vec<Option<Cache>>,
}

struct Layer {
    attention_norm: Tensor,
    q: Linear,
    k: Linear,
    v: Linear,
    q_norm: Option<Tensor>,
    k_norm: Option<Tensor>,
    o: Linear,
    attention_post_norm: Option<Tensor>,
    feed_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
    feed_post_norm: Option<Tensor>,
    heads: Heads,
}

/// Keys and values of one layer, `[key heads, positions, size]`.
struct Cache {
    keys: Tensor,
    values: Tensor,
}

struct Linear {
    weight: QMatMul,
    bias: Option<Tensor>,
}

impl Linear {
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.weight.forward(x)?;
        Ok(match &self.bias {
            Some(bias) => y.broadcast_add(bias)?,
            None => y,
        })
    }
}

/// Reads a file's tensors into a card's memory.
struct Reader<'a> {
    gguf: &'a mut Gguf,
    device: &'a Device,
}

impl Reader<'_> {
    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<Linear> {
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"), outputs, inputs)?,
            bias: self.vector_or_none(&format!("{name}.bias"), outputs)?,
        })
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<QMatMul> {
        let weight = self.gguf.matrix_on(name, outputs, inputs, self.device)?;
        Ok(QMatMul::from_arc(weight)?)
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Tensor> {
        let values = self.gguf.vector(name, length)?;
        Ok(Tensor::from_vec(values, length, self.device)?)
    }

    fn vector_or_none(&mut self, name: &str, length: usize) -> Result<Option<Tensor>> {
        if self.gguf.has_tensor(name) {
            return self.vector(name, length).map(Some);
        }
        Ok(None)
    }
}

impl Card {
    pub(super) fn read(
        gguf: &mut Gguf,
        shape: Shape,
        vocabulary: usize,
        device: &Device,
    ) -> Result<Self> {
        let (width, heads) = (shape.width, shape.heads.clone());
        let embedding = gguf.matrix("token_embd.weight", vocabulary, width)?;
        let stretch = gguf.vector_or_none("rope_freqs.weight", shape.rotation.size / 2)?;
        let mut reader = Reader { gguf, device };
        let output = if reader.gguf.has_tensor("output.weight") {
            reader.matrix("output.weight", vocabulary, width)?
        } else {
            reader.matrix("token_embd.weight", vocabulary, width)?
        };
        let (asked, kept) = (heads.queries * heads.size, heads.keys * heads.size);
        let mut layers = Vec::with_capacity(shape.layers);
        for i in 0..shape.layers {
            let name = |rest: &str| format!("blk.{i}.{rest}");
            let norm = |rest: &str| format!("blk.{i}.{rest}.weight");
            layers.push(Layer {
                attention_norm: reader.vector(&norm("attn_norm"), width)?,
                q: reader.linear(&name("attn_q"), asked, width)?,
                k: reader.linear(&name("attn_k"), kept, width)?,
                v: reader.linear(&name("attn_v"), kept, width)?,
                q_norm: reader.vector_or_none(&norm("attn_q_norm"), heads.size)?,
                k_norm: reader.vector_or_none(&norm("attn_k_norm"), heads.size)?,
                o: reader.linear(&name("attn_output"), width, asked)?,
                attention_post_norm: reader.vector_or_none(&norm("post_attention_norm"), width)?,
                feed_norm: reader.vector(&norm("ffn_norm"), width)?,
                gate: reader.linear(&name("ffn_gate"), shape.feed_forward, width)?,
                up: reader.linear(&name("ffn_up"), shape.feed_forward, width)?,
                down: reader.linear(&name("ffn_down"), width, shape.feed_forward)?,
                feed_post_norm: reader.vector_or_none(&norm("post_ffw_norm"), width)?,
                heads: Heads {
                    window: shape.window(i),
                    ..heads.clone()
                },
            });
        }
        Ok(Self {
            norm: reader.vector("output_norm.weight", width)?,
            device: device.clone(),
            embedding,
            layers,
            output,
            stretch,
            tokens: Vec::new(),
            caches: (0..shape.layers).map(|_| None).collect(),
            shape,
        })
    }

    fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        let ids = Tensor::from_slice(tokens, tokens.len(), &Device::Cpu)?;
        let x = self.embedding.embedding(&ids)?.to_device(&self.device)?;
        Ok(if self.shape.is_gemma() {
            (x * f64::from(self.shape.width as u32).sqrt())?
        } else {
            x
        })
    }

    fn turn(&self, rotation: &Rotation, tokens: usize) -> Result<Turn> {
        let angles = rotation.angles(self.stretch.as_deref(), self.tokens.len(), tokens);
        let (cosine, sine): (Vec<f32>, Vec<f32>) = angles.into_iter().unzip();
        let shape = (1, tokens, rotation.size / 2);
        Ok(Turn {
            cosine: Tensor::from_vec(cosine, shape, &self.device)?,
            sine: Tensor::from_vec(sine, shape, &self.device)?,
            neighbours: rotation.neighbours,
        })
    }

    /// 0 where a token may look, and −∞ elsewhere, `[tokens, positions]`; none where each looks
    /// everywhere.
    fn mask(&self, tokens: usize, window: Option<usize>) -> Result<Option<Tensor>> {
        let before = self.tokens.len();
        let all = before + tokens;
        if tokens == 1 && window.is_none_or(|window| all <= window) {
            return Ok(None);
        }
        let mut mask = Vec::with_capacity(tokens * all);
        for token in before..all {
            let first = window.map_or(0, |window| (token + 1).saturating_sub(window));
            mask.extend((0..all).map(|at| match at {
                at if (first..=token).contains(&at) => 0.0f32,
                _ => f32::NEG_INFINITY,
            }));
        }
        Ok(Some(Tensor::from_vec(mask, (tokens, all), &self.device)?))
    }

    fn attend(
        &self,
        layer: &Layer,
        x: &Tensor,
        turn: &Turn,
        mask: Option<&Tensor>,
        cache: &mut Option<Cache>,
    ) -> Result<Tensor> {
        let tokens = x.dim(0)?;
        let heads = &layer.heads;
        let n = self.normed(x, &layer.attention_norm)?;
        // [heads, tokens, size]
        let split = |rows: Tensor, count: usize| -> Result<Tensor> {
            Ok(rows
                .reshape((tokens, count, heads.size))?
                .transpose(0, 1)?
                .contiguous()?)
        };
        let normed = |rows: Tensor, norm: &Option<Tensor>| match norm {
            Some(norm) => self.normed(&rows, norm),
            None => Ok(rows),
        };
        let q = normed(split(layer.q.apply(&n)?, heads.queries)?, &layer.q_norm)?;
        let k = normed(split(layer.k.apply(&n)?, heads.keys)?, &layer.k_norm)?;
        let (q, mut keys) = (turn.apply(&q)?, turn.apply(&k)?);
        let mut values = split(layer.v.apply(&n)?, heads.keys)?;
        if let Some(cache) = cache {
            keys = Tensor::cat(&[&cache.keys, &keys], 1)?;
            values = Tensor::cat(&[&cache.values, &values], 1)?;
        }
        // query heads that share a key head are rows of one product
        let group = heads.queries / heads.keys;
        let all = keys.dim(1)?;
        let q = q.reshape((heads.keys, group * tokens, heads.size))?;
        let mut scores = (q.matmul(&keys.t()?)? * f64::from(heads.scale))?;
        if let Some(cap) = heads.cap.map(f64::from) {
            scores = ((scores / cap)?.tanh()? * cap)?;
        }
        if let Some(mask) = mask {
            scores = scores
                .reshape((heads.queries, tokens, all))?
                .broadcast_add(mask)?
                .reshape((heads.keys, group * tokens, all))?;
        }
        let mixed = softmax(&scores)?
            .matmul(&values)?
            .reshape((heads.queries, tokens, heads.size))?
            .transpose(0, 1)?
            .reshape((tokens, heads.queries * heads.size))?;
        *cache = Some(Cache { keys, values });
        normed(layer.o.apply(&mixed)?, &layer.attention_post_norm)
    }

    fn feed(&self, layer: &Layer, x: &Tensor) -> Result<Tensor> {
        let n = self.normed(x, &layer.feed_norm)?;
        let gate = layer.gate.apply(&n)?;
        let gate = if self.shape.is_gemma() {
            gate.gelu()?
        } else {
            gate.silu()?
        };
        let out = layer.down.apply(&(gate * layer.up.apply(&n)?)?)?;
        match &layer.feed_post_norm {
            Some(norm) => self.normed(&out, norm),
            None => Ok(out),
        }
    }

    /// `γ·x/√(mean x² + ε)` along the last axis.
    fn normed(&self, x: &Tensor, gain: &Tensor) -> Result<Tensor> {
        normed(x, gain, self.shape.epsilon)
    }

    fn logits(&self, tokens: &[u32], caches: &mut [Option<Cache>]) -> Result<Vec<f32>> {
        let count = tokens.len();
        let far = (
            self.turn(&self.shape.rotation, count)?,
            self.mask(count, None)?,
        );
        let mut near = None;
        let mut x = self.embed(tokens)?;
        for (layer, cache) in self.layers.iter().zip(caches) {
            let (turn, mask) = match (layer.heads.window, &near) {
                (None, _) => &far,
                (Some(_), Some(near)) => near,
                (window, None) => &*near.insert((
                    self.turn(&self.shape.window_rotation, count)?,
                    self.mask(count, window)?,
                )),
            };
            x = (&x + self.attend(layer, &x, turn, mask.as_ref(), cache)?)?;
            x = (&x + self.feed(layer, &x)?)?;
        }
        let last = self.normed(&x.narrow(0, count - 1, 1)?.contiguous()?, &self.norm)?;
        let mut logits = self.output.forward(&last)?;
        if let Some(cap) = self.shape.final_cap.map(f64::from) {
            logits = ((logits / cap)?.tanh()? * cap)?;
        }
        Ok(logits.flatten_all()?.to_vec1()?)
    }
}

impl Engine for Card {
    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        for cache in &mut self.caches {
            let shorter = cache.take().filter(|_| length > 0).and_then(|cache| {
                let length = length.min(cache.keys.dim(1).ok()?);
                Some(Cache {
                    keys: cache.keys.narrow(1, 0, length).ok()?,
                    values: cache.values.narrow(1, 0, length).ok()?,
                })
            });
            *cache = shorter;
        }
    }

    fn read_on(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let mut caches = std::mem::take(&mut self.caches);
        let logits = self.logits(tokens, &mut caches);
        self.caches = caches;
        self.tokens.extend_from_slice(tokens);
        logits
    }
}

/// The turn of each pair at each position.
struct Turn {
    cosine: Tensor, // [1, tokens, pairs]
    sine: Tensor,
    neighbours: bool,
}

impl Turn {
    /// Turns each pair of `[heads, tokens, size]`; what lies behind the pairs stays.
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let (heads, tokens, size) = x.dims3()?;
        let pairs = self.cosine.dim(2)?;
        let turned = x.narrow(2, 0, 2 * pairs)?;
        let (a, b) = if self.neighbours {
            let split = turned.reshape((heads, tokens, pairs, 2))?;
            (
                split.narrow(3, 0, 1)?.squeeze(3)?,
                split.narrow(3, 1, 1)?.squeeze(3)?,
            )
        } else {
            (turned.narrow(2, 0, pairs)?, turned.narrow(2, pairs, pairs)?)
        };
        let by = |x: &Tensor, factor: &Tensor| x.broadcast_mul(factor);
        let left = (by(&a, &self.cosine)? - by(&b, &self.sine)?)?;
        let right = (by(&a, &self.sine)? + by(&b, &self.cosine)?)?;
        let turned = if self.neighbours {
            Tensor::stack(&[left, right], 3)?.reshape((heads, tokens, 2 * pairs))?
        } else {
            Tensor::cat(&[left, right], 2)?
        };
        if 2 * pairs == size {
            return Ok(turned);
        }
        let rest = x.narrow(2, 2 * pairs, size - 2 * pairs)?;
        Ok(Tensor::cat(&[turned, rest.contiguous()?], 2)?)
    }
}
