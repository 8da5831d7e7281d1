//! API keys: what each may do, on which graphs, until when; and the file that they are read from
//! again when it changes.
//!
//! A key is kept as its SHA-256. All are compared, in constant time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use axum::http::StatusCode;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::config::{KeyConfig, KeyGraphs, Scope, ServeConfig};
use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::throttle::Caller;

/// The longest file of keys, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Scopes(u8);

impl Scopes {
    const READING: [Scope; 4] = [Scope::Ask, Scope::Sparql, Scope::Feedback, Scope::Metrics];

    fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }
}

impl<'a> FromIterator<&'a Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = &'a Scope>>(scopes: I) -> Self {
        let bits = scopes.into_iter().map(|scope| 1 << *scope as u8);
        Self(bits.fold(0, |set, bit: u8| set | bit))
    }
}

/// What somebody may do, and where.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    /// What is allowed on every graph, or on none in particular where graphs are named.
    everywhere: Scopes,
    /// What is allowed on these graphs, and on no others; none means every graph.
    graphs: Option<BTreeMap<String, Scopes>>,
}

impl Rights {
    /// Everything but changes.
    pub(crate) fn reading() -> Self {
        Self {
            everywhere: Scopes::READING.iter().collect(),
            graphs: None,
        }
    }

    fn nothing() -> Self {
        Self {
            everywhere: Scopes::default(),
            graphs: Some(BTreeMap::new()),
        }
    }

    fn of(key: &KeyConfig) -> Self {
        let given = key.scopes.as_deref().unwrap_or(&Scopes::READING);
        let more = key.write.then_some(&Scope::Write);
        let everywhere: Scopes = given.iter().chain(more).collect();
        let graphs = key.graphs.as_ref().map(|graphs| match graphs {
            KeyGraphs::Named(names) => {
                let with_all = |name: &String| (name.clone(), everywhere);
                names.iter().map(with_all).collect()
            }
            KeyGraphs::Scoped(graphs) => (graphs.iter())
                .map(|(name, scopes)| (name.clone(), scopes.iter().chain(more).collect()))
                .collect(),
        });
        Self { everywhere, graphs }
    }

    /// Whether this is allowed on a graph.
    fn allow(&self, scope: Scope, graph: &str) -> bool {
        match &self.graphs {
            None => self.everywhere.has(scope),
            Some(graphs) => graphs.get(graph).is_some_and(|scopes| scopes.has(scope)),
        }
    }

    /// Whether this is allowed anywhere at all.
    fn allow_somewhere(&self, scope: Scope) -> bool {
        match (&self.graphs, scope) {
            (None, _) | (_, Scope::Metrics) => self.everywhere.has(scope),
            (Some(graphs), _) => graphs.values().any(|scopes| scopes.has(scope)),
        }
    }
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    name: Arc<str>,
    digest: [u8; 32],
    rate: Option<f64>,
    rights: Rights,
    /// Seconds since 1970.
    expires: Option<i64>,
}

impl Key {
    fn new(config: &KeyConfig, graphs: &[String]) -> Result<Self> {
        let bad = |what: &str| Error::Config(format!("the key `{}` {what}", config.name));
        let named: Vec<&String> = match &config.graphs {
            None => Vec::new(),
            Some(KeyGraphs::Named(names)) => names.iter().collect(),
            Some(KeyGraphs::Scoped(graphs)) => graphs.keys().collect(),
        };
        if let Some(missing) = named.iter().find(|name| !graphs.contains(name)) {
            return Err(bad(&format!(
                "is for the graph `{missing}`, and there is none of that name"
            )));
        }
        if config.rate.is_some_and(|rate| !(0.0..=1e9).contains(&rate)) {
            return Err(bad("has a `rate` that is not from 0 to 1000000000"));
        }
        let expires = config
            .expires
            .as_ref()
            .map(|at| unix_seconds(at).ok_or_else(|| bad("`expires` at a time without a date")));
        Ok(Self {
            name: config.name.as_str().into(),
            digest: digest(config)?,
            rate: config.rate,
            rights: Rights::of(config),
            expires: expires.transpose()?,
        })
    }

    fn has_expired(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs() as i64);
        self.expires.is_some_and(|end| now >= end)
    }

    /// What a request with this key may do; nothing any more if it has expired.
    pub(crate) fn access(&self, usual_rate: f64, now: SystemTime) -> Result<Access, Problem> {
        if self.has_expired(now) {
            return Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "key-expired",
                "the API key has expired",
            )
            .hint("ask whoever runs the server for a new one"));
        }
        Ok(Access {
            caller: Caller::Key(self.digest),
            rate: self.rate.unwrap_or(usual_rate),
            name: Some(Arc::clone(&self.name)),
            rights: self.rights.clone(),
        })
    }
}

