//! `wherefore serve` and `wherefore mcp`: the same engine behind other doors.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use wherefore::PipelineConfig;
use wherefore_serve::{GraphConfig, Log, MethodConfig, ServeConfig, Server, new_key, speak_mcp};

use super::read_text;
use crate::args::{Consent, methods};
use crate::errors::{Exit, UserError};
use crate::library::{program, worker_command};
use crate::open::told;
use crate::output::{Output, shown};
use crate::world;

/// What `serve` and `mcp` open.
#[derive(Debug, clap::Args)]
pub(crate) struct Served {
    /// A graph folder, or `@toy`; repeatable. Without a name it goes by the last part of its path
    #[arg(long = "graph", value_name = "NAME=GRAPH")]
    pub(crate) graphs: Vec<String>,
    /// Graphs, methods, keys and limits, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A method to offer; repeatable, the first is the default. All that need no training, if none
    /// are given
    #[arg(long = "method", value_name = "NAME", value_parser = methods())]
    pub(crate) methods: Vec<String>,
    /// A checkpoint made by `wherefore train`, offered as the methods `trained` and `auto`
    #[arg(long, value_name = "CKPT")]
    pub(crate) model: Option<PathBuf>,
    /// Let a language model answer from the evidence: a GGUF file, or URL#MODEL
    #[arg(long, value_name = "MODEL")]
    pub(crate) llm: Option<String>,
    /// Sign every answer with this key, made by `wherefore keygen`
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Serve graphs: a web page, an HTTP API, an OpenAI-compatible door and MCP
///
/// Only this machine can reach the server unless `--listen` says otherwise. It ends in order on
/// Ctrl-C: requests that run come to their end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore serve --graph @toy
  wherefore serve --graph movies --graph sports=data/sports --model ckpt --runs runs
  wherefore serve --config serve.toml
  wherefore serve --new-key alice

`docs/serving.md` describes the API, the configuration and what keeps it safe.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) served: Served,
    /// Where to listen; 127.0.0.1:7878 if neither this nor the configuration says it
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// A name that the server is called by, beside localhost and those of the configuration;
    /// repeatable, or with commas in between
    #[arg(
        long = "host",
        value_name = "NAME",
        env = "WHEREFORE_HOSTS",
        value_delimiter = ','
    )]
    pub(crate) hosts: Vec<String>,
    /// A run folder of `wherefore eval`, or a folder of such, to browse
    #[arg(long, value_name = "FOLDER")]
    pub(crate) runs: Option<PathBuf>,
    /// Keep thumbs up and down as question files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) feedback: Option<PathBuf>,
    /// Load graphs that are sent over HTTP into this folder, and serve those that lie there. Without
    /// it, only this machine may send some, and they go when the server ends
    #[arg(long, value_name = "FOLDER")]
    pub(crate) loads: Option<PathBuf>,
    /// Threads that answer questions; 0 means one for each core
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Requests that may wait; those beyond are told to come back later
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<usize>,
    /// Make an API key, show it and what belongs into the configuration, and end
    #[arg(long, value_name = "NAME")]
    pub(crate) new_key: Option<String>,
}

/// Offer graphs to agents: the Model Context Protocol over standard input and output
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, as an agent's settings have it:
  { \"command\": \"wherefore\", \"args\": [\"mcp\", \"--graph\", \"movies\"] }")]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) served: Served,
}

