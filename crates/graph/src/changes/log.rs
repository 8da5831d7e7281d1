//! The change log: what was added and removed since the files were written, one record after the
//! other.
//!
//! ```text
//! header  = "WFCHANG1" hash(checksum of the graph's files)
//! record  = length:u32 count:u32 check:u64 chain:u64 payload       little-endian
//! payload = (action:u8 (varint(length) key)×3)×count               keys of head, relation, tail
//! check   = hash(length count, seed = the chain before it; of the first, the header's hash)
//! chain   = hash(payload, seed = check)
//! ```
//!
//! A record is written in one piece and flushed to the disk before anybody is told that it is
//! there; it counts whole or not at all. Chains tell where a log was cut or damaged, and which log
//! it is; `check` tells a record that was never finished from one that is damaged. Keys are texts and not ids, so that a record holds whatever the files are.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::dictionary::{push_varint, take_varint};
use crate::error::{Error, Result};
use crate::key;
use crate::manifest::sync_folder;

/// The log's name in the folder of the files that it changes.
pub(crate) const LOG: &str = "changes.log";

/// Beside the manifest: held by whoever writes a log or puts another graph into its place.
pub(crate) const LOCK: &str = ".changes.lock";

const MAGIC: &[u8; 8] = b"WFCHANG1";
const HEADER: u64 = 16;
const RECORD: usize = 24;

/// The longest payload of one record; more changes make several.
pub(crate) const LONGEST: usize = 16 << 20;

/// Keys of head, relation and tail.
pub(crate) type Keys = [Vec<u8>; 3];

/// What happens to a triple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It is stated from now on.
    Add,
    /// It is not stated any more.
    Remove,
}

/// One triple that comes or goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) action: Action,
    pub(crate) keys: Keys,
}

/// How far a log was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Bytes that hold whole records.
    pub(crate) bytes: u64,
    pub(crate) chain: u64,
    /// Changes in them.
    pub(crate) changes: u64,
}

/// Where a log stops making sense. All that stands before is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LogCut {
    /// The first byte that is not used.
    pub at: u64,
    /// Bytes from there to the end.
    pub bytes: u64,
    /// Whether only the end is missing, as when a writer was killed: nothing that was
    /// acknowledged is lost then. Otherwise what stands there is damaged.
    pub is_unfinished: bool,
}

fn seed(checksum: &str) -> u64 {
    xxh3_64(checksum.as_bytes())
}

fn check_of(length: u32, count: u32, before: u64) -> u64 {
    let bytes = (u64::from(length) << 32 | u64::from(count)).to_le_bytes();
    xxh3_64_with_seed(&bytes, before)
}

/// Reads the whole records after `from`. A log that is not there has none.
pub(crate) fn read(
    path: &Path,
    checksum: &str,
    from: Position,
    mut each: impl FnMut(Change) -> Result<()>,
) -> Result<(Position, Option<LogCut>)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((from, None)),
        Err(e) => return Err(Error::io("open", path)(e)),
    };
    let failed = |e| Error::io("read", path)(e);
    let length = file.metadata().map_err(failed)?.len();
    let mut at = from;
    let cut = |at: Position, is_unfinished| {
        let left = length.saturating_sub(at.bytes);
        Some(LogCut {
            at: at.bytes,
            bytes: left,
            is_unfinished,
        })
    };
    if at.bytes == 0 {
        if length < HEADER {
            return Ok((at, (length > 0).then_some(()).and_then(|()| cut(at, true))));
        }
        let mut header = [0; HEADER as usize];
        file.read_exact(&mut header).map_err(failed)?;
        if &header[..8] != MAGIC || header[8..] != seed(checksum).to_le_bytes() {
            return Ok((at, cut(at, false)));
        }
        at.bytes = HEADER;
        at.chain = seed(checksum);
    } else {
        file.seek(SeekFrom::Start(at.bytes)).map_err(failed)?;
    }
    let mut input = std::io::BufReader::with_capacity(1 << 16, file);
    let mut payload = Vec::new();
    loop {
        let left = length.saturating_sub(at.bytes);
        if left == 0 {
            return Ok((at, None));
        }
        if left < RECORD as u64 {
            return Ok((at, cut(at, true)));
        }
        let mut head = [0; RECORD];
        input.read_exact(&mut head).map_err(failed)?;
        let word = |i: usize| u32::from_le_bytes(head[i..i + 4].try_into().expect("four bytes"));
        let (bytes, count) = (word(0), word(4));
        let check = u64::from_le_bytes(head[8..16].try_into().expect("eight bytes"));
        let chain = u64::from_le_bytes(head[16..].try_into().expect("eight bytes"));
        if check_of(bytes, count, at.chain) != check {
            return Ok((at, cut(at, false)));
        }
        if left < RECORD as u64 + u64::from(bytes) {
            return Ok((at, cut(at, true)));
        }
        payload.resize(bytes as usize, 0);
        input.read_exact(&mut payload).map_err(failed)?;
        if xxh3_64_with_seed(&payload, check) != chain {
            return Ok((at, cut(at, false)));
        }
        let Some(changes) = decode(&payload, count) else {
            return Ok((at, cut(at, false)));
        };
        for change in changes {
            each(change)?;
        }
        at = Position {
            bytes: at.bytes + RECORD as u64 + u64::from(bytes),
            chain,
            changes: at.changes + u64::from(count),
        };
    }
}

