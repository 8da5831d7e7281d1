//! Oxigraph's server: <https://github.com/oxigraph/oxigraph/tree/main/cli>. No full text.
//!
//! Measured with 0.5.13 and `--timeout-s`: it begins its reply with status 200, and a query that it
//! stops ends in the middle of the JSON with a sentence. Where one operator runs for long, as a
//! count over a product does, the limit is not looked at.

use super::{Dialect, ReplyStatus};

const CANCELLED: &str = "The SPARQL operation has been cancelled";

pub(super) struct Oxigraph;

impl Dialect for Oxigraph {
    fn gave_up(&self, reply: &ReplyStatus<'_>) -> bool {
        reply.status >= 500 && reply.message.contains(CANCELLED)
    }

    fn last_words(&self) -> Option<&'static str> {
        Some(CANCELLED)
    }
}
