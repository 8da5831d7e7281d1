//! Terms as bytes: one sortable key for every term, so that a dictionary is a sorted list.
//!
//! ```text
//! b label                    blank node
//! i iri                      IRI
//! l value NUL suffix         literal; suffix: nothing, @language, ^datatype, ^#local (XML Schema)
//! n name                     any other name
//! ```
//!
//! The first byte sorts terms by kind, so each kind is one range of ids. A value may hold NUL
//! itself: the last one separates, and no suffix holds any.

use oxrdf::{NamedOrBlankNodeRef, TermRef};

use crate::graph::{Literal, LiteralKind, Term};

pub(crate) const BLANK: u8 = b'b';
pub(crate) const IRI: u8 = b'i';
pub(crate) const LITERAL: u8 = b'l';
pub(crate) const NAME: u8 = b'n';

/// Namespace of the XML Schema datatypes, written `#` in keys.
pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
/// The predicate that joins a thing to its class.
pub(crate) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// Keys of head, relation and tail.
pub(crate) type TripleKeys = [Vec<u8>; 3];

pub(crate) fn push_iri(out: &mut Vec<u8>, iri: &str) {
    out.push(IRI);
    out.extend_from_slice(iri.as_bytes());
}

pub(crate) fn push_name(out: &mut Vec<u8>, name: &str) {
    out.push(NAME);
    out.extend_from_slice(name.as_bytes());
}

/// `file` is the input's number: a blank node's label holds only within its own file.
pub(crate) fn push_blank(out: &mut Vec<u8>, label: &str, file: usize) {
    out.push(BLANK);
    if file > 0 || looks_scoped(label) {
        out.extend_from_slice(format!("f{file}_").as_bytes());
    }
    out.extend_from_slice(label.as_bytes());
}