fn decode(mut payload: &[u8], count: u32) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    for _ in 0..count {
        let (&action, rest) = payload.split_first()?;
        payload = rest;
        let action = match action {
            b'+' => Action::Add,
            b'-' => Action::Remove,
            _ => return None,
        };
        let mut keys = Keys::default();
        for key in &mut keys {
            let length = usize::try_from(take_varint(&mut payload)?).ok()?;
            let (taken, rest) = payload.split_at_checked(length)?;
            payload = rest;
            key::decode(taken)?;
            key.extend_from_slice(taken);
        }
        changes.push(Change { action, keys });
    }
    payload.is_empty().then_some(changes)
}

fn encode(change: &Change, out: &mut Vec<u8>) {
    out.push(match change.action {
        Action::Add => b'+',
        Action::Remove => b'-',
    });
    for key in &change.keys {
        push_varint(out, key.len() as u64);
        out.extend_from_slice(key);
    }
}

/// Appends changes after `at`, and returns when they are on the disk.
///
/// What stands after `at` is not whole: the end of a record that was never acknowledged is
/// dropped, and damaged records are set aside in a file of their own. The lock must be held.
pub(crate) fn append(
    path: &Path,
    checksum: &str,
    at: Position,
    changes: &[Change],
    cut: Option<LogCut>,
) -> Result<Position> {
    let failed = |e| Error::io("write", path)(e);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(Error::io("open", path))?;
    if let Some(cut) = cut.filter(|cut| !cut.is_unfinished) {
        set_aside(&mut file, path, cut)?;
    }
    let mut at = at;
    let mut bytes = Vec::new();
    if at.bytes == 0 {
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&seed(checksum).to_le_bytes());
        at.chain = seed(checksum);
    }
    let from = at.bytes;
    at.bytes += bytes.len() as u64;
    let mut payload = Vec::new();
    let mut count = 0u32;
    let mut end_record = |payload: &mut Vec<u8>, count: &mut u32, at: &mut Position| {
        let length = u32::try_from(payload.len()).expect("a record ends long before 4 GiB");
        let check = check_of(length, *count, at.chain);
        at.chain = xxh3_64_with_seed(payload, check);
        at.bytes += (RECORD + payload.len()) as u64;
        at.changes += u64::from(*count);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes.extend_from_slice(&at.chain.to_le_bytes());
        bytes.append(payload);
        *count = 0;
    };
    for change in changes {
        let length: usize = change.keys.iter().map(|key| key.len() + 11).sum();
        if length > LONGEST / 2 {
            return Err(Error::TooMany {
                what: "bytes in a changed triple",
            });
        }
        encode(change, &mut payload);
        count += 1;
        if payload.len() >= LONGEST {
            end_record(&mut payload, &mut count, &mut at);
        }
    }
    if count > 0 {
        end_record(&mut payload, &mut count, &mut at);
    }
    let written = (|| {
        file.set_len(from)?;
        file.seek(SeekFrom::Start(from))?;
        file.write_all(&bytes)?;
        file.sync_all()
    })();
    if let Err(e) = written {
        // what was not acknowledged must not be found there later; if that fails as well, its
        // checksums tell
        let _ = file.set_len(from);
        return Err(failed(e));
    }
    if from == 0
        && let Some(folder) = path.parent()
    {
        sync_folder(folder)?;
    }
    Ok(at)
}

/// Keeps what cannot be read in a file of its own.
fn set_aside(file: &mut File, path: &Path, cut: LogCut) -> Result<()> {
    let mut number = 1;
    let aside = loop {
        let aside = damaged_path(path, number);
        if !aside.exists() {
            break aside;
        }
        number += 1;
    };
    let mut rest = Vec::new();
    file.seek(SeekFrom::Start(cut.at))
        .and_then(|_| file.read_to_end(&mut rest))
        .map_err(Error::io("read", path))?;
    let mut out = File::create(&aside).map_err(Error::io("create", &aside))?;
    out.write_all(&rest)
        .and_then(|()| out.sync_all())
        .map_err(Error::io("write", &aside))
}

