//! A server that speaks as OpenAI's does: vLLM, llama.cpp, Ollama, and the hosted ones.
//!
//! The name is `BASE#MODEL`, and options may follow:
//! `http://localhost:8080/v1#qwen2.5?context=32768&retries=5`. A base without a path gets `/v1`.
//!
//! The key comes from the environment variable `WHEREFORE_API_KEY`, or the one that `key_env`
//! names, and from nowhere else. It is sent to that server alone, and neither written, shown nor
//! told in an error, even where the server repeats it.

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

use super::sse::{Broken, Events};
use super::{Completion, Decoding, Finish, LanguageModel, Progress, Prompt, Watch};
use crate::{Error, Result};

/// The longest reply that is read where it is no stream, in bytes.
const MAX_REPLY: u64 = 16 << 20;

/// The longest stretch of an error's text that is told, in characters.
const MAX_TOLD: usize = 300;

/// How to deal with a server.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteOptions {
    /// Tokens that prompt and completion may have together.
    pub context: usize,
    /// How often a call is tried again after 429, 5xx or a connection that failed.
    pub retries: u32,
    /// Wait before the first retry; it doubles each time. A server's `Retry-After` wins.
    pub backoff: Duration,
    /// The longest wait that a server may ask for.
    pub max_wait: Duration,
    /// How long a server may be silent, before its reply and within it.
    pub timeout: Duration,
    /// How long a call may take in all: attempts, pauses and the whole reply.
    pub total: Duration,
    /// Calls at the same time.
    pub concurrency: usize,
    /// The environment variable with the key.
    pub key_env: String,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            context: 8192,
            retries: 4,
            backoff: Duration::from_millis(500),
            max_wait: Duration::from_secs(60),
            timeout: Duration::from_secs(120),
            // a guess: 2,000 tokens at 4 a second, with some room
            total: Duration::from_secs(600),
            concurrency: 4,
            key_env: "WHEREFORE_API_KEY".into(),
        }
    }
}

/// A model behind HTTP.
#[derive(Debug)]
pub struct Remote {
    base: String,
    model: String,
    identity: String,
    options: RemoteOptions,
    key: Option<Key>,
    agent: Agent,
    turns: Turns,
}

/// A key that cannot be shown.
struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// At most so many calls at the same time.
#[derive(Debug)]
struct Turns {
    free: Mutex<usize>,
    given_back: Condvar,
}

struct Turn<'a>(&'a Turns);

impl Turns {
    fn new(count: usize) -> Self {
        Self {
            free: Mutex::new(count.max(1)),
            given_back: Condvar::new(),
        }
    }

    /// None where no turn came before the deadline.
    fn take(&self, deadline: Instant) -> Option<Turn<'_>> {
        // a count is sound whatever panicked
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            let left = deadline.checked_duration_since(Instant::now())?;
            let woken = self.given_back.wait_timeout(free, left);
            free = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Some(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}

impl Remote {
    /// Takes `BASE#MODEL` with its options; the server is not asked yet.
    pub fn open(name: &str) -> Result<Self> {
        let (base, rest) = name.split_once('#').unwrap_or((name, ""));
        let (model, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let mut options = RemoteOptions::default();
        for setting in settings.split('&').filter(|s| !s.is_empty()) {
            options.set(setting)?;
        }
        Self::new(base, model, options)
    }

    /// A model at a base URL.
    pub fn new(base: &str, model: &str, options: RemoteOptions) -> Result<Self> {
        let bad = |wanted: &str| Error::BadOption {
            option: "llm",
            given: format!("{base}#{model}"),
            wanted: wanted.to_owned(),
        };
        let host = base.split_once("://").map_or(base, |(_, rest)| rest);
        let (host, path) = host.split_once('/').unwrap_or((host, ""));
        if host.contains('@') || base.contains('?') {
            // not repeated: there may be a secret in it
            return Err(Error::BadOption {
                option: "llm",
                given: "a URL with a secret in it".into(),
                wanted: "a plain URL; keys come from the environment".into(),
            });
        }
        if model.is_empty() {
            return Err(bad("`URL#MODEL`, with the name of a model on the server"));
        }
        let mut base = base.trim_end_matches('/').to_owned();
        if path.is_empty() {
            base += "/v1";
        }
        if base.parse::<ureq::http::Uri>().is_err() || host.is_empty() {
            return Err(bad("a URL like `http://localhost:8080/v1#MODEL`"));
        }
        let key = std::env::var(&options.key_env)
            .ok()
            .filter(|k| !k.is_empty());
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(options.timeout.min(Duration::from_secs(20))))
            .timeout_recv_response(Some(options.timeout))
            .timeout_per_read(Some(options.timeout))
            .user_agent("wherefore")
            .build()
            .new_agent();
        Ok(Self {
            identity: format!("{base}#{model}"),
            base,
            model: model.to_owned(),
            key: key.map(Key),
            agent,
            turns: Turns::new(options.concurrency),
            options,
        })
    }

