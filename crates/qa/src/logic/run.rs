//! Runs a form on a graph, and finds the triples that made it match.
//!
//! Sets are computed from the names outward, as sorted ids. Of the operands of an `AND` the one
//! that looks smallest is computed first; the others are computed too where that is cheap, and
//! else each member is tried. What was found out of a part of the form and an entity is remembered,
//! so that no entity is tried twice. Time and the size of every set are limited. A graph that a
//! service holds is not walked through: the form runs there, as SPARQL.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wherefore_graph::{
    Direction, EntityId, Error as GraphError, Graph, RelationId, Triple, edges_by_relation,
};

use super::form::{Comparison, Extreme};
use super::plan::{Members, Plan, Set, Test, Way};
use super::value::{Quantity, Sense, Value};
use crate::error::{Error, Result};

/// Answers of a service whose triples are fetched together.
const AHEAD: usize = 100;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The entities of its set, sorted.
    Entities(Vec<EntityId>),
    /// How many there are, and which, sorted.
    Number(usize, Vec<EntityId>),
}

impl Outcome {
    /// The entities, or those that were counted.
    pub fn entities(&self) -> &[EntityId] {
        match self {
            Outcome::Entities(entities) | Outcome::Number(_, entities) => entities,
        }
    }

    /// Whether there is nothing: no entity, or a count of 0.
    pub fn is_empty(&self) -> bool {
        self.entities().is_empty()
    }
}

/// Runs a plan on the graph that it was tied to.
pub fn run(plan: &Plan, graph: &dyn Graph, limits: &RunLimits) -> Result<Outcome> {
    Runner::new(plan, graph, limits)?.run()
}

/// A plan on its way: what it comes to, and why.
pub struct Runner<'a> {
    plan: &'a Plan,
    graph: &'a dyn Graph,
    limits: &'a RunLimits,
    begun: Instant,
    /// Edges that were looked at.
    looked: usize,
    /// The extremes that were computed.
    bests: HashMap<Node, Best>,
    /// Which entities belong to which parts.
    held: Held,
    /// The same, without ways that meet the entities of its `around`.
    held_around: Held,
}

/// A part of the plan, by where it lies: the plan does not move while it runs.
type Node = usize;

