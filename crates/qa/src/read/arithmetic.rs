//! Differences between two things, and shares of a set.

use wherefore_graph::RelationId;

use super::arena::{Id, Meaning, Measure, Node};
use super::cat::Cat;
use super::features::Feature as F;
use super::search::{Made, Search};
use crate::error::Result;
use crate::logic::{Aggregate, Operator};

impl Search<'_> {
    /// `how much longer is the Nile than the Rhine`.
    pub(super) fn apart(
        &mut self,
        greater: bool,
        degree: u8,
        of: Id,
        than: Id,
        made: &mut Made,
    ) -> Result<()> {
        if !self.is_named(than) {
            return Ok(());
        }
        let (more, less) = if greater { (of, than) } else { (than, of) };
        for (relation, rank) in self.degree(degree, of)? {
            if self.has(than, relation)? {
                let apart = self.subtracted(relation, more, less)?;
                let own = vec![(F::compare_degree, 1.0), (F::top_rank, rank)];
                made.push((Cat::Number(apart), own));
            }
        }
        Ok(())
    }

    /// `how much more does the Lodge cost than the Cabin`, `how many more beds does it have`.
    pub(super) fn more_of(
        &mut self,
        greater: bool,
        relation: RelationId,
        of: Id,
        than: Id,
        made: &mut Made,
    ) -> Result<()> {
        if !self.is_named(than) || of == than || !self.has(than, relation)? {
            return Ok(());
        }
        let (more, less) = if greater { (of, than) } else { (than, of) };
        let apart = self.subtracted(relation, more, less)?;
        made.push((Cat::Number(apart), vec![(F::compare_relation, 1.0)]));
        Ok(())
    }

    /// `difference in population between Kenya and Uganda`: of the larger one and the smaller one.
    pub(super) fn difference(
        &mut self,
        relation: RelationId,
        of: Id,
        made: &mut Made,
    ) -> Result<()> {
        let Node::Or(a, b) = *self.arena.node(of) else {
            return Ok(());
        };
        let both = self.is_named(a) && self.is_named(b);
        if !both || !self.has(a, relation)? || !self.has(b, relation)? {
            return Ok(());
        }
        let apart = self.subtracted(relation, a, b)?;
        let apart = match self.arena.meaning(apart)? {
            Meaning::Number(Some(value)) if value < 0.0 => self.subtracted(relation, b, a)?,
            _ => apart,
        };
        made.push((Cat::Number(apart), vec![(F::compare_relation, 1.0)]));
        Ok(())
    }

    fn subtracted(&mut self, relation: RelationId, a: Id, b: Id) -> Result<Id> {
        let mut value = |of| {
            let value = Node::Of(Aggregate::Only, of, Measure::of(relation));
            self.arena.add(value)
        };
        let (a, b) = (value(a)?, value(b)?);
        self.arena.add(Node::Arithmetic(Operator::Subtract, a, b))
    }

    /// `percentage of the countries in Europe that use the euro`: what was said last tells them
    /// from the whole.
    pub(super) fn percentage(&mut self, node: Id, made: &mut Made) -> Result<()> {
        let (Node::And(whole, _) | Node::Where(whole, ..) | Node::Except(whole, _)) =
            *self.arena.node(node)
        else {
            return Ok(());
        };
        if self.is_named(whole) {
            return Ok(());
        }
        let [some, all] = [node, whole].map(Node::Count);
        let (some, all) = (self.arena.add(some)?, self.arena.add(all)?);
        let share = self
            .arena
            .add(Node::Arithmetic(Operator::Divide, some, all))?;
        let hundred = self.arena.add(Node::Const(100f64.to_bits()))?;
        let share = Node::Arithmetic(Operator::Multiply, hundred, share);
        let own = vec![(F::count_set, 1.0)];
        made.push((Cat::Number(self.arena.add(share)?), own));
        Ok(())
    }

    /// What a set would be with another name in the place of its last one: `border Germany` and
    /// `France`, what borders France.
    pub(super) fn likewise(&mut self, set: Id, name: Id) -> Result<Option<Id>> {
        let last = match *self.arena.node(set) {
            Node::And(_, last) => last,
            _ => set,
        };
        let Node::Join(step, of) = *self.arena.node(last) else {
            return Ok(None);
        };
        if !self.is_named(of) || !self.are_alike(of, name) {
            return Ok(None);
        }
        self.arena.add(Node::Join(step, name)).map(Some)
    }
}
