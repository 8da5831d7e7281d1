//! Numbers, comparisons and aggregates.

#![allow(
    clippy::collapsible_match,
    reason = "an arm whose condition fails makes nothing, and must not fall to the next"
)]

use std::rc::Rc;

use wherefore_graph::RelationId;

use super::arena::{Id, Measure, Node, Ranked};
use super::cat::Cat;
use super::features::Feature as F;
use super::search::{Made, Search};
use super::vocabulary::Kind;
use crate::error::Result;
use crate::logic::{Aggregate, Comparison};

/// More than, or less than.
pub(super) fn comparative(greater: bool) -> Comparison {
    match greater {
        true => Comparison::Greater,
        false => Comparison::Less,
    }
}

impl Search<'_> {
    /// Numbers, comparisons and aggregates.
    pub(super) fn numbers(&mut self, a: &Cat, b: &Cat, made: &mut Made) -> Result<()> {
        match (a, b) {
            (Cat::Relation(r), Cat::Than(is, n)) | (Cat::Than(is, n), Cat::Relation(r)) => {
                if !self.arena.agrees(*r, *n) {
                    return Ok(());
                }
                let by = match self.schema.relation(*r).kind {
                    Kind::Number | Kind::Time => Measure::of(*r),
                    // nothing can have more of them than there are
                    Kind::Thing if self.may_count(*r, *n) => Measure::how_many(*r),
                    Kind::Thing | Kind::Text => return Ok(()),
                };
                made.push((Cat::Filter(by, *is, *n), vec![(F::compare_relation, 1.0)]));
            }
            // `bigger than 5 hectares`, where that is a word of the measure
            (
                Cat::FilterDegree {
                    greater,
                    than,
                    is_number: true,
                    ..
                },
                Cat::Relation(r),
            ) if self.schema.relation(*r).kind.is_measure() && self.arena.agrees(*r, *than) => {
                let filter = Cat::Filter(Measure::of(*r), comparative(*greater), *than);
                made.push((filter, vec![(F::compare_relation, 1.0)]));
            }
            // `last longer than two hours`, where both words are the duration's
            (
                Cat::Relation(r),
                Cat::FilterDegree {
                    greater,
                    degree,
                    than,
                    is_number,
                },
            ) if self.schema.relation(*r).kind.is_measure() && self.is_of_degree(*r, *degree) => {
                let by = Measure::of(*r);
                let than = match is_number {
                    true if self.arena.agrees(*r, *than) => *than,
                    false if self.has(*than, *r)? => {
                        let value = Node::Of(Aggregate::Only, *than, by.clone());
                        self.arena.add(value)?
                    }
                    _ => return Ok(()),
                };
                let filter = Cat::Filter(by, comparative(*greater), than);
                made.push((filter, vec![(F::compare_relation, 1.0)]));
            }
            // `lasted more than 100 days`, where both words are the duration's
            (Cat::Relation(r), Cat::Filter(by, ..)) if *by == Measure::of(*r) => {
                made.push((b.clone(), vec![(F::merged, 1.0)]));
            }
            (Cat::ThanRelation(is, r), Cat::Number(n)) => {
                if self.schema.relation(*r).kind.is_measure() && self.arena.agrees(*r, *n) {
                    let by = Measure::of(*r);
                    made.push((Cat::Filter(by, *is, *n), vec![(F::compare_relation, 1.0)]));
                }
            }
            (Cat::ThanRelation(is, r), Cat::Set { node, .. })
            | (Cat::Set { node, .. }, Cat::ThanRelation(is, r))
                if self.is_choice(*node) =>
            {
                if self.is_measured(*node, *r)? {
                    let by = Measure::of(*r);
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
                if self.schema.relation(*r).kind.is_measure() && self.has(*node, *r)? {
                    let by = Measure::of(*r);
                    let value = Node::Of(Aggregate::Only, *node, by.clone());
                    let value = self.arena.add(value)?;
                    made.push((
                        Cat::Filter(by, *is, value),
                        vec![(F::compare_relation, 1.0)],
                    ));
                }
            }
            (Cat::Relation(r), Cat::ThanOf(is, of)) | (Cat::ThanOf(is, of), Cat::Relation(r)) => {
                // `weigh more than Mila`, `planted before the mint`
                if self.schema.relation(*r).kind.is_measure() && self.has(*of, *r)? {
                    let by = Measure::of(*r);
                    let value = Node::Of(Aggregate::Only, *of, by.clone());
                    let value = self.arena.add(value)?;
                    made.push((
                        Cat::Filter(by, *is, value),
                        vec![(F::compare_relation, 1.0)],
                    ));
                }
            }
            (Cat::Relation(r), Cat::Number(n)) | (Cat::Number(n), Cat::Relation(r)) => {
                let is_said = matches!(self.arena.node(*n), Node::Const(_));
                if is_said
                    && self.arena.agrees(*r, *n)
                    && self.schema.relation(*r).kind.is_measure()
                {
                    let by = Measure::of(*r);
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
                    && self.may_choose(*node)
                {
                    let filtered = self.arena.filtered(*node, by.clone(), *is, *n)?;
                    made.push((Cat::set(filtered), Vec::new()));
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Than(is, n),
            ) => {
                if let Node::Join((r, true), of) = *self.arena.node(*node)
                    && self.schema.relation(r).kind.is_measure()
                    && self.arena.agrees(r, *n)
                {
                    // `is the population of Texas more than 5 million`
                    let by = Measure::of(r);
                    let filtered = self.arena.filtered(of, by, *is, *n)?;
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
                    let filtered = self.arena.filtered(*node, by, *is, *n)?;
                    made.push((Cat::set(filtered), own));
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
                // of a name there is nothing to choose: `border Germany and are larger than Poland`
                if !self.may_choose(*node) {
                    return Ok(());
                }
                let is = comparative(*greater);
                for (relation, rank) in self.degree(*degree, *node)? {
                    let by = Measure::of(relation);
                    if *is_number && !self.arena.agrees(relation, *than) {
                        continue;
                    }
                    let n = match is_number {
                        true => *than,
                        false if self.has(*than, relation)? => {
                            self.arena
                                .add(Node::Of(Aggregate::Only, *than, by.clone()))?
                        }
                        false => continue,
                    };
                    let filtered = self.arena.filtered(*node, by, is, n)?;
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
                    let by = Measure::of(*r);
                    let average = Node::Of(*aggregate, *node, by.clone());
                    let average = self.arena.add(average)?;
                    let filtered = self.arena.filtered(*node, by, *is, average)?;
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
                    let by = Measure::of(*r);
                    let value = self.arena.add(Node::Of(*aggregate, *node, by))?;
                    made.push((Cat::Number(value), Vec::new()));
                }
            }
            (Cat::Set { node, .. }, Cat::WithThan(is_or, is, n)) => {
                // `founded before 2003 or after 2010`; `with 8 cylinders or built before 1980`
                if let Node::Where(of, by, _, _) = self.arena.node(*node).clone() {
                    let mut others = vec![(self.arena.filtered(of, by, *is, *n)?, Vec::new())];
                    let mut unspoken = Made::new();
                    self.unspoken(of, *is, *n, F::compare_unspoken, &mut unspoken)?;
                    for (cat, own) in unspoken {
                        if let Cat::Set { node, .. } = cat
                            && node != others[0].0
                        {
                            others.push((node, own));
                        }
                    }
                    for (other, mut own) in others {
                        let both = match is_or {
                            true => Node::Or(*node, other),
                            false => Node::And(*node, other),
                        };
                        if self.leaves_all(other, of)?.is_some() {
                            own.push((F::idle_comparison, 1.0));
                        }
                        made.push((Cat::set(self.arena.add(both)?), own));
                    }
                }
            }
            // `ordered by age, from high to low`
            (Cat::Ordered(Some(by), _), Cat::Ordered(None, first)) => {
                made.push((Cat::Ordered(Some(by.clone()), *first), Vec::new()));
            }
            (Cat::Set { node, .. }, Cat::Ordered(None, first)) => {
                let ordered = match self.arena.node(*node).clone() {
                    Node::Table(of, columns, Some((by, _))) => {
                        let order = Some((by, *first));
                        Cat::set(self.arena.add(Node::Table(of, columns, order))?)
                    }
                    _ => a.clone(),
                };
                made.push((ordered, vec![(F::order, 1.0)]));
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Ordered(Some(by), first),
            ) => {
                if !self.is_named(*node) && self.measures(*node, by) {
                    let order = Some((by.clone(), *first));
                    self.table(*node, &[], order, F::order, made)?;
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::OrderedCount(of, first),
            ) => {
                for (by, own) in self.counts(*node, *of, None)? {
                    let from = made.len();
                    self.table(*node, &[], Some((by, *first)), F::order, made)?;
                    made[from..].iter_mut().for_each(|m| m.1.extend(&own));
                }
            }
            (
                Cat::Set {
                    node,
                    open: Some(via),
                    ..
                },
                Cat::Each(of, None),
            ) => made.push((Cat::CountedEach(*node, *of, *via), Vec::new())),
            (Cat::Each(of, None), Cat::Relation(r)) => {
                made.push((Cat::Each(*of, Some(*r)), Vec::new()));
            }
            // `how many patients does each doctor treat`
            (Cat::Number(n), Cat::Each(of, via)) | (Cat::Each(of, via), Cat::Number(n)) => {
                if let Node::Count(counted) = *self.arena.node(*n) {
                    self.counted_each(counted, *of, *via, made)?;
                }
            }
            // `the capital of each country`
            (Cat::Relation(r), Cat::Each(of, None)) => self.columns(*of, &[*r], made)?,
            (Cat::Columns(all), Cat::Each(of, None)) => self.columns(*of, all, made)?,
            (Cat::Counted(r), Cat::Each(of, None)) => {
                if self.has(*of, *r)? {
                    let table = Node::Table(*of, Rc::from([Measure::how_many(*r)]), None);
                    let table = self.arena.add(table)?;
                    made.push((Cat::set(table), vec![(F::columns, 1.0)]));
                }
            }
            (Cat::Counted(r), Cat::Than(is, n)) => {
                let by = Measure::how_many(*r);
                made.push((Cat::Filter(by, *is, *n), vec![(F::compare_count, 1.0)]));
            }
            (
                Cat::Counted(r),
                Cat::Set {
                    node, open: None, ..
                },
            ) => {
                // `the number of neighbours of Kenya`
                if self.arena.kind(*node) == Kind::Thing && self.has(*node, *r)? {
                    let all = self.arena.add(Node::Join((*r, true), *node))?;
                    let count = self.arena.add(Node::Count(all))?;
                    made.push((Cat::Number(count), vec![(F::count_set, 1.0)]));
                }
            }
            // `In 1980, how many cars …`
            (Cat::Number(n), Cat::Number(counted)) => {
                if let Node::Count(of) = *self.arena.node(*counted) {
                    let mut inside = Made::new();
                    let equal = Comparison::Equal;
                    self.unspoken(of, equal, *n, F::equal_unspoken, &mut inside)?;
                    for (cat, own) in inside {
                        if let Cat::Set { node, .. } = cat {
                            let count = self.arena.add(Node::Count(node))?;
                            made.push((Cat::Number(count), own));
                        }
                    }
                }
            }
            // `than the one with the most horsepower`
            (Cat::ThanRelation(is, r), Cat::Top(greatest, by, ranked)) => {
                if let Some(of) = self.whoever(by)?
                    && self.is_measured(of, *r)?
                {
                    let top = Node::Top(of, by.clone(), *greatest, *ranked);
                    let top = self.arena.add(top)?;
                    let by = Measure::of(*r);
                    let value = Node::Of(Aggregate::Only, top, by.clone());
                    let value = self.arena.add(value)?;
                    made.push((
                        Cat::Filter(by, *is, value),
                        vec![(F::compare_relation, 1.0), (F::subject_unsaid, 1.0)],
                    ));
                }
            }
            // `a population larger than average`
            (
                Cat::Relation(r),
                Cat::ThanUsual {
                    greater, aggregate, ..
                },
            ) => {
                let is = comparative(*greater);
                made.push((Cat::ThanAverage(is, *aggregate, *r), Vec::new()));
            }
            (Cat::Relation(r), Cat::WithColumn(s)) => {
                made.push((Cat::Columns(Rc::from([*r, *s])), Vec::new()));
            }
            (Cat::Columns(all), Cat::WithColumn(s) | Cat::Relation(s)) => {
                let all = all.iter().copied().chain([*s]);
                made.push((Cat::Columns(all.collect()), Vec::new()));
            }
            (
                Cat::Columns(columns),
                Cat::Set {
                    node, open: None, ..
                },
            )
            | (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Columns(columns),
            ) => self.columns(*node, columns, made)?,
            // `the names and ages of singers`, `all singers and their ages`
            (
                Cat::WithColumn(r),
                Cat::Set {
                    node, open: None, ..
                },
            )
            | (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::WithColumn(r),
            ) => {
                if !self.is_named(*node) {
                    self.columns(*node, &[*r], made)?;
                }
            }
            (Cat::Relation(r), Cat::Range(low, high))
            | (Cat::Range(low, high), Cat::Relation(r)) => {
                if self.schema.relation(*r).kind.is_measure() && self.arena.agrees(*r, *low) {
                    let by = Measure::of(*r);
                    let cat = Cat::FilterRange(by, *low, *high);
                    made.push((cat, vec![(F::compare_relation, 1.0)]));
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::FilterRange(by, low, high),
            ) => {
                if self.arena.kind(*node) == Kind::Thing && self.measures(*node, by) {
                    let within = self.between(*node, by, *low, *high)?;
                    made.push((Cat::set(within), Vec::new()));
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::Range(low, high),
            ) => {
                let mut above = Made::new();
                let at_least = Comparison::AtLeast;
                self.unspoken(*node, at_least, *low, F::compare_unspoken, &mut above)?;
                for (cat, own) in above {
                    if let Cat::Set { node, .. } = cat
                        && let Node::Where(_, by, ..) = self.arena.node(node).clone()
                    {
                        let within = self.arena.filtered(node, by, Comparison::AtMost, *high)?;
                        made.push((Cat::set(within), own));
                    }
                }
            }
            (
                Cat::Set {
                    node, open: None, ..
                },
                Cat::ThanUsual {
                    greater,
                    degree,
                    aggregate,
                },
            ) => {
                let is = comparative(*greater);
                for (relation, rank) in self.degree(*degree, *node)? {
                    let by = Measure::of(relation);
                    let usual = Node::Of(*aggregate, *node, by.clone());
                    let usual = self.arena.add(usual)?;
                    let filtered = self.arena.filtered(*node, by, is, usual)?;
                    let own = vec![(F::compare_average, 1.0), (F::top_rank, rank)];
                    made.push((Cat::set(filtered), own));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether as many things as a number says may be at the end of a relation.
    fn may_count(&self, relation: RelationId, number: Id) -> bool {
        let most = self.schema.relation(relation).count as f64;
        match self.arena.node(number) {
            Node::Const(bits) => {
                f64::from_bits(*bits) <= most && self.arena.unit_of(number).is_none()
            }
            _ => true,
        }
    }

    /// Whether a relation is one of those that a degree measures.
    pub(super) fn is_of_degree(&self, relation: RelationId, degree: u8) -> bool {
        let of = self.schema.relation(relation);
        let measures = &self.lang.measures[usize::from(degree)];
        let says = |stem: &String| {
            measures
                .iter()
                .any(|m| m == stem || self.lang.same_group(m, stem))
        };
        of.stems.iter().any(says)
            || self.lang.timed[usize::from(degree)] && of.is_time(self.lang)
            || of
                .unit
                .is_some_and(|unit| self.lang.degree_measured_in(degree, unit))
    }

    /// Members of a set whose measure is within a range.
    pub(super) fn between(&mut self, of: Id, by: &Measure, low: Id, high: Id) -> Result<Id> {
        let above = self
            .arena
            .filtered(of, by.clone(), Comparison::AtLeast, low)?;
        self.arena
            .filtered(above, by.clone(), Comparison::AtMost, high)
    }

    /// A set with what is told of each member.
    pub(super) fn table(
        &mut self,
        of: Id,
        columns: &[RelationId],
        order: Option<(Measure, bool)>,
        feature: F,
        made: &mut Made,
    ) -> Result<()> {
        let (of, mut all, known) = match self.arena.node(of).clone() {
            Node::Table(of, columns, order) => (of, columns.to_vec(), order),
            _ => (of, Vec::new(), None),
        };
        let more = columns.iter().map(|r| Measure::of(*r));
        for by in more.chain(order.iter().map(|o| o.0.clone())) {
            if !all.contains(&by) {
                all.push(by);
            }
        }
        let table = Node::Table(of, all.into(), order.or(known));
        made.push((Cat::set(self.arena.add(table)?), vec![(feature, 1.0)]));
        Ok(())
    }

    /// How many of a set each member of another has to do with.
    pub(super) fn counted_each(
        &mut self,
        counted: Id,
        of: Id,
        via: Option<RelationId>,
        made: &mut Made,
    ) -> Result<()> {
        for (by, mut own) in self.counts(of, counted, via)? {
            own.push((F::columns, 1.0));
            let table = Node::Table(of, Rc::from([by]), None);
            made.push((Cat::set(self.arena.add(table)?), own));
        }
        Ok(())
    }

    /// `the capital and the area of X`: of one thing both; of several, both for each.
    pub(super) fn columns(
        &mut self,
        of: Id,
        columns: &[RelationId],
        made: &mut Made,
    ) -> Result<()> {
        if self.arena.kind(of) != Kind::Thing {
            return Ok(());
        }
        for relation in columns {
            if !self.has(of, *relation)? {
                return self.all_lead_to(of, columns, made);
            }
        }
        if !self.is_named(of) {
            return self.table(of, columns, None, F::columns, made);
        }
        let mut all = None;
        for relation in columns {
            let one = self.arena.add(Node::Join((*relation, true), of))?;
            all = Some(match all {
                Some(before) => self.arena.add(Node::Or(before, one))?,
                None => one,
            });
        }
        made.extend(all.map(|all| (Cat::set(all), vec![(F::columns, 1.0)])));
        Ok(())
    }

    /// `what X wrote and directed`: what leads to a name by each relation.
    fn all_lead_to(&mut self, name: Id, relations: &[RelationId], made: &mut Made) -> Result<()> {
        let mut all = None;
        for relation in relations {
            let step = (*relation, false);
            if !self.is_named(name) || !self.arena.has_step(name, step)? {
                return Ok(());
            }
            let one = self.arena.add(Node::Join(step, name))?;
            all = Some(match all {
                Some(before) => self.arena.add(Node::And(before, one))?,
                None => one,
            });
        }
        made.extend(all.map(|all| (Cat::set(all), vec![(F::columns, 1.0)])));
        Ok(())
    }

    /// `concerts in 2014`: the attribute is not said; one that has such values is meant.
    pub(super) fn unspoken(
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
        let number = f64::from_bits(bits);
        let unit = self.arena.unit_of(n);
        let year = unit.is_none() && (1000.0..2200.0).contains(&number);
        let age = unit.is_none() && (1.0..130.0).contains(&number) && is != Comparison::Equal;
        for id in 0..self.schema.relations.len() {
            let relation = RelationId(id as u32);
            let of = self.schema.relation(relation);
            let timely = year && of.is_time(self.lang);
            // `over forty`
            let aged = || age && of.stems.iter().all(|stem| self.lang.ages.contains(stem));
            // `under 10 km`, `less than 20 euros`
            let measured = || match (unit, of.unit) {
                (Some(said), Some(own)) => said.kind == own.kind,
                (Some(said), None) => of.stems.iter().any(|s| self.lang.is_measured_in(s, said)),
                (None, _) => false,
            };
            let fits = timely || aged() || measured();
            if !of.kind.is_measure() || !fits || !self.has(node, relation)? {
                continue;
            }
            let by = Measure::of(relation);
            let filtered = self.arena.filtered(node, by, is, n)?;
            made.push((Cat::set(filtered), vec![(feature, 1.0)]));
        }
        Ok(())
    }
}
