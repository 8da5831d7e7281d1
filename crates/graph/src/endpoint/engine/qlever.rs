//! QLever: <https://github.com/ad-freiburg/qlever/blob/master/docs/sparql_plus_text.md>. By its
//! documentation and source; not measured.
//!
//! The form field `timeout` is not sent: QLever refuses a limit above its own (status 403).

use super::{Dialect, ReplyStatus, TextQuery};

const NAMESPACE: &str = "http://qlever.cs.uni-freiburg.de/builtin-functions/";

pub(super) struct Qlever;

impl Dialect for Qlever {
    /// Needs a text index that was made of literals (`--text-index from_literals`): each literal is
    /// a text and the entity in it.
    fn labels_with(&self, query: &TextQuery<'_>) -> Option<String> {
        let words = query.written(str::to_owned, " ");
        Some(format!(
            "?t <{NAMESPACE}contains-word> \"{words}\" . ?t <{NAMESPACE}contains-entity> ?l . \
             ?e ?p ?l . {}",
            query.naming_filter("?p")
        ))
    }

    /// Status 429 is a query that was stopped, not a client that asks too often.
    fn gave_up(&self, reply: &ReplyStatus<'_>) -> bool {
        let message = reply.message;
        reply.status == 429
            && message.contains("\"exception\"")
            && ["timed out", "cancelled", "Cancelled"]
                .iter()
                .any(|text| message.contains(text))
    }
}
