//! Who may come in, and how often.
//!
//! In this order: the name that the server is called by, the web page that the request comes from,
//! the API key, the rate, what the key is for.

use std::net::{IpAddr, SocketAddr};
use std::time::{Instant, SystemTime};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::config::{Scope, ServeConfig};
use crate::error::Result;
use crate::keys::{Access, Keys};
use crate::page::is_file;
use crate::problem::Problem;
use crate::throttle::{Caller, Rates, WrongKeys, place};

/// Paths that need no key beside the page's files, which hold nothing: what a supervisor asks.
const OPEN: [&str; 3] = ["/openapi.json", "/health", "/ready"];

/// Pages that a link on another site may lead to.
const PAGES: [&str; 3] = ["/", "/docs", "/openapi.json"];

/// Names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The rules, and how much everybody has used.
#[derive(Debug)]
pub(crate) struct Guard {
    keys: Keys,
    hosts: Hosts,
    cors: Vec<String>,
    rate: f64,
    rates: Rates,
    wrong_keys: WrongKeys,
}

/// The names that the server goes by.
#[derive(Debug)]
struct Hosts {
    /// In lower case, without ports.
    names: Vec<String>,
    any: bool,
    /// Whether any address is a name too. No web page can make an address its own and have it lead
    /// elsewhere, as it can with a name.
    addresses: bool,
}

impl Hosts {
    fn new(config: &ServeConfig) -> Self {
        let given = (config.hosts.iter()).map(|host| without_port(host).to_ascii_lowercase());
        Self {
            names: LOOPBACK
                .map(str::to_owned)
                .into_iter()
                .chain(given)
                .collect(),
            any: config.hosts.iter().any(|host| host == "*"),
            addresses: !config.listen.ip().is_loopback(),
        }
    }

    fn contain(&self, name: &str) -> bool {
        self.any
            || self
                .names
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
            || (self.addresses && name.parse::<IpAddr>().is_ok())
    }
}

impl Guard {
    pub(crate) fn new(config: &ServeConfig) -> Result<Self> {
        let limits = &config.limits;
        Ok(Self {
            keys: Keys::new(config)?,
            hosts: Hosts::new(config),
            cors: config.cors.clone(),
            rate: limits.rate,
            rates: Rates::new(limits.burst),
            wrong_keys: WrongKeys::new(limits.wrong_keys),
        })
    }

    /// All API keys.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// One name, and one that is ours. Whoever reads another of two names than we do would be
    /// fooled.
    pub(crate) fn check_host(&self, request: &Request) -> Result<(), Problem> {
        let bad = |message| {
            Problem::bad_request("bad-host", message)
                .hint("send the header `host` once, with the name of the server")
        };
        let mut given = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else {
            return Err(bad("a request has one header `host`, no more and no less"));
        };
        let name = without_port(host.to_str().unwrap_or_default());
        let target = request
            .uri()
            .authority()
            .map(|to| without_port(to.as_str()));
        if target.is_some_and(|target| !target.eq_ignore_ascii_case(name)) {
            return Err(bad(
                "the header `host` and the address name different hosts",
            ));
        }
        if self.hosts.contain(name) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "wrong-host",
            "this server does not go by the name in the request",
        )
        .hint("add the name to `hosts` in the server's configuration, or start it with `--host`"))
    }

    /// Keeps out what pages of other sites load or send without an origin: images, scripts, forms.
    /// Links to our own pages may be followed.
    pub(crate) fn check_site(&self, request: &Request) -> Result<(), Problem> {
        let value = |name| {
            let value = request.headers().get(name);
            value.and_then(|value: &HeaderValue| value.to_str().ok())
        };
        // ports make no other site, so that all servers of one machine are of the same site
        let is_foreign = matches!(value("sec-fetch-site"), Some("cross-site" | "same-site"));
        // whoever says its origin is judged by it
        let has_origin = request.headers().contains_key(header::ORIGIN);
        if !is_foreign || has_origin || self.cors.iter().any(|allowed| allowed == "*") {
            return Ok(());
        }
        let follows_a_link = request.method() == Method::GET
            && value("sec-fetch-mode") == Some("navigate")
            && value("sec-fetch-dest").is_none_or(|to| to == "document");
        if follows_a_link && PAGES.contains(&request.uri().path()) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "cross-site",
            "pages of other sites may not load this",
        )
        .hint("call it with `fetch` from an origin in `cors` of the server's configuration"))
    }

    /// The origin that the reply may be read from; none for requests of our own page or of no page.
    pub(crate) fn check_origin<'r>(
        &self,
        headers: &'r HeaderMap,
    ) -> Result<Option<&'r HeaderValue>, Problem> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(None);
        };
        let text = origin.to_str().unwrap_or_default();
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let own = text.split_once("://").map(|(_, place)| place);
        if own.is_some() && own == host {
            return Ok(None);
        }
        if self
            .cors
            .iter()
            .any(|allowed| allowed == "*" || allowed == text)
        {
            return Ok(Some(origin));
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "wrong-origin",
            "web pages of this origin may not call the server",
        )
        .hint("add the origin to `cors` in the server's configuration"))
    }

    /// Who sent the request, by its key if keys are asked for.
    fn check_key(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Access, Problem> {
        let from = peer.map(place);
        if !self.keys.are_needed() {
            return Ok(Access::anonymous(Caller::Address(from), self.rate));
        }
        let unknown = || {
            Problem::new(
                StatusCode::UNAUTHORIZED,
                "no-key",
                "the request has no API key that is known here",
            )
            .hint("send one as `Authorization: Bearer KEY`")
        };
        let digest: [u8; 32] = Sha256::digest(given_key(headers).ok_or_else(unknown)?).into();
        let found = self.keys.find(&digest);
        (self.wrong_keys).check(from, &digest, found.is_some(), Instant::now())?;
        found
            .ok_or_else(unknown)?
            .access(self.rate, SystemTime::now())
    }

    /// Counts a request of somebody, or one call of a request that has several.
    pub(crate) fn count(&self, access: &Access) -> Result<(), Problem> {
        (self.rates).take(access.caller, access.rate, Instant::now())
    }

    pub(crate) fn admit(&self, request: &Request, route: &str) -> Result<Access, Problem> {
        let path = request.uri().path();
        if OPEN.contains(&path) || is_file(path) {
            return Ok(Access::nobody());
        }
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        let access = self.check_key(request.headers(), peer)?;
        self.count(&access)?;
        if let Some(scope) = scope_of(route) {
            access.check_somewhere(scope)?;
        }
        Ok(access)
    }
}

