//! Fields of a table, and the keys of the terms that they stand for.

use std::borrow::Cow;
use std::str::FromStr;

use super::csv;
use super::format::Format;
use crate::key::{self, LiteralKindRef, XSD};

/// What the three columns of a triple hold.
pub(super) const PARTS: [&str; 3] = ["head", "relation", "tail"];

/// The first record of a text.
pub(crate) fn first_record(text: &[u8], format: Format) -> &[u8] {
    if format != Format::Csv {
        return text.split(|b| *b == b'\n').next().unwrap_or_default();
    }
    let mut length = None;
    csv::records(text, |record, _| {
        length.get_or_insert(record.len());
    });
    &text[..length.unwrap_or(0)]
}

/// Splits a record into fields.
pub(super) fn fields(record: &str, format: Format) -> Vec<Cow<'_, str>> {
    match format {
        Format::Csv => csv::fields(record),
        Format::Pipe => record.split('|').map(Cow::Borrowed).collect(),
        _ => record.split('\t').map(Cow::Borrowed).collect(),
    }
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

/// Whether a text is a number, a date or a truth value.
pub(super) fn is_value(field: &str) -> bool {
    datatype(field).is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_of_csv_may_have_line_ends_in_quotes() {
        let quoted = first_record(b"\"a\nb\",c\nd,e", Format::Csv);
        assert_eq!(quoted, b"\"a\nb\",c");
    }
}