/// Who sent a request, and what they may do.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) caller: Caller,
    /// Requests a second; 0 means any number.
    pub(crate) rate: f64,
    /// What the key is called.
    pub(crate) name: Option<Arc<str>>,
    rights: Rights,
}

tokio::task_local! {
    /// Who sent the request that this task answers.
    static ACCESS: Arc<Access>;
}

impl Access {
    /// Somebody without a key, where none is needed.
    pub(crate) fn anonymous(caller: Caller, rate: f64) -> Self {
        Self {
            caller,
            rate,
            name: None,
            rights: Rights::reading(),
        }
    }

    /// Whoever started this process, and reads all graphs anyway.
    pub(crate) fn local() -> Self {
        Self::anonymous(Caller::Address(None), 0.0)
    }

    /// Somebody who may do nothing.
    pub(crate) fn nobody() -> Self {
        Self {
            rights: Rights::nothing(),
            ..Self::local()
        }
    }

    /// Answers a request in the name of whoever sent it.
    pub(crate) async fn with<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        ACCESS.scope(self, work).await
    }

    /// Who sent the request that this task answers; nobody outside of a request.
    pub(crate) fn current() -> Arc<Self> {
        ACCESS
            .try_with(Arc::clone)
            .unwrap_or_else(|_| Arc::new(Self::nobody()))
    }

    /// Refuses what is not allowed on a graph. Whether there is such a graph is not told.
    pub(crate) fn check(&self, scope: Scope, graph: &str) -> Result<(), Problem> {
        if self.rights.allow(scope, graph) {
            return Ok(());
        }
        self.check_somewhere(scope)?;
        let graphs: Vec<&str> = (self.rights.graphs.iter().flatten())
            .filter(|(_, scopes)| scopes.has(scope))
            .map(|(name, _)| name.as_str())
            .collect();
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "no-scope",
            format!(
                "the API key is not for `{}` on the graph `{}`",
                scope.name(),
                crate::engine::clipped(graph)
            ),
        )
        .hint(format!("name one of: {}", graphs.join(", "))))
    }

    /// Refuses what is not allowed on any graph.
    pub(crate) fn check_somewhere(&self, scope: Scope) -> Result<(), Problem> {
        if self.rights.allow_somewhere(scope) {
            return Ok(());
        }
        let refused = |code, message: String| Problem::new(StatusCode::FORBIDDEN, code, message);
        if scope == Scope::Write {
            let message = "graphs are changed only with a key that may write";
            return Err(refused("read-only", message.into())
                .hint("give a key of the server's configuration `write = true`, and send it"));
        }
        let name = scope.name();
        Err(
            refused("no-scope", format!("the API key is not for `{name}`")).hint(format!(
                "add `{name}` to the key's `scopes` in the server's configuration"
            )),
        )
    }

    /// Whether the key is for all graphs.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.rights.graphs.is_none()
    }

    /// Whether anything is allowed on a graph: what else there is, is not told.
    pub(crate) fn sees(&self, graph: &str) -> bool {
        let graphs = self.rights.graphs.as_ref();
        graphs.is_none_or(|graphs| graphs.contains_key(graph))
    }
}

/// All keys.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Those of the configuration itself.
    given: Vec<Arc<Key>>,
    file: Option<KeyFile>,
    /// The graphs that keys may name.
    graphs: Vec<String>,
    current: RwLock<Arc<[Arc<Key>]>>,
}

#[derive(Debug)]
struct KeyFile {
    path: PathBuf,
    /// What the file looked like when it was read last.
    seen: Mutex<Option<Stamp>>,
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    keys: Vec<KeyConfig>,
}

impl Keys {
    pub(crate) fn new(config: &ServeConfig) -> Result<Self> {
        let graphs: Vec<String> = config.graphs.keys().cloned().collect();
        let given = all(&config.keys, &graphs)?;
        let keys = Self {
            current: RwLock::new(given.as_slice().into()),
            file: config.keys_file.clone().map(|path| KeyFile {
                path,
                seen: Mutex::new(None),
            }),
            given,
            graphs,
        };
        keys.reload(true)?;
        Ok(keys)
    }

    /// Whether a request needs one. An empty file lets nobody in.
    pub(crate) fn are_needed(&self) -> bool {
        !self.given.is_empty() || self.file.is_some()
    }

    /// The file that keys are read from.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// The key with this SHA-256. Every key is compared: how long it takes tells nothing of which
    /// one it was.
    pub(crate) fn find(&self, digest: &[u8; 32]) -> Option<Arc<Key>> {
        let keys = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        let mut found = u64::MAX;
        for (number, key) in keys.iter().enumerate() {
            let same = key.digest.ct_eq(digest);
            found = u64::conditional_select(&found, &(number as u64), same);
        }
        keys.get(usize::try_from(found).ok()?).cloned()
    }

