//! The words of a graph: ids, triples, edges, terms, and the two traits everything else reads through.
//!
//! [`Adjacency`] is shape alone: who is joined to whom, by which relation. [`Graph`] adds what
//! people read: names. A store on disk, a small graph in memory, a remote service and (shape
//! only) a question's [`Subgraph`](crate::Subgraph) are all the same to the code above.

use std::borrow::Cow;
use std::fmt;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// An entity (subject or object, literals included) of one graph. Meaningless in any other graph.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Pod,
    Zeroable,
    Serialize,
    Deserialize,
)]
#[repr(transparent)]
#[serde(transparent)]
pub struct EntityId(pub u32);

/// A relation (predicate) of one graph.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Pod,
    Zeroable,
    Serialize,
    Deserialize,
)]
#[repr(transparent)]
#[serde(transparent)]
pub struct RelationId(pub u32);

impl EntityId {
    /// The id as an index into an array over entities.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RelationId {
    /// The id as an index into an array over relations.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One step from an entity: the relation and the entity at the other end.
///
/// Whether the relation points there or comes from there is known by where the edge was read:
/// [`Adjacency::outgoing`] or [`Adjacency::incoming`].
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Pod,
    Zeroable,
    Serialize,
    Deserialize,
)]
#[repr(C)]
pub struct Edge {
    /// The relation of the triple.
    pub relation: RelationId,
    /// The entity at the other end.
    pub entity: EntityId,
}

/// A statement of the graph: head, relation, tail.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Pod,
    Zeroable,
    Serialize,
    Deserialize,
)]
#[repr(C)]
pub struct Triple {
    /// Subject.
    pub head: EntityId,
    /// Predicate.
    pub relation: RelationId,
    /// Object.
    pub tail: EntityId,
}

impl Triple {
    /// A triple from bare numbers, mostly for tests.
    pub fn new(head: u32, relation: u32, tail: u32) -> Self {
        Self {
            head: EntityId(head),
            relation: RelationId(relation),
            tail: EntityId(tail),
        }
    }
}

/// Which way edges are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From head to tail.
    Outgoing,
    /// From tail to head.
    Incoming,
    /// Both: relations are often stored one way only.
    #[default]
    Both,
}

impl Direction {
    /// That in which edges are followed: from head to tail, or back.
    pub fn along(forward: bool) -> Self {
        match forward {
            true => Self::Outgoing,
            false => Self::Incoming,
        }
    }

    /// Whether edges are followed from head to tail.
    pub fn goes_out(self) -> bool {
        self != Direction::Incoming
    }

    /// Whether edges are followed from tail to head.
    pub fn goes_in(self) -> bool {
        self != Direction::Outgoing
    }
}

/// What an entity or relation is called inside the graph: its identity, not its label.
///
/// `Display` writes names and IRIs bare, blank nodes as `_:b0`, literals as in N-Triples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// A name that is no IRI, as tables have them.
    Name(String),
    /// An IRI, without angle brackets.
    Iri(String),
    /// A blank node's label, without `_:`.
    Blank(String),
    /// A value.
    Literal(Literal),
}

/// A value with its datatype or language.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Literal {
    /// The text of the value.
    pub value: String,
    /// What kind of value it is.
    pub kind: LiteralKind,
}

/// The kind of a [`Literal`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LiteralKind {
    /// A plain string.
    Plain,
    /// A string in a language, by its tag.
    Language(String),
    /// A typed value, by its datatype's IRI.
    Typed(String),
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Name(text) | Term::Iri(text) => f.write_str(text),
            Term::Blank(label) => write!(f, "_:{label}"),
            Term::Literal(Literal { value, kind }) => {
                f.write_str("\"")?;
                for c in value.chars() {
                    match c {
                        '"' => f.write_str("\\\"")?,
                        '\\' => f.write_str("\\\\")?,
                        '\n' => f.write_str("\\n")?,
                        '\r' => f.write_str("\\r")?,
                        '\t' => f.write_str("\\t")?,
                        c => write!(f, "{c}")?,
                    }
                }
                match kind {
                    LiteralKind::Plain => f.write_str("\""),
                    LiteralKind::Language(tag) => write!(f, "\"@{tag}"),
                    LiteralKind::Typed(datatype) => write!(f, "\"^^<{datatype}>"),
                }
            }
        }
    }
}

/// How strictly a name is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameMatch {
    /// Identity or label, letter by letter.
    Exact,
    /// After [`normalise`](crate::names::normalise): case, accents, punctuation, `_` and spaces
    /// do not count.
    Normalised,
}

/// The shape of a graph: edges of an entity in both directions.
///
/// Ids are dense: every id handed out is below the bounds, so arrays can be indexed by them.
/// An id outside the bounds is an error, not a panic: stores are files, and files get damaged.
pub trait Adjacency: Send + Sync {
    /// Every entity id is below this number.
    fn entity_bound(&self) -> usize;

    /// Every relation id is below this number.
    fn relation_bound(&self) -> usize;

    /// Triples with this head, sorted by (relation, tail), no duplicates.
    fn outgoing(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>>;

    /// Triples with this tail, sorted by (relation, head), no duplicates.
    fn incoming(&self, entity: EntityId) -> Result<Cow<'_, [Edge]>>;

    /// Number of triples that the entity is head or tail of; a loop counts twice.
    fn degree(&self, entity: EntityId) -> Result<usize> {
        Ok(self.outgoing(entity)?.len() + self.incoming(entity)?.len())
    }

    /// These entities will be read next, in these directions. A graph that is far away fetches
    /// them together; to others it means nothing.
    fn prefetch(&self, _entities: &[EntityId], _direction: Direction) -> Result<()> {
        Ok(())
    }

    /// The triples of one relation: a part of [`Adjacency::outgoing`], or of
    /// [`Adjacency::incoming`].
    fn run(
        &self,
        entity: EntityId,
        relation: RelationId,
        outgoing: bool,
    ) -> Result<Cow<'_, [Edge]>> {
        let row = match outgoing {
            true => self.outgoing(entity)?,
            false => self.incoming(entity)?,
        };
        Ok(match row {
            Cow::Borrowed(row) => Cow::Borrowed(crate::edges_by_relation(row, relation)),
            Cow::Owned(row) => Cow::Owned(crate::edges_by_relation(&row, relation).to_vec()),
        })
    }

