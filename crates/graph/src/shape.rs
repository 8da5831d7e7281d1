//! Triples and dictionaries of a graph folder, without names. Loading uses it to choose labels, and
//! the store is built on it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::graph::{Edge, EntityId, RelationId, Triple, edges_by_relation};
use crate::key;
use crate::manifest::Counts;
use crate::names::{is_machine_id, local_part, readable};
use crate::sums::Sums;
use crate::verified::Verified;

/// Triples and dictionaries: all but names.
#[derive(Debug)]
pub(crate) struct Shape {
    folder: PathBuf,
    pub(crate) entities: Dictionary,
    pub(crate) relations: Dictionary,
    pub(crate) outgoing: StoredRows,
    pub(crate) incoming: StoredRows,
    relation_starts: Verified<u32>,
    relation_places: Verified<u32>,
    pub(crate) relation_entities: Verified<u32>,
    pub(crate) kinds: [u32; 5],
}

/// Edges of a row that is looked at in parts: more than two blocks of a file.
const LONG_ROW: usize = 4096;

/// Edges of every entity in one direction.
#[derive(Debug)]
pub(crate) struct StoredRows {
    path: PathBuf,
    offsets: Verified<u32>,
    edges: Verified<Edge>,
    bounds: (usize, usize),
}

impl StoredRows {
    fn open(
        folder: &Path,
        name: &str,
        bounds: (usize, usize),
        sums: Option<&Sums>,
    ) -> Result<Self> {
        let path = folder.join(format!("{name}.edges"));
        let edges: Verified<Edge> = open(folder, &format!("{name}.edges"), sums)?;
        let offsets: Verified<u32> = open(folder, &format!("{name}.offsets"), sums)?;
        if offsets.len() != bounds.0 + 1 || offsets.last()? != Some(edges.len() as u32) {
            return Err(Error::Damaged {
                path,
                reason: "it does not hold what its offsets say".into(),
            });
        }
        Ok(Self {
            path,
            offsets,
            edges,
            bounds,
        })
    }

    pub(crate) fn range(&self, entity: EntityId) -> Result<Range<usize>> {
        let i = entity.index();
        match self.offsets.slice(i..i + 2)? {
            Some(&[from, to]) => Ok(from as usize..to as usize),
            _ => Err(Error::NoSuchEntity {
                id: entity.0,
                bound: self.bounds.0,
            }),
        }
    }

    /// The ids in it are not checked, because a hub may have millions of edges. Callers check those
    /// that they use.
    pub(crate) fn row(&self, entity: EntityId) -> Result<&[Edge]> {
        self.edges
            .slice(self.range(entity)?)?
            .ok_or_else(|| self.damaged())
    }

    /// An error if a file is shorter than when it was opened.
    fn is_there(&self) -> Result<()> {
        self.offsets.is_there()?;
        self.edges.is_there()
    }

    /// The edges of one relation, by binary search: a hub may have millions of edges, and of those
    /// only the blocks that are looked at are read and verified.
    pub(crate) fn row_by(&self, entity: EntityId, relation: RelationId) -> Result<&[Edge]> {
        let row = self.range(entity)?;
        if row.len() <= LONG_ROW {
            return Ok(edges_by_relation(self.row(entity)?, relation));
        }
        let from = self.first_edge(row.clone(), |edge| edge.relation >= relation)?;
        // galloping: most runs are short
        let mut end = from + 1;
        while end < row.end
            && (self.edges.at(end - 1)?).is_some_and(|edge| edge.relation == relation)
        {
            end = from + 2 * (end - from);
        }
        let known = from + (end - from) / 2;
        let to = self.first_edge(known..end.min(row.end), |edge| edge.relation > relation)?;
        let found = self.edges.slice(from..to)?;
        found.ok_or_else(|| self.damaged())
    }

    pub(crate) fn contains(&self, entity: EntityId, edge: Edge) -> Result<bool> {
        let row = self.range(entity)?;
        let place = self.first_edge(row.clone(), |other| other >= edge)?;
        Ok(place < row.end && self.edges.at(place)? == Some(edge))
    }

