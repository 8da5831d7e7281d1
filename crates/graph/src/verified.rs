//! A mapped file whose blocks are verified when they are first read.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use crate::block_sums::{BlockGuard, FileSums};
use crate::error::{Error, Result};
use crate::mapped::Mapped;

/// A read-only array of `T` in a file. Every block is verified against its checksum before anything
/// of it is returned.
///
/// Without checksums (older graphs, and small ones that are verified when they are opened) nothing
/// is verified.
///
/// A file that becomes shorter while it is mapped would end the process with the next read beyond
/// its end. [`Verified::is_there`] looks at its length, and so does every first read of a block;
/// what is left is the time between that look and the read.
pub struct Verified<T> {
    path: PathBuf,
    file: File,
    map: Mapped<T>,
    guard: Option<BlockGuard>,
}

impl<T: Pod> Verified<T> {
    /// Maps a file; with sums, what is read of it is verified.
    pub fn open(path: &Path, sums: Option<&FileSums>) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let map = Mapped::of_file(&file, path)?;
        let bytes = size_of_val(&*map) as u64;
        if let Some(sums) = sums
            && sums.bytes() != bytes
        {
            return Err(Error::Damaged {
                path: path.to_owned(),
                reason: format!("it has {bytes} bytes instead of {}", sums.bytes()),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            map,
            guard: sums.cloned().map(BlockGuard::new),
        })
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The element at an index; `None` beyond the end.
    #[inline]
    pub fn at(&self, place: usize) -> Result<Option<T>> {
        match self.map.get(place) {
            Some(found) => {
                self.verify(place..place + 1)?;
                Ok(Some(*found))
            }
            None => Ok(None),
        }
    }

    /// The elements of a range; `None` beyond the end.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Result<Option<&[T]>> {
        match self.map.get(range.clone()) {
            Some(found) => {
                self.verify(range)?;
                Ok(Some(found))
            }
            None => Ok(None),
        }
    }

    /// The last element.
    pub fn last(&self) -> Result<Option<T>> {
        match self.len().checked_sub(1) {
            Some(last) => self.at(last),
            None => Ok(None),
        }
    }

    /// An error if the file is shorter than when it was opened.
    pub fn is_there(&self) -> Result<()> {
        let found = self.file.metadata();
        let found = found.map_err(Error::io("read", &self.path))?.len();
        let bytes = size_of_val(&*self.map) as u64;
        if found < bytes {
            return Err(Error::Damaged {
                path: self.path.clone(),
                reason: format!("it was cut from {bytes} to {found} bytes while it was open"),
            });
        }
        Ok(())
    }

    #[inline]
    fn verify(&self, range: Range<usize>) -> Result<()> {
        let Some(guard) = &self.guard else {
            return Ok(());
        };
        let bytes = range.start * size_of::<T>()..range.end * size_of::<T>();
        if guard.has_seen(&bytes) {
            return Ok(());
        }
        self.verify_first(guard, &bytes)
    }

    #[cold]
    fn verify_first(&self, guard: &BlockGuard, range: &Range<usize>) -> Result<()> {
        self.is_there()?;
        let bytes: &[u8] = bytemuck::cast_slice(&self.map);
        match guard.verify(range, |block| Ok(&bytes[block]))? {
            None => Ok(()),
            Some(block) => Err(Error::Damaged {
                path: self.path.clone(),
                reason: format!(
                    "the checksum of bytes {} to {} does not match",
                    block.start, block.end
                ),
            }),
        }
    }
}

impl<T> std::fmt::Debug for Verified<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verified({}, {:?})", self.path.display(), self.map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::Sums;

    #[test]
    fn what_is_whole_is_read_and_what_is_not_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let numbers: Vec<u32> = (0..40_000).collect();
        std::fs::write(&path, bytemuck::cast_slice(&numbers)).unwrap();
        let sums = Sums::compute(dir.path(), ["x".to_owned()]).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100_001] ^= 8;
        std::fs::write(&path, bytes).unwrap();
        let file = Verified::<u32>::open(&path, sums.of("x")).unwrap();
        assert_eq!((file.len(), file.is_empty()), (40_000, false));
        assert_eq!(file.at(7).unwrap(), Some(7));
        assert_eq!(file.last().unwrap(), Some(39_999));
        assert_eq!(file.at(40_000).unwrap(), None);
        assert_eq!(file.slice(39_990..40_001).unwrap(), None);
        assert_eq!(file.slice(10..13).unwrap(), Some(&[10, 11, 12][..]));
        let error = file.at(25_001).unwrap_err().to_string();
        assert!(error.contains("bytes 98304 to 114688"), "{error}");
        assert!(file.slice(0..40_000).is_err());
        // without sums nothing is verified
        let file = Verified::<u32>::open(&path, None).unwrap();
        assert!(file.slice(0..40_000).unwrap().is_some());
        // sums of another length
        std::fs::write(&path, [0; 8]).unwrap();
        assert!(Verified::<u32>::open(&path, sums.of("x")).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_was_cut_below_its_readers_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, vec![1; 100_000]).unwrap();
        let sums = Sums::compute(dir.path(), ["x".to_owned()]).unwrap();
        let file = Verified::<u8>::open(&path, sums.of("x")).unwrap();
        file.is_there().unwrap();
        assert_eq!(file.at(0).unwrap(), Some(1));
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(50_000)
            .unwrap();
        // reading this place would be a SIGBUS
        let error = file.at(90_000).unwrap_err().to_string();
        assert!(error.contains("cut from 100000 to 50000 bytes"), "{error}");
        assert!(file.is_there().is_err());
    }
}
