//! The network as it learns: candle tensors, gradients, any device.
//!
//! Every product is made per entity or per relation, never per triple: `W·[e ‖ q ‖ p]` is
//! `W_e·e + W_q·q + W_p·p`, and `W_1·[q ‖ h ‖ r ‖ t]` is a sum of four.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor, Var};

use super::attention::attention;
use super::batch::{Batch, Edges};
use super::parameters::{Direction, initial, name, shapes};
use super::score::Scorer;
use super::triples::Readout;
use super::{Ablation, Config, EPSILON, Rows, Subgraph};
use crate::checkpoint::checkpointable;
use crate::scoring::{TripleNetwork, lowered};
use crate::tensor::{dropout, layer_norm, product_with_constant};
use crate::{Error, Random, Result};

/// QR-GAT with its learned tensors.
pub struct Network {
    config: Config,
    parameters: BTreeMap<String, Var>,
}

impl Network {
    /// A network that has learned nothing yet.
    pub fn new(config: Config, random: &mut Random, device: &Device) -> Result<Self> {
        config.check()?;
        Ok(Self {
            parameters: initial(&config, random, device)?,
            config,
        })
    }

    /// Its sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where its tensors are.
    pub fn device(&self) -> &Device {
        self.parameters["b_1"].device()
    }

    /// The logits of every triple of the batch, `[triples, outputs]`. With a generator the initial states go
    /// through dropout, as in training.
    pub fn forward(&self, batch: &Batch, training: Option<&mut Random>) -> Result<Tensor> {
        let (x, q) = match training {
            Some(random) if self.config.dropout > 0.0 => {
                let rate = self.config.dropout;
                let x = batch.inputs(Some((rate, random)), self.device())?;
                (x, dropout(&batch.questions, rate, random)?)
            }
            _ => (batch.inputs(None, self.device())?, batch.questions.clone()),
        };
        let Config { dim, hidden, .. } = self.config;
        let w_1 = self.get("w_1");
        let (head, relation) = (
            self.config.query_score(),
            self.config.query_score() + 2 * hidden,
        );
        let tail = relation + dim;

        let mut nodes: Option<Tensor> = None; // [nodes, 2·hidden]: as heads, as tails
        for (direction, edges) in [
            (Direction::Forward, &batch.forward),
            (Direction::Backward, &batch.backward),
        ] {
            let h = self.stack(direction, batch, edges, &x, &q)?;
            let own = match direction {
                Direction::Forward => 0,
                Direction::Backward => hidden,
            };
            let weights = Tensor::cat(
                &[
                    w_1.narrow(1, head + own, hidden)?,
                    w_1.narrow(1, tail + own, hidden)?,
                ],
                0,
            )?;
            let part = h.matmul(&weights.t()?)?;
            nodes = Some(match nodes {
                Some(nodes) => (nodes + part)?,
                None => part,
            });
        }
        let nodes = nodes.expect("there are two directions");
        let query = self.config.keeps(Ablation::NoQueryScore);
        let readout = Readout {
            w_q: query.then(|| w_1.narrow(1, 0, dim)).transpose()?,
            w_r: w_1.narrow(1, relation, dim)?,
            b_1: self.get("b_1"),
            w_2: self.get("w_2"),
            b_2: self.get("b_2"),
            meeting: (self.config.meets()).then(|| [self.get("m_q"), self.get("m_r")]),
        };
        let asked = (&batch.questions, &batch.relations);
        Ok(readout.logits(&nodes, asked, &batch.triples, batch.meetings.as_ref())?)
    }

