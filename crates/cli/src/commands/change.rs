//! `wherefore add` and `wherefore remove`: triples that come and go, at once and for good.

use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use wherefore_graph::{
    Action, ChangeReport, ChangeSet, Format, Input, LogCut, Store, TableOptions,
};

use crate::errors::Exit;
use crate::open::own_folder;
use crate::output::{Output, counted, shown};

/// More changes than this share of a graph's triples are worth folding in.
const MANY: u64 = 10;

/// Files of triples, and the graph that they change.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore add new.nt --graph movies
  printf 'Dune\\tdirected_by\\tDenis Villeneuve\\n' | wherefore add - --format tsv --graph movies
  wherefore remove wrong.tsv --graph movies")]
pub(crate) struct Change {
    /// Files of triples, one a line: N-Triples, TSV, CSV, bars or JSON lines, plain or packed; `-`
    /// for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The graph folder to change
    #[arg(long, value_name = "GRAPH")]
    graph: PathBuf,
    /// The format, where names do not tell: nt, nq, tsv, csv, pipe, jsonl
    #[arg(long, value_parser = super::load::parse_format)]
    format: Option<Format>,
    /// Take numbers, dates and quoted texts among a table's tails for literals, as the graph was
    /// loaded with `--typed`
    #[arg(long)]
    typed: bool,
}

/// The report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    graph: &'a str,
    #[serde(flatten)]
    report: ChangeReport,
    triples: u64,
}

pub(crate) fn run(args: &Change, action: Action, output: &Output) -> anyhow::Result<Exit> {
    let options = TableOptions {
        typed: args.typed,
        ..TableOptions::default()
    };
    let mut changes = ChangeSet::default();
    for file in &args.files {
        let input = match file.to_str() {
            Some("-") => Input::Stdin,
            _ => Input::File(file.clone()),
        };
        changes = changes.then(ChangeSet::read(&input, action, args.format, &options)?);
    }
    let graph = args.graph.display().to_string();
    let store = Store::open(own_folder(&args.graph)?)
        .with_context(|| format!("cannot open the graph `{graph}`"))?;
    if let Some(cut) = store.pending().and_then(|pending| pending.cut) {
        tell_cut(cut, output);
    }
    let (changed, report) =
        (store.change(&changes)).with_context(|| format!("cannot change the graph `{graph}`"))?;
    let triples = changed.counts().triples;
    if output.json {
        output.print_json(&Report {
            graph: &graph,
            report,
            triples,
        })?;
        return Ok(Exit::Done);
    }
    let human = |n: u64| indicatif::HumanCount(n).to_string();
    let mut parts = Vec::new();
    for (count, text) in [
        (report.added, "added"),
        (report.removed, "removed"),
        (report.already_there, "there already"),
        (report.not_there, "not there"),
    ] {
        if count > 0 {
            parts.push(format!("{} {text}", human(count)));
        }
    }
    if parts.is_empty() {
        parts.push("nothing to change".into());
    }
    output.print(&format!(
        "{} {}: {}; {} triples\n",
        output.green("✓"),
        output.bold(&shown(&graph)),
        parts.join(", "),
        human(triples)
    ))?;
    if report.pending > 1000 && report.pending > triples / MANY {
        let pending = counted(report.pending as usize, "change", "changes");
        let text = format!("{pending} in the log; `wherefore compact {graph}` folds them in");
        output.note("hint", &text);
    }
    Ok(Exit::Done)
}

/// Tells of the end of a change log that was never acknowledged.
pub(crate) fn tell_cut(cut: LogCut, output: &Output) {
    let text = format!(
        "the change log ends in the middle of a change that was never acknowledged: all before \
         byte {} is kept, the {} bytes from there are not used",
        cut.at, cut.bytes
    );
    output.note("warning", &text);
}
