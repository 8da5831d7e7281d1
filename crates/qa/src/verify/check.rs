//! One thing that is checked of a saved answer.

use serde::{Deserialize, Serialize};

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub subject: Subject,
    /// How it came out.
    pub outcome: CheckOutcome,
    /// What was found, in words.
    pub detail: String,
}

/// What can be checked of an answer as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// Whether it answered or abstained.
    Status,
    /// Its triples.
    Evidence,
    /// The entities that the question was tied to.
    Links,
    /// Indices of its trace.
    Trace,
    /// Its logical form.
    Form,
    /// The form in SPARQL.
    Sparql,
    /// The form in words.
    Reading,
    /// Its table.
    Table,
    /// Its prose.
    Text,
    /// Other answers to the same question.
    Others,
    /// Whether this is the graph that was asked.
    Graph,
    /// Whether the file was changed.
    Digest,
    /// Who signed it.
    Signature,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckOutcome {
    /// It is as it should be.
    Passed,
    /// It is not, and the answer does not hold.
    Failed,
    /// It could not be checked, and says nothing against the answer.
    Noted,
}

impl Check {
    pub(super) fn new(subject: Subject, outcome: CheckOutcome, detail: &str) -> Self {
        Self {
            subject,
            outcome,
            detail: detail.to_owned(),
        }
    }

    pub(super) fn passed(subject: Subject, detail: &str) -> Self {
        Self::new(subject, CheckOutcome::Passed, detail)
    }

    pub(super) fn failed(subject: Subject, detail: &str) -> Self {
        Self::new(subject, CheckOutcome::Failed, detail)
    }

    pub(super) fn noted(subject: Subject, detail: &str) -> Self {
        Self::new(subject, CheckOutcome::Noted, detail)
    }

    /// Whether it says nothing against the answer.
    pub fn holds(&self) -> bool {
        self.outcome != CheckOutcome::Failed
    }
}
