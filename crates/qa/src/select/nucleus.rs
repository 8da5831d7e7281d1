//! Selects as many triples as the scores call for.
//!
//! QSRAG (Xu, Guo, Zhang and Fu), Algorithm 1:
//!
//! ```text
//! C   = { i : σ(l_i) > τ_P }                          nothing is selected where C is empty
//! p_i = e^{l_i} / Σ_{j ∈ C} e^{l_j}                   sorted, highest first
//! k_A = the least k with p_1 + … + p_k > τ_A          all of C where there is none
//! k   = min(max(k_A, K_min), K_max, |C|)
//! ```
//!
//! l is the logit of a triple; a score s within 0 and 1 has the logit ln(s / (1 − s)), so that
//! p_i are the odds, made to sum to 1. τ_P is `tau_p`, τ_A `tau_a`, K_min and K_max `k_min` and
//! `k_max`. Scores of 1, of which the odds have no end, count as the number below it in 32 bits.

use serde::{Deserialize, Serialize};

use super::{Selection, Selector, ranked};
use crate::error::{Error, Result};
use crate::retrieve::ScoredTriples;

/// Settings of [`Nucleus`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NucleusConfig {
    /// τ_P: triples that do not score above it are left out.
    pub tau_p: f32,
    /// τ_A: the share of the odds that the selected ones are to have.
    pub tau_a: f32,
    /// K_min: at least so many, as far as there are.
    pub k_min: usize,
    /// K_max: at most so many.
    pub k_max: usize,
}

impl Default for NucleusConfig {
    /// τ_A, K_min and K_max are the paper's main setting (its appendix has 300 for K_max); τ_P is the
    /// least of the thresholds that it compares, from 0.0001 to 0.1.
    fn default() -> Self {
        Self {
            tau_p: 1e-4,
            tau_a: 0.9,
            k_min: 50,
            k_max: 200,
        }
    }
}

impl NucleusConfig {
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [("tau_p", self.tau_p), ("tau_a", self.tau_a)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::Config(format!(
                    "`select.{name}` must be from 0 to 1"
                )));
            }
        }
        if self.k_max == 0 || self.k_min > self.k_max {
            return Err(Error::Config(
                "`select.k_max` must be at least 1 and no less than `select.k_min`".into(),
            ));
        }
        Ok(())
    }
}

/// Selects by the mass of the best.
#[derive(Clone, Debug, Default)]
pub struct Nucleus {
    config: NucleusConfig,
}

impl Nucleus {
    /// A selector with these settings.
    pub fn new(config: NucleusConfig) -> Self {
        Self { config }
    }
}

impl Selector for Nucleus {
    fn select(&self, scored: &ScoredTriples) -> Result<Selection> {
        let NucleusConfig {
            tau_p,
            tau_a,
            k_min,
            k_max,
        } = self.config;
        let kept = ranked(scored, tau_p);
        let odds = |i: &usize| {
            let score = f64::from(scored.triple_scores[*i].min(1.0 - f32::EPSILON / 2.0));
            score / (1.0 - score)
        };
        let all: f64 = kept.iter().map(odds).sum();
        let mut mass = 0.0;
        let reached = kept.iter().position(|i| {
            mass += odds(i);
            mass > f64::from(tau_a) * all
        });
        let enough = reached.map_or(kept.len(), |place| place + 1);
        let k = enough.max(k_min).min(k_max).min(kept.len());
        Ok(Selection::of(scored, &kept[..k]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::star;
    use super::*;

    fn count(scores: &[f32], config: NucleusConfig) -> usize {
        let selection = Nucleus::new(config).select(&star(scores)).unwrap();
        selection.triples.len()
    }

    fn config(tau_p: f32, tau_a: f32, k_min: usize, k_max: usize) -> NucleusConfig {
        NucleusConfig {
            tau_p,
            tau_a,
            k_min,
            k_max,
        }
    }

    #[test]
    fn the_mass_of_the_best_decides_within_the_bounds() {
        // odds 4, 1, 0.25, 0.25: shares 8/11, 2/11, ½/11, ½/11
        let scores = [0.8, 0.5, 0.2, 0.2];
        assert_eq!(count(&scores, config(0.0, 0.70, 0, 9)), 1);
        assert_eq!(count(&scores, config(0.0, 0.90, 0, 9)), 2); // 10/11 > 0.9
        assert_eq!(count(&scores, config(0.0, 0.93, 0, 9)), 3);
        assert_eq!(count(&scores, config(0.0, 0.70, 3, 9)), 3);
        assert_eq!(count(&scores, config(0.0, 0.93, 0, 2)), 2);
        assert_eq!(count(&scores, config(0.0, 1.0, 0, 9)), 4); // never more than all
    }

    #[test]
    fn triples_below_the_threshold_never_count() {
        let scores = [0.8, 0.5, 0.2, 0.2];
        assert_eq!(count(&scores, config(0.2, 1.0, 4, 9)), 2);
        assert_eq!(count(&scores, config(0.9, 0.5, 4, 9)), 0);
        assert_eq!(count(&[], config(0.0, 0.5, 4, 9)), 0);
        // certainty has no end of odds
        assert_eq!(count(&[1.0, 1.0, 0.5], config(0.0, 0.6, 0, 9)), 2);
    }

    #[test]
    fn the_published_settings_take_50_to_200() {
        let many: Vec<f32> = (0..400).map(|i| 0.9 - i as f32 / 1000.0).collect();
        let one: Vec<f32> = (0..400)
            .map(|i| if i == 0 { 0.999 } else { 0.001 })
            .collect();
        assert_eq!(count(&many, NucleusConfig::default()), 200);
        assert_eq!(count(&one, NucleusConfig::default()), 50);
        assert!(config(0.0, 1.5, 1, 2).check().is_err());
        assert!(config(0.0, 0.5, 3, 2).check().is_err());
    }
}
