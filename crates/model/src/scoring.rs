//! What the networks that score a question's neighbourhood have in common.
//!
//! A [`TripleNetwork`] learns, and its [`TripleScorer`] answers with the same weights. A scorer
//! takes entities and relations as rows of *parts*: what it computes of their labels whatever is
//! asked, once for each graph and checkpoint. [`crate::qr_gat`], [`crate::distance_mlp`] and
//! [`crate::pna`] are such networks, so that one retriever and one training serve them all.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor, Var};

use crate::checkpoint::Checkpointable;
use crate::qr_gat::{Projected, Rows, Subgraph};
use crate::tensor::panels::Panels;
use crate::{Error, Random, Result};

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

    /// What it computes of labels.
    fn labels(&self) -> &LabelWeights;

    /// Numbers in a row of entity parts.
    fn entity_width(&self) -> usize {
        self.labels().entity.iter().map(Panels::outputs).sum()
    }

    /// Numbers in a row of relation parts.
    fn relation_width(&self) -> usize {
        self.labels().relation.iter().map(Panels::outputs).sum()
    }

    /// The parts of entities with these label vectors.
    fn entity_parts<'a>(&'a self, labels: &'a dyn Rows) -> Result<Projected<'a>> {
        let weights = self.labels();
        check_width("entity vector", labels, weights.dim)?;
        Ok(Projected::new(labels, &weights.entity))
    }

    /// The parts of relations with these label vectors.
    fn relation_parts<'a>(&'a self, labels: &'a dyn Rows) -> Result<Projected<'a>> {
        let weights = self.labels();
        check_width("relation vector", labels, weights.dim)?;
        Ok(Projected::new(labels, &weights.relation))
    }

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

/// The weights of the parts of entities and relations.
pub struct LabelWeights {
    /// Numbers in a label's vector.
    pub(crate) dim: usize,
    pub(crate) entity: Vec<Panels>,
    pub(crate) relation: Vec<Panels>,
}

/// The logits of a question's triples, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Scored<'s> {
    /// That the triple lies on a path to an answer.
    pub triples: &'s [f32],
    /// That its head and that its tail are answers; none where the network does not tell.
    pub answers: Option<[&'s [f32]; 2]>,
}

impl<'s> Scored<'s> {
    /// Of `[1 or 3, count]` logits.
    pub(crate) fn of(logits: &'s [f32], count: usize, answers: bool) -> Result<Self> {
        if !logits.iter().all(|logit| logit.is_finite()) {
            return Err(Error::NotFinite {
                what: "list of scores".into(),
            });
        }
        let (triples, ends) = logits.split_at(count);
        Ok(Self {
            triples,
            answers: answers.then(|| ends.split_at(count).into()),
        })
    }
}

/// Refuses what `scorer` cannot score.
pub(crate) fn check_question(
    scorer: &impl TripleScorer,
    subgraph: &Subgraph<'_>,
    entities: &dyn Rows,
    relations: &dyn Rows,
) -> Result<()> {
    check_width("row of entity parts", entities, scorer.entity_width())?;
    check_width("row of relation parts", relations, scorer.relation_width())?;
    subgraph.check(scorer.labels().dim, entities.len(), relations.len())
}

/// Refuses rows of another width.
pub(crate) fn check_width(what: &'static str, rows: &dyn Rows, wanted: usize) -> Result<()> {
    match rows.width() == wanted {
        true => Ok(()),
        false => Err(Error::Dimension {
            what,
            wanted,
            given: rows.width(),
        }),
    }
}

/// Adds what question and relation make together to `out`, `[relations, hidden]`: `M_q·q`, number
/// by number, with `M_r·r`, which stands in the parts of relations from `from` on.
pub(crate) fn add_meetings(
    m_q: &Panels,
    subgraph: &Subgraph<'_>,
    relations: &dyn Rows,
    from: usize,
    out: &mut [f32],
) {
    let mut of_question = vec![0.0; m_q.outputs()];
    m_q.of_row(subgraph.question, &mut of_question);
    let mut of_relation = vec![0.0; out.len()];
    let columns = from..from + of_question.len();
    relations.read(subgraph.relations, columns, &mut of_relation);
    let rows = out.chunks_exact_mut(of_question.len());
    for (out, of_relation) in rows.zip(of_relation.chunks_exact(of_question.len())) {
        for ((out, r), q) in out.iter_mut().zip(of_relation).zip(&of_question) {
            *out += r * q;
        }
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
