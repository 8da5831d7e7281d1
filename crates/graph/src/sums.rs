//! A checksum for each block of each file, so that a large file can be verified where it is read.
//!
//! ```text
//! file  = "WFSUMS01" varint(bytes of a block) entry…
//! entry = varint(length) name varint(bytes of the file) sum:u64 for each block    little-endian
//! sum   = XXH3(block, seed = its number)
//! ```
//!
//! The last block of a file may be shorter. The manifest names this file and has its checksum, so
//! a sum that was read can be believed. Folders that were written before there were sums have none
//! and are read as they always were.
//!
//! A block is verified when something in it is read for the first time after the file was opened
//! ([`BlockGuard`]). That finds what the disk lost before; it does not find memory that fails after
//! the block was verified, nor a page that the system dropped and read again in another state.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use crate::dictionary::{push_varint, take_varint};
use crate::error::{Error, Result};
use crate::load::file::{FileInfo, Output, compare};

/// Name of the file that holds the sums of a folder.
pub const SUMS: &str = "blocks.sums";

const MAGIC: &[u8; 8] = b"WFSUMS01";

/// Bytes of a block, as a power of two: 16 KiB. Measured on a million triples: blocks of 64 KiB
/// make the first walk through a cold graph slower, blocks of 4 KiB only make this file larger.
const SHIFT: u32 = 14;

/// Sums of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSums {
    bytes: u64,
    shift: u32,
    sums: Box<[u64]>,
}

/// Sums of the files of one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    files: BTreeMap<String, FileSums>,
}

/// Hashes blocks while a file is written.
pub(crate) struct BlockHasher {
    hash: Xxh3,
    filled: usize,
    bytes: u64,
    sums: Vec<u64>,
}

impl BlockHasher {
    pub(crate) fn new() -> Self {
        Self {
            hash: Xxh3::with_seed(0),
            filled: 0,
            bytes: 0,
            sums: Vec::new(),
        }
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = (1 << SHIFT) - self.filled;
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.hash.update(now);
            self.filled += now.len();
            if self.filled == 1 << SHIFT {
                self.end_block();
            }
            bytes = rest;
        }
    }

    fn end_block(&mut self) {
        self.sums.push(self.hash.digest());
        self.hash = Xxh3::with_seed(self.sums.len() as u64);
        self.filled = 0;
    }

    pub(crate) fn finish(mut self) -> FileSums {
        if self.filled > 0 {
            self.end_block();
        }
        FileSums {
            bytes: self.bytes,
            shift: SHIFT,
            sums: self.sums.into(),
        }
    }
}

impl Sums {
    /// Takes the sums of a file in.
    pub(crate) fn insert(&mut self, name: &str, sums: FileSums) {
        self.files.insert(name.to_owned(), sums);
    }

    /// Reads files of a folder and makes their sums.
    pub fn compute(folder: &Path, names: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut sums = Self::default();
        let mut buffer = vec![0; 1 << 18];
        for name in names {
            let path = folder.join(&name);
            let mut file = std::fs::File::open(&path).map_err(Error::io("open", &path))?;
            let mut blocks = BlockHasher::new();
            loop {
                match file.read(&mut buffer).map_err(Error::io("read", &path))? {
                    0 => break,
                    read => blocks.update(&buffer[..read]),
                }
            }
            sums.insert(&name, blocks.finish());
        }
        Ok(sums)
    }

