//! Who is called what: a label for each entity, and an index of all names.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rayon::prelude::*;

use super::strings::{Slot, SortedRun, merge};
use crate::base::{LONGEST_VALUE, NONE, name_hash};
use crate::error::{Error, Result};
use crate::file::{FileWriter, WrittenFile};
use crate::graph::{EntityId, RelationId};
use crate::key;
use crate::names::normalise;
use crate::shape::{Shape, is_unnamed_key, readable_key};

/// Predicates that give labels, best first.
pub(crate) const LABELS: [&str; 6] = [
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://rdf.freebase.com/ns/type.object.name",
];

/// Predicates that give further names.
pub(crate) const ALIASES: [&str; 4] = [
    "http://www.w3.org/2004/02/skos/core#altLabel",
    "http://schema.org/alternateName",
    "https://schema.org/alternateName",
    "http://rdf.freebase.com/ns/common.topic.alias",
];

/// What naming found.
pub(crate) struct WrittenNames {
    pub(crate) files: Vec<WrittenFile>,
    pub(crate) unnamed: u64,
    pub(crate) naming: u64,
}

/// Chooses the labels and writes the index of names.
pub(crate) fn write_names(
    folder: &Path,
    temporary: &Path,
    shape: &Shape,
    labels: &[RelationId],
    aliases: &[RelationId],
    language: &str,
    memory: usize,
) -> Result<WrittenNames> {
    let entities = shape.entities.len();
    let (chosen, mut naming) = choose_labels(shape, labels, language)?;
    for &relation in aliases {
        naming += shape.by_relation(relation)?.count() as u64;
    }
    let mut file = FileWriter::create(&folder.join("labels"))?;
    file.write(bytemuck::cast_slice(&chosen))?;
    let mut files = vec![file.finish()?];

    let mut naming_relations = [labels, aliases].concat();
    naming_relations.sort_unstable();
    let mut names = NameSorter::new(temporary, memory / 2);
    let mut unnamed = 0;
    shape.entities.for_each(|id, bytes| {
        let entity = EntityId(id as u32);
        if !shape.is_literal(entity) {
            if chosen.get(id).is_some_and(|&label| label != NONE) {
                return Ok(()); // filed under its label
            }
            if is_unnamed_key(bytes) {
                unnamed += 1;
                return Ok(());
            }
        } else if bytes.len() > LONGEST_VALUE
            && !shape
                .incoming(entity)?
                .iter()
                .any(|e| naming_relations.binary_search(&e.relation).is_ok())
        {
            return Ok(());
        }
        match readable_key(bytes) {
            Some(name) => names.push(&normalise(&name), entity.0),
            None => Ok(()),
        }
    })?;

    let mut order = FileWriter::create(&folder.join("names.order"))?;
    let mut hashes = HashSorter::new(temporary, entities, memory / 2)?;
    names.finish(|name, id| {
        order.write(&id.to_le_bytes())?;
        hashes.push(
            name_hash(std::str::from_utf8(name).expect("names are text")),
            id,
        )
    })?;
    files.push(order.finish()?);
    let mut file = FileWriter::create(&folder.join("names.hashes"))?;
    hashes.finish(&mut file)?;
    files.push(file.finish()?);
    Ok(WrittenNames {
        files,
        unnamed,
        naming,
    })
}

/// The label of each entity (empty if nothing is labelled), and the number of label triples.
///
/// The wanted language comes first, then no language, then its regional forms, then any; then the
/// order of the relations; then the order of the labels themselves.
fn choose_labels(shape: &Shape, labels: &[RelationId], language: &str) -> Result<(Vec<u32>, u64)> {
    let mut chosen = Vec::new();
    let mut ranks = Vec::new();
    let mut count = 0;
    let mut bytes = Vec::new();
    for &relation in labels {
        for triple in shape.by_relation(relation)? {
            let triple = triple?;
            count += 1;
            shape.key(triple.tail, &mut bytes)?;
            let Some(rank) = label_rank(&bytes, language) else {
                continue;
            };
            if chosen.is_empty() {
                chosen = vec![NONE; shape.entities.len()];
                ranks = vec![u8::MAX; shape.entities.len()];
            }
            // triples come in order of relation and tail, so the first of a rank is the best
            let head = triple.head.index();
            if rank < ranks[head] {
                ranks[head] = rank;
                chosen[head] = triple.tail.0;
            }
        }
    }
    Ok((chosen, count))
}

/// How well a term does as a label, best first; none if it is no name.
pub(crate) fn label_rank(key: &[u8], language: &str) -> Option<u8> {
    let named = matches!(key.first(), Some(&(key::LITERAL | key::NAME)))
        && key::text(key).is_some_and(|t| !t.trim().is_empty());
    named.then(|| match key::language(key) {
        Some(tag) if tag == language => 0,
        None => 1,
        Some(tag) if tag.split('-').next() == Some(language) => 2,
        Some(_) => 3,
    })
}

