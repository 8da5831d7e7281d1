//! The rules: what two parts beside each other mean together.

use std::rc::Rc;

use hashbrown::HashSet;
use wherefore_graph::{EntityId, RelationId};

use super::arena::{Id, Meaning, Measure, Node, Ranked};
use super::chart::{Bridge, Cat, Item, Made, Search, sorted};
use super::features::Feature as F;
use super::lang::{Gap, Op};
use super::schema::{ClassIx, Kind, Step};
use crate::error::Result;
use crate::logic::{Aggregate, Comparison};

/// Ways between two sets that are tried.
const BRIDGES: usize = 5;
/// A direct way that a smaller share of the things has is no reason not to look for longer ones.
const USUAL: f32 = 0.02;
/// Measures that a superlative may mean.
const MEASURES: usize = 4;

/// A part that came of two sets, and what speaks for it.
type Weighed = Vec<(Id, Vec<(F, f32)>)>;

impl Search<'_> {
    /// What two parts beside each other mean together.
    pub(super) fn combine(&mut self, a: &Item, b: &Item) -> Result<Made> {
        let gap = self.words.gap(a.words.1, b.words.0, self.lang);
        let apart = a.words.1 < b.words.0;
        let mut made = Made::new();
        match (&a.cat, &b.cat) {
            (Cat::Set { .. }, Cat::Set { .. }) => self.two_sets(a, b, gap, &mut made)?,
            (Cat::Relation(r), Cat::Set { .. }) => {
                let plural = self.is_plural(a);
                self.joined(*r, &b.cat, true, plural, apart, gap, &mut made)?;
            }
            (Cat::Set { node, .. }, Cat::Relation(r)) => {
                if matches!(gap, Gap::By | Gap::In)
                    && let Node::Top(of, _, greatest, ranked) = *self.arena.node(*node)
                    && self.is_measured(of, *r)?
                {
                    // `the largest city by population`
                    let by = Measure::Path(Rc::from([(*r, true)]));
                    let top = self.arena.add(Node::Top(of, by, greatest, ranked))?;
                    made.push((Cat::set(top), vec![(F::top_relation, 1.0)]));
                }
                let plural = self.is_plural(b);
                self.joined(*r, &a.cat, false, plural, apart, gap, &mut made)?;
            }
            (Cat::Relation(r), Cat::Relation(s)) if r == s => {
                made.push((Cat::Relation(*r), vec![(F::merged, 1.0)]));
            }
            (Cat::Relation(r), Cat::Relation(s)) if gap == Gap::Of => {
                // `the length of the coastline`, which is a number itself
                let (first, last) = (self.schema.relation(*r), self.schema.relation(*s));
                let measures = self.lang.measures.iter().flatten();
                let is_measure = measures.into_iter().any(|m| first.stems.contains(m));
                let apart = !first
                    .domain
                    .iter()
                    .any(|(c, _)| last.domain.iter().any(|d| d.0 == *c));
                if is_measure && apart && last.kind == Kind::Number {
                    made.push((Cat::Relation(*s), vec![(F::compound, 1.0)]));
                }
            }
            (Cat::Relation(r), Cat::Relation(s)) if a.words.1 == b.words.0 => {
                // `population density`: the last noun is meant, the first says of what
                let (first, last) = (self.schema.relation(*r), self.schema.relation(*s));
                let shares = first
                    .domain
                    .iter()
                    .any(|(c, _)| last.domain.iter().any(|d| d.0 == *c));
                if first.kind == Kind::Number && last.kind == Kind::Number && shares {
                    made.push((Cat::Relation(*s), vec![(F::compound, 1.0)]));
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Superlative(op @ Op::Best(..), ranked),
            ) => {
                // `which river is the longest`
                self.superlative(*op, *ranked, &Cat::set(*node), gap, &mut made)?;
                made.iter_mut()
                    .for_each(|(_, own)| own.push((F::top_after, 1.0)));
            }
            (Cat::Relation(r), Cat::Superlative(Op::Best(greatest, _), ranked)) => {
                // `became independent first`
                if matches!(self.schema.relation(*r).kind, Kind::Number | Kind::Time) {
                    let by = Measure::Path(Rc::from([(*r, true)]));
                    made.push((
                        Cat::Top(*greatest, by, *ranked),
                        vec![(F::top_relation, 1.0)],
                    ));
                }
            }
            (Cat::Superlative(op, ranked), other) => {
                self.superlative(*op, *ranked, other, gap, &mut made)?;
            }
            (Cat::Op(Op::Ordinal(n)), Cat::Superlative(op, _)) => {
                made.push((
                    Cat::Superlative(*op, Ranked::Nth(*n)),
                    vec![(F::ordinal, 1.0)],
                ));
            }
            (Cat::Number(n), Cat::Superlative(op, _)) => self.first_of(*op, *n, &mut made),
            (Cat::Set { node, .. }, Cat::Top(greatest, by, ranked))
            | (Cat::Top(greatest, by, ranked), Cat::Set { node, .. }) => {
                let set_first = matches!(a.cat, Cat::Set { .. });
                self.ranked(*node, *greatest, by, *ranked, set_first, gap, &mut made)?;
            }
            (
                Cat::Set { node, .. },
                Cat::TopCount {
                    greatest,
                    of,
                    via,
                    ranked,
                },
            )
            | (
                Cat::TopCount {
                    greatest,
                    of,
                    via,
                    ranked,
                },
                Cat::Set { node, .. },
            ) => {
                if self.is_named(*node) {
                    return Ok(made);
                }
                for (by, mut own) in self.counts(*node, *of, *via)? {
                    own.push((F::top_count, 1.0));
                    let top = Node::Top(*node, by, *greatest, *ranked);
                    made.push((Cat::set(self.arena.add(top)?), own));
                }
            }
            (
                Cat::Relation(r),
                Cat::TopCount {
                    greatest,
                    of,
                    via: None,
                    ranked,
                },
            )
            | (
                Cat::TopCount {
                    greatest,
                    of,
                    via: None,
                    ranked,
                },
                Cat::Relation(r),
            ) => {
                let (greatest, of, ranked) = (*greatest, *of, *ranked);
                let via = Some(*r);
                made.push((
                    Cat::TopCount {
                        greatest,
                        of,
                        via,
                        ranked,
                    },
                    Vec::new(),
                ));
            }
            (Cat::Op(op), _) => self.operator(*op, &b.cat, gap, &mut made)?,
            (_, Cat::Op(op)) => self.operator_after(*op, &a.cat, &mut made)?,
            (Cat::Set { node, .. }, Cat::With(is_or, other)) => {
                self.conjunction(*node, *is_or, *other, &mut made)?;
            }
            (Cat::Set { node, .. }, Cat::Not(not)) => {
                for (inside, mut own) in self.restrictions(*node, *not, None, false)? {
                    own.push((F::except, 1.0));
                    let except = self.arena.add(Node::Except(*node, inside))?;
                    made.push((Cat::set(except), own));
                }
            }
            (Cat::Relation(r), Cat::Not(not)) | (Cat::Not(not), Cat::Relation(r)) => {
                let mut inner = Made::new();
                let first = matches!(a.cat, Cat::Relation(_));
                self.joined(*r, &Cat::set(*not), first, true, apart, gap, &mut inner)?;
                for (cat, own) in inner {
                    if let Cat::Set { node, .. } = cat {
                        made.push((Cat::Not(node), own));
                    }
                }
            }
            (Cat::NotRelation(r), Cat::Set { .. }) => {
                let mut inner = Made::new();
                self.joined(*r, &b.cat, true, true, apart, gap, &mut inner)?;
                for (cat, own) in inner {
                    if let Cat::Set { node, .. } = cat {
                        made.push((Cat::Not(node), own));
                    }
                }
            }
            (Cat::Set { node, .. }, Cat::NotRelation(r)) => {
                let side = self.arena.add(Node::Side(*r, false))?;
                if self.schema.fits(&self.arena.types(*node), (*r, true)) {
                    let except = self.arena.add(Node::Except(*node, side))?;
                    made.push((Cat::set(except), vec![(F::except, 1.0)]));
                }
            }
            (Cat::Set { node, .. }, Cat::NotFilter(by, is, than)) => {
                if self.measures(*node, by) {
                    let inside = Node::Where(*node, by.clone(), *is, *than);
                    let inside = self.arena.add(inside)?;
                    let except = self.arena.add(Node::Except(*node, inside))?;
                    made.push((Cat::set(except), vec![(F::except, 1.0)]));
                }
            }
            _ => self.numbers(&a.cat, &b.cat, gap, &mut made)?,
        }
        Ok(made)
    }

    fn first_of(&mut self, op: Op, number: Id, made: &mut Made) {
        if let Node::Const(bits) = *self.arena.node(number) {
            let n = f64::from_bits(bits);
            if n.fract() == 0.0 && (1.0..=1000.0).contains(&n) {
                let ranked = Ranked::First(n as u32);
                made.push((Cat::Superlative(op, ranked), vec![(F::ordinal, 1.0)]));
            }
        }
    }

    /// Whether the last word of a part is a plural.
    fn is_plural(&self, item: &Item) -> bool {
        let word = &self.words.all[item.words.1 - 1];
        word.lower.ends_with('s') && word.stem != word.lower && !word.stem.ends_with('s')
    }

    fn two_sets(&mut self, a: &Item, b: &Item, gap: Gap, made: &mut Made) -> Result<()> {
        let (
            Cat::Set {
                node: left,
                open: left_open,
                ..
            },
            Cat::Set {
                node: right,
                open: right_open,
                ..
            },
        ) = (&a.cat, &b.cat)
        else {
            return Ok(());
        };
        let open = left_open.or(*right_open);
        let names = |id: Id| self.is_named(id) || self.is_choice(id);
        let types = (self.arena.types(*left), self.arena.types(*right));
        let alike = types.0.iter().any(|t| types.1.contains(t));
        if names(*left)
            && self.is_named(*right)
            && alike
            && self.words.is_listed(a.words.1, b.words.0)
        {
            // `Norway, Sweden and Denmark`
            let both = self.arena.add(Node::Or(*left, *right))?;
            made.push((Cat::set(both), vec![(F::conjunction_union, 1.0)]));
            return Ok(());
        }
        let plural =
            self.is_class(*left) && self.is_plural(a) || self.is_class(*right) && self.is_plural(b);
        let beside =
            !plural && open.is_none() && self.words.is_beside(a.words.1, b.words.0, self.lang);
        // `rivers through states that border Texas`: it is the states that border Texas
        let far = match *self.arena.node(*left) {
            Node::And(_, inside) => match *self.arena.node(inside) {
                Node::Join(_, inner) if !self.is_named(inner) => {
                    let (types, others) = (self.arena.types(inner), self.arena.types(*right));
                    types.iter().any(|t| others.contains(t))
                }
                _ => false,
            },
            _ => false,
        };
        for (node, mut own) in self.restricted(*left, *right, open, false, beside)? {
            if far {
                own.push((F::attached_far, 1.0));
            }
            made.push((Cat::set(node), own));
        }
        let beside = beside && a.words.1 == b.words.0;
        let possessive = b.words.0 > 0
            && self
                .lang
                .is_possessive(&self.words.all[b.words.0 - 1].lower);
        if gap == Gap::None || possessive {
            for (node, mut own) in self.restricted(*right, *left, open, true, beside)? {
                own.push((F::bridge_left, 1.0));
                made.push((Cat::set(node), own));
            }
        }
        Ok(())
    }

    /// A set, of those members that have to do with another set.
    fn restricted(
        &mut self,
        head: Id,
        other: Id,
        open: Option<RelationId>,
        is_left: bool,
        beside: bool,
    ) -> Result<Weighed> {
        let mut found = Weighed::new();
        let is_thing = |search: &Self, id| search.arena.kind(id) == Kind::Thing;
        if let Node::Ents(all) = self.arena.node(head).clone() {
            if let Node::Class(class) = *self.arena.node(other) {
                // `the Mississippi river`, `the state of Texas`
                let kept = self.of_class(&all, class)?;
                if !kept.is_empty() && beside {
                    let node = self.arena.add(Node::Ents(sorted(kept)))?;
                    found.push((node, vec![(F::apposition, 1.0)]));
                }
                return Ok(found);
            }
            if !self.is_yes_no {
                // `Atlanta, Georgia`: a name among namesakes
                let (types, others) = (self.arena.types(head), self.arena.types(other));
                let alike = types.iter().any(|t| others.contains(t));
                if beside && !is_left && !alike && self.is_named(other) {
                    for (inside, mut own) in self.restrictions(head, other, open, is_left)? {
                        let both = self.arena.add(Node::And(head, inside))?;
                        if let Meaning::Set(kept) = self.arena.meaning(both)?
                            && !kept.is_empty()
                        {
                            own.push((F::apposition, 1.0));
                            found.push((self.arena.add(Node::Ents(kept))?, own));
                        }
                    }
                }
                return Ok(found);
            }
        }
        if let (Node::Class(class), Node::Ents(all)) = (
            self.arena.node(head).clone(),
            self.arena.node(other).clone(),
        ) {
            let kept = self.of_class(&all, class)?;
            if !kept.is_empty() && beside {
                let node = self.arena.add(Node::Ents(sorted(kept)))?;
                found.push((node, vec![(F::apposition, 1.0)]));
            }
        }
        if !is_thing(self, head) && !matches!(self.arena.node(head), Node::Side(..)) {
            return Ok(found);
        }
        for (inside, own) in self.restrictions(head, other, open, is_left)? {
            if inside == other && self.is_named(other) && !self.is_yes_no {
                continue;
            }
            let node = match (self.arena.node(head), self.arena.node(inside)) {
                // what a relation leads to from the other set is within all that it leads to
                (Node::Side(r, true), Node::Join(step, _)) if (*r, true) == *step => inside,
                _ => self.arena.add(Node::And(head, inside))?,
            };
            found.push((node, own));
        }
        if let Node::Top(of, by, greatest, ranked) = self.arena.node(head).clone() {
            for (within, mut own) in self.restricted(of, other, open, is_left, false)? {
                own.push((F::under, 1.0));
                let top = Node::Top(within, by.clone(), greatest, ranked);
                found.push((self.arena.add(top)?, own));
            }
        }
        Ok(found)
    }

    fn of_class(&self, all: &[EntityId], class: ClassIx) -> Result<Vec<EntityId>> {
        let mut kept = Vec::new();
        for &entity in all {
            if self.schema.types_of(self.graph, entity)?.contains(&class) {
                kept.push(entity);
            }
        }
        Ok(kept)
    }

    /// The sets that a set may be restricted to by another: it itself where both are of one
    /// class, or what an unspoken way leads to from it.
    fn restrictions(
        &mut self,
        head: Id,
        other: Id,
        open: Option<RelationId>,
        is_left: bool,
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
        if is_thing && shares && !both_classes && open.is_none() && head != other {
            found.push((other, vec![(F::and, 1.0)]));
        }
        if let Node::Side(relation, true) = *self.arena.node(head) {
            let step = (relation, true);
            if self.schema.fits(&others, step) {
                found.push((self.arena.add(Node::Join(step, other))?, vec![]));
            }
            return Ok(found);
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
        for bridge in self.bridges(&types, other)?.iter() {
            let mut node = other;
            for &step in &bridge.path {
                node = self.arena.add(Node::Join(step, node))?;
            }
            let hops = bridge.path.len() as f32;
            let mut own = vec![
                (F::bridge, 1.0),
                (F::bridge_hop, hops - 1.0),
                (F::bridge_rare, bridge.rarity),
            ];
            if is_left {
                own.push((F::bridge_left, 1.0));
            }
            found.push((node, own));
        }
        Ok(found)
    }

    /// Unspoken ways from a set to things of some classes, the usual ones first.
    fn bridges(&mut self, types: &Rc<[ClassIx]>, from: Id) -> Result<Rc<[Bridge]>> {
        let key = (Rc::clone(types), from);
        if let Some(known) = self.bridges.get(&key) {
            return Ok(Rc::clone(known));
        }
        let mut counted: Vec<(Vec<Step>, f32)> = Vec::new();
        if !types.is_empty() {
            if let Node::Ents(all) = self.arena.node(from).clone()
                && all.len() <= 4
            {
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
            if most < USUAL * things {
                counted.extend(self.longer_ways(types, &self.arena.types(from)));
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
        self.bridges.insert(key, Rc::clone(&found));
        Ok(found)
    }

    /// The relations around some entities that lead to things of some classes.
    fn around(&self, all: &[EntityId], types: &[ClassIx]) -> Result<Vec<(Vec<Step>, f32)>> {
        let mut counts: hashbrown::HashMap<Step, f32> = hashbrown::HashMap::new();
        for &entity in all {
            let own = self.schema.types_of(self.graph, entity)?;
            for forward in [true, false] {
                let row = match forward {
                    true => self.graph.outgoing(entity)?,
                    false => self.graph.incoming(entity)?,
                };
                let mut at = 0;
                // from relation to relation: hubs have long rows
                while let Some(edge) = row.get(at) {
                    let relation = edge.relation;
                    let end = at + row[at..].partition_point(|e| e.relation <= relation);
                    if !self.schema.relation(relation).is_silent
                        && let Some(count) = self.usual(relation, forward, &own, types)
                    {
                        let count = match own.is_empty() {
                            true => (end - at) as f32,
                            false => count,
                        };
                        *counts.entry((relation, forward)).or_insert(0.0) += count;
                    }
                    at = end;
                }
            }
        }
        Ok(counts
            .into_iter()
            .map(|(step, n)| (vec![step], n))
            .collect())
    }

    /// How often a relation joins things of some classes, from the first to the second where it
    /// is followed forward; none where it does not.
    fn usual(
        &self,
        relation: RelationId,
        forward: bool,
        from: &[ClassIx],
        to: &[ClassIx],
    ) -> Option<f32> {
        if from.is_empty() {
            let of = self.schema.relation(relation);
            let side = if forward { &of.range } else { &of.domain };
            return side.iter().any(|(c, _)| to.contains(c)).then_some(1.0);
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

    /// Ways of two relations, or of three where there are none.
    fn longer_ways(&self, types: &[ClassIx], from: &[ClassIx]) -> Vec<(Vec<Step>, f32)> {
        let mut ways: Vec<(ClassIx, Vec<Step>, f32)> = from
            .iter()
            .map(|&class| (class, Vec::new(), f32::MAX))
            .collect();
        for _ in 0..3 {
            let mut next = Vec::new();
            for (class, path, count) in &ways {
                for (to, step, n) in self.schema.next_to(*class) {
                    // not straight back
                    if path.last().is_some_and(|last| *last == (step.0, !step.1)) {
                        continue;
                    }
                    let mut path = path.clone();
                    path.push(step);
                    next.push((to, path, count.min(n as f32)));
                }
            }
            next.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.1.cmp(&b.1)));
            next.truncate(200);
            let arrived: Vec<(Vec<Step>, f32)> = next
                .iter()
                .filter(|(class, path, _)| path.len() > 1 && types.contains(class))
                .map(|(_, path, count)| (path.clone(), *count))
                .collect();
            if !arrived.is_empty() {
                return arrived;
            }
            ways = next;
        }
        Vec::new()
    }

    #[allow(clippy::too_many_arguments, reason = "what stands how beside what")]
    fn joined(
        &mut self,
        relation: RelationId,
        set: &Cat,
        relation_first: bool,
        plural: bool,
        apart: bool,
        gap: Gap,
        made: &mut Made,
    ) -> Result<()> {
        let Cat::Set { node, pair, open } = set else {
            return Ok(());
        };
        if let Node::Side(r, _) = *self.arena.node(*node)
            && r == relation
        {
            return Ok(());
        }
        let (node, pair) = (*node, *pair);
        if open.is_some() {
            return Ok(());
        }
        if let Node::And(_, inside) = *self.arena.node(node)
            && let Node::Join((r, _), _) = *self.arena.node(inside)
            && r == relation
            && !relation_first
        {
            // `countries that have Spanish as an official language`
            made.push((Cat::set(node), vec![(F::confirmed, 1.0)]));
        }
        let types = self.arena.types(node);
        let kind = self.arena.kind(node);
        let mut fits_any = false;
        for forward in [true, false] {
            let step = (relation, forward);
            let fits = match (kind, forward) {
                (Kind::Thing, _) if !types.is_empty() => self.schema.fits(&types, step),
                (Kind::Thing, _) => self.arena.has_step(node, step)?,
                (_, true) => false,
                (_, false) => self.arena.has_step(node, step)?,
            };
            if !fits {
                continue;
            }
            fits_any = true;
            let cue = join_cue(relation_first, gap, forward);
            let mut own = vec![(cue, 1.0)];
            if !relation_first && apart {
                own.push((F::join_apart, 1.0));
            }
            if !relation_first && !self.is_named(node) && !self.is_class(node) {
                own.push((F::join_after_phrase, 1.0));
            }
            if let Node::Join((r, back), _) = *self.arena.node(node)
                && r == relation
                && back != forward
            {
                if kind != Kind::Thing {
                    continue;
                }
                own.push((F::detour, 1.0));
            }
            if !forward && self.schema.relation(relation).is_noun {
                own.push((F::noun_against, 1.0));
            }
            let join = self.arena.add(Node::Join(step, node))?;
            if forward
                && !self.is_named(node)
                && let Some((greatest, by)) = self.extreme_of(relation)
            {
                // `the highest point of the states around`: of all of them, or of each
                let by = Measure::Path(Rc::from([(by, true)]));
                let top = self
                    .arena
                    .add(Node::Top(node, by, greatest, Ranked::Nth(1)))?;
                let best = self.arena.add(Node::Join(step, top))?;
                let mut own = own.clone();
                own.push((F::top_all, 1.0));
                if plural {
                    own.push((F::number_disagrees, 1.0));
                }
                made.push((Cat::set(best), own));
            }
            if !plural && forward && !self.is_named(node) && self.extreme_of(relation).is_some() {
                own.push((F::number_disagrees, 1.0));
            }
            made.push((Cat::set(join), own));
            if let Some((x, y)) = pair {
                let x = self.arena.add(Node::Join(step, x))?;
                let y = self.arena.add(Node::Join(step, y))?;
                let both = self.arena.add(Node::And(x, y))?;
                made.push((Cat::set(both), vec![(cue, 1.0), (F::pair_and, 1.0)]));
            }
        }
        if fits_any
            && !self.is_named(node)
            && let Some((_, greatest)) = self.extreme_word(relation)
            && self.is_measured(node, relation)?
        {
            // `the state with the highest elevation`
            let by = Measure::Path(Rc::from([(relation, true)]));
            let top = self
                .arena
                .add(Node::Top(node, by, greatest, Ranked::Nth(1)))?;
            made.push((Cat::set(top), vec![(F::top_relation, 1.0)]));
        }
        if let Node::Class(class) = *self.arena.node(node) {
            let of = self.schema.relation(relation);
            let is_range = of
                .range
                .iter()
                .any(|(c, share)| *c == class && *share > 0.5);
            let is_domain = of
                .domain
                .iter()
                .any(|(c, share)| *c == class && *share > 0.5);
            if is_range || is_domain && !relation_first && !apart {
                // `capital city`, `airport code`
                made.push((Cat::Relation(relation), vec![(F::merged, 1.0)]));
            }
            if !relation_first && fits_any && self.extreme_word(relation).is_none() {
                let open = Some(relation);
                made.push((
                    Cat::Set {
                        node,
                        pair: None,
                        open,
                    },
                    vec![(F::open, 1.0)],
                ));
            }
        }
        if !fits_any && kind == Kind::Thing {
            // `the population of Europe`, where countries have one
            let domain = self.schema.relation(relation).domain.first().map(|d| d.0);
            if let Some(class) = domain {
                let class = self.arena.add(Node::Class(class))?;
                for (within, mut own) in self.restricted(class, node, None, false, false)? {
                    own.push((F::join_bridge, 1.0));
                    let join = self.arena.add(Node::Join((relation, true), within))?;
                    let mut each = own.clone();
                    if !plural && self.extreme_of(relation).is_some() {
                        each.push((F::number_disagrees, 1.0));
                    }
                    made.push((Cat::set(join), each));
                    if let Some((greatest, by)) = self.extreme_of(relation) {
                        let by = Measure::Path(Rc::from([(by, true)]));
                        let top = Node::Top(within, by, greatest, Ranked::Nth(1));
                        let top = self.arena.add(top)?;
                        let join = self.arena.add(Node::Join((relation, true), top))?;
                        own.push((F::top_all, 1.0));
                        made.push((Cat::set(join), own));
                    }
                }
            }
        }
        Ok(())
    }

    /// Of a relation like `highest point`: whether it is the greatest, and the relation that says
    /// by what (`highest elevation`).
    pub(super) fn extreme_of(&self, relation: RelationId) -> Option<(bool, RelationId)> {
        let of = self.schema.relation(relation);
        let (word, greatest) = self.extreme_word(relation)?;
        let by = self.schema.relations.iter().position(|r| {
            r.words.iter().any(|w| w == word)
                && matches!(r.kind, Kind::Number | Kind::Time)
                && r.domain.first().map(|d| d.0) == of.domain.first().map(|d| d.0)
        })?;
        (of.kind == Kind::Thing).then_some((greatest, RelationId(by as u32)))
    }

    /// The superlative in a relation's label, and whether it means the greatest.
    fn extreme_word(&self, relation: RelationId) -> Option<(&str, bool)> {
        let words = &self.schema.relation(relation).words;
        words.iter().find_map(|word| {
            let said = self.lang.operators(&[word]);
            said.iter().find_map(|(_, op)| match op {
                Op::Best(greatest, _) => Some((word.as_str(), *greatest)),
                _ => None,
            })
        })
    }

    /// The relations that a degree may mean for some classes, the likeliest first.
    pub(super) fn degree(&mut self, degree: u8, node: Id) -> Result<Vec<(RelationId, f32)>> {
        let measures = &self.lang.measures[degree as usize];
        let mut found: Vec<(RelationId, f32)> = Vec::new();
        for (rank, measure) in measures.iter().enumerate() {
            for relation in self.schema.relations_with(measure, self.lang) {
                let of = self.schema.relation(relation);
                let exact = of.stems.contains(measure);
                if !matches!(of.kind, Kind::Number | Kind::Time)
                    || found.iter().any(|(r, _)| *r == relation)
                    || !self.has(node, relation)?
                {
                    continue;
                }
                let extra = (of.stems.len() - 1) as f32;
                let rank = rank as f32 + extra + if exact { 0.0 } else { 0.5 };
                found.push((relation, rank));
            }
        }
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found.truncate(MEASURES);
        Ok(found)
    }

    /// Whether members of a set may have a relation to numbers or times.
    fn is_measured(&mut self, node: Id, relation: RelationId) -> Result<bool> {
        let kind = self.schema.relation(relation).kind;
        Ok(matches!(kind, Kind::Number | Kind::Time) && self.has(node, relation)?)
    }

    /// Whether a set is names alone: there is nothing to choose among.
    fn is_named(&self, node: Id) -> bool {
        matches!(self.arena.node(node), Node::Ents(_))
    }

    /// Whether a set is a class as it stands.
    fn is_class(&self, node: Id) -> bool {
        matches!(self.arena.node(node), Node::Class(_))
    }

    /// Whether a set is some names to choose from: `the Rhine or the Elbe`.
    fn is_choice(&self, node: Id) -> bool {
        match self.arena.node(node) {
            Node::Or(a, b) => [*a, *b]
                .iter()
                .all(|n| self.is_named(*n) || self.is_choice(*n)),
            _ => false,
        }
    }

    /// Whether members of a set may have a relation.
    fn has(&mut self, node: Id, relation: RelationId) -> Result<bool> {
        let types = self.arena.types(node);
        match types.is_empty() {
            false => Ok(self.schema.fits(&types, (relation, true))),
            true => self.arena.has_step(node, (relation, true)),
        }
    }

    fn measures(&self, node: Id, by: &Measure) -> bool {
        let (Measure::Path(path) | Measure::HowMany(path, _)) = by;
        let types = self.arena.types(node);
        path.first()
            .is_some_and(|step| self.schema.fits(&types, *step))
    }

    fn superlative(
        &mut self,
        op: Op,
        ranked: Ranked,
        other: &Cat,
        _gap: Gap,
        made: &mut Made,
    ) -> Result<()> {
        match (op, other) {
            (
                Op::Best(greatest, degree),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                if self.arena.kind(*node) != Kind::Thing || self.is_named(*node) {
                    return Ok(());
                }
                for (relation, rank) in self.degree(degree, *node)? {
                    let by = Measure::Path(Rc::from([(relation, true)]));
                    let top = self.arena.add(Node::Top(*node, by, greatest, ranked))?;
                    let own = vec![(F::top_measure, 1.0), (F::top_rank, rank)];
                    made.push((Cat::set(top), own));
                }
            }
            (Op::Best(greatest, degree), Cat::Relation(r)) => {
                let of = self.schema.relation(*r);
                if !matches!(of.kind, Kind::Number | Kind::Time) {
                    return Ok(());
                }
                let measures = &self.lang.measures[degree as usize];
                let said = of.stems.iter().any(|s| measures.contains(s));
                let own = match said {
                    true => vec![(F::top_relation, 1.0)],
                    false => vec![(F::top_other, 1.0)],
                };
                let by = Measure::Path(Rc::from([(*r, true)]));
                made.push((Cat::Top(greatest, by, ranked), own));
            }
            (Op::Extreme(greatest), Cat::Relation(r)) => {
                let by = match self.schema.relation(*r).kind {
                    Kind::Number | Kind::Time => Measure::Path(Rc::from([(*r, true)])),
                    _ => Measure::HowMany(Rc::from([(*r, true)]), None),
                };
                made.push((Cat::Top(greatest, by, ranked), vec![(F::top_relation, 1.0)]));
            }
            (Op::Extreme(greatest), Cat::Set { node, open, .. }) => {
                if self.arena.kind(*node) == Kind::Thing {
                    let (of, via) = (*node, *open);
                    made.push((
                        Cat::TopCount {
                            greatest,
                            of,
                            via,
                            ranked,
                        },
                        Vec::new(),
                    ));
                }
            }
            (Op::Extreme(_), Cat::Number(n)) => self.first_of(op, *n, made),
            _ => {}
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a ranking")]
    fn ranked(
        &mut self,
        node: Id,
        greatest: bool,
        by: &Measure,
        ranked: Ranked,
        set_first: bool,
        gap: Gap,
        made: &mut Made,
    ) -> Result<()> {
        if self.arena.kind(node) != Kind::Thing || self.is_named(node) {
            return Ok(());
        }
        if self.measures(node, by) {
            let top = self
                .arena
                .add(Node::Top(node, by.clone(), greatest, ranked))?;
            made.push((Cat::set(top), vec![(F::top_measure, 1.0)]));
            if let (false, Gap::Of | Gap::In | Gap::With, Ranked::Nth(1), Measure::Path(_)) =
                (set_first, gap, ranked, by)
            {
                // `the smallest weight of the cars`
                let aggregate = match greatest {
                    true => Aggregate::Largest,
                    false => Aggregate::Smallest,
                };
                let value = self.arena.add(Node::Of(aggregate, node, by.clone()))?;
                made.push((Cat::Number(value), vec![(F::value_extreme, 1.0)]));
            }
        }
        Ok(())
    }

    /// How members of a set may be counted by their ways to another.
    fn counts(
        &mut self,
        node: Id,
        of: Id,
        via: Option<RelationId>,
    ) -> Result<Vec<(Measure, Vec<(F, f32)>)>> {
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
            let own = vec![
                (F::bridge, 1.0),
                (F::bridge_hop, bridge.path.len() as f32 - 1.0),
                (F::bridge_rare, bridge.rarity),
            ];
            found.push((Measure::HowMany(back.collect(), Some(of)), own));
        }
        Ok(found)
    }

    fn conjunction(&mut self, a: Id, is_or: bool, b: Id, made: &mut Made) -> Result<()> {
        let (types, others) = (self.arena.types(a), self.arena.types(b));
        let alike = self.arena.kind(a) == self.arena.kind(b)
            && (types.is_empty() && others.is_empty() || types.iter().any(|t| others.contains(t)));
        if !alike || self.is_named(a) != self.is_named(b) && !self.is_choice(a) {
            if !is_or && !alike {
                for (node, own) in self.restricted(a, b, None, false, false)? {
                    made.push((Cat::set(node), own));
                }
            }
            return Ok(());
        }
        let either = self.arena.add(Node::Or(a, b))?;
        let pair = Some((a, b));
        let own = match is_or {
            true => F::conjunction_or,
            false => F::conjunction_union,
        };
        let union = Cat::Set {
            node: either,
            pair: pair.filter(|_| !is_or),
            open: None,
        };
        made.push((union, vec![(own, 1.0)]));
        let names = |id| matches!(self.arena.node(id), Node::Ents(_));
        if !is_or && !(names(a) && names(b)) {
            let both = self.arena.add(Node::And(a, b))?;
            made.push((Cat::set(both), vec![(F::conjunction_and, 1.0)]));
        }
        Ok(())
    }

    /// An operator before a part.
    fn operator(&mut self, op: Op, other: &Cat, gap: Gap, made: &mut Made) -> Result<()> {
        match (op, other) {
            (Op::Count, Cat::Set { node, open, .. }) => {
                if self.is_named(*node) {
                    return Ok(());
                }
                let mut of = *node;
                let mut own = vec![(F::count_set, 1.0)];
                if let Some(relation) = open {
                    of = self.that_has(*node, *relation)?;
                    own.push((F::exists, 1.0));
                }
                made.push((Cat::Number(self.arena.add(Node::Count(of))?), own));
            }
            (Op::Count, Cat::Relation(r)) => {
                if self.schema.relation(*r).kind == Kind::Number {
                    made.push((Cat::Relation(*r), vec![(F::count_value, 1.0)]));
                }
            }
            (Op::Aggregate(aggregate), Cat::Relation(r)) => {
                if matches!(self.schema.relation(*r).kind, Kind::Number | Kind::Time) {
                    made.push((Cat::Aggregated(aggregate, *r), vec![(F::aggregate, 1.0)]));
                }
            }
            (Op::Aggregate(aggregate), Cat::Set { node, .. }) => {
                if let Node::Join((r, true), of) = *self.arena.node(*node)
                    && matches!(self.schema.relation(r).kind, Kind::Number | Kind::Time)
                {
                    let by = Measure::Path(Rc::from([(r, true)]));
                    let value = self.arena.add(Node::Of(aggregate, of, by))?;
                    made.push((Cat::Number(value), vec![(F::aggregate, 1.0)]));
                }
            }
            (
                Op::And,
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                made.push((Cat::With(false, *node), Vec::new()));
            }
            (
                Op::Or,
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                made.push((Cat::With(true, *node), Vec::new()));
            }
            (Op::And, Cat::FilterDegree { .. } | Cat::Not(_)) => {
                made.push((other.clone(), Vec::new()));
            }
            (Op::And | Op::Or, Cat::Than(is, n)) => {
                made.push((Cat::WithThan(op == Op::Or, *is, *n), Vec::new()));
            }
            (Op::And | Op::Or, Cat::Filter(_, is, n)) => {
                made.push((Cat::WithThan(op == Op::Or, *is, *n), Vec::new()));
                if op == Op::And {
                    made.push((other.clone(), Vec::new()));
                }
            }
            (Op::Not, Cat::Set { node, open, .. }) => {
                let node = match open {
                    Some(relation) => self.that_has(*node, *relation)?,
                    None => *node,
                };
                made.push((Cat::Not(node), Vec::new()));
            }
            (Op::Not, Cat::Relation(r)) => made.push((Cat::NotRelation(*r), Vec::new())),
            (Op::Not, Cat::Filter(by, is, than)) => {
                made.push((Cat::NotFilter(by.clone(), *is, *than), Vec::new()));
            }
            (Op::Compare(is), Cat::Number(n)) => made.push((Cat::Than(is, *n), Vec::new())),
            (Op::Compare(is), Cat::Relation(r)) => {
                made.push((Cat::ThanRelation(is, *r), Vec::new()));
            }
            (Op::Compare(is), Cat::Aggregated(aggregate, r)) => {
                made.push((Cat::ThanAverage(is, *aggregate, *r), Vec::new()));
            }
            (Op::More(greater, _), Cat::Relation(r)) => {
                let is = match greater {
                    true => Comparison::Greater,
                    false => Comparison::Less,
                };
                made.push((Cat::ThanRelation(is, *r), Vec::new()));
            }
            (Op::More(greater, degree), Cat::Set { node, .. }) if self.is_choice(*node) => {
                // `which is longer, the Rhine or the Elbe`
                self.superlative(Op::Best(greater, degree), Ranked::Nth(1), other, gap, made)?;
            }
            (Op::More(greater, degree), Cat::Number(than)) => {
                let (than, is_number) = (*than, true);
                let cat = Cat::FilterDegree {
                    greater,
                    degree,
                    than,
                    is_number,
                };
                made.push((cat, Vec::new()));
            }
            (
                Op::More(greater, degree),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                let (than, is_number) = (*node, false);
                let cat = Cat::FilterDegree {
                    greater,
                    degree,
                    than,
                    is_number,
                };
                made.push((cat, Vec::new()));
            }
            (
                Op::How(degree),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                if self.arena.kind(*node) == Kind::Number {
                    made.push((Cat::set(*node), vec![(F::how_measure, 1.0)]));
                    return Ok(());
                }
                if let Node::Join((relation, true), of) = *self.arena.node(*node)
                    && let Some((_, by)) = self.extreme_of(relation)
                {
                    // `how high is the highest point of Texas`, where Texas has the elevation
                    let value = self.arena.add(Node::Join((by, true), of))?;
                    made.push((Cat::set(value), vec![(F::how_measure, 1.0)]));
                }
                for (relation, rank) in self.degree(degree, *node)? {
                    let value = self.arena.add(Node::Join((relation, true), *node))?;
                    made.push((
                        Cat::set(value),
                        vec![(F::how_measure, 1.0), (F::how_rank, rank)],
                    ));
                }
            }
            (Op::How(_), Cat::Relation(r)) => {
                if matches!(self.schema.relation(*r).kind, Kind::Number | Kind::Time) {
                    made.push((Cat::Relation(*r), vec![(F::how_measure, 1.0)]));
                }
            }
            (
                Op::Where,
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                if self.arena.kind(*node) != Kind::Thing {
                    return Ok(());
                }
                let places = self.lang.place_relations.iter().enumerate();
                let mut rank = 0.0;
                for (_, stem) in places {
                    for relation in self.schema.relations_with(stem, self.lang) {
                        let of = self.schema.relation(relation);
                        if !of.stems.contains(stem)
                            || !matches!(of.kind, Kind::Thing | Kind::Text)
                            || !self.has(*node, relation)?
                        {
                            continue;
                        }
                        let place = self.arena.add(Node::Join((relation, true), *node))?;
                        made.push((Cat::set(place), vec![(F::asks_place, 1.0 + rank)]));
                        rank += 1.0;
                    }
                }
            }
            (
                Op::When,
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                for id in 0..self.schema.relations.len() {
                    let relation = RelationId(id as u32);
                    if self.schema.relation(relation).kind == Kind::Time
                        && self.has(*node, relation)?
                    {
                        let time = self.arena.add(Node::Join((relation, true), *node))?;
                        made.push((Cat::set(time), vec![(F::asks_time, 1.0)]));
                    }
                }
            }
            (Op::Order(first), Cat::Relation(r)) => {
                made.push((Cat::Ordered(Some(*r), first), Vec::new()));
            }
            _ => {}
        }
        let _ = gap;
        Ok(())
    }

    /// Members of a set that have a relation at all.
    pub(super) fn that_has(&mut self, node: Id, relation: RelationId) -> Result<Id> {
        let types = self.arena.types(node);
        let forward = self.schema.fits(&types, (relation, true));
        let side = self.arena.add(Node::Side(relation, !forward))?;
        self.arena.add(Node::And(node, side))
    }

    /// An operator after a part.
    fn operator_after(&mut self, op: Op, before: &Cat, made: &mut Made) -> Result<()> {
        match (op, before) {
            (Op::Order(_), Cat::Set { .. }) => made.push((before.clone(), vec![(F::order, 1.0)])),
            // `5 or more`
            (Op::Compare(is @ (Comparison::AtLeast | Comparison::AtMost)), Cat::Number(n)) => {
                made.push((Cat::Than(is, *n), Vec::new()));
            }
            (Op::More(greater, degree), Cat::Set { node, .. }) if self.is_choice(*node) => {
                let best = Op::Best(greater, degree);
                self.superlative(best, Ranked::Nth(1), before, Gap::None, made)?;
            }
            // `the area of all states combined`
            (Op::Aggregate(aggregate), Cat::Set { node, .. }) => {
                if let Node::Join((r, true), of) = *self.arena.node(*node)
                    && self.schema.relation(r).kind == Kind::Number
                {
                    let by = Measure::Path(Rc::from([(r, true)]));
                    let value = self.arena.add(Node::Of(aggregate, of, by))?;
                    made.push((Cat::Number(value), vec![(F::aggregate, 1.0)]));
                }
            }
            // `is the population in total`
            (Op::Aggregate(Aggregate::Sum), Cat::Number(_)) => {
                made.push((before.clone(), Vec::new()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Numbers, comparisons and aggregates.
    fn numbers(&mut self, a: &Cat, b: &Cat, gap: Gap, made: &mut Made) -> Result<()> {
        match (a, b) {
            (Cat::Relation(r), Cat::Than(is, n)) | (Cat::Than(is, n), Cat::Relation(r)) => {
                let by = match self.schema.relation(*r).kind {
                    Kind::Number | Kind::Time => Measure::Path(Rc::from([(*r, true)])),
                    Kind::Thing => Measure::HowMany(Rc::from([(*r, true)]), None),
                    Kind::Text => return Ok(()),
                };
                made.push((Cat::Filter(by, *is, *n), vec![(F::compare_relation, 1.0)]));
            }
            (Cat::ThanRelation(is, r), Cat::Number(n)) => {
                if matches!(self.schema.relation(*r).kind, Kind::Number | Kind::Time) {
                    let by = Measure::Path(Rc::from([(*r, true)]));
                    made.push((Cat::Filter(by, *is, *n), vec![(F::compare_relation, 1.0)]));
                }
            }
            (Cat::ThanRelation(is, r), Cat::Set { node, .. })
            | (Cat::Set { node, .. }, Cat::ThanRelation(is, r))
                if self.is_choice(*node) =>
            {
                if self.is_measured(*node, *r)? {
                    let by = Measure::Path(Rc::from([(*r, true)]));
                    let greatest = *is == Comparison::Greater;
                    let top = Node::Top(*node, by, greatest, Ranked::Nth(1));
                    made.push((Cat::set(self.arena.add(top)?), vec![(F::top_relation, 1.0)]));
                }
            }
            (
                Cat::ThanRelation(is, r),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                // `more people than Texas`
                if matches!(self.schema.relation(*r).kind, Kind::Number | Kind::Time)
                    && self.has(*node, *r)?
                {
                    let by = Measure::Path(Rc::from([(*r, true)]));
                    let value = Node::Of(Aggregate::Only, *node, by.clone());
                    let value = self.arena.add(value)?;
                    made.push((
                        Cat::Filter(by, *is, value),
                        vec![(F::compare_relation, 1.0)],
                    ));
                }
            }
            (Cat::Relation(r), Cat::Number(n)) | (Cat::Number(n), Cat::Relation(r)) => {
                if matches!(self.schema.relation(*r).kind, Kind::Number | Kind::Time) {
                    let by = Measure::Path(Rc::from([(*r, true)]));
                    let cat = Cat::Filter(by, Comparison::Equal, *n);
                    made.push((cat, vec![(F::equal_relation, 1.0)]));
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Filter(by, is, n),
            )
            | (
                Cat::Filter(by, is, n),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                if self.arena.kind(*node) == Kind::Thing
                    && self.measures(*node, by)
                    && (self.is_yes_no || !self.is_named(*node))
                {
                    let filtered = Node::Where(*node, by.clone(), *is, *n);
                    made.push((Cat::set(self.arena.add(filtered)?), Vec::new()));
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Than(is, n),
            ) => {
                if let Node::Join((r, true), of) = *self.arena.node(*node)
                    && matches!(self.schema.relation(r).kind, Kind::Number | Kind::Time)
                {
                    // `is the population of Texas more than 5 million`
                    let by = Measure::Path(Rc::from([(r, true)]));
                    let filtered = self.arena.add(Node::Where(of, by, *is, *n))?;
                    made.push((Cat::set(filtered), vec![(F::compare_relation, 1.0)]));
                }
                self.unspoken(*node, *is, *n, F::compare_unspoken, made)?;
            }
            (Cat::Than(is, n), Cat::Set { node, open, .. }) => {
                made.push((Cat::CountThan(*is, *n, *node, *open), Vec::new()));
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Number(n),
            )
            | (
                Cat::Number(n),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                self.unspoken(*node, Comparison::Equal, *n, F::equal_unspoken, made)?;
                if matches!(a, Cat::Number(_)) && matches!(self.arena.node(*n), Node::Const(_)) {
                    let cat = Cat::CountThan(Comparison::Equal, *n, *node, None);
                    made.push((cat, Vec::new()));
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::CountThan(is, n, of, via),
            ) => {
                for (by, mut own) in self.counts(*node, *of, *via)? {
                    own.push((F::compare_count, 1.0));
                    let filtered = Node::Where(*node, by, *is, *n);
                    made.push((Cat::set(self.arena.add(filtered)?), own));
                }
            }
            (Cat::Relation(r), Cat::CountThan(is, n, of, None)) => {
                made.push((Cat::CountThan(*is, *n, *of, Some(*r)), Vec::new()));
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::FilterDegree {
                    greater,
                    degree,
                    than,
                    is_number,
                },
            ) => {
                let is = match greater {
                    true => Comparison::Greater,
                    false => Comparison::Less,
                };
                for (relation, rank) in self.degree(*degree, *node)? {
                    let by = Measure::Path(Rc::from([(relation, true)]));
                    let n = match is_number {
                        true => *than,
                        false if self.has(*than, relation)? => {
                            self.arena
                                .add(Node::Of(Aggregate::Only, *than, by.clone()))?
                        }
                        false => continue,
                    };
                    let filtered = self.arena.add(Node::Where(*node, by, is, n))?;
                    let own = vec![(F::compare_degree, 1.0), (F::top_rank, rank)];
                    made.push((Cat::set(filtered), own));
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::ThanAverage(is, aggregate, r),
            )
            | (
                Cat::ThanAverage(is, aggregate, r),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                if self.has(*node, *r)? {
                    let by = Measure::Path(Rc::from([(*r, true)]));
                    let average = Node::Of(*aggregate, *node, by.clone());
                    let average = self.arena.add(average)?;
                    let filtered = self.arena.add(Node::Where(*node, by, *is, average))?;
                    made.push((Cat::set(filtered), vec![(F::compare_average, 1.0)]));
                }
            }
            (
                Cat::Aggregated(aggregate, r),
                Cat::Set {
                    node, open: None, ..
                },
            )
            | (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Aggregated(aggregate, r),
            ) => {
                if self.arena.kind(*node) == Kind::Thing && self.has(*node, *r)? {
                    let by = Measure::Path(Rc::from([(*r, true)]));
                    let value = self.arena.add(Node::Of(*aggregate, *node, by))?;
                    made.push((Cat::Number(value), Vec::new()));
                }
            }
            (Cat::Set { node, .. }, Cat::WithThan(is_or, is, n)) => {
                // `founded before 2003 or after 2010`
                if let Node::Where(of, by, _, _) = self.arena.node(*node).clone() {
                    let other = Node::Where(of, by, *is, *n);
                    let other = self.arena.add(other)?;
                    let both = match is_or {
                        true => Node::Or(*node, other),
                        false => Node::And(*node, other),
                    };
                    made.push((Cat::set(self.arena.add(both)?), Vec::new()));
                }
            }
            (Cat::Set { .. }, Cat::Ordered(..)) => {
                made.push((a.clone(), vec![(F::order, 1.0)]));
            }
            _ => {}
        }
        let _ = gap;
        Ok(())
    }

    /// `concerts in 2014`: the attribute is not said; one that has such values is meant.
    fn unspoken(
        &mut self,
        node: Id,
        is: Comparison,
        n: Id,
        feature: F,
        made: &mut Made,
    ) -> Result<()> {
        let Node::Const(bits) = *self.arena.node(n) else {
            return Ok(());
        };
        if self.arena.kind(node) != Kind::Thing {
            return Ok(());
        }
        let year = (1000.0..2200.0).contains(&f64::from_bits(bits));
        for id in 0..self.schema.relations.len() {
            let relation = RelationId(id as u32);
            let of = self.schema.relation(relation);
            let says_time = of.stems.iter().any(|s| s == "year" || s == "date");
            let timely = of.kind == Kind::Time || of.kind == Kind::Number && says_time;
            if !timely || !year || !self.has(node, relation)? {
                continue;
            }
            let by = Measure::Path(Rc::from([(relation, true)]));
            let filtered = self.arena.add(Node::Where(node, by, is, n))?;
            made.push((Cat::set(filtered), vec![(feature, 1.0)]));
        }
        Ok(())
    }

    /// A part of the whole question as readings.
    pub(super) fn close(&mut self, item: &Item) -> Result<Vec<(Id, Vec<(F, f32)>)>> {
        let mut closed = Vec::new();
        match &item.cat {
            Cat::Set { node, open, .. } => {
                let mut own = Vec::new();
                let mut node = *node;
                if let Some(relation) = open {
                    node = self.that_has(node, *relation)?;
                    own.push((F::exists, 1.0));
                }
                let chosen = match self.arena.node(node) {
                    Node::Top(of, ..) => self.is_choice(*of),
                    _ => false,
                };
                if self.is_yes_no && !chosen {
                    own.push((F::truth, 1.0));
                    closed.push((self.arena.add(Node::Any(node))?, own));
                    return Ok(closed);
                }
                self.fit_to_asking(node, &mut own);
                match self.arena.node(node) {
                    Node::Ents(_) => own.push((F::answer_is_name, 1.0)),
                    Node::Class(_) | Node::Side(..) => own.push((F::answer_is_class, 1.0)),
                    _ => {}
                }
                if let Meaning::Set(members) = self.arena.meaning(node)?
                    && members.is_empty()
                {
                    own.push((F::empty_answer, 1.0));
                }
                closed.push((node, own));
            }
            Cat::Number(node) => {
                let mut own = Vec::new();
                if matches!(self.arena.node(*node), Node::Const(_)) {
                    return Ok(closed);
                }
                if self.is_yes_no {
                    own.push((F::truth_missed, 1.0));
                }
                if let Node::Count(of) = *self.arena.node(*node) {
                    let types = self.arena.types(of);
                    if !self.asked.is_empty() && !self.asked.iter().any(|c| types.contains(c)) {
                        own.push((F::asked_for_another, 1.0));
                    }
                }
                if let Meaning::Number(None) = self.arena.meaning(*node)? {
                    own.push((F::empty_answer, 1.0));
                }
                closed.push((*node, own));
            }
            _ => {}
        }
        Ok(closed)
    }

    fn fit_to_asking(&mut self, node: Id, own: &mut Vec<(F, f32)>) {
        let types = self.arena.types(node);
        if !self.asked.is_empty() && !self.asked.iter().any(|c| types.contains(c)) {
            own.push((F::asked_for_another, 1.0));
        }
        let kind = self.arena.kind(node);
        let asked = self.words.all.iter().find(|w| self.lang.asks(&w.lower));
        let Some(asked) = asked else { return };
        let said = self.lang.operators(&[&asked.lower]);
        let ops: Vec<Op> = said.into_iter().map(|(_, op)| op).collect();
        if ops.contains(&Op::Where) && matches!(kind, Kind::Number | Kind::Time) {
            own.push((F::place_mismatch, 1.0));
        }
        if ops.contains(&Op::When) && matches!(kind, Kind::Thing | Kind::Text) {
            own.push((F::time_mismatch, 1.0));
        }
        if self.lang.person.contains(&asked.lower) && matches!(kind, Kind::Number | Kind::Time) {
            own.push((F::person_mismatch, 1.0));
        }
    }
}

/// The feature of a join: which stands first, what stands between, which way.
fn join_cue(relation_first: bool, gap: Gap, forward: bool) -> F {
    match (relation_first, gap, forward) {
        (true, Gap::None, true) => F::join_r_none_along,
        (true, Gap::None, false) => F::join_r_none_against,
        (true, Gap::Of, true) => F::join_r_of_along,
        (true, Gap::Of, false) => F::join_r_of_against,
        (true, Gap::By, true) => F::join_r_by_along,
        (true, Gap::By, false) => F::join_r_by_against,
        (true, Gap::In, true) => F::join_r_in_along,
        (true, Gap::In, false) => F::join_r_in_against,
        (true, Gap::With, true) => F::join_r_with_along,
        (true, Gap::With, false) => F::join_r_with_against,
        (false, Gap::None, true) => F::join_s_none_along,
        (false, Gap::None, false) => F::join_s_none_against,
        (false, Gap::Of, true) => F::join_s_of_along,
        (false, Gap::Of, false) => F::join_s_of_against,
        (false, Gap::By, true) => F::join_s_by_along,
        (false, Gap::By, false) => F::join_s_by_against,
        (false, Gap::In, true) => F::join_s_in_along,
        (false, Gap::In, false) => F::join_s_in_against,
        (false, Gap::With, true) => F::join_s_with_along,
        (false, Gap::With, false) => F::join_s_with_against,
    }
}