fn looks_scoped(label: &str) -> bool {
    label
        .strip_prefix('f')
        .and_then(|rest| rest.split_once('_'))
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Makes a blank node that was read as one of the first file mean the graph's own of that label.
pub(crate) fn unscope_blank(key: &mut Vec<u8>) {
    let scoped = (key.strip_prefix(b"bf0_"))
        .and_then(|rest| std::str::from_utf8(rest).ok())
        .is_some_and(looks_scoped);
    if scoped {
        key.drain(1..4);
    }
}

pub(crate) fn push_literal(out: &mut Vec<u8>, value: &str, kind: LiteralKindRef<'_>) {
    out.push(LITERAL);
    out.extend_from_slice(value.as_bytes());
    out.push(0);
    match kind {
        LiteralKindRef::Plain => {}
        LiteralKindRef::Language(tag) => {
            out.push(b'@');
            out.extend(tag.bytes().map(|b| b.to_ascii_lowercase()));
        }
        LiteralKindRef::Typed(XSD_STRING) => {}
        LiteralKindRef::Typed(datatype) => {
            out.push(b'^');
            match datatype.strip_prefix(XSD) {
                Some(local) => {
                    out.push(b'#');
                    out.extend_from_slice(local.as_bytes());
                }
                None => out.extend_from_slice(datatype.as_bytes()),
            }
        }
    }
}

/// [`LiteralKind`] without owning its text.
#[derive(Clone, Copy)]
pub(crate) enum LiteralKindRef<'a> {
    Plain,
    Language(&'a str),
    Typed(&'a str),
}

pub(crate) fn push_subject(out: &mut Vec<u8>, subject: NamedOrBlankNodeRef<'_>, file: usize) {
    match subject {
        NamedOrBlankNodeRef::NamedNode(iri) => push_iri(out, iri.as_str()),
        NamedOrBlankNodeRef::BlankNode(blank) => push_blank(out, blank.as_str(), file),
    }
}

pub(crate) fn push_object(out: &mut Vec<u8>, object: TermRef<'_>, file: usize) {
    match object {
        TermRef::NamedNode(iri) => push_iri(out, iri.as_str()),
        TermRef::BlankNode(blank) => push_blank(out, blank.as_str(), file),
        TermRef::Literal(literal) => {
            let kind = match literal.language() {
                Some(tag) => LiteralKindRef::Language(tag),
                None => LiteralKindRef::Typed(literal.datatype().as_str()),
            };
            push_literal(out, literal.value(), kind);
        }
    }
}

/// The key of a term.
pub(crate) fn encode(term: &Term) -> Vec<u8> {
    let mut out = Vec::new();
    match term {
        Term::Name(name) => push_name(&mut out, name),
        Term::Iri(iri) => push_iri(&mut out, iri),
        // a label read back from a graph is scoped already
        Term::Blank(label) => {
            out.push(BLANK);
            out.extend_from_slice(label.as_bytes());
        }
        Term::Literal(Literal { value, kind }) => push_literal(
            &mut out,
            value,
            match kind {
                LiteralKind::Plain => LiteralKindRef::Plain,
                LiteralKind::Language(tag) => LiteralKindRef::Language(tag),
                LiteralKind::Typed(datatype) => LiteralKindRef::Typed(datatype),
            },
        ),
    }
    out
}

/// The term of a key; `None` if the bytes are no key.
pub(crate) fn decode(key: &[u8]) -> Option<Term> {
    let (&kind, rest) = key.split_first()?;
    let text = std::str::from_utf8(rest).ok()?;
    Some(match kind {
        BLANK => Term::Blank(text.to_owned()),
        IRI => Term::Iri(text.to_owned()),
        NAME => Term::Name(text.to_owned()),
        LITERAL => {
            let (value, suffix) = text.rsplit_once('\0')?;
            let kind = match suffix.split_at_checked(1) {
                None => LiteralKind::Plain,
                Some(("@", tag)) => LiteralKind::Language(tag.to_owned()),
                Some(("^", datatype)) => LiteralKind::Typed(match datatype.strip_prefix('#') {
                    Some(local) => format!("{XSD}{local}"),
                    None => datatype.to_owned(),
                }),
                Some(_) => return None,
            };
            Term::Literal(Literal {
                value: value.to_owned(),
                kind,
            })
        }
        _ => return None,
    })
}

/// The text that people see of a key, before any label: a literal's value, else what follows the
/// kind byte. `None` if the bytes are no key.
pub(crate) fn text(key: &[u8]) -> Option<&str> {
    let (&kind, rest) = key.split_first()?;
    let text = std::str::from_utf8(rest).ok()?;
    if kind == LITERAL {
        text.rsplit_once('\0').map(|(value, _)| value)
    } else {
        Some(text)
    }
}

/// The language tag of a literal's key.
pub(crate) fn language(key: &[u8]) -> Option<&str> {
    if key.first() != Some(&LITERAL) {
        return None;
    }
    let at = memchr::memrchr(0, key)?;
    std::str::from_utf8(key.get(at + 1..)?)
        .ok()?
        .strip_prefix('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_back_to_their_terms() {
        let literal = |value: &str, kind| {
            Term::Literal(Literal {
                value: value.into(),
                kind,
            })
        };
        for term in [
            Term::Name("Lou Seal".into()),
            Term::Iri("http://example.org/a".into()),
            Term::Blank("b0".into()),
            literal("", LiteralKind::Plain),
            literal("a\0b", LiteralKind::Plain),
            literal("chat", LiteralKind::Language("fr-be".into())),
            literal("5", LiteralKind::Typed(format!("{XSD}integer"))),
            literal("x", LiteralKind::Typed("http://example.org/type".into())),
        ] {
            assert_eq!(decode(&encode(&term)), Some(term));
        }
        assert_eq!(
            language(&encode(&literal("a", LiteralKind::Language("EN".into())))),
            Some("en")
        );
        assert_eq!(decode(b""), None);
        assert_eq!(decode(b"lno separator"), None);
        assert_eq!(decode(b"z"), None);
        assert_eq!(decode(&[IRI, 0xff]), None);
    }

    #[test]
    fn xsd_string_is_a_plain_literal() {
        let typed = Literal {
            value: "a".into(),
            kind: LiteralKind::Typed(XSD_STRING.into()),
        };
        let plain = Literal {
            value: "a".into(),
            kind: LiteralKind::Plain,
        };
        assert_eq!(encode(&Term::Literal(typed)), encode(&Term::Literal(plain)));
    }

    #[test]
    fn a_blank_node_can_be_named_as_the_graph_shows_it() {
        for label in ["x", "f0_x", "f1_x", "f0_f1_x", "f_x", "b0"] {
            let mut key = Vec::new();
            push_blank(&mut key, label, 0);
            unscope_blank(&mut key);
            assert_eq!(key, [b"b", label.as_bytes()].concat());
        }
    }

    #[test]
    fn blank_nodes_of_two_files_differ() {
        let key = |label: &str, file| {
            let mut out = Vec::new();
            push_blank(&mut out, label, file);
            out
        };
        assert_eq!(key("x", 0), b"bx");
        assert_ne!(key("x", 0), key("x", 1));
        assert_ne!(key("f1_x", 0), key("x", 1));
    }
}
