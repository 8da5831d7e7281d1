//! What is done with the things that a plan leads to: counted, compared, or the first or last of
//! them taken. No training, no language model.
//!
//! ```text
//! keep(E, r, ~, n) = { e ∈ E : v(e, r) ~ n }                  ~ one of < ≤ = ≥ >
//! most(E, r)       = { e ∈ E : v(e, r) = max_{e' ∈ E} v(e', r) }      least likewise
//! count(E)         = |E|
//! ```
//!
//! v(e, r) is the number that the graph states: e has r. A date is its year and the share of the
//! year that is over, so that dates sort; beside a bare year it counts as its year alone. Where a
//! thing has several, the greatest counts. What has none is left out.
//!
//! `words.rs` reads the operations off the question, `attributes.rs` knows which relations have
//! values.

mod attributes;
mod tables;
mod words;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, RelationId, edges_by_relation};

use crate::error::Result;

pub(crate) use attributes::Attributes;
pub(crate) use words::Asked;

/// What is done with the ends of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// Those are kept whose value stands so to a number.
    Keep {
        /// The relation that gives the value.
        relation: RelationId,
        /// How the value has to stand to the number.
        comparison: Comparison,
        /// The number.
        bound: f64,
    },
    /// Those with the greatest or least value are taken.
    Extreme {
        /// The relation that gives the value.
        relation: RelationId,
        /// The greatest, or else the least.
        most: bool,
        /// Which of them.
        places: Places,
    },
    /// They are counted.
    Count,
}

impl Operation {
    /// The relation whose values it looks at.
    pub fn relation(&self) -> Option<RelationId> {
        match *self {
            Operation::Keep { relation, .. } | Operation::Extreme { relation, .. } => {
                Some(relation)
            }
            Operation::Count => None,
        }
    }
}

/// Places in an order: `the second largest` has the second place, `the five largest` the first
/// five. Those who share a place all have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// The first, from 1.
    pub from: usize,
    /// How many.
    pub many: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self { from: 1, many: 1 }
    }
}

/// How a value stands to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Below it.
    Less,
    /// Below it, or it.
    AtMost,
    /// It.
    Equal,
    /// It, or above it.
    AtLeast,
    /// Above it.
    More,
}

impl Comparison {
    fn holds(self, value: f64, bound: f64) -> bool {
        match (self, value.total_cmp(&bound)) {
            (Comparison::Less, Ordering::Less)
            | (Comparison::Equal, Ordering::Equal)
            | (Comparison::More, Ordering::Greater) => true,
            (Comparison::AtMost, order) => order != Ordering::Greater,
            (Comparison::AtLeast, order) => order != Ordering::Less,
            _ => false,
        }
    }
}

/// A value that can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) number: f64,
    pub(crate) is_date: bool,
}

impl Value {
    /// Whether it stands so to a number; a date does by its year.
    pub(crate) fn stands(self, comparison: Comparison, bound: f64) -> bool {
        let number = match self.is_date {
            true => self.number.floor(),
            false => self.number,
        };
        comparison.holds(number, bound)
    }
}

/// The value that a label states: a number, with or without commas, or a date.
pub(crate) fn value(label: &str) -> Option<Value> {
    let label = label.trim();
    if let Some(number) = date(label) {
        return Some(Value {
            number,
            is_date: true,
        });
    }
    let plain = label.replace(',', "");
    let body = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    if !body.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number: f64 = plain.parse().ok().filter(|n: &f64| n.is_finite())?;
    // `+45` is how a telephone is dialled, and nothing to be compared
    (!label.starts_with('+')).then_some(Value {
        number,
        is_date: false,
    })
}

/// `1949-04-04`, `1944-07`, or `2001-06-15T…`.
fn date(label: &str) -> Option<f64> {
    let day = label.split('T').next()?;
    let mut parts = day.split('-');
    let year = parts.next().filter(|y| y.len() == 4)?.parse::<u32>().ok()?;
    let month = parts.next().filter(|m| m.len() == 2)?.parse::<u32>().ok()?;
    let day: u32 = match parts.next() {
        Some(day) => day.get(..2)?.parse().ok()?,
        None => 1,
    };
    let within = (1..=12).contains(&month) && (1..=31).contains(&day);
    within.then(|| f64::from(year) + f64::from(month - 1) / 12.0 + f64::from(day - 1) / 372.0)
}

