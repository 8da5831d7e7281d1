//! A graph that is asked from Python.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wherefore::link::LinkingReport;
use wherefore::verify::{Saved, seal, verify_saved};
use wherefore::{Follow, Pipeline, Question};
use wherefore_graph::sparql::{ResultFormat, SparqlOptions, Workers};
use wherefore_graph::{Action, ChangeSet, Format, Input, LoadOptions, TableOptions, Trust, Wide};

use crate::arrays::{Arrays, all, near, of_all, of_near};
use crate::errors::{misused, raised};
use crate::terms::{Matches, Pattern, Shared, matching};
use crate::{interpreted, many};

/// Bytes that a SPARQL query may allocate.
const QUERY_MEMORY: u64 = 4 << 30;

/// What a question is answered with: configuration, method, checkpoint, language model.
type How = (
    Option<PathBuf>,
    Option<String>,
    Option<PathBuf>,
    Option<String>,
);

/// What is said of a question: topics, number of the reading, precision, coverage.
type Said = (Vec<String>, usize, Option<f32>, Option<f32>);

/// A graph folder, a built-in graph or a service.
#[pyclass(frozen, module = "wherefore._wherefore")]
pub(crate) struct Graph {
    name: String,
    /// None after it was closed.
    graph: RwLock<Option<Shared>>,
    pipelines: Mutex<HashMap<How, Arc<Pipeline>>>,
    workers: Workers,
    /// The process that opened it.
    process: u32,
}

/// An answer; it becomes JSON when somebody looks.
#[pyclass(frozen, module = "wherefore._wherefore")]
pub(crate) struct Answer {
    answer: wherefore::Answer,
    graph: Shared,
}

#[pymethods]
impl Answer {
    /// The answer as JSON, sealed.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut answer = self.answer.clone();
            answer.seal = Some(seal(&self.answer, self.graph.as_ref(), None));
            Ok(serde_json::to_string(&answer)?)
        })
        .map_err(|error: anyhow::Error| raised(&error))
    }

    /// The names of the answers, best first.
    fn names(&self) -> Vec<&str> {
        let all = self.answer.answers.iter();
        all.map(|answer| answer.name.as_str()).collect()
    }

    /// The evidence as a picture in HTML.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| wherefore_cli::picture(&self.answer)))
    }
}

impl Graph {
    /// Does something with the newest graph, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Shared) -> anyhow::Result<T> + Send,
    ) -> PyResult<T> {
        let graph = self.current()?;
        py.detach(|| {
            let graph = self.newest(graph)?;
            work(graph)
        })
        .map_err(|error| raised(&error))
    }

    /// The graph, where it may be used.
    fn current(&self) -> PyResult<Shared> {
        if self.process != std::process::id() {
            return Err(misused(
                "forked",
                &format!("the graph `{}` was opened by another process", self.name),
                "open it in the new process, and start that with `spawn` \
                 (multiprocessing.get_context(\"spawn\")): threads do not survive a fork",
            ));
        }
        let graph = self.graph.read().unwrap_or_else(PoisonError::into_inner);
        graph.clone().ok_or_else(|| {
            misused(
                "closed",
                &format!("the graph `{}` was closed", self.name),
                "open it again with `wherefore.Graph.open(PATH)`",
            )
        })
    }

    /// The graph with what other processes changed.
    fn newest(&self, graph: Shared) -> anyhow::Result<Shared> {
        let refreshed = match graph.store() {
            Some(store) => store.refreshed()?,
            None => None,
        };
        Ok(match refreshed {
            Some(store) => self.replaced(Arc::new(store)),
            None => graph,
        })
    }

    fn replaced(&self, newer: Shared) -> Shared {
        let mut graph = self.graph.write().unwrap_or_else(PoisonError::into_inner);
        // what was closed meanwhile stays closed
        if graph.is_some() {
            *graph = Some(Arc::clone(&newer));
        }
        newer
    }

    fn pipeline(&self, how: &How) -> anyhow::Result<Arc<Pipeline>> {
        let mut pipelines = (self.pipelines.lock()).unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = pipelines.get(how) {
            return Ok(Arc::clone(pipeline));
        }
        let (config, method, model, llm) = how;
        let pipeline = wherefore_cli::pipeline(
            config.as_deref(),
            method.as_deref(),
            model.as_deref(),
            llm.as_deref(),
        )?;
        let pipeline = Arc::new(pipeline);
        pipelines.insert(how.clone(), Arc::clone(&pipeline));
        Ok(pipeline)
    }

    fn change(&self, py: Python<'_>, action: Action, lines: &str, typed: bool) -> PyResult<String> {
        self.with(py, |graph| {
            let changes = ChangeSet::parse(lines, action, Format::JsonLines, typed)?;
            let store = wherefore_cli::own_store(&self.name, graph.as_ref())?;
            let (changed, report) = store.change(&changes)?;
            self.replaced(Arc::new(changed));
            Ok(serde_json::to_string(&report)?)
        })
    }
}

