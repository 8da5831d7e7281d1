//! From what the user calls a graph to the graph: the one place that knows how.

use anyhow::Context;
use wherefore_graph::{Graph, Store, toy};

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
        None => {
            let store =
                Store::open(name).with_context(|| format!("cannot open the graph `{name}`"))?;
            Ok(Box::new(store))
        }
    }
}
