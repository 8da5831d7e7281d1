//! The working memory, limits and clock of a search for paths.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::graph::{Adjacency, Direction, Edge, EntityId, RelationId};
use crate::marks::{Clock, Marks, milliseconds, reading_cost};

/// Limits of a search for paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathLimits {
    /// Maximum triples in a path, at most 65,534. A relation sequence to be grounded has its own
    /// length.
    pub max_length: usize,
    /// Maximum edges read.
    pub max_edges: usize,
    /// Maximum time. In files: `time_limit_ms`.
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

impl Default for PathLimits {
    fn default() -> Self {
        Self {
            max_length: 4,
            max_edges: 20_000_000,
            time_limit: None,
            skip: Vec::new(),
        }
    }
}

/// Finds paths, and reuses its working memory, so that the cost of a search does not grow with the
/// graph. It can be used with different graphs.
#[derive(Debug, Default)]
pub struct PathFinder {
    pub(super) marks: Marks,
    pub(super) touched: Vec<EntityId>,
}

pub(super) type Row<'a> = Cow<'a, [Edge]>;

const NO_EDGES: Row<'static> = Cow::Borrowed(&[]);

/// The end of the paths at which a search starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchOrigin {
    FromStart,
    /// Steps are followed backwards.
    FromEnd,
}

/// One search of a [`PathFinder`]. Dropping it cleans the marks.
pub(super) struct PathSearch<'a> {
    pub(super) graph: &'a dyn Adjacency,
    pub(super) direction: Direction,
    pub(super) skip: &'a [RelationId],
    pub(super) finder: &'a mut PathFinder,
    pub(super) clock: Clock,
    pub(super) edges_left: usize,
    /// Set when a limit is exceeded; the search then returns what it has.
    pub(super) stopped: bool,
}

impl PathFinder {
    pub(super) fn search<'a>(
        &'a mut self,
        graph: &'a dyn Adjacency,
        direction: Direction,
        limits: &'a PathLimits,
    ) -> PathSearch<'a> {
        PathSearch {
            graph,
            direction,
            skip: &limits.skip,
            finder: self,
            clock: Clock::new(limits.time_limit),
            edges_left: limits.max_edges,
            stopped: false,
        }
    }
}

impl Drop for PathSearch<'_> {
    fn drop(&mut self) {
        let touched = self.finder.touched.drain(..);
        self.finder.marks.wipe(touched.map(EntityId::index));
    }
}

impl<'a> PathSearch<'a> {
    /// The number beside an entity; it is wiped when the search ends.
    pub(super) fn mark(&mut self, entity: EntityId) -> Result<&mut u32> {
        let mark = self.finder.marks.entity(self.graph, entity)?;
        if *mark == 0 {
            self.finder.touched.push(entity);
        }
        Ok(mark)
    }

    /// The number beside an entity, 0 if none was written.
    pub(super) fn marked(&self, entity: EntityId) -> u32 {
        self.finder.marks.get(entity.index())
    }

    /// Charges edges of a row to the limits. False if a limit is exceeded.
    pub(super) fn may_look_at(&mut self, row: &Row<'_>, edges: usize) -> bool {
        self.stopped |= edges > self.edges_left || self.clock.is_over(edges + reading_cost(row));
        self.edges_left = self.edges_left.saturating_sub(edges);
        !self.stopped
    }

    /// The rows in which steps from an entity are found, and whether those steps go forward.
    /// Empty once a limit is exceeded.
    pub(super) fn rows(
        &mut self,
        entity: EntityId,
        seen: SearchOrigin,
    ) -> Result<[(Row<'a>, bool); 2]> {
        let (direction, graph) = (self.direction, self.graph);
        let (outgoing, incoming) = match seen {
            SearchOrigin::FromStart => (direction.goes_out(), direction.goes_in()),
            SearchOrigin::FromEnd => (direction.goes_in(), direction.goes_out()),
        };
        let mut rows = [(NO_EDGES, true), (NO_EDGES, false)];
        if outgoing {
            rows[0].0 = graph.outgoing(entity)?;
        }
        if incoming {
            rows[1].0 = graph.incoming(entity)?;
        }
        for (row, _) in &mut rows {
            if !self.may_look_at(row, row.len()) {
                *row = NO_EDGES;
            }
        }
        Ok(rows)
    }

    pub(super) fn skips(&self, relation: RelationId) -> bool {
        self.skip.contains(&relation)
    }
}
