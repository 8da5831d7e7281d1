//! Which queries of a client are sent to a service, with the operator's credentials.
//!
//! A query is parsed, checked and serialised again; the client's own text is never sent.
//! It may read the one graph that was configured, and nothing else:
//!
//! | refused | because it |
//! |---|---|
//! | updates | change the service's data |
//! | `SERVICE` | asks other servers, from the service's own network |
//! | `FROM`, `FROM NAMED`, `GRAPH` of another graph | read what was not offered |
//! | pragmas such as Virtuoso's `DEFINE` | set what the service does with a query |
//! | functions and predicates of a service's own | may write, fetch or run code: `sql:`, `bif:`, `java:` |
//!
//! Functions are those of SPARQL 1.1, casts to XSD types, those of GeoSPARQL and of XPath's `math`.
//! Of Virtuoso's own predicates, `bif:contains` and its kin search full text and are let through.

use std::collections::BTreeMap;
use std::thread;

use oxrdf::NamedNode;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression,
};
use spargebra::term::{NamedNodePattern, TriplePattern};
use spargebra::{Query, SparqlParser};

use crate::error::{Error, Result};
use crate::key::XSD;
use crate::sparql::guard::{self, refused};
use crate::sparql::{PREFIXES, STACK, print, syntax_message};

/// Namespaces whose functions compute and do nothing else. XPath's other functions are not among
/// them: `fn:doc` fetches documents.
const FUNCTIONS: [&str; 2] = [
    "http://www.opengis.net/def/function/geosparql/",
    "http://www.w3.org/2005/xpath-functions/math#",
];

/// Schemes of predicates and functions that are a service's own code.
const CODE: [&str; 4] = ["bif:", "sql:", "java:", "javascript:"];

/// Virtuoso's predicates that search full text.
const FULL_TEXT: [&str; 3] = ["bif:contains", "bif:xcontains", "bif:xpath_contains"];

/// The queries that may be sent to a service.
pub(super) struct Permit<'a> {
    /// The one graph; the service's default one if there is none.
    pub(super) graph: Option<&'a str>,
    /// Prefixes that need no declaration, beside the predefined ones.
    pub(super) prefixes: &'a BTreeMap<String, String>,
    /// Maximum rows of a `SELECT`.
    pub(super) rows: Option<usize>,
}

/// A read-only query to be sent.
#[derive(Debug)]
pub(super) struct Permitted {
    pub(super) text: String,
    /// Whether the answer is triples rather than rows, or yes or no.
    pub(super) gives_triples: bool,
}

