//! Fuseki: <https://jena.apache.org/documentation/query/text-query.html>,
//! <https://jena.apache.org/documentation/fuseki2/fuseki-configuration.html>. By its documentation
//! and source; not measured.

use std::time::Duration;

use super::{Dialect, ReplyStatus, TextQuery};

pub(super) struct Fuseki;

impl Dialect for Fuseki {
    /// Needs a text index whose default field is the label, with `text:storeValues true`.
    fn labels_with(&self, query: &TextQuery<'_>) -> Option<String> {
        let words = query.written(str::to_owned, " AND ");
        Some(format!(
            "(?e ?score ?l) <http://jena.apache.org/text#query> ( \"{words}\" {} )",
            query.limit
        ))
    }

    /// Seconds; ignored unless the data set allows it (`fuseki:allowTimeoutOverride`). A little
    /// more than we wait, so that a limit of ours does not look like one of the service.
    fn time_limit(&self, limit: Duration) -> Option<(&'static str, String)> {
        Some(("timeout", format!("{:.1}", limit.as_secs_f64() + 1.0)))
    }

    fn gave_up(&self, reply: &ReplyStatus<'_>) -> bool {
        reply.status == 503 && reply.message.contains("timed out")
    }
}
