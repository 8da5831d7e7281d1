//! Writes the full-text index.
//!
//! Entities are read in order. Their words are gathered in memory and written as sorted runs, which
//! are merged in the end. A run and what is known so far are made safe every ten seconds, so that
//! a build that was stopped resumes after its last run.
//!
//! ```text
//! run   = from:u32 to:u32 lengths:[u16; 2] of each entity entry…               little-endian
//! entry = varint(bytes) word, for labels and documents: varint(entities) varint(last id)
//!         varint(bytes) postings, in which the first id counts from 0
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use wherefore_graph::names::normalise;
use wherefore_graph::{Adjacency, Edge, EntityId, Graph, Store};
use xxhash_rust::xxh3::xxh3_64;

use super::super::labels;
use super::super::manifest::{FORMAT, Manifest, bytes_in, folder_of, write_aside, write_sums};
use super::super::part::Part;
use super::super::report::{IndexProgress, IndexStep, PartReport};
use super::{
    LENGTHS, MAX_WORD_BYTES, POSTINGS, TABLE, TOTALS, TextIndex, WORDS, push_varint, take_varint,
};
use crate::error::{Error, Result};

/// Words of a document.
pub(crate) const MAX_WORDS: usize = 100;
/// Neighbours of one relation, and of one direction, that a document names.
pub(crate) const PER_RELATION: usize = 8;
/// How often a run is written at the least.
const SAFE_EVERY: Duration = Duration::from_secs(10);
/// Name of the file that says what a build that was stopped had done.
const STATE: &str = "state.json";

/// How much is held in memory.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    /// Entities whose documents are made at a time.
    pub(super) entities: u32,
    /// Bytes of words and postings that are gathered before a run is written.
    pub(super) bytes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            entities: 16 << 10,
            bytes: 64 << 20,
        }
    }
}

/// How far a build is.
#[derive(Serialize, Deserialize)]
struct State {
    format: u32,
    graph: String,
    /// Entities below this are in the runs.
    next: u32,
    documents: u64,
    /// Words of all labels, and of all documents.
    total: [u64; 2],
    /// Checksum of each run.
    runs: Vec<u64>,
}

/// Builds, resumes or confirms the full-text index.
pub(crate) fn build(
    graph: &Store,
    on_progress: &(dyn Fn(IndexProgress) + Sync),
) -> Result<PartReport> {
    build_with(graph, Batch::default(), on_progress)
}

/// The same with other batches.
pub(super) fn build_with(
    graph: &Store,
    batch: Batch,
    on_progress: &(dyn Fn(IndexProgress) + Sync),
) -> Result<PartReport> {
    let began = Instant::now();
    if TextIndex::open(graph).is_ok()
        && let Some(manifest) = Manifest::read(graph.path(), Part::Text)?
        && manifest.files(graph.path())?.check_all().is_ok()
    {
        return Ok(PartReport::current(&manifest));
    }
    let folder = folder_of(graph.path()).join("text.part");
    let mut state = match State::resume(graph, &folder) {
        Some(state) => state,
        None => State::start(graph, &folder)?,
    };
    let resumed = state.documents;
    write_runs(graph, &folder, &mut state, batch, on_progress)?;
    merge(&folder, &state)?;
    for run in 0..state.runs.len() {
        remove(&run_path(&folder, run))?;
    }
    remove(&folder.join(STATE))?;
    let manifest = Manifest {
        format: FORMAT,
        written_by: env!("CARGO_PKG_VERSION").into(),
        part: Part::Text,
        folder: String::new(),
        graph: graph.checksum().to_owned(),
        encoder: None,
        rows: state.next.into(),
        named: state.documents,
        vectors: state.documents,
        hnsw: None,
        sums: Some(write_sums(&folder)?),
        bytes: bytes_in(&folder)?,
    };
    let manifest = manifest.publish(graph.path(), &folder)?;
    Ok(PartReport {
        built: true,
        encoded: state.documents - resumed,
        kept: 0,
        resumed,
        seconds: began.elapsed().as_secs_f64(),
        ..PartReport::current(&manifest)
    })
}