    /// The first place of a sorted range where `reached` is true; its end if there is none.
    fn first_edge(&self, range: Range<usize>, reached: impl Fn(Edge) -> bool) -> Result<usize> {
        let (mut from, mut to) = (range.start, range.end);
        while from < to {
            let middle = from + (to - from) / 2;
            let edge = self.edges.at(middle)?.ok_or_else(|| self.damaged())?;
            match reached(edge) {
                true => to = middle,
                false => from = middle + 1,
            }
        }
        Ok(from)
    }

    fn damaged(&self) -> Error {
        Error::Damaged {
            path: self.path.clone(),
            reason: "it names an id that does not exist".into(),
        }
    }
}

/// Opens a file, with its sums where there are some.
pub(crate) fn open<T: bytemuck::Pod>(
    folder: &Path,
    name: &str,
    sums: Option<&Sums>,
) -> Result<Verified<T>> {
    Verified::open(&folder.join(name), sums.and_then(|sums| sums.of(name)))
}

impl Shape {
    /// Opens the files; with sums, what is read of them is verified.
    pub(crate) fn open(
        folder: &Path,
        counts: &Counts,
        kinds: [u32; 5],
        sums: Option<&Sums>,
    ) -> Result<Self> {
        let damaged = |name: &str| Error::Damaged {
            path: folder.join(name),
            reason: "its length is not what the manifest says".into(),
        };
        let bounds = (counts.entities as usize, counts.relations as usize);
        let shape = Self {
            folder: folder.to_owned(),
            entities: Dictionary::open(folder, "entities", bounds.0, sums)?,
            relations: Dictionary::open(folder, "relations", bounds.1, sums)?,
            outgoing: StoredRows::open(folder, "outgoing", bounds, sums)?,
            incoming: StoredRows::open(folder, "incoming", bounds, sums)?,
            relation_starts: open(folder, "by-relation.offsets", sums)?,
            relation_places: open(folder, "by-relation.places", sums)?,
            relation_entities: open(folder, "relation-entities", sums)?,
            kinds,
        };
        let triples = counts.triples as usize;
        if shape.outgoing.edges.len() != triples || shape.incoming.edges.len() != triples {
            return Err(damaged("outgoing.edges"));
        }
        if shape.relation_places.len() != triples || shape.relation_starts.len() != bounds.1 + 1 {
            return Err(damaged("by-relation.places"));
        }
        if shape.relation_entities.len() != bounds.1 {
            return Err(damaged("relation-entities"));
        }
        if !kinds.is_sorted() || kinds[4] as usize != bounds.0 {
            return Err(damaged("entities.text"));
        }
        Ok(shape)
    }

    /// An error if a file is shorter than when it was opened.
    pub(crate) fn is_there(&self) -> Result<()> {
        self.entities.is_there()?;
        self.relations.is_there()?;
        self.outgoing.is_there()?;
        self.incoming.is_there()?;
        self.relation_starts.is_there()?;
        self.relation_places.is_there()?;
        self.relation_entities.is_there()
    }

    pub(crate) fn outgoing(&self, entity: EntityId) -> Result<&[Edge]> {
        self.outgoing.row(entity)
    }

    pub(crate) fn incoming(&self, entity: EntityId) -> Result<&[Edge]> {
        self.incoming.row(entity)
    }