    /// The last states of one direction, `[nodes, hidden]`.
    fn stack(
        &self,
        direction: Direction,
        batch: &Batch,
        edges: &std::sync::Arc<Edges>,
        x: &Tensor,
        q: &Tensor,
    ) -> candle_core::Result<Tensor> {
        let Config {
            hidden,
            heads,
            steps,
            ..
        } = self.config;
        let query = self.config.keeps(Ablation::NoQueryAttn);
        let mut h: Option<Tensor> = None;
        for layer in 0..self.config.layers {
            let get = |tensor: &str| self.get(&name(direction, layer, tensor));
            let roles = Tensor::cat(&[get("w_s"), get("w_t")], 0)?; // [2·hidden, inputs]
            let z = match &h {
                None => product_with_constant(x, &self.first_weights(&roles, q)?)?,
                Some(h) => h.matmul(&roles.t()?)?,
            };
            let a = get("a").reshape((1, hidden))?;
            let (of_relation, questions) = match query {
                true => {
                    let of_question = product_with_constant(&batch.questions, get("w_q"))?;
                    let weights = Tensor::cat(&[get("w_e"), get("w_r")], 0)?;
                    (weights, Tensor::cat(&[of_question, a], 0)?)
                }
                false => (get("w_e").clone(), a),
            };
            let mut relations = product_with_constant(&batch.relations, &of_relation)?;
            if steps {
                let none = relations.narrow(0, 0, 1)?.zeros_like()?;
                relations = Tensor::cat(&[&relations, &relations.neg()?, &none], 0)?;
            }
            let sums = attention(edges, (heads, steps), &z, &relations, &questions)?;
            h = Some(layer_norm(
                &sums,
                get("norm.scale"),
                get("norm.shift"),
                EPSILON,
            )?);
        }
        Ok(h.expect("a checked configuration has a layer"))
    }

    /// `[2·hidden, e + p + questions]`: W_e, W_p, and for each question the column `W_q·q`, which
    /// the one-hot question index of an entity picks.
    fn first_weights(&self, roles: &Tensor, q: &Tensor) -> candle_core::Result<Tensor> {
        let (dim, query) = (self.config.dim, self.config.query_init());
        let e = roles.narrow(1, 0, dim)?;
        let p = roles.narrow(1, dim + query, 2)?;
        if query == 0 {
            return Tensor::cat(&[e, p], 1);
        }
        let of_question = product_with_constant(q, &roles.narrow(1, dim, dim)?)?;
        Tensor::cat(&[e, p, of_question.t()?], 1)
    }
}

/// Weighted binary cross-entropy of logits against labels, in the order of their numbers:
///
/// ```text
/// L = Σ_e w_e·(max(s_e, 0) − s_e·y_e + ln(1 + e^{−|s_e|})) / Σ_e w_e
/// ```
pub fn loss(logits: &Tensor, labels: &[bool], weights: Vec<f32>) -> Result<Tensor> {
    for (what, given) in [
        ("list of labels", labels.len()),
        ("list of weights", weights.len()),
    ] {
        if logits.elem_count() != given {
            return Err(Error::Dimension {
                what,
                wanted: logits.elem_count(),
                given,
            });
        }
    }
    let total: f64 = weights.iter().map(|w| f64::from(*w)).sum();
    let targets: Vec<f32> = labels.iter().map(|y| f32::from(u8::from(*y))).collect();
    let device = logits.device();
    let logits = logits.flatten_all()?;
    let weights = Tensor::from_vec(weights, labels.len(), device)?;
    let targets = Tensor::from_vec(targets, labels.len(), device)?;
    let log = (logits.abs()?.neg()?.exp()? + 1.0)?.log()?;
    let each = ((logits.relu()? - (&logits * targets)?)? + log)?;
    Ok(((each * weights)?.sum_all()? * (1.0 / total.max(f64::MIN_POSITIVE)))?)
}

/// The weight at which positives count as much as negatives together, at most `cap`; 1 without
/// positives.
pub fn balance(labels: &[bool], cap: f32) -> f32 {
    let positives = labels.iter().filter(|y| **y).count();
    match positives {
        0 => 1.0,
        _ => ((labels.len() - positives) as f32 / positives as f32).clamp(1.0, cap.max(1.0)),
    }
}

impl TripleNetwork for Network {
    type Scorer = Scorer;

