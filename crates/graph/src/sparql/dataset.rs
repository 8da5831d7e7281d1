//! The store as a SPARQL dataset: every triple pattern is answered from the store's own indexes.
//!
//! ```text
//! s p o    binary search in the outgoing row of s
//! s p ?    stretch of the outgoing row of s           ? p o    stretch of the incoming row of o
//! s ? ?    outgoing row of s                          ? ? o    incoming row of o
//! s ? o    the shorter of both rows, filtered         ? p ?    places of the relation
//! ? ? ?    all outgoing rows
//! ```
//!
//! Terms stay ids until the evaluator needs to see them, so joins touch no text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

use oxrdf::{BlankNode, NamedNode};
use spareval::{ExpressionTerm, InternalQuad, QueryableDataset};
use spargebra::term::GroundTerm;

use super::scheme;
use super::watch::{Interrupted, Watch, check_deadline};
use crate::error::{Error, Result};
use crate::graph::{
    Adjacency, Edge, EntityId, Graph, Literal, LiteralKind, RelationId, Term, Triple,
};
use crate::store::Store;

/// Ids or triples that are counted between two checks of the clock: some milliseconds.
const IDS_PER_CHECK: usize = 1 << 18;

/// A term inside the evaluator. Equal terms are equal here whatever their place in a triple.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Entity(EntityId),
    /// A relation that is no entity too.
    Relation(RelationId),
    /// A term that the graph does not have: a constant of the query or a computed value.
    Other(Arc<oxrdf::Term>),
}

impl Clone for Node {
    /// Also where a join in memory meets the time limit.
    fn clone(&self) -> Self {
        check_deadline();
        match self {
            Node::Entity(entity) => Node::Entity(*entity),
            Node::Relation(relation) => Node::Relation(*relation),
            Node::Other(term) => Node::Other(Arc::clone(term)),
        }
    }
}

/// The whole graph as the default graph; there are no named ones.
#[derive(Clone)]
pub(super) struct GraphDataset<'a> {
    store: &'a Store,
    has_names: bool,
    /// Relations of entities that are relations too, as far as they were looked up.
    relations: Rc<RefCell<HashMap<EntityId, Option<RelationId>>>>,
    watch: Rc<Watch>,
}

impl<'a> GraphDataset<'a> {
    pub(super) fn new(store: &'a Store, watch: Rc<Watch>) -> Self {
        Self {
            store,
            has_names: store.has_names(),
            relations: Rc::default(),
            watch,
        }
    }

    fn record<T>(&self, result: Result<T>) -> Result<T, Interrupted> {
        result.map_err(|error| self.watch.record(error))
    }

