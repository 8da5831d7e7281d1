//! What one worker has parsed: distinct terms and triples that point at them.
//!
//! A chunk that outgrows its share of the memory is sorted and written to disk, and a new one is
//! started. Ids are those of the chunk until the merge has seen all chunks.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use super::strings::{Slot, SortedRun};
use crate::error::{Error, Result};
use crate::key::TripleKeys;

/// Head, relation, tail.
pub(crate) type RawTriple = [u32; 3];

/// Distinct strings with dense ids.
#[derive(Default)]
pub(crate) struct Interner {
    pub(crate) arena: Vec<u8>,
    pub(crate) slots: Vec<Slot>,
    table: HashTable<(u32, u32)>,
}

impl Interner {
    pub(crate) fn intern(&mut self, string: &[u8]) -> Result<u32> {
        // half of the hash stands beside the id and is all that the table knows: neither comparing
        // nor growing reads strings, which lie far apart
        let tag = (xxh3_64(string) >> 32) as u32;
        let hash = spread(tag);
        let found = self.table.find(hash, |&(t, id)| {
            t == tag && self.slots[id as usize].bytes(&self.arena) == string
        });
        if let Some(&(_, id)) = found {
            return Ok(id);
        }
        let id =
            u32::try_from(self.slots.len()).map_err(|_| Error::TooMany { what: "entities" })?;
        self.slots.push(Slot {
            start: self.arena.len() as u64,
            length: u32::try_from(string.len()).map_err(|_| Error::TooMany {
                what: "bytes in a term",
            })?,
            payload: id,
        });
        self.arena.extend_from_slice(string);
        self.table
            .insert_unique(hash, (tag, id), |&(tag, _)| spread(tag));
        Ok(id)
    }

    /// Bytes it takes now, and will take while it is sorted.
    fn memory(&self) -> usize {
        self.arena.capacity() + self.slots.len() * (16 + 24 + 4) + self.table.capacity() * 9
    }
}

/// A hash of all 64 bits, which the table takes its places from, from half of one.
fn spread(tag: u32) -> u64 {
    // 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, 6.4)
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A worker's share of the input.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) terms: Interner,
    pub(crate) relations: Interner,
    pub(crate) triples: Vec<RawTriple>,
    /// Keys of one triple, for parsers to write into.
    pub(crate) scratch: TripleKeys,
}

impl Chunk {
    /// Adds the triple whose keys stand in `scratch`.
    pub(crate) fn add_scratch(&mut self) -> Result<()> {
        let [head, relation, tail] = &self.scratch;
        let triple = [
            self.terms.intern(head)?,
            self.relations.intern(relation)?,
            self.terms.intern(tail)?,
        ];
        self.triples.push(triple);
        Ok(())
    }

    pub(crate) fn memory(&self) -> usize {
        self.terms.memory()
            + self.relations.memory()
            + self.triples.capacity() * size_of::<RawTriple>()
    }

    /// Sorts the terms and renumbers the triples by their order. `spill` is the path (without
    /// ending) to write to when memory is short.
    pub(crate) fn finish(self, spill: Option<&Path>) -> Result<SortedChunk> {
        let Chunk {
            terms,
            relations,
            mut triples,
            ..
        } = self;
        let count = terms.slots.len();
        let Interner {
            arena,
            slots,
            table,
        } = terms;
        drop(table);
        let mut run = SortedRun::sorted(arena, slots);
        if let SortedRun::Memory { slots, .. } = &mut run {
            let mut rank = vec![0u32; count];
            for (slot, at) in slots.iter_mut().zip(0..) {
                rank[slot.payload as usize] = at;
                slot.payload = 0;
            }
            for triple in &mut triples {
                triple[0] = rank[triple[0] as usize];
                triple[2] = rank[triple[2] as usize];
            }
        }
        let relations = relations
            .slots
            .iter()
            .map(|slot| slot.bytes(&relations.arena).to_vec())
            .collect();
        match spill {
            None => Ok(SortedChunk {
                terms: run,
                relations,
                triples: Triples::Memory(triples),
            }),
            Some(path) => Ok(SortedChunk {
                terms: run.spill(&path.with_extension("terms"))?,
                relations,
                triples: Triples::Memory(triples).spill(&path.with_extension("triples"))?,
            }),
        }
    }
}

