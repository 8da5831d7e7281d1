//! Memory bounds for documents whose parsers have none: a few bytes of input can expand to very
//! many.
//!
//! ```text
//! RDF/XML   an entity may stand for 64 KiB, all of them for 1 MiB      a "billion laughs"
//!           `most` bytes between two triples, with every `&…;` counted
//!           as the longest entity                                      one endless text or comment
//! JSON-LD   128 brackets inside one another                            the parser recurses
//!           `most` bytes between two triples                           an object is held whole
//! ```
//!
//! A [`BoundedReader`] scans every byte before the parser does, and ends the text with an error
//! where a bound is exceeded. Turtle's parser has a bound of its own for tokens; memory that grows
//! with open brackets is bounded by what may lie between two triples.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use oxrdfio::RdfFormat;

/// Minimum of the bound on bytes between two triples (guess).
pub(crate) const LEAST_BETWEEN: u64 = 64 << 20;
/// Maximum bytes of an XML entity (guess); a namespace has about a hundred.
const LONGEST_ENTITY: usize = 64 << 10;
/// Maximum bytes of all XML entities together (guess).
const ALL_ENTITIES: usize = 1 << 20;
/// Maximum nesting of brackets (guess). Real documents have about ten levels.
const DEEPEST: usize = 128;

/// Maximum bytes between two triples of a document, for the memory limit of the load: a parser
/// needs several times as many.
pub(crate) fn max_between(memory: usize) -> u64 {
    LEAST_BETWEEN.max(memory as u64 / 16)
}

/// State shared by the reader and the loop over triples.
#[derive(Clone, Default)]
pub(crate) struct InputMonitor(Rc<RefCell<MonitorState>>);

#[derive(Default)]
struct MonitorState {
    /// Bytes since the last triple.
    since: u64,
    refused: Option<String>,
}

impl InputMonitor {
    /// Call this for every triple.
    pub(crate) fn triple(&self) {
        self.0.borrow_mut().since = 0;
    }

    /// Why the text was refused, if it was.
    pub(crate) fn refused(&self) -> Option<String> {
        self.0.borrow().refused.clone()
    }
}

/// A reader that fails when the text exceeds its bounds.
pub(crate) struct BoundedReader<R> {
    text: R,
    max_gap: u64,
    monitor: InputMonitor,
    scan: Scanner,
    /// Bytes at the front that were scanned and not yet consumed.
    seen: usize,
}

enum Scanner {
    Xml(EntityScanner),
    Json(NestingScanner),
    Other,
}

impl<R: BufRead> BoundedReader<R> {
    pub(crate) fn new(text: R, format: RdfFormat, max_gap: u64, monitor: InputMonitor) -> Self {
        Self {
            text,
            max_gap,
            monitor,
            scan: match format {
                RdfFormat::RdfXml => Scanner::Xml(EntityScanner::default()),
                RdfFormat::JsonLd { .. } => Scanner::Json(NestingScanner::default()),
                _ => Scanner::Other,
            },
            seen: 0,
        }
    }
}

