//! Counts of triples that are known without reading them.
//!
//! A store knows how many triples each relation has. A group over one triple pattern whose ends are
//! free, by its predicate or of all at once, that only counts, is written as those numbers:
//!
//! ```text
//! SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p   →   VALUES (?p ?n) { … }
//! SELECT (COUNT(*) AS ?n) WHERE { ?s <r> ?o }                 →   VALUES ?n { … }
//! ```

use oxrdf::{Literal, Variable};
use spargebra::Query;
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};

use super::dataset::GraphDataset;
use crate::error::Result;

/// Replaces groups that only count triples by numbers from the store.
pub(super) fn write_known_counts(query: &mut Query, dataset: &GraphDataset<'_>) -> Result<()> {
    let (Query::Select { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }
    | Query::Ask { pattern, .. }) = query;
    let mut pattern = pattern;
    while let GraphPattern::Project { inner, .. }
    | GraphPattern::Distinct { inner }
    | GraphPattern::Reduced { inner }
    | GraphPattern::Slice { inner, .. }
    | GraphPattern::OrderBy { inner, .. }
    | GraphPattern::Filter { inner, .. }
    | GraphPattern::Extend { inner, .. } = pattern
    {
        pattern = inner;
    }
    if let Some(known) = known_counts(pattern, dataset)? {
        *pattern = known;
    }
    Ok(())
}

/// What an aggregate counts.
enum CountedTerm {
    /// The triples.
    Triples,
    /// The predicates.
    Predicates,
}

fn known_counts(
    pattern: &GraphPattern,
    dataset: &GraphDataset<'_>,
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
    let by_predicate = match variables.as_slice() {
        [] => false,
        [one] if Some(one) == predicate => true,
        _ => return Ok(None),
    };
    let counted: Option<Vec<CountedTerm>> = (aggregates.iter())
        .map(|(_, aggregate)| counted(aggregate, triple, predicate))
        .collect();
    let Some(counted) = counted else {
        return Ok(None);
    };
    let relations = match &triple.predicate {
        NamedNodePattern::Variable(_) => dataset.relation_counts()?,
        NamedNodePattern::NamedNode(iri) => dataset.relation_count(iri)?.into_iter().collect(),
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
    let bindings = match by_predicate {
        true => (relations.iter())
            .map(|(iri, triples)| {
                let iri = Some(GroundTerm::NamedNode(iri.clone()));
                std::iter::once(iri).chain(row(*triples, 1)).collect()
            })
            .collect(),
        false => {
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
            let is_end =
                |end: &TermPattern| matches!(end, TermPattern::Variable(v) if v == variable);
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
