//! SPARQL of the user, run at the service.

use std::io::{Read, Write};

use super::Service;
use super::http::content_type;
use crate::error::{Error, Result};
use crate::sparql::{PREFIXES, ResultFormat, SparqlOptions, Written, write_received};

impl Service {
    /// Runs a query at the service and writes its answer. Prefixes that need no declaration at a
    /// store need none here; a query's own win. The whole reply must have come in the time of
    /// `options`, or in that of the service's configuration where that is shorter.
    pub fn write_query(
        &self,
        text: &str,
        options: &SparqlOptions,
        format: ResultFormat,
        out: &mut dyn Write,
    ) -> Result<Written> {
        let query = self.with_prefixes(text);
        match format {
            ResultFormat::NTriples | ResultFormat::Turtle => {
                self.copy(&query, options, format, out)
            }
            _ => {
                let response = self.client.send_within(
                    &query,
                    "application/sparql-results+json, application/sparql-results+xml;q=0.5",
                    options.timeout,
                )?;
                let kind = content_type(&response);
                if kind.contains("turtle") || kind.contains("n-triples") || kind.contains("rdf") {
                    return Err(Error::SparqlRefused {
                        reason: "the service answers with triples".into(),
                        hint: Some("choose `--results nt` or `--results ttl`".into()),
                    });
                }
                let results = self.client.results(response)?;
                let broken = |e: &dyn std::error::Error| self.client.broken(e);
                write_received(results, options.max_rows, format, out, &broken)
            }
        }
    }

    /// Triples as the service writes them.
    fn copy(
        &self,
        query: &str,
        options: &SparqlOptions,
        format: ResultFormat,
        out: &mut dyn Write,
    ) -> Result<Written> {
        let accept = match format {
            ResultFormat::Turtle => "text/turtle",
            _ => "application/n-triples",
        };
        let response = (self.client).send_within(query, accept, options.timeout)?;
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
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        let mut left = self.config.limits.bytes;
        let mut lines = 0;
        loop {
            let read = (body.read(&mut buffer)).map_err(|e| self.client.broken(&e))?;
            if read == 0 {
                break;
            }
            left = (left.checked_sub(read as u64))
                .ok_or_else(|| self.client.bad_reply("it sent more than a reply may have"))?;
            lines += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
            out.write_all(&buffer[..read])
                .map_err(Error::io("write", "the answer"))?;
        }
        Ok(Written {
            rows: lines,
            ..Written::default()
        })
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
            // a prefix that the query does not use may be one that the service does not like
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
