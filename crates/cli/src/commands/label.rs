//! `wherefore label`: a judge picks the paths to learn from.

use clap::ValueEnum;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use wherefore::model::encode;
use wherefore_lab::label::{self, EncoderJudge, Judge, LabelConfig, Labelled, ModelJudge, Quality};
use wherefore_lab::{questions, sweep};

use crate::args::{Consent, question_format};
use crate::errors::Exit;
use crate::language;
use crate::open::open_for;
use crate::output::Output;
use crate::progress::{Progress, Unit};

/// Let a language model or an encoder pick the paths that are evidence, as labels to train on
///
/// For each question, a language model is shown shortest paths to its answer and what lies around
/// topics and answer, merged by their relations; an encoder compares the relations of each shortest
/// path with the question. What is picked is written to a label file, which `wherefore train --labels`
/// takes. Where nothing is picked, shortest paths count, and the file says so. A run that was stopped
/// goes on where it was when the same command is given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore label --graph freebase --questions train.jsonl --sample 500 --llm qwen.gguf --out labels.jsonl
  wherefore label --graph freebase --questions train.jsonl --encoder matcher --out labels.jsonl
  wherefore label --combine union a.jsonl b.jsonl --out labels.jsonl
  wherefore label --judge --graph freebase --questions test.jsonl --out labels.jsonl")]
pub(crate) struct Label {
    /// With `--combine`, the two label files
    #[arg(value_name = "LABELS", num_args = 2, requires = "combine", conflicts_with_all = ["questions", "llm"])]
    pub(crate) files: Vec<PathBuf>,
    /// Make one label file of two: the paths that either has, or those that both have
    #[arg(long, value_name = "HOW", requires = "files")]
    pub(crate) combine: Option<Combine>,
    /// A graph folder, or `@toy`; none where each question brings its own graph
    #[arg(long)]
    pub(crate) graph: Option<String>,
    /// Questions with their answers, in any format of `wherefore eval`
    #[arg(long, value_name = "FILE", required_unless_present = "combine")]
    pub(crate) questions: Option<PathBuf>,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = question_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// The label file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The language model: a GGUF file, or URL#MODEL of an OpenAI-compatible server
    #[arg(long, value_name = "MODEL", required_unless_present_any = ["combine", "judge", "encoder"])]
    pub(crate) llm: Option<String>,
    /// The encoder that picks, instead of a language model: `matcher`, a model folder or an added
    /// model
    #[arg(long, value_name = "E", conflicts_with_all = ["combine", "llm", "judge"])]
    pub(crate) encoder: Option<String>,
    /// With `--encoder`: how far below the best cosine a path may be
    #[arg(long, value_name = "C", default_value_t = 0.05, value_parser = margin, requires = "encoder")]
    pub(crate) within: f32,
    /// Ask nothing: only hold the labels that `--out` has against the questions' relevant triples
    #[arg(long, conflicts_with_all = ["combine", "llm"])]
    pub(crate) judge: bool,
    /// Label only the first questions
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Label only so many questions, drawn by the seed
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<usize>,
    /// Seed of the sample
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Questions that are asked at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// Neither use nor keep completions on disk
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Append every completion to a file, which `--llm script:FILE` replays
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// How two label files become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Combine {
    Union,
    Intersection,
}

pub(crate) fn run(args: &Label, output: &Output) -> anyhow::Result<Exit> {
    if let (Some(how), [first, second]) = (args.combine, args.files.as_slice()) {
        let how = match how {
            Combine::Union => label::Combine::Union,
            Combine::Intersection => label::Combine::Intersection,
        };
        let done = label::combine(first, second, how, &args.out)
            .with_context(|| format!("cannot combine into `{}`", args.out.display()))?;
        return told(&done, None, args, output);
    }
    let Some(path) = &args.questions else {
        unreachable!("the parser asks for questions");
    };
    let mut asked = questions::read(path, args.format)
        .with_context(|| format!("cannot read the questions `{}`", path.display()))?;
    if let Some(limit) = args.limit {
        asked.truncate(limit);
    }
    if let Some(count) = args.sample.filter(|count| *count < asked.len()) {
        asked = sweep::sample(&asked, count, args.seed);
    }
    let graph = open_for(
        args.graph.as_deref(),
        asked.iter(),
        path,
        args.consent.trust(),
    )?;
    if args.judge {
        let lines = label::read(&args.out)?;
        let quality = label::quality(&lines, &asked, graph.as_ref())?;
        let mut done = Labelled::default();
        lines.iter().for_each(|line| done.add(line));
        return told(&done, Some(quality), args, output);
    }
    let config = LabelConfig {
        threads: args.threads,
        ..LabelConfig::default()
    };
    let judge: Box<dyn Judge> = match (&args.encoder, &args.llm) {
        (Some(name), _) => Box::new(EncoderJudge::new(encode::open(name)?, args.within)),
        (None, Some(name)) => {
            let model = language::opened(name, !args.no_cache, args.record.as_deref())?;
            Box::new(ModelJudge(model))
        }
        (None, None) => unreachable!("the parser asks for a judge"),
    };
    let bar = Progress::begin("labelling", output);
    let total = Some(asked.len() as u64);
    let done = label::label(
        graph.as_ref(),
        &asked,
        judge.as_ref(),
        &config,
        &args.out,
        &mut |so_far| {
            bar.note(&format!(
                "{} calls, {} tokens, {} without a pick",
                so_far.llm.calls,
                so_far.llm.prompt_tokens + so_far.llm.completion_tokens,
                so_far.fallbacks
            ));
            bar.at(so_far.questions as u64, total, Unit::Count("questions"));
        },
    );
    drop(bar);
    let done = done.with_context(|| format!("cannot write the labels `{}`", args.out.display()))?;
    let lines = label::read(&args.out)?;
    let quality = label::quality(&lines, &asked, graph.as_ref())?;
    told(
        &done,
        (quality.questions > 0).then_some(quality),
        args,
        output,
    )
}

/// For clap: a cosine may be so far below the best.
fn margin(text: &str) -> Result<f32, String> {
    let margin: f32 = text.parse().map_err(|_| "write it like `0.05`")?;
    if margin.is_finite() && margin >= 0.0 {
        Ok(margin)
    } else {
        Err("it must be a number from 0 on".into())
    }
}

#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    labelled: &'a Labelled,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<Quality>,
}

fn told(
    done: &Labelled,
    quality: Option<Quality>,
    args: &Label,
    output: &Output,
) -> anyhow::Result<Exit> {
    if output.json {
        output.print_json(&Told {
            labelled: done,
            quality,
        })?;
        return Ok(Exit::Done);
    }
    let Labelled {
        questions,
        fallbacks,
        without_paths,
        offered,
        picked,
        llm,
        ..
    } = done;
    let mut text = format!(
        "{}\n{questions} questions; {picked} of {offered} candidates picked; {fallbacks} questions \
         have shortest paths, because nothing was picked ({without_paths} of them have none)\n\
         {} calls ({} from the cache), {} tokens read, {} written\n",
        args.out.display(),
        llm.calls,
        llm.cached,
        llm.prompt_tokens,
        llm.completion_tokens,
    );
    if let Some(Quality {
        questions,
        weak,
        refined,
    }) = quality
    {
        text += &format!(
            "against the relevant triples of {questions} questions: shortest paths precision {:.3} \
             recall {:.3}, labels precision {:.3} recall {:.3}\n",
            weak.0, weak.1, refined.0, refined.1
        );
    }
    output.print(&text)?;
    Ok(Exit::Done)
}
