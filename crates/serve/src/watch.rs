//! Around every request: the guard before it, headers, metrics and the log after it.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::problem::Told;

/// What may be loaded into our pages: nothing from elsewhere, nothing inline.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Around every request: the rules before, headers, metrics and the log after.
pub(crate) async fn watch(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = (request.extensions().get::<MatchedPath>())
        .map_or("other", MatchedPath::as_str)
        .to_owned();
    let guard = &app.guard;
    let before = guard
        .check_host(&request)
        .and_then(|()| guard.check_site(&request))
        .and_then(|()| Ok(guard.check_origin(request.headers())?.cloned()));
    let is_preflight = request.method() == Method::OPTIONS
        && (request.headers()).contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut name = None;
    let (mut response, origin) = match before {
        Err(problem) => (problem.into_response(), None),
        // a preflight carries no key
        Ok(Some(origin)) if is_preflight => (preflight(), Some(origin)),
        Ok(origin) => match guard.admit(&request, &route) {
            Err(problem) => (problem.into_response(), origin),
            Ok(access) => {
                name.clone_from(&access.name);
                (Arc::new(access).with(next.run(request)).await, origin)
            }
        },
    };
    if let Some(Told(Some(line))) = response.extensions().get::<Told>() {
        let who = name.map_or(String::new(), |name| format!(" key {name}"));
        (app.log)(&format!("{line} ({route}{who})"));
    }
    let status = response.status();
    dress(response.headers_mut(), origin);
    app.metrics
        .request(&route, status.as_u16(), begun.elapsed());
    response
}

fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, x-api-key, mcp-protocol-version, mcp-session-id",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The headers of every reply; what is there already stays.
fn dress(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    let shared = origin.is_some();
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("retry-after, wherefore-cut"),
        );
    }
    let resource = if shared {
        "cross-origin"
    } else {
        "same-origin"
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            resource,
        ),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()",
        ),
    ] {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}
