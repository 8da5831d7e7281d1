//! The web page's files, compiled in: no build step, and no request to anywhere else.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// The API's description.
///
/// Kept by hand: what it describes are types of the crate `wherefore` (answers, evidence, forms),
/// which would have to depend on utoipa and repeat each text as an attribute. A test holds it to the
/// routes, and schemathesis to the replies.
pub(crate) const OPENAPI: &str = include_str!("openapi.json");

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

const FILES: [(&str, &str, &str); 25] = [
    ("/", HTML, include_str!("ui/index.html")),
    ("/docs", HTML, include_str!("ui/docs.html")),
    ("/style.css", STYLE, include_str!("ui/style.css")),
    ("/favicon.svg", PICTURE, include_str!("ui/favicon.svg")),
    ("/answers.js", SCRIPT, include_str!("ui/answers.js")),
    ("/api.js", SCRIPT, include_str!("ui/api.js")),
    ("/app.js", SCRIPT, include_str!("ui/app.js")),
    ("/chart.js", SCRIPT, include_str!("ui/chart.js")),
    ("/complete.js", SCRIPT, include_str!("ui/complete.js")),
    ("/docs.js", SCRIPT, include_str!("ui/docs.js")),
    ("/dom.js", SCRIPT, include_str!("ui/dom.js")),
    ("/editor.js", SCRIPT, include_str!("ui/editor.js")),
    ("/evidence.js", SCRIPT, include_str!("ui/evidence.js")),
    ("/labels.js", SCRIPT, include_str!("ui/labels.js")),
    ("/load.js", SCRIPT, include_str!("ui/load.js")),
    ("/past.js", SCRIPT, include_str!("ui/past.js")),
    ("/picture.js", SCRIPT, include_str!("ui/picture.js")),
    ("/reading.js", SCRIPT, include_str!("ui/reading.js")),
    ("/runs.js", SCRIPT, include_str!("ui/runs.js")),
    ("/schema.js", SCRIPT, include_str!("ui/schema.js")),
    ("/table.js", SCRIPT, include_str!("ui/table.js")),
    ("/triples.js", SCRIPT, include_str!("ui/triples.js")),
    ("/vendor/d3.js", SCRIPT, include_str!("ui/vendor/d3.js")),
    ("/vendor/land.js", SCRIPT, include_str!("ui/vendor/land.js")),
    ("/vendor/LICENSE", TEXT, include_str!("ui/vendor/LICENSE")),
];

/// The page, the page to try the API, and the API's description.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = Router::new().route(
        "/openapi.json",
        get(async || file("application/json", OPENAPI)),
    );
    for (path, kind, text) in FILES {
        router = router.route(path, get(async move || file(kind, text)));
    }
    router
}

/// Whether this is the path of a file of the page.
pub(crate) fn is_file(path: &str) -> bool {
    FILES.iter().any(|(file, _, _)| *file == path)
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
                    let is_name = [
                        "http://www.w3.org/",
                        "http://graphml.graphdrawing.org/xmlns",
                    ]
                    .iter()
                    .any(|name| rest.starts_with(name));
                    assert!(is_name, "{path}: {}", rest.lines().next().unwrap());
                }
            }
            assert!(!text.contains("innerHTML"), "{path} writes labels as HTML");
        }
    }

    #[test]
    fn the_page_is_small_and_has_all_that_it_imports() {
        let paths: BTreeSet<&str> = FILES.iter().map(|(path, _, _)| *path).collect();
        for (path, _, text) in FILES {
            for part in text.split('"').filter(|part| {
                part.starts_with('/') && (part.ends_with(".js") || part.ends_with(".css"))
            }) {
                assert!(paths.contains(part), "{path} imports {part}");
            }
        }
        let bytes: usize = FILES.iter().map(|(_, _, text)| text.len()).sum();
        assert!(bytes < 400 * 1024, "the page has {bytes} bytes");
    }
}
