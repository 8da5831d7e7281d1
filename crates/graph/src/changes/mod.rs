//! Live changes: what was added and removed since a graph's files were written.
//!
//! ```text
//! graph = (files − removed) ∪ added
//! ```
//!
//! The files never change. Changes stand in a log beside them ([`log`]), and in memory as patches
//! of the rows that they touch: [`Changes`]. New entities and relations get ids after those of the
//! files, in the order of their first appearance, so that all who read the same log give the same
//! ids. A [`Store`](crate::Store) is the files and one state of the changes, and never changes
//! itself: whoever reads it sees one graph from beginning to end. A later state shares all that is
//! the same.
//!
//! A patch needs memory only for its changes. The merged row of a patched entity is computed when
//! it is first read, and cached.

pub(crate) mod commit;
pub(crate) mod compact;
mod counts;
pub(crate) mod edit;
pub(crate) mod log;
pub(crate) mod naming;
pub(crate) mod repair;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use crate::base::{Base, Stamp};
use crate::error::{Error, Result};
use crate::graph::{Edge, EntityId, RelationId, Triple};
use crate::key;
use crate::manifest::Counts;
use crate::shape::StoredRows;
use commit::Position;
use log::{Action, Change, LogCut};
use naming::Naming;

/// One state of the changes to a graph's files.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    pub(crate) at: Position,
    pub(crate) cut: Option<LogCut>,
    /// The log as it was when it was read.
    pub(crate) log: Option<Stamp>,
    /// Identifies this state of the graph.
    pub(crate) identity: String,
    entities: NewTerms,
    relations: NewTerms,
    outgoing: HashMap<EntityId, Arc<Patch>>,
    incoming: HashMap<EntityId, Arc<Patch>>,
    by_relation: HashMap<RelationId, Arc<RelationPatch>>,
    /// Entities with the key of a relation, where one of the two is new.
    twins: HashMap<RelationId, EntityId>,
    pub(crate) naming: Naming,
    has_names: bool,
    counts: OnceLock<Counts>,
}

/// Terms that the files do not have.
#[derive(Clone, Debug)]
struct NewTerms {
    /// The first id.
    first: u32,
    keys: Vec<Arc<[u8]>>,
    ids: HashMap<Arc<[u8]>, u32>,
}

/// Added and removed edges of an entity.
#[derive(Debug, Default)]
pub(crate) struct Patch {
    pub(crate) added: BTreeSet<Edge>,
    pub(crate) removed: BTreeSet<Edge>,
    merged: OnceLock<Box<[Edge]>>,
}

/// Added and removed triples of a relation, as (head, tail).
#[derive(Clone, Debug, Default)]
pub(crate) struct RelationPatch {
    pub(crate) added: BTreeSet<(EntityId, EntityId)>,
    pub(crate) removed: BTreeSet<(EntityId, EntityId)>,
}

impl Clone for Patch {
    /// Without the merged row: patches are cloned to be changed.
    fn clone(&self) -> Self {
        Self {
            added: self.added.clone(),
            removed: self.removed.clone(),
            merged: OnceLock::new(),
        }
    }
}

