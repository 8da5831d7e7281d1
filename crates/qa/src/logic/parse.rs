//! Reads logical forms: GrailQA's notation, AMAR's bracketed one, and any mixture of both.
//!
//! ```text
//! form      = name | constant
//!           | ( JOIN relation form ) | ( AND form form … ) | ( OR form form … ) | ( COUNT form )
//!           | ( ARGMAX form way ) | ( ARGMIN form way )
//!           | ( lt way constant ) | … le, gt, ge | ( TC form relation constant )
//! relation  = name | ( R relation )
//! way       = relation | ( JOIN relation way )
//! name      = word | [ any text ]
//! constant  = NOW | 1994 | -3.5 | 1995-02-14 | 39^^http://… | "text" | "text"@en | "1"^^http://…
//! ```
//!
//! Inside brackets `\` keeps the next letter as it is, inner brackets must be balanced, and spaces
//! at the ends do not count. AMAR writes relations as `[ people , person , sibling s ]`: where a
//! relation's brackets hold ` , `, it is a dot, and spaces are underscores. AMAR's `LESS THAN`,
//! `GREATER THAN`, `LESS EQUAL` and `GREATER EQUAL` are `lt`, `gt`, `le` and `ge`; its numbers with
//! a fraction, `[ "10 , 51" ]`, are text with a dot.

use std::str::FromStr;

use wherefore_graph::{Literal, LiteralKind};

use super::form::{
    Comparison, Constant, Extreme, Form, MAX_DEPTH, MAX_FORM_BYTES, MAX_PARTS, Relation,
};
use super::value::{Value, XSD};
use crate::error::{Error, Result};

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

