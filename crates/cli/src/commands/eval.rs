//! `wherefore eval`: a pipeline over benchmark questions, or a whole sweep of them.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use wherefore::PipelineConfig;
use wherefore_graph::Graph;
use wherefore_lab::harness::{RunDescription, answer_line, run};
use wherefore_lab::metrics::{Metrics, Options, TopicSource};
use wherefore_lab::outcome::Outcome;
use wherefore_lab::questions::{self, GoldQuestion, coverage};
use wherefore_lab::sweep::{self, Planned, Sweep};

use super::{Wanted, config_for, report};
use crate::args::Eval;
use crate::errors::{Exit, UserError};
use crate::language;
use crate::open::open_for;
use crate::output::Output;
use crate::progress::{Progress, Unit};

/// How far coverage looks for an answer.
const COVERAGE_HOPS: u32 = 3;

pub(crate) fn run_eval(args: &Eval, output: &Output) -> anyhow::Result<Exit> {
    let path = args.questions.display();
    let all = questions::read(&args.questions, args.format)
        .with_context(|| format!("cannot read the questions `{path}`"))?;
    let graph = open_for(
        args.graph.as_deref(),
        all.iter(),
        &args.questions,
        args.consent.trust(),
    )?;
    let metrics = match &args.sweep {
        Some(file) => return run_sweep(args, file, &all, graph.as_ref(), output),
        None => {
            let mut config = config_for(
                &Wanted {
                    config: args.config.as_deref(),
                    method: args.method.as_deref(),
                    model: args.model.as_deref(),
                    llm: args.llm.llm.is_some(),
                },
                output,
            )?;
            language::configure(&args.llm, &mut config)?;
            config.precision = args.wished.precision.or(config.precision);
            let asked = choose(args, &all, args.seed);
            one_run(
                args,
                &config,
                args.seed,
                &asked,
                graph.as_ref(),
                &args.out,
                output,
            )?
        }
    };
    let file = args.out.join("report.html");
    report::write_page(&file, &[&args.out])?;
    if output.json {
        output.print_json(&metrics)?;
    } else {
        output.print(&metrics.to_string())?;
        output.note("report", &file.display().to_string());
    }
    required(args, &metrics, output)
}

/// The questions of one run.
fn choose(args: &Eval, all: &[GoldQuestion], seed: u64) -> Vec<GoldQuestion> {
    let mut asked = match args.sample {
        Some(count) => sweep::sample(all, count, seed),
        None => all.to_vec(),
    };
    asked.truncate(args.limit.unwrap_or(usize::MAX));
    asked
}

fn one_run(
    args: &Eval,
    config: &PipelineConfig,
    seed: u64,
    asked: &[GoldQuestion],
    graph: &dyn Graph,
    folder: &Path,
    output: &Output,
) -> anyhow::Result<Metrics> {
    let pipeline = config.build_with(language::open(&args.llm, config)?)?;
    let topics = if args.linked {
        TopicSource::Linked
    } else {
        TopicSource::Gold
    };
    let options = Options {
        ks: args.ks.clone(),
        seed,
        ..Options::default()
    };
    let json = serde_json::to_value(config).context("cannot write the configuration")?;
    let description = RunDescription::new(json, seed, topics, &options, asked, graph)?;
    let bar = Progress::begin("answering", output);
    let mut right = 0usize;
    let mut seen = 0u32;
    let scores = run(
        folder,
        &description,
        asked,
        &options,
        args.threads,
        &|question| answer_line(&pipeline, graph, question, topics, &options.ks),
        &mut |done, line| {
            seen += 1;
            right += usize::from(line.outcome == Outcome::Right);
            bar.note(&format!(
                "hit {:.1}%",
                100.0 * right as f64 / f64::from(seen)
            ));
            bar.at(
                done as u64,
                Some(asked.len() as u64),
                Unit::Count("questions"),
            );
            true
        },
    )
    .with_context(|| format!("cannot run into `{}`", folder.display()))?;
    drop(bar);
    let mut metrics = scores.context("the run was stopped")?.metrics();
    metrics.topics = Some(topics);
    let own = asked.iter().any(|q| !q.triples.is_empty());
    // at a service the walk took 17,000 requests for 60 questions, and the questions 400
    if !own && graph.service().is_none() {
        metrics.coverage = Some(coverage(asked, graph, COVERAGE_HOPS)?);
    }
    wherefore_lab::harness::save_metrics(folder, &metrics)?;
    Ok(metrics)
}

