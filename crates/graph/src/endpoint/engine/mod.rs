//! What one SPARQL engine does differently from another, a file for each: full-text search, time
//! limits of a query, and the ways in which it says that it gave one up.
//!
//! Counting needs no dialect: every engine here evaluates `GROUP BY` with `COUNT` and `SAMPLE`, and
//! what is too much for it, it gives up.

mod fuseki;
mod graphdb;
mod oxigraph;
mod qlever;
mod virtuoso;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use ureq::http::HeaderMap;

/// The program that answers at a service's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// OpenLink Virtuoso.
    Virtuoso,
    /// Ontotext GraphDB.
    Graphdb,
    /// Apache Jena Fuseki.
    Fuseki,
    /// QLever.
    Qlever,
    /// Oxigraph's server.
    Oxigraph,
    /// Any other: nothing but SPARQL 1.1 is assumed.
    #[default]
    Standard,
}

/// The engines that have a dialect.
const ALL: [Engine; 5] = [
    Engine::Virtuoso,
    Engine::Graphdb,
    Engine::Fuseki,
    Engine::Qlever,
    Engine::Oxigraph,
];

/// What an engine does in its own way.
pub(super) trait Dialect: Sync {
    /// A graph pattern that binds `?l` to labels with all these words and `?e` to what they name;
    /// none if the engine has no full text.
    fn labels_with(&self, _query: &TextQuery<'_>) -> Option<String> {
        None
    }

    /// The form field that limits the time of a query; none if the engine has none that either
    /// gives a whole result or an error.
    fn time_limit(&self, _limit: Duration) -> Option<(&'static str, String)> {
        None
    }

    /// Whether a reply says that the engine gave the query up, at a limit of its own.
    fn gave_up(&self, reply: &ReplyStatus<'_>) -> bool;

    /// The text at the end of a reply that began well and was then given up.
    fn last_words(&self) -> Option<&'static str> {
        None
    }
}

/// A search for labels by words.
pub(super) struct TextQuery<'q> {
    /// Letters and digits in lower case.
    pub(super) words: &'q [&'q str],
    /// Whether the last word may be the beginning of one.
    pub(super) prefix: bool,
    /// The IRIs of the relations that give names.
    pub(super) naming: &'q [&'q str],
    /// Maximum number of labels.
    pub(super) limit: usize,
}

impl TextQuery<'_> {
    /// The words, each written as `write` does it; `*` ends one that is only a beginning.
    fn written(&self, write: impl Fn(&str) -> String, between: &str) -> String {
        let last = self.words.len().saturating_sub(1);
        let words: Vec<String> = (self.words.iter().enumerate())
            .map(|(i, word)| match self.prefix && i == last {
                true => write(&format!("{word}*")),
                false => write(word),
            })
            .collect();
        words.join(between)
    }

    /// A filter that lets only relations pass that give names.
    fn naming_filter(&self, variable: &str) -> String {
        let all: Vec<String> = self.naming.iter().map(|iri| format!("<{iri}>")).collect();
        format!("FILTER({variable} IN ({}))", all.join(", "))
    }
}

/// Status, headers and, of an error, the message of a reply.
pub(super) struct ReplyStatus<'r> {
    pub(super) status: u16,
    pub(super) headers: &'r HeaderMap,
    /// Empty where the status is no error.
    pub(super) message: &'r str,
}

impl Engine {
    pub(super) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Engine::Virtuoso => &virtuoso::Virtuoso,
            Engine::Graphdb => &graphdb::Graphdb,
            Engine::Fuseki => &fuseki::Fuseki,
            Engine::Qlever => &qlever::Qlever,
            Engine::Oxigraph => &oxigraph::Oxigraph,
            Engine::Standard => &Standard,
        }
    }
}

/// Whether a reply says, as any of the engines would, that the query was given up. An address alone
/// does not tell which engine answers.
pub(super) fn gave_up(reply: &ReplyStatus<'_>) -> bool {
    ALL.iter().any(|engine| engine.dialect().gave_up(reply))
}

/// Whether a reply ends with the last words of any of the engines.
pub(super) fn ends_given_up(body: &[u8]) -> bool {
    ALL.iter()
        .filter_map(|engine| engine.dialect().last_words())
        .any(|words| body.trim_ascii_end().ends_with(words.as_bytes()))
}

/// Maximum bytes of the last words of an engine, with white space around them.
pub(super) const LAST_WORDS: usize = 128;

struct Standard;

impl Dialect for Standard {
    fn gave_up(&self, _reply: &ReplyStatus<'_>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(engine: Engine, status: u16, header: Option<(&'static str, &str)>, text: &str) -> bool {
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            headers.insert(name, value.parse().unwrap());
        }
        let reply = ReplyStatus {
            status,
            headers: &headers,
            message: text,
        };
        assert_eq!(gave_up(&reply), engine.dialect().gave_up(&reply), "{text}");
        engine.dialect().gave_up(&reply)
    }

    #[test]
    fn each_engine_is_understood_when_it_gives_up() {
        // Virtuoso 7.2 and Oxigraph 0.5 as they were heard, the others as their sources have it
        let state = Some(("x-sql-state", "S1TAT"));
        assert!(said(Engine::Virtuoso, 200, state, ""));
        for text in [
            "Virtuoso S1T00 Error SR171: Transaction timed out",
            "Virtuoso 42000 Error The estimated execution time 5000 (sec) exceeds the limit of 400 (sec).",
        ] {
            assert!(said(Engine::Virtuoso, 500, None, text));
        }
        let text = "Query evaluation took too long";
        assert!(said(Engine::Graphdb, 503, None, text));
        assert!(said(Engine::Fuseki, 503, None, "Query timed out"));
        let text =
            r#"{"exception":"Operation timed out. Last operation: Sort on ?r","status":"ERROR"}"#;
        assert!(said(Engine::Qlever, 429, None, text));
        let text = "The SPARQL operation has been cancelled";
        assert!(said(Engine::Oxigraph, 500, None, text));
        assert!(ends_given_up(
            format!("{{\"head\":{{\"vars\":[]}},{text}\n").as_bytes()
        ));
        // what only is busy, or does not understand, has not given up
        for engine in ALL {
            for (status, text) in [
                (200, ""),
                (429, "Too many requests"),
                (503, "busy"),
                (500, "Virtuoso 37000 Error SP031: SPARQL compiler"),
                (400, "The SPARQL operation"),
            ] {
                assert!(!said(engine, status, None, text), "{engine:?} {text}");
            }
        }
        assert!(!ends_given_up(b"{\"boolean\":true}"));
    }

    #[test]
    fn last_words_fit_into_what_is_held_back() {
        for engine in ALL {
            let words = engine.dialect().last_words().unwrap_or_default();
            assert!(words.len() + 8 <= LAST_WORDS);
        }
    }

    #[test]
    fn a_time_limit_is_asked_of_engines_that_then_fail_and_do_not_cut() {
        let limit = |engine: Engine| engine.dialect().time_limit(Duration::from_millis(1500));
        assert_eq!(limit(Engine::Graphdb), Some(("timeout", "2".into())));
        assert_eq!(limit(Engine::Fuseki), Some(("timeout", "2.5".into())));
        // Virtuoso would cut the result, QLever refuses a limit above its own
        for engine in [
            Engine::Virtuoso,
            Engine::Qlever,
            Engine::Oxigraph,
            Engine::Standard,
        ] {
            assert_eq!(limit(engine), None);
        }
    }
}
