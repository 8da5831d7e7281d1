//! What a noun means that the graph has no word for: `courses`, where the graph says which things
//! have credits and a lecturer, and not that they are courses.
//!
//! A group is all that stands on one side of a relation, or the instances of a class. It fits a noun
//!
//! ```text
//! fit(w, G) = (1 − 2⁻ᵐ)·e + 0.6·n + 0.5·c + 0.3·o
//! e = Σ share(s)·[w's kind has s] / (Σ share(s) + ½)    over the steps s of members of G
//! m = how many of these steps most of the members have
//! n = share of members with w in their names
//! c = half the largest share(s)·cos(w, s), half their mean
//! o = 1 where the relation that leads to G is called w
//! ```
//!
//! share(s) is how many of some members have the step; what kinds have is a list
//! (`lang/en.kinds.tsv`). The best group is taken where no other things fit nearly as well, or the
//! largest one of the same things: with m left out, that some have more told of them makes them no
//! better films.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use wherefore_graph::{EntityId, Graph, RelationId};

use super::anchors::is_part_of_name;
use super::arena::Node;
use super::chart::{Anchor, Cat, Search};
use super::features::Feature as F;
use super::lang::{Lang, Profile};
use super::schema::{ClassIx, Kind, Schema, Step, by_relation, row};
use super::unnamed::{is_doubtful, says};
use crate::error::Result;
use crate::words::{opened, stem};

/// Relations and classes of a graph that is looked at: of more, a noun tells too little.
const MOST: usize = 300;
/// Triples of a relation that are gone through, and members of a group that are looked at.
const TRIPLES: usize = 4000;
const MEMBERS: usize = 64;
/// The least fit at which a noun means a group, also where things have classes, and how much better
/// it has to be than that of other things.
const LEAST: f32 = 0.3;
const LEAST_TYPED: f32 = 0.45;
const MARGIN: f32 = 0.08;
/// From this share on, things of one group are things of another.
const SAME: f32 = 0.5;
/// Longest noun, in words.
const NOUN: usize = 3;
/// How unsure a group is that fits not at all, and the best one.
const UNSURE: f32 = 0.6;
const LEAST_UNSURE: f32 = 0.01;

/// What a group is.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// What has the step, or is led to by it.
    Step(Step),
    Class(ClassIx),
}

/// Things that may have a name in common.
#[derive(Debug)]
struct Group {
    of: Of,
    members: usize,
    /// The steps of its members, (relation, true) for one that they have, each with the share that
    /// has it.
    steps: BTreeMap<Step, f32>,
    /// Words of their names, as stems, each with the share of names that have it.
    words: BTreeMap<String, f32>,
}

/// How well a noun fits a group.
#[derive(Clone, Copy, Debug)]
struct Fit {
    all: f32,
    /// The same with m left out.
    untold: f32,
}

/// The groups of a graph.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<Group>);

impl Groups {
    /// The sides of relations, or where things have classes, the classes.
    pub(super) fn of(schema: &Schema, graph: &dyn Graph) -> Result<Self> {
        let own = graph.relation_bound();
        if graph.service().is_some() || own > MOST || schema.classes.len() > MOST {
            return Ok(Self::default());
        }
        let mut groups = Vec::new();
        if !schema.is_untyped {
            for (ix, class) in (0..).zip(&schema.classes) {
                if class.instances > 0 {
                    groups.push(Group::of_class(ix, schema));
                }
            }
            return Ok(Self(groups));
        }
        for id in (0..own).map(|id| RelationId(id as u32)) {
            let relation = schema.relation(id);
            if relation.is_silent {
                continue;
            }
            for has in [true, false] {
                if has || relation.kind == Kind::Thing {
                    groups.push(Group::of_side((id, has), schema, graph)?);
                }
            }
        }
        Ok(Self(groups))
    }
}

impl Group {
    fn of_class(class: ClassIx, schema: &Schema) -> Self {
        let mut steps = BTreeMap::new();
        for (id, relation) in (0..).map(RelationId).zip(&schema.relations) {
            for (side, has) in [(&relation.domain, true), (&relation.range, false)] {
                if !relation.is_silent && side.iter().any(|(c, _)| *c == class) {
                    steps.insert((id, has), 1.0);
                }
            }
        }
        let of = &schema.classes[class as usize];
        Self {
            of: Of::Class(class),
            members: of.instances,
            steps,
            words: of.stems.iter().map(|stem| (stem.clone(), 1.0)).collect(),
        }
    }

