//! All shortest paths between two sets of entities, by search from both sides.
//!
//! ```text
//! f(v) = steps from the nearest source,   b(v) = steps to the nearest target
//! the sides meet at the entities M with f(v) = i and b(v) = L − i,  for one i
//! ```
//!
//! Level by level the side whose frontier has fewer edges goes on. While no entity has both f
//! and b, no path is as short as both depths together; so when a whole level is done and some
//! have, L is the length of the shortest paths and all of them pass through M. From M the steps
//! are traced back along falling f and onwards along falling b, which lists every step of every
//! shortest path once and nothing else.

use super::path::Step;
use super::search::{PathFinder, PathLimits, PathSearch, SearchOrigin};
use super::set::PathSet;
use crate::error::Result;
use crate::graph::{Adjacency, Direction, EntityId};

/// All shortest paths from any source to any target: of all pairs, the nearest.
///
/// An entity that is both is a path of no steps. For many searches keep a [`PathFinder`].
///
/// ```
/// use wherefore_graph::{Direction, EntityId, PathLimits, shortest_paths, toy};
/// let graph = toy::graph();
/// let (seal, sluggerrr) = (EntityId(0), EntityId(13));
/// let paths = shortest_paths(&graph, &[seal], &[sluggerrr], Direction::Both, &PathLimits::default())?;
/// assert_eq!(paths.length(), Some(4)); // Giants, World Series 2014, Royals
/// assert_eq!(paths.count(), 1);
/// # Ok::<(), wherefore_graph::Error>(())
/// ```
pub fn shortest_paths(
    graph: &dyn Adjacency,
    sources: &[EntityId],
    targets: &[EntityId],
    direction: Direction,
    limits: &PathLimits,
) -> Result<PathSet> {
    PathFinder::default().shortest_paths(graph, sources, targets, direction, limits)
}

/// For each source and each target, all shortest paths between the two; pairs without are left
/// out unless a limit struck. The limits hold for each pair.
pub fn shortest_paths_by_pair(
    graph: &dyn Adjacency,
    sources: &[EntityId],
    targets: &[EntityId],
    direction: Direction,
    limits: &PathLimits,
) -> Result<Vec<(EntityId, EntityId, PathSet)>> {
    PathFinder::default().shortest_paths_by_pair(graph, sources, targets, direction, limits)
}

/// Beside an entity stand f + 1 in the lower half and b + 1 in the upper, 0 where unknown.
const SHIFT: [u32; 2] = [0, 16];
const MASK: u32 = 0xffff;

/// The most steps for which f + 1 and b + 1 have room.
pub(super) const MAX_LENGTH: usize = 0xfffe;

impl PathFinder {
    /// All shortest paths from any source to any target; see [`shortest_paths`].
    pub fn shortest_paths(
        &mut self,
        graph: &dyn Adjacency,
        sources: &[EntityId],
        targets: &[EntityId],
        direction: Direction,
        limits: &PathLimits,
    ) -> Result<PathSet> {
        let max_length = limits.max_length.min(MAX_LENGTH);
        let mut search = self.search(graph, direction, limits);
        let mut sides = [
            SearchSide::new(&mut search, 0, sources)?,
            SearchSide::new(&mut search, 1, targets)?,
        ];
        let mut meeting = sides[0].frontier.clone();
        meeting.retain(|&e| search.depth(e, 1).is_some());
        while meeting.is_empty() {
            if sides[0].depth + sides[1].depth >= max_length
                || sides.iter().any(|side| side.frontier.is_empty())
            {
                return Ok(PathSet::none(true));
            }
            let nearer = usize::from(sides[1].edges < sides[0].edges);
            meeting = sides[nearer].go_on(&mut search)?;
            if search.stopped {
                return Ok(PathSet::none(false));
            }
        }
        let layers = search.trace(&meeting, sides[0].depth, sides[1].depth)?;
        if search.stopped {
            return Ok(PathSet::none(false));
        }
        Ok(PathSet::from_layers(meeting, layers, true))
    }

    /// All shortest paths between each source and each target; see [`shortest_paths_by_pair`].
    pub fn shortest_paths_by_pair(
        &mut self,
        graph: &dyn Adjacency,
        sources: &[EntityId],
        targets: &[EntityId],
        direction: Direction,
        limits: &PathLimits,
    ) -> Result<Vec<(EntityId, EntityId, PathSet)>> {
        let mut pairs = Vec::new();
        for source in distinct(sources) {
            for target in distinct(targets) {
                let paths = self.shortest_paths(graph, &[source], &[target], direction, limits)?;
                if !paths.is_empty() || !paths.is_complete() {
                    pairs.push((source, target, paths));
                }
            }
        }
        Ok(pairs)
    }
}

