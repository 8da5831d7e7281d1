//! `wherefore load`: files into a graph folder.

use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;
use wherefore_graph::{
    Counts, Format, Input, LoadOptions, LoadProgress, LoadReport, LoadStep, TableOptions, Wide,
    load,
};

use crate::args::parse_memory;
use crate::errors::{Exit, UserError};
use crate::output::{Output, counted, shown};
use crate::progress::{Progress, Unit};

/// Build a graph folder from files
///
/// Reads N-Triples, N-Quads, Turtle, TriG, RDF/XML, JSON-LD, TSV, CSV, `head|relation|tail` lines,
/// JSON lines and JSON arrays, plain or packed with gzip, zstd or xz, and SQLite databases and Excel
/// workbooks. The folder appears when all is done; a graph that is replaced stays whole until then.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore load movies.nt.gz --out movies
  wherefore load kb.txt --format pipe --out metaqa
  wherefore load train.txt valid.txt --names entity_names.tsv --out fb15k
  wherefore load staff.csv --wide --split ';' --out company
  wherefore load shop.sqlite --out shop
  zcat dump.nq.gz | wherefore load - --format nq --memory 8G --out dump")]
pub(crate) struct Load {
    /// Files to load together, or `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The graph folder to make
    #[arg(long, value_name = "GRAPH")]
    pub(crate) out: PathBuf,
    /// Put the new graph into the place of the one that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// The format, where names do not tell: nt, nq, ttl, trig, rdf, jsonld, tsv, csv, pipe, jsonl,
    /// json, sqlite, xlsx
    #[arg(long, value_parser = parse_format)]
    pub(crate) format: Option<wherefore_graph::Format>,
    /// Columns of a table that hold head, relation and tail, by number or header name
    #[arg(long, value_name = "H,R,T")]
    pub(crate) columns: Option<String>,
    /// Make numbers, dates and quoted texts among a table's tails literals instead of names
    #[arg(long)]
    pub(crate) typed: bool,
    /// A table, or JSON, in which each row is one thing and its columns are relations; numbers and
    /// dates become literals. Tables that can hold no triples are read so by themselves
    #[arg(long, conflicts_with_all = ["columns", "typed"])]
    pub(crate) wide: bool,
    /// With `--wide`: the column that names the thing, by number or header name; if none is given
    /// the first, or one that is called a name where the first only numbers the rows
    #[arg(long, value_name = "COLUMN", requires = "wide")]
    pub(crate) name_column: Option<String>,
    /// With `--wide`: what stands between several values in one cell
    #[arg(long, value_name = "SEPARATOR", requires = "wide")]
    pub(crate) split: Option<String>,
    /// With `--wide`: the class of the rows; if none is given what the column with the names says
    /// (`boat` of `boat_name`), or what the file is called, unless a column `type` says it;
    /// `--class ''` for none
    #[arg(long, value_name = "CLASS", requires = "wide")]
    pub(crate) class: Option<String>,
    /// A predicate that gives labels, before rdfs:label, skos:prefLabel, schema:name and foaf:name;
    /// repeatable
    #[arg(long = "label", value_name = "PREDICATE")]
    pub(crate) labels: Vec<String>,
    /// A predicate that gives further names, beside skos:altLabel and schema:alternateName;
    /// repeatable
    #[arg(long = "alias", value_name = "PREDICATE")]
    pub(crate) aliases: Vec<String>,
    /// A table of entities and their names, between tabs; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) names: Vec<PathBuf>,
    /// The language in which labels are preferred
    #[arg(long, value_name = "TAG", default_value = "en")]
    pub(crate) language: String,
    /// What relative IRIs in Turtle, TriG, RDF/XML and JSON-LD are relative to, until a file says it
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Memory to keep to, more or less; beyond it, sorting goes through the disk
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_memory)]
    pub(crate) memory: usize,
    /// Threads to work with; 0 means one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Stop at the first malformed line
    #[arg(long, conflicts_with = "max_errors")]
    pub(crate) strict: bool,
    /// Stop when more lines than this are malformed
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) max_errors: u64,
}

