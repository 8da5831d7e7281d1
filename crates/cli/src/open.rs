//! From what the user calls a graph to the graph: the one place that knows how.

use std::path::Path;

use anyhow::Context;
use wherefore_graph::{Error, Graph, toy};

use crate::errors::UserError;

/// Opens `@toy` or a graph folder.
pub(crate) fn open(name: &str) -> anyhow::Result<Box<dyn Graph>> {
    match name.strip_prefix('@') {
        Some("toy") => Ok(Box::new(toy::graph())),
        Some(_) => Err(UserError {
            code: "no-such-sample",
            message: format!("there is no built-in graph `{name}`"),
            hint: "the built-in graph is `@toy`; a folder that begins with `@` is written `./@…`"
                .into(),
        }
        .into()),
        None => folder(Path::new(name)).with_context(|| format!("cannot open the graph `{name}`")),
    }
}

fn folder(path: &Path) -> Result<Box<dyn Graph>, Error> {
    let reason = match path.metadata() {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::Io {
                action: "read",
                path: path.to_owned(),
                source,
            });
        }
        Err(_) => "there is no such folder",
        Ok(found) if found.is_dir() => "it holds no graph",
        Ok(_) => "it is a file",
    };
    Err(Error::NotAGraph {
        path: path.to_owned(),
        reason: reason.into(),
    })
}
