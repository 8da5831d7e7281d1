//! The file formats that can be read, and what they are called.

use oxrdfio::RdfFormat;
use serde::{Deserialize, Serialize};

/// File formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// N-Triples: one triple a line.
    NTriples,
    /// N-Quads: a triple and its graph's name a line; the names are left out.
    NQuads,
    /// Turtle.
    Turtle,
    /// TriG; the graphs' names are left out.
    TriG,
    /// RDF/XML.
    RdfXml,
    /// JSON-LD.
    JsonLd,
    /// Head, relation, tail between tabs.
    Tsv,
    /// Head, relation, tail between commas, with quotes where needed.
    Csv,
    /// `head|relation|tail`, as MetaQA writes them.
    Pipe,
    /// A JSON object or array a line.
    JsonLines,
    /// One JSON array of objects or arrays; JSON lines where it begins with an object.
    Json,
    /// A SQLite database: rows are things, tables their classes.
    Sqlite,
    /// An Excel workbook: each sheet is a table.
    Xlsx,
}

impl Format {
    /// Every format with the names it goes by; the first name is the one we print.
    pub const NAMES: [(Format, &'static [&'static str]); 13] = [
        (Format::NTriples, &["nt", "ntriples", "n-triples"]),
        (Format::NQuads, &["nq", "nquads", "n-quads"]),
        (Format::Turtle, &["ttl", "turtle"]),
        (Format::TriG, &["trig"]),
        (Format::RdfXml, &["rdf", "xml", "owl", "rdfxml"]),
        (Format::JsonLd, &["jsonld", "json-ld"]),
        (Format::Tsv, &["tsv", "tab"]),
        (Format::Csv, &["csv"]),
        (Format::Pipe, &["pipe", "psv"]),
        (Format::JsonLines, &["jsonl", "ndjson", "json-lines"]),
        (Format::Json, &["json"]),
        (Format::Sqlite, &["sqlite", "sqlite3", "db"]),
        (Format::Xlsx, &["xlsx", "xlsm"]),
    ];

    /// The format of that name or file ending.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Self::NAMES
            .iter()
            .find(|(_, names)| names.contains(&name.as_str()))
            .map(|(f, _)| *f)
    }

    /// The name to print.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(f, _)| *f == self)
            .map_or("", |(_, names)| names[0])
    }

    /// Whether a text without anything in it is of this format: XML and JSON need at least a root.
    pub(crate) fn may_be_empty(self) -> bool {
        matches!(
            self,
            Format::NTriples | Format::NQuads | Format::Turtle | Format::TriG
        )
    }

    /// Whether it is RDF, which may hold no triple at all.
    pub(crate) fn is_rdf(self) -> bool {
        self.may_be_empty() || self.document().is_some()
    }

    /// The parser for formats in which a triple can span lines.
    pub(crate) fn document(self) -> Option<RdfFormat> {
        match self {
            Format::Turtle => Some(RdfFormat::Turtle),
            Format::TriG => Some(RdfFormat::TriG),
            Format::RdfXml => Some(RdfFormat::RdfXml),
            Format::JsonLd => Some(RdfFormat::JsonLd {
                profile: oxrdfio::JsonLdProfileSet::empty(),
            }),
            _ => None,
        }
    }
}
