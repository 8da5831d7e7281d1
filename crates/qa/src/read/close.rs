//! Parts of the whole question as readings.

use super::arena::{Id, Meaning, Node};
use super::chart::{Cat, Item, Search, Weighed};
use super::features::Feature as F;
use super::lang::Op;
use super::schema::Kind;
use crate::error::Result;

impl Search<'_> {
    /// A part of the whole question as readings.
    pub(super) fn close(&mut self, item: &Item) -> Result<Weighed> {
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

    pub(super) fn fit_to_asking(&mut self, node: Id, own: &mut Vec<(F, f32)>) {
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
