//! Checksums of the blocks of a file: made while it is written, verified where it is read.
//!
//! A block is verified when something in it is read for the first time after the file was opened
//! ([`BlockGuard`]). That finds what the disk lost before; it does not find memory that fails after
//! the block was verified, nor a page that the system dropped and read again in another state.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Bytes of a block, as a power of two: 16 KiB, a guess.
pub(crate) const SHIFT: u32 = 14;

/// Sums of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSums {
    pub(crate) bytes: u64,
    pub(crate) shift: u32,
    pub(crate) sums: Box<[u64]>,
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
