//! The sync engine behind the server: every graph and method opened once, shared by all threads.

mod aliases;
mod ask;
mod examples;
mod loads;
mod look;
mod overhear;
mod schema;
mod text2sparql;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use wherefore::config::LinkerConfig;
use wherefore::graph::sparql::Workers;
use wherefore::graph::{
    self, ChangeReport, ChangeSet, Graph, Input, LoadOptions, Service, ServiceConfig, Store, Trust,
    toy,
};
use wherefore::link::{Link, Linker};
use wherefore::model::LanguageModel;
use wherefore::model::language::{self, Cached};
use wherefore::verify::SigningKey;
use wherefore::{Pipeline, PipelineConfig, Question};

use crate::config::{GraphConfig, ServeConfig};
use crate::error::{Error, Result};
use crate::log::Log;
use crate::problem::Problem;
use aliases::aliases;
pub(crate) use ask::{Asked, Event};
pub(crate) use loads::Upload;
use overhear::Overheard;

/// Memory that folding changes in keeps to, more or less.
const FOLD_MEMORY: usize = 1 << 30;

/// Questions that the sample graph answers.
const TOY_EXAMPLES: [&str; 3] = [
    "Where was the coach of the San Francisco Giants born?",
    "Which World Series did the San Francisco Giants win?",
    "Who is the mascot of the Kansas City Royals?",
];

/// All that is served.
pub(crate) struct Engine {
    /// Graphs come while the server runs; none that somebody holds goes.
    graphs: RwLock<BTreeMap<String, Arc<Served>>>,
    /// Those of the graphs that came by a load.
    loaded: RwLock<BTreeSet<String>>,
    default_graph: String,
    default_method: String,
    methods: BTreeMap<String, Method>,
    models: BTreeMap<String, Arc<dyn LanguageModel>>,
    workers: Option<Arc<Workers>>,
    /// Signs every answer.
    signer: Option<SigningKey>,
}

/// What is told of a method.
pub(crate) struct Method {
    pub(crate) config: PipelineConfig,
    /// Whether a language model answers.
    pub(crate) uses_llm: bool,
}

/// One graph with its pipelines.
pub(crate) struct Served {
    pub(crate) name: String,
    live: Live,
    /// Other names that a data set may be called by: the last part of the graph's path.
    aliases: Vec<String>,
    /// Questions to begin with; made when the graph is warmed up if none were given.
    examples: OnceLock<Vec<String>>,
    pipelines: BTreeMap<String, Arc<Pipeline>>,
    default_method: String,
    /// What it speaks of, for the state of the graph by that identity.
    schema: Mutex<Option<(String, Arc<Vec<u8>>)>>,
    /// Whether changes are being folded into the files.
    folding: Arc<AtomicBool>,
    /// Where queries of strangers run; inside of this process if there are none.
    workers: Option<Arc<Workers>>,
    /// The folder of a sample that was unpacked; it goes when the graph goes.
    _unpacked: Option<tempfile::TempDir>,
}

impl Engine {
    /// Opens graphs, checkpoints and language models. The configuration is resolved.
    pub(crate) fn open(config: &ServeConfig) -> Result<Self> {
        let signer = config.sign.as_deref().map(SigningKey::open).transpose()?;
        let mut methods = BTreeMap::new();
        let mut models = BTreeMap::new();
        for (name, method) in &config.methods {
            let failed = |source| Error::Method {
                method: name.clone(),
                source: Box::new(source),
            };
            let pipeline = method.pipeline().map_err(failed)?;
            let uses_llm = pipeline.asks_model();
            if let (true, Some(llm)) = (uses_llm, &pipeline.llm)
                && !models.contains_key(llm)
            {
                let model = language::open(llm).map_err(|e| failed(e.into()))?;
                let model = Cached::new(model, language::cache_folder());
                let model: Arc<dyn LanguageModel> = Arc::new(Overheard(model));
                models.insert(llm.clone(), model);
            }
            methods.insert(
                name.clone(),
                Method {
                    config: pipeline,
                    uses_llm,
                },
            );
        }
        let workers = config.sparql_worker.as_ref().map(|command| {
            let memory = config.limits.sparql_memory;
            let (program, arguments) = command;
            Arc::new(Workers::new(program, arguments, memory))
        });
        let engine = Self {
            graphs: RwLock::default(),
            loaded: RwLock::default(),
            default_graph: config.default_graph.clone().unwrap_or_default(),
            default_method: config.default_method.clone().unwrap_or_default(),
            methods,
            models,
            workers,
            signer,
        };
        for (name, graph) in &config.graphs {
            engine.put(engine.serve(name, graph)?);
        }
        Ok(engine)
    }

