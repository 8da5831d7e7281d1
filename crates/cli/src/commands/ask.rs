//! `wherefore ask`: a question, its answers, and why.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use wherefore::answer::{Answer, AnswerEntity, Status, Table, Trace};
use wherefore::config::{LinkerConfig, OrganizerConfig, RetrieverConfig, SelectorConfig};
use wherefore::retrieve::gnn2r::Explanation;
use wherefore::verify::{Rules, Saved, SigningKey, seal};
use wherefore::{Follow, Observer, PipelineConfig, Question, Stage};

use super::verify::MAX_ANSWER_BYTES;
use super::{Wanted, config_for, pipeline_config, read_text};
use crate::args::{Consent, Llm, Wished, methods};
use crate::errors::{Exit, UserError};
use crate::language;
use crate::open::open_asking;
use crate::output::{Arrows, Output, counted, shown};

/// Answer a question, with the triples that prove the answer
///
/// Exit status 1 means that there is no answer: nothing in the graph bears on the question.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore ask @toy 'Where was the coach of the San Francisco Giants born?'
  wherefore ask movies 'Who directed it?' --topic 'The Matrix' --json
  wherefore ask @world 'Which countries border Kenya?' --json > kenya.json
  wherefore ask @world 'Which of these border Uganda?' --follow kenya.json
  wherefore ask movies 'Who directed The Matrix?' --llm qwen2.5-1.5b.gguf
  wherefore ask movies 'Who directed The Matrix?' --llm http://localhost:8080/v1#qwen2.5
  echo 'Whose mascot is Lou Seal?' | wherefore ask @toy -")]
pub(crate) struct Ask {
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    pub(crate) graph: String,
    /// The question, or `-` to read it from standard input
    pub(crate) question: String,
    /// An entity that the question is about, instead of looking for names in it; repeatable
    #[arg(long = "topic", value_name = "NAME")]
    pub(crate) topics: Vec<String>,
    /// Take this reading of the question, as the answer numbers them (read)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) reading: Option<u32>,
    /// Read the question after the one that this file answers, saved with `--json` (read): `it`,
    /// `these`, `What about …?`
    #[arg(long, value_name = "ANSWER")]
    pub(crate) follow: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wished: Wished,
    /// Answer as many readings as it takes to have the right one among them this often, from 0 to 1,
    /// by what `wherefore conformal` has seen of the graph (read)
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["reading", "precision"])]
    pub(crate) coverage: Option<f32>,
    /// A file of words and the entities that they mean, between tabs; `-` for none
    #[arg(long, value_name = "FILE")]
    pub(crate) aliases: Option<PathBuf>,
    /// The method, with its usual settings
    #[arg(long, value_name = "NAME", value_parser = methods(), conflicts_with = "config")]
    pub(crate) method: Option<String>,
    /// The method and its settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A checkpoint made by `wherefore train`
    #[arg(long, value_name = "CKPT")]
    pub(crate) model: Option<PathBuf>,
    /// Maximum triples read as evidence
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) top_k: Option<u32>,
    /// Maximum steps of a chain of evidence; 0 means any number (`organize = chains`)
    #[arg(long, value_name = "N")]
    pub(crate) max_length: Option<usize>,
    /// Write a page with the evidence as a picture: topics purple, answers green
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also tell what each layer of the network did (gnn2r)
    #[arg(long)]
    pub(crate) explain: bool,
    /// Maximum requests for the question, where a SPARQL service holds the graph
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_requests: Option<u64>,
    /// Sign the answer with this key, made by `wherefore keygen`
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) llm: Llm,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// Triples of the rationales shown to people; `--json` has all.
const SHOWN_TRIPLES: usize = 24;

/// From this confidence on, other readings are not offered to people.
const SURE: f32 = 0.5;

/// Answers shown to people; `--json` has all.
const SHOWN_ANSWERS: usize = 10;

