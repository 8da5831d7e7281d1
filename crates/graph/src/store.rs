//! An opened graph folder: its files, and the changes since they were written.
//!
//! A store is immutable. [`Store::refreshed`] returns a new one if the folder has changed, and
//! [`Store::change`] writes changes and returns a store with them; both share what is unchanged,
//! and cloning is cheap. The files are described in `base.rs`, the changes in
//! [`crate::changes`].

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Base, Stamp, VERIFIED_WHEN_OPENED, Verification};
use crate::changes::Changes;
use crate::changes::commit::Position;
use crate::changes::log::{self, LOG, LogCut};
use crate::error::{Error, Result};
use crate::file;
use crate::graph::{Adjacency, Edge, EntityId, Graph, NameMatch, RelationId, Term, Triple};
use crate::key;
use crate::manifest::{Counts, MANIFEST};
use crate::names::normalise;
use crate::shape::{is_unnamed_key, readable_key};
use crate::write_lock::WriteLock;

/// A snapshot of a graph folder, opened for reading.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) base: Arc<Base>,
    pub(crate) changes: Arc<Changes>,
}

/// The contents of a graph's change log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Pending {
    /// Changes in the log, one per added or removed triple.
    pub changes: u64,
    /// Added triples.
    pub added: u64,
    /// Removed triples.
    pub removed: u64,
    /// Bytes of the log.
    pub bytes: u64,
    /// The end of the log, if it is part of a change that was never acknowledged.
    pub cut: Option<LogCut>,
}

