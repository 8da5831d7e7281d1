//! An operator beside a part.

#![allow(
    clippy::collapsible_match,
    reason = "an arm whose condition fails makes nothing, and must not fall to the next"
)]

use wherefore_graph::RelationId;

use super::arena::{Id, Meaning, Measure, Node, Ranked};
use super::cat::Cat;
use super::features::Feature as F;
use super::lang::{Gap, Op};
use super::numbers::comparative;
use super::search::{Made, Search};
use super::tokens::Phrase;
use super::vocabulary::Kind;
use crate::error::Result;
use crate::logic::{Aggregate, Comparison};

impl Search<'_> {
    /// An operator before a part.
    pub(super) fn operator(&mut self, op: Op, other: &Cat, made: &mut Made) -> Result<()> {
        match (op, other) {
            (Op::Count, Cat::Set { node, open, .. }) => {
                if self.is_named(*node) {
                    return Ok(());
                }
                if self.arena.kind(*node) == Kind::Number && open.is_none() && self.asks_amount() {
                    // `how much did the repair cost`
                    made.push((other.clone(), vec![(F::count_value, 1.0)]));
                }
                // `how much money`: things are counted, not weighed out
                if self.arena.kind(*node) == Kind::Thing && self.asks_amount() {
                    return Ok(());
                }
                // nobody counts populations, least of all where there are none
                let is_value = self.arena.kind(*node).is_measure() && open.is_none();
                let few = |meaning: &Meaning| matches!(meaning, Meaning::Set(all) if all.len() < 2);
                if is_value && few(&self.arena.meaning(*node)?) {
                    // `how many people can it hold`
                    if self.arena.kind(*node) == Kind::Number && self.asks_how() {
                        made.push((other.clone(), vec![(F::count_value, 1.0)]));
                    }
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
            // `how much money in total`
            (Op::Count, Cat::Aggregated(..)) => made.push((other.clone(), Vec::new())),
            (Op::Count, Cat::Number(of)) if matches!(self.arena.node(*of), Node::Of(..)) => {
                made.push((other.clone(), Vec::new()));
            }
            (Op::Count, Cat::CountedEach(counted, of, via)) => {
                self.counted_each(*counted, *of, Some(*via), made)?;
            }
            (Op::Count, Cat::Relation(r)) => match self.schema.relation(*r).kind {
                Kind::Number => made.push((Cat::Relation(*r), vec![(F::count_value, 1.0)])),
                Kind::Thing => made.push((Cat::Counted(*r), Vec::new())),
                Kind::Time | Kind::Text => {}
            },
            (Op::Aggregate(aggregate), Cat::Relation(r)) => {
                if self.schema.relation(*r).kind.is_measure() {
                    made.push((Cat::Aggregated(aggregate, *r), vec![(F::aggregate, 1.0)]));
                }
            }
            (Op::Aggregate(aggregate), Cat::Set { node, .. }) => {
                if let Node::Join((r, true), of) = *self.arena.node(*node)
                    && self.schema.relation(r).kind.is_measure()
                {
                    let by = Measure::of(r);
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
            (Op::And, Cat::FilterDegree { .. } | Cat::Not(_) | Cat::Except(_)) => {
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
            (
                Op::Except,
                Cat::Set {
                    node, open: None, ..
                },
            ) => made.push((Cat::Except(*node), Vec::new())),
            (Op::Difference | Op::Count, Cat::Op(Op::More(greater, degree))) => {
                made.push((Cat::Apart(*greater, *degree, None), Vec::new()));
            }
            (
                Op::Difference | Op::Count,
                Cat::Op(Op::Compare(is @ (Comparison::Greater | Comparison::Less))),
            ) => {
                let greater = *is == Comparison::Greater;
                made.push((Cat::MoreOf(greater, None), Vec::new()));
            }
            (Op::Difference, Cat::Relation(r)) => made.push((Cat::Difference(*r), Vec::new())),
            (
                Op::Difference,
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                if let Node::Join((r, true), of) = *self.arena.node(*node) {
                    self.difference(r, of, made)?;
                }
            }
            (
                Op::Percentage,
                Cat::Set {
                    node, open: None, ..
                },
            ) => self.percentage(*node, made)?,
            (Op::Not, Cat::Relation(r)) => made.push((Cat::NotRelation(*r), Vec::new())),
            (Op::Not, Cat::Filter(by, is, than)) => {
                made.push((Cat::NotFilter(by.clone(), *is, *than), Vec::new()));
            }
            (Op::Compare(is), Cat::Number(n)) => made.push((Cat::Than(is, *n), Vec::new())),
            (Op::Compare(is), Cat::Relation(r)) => {
                made.push((Cat::ThanRelation(is, *r), Vec::new()));
            }
            (
                Op::Compare(is @ (Comparison::Greater | Comparison::Less)),
                Cat::Set {
                    node, open: None, ..
                },
            ) if self.is_named(*node) => made.push((Cat::ThanOf(is, *node), Vec::new())),
            (Op::Compare(is), Cat::Aggregated(aggregate, r)) => {
                made.push((Cat::ThanAverage(is, *aggregate, *r), Vec::new()));
            }
            (Op::More(greater, _), Cat::Relation(r)) => {
                let is = comparative(greater);
                made.push((Cat::ThanRelation(is, *r), Vec::new()));
            }
            (Op::More(greater, degree), Cat::Set { node, .. }) if self.is_choice(*node) => {
                // `which is longer, the Rhine or the Elbe`
                self.superlative(Op::Best(greater, degree), Ranked::Nth(1), other, made)?;
            }
            (Op::More(greater, degree), Cat::Set { node, .. }) if self.is_pair(*node)? => {
                // `the younger snow leopard`
                self.superlative(Op::Best(greater, degree), Ranked::Nth(1), other, made)?;
            }
            (
                Op::More(greater, degree),
                Cat::Number(than)
                | Cat::Set {
                    node: than,
                    open: None,
                    ..
                },
            ) => {
                let cat = Cat::FilterDegree {
                    greater,
                    degree,
                    than: *than,
                    is_number: matches!(other, Cat::Number(_)),
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
                if self.schema.relation(*r).kind.is_measure() {
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
                if self.says_where(*node) {
                    // `where was he born`
                    made.push((Cat::set(*node), vec![(F::asks_place_said, 1.0)]));
                }
                let mut rank = 0.0;
                for stem in &self.lang.place_relations {
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
                    if self.schema.relation(relation).says_when(self.lang)
                        && self.has(*node, relation)?
                    {
                        let time = self.arena.add(Node::Join((relation, true), *node))?;
                        made.push((Cat::set(time), vec![(F::asks_time, 1.0)]));
                    }
                }
            }
            (Op::Share, Cat::Relation(r)) => made.push((Cat::Sharing(*r), Vec::new())),
            (Op::Ordinal(n), Cat::Relation(r)) if self.schema.relation(*r).kind == Kind::Number => {
                // `the rooms on the second floor`
                let number = self.arena.add(Node::Const(f64::from(n).to_bits()))?;
                let cat = Cat::Filter(Measure::of(*r), Comparison::Equal, number);
                made.push((cat, vec![(F::ordinal, 1.0)]));
            }
            (Op::Order(first), Cat::Relation(r)) => {
                made.push((Cat::Ordered(Some(Measure::of(*r)), first), Vec::new()));
            }
            (Op::Order(first), Cat::Counted(r)) => {
                let by = Measure::how_many(*r);
                made.push((Cat::Ordered(Some(by), first), Vec::new()));
            }
            (Op::Each, Cat::Set { node, open, .. }) => {
                if self.arena.kind(*node) == Kind::Thing && !self.is_named(*node) {
                    made.push((Cat::Each(*node, *open), Vec::new()));
                }
            }
            (Op::Rank, Cat::Set { node, .. }) => {
                if let Node::Table(_, _, Some(_)) = self.arena.node(*node) {
                    made.push((other.clone(), vec![(F::order, 1.0)]));
                }
            }
            (Op::Order(first), Cat::Number(n)) => {
                // `ordered by the number of rivers`
                if let Node::Count(of) = *self.arena.node(*n) {
                    made.push((Cat::OrderedCount(of, first), Vec::new()));
                }
            }
            (Op::And, Cat::Relation(r)) => made.push((Cat::WithColumn(*r), Vec::new())),
            (Op::Compare(is), Cat::Op(Op::Aggregate(aggregate))) => {
                // `above average`
                for greater in [true, false] {
                    if is == comparative(greater) {
                        made.push((Cat::than_usual(greater, 0, *aggregate), Vec::new()));
                    }
                }
            }
            (Op::And | Op::Or, Cat::Number(n)) => {
                // `in 2014 or 2015`
                let is_or = op == Op::Or;
                made.push((Cat::WithThan(is_or, Comparison::Equal, *n), Vec::new()));
            }
            (Op::And, Cat::Ordered(..) | Cat::OrderedCount(..)) => {
                made.push((other.clone(), Vec::new()));
            }
            (Op::Event, Cat::Number(_) | Cat::Than(..) | Cat::Range(..)) => {
                // `built in 1990`: the year that the graph has
                made.push((other.clone(), vec![(F::event, 1.0)]));
            }
            (Op::More(greater, degree), Cat::Op(Op::Aggregate(aggregate))) => {
                made.push((Cat::than_usual(greater, degree, *aggregate), Vec::new()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a set has two members, and the question does not say what they are compared with.
    fn is_pair(&mut self, node: Id) -> Result<bool> {
        if self.words.all.iter().any(|w| self.lang.is_than(&w.lower)) || self.is_named(node) {
            return Ok(false);
        }
        match self.arena.node(node) {
            Node::Class(class) => Ok(self.schema.classes[*class as usize].instances == 2),
            _ => Ok((self.arena.members(node)?).is_some_and(|all| all.len() == 2)),
        }
    }

    /// Whether the question is where something happens, and a set is what it happens in: not for
    /// `where is` without a verb, which asks for the place of the thing itself.
    fn says_where(&self, node: Id) -> bool {
        let Node::Join((relation, true), _) = *self.arena.node(node) else {
            return false;
        };
        let first = |p: &&Phrase| p.op == Op::Where;
        let Some(phrase) = self.words.phrases.iter().find(first) else {
            return false;
        };
        let next = self.words.all.get(phrase.to);
        let of = self.schema.relation(relation);
        let inside = |word: &String| self.lang.between(word) == Some(Gap::In);
        let placed = of
            .stems
            .iter()
            .any(|s| self.lang.place_relations.contains(s));
        let last = self.words.all.iter().rfind(|w| !w.is_silent);
        let happens = last.is_some_and(|w| self.lang.is_participle(&w.lower));
        (happens || !next.is_some_and(|w| self.lang.is_present(&w.lower)))
            && (placed || of.prepositions.iter().any(inside))
    }

    /// Members of a set that have a relation at all.
    pub(super) fn that_has(&mut self, node: Id, relation: RelationId) -> Result<Id> {
        if let Node::Whatever(_) = self.arena.node(node) {
            return self.arena.add(Node::Side(relation, false));
        }
        let types = self.arena.types(node);
        let forward = self.schema.fits(&types, (relation, true));
        let side = self.arena.add(Node::Side(relation, !forward))?;
        self.arena.add(Node::And(node, side))
    }

    /// An operator after a part.
    pub(super) fn operator_after(&mut self, op: Op, before: &Cat, made: &mut Made) -> Result<()> {
        match (op, before) {
            (Op::Share, Cat::Relation(r)) => made.push((Cat::Sharing(*r), Vec::new())),
            // `how many cars were made`
            (Op::Event, Cat::Set { .. } | Cat::Number(_)) => {
                made.push((before.clone(), vec![(F::event_alone, 1.0)]));
            }
            // `5 or more`
            (Op::Compare(is @ (Comparison::AtLeast | Comparison::AtMost)), Cat::Number(n)) => {
                made.push((Cat::Than(is, *n), Vec::new()));
            }
            (Op::More(greater, degree), Cat::Set { node, .. })
                if self.is_choice(*node) || self.is_pair(*node)? =>
            {
                let best = Op::Best(greater, degree);
                self.superlative(best, Ranked::Nth(1), before, made)?;
            }
            // `the area of all states combined`
            (Op::Aggregate(aggregate), Cat::Set { node, .. }) => {
                if let Node::Join((r, true), of) = *self.arena.node(*node)
                    && self.schema.relation(r).kind == Kind::Number
                {
                    let by = Measure::of(r);
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
}
