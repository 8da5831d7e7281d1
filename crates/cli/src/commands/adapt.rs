//! `wherefore adapt`: the reader learns how to read over one graph.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use wherefore::read::Weights;
use wherefore_lab::adapt::{self, AdaptConfig, AdaptMetrics, Chosen, Stage};
use wherefore_lab::questions::{self, Format};
use wherefore_lab::train::Settings;

use crate::args::{Consent, question_format};
use crate::errors::Exit;
use crate::language;
use crate::open::open;
use crate::output::{Output, counted};
use crate::progress::{Progress, Unit};

/// Make the reader better on your graph, without questions or with some
///
/// Drafts questions from the graph itself, has a language model reword them if one is given, takes
/// yours if you have some, and learns from them. Every fifth is kept aside to judge by: nothing is
/// taken that is not better on these. What comes out goes with `--model`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore adapt movies --out movies-reader
  wherefore adapt movies --questions asked.jsonl --out movies-reader
  wherefore ask movies 'Who directed Alien?' --model movies-reader")]
pub(crate) struct Adapt {
    /// A graph folder, `@world` or `@toy`
    graph: String,
    /// The folder to write
    #[arg(long, value_name = "CKPT")]
    out: PathBuf,
    /// Questions with their answers to learn from as well, in any format of `wherefore eval`
    #[arg(long, value_name = "FILE")]
    questions: Vec<PathBuf>,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = question_format)]
    format: Option<Format>,
    /// How many questions to draft
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    drafts: Option<u32>,
    /// A language model that rewords drafts: a GGUF file, or URL#MODEL of an OpenAI-compatible server
    #[arg(long, value_name = "MODEL")]
    llm: Option<String>,
    /// Minutes that the language model may take
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// Weights to begin with; those that are shipped if this is not given
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    /// A file of settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one setting: `drafts=500`, `read.rounds=2`
    #[arg(long, value_name = "SETTING=VALUE", value_parser = super::train::parse_setting)]
    set: Vec<(String, String)>,
    /// Seed of the drafts
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) fn run(args: &Adapt, output: &Output) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    let config = config(args)?;
    let graph = open(&args.graph, args.consent.trust())?;
    let mut own = Vec::new();
    for path in &args.questions {
        let read = questions::read(path, args.format)
            .with_context(|| format!("cannot read the questions `{}`", path.display()))?;
        own.extend(read);
    }
    let start = match &args.init {
        None => Weights::shipped().clone(),
        Some(path) => super::train::weights(path)?,
    };
    let opened = |name: &String| language::opened(name, true, None);
    let model = args.llm.as_ref().map(opened).transpose()?;
    let until = Instant::now() + Duration::from_secs(60 * u64::from(args.minutes));
    let model = model.as_deref().map(|model| (model, until));
    let mut bar: Option<(&'static str, Progress)> = None;
    let adapted = adapt::adapt(
        graph.as_ref(),
        own,
        &start,
        model,
        &config,
        |at, done, total| {
            let label = match at {
                Stage::Rewording => "rewording",
                Stage::Judging => "judging",
                Stage::Phrases => "learning phrases",
                Stage::Weights => "learning weights",
            };
            if bar.as_ref().is_none_or(|(of, _)| *of != label) {
                // one bar ends before the next begins
                bar = None;
                bar = Some((label, Progress::begin(label, output)));
            }
            if let Some((_, bar)) = &bar {
                bar.at(done as u64, Some(total as u64), Unit::Count("questions"));
            }
        },
    )?;
    drop(bar);
    let took = begun.elapsed();
    adapt::save(&args.out, &adapted, &config, took)
        .with_context(|| format!("cannot write `{}`", args.out.display()))?;
    if output.json {
        output.print_json(&json!({
            "out": args.out,
            "chosen": adapted.chosen,
            "judged": adapted.judged,
            "rounds": adapted.rounds,
            "seconds": took.as_secs_f64(),
        }))?;
        return Ok(Exit::Done);
    }
    for judged in &adapted.judged {
        output.note(judged.kind, &told(judged, adapted.chosen));
    }
    output.print(&format!("{}\n", args.out.display()))?;
    match adapted.chosen {
        Chosen::Before => output.note(
            "note",
            "nothing was better on the questions that were kept aside: the folder holds what there was",
        ),
        Chosen::Phrases | Chosen::Weights if adapted.judged.iter().all(|j| j.kind == "drafted") => {
            output.note(
                "note",
                "judged by drafts alone, which speak the graph's own words: try it with questions of yours, better still learn from some (--questions)",
            );
        }
        Chosen::Phrases | Chosen::Weights => output.note(
            "next",
            &format!("wherefore ask {} QUESTION --model {}", args.graph, args.out.display()),
        ),
    }
    Ok(Exit::Done)
}

fn config(args: &Adapt) -> anyhow::Result<AdaptConfig> {
    let mut config = match &args.config {
        None => AdaptConfig::default(),
        Some(path) => AdaptConfig::from_toml(&super::read_text(path, 1 << 20)?)
            .with_context(|| format!("cannot use the settings `{}`", path.display()))?,
    };
    if let Some(drafts) = args.drafts {
        config.drafts = drafts as usize;
    }
    if let Some(seed) = args.seed {
        config.seed = seed;
    }
    for (setting, value) in &args.set {
        config.set(setting, value)?;
    }
    Ok(config)
}

fn told(judged: &AdaptMetrics, chosen: Chosen) -> String {
    let after = match chosen {
        Chosen::Before => judged.before,
        Chosen::Phrases => judged.phrases,
        Chosen::Weights => judged.weights,
    };
    format!(
        "of {} kept aside, {} were right before, {after} are now; learned from {}",
        counted(judged.questions, "question", "questions"),
        judged.before,
        judged.learned
    )
}
