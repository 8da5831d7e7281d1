//! All simple paths between two entities, up to a length.
//!
//! ```text
//! b(v) = steps from v to the target;   after i steps, v is entered only if i + b(v) ≤ L
//! ```
//!
//! To know b where it matters without walking L steps back from the target, half of the way is
//! searched from each end: b is known up to ⌊L/2⌋ from the target's side, and the few entities
//! that a path may visit before that lie within L − ⌊L/2⌋ − 1 steps of the source, where b
//! follows from b(u) = 1 + min b(v) over the steps u → v. A walk from the source then meets dead
//! ends only where every way on crosses the path itself. Paths come shortest first: the walk is
//! made once for each length.

use super::path::{Path, Step};
use super::search::{PathFinder, PathLimits, PathSearch, Row, SearchOrigin};
use super::shortest::MAX_LENGTH;
use crate::error::Result;
use crate::graph::{Adjacency, Direction, EntityId};

/// What [`simple_paths`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimplePaths {
    /// The paths, shortest first.
    pub paths: Vec<Path>,
    /// Whether these are all. If not, a limit struck.
    pub complete: bool,
}

/// All paths from `source` to `target` that visit no entity twice, shortest first, at most
/// `max_paths`. From an entity to itself there is one, without steps.
///
/// ```
/// use wherefore_graph::{Direction, EntityId, PathLimits, simple_paths, toy};
/// let graph = toy::graph();
/// let (giants, san_francisco) = (EntityId(1), EntityId(3));
/// let limits = PathLimits::default();
/// let found = simple_paths(&graph, giants, san_francisco, Direction::Outgoing, &limits, 100)?;
/// assert!(found.complete);
/// assert_eq!(found.paths.len(), 2); // located_in; plays_in, located_in
/// assert_eq!(found.paths[1].steps.len(), 2);
/// # Ok::<(), wherefore_graph::Error>(())
/// ```
pub fn simple_paths(
    graph: &dyn Adjacency,
    source: EntityId,
    target: EntityId,
    direction: Direction,
    limits: &PathLimits,
    max_paths: usize,
) -> Result<SimplePaths> {
    PathFinder::default().simple_paths(graph, source, target, direction, limits, max_paths)
}

impl PathFinder {
    /// All simple paths between two entities; see [`simple_paths`].
    pub fn simple_paths(
        &mut self,
        graph: &dyn Adjacency,
        source: EntityId,
        target: EntityId,
        direction: Direction,
        limits: &PathLimits,
        max_paths: usize,
    ) -> Result<SimplePaths> {
        let max_length = limits.max_length.min(MAX_LENGTH);
        let mut search = self.search(graph, direction, limits);
        search.measure(source, target, max_length)?;
        let mut paths = Vec::new();
        let mut complete = true;
        if source == target {
            paths.push(Path {
                start: source,
                steps: Vec::new(),
            });
        } else if let Some(shortest) = search.depth(source, 1)
            && !search.stopped
        {
            let last_steps = search.last_steps(target)?;
            for length in shortest..=max_length {
                let from = paths.len();
                search.walk(source, target, length, &last_steps, max_paths, &mut paths)?;
                // the walk goes by row; people expect an order that they can follow
                paths[from..].sort_unstable();
            }
        }
        if paths.len() > max_paths {
            paths.truncate(max_paths);
            complete = false;
        }
        complete &= !search.stopped;
        Ok(SimplePaths { paths, complete })
    }
}

/// An entity on the path whose steps are being tried.
struct SearchFrame<'a> {
    rows: [(Row<'a>, bool); 2],
    row: usize,
    next: usize,
}

impl SearchFrame<'_> {
    fn next_step(&mut self, from: EntityId) -> Option<Step> {
        while let Some((row, forward)) = self.rows.get(self.row) {
            if let Some(&edge) = row.get(self.next) {
                self.next += 1;
                return Some(Step::new(from, edge, *forward));
            }
            self.row += 1;
            self.next = 0;
        }
        None
    }
}

