//! SubgraphRAG's triple scorer: how far head and tail are from the topics, and a two-layer network.
//!
//! Li, Miao and Li, "Simple is Effective: The Roles of Graphs and Large Language Models in
//! Knowledge-Graph-Based Retrieval-Augmented Generation", ICLR 2025; ReG's retriever of triples:
//!
//! ```text
//! p⁰_i  = [0, 1] for a topic, [1, 0] for others
//! p^k_i = mean over triples (j, r, i) of p^{k−1}_j          k ≤ rounds
//! p^−k_i = mean over triples (i, r, j) of p^{−k+1}_j        k ≤ rounds_back
//! d_i   = [p⁰_i ‖ p¹_i ‖ … ‖ p^−1_i ‖ …]                    directional distance encoding
//! s(h, r, t) = W_2·ReLU(W_1·[q ‖ e_h ‖ d_h ‖ r ‖ e_t ‖ d_t] + b_1) + b_2
//! ```
//!
//! e, r and q are the encoder's vectors of an entity's label, a relation's label and the question.
//! An entity without incoming (outgoing) triples has p^k = 0 (p^−k = 0).
//!
//! Departures: an entity without a name has e = 0 instead of a learned vector. Two are switches,
//! on by default in training and described in [`crate::qr_gat`]: [`Config::answers`] and
//! [`Config::matching`].
//!
//! Two implementations share the weights: [`Network`] learns, [`Scorer`] answers. A test holds them
//! to the same scores.

mod encoding;
mod network;
mod score;

use serde::{Deserialize, Serialize};

use crate::error::at_least_one;
use crate::{Error, Result};

pub use network::Network;
pub(crate) use network::meet;
#[cfg(test)]
pub(crate) use network::tests;
pub use score::{Scorer, Scratch};

/// Sizes of the network and what it has beyond the paper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Numbers in the encoder's vectors.
    pub dim: usize,
    /// Numbers in the hidden layer.
    pub hidden: usize,
    /// Rounds along the triples.
    pub rounds: usize,
    /// Rounds against them.
    pub rounds_back: usize,
    /// Whether triples also tell how likely their ends are answers (not in the paper).
    pub answers: bool,
    /// Whether question and relation also meet in a product (not in the paper).
    pub matching: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dim: 256,
            hidden: 256,
            rounds: 2,
            rounds_back: 2,
            answers: false,
            matching: false,
        }
    }
}

impl Config {
    /// Refuses sizes of which no network can be made.
    pub fn check(&self) -> Result<()> {
        at_least_one([("dim", self.dim), ("hidden", self.hidden)])?;
        for (option, given) in [("rounds", self.rounds), ("rounds_back", self.rounds_back)] {
            if given > 8 {
                return Err(Error::option(option, given, "at most 8"));
            }
        }
        Ok(())
    }

    /// Rows of W_2: what is told of a triple.
    pub fn outputs(&self) -> usize {
        if self.answers { 3 } else { 1 }
    }

    /// Numbers in d.
    pub(crate) fn distances(&self) -> usize {
        2 * (1 + self.rounds + self.rounds_back)
    }

    /// Numbers in `[e ‖ d]`.
    pub(crate) fn node(&self) -> usize {
        self.dim + self.distances()
    }
}