/// Sorted, each once.
pub(super) fn distinct(entities: &[EntityId]) -> Vec<EntityId> {
    let mut entities = entities.to_vec();
    entities.sort_unstable();
    entities.dedup();
    entities
}

/// One of the two searches that go towards each other.
struct SearchSide {
    /// 0 from the sources, 1 from the targets.
    number: usize,
    depth: usize,
    frontier: Vec<EntityId>,
    /// How many edges the frontier has.
    edges: usize,
}

impl SearchSide {
    fn new(search: &mut PathSearch<'_>, number: usize, entities: &[EntityId]) -> Result<Self> {
        let frontier = distinct(entities);
        for &entity in &frontier {
            *search.mark(entity)? |= 1 << SHIFT[number];
        }
        let edges = search.edges_of(&frontier)?;
        Ok(SearchSide {
            number,
            depth: 0,
            frontier,
            edges,
        })
    }

    /// Goes one level further, and returns where it meets the other side.
    fn go_on(&mut self, search: &mut PathSearch<'_>) -> Result<Vec<EntityId>> {
        self.depth += 1;
        let (own, others) = (SHIFT[self.number], SHIFT[1 - self.number]);
        let seen = if self.number == 0 {
            SearchOrigin::FromStart
        } else {
            SearchOrigin::FromEnd
        };
        let mut next = Vec::new();
        let mut meeting = Vec::new();
        search.graph.prefetch(&self.frontier, Direction::Both)?;
        for &entity in &self.frontier {
            for (row, _) in search.rows(entity, seen)? {
                for edge in row.iter().filter(|e| !search.skip.contains(&e.relation)) {
                    let mark = search.finder.marks.entity(search.graph, edge.entity)?;
                    if *mark >> own & MASK != 0 {
                        continue;
                    }
                    if *mark == 0 {
                        search.finder.touched.push(edge.entity);
                    }
                    if *mark >> others & MASK != 0 {
                        meeting.push(edge.entity);
                    }
                    *mark |= (self.depth as u32 + 1) << own;
                    next.push(edge.entity);
                }
            }
            if search.stopped {
                break;
            }
        }
        self.frontier = next;
        // not needed once they meet
        if meeting.is_empty() {
            self.edges = search.edges_of(&self.frontier)?;
        }
        Ok(meeting)
    }
}

impl PathSearch<'_> {
    /// f (side 0) or b (side 1) of an entity.
    pub(super) fn depth(&self, entity: EntityId, side: usize) -> Option<usize> {
        (self.marked(entity) >> SHIFT[side] & MASK)
            .checked_sub(1)
            .map(|depth| depth as usize)
    }

    /// Sets f (side 0) or b (side 1) of an entity that has none.
    pub(super) fn set_depth(&mut self, entity: EntityId, side: usize, depth: usize) -> Result<()> {
        *self.mark(entity)? |= (depth as u32 + 1) << SHIFT[side];
        Ok(())
    }

    fn edges_of(&self, entities: &[EntityId]) -> Result<usize> {
        let mut edges = 0;
        self.graph.prefetch(entities, Direction::Both)?;
        for &entity in entities {
            edges += self.graph.degree(entity)?;
        }
        Ok(edges)
    }

    /// The steps at each position of all shortest paths through `meeting`, which lies `before`
    /// steps after the sources and `after` steps ahead of the targets.
    fn trace(
        &mut self,
        meeting: &[EntityId],
        before: usize,
        after: usize,
    ) -> Result<Vec<Vec<Step>>> {
        let mut layers = vec![Vec::new(); before + after];
        let mut here = meeting.to_vec();
        for depth in (0..before).rev() {
            let layer = self.steps_to_depth(&here, 0, depth)?;
            here = distinct(&layer.iter().map(Step::to).collect::<Vec<_>>());
            layers[depth] = layer.into_iter().map(Step::reversed).collect();
        }
        here = meeting.to_vec();
        for depth in (0..after).rev() {
            let layer = self.steps_to_depth(&here, 1, depth)?;
            here = distinct(&layer.iter().map(Step::to).collect::<Vec<_>>());
            layers[before + after - 1 - depth] = layer;
        }
        Ok(layers)
    }

    /// Steps from `here` to entities whose f or b is `depth`.
    fn steps_to_depth(
        &mut self,
        here: &[EntityId],
        side: usize,
        depth: usize,
    ) -> Result<Vec<Step>> {
        // f falls against the way of the paths, b along it
        let seen = if side == 0 {
            SearchOrigin::FromEnd
        } else {
            SearchOrigin::FromStart
        };
        let mut steps = Vec::new();
        for &entity in here {
            for (row, forward) in self.rows(entity, seen)? {
                for &edge in row.iter() {
                    if self.depth(edge.entity, side) == Some(depth) && !self.skips(edge.relation) {
                        steps.push(Step::new(entity, edge, forward));
                    }
                }
            }
        }
        Ok(steps)
    }
}