impl<R: BufRead> BufRead for BoundedReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let buffer = self.text.fill_buf()?;
        let mut state = self.monitor.0.borrow_mut();
        if state.refused.is_none() && buffer.len() > self.seen {
            let new = &buffer[self.seen..];
            let (scanned, weight) = match &mut self.scan {
                Scanner::Xml(xml) => (xml.scan(new), xml.weight(new)),
                Scanner::Json(json) => (json.scan(new), new.len() as u64),
                Scanner::Other => (Ok(()), new.len() as u64),
            };
            self.seen = buffer.len();
            state.since = state.since.saturating_add(weight);
            state.refused = match scanned {
                Err(reason) => Some(reason),
                Ok(()) if state.since > self.max_gap => Some(format!(
                    "more than {} MiB lie between two of its triples",
                    self.max_gap >> 20
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

impl<R: BufRead> Read for BoundedReader<R> {
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
struct EntityScanner {
    /// A declaration from its `<!` on, as far as it was read.
    declaration: Vec<u8>,
    /// What each entity stands for, in bytes.
    lengths: HashMap<Vec<u8>, usize>,
    longest: usize,
    /// What all of them take, those that were declared again too.
    total: usize,
}

const DECLARATION: &[u8] = b"<!ENTITY";

impl EntityScanner {
    /// Bytes that the parser makes of these, at most.
    fn weight(&self, bytes: &[u8]) -> u64 {
        let references = match self.longest {
            0 => 0,
            _ => memchr::memchr_iter(b'&', bytes).count(),
        };
        (bytes.len() as u64).saturating_add(references as u64 * self.longest as u64)
    }

    fn scan(&mut self, mut bytes: &[u8]) -> Result<(), String> {
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
            let declaration = self.declaration.as_slice();
            let is_one = match declaration.len() <= DECLARATION.len() {
                true => DECLARATION.starts_with(declaration),
                false => true,
            };
            if !is_one {
                self.declaration.clear();
                if byte == b'<' {
                    continue; // it may begin one itself
                }
            } else if declaration.len() > LONGEST_ENTITY + 1024 {
                return Err(too_long());
            } else if byte == b'>' && !is_open(declaration) {
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
        "its entities expand to more than {} KiB each, or {} KiB together",
        LONGEST_ENTITY >> 10,
        ALL_ENTITIES >> 10
    )
}

/// Brackets outside of strings.
#[derive(Default)]
struct NestingScanner {
    depth: usize,
    inside: bool,
    escaped: bool,
}

impl NestingScanner {
    fn scan(&mut self, bytes: &[u8]) -> Result<(), String> {
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
    fn read_bounded(
        text: &str,
        format: RdfFormat,
        max_gap: u64,
        piece: usize,
    ) -> (usize, Option<String>) {
        let monitor = InputMonitor::default();
        let reader = io::BufReader::with_capacity(piece, text.as_bytes());
        let mut bounded = BoundedReader::new(reader, format, max_gap, monitor.clone());
        let mut out = Vec::new();
        let _ = bounded.read_to_end(&mut out);
        (out.len(), monitor.refused())
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
            let (_, refused) = read_bounded(&laughs, RdfFormat::RdfXml, 1 << 20, piece);
            assert!(refused.unwrap().contains("entities"), "{piece}");
        }
        // where a declaration does not belong, too
        let late = "<r/><<!ENTITY x \"".to_owned() + &"y".repeat(70_000);
        let (_, refused) = read_bounded(&late, RdfFormat::RdfXml, 1 << 20, 4096);
        assert!(refused.unwrap().contains("entities"));
    }

    #[test]
    fn namespaces_as_entities_pass_and_many_references_count() {
        let head = "<!DOCTYPE rdf:RDF [<!ENTITY % o 'x'><!ENTITY xsd \
                    \"http://www.w3.org/2001/XMLSchema#\">]><r>";
        let text = head.to_owned() + &"&xsd;".repeat(100);
        for piece in [1, 5, 4096] {
            let (read, refused) = read_bounded(&text, RdfFormat::RdfXml, 1 << 20, piece);
            assert_eq!((read, refused), (text.len(), None));
        }
        // 33 bytes for each of 10,000
        let text = head.to_owned() + &"&xsd;".repeat(10_000);
        let (_, refused) = read_bounded(&text, RdfFormat::RdfXml, 300_000, 4096);
        assert!(refused.unwrap().contains("between two of its triples"));
        let (read, refused) = read_bounded(&text, RdfFormat::RdfXml, 400_000, 4096);
        assert_eq!((read, refused), (text.len(), None));
    }

    #[test]
    fn brackets_are_counted_outside_of_strings() {
        let deep = "[".repeat(129);
        let (_, refused) = read_bounded(&deep, JSON_LD, 1 << 20, 10);
        assert!(refused.unwrap().contains("deeper than 128"));
        let flat = format!("[\"{deep}\\\"{deep}\"]") + &"[]".repeat(500);
        for piece in [1, 2, 3, 4096] {
            assert_eq!(
                read_bounded(&flat, JSON_LD, 1 << 20, piece),
                (flat.len(), None)
            );
        }
    }

    #[test]
    fn what_lies_between_two_triples_is_bounded() {
        let text = "x".repeat(5000);
        let (read, refused) = read_bounded(&text, RdfFormat::RdfXml, 3000, 1000);
        assert_eq!(read, 3000);
        assert!(refused.is_some());
        let monitor = InputMonitor::default();
        let reader = io::BufReader::with_capacity(1000, text.as_bytes());
        let mut bounded = BoundedReader::new(reader, JSON_LD, 3000, monitor.clone());
        let mut piece = [0; 1000];
        for _ in 0..5 {
            bounded.read_exact(&mut piece).unwrap();
            monitor.triple();
        }
    }
}
