//! How requests are read and replies written.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::Result;
use crate::problem::Problem;

/// How long a body may take to come in.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(15);

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