    fn quads(
        &self,
        subject: Option<&Node>,
        predicate: Option<&Node>,
        object: Option<&Node>,
    ) -> Result<QuadSource<'a>> {
        // a term that the graph does not have matches nothing
        let entity = |node: &Node| match node {
            Node::Entity(entity) => Some(*entity),
            Node::Relation(_) | Node::Other(_) => None,
        };
        let (Some(head), Some(relation), Some(tail)) = (
            subject.map_or(Some(None), |node| entity(node).map(Some)),
            match predicate {
                None => Some(None),
                Some(node) => self.relation(node)?.map(Some),
            },
            object.map_or(Some(None), |node| entity(node).map(Some)),
        ) else {
            return Ok(QuadSource::One(None));
        };
        Ok(match (head, relation, tail) {
            (Some(head), Some(relation), Some(tail)) => {
                let triple = Triple {
                    head,
                    relation,
                    tail,
                };
                QuadSource::One(self.store.contains(triple)?.then_some(triple))
            }
            (Some(head), Some(relation), None) => {
                QuadSource::outgoing(head, self.store.outgoing_by(head, relation)?)
            }
            (None, Some(relation), Some(tail)) => {
                QuadSource::incoming(tail, self.store.incoming_by(tail, relation)?)
            }
            (Some(head), None, None) => QuadSource::outgoing(head, self.store.outgoing_row(head)?),
            (None, None, Some(tail)) => QuadSource::incoming(tail, self.store.incoming_row(tail)?),
            (Some(head), None, Some(tail)) => {
                let outgoing = self.store.outgoing_row(head)?;
                let incoming = self.store.incoming_row(tail)?;
                if outgoing.len() <= incoming.len() {
                    QuadSource::Outgoing(head, outgoing.iter(), Some(tail))
                } else {
                    QuadSource::Incoming(tail, incoming.iter(), Some(head))
                }
            }
            (None, Some(relation), None) => {
                QuadSource::Many(Box::new(self.store.triples_by_relation(relation)?))
            }
            (None, None, None) => QuadSource::Many(Box::new(self.store.triples())),
        })
    }

    /// The relation that a term names.
    fn relation(&self, node: &Node) -> Result<Option<RelationId>> {
        let entity = match node {
            Node::Relation(relation) => return Ok(Some(*relation)),
            Node::Other(_) => return Ok(None),
            Node::Entity(entity) => *entity,
        };
        if let Some(found) = self.relations.borrow().get(&entity) {
            return Ok(*found);
        }
        let found = self
            .store
            .find_relation_term(&self.store.entity_term(entity)?)?;
        self.relations.borrow_mut().insert(entity, found);
        Ok(found)
    }

    /// The relations that have triples, with how many each has.
    pub(super) fn relation_counts(&self) -> Result<Vec<(NamedNode, usize)>> {
        let mut counts = Vec::new();
        for id in 0..self.store.relation_bound() as u32 {
            let relation = RelationId(id);
            let triples = self.store.relation_count(relation)?;
            if triples > 0
                && let oxrdf::Term::NamedNode(iri) =
                    self.rdf_term(self.store.relation_term(relation)?)
            {
                counts.push((iri, triples));
            }
        }
        Ok(counts)
    }

    /// One of them.
    pub(super) fn relation_count(&self, iri: &NamedNode) -> Result<Option<(NamedNode, usize)>> {
        let own = self.graph_term(&iri.clone().into());
        let Some(relation) = self.store.find_relation_term(&own)? else {
            return Ok(None);
        };
        let triples = self.store.relation_count(relation)?;
        Ok((triples > 0).then(|| (iri.clone(), triples)))
    }

    /// How many triples each entity is the head of (or, if `outgoing` is false, the tail), by its
    /// id: of one relation, or of all, whose rows need not be read for that.
    pub(super) fn end_counts(
        &self,
        relation: Option<&NamedNode>,
        outgoing: bool,
    ) -> Result<Vec<u32>> {
        let mut counts = vec![0u32; self.store.entity_bound()];
        let Some(iri) = relation else {
            for (id, count) in counts.iter_mut().enumerate() {
                if id % IDS_PER_CHECK == 0 && self.watch.tick().is_err() {
                    return Err(self.fault());
                }
                let length = self.store.row_length(EntityId(id as u32), outgoing)?;
                *count = u32::try_from(length).unwrap_or(u32::MAX);
            }
            return Ok(counts);
        };
        let own = self.graph_term(&iri.clone().into());
        let Some(relation) = self.store.find_relation_term(&own)? else {
            return Ok(counts);
        };
        for (number, triple) in self.store.triples_by_relation(relation)?.enumerate() {
            if number % IDS_PER_CHECK == 0 && self.watch.tick().is_err() {
                return Err(self.fault());
            }
            let triple = triple?;
            let end = if outgoing { triple.head } else { triple.tail };
            if let Some(count) = counts.get_mut(end.index()) {
                *count = count.saturating_add(1);
            }
        }
        Ok(counts)
    }

    fn fault(&self) -> Error {
        self.watch.take().unwrap_or(Error::Stopped)
    }

    /// An entity as a constant of a query; none for blank nodes, which cannot be one.
    pub(super) fn constant(&self, entity: EntityId) -> Result<Option<GroundTerm>> {
        Ok(match self.rdf_term(self.store.entity_term(entity)?) {
            oxrdf::Term::NamedNode(iri) => Some(GroundTerm::NamedNode(iri)),
            oxrdf::Term::Literal(literal) => Some(GroundTerm::Literal(literal)),
            _ => None,
        })
    }

    fn predicate(&self, relation: RelationId) -> Result<Node> {
        Ok(match self.store.relation_entity(relation)? {
            Some(entity) => Node::Entity(entity),
            None => Node::Relation(relation),
        })
    }

    fn find(&self, term: &oxrdf::Term) -> Result<Option<Node>> {
        let own = self.graph_term(term);
        if let Some(entity) = self.store.find_term(&own)? {
            return Ok(Some(Node::Entity(entity)));
        }
        Ok(self.store.find_relation_term(&own)?.map(Node::Relation))
    }

    fn graph_term(&self, term: &oxrdf::Term) -> Term {
        match term {
            oxrdf::Term::NamedNode(iri) if self.has_names => scheme::term_of(iri.as_str()),
            oxrdf::Term::NamedNode(iri) => Term::Iri(iri.as_str().to_owned()),
            oxrdf::Term::BlankNode(blank) => Term::Blank(blank.as_str().to_owned()),
            oxrdf::Term::Literal(literal) => Term::Literal(Literal {
                value: literal.value().to_owned(),
                kind: match literal.language() {
                    Some(tag) => LiteralKind::Language(tag.to_owned()),
                    None => LiteralKind::Typed(literal.datatype().as_str().to_owned()),
                },
            }),
        }
    }

    /// The term as RDF has it. The store keeps only what its loader found valid, so nothing is
    /// parsed again.
    fn rdf_term(&self, term: Term) -> oxrdf::Term {
        match term {
            Term::Name(name) => NamedNode::new_unchecked(scheme::name_iri(&name)).into(),
            Term::Iri(iri) if self.has_names => {
                NamedNode::new_unchecked(scheme::escaped_iri(iri)).into()
            }
            Term::Iri(iri) => NamedNode::new_unchecked(iri).into(),
            Term::Blank(label) => BlankNode::new_unchecked(label).into(),
            Term::Literal(Literal { value, kind }) => match kind {
                LiteralKind::Plain => oxrdf::Literal::new_simple_literal(value),
                LiteralKind::Language(tag) => {
                    oxrdf::Literal::new_language_tagged_literal_unchecked(value, tag)
                }
                LiteralKind::Typed(datatype) => {
                    oxrdf::Literal::new_typed_literal(value, NamedNode::new_unchecked(datatype))
                }
            }
            .into(),
        }
    }
}

