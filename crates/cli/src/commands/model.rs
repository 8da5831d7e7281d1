//! `wherefore model`: which encoders there are, how to get more, and how the built-in one is made.

use clap::Subcommand;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use wherefore_model::Encoder;
use wherefore_model::distill::{DistillOptions, DistillProgress, distill};
use wherefore_model::encode::{self, TransformerEncoder, TransformerOptions};
use wherefore_model::models::{self, KNOWN};

use crate::errors::Exit;
use crate::output::Output;
use crate::progress::{Progress, Unit};

/// List encoders, add one, or distil a table
#[derive(Debug, clap::Args)]
pub(crate) struct Model {
    #[command(subcommand)]
    pub(crate) command: ModelCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the encoders that are built in, were added, or can be added by a short name
    List,
    Add(ModelAdd),
    Distill(ModelDistill),
}

/// Add an encoder from a folder or from the model hub
///
/// Models go to `$WHEREFORE_MODELS`, or else to `wherefore-models` in the user's cache folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore model add minilm
  wherefore model add intfloat/e5-small-v2
  wherefore model add downloads/my-encoder")]
pub(crate) struct ModelAdd {
    /// A model folder, a short name of `wherefore model list`, or `owner/name` on the hub
    pub(crate) source: String,
    /// Put the new one into the place of one of the same name
    #[arg(long)]
    pub(crate) replace: bool,
}

/// Press a transformer encoder into a static table
///
/// The built-in encoder was made so; `experiments/distill.md` has the texts and the figures.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore model distill minilm --texts texts.txt --out mine.table
  wherefore index movies --encoder mine.table")]
pub(crate) struct ModelDistill {
    /// The encoder to learn from, with an uncased WordPiece vocabulary: a folder or an added model
    pub(crate) teacher: String,
    /// Short texts of the kind it will meet, one a line; without them only token vectors are taken
    #[arg(long, value_name = "FILE")]
    pub(crate) texts: Option<PathBuf>,
    /// The table to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The table's name
    #[arg(long, default_value = "static")]
    pub(crate) name: String,
    /// Numbers for each token
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) dim: usize,
    /// Passes over the texts
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) epochs: usize,
    /// Step of the passes
    #[arg(long, value_name = "X", default_value_t = 0.003, value_parser = positive)]
    pub(crate) learning_rate: f32,
    /// How flat the frequency weight is; larger is flatter
    #[arg(long, value_name = "X", default_value_t = 0.001, value_parser = positive)]
    pub(crate) weight: f32,
}

/// For clap: a number above 0.
fn positive(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|_| "write it like `0.01`")?;
    if number.is_finite() && number > 0.0 {
        Ok(number)
    } else {
        Err("it must be a number above 0".into())
    }
}

pub(crate) fn run(args: &Model, output: &Output) -> anyhow::Result<Exit> {
    match &args.command {
        ModelCommand::List => list(output),
        ModelCommand::Add(args) => add(args, output),
        ModelCommand::Distill(args) => distil(args, output),
    }
}

#[derive(Serialize)]
struct Listed {
    name: String,
    state: &'static str,
    about: String,
}

