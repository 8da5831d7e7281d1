//! `wherefore diff`: which saved questions have another answer since the graph was changed, and
//! which triples did it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use wherefore::Question;
use wherefore::answer::{Answer, Evidence};
use wherefore::verify::{EvidenceState, verify};
use wherefore_graph::{Graph, Store};
use wherefore_lab::questions;

use super::{Wanted, config_for};
use crate::args::{Consent, methods, question_format};
use crate::errors::{Exit, UserError};
use crate::open::open;
use crate::output::{Output, counted, shown};

/// Tell which questions change their answer, and by which triple
///
/// The graph with its pending changes is compared with its files, which do not have them, or with
/// another graph. Exit status 1 means that some question has another answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore add new.nt --graph movies
  wherefore diff --graph movies --questions saved.jsonl
  wherefore diff --graph movies --against movies-of-may --questions saved.jsonl --method similarity")]
pub(crate) struct Diff {
    /// The graph as it is now
    #[arg(long, value_name = "GRAPH")]
    graph: String,
    /// The graph as it was; the files of `--graph` without its change log if none is given
    #[arg(long, value_name = "GRAPH")]
    against: Option<String>,
    /// The saved questions, in any format of `wherefore eval`
    #[arg(long, value_name = "FILE")]
    questions: PathBuf,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = question_format)]
    format: Option<questions::Format>,
    /// The method, with its usual settings
    #[arg(long, value_name = "NAME", value_parser = methods(), conflicts_with = "config")]
    method: Option<String>,
    /// The method and its settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A checkpoint made by `wherefore train`
    #[arg(long, value_name = "CKPT")]
    model: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

/// A question whose answer changed.
#[derive(Debug, PartialEq, Serialize)]
struct Changed {
    id: String,
    question: String,
    before: Vec<String>,
    after: Vec<String>,
    /// Triples of the new evidence that the old graph does not state.
    added: Vec<[String; 3]>,
    /// Triples of the old evidence that the new graph does not state.
    removed: Vec<[String; 3]>,
}

#[derive(Serialize)]
struct Report<'a> {
    questions: usize,
    changed: &'a [Changed],
}

pub(crate) fn run(args: &Diff, output: &Output) -> anyhow::Result<Exit> {
    let path = args.questions.display();
    let asked = questions::read(&args.questions, args.format)
        .with_context(|| format!("cannot read the questions `{path}`"))?;
    let after = open(&args.graph, args.consent.trust())?;
    let before: Box<dyn Graph> = match (&args.against, after.store()) {
        (Some(other), _) => open(other, args.consent.trust())?,
        (None, Some(store)) => files_of(store, &args.graph)?,
        (None, None) => return Err(no_changes(&args.graph).into()),
    };
    let config = config_for(
        &Wanted {
            config: args.config.as_deref(),
            method: args.method.as_deref(),
            model: args.model.as_deref(),
            llm: false,
        },
        output,
    )?;
    // what a pipeline keeps for a graph is kept for each of the two
    let (old, new) = (config.build()?, config.build()?);
    let mut changed = Vec::new();
    for question in &asked {
        let question = match question.topics.is_empty() {
            true => question.without_topics(),
            false => question.with_gold_topics(),
        };
        let ask = |pipeline: &wherefore::Pipeline, graph: &dyn Graph| {
            match pipeline.answer(&question, graph, &mut ()) {
                // a topic that came or went is a change like any other
                Err(wherefore::Error::NoSuchTopic { .. }) => Ok(Answer::default()),
                answer => answer,
            }
        };
        let was = ask(&old, before.as_ref())?;
        let is = ask(&new, after.as_ref())?;
        changed.extend(compared(
            &question,
            &was,
            &is,
            before.as_ref(),
            after.as_ref(),
        )?);
    }
    if output.json {
        output.print_json(&Report {
            questions: asked.len(),
            changed: &changed,
        })?;
    } else {
        let mut text = String::new();
        for change in &changed {
            text += &told(change, output);
        }
        let all = counted(asked.len(), "question", "questions");
        text += &format!("{} of {all} have another answer\n", changed.len());
        output.print(&text)?;
    }
    Ok(match changed.is_empty() {
        true => Exit::Done,
        false => Exit::No,
    })
}

fn files_of(store: &Store, name: &str) -> anyhow::Result<Box<dyn Graph>> {
    match store.pending() {
        Some(_) => Ok(Box::new(store.files_only()?)),
        None => Err(no_changes(name).into()),
    }
}

fn no_changes(name: &str) -> UserError {
    UserError {
        code: "no-changes",
        message: format!("the graph `{name}` has no pending changes to compare"),
        hint: "name the graph as it was with `--against GRAPH`".into(),
    }
}

/// The difference, if the answers differ as sets.
fn compared(
    question: &Question,
    was: &Answer,
    is: &Answer,
    before: &dyn Graph,
    after: &dyn Graph,
) -> anyhow::Result<Option<Changed>> {
    let ids = |answer: &Answer| -> BTreeSet<String> {
        answer.answers.iter().map(|a| a.id.clone()).collect()
    };
    if ids(was) == ids(is) {
        return Ok(None);
    }
    let names = |answer: &Answer| answer.answers.iter().map(|a| a.name.clone()).collect();
    Ok(Some(Changed {
        id: question.id.clone(),
        question: question.text.clone(),
        before: names(was),
        after: names(is),
        added: not_stated(is, &ids(was), before)?,
        removed: not_stated(was, &ids(is), after)?,
    }))
}

/// Triples of an answer's evidence that another graph does not state: those that prove what only
/// this answer gives, or else any.
fn not_stated(
    answer: &Answer,
    others: &BTreeSet<String>,
    graph: &dyn Graph,
) -> anyhow::Result<Vec<[String; 3]>> {
    let states = verify(answer, graph)?.evidence;
    let gone = |i: &usize| states.get(*i) == Some(&EvidenceState::Gone);
    let own = answer.answers.iter().filter(|a| !others.contains(&a.id));
    let proving: BTreeSet<usize> = (own.flat_map(|a| &a.rationale).copied())
        .filter(gone)
        .collect();
    let chosen: Vec<usize> = match proving.is_empty() {
        true => (0..answer.evidence.len()).filter(gone).collect(),
        false => proving.into_iter().collect(),
    };
    let triple = |e: &Evidence| [e.head.clone(), e.relation.clone(), e.tail.clone()];
    Ok(chosen
        .iter()
        .map(|&i| triple(&answer.evidence[i]))
        .collect())
}

fn told(change: &Changed, output: &Output) -> String {
    let list = |names: &[String]| match names {
        [] => "no answer".to_owned(),
        names => names
            .iter()
            .map(|n| shown(n))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut text = format!("{}\n", output.bold(&shown(&change.question)));
    text += &format!(
        "  was {}\n  is  {}\n",
        list(&change.before),
        list(&change.after)
    );
    for (triples, sign) in [
        (&change.removed, output.red("−")),
        (&change.added, output.green("+")),
    ] {
        for [head, relation, tail] in triples {
            text += &format!(
                "  {sign} {} → {} → {}\n",
                shown(head),
                shown(relation),
                shown(tail)
            );
        }
    }
    if change.added.is_empty() && change.removed.is_empty() {
        text += &output.dim("  no triple of its evidence came or went: others did\n");
    }
    text
}
