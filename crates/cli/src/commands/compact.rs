//! `wherefore compact`: folds changes into the files of a graph, and has its index follow.

use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;
use wherefore::index;
use wherefore_graph::{LoadProgress, LoadStep, Store, compact};

use crate::args::parse_memory;
use crate::errors::Exit;
use crate::open::own_folder;
use crate::output::{Output, counted, shown};
use crate::progress::{Progress, Unit};

/// Fold added and removed triples into the files of a graph
///
/// Whoever reads or changes the graph meanwhile is not disturbed: readers go on with the old
/// files, and changes that come are carried over. Vectors and full text of `wherefore index`
/// follow; only new texts are encoded.
#[derive(Debug, clap::Args)]
pub(crate) struct Compact {
    /// A graph folder
    graph: PathBuf,
    /// Memory to keep to, more or less
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_memory)]
    memory: usize,
    /// Threads to work with; 0 means one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Leave the index as it is
    #[arg(long)]
    no_index: bool,
}

/// The report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    graph: &'a str,
    changes: u64,
    carried: u64,
    triples: u64,
    bytes: u64,
    seconds: f64,
}

pub(crate) fn run(args: &Compact, output: &Output) -> anyhow::Result<Exit> {
    let graph = args.graph.display().to_string();
    let shown_step = Mutex::new(None::<(LoadStep, Progress)>);
    let tell = |progress: LoadProgress| {
        let Ok(mut current) = shown_step.lock() else {
            return;
        };
        if !(current.as_ref()).is_some_and(|(step, _)| *step == progress.step) {
            *current = None; // the old bar goes before the new one comes
            *current = Some((progress.step, Progress::begin("folding in", output)));
        }
        if let Some((_, bar)) = current.as_ref() {
            bar.at(progress.done, progress.total, Unit::Count("triples"));
        }
    };
    let done = compact(own_folder(&args.graph)?, args.memory, args.threads, &tell);
    drop(shown_step);
    let done = done.with_context(|| format!("cannot compact the graph `{graph}`"))?;
    if let Some(cut) = done.as_ref().and_then(|report| report.cut) {
        super::change::tell_cut(cut, output);
    }
    // also where nothing was folded in: a stopped run may have left the index behind
    let store =
        Store::open(&args.graph).with_context(|| format!("cannot open the graph `{graph}`"))?;
    if !args.no_index {
        let left = index::follow(&store);
        for (part, error) in left.with_context(|| format!("cannot index the graph `{graph}`"))? {
            let text = format!("the index of {part} was left behind: {error}");
            output.note("warning", &text);
        }
    }
    let report = Report {
        graph: &graph,
        changes: done.as_ref().map_or(0, |report| report.changes),
        carried: done.as_ref().map_or(0, |report| report.carried),
        triples: store.counts().triples,
        bytes: store.bytes(),
        seconds: (done.as_ref()).map_or(0.0, |report| report.time.as_secs_f64()),
    };
    if output.json {
        output.print_json(&report)?;
        return Ok(Exit::Done);
    }
    let human = |n: u64| indicatif::HumanCount(n).to_string();
    let folded = match report.changes {
        0 => "no changes to fold in".to_owned(),
        n => format!(
            "{} folded in, {:.1} s",
            counted(n as usize, "change", "changes"),
            report.seconds
        ),
    };
    output.print(&format!(
        "{} {}: {folded}; {} triples\n",
        output.green("✓"),
        output.bold(&shown(&graph)),
        human(report.triples),
    ))?;
    Ok(Exit::Done)
}
