//! Files of a graph: written once, checksummed on the way, flushed to the disk before they count.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::sums::{BlockHasher, FileSums};

/// What a manifest promises of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileInfo {
    /// Its name in the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// XXH3 of the content, in hex.
    pub checksum: String,
}

/// A file that was written.
pub(crate) struct Written {
    pub(crate) info: FileInfo,
    pub(crate) sums: FileSums,
}

/// A file being written.
pub(crate) struct Output {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
    hash: Xxh3,
    blocks: BlockHasher,
}

impl Output {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, file),
            bytes: 0,
            hash: Xxh3::new(),
            blocks: BlockHasher::new(),
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.blocks.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(Error::io("write", &self.path))
    }

    /// Flushes to the disk and says what was written.
    pub(crate) fn finish(self) -> Result<Written> {
        let file = self
            .file
            .into_inner()
            .map_err(|e| Error::io("write", &self.path)(e.into_error()))?;
        file.sync_all().map_err(Error::io("write", &self.path))?;
        let info = FileInfo {
            name: self
                .path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            bytes: self.bytes,
            checksum: hex(self.hash.digest()),
        };
        Ok(Written {
            info,
            sums: self.blocks.finish(),
        })
    }
}

/// Reads a file again and compares it with what was promised.
pub(crate) fn check(folder: &Path, promised: &FileInfo) -> Result<()> {
    let path = folder.join(&promised.name);
    let mut file = File::open(&path).map_err(Error::io("open", &path))?;
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer).map_err(Error::io("read", &path))?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
    }
    compare(path, promised, bytes, hash.digest())
}

/// An error unless length and checksum are as promised.
pub(crate) fn compare(path: PathBuf, promised: &FileInfo, bytes: u64, checksum: u64) -> Result<()> {
    let reason = if bytes != promised.bytes {
        format!("it has {bytes} bytes instead of {}", promised.bytes)
    } else if hex(checksum) != promised.checksum {
        "its checksum does not match".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::Damaged { path, reason })
}

pub(crate) fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}
