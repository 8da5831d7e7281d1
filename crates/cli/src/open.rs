//! From what the user calls a graph to the graph: the one place that knows how.

use std::borrow::Cow;
use std::path::Path;

use anyhow::Context;
use wherefore_graph::{Graph, MemoryGraph, Service, ServiceConfig, Store, Trust, toy};
use wherefore_lab::GoldQuestion;

use crate::errors::UserError;
use crate::world;

/// What the smaller built-in graph is called.
pub(crate) const TOY: &str = "@toy";

/// Opens the graph for the questions read from `path`: none has to be named where each of them
/// brings its own.
pub(crate) fn open_for<'q>(
    name: Option<&str>,
    mut questions: impl Iterator<Item = &'q GoldQuestion>,
    path: &Path,
    trust: Trust,
) -> anyhow::Result<Box<dyn Graph>> {
    match name {
        Some(name) => open(name, trust),
        None if questions.all(|q| !q.triples.is_empty()) => {
            Ok(Box::new(MemoryGraph::from_names::<&str>([])))
        }
        None => Err(UserError {
            code: "usage",
            message: format!(
                "the questions `{}` bring no graph of their own",
                path.display()
            ),
            hint: "name the graph with `--graph GRAPH`".into(),
        }
        .into()),
    }
}

/// The service that is meant, if it is one: an address, a file that describes it, or the folder of
/// a label index.
pub(crate) fn service(name: &str, trust: Trust) -> anyhow::Result<Option<ServiceConfig>> {
    ServiceConfig::named(name, trust)
        .with_context(|| format!("cannot open the service `{}`", told(name)))
}

/// What the user calls a graph, as it may be told: an address without credentials.
pub(crate) fn told(name: &str) -> Cow<'_, str> {
    match (name.split_once("://"), name.rsplit_once('@')) {
        // up to the last `@`: a password may hold any other sign
        (Some((scheme, _)), Some((_, rest))) => Cow::Owned(format!("{scheme}://…@{rest}")),
        _ => Cow::Borrowed(name),
    }
}

/// Opens a graph for what reads folders only; built-in graphs are unpacked into one.
pub(crate) fn store(name: &Path) -> anyhow::Result<Store> {
    let text = name.to_string_lossy();
    let folder = match text.as_ref() {
        world::NAME => world::folder()?,
        TOY => world::toy_folder()?,
        sample if sample.starts_with('@') => return Err(no_such_sample(sample).into()),
        address if address.contains("://") => return Err(no_folder(address).into()),
        _ => name.to_owned(),
    };
    Store::open(folder).with_context(|| format!("cannot open the graph `{text}`"))
}

/// The folder of a graph that is going to be changed: those that are built in are not.
pub(crate) fn own_folder(name: &Path) -> anyhow::Result<&Path> {
    let text = name.to_string_lossy();
    match text.as_ref() {
        world::NAME | TOY => Err(UserError {
            code: "built-in-graph",
            message: format!("the built-in graph `{text}` cannot be changed"),
            hint: "make one of your own with `wherefore load FILE --out GRAPH`".into(),
        }
        .into()),
        sample if sample.starts_with('@') => Err(no_such_sample(sample).into()),
        address if address.contains("://") => Err(no_folder(address).into()),
        _ => Ok(name),
    }
}

fn no_such_sample(name: &str) -> UserError {
    UserError {
        code: "no-such-sample",
        message: format!("there is no built-in graph `{name}`"),
        hint: "the built-in graphs are `@world` and `@toy`; a folder that begins with `@` is written `./@…`"
            .into(),
    }
}

pub(crate) fn no_folder(address: &str) -> UserError {
    UserError {
        code: "usage",
        message: format!(
            "`{}` is a service, and this command needs a graph folder",
            told(address)
        ),
        hint: "`docs/remote.md` tells what can be done with a service".into(),
    }
}

/// Opens `@world`, `@toy`, a graph folder or a service.
///
/// # Errors
/// Where there is none, or it cannot be read.
pub fn open(name: &str, trust: Trust) -> anyhow::Result<Box<dyn Graph>> {
    open_asking(name, trust, None)
}

/// The same; a question costs a service `requests` at most, or as many as its file says.
pub(crate) fn open_asking(
    name: &str,
    trust: Trust,
    requests: Option<u64>,
) -> anyhow::Result<Box<dyn Graph>> {
    match name.strip_prefix('@') {
        Some(_) if name == TOY => Ok(Box::new(toy::graph())),
        Some(_) if name == world::NAME => {
            let store = Store::open(world::folder()?).context("cannot open the sample graph")?;
            Ok(Box::new(store))
        }
        Some(_) => Err(no_such_sample(name).into()),
        None => {
            if let Some(mut config) = service(name, trust)? {
                config.limits.requests = requests.unwrap_or(config.limits.requests);
                let service = Service::open(config)
                    .with_context(|| format!("cannot open the service `{}`", told(name)))?;
                return Ok(Box::new(service));
            }
            let store =
                Store::open(name).with_context(|| format!("cannot open the graph `{name}`"))?;
            Ok(Box::new(store))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_without_its_credentials() {
        assert_eq!(told("http://h/sparql"), "http://h/sparql");
        assert_eq!(told("@toy"), "@toy");
        assert_eq!(told("people@work"), "people@work");
        for secret in ["me:hunter2", "me:hun/ter2", "me:hunt@er2", "hunter2"] {
            let address = format!("https://{secret}@h:1/sparql");
            assert_eq!(told(&address), "https://…@h:1/sparql");
        }
    }
}