impl Store {
    /// Opens a graph folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path.as_ref(), VERIFIED_WHEN_OPENED)
    }

    pub(crate) fn open_with(path: &Path, verified: u64) -> Result<Self> {
        // a graph that is replaced between reading its manifest and opening its files: once more,
        // and again, for changes may be folded in at any time
        for _ in 0..5 {
            match Self::open_once(path, verified) {
                Ok(None) => {}
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                opened => return opened.transpose().unwrap_or_else(|| Err(replaced(path))),
            }
        }
        let opened = Self::open_once(path, verified).transpose();
        opened.unwrap_or_else(|| Err(replaced(path)))
    }

    /// Opens the graph; `None` if it is replaced meanwhile.
    fn open_once(path: &Path, verified: u64) -> Result<Option<Self>> {
        let base = Base::open(path, verified)?;
        let mut changes = Changes::none(&base)?;
        let mut read = changes.read_on(&base);
        if read.is_ok() && changes.cut.is_some() {
            // somebody may be writing what is missing at this moment
            if WriteLock::is_held(path) {
                changes.cut = None;
            } else {
                read = changes.read_on(&base);
            }
        }
        // the log of files that were replaced is gone, or half gone
        if Stamp::of(&path.join(MANIFEST))? != base.stamp {
            return Ok(None);
        }
        read?;
        Ok(Some(Self {
            base: Arc::new(base),
            changes: Arc::new(changes),
        }))
    }

    /// A store of the folder as it is now; `None` if it is unchanged.
    ///
    /// Checks only the lengths and times of a few files, so it can be called before every
    /// question. A truncated file of the graph is an error, and so is a damaged log.
    pub fn refreshed(&self) -> Result<Option<Self>> {
        let path = &self.base.path;
        if Stamp::of(&path.join(MANIFEST))? != self.base.stamp {
            return Self::open(path).map(Some);
        }
        self.base.is_there()?;
        let log = Stamp::of(&self.base.data.join(LOG))?;
        if log == self.changes.log {
            return Ok(None);
        }
        // a log only grows: one that was touched and did not is another one, or damaged
        if log.is_none_or(|log| log.bytes() <= self.changes.at.bytes) {
            return Self::open(path).map(Some);
        }
        let mut changes = Changes::clone(&self.changes);
        if changes.read_on(&self.base).is_err() {
            // damaged, or replaced while it was read, or repaired: from the beginning
            return Self::open(path).map(Some);
        }
        Ok(Some(Self {
            base: Arc::clone(&self.base),
            changes: Arc::new(changes),
        }))
    }

    /// The files without the changes, for building an index.
    pub fn files_only(&self) -> Result<Self> {
        Ok(Self {
            changes: Arc::new(Changes::none(&self.base)?),
            base: Arc::clone(&self.base),
        })
    }

    /// The contents of the change log; `None` if it is empty.
    pub fn pending(&self) -> Option<Pending> {
        let changes = &self.changes;
        if changes.at.changes == 0 && changes.cut.is_none() {
            return None;
        }
        let (added, removed) = changes.balance();
        Some(Pending {
            changes: changes.at.changes,
            added,
            removed,
            bytes: changes.at.bytes,
            cut: changes.cut,
        })
    }

    /// Entities whose names may differ from the files, including new entities; sorted.
    pub fn renamed(&self) -> Vec<EntityId> {
        let mut renamed: Vec<_> = self.changes.naming.relabelled().collect();
        renamed.sort_unstable();
        renamed
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.base.path
    }

    /// The number of triples, entities and so on.
    pub fn counts(&self) -> &Counts {
        self.changes.counts(&self.base)
    }

    /// The identity of the files: equal for equal triples and names, in any order of the input.
    /// With the changes, the identity is [`Graph::identity`].
    pub fn checksum(&self) -> &str {
        &self.base.manifest.checksum
    }

    /// Version of the program that wrote it.
    pub fn written_by(&self) -> &str {
        &self.base.manifest.written_by
    }

    /// The files with their sizes in bytes.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        let files = self.base.manifest.files.iter();
        files.map(|f| (f.name.as_str(), f.bytes))
    }

    /// Bytes of the files on disk, in all.
    pub fn bytes(&self) -> u64 {
        self.base.manifest.files.iter().map(|f| f.bytes).sum()
    }

    /// Reads every file and the change log and verifies all checksums. Returns the first error.
    pub fn check(&self) -> Result<()> {
        let manifest = &self.base.manifest;
        let files = manifest.files.iter().chain(&manifest.sums);
        for promised in files {
            file::check(&self.base.data, promised)?;
        }
        let log = self.base.data.join(LOG);
        log::read(&log, self.checksum(), Position::default(), |_| Ok(()))?;
        Ok(())
    }

    /// When its files are verified against their checksums.
    pub fn verification(&self) -> Verification {
        self.base.verification
    }

    /// Number of triples with this relation.
    pub fn relation_count(&self, relation: RelationId) -> Result<usize> {
        let in_files = match relation.index() {
            i if i < self.base.relations() => self.base.shape.places(relation)?.len(),
            i if i < self.changes.relation_bound() => 0,
            _ => return Err(self.changes.no_relation(relation)),
        };
        Ok(match self.changes.relation_patch(relation) {
            Some(patch) => (in_files + patch.added.len()).saturating_sub(patch.removed.len()),
            None => in_files,
        })
    }

    /// Triples with this relation, in order of (head, tail).
    pub fn triples_by_relation(
        &self,
        relation: RelationId,
    ) -> Result<impl Iterator<Item = Result<Triple>> + '_> {
        let of_files = match relation.index() {
            i if i < self.base.relations() => Some(self.base.shape.by_relation(relation)?),
            i if i < self.changes.relation_bound() => None,
            _ => return Err(self.changes.no_relation(relation)),
        };
        let patch = self.changes.relation_patch(relation);
        let kept = of_files.into_iter().flatten().filter(move |triple| {
            patch.is_none_or(|patch| match triple {
                Ok(t) => !patch.removed.contains(&(t.head, t.tail)),
                Err(_) => true,
            })
        });
        let mut kept = kept.peekable();
        let added = patch.into_iter().flat_map(|patch| &patch.added);
        let mut added = added
            .map(move |&(head, tail)| Triple {
                head,
                relation,
                tail,
            })
            .peekable();
        Ok(std::iter::from_fn(move || {
            match (kept.peek(), added.peek()) {
                (Some(Ok(old)), Some(new)) if new < old => added.next().map(Ok),
                (None, _) => added.next().map(Ok),
                _ => kept.next(),
            }
        }))
    }

    /// Triples with this head and relation, sorted by tail.
    pub fn outgoing_by(&self, entity: EntityId, relation: RelationId) -> Result<&[Edge]> {
        Ok(of_relation(self.outgoing_row(entity)?, relation))
    }

    /// Triples with this tail and relation, sorted by head.
    pub fn incoming_by(&self, entity: EntityId, relation: RelationId) -> Result<&[Edge]> {
        Ok(of_relation(self.incoming_row(entity)?, relation))
    }

    pub(crate) fn outgoing_row(&self, entity: EntityId) -> Result<&[Edge]> {
        self.changes.outgoing(&self.base, entity)
    }

    pub(crate) fn incoming_row(&self, entity: EntityId) -> Result<&[Edge]> {
        self.changes.incoming(&self.base, entity)
    }

    /// Number of outgoing or incoming edges, without reading them.
    pub(crate) fn row_length(&self, entity: EntityId, outgoing: bool) -> Result<usize> {
        self.changes.row_length(&self.base, outgoing, entity)
    }

    /// Whether any entity or relation is a name that is no IRI.
    pub(crate) fn has_names(&self) -> bool {
        self.changes.has_names()
    }

    /// The position of a triple in the files; `None` if it is not in them.
    pub fn triple_number(&self, triple: Triple) -> Result<Option<u32>> {
        let shape = &self.base.shape;
        if triple.head.index() >= shape.entities.len() {
            return Ok(None);
        }
        let edge = Edge {
            relation: triple.relation,
            entity: triple.tail,
        };
        let from = shape.outgoing.range(triple.head)?.start;
        let place = shape.outgoing.row(triple.head)?.binary_search(&edge);
        Ok(place.ok().map(|place| (from + place) as u32))
    }

    /// Every triple, sorted.
    pub fn triples(&self) -> impl Iterator<Item = Result<Triple>> + '_ {
        (0..self.changes.entity_bound() as u32).flat_map(move |id| {
            let head = EntityId(id);
            let (row, error) = match self.outgoing_row(head) {
                Ok(row) => (row, None),
                Err(e) => (&[][..], Some(Err(e))),
            };
            row.iter()
                .map(move |e| {
                    Ok(Triple {
                        head,
                        relation: e.relation,
                        tail: e.entity,
                    })
                })
                .chain(error)
        })
    }

    /// The entity with this identity.
    pub fn find_term(&self, term: &Term) -> Result<Option<EntityId>> {
        self.changes.find(&self.base, &key::encode(term))
    }

    /// The relation with this identity.
    pub fn find_relation_term(&self, term: &Term) -> Result<Option<RelationId>> {
        self.changes.find_relation(&self.base, &key::encode(term))
    }

    /// The entity with the same identity as the relation, if the graph has triples about it.
    pub fn relation_entity(&self, relation: RelationId) -> Result<Option<EntityId>> {
        self.changes.twin(&self.base, relation)
    }

    /// Whether the entity is a literal.
    pub fn is_literal(&self, entity: EntityId) -> bool {
        self.changes.is_literal(&self.base, entity)
    }

    /// Whether the entity is a blank node.
    pub fn is_blank(&self, entity: EntityId) -> bool {
        self.changes.is_blank(&self.base, entity)
    }

    /// Relations that give labels, best first.
    pub fn label_relations(&self) -> &[RelationId] {
        &self.changes.naming.labels
    }

    /// The label given by the graph, if there is one.
    fn label_entity(&self, entity: EntityId) -> Result<Option<EntityId>> {
        self.changes.label(&self.base, entity)
    }

    fn key(&self, entity: EntityId) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.changes.key(&self.base, entity, &mut bytes)?;
        Ok(bytes)
    }

    fn relation_key(&self, relation: RelationId) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.changes
            .relation_key(&self.base, relation, &mut bytes)?;
        Ok(bytes)
    }

    /// The entities that an indexed name stands for: those that it names, and itself unless it is
    /// only a name.
    fn named_by(&self, filed: EntityId, found: &mut Vec<EntityId>) -> Result<()> {
        let incoming = self.incoming_row(filed)?;
        let naming = self.naming_relations();
        let mut names = 0;
        for edge in incoming {
            if naming.binary_search(&edge.relation).is_ok() {
                found.push(edge.entity);
                names += 1;
            }
        }
        // a name that is nothing else is no entity of its own
        if names == 0 || names < incoming.len() || !self.outgoing_row(filed)?.is_empty() {
            found.push(filed);
        }
        Ok(())
    }
}

