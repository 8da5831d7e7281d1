//! What the networks that score a question's neighbourhood have in common.
//!
//! A [`TripleNetwork`] learns, and its [`TripleScorer`] answers with the same weights. A scorer
//! takes entities and relations as rows of *parts*: what it computes of their labels whatever is
//! asked, once for each graph and checkpoint. [`crate::qr_gat`], [`crate::distance_mlp`] and
//! [`crate::pna`] are such networks, so that one retriever and one training serve them all.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor, Var};

use crate::checkpoint::Checkpointable;
use crate::qr_gat::{self, Projected, Rows, Scored, Subgraph};
use crate::{Random, Result};

/// A network that scores the triples of a neighbourhood, as it learns.
pub trait TripleNetwork: Checkpointable + Send + Sync + 'static {
    /// The same as it answers.
    type Scorer: TripleScorer;

    /// A network that has learned nothing yet.
    fn untrained(sizes: Self::Sizes, random: &mut Random, device: &Device) -> Result<Self>;

    /// Its sizes.
    fn sizes(&self) -> &Self::Sizes;

    /// Sizes for vectors of `dim` numbers.
    fn for_dim(sizes: Self::Sizes, dim: usize) -> Self::Sizes;

    /// Whether it tells how likely entities are answers.
    fn tells_answers(sizes: &Self::Sizes) -> bool;

    /// All logits of several questions, as [`Scored`] has them but side by side: of triples
    /// `[triples, outputs]`, or of entities `[entities, outputs]` where the network scores these.
    /// Entities and relations are rows of label vectors.
    fn logits(
        &self,
        subgraphs: &[Subgraph<'_>],
        labels: [&dyn Rows; 2],
        training: Option<&mut Random>,
        device: &Device,
    ) -> Result<Tensor>;

    /// A copy whose logits are all lower by `by`.
    fn with_lower_bias(&self, by: f32) -> Result<Self>;

    /// The network as it answers.
    fn scorer(&self) -> Result<Self::Scorer>;
}

/// A network that scores the triples of a neighbourhood, as it answers.
pub trait TripleScorer: Send + Sync {
    /// Room for one question at a time, kept from one to the next.
    type Scratch: Default + Send;

    /// Numbers in a row of entity parts.
    fn entity_width(&self) -> usize;

    /// Numbers in a row of relation parts.
    fn relation_width(&self) -> usize;

    /// The parts of entities with these label vectors.
    fn entity_parts<'a>(&'a self, labels: &'a dyn Rows) -> Result<Projected<'a>>;

    /// The parts of relations with these label vectors.
    fn relation_parts<'a>(&'a self, labels: &'a dyn Rows) -> Result<Projected<'a>>;

    /// The logits of every triple, in their order. `entities` and `relations` are the parts of the
    /// whole graph, of which the subgraph names rows.
    fn score<'s>(
        &self,
        subgraph: &Subgraph<'_>,
        entities: &dyn Rows,
        relations: &dyn Rows,
        scratch: &'s mut Self::Scratch,
    ) -> Result<Scored<'s>>;
}

impl TripleNetwork for qr_gat::Network {
    type Scorer = qr_gat::Scorer;

    fn untrained(sizes: qr_gat::Config, random: &mut Random, device: &Device) -> Result<Self> {
        Self::new(sizes, random, device)
    }

    fn sizes(&self) -> &qr_gat::Config {
        self.config()
    }

    fn for_dim(sizes: qr_gat::Config, dim: usize) -> qr_gat::Config {
        qr_gat::Config { dim, ..sizes }
    }

    fn tells_answers(sizes: &qr_gat::Config) -> bool {
        sizes.answers
    }

    fn logits(
        &self,
        subgraphs: &[Subgraph<'_>],
        [entities, relations]: [&dyn Rows; 2],
        training: Option<&mut Random>,
        device: &Device,
    ) -> Result<Tensor> {
        let batch = qr_gat::Batch::new(self.config(), subgraphs, entities, relations, device)?;
        self.forward(&batch, training)
    }

    fn with_lower_bias(&self, by: f32) -> Result<Self> {
        self.with_lower_bias(by)
    }

    fn scorer(&self) -> Result<qr_gat::Scorer> {
        qr_gat::Scorer::new(self)
    }
}

impl TripleScorer for qr_gat::Scorer {
    type Scratch = qr_gat::Scratch;

    fn entity_width(&self) -> usize {
        self.entity_width()
    }

    fn relation_width(&self) -> usize {
        self.relation_width()
    }

    fn entity_parts<'a>(&'a self, labels: &'a dyn Rows) -> Result<Projected<'a>> {
        self.entity_parts(labels)
    }

    fn relation_parts<'a>(&'a self, labels: &'a dyn Rows) -> Result<Projected<'a>> {
        self.relation_parts(labels)
    }

    fn score<'s>(
        &self,
        subgraph: &Subgraph<'_>,
        entities: &dyn Rows,
        relations: &dyn Rows,
        scratch: &'s mut qr_gat::Scratch,
    ) -> Result<Scored<'s>> {
        self.score(subgraph, entities, relations, scratch)
    }
}

/// A copy of some parameters, with `by` taken from the numbers of `bias`.
pub(crate) fn lowered(
    parameters: &BTreeMap<String, Var>,
    bias: &str,
    by: f32,
) -> Result<BTreeMap<String, Var>> {
    let copy = |(name, var): (&String, &Var)| {
        let tensor = match name == bias {
            true => (var.as_tensor() - f64::from(by))?,
            false => var.as_tensor().copy()?,
        };
        Ok((name.clone(), Var::from_tensor(&tensor)?))
    };
    parameters.iter().map(copy).collect()
}
