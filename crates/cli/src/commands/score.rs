//! `wherefore score`: another system's predictions, with our metrics.

use anyhow::Context;
use std::path::PathBuf;
use wherefore_lab::metrics::Options;
use wherefore_lab::questions;
use wherefore_lab::score::{PredictionFormat, read_predictions, score};

use crate::args::question_format;
use crate::errors::Exit;
use crate::output::Output;

/// Score another system's predictions with the same metrics
#[derive(Debug, clap::Args)]
pub(crate) struct Score {
    /// JSON lines with `id` and `answers`, or RoG's or SubgraphRAG's output
    pub(crate) predictions: PathBuf,
    /// The questions that were asked
    #[arg(long, value_name = "FILE")]
    pub(crate) questions: PathBuf,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = question_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// The predictions' format, where it is not told by their content: answers, rog, subgraphrag
    #[arg(long, value_parser = parse_format)]
    pub(crate) prediction_format: Option<wherefore_lab::score::PredictionFormat>,
    /// Seed of the bootstrap intervals
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The k at which retrieval is measured
    #[arg(long = "k", value_name = "K,…", value_delimiter = ',', default_values_t = [50, 100, 200, 500])]
    pub(crate) ks: Vec<usize>,
}

pub(crate) fn run(args: &Score, output: &Output) -> anyhow::Result<Exit> {
    let options = Options {
        ks: args.ks.clone(),
        seed: args.seed,
        ..Options::default()
    };
    let context = || format!("cannot score `{}`", args.predictions.display());
    let gold = questions::read(&args.questions, args.format).with_context(context)?;
    let predicted =
        read_predictions(&args.predictions, args.prediction_format).with_context(context)?;
    let paths = (args.predictions.as_path(), args.questions.as_path());
    let scores = score(&gold, predicted, &options, paths).with_context(context)?;
    let metrics = scores.metrics();
    if output.json {
        output.print_json(&metrics)?;
    } else {
        output.print(&metrics.to_string())?;
    }
    Ok(Exit::Done)
}

/// For clap: a prediction format by its name.
pub(crate) fn parse_format(name: &str) -> Result<PredictionFormat, String> {
    name.parse()
        .map_err(|e: wherefore_lab::Error| e.to_string())
}
