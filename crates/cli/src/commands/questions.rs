//! `wherefore questions`: drafts to train on, from a graph alone.

use anyhow::Context;
use std::path::PathBuf;
use wherefore_lab::draft::{DraftOptions, draft};
use wherefore_lab::questions;

use crate::args::Consent;
use crate::errors::Exit;
use crate::open::open;
use crate::output::{Output, counted};

/// Draft training questions for a graph from its own paths and relation names
///
/// For those who have a graph and no questions: what comes out, `wherefore train` reads. Written
/// by hand, or asked by people, questions are better; mix them in as you get them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore questions movies --out drafts.jsonl
  wherefore train qr-gat --graph movies --questions drafts.jsonl --out ckpt")]
pub(crate) struct Questions {
    /// A graph folder, `@world` or `@toy`
    pub(crate) graph: String,
    /// The file to write; standard output if none is given
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// The longest path, in relations
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub(crate) hops: u32,
    /// Leave out questions with more answers
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_answers: u32,
    /// Seed of what is asked about and in which words
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

pub(crate) fn run(args: &Questions, output: &Output) -> anyhow::Result<Exit> {
    let graph = open(&args.graph, args.consent.trust())?;
    let options = DraftOptions {
        count: args.count as usize,
        hops: args.hops as usize,
        max_answers: args.max_answers as usize,
        seed: args.seed,
    };
    let drafts = draft(graph.as_ref(), &options)?;
    if drafts.is_empty() {
        if output.json && args.out.is_some() {
            output.print_json(&serde_json::json!({ "file": null, "questions": 0 }))?;
        }
        output.note("note", "the graph has nothing to ask about");
        return Ok(Exit::No);
    }
    let mut lines = Vec::new();
    questions::write(&drafts, &mut lines).context("cannot write questions")?;
    match &args.out {
        Some(path) => {
            std::fs::write(path, &lines)
                .with_context(|| format!("cannot write the questions `{}`", path.display()))?;
            if output.json {
                output.print_json(&serde_json::json!({
                    "file": path,
                    "questions": drafts.len(),
                }))?;
            }
            let count = counted(drafts.len(), "question", "questions");
            output.note("written", &format!("{}: {count}", path.display()));
        }
        None => output.print(&String::from_utf8_lossy(&lines))?,
    }
    Ok(Exit::Done)
}
