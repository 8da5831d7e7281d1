//! ReG's retriever of entities: a PNA network tells which entities lie on the evidence.
//!
//! Corso et al., "Principal Neighbourhood Aggregation for Graph Nets", NeurIPS 2020; ReG, equation
//! 30 and appendix F:
//!
//! ```text
//! h_i   = ReLU(W_0·[e_i ‖ q ‖ p_i] + b_0)                        p: topic or not
//! m_ij  = W_m·h_j + b_m                                           j: neighbours, either way
//! a_i   = [mean ‖ max ‖ min ‖ std] over j of m_ij
//! A_i   = [a_i ‖ a_i·ln(d_i + 1)/δ ‖ a_i·δ/ln(d_i + 1)]            identity, amplify, attenuate
//! h_i  ← LayerNorm(h_i + ReLU(W_u·[h_i ‖ A_i] + b_u))             layer by layer
//! o_i   = W_o·h_i + b_o                         p(i) = σ(o_i)
//! s(h, r, t) = (p(h) + p(t)) / 2
//! ```
//!
//! d_i is the number of neighbours, δ ([`Config::delta`]) its mean of ln(d + 1) in training graphs.
//! Triples between the same entities are one edge: parallel relations are merged.
//!
//! Departures: the paper's pre-network takes both states; a linear one of the hearer's own state
//! would only add what W_u has already. Scores are halved, to lie within 0 and 1. Two switches are
//! off in [`Config::default`], which is the paper's form; `wherefore train pna` has `answers` on and
//! `relations` off, `wherefore train pna-relations` has both on, unless it is said otherwise:
//!
//! - [`Config::relations`]: messages know by which relation they come, merged over parallel ones,
//!   and how it goes with the question; against its direction a relation is −r:
//!
//!   ```text
//!   m_ij = ReLU(W_m·h_j + mean over r of ±(W_r·r + (M_q·q) ∘ (M_r·r)) + b_m)
//!   ```
//!
//! - [`Config::answers`]: W_o has a second row, for how likely an entity is an answer.
//!
//! Two implementations share the weights: [`Network`] learns, [`Scorer`] answers. A test holds them
//! to the same scores.

mod edges;
mod network;
mod score;

use serde::{Deserialize, Serialize};

use crate::error::at_least_one;
use crate::{Error, Result};

pub use network::Network;
pub use score::{Scorer, Scratch};

/// ε under the root of the standard deviation.
pub(crate) const EPSILON: f32 = 1e-5;
/// ε of the layer norm.
const NORM: f32 = crate::qr_gat::EPSILON;
/// Aggregated numbers for each number of a message: four kinds, three scalers.
pub(crate) const AGGREGATES: usize = 12;

/// Sizes of the network and what it has beyond the paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Numbers in the encoder's vectors.
    pub dim: usize,
    /// Numbers in a state.
    pub hidden: usize,
    /// Layers of messages.
    pub layers: usize,
    /// δ: the mean of ln(d + 1).
    pub delta: f32,
    /// Whether messages know their relation (not in the paper).
    pub relations: bool,
    /// Whether entities also tell how likely they are answers (not in the paper).
    pub answers: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dim: 256,
            hidden: 128,
            layers: 2,
            delta: 1.5,
            relations: false,
            answers: false,
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
        ])?;
        if !(self.delta > 0.0 && self.delta.is_finite()) {
            return Err(Error::option("delta", self.delta, "above 0"));
        }
        Ok(())
    }

    /// Rows of W_o: what is told of an entity.
    pub fn outputs(&self) -> usize {
        if self.answers { 2 } else { 1 }
    }

    /// Factors of the amplifying and the attenuating scaler for an entity with so many neighbours.
    pub(crate) fn scalers(&self, neighbours: usize) -> [f32; 2] {
        let ln = (neighbours.max(1) as f32 + 1.0).ln();
        [ln / self.delta, self.delta / ln]
    }
}
