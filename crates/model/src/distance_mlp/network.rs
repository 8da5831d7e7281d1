//! The network as it learns: candle tensors, gradients, any device.
//!
//! ```text
//! w_1 [hidden, dim + node + dim + node]    columns q, e_h and d_h, r, e_t and d_t
//! b_1 [hidden]    w_2 [outputs, hidden]    b_2 [outputs]
//! m_q, m_r [hidden, dim]                   with `matching`
//! ```
//!
//! Matrices begin as Glorot and Bengio (2010) have it, vectors at 0, M_q and M_r equal.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor, Var};

use super::Config;
use super::encoding::encode;
use super::score::Scorer;
use crate::checkpoint::checkpointable;
use crate::gnn2r::network::drawn;
use crate::qr_gat::batch::{Joined, question_rows, relation_rows, used_relations};
use crate::qr_gat::triples::Readout;
use crate::qr_gat::{Rows, Subgraph};
use crate::scoring::{TripleNetwork, lowered};
use crate::tensor::product_with_constant;
use crate::{Error, Random, Result};

/// The distance scorer with its learned tensors.
pub struct Network {
    config: Config,
    parameters: BTreeMap<String, Var>,
}

fn shapes(config: &Config) -> Vec<(String, Vec<usize>)> {
    let Config { dim, hidden, .. } = *config;
    let mut all = vec![
        ("w_1".to_owned(), vec![hidden, 2 * dim + 2 * config.node()]),
        ("b_1".to_owned(), vec![hidden]),
        ("w_2".to_owned(), vec![config.outputs(), hidden]),
        ("b_2".to_owned(), vec![config.outputs()]),
    ];
    if config.matching {
        all.push(("m_q".to_owned(), vec![hidden, dim]));
        all.push(("m_r".to_owned(), vec![hidden, dim]));
    }
    all
}

/// Lets M_r begin as M_q does, with numbers up to 1, so that what is alike counts from the start.
pub(crate) fn meet(parameters: &BTreeMap<String, Var>, random: &mut Random) -> Result<()> {
    for (name, m_q) in parameters {
        let Some(stem) = name.strip_suffix("m_q") else {
            continue;
        };
        let values = random.within(1.0, m_q.elem_count());
        let values = Tensor::from_vec(values, m_q.shape(), &Device::Cpu)?;
        let values = values.to_device(m_q.device())?;
        m_q.set(&values)?;
        parameters[&format!("{stem}m_r")].set(&values.copy()?)?;
    }
    Ok(())
}

impl TripleNetwork for Network {
    type Scorer = Scorer;

    fn untrained(sizes: Config, random: &mut Random, device: &Device) -> Result<Self> {
        sizes.check()?;
        let parameters = drawn(shapes(&sizes), random, device)?;
        meet(&parameters, random)?;
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
        let Config { dim, .. } = *config;
        let width = config.node();
        let used = used_relations(dim, subgraphs, entities, relations)?;
        let nodes: usize = subgraphs.iter().map(|s| s.entities.len()).sum();
        let mut inputs = vec![0.0; nodes * width];
        let mut rows = inputs.chunks_exact_mut(width);
        let mut d = Vec::new();
        for subgraph in subgraphs {
            encode(config, subgraph.topics, subgraph.triples, &mut d);
            let of_node = subgraph
                .entities
                .iter()
                .zip(d.chunks_exact(config.distances()));
            for ((entity, d), row) in of_node.zip(&mut rows) {
                entities.read(&[*entity], 0..dim, &mut row[..dim]);
                row[dim..].copy_from_slice(d);
            }
        }
        if !inputs.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: "entity vector".into(),
            });
        }
        let x = Tensor::from_vec(inputs, (nodes, width), device)?;
        let joined = Joined::new(subgraphs, &used, false);
        let sizes = (nodes, used.len(), subgraphs.len());
        let meetings = config.matching.then(|| joined.meetings(sizes));

        let w_1 = self.get("w_1");
        let ends = [
            w_1.narrow(1, dim, width)?,
            w_1.narrow(1, 2 * dim + width, width)?,
        ];
        let of_nodes = product_with_constant(&x, &Tensor::cat(&ends, 0)?)?;
        let readout = Readout {
            w_q: Some(w_1.narrow(1, 0, dim)?),
            w_r: w_1.narrow(1, dim + width, dim)?,
            b_1: self.get("b_1"),
            w_2: self.get("w_2"),
            b_2: self.get("b_2"),
            meeting: (config.matching).then(|| [self.get("m_q"), self.get("m_r")]),
        };
        let q = question_rows(dim, subgraphs, device)?;
        let r = relation_rows(dim, &used, relations, device)?;
        let triples = std::sync::Arc::new(joined.triples(sizes, config.matching));
        Ok(readout.logits(&of_nodes, (&q, &r), &triples, meetings.as_ref())?)
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

checkpointable!(Network, "distance-mlp", config: Config, dim);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::checkpoint::Checkpointable;
    use crate::qr_gat::{Table, loss};
    use crate::tensor::gradient::worst_error;

    pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        (0..count).map(|_| random.normal()).collect()
    }

    pub(crate) const FIRST: Subgraph<'_> = Subgraph {
        question: &[0.3, -0.4, 0.9],
        entities: &[0, 1, 2, 3],
        topics: &[true, false, false, false],
        relations: &[0, 1],
        triples: &[
            [0, 0, 1],
            [0, 1, 2],
            [1, 1, 2],
            [3, 0, 1],
            [2, 0, 0],
            [0, 1, 1],
        ],
    };
    pub(crate) const SECOND: Subgraph<'_> = Subgraph {
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
        for departs in [false, true] {
            let config = Config {
                dim: 3,
                hidden: 4,
                answers: departs,
                matching: departs,
                ..Config::default()
            };
            let network = Network::untrained(config, &mut Random::new(6), &Device::Cpu)?;
            let count = 8 * network.sizes().outputs();
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
}
