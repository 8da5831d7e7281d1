//! Files of a graph: checksummed while they are written, flushed to disk, replaced atomically.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::block_sums::{BlockHasher, FileSums};
use crate::error::{Error, Result};

/// Name, length and checksum of a file, as in the manifest.
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
pub(crate) struct WrittenFile {
    pub(crate) info: FileInfo,
    pub(crate) sums: FileSums,
}

/// A file being written.
pub(crate) struct FileWriter {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
    hash: Xxh3,
    blocks: BlockHasher,
}

impl FileWriter {
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

    /// Flushes to disk and returns name, length and checksums.
    pub(crate) fn finish(self) -> Result<WrittenFile> {
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
        Ok(WrittenFile {
            info,
            sums: self.blocks.finish(),
        })
    }
}

/// Reads a file and compares it with its manifest entry.
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

/// An error unless length and checksum are as in the manifest.
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

/// Replaces `path` in one step: writes `temporary`, a file in the same folder, and renames it.
pub(crate) fn atomic_write(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(temporary).map_err(Error::io("create", temporary))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(Error::io("write", temporary))?;
    std::fs::rename(temporary, path).map_err(Error::io("rename", temporary))?;
    match path.parent() {
        Some(folder) => sync_folder(folder),
        None => Ok(()),
    }
}

/// Makes new and renamed files in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    // not all systems can open a folder; there the rename has to suffice
    match File::open(path) {
        Ok(folder) => match folder.sync_all() {
            Err(e) if e.kind() != std::io::ErrorKind::Unsupported => {
                Err(Error::io("write", path)(e))
            }
            _ => Ok(()),
        },
        Err(_) => Ok(()),
    }
}
