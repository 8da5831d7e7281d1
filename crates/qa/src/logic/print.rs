//! Writes logical forms: as GrailQA does, and as AMAR does.

use std::fmt::{self, Write};

use wherefore_graph::{Literal, LiteralKind};

use super::form::{
    Comparison, Constant, Extreme, Form, Measure, Number, Place, Rank, Relation, Table, Than,
};
use super::pieces::{is_bare_value, is_end_of_word};
use super::value::XSD;

/// How a form is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notation {
    /// `(JOIN (R people.person.sibling_s) [Justin Bieber])`: GrailQA's, with brackets around
    /// names that are no single word. Reads back as the same form.
    #[default]
    Plain,
    /// `( JOIN ( R [ people , person , sibling s ] ) [ Justin Bieber ] )`: AMAR's. A relation's
    /// spaces and underscores look the same in it.
    Bracketed,
    /// [`Notation::Plain`] with brackets around every name of an entity or class: what a model
    /// learns to write. Reads back as the same form.
    Named,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(Notation::Plain))
    }
}

/// What `Display` writes of a part of a form.
fn plain(f: &mut fmt::Formatter<'_>, write: impl FnOnce(&mut Writer<'_>)) -> fmt::Result {
    let mut out = String::new();
    write(&mut Writer {
        out: &mut out,
        notation: Notation::Plain,
    });
    f.write_str(&out)
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        plain(f, |writer| writer.relation(self))
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        plain(f, |writer| writer.constant(self))
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        plain(f, |writer| writer.measure(self))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        plain(f, |writer| writer.number(self))
    }
}

impl Form {
    /// The form in a notation; [`Notation::Plain`] is what `Display` writes.
    pub fn written(&self, notation: Notation) -> String {
        let mut out = String::new();
        Writer {
            out: &mut out,
            notation,
        }
        .form(self);
        out
    }
}

/// A name as it stands in a plain form: a word, or in brackets.
///
/// ```
/// use wherefore::logic::written_name;
/// assert_eq!(written_name("people.person.gender"), "people.person.gender");
/// assert_eq!(written_name("Lou Seal"), "[Lou Seal]");
/// assert_eq!(written_name("1994"), "[1994]");
/// ```
pub fn written_name(name: &str) -> String {
    let is_word = !name.is_empty()
        && !name.contains(is_end_of_word)
        && !name.contains("^^")
        && !name.contains('\\')
        && name != "NOW"
        && !is_bare_value(name);
    if is_word {
        return name.to_owned();
    }
    bracketed_name(name)
}

/// A name in brackets, whether it needs them or not.
///
/// ```
/// use wherefore::logic::bracketed_name;
/// assert_eq!(bracketed_name("Male"), "[Male]");
/// assert_eq!(bracketed_name("Lou Seal"), "[Lou Seal]");
/// ```
pub fn bracketed_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('[');
    escape(name, &mut out);
    out.push(']');
    out
}

/// The content of brackets: `\` before what would be read otherwise.
fn escape(name: &str, out: &mut String) {
    let last = name.chars().count().saturating_sub(1);
    // quotes at both ends would be a literal, and a comma between spaces a dot
    for (i, c) in name.chars().enumerate() {
        let at_an_end = i == 0 || i == last;
        if matches!(c, '[' | ']' | '\\' | ',') || at_an_end && (c.is_whitespace() || c == '"') {
            out.push('\\');
        }
        out.push(c);
    }
}

struct Writer<'a> {
    out: &'a mut String,
    notation: Notation,
}

