//! Relations that a word comes near to, by vectors of words.

use std::fmt;
use std::sync::Arc;

use wherefore_graph::{Graph, RelationId};
use wherefore_model::vector::dot;
use wherefore_model::{Embeddings, Encoder};

use super::schema::Schema;
use super::vocabulary::ClassIx;
use crate::error::Result;
use crate::retrieve::vectors::relation_vectors;
use crate::words::{opened, stem};

/// The least cosine at which a word may stand for a relation. Where things have classes, most of
/// what people ask for has a word.
const LEAST: f32 = 0.42;
const LEAST_TYPED: f32 = 0.62;
/// Relations that a word may stand for.
const MOST: usize = 3;

/// Letters of a word that may be misspelt, at least and at most.
const MISSPELT: usize = 7;
const MAX_WORD: usize = 24;

/// The labels of relations as vectors.
pub(super) struct Near {
    encoder: Arc<dyn Encoder>,
    rows: Embeddings,
    /// The labels of classes.
    classes: Embeddings,
}

impl fmt::Debug for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Near({})", self.encoder.name())
    }
}

impl Near {
    pub(super) fn new(
        graph: &dyn Graph,
        schema: &Schema,
        encoder: Arc<dyn Encoder>,
    ) -> Result<Self> {
        let rows = relation_vectors(graph, &*encoder)?;
        let labels = schema.classes.iter();
        let labels = labels.map(|c| Ok(opened(&graph.entity_label(c.entity)?)));
        let labels: Vec<String> = labels.collect::<Result<_>>()?;
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let classes = encoder.encode(&labels)?;
        Ok(Self {
            encoder,
            rows,
            classes,
        })
    }

    /// The classes that a word comes near to, the nearest first, each with its cosine.
    pub(super) fn classes(&self, word: &str) -> Result<Vec<(ClassIx, f32)>> {
        let word = self.encoder.encode(&[word])?;
        let cosines = (0..self.classes.len()).map(|id| dot(self.classes.row(id), word.row(0)));
        let mut found: Vec<(ClassIx, f32)> = (0..).zip(cosines).collect();
        found.retain(|(_, cosine)| *cosine >= LEAST_TYPED);
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(MOST);
        Ok(found)
    }

    /// Whether a word is one of the encoder's own, and not put together from pieces; a long word
    /// may have one wrong letter, or one too many.
    pub(super) fn knows(&self, word: &str) -> Result<bool> {
        if self.encoder.is_token(word)? {
            return Ok(true);
        }
        if !(MISSPELT..=MAX_WORD).contains(&word.len()) || !word.is_ascii() {
            return Ok(false);
        }
        for at in 0..word.len() {
            let (before, after) = (&word[..at], &word[at + 1..]);
            if self.encoder.is_token(&format!("{before}{after}"))? {
                return Ok(true);
            }
            for letter in 'a'..='z' {
                if self.encoder.is_token(&format!("{before}{letter}{after}"))? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a word, or what it is a form of, is one of English as it is written.
    pub(super) fn has(&self, word: &str) -> Result<bool> {
        Ok(self.encoder.is_token(word)? || self.encoder.is_token(&stem(word))?)
    }

    /// The cosine of a word with each relation.
    pub(super) fn cosines(&self, word: &str) -> Result<Vec<f32>> {
        let word = self.encoder.encode(&[word])?;
        let word = word.row(0);
        let rows = 0..self.rows.len();
        Ok(rows.map(|id| dot(self.rows.row(id), word)).collect())
    }

    /// The relations that a word comes near to, the nearest first, each with its cosine.
    pub(super) fn relations(&self, word: &str, schema: &Schema) -> Result<Vec<(RelationId, f32)>> {
        let least = if schema.is_untyped {
            LEAST
        } else {
            LEAST_TYPED
        };
        let mut found: Vec<(RelationId, f32)> = (0..)
            .map(RelationId)
            .zip(self.cosines(word)?)
            .filter(|(id, cosine)| *cosine >= least && !schema.relation(*id).is_silent)
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(MOST);
        Ok(found)
    }
}