impl<'a> QueryableDataset<'a> for GraphDataset<'a> {
    type InternalTerm = Node;
    type Error = Interrupted;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&Node>,
        predicate: Option<&Node>,
        object: Option<&Node>,
        graph_name: Option<Option<&Node>>,
    ) -> impl Iterator<Item = Result<InternalQuad<Node>, Interrupted>> + use<'a> {
        let source = match graph_name {
            Some(None) => self.record(self.quads(subject, predicate, object)),
            Some(Some(_)) | None => Ok(QuadSource::One(None)),
        };
        Quads {
            source,
            dataset: self.clone(),
            over: false,
        }
    }

    fn internal_named_graphs(&self) -> impl Iterator<Item = Result<Node, Interrupted>> + use<'a> {
        std::iter::empty()
    }

    fn contains_internal_graph_name(&self, _: &Node) -> Result<bool, Interrupted> {
        Ok(false)
    }

    fn internalize_term(&self, term: oxrdf::Term) -> Result<Node, Interrupted> {
        self.watch.tick()?;
        Ok(self
            .record(self.find(&term))?
            .unwrap_or_else(|| Node::Other(Arc::new(term))))
    }

    fn externalize_term(&self, node: Node) -> Result<oxrdf::Term, Interrupted> {
        self.watch.tick()?;
        let term = match node {
            Node::Entity(entity) => self.store.entity_term(entity),
            Node::Relation(relation) => self.store.relation_term(relation),
            Node::Other(term) => return Ok(Arc::unwrap_or_clone(term)),
        };
        Ok(self.rdf_term(self.record(term)?))
    }

    fn internal_term_effective_boolean_value(
        &self,
        node: Node,
    ) -> Result<Option<bool>, Interrupted> {
        // only literals are true or false, and ids tell them apart
        if matches!(&node, Node::Entity(entity) if !self.store.is_literal(*entity))
            || matches!(&node, Node::Relation(_))
        {
            return Ok(None);
        }
        Ok(match self.externalize_expression_term(node)? {
            ExpressionTerm::BooleanLiteral(value) => Some(value.into()),
            ExpressionTerm::StringLiteral(value) => Some(!value.is_empty()),
            ExpressionTerm::FloatLiteral(value) => Some(f32::from(value) != 0.0 && !value.is_nan()),
            ExpressionTerm::DoubleLiteral(value) => {
                Some(f64::from(value) != 0.0 && !value.is_nan())
            }
            ExpressionTerm::IntegerLiteral(value) => Some(i64::from(value) != 0),
            ExpressionTerm::DecimalLiteral(value) => Some(value != Default::default()),
            _ => None,
        })
    }
}