fn fault(text: &str, at: usize, reason: impl Into<String>) -> Error {
    let before = text.get(..at).unwrap_or(text);
    Error::FormSyntax {
        at: before.chars().count() + 1,
        reason: reason.into(),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    parts: usize,
}

/// A word, with where it began.
enum Piece<'a> {
    Open,
    Close,
    Word(&'a str),
    /// The content of brackets, unescaped, and as it is written.
    Bracketed(String, &'a str),
    Quoted(Literal),
}

impl<'a> Reader<'a> {
    fn fault(&self, reason: impl Into<String>) -> Error {
        fault(self.text, self.at, reason)
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
    }

    /// The next piece and where it begins.
    fn piece(&mut self, wanted: &str) -> Result<(usize, Piece<'a>)> {
        self.skip_space();
        let from = self.at;
        let rest = &self.text[from..];
        let piece = match rest.chars().next() {
            None => return Err(self.fault(format!("it ends where {wanted} should stand"))),
            Some('(') => {
                self.at += 1;
                Piece::Open
            }
            Some(')') => {
                self.at += 1;
                Piece::Close
            }
            Some('[') => {
                let content = self.bracketed()?;
                Piece::Bracketed(content, self.text[from + 1..self.at - 1].trim())
            }
            Some(']') => return Err(self.fault("a bracket closes that was not opened")),
            Some('"') => Piece::Quoted(self.quoted()?),
            Some(_) => {
                let end = rest.find(is_end_of_word).unwrap_or(rest.len());
                self.at += end;
                Piece::Word(&rest[..end])
            }
        };
        self.parts += usize::from(!matches!(piece, Piece::Open | Piece::Close));
        if self.parts > MAX_PARTS {
            return Err(self.fault(format!("it has more than {MAX_PARTS} parts")));
        }
        Ok((from, piece))
    }

    /// The content of brackets, spaces at its ends cut.
    fn bracketed(&mut self) -> Result<String> {
        let from = self.at;
        let mut out = String::new();
        // up to here the content is kept even if it is space
        let mut kept = 0;
        let mut depth = 0;
        let mut chars = self.text[from..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => {
                    let Some((_, next)) = chars.next() else { break };
                    out.push(next);
                    kept = out.len();
                }
                '[' => {
                    depth += 1;
                    if depth > 1 {
                        out.push(c);
                    }
                }
                ']' if depth == 1 => {
                    self.at = from + at + 1;
                    let end = kept.max(out.trim_end().len());
                    out.truncate(end);
                    if out.is_empty() {
                        return Err(fault(self.text, from, "the brackets are empty"));
                    }
                    return Ok(out);
                }
                ']' => {
                    depth -= 1;
                    out.push(c);
                }
                c if out.is_empty() && c.is_whitespace() => {}
                c => out.push(c),
            }
        }
        Err(fault(self.text, from, "the bracket is not closed"))
    }

    fn quoted(&mut self) -> Result<Literal> {
        let from = self.at;
        let mut value = String::new();
        let mut chars = self.text[from + 1..].char_indices();
        loop {
            let Some((at, c)) = chars.next() else {
                return Err(fault(self.text, from, "the quote is not closed"));
            };
            match c {
                '"' => {
                    self.at = from + 1 + at + 1;
                    break;
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 'r')) => value.push('\r'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, other)) => value.push(other),
                    None => return Err(fault(self.text, from, "the quote is not closed")),
                },
                c => value.push(c),
            }
        }
        let mut mangled = value.matches('[').count() > value.matches(']').count();
        let rest = &self.text[self.at..];
        let kind = if let Some(tag) = rest.strip_prefix('@') {
            let end = tag
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(tag.len());
            if end == 0 {
                return Err(self.fault("a language should stand after `@`"));
            }
            self.at += 1 + end;
            LiteralKind::Language(tag[..end].to_ascii_lowercase())
        } else if let Some(datatype) = rest.strip_prefix("^^") {
            let end = datatype.find(is_end_of_word).unwrap_or(datatype.len());
            let kind = datatype_of(&datatype[..end])
                .ok_or_else(|| self.fault("a datatype should stand after `^^`"))?;
            self.at += 2 + end;
            kind
        } else {
            LiteralKind::Plain
        };
        // AMAR's tokenizer took `St."@en` of `"216 O St."@en` for a name: `"216 O [ St , "@en ]`
        let rest = self.text[self.at..].trim_start();
        mangled &= rest.starts_with(']');
        if mangled {
            self.at = self.text.len() - rest.len() + 1;
            value = value.replace("[ ", "").replace(" , ", ".");
        }
        Ok(Literal { value, kind })
    }

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

    fn operator(&mut self, depth: usize) -> Result<Form> {
        if depth >= MAX_DEPTH {
            return Err(self.fault(format!("it nests deeper than {MAX_DEPTH}")));
        }
        let (from, piece) = self.piece("an operator")?;
        let Piece::Word(word) = piece else {
            return Err(fault(self.text, from, "an operator should stand here"));
        };
        let form = match word {
            "JOIN" => {
                let relation = self.relation()?;
                Form::Join(relation, Box::new(self.form(depth + 1)?))
            }
            "AND" | "OR" => {
                let mut all = vec![self.form(depth + 1)?, self.form(depth + 1)?];
                while !self.closes() {
                    all.push(self.form(depth + 1)?);
                }
                if word == "AND" {
                    Form::And(all)
                } else {
                    Form::Or(all)
                }
            }
            "COUNT" if depth > 0 => {
                return Err(fault(
                    self.text,
                    from,
                    "`COUNT` stands inside a form, and a number is no set",
                ));
            }
            "COUNT" => Form::Count(Box::new(self.form(depth + 1)?)),
            "ARGMAX" | "ARGMIN" => {
                let extreme = if word == "ARGMAX" {
                    Extreme::Largest
                } else {
                    Extreme::Smallest
                };
                let of = self.form(depth + 1)?;
                Form::Best(extreme, Box::new(of), self.way(depth + 1)?)
            }
            "lt" | "le" | "gt" | "ge" | "LESS" | "GREATER" => {
                let is = self.comparison(word)?;
                let by = self.way(depth + 1)?;
                Form::Compare(is, by, self.constant()?)
            }
            "TC" => {
                let of = self.form(depth + 1)?;
                let relation = self.relation()?;
                Form::At(Box::new(of), relation, self.constant()?)
            }
            "R" => {
                return Err(fault(
                    self.text,
                    from,
                    "`R` turns a relation, and a form should stand here",
                ));
            }
            other => {
                return Err(fault(
                    self.text,
                    from,
                    format!(
                        "`{other}` is no operator; known are JOIN, AND, OR, COUNT, ARGMAX, ARGMIN, lt, le, gt, ge, TC"
                    ),
                ));
            }
        };
        self.close()?;
        Ok(form)
    }

    fn comparison(&mut self, word: &str) -> Result<Comparison> {
        Ok(match word {
            "lt" => Comparison::Less,
            "le" => Comparison::AtMost,
            "gt" => Comparison::Greater,
            "ge" => Comparison::AtLeast,
            _ => match (word, self.piece("`THAN` or `EQUAL`")?) {
                ("LESS", (_, Piece::Word("THAN"))) => Comparison::Less,
                ("LESS", (_, Piece::Word("EQUAL"))) => Comparison::AtMost,
                ("GREATER", (_, Piece::Word("THAN"))) => Comparison::Greater,
                ("GREATER", (_, Piece::Word("EQUAL"))) => Comparison::AtLeast,
                (_, (at, _)) => {
                    return Err(fault(self.text, at, "`THAN` or `EQUAL` should stand here"));
                }
            },
        })
    }

    /// Whether a parenthesis closes next.
    fn closes(&mut self) -> bool {
        self.skip_space();
        self.text[self.at..].starts_with(')') || self.at == self.text.len()
    }

    fn close(&mut self) -> Result<()> {
        match self.piece("a closing parenthesis")? {
            (_, Piece::Close) => Ok(()),
            (from, _) => Err(fault(
                self.text,
                from,
                "a closing parenthesis should stand here",
            )),
        }
    }

    /// A relation, `(R …)` as often as it likes.
    fn relation(&mut self) -> Result<Relation> {
        let mut turns = 0;
        loop {
            let (from, piece) = self.piece("a relation")?;
            let name = match piece {
                Piece::Open => {
                    match self.piece("`R`")? {
                        (_, Piece::Word("R")) => turns += 1,
                        (at, _) => {
                            return Err(fault(
                                self.text,
                                at,
                                "a relation should stand here: a name or `(R name)`",
                            ));
                        }
                    }
                    continue;
                }
                Piece::Word(word) => word.to_owned(),
                Piece::Bracketed(name, raw) => amar_relation(name, raw),
                Piece::Close | Piece::Quoted(_) => {
                    return Err(fault(self.text, from, "a relation should stand here"));
                }
            };
            for _ in 0..turns {
                self.close()?;
            }
            return Ok(Relation {
                name,
                reversed: turns % 2 == 1,
            });
        }
    }

    /// A relation, or several one after the other.
    fn way(&mut self, depth: usize) -> Result<Vec<Relation>> {
        if depth >= MAX_DEPTH {
            return Err(self.fault(format!("it nests deeper than {MAX_DEPTH}")));
        }
        self.skip_space();
        let from = self.at;
        let joins = match self.text[from..].strip_prefix('(') {
            Some(rest) => rest
                .trim_start()
                .strip_prefix("JOIN")
                .is_some_and(|rest| rest.starts_with(is_end_of_word)),
            None => false,
        };
        if !joins {
            return Ok(vec![self.relation()?]);
        }
        self.piece("`(`")?;
        self.piece("`JOIN`")?;
        let mut way = vec![self.relation()?];
        way.extend(self.way(depth + 1)?);
        self.close()?;
        Ok(way)
    }

    fn constant(&mut self) -> Result<Constant> {
        let (from, piece) = self.piece("a value")?;
        let found = match piece {
            Piece::Word(word) => self.constant_of(from, word)?,
            Piece::Quoted(literal) => Some(Constant::Literal(literal)),
            Piece::Bracketed(_, raw) => amar_text(raw).map(Constant::Literal),
            Piece::Open | Piece::Close => None,
        };
        found.ok_or_else(|| {
            fault(
                self.text,
                from,
                "a number, a date, `NOW` or quoted text should stand here",
            )
        })
    }

    /// The constant that a word is, if it is one.
    fn constant_of(&self, from: usize, word: &str) -> Result<Option<Constant>> {
        if word == "NOW" {
            return Ok(Some(Constant::Now));
        }
        if let Some((value, datatype)) = word.split_once("^^") {
            let kind = datatype_of(datatype)
                .ok_or_else(|| fault(self.text, from, "a datatype should stand after `^^`"))?;
            return Ok(Some(Constant::Literal(Literal {
                value: value.to_owned(),
                kind,
            })));
        }
        Ok(is_bare_value(word).then(|| Constant::Bare(word.to_owned())))
    }
}

