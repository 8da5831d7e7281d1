//! `wherefore verify`: does a saved answer still hold?

use anyhow::Context;
use serde::Serialize;
use std::path::PathBuf;
use wherefore::answer::{Answer, Status};
use wherefore::verify::{
    AnswerCheck, Check, CheckOutcome, EvidenceState, PublicKey, Saved, Verification, verify_saved,
};

use super::read_text;
use crate::args::Consent;
use crate::errors::{Exit, UserError};
use crate::open::open;
use crate::output::{Arrows, Output, counted, shown};

/// Check a saved answer against a graph: all that it shows, and that nobody changed it
///
/// Every triple is looked up, every name is compared with its identity, what was counted or ranked
/// is computed again. A digest shows whether the file was changed; only a signature shows who wrote
/// it. Exit status 1 means that an answer does not hold.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore ask @toy 'Whose mascot is Lou Seal?' --json > answer.json
  wherefore verify answer.json --graph @toy
  wherefore verify signed.json --graph @toy --key answers.key.pub")]
pub(crate) struct Verify {
    /// An answer saved from `wherefore ask --json`, or `-` to read it from standard input
    pub(crate) answer: PathBuf,
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    #[arg(long)]
    pub(crate) graph: String,
    /// The public key that must have signed the answer
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// The largest answer that is read.
pub(super) const MAX_ANSWER_BYTES: u64 = 64 << 20;

pub(crate) fn run(args: &Verify, output: &Output) -> anyhow::Result<Exit> {
    let path = args.answer.display();
    let text = read_text(&args.answer, MAX_ANSWER_BYTES)?;
    let key = args.key.as_deref().map(PublicKey::open).transpose()?;
    let saved = Saved::from_json(&text)
        .map_err(|e| UserError {
            code: "not-an-answer",
            message: e.to_string(),
            hint: "save one with `wherefore ask GRAPH QUESTION --json > answer.json`".into(),
        })
        .with_context(|| format!("`{path}` is not an answer"))?;
    let graph = open(&args.graph, args.consent.trust())?;
    let verification = verify_saved(&saved, graph.as_ref(), key.as_ref())?;
    let answer = &saved.answer;
    if output.json {
        output.print_json(&report(answer, &verification))?;
    } else {
        output.print(&written(answer, &verification, output))?;
    }
    Ok(if verification.holds {
        Exit::Done
    } else {
        Exit::No
    })
}

/// The verification with what it speaks of.
#[derive(Serialize)]
struct Report<'a> {
    question: &'a str,
    holds: bool,
    answers: &'a [AnswerCheck],
    evidence: Vec<EvidenceReport<'a>>,
    checks: &'a [Check],
}

#[derive(Serialize)]
struct EvidenceReport<'a> {
    head: &'a str,
    relation: &'a str,
    tail: &'a str,
    state: EvidenceState,
}

fn report<'a>(answer: &'a Answer, verification: &'a Verification) -> Report<'a> {
    Report {
        question: &answer.question,
        holds: verification.holds,
        answers: &verification.answers,
        evidence: answer
            .evidence
            .iter()
            .zip(&verification.evidence)
            .map(|(e, &state)| EvidenceReport {
                head: &e.head,
                relation: &e.relation,
                tail: &e.tail,
                state,
            })
            .collect(),
        checks: &verification.checks,
    }
}

/// The verification for people: each answer, its rationale, what else is gone, and what was checked
/// of the file as a whole.
fn written(answer: &Answer, verification: &Verification, output: &Output) -> String {
    let mark = |good| {
        if good {
            output.green("✓")
        } else {
            output.red("✗")
        }
    };
    let mut arrows = Arrows::default();
    let mut triple = |i: usize| {
        let state = verification.evidence[i];
        let arrow = arrows.arrow(&answer.evidence[i], output);
        let remark = match state {
            EvidenceState::Found => "",
            EvidenceState::Renamed => "  (called otherwise in the graph)",
            EvidenceState::Gone => "  (not in the graph)",
        };
        let mark = mark(state == EvidenceState::Found);
        format!("{mark} {arrow}{remark}\n")
    };
    let mut text = String::new();
    let mut in_rationale = vec![false; answer.evidence.len()];
    for (check, entity) in verification.answers.iter().zip(&answer.answers) {
        let verdict = match &check.reason {
            None => "holds".to_owned(),
            Some(reason) => format!("does not hold: {}", shown(reason)),
        };
        text += &format!("{} {verdict}\n", output.bold(&shown(&check.name)));
        for &i in &entity.rationale {
            if i < in_rationale.len() && !in_rationale[i] {
                in_rationale[i] = true;
                text += &format!("  {}", triple(i));
            }
        }
    }
    let missing: Vec<usize> = (0..in_rationale.len())
        .filter(|&i| !in_rationale[i] && verification.evidence[i] != EvidenceState::Found)
        .collect();
    if !missing.is_empty() {
        text += "Evidence beside the rationales that changed\n";
        for i in missing {
            text += &format!("  {}", triple(i));
        }
    }
    if answer.status == Status::Abstained {
        text += "The answer abstained, so there is nothing to prove\n";
    }
    for check in &verification.checks {
        text += &checked(check, output);
    }
    let found = verification
        .evidence
        .iter()
        .filter(|s| **s == EvidenceState::Found)
        .count();
    let all = counted(verification.evidence.len(), "triple", "triples");
    text + &output.dim(&format!("{found} of {all} found in the graph")) + "\n"
}

/// A line for what failed, and for what could not be checked; what passed says so in `--json`.
fn checked(check: &Check, output: &Output) -> String {
    let subject = match serde_json::to_value(check.subject) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    };
    let detail = shown(&check.detail);
    let is_seal = matches!(
        check.subject,
        wherefore::verify::Subject::Digest | wherefore::verify::Subject::Signature
    );
    match check.outcome {
        CheckOutcome::Failed => format!("{} {subject}: {detail}\n", output.red("✗")),
        CheckOutcome::Passed if is_seal => {
            format!("{} {subject}: {detail}\n", output.green("✓"))
        }
        CheckOutcome::Passed => String::new(),
        CheckOutcome::Noted => output.dim(&format!("· {subject}: {detail}")) + "\n",
    }
}
