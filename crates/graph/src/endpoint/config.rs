//! How a SPARQL service is reached, as a file says it.
//!
//! ```toml
//! url = "https://query.example.org/sparql"
//! graph = "http://example.org/films"          # a named graph; the default one if none is given
//! labels = ["rdfs:label"]                     # predicates that give labels, best first
//! search = "virtuoso"                         # or graphdb, fuseki, qlever, exact, none
//! index = "films-labels"                      # a label index of `wherefore index`
//! user_env = "FILMS_USER"                     # credentials: names of environment variables only
//! password_env = "FILMS_PASSWORD"
//!
//! [prefixes]
//! ex = "http://example.org/"
//!
//! [headers]
//! x-tenant = "films"
//! x-api-key = "${FILMS_KEY}"
//!
//! [limits]
//! timeout_s = 20
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::trust::{Trust, read_trusted};
use crate::error::{Error, Result};
use crate::load::naming::{ALIASES, LABELS};
use crate::sparql::PREFIXES;

/// A SPARQL service, and how to deal with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// Where queries are sent.
    pub url: String,
    /// The named graph that is meant; the service's default one if none is given.
    #[serde(default)]
    pub graph: Option<String>,
    /// Prefixes for this file and for queries, beside the usual ones.
    #[serde(default)]
    pub prefixes: BTreeMap<String, String>,
    /// Predicates that give labels, best first; the well-known ones if none are given.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Predicates that give further names; the well-known ones if none are given.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The language in which labels are preferred.
    #[serde(default = "english")]
    pub language: String,
    /// The relations of the graph; the service is asked if none are given.
    #[serde(default)]
    pub relations: Vec<String>,
    /// How names are looked up where there is no label index.
    #[serde(default)]
    pub search: Search,
    /// The folder of a label index, made by `wherefore index`.
    #[serde(default)]
    pub index: Option<PathBuf>,
    /// How queries are sent.
    #[serde(default)]
    pub method: Method,
    /// Headers of every request; `${NAME}` is an environment variable.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The environment variable with a bearer token.
    #[serde(default)]
    pub token_env: Option<String>,
    /// The environment variables with a user's name and password.
    #[serde(default)]
    pub user_env: Option<String>,
    /// See `user_env`.
    #[serde(default)]
    pub password_env: Option<String>,
    /// What a request may cost.
    #[serde(default)]
    pub limits: ServiceLimits,
}

/// How names are looked up at a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// Virtuoso's `bif:contains`.
    Virtuoso,
    /// GraphDB's Lucene connector, of the name `labels`.
    Graphdb,
    /// Fuseki's Lucene (`text:query`).
    Fuseki,
    /// QLever's text index (`ql:contains-word`).
    Qlever,
    /// Labels as they are written in the question, in the usual spellings: every service can.
    #[default]
    Exact,
    /// Not at all: topics go by their IRIs.
    None,
}

/// How queries are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// As a form: no query is too long for it.
    #[default]
    Post,
    /// In the address, for services that take nothing else.
    Get,
}

/// What requests may cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceLimits {
    /// Seconds until a reply must have begun, and for each wait within it.
    pub timeout_s: f64,
    /// How often a request is tried again after 429, 5xx or a connection that failed.
    pub retries: u32,
    /// The longest wait that a service may ask for, in seconds.
    pub max_wait_s: f64,
    /// Requests that one question may cost; not those that count what the graph holds, once.
    pub requests: u64,
    /// Seconds that the service may take for one question, all requests together.
    pub question_s: f64,
    /// Entities in one request.
    pub batch: usize,
    /// Requests at the same time.
    pub connections: usize,
    /// Rows of one reply: so many edges of an entity in one direction are seen, and the service
    /// cuts hubs there.
    pub rows: usize,
    /// Bytes of one reply.
    pub bytes: u64,
    /// Edges that are kept.
    pub cached_edges: usize,
    /// Entities that are known by number at the same time.
    pub entities: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            timeout_s: 30.0,
            retries: 3,
            max_wait_s: 30.0,
            requests: 100,
            question_s: 60.0,
            batch: 64,
            connections: 4,
            rows: 20_000,
            bytes: 64 << 20,
            cached_edges: 8_000_000,
            entities: 20_000_000,
        }
    }
}

fn english() -> String {
    "en".into()
}

