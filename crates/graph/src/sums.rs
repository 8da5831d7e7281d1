//! The file with a checksum for each block of each file, so that a large file can be verified where
//! it is read.
//!
//! ```text
//! file  = "WFSUMS01" varint(bytes of a block) entry…
//! entry = varint(length) name varint(bytes of the file) sum:u64 for each block    little-endian
//! sum   = XXH3(block, seed = its number)
//! ```
//!
//! The last block of a file may be shorter. The manifest has the checksum of this file.
//! Folders of older versions have no such file and are read without it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::block_sums::{BlockHasher, FileSums, SHIFT};
use crate::error::{Error, Result};
use crate::file::{FileInfo, FileWriter, compare};
use crate::varint::{push_varint, take_varint};

/// Name of the file that holds the sums of a folder.
pub const SUMS: &str = "blocks.sums";

const MAGIC: &[u8; 8] = b"WFSUMS01";

/// Sums of the files of one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    files: BTreeMap<String, FileSums>,
}

impl Sums {
    /// Adds the checksums of a file.
    pub(crate) fn insert(&mut self, name: &str, sums: FileSums) {
        self.files.insert(name.to_owned(), sums);
    }

    /// Computes the checksums of files of a folder.
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

    /// Writes the checksums into their folder. Returns their manifest entry.
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
        let mut file = FileWriter::create(&folder.join(SUMS))?;
        file.write(&out)?;
        Ok(file.finish()?.info)
    }

    /// Reads the checksums of a folder and compares them with their manifest entry.
    pub fn read(folder: &Path, promised: &FileInfo) -> Result<Self> {
        let path = folder.join(SUMS);
        let damaged = |reason: &str| Error::Damaged {
            path: path.clone(),
            reason: reason.to_owned(),
        };
        if promised.name != SUMS {
            return Err(damaged("the manifest has another name for it"));
        }
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
        compare(path.clone(), promised, bytes.len() as u64, xxh3_64(&bytes))?;
        Self::parse(&bytes).ok_or_else(|| damaged("its content is invalid"))
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
}
