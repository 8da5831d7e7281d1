//! `wherefore score`: another system's predictions, with our metrics.

use anyhow::Context;
use wherefore_lab::metrics::Options;
use wherefore_lab::questions;
use wherefore_lab::score::{PredictionFormat, read_predictions, score};

use crate::args::Score;
use crate::errors::Exit;
use crate::output::Output;

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
