//! Changing a graph: reading files of triples that come or go, and writing them to the log.

use std::io::{BufRead, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::Changes;
use super::log::{self, Action, Change, Keys, WriteLock};
use crate::error::{Error, Result};
use crate::key;
use crate::load::blocks::{Blocks, LONGEST_RECORD};
use crate::load::source::{self, Format, Input};
use crate::load::table::{Layout, Record, TableOptions};
use crate::load::{rdf, table};
use crate::store::Store;

/// Mistakes that are told.
const SHOWN: usize = 3;

/// Triples that come or go together, in order.
///
/// Blank nodes go by the labels that the graph shows for them.
#[derive(Clone, Debug, Default)]
pub struct ChangeSet {
    changes: Vec<Change>,
}

/// What a change did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeReport {
    /// Triples that the graph states now and did not before.
    pub added: u64,
    /// Triples that it stated before and does not any more.
    pub removed: u64,
    /// Triples to be added that were there already.
    pub already_there: u64,
    /// Triples to be removed that were not there.
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
                reason: "changes are read line by line, and this format has no lines".into(),
                hint: Some("write them as N-Triples (`--format nt`) or TSV".into()),
            });
        }
        let mut reading = Reading {
            path: path.to_owned(),
            action,
            changes: Vec::new(),
            mistakes: Vec::new(),
            malformed: 0,
        };
        let mut layout = None;
        let mut blocks = Blocks::new(text, format == Format::Csv);
        let mut keys = Keys::default();
        while let Some(mut block) = blocks.next().map_err(|e| source::unpack_error(path, e))? {
            if block.first_line == 1 {
                if let Some(rest) = block.bytes.strip_prefix("\u{feff}".as_bytes()) {
                    block.bytes = rest.to_vec();
                }
                if matches!(format, Format::Tsv | Format::Csv | Format::Pipe) {
                    let first = block.bytes.split(|b| *b == b'\n').next();
                    let first = String::from_utf8_lossy(first.unwrap_or_default());
                    let found = Layout::new(options, &first, format);
                    layout = Some(found.map_err(|reason| Error::BadInput {
                        path: path.to_owned(),
                        reason,
                        hint: None,
                    })?);
                }
            }
            let mut parse = |bytes: &[u8], line: u64| {
                let number = block.first_line + line;
                if number == 1 && layout.is_some_and(|l: Layout| l.has_header) {
                    return;
                }
                let found = match format {
                    Format::NTriples | Format::NQuads => {
                        rdf::line(bytes, format == Format::NQuads, 0, &mut keys)
                    }
                    _ => match (std::str::from_utf8(bytes), layout) {
                        (Err(e), _) => Err(format!("not UTF-8 at byte {}", e.valid_up_to() + 1)),
                        (Ok(text), Some(layout)) => {
                            table::record(text, format, layout, options.typed, &mut keys)
                                .map(|record| record != Record::Blank)
                        }
                        (Ok(text), None) => table::json_line(text, options.typed, &mut keys),
                    },
                };
                reading.take(number, found, &keys);
            };
            if format == Format::Csv {
                table::csv_records(&block.bytes, parse);
            } else {
                for (line, number) in block.bytes.split(|b| *b == b'\n').zip(0..) {
                    parse(line, number);
                }
            }
        }
        for line in blocks.too_long {
            let longest = LONGEST_RECORD >> 20;
            reading.take(line, Err(format!("longer than {longest} MiB")), &keys);
        }
        reading.end()
    }

    /// These changes, and then the others.
    pub fn then(mut self, other: Self) -> Self {
        self.changes.extend(other.changes);
        self
    }

    /// How many triples are to come or go.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Lines that are being read.
struct Reading {
    path: PathBuf,
    action: Action,
    changes: Vec<Change>,
    mistakes: Vec<String>,
    malformed: u64,
}

impl Reading {
    fn take(&mut self, line: u64, found: Result<bool, String>, keys: &Keys) {
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
                if self.mistakes.len() < SHOWN {
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
        next.settle(base, at, None, touched)?;
        report.pending = at.changes;
        let store = Store {
            base: Arc::clone(base),
            changes: Arc::new(next),
        };
        Ok((store, report))
    }
}
