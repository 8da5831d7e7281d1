//! HTTP requests to a SPARQL service, with retries and limits.
//!
//! 429, 5xx and connections that fail are tried again, after as long as the service asks for. One
//! deadline holds for all attempts of a request and for the whole reply, so that a service that
//! sends its reply byte by byte cannot block a question for ever.
//! The reply must be SPARQL results: a web page, another content type, a truncated or an endless
//! reply is an error, and so is one that the service gave up in the middle. Credentials are sent to that service alone and never logged.

use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oxrdf::Term;
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use ureq::http::Response;
use ureq::{Agent, Body};

use super::config::{Method, ServiceConfig, with_environment};
use super::engine::{Engine, LAST_WORDS, ReplyStatus, ends_given_up, gave_up};
use super::lock;
use crate::error::{Error, Result};

/// Characters of a service's own message that an error shows.
const MAX_MESSAGE: usize = 300;

/// How many times the wait for one reply a request may take in all: attempts, pauses and the body.
/// A guess: at the default timeout of 30 s, large pages of slow services come in within two
/// minutes.
const TIMEOUTS_IN_ALL: u32 = 4;

const RESULTS: &str = "application/sparql-results+json, application/sparql-results+xml;q=0.5";

/// An HTTP client for one service.
#[derive(Clone, Debug)]
pub(super) struct Client {
    url: String,
    graph: Option<String>,
    engine: Engine,
    method: Method,
    headers: Vec<(String, Secret)>,
    agent: Agent,
    timeout: Duration,
    /// For one request in all: attempts, pauses and the body.
    total: Duration,
    max_wait: Duration,
    retries: u32,
    max_bytes: u64,
    /// All requests of the service.
    all: Arc<Traffic>,
    /// The limits of one question.
    budget: Option<Arc<Budget>>,
}

/// Request counters.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) requests: AtomicU64,
    /// Requests that were sent while no other was under way.
    pub(super) rounds: AtomicU64,
    under_way: AtomicU64,
}