/// Names being sorted.
struct NameSorter<'a> {
    temporary: &'a Path,
    memory: usize,
    arena: Vec<u8>,
    slots: Vec<Slot>,
    /// Full arenas, to be sorted side by side.
    waiting: Vec<(Vec<u8>, Vec<Slot>)>,
    runs: Vec<SortedRun>,
    kept: usize,
}

/// An arena of this size is one thread's work.
const ARENA: usize = 16 << 20;

impl<'a> NameSorter<'a> {
    fn new(temporary: &'a Path, memory: usize) -> Self {
        Self {
            temporary,
            memory,
            arena: Vec::new(),
            slots: Vec::new(),
            waiting: Vec::new(),
            runs: Vec::new(),
            kept: 0,
        }
    }

    fn push(&mut self, name: &str, id: u32) -> Result<()> {
        self.slots.push(Slot {
            start: self.arena.len() as u64,
            length: u32::try_from(name.len()).map_err(|_| Error::TooMany {
                what: "bytes in a name",
            })?,
            payload: id,
        });
        self.arena.extend_from_slice(name.as_bytes());
        if self.arena.len() + 16 * self.slots.len() > ARENA {
            self.waiting.push((
                std::mem::take(&mut self.arena),
                std::mem::take(&mut self.slots),
            ));
            if self.waiting.len() >= rayon::current_num_threads() {
                self.sort()?;
            }
        }
        Ok(())
    }

    fn sort(&mut self) -> Result<()> {
        let sorted: Vec<SortedRun> = std::mem::take(&mut self.waiting)
            .into_par_iter()
            .map(|(arena, slots)| SortedRun::sorted(arena, slots))
            .collect();
        for run in sorted {
            self.kept += ARENA;
            let run = if self.kept > self.memory {
                run.spill(&self.temporary.join(format!("names-{}", self.runs.len())))?
            } else {
                run
            };
            self.runs.push(run);
        }
        Ok(())
    }

    fn finish(mut self, mut each: impl FnMut(&[u8], u32) -> Result<()>) -> Result<()> {
        self.waiting.push((
            std::mem::take(&mut self.arena),
            std::mem::take(&mut self.slots),
        ));
        self.sort()?;
        merge(&self.runs, |_, reader| {
            each(reader.string(), reader.payload())
        })
    }
}

/// (hash, entity) pairs being sorted: in parts by the hash's first bits, each small enough.
struct HashSorter {
    parts: Vec<HashPartition>,
    bits: u32,
}

enum HashPartition {
    Memory(Vec<[u32; 2]>),
    File(std::path::PathBuf, BufWriter<File>),
}

impl HashSorter {
    fn new(temporary: &Path, max_pairs: usize, memory: usize) -> Result<Self> {
        let needed = (max_pairs * size_of::<[u32; 2]>()).div_ceil(memory.max(1 << 20));
        let bits = needed.next_power_of_two().trailing_zeros().min(10);
        if bits == 0 {
            return Ok(Self {
                parts: vec![HashPartition::Memory(Vec::new())],
                bits,
            });
        }
        let mut parts = Vec::new();
        for i in 0..1 << bits {
            let path = temporary.join(format!("hashes-{i}"));
            let file = File::create(&path).map_err(Error::io("create", &path))?;
            parts.push(HashPartition::File(path, BufWriter::new(file)));
        }
        Ok(Self { parts, bits })
    }

    fn push(&mut self, hash: u32, id: u32) -> Result<()> {
        let part = if self.bits == 0 {
            0
        } else {
            hash >> (32 - self.bits)
        };
        match &mut self.parts[part as usize] {
            HashPartition::Memory(pairs) => pairs.push([hash, id]),
            HashPartition::File(path, file) => file
                .write_all(bytemuck::bytes_of(&[hash, id]))
                .map_err(Error::io("write", &*path))?,
        }
        Ok(())
    }

    fn finish(self, out: &mut FileWriter) -> Result<()> {
        for part in self.parts {
            let mut pairs = match part {
                HashPartition::Memory(pairs) => pairs,
                HashPartition::File(path, file) => {
                    file.into_inner()
                        .map_err(|e| Error::io("write", &path)(e.into_error()))?;
                    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
                    std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
                    bytemuck::allocation::pod_collect_to_vec(&bytes)
                }
            };
            pairs.par_sort_unstable();
            out.write(bytemuck::cast_slice(&pairs))?;
        }
        Ok(())
    }
}