impl State {
    fn start(graph: &Store, folder: &Path) -> Result<Self> {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(Error::io("remove", folder))?;
        }
        std::fs::create_dir(folder).map_err(Error::io("create", folder))?;
        Ok(Self {
            format: FORMAT,
            graph: graph.checksum().to_owned(),
            next: 0,
            documents: 0,
            total: [0; 2],
            runs: Vec::new(),
        })
    }

    /// A build of the same graph that was stopped, if all its runs are whole.
    fn resume(graph: &Store, folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(STATE)).ok()?;
        let state: Self = serde_json::from_str(&text).ok()?;
        let is_same = state.format == FORMAT && state.graph == graph.checksum();
        let is_whole = state.runs.iter().enumerate().all(|(run, sum)| {
            std::fs::read(run_path(folder, run)).is_ok_and(|bytes| xxh3_64(&bytes) == *sum)
        });
        (is_same && is_whole).then_some(state)
    }
}

fn run_path(folder: &Path, run: usize) -> PathBuf {
    folder.join(format!("run-{run}"))
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).map_err(Error::io("remove", path))
}

/// Occurrences of a word in one field of some entities.
#[derive(Default)]
struct Postings {
    entities: u32,
    last: u32,
    bytes: Vec<u8>,
}

impl Postings {
    /// Adds later ones.
    fn push(&mut self, id: u32, count: u32) {
        push_varint(&mut self.bytes, id - self.last);
        push_varint(&mut self.bytes, count);
        (self.entities, self.last) = (self.entities + 1, id);
    }
}

/// What was gathered since the last run.
#[derive(Default)]
struct Gathered {
    words: HashMap<Box<str>, [Postings; 2]>,
    lengths: Vec<[u16; 2]>,
    bytes: usize,
}

impl Gathered {
    /// Takes the label and the document of an entity in; returns how many words they have.
    fn push(&mut self, id: u32, texts: [&str; 2]) -> [u64; 2] {
        let mut lengths = [0u64; 2];
        for (field, text) in texts.into_iter().enumerate() {
            let mut words: Vec<&str> = (text.split_whitespace())
                .filter(|word| word.len() <= MAX_WORD_BYTES)
                .collect();
            lengths[field] = words.len() as u64;
            words.sort_unstable();
            for same in words.chunk_by(|a, b| a == b) {
                let postings = match self.words.get_mut(same[0]) {
                    Some(postings) => postings,
                    None => {
                        // what an entry and its word weigh beside their postings
                        self.bytes += 120 + same[0].len();
                        self.words.entry(same[0].into()).or_default()
                    }
                };
                let before = postings[field].bytes.len();
                postings[field].push(id, same.len() as u32);
                self.bytes += postings[field].bytes.len() - before;
            }
        }
        let short = |length: u64| u16::try_from(length).unwrap_or(u16::MAX);
        self.lengths.push(lengths.map(short));
        lengths
    }

    /// The bytes of a run.
    fn run(&mut self, from: u32) -> Vec<u8> {
        let lengths = std::mem::take(&mut self.lengths);
        let mut words: Vec<_> = std::mem::take(&mut self.words).into_iter().collect();
        words.par_sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut out = Vec::with_capacity(std::mem::take(&mut self.bytes));
        out.extend_from_slice(&from.to_le_bytes());
        out.extend_from_slice(&(from + lengths.len() as u32).to_le_bytes());
        out.extend_from_slice(bytemuck::cast_slice(&lengths));
        for (word, fields) in words {
            push_varint(&mut out, word.len() as u32);
            out.extend_from_slice(word.as_bytes());
            for postings in fields {
                push_varint(&mut out, postings.entities);
                push_varint(&mut out, postings.last);
                push_varint(&mut out, postings.bytes.len() as u32);
                out.extend_from_slice(&postings.bytes);
            }
        }
        out
    }
}

