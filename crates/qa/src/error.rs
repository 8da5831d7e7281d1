//! What can go wrong while a question is answered.

use std::io;
use std::path::PathBuf;

use crate::index::part::{Part, command};

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

    /// A key that answers cannot be signed or verified with.
    #[error("{key} cannot be used: {reason}")]
    BadKey {
        /// The file, in backticks, or what it is.
        key: String,
        /// Why not.
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

    /// The configuration does not parse, or a value in it is outside its range.
    #[error("the configuration is not valid: {0}")]
    Config(String),

    /// A part that needs a language model, and none was named.
    #[error("the method needs a language model, and none is named")]
    NoLanguageModel,

    /// A file of an index could not be read or written.
    #[error("cannot {action} `{path}`")]
    IndexFile {
        /// What was attempted: `read`, `write`, `create` …
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },

    /// The graph has no index of this kind.
    #[error("the graph `{graph}` has no index of its {part}")]
    NoIndex {
        /// The graph folder.
        graph: PathBuf,
        /// What is to be looked up.
        part: Part,
    },

    /// The graph was loaded again after the index was built.
    #[error(
        "the index of the {part} in `{graph}` belongs to graph {found}, and the graph is {wanted}"
    )]
    IndexOfAnotherGraph {
        /// The graph folder.
        graph: PathBuf,
        /// What is to be looked up.
        part: Part,
        /// The encoder that the index was built with, if it holds vectors.
        encoder: Option<String>,
        /// Checksum of the graph that was indexed.
        found: String,
        /// Checksum of the graph that is there.
        wanted: String,
    },

    /// The vectors come from another encoder.
    #[error(
        "the index of the {part} in `{graph}` was built with {found}, and {wanted} is asked for"
    )]
    IndexOfAnotherEncoder {
        /// The graph folder.
        graph: PathBuf,
        /// What is to be looked up.
        part: Part,
        /// Name of the encoder that is asked for.
        encoder: String,
        /// The encoder that the index was built with.
        found: String,
        /// The encoder that is asked for.
        wanted: String,
    },

    /// A file of the index does not hold what it must.
    #[error("index file `{path}` is damaged: {reason}")]
    DamagedIndex {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// The command that mends it.
        mend: String,
    },

    /// Another process is building the same index.
    #[error("another process is building the index of `{graph}`")]
    IndexLocked {
        /// The graph folder.
        graph: PathBuf,
    },

    /// A query of another length than the rows it is compared with.
    #[error("the query has {given} numbers, and the rows of the index have {wanted}")]
    QueryDimension {
        /// Numbers in the query.
        given: usize,
        /// Numbers in a row.
        wanted: usize,
    },

    /// A setting outside its range.
    #[error("`{name}` is {value}, but must be {wanted}")]
    BadSetting {
        /// The setting.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },

    /// A reading of the question that there is not.
    #[error("there is no reading {wanted}: the question has {readings}")]
    NoSuchReading {
        /// What was asked for.
        wanted: usize,
        /// How many there are.
        readings: usize,
    },

    /// A method that needs a checkpoint was given none.
    #[error("the method `{method}` needs a trained model")]
    NoModel {
        /// The method.
        method: &'static str,
    },

    /// A logical form that does not parse.
    #[error("the logical form does not parse at character {at}: {reason}")]
    FormSyntax {
        /// The character, from 1.
        at: usize,
        /// What is wrong there.
        reason: String,
    },

    /// A logical form with names that the graph does not have.
    #[error("the graph has no {}", names.join(", no "))]
    FormNames {
        /// `relation …` and `entity …`, each with its name in backticks.
        names: Vec<String>,
    },

    /// A constant of a logical form that is not what its place asks for.
    #[error("`{value}` is not {wanted}")]
    FormValue {
        /// The constant.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },

    /// A logical form whose sets are too large.
    #[error("the logical form leads to more than {limit} entities")]
    FormTooLarge {
        /// The limit.
        limit: usize,
    },

    /// A logical form whose SPARQL is longer than any service takes.
    #[error("this form is too long as SPARQL: more than {limit} bytes")]
    FormTooLong {
        /// The limit.
        limit: usize,
    },

    /// The method's confidences are no probabilities.
    #[error("a precision can only be wished for where confidences were fitted to known answers")]
    NotCalibrated,

    /// No threshold gives this precision.
    #[error("no threshold is known for a precision of {wished}; the highest is {most}")]
    NoSuchPrecision {
        /// What was wished for.
        wished: f32,
        /// The highest that is known.
        most: f32,
    },

    /// Nothing is known of how readings over the graph fare.
    #[error("no coverage can be promised: nothing is known of how questions over this graph fare")]
    NoConformal {
        /// Its folder, where it has one.
        graph: Option<PathBuf>,
    },

    /// No set of readings has this coverage.
    #[error(
        "a coverage of {wished} cannot be promised on this graph: of {questions} questions so many have no right reading that {most} is the most"
    )]
    NoSuchCoverage {
        /// What was wished for.
        wished: f32,
        /// The most that can be promised.
        most: f32,
        /// Questions that this is known from.
        questions: usize,
    },

    /// Something is to be kept beside a graph that lies nowhere.
    #[error("the graph lies in no folder, so that nothing can be kept beside it")]
    NoGraphFolder,

    /// The full-text index could not be written or searched.
    #[error("the full-text index `{path}` failed: {reason}")]
    FullText {
        /// Its folder.
        path: PathBuf,
        /// What its engine said.
        reason: String,
    },
}