pub(crate) fn serve(args: &Serve, output: &Output) -> anyhow::Result<Exit> {
    if let Some(name) = &args.new_key {
        return key(name, output);
    }
    let mut config = config(&args.served)?;
    config.listen = args.listen.unwrap_or(config.listen);
    let hosts = args.hosts.iter().map(|host| host.trim());
    (config.hosts).extend(hosts.filter(|h| !h.is_empty()).map(str::to_owned));
    config.runs = args.runs.clone().or(config.runs);
    config.feedback = args.feedback.clone().or(config.feedback);
    config.loads = args.loads.clone().or(config.loads);
    config.limits.workers = args.workers.unwrap_or(config.limits.workers);
    config.limits.queue = args.queue.unwrap_or(config.limits.queue);
    let server = Server::open(config, log())?;
    let address = server.address().context("cannot tell the address")?;
    if output.json {
        // one line: whoever started us reads it to know where we are
        let line = serde_json::to_string(&Started {
            address: address.to_string(),
        });
        output.print(&(line.context("cannot write JSON")? + "\n"))?;
    }
    output.note("listening", &format!("http://{address}"));
    server.run()?;
    output.note("stopped", "all that ran has ended");
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Started {
    address: String,
}

pub(crate) fn mcp(args: &Mcp, _output: &Output) -> anyhow::Result<Exit> {
    let config = config(&args.served)?;
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    speak_mcp(config, log(), &mut input, &mut output)?;
    Ok(Exit::Done)
}

/// Lines for whoever runs the server.
fn log() -> Log {
    Arc::new(|line| {
        // nobody is left to tell if this fails
        let _ = writeln!(io::stderr(), "log: {}", shown(line));
    })
}

#[derive(Serialize)]
struct Key<'a> {
    name: &'a str,
    key: &'a str,
    sha256: &'a str,
}

/// The key goes to standard output, and what the server is to know of it beside it.
fn key(name: &str, output: &Output) -> anyhow::Result<Exit> {
    let (key, sha256) = new_key()?;
    if output.json {
        output.print_json(&Key {
            name,
            key: &key,
            sha256: &sha256,
        })?;
        return Ok(Exit::Done);
    }
    output.print(&format!("{key}\n"))?;
    let name = serde_json::to_string(name).context("cannot write the name")?;
    let lines = format!(
        "put this into the server's configuration or its `keys_file`; the key is shown only once\n\n[[keys]]\nname = {name}\nsha256 = \"{sha256}\"\n"
    );
    // nobody is left to tell if this fails
    let _ = io::stderr().write_all(lines.as_bytes());
    Ok(Exit::Done)
}

/// The file, and what the flags add to it.
fn config(args: &Served) -> anyhow::Result<ServeConfig> {
    let mut config = match &args.config {
        Some(path) => ServeConfig::from_toml(&read_text(path, 1 << 20)?)
            .with_context(|| format!("cannot use the configuration `{}`", path.display()))?,
        None => ServeConfig::default(),
    };
    let program = program().context("cannot tell where this program lies")?;
    config.sparql_worker = Some(worker_command(program));
    let mut given_names: Vec<(String, &str)> = Vec::new();
    for given in &args.graphs {
        let (name, path) = named(given);
        if let Some((_, before)) = given_names.iter().find(|(known, _)| *known == name) {
            return Err(same_name(&name, before, given).into());
        }
        given_names.push((name.clone(), given));
        let graph = config
            .graphs
            .entry(name)
            .or_insert_with(GraphConfig::default);
        graph.path = path;
        // the file spoke of another
        graph.trust = false;
    }
    for graph in config.graphs.values_mut() {
        graph.trust |= args.consent.trust;
    }
    for graph in config.graphs.values_mut().filter(|g| g.path == world::NAME) {
        graph.path = world::folder()?.to_string_lossy().into_owned();
        if graph.examples.is_empty() {
            graph.examples = world::EXAMPLES.map(str::to_owned).into();
        }
    }
    config.sign = args.sign.clone().or(config.sign);
    if let Some(first) = args.graphs.first() {
        config.default_graph.get_or_insert_with(|| named(first).0);
    }
    for method in &args.methods {
        let named = MethodConfig::named(method);
        config.methods.insert(method.clone(), named);
    }
    if let [first, ..] = args.methods.as_slice() {
        config.default_method = Some(first.clone());
    }
    // beside what is trained or asked of a language model
    if config.methods.is_empty() && (args.model.is_some() || args.llm.is_some()) {
        let read = PipelineConfig::USUAL.name();
        config
            .methods
            .insert(read.into(), MethodConfig::named(read));
    }
    if let Some(model) = &args.model {
        let trained = MethodConfig {
            model: Some(model.clone()),
            ..MethodConfig::default()
        };
        let together = MethodConfig {
            method: Some("auto".into()),
            ..trained.clone()
        };
        config.methods.insert("trained".into(), trained);
        config.methods.insert("auto".into(), together);
        config.default_method = Some("auto".into());
    }
    if let Some(llm) = &args.llm {
        // by itself it reads what lies around the topics
        let base = config.default_method.clone();
        let known = base.as_ref().and_then(|base| config.methods.get(base));
        let mut method = known
            .cloned()
            .unwrap_or_else(|| MethodConfig::named("llm+kg"));
        method.llm = Some(llm.clone());
        let name = base.map_or_else(|| "llm+kg".to_owned(), |base| format!("{base}-llm"));
        config.methods.insert(name.clone(), method);
        config.default_method = Some(name);
    }
    Ok(config)
}

