//! The decoder as constant tensors that take embeddings: what adapters are trained around.
//!
//! The equations of `decoder.rs`, dequantized, for several texts at once, of operations that have
//! gradients on every device. A pair (a, b) that a position turns becomes
//!
//! ```text
//! x·cos + (x·Tᵀ)·sin        T·(a, b) = (−b, a)
//! ```
//!
//! so that one constant matrix T serves both layouts of pairs.

use std::path::Path;

use candle_core::{D, Device, Tensor};

use super::family::{Family, Rotation, Shape};
use super::gguf::Gguf;
use super::tokenizer::Tokenizer;
use crate::tensor::{product_with_frozen, softmax};
use crate::{Error, Result};

/// Far below every score: its share of a softmax is 0.
const HIDDEN: f32 = -1e9;

/// The products of a layer that an adapter adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Product {
    Gate,
    Up,
    Down,
}

/// What is added to a product: of a layer, a product and its input `[texts, tokens, in]`.
pub(crate) type Adapt<'a> = dyn FnMut(usize, Product, &Tensor) -> Result<Option<Tensor>> + 'a;

/// A decoder whose weights stay as they are.
pub(crate) struct Frozen {
    shape: Shape,
    device: Device,
    identity: String,
    tokenizer: Tokenizer,
    embedding: Tensor, // [vocabulary, width]
    layers: Vec<Layer>,
    norm: Tensor,
    output: Tensor, // [vocabulary, width]
    stretch: Option<Vec<f32>>,
    turn: Tensor, // T, [size, size]
}