fn question(text: &str, (topics, reading, precision, coverage): &Said) -> Question {
    Question {
        reading: *reading,
        precision: *precision,
        coverage: *coverage,
        ..Question::new(text).about(topics)
    }
}

#[pymethods]
impl Graph {
    /// Opens a graph folder, a built-in graph or a service.
    #[new]
    fn open(py: Python<'_>, name: String, interpreter: PathBuf, trust: bool) -> PyResult<Self> {
        let trust = if trust { Trust::Given } else { Trust::Recorded };
        let graph = py
            .detach(|| wherefore_cli::open(&name, trust))
            .map_err(|error| raised(&error))?;
        let program = interpreted(interpreter);
        Ok(Self {
            name,
            graph: RwLock::new(Some(Arc::from(graph))),
            pipelines: Mutex::default(),
            workers: wherefore_cli::sparql_workers(program, QUERY_MEMORY),
            process: std::process::id(),
        })
    }

    fn close(&self) {
        *self.graph.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Triples, entities and relations.
    fn counts(&self, py: Python<'_>) -> PyResult<Option<(u64, u64, u64)>> {
        self.with(py, |graph| {
            Ok(graph.store().map(|store| {
                let counts = store.counts();
                (counts.triples, counts.entities, counts.relations)
            }))
        })
    }

    /// `follow` is the answer before, as JSON.
    #[pyo3(signature = (text, how, said, follow=None))]
    fn ask(
        &self,
        py: Python<'_>,
        text: &str,
        how: How,
        said: Said,
        follow: Option<String>,
    ) -> PyResult<Answer> {
        self.with(py, |graph| {
            let pipeline = self.pipeline(&how)?;
            let before = follow.as_deref().map(Saved::from_json).transpose()?;
            let question = Question {
                follow: before.and_then(|saved| Follow::of(&saved.answer)),
                ..question(text, &said)
            };
            let answer = pipeline.answer(&question, graph.as_ref(), &mut ())?;
            Ok(Answer { answer, graph })
        })
    }

    #[pyo3(signature = (texts, how, said, progress=None))]
    fn ask_many(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        how: How,
        said: Said,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Answer>> {
        let (graph, pipeline) = self.with(py, |graph| Ok((graph, self.pipeline(&how)?)))?;
        let one = |text: &String| {
            let answer = pipeline.answer(&question(text, &said), graph.as_ref(), &mut ());
            let answer = answer.map_err(|error| {
                anyhow::Error::from(error).context(format!("cannot answer `{text}`"))
            })?;
            Ok(Answer {
                answer,
                graph: Arc::clone(&graph),
            })
        };
        many::each(py, &texts, one, progress)
    }

    /// Scored triples for a question, as JSON.
    fn retrieve(
        &self,
        py: Python<'_>,
        text: &str,
        top_k: Option<usize>,
        how: How,
        said: Said,
    ) -> PyResult<String> {
        self.with(py, |graph| {
            let pipeline = self.pipeline(&how)?;
            let found = pipeline.retrieve(&question(text, &said), graph.as_ref(), top_k)?;
            Ok(serde_json::to_string(&found)?)
        })
    }

    /// What a question is about, as JSON.
    fn link(&self, py: Python<'_>, text: &str, how: How) -> PyResult<String> {
        self.with(py, |graph| {
            let pipeline = self.pipeline(&how)?;
            let asked = Question::new(text);
            asked.check()?;
            let report = LinkingReport::new(pipeline.linker.as_ref(), &asked, graph.as_ref())?;
            Ok(serde_json::to_string(&report)?)
        })
    }

    /// The results of a SPARQL query, written as `format`.
    fn sparql<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        format: &str,
        timeout: Option<f64>,
        limit: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let format = match format {
            "json" => ResultFormat::Json,
            "csv" => ResultFormat::Csv,
            "tsv" => ResultFormat::Tsv,
            "xml" => ResultFormat::Xml,
            "nt" => ResultFormat::NTriples,
            "ttl" => ResultFormat::Turtle,
            _ => {
                return Err(misused(
                    "usage",
                    &format!("there is no format `{format}` of results"),
                    "the formats are json, csv, tsv, xml, nt and ttl",
                ));
            }
        };
        let options = SparqlOptions {
            timeout: timeout
                .filter(|s| *s > 0.0)
                .map(|s| Duration::from_secs_f64(s.min(1e9))),
            max_rows: limit,
            max_bytes: None,
        };
        let interrupted = Mutex::new(None);
        let written = self.with(py, |graph| {
            let mut out = Vec::new();
            match graph.service() {
                Some(service) => service.write_query(text, &options, format, &mut out)?,
                None => {
                    let folder = wherefore_cli::folder_of(&self.name, graph.as_ref())?;
                    // Ctrl-C ends the query
                    let is_wanted = || {
                        let Some(error) = Python::attach(|py| py.check_signals().err()) else {
                            return true;
                        };
                        let mut seen = interrupted.lock().unwrap_or_else(PoisonError::into_inner);
                        *seen = Some(error);
                        false
                    };
                    (self.workers).write(&folder, text, &options, format, &mut out, &is_wanted)?
                }
            };
            Ok(out)
        });
        if let Some(error) = interrupted
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            return Err(error);
        }
        Ok(PyBytes::new(py, &written?))
    }

