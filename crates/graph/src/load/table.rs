//! Tables into keys: fields between tabs, commas or bars, and JSON lines.
//!
//! A field is a name, unless it is an `http` or `https` IRI (with or without angle brackets).
//! With `typed`, tails that are numbers, dates, `true` or `false`, or literals as N-Triples writes
//! them, become literals.

use std::borrow::Cow;
use std::str::FromStr;

use serde_json::Value;

use super::rdf::Keys;
use super::source::Format;
use super::wide::Wide;
use crate::key::{self, LiteralKindRef, XSD};

/// How to read a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Which columns hold head, relation and tail: numbers from 1, or names in the header line.
    pub columns: Option<[String; 3]>,
    /// Whether tails that look like values become literals.
    pub typed: bool,
    /// Where a row is one thing and its columns are relations: values become literals then.
    pub wide: Option<Wide>,
}

/// Where head, relation and tail stand, and whether the first line only names columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    columns: [usize; 3],
    pub(crate) has_header: bool,
    /// Whether neither the user nor a header says where head, relation and tail stand.
    pub(crate) is_guessed: bool,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Blank,
    Triple,
    /// A triple, and fields beyond the first three that are not read.
    Longer,
}

/// Names under which head, relation and tail stand in a header line or a JSON object.
const HEADERS: [&[&str]; 3] = [
    &[
        "head", "subject", "source", "s", "h", "from", "entity1", "start",
    ],
    &[
        "relation",
        "predicate",
        "rel",
        "p",
        "r",
        "edge",
        "property",
        "type",
        "label",
    ],
    &["tail", "object", "target", "o", "t", "to", "entity2", "end"],
];

impl Layout {
    /// Decides by the options and the table's first line.
    pub(crate) fn new(
        options: &TableOptions,
        first_line: &str,
        format: Format,
    ) -> Result<Self, String> {
        let cells: Vec<String> = fields(first_line, format)
            .into_iter()
            .map(|f| f.trim().to_lowercase())
            .collect();
        let find = |names: &[&str]| cells.iter().position(|c| names.contains(&c.as_str()));
        match &options.columns {
            Some(columns) => {
                let mut found = [0; 3];
                let mut has_header = false;
                for (place, column) in found.iter_mut().zip(columns) {
                    *place = match column.parse::<usize>() {
                        Ok(number @ 1..) => number - 1,
                        _ => {
                            has_header = true;
                            find(&[column.trim().to_lowercase().as_str()]).ok_or_else(|| {
                                format!("its first line names no column `{column}`")
                            })?
                        }
                    };
                }
                Ok(Self {
                    columns: found,
                    has_header,
                    is_guessed: false,
                })
            }
            None => {
                let [heads, relations, tails] = HEADERS;
                Ok(match (find(heads), find(relations), find(tails)) {
                    (Some(h), Some(r), Some(t)) => Self {
                        columns: [h, r, t],
                        has_header: true,
                        is_guessed: false,
                    },
                    _ => Self {
                        columns: [0, 1, 2],
                        has_header: false,
                        is_guessed: true,
                    },
                })
            }
        }
    }
}

/// Whether a line that is not taken for a header looks like one all the same: two of its first
/// three fields are names of columns.
pub(crate) fn is_like_header(line: &str, format: Format) -> bool {
    let cells = fields(line, format);
    let named = cells.iter().zip(HEADERS).filter(|(cell, names)| {
        let cell = cell.trim().to_lowercase();
        names.contains(&cell.as_str())
    });
    cells.len() >= 3 && named.count() == 2
}

/// What stands between the fields of a line, where it is not what the format says: its name and
/// what to do.
pub(crate) fn other_separator(line: &str, format: Format) -> Option<(&'static str, &'static str)> {
    if fields(line, format).len() >= 3 {
        return None;
    }
    [
        (
            ';',
            "semicolons",
            "turn them into tabs: `tr ';' '\\t' < FILE | wherefore load - --format tsv --out GRAPH`",
        ),
        ('\t', "tabs", "read it with `--format tsv`"),
        (',', "commas", "read it with `--format csv`"),
        ('|', "bars", "read it with `--format pipe`"),
    ]
    .into_iter()
    .find(|(sign, _, _)| line.matches(*sign).count() >= 2)
    .map(|(_, name, advice)| (name, advice))
}

