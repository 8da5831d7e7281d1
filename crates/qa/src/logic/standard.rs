//! The query of an answer as any SPARQL 1.1 endpoint over the same data runs it.
//!
//! Our own endpoints know some prefixes without a declaration, and the queries of forms use them.
//! Here each prefixed name is its IRI:
//!
//! ```text
//! xsd:double(?v)      <http://www.w3.org/2001/XMLSchema#double>(?v)
//! ```

use wherefore_graph::sparql::PREFIXES;

use crate::answer::{Answer, Status};

/// The query that gives an answer's answers, without prefixes; none where the question is not
/// answered, or not by a query. Names that are no IRIs are written `<name:…>`: such graphs are
/// queried by this program alone.
pub fn standard_query(answer: &Answer) -> Option<String> {
    let query = answer.sparql.as_deref()?;
    // a query that would be too long is a comment that says so
    let is_query = answer.status == Status::Answered && !query.trim_start().starts_with('#');
    is_query.then(|| without_prefixes(query))
}

/// The query with IRIs in the place of names with one of [`PREFIXES`], outside of IRIs and strings.
fn without_prefixes(query: &str) -> String {
    let mut out = String::with_capacity(query.len() + 64);
    let mut rest = query;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '<' => iri_length(rest).unwrap_or(1),
            '"' => string_length(rest),
            c if c.is_alphanumeric() || "_?$@:".contains(c) => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && !"_?$@:-".contains(c));
                let word = &rest[..end.unwrap_or(rest.len())];
                if let Some(iri) = iri_of(word) {
                    out += &format!("<{iri}>");
                    rest = &rest[word.len()..];
                    continue;
                }
                word.len()
            }
            c => c.len_utf8(),
        };
        out += &rest[..taken];
        rest = &rest[taken..];
    }
    out
}

fn iri_of(word: &str) -> Option<String> {
    let (prefix, local) = word.split_once(':')?;
    // the empty one is for names that people type; none of ours are written so
    let known = |(name, _): &&(&str, &str)| *name == prefix && !name.is_empty();
    let (_, iri) = PREFIXES.iter().find(known)?;
    (!local.is_empty()).then(|| format!("{iri}{local}"))
}

/// Bytes of the IRI that a text begins with; none where `<` compares.
fn iri_length(text: &str) -> Option<usize> {
    let end = text[1..].find(|c: char| c <= ' ' || "<>\"{}|^`\\".contains(c))? + 1;
    text[end..].starts_with('>').then_some(end + 1)
}

/// Bytes of the string that a text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{Graph, toy};

    use super::*;
    use crate::{PipelineConfig, Question};

    #[test]
    fn prefixed_names_become_iris_and_all_else_stays() {
        let xsd = "http://www.w3.org/2001/XMLSchema#";
        assert_eq!(
            without_prefixes("FILTER(?a < 1 && xsd:double(?xsd) <= \"1\"^^xsd:double)"),
            format!("FILTER(?a < 1 && <{xsd}double>(?xsd) <= \"1\"^^<{xsd}double>)")
        );
        for same in [
            "SELECT ?x WHERE { ?x <http://a/xsd:b> \"xsd:c \\\" xsd:d\"@en }",
            "?x <name:xsd:e> ?y . FILTER(?x<?y)",
            "",
            "\"",
            "<",
            "ä <ö> xsd: xsd",
        ] {
            assert_eq!(without_prefixes(same), same);
        }
    }

    #[test]
    fn only_answered_questions_have_one() {
        let pipeline = PipelineConfig::default().build().unwrap();
        let graph: &dyn Graph = &toy::graph();
        let ask = |text: &str| {
            let answer = pipeline.answer(&Question::new(text), graph, &mut ());
            standard_query(&answer.unwrap())
        };
        let query = ask("Who is the mascot of the San Francisco Giants?").unwrap();
        assert!(query.contains("<name:mascot_of>"), "{query}");
        assert_eq!(ask("Who wrote Hamlet?"), None);
    }
}
