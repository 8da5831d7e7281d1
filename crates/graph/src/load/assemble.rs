//! From chunks to a graph folder: one dictionary, and the triples sorted both ways.
//!
//! Ids are places in the sorted dictionary, so the files do not depend on how the input was cut
//! or which thread was faster. Adjacency is made by counting and scattering, in as many passes
//! over the triples as the memory asks for; each pass makes the rows of one range of entities.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::chunk::{RawTriple, SortedChunk};
use super::strings::merge;
use crate::dictionary::DictionaryWriter;
use crate::error::{Error, Result};
use crate::file::{FileWriter, WrittenFile};
use crate::graph::{Edge, EntityId, RelationId};
use crate::mapped::Mapped;

/// What the merge of the dictionaries found.
pub(crate) struct MergedTerms {
    pub(crate) entities: usize,
    pub(crate) relations: usize,
    /// First id of each kind, in the order of the kinds' bytes: b i l n; the last one is the end.
    pub(crate) kinds: [u32; 5],
    /// Relation → entity with the same key, or `u32::MAX`.
    pub(crate) relation_entities: Vec<u32>,
    pub(crate) files: Vec<WrittenFile>,
}

/// Merges the chunks' dictionaries into one and renumbers all triples.
pub(crate) fn merge_terms(folder: &Path, chunks: &mut [SortedChunk]) -> Result<MergedTerms> {
    let mut files = Vec::new();
    let relations: BTreeMap<Vec<u8>, u32> = {
        let mut names: BTreeMap<Vec<u8>, u32> = chunks
            .iter()
            .flat_map(|c| c.relations.iter().map(|r| (r.clone(), 0)))
            .collect();
        for (id, at) in names.values_mut().zip(0..) {
            *id = at;
        }
        names
    };
    let mut writer = DictionaryWriter::create(folder, "relations")?;
    for name in relations.keys() {
        writer.push(name)?;
    }
    files.extend(writer.finish()?);

    let runs: Vec<_> = chunks
        .iter_mut()
        .map(|c| {
            std::mem::replace(
                &mut c.terms,
                super::strings::SortedRun::Memory {
                    arena: Vec::new(),
                    slots: Vec::new(),
                },
            )
        })
        .collect();
    let mut maps: Vec<Vec<u32>> = runs
        .iter()
        .map(|run| Vec::with_capacity(run.len()))
        .collect();
    let mut writer = DictionaryWriter::create(folder, "entities")?;
    let mut count = 0u32;
    let mut kinds = [0u32; 5];
    let mut last: Vec<u8> = Vec::new();
    let mut relation_entities = vec![u32::MAX; relations.len()];
    let mut names = relations.iter().peekable();
    merge(&runs, |run, reader| {
        let string = reader.string();
        if count == 0 || last != string {
            if count == u32::MAX - 1 {
                return Err(Error::TooMany { what: "entities" });
            }
            writer.push(string)?;
            last.clear();
            last.extend_from_slice(string);
            let kind = b"biln"
                .iter()
                .position(|k| *k == string[0])
                .expect("keys begin with their kind");
            for first in &mut kinds[kind + 1..] {
                *first = count + 1;
            }
            while names
                .next_if(|(name, _)| name.as_slice() < string)
                .is_some()
            {}
            if let Some((_, &id)) = names.next_if(|(name, _)| name.as_slice() == string) {
                relation_entities[id as usize] = count;
            }
            count += 1;
        }
        maps[run].push(count - 1);
        Ok(())
    })?;
    files.extend(writer.finish()?);

    let relation_maps: Vec<Vec<u32>> = chunks
        .iter()
        .map(|c| {
            c.relations
                .iter()
                .map(|r| relations[r.as_slice()])
                .collect()
        })
        .collect();
    let relation_count = relations.len();
    drop(relations);
    chunks
        .par_iter_mut()
        .zip(maps.into_par_iter().zip(relation_maps))
        .try_for_each(|(chunk, (map, relation_map))| {
            chunk
                .triples
                .map(|[h, r, t]| [map[h as usize], relation_map[r as usize], map[t as usize]])
        })?;
    Ok(MergedTerms {
        entities: count as usize,
        relations: relation_count,
        kinds,
        relation_entities,
        files,
    })
}