impl Patch {
    fn merged(&self, row: &[Edge]) -> &[Edge] {
        self.merged.get_or_init(|| {
            let mut edges = Vec::with_capacity(row.len() + self.added.len());
            let mut added = self.added.iter().copied().peekable();
            for &edge in row.iter().filter(|edge| !self.removed.contains(edge)) {
                while let Some(new) = added.next_if(|new| *new < edge) {
                    edges.push(new);
                }
                edges.push(edge);
            }
            edges.extend(added);
            edges.into_boxed_slice()
        })
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

impl NewTerms {
    fn new(first: usize) -> Self {
        Self {
            first: u32::try_from(first).expect("ids of the files have 32 bits"),
            keys: Vec::new(),
            ids: HashMap::new(),
        }
    }

    fn bound(&self) -> usize {
        self.first as usize + self.keys.len()
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        self.ids.get(key).copied()
    }

    fn key(&self, id: u32) -> Option<&[u8]> {
        let place = id.checked_sub(self.first)?;
        self.keys.get(place as usize).map(|key| &**key)
    }

    fn push(&mut self, key: &[u8], what: &'static str) -> Result<u32> {
        let id = u32::try_from(self.bound())
            .ok()
            .filter(|id| *id < u32::MAX - 1)
            .ok_or(Error::TooMany { what })?;
        let key: Arc<[u8]> = key.into();
        self.keys.push(Arc::clone(&key));
        self.ids.insert(key, id);
        Ok(id)
    }
}

/// Which side of a triple a row belongs to.
#[derive(Clone, Copy)]
enum Side {
    Outgoing,
    Incoming,
}

impl Changes {
    /// None yet.
    pub(crate) fn none(base: &Base) -> Result<Self> {
        Ok(Self {
            at: Position::default(),
            cut: None,
            log: None,
            identity: base.manifest.checksum.clone(),
            entities: NewTerms::new(base.entities()),
            relations: NewTerms::new(base.relations()),
            outgoing: HashMap::new(),
            incoming: HashMap::new(),
            by_relation: HashMap::new(),
            twins: HashMap::new(),
            naming: Naming::of(base),
            has_names: base.has_names()?,
            counts: OnceLock::new(),
        })
    }

    /// Reads what the log holds beyond this state.
    pub(crate) fn read_on(&mut self, base: &Base) -> Result<()> {
        let path = base.data.join(log::LOG);
        self.log = Stamp::of(&path)?;
        let mut touched = Vec::new();
        let checksum = base.manifest.checksum.as_str();
        let (at, cut) = log::read(&path, checksum, self.at, |change| {
            self.apply(base, &change, &mut touched).map(|_| ())
        })?;
        self.finish_update(base, at, cut, touched)
    }

    /// Records the position in the log, and updates the names of touched entities.
    pub(crate) fn finish_update(
        &mut self,
        base: &Base,
        at: Position,
        cut: Option<LogCut>,
        mut touched: Vec<EntityId>,
    ) -> Result<()> {
        self.at = at;
        self.cut = cut;
        if at.changes > 0 {
            self.identity = format!("{}+{:016x}", base.manifest.checksum, at.chain);
        }
        self.counts = OnceLock::new();
        touched.sort_unstable();
        touched.dedup();
        self.rename(base, &touched)
    }

    /// Applies a change; returns whether it had an effect.
    pub(crate) fn apply(
        &mut self,
        base: &Base,
        change: &Change,
        touched: &mut Vec<EntityId>,
    ) -> Result<bool> {
        let [head, relation, tail] = &change.keys;
        let triple = match change.action {
            Action::Add => Triple {
                head: self.intern(base, head)?,
                relation: self.intern_relation(base, relation)?,
                tail: self.intern(base, tail)?,
            },
            Action::Remove => {
                let (Some(head), Some(relation), Some(tail)) = (
                    self.find(base, head)?,
                    self.find_relation(base, relation)?,
                    self.find(base, tail)?,
                ) else {
                    return Ok(false);
                };
                Triple {
                    head,
                    relation,
                    tail,
                }
            }
        };
        let stated = self.contains(base, triple)?;
        if stated == (change.action == Action::Add) {
            return Ok(false);
        }
        let in_files = in_files(base, triple)?;
        let out = Edge {
            relation: triple.relation,
            entity: triple.tail,
        };
        let back = Edge {
            relation: triple.relation,
            entity: triple.head,
        };
        for (rows, row, edge) in [
            (&mut self.outgoing, triple.head, out),
            (&mut self.incoming, triple.tail, back),
        ] {
            let patch = Arc::make_mut(rows.entry(row).or_default());
            patch.merged = OnceLock::new();
            toggle(
                &mut patch.added,
                &mut patch.removed,
                edge,
                change.action,
                in_files,
            );
            if patch.is_empty() {
                rows.remove(&row);
            }
        }
        let patch = self.by_relation.entry(triple.relation).or_default();
        let patch = Arc::make_mut(patch);
        let ends = (triple.head, triple.tail);
        toggle(
            &mut patch.added,
            &mut patch.removed,
            ends,
            change.action,
            in_files,
        );
        touched.extend([triple.head, triple.tail]);
        Ok(true)
    }

    fn intern(&mut self, base: &Base, key: &[u8]) -> Result<EntityId> {
        if let Some(known) = self.find(base, key)? {
            return Ok(known);
        }
        let id = EntityId(self.entities.push(key, "entities")?);
        if let Some(relation) = self.find_relation(base, key)? {
            self.twins.insert(relation, id);
        }
        self.has_names |= key.first() == Some(&key::NAME);
        Ok(id)
    }

    fn intern_relation(&mut self, base: &Base, key: &[u8]) -> Result<RelationId> {
        if let Some(known) = self.find_relation(base, key)? {
            return Ok(known);
        }
        let id = RelationId(self.relations.push(key, "relations")?);
        if let Some(entity) = self.find(base, key)? {
            self.twins.insert(id, entity);
        }
        self.has_names |= key.first() == Some(&key::NAME);
        self.naming
            .add_relation(base, id, key, &self.relations.keys)?;
        Ok(id)
    }

    pub(crate) fn find(&self, base: &Base, key: &[u8]) -> Result<Option<EntityId>> {
        match self.entities.find(key) {
            Some(id) => Ok(Some(EntityId(id))),
            None => base.find(key),
        }
    }

    pub(crate) fn find_relation(&self, base: &Base, key: &[u8]) -> Result<Option<RelationId>> {
        match self.relations.find(key) {
            Some(id) => Ok(Some(RelationId(id))),
            None => base.find_relation(key),
        }
    }

    pub(crate) fn entity_bound(&self) -> usize {
        self.entities.bound()
    }

    pub(crate) fn relation_bound(&self) -> usize {
        self.relations.bound()
    }

    pub(crate) fn has_names(&self) -> bool {
        self.has_names
    }

    /// Whether the files are all there is.
    pub(crate) fn is_empty(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Triples added and removed.
    pub(crate) fn balance(&self) -> (u64, u64) {
        self.outgoing.values().fold((0, 0), |(added, removed), p| {
            (
                added + p.added.len() as u64,
                removed + p.removed.len() as u64,
            )
        })
    }

    /// Writes the key of an entity into `out`.
    pub(crate) fn key(&self, base: &Base, entity: EntityId, out: &mut Vec<u8>) -> Result<()> {
        match self.entities.key(entity.0) {
            Some(key) => {
                out.clear();
                out.extend_from_slice(key);
                Ok(())
            }
            None if entity.index() < base.entities() => base.shape.key(entity, out),
            None => Err(self.no_entity(entity)),
        }
    }

    /// Writes the key of a relation into `out`.
    pub(crate) fn relation_key(
        &self,
        base: &Base,
        relation: RelationId,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self.relations.key(relation.0) {
            Some(key) => {
                out.clear();
                out.extend_from_slice(key);
                Ok(())
            }
            None if relation.index() < base.relations() => base.shape.relation_key(relation, out),
            None => Err(self.no_relation(relation)),
        }
    }

    fn no_entity(&self, entity: EntityId) -> Error {
        Error::NoSuchEntity {
            id: entity.0,
            bound: self.entity_bound(),
        }
    }

    pub(crate) fn no_relation(&self, relation: RelationId) -> Error {
        Error::NoSuchRelation {
            id: relation.0,
            bound: self.relation_bound(),
        }
    }

    pub(crate) fn is_literal(&self, base: &Base, entity: EntityId) -> bool {
        match self.entities.key(entity.0) {
            Some(key) => key.first() == Some(&key::LITERAL),
            None => base.shape.is_literal(entity),
        }
    }

    pub(crate) fn is_blank(&self, base: &Base, entity: EntityId) -> bool {
        match self.entities.key(entity.0) {
            Some(key) => key.first() == Some(&key::BLANK),
            None => base.shape.is_blank(entity),
        }
    }

    pub(crate) fn twin(&self, base: &Base, relation: RelationId) -> Result<Option<EntityId>> {
        if let Some(&twin) = self.twins.get(&relation) {
            return Ok(Some(twin));
        }
        match relation.index() {
            i if i < base.relations() => base.twin(relation),
            i if i < self.relation_bound() => Ok(None),
            _ => Err(self.no_relation(relation)),
        }
    }

    fn side<'a>(
        &'a self,
        base: &'a Base,
        side: Side,
    ) -> (&'a HashMap<EntityId, Arc<Patch>>, &'a StoredRows) {
        match side {
            Side::Outgoing => (&self.outgoing, &base.shape.outgoing),
            Side::Incoming => (&self.incoming, &base.shape.incoming),
        }
    }

    fn row<'a>(&'a self, base: &'a Base, side: Side, entity: EntityId) -> Result<&'a [Edge]> {
        let (patches, rows) = self.side(base, side);
        let row = match entity.index() {
            i if i < base.entities() => rows.row(entity)?,
            i if i < self.entity_bound() => &[],
            _ => return Err(self.no_entity(entity)),
        };
        Ok(match patches.get(&entity) {
            Some(patch) => patch.merged(row),
            None => row,
        })
    }

    pub(crate) fn outgoing<'a>(&'a self, base: &'a Base, entity: EntityId) -> Result<&'a [Edge]> {
        self.row(base, Side::Outgoing, entity)
    }

    pub(crate) fn incoming<'a>(&'a self, base: &'a Base, entity: EntityId) -> Result<&'a [Edge]> {
        self.row(base, Side::Incoming, entity)
    }

    /// Outgoing or incoming edges of one relation, without putting the row of a hub together.
    pub(crate) fn run<'a>(
        &'a self,
        base: &'a Base,
        entity: EntityId,
        relation: RelationId,
        outgoing: bool,
    ) -> Result<Cow<'a, [Edge]>> {
        let side = match outgoing {
            true => Side::Outgoing,
            false => Side::Incoming,
        };
        let (patches, rows) = self.side(base, side);
        let run = match entity.index() {
            i if i < base.entities() => rows.row_by(entity, relation)?,
            i if i < self.entity_bound() => &[],
            _ => return Err(self.no_entity(entity)),
        };
        let Some(patch) = patches.get(&entity) else {
            return Ok(Cow::Borrowed(run));
        };
        let edge = |id| Edge {
            relation,
            entity: EntityId(id),
        };
        let kept = run.iter().filter(|edge| !patch.removed.contains(edge));
        let added = patch.added.range(edge(0)..=edge(u32::MAX));
        let mut edges: Vec<Edge> = kept.chain(added).copied().collect();
        edges.sort_unstable();
        Ok(Cow::Owned(edges))
    }

