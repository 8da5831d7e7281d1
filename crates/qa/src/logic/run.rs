//! Runs a form on a graph, and finds the triples that made it match.
//!
//! Sets are computed from the names outward, as sorted ids. Of the operands of an `AND` the one
//! that looks smallest is computed first; the others are computed too where that is cheap, and
//! else each member is tried. What was found out of a part of the form and an entity is remembered,
//! so that no entity is tried twice. Time and the size of every set are limited. A graph that a
//! service holds is not walked through: sets are computed there, as SPARQL, and what is calculated
//! from their members is calculated here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wherefore_graph::{
    Direction, EntityId, Error as GraphError, Graph, RelationId, Service, Triple, edges_by_relation,
};

use super::form::Comparison;
use super::plan::{Members, Node, Plan, Root, Set, Way, node};
use super::rows::Rows;
use super::sparql::{End, members_query, steps_query};
use super::value::{Quantity, Sense, Value, XSD};
use crate::error::{Error, Result};

/// Answers of a service whose triples are fetched together.
pub(super) const AHEAD: usize = 200;

/// How long a form may run and how large its sets may grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Wall-clock time, evidence included.
    pub time: Duration,
    /// Most entities of a set, of those on the way too.
    pub rows: usize,
    /// Most triples that are told as evidence of one answer.
    pub evidence: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(5),
            rows: 1_000_000,
            evidence: 64,
        }
    }
}

/// What a form came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The entities of its set, sorted.
    Entities(Vec<EntityId>),
    /// The number, if there is one, and what was counted or aggregated, sorted.
    Number(Option<Quantity>, Vec<EntityId>),
    /// Yes or no, and what was looked for or counted, sorted.
    Truth(bool, Vec<EntityId>),
    /// Rows.
    Table(Rows),
}

impl Outcome {
    /// The entities: members, what was counted, or those of the rows.
    pub fn entities(&self) -> &[EntityId] {
        match self {
            Outcome::Entities(entities)
            | Outcome::Number(_, entities)
            | Outcome::Truth(_, entities) => entities,
            Outcome::Table(rows) => &rows.members,
        }
    }

    /// Whether there is nothing: no entity, a count of 0, no number, no row. `No` is something.
    pub fn is_empty(&self) -> bool {
        match self {
            Outcome::Number(None, _) => true,
            Outcome::Truth(..) => false,
            other => other.entities().is_empty(),
        }
    }

    /// The identities of what is claimed: of the entities, or of the number, yes or no.
    pub fn claims(&self, graph: &dyn Graph) -> Result<Vec<String>> {
        let entities = match (self.computed(), self) {
            (Some((_, id)), _) => return Ok(vec![id]),
            (None, Outcome::Number(..)) => &[],
            (None, other) => other.entities(),
        };
        let mut claims = Vec::with_capacity(entities.len());
        for &entity in entities {
            claims.push(graph.entity_term(entity)?.to_string());
        }
        Ok(claims)
    }

    /// A number or a truth value: as it is shown, and as a literal.
    pub fn computed(&self) -> Option<(String, String)> {
        let (name, text, datatype) = match self {
            Outcome::Entities(_) | Outcome::Table(_) | Outcome::Number(None, _) => return None,
            Outcome::Number(Some(value), _) => {
                let (text, datatype) = value.literal();
                (text.clone(), text, datatype)
            }
            Outcome::Truth(yes, _) => {
                let name = if *yes { "yes" } else { "no" };
                (name.to_owned(), yes.to_string(), format!("{XSD}boolean"))
            }
        };
        Some((name, format!("\"{text}\"^^<{datatype}>")))
    }
}

/// Runs a plan on the graph that it was tied to.
pub fn run(plan: &Plan, graph: &dyn Graph, limits: &RunLimits) -> Result<Outcome> {
    Runner::new(plan, graph, limits)?.run()
}