impl PathSearch<'_> {
    /// Finds b wherever a path of at most `length` steps may pass.
    fn measure(&mut self, source: EntityId, target: EntityId, length: usize) -> Result<()> {
        self.ball(target, 1, length / 2)?;
        let ball = self.ball(source, 0, (length - length / 2).saturating_sub(1))?;
        for b in length / 2 + 1..=length {
            for &entity in &ball {
                let near = self.depth(entity, 0).is_some_and(|f| f + b <= length);
                if !near || self.depth(entity, 1).is_some() {
                    continue;
                }
                let rows = self.rows(entity, SearchOrigin::FromStart)?;
                let leads_on = rows.iter().flat_map(|(row, _)| row.iter()).any(|edge| {
                    self.depth(edge.entity, 1) == Some(b - 1) && !self.skips(edge.relation)
                });
                if leads_on {
                    self.set_depth(entity, 1, b)?;
                }
            }
        }
        Ok(())
    }

    /// Sets the depth of all entities within `radius` steps, and returns them.
    fn ball(&mut self, centre: EntityId, side: usize, radius: usize) -> Result<Vec<EntityId>> {
        let seen = if side == 0 {
            SearchOrigin::FromStart
        } else {
            SearchOrigin::FromEnd
        };
        self.set_depth(centre, side, 0)?;
        let mut ball = vec![centre];
        let mut level = 0..1;
        for depth in 1..=radius {
            for i in level.clone() {
                for (row, _) in self.rows(ball[i], seen)? {
                    for edge in row.iter().filter(|e| !self.skip.contains(&e.relation)) {
                        if self.depth(edge.entity, side).is_none() {
                            self.set_depth(edge.entity, side, depth)?;
                            ball.push(edge.entity);
                        }
                    }
                }
            }
            level = level.end..ball.len();
            if level.is_empty() || self.stopped {
                break;
            }
        }
        Ok(ball)
    }

    /// The steps that lead into the target, sorted by where they begin.
    fn last_steps(&mut self, target: EntityId) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        for (row, forward) in self.rows(target, SearchOrigin::FromEnd)? {
            for &edge in row.iter().filter(|e| !self.skips(e.relation)) {
                steps.push(Step::new(target, edge, forward).reversed());
            }
        }
        steps.sort_unstable_by_key(|step| (step.from(), *step));
        Ok(steps)
    }

    /// Adds the paths of exactly `length` steps, until there is one more than `max_paths`.
    fn walk(
        &mut self,
        source: EntityId,
        target: EntityId,
        length: usize,
        last_steps: &[Step],
        max_paths: usize,
        paths: &mut Vec<Path>,
    ) -> Result<()> {
        let mut steps: Vec<Step> = Vec::new();
        let mut open: Vec<SearchFrame<'_>> = Vec::new();
        let mut here = source;
        loop {
            if steps.len() + 1 == length {
                let from = last_steps.partition_point(|s| s.from() < here);
                for &last in last_steps[from..].iter().take_while(|s| s.from() == here) {
                    if paths.len() > max_paths {
                        return Ok(());
                    }
                    let mut all = Vec::with_capacity(length);
                    all.extend_from_slice(&steps);
                    all.push(last);
                    paths.push(Path {
                        start: source,
                        steps: all,
                    });
                }
                if steps.pop().is_none() {
                    return Ok(());
                }
            } else {
                open.push(SearchFrame {
                    rows: self.rows(here, SearchOrigin::FromStart)?,
                    row: 0,
                    next: 0,
                });
            }
            // the next step that can lead to the target in time, from the deepest entity that has one
            loop {
                let Some(deepest) = open.last_mut() else {
                    return Ok(());
                };
                let from = steps.last().map_or(source, Step::to);
                let taken = steps.len() + 1;
                let next = std::iter::from_fn(|| deepest.next_step(from)).find(|step| {
                    let to = step.to();
                    to != target
                        && to != source
                        && self.depth(to, 1).is_some_and(|b| taken + b <= length)
                        && !steps.iter().any(|s| s.to() == to)
                        && !self.skips(step.triple.relation)
                });
                if let Some(step) = next {
                    steps.push(step);
                    here = step.to();
                    break;
                }
                open.pop();
                if steps.pop().is_none() {
                    return Ok(());
                }
            }
            if self.stopped || paths.len() > max_paths {
                return Ok(());
            }
        }
    }
}
