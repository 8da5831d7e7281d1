//! A re-ranker of relations: question and relation read together, word by word.
//!
//! After AMAR's cross-encoder, with the soft alignment of Parikh et al. ("A Decomposable Attention
//! Model for Natural Language Inference", EMNLP 2016) over a frozen encoder's token vectors in the
//! place of a fine-tuned transformer:
//!
//! ```text
//! q_i = P·e(question)_i      r_j = P·e(relation)_j        S = r·qᵀ/√w
//! a_j = Σ_i softmax_i(S_ji)·q_i                           what the question says of word j
//! b_i = Σ_j softmax_j(S_ji)·r_j
//! c   = mean_j silu(W_r·[r_j; a_j; r_j∘a_j])              d = mean_i silu(W_q·[q_i; b_i; q_i∘b_i])
//! s   = v·silu(W_s·[c; d])
//! ```
//!
//! The first candidates of the bi-encoder ([`crate::relations`]) are ordered by its score + μ·s. μ is
//! `mix`, chosen on validation questions: 0 leaves the order as it is.
//!
//! Tensors: `project` `[width, dim]`, `relation`, `question` `[hidden, 3·width]`, `score`
//! `[hidden, 2·hidden]`, `last` `[1, hidden]`, biases, `mix` `[1]`.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpointable, checkpointable};
use crate::error::at_least_one;
use crate::tensor::softmax;
use crate::{Random, Result};

/// Far below every score.
const HIDDEN: f64 = 1e9;

/// Sizes of a [`PairScorer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sizes {
    /// Numbers in the encoder's token vectors.
    pub dim: usize,
    /// Numbers in which words are compared.
    pub width: usize,
    /// Numbers in which comparisons are summed up.
    pub hidden: usize,
    /// Candidates that are read.
    pub candidates: usize,
}

impl Sizes {
    /// Refuses sizes of which no network can be made.
    fn check(&self) -> Result<()> {
        let sizes = [self.dim, self.width, self.hidden, self.candidates];
        at_least_one(sizes.map(|size| ("width", size)))
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            dim: 256,
            width: 96,
            hidden: 96,
            candidates: 32,
        }
    }
}

/// Token vectors of some texts, row after row.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Of each text `[tokens, dim]`.
    pub texts: Vec<Vec<f32>>,
}

/// Reads a question and a relation together.
pub struct PairScorer {
    sizes: Sizes,
    parameters: BTreeMap<String, Var>,
}

/// Texts of one length, and which of their tokens are there.
struct Padded {
    rows: Tensor,  // [texts, tokens, width]
    there: Tensor, // [texts, tokens]
}

fn shapes(sizes: &Sizes) -> Vec<(String, Vec<usize>)> {
    let (width, hidden) = (sizes.width, sizes.hidden);
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("project".into(), vec![width, sizes.dim]),
        ("relation".into(), vec![hidden, 3 * width]),
        ("relation_bias".into(), vec![hidden]),
        ("question".into(), vec![hidden, 3 * width]),
        ("question_bias".into(), vec![hidden]),
        ("score".into(), vec![hidden, 2 * hidden]),
        ("score_bias".into(), vec![hidden]),
        ("last".into(), vec![1, hidden]),
        ("mix".into(), vec![1]),
    ];
    shapes.sort();
    shapes
}

impl PairScorer {
    /// A re-ranker that has learned nothing, and leaves every order as it is.
    pub fn new(sizes: Sizes, random: &mut Random, device: &Device) -> Result<Self> {
        sizes.check()?;
        let tensors = shapes(&sizes)
            .into_iter()
            .map(|(name, shape)| {
                let values = match shape.as_slice() {
                    [count] => vec![0.0; *count],
                    [out, inner] => random.glorot(*out, *inner),
                    _ => unreachable!("tensors have one or two axes"),
                };
                Ok((name, Tensor::from_vec(values, shape, &Device::Cpu)?))
            })
            .collect::<Result<_>>()?;
        Self::from_tensors(sizes, tensors, device)
    }

    /// Its sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// μ: how much its scores count beside the bi-encoder's.
    pub fn mix(&self) -> Result<f32> {
        Ok(self.get("mix").to_vec1::<f32>()?[0])
    }

    /// Sets μ.
    pub fn set_mix(&self, mix: f32) -> Result<()> {
        let mix = Tensor::from_vec(vec![mix], 1, self.get("mix").device())?;
        Ok(self.parameters["mix"].set(&mix)?)
    }

    /// s of each question with each of its relations, `[questions, candidates]`. `pairs` are the
    /// relations of each question, as many of each.
    pub fn scores(
        &self,
        questions: &Words,
        asked: &[usize],
        relations: &Words,
        pairs: &[Vec<u32>],
    ) -> Result<Tensor> {
        let count = pairs.first().map_or(0, Vec::len);
        let question = self.padded(asked.iter().map(|&i| questions.texts[i].as_slice()))?;
        let named = pairs.iter().flatten();
        let relation = self.padded(named.map(|&r| relations.texts[r as usize].as_slice()))?;
        let (texts, tokens, width) = question.rows.dims3()?;
        // every relation has a copy of its question
        let spread = |x: &Tensor, shape: (usize, usize, usize, usize)| -> Result<Tensor> {
            let wide = x.unsqueeze(1)?.broadcast_as(shape)?.contiguous()?;
            Ok(wide.reshape((texts * count, shape.2, shape.3))?)
        };
        let q = spread(&question.rows, (texts, count, tokens, width))?;
        let q_there = spread(&question.there.unsqueeze(2)?, (texts, count, tokens, 1))?;
        let r = &relation.rows;
        let r_there = relation.there.unsqueeze(2)?;
        let s = (r.matmul(&q.transpose(1, 2)?.contiguous()?)? / (width as f64).sqrt())?;
        let hide = |there: &Tensor| ((there - 1.0)? * HIDDEN)?.transpose(1, 2);
        let of_words = softmax(&s.broadcast_add(&hide(&q_there)?)?)?;
        let a = of_words.matmul(&q)?;
        let turned = s.transpose(1, 2)?.contiguous()?;
        let of_question = softmax(&turned.broadcast_add(&hide(&r_there)?)?)?;
        let b = of_question.matmul(r)?;
        let c = self.compared("relation", r, &a, &r_there)?;
        let d = self.compared("question", &q, &b, &q_there)?;
        let both = Tensor::cat(&[c, d], 1)?;
        let inner = both
            .matmul(&self.get("score").t()?)?
            .broadcast_add(self.get("score_bias"))?
            .silu()?;
        let s = inner.matmul(&self.get("last").t()?)?;
        Ok(s.reshape((texts, count))?)
    }

