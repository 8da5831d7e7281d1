//! The web page's files, compiled in: no build step, and no request to anywhere else.

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

/// The API's description.
pub(crate) const OPENAPI: &str = include_str!("openapi.json");

const FILES: [(&str, &str, &str); 7] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("ui/index.html"),
    ),
    (
        "/app.js",
        "text/javascript; charset=utf-8",
        include_str!("ui/app.js"),
    ),
    (
        "/network.js",
        "text/javascript; charset=utf-8",
        include_str!("ui/network.js"),
    ),
    (
        "/style.css",
        "text/css; charset=utf-8",
        include_str!("ui/style.css"),
    ),
    (
        "/favicon.svg",
        "image/svg+xml",
        include_str!("ui/favicon.svg"),
    ),
    (
        "/docs",
        "text/html; charset=utf-8",
        include_str!("ui/docs.html"),
    ),
    (
        "/docs.js",
        "text/javascript; charset=utf-8",
        include_str!("ui/docs.js"),
    ),
];

/// The page, the page to try the API, and the API's description.
pub(crate) fn router() -> Router<Arc<App>> {
    let mut router = Router::new().route(
        "/openapi.json",
        get(async || file("application/json", OPENAPI)),
    );
    for (path, kind, text) in FILES {
        router = router.route(path, get(async move || file(kind, text)));
    }
    router
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        // a new version of the program must not meet old files
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described() {
        let source = include_str!("api/mod.rs");
        let routes: BTreeSet<String> = source
            .split(".route(")
            .skip(1)
            .filter_map(|rest| rest.split('"').nth(1))
            .map(|path| path.replace("{*", "{"))
            .chain(["/openapi.json".to_owned()])
            .collect();
        let api: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let described: BTreeSet<String> =
            api["paths"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(routes, described);
        assert_eq!(api["openapi"], "3.1.0");
        assert_eq!(api["info"]["version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn the_page_asks_nothing_of_anybody_else() {
        for (path, _, text) in FILES {
            for outside in ["http://", "https://"] {
                for (at, _) in text.match_indices(outside) {
                    let rest = &text[at..];
                    // names of XML, not addresses
                    assert!(
                        rest.starts_with("http://www.w3.org/"),
                        "{path}: {}",
                        &rest[..40]
                    );
                }
            }
            assert!(!text.contains("innerHTML"), "{path} writes labels as HTML");
        }
    }
}
