//! Sentences compared by meaning and order: an encoder with a small learned reader on top.
//!
//! ```text
//! v = unit(t + W_o·g)         g = mean of the last states of a GRU over the text's tokens, read
//!                                 from either end
//! ```
//!
//! t is the encoder's own vector. W_o begins at 0, so that what has learned nothing is the encoder
//! itself. This is ours: GNN2R fine-tunes a transformer ([`crate::tuned`]). A table of token vectors
//! has nothing to fine-tune that knows of order, and `the parent of an entity that is the spouse`
//! is not `the spouse of an entity that is the parent`.
//!
//! The loss of both (equation 9 of the paper), over a question q, a positive p and a negative n:
//!
//! ```text
//! L = Σ max(v_n·v_q − v_p·v_q + ε', 0)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use super::encoders::{self, Tokens, mean};
use super::network::{Pair, drawn, margin_loss};
use super::one_way::BothWays;
use crate::checkpoint::{Checkpointable, checkpointable, numbers};
use crate::encode::{Embeddings, Encoder, TokenStates};
use crate::error::at_least_one;
use crate::tensor::panels::Panels;
use crate::tensor::{Segments, TINY, gather, unit_rows};
use crate::tuned::{self, Tuned};
use crate::{Random, Result};

/// A network that turns sentences into vectors and can learn to.
pub trait SentenceNetwork: Checkpointable {
    /// What turns texts into its input.
    type Base;

    /// Unit rows, `[texts, dim]`, with gradients.
    fn vectors(&self, base: &Self::Base, texts: &[&str]) -> Result<Tensor>;
}

/// Sizes of a [`SentenceReader`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sizes {
    /// Numbers in the encoder's vectors.
    pub dim: usize,
    /// Numbers in a state of the GRU.
    pub hidden: usize,
}

impl Sizes {
    /// Refuses sizes of which no network can be made.
    fn check(&self) -> Result<()> {
        at_least_one([self.dim, self.hidden].map(|size| ("hidden", size)))
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            dim: 256,
            hidden: 128,
        }
    }
}

/// The learned reader.
pub struct SentenceReader {
    sizes: Sizes,
    parameters: BTreeMap<String, Var>,
}

const NAME: &str = "sentence";
const OUT: &str = "w_o";

fn shapes(sizes: &Sizes) -> Vec<(String, Vec<usize>)> {
    let mut shapes = encoders::shapes(NAME, sizes.dim, sizes.hidden);
    shapes.push((OUT.into(), vec![sizes.dim, sizes.hidden]));
    shapes
}

impl SentenceReader {
    /// A reader that has learned nothing yet.
    pub fn new(sizes: Sizes, random: &mut Random, device: &Device) -> Result<Self> {
        sizes.check()?;
        let parameters = drawn(shapes(&sizes), random, device)?;
        parameters[OUT].set(&parameters[OUT].zeros_like()?)?;
        Ok(Self { sizes, parameters })
    }

    fn forward(&self, pooled: Embeddings, states: &TokenStates) -> Result<Tensor> {
        let out = self.get(OUT);
        let device = out.device();
        let count = pooled.len();
        let pooled = Tensor::from_vec(pooled.into_values(), (count, self.sizes.dim), &Device::Cpu)?;
        let tokens = Tokens::new(states, device)?;
        let read = mean(&encoders::read(&self.parameters, NAME, &tokens, None)?)?;
        let sum = (pooled.to_device(device)? + read.matmul(&out.t()?)?)?;
        Ok(unit_rows(&sum)?)
    }
}

impl SentenceNetwork for Tuned {
    type Base = tuned::Base;

    fn vectors(&self, base: &tuned::Base, texts: &[&str]) -> Result<Tensor> {
        self.rows(base, texts)
    }
}

checkpointable!(SentenceReader, "gnn2r-sentences", sizes: Sizes, dim);

impl SentenceNetwork for SentenceReader {
    type Base = Arc<dyn Encoder>;

    fn vectors(&self, base: &Self::Base, texts: &[&str]) -> Result<Tensor> {
        self.forward(base.encode(texts)?, &base.token_states(texts)?)
    }
}

/// An encoder with a learned reader on top, packed to read.
pub struct SentenceEncoder {
    base: Arc<dyn Encoder>,
    read: BothWays,
    out: Panels,
    hidden: usize,
}

impl SentenceEncoder {
    /// Puts a reader on top of the encoder that it was trained with.
    pub fn new(base: Arc<dyn Encoder>, reader: &SentenceReader) -> Result<Self> {
        let Sizes { dim, hidden } = reader.sizes;
        let values = numbers(&reader.parameters)?;
        Ok(Self {
            read: BothWays::new(&values, NAME, dim, hidden),
            out: Panels::new(&values[OUT], hidden, 0..hidden),
            base,
            hidden,
        })
    }
}

impl Encoder for SentenceEncoder {
    fn name(&self) -> &str {
        self.base.name()
    }

    fn dim(&self) -> usize {
        self.base.dim()
    }

