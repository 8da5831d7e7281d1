//! Readings of one or two names, each with a way that no single word says: the whole question is
//! compared with the phrases of the ways around the name.
//!
//! ```text
//! p(way | question, name) = exp(cos(question, phrase(way)) / τ) / Σ over the ways around the name
//! whole(reading)          = cos(question, Σ phrase(step)) / 0.1   over all steps of a reading
//! ```

use std::rc::Rc;

use wherefore_graph::{Direction, EntityId, Graph, RelationId};
use wherefore_model::vector::dot;

use super::arena::{Id, Meaning, Node};
use super::cat::Cat;
use super::features::{Derivation, Feature as F};
use super::lang::Op;
use super::learn::TEMPERATURE;
use super::phrases::Told;
use super::schema::{Schema, by_relation, entity_kind, row};
use super::search::{Anchor, Own, Reading, Search};
use super::unnamed::{is_doubtful, says};
use super::vocabulary::{Kind, Step};
use crate::error::Result;

/// What stands for a name in a question.
const MARK: &str = "it";
/// Names whose ways are looked at.
const NAMES: usize = 6;
/// Things of one name, and ends of one relation, that are looked at.
const LOOKED_AT: usize = 8;
/// Ways from a name at most.
const MAX_WAYS: usize = 1500;
/// Of the ways around a name, so many are followed further, but not through hubs.
const ON: usize = 8;
const MAX_DEGREE: usize = 2000;
/// Ways of a name that become readings, alone and with those of another name.
const ALONE: usize = 12;
const TOGETHER: usize = 6;
/// A word that no part of a reading accounts for is explained by its steps together, where their
/// cosine is at least this, and falls by so much without the word: what only narrows the question
/// (`landlocked`) brings it further away.
const CLOSE: f32 = 0.5;
const EXPLAINED: f32 = 0.03;
/// A reading of one name and a way around it is taken where that way is at least so likely among
/// those around the name; then a word that is not said elsewhere is explained if the cosine does not
/// rise by more without it. Of questions over graphs that the matcher has not seen, nine in ten of
/// such ways are right.
pub(super) const LIKELY: f32 = 0.8;
const RISES: f32 = -0.03;
/// The one verb of a reading whose things are joined by an unspoken way is taken for that way where
/// the cosine is at least this, and does not rise by more without the verb: `ships that dock at
/// Berth 1` are those moored there, `ships that burned at Berth 1` are not.
const CLOSER: f32 = 0.6;
const NEUTRAL: f32 = -0.025;
/// How unsure a name may be in a reading whose words are looked at so: `Said's` is sure enough for
/// Said, `Atlantis` is not for Atlanta.
const UNSURE: f32 = 0.3;
/// Steps of a reading that words are held against.
const STEPS: usize = 16;
/// Readings whose words are looked at so.
const EXPLAINING: usize = 8;
/// Readings that are compared with the question as a whole, and steps of one.
const COMPARED: usize = 200;
const MAX_STEPS: usize = 12;
/// A difference of so much between two cosines is one.
const UNIT: f32 = 0.1;
/// The least probability at which a way accounts for the words that say nothing else.
const SURE: f32 = 0.05;

/// Steps from a name, the first taken first.
type Way = Rc<[Step]>;

/// How well a way fits the question.
#[derive(Clone)]
struct Fit {
    way: Way,
    /// It leads on from things that have a name.
    is_long: bool,
    /// The logarithm of its probability.
    log: f32,
}

/// What the word of a slot says.
#[derive(Clone, Default)]
struct Spoken {
    /// It is a word of English.
    is_known: bool,
    /// It is a word of these relations.
    relations: Vec<RelationId>,
    /// It names these, or is part of their whole name.
    named: Vec<RelationId>,
}

/// A name with its ways, the likeliest first.
struct Around<'a> {
    anchor: &'a Anchor,
    node: Id,
    ways: Vec<Fit>,
}

