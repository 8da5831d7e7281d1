//! Sorting more strings than fit into memory: sorted runs, kept or spilled, then merged.
//!
//! In memory the order is made eight bytes at a time (multikey quicksort with a cached word,
//! Bentley and Sedgewick 1997): strings of one graph share long beginnings, and comparing them
//! from the start again and again is most of a plain sort's time.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::dictionary::shared_prefix;
use crate::error::{Error, Result};
use crate::varint::{push_varint, read_varint};

/// A string in an arena, with a number that travels along.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) start: u64,
    pub(crate) length: u32,
    pub(crate) payload: u32,
}

impl Slot {
    pub(crate) fn bytes(self, arena: &[u8]) -> &[u8] {
        &arena[self.start as usize..self.start as usize + self.length as usize]
    }
}

/// Sorts slots by their strings, equal strings by payload.
pub(crate) fn sort(arena: &[u8], slots: &mut [Slot]) {
    let mut words: Vec<(u64, Slot)> = slots.iter().map(|&slot| (0, slot)).collect();
    sort_from(arena, &mut words, 0);
    for (slot, (_, sorted)) in slots.iter_mut().zip(words) {
        *slot = sorted;
    }
}

/// Sorts strings that agree in their first `depth` bytes.
fn sort_from(arena: &[u8], mut words: &mut [(u64, Slot)], mut depth: usize) {
    while words.len() > 1 {
        if words.len() <= 16 {
            words.sort_unstable_by(|(_, a), (_, b)| {
                a.bytes(arena)
                    .cmp(b.bytes(arena))
                    .then(a.payload.cmp(&b.payload))
            });
            return;
        }
        for (word, slot) in words.iter_mut() {
            *word = word_at(slot.bytes(arena), depth);
        }
        words.sort_unstable_by_key(|&(word, _)| word);
        let depth_after = depth + 8;
        if words[0].0 == words[words.len() - 1].0
            && words.iter().all(|(_, s)| s.length as usize > depth_after)
        {
            // a beginning shared by all: go on without recursion, it can be long
            depth = depth_after;
            continue;
        }
        while !words.is_empty() {
            let equal = words.partition_point(|&(word, _)| word <= words[0].0);
            let (group, rest) = words.split_at_mut(equal);
            // a string that ends here is the beginning of all longer ones; zeros fill its word
            group.sort_unstable_by_key(|(_, s)| {
                let ended = s.length as usize <= depth_after;
                (!ended, if ended { (s.length, s.payload) } else { (0, 0) })
            });
            let ended = group.partition_point(|(_, s)| s.length as usize <= depth_after);
            sort_from(arena, &mut group[ended..], depth_after);
            words = rest;
        }
        return;
    }
}

fn word_at(bytes: &[u8], depth: usize) -> u64 {
    let rest = bytes.get(depth..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(word) => u64::from_be_bytes(*word),
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(word)
        }
    }
}

/// A sorted run of strings, in memory or in a file.
#[derive(Debug)]
pub(crate) enum SortedRun {
    Memory { arena: Vec<u8>, slots: Vec<Slot> },
    File { path: PathBuf, count: usize },
}

impl SortedRun {
    /// Sorts in memory.
    pub(crate) fn sorted(arena: Vec<u8>, mut slots: Vec<Slot>) -> Self {
        sort(&arena, &mut slots);
        SortedRun::Memory { arena, slots }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            SortedRun::Memory { slots, .. } => slots.len(),
            SortedRun::File { count, .. } => *count,
        }
    }

    /// Moves the run to a file, front-coded.
    pub(crate) fn spill(self, path: &Path) -> Result<Self> {
        let SortedRun::Memory { arena, slots } = self else {
            return Ok(self);
        };
        let mut writer = RunWriter::create(path)?;
        for slot in &slots {
            writer.push(slot.bytes(&arena), slot.payload)?;
        }
        writer.finish()
    }

    pub(crate) fn reader(&self) -> Result<RunReader<'_>> {
        Ok(match self {
            SortedRun::Memory { arena, slots } => RunReader::Memory {
                arena,
                slots,
                at: 0,
            },
            SortedRun::File { path, count } => RunReader::File {
                path,
                left: *count,
                input: BufReader::with_capacity(
                    1 << 18,
                    File::open(path).map_err(Error::io("open", path))?,
                ),
                current: Vec::new(),
                payload: 0,
                started: false,
            },
        })
    }
}

/// Writes a run whose strings come sorted, front-coded.
pub(crate) struct RunWriter {
    path: PathBuf,
    file: BufWriter<File>,
    previous: Vec<u8>,
    entry: Vec<u8>,
    count: usize,
}

impl RunWriter {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, file),
            previous: Vec::new(),
            entry: Vec::new(),
            count: 0,
        })
    }

    pub(crate) fn push(&mut self, string: &[u8], payload: u32) -> Result<()> {
        let shared = shared_prefix(&self.previous, string);
        self.entry.clear();
        push_varint(&mut self.entry, shared as u64);
        push_varint(&mut self.entry, (string.len() - shared) as u64);
        self.entry.extend_from_slice(&string[shared..]);
        push_varint(&mut self.entry, u64::from(payload));
        self.previous.clear();
        self.previous.extend_from_slice(string);
        self.count += 1;
        self.file
            .write_all(&self.entry)
            .map_err(Error::io("write", &self.path))
    }

    pub(crate) fn finish(mut self) -> Result<SortedRun> {
        self.file.flush().map_err(Error::io("write", &self.path))?;
        Ok(SortedRun::File {
            path: self.path,
            count: self.count,
        })
    }
}

