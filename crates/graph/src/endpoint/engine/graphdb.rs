//! GraphDB: <https://graphdb.ontotext.com/documentation/10.0/lucene-graphdb-connector.html>, and
//! RDF4J's protocol, <https://rdf4j.org/documentation/reference/rest-api/>. By their documentation
//! and source; not measured.

use std::time::Duration;

use super::{Dialect, ReplyStatus, TextQuery};

pub(super) struct Graphdb;

impl Dialect for Graphdb {
    /// Needs a Lucene connector named `labels`.
    fn labels_with(&self, query: &TextQuery<'_>) -> Option<String> {
        let words = query.written(str::to_owned, " AND ");
        Some(format!(
            "?s a <http://www.ontotext.com/connectors/lucene/instance#labels> ; \
             <http://www.ontotext.com/connectors/lucene#query> \"{words}\" ; \
             <http://www.ontotext.com/connectors/lucene#entities> ?e . ?e ?p ?l . {}",
            query.naming_filter("?p")
        ))
    }

    /// Whole seconds.
    fn time_limit(&self, limit: Duration) -> Option<(&'static str, String)> {
        let seconds = limit.as_secs_f64().ceil().max(1.0); // 0 is no limit
        Some(("timeout", format!("{seconds:.0}")))
    }

    fn gave_up(&self, reply: &ReplyStatus<'_>) -> bool {
        reply.status == 503 && reply.message.contains("took too long")
    }
}
