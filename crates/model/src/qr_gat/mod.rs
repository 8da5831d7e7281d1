//! QR-GAT: a graph attention network that scores every triple of a neighbourhood against a
//! question.
//!
//! Xu, Guo, Zhang and Fu, "Query-Aware Graph Attention for Precise Subgraph Retrieval in
//! Knowledge-Augmented Reasoning":
//!
//! ```text
//! h⁰_i = Dropout([e_i ‖ q ‖ p_i])
//! z_i = W_s·h_i        z_j = W_t·h_j                            layer by layer
//! a_base = a·LeakyReLU(z_i + z_j + W_e·r_ij)                    head by head
//! a_plus = (W_q·q)·(W_r·r_ij)                                   head by head
//! α_ij = softmax over j ∈ N(i) of (a_base + a_plus)
//! h_i ← LayerNorm(‖ over heads of Σ_j α_ij·z_j)
//! h_i = [h_i→ ‖ h_i←]                                           the last layers
//! s(h, r, t) = W_2·ReLU(W_1·[q ‖ h_h ‖ r ‖ h_t] + b_1) + b_2
//! ```
//!
//! e, r and q are the encoder's vectors of an entity's label, a relation's label and the question
//! ([`Config::dim`] numbers each); p is `[1, 0]`, or `[0, 1]` for a topic entity. `→` is a stack of
//! [`Config::layers`] layers in which tails hear their heads, `←` one with its own weights in which
//! heads hear their tails. [`Ablation`] leaves q out at one of its three places.
//!
//! Departures and choices where the paper is silent: W_1 and W_2 have a bias; the slope of the
//! leaky ReLU is 0.2 and the layer norm's ε is 1e-5; an entity that hears nobody sums to zero, and
//! is the norm's shift after it; an entity without a name has e = 0. Dropout draws one mask of q for a
//! question and not one for each of its entities, so that `W·[e ‖ q ‖ p]` splits in training as it
//! does in answering. Loss, optimiser and schedule of the training are ours too: the crate
//! `wherefore-lab` declares them in `train/triples.rs` and `train/trainer.rs`, and `docs/training.md`
//! lists all of it.
//!
//! Three departures are switches. [`Config::default`] has them off, which is the published network;
//! **`wherefore train qr-gat` has all three on** unless `sizes.steps`, `sizes.answers` and
//! `sizes.matching` are set to false. What a checkpoint has stands in the `sizes` of its `config.json`.
//!
//! - [`Config::steps`]: edges are walked both ways, against their direction with −r for r, and what
//!   is heard over an edge is the step `z_j + W_e·r` instead of the node `z_j`:
//!
//!   ```text
//!   h_i ← LayerNorm(‖ over heads of Σ_j α_ij·(z_j + W_e·r_ij))
//!   ```
//!
//!   and topics hear themselves, through a step with r = 0. As published, a node with one neighbour
//!   takes over its state by whatever relation, a state never travels along two edges of opposite
//!   direction, and a topic does not know that it is one: a film of which somebody is the writer
//!   looks like one in which they act.
//! - [`Config::answers`]: W_2 has three rows, for `s` and for how likely head and tail of the
//!   triple are answers. An entity is as likely an answer as the likeliest of its ends.
//!
//! - [`Config::matching`]: question and relation also meet in a product, number by number, since a
//!   sum of the two can only learn by heart which questions go with which relations:
//!
//!   ```text
//!   s(h, r, t) = W_2·ReLU(W_1·[q ‖ h_h ‖ r ‖ h_t] + (M_q·q) ∘ (M_r·r) + b_1) + b_2
//!   ```
//!
//!   M_q and M_r begin equal, and so do W_q and W_r, so that what is alike counts from the start.
//!
//! Two implementations share the weights: [`Network`] learns, [`Scorer`] answers. A test holds them
//! to the same scores.

mod attention;
pub(crate) mod batch;
mod direction;
mod network;
mod parameters;
mod pass;
mod plan;
pub(crate) mod score;
mod statics;
pub(crate) mod triples;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::at_least_one;
use crate::{Error, Result};

