//! The HTTP API: routes, and how requests are read.

mod ask;
mod load;
mod look;
mod records;
mod sparql;
mod stream;
mod text2sparql;
mod triples;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::Result;
use crate::problem::Problem;
use crate::{guard, mcp, openai, page};
pub(crate) use stream::Frames;

/// How long a body may take to come in.
const BODY_TIME: Duration = Duration::from_secs(15);

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
        .layer(from_fn_with_state(Arc::clone(&app), guard::watch))
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

/// A reply in JSON.
pub(crate) fn json(value: &impl Serialize) -> Response {
    json_bytes(serde_json::to_vec(value).expect("texts, numbers and lists are JSON"))
}

/// A reply that is JSON already.
pub(crate) fn json_bytes(bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}

/// The value as JSON, made on the thread that made the value.
pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts, numbers and lists are JSON")
}

/// Reads the body, within its limits of size and time.
pub(crate) async fn read_body(app: &App, request: Request) -> Result<Bytes, Problem> {
    let limit = app.config.limits.body_bytes;
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            format!("a request has at most {limit} bytes"),
        )
    };
    let body = Limited::new(request.into_body(), limit);
    match tokio::time::timeout(BODY_TIME, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::bad_request("broken-body", "the body broke off")),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow-body",
            "the body did not come in time",
        )),
    }
}

/// The content type without its parameters, in lower case.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value.and_then(|v| v.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Reads a JSON body. Web pages of other origins cannot send this content type unasked.
pub(crate) async fn read_json<T: DeserializeOwned>(
    app: &App,
    request: Request,
) -> Result<T, Problem> {
    let kind = content_type(request.headers());
    if kind != "application/json" {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not-json",
            "the body must be JSON",
        )
        .hint("send it with `content-type: application/json`"));
    }
    let bytes = read_body(app, request).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Problem::bad_request("bad-body", format!("the body cannot be used: {error}"))
            .hint("`/openapi.json` describes it")
    })
}

/// Reads what follows the `?`.
pub(crate) fn read_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    serde_urlencoded::from_str(uri.query().unwrap_or_default()).map_err(|error| {
        Problem::bad_request("bad-query", format!("the query cannot be used: {error}"))
            .hint("`/openapi.json` describes it")
    })
}

/// A number that must lie in a range.
pub(crate) fn in_range(
    name: &str,
    value: Option<usize>,
    default: usize,
    most: usize,
) -> Result<usize, Problem> {
    let value = value.unwrap_or(default);
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Problem::bad_request(
        "bad-value",
        format!("`{name}` is {value}, but must be from 1 to {most}"),
    ))
}
