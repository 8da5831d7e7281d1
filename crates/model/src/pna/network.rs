//! The network as it learns: candle tensors, gradients, any device.
//!
//! ```text
//! w_0 [hidden, 2·dim + 2]     columns e, q, p             b_0 [hidden]
//! K.w_m [hidden, hidden]      K.b_m [hidden]              K counts from 1
//! K.w_r, K.m_q, K.m_r [hidden, dim]                       with `relations`
//! K.w_u [hidden, 13·hidden]   columns h, then A           K.b_u [hidden]
//! K.norm.scale, K.norm.shift [hidden]
//! w_o [outputs, hidden]       b_o [outputs]
//! ```
//!
//! A has the four aggregates plain, amplified and attenuated, in the order mean, max, min, std.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use super::edges::Edges;
use super::score::Scorer;
use super::{Config, EPSILON, NORM};
use crate::checkpoint::checkpointable;
use crate::distance_mlp::meet;
use crate::gnn2r::network::drawn;
use crate::qr_gat::batch::{Joined, Meetings, question_rows, relation_rows, used_relations};
use crate::qr_gat::{Rows, Subgraph};
use crate::scoring::{TripleNetwork, lowered};
use crate::tensor::{
    Segments, gather, layer_norm, product_with_constant, segment_max, segment_mean,
};
use crate::{Error, Random, Result};

/// The entity scorer with its learned tensors.
pub struct Network {
    config: Config,
    parameters: BTreeMap<String, Var>,
}

fn shapes(config: &Config) -> Vec<(String, Vec<usize>)> {
    let Config { dim, hidden, .. } = *config;
    let mut all = vec![
        ("w_0".to_owned(), vec![hidden, 2 * dim + 2]),
        ("b_0".to_owned(), vec![hidden]),
        ("w_o".to_owned(), vec![config.outputs(), hidden]),
        ("b_o".to_owned(), vec![config.outputs()]),
    ];
    for layer in 1..=config.layers {
        let mut add = |name: &str, shape: Vec<usize>| all.push((format!("{layer}.{name}"), shape));
        add("w_m", vec![hidden, hidden]);
        add("b_m", vec![hidden]);
        if config.relations {
            for name in ["w_r", "m_q", "m_r"] {
                add(name, vec![hidden, dim]);
            }
        }
        add("w_u", vec![hidden, (1 + super::AGGREGATES) * hidden]);
        add("b_u", vec![hidden]);
        add("norm.scale", vec![hidden]);
        add("norm.shift", vec![hidden]);
    }
    all
}

/// The edges of all questions of a batch.
struct Joint {
    source: Arc<Segments>,
    hearer: Arc<Segments>,
    /// With relations: the pair of question and relation of each triple of an edge, its sign, and
    /// its edge.
    pair: Arc<Segments>,
    sign: Tensor, // [entries, 1]
    edge: Arc<Segments>,
    /// Factors of the scalers, `[nodes, 1]` each.
    scalers: [Tensor; 2],
}

impl Joint {
    fn new(
        config: &Config,
        joined: &Joined,
        nodes: usize,
        pairs: usize,
        device: &Device,
    ) -> Result<Self> {
        let edges = Edges::new(&joined.triples, config.relations);
        let mut neighbours = vec![0usize; nodes];
        for hearer in &edges.hearer {
            neighbours[*hearer as usize] += 1;
        }
        let factors: Vec<[f32; 2]> = neighbours.iter().map(|n| config.scalers(*n)).collect();
        let column = |which: usize| {
            let values: Vec<f32> = factors.iter().map(|f| f[which]).collect();
            Tensor::from_vec(values, (nodes, 1), device)
        };
        let mut of_edge = Vec::with_capacity(edges.triples.len());
        for edge in 0..edges.len() {
            of_edge.extend(edges.triples_of(edge).iter().map(|_| edge as u32));
        }
        let entries = &edges.triples;
        let sign: Vec<f32> = entries
            .iter()
            .map(|e| if e.1 { 1.0 } else { -1.0 })
            .collect();
        let pair = entries.iter().map(|e| joined.pair[e.0 as usize]).collect();
        Ok(Self {
            sign: Tensor::from_vec(sign, (entries.len(), 1), device)?,
            pair: Arc::new(Segments::new(pair, pairs)),
            edge: Arc::new(Segments::new(of_edge, edges.len())),
            scalers: [column(0)?, column(1)?],
            source: Arc::new(Segments::new(edges.source, nodes)),
            hearer: Arc::new(Segments::new(edges.hearer, nodes)),
        })
    }
}

