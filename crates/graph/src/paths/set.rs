//! A set of paths as layers of steps: thousands of paths share a few steps.

use std::ops::Range;

use super::path::{Path, Step};
use crate::graph::{EntityId, Triple};

/// Many paths of one length in little room: what can be the first step, the second, and so on.
///
/// Every step listed lies on a path, so listing paths runs into no dead ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSet {
    /// Sorted, distinct.
    starts: Vec<EntityId>,
    /// Steps at each position, sorted by (where they begin, triple, forward).
    layers: Vec<Vec<Step>>,
    /// Whether the limits sufficed; otherwise there may be more paths, or shorter ones.
    complete: bool,
}

impl PathSet {
    pub(super) fn none(complete: bool) -> Self {
        PathSet {
            starts: Vec::new(),
            layers: Vec::new(),
            complete,
        }
    }

    /// Sorts the layers and takes the starts of the first, if there is one.
    pub(super) fn from_layers(
        starts: Vec<EntityId>,
        mut layers: Vec<Vec<Step>>,
        complete: bool,
    ) -> Self {
        for layer in &mut layers {
            layer.sort_unstable_by_key(|step| (step.from(), *step));
        }
        let mut starts = match layers.first() {
            Some(first) => first.iter().map(Step::from).collect(),
            None => starts,
        };
        starts.sort_unstable();
        starts.dedup();
        PathSet {
            starts,
            layers,
            complete,
        }
    }

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Whether the search came to its end within the limits. If not, paths may be missing.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Number of steps of each path; `None` without a path.
    pub fn length(&self) -> Option<usize> {
        (!self.is_empty()).then_some(self.layers.len())
    }

    /// Where paths begin, sorted.
    pub fn starts(&self) -> &[EntityId] {
        &self.starts
    }

    /// Where paths end, sorted.
    pub fn ends(&self) -> Vec<EntityId> {
        let Some(last) = self.layers.last() else {
            return self.starts.clone();
        };
        let mut ends: Vec<_> = last.iter().map(Step::to).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// The triples that lie on any path, sorted.
    pub fn triples(&self) -> Vec<Triple> {
        let mut triples: Vec<_> = self.layers.iter().flatten().map(|s| s.triple).collect();
        triples.sort_unstable();
        triples.dedup();
        triples
    }

    /// Number of paths, found without listing them; `u64::MAX` stands for more.
    pub fn count(&self) -> u64 {
        // ways to go on from each step, last position first
        let mut after: Vec<u64> = Vec::new();
        for (position, layer) in self.layers.iter().enumerate().rev() {
            after = layer
                .iter()
                .map(|step| match self.layers.get(position + 1) {
                    None => 1,
                    Some(_) => after[self.range(position + 1, step.to())]
                        .iter()
                        .fold(0u64, |sum, &n| sum.saturating_add(n)),
                })
                .collect();
        }
        if self.layers.is_empty() {
            return self.starts.len() as u64;
        }
        after.iter().fold(0u64, |sum, &n| sum.saturating_add(n))
    }

    /// The first `limit` paths, by start, then step by step.
    pub fn paths(&self, limit: usize) -> Vec<Path> {
        let mut paths = Vec::new();
        let mut steps: Vec<Step> = Vec::with_capacity(self.layers.len());
        let mut open: Vec<Range<usize>> = Vec::with_capacity(self.layers.len());
        for &start in &self.starts {
            if paths.len() >= limit {
                break;
            }
            if self.layers.is_empty() {
                paths.push(Path {
                    start,
                    steps: Vec::new(),
                });
                continue;
            }
            open.push(self.range(0, start));
            while let Some(range) = open.last_mut() {
                let Some(next) = range.next().filter(|_| paths.len() < limit) else {
                    open.pop();
                    steps.pop();
                    continue;
                };
                let step = self.layers[open.len() - 1][next];
                steps.push(step);
                if steps.len() < self.layers.len() {
                    open.push(self.range(steps.len(), step.to()));
                } else {
                    paths.push(Path {
                        start,
                        steps: steps.clone(),
                    });
                    steps.pop();
                }
            }
        }
        paths
    }

    /// The steps at a position that begin at an entity.
    fn range(&self, position: usize, entity: EntityId) -> Range<usize> {
        let layer = &self.layers[position];
        let from = layer.partition_point(|s| s.from() < entity);
        from..from + layer[from..].partition_point(|s| s.from() == entity)
    }
}
