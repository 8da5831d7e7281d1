//! What can go wrong while a question is answered.

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong while a question is answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The graph failed.
    #[error(transparent)]
    Graph(#[from] wherefore_graph::Error),

    /// The question holds no words.
    #[error("the question is empty")]
    EmptyQuestion,

    /// The question is longer than any question.
    #[error("the question has {length} bytes, and at most {limit} are read")]
    QuestionTooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },

    /// A given topic is not in the graph.
    #[error("the graph has no entity called `{name}`")]
    NoSuchTopic {
        /// The name that was given.
        name: String,
        /// Names in the graph that come near.
        near: Vec<String>,
    },

    /// The configuration does not parse.
    #[error("the configuration does not parse: {0}")]
    Config(String),
}

impl Error {
    /// The command or step that mends it, if the user can.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Graph(e) => e.hint(),
            Error::EmptyQuestion => Some("write the question in quotes, for example `wherefore ask @toy 'Who is the mascot of the San Francisco Giants?'`".into()),
            Error::QuestionTooLong { .. } => Some("shorten the question".into()),
            Error::NoSuchTopic { near, .. } if near.is_empty() => None,
            Error::NoSuchTopic { near, .. } => Some(format!("near it are: {}", near.join(", "))),
            Error::Config(_) => None,
        }
    }

    /// Whether the fault lies in our own code rather than in what the user gave us.
    pub fn is_internal(&self) -> bool {
        matches!(self, Error::Graph(e) if e.is_internal())
    }
}
