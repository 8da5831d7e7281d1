//! The files of a run, read within limits. Links are not followed: they could lead anywhere.
//!
//! Errors are for whoever asks: they name the file and not where it lies.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

pub(super) const RUN: &str = "run.json";
pub(super) const METRICS: &str = "metrics.json";
pub(super) const QUESTIONS: &str = "questions.jsonl";
pub(super) const ANSWERS: &str = "answers.jsonl";

// All limits are guesses, far above what `wherefore eval` writes.

/// Folders below the given one that runs are looked for in.
const DEPTH: usize = 3;
const MOST_RUNS: usize = 1000;
/// Bytes of `run.json`, which names every question, and of `metrics.json`.
const MOST_JSON: u64 = 32 << 20;
/// Bytes of a file of lines; 10,000 questions with 100 triples each have about 300 MB.
const MOST_BYTES: u64 = 4 << 30;
const MOST_LINE: u64 = 16 << 20;
const MOST_LINES: usize = 100_000;

/// Bytes and times of the files of lines.
pub(super) type Stamp = [Option<(u64, Option<SystemTime>)>; 2];

/// Where a line begins, and its bytes.
pub(super) type Place = (u64, usize);

/// The runs below a folder by name, or the folder if it is one.
pub(super) fn run_folders(root: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    if is_there(root, RUN) {
        let name = root.canonicalize().ok();
        let name = (name.as_deref().unwrap_or(root)).file_name();
        let name = name.map_or_else(|| "run".into(), |n| n.to_string_lossy());
        found.insert(name.into_owned(), root.to_owned());
    } else {
        collect(root, "", DEPTH, &mut found);
    }
    found
}

/// Whether there is such a file, readable or not.
pub(super) fn is_there(folder: &Path, name: &str) -> bool {
    fs::symlink_metadata(folder.join(name)).is_ok()
}

fn collect(folder: &Path, name: &str, depth: usize, found: &mut BTreeMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        // not true of a link
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        let own = entry.file_name().to_string_lossy().into_owned();
        let name = match name {
            "" => own,
            above => format!("{above}/{own}"),
        };
        if is_there(&path, RUN) {
            if found.len() < MOST_RUNS {
                found.insert(name, path);
            }
        } else if depth > 1 {
            collect(&path, &name, depth - 1, found);
        }
    }
}

/// Bytes and times of the files of lines, as they are now.
pub(super) fn stamp(folder: &Path) -> Stamp {
    [QUESTIONS, ANSWERS].map(|name| {
        let about = fs::symlink_metadata(folder.join(name)).ok()?;
        Some((about.len(), about.modified().ok()))
    })
}

/// Seconds since 1970 when a run was last written to.
pub(super) fn modified(folder: &Path) -> Option<u64> {
    let files = [METRICS, ANSWERS, RUN].map(|name| folder.join(name));
    let last = files
        .iter()
        .find_map(|path| fs::symlink_metadata(path).ok())?;
    let since = last.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH);
    since.ok().map(|since| since.as_secs())
}

fn unreadable(name: &str, error: &dyn Display) -> String {
    format!("`{name}` cannot be read: {error}")
}

/// A file of a run: no link, and no pipe, which could never end.
fn open(folder: &Path, name: &str, most: u64) -> Result<File, String> {
    let path = folder.join(name);
    let about = fs::symlink_metadata(&path).map_err(|e| unreadable(name, &e))?;
    if !about.is_file() {
        return Err(unreadable(name, &"it is not a plain file"));
    }
    if about.len() > most {
        let problem = format!("it has {} bytes, more than {most}", about.len());
        return Err(unreadable(name, &problem));
    }
    File::open(&path).map_err(|e| unreadable(name, &e))
}

/// What a small file says.
pub(super) fn read_json(folder: &Path, name: &str) -> Result<Value, String> {
    let file = open(folder, name, MOST_JSON)?.take(MOST_JSON);
    let text = io::read_to_string(file).map_err(|e| unreadable(name, &e))?;
    serde_json::from_str(&text).map_err(|e| unreadable(name, &e))
}

/// Whether a file of lines can be read.
pub(super) fn check(folder: &Path, name: &str) -> Result<(), String> {
    open(folder, name, MOST_BYTES).map(drop)
}

/// Whole lines with their places; a half-written last one is left alone.
pub(super) fn each_line(
    folder: &Path,
    name: &str,
    mut take: impl FnMut(Place, &[u8]) -> serde_json::Result<()>,
) -> Result<(), String> {
    let mut reader = BufReader::with_capacity(1 << 16, open(folder, name, MOST_BYTES)?);
    let (mut line, mut at) = (Vec::new(), 0);
    for number in 1..=MOST_LINES + 1 {
        line.clear();
        let read = (reader.by_ref().take(MOST_LINE)).read_until(b'\n', &mut line);
        let read = read.map_err(|e| unreadable(name, &e))? as u64;
        if line.pop() != Some(b'\n') {
            let problem = format!("line {number} has more than {MOST_LINE} bytes");
            return if read < MOST_LINE {
                Ok(())
            } else {
                Err(unreadable(name, &problem))
            };
        }
        take((at, line.len()), &line)
            .map_err(|e| unreadable(name, &format!("line {number}: {e}")))?;
        at += read;
    }
    let problem = format!("it has more than {MOST_LINES} lines");
    Err(unreadable(name, &problem))
}

/// One line.
pub(super) fn read_at(folder: &Path, name: &str, (at, length): Place) -> Result<Value, String> {
    let mut file = open(folder, name, MOST_BYTES)?;
    let mut bytes = vec![0; length];
    file.seek(SeekFrom::Start(at))
        .and_then(|_| file.read_exact(&mut bytes))
        .map_err(|e| unreadable(name, &e))?;
    serde_json::from_slice(&bytes).map_err(|e| unreadable(name, &e))
}
