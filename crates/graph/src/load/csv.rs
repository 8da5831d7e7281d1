//! Records and fields of CSV.
//!
//! RFC 4180, "Common Format and MIME Type for Comma-Separated Values (CSV) Files", 2005: a field
//! whose first character is a quote ends at the next quote that is not doubled, and may contain
//! commas, line ends and doubled quotes. Anywhere else a quote is an ordinary character, as in
//! `6" pipe,is a,part`.
//!
//! Departures: spaces before the opening quote are skipped, and text between the closing quote and
//! the next comma belongs to the field. Exported files contain both. Kept by hand for these, and to
//! cut a large file at the ends of its records; csv-core has neither.

use std::borrow::Cow;

/// Calls `on_newline(position, is_quoted)` for every newline of `text`, which begins with a record.
#[inline]
fn scan(text: &[u8], mut on_newline: impl FnMut(usize, bool)) {
    let mut is_quoted = false;
    // the position of the latest closing quote; a quote right after it is a doubled one
    let mut closed = None;
    for at in memchr::memchr2_iter(b'"', b'\n', text) {
        if text[at] == b'\n' {
            on_newline(at, is_quoted);
        } else if is_quoted {
            is_quoted = false;
            closed = Some(at);
        } else {
            is_quoted = closed.is_some_and(|closed| closed + 1 == at) || opens_field(&text[..at]);
        }
    }
}

/// Whether a quote after `before`, which ends outside of quotes, is the first character of a field.
fn opens_field(before: &[u8]) -> bool {
    let last = before.iter().rfind(|byte| **byte != b' ');
    last.is_none_or(|byte| matches!(byte, b',' | b'\n'))
}

/// Calls `each(record, line)` for every record of a CSV text that begins with one; lines count
/// from 0.
pub(crate) fn records(text: &[u8], mut each: impl FnMut(&[u8], u64)) {
    let (mut from, mut line, mut first) = (0, 0, 0);
    scan(text, |at, is_quoted| {
        line += 1;
        if !is_quoted {
            each(&text[from..at], first);
            (from, first) = (at + 1, line);
        }
    });
    if from < text.len() {
        each(&text[from..], first);
    }
}

/// Where the last whole record of a CSV text ends, its newline included.
pub(super) fn last_record_end(text: &[u8]) -> Option<usize> {
    let mut end = None;
    scan(text, |at, is_quoted| {
        if !is_quoted {
            end = Some(at + 1);
        }
    });
    end
}

/// Splits a CSV record into fields.
pub(super) fn fields(record: &str) -> Vec<Cow<'_, str>> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        records(text.as_bytes(), |record, line| {
            found.push((String::from_utf8(record.to_vec()).unwrap(), line));
        });
        found
    }

    /// RFC 4180 character by character, with the departures; fields are trimmed.
    fn naive(text: &str) -> Vec<Vec<String>> {
        #[derive(PartialEq)]
        enum State {
            FieldStart,
            Unquoted,
            Quoted,
        }
        let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
        let mut state = State::FieldStart;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match (character, &state) {
                ('"', State::FieldStart) => {
                    field.clear();
                    state = State::Quoted;
                }
                ('"', State::Quoted) => match characters.next_if_eq(&'"') {
                    Some(quote) => field.push(quote),
                    None => state = State::Unquoted,
                },
                (_, State::Quoted) => field.push(character),
                (',', _) => {
                    row.push(std::mem::take(&mut field).trim().to_owned());
                    state = State::FieldStart;
                }
                ('\n', _) => {
                    row.push(std::mem::take(&mut field).trim().to_owned());
                    rows.push(std::mem::take(&mut row));
                    state = State::FieldStart;
                }
                _ => {
                    field.push(character);
                    if character != ' ' {
                        state = State::Unquoted;
                    }
                }
            }
        }
        if !text.is_empty() && (!text.ends_with('\n') || state == State::Quoted) {
            row.push(std::mem::take(&mut field).trim().to_owned());
            rows.push(row);
        }
        rows
    }

    #[test]
    fn quoted_fields_hold_line_ends() {
        let found = all("a,b,c\n\"x\ny\",r,t\nlast,r,t");
        assert_eq!(found.len(), 3);
        assert_eq!(found[1], ("\"x\ny\",r,t".into(), 1));
        assert_eq!(found[2].1, 3);
        assert_eq!(last_record_end(b"a\n\"b\nc\",d\n\"e\n"), Some(10));
    }

    #[test]
    fn a_quote_inside_an_unquoted_field_is_an_ordinary_character() {
        let text = "6\" pipe,is a,part\n\"x\"y\"z,r,t\na \"b\",r,t\n";
        let found: Vec<_> = all(text).into_iter().map(|(record, _)| record).collect();
        assert_eq!(found, text.lines().collect::<Vec<_>>());
        assert_eq!(fields(&found[0]), ["6\" pipe", "is a", "part"]);
        assert_eq!(fields(&found[1]), ["xy\"z", "r", "t"]);
        assert_eq!(fields(&found[2]), ["a \"b\"", "r", "t"]);
        assert_eq!(last_record_end(text.as_bytes()), Some(text.len()));
    }

    proptest! {
        #[test]
        fn records_and_fields_are_those_of_the_naive_reader(text in "[\"\n, ab]{0,24}") {
            let mut found: Vec<Vec<String>> = Vec::new();
            records(text.as_bytes(), |record, _| {
                let record = std::str::from_utf8(record).unwrap();
                found.push(fields(record).iter().map(|f| f.trim().to_owned()).collect());
            });
            prop_assert_eq!(found, naive(&text));
        }
    }
}
