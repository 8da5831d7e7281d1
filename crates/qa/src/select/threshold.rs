//! Selects every triple whose score is above a threshold.
//!
//! ```text
//! selection = sort({ t : s(t) > τ }, by s(t) descending), at most K_max
//! ```
//!
//! τ is `tau`, K_max `k_max`: QSRAG's ablation of its adaptive selection has τ from 0.0001 to 0.1.

use serde::{Deserialize, Serialize};

use super::{Selection, Selector, ranked};
use crate::error::{Error, Result};
use crate::retrieve::ScoredTriples;

/// Settings of [`Threshold`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThresholdConfig {
    /// τ: triples that score above it are selected.
    pub tau: f32,
    /// At most so many.
    pub k_max: usize,
}

impl Default for ThresholdConfig {
    fn default() -> Self {
        Self {
            tau: 0.01,
            k_max: 500,
        }
    }
}

impl ThresholdConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.tau) {
            return Err(Error::Config("`select.tau` must be from 0 to 1".into()));
        }
        if self.k_max == 0 {
            return Err(Error::Config("`select.k_max` must be at least 1".into()));
        }
        Ok(())
    }
}

/// Selects by a threshold.
#[derive(Clone, Debug, Default)]
pub struct Threshold {
    config: ThresholdConfig,
}

impl Threshold {
    /// A selector with these settings.
    pub fn new(config: ThresholdConfig) -> Self {
        Self { config }
    }
}

impl Selector for Threshold {
    fn select(&self, scored: &ScoredTriples) -> Result<Selection> {
        let mut kept = ranked(scored, self.config.tau);
        kept.truncate(self.config.k_max);
        Ok(Selection::of(scored, &kept))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::star;
    use super::*;

    #[test]
    fn what_scores_above_the_threshold_is_selected_best_first() {
        let select = |tau, k_max| {
            let selection = Threshold::new(ThresholdConfig { tau, k_max })
                .select(&star(&[0.1, 0.5, 0.1001, 0.0]))
                .unwrap();
            let scores: Vec<f32> = selection.triples.iter().map(|(_, score)| *score).collect();
            scores
        };
        assert_eq!(select(0.1, 9), [0.5, 0.1001]);
        assert_eq!(select(0.0, 9), [0.5, 0.1001, 0.1]);
        assert_eq!(select(0.0, 1), [0.5]);
        assert_eq!(select(0.5, 9), [0.0; 0]);
    }
}
