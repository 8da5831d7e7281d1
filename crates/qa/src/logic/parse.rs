//! Reads logical forms: GrailQA's notation, AMAR's bracketed one, and any mixture of both.
//!
//! ```text
//! form      = set | number | ( ANY set ) | ( IS is number number )
//!           | ( TABLE set measure … [( ORDER measure asc|desc )] [( SLICE from to )] )
//! set       = name | constant
//!           | ( JOIN relation set ) | ( AND set set … ) | ( OR set … ) | ( EXCEPT set set )
//!           | ( ARGMAX set measure ) | ARGMIN | ( TOP set measure k ) | BOTTOM, NTH, NTHLAST
//!           | ( is measure number ) | ( is measure measure ) | ( TC set relation constant )
//! is        = lt | le | gt | ge | eq | ne
//! measure   = way | ( HOW_MANY way [set] ) | ( SUM way measure ) | AVG, MAX, MIN, THE
//!           | ( ADD measure measure ) | SUB, MUL, DIV     where an operand may be a constant
//! number    = constant | ( COUNT set ) | ( SUM set measure ) | AVG, MAX, MIN, THE
//!           | ( ADD number number ) | SUB, MUL, DIV
//! relation  = name | ( R relation )
//! way       = relation | ( JOIN relation way )
//! name      = word | [ any text ]
//! constant  = NOW | 1994 | -3.5 | 1995-02-14 | 39^^http://… | "text" | "text"@en | "1"^^http://…
//! ```
//!
//! What can be a number in the second place of a comparison is one; `( ITS measure )` is a measure
//! there.
//!
//! Inside brackets `\` keeps the next letter as it is, inner brackets must be balanced, and spaces
//! at the ends do not count. AMAR writes relations as `[ people , person , sibling s ]`: where a
//! relation's brackets hold ` , `, it is a dot, and spaces are underscores. AMAR's `LESS THAN`,
//! `GREATER THAN`, `LESS EQUAL` and `GREATER EQUAL` are `lt`, `gt`, `le` and `ge`; its numbers with
//! a fraction, `[ "10 , 51" ]`, are text with a dot.

use std::num::NonZeroU32;
use std::str::FromStr;

use super::form::{
    Aggregate, Comparison, Constant, Extreme, Form, MAX_DEPTH, MAX_FORM_BYTES, Measure, Number,
    Operator, Place, Rank, Relation, Table, Than,
};
use super::pieces::{Piece, Reader, amar_text, fault, is_end_of_word};
use crate::error::{Error, Result};

const OPERATORS: &str = "JOIN, AND, OR, EXCEPT, ARGMAX, ARGMIN, TOP, BOTTOM, NTH, NTHLAST, lt, le, gt, ge, eq, ne, TC; at the root COUNT, SUM, AVG, MAX, MIN, THE, ADD, SUB, MUL, DIV, ANY, IS, TABLE";

impl FromStr for Form {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.len() > MAX_FORM_BYTES {
            return Err(fault(
                text,
                0,
                format!("it has more than {MAX_FORM_BYTES} bytes"),
            ));
        }
        let mut reader = Reader {
            text,
            at: 0,
            parts: 0,
        };
        let form = reader.form(0)?;
        reader.skip_space();
        if reader.at < text.len() {
            return Err(reader.fault("something follows the form"));
        }
        Ok(form)
    }
}

impl<'a> Reader<'a> {
    /// A form `depth` levels below the root.
    fn form(&mut self, depth: usize) -> Result<Form> {
        match self.piece("a form")? {
            (_, Piece::Open) => self.operator(depth),
            (from, Piece::Close) => Err(fault(
                self.text,
                from,
                "a parenthesis closes where a form should stand",
            )),
            (_, Piece::Bracketed(name, raw)) => Ok(match amar_text(raw) {
                Some(literal) => Form::Constant(Constant::Literal(literal)),
                None => Form::Name(name),
            }),
            (_, Piece::Quoted(literal)) => Ok(Form::Constant(Constant::Literal(literal))),
            (from, Piece::Word(word)) => Ok(match self.constant_of(from, word)? {
                Some(constant) => Form::Constant(constant),
                None => Form::Name(word.to_owned()),
            }),
        }
    }

