//! The decoder on a graphics card: [`TensorDecoder`] with what it remembers of a text.
//!
//! Matrices stay quantized in the card's memory. Logits come back to the processor, which picks
//! the token.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{Device, Tensor};

use super::engine::Engine;
use super::family::Shape;
use super::gguf::Gguf;
use super::tensor_decoder::{Cache, HIDDEN, Places, Precision, TensorDecoder};
use crate::Result;

pub(super) struct Card {
    decoder: TensorDecoder,
    /// In the processor's memory: a row is read for each token, and no more.
    embedding: Arc<QTensor>,
    tokens: Vec<u32>,
    caches: Vec<Cache>,
}

impl Card {
    pub(super) fn read(
        gguf: &mut Gguf,
        shape: Shape,
        vocabulary: usize,
        device: &Device,
    ) -> Result<Self> {
        let embedding = gguf.matrix("token_embd.weight", vocabulary, shape.width)?;
        let quantized = Precision::Quantized;
        Ok(Self {
            decoder: TensorDecoder::read(gguf, shape, vocabulary, device, quantized)?,
            embedding,
            tokens: Vec::new(),
            caches: Vec::new(),
        })
    }

    /// The rows of some tokens, `[1, tokens, width]`.
    fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        let TensorDecoder { shape, device, .. } = &self.decoder;
        let ids = Tensor::from_slice(tokens, tokens.len(), &Device::Cpu)?;
        let x = self.embedding.embedding(&ids)?.to_device(device)?;
        let x = x.unsqueeze(0)?;
        Ok(match shape.is_gemma() {
            true => (x * f64::from(shape.width as u32).sqrt())?,
            false => x,
        })
    }

    /// The places of further tokens, each looking at itself and those before it, as far back as a
    /// window.
    fn places(&self, tokens: usize, window: Option<usize>) -> Result<Places> {
        let before = self.tokens.len();
        let all = before + tokens;
        let sees_all = tokens == 1 && window.is_none_or(|window| all <= window);
        let mask = || -> Result<Tensor> {
            let mut mask = Vec::with_capacity(tokens * all);
            for token in before..all {
                let first = window.map_or(0, |window| (token + 1).saturating_sub(window));
                let seen = |at: usize| (first..=token).contains(&at);
                mask.extend((0..all).map(|at| if seen(at) { 0.0 } else { HIDDEN }));
            }
            let shape = (1, 1, tokens, all);
            Ok(Tensor::from_vec(mask, shape, &self.decoder.device)?)
        };
        let mask = (!sees_all).then(mask).transpose()?;
        let positions: Vec<usize> = (before..all).collect();
        self.decoder.places(&positions, (1, tokens), window, mask)
    }
}

impl Engine for Card {
    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn truncate(&mut self, length: usize) {
        let length = length.min(self.tokens.len());
        self.tokens.truncate(length);
        let shorter = self.caches.iter().map(|cache| cache.first(length));
        let shorter: Result<Vec<Cache>> = shorter.collect();
        self.caches = shorter.unwrap_or_default();
        if length == 0 || self.caches.is_empty() {
            // all of it is read again
            self.tokens.clear();
            self.caches.clear();
        }
    }

    fn read_on(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let far = self.places(tokens.len(), None)?;
        let near = match self.decoder.window() {
            Some(window) => Some(self.places(tokens.len(), Some(window))?),
            None => None,
        };
        let places = |window: Option<usize>| match (window, &near) {
            (Some(_), Some(near)) => near,
            _ => &far,
        };
        let x = self.embed(tokens)?;
        let unchanged = &mut |_, _, _: &Tensor| Ok(None);
        let x = self
            .decoder
            .run(&x, places, Some(&mut self.caches), unchanged)?;
        let last = x.narrow(1, tokens.len() - 1, 1)?.squeeze(0)?.contiguous()?;
        let logits = self.decoder.logits(&last)?;
        self.tokens.extend_from_slice(tokens);
        Ok(logits.flatten_all()?.to_vec1()?)
    }
}
