//! A sorted list of byte strings on disk: id → string, string → id, and prefix ranges.
//!
//! Strings stand in blocks of sixteen. The first of a block is whole; each of the others says how
//! many bytes it shares with the one before it (front coding), then its own rest:
//!
//! ```text
//! block   = string₀ entry₁ … entry₁₅
//! string₀ = varint(length) bytes
//! entry   = varint(shared) varint(length of rest) rest
//! ```
//!
//! `blocks` holds the byte offset of each block and, last, the length of `text`. An id is a
//! string's place in the order, so a lookup by string is a binary search over blocks and a walk
//! through one of them.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file::{FileWriter, WrittenFile};
use crate::sums::Sums;
use crate::varint::{push_varint, take_varint};
use crate::verified::Verified;

/// Strings of a block; part of the file format.
const BLOCK: usize = 16;

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

/// Length of the common beginning.
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    // eight bytes at a time: half of what a load writes are beginnings
    let mut shared = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let differing = word(x) ^ word(y);
        if differing != 0 {
            return shared + differing.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    let rest = a[shared..].iter().zip(&b[shared..]);
    shared + rest.take_while(|(x, y)| x == y).count()
}

/// Writes a dictionary; strings must come sorted and distinct.
pub(crate) struct DictionaryWriter {
    text: FileWriter,
    blocks: FileWriter,
    written: u64,
    count: usize,
    previous: Vec<u8>,
    entry: Vec<u8>,
}

