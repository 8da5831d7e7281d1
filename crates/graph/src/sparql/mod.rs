//! SPARQL 1.1 queries over the store, without a copy of its data.
//!
//! Parsing, planning and evaluation are Oxigraph's (`spargebra`, `sparopt`, `spareval`); the
//! triples come from the store's own indexes, and terms stay ids until they are shown. Every
//! triple is in the default graph. Names that are no IRIs are written as IRIs by a scheme of
//! their own: see [`name_iri`].
//!
//! ```
//! use wherefore_graph::{Input, LoadOptions, Store, load, sparql};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (file, graph) = (folder.path().join("films.tsv"), folder.path().join("films"));
//! std::fs::write(&file, "Forrest Gump\tstarred_actors\tTom Hanks\n")?;
//! load(&[Input::File(file)], &graph, &LoadOptions::default(), &|_| {})?;
//! let store = Store::open(&graph)?;
//! let query = "SELECT ?who WHERE { <name:Forrest%20Gump> :starred_actors ?who }";
//! let mut table = Vec::new();
//! let written = sparql::write(
//!     &store,
//!     query,
//!     &sparql::SparqlOptions::default(),
//!     sparql::ResultFormat::Table { width: 40 },
//!     &mut table,
//! )?;
//! assert_eq!(String::from_utf8(table)?, "who\n---------\nTom Hanks\n");
//! assert_eq!(written.rows, 1);
//! # Ok(())
//! # }
//! ```

mod counts;
mod dataset;
pub(crate) mod guard;
mod output;
mod print;
mod scheme;
mod watch;
mod worker;

use std::io::{self, Write};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use spareval::{
    QueryEvaluationError, QueryEvaluator, QueryResults, QuerySolutionIter, QueryTripleIter,
};
use spargebra::SparqlParser;

pub use guard::{MAX_JOINED, MAX_NESTING, MAX_PATTERNS, MAX_PIECES, MAX_TEXT};
pub use output::{ResultFormat, Written};
pub(crate) use output::{write_received, write_received_triples};
pub use oxrdf::{Term as RdfTerm, Triple as RdfTriple, Variable};
pub(crate) use print::print;
pub use scheme::{NAME_SCHEME, iri_name, name_iri, writable_iri};
pub use spareval::QuerySolution;
pub use worker::{Workers, run_worker};

use crate::error::{Error, Result};
use crate::store::Store;
use dataset::GraphDataset;
use watch::Watch;

/// Prefixes that need no declaration. A query's own `PREFIX` wins.
pub const PREFIXES: [(&str, &str); 8] = [
    ("", NAME_SCHEME),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("schema", "http://schema.org/"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
];

/// Enough for what [`MAX_NESTING`] and [`MAX_PIECES`] let through; only touched pages cost.
pub(crate) const STACK: usize = 256 << 20;

/// Limits of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparqlOptions {
    /// Stops with [`Error::OutOfTime`] after this long; no limit by default.
    pub timeout: Option<Duration>,
    /// Maximum rows (or triples); no limit by default.
    pub max_rows: Option<usize>,
    /// Stops with [`Error::AnswerTooLarge`] when [`write()`] would write more bytes than this; no
    /// limit by default.
    pub max_bytes: Option<u64>,
}

/// The answer to a query, by its form. Rows and triples are computed as they are read.
pub enum QueryAnswer<'a> {
    /// Of `SELECT`.
    Rows(Rows<'a>),
    /// Of `ASK`.
    Boolean(bool),
    /// Of `CONSTRUCT` and `DESCRIBE`.
    Triples(Triples<'a>),
}

/// Rows of a `SELECT`. After an error comes nothing more.
pub struct Rows<'a> {
    iter: LimitedIter<QuerySolutionIter<'a>>,
}

/// Triples of a `CONSTRUCT` or `DESCRIBE`. After an error comes nothing more.
pub struct Triples<'a> {
    iter: LimitedIter<QueryTripleIter<'a>>,
}

impl Rows<'_> {
    /// The variables, in the order of the `SELECT`.
    pub fn variables(&self) -> &[Variable] {
        self.iter.inner.variables()
    }

    /// Whether rows were left out because of [`SparqlOptions::max_rows`]. Known at the end.
    pub fn is_cut(&self) -> bool {
        self.iter.cut
    }
}

impl Triples<'_> {
    /// Whether triples were left out because of [`SparqlOptions::max_rows`]. Known at the end.
    pub fn is_cut(&self) -> bool {
        self.iter.cut
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<QuerySolution>;

    fn next(&mut self) -> Option<Self::Item> {
        self.iter.next()
    }
}

impl Iterator for Triples<'_> {
    type Item = Result<RdfTriple>;

    fn next(&mut self) -> Option<Self::Item> {
        self.iter.next()
    }
}

