//! Tables into keys: fields between tabs, commas or bars, and JSON lines.
//!
//! A field is a name, unless it is an `http` or `https` IRI (with or without angle brackets).
//! With `typed`, tails that are numbers, dates, `true` or `false`, or literals as N-Triples writes
//! them, become literals.

use serde_json::Value;

use super::fields::{PARTS, fields, push_field};
use super::format::Format;
use super::wide::Wide;
use crate::key::{self, LiteralKindRef, TripleKeys, XSD};

/// Options for tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Which columns hold head, relation and tail: numbers from 1, or names in the header line.
    pub columns: Option<[String; 3]>,
    /// Whether tails that look like values become literals.
    pub typed: bool,
    /// Set for wide tables, where a row is one entity and its columns are relations. Values become
    /// literals then.
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

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Blank,
    Triple,
    /// A triple, and further fields, which are ignored.
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
            "replace them by tabs: `tr ';' '\\t' < FILE | wherefore load - --format tsv --out GRAPH`",
        ),
        ('\t', "tabs", "read it with `--format tsv`"),
        (',', "commas", "read it with `--format csv`"),
        ('|', "bars", "read it with `--format pipe`"),
    ]
    .into_iter()
    .find(|(sign, _, _)| line.matches(*sign).count() >= 2)
    .map(|(_, name, advice)| (name, advice))
}

/// Reads one record.
pub(crate) fn record(
    record: &str,
    format: Format,
    layout: Layout,
    typed: bool,
    keys: &mut TripleKeys,
) -> Result<RecordKind, String> {
    let record = record.trim_end_matches('\r');
    if record.trim().is_empty() {
        return Ok(RecordKind::Blank);
    }
    let mut plain = [""; 3];
    let owned;
    let is_longer;
    let parts: [&str; 3] = if format != Format::Csv && layout.columns == [0, 1, 2] {
        // the common case, without a list of fields
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
        true => RecordKind::Longer,
        false => RecordKind::Triple,
    })
}

fn short(count: usize) -> String {
    format!(
        "{count} {}, and a triple needs three",
        if count == 1 { "field" } else { "fields" }
    )
}

/// Reads one JSON line: `["h", "r", "t"]`, or an object with the names that a table's header may
/// have. Numbers and booleans become literals, and `{"value", "datatype"?, "language"?}` too.
pub(crate) fn json_line(line: &str, typed: bool, keys: &mut TripleKeys) -> Result<bool, String> {
    if line.trim().is_empty() {
        return Ok(false);
    }
    let value: Value = serde_json::from_str(line).map_err(|e| format!("not JSON: {e}"))?;
    json_value(&value, typed, keys)?;
    Ok(true)
}

/// Reads one triple of JSON.
pub(crate) fn json_value(value: &Value, typed: bool, keys: &mut TripleKeys) -> Result<(), String> {
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
        _ => return Err("not an object or array".to_owned()),
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
            _ => return Err(format!("the {} is not text", PARTS[i])),
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
        let mut keys = TripleKeys::default();
        let found = record(text, format, layout, options.typed, &mut keys)?;
        Ok((found != RecordKind::Blank).then(|| keys.map(|k| String::from_utf8(k).unwrap())))
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
        let mut keys = TripleKeys::default();
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