/// A plan on its way: what it comes to, and why.
pub struct Runner<'a> {
    pub(super) plan: &'a Plan,
    pub(super) graph: &'a dyn Graph,
    pub(super) limits: &'a RunLimits,
    begun: Instant,
    /// Edges that were looked at.
    looked: usize,
    pub(super) known: Known,
    /// Which entities belong to which parts.
    held: Held,
    /// The same, without ways that meet the entities of its `around`.
    held_around: Held,
    /// Steps by which entities belong to parts, where a service told them.
    told: HashMap<(Node, EntityId), Vec<(EntityId, Triple)>>,
}

/// What was computed of whole parts.
#[derive(Default)]
pub(super) struct Known {
    /// Members of a rank, sorted, each with the value that gave it.
    pub(super) bests: HashMap<Node, Arc<[(EntityId, Quantity)]>>,
    /// Numbers.
    pub(super) numbers: HashMap<Node, Option<Quantity>>,
    /// Sets that something is calculated from.
    extensions: HashMap<Node, Arc<[EntityId]>>,
}

/// What is known of entities and parts.
#[derive(Default)]
struct Held {
    /// Sorted.
    around: Vec<EntityId>,
    known: HashMap<(Node, EntityId), bool>,
}

impl<'a> Runner<'a> {
    /// Ready to run; an error where the graph lacks a name of the form.
    pub fn new(plan: &'a Plan, graph: &'a dyn Graph, limits: &'a RunLimits) -> Result<Self> {
        if !plan.missing().is_empty() {
            return Err(Error::FormNames {
                names: plan.missing().to_vec(),
            });
        }
        Ok(Self {
            plan,
            graph,
            limits,
            begun: Instant::now(),
            looked: 0,
            known: Known::default(),
            held: Held::default(),
            held_around: Held::default(),
            told: HashMap::new(),
        })
    }

