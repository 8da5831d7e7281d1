//! The elements of a JSON array, one at a time: the array itself may be of any length.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::blocks::LONGEST_RECORD;
use super::wide::JsonElement;

/// Why reading ended before the array did.
#[derive(Debug)]
pub(crate) enum JsonArrayError {
    /// The text is no array of JSON: line, reason.
    Text(u64, String),
    /// The text cannot be read.
    Io(io::Error),
}

/// Calls `each(element, line)` for each element with the line that it ends on; false ends it.
pub(crate) fn elements(
    text: impl BufRead,
    mut each: impl FnMut(JsonElement, u64) -> bool,
) -> Result<(), JsonArrayError> {
    let at = ReadPosition::default();
    let mut reader = serde_json::Deserializer::from_reader(PositionReader { text, at: &at });
    let mut stopped = false;
    let seed = Elements {
        at: &at,
        stopped: &mut stopped,
        each: &mut each,
    };
    let read = seed.deserialize(&mut reader).and_then(|()| reader.end());
    match read {
        _ if stopped => Ok(()),
        Ok(()) => Ok(()),
        Err(_) if at.since.get() > LONGEST_RECORD as u64 => Err(JsonArrayError::Text(
            at.lines.get() + 1,
            format!("an element is longer than {} MiB", LONGEST_RECORD >> 20),
        )),
        Err(error) if error.is_io() => Err(JsonArrayError::Io(error.into())),
        Err(error) => Err(JsonArrayError::Text(
            at.lines.get() + 1,
            format!("it is not a JSON array: {error}"),
        )),
    }
}

/// How far the text was read.
#[derive(Debug, Default)]
struct ReadPosition {
    /// Ends of lines.
    lines: Cell<u64>,
    /// Bytes since the last element.
    since: Cell<u64>,
}

struct PositionReader<'a, R> {
    text: R,
    at: &'a ReadPosition,
}

impl<R: BufRead> Read for PositionReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        let lines = buffer[..read].iter().filter(|b| **b == b'\n').count();
        self.at.lines.set(self.at.lines.get() + lines as u64);
        self.at.since.set(self.at.since.get() + read as u64);
        if self.at.since.get() > LONGEST_RECORD as u64 {
            return Err(io::Error::other("an element is too long"));
        }
        Ok(read)
    }
}

struct Elements<'a, F> {
    at: &'a ReadPosition,
    stopped: &'a mut bool,
    each: &'a mut F,
}

impl<'de, F: FnMut(JsonElement, u64) -> bool> DeserializeSeed<'de> for Elements<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(JsonElement, u64) -> bool> Visitor<'de> for Elements<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element()? {
            self.at.since.set(0);
            if !(self.each)(element, self.at.lines.get() + 1) {
                *self.stopped = true;
                return Ok(());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(text: &str) -> (usize, Result<(), JsonArrayError>) {
        let mut count = 0;
        let ended = elements(Cursor::new(text.as_bytes()), |_, _| {
            count += 1;
            true
        });
        (count, ended)
    }

    #[test]
    fn elements_come_one_at_a_time_with_their_lines() {
        let mut lines = Vec::new();
        let text = "[\n {\"a\": 1},\n {\"a\":\n 2}, [1]\n]\n";
        elements(Cursor::new(text), |element, line| {
            lines.push((matches!(element, JsonElement::Object(_)), line));
            true
        })
        .unwrap();
        assert_eq!(lines, [(true, 2), (true, 4), (false, 4)]);
        let mut first = 0;
        elements(Cursor::new("[1, 2, oh"), |_, _| {
            first += 1;
            false
        })
        .unwrap();
        assert_eq!(first, 1);
    }

    #[test]
    fn what_is_no_array_is_told_with_its_line() {
        for (text, count, line) in [
            ("[{\"a\": 1},\n{\"a\": oh}]", 1, 2),
            ("[1, 2", 2, 1),
            ("[1] [2]", 1, 1),
            ("{}", 0, 1),
            ("", 0, 1),
        ] {
            let (read, ended) = read(text);
            assert_eq!(read, count, "{text}");
            let Err(JsonArrayError::Text(at, reason)) = ended else {
                panic!("{text}: {ended:?}");
            };
            assert_eq!(at, line, "{text}: {reason}");
        }
        let deep = "[".repeat(100_000);
        assert!(read(&deep).1.is_err());
        let long = format!("[\"{}\"]", "x".repeat(LONGEST_RECORD + 1));
        let Err(JsonArrayError::Text(_, reason)) = read(&long).1 else {
            panic!("a long element was read");
        };
        assert_eq!(reason, "an element is longer than 16 MiB");
    }
}
