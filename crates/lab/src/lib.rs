//! The lab: benchmark questions, weak supervision, metrics, and the scoring of any system's answers.
//!
//! ```text
//! questions::read ─► GoldQuestion ─┬─► supervise (positive triples)
//!                                  └─► metrics::evaluate(gold, Observation) ─► Metrics
//! score::read_predictions ──────────────────────────────────┘
//! ```

pub mod adapt;
pub mod aspects;
pub mod atomic_write;
pub mod calibrate;
pub mod conformal;
pub mod draft;
mod each;
mod error;
pub mod forms;
pub mod harness;
pub mod label;
pub mod linking;
pub mod metrics;
pub mod outcome;
pub mod questions;
pub mod report;
pub mod score;
pub mod supervise;
pub mod sweep;
pub mod train;
mod wording;
pub mod written;

pub use error::{Error, Result};
pub use metrics::Metrics;
pub use questions::GoldQuestion;