    /// Opens a graph with its methods.
    fn serve(&self, name: &str, graph: &GraphConfig) -> Result<Served> {
        let (live, unpacked) = open_graph(name, graph)?;
        let mut linkers = Linkers::default();
        let mut pipelines: BTreeMap<String, Arc<Pipeline>> = BTreeMap::new();
        let mut made: Vec<(PipelineConfig, Arc<Pipeline>)> = Vec::new();
        for (method, Method { config, .. }) in &self.methods {
            if !graph.methods.is_empty() && !graph.methods.contains(method) {
                continue;
            }
            // `auto` without another method is the reader, and what it keeps is kept once
            let mut same = config.clone();
            same.beside = same.beside.filter(|others| !others.is_empty());
            if let Some((_, pipeline)) = made.iter().find(|(other, _)| *other == same) {
                pipelines.insert(method.clone(), Arc::clone(pipeline));
                continue;
            }
            let model = config.llm.as_ref().and_then(|llm| self.models.get(llm));
            let built = config.build_with(model.cloned());
            let mut pipeline = built.map_err(|source| Error::Method {
                method: method.clone(),
                source: Box::new(source),
            })?;
            linkers.share(&config.link, &mut pipeline);
            let pipeline = Arc::new(pipeline);
            made.push((same, Arc::clone(&pipeline)));
            pipelines.insert(method.clone(), pipeline);
        }
        let has_default = pipelines.contains_key(&self.default_method);
        let first = pipelines.keys().next().cloned();
        Ok(Served {
            name: name.to_owned(),
            aliases: aliases(&graph.path),
            live,
            examples: match (graph.examples.as_slice(), graph.path.as_str()) {
                ([], "@toy") => OnceLock::from(Vec::from(TOY_EXAMPLES.map(str::to_owned))),
                ([], _) => OnceLock::new(),
                (given, _) => OnceLock::from(given.to_vec()),
            },
            default_method: match has_default {
                true => self.default_method.clone(),
                false => first.unwrap_or_default(),
            },
            pipelines,
            schema: Mutex::default(),
            workers: self.workers.clone(),
            folding: Arc::default(),
            _unpacked: unpacked,
        })
    }

    /// From now on this graph is asked under its name.
    fn put(&self, served: Served) {
        let mut graphs = self.graphs.write().unwrap_or_else(PoisonError::into_inner);
        graphs.insert(served.name.clone(), Arc::new(served));
    }

    /// Computes what every method keeps for its graph, so that the first asker need not wait, and
    /// finds questions to begin with where none were given.
    pub(crate) fn warm(&self) -> Result<(), Problem> {
        self.graphs()
            .iter()
            .try_for_each(|served| self.warm_one(served))
    }

    fn warm_one(&self, served: &Served) -> Result<(), Problem> {
        let graph = served.current()?;
        let entity = some_entity(&*graph)?;
        for pipeline in served.pipelines.values() {
            // a word that no name is, for the part of linking that whole names do not need
            let question = Question::new("xqzjk wqxzv");
            pipeline.linker.mentions(&question, &*graph)?;
            if let Some(entity) = entity {
                let links = [Link {
                    entity,
                    mention: String::new(),
                    span: None,
                    score: 1.0,
                }];
                pipeline.retriever.retrieve(&question, &links, &*graph)?;
            }
        }
        self.find_examples(served, &graph)
    }

