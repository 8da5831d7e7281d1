//! `wherefore logic`: a logical form, read, told, translated and run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use wherefore::Question;
use wherefore::answer::{Evidence, Table};
use wherefore::link::{Names, NamesConfig};
use wherefore::logic::aspects::{AspectRetriever, RelationRetriever};
use wherefore::logic::{
    Form, Moment, Notation, Number, Outcome, Plan, Quantity, RunLimits, Runner,
};
use wherefore::model::encode;
use wherefore::retrieve::{Amar, AmarConfig};
use wherefore_graph::{EntityId, Graph, Triple};
use wherefore_lab::aspects::aspects;
use wherefore_lab::forms::{Forms, Ran, forms};
use wherefore_lab::questions;
use wherefore_lab::written;

use super::read_text;
use crate::args::{Consent, seconds};
use crate::errors::{Exit, UserError};
use crate::open::{open, store};
use crate::output::{Output, counted, shown};
use crate::progress::{Progress, Unit};

/// Read, explain and run a logical form
///
/// The form's normal form, its English, its SPARQL, and the entities that it stands for with the
/// triples that made them match. Exit status 1 means that nothing matches.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore logic @toy '(JOIN (R won) [San Francisco Giants])'
  wherefore logic @toy '(COUNT (JOIN (R won) (JOIN (R mascot_of) [Lou Seal])))' --json
  wherefore logic freebase --questions webqsp_test.jsonl
  wherefore logic freebase --aspects 'who coaches the giants' --model relations")]
pub(crate) struct Logic {
    /// A graph folder made by `wherefore load`, or `@toy`, the built-in sample
    pub(crate) graph: String,
    /// The form, or `-` to read it from standard input
    pub(crate) form: Option<String>,
    /// Run the gold forms of a file of questions instead, and count what becomes of them
    #[arg(long, value_name = "FILE", conflicts_with = "form")]
    pub(crate) questions: Option<PathBuf>,
    /// The format of the questions, where it is not told by their content
    #[arg(long, value_name = "FORMAT", requires = "questions")]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// Retrieve what a form of this question would be written from: entities, relations, documents
    #[arg(long, value_name = "QUESTION", conflicts_with_all = ["form", "questions"])]
    pub(crate) aspects: Option<String>,
    /// With `--questions`: how well the aspects are retrieved
    #[arg(long, requires = "questions")]
    pub(crate) recall: bool,
    /// The checkpoint of `wherefore train relations` that ranks relations; the built-in matcher
    /// does without one. With `--questions` a checkpoint of `wherefore train amar`: forms are
    /// written by it, and counted
    #[arg(long, value_name = "CKPT")]
    pub(crate) model: Option<PathBuf>,
    /// With a checkpoint of `amar`: its language model, where it lies elsewhere than in training
    #[arg(long, value_name = "FILE", requires = "model")]
    pub(crate) llm: Option<PathBuf>,
    /// With a checkpoint of `amar`: where to compute: `cpu`, `cuda` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,
    /// With a checkpoint of `amar`: tell it the gold topics instead of linking the question
    #[arg(long, requires = "model")]
    pub(crate) gold_entities: bool,
    /// With a checkpoint of `amar`: forms kept at each step
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) beams: u32,
    /// With a checkpoint of `amar`: questions that are written for at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) batch: u32,
    /// What `NOW` means, as a date; today unless given
    #[arg(long, value_name = "DATE")]
    pub(crate) now: Option<String>,
    /// Stop a form after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Largest set that a form may lead to
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) max_rows: usize,
    /// Show at most so many answers, or run so many questions
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

