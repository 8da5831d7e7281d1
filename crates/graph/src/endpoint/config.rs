//! The configuration of a SPARQL service.
//!
//! ```toml
//! url = "https://query.example.org/sparql"
//! graph = "http://example.org/films"          # a named graph; the default one if none is given
//! labels = ["rdfs:label"]                     # predicates that give labels, best first
//! engine = "virtuoso"                         # or graphdb, fuseki, qlever, oxigraph, standard
//! search = "full-text"                        # or exact, none
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

use super::engine::Engine;
use crate::error::{Error, Result};
use crate::load::naming::{ALIASES, LABELS};
use crate::sparql::PREFIXES;

/// The configuration of a SPARQL service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// Where queries are sent.
    pub url: String,
    /// The named graph to query; the service's default graph if not set.
    #[serde(default)]
    pub graph: Option<String>,
    /// Prefixes for this file and for queries, beside the predefined ones.
    #[serde(default)]
    pub prefixes: BTreeMap<String, String>,
    /// Label predicates, best first; the well-known ones if empty.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Alias predicates; the well-known ones if empty.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The preferred language of labels.
    #[serde(default = "english")]
    pub language: String,
    /// The relations of the graph; queried from the service if empty.
    #[serde(default)]
    pub relations: Vec<String>,
    /// The program that answers there.
    #[serde(default)]
    pub engine: Engine,
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
    /// Limits of requests.
    #[serde(default)]
    pub limits: ServiceLimits,
}

/// How names are looked up at a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// By the full text of its engine; as `Exact` if that has none.
    #[default]
    FullText,
    /// Exact labels in common spellings. Works with every service.
    Exact,
    /// No search: topics must be IRIs.
    None,
}

/// How queries are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// As a form in the body, without a limit on the query's length.
    #[default]
    Post,
    /// In the URL, for services that only accept GET.
    Get,
}

/// Limits of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceLimits {
    /// Timeout in seconds for the start of a reply and for each read.
    pub timeout_s: f64,
    /// Maximum retries after status 429, 5xx or a failed connection.
    pub retries: u32,
    /// Maximum wait before a retry, in seconds.
    pub max_wait_s: f64,
    /// Maximum requests per question, without those that are made once for the graph.
    pub requests: u64,
    /// Maximum total time of the requests of one question, in seconds.
    pub question_s: f64,
    /// Maximum entities per request.
    pub batch: usize,
    /// Maximum concurrent requests.
    pub connections: usize,
    /// Maximum rows of a reply. An entity has at most so many edges in each direction; the service
    /// chooses which.
    pub rows: usize,
    /// Maximum bytes of a reply.
    pub bytes: u64,
    /// Maximum edges in the cache.
    pub cached_edges: usize,
    /// Maximum number of entities.
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
    /// The service at a URL, with default settings.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            graph: None,
            prefixes: BTreeMap::new(),
            labels: Vec::new(),
            aliases: Vec::new(),
            language: english(),
            relations: Vec::new(),
            engine: Engine::default(),
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

    /// Reads a TOML file, trusted or not; its `index` is relative to the file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Self::parsed(&bytes, path)
    }

    /// Parses the contents of the file at `path`.
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

    /// The host and port that questions are sent to.
    pub fn host(&self) -> String {
        let place = self.url.split_once("://").map_or(&*self.url, |(_, p)| p);
        let place = place.split(['/', '?', '#']).next().unwrap_or_default();
        let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
        host.to_owned()
    }

    /// Names of the environment variables whose values are sent along.
    pub fn variables(&self) -> Vec<String> {
        let named = [&self.token_env, &self.user_env, &self.password_env];
        let mut all: Vec<String> = named.into_iter().flatten().cloned().collect();
        for value in self.headers.values() {
            let parts = value.split("${").skip(1);
            all.extend(parts.filter_map(|part| Some(part.split_once('}')?.0.to_owned())));
        }
        all
    }

    /// Validates the settings and expands prefixed names.
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
                "its address contains credentials, which must come from environment variables"
                    .into(),
            ));
        }
        if host.is_empty() || self.url.parse::<ureq::http::Uri>().is_err() {
            return Err(bad("its address is not a valid URL".into()));
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
                    "the header `{name}` contains a secret; write it as `${{NAME}}`, the name of an \
                     environment variable"
                )));
            }
        }
        if self.user_env.is_some() != self.password_env.is_some() {
            return Err(bad(
                "`user_env` and `password_env` must be set together".into()
            ));
        }
        let is_tag = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.language.is_empty() || !self.language.chars().all(is_tag) {
            return Err(bad("`language` must be a tag such as `en`".into()));
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
            return Err(bad("times must be seconds, at most one day".into()));
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
            *iri = written_out(iri, &prefixes).ok_or_else(|| {
                bad(format!(
                    "`{iri}` is neither an IRI nor a name with a known prefix"
                ))
            })?;
        }
        self.language.make_ascii_lowercase();
        Ok(self)
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.limits.timeout_s)
    }
}

/// Expands an IRI with a prefix, and removes angle brackets.
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

/// Replaces `${NAME}` by environment variables. The error is the name of one that is not set.
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
        assert!(refused(|c| c.user_env = Some("U".into())).contains("must be set together"));
        assert!(refused(|c| c.labels = vec!["no iri".into()]).contains("`no iri`"));
        assert!(refused(|c| c.limits.batch = 0).contains("limits.batch"));
        assert!(refused(|c| c.limits.timeout_s = f64::NAN).contains("seconds"));
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