    /// What the form comes to; none where that is too much, or takes too long.
    pub fn run_within_limits(&mut self) -> Result<Option<Outcome>> {
        match self.run() {
            Ok(outcome) => Ok(Some(outcome)),
            Err(Error::FormTooLarge { .. }) => Ok(None),
            Err(error) if error.code() == "out-of-time" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the form comes to. Where a service holds the graph, its sets are computed there.
    pub fn run(&mut self) -> Result<Outcome> {
        let plan = self.plan;
        Ok(match &plan.root {
            Root::Set(set) => Outcome::Entities(self.extension(set)?.to_vec()),
            Root::Number(number) => {
                Outcome::Number(self.number(number)?, self.contributors(&[number])?)
            }
            Root::Any(set) => {
                let found = self.extension(set)?;
                Outcome::Truth(!found.is_empty(), found.to_vec())
            }
            Root::Is(is, a, b) => {
                let numbers = self.number(a)?.zip(self.number(b)?);
                let yes = numbers.is_some_and(|(a, b)| is.holds(a.order(&b)));
                Outcome::Truth(yes, self.contributors(&[a, b])?)
            }
            Root::Table(table) => Outcome::Table(self.rows(table)?),
        })
    }

    /// The members of a set, computed once, and where the graph is.
    pub(super) fn extension(&mut self, set: &Set) -> Result<Arc<[EntityId]>> {
        if let Some(known) = self.known.extensions.get(&node(set)) {
            return Ok(Arc::clone(known));
        }
        let told = match self.graph.service() {
            Some(service) => self.members_told(set, service)?,
            None => None,
        };
        let members = match told {
            Some(members) => self.bounded(members)?,
            None => match self.run_there(set)? {
                Some((entities, true)) => {
                    return Err(Error::FormTooLarge {
                        limit: entities.len(),
                    });
                }
                Some((entities, false)) => {
                    // what they are joined to is looked for next
                    let first = entities.len().min(AHEAD);
                    self.graph.prefetch(&entities[..first], Direction::Both)?;
                    entities
                }
                None => self.members(set)?,
            },
        };
        let members: Arc<[EntityId]> = members.into();
        self.known
            .extensions
            .insert(node(set), Arc::clone(&members));
        Ok(members)
    }

    /// What a service makes of a set, if one holds the graph.
    fn run_there(&self, set: &Set) -> Result<Option<(Vec<EntityId>, bool)>> {
        /// Tells a service from other graphs where there is nothing to run.
        const NOTHING: &str = "SELECT ?x WHERE { ?x ?r ?y } LIMIT 0";
        if self.graph.store().is_some() {
            return Ok(None);
        }
        match members_query(set) {
            Ok(query) => Ok(self.graph.run_there(&query, self.limits.rows)?),
            Err(too_long) => match self.graph.run_there(NOTHING, 1)? {
                Some(_) => Err(too_long),
                None => Ok(None),
            },
        }
    }

    /// The members of a set, where the service tells them together with the steps by which they
    /// belong to it: none where it takes no step that all of them take, or where these are many.
    fn members_told(&mut self, set: &Set, service: &Service) -> Result<Option<Vec<EntityId>>> {
        let Some((query, taken)) = steps_query(set) else {
            return Ok(None);
        };
        let mut names = vec!["x"];
        for step in &taken {
            if let End::Variable(name) = &step.to {
                names.push(name);
            }
        }
        let Some(rows) = service.select_rows(&query, &names)? else {
            return Ok(None);
        };
        let mut stated = Vec::new();
        for row in &rows {
            let value = |name: &str| names.iter().position(|n| *n == name).map(|at| row[at]);
            for step in &taken {
                let to = match &step.to {
                    End::Variable(name) => value(name),
                    End::Entity(entity) => Some(*entity),
                };
                let (Some(from), Some(to)) = (value(&step.from), to) else {
                    continue;
                };
                let (head, tail) = if step.reversed {
                    (to, from)
                } else {
                    (from, to)
                };
                let triple = Triple {
                    head,
                    relation: step.relation,
                    tail,
                };
                stated.push(triple);
                let steps = self.told.entry((step.by, from)).or_default();
                steps.push((to, triple));
            }
        }
        for steps in self.told.values_mut() {
            steps.sort_unstable();
            steps.dedup();
        }
        service.note_stated(&stated);
        Ok(Some(rows.iter().map(|row| row[0]).collect()))
    }

    /// Steps by which an entity may belong to a part: those that were told, or all.
    pub(super) fn steps_within(
        &mut self,
        part: &Set,
        entity: EntityId,
        way: &Way,
    ) -> Result<Vec<(EntityId, Triple)>> {
        match self.told.get(&(node(part), entity)) {
            Some(steps) => Ok(steps.clone()),
            None => self.steps_from(entity, way),
        }
    }

    /// Whether an entity matches without a way that comes back through one of `named`, sorted: the
    /// year of another film by the same director, and not of the film that was asked about. What is
    /// counted or stands in a table is never told apart.
    pub fn leads_on(&mut self, entity: EntityId, named: &[EntityId]) -> Result<bool> {
        let plan = self.plan;
        match &plan.root {
            Root::Set(set) => self.holds(entity, set, named),
            _ => Ok(true),
        }
    }

    pub(super) fn tick(&mut self, edges: usize) -> Result<()> {
        const BETWEEN: usize = 4096;
        let before = self.looked / BETWEEN;
        self.looked += edges + 1;
        if self.looked / BETWEEN > before && self.begun.elapsed() > self.limits.time {
            return Err(Error::Graph(GraphError::OutOfTime {
                what: "the logical form",
                limit_ms: self.limits.time.as_millis(),
            }));
        }
        Ok(())
    }

    pub(super) fn bounded(&self, mut set: Vec<EntityId>) -> Result<Vec<EntityId>> {
        set.sort_unstable();
        set.dedup();
        if set.len() > self.limits.rows {
            return Err(Error::FormTooLarge {
                limit: self.limits.rows,
            });
        }
        Ok(set)
    }

    pub(super) fn members(&mut self, set: &Set) -> Result<Vec<EntityId>> {
        match set {
            Set::Of(members) => Ok(members.ids.clone()),
            Set::Instances(ways, class) => {
                let mut found = Vec::new();
                for way in ways {
                    self.step_into(way, &class.ids, &mut found)?;
                }
                self.bounded(found)
            }
            Set::Join(way, of) => {
                let of = self.members(of)?;
                let mut found = Vec::new();
                self.step_into(way, &of, &mut found)?;
                self.bounded(found)
            }
            Set::And(all) => self.intersection(all),
            Set::Or(all) => {
                let mut found = Vec::new();
                for set in all {
                    found.extend(self.members(set)?);
                }
                self.bounded(found)
            }
            Set::Except(of, not) => {
                let of = self.members(of)?;
                self.kept(of, not, false)
            }
            Set::Best { .. } => {
                let best = self.best_of(set)?;
                Ok(best.iter().map(|(entity, _)| *entity).collect())
            }
            Set::Compare { .. } => self.compared(set),
            Set::At { set: of, .. } => {
                let mut held = Vec::new();
                for entity in self.members(of)? {
                    if self.holds_at(entity, set)? {
                        held.push(entity);
                    }
                }
                Ok(held)
            }
        }
    }

    fn intersection(&mut self, all: &[Set]) -> Result<Vec<EntityId>> {
        let mut order: Vec<(usize, &Set)> = Vec::with_capacity(all.len());
        for set in all {
            order.push((self.estimate(set)?, set));
        }
        order.sort_by_key(|&(size, _)| size);
        let mut found: Option<Vec<EntityId>> = None;
        for (_, set) in order {
            found = Some(match found {
                None => self.members(set)?,
                Some(found) => self.kept(found, set, true)?,
            });
        }
        Ok(found.unwrap_or_default())
    }

    /// Those that are in a set, or are not: each is tried, or all of the set is computed, whichever
    /// looks cheaper.
    fn kept(&mut self, mut of: Vec<EntityId>, set: &Set, inside: bool) -> Result<Vec<EntityId>> {
        /// What a member may cost to be tried, against what a set costs to be computed.
        const TRY: usize = 8;
        if of.is_empty() {
            return Ok(of);
        }
        if of.len().saturating_mul(TRY) < self.estimate(set)? && is_local(set) {
            let mut kept = Vec::new();
            for entity in of {
                if self.holds(entity, set, &[])? == inside {
                    kept.push(entity);
                }
            }
            return Ok(kept);
        }
        let other = self.members(set)?;
        of.retain(|entity| other.binary_search(entity).is_ok() == inside);
        Ok(of)
    }

    /// About how many triples have to be looked at to compute the set.
    fn estimate(&self, set: &Set) -> Result<usize> {
        Ok(match set {
            Set::Of(members) => members.ids.len(),
            Set::Instances(ways, class) => {
                let mut size = 0;
                for way in ways {
                    size += self.first_step(way, class)?;
                }
                size
            }
            Set::Join(way, of) => match &**of {
                Set::Of(members) => self.first_step(way, members)?,
                of => self.estimate(of)?.saturating_mul(4),
            },
            Set::And(all) => {
                let mut least = usize::MAX;
                for set in all {
                    least = least.min(self.estimate(set)?);
                }
                least
            }
            Set::Or(all) => {
                let mut sum = 0usize;
                for set in all {
                    sum = sum.saturating_add(self.estimate(set)?);
                }
                sum
            }
            Set::Best { among: of, .. } | Set::Except(of, _) | Set::At { set: of, .. } => {
                self.estimate(of)?
            }
            // everything, or a whole relation
            Set::Compare { .. } if set.is_open() => usize::MAX,
            Set::Compare { .. } => usize::MAX - 1,
        })
    }

    fn first_step(&self, way: &Way, from: &Members) -> Result<usize> {
        let mut size = 0;
        for &entity in &from.ids {
            let row = if way.reversed {
                self.graph.outgoing(entity)?
            } else {
                self.graph.incoming(entity)?
            };
            size += edges_by_relation(&row, relation_of(way)?).len();
        }
        Ok(size)
    }

    /// The entities x with (x, r, y), or (y, r, x) for a reversed way, for the given y.
    pub(super) fn step_into(
        &mut self,
        way: &Way,
        ends: &[EntityId],
        found: &mut Vec<EntityId>,
    ) -> Result<()> {
        let relation = relation_of(way)?;
        for &entity in ends {
            let row = if way.reversed {
                self.graph.outgoing(entity)?
            } else {
                self.graph.incoming(entity)?
            };
            let edges = edges_by_relation(&row, relation);
            self.tick(edges.len())?;
            found.extend(edges.iter().map(|e| e.entity));
            // duplicates may hide how large the set really is
            if found.len() > self.limits.rows.saturating_mul(2) {
                found.sort_unstable();
                found.dedup();
                if found.len() > self.limits.rows {
                    return Err(Error::FormTooLarge {
                        limit: self.limits.rows,
                    });
                }
            }
        }
        Ok(())
    }

    /// The triples by which an entity x is joined to some y along a way, with y.
    pub(super) fn steps_from(
        &mut self,
        entity: EntityId,
        way: &Way,
    ) -> Result<Vec<(EntityId, Triple)>> {
        let relation = relation_of(way)?;
        let row = if way.reversed {
            self.graph.incoming(entity)?
        } else {
            self.graph.outgoing(entity)?
        };
        let edges = edges_by_relation(&row, relation);
        let steps = edges
            .iter()
            .map(|e| {
                let (head, tail) = match way.reversed {
                    true => (e.entity, entity),
                    false => (entity, e.entity),
                };
                let triple = Triple {
                    head,
                    relation,
                    tail,
                };
                (e.entity, triple)
            })
            .collect::<Vec<_>>();
        self.tick(steps.len())?;
        Ok(steps)
    }

    /// The entities that several ways lead to, each with one path to it.
    pub(super) fn ends(
        &mut self,
        entity: EntityId,
        by: &[Way],
    ) -> Result<Vec<(EntityId, Vec<Triple>)>> {
        let mut ends = vec![(entity, Vec::new())];
        for way in by {
            let mut next: Vec<(EntityId, Vec<Triple>)> = Vec::new();
            for (from, path) in ends {
                for (to, triple) in self.steps_from(from, way)? {
                    let mut path = path.clone();
                    path.push(triple);
                    next.push((to, path));
                }
            }
            next.sort();
            next.dedup_by_key(|(entity, _)| *entity);
            ends = next;
        }
        Ok(ends)
    }

    /// The same without the paths.
    pub(super) fn reached(&mut self, entity: EntityId, by: &[Way]) -> Result<Vec<EntityId>> {
        let mut ends = vec![entity];
        for way in by {
            let mut next = Vec::new();
            for from in ends {
                next.extend(self.steps_from(from, way)?.into_iter().map(|(to, _)| to));
            }
            ends = self.bounded(next)?;
        }
        Ok(ends)
    }

    pub(super) fn quantity(&self, entity: EntityId, sense: Sense) -> Result<Option<Quantity>> {
        Ok(Value::of(&self.graph.entity_term(entity)?).in_sense(sense))
    }

    /// Whether an entity belongs to a set by a way that meets none of `around` (sorted) but at its
    /// beginning, without computing the set.
    pub(super) fn holds(
        &mut self,
        entity: EntityId,
        set: &Set,
        around: &[EntityId],
    ) -> Result<bool> {
        if let Set::Of(members) = set {
            return Ok(members.ids.binary_search(&entity).is_ok());
        }
        let key: (Node, EntityId) = (node(set), entity);
        if let Some(&known) = self.held(around).known.get(&key) {
            return Ok(known);
        }
        let holds = self.tried(entity, set, around)?;
        let most = self.limits.rows;
        let held = self.held(around);
        if held.known.len() < most {
            held.known.insert(key, holds);
        }
        Ok(holds)
    }

    fn held(&mut self, around: &[EntityId]) -> &mut Held {
        if around.is_empty() {
            return &mut self.held;
        }
        if self.held_around.around != around {
            self.held_around = Held {
                around: around.to_vec(),
                known: HashMap::new(),
            };
        }
        &mut self.held_around
    }

    fn tried(&mut self, entity: EntityId, set: &Set, around: &[EntityId]) -> Result<bool> {
        match set {
            Set::Of(members) => Ok(members.ids.binary_search(&entity).is_ok()),
            Set::Instances(ways, class) => {
                for way in ways {
                    for (end, _) in self.steps_within(set, entity, way)? {
                        if class.ids.binary_search(&end).is_ok() {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            Set::Join(way, of) => {
                let begins = matches!(**of, Set::Of(_));
                for (end, _) in self.steps_within(set, entity, way)? {
                    let meets = !begins && around.binary_search(&end).is_ok();
                    if !meets && self.holds(end, of, around)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Set::And(all) => {
                for set in all {
                    if !self.holds(entity, set, around)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Set::Or(all) => {
                for set in all {
                    if self.holds(entity, set, around)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Set::Except(of, not) => {
                Ok(self.holds(entity, of, around)? && !self.holds(entity, not, &[])?)
            }
            Set::Compare { is, by, than } => Ok(self.passing(entity, *is, by, than)?.is_some()),
            Set::At { set: of, .. } => {
                Ok(self.holds(entity, of, around)? && self.holds_at(entity, set)?)
            }
            Set::Best { .. } => {
                let best = self.best_of(set)?;
                Ok(best.binary_search_by_key(&entity, |(e, _)| *e).is_ok())
            }
        }
    }

    /// Whether the time of an `At` fits, wherever the entity comes from.
    fn holds_at(&mut self, entity: EntityId, set: &Set) -> Result<bool> {
        Ok(self.period(entity, set)?.is_some())
    }

    /// The triples that tell when an entity holds; none if the time does not fit.
    pub(super) fn period(&mut self, entity: EntityId, set: &Set) -> Result<Option<Vec<Triple>>> {
        let Set::At {
            start,
            end,
            first,
            last,
            ..
        } = set
        else {
            return Ok(Some(Vec::new()));
        };
        let mut told = Vec::new();
        for (way, is, than) in [
            (start, Comparison::AtMost, *last),
            (end, Comparison::AtLeast, *first),
        ] {
            let Some(way) = way else { continue };
            let steps = self.steps_from(entity, way)?;
            let mut fits = steps.is_empty();
            for (value, triple) in steps {
                let value = self.quantity(value, Sense::Time)?;
                if is.holds(value.and_then(|v| v.partial_cmp(&Quantity::Time(than)))) {
                    told.push(triple);
                    fits = true;
                    break;
                }
            }
            if !fits {
                return Ok(None);
            }
        }
        Ok(Some(told))
    }
}

/// Whether membership can be tried entity by entity.
fn is_local(set: &Set) -> bool {
    match set {
        Set::Best { .. } => false,
        Set::Join(_, of) => is_local(of),
        Set::And(all) | Set::Or(all) => all.iter().all(is_local),
        Set::Except(of, not) => is_local(of) && is_local(not),
        Set::At { set, .. } => is_local(set),
        Set::Of(_) | Set::Instances(..) | Set::Compare { .. } => true,
    }
}

pub(super) fn relation_of(way: &Way) -> Result<RelationId> {
    way.relation.ok_or_else(|| Error::FormNames {
        names: vec![format!("relation `{}`", way.term)],
    })
}
