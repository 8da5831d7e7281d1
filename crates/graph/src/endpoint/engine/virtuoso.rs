//! Virtuoso: <https://docs.openlinksw.com/virtuoso/rdfsparqlrulefulltext/>,
//! <https://github.com/openlink/virtuoso-opensource/blob/develop/7/README.ANYTIME.md>.
//!
//! Measured with 7.2.5: at its own `MaxQueryExecutionTime` it sends status 500 with `S1T00`, and
//! under `ExecutionTimeout`, or the form field `timeout`, status 200 with the rows that it has by
//! then: a count of 30 billion came back as 11,906. Only the header `X-SQL-State: S1TAT` tells, so
//! `timeout` is never sent, and such a reply is an error.

use super::{Dialect, ReplyStatus, TextQuery};

pub(super) struct Virtuoso;

impl Dialect for Virtuoso {
    /// Needs a full-text rule (`DB.DBA.RDF_OBJ_FT_RULE_ADD`). A predicate that is a variable takes
    /// several times as long, so that each relation has a branch of its own.
    fn labels_with(&self, query: &TextQuery<'_>) -> Option<String> {
        let words = query.written(|word| format!("'{word}'"), " AND ");
        let branches: Vec<String> = (query.naming.iter())
            .map(|iri| format!("{{ ?e <{iri}> ?l . ?l <bif:contains> \"{words}\" }}"))
            .collect();
        (!branches.is_empty()).then(|| branches.join(" UNION "))
    }

    fn gave_up(&self, reply: &ReplyStatus<'_>) -> bool {
        let state = reply.headers.get("x-sql-state");
        let is_cut = state.is_some_and(|state| state.as_bytes() == b"S1TAT");
        let message = reply.message;
        is_cut
            || reply.status == 500
                && (message.contains("S1T00") || message.contains("estimated execution time"))
    }
}