    /// Questions about a graph of ours. A service is not asked, nor is a language model: both cost
    /// somebody something.
    fn find_examples(&self, served: &Served, graph: &Current) -> Result<(), Problem> {
        let (Current::Store(store), None) = (graph, served.examples.get()) else {
            return Ok(());
        };
        let free = |name: &&String| self.methods.get(*name).is_some_and(|m| !m.uses_llm);
        let method = [&served.default_method]
            .into_iter()
            .chain(served.pipelines.keys())
            .find(free);
        if let Some(pipeline) = method.and_then(|name| served.pipelines.get(name)) {
            let found = examples::examples(store, pipeline)?;
            served.examples.get_or_init(|| found);
        }
        Ok(())
    }

    /// All graphs, by name.
    pub(crate) fn graphs(&self) -> Vec<Arc<Served>> {
        let graphs = self.graphs.read().unwrap_or_else(PoisonError::into_inner);
        graphs.values().cloned().collect()
    }

    /// The identities of all graphs, with their changes and without, each with the graph's name.
    pub(crate) fn identities(&self) -> Vec<(String, String)> {
        let mut known = Vec::new();
        for served in self.graphs() {
            // a damaged graph is told by whoever reads it
            let Ok(current) = served.current() else {
                continue;
            };
            let files = current.store().map(Store::checksum);
            let both = current.identity().into_iter().chain(files);
            known.extend(both.map(|identity| (identity.to_owned(), served.name.clone())));
        }
        known
    }

    /// All methods by name.
    pub(crate) fn methods(&self) -> impl Iterator<Item = (&str, &Method)> {
        self.methods.iter().map(|(name, m)| (name.as_str(), m))
    }

    /// The name of the graph that is asked when none is named.
    pub(crate) fn default_graph(&self) -> &str {
        &self.default_graph
    }

    /// The name of the method when none is named.
    pub(crate) fn default_method(&self) -> &str {
        &self.default_method
    }

    /// Whether a language model takes part in this method, or the default one.
    pub(crate) fn uses_llm(&self, graph: Option<&str>, method: Option<&str>) -> bool {
        let served = self.graph(graph).ok();
        let default = served.as_ref().map(|served| served.default_method());
        let name = method.or(default).unwrap_or_default();
        (self.methods.get(name)).is_some_and(|m| m.uses_llm || m.config.llm.is_some())
    }

    /// The graph of this name, or the default one.
    pub(crate) fn graph(&self, name: Option<&str>) -> Result<Arc<Served>, Problem> {
        let name = name.unwrap_or(&self.default_graph);
        let graphs = self.graphs.read().unwrap_or_else(PoisonError::into_inner);
        graphs.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = graphs.keys().map(String::as_str).collect();
            Problem::not_found(
                "no-such-graph",
                format!("there is no graph `{}`", clipped(name)),
            )
            .hint(format!("there are: {}", known.join(", ")))
        })
    }
}

impl Served {
    /// Questions to begin with.
    pub(crate) fn examples(&self) -> &[String] {
        self.examples.get().map_or(&[], Vec::as_slice)
    }

    /// The methods offered for this graph.
    pub(crate) fn methods(&self) -> impl Iterator<Item = &str> {
        self.pipelines.keys().map(String::as_str)
    }

    /// The method when none is named.
    pub(crate) fn default_method(&self) -> &str {
        &self.default_method
    }

    /// The pipeline of this method, or of the default one.
    pub(crate) fn pipeline(&self, method: Option<&str>) -> Result<&Pipeline, Problem> {
        let method = method.unwrap_or(&self.default_method);
        self.pipelines.get(method).map(|p| &**p).ok_or_else(|| {
            let known: Vec<&str> = self.methods().collect();
            Problem::not_found(
                "no-such-method",
                format!(
                    "the graph `{}` has no method `{}`",
                    self.name,
                    clipped(method)
                ),
            )
            .hint(format!("there are: {}", known.join(", ")))
        })
    }

