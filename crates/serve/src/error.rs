//! What can keep the server from starting.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can keep the server from starting. What goes wrong with a request is a
/// [`Problem`](crate::Problem).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine could not be opened.
    #[error(transparent)]
    Engine(#[from] wherefore::Error),

    /// The configuration does not parse, or its parts do not fit.
    #[error("the server's configuration cannot be used: {0}")]
    Config(String),

    /// No graph was named.
    #[error("there is no graph to serve")]
    NoGraph,

    /// A graph could not be opened.
    #[error("cannot open the graph `{name}`")]
    Graph {
        /// Its name.
        name: String,
        /// Why not.
        #[source]
        source: wherefore::graph::Error,
    },

    /// A method could not be made ready for a graph.
    #[error("cannot prepare the method `{method}`")]
    Method {
        /// Its name.
        method: String,
        /// Why not.
        #[source]
        source: Box<wherefore::Error>,
    },

    /// The address is taken, or not ours.
    #[error("cannot listen on `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },

    /// An address that others can reach, and no key to keep them out.
    #[error("`{0}` can be reached from other machines, and no API key is set")]
    Unguarded(SocketAddr),

    /// An address that others can reach, and no name to call it by.
    #[error("`{0}` can be reached from other machines, and `hosts` names none that it goes by")]
    Nameless(SocketAddr),

    /// A file or folder could not be used.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },

    /// The operating system refused something.
    #[error("cannot {action}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// The command or step that mends it, if the user can.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Engine(e) => e.hint(),
            Error::Method { source, .. } => source.hint(),
            Error::Graph { source, .. } => source.hint(),
            Error::Config(_) => Some("`docs/serving.md` shows every setting".into()),
            Error::NoGraph => Some(
                "name one with `--graph NAME=FOLDER`; `--graph @toy` is the built-in sample".into(),
            ),
            Error::Listen { .. } => Some("choose another one with `--listen ADDRESS:PORT`".into()),
            Error::Unguarded(_) => Some(
                "make a key with `wherefore serve --new-key NAME`, or say `anonymous = true` in \
                 the configuration if everybody may ask"
                    .into(),
            ),
            Error::Nameless(_) => Some(
                "name each host that the server is called by with `--host NAME`, or in `hosts` of \
                 the configuration; a web page could reach it under any other name"
                    .into(),
            ),
            Error::Io { .. } | Error::System { .. } => None,
        }
    }

    /// What went wrong as a short word that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(e) => e.code(),
            Error::Method { source, .. } => source.code(),
            Error::Graph { source, .. } => wherefore::graph_code(source),
            Error::Config(_) => "bad-config",
            Error::NoGraph => "no-graph",
            Error::Listen { .. } => "cannot-listen",
            Error::Unguarded(_) => "unguarded",
            Error::Nameless(_) => "no-hosts",
            Error::Io { .. } | Error::System { .. } => "io",
        }
    }

    /// Whether the fault lies in our own code rather than in what the user gave us.
    pub fn is_internal(&self) -> bool {
        match self {
            Error::Engine(e) => e.is_internal(),
            Error::Method { source, .. } => source.is_internal(),
            Error::Graph { source, .. } => source.is_internal(),
            Error::System { .. } => true,
            _ => false,
        }
    }
}