    fn body(&self, prompt: &Prompt, decoding: &Decoding) -> (String, Value) {
        let mut body = json!({
            "model": self.model,
            "max_tokens": decoding.max_tokens,
            "temperature": decoding.temperature,
            "seed": decoding.seed,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        // servers refuse what they do not know, so what changes nothing is not said
        if decoding.top_p < 1.0 {
            body["top_p"] = json!(decoding.top_p);
        }
        if decoding.top_k > 0 {
            body["top_k"] = json!(decoding.top_k);
        }
        if decoding.min_p > 0.0 {
            body["min_p"] = json!(decoding.min_p);
        }
        if decoding.repeat_penalty != 1.0 {
            body["repeat_penalty"] = json!(decoding.repeat_penalty);
        }
        if !decoding.stop.is_empty() {
            body["stop"] = json!(decoding.stop);
        }
        match prompt {
            Prompt::Chat(messages) => {
                body["messages"] = json!(messages);
                (format!("{}/chat/completions", self.base), body)
            }
            Prompt::Plain(text) => {
                body["prompt"] = json!(text);
                (format!("{}/completions", self.base), body)
            }
        }
    }

    /// Sends the request, again and again where that may help.
    fn send(&self, url: &str, body: &[u8], deadline: Instant) -> Result<Response<Body>> {
        let limit = deadline.saturating_duration_since(Instant::now());
        let mut wait = self.options.backoff;
        for attempt in 0.. {
            let (error, asked) = match self.send_once(url, body, deadline) {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(mut response) => {
                    let status = response.status().as_u16();
                    let asked = retry_after(&response);
                    let error = self.refusal(&mut response);
                    if status != 429 && status < 500 {
                        return Err(error);
                    }
                    (error, asked)
                }
                Err(ureq::Error::Timeout(_)) => {
                    let seconds = self.options.timeout.min(limit).as_secs_f64();
                    (
                        self.unreachable(&format!("no reply in {seconds:.0} s")),
                        None,
                    )
                }
                Err(e @ (ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::Tls(_))) => {
                    return Err(self.unreachable(&e.to_string()));
                }
                Err(e) => (self.unreachable(&e.to_string()), None),
            };
            let pause = asked.unwrap_or(wait);
            let in_time = Instant::now() + pause < deadline;
            if attempt >= self.options.retries || pause > self.options.max_wait || !in_time {
                return Err(error);
            }
            std::thread::sleep(pause);
            wait = (wait * 2).min(self.options.max_wait);
        }
        unreachable!("the loop above has no end but its returns")
    }

    fn send_once(
        &self,
        url: &str,
        body: &[u8],
        deadline: Instant,
    ) -> Result<Response<Body>, ureq::Error> {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut request = self
            .agent
            .post(url)
            .content_type("application/json")
            .header("accept", "text/event-stream, application/json");
        if let Some(Key(key)) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let request = request.config().timeout_global(Some(left)).build();
        request.send(body)
    }

    fn unreachable(&self, reason: &str) -> Error {
        Error::ServerUnreachable {
            url: self.base.clone(),
            reason: self.told(reason),
        }
    }

    fn bad_reply(&self, reason: &str) -> Error {
        Error::BadReply {
            url: self.base.clone(),
            reason: self.told(reason),
        }
    }

    /// What a reply that broke a time limit is told as.
    fn too_slow(&self, error: &io::Error) -> Error {
        let (what, limit) = match is_global(error) {
            true => ("it did not end within", self.options.total),
            false => ("it fell silent for", self.options.timeout),
        };
        self.bad_reply(&format!("{what} {:.0} s", limit.as_secs_f64()))
    }

    /// A short text on one line, without the key.
    fn told(&self, text: &str) -> String {
        let text = match &self.key {
            Some(Key(key)) => text.replace(key.as_str(), "…"),
            None => text.to_owned(),
        };
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(MAX_TOLD) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// The error that a reply with another status than 200 tells.
    fn refusal(&self, response: &mut Response<Body>) -> Error {
        let mut bytes = Vec::new();
        // whatever can be read of it is told
        let _ = response
            .body_mut()
            .as_reader()
            .take(65_536)
            .read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let reason = serde_json::from_str::<Value>(&text)
            .ok()
            .and_then(|v| error_in(&v))
            .unwrap_or_else(|| text.into_owned());
        Error::ServerRefused {
            url: self.base.clone(),
            status: response.status().as_u16(),
            reason: self.told(&reason),
            key_env: self.options.key_env.clone(),
        }
    }

    /// Reads a stream of chunks.
    fn stream(
        &self,
        response: Response<Body>,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> Result<Reply> {
        let limit = MAX_REPLY + decoding.max_tokens as u64 * 4096;
        let mut events = Events::new(response.into_body().into_reader(), limit);
        let mut reply = Reply::default();
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Broken::Malformed(reason)) => return Err(self.bad_reply(&reason)),
                Err(Broken::Io(e)) if is_timeout(&e) => {
                    let asked = decoding.time_limit;
                    if is_global(&e) && asked.is_some_and(|limit| limit <= self.options.total) {
                        reply.finish = Some(Finish::Stopped);
                        return Ok(reply);
                    }
                    return Err(self.too_slow(&e));
                }
                Err(Broken::Io(e)) => {
                    return Err(self.bad_reply(&format!("the connection broke off: {e}")));
                }
            };
            let data = match event.as_deref() {
                Some("[DONE]") => return Ok(reply),
                Some(data) => data,
                None if reply.finish.is_some() => return Ok(reply),
                None => {
                    return Err(self.bad_reply("the connection was closed before the end"));
                }
            };
            let text = reply.add(&self.chunk(data)?);
            if reply.pieces > decoding.max_tokens {
                return Err(self.bad_reply(&format!(
                    "it goes on after the {} tokens that were asked for",
                    decoding.max_tokens
                )));
            }
            if !text.is_empty() && watch(Progress::Text(&text)) == ControlFlow::Break(()) {
                reply.finish = Some(Finish::Stopped);
                return Ok(reply);
            }
        }
    }

    fn whole(&self, mut response: Response<Body>, watch: &mut Watch<'_>) -> Result<Reply> {
        let mut bytes = Vec::new();
        response
            .body_mut()
            .as_reader()
            .take(MAX_REPLY + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| match is_timeout(&e) {
                true => self.too_slow(&e),
                false => self.bad_reply(&format!("the connection broke off: {e}")),
            })?;
        if bytes.len() as u64 > MAX_REPLY {
            return Err(self.bad_reply("it sent more than any completion has"));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| self.bad_reply("it sent bytes that are no UTF-8"))?;
        let mut reply = Reply::default();
        let text = reply.add(&self.chunk(&text)?);
        if watch(Progress::Text(&text)) == ControlFlow::Break(()) {
            reply.finish = Some(Finish::Stopped);
        }
        Ok(reply)
    }

    fn chunk(&self, text: &str) -> Result<Chunk> {
        let value: Value = serde_json::from_str(text)
            .map_err(|e| self.bad_reply(&format!("it sent what is no JSON ({e}): {text}")))?;
        if let Some(error) = error_in(&value) {
            return Err(self.bad_reply(&format!("it says: {error}")));
        }
        serde_json::from_value(value)
            .map_err(|e| self.bad_reply(&format!("it sent JSON of another kind: {e}")))
    }
}

impl LanguageModel for Remote {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn context(&self) -> usize {
        self.options.context
    }

