//! Triples as RDF terms, for `rdflib`.

use std::sync::Arc;

use pyo3::prelude::*;
use wherefore_graph::sparql::{iri_name, name_iri};
use wherefore_graph::{
    Adjacency, Edge, Graph, Literal, LiteralKind, Store, Term, Triple, edges_by_relation,
};

/// A graph that answers and triples hold on to.
pub(crate) type Shared = Arc<dyn Graph>;

/// A term: `iri`, `blank` or `literal`, its text, and a literal's language and datatype.
pub(crate) type TermParts = (String, String, Option<String>, Option<String>);

/// Head, relation and tail; none stands for any.
pub(crate) type Pattern = (Option<TermParts>, Option<TermParts>, Option<TermParts>);

fn term((kind, text, language, datatype): TermParts) -> Option<Term> {
    Some(match kind.as_str() {
        "iri" => match iri_name(&text) {
            Some(name) => Term::Name(name),
            None => Term::Iri(text),
        },
        "blank" => Term::Blank(text),
        "literal" => Term::Literal(Literal {
            value: text,
            kind: match (language, datatype) {
                (Some(language), _) => LiteralKind::Language(language),
                (None, Some(datatype)) => LiteralKind::Typed(datatype),
                (None, None) => LiteralKind::Plain,
            },
        }),
        _ => return None,
    })
}

fn parts(term: Term) -> TermParts {
    let plain = |kind: &str, text: String| (kind.to_owned(), text, None, None);
    match term {
        Term::Name(name) => plain("iri", name_iri(&name)),
        Term::Iri(iri) => plain("iri", iri),
        Term::Blank(label) => plain("blank", label),
        Term::Literal(Literal { value, kind }) => {
            let (language, datatype) = match kind {
                LiteralKind::Plain => (None, None),
                LiteralKind::Language(language) => (Some(language), None),
                LiteralKind::Typed(datatype) => (None, Some(datatype)),
            };
            ("literal".to_owned(), value, language, datatype)
        }
    }
}

/// The triples that fit a pattern.
pub(crate) fn matching(store: &Store, pattern: Pattern) -> anyhow::Result<Vec<Triple>> {
    let (head, relation, tail) = pattern;
    let entity = |parts: Option<TermParts>| -> anyhow::Result<Result<_, ()>> {
        let Some(parts) = parts else {
            return Ok(Ok(None));
        };
        let found = match term(parts) {
            Some(term) => store.find_term(&term)?,
            None => None,
        };
        Ok(found.map(Some).ok_or(()))
    };
    let (Ok(head), Ok(tail)) = (entity(head)?, entity(tail)?) else {
        return Ok(Vec::new());
    };
    let relation = match relation.map(term) {
        None => None,
        Some(term) => {
            let found = match term {
                Some(term) => store.find_relation_term(&term)?,
                None => None,
            };
            match found {
                Some(relation) => Some(relation),
                None => return Ok(Vec::new()),
            }
        }
    };
    // hubs have long rows
    let of_relation = |row: &[Edge]| match relation {
        Some(relation) => edges_by_relation(row, relation).to_vec(),
        None => row.to_vec(),
    };
    Ok(match (head, tail, relation) {
        (Some(head), tail, _) => {
            let edges = of_relation(&store.outgoing(head)?).into_iter();
            let all = edges.map(|edge| Triple {
                head,
                relation: edge.relation,
                tail: edge.entity,
            });
            all.filter(|triple| tail.is_none_or(|t| t == triple.tail))
                .collect()
        }
        (None, Some(tail), _) => {
            let edges = of_relation(&store.incoming(tail)?).into_iter();
            let all = edges.map(|edge| Triple {
                head: edge.entity,
                relation: edge.relation,
                tail,
            });
            all.collect()
        }
        (None, None, Some(relation)) => {
            (store.with_relation(relation)?).collect::<Result<_, _>>()?
        }
        (None, None, None) => store.triples().collect::<Result<_, _>>()?,
    })
}

/// Triples that become terms a few at a time.
#[pyclass(module = "wherefore._wherefore")]
pub(crate) struct Matches {
    pub(crate) graph: Shared,
    pub(crate) triples: std::vec::IntoIter<Triple>,
}

#[pymethods]
impl Matches {
    /// The next ones; none at the end.
    fn batch(&mut self, most: usize) -> PyResult<Vec<(TermParts, TermParts, TermParts)>> {
        let graph = &*self.graph;
        let one = |triple: Triple| -> Result<_, wherefore_graph::Error> {
            Ok((
                parts(graph.entity_term(triple.head)?),
                parts(graph.relation_term(triple.relation)?),
                parts(graph.entity_term(triple.tail)?),
            ))
        };
        let some = self.triples.by_ref().take(most).map(one);
        some.collect::<Result<_, _>>()
            .map_err(|error| crate::errors::raised(&error.into()))
    }

    fn __len__(&self) -> usize {
        self.triples.len()
    }
}
