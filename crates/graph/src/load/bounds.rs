//! Bounds for documents whose parsers have none: what a few bytes of input can make them hold.
//!
//! ```text
//! RDF/XML   an entity may stand for 64 KiB, all of them for 1 MiB      a "billion laughs"
//!           `most` bytes between two triples, with every `&…;` counted
//!           as the longest entity                                      one endless text or comment
//! JSON-LD   128 brackets inside one another                            the parser recurses
//!           `most` bytes between two triples                           an object is held whole
//! ```
//!
//! A [`Bounded`] reader looks at every byte before the parser does, and ends the text with an error
//! where a bound is met. Turtle's parser has a bound of its own for tokens; memory that grows with
//! open brackets is bounded by what may lie between two triples.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use oxrdfio::RdfFormat;

/// The least that may lie between two triples, in bytes.
pub(crate) const LEAST_BETWEEN: u64 = 64 << 20;
/// What one entity may stand for, in bytes; namespaces, for which they are meant, have a hundred.
const LONGEST_ENTITY: usize = 64 << 10;
/// What all entities together may stand for, in bytes.
const ALL_ENTITIES: usize = 1 << 20;
/// Most brackets inside one another. Documents of people have ten.
const DEEPEST: usize = 128;

/// Bytes that lie between two triples of a document at most, by the memory of the load: a parser
/// takes several times as many.
pub(crate) fn most_between(memory: usize) -> u64 {
    LEAST_BETWEEN.max(memory as u64 / 16)
}

/// What the reader and whoever reads triples both know.
#[derive(Clone, Default)]
pub(crate) struct Watch(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    /// Bytes since the last triple.
    since: u64,
    refused: Option<String>,
}

impl Watch {
    /// A triple has come.
    pub(crate) fn triple(&self) {
        self.0.borrow_mut().since = 0;
    }

    /// Why the text was ended, if it was.
    pub(crate) fn refused(&self) -> Option<String> {
        self.0.borrow().refused.clone()
    }
}

/// A text that ends with an error where it goes beyond its bounds.
pub(crate) struct Bounded<R> {
    text: R,
    most: u64,
    watch: Watch,
    look: Look,
    /// Bytes at the front that were looked at and not yet taken.
    seen: usize,
}

enum Look {
    Xml(Xml),
    Json(Json),
    Other,
}

impl<R: BufRead> Bounded<R> {
    pub(crate) fn new(text: R, format: RdfFormat, most: u64, watch: Watch) -> Self {
        Self {
            text,
            most,
            watch,
            look: match format {
                RdfFormat::RdfXml => Look::Xml(Xml::default()),
                RdfFormat::JsonLd { .. } => Look::Json(Json::default()),
                _ => Look::Other,
            },
            seen: 0,
        }
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let buffer = self.text.fill_buf()?;
        let mut state = self.watch.0.borrow_mut();
        if state.refused.is_none() && buffer.len() > self.seen {
            let new = &buffer[self.seen..];
            let (looked, weight) = match &mut self.look {
                Look::Xml(xml) => (xml.look(new), xml.weight(new)),
                Look::Json(json) => (json.look(new), new.len() as u64),
                Look::Other => (Ok(()), new.len() as u64),
            };
            self.seen = buffer.len();
            state.since = state.since.saturating_add(weight);
            state.refused = match looked {
                Err(reason) => Some(reason),
                Ok(()) if state.since > self.most => Some(format!(
                    "more than {} MiB lie between two of its triples",
                    self.most >> 20
                )),
                Ok(()) => None,
            };
        }
        match &state.refused {
            Some(reason) => Err(io::Error::new(io::ErrorKind::InvalidData, reason.clone())),
            None => Ok(buffer),
        }
    }

    fn consume(&mut self, amount: usize) {
        self.seen = self.seen.saturating_sub(amount);
        self.text.consume(amount);
    }
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let length = from.len().min(into.len());
        into[..length].copy_from_slice(&from[..length]);
        self.consume(length);
        Ok(length)
    }
}

/// Entities wherever they are declared: the parser takes declarations everywhere.
#[derive(Default)]
struct Xml {
    /// A declaration from its `<!` on, as far as it was read.
    declaration: Vec<u8>,
    /// What each entity stands for, in bytes.
    lengths: HashMap<Vec<u8>, usize>,
    longest: usize,
    /// What all of them take, those that were declared again too.
    total: usize,
}

const DECLARATION: &[u8] = b"<!ENTITY";

impl Xml {
    /// Bytes that the parser makes of these, at most.
    fn weight(&self, bytes: &[u8]) -> u64 {
        let references = match self.longest {
            0 => 0,
            _ => memchr::memchr_iter(b'&', bytes).count(),
        };
        (bytes.len() as u64).saturating_add(references as u64 * self.longest as u64)
    }

