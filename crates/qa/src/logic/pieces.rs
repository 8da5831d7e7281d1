//! The pieces of which the text of a form is made: parentheses, words, brackets and quotes.

use wherefore_graph::{Literal, LiteralKind};

use super::form::{Constant, MAX_PARTS, Relation};
use super::value::{Value, XSD};
use crate::error::{Error, Result};

pub(super) fn fault(text: &str, at: usize, reason: impl Into<String>) -> Error {
    let before = text.get(..at).unwrap_or(text);
    Error::FormSyntax {
        at: before.chars().count() + 1,
        reason: reason.into(),
    }
}

#[derive(Clone)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) parts: usize,
}

/// A word, with where it began.
pub(super) enum Piece<'a> {
    Open,
    Close,
    Word(&'a str),
    /// The content of brackets, unescaped, and as it is written.
    Bracketed(String, &'a str),
    Quoted(Literal),
}

impl<'a> Reader<'a> {
    pub(super) fn fault(&self, reason: impl Into<String>) -> Error {
        fault(self.text, self.at, reason)
    }

    pub(super) fn skip_space(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
    }

    /// The next piece and where it begins.
    pub(super) fn piece(&mut self, wanted: &str) -> Result<(usize, Piece<'a>)> {
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
            if !is_language(&tag[..end]) {
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

    /// Whether a parenthesis closes next.
    pub(super) fn closes(&mut self) -> bool {
        self.skip_space();
        self.text[self.at..].starts_with(')') || self.at == self.text.len()
    }

    pub(super) fn close(&mut self) -> Result<()> {
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
    pub(super) fn relation(&mut self) -> Result<Relation> {
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

    pub(super) fn constant(&mut self) -> Result<Constant> {
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
    pub(super) fn constant_of(&self, from: usize, word: &str) -> Result<Option<Constant>> {
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

/// `http://…`, `<http://…>` or `xsd:date`: a datatype is an IRI, and no other would be one in
/// SPARQL.
fn datatype_of(text: &str) -> Option<LiteralKind> {
    let bare = text
        .strip_prefix('<')
        .and_then(|t| t.strip_suffix('>'))
        .unwrap_or(text);
    let iri = match bare.strip_prefix("xsd:") {
        Some(local) => format!("{XSD}{local}"),
        None => bare.to_owned(),
    };
    has_scheme(&iri).then_some(LiteralKind::Typed(iri))
}

/// Whether a text begins as every IRI does.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else {
        return false;
    };
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_inside)
}

/// Whether a text can be the tag of a language, as in `en` or `zh-Hant`: letters, and then parts of
/// letters and digits, all of up to eight.
fn is_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let first = parts.next().unwrap_or_default();
    (1..=8).contains(&first.len())
        && first.chars().all(|c| c.is_ascii_alphabetic())
        && parts.all(|part| (1..=8).contains(&part.len()))
}

/// The literal in AMAR's `[ "10 , 51" ]`.
pub(super) fn amar_text(raw: &str) -> Option<Literal> {
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
