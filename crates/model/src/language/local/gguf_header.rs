//! A look through a GGUF file's header before it is parsed: files come from anywhere, and the
//! parser believes some of what they say.
//!
//! ```text
//! magic:u32 version:u32 tensors:n entries:n (key:text kind:u32 value)×entries …   n = u64, u32 in v1
//! ```
//!
//! An alignment of 0 would be divided by, and a list of many small values takes 32 bytes for each.

use std::io::{self, Read, Seek, SeekFrom};

/// Most values in all lists of a header together; large vocabularies have a million.
const MOST_VALUES: u64 = 1 << 24;
/// The longest text, in bytes.
const LONGEST_TEXT: u64 = 64 << 20;
/// Most entries. Files have some dozens.
const MOST_ENTRIES: u64 = 1 << 16;
/// Lists inside one another.
const DEEPEST: u32 = 4;

/// Looks through the header, and goes back to where the reader was. An error says what is wrong;
/// what is merely not GGUF is left to the parser.
pub(super) fn check(reader: &mut (impl Read + Seek)) -> io::Result<()> {
    let start = reader.stream_position()?;
    let end = reader.seek(SeekFrom::End(0))?;
    reader.seek(SeekFrom::Start(start))?;
    let mut header = Header {
        reader,
        end,
        short: false,
        values: 0,
    };
    header.look()?;
    reader.seek(SeekFrom::Start(start))?;
    Ok(())
}

struct Header<'a, R> {
    reader: &'a mut R,
    end: u64,
    /// Version 1 has lengths of 32 bits.
    short: bool,
    values: u64,
}

fn lie(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

impl<R: Read + Seek> Header<'_, R> {
    fn look(&mut self) -> io::Result<()> {
        if self.u32()? != u32::from_le_bytes(*b"GGUF") {
            return Ok(());
        }
        match self.u32()? {
            1 => self.short = true,
            2 | 3 => {}
            _ => return Ok(()),
        }
        let _tensors = self.length()?;
        let entries = self.length()?;
        if entries > MOST_ENTRIES {
            return Err(lie(format!(
                "its header has {entries} entries, and at most {MOST_ENTRIES} are read"
            )));
        }
        for _ in 0..entries {
            let length = self.text_length()?;
            let mut key = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            self.reader.read_exact(&mut key)?;
            let kind = self.u32()?;
            if key == b"general.alignment" {
                self.alignment(kind)?;
            } else {
                self.pass(kind, 0)?;
            }
        }
        Ok(())
    }

    /// Alignments are powers of two; the specification has multiples of 8.
    fn alignment(&mut self, kind: u32) -> io::Result<()> {
        let width = width(kind).filter(|_| kind != 6 && kind != 7 && kind != 12);
        let mut bytes = [0; 8];
        let Some(width) = width else {
            return Err(lie("its `general.alignment` is no whole number"));
        };
        self.reader.read_exact(&mut bytes[..width as usize])?;
        let alignment = u64::from_le_bytes(bytes);
        if !alignment.is_power_of_two() || alignment > 1 << 20 {
            return Err(lie(format!(
                "its `general.alignment` is {alignment}, but must be a power of two up to 1048576"
            )));
        }
        Ok(())
    }

    /// Passes over a value.
    fn pass(&mut self, kind: u32, depth: u32) -> io::Result<()> {
        match (kind, width(kind)) {
            (_, Some(width)) => self.skip(width),
            (8, _) => {
                let length = self.text_length()?;
                self.skip(length)
            }
            (9, _) => {
                let kind = self.u32()?;
                let length = self.length()?;
                self.values = self.values.saturating_add(length);
                if self.values > MOST_VALUES {
                    return Err(lie(format!(
                        "the lists of its header have more than {MOST_VALUES} values"
                    )));
                }
                if depth >= DEEPEST {
                    return Err(lie(format!(
                        "the lists of its header nest deeper than {DEEPEST}"
                    )));
                }
                match width(kind) {
                    Some(width) => self.skip(length * width),
                    None => (0..length).try_for_each(|_| self.pass(kind, depth + 1)),
                }
            }
            _ => Err(lie(format!(
                "its header has a value of the unknown kind {kind}"
            ))),
        }
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let at = self.reader.stream_position()?;
        if bytes > self.end.saturating_sub(at) {
            return Err(lie("its header goes on after the file's end"));
        }
        // within what is buffered, mostly
        self.reader.seek_relative(bytes as i64)
    }

    fn u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.reader.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn length(&mut self) -> io::Result<u64> {
        if self.short {
            return self.u32().map(u64::from);
        }
        let mut bytes = [0; 8];
        self.reader.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn text_length(&mut self) -> io::Result<u64> {
        let length = self.length()?;
        let at = self.reader.stream_position()?;
        if length > LONGEST_TEXT || length > self.end.saturating_sub(at) {
            return Err(lie(format!("its header has a text of {length} bytes")));
        }
        Ok(length)
    }
}

/// Bytes of a value whose kind tells its length.
fn width(kind: u32) -> Option<u64> {
    Some(match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn header(entries: u64, rest: &[&[u8]]) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        rest.iter().for_each(|part| bytes.extend(*part));
        bytes
    }

    fn key(name: &str, kind: u32) -> Vec<u8> {
        let mut bytes = (name.len() as u64).to_le_bytes().to_vec();
        bytes.extend(name.as_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes
    }

    fn reason(bytes: Vec<u8>) -> String {
        check(&mut Cursor::new(bytes)).unwrap_err().to_string()
    }

    #[test]
    fn an_alignment_that_would_be_divided_by_is_refused() {
        for (kind, value) in [
            (4, &[0, 0, 0, 0][..]),
            (0, &[0]),
            (4, &[3, 0, 0, 0]),
            (5, &[0xff; 4]),
            (10, &[0xff; 8]),
        ] {
            let text = reason(header(1, &[&key("general.alignment", kind), value]));
            assert!(text.contains("general.alignment"), "{text}");
        }
        let text = reason(header(1, &[&key("general.alignment", 6), &[0; 4]]));
        assert!(text.contains("no whole number"), "{text}");
        let good = header(1, &[&key("general.alignment", 4), &64u32.to_le_bytes()]);
        let mut reader = Cursor::new(good);
        check(&mut reader).unwrap();
        assert_eq!(reader.position(), 0);
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let far = (1u64 << 40).to_le_bytes();
        let text = reason(header(1, &[&key("a", 8), &far]));
        assert!(text.contains("a text of"), "{text}");
        let list = [&0u32.to_le_bytes()[..], &far].concat();
        assert!(reason(header(1, &[&key("a", 9), &list])).contains("values"));
        let list = [&10u32.to_le_bytes()[..], &1000u64.to_le_bytes()].concat();
        assert!(reason(header(1, &[&key("a", 9), &list])).contains("end"));
        assert!(reason(header(1 << 40, &[])).contains("entries"));
        assert!(reason(header(1, &[&key("a", 77)])).contains("kind 77"));
        let nested = [&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat();
        let text = reason(header(1, &[&key("a", 9), &nested.repeat(10)]));
        assert!(text.contains("nest deeper"), "{text}");
        // cut short
        assert!(check(&mut Cursor::new(header(1, &[]))).is_err());
        // something else: the parser tells
        assert!(check(&mut Cursor::new(b"PK\x03\x04".to_vec())).is_ok());
    }
}
