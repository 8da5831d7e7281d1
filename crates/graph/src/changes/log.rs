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
//! Keys are texts and not ids, so that a record holds whatever the files are. Every byte is
//! covered by `check` or `chain`, and a chain also identifies the log that a record belongs to.
//!
//! What is guaranteed:
//!
//! 1. A change is acknowledged after its record is on the disk and after that the length and
//!    chain of the log are on the disk too, in a file of its own ([`super::commit`]).
//! 2. So what is acknowledged is known. If the log is not whole up to there, be it that a bit was
//!    flipped or that the end is missing or the whole file, every reader gets
//!    [`Error::DamagedLog`] with the place, and nobody writes to it. Nothing acknowledged is ever
//!    left out in silence.
//! 3. What stands after that was never acknowledged: the writer was killed. Whole records count,
//!    the rest is reported ([`LogCut`]) and dropped by the next writer.
//! 4. Damage is repaired by [`super::repair`] on request, which keeps the old log.
//!
//! Logs of versions that wrote no such file are read too. There only a record whose end is missing
//! counts as never acknowledged; a record that was truncated later cannot be distinguished.
//! The same is true if the file is removed by hand.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::commit::{self, Position, seed};
use crate::error::{Error, Result};
use crate::file::sync_folder;
use crate::key::{self, TripleKeys};
use crate::varint::{push_varint, take_varint};

/// The log's name in the folder of the files that it changes.
pub(crate) const LOG: &str = "changes.log";

const MAGIC: &[u8; 8] = b"WFCHANG1";
pub(super) const HEADER: u64 = 16;
pub(super) const RECORD: usize = 24;

/// The longest payload of one record; more changes make several.
pub(crate) const LONGEST: usize = 16 << 20;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Adds a triple.
    Add,
    /// Removes a triple.
    Remove,
}

/// One added or removed triple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) action: Action,
    pub(crate) keys: TripleKeys,
}

/// The end of a log, where it is part of a change that was never acknowledged: its writer was
/// killed. All that stands before counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LogCut {
    /// The first byte that is not used.
    pub at: u64,
    /// Bytes from there to the end.
    pub bytes: u64,
}

pub(super) fn check_of(length: u32, count: u32, before: u64) -> u64 {
    let bytes = (u64::from(length) << 32 | u64::from(count)).to_le_bytes();
    xxh3_64_with_seed(&bytes, before)
}

