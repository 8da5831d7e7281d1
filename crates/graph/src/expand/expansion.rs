//! Options and results of an expansion.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::graph::{Direction, EntityId, RelationId};
use crate::marks::milliseconds;
use crate::subgraph::Subgraph;

/// Options of an expansion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expansion {
    /// Number of hops, at most 65,535.
    pub hops: usize,
    /// The direction in which edges are followed.
    pub direction: Direction,
    /// Maximum edges taken per entity and direction.
    pub max_fan_out: usize,
    /// Maximum triples in total, at most 2^29.
    pub max_triples: usize,
    /// Maximum time; the result so far is returned then. In files: `time_limit_ms`.
    #[serde(
        rename = "time_limit_ms",
        with = "milliseconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub time_limit: Option<Duration>,
    /// Relations that are left out, such as those that only give names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<RelationId>,
}

impl Default for Expansion {
    fn default() -> Self {
        Self {
            hops: 2,
            direction: Direction::Both,
            max_fan_out: 10_000,
            max_triples: 200_000,
            time_limit: None,
            skip: Vec::new(),
        }
    }
}

/// A neighbourhood.
#[derive(Debug, Default)]
pub struct Expanded {
    /// Its entities, the seeds first (each once), then by distance; and its triples, each once.
    pub subgraph: Subgraph,
    /// Hops from the nearest seed, for each own entity of the subgraph. Where something was cut,
    /// the hops of the way that was left.
    pub distance: Vec<u16>,
    /// What the limits left out.
    pub cut: Cut,
}

/// What the limits left out of a neighbourhood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Entities that did not give all their edges.
    pub hubs: Vec<CutHub>,
    /// Entities near enough to be followed that were not followed at all.
    pub unfollowed: usize,
    /// Whether `max_triples` was too small.
    pub out_of_triples: bool,
    /// Whether the time limit was exceeded.
    pub out_of_time: bool,
}

/// An entity that did not give all its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutHub {
    /// The entity, in the ids of the larger graph.
    pub entity: EntityId,
    /// How many edges it has in the directions followed.
    pub edges: usize,
    /// How many of them it gave. Others may have come from their other end.
    pub taken: usize,
}

impl Cut {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.hubs.is_empty() && self.unfollowed == 0 && !self.out_of_triples && !self.out_of_time
    }

    /// What was left out, as sentences for the user.
    pub fn describe(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.hubs.is_empty() {
            let edges: usize = self.hubs.iter().map(|hub| hub.edges).sum();
            let taken: usize = self.hubs.iter().map(|hub| hub.taken).sum();
            notes.push(format!(
                "{} with many edges gave {taken} of {edges}",
                counted(self.hubs.len(), "entity", "entities")
            ));
        }
        let why = match (self.out_of_time, self.out_of_triples) {
            (true, _) => "the time limit was reached",
            (false, true) => "the limit on triples was reached",
            (false, false) => return notes,
        };
        notes.push(match self.unfollowed {
            0 => why.to_owned(),
            n => format!(
                "{why}, and {} not followed",
                counted(n, "entity was", "entities were")
            ),
        });
        notes
    }
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