/// Whether a word reads as a number or a date.
pub(super) fn is_bare_value(word: &str) -> bool {
    Value::of_text(word) != Value::default()
}

/// What no word holds.
pub(super) fn is_end_of_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | '"')
}

/// `http://…`, `<http://…>` or `xsd:date`.
fn datatype_of(text: &str) -> Option<LiteralKind> {
    let bare = text
        .strip_prefix('<')
        .and_then(|t| t.strip_suffix('>'))
        .unwrap_or(text);
    let iri = match bare.strip_prefix("xsd:") {
        Some(local) => format!("{XSD}{local}"),
        None => bare.to_owned(),
    };
    (!bare.is_empty()).then_some(LiteralKind::Typed(iri))
}

/// The literal in AMAR's `[ "10 , 51" ]`.
fn amar_text(raw: &str) -> Option<Literal> {
    let value = raw.strip_prefix('"')?.strip_suffix('"')?;
    Some(Literal {
        value: value.replace(" , ", "."),
        kind: LiteralKind::Plain,
    })
}

/// The relation in AMAR's `[ people , person , sibling s ]`; any other text as it is.
fn amar_relation(name: String, raw: &str) -> String {
    if raw.contains(" , ") {
        name.replace(" , ", ".").replace(' ', "_")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
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
        let Form::Best(Extreme::Smallest, of, by) = form else {
            panic!("{form:?}")
        };
        assert_eq!(by, [Relation::new("a.b").reverse(), Relation::new("c.d_e")]);
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
                "(AND x)",
                7,
                "a parenthesis closes where a form should stand",
            ),
            ("(lt r x)", 7, "a number, a date"),
            ("(LESS r 5)", 7, "`THAN` or `EQUAL`"),
            ("(JOIN r [x)", 9, "the bracket is not closed"),
            ("(JOIN r [ ])", 9, "the brackets are empty"),
            ("(JOIN r ])", 9, "was not opened"),
            ("(JOIN ä \"x)", 9, "the quote is not closed"),
            ("(JOIN r 5^^)", 9, "a datatype"),
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
