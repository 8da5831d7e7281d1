//! A relation beside a set.

use std::rc::Rc;

use wherefore_graph::RelationId;

use super::arena::{Measure, Node, Ranked};
use super::chart::{Cat, Made, Search};
use super::features::Feature as F;
use super::lang::{Gap, Op};
use super::schema::Kind;
use crate::error::Result;

impl Search<'_> {
    #[allow(clippy::too_many_arguments, reason = "what stands how beside what")]
    pub(super) fn joined(
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
    pub(super) fn extreme_word(&self, relation: RelationId) -> Option<(&str, bool)> {
        let words = &self.schema.relation(relation).words;
        words.iter().find_map(|word| {
            let said = self.lang.operators(&[word]);
            said.iter().find_map(|(_, op)| match op {
                Op::Best(greatest, _) => Some((word.as_str(), *greatest)),
                _ => None,
            })
        })
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
