//! The network as it learns: candle tensors, gradients, any device.
//!
//! ```text
//! question.D.T, relation.D.T, K.question.D.T    D forward or backward, T of w_i, b_i, w_h, b_h
//! other [1, hidden]           e⁰ of all but topics
//! inverse [1, hidden]         what is added to a relation against its direction
//! K.w_m [hidden, 2·hidden]    columns e, then r         K.b_m [hidden]
//! K.w_a [hidden, 2·hidden]    columns m, then q^k       K.b_a [hidden]    K.a [1, hidden]
//! K.w_u [hidden, 2·hidden]    columns m or e, then q    K.b_u [hidden]    K.a_u [1, hidden]
//! ```
//!
//! Matrices begin as Glorot and Bengio (2010) have it, vectors at 0; K counts from 1.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use super::encoders::{self, Tokens, mean};
use super::plan::{Plan, TOPIC};
use super::{Config, SLOPE, Shape};
use crate::checkpoint::checkpointable;
use crate::encode::TokenStates;
use crate::tensor::{Segments, gather, leaky_relu, segment_softmax, segment_sum};
use crate::{Error, Random, Result};

/// Keeps the root of a distance of 0 differentiable.
const TINY: f64 = 1e-9;

/// GNN2R's step I with its learned tensors.
pub struct Network {
    config: Config,
    parameters: BTreeMap<String, Var>,
}

impl Network {
    /// A network that has learned nothing yet.
    pub fn new(config: Config, random: &mut Random, device: &Device) -> Result<Self> {
        config.check()?;
        Ok(Self {
            parameters: drawn(shapes(&config), random, device)?,
            config,
        })
    }

    /// Its sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A copy that shares its tensors, and learns with it.
    pub fn shared(&self) -> Self {
        Self {
            config: self.config.clone(),
            parameters: self.parameters.clone(),
        }
    }

    /// How far each class of the batch is from its question, `[classes, 1]`.
    pub fn distances(&self, batch: &Batch) -> Result<Tensor> {
        Ok(self.forward(batch)?.1)
    }

    /// What relations of these labels sound like, along and against, `[1 or 2 · relations, hidden]`.
    pub(super) fn relations(&self, tokens: &Tokens) -> candle_core::Result<Tensor> {
        let along = mean(&encoders::read(&self.parameters, "relation", tokens, None)?)?;
        match self.config.inverse {
            true => Tensor::cat(&[&along, &along.broadcast_add(self.get("inverse"))?], 0),
            false => Ok(along),
        }
    }

    /// The questions, and the distances.
    fn forward(&self, batch: &Batch) -> candle_core::Result<(Tensor, Tensor)> {
        let Config { hidden, .. } = self.config;
        let q = encoders::read(&self.parameters, "question", &batch.questions, None)?;
        let q = mean(&q)?;
        let r = self.relations(&batch.relations)?;
        // rows of `begin`: the questions, then the one of all others
        let begin = Tensor::cat(&[&q, self.get("other")], 0)?;
        let mut e = gather(&begin, &batch.begin)?;
        let mut own: Option<[Tensor; 2]> = None;
        for (layer, shape) in batch.layers.iter().enumerate() {
            let name = |tensor: &str| format!("{}.{tensor}", layer + 1);
            let get = |tensor: &str| self.get(&name(tensor));
            let [w_me, w_mr] = halves(get("w_m"), hidden)?;
            let of_e = e.matmul(&w_me.t()?)?;
            let of_r = r
                .matmul(&w_mr.t()?)?
                .broadcast_add(&get("b_m").unsqueeze(0)?)?;
            let messages =
                (gather(&of_e, &shape.source)? + gather(&of_r, &shape.relation)?)?.tanh()?;
            let weights = match self.config.layerwise {
                true => {
                    let reading = encoders::read(
                        &self.parameters,
                        &name("question"),
                        &batch.questions,
                        own.as_ref(),
                    )?;
                    let [w_am, w_aq] = halves(get("w_a"), hidden)?;
                    let of_q = mean(&reading)?
                        .matmul(&w_aq.t()?)?
                        .broadcast_add(&get("b_a").unsqueeze(0)?)?;
                    own = Some(reading);
                    let inner =
                        (messages.matmul(&w_am.t()?)? + gather(&of_q, &shape.message_question)?)?;
                    let scores = leaky_relu(&inner, f64::from(SLOPE))?.matmul(&get("a").t()?)?;
                    let scores = (gather(&scores, &shape.message)? + &shape.ln_times)?;
                    segment_softmax(&scores, &shape.hearer)?
                }
                false => shape.shares.clone(),
            };
            let heard = gather(&messages, &shape.message)?.broadcast_mul(&weights)?;
            let heard = segment_sum(&heard, &shape.hearer)?;
            let before = gather(&e, &shape.before)?;
            e = match self.config.gate {
                true => {
                    let [w_ux, w_uq] = halves(get("w_u"), hidden)?;
                    let of_q = q
                        .matmul(&w_uq.t()?)?
                        .broadcast_add(&get("b_u").unsqueeze(0)?)?;
                    let of_q = gather(&of_q, &shape.class_question)?;
                    let score = |x: &Tensor| {
                        let inner = (x.matmul(&w_ux.t()?)? + &of_q)?;
                        leaky_relu(&inner, f64::from(SLOPE))?.matmul(&get("a_u").t()?)
                    };
                    // the softmax of two is the sigmoid of their difference
                    let share = (score(&before)? - score(&heard)?)?.exp()?;
                    let share = (share + 1.0)?.recip()?;
                    (&before + (heard - &before)?.broadcast_mul(&share)?)?
                }
                false => heard,
            };
        }
        let last = &batch.layers[batch.layers.len() - 1];
        let away = (e - gather(&q, &last.class_question)?)?;
        let distances = (away.sqr()?.sum_keepdim(1)? + TINY)?.sqrt()?;
        Ok((q, distances))
    }
}