fn list(output: &Output) -> anyhow::Result<Exit> {
    let folder = models::models_folder();
    let mut all = vec![
        Listed {
            name: "static".into(),
            state: "built in",
            about: "WordPiece table, 256 numbers, distilled from all-MiniLM-L6-v2".into(),
        },
        Listed {
            name: "hashing".into(),
            state: "built in",
            about: "spelling alone, for tests".into(),
        },
    ];
    let added = models::added(&folder)?;
    for model in &added {
        all.push(Listed {
            name: model.name.clone(),
            state: "added",
            about: format!(
                "{:.0} MB in `{}`",
                model.bytes as f64 / 1e6,
                model.path.display()
            ),
        });
    }
    for known in KNOWN {
        if added.iter().all(|model| model.name != known.name) {
            all.push(Listed {
                name: known.name.into(),
                state: "can be added",
                about: format!("{} ({})", known.summary, known.repository),
            });
        }
    }
    if output.json {
        output.print_json(&all)?;
    } else {
        let mut text = String::new();
        for model in &all {
            let Listed { name, state, about } = model;
            text += &format!("{name:<16}  {state:<12}  {}\n", output.dim(about));
        }
        output.print(&text)?;
        output.note(
            "hint",
            "`wherefore model add NAME` fetches one; any model folder can be added by its path",
        );
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
    path: &'a Path,
    dim: usize,
}

fn add(args: &ModelAdd, output: &Output) -> anyhow::Result<Exit> {
    let folder = models::models_folder();
    let path = models::add(&args.source, &folder, args.replace, &mut |file| {
        output.note("fetching", file);
    })?;
    // a model that does not open is better known now than at the first question
    let encoder = encode::open(&path.to_string_lossy())
        .with_context(|| format!("the model lies in `{}` and does not open", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if output.json {
        output.print_json(&Added {
            name: &name,
            path: &path,
            dim: encoder.dim(),
        })?;
    } else {
        output.note(
            "added",
            &format!("{name}, {} numbers a text", encoder.dim()),
        );
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Distilled<'a> {
    path: &'a Path,
    bytes: usize,
    dim: usize,
    /// Share of the teacher's spread that the components keep.
    spread: f64,
    /// Mean 1 − cosine to the teacher after the last pass.
    loss: Option<f32>,
}

fn distil(args: &ModelDistill, output: &Output) -> anyhow::Result<Exit> {
    let folder = models::locate(&args.teacher)?;
    let teacher = TransformerEncoder::load(&folder, &TransformerOptions::default())?;
    let text = match &args.texts {
        Some(path) => fs::read_to_string(path)
            .with_context(|| format!("cannot read the texts `{}`", path.display()))?,
        None => String::new(),
    };
    let texts: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let mut options = DistillOptions {
        name: args.name.clone(),
        dim: args.dim,
        weight: args.weight,
        ..DistillOptions::default()
    };
    options.training.epochs = args.epochs;
    options.training.learning_rate = args.learning_rate;
    let bar = Progress::begin("distilling", output);
    let (mut spread, mut last) = (0.0, None);
    let table = distill(&teacher, &texts, &options, &mut |progress| match progress {
        DistillProgress::Tokens { done, total } => {
            bar.at(done as u64, Some(total as u64), Unit::Count("tokens"));
        }
        DistillProgress::Texts { done, total } => {
            bar.at(done as u64, Some(total as u64), Unit::Count("texts"));
        }
        DistillProgress::Components { kept } => spread = kept,
        DistillProgress::Epoch { epoch, loss } => {
            last = Some(loss);
            bar.note(&format!("1 − cosine {loss:.4}"));
            let epochs = options.training.epochs as u64;
            bar.at(epoch as u64, Some(epochs), Unit::Count("passes"));
        }
    })?;
    drop(bar);
    let bytes = table
        .to_bytes()
        .context("a table that was just distilled has no bytes")?;
    let aside = args.out.with_extension("part");
    fs::write(&aside, &bytes)
        .and_then(|()| fs::rename(&aside, &args.out))
        .with_context(|| format!("cannot write `{}`", args.out.display()))?;
    if output.json {
        output.print_json(&Distilled {
            path: &args.out,
            bytes: bytes.len(),
            dim: args.dim,
            spread,
            loss: last,
        })?;
    } else {
        let size = bytes.len() as f64 / 1e6;
        output.note(
            "written",
            &format!("`{}`, {size:.1} MB", args.out.display()),
        );
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_no_numbers_above_0_are_refused() {
        for bad in ["nan", "inf", "-inf", "-1", "1e999", "", "soon", "0"] {
            assert!(positive(bad).is_err(), "{bad}");
        }
        assert_eq!(positive("0.5"), Ok(0.5));
    }
}