    /// Number of triples that the entity is head or tail of.
    pub(crate) fn degree(&self, base: &Base, entity: EntityId) -> Result<usize> {
        Ok(self.row_length(base, true, entity)? + self.row_length(base, false, entity)?)
    }

    /// Number of outgoing or incoming edges, without reading them.
    pub(crate) fn row_length(
        &self,
        base: &Base,
        outgoing: bool,
        entity: EntityId,
    ) -> Result<usize> {
        let side = match outgoing {
            true => Side::Outgoing,
            false => Side::Incoming,
        };
        let (patches, rows) = self.side(base, side);
        let length = match entity.index() {
            i if i < base.entities() => rows.range(entity)?.len(),
            i if i < self.entity_bound() => 0,
            _ => return Err(self.no_entity(entity)),
        };
        Ok(match patches.get(&entity) {
            Some(patch) => (length + patch.added.len()).saturating_sub(patch.removed.len()),
            None => length,
        })
    }

    pub(crate) fn contains(&self, base: &Base, triple: Triple) -> Result<bool> {
        let edge = Edge {
            relation: triple.relation,
            entity: triple.tail,
        };
        if let Some(patch) = self.outgoing.get(&triple.head) {
            if patch.added.contains(&edge) {
                return Ok(true);
            }
            if patch.removed.contains(&edge) {
                return Ok(false);
            }
        }
        in_files(base, triple)
    }

