//! Values of measures, and the sets that are made by them: ranks and comparisons.
//!
//! A measure is evaluated thing by thing. A number is a measure without a thing, evaluated once.

use std::cmp::Ordering;
use std::sync::Arc;

use wherefore_graph::{Direction, EntityId};

use super::form::{Aggregate, Comparison, Extreme, Place, Rank};
use super::plan::{Domain, Measure, Set, Way, node};
use super::run::{AHEAD, Runner, relation_of};
use super::value::{Quantity, first, order};
use crate::error::{Error, Result};

impl Runner<'_> {
    /// A number, computed once.
    pub(super) fn number(&mut self, number: &Measure) -> Result<Option<Quantity>> {
        if let Some(known) = self.known.numbers.get(&node(number)) {
            return Ok(*known);
        }
        let value = self.evaluate(None, number)?.first().copied();
        self.known.numbers.insert(node(number), value);
        Ok(value)
    }

    /// The distinct values of a thing by a measure, from small to large. Without a thing, a number.
    pub(super) fn values(
        &mut self,
        of: Option<EntityId>,
        measure: &Measure,
    ) -> Result<Vec<Quantity>> {
        if measure.is_closed() {
            return Ok(self.number(measure)?.into_iter().collect());
        }
        self.evaluate(of, measure)
    }

    fn evaluate(&mut self, of: Option<EntityId>, measure: &Measure) -> Result<Vec<Quantity>> {
        match measure {
            Measure::Constant(value) => Ok(vec![*value]),
            Measure::Path(ways, sense) => {
                let mut values = Vec::new();
                if let Some(of) = of {
                    for end in self.reached(of, ways)? {
                        values.extend(self.quantity(end, *sense)?);
                    }
                }
                Ok(distinct(values))
            }
            Measure::Count(domain) => {
                let count = self.domain(of, domain)?.len();
                Ok(vec![Quantity::Number(count as f64)])
            }
            Measure::Of(aggregate, domain, by) => {
                let mut values = Vec::new();
                for things in self.domain(of, domain)?.chunks(AHEAD) {
                    self.graph.prefetch(things, Direction::Both)?;
                    for &thing in things {
                        values.extend(self.values(Some(thing), by)?);
                    }
                    self.room(values.len())?;
                }
                Ok(aggregate.of(values).into_iter().collect())
            }
            Measure::Arithmetic(operator, a, b) => {
                let [a, b] = [self.values(of, a)?, self.values(of, b)?];
                self.room(a.len().saturating_mul(b.len()))?;
                self.tick(a.len() * b.len())?;
                let mut values = Vec::new();
                for a in a.iter().filter_map(Quantity::number) {
                    for b in b.iter().filter_map(Quantity::number) {
                        values.extend(operator.of(a, b).map(Quantity::Number));
                    }
                }
                Ok(distinct(values))
            }
        }
    }

    fn room(&self, values: usize) -> Result<()> {
        let limit = self.limits.rows;
        if values > limit {
            return Err(Error::FormTooLarge { limit });
        }
        Ok(())
    }

    /// The things that are counted or aggregated, sorted.
    pub(super) fn domain(
        &mut self,
        of: Option<EntityId>,
        domain: &Domain,
    ) -> Result<Arc<[EntityId]>> {
        match (domain, of) {
            (Domain::Members(set), _) => self.extension(set),
            (Domain::Reached(..), None) => Ok(Arc::default()),
            (Domain::Reached(ways, None), Some(of)) => Ok(self.reached(of, ways)?.into()),
            (Domain::Reached(ways, Some(set)), Some(of)) => {
                let mut kept = Vec::new();
                for end in self.reached(of, ways)? {
                    if self.holds(end, set, &[])? {
                        kept.push(end);
                    }
                }
                Ok(kept.into())
            }
        }
    }

    /// What numbers were made of: all that was counted or added up; for an extreme, what has it.
    pub(super) fn contributors(&mut self, numbers: &[&Measure]) -> Result<Vec<EntityId>> {
        let mut found = Vec::new();
        let mut open: Vec<&Measure> = numbers.to_vec();
        while let Some(number) = open.pop() {
            match number {
                Measure::Constant(_) | Measure::Path(..) => {}
                Measure::Count(domain) => found.extend(self.domain(None, domain)?.iter()),
                Measure::Of(aggregate, domain, by) => {
                    let Some(value) = self.number(number)? else {
                        continue;
                    };
                    for &thing in self.domain(None, domain)?.iter() {
                        let values = self.values(Some(thing), by)?;
                        if values
                            .iter()
                            .any(|v| aggregate.adds() || is_equal(v, &value))
                        {
                            found.push(thing);
                        }
                    }
                }
                Measure::Arithmetic(_, a, b) => open.extend([&**a, &**b]),
            }
        }
        self.bounded(found)
    }

    /// The first two values of a thing that compare so.
    pub(super) fn passing(
        &mut self,
        entity: EntityId,
        is: Comparison,
        by: &Measure,
        than: &Measure,
    ) -> Result<Option<(Quantity, Quantity)>> {
        let than_values = self.values(Some(entity), than)?;
        if than_values.is_empty() {
            return Ok(None);
        }
        for a in self.values(Some(entity), by)? {
            for &b in &than_values {
                if compares(is, by, a, than, b) {
                    return Ok(Some((a, b)));
                }
            }
        }
        Ok(None)
    }

    /// Whatever has a value that compares so.
    pub(super) fn compared(&mut self, set: &Set) -> Result<Vec<EntityId>> {
        let Set::Compare { is, by, than } = set else {
            return Ok(Vec::new());
        };
        if let Measure::Path(ways, _) = by
            && than.is_closed()
        {
            return match self.number(than)? {
                Some(value) => self.reaching(ways, |v| compares(*is, by, v, than, value), by),
                None => Ok(Vec::new()),
            };
        }
        let candidates = if set.is_open() {
            self.everything()?
        } else {
            // what has none of it may be counted; all else must be there
            let must = [by, than].into_iter().find(|m| must_be_there(m));
            match first_way(must.unwrap_or(by)) {
                Some(way) => self.beginning(way)?,
                None => Vec::new(),
            }
        };
        let mut found = Vec::new();
        for candidate in candidates {
            if self.passing(candidate, *is, by, than)?.is_some() {
                found.push(candidate);
            }
        }
        Ok(found)
    }

    /// Whatever a path leads from to a value that passes.
    fn reaching(
        &mut self,
        ways: &[Way],
        passes: impl Fn(Quantity) -> bool,
        by: &Measure,
    ) -> Result<Vec<EntityId>> {
        let Some((last, before)) = ways.split_last() else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        let mut tried: Option<(EntityId, bool)> = None;
        for triple in self.graph.with_relation(relation_of(last)?)? {
            let triple = triple?;
            let (start, end) = match last.reversed {
                true => (triple.tail, triple.head),
                false => (triple.head, triple.tail),
            };
            self.tick(1)?;
            let does = match tried {
                Some((known, does)) if known == end => does,
                _ => self.quantity(end, by.sense())?.is_some_and(&passes),
            };
            tried = Some((end, does));
            if does {
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

    /// Whatever a way begins at.
    fn beginning(&mut self, way: &Way) -> Result<Vec<EntityId>> {
        let mut found = Vec::new();
        for triple in self.graph.with_relation(relation_of(way)?)? {
            let triple = triple?;
            self.tick(1)?;
            found.push(if way.reversed {
                triple.tail
            } else {
                triple.head
            });
        }
        self.bounded(found)
    }

    /// Whatever stands in a triple.
    fn everything(&mut self) -> Result<Vec<EntityId>> {
        let mut found = Vec::new();
        for id in 0..self.graph.entity_bound() {
            let entity = EntityId(id as u32);
            self.tick(1)?;
            let graph = self.graph;
            if !graph.outgoing(entity)?.is_empty() || !graph.incoming(entity)?.is_empty() {
                found.push(entity);
                self.room(found.len())?;
            }
        }
        Ok(found)
    }

    /// The members of a `Best`, computed once: sorted, each with the value that gave its rank.
    pub(super) fn best_of(&mut self, set: &Set) -> Result<Arc<[(EntityId, Quantity)]>> {
        if let Some(known) = self.known.bests.get(&node(set)) {
            return Ok(Arc::clone(known));
        }
        let Set::Best { rank, among, by } = set else {
            return Ok(Arc::default());
        };
        let mut ranked = Vec::new();
        for &entity in self.extension(among)?.iter() {
            let values = self.values(Some(entity), by)?;
            match rank.place {
                Place::Nth(_) => ranked.extend(values.into_iter().map(|v| (entity, v))),
                _ => ranked.extend(first(&values, rank.extreme).map(|v| (entity, v))),
            }
        }
        let mut best = placed(ranked, *rank);
        best.sort_by_key(|(entity, _)| *entity);
        let best: Arc<[(EntityId, Quantity)]> = best.into();
        self.known.bests.insert(node(set), Arc::clone(&best));
        Ok(best)
    }
}

/// Those that stand in the places that are asked for.
fn placed(mut ranked: Vec<(EntityId, Quantity)>, rank: Rank) -> Vec<(EntityId, Quantity)> {
    let from_first = |a: &Quantity, b: &Quantity| match rank.extreme {
        Extreme::Largest => order(b, a),
        Extreme::Smallest => order(a, b),
    };
    ranked.sort_by(|a, b| from_first(&a.1, &b.1).then(a.0.cmp(&b.0)));
    let group_of = |value: Quantity, ranked: &[(EntityId, Quantity)]| {
        ranked.partition_point(|(_, v)| from_first(v, &value).is_le())
    };
    let (from, last) = match rank.place {
        Place::Best => (0, ranked.first().map(|(_, v)| *v)),
        Place::First(k) => {
            let last = ranked.get((k.get() as usize).min(ranked.len()).wrapping_sub(1));
            (0, last.map(|(_, v)| *v))
        }
        Place::Nth(k) => {
            let mut from = 0;
            for _ in 1..k.get() {
                match ranked.get(from) {
                    Some(&(_, value)) => from = group_of(value, &ranked),
                    None => break,
                }
            }
            (from, ranked.get(from).map(|(_, v)| *v))
        }
    };
    let to = last.map_or(from, |last| group_of(last, &ranked));
    ranked.truncate(to);
    ranked.split_off(from.min(to))
}

impl Aggregate {
    /// The value of all; none of nothing, or where it is no finite number.
    fn of(self, values: Vec<Quantity>) -> Option<Quantity> {
        let least = values
            .iter()
            .copied()
            .reduce(|a, b| pick(a, b, Ordering::Less));
        let most = values
            .iter()
            .copied()
            .reduce(|a, b| pick(a, b, Ordering::Greater));
        match self {
            Aggregate::Largest => most,
            Aggregate::Smallest => least,
            Aggregate::Only => least.filter(|a| most.is_some_and(|b| is_equal(a, &b))),
            Aggregate::Sum | Aggregate::Average => {
                let numbers: Vec<f64> = values.iter().filter_map(Quantity::number).collect();
                let sum = sum(&numbers);
                let whole = match self {
                    Aggregate::Average => sum / numbers.len() as f64,
                    _ => sum,
                };
                (whole.is_finite() && !numbers.is_empty()).then_some(Quantity::Number(whole))
            }
        }
    }
}

/// Neumaier's sum: what is lost of each addition is added at the end.
fn sum(numbers: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for &number in numbers {
        let next = sum + number;
        lost += if sum.abs() >= number.abs() {
            (sum - next) + number
        } else {
            (number - next) + sum
        };
        sum = next;
    }
    // what was lost of an infinite sum is no number
    if sum.is_finite() { sum + lost } else { sum }
}

fn pick(a: Quantity, b: Quantity, wanted: Ordering) -> Quantity {
    if order(&b, &a) == wanted { b } else { a }
}

/// Values of one measure always compare.
pub(super) fn is_equal(a: &Quantity, b: &Quantity) -> bool {
    a.order(b) == Some(Ordering::Equal)
}

fn distinct(mut values: Vec<Quantity>) -> Vec<Quantity> {
    values.sort_by(order);
    values.dedup_by(|a, b| is_equal(a, b));
    values
}

/// A value of the graph against a constant as XPath compares them; all else in the order of
/// extremes, which leaves nothing undecided.
fn compares(is: Comparison, by: &Measure, a: Quantity, than: &Measure, b: Quantity) -> bool {
    is.holds(match (by, than) {
        (Measure::Path(..), Measure::Constant(_)) => a.partial_cmp(&b),
        _ => a.order(&b),
    })
}

/// A way that a thing must have to have a value.
fn first_way(measure: &Measure) -> Option<&Way> {
    match measure {
        Measure::Path(ways, _)
        | Measure::Count(Domain::Reached(ways, _))
        | Measure::Of(_, Domain::Reached(ways, _), _) => ways.first(),
        Measure::Arithmetic(_, a, b) => {
            let sides = [&**a, &**b];
            sides
                .into_iter()
                .find(|m| must_be_there(m))
                .and_then(first_way)
        }
        Measure::Constant(_) | Measure::Count(_) | Measure::Of(..) => None,
    }
}

/// Whether only things have a value that the graph says something of.
fn must_be_there(measure: &Measure) -> bool {
    !measure.is_open() && !measure.is_closed()
}