impl Traffic {
    fn begin(&self) {
        if self.under_way.fetch_add(1, Ordering::Relaxed) == 0 {
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn end(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Limits of one question.
#[derive(Debug)]
struct Budget {
    used: Traffic,
    requests: u64,
    time: Duration,
    /// Extended by work that is not charged to the question.
    deadline: Mutex<Instant>,
}

impl Budget {
    fn deadline(&self) -> Instant {
        *lock(&self.deadline)
    }
}

/// A text that debug output hides.
#[derive(Clone)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Rows of a `SELECT`.
pub(super) struct Reply {
    pub(super) variables: Vec<String>,
    pub(super) rows: Vec<Vec<Option<Term>>>,
    /// Whether there may be more rows.
    pub(super) cut: bool,
}

impl Client {
    pub(super) fn new(config: &ServiceConfig) -> Result<Self> {
        let bad = |reason: String| Error::BadService {
            name: config.url.clone(),
            reason,
        };
        let unset = |name: String| bad(format!("the environment variable `{name}` is not set"));
        let mut headers = Vec::new();
        for (name, value) in &config.headers {
            let value = with_environment(value).map_err(unset)?;
            let good = ureq::http::HeaderName::from_bytes(name.as_bytes()).is_ok()
                && ureq::http::HeaderValue::from_str(&value).is_ok();
            if !good {
                return Err(bad(format!("the header `{name}` cannot be sent")));
            }
            headers.push((name.clone(), Secret(value)));
        }
        let variable = |name: &str| std::env::var(name).map_err(|_| unset(name.to_owned()));
        if let Some(name) = &config.token_env {
            let value = format!("Bearer {}", variable(name)?);
            headers.push(("authorization".into(), Secret(value)));
        } else if let (Some(user), Some(password)) = (&config.user_env, &config.password_env) {
            let pair = format!("{}:{}", variable(user)?, variable(password)?);
            let value = format!("Basic {}", base64(pair.as_bytes()));
            headers.push(("authorization".into(), Secret(value)));
        }
        let timeout = config.timeout();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(timeout.min(Duration::from_secs(20))))
            .timeout_recv_response(Some(timeout))
            .timeout_per_read(Some(timeout))
            .user_agent("wherefore")
            .build()
            .new_agent();
        Ok(Self {
            url: config.url.clone(),
            graph: config.graph.clone(),
            engine: config.engine,
            method: config.method,
            headers,
            agent,
            timeout,
            total: timeout.saturating_mul(TIMEOUTS_IN_ALL),
            max_wait: Duration::from_secs_f64(config.limits.max_wait_s),
            retries: config.limits.retries,
            max_bytes: config.limits.bytes,
            all: Arc::default(),
            budget: None,
        })
    }

    /// A client with the limits of one question.
    pub(super) fn within(&self, requests: u64, time: Duration) -> Self {
        let budget = Budget {
            used: Traffic::default(),
            requests,
            time,
            deadline: Mutex::new(Instant::now() + time),
        };
        Self {
            budget: Some(Arc::new(budget)),
            ..self.clone()
        }
    }

    /// A client without limits for a question.
    pub(super) fn without_budget(&self) -> Self {
        Self {
            budget: None,
            ..self.clone()
        }
    }

    /// Extends the deadline of the question, if there is one.
    pub(super) fn extend_deadline(&self, by: Duration) {
        if let Some(budget) = &self.budget {
            *lock(&budget.deadline) += by;
        }
    }

    /// The counters of the question, or of all requests without one.
    pub(super) fn traffic(&self) -> &Traffic {
        (self.budget.as_ref()).map_or(&self.all, |budget| &budget.used)
    }

    /// Counts a request; an error if the budget is spent.
    fn spend(&self) -> Result<()> {
        self.all.requests.fetch_add(1, Ordering::Relaxed);
        if let Some(budget) = &self.budget {
            let sent = budget.used.requests.fetch_add(1, Ordering::Relaxed);
            if sent >= budget.requests {
                self.all.requests.fetch_sub(1, Ordering::Relaxed);
                budget.used.requests.fetch_sub(1, Ordering::Relaxed);
                return Err(Error::RequestsSpent {
                    url: self.url.clone(),
                    limit: budget.requests,
                });
            }
        }
        Ok(())
    }

    /// The longest time that a request may take.
    fn longest(&self, limit: Option<Duration>) -> Duration {
        limit.map_or(self.total, |limit| limit.min(self.total))
    }

    /// The deadline of a request that starts now.
    fn deadline(&self, limit: Option<Duration>) -> Result<Instant> {
        let deadline = Instant::now() + self.longest(limit);
        match &self.budget {
            Some(budget) if budget.deadline() <= Instant::now() => Err(self.late(budget)),
            Some(budget) => Ok(deadline.min(budget.deadline())),
            None => Ok(deadline),
        }
    }

    fn late(&self, budget: &Budget) -> Error {
        Error::ServiceTooSlow {
            url: self.url.clone(),
            seconds: budget.time.as_secs_f64(),
        }
    }

    /// Rows of a `SELECT`, `limit` at most.
    pub(super) fn select(&self, query: &str, limit: usize) -> Result<Reply> {
        let mut reply = Reply {
            variables: Vec::new(),
            rows: Vec::new(),
            cut: false,
        };
        let max_rows = self.each_row(query, |variables, row| {
            if reply.variables.is_empty() {
                reply.variables = variables.to_vec();
            }
            // an endpoint that ignores `LIMIT` is not read to its end
            if reply.rows.len() == limit {
                reply.cut = true;
                return Ok(false);
            }
            reply.rows.push(row);
            Ok(true)
        })?;
        reply.cut |= max_rows.is_some_and(|max_rows| reply.rows.len() >= max_rows);
        Ok(reply)
    }

    /// Calls `each` with the variables and each row until it returns false. Gives the number of
    /// rows at which the service says that it truncates.
    pub(super) fn each_row(
        &self,
        query: &str,
        mut each: impl FnMut(&[String], Vec<Option<Term>>) -> Result<bool>,
    ) -> Result<Option<usize>> {
        let response = self.send(query, RESULTS)?;
        // Virtuoso truncates results and says so in this header
        let max_rows = (response.headers().get("x-sparql-maxrows"))
            .and_then(|value| value.to_str().ok()?.parse().ok());
        match self.results(response)? {
            ReaderQueryResultsParserOutput::Boolean(_) => {
                Err(self.bad_reply("it sent a boolean instead of rows"))
            }
            ReaderQueryResultsParserOutput::Solutions(solutions) => {
                let variables: Vec<String> = (solutions.variables().iter())
                    .map(|v| v.as_str().to_owned())
                    .collect();
                for solution in solutions {
                    let solution = solution.map_err(|e| self.broken(&e))?;
                    if !each(&variables, solution.values().to_vec())? {
                        break;
                    }
                }
                Ok(max_rows)
            }
        }
    }

    /// The answer to an `ASK`.
    pub(super) fn ask(&self, query: &str) -> Result<bool> {
        let response = self.send(query, RESULTS)?;
        match self.results(response)? {
            ReaderQueryResultsParserOutput::Boolean(answer) => Ok(answer),
            ReaderQueryResultsParserOutput::Solutions(_) => {
                Err(self.bad_reply("it sent rows instead of a boolean"))
            }
        }
    }

    /// A parser for the reply's format, JSON or XML.
    pub(super) fn results(
        &self,
        response: Response<Body>,
    ) -> Result<ReaderQueryResultsParserOutput<impl Read + use<>>> {
        let kind = content_type(&response);
        let format = match kind.as_str() {
            "application/sparql-results+json" | "application/json" => QueryResultsFormat::Json,
            "application/sparql-results+xml" | "application/xml" | "text/xml" => {
                QueryResultsFormat::Xml
            }
            _ => return Err(self.wrong_kind(&kind)),
        };
        QueryResultsParser::from_format(format)
            .for_reader(self.limited(response))
            .map_err(|e| self.broken(&e))
    }

    /// The body of a reply, limited in size.
    pub(super) fn limited(&self, response: Response<Body>) -> impl Read + use<> {
        LimitedBody {
            inner: response.into_body().into_reader(),
            left: self.max_bytes,
            held: Vec::new(),
            ready: 0,
            ended: false,
        }
    }

    pub(super) fn wrong_kind(&self, kind: &str) -> Error {
        match kind {
            "text/html" => {
                self.bad_reply("it sent a web page: the address may be that of a query form")
            }
            "" => self.bad_reply("its response has no content type"),
            kind => self.bad_reply(&format!("it sent `{kind}`, which is not a SPARQL result")),
        }
    }

    /// Sends a query, with retries.
    pub(super) fn send(&self, query: &str, accept: &str) -> Result<Response<Body>> {
        self.send_within(query, accept, None)
    }

    /// Sends a query whose whole reply must arrive within `limit`.
    pub(super) fn send_within(
        &self,
        query: &str,
        accept: &str,
        limit: Option<Duration>,
    ) -> Result<Response<Body>> {
        self.spend()?;
        let counts = [Some(&*self.all), self.budget.as_ref().map(|b| &b.used)];
        counts.iter().flatten().for_each(|traffic| traffic.begin());
        let response = self.send_until_answered(query, accept, limit);
        counts.iter().flatten().for_each(|traffic| traffic.end());
        response
    }

    fn send_until_answered(
        &self,
        query: &str,
        accept: &str,
        limit: Option<Duration>,
    ) -> Result<Response<Body>> {
        let deadline = self.deadline(limit)?;
        let mut wait = Duration::from_millis(250);
        for attempt in 0.. {
            if attempt > 0 {
                self.spend()?;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let (error, requested_wait) = match self.send_once(query, accept, left) {
                Ok(response) if response.status().is_success() => {
                    let reply = ReplyStatus {
                        status: response.status().as_u16(),
                        headers: response.headers(),
                        message: "",
                    };
                    return match gave_up(&reply) {
                        true => Err(self.given_up("it sent a part of the result")),
                        false => Ok(response),
                    };
                }
                Ok(response) => {
                    let requested_wait = retry_after(&response);
                    let error = self.refusal(response);
                    // a query that was stopped would be stopped again
                    if !matches!(
                        &error,
                        Error::ServiceRefused {
                            status: 429 | 502..=504,
                            ..
                        }
                    ) {
                        return Err(error);
                    }
                    (error, requested_wait)
                }
                Err(ureq::Error::Timeout(_)) => {
                    self.deadline(limit)?;
                    let seconds = self.timeout.min(self.longest(limit)).as_secs_f64();
                    (
                        self.unreachable(&format!("no reply in {seconds:.1} s")),
                        None,
                    )
                }
                Err(e) => {
                    let error = self.unreachable(&e.to_string());
                    if !matches!(e, ureq::Error::Io(_) | ureq::Error::ConnectionFailed) {
                        return Err(error);
                    }
                    // certificate errors are I/O errors too, and a retry does not help
                    if matches!(&e, ureq::Error::Io(io) if is_tls(io)) {
                        return Err(error);
                    }
                    (error, None)
                }
            };
            let pause = requested_wait.unwrap_or(wait);
            let in_time = Instant::now() + pause < deadline;
            if attempt >= self.retries || pause > self.max_wait || !in_time {
                return Err(error);
            }
            std::thread::sleep(pause);
            wait = (wait * 2).min(self.max_wait);
        }
        unreachable!("the loop only ends by returning")
    }

    fn send_once(
        &self,
        query: &str,
        accept: &str,
        left: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let mut fields = vec![("query", query)];
        fields.extend(
            self.graph
                .as_deref()
                .map(|graph| ("default-graph-uri", graph)),
        );
        let time_limit = self.engine.dialect().time_limit(left);
        fields.extend(time_limit.as_ref().map(|(name, value)| (*name, &**value)));
        match self.method {
            Method::Post => {
                let mut request = self.agent.post(&self.url).header("accept", accept);
                for (name, Secret(value)) in &self.headers {
                    request = request.header(name, value);
                }
                let request = request.config().timeout_global(Some(left)).build();
                request.send_form(fields)
            }
            Method::Get => {
                let mut request = self.agent.get(&self.url).header("accept", accept);
                for (name, Secret(value)) in &self.headers {
                    request = request.header(name, value);
                }
                for (name, value) in fields {
                    request = request.query(name, value);
                }
                let request = request.config().timeout_global(Some(left)).build();
                request.call()
            }
        }
    }

    fn unreachable(&self, reason: &str) -> Error {
        Error::ServiceUnreachable {
            url: self.url.clone(),
            reason: self.redacted(reason),
        }
    }

    fn given_up(&self, reason: &str) -> Error {
        Error::ServiceGaveUp {
            url: self.url.clone(),
            reason: self.redacted(reason),
        }
    }

    pub(super) fn bad_reply(&self, reason: &str) -> Error {
        Error::BadReply {
            url: self.url.clone(),
            reason: self.redacted(reason),
        }
    }

    /// The error for a reply that cannot be parsed.
    pub(super) fn broken(&self, error: &dyn std::error::Error) -> Error {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(e) = cause {
            text += &format!(": {e}");
            cause = e.source();
        }
        if text.contains("buffer maximal size") {
            return self.bad_reply(TOO_LONG);
        }
        // so says the client, and parsers repeat it as it is
        if text.starts_with("timeout: ") {
            return match &self.budget {
                Some(budget) if budget.deadline() <= Instant::now() => self.late(budget),
                _ => self.bad_reply(TOO_SLOW),
            };
        }
        if text.contains(GIVEN_UP) {
            return self.given_up(GIVEN_UP);
        }
        if text.contains(ENDLESS) {
            let limit = self.max_bytes;
            return self.bad_reply(&format!("it sent more than {limit} bytes"));
        }
        self.bad_reply(&format!("the response is truncated or malformed: {text}"))
    }

    /// A message on one line, shortened and without secrets.
    fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (_, Secret(value)) in &self.headers {
            let bare = value
                .split_once(' ')
                .map_or(value.as_str(), |(_, bare)| bare);
            for secret in [value.as_str(), bare] {
                if secret.len() > 3 {
                    text = text.replace(secret, "…");
                }
            }
        }
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(MAX_MESSAGE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// The error for a reply with an error status.
    fn refusal(&self, response: Response<Body>) -> Error {
        let status = response.status().as_u16();
        let is_page = content_type(&response) == "text/html";
        let headers = response.headers().clone();
        let mut bytes = Vec::new();
        let reader = response.into_body().into_reader();
        // a partial message is better than none
        let _ = reader.take(16_384).read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let reply = ReplyStatus {
            status,
            headers: &headers,
            message: &text,
        };
        if gave_up(&reply) {
            return self.given_up(&text);
        }
        let reason = match is_page {
            true => "it sent a web page".to_owned(),
            false => self.redacted(&text),
        };
        Error::ServiceRefused {
            url: self.url.clone(),
            status,
            reason,
        }
    }
}

const ENDLESS: &str = "the reply is too long";

const GIVEN_UP: &str = "it broke off in the middle of the result and said so";

const TOO_SLOW: &str = "it did not send a whole reply in time";

const TOO_LONG: &str = "it contains a term of many megabytes";

/// Whether a reply could not be read because of one term in it.
pub(super) fn is_too_long(error: &Error) -> bool {
    matches!(error, Error::BadReply { reason, .. } if reason == TOO_LONG)
}

/// A reader that fails when a reply is too long, or ends with the words of an engine that gave it
/// up. It holds back as many bytes as such words may have.
struct LimitedBody<R> {
    inner: R,
    left: u64,
    /// Bytes that were read and not handed out; `ready` of them are no last words.
    held: Vec<u8>,
    ready: usize,
    ended: bool,
}

impl<R: Read> LimitedBody<R> {
    /// Reads as much at once as is wanted: parsers look at a long term anew with each read.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        while self.ready == 0 && !self.ended {
            let known = self.held.len();
            self.held.resize(known + wanted + LAST_WORDS, 0);
            let read = self.inner.read(&mut self.held[known..]);
            let read = read.inspect_err(|_| self.held.truncate(known))?;
            self.held.truncate(known + read);
            self.left = (self.left)
                .checked_sub(read as u64)
                .ok_or_else(|| io::Error::other(ENDLESS))?;
            self.ended = read == 0;
            if self.ended && ends_given_up(&self.held) {
                return Err(io::Error::other(GIVEN_UP));
            }
            let kept = if self.ended { 0 } else { LAST_WORDS };
            self.ready = self.held.len().saturating_sub(kept);
        }
        Ok(())
    }
}

impl<R: Read> Read for LimitedBody<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill(buffer.len())?;
        let given = self.ready.min(buffer.len());
        buffer[..given].copy_from_slice(&self.held[..given]);
        self.held.drain(..given);
        self.ready -= given;
        Ok(given)
    }
}

fn is_tls(error: &io::Error) -> bool {
    let text = format!("{error:?}").to_ascii_lowercase();
    error.kind() == io::ErrorKind::InvalidData || text.contains("certificate")
}

pub(super) fn content_type(response: &Response<Body>) -> String {
    let value = response.headers().get("content-type");
    let value = value.and_then(|v| v.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Seconds only: dates are of no use without a common clock.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let value = response.headers().get("retry-after")?.to_str().ok()?;
    let seconds: f64 = value.trim().parse().ok()?;
    (0.0..=86_400.0)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("user:pass", "dXNlcjpwYXNz"),
        ] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
