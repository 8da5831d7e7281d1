//! How metrics are computed.

use serde::{Deserialize, Serialize};

use super::forms::squeezed;

/// How metrics are computed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The k of Triple Recall@k and Answer Recall@k.
    pub ks: Vec<usize>,
    /// Number of bootstrap resamples; 0 leaves the intervals out.
    pub resamples: usize,
    /// Seed of the resampling.
    pub seed: u64,
    /// The form in which logical forms are compared.
    #[serde(skip, default = "squeezed_form")]
    pub normal_form: fn(&str) -> String,
}

fn squeezed_form() -> fn(&str) -> String {
    squeezed
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ks: vec![50, 100, 200, 500],
            resamples: 1000,
            seed: 0,
            normal_form: squeezed,
        }
    }
}
