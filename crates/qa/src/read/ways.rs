//! What has to do with what, though no word says by which relation.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashSet;
use wherefore_graph::{Direction, EntityId, RelationId};

use super::arena::{Id, Meaning, Measure, Node};
use super::cat::Cat;
use super::features::Feature as F;
use super::schema::Runs;
use super::search::{Anchor, Bridge, Counted, Own, Search, Weighed};
use super::vocabulary::{ClassIx, Kind, Step};
use crate::error::Result;

/// Ways between two sets that are tried.
const BRIDGES: usize = 5;
/// Relations from which on those far from the names are left out.
const MANY: usize = 200;
/// Steps from a name that are near, and edges that are looked at for them.
const REACH: usize = 3;
const MAX_REACH: usize = 20_000;
/// Ways that are followed further, and classes that each leads on to.
const WAYS_ON: usize = 200;
const NEXT: usize = 100;
/// Members of a set whose relations are looked at.
const LOOKED_AROUND: usize = 16;
/// A direct way that a smaller share of the things has is no reason not to look for longer ones.
const USUAL: f32 = 0.02;

/// A class that a way leads to, its steps, and how often the rarest of them is taken.
type Way = (ClassIx, Vec<Step>, u32);

impl Search<'_> {
    /// Whether a quarter of a set or more are things of a group, where things have no classes; true
    /// where neither is a group, or one is more than can be told.
    fn is_partly_within(&mut self, a: Id, b: Id) -> Result<bool> {
        let (set, group) = match (self.arena.node(a), self.arena.node(b)) {
            _ if !self.schema.is_untyped => return Ok(true),
            (Node::Side(..), Node::Side(..)) => return Ok(true),
            (Node::Side(..), _) => (b, a),
            (_, Node::Side(..)) => (a, b),
            _ => return Ok(true),
        };
        let within = self.within(set, group)?;
        Ok(within.is_none_or(|(shared, all)| shared * 4 >= all))
    }

    /// The sets that a set may be restricted to by another: it itself where both are of one
    /// class, or what an unspoken way leads to from it.
    pub(super) fn restrictions(
        &mut self,
        head: Id,
        other: Id,
        open: Option<RelationId>,
        is_left: bool,
        beside: bool,
    ) -> Result<Weighed> {
        let mut found = Weighed::new();
        let types = self.arena.types(head);
        let others = self.arena.types(other);
        let is_thing = self.arena.kind(other) == Kind::Thing;
        let both_classes = matches!(
            (self.arena.node(head), self.arena.node(other)),
            (Node::Class(_), Node::Class(_))
        );
        let shares = types.iter().any(|t| others.contains(t))
            || types.is_empty() && others.is_empty() && self.schema.typed_by.is_empty();
        let says_again = match (self.arena.node(head), self.arena.node(other)) {
            (Node::Join(step, _), Node::Side(r, tails)) => *step == (*r, *tails),
            _ => false,
        };
        let is_and = is_thing && shares && !both_classes && open.is_none() && head != other;
        if is_and && !says_again && self.is_partly_within(other, head)? {
            found.push((other, vec![(F::and, 1.0)]));
        }
        if let Node::Side(relation, true) = *self.arena.node(head) {
            let step = (relation, true);
            if self.schema.fits(&others, step) {
                found.push((self.arena.add(Node::Join(step, other))?, vec![]));
            }
            if !self.schema.is_untyped {
                return Ok(found);
            }
        }
        if let Some(relation) = open {
            for forward in [true, false] {
                let step = (relation, forward);
                let leads = self.schema.may_lead_to(step, &types);
                if leads && self.schema.fits(&others, step) {
                    found.push((self.arena.add(Node::Join(step, other))?, vec![]));
                }
            }
            return Ok(found);
        }
        // `the film Paper Moons` is that film, or none
        let is_called = beside && !is_left;
        if types.is_empty() && self.schema.is_untyped && self.is_named(other) && !is_called {
            self.ways_between(head, other, &mut found)?;
        }
        for bridge in self.bridges(&types, other)?.iter() {
            let node = self.along(&bridge.path, other)?;
            let mut own = self.unspoken_way(bridge);
            if is_left {
                own.push((F::bridge_left, 1.0));
            }
            if shares {
                own.push((F::bridge_alike, 1.0));
            }
            found.push((node, own));
        }
        Ok(found)
    }

    /// What speaks for an unspoken way and against it.
    fn unspoken_way(&self, bridge: &Bridge) -> Own {
        let way = &bridge.path;
        let mut own = vec![
            (F::bridge, 1.0),
            (F::bridge_hop, way.len() as f32 - 1.0),
            (F::bridge_rare, bridge.rarity),
            (F::bridge_fits, self.way_fits(way)),
        ];
        // `country` goes without saying between a mountain and a country, `highest point` does not
        let says_more = |step: &&Step| {
            let relation = self.schema.relation(step.0);
            let is_place = |stem: &String| self.lang.place_relations.contains(stem);
            !relation.is_noun && !relation.stems.iter().all(is_place)
        };
        let more = way.iter().filter(says_more).count();
        if more > 0 {
            own.push((F::bridge_unsaid, more as f32));
        }
        own
    }

    /// How well the steps of a way fit the whole question, the mean of them.
    fn way_fits(&self, way: &[Step]) -> f32 {
        let sum: f32 = way.iter().map(|step| self.step_fits(*step)).sum();
        sum / way.len().max(1) as f32
    }

    /// Where nothing has a class: the steps from a name that lead to some of a set; to a group of
    /// things also several steps, where one does not.
    fn ways_between(&mut self, head: Id, other: Id, found: &mut Weighed) -> Result<()> {
        let longest = match self.arena.node(head) {
            Node::Side(..) => REACH,
            _ => 1,
        };
        let mut ways: Vec<(Vec<Step>, Id, f32)> = vec![(Vec::new(), other, 0.0)];
        for _ in 0..longest {
            let (mut next, before) = (Vec::new(), found.len());
            for (path, from, rare) in ways {
                for &(step, rarity) in self.ways_from(from)?.iter() {
                    // not straight back
                    if path.last() == Some(&(step.0, !step.1)) {
                        continue;
                    }
                    let join = self.arena.add(Node::Join(step, from))?;
                    // a year is no film, though a film may be called so
                    if self.arena.kind(join).is_measure() != self.arena.kind(head).is_measure() {
                        continue;
                    }
                    let both = self.arena.add(Node::And(head, join))?;
                    let mut path = path.clone();
                    path.push(step);
                    match self.arena.meaning(both)? {
                        Meaning::Set(kept) if !kept.is_empty() => {
                            let own = vec![
                                (F::bridge, 1.0),
                                (F::bridge_hop, path.len() as f32 - 1.0),
                                (F::bridge_rare, rare + rarity),
                                (F::bridge_fits, self.way_fits(&path)),
                            ];
                            found.push((join, own));
                        }
                        _ => next.push((path, join, rare + rarity)),
                    }
                }
            }
            if found.len() > before {
                break;
            }
            next.sort_by(|a, b| a.2.total_cmp(&b.2));
            next.truncate(BRIDGES);
            ways = next;
        }
        Ok(())
    }

    /// Unspoken ways from a set to things of some classes, the usual ones first.
    pub(super) fn bridges(&mut self, types: &Rc<[ClassIx]>, from: Id) -> Result<Rc<[Bridge]>> {
        let key = (Rc::clone(types), from);
        if let Some(known) = self.known_bridges.get(&key) {
            return Ok(Rc::clone(known));
        }
        let mut counted: Vec<(Vec<Step>, f32)> = Vec::new();
        if !types.is_empty() {
            let named = |node: Id| match self.arena.node(node) {
                Node::Ents(all) => Some(all.to_vec()),
                _ => None,
            };
            // `players who are Nigerian or Portuguese`
            let all = match *self.arena.node(from) {
                Node::Or(a, b) => named(a).zip(named(b)).map(|(a, b)| [a, b].concat()),
                _ => named(from),
            };
            if let Some(all) = all.filter(|all| all.len() <= 4) {
                counted = self.around(&all, types)?;
            } else {
                let others = self.arena.types(from);
                for &class in types.iter() {
                    for &other in others.iter() {
                        let back = self.schema.joins(class, other).iter();
                        let on = self.schema.joins(other, class).iter();
                        let back = back.map(|&(r, n)| (vec![(r, false)], n as f32));
                        counted.extend(back);
                        counted.extend(on.map(|&(r, n)| (vec![(r, true)], n as f32)));
                    }
                }
            }
            let classes = types
                .iter()
                .map(|c| self.schema.classes[*c as usize].instances);
            let things = classes.max().unwrap_or(0) as f32;
            let most = counted.iter().map(|c| c.1).fold(0.0, f32::max);
            if most < USUAL * things && !self.schema.is_untyped {
                let starts = self.starts(from)?;
                counted.extend(self.longer_ways(types, starts));
            }
        }
        counted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut seen = HashSet::new();
        counted.retain(|(path, _)| seen.insert(path.clone()));
        let most = counted.first().map_or(1.0, |c| c.1);
        let found: Rc<[Bridge]> = counted
            .into_iter()
            .take(BRIDGES)
            .map(|(path, count)| Bridge {
                path,
                rarity: (most / count.max(1e-6)).ln(),
            })
            .collect();
        self.known_bridges.insert(key, Rc::clone(&found));
        Ok(found)
    }

    /// The relations around some entities that lead to things of some classes.
    pub(super) fn around(
        &self,
        all: &[EntityId],
        types: &[ClassIx],
    ) -> Result<Vec<(Vec<Step>, f32)>> {
        let mut counts: hashbrown::HashMap<Step, f32> = hashbrown::HashMap::new();
        self.graph.prefetch(all, Direction::Both)?;
        for &entity in all {
            let own = self.schema.types_of(self.graph, entity)?;
            for forward in [true, false] {
                for (relation, all, _) in Runs::of(self.graph, entity, forward)?.each() {
                    if !self.schema.relation(relation).is_silent
                        && let Some(count) = self.usual(relation, forward, &own, types)
                    {
                        let count = match own.is_empty() {
                            true => all as f32,
                            false => count,
                        };
                        *counts.entry((relation, forward)).or_insert(0.0) += count;
                    }
                }
            }
        }
        Ok(counts
            .into_iter()
            .map(|(step, n)| (vec![step], n))
            .collect())
    }

    /// In a graph of many relations and no classes: those that lie within some steps of the names.
    pub(super) fn reach(&self, names: &[Anchor]) -> Result<Option<HashSet<RelationId>>> {
        if !self.schema.is_untyped || self.schema.relations.len() < MANY {
            return Ok(None);
        }
        let mut found = HashSet::new();
        let mut at: Vec<EntityId> = self.given.clone();
        for name in names {
            if let Cat::Set { node, .. } = name.cat
                && let Node::Ents(all) = self.arena.node(node)
            {
                at.extend(all.iter());
            }
        }
        let mut seen: HashSet<EntityId> = at.iter().copied().collect();
        let mut edges = 0;
        for _ in 0..REACH {
            let mut next = Vec::new();
            self.graph.prefetch(&at, Direction::Both)?;
            for &entity in &at {
                for forward in [true, false] {
                    for (relation, all, run) in Runs::of(self.graph, entity, forward)?.each() {
                        found.insert(relation);
                        edges += all;
                        let ends = run.iter().map(|edge| edge.entity);
                        next.extend(ends.take(LOOKED_AROUND).filter(|e| seen.insert(*e)));
                    }
                }
                if edges > MAX_REACH {
                    return Ok(Some(found));
                }
            }
            at = next;
        }
        Ok(Some(found))
    }

    /// Whether a relation, or the first step of it, lies near the names of the question.
    pub(super) fn is_within_reach(&self, relation: RelationId) -> bool {
        let Some(reach) = &self.within_reach else {
            return true;
        };
        let (first, second) = self.schema.steps((relation, true));
        reach.contains(&first.0) && second.is_none_or(|s| reach.contains(&s.0))
    }

    /// The steps that lead on from the first of some entities, with how many edges each has.
    pub(super) fn steps_around(&self, all: &[EntityId]) -> Result<Vec<(Step, f32)>> {
        let mut counts: hashbrown::HashMap<Step, f32> = hashbrown::HashMap::new();
        let some = &all[..all.len().min(LOOKED_AROUND)];
        self.graph.prefetch(some, Direction::Both)?;
        for &entity in some {
            for forward in [true, false] {
                for (relation, all, _) in Runs::of(self.graph, entity, forward)?.each() {
                    if !self.schema.relation(relation).is_silent {
                        *counts.entry((relation, forward)).or_insert(0.0) += all as f32;
                    }
                }
            }
        }
        Ok(counts.into_iter().collect())
    }

    /// How often a relation joins things of some classes, from the first to the second where it
    /// is followed forward; none where it does not.
    pub(super) fn usual(
        &self,
        relation: RelationId,
        forward: bool,
        from: &[ClassIx],
        to: &[ClassIx],
    ) -> Option<f32> {
        if from.is_empty() {
            let leads = self.schema.may_lead_to((relation, forward), to);
            return leads.then_some(1.0);
        }
        let mut most = None;
        for &a in from {
            for &b in to {
                let joins = match forward {
                    true => self.schema.joins(a, b),
                    false => self.schema.joins(b, a),
                };
                let count = joins
                    .iter()
                    .find(|(r, _)| *r == relation)
                    .map(|j| j.1 as f32);
                most = match (most, count) {
                    (Some(m), Some(c)) => Some(f32::max(m, c)),
                    (m, c) => m.or(c),
                };
            }
        }
        most
    }

    /// Where ways from a set begin: its classes, or where it has none, as values have not, those of
    /// the things that have it.
    fn starts(&mut self, from: Id) -> Result<Vec<Way>> {
        let types = self.arena.types(from);
        if !types.is_empty() {
            let of_class = |class: &ClassIx| (*class, Vec::new(), u32::MAX);
            return Ok(types.iter().map(of_class).collect());
        }
        let Some(all) = self.arena.members(from)?.filter(|all| all.len() <= 4) else {
            return Ok(Vec::new());
        };
        let mut counts: BTreeMap<(ClassIx, RelationId), u32> = BTreeMap::new();
        for &entity in all.iter() {
            for (relation, _, run) in Runs::of(self.graph, entity, false)?.each() {
                if self.schema.relation(relation).is_silent {
                    continue;
                }
                for edge in run.iter().take(LOOKED_AROUND) {
                    for class in self.schema.types_of(self.graph, edge.entity)? {
                        *counts.entry((class, relation)).or_insert(0) += 1;
                    }
                }
            }
        }
        let way = |((class, relation), count)| (class, vec![(relation, false)], count);
        Ok(counts.into_iter().map(way).collect())
    }

    /// Ways of two relations, or of three where there are none.
    fn longer_ways(&self, types: &[ClassIx], starts: Vec<Way>) -> Vec<(Vec<Step>, f32)> {
        let begun = starts.first().map_or(0, |(_, path, _)| path.len());
        let mut ways = starts;
        for length in begun + 1..=3 {
            let mut next: Vec<Way> = Vec::new();
            for (class, path, count) in &ways {
                for &(to, step, n) in self.schema.next_to(*class).iter().take(NEXT) {
                    // not straight back
                    if path.last() == Some(&(step.0, !step.1)) {
                        continue;
                    }
                    let mut path = path.clone();
                    path.push(step);
                    next.push((to, path, n.min(*count)));
                }
            }
            let order = |a: &Way, b: &Way| b.2.cmp(&a.2).then((&a.1, a.0).cmp(&(&b.1, b.0)));
            if next.len() > WAYS_ON {
                next.select_nth_unstable_by(WAYS_ON, order);
                next.truncate(WAYS_ON);
            }
            next.sort_unstable_by(order);
            let arrived = next.iter().filter(|w| length > 1 && types.contains(&w.0));
            let arrived: Vec<(Vec<Step>, f32)> = arrived
                .map(|(_, path, count)| (path.clone(), *count as f32))
                .collect();
            if !arrived.is_empty() {
                return arrived;
            }
            ways = next;
        }
        Vec::new()
    }

    /// How members of a set may be counted by their ways to another.
    pub(super) fn counts(
        &mut self,
        node: Id,
        of: Id,
        via: Option<RelationId>,
    ) -> Result<Vec<Counted>> {
        let mut found = Vec::new();
        let types = self.arena.types(node);
        let others = self.arena.types(of);
        if let Node::Side(relation, true) = *self.arena.node(node) {
            if self.schema.fits(&others, (relation, true)) {
                let path = Rc::from([(relation, false)]);
                found.push((Measure::HowMany(path, Some(of)), Vec::new()));
            }
            return Ok(found);
        }
        if let Some(relation) = via {
            for forward in [true, false] {
                let step = (relation, forward);
                let leads = self.schema.may_lead_to(step, &others);
                if leads && self.schema.fits(&types, step) {
                    found.push((Measure::HowMany(Rc::from([step]), Some(of)), Vec::new()));
                }
            }
            return Ok(found);
        }
        for bridge in self.bridges(&types, of)?.iter() {
            let back = bridge.path.iter().rev().map(|&(r, forward)| (r, !forward));
            let own = self.unspoken_way(bridge);
            found.push((Measure::HowMany(back.collect(), Some(of)), own));
        }
        Ok(found)
    }
}
