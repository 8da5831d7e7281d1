//! The decoder: tokens to the logits of the next one.
//!
//! ```text
//! x   = E[token]
//! x  += O · attend(rotate(Q·n(x)), rotate(K·n(x)), V·n(x))
//! x  += D · (f(G·n(x)) ∘ U·n(x))                              for each layer
//! out = W · n(x)                                              n(x) = γ·x/√(mean x² + ε)
//! ```
//!
//! Qwen 2 adds a bias to Q, K and V, Qwen 3 and Gemma 3 a norm; Gemma scales E, and its later
//! generations put a norm behind each half of a layer. f is SiLU, in Gemma GELU.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{Device, Tensor};
use pulp::Arch;

use super::attention::{Cache, Heads};
use super::engine::Engine;
use super::family::{Rotation, Shape};
use super::gguf::Gguf;
use super::linear::{Linear, Stacked};
use super::parallel::in_parts;
use crate::Result;
use crate::encode::simd::{gelu_tanh, silu, sum_by};

pub(super) struct Decoder {
    shape: Shape,
    embedding: Arc<QTensor>,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    output: Linear,
    /// Angles are divided by these, where the file has them.
    stretch: Option<Vec<f32>>,
    vocabulary: usize,
    tokens: Vec<u32>,
    caches: Vec<Cache>,
}

struct Layer {
    attention_norm: Vec<f32>,
    qkv: Stacked,
    q_norm: Option<Vec<f32>>,
    k_norm: Option<Vec<f32>>,
    o: Linear,
    attention_post_norm: Option<Vec<f32>>,
    feed_norm: Vec<f32>,
    gate_up: Stacked,
    down: Linear,
    feed_post_norm: Option<Vec<f32>>,
    heads: Heads,
}

impl Decoder {
    pub(super) fn read(gguf: &mut Gguf, shape: Shape, vocabulary: usize) -> Result<Self> {
        let (width, heads) = (shape.width, shape.heads.clone());
        let embedding = gguf.matrix("token_embd.weight", vocabulary, width)?;
        let output = if gguf.has_tensor("output.weight") {
            Linear::read(gguf, "output", vocabulary, width)?
        } else {
            Linear::new(Arc::clone(&embedding), None, vocabulary, width)?
        };
        let (asked, kept) = (heads.queries * heads.size, heads.keys * heads.size);
        let mut layers = Vec::with_capacity(shape.layers);
        for i in 0..shape.layers {
            let name = |rest: &str| format!("blk.{i}.{rest}");
            let norm = |rest: &str| format!("blk.{i}.{rest}.weight");
            layers.push(Layer {
                attention_norm: gguf.vector(&norm("attn_norm"), width)?,
                qkv: Stacked::read(
                    gguf,
                    &[
                        (name("attn_q"), asked),
                        (name("attn_k"), kept),
                        (name("attn_v"), kept),
                    ],
                    width,
                )?,
                q_norm: gguf.vector_or_none(&norm("attn_q_norm"), heads.size)?,
                k_norm: gguf.vector_or_none(&norm("attn_k_norm"), heads.size)?,
                o: Linear::read(gguf, &name("attn_output"), width, asked)?,
                attention_post_norm: gguf.vector_or_none(&norm("post_attention_norm"), width)?,
                feed_norm: gguf.vector(&norm("ffn_norm"), width)?,
                gate_up: Stacked::read(
                    gguf,
                    &[
                        (name("ffn_gate"), shape.feed_forward),
                        (name("ffn_up"), shape.feed_forward),
                    ],
                    width,
                )?,
                down: Linear::read(gguf, &name("ffn_down"), width, shape.feed_forward)?,
                feed_post_norm: gguf.vector_or_none(&norm("post_ffw_norm"), width)?,
                heads: Heads {
                    window: shape.window(i),
                    ..heads.clone()
                },
            });
        }
        let stretch = gguf.vector_or_none("rope_freqs.weight", shape.rotation.size / 2)?;
        Ok(Self {
            norm: gguf.vector("output_norm.weight", width)?,
            embedding,
            layers,
            output,
            stretch,
            vocabulary,
            tokens: Vec::new(),
            caches: (0..shape.layers).map(|_| Cache::default()).collect(),
            shape,
        })
    }

    /// The logits of what follows the last token.
    fn logits(&self, tokens: &[u32], caches: &mut [Cache]) -> Result<Vec<f32>> {
        let before = self.tokens.len();
        let stretch = self.stretch.as_deref();
        let angles = |rotation: &Rotation| rotation.angles(stretch, before, tokens.len());
        let far = angles(&self.shape.rotation);
        let near = match &self.shape.window_rotation {
            same if *same == self.shape.rotation => None,
            other => Some(angles(other)),
        };
        let width = self.shape.width;
        let mut x = self.embed(tokens)?;
        let last = self.layers.len() - 1;
        for (i, (layer, cache)) in self.layers.iter().zip(caches).enumerate() {
            let angles = near.as_ref().filter(|_| layer.heads.window.is_some());
            let mut mixed = self.attend(layer, &x, angles.unwrap_or(&far), cache)?;
            if i == last {
                // nothing but the last token is asked for any more
                mixed.drain(..mixed.len() - width);
                x.drain(..x.len() - width);
            }
            add(&mut x, &mixed);
            let fed = self.feed(layer, &x)?;
            add(&mut x, &fed);
        }
        let mut logits = self.output.product(&self.normed(&x, &self.norm))?;
        if let Some(cap) = self.shape.final_cap {
            logits.iter_mut().for_each(|x| *x = cap * (*x / cap).tanh());
        }
        debug_assert_eq!(logits.len(), self.vocabulary, "one logit for each token");
        Ok(logits)
    }

