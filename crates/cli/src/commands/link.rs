//! `wherefore link`: which entities a question is about, and why.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use wherefore::config::LinkerConfig;
use wherefore::link::{LinkingReport, MatchKind, Names, NamesConfig};
use wherefore::{PipelineConfig, Question};
use wherefore_lab::linking::{Linking, Miss, linking};
use wherefore_lab::questions;

use super::pipeline_config;
use crate::args::{Consent, question_format};
use crate::errors::{Exit, UserError};
use crate::open::open;
use crate::output::{Output, counted, shown};
use crate::progress::{Progress, Unit};

/// Show which entities a question is about, or measure it over benchmark questions
///
/// Each mention is shown with its candidates, their scores and how the name was recognised. With
/// `--questions`, the gold topics are hidden and recall is measured. Exit status 1 means that
/// nothing in the question is a name of the graph; the nearest names are then shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore link @toy 'who is the mascot of the giants?'
  wherefore link movies --questions qa_test.txt
  wherefore link movies 'who directed it?' --aliases aliases.tsv")]
pub(crate) struct Link {
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    pub(crate) graph: String,
    /// The question
    #[arg(conflicts_with = "questions")]
    pub(crate) question: Option<String>,
    /// An entity that the question is about, instead of looking for names in it; repeatable
    #[arg(long = "topic", value_name = "NAME")]
    pub(crate) topics: Vec<String>,
    /// A file of words and the entities that they mean, between tabs; `-` for none
    #[arg(long, value_name = "FILE")]
    pub(crate) aliases: Option<PathBuf>,
    /// The encoder that weighs namesakes by what is asked
    #[arg(long, value_name = "NAME")]
    pub(crate) encoder: Option<String>,
    /// The method and its settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Benchmark questions to measure over
    #[arg(long, value_name = "FILE")]
    pub(crate) questions: Option<PathBuf>,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = question_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// Take only the first questions
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// The k at which recall is measured
    #[arg(long = "k", value_name = "K,…", value_delimiter = ',', default_values_t = [1, 5])]
    pub(crate) ks: Vec<usize>,
    /// Show this many topics that were not found
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) misses: usize,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

pub(crate) fn run(args: &Link, output: &Output) -> anyhow::Result<Exit> {
    let config = config(args)?;
    let linker = Names::new(config)?;
    match (&args.question, &args.questions) {
        (Some(text), _) => one(args, text, &linker, output),
        (None, Some(file)) => many(args, file, &linker, output),
        (None, None) => Err(UserError {
            code: "usage",
            message: "there is no question to link".into(),
            hint: "write it in quotes, or name a file of questions with `--questions FILE`".into(),
        }
        .into()),
    }
}

fn config(args: &Link) -> anyhow::Result<NamesConfig> {
    let PipelineConfig { link, .. } = pipeline_config(args.config.as_deref(), None, None)?;
    let LinkerConfig::Names(mut config) = link;
    if let Some(file) = &args.aliases {
        config.aliases = Some(file.clone());
    }
    if let Some(encoder) = &args.encoder {
        config.encoder.clone_from(encoder);
    }
    Ok(config)
}

fn one(args: &Link, text: &str, linker: &Names, output: &Output) -> anyhow::Result<Exit> {
    let question = Question::new(text).about(&args.topics);
    question.check()?;
    let graph = open(&args.graph, args.consent.trust())?;
    let shown = LinkingReport::new(linker, &question, graph.as_ref())?;
    if output.json {
        output.print_json(&shown)?;
    } else {
        output.print(&written(&shown, output))?;
    }
    Ok(if shown.mentions.is_empty() {
        Exit::No
    } else {
        Exit::Done
    })
}

fn written(report: &LinkingReport, output: &Output) -> String {
    if report.mentions.is_empty() {
        let mut text = String::from("No name in the question is in the graph.\n");
        if !report.nearest.is_empty() {
            let names: Vec<_> = report.nearest.iter().map(|n| shown(n)).collect();
            text += &format!("The nearest are {}.\n", names.join(", "));
        }
        return text;
    }
    let mut text = String::new();
    for mention in &report.mentions {
        text += &format!("{}\n", output.bold(&shown(&mention.mention)));
        let names: Vec<_> = mention.candidates.iter().map(|c| shown(&c.name)).collect();
        let widest = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
        for (candidate, name) in mention.candidates.iter().zip(&names) {
            let gap = " ".repeat(widest.saturating_sub(name.chars().count()));
            let about = format!(
                "{:.3}  {:<10}  {}",
                candidate.score,
                word(candidate.how),
                counted(candidate.triples, "triple", "triples")
            );
            text += &format!("  {name}{gap}  {}\n", output.dim(&about));
        }
    }
    text
}

fn word(how: MatchKind) -> &'static str {
    match how {
        MatchKind::Given => "given",
        MatchKind::Alias => "alias",
        MatchKind::Exact => "exact",
        MatchKind::Normalised => "normalised",
        MatchKind::Inflected => "inflected",
        MatchKind::Misspelt => "misspelt",
        MatchKind::Partial => "partial",
    }
}

#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    linking: Linking,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    misses: Vec<Miss>,
}

fn many(args: &Link, file: &Path, linker: &Names, output: &Output) -> anyhow::Result<Exit> {
    let mut asked = questions::read(file, args.format)
        .with_context(|| format!("cannot read the questions `{}`", file.display()))?;
    asked.truncate(args.limit.unwrap_or(usize::MAX));
    let graph = open(&args.graph, args.consent.trust())?;
    let bar = Progress::begin("linking", output);
    let total = asked.len() as u64;
    let mut missed = Vec::new();
    let measured = linking(
        linker,
        graph.as_ref(),
        &asked,
        &args.ks,
        &|done| bar.at(done as u64, Some(total), Unit::Count("questions")),
        (args.misses > 0).then_some(&mut missed),
    )?;
    drop(bar);
    missed.truncate(args.misses);
    if output.json {
        output.print_json(&Measured {
            linking: measured,
            misses: missed,
        })?;
        return Ok(Exit::Done);
    }
    let mut text = format!(
        "{}, {}, {:.1}% of them in the graph\n",
        counted(measured.questions, "question", "questions"),
        counted(measured.topics, "topic", "topics"),
        100.0 * measured.in_graph
    );
    text += "            by mention  one list\n";
    for at in &measured.recall {
        text += &format!("recall@{:<4} {:>10.4}  {:>8.4}\n", at.k, at.recall, at.list);
    }
    text += &format!(
        "{:.2} mentions a question, {:.1}% of the questions without any, {:.0} questions a second\n",
        measured.mentions,
        100.0 * measured.unlinked,
        measured.questions_per_second
    );
    for miss in &missed {
        let found: Vec<_> = (miss.found.iter())
            .map(|(mention, name)| format!("{} = {}", shown(mention), shown(name)))
            .collect();
        text += &format!(
            "missed {} in `{}`: {}\n",
            shown(&miss.topic),
            shown(&miss.question),
            found.join("; ")
        );
    }
    output.print(&text)?;
    Ok(Exit::Done)
}
