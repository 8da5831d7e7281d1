//! Answers as text: an aligned table for people, and the formats of SPARQL and RDF for programs.

use std::cell::Cell;
use std::io::{Read, Write};

use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term, TermRef, Variable};
use oxrdfio::{RdfFormat, RdfSerializer};
use serde::{Deserialize, Serialize};
use sparesults::{QueryResultsFormat, QueryResultsSerializer, ReaderQueryResultsParserOutput};

use super::guard::refused;
use super::{QueryAnswer, Rows, Triples, iri_name};
use crate::error::{Error, Result};

/// Rows that a table reads ahead to find the widths of its columns. Later cells that are wider
/// push their row out of line.
const LOOK_AHEAD: usize = 1000;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResultFormat {
    /// An aligned table for people; cells are cut to `width` characters.
    Table {
        /// Most characters in a cell; at least 1.
        width: usize,
    },
    /// SPARQL 1.1 Query Results JSON.
    Json,
    /// SPARQL 1.1 Query Results CSV: values alone, without their types.
    Csv,
    /// CSV for spreadsheets: a cell that they would take for a formula begins with `'`.
    Spreadsheet,
    /// SPARQL 1.1 Query Results TSV: terms as in Turtle.
    Tsv,
    /// SPARQL Query Results XML.
    Xml,
    /// N-Triples; for `CONSTRUCT` and `DESCRIBE`.
    NTriples,
    /// Turtle; for `CONSTRUCT` and `DESCRIBE`.
    Turtle,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Rows or triples; none for `ASK`.
    pub rows: u64,
    /// Whether more were left out because of [`max_rows`](super::SparqlOptions::max_rows).
    pub is_cut: bool,
    /// The answer to an `ASK`.
    pub boolean: Option<bool>,
}

impl QueryAnswer<'_> {
    /// Writes the answer as it is computed. Rows that were written before an error stay written.
    ///
    /// Triples fit every format: outside N-Triples and Turtle they are rows of `subject`,
    /// `predicate` and `object`. Rows and `ASK` cannot be N-Triples or Turtle.
    pub fn write(self, format: ResultFormat, out: &mut dyn Write) -> Result<Written> {
        let results = match format {
            ResultFormat::Table { width } => return self.write_table(width.max(1), out),
            ResultFormat::NTriples => return self.write_rdf(RdfFormat::NTriples, out),
            ResultFormat::Turtle => return self.write_rdf(RdfFormat::Turtle, out),
            ResultFormat::Json => QueryResultsFormat::Json,
            ResultFormat::Csv | ResultFormat::Spreadsheet => QueryResultsFormat::Csv,
            ResultFormat::Tsv => QueryResultsFormat::Tsv,
            ResultFormat::Xml => QueryResultsFormat::Xml,
        };
        if let QueryAnswer::Boolean(value) = self {
            return write_boolean(value, results, out);
        }
        let variables = self.variables();
        write_solutions(variables, results, out, |each| match format {
            ResultFormat::Spreadsheet => self.for_each_row(&mut |row| each(&as_cells(row))),
            _ => self.for_each_row(each),
        })
    }

    fn write_rdf(self, format: RdfFormat, out: &mut dyn Write) -> Result<Written> {
        let QueryAnswer::Triples(mut triples) = self else {
            return Err(refused(
                format!(
                    "its answer has no triples, so it cannot be {}",
                    format.name()
                ),
                Some("choose `table`, `json`, `csv`, `tsv` or `xml`, or write `CONSTRUCT`"),
            ));
        };
        let mut written = Written::default();
        let mut serializer = RdfSerializer::from_format(format).for_writer(out);
        for triple in &mut triples {
            serializer
                .serialize_triple(triple?.as_ref())
                .map_err(unwritten)?;
            written.rows += 1;
        }
        serializer.finish().map_err(unwritten)?;
        written.is_cut = triples.is_cut();
        Ok(written)
    }

    fn write_table(self, width: usize, out: &mut dyn Write) -> Result<Written> {
        if let QueryAnswer::Boolean(value) = self {
            writeln!(out, "{}", if value { "yes" } else { "no" }).map_err(unwritten)?;
            return Ok(truth(value));
        }
        let variables = self.variables();
        write_aligned(&variables, width, out, |each| self.for_each_row(each))
    }

    fn variables(&self) -> Vec<Variable> {
        match self {
            QueryAnswer::Rows(rows) => rows.variables().to_vec(),
            QueryAnswer::Boolean(_) => Vec::new(),
            QueryAnswer::Triples(_) => ["subject", "predicate", "object"]
                .map(Variable::new_unchecked)
                .to_vec(),
        }
    }

    /// Calls `each` with the cells of each row; returns whether rows were left out.
    fn for_each_row(self, each: &mut EachRow<'_>) -> Result<bool> {
        match self {
            QueryAnswer::Rows(mut rows) => {
                for row in &mut rows {
                    each(row?.values())?;
                }
                Ok(Rows::is_cut(&rows))
            }
            QueryAnswer::Triples(mut triples) => {
                for triple in &mut triples {
                    let triple = triple?;
                    each(&[
                        Some(triple.subject.into()),
                        Some(triple.predicate.into()),
                        Some(triple.object),
                    ])?;
                }
                Ok(Triples::is_cut(&triples))
            }
            QueryAnswer::Boolean(_) => Ok(false),
        }
    }
}

