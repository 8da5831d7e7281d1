//! The pages of a SQLite database: records of its tables, read in the order of their keys.
//!
//! SQLite, "Database File Format", sections 1 and 2 (<https://www.sqlite.org/fileformat2.html>).
//! Nothing is written, and nothing that the file says is believed: pages are counted, so that no
//! link between them leads round for ever, and lengths are held against what is there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::super::blocks::LONGEST_RECORD;

/// What a database begins with.
pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Bytes of the header of a database, at the beginning of its first page.
const HEADER: usize = 100;
/// Levels of a tree: 2^31 pages of at least two children have fewer.
const MAX_DEPTH: usize = 32;

/// Why a database cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is damaged, or of a kind that is not read.
    Database(String),
    /// The file cannot be read.
    Io(io::Error),
    /// Whoever takes the records wants no more.
    Stopped,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it is cut short"),
            _ => Self::Io(error),
        }
    }
}

fn damaged(reason: &str) -> Fault {
    Fault::Database(format!("the database is damaged: {reason}"))
}

/// One value of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob,
}

/// Which trees of pages there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// Of a table: records by their number.
    Table,
    /// Of an index, or of a table `WITHOUT ROWID`: records by their values.
    Index,
}

/// A database that is read.
#[derive(Debug)]
pub(crate) struct Pages {
    file: File,
    size: usize,
    /// Bytes of a page that hold data.
    usable: usize,
    count: u64,
    encoding: u32,
}

impl Pages {
    /// Opens a database and reads its header.
    pub(crate) fn open(mut file: File) -> Result<Self, Fault> {
        let mut header = [0; HEADER];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut header)?;
        if &header[..16] != MAGIC {
            return Err(Fault::Database("it is no SQLite database".into()));
        }
        let size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 1 << 16,
            size => usize::from(size),
        };
        if !size.is_power_of_two() || size < 512 {
            return Err(damaged("its pages have no size"));
        }
        let usable = size - usize::from(header[20]);
        // the format's own minimum
        if usable < 480 {
            return Err(damaged("its pages hold no data"));
        }
        let encoding = u32::from_be_bytes([header[56], header[57], header[58], header[59]]);
        let count = file.metadata()?.len().div_ceil(size as u64);
        Ok(Self {
            file,
            size,
            usable,
            count,
            encoding,
        })
    }

    /// Calls `each(number, values)` for each record of a tree.
    pub(crate) fn records(
        &mut self,
        root: u32,
        tree: Tree,
        each: &mut dyn FnMut(i64, Vec<Value>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut left = self.count;
        self.walk(root, tree, 0, &mut left, each)
    }

    fn walk(
        &mut self,
        number: u32,
        tree: Tree,
        depth: usize,
        left: &mut u64,
        each: &mut dyn FnMut(i64, Vec<Value>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return Err(damaged("a table's pages lead round"));
        }
        let page = self.page(number, left)?;
        let start = if number == 1 { HEADER } else { 0 };
        let at = |place: usize| page.get(start + place).copied();
        let kind = at(0).unwrap_or_default();
        let (is_leaf, expected) = (kind & 8 != 0, if tree == Tree::Table { 0x05 } else { 0x02 });
        if kind & !8 != expected {
            return Err(damaged("a page is not what another says it is"));
        }
        let cells = usize::from(u16_at(&page, start + 3)?);
        let first = start + if is_leaf { 8 } else { 12 };
        for cell in 0..cells {
            let mut place = usize::from(u16_at(&page, first + 2 * cell)?);
            if !is_leaf {
                let child = u32_at(&page, place)?;
                self.walk(child, tree, depth + 1, left, each)?;
                place += 4;
            }
            if tree == Tree::Table && !is_leaf {
                continue; // its key alone
            }
            let mut rest = page.get(place..self.usable).unwrap_or_default();
            let length = varint(&mut rest)?;
            let number = match tree {
                Tree::Table => varint(&mut rest)?,
                Tree::Index => 0,
            };
            let payload = self.payload(length, rest, tree, left)?;
            each(number, self.values(&payload)?)?;
        }
        if !is_leaf {
            let last = u32_at(&page, start + 8)?;
            self.walk(last, tree, depth + 1, left, each)?;
        }
        Ok(())
    }

    fn page(&mut self, number: u32, left: &mut u64) -> Result<Vec<u8>, Fault> {
        *left = (left.checked_sub(1)).ok_or_else(|| damaged("a table's pages lead round"))?;
        let place = u64::from(number).checked_sub(1).filter(|p| *p < self.count);
        let place = place.ok_or_else(|| damaged("a page lies beyond its end"))?;
        let mut page = vec![0; self.size];
        self.file.seek(SeekFrom::Start(place * self.size as u64))?;
        self.file.read_exact(&mut page)?;
        Ok(page)
    }

    /// The bytes of a record: those in its page, and those in the pages that it flows over into.
    fn payload(
        &mut self,
        length: i64,
        here: &[u8],
        tree: Tree,
        left: &mut u64,
    ) -> Result<Vec<u8>, Fault> {
        let too_long =
            || Fault::Database(format!("a row is longer than {} MiB", LONGEST_RECORD >> 20));
        let length = usize::try_from(length)
            .ok()
            .filter(|l| *l <= LONGEST_RECORD);
        let length = length.ok_or_else(too_long)?;
        // the names are those of the format's description
        let u = self.usable;
        let x = match tree {
            Tree::Table => u - 35,
            Tree::Index => (u - 12) * 64 / 255 - 23,
        };
        let local = if length <= x {
            length
        } else {
            let m = (u - 12) * 32 / 255 - 23;
            let k = m + (length - m) % (u - 4);
            if k <= x { k } else { m }
        };
        let cut = || damaged("a row is cut short");
        let mut bytes = here.get(..local).ok_or_else(cut)?.to_vec();
        if local == length {
            return Ok(bytes);
        }
        let mut next = u32_at(here, local)?;
        while bytes.len() < length {
            let page = self.page(next, left)?;
            next = u32_at(&page, 0)?;
            let more = (length - bytes.len()).min(u - 4);
            bytes.extend_from_slice(page.get(4..4 + more).ok_or_else(cut)?);
        }
        Ok(bytes)
    }

    fn values(&self, record: &[u8]) -> Result<Vec<Value>, Fault> {
        let cut = || damaged("a row is cut short");
        let mut header = record;
        let length = usize::try_from(varint(&mut header)?).map_err(|_| cut())?;
        let mut rest = record.get(length..).ok_or_else(cut)?;
        let named = length.checked_sub(record.len() - header.len());
        let mut header = header.get(..named.ok_or_else(cut)?).ok_or_else(cut)?;
        let mut values = Vec::new();
        while !header.is_empty() {
            let kind = varint(&mut header)?;
            let bytes = match kind {
                0 | 8 | 9 => 0,
                1..=4 => kind as usize,
                5 => 6,
                6 | 7 => 8,
                12.. => usize::try_from((kind - 12) / 2).map_err(|_| cut())?,
                _ => return Err(damaged("a value is of no kind")),
            };
            let (own, after) = rest.split_at_checked(bytes).ok_or_else(cut)?;
            rest = after;
            values.push(match kind {
                0 => Value::Null,
                8 => Value::Integer(0),
                9 => Value::Integer(1),
                7 => Value::Real(f64::from_bits(big_endian(own) as u64)),
                1..=6 => Value::Integer(big_endian(own)),
                _ if kind % 2 == 0 => Value::Blob,
                _ => Value::Text(self.text(own)),
            });
        }
        Ok(values)
    }

    /// What is no text of the database's encoding is replaced, as SQLite's own shell does.
    fn text(&self, bytes: &[u8]) -> String {
        let unit: fn([u8; 2]) -> u16 = match self.encoding {
            2 => u16::from_le_bytes,
            3 => u16::from_be_bytes,
            _ => return String::from_utf8_lossy(bytes).into_owned(),
        };
        let units = bytes.chunks_exact(2).map(|two| unit([two[0], two[1]]));
        char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    }
}