pub(crate) fn run(args: &Logic, output: &Output) -> anyhow::Result<Exit> {
    let now = match &args.now {
        None => Moment::now(),
        Some(text) => Moment::parse(text).ok_or_else(|| UserError {
            code: "usage",
            message: format!("`{text}` is no date"),
            hint: "write it as `2015-08-10`".into(),
        })?,
    };
    let limits = RunLimits {
        time: Duration::from_secs_f64(args.timeout.clamp(0.001, 1e6)),
        rows: args.max_rows,
        ..RunLimits::default()
    };
    if let Some(question) = &args.aspects {
        return aspects_of(args, question, output);
    }
    match (&args.form, &args.questions) {
        (_, Some(file)) if args.recall => recall(args, file, output),
        (_, Some(file)) => match &args.model {
            Some(model) => written_by(args, model, file, output),
            None => many(args, file, now, &limits, output),
        },
        (Some(form), None) => one(args, form, now, &limits, output),
        (None, None) => Err(UserError {
            code: "usage",
            message: "there is no form to run".into(),
            hint: "write it in quotes, or name a file of questions with `--questions FILE`".into(),
        }
        .into()),
    }
}

/// A form and what it comes to.
#[derive(Serialize)]
struct Told {
    form: String,
    normal: String,
    bracketed: String,
    english: String,
    /// None where it is too long.
    sparql: Option<String>,
    /// What the graph does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// Of a `COUNT`, as of any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<serde_json::Value>,
    /// A number, or a time as text; null where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<serde_json::Value>,
    /// Yes or no.
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<Table>,
    /// What proves a number, yes or no.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<Evidence>,
    /// What matches, was counted or added up, or stands in the rows.
    answers: Vec<Found>,
    /// Answers beyond `--limit`.
    left_out: usize,
}

#[derive(Serialize)]
struct Found {
    name: String,
    id: String,
    evidence: Vec<Evidence>,
}

fn one(
    args: &Logic,
    text: &str,
    now: Moment,
    limits: &RunLimits,
    output: &Output,
) -> anyhow::Result<Exit> {
    let text = match text {
        "-" => read_text("-".as_ref(), wherefore::logic::MAX_FORM_BYTES as u64 + 1)?,
        text => text.to_owned(),
    };
    let form: Form = text.parse()?;
    let graph = open(&args.graph, args.consent.trust())?;
    let graph = graph.as_ref();
    let plan = Plan::new(&form, graph, now)?;
    let mut told = Told {
        form: form.to_string(),
        normal: form.normal().to_string(),
        bracketed: form.written(Notation::Bracketed),
        english: form.english(graph)?,
        sparql: plan.query().ok(),
        missing: plan.missing().to_vec(),
        count: None,
        number: None,
        truth: None,
        table: None,
        evidence: Vec::new(),
        answers: Vec::new(),
        left_out: 0,
    };
    let mut nothing = true;
    if told.missing.is_empty() {
        let mut runner = Runner::new(&plan, graph, limits)?;
        let outcome = runner.run()?;
        match &outcome {
            Outcome::Entities(_) => {}
            Outcome::Number(number, _) => {
                let number = match number {
                    Some(value) => json_of(value),
                    None => serde_json::Value::Null,
                };
                if matches!(form, Form::Number(Number::Count(_))) {
                    told.count = Some(number.clone());
                }
                told.number = Some(number);
            }
            Outcome::Truth(yes, _) => told.truth = Some(*yes),
            Outcome::Table(rows) => told.table = Some(rows.told(graph, args.limit)?),
        }
        // a count of 0 is something, and `no` is an answer that says no
        nothing = match &outcome {
            Outcome::Number(number, _) => number.is_none(),
            Outcome::Truth(yes, _) => !yes,
            other => other.is_empty(),
        };
        if matches!(outcome, Outcome::Number(..) | Outcome::Truth(..)) {
            told.evidence = evidence(runner.grounds()?, graph)?;
        }
        let shown = args.limit.min(outcome.entities().len());
        told.left_out = outcome.entities().len() - shown;
        for &entity in &outcome.entities()[..shown] {
            told.answers.push(found(entity, &mut runner, graph)?);
        }
    }
    if output.json {
        output.print_json(&told)?;
    } else {
        output.print(&written(&told, output))?;
    }
    Ok(if nothing { Exit::No } else { Exit::Done })
}