/// Cuts `0..counts.len()` into ranges whose counts add up to at most `most`, at least `parts` of
/// them if there is enough to share.
fn ranges(counts: &[u32], max_sum: usize, parts: usize) -> Vec<Range<usize>> {
    let total: usize = counts.iter().map(|&c| c as usize).sum();
    let max_sum = max_sum.min(total.div_ceil(parts)).max(1);
    let mut cuts = Vec::new();
    let (mut from, mut sum) = (0, 0);
    for (i, &count) in counts.iter().enumerate() {
        if sum + count as usize > max_sum && i > from {
            cuts.push(from..i);
            (from, sum) = (i, 0);
        }
        sum += count as usize;
    }
    if from < counts.len() {
        cuts.push(from..counts.len());
    }
    cuts
}

/// Rows of one range of entities, being filled.
struct RowBuffer {
    range: Range<usize>,
    /// Start of each row within `edges`; one more at the end.
    starts: Vec<usize>,
    next: Vec<usize>,
    edges: Vec<Edge>,
}

impl RowBuffer {
    fn new(range: Range<usize>, counts: &[u32]) -> Self {
        let mut starts = Vec::with_capacity(range.len() + 1);
        let mut at = 0;
        starts.push(0);
        for &count in &counts[range.clone()] {
            at += count as usize;
            starts.push(at);
        }
        Self {
            next: starts.clone(),
            edges: vec![Edge::default(); at],
            starts,
            range,
        }
    }

    fn put(&mut self, row: u32, edge: Edge) {
        let at = &mut self.next[row as usize - self.range.start];
        self.edges[*at] = edge;
        *at += 1;
    }

    /// Sorts each row and drops duplicates; returns the rows' lengths.
    fn sort_rows(&mut self) -> Vec<u32> {
        let mut lengths = Vec::with_capacity(self.range.len());
        let mut end = 0;
        for i in 0..self.range.len() {
            let (from, to) = (self.starts[i], self.starts[i + 1]);
            self.edges[from..to].sort_unstable();
            let begin = end;
            for at in from..to {
                let edge = self.edges[at];
                if end == begin || self.edges[end - 1] != edge {
                    self.edges[end] = edge;
                    end += 1;
                }
            }
            lengths.push((end - begin) as u32);
        }
        self.edges.truncate(end);
        lengths
    }
}