/// What a key must be for, on one graph at least, before a route looks at the request; which graph
/// it names is looked at there. Others need any key, or look by themselves.
fn scope_of(route: &str) -> Option<Scope> {
    match route {
        "/v1/ask"
        | "/v1/retrieve"
        | "/v1/link"
        | "/v1/verify"
        | "/v1/complete"
        | "/v1/entities"
        | "/v1/neighbourhood"
        | "/v1/graphs/{graph}/relations"
        | "/v1/graphs/{graph}/schema"
        | "/text2sparql"
        | "/v1/chat/completions" => Some(Scope::Ask),
        "/v1/sparql" | "/v1/graphs/{graph}/sparql" => Some(Scope::Sparql),
        "/v1/triples" => Some(Scope::Write),
        "/v1/feedback" => Some(Scope::Feedback),
        "/metrics" => Some(Scope::Metrics),
        runs if runs.starts_with("/v1/runs") => Some(Scope::Ask),
        _ => None,
    }
}

/// The key that came along.
fn given_key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
    let plain = || headers.get("x-api-key")?.to_str().ok();
    bearer.or_else(plain).filter(|key| !key.is_empty())
}

/// `[::1]:80` is `::1`, `localhost:80` is `localhost`.
fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    if host.parse::<IpAddr>().is_ok() {
        return host;
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::HeaderName;

    use super::*;
    use crate::keys::new_key;

    fn guard(text: &str) -> Guard {
        Guard::new(&ServeConfig::from_toml(text).unwrap()).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    fn request(uri: &str, pairs: &[(&'static str, &str)]) -> Request {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = uri.parse().unwrap();
        for (name, value) in pairs {
            let value = HeaderValue::from_str(value).unwrap();
            request.headers_mut().append(*name, value);
        }
        request
    }

    #[test]
    fn a_key_is_known_by_its_hash_alone() {
        let (key, sha256) = new_key().unwrap();
        let (_, other) = new_key().unwrap();
        let guard = guard(&format!(
            "keys = [{{ name = \"a\", sha256 = \"{other}\" }}, {{ name = \"b\", sha256 = \"{sha256}\" }}]"
        ));
        let name = |pairs: &[(&'static str, &str)]| {
            let access = guard.check_key(&headers(pairs), None);
            access.map(|access| access.name.unwrap().to_string())
        };
        let bearer = format!("Bearer {key}");
        assert_eq!(name(&[("authorization", &bearer)]).unwrap(), "b");
        assert_eq!(name(&[("x-api-key", &key)]).unwrap(), "b");
        for wrong in ["", "Bearer", "Bearer x", "Basic abc", &format!("{bearer}x")] {
            let refused = name(&[("authorization", wrong)]).unwrap_err();
            assert_eq!((refused.status, refused.code), (401, "no-key"));
        }
        assert_eq!(name(&[]).unwrap_err().status, 401);
        assert!(!format!("{guard:?}").contains(&key));
    }

    #[test]
    fn wrong_keys_are_refused_after_a_handful_and_no_key_is_none() {
        let (key, sha256) = new_key().unwrap();
        let guard = guard(&format!(
            "keys = [{{ name = \"a\", sha256 = \"{sha256}\" }}]\nlimits = {{ wrong_keys = 3 }}"
        ));
        let there = Some(IpAddr::from([10, 0, 0, 1]));
        let status = |key: &str, peer| {
            let given = headers(&[("x-api-key", key)]);
            guard
                .check_key(&given, peer)
                .map_or_else(|p| p.status, |_| 200)
        };
        for _ in 0..5 {
            assert_eq!(status("", there), 401);
            assert_eq!(status("old", there), 401);
        }
        assert_eq!(status("guess 1", there), 401);
        assert_eq!(status("guess 2", there), 401);
        assert_eq!((status("guess 3", there), status(&key, there)), (429, 429));
        assert_eq!(status(&key, Some(IpAddr::from([10, 0, 0, 2]))), 200);
    }

    #[test]
    fn only_known_names_are_served() {
        let status = |guard: &Guard, host: &str| {
            let result = guard.check_host(&request("/", &[("host", host)]));
            result.map_or_else(|problem| problem.status, |()| 200)
        };
        let local = guard("hosts = [\"Graph.example\"]");
        let open = guard("listen = \"0.0.0.0:1\"\nhosts = [\"Graph.example:8080\"]");
        for (host, on_loopback, elsewhere) in [
            ("localhost:7878", 200, 200),
            ("127.0.0.1", 200, 200),
            ("[::1]:7878", 200, 200),
            ("graph.example", 200, 200),
            ("GRAPH.example:80", 200, 200),
            ("evil.example:7878", 403, 403),
            ("localhost.evil.example", 403, 403),
            ("1.2.3.4.evil.example", 403, 403),
            ("", 403, 403),
            // no web page can make an address its own
            ("10.1.2.3:7878", 403, 200),
            ("[2001:db8::1]", 403, 200),
        ] {
            assert_eq!(status(&local, host), on_loopback, "{host}");
            assert_eq!(status(&open, host), elsewhere, "{host}");
        }
        let any = guard("listen = \"0.0.0.0:1\"\nhosts = [\"*\"]");
        assert_eq!(status(&any, "evil.example"), 200);
    }

    #[test]
    fn a_request_has_one_host() {
        let guard = guard("");
        let code = |uri: &str, hosts: &[&str]| {
            let pairs: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            let result = guard.check_host(&request(uri, &pairs));
            result.map_or_else(|problem| (problem.status, problem.code), |()| (200, ""))
        };
        assert_eq!(code("/", &[]), (400, "bad-host"));
        assert_eq!(code("/", &["localhost", "localhost"]), (400, "bad-host"));
        assert_eq!(code("/", &["localhost", "evil.example"]), (400, "bad-host"));
        assert_eq!(code("http://localhost:1/", &["localhost:1"]), (200, ""));
        assert_eq!(
            code("http://evil.example/", &["localhost"]),
            (400, "bad-host")
        );
        assert_eq!(
            code("http://evil.example/", &["evil.example"]),
            (403, "wrong-host")
        );
    }

    #[test]
    fn other_sites_may_link_to_the_page_and_load_nothing() {
        let strict = guard("");
        let allowed = guard("cors = [\"https://app.example\"]");
        let any = guard("cors = [\"*\"]");
        let image = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-dest", "image"),
        ];
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        let frame = [
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "iframe"),
        ];
        let fetched = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "cors"),
            ("origin", "https://app.example"),
        ];
        let good = |guard: &Guard, uri: &str, pairs: &[(&'static str, &str)]| {
            let request = request(uri, pairs);
            let result = guard.check_site(&request);
            let result = result.and_then(|()| Ok(guard.check_origin(request.headers())?.cloned()));
            result.is_ok()
        };
        for api in ["/v1/graphs", "/v1/sparql?query=ASK%7B%7D", "/metrics"] {
            assert!(!good(&strict, api, &image), "{api}");
            assert!(!good(&strict, api, &link), "{api}");
            assert!(!good(&strict, api, &frame), "{api}");
            assert!(!good(&strict, api, &fetched), "{api}");
            // an image says no origin, so that nobody knows whose it is
            assert!(!good(&allowed, api, &image), "{api}");
            assert!(good(&allowed, api, &fetched), "{api}");
            assert!(good(&any, api, &image), "{api}");
            for own in ["same-origin", "none"] {
                assert!(good(&strict, api, &[("sec-fetch-site", own)]), "{api}");
            }
            assert!(good(&strict, api, &[]), "{api}");
        }
        assert!(good(&strict, "/?q=who", &link) && good(&strict, "/docs", &link));
        assert!(!good(&strict, "/", &image) && !good(&strict, "/", &frame));
    }

    #[test]
    fn pages_of_other_origins_are_kept_out_unless_allowed() {
        let from = |origin: &str| headers(&[("host", "localhost:1"), ("origin", origin)]);
        let strict = guard("");
        assert!(
            strict
                .check_origin(&from("http://localhost:1"))
                .unwrap()
                .is_none()
        );
        for origin in ["http://localhost:2", "https://evil.example", "null"] {
            assert_eq!(strict.check_origin(&from(origin)).unwrap_err().status, 403);
        }
        let allowed = guard("cors = [\"https://app.example\"]");
        let good = from("https://app.example");
        assert!(allowed.check_origin(&good).unwrap().is_some());
        assert!(
            allowed
                .check_origin(&from("https://app.example.evil"))
                .is_err()
        );
    }
}
