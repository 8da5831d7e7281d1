//! Repairing a change log: recovers the intact records of a damaged log into a new one.
//!
//! A record is proved by its chain, and its chain by the record after it. So records after a
//! damaged one can be found again: the chain that the damaged one says it ends with is the seed of
//! the next one's `check`, which is looked for byte by byte. A record whose own head is damaged is
//! whole if its bytes, up to the next record, give its chain.

use std::path::Path;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::commit;
use super::commit::Position;
use super::log::{self, Change, HEADER, Head, LOG, RECORD, check_of};
use crate::error::{Error, Result};
use crate::file::{self, sync_folder};
use crate::manifest::Manifest;
use crate::write_lock::WriteLock;

/// The damage of a graph folder, and what can be recovered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Damaged files. Only a load can write them again.
    pub files: Vec<DamagedFile>,
    /// The change log, where it is damaged.
    pub log: Option<LogReport>,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A damaged change log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogReport {
    /// What is wrong with it.
    pub reason: String,
    /// Intact changes.
    pub whole: u64,
    /// Acknowledged changes that are lost, if known.
    pub lost_changes: Option<u64>,
    /// The damaged parts of the log.
    pub lost: Vec<LostRecord>,
    /// The file with the damaged log, once a new one was written.
    pub kept_as: Option<String>,
}

/// A damaged part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LostRecord {
    /// The first of them.
    pub at: u64,
    /// How many.
    pub bytes: u64,
}

impl RepairReport {
    /// Whether there is no damage.
    pub fn is_whole(&self) -> bool {
        self.files.is_empty() && self.log.is_none()
    }
}

/// Reports the damage of a graph folder. With `write`, replaces a damaged change log by one with
/// the intact changes, and keeps the damaged log beside it.
pub fn repair(graph: &Path, write: bool) -> Result<RepairReport> {
    let manifest = Manifest::read(graph)?;
    let _writing = match write {
        true => Some(WriteLock::take(graph)?),
        false => None,
    };
    let data = manifest.data(graph);
    let mut report = RepairReport::default();
    for promised in manifest.files.iter().chain(&manifest.sums) {
        let reason = match file::check(&data, promised) {
            Ok(()) => continue,
            Err(Error::Damaged { reason, .. }) => reason,
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                "it is missing".into()
            }
            Err(other) => return Err(other),
        };
        report.files.push(DamagedFile {
            name: promised.name.clone(),
            reason,
        });
    }
    let path = data.join(LOG);
    let checksum = manifest.checksum.as_str();
    let reason = match log::read(&path, checksum, Position::default(), |_| Ok(())) {
        Ok(_) => return Ok(report),
        Err(Error::DamagedLog { path, reason, .. }) => {
            format!(
                "{}: {reason}",
                path.file_name().unwrap_or_default().display()
            )
        }
        Err(other) => return Err(other),
    };
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(Error::io("read", &path)(e)),
    };
    let saved = salvage(&bytes, checksum);
    let acknowledged = commit::read(&path, checksum).ok().flatten();
    let whole = saved.changes.len() as u64;
    let mut log = LogReport {
        reason,
        whole,
        lost_changes: acknowledged.map(|at| at.changes.saturating_sub(whole)),
        lost: saved.lost,
        kept_as: None,
    };
    if write {
        log.kept_as = rewrite(&data, checksum, &saved.changes)?;
    }
    report.log = Some(log);
    Ok(report)
}

