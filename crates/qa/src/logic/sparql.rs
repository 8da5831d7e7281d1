//! A form as SPARQL.
//!
//! ```text
//! (JOIN r S)      ?x r ?y . S on ?y                     (JOIN (R r) S)   ?y r ?x . S on ?y
//! (AND S T)       S on ?x . T on ?x                     name             VALUES ?x { … }
//! (OR S T)        { S on ?x } UNION { T on ?x }
//! (ARGMAX S p)    S on ?x . ?x p ?v . { SELECT (MAX(value) AS ?best) { S on ?z . ?z p ?w } }
//!                 FILTER(value(?v) = ?best)
//! (TC S r t)      S on ?x . FILTER(no beginning, or one by t) FILTER(no end, or one from t on)
//! ```
//!
//! The value of a term is what [`super::value`] says: `xsd:double` for numbers, and for times an
//! `xsd:dateTime` that shorter dates are filled up to. Names of tables, which SPARQL sees as
//! `name:` IRIs, are read where the relation itself is such a name.

use std::fmt::Write;

use wherefore_graph::sparql::name_iri;
use wherefore_graph::{Literal, LiteralKind, Term};

use super::form::{Comparison, Extreme};
use super::plan::{Members, Plan, Set, Test, Way};
use super::value::{Moment, Quantity, Sense, TEMPORAL};
use crate::error::{Error, Result};

/// The longest query, in bytes. An extreme stands in it twice, so that extremes of extremes double
/// its length each time.
pub const MAX_SPARQL_BYTES: usize = 1 << 20;

impl Plan {
    /// The query; a comment that says so where it would be longer than [`MAX_SPARQL_BYTES`]. A
    /// `COUNT` gives `?count`, everything else `?x`.
    pub fn sparql(&self) -> String {
        self.query().unwrap_or_else(|error| format!("# {error}"))
    }

    /// The query, as [`Plan::sparql`]; an error where it is too long.
    pub fn query(&self) -> Result<String> {
        match self.count {
            true => self.written("SELECT (COUNT(DISTINCT ?x) AS ?count)"),
            false => self.members_sparql(),
        }
    }

    /// The query for `?x`, also where only their number is asked for.
    pub(super) fn members_sparql(&self) -> Result<String> {
        self.written("SELECT DISTINCT ?x")
    }

    fn written(&self, head: &str) -> Result<String> {
        let mut writer = Writer {
            depth: 1,
            ..Writer::default()
        };
        writer.set("x", &self.set);
        match writer.is_full() {
            true => Err(Error::FormTooLong {
                limit: MAX_SPARQL_BYTES,
            }),
            false => Ok(format!("{head} WHERE {{\n{}}}", writer.out)),
        }
    }
}

#[derive(Default)]
struct Writer {
    out: String,
    depth: usize,
    fresh: usize,
    /// Bytes of all lines, of the writers around this one too.
    bytes: usize,
}