    /// The graph as it is now. Whoever holds it sees no change until the next call.
    ///
    /// # Errors
    /// If its files or its change log turn out to be damaged.
    pub(crate) fn current(&self) -> graph::Result<Current> {
        Ok(match &self.live {
            Live::Store(store) => Current::Store(newest(store)?),
            Live::Service(service) => Current::Service(Arc::clone(service)),
        })
    }

    /// Makes changes; whoever asks from now on sees them.
    pub(crate) fn change(&self, changes: &ChangeSet) -> Result<ChangeReport, Problem> {
        let Live::Store(live) = &self.live else {
            let message = format!("the graph `{}` is a service of somebody else", self.name);
            return Err(Problem::unprocessable("not-ours", message)
                .hint("change it where it lies; its changes are seen here"));
        };
        let (next, report) = newest(live)?.change(changes)?;
        *live.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(report)
    }

    /// Folds changes into the files in a thread of its own where too many wait: each one costs
    /// memory, and time of every later one. One thread at a time.
    pub(crate) fn fold(&self, pending: u64, most: u64, log: &Log) {
        let Live::Store(live) = &self.live else {
            return;
        };
        let store = live.read().unwrap_or_else(PoisonError::into_inner).clone();
        let most = match most {
            0 => return,
            most => most.max(store.counts().triples / 20),
        };
        if pending <= most || self.folding.swap(true, Ordering::AcqRel) {
            return;
        }
        let (log, name, folding) = (log.clone(), self.name.clone(), self.folding.clone());
        let told = log.clone();
        let thread = std::thread::Builder::new().name("fold".into());
        let started = thread.spawn(move || {
            let lines = fold(&store);
            let lines = lines.unwrap_or_else(|e| vec![format!("changes stay in the log: {e}")]);
            for line in lines {
                told(&format!("graph `{name}`: {line}"));
            }
            folding.store(false, Ordering::Release);
        });
        if let Err(error) = started {
            self.folding.store(false, Ordering::Release);
            log(&format!("cannot fold changes in: {error}"));
        }
    }
}

/// Folds the changes of a graph into its files, has its index follow, and says so.
fn fold(store: &Store) -> wherefore::Result<Vec<String>> {
    let report = graph::compact(store.path(), FOLD_MEMORY, 1, &|_| {})?;
    let left = wherefore::index::follow(&Store::open(store.path())?)?;
    let folded = report.map(|r| {
        let seconds = r.time.as_secs_f64();
        format!("{} changes folded in, {seconds:.1} s", r.changes)
    });
    let left = left.into_iter();
    let left = left.map(|(part, error)| format!("the index of {part} was left behind: {error}"));
    Ok(folded.into_iter().chain(left).collect())
}

/// Where a graph comes from.
enum Live {
    Store(RwLock<Store>),
    Service(Arc<Service>),
}

/// A graph as it is at one moment.
pub(crate) enum Current {
    Store(Store),
    Service(Arc<Service>),
}

impl Deref for Current {
    type Target = dyn Graph;

    fn deref(&self) -> &Self::Target {
        match self {
            Current::Store(store) => store,
            Current::Service(service) => &**service,
        }
    }
}

/// The store as its folder is now. A folder that cannot be read now is served as it was; one that
/// is damaged is not: a file that was cut short would end the process, and changes that are lost
/// from the log must be told.
fn newest(live: &RwLock<Store>) -> graph::Result<Store> {
    let current = live.read().unwrap_or_else(PoisonError::into_inner).clone();
    match current.refreshed() {
        Ok(Some(_)) => {
            let mut held = live.write().unwrap_or_else(PoisonError::into_inner);
            // another thread may have been here, and perhaps it saw more
            if let Ok(Some(newer)) = held.refreshed() {
                *held = newer;
            }
            Ok(held.clone())
        }
        Err(error) if error.is_damage() => Err(error),
        Ok(None) | Err(_) => Ok(current),
    }
}