impl ServiceConfig {
    /// The service at an address, with the usual settings.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            graph: None,
            prefixes: BTreeMap::new(),
            labels: Vec::new(),
            aliases: Vec::new(),
            language: english(),
            relations: Vec::new(),
            search: Search::default(),
            index: None,
            method: Method::default(),
            headers: BTreeMap::new(),
            token_env: None,
            user_env: None,
            password_env: None,
            limits: ServiceLimits::default(),
        }
    }

    /// The service that a user means: an address, a TOML file, or the folder of a label index.
    /// None if it is something else.
    ///
    /// # Errors
    /// [`Error::Untrusted`] for a file that the user did not agree to: it may lie in a folder that
    /// somebody else made. An address needs no trust, for the user typed it and no secret goes
    /// along.
    pub fn named(name: &str, trust: Trust) -> Result<Option<Self>> {
        // other schemes are refused when it is opened
        if name.contains("://") {
            return Ok(Some(Self::at(name)));
        }
        service_file(Path::new(name))
            .map(|file| read_trusted(&file, trust))
            .transpose()
    }

    /// Reads a TOML file, trusted or not; its `index` is relative to the file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Self::parsed(&bytes, path)
    }

    /// What the bytes of the file at `path` say.
    pub(super) fn parsed(bytes: &[u8], path: &Path) -> Result<Self> {
        let bad = |reason: String| Error::BadService {
            name: path.display().to_string(),
            reason,
        };
        let text = std::str::from_utf8(bytes).map_err(|e| bad(e.to_string()))?;
        let mut config: Self = toml::from_str(text).map_err(|e| bad(e.message().to_owned()))?;
        if let (Some(index), Some(folder)) = (&mut config.index, path.parent()) {
            *index = folder.join(&*index);
        }
        Ok(config)
    }

    /// The host, and port, that questions are sent to.
    pub fn host(&self) -> String {
        let place = self.url.split_once("://").map_or(&*self.url, |(_, p)| p);
        let place = place.split(['/', '?', '#']).next().unwrap_or_default();
        let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
        host.to_owned()
    }

    /// The environment variables that are sent along, by name.
    pub fn variables(&self) -> Vec<String> {
        let named = [&self.token_env, &self.user_env, &self.password_env];
        let mut all: Vec<String> = named.into_iter().flatten().cloned().collect();
        for value in self.headers.values() {
            let parts = value.split("${").skip(1);
            all.extend(parts.filter_map(|part| Some(part.split_once('}')?.0.to_owned())));
        }
        all
    }

    /// Refuses what cannot work, and writes prefixed names out.
    pub(super) fn resolved(mut self) -> Result<Self> {
        let name = match self.url.contains('@') {
            // there may be a secret in it
            true => "a service".to_owned(),
            false => self.url.clone(),
        };
        let bad = |reason: String| Error::BadService {
            name: name.clone(),
            reason,
        };
        let place = (self.url.strip_prefix("https://"))
            .or_else(|| self.url.strip_prefix("http://"))
            .ok_or_else(|| bad("its address must begin with `https://` or `http://`".into()))?;
        let host = place.split(['/', '?', '#']).next().unwrap_or_default();
        if host.contains('@') {
            return Err(bad(
                "its address holds credentials, and they come from the environment only".into(),
            ));
        }
        if host.is_empty() || self.url.parse::<ureq::http::Uri>().is_err() {
            return Err(bad("its address is no address".into()));
        }
        for (name, value) in &self.headers {
            let lower = name.to_ascii_lowercase();
            let secret = [
                "authorization",
                "cookie",
                "key",
                "token",
                "secret",
                "password",
            ];
            if secret.iter().any(|s| lower.contains(s)) && !value.contains("${") {
                return Err(bad(format!(
                    "the header `{name}` holds a secret; write it as `${{NAME}}`, the name of an \
                     environment variable"
                )));
            }
        }
        if self.user_env.is_some() != self.password_env.is_some() {
            return Err(bad("`user_env` and `password_env` belong together".into()));
        }
        let is_tag = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.language.is_empty() || !self.language.chars().all(is_tag) {
            return Err(bad("`language` is a tag such as `en`".into()));
        }
        let limits = &self.limits;
        if limits.requests == 0 {
            return Err(bad("`limits.requests` is 0".into()));
        }
        for (what, value) in [
            ("batch", limits.batch),
            ("connections", limits.connections),
            ("rows", limits.rows),
        ] {
            if value == 0 {
                return Err(bad(format!("`limits.{what}` is 0")));
            }
        }
        let times = [limits.timeout_s, limits.question_s, limits.max_wait_s];
        if times.iter().any(|s| !(0.0..=86_400.0).contains(s)) || times[..2].contains(&0.0) {
            return Err(bad("times are seconds, of one day at most".into()));
        }
        if self.labels.is_empty() {
            self.labels = LABELS.map(str::to_owned).to_vec();
        }
        if self.aliases.is_empty() {
            self.aliases = ALIASES.map(str::to_owned).to_vec();
        }
        let prefixes = self.prefixes.clone();
        let lists = [&mut self.labels, &mut self.aliases, &mut self.relations];
        for iri in lists.into_iter().flatten().chain(&mut self.graph) {
            *iri = written_out(iri, &prefixes)
                .ok_or_else(|| bad(format!("`{iri}` is no IRI, and has no known prefix")))?;
        }
        self.language.make_ascii_lowercase();
        Ok(self)
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.limits.timeout_s)
    }
}