    fn boxed(&mut self, depth: usize) -> Result<Box<Form>> {
        Ok(Box::new(self.form(depth)?))
    }

    fn deeper(&self, depth: usize) -> Result<()> {
        if depth >= MAX_DEPTH {
            return Err(self.fault(format!("it nests deeper than {MAX_DEPTH}")));
        }
        Ok(())
    }

    /// The word after a parenthesis.
    fn word(&mut self) -> Result<(usize, &'a str)> {
        match self.piece("an operator")? {
            (from, Piece::Word(word)) => Ok((from, word)),
            (from, _) => Err(fault(self.text, from, "an operator should stand here")),
        }
    }

    fn operator(&mut self, depth: usize) -> Result<Form> {
        self.deeper(depth)?;
        let (from, word) = self.word()?;
        let no_set = match word {
            "ANY" | "IS" => Some("a yes or no"),
            "TABLE" => Some("a table"),
            word if is_number(word) => Some("a number"),
            _ => None,
        };
        if let Some(kind) = no_set.filter(|_| depth > 0) {
            let reason = format!("`{word}` stands inside a form, and {kind} is no set");
            return Err(fault(self.text, from, reason));
        }
        let below = depth + 1;
        let form = match word {
            "JOIN" => {
                let relation = self.relation()?;
                self.form(below)?.joined(relation)
            }
            "AND" | "OR" => {
                let mut all = vec![self.form(below)?];
                // `(AND C)` is a class where a name would be an entity
                if word == "AND" && !matches!(all[0], Form::Name(_)) {
                    all.push(self.form(below)?);
                }
                while !self.closes() {
                    all.push(self.form(below)?);
                }
                if word == "AND" {
                    Form::And(all)
                } else {
                    Form::Or(all)
                }
            }
            "EXCEPT" => Form::Except(self.boxed(below)?, self.boxed(below)?),
            "ARGMAX" | "ARGMIN" | "TOP" | "BOTTOM" | "NTH" | "NTHLAST" => {
                let of = self.boxed(below)?;
                let by = self.measure(below)?;
                let extreme = match word {
                    "ARGMAX" | "TOP" | "NTH" => Extreme::Largest,
                    _ => Extreme::Smallest,
                };
                let place = match word {
                    "ARGMAX" | "ARGMIN" => Place::Best,
                    "TOP" | "BOTTOM" => Place::First(self.whole()?),
                    _ => Place::Nth(self.whole()?),
                };
                Form::Best(Rank { extreme, place }, of, by)
            }
            "lt" | "le" | "gt" | "ge" | "eq" | "ne" | "LESS" | "GREATER" => {
                let is = self.comparison(from, word)?;
                Form::Compare(is, self.measure(below)?, self.than(below)?)
            }
            "TC" => {
                let of = self.boxed(below)?;
                Form::At(of, self.relation()?, self.constant()?)
            }
            "R" => {
                return Err(fault(
                    self.text,
                    from,
                    "`R` turns a relation, and a form should stand here",
                ));
            }
            "ANY" => Form::Any(self.boxed(below)?),
            "IS" => {
                let (from, word) = self.word()?;
                let is = self.comparison(from, word)?;
                Form::Is(is, self.number(below)?, self.number(below)?)
            }
            "TABLE" => Form::Table(Box::new(self.table(below)?)),
            word if is_number(word) => Form::Number(self.number_of(from, word, below)?),
            other => {
                return Err(fault(
                    self.text,
                    from,
                    format!("`{other}` is no operator; known are {OPERATORS}"),
                ));
            }
        };
        self.close()?;
        Ok(form)
    }