impl Permit<'_> {
    /// Checks a query; an error says why it is refused.
    pub(super) fn grant(&self, text: &str) -> Result<Permitted> {
        guard::check(text)?;
        // the parser recurses as deep as the query nests
        thread::scope(|scope| {
            thread::Builder::new()
                .name("sparql".into())
                .stack_size(STACK)
                .spawn_scoped(scope, || self.granted(text))
                .map_err(Error::io("start", "a thread for the query"))?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn granted(&self, text: &str) -> Result<Permitted> {
        let mut query = self.parsed(text)?;
        self.look_through(&mut query)?;
        if let (Query::Select { pattern, .. }, Some(rows)) = (&mut query, self.rows) {
            // one row more than is shown, to know whether there are more
            limit(pattern, rows.saturating_add(1));
        }
        let text = print(&query);
        // parse the serialised text again, in case the serialiser has changed its meaning
        let mut sent = SparqlParser::new().parse_query(&text).map_err(|error| {
            refused(
                format!("it cannot be serialised: {error}"),
                Some("rewrite the query"),
            )
        })?;
        self.look_through(&mut sent)?;
        Ok(Permitted {
            text,
            gives_triples: matches!(sent, Query::Construct { .. } | Query::Describe { .. }),
        })
    }

    fn parsed(&self, text: &str) -> Result<Query> {
        let mut parser = SparqlParser::new();
        let predefined = PREFIXES.iter().filter(|(prefix, _)| !prefix.is_empty());
        let own = self.prefixes.iter().map(|(p, iri)| (&**p, &**iri));
        for (prefix, iri) in predefined.copied().chain(own) {
            parser = parser
                .with_prefix(prefix, iri)
                .map_err(|error| Error::BadService {
                    name: iri.to_owned(),
                    reason: format!("the prefix `{prefix}` is not an IRI: {error}"),
                })?;
        }
        parser.parse_query(text).map_err(|error| {
            if guard::is_update(text) {
                return refused(
                    "updates are not supported; the service is read-only".into(),
                    Some("change the data at the service itself"),
                );
            }
            if guard::first_word(text).is_some_and(|word| word.eq_ignore_ascii_case("DEFINE")) {
                return refused(
                    "`DEFINE` tells the service how to run a query, and that is the operator's to say"
                        .into(),
                    Some("leave `DEFINE` out"),
                );
            }
            let message = error.to_string();
            if message.contains("Prefix not found") {
                return refused(
                    "it uses an undeclared prefix".into(),
                    Some("begin it with `PREFIX name: <IRI>`, or add the prefix to `[prefixes]` in the service's file"),
                );
            }
            Error::SparqlSyntax(syntax_message(&message))
        })
    }

    /// Refuses what does more than to read the graph. `GRAPH` of the graph itself is left out: it
    /// is the default graph of every query.
    fn look_through(&self, query: &mut Query) -> Result<()> {
        if query.dataset().is_some() {
            return Err(refused(
                "`FROM` is not supported; a query reads the opened graph".into(),
                Some("remove `FROM`; `graph` in the service's file sets the graph"),
            ));
        }
        let (Query::Select { pattern, .. }
        | Query::Construct { pattern, .. }
        | Query::Describe { pattern, .. }
        | Query::Ask { pattern, .. }) = query;
        self.pattern(pattern)
    }

    fn pattern(&self, pattern: &mut GraphPattern) -> Result<()> {
        use GraphPattern as P;
        if let P::Graph { name, inner } = pattern {
            let same = matches!(name, NamedNodePattern::NamedNode(iri) if Some(iri.as_str()) == self.graph);
            if !same {
                return Err(refused(
                    "`GRAPH` is not supported for other graphs than the opened one".into(),
                    Some("remove `GRAPH`; `graph` in the service's file sets the graph"),
                ));
            }
            *pattern = std::mem::take(&mut **inner);
            return self.pattern(pattern);
        }
        match pattern {
            P::Graph { .. } => Ok(()),
            P::Service { .. } => Err(refused(
                "`SERVICE` is not supported".into(),
                Some("query the other server directly, or load its triples into a graph"),
            )),
            P::Bgp { patterns } => patterns.iter().try_for_each(triple),
            P::Path { path, .. } => predicates(path),
            P::Values { .. } => Ok(()),
            P::Join { left, right }
            | P::Lateral { left, right }
            | P::Minus { left, right }
            | P::Union { left, right } => {
                self.pattern(left)?;
                self.pattern(right)
            }
            P::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.pattern(left)?;
                self.pattern(right)?;
                expression.iter_mut().try_for_each(|e| self.expression(e))
            }
            P::Filter { expr, inner } => {
                self.expression(expr)?;
                self.pattern(inner)
            }
            P::Extend {
                inner, expression, ..
            } => {
                self.expression(expression)?;
                self.pattern(inner)
            }
            P::OrderBy { inner, expression } => {
                for by in expression {
                    let (OrderExpression::Asc(e) | OrderExpression::Desc(e)) = by;
                    self.expression(e)?;
                }
                self.pattern(inner)
            }
            P::Group {
                inner, aggregates, ..
            } => {
                for (_, aggregate) in aggregates {
                    if let AggregateExpression::FunctionCall { name, expr, .. } = aggregate {
                        if let AggregateFunction::Custom(iri) = name {
                            return Err(unknown_function(iri));
                        }
                        self.expression(expr)?;
                    }
                }
                self.pattern(inner)
            }
            P::Project { inner, .. }
            | P::Distinct { inner }
            | P::Reduced { inner }
            | P::Slice { inner, .. } => self.pattern(inner),
        }
    }

    fn expression(&self, expression: &mut Expression) -> Result<()> {
        use Expression as E;
        match expression {
            E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) => Ok(()),
            E::Or(a, b)
            | E::And(a, b)
            | E::Equal(a, b)
            | E::SameTerm(a, b)
            | E::Greater(a, b)
            | E::GreaterOrEqual(a, b)
            | E::Less(a, b)
            | E::LessOrEqual(a, b)
            | E::Add(a, b)
            | E::Subtract(a, b)
            | E::Multiply(a, b)
            | E::Divide(a, b) => {
                self.expression(a)?;
                self.expression(b)
            }
            E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => self.expression(a),
            E::If(a, b, c) => {
                self.expression(a)?;
                self.expression(b)?;
                self.expression(c)
            }
            E::In(a, others) => {
                self.expression(a)?;
                others.iter_mut().try_for_each(|e| self.expression(e))
            }
            E::Coalesce(parts) => parts.iter_mut().try_for_each(|e| self.expression(e)),
            E::FunctionCall(function, parts) => {
                if let Function::Custom(iri) = function
                    && !is_pure(iri)
                {
                    return Err(unknown_function(iri));
                }
                parts.iter_mut().try_for_each(|e| self.expression(e))
            }
            E::Exists(pattern) => self.pattern(pattern),
        }
    }
}