impl Error {
    /// For `map_err`: an [`Error::IndexFile`] that names the path.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::IndexFile {
            action,
            path,
            source,
        }
    }

    /// The command or step that mends it, if the user can.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Graph(e) => e.hint(),
            Error::Model(e) => e.hint(),
            Error::BadAlias { .. } => Some(
                "each line is `words`, a tab, and an entity of the graph, or `-` for no entity"
                    .into(),
            ),
            Error::BadKey { .. } => Some(
                "make a key with `wherefore keygen FILE`; `FILE` signs, and `FILE.pub` verifies"
                    .into(),
            ),
            Error::EmptyQuestion => Some("write the question in quotes, for example `wherefore ask @toy 'Who is the mascot of the San Francisco Giants?'`".into()),
            Error::QuestionTooLong { .. } => Some("shorten the question".into()),
            Error::NotCalibrated => Some(
                "ask with the method `read`, or fit them with `wherefore calibrate`".into(),
            ),
            Error::NoSuchPrecision { most, .. } => Some(format!(
                "ask with `--precision {most}` or less, or fit more questions with `wherefore calibrate`"
            )),
            Error::NoConformal { graph: Some(graph) } => Some(format!(
                "run `wherefore conformal {}` once, best with `--questions FILE` of your own",
                graph.display()
            )),
            Error::NoConformal { graph: None } => Some(
                "make a graph folder with `wherefore load`: what is known is kept in it".into(),
            ),
            Error::NoSuchCoverage { most, .. } => {
                Some(format!("ask with `--coverage {most}` or less"))
            }
            Error::NoSuchTopic { near, .. } if near.is_empty() => None,
            Error::NoSuchTopic { near, .. } => Some(format!("near it are: {}", near.join(", "))),
            Error::NoLanguageModel => Some(
                "name one with `--llm FILE.gguf`, `--llm URL#MODEL`, or `llm = …` in the file".into(),
            ),
            Error::Config(_) => Some(
                "mend the file; `docs/configuration.md` has one, and `configs` one for each method"
                    .into(),
            ),
            Error::NoIndex { graph, part } => Some(format!(
                "build it with `{}`",
                command(graph, None, *part)
            )),
            Error::IndexOfAnotherGraph {
                graph,
                part,
                encoder,
                ..
            } => Some(format!(
                "bring it up to date with `{}`; only new and changed labels are encoded",
                command(graph, encoder.as_deref(), *part)
            )),
            Error::IndexOfAnotherEncoder {
                graph,
                part,
                encoder,
                ..
            } => Some(format!(
                "ask for the encoder of the index, or build it again with `{}`",
                command(graph, Some(encoder), *part)
            )),
            Error::DamagedIndex { mend, .. } => Some(format!("build it again with `{mend}`")),
            Error::IndexLocked { .. } => Some("wait until it is done".into()),
            Error::NoModel { method } => Some(format!(
                "give a checkpoint with `--model CKPT`; `wherefore train {method}` makes one from \
                 questions and answers"
            )),
            Error::FormSyntax { .. } => Some(
                "an example: `(JOIN (R plays_in) [San Francisco Giants])`; docs/logical-forms.md tells the rest".into(),
            ),
            Error::FormNames { .. } => Some(
                "names are identities or labels of the graph; `wherefore link GRAPH 'words'` finds entities".into(),
            ),
            Error::FormValue { .. } => Some(
                "`MAX`, `MIN`, `TOP` and comparisons take numbers and dates, all else numbers alone; docs/logical-forms.md tells which values are which".into(),
            ),
            Error::FormTooLarge { .. } => Some("begin nearer to a name, or raise the limit".into()),
            Error::FormTooLong { .. } => Some(
                "an extreme of an extreme doubles it: leave some out, or load the graph and run the form here".into(),
            ),
            Error::NoGraphFolder => Some("build a graph folder with `wherefore load`".into()),
            Error::IndexFile { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space; what was there before is untouched".into())
            }
            _ => None,
        }
    }

    /// What went wrong as a short word that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Graph(e) => graph_code(e),
            Error::Model(e) => e.code(),
            Error::Io { .. } => "io",
            Error::BadAlias { .. } => "bad-alias",
            Error::BadKey { .. } => "bad-key",
            Error::EmptyQuestion => "empty-question",
            Error::QuestionTooLong { .. } => "question-too-long",
            Error::NoSuchTopic { .. } => "no-such-topic",
            Error::Config(_) => "bad-config",
            Error::NoLanguageModel => "no-language-model",
            Error::IndexFile { .. } => "io",
            Error::NoIndex { .. } => "no-index",
            Error::IndexOfAnotherGraph { .. } => "index-of-another-graph",
            Error::IndexOfAnotherEncoder { .. } => "index-of-another-encoder",
            Error::DamagedIndex { .. } => "damaged-index",
            Error::IndexLocked { .. } => "index-locked",
            Error::QueryDimension { .. } => "query-dimension",
            Error::BadSetting { .. } => "bad-setting",
            Error::NoSuchReading { .. } => "no-such-reading",
            Error::NoModel { .. } => "no-model",
            Error::FormSyntax { .. } => "form-syntax",
            Error::FormNames { .. } => "form-names",
            Error::FormValue { .. } => "form-value",
            Error::FormTooLarge { .. } => "form-too-large",
            Error::FormTooLong { .. } => "form-too-long",
            Error::NotCalibrated => "not-calibrated",
            Error::NoSuchPrecision { .. } => "no-such-precision",
            Error::NoConformal { .. } => "no-conformal",
            Error::NoSuchCoverage { .. } => "no-such-coverage",
            Error::NoGraphFolder => "no-graph-folder",
            Error::FullText { .. } => "full-text",
        }
    }

    /// Whether the fault lies in our own code rather than in what the user gave us.
    pub fn is_internal(&self) -> bool {
        match self {
            Error::Graph(e) => e.is_internal(),
            Error::Model(e) => e.is_internal(),
            Error::QueryDimension { .. } => true,
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
        Error::DamagedLog { .. } => "damaged-log",
        Error::OutputExists { .. } => "output-exists",
        Error::Locked { .. } => "locked",
        Error::BadInput { .. } => "bad-input",
        Error::BadChanges { .. } => "bad-changes",
        Error::NothingLeft { .. } => "nothing-left",
        Error::TooManyErrors { .. } => "too-many-errors",
        Error::Empty => "empty-input",
        Error::TooMany { .. } => "too-many",
        Error::SparqlSyntax(_) => "sparql-syntax",
        Error::SparqlEvaluation(_) => "sparql-evaluation",
        Error::BadSetting { .. } => "bad-setting",
        Error::BadService { .. } => "bad-service",
        Error::Untrusted { .. } => "untrusted-service",
        Error::BadTrustList { .. } => "bad-trust-list",
        Error::ServiceUnreachable { .. } => "service-unreachable",
        Error::ServiceRefused { .. } => "service-refused",
        Error::ServiceGaveUp { .. } => "service-gave-up",
        Error::BadReply { .. } => "bad-reply",
        Error::ServiceFull { .. } => "service-full",
        Error::RequestsSpent { .. } => "requests-spent",
        Error::ServiceTooSlow { .. } => "service-too-slow",
        Error::OutOfTime { .. } => "out-of-time",
        Error::OutOfMemory { .. } => "out-of-memory",
        Error::AnswerTooLarge { .. } => "answer-too-large",
        Error::WorkerFailed(_) => "worker-failed",
        Error::Stopped => "stopped",
        _ => "graph",
    }
}
