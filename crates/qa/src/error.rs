//! What can go wrong while a question is answered.

use std::io;
use std::path::PathBuf;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong while a question is answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The graph failed.
    #[error(transparent)]
    Graph(#[from] wherefore_graph::Error),

    /// A model failed.
    #[error(transparent)]
    Model(#[from] wherefore_model::Error),

    /// A file could not be read.
    #[error("cannot read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },

    /// A line of an alias file that cannot be used.
    #[error("line {line} of the alias file `{path}` cannot be used: {reason}")]
    BadAlias {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },

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
            Error::Model(e) => e.hint(),
            Error::Io { .. } => None,
            Error::BadAlias { .. } => Some(
                "each line is `words`, a tab, and an entity of the graph, or `-` for no entity"
                    .into(),
            ),
            Error::EmptyQuestion => Some("write the question in quotes, for example `wherefore ask @toy 'Who is the mascot of the San Francisco Giants?'`".into()),
            Error::QuestionTooLong { .. } => Some("shorten the question".into()),
            Error::NoSuchTopic { near, .. } if near.is_empty() => None,
            Error::NoSuchTopic { near, .. } => Some(format!("near it are: {}", near.join(", "))),
            Error::Config(_) => {
                Some("`configs/overlap.toml` shows every setting with its default".into())
            }
        }
    }

    /// What went wrong as a short word that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Graph(e) => graph_code(e),
            Error::Model(e) => e.code(),
            Error::Io { .. } => "io",
            Error::BadAlias { .. } => "bad-alias",
            Error::EmptyQuestion => "empty-question",
            Error::QuestionTooLong { .. } => "question-too-long",
            Error::NoSuchTopic { .. } => "no-such-topic",
            Error::Config(_) => "bad-config",
        }
    }

    /// Whether the fault lies in our own code rather than in what the user gave us.
    pub fn is_internal(&self) -> bool {
        match self {
            Error::Graph(e) => e.is_internal(),
            Error::Model(e) => e.is_internal(),
            _ => false,
        }
    }
}

/// What went wrong with a graph, as a short word that programs can rely on.
pub fn graph_code(error: &wherefore_graph::Error) -> &'static str {
    use wherefore_graph::Error;
    match error {
        Error::Io { .. } => "io",
        Error::NotAGraph { .. } => "not-a-graph",
        Error::NewerFormat { .. } => "newer-format",
        Error::Damaged { .. } => "damaged-graph",
        Error::OutputExists { .. } => "output-exists",
        Error::Locked { .. } => "locked",
        Error::BadInput { .. } => "bad-input",
        Error::TooManyErrors { .. } => "too-many-errors",
        Error::Empty => "empty-input",
        Error::TooMany { .. } => "too-many",
        Error::SparqlSyntax(_) => "sparql-syntax",
        Error::SparqlEvaluation(_) => "sparql-evaluation",
        Error::BadSetting { .. } => "bad-setting",
        Error::OutOfTime { .. } => "out-of-time",
        Error::Stopped => "stopped",
        _ => "graph",
    }
}
