//! The files of a graph folder, opened: adjacency both ways, names, and statistics, all through
//! memory maps. They never change; changes are in a log beside them ([`crate::changes`]).
//!
//! ```text
//! outgoing.offsets   u32 × (entities + 1)     row of each entity in outgoing.edges
//! outgoing.edges     (relation, tail) × triples, each row sorted
//! incoming.offsets   u32 × (entities + 1)
//! incoming.edges     (relation, head) × triples, each row sorted
//! by-relation.offsets  u32 × (relations + 1)
//! by-relation.places   u32 × triples          places in outgoing.edges, ascending
//! entities.text, entities.blocks              sorted dictionary: id = place in the order
//! relations.text, relations.blocks
//! relation-entities  u32 × relations          the entity with the relation's key, or none
//! labels             u32 × entities           the entity that is its label, or none
//! names.hashes       (hash, entity) sorted    normalised names
//! names.order        u32                      entities in the order of their normalised names
//! blocks.sums        a checksum for each block of the files above ([`crate::sums`])
//! ```
//!
//! That is 20 bytes for each triple and 8 for each entity beside the dictionary. Opening maps the
//! files and reads the manifest. Graphs of up to 8 MiB have all checksums verified at once; in
//! larger ones each block is verified when it is first read, so that no answer comes from a damaged
//! row. Graphs of older versions have no checksums of blocks: they are verified on request
//! ([`Store::check`](crate::Store::check)), and every number read from them is checked before use.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::file;
use crate::graph::{EntityId, RelationId};
use crate::key;
use crate::manifest::{MANIFEST, Manifest};
use crate::names::normalise;
use crate::shape::{Shape, is_unnamed_key, open};
use crate::sums::{SUMS, Sums};
use crate::verified::Verified;

/// Graphs up to this size are verified whole when they are opened.
pub(crate) const VERIFIED_WHEN_OPENED: u64 = 8 << 20;

/// Longer literals are indexed as names only if they are the label or alias of an entity (guess).
pub(crate) const LONGEST_VALUE: usize = 80;

pub(crate) const NONE: u32 = u32::MAX;

/// The files of one graph, opened for reading.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) path: PathBuf,
    /// The folder of the files.
    pub(crate) data: PathBuf,
    /// The manifest at the time of opening.
    pub(crate) stamp: Option<Stamp>,
    pub(crate) manifest: Manifest,
    pub(crate) shape: Shape,
    labels: Verified<u32>,
    name_hashes: Verified<[u32; 2]>,
    /// Filed entities in the order of their normalised names.
    pub(crate) name_order: Verified<u32>,
    /// When they are verified.
    pub(crate) verification: Verification,
    pub(crate) label_relations: Vec<RelationId>,
    /// Label and alias relations, sorted.
    pub(crate) naming_relations: Vec<RelationId>,
}

/// When the files of a graph are verified against their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verification {
    /// All of them when the graph is opened.
    WhenOpened,
    /// Each block when it is first read.
    EachBlock,
    /// Never: the graph was written by a version without checksums of blocks. Ids and offsets are
    /// checked before use.
    OnlyWhenAsked,
}

/// Identifies one version of a file, to notice when it is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: u64,
}

impl Stamp {
    /// Size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Of a file; none if there is no such file.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(found) => Ok(Some(Self {
                bytes: found.len(),
                modified: found.modified().ok(),
                #[cfg(unix)]
                inode: std::os::unix::fs::MetadataExt::ino(&found),
            })),
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(Error::io("read", path)(e)),
        }
    }
}

/// The hash under which a normalised name is filed.
pub(crate) fn name_hash(normalised: &str) -> u32 {
    (xxh3_64(normalised.as_bytes()) >> 32) as u32
}

