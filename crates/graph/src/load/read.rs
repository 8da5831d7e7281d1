//! Parsing inputs on all cores.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::blocks::{Block, Blocks, LONGEST_RECORD};
use super::bounds::max_between;
use super::chunk::{Chunk, SortedChunk};
use super::fields::{self, first_record};
use super::format::Format;
use super::json;
use super::naming;
use super::options::{LoadOptions, LoadProgress, LoadStep};
use super::rdf::{self, Event};
use super::record::{NOT_UTF8, RecordFormat, each_record, utf8};
use super::source::{self, Input, Source};
use super::sqlite;
use super::table::{self, Layout, RecordKind};
use super::wide::{JsonElement, RowTriples, Wide, WideSchema, is_wide};
use super::xlsx;
use crate::error::{Error, Result};
use crate::key::{self, LiteralKindRef, TripleKeys};

/// A malformed line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The input.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.reason)
    }
}

const MAX_REPORTED: usize = 10;

/// Parsed inputs.
pub(crate) struct ParsedInputs {
    pub(crate) chunks: Vec<SortedChunk>,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) malformed: u64,
    pub(crate) spilled: usize,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// What else may stand between the fields of a table, and what to do then.
    pub(crate) separator: Option<(&'static str, &'static str)>,
    /// Whether all inputs were RDF, which may hold no triple at all.
    pub(crate) is_rdf: bool,
}

/// State shared by the workers.
struct SharedState<'a> {
    options: &'a LoadOptions,
    inputs: Vec<PathBuf>,
    /// Memory of one worker.
    share: usize,
    temporary: &'a Path,
    chunks: Mutex<Vec<SortedChunk>>,
    spilled: AtomicUsize,
    triples: AtomicU64,
    malformed: AtomicU64,
    /// Lines with ignored fields.
    longer: AtomicU64,
    notes: Mutex<Vec<String>>,
    separator: Mutex<Option<(&'static str, &'static str)>>,
    /// Whether an input was no RDF.
    tables: AtomicBool,
    /// The first few: file number, line, reason.
    mistakes: Mutex<BTreeSet<(usize, u64, String)>>,
    stop: AtomicBool,
}

/// Work for a worker.
enum ParseTask {
    Lines {
        file: usize,
        format: Format,
        layout: Option<Layout>,
        things: Option<Arc<WideSchema>>,
        block: Block,
    },
    /// Keys of parsed triples, one after the other, with their lengths.
    Keys {
        bytes: Vec<u8>,
        lengths: Vec<[u32; 3]>,
    },
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // a worker that panicked is reported when it is joined
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads all inputs into sorted chunks.
pub(crate) fn read(
    inputs: &[Input],
    options: &LoadOptions,
    threads: usize,
    memory: usize,
    temporary: &Path,
    progress: &(dyn Fn(LoadProgress) + Sync),
) -> Result<ParsedInputs> {
    let shared = SharedState {
        options,
        inputs: inputs
            .iter()
            .map(Input::path)
            .chain(options.names.iter().cloned())
            .collect(),
        // the rest is for reading, queueing and merging
        share: memory * 6 / 10 / threads,
        temporary,
        chunks: Mutex::new(Vec::new()),
        spilled: AtomicUsize::new(0),
        triples: AtomicU64::new(0),
        malformed: AtomicU64::new(0),
        longer: AtomicU64::new(0),
        notes: Mutex::new(Vec::new()),
        separator: Mutex::new(None),
        tables: AtomicBool::new(false),
        mistakes: Mutex::new(BTreeSet::new()),
        stop: AtomicBool::new(false),
    };
    let (sender, receiver) = sync_channel::<ParseTask>(2 * threads);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let result = work(&shared, &receiver);
                    if result.is_err() {
                        shared.stop.store(true, Ordering::Relaxed);
                        // drain the queue, so that the reader is not blocked
                        while let Ok(task) = next(&receiver) {
                            drop(task);
                        }
                    }
                    result
                })
            })
            .collect();
        let sent = send_all(inputs, &shared, &sender, progress);
        drop(sender);
        let mut failed = None;
        for worker in workers {
            match worker.join() {
                Ok(Ok(())) => {}
                Ok(Err(e)) => failed = failed.or(Some(e)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match failed {
            Some(e) => Err(e),
            None => sent,
        }
    })?;

    let mistakes: Vec<Mistake> = lock(&shared.mistakes)
        .iter()
        .map(|(file, line, reason)| Mistake {
            file: shared.inputs[*file].clone(),
            line: *line,
            reason: reason.clone(),
        })
        .collect();
    let malformed = shared.malformed.load(Ordering::Relaxed);
    if malformed > options.max_errors {
        return Err(Error::TooManyErrors {
            count: malformed,
            allowed: options.max_errors,
            first: mistakes.iter().map(Mistake::to_string).collect(),
        });
    }
    let mut notes = std::mem::take(&mut *lock(&shared.notes));
    let longer = shared.longer.load(Ordering::Relaxed);
    if longer > 0 {
        notes.push(format!(
            "{longer} {} more than three fields, and only the first three were read, as head, \
             relation and tail; `--columns H,R,T` names others",
            if longer == 1 {
                "line has"
            } else {
                "lines have"
            }
        ));
    }
    let separator = lock(&shared.separator).take();
    Ok(ParsedInputs {
        is_rdf: !shared.tables.load(Ordering::Relaxed),
        notes,
        separator,
        chunks: shared
            .chunks
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
        mistakes,
        malformed,
        spilled: shared.spilled.into_inner(),
    })
}