/// Whether a function computes and does nothing else.
fn is_pure(iri: &NamedNode) -> bool {
    let iri = iri.as_str();
    let is_type = iri
        .strip_prefix(XSD)
        .is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphabetic()));
    is_type || FUNCTIONS.iter().any(|space| iri.starts_with(space))
}

fn unknown_function(iri: &NamedNode) -> Error {
    refused(
        format!("the function {iri} is specific to the service and not allowed"),
        Some(
            "the functions of SPARQL 1.1, casts to XSD types, GeoSPARQL and XPath's `math` are allowed",
        ),
    )
}

fn triple(pattern: &TriplePattern) -> Result<()> {
    match &pattern.predicate {
        NamedNodePattern::NamedNode(iri) => predicate(iri),
        NamedNodePattern::Variable(_) => Ok(()),
    }
}

fn predicates(path: &PropertyPathExpression) -> Result<()> {
    use PropertyPathExpression as P;
    match path {
        P::NamedNode(iri) => predicate(iri),
        P::Reverse(path) | P::ZeroOrMore(path) | P::OneOrMore(path) | P::ZeroOrOne(path) => {
            predicates(path)
        }
        P::Sequence(a, b) | P::Alternative(a, b) => {
            predicates(a)?;
            predicates(b)
        }
        P::NegatedPropertySet(iris) => iris.iter().try_for_each(predicate),
    }
}

