//! What can go wrong with question files, predictions and runs, in words a user can act on.

use std::io;
use std::path::PathBuf;

use crate::questions::format::Format;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong in the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was attempted: `read`, `write`, `create` …
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },

    /// The file holds nothing.
    #[error("`{path}` is empty")]
    Empty {
        /// The file.
        path: PathBuf,
    },

    /// A text file holds bytes that are not text.
    #[error("`{path}` line {line} is not UTF-8 text")]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line of the first bad byte, from 1.
        line: usize,
    },

    /// More than is read of one file, or of something that has no end.
    #[error("`{path}` has more than {} GiB, which is the most that is read", limit >> 30)]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },

    /// The first record fits no format.
    #[error("`{path}` is in no question format known here: {found}")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What its first record looks like.
        found: String,
    },

    /// A record does not parse.
    #[error("`{path}` line {line} does not parse as {format}: {reason}")]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1; in Parquet files the row.
        line: usize,
        /// The format it was read as.
        format: String,
        /// What was expected, and what was found.
        reason: String,
    },

    /// Two records share an id.
    #[error("`{path}` line {line} repeats the id `{id}` of line {first}")]
    DuplicateId {
        /// The file.
        path: PathBuf,
        /// The second line.
        line: usize,
        /// The first line.
        first: usize,
        /// The id.
        id: String,
    },

    /// A file that must stand beside another one is missing or does not fit it.
    #[error("`{path}` does not go with `{beside}`: {reason}")]
    BadCompanion {
        /// The companion.
        path: PathBuf,
        /// The file that it belongs to.
        beside: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// A Parquet file cannot be decoded.
    #[error("`{path}` cannot be read as Parquet")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: parquet::errors::ParquetError,
    },

    /// Predictions answer questions that were not asked.
    #[error("`{path}` answers {count} unknown {}, first `{first}`", if *count == 1 { "question" } else { "questions" })]
    UnknownIds {
        /// The predictions.
        path: PathBuf,
        /// The questions file.
        questions: PathBuf,
        /// How many unknown ids there are.
        count: usize,
        /// The first of them.
        first: String,
    },

    /// Two runs that are to be compared do not answer the same questions.
    #[error("the runs cannot be compared: {0}")]
    NotPaired(String),

    /// The run folder holds a run of something else.
    #[error("`{path}` holds another run: its {what} is not the same")]
    OtherRun {
        /// The run folder.
        path: PathBuf,
        /// What differs.
        what: &'static str,
    },

    /// The folder holds no run.
    #[error("`{path}` holds no run: it has no `run.json`")]
    NotARun {
        /// The folder.
        path: PathBuf,
    },

    /// A setting that makes no sense.
    #[error("{0}")]
    BadSetting(String),

    /// No question leads anywhere.
    #[error("none of the {questions} {which} questions has a path from a topic to an answer")]
    NothingToLearn {
        /// `training` or `validation`.
        which: &'static str,
        /// How many there are.
        questions: usize,
    },

    /// A stopped training of something else lies beside the checkpoint.
    #[error("`{path}` holds a stopped training with other settings or questions")]
    OtherTraining {
        /// Its folder.
        path: PathBuf,
    },

    /// The loss or a gradient is no number any more.
    #[error("the {what} was not finite at step {step}; the training was stopped")]
    Diverged {
        /// What was not finite.
        what: String,
        /// At which step, from 1.
        step: u64,
        /// The last good checkpoint, if a pass was done.
        kept: Option<PathBuf>,
    },

    /// A pipeline or a graph failed.
    #[error(transparent)]
    Pipeline(#[from] wherefore::Error),

    /// The graph failed.
    #[error(transparent)]
    Graph(#[from] wherefore_graph::Error),
}

impl From<wherefore::model::Error> for Error {
    fn from(error: wherefore::model::Error) -> Self {
        wherefore::Error::from(error).into()
    }
}

impl Error {
    /// For `map_err`: an [`Error::Io`] that names the path.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }

    /// The command or step that mends it, if the user can.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path".into())
            }
            Error::Empty { .. } => {
                Some("check that the file was downloaded or written to its end".into())
            }
            Error::NotUtf8 { .. } => Some(
                "convert it, for example with `iconv -f latin1 -t utf-8`; compressed files are to be unpacked first".into(),
            ),
            Error::TooLong { .. } => Some("name a file, or split it into several".into()),
            Error::UnknownFormat { .. } => Some(format!(
                "name the format with `--format`: {}",
                Format::ALL.map(Format::name).join(", ")
            )),
            Error::BadLine { .. } => {
                Some("mend the line, or name another format with `--format`".into())
            }
            Error::DuplicateId { .. } => {
                Some("ids tell the questions apart; give each line its own".into())
            }
            Error::UnknownIds { questions, .. } => Some(format!(
                "check that the predictions were made for `{}`",
                questions.display()
            )),
            Error::NotARun { .. } => Some(
                "make one with `wherefore eval --graph GRAPH --questions FILE --out RUN`".into(),
            ),
            Error::OtherRun { .. } => Some("choose another folder for `--out`".into()),
            Error::NothingToLearn { .. } => Some(
                "check that the questions were made for this graph: `wherefore link GRAPH \
                 --questions FILE` shows which topics it knows"
                    .into(),
            ),
            Error::OtherTraining { .. } => {
                Some("go on with the same settings, or begin anew with `--restart`".into())
            }
            Error::Diverged { kept, .. } => Some(match kept {
                Some(path) => format!(
                    "the last good checkpoint is in `{}`; try `--set optimiser.learning_rate=…` \
                     with a smaller number",
                    path.display()
                ),
                None => "try `--set optimiser.learning_rate=…` with a smaller number".into(),
            }),
            Error::Pipeline(e) => e.hint(),
            Error::Graph(e) => e.hint(),
            _ => None,
        }
    }

    /// What went wrong as a short word that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Io { .. } => "io",
            Error::Empty { .. } => "empty-file",
            Error::NotUtf8 { .. } => "not-utf8",
            Error::TooLong { .. } => "too-long",
            Error::UnknownFormat { .. } => "unknown-format",
            Error::BadLine { .. } => "bad-line",
            Error::DuplicateId { .. } => "duplicate-id",
            Error::BadCompanion { .. } => "bad-companion",
            Error::Parquet { .. } => "bad-parquet",
            Error::UnknownIds { .. } => "unknown-ids",
            Error::NotPaired(_) => "not-paired",
            Error::NotARun { .. } => "not-a-run",
            Error::OtherRun { .. } => "other-run",
            Error::BadSetting(_) => "bad-setting",
            Error::NothingToLearn { .. } => "nothing-to-learn",
            Error::OtherTraining { .. } => "other-training",
            Error::Diverged { .. } => "diverged",
            Error::Pipeline(e) => e.code(),
            Error::Graph(e) => wherefore::graph_code(e),
        }
    }

    /// Whether the fault lies in our own code rather than in what the user gave us.
    pub fn is_internal(&self) -> bool {
        match self {
            Error::Pipeline(e) => e.is_internal(),
            Error::Graph(e) => e.is_internal(),
            _ => false,
        }
    }
}
