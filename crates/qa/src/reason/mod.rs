//! Stage six: from evidence to answers.

mod best_path;
mod budget;
mod candidates;
mod plan;
mod rationale;
mod reply;
mod single_call;

use wherefore_graph::{EntityId, Graph};

use crate::answer::LlmUse;
use crate::error::Result;
use crate::organize::Context;
use crate::question::Question;

pub use best_path::{BestPath, BestPathConfig};
pub use budget::Budget;
pub use candidates::{Candidates, CandidatesConfig};
pub use rationale::{Rationale, RationaleConfig};
pub use single_call::{SingleCall, SingleCallConfig};

/// What a reasoner concludes, before it is checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// The answers, best first.
    pub answers: Vec<Candidate>,
    /// Names that were given as answers and that the evidence does not hold.
    pub unmatched: Vec<String>,
    /// The answer in prose, where there is one.
    pub text: Option<String>,
    /// Why there is no answer.
    pub reason: Option<String>,
    /// What language models cost.
    pub llm: LlmUse,
    /// What had to be left out or broken off, in words for the user.
    pub notes: Vec<String>,
}

/// One answer before it is checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: EntityId,
    /// Between 0 and 1.
    pub confidence: f32,
    /// Indices into the selection's triples: what it was drawn from, where the reasoner knows.
    /// Several paths follow each other, each from a topic to the entity.
    pub path: Vec<usize>,
}

/// Draws answers from evidence.
pub trait Reasoner: Send + Sync {
    /// Answers from the context alone.
    fn reason(
        &self,
        question: &Question,
        context: &Context,
        graph: &dyn Graph,
    ) -> Result<Conclusion>;
}
