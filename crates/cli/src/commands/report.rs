//! `wherefore report`: runs as a page to look at.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use wherefore_lab::atomic_write;
use wherefore_lab::harness::Run;
use wherefore_lab::report::html;

use crate::errors::Exit;
use crate::output::Output;

/// Write one HTML page for one or several runs side by side
#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// Run folders made by `wherefore eval`; the others are compared with the first
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// The page to write; `report.html` in the first run folder if none is given
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

pub(crate) fn run(args: &Report, output: &Output) -> anyhow::Result<Exit> {
    let file = args
        .out
        .clone()
        .unwrap_or_else(|| args.runs[0].join("report.html"));
    let runs: Vec<&Path> = args.runs.iter().map(PathBuf::as_path).collect();
    write_page(&file, &runs)?;
    #[derive(Serialize)]
    struct Written<'a> {
        report: &'a Path,
    }
    if output.json {
        output.print_json(&Written { report: &file })?;
    } else {
        output.print(&format!("{}\n", file.display()))?;
    }
    Ok(Exit::Done)
}

/// Writes the page of some runs, aside and then renamed.
pub(super) fn write_page(file: &Path, folders: &[&Path]) -> anyhow::Result<()> {
    let mut runs = Vec::new();
    for folder in folders {
        let run = Run::open(folder)
            .with_context(|| format!("cannot read the run `{}`", folder.display()))?;
        // `.` and `..` have no name of their own
        let full = folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_path_buf());
        let name = full
            .file_name()
            .unwrap_or(folder.as_os_str())
            .to_string_lossy()
            .into_owned();
        runs.push((name, run));
    }
    let page = html(&runs)?;
    atomic_write::write(file, page).with_context(|| format!("cannot write `{}`", file.display()))
}
