//! Graphs, methods, names, entities.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::{App, Work};
use crate::config::Scope;
use crate::engine::Served;
use crate::error::Result;
use crate::exchange::{in_range, json, json_bytes, read_query, to_json};
use crate::keys::Access;
use crate::pool::Wanted;
use crate::problem::Problem;

const MOST_NAMES: usize = 100;
const MOST_TRIPLES: usize = 500;
const MOST_RELATIONS: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Complete {
    text: String,
    graph: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entities {
    prefix: String,
    graph: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Neighbours {
    id: String,
    graph: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Relations {
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A name beyond this is no name, and is not looked for.
fn checked(app: &App, text: &str) -> Result<(), Problem> {
    let limit = app.config.limits.question_bytes;
    if text.len() <= limit {
        return Ok(());
    }
    let message = format!("a text has at most {limit} bytes here");
    Err(Problem::unprocessable("text-too-long", message))
}

pub(super) async fn graphs(State(app): State<Arc<App>>) -> Response {
    let about = |graph: &Served| {
        // a service does not say how much it holds, and a damaged graph is told by whoever reads it
        let current = graph.current().ok();
        let store = current.as_ref().and_then(|current| current.store());
        let counts = store.map(wherefore::graph::Store::counts);
        let methods: Vec<&str> = graph.methods().collect();
        json!({
            "name": graph.name,
            "default": graph.name == app.engine.default_graph(),
            "triples": counts.map(|c| c.triples),
            "entities": counts.map(|c| c.entities),
            "relations": counts.map(|c| c.relations),
            "methods": methods,
            "default_method": graph.default_method(),
            "examples": graph.examples(),
        })
    };
    let access = Access::current();
    let graphs = app.engine.graphs();
    let seen = graphs.iter().filter(|graph| access.sees(&graph.name));
    let graphs: Vec<Value> = seen.map(|graph| about(graph)).collect();
    json(&json!({
        "graphs": graphs,
        "may_load": app.may_load().is_ok(),
        "feedback": app.feedback.is_open(),
        "runs": app.runs.is_open(),
    }))
}

pub(super) async fn methods(State(app): State<Arc<App>>) -> Response {
    let methods: Vec<Value> = app
        .engine
        .methods()
        .map(|(name, method)| {
            let parts = serde_json::to_value(&method.config).unwrap_or_default();
            let kind = |stage: &str| parts[stage]["kind"].clone();
            json!({
                "name": name,
                "default": name == app.engine.default_method(),
                "link": kind("link"),
                "retrieve": kind("retrieve"),
                "select": kind("select"),
                "organize": kind("organize"),
                "reason": kind("reason"),
                "language_model": method.uses_llm,
            })
        })
        .collect();
    json(&json!({ "methods": methods, "follow": true }))
}

pub(super) async fn relations(
    State(app): State<Arc<App>>,
    Path(graph): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query: Relations = read_query(&uri)?;
    let limit = in_range("limit", query.limit, 100, MOST_RELATIONS)?;
    app.allow(Scope::Ask, Some(&graph))?;
    app.engine.graph(Some(&graph))?;
    let job = move |app: &App| {
        let relations = app.engine.graph(Some(&graph))?.relations(limit)?;
        Ok(to_json(&json!({ "relations": relations })))
    };
    Ok(json_bytes(app.look(job).await?))
}

pub(super) async fn schema(
    State(app): State<Arc<App>>,
    Path(graph): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let _: Nothing = read_query(&uri)?;
    app.allow(Scope::Ask, Some(&graph))?;
    app.engine.graph(Some(&graph))?;
    // of a large graph it takes seconds
    let job = move |app: &App, _: &Wanted| app.engine.graph(Some(&graph))?.schema();
    let schema = app.run(Work::Ask, job).await?;
    Ok(json_bytes(schema.to_vec()))
}

pub(super) async fn complete(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let query: Complete = read_query(&uri)?;
    app.allow(Scope::Ask, query.graph.as_deref())?;
    checked(&app, &query.text)?;
    let limit = in_range("limit", query.limit, 8, MOST_NAMES)?;
    let job = move |app: &App| {
        let graph = app.engine.graph(query.graph.as_deref())?;
        Ok(to_json(&graph.complete(&query.text, limit)?))
    };
    Ok(json_bytes(app.look(job).await?))
}

pub(super) async fn entities(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let query: Entities = read_query(&uri)?;
    app.allow(Scope::Ask, query.graph.as_deref())?;
    checked(&app, &query.prefix)?;
    let limit = in_range("limit", query.limit, 20, MOST_NAMES)?;
    let job = move |app: &App| {
        let graph = app.engine.graph(query.graph.as_deref())?;
        let found = graph.search(&query.prefix, limit)?;
        Ok(to_json(&json!({ "entities": found })))
    };
    Ok(json_bytes(app.look(job).await?))
}

pub(super) async fn neighbourhood(
    State(app): State<Arc<App>>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query: Neighbours = read_query(&uri)?;
    app.allow(Scope::Ask, query.graph.as_deref())?;
    checked(&app, &query.id)?;
    let limit = in_range("limit", query.limit, 50, MOST_TRIPLES)?;
    let job = move |app: &App| {
        let graph = app.engine.graph(query.graph.as_deref())?;
        Ok(to_json(&graph.neighbourhood(&query.id, limit)?))
    };
    Ok(json_bytes(app.look(job).await?))
}