impl Search<'_> {
    /// Compares the question, but for its names, with each step.
    pub(super) fn compare_steps(&mut self, found: &[Anchor]) -> Result<()> {
        for anchor in found {
            let (from, to) = anchor.words;
            if matches!(&anchor.cat, Cat::Set { node, .. } if self.is_named(*node))
                && !is_doubtful(anchor)
                || self.words.refers(from, to)
            {
                self.named[anchor.words.0..anchor.words.1].fill(true);
            }
        }
        self.question = self.encode(self.marked(None))?;
        self.fits = self.phrases.fits(&self.question);
        Ok(())
    }

    /// The question with its names marked, and without one of its words.
    fn marked(&self, without: Option<usize>) -> String {
        let mut text = String::new();
        let mut end = 0;
        for (at, word) in self.words.all.iter().enumerate() {
            match self.named[at] {
                _ if without == Some(at) => {}
                true if text.ends_with(MARK) => {}
                true => {
                    text.push_str(&self.words.text[end..word.start]);
                    text.push_str(MARK);
                }
                false => text.push_str(&self.words.text[end..word.end]),
            }
            end = word.end;
        }
        text
    }

    /// Compares the question, but for its names, with all steps of each reading together.
    pub(super) fn compare_wholes(
        &mut self,
        readings: &mut [Reading],
        anchors: &[Anchor],
    ) -> Result<()> {
        for reading in readings.iter_mut().take(COMPARED) {
            let own = match self.whole(reading.node) {
                None => vec![(F::whole_none, 1.0)],
                Some(whole) => vec![(F::whole_fits, dot(&whole, &self.question) / UNIT)],
            };
            self.add(reading, own);
        }
        readings.sort_by(|a, b| b.score.total_cmp(&a.score));
        // words of names and classes; words of relations, which may say another one as well
        let mut is_said = vec![false; self.words.slots.len()];
        let mut is_spoken = is_said.clone();
        // the relations that a word names as the graph does
        let named = relations_at(is_said.len(), anchors, |a| !says(a, F::relation_missing));
        let mut is_class = is_said.clone();
        for anchor in anchors.iter().filter(|anchor| !is_soft(anchor)) {
            let side = |node: Id| matches!(self.arena.node(node), Node::Side(..));
            let of = match anchor.cat {
                Cat::Relation(_) => &mut is_spoken,
                Cat::Set { node, .. } if side(node) => &mut is_spoken,
                _ => &mut is_said,
            };
            let slots = anchor.slots.0..anchor.slots.1;
            of[slots.clone()].fill(true);
            if matches!(anchor.cat, Cat::Set { node, .. } if matches!(self.arena.node(node), Node::Class(_)))
            {
                is_class[slots].fill(true);
            }
        }
        for reading in readings.iter_mut().take(EXPLAINING) {
            let unused = |slot: &usize| {
                let skip = self.skip[*slot];
                reading.skipped & 1 << slot != 0
                    && matches!(skip, F::skip_unknown | F::skip_word)
                    && !is_said[*slot]
            };
            let unused: Vec<usize> = (0..is_said.len()).filter(unused).collect();
            let Some(whole) = self.whole(reading.node).filter(|_| !unused.is_empty()) else {
                continue;
            };
            let cosine = dot(&whole, &self.question);
            if cosine < CLOSE {
                continue;
            }
            let features = reading.derivation.features();
            // a name that may be another, and a word that is not said: one guess too many
            if features[F::name_unsure as usize] > UNSURE {
                continue;
            }
            let likely = self.likelihood(reading.node).map(|p| p >= LIKELY);
            if likely == Some(false) {
                continue;
            }
            // the one word that is left may be the verb of an unspoken way
            let bridges = features[F::bridge as usize] > 0.0;
            let alone = unused.len() == 1 && bridges && !self.schema.is_untyped;
            let alone = alone && !is_spoken[unused[0]];
            let several = match self.arena.meaning(reading.node)? {
                Meaning::Set(all) => all.len() > 1,
                _ => false,
            };
            let mut steps = Vec::new();
            self.arena.steps(reading.node, None, STEPS, &mut steps);
            for slot in unused {
                // whether it is so is asked of all that is said
                if self.is_yes_no {
                    break;
                }
                let at = self.words.slots[slot];
                // `tools that they gave themselves` are not all that were given
                if self.lang.reflexive.contains(&self.words.all[at].lower) {
                    continue;
                }
                // the calling code is not the country code
                let is_taken = |r: &RelationId| steps.iter().any(|((step, _), _)| step == r);
                if !named[slot].is_empty() && !named[slot].iter().any(is_taken) {
                    continue;
                }
                // `major cities` are not all cities
                let next = self.words.slots.get(slot + 1) == Some(&(at + 1));
                if next && is_class[slot + 1] {
                    continue;
                }
                // `the drummer of the band` is not all of its members, and a word that is none of
                // English says something that no phrase does
                if several && self.is_one(at) || !self.near.has(&self.words.all[at].lower)? {
                    continue;
                }
                let without = self.encode(self.marked(Some(at)))?;
                let falls = cosine - dot(&whole, &without);
                let least = match (likely, alone && cosine >= CLOSER) {
                    (Some(true), _) => RISES,
                    (_, true) => NEUTRAL,
                    _ => EXPLAINED,
                };
                if falls >= least {
                    reading.skipped &= !(1 << slot);
                    let own = vec![(self.skip[slot], -1.0), (F::explained, 1.0)];
                    self.add(reading, own);
                }
            }
        }
        readings.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(())
    }

    /// How likely the way of a reading is among those around its name, where things have classes and
    /// it is the reading of one name and a way: 0 where another is likelier.
    pub(super) fn likelihood(&self, node: Id) -> Option<f32> {
        if self.schema.is_untyped {
            return None;
        }
        match *self.arena.node(node) {
            Node::Ents(_) => Some(0.0),
            Node::Count(of) => self.likelihood(of),
            Node::And(a, b) => match (self.arena.node(a), self.arena.node(b)) {
                (Node::Class(_), _) => self.likelihood(b),
                (_, Node::Class(_)) => self.likelihood(a),
                _ => None,
            },
            Node::Join(_, of) => {
                let here = self.likeliest.iter().filter(|(to, _)| *to == node);
                let here = here.map(|(_, p)| *p).reduce(f32::max);
                here.or_else(|| self.likelihood(of).map(|_| 0.0))
            }
            _ => None,
        }
    }

    /// Whether the word at a place is a noun for one thing: `the drummer`.
    fn is_one(&self, at: usize) -> bool {
        let article = at.checked_sub(1).map(|before| &self.words.all[before]);
        article.is_some_and(|w| w.lower == "the") && !self.words.all[at].lower.ends_with('s')
    }

    /// The vector of all steps of a node, where it has some.
    fn whole(&self, node: Id) -> Option<Vec<f32>> {
        let phrases = self.phrases_of(node);
        (!phrases.is_empty()).then(|| self.phrases.of(&phrases))
    }

    /// The numbers of the phrases of a node's steps, those of its parts among them.
    pub(super) fn phrases_of(&self, node: Id) -> Vec<u32> {
        let mut steps = Vec::new();
        self.arena.steps(node, None, MAX_STEPS, &mut steps);
        self.phrases.places(&steps, self.schema)
    }

    fn add(&self, reading: &mut Reading, own: Own) {
        reading.score += self.weigh(&own);
        let parts = [Some(Rc::clone(&reading.derivation)), None];
        reading.derivation = Rc::new(Derivation {
            parts,
            own,
            anchor: None,
        });
    }

    /// The question with one name marked.
    fn marked_around(&self, anchor: &Anchor) -> String {
        let (from, to) = anchor.words;
        let (start, end) = (self.words.all[from].start, self.words.all[to - 1].end);
        let text = &self.words.text;
        format!("{}{MARK}{}", &text[..start], &text[end..])
    }

    /// The vector of a question in which names are marked; kept, for the things of one name give
    /// the same.
    fn encode(&mut self, text: String) -> Result<Rc<[f32]>> {
        if let Some((_, kept)) = self.encoded.iter().find(|(of, _)| *of == text) {
            return Ok(Rc::clone(kept));
        }
        self.encode_all(vec![text])?;
        let (_, row) = &self.encoded[self.encoded.len() - 1];
        Ok(Rc::clone(row))
    }

    /// Encodes some questions with marked names in one go.
    fn encode_all(&mut self, mut texts: Vec<String>) -> Result<()> {
        texts.retain(|text| self.encoded.iter().all(|(of, _)| of != text));
        texts.sort_unstable();
        texts.dedup();
        let rows = self.phrases.questions(&texts)?;
        let rows = rows.into_iter().map(Rc::from);
        self.encoded.extend(texts.into_iter().zip(rows));
        Ok(())
    }

    /// How well a step fits the whole question; a relation, the way that fits better.
    pub(super) fn step_fits(&self, (relation, forward): Step) -> f32 {
        let at = 2 * relation.index() + usize::from(!forward);
        self.fits.get(at).copied().unwrap_or(0.0)
    }

    pub(super) fn relation_fits(&self, relation: RelationId) -> f32 {
        f32::max(
            self.step_fits((relation, true)),
            self.step_fits((relation, false)),
        )
    }

    /// Readings of names with ways that no single word says.
    pub(super) fn by_ways(&mut self, anchors: &[Anchor]) -> Result<Vec<Reading>> {
        let mut readings = Vec::new();
        if self.is_yes_no {
            return Ok(readings);
        }
        let mut spoken: Vec<Spoken> = vec![Spoken::default(); self.words.slots.len()];
        if self.schema.is_untyped {
            for (spoken, &at) in spoken.iter_mut().zip(&self.words.slots) {
                spoken.is_known = self.near.knows(&self.words.all[at].lower)?;
            }
        }
        let in_full = |a: &Anchor| !says(a, F::relation_missing) && !says(a, F::relation_group);
        let said = relations_at(spoken.len(), anchors, |_| true);
        let named = relations_at(spoken.len(), anchors, in_full);
        for (spoken, (said, named)) in spoken.iter_mut().zip(said.into_iter().zip(named)) {
            (spoken.relations, spoken.named) = (said, named);
        }
        let mut names: Vec<(&Anchor, Id, f32)> = Vec::new();
        for anchor in anchors {
            if let Cat::Set { node, .. } = anchor.cat
                && self.is_named(node)
                && self.arena.kind(node) == Kind::Thing
            {
                names.push((anchor, node, self.weigh(&anchor.own)));
            }
        }
        // what is written out in full is not a part of its name
        let within = |a: &Anchor, b: &Anchor| {
            b.words.0 <= a.words.0 && a.words.1 <= b.words.1 && a.words != b.words
        };
        let in_full: Vec<&Anchor> = names.iter().map(|name| name.0).filter(is_exact).collect();
        names.retain(|(anchor, ..)| !in_full.iter().any(|whole| within(anchor, whole)));
        names.sort_by(|a, b| b.2.total_cmp(&a.2));
        names.truncate(NAMES);
        let texts = names.iter().map(|(anchor, ..)| self.marked_around(anchor));
        let texts: Vec<String> = texts.collect();
        self.encode_all(texts)?;
        let mut around = Vec::new();
        for (anchor, node, _) in names {
            let ways = self.ways_matched(anchor, node)?;
            around.push(Around { anchor, node, ways });
        }
        for name in &around {
            for fit in name.ways.iter().take(ALONE) {
                let node = self.along(&fit.way, name.node)?;
                self.matched_reading(node, &[(name, fit)], &spoken, &mut readings)?;
            }
        }
        for (at, first) in around.iter().enumerate() {
            for second in &around[at + 1..] {
                let (a, b) = (first.anchor.slots, second.anchor.slots);
                if a.0 < b.1 && b.0 < a.1 {
                    continue;
                }
                for one in first.ways.iter().take(TOGETHER) {
                    for two in second.ways.iter().take(TOGETHER) {
                        let left = self.along(&one.way, first.node)?;
                        let right = self.along(&two.way, second.node)?;
                        let both = self.arena.add(Node::And(left, right))?;
                        let names = [(first, one), (second, two)];
                        self.matched_reading(both, &names, &spoken, &mut readings)?;
                    }
                }
            }
        }
        Ok(readings)
    }

    /// What some steps lead to from a set.
    pub(super) fn along(&mut self, way: &[Step], from: Id) -> Result<Id> {
        let mut node = from;
        for &step in way {
            node = self.arena.add(Node::Join(step, node))?;
        }
        Ok(node)
    }

    /// A reading of some names, each with a way.
    fn matched_reading(
        &mut self,
        node: Id,
        names: &[(&Around<'_>, &Fit)],
        spoken: &[Spoken],
        readings: &mut Vec<Reading>,
    ) -> Result<()> {
        let Meaning::Set(members) = self.arena.meaning(node)? else {
            return Ok(());
        };
        let mut named = false;
        for &member in members.iter().take(LOOKED_AT) {
            named |= self.graph.is_named(member)?;
        }
        if !named {
            return Ok(());
        }
        let mut own: Own = vec![(F::matched, names.len() as f32)];
        // where things have classes, most of what people ask for has a word
        let mut sure = self.schema.is_untyped;
        for (name, fit) in names {
            own.extend(&name.anchor.own);
            own.push((F::matched_far, -fit.log));
            if fit.is_long {
                own.push((F::matched_long, 1.0));
            }
            sure &= fit.log.exp() >= SURE;
        }
        if names.len() > 1 {
            own.push((F::and, 1.0));
        }
        let counts = |at: &usize| {
            let said = |p: &super::tokens::Phrase| p.op == Op::Count && (p.from..p.to).contains(at);
            self.words.phrases.iter().any(said)
        };
        let counts: Vec<bool> = self.words.slots.iter().map(counts).collect();
        // `and` between the two names is what both are joined by
        let joins = |slot: &usize| {
            let at = self.words.slots[*slot];
            let said = |p: &super::tokens::Phrase| p.op == Op::And && (p.from..p.to).contains(&at);
            let before = names.iter().any(|(n, _)| n.anchor.words.1 <= at);
            let after = names.iter().any(|(n, _)| at < n.anchor.words.0);
            before && after && self.words.phrases.iter().any(said)
        };
        let (mut skipped, mut is_count, mut against) = (0, false, 0.0);
        let is_followed = |relation: &RelationId| {
            let along = |fit: &Fit| fit.way.iter().any(|step| step.0 == *relation);
            names.iter().any(|(_, fit)| along(fit))
        };
        for (slot, spoken) in spoken.iter().enumerate() {
            let inside = |(name, _): &(&Around<'_>, &Fit)| {
                (name.anchor.slots.0..name.anchor.slots.1).contains(&slot)
            };
            if names.iter().any(inside) {
                continue;
            }
            if counts[slot] {
                is_count = true;
                continue;
            }
            if names.len() > 1 && joins(&slot) {
                continue;
            }
            let skip = self.skip[slot];
            match skip {
                F::skip_name | F::skip_number | F::skip_operator => {
                    own.push((skip, 1.0));
                    skipped |= 1 << slot;
                }
                F::skip_silent | F::skip_asking => {}
                // a word that is none of English says something that no phrase does
                // `who wrote it` is not answered by who directed it
                _ if matches!(spoken.named[..], [other] if !is_followed(&other)) => {
                    own.push((F::matched_against, 1.0));
                    own.push((skip, 1.0));
                    skipped |= 1 << slot;
                }
                _ if sure && spoken.is_known => {
                    own.push((F::matched_word, 1.0));
                    if spoken.relations.iter().any(is_followed) {
                        own.push((F::matched_said, 1.0));
                    } else if !spoken.relations.is_empty() {
                        own.push((F::matched_other, 1.0));
                        against += 1.0 / spoken.relations.len() as f32;
                    }
                }
                _ => {
                    own.push((skip, 1.0));
                    skipped |= 1 << slot;
                }
            }
        }
        if against > 0.0 {
            own.push((F::matched_against, against));
        }
        let asks = |word: &super::tokens::Word| self.lang.asks(&word.lower);
        if own.iter().all(|(f, _)| *f != F::matched_word) && !self.words.all.iter().any(asks) {
            return Ok(());
        }
        let node = match is_count {
            // `how many people work on the ship`, where it has a size of the crew
            true if self.arena.kind(node).is_measure() => {
                own.push((F::count_value, 1.0));
                self.fit_to_one_number(node, &mut own)?;
                node
            }
            true => self.arena.add(Node::Count(node))?,
            false => {
                self.fit_to_asking(node, &mut own)?;
                node
            }
        };
        let leaf = |name: Option<&(&Around<'_>, &Fit)>| {
            name.map(|(around, _)| {
                Rc::new(Derivation {
                    parts: [None, None],
                    own: Vec::new(),
                    anchor: Some((around.anchor.words, around.anchor.cat.clone())),
                })
            })
        };
        readings.push(Reading {
            node,
            score: self.weigh(&own),
            derivation: Rc::new(Derivation {
                parts: [leaf(names.first()), leaf(names.get(1))],
                own,
                anchor: None,
            }),
            skipped,
        });
        Ok(())
    }

    /// The ways from a name by how well the question without it fits their phrases: those around
    /// it, and on from where the best of these lead.
    fn ways_matched(&mut self, anchor: &Anchor, node: Id) -> Result<Vec<Fit>> {
        let Node::Ents(all) = self.arena.node(node).clone() else {
            return Ok(Vec::new());
        };
        let question = self.encode(self.marked_around(anchor))?;
        let (phrases, schema) = (self.phrases, self.schema);
        let class = self.arena.class_of(node);
        let fit = |way: Way, is_long| {
            let of = |(place, step): (usize, &Step)| match (place, step.1) {
                (0, true) => (*step, class),
                _ => (*step, None),
            };
            let told: Vec<Told> = way.iter().enumerate().map(of).collect();
            let whole = phrases.of(&phrases.places(&told, schema));
            let log = dot(&question, &whole) / TEMPERATURE;
            Fit { way, is_long, log }
        };
        let best = |a: &Fit, b: &Fit| b.log.total_cmp(&a.log).then(a.way.cmp(&b.way));
        let ways = ways_around(&all, self.graph, self.schema)?.into_iter();
        let mut found: Vec<Fit> = ways.map(|way| fit(way, false)).collect();
        found.sort_by(best);
        self.keep_likeliest(node, &found)?;
        for at in 0..found.len().min(ON) {
            let first = Rc::clone(&found[at].way);
            let reached = self.along(&first, node)?;
            let Some(members) = self.arena.members(reached)? else {
                continue;
            };
            let mut near = Vec::new();
            let some = &members[..members.len().min(LOOKED_AT)];
            self.graph.prefetch(some, Direction::Both)?;
            for &member in some {
                if self.graph.degree(member)? <= MAX_DEGREE {
                    near.push(member);
                }
            }
            let back = first
                .last()
                .map(|&(relation, forward)| (relation, !forward));
            for next in ways_around(&near, self.graph, self.schema)? {
                if next.first().copied() != back && found.len() < MAX_WAYS {
                    found.push(fit(
                        first.iter().chain(next.iter()).copied().collect(),
                        true,
                    ));
                }
            }
        }
        found.sort_by(best);
        if found.first().is_some_and(|first| first.is_long) {
            self.keep_likeliest(node, &found)?;
        }
        let all = log_sum(&found);
        for fit in &mut found {
            fit.log -= all;
        }
        Ok(found)
    }

    /// Keeps how likely the first of some ways is among them.
    fn keep_likeliest(&mut self, from: Id, ways: &[Fit]) -> Result<()> {
        let Some(first) = ways.first() else {
            return Ok(());
        };
        let to = self.along(&first.way, from)?;
        let p = (first.log - log_sum(ways)).exp();
        self.likeliest.push((to, p));
        Ok(())
    }
}

/// The logarithm of the sum of what the logarithms of some ways, the best first, stand for.
fn log_sum(ways: &[Fit]) -> f32 {
    let most = ways.first().map_or(0.0, |first| first.log);
    let sum: f32 = ways.iter().map(|way| (way.log - most).exp()).sum();
    most + sum.ln()
}

/// Whether a name is spelt like the question has it.
fn is_exact(anchor: &&Anchor) -> bool {
    anchor.own.iter().all(|(f, _)| *f != F::name_unsure)
}

/// Whether a word only comes near to what it stands for.
fn is_soft(anchor: &Anchor) -> bool {
    let soft = [
        F::relation_soft,
        F::relation_said,
        F::class_soft,
        F::class_said,
    ];
    anchor.own.iter().any(|(f, v)| *v > 0.0 && soft.contains(f))
}

/// The relations that the word of each slot says surely, by the anchors that count.
fn relations_at(
    slots: usize,
    anchors: &[Anchor],
    counts: impl Fn(&Anchor) -> bool,
) -> Vec<Vec<RelationId>> {
    let mut at = vec![Vec::new(); slots];
    for anchor in anchors.iter().filter(|a| !is_soft(a) && counts(a)) {
        if let Cat::Relation(relation) = anchor.cat {
            let here = &mut at[anchor.slots.0..anchor.slots.1];
            here.iter_mut().for_each(|of| of.push(relation));
        }
    }
    at
}

/// The ways around some things: a step, or two through a node that nobody names.
fn ways_around(all: &[EntityId], graph: &dyn Graph, schema: &Schema) -> Result<Vec<Way>> {
    let mut found: Vec<Way> = Vec::new();
    let some = &all[..all.len().min(LOOKED_AT)];
    graph.prefetch(some, Direction::Both)?;
    for &entity in some {
        for first in steps_from(entity, graph, schema)? {
            let mut nameless = Vec::new();
            for &end in first.1.iter().take(LOOKED_AT) {
                if !graph.is_named(end)? && entity_kind(end, graph)? == Kind::Thing {
                    nameless.push(end);
                }
            }
            if nameless.is_empty() {
                found.push(Rc::from([first.0]));
                continue;
            }
            graph.prefetch(&nameless, Direction::Both)?;
            for node in nameless {
                for (second, _) in steps_from(node, graph, schema)? {
                    if second != (first.0.0, !first.0.1) {
                        found.push(Rc::from([first.0, second]));
                    }
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found.truncate(MAX_WAYS);
    Ok(found)
}

/// The steps from a thing, each with where it leads.
fn steps_from(
    entity: EntityId,
    graph: &dyn Graph,
    schema: &Schema,
) -> Result<Vec<(Step, Vec<EntityId>)>> {
    let mut found = Vec::new();
    for forward in [true, false] {
        let row = row(graph, entity, forward)?;
        for (relation, run) in by_relation(&row) {
            if !schema.is_idle(relation) {
                let ends = run.iter().take(LOOKED_AT).map(|edge| edge.entity);
                found.push(((relation, forward), ends.collect()));
            }
        }
    }
    Ok(found)
}