impl DictionaryWriter {
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self> {
        Ok(Self {
            text: FileWriter::create(&folder.join(format!("{name}.text")))?,
            blocks: FileWriter::create(&folder.join(format!("{name}.blocks")))?,
            written: 0,
            count: 0,
            previous: Vec::new(),
            entry: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, string: &[u8]) -> Result<()> {
        debug_assert!(self.count == 0 || self.previous.as_slice() < string);
        self.entry.clear();
        if self.count.is_multiple_of(BLOCK) {
            self.blocks.write(&self.written.to_le_bytes())?;
            push_varint(&mut self.entry, string.len() as u64);
            self.entry.extend_from_slice(string);
        } else {
            let shared = shared_prefix(&self.previous, string);
            push_varint(&mut self.entry, shared as u64);
            push_varint(&mut self.entry, (string.len() - shared) as u64);
            self.entry.extend_from_slice(&string[shared..]);
        }
        self.text.write(&self.entry)?;
        self.written += self.entry.len() as u64;
        self.count += 1;
        self.previous.clear();
        self.previous.extend_from_slice(string);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<[WrittenFile; 2]> {
        self.blocks.write(&self.written.to_le_bytes())?;
        Ok([self.text.finish()?, self.blocks.finish()?])
    }
}

/// A dictionary on disk.
#[derive(Debug)]
pub(crate) struct Dictionary {
    path: PathBuf,
    count: usize,
    text: Verified<u8>,
    blocks: Verified<u64>,
}

impl Dictionary {
    pub(crate) fn open(
        folder: &Path,
        name: &str,
        count: usize,
        sums: Option<&Sums>,
    ) -> Result<Self> {
        let (text, blocks) = (format!("{name}.text"), format!("{name}.blocks"));
        let path = folder.join(&text);
        let text = Verified::<u8>::open(&path, sums.and_then(|s| s.of(&text)))?;
        let sums = sums.and_then(|s| s.of(&blocks));
        let blocks = Verified::<u64>::open(&folder.join(blocks), sums)?;
        if blocks.len() != count.div_ceil(BLOCK) + 1 || blocks.last()? != Some(text.len() as u64) {
            return Err(Error::Damaged {
                path,
                reason: format!("it does not hold {count} strings"),
            });
        }
        Ok(Self {
            path,
            count,
            text,
            blocks,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// An error if a file is shorter than when it was opened.
    pub(crate) fn is_there(&self) -> Result<()> {
        self.text.is_there()?;
        self.blocks.is_there()
    }

    /// Writes string `id` into `out`.
    pub(crate) fn get(&self, id: usize, out: &mut Vec<u8>) -> Result<()> {
        if id >= self.count {
            return Err(self.damaged("an id beyond its end"));
        }
        let mut rest = self.bytes(id / BLOCK)?;
        let first = take_varint(&mut rest).and_then(|length| take(&mut rest, length));
        out.clear();
        out.extend_from_slice(first.ok_or_else(|| self.damaged("an invalid block"))?);
        for _ in 0..id % BLOCK {
            step(out, &mut rest).ok_or_else(|| self.damaged("an entry that makes no sense"))?;
        }
        Ok(())
    }

    /// The id of a string.
    pub(crate) fn find(&self, string: &[u8]) -> Result<Option<usize>> {
        let id = self.lower_bound(string)?;
        if id == self.count {
            return Ok(None);
        }
        let mut found = Vec::new();
        self.get(id, &mut found)?;
        Ok((found == string).then_some(id))
    }

    /// The first id whose string is not below `string`; the number of strings if all are.
    pub(crate) fn lower_bound(&self, string: &[u8]) -> Result<usize> {
        // the block before the first one that begins above the string
        let (mut low, mut high) = (0, self.blocks.len() - 1);
        while low < high {
            let middle = (low + high) / 2;
            if self.first(middle)? <= string {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(block) = low.checked_sub(1) else {
            return Ok(0);
        };
        let mut id = block * BLOCK;
        let end = (id + BLOCK).min(self.count);
        let mut walk = self.block(block)?;
        while walk.string.as_slice() < string {
            id += 1;
            if id == end {
                break;
            }
            walk.step()
                .ok_or_else(|| self.damaged("an entry that makes no sense"))?;
        }
        Ok(id)
    }

    /// Calls `each` with every string in order.
    pub(crate) fn for_each(&self, mut each: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        for block in 0..self.blocks.len() - 1 {
            let mut walk = self.block(block)?;
            let from = block * BLOCK;
            for id in from..(from + BLOCK).min(self.count) {
                if id > from {
                    walk.step()
                        .ok_or_else(|| self.damaged("an entry that makes no sense"))?;
                }
                each(id, &walk.string)?;
            }
        }
        Ok(())
    }

    fn bytes(&self, block: usize) -> Result<&[u8]> {
        let outside = || self.damaged("a block outside the file");
        let Some(&[from, to]) = self.blocks.slice(block..block + 2)? else {
            return Err(outside());
        };
        match (usize::try_from(from), usize::try_from(to)) {
            (Ok(from), Ok(to)) => self.text.slice(from..to)?.ok_or_else(outside),
            _ => Err(outside()),
        }
    }

    /// The first string of a block.
    fn first(&self, block: usize) -> Result<&[u8]> {
        let mut bytes = self.bytes(block)?;
        take_varint(&mut bytes)
            .and_then(|length| take(&mut bytes, length))
            .ok_or_else(|| self.damaged("an invalid block"))
    }

    fn block(&self, block: usize) -> Result<BlockCursor<'_>> {
        let mut rest = self.bytes(block)?;
        let first = take_varint(&mut rest).and_then(|length| take(&mut rest, length));
        Ok(BlockCursor {
            string: first
                .ok_or_else(|| self.damaged("an invalid block"))?
                .to_vec(),
            rest,
        })
    }

    fn damaged(&self, what: &str) -> Error {
        Error::Damaged {
            path: self.path.clone(),
            reason: format!("it has {what}"),
        }
    }
}

/// A walk through one block.
struct BlockCursor<'a> {
    string: Vec<u8>,
    rest: &'a [u8],
}

impl BlockCursor<'_> {
    fn step(&mut self) -> Option<()> {
        step(&mut self.string, &mut self.rest)
    }
}

/// Makes a string the next one of its block; none if that makes no sense.
fn step(string: &mut Vec<u8>, rest: &mut &[u8]) -> Option<()> {
    let shared = usize::try_from(take_varint(rest)?).ok()?;
    let length = take_varint(rest)?;
    let own = take(rest, length)?;
    if shared > string.len() {
        return None;
    }
    string.truncate(shared);
    string.extend_from_slice(own);
    Some(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn dictionary(strings: &BTreeSet<Vec<u8>>) -> (tempfile::TempDir, Dictionary) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = DictionaryWriter::create(dir.path(), "d").unwrap();
        for s in strings {
            writer.push(s).unwrap();
        }
        writer.finish().unwrap();
        let dictionary = Dictionary::open(dir.path(), "d", strings.len(), None).unwrap();
        (dir, dictionary)
    }

    proptest! {
        #[test]
        fn a_shared_beginning_is_found_byte_by_byte(
            common in prop::collection::vec(any::<u8>(), 0..40),
            a in prop::collection::vec(0u8..2, 0..20),
            b in prop::collection::vec(0u8..2, 0..20),
        ) {
            let (a, b) = ([common.clone(), a].concat(), [common, b].concat());
            let naive = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(shared_prefix(&a, &b), naive);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn agrees_with_a_sorted_set(
            strings in prop::collection::btree_set(prop::collection::vec(0u8..4, 0..6), 0..120),
            probes in prop::collection::vec(prop::collection::vec(0u8..4, 0..6), 20),
        ) {
            let (_dir, dictionary) = dictionary(&strings);
            let sorted: Vec<_> = strings.iter().cloned().collect();
            let mut out = Vec::new();
            for (id, s) in sorted.iter().enumerate() {
                dictionary.get(id, &mut out).unwrap();
                prop_assert_eq!(&out, s);
                prop_assert_eq!(dictionary.find(s).unwrap(), Some(id));
            }
            for p in &probes {
                prop_assert_eq!(dictionary.find(p).unwrap(), sorted.binary_search(p).ok());
                prop_assert_eq!(dictionary.lower_bound(p).unwrap(), sorted.partition_point(|s| s < p));
            }
            let mut walked = Vec::new();
            dictionary.for_each(|_, s| { walked.push(s.to_vec()); Ok(()) }).unwrap();
            prop_assert_eq!(walked, sorted);
        }

        #[test]
        fn damage_is_an_error_and_never_a_panic(
            strings in prop::collection::btree_set(prop::collection::vec(0u8..4, 0..6), 1..60),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let (dir, dictionary) = dictionary(&strings);
            drop(dictionary);
            let path = dir.path().join("d.text");
            let mut bytes = std::fs::read(&path).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            std::fs::write(&path, bytes).unwrap();
            let dictionary = Dictionary::open(dir.path(), "d", strings.len(), None).unwrap();
            let mut out = Vec::new();
            for id in 0..strings.len() {
                let _ = dictionary.get(id, &mut out);
            }
            for s in &strings {
                let _ = dictionary.find(s);
            }
        }
    }
}