    fn untrained(sizes: Config, random: &mut Random, device: &Device) -> Result<Self> {
        Self::new(sizes, random, device)
    }

    fn sizes(&self) -> &Config {
        &self.config
    }

    fn for_dim(sizes: Config, dim: usize) -> Config {
        Config { dim, ..sizes }
    }

    fn tells_answers(sizes: &Config) -> bool {
        sizes.answers
    }

    fn logits(
        &self,
        subgraphs: &[Subgraph<'_>],
        [entities, relations]: [&dyn Rows; 2],
        training: Option<&mut Random>,
        device: &Device,
    ) -> Result<Tensor> {
        let batch = Batch::new(&self.config, subgraphs, entities, relations, device)?;
        self.forward(&batch, training)
    }

    fn with_lower_bias(&self, by: f32) -> Result<Self> {
        Ok(Self {
            config: self.config.clone(),
            parameters: lowered(&self.parameters, "b_2", by)?,
        })
    }

    fn scorer(&self) -> Result<Scorer> {
        Scorer::new(self)
    }
}

checkpointable!(Network, "qr-gat", config: Config, dim);

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::checkpoint::Checkpointable;
    use crate::qr_gat::{Subgraph, Table};
    use crate::tensor::gradient::worst_error;

    /// A random network whose norms and biases are no longer at their trivial start.
    pub(in crate::qr_gat) fn network(config: Config, seed: u64) -> Network {
        let mut random = Random::new(seed);
        let network = Network::new(config, &mut random, &Device::Cpu).unwrap();
        for var in network.parameters.values() {
            let noise: Vec<f32> = (0..var.elem_count())
                .map(|_| 0.2 * (random.uniform() - 0.5))
                .collect();
            let noise = Tensor::from_vec(noise, var.shape(), &Device::Cpu).unwrap();
            var.set(&(var.as_tensor() + noise).unwrap()).unwrap();
        }
        network
    }

