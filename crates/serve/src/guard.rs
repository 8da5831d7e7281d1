//! Who may come in, how often, and what every reply carries.
//!
//! In this order: the name that the server is called by, the origin of the web page, the API key,
//! the rate. Keys are compared by their SHA-256, with all keys, in constant time.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::app::App;
use crate::config::{KeyConfig, ServeConfig};
use crate::error::{Error, Result};
use crate::problem::{Problem, Told};

/// Paths that need no key: the page's files, which hold nothing, and what a supervisor asks.
const OPEN: [&str; 10] = [
    "/",
    "/app.js",
    "/network.js",
    "/style.css",
    "/favicon.svg",
    "/docs",
    "/docs.js",
    "/openapi.json",
    "/health",
    "/ready",
];

/// Buckets that are kept before full ones are thrown out.
const MOST_BUCKETS: usize = 10_000;

/// What may be loaded into our pages: nothing from elsewhere, nothing inline.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The rules, and how much everybody has used.
#[derive(Debug)]
pub(crate) struct Guard {
    keys: Vec<Key>,
    /// None where every name will do.
    hosts: Option<Vec<String>>,
    cors: Vec<String>,
    rate: f64,
    burst: f64,
    buckets: Mutex<HashMap<Caller, Bucket>>,
}

#[derive(Debug)]
struct Key {
    name: String,
    digest: [u8; 32],
    rate: f64,
    may_write: bool,
}

/// Travels with a request whose key may change graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MayWrite;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Caller {
    Key(usize),
    Address(Option<IpAddr>),
}

/// A bucket of requests that fills up with time.
#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Guard {
    pub(crate) fn new(config: &ServeConfig) -> Result<Self> {
        let limits = &config.limits;
        let mut keys = Vec::with_capacity(config.keys.len());
        for key in &config.keys {
            keys.push(Key {
                name: key.name.clone(),
                digest: digest(key)?,
                rate: key.rate.unwrap_or(limits.rate),
                may_write: key.write,
            });
        }
        let loopback = config.listen.ip().is_loopback();
        let hosts = (loopback || !config.hosts.is_empty()).then(|| {
            let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
            let given = config.hosts.iter().map(|h| h.to_ascii_lowercase());
            own.into_iter().chain(given).collect()
        });
        Ok(Self {
            keys,
            hosts,
            cors: config.cors.clone(),
            rate: limits.rate,
            burst: f64::from(limits.burst.max(1)),
            buckets: Mutex::default(),
        })
    }

    fn check_host(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let (Some(hosts), Some(host)) = (&self.hosts, headers.get(header::HOST)) else {
            return Ok(());
        };
        let host = host.to_str().unwrap_or_default();
        if hosts.contains(&without_port(host).to_ascii_lowercase()) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "wrong-host",
            "this server does not go by the name in the request",
        )
        .hint("add the name to `hosts` in the server's configuration"))
    }

    /// The origin that the reply may be read from; none for requests of our own page or of no page.
    fn check_origin<'r>(&self, headers: &'r HeaderMap) -> Result<Option<&'r HeaderValue>, Problem> {
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

    /// Which key came along, if keys are asked for.
    fn check_key(&self, headers: &HeaderMap) -> Result<Option<usize>, Problem> {
        if self.keys.is_empty() {
            return Ok(None);
        }
        let bearer = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| {
                let (scheme, key) = value.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
            });
        let plain = || {
            headers
                .get("x-api-key")
                .and_then(|value| value.to_str().ok())
        };
        let given: [u8; 32] = Sha256::digest(bearer.or_else(plain).unwrap_or_default()).into();
        // every key is compared: how long it takes tells nothing of which one it was
        let mut found = u64::MAX;
        for (number, key) in self.keys.iter().enumerate() {
            let same = key.digest.ct_eq(&given);
            found = u64::conditional_select(&found, &(number as u64), same);
        }
        if found < u64::MAX {
            return Ok(Some(found as usize));
        }
        Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "no-key",
            "the request has no API key that is known here",
        )
        .hint("send one as `Authorization: Bearer KEY`"))
    }

    fn check_rate(
        &self,
        key: Option<usize>,
        peer: Option<IpAddr>,
        now: Instant,
    ) -> Result<(), Problem> {
        let rate = key.map_or(self.rate, |key| self.keys[key].rate);
        if rate <= 0.0 {
            return Ok(());
        }
        let caller = key.map_or(Caller::Address(peer), Caller::Key);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_BUCKETS {
            let full = |b: &Bucket| b.left + (now - b.at).as_secs_f64() * self.rate >= self.burst;
            buckets.retain(|_, bucket| !full(bucket));
        }
        let bucket = buckets.entry(caller).or_insert(Bucket {
            left: self.burst,
            at: now,
        });
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + since * rate).min(self.burst);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let wait = ((1.0 - bucket.left) / rate).ceil().clamp(1.0, 3600.0) as u16;
        Err(Problem::busy(
            "rate",
            "too many requests in too short a time",
            wait,
        ))
    }

    /// What the key is called.
    fn key_name(&self, key: Option<usize>) -> Option<&str> {
        key.map(|key| self.keys[key].name.as_str())
    }

    fn admit(&self, request: &Request) -> Result<Option<usize>, Problem> {
        if OPEN.contains(&request.uri().path()) {
            return Ok(None);
        }
        let key = self.check_key(request.headers())?;
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        self.check_rate(key, peer, Instant::now())?;
        Ok(key)
    }
}

