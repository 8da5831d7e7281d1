//! Running a user's SPARQL query at the service.

use std::io::Write;

use oxttl::TurtleParser;

use super::Service;
use super::http::content_type;
use super::permit::Permit;
use crate::error::Result;
use crate::sparql::guard::refused;
use crate::sparql::{
    PREFIXES, ResultFormat, SparqlOptions, Written, write_received, write_received_triples,
};

impl Service {
    /// Runs a query at the service and writes its answer. Only what reads the one graph is run, and
    /// it is sent as it was understood here: see `permit.rs`. Prefixes that need no
    /// declaration at a store need none here; a query's own win. The whole reply must have come in
    /// the time of `options`, or in that of the service's configuration where that is shorter.
    pub fn write_query(
        &self,
        text: &str,
        options: &SparqlOptions,
        format: ResultFormat,
        out: &mut dyn Write,
    ) -> Result<Written> {
        let permit = Permit {
            graph: self.config.graph.as_deref(),
            prefixes: &self.config.prefixes,
            rows: options.max_rows,
        };
        let query = permit.grant(text)?;
        if query.gives_triples {
            return self.triples(&query.text, options, format, out);
        }
        if matches!(format, ResultFormat::NTriples | ResultFormat::Turtle) {
            return Err(refused(
                "its answer has no triples".into(),
                Some("choose `table`, `json`, `csv`, `tsv` or `xml`, or write `CONSTRUCT`"),
            ));
        }
        let response = self.client.send_within(
            &query.text,
            "application/sparql-results+json, application/sparql-results+xml;q=0.5",
            options.timeout,
        )?;
        let results = self.client.results(response)?;
        let broken = |e: &dyn std::error::Error| self.client.broken(e);
        write_received(results, options.max_rows, format, out, &broken)
    }

    /// Triples that the service sends, as many as there may be rows.
    fn triples(
        &self,
        query: &str,
        options: &SparqlOptions,
        format: ResultFormat,
        out: &mut dyn Write,
    ) -> Result<Written> {
        let response = self.client.send_within(
            query,
            "application/n-triples, text/turtle;q=0.9",
            options.timeout,
        )?;
        let kind = content_type(&response);
        if !matches!(
            kind.as_str(),
            "text/turtle"
                | "application/n-triples"
                | "text/plain"
                | "text/ntriples"
                | "application/x-turtle"
        ) {
            return Err(self.client.wrong_kind(&kind));
        }
        // N-Triples are Turtle
        let body = self.client.limited(response);
        let triples = (TurtleParser::new().for_reader(body))
            .map(|triple| triple.map_err(|e| self.client.broken(&e)));
        write_received_triples(triples, options.max_rows, format, out)
    }

    pub(super) fn with_prefixes(&self, text: &str) -> String {
        let mut query = String::new();
        let own = self
            .config
            .prefixes
            .iter()
            .map(|(p, i)| (p.as_str(), i.as_str()));
        let known = PREFIXES.iter().copied().filter(|(p, _)| !p.is_empty());
        let known = known.filter(|(p, _)| !self.config.prefixes.contains_key(*p));
        for (prefix, iri) in own.chain(known) {
            // some services refuse certain prefixes: declare only those that the query uses
            if text.contains(&format!("{prefix}:")) && !declares(text, prefix) {
                query += &format!("PREFIX {prefix}: <{iri}>\n");
            }
        }
        query + text
    }
}

/// Whether a query declares a prefix itself.
fn declares(text: &str, prefix: &str) -> bool {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("prefix")
            && words.clone().next().is_some_and(|next| {
                next.strip_prefix(prefix)
                    .is_some_and(|rest| rest.starts_with(':'))
            })
        {
            return true;
        }
    }
    false
}