    pub(in crate::qr_gat) fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        (0..count).map(|_| random.normal()).collect()
    }

    fn tiny(ablations: &[Ablation]) -> Config {
        Config {
            dim: 3,
            hidden: 4,
            layers: 2,
            heads: 2,
            dropout: 0.3,
            steps: false,
            answers: false,
            matching: false,
            ablations: ablations.iter().copied().collect(),
        }
    }

    const FIRST: Subgraph<'_> = Subgraph {
        question: &[0.3, -0.4, 0.9],
        entities: &[0, 1, 2, 3],
        topics: &[true, false, false, false],
        relations: &[0, 1],
        triples: &[[0, 0, 1], [0, 1, 2], [1, 1, 2], [3, 0, 1], [2, 0, 0]],
    };
    const SECOND: Subgraph<'_> = Subgraph {
        question: &[-0.7, 0.2, 0.1],
        entities: &[4, 0, 2],
        topics: &[false, true, false],
        relations: &[1],
        triples: &[[1, 0, 0], [1, 0, 2]],
    };

    #[test]
    fn gradient_of_the_whole_network_is_the_finite_difference() -> Result<()> {
        let (entities, relations) = (numbers(15, 1), numbers(6, 2));
        let (entities, relations) = (Table::new(&entities, 3)?, Table::new(&relations, 3)?);
        use Ablation::{NoQueryAttn, NoQueryInit, NoQueryScore};
        for (ablations, departs) in [
            (&[][..], false),
            (&[], true),
            (&[NoQueryInit], false),
            (&[NoQueryAttn], true),
            (&[NoQueryScore], false),
        ] {
            let config = Config {
                steps: departs,
                answers: departs,
                matching: departs,
                ..tiny(ablations)
            };
            let network = network(config, 6);
            let batch = Batch::new(
                network.config(),
                &[FIRST, SECOND],
                &entities,
                &relations,
                &Device::Cpu,
            )?;
            let labels = [true, false, false, true, false, true, false];
            let labels = labels.repeat(network.config().outputs());
            let weights: Vec<f32> = labels.iter().map(|y| if *y { 2.0 } else { 1.0 }).collect();
            let all: Vec<Var> = network.parameters().values().cloned().collect();
            let error = worst_error(&all, 2e-3, || {
                // the same seed: the same mask at every point
                let logits = network.forward(&batch, Some(&mut Random::new(3))).unwrap();
                Ok(loss(&logits, &labels, weights.clone()).unwrap())
            })?;
            assert!(error < 2e-3, "{ablations:?}: {error}");
        }
        Ok(())
    }

    #[test]
    fn questions_of_a_batch_do_not_hear_each_other() -> Result<()> {
        let (entities, relations) = (numbers(15, 1), numbers(6, 2));
        let (entities, relations) = (Table::new(&entities, 3)?, Table::new(&relations, 3)?);
        let network = network(tiny(&[]), 6);
        let logits = |subgraphs: &[Subgraph<'_>]| -> Result<Vec<f32>> {
            let batch = Batch::new(
                network.config(),
                subgraphs,
                &entities,
                &relations,
                &Device::Cpu,
            )?;
            Ok(network.forward(&batch, None)?.flatten_all()?.to_vec1()?)
        };
        let together = logits(&[FIRST, SECOND])?;
        let apart = [logits(&[FIRST])?, logits(&[SECOND])?].concat();
        for (a, b) in together.iter().zip(&apart) {
            assert!((a - b).abs() < 1e-5, "{together:?} {apart:?}");
        }
        Ok(())
    }

    #[test]
    fn loss_has_its_hand_made_value() -> Result<()> {
        // s = ln 3: −ln σ(s) = −ln ¾, −ln(1 − σ(s)) = −ln ¼; s = 0: ln 2
        let logits = Tensor::new(&[3f32.ln(), 3f32.ln(), 0.0], &Device::Cpu)?;
        let value =
            loss(&logits, &[true, false, false], vec![4.0, 1.0, 1.0])?.to_scalar::<f32>()?;
        let wanted = (4.0 * (4.0f32 / 3.0).ln() + 4f32.ln() + 2f32.ln()) / 6.0;
        assert!((value - wanted).abs() < 1e-6, "{value} {wanted}");
        assert!(loss(&logits, &[true], vec![1.0]).is_err());
        Ok(())
    }

    #[test]
    fn balance_evens_the_classes_up_to_its_cap() {
        assert_eq!(balance(&[true, false, false, false], 10.0), 3.0);
        assert_eq!(balance(&[true, false, false, false], 2.0), 2.0);
        assert_eq!(balance(&[false, false], 10.0), 1.0);
        assert_eq!(balance(&[true, true, false], 10.0), 1.0);
    }

    #[test]
    fn tensors_of_another_network_are_refused() {
        let config = tiny(&[]);
        let tensors = || -> HashMap<String, Tensor> {
            let network = network(tiny(&[]), 1);
            let copy = |(name, var): (&String, &Var)| (name.clone(), var.as_tensor().clone());
            network.parameters().iter().map(copy).collect()
        };
        assert!(Network::from_tensors(config.clone(), tensors(), &Device::Cpu).is_ok());
        let says = |tensors| match Network::from_tensors(config.clone(), tensors, &Device::Cpu) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("accepted"),
        };
        let mut short = tensors();
        short.remove("w_2");
        assert_eq!(
            says(short),
            "tensor `w_2` does not fit the network: there is none of shape [1, 4]"
        );
        let mut other = tensors();
        other.insert(
            "b_2".into(),
            Tensor::zeros(2, candle_core::DType::F32, &Device::Cpu).unwrap(),
        );
        assert_eq!(
            says(other),
            "tensor `b_2` does not fit the network: its shape is [2] and not [1]"
        );
        let mut more = tensors();
        let extra = more["b_2"].clone();
        more.insert("b_3".into(), extra);
        assert_eq!(
            says(more),
            "tensor `b_3` does not fit the network: the network has no such tensor"
        );
    }
}