/// The first of `length` places whose hash is not below `hash`.
///
/// Interpolation search: hashes are distributed evenly, so a hash gives its position to within a
/// few thousand. It touches one page where a binary search would touch twenty.
fn first_not_below(
    length: usize,
    hash: u32,
    hash_at: impl Fn(usize) -> Result<u32>,
) -> Result<usize> {
    let below = |i: usize| Ok::<_, Error>(hash_at(i)? < hash);
    let guess = ((u64::from(hash) * length as u64) >> 32) as usize;
    let (mut low, mut high, mut step) = (guess, guess, 512);
    while low > 0 && !below(low - 1)? {
        high = low;
        low = low.saturating_sub(step);
        step *= 2;
    }
    while high < length && below(high)? {
        low = high;
        high = (high + step).min(length);
        step *= 2;
    }
    while low < high {
        let middle = (low + high) / 2;
        if below(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The sums of the blocks of all files; none if the graph has none.
fn sums_of(data: &Path, manifest: &Manifest) -> Result<Option<Sums>> {
    let Some(promised) = &manifest.sums else {
        return Ok(None);
    };
    let sums = Sums::read(data, promised)?;
    let fits = (manifest.files.iter())
        .all(|f| sums.of(&f.name).is_some_and(|sums| sums.bytes() == f.bytes));
    if !fits {
        return Err(Error::Damaged {
            path: data.join(SUMS),
            reason: "it does not have the files of the manifest".into(),
        });
    }
    Ok(Some(sums))
}

/// Whether the error means that the file does not exist.
fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

impl Base {
    /// Opens the files that the manifest leads to; up to `verified` bytes have their checksums
    /// compared.
    pub(crate) fn open(path: &Path, verified: u64) -> Result<Self> {
        let stamp = Stamp::of(&path.join(MANIFEST))?;
        let manifest = Manifest::read(path)?;
        let data = manifest.data(path);
        for promised in &manifest.files {
            let file = data.join(&promised.name);
            let bytes = std::fs::metadata(&file)
                .map_err(Error::io("open", &file))?
                .len();
            if bytes != promised.bytes {
                return Err(Error::Damaged {
                    path: file,
                    reason: format!("it has {bytes} bytes instead of {}", promised.bytes),
                });
            }
        }
        let small = manifest.files.iter().map(|f| f.bytes).sum::<u64>() <= verified;
        let (verification, sums) = if small {
            for promised in manifest.files.iter().chain(&manifest.sums) {
                file::check(&data, promised)?;
            }
            (Verification::WhenOpened, None)
        } else {
            match sums_of(&data, &manifest)? {
                Some(sums) => (Verification::EachBlock, Some(sums)),
                None => (Verification::OnlyWhenAsked, None),
            }
        };
        let sums = sums.as_ref();
        let shape = Shape::open(&data, &manifest.counts, manifest.kinds, sums)?;
        let labels: Verified<u32> = open(&data, "labels", sums)?;
        if !labels.is_empty() && labels.len() != shape.entities.len() {
            return Err(Error::Damaged {
                path: data.join("labels"),
                reason: "its length is not what the manifest says".into(),
            });
        }
        let relation = |&id: &u32| {
            if id as usize >= shape.relations.len() {
                return Err(Error::NoSuchRelation {
                    id,
                    bound: shape.relations.len(),
                });
            }
            Ok(RelationId(id))
        };
        let label_relations: Vec<_> = manifest
            .label_relations
            .iter()
            .map(relation)
            .collect::<Result<_>>()?;
        let mut naming_relations = label_relations.clone();
        for id in &manifest.alias_relations {
            naming_relations.push(relation(id)?);
        }
        naming_relations.sort_unstable();
        Ok(Self {
            path: path.to_owned(),
            stamp,
            labels,
            name_hashes: open(&data, "names.hashes", sums)?,
            name_order: open(&data, "names.order", sums)?,
            verification,
            label_relations,
            naming_relations,
            shape,
            manifest,
            data,
        })
    }

    /// An error if a file is shorter than when it was opened: reading beyond its end would end
    /// the process.
    pub(crate) fn is_there(&self) -> Result<()> {
        self.shape.is_there()?;
        self.labels.is_there()?;
        self.name_hashes.is_there()?;
        self.name_order.is_there()
    }

    pub(crate) fn entities(&self) -> usize {
        self.shape.entities.len()
    }

    pub(crate) fn relations(&self) -> usize {
        self.shape.relations.len()
    }

    /// The entity with this key.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<EntityId>> {
        let found = self.shape.entities.find(key)?;
        Ok(found.map(|id| EntityId(id as u32)))
    }

    /// The relation with this key.
    pub(crate) fn find_relation(&self, key: &[u8]) -> Result<Option<RelationId>> {
        let found = self.shape.relations.find(key)?;
        Ok(found.map(|id| RelationId(id as u32)))
    }

    /// The entity that is the label of this one.
    pub(crate) fn label(&self, entity: EntityId) -> Result<Option<EntityId>> {
        let found = self.labels.at(entity.index())?;
        Ok(found.filter(|&id| id != NONE).map(EntityId))
    }

    /// The entity with the relation's key.
    pub(crate) fn twin(&self, relation: RelationId) -> Result<Option<EntityId>> {
        match self.shape.relation_entities.at(relation.index())? {
            Some(NONE) => Ok(None),
            Some(id) if (id as usize) < self.shape.entities.len() => Ok(Some(EntityId(id))),
            _ => Err(Error::NoSuchRelation {
                id: relation.0,
                bound: self.shape.relations.len(),
            }),
        }
    }

    /// Whether any entity or relation is a name that is no IRI.
    pub(crate) fn has_names(&self) -> Result<bool> {
        let [.., names_from, end] = self.shape.kinds;
        if names_from < end {
            return Ok(true);
        }
        // keys sort by kind, and names come last
        let Some(last) = self.shape.relations.len().checked_sub(1) else {
            return Ok(false);
        };
        let mut bytes = Vec::new();
        self.shape.relations.get(last, &mut bytes)?;
        Ok(bytes.first() == Some(&key::NAME))
    }

    /// Whether the entity stands in the index of names, under its own text.
    pub(crate) fn is_filed(&self, entity: EntityId) -> Result<bool> {
        let mut bytes = Vec::new();
        self.shape.key(entity, &mut bytes)?;
        if !self.shape.is_literal(entity) {
            return Ok(self.label(entity)?.is_none() && !is_unnamed_key(&bytes));
        }
        let naming = &self.naming_relations;
        Ok(bytes.len() <= LONGEST_VALUE
            || (self.shape.incoming(entity)?.iter())
                .any(|edge| naming.binary_search(&edge.relation).is_ok()))
    }

    /// Entities that may be filed under this normalised name: those of its hash.
    pub(crate) fn filed_under(&self, normalised: &str) -> Result<Vec<EntityId>> {
        let hash = name_hash(normalised);
        let hash_at = |place| Ok(self.name_hashes.at(place)?.unwrap_or_default()[0]);
        let mut place = first_not_below(self.name_hashes.len(), hash, hash_at)?;
        let mut found = Vec::new();
        while let Some([_, id]) = self.name_hashes.at(place)?.filter(|[h, _]| *h == hash) {
            found.push(EntityId(id));
            place += 1;
        }
        Ok(found)
    }

    /// The normal form under which an entity is filed.
    pub(crate) fn filed_name(&self, filed: EntityId) -> Result<String> {
        self.shape.own_name(filed).map(|name| normalise(&name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn guessing_a_place_agrees_with_halving(
            mut hashes in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..50], 0..3000),
            probe in prop_oneof![any::<u32>(), 0u32..60, Just(u32::MAX)],
        ) {
            hashes.sort_unstable();
            let pairs: Vec<[u32; 2]> = hashes.into_iter().map(|h| [h, 0]).collect();
            prop_assert_eq!(
                first_not_below(pairs.len(), probe, |i| Ok(pairs[i][0])).unwrap(),
                pairs.partition_point(|[h, _]| *h < probe)
            );
        }
    }
}
