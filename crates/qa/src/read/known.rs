//! What is computed once for a graph, before any question.

use std::sync::Arc;

use wherefore_graph::Graph;
use wherefore_model::Encoder;

use super::groups::Groups;
use super::kept::LearnedPhrases;
use super::lang::english;
use super::learn::{Asked, Learning};
use super::near::Near;
use super::phrases::Phrases;
use super::schema::Schema;
use crate::error::Result;

/// Relations of a graph that are no longer few.
const MANY_RELATIONS: f32 = 200.0;

/// What a graph speaks of, made once for a graph.
#[derive(Debug)]
pub struct Known {
    pub(super) schema: Schema,
    pub(super) groups: Groups,
    pub(super) near: Near,
    pub(super) phrases: Phrases,
}

impl Known {
    /// Reads the graph's classes and relations; words that are none of theirs are compared with
    /// them by the encoder, and whole questions by the matcher, or with phrases that were learned
    /// for the graph.
    pub fn new(
        graph: &dyn Graph,
        encoder: Arc<dyn Encoder>,
        matcher: Arc<dyn Encoder>,
        learned: Option<&LearnedPhrases>,
    ) -> Result<Self> {
        let schema = Schema::new(graph, english())?;
        let groups = Groups::of(&schema, graph)?;
        let near = Near::new(graph, &schema, encoder)?;
        let phrases = Phrases::new(graph, &schema, matcher, learned)?;
        Ok(Self {
            schema,
            groups,
            near,
            phrases,
        })
    }

    /// Whether the graph's things have no classes.
    pub fn is_untyped(&self) -> bool {
        self.schema.is_untyped
    }

    /// How few relations the graph has: 1 for none, 0 from `MANY_RELATIONS` on. Among few ways the
    /// likeliest is more often the right one.
    pub fn fewness(&self) -> f32 {
        (1.0 - self.schema.relations.len() as f32 / MANY_RELATIONS).max(0.0)
    }

    /// Phrases of the graph's steps, learned from questions over it.
    pub fn learn(&self, asked: &[Asked], how: Learning) -> Result<LearnedPhrases> {
        self.phrases.learned(asked, how)
    }
}