checkpointable!(Network, "gnn2r", config: Config, dim);

fn halves(w: &Tensor, hidden: usize) -> candle_core::Result<[Tensor; 2]> {
    // a card takes no strides between rows
    Ok([
        w.narrow(1, 0, hidden)?.contiguous()?,
        w.narrow(1, hidden, hidden)?.contiguous()?,
    ])
}

fn shapes(config: &Config) -> Vec<(String, Vec<usize>)> {
    let Config { dim, hidden, .. } = *config;
    let mut all = encoders::shapes("question", dim, hidden);
    all.extend(encoders::shapes("relation", dim, hidden));
    all.push(("other".into(), vec![1, hidden]));
    if config.inverse {
        all.push(("inverse".into(), vec![1, hidden]));
    }
    for layer in 1..=config.layers {
        let parts = [("m", true), ("a", config.layerwise), ("u", config.gate)];
        for (part, _) in parts.into_iter().filter(|(_, there)| *there) {
            all.push((format!("{layer}.w_{part}"), vec![hidden, 2 * hidden]));
            all.push((format!("{layer}.b_{part}"), vec![hidden]));
        }
        if config.layerwise {
            all.push((format!("{layer}.a"), vec![1, hidden]));
            all.extend(encoders::shapes(&format!("{layer}.question"), dim, hidden));
        }
        if config.gate {
            all.push((format!("{layer}.a_u"), vec![1, hidden]));
        }
    }
    all
}

/// Parameters at their initial values.
pub(crate) fn drawn(
    shapes: Vec<(String, Vec<usize>)>,
    random: &mut Random,
    device: &Device,
) -> Result<BTreeMap<String, Var>> {
    let draw = |(name, shape): (String, Vec<usize>)| {
        let values = match shape[..] {
            [out, inner] => random.glorot(out, inner),
            _ => vec![0.0; shape.iter().product()],
        };
        let values = Tensor::from_vec(values, shape, &Device::Cpu)?.to_device(device)?;
        Ok((name, Var::from_tensor(&values)?))
    };
    shapes.into_iter().map(draw).collect()
}

/// Several questions with their neighbourhoods, class by class.
pub struct Batch {
    questions: Tokens,
    relations: Tokens,
    begin: Arc<Segments>,
    layers: Vec<Joined>,
    /// For each question, the class of each of its entities among those of the batch.
    classes: Vec<Vec<u32>>,
}

/// One layer of all questions.
struct Joined {
    // for each message
    source: Arc<Segments>,
    relation: Arc<Segments>,
    message_question: Arc<Segments>,
    // for each entry: a message that a class hears
    message: Arc<Segments>,
    hearer: Arc<Segments>,
    ln_times: Tensor, // [entries, 1]
    shares: Tensor,   // [entries, 1]
    // for each class
    before: Arc<Segments>,
    class_question: Arc<Segments>,
}