pub(crate) fn run(args: &Ask, output: &Output) -> anyhow::Result<Exit> {
    // what is wrong with the settings is told before the graph is opened: it may be large
    let named = pipeline_config(
        args.config.as_deref(),
        args.method.as_deref(),
        args.model.as_deref(),
    )?;
    language::configure(&args.llm, &mut set(args, named)?)?;
    let mut question = Question::new(question(args)?).about(&args.topics);
    question.reading = args.reading.map_or(0, |n| n as usize);
    question.precision = args.wished.precision;
    question.coverage = args.coverage;
    if let Some(file) = &args.follow {
        question.follow = Some(followed(file)?);
    }
    // before the graph is opened: it may be large
    question.check()?;
    if args.sign.is_some() && !output.json {
        return Err(UserError {
            code: "usage",
            message: "only the JSON of an answer is signed".into(),
            hint: "add `--json`".into(),
        }
        .into());
    }
    let key = args.sign.as_deref().map(SigningKey::open).transpose()?;
    let graph = open_asking(&args.graph, args.consent.trust(), args.max_requests)?;
    let config = config_for(
        &Wanted {
            config: args.config.as_deref(),
            method: args.method.as_deref(),
            model: args.model.as_deref(),
            llm: args.llm.llm.is_some(),
        },
        output,
    )?;
    let mut config = set(args, config)?;
    language::configure(&args.llm, &mut config)?;
    let model = language::open(&args.llm, &config)?;
    let pipeline = config.build_with(model.map(|model| language::watched(model, output)))?;
    let mut seen = Seen::default();
    let mut answer = pipeline.answer(&question, graph.as_ref(), &mut seen)?;
    answer.notes.extend(short_of(args.top_k, &answer));
    for note in seen.notes.iter().chain(&answer.notes) {
        output.note("note", note);
    }
    for held in &answer.withheld {
        output.note("withheld", &format!("{}: {}", held.name, held.reason));
    }
    if let Some(path) = &args.html {
        wherefore_lab::report::write_answer(path, &answer, seen.explanation.as_ref())
            .with_context(|| format!("cannot write the picture `{}`", path.display()))?;
        output.note("picture", &path.display().to_string());
    }
    if output.json {
        let explanation = seen.explanation.as_ref();
        let told = Told {
            answer: &answer,
            explanation,
        };
        let seal = seal(&told, graph.as_ref(), key.as_ref());
        answer.seal = Some(seal);
        output.print_json(&Told {
            answer: &answer,
            explanation,
        })?;
    } else {
        output.print(&written(&answer, output))?;
        if let Some(explanation) = &seen.explanation {
            output.print(&explained(explanation))?;
        }
    }
    if answer.status == Status::Answered {
        return Ok(Exit::Done);
    }
    if answer.links.is_empty() {
        output.note("hint", "name an entity of the graph with `--topic NAME`");
    }
    Ok(Exit::No)
}

/// The configuration with what the flags set.
fn set(args: &Ask, mut config: PipelineConfig) -> anyhow::Result<PipelineConfig> {
    if let Some(file) = &args.aliases {
        let LinkerConfig::Names(names) = &mut config.link;
        names.aliases = Some(file.clone());
    }
    if args.explain {
        match &mut config.retrieve {
            RetrieverConfig::Gnn2r(gnn2r) => gnn2r.explain = true,
            _ => {
                return Err(UserError {
                    code: "usage",
                    message: "this method has no layers to explain".into(),
                    hint: "leave `--explain` out, or ask with `--method gnn2r`".into(),
                }
                .into());
            }
        }
    }
    if let Some(length) = args.max_length {
        match &mut config.organize {
            OrganizerConfig::Chains(chains) => chains.max_length = length,
            OrganizerConfig::Triples(_) => {
                return Err(UserError {
                    code: "usage",
                    message: "this method makes no chains".into(),
                    hint: "leave `--max-length` out, or ask with `--method reg`".into(),
                }
                .into());
            }
        }
    }
    if let Some(k) = args.top_k {
        match &mut config.select {
            SelectorConfig::TopK(top_k) => top_k.k = k as usize,
            SelectorConfig::Nucleus(nucleus) => {
                nucleus.k_max = k as usize;
                nucleus.k_min = nucleus.k_min.min(k as usize);
            }
            SelectorConfig::Threshold(threshold) => threshold.k_max = k as usize,
        }
        // what is read is handed out too, however many are handed out as a rule
        let usual = config.max_evidence.unwrap_or(Rules::MAX_EVIDENCE);
        config.max_evidence = Some(usual.max(k as usize));
    }
    Ok(config)
}

