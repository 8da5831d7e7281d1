//! RDF into keys: N-Triples and N-Quads line by line, the other formats as documents.
//!
//! Most lines of most files are plain: absolute IRIs of everyday letters, strings without escapes.
//! Those are read here in one pass over the bytes; every other line goes to the Oxigraph parser,
//! which alone decides what is valid. A test holds the two against each other.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use oxrdf::{NamedOrBlankNodeRef, TermRef};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser};
use oxttl::NQuadsParser;

use super::bounds::{BoundedReader, InputMonitor};
use super::source::unpack_error;
use crate::error::{Error, Result};
use crate::key::{self, LiteralKindRef, TripleKeys};

/// Parses one line. Returns `Ok(false)` for blank lines and comments.
pub(crate) fn line(
    line: &[u8],
    quads: bool,
    file: usize,
    keys: &mut TripleKeys,
) -> Result<bool, String> {
    match plain_line(line, quads, file, keys) {
        Some(found) => Ok(found),
        None => general_line(line, quads, file, keys),
    }
}

/// Parses a plain line; `None` if it needs the general parser.
fn plain_line(line: &[u8], quads: bool, file: usize, keys: &mut TripleKeys) -> Option<bool> {
    let mut rest = trim(line);
    if rest.is_empty() || rest[0] == b'#' {
        return Some(false);
    }
    for key in keys.iter_mut() {
        key.clear();
    }
    plain_node(&mut rest, file, &mut keys[0])?;
    space(&mut rest)?;
    plain_iri(&mut rest, &mut keys[1])?;
    space(&mut rest)?;
    if rest.first() == Some(&b'"') {
        plain_literal(&mut rest, &mut keys[2])?;
    } else {
        plain_node(&mut rest, file, &mut keys[2])?;
    }
    rest = trim(rest);
    if quads && rest.first() != Some(&b'.') {
        plain_node(&mut rest, file, &mut Vec::new())?;
        rest = trim(rest);
    }
    (rest == b".").then_some(true)
}

fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

fn space(rest: &mut &[u8]) -> Option<()> {
    let trimmed = rest.trim_ascii_start();
    if trimmed.len() == rest.len() {
        return None;
    }
    *rest = trimmed;
    Some(())
}

/// Bytes that the fast path accepts in an IRI.
const IRI_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let plain =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#@!$&'()*+,;=";
    let mut i = 0;
    while i < plain.len() {
        table[plain[i] as usize] = true;
        i += 1;
    }
    table
};

fn plain_iri(rest: &mut &[u8], key: &mut Vec<u8>) -> Option<()> {
    let iri = plain_iri_text(rest)?;
    key::push_iri(key, iri);
    Some(())
}

fn plain_iri_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let body = rest.strip_prefix(b"<")?;
    let end = body.iter().position(|b| !IRI_BYTES[*b as usize])?;
    if body[end] != b'>' {
        return None;
    }
    let iri = &body[..end];
    // `scheme://host/…` with an everyday scheme and host; anything else goes to the general parser
    let after = iri.strip_prefix(b"http")?;
    let after = after
        .strip_prefix(b"s")
        .unwrap_or(after)
        .strip_prefix(b"://")?;
    let host = after
        .iter()
        .position(|b| matches!(b, b'/' | b'?' | b'#'))
        .unwrap_or(after.len());
    if !after[..host]
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
    {
        return None;
    }
    if memchr::memchr_iter(b'#', iri).nth(1).is_some() {
        return None;
    }
    *rest = &body[end + 1..];
    std::str::from_utf8(iri).ok()
}

fn plain_node(rest: &mut &[u8], file: usize, key: &mut Vec<u8>) -> Option<()> {
    let Some(body) = rest.strip_prefix(b"_:") else {
        return plain_iri(rest, key);
    };
    let end = body.iter().position(|b| !b.is_ascii_alphanumeric())?;
    if end == 0 || !matches!(body[end], b' ' | b'\t') {
        return None;
    }
    key::push_blank(key, std::str::from_utf8(&body[..end]).ok()?, file);
    *rest = &body[end..];
    Some(())
}

fn plain_literal(rest: &mut &[u8], key: &mut Vec<u8>) -> Option<()> {
    let body = rest.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', body)?;
    if body[end] == b'\\' || memchr::memchr2(b'\r', b'\n', &body[..end]).is_some() {
        return None;
    }
    let value = std::str::from_utf8(&body[..end]).ok()?;
    let after = &body[end + 1..];
    match after.first()? {
        b'@' => {
            let tag = after[1..]
                .split(|b| !b.is_ascii_alphanumeric() && *b != b'-')
                .next()?;
            // two or three letters, perhaps a region: the rest of BCP 47 goes to the general parser
            let (language, region) = match memchr::memchr(b'-', tag) {
                Some(at) => (&tag[..at], Some(&tag[at + 1..])),
                None => (tag, None),
            };
            let letters = |s: &[u8]| s.iter().all(u8::is_ascii_alphabetic);
            if !(2..=3).contains(&language.len())
                || !letters(language)
                || region.is_some_and(|r| r.len() != 2 || !letters(r))
            {
                return None;
            }
            key::push_literal(
                key,
                value,
                LiteralKindRef::Language(std::str::from_utf8(tag).ok()?),
            );
            *rest = &after[1 + tag.len()..];
        }
        b'^' => {
            let mut datatype = after.strip_prefix(b"^^")?;
            let iri = plain_iri_text(&mut datatype)?;
            if iri.ends_with("#langString") || iri.ends_with("#dirLangString") {
                return None;
            }
            key::push_literal(key, value, LiteralKindRef::Typed(iri));
            *rest = datatype;
        }
        _ => {
            key::push_literal(key, value, LiteralKindRef::Plain);
            *rest = after;
        }
    }
    Some(())
}

