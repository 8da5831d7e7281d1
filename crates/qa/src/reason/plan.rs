//! Where the retriever's plans lead inside the evidence.
//!
//! ```text
//! answers     = the ends of the first plan that has any; more ways lead to the first ones
//! confidence  = s(plan) − ½ · s(best rival)
//! ```
//!
//! A rival leads elsewhere, and is not the same plan carried on or broken off. It is no probability.
//! Nodes without a name are passed through and never answers. What a plan then does with its ends
//! (`measure`) is done last; a count is no entity, and handed over as what it is.

use std::collections::{BTreeMap, HashSet};

use wherefore_graph::{EntityId, Graph, Hop, Step, Triple};

use super::{Candidate, Computed, Conclusion};
use crate::error::Result;
use crate::measure;
use crate::retrieve::Plan;
use crate::select::Selection;
use crate::verify::computed;

/// The ends of a plan: in how many ways each is reached, and one of them.
pub(crate) type Ends = BTreeMap<EntityId, (usize, Vec<usize>)>;

/// What the plans of a selection conclude.
pub(super) fn follow(selection: &Selection, graph: &dyn Graph) -> Result<Conclusion> {
    let mut chosen: Option<(&Plan, Ends)> = None;
    let mut rival = 0.0f32;
    for plan in &selection.plans {
        let mut named = Ends::new();
        for (end, ways) in all_ends(plan, selection) {
            if graph.is_named(end)? && is_of_kind(end, plan, graph)? {
                named.insert(end, ways);
            }
        }
        match &chosen {
            None if !named.is_empty() => chosen = Some((plan, named)),
            Some((best, ends))
                if !is_same_thought(best, plan)
                    && named.keys().any(|end| !ends.contains_key(end)) =>
            {
                rival = rival.max(plan.score);
            }
            _ => {}
        }
    }
    let Some((plan, ends)) = chosen else {
        return Ok(Conclusion {
            reason: Some("no relation near the topic is what the question asks for".into()),
            ..Conclusion::default()
        });
    };
    let confidence = (plan.score - rival / 2.0).clamp(0.0, 1.0);
    let mut order: Vec<EntityId> = ends.keys().copied().collect();
    order.sort_by_key(|end| (std::cmp::Reverse(ends[end].0), *end));
    let mut computation = None;
    if !plan.then.is_empty() {
        // what is counted or compared is counted in the whole graph: the evidence may be cut short
        let Some((_, all)) = computed::reached(plan, graph)? else {
            return Ok(Conclusion {
                reason: Some(format!(
                    "more than {} triples would have to be looked at",
                    computed::MAX_STEPS
                )),
                ..Conclusion::default()
            });
        };
        let within: HashSet<EntityId> = all.iter().copied().collect();
        order.retain(|end| within.contains(end));
        order.extend(all.iter().filter(|end| !ends.contains_key(end)));
        computation = Some(computed::written(plan, graph)?);
    }
    let (left, count) = measure::apply(&plan.then, order, graph)?;
    let values = values(plan, selection);
    if let Some(number) = count {
        let proof = |end: &EntityId| {
            let measured = values.get(end).map_or(&[][..], Vec::as_slice);
            let path = ends.get(end).map_or(&[][..], |(_, path)| path);
            [path, measured].concat()
        };
        let mut triples: Vec<usize> = left.iter().flat_map(proof).collect();
        triples.sort_unstable();
        triples.dedup();
        return Ok(Conclusion {
            computed: vec![Computed::count(number, confidence, triples)],
            computation,
            ..Conclusion::default()
        });
    }
    let reason = left
        .is_empty()
        .then(|| "nothing that the question is about is as it asks".to_owned());
    Ok(Conclusion {
        answers: left
            .into_iter()
            .map(|entity| Candidate {
                entity,
                confidence,
                path: ends
                    .get(&entity)
                    .map_or_else(Vec::new, |(_, path)| path.clone()),
                measured: match plan.among.is_empty() {
                    true => values.get(&entity).cloned().unwrap_or_default(),
                    // of two, the values of both are the proof
                    false => values.values().flatten().copied().collect(),
                },
            })
            .collect(),
        reason,
        computation,
        ..Conclusion::default()
    })
}

/// The triples of the evidence that give the values that the plan looks at.
fn values(plan: &Plan, selection: &Selection) -> BTreeMap<EntityId, Vec<usize>> {
    let mut values: BTreeMap<EntityId, Vec<usize>> = BTreeMap::new();
    for (i, (t, _)) in selection.triples.iter().enumerate() {
        if plan.then.iter().any(|o| o.relation() == Some(t.relation)) {
            values.entry(t.head).or_default().push(i);
        }
    }
    values
}

fn is_of_kind(end: EntityId, plan: &Plan, graph: &dyn Graph) -> Result<bool> {
    let Some((relation, kind)) = plan.kind else {
        return Ok(true);
    };
    Ok(graph.contains(Triple {
        head: end,
        relation,
        tail: kind,
    })?)
}