    /// Added and removed triples of a relation.
    pub(crate) fn relation_patch(&self, relation: RelationId) -> Option<&RelationPatch> {
        self.by_relation.get(&relation).map(|patch| &**patch)
    }

    /// Added and removed outgoing edges of an entity.
    pub(crate) fn outgoing_patch(&self, entity: EntityId) -> Option<&Patch> {
        self.outgoing.get(&entity).map(|patch| &**patch)
    }

    /// Every triple that the files do not have.
    pub(crate) fn added(&self) -> impl Iterator<Item = Triple> + '_ {
        self.by_relation.iter().flat_map(|(&relation, patch)| {
            patch.added.iter().map(move |&(head, tail)| Triple {
                head,
                relation,
                tail,
            })
        })
    }
}

/// Whether the files state a triple.
fn in_files(base: &Base, triple: Triple) -> Result<bool> {
    if triple.head.index() >= base.entities() {
        return Ok(false);
    }
    let edge = Edge {
        relation: triple.relation,
        entity: triple.tail,
    };
    base.shape.outgoing.contains(triple.head, edge)
}

/// Adds or removes an item, relative to the files.
fn toggle<T: Ord>(
    added: &mut BTreeSet<T>,
    removed: &mut BTreeSet<T>,
    item: T,
    action: Action,
    in_files: bool,
) {
    match (action, in_files) {
        (Action::Add, true) => removed.remove(&item),
        (Action::Add, false) => added.insert(item),
        (Action::Remove, true) => removed.insert(item),
        (Action::Remove, false) => added.remove(&item),
    };
}