pub(crate) fn run(args: &Load, output: &Output) -> anyhow::Result<Exit> {
    let inputs: Vec<Input> = args
        .files
        .iter()
        .map(|file| match file.to_str() {
            Some("-") => Input::Stdin,
            _ => Input::File(file.clone()),
        })
        .collect();
    let options = LoadOptions {
        format: args.format,
        table: TableOptions {
            columns: args.columns.as_deref().map(columns).transpose()?,
            typed: args.typed,
            wide: args.wide.then(|| Wide {
                name_column: args.name_column.clone(),
                split: args.split.clone(),
                class: args.class.clone(),
            }),
        },
        labels: args.labels.clone(),
        aliases: args.aliases.clone(),
        names: args.names.clone(),
        language: args.language.clone(),
        memory: args.memory,
        threads: args.threads,
        max_errors: if args.strict { 0 } else { args.max_errors },
        replace: args.replace,
        base: args.base.clone(),
        max_text: u64::MAX,
    };
    let shown_step = Mutex::new(None::<(LoadStep, Progress)>);
    let tell = |progress: LoadProgress| {
        let Ok(mut current) = shown_step.lock() else {
            return;
        };
        if !current
            .as_ref()
            .is_some_and(|(step, _)| *step == progress.step)
        {
            *current = None; // the old bar goes before the new one comes
            *current = Some((progress.step, Progress::begin(label(progress.step), output)));
        }
        if let Some((_, bar)) = current.as_ref() {
            let unit = match progress.step {
                LoadStep::Reading => Unit::Bytes,
                _ => Unit::Count("triples"),
            };
            bar.at(progress.done, progress.total, unit);
        }
    };
    let out = args.out.display();
    let done = load(&inputs, &args.out, &options, &tell);
    drop(shown_step);
    if let Err(wherefore_graph::Error::TooManyErrors { first, .. }) = &done {
        show_mistakes(first.iter().map(String::as_str), output);
    }
    let report = done.with_context(|| format!("cannot build the graph `{out}`"))?;
    show_mistakes(report.mistakes.iter().map(ToString::to_string), output);
    if report.counts.malformed > report.mistakes.len() as u64 {
        let rest = report.counts.malformed - report.mistakes.len() as u64;
        output.note("warning", &format!("{rest} more malformed lines"));
    }
    for note in &report.notes {
        output.note("warning", note);
    }
    if output.json {
        output.print_json(&Report::new(args.out.clone(), &report))?;
    } else if !output.quiet {
        output.print(&written(args, &report, output))?;
    }
    Ok(Exit::Done)
}

fn label(step: LoadStep) -> &'static str {
    match step {
        LoadStep::Reading => "reading",
        LoadStep::Merging => "merging names",
        LoadStep::Sorting => "sorting triples",
        LoadStep::Naming => "indexing names",
    }
}

fn show_mistakes(mistakes: impl Iterator<Item = impl AsRef<str>>, output: &Output) {
    for mistake in mistakes {
        output.note("malformed", mistake.as_ref());
    }
}

/// `HEAD,RELATION,TAIL`.
fn columns(text: &str) -> Result<[String; 3], UserError> {
    let parts: Vec<String> = text.split(',').map(|c| c.trim().to_owned()).collect();
    <[String; 3]>::try_from(parts).map_err(|parts| UserError {
        code: "usage",
        message: format!(
            "`--columns` needs three columns, and `{text}` has {}",
            parts.len()
        ),
        hint: "write numbers or header names, for example `--columns 1,2,3`".into(),
    })
}

/// The report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    graph: PathBuf,
    #[serde(flatten)]
    counts: &'a Counts,
    bytes: u64,
    spilled_chunks: usize,
    seconds: f64,
    malformed_lines: Vec<String>,
    notes: &'a [String],
}

impl<'a> Report<'a> {
    fn new(graph: PathBuf, report: &'a LoadReport) -> Self {
        Self {
            graph,
            counts: &report.counts,
            bytes: report.bytes,
            spilled_chunks: report.spilled,
            seconds: report.time.as_secs_f64(),
            malformed_lines: report.mistakes.iter().map(ToString::to_string).collect(),
            notes: &report.notes,
        }
    }
}

fn written(args: &Load, report: &LoadReport, output: &Output) -> String {
    let counts = &report.counts;
    let human = |n: u64| indicatif::HumanCount(n).to_string();
    let graph = args.out.display().to_string();
    let mut text = format!(
        "{} {}: {} triples, {} entities, {} relations\n",
        output.green("✓"),
        output.bold(&shown(&graph)),
        human(counts.triples),
        human(counts.entities),
        human(counts.relations),
    );
    let mut dropped = Vec::new();
    if counts.duplicates > 0 {
        dropped.push(format!("{} duplicates dropped", human(counts.duplicates)));
    }
    if counts.malformed > 0 {
        dropped.push(
            counted(
                counts.malformed as usize,
                "malformed line",
                "malformed lines",
            ) + " passed over",
        );
    }
    if counts.unnamed > 0 {
        dropped.push(format!("{} entities without a name", human(counts.unnamed)));
    }
    dropped.push(format!(
        "{} on disk, {:.1} s, {} lines a second",
        indicatif::HumanBytes(report.bytes),
        report.time.as_secs_f64(),
        human(((counts.triples + counts.duplicates) as f64 / report.time.as_secs_f64()) as u64)
    ));
    text += &(output.dim(&dropped.join("; ")) + "\n");
    text + &output.dim(&format!(
        "next: wherefore info {graph}, or wherefore ask {graph} 'your question'"
    )) + "\n"
}

/// For clap: a format by its name.
pub(crate) fn parse_format(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| {
        let names: Vec<_> = Format::NAMES.iter().map(|(f, _)| f.name()).collect();
        format!("the formats are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_three() {
        assert_eq!(columns("1, 2,tail").unwrap(), ["1", "2", "tail"]);
        assert!(columns("1,2").is_err());
    }
}
