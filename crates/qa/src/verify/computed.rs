//! Computed answers are computed again: counts, comparisons and extremes prove nothing by
//! themselves.
//!
//! An answer says how it was computed by its logical form, which runs again, in the whole graph and
//! not in the evidence, which may be cut short.

use std::collections::{HashMap, HashSet};

use wherefore_graph::{EntityId, Graph};

use super::check::{Check, Subject};
use crate::answer::Answer;
use crate::error::Result;
use crate::logic::{self, Form, Moment, Outcome, RunLimits, run};

/// What a logical form gives.
#[derive(Debug, Default)]
pub(super) struct Recomputed {
    /// The number, or yes or no, if one is computed: as it is shown, and its identity.
    pub(super) value: Option<(String, String)>,
    /// Labels of what is given, by identity.
    pub(super) entities: HashMap<String, String>,
}

/// What is computed again, or why it cannot be; none if the answer does not say how it was
/// computed.
pub(super) fn recomputed(
    answer: &Answer,
    graph: &dyn Graph,
    checks: &mut Vec<Check>,
) -> Result<Option<Result<Recomputed, String>>> {
    if answer.logical_form.is_none() {
        for (subject, text) in [
            (Subject::Sparql, &answer.sparql),
            (Subject::Reading, &answer.reading),
        ] {
            if text.is_some() {
                checks.push(Check::failed(
                    subject,
                    "there is no logical form that it tells",
                ));
            }
        }
    }
    if answer.logical_form.is_none() && answer.table.is_some() {
        let detail = "there is no logical form that gives it";
        checks.push(Check::failed(Subject::Table, detail));
    }
    match &answer.logical_form {
        Some(form) => by_form(form, answer, graph, checks).map(Some),
        None => Ok(None),
    }
}

fn by_form(
    text: &str,
    answer: &Answer,
    graph: &dyn Graph,
    checks: &mut Vec<Check>,
) -> Result<Result<Recomputed, String>> {
    let read = text.parse::<Form>().and_then(|form| {
        let plan = logic::Plan::new(&form, graph, Moment::now())?;
        Ok((form, plan))
    });
    let (form, plan) = match read {
        Ok(read) => read,
        Err(crate::error::Error::Graph(error)) => return Err(error.into()),
        Err(error) => {
            checks.push(Check::failed(Subject::Form, &error.to_string()));
            return Ok(Err(format!("the logical form cannot be run: {error}")));
        }
    };
    if form.to_string() != text {
        let detail = "it is not written as logical forms are";
        checks.push(Check::failed(Subject::Form, detail));
    }
    if let Some(sparql) = &answer.sparql {
        let is_same = is_same_query(&plan.sparql(), sparql, names_now(text), graph);
        checks.push(if is_same {
            Check::passed(Subject::Sparql, "it is the translation of the logical form")
        } else {
            let detail = "it is not the translation of the logical form in this graph";
            Check::failed(Subject::Sparql, detail)
        });
    }
    if let Some(reading) = &answer.reading {
        let english = form.english(graph)?;
        checks.push(if english == *reading {
            Check::passed(Subject::Reading, "it is what the logical form says")
        } else {
            let detail = format!("the logical form says `{english}` in this graph");
            Check::failed(Subject::Reading, &detail)
        });
    }
    if !plan.missing().is_empty() {
        let reason = format!("the graph has no {}", plan.missing().join(", no "));
        checks.push(Check::failed(Subject::Form, &reason));
        return Ok(Err(reason));
    }
    let outcome = run(&plan, graph, &RunLimits::default())?;
    checks.push(Check::passed(Subject::Form, "it was run again"));
    let told = match (&outcome, &answer.table) {
        (Outcome::Table(rows), Some(saved)) => Some(rows.told(graph, saved.rows.len())?),
        _ => None,
    };
    if answer.table != told {
        let detail = "it is not what the logical form gives";
        checks.push(Check::failed(Subject::Table, detail));
    } else if told.is_some() {
        checks.push(Check::passed(
            Subject::Table,
            "it is what the logical form gives",
        ));
    }
    let value = outcome.computed();
    let given = match (&value, &outcome) {
        (Some(_), _) | (None, Outcome::Number(..)) => &[],
        (None, other) => other.entities(),
    };
    Ok(Ok(Recomputed {
        value,
        entities: labelled(given, answer, graph)?,
    }))
}

/// The labels of those entities that the answer gives.
fn labelled(
    given: &[EntityId],
    answer: &Answer,
    graph: &dyn Graph,
) -> Result<HashMap<String, String>> {
    let wanted: HashSet<&str> = answer.answers.iter().map(|a| a.id.as_str()).collect();
    let mut labels = HashMap::new();
    for &entity in given {
        let id = graph.entity_term(entity)?.to_string();
        if wanted.contains(id.as_str()) {
            labels.insert(id, graph.entity_label(entity)?.into_owned());
        }
    }
    Ok(labels)
}

/// Whether a form speaks of the time at which it is run.
fn names_now(form: &str) -> bool {
    form.split(['(', ')', ' ']).any(|word| word == "NOW")
}

fn is_same_query(made: &str, saved: &str, now: bool, graph: &dyn Graph) -> bool {
    // the time at which it was run stands in the query
    let timeless = |query: &str| query.replace(|c: char| now && c.is_ascii_digit(), "0");
    if timeless(made) == timeless(saved) {
        return true;
    }
    // a service's entities are numbered as they are met, and several of one name come in that order
    let is_service = graph.store().is_none() && graph.identity().is_some();
    let words = |query: &str| {
        let query = timeless(query);
        let mut words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
        words.sort_unstable();
        words
    };
    is_service && words(made) == words(saved)
}
