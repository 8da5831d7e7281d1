//! The search: parts over ranges of slots, the best of each range kept.
//!
//! ```text
//! cell(i, j) = anchors of slots i..j
//!            ∪ { combine(a, b) : a ∈ cell(i, k), b ∈ cell(k, j) }
//!            ∪ cell(i, j−1) with slot j−1 passed over ∪ cell(i+1, j) with slot i passed over
//! ```
//!
//! A cell keeps the [`SETS`] best sets and the [`OTHERS`] best of each other category.

use std::mem::Discriminant;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use wherefore_graph::{EntityId, Graph, RelationId};

use super::Known;
use super::arena::{Arena, Id, Meaning, Measure, Node, Ranked};
use super::asked::Kinds;
use super::features::{Derivation, Feature, Weights};
use super::groups::Groups;
use super::lang::{Lang, Op};
use super::near::Near;
use super::phrases::Phrases;
use super::schema::{ClassIx, Schema, Step};
use super::tokens::Words;
use crate::error::Result;
use crate::logic::{Aggregate, Comparison};

/// Sets that a range of words keeps.
const SETS: usize = 24;
/// Parts of each other category that it keeps.
const OTHERS: usize = 8;
/// Readings that are handed on.
const READINGS: usize = 100;
/// Parts of one question.
const MAX_NODES: usize = 60_000;

/// What a part is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cat {
    /// Things or values.
    Set {
        node: Id,
        /// The two parts of `X and Y`.
        pair: Option<(Id, Id)>,
        /// A relation of these things to something that is not said yet: `rivers that run through`.
        open: Option<RelationId>,
    },
    Relation(RelationId),
    /// `grandmother`.
    Chain(Rc<[Step]>),
    Number(Id),
    Op(Op),
    /// `longest`, `second longest`.
    Superlative(Op, Ranked),
    /// `highest population`.
    Top(bool, Measure, Ranked),
    /// `most rivers`.
    TopCount {
        greatest: bool,
        of: Id,
        via: Option<RelationId>,
        ranked: Ranked,
    },
    /// `population above 100`.
    Filter(Measure, Comparison, Id),
    /// `longer than X`: a set's own value, or a number.
    FilterDegree {
        greater: bool,
        degree: u8,
        than: Id,
        is_number: bool,
    },
    /// `more than 100`.
    Than(Comparison, Id),
    /// `more people than`.
    ThanRelation(Comparison, RelationId),
    /// `more than Mila`, `before the mint`: what these have of the same.
    ThanOf(Comparison, Id),
    /// `above the average age`.
    ThanAverage(Comparison, Aggregate, RelationId),
    /// `at least 3 rivers`.
    CountThan(Comparison, Id, Id, Option<RelationId>),
    Not(Id),
    /// `except X`.
    Except(Id),
    /// `how much longer`, and then of what.
    Apart(bool, u8, Option<Id>),
    /// `difference in population`.
    Difference(RelationId),
    NotRelation(RelationId),
    NotFilter(Measure, Comparison, Id),
    /// `and X`, `or X`.
    With(bool, Id),
    /// `or after 2010`: whether it is `or`.
    WithThan(bool, Comparison, Id),
    /// `share an actor with`.
    Sharing(RelationId),
    /// `average age`.
    Aggregated(Aggregate, RelationId),
    /// `for each doctor`, `each doctor treats`.
    Each(Id, Option<RelationId>),
    /// `rivers flow through each country`: what is counted, of what, and by what.
    CountedEach(Id, Id, RelationId),
    /// `number of neighbours`, of each.
    Counted(RelationId),
    /// `in descending order of age`: by what, where that is said.
    Ordered(Option<Measure>, bool),
    /// `by number of concerts`.
    OrderedCount(Id, bool),
    /// `the capital and the area`.
    Columns(Rc<[RelationId]>),
    /// `and the area`.
    WithColumn(RelationId),
    /// `between 3 and 5`.
    Range(Id, Id),
    /// `population between 3 and 5`.
    FilterRange(Measure, Id, Id),
    /// `older than average`.
    ThanUsual {
        greater: bool,
        degree: u8,
        aggregate: Aggregate,
    },
}

