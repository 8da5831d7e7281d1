//! Grounding: where a sequence of relations leads, and by which triples.
//!
//! ```text
//! E₀ = starts,   Eᵢ = { v : u –rᵢ→ v, u ∈ Eᵢ₋₁ }        a hop that goes backward reads v –rᵢ→ u
//! ```
//!
//! The edges of one relation are found in a sorted row by binary search. An entity may come again
//! at a later position: a sequence is a walk, not a simple path.

use serde::{Deserialize, Serialize};

use super::path::Step;
use super::search::{PathFinder, PathLimits, PathSearch};
use super::set::PathSet;
use super::shortest::distinct;
use crate::error::{Error, Result};
use crate::graph::edges_by_relation;
use crate::graph::{Adjacency, Direction, EntityId, RelationId};

/// One relation of a sequence, and which way it is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hop {
    /// The relation.
    pub relation: RelationId,
    /// Whether it is walked from head to tail.
    pub forward: bool,
}

impl Hop {
    /// Whether it walks the relation of another hop the other way.
    pub fn undoes(&self, other: &Hop) -> bool {
        self.relation == other.relation && self.forward != other.forward
    }
}

/// Where a sequence of relations leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The entities at its end, sorted.
    pub entities: Vec<EntityId>,
    /// Whether these are all. If not, a limit struck.
    pub complete: bool,
}

/// The entities that a sequence of relations leads to. Of the limits, only those on edges and
/// time count: a relation that is named is walked.
///
/// ```
/// use wherefore_graph::{EntityId, Graph, Hop, PathLimits, reach, toy};
/// let graph = toy::graph();
/// let hop = |name, forward| Ok(Hop { relation: graph.relation_named(name)?.unwrap(), forward });
/// // what else did the winners of the World Series 2015 lose?
/// let series = graph.entities_named("World Series 2015", wherefore_graph::NameMatch::Exact)?;
/// let hops = [hop("won", false)?, hop("lost", true)?];
/// let reached = reach(&graph, &series, &hops, &PathLimits::default())?;
/// assert_eq!(graph.entity_label(reached.entities[0])?, "World Series 2014");
/// # Ok::<(), wherefore_graph::Error>(())
/// ```
pub fn reach(
    graph: &dyn Adjacency,
    starts: &[EntityId],
    hops: &[Hop],
    limits: &PathLimits,
) -> Result<Reached> {
    PathFinder::default().reach(graph, starts, hops, limits)
}

/// The paths that follow a sequence of relations to its end. Limits as for [`reach`].
pub fn ground(
    graph: &dyn Adjacency,
    starts: &[EntityId],
    hops: &[Hop],
    limits: &PathLimits,
) -> Result<PathSet> {
    PathFinder::default().ground(graph, starts, hops, limits)
}

impl PathFinder {
    /// The entities that a sequence of relations leads to; see [`reach`].
    pub fn reach(
        &mut self,
        graph: &dyn Adjacency,
        starts: &[EntityId],
        hops: &[Hop],
        limits: &PathLimits,
    ) -> Result<Reached> {
        let mut search = self.search(graph, Direction::Both, limits);
        let entities = search.follow(starts, hops, |_, _| ())?;
        Ok(Reached {
            entities,
            complete: !search.stopped,
        })
    }

    /// The paths that follow a sequence of relations; see [`ground`].
    pub fn ground(
        &mut self,
        graph: &dyn Adjacency,
        starts: &[EntityId],
        hops: &[Hop],
        limits: &PathLimits,
    ) -> Result<PathSet> {
        let mut layers = vec![Vec::new(); hops.len()];
        let mut search = self.search(graph, Direction::Both, limits);
        let mut alive =
            search.follow(starts, hops, |position, step| layers[position].push(step))?;
        if alive.is_empty() {
            return Ok(PathSet::none(!search.stopped));
        }
        // what leads no further is no path
        for layer in layers.iter_mut().rev() {
            layer.retain(|step| alive.binary_search(&step.to()).is_ok());
            alive = distinct(&layer.iter().map(Step::from).collect::<Vec<_>>());
        }
        Ok(PathSet::from_layers(alive, layers, !search.stopped))
    }
}

impl PathSearch<'_> {
    /// Walks the sequence, shows each step with its position, and returns where it leads.
    fn follow(
        &mut self,
        starts: &[EntityId],
        hops: &[Hop],
        mut show: impl FnMut(usize, Step),
    ) -> Result<Vec<EntityId>> {
        let bound = self.graph.relation_bound();
        for hop in hops {
            let id = hop.relation.0;
            if hop.relation.index() >= bound {
                return Err(Error::NoSuchRelation { id, bound });
            }
        }
        let mut here = distinct(starts);
        for &start in &here {
            self.mark(start)?;
        }
        for (position, hop) in hops.iter().enumerate() {
            let mut next = Vec::new();
            // beside an entity stands the last position it was reached at, + 1
            let stamp = position as u32 + 1;
            self.graph.prefetch(&here, Direction::along(hop.forward))?;
            for &entity in &here {
                let row = match hop.forward {
                    true => self.graph.outgoing(entity)?,
                    false => self.graph.incoming(entity)?,
                };
                let edges = edges_by_relation(&row, hop.relation);
                if !self.may_look_at(&row, edges.len()) {
                    break;
                }
                for &edge in edges {
                    show(position, Step::new(entity, edge, hop.forward));
                    let mark = self.mark(edge.entity)?;
                    if *mark != stamp {
                        *mark = stamp;
                        next.push(edge.entity);
                    }
                }
            }
            next.sort_unstable();
            here = next;
        }
        Ok(here)
    }
}
