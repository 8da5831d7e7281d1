//! Nouns that the graph has no word for, and the groups of things that they mean (`groups.rs`).

use super::anchors::is_part_of_name;
use super::arena::Node;
use super::cat::Cat;
use super::features::Feature as F;
use super::groups::{Fit, Group, Noun, Of};
use super::search::{Anchor, Search};
use super::unnamed::{is_doubtful, says};
use crate::error::Result;

/// The least fit at which a noun means a group, also where things have classes, and how much better
/// it has to be than that of other things.
const LEAST: f32 = 0.3;
const LEAST_TYPED: f32 = 0.45;
const MARGIN: f32 = 0.08;
/// Longest noun, in words.
const NOUN: usize = 3;
/// How unsure a group is that fits not at all, and the best one.
const UNSURE: f32 = 0.6;
const LEAST_UNSURE: f32 = 0.01;

impl Search<'_> {
    /// Nouns that the graph has no word for, and what they mean.
    pub(super) fn group_anchors(&mut self, found: &mut Vec<Anchor>) -> Result<()> {
        if self.groups.0.is_empty() {
            return Ok(());
        }
        let mut from = 0;
        while from < self.words.slots.len() {
            let longest = (1..=NOUN).rev();
            let mut to = from + 1;
            for length in longest {
                let first = self.words.slots[from];
                let words = (first, first + length);
                if let Some(anchor) = self.group_anchor(words, found)? {
                    to = anchor.slots.1;
                    // a noun in small letters is no part of a name
                    found.retain(|a| {
                        let is_name =
                            matches!(&a.cat, Cat::Set { node, .. } if self.is_named(*node));
                        a.slots != anchor.slots || !is_name || !says(a, F::name_lower)
                    });
                    found.push(anchor);
                    break;
                }
            }
            from = to;
        }
        Ok(())
    }

    /// The things that these words mean.
    fn group_anchor(&mut self, words: (usize, usize), found: &[Anchor]) -> Result<Option<Anchor>> {
        let Some(all) = self.words.all.get(words.0..words.1) else {
            return Ok(None);
        };
        let Some(slots) = self.words.slots_of(words.0, words.1) else {
            return Ok(None);
        };
        let stems: Vec<String> = all.iter().map(|w| w.stem.clone()).collect();
        let kinds = self.lang.things.of(&stems);
        let here = |a: &&Anchor| a.slots.0 < slots.1 && slots.0 < a.slots.1;
        let asked = self.asked_noun();
        // part of a longer noun says nothing against it
        let is_said = |a: &Anchor| {
            let is_part = a.slots.1 - a.slots.0 < slots.1 - slots.0;
            let is_relation =
                matches!(a.cat, Cat::Relation(_)) || says(a, F::relation_named_as_class);
            // `which cooks`, where the graph says who cooks at which restaurant
            let is_partly = self.schema.is_untyped
                && is_relation
                && (says(a, F::relation_missing) || asked == Some(words.0));
            // `organic`, where that is the name of a certificate and no noun
            let is_name = kinds.is_empty()
                && a.slots == slots
                && matches!(&a.cat, Cat::Set { node, .. } if self.is_named(*node))
                && !is_part_of_name(a);
            !is_part && (!is_doubtful(a) || is_name) && !is_partly
        };
        if found.iter().filter(here).any(is_said) {
            return Ok(None);
        }
        // `ancient states` are states
        let is_class = |a: &Anchor| {
            let is_last = a.slots == (slots.1 - 1, slots.1);
            is_last && says(a, F::class) && !is_doubtful(a)
        };
        if all.len() > 1 && found.iter().any(is_class) {
            return Ok(None);
        }
        let is_person = stems
            .last()
            .is_some_and(|s| self.lang.people.classes.contains(s));
        let is_verb = self.lang.is_participle(&all[all.len() - 1].lower) || self.is_done(words.0);
        // `World Series` is a name, and no kind of things
        let is_name = (slots.0..slots.1).any(|slot| self.is_capital(slot));
        if all.len() > 1 && kinds.is_empty() || all[0].is_silent || is_verb || is_name {
            return Ok(None);
        }
        let noun = Noun {
            cosines: self.cosines(words.1 - 1)?,
            stems,
            kinds,
            is_person,
            lang: self.lang,
        };
        let mut fits: Vec<(Fit, &Group)> = (self.groups.0.iter())
            .map(|group| (group.fit(&noun, self.schema), group))
            .collect();
        fits.sort_by(|a, b| b.0.all.total_cmp(&a.0.all));
        let least = match self.schema.is_untyped {
            true => LEAST,
            false => LEAST_TYPED,
        };
        let Some(&(best, first)) = fits.first().filter(|(fit, _)| fit.all >= least) else {
            return Ok(None);
        };
        let rival = fits
            .iter()
            .find(|(_, group)| !std::ptr::eq(*group, first) && !first.is_alike(group));
        if rival.is_some_and(|(fit, _)| best.all - fit.all < MARGIN) {
            return Ok(None);
        }
        let alike = fits.iter().filter(|(fit, group)| {
            best.untold - fit.untold < MARGIN
                && (std::ptr::eq(*group, first) || first.is_alike(group))
        });
        let largest = alike
            .max_by_key(|(_, group)| group.members)
            .map_or(first, |(_, group)| group);
        let node = match largest.of {
            Of::Class(class) => Node::Class(class),
            Of::Step((relation, has)) => Node::Side(relation, !has),
        };
        let node = self.arena.add(node)?;
        // `goat`, one of what milk is of, is the name of it alone
        for name in found.iter().filter(|a| a.slots == slots) {
            if let Cat::Set { node: name, .. } = name.cat
                && self.is_named(name)
                && matches!(self.within(name, node)?, Some((1.., _)))
            {
                return Ok(None);
            }
        }
        let cat = Cat::set(node);
        let soft = (UNSURE * (1.0 - best.all)).max(LEAST_UNSURE);
        let own = vec![(F::class, 1.0), (F::class_soft, soft)];
        Ok(Some(Anchor {
            slots,
            words,
            cat,
            own,
        }))
    }
}
