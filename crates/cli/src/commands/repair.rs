//! `wherefore repair`: what of a graph folder is damaged, and a new change log with what is whole.

use std::path::PathBuf;

use anyhow::Context;
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use wherefore_graph::{LogReport, RepairReport, Store, repair};

use crate::errors::Exit;
use crate::open::own_folder;
use crate::output::{Output, counted, shown};

/// Tell what of a graph folder is damaged, and save what is whole of its change log
///
/// Without `--write` nothing is changed. Exit status 1 means that something is damaged.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore repair movies
  wherefore repair movies --write")]
pub(crate) struct Repair {
    /// A graph folder
    graph: PathBuf,
    /// Put a log with the whole changes into the place of a damaged one, and keep that beside it
    #[arg(long)]
    write: bool,
}

/// The report as JSON.
#[derive(Serialize)]
struct Told<'a> {
    graph: &'a str,
    whole: bool,
    written: bool,
    #[serde(flatten)]
    report: &'a RepairReport,
}

pub(crate) fn run(args: &Repair, output: &Output) -> anyhow::Result<Exit> {
    let graph = args.graph.display().to_string();
    let report = repair(own_folder(&args.graph)?, args.write)
        .with_context(|| format!("cannot repair the graph `{graph}`"))?;
    let written = report.log.as_ref().is_some_and(|_| args.write);
    if output.json {
        output.print_json(&Told {
            graph: &graph,
            whole: report.is_whole(),
            written,
            report: &report,
        })?;
    } else {
        output.print(&told(&graph, &report, written, output))?;
    }
    if !report.files.is_empty() || (report.log.is_some() && !written) {
        return Ok(Exit::No);
    }
    if written {
        // what was written must be read
        Store::open(&args.graph).with_context(|| format!("cannot open the graph `{graph}`"))?;
    }
    Ok(Exit::Done)
}

fn told(graph: &str, report: &RepairReport, written: bool, output: &Output) -> String {
    let name = output.bold(&shown(graph));
    if report.is_whole() {
        return format!("{} {name}: nothing is damaged\n", output.green("✓"));
    }
    let mut text = format!("{name}\n");
    for file in &report.files {
        text += &format!("  {:<20} {}\n", file.name, shown(&file.reason));
    }
    if !report.files.is_empty() {
        text += &format!(
            "  these files are written anew by `wherefore load FILE --replace --out {}`\n",
            shown(graph)
        );
    }
    if let Some(log) = &report.log {
        text += &of_log(log, graph, written);
    }
    text
}

fn of_log(log: &LogReport, graph: &str, written: bool) -> String {
    let mut text = format!("  {:<20} {}\n", "change log", shown(&log.reason));
    for lost in &log.lost {
        text += &format!(
            "  {:<20} bytes {} to {} ({})\n",
            "lost",
            HumanCount(lost.at),
            HumanCount(lost.at + lost.bytes),
            HumanBytes(lost.bytes)
        );
    }
    let changes = |n: u64| counted(n as usize, "change", "changes");
    let lost = match log.lost_changes {
        Some(0) => ", and no acknowledged one is lost".to_owned(),
        Some(lost) => format!(", {} that were acknowledged are lost", changes(lost)),
        None => String::new(),
    };
    text += &format!(
        "  {:<20} {} whole{lost}\n",
        "can be saved",
        changes(log.whole)
    );
    text += &match (&log.kept_as, written) {
        (Some(kept), _) => format!("  {:<20} the damaged log is kept as `{kept}`\n", "written"),
        (None, true) => format!("  {:<20} there was no log to keep\n", "written"),
        (None, false) => format!(
            "  `wherefore repair {} --write` writes a log with them\n",
            shown(graph)
        ),
    };
    text
}
