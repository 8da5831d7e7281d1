//! Stage five: put the evidence into the form that the reasoner reads.

mod chains;
mod triples;

use wherefore_graph::Graph;

use crate::error::Result;
use crate::question::Question;
use crate::select::Selection;

pub use chains::{Chain, Chains, ChainsConfig, Path};
pub use triples::{TripleLines, TripleLinesConfig, one_line};

/// The evidence as lines of text, each with the triples it came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// What the lines were made of; line paths point into its triples.
    pub selection: Selection,
    /// The lines, most important first.
    pub lines: Vec<ContextLine>,
    /// Whether the lines show how sure they are.
    pub with_confidence: bool,
    /// What a line is.
    pub form: Form,
    /// The chains behind the lines, those with common ends together, best first; none where lines
    /// are no chains.
    pub chains: Vec<Vec<Chain>>,
}

/// What a line of a [`Context`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A triple.
    #[default]
    Triples,
    /// A chain of triples.
    Chains,
}

/// One line of a [`Context`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextLine {
    /// What the reasoner reads.
    pub text: String,
    /// Indices into the selection's triples: evidence leads back to triples.
    pub path: Vec<usize>,
    /// The line's weight.
    pub score: f32,
}

/// Arranges a selection for reading.
pub trait Organizer: Send + Sync {
    /// Makes the lines.
    fn organize(
        &self,
        question: &Question,
        selection: &Selection,
        graph: &dyn Graph,
    ) -> Result<Context>;
}