/// The error for a graph that is replaced again and again while it is opened.
fn replaced(path: &Path) -> Error {
    Error::io("open", path)(std::io::Error::other("it is replaced again and again"))
}

/// The edges of one relation in a sorted row, by binary search: a hub may have millions of edges.
fn of_relation(row: &[Edge], relation: RelationId) -> &[Edge] {
    let from = row.partition_point(|edge| edge.relation < relation);
    let length = row[from..].partition_point(|edge| edge.relation == relation);
    &row[from..from + length]
}

impl Adjacency for Store {
    fn entity_bound(&self) -> usize {
        self.changes.entity_bound()
    }

    fn relation_bound(&self) -> usize {
        self.changes.relation_bound()
    }

    fn outgoing(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        self.outgoing_row(entity).map(Cow::Borrowed)
    }

    fn incoming(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        self.incoming_row(entity).map(Cow::Borrowed)
    }

    fn degree(&self, entity: EntityId) -> Result<usize> {
        self.changes.degree(&self.base, entity)
    }

    fn contains(&self, triple: Triple) -> Result<bool> {
        self.changes.contains(&self.base, triple)
    }

    /// Of a hub's row, only what is looked at is read.
    fn run(
        &self,
        entity: EntityId,
        relation: RelationId,
        outgoing: bool,
    ) -> Result<Cow<'_, [Edge]>> {
        self.changes.run(&self.base, entity, relation, outgoing)
    }
}

