//! A form as SPARQL.
//!
//! ```text
//! (JOIN r S)      ?x r ?y . S on ?y                     (JOIN (R r) S)   ?y r ?x . S on ?y
//! (AND S T)       S on ?x . T on ?x                     name             VALUES ?x { … }
//! (OR S T)        { S on ?x } UNION { T on ?x }
//! (ARGMAX S p)    S on ?x . ?x p ?v . { SELECT (MAX(value) AS ?best) { S on ?z . ?z p ?w } }
//!                 FILTER(value(?v) = ?best)
//! (TC S r t)      S on ?x . FILTER(no beginning, or one by t) FILTER(no end, or one from t on)
//! (EXCEPT S T)    S on ?x . MINUS { T on ?x }
//! (TOP S m k)     S on ?x . m on ?x gives ?v . FILTER(?v >= the least of the k best values)
//! (HOW_MANY p)    OPTIONAL { SELECT ?x (COUNT(DISTINCT ?y) AS ?n) { ?x p ?y } GROUP BY ?x }, or 0
//! (SUM p m)       { SELECT ?x (SUM(?v) AS ?n) { distinct ?x ?y ?v: ?x p ?y . m on ?y gives ?v } GROUP BY ?x }
//! (ADD m m')      m on ?x gives ?a . m' on ?x gives ?b . BIND(?a + ?b AS ?v) FILTER(?v is finite)
//! (ANY S)         ASK { S on ?x }                       (TABLE S m)      SELECT ?x ?column1 { S on ?x . OPTIONAL { m on ?x } }
//! ```
//!
//! What holds for things that the graph says nothing of (`(lt (HOW_MANY r) 5)`) comes after what
//! else is known of ?x, or else after a pattern that everything matches.
//!
//! The value of a term is what [`super::value`] says: `xsd:double` for numbers, and for times an
//! `xsd:dateTime` that shorter dates are filled up to. Names of tables, which SPARQL sees as
//! `name:` IRIs, are read where the relation itself is such a name.

use std::fmt::Write;

use wherefore_graph::sparql::{name_iri, writable_iri};
use wherefore_graph::{EntityId, Literal, LiteralKind, RelationId, Term};

use super::form::{Aggregate, Comparison, Extreme, Operator, Place, Rank};
use super::plan::{Domain, Measure, Members, Node, Plan, Root, Set, Table, Way, node};
use super::value::{Moment, Quantity, Sense, TEMPORAL};
use crate::error::{Error, Result};

/// The longest query, in bytes. An extreme stands in it twice, so that extremes of extremes double
/// its length each time.
pub const MAX_SPARQL_BYTES: usize = 1 << 20;

impl Plan {
    /// The query; a comment that says so where it would be longer than [`MAX_SPARQL_BYTES`]. A
    /// set is given as `?x`, a `COUNT` as `?count`, any other number as `?number`, yes or no by
    /// `ASK`; a table is `?x` and a variable for each column, `?column1` and so on, with a row for each
    /// combination of what stands in the cells.
    pub fn sparql(&self) -> String {
        self.query().unwrap_or_else(|error| format!("# {error}"))
    }

    /// The query, as [`Plan::sparql`]; an error where it is too long.
    pub fn query(&self) -> Result<String> {
        match &self.root {
            Root::Set(set) => members_query(set),
            Root::Number(Measure::Count(Domain::Members(set))) => {
                written("SELECT (COUNT(DISTINCT ?x) AS ?count)", |w| {
                    w.whole("x", set);
                })
            }
            Root::Number(number) => written("SELECT ?number", |w| {
                let value = w.measured("x", number, true);
                w.line(&format!("BIND({value} AS ?number)"));
            }),
            Root::Any(set) => written("ASK", |w| w.whole("x", set)),
            Root::Is(is, a, b) => written("ASK", |w| {
                let [a, b] = [a, b].map(|number| w.measured("x", number, true));
                w.line(&format!("FILTER({a} {} {b})", sign(*is)));
            }),
            Root::Table(table) => {
                let columns: String = (1..=table.columns.len())
                    .map(|i| format!(" ?column{i}"))
                    .collect();
                let head = format!("SELECT ?x{columns}");
                Ok(written(&head, |w| w.table(table))? + &order_of(table))
            }
        }
    }
}