fn write_runs(
    graph: &Store,
    folder: &Path,
    state: &mut State,
    batch: Batch,
    on_progress: &(dyn Fn(IndexProgress) + Sync),
) -> Result<()> {
    let end = labels::Labels::new(graph, Part::Text).len();
    let mut gathered = Gathered::default();
    let (mut from, mut safe) = (state.next, Instant::now());
    loop {
        on_progress(IndexProgress {
            part: Part::Text,
            step: IndexStep::Writing,
            done: state.next.into(),
            total: end.into(),
        });
        let to = end.min(state.next.saturating_add(batch.entities));
        let texts: Vec<Option<(String, String)>> = (state.next..to)
            .into_par_iter()
            .with_min_len(64)
            .map(|entity| texts_of(graph, EntityId(entity)))
            .collect::<Result<_>>()?;
        for (entity, texts) in (state.next..to).zip(&texts) {
            let [label, document] = match texts {
                Some((label, document)) => {
                    state.documents += 1;
                    gathered.push(entity, [label, document])
                }
                None => gathered.push(entity, [""; 2]),
            };
            state.total = [state.total[0] + label, state.total[1] + document];
        }
        state.next = to;
        if to == end || gathered.bytes >= batch.bytes || safe.elapsed() >= SAFE_EVERY {
            let run = gathered.run(from);
            let path = run_path(folder, state.runs.len());
            (File::create(&path).and_then(|mut file| {
                file.write_all(&run)?;
                file.sync_all()
            }))
            .map_err(Error::io("write", &path))?;
            state.runs.push(xxh3_64(&run));
            let text = serde_json::to_string(state).expect("a state is plain data");
            write_aside(&folder.join(STATE), text.as_bytes())?;
            (from, safe) = (to, Instant::now());
        }
        if to == end {
            return Ok(());
        }
    }
}

/// A run that is read from its beginning, at a word.
struct RunReader {
    path: PathBuf,
    file: BufReader<File>,
    word: Vec<u8>,
    fields: [Postings; 2],
}

impl RunReader {
    /// Opens a run, copies its lengths and goes to its first word; none if it has no word.
    fn open(path: PathBuf, lengths: &mut impl Write) -> Result<Option<Self>> {
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        let mut run = Self {
            path,
            file: BufReader::new(file),
            word: Vec::new(),
            fields: Default::default(),
        };
        let [from, to] = [run.number()?, run.number()?];
        let bytes = u64::from(to.saturating_sub(from)) * size_of::<[u16; 2]>() as u64;
        std::io::copy(&mut (&mut run.file).take(bytes), lengths)
            .map_err(Error::io("read", &run.path))?;
        Ok(run.advance()?.then_some(run))
    }

    fn number(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        (self.file.read_exact(&mut bytes)).map_err(Error::io("read", &self.path))?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Reads the next word with its postings; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let Some(length) = self.varint()? else {
            return Ok(false);
        };
        self.word = self.exactly(length)?;
        for field in 0..2 {
            let mut part = || self.varint().map(Option::unwrap_or_default);
            let (entities, last, length) = (part()?, part()?, part()?);
            self.fields[field] = Postings {
                entities,
                last,
                bytes: self.exactly(length)?,
            };
        }
        Ok(true)
    }

    /// A number; none at the end of the file.
    fn varint(&mut self) -> Result<Option<u32>> {
        let mut bytes = Vec::with_capacity(5);
        for byte in (&mut self.file).bytes() {
            let byte = byte.map_err(Error::io("read", &self.path))?;
            bytes.push(byte);
            if byte < 0x80 || bytes.len() == 5 {
                break;
            }
        }
        Ok(take_varint(&mut &bytes[..]))
    }

    fn exactly(&mut self, length: u32) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        (self.file.read_exact(&mut bytes)).map_err(Error::io("read", &self.path))?;
        Ok(bytes)
    }
}