    /// Writes the sums into their folder; what comes back belongs into the manifest.
    pub fn write(&self, folder: &Path) -> Result<FileInfo> {
        let mut out = MAGIC.to_vec();
        push_varint(&mut out, 1 << SHIFT);
        for (name, file) in &self.files {
            push_varint(&mut out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
            push_varint(&mut out, file.bytes);
            for sum in &file.sums {
                out.extend_from_slice(&sum.to_le_bytes());
            }
        }
        let mut file = Output::create(&folder.join(SUMS))?;
        file.write(&out)?;
        Ok(file.finish()?.info)
    }

    /// Reads the sums of a folder as its manifest promises them.
    pub fn read(folder: &Path, promised: &FileInfo) -> Result<Self> {
        let path = folder.join(SUMS);
        let damaged = |reason: &str| Error::Damaged {
            path: path.clone(),
            reason: reason.to_owned(),
        };
        if promised.name != SUMS {
            return Err(damaged("the manifest calls it otherwise"));
        }
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
        compare(path.clone(), promised, bytes.len() as u64, xxh3_64(&bytes))?;
        Self::parse(&bytes).ok_or_else(|| damaged("it makes no sense"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let block = take_varint(&mut rest)?;
        // a block is a power of two and no larger than what is read in one go
        if !block.is_power_of_two() || !(1 << 10..=1 << 24).contains(&block) {
            return None;
        }
        let mut files = BTreeMap::new();
        while !rest.is_empty() {
            let length = usize::try_from(take_varint(&mut rest)?).ok()?;
            let (name, after) = rest.split_at_checked(length)?;
            rest = after;
            let bytes = take_varint(&mut rest)?;
            let count = usize::try_from(bytes.div_ceil(block)).ok()?;
            let (sums, after) = rest.split_at_checked(count.checked_mul(8)?)?;
            rest = after;
            let file = FileSums {
                bytes,
                shift: block.trailing_zeros(),
                sums: (sums.chunks_exact(8))
                    .map(|sum| u64::from_le_bytes(sum.try_into().expect("eight bytes")))
                    .collect(),
            };
            files.insert(std::str::from_utf8(name).ok()?.to_owned(), file);
        }
        Some(Self { files })
    }

    /// The sums of a file.
    pub fn of(&self, name: &str) -> Option<&FileSums> {
        self.files.get(name)
    }

    /// The names of the files, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

impl FileSums {
    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Which blocks of an open file were verified already.
#[derive(Debug)]
pub struct BlockGuard {
    sums: FileSums,
    seen: Box<[AtomicBool]>,
}

impl BlockGuard {
    /// Nothing is verified yet.
    pub fn new(sums: FileSums) -> Self {
        let seen = sums.sums.iter().map(|_| AtomicBool::new(false)).collect();
        Self { sums, seen }
    }

    /// Whether all blocks that a range of bytes touches were verified before.
    #[inline]
    pub fn has_seen(&self, range: &Range<usize>) -> bool {
        let first = range.start >> self.sums.shift;
        let last = range.end.saturating_sub(1) >> self.sums.shift;
        // most reads lie within one block; the order of loads does not matter, for the bytes never
        // change
        if first == last || range.is_empty() {
            return (self.seen.get(first)).is_some_and(|seen| seen.load(Ordering::Relaxed))
                || range.is_empty();
        }
        (self.seen.get(first..=last))
            .is_some_and(|seen| seen.iter().all(|seen| seen.load(Ordering::Relaxed)))
    }

    /// Verifies the blocks that a range of bytes touches; `read` gives the bytes of a block. The
    /// error is the first block that is not what it was.
    pub fn verify<B: Deref<Target = [u8]>, E>(
        &self,
        range: &Range<usize>,
        read: impl Fn(Range<usize>) -> Result<B, E>,
    ) -> Result<Option<Range<usize>>, E> {
        if range.is_empty() {
            return Ok(None);
        }
        let end = usize::try_from(self.sums.bytes).unwrap_or(usize::MAX);
        for block in range.start >> self.sums.shift..=(range.end - 1) >> self.sums.shift {
            let from = block << self.sums.shift;
            let place = from..(from + (1 << self.sums.shift)).min(end);
            let (Some(sum), Some(seen)) = (self.sums.sums.get(block), self.seen.get(block)) else {
                return Ok(Some(range.clone()));
            };
            if seen.load(Ordering::Relaxed) {
                continue;
            }
            if xxh3_64_with_seed(&read(place.clone())?, block as u64) != *sum {
                return Ok(Some(place));
            }
            seen.store(true, Ordering::Relaxed);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterned(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    #[test]
    fn sums_read_back_and_a_flipped_bit_in_them_is_found() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in [("a", 0), ("b", 1), ("c", 1 << SHIFT), ("d", 100_000)] {
            std::fs::write(dir.path().join(name), patterned(bytes)).unwrap();
        }
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let sums = Sums::compute(dir.path(), names).unwrap();
        let info = sums.write(dir.path()).unwrap();
        assert_eq!(Sums::read(dir.path(), &info).unwrap(), sums);
        assert_eq!(
            sums.of("d").unwrap().sums.len(),
            100_000usize.div_ceil(1 << SHIFT)
        );
        assert_eq!(sums.of("a").unwrap().bytes(), 0);
        let path = dir.path().join(SUMS);
        let whole = std::fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << (place % 8);
            std::fs::write(&path, &damaged).unwrap();
            assert!(Sums::read(dir.path(), &info).is_err(), "{place}");
        }
        for length in 0..whole.len() {
            assert_ne!(Sums::parse(&whole[..length]).as_ref(), Some(&sums));
        }
    }

    #[test]
    fn a_block_is_verified_once_and_damage_is_found_where_it_is() {
        let mut bytes = patterned(100_000);
        let mut hasher = BlockHasher::new();
        // in pieces of odd sizes: blocks do not depend on how they were written
        for piece in bytes.chunks(777) {
            hasher.update(piece);
        }
        let guard = BlockGuard::new(hasher.finish());
        let reads = std::cell::Cell::new(0);
        let verify = |bytes: &[u8], range: Range<usize>| {
            let read = |place: Range<usize>| {
                reads.set(reads.get() + 1);
                Ok::<_, ()>(bytes[place].to_vec())
            };
            guard.verify(&range, read).unwrap()
        };
        assert!(!guard.has_seen(&(10..20)) && guard.has_seen(&(10..10)));
        assert_eq!(verify(&bytes, 10..20), None);
        assert!(guard.has_seen(&(0..100)) && !guard.has_seen(&(0..20_000)));
        assert_eq!(verify(&bytes, 0..20_000), None);
        assert!(guard.has_seen(&(0..20_000)));
        assert_eq!(reads.get(), 2);
        bytes[99_999] ^= 4;
        let bad = verify(&bytes, 90_000..95_000);
        assert_eq!(bad, None);
        let bad = verify(&bytes, 90_000..100_000).unwrap();
        assert!(bad.contains(&99_999) && bad.end == 100_000);
        // a range outside is no block that could be verified
        assert!(verify(&bytes, 100_000..200_000).is_some());
    }
}