/// Takes the cells of a row.
type EachRow<'a> = dyn FnMut(&[Option<Term>]) -> Result<()> + 'a;

fn write_boolean(value: bool, format: QueryResultsFormat, out: &mut dyn Write) -> Result<Written> {
    QueryResultsSerializer::from_format(format)
        .serialize_boolean_to_writer(&mut *out, value)
        .map_err(unwritten)?;
    end_line(format, out)?;
    Ok(truth(value))
}

/// Writes the rows that `rows` hands out; it returns whether some were left out.
fn write_solutions(
    variables: Vec<Variable>,
    format: QueryResultsFormat,
    out: &mut dyn Write,
    rows: impl FnOnce(&mut EachRow<'_>) -> Result<bool>,
) -> Result<Written> {
    let mut written = Written::default();
    let mut serializer = QueryResultsSerializer::from_format(format)
        .serialize_solutions_to_writer(&mut *out, variables.clone())
        .map_err(unwritten)?;
    let mut count = 0;
    written.is_cut = rows(&mut |row| {
        let bound = variables
            .iter()
            .zip(row)
            .filter_map(|(variable, term)| Some((variable, term.as_ref()?)));
        count += 1;
        serializer.serialize(bound).map_err(unwritten)
    })?;
    written.rows = count;
    serializer.finish().map_err(unwritten)?;
    end_line(format, out)?;
    Ok(written)
}

/// Writes the rows that `rows` hands out as a table.
fn write_aligned(
    variables: &[Variable],
    width: usize,
    out: &mut dyn Write,
    rows: impl FnOnce(&mut EachRow<'_>) -> Result<bool>,
) -> Result<Written> {
    let mut written = Written::default();
    let header: Vec<String> = variables
        .iter()
        .map(|variable| cut(variable.as_str(), width))
        .collect();
    let mut table = Table {
        widths: header.iter().map(|name| name.chars().count()).collect(),
        header,
        ahead: Some(Vec::new()),
    };
    let mut count = 0;
    written.is_cut = rows(&mut |row| {
        let cells = row
            .iter()
            .map(|term| cut(&term.as_ref().map_or(String::new(), shown), width))
            .collect();
        count += 1;
        table.push(cells, out)
    })?;
    written.rows = count;
    table.begin(out)?;
    Ok(written)
}

/// Writes what a remote service answered; `broken` tells what is wrong with it.
pub(crate) fn write_received<R: Read>(
    received: ReaderQueryResultsParserOutput<R>,
    max_rows: Option<usize>,
    format: ResultFormat,
    out: &mut dyn Write,
    broken: &dyn Fn(&dyn std::error::Error) -> Error,
) -> Result<Written> {
    let results = match format {
        ResultFormat::Json => Some(QueryResultsFormat::Json),
        ResultFormat::Csv | ResultFormat::Spreadsheet => Some(QueryResultsFormat::Csv),
        ResultFormat::Tsv => Some(QueryResultsFormat::Tsv),
        ResultFormat::Xml => Some(QueryResultsFormat::Xml),
        _ => None,
    };
    let solutions = match (received, results) {
        (ReaderQueryResultsParserOutput::Boolean(value), Some(results)) => {
            return write_boolean(value, results, out);
        }
        (ReaderQueryResultsParserOutput::Boolean(value), None) => {
            writeln!(out, "{}", if value { "yes" } else { "no" }).map_err(unwritten)?;
            return Ok(truth(value));
        }
        (ReaderQueryResultsParserOutput::Solutions(solutions), _) => solutions,
    };
    let variables = solutions.variables().to_vec();
    let rows = |each: &mut EachRow<'_>| {
        let mut left = max_rows.unwrap_or(usize::MAX);
        for solution in solutions {
            let solution = solution.map_err(|e| broken(&e))?;
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            match format {
                ResultFormat::Spreadsheet => each(&as_cells(solution.values()))?,
                _ => each(solution.values())?,
            }
        }
        Ok(false)
    };
    match (results, format) {
        (Some(results), _) => write_solutions(variables, results, out, rows),
        (None, ResultFormat::Table { width }) => write_aligned(&variables, width.max(1), out, rows),
        (None, _) => Err(refused(
            "its answer has no triples".into(),
            Some("choose `table`, `json`, `csv`, `tsv` or `xml`"),
        )),
    }
}

/// Writes triples that a remote service sent, no more of them than `max_rows`.
pub(crate) fn write_received_triples(
    triples: impl Iterator<Item = Result<oxrdf::Triple>>,
    max_rows: Option<usize>,
    format: ResultFormat,
    out: &mut dyn Write,
) -> Result<Written> {
    let cut = Cell::new(false);
    let mut left = max_rows.unwrap_or(usize::MAX);
    // one more than is written tells whether there are more
    let mut triples = triples.take_while(|_| {
        cut.set(left == 0);
        left = left.saturating_sub(1);
        !cut.get()
    });
    let results = match format {
        ResultFormat::NTriples | ResultFormat::Turtle => {
            let format = match format {
                ResultFormat::Turtle => RdfFormat::Turtle,
                _ => RdfFormat::NTriples,
            };
            let mut rows = 0;
            let mut serializer = RdfSerializer::from_format(format).for_writer(&mut *out);
            for triple in &mut triples {
                serializer
                    .serialize_triple(triple?.as_ref())
                    .map_err(unwritten)?;
                rows += 1;
            }
            serializer.finish().map_err(unwritten)?;
            return Ok(Written {
                rows,
                is_cut: cut.get(),
                boolean: None,
            });
        }
        ResultFormat::Json => Some(QueryResultsFormat::Json),
        ResultFormat::Csv | ResultFormat::Spreadsheet => Some(QueryResultsFormat::Csv),
        ResultFormat::Tsv => Some(QueryResultsFormat::Tsv),
        ResultFormat::Xml => Some(QueryResultsFormat::Xml),
        ResultFormat::Table { .. } => None,
    };
    let rows = |each: &mut EachRow<'_>| {
        for triple in triples {
            let triple = triple?;
            let row = [
                Some(triple.subject.into()),
                Some(triple.predicate.into()),
                Some(triple.object),
            ];
            match format {
                ResultFormat::Spreadsheet => each(&as_cells(&row))?,
                _ => each(&row)?,
            }
        }
        Ok(cut.get())
    };
    let variables = ["subject", "predicate", "object"]
        .map(Variable::new_unchecked)
        .to_vec();
    match (results, format) {
        (Some(results), _) => write_solutions(variables, results, out, rows),
        (None, ResultFormat::Table { width }) => write_aligned(&variables, width.max(1), out, rows),
        (None, _) => unreachable!("every other format was dealt with"),
    }
}