    fn embed(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        let ids = Tensor::from_slice(tokens, tokens.len(), &Device::Cpu)?;
        let rows = self.embedding.embedding(&ids)?;
        let mut x: Vec<f32> = rows.flatten_all()?.to_vec1()?;
        if self.shape.is_gemma() {
            let scale = (self.shape.width as f32).sqrt();
            x.iter_mut().for_each(|x| *x *= scale);
        }
        Ok(x)
    }

    fn attend(
        &self,
        layer: &Layer,
        x: &[f32],
        angles: &[(f32, f32)],
        cache: &mut Cache,
    ) -> Result<Vec<f32>> {
        let n = self.normed(x, &layer.attention_norm);
        let mut qkv = layer.qkv.products(&n)?.into_iter();
        let mut next = || qkv.next().expect("there are three");
        let (mut q, mut k, v) = (next(), next(), next());
        let size = layer.heads.size;
        for (rows, norm, heads) in [
            (&mut q, &layer.q_norm, layer.heads.queries),
            (&mut k, &layer.k_norm, layer.heads.keys),
        ] {
            if let Some(norm) = norm {
                *rows = self.normed(rows, norm);
            }
            rotate(rows, heads, size, angles, &self.shape.rotation);
        }
        let mixed = cache.attend(&q, &k, &v, &layer.heads);
        let out = layer.o.product(&mixed)?;
        Ok(match &layer.attention_post_norm {
            Some(norm) => self.normed(&out, norm),
            None => out,
        })
    }

    fn feed(&self, layer: &Layer, x: &[f32]) -> Result<Vec<f32>> {
        let n = self.normed(x, &layer.feed_norm);
        let mut both = layer.gate_up.products(&n)?.into_iter();
        let mut next = || both.next().expect("there are two");
        let (mut gate, up) = (next(), next());
        let is_gemma = self.shape.is_gemma();
        let part = self.shape.feed_forward;
        in_parts(&mut gate, part, |i, gate| {
            let up = &up[i * part..i * part + gate.len()];
            Arch::new().dispatch(
                #[inline(always)]
                || {
                    if is_gemma {
                        gate.iter_mut()
                            .zip(up)
                            .for_each(|(g, u)| *g = gelu_tanh(*g) * u);
                    } else {
                        gate.iter_mut().zip(up).for_each(|(g, u)| *g = silu(*g) * u);
                    }
                },
            );
        });
        let out = layer.down.product(&gate)?;
        Ok(match &layer.feed_post_norm {
            Some(norm) => self.normed(&out, norm),
            None => out,
        })
    }

    /// `γ·x/√(mean x² + ε)` for each row as long as γ.
    fn normed(&self, x: &[f32], gain: &[f32]) -> Vec<f32> {
        let width = gain.len();
        let epsilon = self.shape.epsilon;
        let mut out = vec![0.0; x.len()];
        // a few rows at once: one is too little to hand over
        let part = width * 4096usize.div_ceil(width);
        in_parts(&mut out, part, |i, out| {
            let x = &x[i * part..i * part + out.len()];
            Arch::new().dispatch(
                #[inline(always)]
                || {
                    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
                        let square = sum_by(width, |i| x[i] * x[i]) / width as f32;
                        let scale = 1.0 / (square + epsilon).sqrt();
                        for ((out, x), gain) in out.iter_mut().zip(x).zip(gain) {
                            *out = x * scale * gain;
                        }
                    }
                },
            );
        });
        out
    }
}

impl Engine for Decoder {
    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        for cache in &mut self.caches {
            cache.truncate(length);
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

fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// Turns each pair of each head by its angle.
fn rotate(rows: &mut [f32], heads: usize, size: usize, angles: &[(f32, f32)], rotation: &Rotation) {
    let pairs = rotation.size / 2;
    for (row, angles) in rows
        .chunks_exact_mut(heads * size)
        .zip(angles.chunks_exact(pairs))
    {
        for head in row.chunks_exact_mut(size) {
            for (i, &(cosine, sine)) in angles.iter().enumerate() {
                let (a, b) = if rotation.neighbours {
                    (2 * i, 2 * i + 1)
                } else {
                    (i, i + pairs)
                };
                let (x, y) = (head[a], head[b]);
                head[a] = x * cosine - y * sine;
                head[b] = x * sine + y * cosine;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_turned_by_their_angle() {
        // a quarter turn takes (1, 2) to (−2, 1); the second head's pair likewise
        let mut rows = [1.0, 2.0, 9.0, 3.0, 4.0, 9.0];
        let rotation = Rotation {
            base: 1.0,
            factor: 1.0,
            size: 2,
            neighbours: true,
        };
        rotate(&mut rows, 2, 3, &[(0.0, 1.0)], &rotation);
        assert_eq!(rows, [-2.0, 1.0, 9.0, -4.0, 3.0, 9.0]);
        let mut rows = [1.0, 5.0, 2.0, 6.0];
        let apart = Rotation {
            size: 4,
            neighbours: false,
            ..rotation
        };
        rotate(&mut rows, 1, 4, &[(0.0, 1.0), (1.0, 0.0)], &apart);
        assert_eq!(rows, [-2.0, 5.0, 1.0, 6.0]);
    }
}