pub use batch::Batch;
pub use network::{Network, balance, loss};
pub use score::{Scorer, Scratch};
pub use statics::{Projected, Rows, Table};

/// Slope of the leaky ReLU for negative numbers: that of Veličković et al., "Graph Attention
/// Networks", ICLR 2018; the paper does not say its own.
pub(crate) const SLOPE: f32 = 0.2;
/// ε of the layer norm: PyTorch's.
pub(crate) const EPSILON: f32 = 1e-5;

/// Sizes of the network and what is left out of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Numbers in the encoder's vectors.
    pub dim: usize,
    /// Numbers in an entity's state, in each direction.
    pub hidden: usize,
    /// Attention layers in each direction.
    pub layers: usize,
    /// Attention heads; they divide `hidden`.
    pub heads: usize,
    /// Share of the initial states that is dropped in training.
    pub dropout: f32,
    /// Whether nodes hear steps, over edges in either direction (not in the paper; on in training).
    pub steps: bool,
    /// Whether triples also tell how likely their ends are answers (not in the paper; on in
    /// training).
    pub answers: bool,
    /// Whether question and relation also meet in a product (not in the paper; on in training),
    /// unless `no-query-score` leaves the question out of the score.
    pub matching: bool,
    /// Places where the question is left out.
    pub ablations: BTreeSet<Ablation>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dim: 384,
            hidden: 256,
            layers: 2,
            heads: 4,
            dropout: 0.1,
            steps: false,
            answers: false,
            matching: false,
            ablations: BTreeSet::new(),
        }
    }
}

/// A place where the question is left out of the network (Table 5 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ablation {
    /// `h⁰ = [e ‖ p]`.
    NoQueryInit,
    /// No `a_plus`.
    NoQueryAttn,
    /// `W_1·[h_h ‖ r ‖ h_t]`.
    NoQueryScore,
}

impl Config {
    /// Refuses sizes of which no network can be made.
    pub fn check(&self) -> Result<()> {
        at_least_one([
            ("dim", self.dim),
            ("hidden", self.hidden),
            ("layers", self.layers),
            ("heads", self.heads),
        ])?;
        if !self.hidden.is_multiple_of(self.heads) {
            let wanted = format!("a divisor of hidden, which is {}", self.hidden);
            return Err(Error::option("heads", self.heads, wanted));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(Error::option(
                "dropout",
                self.dropout,
                "at least 0 and below 1",
            ));
        }
        Ok(())
    }

    /// Whether the network has this part of the paper.
    pub(crate) fn keeps(&self, ablation: Ablation) -> bool {
        !self.ablations.contains(&ablation)
    }

    /// Whether question and relation meet in a product.
    pub(crate) fn meets(&self) -> bool {
        self.matching && self.keeps(Ablation::NoQueryScore)
    }

    /// Rows of W_2: what is told of a triple.
    pub fn outputs(&self) -> usize {
        if self.answers { 3 } else { 1 }
    }

    /// Columns of the first layer's W_s and W_t: `[e ‖ q ‖ p]`.
    pub(crate) fn first_inputs(&self) -> usize {
        self.dim + self.query_init() + 2
    }

    /// Columns of q in the first layer.
    pub(crate) fn query_init(&self) -> usize {
        self.dim * usize::from(self.keeps(Ablation::NoQueryInit))
    }

    /// Columns of q in W_1.
    pub(crate) fn query_score(&self) -> usize {
        self.dim * usize::from(self.keeps(Ablation::NoQueryScore))
    }
}

/// One question and its neighbourhood, in local ids.
#[derive(Clone, Copy, Debug)]
pub struct Subgraph<'a> {
    /// The question's vector.
    pub question: &'a [f32],
    /// For each local entity, its row among the entities of the graph.
    pub entities: &'a [u32],
    /// For each local entity, whether the question is about it.
    pub topics: &'a [bool],
    /// For each local relation, its row among the relations of the graph.
    pub relations: &'a [u32],
    /// `[head, relation, tail]` in local ids.
    pub triples: &'a [[u32; 3]],
}