/// That there are fewer triples than `--top-k` asked for, where it is so.
fn short_of(top_k: Option<u32>, answer: &Answer) -> Option<String> {
    let found = answer.evidence.len();
    let wanted = top_k.filter(|k| *k as usize > found)?;
    if answer.status != Status::Answered {
        return None;
    }
    Some(format!(
        "{wanted} triples were asked for, and the method found {found}"
    ))
}

/// What a saved answer says to the question after it.
fn followed(file: &Path) -> anyhow::Result<Follow> {
    let text = read_text(file, MAX_ANSWER_BYTES)?;
    let unusable = |message: String| UserError {
        code: "not-an-answer",
        message,
        hint: "save one with `wherefore ask GRAPH QUESTION --json > answer.json`".into(),
    };
    let saved = Saved::from_json(&text)
        .map_err(|e| unusable(e.to_string()))
        .with_context(|| format!("`{}` is not an answer", file.display()))?;
    let nothing = || unusable(format!("`{}` answers nothing to follow", file.display()));
    Ok(Follow::of(&saved.answer).ok_or_else(nothing)?)
}

fn question(args: &Ask) -> anyhow::Result<String> {
    if args.question == "-" {
        let text = read_text(Path::new("-"), 1 << 20)?;
        return Ok(text.trim_end_matches(['\n', '\r']).to_owned());
    }
    Ok(args.question.clone())
}

/// What the retriever had to leave out, and what it did.
#[derive(Default)]
struct Seen {
    notes: Vec<String>,
    explanation: Option<Explanation>,
}

impl Observer for Seen {
    fn stage(&mut self, stage: Stage<'_>) {
        if let Stage::Retrieved(scored) = stage {
            self.notes.clone_from(&scored.notes);
            self.explanation.clone_from(&scored.explanation);
        }
    }
}

/// The answer as JSON, with what was explained.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'a Explanation>,
}

/// How much each triple of the rationale was heard, layer by layer.
fn explained(explanation: &Explanation) -> String {
    let mut text =
        String::from("\nattention (what the tail hears of the head, and the head of the tail)\n");
    let rows = explanation.layers.first().map_or(0, |l| l.attention.len());
    for row in 0..rows {
        let [head, relation, tail] = &explanation.layers[0].attention[row].0;
        text += &format!(
            "  {} → {} → {}\n   ",
            shown(head),
            shown(relation),
            shown(tail)
        );
        for (number, layer) in explanation.layers.iter().enumerate() {
            let (_, tail, head) = &layer.attention[row];
            text += &format!("  layer {}: {tail:.2} {head:.2}", number + 1);
        }
        text.push('\n');
    }
    text
}

