//! What was found around the topics of a question.

use wherefore_model::gnn2r::Near;

use super::sentences::Sentence;
use super::trails::Trail;
use crate::retrieve::neighbourhood::Neighbourhood;

/// What was found around the topics of a question.
pub struct Explored {
    /// What was looked at.
    pub around: Neighbourhood,
    /// How near each of its entities is.
    pub near: Near,
    /// Local ids of the candidates, nearest first.
    pub candidates: Vec<u32>,
    /// All ways between topics and candidates.
    pub trails: Vec<Trail>,
    /// What they say.
    pub sentences: Vec<Sentence>,
    /// What had to be left out.
    pub notes: Vec<String>,
    pub(super) named: Vec<bool>,
    pub(super) phases: Vec<(&'static str, f64)>,
}