/// The value that an entity has by a relation, and the entity that states it.
pub(crate) fn value_of(
    entity: EntityId,
    relation: RelationId,
    graph: &dyn Graph,
) -> Result<Option<(Value, EntityId)>> {
    let mut best: Option<(Value, EntityId)> = None;
    for edge in edges_by_relation(&graph.outgoing(entity)?, relation) {
        if let Some(value) = value(&graph.entity_label(edge.entity)?)
            && best.is_none_or(|(b, _)| value.number > b.number)
        {
            best = Some((value, edge.entity));
        }
    }
    Ok(best)
}

/// What is left of the ends after the operations, and the number if they are counted.
pub(crate) fn apply(
    operations: &[Operation],
    mut ends: Vec<EntityId>,
    graph: &dyn Graph,
) -> Result<(Vec<EntityId>, Option<usize>)> {
    let mut count = None;
    for operation in operations {
        match *operation {
            Operation::Keep {
                relation,
                comparison,
                bound,
            } => {
                let mut kept = Vec::new();
                for end in ends {
                    let value = value_of(end, relation, graph)?;
                    if value.is_some_and(|(v, _)| v.stands(comparison, bound)) {
                        kept.push(end);
                    }
                }
                ends = kept;
            }
            Operation::Extreme {
                relation,
                most,
                places,
            } => {
                let mut measured = Vec::new();
                for end in ends {
                    if let Some((value, _)) = value_of(end, relation, graph)? {
                        measured.push((end, value.number));
                    }
                }
                let sign = if most { 1.0 } else { -1.0 };
                let worth = |v: f64| sign * v;
                measured.sort_by(|a, b| worth(b.1).total_cmp(&worth(a.1)));
                let first = measured.get(places.from - 1).map(|m| worth(m.1));
                let end = measured.len().min(places.from - 1 + places.many);
                let last = measured[..end].last().map(|m| worth(m.1));
                let (Some(first), Some(last)) = (first, last) else {
                    return Ok((Vec::new(), None));
                };
                measured.retain(|(_, v)| (last..=first).contains(&worth(*v)));
                ends = measured.into_iter().map(|(end, _)| end).collect();
            }
            Operation::Count => count = Some(ends.len()),
        }
    }
    Ok((ends, count))
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::*;

    #[test]
    fn numbers_and_dates_have_values_and_other_texts_have_none() {
        let number = |label| value(label).map(|v| v.number);
        assert_eq!(number("8849"), Some(8849.0));
        assert_eq!(number("1,250.5"), Some(1250.5));
        assert_eq!(number("-3.5"), Some(-3.5));
        // 1949 + 3 / 12 + 3 / 372
        assert!((number("1949-04-04").unwrap() - 1949.25806).abs() < 1e-5);
        assert_eq!(number("1944-07"), Some(1944.5));
        for text in ["Paris", "+45", "", "3D", "1949-13-01", "inf", "NaN", "--1"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_stands_to_a_year_by_its_year() {
        let date = value("1960-08-17").unwrap();
        assert!(date.stands(Comparison::Equal, 1960.0));
        assert!(!date.stands(Comparison::More, 1960.0));
        assert!(date.stands(Comparison::Less, 1961.0));
        assert!(value("5").unwrap().stands(Comparison::AtMost, 5.0));
    }

    #[test]
    fn ends_are_kept_ranked_and_counted() {
        let graph = MemoryGraph::from_names([
            ("a", "height", "10"),
            ("b", "height", "30"),
            ("c", "height", "30"),
            ("d", "name", "x"),
        ]);
        let entity = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let all = || ["a", "b", "c", "d"].map(entity).to_vec();
        let relation = graph.relation_named("height").unwrap().unwrap();
        let extreme = |most| Operation::Extreme {
            relation,
            most,
            places: Places::default(),
        };
        let ends = |operations: &[Operation]| apply(operations, all(), &graph).unwrap();
        assert_eq!(ends(&[extreme(true)]).0, ["b", "c"].map(entity));
        assert_eq!(ends(&[extreme(false)]).0, [entity("a")]);
        let placed = |from, many| {
            let places = Places { from, many };
            let most = true;
            ends(&[Operation::Extreme {
                relation,
                most,
                places,
            }])
            .0
        };
        // b and c share the first place and the second
        assert_eq!(placed(2, 1), ["b", "c"].map(entity));
        assert_eq!(placed(3, 1), [entity("a")]);
        assert_eq!(placed(1, 5), ["b", "c", "a"].map(entity));
        assert!(placed(4, 1).is_empty());
        let keep = Operation::Keep {
            relation,
            comparison: Comparison::More,
            bound: 10.0,
        };
        // b and c are above 10, d has no height
        assert_eq!(ends(&[keep, Operation::Count]).1, Some(2));
        assert_eq!(ends(&[]), (all(), None));
    }
}