impl Subgraph<'_> {
    /// Refuses what cannot be scored: no triple, ids outside, numbers of another dimension.
    pub fn check(&self, dim: usize, entity_rows: usize, relation_rows: usize) -> Result<()> {
        if self.triples.is_empty() {
            return Err(Error::EmptySubgraph);
        }
        let dimension = |what, given, wanted| match given == wanted {
            true => Ok(()),
            false => Err(Error::Dimension {
                what,
                wanted,
                given,
            }),
        };
        dimension("question vector", self.question.len(), dim)?;
        dimension(
            "list of topic flags",
            self.topics.len(),
            self.entities.len(),
        )?;
        if !self.question.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: "question vector".into(),
            });
        }
        inside("entity row", self.entities.iter(), entity_rows)?;
        inside("relation row", self.relations.iter(), relation_rows)?;
        let ends = self.triples.iter().flat_map(|[head, _, tail]| [head, tail]);
        inside("local entity", ends, self.entities.len())?;
        let relations = self.triples.iter().map(|triple| &triple[1]);
        inside("local relation", relations, self.relations.len())
    }
}

fn inside<'a>(what: &'static str, ids: impl Iterator<Item = &'a u32>, count: usize) -> Result<()> {
    match ids.copied().find(|id| *id as usize >= count) {
        Some(id) => Err(Error::IdOutside { what, id, count }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ablations_go_by_their_names() {
        let config: Config =
            serde_json::from_str(r#"{"ablations": ["no-query-attn", "no-query-init"]}"#).unwrap();
        assert!(!config.keeps(Ablation::NoQueryInit));
        assert!(!config.keeps(Ablation::NoQueryAttn));
        assert!(config.keeps(Ablation::NoQueryScore));
        assert!(serde_json::from_str::<Config>(r#"{"ablations": ["no-query"]}"#).is_err());
        assert!(serde_json::from_str::<Config>(r#"{"width": 3}"#).is_err());
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let config = |heads, dropout| Config {
            heads,
            dropout,
            ..Config::default()
        };
        assert!(config(4, 0.1).check().is_ok());
        let error = config(3, 0.1).check().unwrap_err().to_string();
        assert_eq!(
            error,
            "`heads` is 3, and must be a divisor of hidden, which is 256"
        );
        assert!(config(0, 0.1).check().is_err());
        assert!(config(4, 1.0).check().is_err());
    }

    #[test]
    fn subgraphs_that_cannot_be_scored_are_refused() {
        let good = Subgraph {
            question: &[1.0, 2.0],
            entities: &[4, 7],
            topics: &[true, false],
            relations: &[3],
            triples: &[[0, 0, 1]],
        };
        assert!(good.check(2, 8, 4).is_ok());
        let says = |subgraph: Subgraph<'_>, dim, entities, relations| {
            subgraph
                .check(dim, entities, relations)
                .unwrap_err()
                .to_string()
        };
        let empty = Subgraph {
            triples: &[],
            ..good
        };
        assert_eq!(says(empty, 2, 8, 4), "the subgraph has no triple");
        assert_eq!(
            says(good, 3, 8, 4),
            "the question vector has 2 numbers, and 3 were expected"
        );
        assert_eq!(says(good, 2, 7, 4), "entity row 7 is outside: there are 7");
        assert_eq!(
            says(good, 2, 8, 3),
            "relation row 3 is outside: there are 3"
        );
        let outside = Subgraph {
            triples: &[[0, 0, 2]],
            ..good
        };
        assert_eq!(
            says(outside, 2, 8, 4),
            "local entity 2 is outside: there are 2"
        );
        let nan = Subgraph {
            question: &[1.0, f32::NAN],
            ..good
        };
        assert_eq!(
            says(nan, 2, 8, 4),
            "the question vector holds a number that is not finite"
        );
    }
}
