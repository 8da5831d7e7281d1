//! A question as a query: what the TEXT2SPARQL challenge asks of a server.
//!
//! A data set goes by the name that its graph is served under, by the last part of the graph's
//! path, or by any IRI that ends with one of these.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use wherefore::answer::Refusal;
use wherefore::logic::standard_query;

use super::{Asked, Engine, Served, clipped};
use crate::pool::Wanted;
use crate::problem::Problem;

/// A question as a query. The client of the challenge reads the first three fields.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Translated {
    dataset: String,
    question: String,
    query: String,
    /// The query in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<String>,
    /// Of the first answer that the query gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f32>,
}

/// The last part of an IRI; none where the text is none.
fn last_part(iri: &str) -> Option<&str> {
    let is_iri = iri.contains("://") || iri.starts_with("urn:");
    let trimmed = iri.trim_end_matches(['/', '#']);
    let last = trimmed.rsplit(['/', '#', ':']).next()?;
    (is_iri && !last.is_empty()).then_some(last)
}

impl Engine {
    /// The graph that a data set is, among those that the asker sees.
    pub(crate) fn data_set(
        &self,
        name: &str,
        sees: impl Fn(&str) -> bool,
    ) -> Result<Arc<Served>, Problem> {
        let mut graphs = self.graphs();
        graphs.retain(|graph| sees(&graph.name));
        for name in [Some(name), last_part(name)].into_iter().flatten() {
            if let Some(graph) = graphs.iter().find(|graph| graph.name == name) {
                return Ok(Arc::clone(graph));
            }
            let called = |graph: &&Arc<Served>| graph.aliases.iter().any(|alias| alias == name);
            let mut called = graphs.iter().filter(called);
            // a name for two graphs is none
            if let (Some(graph), None) = (called.next(), called.next()) {
                return Ok(Arc::clone(graph));
            }
        }
        let names: Vec<&str> = graphs.iter().map(|graph| graph.name.as_str()).collect();
        Err(Problem::not_found(
            "no-such-dataset",
            format!("there is no data set `{}`", clipped(name)),
        )
        .hint(format!(
            "there are: {}; an IRI that ends with one of these names means it too",
            names.join(", ")
        )))
    }

    /// The query that answers a question; a problem that says why where it is refused.
    pub(crate) fn translate(
        &self,
        dataset: String,
        asked: &Asked,
        deadline: Instant,
        wanted: &Wanted,
    ) -> Result<Translated, Problem> {
        let wanted = wanted.clone();
        let tell = move |_| match wanted.is_wanted() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let answer = self.ask(asked, deadline, tell)?;
        if let Some(query) = standard_query(&answer) {
            return Ok(Translated {
                dataset,
                question: answer.question,
                query,
                reading: answer.reading,
                confidence: answer.answers.first().map(|first| first.confidence),
            });
        }
        let Some(reason) = answer.reason else {
            let message = "this method found an answer, and no query that gives it";
            return Err(Problem::unprocessable("no-query", message)
                .hint("ask with `method=read`, which answers by queries alone"));
        };
        let code = answer.refusal.map_or("refused", Refusal::code);
        Err(
            Problem::unprocessable(code, format!("the question is refused: {reason}"))
                .hint("`POST /v1/ask` with the same question tells more"),
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::toy_engine;

    #[test]
    fn data_sets_go_by_their_name_or_path_or_an_iri() {
        let engine = toy_engine();
        let found = |name: &str| {
            let graph = engine.data_set(name, |_| true);
            graph.map(|graph| graph.name.clone())
        };
        for name in [
            "toy",
            "https://text2sparql.aksw.org/2025/toy/",
            "http://example.org/data#toy",
            "urn:data:toy",
        ] {
            assert_eq!(found(name).unwrap(), "toy", "{name}");
        }
        for name in ["", "http://", "urn:", "toys", "http://toy.example/films"] {
            let problem = found(name).unwrap_err();
            assert_eq!((problem.status, problem.code), (404, "no-such-dataset"));
            assert!(problem.hint.unwrap().starts_with("there are: toy;"));
        }
        let unseen = engine.data_set("toy", |_| false).err().unwrap();
        assert!(!unseen.hint.unwrap().contains("toy"));
    }
}
