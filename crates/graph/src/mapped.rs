//! A memory-mapped file as an array.

use std::fs::File;
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::Path;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::error::{Error, Result};

#[cfg(target_endian = "big")]
compile_error!("graph files are little-endian, and they are read in place");

/// A read-only array of `T` in a file, little-endian.
///
/// The file must not change in place while it is mapped: write a temporary file and rename it over
/// the old one.
pub struct Mapped<T> {
    /// None for an empty file, which cannot be mapped.
    map: Option<Mmap>,
    of: PhantomData<T>,
}

impl<T: Pod> Mapped<T> {
    /// Maps a file whose length must be a multiple of `T`'s.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        Self::of_file(&file, path)
    }

    /// Maps a file that is open already.
    pub(crate) fn of_file(file: &File, path: &Path) -> Result<Self> {
        let bytes = file.metadata().map_err(Error::io("read", path))?.len();
        if bytes % size_of::<T>() as u64 != 0 {
            return Err(Error::Damaged {
                path: path.to_owned(),
                reason: format!("its {bytes} bytes are no multiple of {}", size_of::<T>()),
            });
        }
        let map = if bytes == 0 {
            None
        } else {
            #[expect(
                unsafe_code,
                reason = "mapping a file is the one thing that has no safe form"
            )]
            // SAFETY: the files of a graph and of its index are written aside, renamed when complete
            // and never changed in place afterwards, so the mapped bytes do not change under us.
            let map = unsafe { Mmap::map(file) }.map_err(Error::io("map", path))?;
            Some(map)
        };
        Ok(Self {
            map,
            of: PhantomData,
        })
    }
}

impl<T: Pod> Deref for Mapped<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.map {
            // a map begins at a page, so it is aligned; the length was checked when it was opened
            Some(map) => bytemuck::cast_slice(map),
            None => &[],
        }
    }
}

impl<T> std::fmt::Debug for Mapped<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Mapped({} bytes)",
            self.map.as_ref().map_or(0, |m| m.len())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_an_array() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, bytemuck::cast_slice(&[1u32, 2, 3])).unwrap();
        assert_eq!(&*Mapped::<u32>::open(&path).unwrap(), &[1, 2, 3]);
        assert!(matches!(
            Mapped::<u64>::open(&path),
            Err(Error::Damaged { .. })
        ));
        std::fs::write(&path, []).unwrap();
        assert!(Mapped::<u64>::open(&path).unwrap().is_empty());
        assert!(matches!(
            Mapped::<u64>::open(&dir.path().join("y")),
            Err(Error::Io { .. })
        ));
    }
}
