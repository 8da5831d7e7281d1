//! `wherefore load`: files into a graph folder.

use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;
use wherefore_graph::{
    Counts, Format, Input, LoadOptions, LoadProgress, LoadReport, LoadStep, TableOptions, Wide,
    load,
};

use crate::args::Load;
use crate::errors::{Exit, UserError};
use crate::output::{Output, counted, shown};
use crate::progress::{Progress, Unit};

pub(crate) fn run(args: &Load, output: &Output) -> anyhow::Result<Exit> {
    let inputs: Vec<Input> = args
        .files
        .iter()
        .map(|file| match file.to_str() {
            Some("-") => Input::Stdin,
            _ => Input::File(file.clone()),
        })
        .collect();
    let options = LoadOptions {
        format: args.format,
        table: TableOptions {
            columns: args.columns.as_deref().map(columns).transpose()?,
            typed: args.typed,
            wide: args.wide.then(|| Wide {
                name_column: args.name_column.clone(),
                split: args.split.clone(),
                class: args.class.clone(),
            }),
        },
        labels: args.labels.clone(),
        aliases: args.aliases.clone(),
        names: args.names.clone(),
        language: args.language.clone(),
        memory: args.memory,
        threads: args.threads,
        max_errors: if args.strict { 0 } else { args.max_errors },
        replace: args.replace,
        base: args.base.clone(),
        max_text: u64::MAX,
    };
    let shown_step = Mutex::new(None::<(LoadStep, Progress)>);
    let tell = |progress: LoadProgress| {
        let Ok(mut current) = shown_step.lock() else {
            return;
        };
        if !current
            .as_ref()
            .is_some_and(|(step, _)| *step == progress.step)
        {
            *current = None; // the old bar goes before the new one comes
            *current = Some((progress.step, Progress::begin(label(progress.step), output)));
        }
        if let Some((_, bar)) = current.as_ref() {
            let unit = match progress.step {
                LoadStep::Reading => Unit::Bytes,
                _ => Unit::Count("triples"),
            };
            bar.at(progress.done, progress.total, unit);
        }
    };
    let out = args.out.display();
    let done = load(&inputs, &args.out, &options, &tell);
    drop(shown_step);
    if let Err(wherefore_graph::Error::TooManyErrors { first, .. }) = &done {
        show_mistakes(first.iter().map(String::as_str), output);
    }
    let report = done.with_context(|| format!("cannot build the graph `{out}`"))?;
    show_mistakes(report.mistakes.iter().map(ToString::to_string), output);
    if report.counts.malformed > report.mistakes.len() as u64 {
        let rest = report.counts.malformed - report.mistakes.len() as u64;
        output.note("warning", &format!("{rest} more malformed lines"));
    }
    for note in &report.notes {
        output.note("warning", note);
    }
    if output.json {
        output.print_json(&Report::new(args.out.clone(), &report))?;
    } else if !output.quiet {
        output.print(&written(args, &report, output))?;
    }
    Ok(Exit::Done)
}

fn label(step: LoadStep) -> &'static str {
    match step {
        LoadStep::Reading => "reading",
        LoadStep::Merging => "merging names",
        LoadStep::Sorting => "sorting triples",
        LoadStep::Naming => "indexing names",
    }
}

fn show_mistakes(mistakes: impl Iterator<Item = impl AsRef<str>>, output: &Output) {
    for mistake in mistakes {
        output.note("malformed", mistake.as_ref());
    }
}

/// `HEAD,RELATION,TAIL`.
fn columns(text: &str) -> Result<[String; 3], UserError> {
    let parts: Vec<String> = text.split(',').map(|c| c.trim().to_owned()).collect();
    <[String; 3]>::try_from(parts).map_err(|parts| UserError {
        code: "usage",
        message: format!(
            "`--columns` needs three columns, and `{text}` has {}",
            parts.len()
        ),
        hint: "write numbers or header names, for example `--columns 1,2,3`".into(),
    })
}

/// The report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    graph: PathBuf,
    #[serde(flatten)]
    counts: &'a Counts,
    bytes: u64,
    spilled_chunks: usize,
    seconds: f64,
    malformed_lines: Vec<String>,
    notes: &'a [String],
}

impl<'a> Report<'a> {
    fn new(graph: PathBuf, report: &'a LoadReport) -> Self {
        Self {
            graph,
            counts: &report.counts,
            bytes: report.bytes,
            spilled_chunks: report.spilled,
            seconds: report.time.as_secs_f64(),
            malformed_lines: report.mistakes.iter().map(ToString::to_string).collect(),
            notes: &report.notes,
        }
    }
}

fn written(args: &Load, report: &LoadReport, output: &Output) -> String {
    let counts = &report.counts;
    let human = |n: u64| indicatif::HumanCount(n).to_string();
    let graph = args.out.display().to_string();
    let mut text = format!(
        "{} {}: {} triples, {} entities, {} relations\n",
        output.green("✓"),
        output.bold(&shown(&graph)),
        human(counts.triples),
        human(counts.entities),
        human(counts.relations),
    );
    let mut dropped = Vec::new();
    if counts.duplicates > 0 {
        dropped.push(format!("{} duplicates dropped", human(counts.duplicates)));
    }
    if counts.malformed > 0 {
        dropped.push(
            counted(
                counts.malformed as usize,
                "malformed line",
                "malformed lines",
            ) + " passed over",
        );
    }
    if counts.unnamed > 0 {
        dropped.push(format!("{} entities without a name", human(counts.unnamed)));
    }
    dropped.push(format!(
        "{} on disk, {:.1} s, {} lines a second",
        indicatif::HumanBytes(report.bytes),
        report.time.as_secs_f64(),
        human(((counts.triples + counts.duplicates) as f64 / report.time.as_secs_f64()) as u64)
    ));
    text += &(output.dim(&dropped.join("; ")) + "\n");
    text + &output.dim(&format!(
        "next: wherefore info {graph}, or wherefore ask {graph} 'your question'"
    )) + "\n"
}

/// For clap: a format by its name.
pub(crate) fn parse_format(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| {
        let names: Vec<_> = Format::NAMES.iter().map(|(f, _)| f.name()).collect();
        format!("the formats are {}", names.join(", "))
    })
}

/// For clap: a number of bytes such as `512M` or `4G`.
pub(crate) fn parse_memory(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err("write it like `512M` or `4G`".into()),
    };
    let number: f64 = digits.parse().map_err(|_| "write it like `512M` or `4G`")?;
    let bytes = number * f64::from(1u32 << shift);
    if !(64.0 * 1024.0 * 1024.0..=1e15).contains(&bytes) {
        return Err("at least 64M are needed".into());
    }
    Ok(bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_with_its_unit() {
        assert_eq!(parse_memory("4G"), Ok(4 << 30));
        assert_eq!(parse_memory("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_memory("100m"), Ok(100 << 20));
        assert_eq!(parse_memory("67108864"), Ok(64 << 20));
        for bad in ["", "G", "4T", "-1G", "63M", "NaNG", "1e99"] {
            assert!(parse_memory(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn columns_are_three() {
        assert_eq!(columns("1, 2,tail").unwrap(), ["1", "2", "tail"]);
        assert!(columns("1,2").is_err());
    }
}
