//! What a graph speaks with: its classes and relations, and what these lead to.

use wherefore_graph::{EntityId, RelationId};

use super::lang::{Lang, Unit};

/// The number of a class.
pub(super) type ClassIx = u32;
/// A relation, and whether it is followed from head to tail.
pub(super) type Step = (RelationId, bool);

/// What tails of a relation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Thing,
    Number,
    Time,
    Text,
}

impl Kind {
    /// Whether it can be compared: more or less, earlier or later.
    pub(super) fn is_measure(self) -> bool {
        matches!(self, Kind::Number | Kind::Time)
    }
}

/// A class.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) entity: EntityId,
    pub(super) stems: Vec<String>,
    pub(super) instances: usize,
    /// The narrower classes, at any depth.
    pub(super) narrower: Vec<ClassIx>,
    pub(super) wider: Vec<ClassIx>,
}

/// A relation.
#[derive(Debug)]
pub(super) struct Relation {
    /// Stems of its label's words but for closed-class ones.
    pub(super) stems: Vec<String>,
    /// Its label's closed-class words: `into` of `flows into`.
    pub(super) prepositions: Vec<String>,
    /// The words that the stems are of.
    pub(super) words: Vec<String>,
    pub(super) kind: Kind,
    /// The unit that its label ends with: `length_km`.
    pub(super) unit: Option<Unit>,
    /// Of a relation that leads to yes and no alone: what says yes, and what says no.
    pub(super) flag: Option<[Vec<EntityId>; 2]>,
    /// Its label is the name of a class: it names what it leads to, not what it is said of.
    pub(super) is_noun: bool,
    /// Naming or typing: nobody asks for it.
    pub(super) is_silent: bool,
    /// Leads to nodes that nobody names, which is why nobody asks for it.
    pub(super) is_inner: bool,
    pub(super) domain: Vec<(ClassIx, f32)>,
    pub(super) range: Vec<(ClassIx, f32)>,
    /// Its triples.
    pub(super) count: usize,
}

impl Relation {
    /// Whether it leads to times, or to numbers that it calls years.
    pub(super) fn is_time(&self, lang: &Lang) -> bool {
        let years = || self.stems.iter().any(|s| lang.years.contains(s));
        self.kind == Kind::Time || self.kind != Kind::Thing && years()
    }

    /// Whether it says when something is, be it only by the day of the week or in words.
    pub(super) fn says_when(&self, lang: &Lang) -> bool {
        let named = || self.words.iter().any(|w| lang.whens.contains(w));
        self.is_time(lang) || !self.kind.is_measure() && self.flag.is_none() && named()
    }
}