/// As many digits as are shown.
fn json_of(value: &Quantity) -> serde_json::Value {
    let text = value.to_string();
    match (value.number(), text.parse::<i64>(), text.parse::<f64>()) {
        (Some(_), Ok(whole), _) => whole.into(),
        (Some(_), _, Ok(number)) if number.is_finite() => number.into(),
        _ => text.into(),
    }
}

fn found(entity: EntityId, runner: &mut Runner<'_>, graph: &dyn Graph) -> anyhow::Result<Found> {
    Ok(Found {
        name: graph.entity_label(entity)?.into_owned(),
        id: graph.entity_term(entity)?.to_string(),
        evidence: evidence(runner.evidence(entity)?, graph)?,
    })
}

fn evidence(triples: Vec<Triple>, graph: &dyn Graph) -> anyhow::Result<Vec<Evidence>> {
    let selection = wherefore::select::Selection {
        triples: triples.into_iter().map(|triple| (triple, 1.0)).collect(),
        ..Default::default()
    };
    Ok(wherefore::verify::evidence(&selection, graph)?)
}

/// The facts below an answer.
fn facts(evidence: &[Evidence], output: &Output) -> String {
    let mut text = String::new();
    for e in evidence {
        let fact = format!(
            "{} — {} → {}",
            shown(&e.head),
            shown(&e.relation),
            shown(&e.tail)
        );
        text += &format!("  {}\n", output.dim(&fact));
    }
    text
}

/// A table with its columns below each other.
fn rows(table: &Table, output: &Output) -> String {
    let line = |cells: Vec<String>| -> Vec<String> {
        cells.iter().map(|cell| shown(cell).into_owned()).collect()
    };
    let mut lines = vec![line(table.columns.clone())];
    for row in &table.rows {
        lines.push(line(row.iter().map(|cell| cell.join(", ")).collect()));
    }
    let columns = table.columns.len();
    let widths: Vec<usize> = (0..columns)
        .map(|i| {
            let cells = lines.iter().filter_map(|line| line.get(i));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for (i, cells) in lines.iter().enumerate() {
        let padded: Vec<String> = (cells.iter().zip(&widths))
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let line = padded.join("  ");
        let line = line.trim_end();
        text += &match i {
            0 => format!("{}\n", output.bold(line)),
            _ => format!("{line}\n"),
        };
    }
    text
}

fn written(told: &Told, output: &Output) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        text += &format!("{} {value}\n", output.dim(&format!("{name:<8}")));
    };
    line("form", &shown(&told.form));
    if told.normal != told.form {
        line("normal", &shown(&told.normal));
    }
    line("english", &shown(&told.english));
    match &told.sparql {
        Some(sparql) => {
            let sparql: Vec<_> = sparql.lines().map(shown).collect();
            line("sparql", &sparql.join("\n         "));
        }
        None => line("sparql", "none: this form is too long as SPARQL"),
    }
    text.push('\n');
    if !told.missing.is_empty() {
        text += &format!("The graph has no {}.\n", shown(&told.missing.join(", no ")));
        return text;
    }
    if let Some(table) = &told.table {
        text += &rows(table, output);
        if table.rows.is_empty() {
            text += "No rows.\n";
        }
        if table.left_out > 0 {
            text += &format!("{} left out\n", counted(table.left_out, "row", "rows"));
        }
        return text;
    }
    let value = match (&told.number, told.truth) {
        (_, Some(true)) => Some("yes".to_owned()),
        (_, Some(false)) => Some("no".to_owned()),
        (Some(serde_json::Value::String(text)), _) => Some(text.clone()),
        (Some(serde_json::Value::Null) | None, _) => None,
        (Some(number), _) => Some(number.to_string()),
    };
    if let Some(value) = &value {
        text += &format!("{}\n", output.bold(&shown(value)));
    }
    if told.truth.is_some() || value.is_some() && told.count.is_none() {
        return text + &facts(&told.evidence, output);
    }
    if told.number.is_some() && value.is_none() {
        text += "There is no such number: nothing that matches has a value, or not one alone.\n";
        return text + &facts(&told.evidence, output);
    }
    if told.answers.is_empty() && told.left_out == 0 && told.count.is_none() {
        text += "Nothing in the graph matches.\n";
    }
    for answer in &told.answers {
        text += &format!("{}\n", output.bold(&shown(&answer.name)));
        text += &facts(&answer.evidence, output);
    }
    if told.left_out > 0 && told.answers.is_empty() {
        let left = counted(told.left_out, "answer", "answers");
        text += &format!("{left}, left out by `--limit 0`\n");
    } else if told.left_out > 0 {
        text += &format!("and {} more\n", told.left_out);
    }
    text
}

