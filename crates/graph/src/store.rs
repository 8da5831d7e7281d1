//! The graph folder, opened: adjacency both ways, names, and statistics, all through memory maps.
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
//! ```
//!
//! That is 20 bytes for each triple and 8 for each entity beside the dictionary. Opening maps the
//! files and reads the manifest. Graphs of up to 8 MiB have all checksums verified at once;
//! larger ones when asked ([`Store::check`]), and until then every number read from them is
//! checked where it is used.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::graph::{Adjacency, Edge, EntityId, Graph, NameMatch, RelationId, Term, Triple};
use crate::key;
use crate::load::file;
use crate::manifest::{Counts, Manifest};
use crate::mapped::Mapped;
use crate::names::normalise;
use crate::shape::{Shape, is_unnamed_key, readable_key};

/// Graphs up to this size are verified whole when they are opened.
const VERIFIED_WHEN_OPENED: u64 = 8 << 20;

const NONE: u32 = u32::MAX;

/// A graph folder, opened for reading.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    manifest: Manifest,
    shape: Shape,
    labels: Mapped<u32>,
    name_hashes: Mapped<[u32; 2]>,
    name_order: Mapped<u32>,
    label_relations: Vec<RelationId>,
    /// Label and alias relations, sorted.
    naming_relations: Vec<RelationId>,
}

/// The hash under which a normalised name is filed.
pub(crate) fn name_hash(normalised: &str) -> u32 {
    (xxh3_64(normalised.as_bytes()) >> 32) as u32
}

/// The first place whose hash is not below `hash`.
///
/// Hashes are spread evenly, so a hash tells its place to within a few thousand: one page is
/// touched where halving the whole would touch twenty.
fn first_not_below(hashes: &[[u32; 2]], hash: u32) -> usize {
    let below = |i: usize| hashes[i][0] < hash;
    let guess = ((u64::from(hash) * hashes.len() as u64) >> 32) as usize;
    let (mut low, mut high, mut step) = (guess, guess, 512);
    while low > 0 && !below(low - 1) {
        high = low;
        low = low.saturating_sub(step);
        step *= 2;
    }
    while high < hashes.len() && below(high) {
        low = high;
        high = (high + step).min(hashes.len());
        step *= 2;
    }
    low + hashes[low..high].partition_point(|[h, _]| *h < hash)
}