/// Reads a run from front to back.
pub(crate) enum RunReader<'a> {
    Memory {
        arena: &'a [u8],
        slots: &'a [Slot],
        at: usize,
    },
    File {
        path: &'a Path,
        left: usize,
        input: BufReader<File>,
        current: Vec<u8>,
        payload: u32,
        started: bool,
    },
}

impl RunReader<'_> {
    /// Goes to the next string; false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match self {
            RunReader::Memory { slots, at, .. } => {
                *at += 1;
                Ok(*at <= slots.len())
            }
            RunReader::File {
                path,
                left,
                input,
                current,
                payload,
                started,
            } => {
                *started = true;
                if *left == 0 {
                    return Ok(false);
                }
                *left -= 1;
                let mut read = || -> std::io::Result<()> {
                    let shared = read_varint(input)? as usize;
                    let length = read_varint(input)? as usize;
                    current.truncate(shared);
                    let from = current.len();
                    current.resize(from + length, 0);
                    input.read_exact(&mut current[from..])?;
                    *payload = read_varint(input)? as u32;
                    Ok(())
                };
                read().map_err(Error::io("read", *path))?;
                Ok(true)
            }
        }
    }

    /// The string last advanced to.
    pub(crate) fn string(&self) -> &[u8] {
        match self {
            RunReader::Memory { arena, slots, at } => slots[*at - 1].bytes(arena),
            RunReader::File { current, .. } => current,
        }
    }

    pub(crate) fn payload(&self) -> u32 {
        match self {
            RunReader::Memory { slots, at, .. } => slots[*at - 1].payload,
            RunReader::File { payload, .. } => *payload,
        }
    }
}

/// Calls `each(run, reader)` for every string of every run, in order of (string, payload, run).
pub(crate) fn merge(
    runs: &[SortedRun],
    mut each: impl FnMut(usize, &RunReader<'_>) -> Result<()>,
) -> Result<()> {
    let mut readers = Vec::with_capacity(runs.len());
    for run in runs {
        readers.push(run.reader()?);
    }
    // a binary heap of run numbers, kept by hand because the strings live in the readers
    let mut heap: Vec<usize> = Vec::with_capacity(runs.len());
    for (i, reader) in readers.iter_mut().enumerate() {
        if reader.advance()? {
            heap.push(i);
        }
    }
    let order = |readers: &[RunReader<'_>], a: usize, b: usize| -> Ordering {
        let (x, y) = (&readers[a], &readers[b]);
        x.string()
            .cmp(y.string())
            .then(x.payload().cmp(&y.payload()))
            .then(a.cmp(&b))
    };
    let sink = |heap: &mut [usize], readers: &[RunReader<'_>], mut at: usize| {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < heap.len() && order(readers, heap[child], heap[least]).is_lt() {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            heap.swap(at, least);
            at = least;
        }
    };
    for at in (0..heap.len() / 2).rev() {
        sink(&mut heap, &readers, at);
    }
    while let Some(&first) = heap.first() {
        each(first, &readers[first])?;
        if !readers[first].advance()? {
            heap.swap_remove(0);
        }
        sink(&mut heap, &readers, 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(strings: &[(Vec<u8>, u32)]) -> SortedRun {
        let mut arena = Vec::new();
        let mut slots = Vec::new();
        for (s, payload) in strings {
            slots.push(Slot {
                start: arena.len() as u64,
                length: s.len() as u32,
                payload: *payload,
            });
            arena.extend_from_slice(s);
        }
        SortedRun::sorted(arena, slots)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn merged_runs_come_out_sorted(
            runs in prop::collection::vec(
                prop::collection::vec((prop::collection::vec(0u8..3, 0..20), 0u32..5), 0..80), 0..5),
            common in prop::collection::vec(0u8..3, 0..40),
            spilled in prop::collection::vec(any::<bool>(), 5),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut all = Vec::new();
            let mut sorted = Vec::new();
            for (i, strings) in runs.iter().enumerate() {
                let strings: Vec<_> =
                    strings.iter().map(|(s, p)| ([common.clone(), s.clone()].concat(), *p)).collect();
                all.extend(strings.clone());
                let run = run(&strings);
                sorted.push(if spilled[i] { run.spill(&dir.path().join(i.to_string())).unwrap() } else { run });
            }
            all.sort();
            let mut merged = Vec::new();
            merge(&sorted, |_, r| { merged.push((r.string().to_vec(), r.payload())); Ok(()) }).unwrap();
            prop_assert_eq!(merged, all);
        }
    }

    #[test]
    fn a_string_sorts_before_its_longer_versions_even_with_zeros() {
        let strings: Vec<_> = (0..40u32)
            .flat_map(|i| {
                let s = vec![0u8; (i % 20) as usize];
                [(s.clone(), i), ([s, vec![1]].concat(), i)]
            })
            .collect();
        let SortedRun::Memory { arena, slots } = run(&strings) else {
            unreachable!()
        };
        let sorted: Vec<_> = slots
            .iter()
            .map(|s| (s.bytes(&arena).to_vec(), s.payload))
            .collect();
        let mut want = strings;
        want.sort();
        assert_eq!(sorted, want);
    }
}
