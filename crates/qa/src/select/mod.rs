//! Stage four: what the reasoner will read.

use wherefore_graph::{EntityId, Triple};

use crate::error::Result;
use crate::retrieve::ScoredTriples;

/// The chosen evidence, best first, in the ids of the whole graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The triples with their scores, best first.
    pub triples: Vec<(Triple, f32)>,
    /// The entities the question is about.
    pub topics: Vec<EntityId>,
    /// Entities with the score that the retriever gave them as answers, best first. Topics are
    /// not among them.
    pub candidates: Vec<(EntityId, f32)>,
}

/// Chooses what the reasoner will read, best first.
///
/// An empty selection is legal: nothing was good enough, and the answer must say so.
pub trait Selector: Send + Sync {
    /// Chooses among the scored triples.
    fn select(&self, scored: &ScoredTriples) -> Result<Selection>;
}
