//! Ids, triples, edges, terms, and the two traits through which all other code reads a graph.
//!
//! [`Adjacency`] has the edges only. [`Graph`] adds names. Both are implemented by the store on
//! disk, the small graph in memory and the remote service; a question's
//! [`Subgraph`](crate::Subgraph) implements [`Adjacency`] only.

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
/// Whether the entity at hand is the head or the tail depends on where the edge was read:
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

/// The direction in which edges are followed.
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
    /// Outgoing if true, else incoming.
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

/// The identity of an entity or relation in the graph, as opposed to its label.
///
/// `Display` writes names and IRIs bare, blank nodes as `_:b0`, literals as in N-Triples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// A name that is not an IRI, as in tables.
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

/// The edges of one relation in a row of [`Adjacency::outgoing`] or [`Adjacency::incoming`].
///
/// ```
/// use wherefore_graph::{Adjacency, EntityId, Graph, edges_by_relation, toy};
/// let graph = toy::graph();
/// let won = graph.relation_named("won")?.unwrap();
/// assert_eq!(edges_by_relation(&graph.outgoing(EntityId(1))?, won).len(), 3);
/// # Ok::<(), wherefore_graph::Error>(())
/// ```
pub fn edges_by_relation(row: &[Edge], relation: RelationId) -> &[Edge] {
    let from = row.partition_point(|e| e.relation < relation);
    let rest = &row[from..];
    // galloping: most runs are short, also in the long row of a hub, and far memory is slow
    let mut end = 1;
    while end < rest.len() && rest[end - 1].relation == relation {
        end *= 2;
    }
    let (known, end) = (end / 2, end.min(rest.len()));
    let more = rest[known..end].partition_point(|e| e.relation == relation);
    &rest[..known + more]
}

/// The edges of a graph, by entity and direction.
///
/// Ids are dense: every id is below the bounds, so arrays can be indexed by them. An id outside
/// the bounds is an error, not a panic, because files can be damaged.
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

    /// Announces that these entities will be read next, in these directions. A remote graph fetches
    /// them together; others ignore it.
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
            Cow::Borrowed(row) => Cow::Borrowed(edges_by_relation(row, relation)),
            Cow::Owned(row) => Cow::Owned(edges_by_relation(&row, relation).to_vec()),
        })
    }

    /// Relations of which a row shows only one triple, with their number of triples. Only remote
    /// graphs have such rows.
    fn long_runs(&self, _entity: EntityId, _outgoing: bool) -> Result<Vec<(RelationId, usize)>> {
        Ok(Vec::new())
    }

    /// How often something was read that is not fetched yet, and appeared empty. Always 0 but for
    /// graphs that fetch rows later.
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

/// A graph with names.
///
/// Implemented by the store, by the small graph in memory and by remote services; methods take
/// it as `&dyn Graph`, so one graph per question and one large served graph are the same code.
pub trait Graph: Adjacency {
    /// The display name of the entity. Never empty.
    fn entity_label(&self, entity: EntityId) -> Result<Cow<'_, str>>;

    /// The display name of the relation.
    fn relation_label(&self, relation: RelationId) -> Result<Cow<'_, str>>;

    /// The entity's identity.
    fn entity_term(&self, entity: EntityId) -> Result<Term>;

    /// The relation's identity.
    fn relation_term(&self, relation: RelationId) -> Result<Term>;

    /// Whether the entity has a readable name. Blank nodes and bare ids
    /// such as Freebase's `m.0abc` (its CVT nodes) have none.
    fn is_named(&self, entity: EntityId) -> Result<bool>;

    /// The entities called `name`, by identity, label or alias; sorted by id.
    fn entities_named(&self, name: &str, matching: NameMatch) -> Result<Vec<EntityId>>;

    /// Up to `limit` entities whose normalised name begins with the normalised `prefix`, in
    /// alphabetical order of those names.
    fn entities_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<EntityId>>;

    /// The relation called `name`, by identity, or else by label if only one has that label.
    fn relation_named(&self, name: &str) -> Result<Option<RelationId>>;

    /// Triples with this relation, in order of (head, tail).
    ///
    /// Without an index of relations, this reads every entity.
    fn with_relation(
        &self,
        relation: RelationId,
    ) -> Result<Box<dyn Iterator<Item = Result<Triple>> + '_>> {
        let heads = (0..self.entity_bound()).map(|id| EntityId(id as u32));
        Ok(Box::new(heads.flat_map(move |head| {
            let found: Vec<Result<Triple>> = match self.outgoing(head) {
                Ok(row) => edges_by_relation(&row, relation)
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

    /// A string that identifies the graph, for things that are computed once per graph. `None`
    /// for short-lived graphs.
    fn identity(&self) -> Option<&str> {
        None
    }

    /// The folder of the graph, where computed files may be stored beside it.
    fn folder(&self) -> Option<&std::path::Path> {
        None
    }

    /// Announces that these names will be looked up next. See [`Adjacency::prefetch`].
    fn prefetch_names(&self, _names: &[&str]) -> Result<()> {
        Ok(())
    }

    /// Whether all entities and their names can be enumerated. A remote service without a label
    /// index knows only the entities that it has returned so far.
    fn knows_all_names(&self) -> bool {
        true
    }

    /// The store, if the graph is one.
    fn store(&self) -> Option<&crate::Store> {
        None
    }

    /// The service, if the graph is one.
    fn service(&self) -> Option<&crate::Service> {
        None
    }

    /// Runs a SPARQL query at the service that holds the graph, if there is one, and returns at
    /// most `most` values of `?x`, sorted, and whether there are more.
    fn run_there(&self, _query: &str, _most: usize) -> Result<Option<(Vec<EntityId>, bool)>> {
        Ok(None)
    }

    /// Relations that only give names (`rdfs:label` and its like). Their triples are not used as
    /// evidence.
    fn naming_relations(&self) -> &[RelationId] {
        &[]
    }
}
