//! Results of queries: ours, the expected ones, and whether they are the same.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use oxrdf::{BlankNode, Term};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};

use super::manifest::{graph_of, result_set};

/// One row: terms by variable.
pub(super) type Row = BTreeMap<String, Term>;

/// The answer to a query.
pub(super) enum Results {
    Boolean(bool),
    Rows {
        rows: Vec<Row>,
        /// The order counts.
        is_ordered: bool,
    },
    Graph(Box<oxrdf::Graph>),
}

/// The format of a file with expected results, where it is one of SPARQL's own.
pub(super) fn format_of(path: &Path) -> Option<QueryResultsFormat> {
    match path.extension()?.to_str()? {
        "srx" => Some(QueryResultsFormat::Xml),
        "srj" => Some(QueryResultsFormat::Json),
        "tsv" => Some(QueryResultsFormat::Tsv),
        _ => None,
    }
}

/// Results in one of SPARQL's own formats.
pub(super) fn parsed(bytes: &[u8], format: QueryResultsFormat) -> Result<Results, String> {
    let parser = QueryResultsParser::from_format(format);
    match parser.for_reader(bytes).map_err(|e| e.to_string())? {
        ReaderQueryResultsParserOutput::Boolean(value) => Ok(Results::Boolean(value)),
        ReaderQueryResultsParserOutput::Solutions(solutions) => {
            let mut rows = Vec::new();
            for solution in solutions {
                let solution = solution.map_err(|e| e.to_string())?;
                let row = solution
                    .iter()
                    .map(|(v, term)| (v.as_str().to_owned(), term.clone()));
                rows.push(row.collect());
            }
            Ok(Results::Rows {
                rows,
                is_ordered: false,
            })
        }
    }
}

/// What is expected.
pub(super) fn expected(path: &Path, base: &str) -> Result<Results, String> {
    if let Some(format) = format_of(path) {
        let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
        return parsed(&bytes, format);
    }
    let graph = graph_of(path, base);
    Ok(match result_set(&graph) {
        None => Results::Graph(Box::new(graph)),
        Some((value, rows)) if rows.is_empty() && is_boolean(&graph) => Results::Boolean(value),
        Some((_, rows)) => Results::Rows {
            is_ordered: rows.iter().any(|(index, _)| *index != 0),
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        },
    })
}

fn is_boolean(graph: &oxrdf::Graph) -> bool {
    graph
        .iter()
        .any(|t| t.predicate.as_str().ends_with("result-set#boolean"))
}

/// Why ours are not the expected ones.
pub(super) fn difference(expected: Results, ours: Results, is_lax: bool) -> Option<String> {
    match (expected, ours) {
        (Results::Boolean(a), Results::Boolean(b)) => (a != b).then(|| format!("{b}, not {a}")),
        (Results::Graph(a), Results::Graph(b)) => {
            (!is_same_graph((*a).clone(), (*b).clone())).then(|| format!("{b}\nnot\n{a}"))
        }
        (
            Results::Rows {
                rows: mut wanted,
                is_ordered,
            },
            Results::Rows { rows: mut ours, .. },
        ) => {
            if is_lax {
                for rows in [&mut wanted, &mut ours] {
                    rows.sort_by_key(|row| format!("{row:?}"));
                    rows.dedup();
                }
            }
            let same = wanted.len() == ours.len()
                && matched(&wanted, &mut ours.clone(), &HashMap::new(), is_ordered);
            (!same).then(|| {
                format!(
                    "{} rows: {ours:?}\nnot {}: {wanted:?}",
                    ours.len(),
                    wanted.len()
                )
            })
        }
        _ => Some("another kind of result".into()),
    }
}

/// Whether the graphs are the same but for the names of blank nodes.
pub(super) fn is_same_graph(mut a: oxrdf::Graph, mut b: oxrdf::Graph) -> bool {
    let algorithm = oxrdf::graph::CanonicalizationAlgorithm::Unstable;
    a.canonicalize(algorithm);
    b.canonicalize(algorithm);
    a == b
}

/// Whether the rows are the same but for the names of blank nodes: each wanted row takes one of
/// ours that fits.
fn matched(
    wanted: &[Row],
    ours: &mut Vec<Row>,
    names: &HashMap<BlankNode, BlankNode>,
    is_ordered: bool,
) -> bool {
    let Some((first, rest)) = wanted.split_first() else {
        return true;
    };
    let most = if is_ordered { 1 } else { ours.len() };
    for i in 0..most {
        let mut names = names.clone();
        if fits(first, &ours[i], &mut names) {
            let row = ours.remove(i);
            if matched(rest, ours, &names, is_ordered) {
                return true;
            }
            ours.insert(i, row);
            // a row without blank nodes fits or does not, whatever the others are
            if !first.values().any(|t| matches!(t, Term::BlankNode(_))) {
                return false;
            }
        }
    }
    false
}

fn fits(wanted: &Row, ours: &Row, names: &mut HashMap<BlankNode, BlankNode>) -> bool {
    wanted.len() == ours.len()
        && wanted.iter().zip(ours).all(|((v, a), (w, b))| {
            v == w
                && match (a, b) {
                    (Term::BlankNode(a), Term::BlankNode(b)) => match names.get(a) {
                        Some(known) => known == b,
                        None => {
                            let is_new = !names.values().any(|taken| taken == b);
                            names.insert(a.clone(), b.clone());
                            is_new
                        }
                    },
                    (a, b) => a == b || same_number(a, b),
                }
        })
}

/// Whether two literals of one datatype write one number in two ways.
fn same_number(a: &Term, b: &Term) -> bool {
    let (Term::Literal(a), Term::Literal(b)) = (a, b) else {
        return false;
    };
    let number = |literal: &oxrdf::Literal| literal.value().parse::<f64>().ok();
    a.datatype() == b.datatype()
        && a.language().is_none()
        && a.datatype()
            .as_str()
            .starts_with("http://www.w3.org/2001/XMLSchema#")
        && !a.datatype().as_str().ends_with("#string")
        && number(a).is_some()
        && number(a) == number(b)
}
