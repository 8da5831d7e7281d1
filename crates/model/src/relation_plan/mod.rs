//! A small sequence model that writes relation paths for a question, one grounded step at a time.
//!
//! ReG's retriever of paths (after RoG, Luo et al. 2024) with a network of some hundred thousand
//! weights in the place of a language model. The question is its tokens before and behind the
//! mention of the topic, x_i, at distances π_i from it:
//!
//! ```text
//! z_i = W_x·x_i + P[π_i]                              the topic itself: P[0]
//! c_i = ReLU(W_l·z_{i−1} + W_c·z_i + W_r·z_{i+1} + b_c)
//! s_0 = tanh(W_s·mean_i c_i + b_s)
//! α   = softmax_i(c_i·W_a·s_k)      g_k = Σ α_i·c_i      x̄_k = Σ α_i·x_i
//! u_k = tanh(W_u·[s_k ‖ g_k] + b_u)
//! v(ρ) = W_v·r + D[along or against]                   a step ρ: a relation and its direction
//! logit(ρ) = u_k·v(ρ) + (m ∘ x̄_k)·r/√dim               logit(stop) = u_k·v_stop
//! p(ρ | q, ρ_1 … ρ_k) = softmax over the steps that the graph has there, and to stop
//! s_{k+1} = tanh(W_n·[s_k ‖ g_k ‖ v(ρ_{k+1})] + b_n)
//! L = −mean over questions of mean over their paths of Σ_k ln p(ρ_k)
//! ```
//!
//! r is the encoder's vector of a relation's label, so that relations that were never seen in
//! training have a place. m begins at 1: words that are like a relation speak for it from the start.
//!
//! Two implementations share the weights: [`Network`] learns, [`Planner`] answers. A test holds them
//! to the same probabilities.

mod network;
mod planner;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::error::at_least_one;

pub use network::{Item, Network, Tokens};
pub use planner::{Decision, Planner, Reading, State, Vocabulary};

/// Sizes of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Numbers in the encoder's vectors.
    pub dim: usize,
    /// Numbers in a state.
    pub hidden: usize,
    /// The farthest distance from the topic that is told apart, on either side.
    pub reach: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dim: 256,
            hidden: 128,
            reach: 16,
        }
    }
}

impl Config {
    /// Refuses sizes of which no network can be made.
    pub fn check(&self) -> Result<()> {
        at_least_one([
            ("dim", self.dim),
            ("hidden", self.hidden),
            ("reach", self.reach),
        ])
    }

    /// The row of P for a token so far behind the topic (before it, if negative).
    pub(crate) fn position(&self, distance: i64) -> usize {
        let reach = self.reach as i64;
        (distance.clamp(-reach, reach) + reach) as usize
    }
}
