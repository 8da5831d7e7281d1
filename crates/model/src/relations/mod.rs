//! A bi-encoder of questions and relations: two towers into one space.
//!
//! After AMAR's relation retriever, with features in the place of a fine-tuned transformer:
//!
//! ```text
//! q = P_q·e(question) + Σ_f T_q[f] / √n        r = P_r·e(relation) + Σ_f T_r[f] / √n
//! s(q, r) = q·r + w_1·[r touches an entity of the question] + w_2·[r lies two steps away]
//! L = −mean over questions of  Σ_{r ∈ gold} log softmax_r(s) / |gold|      over all relations given
//! ```
//!
//! e is a frozen encoder, f the hashed words and pairs of words of the question with its mentions
//! masked, or the words, pairs and the whole of a relation's name. So a relation that was never
//! seen is still compared by its words. P_q and P_r begin as one random projection, T at 0: what
//! has learned nothing ranks by the encoder's own similarity.
//!
//! Or the encoder itself learns ([`TunedMatcher`]), as in the paper; what comes of it is again a
//! [`RelationMatcher`], with [`Sizes::tuned`], and the encoder that belongs to it.
//!
//! Tensors: `question.encoder`, `relation.encoder` `[width, dim]`, `question.features`,
//! `relation.features` `[buckets, width]`, `near` `[2]`.

mod tuned;

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{D, Device, Tensor, Var};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::checkpoint::{Checkpointable, checkpointable};
use crate::encode::Embeddings;
use crate::error::at_least_one;
use crate::tensor::{Segments, gather, segment_sum};
use crate::{Random, Result};

pub use tuned::TunedMatcher;

/// How much sharper scores are than cosines when nothing is learned yet.
const SHARPNESS: f32 = 8.0;

/// Sizes of a [`RelationMatcher`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sizes {
    /// Numbers in the encoder's vectors.
    pub dim: usize,
    /// Numbers in the common space.
    pub width: usize,
    /// Rows that features are hashed into.
    pub buckets: usize,
    /// Whether the encoder was fine-tuned, and lies with the checkpoint.
    pub tuned: bool,
}

impl Sizes {
    /// Refuses sizes of which no network can be made.
    fn check(&self) -> Result<()> {
        let sizes = [self.dim, self.width, self.buckets];
        at_least_one(sizes.map(|size| ("width", size)))
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            dim: 256,
            width: 128,
            buckets: 1 << 15,
            tuned: false,
        }
    }
}

/// Texts as the towers take them.
#[derive(Clone, Debug)]
pub struct Featured {
    /// The encoder's rows.
    pub rows: Embeddings,
    /// Hashed features of each text.
    pub features: Vec<Vec<u32>>,
}

impl Default for Featured {
    /// No text.
    fn default() -> Self {
        Self {
            rows: Embeddings::new(Vec::new(), 1),
            features: Vec::new(),
        }
    }
}

/// Which relations lie near the entities of each question: (question, relation, steps from 0).
pub type Near = Vec<(u32, u32, u8)>;

/// The two towers.
pub struct RelationMatcher {
    sizes: Sizes,
    parameters: BTreeMap<String, Var>,
}

const QUESTION: [&str; 2] = ["question.encoder", "question.features"];
const RELATION: [&str; 2] = ["relation.encoder", "relation.features"];
const NEAR: &str = "near";

