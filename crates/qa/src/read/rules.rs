//! The rules: what two parts beside each other mean together.

use std::rc::Rc;

use wherefore_graph::{EntityId, RelationId};

use super::arena::{Id, Meaning, Measure, Node, Ranked};
use super::cat::Cat;
use super::features::Feature as F;
use super::joins::{Beside, join_cue};
use super::lang::{Gap, Op};
use super::search::{Item, Made, Search, Weighed, sorted};
use super::vocabulary::{ClassIx, Kind};
use crate::error::Result;
use crate::logic::Comparison;

impl Search<'_> {
    /// What two parts beside each other mean together.
    pub(super) fn combine(&mut self, a: &Item, b: &Item) -> Result<Made> {
        let gap = self.words.gap(a.words.1, b.words.0, self.lang);
        let mut made = Made::new();
        if self.is_unnamed(&a.cat) || self.is_unnamed(&b.cat) {
            self.unnamed(a, b, gap, &mut made)?;
            return Ok(made);
        }
        match (&a.cat, &b.cat) {
            (Cat::Set { .. }, Cat::Set { .. }) => self.two_sets(a, b, gap, &mut made)?,
            (Cat::Relation(r), Cat::Set { .. }) => {
                self.in_a_role(*r, a, b, &mut made)?;
                self.joined(*r, &b.cat, self.beside(a, b, true), &mut made)?;
            }
            (
                Cat::Chain(steps),
                Cat::Set {
                    node, open: None, ..
                },
            )
            | (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Chain(steps),
            ) => {
                let mut end = *node;
                for &step in steps.iter() {
                    if !self.arena.has_step(end, step)? {
                        return Ok(made);
                    }
                    end = self.join_others(step, end)?;
                }
                let plain = self.beside(a, b, matches!(a.cat, Cat::Chain(_)));
                made.push((Cat::set(end), vec![(join_cue(plain, true), 1.0)]));
            }
            (Cat::Set { node, .. }, Cat::Relation(r)) => {
                if matches!(gap, Gap::By | Gap::In)
                    && let Node::Top(of, _, greatest, ranked) = *self.arena.node(*node)
                    && self.is_measured(of, *r)?
                {
                    // `the largest city by population`
                    let by = Measure::of(*r);
                    let top = self.arena.add(Node::Top(of, by, greatest, ranked))?;
                    made.push((Cat::set(top), vec![(F::top_relation, 1.0)]));
                }
                if gap == Gap::By && !self.is_named(*node) && self.is_measured(*node, *r)? {
                    // `countries by population`: the largest first, or the earliest
                    let first = self.schema.relation(*r).kind == Kind::Number;
                    let order = Some((Measure::of(*r), first));
                    self.table(*node, &[], order, F::order, &mut made)?;
                }
                if gap == Gap::With && self.words.is_told(a.words.1, b.words.0, self.lang) {
                    // `countries with their capitals`
                    self.columns(*node, &[*r], &mut made)?;
                }
                self.in_a_role(*r, a, b, &mut made)?;
                self.joined(*r, &a.cat, self.beside(a, b, false), &mut made)?;
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Counted(r),
            ) => {
                // `countries by number of neighbours`
                if gap == Gap::By && !self.is_named(*node) && self.has(*node, *r)? {
                    let order = Some((Measure::how_many(*r), true));
                    self.table(*node, &[], order, F::order, &mut made)?;
                }
            }
            (Cat::Relation(r), Cat::Relation(s)) if r == s => {
                let mut own = vec![(F::merged, 1.0)];
                if gap != Gap::None {
                    own.push((F::merged_apart, 1.0));
                }
                made.push((Cat::Relation(*r), own));
            }
            (Cat::Relation(r), Cat::Sharing(s)) if r == s => {
                made.push((b.cat.clone(), vec![(F::merged, 1.0)]));
            }
            (
                Cat::Sharing(r),
                Cat::Set {
                    node, open: None, ..
                },
            )
            | (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Sharing(r),
            ) => {
                self.sharing(*r, *node, &mut made)?;
            }
            (Cat::Relation(r), Cat::Relation(s)) if self.words.is_listed(a.words.1, b.words.0) => {
                made.push((Cat::Columns(Rc::from([*r, *s])), Vec::new()));
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
                self.superlative(*op, *ranked, &Cat::set(*node), &mut made)?;
                made.iter_mut()
                    .for_each(|(_, own)| own.push((F::top_after, 1.0)));
            }
            (
                Cat::Relation(r),
                Cat::Superlative(Op::Best(greatest, _) | Op::Extreme(greatest), ranked),
            ) => {
                // `became independent first`, `earns the most`, but not the rooms the longest
                let fits = match &b.cat {
                    Cat::Superlative(Op::Best(_, degree), _) => self.is_of_degree(*r, *degree),
                    _ => true,
                };
                if fits && self.schema.relation(*r).kind.is_measure() {
                    let by = Measure::of(*r);
                    made.push((
                        Cat::Top(*greatest, by, *ranked),
                        vec![(F::top_relation, 1.0)],
                    ));
                }
            }
            (Cat::Superlative(op, ranked), other) => {
                self.superlative(*op, *ranked, other, &mut made)?;
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
            (Cat::Op(op), _) => self.operator(*op, &b.cat, &mut made)?,
            (_, Cat::Op(op)) => self.operator_after(*op, &a.cat, &mut made)?,
            (Cat::Set { node, .. }, Cat::With(is_or, other)) => {
                self.conjunction(*node, *is_or, *other, &mut made)?;
            }
            (Cat::Apart(greater, degree, None), Cat::Set { node, .. }) => {
                if self.is_named(*node) {
                    made.push((Cat::Apart(*greater, *degree, Some(*node)), Vec::new()));
                }
            }
            (Cat::Apart(greater, degree, Some(of)), Cat::Set { node, .. }) => {
                self.apart(*greater, *degree, *of, *node, &mut made)?;
            }
            (
                Cat::MoreOf(greater, None),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                if let Node::Join((relation, true), of) = *self.arena.node(*node)
                    && self.is_named(of)
                    && self.schema.relation(relation).kind == Kind::Number
                {
                    made.push((Cat::MoreOf(*greater, Some((relation, of))), Vec::new()));
                }
            }
            (Cat::MoreOf(greater, Some((relation, of))), Cat::Set { node, .. }) => {
                self.more_of(*greater, *relation, *of, *node, &mut made)?;
            }
            (Cat::Difference(r), Cat::Set { node, .. }) => {
                self.difference(*r, *node, &mut made)?;
            }
            (Cat::Set { node, .. }, Cat::Not(not) | Cat::Except(not)) => {
                // of a name there is nothing to choose: `border Germany except France`
                if !self.may_choose(*node) {
                    return Ok(made);
                }
                let is_not = matches!(b.cat, Cat::Not(_));
                if is_not && self.is_named(*not) {
                    // `border Germany but not France`: do not border France
                    if let Some(same) = self.likewise(*node, *not)?
                        && self.arena.members(same)?.is_none_or(|all| !all.is_empty())
                    {
                        let except = self.arena.add(Node::Except(*node, same))?;
                        made.push((Cat::set(except), vec![(F::except, 1.0)]));
                        return Ok(made);
                    }
                }
                for (inside, mut own) in self.restrictions(*node, *not, None, false, false)? {
                    own.push((F::except, 1.0));
                    // what leaves nothing out is hardly meant, a name never
                    if matches!(self.within(inside, *node)?, Some((0, _))) {
                        if self.is_named(inside) {
                            continue;
                        }
                        own.push((F::empty, 1.0));
                    }
                    let except = self.arena.add(Node::Except(*node, inside))?;
                    made.push((Cat::set(except), own));
                }
            }
            (Cat::Relation(r), Cat::Not(not)) | (Cat::Not(not), Cat::Relation(r)) => {
                let mut inner = Made::new();
                let first = matches!(a.cat, Cat::Relation(_));
                self.joined(*r, &Cat::set(*not), self.beside(a, b, first), &mut inner)?;
                for (cat, own) in inner {
                    if let Cat::Set { node, .. } = cat {
                        made.push((Cat::Not(node), own));
                    }
                }
            }
            (Cat::NotRelation(r), Cat::Set { .. }) => {
                let mut inner = Made::new();
                self.joined(*r, &b.cat, self.beside(a, b, true), &mut inner)?;
                for (cat, own) in inner {
                    if let Cat::Set { node, .. } = cat {
                        made.push((Cat::Not(node), own));
                    }
                }
            }
            (Cat::Set { node, .. }, Cat::NotRelation(r)) => {
                if self.schema.relation(*r).kind == Kind::Number {
                    // `without injuries`: none, or 0 of them
                    if self.has(*node, *r)? {
                        let zero = self.arena.add(Node::Const(0f64.to_bits()))?;
                        let by = Measure::of(*r);
                        let some = self.arena.filtered(*node, by, Comparison::Greater, zero)?;
                        let except = self.arena.add(Node::Except(*node, some))?;
                        made.push((Cat::set(except), vec![(F::except, 1.0)]));
                    }
                    return Ok(made);
                }
                // `without a sponsor`, and `not sold anywhere`, where shops sell
                for has in [true, false] {
                    if self.arena.has_step(*node, (*r, has))? {
                        let side = self.arena.add(Node::Side(*r, !has))?;
                        let except = self.arena.add(Node::Except(*node, side))?;
                        made.push((Cat::set(except), vec![(F::except, 1.0)]));
                        break;
                    }
                }
            }
            (Cat::Set { node, .. }, Cat::NotFilter(by, is, than)) => {
                if self.measures(*node, by) {
                    let inside = self.arena.filtered(*node, by.clone(), *is, *than)?;
                    let except = self.arena.add(Node::Except(*node, inside))?;
                    made.push((Cat::set(except), vec![(F::except, 1.0)]));
                }
            }
            _ => self.numbers(&a.cat, &b.cat, &mut made)?,
        }
        // `border the state with the most cities`: it is that state that has them
        if let Cat::Set { node, .. } = a.cat
            && let Some(inner) = self.last_noun(node)
            && matches!(self.arena.node(inner), Node::Class(_))
        {
            let far = match &b.cat {
                Cat::Top(_, by, _) | Cat::Filter(by, ..) => self.measures(inner, by),
                Cat::TopCount { of, via: None, .. } | Cat::CountThan(_, _, of, None) => {
                    let types = self.arena.types(inner);
                    !self.bridges(&types, *of)?.is_empty()
                }
                _ => false,
            };
            if far {
                made.iter_mut()
                    .for_each(|(_, own)| own.push((F::attached_far, 1.0)));
            }
        }
        Ok(made)
    }

    /// How a relation stands beside a set: whether the relation is the first of the two.
    fn beside(&self, a: &Item, b: &Item, relation_first: bool) -> Beside {
        let relation = if relation_first { a } else { b };
        let before = relation.words.0.checked_sub(1);
        let begins = match &relation.cat {
            Cat::Relation(r) => {
                let first = &self.words.all[relation.words.0].stem;
                let own = self.schema.relation(*r).stems.iter();
                own.into_iter()
                    .any(|s| s == first || self.lang.same_group(s, first))
            }
            _ => false,
        };
        Beside {
            relation_first,
            plural: self.is_plural(relation),
            apart: a.words.1 < b.words.0,
            picked: begins && before.is_some_and(|at| self.lang.picks(&self.words.all[at].lower)),
            gap: self.words.gap(a.words.1, b.words.0, self.lang),
        }
    }

    /// Whether the last word of a part is a plural.
    pub(super) fn is_plural(&self, item: &Item) -> bool {
        let word = &self.words.all[item.words.1 - 1];
        word.lower.ends_with('s') && word.stem != word.lower && !word.stem.ends_with('s')
    }

    /// The set that the last noun of a phrase stands for, where it is a part of the phrase:
    /// `states` of `rivers through states`.
    fn last_noun(&self, of: Id) -> Option<Id> {
        let inside = match *self.arena.node(of) {
            Node::And(_, inside) => inside,
            _ => of,
        };
        match *self.arena.node(inside) {
            Node::Join(_, inner) if !self.is_named(inner) => Some(inner),
            _ => None,
        }
    }

    pub(super) fn two_sets(&mut self, a: &Item, b: &Item, gap: Gap, made: &mut Made) -> Result<()> {
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
        let are_named = names(*left) && names(*right);
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
        // what follows a noun says something of it, if it can: `the country where Sofia is`
        let far = match self.last_noun(*left) {
            Some(inner) => {
                let (types, others) = (self.arena.types(inner), self.arena.types(*right));
                types.iter().any(|t| others.contains(t))
                    || matches!(self.arena.node(inner), Node::Class(_))
                        && !self.bridges(&types, *right)?.is_empty()
            }
            None => false,
        };
        for (node, mut own) in self.restricted(*left, *right, open, false, beside)? {
            // `is brie from France` does not ask whether it is France
            if are_named && gap != Gap::None && *self.arena.node(node) == Node::And(*left, *right) {
                continue;
            }
            if far {
                own.push((F::attached_far, 1.0));
            }
            if gap == Gap::In && own.iter().any(|(f, _)| *f == F::bridge_unsaid) {
                let way = match *self.arena.node(node) {
                    Node::And(_, joined) => joined,
                    _ => node,
                };
                // `mountains in Nepal` are not those that are its highest point
                if let Node::Join((relation, _), _) = *self.arena.node(way) {
                    let inside = |word: &String| self.lang.between(word) == Some(Gap::In);
                    if !self
                        .schema
                        .relation(relation)
                        .prepositions
                        .iter()
                        .any(inside)
                    {
                        own.push((F::bridge_no_place, 1.0));
                    }
                }
            }
            made.push((Cat::set(node), own));
        }
        if let Cat::Set {
            pair: Some((x, y)), ..
        } = b.cat
        {
            // `customers who bought a car and a bike`
            let one = self.restricted(*left, x, open, false, false)?;
            let other = self.restricted(*left, y, open, false, false)?;
            if one.len() == other.len() {
                for ((one, mut own), (other, _)) in one.into_iter().zip(other) {
                    own.push((F::pair_and, 1.0));
                    made.push((Cat::set(self.arena.add(Node::And(one, other))?), own));
                }
            }
        }
        let beside = beside && a.words.1 == b.words.0;
        let possessive = b.words.0 > 0
            && self
                .lang
                .is_possessive(&self.words.all[b.words.0 - 1].lower);
        if gap == Gap::None || possessive {
            for (node, mut own) in self.restricted(*right, *left, open, true, beside)? {
                own.push((F::bridge_left, 1.0));
                if matches!(self.arena.node(*right), Node::And(..) | Node::Where(..)) {
                    // `European countries that use the euro`: those that use it of these
                    own.push((F::attached_far, 1.0));
                }
                made.push((Cat::set(node), own));
            }
        }
        Ok(())
    }

    /// A set, of those members that have to do with another set.
    pub(super) fn restricted(
        &mut self,
        head: Id,
        other: Id,
        open: Option<RelationId>,
        is_left: bool,
        beside: bool,
    ) -> Result<Weighed> {
        let mut found = Weighed::new();
        if let Node::Table(of, columns, order) = self.arena.node(head).clone() {
            // its rows, never the table as a set: that has no columns
            for (within, own) in self.restricted(of, other, open, is_left, false)? {
                let table = Node::Table(within, Rc::clone(&columns), order.clone());
                found.push((self.arena.add(table)?, own));
            }
            return Ok(found);
        }
        if let Node::Table(..) = self.arena.node(other) {
            return Ok(found);
        }
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
                    for (inside, mut own) in
                        self.restrictions(head, other, open, is_left, beside)?
                    {
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
        for (inside, own) in self.restrictions(head, other, open, is_left, beside)? {
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

    pub(super) fn of_class(&self, all: &[EntityId], class: ClassIx) -> Result<Vec<EntityId>> {
        let mut kept = Vec::new();
        for &entity in all {
            if self.schema.types_of(self.graph, entity)?.contains(&class) {
                kept.push(entity);
            }
        }
        Ok(kept)
    }

    /// Whether a set is names alone: there is nothing to choose among.
    pub(super) fn is_named(&self, node: Id) -> bool {
        matches!(self.arena.node(node), Node::Ents(_))
    }

    /// How many members of a set are members of another, and how many it has; none where either is
    /// not known.
    pub(super) fn within(&mut self, set: Id, other: Id) -> Result<Option<(usize, usize)>> {
        let Some(set) = self.arena.members(set)? else {
            return Ok(None);
        };
        let shared = self.arena.kept(&set, other)?;
        Ok(shared.map(|shared| (shared.len(), set.len())))
    }

    /// Whether a set is what was answered before.
    pub(super) fn is_carried(&self, node: Id) -> bool {
        matches!(self.arena.node(node), Node::Carried)
    }

    /// Whether a condition can say something of a set: it chooses among things, or the question is
    /// whether a name meets it.
    pub(super) fn may_choose(&self, node: Id) -> bool {
        self.is_yes_no || !self.is_named(node)
    }

    /// Whether two sets may be of the same class.
    pub(super) fn are_alike(&self, a: Id, b: Id) -> bool {
        let (types, others) = (self.arena.types(a), self.arena.types(b));
        types.is_empty() && others.is_empty() || types.iter().any(|t| others.contains(t))
    }

    /// Whether a set is a class as it stands.
    pub(super) fn is_class(&self, node: Id) -> bool {
        matches!(self.arena.node(node), Node::Class(_))
    }

    /// Whether a set is some names to choose from: `the Rhine or the Elbe`.
    pub(super) fn is_choice(&self, node: Id) -> bool {
        match self.arena.node(node) {
            Node::Or(a, b) => [*a, *b]
                .iter()
                .all(|n| self.is_named(*n) || self.is_choice(*n)),
            _ => false,
        }
    }

    pub(super) fn conjunction(&mut self, a: Id, is_or: bool, b: Id, made: &mut Made) -> Result<()> {
        let alike = self.arena.kind(a) == self.arena.kind(b) && self.are_alike(a, b);
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
        if !(is_or || self.is_named(a) && self.is_named(b)) {
            let both = self.arena.add(Node::And(a, b))?;
            made.push((Cat::set(both), vec![(F::conjunction_and, 1.0)]));
        }
        Ok(())
    }
}
