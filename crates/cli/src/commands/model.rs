//! `wherefore model`: which encoders there are, how to get more, and how the built-in one is made.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use wherefore_model::Encoder;
use wherefore_model::distill::{DistillOptions, DistillProgress, distill};
use wherefore_model::encode::{self, TransformerEncoder, TransformerOptions};
use wherefore_model::models::{self, KNOWN};

use crate::args::{Model, ModelAdd, ModelCommand, ModelDistill};
use crate::errors::Exit;
use crate::output::Output;
use crate::progress::{Progress, Unit};

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
