//! The decoder over candle's tensors: the equations of `decoder.rs` on any device, for several texts
//! at once, of operations that have gradients.
//!
//! A pair (a, b) that a position turns becomes
//!
//! ```text
//! x·cos + (x·Tᵀ)·sin        T·(a, b) = (−b, a)
//! ```
//!
//! so that one constant matrix T serves both layouts of pairs.

use candle_core::quantized::QMatMul;
use candle_core::{D, Device, Module, Tensor};

use super::attention::Heads;
use super::family::{Rotation, Shape};
use super::gguf::Gguf;
use crate::Result;
use crate::tensor::{product_with_frozen, softmax};

/// Far below every score: its share of a softmax is 0.
pub(super) const HIDDEN: f32 = -1e9;

/// The products of a layer that an adapter adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Product {
    Gate,
    Up,
    Down,
}

/// What is added to a product: of a layer, a product and its input `[texts, tokens, in]`.
pub(crate) type Adapt<'a> = dyn FnMut(usize, Product, &Tensor) -> Result<Option<Tensor>> + 'a;

/// How matrices are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// As they stand in the file.
    Quantized,
    /// As plain numbers, for gradients of what goes through them.
    Plain,
}

pub(super) enum Matrix {
    Quantized(QMatMul),
    Plain(Tensor), // [out, in]
}

impl Matrix {
    /// Of rows `[rows, in]`.
    fn apply(&self, rows: &Tensor) -> Result<Tensor> {
        Ok(match self {
            Self::Quantized(weight) => weight.forward(rows)?,
            Self::Plain(weight) => product_with_frozen(rows, weight)?,
        })
    }
}

struct Linear {
    weight: Matrix,
    bias: Option<Tensor>,
}

impl Linear {
    /// Of rows `[rows, in]`.
    fn apply(&self, rows: &Tensor) -> Result<Tensor> {
        let y = self.weight.apply(rows)?;
        Ok(match &self.bias {
            Some(bias) => y.broadcast_add(bias)?,
            None => y,
        })
    }
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

/// Keys and values of one layer, `[texts, key heads, positions, size]`.
#[derive(Clone)]
pub(crate) struct Cache {
    keys: Tensor,
    values: Tensor,
}

impl Cache {
    /// Those of some of the texts, in this order.
    pub(crate) fn of(&self, texts: &Tensor) -> Result<Self> {
        Ok(Self {
            keys: self.keys.contiguous()?.index_select(texts, 0)?,
            values: self.values.contiguous()?.index_select(texts, 0)?,
        })
    }

