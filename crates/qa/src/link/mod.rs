//! Stage one: from words to entities.

mod aliases;
mod lexicon;
mod lookup;
mod mentions;
mod names;
pub(crate) mod nationalities;
mod rank;
mod report;
mod spans;
mod topics;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};

use crate::error::Result;
use crate::question::Question;

pub(crate) use lexicon::edits;
pub use lookup::NamesConfig;
pub use names::Names;
pub use report::{CandidateReport, LinkingReport, MentionReport};

/// A part of the question tied to an entity of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The entity.
    pub entity: EntityId,
    /// The words of the question, or the given topic.
    pub mention: String,
    /// Byte range of the mention in the question; none for a given topic.
    pub span: Option<(usize, usize)>,
    /// Between 0 and 1.
    pub score: f32,
}

/// Words of the question with the entities that they may mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Mention {
    /// The words, or the given topic.
    pub text: String,
    /// Their byte range in the question; none for a given topic.
    pub span: Option<(usize, usize)>,
    /// What they may mean, best first. Never empty.
    pub candidates: Vec<Candidate>,
}

/// An entity that a mention may mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: EntityId,
    /// Between 0 and 1.
    pub score: f32,
    /// How the name was recognised.
    pub how: MatchKind,
}

/// How a name was recognised, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchKind {
    /// Given with the question.
    Given,
    /// By the user's alias file.
    Alias,
    /// Letter by letter.
    Exact,
    /// But for case, accents and punctuation.
    Normalised,
    /// By another form of the word: plural, possessive, the people of a country.
    Inflected,
    /// But for a few letters.
    Misspelt,
    /// By some of the words of the name.
    Partial,
}

/// Ties a question to the graph.
///
/// Topics that came with the question always win. No link at all is legal: the pipeline then
/// abstains and says so.
pub trait Linker: Send + Sync {
    /// Every mention with its candidates, the surest mention first.
    fn mentions(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<Mention>>;

    /// The links of the question, best first.
    fn link(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<Link>>;

    /// Names of the graph that come near the words of a question in which nothing links.
    fn nearest(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<String>>;
}