impl Batch {
    /// Joins questions, the tokens of each a text of `questions` in the same order. `relations`
    /// are the tokens of all relations.
    pub fn new(
        config: &Config,
        questions: &TokenStates,
        shapes: &[Shape<'_>],
        relations: &TokenStates,
        device: &Device,
    ) -> Result<Self> {
        for (what, states) in [("question token", questions), ("relation token", relations)] {
            if states.dim() != config.dim {
                return Err(Error::Dimension {
                    what,
                    wanted: config.dim,
                    given: states.dim(),
                });
            }
        }
        if shapes.is_empty() || shapes.len() != questions.len() {
            return Err(Error::EmptySubgraph);
        }
        for shape in shapes {
            shape.check(relations.len())?;
        }
        let mut used: Vec<usize> = shapes
            .iter()
            .flat_map(|shape| shape.relations.iter().map(|r| *r as usize))
            .collect();
        used.sort_unstable();
        used.dedup();
        let plans: Vec<Plan> = shapes
            .iter()
            .map(|shape| Plan::new(shape, config.layers, config.inverse))
            .collect();
        let count = shapes.len() as u32;
        // two classes a question before the first layer: others, and topics
        let begin = (0..count).flat_map(|question| {
            let mut rows = [count; 2];
            rows[TOPIC as usize] = question;
            rows
        });
        let begin = Segments::new(begin.collect(), shapes.len() + 1);
        let row = |shape: &Shape<'_>, relation: u32| {
            let local = shape.relations.len() as u32;
            let (relation, against) = match relation < local {
                true => (relation, 0),
                false => (relation - local, used.len()),
            };
            let row = shape.relations[relation as usize] as usize;
            (used.partition_point(|u| *u < row) + against) as u32
        };
        let ways = if config.inverse { 2 } else { 1 };
        let mut layers = Vec::with_capacity(config.layers);
        let mut starts: Vec<u32> = (0..count).map(|question| 2 * question).collect();
        let mut total = 2 * shapes.len();
        for layer in 0..config.layers {
            let mut raw = Raw::default();
            let mut next = Vec::with_capacity(shapes.len());
            for (question, (plan, shape)) in plans.iter().zip(shapes).enumerate() {
                let own = &plan.layers[layer];
                let (first_message, first_class) = (raw.source.len(), raw.before.len());
                next.push(first_class as u32);
                for &(class, relation) in &own.messages {
                    raw.source.push(starts[question] + class);
                    raw.relation.push(row(shape, relation));
                    raw.message_question.push(question as u32);
                }
                for (class, before) in own.before.iter().enumerate() {
                    raw.before.push(starts[question] + before);
                    raw.class_question.push(question as u32);
                    let entries = own.of(class);
                    let all: u32 = entries.iter().map(|(_, times)| times).sum();
                    for &(message, times) in entries {
                        raw.message.push(first_message as u32 + message);
                        raw.hearer.push((first_class + class) as u32);
                        raw.ln_times.push((times as f32).ln());
                        raw.shares.push(times as f32 / all as f32);
                    }
                }
            }
            let after = raw.before.len();
            let messages = raw.source.len();
            let segments = |ids: Vec<u32>, count: usize| Arc::new(Segments::new(ids, count));
            let column = |values: Vec<f32>| {
                let entries = values.len();
                Tensor::from_vec(values, (entries, 1), &Device::Cpu)?.to_device(device)
            };
            layers.push(Joined {
                source: segments(raw.source, total),
                relation: segments(raw.relation, ways * used.len()),
                message_question: segments(raw.message_question, shapes.len()),
                message: segments(raw.message, messages),
                hearer: segments(raw.hearer, after),
                ln_times: column(raw.ln_times)?,
                shares: column(raw.shares)?,
                before: segments(raw.before, total),
                class_question: segments(raw.class_question, shapes.len()),
            });
            starts = next;
            total = after;
        }
        let classes = (plans.iter().zip(&starts))
            .map(|(plan, start)| plan.last.iter().map(|class| start + class).collect())
            .collect();
        Ok(Self {
            questions: Tokens::new(questions, device)?,
            relations: Tokens::new(&relations.select(&used), device)?,
            begin: Arc::new(begin),
            layers,
            classes,
        })
    }

    /// The class of each entity of a question, a row of [`Network::distances`].
    pub fn classes(&self, question: usize) -> &[u32] {
        &self.classes[question]
    }
}

#[derive(Default)]
struct Raw {
    source: Vec<u32>,
    relation: Vec<u32>,
    message_question: Vec<u32>,
    message: Vec<u32>,
    hearer: Vec<u32>,
    ln_times: Vec<f32>,
    shares: Vec<f32>,
    before: Vec<u32>,
    class_question: Vec<u32>,
}

/// An answer and another entity, by class, and how much the pair counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Class of the answer.
    pub answer: u32,
    /// Class of the other.
    pub other: u32,
    /// Its weight in the loss.
    pub weight: f32,
}

