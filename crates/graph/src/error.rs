//! Errors of this crate, with hints on how to fix them.

use std::io;
use std::path::PathBuf;

use crate::graph_folder::graph_of;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of loading, changing and querying graphs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read, written, mapped or renamed.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was attempted: `read`, `write`, `create` …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
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
        /// The newest supported version.
        supported: u32,
    },

    /// A store file does not match its manifest.
    #[error("graph file `{path}` is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// Acknowledged changes in the log are damaged.
    #[error("the change log `{path}` is damaged at byte {at}: {reason}; {} before it {} intact", changes(*whole), if *whole == 1 { "is" } else { "are" })]
    DamagedLog {
        /// The file.
        path: PathBuf,
        /// The first byte that cannot be used.
        at: u64,
        /// Bytes from there to the end.
        bytes: u64,
        /// Intact changes before it.
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

    /// Another process is writing to the graph.
    #[error("another process is writing to the graph `{path}`")]
    Locked {
        /// The folder.
        path: PathBuf,
    },

    /// The input cannot be loaded.
    #[error("cannot load `{path}`: {reason}")]
    BadInput {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// How to fix it, if known.
        hint: Option<String>,
    },

    /// More malformed lines than were allowed.
    #[error("{count} malformed {}, more than the {allowed} allowed", if *count == 1 { "line" } else { "lines" })]
    TooManyErrors {
        /// Malformed lines so far.
        count: u64,
        /// The limit.
        allowed: u64,
        /// The first of them, as `file:line: reason`.
        first: Vec<String>,
    },

    /// A change file has malformed lines.
    #[error("`{path}` has {count} malformed {}, so nothing was changed; {}", if *count == 1 { "line" } else { "lines" }, first.join("; "))]
    BadChanges {
        /// The file.
        path: PathBuf,
        /// Malformed lines.
        count: u64,
        /// The first of them, as `line N: reason`.
        first: Vec<String>,
    },

    /// Compacting a graph whose changes remove every triple.
    #[error("the changes of `{path}` remove every triple, and a graph needs at least one")]
    NothingLeft {
        /// The folder.
        path: PathBuf,
    },

    /// The inputs contain no triples.
    #[error("the input contains no triples")]
    Empty,

    /// Ids are 32 bits wide.
    #[error("the input has too many {what}: the limit is {}", u32::MAX - 1)]
    TooMany {
        /// `entities`, `triples` or `relations`.
        what: &'static str,
    },

    /// A syntax error in the SPARQL query.
    #[error("syntax error in the SPARQL query: {0}")]
    SparqlSyntax(String),

    /// Valid SPARQL that is refused: updates, remote services, other graphs, queries beyond the
    /// limits.
    #[error("SPARQL query refused: {reason}")]
    SparqlRefused {
        /// Why it is refused.
        reason: String,
        /// What to write instead, if known.
        hint: Option<String>,
    },

    /// The SPARQL query failed during evaluation.
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

    /// The configuration of a SPARQL service is invalid.
    #[error("the service `{name}` cannot be used: {reason}")]
    BadService {
        /// Its address or the file that describes it.
        name: String,
        /// What is wrong.
        reason: String,
    },

    /// A service file that the user has not trusted.
    #[error(
        "the service file `{file}` is not trusted: it sends questions to `{host}`{}",
        list_variables(variables)
    )]
    Untrusted {
        /// The file.
        file: PathBuf,
        /// The host that questions would be sent to.
        host: String,
        /// Environment variables whose values would be sent along.
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

    /// A SPARQL service is unreachable.
    #[error("the service `{url}` cannot be reached: {reason}")]
    ServiceUnreachable {
        /// Its address.
        url: String,
        /// Why not.
        reason: String,
    },

    /// A SPARQL service returned an error status.
    #[error("the service `{url}` returned status {status}: {reason}")]
    ServiceRefused {
        /// Its address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The message in its response.
        reason: String,
    },

    /// A SPARQL service stopped a query at a limit of its own.
    #[error("the service `{url}` stopped a query at its own limit: {reason}")]
    ServiceGaveUp {
        /// Its address.
        url: String,
        /// How it said so.
        reason: String,
    },

    /// A SPARQL service returned an invalid response.
    #[error("the service `{url}` returned an invalid response: {reason}")]
    BadReply {
        /// Its address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A service returned more entities than `limits.entities`.
    #[error("the service `{url}` returned more than {limit} entities")]
    ServiceFull {
        /// Its address.
        url: String,
        /// The limit.
        limit: usize,
    },

    /// A question needs more requests than its budget allows.
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

    /// A time limit was exceeded.
    #[error("{what} took longer than its limit of {limit_ms} ms")]
    OutOfTime {
        /// What was running.
        what: &'static str,
        /// The limit.
        limit_ms: u128,
    },

    /// A memory limit was exceeded.
    #[error("{what} needed more memory than its limit of {} MiB", limit >> 20)]
    OutOfMemory {
        /// What was running.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },

    /// The answer exceeds its size limit.
    #[error("the answer is larger than its limit of {limit} bytes")]
    AnswerTooLarge {
        /// The limit in bytes.
        limit: u64,
    },

    /// A worker process ended without an answer.
    #[error("the SPARQL worker process failed: {0}")]
    WorkerFailed(String),

    /// The work was cancelled by the caller.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// For `map_err`: wraps an I/O error in [`Error::Io`].
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

    /// How the user can fix it, if they can.
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
                "`wherefore repair {}` shows what can be recovered; `--write` recovers it and \
                 keeps the damaged log",
                graph_of(path).display()
            )),
            Error::OutputExists { is_graph: true, .. } => {
                Some("add `--replace` to put the new graph in its place".into())
            }
            Error::OutputExists {
                is_graph: false, ..
            } => Some(
                "it is not a graph; choose another folder for `--out`".into(),
            ),
            Error::Locked { .. } => Some("wait until it finishes, or choose another `--out`".into()),
            Error::BadInput { hint, .. } | Error::SparqlRefused { hint, .. } => hint.clone(),
            Error::TooManyErrors { .. } => {
                Some("fix the lines, raise `--max-errors`, or omit `--strict`".into())
            }
            Error::BadChanges { .. } => Some(
                "fix the lines, or set `--format` if the file has another format"
                    .into(),
            ),
            Error::NothingLeft { .. } => Some("add triples first, or delete the folder".into()),
            Error::Empty => {
                Some("check the format; `--format` sets it if the file name does not".into())
            }
            Error::NoSuchEntity { .. } | Error::NoSuchRelation { .. } => {
                Some("the graph may be damaged: check it with `wherefore info GRAPH --check`".into())
            }
            Error::BadService { .. } => {
                Some("see `docs/remote.md` for the format of service files".into())
            }
            Error::Untrusted {
                file, variables, ..
            } => {
                let secrets = match variables.is_empty() {
                    true => "",
                    false => " and with these secrets",
                };
                Some(format!(
                    "if you trust this host with your questions{secrets}, run `wherefore trust \
                     {}`, or add `--trust` for one command; in a server's configuration, set \
                     `trust = true` beside the graph's `path`",
                    file.display()
                ))
            }
            Error::BadTrustList { path, .. } => Some(format!(
                "fix or delete `{}`, and trust services again with `wherefore trust GRAPH`; \
                 `--trust` ignores the list",
                path.display()
            )),
            Error::ServiceUnreachable { .. } => Some(
                "check that it is running and the address is right; `limits.timeout_s` in its file \
                 raises the timeout"
                    .into(),
            ),
            Error::ServiceRefused { status, .. } => Some(match status {
                401 | 403 => "name its credentials in its file: `token_env`, or `user_env` and \
                              `password_env`"
                    .into(),
                405 | 501 => "set `method = \"get\"` in its file".into(),
                413 | 414 => "set `limits.batch` lower, or `method = \"post\"`, in its file".into(),
                429 | 503 => {
                    "it is overloaded: wait, or set `limits.connections` and `limits.batch` lower \
                              in its file"
                        .into()
                }
                _ => "try the query with `wherefore sparql`".into(),
            }),
            Error::ServiceGaveUp { .. } => Some(
                "raise the time limit at the service, or ask less of it: `wherefore index` keeps \
                 names and counts here, and `limits.batch` in its file makes requests smaller"
                    .into(),
            ),
            Error::BadReply { .. } => Some(
                "use the address of the query endpoint, often `…/sparql`; \
                 `curl -H 'accept: application/sparql-results+json' 'URL?query=ASK{}'` shows what \
                 it sends"
                    .into(),
            ),
            Error::ServiceFull { .. } => {
                Some("reopen it, or raise `limits.entities` in its file".into())
            }
            Error::RequestsSpent { .. } => Some(
                "build a label index with `wherefore index`, which saves requests, or raise \
                 `--max-requests`"
                    .into(),
            ),
            Error::ServiceTooSlow { .. } => Some("raise `limits.question_s` in its file".into()),
            Error::OutOfTime { .. } => Some("raise `--timeout`, or simplify the question or query".into()),
            Error::OutOfMemory { .. } => Some(
                "sort, group or join fewer rows, or raise `--memory`".into(),
            ),
            Error::AnswerTooLarge { .. } => Some("request fewer rows with `LIMIT`".into()),
            Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space; an existing graph is unchanged".into())
            }
            _ => None,
        }
    }

    /// Whether a file of the graph is damaged.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::DamagedLog { .. })
    }

    /// Whether this is a bug in this program rather than a problem with the input.
    pub fn is_internal(&self) -> bool {
        matches!(
            self,
            Error::NoSuchEntity { .. } | Error::NoSuchRelation { .. } | Error::WorkerFailed(_)
        )
    }
}

/// ` with the values of the environment variables `A` and `B``, or nothing.
fn list_variables(names: &[String]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_for_a_damaged_file_is_to_load_its_graph_again() {
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