fn damaged_path(log: &Path, number: u32) -> PathBuf {
    log.with_extension(format!("damaged-{number}"))
}

/// Held while a log is written or a graph is put into the place of another.
#[derive(Debug)]
pub(crate) struct WriteLock {
    _file: File,
}

impl WriteLock {
    /// Waits until nobody else holds it.
    pub(crate) fn take(graph: &Path) -> Result<Self> {
        let path = graph.join(LOCK);
        let file = File::create(&path).map_err(Error::io("create", &path))?;
        file.lock().map_err(Error::io("lock", &path))?;
        Ok(Self { _file: file })
    }

    /// Whether somebody is writing now. Unknown counts as no.
    pub(crate) fn is_held(graph: &Path) -> bool {
        File::open(graph.join(LOCK))
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(action: Action, name: &str) -> Change {
        let key = |kind: u8, text: &str| [&[kind], text.as_bytes()].concat();
        Change {
            action,
            keys: [key(b'n', name), key(b'i', "http://r"), key(b'n', "tail")],
        }
    }

    fn all(path: &Path) -> (Vec<Change>, Position, Option<LogCut>) {
        let mut found = Vec::new();
        let (at, cut) = read(path, "base", Position::default(), |c| {
            found.push(c);
            Ok(())
        })
        .unwrap();
        (found, at, cut)
    }

    /// Three records of one, two and one change.
    fn written(path: &Path) -> Vec<(Position, Vec<Change>)> {
        let mut at = Position::default();
        let mut so_far = Vec::new();
        let mut states = vec![(at, Vec::new())];
        for batch in [&["a"][..], &["b", "c"], &["d"]] {
            let changes: Vec<_> = batch.iter().map(|n| change(Action::Add, n)).collect();
            at = append(path, "base", at, &changes, None).unwrap();
            so_far.extend(changes);
            states.push((at, so_far.clone()));
        }
        states
    }

    #[test]
    fn what_was_appended_is_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        assert_eq!(all(&path), (Vec::new(), Position::default(), None));
        let states = written(&path);
        let (at, changes) = states.last().unwrap();
        assert_eq!(all(&path), (changes.clone(), *at, None));
        assert_eq!(at.changes, 4);
        // from the middle
        let mut rest = Vec::new();
        read(&path, "base", states[2].0, |c| {
            rest.push(c);
            Ok(())
        })
        .unwrap();
        assert_eq!(rest, [change(Action::Add, "d")]);
    }

    #[test]
    fn a_log_cut_anywhere_keeps_all_records_before_the_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        let states = written(&path);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (found, at, cut) = all(&path);
            let kept = states
                .iter()
                .rfind(|(at, _)| at.bytes <= length as u64)
                .unwrap();
            assert_eq!(found, kept.1, "{length}");
            // a record after the cut goes where the cut is
            append(&path, "base", at, &[change(Action::Remove, "x")], cut).unwrap();
            let (after, _, cut) = all(&path);
            assert_eq!(after.len(), kept.1.len() + 1);
            assert_eq!(cut, None);
        }
    }

    #[test]
    fn damage_in_the_middle_ends_the_log_there_and_the_rest_is_kept_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        let states = written(&path);
        let whole = std::fs::read(&path).unwrap();
        let mut aside = 0;
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << (place % 8);
            std::fs::write(&path, &damaged).unwrap();
            let (found, at, cut) = all(&path);
            let kept = states
                .iter()
                .rfind(|(at, _)| at.bytes <= place as u64)
                .unwrap();
            assert_eq!(found, kept.1, "{place}");
            let cut = cut.expect("every byte is covered by a checksum");
            assert_eq!(cut.at + cut.bytes, whole.len() as u64);
            append(&path, "base", at, &[change(Action::Add, "x")], Some(cut)).unwrap();
            assert_eq!(all(&path).2, None);
            assert!(!cut.is_unfinished, "{place}");
            aside += 1;
            assert!(damaged_path(&path, aside).exists());
        }
    }

    #[test]
    fn the_log_of_another_graph_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        written(&path);
        let mut found = 0;
        let (_, cut) = read(&path, "other", Position::default(), |_| {
            found += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(found, 0);
        assert!(!cut.unwrap().is_unfinished);
    }
}
