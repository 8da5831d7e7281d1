//! `wherefore sparql`: a SPARQL 1.1 query over a graph folder, or the query that answers a question.

use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use wherefore::logic::standard_query;
use wherefore::{Answer, PipelineConfig, Question};
use wherefore_graph::sparql::{ResultFormat, SparqlOptions, run_worker};
use wherefore_graph::{Service, Store};

use super::read_text;
use crate::args::{Consent, parse_memory, seconds};
use crate::errors::Exit;
use crate::library::{program, sparql_workers};
use crate::open::{open, service, store, told};
use crate::output::{Output, Shielded};

/// Run a SPARQL 1.1 query over a graph, or write the one that answers a question
///
/// Names that are not IRIs are written `<name:Forrest%20Gump>`, or `:starred_actors` for short.
/// `ASK` that finds nothing ends with exit status 1, and so does a question that is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore sparql movies 'SELECT ?film WHERE { ?film :directed_by <name:Robert%20Zemeckis> }'
  wherefore sparql movies --file query.rq --results csv > films.csv
  wherefore sparql movies --question 'who directed The Matrix?'
  wherefore sparql movies --question 'who directed The Matrix?' --run")]
pub(crate) struct Sparql {
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    pub(crate) graph: PathBuf,
    /// The query, or `-` to read it from standard input
    #[arg(required_unless_present_any = ["file", "question"])]
    pub(crate) query: Option<String>,
    /// Read the query from a file
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    pub(crate) file: Option<PathBuf>,
    /// Print the query that answers this question
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["query", "file"])]
    pub(crate) question: Option<String>,
    /// With `--question`: run the query instead of printing it
    #[arg(long, requires = "question", conflicts_with_all = ["query", "file"])]
    pub(crate) run: bool,
    /// How results are written; a table unless `--json` is given
    #[arg(long, value_name = "FORMAT")]
    pub(crate) results: Option<Results>,
    /// Stop after so many seconds; 0 means never
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Stop when the query needs more memory than this; the graph itself does not count
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_memory)]
    pub(crate) memory: usize,
    /// Maximum rows of the result
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Run the SPARQL queries that another process sends, within limits that hold for this one
#[derive(Debug, clap::Args)]
pub(crate) struct SparqlWorker {
    /// Bytes that a query may allocate
    pub(crate) memory: u64,
}

/// The longest query text that is read.
const MAX_QUERY_BYTES: u64 = (1 << 20) + 1;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Results {
    Table,
    Json,
    Csv,
    /// CSV whose cells no spreadsheet takes for formulas
    Spreadsheet,
    Tsv,
    Xml,
    Nt,
    Ttl,
}

/// Where the query runs.
enum Queried {
    Store(Store),
    Service(Box<Service>),
}

pub(crate) fn run(args: &Sparql, output: &Output) -> anyhow::Result<Exit> {
    let text = match (&args.query, &args.file) {
        _ if args.question.is_some() => {
            let translated = translated(args)?;
            match translated.query {
                Some(query) if args.run => query,
                _ => return translated.tell(args, output),
            }
        }
        (Some(query), _) if query != "-" => query.clone(),
        (_, Some(file)) => read_text(file, MAX_QUERY_BYTES)?,
        _ => read_text("-".as_ref(), MAX_QUERY_BYTES)?,
    };
    let name = args.graph.display().to_string();
    let graph = match service(&name, args.consent.trust())? {
        Some(config) => Queried::Service(Box::new(
            Service::open(config)
                .with_context(|| format!("cannot open the service `{}`", told(&name)))?,
        )),
        None => Queried::Store(store(&args.graph)?),
    };
    let options = SparqlOptions {
        timeout: (args.timeout > 0.0).then(|| Duration::from_secs_f64(args.timeout.min(1e9))),
        max_rows: args.limit,
        max_bytes: None,
    };
    let results = args.results.unwrap_or(if output.json {
        Results::Json
    } else {
        Results::Table
    });
    let format = match results {
        Results::Table => ResultFormat::Table {
            width: if io::stdout().is_terminal() { 48 } else { 200 },
        },
        Results::Json => ResultFormat::Json,
        Results::Csv => ResultFormat::Csv,
        Results::Spreadsheet => ResultFormat::Spreadsheet,
        Results::Tsv => ResultFormat::Tsv,
        Results::Xml => ResultFormat::Xml,
        Results::Nt => ResultFormat::NTriples,
        Results::Ttl => ResultFormat::Turtle,
    };
    let out = BufWriter::new(io::stdout());
    let mut out = match results {
        Results::Json => Shielded::json(out),
        _ if io::stdout().is_terminal() => Shielded::terminal(out),
        _ => Shielded::none(out),
    };
    let written = match &graph {
        Queried::Store(store) => {
            let program = program().context("cannot tell where this program lies")?;
            let workers = sparql_workers(program, args.memory as u64);
            workers.write(store.path(), &text, &options, format, &mut out, &|| true)?
        }
        Queried::Service(service) => service.write_query(&text, &options, format, &mut out)?,
    };
    if matches!(results, Results::Json | Results::Xml) {
        out.write_all(b"\n")
            .context("cannot write to standard output")?;
    }
    out.flush().context("cannot write to standard output")?;
    if written.is_cut {
        output.note(
            "note",
            &format!("only the first {} rows are shown", written.rows),
        );
    }
    Ok(match written.boolean {
        Some(false) => Exit::No,
        _ => Exit::Done,
    })
}

/// A question as a query.
#[derive(Serialize)]
struct Translated<'a> {
    question: &'a str,
    query: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f32>,
    /// Why there is no query.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<wherefore::answer::Refusal>,
}

/// The query that answers the question over the graph, by the usual method.
fn translated(args: &Sparql) -> anyhow::Result<Translated<'_>> {
    let text = args.question.as_deref().unwrap_or_default();
    let question = Question::new(text);
    question.check()?;
    let graph = open(&args.graph.to_string_lossy(), args.consent.trust())?;
    let pipeline = PipelineConfig::default().build()?;
    let answer: Answer = pipeline.answer(&question, graph.as_ref(), &mut ())?;
    Ok(Translated {
        question: text,
        query: standard_query(&answer),
        confidence: answer.answers.first().map(|first| first.confidence),
        reading: answer.reading,
        reason: answer.reason,
        refusal: answer.refusal,
    })
}

impl Translated<'_> {
    fn tell(&self, args: &Sparql, output: &Output) -> anyhow::Result<Exit> {
        if output.json {
            output.print_json(self)?;
        } else if let Some(query) = &self.query {
            let out = io::stdout();
            let mut out = match out.is_terminal() {
                true => Shielded::terminal(out),
                false => Shielded::none(out),
            };
            writeln!(out, "{query}").context("cannot write to standard output")?;
            out.flush().context("cannot write to standard output")?;
        } else {
            let reason = self.reason.as_deref().unwrap_or("nothing was found");
            output.note("no query", reason);
            let graph = args.graph.display();
            output.note(
                "hint",
                &format!("`wherefore ask {graph} QUESTION` tells more"),
            );
        }
        Ok(match self.query {
            Some(_) => Exit::Done,
            None => Exit::No,
        })
    }
}

pub(crate) fn worker(args: &SparqlWorker) -> anyhow::Result<Exit> {
    let mut input = BufReader::new(io::stdin());
    run_worker(args.memory, &mut input, io::stdout())?;
    Ok(Exit::Done)
}