    fn of_side((relation, has): Step, schema: &Schema, graph: &dyn Graph) -> Result<Self> {
        let mut members: Vec<EntityId> = Vec::new();
        for triple in graph.with_relation(relation)?.take(TRIPLES) {
            let triple = triple?;
            members.push(if has { triple.head } else { triple.tail });
        }
        members.sort_unstable();
        members.dedup();
        let stride = members.len().div_ceil(MEMBERS).max(1);
        let looked_at: Vec<EntityId> = members.iter().copied().step_by(stride).collect();
        let share = 1.0 / looked_at.len().max(1) as f32;
        let (mut steps, mut words) = (BTreeMap::new(), BTreeMap::new());
        for &member in &looked_at {
            for has in [true, false] {
                for (relation, _) in by_relation(&row(graph, member, has)?) {
                    if !schema.relation(relation).is_silent {
                        *steps.entry((relation, has)).or_insert(0.0) += share;
                    }
                }
            }
            let name = opened(&graph.entity_label(member)?);
            let stems: BTreeSet<String> = name
                .split(' ')
                .map(|word| stem(word).into_owned())
                .collect();
            for stem in stems {
                *words.entry(stem).or_insert(0.0) += share;
            }
        }
        Ok(Self {
            of: Of::Step((relation, has)),
            members: members.len(),
            steps,
            words,
        })
    }

    /// How well things of these kinds, called by these stems, are its members.
    fn fit(&self, noun: &Noun<'_>, schema: &Schema) -> Fit {
        let all: f32 = self.steps.values().sum();
        let explains = |step: &Step| {
            let relation = schema.relation(step.0);
            let label = &relation.stems;
            let is_passive = relation.prepositions.iter().any(|p| p == "by");
            let is_own = |kind: &&Profile| kind.has(label, is_passive, step.1);
            noun.kinds.iter().any(is_own)
                || noun.is_person && noun.lang.only_people_have(label, step.1)
        };
        let (mut explained, mut told) = (0.0, 0.0);
        for (_, share) in self.steps.iter().filter(|(step, _)| explains(step)) {
            explained += share;
            told += f32::from(u8::from(*share >= SAME));
        }
        let near = |(step, share): (&Step, &f32)| {
            share * noun.cosines.get(step.0.index()).copied().unwrap_or(0.0)
        };
        let nearest = self.steps.iter().map(near).fold(0.0, f32::max);
        let mean = self.steps.iter().map(near).sum::<f32>() / all.max(1.0);
        let last = noun.stems.last();
        let named = last.and_then(|w| self.words.get(w)).copied().unwrap_or(0.0);
        let led_to = matches!(self.of, Of::Step((relation, false))
            if last.is_some_and(|w| schema.relation(relation).stems.contains(w)));
        let explained = explained / (all + 0.5);
        let called = 0.6 * named + 0.25 * (nearest + mean) + if led_to { 0.3 } else { 0.0 };
        Fit {
            all: (1.0 - 0.5f32.powf(told)) * explained + called,
            untold: explained + called,
        }
    }

    /// Whether its members are much the same things as another's.
    fn is_alike(&self, other: &Group) -> bool {
        let within = |a: &Group, b: &Group| match b.of {
            Of::Step(step) => a.steps.get(&step).is_some_and(|share| *share >= SAME),
            Of::Class(_) => false,
        };
        within(self, other) || within(other, self)
    }
}

/// A noun of the question.
struct Noun<'n> {
    stems: Vec<String>,
    kinds: Vec<&'n Profile>,
    is_person: bool,
    /// Its cosine with each relation.
    cosines: Rc<[f32]>,
    lang: &'n Lang,
}

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

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;

    use super::super::lang::english;
    use super::*;

    #[test]
    fn courses_have_credits_and_are_enrolled_in() {
        let graph = MemoryGraph::from_names([
            ("Maps", "ects", "9"),
            ("Rivers", "ects", "3"),
            ("Lena", "enrolled_in", "Maps"),
        ]);
        let schema = Schema::new(&graph, english()).unwrap();
        let groups = Groups::of(&schema, &graph).unwrap();
        let step = |name: &str, has: bool| (graph.relation_named(name).unwrap().unwrap(), has);
        let fit = |noun: &str, of: Step| {
            let stems = vec![stem(noun).into_owned()];
            let noun = Noun {
                kinds: english().things.of(&stems),
                stems,
                is_person: false,
                cosines: Rc::from([]),
                lang: english(),
            };
            let group = |g: &&Group| matches!(g.of, Of::Step(step) if step == of);
            let group = groups.0.iter().find(group).unwrap();
            group.fit(&noun, &schema).all
        };
        // all have credits, one of two has somebody enrolled: (1 − ¼) · 1.5 / (1.5 + ½)
        let courses = fit("courses", step("ects", true));
        assert!((courses - 0.5625).abs() < 1e-6, "{courses}");
        // nobody plays there
        assert_eq!(fit("stadiums", step("enrolled_in", true)), 0.0);
        // (1 − ½) · 1 / (1 + ½)
        let students = fit("students", step("enrolled_in", true));
        assert!((students - 1.0 / 3.0).abs() < 1e-6, "{students}");
        // *maps* is half of the names: 0.6 · ½
        assert!((fit("maps", step("ects", true)) - 0.3).abs() < 1e-6);
    }
}