/// Cuts a record into fields.
pub(super) fn fields(record: &str, format: Format) -> Vec<Cow<'_, str>> {
    match format {
        Format::Csv => csv_fields(record),
        Format::Pipe => record.split('|').map(Cow::Borrowed).collect(),
        _ => record.split('\t').map(Cow::Borrowed).collect(),
    }
}

fn csv_fields(record: &str) -> Vec<Cow<'_, str>> {
    let mut out = Vec::new();
    let mut rest = record;
    loop {
        if let Some(quoted) = rest.trim_start_matches(' ').strip_prefix('"') {
            let mut text = String::new();
            let mut body = quoted;
            // up to the quote that is not doubled
            let after = loop {
                match body.find('"') {
                    None => {
                        text.push_str(body);
                        break "";
                    }
                    Some(at) => {
                        text.push_str(&body[..at]);
                        body = &body[at + 1..];
                        match body.strip_prefix('"') {
                            Some(next) => {
                                text.push('"');
                                body = next;
                            }
                            None => break body,
                        }
                    }
                }
            };
            let end = after.find(',');
            text.push_str(after[..end.unwrap_or(after.len())].trim_end());
            out.push(Cow::Owned(text));
            match end {
                Some(at) => rest = &after[at + 1..],
                None => return out,
            }
        } else {
            match rest.split_once(',') {
                Some((field, next)) => {
                    out.push(Cow::Borrowed(field));
                    rest = next;
                }
                None => {
                    out.push(Cow::Borrowed(rest));
                    return out;
                }
            }
        }
    }
}

/// Calls `each(record, line)` for every record of a CSV block.
pub(crate) fn csv_records(block: &[u8], mut each: impl FnMut(&[u8], u64)) {
    let (mut inside, mut from, mut line, mut first) = (false, 0, 0, 0);
    for at in memchr::memchr2_iter(b'"', b'\n', block) {
        if block[at] == b'"' {
            inside = !inside;
        } else {
            line += 1;
            if !inside {
                each(&block[from..at], first);
                (from, first) = (at + 1, line);
            }
        }
    }
    if from < block.len() {
        each(&block[from..], first);
    }
}

const PARTS: [&str; 3] = ["head", "relation", "tail"];

/// Reads one record.
pub(crate) fn record(
    record: &str,
    format: Format,
    layout: Layout,
    typed: bool,
    keys: &mut Keys,
) -> Result<Record, String> {
    let record = record.trim_end_matches('\r');
    if record.trim().is_empty() {
        return Ok(Record::Blank);
    }
    let mut plain = [""; 3];
    let owned;
    let is_longer;
    let parts: [&str; 3] = if format != Format::Csv && layout.columns == [0, 1, 2] {
        // the everyday table: no list of fields is made
        let separator = if format == Format::Pipe { '|' } else { '\t' };
        let mut split = record.split(separator);
        for (i, part) in plain.iter_mut().enumerate() {
            *part = split.next().ok_or_else(|| short(i))?;
        }
        if format == Format::Pipe && split.next().is_some() {
            return Err("more than three fields between bars".to_owned());
        }
        is_longer = split.any(|field| !field.trim().is_empty());
        plain
    } else {
        owned = fields(record, format);
        is_longer = owned.iter().skip(3).any(|field| !field.trim().is_empty());
        for (part, column) in plain.iter_mut().zip(layout.columns) {
            *part = owned.get(column).ok_or_else(|| short(owned.len()))?;
        }
        plain
    };
    for (i, part) in parts.into_iter().enumerate() {
        keys[i].clear();
        push_field(&mut keys[i], part, i, typed)?;
    }
    Ok(match is_longer {
        true => Record::Longer,
        false => Record::Triple,
    })
}

fn short(count: usize) -> String {
    format!(
        "{count} {}, and a triple needs three",
        if count == 1 { "field" } else { "fields" }
    )
}

pub(super) fn push_field(
    key: &mut Vec<u8>,
    field: &str,
    part: usize,
    typed: bool,
) -> Result<(), String> {
    let field = field.trim();
    if field.is_empty() {
        return Err(format!("the {} is empty", PARTS[part]));
    }
    if field.contains('\0') {
        return Err(format!("the {} holds a NUL byte", PARTS[part]));
    }
    if typed && part == 2 && push_value(key, field) {
        return Ok(());
    }
    match as_iri(field) {
        Some(iri) => key::push_iri(key, iri),
        None => key::push_name(key, field),
    }
    Ok(())
}

