//! Stage six: from evidence to answers.

mod best_path;
mod budget;
mod candidates;
mod chain_ends;
mod formed;
mod logical_form;
mod plan;
mod rationale;
pub(crate) mod reply;
mod single_call;
mod steps;

use wherefore_graph::{EntityId, Graph};

use crate::answer::{LlmUse, Refusal, RetrievedText, Trace};
use crate::error::Result;
use crate::ground::Match;
use crate::organize::Context;
use crate::question::Question;
use crate::select::Selection;

pub use best_path::{BestPath, BestPathConfig};
pub use budget::Budget;
pub(crate) use budget::Meter;
pub use candidates::{Candidates, CandidatesConfig};
pub use chain_ends::{ChainEnds, ChainEndsConfig};
pub(crate) use formed::form_of;
pub use logical_form::{LogicalForm, LogicalFormConfig};
pub(crate) use plan::ends as plan_ends;
pub use rationale::{Rationale, RationaleConfig};
pub use single_call::{SingleCall, SingleCallConfig};
pub use steps::{Choice, Steps, StepsConfig};

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
    /// The same as a code, where it is not that the evidence is too weak.
    pub refusal: Option<Refusal>,
    /// What language models cost.
    pub llm: LlmUse,
    /// What had to be left out or broken off, in words for the user.
    pub notes: Vec<String>,
    /// What was looked at, where that is not the selection that was handed over.
    pub evidence: Option<Selection>,
    /// The steps that were taken, where the question was taken apart.
    pub trace: Option<Trace>,
    /// The logical form that was run: what it matches needs no other proof than the triples that
    /// made it match.
    pub form: Option<RunForm>,
    /// The forms that a model wrote, best first.
    pub written_forms: Vec<String>,
    /// The texts that they were written from.
    pub retrieved: Vec<RetrievedText>,
    /// Answers that are no entities of the graph but computed from it.
    pub computed: Vec<Computed>,
}

/// A logical form that was run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunForm {
    /// The form.
    pub form: String,
    /// In words.
    pub english: String,
    /// As SPARQL.
    pub sparql: String,
    /// What it came to, where that is a table.
    pub table: Option<crate::answer::Table>,
}

/// A computed answer: a number, or yes or no.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Computed {
    /// As it is shown.
    pub name: String,
    /// As a literal.
    pub id: String,
    /// Between 0 and 1.
    pub confidence: f32,
    /// Indices into the selection's triples: what it was computed from.
    pub path: Vec<usize>,
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

/// How sure an answer is that a language model gave: the entity's own score, less where its name
/// was not spelt right.
fn confidence(score: f32, how: Match) -> f32 {
    let factor = match how {
        Match::Strict => 1.0,
        Match::Normalised => 0.95,
        Match::Fuzzy => 0.8,
    };
    (score * factor).clamp(0.0, 1.0)
}