impl TripleNetwork for Network {
    type Scorer = Scorer;

    fn untrained(sizes: Config, random: &mut Random, device: &Device) -> Result<Self> {
        sizes.check()?;
        let parameters = drawn(shapes(&sizes), random, device)?;
        meet(&parameters, random)?;
        for layer in 1..=sizes.layers {
            let scale = &parameters[&format!("{layer}.norm.scale")];
            scale.set(&scale.ones_like()?)?;
        }
        Ok(Self {
            config: sizes,
            parameters,
        })
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
        _training: Option<&mut Random>,
        device: &Device,
    ) -> Result<Tensor> {
        let config = &self.config;
        let dim = config.dim;
        let used = used_relations(dim, subgraphs, entities, relations)?;
        let nodes: usize = subgraphs.iter().map(|s| s.entities.len()).sum();
        let mut inputs = vec![0.0; nodes * (dim + 2)];
        let mut rows = inputs.chunks_exact_mut(dim + 2);
        let mut of_node = Vec::with_capacity(nodes);
        for (question, subgraph) in subgraphs.iter().enumerate() {
            for (entity, topic) in subgraph.entities.iter().zip(subgraph.topics) {
                let row = rows.next().expect("one row for each entity");
                entities.read(&[*entity], 0..dim, &mut row[..dim]);
                row[dim + usize::from(*topic)] = 1.0;
                of_node.push(question as u32);
            }
        }
        if !inputs.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: "entity vector".into(),
            });
        }
        let x = Tensor::from_vec(inputs, (nodes, dim + 2), device)?;
        let q = question_rows(dim, subgraphs, device)?;
        let r = relation_rows(dim, &used, relations, device)?;
        let joined = Joined::new(subgraphs, &used, false);
        let Meetings { question, relation } = joined.meetings((nodes, used.len(), subgraphs.len()));
        let joint = Joint::new(config, &joined, nodes, question.len(), device)?;

        let w_0 = self.get("w_0");
        let of_x = Tensor::cat(&[w_0.narrow(1, 0, dim)?, w_0.narrow(1, 2 * dim, 2)?], 1)?;
        let of_q = product_with_constant(&q, &w_0.narrow(1, dim, dim)?)?;
        let of_q = gather(&of_q, &Arc::new(Segments::new(of_node, subgraphs.len())))?;
        let mut h = (product_with_constant(&x, &of_x)? + of_q)?
            .broadcast_add(self.get("b_0"))?
            .relu()?;
        for layer in 1..=config.layers {
            let get = |name: &str| self.get(&format!("{layer}.{name}"));
            let mut m = gather(&h.matmul(&get("w_m").t()?)?, &joint.source)?;
            if config.relations {
                let of_r = product_with_constant(&r, get("w_r"))?;
                let m_q = product_with_constant(&q, get("m_q"))?;
                let m_r = product_with_constant(&r, get("m_r"))?;
                let product = (gather(&m_q, &question)? * gather(&m_r, &relation)?)?;
                let of_pair = (gather(&of_r, &relation)? + product)?;
                let signed = gather(&of_pair, &joint.pair)?.broadcast_mul(&joint.sign)?;
                m = (m + segment_mean(&signed, &joint.edge)?)?
                    .broadcast_add(get("b_m"))?
                    .relu()?;
            } else {
                m = m.broadcast_add(get("b_m"))?;
            }
            let mean = segment_mean(&m, &joint.hearer)?;
            let max = segment_max(&m, &joint.hearer)?;
            let min = segment_max(&m.neg()?, &joint.hearer)?.neg()?;
            let square = segment_mean(&m.sqr()?, &joint.hearer)?;
            let spread = (square - mean.sqr()?)?.relu()?;
            let std = (spread + f64::from(EPSILON))?.sqrt()?;
            let a = Tensor::cat(&[&mean, &max, &min, &std], 1)?;
            let [amplify, attenuate] = &joint.scalers;
            let all = [
                &h,
                &a,
                &a.broadcast_mul(amplify)?,
                &a.broadcast_mul(attenuate)?,
            ];
            let update = Tensor::cat(&all, 1)?
                .matmul(&get("w_u").t()?)?
                .broadcast_add(get("b_u"))?
                .relu()?;
            h = layer_norm(&(h + update)?, get("norm.scale"), get("norm.shift"), NORM)?;
        }
        Ok(h.matmul(&self.get("w_o").t()?)?
            .broadcast_add(self.get("b_o"))?)
    }

    fn with_lower_bias(&self, by: f32) -> Result<Self> {
        Ok(Self {
            config: self.config.clone(),
            parameters: lowered(&self.parameters, "b_o", by)?,
        })
    }

    fn scorer(&self) -> Result<Scorer> {
        Scorer::new(self)
    }
}