/// The key of an entity as a table would write it.
pub(crate) fn entity_key(name: &str) -> Vec<u8> {
    let mut key = Vec::new();
    match as_iri(name) {
        Some(iri) => key::push_iri(&mut key, iri),
        None => key::push_name(&mut key, name),
    }
    key
}

/// The IRI, if the field is one.
fn as_iri(field: &str) -> Option<&str> {
    let bare = field
        .strip_prefix('<')
        .and_then(|f| f.strip_suffix('>'))
        .unwrap_or(field);
    if !bare.starts_with("http://") && !bare.starts_with("https://") {
        return None;
    }
    oxrdf::NamedNode::new(bare).is_ok().then_some(bare)
}

/// Writes a literal if the field looks like a value.
fn push_value(key: &mut Vec<u8>, field: &str) -> bool {
    if field.starts_with('"') {
        return match oxrdf::Literal::from_str(field) {
            Ok(literal) => {
                key::push_object(key, literal.as_ref().into(), 0);
                true
            }
            Err(_) => false,
        };
    }
    match datatype(field) {
        Some(local) => {
            key::push_literal(key, field, LiteralKindRef::Typed(&format!("{XSD}{local}")));
            true
        }
        None => false,
    }
}

/// The XML Schema type that a text looks like.
fn datatype(field: &str) -> Option<&'static str> {
    let unsigned = field.strip_prefix(['-', '+']).unwrap_or(field);
    let first = unsigned.bytes().next()?;
    if !first.is_ascii_digit() && first != b'.' {
        return matches!(field, "true" | "false").then_some("boolean");
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Some("integer");
    }
    let decimal = |s: &str| {
        s.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && s.bytes().filter(|b| *b == b'.').count() <= 1
            && s.bytes().any(|b| b.is_ascii_digit())
    };
    if decimal(unsigned) {
        return Some("decimal");
    }
    if let Some((mantissa, exponent)) = unsigned.split_once(['e', 'E']) {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if decimal(mantissa) && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return Some("double");
        }
    }
    let is_date = |s: &str| {
        let mut parts = s.splitn(3, '-');
        let number = |part: Option<&str>, digits: usize| {
            part.filter(|p| p.len() == digits && p.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|p| p.parse::<u32>().ok())
        };
        let (year, month, day) = (
            number(parts.next(), 4),
            number(parts.next(), 2),
            number(parts.next(), 2),
        );
        matches!((year, month, day), (Some(_), Some(1..=12), Some(1..=31)))
    };
    if is_date(field) {
        return Some("date");
    }
    match field.split_once('T') {
        Some((date, time)) if is_date(date) && time.len() >= 8 && time.is_char_boundary(8) => {
            let clock = &time.as_bytes()[..8];
            let digits = [0, 1, 3, 4, 6, 7]
                .iter()
                .all(|&i| clock[i].is_ascii_digit());
            (digits && clock[2] == b':' && clock[5] == b':').then_some("dateTime")
        }
        _ => None,
    }
}

/// Reads one JSON line: `["h", "r", "t"]`, or an object with the names that a table's header may
/// have. Numbers and booleans become literals, and `{"value", "datatype"?, "language"?}` too.
pub(crate) fn json_line(line: &str, typed: bool, keys: &mut Keys) -> Result<bool, String> {
    if line.trim().is_empty() {
        return Ok(false);
    }
    let value: Value = serde_json::from_str(line).map_err(|e| format!("not JSON: {e}"))?;
    json_value(&value, typed, keys)?;
    Ok(true)
}