struct Layer {
    attention_norm: Tensor,
    q: Linear,
    k: Linear,
    v: Linear,
    q_norm: Option<Tensor>,
    k_norm: Option<Tensor>,
    o: Linear,
    feed_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

struct Linear {
    weight: Tensor, // [out, in]
    bias: Option<Tensor>,
}

impl Linear {
    /// Of rows `[rows, in]`.
    fn apply(&self, rows: &Tensor) -> Result<Tensor> {
        let y = product_with_frozen(rows, &self.weight)?;
        Ok(match &self.bias {
            Some(bias) => y.broadcast_add(bias)?,
            None => y,
        })
    }
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
}

/// Where the tokens of a batch stand, and what they may look at.
pub(crate) struct Places {
    cosine: Tensor, // [texts or 1, 1, tokens, size]
    sine: Tensor,
    mask: Tensor, // [texts or 1, 1, tokens, positions]
}

impl Frozen {
    pub(crate) fn open(path: &Path, device: &Device) -> Result<Self> {
        let mut gguf = Gguf::open(path)?;
        let shape = Shape::read(&gguf)?;
        if !matches!(shape.family, Family::Llama | Family::Qwen2 | Family::Qwen3) {
            return Err(Error::UnknownFamily {
                path: path.into(),
                found: gguf.family.clone(),
                known: "for adapters `llama`, `qwen2` and `qwen3`",
            });
        }
        let tokenizer = Tokenizer::read(&gguf)?;
        let identity = gguf.identity()?;
        let (width, feed, vocabulary) = (shape.width, shape.feed_forward, tokenizer.len());
        let heads = shape.heads.clone();
        let stretch = gguf.vector_or_none("rope_freqs.weight", shape.rotation.size / 2)?;
        let mut reader = Reader {
            gguf: &mut gguf,
            device,
        };
        let embedding = reader.matrix("token_embd.weight", vocabulary, width)?;
        let output = match reader.gguf.has_tensor("output.weight") {
            true => reader.matrix("output.weight", vocabulary, width)?,
            false => embedding.clone(),
        };
        let (asked, kept) = (heads.queries * heads.size, heads.keys * heads.size);
        let mut layers = Vec::with_capacity(shape.layers);
        for i in 0..shape.layers {
            let name = |rest: &str| format!("blk.{i}.{rest}");
            layers.push(Layer {
                attention_norm: reader.vector(&name("attn_norm.weight"), width)?,
                q: reader.linear(&name("attn_q"), asked, width)?,
                k: reader.linear(&name("attn_k"), kept, width)?,
                v: reader.linear(&name("attn_v"), kept, width)?,
                q_norm: reader.vector_or_none(&name("attn_q_norm.weight"), heads.size)?,
                k_norm: reader.vector_or_none(&name("attn_k_norm.weight"), heads.size)?,
                o: reader.linear(&name("attn_output"), width, asked)?,
                feed_norm: reader.vector(&name("ffn_norm.weight"), width)?,
                gate: reader.linear(&name("ffn_gate"), feed, width)?,
                up: reader.linear(&name("ffn_up"), feed, width)?,
                down: reader.linear(&name("ffn_down"), width, feed)?,
            });
        }
        let norm = reader.vector("output_norm.weight", width)?;
        let turn = turn_matrix(&shape.rotation, heads.size);
        Ok(Self {
            turn: Tensor::from_vec(turn, (heads.size, heads.size), device)?,
            device: device.clone(),
            identity,
            tokenizer,
            embedding,
            layers,
            norm,
            output,
            stretch,
            shape,
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn layers(&self) -> usize {
        self.layers.len()
    }

    pub(crate) fn width(&self) -> usize {
        self.shape.width
    }

    pub(crate) fn feed_forward(&self) -> usize {
        self.shape.feed_forward
    }

    pub(crate) fn context(&self) -> usize {
        self.shape.context
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The rows of some tokens, `[tokens, width]`.
    pub(crate) fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        let ids = Tensor::from_slice(tokens, tokens.len(), &self.device)?;
        Ok(self.embedding.index_select(&ids, 0)?)
    }

    /// The places of texts that begin at 0, each token looking at those before it. What is behind
    /// the end of a shorter text sees more than it should, and is seen by nothing.
    pub(crate) fn places_at_the_start(&self, tokens: usize) -> Result<Places> {
        let positions: Vec<usize> = (0..tokens).collect();
        let mut mask = Vec::with_capacity(tokens * tokens);
        for at in 0..tokens {
            mask.extend((0..tokens).map(|other| if other <= at { 0.0 } else { HIDDEN }));
        }
        let mask = Tensor::from_vec(mask, (1, 1, tokens, tokens), &self.device)?;
        self.places(&positions, (1, tokens), mask)
    }

    /// The places of one further token of each text: those at `prompts[i] + written` that look at
    /// the first `prompts[i]` of `longest` remembered ones, at the `written` behind them, and at
    /// themselves.
    pub(crate) fn one_further(
        &self,
        prompts: &[usize],
        longest: usize,
        written: usize,
    ) -> Result<Places> {
        let positions: Vec<usize> = prompts.iter().map(|length| length + written).collect();
        let all = longest + written + 1;
        let mut mask = Vec::with_capacity(prompts.len() * all);
        for &length in prompts {
            let seen = |at: usize| at < length || at >= longest;
            mask.extend((0..all).map(|at| if seen(at) { 0.0 } else { HIDDEN }));
        }
        let texts = prompts.len();
        let mask = Tensor::from_vec(mask, (texts, 1, 1, all), &self.device)?;
        self.places(&positions, (texts, 1), mask)
    }

    fn places(
        &self,
        positions: &[usize],
        (texts, tokens): (usize, usize),
        mask: Tensor,
    ) -> Result<Places> {
        let size = self.shape.heads.size;
        let rotation = &self.shape.rotation;
        let (mut cosine, mut sine) = (Vec::new(), Vec::new());
        for &position in positions {
            let angles = rotation.angles(self.stretch.as_deref(), position, 1);
            let from = cosine.len();
            cosine.resize(from + size, 1.0f32);
            sine.resize(from + size, 0.0f32);
            for (i, (cos, sin)) in angles.into_iter().enumerate() {
                for at in pair(rotation, i) {
                    cosine[from + at] = cos;
                    sine[from + at] = sin;
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

    /// The last layer's rows, `[texts, tokens, width]`. Keys and values go behind those of
    /// `caches`, where there are any.
    pub(crate) fn run(
        &self,
        embeddings: &Tensor,
        places: &Places,
        mut caches: Option<&mut Vec<Cache>>,
        adapt: &mut Adapt<'_>,
    ) -> Result<Tensor> {
        let mut x = embeddings.clone();
        let mut kept = Vec::new();
        for (i, layer) in self.layers.iter().enumerate() {
            let before = caches.as_ref().and_then(|caches| caches.get(i));
            let (attended, cache) = self.attend(layer, &x, places, before)?;
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

    /// The logits of rows `[rows, width]` that [`Frozen::run`] gave, `[rows, vocabulary]`.
    pub(crate) fn logits(&self, rows: &Tensor) -> Result<Tensor> {
        let normed = self.normed(rows, &self.norm)?;
        Ok(product_with_frozen(&normed, &self.output)?)
    }

    fn attend(
        &self,
        layer: &Layer,
        x: &Tensor,
        places: &Places,
        before: Option<&Cache>,
    ) -> Result<(Tensor, Cache)> {
        let (texts, tokens, width) = x.dims3()?;
        let heads = &self.shape.heads;
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
        let normed = |x: Tensor, norm: &Option<Tensor>| match norm {
            Some(norm) => self.normed(&x, norm),
            None => Ok(x),
        };
        let q = normed(split(layer.q.apply(&rows)?, heads.queries)?, &layer.q_norm)?;
        let k = normed(split(layer.k.apply(&rows)?, heads.keys)?, &layer.k_norm)?;
        let q = self.turned(&q, places)?;
        let mut keys = self.turned(&k, places)?;
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
        let scores = (scores * f64::from(heads.scale))?.broadcast_add(&places.mask)?;
        let mixed = softmax(&scores)?
            .reshape((shared.0, shared.1, all))?
            .matmul(&values.reshape(over)?)?
            .reshape((texts, heads.queries, tokens, heads.size))?
            .transpose(1, 2)?
            .contiguous()?
            .reshape((texts * tokens, heads.queries * heads.size))?;
        let out = layer.o.apply(&mixed)?.reshape((texts, tokens, width))?;
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
        let gate = apply(&layer.gate, Product::Gate, &n, &rows)?.silu()?;
        let inner = (gate * apply(&layer.up, Product::Up, &n, &rows)?)?;
        let whole = inner.reshape((texts, tokens, self.shape.feed_forward))?;
        let out = apply(&layer.down, Product::Down, &whole, &inner)?;
        Ok(out.reshape((texts, tokens, width))?)
    }

    fn turned(&self, x: &Tensor, places: &Places) -> Result<Tensor> {
        let size = self.shape.heads.size;
        let crossed = product_with_frozen(&x.reshape(((), size))?, &self.turn)?;
        let crossed = crossed.reshape(x.shape())?;
        Ok((x.broadcast_mul(&places.cosine)? + crossed.broadcast_mul(&places.sine)?)?)
    }

    fn normed(&self, x: &Tensor, gain: &Tensor) -> Result<Tensor> {
        normed(x, gain, self.shape.epsilon)
    }
}

/// `γ·x/√(mean x² + ε)` along the last axis.
pub(super) fn normed(x: &Tensor, gain: &Tensor, epsilon: f32) -> Result<Tensor> {
    let square = x.sqr()?.mean_keepdim(D::Minus1)?;
    let scale = (square + f64::from(epsilon))?.sqrt()?.recip()?;
    Ok(x.broadcast_mul(&scale)?.broadcast_mul(gain)?)
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

/// Reads a file's tensors as plain numbers into a device's memory.
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

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<Tensor> {
        let weight = self.gguf.matrix(name, outputs, inputs)?;
        Ok(weight.dequantize(&Device::Cpu)?.to_device(self.device)?)
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
