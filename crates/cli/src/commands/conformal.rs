//! `wherefore conformal`: sees how questions over a graph fare, so that a coverage can be promised.

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::json;
use wherefore::conformal;
use wherefore::link::{Names, NamesConfig};
use wherefore::retrieve::{Read, ReadConfig};
use wherefore_lab::conformal::{CoverageCheck, Readings, kept, readings};
use wherefore_lab::draft::{DraftOptions, draft};
use wherefore_lab::questions::{self, Format, GoldQuestion};

use crate::args::{Consent, question_format};
use crate::errors::Exit;
use crate::open::open;
use crate::output::{Output, counted};
use crate::progress::{Progress, Unit};

/// Coverages that are told.
const TOLD: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.99];

/// See how questions over a graph fare, so that `ask --coverage` can promise something
///
/// Reads questions with known answers and keeps in the graph's folder how likely the right reading
/// was held to be. Without questions it drafts some from the graph; these are easier than those of
/// people, and the promise holds for questions like them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore conformal movies --questions asked.jsonl
  wherefore ask movies 'Who directed Alien?' --coverage 0.9
  wherefore conformal movies --questions asked.jsonl --check later.jsonl")]
pub(crate) struct Conformal {
    /// A graph folder
    graph: String,
    /// Questions with their answers, in any format of `wherefore eval`; repeatable
    #[arg(long, value_name = "FILE")]
    questions: Vec<PathBuf>,
    /// Other questions, to tell how promises are kept over them; repeatable
    #[arg(long, value_name = "FILE")]
    check: Vec<PathBuf>,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = question_format)]
    format: Option<Format>,
    /// Read at most so many questions of each file, or draft so many
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// The reader's weights: what `wherefore adapt` wrote
    #[arg(long, value_name = "CKPT")]
    model: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) fn run(args: &Conformal, output: &Output) -> anyhow::Result<Exit> {
    let graph = open(&args.graph, args.consent.trust())?;
    let graph = graph.as_ref();
    let Some(folder) = graph.folder() else {
        return Err(wherefore::Error::NoGraphFolder.into());
    };
    let read = |files: &[PathBuf]| -> anyhow::Result<Vec<GoldQuestion>> {
        let mut all = Vec::new();
        for path in files {
            let mut some = questions::read(path, args.format)
                .with_context(|| format!("cannot read the questions `{}`", path.display()))?;
            some.retain(|question| !question.answers.is_empty());
            some.truncate(args.count as usize);
            all.extend(some);
        }
        Ok(all)
    };
    let mut own = read(&args.questions)?;
    let check = read(&args.check)?;
    let drafted = args.questions.is_empty();
    if drafted {
        own = draft(
            graph,
            &DraftOptions {
                count: args.count as usize,
                ..DraftOptions::default()
            },
        )?;
    }
    if own.is_empty() {
        bail!("there are no questions with answers");
    }
    let reader = Read::new(ReadConfig {
        weights: args.model.clone(),
        ..ReadConfig::default()
    })?;
    let linker = Names::new(NamesConfig::default())?;
    let look = |questions: &[GoldQuestion]| -> anyhow::Result<Vec<Readings>> {
        let bar = Progress::begin("reading", output);
        let total = Some(questions.len() as u64);
        let mut done = 0;
        Ok(readings(questions, graph, &linker, &reader, |more| {
            done += more as u64;
            bar.at(done, total, Unit::Count("questions"));
        })?)
    };
    let seen = look(&own)?;
    let known = conformal::Conformal::new(seen.iter().map(Readings::score), drafted);
    known.save(folder)?;
    let over = match check.is_empty() {
        true => seen,
        false => look(&check)?,
    };
    let told: Vec<CoverageCheck> = (TOLD.iter())
        .filter_map(|&coverage| kept(&known, coverage, &over).ok())
        .collect();
    if output.json {
        output.print_json(&json!({
            "questions": known.questions(),
            "drafted": drafted,
            "most": known.most(),
            "checked": check.len(),
            "kept": told,
        }))?;
        return Ok(Exit::Done);
    }
    let of = match check.is_empty() {
        true => "the same questions".to_owned(),
        false => counted(check.len(), "other question", "other questions"),
    };
    let mut text = format!(
        "{} {}{}: a coverage of up to {:.2} can be promised\n\n",
        output.green("✓"),
        counted(known.questions(), "question", "questions"),
        if drafted { ", drafted" } else { "" },
        (f64::from(known.most()) * 100.0).floor() / 100.0
    );
    text += &format!("promised  over {of}  readings\n");
    for one in &told {
        let width = of.len() + 5;
        text += &format!(
            "{:<8}  {:<width$}  {:.2}\n",
            one.coverage,
            format!("{:.3}", one.covered),
            one.readings
        );
    }
    output.print(&text)?;
    Ok(Exit::Done)
}
