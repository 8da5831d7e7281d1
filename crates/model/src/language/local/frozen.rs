//! A decoder as constant tensors that take embeddings: what adapters are trained around.

use std::path::Path;

use candle_core::{Device, Tensor};

use super::family::{Family, Shape};
use super::gguf::Gguf;
use super::tensor_decoder::{HIDDEN, Matrix, Precision, TensorDecoder, plain_matrix};
use super::tokenizer::Tokenizer;
use crate::{Error, Result};

pub(crate) use super::tensor_decoder::{Adapt, Cache, Places, Product};

/// A decoder whose weights stay as they are.
pub(crate) struct Frozen {
    decoder: TensorDecoder,
    identity: String,
    tokenizer: Tokenizer,
    embedding: Tensor, // [vocabulary, width]
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
        let size = (tokenizer.len(), shape.width);
        let decoder = TensorDecoder::read(&mut gguf, shape, size.0, device, Precision::Plain)?;
        let embedding = match &decoder.output {
            // the same matrix on both sides is kept once
            Matrix::Plain(output) if !gguf.has_tensor("output.weight") => output.clone(),
            _ => plain_matrix(&mut gguf, "token_embd.weight", size, device)?,
        };
        Ok(Self {
            decoder,
            identity,
            tokenizer,
            embedding,
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.decoder.device
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn layers(&self) -> usize {
        self.decoder.layers()
    }

    pub(crate) fn width(&self) -> usize {
        self.decoder.shape.width
    }

    pub(crate) fn feed_forward(&self) -> usize {
        self.decoder.shape.feed_forward
    }

    pub(crate) fn context(&self) -> usize {
        self.decoder.shape.context
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The rows of some tokens, `[tokens, width]`.
    pub(crate) fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        let ids = Tensor::from_slice(tokens, tokens.len(), self.device())?;
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
        let mask = Tensor::from_vec(mask, (1, 1, tokens, tokens), &self.decoder.device)?;
        self.decoder
            .places(&positions, (1, tokens), None, Some(mask))
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
        let mask = Tensor::from_vec(mask, (texts, 1, 1, all), &self.decoder.device)?;
        self.decoder
            .places(&positions, (texts, 1), None, Some(mask))
    }

    /// The last layer's rows, `[texts, tokens, width]`. Keys and values go behind those of
    /// `caches`, where there are any.
    pub(crate) fn run(
        &self,
        embeddings: &Tensor,
        places: &Places,
        caches: Option<&mut Vec<Cache>>,
        adapt: &mut Adapt<'_>,
    ) -> Result<Tensor> {
        self.decoder.run(embeddings, |_| places, caches, adapt)
    }

    /// The logits of rows `[rows, width]` that [`Frozen::run`] gave, `[rows, vocabulary]`.
    pub(crate) fn logits(&self, rows: &Tensor) -> Result<Tensor> {
        self.decoder.logits(rows)
    }
}