/// Reads one triple of JSON.
pub(crate) fn json_value(value: &Value, typed: bool, keys: &mut Keys) -> Result<(), String> {
    let parts: [&Value; 3] = match value {
        Value::Array(items) if items.len() == 3 => [&items[0], &items[1], &items[2]],
        Value::Array(items) => return Err(short(items.len())),
        Value::Object(object) => {
            let find = |part: usize| {
                HEADERS[part]
                    .iter()
                    .find_map(|name| object.get(*name))
                    .ok_or_else(|| format!("no `{}`", PARTS[part]))
            };
            [find(0)?, find(1)?, find(2)?]
        }
        _ => return Err("neither an object nor an array".to_owned()),
    };
    for (i, part) in parts.into_iter().enumerate() {
        keys[i].clear();
        match part {
            Value::String(text) => push_field(&mut keys[i], text, i, typed)?,
            Value::Number(number) if i == 2 => {
                let local = if number.is_f64() { "double" } else { "integer" };
                let kind = format!("{XSD}{local}");
                key::push_literal(
                    &mut keys[i],
                    &number.to_string(),
                    LiteralKindRef::Typed(&kind),
                );
            }
            Value::Bool(truth) if i == 2 => {
                let kind = format!("{XSD}boolean");
                key::push_literal(
                    &mut keys[i],
                    &truth.to_string(),
                    LiteralKindRef::Typed(&kind),
                );
            }
            Value::Object(literal) if i == 2 => {
                let text = |name: &str| literal.get(name).and_then(Value::as_str);
                let value = text("value").ok_or("a tail without `value`")?;
                let kind = match (text("language"), text("datatype")) {
                    (Some(tag), _) => LiteralKindRef::Language(tag),
                    (None, Some(datatype)) => LiteralKindRef::Typed(datatype),
                    (None, None) => LiteralKindRef::Plain,
                };
                key::push_literal(&mut keys[i], value, kind);
            }
            _ => return Err(format!("the {} is no text", PARTS[i])),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        text: &str,
        format: Format,
        options: &TableOptions,
    ) -> Result<Option<[String; 3]>, String> {
        let layout = Layout::new(options, text, format)?;
        let mut keys = Keys::default();
        let found = record(text, format, layout, options.typed, &mut keys)?;
        Ok((found != Record::Blank).then(|| keys.map(|k| String::from_utf8(k).unwrap())))
    }

    fn triple(head: &str, relation: &str, tail: &str) -> Result<Option<[String; 3]>, String> {
        Ok(Some([head.into(), relation.into(), tail.into()]))
    }

    #[test]
    fn fields_become_names_and_iris() {
        let plain = TableOptions::default();
        assert_eq!(
            read("a\tr\tb\tx\r", Format::Tsv, &plain),
            triple("na", "nr", "nb")
        );
        assert_eq!(
            read(" a b |r|c", Format::Pipe, &plain),
            triple("na b", "nr", "nc")
        );
        assert_eq!(
            read("<http://a/b>\tr\thttp://a/c d", Format::Tsv, &plain),
            triple("ihttp://a/b", "nr", "nhttp://a/c d")
        );
        assert_eq!(read("  ", Format::Tsv, &plain), Ok(None));
    }

    #[test]
    fn csv_quotes_hold_commas_quotes_and_line_ends() {
        let plain = TableOptions::default();
        assert_eq!(
            read("\"a, \"\"b\"\"\",r, \"c\nd\"", Format::Csv, &plain),
            triple("na, \"b\"", "nr", "nc\nd")
        );
        assert!(read("a,b", Format::Csv, &plain).is_err());
        let mut records = Vec::new();
        csv_records(b"a,b,c\n\"x\ny\",r,t\nlast,r,t", |r, line| {
            records.push((r.to_vec(), line));
        });
        assert_eq!(records.len(), 3);
        assert_eq!(records[1].0, b"\"x\ny\",r,t");
        assert_eq!(records[2].1, 3);
    }

    #[test]
    fn what_looks_like_a_header_or_has_other_separators_is_seen() {
        assert!(is_like_header("Subject,verb,OBJECT", Format::Csv));
        assert!(is_like_header("head\trelation\tanswer\tscore", Format::Tsv));
        for line in ["Ada,born in,London", "s,likes,b", "from,to"] {
            assert!(!is_like_header(line, Format::Csv), "{line}");
        }
        let between = |line, format| other_separator(line, format).map(|(name, _)| name);
        assert_eq!(between("a;b;c", Format::Csv), Some("semicolons"));
        assert_eq!(between("a\tb\tc", Format::Csv), Some("tabs"));
        assert_eq!(between("a,b,c", Format::Tsv), Some("commas"));
        assert_eq!(between("a;b;c,d,e", Format::Csv), None);
        assert_eq!(between("a b c", Format::Csv), None);
    }

    #[test]
    fn headers_of_the_usual_kinds_are_no_triples() {
        let plain = TableOptions::default();
        for line in [
            "subject,predicate,object",
            "Head,Relation,Tail",
            "S,P,O",
            "\"From\",\"Rel\",\"To\"",
        ] {
            let layout = Layout::new(&plain, line, Format::Csv).unwrap();
            assert!(layout.has_header && !layout.is_guessed, "{line}");
        }
    }

    #[test]
    fn headers_and_column_options_choose_columns() {
        let plain = TableOptions::default();
        let header = Layout::new(&plain, "object,weight,Subject,predicate", Format::Csv).unwrap();
        assert_eq!(
            header,
            Layout {
                columns: [2, 3, 0],
                has_header: true,
                is_guessed: false
            }
        );
        let by_number = TableOptions {
            columns: Some(["3".into(), "2".into(), "1".into()]),
            ..TableOptions::default()
        };
        assert_eq!(
            read("a\tr\tb", Format::Tsv, &by_number),
            triple("nb", "nr", "na")
        );
        let by_name = TableOptions {
            columns: Some(["x".into(), "y".into(), "z".into()]),
            ..TableOptions::default()
        };
        assert!(Layout::new(&by_name, "x,y,w", Format::Csv).is_err());
        assert!(
            Layout::new(&by_name, "z,y,x", Format::Csv)
                .unwrap()
                .has_header
        );
    }

    #[test]
    fn bad_records_say_why() {
        let plain = TableOptions::default();
        assert_eq!(
            read("a\tb", Format::Tsv, &plain),
            Err("2 fields, and a triple needs three".into())
        );
        assert_eq!(
            read("a\t\tb", Format::Tsv, &plain),
            Err("the relation is empty".into())
        );
        assert_eq!(
            read("a\tr\tb\0", Format::Tsv, &plain),
            Err("the tail holds a NUL byte".into())
        );
        assert!(read("a|r|b|c", Format::Pipe, &plain).is_err());
    }

    #[test]
    fn typed_tails_become_literals() {
        let typed = TableOptions {
            typed: true,
            ..TableOptions::default()
        };
        let tail = |text: &str| {
            read(&format!("a\tr\t{text}"), Format::Tsv, &typed)
                .unwrap()
                .unwrap()[2]
                .clone()
        };
        assert_eq!(tail("5"), "l5\0^#integer");
        assert_eq!(tail("-5.25"), "l-5.25\0^#decimal");
        assert_eq!(tail("1e6"), "l1e6\0^#double");
        assert_eq!(tail("1994-02-28"), "l1994-02-28\0^#date");
        assert_eq!(
            tail("1994-02-28T10:00:00Z"),
            "l1994-02-28T10:00:00Z\0^#dateTime"
        );
        assert_eq!(tail("true"), "ltrue\0^#boolean");
        assert_eq!(tail("\"chat\"@fr"), "lchat\0@fr");
        for name in [
            "1994-13-01",
            "1.2.3",
            "5 km",
            "e5",
            "-",
            "\"unclosed",
            "12e",
        ] {
            assert!(tail(name).starts_with('n'), "{name}");
        }
    }

    #[test]
    fn json_lines_are_objects_or_arrays() {
        let mut keys = Keys::default();
        let mut read = |text: &str| {
            json_line(text, false, &mut keys)
                .map(|found| found.then(|| keys.clone().map(|k| String::from_utf8(k).unwrap())))
        };
        assert_eq!(read(r#"["a","r","b"]"#), triple("na", "nr", "nb"));
        assert_eq!(
            read(r#"{"subject":"a","predicate":"r","object":5}"#),
            triple("na", "nr", "l5\0^#integer")
        );
        assert_eq!(
            read(r#"{"h":"a","r":"r","t":{"value":"chat","language":"FR"}}"#),
            triple("na", "nr", "lchat\0@fr")
        );
        assert_eq!(read("  "), Ok(None));
        for bad in [
            "5",
            "[1,2]",
            r#"{"head":"a"}"#,
            "{",
            r#"[null,"r","b"]"#,
            r#"["a","r",""]"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
