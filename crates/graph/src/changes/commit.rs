//! How far a change log was acknowledged: its length and chain, written after the log itself.
//!
//! ```text
//! file = slot₀ … slot₁                     the second one begins at byte 4096
//! slot = bytes:u64 chain:u64 changes:u64 check:u64                        little-endian
//! check = hash(bytes chain changes, seed = hash(checksum of the graph's files))
//! ```
//!
//! The two slots are written in turn, each within one sector of the disk, so that one of them is
//! whole whenever the machine stops. The one with more bytes counts. If neither makes sense, the
//! file is damaged; a slot that was never written holds zeros.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::error::{Error, Result};
use crate::file::atomic_write;

/// The file's name, beside the log.
pub(crate) const COMMIT: &str = "changes.commit";

const SLOT: usize = 32;
/// Where each slot begins: in sectors of their own.
const PLACES: [u64; 2] = [0, 4096];
/// Bytes of the file.
const LENGTH: usize = PLACES[1] as usize + SLOT;

/// How far a log was read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Bytes that hold whole records.
    pub(crate) bytes: u64,
    pub(crate) chain: u64,
    /// Changes in them.
    pub(crate) changes: u64,
}

/// Seed of the hashes in a log and its commits: the hash of the checksum of the graph's files.
pub(super) fn seed(checksum: &str) -> u64 {
    xxh3_64(checksum.as_bytes())
}

fn path_of(log: &Path) -> PathBuf {
    log.with_file_name(COMMIT)
}

fn encode(checksum: &str, at: Position) -> [u8; SLOT] {
    let mut slot = [0; SLOT];
    for (place, number) in [at.bytes, at.chain, at.changes].into_iter().enumerate() {
        slot[8 * place..8 * place + 8].copy_from_slice(&number.to_le_bytes());
    }
    let check = xxh3_64_with_seed(&slot[..24], seed(checksum));
    slot[24..].copy_from_slice(&check.to_le_bytes());
    slot
}

fn decode(checksum: &str, slot: &[u8; SLOT]) -> Option<Position> {
    let number =
        |i: usize| u64::from_le_bytes(slot[8 * i..8 * i + 8].try_into().expect("eight bytes"));
    (xxh3_64_with_seed(&slot[..24], seed(checksum)) == number(3)).then(|| Position {
        bytes: number(0),
        chain: number(1),
        changes: number(2),
    })
}

/// Both slots, and whether both are whole and were never written, or taken back.
fn slots(path: &Path, checksum: &str) -> Result<Option<([Option<Position>; 2], bool)>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(mut file) => file
            .read_to_end(&mut bytes)
            .map_err(Error::io("read", path))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open", path)(e)),
    };
    // the file is written whole or not at all: a shorter one was cut by somebody else
    let is_blank = bytes.len() == LENGTH && bytes.iter().all(|byte| *byte == 0);
    let slot = |place: u64| {
        let slot = bytes.get(place as usize..place as usize + SLOT)?;
        decode(checksum, slot.try_into().ok()?)
    };
    Ok(Some((PLACES.map(slot), is_blank)))
}

/// The last acknowledged position; `None` without commits.
pub(super) fn read(log: &Path, checksum: &str) -> Result<Option<Position>> {
    let path = path_of(log);
    let Some((slots, is_blank)) = slots(&path, checksum)? else {
        return Ok(None);
    };
    let newest = slots.into_iter().flatten().max_by_key(|at| at.bytes);
    match newest {
        None if !is_blank => Err(Error::DamagedLog {
            path,
            at: 0,
            bytes: 0,
            whole: 0,
            reason: "it does not contain a valid commit".into(),
        }),
        newest => Ok(newest),
    }
}

/// Acknowledges the log up to `at`, and returns when that is on disk.
pub(super) fn write(log: &Path, checksum: &str, at: Position) -> Result<()> {
    let path = path_of(log);
    let Some((slots, _)) = slots(&path, checksum)? else {
        return replace(log, checksum, at);
    };
    // over the one that counts less
    let bytes = slots.map(|slot| slot.map_or(0, |at| at.bytes));
    let place = PLACES[usize::from(bytes[1] < bytes[0])];
    put(&path, place, &encode(checksum, at))
}

/// Withdraws a commit that may have been written.
pub(super) fn withdraw(log: &Path, checksum: &str, at: Position) -> Result<()> {
    let path = path_of(log);
    for (slot, place) in (slots(&path, checksum)?.into_iter())
        .flat_map(|(slots, _)| slots)
        .zip(PLACES)
    {
        if slot == Some(at) {
            put(&path, place, &[0; SLOT])?;
        }
    }
    Ok(())
}

fn put(path: &Path, place: u64, slot: &[u8; SLOT]) -> Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(Error::io("open", path))?;
    (file.seek(SeekFrom::Start(place)))
        .and_then(|_| file.write_all(slot))
        .and_then(|()| file.sync_data())
        .map_err(Error::io("write", path))
}

/// Writes a new file with one commit.
pub(super) fn replace(log: &Path, checksum: &str, at: Position) -> Result<()> {
    let path = path_of(log);
    let mut bytes = encode(checksum, at).to_vec();
    bytes.resize(LENGTH, 0);
    atomic_write(&path, &path.with_extension("commit-part"), &bytes)
}

/// Removes the file: a log that is gone was never acknowledged.
pub(super) fn remove(log: &Path) -> Result<()> {
    let path = path_of(log);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path)(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bytes: u64) -> Position {
        Position {
            bytes,
            chain: bytes * 31,
            changes: bytes / 10,
        }
    }

    #[test]
    fn the_last_commit_counts_and_one_torn_write_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("changes.log");
        assert_eq!(read(&log, "g").unwrap(), None);
        for bytes in [100, 250, 700, 701] {
            write(&log, "g", at(bytes)).unwrap();
            assert_eq!(read(&log, "g").unwrap(), Some(at(bytes)));
        }
        let path = path_of(&log);
        let whole = std::fs::read(&path).unwrap();
        for (slot, left) in [(PLACES[1], at(700)), (PLACES[0], at(701))] {
            for byte in 0..SLOT {
                let mut torn = whole.clone();
                torn[slot as usize + byte] ^= 16;
                std::fs::write(&path, &torn).unwrap();
                assert_eq!(read(&log, "g").unwrap(), Some(left), "{slot} {byte}");
            }
        }
        std::fs::write(&path, &whole).unwrap();
        withdraw(&log, "g", at(701)).unwrap();
        assert_eq!(read(&log, "g").unwrap(), Some(at(700)));
        withdraw(&log, "g", at(5)).unwrap();
        assert_eq!(read(&log, "g").unwrap(), Some(at(700)));
        // of another graph, or damaged: nobody knows
        assert!(read(&log, "h").is_err());
        for cut in [vec![], vec![0; LENGTH - 1]] {
            std::fs::write(&path, cut).unwrap();
            assert!(read(&log, "g").is_err());
        }
        std::fs::write(&path, vec![0; LENGTH]).unwrap();
        assert_eq!(read(&log, "g").unwrap(), None);
        remove(&log).unwrap();
        remove(&log).unwrap();
    }
}