/// Why reading a log stopped before its end.
enum Stop {
    /// A record whose end is missing.
    Unfinished,
    /// Bytes that are not a record of this log.
    Damaged(&'static str),
}

/// Reads the whole records after `from`. A log that is not there has none.
///
/// # Errors
/// [`Error::DamagedLog`] if something that was acknowledged is not whole. Whole changes before it
/// were given to `each` then.
pub(crate) fn read(
    path: &Path,
    checksum: &str,
    from: Position,
    mut each: impl FnMut(Change) -> Result<()>,
) -> Result<(Position, Option<LogCut>)> {
    // before the log: whoever writes goes the other way around
    let committed = commit::read(path, checksum)?;
    let mut at = from;
    let damaged = |at: Position, length: u64, reason: &str| Error::DamagedLog {
        path: path.to_owned(),
        at: at.bytes,
        bytes: length.saturating_sub(at.bytes),
        whole: at.changes,
        reason: reason.to_owned(),
    };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return match committed {
                Some(_) => Err(damaged(at, 0, "it is missing")),
                None => Ok((from, None)),
            };
        }
        Err(e) => return Err(Error::io("open", path)(e)),
    };
    let failed = |e| Error::io("read", path)(e);
    let length = file.metadata().map_err(failed)?.len();
    if length < at.bytes {
        return Err(damaged(at, length, "it is shorter than it was"));
    }
    // whether the log was seen to be the one that was committed
    let is_committed =
        |at: Position| committed.is_some_and(|c| (c.bytes, c.chain) == (at.bytes, at.chain));
    let mut agreed = is_committed(at);
    let stop = if at.bytes > 0 {
        file.seek(SeekFrom::Start(at.bytes)).map_err(failed)?;
        None
    } else if length < HEADER {
        Some(Stop::Unfinished)
    } else {
        let mut header = [0; HEADER as usize];
        file.read_exact(&mut header).map_err(failed)?;
        if &header[..8] == MAGIC && header[8..] == seed(checksum).to_le_bytes() {
            at.bytes = HEADER;
            at.chain = seed(checksum);
            None
        } else {
            Some(Stop::Damaged("it is not the log of this graph"))
        }
    };
    let mut input = std::io::BufReader::with_capacity(1 << 16, file);
    let mut payload = Vec::new();
    let stop = match stop {
        Some(stop) => Some(stop),
        None => loop {
            let left = length.saturating_sub(at.bytes);
            match next_record(&mut input, left, at, &mut payload).map_err(failed)? {
                Ok(None) => break None,
                Ok(Some((next, changes))) => {
                    changes.into_iter().try_for_each(&mut each)?;
                    at = next;
                    agreed |= is_committed(at);
                }
                Err(stop) => break Some(stop),
            }
        },
    };
    match (committed, stop) {
        (Some(committed), stop) if at.bytes < committed.bytes => {
            let reason = match stop {
                Some(Stop::Damaged(reason)) => reason.to_owned(),
                _ => format!("it has {length} bytes instead of {}", committed.bytes),
            };
            return Err(damaged(at, length, &reason));
        }
        (Some(committed), _) if from.bytes <= committed.bytes && !agreed => {
            return Err(damaged(at, length, "it is another log"));
        }
        (None, Some(Stop::Damaged(reason))) => return Err(damaged(at, length, reason)),
        (_, None) => return Ok((at, None)),
        (_, Some(_)) => {}
    }
    let cut = LogCut {
        at: at.bytes,
        bytes: length.saturating_sub(at.bytes),
    };
    Ok((at, (cut.bytes > 0).then_some(cut)))
}

type Record = (Position, Vec<Change>);

/// The record at `at`, of which `left` bytes are there; none at the end.
fn next_record(
    input: &mut impl Read,
    left: u64,
    at: Position,
    payload: &mut Vec<u8>,
) -> std::io::Result<Result<Option<Record>, Stop>> {
    if left == 0 {
        return Ok(Ok(None));
    }
    if left < RECORD as u64 {
        return Ok(Err(Stop::Unfinished));
    }
    let mut head = [0; RECORD];
    input.read_exact(&mut head)?;
    let head = Head::parse(&head);
    if check_of(head.length, head.count, at.chain) != head.check {
        return Ok(Err(Stop::Damaged(
            "the checksum of the record's head does not match",
        )));
    }
    if left < RECORD as u64 + u64::from(head.length) {
        return Ok(Err(Stop::Unfinished));
    }
    payload.resize(head.length as usize, 0);
    input.read_exact(payload)?;
    if xxh3_64_with_seed(payload, head.check) != head.chain {
        return Ok(Err(Stop::Damaged(
            "the checksum of the record does not match",
        )));
    }
    let Some(changes) = decode(payload, Some(head.count)) else {
        return Ok(Err(Stop::Damaged("the record is invalid")));
    };
    let next = Position {
        bytes: at.bytes + RECORD as u64 + u64::from(head.length),
        chain: head.chain,
        changes: at.changes + u64::from(head.count),
    };
    Ok(Ok(Some((next, changes))))
}

/// The head of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) length: u32,
    pub(super) count: u32,
    pub(super) check: u64,
    pub(super) chain: u64,
}

