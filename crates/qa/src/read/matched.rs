//! Readings of one or two names, each with a way that no single word says: the whole question is
//! compared with the phrases of the ways around the name.
//!
//! ```text
//! p(way | question, name) = exp(cos(question, phrase(way)) / τ) / Σ over the ways around the name
//! ```

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use wherefore_graph::{EntityId, Graph, RelationId};
use wherefore_model::Encoder;

use super::arena::{Id, Meaning, Node};
use super::chart::{Anchor, Cat, Own, Reading, Search};
use super::features::{Derivation, Feature as F};
use super::lang::Op;
use super::schema::{Kind, Schema, Step, by_relation, entity_kind, row};
use super::unnamed::is_doubtful;
use crate::error::Result;
use crate::relations::dot;
use crate::words::opened;

/// What stands for a name in a question.
const MARK: &str = "it";
/// τ.
const TEMPERATURE: f32 = 0.05;
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

/// The phrase of each step of a graph as a vector of length 1, both ways.
pub(super) struct Phrases {
    encoder: Arc<dyn Encoder>,
    /// Along the first relation, against it, along the second.
    rows: Vec<f32>,
}

impl fmt::Debug for Phrases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Phrases({})", self.encoder.name())
    }
}

impl Phrases {
    pub(super) fn new(
        graph: &dyn Graph,
        schema: &Schema,
        encoder: Arc<dyn Encoder>,
    ) -> Result<Self> {
        let own = schema.relations.len() - schema.mediated.len();
        let mut phrases = Vec::with_capacity(2 * own);
        for id in 0..own {
            let relation = RelationId(id as u32);
            phrases.push(phrase((relation, true), graph, schema)?);
            phrases.push(phrase((relation, false), graph, schema)?);
        }
        let texts: Vec<&str> = phrases.iter().map(String::as_str).collect();
        let mut rows = encoder.encode(&texts)?.values().to_vec();
        for row in rows.chunks_mut(encoder.dim()) {
            normalise(row);
        }
        let mut phrases = Self { encoder, rows };
        for &[first, second] in &schema.mediated {
            let back = |step: Step| (step.0, !step.1);
            for way in [[first, second], [back(second), back(first)]] {
                let row = phrases.of(&way);
                phrases.rows.extend(row);
            }
        }
        Ok(phrases)
    }

    /// The vector of some steps.
    fn of(&self, way: &[Step]) -> Vec<f32> {
        let dim = self.encoder.dim();
        let mut sum = vec![0.0; dim];
        for &(relation, forward) in way {
            let at = (2 * relation.index() + usize::from(!forward)) * dim;
            let row = &self.rows[at..at + dim];
            sum.iter_mut().zip(row).for_each(|(s, v)| *s += v);
        }
        normalise(&mut sum);
        sum
    }

    fn question(&self, text: &str) -> Result<Vec<f32>> {
        let mut row = self.encoder.encode_queries(&[text])?.row(0).to_vec();
        normalise(&mut row);
        Ok(row)
    }

    /// How much nearer to a question each step is than steps are on the whole, along and against
    /// each relation.
    pub(super) fn fits(&self, question: &str) -> Result<Vec<f32>> {
        let question = self.question(question)?;
        let rows = self.rows.chunks(self.encoder.dim());
        let mut cosines: Vec<f32> = rows.map(|row| dot(row, &question)).collect();
        let mean = cosines.iter().sum::<f32>() / cosines.len().max(1) as f32;
        cosines.iter_mut().for_each(|c| *c -= mean);
        Ok(cosines)
    }
}

fn normalise(row: &mut [f32]) {
    let length = dot(row, row).sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|v| *v /= length);
    }
}