    fn look(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            if self.declaration.is_empty() {
                let Some(at) = memchr::memchr(b'<', bytes) else {
                    return Ok(());
                };
                bytes = &bytes[at..];
            }
            // byte by byte: these are few
            let (byte, rest) = (bytes[0], &bytes[1..]);
            self.declaration.push(byte);
            let begun = self.declaration.as_slice();
            let is_one = match begun.len() <= DECLARATION.len() {
                true => DECLARATION.starts_with(begun),
                false => true,
            };
            if !is_one {
                self.declaration.clear();
                if byte == b'<' {
                    continue; // it may begin one itself
                }
            } else if begun.len() > LONGEST_ENTITY + 1024 {
                return Err(too_long());
            } else if byte == b'>' && !is_open(begun) {
                let declaration = std::mem::take(&mut self.declaration);
                self.declared(&declaration)?;
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Takes `<!ENTITY name "value">`.
    fn declared(&mut self, declaration: &[u8]) -> Result<(), String> {
        let text = &declaration[DECLARATION.len()..];
        let text = text.trim_ascii_start();
        let text = text.strip_prefix(b"%").unwrap_or(text).trim_ascii_start();
        let end = text.iter().position(u8::is_ascii_whitespace);
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let mut value = rest.split(|b| *b == b'"');
        let value = value.nth(1).unwrap_or_default();
        let mut length = 0usize;
        let mut parts = value.split(|b| *b == b'&');
        length += parts.next().unwrap_or_default().len();
        for part in parts {
            let end = memchr::memchr(b';', part).unwrap_or(part.len());
            // a sign that is told by its number has four bytes at most
            length += self.lengths.get(&part[..end]).copied().unwrap_or(4);
            length += part.len().saturating_sub(end + 1);
        }
        self.total += length + name.len() + 16;
        if length > LONGEST_ENTITY || self.total > ALL_ENTITIES {
            return Err(too_long());
        }
        self.longest = self.longest.max(length);
        self.lengths.insert(name.to_vec(), length);
        Ok(())
    }
}

/// Whether a quote in a declaration is not closed.
fn is_open(declaration: &[u8]) -> bool {
    memchr::memchr_iter(b'"', declaration).count() % 2 == 1
}

fn too_long() -> String {
    format!(
        "its entities stand for more than {} KiB each, or {} KiB together",
        LONGEST_ENTITY >> 10,
        ALL_ENTITIES >> 10
    )
}

/// Brackets outside of strings.
#[derive(Default)]
struct Json {
    depth: usize,
    inside: bool,
    escaped: bool,
}

impl Json {
    fn look(&mut self, bytes: &[u8]) -> Result<(), String> {
        for &byte in bytes {
            if self.escaped {
                self.escaped = false;
                continue;
            }
            match byte {
                b'\\' if self.inside => self.escaped = true,
                b'"' => self.inside = !self.inside,
                b'{' | b'[' if !self.inside => {
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Err(format!("its brackets nest deeper than {DEEPEST}"));
                    }
                }
                b'}' | b']' if !self.inside => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that come through, `piece` at a time, and why no more.
    fn through(text: &str, format: RdfFormat, most: u64, piece: usize) -> (usize, Option<String>) {
        let watch = Watch::default();
        let reader = io::BufReader::with_capacity(piece, text.as_bytes());
        let mut bounded = Bounded::new(reader, format, most, watch.clone());
        let mut out = Vec::new();
        let _ = bounded.read_to_end(&mut out);
        (out.len(), watch.refused())
    }

    const JSON_LD: RdfFormat = RdfFormat::JsonLd {
        profile: oxrdfio::JsonLdProfileSet::empty(),
    };

    #[test]
    fn entities_that_multiply_are_refused_wherever_text_is_cut() {
        let mut laughs = String::from("<?xml version=\"1.0\"?><!DOCTYPE r [<!ENTITY a0 \"ha\">");
        for i in 1..30 {
            let before = format!("&a{};", i - 1);
            laughs += &format!("\n<!ENTITY a{i} \"{}\">", before.repeat(10));
        }
        laughs += "]><r>&a29;</r>";
        for piece in [1, 3, 7, 64, 4096] {
            let (_, refused) = through(&laughs, RdfFormat::RdfXml, 1 << 20, piece);
            assert!(refused.unwrap().contains("entities"), "{piece}");
        }
        // where a declaration does not belong, too
        let late = "<r/><<!ENTITY x \"".to_owned() + &"y".repeat(70_000);
        let (_, refused) = through(&late, RdfFormat::RdfXml, 1 << 20, 4096);
        assert!(refused.unwrap().contains("entities"));
    }

    #[test]
    fn namespaces_as_entities_pass_and_many_references_count() {
        let head = "<!DOCTYPE rdf:RDF [<!ENTITY % o 'x'><!ENTITY xsd \
                    \"http://www.w3.org/2001/XMLSchema#\">]><r>";
        let text = head.to_owned() + &"&xsd;".repeat(100);
        for piece in [1, 5, 4096] {
            let (read, refused) = through(&text, RdfFormat::RdfXml, 1 << 20, piece);
            assert_eq!((read, refused), (text.len(), None));
        }
        // 33 bytes for each of 10,000
        let text = head.to_owned() + &"&xsd;".repeat(10_000);
        let (_, refused) = through(&text, RdfFormat::RdfXml, 300_000, 4096);
        assert!(refused.unwrap().contains("between two of its triples"));
        let (read, refused) = through(&text, RdfFormat::RdfXml, 400_000, 4096);
        assert_eq!((read, refused), (text.len(), None));
    }

    #[test]
    fn brackets_are_counted_outside_of_strings() {
        let deep = "[".repeat(129);
        let (_, refused) = through(&deep, JSON_LD, 1 << 20, 10);
        assert!(refused.unwrap().contains("deeper than 128"));
        let flat = format!("[\"{deep}\\\"{deep}\"]") + &"[]".repeat(500);
        for piece in [1, 2, 3, 4096] {
            assert_eq!(through(&flat, JSON_LD, 1 << 20, piece), (flat.len(), None));
        }
    }

    #[test]
    fn what_lies_between_two_triples_is_bounded() {
        let text = "x".repeat(5000);
        let (read, refused) = through(&text, RdfFormat::RdfXml, 3000, 1000);
        assert_eq!(read, 3000);
        assert!(refused.is_some());
        let watch = Watch::default();
        let reader = io::BufReader::with_capacity(1000, text.as_bytes());
        let mut bounded = Bounded::new(reader, JSON_LD, 3000, watch.clone());
        let mut piece = [0; 1000];
        for _ in 0..5 {
            bounded.read_exact(&mut piece).unwrap();
            watch.triple();
        }
    }
}
