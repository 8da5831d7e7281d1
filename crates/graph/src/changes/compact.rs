//! Compacting a graph: writes new files with the changes of the log applied.
//!
//! The files are the same, byte for byte, as if the triples had been loaded from scratch: terms and
//! triples of the old ones go through the load as one sorted chunk, the added ones as another.
//! It blocks nobody. Readers keep the old files until they refresh; changes that are written
//! meanwhile go to the old log and are copied to the new one when the files are replaced.

use std::path::Path;
use std::time::{Duration, Instant};

use super::commit::Position;
use super::log::{self, Change, LOG, LogCut};
use super::repair::KEPT;
use crate::error::{Error, Result};
use crate::graph::{EntityId, RelationId};
use crate::key;
use crate::load::chunk::{Chunk, SortedChunk, Triples};
use crate::load::naming::{ALIASES, LABELS};
use crate::load::output::OutputFolder;
use crate::load::strings::RunWriter;
use crate::load::{LEAST_MEMORY, LoadProgress, Origin, build};
use crate::manifest::Counts;
use crate::store::Store;

/// The result of compacting.
#[derive(Clone, Debug)]
pub struct CompactReport {
    /// Changes that were applied.
    pub changes: u64,
    /// Changes that were written meanwhile and are in the new log.
    pub carried: u64,
    /// The number of triples, entities and so on.
    pub counts: Counts,
    /// The end of the old log, if it was part of a change that was never acknowledged.
    pub cut: Option<LogCut>,
    /// Bytes of the graph on disk.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
}

/// Applies the changes of a graph folder to its files; `None` if there are no changes.
///
/// If interrupted, it leaves the graph and its log unchanged.
pub fn compact(
    graph: &Path,
    memory: usize,
    threads: usize,
    progress: &(dyn Fn(LoadProgress) + Sync),
) -> Result<Option<CompactReport>> {
    let start = Instant::now();
    // it must be a graph before anything is made in its folder
    Store::open(graph)?;
    let output = OutputFolder::prepare(graph, true)?;
    let store = Store::open(graph)?;
    let Some(pending) = store.pending() else {
        return Ok(None);
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| Error::io("start threads for", graph)(std::io::Error::other(e)))?;
    let mut carried = 0;
    let built = pool.install(|| {
        let mut chunks = vec![of_files(&store, output.temporary())?];
        chunks.extend(of_changes(&store)?);
        chunks.retain(|chunk| chunk.triples.len() > 0);
        if chunks.is_empty() {
            return Err(Error::NothingLeft {
                path: graph.to_owned(),
            });
        }
        let manifest = &store.base.manifest;
        let names = |relations: &[u32], known: &[&str]| -> Result<Vec<String>> {
            let names = relations.iter().map(|&id| relation_text(&store, id));
            Ok(given(names.collect::<Result<_>>()?, known))
        };
        let origin = Origin {
            labels: &names(&manifest.label_relations, &LABELS)?,
            aliases: &names(&manifest.alias_relations, &ALIASES)?,
            language: &manifest.language,
            malformed: manifest.counts.malformed,
            duplicates: manifest.counts.duplicates,
        };
        let memory = memory.max(LEAST_MEMORY);
        build(
            output,
            chunks,
            origin,
            memory,
            progress,
            |folder, checksum| {
                carried = carry(&store, folder, checksum)?;
                Ok(())
            },
        )
    })?;
    Ok(Some(CompactReport {
        changes: pending.changes,
        carried,
        counts: built.counts,
        cut: pending.cut,
        bytes: built.bytes,
        time: start.elapsed(),
    }))
}

/// The naming relations that somebody gave: not those at the end that a load finds by itself, in
/// the order in which it finds them.
fn given(mut names: Vec<String>, known: &[&str]) -> Vec<String> {
    let mut before = known.len();
    while let Some(last) = names.last() {
        let rank = known.iter().position(|known| known == last);
        let Some(rank) = rank.filter(|rank| *rank < before) else {
            break;
        };
        before = rank;
        names.pop();
    }
    names
}

fn relation_text(store: &Store, id: u32) -> Result<String> {
    let mut bytes = Vec::new();
    let shape = &store.base.shape;
    shape.relation_key(RelationId(id), &mut bytes)?;
    let text = key::text(&bytes).ok_or_else(|| shape.damaged_text())?;
    Ok(text.to_owned())
}