    fn comparison(&mut self, from: usize, word: &str) -> Result<Comparison> {
        Ok(match word {
            "lt" => Comparison::Less,
            "le" => Comparison::AtMost,
            "gt" => Comparison::Greater,
            "ge" => Comparison::AtLeast,
            "eq" => Comparison::Equal,
            "ne" => Comparison::NotEqual,
            "LESS" | "GREATER" => match (word, self.piece("`THAN` or `EQUAL`")?) {
                ("LESS", (_, Piece::Word("THAN"))) => Comparison::Less,
                ("LESS", (_, Piece::Word("EQUAL"))) => Comparison::AtMost,
                (_, (_, Piece::Word("THAN"))) => Comparison::Greater,
                (_, (_, Piece::Word("EQUAL"))) => Comparison::AtLeast,
                (_, (at, _)) => {
                    return Err(fault(self.text, at, "`THAN` or `EQUAL` should stand here"));
                }
            },
            _ => {
                let reason = "a comparison should stand here: lt, le, gt, ge, eq or ne";
                return Err(fault(self.text, from, reason));
            }
        })
    }

    /// The operator of the expression that follows, if it is one.
    fn ahead(&self) -> Option<&'a str> {
        let rest = self.text[self.at..].trim_start().strip_prefix('(')?;
        rest.trim_start().split(is_end_of_word).next()
    }

    /// A relation, or several one after the other.
    fn way(&mut self, depth: usize) -> Result<Vec<Relation>> {
        self.deeper(depth)?;
        if self.ahead() != Some("JOIN") {
            return Ok(vec![self.relation()?]);
        }
        self.piece("`(`")?;
        self.piece("`JOIN`")?;
        let mut way = vec![self.relation()?];
        way.extend(self.way(depth + 1)?);
        self.close()?;
        Ok(way)
    }

    fn measure(&mut self, depth: usize) -> Result<Measure> {
        self.deeper(depth)?;
        let below = depth + 1;
        let Some(word) = self.ahead().filter(|w| *w == "HOW_MANY" || is_number(w)) else {
            return self.way(depth).map(Measure::Path);
        };
        self.piece("`(`")?;
        let (from, _) = self.word()?;
        let measure = if word == "HOW_MANY" {
            let path = self.way(below)?;
            let of = match self.closes() {
                true => None,
                false => Some(self.boxed(below)?),
            };
            Measure::HowMany(path, of)
        } else if let Some(aggregate) = aggregate(word) {
            let path = self.way(below)?;
            Measure::Over(aggregate, path, Box::new(self.measure(below)?))
        } else if let Some(operator) = operator(word) {
            let [a, b] = [self.operand(below)?, self.operand(below)?];
            Measure::Arithmetic(operator, Box::new(a), Box::new(b))
        } else {
            let reason = format!(
                "`{word}` gives one number, and a measure should stand here; `HOW_MANY` counts for each thing"
            );
            return Err(fault(self.text, from, reason));
        };
        self.close()?;
        Ok(measure)
    }

    /// A constant or a measure.
    fn operand(&mut self, depth: usize) -> Result<Measure> {
        let mut other = self.clone();
        if self.ahead().is_none()
            && let Ok(constant) = other.constant()
        {
            *self = other;
            return Ok(Measure::Constant(constant));
        }
        self.measure(depth)
    }

    fn number(&mut self, depth: usize) -> Result<Number> {
        self.deeper(depth)?;
        if self.ahead().is_none() {
            return self.constant().map(Number::Constant);
        }
        self.piece("`(`")?;
        let (from, word) = self.word()?;
        let number = self.number_of(from, word, depth + 1)?;
        self.close()?;
        Ok(number)
    }

    /// A number after its operator.
    fn number_of(&mut self, from: usize, word: &str, depth: usize) -> Result<Number> {
        if word == "COUNT" {
            return Ok(Number::Count(self.boxed(depth)?));
        }
        if let Some(aggregate) = aggregate(word) {
            let of = self.boxed(depth)?;
            return Ok(Number::Of(aggregate, of, self.measure(depth)?));
        }
        let Some(operator) = operator(word) else {
            let reason = format!(
                "`{word}` gives no number; COUNT, SUM, AVG, MAX, MIN, THE, ADD, SUB, MUL and DIV do"
            );
            return Err(fault(self.text, from, reason));
        };
        let [a, b] = [self.number(depth)?, self.number(depth)?];
        Ok(Number::Arithmetic(operator, Box::new(a), Box::new(b)))
    }

    /// What a measure is compared with: a number wherever it can be one.
    fn than(&mut self, depth: usize) -> Result<Than> {
        if self.ahead() == Some("ITS") {
            self.piece("`(`")?;
            self.word()?;
            let measure = self.measure(depth + 1)?;
            self.close()?;
            return Ok(Than::Measure(measure));
        }
        let mut other = self.clone();
        let no_number = match self.number(depth) {
            Ok(number) => return Ok(Than::Number(number)),
            Err(error) => error,
        };
        match other.measure(depth) {
            Ok(measure) => {
                *self = other;
                Ok(Than::Measure(measure))
            }
            Err(no_measure) if place_of(&no_measure) > place_of(&no_number) => Err(no_measure),
            Err(_) => Err(no_number),
        }
    }

    fn table(&mut self, depth: usize) -> Result<Table> {
        let mut table = Table {
            of: self.form(depth)?,
            columns: Vec::new(),
            order: None,
            slice: None,
        };
        while !self.closes() {
            match self.ahead() {
                Some("ORDER") if table.order.is_none() => {
                    self.piece("`(`")?;
                    self.word()?;
                    let by = self.measure(depth + 1)?;
                    let first = match self.word()? {
                        (_, "asc") => Extreme::Smallest,
                        (_, "desc") => Extreme::Largest,
                        (from, _) => {
                            let reason = "`asc` or `desc` should stand here";
                            return Err(fault(self.text, from, reason));
                        }
                    };
                    table.order = Some((by, first));
                    self.close()?;
                }
                Some("SLICE") if table.slice.is_none() => {
                    self.piece("`(`")?;
                    self.word()?;
                    let from = self.whole()?;
                    let to = self.whole()?;
                    if from > to {
                        return Err(self.fault("the first row stands behind the last"));
                    }
                    table.slice = Some((from, to));
                    self.close()?;
                }
                _ if table.order.is_none() && table.slice.is_none() => {
                    table.columns.push(self.measure(depth)?);
                }
                _ => return Err(self.fault("columns stand before `ORDER` and `SLICE`")),
            }
        }
        Ok(table)
    }

    /// A whole number from 1 on.
    fn whole(&mut self) -> Result<NonZeroU32> {
        let (from, piece) = self.piece("a whole number")?;
        let number = match piece {
            Piece::Word(word) => word.parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| {
            let reason = "a whole number from 1 on should stand here";
            fault(self.text, from, reason)
        })
    }
}