impl Cat {
    pub(super) fn than_usual(greater: bool, degree: u8, aggregate: Aggregate) -> Self {
        Cat::ThanUsual {
            greater,
            degree,
            aggregate,
        }
    }

    pub(super) fn set(node: Id) -> Self {
        Cat::Set {
            node,
            pair: None,
            open: None,
        }
    }
}

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
            skip: vec![Feature::skip_unknown; words.slots.len()],
            named: vec![false; words.all.len()],
            words,
            known_bridges: Bridges::new(),
            known_ways: HashMap::new(),
            asked_by_name: false,
            asks_things: false,
            asked_group: None,
            asked_values: Vec::new(),
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

    fn anchored(&self, anchor: &Anchor) -> Item {
        Item {
            cat: anchor.cat.clone(),
            score: self.weigh(&anchor.own),
            derivation: Rc::new(Derivation {
                parts: [None, None],
                own: anchor.own.clone(),
                anchor: Some((anchor.words, anchor.cat.clone())),
            }),
            words: anchor.words,
            is_headed: self.is_unnamed(&anchor.cat),
            skipped: 0,
        }
    }

    fn passed_over(&self, item: &Item, slot: usize) -> Item {
        let own = vec![(self.skip[slot], 1.0)];
        Item {
            score: item.score + self.weigh(&own),
            derivation: Rc::new(Derivation {
                parts: [Some(Rc::clone(&item.derivation)), None],
                own,
                anchor: None,
            }),
            skipped: item.skipped | 1 << slot,
            ..item.clone()
        }
    }

    /// Readings of the whole question, best first.
    pub(super) fn readings(&mut self, anchors: &[Anchor]) -> Result<Vec<Reading>> {
        let n = self.words.slots.len();
        let mut cells: HashMap<(usize, usize), Vec<Item>> = HashMap::new();
        for length in 1..=n {
            for from in 0..=n - length {
                let to = from + length;
                let mut found: Vec<Item> = anchors
                    .iter()
                    .filter(|a| a.slots == (from, to))
                    .map(|a| self.anchored(a))
                    .collect();
                for middle in from + 1..to {
                    let (Some(left), Some(right)) =
                        (cells.get(&(from, middle)), cells.get(&(middle, to)))
                    else {
                        continue;
                    };
                    let (left, right) = (left.clone(), right.clone());
                    for a in &left {
                        for b in &right {
                            self.combined(a, b, &mut found)?;
                        }
                    }
                }
                if length > 1 {
                    if let Some(rest) = cells.get(&(from, to - 1)) {
                        found.extend(rest.iter().map(|item| self.passed_over(item, to - 1)));
                    }
                    if let Some(rest) = cells.get(&(from + 1, to)) {
                        let begun = |item: &&Item| item.skipped & 1 << (to - 1) == 0;
                        let rest = rest.iter().filter(begun);
                        found.extend(rest.map(|item| self.passed_over(item, from)));
                    }
                }
                let kept = self.kept(found)?;
                if !kept.is_empty() {
                    cells.insert((from, to), kept);
                }
            }
        }
        let whole = cells.remove(&(0, n)).unwrap_or_default();
        let mut readings = self.by_ways(anchors)?;
        self.finished(whole, &mut readings)?;
        readings.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = hashbrown::HashSet::new();
        readings.retain(|r| seen.insert(r.node));
        self.compare_wholes(&mut readings, anchors)?;
        readings.truncate(READINGS);
        Ok(readings)
    }

    fn is_spent(&self) -> bool {
        self.arena.len() > MAX_NODES || Instant::now() > self.until
    }

    fn combined(&mut self, a: &Item, b: &Item, found: &mut Vec<Item>) -> Result<()> {
        if self.is_spent() {
            return Ok(());
        }
        let headed = self.is_unnamed(&a.cat) || self.is_unnamed(&b.cat);
        for (cat, own) in self.combine(a, b)? {
            let is_set = matches!(cat, Cat::Set { .. });
            found.push(Item {
                cat,
                score: a.score + b.score + self.weigh(&own),
                derivation: Rc::new(Derivation {
                    parts: [
                        Some(Rc::clone(&a.derivation)),
                        Some(Rc::clone(&b.derivation)),
                    ],
                    own,
                    anchor: None,
                }),
                words: (a.words.0.min(b.words.0), a.words.1.max(b.words.1)),
                is_headed: headed && is_set,
                skipped: a.skipped | b.skipped,
            });
        }
        Ok(())
    }

    /// The best of a cell, each once; sets that come to nothing weigh less.
    fn kept(&mut self, mut found: Vec<Item>) -> Result<Vec<Item>> {
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen: hashbrown::HashSet<(Cat, bool)> = hashbrown::HashSet::new();
        found.retain(|item| seen.insert((item.cat.clone(), item.is_headed)));
        let mut counts: HashMap<Discriminant<Cat>, usize> = HashMap::new();
        let mut kept = Vec::new();
        for mut item in found {
            let count = counts.entry(std::mem::discriminant(&item.cat)).or_default();
            let most = match item.cat {
                Cat::Set { .. } => SETS,
                _ => OTHERS,
            };
            if *count >= most {
                continue;
            }
            *count += 1;
            if let Cat::Set { node, .. } = item.cat
                && !self.is_spent()
                && let Some(feature) = self.comes_to_little(node)?
                && item.derivation.own.iter().all(|(f, _)| *f != feature)
            {
                let own = vec![(feature, 1.0)];
                item.score += self.weigh(&own);
                item.derivation = Rc::new(Derivation {
                    parts: [Some(Rc::clone(&item.derivation)), None],
                    own,
                    anchor: None,
                });
            }
            kept.push(item);
        }
        kept.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(kept)
    }

    /// Whether a set is empty, or a comparison in it leaves nothing out.
    fn comes_to_little(&mut self, node: Id) -> Result<Option<Feature>> {
        let of = match *self.arena.node(node) {
            Node::Class(_) | Node::Side(..) => return Ok(None),
            Node::And(..) if self.is_yes_no => return Ok(None),
            Node::Where(of, ..) if self.is_yes_no => return self.leaves_all(node, of),
            Node::Where(of, ..) => Some(of),
            _ => None,
        };
        if let Meaning::Set(members) = self.arena.meaning(node)?
            && members.is_empty()
        {
            return Ok(Some(Feature::empty));
        }
        match of {
            Some(of) => self.leaves_all(node, of),
            None => Ok(None),
        }
    }

    /// Whether a comparison leaves out no member of a set.
    pub(super) fn leaves_all(&mut self, node: Id, of: Id) -> Result<Option<Feature>> {
        let (kept, all) = (self.arena.members(node)?, self.arena.members(of)?);
        let (Some(kept), Some(all)) = (kept, all) else {
            return Ok(None);
        };
        let same = all.len() > 1 && kept.len() == all.len();
        Ok(same.then_some(Feature::idle_comparison))
    }

    fn finished(&mut self, whole: Vec<Item>, readings: &mut Vec<Reading>) -> Result<()> {
        for item in whole {
            for (node, own) in self.close(&item)? {
                readings.push(Reading {
                    node,
                    score: item.score + self.weigh(&own),
                    derivation: Rc::new(Derivation {
                        parts: [Some(Rc::clone(&item.derivation)), None],
                        own,
                        anchor: None,
                    }),
                    skipped: item.skipped,
                });
            }
        }
        Ok(())
    }
}

/// Entities as a set: sorted, each once.
pub(super) fn sorted(mut all: Vec<EntityId>) -> Rc<[EntityId]> {
    all.sort_unstable();
    all.dedup();
    all.into()
}