fn many(
    args: &Logic,
    file: &Path,
    now: Moment,
    limits: &RunLimits,
    output: &Output,
) -> anyhow::Result<Exit> {
    let mut asked = questions::read(file, args.format)
        .with_context(|| format!("cannot read the questions `{}`", file.display()))?;
    asked.truncate(args.limit.max(1));
    let store = store(args.graph.as_ref())?;
    let told = forms(&store, &asked, now, limits)?;
    if output.json {
        output.print_json(&told)?;
    } else {
        output.print(&table(&told))?;
    }
    Ok(Exit::Done)
}

/// The forms that a checkpoint writes for a file of questions, counted.
fn written_by(args: &Logic, model: &Path, file: &Path, output: &Output) -> anyhow::Result<Exit> {
    let mut asked = questions::read(file, args.format)
        .with_context(|| format!("cannot read the questions `{}`", file.display()))?;
    asked.truncate(args.limit.max(1));
    let amar = Amar::new(AmarConfig {
        model: model.to_owned(),
        llm: args.llm.clone(),
        device: args.device.clone(),
        beams: args.beams as usize,
        ..AmarConfig::default()
    })
    .with_context(|| format!("cannot open the checkpoint `{}`", model.display()))?;
    let graph = open(&args.graph, args.consent.trust())?;
    let bar = Progress::begin("writing", output);
    let total = Some(asked.len() as u64);
    let told = written::written(
        &amar,
        graph.as_ref(),
        &asked,
        args.gold_entities,
        args.batch as usize,
        &mut |done| bar.at(done as u64, total, Unit::Count("questions")),
    )?;
    drop(bar);
    if output.json {
        output.print_json(&told)?;
        return Ok(Exit::Done);
    }
    let mut text =
        String::from("                questions   exact  in beam  answered  Hits@1      F1\n");
    for (name, of) in [("all", told.all), ("gold form runs", told.runnable)] {
        text += &format!(
            "{name:<14} {:>10} {:>6.1}% {:>7.1}% {:>8.1}% {:>6.1}% {:>6.1}%\n",
            of.questions,
            100.0 * of.exact,
            100.0 * of.in_beam,
            100.0 * of.answered,
            100.0 * of.hits_at_1,
            100.0 * of.f1
        );
    }
    if told.without_form > 0 {
        let left = counted(told.without_form, "question has", "questions have");
        text += &format!("{left} no gold form and no part in this\n");
    }
    text += &format!("{:.1} s\n", told.seconds);
    output.print(&text)?;
    Ok(Exit::Done)
}

fn relation_retriever(args: &Logic) -> anyhow::Result<RelationRetriever> {
    Ok(match &args.model {
        Some(model) => RelationRetriever::load(model)
            .with_context(|| format!("cannot open the checkpoint `{}`", model.display()))?,
        None => {
            RelationRetriever::untrained(encode::open("matcher").map_err(wherefore::Error::from)?)
        }
    })
}