/// The hashed words and pairs of words of a text, and, for relations, the text as a whole.
pub fn features(text: &str, whole: bool, buckets: usize) -> Vec<u32> {
    let bucket = |seed: u64, text: &str| {
        (xxh3_64_with_seed(text.as_bytes(), seed) % buckets.max(1) as u64) as u32
    };
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '[' && c != ']')
        .filter(|w| !w.is_empty())
        .collect();
    let mut found: Vec<u32> = words.iter().map(|word| bucket(1, word)).collect();
    found.extend(words.windows(2).map(|pair| bucket(2, &pair.join(" "))));
    if whole {
        found.push(bucket(3, &lower));
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn shapes(sizes: &Sizes) -> Vec<(String, Vec<usize>)> {
    let mut shapes = vec![(NEAR.to_owned(), vec![2])];
    for [encoder, table] in [QUESTION, RELATION] {
        shapes.push((encoder.into(), vec![sizes.width, sizes.dim]));
        shapes.push((table.into(), vec![sizes.buckets, sizes.width]));
    }
    shapes.sort();
    shapes
}

impl RelationMatcher {
    /// Towers that have learned nothing yet.
    pub fn new(sizes: Sizes, random: &mut Random, device: &Device) -> Result<Self> {
        sizes.check()?;
        let (width, dim) = (sizes.width, sizes.dim);
        let spread = (1.0 / width as f32).sqrt();
        let drawn: Vec<f32> = (0..width * dim).map(|_| random.normal() * spread).collect();
        let tensors = shapes(&sizes)
            .into_iter()
            .map(|(name, shape)| {
                let values = match name.as_str() {
                    "question.encoder" => drawn.iter().map(|x| x * SHARPNESS).collect(),
                    "relation.encoder" => drawn.clone(),
                    _ => vec![0.0; shape.iter().product()],
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

    fn tower(&self, [encoder, table]: [&str; 2], texts: &Featured) -> Result<Tensor> {
        let table = self.get(table);
        let device = table.device();
        let count = texts.features.len();
        let rows = texts.rows.values().to_vec();
        let rows =
            Tensor::from_vec(rows, (count, self.sizes.dim), &Device::Cpu)?.to_device(device)?;
        let encoded = rows.matmul(&self.get(encoder).t()?)?;
        let (mut ids, mut of, mut scales) = (Vec::new(), Vec::new(), Vec::new());
        for (text, features) in (0u32..).zip(&texts.features) {
            let scale = 1.0 / (features.len().max(1) as f32).sqrt();
            for &feature in features {
                ids.push(feature);
                of.push(text);
                scales.push(scale);
            }
        }
        if ids.is_empty() {
            return Ok(encoded);
        }
        let entries = ids.len();
        let ids = Arc::new(Segments::new(ids, self.sizes.buckets));
        let of = Arc::new(Segments::new(of, count));
        let scales = Tensor::from_vec(scales, (entries, 1), &Device::Cpu)?.to_device(device)?;
        let told = gather(table, &ids)?.broadcast_mul(&scales)?;
        Ok((encoded + segment_sum(&told, &of)?)?)
    }

    /// `[questions, width]`.
    pub fn questions(&self, texts: &Featured) -> Result<Tensor> {
        self.tower(QUESTION, texts)
    }

    /// `[relations, width]`.
    pub fn relations(&self, texts: &Featured) -> Result<Tensor> {
        self.tower(RELATION, texts)
    }

    /// Scores, `[questions, relations]`.
    pub fn scores(&self, questions: &Tensor, relations: &Tensor, near: &Near) -> Result<Tensor> {
        let scores = questions.matmul(&relations.t()?)?;
        with_near(scores, self.get(NEAR), near)
    }
}

/// Adds the two `weights` to the scores of the relations that lie near.
fn with_near(scores: Tensor, weights: &Tensor, near: &Near) -> Result<Tensor> {
    let (rows, columns) = scores.dims2()?;
    let mut sum = scores;
    for step in 0..2u8 {
        let mut flags = vec![0f32; rows * columns];
        for &(question, relation, at) in near {
            if at == step {
                flags[question as usize * columns + relation as usize] = 1.0;
            }
        }
        let flags =
            Tensor::from_vec(flags, (rows, columns), &Device::Cpu)?.to_device(weights.device())?;
        let weight = weights.narrow(0, usize::from(step), 1)?.reshape((1, 1))?;
        sum = (sum + flags.broadcast_mul(&weight)?)?;
    }
    Ok(sum)
}

/// Cross entropy against the even distribution over each question's gold relations, a scalar.
pub fn loss(scores: &Tensor, gold: &[Vec<u32>]) -> Result<Tensor> {
    let (rows, columns) = scores.dims2()?;
    let mut wanted = vec![0f32; rows * columns];
    for (row, gold) in gold.iter().enumerate() {
        for &relation in gold {
            wanted[row * columns + relation as usize] = 1.0 / gold.len() as f32;
        }
    }
    let wanted =
        Tensor::from_vec(wanted, (rows, columns), &Device::Cpu)?.to_device(scores.device())?;
    let highest = scores.max_keepdim(D::Minus1)?.detach();
    let shifted = scores.broadcast_sub(&highest)?;
    let sums = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
    let told = (shifted.broadcast_sub(&sums)? * wanted)?.sum_all()?;
    Ok((told * (-1.0 / rows.max(1) as f64))?)
}

checkpointable!(RelationMatcher, "relations", sizes: Sizes, dim);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Encoder, HashingEncoder};
    use crate::tensor::gradient::worst_error;

    fn featured(texts: &[&str], whole: bool, sizes: &Sizes) -> Featured {
        Featured {
            rows: HashingEncoder::new(sizes.dim).encode(texts).unwrap(),
            features: texts
                .iter()
                .map(|t| features(t, whole, sizes.buckets))
                .collect(),
        }
    }

    #[test]
    fn the_loss_has_its_hand_made_value() -> Result<()> {
        // softmax of (0, ln 3) is (1/4, 3/4); gold is the first: −ln(1/4) = 1.3863
        let scores = Tensor::new(&[[0f32, 3f32.ln()]], &Device::Cpu)?;
        let value = loss(&scores, &[vec![0]])?.to_scalar::<f32>()?;
        assert!((value - 4f32.ln()).abs() < 1e-5);
        // both gold: the mean of ln 4 and ln 4/3
        let value = loss(&scores, &[vec![0, 1]])?.to_scalar::<f32>()?;
        assert!((value - (4f32.ln() + (4f32 / 3.0).ln()) / 2.0).abs() < 1e-5);
        Ok(())
    }

    #[test]
    fn gradients_are_finite_differences_and_learning_ranks_the_gold_first() -> Result<()> {
        let sizes = Sizes {
            dim: 5,
            width: 4,
            buckets: 7,
            tuned: false,
        };
        let matcher = RelationMatcher::new(sizes.clone(), &mut Random::new(3), &Device::Cpu)?;
        let questions = featured(
            &["who coaches [BLANK]", "where was [BLANK] born"],
            false,
            &sizes,
        );
        let relations = featured(&["coached by", "place of birth", "capacity"], true, &sizes);
        let near = vec![(0, 0, 0), (1, 1, 1), (1, 2, 0)];
        let step = || {
            let scores = matcher.scores(
                &matcher.questions(&questions)?,
                &matcher.relations(&relations)?,
                &near,
            )?;
            loss(&scores, &[vec![0], vec![1]])
        };
        let inputs: Vec<Var> = matcher.parameters.values().cloned().collect();
        let error = worst_error(&inputs, 1e-2, || Ok(step().expect("sizes fit")))?;
        assert!(error < 2e-2, "{error}");
        for _ in 0..200 {
            let grads = step()?.backward()?;
            for var in &inputs {
                if let Some(grad) = grads.get(var) {
                    var.set(&(var.as_tensor() - (grad * 0.1)?)?)?;
                }
            }
        }
        assert!(step()?.to_scalar::<f32>()? < 0.1);
        Ok(())
    }

    #[test]
    fn features_mind_words_pairs_and_the_whole() {
        let of = |text: &str, whole| features(text, whole, 1 << 20);
        // two words, one pair; and the whole
        assert_eq!(of("place birth", false).len(), 3);
        assert_eq!(of("place.birth", true).len(), 4);
        assert_eq!(of("Place Birth", false), of("place birth", false));
        assert_ne!(of("birth place", false), of("place birth", false));
        assert!(of("", false).is_empty());
    }
}