/// Writes `NAME.edges` and `NAME.offsets`. `scan` walks all triples as (row, edge), once per pass
/// and thread; returns the files and the number of distinct triples.
fn write_rows(
    folder: &Path,
    name: &str,
    counts: &[u32],
    memory: usize,
    scan: impl Fn(&Range<usize>, &mut dyn FnMut(u32, Edge)) -> Result<()> + Sync,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(Vec<WrittenFile>, u64)> {
    let threads = rayon::current_num_threads();
    let max_sum = (memory / threads / size_of::<Edge>()).max(1 << 16);
    let mut edges = FileWriter::create(&folder.join(format!("{name}.edges")))?;
    let mut offsets = FileWriter::create(&folder.join(format!("{name}.offsets")))?;
    let mut total = 0u64;
    offsets.write(&0u32.to_le_bytes())?;
    for pass in ranges(counts, max_sum, threads).chunks(threads) {
        let rows: Vec<(RowBuffer, Vec<u32>)> = pass
            .par_iter()
            .map(|range| {
                let mut rows = RowBuffer::new(range.clone(), counts);
                scan(range, &mut |row, edge| rows.put(row, edge))?;
                let lengths = rows.sort_rows();
                Ok((rows, lengths))
            })
            .collect::<Result<_>>()?;
        for (rows, lengths) in rows {
            edges.write(bytemuck::cast_slice(&rows.edges))?;
            for length in lengths {
                total += u64::from(length);
                let end = u32::try_from(total).map_err(|_| Error::TooMany { what: "triples" })?;
                offsets.write(&end.to_le_bytes())?;
            }
            progress(total);
        }
    }
    Ok((vec![edges.finish()?, offsets.finish()?], total))
}

/// Writes the outgoing rows from the chunks.
pub(crate) fn write_outgoing(
    folder: &Path,
    entities: usize,
    chunks: &[SortedChunk],
    memory: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(Vec<WrittenFile>, u64)> {
    let mut counts = vec![0u32; entities];
    for chunk in chunks {
        chunk.triples.for_each_block(|block| {
            for t in block {
                counts[t[0] as usize] = counts[t[0] as usize].saturating_add(1);
            }
        })?;
    }
    if counts.contains(&u32::MAX) {
        return Err(Error::TooMany { what: "triples" });
    }
    let scan = |range: &Range<usize>, put: &mut dyn FnMut(u32, Edge)| {
        for chunk in chunks {
            chunk.triples.for_each_block(|block: &[RawTriple]| {
                for &[head, relation, tail] in block {
                    if range.contains(&(head as usize)) {
                        put(
                            head,
                            Edge {
                                relation: RelationId(relation),
                                entity: EntityId(tail),
                            },
                        );
                    }
                }
            })?;
        }
        Ok(())
    };
    write_rows(folder, "outgoing", &counts, memory, scan, progress)
}

/// Writes the incoming rows and the triples by relation from the outgoing rows on disk.
pub(crate) fn write_incoming(
    folder: &Path,
    entities: usize,
    relations: usize,
    memory: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<WrittenFile>> {
    let offsets = Mapped::<u32>::open(&folder.join("outgoing.offsets"))?;
    let edges = Mapped::<Edge>::open(&folder.join("outgoing.edges"))?;
    let mut counts = vec![0u32; entities];
    let mut relation_counts = vec![0u32; relations];
    for edge in edges.iter() {
        counts[edge.entity.index()] += 1;
        relation_counts[edge.relation.index()] += 1;
    }
    let scan = |range: &Range<usize>, put: &mut dyn FnMut(u32, Edge)| {
        for (head, row) in offsets.windows(2).enumerate() {
            for edge in &edges[row[0] as usize..row[1] as usize] {
                if range.contains(&edge.entity.index()) {
                    put(
                        edge.entity.0,
                        Edge {
                            relation: edge.relation,
                            entity: EntityId(head as u32),
                        },
                    );
                }
            }
        }
        Ok(())
    };
    let (mut files, _) = write_rows(folder, "incoming", &counts, memory, scan, progress)?;

    // places in `outgoing.edges` of each relation's triples, ascending
    let mut places = FileWriter::create(&folder.join("by-relation.places"))?;
    let mut starts = FileWriter::create(&folder.join("by-relation.offsets"))?;
    let mut total = 0u32;
    starts.write(&total.to_le_bytes())?;
    for count in &relation_counts {
        total += count;
        starts.write(&total.to_le_bytes())?;
    }
    for range in ranges(&relation_counts, (memory / 4).max(1 << 16), 1) {
        let mut next = Vec::with_capacity(range.len());
        let mut size = 0usize;
        for &count in &relation_counts[range.clone()] {
            next.push(size);
            size += count as usize;
        }
        let mut block = vec![0u32; size];
        for (place, edge) in edges.iter().enumerate() {
            if range.contains(&edge.relation.index()) {
                let at = &mut next[edge.relation.index() - range.start];
                block[*at] = place as u32;
                *at += 1;
            }
        }
        places.write(bytemuck::cast_slice(&block))?;
    }
    files.push(places.finish()?);
    files.push(starts.finish()?);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_everything_and_keep_the_limit() {
        let counts = [3, 0, 9, 1, 1, 1, 0];
        let cut = ranges(&counts, 4, 1);
        assert_eq!(cut.first().unwrap().start, 0);
        assert_eq!(cut.last().unwrap().end, counts.len());
        assert!(cut.windows(2).all(|w| w[0].end == w[1].start));
        for range in &cut {
            let sum: u32 = counts[range.clone()].iter().sum();
            // a single row that is larger than the limit stands alone
            assert!(sum <= 4 || range.len() == 1, "{range:?}");
        }
        assert!(ranges(&[], 4, 1).is_empty());
        assert!(ranges(&[5, 5, 5, 5], 100, 2).len() >= 2);
    }
}
