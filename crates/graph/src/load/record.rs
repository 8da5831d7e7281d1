//! Records of the formats that are read line by line.

use super::blocks::Block;
use super::csv;
use super::format::Format;
use super::rdf;
use super::table::{self, Layout, RecordKind};
use crate::key::TripleKeys;

/// How the message about a record that is not UTF-8 begins.
pub(crate) const NOT_UTF8: &str = "not UTF-8";

/// How the records of an input are parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordFormat {
    pub(crate) format: Format,
    /// The columns of a table.
    pub(crate) layout: Option<Layout>,
    /// Whether tails that look like values become literals.
    pub(crate) typed: bool,
    /// The number of the input, which keeps blank nodes of different inputs apart.
    pub(crate) file: usize,
}

impl RecordFormat {
    /// Parses one record into the keys of its triple.
    pub(crate) fn parse(self, bytes: &[u8], keys: &mut TripleKeys) -> Result<RecordKind, String> {
        let kind = |is_triple| match is_triple {
            true => RecordKind::Triple,
            false => RecordKind::Blank,
        };
        match (self.format, self.layout) {
            (Format::NTriples, _) => rdf::line(bytes, false, self.file, keys).map(kind),
            (Format::NQuads, _) => rdf::line(bytes, true, self.file, keys).map(kind),
            (format, Some(layout)) => table::record(utf8(bytes)?, format, layout, self.typed, keys),
            (_, None) => table::json_line(utf8(bytes)?, self.typed, keys).map(kind),
        }
    }
}

/// A record as text.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|e| format!("{NOT_UTF8} at byte {}", e.valid_up_to() + 1))
}

/// Calls `parse(record, line)` for every record of a block; lines count from 0.
pub(crate) fn each_record(block: &Block, format: Format, parse: &mut dyn FnMut(&[u8], u64)) {
    if format == Format::Csv {
        csv::records(&block.bytes, parse);
        return;
    }
    let mut from = 0;
    for (end, line) in memchr::memchr_iter(b'\n', &block.bytes)
        .chain([block.bytes.len()])
        .zip(0..)
    {
        parse(&block.bytes[from..end], line);
        from = end + 1;
        if from > block.bytes.len() {
            break;
        }
    }
}
