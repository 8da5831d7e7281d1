//! What is served, to whom, and within which limits, as a file says it.
//!
//! ```toml
//! listen = "127.0.0.1:7878"
//! default_method = "trained"
//!
//! [graphs.movies]
//! path = "movies"
//! examples = ["who directed The Matrix?"]
//!
//! [methods.read]
//! method = "read"
//!
//! [methods.trained]
//! model = "ckpt"
//!
//! [limits]
//! queue = 512
//! ```
//!
//! Unknown keys are refused. Paths are relative to where the server is started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use wherefore::graph::sparql::SparqlOptions;
use wherefore::{Method, PipelineConfig};

use crate::error::{Error, Result};

/// Methods that are offered when none is named: those that need nothing but a graph.
const UNTRAINED: [&str; 3] = ["auto", "read", "similarity"];

/// A whole server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeConfig {
    /// Where to listen. Only this machine can reach the default.
    pub listen: SocketAddr,
    /// The graphs by name.
    pub graphs: BTreeMap<String, GraphConfig>,
    /// The graph that is asked when a request names none; the first by name if none is given.
    pub default_graph: Option<String>,
    /// The methods by name; `auto`, `read` and `similarity` if none are given.
    pub methods: BTreeMap<String, MethodConfig>,
    /// The method when a request names none; `auto` if there is one, or `read`, else the first by
    /// name.
    pub default_method: Option<String>,
    /// A run folder of `wherefore eval`, or a folder of such, to browse.
    pub runs: Option<PathBuf>,
    /// The folder where thumbs up and down are kept, one question file for each graph.
    pub feedback: Option<PathBuf>,
    /// The folder that graphs are loaded into over HTTP, and served from when the server starts
    /// again. Without one, only this machine may load graphs, and they go when the server ends.
    pub loads: Option<PathBuf>,
    /// The key that signs every answer, made by `wherefore keygen`.
    pub sign: Option<PathBuf>,
    /// Who may ask. Everybody who reaches the address, if there are none.
    pub keys: Vec<KeyConfig>,
    /// A file with more `[[keys]]`, which is read again when it changes. Once it is named, every
    /// request needs a key.
    pub keys_file: Option<PathBuf>,
    /// Whether an address that other machines reach may be served without keys.
    pub anonymous: bool,
    /// Web pages of these origins may call the API from a browser; `*` means any.
    pub cors: Vec<String>,
    /// Names that this server goes by, beside `localhost` and addresses; `*` means any. Requests
    /// for others are refused, so that no web page reaches it by a name that was made to lead
    /// here. An address that other machines reach needs at least one.
    pub hosts: Vec<String>,
    /// What a request may cost.
    pub limits: Limits,
    /// The program that runs SPARQL queries in processes of their own, and its arguments: see
    /// [`Workers`](wherefore::graph::sparql::Workers). Only so does the limit of memory hold, and
    /// that of time in each operator. Without one, queries run inside of the server.
    #[serde(skip)]
    pub sparql_worker: Option<(PathBuf, Vec<OsString>)>,
}

/// One graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphConfig {
    /// A graph folder, or `@toy`.
    pub path: String,
    /// Whether the service file that `path` names or holds is trusted: it says where questions go,
    /// and which secrets go along. The list of `wherefore trust` counts too.
    #[serde(default)]
    pub trust: bool,
    /// Questions to begin with.
    #[serde(default)]
    pub examples: Vec<String>,
    /// The methods offered for it, by name; all if none are given. A checkpoint fits the graphs it
    /// was trained for.
    #[serde(default)]
    pub methods: Vec<String>,
}

/// One method: by name, by file, by checkpoint, and perhaps with a language model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MethodConfig {
    /// One of the built-in methods.
    pub method: Option<String>,
    /// A TOML file as `wherefore ask --config` takes it.
    pub config: Option<PathBuf>,
    /// A checkpoint of `wherefore train`.
    pub model: Option<PathBuf>,
    /// A language model that answers from the evidence: a GGUF file or `URL#MODEL`.
    pub llm: Option<String>,
}

/// One API key. The key itself is kept nowhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// What it is called in the log and in metrics.
    pub name: String,
    /// SHA-256 of the key, as 64 hexadecimal digits.
    pub sha256: String,
    /// Requests a second; that of [`Limits`] if none is given.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Whether it may change graphs: the scope `write`, beside the others. Without such a key
    /// nobody can.
    #[serde(default)]
    pub write: bool,
    /// What it may do; everything but changes if left out.
    #[serde(default)]
    pub scopes: Option<Vec<Scope>>,
    /// The graphs that it is for; all if left out.
    #[serde(default)]
    pub graphs: Option<KeyGraphs>,
    /// From when on it is refused. A date is its midnight, and times are UTC unless they say
    /// otherwise.
    #[serde(default, deserialize_with = "date")]
    pub expires: Option<toml::value::Datetime>,
}

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Ask, retrieve, link, verify, and look things up; OpenAI's API, and MCP but for SPARQL.
    Ask,
    /// Send SPARQL queries.
    Sparql,
    /// Change graphs.
    Write,
    /// Say what an answer was worth.
    Feedback,
    /// Read the counters.
    Metrics,
}