    /// An estimate on the high side: three letters to a token, two tokens to any other character.
    fn count_tokens(&self, text: &str) -> Result<usize> {
        let plain = text.bytes().filter(u8::is_ascii).count();
        let other = text.chars().filter(|c| !c.is_ascii()).count();
        Ok(plain.div_ceil(3) + 2 * other)
    }

    fn complete(
        &self,
        prompt: &Prompt,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> Result<Completion> {
        decoding.check()?;
        let total = self.options.total;
        let limit = decoding.time_limit.map_or(total, |limit| limit.min(total));
        let deadline = Instant::now() + limit;
        let Some(_turn) = self.turns.take(deadline) else {
            let calls = self.options.concurrency;
            return Err(self.unreachable(&format!("{calls} other calls took all of the time")));
        };
        let (url, body) = self.body(prompt, decoding);
        let body = serde_json::to_vec(&body).expect("texts and numbers are JSON");
        let response = self.send(&url, &body, deadline)?;
        let kind = response.body().mime_type().unwrap_or_default().to_owned();
        let reply = match kind.as_str() {
            "text/event-stream" => self.stream(response, decoding, watch)?,
            "application/json" => self.whole(response, watch)?,
            other => {
                return Err(self.bad_reply(&format!("it sent `{other}` instead of a completion")));
            }
        };
        if !reply.has_choice {
            return Err(self.bad_reply("it sent no choice"));
        }
        let finish = reply.finish.unwrap_or(Finish::Stop);
        if reply.text.trim().is_empty() && finish != Finish::Stopped {
            return Err(self.bad_reply("it sent an empty choice"));
        }
        let usage = reply.usage.unwrap_or_default();
        let counted = |said: usize, text: &str| match said {
            0 => self.count_tokens(text),
            said => Ok(said),
        };
        Ok(Completion {
            prompt_tokens: counted(usage.prompt_tokens, &prompt.text())?,
            completion_tokens: counted(usage.completion_tokens, &reply.text)?,
            text: reply.text,
            finish,
            cached: false,
        })
    }
}

impl RemoteOptions {
    fn set(&mut self, setting: &str) -> Result<()> {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let number = |option| {
            value.parse::<u32>().map_err(|_| Error::BadOption {
                option,
                given: value.to_owned(),
                wanted: "a whole number".into(),
            })
        };
        match key {
            "context" => self.context = number("context")? as usize,
            "retries" => self.retries = number("retries")?,
            "backoff_ms" => {
                self.backoff = Duration::from_millis(u64::from(number("backoff_ms")?));
            }
            "timeout_ms" => {
                self.timeout = Duration::from_millis(u64::from(number("timeout_ms")?.max(1)));
            }
            "total_ms" => {
                self.total = Duration::from_millis(u64::from(number("total_ms")?.max(1)));
            }
            "concurrency" => self.concurrency = number("concurrency")?.max(1) as usize,
            "key_env" => self.key_env = value.to_owned(),
            _ => {
                return Err(Error::BadOption {
                    option: "llm",
                    given: setting.to_owned(),
                    wanted: "`context=`, `retries=`, `backoff_ms=`, `timeout_ms=`, `total_ms=`, \
                             `concurrency=` or `key_env=`"
                        .into(),
                });
            }
        }
        Ok(())
    }
}

/// What a reply tells, chunk by chunk.
#[derive(Debug, Default)]
struct Reply {
    text: String,
    has_choice: bool,
    /// Chunks with text: no more than there are tokens.
    pieces: usize,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

impl Reply {
    /// Takes a chunk in; returns the text that is new.
    fn add(&mut self, chunk: &Chunk) -> String {
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage);
        }
        let Some(choice) = chunk.choices.first() else {
            return String::new();
        };
        self.has_choice = true;
        if let Some(reason) = &choice.finish_reason {
            self.finish = Some(if reason == "length" {
                Finish::Length
            } else {
                Finish::Stop
            });
        }
        let said = [&choice.delta, &choice.message]
            .into_iter()
            .find_map(|said| said.as_ref()?.content.clone())
            .or_else(|| choice.text.clone())
            .unwrap_or_default();
        self.pieces += usize::from(!said.is_empty());
        self.text += &said;
        said
    }
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Said>,
    #[serde(default)]
    message: Option<Said>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Said {
    #[serde(default)]
    content: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: usize,
    #[serde(default)]
    completion_tokens: usize,
}

/// What a reply says went wrong, in the forms that servers use.
fn error_in(value: &Value) -> Option<String> {
    let error = value.get("error").filter(|e| !e.is_null()).or_else(|| {
        let is_error = value.get("object").is_some_and(|o| o == "error");
        is_error.then_some(value)
    })?;
    let text = error.get("message").unwrap_or(error);
    Some(
        text.as_str()
            .map_or_else(|| text.to_string(), str::to_owned),
    )
}

/// The wait in seconds that a server asks for.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let text = response.headers().get("retry-after")?.to_str().ok()?;
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut || limit_of(error).is_some()
}

/// Whether the limit of the whole call passed, and not that of one wait.
fn is_global(error: &io::Error) -> bool {
    limit_of(error) == Some(ureq::Timeout::Global)
}

fn limit_of(error: &io::Error) -> Option<ureq::Timeout> {
    match error.get_ref()?.downcast_ref::<ureq::Error>()? {
        ureq::Error::Timeout(limit) => Some(*limit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_base_a_model_and_options() {
        let remote = Remote::open("http://localhost:1234#m:7b?context=99&retries=0").unwrap();
        assert_eq!(remote.identity(), "http://localhost:1234/v1#m:7b");
        assert_eq!(remote.context(), 99);
        assert_eq!(remote.options.retries, 0);
        let kept = Remote::open("https://host/api/v2/#org/name").unwrap();
        assert_eq!(kept.identity(), "https://host/api/v2#org/name");
        for bad in [
            "http://localhost",
            "http://localhost#",
            "http://#m",
            "http://a b/#m",
            "http://h#m?colour=red",
            "http://h#m?retries=x",
        ] {
            assert!(
                matches!(Remote::open(bad), Err(Error::BadOption { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn secrets_in_a_url_are_refused_and_not_repeated() {
        for url in [
            "https://me:hunter2@host/v1#m",
            "https://me:hunter2@host/v1",
            "https://host/v1?key=hunter2#m",
        ] {
            let error = Remote::open(url).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_key_is_never_told() {
        let mut remote = Remote::open("http://localhost:1#m").unwrap();
        remote.key = Some(Key("sk-hunter2".into()));
        assert_eq!(remote.told("wrong key\n sk-hunter2!"), "wrong key …!");
        assert!(!format!("{remote:?}").contains("hunter2"));
    }

    #[test]
    fn no_more_calls_than_allowed_run_at_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let turns = Turns::new(2);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let later = Instant::now() + Duration::from_secs(60);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _turn = turns.take(later).unwrap();
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
        assert_eq!(*turns.free.lock().unwrap(), 2);
        let _held = (turns.take(later), turns.take(later));
        assert!(turns.take(Instant::now()).is_none());
    }

    #[test]
    fn only_what_changes_something_is_said() {
        let remote = Remote::open("http://localhost:1#m").unwrap();
        let (url, body) = remote.body(&Prompt::Plain("a".into()), &Decoding::default());
        assert_eq!(url, "http://localhost:1/v1/completions");
        assert!(body.get("top_k").is_none() && body.get("stop").is_none());
        assert_eq!(body["temperature"], 0.0);
    }

    #[test]
    fn errors_are_found_in_their_usual_forms() {
        let of = |text: &str| error_in(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"error":{"message":"a"}}"#).as_deref(), Some("a"));
        assert_eq!(of(r#"{"error":"b"}"#).as_deref(), Some("b"));
        assert_eq!(
            of(r#"{"object":"error","message":"c"}"#).as_deref(),
            Some("c")
        );
        assert_eq!(of(r#"{"error":null,"choices":[]}"#), None);
    }
}