/// Reads any line.
fn general_line(
    line: &[u8],
    quads: bool,
    file: usize,
    keys: &mut TripleKeys,
) -> Result<bool, String> {
    for key in keys.iter_mut() {
        key.clear();
    }
    let mut found = false;
    for quad in NQuadsParser::new().for_slice(line) {
        let quad = quad.map_err(|e| e.message().to_owned())?;
        if found {
            return Err("more than one triple in a line".to_owned());
        }
        if !quads && !quad.graph_name.is_default_graph() {
            return Err("a graph name, which N-Triples does not have".to_owned());
        }
        found = true;
        key::push_subject(&mut keys[0], quad.subject.as_ref(), file);
        key::push_iri(&mut keys[1], quad.predicate.as_str());
        key::push_object(&mut keys[2], quad.object.as_ref(), file);
    }
    Ok(found)
}

/// An event of the document parser.
pub(crate) enum Event<'a> {
    Triple(&'a TripleKeys),
    /// A syntax error that can be skipped: line and reason.
    Mistake(u64, String),
}

/// A document, and how it is read.
pub(crate) struct Document<'a> {
    pub(crate) path: &'a Path,
    pub(crate) format: RdfFormat,
    /// The number of the input.
    pub(crate) file: usize,
    /// The base of relative IRIs.
    pub(crate) base: Option<&'a str>,
    /// Maximum bytes between two triples.
    pub(crate) max_between: u64,
}