fn truth(value: bool) -> Written {
    Written {
        boolean: Some(value),
        ..Written::default()
    }
}

/// The serializers of JSON and XML leave the last line open.
fn end_line(format: QueryResultsFormat, out: &mut dyn Write) -> Result<()> {
    match format {
        QueryResultsFormat::Json | QueryResultsFormat::Xml => out.write_all(b"\n"),
        _ => Ok(()),
    }
    .map_err(unwritten)
}

fn unwritten(error: std::io::Error) -> Error {
    Error::io("write", "the answer")(error)
}

/// A table that is written once its columns are known to be wide enough for most.
struct Table {
    header: Vec<String>,
    widths: Vec<usize>,
    /// Rows that wait for the widths; `None` once it is being written.
    ahead: Option<Vec<Vec<String>>>,
}

impl Table {
    fn push(&mut self, cells: Vec<String>, out: &mut dyn Write) -> Result<()> {
        let Some(ahead) = &mut self.ahead else {
            return self.line(&cells, out);
        };
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(cell.chars().count());
        }
        ahead.push(cells);
        if ahead.len() >= LOOK_AHEAD {
            self.begin(out)?;
        }
        Ok(())
    }

    /// Writes the header and the rows that waited, unless that was done before.
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        let Some(ahead) = self.ahead.take() else {
            return Ok(());
        };
        self.line(&self.header, out)?;
        let rule: Vec<String> = self.widths.iter().map(|width| "-".repeat(*width)).collect();
        self.line(&rule, out)?;
        ahead.iter().try_for_each(|cells| self.line(cells, out))
    }

    fn line(&self, cells: &[String], out: &mut dyn Write) -> Result<()> {
        let mut line = String::new();
        for (i, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            if i > 0 {
                line.push_str("  ");
            }
            line.push_str(cell);
            line.extend(std::iter::repeat_n(
                ' ',
                width.saturating_sub(cell.chars().count()),
            ));
        }
        writeln!(out, "{}", line.trim_end()).map_err(unwritten)
    }
}

