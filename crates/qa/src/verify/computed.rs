//! Computed answers are computed again: counts, comparisons and extremes prove nothing by
//! themselves.
//!
//! An answer says how it was computed by its logical form, which runs again, or by its
//! [`Computation`]: the plan of relations that was walked, and what was then done with the ends.
//! A plan is walked in the whole graph, and not in the evidence, which may be cut short.

use std::collections::{HashMap, HashSet};

use wherefore_graph::{EntityId, Graph, Hop, RelationId, Triple};

use super::names::entities_with_id;
use super::triples::relation_with_id;
use super::{Check, Subject, count_id};
use crate::answer::{Answer, Computation, Operation, RelationPath, RelationStep, TypeTest};
use crate::error::Result;
use crate::logic::{self, Form, Moment, Outcome, RunLimits, run};
use crate::measure::{self, Places};
use crate::retrieve::{Plan, follow_plan};

/// Steps that are walked for one computation at most.
pub(crate) const MAX_STEPS: usize = 1_000_000;

/// The most paths, steps of a path, and operations that are read from a saved answer.
const MAX_PARTS: usize = 16;

/// The most things among which is chosen, and the last place that can be asked for.
const MAX_CHOICE: usize = 1_000_000;

/// What a computation gives.
#[derive(Debug, Default)]
pub(super) struct Recomputed {
    /// How it is called in reasons: `the logical form` or `the computation`.
    pub(super) by: &'static str,
    /// The number, or yes or no, if one is computed: as it is shown, and its identity.
    pub(super) value: Option<(String, String)>,
    /// Labels of what is given, by identity.
    pub(super) entities: HashMap<String, String>,
    /// The triples that were walked, where these alone can prove it.
    pub(super) walked: Option<HashSet<Triple>>,
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
    Ok(match (&answer.logical_form, &answer.computation) {
        (Some(form), None) => Some(by_form(form, answer, graph, checks)?),
        (None, Some(computation)) => {
            let given = by_plan(computation, answer, graph)?;
            checks.push(match &given {
                Ok(_) => Check::passed(Subject::Computation, "it was walked and computed again"),
                Err(reason) => Check::failed(Subject::Computation, reason),
            });
            Some(given)
        }
        (Some(_), Some(_)) => {
            let reason = "the file has a logical form and a computation, and can have one only";
            checks.push(Check::failed(Subject::Computation, reason));
            Some(Err(reason.to_owned()))
        }
        (None, None) => None,
    })
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
        by: "the logical form",
        value,
        entities: labelled(given, answer, graph)?,
        walked: None,
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

/// How a plan is written into an answer.
pub(crate) fn written(plan: &Plan, graph: &dyn Graph) -> Result<Computation> {
    let entity = |id: EntityId| -> Result<String> { Ok(graph.entity_term(id)?.to_string()) };
    let relation = |id: RelationId| -> Result<String> { Ok(graph.relation_term(id)?.to_string()) };
    let path = |topic: EntityId, hops: &[Hop]| -> Result<RelationPath> {
        let step = |hop: &Hop| -> Result<RelationStep> {
            Ok(RelationStep {
                relation: relation(hop.relation)?,
                forward: hop.forward,
            })
        };
        Ok(RelationPath {
            topic: entity(topic)?,
            relations: hops.iter().map(step).collect::<Result<_>>()?,
        })
    };
    let mut paths = Vec::new();
    if plan.among.is_empty() {
        paths.push(path(plan.topic, &plan.hops)?);
        for (topic, hops) in &plan.also {
            paths.push(path(*topic, hops)?);
        }
    }
    let mut operations = Vec::with_capacity(plan.then.len());
    for operation in &plan.then {
        operations.push(match *operation {
            measure::Operation::Keep {
                relation: of,
                comparison,
                bound,
            } => Operation::Keep {
                relation: relation(of)?,
                comparison,
                bound,
            },
            measure::Operation::Extreme {
                relation: of,
                most,
                places,
            } => Operation::Extreme {
                relation: relation(of)?,
                most,
                from: places.from,
                many: places.many,
            },
            measure::Operation::Count => Operation::Count,
        });
    }
    let of_type = match plan.kind {
        Some((of, class)) => Some(TypeTest {
            relation: relation(of)?,
            class: entity(class)?,
        }),
        None => None,
    };
    Ok(Computation {
        paths,
        among: plan
            .among
            .iter()
            .map(|&e| entity(e))
            .collect::<Result<_>>()?,
        of_type,
        operations,
    })
}

/// The triples that a plan walks in the whole graph, and its ends that have a name; none if there
/// are more than [`MAX_STEPS`] steps.
pub(crate) fn reached(
    plan: &Plan,
    graph: &dyn Graph,
) -> Result<Option<(Vec<Triple>, Vec<EntityId>)>> {
    let (triples, ends, whole) = follow_plan(plan, graph, MAX_STEPS)?;
    if !whole {
        return Ok(None);
    }
    let mut named = Vec::with_capacity(ends.len());
    for end in ends {
        if graph.is_named(end)? {
            named.push(end);
        }
    }
    Ok(Some((triples, named)))
}

fn by_plan(
    computation: &Computation,
    answer: &Answer,
    graph: &dyn Graph,
) -> Result<Result<Recomputed, String>> {
    let reader = Reader { answer, graph };
    let plan = match reader.plan(computation)? {
        Ok(plan) => plan,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some((triples, ends)) = reached(&plan, graph)? else {
        return Ok(Err(format!("it takes more than {MAX_STEPS} steps")));
    };
    let (left, number) = measure::apply(&plan.then, ends, graph)?;
    let given = match number {
        Some(_) => &[],
        None => left.as_slice(),
    };
    Ok(Ok(Recomputed {
        by: "the computation",
        value: number.map(|number| (number.to_string(), count_id(number))),
        entities: labelled(given, answer, graph)?,
        walked: Some(triples.into_iter().collect()),
    }))
}

/// Reads a plan out of a saved answer, which may say anything.
struct Reader<'a> {
    answer: &'a Answer,
    graph: &'a dyn Graph,
}

impl Reader<'_> {
    fn plan(&self, saved: &Computation) -> Result<Result<Plan, String>> {
        let long = saved.paths.len() > MAX_PARTS
            || saved.operations.len() > MAX_PARTS
            || saved.among.len() > MAX_CHOICE
            || saved.paths.iter().any(|p| p.relations.len() > MAX_PARTS);
        if long {
            return Ok(Err("it is longer than any that is made".into()));
        }
        let walks = saved.paths.iter().all(|p| !p.relations.is_empty());
        if saved.operations.is_empty() || saved.paths.is_empty() == saved.among.is_empty() || !walks
        {
            return Ok(Err("it does not say what is computed from what".into()));
        }
        let mut missing = Vec::new();
        let mut ways = Vec::new();
        for path in &saved.paths {
            let topic = self.entity(&path.topic, &mut missing)?;
            let mut hops = Vec::with_capacity(path.relations.len());
            for step in &path.relations {
                hops.push(Hop {
                    relation: self.relation(&step.relation, &mut missing)?,
                    forward: step.forward,
                });
            }
            ways.push((topic, hops));
        }
        let mut among = Vec::with_capacity(saved.among.len());
        for id in &saved.among {
            among.push(self.entity(id, &mut missing)?);
        }
        let mut then = Vec::with_capacity(saved.operations.len());
        for operation in &saved.operations {
            then.push(match operation {
                Operation::Keep {
                    relation,
                    comparison,
                    bound,
                } => measure::Operation::Keep {
                    relation: self.relation(relation, &mut missing)?,
                    comparison: *comparison,
                    bound: *bound,
                },
                Operation::Extreme {
                    relation,
                    most,
                    from,
                    many,
                } => {
                    let places = 1..=MAX_CHOICE;
                    if !places.contains(from) || !places.contains(many) {
                        return Ok(Err("it takes places that there cannot be".into()));
                    }
                    measure::Operation::Extreme {
                        relation: self.relation(relation, &mut missing)?,
                        most: *most,
                        places: Places {
                            from: *from,
                            many: *many,
                        },
                    }
                }
                Operation::Count => measure::Operation::Count,
            });
        }
        let kind = match &saved.of_type {
            Some(test) => Some((
                self.relation(&test.relation, &mut missing)?,
                self.entity(&test.class, &mut missing)?,
            )),
            None => None,
        };
        if !missing.is_empty() {
            return Ok(Err(format!(
                "the graph has no `{}`",
                missing.join("`, no `")
            )));
        }
        let mut ways = ways.into_iter();
        let (topic, hops) = match (ways.next(), among.first()) {
            (Some(way), _) => way,
            (None, first) => (first.copied().unwrap_or_default(), Vec::new()),
        };
        Ok(Ok(Plan {
            topic,
            hops,
            also: ways.collect(),
            kind,
            among,
            then,
            ..Plan::default()
        }))
    }

    fn entity(&self, id: &str, missing: &mut Vec<String>) -> Result<EntityId> {
        // what is not filed under its identity is called as it was linked
        let linked = self.answer.links.iter().find(|l| l.id == id);
        let name = linked.map_or(id, |l| l.name.as_str());
        let found = entities_with_id(id, name, self.graph)?;
        if found.is_empty() {
            missing.push(id.to_owned());
        }
        Ok(found.first().copied().unwrap_or_default())
    }

    fn relation(&self, id: &str, missing: &mut Vec<String>) -> Result<RelationId> {
        let found = relation_with_id(id, self.graph)?;
        if found.is_none() {
            missing.push(id.to_owned());
        }
        Ok(found.unwrap_or_default())
    }
}
