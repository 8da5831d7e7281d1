//! `wherefore calibrate`: fits how sure answers are to how often they were right.

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::json;
use wherefore_lab::atomic_write;
use wherefore_lab::calibrate::{Samples, fit, judge};
use wherefore_lab::harness::Run;
use wherefore_lab::metrics::Confidence;

use crate::errors::Exit;
use crate::output::{Output, counted, shown};

/// Make confidences mean what they say, by questions with known answers
///
/// Takes runs of `wherefore eval` and fits the confidence to how often answers were exactly right.
/// Where the runs are of several graphs, it tells first how well that carries over: each graph by
/// what the others teach. Put the file into a checkpoint as `confidence.toml` to use it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore eval --graph movies --questions asked.jsonl --model ckpt --out runs/asked
  wherefore calibrate runs/asked --out ckpt/confidence.toml")]
pub(crate) struct Calibrate {
    /// Run folders; `NAME=RUN` says which graph a run is of, where its own folder does not
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(args: &Calibrate, output: &Output) -> anyhow::Result<Exit> {
    let mut runs = Vec::new();
    for given in &args.runs {
        let (group, folder) = match given.split_once('=') {
            Some((group, folder)) => (Some(group), PathBuf::from(folder)),
            None => (None, PathBuf::from(given)),
        };
        let run = Run::open(&folder)
            .with_context(|| format!("cannot read the run `{}`", folder.display()))?;
        let group = group.map_or_else(
            || run.description.graph.clone().unwrap_or_default(),
            str::to_owned,
        );
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        runs.push(Samples::of(&name.to_string_lossy(), &group, &run));
    }
    let all = runs.iter().flat_map(|run| &run.answered);
    let answered = all.clone().count();
    if answered == 0 {
        bail!("none of the questions was answered");
    }
    let calibration = fit(all).context("cannot calibrate")?;
    let several = runs.iter().any(|run| run.group != runs[0].group);
    let judged = match several {
        true => judge(&runs).context("cannot judge")?,
        false => Vec::new(),
    };
    atomic_write::write(&args.out, calibration.to_toml())
        .with_context(|| format!("cannot write `{}`", args.out.display()))?;
    if output.json {
        output.print_json(&json!({
            "out": args.out,
            "answered": answered,
            "calibration": calibration,
            "left_out": judged,
        }))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    if several {
        text += "each graph by what the others teach    ECE            AUROC          coverage at 95%\n";
        for one in &judged {
            let pair = |of: fn(&Confidence) -> Option<f64>| {
                let told = |c: &Option<Confidence>| {
                    let value = c.as_ref().and_then(of);
                    value.map_or("–".to_owned(), |v| format!("{v:.3}"))
                };
                format!("{} → {}", told(&one.before), told(&one.after))
            };
            let count = one.after.as_ref().map_or(0, |c| c.answered);
            text += &format!(
                "{:<30}{count:>7}  {:<15}{:<15}{}\n",
                shown(&one.run),
                pair(|c| Some(c.ece)),
                pair(|c| c.auroc),
                pair(|c| Some(c.coverage_at_95)),
            );
        }
        text.push('\n');
    }
    text += &format!(
        "{} {}: fitted to {}\n",
        output.green("✓"),
        output.bold(&shown(&args.out.display().to_string())),
        counted(answered, "answer", "answers"),
    );
    output.print(&text)?;
    Ok(Exit::Done)
}