fn digest(key: &KeyConfig) -> Result<[u8; 32]> {
    let bad = || {
        Error::Config(format!(
            "`sha256` of the key `{}` is not 64 hexadecimal digits",
            key.name
        ))
    };
    let text = key.sha256.as_bytes();
    if text.len() != 64 {
        return Err(bad());
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |b: u8| char::from(b).to_digit(16).ok_or_else(bad);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Ok(digest)
}

/// A new key and its SHA-256, for the configuration.
pub fn new_key() -> Result<(String, String)> {
    let mut random = [0u8; 24];
    getrandom::fill(&mut random).map_err(|error| Error::System {
        action: "draw a random key",
        source: std::io::Error::other(error.to_string()),
    })?;
    let key = format!("wf-{}", hexadecimal(&random));
    let digest = hexadecimal(&Sha256::digest(&key));
    Ok((key, digest))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `[::1]:80` is `::1`, `localhost:80` is `localhost`.
fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Around every request: the rules before, headers, metrics and the log after.
pub(crate) async fn watch(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let route = (request.extensions().get::<MatchedPath>())
        .map_or("other", MatchedPath::as_str)
        .to_owned();
    let guard = &app.guard;
    let before = guard
        .check_host(request.headers())
        .and_then(|()| Ok(guard.check_origin(request.headers())?.cloned()));
    let is_preflight = request.method() == Method::OPTIONS
        && (request.headers()).contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut key = None;
    let (mut response, origin) = match before {
        Err(problem) => (problem.into_response(), None),
        // a preflight carries no key
        Ok(Some(origin)) if is_preflight => (preflight(), Some(origin)),
        Ok(origin) => match guard.admit(&request) {
            Err(problem) => (problem.into_response(), origin),
            Ok(admitted) => {
                key = admitted;
                if admitted.is_some_and(|key| guard.keys[key].may_write) {
                    request.extensions_mut().insert(MayWrite);
                }
                (next.run(request).await, origin)
            }
        },
    };
    if let Some(Told(Some(line))) = response.extensions().get::<Told>() {
        let who = guard
            .key_name(key)
            .map_or(String::new(), |k| format!(" key {k}"));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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

    #[test]
    fn a_key_is_known_by_its_hash_alone() {
        let (key, sha256) = new_key().unwrap();
        let (_, other) = new_key().unwrap();
        let guard = guard(&format!(
            "keys = [{{ name = \"a\", sha256 = \"{other}\" }}, {{ name = \"b\", sha256 = \"{sha256}\" }}]"
        ));
        let bearer = headers(&[("authorization", &format!("Bearer {key}"))]);
        assert_eq!(guard.check_key(&bearer).unwrap(), Some(1));
        let plain = headers(&[("x-api-key", &key)]);
        assert_eq!(guard.check_key(&plain).unwrap(), Some(1));
        for wrong in [
            "",
            "Bearer",
            "Bearer x",
            "Basic abc",
            &format!("Bearer {key}x"),
        ] {
            let given = headers(&[("authorization", wrong)]);
            assert_eq!(guard.check_key(&given).unwrap_err().status, 401);
        }
        assert_eq!(guard.check_key(&HeaderMap::new()).unwrap_err().status, 401);
        assert!(!format!("{guard:?}").contains(&key));
    }

    #[test]
    fn a_hash_that_is_none_is_refused() {
        for text in ["", "abc", &"g".repeat(64), &"ä".repeat(32)] {
            let config = format!("keys = [{{ name = \"a\", sha256 = \"{text}\" }}]");
            let config = ServeConfig::from_toml(&config).unwrap();
            assert!(Guard::new(&config).is_err(), "{text}");
        }
    }

    #[test]
    fn on_loopback_only_known_names_are_served() {
        let guard = guard("hosts = [\"Graph.example\"]");
        for (host, good) in [
            ("localhost:7878", true),
            ("127.0.0.1", true),
            ("[::1]:7878", true),
            ("graph.example", true),
            ("evil.example:7878", false),
            ("localhost.evil.example", false),
        ] {
            let result = guard.check_host(&headers(&[("host", host)]));
            assert_eq!(result.is_ok(), good, "{host}");
        }
        let open = super::tests::guard("listen = \"0.0.0.0:1\"");
        assert!(
            open.check_host(&headers(&[("host", "any.example")]))
                .is_ok()
        );
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

    #[test]
    fn the_rate_counts_for_each_caller() {
        let guard = guard("limits = { rate = 2.0, burst = 3 }");
        let now = Instant::now();
        let peer = |n: u8| Some(IpAddr::from([127, 0, 0, n]));
        for _ in 0..3 {
            guard.check_rate(None, peer(1), now).unwrap();
        }
        let refused = guard.check_rate(None, peer(1), now).unwrap_err();
        // half a second until the next, told in whole seconds
        assert_eq!((refused.status, refused.retry_after), (429, Some(1)));
        guard.check_rate(None, peer(2), now).unwrap();
        let later = now + Duration::from_millis(500);
        guard.check_rate(None, peer(1), later).unwrap();
        assert!(guard.check_rate(None, peer(1), later).is_err());
    }
}
