//! Opinions about answers, and runs.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use wherefore::Question;

use super::{in_range, json_bytes, read_json, read_query, to_json};
use crate::app::App;
use crate::config::Scope;
use crate::error::Result;
use crate::feedback::Opinion;
use crate::keys::Access;
use crate::problem::Problem;
use crate::runs::Filter;

const MOST_QUESTIONS: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    outcome: Option<String>,
    text: Option<String>,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

pub(super) async fn feedback(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let opinion: Opinion = read_json(&app, request).await?;
    app.allow(Scope::Feedback, opinion.graph.as_deref())?;
    app.check_question(&Question::new(&opinion.question))?;
    let job = move |app: &App| {
        let graph = app.engine.graph(opinion.graph.as_deref())?;
        let ids = app.feedback.keep(&opinion, &graph)?;
        Ok(to_json(&json!({ "ids": ids })))
    };
    Ok(json_bytes(app.look(job).await?))
}

pub(super) async fn runs(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    // a run may be of any graph
    Access::current().check_unlimited()?;
    let job = |app: &App| Ok(to_json(&json!({ "runs": app.runs.list() })));
    Ok(json_bytes(app.look(job).await?))
}

pub(super) async fn run(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
) -> Result<Response, Problem> {
    Access::current().check_unlimited()?;
    let job = move |app: &App| Ok(to_json(&app.runs.describe(&run)?));
    Ok(json_bytes(app.look(job).await?))
}

pub(super) async fn questions(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Access::current().check_unlimited()?;
    let query: Listed = read_query(&uri)?;
    let filter = Filter {
        limit: in_range("limit", query.limit, 50, MOST_QUESTIONS)?,
        offset: query.offset,
        outcome: query.outcome.filter(|outcome| !outcome.is_empty()),
        text: query.text,
    };
    let job = move |app: &App| Ok(to_json(&app.runs.questions(&run, &filter)?));
    Ok(json_bytes(app.look(job).await?))
}

pub(super) async fn question(
    State(app): State<Arc<App>>,
    Path((run, index)): Path<(String, String)>,
) -> Result<Response, Problem> {
    Access::current().check_unlimited()?;
    let number = index.parse().map_err(|_| {
        Problem::bad_request(
            "bad-value",
            "a question of a run goes by its number, from 0",
        )
    })?;
    let job = move |app: &App| Ok(to_json(&app.runs.question(&run, number)?));
    Ok(json_bytes(app.look(job).await?))
}