/// Two graphs that would go by one name.
fn same_name(name: &str, first: &str, second: &str) -> UserError {
    let path = named(second).1;
    UserError {
        code: "usage",
        message: format!(
            "two graphs would go by the name `{name}`: `{}` and `{}`",
            told(first),
            told(second)
        ),
        hint: format!("name one of them: `--graph {name}2={}`", told(&path)),
    }
}

/// `NAME=FOLDER`, or a folder that is called by its last part.
fn named(given: &str) -> (String, String) {
    if let Some((name, path)) = given.split_once('=')
        && !name.contains(['/', '\\'])
    {
        return (name.to_owned(), path.to_owned());
    }
    let name = match given.strip_prefix('@') {
        Some(sample) => sample.to_owned(),
        None => {
            // a name is told, and an address may hold what must not be
            let given = told(given);
            let last = Path::new(&*given).file_name();
            last.map_or_else(|| given.to_string(), |n| n.to_string_lossy().into_owned())
        }
    };
    (name, given.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Consent;

    #[test]
    fn graphs_go_by_the_given_name_or_the_last_part_of_their_path() {
        let pair = |name: &str, path: &str| (name.to_owned(), path.to_owned());
        assert_eq!(named("films=data/movies"), pair("films", "data/movies"));
        assert_eq!(named("data/movies"), pair("movies", "data/movies"));
        assert_eq!(named("data/a=b"), pair("a=b", "data/a=b"));
        assert_eq!(named("@toy"), pair("toy", "@toy"));
    }

    #[test]
    fn two_graphs_of_one_name_are_refused() {
        let graphs = |graphs: &[&str]| {
            let args = Served {
                graphs: graphs.iter().map(|g| (*g).to_owned()).collect(),
                config: None,
                methods: Vec::new(),
                model: None,
                llm: None,
                sign: None,
                consent: Consent::default(),
            };
            config(&args)
        };
        let error = graphs(&["a/films", "b/films"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "two graphs would go by the name `films`: `a/films` and `b/films`"
        );
        let error = error.downcast::<UserError>().unwrap();
        assert_eq!(error.hint, "name one of them: `--graph films2=b/films`");
        let both = graphs(&["a/films", "films2=b/films"]).unwrap();
        assert_eq!(both.graphs.len(), 2);
    }

    #[test]
    fn flags_add_to_the_file() {
        let args = Served {
            graphs: vec!["@toy".into(), "art=data/art".into()],
            config: None,
            methods: Vec::new(),
            model: Some("ckpt".into()),
            llm: Some("m.gguf".into()),
            sign: None,
            consent: Consent::default(),
        };
        let config = config(&args).unwrap();
        assert_eq!(config.default_graph.as_deref(), Some("toy"));
        let names: Vec<_> = config.methods.keys().map(String::as_str).collect();
        assert_eq!(names, ["auto", "auto-llm", "read", "trained"]);
        assert_eq!(config.default_method.as_deref(), Some("auto-llm"));
        let method = &config.methods["auto-llm"];
        assert_eq!(method.llm.as_deref(), Some("m.gguf"));
        assert_eq!(method.model.as_deref(), Some(Path::new("ckpt")));
    }
}
