//! `wherefore eval`: a pipeline over benchmark questions, or a whole sweep of them.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use wherefore::PipelineConfig;
use wherefore_graph::Graph;
use wherefore_lab::harness::{RunDescription, answer_line, run};
use wherefore_lab::metrics::{Metrics, Options, TopicSource};
use wherefore_lab::outcome::Outcome;
use wherefore_lab::questions::{self, GoldQuestion, coverage};
use wherefore_lab::sweep::{self, Planned, Sweep};
use wherefore_lab::train::is_unfinished;

use super::{Wanted, config_for, report};
use crate::args::{Consent, Llm, Wished, methods, question_format};
use crate::errors::{Exit, UserError};
use crate::language;
use crate::open::open_for;
use crate::output::Output;
use crate::progress::{Progress, Unit};

/// Answer a benchmark's questions and measure how well
///
/// The run folder keeps the settings, every answer with its evidence, all metrics, and a page to
/// look at. A run that was stopped goes on where it was when the same command is given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore eval --graph metaqa --questions qa_test.txt --out runs/read
  wherefore eval --graph metaqa --questions qa_test.txt --sample 500 --linked --out runs/linked
  wherefore eval --graph metaqa --questions qa_dev.txt --sweep hops.toml --out runs/hops")]
pub(crate) struct Eval {
    /// A graph folder, or `@toy`; none where each question brings its own graph
    #[arg(long)]
    pub(crate) graph: Option<String>,
    /// The questions: MetaQA, PathQuestion, WC2014, WebQSP, CWQ, GrailQA, RoG, NSM or our JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) questions: PathBuf,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = question_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// The run folder
    #[arg(long, value_name = "RUN")]
    pub(crate) out: PathBuf,
    /// The method, with its usual settings
    #[arg(long, value_name = "NAME", value_parser = methods(), conflicts_with_all = ["config", "sweep"])]
    pub(crate) method: Option<String>,
    /// A checkpoint made by `wherefore train`
    #[arg(long, value_name = "CKPT", conflicts_with = "sweep")]
    pub(crate) model: Option<PathBuf>,
    /// The method and its settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Run every combination that a TOML file lists, each into a folder under `--out`
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub(crate) sweep: Option<PathBuf>,
    /// Hide the gold topics: entities are to be found in the question
    #[arg(long)]
    pub(crate) linked: bool,
    #[command(flatten)]
    pub(crate) wished: Wished,
    /// Ask only the first questions
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Ask only so many questions, drawn by the seed
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<usize>,
    /// Questions answered at the same time; 0 means one for each core, 1 gives the times of a question
    /// that has the machine to itself
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Seed of samples and of bootstrap intervals
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The k at which retrieval is measured
    #[arg(long = "k", value_name = "K,…", value_delimiter = ',', default_values_t = [50, 100, 200, 500])]
    pub(crate) ks: Vec<usize>,
    /// End with status 1 if a metric is below a value, as in `lenient.hit@1=0.9`; repeatable
    #[arg(long, value_name = "METRIC=VALUE", value_parser = parse_requirement)]
    pub(crate) require: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) llm: Llm,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

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
    if let Some(model) = config.model().filter(|model| is_unfinished(model)) {
        let model = model.display();
        let note = format!("the training of `{model}` was stopped before its end");
        output.note("note", &note);
    }
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
