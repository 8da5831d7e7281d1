//! What is asked for: the noun after the question word, and the classes, things and values that it
//! names.

use wherefore_graph::RelationId;

use super::anchors::is_otherwise;
use super::arena::{Id, Node};
use super::cat::Cat;
use super::features::Feature as F;
use super::lang::Op;
use super::search::{Anchor, Search};
use super::unnamed::{is_doubtful, says};
use super::vocabulary::{ClassIx, Kind};
use crate::error::Result;
use crate::words::opened;

/// Members of an answer whose classes are looked at.
const LOOKED_AT: usize = 8;
/// How far things of a class that words only mean are from those of the class they name (guess).
const OTHERWISE: f32 = 0.5;

impl Search<'_> {
    /// The word that says what is asked for: the first that says something after `which`, `what` or
    /// `how many`.
    pub(super) fn asked_noun(&self) -> Option<usize> {
        let asks = |w: &super::tokens::Word| self.lang.asks(&w.lower);
        let begins = |p: &super::tokens::Phrase| p.op == Op::Count && p.from <= 1;
        let mut at = match self.words.all.iter().position(asks) {
            Some(at) => at,
            // `total number of bottles …`
            None if self.words.phrases.iter().any(begins) => 0,
            None => return None,
        };
        let told = self.lang.tells(&self.words.all[at].lower);
        let picked = self.lang.picks(&self.words.all[at].lower);
        at += 1;
        let counts =
            |p: &&super::tokens::Phrase| p.op == Op::Count && p.from + 1 >= at && p.from <= at;
        if let Some(phrase) = self.words.phrases.iter().find(counts) {
            at = phrase.to;
        } else if !told && !picked {
            return None;
        }
        // `what are the names of the rivers`, `show me all rivers`
        let is_slot = |at: usize| self.words.slots.binary_search(&at).is_ok();
        (at..self.words.all.len()).find(|at| is_slot(*at))
    }

    /// The classes that are asked for, and those of them that are called by their names.
    pub(super) fn asked_for(&self, found: &[Anchor]) -> Result<(Vec<ClassIx>, Vec<ClassIx>)> {
        let Some(at) = self.asked_noun() else {
            return Ok(Default::default());
        };
        let (mut asked, mut named) = (Vec::new(), Vec::new());
        let here = || found.iter().filter(|a| a.words.0 == at);
        let longest = here().map(|a| a.words.1).max();
        for anchor in here() {
            match &anchor.cat {
                Cat::Set { node, .. } => {
                    if let Node::Class(class) = *self.arena.node(*node) {
                        asked.push(class);
                        if names_class(anchor) && self.is_called(anchor.words.1 - 1, class)? {
                            named.push(class);
                        }
                    }
                }
                // `which capital cities`: what the relation leads to
                Cat::Relation(relation) if Some(anchor.words.1) == longest => {
                    asked.extend(self.schema.leads_to((*relation, true)));
                }
                _ => {}
            }
        }
        Ok((asked, named))
    }

    /// Whether a word ends the label of a class, as it is or in the plural: `ships` are no shippers.
    fn is_called(&self, at: usize, class: ClassIx) -> Result<bool> {
        let entity = self.schema.classes[class as usize].entity;
        let label = opened(&self.graph.entity_label(entity)?).to_lowercase();
        let last = label.rsplit(' ').next().unwrap_or(&label);
        Ok(is_same_noun(&self.words.all[at].lower, last))
    }

    /// Whether the classes that are asked for are called as they are in the graph.
    pub(super) fn is_asked_by_name(&self, found: &[Anchor]) -> bool {
        let at = self.asked_noun();
        let mut here = found.iter().filter(|a| Some(a.words.0) == at);
        here.any(names_class)
    }

    /// Whether what is asked for are things, by the name of their class or of their kind.
    pub(super) fn is_asked_by_kind(&self, found: &[Anchor]) -> bool {
        let at = self.asked_noun();
        let here = || found.iter().filter(|a| Some(a.words.0) == at);
        let is_relation =
            |a: &Anchor| matches!(a.cat, Cat::Relation(_)) && !is_doubtful(a) && !is_otherwise(a);
        let is_kind = |a: &Anchor| says(a, F::join_s_none_against);
        (self.asked_by_name || here().any(is_kind)) && !here().any(is_relation)
    }

    /// The things that are asked for, where the graph does not say what they are.
    pub(super) fn group_asked_for(&self, found: &[Anchor]) -> Option<Id> {
        let at = self.asked_noun().filter(|_| self.schema.is_untyped)?;
        let mut here = found.iter().filter(|a| a.words.0 == at);
        here.find_map(|anchor| match &anchor.cat {
            Cat::Set { node, .. } if says(anchor, F::class_soft) => Some(*node),
            _ => None,
        })
    }

    /// The relations to numbers that are asked for by name: `how many tracks`.
    pub(super) fn values_asked_for(&self, found: &[Anchor]) -> Vec<RelationId> {
        let at = self.asked_noun();
        let here = found.iter().filter(|a| Some(a.words.0) == at);
        let values = here.filter_map(|anchor| match anchor.cat {
            Cat::Relation(relation) => Some(relation),
            _ => None,
        });
        values
            .filter(|r| self.schema.relation(*r).kind == Kind::Number)
            .collect()
    }

    /// What the relations lead to that are asked for by name, where it is of no class: `in which
    /// country`, where the graph says of cities in which country they are.
    pub(super) fn ends_asked_for(&mut self, found: &[Anchor]) -> Result<Vec<Id>> {
        let mut ends = Vec::new();
        let Some(at) = self.asked_noun() else {
            return Ok(ends);
        };
        let picks = at > 0 && self.lang.picks(&self.words.all[at - 1].lower);
        let here = || found.iter().filter(|a| a.words.0 == at);
        // a longer name that begins so
        let is_longer = |a: &Anchor| a.words.1 > at + 1 && !is_doubtful(a);
        if !picks || here().any(|a| names_class(a) || is_longer(a)) {
            return Ok(ends);
        }
        for anchor in here() {
            let Cat::Relation(relation) = anchor.cat else {
                continue;
            };
            let of = self.schema.relation(relation);
            let by_name = !is_doubtful(anchor)
                && !says(anchor, F::relation_missing)
                && (of.words.iter()).any(|name| is_same_noun(&self.words.all[at].lower, name));
            let is_named = !of.kind.is_measure();
            let has_class = self.schema.leads_to((relation, true)).next().is_some();
            if by_name && is_named && !has_class {
                ends.push(self.arena.add(Node::Side(relation, true))?);
            }
        }
        Ok(ends)
    }

    /// How far an answer is something else than what is asked for: not of the classes, or not what the
    /// relations lead to. A country is no city, though the words mean much the same, and half as far.
    pub(super) fn is_other_than_asked(&mut self, node: Id) -> Result<f32> {
        if !self.asked_ends.is_empty() {
            let mut known = false;
            for end in self.asked_ends.clone() {
                match self.within(node, end)? {
                    Some((0, 1..)) => known = true,
                    _ => return Ok(0.0),
                }
            }
            return Ok(f32::from(u8::from(known)));
        }
        if self.asked.is_empty() {
            return Ok(0.0);
        }
        let types = self.arena.types(node);
        if !self.asked.iter().any(|class| types.contains(class)) {
            return Ok(1.0);
        }
        let Some(members) = self.arena.members(node)? else {
            return Ok(0.0);
        };
        // what a relation may lead to is one thing, what it leads to here another
        let (mut told, mut said) = (false, false);
        for &member in members.iter().take(LOOKED_AT) {
            let of = self.schema.types_of(self.graph, member)?;
            let is_of = |all: &[ClassIx]| of.iter().any(|class| all.contains(class));
            said |= is_of(&self.asked);
            if is_of(&self.asked_named) || said && self.asked_named.is_empty() {
                return Ok(0.0);
            }
            told |= !of.is_empty();
        }
        Ok(match (told, said) {
            (false, _) => 0.0,
            (true, true) => OTHERWISE,
            (true, false) => 1.0,
        })
    }
}

/// Whether words are the name of a class as the graph has it.
fn names_class(anchor: &Anchor) -> bool {
    let otherwise = [
        F::class_soft,
        F::class_said,
        F::class_group,
        F::class_missing,
    ];
    says(anchor, F::class) && !otherwise.iter().any(|f| says(anchor, *f))
}

/// Whether a word is a noun, as it is or in the plural.
fn is_same_noun(word: &str, noun: &str) -> bool {
    let is_plural = |ending: &str| word.strip_suffix(ending) == Some(noun);
    let changed = || {
        let (many, one) = (word.strip_suffix("ies"), noun.strip_suffix('y'));
        many.is_some() && many == one
    };
    word == noun || is_plural("s") || is_plural("es") || changed()
}