fn next(receiver: &Mutex<Receiver<ParseTask>>) -> Result<ParseTask, std::sync::mpsc::RecvError> {
    lock(receiver).recv()
}

impl SharedState<'_> {
    fn mistake(&self, file: usize, line: u64, reason: String) {
        let count = self.malformed.fetch_add(1, Ordering::Relaxed) + 1;
        let mut mistakes = lock(&self.mistakes);
        mistakes.insert((file, line, reason));
        if mistakes.len() > MAX_REPORTED {
            mistakes.pop_last();
        }
        if count > self.options.max_errors {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The reading side: opens inputs one after the other and sends their text to the workers.
fn send_all(
    inputs: &[Input],
    shared: &SharedState<'_>,
    sender: &SyncSender<ParseTask>,
    progress: &(dyn Fn(LoadProgress) + Sync),
) -> Result<()> {
    let total = inputs.iter().map(Input::size).sum::<Option<u64>>();
    let read = Arc::new(AtomicU64::new(0));
    let report = || {
        progress(LoadProgress {
            step: LoadStep::Reading,
            done: read.load(Ordering::Relaxed),
            total,
            triples: shared.triples.load(Ordering::Relaxed),
        });
    };
    report();
    for (file, input) in inputs.iter().enumerate() {
        let options = shared.options;
        if let Some(whole) = source::database(input, options.format)? {
            shared.tables.store(true, Ordering::Relaxed);
            send_database(whole, file, shared, sender, &report)?;
            read.fetch_add(input.size().unwrap_or_default(), Ordering::Relaxed);
            report();
            continue;
        }
        let mut source = source::open(input, options.format, read.clone(), options.max_text)?;
        if !source.format.is_rdf() {
            shared.tables.store(true, Ordering::Relaxed);
        } else if options.table.wide.is_some() {
            return Err(Error::BadInput {
                path: source.path,
                reason: "it is RDF, where no row is a thing".into(),
                hint: Some("leave `--wide` out".into()),
            });
        }
        if source.format == Format::Json && !is_array(&mut source)? {
            source.format = Format::JsonLines;
        }
        match source.format.document() {
            Some(format) => send_document(source, format, file, shared, sender, &report)?,
            None if source.format == Format::Json => {
                send_json(source, file, shared, sender, &report)?;
            }
            None => send_lines(source, file, shared, sender, &report)?,
        }
        if shared.stopped() {
            return Ok(());
        }
    }
    for (i, path) in shared.options.names.iter().enumerate() {
        send_names(path, inputs.len() + i, shared, sender)?;
    }
    Ok(())
}

/// Reads a file that is read as a whole: the tables of a database, the sheets of a workbook.
fn send_database(
    database: source::Database,
    file: usize,
    shared: &SharedState<'_>,
    sender: &SyncSender<ParseTask>,
    report: &dyn Fn(),
) -> Result<()> {
    let source::Database {
        path,
        format,
        file: opened,
    } = database;
    let bad = |reason: String, hint: Option<&str>| Error::BadInput {
        path: path.clone(),
        reason,
        hint: hint.map(str::to_owned),
    };
    if format == Format::Xlsx {
        let sheets = xlsx::sheets(opened, shared.options.max_text).map_err(|e| bad(e, None))?;
        if sheets.is_empty() {
            return Err(bad("none of its sheets has a cell".into(), None));
        }
        let is_only = sheets.len() == 1;
        for sheet in sheets {
            let source = Source {
                // a sheet alone is called as its file
                path: if is_only {
                    path.clone()
                } else {
                    path.with_file_name(&sheet.name)
                },
                format: Format::Csv,
                text: Box::new(std::io::Cursor::new(sheet.csv.into_bytes())),
            };
            send_lines(source, file, shared, sender, report)?;
        }
        return Ok(());
    }
    let mut batch = Batch::new(shared, sender, report);
    let mut failed = None;
    let read = sqlite::read(opened, |keys| {
        failed = batch.add(keys).err();
        failed.is_none() && !shared.stopped()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    match read {
        Ok(notes) => lock(&shared.notes).extend(notes),
        Err(sqlite::Fault::Stopped) => {}
        Err(sqlite::Fault::Database(reason)) => {
            return Err(bad(
                reason,
                Some("`sqlite3 FILE .dump` tells whether SQLite itself can read it"),
            ));
        }
        Err(sqlite::Fault::Io(error)) => return Err(Error::io("read", &path)(error)),
    }
    batch.send();
    Ok(())
}

fn send_lines(
    source: Source,
    file: usize,
    shared: &SharedState<'_>,
    sender: &SyncSender<ParseTask>,
    report: &dyn Fn(),
) -> Result<()> {
    let Source { path, format, text } = source;
    let is_table = matches!(format, Format::Tsv | Format::Csv | Format::Pipe);
    let (mut layout, mut things) = (None, None);
    let mut blocks = Blocks::new(text, format == Format::Csv);
    while let Some(block) = blocks.next().map_err(|e| source::unpack_error(&path, e))? {
        if block.first_line == 1 {
            let guessed = || guessed_wide(&block.bytes, format, shared);
            if let Some(options) = shared.options.table.wide.clone().or_else(guessed) {
                let found = wide(&path, &block.bytes, format, &options, shared)?;
                if shared.options.table.wide.is_none() {
                    lock(&shared.notes).push(format!(
                        "each row of `{}` was read as one thing{}, whose columns are relations; \
                         `--columns H,R,T` reads rows as head, relation and tail",
                        path.display(),
                        found.named_by(),
                    ));
                }
                things = Some(Arc::new(found));
            } else if is_table {
                let first = first_record(&block.bytes, format);
                let found = Layout::new(
                    &shared.options.table,
                    &String::from_utf8_lossy(first),
                    format,
                )
                .map_err(|reason| Error::BadInput {
                    path: path.clone(),
                    reason,
                    hint: Some("name the columns with `--columns HEAD,RELATION,TAIL`".into()),
                })?;
                if found.is_guessed {
                    first_line(&path, &String::from_utf8_lossy(first), format, shared);
                }
                layout = Some(found);
            }
        }
        report();
        if shared.stopped()
            || sender
                .send(ParseTask::Lines {
                    file,
                    format,
                    layout,
                    things: things.clone(),
                    block,
                })
                .is_err()
        {
            break;
        }
    }
    for line in blocks.too_long {
        shared.mistake(
            file,
            line,
            format!("longer than {} MiB", LONGEST_RECORD >> 20),
        );
    }
    Ok(())
}

/// What a table is read by that nobody called wide, and that can be nothing else.
fn guessed_wide(text: &[u8], format: Format, shared: &SharedState<'_>) -> Option<Wide> {
    let options = &shared.options.table;
    let is_table = matches!(format, Format::Tsv | Format::Csv | Format::Pipe);
    if !is_table || options.columns.is_some() || options.typed {
        return None;
    }
    let first = String::from_utf8_lossy(first_record(text, format)).into_owned();
    let is_guessed = Layout::new(options, &first, format).is_ok_and(|layout| layout.is_guessed);
    (is_guessed && is_wide(text, format)).then(Wide::default)
}

/// The schema of a wide table, from its first record.
fn wide(
    path: &Path,
    text: &[u8],
    format: Format,
    wide: &Wide,
    shared: &SharedState<'_>,
) -> Result<WideSchema> {
    let bad = |reason: String, hint: &str| Error::BadInput {
        path: path.to_owned(),
        reason,
        hint: Some(hint.into()),
    };
    if format == Format::JsonLines {
        let hint = "a line holds one object, and its first name or `--name-column` names the thing";
        let first = text
            .split(|b| *b == b'\n')
            .find(|l| !l.trim_ascii().is_empty());
        let first = serde_json::from_slice::<JsonElement>(first.unwrap_or_default());
        let first = first.map_err(|e| bad(format!("its first line is not JSON: {e}"), hint))?;
        let names = wide
            .names(&first, &stem(path))
            .map_err(|reason| bad(reason, hint))?;
        return Ok(WideSchema::Json(names));
    }
    let first = first_record(text, format);
    let Ok(first) = std::str::from_utf8(first) else {
        let hint =
            "where its text is Latin-1, `iconv -f latin1 -t utf-8 FILE > NEW` writes it as UTF-8";
        return Err(bad(format!("its first line is {NOT_UTF8}"), hint));
    };
    let (columns, notes) = wide.columns(first, format, &stem(path)).map_err(|reason| {
        match table::other_separator(first, format) {
            Some((name, advice)) => {
                bad(format!("{reason}; there are {name} between its fields"), advice)
            }
            None => bad(
                reason,
                "the first line names the columns; `--name-column` is a number or one of these names",
            ),
        }
    })?;
    lock(&shared.notes).extend(notes);
    Ok(WideSchema::Table(columns))
}

/// What a file is called, without its endings; nothing for standard input.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    match stem.starts_with('<') {
        true => String::new(),
        false => stem.to_owned(),
    }
}

/// Whether a JSON text begins with an array; consumes the space before it.
fn is_array(source: &mut Source) -> Result<bool> {
    loop {
        let buffer = source.text.fill_buf();
        let buffer = buffer.map_err(|e| source::unpack_error(&source.path, e))?;
        // a mark of byte order is no space
        let is_blank = |b: &u8| b.is_ascii_whitespace() || [0xef, 0xbb, 0xbf].contains(b);
        let blank = buffer.iter().take_while(|b| is_blank(b)).count();
        let (next, empty) = (buffer.get(blank).copied(), buffer.is_empty());
        source.text.consume(blank);
        if let Some(next) = next {
            return Ok(next == b'[');
        }
        if empty {
            return Ok(false);
        }
    }
}

/// Reads the elements of an array, one at a time.
fn send_json(
    source: Source,
    file: usize,
    shared: &SharedState<'_>,
    sender: &SyncSender<ParseTask>,
    report: &dyn Fn(),
) -> Result<()> {
    let mut batch = Batch::new(shared, sender, report);
    let mut row = RowTriples::default();
    let mut keys = TripleKeys::default();
    let mut names = None;
    let mut failed = None;
    let options = &shared.options.table;
    let path = source.path;
    let ended = json::elements(source.text, |element, line| {
        let read = match &options.wide {
            Some(wide) => {
                let names = match &names {
                    Some(names) => names,
                    None => match wide.names(&element, &stem(&path)) {
                        Ok(found) => names.insert(found),
                        Err(reason) => {
                            shared.mistake(file, line, reason);
                            return !shared.stopped();
                        }
                    },
                };
                let read = row.object(&element, names);
                read.map(|()| row.triples(|keys| batch.add(keys)))
            }
            None => {
                let read = table::json_value(&element.value(), options.typed, &mut keys);
                read.map(|()| batch.add(&keys))
            }
        };
        match read {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed = Some(error),
            Err(reason) => shared.mistake(file, line, reason),
        }
        failed.is_none() && !shared.stopped()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    match ended {
        Ok(()) => {}
        // half of an array is not what somebody wanted to load
        Err(json::JsonArrayError::Text(line, reason)) => {
            return Err(rdf::unreadable(&path, line, &reason));
        }
        Err(json::JsonArrayError::Io(error)) => return Err(source::unpack_error(&path, error)),
    }
    batch.send();
    Ok(())
}

/// A batch of keys for a worker.
struct Batch<'a> {
    bytes: Vec<u8>,
    lengths: Vec<[u32; 3]>,
    shared: &'a SharedState<'a>,
    sender: &'a SyncSender<ParseTask>,
    report: &'a dyn Fn(),
}

impl<'a> Batch<'a> {
    const BYTES: usize = 1 << 20;

    fn new(
        shared: &'a SharedState<'a>,
        sender: &'a SyncSender<ParseTask>,
        report: &'a dyn Fn(),
    ) -> Self {
        Self {
            bytes: Vec::with_capacity(Self::BYTES),
            lengths: Vec::new(),
            shared,
            sender,
            report,
        }
    }

    fn add(&mut self, keys: &TripleKeys) -> Result<()> {
        let length = |k: &Vec<u8>| {
            u32::try_from(k.len()).map_err(|_| Error::TooMany {
                what: "bytes in a term",
            })
        };
        self.lengths
            .push([length(&keys[0])?, length(&keys[1])?, length(&keys[2])?]);
        keys.iter().for_each(|k| self.bytes.extend_from_slice(k));
        if self.bytes.len() >= Self::BYTES {
            self.send();
        }
        Ok(())
    }

    /// False if the workers have stopped.
    fn send(&mut self) -> bool {
        (self.report)();
        let task = ParseTask::Keys {
            bytes: std::mem::take(&mut self.bytes),
            lengths: std::mem::take(&mut self.lengths),
        };
        !self.shared.stopped() && self.sender.send(task).is_ok()
    }
}

/// Notes oddities in the first line of a table whose columns are not configured.
fn first_line(path: &Path, line: &str, format: Format, shared: &SharedState<'_>) {
    let line = line.trim_end_matches('\r');
    if table::is_like_header(line, format) {
        lock(&shared.notes).push(format!(
            "the first line of `{}` looks like a header and was read as a triple; \
             `--columns H,R,T` with names from it makes it one",
            path.display()
        ));
    }
    let mut separator = lock(&shared.separator);
    *separator = separator.or_else(|| table::other_separator(line, format));
}

fn send_document(
    source: Source,
    format: oxrdfio::RdfFormat,
    file: usize,
    shared: &SharedState<'_>,
    sender: &SyncSender<ParseTask>,
    report: &dyn Fn(),
) -> Result<()> {
    let mut batch = Batch::new(shared, sender, report);
    let document = rdf::Document {
        path: &source.path,
        format,
        file,
        base: shared.options.base.as_deref(),
        max_between: max_between(shared.options.memory),
    };
    rdf::document(&document, source.text, |event| {
        match event {
            Event::Triple(keys) => batch.add(keys)?,
            Event::Mistake(line, reason) => shared.mistake(file, line, reason),
        }
        Ok(!shared.stopped())
    })?;
    batch.send();
    Ok(())
}

/// Reads a table of (entity, name) and hands its labels out as triples.
fn send_names(
    path: &Path,
    file: usize,
    shared: &SharedState<'_>,
    sender: &SyncSender<ParseTask>,
) -> Result<()> {
    let input = Input::File(path.to_owned());
    let Source { text, format, .. } =
        source::open(&input, Some(Format::Tsv), Arc::default(), u64::MAX)?;
    let mut blocks = Blocks::new(text, false);
    let mut relation = Vec::new();
    key::push_iri(&mut relation, naming::LABELS[0]);
    while let Some(block) = blocks.next().map_err(|e| source::unpack_error(path, e))? {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for (line, number) in block.bytes.split(|b| *b == b'\n').zip(block.first_line..) {
            let Ok(line) = std::str::from_utf8(line) else {
                shared.mistake(file, number, NOT_UTF8.into());
                continue;
            };
            let mut fields = line.trim_end_matches('\r').split('\t').map(str::trim);
            match (
                fields.next().filter(|e| !e.is_empty()),
                fields.next().filter(|n| !n.is_empty()),
            ) {
                (Some(entity), Some(name)) => {
                    let head = fields::entity_key(entity);
                    let mut tail = Vec::new();
                    key::push_literal(&mut tail, name, LiteralKindRef::Plain);
                    lengths.push([head.len() as u32, relation.len() as u32, tail.len() as u32]);
                    for part in [&head, &relation, &tail] {
                        bytes.extend_from_slice(part);
                    }
                }
                (None, None) => {}
                _ => shared.mistake(file, number, "an entity and its name are needed".into()),
            }
        }
        if shared.stopped() || sender.send(ParseTask::Keys { bytes, lengths }).is_err() {
            break;
        }
    }
    debug_assert_eq!(format, Format::Tsv);
    Ok(())
}

/// A worker: parses tasks until the queue is closed.
fn work(shared: &SharedState<'_>, receiver: &Mutex<Receiver<ParseTask>>) -> Result<()> {
    let mut chunk = Chunk::default();
    while let Ok(task) = next(receiver) {
        if shared.stopped() {
            continue;
        }
        let before = chunk.triples.len();
        match task {
            ParseTask::Lines {
                file,
                format,
                layout,
                things: None,
                block,
            } => {
                parse_block(shared, &mut chunk, file, format, layout, &block)?;
            }
            ParseTask::Lines {
                file,
                format,
                things: Some(things),
                block,
                ..
            } => {
                parse_things(shared, &mut chunk, file, format, &things, &block)?;
            }
            ParseTask::Keys { bytes, lengths } => {
                let mut rest = bytes.as_slice();
                for triple in lengths {
                    for (key, length) in chunk.scratch.iter_mut().zip(triple) {
                        let (taken, after) = rest.split_at(length as usize);
                        key.clear();
                        key.extend_from_slice(taken);
                        rest = after;
                    }
                    chunk.add_scratch()?;
                }
            }
        }
        shared
            .triples
            .fetch_add((chunk.triples.len() - before) as u64, Ordering::Relaxed);
        if chunk.memory() > shared.share {
            let number = shared.spilled.fetch_add(1, Ordering::Relaxed);
            let full = std::mem::take(&mut chunk);
            let path = shared.temporary.join(format!("chunk-{number}"));
            let sorted = full.finish(Some(&path))?;
            lock(&shared.chunks).push(sorted);
        }
    }
    if !chunk.triples.is_empty() {
        let sorted = chunk.finish(None)?;
        lock(&shared.chunks).push(sorted);
    }
    Ok(())
}

fn parse_block(
    shared: &SharedState<'_>,
    chunk: &mut Chunk,
    file: usize,
    format: Format,
    layout: Option<Layout>,
    block: &Block,
) -> Result<()> {
    let record = RecordFormat {
        format,
        layout,
        typed: shared.options.table.typed,
        file,
    };
    let mut failed = None;
    let mut parse = |bytes: &[u8], line: u64| {
        let keys: &mut TripleKeys = &mut chunk.scratch;
        let number = block.first_line + line;
        if number == 1 && layout.is_some_and(|l| l.has_header) {
            return;
        }
        match record.parse(bytes, keys) {
            Ok(RecordKind::Blank) => {}
            Ok(kind) => {
                if kind == RecordKind::Longer && layout.is_some_and(|l| l.is_guessed) {
                    shared.longer.fetch_add(1, Ordering::Relaxed);
                }
                if let Err(e) = chunk.add_scratch() {
                    failed.get_or_insert(e);
                }
            }
            Err(reason) => shared.mistake(file, number, reason),
        }
    };
    each_record(block, format, &mut parse);
    match failed {
        Some(e) => Err(e),
        None => Ok(()),
    }
}

/// The same for rows and objects that are things.
fn parse_things(
    shared: &SharedState<'_>,
    chunk: &mut Chunk,
    file: usize,
    format: Format,
    things: &WideSchema,
    block: &Block,
) -> Result<()> {
    let mut row = RowTriples::default();
    let mut failed = None;
    each_record(block, format, &mut |bytes, line| {
        let number = block.first_line + line;
        // the first line of a table names its columns
        if number == 1 && matches!(things, WideSchema::Table(_)) {
            return;
        }
        let read = utf8(bytes).and_then(|text| match things {
            WideSchema::Table(columns) => row.row(text, format, columns),
            WideSchema::Json(_) if text.trim().is_empty() => Ok(false),
            WideSchema::Json(names) => {
                let element = serde_json::from_str::<JsonElement>(text);
                let element = element.map_err(|e| format!("not JSON: {e}"))?;
                row.object(&element, names).map(|()| true)
            }
        });
        let added = match read {
            Ok(true) => row.triples(|keys| {
                chunk.scratch.clone_from(keys);
                chunk.add_scratch()
            }),
            Ok(false) => Ok(()),
            Err(reason) => {
                shared.mistake(file, number, reason);
                Ok(())
            }
        };
        if let Err(error) = added {
            failed.get_or_insert(error);
        }
    });
    match failed {
        Some(e) => Err(e),
        None => Ok(()),
    }
}
