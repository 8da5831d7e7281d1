//! What can go wrong with a graph, in words a user can act on.

use std::io;
use std::path::{Path, PathBuf};

use crate::load::output::DATA;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong with a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read, written, mapped or renamed.
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

    /// The folder holds no graph.
    #[error("`{path}` is not a graph folder: {reason}")]
    NotAGraph {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },

    /// The graph was written by a newer version.
    #[error("graph `{path}` has format version {found}, and this program reads up to {supported}")]
    NewerFormat {
        /// The folder.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The newest version known here.
        supported: u32,
    },

    /// A store file does not hold what its manifest promises.
    #[error("graph file `{path}` is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// Changes that were acknowledged are not whole in the log any more.
    #[error("the change log `{path}` is damaged at byte {at}: {reason}; {} before that {} whole", changes(*whole), if *whole == 1 { "is" } else { "are" })]
    DamagedLog {
        /// The file.
        path: PathBuf,
        /// The first byte that cannot be used.
        at: u64,
        /// Bytes from there to the end.
        bytes: u64,
        /// Changes before it.
        whole: u64,
        /// What is wrong with it.
        reason: String,
    },

    /// An entity id that this graph does not have.
    #[error("entity id {id} is outside the graph, which has {bound} entities")]
    NoSuchEntity {
        /// The id.
        id: u32,
        /// Number of entities.
        bound: usize,
    },

    /// A relation id that this graph does not have.
    #[error("relation id {id} is outside the graph, which has {bound} relations")]
    NoSuchRelation {
        /// The id.
        id: u32,
        /// Number of relations.
        bound: usize,
    },

    /// The output folder exists already.
    #[error("`{path}` exists already")]
    OutputExists {
        /// The folder.
        path: PathBuf,
        /// Whether it is a graph, which may be replaced, or something else, which may not.
        is_graph: bool,
    },

    /// Another process is writing the same graph.
    #[error("another process is writing the graph `{path}`")]
    Locked {
        /// The folder.
        path: PathBuf,
    },

    /// The input cannot be a graph.
    #[error("cannot load `{path}`: {reason}")]
    BadInput {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// The command that mends it, if there is one.
        hint: Option<String>,
    },

    /// More malformed lines than were allowed.
    #[error("{count} malformed {}, and at most {allowed} allowed", if *count == 1 { "line" } else { "lines" })]
    TooManyErrors {
        /// How many were met.
        count: u64,
        /// How many were allowed.
        allowed: u64,
        /// The first of them, as `file:line: reason`.
        first: Vec<String>,
    },

    /// Changes with lines that are no triples.
    #[error("`{path}` has {count} malformed {}, so nothing was changed; {}", if *count == 1 { "line" } else { "lines" }, first.join("; "))]
    BadChanges {
        /// The file.
        path: PathBuf,
        /// How many there are.
        count: u64,
        /// The first of them, as `line N: reason`.
        first: Vec<String>,
    },

    /// Folding changes in that remove all there is.
    #[error("the changes of `{path}` remove every triple, and a graph needs at least one")]
    NothingLeft {
        /// The folder.
        path: PathBuf,
    },

    /// The inputs held no triple at all.
    #[error("the input holds no triples")]
    Empty,

    /// Ids are 32 bits wide.
    #[error("the input has more than {} {what}, which is the most a graph can hold", u32::MAX - 1)]
    TooMany {
        /// `entities`, `triples` or `relations`.
        what: &'static str,
    },

    /// The SPARQL text does not parse.
    #[error("the SPARQL query does not parse: {0}")]
    SparqlSyntax(String),

    /// SPARQL that is valid and yet not run here: updates, remote services, other graphs, texts
    /// beyond the limits.
    #[error("this SPARQL is not run here: {reason}")]
    SparqlRefused {
        /// What stands against it.
        reason: String,
        /// What to write instead, if there is something.
        hint: Option<String>,
    },

    /// The SPARQL query failed while it ran.
    #[error("the SPARQL query failed: {0}")]
    SparqlEvaluation(String),

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

    /// What is said of a SPARQL service cannot work.
    #[error("the service `{name}` cannot be used: {reason}")]
    BadService {
        /// Its address or the file that describes it.
        name: String,
        /// What is wrong.
        reason: String,
    },

    /// A service file that the user did not agree to.
    #[error(
        "the service file `{file}` is not trusted: it sends questions to `{host}`{}",
        told_variables(variables)
    )]
    Untrusted {
        /// The file.
        file: PathBuf,
        /// Where questions would go.
        host: String,
        /// Environment variables whose values would go along.
        variables: Vec<String>,
    },

    /// The user's list of trusted service files cannot be used.
    #[error("the list of trusted services `{path}` cannot be used: {reason}")]
    BadTrustList {
        /// The list.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A SPARQL service does not answer.
    #[error("the service `{url}` cannot be reached: {reason}")]
    ServiceUnreachable {
        /// Its address.
        url: String,
        /// Why not.
        reason: String,
    },

    /// A SPARQL service refuses.
    #[error("the service `{url}` refuses with status {status}: {reason}")]
    ServiceRefused {
        /// Its address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        reason: String,
    },

    /// What a SPARQL service sent is no answer.
    #[error("the service `{url}` gave no proper answer: {reason}")]
    BadReply {
        /// Its address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },

    /// More entities of a service were met than are numbered at a time.
    #[error("more than {limit} entities of the service `{url}` were met")]
    ServiceFull {
        /// Its address.
        url: String,
        /// The limit.
        limit: usize,
    },

    /// A question needs more requests than one may cost.
    #[error("the question needs more than {limit} requests to the service `{url}`")]
    RequestsSpent {
        /// Its address.
        url: String,
        /// The limit.
        limit: u64,
    },

    /// A service took too long over the requests of one question.
    #[error("the service `{url}` took longer than {seconds} s for the question")]
    ServiceTooSlow {
        /// Its address.
        url: String,
        /// The limit.
        seconds: f64,
    },

    /// The work ran out of its time.
    #[error("{what} took longer than its limit of {limit_ms} ms")]
    OutOfTime {
        /// What was running.
        what: &'static str,
        /// The limit.
        limit_ms: u128,
    },

    /// The work needed more memory than it may have.
    #[error("{what} needed more memory than its limit of {} MiB", limit >> 20)]
    OutOfMemory {
        /// What was running.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },

    /// The answer has more bytes than are wanted.
    #[error("the answer is larger than its limit of {limit} bytes")]
    AnswerTooLarge {
        /// The limit in bytes.
        limit: u64,
    },

    /// The process that ran a query ended without an answer.
    #[error("the process of the SPARQL query failed: {0}")]
    WorkerFailed(String),

    /// The work was stopped from outside.
    #[error("stopped")]
    Stopped,
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
            Error::NotAGraph { path, .. } => Some(format!(
                "build it with `wherefore load FILE --out {}`",
                path.display()
            )),
            Error::NewerFormat { .. } => {
                Some("update wherefore, or load the source files again with this version".into())
            }
            Error::Damaged { path, .. } => Some(format!(
                "load the source files again with `wherefore load FILE --replace --out {}`",
                graph_of(path).display()
            )),
            Error::DamagedLog { path, .. } => Some(format!(
                "`wherefore repair {}` tells what can be saved; with `--write` it saves it and \
                 keeps the damaged log",
                graph_of(path).display()
            )),
            Error::OutputExists { is_graph: true, .. } => {
                Some("add `--replace` to put the new graph in its place".into())
            }
            Error::OutputExists {
                is_graph: false, ..
            } => Some(
                "it holds something that is not a graph; choose another folder for `--out`".into(),
            ),
            Error::Locked { .. } => Some("wait until it is done, or choose another `--out`".into()),
            Error::BadInput { hint, .. } | Error::SparqlRefused { hint, .. } => hint.clone(),
            Error::TooManyErrors { .. } => {
                Some("mend the lines, or raise `--max-errors`, or leave `--strict` out".into())
            }
            Error::BadChanges { .. } => Some(
                "mend the lines; `--format` names the format when the file's ending does not"
                    .into(),
            ),
            Error::NothingLeft { .. } => Some("add triples first, or remove the folder".into()),
            Error::Empty => {
                Some("check the format: `--format` names it when the file's ending does not".into())
            }
            Error::NoSuchEntity { .. } | Error::NoSuchRelation { .. } => {
                Some("the graph may be damaged: `wherefore info GRAPH --check` tells".into())
            }
            Error::BadService { .. } => {
                Some("`docs/remote.md` shows what a service's file may say".into())
            }
            Error::Untrusted {
                file, variables, ..
            } => {
                let secrets = match variables.is_empty() {
                    true => "",
                    false => " and with these secrets",
                };
                Some(format!(
                    "if you trust this host with your questions{secrets}, type `wherefore trust \
                     {}`, or add `--trust` for this once; a server's configuration says `trust = \
                     true` beside the graph's `path`",
                    file.display()
                ))
            }
            Error::BadTrustList { path, .. } => Some(format!(
                "mend or remove `{}`, and trust services again with `wherefore trust GRAPH`; \
                 `--trust` does without the list",
                path.display()
            )),
            Error::ServiceUnreachable { .. } => Some(
                "see whether it runs and the address is right; `limits.timeout_s` in its file \
                 gives it more time"
                    .into(),
            ),
            Error::ServiceRefused { status, .. } => Some(match status {
                401 | 403 => "name its credentials in its file: `token_env`, or `user_env` and \
                              `password_env`"
                    .into(),
                405 | 501 => "set `method = \"get\"` in its file".into(),
                413 | 414 => "set `limits.batch` lower, or `method = \"post\"`, in its file".into(),
                429 | 503 => {
                    "it is busy: wait, or set `limits.connections` and `limits.batch` lower \
                              in its file"
                        .into()
                }
                _ => "try the query with `wherefore sparql`".into(),
            }),
            Error::BadReply { .. } => Some(
                "the address must be the one that takes queries, often `…/sparql`; \
                 `curl -H 'accept: application/sparql-results+json' 'URL?query=ASK{}'` shows what \
                 it sends"
                    .into(),
            ),
            Error::ServiceFull { .. } => {
                Some("open it again, or raise `limits.entities` in its file".into())
            }
            Error::RequestsSpent { .. } => Some(
                "make a label index with `wherefore index`, which spares requests, or raise \
                 `--max-requests`"
                    .into(),
            ),
            Error::ServiceTooSlow { .. } => Some("raise `limits.question_s` in its file".into()),
            Error::OutOfTime { .. } => Some("ask for less, or raise `--timeout`".into()),
            Error::OutOfMemory { .. } => Some(
                "ask for less: sort, group or join fewer rows; `--memory` raises the limit".into(),
            ),
            Error::AnswerTooLarge { .. } => Some("ask for fewer rows, with `LIMIT`".into()),
            Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space; the old graph, if any, is untouched".into())
            }
            _ => None,
        }
    }

    /// Whether a file is not what was written: what was read before may still be right, but the
    /// folder is not to be relied on.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::DamagedLog { .. })
    }

    /// Whether the fault lies in our own code rather than in what the user gave us.
    pub fn is_internal(&self) -> bool {
        matches!(
            self,
            Error::NoSuchEntity { .. } | Error::NoSuchRelation { .. } | Error::WorkerFailed(_)
        )
    }
}

/// ` with the values of the environment variables `A` and `B``, or nothing.
fn told_variables(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!(" with the value of the environment variable {one}"),
        [first @ .., last] => format!(
            " with the values of the environment variables {} and {last}",
            first.join(", ")
        ),
    }
}

fn changes(count: u64) -> String {
    match count {
        0 => "no changes".into(),
        1 => "1 change".into(),
        n => format!("{n} changes"),
    }
}

/// The graph folder that a file belongs to: its files stand in an inner folder.
fn graph_of(file: &Path) -> &Path {
    let folder = file.parent().unwrap_or(file);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match folder.parent() {
        Some(graph) if name.starts_with(DATA) && !graph.as_os_str().is_empty() => graph,
        _ => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_mended_by_loading_its_graph_again() {
        for file in ["my/dmg/data-846ab/names", "my/dmg/graph.json"] {
            let error = Error::Damaged {
                path: file.into(),
                reason: String::new(),
            };
            let hint = error.hint().unwrap();
            assert!(hint.ends_with("--out my/dmg`"), "{hint}");
        }
    }
}