/// A finished chunk: terms in order, triples by rank.
pub(crate) struct SortedChunk {
    pub(crate) terms: SortedRun,
    pub(crate) relations: Vec<Vec<u8>>,
    pub(crate) triples: Triples,
}

/// Triples in memory or in a file.
pub(crate) enum Triples {
    Memory(Vec<RawTriple>),
    File { path: PathBuf, count: usize },
}

impl Triples {
    pub(crate) fn len(&self) -> usize {
        match self {
            Triples::Memory(triples) => triples.len(),
            Triples::File { count, .. } => *count,
        }
    }

    /// Writes triples to a file as they come.
    pub(crate) fn written(
        path: &Path,
        each: impl FnOnce(&mut dyn FnMut(RawTriple) -> Result<()>) -> Result<()>,
    ) -> Result<Self> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let mut count = 0;
        each(&mut |triple| {
            count += 1;
            file.write_all(bytemuck::bytes_of(&triple))
                .map_err(Error::io("write", path))
        })?;
        file.flush().map_err(Error::io("write", path))?;
        Ok(Triples::File {
            path: path.to_owned(),
            count,
        })
    }

    fn spill(self, path: &Path) -> Result<Self> {
        let Triples::Memory(triples) = self else {
            return Ok(self);
        };
        let mut file = File::create(path).map_err(Error::io("create", path))?;
        file.write_all(bytemuck::cast_slice(&triples))
            .map_err(Error::io("write", path))?;
        Ok(Triples::File {
            path: path.to_owned(),
            count: triples.len(),
        })
    }

    /// Rewrites every triple.
    pub(crate) fn map(&mut self, each: impl Fn(RawTriple) -> RawTriple) -> Result<()> {
        match self {
            Triples::Memory(triples) => {
                for t in triples {
                    *t = each(*t);
                }
            }
            Triples::File { path, .. } => {
                let target = path.with_extension("mapped");
                let mut out = BufWriter::with_capacity(
                    1 << 20,
                    File::create(&target).map_err(Error::io("create", &target))?,
                );
                blocks(path, |block| {
                    for t in block.iter_mut() {
                        *t = each(*t);
                    }
                    out.write_all(bytemuck::cast_slice(block))
                        .map_err(Error::io("write", &target))
                })?;
                out.flush().map_err(Error::io("write", &target))?;
                std::fs::remove_file(&*path).map_err(Error::io("remove", &*path))?;
                *path = target;
            }
        }
        Ok(())
    }

    /// Calls `each` with block after block of triples.
    pub(crate) fn for_each_block(&self, mut each: impl FnMut(&[RawTriple])) -> Result<()> {
        match self {
            Triples::Memory(triples) => each(triples),
            Triples::File { path, .. } => blocks(path, |block| {
                each(block);
                Ok(())
            })?,
        }
        Ok(())
    }
}

/// Reads a file of triples in blocks.
fn blocks(path: &Path, mut each: impl FnMut(&mut [RawTriple]) -> Result<()>) -> Result<()> {
    let mut input =
        BufReader::with_capacity(1 << 16, File::open(path).map_err(Error::io("open", path))?);
    let mut block = vec![[0u32; 3]; 1 << 16];
    loop {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut block);
        let mut filled = 0;
        while filled < bytes.len() {
            let read = input
                .read(&mut bytes[filled..])
                .map_err(Error::io("read", path))?;
            if read == 0 {
                break;
            }
            filled += read;
        }
        if filled == 0 {
            return Ok(());
        }
        each(&mut block[..filled / size_of::<RawTriple>()])?;
    }
}