/// Puts a log with these changes in the place of the damaged one; gives the name of the file that
/// the old one is kept in. Stopped at any point, it leaves a log that can be repaired again.
fn rewrite(data: &Path, checksum: &str, changes: &[Change]) -> Result<Option<String>> {
    let path = data.join(LOG);
    let mut kept_as = None;
    if path.exists() {
        let mut number = 1;
        while data.join(format!("{KEPT}{number}")).exists() {
            number += 1;
        }
        let kept = data.join(format!("{KEPT}{number}"));
        std::fs::copy(&path, &kept).map_err(Error::io("copy", &path))?;
        let synced = std::fs::File::open(&kept).and_then(|file| file.sync_all());
        synced.map_err(Error::io("write", &kept))?;
        kept_as = Some(format!("{KEPT}{number}"));
    }
    if changes.is_empty() {
        commit::remove(&path)?;
        if path.exists() {
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    } else {
        let temporary = data.join("repaired");
        if temporary.exists() {
            std::fs::remove_dir_all(&temporary).map_err(Error::io("remove", &temporary))?;
        }
        std::fs::create_dir(&temporary).map_err(Error::io("create", &temporary))?;
        let new = temporary.join(LOG);
        let at = log::append(&new, checksum, Position::default(), changes)?;
        std::fs::rename(&new, &path).map_err(Error::io("rename", &new))?;
        commit::replace(&path, checksum, at)?;
        std::fs::remove_dir_all(&temporary).map_err(Error::io("remove", &temporary))?;
    }
    sync_folder(data)?;
    Ok(kept_as)
}

/// File name prefix of damaged logs that were kept.
pub(super) const KEPT: &str = "changes.damaged-";

/// The intact part of a log.
#[derive(Debug, Default)]
struct Saved {
    changes: Vec<Change>,
    lost: Vec<LostRecord>,
}

fn salvage(bytes: &[u8], checksum: &str) -> Saved {
    let mut saved = Saved::default();
    let mut at = HEADER as usize;
    let mut chain = commit::seed(checksum);
    while at < bytes.len() {
        if let Some((changes, end, ends_with)) = whole_record(bytes, at, chain) {
            saved.changes.extend(changes);
            (at, chain) = (end, ends_with);
            continue;
        }
        let next = next_record(bytes, at);
        let end = next.map_or(bytes.len(), |(end, _)| end);
        match recover(bytes, at, end, chain) {
            Some(changes) => saved.changes.extend(changes),
            None => saved.lost.push(LostRecord {
                at: at as u64,
                bytes: (end - at) as u64,
            }),
        }
        match next {
            Some((end, ends_with)) => (at, chain) = (end, ends_with),
            None => break,
        }
    }
    saved
}

fn head_at(bytes: &[u8], at: usize) -> Option<Head> {
    let head = bytes.get(at..)?.first_chunk::<RECORD>()?;
    Some(Head::parse(head))
}

/// An intact record: its changes, its end and its chain.
fn whole_record(bytes: &[u8], at: usize, chain: u64) -> Option<(Vec<Change>, usize, u64)> {
    let head = head_at(bytes, at)?;
    let from = at + RECORD;
    let end = from.checked_add(head.length as usize)?;
    let payload = bytes.get(from..end)?;
    let is_whole = check_of(head.length, head.count, chain) == head.check
        && xxh3_64_with_seed(payload, head.check) == head.chain;
    let changes = is_whole.then(|| log::decode(payload, Some(head.count)))??;
    Some((changes, end, head.chain))
}

/// Where the record after a damaged one begins, and the chain that leads to it.
fn next_record(bytes: &[u8], at: usize) -> Option<(usize, u64)> {
    let head = head_at(bytes, at)?;
    // the chain that the record says, and the one that its bytes give if its length is right
    let payload = bytes.get(at + RECORD..at + RECORD + head.length as usize);
    let given = payload.map(|payload| xxh3_64_with_seed(payload, head.check));
    for chain in [Some(head.chain), given].into_iter().flatten() {
        let found = (at + RECORD..bytes.len()).find(|&place| {
            head_at(bytes, place)
                .is_some_and(|head| check_of(head.length, head.count, chain) == head.check)
        });
        if let Some(place) = found {
            return Some((place, chain));
        }
    }
    None
}

/// The changes of a record with a damaged head, if the rest of it proves them.
fn recover(bytes: &[u8], at: usize, end: usize, chain: u64) -> Option<Vec<Change>> {
    let head = head_at(bytes, at)?;
    let payload = bytes.get(at + RECORD..end)?;
    let changes = log::decode(payload, None)?;
    let length = u32::try_from(payload.len()).ok()?;
    let check = check_of(length, u32::try_from(changes.len()).ok()?, chain);
    let ends_with = xxh3_64_with_seed(payload, check);
    // its own chain, or the seed of the record after it
    let is_proved = ends_with == head.chain
        || head_at(bytes, end)
            .is_some_and(|next| check_of(next.length, next.count, ends_with) == next.check);
    is_proved.then_some(changes)
}

#[cfg(test)]
mod tests {
    use super::super::log::{Action, append};
    use super::*;

    fn change(name: &str) -> Change {
        let key = |kind: u8, text: &str| [&[kind], text.as_bytes()].concat();
        Change {
            action: Action::Add,
            keys: [key(b'n', name), key(b'i', "http://r"), key(b'n', "tail")],
        }
    }

    #[test]
    fn one_flipped_bit_costs_at_most_one_record_and_none_if_it_is_in_a_head() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG);
        let mut at = Position::default();
        let mut records = Vec::new();
        for batch in [&["a"][..], &["b", "c"], &["d"]] {
            let changes: Vec<_> = batch.iter().map(|name| change(name)).collect();
            let from = at.bytes.max(HEADER) as usize;
            at = append(&path, "base", at, &changes).unwrap();
            records.push((from..at.bytes as usize, changes));
        }
        let bytes = std::fs::read(&path).unwrap();
        let all: Vec<Change> = records.iter().flat_map(|(_, c)| c.clone()).collect();
        assert_eq!(salvage(&bytes, "base").changes, all);
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (place % 8);
            let saved = salvage(&damaged, "base");
            let hit = records.iter().position(|(range, _)| range.contains(&place));
            let Some(hit) = hit else {
                // the log's own head
                assert_eq!(saved.changes, all, "{place}");
                continue;
            };
            let range = &records[hit].0;
            let in_chain = (range.start + 16..range.start + 24).contains(&place);
            let in_head = place < range.start + RECORD;
            let is_last = hit + 1 == records.len();
            if in_head && !(in_chain && is_last) {
                assert_eq!(
                    (saved.changes, saved.lost),
                    (all.clone(), vec![]),
                    "{place}"
                );
                continue;
            }
            let rest = (records.iter().enumerate()).filter(|(i, _)| *i != hit);
            let rest: Vec<Change> = rest.flat_map(|(_, (_, c))| c.clone()).collect();
            assert_eq!(saved.changes, rest, "{place}");
            let lost = LostRecord {
                at: range.start as u64,
                bytes: range.len() as u64,
            };
            assert_eq!(saved.lost, [lost], "{place}");
        }
        // cut anywhere: what is whole before the cut
        for length in 0..bytes.len() {
            let saved = salvage(&bytes[..length], "base");
            let whole = records.iter().filter(|(range, _)| range.end <= length);
            let whole: Vec<Change> = whole.flat_map(|(_, c)| c.clone()).collect();
            assert_eq!(saved.changes, whole, "{length}");
        }
    }
}