    /// Triples of a relation, in order of (head, tail).
    pub(crate) fn by_relation(
        &self,
        relation: RelationId,
    ) -> Result<impl Iterator<Item = Result<Triple>> + '_> {
        let mut places = self.places(relation)?;
        let mut walk = HeadWalk {
            offsets: &self.outgoing.offsets,
            head: 0,
        };
        // so many at a time: whoever wants a few of a relation's millions does not read all
        const TOGETHER: usize = 1024;
        let mut some: &[u32] = &[];
        let mut next = move || -> Result<Option<Triple>> {
            if some.is_empty() {
                let end = places.end.min(places.start + TOGETHER);
                let found = self.relation_places.slice(places.start..end)?;
                some = found.ok_or_else(|| self.points_outside())?;
                places.start = end;
            }
            let Some((&place, rest)) = some.split_first() else {
                return Ok(None);
            };
            some = rest;
            let damaged = || self.outgoing.damaged();
            let edge = self.outgoing.edges.at(place as usize)?;
            let edge = edge.ok_or_else(damaged)?;
            let head = walk.head_of(place)?.ok_or_else(damaged)?;
            if edge.entity.index() >= self.outgoing.bounds.0 {
                return Err(damaged());
            }
            Ok(Some(Triple {
                head,
                relation,
                tail: edge.entity,
            }))
        };
        let mut failed = false;
        Ok(std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let found = next();
            failed = found.is_err();
            found.transpose()
        }))
    }

    /// Which of the places belong to a relation.
    pub(crate) fn places(&self, relation: RelationId) -> Result<Range<usize>> {
        let i = relation.index();
        match self.relation_starts.slice(i..i + 2)? {
            Some(&[from, to]) if from <= to && to as usize <= self.relation_places.len() => {
                Ok(from as usize..to as usize)
            }
            Some(_) => Err(self.points_outside()),
            None => Err(Error::NoSuchRelation {
                id: relation.0,
                bound: self.relations.len(),
            }),
        }
    }

    fn points_outside(&self) -> Error {
        Error::Damaged {
            path: self.folder.join("by-relation.offsets"),
            reason: "it points outside".into(),
        }
    }

    pub(crate) fn key(&self, entity: EntityId, key: &mut Vec<u8>) -> Result<()> {
        if entity.index() >= self.entities.len() {
            return Err(Error::NoSuchEntity {
                id: entity.0,
                bound: self.entities.len(),
            });
        }
        self.entities.get(entity.index(), key)
    }

    pub(crate) fn relation_key(&self, relation: RelationId, key: &mut Vec<u8>) -> Result<()> {
        if relation.index() >= self.relations.len() {
            return Err(Error::NoSuchRelation {
                id: relation.0,
                bound: self.relations.len(),
            });
        }
        self.relations.get(relation.index(), key)
    }

    pub(crate) fn is_literal(&self, entity: EntityId) -> bool {
        (self.kinds[2]..self.kinds[3]).contains(&entity.0)
    }

    pub(crate) fn is_blank(&self, entity: EntityId) -> bool {
        (self.kinds[0]..self.kinds[1]).contains(&entity.0)
    }

    pub(crate) fn damaged_text(&self) -> Error {
        Error::Damaged {
            path: self.folder.join("entities.text"),
            reason: "it holds no text".into(),
        }
    }

    /// The text of an entity without its label, made readable.
    pub(crate) fn own_name(&self, entity: EntityId) -> Result<String> {
        let mut bytes = Vec::new();
        self.key(entity, &mut bytes)?;
        readable_key(&bytes).ok_or_else(|| self.damaged_text())
    }
}

/// Finds the head of each place, for places that ascend.
struct HeadWalk<'a> {
    offsets: &'a Verified<u32>,
    head: usize,
}

impl HeadWalk<'_> {
    fn head_of(&mut self, place: u32) -> Result<Option<EntityId>> {
        // rows are short and places close: gallop forward, then search in between
        let first = self.head + 1;
        let Some(rest) = self.offsets.len().checked_sub(first) else {
            return Ok(None);
        };
        let mut step = 1;
        while step < rest && (self.offsets.at(first + step - 1)?).is_some_and(|end| end <= place) {
            step *= 2;
        }
        let from = step / 2;
        let to = step.min(rest);
        let between = self.offsets.slice(first + from..first + to)?;
        let between = between.unwrap_or_default();
        self.head += from + between.partition_point(|&end| end <= place);
        let found = self.head + 1 < self.offsets.len();
        Ok(found.then_some(EntityId(self.head as u32)))
    }
}

/// The display name of a key without a label.
pub(crate) fn readable_key(bytes: &[u8]) -> Option<String> {
    let text = key::text(bytes)?;
    Some(match bytes[0] {
        key::IRI => readable(&local_part(text)).into_owned(),
        key::NAME => readable(text).into_owned(),
        key::BLANK => format!("_:{text}"),
        _ if text.trim().is_empty() => "\"\"".to_owned(),
        _ => text.to_owned(),
    })
}

/// Whether a key has no readable name: blank nodes and bare machine ids.
pub(crate) fn is_unnamed_key(bytes: &[u8]) -> bool {
    match (bytes.first(), key::text(bytes)) {
        (Some(&key::BLANK), _) => true,
        (Some(&key::IRI), Some(iri)) => {
            is_machine_id(&local_part(iri)) || iri.contains("/.well-known/genid/")
        }
        (Some(&key::NAME), Some(name)) => is_machine_id(name),
        _ => false,
    }
}