    /// The first positions.
    pub(super) fn first(&self, positions: usize) -> Result<Self> {
        Ok(Self {
            keys: self.keys.narrow(2, 0, positions)?,
            values: self.values.narrow(2, 0, positions)?,
        })
    }
}

/// Where the tokens of a batch stand, and what they may look at.
pub(crate) struct Places {
    cosine: Tensor, // [texts or 1, 1, tokens, size]
    sine: Tensor,
    mask: Option<Tensor>, // [texts or 1, 1, tokens, positions]
}

/// The network of a file, without its embeddings.
pub(super) struct TensorDecoder {
    pub(super) shape: Shape,
    pub(super) device: Device,
    layers: Vec<Layer>,
    norm: Tensor,
    pub(super) output: Matrix, // [vocabulary, width]
    stretch: Option<Vec<f32>>,
    turn: Tensor, // T, [size, size]
}

impl TensorDecoder {
    pub(super) fn read(
        gguf: &mut Gguf,
        shape: Shape,
        vocabulary: usize,
        device: &Device,
        precision: Precision,
    ) -> Result<Self> {
        let (width, feed, heads) = (shape.width, shape.feed_forward, shape.heads.clone());
        let stretch = gguf.vector_or_none("rope_freqs.weight", shape.rotation.size / 2)?;
        let tied = !gguf.has_tensor("output.weight");
        let mut reader = Reader {
            gguf,
            device,
            precision,
        };
        let output = match tied {
            true => reader.matrix("token_embd.weight", vocabulary, width)?,
            false => reader.matrix("output.weight", vocabulary, width)?,
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
                gate: reader.linear(&name("ffn_gate"), feed, width)?,
                up: reader.linear(&name("ffn_up"), feed, width)?,
                down: reader.linear(&name("ffn_down"), width, feed)?,
                feed_post_norm: reader.vector_or_none(&norm("post_ffw_norm"), width)?,
                heads: Heads {
                    window: shape.window(i),
                    ..heads.clone()
                },
            });
        }
        let turn = turn_matrix(&shape.rotation, heads.size);
        Ok(Self {
            norm: reader.vector("output_norm.weight", width)?,
            turn: Tensor::from_vec(turn, (heads.size, heads.size), device)?,
            device: device.clone(),
            layers,
            output,
            stretch,
            shape,
        })
    }

    pub(super) fn layers(&self) -> usize {
        self.layers.len()
    }

    /// The window of the layers that have one.
    pub(super) fn window(&self) -> Option<usize> {
        self.layers.iter().find_map(|layer| layer.heads.window)
    }

    /// The places of tokens at these positions, in layers that see far or that have a window; `mask`
    /// is added to their scores, `[texts or 1, 1, tokens, positions]`.
    pub(super) fn places(
        &self,
        positions: &[usize],
        (texts, tokens): (usize, usize),
        window: Option<usize>,
        mask: Option<Tensor>,
    ) -> Result<Places> {
        let size = self.shape.heads.size;
        let rotation = match window {
            Some(_) => &self.shape.window_rotation,
            None => &self.shape.rotation,
        };
        let mut cosine = vec![1.0f32; positions.len() * size];
        let mut sine = vec![0.0f32; positions.len() * size];
        for (row, &position) in positions.iter().enumerate() {
            let angles = rotation.angles(self.stretch.as_deref(), position, 1);
            for (i, (cos, sin)) in angles.into_iter().enumerate() {
                for at in pair(rotation, i) {
                    cosine[row * size + at] = cos;
                    sine[row * size + at] = sin;
                }
            }
        }
        let shape = (texts, 1, tokens, size);
        Ok(Places {
            cosine: Tensor::from_vec(cosine, shape, &self.device)?,
            sine: Tensor::from_vec(sine, shape, &self.device)?,
            mask,
        })
    }

    /// The last layer's rows, `[texts, tokens, width]`, of embeddings of that shape. `places` gives
    /// those of a layer by its window. Keys and values go behind those of `caches`, where there are
    /// any.
    pub(super) fn run<'p>(
        &self,
        embeddings: &Tensor,
        places: impl Fn(Option<usize>) -> &'p Places,
        mut caches: Option<&mut Vec<Cache>>,
        adapt: &mut Adapt<'_>,
    ) -> Result<Tensor> {
        let mut x = embeddings.clone();
        let mut kept = Vec::new();
        for (i, layer) in self.layers.iter().enumerate() {
            let before = caches.as_ref().and_then(|caches| caches.get(i));
            let (attended, cache) = self.attend(layer, &x, places(layer.heads.window), before)?;
            if caches.is_some() {
                kept.push(cache);
            }
            x = (x + attended)?;
            x = (&x + self.feed(i, layer, &x, adapt)?)?;
        }
        if let Some(caches) = caches.as_mut() {
            **caches = kept;
        }
        Ok(x)
    }

    /// The logits of rows `[rows, width]` that [`TensorDecoder::run`] gave, `[rows, vocabulary]`.
    pub(super) fn logits(&self, rows: &Tensor) -> Result<Tensor> {
        let logits = self.output.apply(&self.normed(rows, &self.norm)?)?;
        capped(logits, self.shape.final_cap)
    }

    fn attend(
        &self,
        layer: &Layer,
        x: &Tensor,
        places: &Places,
        before: Option<&Cache>,
    ) -> Result<(Tensor, Cache)> {
        let (texts, tokens, width) = x.dims3()?;
        let heads = &layer.heads;
        let rows = self
            .normed(x, &layer.attention_norm)?
            .reshape((texts * tokens, width))?;
        // [texts, heads, tokens, size]
        let split = |rows: Tensor, count: usize| -> Result<Tensor> {
            Ok(rows
                .reshape((texts, tokens, count, heads.size))?
                .transpose(1, 2)?
                .contiguous()?)
        };
        let q = split(layer.q.apply(&rows)?, heads.queries)?;
        let k = split(layer.k.apply(&rows)?, heads.keys)?;
        let q = self.turned(&self.normed_if(q, &layer.q_norm)?, places)?;
        let mut keys = self.turned(&self.normed_if(k, &layer.k_norm)?, places)?;
        let mut values = split(layer.v.apply(&rows)?, heads.keys)?;
        if let Some(before) = before {
            keys = Tensor::cat(&[&before.keys, &keys], 2)?;
            values = Tensor::cat(&[&before.values, &values], 2)?;
        }
        let all = keys.dim(2)?;
        // query heads that share a key head are rows of one product
        let group = heads.queries / heads.keys;
        let shared = (texts * heads.keys, group * tokens, heads.size);
        let over = (texts * heads.keys, all, heads.size);
        let scores = q
            .reshape(shared)?
            .matmul(&keys.reshape(over)?.t()?)?
            .reshape((texts, heads.queries, tokens, all))?;
        let mut scores = capped((scores * f64::from(heads.scale))?, heads.cap)?;
        if let Some(mask) = &places.mask {
            scores = scores.broadcast_add(mask)?;
        }
        let mixed = softmax(&scores)?
            .reshape((shared.0, shared.1, all))?
            .matmul(&values.reshape(over)?)?
            .reshape((texts, heads.queries, tokens, heads.size))?
            .transpose(1, 2)?
            .contiguous()?
            .reshape((texts * tokens, heads.queries * heads.size))?;
        let out = self.normed_if(layer.o.apply(&mixed)?, &layer.attention_post_norm)?;
        let out = out.reshape((texts, tokens, width))?;
        Ok((out, Cache { keys, values }))
    }

    fn feed(&self, i: usize, layer: &Layer, x: &Tensor, adapt: &mut Adapt<'_>) -> Result<Tensor> {
        let (texts, tokens, width) = x.dims3()?;
        let n = self.normed(x, &layer.feed_norm)?;
        let rows = n.reshape((texts * tokens, width))?;
        let mut apply = |linear: &Linear, which, x: &Tensor, rows: &Tensor| -> Result<Tensor> {
            let y = linear.apply(rows)?;
            Ok(match adapt(i, which, x)? {
                Some(more) => (&y + more.reshape(y.shape())?)?,
                None => y,
            })
        };
        let gate = apply(&layer.gate, Product::Gate, &n, &rows)?;
        let gate = match self.shape.is_gemma() {
            true => gate.gelu()?,
            false => gate.silu()?,
        };
        let inner = (gate * apply(&layer.up, Product::Up, &n, &rows)?)?;
        let whole = inner.reshape((texts, tokens, self.shape.feed_forward))?;
        let out = apply(&layer.down, Product::Down, &whole, &inner)?;
        let out = self.normed_if(out, &layer.feed_post_norm)?;
        Ok(out.reshape((texts, tokens, width))?)
    }

    fn turned(&self, x: &Tensor, places: &Places) -> Result<Tensor> {
        let size = self.shape.heads.size;
        let crossed = product_with_frozen(&x.reshape(((), size))?, &self.turn)?;
        let crossed = crossed.reshape(x.shape())?;
        Ok((x.broadcast_mul(&places.cosine)? + crossed.broadcast_mul(&places.sine)?)?)
    }

    /// `γ·x/√(mean x² + ε)` along the last axis.
    fn normed(&self, x: &Tensor, gain: &Tensor) -> Result<Tensor> {
        let square = x.sqr()?.mean_keepdim(D::Minus1)?;
        let scale = (square + f64::from(self.shape.epsilon))?.sqrt()?.recip()?;
        Ok(x.broadcast_mul(&scale)?.broadcast_mul(gain)?)
    }

    fn normed_if(&self, x: Tensor, gain: &Option<Tensor>) -> Result<Tensor> {
        match gain {
            Some(gain) => self.normed(&x, gain),
            None => Ok(x),
        }
    }
}

