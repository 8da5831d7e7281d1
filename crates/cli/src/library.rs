//! What other programs use of the command line: graphs, methods and errors as it names them.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use wherefore::{Answer, Method, Pipeline};
use wherefore_graph::sparql::Workers;
use wherefore_graph::{EntityId, Graph, Store};

use crate::commands::{Wanted, usual_config};
use crate::errors::UserError;
use crate::language;
use crate::open::{self, own_folder, store};

/// How the command line is started.
#[derive(Clone, Debug)]
pub struct Program {
    /// What is started.
    pub path: PathBuf,
    /// What comes before its own arguments.
    pub arguments: Vec<OsString>,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// Says how the command line is started, where that is not by this very program. The first one
/// stays.
pub fn start_by(program: Program) {
    let _ = PROGRAM.set(program);
}

/// How the command line is started.
pub(crate) fn program() -> std::io::Result<Program> {
    match PROGRAM.get() {
        Some(program) => Ok(program.clone()),
        None => Ok(Program {
            path: std::env::current_exe()?,
            arguments: Vec::new(),
        }),
    }
}

/// The hidden command that runs queries.
const WORKER: &str = "sparql-worker";

/// Processes that run SPARQL queries, each within so many bytes of memory.
pub fn sparql_workers(program: Program, max_memory: u64) -> Workers {
    let (path, arguments) = worker_command(program);
    Workers::new(path, arguments, max_memory)
}

/// How this program is started as a process that runs queries.
pub(crate) fn worker_command(program: Program) -> (PathBuf, Vec<OsString>) {
    let mut arguments = program.arguments;
    arguments.push(WORKER.into());
    (program.path, arguments)
}

/// A pipeline as `wherefore ask` makes it of its options.
///
/// # Errors
/// Where the options do not fit together, or something they name cannot be read.
pub fn pipeline(
    config: Option<&Path>,
    method: Option<&str>,
    model: Option<&Path>,
    llm: Option<&str>,
) -> anyhow::Result<Pipeline> {
    if let Some(method) = method
        && method.parse::<Method>().is_err()
    {
        return Err(UserError {
            code: "usage",
            message: format!("there is no method `{method}`"),
            hint: format!("the methods are {}", Method::names()),
        }
        .into());
    }
    let mut config = usual_config(&Wanted {
        config,
        method,
        model,
        llm: llm.is_some(),
    })?;
    if let Some(name) = llm {
        config.set_llm(name);
    }
    let model = match &config.llm {
        Some(name) if config.asks_model() => Some(language::opened(name, true, None)?),
        _ => None,
    };
    Ok(config.build_with(model)?)
}

/// The store of a graph that is going to be changed.
///
/// # Errors
/// Where it is built in, or a service.
pub fn own_store<'g>(name: &str, graph: &'g dyn Graph) -> anyhow::Result<&'g Store> {
    own_folder(Path::new(name))?;
    graph.store().ok_or_else(|| {
        UserError {
            code: "not-ours",
            message: format!("the graph `{name}` is a service of somebody else"),
            hint: "change it where it lies".into(),
        }
        .into()
    })
}

/// The folder of a graph; that of a built-in one is unpacked.
///
/// # Errors
/// Where it is a service.
pub fn folder_of<'g>(name: &str, graph: &'g dyn Graph) -> anyhow::Result<Cow<'g, Path>> {
    match graph.store() {
        Some(store) => Ok(Cow::Borrowed(store.path())),
        None => Ok(Cow::Owned(store(Path::new(name))?.path().to_owned())),
    }
}

/// An entity by its number.
///
/// # Errors
/// Where there are not as many.
pub fn checked_entity(id: u32, bound: usize) -> anyhow::Result<EntityId> {
    match (id as usize) < bound {
        true => Ok(EntityId(id)),
        false => Err(UserError {
            code: "usage",
            message: format!("there is no entity {id}: the graph has {bound}"),
            hint: "take the numbers of a `Subgraph` of the same graph".into(),
        }
        .into()),
    }
}

/// What is told where nothing has a name.
pub fn no_such_name(name: &str) -> anyhow::Error {
    UserError {
        code: "no-such-entity",
        message: format!("nothing in the graph is called `{name}`"),
        hint: "`wherefore link GRAPH NAME` tells what is near".into(),
    }
    .into()
}

/// What is told where a graph folder is needed.
pub fn no_folder(name: &str) -> anyhow::Error {
    open::no_folder(name).into()
}

/// What is told where a saved answer is none.
pub fn no_answer(fault: &str) -> anyhow::Error {
    UserError {
        code: "not-an-answer",
        message: fault.to_owned(),
        hint: "save one with `wherefore ask GRAPH QUESTION --json > answer.json`".into(),
    }
    .into()
}

/// A page with an answer and a picture of its evidence.
pub fn picture(answer: &Answer) -> String {
    wherefore_lab::report::answer_html(answer, None)
}