/// Runs a query and hands its answer to `read`.
///
/// The time limit is checked wherever triples are read and terms are copied. An operator that does
/// neither for long, and memory, are limited only by [`Workers`]: use them for untrusted queries.
///
/// Both happen on a thread with a stack that is large enough for every accepted query: parser and
/// evaluator recurse as deep as the query nests.
pub fn query<T: Send>(
    store: &Store,
    text: &str,
    options: &SparqlOptions,
    read: impl FnOnce(QueryAnswer<'_>) -> Result<T> + Send,
) -> Result<T> {
    guard::check(text)?;
    thread::scope(|scope| {
        thread::Builder::new()
            .name("sparql".into())
            .stack_size(STACK)
            .spawn_scoped(scope, || answer(store, text, options).and_then(read))
            .map_err(Error::io("start", "a thread for the query"))?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs a query and writes its answer.
pub fn write(
    store: &Store,
    text: &str,
    options: &SparqlOptions,
    format: ResultFormat,
    out: &mut (dyn Write + Send),
) -> Result<Written> {
    query(store, text, options, |answer| {
        let Some(limit) = options.max_bytes else {
            return answer.write(format, out);
        };
        let mut out = BoundedWriter {
            out,
            left: limit,
            is_full: false,
        };
        let written = answer.write(format, &mut out);
        if out.is_full {
            return Err(Error::AnswerTooLarge { limit });
        }
        written
    })
}

/// A writer with a size limit.
struct BoundedWriter<'a> {
    out: &'a mut (dyn Write + Send),
    left: u64,
    is_full: bool,
}

impl Write for BoundedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            self.is_full = true;
            return Err(io::Error::other("the answer is too large"));
        }
        let count = self.out.write(bytes)?;
        self.left -= count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn answer<'a>(store: &'a Store, text: &str, options: &SparqlOptions) -> Result<QueryAnswer<'a>> {
    let mut query = parse(text)?;
    if query.dataset().is_some() {
        return Err(guard::refused(
            "`FROM` is not supported; a query reads the opened graph".into(),
            Some("remove `FROM`, and open the graph that you want to query"),
        ));
    }
    guard::check_plan(&query)?;
    let watch = Rc::new(Watch::new(options.timeout));
    let dataset = GraphDataset::new(store, Rc::clone(&watch));
    counts::write_known_counts(&mut query, &dataset)?;
    let evaluator = QueryEvaluator::new();
    let results = watch.run(|| evaluator.prepare(&query).execute(dataset));
    // the evaluator may have dropped an error and returned a plausible answer
    let results = match (watch.take(), results) {
        (Some(fault), _) => return Err(fault),
        (None, results) => results.ok_or(Error::Stopped)?.map_err(evaluation_error)?,
    };
    let left = options.max_rows;
    Ok(match results {
        QueryResults::Solutions(inner) => QueryAnswer::Rows(Rows {
            iter: LimitedIter::new(inner, left, watch),
        }),
        QueryResults::Boolean(value) => QueryAnswer::Boolean(value),
        QueryResults::Graph(inner) => QueryAnswer::Triples(Triples {
            iter: LimitedIter::new(inner, left, watch),
        }),
    })
}

fn parse(text: &str) -> Result<spargebra::Query> {
    let mut parser = SparqlParser::new();
    for (prefix, iri) in PREFIXES {
        parser = parser
            .with_prefix(prefix, iri)
            .expect("the prefixes of this file are IRIs");
    }
    parser.parse_query(text).map_err(|error| {
        if guard::is_update(text) {
            guard::refused(
                "updates are not supported in queries".into(),
                Some("change the graph with `wherefore add FILE --graph GRAPH` or `wherefore remove`"),
            )
        } else {
            Error::SparqlSyntax(syntax_message(&error.to_string()))
        }
    })
}

/// The parser's message, with its list of expected tokens shortened.
pub(crate) fn syntax_message(message: &str) -> String {
    const SHOWN: usize = 6;
    let message = message.trim();
    let Some((before, expected)) = message.split_once("expected one of ") else {
        return message.to_owned();
    };
    let (shown, more) = match expected.match_indices(", ").nth(SHOWN - 1) {
        Some((end, _)) => (&expected[..end], " …"),
        None => (expected, ""),
    };
    format!("{before}expected one of {shown}{more}")
}

fn evaluation_error(error: QueryEvaluationError) -> Error {
    Error::SparqlEvaluation(error.to_string())
}

/// An evaluator's iterator with the limits of [`SparqlOptions`].
struct LimitedIter<I> {
    inner: I,
    left: Option<usize>,
    watch: Rc<Watch>,
    cut: bool,
    over: bool,
}

impl<I> LimitedIter<I> {
    fn new(inner: I, left: Option<usize>, watch: Rc<Watch>) -> Self {
        Self {
            inner,
            left,
            watch,
            cut: false,
            over: false,
        }
    }
}

impl<T, I: Iterator<Item = Result<T, QueryEvaluationError>>> Iterator for LimitedIter<I> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if self.over {
            return None;
        }
        let next = self.watch.run(|| self.inner.next()).flatten();
        // rows that need no triple do not meet the dataset's clock
        let _ = self.watch.tick();
        let next = match (self.watch.take(), next) {
            (Some(fault), _) => Some(Err(fault)),
            (None, Some(Err(error))) => Some(Err(evaluation_error(error))),
            (None, Some(Ok(item))) if self.left != Some(0) => Some(Ok(item)),
            (None, Some(Ok(_))) => {
                self.cut = true;
                None
            }
            (None, None) => None,
        };
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}
