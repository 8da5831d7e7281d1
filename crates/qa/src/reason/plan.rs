//! Where the retriever's plans lead inside the evidence.
//!
//! ```text
//! answers     = the ends of the first plan that has any; more ways lead to the first ones
//! confidence  = s(plan) − ½ · s(best rival)
//! ```
//!
//! A rival leads elsewhere, and is not the same plan carried on or broken off. It is no probability.
//! Nodes without a name are passed through and never answers.

use std::collections::BTreeMap;

use wherefore_graph::{EntityId, Graph, Hop, Step};

use super::{Candidate, Conclusion};
use crate::answer::Refusal;
use crate::error::Result;
use crate::retrieve::Plan;
use crate::select::Selection;

/// The ends of a plan: in how many ways each is reached, and one of them.
pub(crate) type Ends = BTreeMap<EntityId, (usize, Vec<usize>)>;

/// What the plans of a selection conclude.
pub(super) fn follow(selection: &Selection, graph: &dyn Graph) -> Result<Conclusion> {
    let mut chosen: Option<(&Plan, Ends)> = None;
    let mut rival = 0.0f32;
    for plan in &selection.plans {
        let mut named = Ends::new();
        for (end, ways) in ends(plan.topic, &plan.hops, selection) {
            if graph.is_named(end)? {
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
            refusal: Some(Refusal::RelationAbsent),
            ..Conclusion::default()
        });
    };
    let confidence = (plan.score - rival / 2.0).clamp(0.0, 1.0);
    let mut order: Vec<EntityId> = ends.keys().copied().collect();
    order.sort_by_key(|end| (std::cmp::Reverse(ends[end].0), *end));
    Ok(Conclusion {
        answers: order
            .into_iter()
            .map(|entity| Candidate {
                entity,
                confidence,
                path: ends[&entity].1.clone(),
            })
            .collect(),
        ..Conclusion::default()
    })
}

/// Whether one plan is the other, carried on or broken off.
fn is_same_thought(a: &Plan, b: &Plan) -> bool {
    a.topic == b.topic && (a.hops.starts_with(&b.hops) || b.hops.starts_with(&a.hops))
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
}