    /// Reads the file again if it looks different, or in any case. Gives the number of keys where
    /// they were read; where that fails, those that were there stay.
    pub(crate) fn reload(&self, anyway: bool) -> Result<Option<usize>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        // held until the keys are in place: two at once would not know whose are newer
        let mut seen = file.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |source| Error::Io {
            action: "read the keys in",
            path: file.path.clone(),
            source,
        };
        let now = std::fs::metadata(&file.path).map(|about| stamp(&about));
        if !anyway && now.as_ref().ok() == seen.as_ref() {
            return Ok(None);
        }
        // a file that cannot be used is told once
        *seen = now.as_ref().ok().copied();
        if now.map_err(failed)?.bytes > MOST_BYTES {
            return Err(failed(std::io::Error::other("the file is too large")));
        }
        let text = std::fs::read_to_string(&file.path).map_err(failed)?;
        let listed: Listed = toml::from_str(&text).map_err(|error| {
            let fault = wherefore::config::toml_fault(&text, &error);
            Error::Config(format!("`{}`: {fault}", file.path.display()))
        })?;
        let mut keys = self.given.clone();
        keys.append(&mut all(&listed.keys, &self.graphs)?);
        let count = keys.len();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = keys.into();
        Ok(Some(count))
    }
}

fn all(keys: &[KeyConfig], graphs: &[String]) -> Result<Vec<Arc<Key>>> {
    let key = |config| Ok(Arc::new(Key::new(config, graphs)?));
    keys.iter().map(key).collect()
}

fn stamp(about: &std::fs::Metadata) -> Stamp {
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(about);
    #[cfg(not(unix))]
    let inode = 0;
    Stamp {
        modified: about.modified().ok(),
        bytes: about.len(),
        inode,
    }
}

