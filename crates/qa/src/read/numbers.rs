//! Numbers, comparisons and aggregates.

#![allow(
    clippy::collapsible_match,
    reason = "an arm whose condition fails makes nothing, and must not fall to the next"
)]

use std::rc::Rc;

use wherefore_graph::RelationId;

use super::arena::{Id, Measure, Node, Ranked};
use super::chart::{Cat, Made, Search};
use super::features::Feature as F;
use super::schema::Kind;
use crate::error::Result;
use crate::logic::{Aggregate, Comparison};

impl Search<'_> {
    /// Numbers, comparisons and aggregates.
    pub(super) fn numbers(&mut self, a: &Cat, b: &Cat, made: &mut Made) -> Result<()> {
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
        let year = (1000.0..2200.0).contains(&f64::from_bits(bits));
        for id in 0..self.schema.relations.len() {
            let relation = RelationId(id as u32);
            let timely = self.schema.relation(relation).is_time(self.lang);
            if !timely || !year || !self.has(node, relation)? {
                continue;
            }
            let by = Measure::Path(Rc::from([(relation, true)]));
            let filtered = self.arena.add(Node::Where(node, by, is, n))?;
            made.push((Cat::set(filtered), vec![(feature, 1.0)]));
        }
        Ok(())
    }
}
