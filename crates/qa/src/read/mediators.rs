//! Relations through nodes that nobody names: `price` leads to a node with an `amount` and a
//! `currency`, a performance joins an actor, a film and a part.
//!
//! Two steps through such a node are one relation more, with a number of its own above those of the
//! graph; the steps into the node alone are asked for by nobody.

use hashbrown::HashMap;
use wherefore_graph::{EntityId, Graph, RelationId, Term};

use super::lang::Lang;
use super::schema::{Schema, by_relation, kind_of};
use super::vocabulary::{Kind, Relation, Step};
use crate::error::Result;

/// Triples of a relation that are looked at.
const SAMPLE: usize = 64;
/// The share of a relation's ends that have to be such nodes.
const MOST: f32 = 0.6;
/// The share of such nodes that have to have a relation for it to be a second step.
const USUAL: f32 = 0.2;
/// Relations through such nodes at most.
const MAX_MEDIATED: usize = 500;

impl Schema {
    /// Adds the relations of two steps.
    pub(super) fn read_mediators(&mut self, graph: &dyn Graph, lang: &Lang) -> Result<()> {
        let mut found: Vec<[Step; 2]> = Vec::new();
        let mut into: Vec<RelationId> = Vec::new();
        for id in 0..self.relations.len() {
            let relation = RelationId(id as u32);
            if self.relation(relation).is_silent {
                continue;
            }
            for forward in [true, false] {
                if forward && self.relation(relation).kind != Kind::Thing {
                    continue;
                }
                let Some(next) = self.beyond(relation, forward, graph)? else {
                    continue;
                };
                into.push(relation);
                found.extend(next.into_iter().map(|step| [(relation, forward), step]));
            }
        }
        for steps in found.into_iter().take(MAX_MEDIATED) {
            let relation = self.mediated(steps, lang);
            let id = RelationId(self.relations.len() as u32);
            self.relations.push(relation);
            self.mediated.push(steps);
            self.index_relation(id, lang);
        }
        for relation in into {
            self.relations[relation.index()].is_silent = true;
            self.relations[relation.index()].is_inner = true;
        }
        Ok(())
    }

    /// Where a relation leads to such nodes: the usual steps on from them, but for the way back.
    fn beyond(
        &self,
        relation: RelationId,
        forward: bool,
        graph: &dyn Graph,
    ) -> Result<Option<Vec<Step>>> {
        let (mut seen, mut nodes) = (0usize, Vec::new());
        let mut last = None;
        for triple in graph.with_relation(relation)?.take(SAMPLE) {
            let triple = triple?;
            let end = if forward { triple.tail } else { triple.head };
            if last == Some(end) {
                continue;
            }
            last = Some(end);
            seen += 1;
            if self.is_mediator(end, relation, graph)? {
                nodes.push(end);
            }
        }
        if nodes.is_empty() || (nodes.len() as f32) < MOST * seen as f32 {
            return Ok(None);
        }
        let mut counts: HashMap<RelationId, usize> = HashMap::new();
        for &node in &nodes {
            for (next, _) in by_relation(&graph.outgoing(node)?) {
                let known = self.relation(next);
                if !known.is_silent && (next != relation || forward) {
                    *counts.entry(next).or_insert(0) += 1;
                }
            }
        }
        let usual = |n: &usize| *n as f32 >= USUAL * nodes.len() as f32;
        let mut steps: Vec<Step> = counts
            .into_iter()
            .filter(|(_, n)| usual(n))
            .map(|(next, _)| (next, true))
            .collect();
        steps.sort_unstable();
        Ok((!steps.is_empty()).then_some(steps))
    }

    /// Whether a node only holds others together: it has no name of its own, and either nothing
    /// but an id to go by, or one owner, values, and no class but that of its relation.
    fn is_mediator(
        &self,
        entity: EntityId,
        relation: RelationId,
        graph: &dyn Graph,
    ) -> Result<bool> {
        if kind_of(&graph.entity_term(entity)?) != Kind::Thing || self.class_of(entity).is_some() {
            return Ok(false);
        }
        let row = graph.outgoing(entity)?;
        let naming = graph.naming_relations();
        if row.iter().any(|edge| naming.contains(&edge.relation)) {
            return Ok(false);
        }
        let says = |r: RelationId| !self.relation(r).is_silent;
        if !row.iter().any(|edge| says(edge.relation)) {
            return Ok(false);
        }
        if !graph.is_named(entity)? {
            return Ok(true);
        }
        // in a graph that names its things, this one has no name
        let own = &self.relation(relation).stems;
        for class in self.types_of(graph, entity)? {
            let stems = &self.classes[class as usize].stems;
            if !own.iter().all(|stem| stems.contains(stem)) {
                return Ok(false);
            }
        }
        if naming.is_empty() || matches!(graph.entity_term(entity)?, Term::Name(_)) {
            return Ok(false);
        }
        let has_value = row.iter().any(|edge| {
            let kind = self.relation(edge.relation).kind;
            says(edge.relation) && kind.is_measure()
        });
        Ok(has_value && graph.incoming(entity)?.len() == 1)
    }

    fn mediated(&self, [first, second]: [Step; 2], lang: &Lang) -> Relation {
        let (a, b) = (self.relation(first.0), self.relation(second.0));
        // `price / amount` is called a price, `performance / actor` an actor
        let named: Vec<&Relation> = match first.1 {
            true => vec![a, b],
            false => vec![b],
        };
        let (mut stems, mut words) = (Vec::new(), Vec::new());
        for relation in named {
            for (stem, word) in relation.stems.iter().zip(&relation.words) {
                let says = stems.is_empty() || !lang.is_value(stem);
                if says && !stems.contains(stem) {
                    stems.push(stem.clone());
                    words.push(word.clone());
                }
            }
        }
        let side = |relation: &Relation, heads: bool| match heads {
            true => relation.domain.clone(),
            false => relation.range.clone(),
        };
        Relation {
            stems,
            words,
            prepositions: b.prepositions.clone(),
            unit: if second.1 { b.unit.or(a.unit) } else { None },
            flag: b.flag.clone().filter(|_| second.1),
            kind: b.kind,
            is_noun: false,
            is_silent: false,
            is_inner: false,
            domain: side(a, first.1),
            range: side(b, !second.1),
            count: a.count.min(b.count),
        }
    }
}
