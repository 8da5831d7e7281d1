//! AMAR's network: retrieved texts as prompt tokens of a frozen language model that writes forms.
//!
//! Xu et al., "Harnessing Large Language Models for Knowledge Graph Question Answering via Adaptive
//! Multi-Aspect Retrieval-Augmentation", AAAI 2025. E, R and S are the retrieved entities, relations
//! and subgraphs, x̂ the mean of a text's token embeddings, Q the question's token embeddings:
//!
//! ```text
//! x_t = x̂ + W_up·gelu(W_down·x̂)                                one text is one token
//! e_c = E_t + Attn(E_t, E_t)        r_c = R_t + Attn(R_t, R_t)
//! s_c = S_t + Attn(S_t, E_t) + Attn(S_t, R_t)
//! Attn(X, Y) = W_o·softmax(W_q·X·(W_k·Y)ᵀ/√a)·W_v·Y
//! g   = σ(mean over question tokens of m(x_c)·m(Q)ᵀ/√h)         m a two-layer network
//! LLM([p; g_e∘e_c; g_r∘r_c; g_s∘s_c; Q])                        p the soft prompt
//! y   = W·x + (α/rank)·B·A·drop(x)                              W of gate, up and down frozen
//! L   = mean over the form's tokens of −log p(token)
//! ```
//!
//! Departures: the paper's tokens have no `x̂ +`, `E_t +`, `R_t +`, `S_t +` (ablation `no-residual`);
//! a text then begins as noise, and a small model with a few thousand questions does not learn to
//! read it. Scores of the gate are divided by √h. Dropout masks are drawn for each text, the same
//! for all its tokens. Attention has one head of `attention` numbers.
//!
//! [`Network`] is what learns and what a checkpoint keeps; [`Base`] the frozen model; [`Prepared`]
//! the questions as tokens; [`loss`], [`judge`] and [`Session`] run them.

mod base;
mod network;
mod prepared;
mod session;

use serde::{Deserialize, Serialize};

use crate::error::at_least_one;
use crate::{Error, Result};

pub use base::Base;
pub use network::Network;
pub use prepared::{Asking, Prepared};
pub use session::{Judgement, Session, judge, loss};

/// The three aspects, in the order in which they stand in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// Linked entities.
    Entities,
    /// Relations that a form may use.
    Relations,
    /// Documents of triples.
    Subgraphs,
}

impl Aspect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Entities, Self::Relations, Self::Subgraphs];

    /// As tensors and prompts name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Entities => "entities",
            Self::Relations => "relations",
            Self::Subgraphs => "subgraphs",
        }
    }
}

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ablation {
    /// The gate is the inner product of token and question, without networks.
    NoSiamese,
    /// No attention between texts.
    NoSelfAlignment,
    /// Every token counts in full.
    NoGate,
    /// Neither attention nor gate.
    Neither,
    /// The texts themselves stand in the prompt.
    ContextPrompt,
    /// No entities.
    WithoutEntities,
    /// No relations.
    WithoutRelations,
    /// No subgraphs.
    WithoutSubgraphs,
    /// Projector and attention replace their input, as in the paper.
    NoResidual,
}

/// A frozen model, as a checkpoint remembers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BaseModel {
    /// Its name, and a hash of its weights.
    pub identity: String,
    /// Layers.
    pub layers: usize,
    /// Numbers of a token.
    pub width: usize,
    /// Numbers inside of a layer.
    pub feed_forward: usize,
}

/// Sizes of a [`Network`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The model that it is made for; follows from the file.
    pub base: BaseModel,
    /// Rank of what is added to a product.
    pub rank: usize,
    /// α: what is added is multiplied by α/rank.
    pub alpha: f32,
    /// Share of numbers that are dropped before A.
    pub dropout: f32,
    /// Numbers between the projector's two products.
    pub bottleneck: usize,
    /// a: numbers of a query.
    pub attention: usize,
    /// h: numbers that the gate compares.
    pub gate: usize,
    /// Tokens of the soft prompt.
    pub soft_prompt: usize,
    /// What is left out.
    pub ablations: Vec<Ablation>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base: BaseModel::default(),
            rank: 8,
            alpha: 32.0,
            dropout: 0.1,
            bottleneck: 128,
            attention: 128,
            gate: 128,
            soft_prompt: 7,
            ablations: Vec::new(),
        }
    }
}

impl Config {
    /// Refuses sizes of which no network can be made.
    pub fn check(&self) -> Result<()> {
        let base = &self.base;
        at_least_one([
            ("rank", self.rank),
            ("bottleneck", self.bottleneck),
            ("attention", self.attention),
            ("gate", self.gate),
            ("base", base.layers.min(base.width).min(base.feed_forward)),
        ])?;
        let wrong = |option, given: f32, wanted| Err(Error::option(option, given, wanted));
        if !(0.0..1.0).contains(&self.dropout) {
            return wrong("dropout", self.dropout, "at least 0 and below 1");
        }
        if !self.alpha.is_finite() {
            return wrong("alpha", self.alpha, "a number");
        }
        if self.soft_prompt > 1024 {
            return Err(Error::option(
                "soft_prompt",
                self.soft_prompt,
                "at most 1024",
            ));
        }
        Ok(())
    }

    /// Whether this is left out.
    pub fn lacks(&self, what: Ablation) -> bool {
        let both = matches!(what, Ablation::NoSelfAlignment | Ablation::NoGate);
        self.ablations.contains(&what) || both && self.ablations.contains(&Ablation::Neither)
    }

    /// Whether an aspect is used.
    pub fn has(&self, aspect: Aspect) -> bool {
        !self.lacks(match aspect {
            Aspect::Entities => Ablation::WithoutEntities,
            Aspect::Relations => Ablation::WithoutRelations,
            Aspect::Subgraphs => Ablation::WithoutSubgraphs,
        })
    }
}