fn aggregate(word: &str) -> Option<Aggregate> {
    Aggregate::ALL.into_iter().find(|a| a.word() == word)
}

fn operator(word: &str) -> Option<Operator> {
    Operator::ALL.into_iter().find(|o| o.word() == word)
}

/// Whether an operator gives a number.
fn is_number(word: &str) -> bool {
    word == "COUNT" || aggregate(word).is_some() || operator(word).is_some()
}

fn place_of(error: &Error) -> usize {
    match error {
        Error::FormSyntax { at, .. } => *at,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{Literal, LiteralKind};

    use super::*;

    fn parsed(text: &str) -> Form {
        text.parse().unwrap()
    }

    #[test]
    fn both_notations_give_the_same_form() {
        let grail = "(AND (JOIN people.person.gender Male) (JOIN (R people.person.sibling_s) [Justin Bieber]))";
        let amar = "( AND ( JOIN [ people , person , gender ] [ Male ] ) ( JOIN ( R [ people , person , sibling s ] ) [ Justin Bieber ] ) )";
        assert_eq!(parsed(grail), parsed(amar));
        assert_eq!(
            parsed("( LESS THAN [ a , b ] 1994 )"),
            parsed("(lt a.b 1994)")
        );
        assert_eq!(
            parsed("(ge a.b 5^^http://www.w3.org/2001/XMLSchema#integer)"),
            parsed("(GREATER EQUAL a.b \"5\"^^xsd:integer)")
        );
    }

    #[test]
    fn ways_constants_and_odd_names_are_read() {
        let form = parsed(
            "( ARGMIN ( JOIN ( R [ film , actor , film ] ) [ X [2] ] ) ( JOIN ( R [ a , b ] ) [ c , d e ] ) )",
        );
        let Form::Best(rank, of, Measure::Path(by)) = form else {
            panic!("{form:?}")
        };
        assert_eq!(by, [Relation::new("a.b").reverse(), Relation::new("c.d_e")]);
        assert_eq!(rank, Extreme::Smallest.into());
        assert_eq!(of.names(), ["X [2]"]);
        assert_eq!(
            parsed("(JOIN r [ \"10 , 51\" ])"),
            parsed("(JOIN r \"10.51\")")
        );
        assert_eq!(parsed(r"[a\]\ ]"), Form::Name("a] ".into()));
        assert_eq!(parsed("(JOIN (R (R r)) x)"), parsed("(JOIN r x)"));
        assert_eq!(
            parsed("( JOIN [ a , b ] \"216 O [ St , \"@en ] )"),
            parsed("(JOIN a.b \"216 O St.\"@en)")
        );
        assert_eq!(
            parsed("(TC (JOIN r x) from NOW)"),
            Form::At(
                Box::new(Form::Name("x".into()).joined(Relation::new("r"))),
                Relation::new("from"),
                Constant::Now
            )
        );
        assert_eq!(
            parsed("\"hä\"@EN"),
            Form::Constant(Constant::Literal(Literal {
                value: "hä".into(),
                kind: LiteralKind::Language("en".into())
            }))
        );
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, at, reason) in [
            ("", 1, "it ends where a form should stand"),
            ("(JOIN r", 8, "it ends where a form should stand"),
            (
                "(JOIN r x",
                10,
                "it ends where a closing parenthesis should stand",
            ),
            (
                "(JOIN r x y)",
                11,
                "a closing parenthesis should stand here",
            ),
            ("(JOIN r x) y", 12, "something follows the form"),
            ("(JION r x)", 2, "`JION` is no operator"),
            ("(JOIN \"r\" x)", 7, "a relation should stand here"),
            ("(JOIN (AND r) x)", 8, "a name or `(R name)`"),
            ("(JOIN r (COUNT x))", 10, "a number is no set"),
            (
                "(AND (JOIN r x))",
                16,
                "a parenthesis closes where a form should stand",
            ),
            ("(lt r )", 7, "a number, a date"),
            ("(lt r (COUNT x)", 16, "a closing parenthesis"),
            ("(lt r (ADD 1 (JOIN a \"b\")))", 22, "a relation"),
            ("(IS 1 2)", 5, "a comparison should stand here"),
            ("(IS lt 1 (HOW_MANY r))", 11, "`HOW_MANY` gives no number"),
            ("(ARGMAX x (COUNT y))", 12, "`COUNT` gives one number"),
            ("(TOP x r 0)", 10, "a whole number from 1 on"),
            ("(NTH x r)", 9, "a whole number from 1 on"),
            ("(AND x (ANY y))", 9, "a yes or no is no set"),
            ("(COUNT (TABLE y r))", 9, "a table is no set"),
            ("(TABLE y (SLICE 1 2) r)", 22, "columns stand before"),
            ("(TABLE y (SLICE 3 2))", 20, "the first row stands behind"),
            ("(TABLE y (ORDER r up))", 19, "`asc` or `desc`"),
            ("(OR )", 5, "a parenthesis closes"),
            ("(LESS r 5)", 7, "`THAN` or `EQUAL`"),
            ("(JOIN r [x)", 9, "the bracket is not closed"),
            ("(JOIN r [ ])", 9, "the brackets are empty"),
            ("(JOIN r ])", 9, "was not opened"),
            ("(JOIN ä \"x)", 9, "the quote is not closed"),
            ("(JOIN r 5^^)", 9, "a datatype"),
            ("(JOIN r 5^^km)", 9, "a datatype"),
            ("(ANY \"4\"^^NOGu)", 9, "a datatype"),
            ("(JOIN r \"x\"@1)", 12, "a language"),
            ("(JOIN r \"x\"@en-)", 12, "a language"),
            ("(R r)", 2, "`R` turns a relation"),
            ("()", 2, "an operator should stand here"),
        ] {
            let error = text.parse::<Form>().unwrap_err();
            let Error::FormSyntax {
                at: found,
                reason: said,
            } = &error
            else {
                panic!("{error}")
            };
            assert_eq!(*found, at, "{text}: {said}");
            assert!(said.contains(reason), "{text}: {said}");
        }
    }

    #[test]
    fn what_can_be_a_number_is_one_where_both_may_stand() {
        let than = |text: &str| match parsed(text) {
            Form::Compare(_, _, than) => than,
            other => panic!("{other:?}"),
        };
        for (text, is_number) in [
            ("(lt r 5)", true),
            ("(lt r (AVG c r))", true),
            ("(lt r (ADD (COUNT c) 1))", true),
            ("(lt r (ITS (AVG c r)))", false),
            ("(lt r x)", false),
            ("(lt r (R x))", false),
            ("(lt r (JOIN x y))", false),
            ("(lt r (HOW_MANY x))", false),
            ("(lt r (ADD x 1))", false),
            ("(lt r (SUM (R x) y))", false),
            // COUNT is of a set, and the other operand is not
            ("(lt r (ADD (SUM x y) (HOW_MANY x)))", false),
        ] {
            assert_eq!(matches!(than(text), Than::Number(_)), is_number, "{text}");
            assert_eq!(parsed(text).to_string(), text);
        }
    }

    #[test]
    fn forms_without_end_are_refused() {
        let deep = format!("{}x{}", "(JOIN r ".repeat(40), ")".repeat(40));
        assert!(
            deep.parse::<Form>()
                .unwrap_err()
                .to_string()
                .contains("deeper than 32")
        );
        let way = format!("(lt {}r{} 5)", "(JOIN r ".repeat(40), ")".repeat(40));
        assert!(
            way.parse::<Form>()
                .unwrap_err()
                .to_string()
                .contains("deeper than 32")
        );
        // each level is tried as a number and then as a measure
        let level = "(lt m (ADD (SUM x (HOW_MANY p ";
        let tried = format!("{}c{}", level.repeat(7), ")) r))".repeat(7));
        assert!(tried.parse::<Form>().is_ok());
        let wide = format!("(AND{})", " x".repeat(600));
        assert!(
            wide.parse::<Form>()
                .unwrap_err()
                .to_string()
                .contains("512 parts")
        );
        let turned = format!("(JOIN {}r{} x)", "(R ".repeat(600), ")".repeat(600));
        assert!(
            turned
                .parse::<Form>()
                .unwrap_err()
                .to_string()
                .contains("512 parts")
        );
        let long = "x".repeat(MAX_FORM_BYTES + 1);
        assert!(long.parse::<Form>().is_err());
    }
}