impl Writer {
    fn variable(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    /// Whether the query is too long, and nothing more is written.
    fn is_full(&self) -> bool {
        self.bytes > MAX_SPARQL_BYTES
    }

    fn line(&mut self, text: &str) {
        self.bytes += 2 * self.depth + text.len() + 1;
        if self.is_full() {
            return;
        }
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn set(&mut self, x: &str, set: &Set) {
        if self.is_full() {
            return;
        }
        match set {
            Set::Of(members) => self.values(x, members),
            Set::Instances(ways, class) => {
                let paths: Vec<String> = ways.iter().map(|way| term(&way.term)).collect();
                let class = self.members("c", class, false);
                self.line(&format!("?{x} {} {class} .", paths.join("|")));
            }
            Set::Join(way, of) => {
                if let Set::Of(members) = &**of {
                    let y = self.members("y", members, way.reversed);
                    self.triple(&format!("?{x}"), way, &y);
                } else {
                    let y = self.variable("y");
                    self.triple(&format!("?{x}"), way, &format!("?{y}"));
                    self.set(&y, of);
                }
            }
            Set::And(all) => {
                for set in all {
                    self.set(x, set);
                }
            }
            Set::Or(all) => {
                for (i, set) in all.iter().enumerate() {
                    self.line(if i == 0 { "{" } else { "UNION {" });
                    self.depth += 1;
                    self.set(x, set);
                    self.depth -= 1;
                    self.line("}");
                }
            }
            Set::Compare { test, by, than } => {
                let value = self.valued(x, by, sense_of(*than));
                let sign = match test {
                    Test::Equal => "=",
                    Test::Is(Comparison::Less) => "<",
                    Test::Is(Comparison::AtMost) => "<=",
                    Test::Is(Comparison::Greater) => ">",
                    Test::Is(Comparison::AtLeast) => ">=",
                };
                self.line(&format!("FILTER(?{value} {sign} {})", quantity(*than)));
            }
            Set::Best {
                extreme,
                among,
                by,
                sense,
            } => {
                self.set(x, among);
                let value = self.ordered(x, by, *sense);
                let best = self.variable("best");
                let rival = self.variable("z");
                let function = match extreme {
                    Extreme::Largest => "MAX",
                    Extreme::Smallest => "MIN",
                };
                // the value that is compared has its name before it is written down
                let mut inner = Writer {
                    out: String::new(),
                    depth: self.depth + 1,
                    fresh: self.fresh,
                    bytes: self.bytes,
                };
                inner.set(&rival, among);
                let rated = inner.ordered(&rival, by, *sense);
                inner.line(&format!("FILTER(BOUND(?{rated}))"));
                (self.fresh, self.bytes) = (inner.fresh, inner.bytes);
                self.line(&format!(
                    "{{ SELECT ({function}(?{rated}) AS ?{best}) WHERE {{"
                ));
                self.out.push_str(&inner.out);
                self.line("} }");
                self.line(&format!("FILTER(?{value} = ?{best})"));
            }
            Set::At {
                set,
                start,
                end,
                first,
                last,
            } => {
                self.set(x, set);
                for (way, sign, than) in [(start, "<=", last), (end, ">=", first)] {
                    let Some(way) = way else { continue };
                    let none = self.variable("t");
                    let some = self.variable("t");
                    let ends = |variable: &str| match way.reversed {
                        true => format!("?{variable} {} ?{x}", term(&way.term)),
                        false => format!("?{x} {} ?{variable}", term(&way.term)),
                    };
                    let (guard, value) = expression(&some, Sense::Time, is_name(way));
                    self.line(&format!(
                        "FILTER(NOT EXISTS {{ {} }} || EXISTS {{ {} FILTER({guard}) FILTER({value} {sign} {}) }})",
                        ends(&none),
                        ends(&some),
                        moment(*than),
                    ));
                }
            }
        }
    }

    /// One term as it is, several as a variable that may be any of them. A literal is never a
    /// subject as it is: the grammar has no such triple.
    fn members(&mut self, prefix: &str, members: &Members, as_subject: bool) -> String {
        match members.terms.as_slice() {
            [one] if !as_subject || !matches!(one, Term::Literal(_)) => term(one),
            _ => {
                let variable = self.variable(prefix);
                self.values(&variable, members);
                format!("?{variable}")
            }
        }
    }

    fn values(&mut self, x: &str, members: &Members) {
        let terms: Vec<String> = members.terms.iter().map(term).collect();
        self.line(&format!("VALUES ?{x} {{ {} }}", terms.join(" ")));
    }

    fn triple(&mut self, x: &str, way: &Way, y: &str) {
        let (head, tail) = match way.reversed {
            true => (y, x),
            false => (x, y),
        };
        self.line(&format!("{head} {} {tail} .", term(&way.term)));
    }

    /// Walks along and binds the value at the end; its variable.
    fn valued(&mut self, x: &str, by: &[Way], sense: Sense) -> String {
        let mut at = x.to_owned();
        for way in by {
            let next = self.variable("v");
            self.triple(&format!("?{at}"), way, &format!("?{next}"));
            at = next;
        }
        let names = by.last().is_some_and(is_name);
        let (guard, value) = expression(&at, sense, names);
        let bound = self.variable("n");
        self.line(&format!("FILTER({guard})"));
        self.line(&format!("BIND({value} AS ?{bound})"));
        bound
    }

    /// The value as extremes order it: a time without a zone is one in UTC.
    fn ordered(&mut self, x: &str, by: &[Way], sense: Sense) -> String {
        let value = self.valued(x, by, sense);
        if sense == Sense::Number {
            return value;
        }
        let bound = self.variable("n");
        self.line(&format!(
            "BIND(IF(TZ(?{value}) = \"\", xsd:dateTime(CONCAT(STR(?{value}), \"Z\")), ?{value}) AS ?{bound})"
        ));
        bound
    }
}

fn is_name(way: &Way) -> bool {
    matches!(way.term, Term::Name(_))
}

fn sense_of(quantity: Quantity) -> Sense {
    match quantity {
        Quantity::Number(_) => Sense::Number,
        Quantity::Time(_) => Sense::Time,
    }
}

/// What a term must be, and its value: both as expressions.
fn expression(variable: &str, sense: Sense, names: bool) -> (String, String) {
    let v = format!("?{variable}");
    let guard = match names {
        true => format!("isLiteral({v}) || STRSTARTS(STR({v}), \"name:\")"),
        false => format!("isLiteral({v})"),
    };
    // a name's text, where there are names
    let text = match names {
        true => format!("IF(isIRI({v}), STRAFTER(STR({v}), \"name:\"), STR({v}))"),
        false => format!("STR({v})"),
    };
    match sense {
        Sense::Number => {
            let value = match names {
                true => format!("IF(isIRI({v}), xsd:double({text}), xsd:double({v}))"),
                false => format!("xsd:double({v})"),
            };
            // engines read `inf` and `nan` as well, and no maximum stands a NaN
            let spelt = format!("REGEX({text}, \"[0-9]|^[+-]?INF$|^(true|false)$\")");
            (format!("({guard}) && {spelt}"), value)
        }
        Sense::Time => {
            let kinds: Vec<String> = TEMPORAL.iter().map(|k| format!("xsd:{k}")).collect();
            let typed = format!("DATATYPE({v}) IN (xsd:string, {})", kinds.join(", "));
            let guard = match names {
                true => format!("isIRI({v}) || ({typed})"),
                false => format!("isLiteral({v}) && {typed}"),
            };
            let value = format!(
                "IF(REGEX({text}, \"^-?[0-9]{{4,9}}$\"), xsd:dateTime(CONCAT({text}, \"-01-01T00:00:00\")), \
                 IF(REGEX({text}, \"^-?[0-9]{{4,9}}-[0-9]{{2}}$\"), xsd:dateTime(CONCAT({text}, \"-01T00:00:00\")), \
                 IF(CONTAINS({text}, \"T\"), xsd:dateTime({text}), xsd:dateTime(xsd:date({text})))))"
            );
            (guard, value)
        }
    }
}

fn quantity(quantity: Quantity) -> String {
    match quantity {
        Quantity::Number(number) if number.is_finite() => format!("{number:e}"),
        Quantity::Number(number) => {
            let sign = if number > 0.0 { "" } else { "-" };
            format!("\"{sign}INF\"^^xsd:double")
        }
        Quantity::Time(time) => moment(time),
    }
}

fn moment(time: Moment) -> String {
    format!("\"{time}\"^^xsd:dateTime")
}

/// A term as SPARQL writes it.
fn term(term: &Term) -> String {
    match term {
        Term::Name(name) => format!("<{}>", name_iri(name)),
        Term::Iri(iri) => format!("<{}>", escaped_iri(iri)),
        // the binder lets no blank node through; a label would be a variable here
        Term::Blank(label) => format!("_:{label}"),
        Term::Literal(Literal { value, kind }) => {
            let mut out = String::from("\"");
            for c in value.chars() {
                match c {
                    '"' => out.push_str("\\\""),
                    '\\' => out.push_str("\\\\"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    c => out.push(c),
                }
            }
            out.push('"');
            let _ = match kind {
                LiteralKind::Plain => Ok(()),
                LiteralKind::Language(tag) => write!(out, "@{tag}"),
                LiteralKind::Typed(datatype) => write!(out, "^^<{}>", escaped_iri(datatype)),
            };
            out
        }
    }
}

/// What an IRI between angle brackets cannot hold, percent-encoded.
fn escaped_iri(iri: &str) -> String {
    let mut out = String::with_capacity(iri.len());
    for c in iri.chars() {
        match c {
            '<' | '>' | '"' | '{' | '}' | '|' | '\\' | '^' | '`' | '\0'..=' ' => {
                let _ = write!(out, "%{:02X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