    /// Relations of which a row shows only the first triple, with how many triples there are. Only
    /// a graph that is far away has such rows.
    fn long_runs(&self, _entity: EntityId, _outgoing: bool) -> Result<Vec<(RelationId, usize)>> {
        Ok(Vec::new())
    }

    /// How often something was read that is not at hand yet, and stood there as empty. Only a graph
    /// whose rows are fetched later has such.
    fn misses(&self) -> usize {
        0
    }

    /// Whether the graph states this triple. False for ids that it does not have.
    fn contains(&self, triple: Triple) -> Result<bool> {
        if triple.head.index() >= self.entity_bound() {
            return Ok(false);
        }
        let wanted = Edge {
            relation: triple.relation,
            entity: triple.tail,
        };
        Ok(self.outgoing(triple.head)?.binary_search(&wanted).is_ok())
    }

    /// All triples of an entity: those it is the head of first, then those it is the tail of.
    /// A loop is listed once.
    fn triples_of(&self, entity: EntityId) -> Result<Vec<Triple>> {
        let outgoing = self.outgoing(entity)?;
        let incoming = self.incoming(entity)?;
        let mut triples = Vec::with_capacity(outgoing.len() + incoming.len());
        triples.extend(outgoing.iter().map(|e| Triple {
            head: entity,
            relation: e.relation,
            tail: e.entity,
        }));
        triples.extend(
            incoming
                .iter()
                .filter(|e| e.entity != entity)
                .map(|e| Triple {
                    head: e.entity,
                    relation: e.relation,
                    tail: entity,
                }),
        );
        Ok(triples)
    }
}

/// A graph that people can read: shape and names.
///
/// Implemented by the store, by the small graph in memory and by remote services; methods take
/// it as `&dyn Graph`, so one graph per question and one large served graph are the same code.
pub trait Graph: Adjacency {
    /// What to call the entity in front of people. Never empty.
    fn entity_label(&self, entity: EntityId) -> Result<Cow<'_, str>>;

    /// What to call the relation in front of people.
    fn relation_label(&self, relation: RelationId) -> Result<Cow<'_, str>>;

    /// The entity's identity.
    fn entity_term(&self, entity: EntityId) -> Result<Term>;

    /// The relation's identity.
    fn relation_term(&self, relation: RelationId) -> Result<Term>;

    /// Whether the entity has a name that means something to people. Blank nodes and bare ids
    /// such as Freebase's `m.0abc` (its CVT nodes) have none.
    fn is_named(&self, entity: EntityId) -> Result<bool>;

    /// The entities called `name`, by identity, label or alias; sorted by id.
    fn entities_named(&self, name: &str, how: NameMatch) -> Result<Vec<EntityId>>;

    /// Up to `limit` entities whose normalised name begins with the normalised `prefix`, in
    /// alphabetical order of those names.
    fn entities_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<EntityId>>;

    /// The relation called `name`, by identity, or else by label if only one has that label.
    fn relation_named(&self, name: &str) -> Result<Option<RelationId>>;

    /// Triples with this relation, in order of (head, tail).
    ///
    /// Where a graph has no index of its relations, every entity is looked at.
    fn with_relation(
        &self,
        relation: RelationId,
    ) -> Result<Box<dyn Iterator<Item = Result<Triple>> + '_>> {
        let heads = (0..self.entity_bound()).map(|id| EntityId(id as u32));
        Ok(Box::new(heads.flat_map(move |head| {
            let found: Vec<Result<Triple>> = match self.outgoing(head) {
                Ok(row) => crate::edges_by_relation(&row, relation)
                    .iter()
                    .map(|edge| {
                        Ok(Triple {
                            head,
                            relation,
                            tail: edge.entity,
                        })
                    })
                    .collect(),
                Err(error) => vec![Err(error)],
            };
            found
        })))
    }

    /// What tells this graph from all others, for things that are computed once per graph. None
    /// for small graphs that come and go.
    fn identity(&self) -> Option<&str> {
        None
    }

    /// The folder it lies in, where things that were computed for it may lie beside it.
    fn folder(&self) -> Option<&std::path::Path> {
        None
    }

    /// These names will be looked up next. See [`Adjacency::prefetch`].
    fn prefetch_names(&self, _names: &[&str]) -> Result<()> {
        Ok(())
    }

    /// Whether all entities are known, so that whoever reads all names reads them all. A remote
    /// service without a label index knows those that were met.
    fn knows_all_names(&self) -> bool {
        true
    }

    /// The store that it is, where it is one: what only files can tell is asked there.
    fn store(&self) -> Option<&crate::Store> {
        None
    }

    /// The service that it is, where it is one: what only that can tell is asked there.
    fn service(&self) -> Option<&crate::Service> {
        None
    }

    /// What `?x` stands for in a query of SPARQL, where a service holds the graph and runs it; at
    /// most `most` entities, sorted, and whether there are more.
    fn run_there(&self, _query: &str, _most: usize) -> Result<Option<(Vec<EntityId>, bool)>> {
        Ok(None)
    }

    /// Relations that only give names (`rdfs:label` and its like). Their triples are no evidence.
    fn naming_relations(&self) -> &[RelationId] {
        &[]
    }
}