/// `c·tanh(x/c)`, where there is a cap.
fn capped(x: Tensor, cap: Option<f32>) -> Result<Tensor> {
    Ok(match cap.map(f64::from) {
        Some(cap) => ((x / cap)?.tanh()? * cap)?,
        None => x,
    })
}

/// The places of the two numbers of a pair.
fn pair(rotation: &Rotation, i: usize) -> [usize; 2] {
    match rotation.neighbours {
        true => [2 * i, 2 * i + 1],
        false => [i, i + rotation.size / 2],
    }
}

fn turn_matrix(rotation: &Rotation, size: usize) -> Vec<f32> {
    let mut matrix = vec![0.0; size * size];
    for i in 0..rotation.size / 2 {
        let [a, b] = pair(rotation, i);
        matrix[a * size + b] = -1.0;
        matrix[b * size + a] = 1.0;
    }
    matrix
}

/// Reads a file's tensors into a device's memory.
struct Reader<'a> {
    gguf: &'a mut Gguf,
    device: &'a Device,
    precision: Precision,
}

impl Reader<'_> {
    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<Linear> {
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"), outputs, inputs)?,
            bias: self.vector_or_none(&format!("{name}.bias"), outputs)?,
        })
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<Matrix> {
        Ok(match self.precision {
            Precision::Quantized => {
                let weight = self.gguf.matrix_on(name, outputs, inputs, self.device)?;
                Matrix::Quantized(QMatMul::from_arc(weight)?)
            }
            Precision::Plain => Matrix::Plain(plain_matrix(
                self.gguf,
                name,
                (outputs, inputs),
                self.device,
            )?),
        })
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Tensor> {
        let values = self.gguf.vector(name, length)?;
        Ok(Tensor::from_vec(values, length, self.device)?)
    }

    fn vector_or_none(&mut self, name: &str, length: usize) -> Result<Option<Tensor>> {
        match self.gguf.has_tensor(name) {
            true => self.vector(name, length).map(Some),
            false => Ok(None),
        }
    }
}

/// A matrix as plain numbers.
pub(super) fn plain_matrix(
    gguf: &mut Gguf,
    name: &str,
    (rows, columns): (usize, usize),
    device: &Device,
) -> Result<Tensor> {
    let weight = gguf.matrix(name, rows, columns)?;
    Ok(weight.dequantize(&Device::Cpu)?.to_device(device)?)
}
