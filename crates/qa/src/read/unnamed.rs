//! Nouns that a graph without classes has no word for: `movies`, where the graph only says who
//! directed what. They stand for whatever the rest of the question leads to.

use std::rc::Rc;

use wherefore_graph::RelationId;

use super::arena::{Id, Measure, Node};
use super::cat::Cat;
use super::features::Feature as F;
use super::lang::{Gap, Op};
use super::search::{Anchor, Item, Made, Search, Ways};
use super::vocabulary::{Kind, Step};
use crate::error::Result;

/// Ways from a set that such a noun may name the end of.
const WAYS: usize = 12;

/// Whether a feature speaks of a part.
pub(super) fn says(anchor: &Anchor, feature: F) -> bool {
    anchor.own.iter().any(|(f, v)| *f == feature && *v > 0.0)
}

/// Whether a part may be by chance: a relation or class that is near, or a name in small letters.
pub(super) fn is_doubtful(anchor: &Anchor) -> bool {
    let has = |feature| says(anchor, feature);
    has(F::relation_soft)
        || has(F::relation_said)
        || has(F::class_soft)
        || has(F::name_lower) && anchor.slots.1 - anchor.slots.0 == 1
}

impl Search<'_> {
    /// Nouns that name nothing of the graph.
    pub(super) fn unnamed_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        if !self.schema.is_untyped {
            return Ok(());
        }
        for slot in 0..self.words.slots.len() {
            let at = self.words.slots[slot];
            let word = &self.words.all[at];
            let here = |a: &&Anchor| (a.slots.0..a.slots.1).contains(&slot);
            let is_known = found.iter().filter(here).any(|a| !is_doubtful(a));
            // `is there any gluten in it` asks for what is called so
            let is_name =
                |a: &Anchor| matches!(&a.cat, Cat::Set { node, .. } if self.is_named(*node));
            let asks_for_name = self.is_yes_no && found.iter().filter(here).any(is_name);
            if word.is_silent
                || is_known
                || asks_for_name
                || !self.is_noun(at, found)
                || self.is_rest_of_name(slot, found)
            {
                continue;
            }
            // what it usually means comes first
            let grouped = found.iter().filter(here).any(|a| says(a, F::class_soft));
            let unnamed = if grouped { 2.0 } else { 1.0 };
            let node = self.arena.add(Node::Whatever(slot as u8))?;
            found.push(Anchor {
                slots: (slot, slot + 1),
                words: (at, at + 1),
                cat: Cat::set(node),
                own: vec![(F::unnamed, unnamed)],
            });
        }
        Ok(())
    }

    /// Whether a word that is not known may be a noun by itself, and not what describes the one
    /// after it.
    fn is_noun(&self, at: usize, found: &[Anchor]) -> bool {
        let word = &self.words.all[at];
        let Some(next) = self.words.all.get(at + 1) else {
            // `do the Giants knit`
            return !self.is_yes_no;
        };
        let named = |a: &Anchor| {
            a.words.0 == at + 1 && matches!(&a.cat, Cat::Set { node, .. } if self.is_named(*node))
        };
        if self.lang.is_participle(&word.lower) {
            return false;
        }
        let verb = self.lang.is_participle(&next.lower);
        let plural = word.lower.ends_with('s') && !word.lower.ends_with("ss");
        plural || next.is_silent || verb || found.iter().any(named)
    }

    /// Whether a part is such a noun alone.
    pub(super) fn is_unnamed(&self, cat: &Cat) -> bool {
        match cat {
            Cat::Set { node, .. } => matches!(self.arena.node(*node), Node::Whatever(_)),
            _ => false,
        }
    }

    /// Such a noun beside a part.
    pub(super) fn unnamed(&mut self, a: &Item, b: &Item, gap: Gap, made: &mut Made) -> Result<()> {
        let first = self.is_unnamed(&a.cat);
        let (noun, other) = if first { (a, b) } else { (b, a) };
        let Cat::Set { node, open, .. } = noun.cat else {
            return Ok(());
        };
        match &other.cat {
            Cat::Set {
                node: set,
                open: None,
                ..
            } if !self.is_unnamed(&other.cat) => match open {
                Some(relation) => {
                    for forward in [true, false] {
                        let step = (relation, forward);
                        if self.arena.has_step(*set, step)? {
                            let join = self.join_others(step, *set)?;
                            made.push((Cat::set(join), Vec::new()));
                        }
                    }
                }
                None => self.unnamed_of(noun, other, *set, gap, made)?,
            },
            Cat::Relation(r) if open.is_none() => {
                // `films whose writers`
                if first && gap == Gap::With {
                    let open = Some(*r);
                    let pair = None;
                    made.push((Cat::Set { node, pair, open }, Vec::new()));
                }
                // `film director`, `wrote the story`
                if !first || noun.words.1 == other.words.0 {
                    made.push((Cat::Relation(*r), vec![(F::merged, 1.0)]));
                }
            }
            Cat::Top(greatest, by, ranked) if open.is_none() => {
                let of = self.measured_by(by)?;
                let top = Node::Top(of, by.clone(), *greatest, *ranked);
                made.push((Cat::set(self.arena.add(top)?), vec![(F::top_measure, 1.0)]));
            }
            // `the longest trail`, where only one relation says how long things are
            Cat::Superlative(Op::Best(greatest, degree), ranked) if open.is_none() => {
                if let [(relation, rank)] = self.degree_of_anything(*degree)?[..] {
                    let by = Measure::of(relation);
                    let of = self.measured_by(&by)?;
                    let top = self.arena.add(Node::Top(of, by, *greatest, *ranked))?;
                    let own = vec![(F::top_measure, 1.0), (F::top_rank, rank)];
                    made.push((Cat::set(top), own));
                }
            }
            Cat::Filter(by, is, n) if open.is_none() => {
                let of = self.measured_by(by)?;
                let filtered = self.arena.filtered(of, by.clone(), *is, *n)?;
                made.push((Cat::set(filtered), Vec::new()));
            }
            Cat::FilterRange(by, low, high) if open.is_none() => {
                let of = self.measured_by(by)?;
                let within = self.between(of, by, *low, *high)?;
                made.push((Cat::set(within), Vec::new()));
            }
            _ => {}
        }
        Ok(())
    }

    /// All that has what is measured.
    pub(super) fn measured_by(&mut self, by: &Measure) -> Result<Id> {
        let (Measure::Path(path) | Measure::HowMany(path, _)) = by;
        let (relation, forward) = path[0];
        self.arena.add(Node::Side(relation, !forward))
    }

    /// The noun with a set: the set itself, or what an unspoken way leads to from it.
    fn unnamed_of(
        &mut self,
        noun: &Item,
        other: &Item,
        set: Id,
        gap: Gap,
        made: &mut Made,
    ) -> Result<()> {
        let first = noun.words.0 < other.words.0;
        if self.is_named(set) {
            let (left, right) = if first { (noun, other) } else { (other, noun) };
            let beside = self.words.is_beside(left.words.1, right.words.0, self.lang);
            if beside && !self.is_plural(noun) {
                made.push((Cat::set(set), vec![(F::apposition, 1.0)]));
            }
        }
        let near = self.cosines(noun.words.1 - 1)?;
        let far = |relation: RelationId| {
            let cosine = near.get(relation.index()).copied().unwrap_or(0.0);
            (F::unnamed_far, 1.0 - cosine)
        };
        if !self.is_named(set) && !other.is_headed && gap != Gap::Of {
            let own = match *self.arena.node(set) {
                // the relation's own noun names what it leads to; another noun hardly does
                Node::Join((r, true), _) => vec![(F::named_otherwise, 1.0), far(r)],
                _ => Vec::new(),
            };
            made.push((Cat::set(set), own));
        }
        if self.arena.kind(set) != Kind::Thing && gap == Gap::None {
            return Ok(());
        }
        for &(step, rarity) in self.ways_from(set)?.iter() {
            let mut own = vec![
                (F::bridge, 1.0),
                (F::bridge_rare, rarity),
                (F::bridge_fits, self.step_fits(step)),
                far(step.0),
            ];
            match *self.arena.node(set) {
                Node::Join((r, back), _) if (r, back) == (step.0, !step.1) => {
                    own.push((F::detour, 1.0));
                }
                _ if step.1 && gap != Gap::Of => own.push((F::named_otherwise, 1.0)),
                _ => {}
            }
            if !first {
                own.push((F::bridge_left, 1.0));
            }
            let join = self.join_others(step, set)?;
            made.push((Cat::set(join), own));
        }
        Ok(())
    }

    /// The cosine of the word at a place with each relation.
    pub(super) fn cosines(&mut self, at: usize) -> Result<Rc<[f32]>> {
        if let Some(known) = self.known_cosines.get(&at) {
            return Ok(Rc::clone(known));
        }
        let found: Rc<[f32]> = self.near.cosines(&self.words.all[at].lower)?.into();
        self.known_cosines.insert(at, Rc::clone(&found));
        Ok(found)
    }

    /// The steps that lead on from the first members of a set, the usual ones first; each with how
    /// much rarer it is than the most usual, as a logarithm.
    pub(super) fn ways_from(&mut self, set: Id) -> Result<Ways> {
        if let Some(known) = self.known_ways.get(&set) {
            return Ok(Rc::clone(known));
        }
        let mut ways: Vec<(Step, f32)> = match self.arena.members(set)? {
            Some(members) => self.steps_around(&members)?,
            None => Vec::new(),
        };
        ways.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ways.truncate(WAYS);
        let most = ways.first().map_or(1.0, |w| w.1);
        for (_, count) in &mut ways {
            *count = (most / count.max(1.0)).ln();
        }
        let ways: Ways = ways.into();
        self.known_ways.insert(set, Rc::clone(&ways));
        Ok(ways)
    }
}
