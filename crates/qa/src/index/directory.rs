//! The folder of a full-text index, no byte of which tantivy gets before its block was held against
//! its checksum.
//!
//! Tantivy reads files through a `Directory`. This one is its own, with memory maps, and verifies
//! the blocks of what is read for the first time. It also keeps the files open to see whether one
//! of them was cut short, which would end the process with the next read beyond its end.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, OwnedBytes, WatchCallback,
    WatchHandle, WritePtr,
};
use wherefore_graph::{BlockGuard, Sums};

/// A folder whose files are verified where they are read.
#[derive(Clone, Debug)]
pub(crate) struct VerifiedDirectory {
    inner: MmapDirectory,
    folder: Arc<Path>,
    sums: Arc<Sums>,
}

impl VerifiedDirectory {
    pub(crate) fn open(folder: &Path, sums: Sums) -> tantivy::Result<Self> {
        Ok(Self {
            inner: MmapDirectory::open(folder)?,
            folder: folder.into(),
            sums: Arc::new(sums),
        })
    }

    fn guard(&self, path: &Path) -> Option<BlockGuard> {
        let sums = self.sums.of(path.to_str()?)?;
        Some(BlockGuard::new(sums.clone()))
    }
}

/// A file that is verified where it is read.
#[derive(Debug)]
struct VerifiedFile {
    name: String,
    bytes: Arc<dyn FileHandle>,
    file: File,
    guard: BlockGuard,
}

impl HasLen for VerifiedFile {
    fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl FileHandle for VerifiedFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.end > self.len() || range.start > range.end {
            return Err(damaged(&self.name, "something points beyond its end"));
        }
        if !self.guard.has_seen(&range) {
            if self.file.metadata()?.len() < self.len() as u64 {
                return Err(damaged(&self.name, "it was cut short while it was open"));
            }
            let read = |block| self.bytes.read_bytes(block);
            if let Some(block) = self.guard.verify(&range, read)? {
                return Err(mismatch(&self.name, &block));
            }
        }
        self.bytes.read_bytes(range)
    }
}

fn damaged(name: &str, reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("`{name}`: {reason}"))
}

fn mismatch(name: &str, block: &Range<usize>) -> io::Error {
    let Range { start, end } = block;
    let reason = format!("the checksum of bytes {start} to {end} does not match");
    damaged(name, &reason)
}

impl Directory for VerifiedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let bytes = self.inner.get_file_handle(path)?;
        let Some(guard) = self.guard(path) else {
            return Ok(bytes);
        };
        let failed = |e| OpenReadError::wrap_io_error(e, path.to_owned());
        Ok(Arc::new(VerifiedFile {
            name: path.display().to_string(),
            bytes,
            file: File::open(self.folder.join(path)).map_err(failed)?,
            guard,
        }))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let bytes = self.inner.atomic_read(path)?;
        let Some(guard) = self.guard(path) else {
            return Ok(bytes);
        };
        let failed = |e| OpenReadError::wrap_io_error(e, path.to_owned());
        let name = path.display().to_string();
        let read = |block: Range<usize>| {
            let found = bytes.get(block);
            found.ok_or_else(|| damaged(&name, "it is shorter than it was"))
        };
        match guard.verify(&(0..bytes.len()), read).map_err(failed)? {
            Some(block) => Err(failed(mismatch(&name, &block))),
            None => Ok(bytes),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.inner.open_write(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}
