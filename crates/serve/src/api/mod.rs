//! The HTTP API: its routes.

mod ask;
mod load;
mod look;
mod records;
mod sparql;
mod text2sparql;
mod triples;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::app::App;
use crate::exchange::json;
use crate::problem::Problem;
use crate::{mcp, openai, page, watch};

/// Every route of the API; `openapi.json` describes each of them.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/ask", post(ask::ask))
        .route("/v1/retrieve", post(ask::retrieve))
        .route("/v1/link", post(ask::link))
        .route("/v1/verify", post(ask::verify))
        .route("/v1/sparql", get(sparql::get).post(sparql::post))
        .route(
            "/v1/graphs/{graph}/sparql",
            get(sparql::get_of).post(sparql::post_of),
        )
        .route("/text2sparql", get(text2sparql::translate))
        .route("/v1/triples", post(triples::change))
        .route("/v1/load", post(load::load))
        .route("/v1/graphs", get(look::graphs))
        .route("/v1/graphs/{graph}/relations", get(look::relations))
        .route("/v1/graphs/{graph}/schema", get(look::schema))
        .route("/v1/methods", get(look::methods))
        .route("/v1/complete", get(look::complete))
        .route("/v1/entities", get(look::entities))
        .route("/v1/neighbourhood", get(look::neighbourhood))
        .route("/v1/feedback", post(records::feedback))
        .route("/v1/runs", get(records::runs))
        .route("/v1/runs/{run}", get(records::run))
        .route("/v1/runs/{run}/questions", get(records::questions))
        .route("/v1/runs/{run}/questions/{index}", get(records::question))
        .route("/v1/chat/completions", post(openai::chat))
        .route("/v1/models", get(openai::models))
        .route("/v1/models/{*model}", get(openai::model))
        .route("/mcp", post(mcp::over_http))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .merge(page::router())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), watch::watch))
        .with_state(app)
}

async fn health() -> Response {
    json(&serde_json::json!({ "status": "up" }))
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    let pools = app.health();
    let stuck = pools.iter().find(|(_, pool)| !pool.is_working());
    let problem = match stuck {
        None if app.is_warm() => {
            return json(&serde_json::json!({ "status": "ready", "pools": pools }));
        }
        None => ("warming-up", "the server is warming up".into(), 1),
        Some((name, _)) => (
            "stuck",
            format!("all threads for `{name}` are stuck; restart the server"),
            60,
        ),
    };
    let (code, message, seconds): (_, String, _) = problem;
    let mut problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, message);
    problem.retry_after = Some(seconds);
    problem.into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let text = app.metrics.text(&app.gauges());
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn unknown(uri: Uri) -> Problem {
    Problem::not_found(
        "no-such-page",
        format!(
            "there is nothing at `{}`",
            crate::engine::clipped(uri.path())
        ),
    )
    .hint("`/openapi.json` lists what there is")
}

async fn wrong_method(method: Method) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong-method",
        format!(
            "`{}` does nothing here",
            crate::engine::clipped(method.as_str())
        ),
    )
    .hint("the header `allow` says what does")
}