/// What is left of the files, as a chunk on disk.
fn of_files(store: &Store, temporary: &Path) -> Result<SortedChunk> {
    let (base, changes) = (&store.base, &store.changes);
    let shape = &base.shape;
    // ends of triples that are left
    let mut used = vec![false; base.entities()];
    let mut left = vec![0u32; base.relations()];
    let each = |each: &mut dyn FnMut(EntityId, RelationId, EntityId) -> Result<()>| {
        for id in 0..base.entities() as u32 {
            let head = EntityId(id);
            let patch = changes.outgoing_patch(head);
            for edge in shape.outgoing(head)? {
                if patch.is_none_or(|patch| !patch.removed.contains(edge)) {
                    each(head, edge.relation, edge.entity)?;
                }
            }
        }
        Ok(())
    };
    let outside = |tail: EntityId| Error::NoSuchEntity {
        id: tail.0,
        bound: base.entities(),
    };
    each(&mut |head, relation, tail| {
        used[head.index()] = true;
        *used.get_mut(tail.index()).ok_or_else(|| outside(tail))? = true;
        let count = left.get_mut(relation.index());
        *count.ok_or_else(|| changes.no_relation(relation))? += 1;
        Ok(())
    })?;
    let mut terms = RunWriter::create(&temporary.join("files.terms"))?;
    let mut ranks = vec![0u32; base.entities()];
    let mut next = 0;
    shape.entities.for_each(|id, bytes| {
        if used[id] {
            terms.push(bytes, 0)?;
            ranks[id] = next;
            next += 1;
        }
        Ok(())
    })?;
    drop(used);
    let mut relations = Vec::new();
    let mut places = vec![0u32; left.len()];
    for (id, _) in left.iter().enumerate().filter(|(_, count)| **count > 0) {
        let mut bytes = Vec::new();
        shape.relation_key(RelationId(id as u32), &mut bytes)?;
        places[id] = relations.len() as u32;
        relations.push(bytes);
    }
    let triples = Triples::written(&temporary.join("files.triples"), |put| {
        each(&mut |head, relation, tail| {
            put([
                ranks[head.index()],
                places[relation.index()],
                ranks[tail.index()],
            ])
        })
    })?;
    Ok(SortedChunk {
        terms: terms.finish()?,
        relations,
        triples,
    })
}

/// What was added, as a chunk; none if nothing was.
fn of_changes(store: &Store) -> Result<Option<SortedChunk>> {
    let mut chunk = Chunk::default();
    for triple in store.changes.added() {
        let [head, relation, tail] = &mut chunk.scratch;
        store.changes.key(&store.base, triple.head, head)?;
        (store.changes).relation_key(&store.base, triple.relation, relation)?;
        store.changes.key(&store.base, triple.tail, tail)?;
        chunk.add_scratch()?;
    }
    match chunk.triples.is_empty() {
        true => Ok(None),
        false => chunk.finish(None).map(Some),
    }
}

/// Writes what came after the folded changes to the log of the new files, and keeps what earlier
/// damage left beside the old one. Gives the number of changes. The lock is held.
fn carry(store: &Store, folder: &Path, checksum: &str) -> Result<u64> {
    let old = store.base.data.join(LOG);
    let mut later: Vec<Change> = Vec::new();
    log::read(&old, store.checksum(), store.changes.at, |change| {
        later.push(change);
        Ok(())
    })?;
    keep_damaged(&store.base.data, folder)?;
    if !later.is_empty() {
        let path = folder.join(LOG);
        log::append(&path, checksum, Position::default(), &later)?;
    }
    Ok(later.len() as u64)
}

/// What earlier damage left beside the old log stays beside the new one.
fn keep_damaged(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).map_err(Error::io("read", from))? {
        let path = entry.map_err(Error::io("read", from))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // `rest` is what older versions left
        if name.starts_with(KEPT) || name.starts_with("changes.log.rest") {
            let target = to.join(&*name);
            std::fs::copy(&path, &target).map_err(Error::io("copy", &path))?;
        }
    }
    Ok(())
}
