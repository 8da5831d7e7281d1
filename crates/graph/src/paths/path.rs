//! Steps and paths.

use serde::{Deserialize, Serialize};

use crate::graph::{Edge, EntityId, Triple};

/// One triple of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Step {
    /// The triple.
    pub triple: Triple,
    /// Whether it is walked from head to tail.
    pub forward: bool,
}

impl Step {
    /// Where the step begins.
    pub fn from(&self) -> EntityId {
        if self.forward {
            self.triple.head
        } else {
            self.triple.tail
        }
    }

    /// Where the step leads.
    pub fn to(&self) -> EntityId {
        if self.forward {
            self.triple.tail
        } else {
            self.triple.head
        }
    }

    /// The step along an edge of `from`: an outgoing one if it goes forward.
    pub fn new(from: EntityId, edge: Edge, forward: bool) -> Self {
        let (head, tail) = if forward {
            (from, edge.entity)
        } else {
            (edge.entity, from)
        };
        let relation = edge.relation;
        Step {
            triple: Triple {
                head,
                relation,
                tail,
            },
            forward,
        }
    }

    pub(super) fn reversed(self) -> Self {
        Step {
            forward: !self.forward,
            ..self
        }
    }
}

/// A way through the graph: each step begins where the one before it led.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Path {
    /// Where it begins.
    pub start: EntityId,
    /// Its steps; none where it ends at its start.
    pub steps: Vec<Step>,
}

impl Path {
    /// Where it ends.
    pub fn end(&self) -> EntityId {
        self.steps.last().map_or(self.start, Step::to)
    }
}