impl Scope {
    /// As it is written in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Ask => "ask",
            Scope::Sparql => "sparql",
            Scope::Write => "write",
            Scope::Feedback => "feedback",
            Scope::Metrics => "metrics",
        }
    }
}

/// The graphs that a key is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KeyGraphs {
    /// These, each with all scopes of the key.
    Named(Vec<String>),
    /// These, each with scopes of its own.
    Scoped(BTreeMap<String, Vec<Scope>>),
}

/// A date of TOML, or the same in quotation marks.
fn date<'de, D: Deserializer<'de>>(from: D) -> Result<Option<toml::value::Datetime>, D::Error> {
    let bad = |given: &dyn std::fmt::Display| {
        serde::de::Error::custom(format!(
            "`expires` is {given}, but must be a date like 2027-01-31 or 2027-01-31T12:00:00Z"
        ))
    };
    match toml::Value::deserialize(from)? {
        toml::Value::Datetime(date) => Ok(Some(date)),
        toml::Value::String(text) => text.parse().map(Some).map_err(|_| bad(&text)),
        other => Err(bad(&other)),
    }
}

/// What a request may cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Threads that answer questions; 0 means one for each core.
    pub workers: usize,
    /// Requests that may wait for one of them. Beyond, requests get 429.
    pub queue: usize,
    /// Open connections. Beyond, idle ones make room for new ones, or else new ones wait.
    pub connections: usize,
    /// Open connections of one address; 0 means no limit of its own. Beyond, its idle ones make
    /// room, or else new ones are refused. Behind a proxy all callers have the proxy's address.
    pub connections_per_address: usize,
    /// Seconds that a reply may wait for its reader without getting any further.
    pub write_seconds: f64,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of a file that is to become a graph; 0 means that none are loaded.
    pub load_bytes: u64,
    /// Graphs that may be loaded over HTTP.
    pub loaded_graphs: usize,
    /// Bytes of a question.
    pub question_bytes: usize,
    /// Seconds for one answer, waiting included.
    pub seconds: f64,
    /// Threads for questions that a language model answers; 0 means one for each core.
    pub model_workers: usize,
    /// SPARQL queries at a time; 0 means one for each core.
    pub sparql_workers: usize,
    /// Seconds for one SPARQL query.
    pub sparql_seconds: f64,
    /// Bytes of memory for one SPARQL query.
    pub sparql_memory: u64,
    /// Bytes of a SPARQL answer.
    pub answer_bytes: u64,
    /// Rows of a SPARQL answer.
    pub rows: usize,
    /// Requests a second of one key, or of one address where there are no keys; 0 means no limit.
    pub rate: f64,
    /// Requests that may come at once before the rate counts.
    pub burst: u32,
    /// Different wrong API keys that one address may send within a minute; 0 means no limit.
    pub wrong_keys: usize,
    /// Changes of a graph that may wait in its log; 0 means any number. Beyond, and beyond a
    /// twentieth of its triples, the server folds them into the files, as `wherefore compact`.
    pub pending_changes: u64,
    /// Seconds that requests have to end in when the server is stopped.
    pub shutdown_seconds: f64,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7878),
            graphs: BTreeMap::new(),
            default_graph: None,
            methods: BTreeMap::new(),
            default_method: None,
            runs: None,
            feedback: None,
            loads: None,
            sign: None,
            keys: Vec::new(),
            keys_file: None,
            anonymous: false,
            cors: Vec::new(),
            hosts: Vec::new(),
            limits: Limits::default(),
            sparql_worker: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            workers: 0,
            queue: 512,
            connections: 1024,
            connections_per_address: 256,
            write_seconds: 20.0,
            body_bytes: 1 << 20,
            load_bytes: 200 << 20,
            loaded_graphs: 16,
            question_bytes: 2048,
            seconds: 60.0,
            model_workers: 0,
            sparql_workers: 0,
            sparql_seconds: 10.0,
            sparql_memory: 512 << 20,
            answer_bytes: 64 << 20,
            rows: 10_000,
            rate: 0.0,
            burst: 20,
            wrong_keys: 10,
            pending_changes: 10_000,
            shutdown_seconds: 30.0,
        }
    }
}

