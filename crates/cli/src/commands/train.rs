//! `wherefore train`: a retriever learns from questions and answers.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Map, json};
use wherefore::model::tensor::device;
use wherefore_lab::questions::{self, GoldQuestion};
use wherefore_lab::sweep;
use wherefore_lab::train::{self, Judged, Labels, Task, TrainConfig};

use crate::args::Train;
use crate::errors::Exit;
use crate::open::open_for;
use crate::output::Output;
use crate::progress::{Progress, Unit};

pub(crate) fn run(args: &Train, output: &Output) -> anyhow::Result<Exit> {
    let config = config(args)?;
    config.check()?;
    let device = device(&args.device).map_err(wherefore::Error::from)?;
    let mut train = read(&args.questions, args)?;
    let valid = match args.valid.is_empty() {
        false => read(&args.valid, args)?,
        true => {
            let count = (train.len() / 10).max(1);
            let valid = sweep::sample(&train, count, config.seed);
            // questions keep their order, and so do those that were drawn
            let mut drawn = valid.iter().peekable();
            train.retain(|q| drawn.next_if(|d| *d == q).is_none());
            output.note(
                "valid",
                &format!(
                    "{} questions were set aside; `--valid FILE` names others",
                    valid.len()
                ),
            );
            valid
        }
    };
    let all = train.iter().chain(&valid);
    let graph = open_for(args.graph.as_deref(), all, &args.questions[0])?;
    let labels = match &args.labels {
        Some(path) => Labels::read(path)
            .with_context(|| format!("cannot read the labels `{}`", path.display()))?,
        None => config.supervision.labels(config.neighbourhood.hops),
    };
    let names = |paths: &[PathBuf]| -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
        paths.iter().filter_map(name).collect()
    };
    let mut data = Map::new();
    data.insert("graph".into(), json!(graph.identity()));
    data.insert("questions".into(), json!(names(&args.questions)));
    data.insert("valid".into(), json!(names(&args.valid)));
    data.insert("train_questions".into(), json!(train.len()));
    data.insert("valid_questions".into(), json!(valid.len()));
    let task = Task {
        graph: graph.as_ref(),
        train: &train,
        valid: &valid,
        labels,
        data,
        out: &args.out,
        init: args.init.as_deref(),
        restart: args.restart,
    };
    let mut shown = Shown { bar: None, output };
    let trained = train::qr_gat(&task, &config, &device, &mut |progress| {
        shown.see(&progress);
    });
    drop(shown);
    let trained =
        trained.with_context(|| format!("cannot train the checkpoint `{}`", args.out.display()))?;
    if output.json {
        output.print_json(&trained)?;
    } else {
        let left_out = match trained.left_out {
            0 => String::new(),
            n => format!(" ({n} more have no path from a topic to an answer)"),
        };
        output.print(&format!(
            "{}\nlearned from {} questions{left_out} in {} passes; on {} validation questions: {}\n",
            trained.checkpoint.display(),
            trained.questions,
            trained.epochs.len(),
            trained.valid,
            judged(&trained.best),
        ))?;
        if let Some(graph) = args.graph.as_ref().filter(|g| !g.starts_with('@')) {
            let model = args.out.display();
            output.note(
                "next",
                &format!(
                    "wherefore index {graph} --model {model}; \
                     wherefore ask {graph} 'QUESTION' --model {model}"
                ),
            );
        }
    }
    Ok(Exit::Done)
}

fn config(args: &Train) -> anyhow::Result<TrainConfig> {
    let mut config = match &args.config {
        None => TrainConfig::default(),
        Some(path) => {
            let text = super::read_text(path, 1 << 20)?;
            TrainConfig::from_toml(&text)
                .with_context(|| format!("cannot use the settings `{}`", path.display()))?
        }
    };
    if let Some(encoder) = &args.encoder {
        config.encoder.clone_from(encoder);
    }
    if let Some(seed) = args.seed {
        config.seed = seed;
    }
    for (setting, value) in &args.set {
        config.set(setting, value)?;
    }
    Ok(config)
}

fn read(paths: &[PathBuf], args: &Train) -> anyhow::Result<Vec<GoldQuestion>> {
    let mut all = Vec::new();
    for path in paths {
        let read = questions::read(path, args.format)
            .with_context(|| format!("cannot read the questions `{}`", path.display()))?;
        all.extend(read);
    }
    Ok(all)
}

/// What is going on, for people.
struct Shown<'a> {
    bar: Option<(&'static str, Progress)>,
    output: &'a Output,
}

impl Shown<'_> {
    fn see(&mut self, progress: &train::Progress) {
        match progress {
            train::Progress::Cutting { done, total } => {
                self.bar("cutting out neighbourhoods").at(
                    *done as u64,
                    Some(*total as u64),
                    Unit::Count("questions"),
                );
            }
            train::Progress::Encoding { done, total } => {
                self.bar("encoding labels").at(
                    *done as u64,
                    Some(*total as u64),
                    Unit::Count("labels"),
                );
            }
            train::Progress::Resumed { steps } => {
                self.bar = None;
                self.output
                    .note("resumed", &format!("after {steps} steps of a stopped run"));
            }
            train::Progress::Step {
                epoch,
                done,
                total,
                loss,
            } => {
                let bar = self.bar("learning");
                bar.note(&format!("pass {epoch}, loss {loss:.4}"));
                bar.at(*done as u64, Some(*total as u64), Unit::Count("steps"));
            }
            train::Progress::Epoch(epoch) => {
                self.bar = None;
                let best = if epoch.best { " (best)" } else { "" };
                self.output.note(
                    &format!("pass {}", epoch.epoch),
                    &format!("loss {:.4}, {}{best}", epoch.loss, judged(&epoch.valid)),
                );
            }
        }
    }

    fn bar(&mut self, label: &'static str) -> &Progress {
        if self.bar.as_ref().is_none_or(|(shown, _)| *shown != label) {
            self.bar = None; // the old bar goes before the new one comes
        }
        let output = self.output;
        let begin = || (label, Progress::begin(label, output));
        &self.bar.get_or_insert_with(begin).1
    }
}

fn judged(valid: &Judged) -> String {
    let recalls = |of: &std::collections::BTreeMap<usize, f64>| -> String {
        let each: Vec<String> = of.iter().map(|(k, r)| format!("{r:.3}@{k}")).collect();
        each.join(" ")
    };
    let mut text = format!(
        "triple recall {}, answer recall {}",
        recalls(&valid.triple_recall),
        recalls(&valid.answer_recall)
    );
    if let Some(hit) = valid.hit_at_1 {
        text += &format!(", Hit@1 {hit:.3}");
    }
    text
}

/// For clap: `KEY=VALUE`.
pub(crate) fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write it like `sizes.hidden=128`")?;
    Ok((key.to_owned(), value.to_owned()))
}