impl Graph for Store {
    fn entity_label(&self, entity: EntityId) -> Result<Cow<'_, str>> {
        let damaged = || self.base.shape.damaged_text();
        let label = self.label_entity(entity)?;
        let bytes = self.key(label.unwrap_or(entity))?;
        let text = match label {
            // a label is shown as it was given
            Some(_) => key::text(&bytes).map(str::to_owned),
            None => readable_key(&bytes),
        };
        text.map(Cow::Owned).ok_or_else(damaged)
    }

    fn relation_label(&self, relation: RelationId) -> Result<Cow<'_, str>> {
        if let Some(entity) = self.relation_entity(relation)?
            && self.label_entity(entity)?.is_some()
        {
            return self.entity_label(entity);
        }
        readable_key(&self.relation_key(relation)?)
            .map(Cow::Owned)
            .ok_or_else(|| self.base.shape.damaged_text())
    }

    fn entity_term(&self, entity: EntityId) -> Result<Term> {
        key::decode(&self.key(entity)?).ok_or_else(|| self.base.shape.damaged_text())
    }

    fn relation_term(&self, relation: RelationId) -> Result<Term> {
        key::decode(&self.relation_key(relation)?).ok_or_else(|| self.base.shape.damaged_text())
    }

    fn is_named(&self, entity: EntityId) -> Result<bool> {
        Ok(self.label_entity(entity)?.is_some() || !is_unnamed_key(&self.key(entity)?))
    }

    fn entities_named(&self, name: &str, matching: NameMatch) -> Result<Vec<EntityId>> {
        let mut found = Vec::new();
        let wanted = normalise(name);
        // names are filed under their normal form; only ids and IRIs are not, and they are never
        // in normal form themselves
        if matching == NameMatch::Exact || wanted != name {
            let mut terms = vec![Term::Name(name.to_owned()), Term::Iri(name.to_owned())];
            let blank = name.strip_prefix("_:");
            terms.extend(blank.map(|label| Term::Blank(label.to_owned())));
            for term in terms {
                if let Some(entity) = self.find_term(&term)?
                    && self.degree(entity)? > 0
                {
                    found.push(entity);
                }
            }
        }
        let naming = &self.changes.naming;
        let in_files = self.base.filed_under(&wanted)?.into_iter();
        let in_files = in_files.filter(|e| !naming.hidden.contains(e));
        let new = naming.filed.get(&wanted).into_iter().flatten().copied();
        for filed in in_files.chain(new) {
            let own = self.changes.own_name(&self.base, filed)?;
            let same = match matching {
                NameMatch::Exact => own == name,
                NameMatch::Normalised => normalise(&own) == wanted,
            };
            if same {
                self.named_by(filed, &mut found)?;
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn entities_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<EntityId>> {
        let wanted = normalise(prefix);
        let order = &self.base.name_order;
        let filed = |place: usize| Ok::<_, Error>(order.at(place)?.map(EntityId));
        let (mut low, mut high) = (0, order.len());
        while low < high {
            let middle = (low + high) / 2;
            let below = match filed(middle)? {
                Some(entity) => self.base.filed_name(entity)? < wanted,
                None => false,
            };
            if below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let naming = &self.changes.naming;
        let mut next_filed = move || loop {
            let found = filed(low)?;
            low += 1;
            match found {
                Some(entity) if naming.hidden.contains(&entity) => {}
                found => return Ok::<_, Error>(found),
            }
        };
        let new = naming.filed.range(wanted.clone()..);
        let mut new = new.flat_map(|(name, filed)| filed.iter().map(move |&e| (name.as_str(), e)));
        let next = |found: Option<EntityId>| match found {
            Some(entity) => self
                .base
                .filed_name(entity)
                .map(|name| Some((name, entity))),
            None => Ok(None),
        };
        let mut old_next = next(next_filed()?)?;
        let mut new_next = new.next();
        let mut found: Vec<EntityId> = Vec::new();
        while found.len() < limit {
            let take_new = match (&old_next, new_next) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some((old, _)), Some((new, _))) => new < old.as_str(),
            };
            let filed = match (take_new, &old_next, new_next) {
                (true, _, Some((name, entity))) if name.starts_with(&wanted) => {
                    new_next = new.next();
                    entity
                }
                (false, Some((name, entity)), _) if name.starts_with(&wanted) => {
                    let entity = *entity;
                    old_next = next(next_filed()?)?;
                    entity
                }
                _ => break,
            };
            let from = found.len();
            self.named_by(filed, &mut found)?;
            // two names of one entity can both begin so
            let fresh: Vec<_> = found.drain(from..).collect();
            for entity in fresh {
                if !found.contains(&entity) {
                    found.push(entity);
                }
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    fn relation_named(&self, name: &str) -> Result<Option<RelationId>> {
        for term in [Term::Name(name.to_owned()), Term::Iri(name.to_owned())] {
            if let Some(found) = self.find_relation_term(&term)? {
                return Ok(Some(found));
            }
        }
        let mut labelled = None;
        for id in 0..self.relation_bound() as u32 {
            if self.relation_label(RelationId(id))? == name {
                if labelled.is_some() {
                    return Ok(None);
                }
                labelled = Some(RelationId(id));
            }
        }
        Ok(labelled)
    }

    fn with_relation(
        &self,
        relation: RelationId,
    ) -> Result<Box<dyn Iterator<Item = Result<Triple>> + '_>> {
        Ok(Box::new(self.triples_by_relation(relation)?))
    }

    fn identity(&self) -> Option<&str> {
        Some(&self.changes.identity)
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.base.path)
    }

    fn naming_relations(&self) -> &[RelationId] {
        &self.changes.naming.relations
    }

    fn store(&self) -> Option<&Store> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::{Expansion, expand};
    use crate::graph::Direction;
    use crate::load::{Input, LoadOptions, load};
    use crate::manifest::Manifest;
    use crate::paths::{PathLimits, shortest_paths};
    use crate::sparql::{SparqlOptions, query};

    /// Reads all there is, in every way there is; damage may be an error at any point.
    fn read_everything(store: &Store) -> Result<()> {
        let mut failed = Ok(());
        let mut note = |done: Result<()>| failed = std::mem::replace(&mut failed, Ok(())).and(done);
        let all: Vec<EntityId> = (0..store.entity_bound() as u32).map(EntityId).collect();
        for &entity in &all {
            note(store.entity_label(entity).map(|_| ()));
            note(store.is_named(entity).map(|_| ()));
            note(store.triples_of(entity).map(|_| ()));
            note(expand(store, &[entity], &Expansion::default()).map(|_| ()));
        }
        for relation in (0..store.relation_bound() as u32).map(RelationId) {
            note(store.relation_label(relation).map(|_| ()));
            note(
                store
                    .triples_by_relation(relation)
                    .and_then(|mut t| t.try_for_each(|t| t.map(|_| ()))),
            );
        }
        for name in ["entity 1", "e", "entity_3"] {
            note(
                store
                    .entities_named(name, NameMatch::Normalised)
                    .map(|_| ()),
            );
            note(store.entities_with_prefix(name, 20).map(|_| ()));
        }
        let ends = [all[0], all[all.len() - 1]];
        let limits = PathLimits::default();
        note(shortest_paths(store, &ends[..1], &ends[1..], Direction::Both, &limits).map(|_| ()));
        let text = "SELECT * WHERE { ?s ?p ?o . ?o ?q ?x }";
        note(query(store, text, &SparqlOptions::default(), |answer| {
            answer
                .write(crate::sparql::ResultFormat::Csv, &mut std::io::sink())
                .map(|_| ())
        }));
        failed
    }

    fn loaded(dir: &Path, rows: usize) -> std::path::PathBuf {
        let file = dir.join("g.tsv");
        let rows: String = (0..rows)
            .map(|i| {
                let (head, tail) = (i * 7919 % (rows / 8 + 7), i * 104_729 % (rows / 5 + 11));
                format!("entity_{head}\tr{}\tentity_{tail}\n", i % 3)
            })
            .collect();
        std::fs::write(&file, rows).unwrap();
        let graph = dir.join("graph");
        let options = LoadOptions::default();
        load(&[Input::File(file)], &graph, &options, &|_| {}).unwrap();
        graph
    }

    #[test]
    fn damage_that_was_not_verified_is_an_error_and_never_a_panic() {
        let dir = tempfile::tempdir().unwrap();
        let graph = loaded(dir.path(), 60);
        read_everything(&Store::open(&graph).unwrap()).unwrap();
        // as an older version wrote it
        let mut manifest = Manifest::read(&graph).unwrap();
        manifest.sums = None;
        manifest.publish(&graph).unwrap();
        let data = manifest.data(&graph);
        std::fs::remove_file(data.join(crate::sums::SUMS)).unwrap();
        let store = Store::open_with(&graph, 0).unwrap();
        assert_eq!(store.verification(), Verification::OnlyWhenAsked);
        store.check().unwrap();
        let mut found = 0;
        for entry in std::fs::read_dir(data).unwrap() {
            let path = entry.unwrap().path();
            let whole = std::fs::read(&path).unwrap();
            for (i, bit) in (0..whole.len()).step_by(7).zip((0..8).cycle()) {
                let mut damaged = whole.clone();
                damaged[i] ^= 1 << bit;
                std::fs::write(&path, &damaged).unwrap();
                let read = Store::open_with(&graph, 0).and_then(|store| read_everything(&store));
                found += usize::from(read.is_err());
            }
            std::fs::write(&path, &whole).unwrap();
        }
        assert!(found > 20, "only {found} damaged files were noticed");
    }

    /// Answers of many kinds about a few things, or what stands against each.
    fn answers(store: &Store) -> Vec<Result<String>> {
        let mut found = Vec::new();
        let bound = store.entity_bound() as u32;
        for entity in (0..bound).step_by(bound as usize / 9).map(EntityId) {
            found.push(store.entity_label(entity).map(Cow::into_owned));
            found.push(store.entity_term(entity).map(|term| term.to_string()));
            found.push(store.is_named(entity).map(|named| named.to_string()));
            found.push(store.outgoing(entity).map(|row| format!("{row:?}")));
            found.push(store.incoming(entity).map(|row| format!("{row:?}")));
            found.push(store.degree(entity).map(|degree| degree.to_string()));
        }
        for relation in (0..store.relation_bound() as u32).map(RelationId) {
            found.push(store.relation_label(relation).map(Cow::into_owned));
            found.push(
                store
                    .relation_count(relation)
                    .map(|count| count.to_string()),
            );
            let first = store
                .triples_by_relation(relation)
                .and_then(|triples| triples.take(200).collect::<Result<Vec<_>>>());
            found.push(first.map(|triples| format!("{triples:?}")));
        }
        for name in ["entity 1", "entity_33", "ENTITY 5", "nothing"] {
            for matching in [NameMatch::Exact, NameMatch::Normalised] {
                let named = store.entities_named(name, matching);
                found.push(named.map(|named| format!("{named:?}")));
            }
            let begun = store.entities_with_prefix(name, 5);
            found.push(begun.map(|begun| format!("{begun:?}")));
        }
        let text = "SELECT ?x ?y WHERE { <name:entity_3> <name:r1> ?x . ?x ?p ?y }";
        let mut out = Vec::new();
        let options = SparqlOptions::default();
        let csv = crate::sparql::ResultFormat::Csv;
        let rows = crate::sparql::write(store, text, &options, csv, &mut out);
        found.push(rows.map(|_| String::from_utf8(out).unwrap()));
        found
    }

    #[test]
    fn no_answer_comes_from_a_damaged_block() {
        let dir = tempfile::tempdir().unwrap();
        let graph = loaded(dir.path(), 12_000);
        let store = Store::open_with(&graph, 0).unwrap();
        assert_eq!(store.verification(), Verification::EachBlock);
        let right: Vec<String> = answers(&store).into_iter().map(Result::unwrap).collect();
        let small = Store::open(&graph).unwrap();
        assert_eq!(small.verification(), Verification::WhenOpened);
        assert!(
            answers(&small)
                .into_iter()
                .map(Result::unwrap)
                .eq(right.clone())
        );
        let data = Manifest::read(&graph).unwrap().data(&graph);
        let mut files: Vec<_> = std::fs::read_dir(&data)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.push(graph.join(MANIFEST));
        files.sort();
        assert!(
            files
                .iter()
                .any(|file| file.metadata().unwrap().len() > 50_000)
        );
        let (mut refused, mut partly, mut untouched) = (0, 0, 0);
        let mut state = 11u64;
        for flip in 0..240 {
            state = (state.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(99);
            let file = &files[flip % files.len()];
            let whole = std::fs::read(file).unwrap();
            if whole.is_empty() {
                continue;
            }
            let mut damaged = whole.clone();
            let place = (state >> 33) as usize % whole.len();
            damaged[place] ^= 1 << (state >> 30 & 7);
            std::fs::write(file, &damaged).unwrap();
            match Store::open_with(&graph, 0) {
                Err(error) => {
                    assert!(error.is_damage(), "{file:?}: {error}");
                    refused += 1;
                }
                Ok(store) => {
                    let given = answers(&store);
                    assert_eq!(given.len(), right.len());
                    let mut failed = 0;
                    for (given, right) in given.iter().zip(&right) {
                        match given {
                            Ok(given) => assert_eq!(given, right, "byte {place} of {file:?}"),
                            Err(_) => failed += 1,
                        }
                    }
                    partly += usize::from(failed > 0);
                    untouched += usize::from(failed == 0);
                    let found = store.check().is_err();
                    assert_eq!(found, file.file_name().unwrap() != MANIFEST);
                }
            }
            std::fs::write(file, &whole).unwrap();
        }
        assert!(
            refused > 20 && partly > 50 && untouched > 0,
            "{refused} {partly} {untouched}"
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_is_cut_below_an_open_store_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let graph = loaded(dir.path(), 12_000);
        let data = Manifest::read(&graph).unwrap().data(&graph);
        for (name, verified) in [("outgoing.edges", 0), ("names.order", u64::MAX)] {
            let store = Store::open_with(&graph, verified).unwrap();
            assert!(store.refreshed().unwrap().is_none());
            let path = data.join(name);
            let whole = std::fs::read(&path).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(whole.len() as u64 / 2).unwrap();
            let error = store.refreshed().unwrap_err();
            assert!(
                error.is_damage() && error.to_string().contains("cut from"),
                "{error}"
            );
            if verified == 0 {
                // a block that was never read is not read beyond the end either
                let last = EntityId(store.entity_bound() as u32 - 1);
                assert!(store.triples().any(|triple| triple.is_err()));
                let _ = store.outgoing(last);
            }
            std::fs::write(&path, &whole).unwrap();
        }
    }
}