/// The query for the members of a set, as `?x`.
pub(super) fn members_query(set: &Set) -> Result<String> {
    written("SELECT DISTINCT ?x", |w| w.whole("x", set))
}

/// A step that a query takes from a variable.
pub(super) struct Taken {
    /// The part of the plan that takes it.
    pub(super) by: Node,
    pub(super) from: String,
    pub(super) relation: RelationId,
    pub(super) reversed: bool,
    pub(super) to: End,
}

/// Where a step ends.
pub(super) enum End {
    Variable(String),
    Entity(EntityId),
}

/// The query for the members of a set and the steps by which they are such; none where no step is
/// taken by all, or where it is too long. What is one of several ways, or must not be, is no step.
pub(super) fn steps_query(set: &Set) -> Option<(String, Vec<Taken>)> {
    let mut writer = Writer {
        depth: 1,
        ..Writer::default()
    };
    writer.whole("x", set);
    if writer.is_full() || writer.taken.is_empty() {
        return None;
    }
    let ends = writer.taken.iter().filter_map(|step| match &step.to {
        End::Variable(name) => Some(format!(" ?{name}")),
        End::Entity(_) => None,
    });
    let ends: String = ends.collect();
    let query = format!("SELECT DISTINCT ?x{ends} WHERE {{\n{}}}", writer.out);
    Some((query, writer.taken))
}

fn written(head: &str, write: impl FnOnce(&mut Writer)) -> Result<String> {
    let mut writer = Writer {
        depth: 1,
        ..Writer::default()
    };
    write(&mut writer);
    if writer.is_full() {
        return Err(Error::FormTooLong {
            limit: MAX_SPARQL_BYTES,
        });
    }
    Ok(format!("{head} WHERE {{\n{}}}", writer.out))
}

/// How the rows of a table are ordered.
fn order_of(table: &Table) -> String {
    match &table.order {
        Some((_, Extreme::Largest)) => " ORDER BY (!BOUND(?order)) DESC(?order) ?x".into(),
        Some((_, Extreme::Smallest)) => " ORDER BY (!BOUND(?order)) ?order ?x".into(),
        None => " ORDER BY ?x".into(),
    }
}

#[derive(Default)]
struct Writer {
    out: String,
    depth: usize,
    fresh: usize,
    /// Bytes of all lines, of those too that are no longer written.
    bytes: usize,
    /// Steps that every member takes.
    taken: Vec<Taken>,
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

    /// Lines between others.
    fn within(&mut self, before: &str, write: impl FnOnce(&mut Self), after: &str) {
        if self.is_full() {
            return;
        }
        self.line(before);
        self.depth += 1;
        write(self);
        self.depth -= 1;
        self.line(after);
    }

    /// A set by itself.
    fn whole(&mut self, x: &str, set: &Set) {
        self.set(x, set, false);
    }

