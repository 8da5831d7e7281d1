//! The SPARQL 1.1 protocol, queries only.
//!
//! A query comes as `?query=`, as a form, or as a body of `application/sparql-query`. Formats are
//! chosen by `Accept`, or by a parameter where it names none: some clients (SPARQLWrapper) send their
//! wish under all names that servers know it by. Datasets cannot be chosen: a query sees the graph of
//! the address.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use wherefore::graph::sparql::ResultFormat;

use crate::app::{App, Work};
use crate::error::Result;
use crate::exchange::{content_type, read_body, read_query};
use crate::pool::Wanted;
use crate::problem::Problem;

/// What a query asks for, as far as formats depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `SELECT` and `ASK`.
    Rows,
    /// `CONSTRUCT` and `DESCRIBE`.
    Triples,
}

const ROWS: [(&str, ResultFormat); 7] = [
    ("application/sparql-results+json", ResultFormat::Json),
    ("application/json", ResultFormat::Json),
    ("application/sparql-results+xml", ResultFormat::Xml),
    ("application/xml", ResultFormat::Xml),
    ("text/xml", ResultFormat::Xml),
    ("text/csv", ResultFormat::Csv),
    ("text/tab-separated-values", ResultFormat::Tsv),
];

const TRIPLES: [(&str, ResultFormat); 3] = [
    ("text/turtle", ResultFormat::Turtle),
    ("application/n-triples", ResultFormat::NTriples),
    ("text/plain", ResultFormat::NTriples),
];

/// What came after `?`, or in a form: pairs, for a name may come twice.
type Pairs = Vec<(String, String)>;

pub(super) async fn get(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let pairs: Pairs = read_query(&uri)?;
    run(app, None, pairs, &headers).await
}

pub(super) async fn get_of(
    State(app): State<Arc<App>>,
    Path(graph): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let pairs: Pairs = read_query(&uri)?;
    run(app, Some(graph), pairs, &headers).await
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    posted(app, None, request).await
}

pub(super) async fn post_of(
    State(app): State<Arc<App>>,
    Path(graph): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    posted(app, Some(graph), request).await
}

async fn posted(
    app: Arc<App>,
    graph: Option<String>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let mut pairs: Pairs = read_query(request.uri())?;
    let kind = content_type(&headers);
    let not_text = || Problem::bad_request("bad-body", "the body is not UTF-8");
    match kind.as_str() {
        "application/sparql-query" => {
            let bytes = read_body(&app, request).await?;
            let query = String::from_utf8(bytes.to_vec()).map_err(|_| not_text())?;
            pairs.push(("query".into(), query));
        }
        "application/x-www-form-urlencoded" => {
            let bytes = read_body(&app, request).await?;
            let form: Pairs = serde_urlencoded::from_bytes(&bytes).map_err(|_| not_text())?;
            pairs.extend(form);
        }
        _ => {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not-sparql",
                "the body must be a SPARQL query",
            )
            .hint("send it with `content-type: application/sparql-query`"));
        }
    }
    run(app, graph, pairs, &headers).await
}

async fn run(
    app: Arc<App>,
    mut graph: Option<String>,
    pairs: Pairs,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let mut query = None;
    let mut wish = None;
    for (name, value) in pairs {
        let place = match name.as_str() {
            "format" | "output" | "results" => {
                wish = wish.or_else(|| wished(&value));
                continue;
            }
            "query" => &mut query,
            "graph" => &mut graph,
            "update" => {
                return Err(Problem::bad_request(
                    "sparql-refused",
                    "graphs are only read",
                ));
            }
            other => {
                let message = format!("`{}` is not known here", crate::engine::clipped(other));
                return Err(Problem::bad_request("bad-query", message)
                    .hint("a query is sent as `query`, and the graph is named with `graph`"));
            }
        };
        if place.replace(value).is_some() {
            let message = format!("`{name}` is given twice");
            return Err(Problem::bad_request("bad-query", message));
        }
    }
    let Some(query) = query else {
        return Err(Problem::bad_request("bad-query", "there is no `query`"));
    };
    app.allow(crate::config::Scope::Sparql, graph.as_deref())?;
    app.engine.graph(graph.as_deref())?;
    let (kind, format) = negotiated(headers, wish, form(&query))?;
    let job = move |app: &App, wanted: &Wanted| {
        let graph = app.engine.graph(graph.as_deref())?;
        let options = app.config.limits.sparql();
        Ok(graph.sparql(&query, &options, format, &|| wanted.is_wanted())?)
    };
    let (bytes, written) = app.run(Work::Sparql, job).await?;
    let mut response = ([(header::CONTENT_TYPE, kind)], bytes).into_response();
    if written.is_cut {
        let name = HeaderName::from_static("wherefore-cut");
        let rows = HeaderValue::from(app.config.limits.rows);
        response.headers_mut().insert(name, rows);
    }
    Ok(response)
}