/// A step in words: `population of the state`, `river with flows through`.
fn phrase(step: Step, graph: &dyn Graph, schema: &Schema) -> Result<String> {
    let (relation, forward) = step;
    let label = graph.relation_label(relation)?;
    // `people.person.place_of_birth`
    let mut parts = label.rsplit('.').filter(|part| !part.is_empty());
    let (name, of) = match label.matches('.').count() >= 2 && !label.contains(' ') {
        true => (
            opened(parts.next().unwrap_or(&label)),
            parts.next().map(opened),
        ),
        false => (opened(&label), None),
    };
    let class = schema.relation(relation).domain.first();
    let of = match class {
        Some(&(class, _)) => {
            let entity = schema.classes[class as usize].entity;
            Some(opened(&graph.entity_label(entity)?).to_lowercase())
        }
        None => of.map(|of| of.to_lowercase()),
    };
    let name = name.to_lowercase();
    Ok(match (of, forward) {
        (Some(of), true) => format!("{name} of the {of}"),
        (None, true) => format!("{name} of it"),
        (Some(of), false) => format!("{of} with {name}"),
        (None, false) => format!("it is {name} of"),
    })
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
        let mut text = String::new();
        let mut end = 0;
        for at in 0..self.words.all.len() {
            let named = |a: &&Anchor| {
                (a.words.0..a.words.1).contains(&at)
                    && matches!(&a.cat, Cat::Set { node, .. } if self.is_named(*node))
                    && !is_doubtful(a)
            };
            let word = &self.words.all[at];
            match found.iter().any(|a| named(&a)) {
                true if text.ends_with(MARK) => {}
                true => {
                    text.push_str(&self.words.text[end..word.start]);
                    text.push_str(MARK);
                }
                false => text.push_str(&self.words.text[end..word.end]),
            }
            end = word.end;
        }
        self.fits = self.phrases.fits(&text)?;
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
        let mut known = vec![false; self.words.slots.len()];
        if self.schema.is_untyped {
            for (known, &at) in known.iter_mut().zip(&self.words.slots) {
                *known = self.near.knows(&self.words.all[at].lower)?;
            }
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
        names.sort_by(|a, b| b.2.total_cmp(&a.2));
        names.truncate(NAMES);
        let mut around = Vec::new();
        for (anchor, node, _) in names {
            let ways = self.ways_matched(anchor, node)?;
            around.push(Around { anchor, node, ways });
        }
        for name in &around {
            for fit in name.ways.iter().take(ALONE) {
                let node = self.along(&fit.way, name.node)?;
                self.matched_reading(node, &[(name, fit)], &known, &mut readings)?;
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
                        self.matched_reading(both, &names, &known, &mut readings)?;
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

    /// A reading of some names, each with a way; `known` says which slots' words are English.
    fn matched_reading(
        &mut self,
        node: Id,
        names: &[(&Around<'_>, &Fit)],
        known: &[bool],
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
        // where things have classes, what people ask for has a word
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
        let counts = |slot: usize| {
            let at = self.words.slots[slot];
            let said =
                |p: &super::tokens::Phrase| p.op == Op::Count && (p.from..p.to).contains(&at);
            self.words.phrases.iter().any(said)
        };
        let (mut skipped, mut is_count) = (0, false);
        for (slot, is_known) in known.iter().enumerate() {
            let inside = |(name, _): &(&Around<'_>, &Fit)| {
                (name.anchor.slots.0..name.anchor.slots.1).contains(&slot)
            };
            if names.iter().any(inside) {
                continue;
            }
            if counts(slot) {
                is_count = true;
                continue;
            }
            match self.skip[slot] {
                skip @ (F::skip_name | F::skip_number | F::skip_operator) => {
                    own.push((skip, 1.0));
                    skipped |= 1 << slot;
                }
                F::skip_silent | F::skip_asking => {}
                // a word that is none of English says something that no phrase does
                _ if sure && *is_known => own.push((F::matched_word, 1.0)),
                skip => {
                    own.push((skip, 1.0));
                    skipped |= 1 << slot;
                }
            }
        }
        let asks = |word: &super::tokens::Word| self.lang.asks(&word.lower);
        if own.iter().all(|(f, _)| *f != F::matched_word) && !self.words.all.iter().any(asks) {
            return Ok(());
        }
        let node = match is_count {
            true => self.arena.add(Node::Count(node))?,
            false => {
                self.fit_to_asking(node, &mut own);
                node
            }
        };
        readings.push(Reading {
            node,
            score: self.weigh(&own),
            derivation: Rc::new(Derivation {
                parts: [None, None],
                own,
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
        let (from, to) = (anchor.words.0, anchor.words.1);
        let (start, end) = (self.words.all[from].start, self.words.all[to - 1].end);
        let text = &self.words.text;
        let text = format!("{}{MARK}{}", &text[..start], &text[end..]);
        let question = self.phrases.question(&text)?;
        let phrases = self.phrases;
        let fit = |way: Way, is_long| {
            let log = dot(&question, &phrases.of(&way)) / TEMPERATURE;
            Fit { way, is_long, log }
        };
        let best = |a: &Fit, b: &Fit| b.log.total_cmp(&a.log).then(a.way.cmp(&b.way));
        let ways = ways_around(&all, self.graph, self.schema)?.into_iter();
        let mut found: Vec<Fit> = ways.map(|way| fit(way, false)).collect();
        found.sort_by(best);
        for at in 0..found.len().min(ON) {
            let first = Rc::clone(&found[at].way);
            let reached = self.along(&first, node)?;
            let Some(members) = self.arena.members(reached)? else {
                continue;
            };
            let mut near = Vec::new();
            for &member in members.iter().take(LOOKED_AT) {
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
        let most = found.iter().map(|f| f.log).fold(f32::MIN, f32::max);
        let sum: f32 = found.iter().map(|f| (f.log - most).exp()).sum();
        for fit in &mut found {
            fit.log -= most + sum.ln();
        }
        found.sort_by(best);
        Ok(found)
    }
}

/// The ways around some things: a step, or two through a node that nobody names.
fn ways_around(all: &[EntityId], graph: &dyn Graph, schema: &Schema) -> Result<Vec<Way>> {
    let mut found: Vec<Way> = Vec::new();
    for &entity in all.iter().take(LOOKED_AT) {
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
