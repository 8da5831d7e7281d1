//! What the parts of a text stand for by themselves.

use std::time::Duration;

use wherefore_graph::{EntityId, Graph, RelationId};

use super::super::arena::Node;
use super::super::cat::Cat;
use super::super::features::Feature as F;
use super::super::lang::{Op, english};
use super::super::search::Search;
use super::super::tokens::{MAX_SLOTS, Words};
use super::super::unnamed::is_doubtful;
use super::super::vocabulary::ClassIx;
use super::super::{Known, Weights};
use crate::error::Result;
use crate::link::Link;

/// A name that is less sure than this is a guess.
const PART: f32 = 0.3;

/// What some words stand for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// Things of one name and class, and their classes.
    Name(Vec<EntityId>, Vec<ClassIx>),
    Class(ClassIx),
    Relation(RelationId),
    /// `longest`.
    Superlative,
    /// `5`.
    Number,
    /// `more than`.
    Compared,
    /// `how many`, `sorted by`.
    Operator(Op),
}

/// A part and where it stands.
#[derive(Clone, Debug)]
pub(super) struct At {
    pub(super) part: Part,
    /// Slots and words, from, to.
    pub(super) slots: (usize, usize),
    pub(super) words: (usize, usize),
    /// A name that may be a word like any other.
    pub(super) is_doubtful: bool,
    pub(super) weight: f32,
}

/// A text's words and parts.
pub(super) struct Spoken {
    pub(super) words: Words,
    pub(super) parts: Vec<At>,
}

impl Spoken {
    pub(super) fn new(
        text: &str,
        links: &[Link],
        graph: &dyn Graph,
        known: &Known,
        weights: &Weights,
        time: Duration,
    ) -> Result<Option<Self>> {
        let words = Words::new(text, english());
        if words.slots.is_empty() || words.slots.len() > MAX_SLOTS || time.is_zero() {
            return Ok(
                (words.slots.is_empty() && !words.all.is_empty()).then(|| Self {
                    words,
                    parts: Vec::new(),
                }),
            );
        }
        let mut search = Search::new(graph, known, english(), weights, words, time);
        let mut parts = Vec::new();
        for anchor in search.anchors(links)? {
            let says = |f: F| anchor.own.iter().any(|(own, v)| *own == f && *v > 0.0);
            let says_more = |f: F, than: f32| {
                let mut own = anchor.own.iter();
                own.any(|(own, v)| *own == f && *v > than)
            };
            if says(F::class_soft) || says(F::relation_soft) {
                continue;
            }
            let part = match &anchor.cat {
                Cat::Set { node, .. } => match search.arena.node(*node) {
                    Node::Ents(all) => Part::Name(all.to_vec(), search.arena.types(*node).to_vec()),
                    Node::Class(class) => Part::Class(*class),
                    _ => continue,
                },
                Cat::Relation(relation) => Part::Relation(*relation),
                Cat::Superlative(..) => Part::Superlative,
                Cat::Number(_) | Cat::Range(..) => Part::Number,
                Cat::Op(Op::Compare(_)) => Part::Compared,
                Cat::Op(op) => Part::Operator(*op),
                _ => continue,
            };
            parts.push(At {
                part,
                slots: anchor.slots,
                words: anchor.words,
                is_doubtful: is_doubtful(&anchor) || says_more(F::name_unsure, PART),
                weight: search.weigh(&anchor.own),
            });
        }
        let words = std::mem::replace(&mut search.words, Words::new("", english()));
        Ok(Some(Self { words, parts }))
    }

    /// Names that are no words like any other.
    pub(super) fn names(&self) -> impl Iterator<Item = &At> {
        let names = (self.parts.iter()).filter(|at| matches!(at.part, Part::Name(..)));
        names.filter(|at| !at.is_doubtful)
    }

    /// The text of some words.
    pub(super) fn text(&self, words: (usize, usize)) -> &str {
        self.words.text_of(words.0, words.1)
    }

    /// The parts that account for all words that say something, each word once: the longest first.
    /// None where words are left.
    pub(super) fn pieces(&self) -> Option<Vec<&At>> {
        let mut pieces = Vec::new();
        let mut slot = 0;
        while slot < self.words.slots.len() {
            let here = self.parts.iter().filter(|at| at.slots.0 == slot);
            let sure = |at: &At| match at.part {
                Part::Name(..) if !at.is_doubtful => 3,
                Part::Relation(_) => 2,
                Part::Name(..) => 0,
                _ => 1,
            };
            let best = here.max_by(|a, b| {
                let is_guess = |at: &At| matches!(at.part, Part::Name(..)) && at.is_doubtful;
                let by = |at: &At| (!is_guess(at), at.slots.1, sure(at));
                by(a).cmp(&by(b)).then(a.weight.total_cmp(&b.weight))
            });
            match best {
                Some(at) => {
                    slot = at.slots.1;
                    pieces.push(at);
                }
                None if self.words.all[self.words.slots[slot]].is_light => slot += 1,
                None => return None,
            }
        }
        Some(pieces)
    }
}
