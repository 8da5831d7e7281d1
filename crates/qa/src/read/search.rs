//! What the search for one question knows: the graph's vocabulary, the words, and what was found.
//!
//! `anchors.rs` fills in what words stand for, `chart.rs` puts the parts together, and the rules stand
//! in files of their own.

use std::rc::Rc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use wherefore_graph::{EntityId, Graph, RelationId};

use super::arena::{Arena, Id, Measure, Node};
use super::cat::Cat;
use super::features::{Derivation, Feature, Weights};
use super::groups::Groups;
use super::kinds::Kinds;
use super::known::Known;
use super::lang::Lang;
use super::near::Near;
use super::phrases::Phrases;
use super::schema::Schema;
use super::tokens::Words;
use super::vocabulary::{ClassIx, Step};

/// A part of a reading over some words.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) cat: Cat,
    pub(super) score: f32,
    pub(super) derivation: Rc<Derivation>,
    /// First word and the one after the last that it uses.
    pub(super) words: (usize, usize),
    /// A noun that the graph has no word for says what it is.
    pub(super) is_headed: bool,
    /// Slots that it passes over.
    pub(super) skipped: u64,
}

/// A whole reading.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) node: Id,
    pub(super) score: f32,
    pub(super) derivation: Rc<Derivation>,
    pub(super) skipped: u64,
}

/// A part that words stand for by themselves.
#[derive(Clone, Debug)]
pub(super) struct Anchor {
    /// Slots from, to.
    pub(super) slots: (usize, usize),
    pub(super) words: (usize, usize),
    pub(super) cat: Cat,
    pub(super) own: Vec<(Feature, f32)>,
}

/// What speaks for a part, and how much.
pub(super) type Own = Vec<(Feature, f32)>;
/// New parts with what speaks for them.
pub(super) type Made = Vec<(Cat, Own)>;
/// Sets with what speaks for them.
pub(super) type Weighed = Vec<(Id, Own)>;
/// A way to count with what speaks for it.
pub(super) type Counted = (Measure, Own);
/// Steps that lead on from a set, each with how much rarer it is than the most usual.
pub(super) type Ways = Rc<[(Step, f32)]>;
/// Ways from a set to things of some classes, found before.
type Bridges = HashMap<(Rc<[ClassIx]>, Id), Rc<[Bridge]>>;

/// The search for one question.
pub(super) struct Search<'g> {
    pub(super) lang: &'g Lang,
    pub(super) schema: &'g Schema,
    pub(super) groups: &'g Groups,
    pub(super) near: &'g Near,
    pub(super) phrases: &'g Phrases,
    pub(super) graph: &'g dyn Graph,
    pub(super) weights: &'g [f32],
    pub(super) arena: Arena<'g>,
    pub(super) words: Words,
    /// Whether it begins as a question of yes or no does.
    pub(super) is_yes_no: bool,
    /// The classes that the first noun after the question word may name.
    pub(super) asked: Vec<ClassIx>,
    /// Those of them that are called by their names.
    pub(super) asked_named: Vec<ClassIx>,
    /// What it costs to pass over each slot.
    pub(super) skip: Vec<Feature>,
    pub(super) known_bridges: Bridges,
    /// Steps that lead on from a set, found before.
    pub(super) known_ways: HashMap<Id, Ways>,
    /// Whether the classes that are asked for are called by their names.
    pub(super) asked_by_name: bool,
    /// Whether things are asked for, and no values.
    pub(super) asks_things: bool,
    /// The things that are asked for, where only their noun says what they are.
    pub(super) asked_group: Option<Id>,
    /// The relations to numbers that are asked for by name.
    pub(super) asked_values: Vec<RelationId>,
    /// What the relations lead to that are asked for by name, where it is of no class.
    pub(super) asked_ends: Vec<Id>,
    /// Cosines of a word with each relation, by the word's place.
    pub(super) known_cosines: HashMap<usize, Rc<[f32]>>,
    /// What the ends of relations are.
    pub(super) known_kinds: HashMap<Step, Kinds>,
    /// How well each step fits the whole question.
    pub(super) fits: Vec<f32>,
    /// Which words are of names.
    pub(super) named: Vec<bool>,
    /// The vector of the question, but for its names.
    pub(super) question: Rc<[f32]>,
    /// Questions with marked names that were encoded.
    pub(super) encoded: Vec<(String, Rc<[f32]>)>,
    /// Where the likeliest way around each name leads, and how likely it is.
    pub(super) likeliest: Vec<(Id, f32)>,
    /// Relations near the names of the question; none where any may be meant.
    pub(super) within_reach: Option<hashbrown::HashSet<RelationId>>,
    /// The words of names that were linked before the search.
    pub(super) linked: Vec<(usize, usize)>,
    /// Topics that the caller gives and that no word names.
    pub(super) given: Vec<EntityId>,
    /// What words stand for that refer to the last answer.
    pub(super) referent: Option<Node>,
    pub(super) until: Instant,
}

/// An unspoken way from a set to things of some classes.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    pub(super) path: Vec<Step>,
    /// How much rarer it is than the usual way, as a logarithm.
    pub(super) rarity: f32,
}

impl<'g> Search<'g> {
    pub(super) fn new(
        graph: &'g dyn Graph,
        known: &'g Known,
        lang: &'g Lang,
        weights: &'g Weights,
        words: Words,
        time: Duration,
    ) -> Self {
        let begins = |w: &super::tokens::Word| {
            !w.is_silent || lang.yes_no.contains(&w.lower) || lang.asks(&w.lower)
        };
        let first = words.all.iter().position(begins);
        let is_yes_no = first.is_some_and(|at| {
            let next = words.all.get(at + 1);
            // `do you know who …`, but not `do you have any …`
            let asks = || words.all[at + 1..].iter().any(|w| lang.asks(&w.lower));
            lang.yes_no.contains(&words.all[at].lower)
                && !(next.is_some_and(|w| lang.is_polite(&w.lower)) && asks())
        });
        Self {
            lang,
            schema: &known.schema,
            groups: &known.groups,
            near: &known.near,
            phrases: &known.phrases,
            graph,
            weights: weights.values(known.schema.is_untyped),
            arena: Arena::new(graph, &known.schema),
            is_yes_no,
            asked: Vec::new(),
            asked_named: Vec::new(),
            skip: vec![Feature::skip_unknown; words.slots.len()],
            named: vec![false; words.all.len()],
            words,
            known_bridges: Bridges::new(),
            known_ways: HashMap::new(),
            asked_by_name: false,
            asks_things: false,
            asked_group: None,
            asked_values: Vec::new(),
            asked_ends: Vec::new(),
            known_cosines: HashMap::new(),
            known_kinds: HashMap::new(),
            fits: Vec::new(),
            question: Rc::default(),
            encoded: Vec::new(),
            likeliest: Vec::new(),
            within_reach: None,
            linked: Vec::new(),
            given: Vec::new(),
            referent: None,
            until: Instant::now() + time,
        }
    }

    pub(super) fn weigh(&self, own: &[(Feature, f32)]) -> f32 {
        own.iter().map(|&(f, v)| self.weights[f as usize] * v).sum()
    }
}

/// Entities as a set: sorted, each once.
pub(super) fn sorted(mut all: Vec<EntityId>) -> Rc<[EntityId]> {
    all.sort_unstable();
    all.dedup();
    all.into()
}