/// The file that describes a service: the one that is named, or the one in the folder of a label
/// index. None if what is named is something else.
pub(super) fn service_file(name: &Path) -> Option<PathBuf> {
    let inside = name.join("service.toml");
    if name.extension().is_some_and(|e| e == "toml") && name.is_file() {
        Some(name.to_owned())
    } else {
        // whatever lies there, even a link to nothing, makes it no plain graph
        inside.symlink_metadata().is_ok().then_some(inside)
    }
}

/// An IRI that may have angle brackets or a prefix, written out.
fn written_out(text: &str, prefixes: &BTreeMap<String, String>) -> Option<String> {
    let bare = text
        .strip_prefix('<')
        .and_then(|t| t.strip_suffix('>'))
        .unwrap_or(text);
    let known = PREFIXES.iter().filter(|(prefix, _)| !prefix.is_empty());
    let expanded = bare.split_once(':').and_then(|(prefix, local)| {
        let own = prefixes.get(prefix).map(String::as_str);
        let iri = own.or_else(|| {
            known
                .clone()
                .find(|(p, _)| *p == prefix)
                .map(|(_, iri)| *iri)
        })?;
        Some(format!("{iri}{local}"))
    });
    let iri = expanded.unwrap_or_else(|| bare.to_owned());
    oxrdf::NamedNode::new(&iri).is_ok().then_some(iri)
}

/// Puts environment variables into a text; the name of one that is not set is the error.
pub(super) fn with_environment(text: &str) -> std::result::Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        out += before;
        out += &std::env::var(name).map_err(|_| name.to_owned())?;
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut ServiceConfig)) -> String {
        let mut config = ServiceConfig::at("http://localhost/sparql");
        change(&mut config);
        config.resolved().unwrap_err().to_string()
    }

    #[test]
    fn prefixed_names_are_written_out() {
        let mut config = ServiceConfig::at("http://localhost:1/sparql");
        config
            .prefixes
            .insert("ex".into(), "http://example.org/".into());
        config.labels = vec!["rdfs:label".into(), "<http://x/name>".into(), "ex:n".into()];
        let resolved = config.resolved().unwrap();
        assert_eq!(
            resolved.labels,
            [
                "http://www.w3.org/2000/01/rdf-schema#label",
                "http://x/name",
                "http://example.org/n"
            ]
        );
        assert_eq!(resolved.aliases.len(), ALIASES.len());
    }

    #[test]
    fn what_cannot_work_is_refused_and_no_secret_is_told() {
        assert!(refused(|c| c.url = "ftp://x".into()).contains("https://"));
        let error = refused(|c| c.url = "http://me:hunter2@host/sparql".into());
        assert!(
            !error.contains("hunter2") && error.contains("environment"),
            "{error}"
        );
        let error = refused(|c| {
            c.headers.insert("X-Api-Key".into(), "hunter2".into());
        });
        assert!(
            !error.contains("hunter2") && error.contains("${NAME}"),
            "{error}"
        );
        assert!(refused(|c| c.user_env = Some("U".into())).contains("belong together"));
        assert!(refused(|c| c.labels = vec!["no iri".into()]).contains("`no iri`"));
        assert!(refused(|c| c.limits.batch = 0).contains("limits.batch"));
        assert!(refused(|c| c.limits.timeout_s = f64::NAN).contains("seconds"));
    }

    #[test]
    fn every_address_is_a_service_so_that_none_is_told_as_a_folder() {
        let named = |name| ServiceConfig::named(name, Trust::Recorded).unwrap();
        assert!(named("movies").is_none());
        let error = named("ftp://me:hunter2@host").unwrap().resolved();
        let error = error.unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_file_with_an_unknown_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.toml");
        std::fs::write(&path, "url = \"http://x/\"\nsecret = 1\n").unwrap();
        let error = ServiceConfig::read(&path).unwrap_err();
        assert!(error.to_string().contains("secret"), "{error}");
        std::fs::write(&path, "url = \"http://x/\"\nindex = \"labels\"\n").unwrap();
        let config = ServiceConfig::read(&path).unwrap();
        assert_eq!(config.index, Some(folder.path().join("labels")));
    }

    #[test]
    fn environment_variables_are_put_in() {
        assert_eq!(with_environment("plain").unwrap(), "plain");
        let path = std::env::var("PATH").unwrap();
        assert_eq!(
            with_environment("a ${PATH} b").unwrap(),
            format!("a {path} b")
        );
        let missing = with_environment("${WHEREFORE_NO_SUCH_VARIABLE}");
        assert_eq!(missing.unwrap_err(), "WHEREFORE_NO_SUCH_VARIABLE");
    }
}
