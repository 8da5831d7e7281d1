//! What words may stand for that refer to the last answer: the answers, or what they were about.

use std::rc::Rc;
use std::time::Duration;

use wherefore_graph::{EntityId, Graph};

use super::super::schema::entity_kind;
use super::super::vocabulary::Kind;
use super::cues::Wanted;
use super::form_parts::{named, names, operand};
use crate::error::Result;
use crate::logic::{Form, MAX_FORM_BYTES, Moment, Number, Outcome, Plan, RunLimits, Runner};
use crate::question::{Follow, MAX_CARRIED};
use crate::verify::names::entities_with_id;

/// The last form is run for at most so long, and to sets of at most so many.
const TIME: Duration = Duration::from_millis(500);
const ROWS: usize = 100_000;
/// An identity or name that is longer is none.
const LONGEST: usize = 4096;
/// Names that are told.
const TOLD: usize = 3;

/// Things that words may stand for.
#[derive(Clone, Debug)]
pub(super) struct Referent {
    /// Sorted.
    pub(super) members: Rc<[EntityId]>,
    /// As it stands below a set operator.
    pub(super) form: Form,
    /// Their names.
    pub(super) told: String,
}

/// The last form, as far as it is one.
pub(super) fn last_form(last: &Follow) -> Option<Form> {
    let text = last.logical_form.as_ref();
    text.filter(|text| text.len() <= MAX_FORM_BYTES)?
        .parse()
        .ok()
}

/// What words may stand for, the likeliest first.
pub(super) fn referents(
    last: &Follow,
    wanted: Wanted,
    graph: &dyn Graph,
    time: Duration,
) -> Result<Vec<Referent>> {
    let form = last_form(last);
    let answers = things(last, graph)?;
    let limits = RunLimits {
        time: time.min(TIME),
        rows: ROWS,
        ..RunLimits::default()
    };
    let mut found: Vec<Referent> = Vec::new();
    let mut add = |referent: Option<Referent>| {
        if let Some(referent) = referent
            && !found.iter().any(|f| f.members == referent.members)
            && (wanted != Wanted::Pair || referent.members.len() == 2)
        {
            found.push(referent);
        }
    };
    let given = match answers.is_empty() {
        true => None,
        false => {
            let form = form
                .as_ref()
                .filter(|_| wanted != Wanted::One || answers.len() > 1);
            Some(answered(&answers, last, form, graph, &limits)?)
        }
    };
    let first = wanted != Wanted::One || answers.len() == 1;
    if first {
        add(given.clone());
    }
    let (counted, measured) = match &form {
        Some(form) => about(form, answers.is_empty()),
        None => (None, None),
    };
    let run = |set: Option<Form>| match set {
        Some(set) => carried(set, graph, &limits),
        None => Ok(None),
    };
    if wanted != Wanted::One {
        add(run(counted.clone())?);
    }
    add(run(measured)?);
    let topics = match &form {
        Some(form) => topics(form, last, graph)?,
        None => Vec::new(),
    };
    if wanted != Wanted::One && topics.len() > 1 {
        let all: Vec<EntityId> = topics.iter().flatten().copied().collect();
        add(Some(of(all, graph)?));
    }
    for topic in topics {
        add(Some(of(topic, graph)?));
    }
    if wanted == Wanted::One {
        add(run(counted)?);
    }
    if !first {
        add(given);
    }
    Ok(found)
}

/// The answers that are things of the graph, sorted.
fn things(last: &Follow, graph: &dyn Graph) -> Result<Vec<EntityId>> {
    let some = || {
        let carried = last.answers.iter().take(MAX_CARRIED);
        carried.filter(|a| a.id.len() <= LONGEST && a.name.len() <= LONGEST)
    };
    let texts: Vec<&str> = some().map(|a| a.id.as_str()).collect();
    graph.prefetch_names(&texts)?;
    let mut found = Vec::new();
    for answer in some() {
        for entity in entities_with_id(&answer.id, &answer.name, graph)? {
            if entity_kind(entity, graph)? == Kind::Thing {
                found.push(entity);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The answers as what the last form gives, where it gives the same, so that they are proved again;
/// else each by its name.
fn answered(
    answers: &[EntityId],
    last: &Follow,
    form: Option<&Form>,
    graph: &dyn Graph,
    limits: &RunLimits,
) -> Result<Referent> {
    let set = match form {
        Some(Form::Table(table)) => Some(operand(&table.of, true)),
        Some(form) => Some(operand(form, false)),
        None => None,
    };
    if let Some(set) = set
        && let Some(found) = carried(set, graph, limits)?
        && (answers.iter()).all(|a| found.members.binary_search(a).is_ok())
        && (found.members.len() == answers.len() || last.answers.len() >= MAX_CARRIED)
    {
        return Ok(found);
    }
    of(answers.to_vec(), graph)
}

/// What the last question counted, and what a value that it gave was the value of.
fn about(form: &Form, is_value: bool) -> (Option<Form>, Option<Form>) {
    match form {
        Form::Number(Number::Count(set) | Number::Of(_, set, _)) => {
            (Some(operand(set, true)), None)
        }
        Form::Join(_, of) if is_value => (None, Some(operand(of, false))),
        _ => (None, None),
    }
}

/// The things that a form names, in the order of the last question.
fn topics(form: &Form, last: &Follow, graph: &dyn Graph) -> Result<Vec<Vec<EntityId>>> {
    let asked = last.question.to_lowercase();
    let mut found = Vec::new();
    for (name, mut all) in names(form, graph)? {
        let mut things = Vec::new();
        all.truncate(MAX_CARRIED);
        for entity in all {
            if entity_kind(entity, graph)? == Kind::Thing {
                things.push(entity);
            }
        }
        let Some(&first) = things.first() else {
            continue;
        };
        let label = graph.entity_label(first)?.to_lowercase();
        let place = asked.find(&label).or(asked.find(&name.to_lowercase()));
        found.push((place.unwrap_or(usize::MAX), things));
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, things)| things).collect())
}

/// What a form gives, where it is a set of things.
fn carried(set: Form, graph: &dyn Graph, limits: &RunLimits) -> Result<Option<Referent>> {
    // what is carried over comes from outside: names and values may be any
    let Ok(plan) = Plan::new(&set, graph, Moment::now()) else {
        return Ok(None);
    };
    let Ok(mut runner) = Runner::new(&plan, graph, limits) else {
        return Ok(None);
    };
    let Some(Outcome::Entities(members)) = runner.run_within_limits()? else {
        return Ok(None);
    };
    let is_thing = match members.first() {
        Some(&first) => entity_kind(first, graph)? == Kind::Thing,
        None => false,
    };
    if !is_thing {
        return Ok(None);
    }
    Ok(Some(Referent {
        told: told(&members, graph)?,
        members: members.into(),
        form: set,
    }))
}

fn of(mut things: Vec<EntityId>, graph: &dyn Graph) -> Result<Referent> {
    things.sort_unstable();
    things.dedup();
    Ok(Referent {
        form: named(&things, graph)?,
        told: told(&things, graph)?,
        members: things.into(),
    })
}

/// The names of some things.
pub(super) fn told(things: &[EntityId], graph: &dyn Graph) -> Result<String> {
    let mut names = Vec::new();
    for &thing in things.iter().take(TOLD) {
        names.push(graph.entity_label(thing)?.into_owned());
    }
    let more = things.len() - names.len();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let last = names.pop().unwrap_or_default();
    Ok(match names.is_empty() {
        true => last,
        false => format!("{} and {last}", names.join(", ")),
    })
}