fn predicate(iri: &NamedNode) -> Result<()> {
    let text = iri.as_str();
    let is_code = CODE.iter().any(|scheme| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    if is_code && !FULL_TEXT.contains(&text) {
        return Err(refused(
            format!("the predicate {iri} runs code of the service and is not allowed"),
            Some("use triple patterns, or full-text search with `bif:contains`"),
        ));
    }
    Ok(())
}

/// No more rows than this.
fn limit(pattern: &mut GraphPattern, rows: usize) {
    match pattern {
        GraphPattern::Slice { length, .. } => {
            *length = Some(length.map_or(rows, |length| length.min(rows)));
        }
        other => {
            *other = GraphPattern::Slice {
                inner: Box::new(std::mem::take(other)),
                start: 0,
                length: Some(rows),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant_of(graph: Option<&str>, rows: Option<usize>, text: &str) -> Result<String> {
        let prefixes = BTreeMap::from([("f".to_owned(), "http://f/".to_owned())]);
        let permit = Permit {
            graph,
            prefixes: &prefixes,
            rows,
        };
        permit.grant(text).map(|permitted| permitted.text)
    }

    fn granted(text: &str) -> String {
        grant_of(None, None, text).unwrap()
    }

    fn reason(text: &str) -> String {
        let error = grant_of(Some("http://g/"), None, text).unwrap_err();
        // a query with a syntax error is not sent either
        if !matches!(error, Error::SparqlSyntax(_)) {
            assert!(matches!(error, Error::SparqlRefused { .. }), "{error}");
            assert!(error.hint().is_some(), "{error}");
        }
        error.to_string()
    }

    #[test]
    fn other_servers_and_graphs_are_out_of_reach_however_deep() {
        let service = "SERVICE <http://169.254.169.254/> { ?a ?b ?c }";
        let graph = "GRAPH <http://secret/> { ?a ?b ?c }";
        let any = "GRAPH ?g { ?a ?b ?c }";
        for inner in [service, graph, any] {
            for query in [
                "SELECT * { X }",
                "ASK { ?s ?p ?o OPTIONAL { X } }",
                "ASK { ?s ?p ?o OPTIONAL { ?s ?q ?r FILTER EXISTS { X } } }",
                "ASK { ?s ?p ?o MINUS { X } }",
                "ASK { { ?s ?p ?o } UNION { X } }",
                "ASK { ?s ?p ?o FILTER NOT EXISTS { X } }",
                "ASK { ?s ?p ?o FILTER(?o IN (1, IF(EXISTS { X }, 1, 2))) }",
                "ASK { BIND(COALESCE(EXISTS { X }, false) AS ?y) }",
                "SELECT ?s { { SELECT ?s { X } } }",
                "SELECT (COUNT(EXISTS { X }) AS ?n) { ?s ?p ?o }",
                "SELECT ?s { ?s ?p ?o } ORDER BY EXISTS { X }",
                "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING(EXISTS { X })",
                "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . X }",
                "DESCRIBE ?a WHERE { X }",
                "ASK { GRAPH <http://g/> { X } }",
            ] {
                let text = reason(&query.replace('X', inner));
                let refused = ["`SERVICE`", "`GRAPH`", "syntax error"];
                assert!(refused.iter().any(|words| text.contains(words)), "{text}");
            }
        }
        for from in ["FROM <http://secret/>", "FROM NAMED <http://secret/>"] {
            assert!(reason(&format!("SELECT * {from} {{ ?s ?p ?o }}")).contains("`FROM`"));
        }
    }

    #[test]
    fn updates_and_pragmas_are_not_passed_on() {
        for update in [
            "INSERT DATA { <a:a> <a:a> <a:a> }",
            "LOAD <http://169.254.169.254/>",
            "DROP GRAPH <http://g/>",
            "CLEAR ALL",
            "DELETE WHERE { ?s ?p ?o }",
            "PREFIX ex: <http://a/> WITH ex:g DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
        ] {
            assert!(reason(update).contains("update"), "{update}");
        }
        assert!(reason("DEFINE sql:log-enable 2 SELECT * { ?s ?p ?o }").contains("`DEFINE`"));
        // what only one parser sees
        for text in [
            "SELECT * { ?s ?p ?o } ; DROP ALL",
            "ASK {} INSERT DATA { <a:a> <a:a> <a:a> }",
            "SELECT * { ?s ?p ?o OPTION (table_option \"x\") }",
            "SELECT (sql:run('x') AS ?y) {}",
            "ASK { ?s ?p ?o } #\u{c}\nSERVICE",
        ] {
            assert!(grant_of(None, None, text).is_err(), "{text}");
        }
    }

    #[test]
    fn code_of_the_service_is_not_called() {
        for text in [
            "SELECT (<bif:system>('id') AS ?x) {}",
            "SELECT (<sql:rdf_load>('x') AS ?x) {}",
            "ASK { FILTER(<java:Runtime.exec>('id')) }",
            "SELECT (<http://jena.apache.org/ARQ/function#e>() AS ?x) {}",
            "SELECT (<http://www.w3.org/2005/xpath-functions#doc>('file:///etc/passwd') AS ?x) {}",
            "SELECT (<http://a/aggregate>(DISTINCT ?s) AS ?x) { ?s ?p ?o }",
            "ASK { ?s <java:Evil> ?o }",
            "ASK { ?s <SQL:x>/<http://a/b> ?o }",
            "ASK { ?s !(<bif:x>|^<http://a/b>) ?o }",
        ] {
            let text = reason(text);
            let refused = ["the function", "the predicate", "syntax error"];
            assert!(refused.iter().any(|words| text.contains(words)), "{text}");
        }
        for text in [
            "SELECT (xsd:integer(?o) AS ?x) { ?s ?p ?o }",
            "ASK { ?s ?p ?o FILTER(<http://www.opengis.net/def/function/geosparql/distance>(?s, ?o) < 5) }",
            "ASK { ?s <bif:contains> \"'dune'\" }",
        ] {
            granted(text);
        }
    }

    #[test]
    fn the_configured_graph_may_be_named() {
        let text = "SELECT * { GRAPH <http://g/> { ?s ?p ?o } }";
        assert_eq!(
            grant_of(Some("http://g/"), None, text).unwrap(),
            "SELECT ?o ?p ?s WHERE { ?s ?p ?o . }"
        );
        assert!(grant_of(None, None, text).is_err());
    }

    #[test]
    fn comments_and_prefixes_do_not_travel_and_rows_are_limited() {
        let query =
            "# secret\nPREFIX x: <http://x/> SELECT ?s { f:dune x:p ?s # DEFINE\n} LIMIT 500";
        assert_eq!(
            grant_of(None, Some(10), query).unwrap(),
            "SELECT ?s WHERE { <http://f/dune> <http://x/p> ?s . } LIMIT 11"
        );
        assert_eq!(
            grant_of(None, Some(10), "SELECT * { ?s ?p 5 } LIMIT 3").unwrap(),
            "SELECT ?p ?s WHERE { ?s ?p \"5\"^^<http://www.w3.org/2001/XMLSchema#integer> . } LIMIT 3"
        );
        assert!(reason("SELECT * { ?s nobody:knows ?o }").contains("prefix"));
    }

    #[test]
    fn queries_are_written_as_people_write_them() {
        for text in [
            "SELECT ?g (COUNT(DISTINCT ?s) AS ?n) WHERE { ?s ?p ?g . } GROUP BY ?g HAVING((COUNT(DISTINCT ?s) > 1)) ORDER BY DESC(?n) LIMIT 5",
            "SELECT (GROUP_CONCAT(?s; SEPARATOR = \"\\\"\") AS ?n) WHERE { ?s ?p ?o . }",
            "ASK WHERE { { ?s ?p ?o . FILTER(BOUND(?x)) } OPTIONAL { ?s ?q ?x . } }",
            "SELECT ?s WHERE { ?s ?p ?o . FILTER NOT EXISTS { ?o ?q ?s . } FILTER((?s != ?o)) }",
            "DESCRIBE <http://f/dune>",
            "DESCRIBE ?s WHERE { ?s ?p ?o . }",
            "CONSTRUCT { ?s ?p ?o . } WHERE { ?s ?p ?o . } LIMIT 3",
        ] {
            let expected = text.replace("(?s != ?o)", "(! ((?s = ?o)))");
            assert_eq!(granted(text), expected);
        }
    }
}