/// A file of the index that is being written.
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl Output {
    fn create(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(name);
        let file = File::create(&path).map_err(Error::io("create", &path))?;
        Ok(Self {
            path,
            file: BufWriter::new(file),
            bytes: 0,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        (self.file.write_all(bytes)).map_err(Error::io("write", &self.path))
    }

    fn finish(mut self) -> Result<()> {
        (self
            .file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all()))
        .map_err(Error::io("write", &self.path))
    }
}

/// Merges the runs into the files of the index.
fn merge(folder: &Path, state: &State) -> Result<()> {
    let mut lengths = Output::create(folder, LENGTHS)?;
    let mut runs = Vec::with_capacity(state.runs.len());
    for run in 0..state.runs.len() {
        runs.extend(RunReader::open(run_path(folder, run), &mut lengths.file)?);
    }
    lengths.finish()?;
    let mut words = Output::create(folder, WORDS)?;
    let mut table = Output::create(folder, TABLE)?;
    let mut postings = Output::create(folder, POSTINGS)?;
    table.write(bytemuck::bytes_of(&[0u64; 4]))?;
    // of one word the earlier run first: its entities come before
    let mut next: BinaryHeap<Reverse<(Vec<u8>, usize)>> = (runs.iter().enumerate())
        .map(|(i, run)| Reverse((run.word.clone(), i)))
        .collect();
    while let Some(Reverse((word, run))) = next.pop() {
        let mut fields = std::mem::take(&mut runs[run].fields);
        if runs[run].advance()? {
            next.push(Reverse((runs[run].word.clone(), run)));
        }
        while let Some(Reverse((_, run))) = next.peek().filter(|entry| entry.0.0 == word) {
            let run = *run;
            next.pop();
            for (all, more) in fields.iter_mut().zip(std::mem::take(&mut runs[run].fields)) {
                all.append(&more);
            }
            if runs[run].advance()? {
                next.push(Reverse((runs[run].word.clone(), run)));
            }
        }
        words.write(&word)?;
        let [labels, documents] = &fields;
        postings.write(&labels.bytes)?;
        let labels_end = postings.bytes;
        postings.write(&documents.bytes)?;
        let counts = u64::from(labels.entities) | u64::from(documents.entities) << 32;
        let row = [words.bytes, counts, labels_end, postings.bytes];
        table.write(bytemuck::bytes_of(&row))?;
    }
    for file in [words, table, postings] {
        file.finish()?;
    }
    let mut totals = Output::create(folder, TOTALS)?;
    let [labels, documents] = state.total;
    totals.write(bytemuck::bytes_of(&[state.documents, labels, documents]))?;
    totals.finish()
}

impl Postings {
    /// Adds those of a later run, whose first id counts from 0.
    fn append(&mut self, later: &Self) {
        let mut rest = &later.bytes[..];
        let Some(first) = take_varint(&mut rest) else {
            return;
        };
        push_varint(&mut self.bytes, first - self.last);
        self.bytes.extend_from_slice(rest);
        (self.entities, self.last) = (self.entities + later.entities, later.last);
    }
}

/// The normalised label and document of an entity that has a name.
fn texts_of(graph: &Store, id: EntityId) -> Result<Option<(String, String)>> {
    let Some(label) = labels::entity(graph, id)? else {
        return Ok(None);
    };
    let mut words = Words::default();
    let own = normalise(&label);
    words.add(&own);
    let sides = [graph.outgoing(id)?, graph.incoming(id)?];
    for mut edges in sides.iter().map(|edges| &edges[..]) {
        while let Some(&Edge { relation, .. }) = edges.first() {
            let end = edges.partition_point(|e| e.relation == relation);
            let (same, rest) = edges.split_at(end);
            edges = rest;
            if words.are_full() {
                break;
            }
            if graph.naming_relations().contains(&relation) {
                continue;
            }
            words.add(&normalise(&labels::relation(graph, relation)?));
            for edge in same.iter().take(PER_RELATION) {
                if let Some(label) = labels::entity(graph, edge.entity)? {
                    words.add(&normalise(&label));
                }
            }
        }
    }
    Ok(Some((own, words.text)))
}

/// Words up to [`MAX_WORDS`].
#[derive(Default)]
struct Words {
    text: String,
    count: usize,
}

impl Words {
    fn are_full(&self) -> bool {
        self.count == MAX_WORDS
    }

    fn add(&mut self, text: &str) {
        for word in text.split_whitespace().take(MAX_WORDS - self.count) {
            self.count += 1;
            if word.len() <= MAX_WORD_BYTES {
                self.text.push(' ');
                self.text.push_str(word);
            }
        }
    }
}
