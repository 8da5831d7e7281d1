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

use super::lang::{Lang, Profile};
use super::schema::{Schema, by_relation, row};
use super::vocabulary::{ClassIx, Kind, Step};
use crate::error::Result;
use crate::words::{opened, stem};

/// Relations and classes of a graph that is looked at: of more, a noun tells too little.
const MOST: usize = 300;
/// Triples of a relation that are gone through, and members of a group that are looked at.
const TRIPLES: usize = 4000;
const MEMBERS: usize = 64;
/// From this share on, things of one group are things of another.
const SAME: f32 = 0.5;

/// What a group is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// What has the step, or is led to by it.
    Step(Step),
    Class(ClassIx),
}

/// Things that may have a name in common.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) of: Of,
    pub(super) members: usize,
    /// The steps of its members, (relation, true) for one that they have, each with the share that
    /// has it.
    steps: BTreeMap<Step, f32>,
    /// Words of their names, as stems, each with the share of names that have it.
    words: BTreeMap<String, f32>,
}

/// How well a noun fits a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub(super) all: f32,
    /// The same with m left out.
    pub(super) untold: f32,
}

/// The groups of a graph.
#[derive(Debug, Default)]
pub(super) struct Groups(pub(super) Vec<Group>);

impl Groups {
    /// The sides of relations, or where things have classes, the classes.
    pub(super) fn of(schema: &Schema, graph: &dyn Graph) -> Result<Self> {
        let own = graph.relation_bound();
        if own > MOST || schema.classes.len() > MOST {
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
                if !has && relation.kind != Kind::Thing {
                    continue;
                }
                let step = (id, has);
                match graph.service() {
                    None => groups.push(Group::of_side(step, schema, graph)?),
                    Some(_) => groups.extend(Group::counted(step, schema, graph)?),
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
            add_words(&graph.entity_label(member)?, share, &mut words);
        }
        Ok(Self {
            of: Of::Step((relation, has)),
            members: members.len(),
            steps,
            words,
        })
    }

    /// A side as a service counted it.
    fn counted(side: Step, schema: &Schema, graph: &dyn Graph) -> Result<Option<Self>> {
        let Some(counted) = schema.counted_sides.get(&side) else {
            return Ok(None);
        };
        let (mut steps, mut words) = (BTreeMap::new(), BTreeMap::new());
        for (iri, has, share) in &counted.steps {
            if let Some(relation) = graph.relation_named(iri)?
                && !schema.relation(relation).is_silent
            {
                steps.insert((relation, *has), *share);
            }
        }
        let share = 1.0 / counted.names.len().max(1) as f32;
        for name in &counted.names {
            add_words(name, share, &mut words);
        }
        Ok(Some(Self {
            of: Of::Step(side),
            members: counted.things,
            steps,
            words,
        }))
    }

    /// How well things of these kinds, called by these stems, are its members.
    pub(super) fn fit(&self, noun: &Noun<'_>, schema: &Schema) -> Fit {
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
    pub(super) fn is_alike(&self, other: &Group) -> bool {
        let within = |a: &Group, b: &Group| match b.of {
            Of::Step(step) => a.steps.get(&step).is_some_and(|share| *share >= SAME),
            Of::Class(_) => false,
        };
        within(self, other) || within(other, self)
    }
}

/// Adds the share of a name to each of its words.
fn add_words(name: &str, share: f32, words: &mut BTreeMap<String, f32>) {
    let name = opened(name);
    let stems: BTreeSet<String> = name
        .split(' ')
        .map(|word| stem(word).into_owned())
        .collect();
    for stem in stems {
        *words.entry(stem).or_insert(0.0) += share;
    }
}

/// A noun of the question.
pub(super) struct Noun<'n> {
    pub(super) stems: Vec<String>,
    pub(super) kinds: Vec<&'n Profile>,
    pub(super) is_person: bool,
    /// Its cosine with each relation.
    pub(super) cosines: Rc<[f32]>,
    pub(super) lang: &'n Lang,
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