    /// A set; whether something else says already what `x` may be.
    fn set(&mut self, x: &str, set: &Set, known: bool) {
        if self.is_full() {
            return;
        }
        match set {
            Set::Of(members) => self.values(x, members),
            Set::Instances(ways, class) => {
                let paths: Vec<String> = ways.iter().map(|way| term(&way.term)).collect();
                let end = self.members("c", class, false);
                if let [way] = ways.as_slice() {
                    self.takes(set, x, way, &end, class);
                }
                self.line(&format!("?{x} {} {end} .", paths.join("|")));
            }
            Set::Join(way, of) => {
                if let Set::Of(members) = &**of {
                    let y = self.members("y", members, way.reversed);
                    self.takes(set, x, way, &y, members);
                    self.triple(&format!("?{x}"), way, &y);
                } else {
                    let y = format!("?{}", self.variable("y"));
                    self.takes(set, x, way, &y, &Members::default());
                    self.triple(&format!("?{x}"), way, &y);
                    self.set(&y[1..], of, true);
                }
            }
            Set::And(all) => {
                let (open, closed): (Vec<&Set>, Vec<&Set>) =
                    all.iter().partition(|set| set.is_open());
                for (i, set) in closed.into_iter().chain(open).enumerate() {
                    self.set(x, set, known || i > 0);
                }
            }
            Set::Or(all) => {
                for (i, set) in all.iter().enumerate() {
                    let before = if i == 0 { "{" } else { "UNION {" };
                    self.within(before, |w| w.whole(x, set), "}");
                }
            }
            Set::Except(of, not) => {
                self.set(x, of, known);
                let minus = |w: &mut Self| {
                    if not.is_open() {
                        w.whole(x, of);
                    }
                    w.set(x, not, true);
                };
                self.within("MINUS {", minus, "}");
            }
            Set::Compare { is, by, than } => {
                if set.is_open() && !known {
                    let [r, y] = [self.variable("r"), self.variable("y")];
                    self.line(&format!("{{ ?{x} ?{r} ?{y} }} UNION {{ ?{y} ?{r} ?{x} }}"));
                }
                let strict = matches!((by, than), (Measure::Path(..), Measure::Constant(_)));
                let [by, than] = self.both(x, [by, than], !strict);
                self.line(&format!("FILTER({by} {} {than})", sign(*is)));
            }
            Set::Best { rank, among, by } => {
                self.set(x, among, known);
                let value = self.measured(x, by, true);
                self.rank(&value, *rank, among, by);
            }
            Set::At {
                set,
                start,
                end,
                first,
                last,
            } => {
                self.set(x, set, known);
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

    /// Notes a step that every member takes, to a variable or the only one of `members`.
    fn takes(&mut self, by: &Set, x: &str, way: &Way, y: &str, members: &Members) {
        let to = match (y.strip_prefix('?'), members.ids.as_slice()) {
            (Some(name), _) => End::Variable(name.to_owned()),
            (None, [one]) => End::Entity(*one),
            (None, _) => return,
        };
        if let (1, Some(relation)) = (self.depth, way.relation) {
            self.taken.push(Taken {
                by: node(by),
                from: x.to_owned(),
                relation,
                reversed: way.reversed,
                to,
            });
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
        let at = self.variable("v");
        self.path(x, by, &at);
        let names = by.last().is_some_and(is_name);
        let (guard, value) = expression(&at, sense, names);
        let bound = self.variable("n");
        self.line(&format!("FILTER({guard})"));
        self.line(&format!("BIND({value} AS ?{bound})"));
        bound
    }

    /// The value by a measure, as an expression: as it stands, or as extremes order it, where a
    /// time without a zone is one in UTC.
    fn measured(&mut self, x: &str, measure: &Measure, ordered: bool) -> String {
        if self.is_full() {
            return String::new();
        }
        match measure {
            Measure::Constant(constant) => quantity(*constant, ordered),
            Measure::Path(by, sense) => {
                let value = self.valued(x, by, *sense);
                if !ordered || *sense == Sense::Number {
                    return format!("?{value}");
                }
                self.bound(&format!(
                    "IF(TZ(?{value}) = \"\", xsd:dateTime(CONCAT(STR(?{value}), \"Z\")), ?{value})"
                ))
            }
            Measure::Count(Domain::Members(set)) => {
                let [z, count] = [self.variable("z"), self.variable("count")];
                let before = format!("{{ SELECT (COUNT(DISTINCT ?{z}) AS ?{count}) WHERE {{");
                self.within(&before, |w| w.whole(&z, set), "} }");
                self.bound(&format!("xsd:double(?{count})"))
            }
            Measure::Count(Domain::Reached(ways, set)) => {
                let [y, count] = [self.variable("y"), self.variable("count")];
                let before =
                    format!("OPTIONAL {{ SELECT ?{x} (COUNT(DISTINCT ?{y}) AS ?{count}) WHERE {{");
                let counted = |w: &mut Self| {
                    w.path(x, ways, &y);
                    if let Some(set) = set {
                        w.set(&y, set, true);
                    }
                };
                self.within(&before, counted, &format!("}} GROUP BY ?{x} }}"));
                self.bound(&format!("COALESCE(xsd:double(?{count}), 0e0)"))
            }
            Measure::Of(aggregate, domain, by) => self.aggregated(x, *aggregate, domain, by),
            Measure::Arithmetic(operator, a, b) => {
                let [a, b] = self.both(x, [a, b], ordered);
                let sign = match operator {
                    Operator::Add => '+',
                    Operator::Subtract => '-',
                    Operator::Multiply => '*',
                    Operator::Divide => '/',
                };
                // no negative zero
                let value = self.bound(&format!("{a} {sign} {b} + 0e0"));
                self.finite(&value);
                value
            }
        }
    }

    /// Two measures; first what says of which things they are.
    fn both(&mut self, x: &str, [a, b]: [&Measure; 2], ordered: bool) -> [String; 2] {
        if a.is_open() && !b.is_open() {
            let b = self.measured(x, b, ordered);
            return [self.measured(x, a, ordered), b];
        }
        [a, b].map(|measure| self.measured(x, measure, ordered))
    }

    fn aggregated(
        &mut self,
        x: &str,
        aggregate: Aggregate,
        domain: &Domain,
        by: &Measure,
    ) -> String {
        let [y, value, all] = ["y", "v", "n"].map(|prefix| self.variable(prefix));
        let (function, having) = match aggregate {
            Aggregate::Sum => ("SUM", String::new()),
            Aggregate::Average => ("AVG", String::new()),
            Aggregate::Largest => ("MAX", String::new()),
            Aggregate::Smallest => ("MIN", String::new()),
            Aggregate::Only => ("MIN", format!(" && MIN(?{value}) = MAX(?{value})")),
        };
        let (of, group) = match domain {
            Domain::Reached(..) => (format!("?{x} "), format!(" GROUP BY ?{x}")),
            Domain::Members(_) => (String::new(), String::new()),
        };
        let before = format!(
            "{{ SELECT {of}({function}(?{value}) AS ?{all}) WHERE {{ SELECT DISTINCT {of}?{y} ?{value} WHERE {{"
        );
        let values = |w: &mut Self| {
            match domain {
                Domain::Members(set) => w.whole(&y, set),
                Domain::Reached(ways, set) => {
                    w.path(x, ways, &y);
                    if let Some(set) = set {
                        w.set(&y, set, true);
                    }
                }
            }
            w.rated(&y, by, &value);
        };
        // of nothing there is no sum
        let after = format!("}} }}{group} HAVING(COUNT(?{value}) > 0{having}) }}");
        self.within(&before, values, &after);
        let all = format!("?{all}");
        if aggregate.adds() {
            self.finite(&all);
        }
        all
    }

    /// Binds a value that there is.
    fn rated(&mut self, x: &str, by: &Measure, value: &str) {
        let own = self.measured(x, by, true);
        self.line(&format!("BIND({own} AS ?{value})"));
        self.line(&format!("FILTER(BOUND(?{value}))"));
    }

    fn finite(&mut self, value: &str) {
        self.line(&format!("FILTER(ABS({value}) <= {:e})", f64::MAX));
    }

    fn bound(&mut self, expression: &str) -> String {
        let bound = self.variable("n");
        self.line(&format!("BIND({expression} AS ?{bound})"));
        format!("?{bound}")
    }

    /// Keeps what has a value in the places that are asked for.
    fn rank(&mut self, value: &str, rank: Rank, among: &Set, by: &Measure) {
        let [best, z, rated, each] = ["best", "z", "v", "n"].map(|prefix| self.variable(prefix));
        let (most, least, order, sign) = match rank.extreme {
            Extreme::Largest => ("MAX", "MIN", "DESC", ">="),
            Extreme::Smallest => ("MIN", "MAX", "ASC", "<="),
        };
        let (before, after, sign) = match rank.place {
            Place::Best => (
                format!("{{ SELECT ({most}(?{rated}) AS ?{best}) WHERE {{"),
                "} }".to_owned(),
                "=",
            ),
            Place::First(k) => (
                format!(
                    "{{ SELECT ({least}(?{each}) AS ?{best}) WHERE {{ SELECT ?{z} ({most}(?{rated}) AS ?{each}) WHERE {{"
                ),
                format!("}} GROUP BY ?{z} ORDER BY {order}(?{each}) LIMIT {k} }} }}"),
                sign,
            ),
            Place::Nth(k) => (
                format!("{{ SELECT DISTINCT (?{rated} AS ?{best}) WHERE {{"),
                format!(
                    "}} ORDER BY {order}(?{best}) LIMIT 1 OFFSET {} }}",
                    k.get() - 1
                ),
                "=",
            ),
        };
        let rivals = |w: &mut Self| {
            w.whole(&z, among);
            w.rated(&z, by, &rated);
        };
        self.within(&before, rivals, &after);
        self.line(&format!("FILTER({value} {sign} ?{best})"));
    }

    fn table(&mut self, table: &Table) {
        let slice = match table.slice {
            Some((before, many)) => format!(" LIMIT {many} OFFSET {before}"),
            None => String::new(),
        };
        // what holds where nothing is known needs the member itself
        let optional = |w: &mut Self, measure: &Measure, value: &str| {
            let inside = |w: &mut Self| {
                if measure.is_open() {
                    w.whole("x", &table.of);
                }
                match measure {
                    Measure::Path(ways, _) if value != "order_value" => w.path("x", ways, value),
                    measure => w.rated("x", measure, value),
                }
            };
            w.within("OPTIONAL {", inside, "}");
        };
        let members = |w: &mut Self| {
            w.whole("x", &table.of);
            if let Some((by, _)) = &table.order {
                optional(w, by, "order_value");
            }
        };
        let order = order_of(table);
        match &table.order {
            None => {
                self.within(
                    "{ SELECT DISTINCT ?x WHERE {",
                    members,
                    &format!("}}{order}{slice} }}"),
                );
            }
            Some((_, extreme)) => {
                let function = match extreme {
                    Extreme::Largest => "MAX",
                    Extreme::Smallest => "MIN",
                };
                let before = format!("{{ SELECT ?x ({function}(?order_value) AS ?order) WHERE {{");
                self.within(
                    &before,
                    members,
                    &format!("}} GROUP BY ?x{order}{slice} }}"),
                );
            }
        }
        for (i, column) in table.columns.iter().enumerate() {
            optional(self, &column.measure, &format!("column{}", i + 1));
        }
    }

    /// A path from one variable to another.
    fn path(&mut self, x: &str, ways: &[Way], end: &str) {
        let mut at = x.to_owned();
        for (i, way) in ways.iter().enumerate() {
            let next = match i + 1 == ways.len() {
                true => end.to_owned(),
                false => self.variable("v"),
            };
            self.triple(&format!("?{at}"), way, &format!("?{next}"));
            at = next;
        }
    }
}

fn is_name(way: &Way) -> bool {
    matches!(way.term, Term::Name(_))
}

fn sign(is: Comparison) -> &'static str {
    match is {
        Comparison::Less => "<",
        Comparison::AtMost => "<=",
        Comparison::Greater => ">",
        Comparison::AtLeast => ">=",
        Comparison::Equal => "=",
        Comparison::NotEqual => "!=",
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

/// A constant; in UTC where extremes order it and it has no zone.
fn quantity(quantity: Quantity, ordered: bool) -> String {
    match quantity {
        Quantity::Number(number) if number.is_finite() => format!("{number:e}"),
        Quantity::Number(number) => {
            let sign = if number > 0.0 { "" } else { "-" };
            format!("\"{sign}INF\"^^xsd:double")
        }
        Quantity::Time(time) if ordered => moment(time.in_utc()),
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
        Term::Iri(iri) => format!("<{}>", writable_iri(iri)),
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
                LiteralKind::Typed(datatype) => write!(out, "^^<{}>", writable_iri(datatype)),
            };
            out
        }
    }
}
