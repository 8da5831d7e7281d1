//! A bi-encoder whose encoder learns: one BERT reads questions and relations.
//!
//! ```text
//! s(q, r) = 20·cos(e(q), e(r)) + 100·w_1·[r touches an entity of q] + 100·w_2·[r lies two steps away]
//! ```
//!
//! The layers of e and w learn. The factor before w lets it move at the small steps that layers
//! bear.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor, Var};

use super::{NEAR, Near, QUESTION, RELATION, RelationMatcher, Sizes, with_near};
use crate::Result;
use crate::checkpoint::Checkpointable;
use crate::tuned::{self, Base, Tuned};

/// How much sharper scores are than cosines.
const SHARPNESS: f64 = 20.0;
/// How much larger the weights of near relations are than what is learned.
const REACH: f64 = 100.0;

/// A BERT that learns to bring questions and their relations together.
pub struct TunedMatcher {
    tuned: Tuned,
    /// The layers of `tuned`, and `near`.
    parameters: BTreeMap<String, Var>,
}

impl TunedMatcher {
    /// A matcher of this encoder, which has learned nothing yet.
    pub fn new(tuned: &Tuned, device: &Device) -> Result<Self> {
        let mut parameters = tuned.parameters().clone();
        let near = Var::from_tensor(&Tensor::zeros(2, DType::F32, device)?)?;
        parameters.insert(NEAR.into(), near);
        Ok(Self::from_parameters(tuned.sizes().clone(), parameters))
    }

    /// The encoder.
    pub fn encoder(&self) -> &Tuned {
        &self.tuned
    }

    /// Unit rows of questions or relations.
    pub fn rows(&self, base: &Base, texts: &[&str]) -> Result<Tensor> {
        self.tuned.rows(base, texts)
    }

    /// Scores, `[questions, relations]`, of their rows.
    pub fn scores(&self, questions: &Tensor, relations: &Tensor, near: &Near) -> Result<Tensor> {
        let scores = (questions.matmul(&relations.t()?)? * SHARPNESS)?;
        let weights = (self.parameters[NEAR].as_tensor() * REACH)?;
        with_near(scores, &weights, near)
    }

    /// The same scores from the rows of the encoder that it has become.
    pub fn matcher(&self) -> Result<RelationMatcher> {
        let dim = Tuned::dim(self.tuned.sizes());
        let sizes = Sizes {
            dim,
            width: dim,
            buckets: 1,
            tuned: true,
        };
        let cpu = &Device::Cpu;
        let same = Tensor::eye(dim, DType::F32, cpu)?;
        let no_features = Tensor::zeros((1, dim), DType::F32, cpu)?;
        let near = (self.parameters[NEAR].as_tensor().to_device(cpu)? * REACH)?;
        let tensors = [
            (QUESTION[0], (&same * SHARPNESS)?),
            (RELATION[0], same),
            (QUESTION[1], no_features.clone()),
            (RELATION[1], no_features),
            (NEAR, near),
        ];
        let tensors = tensors.map(|(name, tensor)| (name.to_owned(), tensor));
        RelationMatcher::from_tensors(sizes, tensors.into(), cpu)
    }
}

impl Checkpointable for TunedMatcher {
    const METHOD: &'static str = "relations-bert";
    type Sizes = tuned::Sizes;

    fn check(sizes: &tuned::Sizes) -> Result<()> {
        Tuned::check(sizes)
    }

    fn dim(sizes: &tuned::Sizes) -> usize {
        Tuned::dim(sizes)
    }

    fn shapes(sizes: &tuned::Sizes) -> Vec<(String, Vec<usize>)> {
        let mut shapes = Tuned::shapes(sizes);
        shapes.push((NEAR.into(), vec![2]));
        shapes
    }

    fn from_parameters(sizes: tuned::Sizes, parameters: BTreeMap<String, Var>) -> Self {
        let mut layers = parameters.clone();
        layers.remove(NEAR);
        Self {
            tuned: Tuned::from_parameters(sizes, layers),
            parameters,
        }
    }

    fn parameters(&self) -> &BTreeMap<String, Var> {
        &self.parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Encoder, TransformerEncoder, TransformerOptions};
    use crate::relations::{Featured, features, loss};
    use crate::tensor::gradient::worst_error;
    use crate::tuned::tests::folder;

    const QUESTIONS: [&str; 2] = ["who is ann", "ann is spouse of who"];
    const RELATIONS: [&str; 3] = ["spouse", "is of", "who"];

    #[test]
    fn gradients_are_finite_differences_and_the_matcher_it_becomes_scores_the_same() {
        let place = folder();
        let (tuned, base) = Tuned::open(place.path(), &Device::Cpu).unwrap();
        let matcher = TunedMatcher::new(&tuned, &Device::Cpu).unwrap();
        let near: Near = vec![(0, 0, 0), (1, 1, 1), (1, 2, 0)];
        let scores = || {
            let questions = matcher.rows(&base, &QUESTIONS)?;
            matcher.scores(&questions, &matcher.rows(&base, &RELATIONS)?, &near)
        };
        let step = || loss(&scores()?, &[vec![0], vec![1]]);
        let layers: Vec<Var> = tuned.parameters().values().cloned().collect();
        let error = worst_error(&layers, 1e-3, || Ok(step().expect("sizes fit"))).unwrap();
        assert!(error < 5e-2, "{error}");
        for _ in 0..60 {
            let grads = step().unwrap().backward().unwrap();
            for (name, var) in matcher.parameters() {
                let rate = if name == NEAR { 1e-5 } else { 1e-3 };
                let Some(grad) = grads.get(var) else { continue };
                var.set(&(var.as_tensor() - (grad * rate).unwrap()).unwrap())
                    .unwrap();
            }
        }
        assert!(step().unwrap().to_scalar::<f32>().unwrap() < 0.3);
        // written, read by the encoder that answers, scored by the matcher that answers
        let out = tempfile::tempdir().unwrap();
        matcher.encoder().write(&base, out.path()).unwrap();
        let encoder = TransformerEncoder::load(out.path(), &TransformerOptions::default()).unwrap();
        let kept = matcher.matcher().unwrap();
        let featured = |texts: &[&str]| Featured {
            rows: encoder.encode(texts).unwrap(),
            features: texts.iter().map(|t| features(t, true, 1)).collect(),
        };
        let again = kept.scores(
            &kept.questions(&featured(&QUESTIONS)).unwrap(),
            &kept.relations(&featured(&RELATIONS)).unwrap(),
            &near,
        );
        let (again, scores) = (again.unwrap(), scores().unwrap());
        let (again, scores) = (again.to_vec2::<f32>(), scores.to_vec2::<f32>());
        for (a, b) in again.unwrap().concat().iter().zip(scores.unwrap().concat()) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    }
}