checkpointable!(Network, "pna", config: Config, dim);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Checkpointable;
    use crate::distance_mlp::tests::{FIRST, SECOND, numbers};
    use crate::qr_gat::{Table, loss};
    use crate::tensor::gradient::worst_error;

    #[test]
    fn gradient_of_the_whole_network_is_the_finite_difference() -> Result<()> {
        let (entities, relations) = (numbers(15, 1), numbers(6, 2));
        let (entities, relations) = (Table::new(&entities, 3)?, Table::new(&relations, 3)?);
        for departs in [false, true] {
            let config = Config {
                dim: 3,
                hidden: 4,
                answers: departs,
                relations: departs,
                ..Config::default()
            };
            let network = Network::untrained(config, &mut Random::new(5), &Device::Cpu)?;
            let count = 7 * network.sizes().outputs();
            let labels: Vec<bool> = (0..count).map(|i| i % 3 == 0).collect();
            let all: Vec<Var> = network.parameters().values().cloned().collect();
            let error = worst_error(&all, 1e-3, || {
                let logits = network
                    .logits(
                        &[FIRST, SECOND],
                        [&entities, &relations],
                        None,
                        &Device::Cpu,
                    )
                    .unwrap();
                Ok(loss(&logits, &labels, vec![1.0; count]).unwrap())
            })?;
            assert!(error < 5e-3, "{departs}: {error}");
        }
        Ok(())
    }

    #[test]
    fn questions_of_a_batch_do_not_hear_each_other() -> Result<()> {
        let (entities, relations) = (numbers(15, 1), numbers(6, 2));
        let (entities, relations) = (Table::new(&entities, 3)?, Table::new(&relations, 3)?);
        let config = Config {
            dim: 3,
            hidden: 4,
            relations: true,
            ..Config::default()
        };
        let network = Network::untrained(config, &mut Random::new(5), &Device::Cpu)?;
        let logits = |subgraphs: &[Subgraph<'_>]| -> Result<Vec<f32>> {
            let labels: [&dyn Rows; 2] = [&entities, &relations];
            let logits = network.logits(subgraphs, labels, None, &Device::Cpu)?;
            Ok(logits.flatten_all()?.to_vec1()?)
        };
        let together = logits(&[FIRST, SECOND])?;
        let apart = [logits(&[FIRST])?, logits(&[SECOND])?].concat();
        for (a, b) in together.iter().zip(&apart) {
            assert!((a - b).abs() < 1e-5, "{together:?} {apart:?}");
        }
        Ok(())
    }
}