/// A term for people: names bare, IRIs in `<>`, numbers and truth values bare, other values
/// quoted with their language or type.
fn shown(term: &Term) -> String {
    match term {
        Term::NamedNode(iri) => match iri_name(iri.as_str()) {
            Some(name) => without_controls(&name),
            None => without_controls(&iri.to_string()),
        },
        Term::Literal(literal) if is_plain_number(literal) => literal.value().to_owned(),
        // a datatype in full would fill the cell
        Term::Literal(literal) => {
            let text = without_controls(literal.value());
            match (literal.language(), literal.datatype()) {
                (Some(tag), _) => format!("\"{text}\"@{tag}"),
                (None, xsd::STRING) => format!("\"{text}\""),
                (None, datatype) => match datatype.as_str().strip_prefix(crate::key::XSD) {
                    Some(local) => format!("\"{text}\"^^xsd:{local}"),
                    None => format!("\"{text}\"^^{datatype}"),
                },
            }
        }
        other => TermRef::from(other).to_string(),
    }
}

fn is_plain_number(literal: &Literal) -> bool {
    let number = [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::BOOLEAN];
    number.contains(&literal.datatype())
        && !literal.value().is_empty()
        && literal
            .value()
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// Control characters and marks that turn the direction of writing around, escaped: they would
/// break the table, or the terminal.
fn without_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// The cells of a row as a spreadsheet takes them: texts that begin like a formula are marked as
/// texts. Numbers, which may begin so too, are what they look like.
fn as_cells(row: &[Option<Term>]) -> Vec<Option<Term>> {
    let cell = |term: &Term| {
        let text = match term {
            Term::Literal(literal) if is_plain_number(literal) => return term.clone(),
            Term::Literal(literal) => literal.value(),
            Term::NamedNode(iri) => iri.as_str(),
            _ => return term.clone(),
        };
        match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            true => Literal::new_simple_literal(format!("'{text}")).into(),
            false => term.clone(),
        }
    };
    row.iter().map(|term| term.as_ref().map(cell)).collect()
}

fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(width - 1).collect();
            kept + "…"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_shown_for_people() {
        let typed = |value: &str, datatype| Term::from(Literal::new_typed_literal(value, datatype));
        for (term, text) in [
            (
                Term::from(oxrdf::NamedNode::new_unchecked("name:Forrest%20Gump")),
                "Forrest Gump",
            ),
            (
                oxrdf::NamedNode::new_unchecked("http://a/b").into(),
                "<http://a/b>",
            ),
            (oxrdf::BlankNode::new_unchecked("b0").into(), "_:b0"),
            (Literal::from(5).into(), "5"),
            (typed("five (5)", xsd::INTEGER), "\"five (5)\"^^xsd:integer"),
            (typed("1994-07-06", xsd::DATE), "\"1994-07-06\"^^xsd:date"),
            (Literal::from("a\n\u{1b}[0m").into(), "\"a\\n\\u{1b}[0m\""),
            (Literal::from("a\u{202e}b").into(), "\"a\\u{202e}b\""),
            (
                Literal::new_language_tagged_literal_unchecked("chat", "fr").into(),
                "\"chat\"@fr",
            ),
        ] {
            assert_eq!(shown(&term), text);
        }
    }

    #[test]
    fn a_spreadsheet_takes_no_text_for_a_formula() {
        let cells = |terms: &[Literal]| {
            let row: Vec<_> = terms.iter().cloned().map(Term::from).map(Some).collect();
            let shown = as_cells(&row).into_iter().map(|cell| match cell {
                Some(Term::Literal(literal)) => literal.value().to_owned(),
                _ => String::new(),
            });
            shown.collect::<Vec<_>>()
        };
        assert_eq!(
            cells(&[
                Literal::from("=HYPERLINK(\"http://evil\")"),
                Literal::from("+1"),
                Literal::from("@x"),
                Literal::from(-5),
                Literal::new_typed_literal("-1+cmd|' /C calc'!A0", xsd::INTEGER),
                Literal::from("a=b"),
            ]),
            [
                "'=HYPERLINK(\"http://evil\")",
                "'+1",
                "'@x",
                "-5",
                "'-1+cmd|' /C calc'!A0",
                "a=b"
            ]
        );
    }

    #[test]
    fn cells_are_cut_by_characters() {
        assert_eq!(cut("Café", 4), "Café");
        assert_eq!(cut("Café 1", 4), "Caf…");
        assert_eq!(cut("ab", 1), "…");
    }

    #[test]
    fn a_table_takes_its_widths_from_the_first_rows() {
        let mut table = Table {
            header: vec!["a".into(), "b".into()],
            widths: vec![1, 1],
            ahead: Some(Vec::new()),
        };
        let mut out = Vec::new();
        table
            .push(vec!["xyz".into(), "1".into()], &mut out)
            .unwrap();
        assert!(out.is_empty());
        for _ in 1..LOOK_AHEAD {
            table
                .push(vec![String::new(), "2".into()], &mut out)
                .unwrap();
        }
        table
            .push(vec!["wider".into(), "3".into()], &mut out)
            .unwrap();
        table.begin(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("a    b\n---  -\nxyz  1\n     2\n"));
        assert!(text.ends_with("\n     2\nwider  3\n"));
        assert_eq!(text.lines().count(), LOOK_AHEAD + 3);
    }
}