/// Where the triples of a pattern come from.
enum QuadSource<'a> {
    One(Option<Triple>),
    /// From a head, perhaps to a certain tail only.
    Outgoing(EntityId, slice::Iter<'a, Edge>, Option<EntityId>),
    /// To a tail, perhaps from a certain head only.
    Incoming(EntityId, slice::Iter<'a, Edge>, Option<EntityId>),
    Many(Box<dyn Iterator<Item = Result<Triple>> + 'a>),
}

impl<'a> QuadSource<'a> {
    fn outgoing(head: EntityId, edges: &'a [Edge]) -> Self {
        QuadSource::Outgoing(head, edges.iter(), None)
    }

    fn incoming(tail: EntityId, edges: &'a [Edge]) -> Self {
        QuadSource::Incoming(tail, edges.iter(), None)
    }

    fn next(&mut self) -> Option<Result<Triple>> {
        let wanted = |edge: &&Edge, end: &Option<EntityId>| end.is_none_or(|e| e == edge.entity);
        match self {
            QuadSource::One(triple) => triple.take().map(Ok),
            QuadSource::Outgoing(head, edges, end) => {
                let edge = edges.find(|edge| wanted(edge, end))?;
                Some(Ok(Triple {
                    head: *head,
                    relation: edge.relation,
                    tail: edge.entity,
                }))
            }
            QuadSource::Incoming(tail, edges, end) => {
                let edge = edges.find(|edge| wanted(edge, end))?;
                Some(Ok(Triple {
                    head: edge.entity,
                    relation: edge.relation,
                    tail: *tail,
                }))
            }
            QuadSource::Many(triples) => triples.next(),
        }
    }
}

/// Triples of one pattern. Ends after the first error, whatever the clock says then: operators
/// that collect read until the end.
struct Quads<'a> {
    source: Result<QuadSource<'a>, Interrupted>,
    dataset: GraphDataset<'a>,
    over: bool,
}

impl Iterator for Quads<'_> {
    type Item = Result<InternalQuad<Node>, Interrupted>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let quad = self.read().transpose();
        self.over = !matches!(quad, Some(Ok(_)));
        quad
    }
}

impl Quads<'_> {
    fn read(&mut self) -> Result<Option<InternalQuad<Node>>, Interrupted> {
        self.dataset.watch.tick()?;
        let source = self.source.as_mut().map_err(|_| Interrupted)?;
        let Some(triple) = source.next() else {
            return Ok(None);
        };
        let quad = triple.and_then(|triple| {
            Ok(InternalQuad {
                subject: Node::Entity(triple.head),
                predicate: self.dataset.predicate(triple.relation)?,
                object: Node::Entity(triple.tail),
                graph_name: None,
            })
        });
        self.dataset.record(quad).map(Some)
    }
}
