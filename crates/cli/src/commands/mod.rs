//! One file for each command.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use wherefore::PipelineConfig;
use wherefore::method::{FORMER_NAMES, Method};

use crate::errors::UserError;
use crate::output::Output;

pub(crate) mod adapt;
pub(crate) mod ask;
pub(crate) mod calibrate;
pub(crate) mod change;
pub(crate) mod compact;
pub(crate) mod conformal;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod eval;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod keygen;
pub(crate) mod label;
pub(crate) mod link;
pub(crate) mod load;
pub(crate) mod logic;
pub(crate) mod manual;
pub(crate) mod model;
pub(crate) mod questions;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod score;
pub(crate) mod serve;
pub(crate) mod sparql;
pub(crate) mod train;
pub(crate) mod trust;
pub(crate) mod verify;

/// Reads a text of at most `limit` bytes, `-` from standard input. What is longer is cut there;
/// the caller allows for more than it takes.
fn read_text(path: &Path, limit: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let (read, name) = if path == Path::new("-") {
        let read = io::stdin().lock().take(limit).read_to_end(&mut bytes);
        (read, "standard input".to_owned())
    } else {
        let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
        (read, format!("`{}`", path.display()))
    };
    read.with_context(|| format!("cannot read {name}"))?;
    String::from_utf8(bytes)
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.utf8_error()))
        .with_context(|| format!("cannot read {name}"))
}

/// What a command says of how to answer.
pub(crate) struct Wanted<'a> {
    pub(crate) config: Option<&'a Path>,
    pub(crate) method: Option<&'a str>,
    pub(crate) model: Option<&'a Path>,
    pub(crate) llm: bool,
}

/// The configuration that is asked for; the usual method of the graph where nothing is.
fn config_for(wanted: &Wanted<'_>, output: &Output) -> anyhow::Result<PipelineConfig> {
    if let Some(former) = wanted.method.filter(|name| FORMER_NAMES.contains(name)) {
        output.note(
            "note",
            &format!("the method `{former}` is `read` now, which does what it did"),
        );
    }
    usual_config(wanted)
}

/// The same without a word.
pub(crate) fn usual_config(wanted: &Wanted<'_>) -> anyhow::Result<PipelineConfig> {
    let method = match (wanted.config, wanted.method, wanted.model) {
        (None, None, None) if !wanted.llm => Some(PipelineConfig::USUAL.name()),
        // what a language model reads is what lies around the topics
        (None, None, None) => Some(Method::LlmKg.name()),
        (_, method, _) => method,
    };
    pipeline_config(wanted.config, method, wanted.model)
}

/// The configuration in a file, or that of a method, or that of a checkpoint, or the default one.
fn pipeline_config(
    path: Option<&Path>,
    method: Option<&str>,
    model: Option<&Path>,
) -> anyhow::Result<PipelineConfig> {
    let mut config = match (path, method, model) {
        (Some(path), _, _) => PipelineConfig::from_toml(&read_text(path, 1 << 20)?)
            .with_context(|| format!("cannot use the configuration `{}`", path.display()))?,
        (None, Some(method), _) => PipelineConfig::of(method.parse()?),
        (None, None, Some(model)) => PipelineConfig::of_checkpoint(model)?,
        (None, None, None) => PipelineConfig::default(),
    };
    if let Some(model) = model
        && !config.set_model(model)?
    {
        return Err(UserError {
            code: "usage",
            message: "this method takes no checkpoint".into(),
            hint: "leave `--model` out, or ask with a method that is trained, such as `--method qsrag`".into(),
        }
        .into());
    }
    Ok(config)
}