/// An entity with triples and a name, for warming up.
fn some_entity(graph: &dyn Graph) -> Result<Option<graph::EntityId>, Problem> {
    let most = graph.entity_bound().min(1000) as u32;
    for id in 0..most {
        let entity = graph::EntityId(id);
        if graph.is_named(entity)? && graph.degree(entity)? > 0 {
            return Ok(Some(entity));
        }
    }
    Ok(None)
}

/// The beginning of a text that somebody sent, for a message about it.
pub(crate) fn clipped(text: &str) -> String {
    cut(text, 80)
}

/// The first letters of a text.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Linkers by their settings: what a linker keeps for its graph is kept once for all methods.
#[derive(Default)]
struct Linkers(Vec<(LinkerConfig, Arc<dyn Linker>)>);

impl Linkers {
    fn share(&mut self, config: &LinkerConfig, pipeline: &mut Pipeline) {
        match self.0.iter().find(|(c, _)| c == config) {
            Some((_, linker)) => pipeline.linker = Arc::clone(linker),
            None => self.0.push((config.clone(), Arc::clone(&pipeline.linker))),
        }
    }
}

/// Opens a graph folder or a service, or unpacks the sample: all doors, SPARQL too, read folders.
fn open_graph(name: &str, graph: &GraphConfig) -> Result<(Live, Option<tempfile::TempDir>)> {
    let path = graph.path.as_str();
    let trust = match graph.trust {
        true => Trust::Given,
        false => Trust::Recorded,
    };
    let failed = |source| Error::Graph {
        name: name.to_owned(),
        source,
    };
    let of = |store| Live::Store(RwLock::new(store));
    if let Some(config) = ServiceConfig::named(path, trust).map_err(failed)? {
        let service = Service::open(config).map_err(failed)?;
        return Ok((Live::Service(Arc::new(service)), None));
    }
    if path != "@toy" {
        return Ok((of(Store::open(path).map_err(failed)?), None));
    }
    let io = |source| Error::System {
        action: "unpack the sample graph into the folder for temporary files",
        source,
    };
    let folder = tempfile::tempdir().map_err(io)?;
    let file = folder.path().join("toy.tsv");
    let lines: Vec<String> = (toy::FACTS.iter())
        .map(|(head, relation, tail)| format!("{head}\t{relation}\t{tail}\n"))
        .collect();
    std::fs::write(&file, lines.concat()).map_err(io)?;
    let out = folder.path().join("toy");
    let options = LoadOptions::default();
    graph::load(&[Input::File(file)], &out, &options, &|_| {}).map_err(failed)?;
    Ok((of(Store::open(&out).map_err(failed)?), Some(folder)))
}

#[cfg(test)]
pub(crate) fn toy_engine() -> Engine {
    toy_engine_with(|_| {})
}

#[cfg(test)]
pub(crate) fn toy_engine_with(set: impl FnOnce(&mut ServeConfig)) -> Engine {
    let mut config = ServeConfig::default();
    set(&mut config);
    let toy = crate::config::GraphConfig {
        path: "@toy".into(),
        ..Default::default()
    };
    config.graphs.insert("toy".into(), toy);
    Engine::open(&config.resolve().unwrap()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_share_one_linker_and_warm_up() {
        let engine = toy_engine();
        engine.warm().unwrap();
        let served = engine.graph(None).unwrap();
        assert_eq!(served.name, "toy");
        assert_eq!(served.default_method(), "auto");
        assert_eq!(
            served.methods().collect::<Vec<_>>(),
            ["auto", "read", "similarity"]
        );
        // without another method, `auto` is the reader itself
        assert!(Arc::ptr_eq(
            &served.pipelines["auto"],
            &served.pipelines["read"]
        ));
        let unknown = engine.graph(Some("x")).err().unwrap();
        assert_eq!(
            (unknown.status, unknown.hint.as_deref()),
            (404, Some("there are: toy"))
        );
        assert_eq!(served.pipeline(Some("x")).err().unwrap().status, 404);
    }
}