/// Seconds since 1970; without an offset the time is UTC, and without a time it is midnight.
fn unix_seconds(at: &toml::value::Datetime) -> Option<i64> {
    let date = at.date?;
    let clock = at.time.as_ref().map_or(0, |time| {
        let of = |hours: u8, minutes: u8| i64::from(hours) * 3600 + i64::from(minutes) * 60;
        of(time.hour, time.minute) + i64::from(time.second)
    });
    let offset = match at.offset {
        Some(toml::value::Offset::Custom { minutes }) => i64::from(minutes) * 60,
        _ => 0,
    };
    // days of the Gregorian calendar, in years that begin with March: a leap day comes last
    let (month, day) = (i64::from(date.month), i64::from(date.day));
    let year = i64::from(date.year) - i64::from(month <= 2);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year;
    // from the first of March of the year 0 to 1970
    Some((days - 719_468) * 86_400 + clock - offset)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn keys(text: &str) -> Result<Keys> {
        let text = format!("{text}\n[graphs]\na.path = \"@toy\"\nb.path = \"@toy\"\n");
        Keys::new(&ServeConfig::from_toml(&text)?)
    }

    /// One key with these settings.
    fn access(settings: &str) -> Access {
        let sha256 = "0".repeat(64);
        let key = format!("keys = [{{ name = \"k\", sha256 = \"{sha256}\", {settings} }}]");
        let found = keys(&key).unwrap().find(&[0; 32]).unwrap();
        found.access(0.0, SystemTime::now()).unwrap()
    }

    fn allowed(access: &Access, graph: &str) -> String {
        [
            (Scope::Ask, 'a'),
            (Scope::Sparql, 's'),
            (Scope::Write, 'w'),
            (Scope::Feedback, 'f'),
            (Scope::Metrics, 'm'),
        ]
        .into_iter()
        .filter(|(scope, _)| access.check(*scope, graph).is_ok())
        .map(|(_, letter)| letter)
        .collect()
    }

    #[test]
    fn a_key_does_what_it_is_for_and_where() {
        let plain = access("");
        assert_eq!(allowed(&plain, "a"), "asfm");
        assert_eq!(allowed(&access("write = true"), "b"), "aswfm");
        let asks = access("scopes = [\"ask\"]");
        assert_eq!(allowed(&asks, "a"), "a");
        assert!(asks.is_unlimited() && asks.sees("b"));
        let of_one = access("scopes = [\"ask\", \"write\"], graphs = [\"a\"]");
        assert_eq!(
            (allowed(&of_one, "a"), allowed(&of_one, "b")),
            ("aw".into(), String::new())
        );
        assert!(!of_one.is_unlimited() && !of_one.sees("b"));
        let each = access("scopes = [\"metrics\"], graphs = { a = [\"ask\"], b = [\"sparql\"] }");
        assert_eq!(
            (allowed(&each, "a"), allowed(&each, "b")),
            ("a".into(), "s".into())
        );
        assert!(each.check_somewhere(Scope::Metrics).is_ok());
        assert!(each.check_somewhere(Scope::Feedback).is_err());
        let refused = each.check(Scope::Sparql, "a").unwrap_err();
        assert_eq!((refused.status, refused.code), (403, "no-scope"));
        assert_eq!(refused.hint.as_deref(), Some("name one of: b"));
        assert_eq!(allowed(&Access::nobody(), "a"), "");
        assert_eq!(allowed(&Access::current(), "a"), "");
    }

    #[test]
    fn a_key_that_cannot_be_meant_is_refused() {
        let good = "0".repeat(64);
        for (settings, told) in [
            (format!("sha256 = \"{good}\", graphs = [\"c\"]"), "`c`"),
            (format!("sha256 = \"{good}\", graphs = {{ c = [] }}"), "`c`"),
            (format!("sha256 = \"{good}\", scopes = [\"all\"]"), "all"),
            (format!("sha256 = \"{good}\", rate = -1.0"), "rate"),
            (
                format!("sha256 = \"{good}\", expires = 10:00:00"),
                "expires",
            ),
            (
                format!("sha256 = \"{good}\", expires = \"soon\""),
                "expires",
            ),
            ("sha256 = \"\"".into(), "sha256"),
            ("sha256 = \"abc\"".into(), "sha256"),
            (format!("sha256 = \"{}\"", "g".repeat(64)), "sha256"),
            (format!("sha256 = \"{}\"", "ä".repeat(32)), "sha256"),
        ] {
            let key = format!("keys = [{{ name = \"k\", {settings} }}]");
            let error = keys(&key).unwrap_err().to_string();
            assert!(error.contains(told), "{told}: {error}");
        }
    }

    #[test]
    fn a_key_ends_at_its_time() {
        let at = |text: &str| unix_seconds(&text.parse().unwrap()).unwrap();
        assert_eq!(at("1970-01-01"), 0);
        assert_eq!(at("2000-02-29T12:30:15Z"), 951_827_415);
        assert_eq!(at("2027-01-01T01:00:00+01:00"), at("2027-01-01"));
        assert_eq!(at("2028-03-01") - at("2028-02-28"), 2 * 86_400);
        let sha256 = "0".repeat(64);
        for written in ["2027-01-01", "\"2027-01-01\"", "2027-01-01T00:00:00Z"] {
            let text =
                format!("keys = [{{ name = \"k\", sha256 = \"{sha256}\", expires = {written} }}]");
            let key = keys(&text).unwrap().find(&[0; 32]).unwrap();
            // 2027-01-01 is day 20,819
            let end = SystemTime::UNIX_EPOCH + Duration::from_secs(20_819 * 86_400);
            assert!(key.access(0.0, end - Duration::from_secs(1)).is_ok());
            let expired = key.access(0.0, end).unwrap_err();
            assert_eq!((expired.status, expired.code), (401, "key-expired"));
        }
    }

    #[test]
    fn a_file_of_keys_is_read_again_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let config = format!("keys_file = {:?}", path.display().to_string());
        assert!(keys(&config).is_err(), "there is no such file");
        let write = |digits: &[char]| {
            let key = |c: &char| {
                let sha256 = c.to_string().repeat(64);
                format!("[[keys]]\nname = \"{c}\"\nsha256 = \"{sha256}\"\n")
            };
            std::fs::write(&path, digits.iter().map(key).collect::<String>()).unwrap();
        };
        write(&[]);
        let keys = keys(&config).unwrap();
        assert!(keys.are_needed() && keys.find(&[0; 32]).is_none());
        assert_eq!(keys.reload(false).unwrap(), None);
        write(&['0', '1']);
        assert_eq!(keys.reload(false).unwrap(), Some(2));
        assert!(keys.find(&[0; 32]).is_some() && keys.find(&[0x11; 32]).is_some());
        // a mistake changes nothing, and is told once
        std::fs::write(&path, "[[keys]]\nname = 1\n").unwrap();
        let error = keys.reload(false).unwrap_err().to_string();
        assert!(
            error.contains("keys.toml") && error.contains("line 2"),
            "{error}"
        );
        assert_eq!(keys.reload(false).unwrap(), None);
        assert!(keys.reload(true).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(keys.reload(false).is_err());
        assert!(keys.find(&[0; 32]).is_some());
        write(&['1']);
        assert_eq!(keys.reload(false).unwrap(), Some(1));
        assert!(keys.find(&[0; 32]).is_none() && keys.find(&[0x11; 32]).is_some());
    }
}