/// The content type that a parameter means; none where it means nothing here.
fn wished(value: &str) -> Option<&'static str> {
    let value = value.to_ascii_lowercase();
    let known = ROWS.iter().chain(&TRIPLES).map(|(kind, _)| *kind);
    let short = match value.as_str() {
        "json" => Some("application/sparql-results+json"),
        "xml" => Some("application/sparql-results+xml"),
        "csv" => Some("text/csv"),
        "tsv" => Some("text/tab-separated-values"),
        "turtle" | "ttl" => Some("text/turtle"),
        "nt" | "n-triples" | "ntriples" => Some("application/n-triples"),
        _ => None,
    };
    short.or_else(|| known.into_iter().find(|kind| *kind == value))
}

/// The best of the formats that are accepted and fit.
fn negotiated(
    headers: &HeaderMap,
    wish: Option<&str>,
    form: Form,
) -> Result<(&'static str, ResultFormat), Problem> {
    let fitting: &[(&'static str, ResultFormat)] = match form {
        Form::Rows => &ROWS,
        Form::Triples => &TRIPLES,
    };
    let mut accepted: Vec<(f32, String)> = Vec::new();
    for value in headers.get_all(header::ACCEPT) {
        for part in value.to_str().unwrap_or_default().split(',') {
            let mut pieces = part.split(';').map(str::trim);
            let kind = pieces.next().unwrap_or_default().to_ascii_lowercase();
            let weight = pieces.find_map(|p| p.strip_prefix("q=")?.parse().ok());
            let weight = weight.unwrap_or(1.0);
            if !kind.is_empty() && weight > 0.0 {
                accepted.push((weight, kind));
            }
        }
    }
    if accepted.iter().all(|(_, kind)| kind == "*/*") {
        let wished = fitting.iter().find(|(kind, _)| Some(*kind) == wish);
        return Ok(*wished.unwrap_or(&fitting[0]));
    }
    accepted.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, kind) in &accepted {
        let matches = |offered: &str| match kind.strip_suffix("/*") {
            Some("*") => true,
            Some(family) => offered.split('/').next() == Some(family),
            None => offered == kind,
        };
        if let Some(&found) = fitting.iter().find(|(offered, _)| matches(offered)) {
            return Ok(found);
        }
    }
    let offered: Vec<&str> = fitting.iter().map(|(kind, _)| *kind).collect();
    Err(Problem::new(
        StatusCode::NOT_ACCEPTABLE,
        "not-acceptable",
        "the answer has none of the accepted formats",
    )
    .hint(format!("accept one of: {}", offered.join(", "))))
}

/// Told by the first word that is a form, outside of IRIs, comments and prefixed names.
fn form(query: &str) -> Form {
    let mut rest = query;
    while let Some(c) = rest.chars().next() {
        if c == '#' {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if c == '<' {
            rest = rest.split_once('>').map_or("", |(_, after)| after);
        } else if c.is_alphabetic() {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            if !after.starts_with(':') {
                match word.to_ascii_uppercase().as_str() {
                    "SELECT" | "ASK" => return Form::Rows,
                    "CONSTRUCT" | "DESCRIBE" => return Form::Triples,
                    _ => {}
                }
            }
        } else {
            rest = &rest[c.len_utf8()..];
        }
    }
    Form::Rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_told_by_its_first_word() {
        for (query, wanted) in [
            ("SELECT * {}", Form::Rows),
            ("# CONSTRUCT\nask {}", Form::Rows),
            (
                "PREFIX construct: <http://x/DESCRIBE>\nSelect ?x {}",
                Form::Rows,
            ),
            ("PREFIX a: <b>\nCONSTRUCT WHERE { ?s ?p ?o }", Form::Triples),
            ("describe <x>", Form::Triples),
            ("", Form::Rows),
            ("ä<", Form::Rows),
        ] {
            assert_eq!(form(query), wanted, "{query}");
        }
    }

    #[test]
    fn the_heaviest_format_that_fits_is_chosen() {
        let chosen = |accept: &str, form| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
            negotiated(&headers, None, form)
                .map(|(kind, _)| kind)
                .map_err(|p| p.status)
        };
        let csv = chosen("application/json;q=0.5, text/csv", Form::Rows);
        assert_eq!(csv, Ok("text/csv"));
        assert_eq!(chosen("*/*", Form::Triples), Ok("text/turtle"));
        let xml = chosen("text/html, application/xml;q=0.9, */*;q=0.1", Form::Rows);
        assert_eq!(xml, Ok("application/xml"));
        assert_eq!(chosen("text/*", Form::Rows), Ok("text/xml"));
        assert_eq!(chosen("text/turtle", Form::Rows), Err(406));
        assert_eq!(chosen("image/png, */*;q=0", Form::Rows), Err(406));
        let none = negotiated(&HeaderMap::new(), None, Form::Rows).unwrap();
        assert_eq!(none.0, "application/sparql-results+json");
        let wish = |value: &str, form| {
            let found = negotiated(&HeaderMap::new(), wished(value), form);
            found.unwrap().0
        };
        assert_eq!(wish("XML", Form::Rows), "application/sparql-results+xml");
        assert_eq!(wish("text/csv", Form::Rows), "text/csv");
        assert_eq!(
            wish("nonsense", Form::Rows),
            "application/sparql-results+json"
        );
        // a wish for rows says nothing about triples
        assert_eq!(wish("json", Form::Triples), "text/turtle");
    }
}