impl Writer<'_> {
    fn open(&mut self, operator: &str) {
        self.out.push('(');
        if self.notation == Notation::Bracketed {
            self.out.push(' ');
        }
        self.out.push_str(operator);
        self.out.push(' ');
    }

    fn close(&mut self) {
        if self.notation == Notation::Bracketed {
            self.out.push(' ');
        }
        self.out.push(')');
    }

    fn form(&mut self, form: &Form) {
        match form {
            Form::Name(name) => match self.notation {
                Notation::Plain => self.out.push_str(&written_name(name)),
                Notation::Bracketed => self.bracketed(name),
                Notation::Named => self.out.push_str(&bracketed_name(name)),
            },
            Form::Constant(constant) => self.constant(constant),
            Form::Join(relation, of) => {
                self.open("JOIN");
                self.relation(relation);
                self.out.push(' ');
                self.form(of);
                self.close();
            }
            Form::And(all) => self.each("AND", all, Self::form),
            Form::Or(all) => self.each("OR", all, Self::form),
            Form::Except(of, not) => {
                self.open("EXCEPT");
                self.form(of);
                self.out.push(' ');
                self.form(not);
                self.close();
            }
            Form::Best(Rank { extreme, place }, of, by) => {
                self.open(match (place, extreme) {
                    (Place::Best, Extreme::Largest) => "ARGMAX",
                    (Place::Best, Extreme::Smallest) => "ARGMIN",
                    (Place::First(_), Extreme::Largest) => "TOP",
                    (Place::First(_), Extreme::Smallest) => "BOTTOM",
                    (Place::Nth(_), Extreme::Largest) => "NTH",
                    (Place::Nth(_), Extreme::Smallest) => "NTHLAST",
                });
                self.form(of);
                self.out.push(' ');
                self.measure(by);
                if let Place::First(k) | Place::Nth(k) = place {
                    let _ = write!(self.out, " {k}");
                }
                self.close();
            }
            Form::Compare(is, by, than) => {
                self.open(self.comparison(*is));
                self.measure(by);
                self.out.push(' ');
                match than {
                    Than::Number(number) => self.number(number),
                    Than::Measure(measure) if measure.reads_as_number() => {
                        self.open("ITS");
                        self.measure(measure);
                        self.close();
                    }
                    Than::Measure(measure) => self.measure(measure),
                }
                self.close();
            }
            Form::At(of, relation, time) => {
                self.open("TC");
                self.form(of);
                self.out.push(' ');
                self.relation(relation);
                self.out.push(' ');
                self.constant(time);
                self.close();
            }
            Form::Number(number) => self.number(number),
            Form::Any(of) => {
                self.open("ANY");
                self.form(of);
                self.close();
            }
            Form::Is(is, a, b) => {
                self.open("IS");
                self.out.push_str(self.comparison(*is));
                for number in [a, b] {
                    self.out.push(' ');
                    self.number(number);
                }
                self.close();
            }
            Form::Table(table) => self.table(table),
        }
    }

    /// An operator and its operands, which are all alike.
    fn each<T>(&mut self, operator: &str, all: &[T], write: fn(&mut Self, &T)) {
        self.open(operator);
        for (i, operand) in all.iter().enumerate() {
            if i > 0 {
                self.out.push(' ');
            }
            write(self, operand);
        }
        self.close();
    }

    fn comparison(&self, is: Comparison) -> &'static str {
        match (self.notation, is) {
            (_, Comparison::Equal) => "eq",
            (_, Comparison::NotEqual) => "ne",
            (Notation::Plain | Notation::Named, Comparison::Less) => "lt",
            (Notation::Plain | Notation::Named, Comparison::AtMost) => "le",
            (Notation::Plain | Notation::Named, Comparison::Greater) => "gt",
            (Notation::Plain | Notation::Named, Comparison::AtLeast) => "ge",
            (Notation::Bracketed, Comparison::Less) => "LESS THAN",
            (Notation::Bracketed, Comparison::AtMost) => "LESS EQUAL",
            (Notation::Bracketed, Comparison::Greater) => "GREATER THAN",
            (Notation::Bracketed, Comparison::AtLeast) => "GREATER EQUAL",
        }
    }

    fn measure(&mut self, measure: &Measure) {
        match measure {
            Measure::Path(path) => self.way(path),
            Measure::HowMany(path, of) => {
                self.open("HOW_MANY");
                self.way(path);
                if let Some(of) = of {
                    self.out.push(' ');
                    self.form(of);
                }
                self.close();
            }
            Measure::Over(aggregate, path, by) => {
                self.open(aggregate.word());
                self.way(path);
                self.out.push(' ');
                self.measure(by);
                self.close();
            }
            Measure::Arithmetic(operator, a, b) => {
                self.each(operator.word(), &[a, b], |w, m| w.measure(m));
            }
            Measure::Constant(constant) => self.constant(constant),
        }
    }

    fn number(&mut self, number: &Number) {
        match number {
            Number::Constant(constant) => self.constant(constant),
            Number::Count(of) => {
                self.open("COUNT");
                self.form(of);
                self.close();
            }
            Number::Of(aggregate, of, by) => {
                self.open(aggregate.word());
                self.form(of);
                self.out.push(' ');
                self.measure(by);
                self.close();
            }
            Number::Arithmetic(operator, a, b) => {
                self.each(operator.word(), &[a, b], |w, n| w.number(n));
            }
        }
    }

    fn table(&mut self, table: &Table) {
        self.open("TABLE");
        self.form(&table.of);
        for column in &table.columns {
            self.out.push(' ');
            self.measure(column);
        }
        if let Some((by, first)) = &table.order {
            self.out.push(' ');
            self.open("ORDER");
            self.measure(by);
            self.out.push_str(match first {
                Extreme::Largest => " desc",
                Extreme::Smallest => " asc",
            });
            self.close();
        }
        if let Some((from, to)) = table.slice {
            self.out.push(' ');
            self.open("SLICE");
            let _ = write!(self.out, "{from} {to}");
            self.close();
        }
        self.close();
    }

    fn way(&mut self, way: &[Relation]) {
        match way {
            [] => {}
            [last] => self.relation(last),
            [first, rest @ ..] => {
                self.open("JOIN");
                self.relation(first);
                self.out.push(' ');
                self.way(rest);
                self.close();
            }
        }
    }

    fn relation(&mut self, relation: &Relation) {
        if relation.reversed {
            self.open("R");
        }
        match self.notation {
            Notation::Plain | Notation::Named => {
                self.out.push_str(&written_name(&relation.name));
            }
            Notation::Bracketed => {
                self.out.push_str("[ ");
                let parts = relation.name.replace('_', " ").replace('.', " , ");
                self.out.push_str(&parts);
                self.out.push_str(" ]");
            }
        }
        if relation.reversed {
            self.close();
        }
    }

    fn bracketed(&mut self, name: &str) {
        self.out.push_str("[ ");
        let mut depth = 0i32;
        let balanced = name.chars().all(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth >= 0 && c != '\\'
        }) && depth == 0;
        let trimmed = name.trim() == name && !(name.starts_with('"') && name.ends_with('"'));
        if balanced && trimmed {
            self.out.push_str(name);
        } else {
            escape(name, self.out);
        }
        self.out.push_str(" ]");
    }

    fn constant(&mut self, constant: &Constant) {
        match constant {
            Constant::Now => self.out.push_str("NOW"),
            Constant::Bare(text) => self.out.push_str(text),
            Constant::Literal(Literal { value, kind }) => {
                let fraction =
                    *kind == LiteralKind::Plain && value.contains('.') && is_bare_value(value);
                if self.notation == Notation::Bracketed && fraction {
                    let _ = write!(self.out, "[ \"{}\" ]", value.replace('.', " , "));
                    return;
                }
                self.out.push('"');
                for c in value.chars() {
                    match c {
                        '"' => self.out.push_str("\\\""),
                        '\\' => self.out.push_str("\\\\"),
                        '\n' => self.out.push_str("\\n"),
                        '\r' => self.out.push_str("\\r"),
                        '\t' => self.out.push_str("\\t"),
                        c => self.out.push(c),
                    }
                }
                self.out.push('"');
                match kind {
                    LiteralKind::Plain => {}
                    LiteralKind::Language(tag) => {
                        let _ = write!(self.out, "@{tag}");
                    }
                    LiteralKind::Typed(datatype) => {
                        let _ = match datatype.strip_prefix(XSD) {
                            Some(local) => write!(self.out, "^^xsd:{local}"),
                            None => write!(self.out, "^^{datatype}"),
                        };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any form, with names and constants of every kind.
    pub(crate) fn any_form() -> impl Strategy<Value = Form> {
        let name = prop_oneof![
            "[a-z.]{1,6}",
            "(?s:.{1,8})",
            "[0-9]{1,4}",
            Just("NOW".into()),
            "[\\[\\], \"\\\\]{1,5}"
        ];
        let relation =
            (name.clone(), any::<bool>()).prop_map(|(name, reversed)| Relation { name, reversed });
        let typed = prop_oneof![
            Just(format!("{XSD}date")),
            Just("http://example.org/km".to_owned()),
        ];
        let constant = prop_oneof![
            Just(Constant::Now),
            (-3000i32..3000).prop_map(|n| Constant::Bare(n.to_string())),
            Just(Constant::Bare("1995-02-14".into())),
            ("(?s:.{0,6})", typed).prop_map(|(value, datatype)| Constant::Literal(Literal {
                value,
                kind: LiteralKind::Typed(datatype),
            })),
            "(?s:.{0,6})".prop_map(|value| Constant::Literal(Literal {
                value,
                kind: LiteralKind::Plain,
            })),
            "(?s:.{0,6})".prop_map(|value| Constant::Literal(Literal {
                value,
                kind: LiteralKind::Language("en-gb".into()),
            })),
        ];
        let way = prop::collection::vec(relation.clone(), 1..4);
        let leaf = prop_oneof![
            name.prop_map(Form::Name),
            constant.clone().prop_map(Form::Constant)
        ];
        let is = prop_oneof![
            Just(Comparison::Less),
            Just(Comparison::AtMost),
            Just(Comparison::Greater),
            Just(Comparison::AtLeast)
        ];
        let set = leaf.prop_recursive(4, 24, 3, move |inner| {
            let extreme = prop_oneof![Just(Extreme::Largest), Just(Extreme::Smallest)];
            prop_oneof![
                (relation.clone(), inner.clone()).prop_map(|(r, of)| of.joined(r)),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Form::And),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Form::Or),
                (extreme, inner.clone(), way.clone()).prop_map(|(e, of, by)| Form::Best(
                    e.into(),
                    Box::new(of),
                    by.into()
                )),
                (is.clone(), way.clone(), constant.clone())
                    .prop_map(|(is, by, than)| Form::Compare(is, by.into(), than.into())),
                (inner, relation.clone(), constant.clone()).prop_map(|(of, r, t)| Form::At(
                    Box::new(of),
                    r,
                    t
                )),
            ]
        });
        (any::<bool>(), set).prop_map(|(count, set)| match count {
            true => set.counted(),
            false => set,
        })
    }

    #[test]
    fn amars_notation_is_written_as_published() {
        for text in [
            "( AND ( LESS THAN [ location , country , iso numeric ] 498 ) ( JOIN ( R [ location , location , contains ] ) [ Eastern Europe ] ) )",
            "( JOIN [ time , time zone , dst offset from utc ] [ \"-3 , 0\" ] )",
            "( ARGMIN ( JOIN [ a , b ] [ My Life [Abridged] [Audible] ] ) ( JOIN [ a , c d ] [ e , f ] ) )",
            "( JOIN [ award , award nomination , notes description ] \"Based on the book\"@en )",
            "( TC ( JOIN [ a , b ] [ Harper Lee, Jr. ] ) [ a , from ] NOW )",
        ] {
            let form: Form = text.parse().unwrap();
            assert_eq!(form.written(Notation::Bracketed), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(form in any_form()) {
            let text = form.to_string();
            prop_assert_eq!(text.parse::<Form>().map_err(|e| e.to_string()), Ok(form.clone()), "{}", text);
            let normal = form.normal();
            prop_assert_eq!(normal.normal(), normal.clone());
            prop_assert_eq!(normal.to_string().parse::<Form>().unwrap(), normal);
        }

        #[test]
        fn no_text_brings_the_reader_down(text in "(?s:.{0,40})|[()\\[\\]\"JOINARab ^\\\\0-9]{0,40}") {
            let _ = text.parse::<Form>();
        }
    }
}