impl ServeConfig {
    /// Reads a configuration.
    pub fn from_toml(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|e| Error::Config(wherefore::config::toml_fault(text, &e)))
    }

    /// Whether every request needs an API key.
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty() || self.keys_file.is_some()
    }

    /// Fills in what was left out, and refuses what does not fit together.
    pub(crate) fn resolve(mut self) -> Result<Self> {
        if self.graphs.is_empty() {
            return Err(Error::NoGraph);
        }
        if self.methods.is_empty() {
            self.methods = UNTRAINED
                .map(|name| (name.to_owned(), MethodConfig::named(name)))
                .into();
        }
        for name in self.graphs.keys().chain(self.methods.keys()) {
            if !is_name(name) {
                return Err(Error::Config(format!(
                    "`{name}` is no name: letters, digits and `-_.+` make one, 64 at most"
                )));
            }
        }
        for (name, graph) in &self.graphs {
            if let Some(missing) = (graph.methods.iter()).find(|m| !self.methods.contains_key(*m)) {
                return Err(Error::Config(format!(
                    "graph `{name}` is to have the method `{missing}`, and there is none"
                )));
            }
        }
        if self.default_graph.is_none() {
            self.default_graph = self.graphs.keys().next().cloned();
        }
        if self.default_method.is_none() {
            let usual = [Method::Auto.name(), PipelineConfig::USUAL.name()].into_iter();
            let usual = (usual.map(str::to_owned)).find(|usual| self.methods.contains_key(usual));
            self.default_method = usual.or_else(|| self.methods.keys().next().cloned());
        }
        let known = |kind: &str, name: &Option<String>, known: bool| match (known, name) {
            (false, Some(name)) => Err(Error::Config(format!(
                "`default_{kind}` is `{name}`, and there is none of that name"
            ))),
            _ => Ok(()),
        };
        let graph = self.default_graph.as_ref();
        let method = self.default_method.as_ref();
        let has_graph = graph.is_some_and(|g| self.graphs.contains_key(g));
        let has_method = method.is_some_and(|m| self.methods.contains_key(m));
        known("graph", &self.default_graph, has_graph)?;
        known("method", &self.default_method, has_method)?;
        self.limits.check()?;
        if self.loads.is_some() && self.anonymous && !self.has_keys() {
            return Err(Error::Config(
                "`loads` lets others load graphs, and `anonymous` lets in everybody: make keys"
                    .into(),
            ));
        }
        if !self.listen.ip().is_loopback() {
            if !self.has_keys() && !self.anonymous {
                return Err(Error::Unguarded(self.listen));
            }
            if self.hosts.is_empty() {
                return Err(Error::Nameless(self.listen));
            }
        }
        Ok(self)
    }
}

/// Whether a graph or a method may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    !name.is_empty() && name.len() <= 64 && name.chars().all(good)
}

impl MethodConfig {
    /// One of the built-in methods, as it is.
    pub fn named(method: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            ..Self::default()
        }
    }

    /// The pipeline that it stands for.
    pub(crate) fn pipeline(&self) -> wherefore::Result<PipelineConfig> {
        let bad = |text: String| wherefore::Error::Config(text);
        let mut config = match (&self.method, &self.config, &self.model) {
            (Some(_), Some(_), _) => {
                return Err(bad("`method` and `config` are both given".into()));
            }
            (Some(name), None, _) => PipelineConfig::of(name.parse()?),
            (None, Some(path), _) => {
                let text =
                    std::fs::read_to_string(path).map_err(|source| wherefore::Error::Io {
                        path: path.clone(),
                        source,
                    })?;
                PipelineConfig::from_toml(&text)?
            }
            (None, None, Some(model)) => PipelineConfig::of_checkpoint(model)?,
            (None, None, None) => PipelineConfig::default(),
        };
        if let Some(model) = &self.model
            && !config.set_model(model)?
        {
            return Err(bad("this method takes no checkpoint".into()));
        }
        if let Some(llm) = &self.llm {
            config.set_llm(llm);
        }
        Ok(config)
    }
}

impl Limits {
    /// What a SPARQL query may cost.
    pub(crate) fn sparql(&self) -> SparqlOptions {
        SparqlOptions {
            timeout: Some(Duration::from_secs_f64(self.sparql_seconds)),
            max_rows: Some(self.rows),
            max_bytes: Some(self.answer_bytes),
        }
    }