/// The answer for people.
pub(crate) fn written(answer: &Answer, output: &Output) -> String {
    let mut text = answer
        .trace
        .as_ref()
        .map_or_else(String::new, |trace| steps(trace, output));
    if answer.answers.is_empty() {
        let reason = answer.reason.as_deref().unwrap_or("nothing was found");
        let reason = shown(reason);
        let carried = carried(answer);
        text += &format!("{} {reason}{carried}\n", output.bold("No answer:"));
    } else {
        let some = &answer.answers[..answer.answers.len().min(SHOWN_ANSWERS)];
        text += &answers(some, output);
        let more = answer.answers.len() - some.len();
        if more > 0 {
            let line = format!("… and {more} more; `--json` has them all");
            text += &format!("{}\n", output.dim(&line));
        }
        // what was seen while it was written need not be told again
        let seen = language::is_streamed(output) && io::stdout().is_terminal();
        if let Some(prose) = answer.text.as_ref().filter(|_| !seen) {
            text += &format!("\n{}\n", shown(prose));
        }
        for sentence in &answer.unproved {
            text += &format!("{} {}\n", output.bold("Not proved:"), shown(sentence));
        }
        if let Some((reading, form)) = answer.reading.as_ref().zip(answer.logical_form.as_ref()) {
            let form = output.dim(&shown(form));
            let reading = shown(reading);
            let carried = carried(answer);
            text += &format!("\nread as {reading}{carried}\n        {form}\n");
        }
        if let Some(table) = &answer.table {
            text += &format!("\n{}", rows(table, output));
        }
        let because = because(answer, some, output);
        if !because.is_empty() {
            text += &format!("\nbecause\n{because}");
        }
    }
    for other in &answer.others {
        let read = match &other.reading {
            Some(reading) => format!("or, read as {}", shown(reading)),
            None => "or, by another method".to_owned(),
        };
        let some = &other.answers[..other.answers.len().min(SHOWN_ANSWERS)];
        text += &format!("\n{}\n{}", output.bold(&read), answers(some, output));
        text += &because(other, some, output);
    }
    text += &readings(answer, output);
    text + "\n" + &output.dim(&footer(answer)) + "\n"
}

/// What was taken over from the question before.
fn carried(answer: &Answer) -> String {
    let carried = answer.carried.as_ref();
    carried.map_or_else(String::new, |carried| format!(" ({})", shown(carried)))
}

/// Words that were not used, and what else the question may mean.
fn readings(answer: &Answer, output: &Output) -> String {
    let mut text = String::new();
    if !answer.unused_words.is_empty() && !answer.answers.is_empty() {
        let words = shown(&answer.unused_words.join(", ")).into_owned();
        text += &format!("\nnot used: {words}\n");
    }
    // where the answer is likely what was meant, others are a burden; `--json` has them
    let sure = answer.answers.first().is_some_and(|a| a.confidence >= SURE);
    if sure || answer.alternatives.is_empty() {
        return text;
    }
    text += "\ndid you mean (--reading N)\n";
    for other in &answer.alternatives {
        text += &format!("  {}  {}", other.number, shown(&other.reading));
        if !other.unused_words.is_empty() {
            let without = format!("  without {}", shown(&other.unused_words.join(", ")));
            text += &output.dim(&without);
        }
        text.push('\n');
    }
    text
}