    /// The neighbourhood of some entities as arrays; the whole graph where none is named.
    fn subgraph<'py>(
        &self,
        py: Python<'py>,
        seeds: Vec<String>,
        hops: usize,
        max_triples: usize,
    ) -> PyResult<Arrays<'py>> {
        if seeds.is_empty() {
            let read = |graph: Shared| Ok((all(graph.as_ref())?, graph.entity_bound()));
            let (triples, bound) = self.with(py, read)?;
            return of_all(py, &triples, bound);
        }
        let near = self.with(py, |graph| near(graph.as_ref(), &seeds, hops, max_triples))?;
        of_near(py, &near)
    }

    /// What entities are called.
    fn entity_names(&self, py: Python<'_>, ids: Vec<u32>) -> PyResult<Vec<String>> {
        self.with(py, |graph| {
            let bound = graph.entity_bound();
            let name = |id: u32| {
                let id = wherefore_cli::checked_entity(id, bound)?;
                Ok(graph.entity_label(id)?.into_owned())
            };
            ids.into_iter().map(name).collect()
        })
    }

    /// What relations are called, all of them.
    fn relation_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |graph| {
            let all = 0..graph.relation_bound() as u32;
            let name = |id| {
                Ok(graph
                    .relation_label(wherefore_graph::RelationId(id))?
                    .into_owned())
            };
            all.map(name).collect()
        })
    }

    /// The triples that fit a pattern of terms, for `rdflib`.
    fn matching(&self, py: Python<'_>, pattern: Pattern) -> PyResult<Matches> {
        self.with(py, |graph| {
            let Some(store) = graph.store() else {
                return Err(wherefore_cli::no_folder(&self.name));
            };
            let triples = matching(store, pattern)?.into_iter();
            Ok(Matches {
                graph: Arc::clone(&graph),
                triples,
            })
        })
    }

    fn add(&self, py: Python<'_>, lines: &str, typed: bool) -> PyResult<String> {
        self.change(py, Action::Add, lines, typed)
    }

    fn remove(&self, py: Python<'_>, lines: &str, typed: bool) -> PyResult<String> {
        self.change(py, Action::Remove, lines, typed)
    }

    /// Whether a saved answer holds, as JSON.
    fn verify(&self, py: Python<'_>, answer: &str) -> PyResult<String> {
        self.with(py, |graph| {
            let saved = Saved::from_json(answer)
                .map_err(|error| wherefore_cli::no_answer(&error.to_string()))?;
            let verification = verify_saved(&saved, graph.as_ref(), None)?;
            Ok(serde_json::to_string(&verification)?)
        })
    }
}

/// The columns of a table's triples, whether it is typed, and what `--wide` takes: name column,
/// separator, class.
type Table = (Option<[String; 3]>, bool, Option<[Option<String>; 3]>);

/// Builds a graph folder from files.
#[pyfunction]
#[pyo3(signature = (files, out, format, table, replace))]
pub(crate) fn load(
    py: Python<'_>,
    files: Vec<PathBuf>,
    out: PathBuf,
    format: Option<&str>,
    table: Table,
    replace: bool,
) -> PyResult<Vec<String>> {
    let (columns, typed, wide) = table;
    let format = match format {
        None => None,
        Some(name) => Some(Format::named(name).ok_or_else(|| {
            let names: Vec<_> = Format::NAMES.iter().map(|(f, _)| f.name()).collect();
            misused(
                "usage",
                &format!("there is no format `{name}`"),
                &format!("the formats are {}", names.join(", ")),
            )
        })?),
    };
    let options = LoadOptions {
        format,
        table: TableOptions {
            columns,
            typed,
            wide: wide.map(|[name_column, split, class]| Wide {
                name_column,
                split,
                class,
            }),
        },
        replace,
        ..LoadOptions::default()
    };
    let inputs: Vec<Input> = files.into_iter().map(Input::File).collect();
    let report = py
        .detach(|| wherefore_graph::load(&inputs, &out, &options, &|_| {}))
        .map_err(|error| raised(&error.into()))?;
    let mistakes = report.mistakes.iter().map(ToString::to_string);
    Ok(mistakes.chain(report.notes).collect())
}