    /// The mean of what comparing each word with what it is aligned to gives, `[texts, hidden]`.
    fn compared(&self, name: &str, x: &Tensor, y: &Tensor, there: &Tensor) -> Result<Tensor> {
        let all = Tensor::cat(&[x, y, &(x * y)?], 2)?;
        let (texts, tokens, inner) = all.dims3()?;
        let rows = all.reshape((texts * tokens, inner))?;
        let rows = rows
            .matmul(&self.get(name).t()?)?
            .broadcast_add(self.get(&format!("{name}_bias")))?
            .silu()?
            .reshape((texts, tokens, self.sizes.hidden))?;
        let shares = there.broadcast_div(&there.sum_keepdim(1)?)?;
        Ok(rows.broadcast_mul(&shares)?.sum(1)?)
    }

    fn padded<'w>(&self, texts: impl Iterator<Item = &'w [f32]>) -> Result<Padded> {
        let dim = self.sizes.dim;
        let texts: Vec<&[f32]> = texts.collect();
        let tokens = texts
            .iter()
            .map(|t| t.len() / dim)
            .max()
            .unwrap_or(0)
            .max(1);
        let mut rows = Vec::with_capacity(texts.len() * tokens * dim);
        let mut there = Vec::with_capacity(texts.len() * tokens);
        for text in &texts {
            // a text without words is one word that says nothing
            let own = (text.len() / dim).max(1);
            rows.extend_from_slice(text);
            rows.resize(rows.len() + tokens * dim - text.len(), 0.0);
            there.extend((0..tokens).map(|i| f32::from(u8::from(i < own))));
        }
        let project = self.get("project");
        let device = project.device();
        let rows = Tensor::from_vec(rows, (texts.len() * tokens, dim), device)?;
        let rows = crate::tensor::product_with_constant(&rows, project)?;
        Ok(Padded {
            rows: rows.reshape((texts.len(), tokens, self.sizes.width))?,
            there: Tensor::from_vec(there, (texts.len(), tokens), device)?,
        })
    }
}

checkpointable!(PairScorer, "relation-pairs", sizes: Sizes, dim);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relations::loss;
    use crate::tensor::gradient::worst_error;

    fn words(counts: &[usize], seed: u64) -> Words {
        let mut random = Random::new(seed);
        let text = |&count: &usize| (0..count * 5).map(|_| random.normal()).collect();
        Words {
            texts: counts.iter().map(text).collect(),
        }
    }

    fn tiny() -> PairScorer {
        let sizes = Sizes {
            dim: 5,
            width: 3,
            hidden: 4,
            candidates: 2,
        };
        PairScorer::new(sizes, &mut Random::new(1), &Device::Cpu).unwrap()
    }

    #[test]
    fn gradients_are_finite_differences_and_learning_ranks_the_gold_first() -> Result<()> {
        let scorer = tiny();
        let (questions, relations) = (words(&[3, 2], 2), words(&[1, 2, 3], 3));
        let pairs = [vec![0, 1], vec![2, 1]];
        let step = || {
            let scores = scorer.scores(&questions, &[0, 1], &relations, &pairs)?;
            loss(&scores, &[vec![1], vec![0]])
        };
        let learned: Vec<Var> = scorer.parameters.values().cloned().collect();
        let error = worst_error(&learned, 1e-2, || Ok(step().expect("sizes fit")))?;
        assert!(error < 2e-2, "{error}");
        for _ in 0..200 {
            let grads = step()?.backward()?;
            for var in &learned {
                if let Some(grad) = grads.get(var) {
                    var.set(&(var.as_tensor() - (grad * 0.2)?)?)?;
                }
            }
        }
        assert!(step()?.to_scalar::<f32>()? < 0.1);
        Ok(())
    }

    #[test]
    fn a_pair_scores_the_same_whatever_stands_beside_it() -> Result<()> {
        let scorer = tiny();
        let (questions, relations) = (words(&[3, 6], 2), words(&[1, 4, 0], 3));
        let both = scorer
            .scores(&questions, &[0, 1], &relations, &[vec![0, 1], vec![1, 2]])?
            .to_vec2::<f32>()?;
        let alone = scorer
            .scores(&questions, &[0], &relations, &[vec![0]])?
            .to_vec2::<f32>()?;
        assert!((both[0][0] - alone[0][0]).abs() < 1e-5);
        assert!(both[1][1].is_finite());
        assert_eq!(scorer.mix()?, 0.0);
        scorer.set_mix(0.5)?;
        assert_eq!(scorer.mix()?, 0.5);
        Ok(())
    }
}