    fn check(&self) -> Result<()> {
        for (name, value) in [
            ("connections", self.connections),
            ("body_bytes", self.body_bytes),
            ("question_bytes", self.question_bytes),
            ("rows", self.rows),
        ] {
            if value == 0 {
                return Err(Error::Config(format!("`limits.{name}` must be at least 1")));
            }
        }
        let least = 1 << 20;
        for (name, value) in [
            ("sparql_memory", self.sparql_memory),
            ("answer_bytes", self.answer_bytes),
        ] {
            if value < least {
                return Err(Error::Config(format!(
                    "`limits.{name}` is {value}, but must be at least {least}"
                )));
            }
        }
        // what is beyond is a slip of the hand, and would be asked of the system at once
        for (name, value, most) in [
            ("workers", self.workers, 4096),
            ("model_workers", self.model_workers, 4096),
            ("sparql_workers", self.sparql_workers, 4096),
            ("queue", self.queue, 1 << 20),
            ("connections", self.connections, 1 << 20),
            ("body_bytes", self.body_bytes, 1 << 30),
            ("question_bytes", self.question_bytes, 1 << 20),
            ("rows", self.rows, 100_000_000),
        ] {
            if value > most {
                return Err(Error::Config(format!(
                    "`limits.{name}` is {value}, but must be at most {most}"
                )));
            }
        }
        for (name, value, least) in [
            ("seconds", self.seconds, 0.001),
            ("sparql_seconds", self.sparql_seconds, 0.001),
            ("write_seconds", self.write_seconds, 0.001),
            ("rate", self.rate, 0.0),
            ("shutdown_seconds", self.shutdown_seconds, 0.0),
        ] {
            // not `<`: no number at all is refused too
            if !(value >= least && value <= 1e9) {
                return Err(Error::Config(format!(
                    "`limits.{name}` is {value}, but must be from {least} to 1000000000"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toy() -> ServeConfig {
        ServeConfig::from_toml("[graphs.toy]\npath = \"@toy\"").unwrap()
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        let config = toy().resolve().unwrap();
        assert_eq!(config.default_graph.as_deref(), Some("toy"));
        assert_eq!(config.default_method.as_deref(), Some("auto"));
        assert_eq!(config.methods.len(), 3);
        assert!(config.listen.ip().is_loopback());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let refused = |change: fn(&mut ServeConfig)| {
            let mut config = toy();
            change(&mut config);
            config.resolve().unwrap_err().to_string()
        };
        assert!(refused(|c| c.graphs.clear()).contains("no graph"));
        assert!(refused(|c| c.default_graph = Some("x".into())).contains("`default_graph`"));
        assert!(refused(|c| c.default_method = Some("x".into())).contains("`default_method`"));
        assert!(refused(|c| c.limits.rate = f64::NAN).contains("`limits.rate`"));
        assert!(refused(|c| c.limits.rows = 0).contains("`limits.rows`"));
        for (text, told) in [
            ("connections = 9223372036854775807", "`limits.connections`"),
            ("workers = 1000000", "`limits.workers`"),
            ("queue = 9223372036854775807", "`limits.queue`"),
            ("body_bytes = 9223372036854775807", "`limits.body_bytes`"),
        ] {
            let text = format!("[graphs.toy]\npath = \"@toy\"\n[limits]\n{text}");
            let error = ServeConfig::from_toml(&text).unwrap().resolve();
            assert!(error.unwrap_err().to_string().contains(told), "{text}");
        }
        assert!(
            refused(|c| c.listen = "0.0.0.0:80".parse().unwrap()).contains("no API key is set")
        );
        let open = |c: &mut ServeConfig| {
            c.listen = "0.0.0.0:80".parse().unwrap();
            c.anonymous = true;
        };
        let mut config = toy();
        open(&mut config);
        let error = config.clone().resolve().unwrap_err();
        assert!(error.to_string().contains("`hosts` names none"), "{error}");
        assert!(error.hint().unwrap().contains("--host"));
        config.hosts = vec!["graph.example".into()];
        config.resolve().unwrap();
        assert!(
            refused(|c| {
                let graph = GraphConfig::default();
                c.graphs.insert("../etc".into(), graph);
            })
            .contains("is no name")
        );
        let text = ServeConfig::from_toml("\nlimits = { que = 3 }").unwrap_err();
        assert!(text.to_string().contains("line 2: unknown field `que`"));
    }

    #[test]
    fn a_method_is_told_by_name_or_file_or_checkpoint() {
        let read = MethodConfig::named("read").pipeline().unwrap();
        assert_eq!(read, PipelineConfig::default());
        let mut both = MethodConfig::named("read");
        both.config = Some("x.toml".into());
        assert!(both.pipeline().is_err());
        let mut trained = MethodConfig::named("similarity");
        trained.model = Some("ckpt".into());
        let text = trained.pipeline().unwrap_err().to_string();
        assert!(text.contains("takes no checkpoint"), "{text}");
    }
}
