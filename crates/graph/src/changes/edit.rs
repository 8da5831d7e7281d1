//! Changing a graph: reading files of added or removed triples, and writing them to the log.

use std::io::{BufRead, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::Changes;
use super::log::{self, Action, Change};
use crate::error::{Error, Result};
use crate::key::{self, TripleKeys};
use crate::load::Format;
use crate::load::blocks::{Blocks, LONGEST_RECORD};
use crate::load::fields::first_record;
use crate::load::record::{RecordFormat, each_record};
use crate::load::source::{self, Input};
use crate::load::table::{Layout, RecordKind, TableOptions};
use crate::store::Store;
use crate::write_lock::WriteLock;

/// Malformed lines that are listed in an error.
const MAX_REPORTED: usize = 3;

/// Triples to add or remove together, in order.
///
/// Blank nodes go by the labels that the graph shows for them.
#[derive(Clone, Debug, Default)]
pub struct ChangeSet {
    changes: Vec<Change>,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeReport {
    /// Triples that were added.
    pub added: u64,
    /// Triples that were removed.
    pub removed: u64,
    /// Triples to add that existed already.
    pub already_there: u64,
    /// Triples to remove that did not exist.
    pub not_there: u64,
    /// Changes in the log, these included.
    pub pending: u64,
}

impl ChangeSet {
    /// Reads a file of lines: N-Triples, N-Quads, TSV, CSV, bars or JSON lines. A malformed line
    /// is an error: changes are made whole or not at all.
    pub fn read(
        input: &Input,
        action: Action,
        format: Option<Format>,
        options: &TableOptions,
    ) -> Result<Self> {
        let source = source::open(input, format, Arc::default(), u64::MAX)?;
        Self::lines(&source.path, source.text, source.format, action, options)
    }

    /// Reads lines of text that is at hand.
    pub fn parse(text: &str, action: Action, format: Format, typed: bool) -> Result<Self> {
        let options = TableOptions {
            typed,
            ..TableOptions::default()
        };
        let name = match action {
            Action::Add => "add",
            Action::Remove => "remove",
        };
        let text = Cursor::new(text.as_bytes());
        Self::lines(Path::new(name), text, format, action, &options)
    }

    fn lines(
        path: &Path,
        text: impl BufRead,
        format: Format,
        action: Action,
        options: &TableOptions,
    ) -> Result<Self> {
        if format.document().is_some() {
            return Err(Error::BadInput {
                path: path.to_owned(),
                reason: "changes are read line by line, and this format is not line-based".into(),
                hint: Some("write them as N-Triples (`--format nt`) or TSV".into()),
            });
        }
        let mut reading = ChangeReader {
            path: path.to_owned(),
            action,
            changes: Vec::new(),
            mistakes: Vec::new(),
            malformed: 0,
        };
        let mut layout = None;
        let mut blocks = Blocks::new(text, format == Format::Csv);
        let mut keys = TripleKeys::default();
        while let Some(block) = blocks.next().map_err(|e| source::unpack_error(path, e))? {
            if block.first_line == 1 && matches!(format, Format::Tsv | Format::Csv | Format::Pipe) {
                let first = first_record(&block.bytes, format);
                let first = String::from_utf8_lossy(first);
                let found = Layout::new(options, &first, format);
                layout = Some(found.map_err(|reason| Error::BadInput {
                    path: path.to_owned(),
                    reason,
                    hint: None,
                })?);
            }
            let record = RecordFormat {
                format,
                layout,
                typed: options.typed,
                file: 0,
            };
            let mut parse = |bytes: &[u8], line: u64| {
                let number = block.first_line + line;
                if number == 1 && layout.is_some_and(|l: Layout| l.has_header) {
                    return;
                }
                let kind = record.parse(bytes, &mut keys);
                let found = kind.map(|kind| kind != RecordKind::Blank);
                reading.push(number, found, &keys);
            };
            each_record(&block, format, &mut parse);
        }
        for line in blocks.too_long {
            let longest = LONGEST_RECORD >> 20;
            reading.push(line, Err(format!("longer than {longest} MiB")), &keys);
        }
        reading.end()
    }

    /// These changes, and then the others.
    pub fn then(mut self, other: Self) -> Self {
        self.changes.extend(other.changes);
        self
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Collects changes and malformed lines.
struct ChangeReader {
    path: PathBuf,
    action: Action,
    changes: Vec<Change>,
    mistakes: Vec<String>,
    malformed: u64,
}

impl ChangeReader {
    fn push(&mut self, line: u64, found: Result<bool, String>, keys: &TripleKeys) {
        match found {
            Ok(true) => {
                let mut keys = keys.clone();
                keys.iter_mut().for_each(key::unscope_blank);
                let action = self.action;
                self.changes.push(Change { action, keys });
            }
            Ok(false) => {}
            Err(reason) => {
                self.malformed += 1;
                if self.mistakes.len() < MAX_REPORTED {
                    self.mistakes.push(format!("line {line}: {reason}"));
                }
            }
        }
    }

    fn end(self) -> Result<ChangeSet> {
        if self.malformed > 0 {
            return Err(Error::BadChanges {
                path: self.path,
                count: self.malformed,
                first: self.mistakes,
            });
        }
        Ok(ChangeSet {
            changes: self.changes,
        })
    }
}

impl Store {
    /// Writes changes to the log of the folder, and returns when they are on the disk, with the
    /// store that has them: these and all that others wrote before.
    ///
    /// Changes that change nothing are counted and not written. What fails changes nothing.
    pub fn change(&self, set: &ChangeSet) -> Result<(Store, ChangeReport)> {
        let _writing = WriteLock::take(self.path())?;
        let mut current = match self.refreshed()? {
            Some(newer) => newer,
            None => self.clone(),
        };
        let path = current.base.data.join(log::LOG);
        // nobody writes to a log that is not whole, whatever its time and length say
        let (at, _) = log::read(&path, current.checksum(), current.changes.at, |_| Ok(()))?;
        if at != current.changes.at {
            current = Store::open(self.path())?;
        }
        let base = &current.base;
        let mut next = Changes::clone(&current.changes);
        let mut report = ChangeReport::default();
        let mut touched = Vec::new();
        let mut effective = Vec::new();
        for change in &set.changes {
            let changed = next.apply(base, change, &mut touched)?;
            match (change.action, changed) {
                (Action::Add, true) => report.added += 1,
                (Action::Add, false) => report.already_there += 1,
                (Action::Remove, true) => report.removed += 1,
                (Action::Remove, false) => report.not_there += 1,
            }
            if changed {
                effective.push(change.clone());
            }
        }
        if effective.is_empty() {
            report.pending = current.changes.at.changes;
            return Ok((current, report));
        }
        let path = base.data.join(log::LOG);
        let at = current.changes.at;
        let at = log::append(&path, current.checksum(), at, &effective)?;
        next.log = crate::base::Stamp::of(&path)?;
        next.finish_update(base, at, None, touched)?;
        report.pending = at.changes;
        let store = Store {
            base: Arc::clone(base),
            changes: Arc::new(next),
        };
        Ok((store, report))
    }
}