/// `Σ weight · max(d(answer) − d(other) + margin, 0)`, a scalar.
pub fn margin_loss(distances: &Tensor, pairs: &[Pair], margin: f32) -> Result<Tensor> {
    let count = distances.dim(0)?;
    let side = |of: fn(&Pair) -> u32| {
        let ids = Segments::new(pairs.iter().map(of).collect(), count);
        gather(distances, &Arc::new(ids))
    };
    let weights: Vec<f32> = pairs.iter().map(|pair| pair.weight).collect();
    let weights = Tensor::from_vec(weights, (pairs.len(), 1), &Device::Cpu)?;
    let short = ((side(|p| p.answer)? - side(|p| p.other)?)? + f64::from(margin))?.relu()?;
    Ok((short * weights.to_device(distances.device())?)?.sum_all()?)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::tensor::gradient::worst_error;

    pub(crate) fn small(gate: bool, layerwise: bool, inverse: bool) -> Network {
        let config = Config {
            dim: 3,
            hidden: 4,
            layers: 2,
            gate,
            layerwise,
            inverse,
        };
        let network = Network::new(config, &mut Random::new(5), &Device::Cpu).unwrap();
        // biases off zero, so that their gradients are seen
        let mut random = Random::new(9);
        for var in network.parameters.values().filter(|var| var.rank() == 1) {
            let values = random.within(0.3, var.elem_count());
            var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu).unwrap())
                .unwrap();
        }
        network
    }

    pub(crate) fn texts(lengths: &[usize], seed: u64) -> TokenStates {
        let mut random = Random::new(seed);
        let mut states = TokenStates::new(3);
        for len in lengths {
            states.push(&random.within(1.0, 3 * len));
        }
        states
    }

    /// Two questions: a star with a path, and a pair joined both ways with an entity apart.
    pub(crate) const FIRST: Shape<'static> = Shape {
        topics: &[true, false, false, false, false],
        relations: &[2, 0],
        triples: &[[0, 0, 1], [0, 0, 2], [3, 1, 0], [4, 0, 3]],
    };
    pub(crate) const SECOND: Shape<'static> = Shape {
        topics: &[false, true, false],
        relations: &[1],
        triples: &[[0, 0, 1], [1, 0, 0], [1, 0, 1]],
    };

    fn batch(network: &Network) -> Batch {
        Batch::new(
            &network.config,
            &texts(&[3, 2], 1),
            &[FIRST, SECOND],
            &texts(&[1, 2, 0], 2),
            &Device::Cpu,
        )
        .unwrap()
    }

    #[test]
    fn gradients_are_finite_differences_with_and_without_each_part() -> Result<()> {
        for (gate, layerwise, inverse) in [
            (true, true, true),
            (false, true, false),
            (true, false, true),
            (false, false, true),
        ] {
            let network = small(gate, layerwise, inverse);
            let batch = batch(&network);
            let pair = |question: usize, answer: usize, other: usize| Pair {
                answer: batch.classes(question)[answer],
                other: batch.classes(question)[other],
                weight: 0.5,
            };
            let pairs = [pair(0, 4, 1), pair(0, 3, 0), pair(1, 0, 2)];
            let inputs: Vec<Var> = network.parameters.values().cloned().collect();
            let error = worst_error(&inputs, 2e-3, || {
                let distances = network.distances(&batch).expect("sizes fit");
                Ok(margin_loss(&distances, &pairs, 2.0).expect("pairs are inside"))
            })?;
            assert!(error < 5e-3, "{gate} {layerwise} {inverse}: {error}");
        }
        Ok(())
    }

    #[test]
    fn the_margin_has_its_hand_made_value() -> Result<()> {
        let distances = Tensor::new(&[[1.0f32], [3.0], [0.5]], &Device::Cpu)?;
        let pair = |answer, other, weight| Pair {
            answer,
            other,
            weight,
        };
        // 1 − 3 + 1 < 0;  1 − 0.5 + 1 = 1.5, a quarter of it;  3 − 0.5 + 1 = 3.5, half of it
        let pairs = [pair(0, 1, 1.0), pair(0, 2, 0.25), pair(1, 2, 0.5)];
        let loss = margin_loss(&distances, &pairs, 1.0)?.to_scalar::<f32>()?;
        assert!((loss - (0.375 + 1.75)).abs() < 1e-6);
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let network = small(true, true, true);
        let states = texts(&[2], 1);
        let outside = Shape {
            topics: &[true],
            relations: &[0],
            triples: &[[0, 0, 1]],
        };
        let new = |shape: Shape<'_>, questions: &TokenStates| {
            Batch::new(&network.config, questions, &[shape], &states, &Device::Cpu).map(|_| ())
        };
        assert!(new(outside, &states).is_err());
        assert!(new(SECOND, &states).is_err(), "there is one relation");
        assert!(new(outside, &TokenStates::new(5)).is_err());
    }
}