/// Members with the best value, sorted, each with the path to it.
type Best = Arc<[(EntityId, Vec<Triple>)]>;

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
            bests: HashMap::new(),
            held: Held::default(),
            held_around: Held::default(),
        })
    }

    /// What the form comes to. Where a service holds the graph, it runs there.
    pub fn run(&mut self) -> Result<Outcome> {
        let entities = match self.run_there()? {
            Some((entities, true)) => {
                return Err(Error::FormTooLarge {
                    limit: entities.len(),
                });
            }
            Some((entities, false)) => {
                // evidence is looked for next
                let first = entities.len().min(AHEAD);
                self.graph.prefetch(&entities[..first], Direction::Both)?;
                entities
            }
            None => self.members(&self.plan.set)?,
        };
        Ok(if self.plan.count {
            Outcome::Number(entities.len(), entities)
        } else {
            Outcome::Entities(entities)
        })
    }

    /// What a service makes of the form, if one holds the graph.
    fn run_there(&self) -> Result<Option<(Vec<EntityId>, bool)>> {
        /// Tells a service from other graphs where there is nothing to run.
        const NOTHING: &str = "SELECT ?x WHERE { ?x ?r ?y } LIMIT 0";
        if self.graph.store().is_some() {
            return Ok(None);
        }
        match self.plan.members_sparql() {
            Ok(query) => Ok(self.graph.run_there(&query, self.limits.rows)?),
            Err(too_long) => match self.graph.run_there(NOTHING, 1)? {
                Some(_) => Err(too_long),
                None => Ok(None),
            },
        }
    }

    /// Triples that make an entity match: from the form's names to the entity, each part of an
    /// `AND` after the other, then what was compared. Empty if it does not match, or if nothing
    /// but its name makes it match.
    pub fn evidence(&mut self, entity: EntityId) -> Result<Vec<Triple>> {
        let mut found = Vec::new();
        if self.holds(entity, &self.plan.set, &[])? {
            self.tell(entity, &self.plan.set, &mut found)?;
        }
        let mut seen = std::collections::HashSet::new();
        found.retain(|triple| seen.insert(*triple));
        found.truncate(self.limits.evidence);
        Ok(found)
    }

    /// Whether an entity matches without a way that comes back through one of `named`, sorted: the
    /// year of another film by the same director, and not of the film that was asked about.
    pub fn leads_on(&mut self, entity: EntityId, named: &[EntityId]) -> Result<bool> {
        self.holds(entity, &self.plan.set, named)
    }

    fn tick(&mut self, edges: usize) -> Result<()> {
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

    fn bounded(&self, mut set: Vec<EntityId>) -> Result<Vec<EntityId>> {
        set.sort_unstable();
        set.dedup();
        if set.len() > self.limits.rows {
            return Err(Error::FormTooLarge {
                limit: self.limits.rows,
            });
        }
        Ok(set)
    }

    fn members(&mut self, set: &Set) -> Result<Vec<EntityId>> {
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
            Set::Best { .. } => {
                let best = self.best_of(set)?;
                Ok(best.iter().map(|(entity, _)| *entity).collect())
            }
            Set::Compare { test, by, than } => self.compared(*test, by, *than),
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
        /// What a member may cost to be tried, against what a set costs to be computed.
        const TRY: usize = 8;
        let mut order: Vec<(usize, &Set)> = Vec::with_capacity(all.len());
        for set in all {
            order.push((self.estimate(set)?, set));
        }
        order.sort_by_key(|&(size, _)| size);
        let mut found: Option<Vec<EntityId>> = None;
        for (size, set) in order {
            found = Some(match found {
                None => self.members(set)?,
                Some(found) if found.is_empty() => return Ok(found),
                Some(mut found) if found.len() * TRY < size && is_local(set) => {
                    let mut failed = None;
                    found.retain(|&entity| match self.holds(entity, set, &[]) {
                        Ok(holds) => holds && failed.is_none(),
                        Err(error) => {
                            failed = Some(error);
                            false
                        }
                    });
                    if let Some(error) = failed {
                        return Err(error);
                    }
                    found
                }
                Some(mut found) => {
                    let other = self.members(set)?;
                    found.retain(|entity| other.binary_search(entity).is_ok());
                    found
                }
            });
        }
        Ok(found.unwrap_or_default())
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
            Set::Best { among, .. } => self.estimate(among)?,
            Set::At { set, .. } => self.estimate(set)?,
            // a whole relation
            Set::Compare { .. } => usize::MAX,
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
    fn step_into(&mut self, way: &Way, ends: &[EntityId], found: &mut Vec<EntityId>) -> Result<()> {
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
    fn steps_from(&mut self, entity: EntityId, way: &Way) -> Result<Vec<(EntityId, Triple)>> {
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
    fn ends(&mut self, entity: EntityId, by: &[Way]) -> Result<Vec<(EntityId, Vec<Triple>)>> {
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

    fn quantity(&self, entity: EntityId, sense: Sense) -> Result<Option<Quantity>> {
        Ok(Value::of(&self.graph.entity_term(entity)?).in_sense(sense))
    }

    /// The members of a `Best`, computed once.
    fn best_of(&mut self, set: &Set) -> Result<Best> {
        let node: Node = std::ptr::from_ref(set).addr();
        if let Some(known) = self.bests.get(&node) {
            return Ok(Arc::clone(known));
        }
        let best = match set {
            Set::Best {
                extreme,
                among,
                by,
                sense,
            } => {
                let among = self.members(among)?;
                self.best(*extreme, &among, by, *sense)?
            }
            _ => Vec::new(),
        };
        let best: Best = best.into();
        self.bests.insert(node, Arc::clone(&best));
        Ok(best)
    }

    /// The members with the best value, with the path to it.
    fn best(
        &mut self,
        extreme: Extreme,
        among: &[EntityId],
        by: &[Way],
        sense: Sense,
    ) -> Result<Vec<(EntityId, Vec<Triple>)>> {
        let mut best: Option<Quantity> = None;
        let mut kept: Vec<(EntityId, Vec<Triple>)> = Vec::new();
        for &entity in among {
            for (end, path) in self.ends(entity, by)? {
                let Some(value) = self.quantity(end, sense)? else {
                    continue;
                };
                let order = best.and_then(|best| value.order(&best));
                let better = match (best, order, extreme) {
                    (None, ..) => true,
                    (_, Some(std::cmp::Ordering::Equal), _) => {
                        if kept.last().is_none_or(|(last, _)| *last != entity) {
                            kept.push((entity, path));
                        }
                        continue;
                    }
                    (_, Some(order), Extreme::Largest) => order.is_gt(),
                    (_, Some(order), Extreme::Smallest) => order.is_lt(),
                    (_, None, _) => false,
                };
                if better {
                    best = Some(value);
                    kept.clear();
                    kept.push((entity, path));
                }
            }
        }
        Ok(kept)
    }

    /// Whatever has a value that passes a test.
    fn compared(&mut self, test: Test, by: &[Way], than: Quantity) -> Result<Vec<EntityId>> {
        let Some((last, before)) = by.split_last() else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        let mut passed: Option<(EntityId, bool)> = None;
        for triple in self.graph.with_relation(relation_of(last)?)? {
            let triple = triple?;
            let (start, end) = match last.reversed {
                true => (triple.tail, triple.head),
                false => (triple.head, triple.tail),
            };
            self.tick(1)?;
            let passes = match passed {
                Some((known, passes)) if known == end => passes,
                _ => passes(test, self.quantity(end, sense_of(than))?, than),
            };
            passed = Some((end, passes));
            if passes {
                found.push(start);
            }
        }
        let mut found = self.bounded(found)?;
        for way in before.iter().rev() {
            let mut next = Vec::new();
            self.step_into(way, &found, &mut next)?;
            found = self.bounded(next)?;
        }
        Ok(found)
    }

    /// Whether an entity belongs to a set by a way that meets none of `around` (sorted) but at its
    /// beginning, without computing the set.
    fn holds(&mut self, entity: EntityId, set: &Set, around: &[EntityId]) -> Result<bool> {
        if let Set::Of(members) = set {
            return Ok(members.ids.binary_search(&entity).is_ok());
        }
        let key: (Node, EntityId) = (std::ptr::from_ref(set).addr(), entity);
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
                    for (end, _) in self.steps_from(entity, way)? {
                        if class.ids.binary_search(&end).is_ok() {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            Set::Join(way, of) => {
                let begins = matches!(**of, Set::Of(_));
                for (end, _) in self.steps_from(entity, way)? {
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
            Set::Compare { test, by, than } => {
                for (end, _) in self.ends(entity, by)? {
                    if passes(*test, self.quantity(end, sense_of(*than))?, *than) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
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
    fn period(&mut self, entity: EntityId, set: &Set) -> Result<Option<Vec<Triple>>> {
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
                if passes(Test::Is(is), value, Quantity::Time(than)) {
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

    /// Adds the triples that make a member one. Every step that is taken adds some, and enough are
    /// told soon.
    fn tell(&mut self, entity: EntityId, set: &Set, found: &mut Vec<Triple>) -> Result<()> {
        if found.len() >= self.limits.evidence {
            return Ok(());
        }
        match set {
            Set::Of(_) => {}
            Set::Instances(ways, class) => {
                for way in ways {
                    for (end, triple) in self.steps_from(entity, way)? {
                        if class.ids.binary_search(&end).is_ok() {
                            found.push(triple);
                            return Ok(());
                        }
                    }
                }
            }
            Set::Join(way, of) => {
                for (end, triple) in self.steps_from(entity, way)? {
                    if self.holds(end, of, &[])? {
                        self.tell(end, of, found)?;
                        found.push(triple);
                        if found.len() >= self.limits.evidence {
                            break;
                        }
                    }
                }
            }
            Set::And(all) => {
                for set in all {
                    self.tell(entity, set, found)?;
                }
            }
            Set::Or(all) => {
                for set in all {
                    if self.holds(entity, set, &[])? {
                        return self.tell(entity, set, found);
                    }
                }
            }
            Set::Compare { test, by, than } => {
                for (end, path) in self.ends(entity, by)? {
                    if passes(*test, self.quantity(end, sense_of(*than))?, *than) {
                        found.extend(path);
                        return Ok(());
                    }
                }
            }
            Set::Best { among, .. } => {
                self.tell(entity, among, found)?;
                let best = self.best_of(set)?;
                if let Ok(place) = best.binary_search_by_key(&entity, |(e, _)| *e) {
                    found.extend(&best[place].1);
                }
            }
            Set::At { set: of, .. } => {
                self.tell(entity, of, found)?;
                found.extend(self.period(entity, set)?.unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// Whether membership can be tried entity by entity.
fn is_local(set: &Set) -> bool {
    match set {
        Set::Best { .. } => false,
        Set::Join(_, of) => is_local(of),
        Set::And(all) | Set::Or(all) => all.iter().all(is_local),
        Set::At { set, .. } => is_local(set),
        Set::Of(_) | Set::Instances(..) | Set::Compare { .. } => true,
    }
}

fn relation_of(way: &Way) -> Result<RelationId> {
    way.relation.ok_or_else(|| Error::FormNames {
        names: vec![format!("relation `{}`", way.term)],
    })
}

fn sense_of(quantity: Quantity) -> Sense {
    match quantity {
        Quantity::Number(_) => Sense::Number,
        Quantity::Time(_) => Sense::Time,
    }
}

fn passes(test: Test, value: Option<Quantity>, than: Quantity) -> bool {
    let Some(order) = value.and_then(|value| value.partial_cmp(&than)) else {
        return false;
    };
    match test {
        Test::Equal => order.is_eq(),
        Test::Is(Comparison::Less) => order.is_lt(),
        Test::Is(Comparison::AtMost) => order.is_le(),
        Test::Is(Comparison::Greater) => order.is_gt(),
        Test::Is(Comparison::AtLeast) => order.is_ge(),
    }
}