/// A signed number of one to eight bytes.
fn big_endian(bytes: &[u8]) -> i64 {
    let begin = if bytes.first().is_some_and(|b| b & 0x80 != 0) {
        -1
    } else {
        0
    };
    bytes.iter().fold(begin, |all, b| all << 8 | i64::from(*b))
}

fn u16_at(page: &[u8], place: usize) -> Result<u16, Fault> {
    match page.get(place..place + 2) {
        Some(two) => Ok(u16::from_be_bytes([two[0], two[1]])),
        None => Err(damaged("a page is cut short")),
    }
}

fn u32_at(page: &[u8], place: usize) -> Result<u32, Fault> {
    match page.get(place..place + 4) {
        Some(four) => Ok(u32::from_be_bytes([four[0], four[1], four[2], four[3]])),
        None => Err(damaged("a page is cut short")),
    }
}

/// A number of one to nine bytes: seven bits of each, and all eight of the ninth.
fn varint(bytes: &mut &[u8]) -> Result<i64, Fault> {
    let mut value = 0u64;
    for place in 0..9 {
        let Some((&byte, rest)) = bytes.split_first() else {
            return Err(damaged("a number is cut short"));
        };
        *bytes = rest;
        if place == 8 {
            return Ok((value << 8 | u64::from(byte)) as i64);
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
    }
    Ok(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_format_describes_them() {
        for (bytes, value) in [
            (&[0x05][..], 5),
            (&[0x81, 0x00], 128),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], -1),
        ] {
            let mut rest = bytes;
            assert_eq!(varint(&mut rest).unwrap(), value);
            assert!(rest.is_empty());
        }
        assert!(varint(&mut &[0x80][..]).is_err());
        assert_eq!(big_endian(&[0xff, 0xfe]), -2);
        assert_eq!(big_endian(&[0x01, 0x00, 0x00]), 65536);
    }
}
