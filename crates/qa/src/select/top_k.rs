//! Selects the k triples with the best scores.
//!
//! ```text
//! selection = the first k of sort(triples with s(t) > 0, by s(t) descending)
//! ```
//!
//! k is `k`. Equal scores keep the order of the subgraph, which lists what is near the topics
//! first. A triple that scores 0 is never selected: nothing speaks for it.

use serde::{Deserialize, Serialize};

use super::{Selection, Selector, ranked};
use crate::error::{Error, Result};
use crate::retrieve::ScoredTriples;

/// Settings of [`TopK`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopKConfig {
    /// At most this many triples are selected.
    pub k: usize,
}

impl Default for TopKConfig {
    fn default() -> Self {
        Self { k: 5000 }
    }
}

impl TopKConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if self.k == 0 {
            return Err(Error::Config("`select.k` must be at least 1".into()));
        }
        Ok(())
    }
}

/// Selects the best triples.
#[derive(Clone, Debug, Default)]
pub struct TopK {
    config: TopKConfig,
}

impl TopK {
    /// A selector with these settings.
    pub fn new(config: TopKConfig) -> Self {
        Self { config }
    }
}

impl Selector for TopK {
    fn select(&self, scored: &ScoredTriples) -> Result<Selection> {
        let mut best = ranked(scored, 0.0);
        best.truncate(self.config.k);
        Ok(Selection::of(scored, &best))
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{EntityId, Subgraph, Triple};

    use super::*;

    fn scored() -> ScoredTriples {
        let triples = [
            Triple::new(10, 5, 20),
            Triple::new(20, 6, 30),
            Triple::new(10, 7, 40),
            Triple::new(10, 8, 50),
        ];
        ScoredTriples {
            subgraph: Subgraph::from_triples(&[EntityId(10)], &triples),
            topics: vec![EntityId(0)],
            triple_scores: vec![0.5, 0.9, 0.0, 0.5],
            // entities 10, 20, 30, 40, 50
            entity_scores: vec![0.0, 0.2, 0.9, 0.0, 0.5],
            notes: Vec::new(),
            ..ScoredTriples::default()
        }
    }

    #[test]
    fn the_best_come_first_and_zeros_never() {
        let selection = TopK::default().select(&scored()).unwrap();
        assert_eq!(
            selection.triples,
            [
                (Triple::new(20, 6, 30), 0.9),
                (Triple::new(10, 5, 20), 0.5),
                (Triple::new(10, 8, 50), 0.5),
            ]
        );
        assert_eq!(selection.topics, [EntityId(10)]);
        assert_eq!(
            selection.candidates,
            [
                (EntityId(30), 0.9),
                (EntityId(50), 0.5),
                (EntityId(20), 0.2)
            ]
        );
    }

    #[test]
    fn candidates_are_ends_of_what_was_selected() {
        let selection = TopK::new(TopKConfig { k: 1 }).select(&scored()).unwrap();
        assert_eq!(selection.triples.len(), 1);
        assert_eq!(
            selection.candidates,
            [(EntityId(30), 0.9), (EntityId(20), 0.2)]
        );
    }

    #[test]
    fn nothing_scored_is_nothing_selected() {
        let selection = TopK::default().select(&ScoredTriples::default()).unwrap();
        assert_eq!(selection, Selection::default());
    }
}