    fn encode(&self, texts: &[&str]) -> Result<Embeddings> {
        if texts.is_empty() {
            return Ok(Embeddings::new(Vec::new(), self.dim()));
        }
        let dim = self.dim();
        let mut rows = self.base.encode(texts)?.into_values();
        let read = self.read.read(&self.base.token_states(texts)?);
        let mut told = vec![0.0; rows.len()];
        let row = |i: usize| &read[i * self.hidden..][..self.hidden];
        self.out.product(row, &mut told);
        for (row, told) in rows.chunks_exact_mut(dim).zip(told.chunks_exact(dim)) {
            row.iter_mut().zip(told).for_each(|(x, y)| *x += y);
            let length = (row.iter().map(|x| x * x).sum::<f32>() + TINY).sqrt();
            row.iter_mut().for_each(|x| *x /= length);
        }
        Ok(Embeddings::new(rows, dim))
    }
}

/// A question, a sentence that tells what it asks, and one that does not, as rows of vectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Triplet {
    /// Row of the question.
    pub question: u32,
    /// Row of the positive sentence.
    pub positive: u32,
    /// Row of the negative sentence.
    pub negative: u32,
    /// Its weight in the loss.
    pub weight: f32,
}

/// `Σ weight · max(v_n·v_q − v_p·v_q + margin, 0)` over rows of `vectors`, a scalar.
pub fn triplet_loss(vectors: &Tensor, triplets: &[Triplet], margin: f32) -> Result<Tensor> {
    let count = vectors.dim(0)?;
    // each question with each of its sentences once
    let mut met: Vec<(u32, u32)> = triplets
        .iter()
        .flat_map(|t| [(t.question, t.positive), (t.question, t.negative)])
        .collect();
    met.sort_unstable();
    met.dedup();
    let side = |of: fn(&(u32, u32)) -> u32| {
        let ids = Segments::new(met.iter().map(of).collect(), count);
        gather(vectors, &Arc::new(ids))
    };
    let similar = (side(|m| m.0)? * side(|m| m.1)?)?.sum_keepdim(1)?;
    let at =
        |question: u32, sentence: u32| met.partition_point(|m| *m < (question, sentence)) as u32;
    let pairs: Vec<Pair> = triplets
        .iter()
        .map(|t| Pair {
            answer: at(t.question, t.negative),
            other: at(t.question, t.positive),
            weight: t.weight,
        })
        .collect();
    margin_loss(&similar, &pairs, margin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::HashingEncoder;
    use crate::tensor::gradient::{spread, worst_error};

    #[test]
    fn what_has_learned_nothing_is_the_encoder_itself() -> Result<()> {
        let base: Arc<dyn Encoder> = Arc::new(HashingEncoder::new(6));
        let sizes = Sizes { dim: 6, hidden: 3 };
        let reader = SentenceReader::new(sizes, &mut Random::new(1), &Device::Cpu)?;
        let texts = ["who is the spouse of Ann", ""];
        let plain = base.encode(&texts)?;
        let ours = SentenceEncoder::new(base.clone(), &reader)?.encode(&texts)?;
        for (a, b) in plain.values().iter().zip(ours.values()) {
            assert!((a - b).abs() < 1e-5);
        }
        Ok(())
    }

    #[test]
    fn order_is_told_and_gradients_are_finite_differences() -> Result<()> {
        let base: Arc<dyn Encoder> = Arc::new(HashingEncoder::new(6));
        let sizes = Sizes { dim: 6, hidden: 3 };
        let reader = SentenceReader::new(sizes, &mut Random::new(1), &Device::Cpu)?;
        let out = spread((6, 3), 8);
        reader.parameters[OUT].set(out.as_tensor())?;
        let texts = ["parent of spouse", "spouse of parent", "who"];
        let rows = reader.vectors(&base, &texts)?.to_vec2::<f32>()?;
        assert!(
            rows[0]
                .iter()
                .zip(&rows[1])
                .any(|(a, b)| (a - b).abs() > 1e-3)
        );
        // packed it tells the same
        let packed = SentenceEncoder::new(Arc::clone(&base), &reader)?.encode(&texts)?;
        for (a, b) in packed.values().iter().zip(rows.iter().flatten()) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
        let triplets = [Triplet {
            question: 2,
            positive: 0,
            negative: 1,
            weight: 1.0,
        }];
        let inputs: Vec<Var> = reader.parameters.values().cloned().collect();
        let error = worst_error(&inputs, 1e-2, || {
            let vectors = reader.vectors(&base, &texts).expect("sizes fit");
            Ok(triplet_loss(&vectors, &triplets, 1.0).expect("rows are inside"))
        })?;
        assert!(error < 5e-3, "{error}");
        Ok(())
    }

    #[test]
    fn the_triplet_loss_has_its_hand_made_value() -> Result<()> {
        // v_q = (1, 0), v_p = (0.6, 0.8), v_n = (0.8, 0.6): 0.8 − 0.6 + 0.1 = 0.3
        let vectors = Tensor::new(&[[1.0f32, 0.0], [0.6, 0.8], [0.8, 0.6]], &Device::Cpu)?;
        let triplet = Triplet {
            question: 0,
            positive: 1,
            negative: 2,
            weight: 2.0,
        };
        let loss = triplet_loss(&vectors, &[triplet], 0.1)?.to_scalar::<f32>()?;
        assert!((loss - 0.6).abs() < 1e-6);
        Ok(())
    }
}
