//! Counts of triples that are known without evaluating a query.
//!
//! A store knows how many triples each relation has, and each entity. A group over one triple
//! pattern whose ends are free, by its predicate, by one of its ends, or of all at once, that only
//! counts, is written as those numbers:
//!
//! ```text
//! SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p   →   VALUES (?p ?n) { … }
//! SELECT (COUNT(*) AS ?n) WHERE { ?s <r> ?o }                 →   VALUES ?n { … }
//! SELECT ?o (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?o ORDER BY DESC(?n) LIMIT 10
//!                                                             →   VALUES (?o ?n) { … } …
//! ```
//!
//! Groups by an end are counted in an array instead of a table of groups. There may be as many as
//! entities, so only the largest are written where the query orders by their number and limits it;
//! without that, only if there are few.

use oxrdf::{Literal, NamedNode, Variable};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern, OrderExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};

use super::dataset::GraphDataset;
use crate::error::Result;
use crate::graph::EntityId;

/// Groups by an end that are written into a query at most: some megabytes.
const MAX_GROUPS: usize = 50_000;

/// Replaces groups that only count triples by numbers from the store.
pub(super) fn write_known_counts(query: &mut Query, dataset: &GraphDataset<'_>) -> Result<()> {
    let (Query::Select { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }
    | Query::Ask { pattern, .. }) = query;
    let mut pattern = pattern;
    let mut largest = Largest::default();
    largest.pass(pattern);
    while let GraphPattern::Project { inner, .. }
    | GraphPattern::Distinct { inner }
    | GraphPattern::Reduced { inner }
    | GraphPattern::Slice { inner, .. }
    | GraphPattern::OrderBy { inner, .. }
    | GraphPattern::Filter { inner, .. }
    | GraphPattern::Extend { inner, .. } = pattern
    {
        pattern = inner;
        largest.pass(pattern);
    }
    if let Some(known) = known_counts(pattern, dataset, &largest)? {
        *pattern = known;
    }
    Ok(())
}

/// What the parts of a query above a group make of its rows: whether only those with the largest
/// numbers matter.
#[derive(Default)]
struct Largest {
    /// How many rows are looked at.
    most: Option<usize>,
    /// The number by which they are ordered, the largest first.
    by: Option<Variable>,
    /// Whether the order is known: that of a query within is not the one in which rows are taken.
    is_ordered: bool,
}

impl Largest {
    /// Goes on to what is inside of a part.
    fn pass(&mut self, pattern: &GraphPattern) {
        match pattern {
            GraphPattern::Slice { start, length, .. } => {
                self.most = length.and_then(|length| start.checked_add(length));
                self.by = None;
                self.is_ordered = false;
            }
            GraphPattern::OrderBy { .. } if self.is_ordered => {}
            GraphPattern::OrderBy { expression, .. } => {
                self.is_ordered = true;
                self.by = match expression.first() {
                    Some(OrderExpression::Desc(Expression::Variable(by))) => Some(by.clone()),
                    _ => None,
                };
            }
            GraphPattern::Extend {
                variable,
                expression,
                ..
            } if self.by.as_ref() == Some(variable) => {
                self.by = match expression {
                    Expression::Variable(same) => Some(same.clone()),
                    _ => None,
                };
            }
            // rows that are dropped make room for others
            GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Filter { .. } => {
                self.most = None;
            }
            _ => {}
        }
    }

    /// How many groups matter, where `number` counts the triples of each.
    fn of(&self, number: &Variable) -> Option<usize> {
        self.most.filter(|_| self.by.as_ref() == Some(number))
    }
}

/// What an aggregate counts.
enum CountedTerm {
    /// The triples.
    Triples,
    /// The predicates.
    Predicates,
}

/// What triples are grouped by.
enum Grouped {
    NotAtAll,
    ByPredicate,
    /// By their heads, or their tails.
    ByEnd {
        outgoing: bool,
    },
}

