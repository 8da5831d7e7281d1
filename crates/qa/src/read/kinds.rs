//! What tells people from places: steps that only one of the two has, and classes.

use hashbrown::HashSet;
use wherefore_graph::RelationId;

use super::lang::{Lang, Signs};
use super::vocabulary::{Class, ClassIx, Relation, Step};

/// Relations that are looked for, the most frequent ones.
const MOST: usize = 16;

/// How many of some things are people, and how many places: shares from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Kinds {
    pub(super) people: f32,
    pub(super) places: f32,
}

/// The steps that only people, and only places, can make.
#[derive(Debug, Default)]
pub(super) struct KindSteps {
    pub(super) people: Vec<Step>,
    pub(super) places: Vec<Step>,
    /// Classes of people, and of places.
    pub(super) person_classes: Vec<ClassIx>,
    pub(super) place_classes: Vec<ClassIx>,
}

impl KindSteps {
    pub(super) fn of(relations: &[Relation], classes: &[Class], lang: &Lang) -> Self {
        let known = |signs: &Signs| {
            let mut steps: Vec<(usize, Step)> = Vec::new();
            for (id, relation) in (0..).zip(relations) {
                let stems: HashSet<&str> = relation.stems.iter().map(String::as_str).collect();
                let is_of = |all: &[HashSet<String>]| {
                    all.iter().any(|one| {
                        one.len() == stems.len() && stems.iter().all(|s| one.contains(*s))
                    })
                };
                if is_of(&signs.have) {
                    steps.push((relation.count, (RelationId(id), true)));
                }
                if is_of(&signs.led_to_by) {
                    steps.push((relation.count, (RelationId(id), false)));
                }
            }
            steps.sort_by_key(|&(count, step)| (std::cmp::Reverse(count), step));
            steps.into_iter().take(MOST).map(|(_, step)| step).collect()
        };
        let named = |signs: &Signs| {
            let last = |class: &Class| {
                class
                    .stems
                    .last()
                    .is_some_and(|s| signs.classes.contains(s))
            };
            let all = (0..).zip(classes).filter(|(_, class)| last(class));
            all.map(|(ix, _)| ix).collect()
        };
        Self {
            people: known(&lang.people),
            places: known(&lang.places),
            person_classes: named(&lang.people),
            place_classes: named(&lang.places),
        }
    }

    /// Classes of people.
    pub(super) fn person_classes(&self) -> &[ClassIx] {
        &self.person_classes
    }

    pub(super) fn is_empty(&self) -> bool {
        let steps = self.people.is_empty() && self.places.is_empty();
        steps && self.person_classes.is_empty() && self.place_classes.is_empty()
    }
}