/// The answer's table, column by column.
fn rows(table: &Table, output: &Output) -> String {
    let cells = |row: &[Vec<String>]| -> Vec<String> {
        let cell = |values: &Vec<String>| shown(&values.join(", ")).into_owned();
        row.iter().map(cell).collect()
    };
    let shown_rows: Vec<Vec<String>> = (table.rows.iter().take(SHOWN_ANSWERS))
        .map(|r| cells(r))
        .collect();
    let width = |at: usize| {
        let of = |row: &Vec<String>| row.get(at).map_or(0, |c| c.chars().count());
        shown_rows
            .iter()
            .map(of)
            .chain([table.columns[at].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let line = |cells: &[String]| -> String {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let titles: Vec<String> = table
        .columns
        .iter()
        .map(|c| shown(c).into_owned())
        .collect();
    let mut text = format!("{}\n", output.bold(&line(&titles)));
    for row in &shown_rows {
        text += &format!("{}\n", line(row));
    }
    let more = table.rows.len() - shown_rows.len();
    if more > 0 {
        let line = format!("… and {more} more rows; `--json` has them all");
        text += &format!("{}\n", output.dim(&line));
    }
    text
}

/// How the question was taken apart.
fn steps(trace: &Trace, output: &Output) -> String {
    let mut text = String::new();
    if let Some(thought) = &trace.thought {
        text += &format!("{}\n", output.dim(&shown(thought)));
    }
    for (number, step) in (1..).zip(&trace.steps) {
        text += &format!("{number}. {}\n", shown(&step.asked));
        let said = match step.answers.is_empty() {
            true => step.text.trim().to_owned(),
            false => step.answers.join(", "),
        };
        let facts = counted(step.evidence.len(), "fact", "facts");
        let line = format!("   → {}", shown(&said));
        text += &format!("{line} {}\n", output.dim(&format!("({facts})")));
    }
    text + "\n"
}

fn answers(answers: &[AnswerEntity], output: &Output) -> String {
    let width = |name: &str| name.chars().count();
    let names: Vec<_> = answers.iter().map(|a| shown(&a.name)).collect();
    let widest = names.iter().map(|n| width(n)).max().unwrap_or(0).min(60);
    let mut text = String::new();
    for (answer, name) in answers.iter().zip(&names) {
        let gap = " ".repeat(widest.saturating_sub(width(name)) + 2);
        let percent = format!("{:>3.0}%", answer.confidence * 100.0);
        let mark = if answer.ungrounded {
            output.red("  not proved")
        } else {
            String::new()
        };
        text += &format!("{}{gap}{}{mark}\n", output.bold(name), output.dim(&percent));
    }
    text
}

/// The rationales of the answers, each triple once.
fn because(answer: &Answer, answers: &[AnswerEntity], output: &Output) -> String {
    let mut arrows = Arrows::default();
    let mut written = std::collections::HashSet::new();
    let mut text = String::new();
    for &i in answers.iter().flat_map(|a| &a.rationale) {
        let triple = &answer.evidence[i];
        if written.len() == SHOWN_TRIPLES && !written.contains(&i) {
            let line = "  … and more; `--json` has them all";
            return text + &format!("{}\n", output.dim(line));
        }
        if written.insert(i) {
            let mark = if triple.verified {
                output.green("✓")
            } else {
                output.red("✗")
            };
            text += &format!("  {mark} {}\n", arrows.arrow(triple, output));
        }
    }
    text
}

fn footer(answer: &Answer) -> String {
    let mut parts = Vec::new();
    if !answer.links.is_empty() {
        let names: Vec<_> = answer.links.iter().map(|l| shown(&l.name)).collect();
        parts.push(format!("about {}", names.join(", ")));
    }
    if !answer.evidence.is_empty() {
        let count = answer.evidence.len();
        let verified = answer.evidence.iter().filter(|e| e.verified).count();
        let triples = counted(count, "triple", "triples");
        parts.push(if verified == count {
            format!("{triples} of evidence, all verified")
        } else {
            format!("{verified} of {triples} of evidence verified")
        });
    }
    if answer.llm.calls > 0 {
        let calls = counted(answer.llm.calls as usize, "call", "calls");
        let kept = match answer.llm.cached {
            0 => "",
            _ => ", from the cache",
        };
        parts.push(format!(
            "{calls}, {} + {} tokens{kept}",
            answer.llm.prompt_tokens, answer.llm.completion_tokens
        ));
    }
    if let Some(service) = answer.service {
        parts.push(format!(
            "{} in {}",
            counted(service.requests as usize, "request", "requests"),
            counted(service.rounds as usize, "round", "rounds"),
        ));
    }
    if let Some(&total) = answer.timings_ms.get("total") {
        parts.push(match total {
            ms if ms < 1.0 => format!("{ms:.2} ms"),
            ms if ms < 1000.0 => format!("{ms:.1} ms"),
            ms => format!("{:.1} s", ms / 1000.0),
        });
    }
    parts.join(" · ")
}