fn known_counts(
    pattern: &GraphPattern,
    dataset: &GraphDataset<'_>,
    largest: &Largest,
) -> Result<Option<GraphPattern>> {
    let GraphPattern::Group {
        inner,
        variables,
        aggregates,
    } = pattern
    else {
        return Ok(None);
    };
    let GraphPattern::Bgp { patterns } = inner.as_ref() else {
        return Ok(None);
    };
    let [triple] = patterns.as_slice() else {
        return Ok(None);
    };
    let (Some(subject), Some(object)) = (free(&triple.subject), free(&triple.object)) else {
        return Ok(None);
    };
    let predicate = match &triple.predicate {
        NamedNodePattern::Variable(predicate) => Some(predicate),
        NamedNodePattern::NamedNode(_) => None,
    };
    let name = predicate.map(Variable::as_str);
    if subject == object || name == Some(subject) || name == Some(object) {
        return Ok(None);
    }
    let grouped = match variables.as_slice() {
        [] => Grouped::NotAtAll,
        [one] if Some(one) == predicate => Grouped::ByPredicate,
        [one] if is_variable(&triple.subject, one) => Grouped::ByEnd { outgoing: true },
        [one] if is_variable(&triple.object, one) => Grouped::ByEnd { outgoing: false },
        _ => return Ok(None),
    };
    let counted: Option<Vec<CountedTerm>> = (aggregates.iter())
        .map(|(_, aggregate)| counted(aggregate, triple, predicate))
        .collect();
    let Some(counted) = counted else {
        return Ok(None);
    };
    let iri = match &triple.predicate {
        NamedNodePattern::Variable(_) => None,
        NamedNodePattern::NamedNode(iri) => Some(iri),
    };
    let row = |triples: usize, predicates: usize| {
        counted.iter().map(move |what| {
            let count = match what {
                CountedTerm::Triples => triples,
                CountedTerm::Predicates => predicates,
            };
            Some(GroundTerm::Literal(Literal::from(count as u64)))
        })
    };
    let bindings = match grouped {
        Grouped::ByEnd { outgoing } => {
            // predicates of one entity are not counted here
            let numbers = aggregates.iter().zip(&counted);
            let mut most = None;
            for ((number, _), what) in numbers {
                match what {
                    CountedTerm::Triples => most = most.or(largest.of(number)),
                    CountedTerm::Predicates => return Ok(None),
                }
            }
            let Some(groups) = groups_by_end(dataset, iri, outgoing, most)? else {
                return Ok(None);
            };
            let rows = groups
                .into_iter()
                .map(|(end, triples)| std::iter::once(Some(end)).chain(row(triples, 0)).collect());
            rows.collect()
        }
        Grouped::ByPredicate => (relations(dataset, iri)?.into_iter())
            .map(|(iri, triples)| {
                let iri = Some(GroundTerm::NamedNode(iri));
                std::iter::once(iri).chain(row(triples, 1)).collect()
            })
            .collect(),
        Grouped::NotAtAll => {
            let relations = relations(dataset, iri)?;
            let triples = relations.iter().map(|(_, triples)| triples).sum();
            vec![row(triples, relations.len()).collect()]
        }
    };
    let named = aggregates.iter().map(|(variable, _)| variable);
    Ok(Some(GraphPattern::Values {
        variables: variables.iter().chain(named).cloned().collect(),
        bindings,
    }))
}

fn relations(
    dataset: &GraphDataset<'_>,
    iri: Option<&NamedNode>,
) -> Result<Vec<(NamedNode, usize)>> {
    match iri {
        None => dataset.relation_counts(),
        Some(iri) => Ok(dataset.relation_count(iri)?.into_iter().collect()),
    }
}

/// Heads or tails with the number of their triples: all, or those of which `most` are the largest
/// and as large. None if they are too many, or blank, to be written.
fn groups_by_end(
    dataset: &GraphDataset<'_>,
    iri: Option<&NamedNode>,
    outgoing: bool,
    most: Option<usize>,
) -> Result<Option<Vec<(GroundTerm, usize)>>> {
    let counts = dataset.end_counts(iri, outgoing)?;
    let mut least = 1;
    if let Some(most) = most {
        let mut sizes: Vec<u32> = counts.iter().copied().filter(|&n| n > 0).collect();
        if most == 0 || sizes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let last = most.min(sizes.len()) - 1;
        least = *sizes.select_nth_unstable_by(last, |a, b| b.cmp(a)).1;
    }
    let large = counts.iter().zip(0..).filter(|(n, _)| **n >= least);
    if large.clone().nth(MAX_GROUPS).is_some() {
        return Ok(None);
    }
    let mut groups = Vec::new();
    for (&triples, id) in large {
        match dataset.constant(EntityId(id))? {
            Some(end) => groups.push((end, triples as usize)),
            None => return Ok(None),
        }
    }
    Ok(Some(groups))
}

fn is_variable(end: &TermPattern, variable: &Variable) -> bool {
    matches!(end, TermPattern::Variable(v) if v == variable)
}

/// The name of an unbound subject or object.
fn free(end: &TermPattern) -> Option<&str> {
    match end {
        TermPattern::Variable(variable) => Some(variable.as_str()),
        TermPattern::BlankNode(blank) => Some(blank.as_str()),
        _ => None,
    }
}

/// `None` if the store does not know it.
fn counted(
    aggregate: &AggregateExpression,
    triple: &TriplePattern,
    predicate: Option<&Variable>,
) -> Option<CountedTerm> {
    match aggregate {
        AggregateExpression::CountSolutions { distinct: false } => Some(CountedTerm::Triples),
        AggregateExpression::FunctionCall {
            name: AggregateFunction::Count,
            expr: Expression::Variable(variable),
            distinct,
        } => {
            let is_end = |end: &TermPattern| is_variable(end, variable);
            let is_predicate = predicate == Some(variable);
            match distinct {
                true => is_predicate.then_some(CountedTerm::Predicates),
                false => (is_predicate || is_end(&triple.subject) || is_end(&triple.object))
                    .then_some(CountedTerm::Triples),
            }
        }
        _ => None,
    }
}