impl Store {
    /// Opens a graph folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // a graph that is replaced between reading its manifest and opening its files: once more
        match Self::open_once(path, VERIFIED_WHEN_OPENED) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Self::open_once(path, VERIFIED_WHEN_OPENED)
            }
            result => result,
        }
    }

    fn open_once(path: &Path, verified: u64) -> Result<Self> {
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
        if small {
            for promised in &manifest.files {
                file::check(&data, promised)?;
            }
        }
        let shape = Shape::open(&data, &manifest.counts, manifest.kinds)?;
        let labels = Mapped::<u32>::open(&data.join("labels"))?;
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
            labels,
            name_hashes: Mapped::open(&data.join("names.hashes"))?,
            name_order: Mapped::open(&data.join("names.order"))?,
            label_relations,
            naming_relations,
            shape,
            manifest,
        })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds.
    pub fn counts(&self) -> &Counts {
        &self.manifest.counts
    }

    /// The identity of the graph: equal for equal triples and names, whatever their order was.
    pub fn checksum(&self) -> &str {
        &self.manifest.checksum
    }

    /// Version of the program that wrote it.
    pub fn written_by(&self) -> &str {
        &self.manifest.written_by
    }

    /// The files with their sizes in bytes.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.manifest
            .files
            .iter()
            .map(|f| (f.name.as_str(), f.bytes))
    }

    /// Bytes on disk, in all.
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|f| f.bytes).sum()
    }

    /// Reads every file and verifies its checksum; the first damaged one is the error.
    pub fn check(&self) -> Result<()> {
        let data = self.manifest.data(&self.path);
        self.manifest
            .files
            .iter()
            .try_for_each(|promised| file::check(&data, promised))
    }

    /// Number of triples with this relation.
    pub fn relation_count(&self, relation: RelationId) -> Result<usize> {
        self.shape.places(relation).map(<[u32]>::len)
    }

    /// Triples with this relation, in order of (head, tail).
    pub fn triples_by_relation(
        &self,
        relation: RelationId,
    ) -> Result<impl Iterator<Item = Result<Triple>> + '_> {
        self.shape.by_relation(relation)
    }

    /// Triples with this head and relation, sorted by tail.
    pub fn outgoing_by(&self, entity: EntityId, relation: RelationId) -> Result<&[Edge]> {
        self.shape.outgoing.row_by(entity, relation)
    }

    /// Triples with this tail and relation, sorted by head.
    pub fn incoming_by(&self, entity: EntityId, relation: RelationId) -> Result<&[Edge]> {
        self.shape.incoming.row_by(entity, relation)
    }

    pub(crate) fn outgoing_row(&self, entity: EntityId) -> Result<&[Edge]> {
        self.shape.outgoing.row(entity)
    }

    pub(crate) fn incoming_row(&self, entity: EntityId) -> Result<&[Edge]> {
        self.shape.incoming.row(entity)
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

    /// The place of a triple among [`Store::triples`]; none if the graph does not state it.
    pub fn triple_number(&self, triple: Triple) -> Result<Option<u32>> {
        if triple.head.index() >= self.shape.entities.len() {
            return Ok(None);
        }
        let edge = Edge {
            relation: triple.relation,
            entity: triple.tail,
        };
        let from = self.shape.outgoing.range(triple.head)?.start;
        let place = self.shape.outgoing.row(triple.head)?.binary_search(&edge);
        Ok(place.ok().map(|place| (from + place) as u32))
    }

    /// Every triple, sorted.
    pub fn triples(&self) -> impl Iterator<Item = Result<Triple>> + '_ {
        (0..self.shape.entities.len() as u32).flat_map(move |id| {
            let head = EntityId(id);
            let (row, error) = match self.shape.outgoing(head) {
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
        Ok(self
            .shape
            .entities
            .find(&key::encode(term))?
            .map(|id| EntityId(id as u32)))
    }

    /// The relation with this identity.
    pub fn find_relation_term(&self, term: &Term) -> Result<Option<RelationId>> {
        Ok(self
            .shape
            .relations
            .find(&key::encode(term))?
            .map(|id| RelationId(id as u32)))
    }

    /// The entity with the same identity as the relation, where the graph speaks about it.
    pub fn relation_entity(&self, relation: RelationId) -> Result<Option<EntityId>> {
        match self.shape.relation_entities.get(relation.index()) {
            Some(&NONE) => Ok(None),
            Some(&id) if (id as usize) < self.shape.entities.len() => Ok(Some(EntityId(id))),
            _ => Err(Error::NoSuchRelation {
                id: relation.0,
                bound: self.shape.relations.len(),
            }),
        }
    }

    /// Whether the entity is a literal.
    pub fn is_literal(&self, entity: EntityId) -> bool {
        self.shape.is_literal(entity)
    }

    /// Whether the entity is a blank node.
    pub fn is_blank(&self, entity: EntityId) -> bool {
        self.shape.is_blank(entity)
    }

    /// Relations that give labels, best first.
    pub fn label_relations(&self) -> &[RelationId] {
        &self.label_relations
    }

    /// The label given by the graph, if there is one.
    fn label_entity(&self, entity: EntityId) -> Option<EntityId> {
        self.labels
            .get(entity.index())
            .filter(|&&id| id != NONE)
            .map(|&id| EntityId(id))
    }

    /// The entities that a filed name stands for: those it names, and itself unless it is only a
    /// name.
    fn named_by(&self, filed: EntityId, found: &mut Vec<EntityId>) -> Result<()> {
        let incoming = self.shape.incoming(filed)?;
        let mut names = 0;
        for edge in incoming {
            if self.naming_relations.binary_search(&edge.relation).is_ok() {
                found.push(edge.entity);
                names += 1;
            }
        }
        // a name that is nothing else is no entity of its own
        if names == 0 || names < incoming.len() || !self.shape.outgoing(filed)?.is_empty() {
            found.push(filed);
        }
        Ok(())
    }

    fn normalised_name(&self, filed: EntityId) -> Result<String> {
        self.shape.own_name(filed).map(|name| normalise(&name))
    }
}

impl Adjacency for Store {
    fn entity_bound(&self) -> usize {
        self.shape.entities.len()
    }

    fn relation_bound(&self) -> usize {
        self.shape.relations.len()
    }

    fn outgoing(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        self.shape.outgoing(entity).map(Cow::Borrowed)
    }

    fn incoming(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>> {
        self.shape.incoming(entity).map(Cow::Borrowed)
    }

    fn degree(&self, entity: EntityId) -> Result<usize> {
        Ok(self.shape.outgoing.range(entity)?.len() + self.shape.incoming.range(entity)?.len())
    }

    fn contains(&self, triple: Triple) -> Result<bool> {
        if triple.head.index() >= self.shape.entities.len() {
            return Ok(false);
        }
        let edge = Edge {
            relation: triple.relation,
            entity: triple.tail,
        };
        self.shape.outgoing.contains(triple.head, edge)
    }
}

impl Graph for Store {
    fn entity_label(&self, entity: EntityId) -> Result<Cow<'_, str>> {
        match self.label_entity(entity) {
            // a label is shown as it was given
            Some(label) => {
                let mut bytes = Vec::new();
                self.shape.key(label, &mut bytes)?;
                let text = key::text(&bytes).ok_or_else(|| self.shape.damaged_text())?;
                Ok(Cow::Owned(text.to_owned()))
            }
            None => self.shape.own_name(entity).map(Cow::Owned),
        }
    }

    fn relation_label(&self, relation: RelationId) -> Result<Cow<'_, str>> {
        if let Some(entity) = self.relation_entity(relation)?
            && self.label_entity(entity).is_some()
        {
            return self.entity_label(entity);
        }
        let mut bytes = Vec::new();
        self.shape.relation_key(relation, &mut bytes)?;
        readable_key(&bytes)
            .map(Cow::Owned)
            .ok_or_else(|| self.shape.damaged_text())
    }

    fn entity_term(&self, entity: EntityId) -> Result<Term> {
        let mut bytes = Vec::new();
        self.shape.key(entity, &mut bytes)?;
        key::decode(&bytes).ok_or_else(|| self.shape.damaged_text())
    }

    fn relation_term(&self, relation: RelationId) -> Result<Term> {
        let mut bytes = Vec::new();
        self.shape.relation_key(relation, &mut bytes)?;
        key::decode(&bytes).ok_or_else(|| self.shape.damaged_text())
    }

    fn is_named(&self, entity: EntityId) -> Result<bool> {
        if self.label_entity(entity).is_some() {
            return Ok(true);
        }
        let mut bytes = Vec::new();
        self.shape.key(entity, &mut bytes)?;
        Ok(!is_unnamed_key(&bytes))
    }

    fn entities_named(&self, name: &str, how: NameMatch) -> Result<Vec<EntityId>> {
        let mut found = Vec::new();
        let wanted = normalise(name);
        // names are filed under their normal form; only ids and IRIs are not, and they are never
        // in normal form themselves
        if how == NameMatch::Exact || wanted != name {
            for term in [Term::Name(name.to_owned()), Term::Iri(name.to_owned())] {
                found.extend(self.find_term(&term)?);
            }
            if let Some(label) = name.strip_prefix("_:") {
                found.extend(self.find_term(&Term::Blank(label.to_owned()))?);
            }
        }
        let hash = name_hash(&wanted);
        let from = first_not_below(&self.name_hashes, hash);
        for &[_, id] in self.name_hashes[from..]
            .iter()
            .take_while(|[h, _]| *h == hash)
        {
            let filed = EntityId(id);
            let own = self.shape.own_name(filed)?;
            let same = match how {
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
        let order: &[u32] = &self.name_order;
        let (mut low, mut high) = (0, order.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.normalised_name(EntityId(order[middle]))? < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut found: Vec<EntityId> = Vec::new();
        for &id in &order[low..] {
            if found.len() >= limit || !self.normalised_name(EntityId(id))?.starts_with(&wanted) {
                break;
            }
            let from = found.len();
            self.named_by(EntityId(id), &mut found)?;
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
        for id in 0..self.shape.relations.len() as u32 {
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
        Some(self.checksum())
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn naming_relations(&self) -> &[RelationId] {
        &self.naming_relations
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expand::{Expansion, expand};
    use crate::graph::Direction;
    use crate::load::{Input, LoadOptions, load};
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

    #[test]
    fn damage_that_was_not_verified_is_an_error_and_never_a_panic() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("g.tsv");
        let rows: String = (0..60)
            .map(|i| format!("entity_{}\tr{}\tentity_{}\n", i % 7, i % 3, (i * 5) % 11))
            .collect();
        std::fs::write(&file, rows).unwrap();
        let graph = dir.path().join("graph");
        load(
            &[Input::File(file)],
            &graph,
            &LoadOptions::default(),
            &|_| {},
        )
        .unwrap();
        read_everything(&Store::open(&graph).unwrap()).unwrap();
        let data = Manifest::read(&graph).unwrap().data(&graph);
        let mut found = 0;
        for entry in std::fs::read_dir(data).unwrap() {
            let path = entry.unwrap().path();
            let whole = std::fs::read(&path).unwrap();
            for (i, bit) in (0..whole.len()).step_by(7).zip((0..8).cycle()) {
                let mut damaged = whole.clone();
                damaged[i] ^= 1 << bit;
                std::fs::write(&path, &damaged).unwrap();
                let read = Store::open_once(&graph, 0).and_then(|store| read_everything(&store));
                found += usize::from(read.is_err());
            }
            std::fs::write(&path, &whole).unwrap();
        }
        assert!(found > 20, "only {found} damaged files were noticed");
    }

    proptest! {
        #[test]
        fn guessing_a_place_agrees_with_halving(
            mut hashes in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..50], 0..3000),
            probe in prop_oneof![any::<u32>(), 0u32..60, Just(u32::MAX)],
        ) {
            hashes.sort_unstable();
            let pairs: Vec<[u32; 2]> = hashes.into_iter().map(|h| [h, 0]).collect();
            prop_assert_eq!(
                first_not_below(&pairs, probe),
                pairs.partition_point(|[h, _]| *h < probe)
            );
        }
    }
}