impl Head {
    pub(super) fn parse(bytes: &[u8; RECORD]) -> Self {
        let word = |i: usize| u32::from_le_bytes(bytes[i..i + 4].try_into().expect("four bytes"));
        let long = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().expect("eight bytes"));
        Self {
            length: word(0),
            count: word(4),
            check: long(8),
            chain: long(16),
        }
    }
}

/// The changes of a payload, which must be so many if it is said.
pub(super) fn decode(mut payload: &[u8], count: Option<u32>) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    while !payload.is_empty() {
        let (&action, rest) = payload.split_first()?;
        payload = rest;
        let action = match action {
            b'+' => Action::Add,
            b'-' => Action::Remove,
            _ => return None,
        };
        let mut keys = TripleKeys::default();
        for key in &mut keys {
            let length = usize::try_from(take_varint(&mut payload)?).ok()?;
            let (taken, rest) = payload.split_at_checked(length)?;
            payload = rest;
            key::decode(taken)?;
            key.extend_from_slice(taken);
        }
        changes.push(Change { action, keys });
    }
    (count.is_none_or(|count| count as usize == changes.len())).then_some(changes)
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

/// Appends changes after `at`, and returns when they are on the disk and known to be there.
///
/// What stands after `at` was never acknowledged and is dropped. The lock must be held.
pub(crate) fn append(
    path: &Path,
    checksum: &str,
    at: Position,
    changes: &[Change],
) -> Result<Position> {
    let failed = |e| Error::io("write", path)(e);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(Error::io("open", path))?;
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
    if let Err(e) = commit::write(path, checksum, at) {
        // if what was written of it is taken back, the record can be, too; if not, it stays: a log
        // that ends before its commit is damaged
        if commit::withdraw(path, checksum, at).is_ok() {
            let _ = file.set_len(from);
        }
        return Err(e);
    }
    Ok(at)
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

    fn try_all(path: &Path) -> Result<(Vec<Change>, Position, Option<LogCut>)> {
        let mut found = Vec::new();
        let (at, cut) = read(path, "base", Position::default(), |c| {
            found.push(c);
            Ok(())
        })?;
        Ok((found, at, cut))
    }

    fn all(path: &Path) -> (Vec<Change>, Position, Option<LogCut>) {
        try_all(path).unwrap()
    }

    /// Three records of one, two and one change.
    fn written(path: &Path) -> Vec<(Position, Vec<Change>)> {
        let mut at = Position::default();
        let mut so_far = Vec::new();
        let mut states = vec![(at, Vec::new())];
        for batch in [&["a"][..], &["b", "c"], &["d"]] {
            let changes: Vec<_> = batch.iter().map(|n| change(Action::Add, n)).collect();
            at = append(path, "base", at, &changes).unwrap();
            so_far.extend(changes);
            states.push((at, so_far.clone()));
        }
        states
    }

    /// As a version left it that wrote no commits.
    fn uncommitted(path: &Path) {
        std::fs::remove_file(path.with_file_name(commit::COMMIT)).unwrap();
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
    fn an_acknowledged_change_that_was_cut_off_is_an_error_wherever_the_cut_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        let states = written(&path);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let kept = (states.iter())
                .rfind(|(at, _)| at.bytes <= length as u64)
                .unwrap();
            match try_all(&path).unwrap_err() {
                Error::DamagedLog { whole, .. } => assert_eq!(whole, kept.0.changes, "{length}"),
                other => unreachable!("{other}"),
            }
        }
        std::fs::remove_file(&path).unwrap();
        let error = try_all(&path).unwrap_err().to_string();
        assert!(error.contains("it is missing"), "{error}");
    }

    #[test]
    fn a_change_that_was_never_acknowledged_is_dropped_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        let states = written(&path);
        let whole = std::fs::read(&path).unwrap();
        let (before, acknowledged) = &states[2];
        // the last record is being written: its commit is not there yet, and any part of it may be
        let last = before.bytes as usize..whole.len();
        for length in last.clone() {
            for garbage in [false, true] {
                std::fs::write(&path, &whole[..length]).unwrap();
                uncommitted(&path);
                commit::write(&path, "base", *before).unwrap();
                if garbage {
                    // blocks that were given to the file and never written
                    let mut torn = whole[..length].to_vec();
                    torn.resize(whole.len(), 0);
                    std::fs::write(&path, torn).unwrap();
                }
                let (found, at, cut) = all(&path);
                assert_eq!((&found, at), (acknowledged, *before), "{length}");
                let left = std::fs::metadata(&path).unwrap().len() - at.bytes;
                assert_eq!(cut.map(|cut| cut.bytes), Some(left).filter(|n| *n > 0));
                // a record after it goes where the cut is
                append(&path, "base", at, &[change(Action::Remove, "x")]).unwrap();
                let (after, _, cut) = all(&path);
                assert_eq!((after.len(), cut), (acknowledged.len() + 1, None));
            }
        }
        // on the disk, and not committed yet: it counts
        std::fs::write(&path, &whole).unwrap();
        uncommitted(&path);
        commit::write(&path, "base", *before).unwrap();
        assert_eq!(all(&path).0.len(), 4);
    }

    #[test]
    fn two_hundred_flipped_bits_lose_no_change_in_silence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        let states = written(&path);
        let (_, every) = states.last().unwrap();
        let mut found_as_error = 0;
        let mut state = 5u64;
        for _ in 0..200 {
            state = (state.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1);
            let files = [path.clone(), path.with_file_name(commit::COMMIT)];
            // four of five into the log
            let file = &files[usize::from(state >> 33 & 7 == 0)];
            let whole = std::fs::read(file).unwrap();
            let place = (state >> 36) as usize % whole.len();
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << (state >> 60 & 7);
            std::fs::write(file, &damaged).unwrap();
            match try_all(&path) {
                Ok((found, _, cut)) => {
                    assert_eq!((&found, cut), (every, None), "byte {place} of {file:?}");
                    assert_eq!(file, &files[1], "every byte of the log is covered");
                }
                Err(Error::DamagedLog { .. }) => found_as_error += 1,
                Err(other) => unreachable!("{other}"),
            }
            std::fs::write(file, &whole).unwrap();
        }
        assert!(found_as_error > 150, "{found_as_error}");
    }

    #[test]
    fn a_log_without_commits_is_read_as_before_and_damage_in_it_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        let states = written(&path);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let _ = std::fs::remove_file(path.with_file_name(commit::COMMIT));
            let (found, at, cut) = all(&path);
            let kept = (states.iter())
                .rfind(|(at, _)| at.bytes <= length as u64)
                .unwrap();
            assert_eq!(found, kept.1, "{length}");
            assert!(cut.is_none_or(|cut| cut.at + cut.bytes == length as u64));
            append(&path, "base", at, &[change(Action::Remove, "x")]).unwrap();
            assert_eq!(all(&path).0.len(), kept.1.len() + 1);
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << (place % 8);
            std::fs::write(&path, &damaged).unwrap();
            let _ = std::fs::remove_file(path.with_file_name(commit::COMMIT));
            assert!(try_all(&path).is_err(), "{place}");
        }
    }

    #[test]
    fn the_log_of_another_graph_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        written(&path);
        let mut found = 0;
        let error = read(&path, "other", Position::default(), |_| {
            found += 1;
            Ok(())
        });
        assert!(error.is_err());
        assert_eq!(found, 0);
        // another log of the same graph, whole in itself
        let other = dir.path().join("other").join(LOG);
        std::fs::create_dir(other.parent().unwrap()).unwrap();
        let changes: Vec<_> = ["x", "y", "z", "w"]
            .map(|name| change(Action::Add, name))
            .into();
        append(&other, "base", Position::default(), &changes).unwrap();
        std::fs::copy(&other, &path).unwrap();
        assert!(try_all(&path).is_err());
    }
}