/// Reads a whole document. `each` returns false to stop.
pub(crate) fn document(
    document: &Document<'_>,
    text: impl BufRead,
    mut each: impl FnMut(Event<'_>) -> Result<bool>,
) -> Result<()> {
    let &Document {
        path, format, file, ..
    } = document;
    // the Turtle parser recovers from a syntax error; the XML and JSON parsers do not
    let recovers = matches!(format, RdfFormat::Turtle | RdfFormat::TriG);
    let mut keys = TripleKeys::default();
    // anonymous nodes get a random label from the parser: number them instead, so that the same
    // file gives the same graph
    let mut blanks: HashMap<String, usize> = HashMap::new();
    let mut number = |label: &str| {
        let next = blanks.len();
        let number = *blanks.entry(label.to_owned()).or_insert(next);
        format!("f{file}_b{number}")
    };
    let mut parser = RdfParser::from_format(format);
    if let Some(base) = document.base {
        parser = (parser.with_base_iri(base)).map_err(|e| unreadable(path, 0, &e.to_string()))?;
    }
    let monitor = InputMonitor::default();
    let text = BoundedReader::new(text, format, document.max_between, monitor.clone());
    for quad in parser.for_reader(text) {
        // the parser reports a refused text in words of its own
        if let (true, Some(reason)) = (quad.is_err(), monitor.refused()) {
            return Err(Error::BadInput {
                path: path.to_owned(),
                reason,
                hint: Some(
                    "convert it to N-Triples with another program, or raise `--memory` if the file is valid"
                        .into(),
                ),
            });
        }
        let is_wanted = match quad {
            Ok(quad) => {
                monitor.triple();
                for key in &mut keys {
                    key.clear();
                }
                match quad.subject.as_ref() {
                    NamedOrBlankNodeRef::BlankNode(b) => {
                        keys[0].push(key::BLANK);
                        keys[0].extend_from_slice(number(b.as_str()).as_bytes());
                    }
                    node => key::push_subject(&mut keys[0], node, file),
                }
                key::push_iri(&mut keys[1], quad.predicate.as_str());
                match quad.object.as_ref() {
                    TermRef::BlankNode(b) => {
                        keys[2].push(key::BLANK);
                        keys[2].extend_from_slice(number(b.as_str()).as_bytes());
                    }
                    term => key::push_object(&mut keys[2], term, file),
                }
                each(Event::Triple(&keys))?
            }
            Err(RdfParseError::Syntax(e)) => {
                let line = e.location().map_or(0, |l| l.start.line + 1);
                if !recovers {
                    return Err(unreadable(path, line, &e.to_string()));
                }
                each(Event::Mistake(line, e.to_string()))?
            }
            Err(RdfParseError::Io(e)) => return Err(unpack_error(path, e)),
        };
        if !is_wanted {
            break;
        }
    }
    Ok(())
}

/// The error for a document with a syntax error that the parser does not recover from.
pub(super) fn unreadable(path: &Path, line: u64, reason: &str) -> Error {
    // the message of the JSON-LD parser for a remote context
    let (reason, hint) = if reason.contains("LoadDocumentCallback") {
        (
            "its `@context` is a URL, and remote contexts are not fetched".to_owned(),
            "replace the URL in the file by the context itself, or convert the file to N-Triples \
             with a JSON-LD program",
        )
    } else {
        let place = match line {
            0 => String::new(),
            line => format!("line {line}: "),
        };
        (
            place + reason,
            "fix the file; nothing after the error can be parsed",
        )
    };
    Error::BadInput {
        path: path.to_owned(),
        reason,
        hint: Some(hint.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = (bool, TripleKeys);

    fn both(text: &str, quads: bool) -> (Option<Read>, Result<Read, String>) {
        let mut keys = TripleKeys::default();
        let plain = plain_line(text.as_bytes(), quads, 0, &mut keys).map(|f| (f, keys.clone()));
        let mut keys = TripleKeys::default();
        let general = general_line(text.as_bytes(), quads, 0, &mut keys).map(|f| (f, keys.clone()));
        (plain, general)
    }

    #[test]
    fn plain_lines_are_read_fast_and_right() {
        for text in [
            "<http://a.b/c> <http://a.b/d> <http://a.b/e> .",
            "<http://a.b/c>\t<http://a.b/d>\t\"x y\" .",
            "  <http://a/c> <http://a/d> \"é\"@en-GB .",
            "<http://a/c> <http://a/d> \"5\"^^<http://www.w3.org/2001/XMLSchema#integer> .",
            "_:b0 <https://a/d> _:b1 .",
            "<http://a/c> <http://a/d> \"\" .",
        ] {
            let (plain, general) = both(text, false);
            assert!(plain.is_some(), "{text}");
            assert_eq!(plain.unwrap(), general.unwrap(), "{text}");
        }
        let (plain, general) = both("<http://a/c> <http://a/d> \"x\" <http://a/g> .", true);
        assert_eq!(plain.unwrap(), general.unwrap());
    }

    #[test]
    fn lines_that_are_not_plain_are_still_judged() {
        let good = [
            "<http://a/c> <http://a/d> \"a\\u0041\\n\" .",
            "<http://a/caf\u{e9}> <http://a/d> \"x\" .",
            "<urn:x:y> <urn:x:z> <urn:x:w> .",
            "<http://a/c> <http://a/d> \"x\" . # comment",
            "<http://a/c><http://a/d>\"x\".",
            "# only a comment",
            "",
        ];
        let bad = [
            "<http://a/c> <http://a/d> \"x\"",
            "<http://a/c> \"x\" <http://a/d> .",
            "<not an iri> <http://a/d> <http://a/e> .",
            "<http://a/c> <http://a/d> \"x\" <http://a/g> .",
            "a b c",
            "<http://a/c> <http://a/d> \"x\\q\" .",
            "<http://a/#b#c> <http://a/d> <http://a/e> .",
        ];
        let mut keys = TripleKeys::default();
        for text in good {
            assert!(line(text.as_bytes(), false, 0, &mut keys).is_ok(), "{text}");
        }
        for text in bad {
            assert!(
                line(text.as_bytes(), false, 0, &mut keys).is_err(),
                "{text}"
            );
        }
        assert!(line(b"<http://a/c> <http://a/d> \"\xff\" .", false, 0, &mut keys).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn fast_path_never_disagrees(
            text in r#"(_:[a-z0-9]{0,2}|<https?:/?/?[a-z:.\[%#-]{0,3}[/#?]?[a-zé]{0,2}>) <http://a/[b#]{1,2}> ("[a-z\\"]{0,3}"(@[a-zA-Z0-9-]{0,6}|\^\^<http://a/b>)?|<http://[a-z]>|_:x) ?\.?"#,
            quads in any::<bool>(),
        ) {
            let (plain, general) = both(&text, quads);
            if let Some(plain) = plain {
                prop_assert_eq!(Ok(plain), general);
            }
        }
    }

    #[test]
    fn documents_number_their_blank_nodes() {
        let text = "@prefix a: <http://a/> . [] a:p [ a:q 1 ] . oops oops . a:x a:y a:z .";
        let read = || {
            let (mut triples, mut mistakes) = (Vec::new(), 0);
            document(
                &Document {
                    path: Path::new("x"),
                    format: RdfFormat::Turtle,
                    file: 2,
                    base: None,
                    max_between: 1 << 20,
                },
                text.as_bytes(),
                |event| {
                    match event {
                        Event::Triple(keys) => triples.push(keys.clone()),
                        Event::Mistake(..) => mistakes += 1,
                    }
                    Ok(true)
                },
            )
            .unwrap();
            (triples, mistakes)
        };
        let (triples, mistakes) = read();
        assert!(mistakes >= 1);
        assert!(
            triples
                .iter()
                .any(|k| k[0] == b"bf2_b0" || k[2] == b"bf2_b0"),
            "{triples:?}"
        );
        assert_eq!(read().0, triples);
    }
}