fn aspects_of(args: &Logic, text: &str, output: &Output) -> anyhow::Result<Exit> {
    /// Texts that are shown of each aspect.
    const SHOWN: usize = 10;
    #[derive(Serialize)]
    struct Shown {
        text: String,
        score: f32,
    }
    let question = Question::new(text);
    question.check()?;
    let graph = open(&args.graph, args.consent.trust())?;
    let linker = Arc::new(Names::new(NamesConfig::default())?);
    let retriever = AspectRetriever::new(linker, relation_retriever(args)?);
    let found = retriever.retrieve(&question, graph.as_ref(), SHOWN.min(args.limit))?;
    let shown_texts = |texts: Vec<(String, f32)>| -> Vec<Shown> {
        texts
            .into_iter()
            .map(|(text, score)| Shown { text, score })
            .collect()
    };
    let aspects = [
        (
            "entities",
            shown_texts(
                found
                    .entities
                    .into_iter()
                    .map(|r| (r.text, r.score))
                    .collect(),
            ),
        ),
        (
            "relations",
            shown_texts(
                found
                    .relations
                    .into_iter()
                    .map(|r| (r.text, r.score))
                    .collect(),
            ),
        ),
        (
            "subgraphs",
            shown_texts(
                found
                    .subgraphs
                    .into_iter()
                    .map(|r| (r.text, r.score))
                    .collect(),
            ),
        ),
    ];
    if output.json {
        let told: std::collections::BTreeMap<_, _> = aspects.into_iter().collect();
        output.print_json(&told)?;
        return Ok(Exit::Done);
    }
    let mut written = String::new();
    for (name, texts) in aspects {
        written += &format!("{}\n", output.bold(name));
        for Shown { text, score } in texts {
            written += &format!("  {score:>7.3}  {}\n", shown(&text));
        }
    }
    output.print(&written)?;
    Ok(Exit::Done)
}

fn recall(args: &Logic, file: &Path, output: &Output) -> anyhow::Result<Exit> {
    let mut asked = questions::read(file, args.format)
        .with_context(|| format!("cannot read the questions `{}`", file.display()))?;
    asked.truncate(args.limit.max(1));
    let graph = open(&args.graph, args.consent.trust())?;
    let linker = Names::new(NamesConfig::default())?;
    let measured = aspects(&linker, &relation_retriever(args)?, graph.as_ref(), &asked)?;
    if output.json {
        output.print_json(&measured)?;
        return Ok(Exit::Done);
    }
    let mut text = format!(
        "{}; the graph has {:.1}% of their relations\nrecall at      1      2      3      4      5      6      7      8      9     10\n",
        counted(measured.questions, "question", "questions"),
        100.0 * measured.relations_in_graph
    );
    for (name, row) in [
        ("entities", &measured.entities),
        ("relations", &measured.relations),
        ("subgraphs", &measured.subgraphs),
    ] {
        text += &format!("{name:<9}");
        for share in row {
            text += &format!(" {share:>6.3}");
        }
        text.push('\n');
    }
    text += &format!("subgraphs at 100: {:.3}\n", measured.subgraphs_at_100);
    output.print(&text)?;
    Ok(Exit::Done)
}

fn table(told: &Forms) -> String {
    let mut text = format!(
        "{}, {}: {} parse, {} are written as they were, {} translate\n",
        counted(told.questions, "question", "questions"),
        counted(told.forms, "form", "forms"),
        told.parsed,
        told.printed,
        told.translated
    );
    text += "               forms    runs    hits  equals  as SPARQL\n";
    for (
        name,
        Ran {
            forms,
            runs,
            hits,
            equals,
            agrees,
        },
    ) in [
        ("JOIN, AND, R", told.plain),
        ("  of entities", told.entities),
        ("all", told.all),
    ] {
        let share = |n: usize| 100.0 * n as f64 / forms.max(1) as f64;
        text += &format!(
            "{name:<13} {forms:>6} {:>6.1}% {:>6.1}% {:>6.1}% {:>9.1}%\n",
            share(runs),
            share(hits),
            share(equals),
            share(agrees)
        );
    }
    for fault in &told.faults {
        text += &format!("{}\n", shown(fault));
    }
    text
}
