//! The logical form of answers that paths lead to.
//!
//! ```text
//! pattern(path) = its topic and its relations with their directions
//! form          = the first pattern that all answers share, or all that they share together
//! ```
//!
//! Told only where it gives the same answers in the whole graph: then the method's answers can be
//! read in words, run as SPARQL and verified by running, as those of methods that write forms. A
//! method that keeps some of the ends of a path has no such form.

use std::collections::BTreeSet;
use std::time::Duration;

use wherefore_graph::{EntityId, Graph, Hop, Step, Term};

use super::{Candidate, Conclusion, RunForm};
use crate::error::Result;
use crate::logic::{
    Constant, Form, Moment, Plan, Relation, RunLimits, Runner, entity_name, relation_name,
};
use crate::select::Selection;

/// A form is told with an answer; it must not take longer than that.
const TIME: Duration = Duration::from_millis(50);
/// Entities of a set, beside the answers.
const ROWS: usize = 10_000;
/// Patterns of one form.
const PATTERNS: usize = 4;

type Pattern = (EntityId, Vec<Hop>);

/// The form of a conclusion's answers, where there is one.
pub(crate) fn form_of(
    conclusion: &Conclusion,
    selection: &Selection,
    graph: &dyn Graph,
) -> Result<Option<RunForm>> {
    let answers = &conclusion.answers;
    if !conclusion.unmatched.is_empty() || !conclusion.computed.is_empty() {
        return Ok(None);
    }
    let Some((first, others)) = answers.split_first() else {
        return Ok(None);
    };
    let mut shared = patterns(first, selection);
    for other in others {
        let of = patterns(other, selection);
        shared.retain(|pattern| of.contains(pattern));
    }
    let mut forms = Vec::new();
    for (topic, hops) in shared.into_iter().take(PATTERNS) {
        forms.push(chain(topic, &hops, graph)?);
    }
    let all = (forms.len() > 1).then(|| Form::And(forms.clone()));
    let wanted: BTreeSet<EntityId> = answers.iter().map(|a| a.entity).collect();
    for form in forms.into_iter().take(1).chain(all) {
        if let Some(told) = told(&form, &wanted, graph)? {
            return Ok(Some(told));
        }
    }
    Ok(None)
}

/// The patterns of an answer's paths, in their order; none where they do not lead from a topic to
/// the answer.
fn patterns(answer: &Candidate, selection: &Selection) -> Vec<Pattern> {
    let mut all = Vec::new();
    let mut at: Option<(Pattern, EntityId)> = None;
    for &place in &answer.path {
        let Some(&(triple, _)) = selection.triples.get(place) else {
            return Vec::new();
        };
        let begun = at.take().or_else(|| {
            let mut ends = [triple.head, triple.tail].into_iter();
            let topic = ends.find(|end| selection.topics.contains(end))?;
            Some(((topic, Vec::new()), topic))
        });
        let Some(((topic, mut hops), here)) = begun else {
            return Vec::new();
        };
        let step = Step {
            triple,
            forward: triple.head == here,
        };
        if step.from() != here {
            return Vec::new();
        }
        hops.push(Hop {
            relation: triple.relation,
            forward: step.forward,
        });
        match step.to() == answer.entity {
            true if all.contains(&(topic, hops.clone())) => {}
            true => all.push((topic, hops)),
            false => at = Some(((topic, hops), step.to())),
        }
    }
    match at {
        None => all,
        Some(_) => Vec::new(),
    }
}

fn chain(topic: EntityId, hops: &[Hop], graph: &dyn Graph) -> Result<Form> {
    let mut form = match graph.entity_term(topic)? {
        Term::Literal(literal) => Form::Constant(Constant::Literal(literal)),
        _ => Form::Name(entity_name(topic, graph)?),
    };
    for hop in hops {
        form = form.joined(Relation {
            name: relation_name(hop.relation, graph)?,
            reversed: hop.forward,
        });
    }
    Ok(form)
}

/// The form in words and as SPARQL if it gives these entities. Those without a name, and those
/// that the form itself names, are no answers of anybody.
fn told(form: &Form, wanted: &BTreeSet<EntityId>, graph: &dyn Graph) -> Result<Option<RunForm>> {
    let Ok(plan) = Plan::new(form, graph, Moment::now()) else {
        return Ok(None);
    };
    let limits = RunLimits {
        time: TIME,
        rows: wanted.len() + ROWS,
        ..RunLimits::default()
    };
    // a topic without a name that leads back to it, such as a literal
    let Ok(mut runner) = Runner::new(&plan, graph, &limits) else {
        return Ok(None);
    };
    let Some(outcome) = runner.run_within_limits()? else {
        return Ok(None);
    };
    let own = plan.entities();
    let mut given = 0;
    for entity in outcome.entities() {
        match wanted.contains(entity) {
            true => given += 1,
            false if own.binary_search(entity).is_ok() || !graph.is_named(*entity)? => {}
            false => return Ok(None),
        }
    }
    if given < wanted.len() {
        return Ok(None);
    }
    Ok(Some(RunForm {
        form: form.to_string(),
        english: form.english(graph)?,
        sparql: plan.sparql(),
        table: None,
    }))
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::*;

    #[test]
    fn paths_have_the_form_that_gives_the_same_answers() {
        let graph = MemoryGraph::from_names([
            ("Dune", "director", "Villeneuve"), // 0
            ("Arrival", "director", "Villeneuve"),
            ("Sicario", "director", "Villeneuve"),
            ("Arrival", "year", "2016"),
            ("Sicario", "year", "2015"),
            ("Arrival", "actor", "Adams"), // 5
            ("Doubt", "actor", "Adams"),
        ]);
        let entity = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let selection = Selection {
            triples: graph.triples().map(|t| (t, 1.0)).collect(),
            topics: vec![entity("Dune"), entity("Adams")],
            ..Selection::default()
        };
        let place = |head: &str, relation: &str| {
            let is = |t: &wherefore_graph::Triple| {
                graph.entity_label(t.head).unwrap() == head
                    && graph.relation_label(t.relation).unwrap() == relation
            };
            selection.triples.iter().position(|(t, _)| is(t)).unwrap()
        };
        let form = |answers: &[(&str, &[usize])]| {
            let answers = answers.iter().map(|(name, path)| Candidate {
                entity: entity(name),
                confidence: 1.0,
                path: path.to_vec(),
            });
            let conclusion = Conclusion {
                answers: answers.collect(),
                ..Conclusion::default()
            };
            let told = form_of(&conclusion, &selection, &graph).unwrap();
            told.map(|told| told.form)
        };
        let dune = place("Dune", "director");
        let arrival = [dune, place("Arrival", "director")];
        let sicario = [dune, place("Sicario", "director")];
        let all = "(JOIN director (JOIN (R director) Dune))";
        assert_eq!(
            form(&[("Arrival", &arrival), ("Sicario", &sicario)]).as_deref(),
            Some(all)
        );
        // one of two ends: no form says so
        assert_eq!(form(&[("Arrival", &arrival)]), None);
        // but one that two paths lead to has the form of both
        let both = [&arrival[..], &[place("Arrival", "actor")]].concat();
        assert_eq!(
            form(&[("Arrival", &both)]),
            Some(format!("(AND {all} (JOIN actor Adams))"))
        );
        // a path that ends elsewhere, one that begins nowhere, and none
        assert_eq!(form(&[("Sicario", &arrival)]), None);
        assert_eq!(form(&[("2016", &[place("Arrival", "year")])]), None);
        assert_eq!(form(&[("Arrival", &[])]), None);
    }
}
