//! Triples and dictionaries of a graph folder, without names: what loading needs half-way, and
//! what the store is built on.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::graph::{Edge, EntityId, RelationId, Triple};
use crate::key;
use crate::manifest::Counts;
use crate::mapped::Mapped;
use crate::names::{is_machine_id, local_part, readable};

/// Triples and dictionaries: all but names.
#[derive(Debug)]
pub(crate) struct Shape {
    folder: PathBuf,
    pub(crate) entities: Dictionary,
    pub(crate) relations: Dictionary,
    pub(crate) outgoing: Rows,
    pub(crate) incoming: Rows,
    relation_starts: Mapped<u32>,
    relation_places: Mapped<u32>,
    pub(crate) relation_entities: Mapped<u32>,
    pub(crate) kinds: [u32; 5],
}

/// Edges of every entity in one direction.
#[derive(Debug)]
pub(crate) struct Rows {
    path: PathBuf,
    offsets: Mapped<u32>,
    edges: Mapped<Edge>,
    bounds: (usize, usize),
}

impl Rows {
    fn open(folder: &Path, name: &str, bounds: (usize, usize)) -> Result<Self> {
        let path = folder.join(format!("{name}.edges"));
        let edges = Mapped::<Edge>::open(&path)?;
        let offsets = Mapped::<u32>::open(&folder.join(format!("{name}.offsets")))?;
        if offsets.len() != bounds.0 + 1 || offsets.last().copied() != Some(edges.len() as u32) {
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
        match self.offsets.get(i..i + 2) {
            Some(&[from, to]) => Ok(from as usize..to as usize),
            _ => Err(Error::NoSuchEntity {
                id: entity.0,
                bound: self.bounds.0,
            }),
        }
    }

    /// Ids in it are not looked at: whoever indexes by them finds those that do not exist, and a
    /// hub of millions is not read for the sake of a few.
    pub(crate) fn row(&self, entity: EntityId) -> Result<&[Edge]> {
        self.edges
            .get(self.range(entity)?)
            .ok_or_else(|| self.damaged())
    }

    /// The edges of one relation. Looks at no other edge: a hub may have millions.
    pub(crate) fn row_by(&self, entity: EntityId, relation: RelationId) -> Result<&[Edge]> {
        let row = self.row(entity)?;
        let from = row.partition_point(|edge| edge.relation < relation);
        let length = row[from..].partition_point(|edge| edge.relation == relation);
        Ok(&row[from..from + length])
    }

    pub(crate) fn contains(&self, entity: EntityId, edge: Edge) -> Result<bool> {
        Ok(self.row(entity)?.binary_search(&edge).is_ok())
    }

    fn damaged(&self) -> Error {
        Error::Damaged {
            path: self.path.clone(),
            reason: "it names an id that does not exist".into(),
        }
    }
}

impl Shape {
    pub(crate) fn open(folder: &Path, counts: &Counts, kinds: [u32; 5]) -> Result<Self> {
        let damaged = |name: &str| Error::Damaged {
            path: folder.join(name),
            reason: "its length is not what the manifest says".into(),
        };
        let bounds = (counts.entities as usize, counts.relations as usize);
        let shape = Self {
            folder: folder.to_owned(),
            entities: Dictionary::open(folder, "entities", bounds.0)?,
            relations: Dictionary::open(folder, "relations", bounds.1)?,
            outgoing: Rows::open(folder, "outgoing", bounds)?,
            incoming: Rows::open(folder, "incoming", bounds)?,
            relation_starts: Mapped::open(&folder.join("by-relation.offsets"))?,
            relation_places: Mapped::open(&folder.join("by-relation.places"))?,
            relation_entities: Mapped::open(&folder.join("relation-entities"))?,
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
        let places = self.places(relation)?;
        let mut walk = HeadWalk {
            offsets: &self.outgoing.offsets,
            head: 0,
        };
        Ok(places.iter().map(move |&place| {
            let edge = self
                .outgoing
                .edges
                .get(place as usize)
                .ok_or_else(|| self.outgoing.damaged())?;
            let head = walk.head_of(place).ok_or_else(|| self.outgoing.damaged())?;
            if edge.entity.index() >= self.outgoing.bounds.0 {
                return Err(self.outgoing.damaged());
            }
            Ok(Triple {
                head,
                relation,
                tail: edge.entity,
            })
        }))
    }

    pub(crate) fn places(&self, relation: RelationId) -> Result<&[u32]> {
        let i = relation.index();
        match self.relation_starts.get(i..i + 2) {
            Some(&[from, to]) => self
                .relation_places
                .get(from as usize..to as usize)
                .ok_or_else(|| Error::Damaged {
                    path: self.folder.join("by-relation.offsets"),
                    reason: "it points outside".into(),
                }),
            _ => Err(Error::NoSuchRelation {
                id: relation.0,
                bound: self.relations.len(),
            }),
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
    offsets: &'a [u32],
    head: usize,
}

impl HeadWalk<'_> {
    fn head_of(&mut self, place: u32) -> Option<EntityId> {
        // rows are short and places close: gallop forward, then search in between
        let rest = self.offsets.get(self.head + 1..)?;
        let mut step = 1;
        while step < rest.len() && rest[step - 1] <= place {
            step *= 2;
        }
        let from = step / 2;
        let to = step.min(rest.len());
        self.head += from + rest[from..to].partition_point(|&end| end <= place);
        (self.head + 1 < self.offsets.len()).then_some(EntityId(self.head as u32))
    }
}

/// What people see of a key when there is no label.
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

/// Whether a key tells people nothing: blank nodes and bare machine ids.
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
