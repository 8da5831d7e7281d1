//! GNN2R, step I: a graph network that brings the answers of a question near to it.
//!
//! Wang et al., "GNN2R: Weakly-Supervised Rationale-Providing Question Answering over Knowledge
//! Graphs", section 4.1:
//!
//! ```text
//! q     = mean of the last states of a GRU over the question's tokens, read from either end
//! q^k   = the same with GRUs of layer k, begun with the last states of layer k − 1
//! r     = the same of a relation's label
//! e⁰    = q for topics, one learned vector for all others
//! m_ij  = tanh(W_m·[e_i ‖ r_j] + b_m)                      over each edge, both ways
//! s_ij  = a·LeakyReLU(W_a·[m_ij ‖ q^k] + b_a)
//! m     = Σ softmax(s)_ij · m_ij                           over all messages of an entity
//! s_m   = a_u·LeakyReLU(W_u·[m ‖ q] + b_u)     s_e = a_u·LeakyReLU(W_u·[e ‖ q] + b_u)
//! e^k   = w_m·m + w_e·e^{k−1}                              (w_m, w_e) = softmax(s_m, s_e)
//! L     = Σ over (answer, other) of max(‖q − e‖ − ‖q − e'‖ + ε, 0)
//! ```
//!
//! Token vectors are an encoder's ([`crate::encode::TokenStates`]) and are not learned. All layers have
//! [`Config::hidden`] numbers, so that the paper's W_t1 and W_t2 are the identity.
//!
//! Departures and choices where the paper is silent: the slope of the leaky ReLU is 0.2; the GRUs of
//! the first layer begin with zeros, as those of q and r do; an entity that hears nobody hears zeros;
//! [`Config::inverse`], on unless it is set to false, adds a learned vector to a relation that is
//! walked against its direction, since otherwise parents and children look alike; the loss of a
//! question is a mean over its pairs where the paper has a sum, and that of a step a mean over its
//! questions; in training 1e-9 is added under the root of a distance. Where there are more pairs of
//! classes (below) than `max_pairs`, pairs of classes are drawn and not pairs of entities. Optimiser
//! and schedule are those of all trainings here (`docs/training.md`).
//!
//! **Entities that look alike are computed once.** Before the first layer there are two states, that of
//! topics and that of others. Two entities that have the same state and hear the same messages
//! equally often have the same state after a layer too, whatever the weights. `plan.rs` follows
//! these classes through the layers; products and sums run over classes and over distinct
//! messages (state, relation), of which a neighbourhood has many fewer than entities and edges.
//! Repeated messages count by ln(times) beside their score.
//!
//! Two implementations share weights and plan: [`Network`] learns, [`Reader`] answers. A test holds
//! them to the same distances.

mod encoders;
pub(crate) mod network;
mod one_way;
mod plan;
mod reader;
pub mod sentence;

use serde::{Deserialize, Serialize};

use crate::distill::Components;
use crate::error::at_least_one;
use crate::{Error, Result};

pub use network::{Batch, Network, Pair, margin_loss};
pub use reader::{LayerAttention, Near, Reader, Relations};

/// Slope of the leaky ReLU for negative numbers: that of Veličković et al., "Graph Attention
/// Networks", ICLR 2018; the paper does not say its own.
pub(crate) const SLOPE: f32 = 0.2;

/// Sizes of the network and what is left out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Numbers in the encoder's vectors.
    pub dim: usize,
    /// Numbers in a state.
    pub hidden: usize,
    /// Layers of messages.
    pub layers: usize,
    /// Whether a gate mixes what is heard with the state before; without it the former replaces it.
    pub gate: bool,
    /// Whether messages are weighed by the layer's own reading of the question; without it all
    /// count alike.
    pub layerwise: bool,
    /// Whether a relation sounds different against its direction (not in the paper).
    pub inverse: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dim: 256,
            hidden: 256,
            layers: 3,
            gate: true,
            layerwise: true,
            inverse: true,
        }
    }
}

impl Config {
    /// Refuses sizes of which no network can be made.
    pub fn check(&self) -> Result<()> {
        at_least_one([
            ("dim", self.dim),
            ("hidden", self.hidden),
            ("layers", self.layers),
        ])
    }
}

/// Where rows stand in the plane in which they spread most (their first two principal components).
pub fn plane(rows: &[&[f32]]) -> Vec<(f32, f32)> {
    let Some(dim) = rows.first().map(|row| row.len()) else {
        return Vec::new();
    };
    let mut centred: Vec<f32> = rows.concat();
    for column in 0..dim {
        let values = centred.iter().skip(column).step_by(dim);
        let mean = values.sum::<f32>() / rows.len() as f32;
        let values = centred.iter_mut().skip(column).step_by(dim);
        values.for_each(|x| *x -= mean);
    }
    let components = Components::of(&centred, dim, 2);
    let along = |row: &[f32], which: usize| {
        let axis = components.rows().get(which);
        axis.map_or(0.0, |axis| {
            row.iter()
                .zip(axis)
                .map(|(x, a)| f64::from(*x) * a)
                .sum::<f64>() as f32
        })
    };
    centred
        .chunks_exact(dim)
        .map(|row| (along(row, 0), along(row, 1)))
        .collect()
}

/// A neighbourhood in local ids.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// For each entity, whether the question is about it.
    pub topics: &'a [bool],
    /// For each local relation, its row among all relations.
    pub relations: &'a [u32],
    /// `[head, relation, tail]` in local ids.
    pub triples: &'a [[u32; 3]],
}

impl Shape<'_> {
    /// Refuses ids outside of the neighbourhood, or of `relation_rows`.
    pub fn check(&self, relation_rows: usize) -> Result<()> {
        let inside = |what, id: u32, count: usize| match (id as usize) < count {
            true => Ok(()),
            false => Err(Error::IdOutside { what, id, count }),
        };
        if self.topics.is_empty() {
            return Err(Error::EmptySubgraph);
        }
        for &row in self.relations {
            inside("relation row", row, relation_rows)?;
        }
        for &[head, relation, tail] in self.triples {
            inside("local entity", head.max(tail), self.topics.len())?;
            inside("local relation", relation, self.relations.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_on_a_line_stand_on_a_line() {
        // along (3, 4, 0) from (1, 1, 1): at −5, 0 and 5 from their mean
        let rows: [&[f32]; 3] = [&[-2.0, -3.0, 1.0], &[1.0, 1.0, 1.0], &[4.0, 5.0, 1.0]];
        let places = plane(&rows);
        assert!((places[0].0 + 5.0).abs() < 1e-4 && (places[2].0 - 5.0).abs() < 1e-4);
        assert!(places.iter().all(|(_, y)| y.abs() < 1e-4));
        assert!(plane(&[]).is_empty());
    }

    #[test]
    fn sizes_of_nothing_are_refused() {
        let config = Config {
            layers: 0,
            ..Config::default()
        };
        assert!(config.check().unwrap_err().to_string().contains("`layers`"));
    }
}