fn required(args: &Eval, metrics: &Metrics, output: &Output) -> anyhow::Result<Exit> {
    for (name, bar) in &args.require {
        let value = metrics.overall.value(name).ok_or_else(|| UserError {
            code: "no-such-metric",
            message: format!("this run has no metric `{name}`"),
            hint: "`--json` shows the names of all".into(),
        })?;
        if value < *bar {
            output.note(
                "below",
                &format!("{name} is {value:.4}, and {bar} was required"),
            );
            return Ok(Exit::No);
        }
    }
    Ok(Exit::Done)
}

fn run_sweep(
    args: &Eval,
    file: &Path,
    all: &[GoldQuestion],
    graph: &dyn Graph,
    output: &Output,
) -> anyhow::Result<Exit> {
    let sweep = Sweep::read(file)?;
    let plan = sweep.plan(file.parent().unwrap_or(Path::new(".")))?;
    let mut done: Vec<(Planned, Metrics)> = Vec::new();
    let count = plan.len();
    for (number, mut planned) in plan.into_iter().enumerate() {
        language::configure(&args.llm, &mut planned.config)?;
        output.note(
            "run",
            &format!("{} of {count}: {}", number + 1, planned.folder),
        );
        let asked = match sweep.sample {
            Some(count) => sweep::sample(all, count, planned.seed),
            None => choose(args, all, planned.seed),
        };
        let folder = args.out.join(&planned.folder);
        let metrics = one_run(
            args,
            &planned.config,
            planned.seed,
            &asked,
            graph,
            &folder,
            output,
        )?;
        done.push((planned, metrics));
    }
    let rows = sweep::table(&done);
    #[derive(Serialize)]
    struct Table<'a> {
        rows: &'a [sweep::Row],
    }
    let text = serde_json::to_string_pretty(&Table { rows: &rows }).context("cannot write JSON")?;
    let path = args.out.join("sweep.json");
    std::fs::write(&path, text + "\n")
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    if output.json {
        output.print_json(&Table { rows: &rows })?;
    } else {
        output.print(&sweep_table(&rows))?;
    }
    Ok(Exit::Done)
}

/// What a sweep's table shows; `sweep.json` has all.
const SHOWN: [(&str, &str); 5] = [
    ("Hit@1", "lenient.hit@1"),
    ("Hit", "lenient.hit"),
    ("F1", "lenient.f1"),
    ("triple recall@100", "retrieval.triple_recall@100"),
    ("answer recall@100", "retrieval.answer_recall@100"),
];

fn sweep_table(rows: &[sweep::Row]) -> String {
    let width = rows
        .iter()
        .map(|r| r.row.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = format!("{:<width$}  runs", "");
    for (label, _) in SHOWN {
        text += &format!("  {label:>17}");
    }
    text.push('\n');
    for row in rows {
        text += &format!("{:<width$}  {:>4}", row.row, row.runs);
        for (_, name) in SHOWN {
            let cell = row.metrics.iter().find(|(n, _, _)| n == name).map_or(
                "-".into(),
                |(_, mean, sd)| {
                    if row.runs > 1 {
                        format!("{mean:.3} ± {sd:.3}")
                    } else {
                        format!("{mean:.3}")
                    }
                },
            );
            text += &format!("  {cell:>17}");
        }
        text.push('\n');
    }
    text
}

/// For clap: `METRIC=VALUE`.
pub(crate) fn parse_requirement(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write it like `lenient.hit@1=0.9`")?;
    match value.parse::<f64>() {
        // nothing is below what is no number
        Ok(value) if !value.is_nan() => Ok((name.to_owned(), value)),
        _ => Err(format!("`{value}` is no number")),
    }
}

/// For clap: a question format by its name.
pub(crate) fn parse_format(name: &str) -> Result<questions::Format, String> {
    name.parse()
        .map_err(|e: wherefore_lab::Error| e.to_string())
}