/// Where the plan leads by all its ways, or what it chooses from.
fn all_ends(plan: &Plan, selection: &Selection) -> Ends {
    if !plan.among.is_empty() {
        return plan.among.iter().map(|&e| (e, (1, Vec::new()))).collect();
    }
    let mut all = ends(plan.topic, &plan.hops, selection);
    for (topic, hops) in &plan.also {
        let mut other = ends(*topic, hops, selection);
        all = all
            .into_iter()
            .filter_map(|(end, (ways, path))| {
                let (more, rest) = other.remove(&end)?;
                Some((end, (ways * more, [path, rest].concat())))
            })
            .collect();
    }
    all
}

/// Whether one plan is the other, carried on or broken off.
fn is_same_thought(a: &Plan, b: &Plan) -> bool {
    let one_way = a.also.is_empty() && b.also.is_empty();
    let carried_on = a.hops.starts_with(&b.hops) || b.hops.starts_with(&a.hops);
    a.topic == b.topic && carried_on || !one_way
}

/// Where relations lead inside the evidence: not back to where they came from, unless nowhere else.
pub(crate) fn ends(topic: EntityId, hops: &[Hop], selection: &Selection) -> Ends {
    let mut before = Ends::new();
    let mut front: Ends = [(topic, (1, Vec::new()))].into();
    for (j, hop) in hops.iter().enumerate() {
        let returns = j > 0 && hop.undoes(&hops[j - 1]);
        let mut next = Ends::new();
        let mut back = Ends::new();
        for (i, (t, _)) in selection.triples.iter().enumerate() {
            if t.relation != hop.relation {
                continue;
            }
            let step = Step {
                triple: *t,
                forward: hop.forward,
            };
            if let Some((ways, path)) = front.get(&step.from()) {
                let far = step.to();
                let is_back = far == topic || returns && before.contains_key(&far);
                let reached = if is_back { &mut back } else { &mut next }
                    .entry(far)
                    .or_insert_with(|| (0, [path.as_slice(), &[i]].concat()));
                reached.0 += ways;
            }
        }
        before = front;
        front = if next.is_empty() { back } else { next };
    }
    front
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::*;

    #[test]
    fn ends_that_more_ways_lead_to_come_first() {
        let graph = MemoryGraph::from_names([
            ("a", "r", "b"),
            ("a", "r", "c"),
            ("b", "s", "x"),
            ("b", "s", "y"),
            ("c", "s", "y"),
            ("a", "q", "z"),
        ]);
        let entity = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let hop = |name: &str| Hop {
            relation: graph.relation_named(name).unwrap().unwrap(),
            forward: true,
        };
        let plan = |hops: Vec<Hop>, score| Plan {
            topic: entity("a"),
            hops,
            score,
            ..Plan::default()
        };
        let selection = Selection {
            triples: graph.triples().map(|t| (t, 1.0)).collect(),
            topics: vec![entity("a")],
            plans: vec![
                plan(vec![hop("r"), hop("s")], 0.8),
                plan(vec![hop("r")], 0.6),
                plan(vec![hop("q")], 0.4),
            ],
            ..Selection::default()
        };
        let done = follow(&selection, &graph).unwrap();
        let answers: Vec<EntityId> = done.answers.iter().map(|a| a.entity).collect();
        assert_eq!(answers, [entity("y"), entity("x")]);
        // 0.8 − 0.4 / 2: the second plan is the first, broken off
        assert!((done.answers[0].confidence - 0.6).abs() < 1e-6);
        assert_eq!(done.answers[0].path, [0, 4]);
        let nothing = follow(&Selection::default(), &graph).unwrap();
        assert!(nothing.answers.is_empty() && nothing.reason.is_some());
    }

    #[test]
    fn ways_are_joined_and_ends_counted_and_ranked() {
        let graph = MemoryGraph::from_names([
            ("x", "in", "a"),
            ("y", "in", "a"),
            ("y", "in", "b"),
            ("x", "size", "3"),
            ("y", "size", "5"),
        ]);
        let entity = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let relation = |name: &str| graph.relation_named(name).unwrap().unwrap();
        let into = Hop {
            relation: relation("in"),
            forward: false,
        };
        let done = |plan: Plan| {
            let selection = Selection {
                triples: graph.triples().map(|t| (t, 1.0)).collect(),
                topics: vec![entity("a"), entity("b")],
                plans: vec![plan],
                ..Selection::default()
            };
            follow(&selection, &graph).unwrap()
        };
        let plan = Plan {
            topic: entity("a"),
            hops: vec![into],
            score: 0.5,
            ..Plan::default()
        };
        let joined = done(Plan {
            also: vec![(entity("b"), vec![into])],
            ..plan.clone()
        });
        assert_eq!(joined.answers.len(), 1);
        // one triple from each topic
        assert_eq!(
            (joined.answers[0].entity, joined.answers[0].path.len()),
            (entity("y"), 2)
        );
        let counted = done(Plan {
            then: vec![measure::Operation::Count],
            ..plan.clone()
        });
        let computed = &counted.computed[0];
        assert_eq!((computed.name.as_str(), computed.path.len()), ("2", 2));
        let least = measure::Operation::Extreme {
            relation: relation("size"),
            most: false,
            places: measure::Places::default(),
        };
        let ranked = done(Plan {
            then: vec![least],
            ..plan
        });
        assert_eq!(ranked.answers[0].entity, entity("x"));
        assert_eq!(ranked.answers[0].measured.len(), 1);
    }
}
