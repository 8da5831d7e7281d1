//! `wherefore questions`: drafts to train on, from a graph alone.

use anyhow::Context;
use wherefore_lab::draft::{DraftOptions, draft};
use wherefore_lab::questions;

use crate::args::Questions;
use crate::errors::Exit;
use crate::open::open;
use crate::output::{Output, counted};

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
