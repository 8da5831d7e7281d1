//! Marks of a walk on entities and relations: dense arrays that are reset only where written.
//!
//! Zeroed memory of the operating system costs nothing until it is touched, so one number per
//! entity of a huge graph is cheap as long as a walk stays local and the array is kept.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::graph::{Adjacency, Edge, EntityId, RelationId};

/// One number per id, 0 by default. Callers [`wipe`](Self::wipe) what they wrote.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    numbers: Vec<u32>,
}

impl Marks {
    /// The number beside an entity.
    #[inline]
    pub(crate) fn entity(&mut self, graph: &dyn Adjacency, id: EntityId) -> Result<&mut u32> {
        let i = id.index();
        if i >= self.numbers.len() {
            let bound = graph.entity_bound();
            if i >= bound {
                return Err(Error::NoSuchEntity { id: id.0, bound });
            }
            self.grow(bound);
        }
        Ok(&mut self.numbers[i])
    }

    /// The number beside a relation.
    #[inline]
    pub(crate) fn relation(&mut self, graph: &dyn Adjacency, id: RelationId) -> Result<&mut u32> {
        let i = id.index();
        if i >= self.numbers.len() {
            let bound = graph.relation_bound();
            if i >= bound {
                return Err(Error::NoSuchRelation { id: id.0, bound });
            }
            self.grow(bound);
        }
        Ok(&mut self.numbers[i])
    }

    /// The number beside an id, 0 where none was ever written.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> u32 {
        self.numbers.get(index).copied().unwrap_or(0)
    }

    /// Sets the numbers of these ids back to 0.
    pub(crate) fn wipe(&mut self, touched: impl IntoIterator<Item = usize>) {
        for i in touched {
            if let Some(number) = self.numbers.get_mut(i) {
                *number = 0;
            }
        }
    }

    /// Graphs may grow while they are walked: a remote one learns its ids on the way.
    #[cold]
    fn grow(&mut self, bound: usize) {
        let mut grown = vec![0; bound];
        grown[..self.numbers.len()].copy_from_slice(&self.numbers);
        self.numbers = grown;
    }
}

/// A time limit that reads the clock only once in a few thousand edges.
#[derive(Debug)]
pub(crate) struct Clock {
    end: Option<Instant>,
    unchecked: usize,
}

impl Clock {
    /// Edges until the clock is read again.
    pub(crate) const STRIDE: usize = 4096;

    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self {
            end: limit.and_then(|limit| Instant::now().checked_add(limit)),
            unchecked: Self::STRIDE,
        }
    }

    /// Whether the time limit is exceeded, after `edges` more edges.
    #[inline]
    pub(crate) fn is_over(&mut self, edges: usize) -> bool {
        let Some(end) = self.end else { return false };
        self.unchecked += edges;
        if self.unchecked < Self::STRIDE {
            return false;
        }
        self.unchecked = 0;
        Instant::now() >= end
    }
}

/// The cost of reading a row, in edges: owned rows were fetched or decoded.
#[expect(
    clippy::ptr_arg,
    reason = "whether the row is borrowed is the question"
)]
pub(crate) fn reading_cost(row: &Cow<'_, [Edge]>) -> usize {
    match row {
        Cow::Borrowed(_) => 1,
        Cow::Owned(_) => Clock::STRIDE,
    }
}

/// Time limits in configuration files: whole milliseconds.
pub(crate) mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        limit: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        limit
            .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
            .serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}
