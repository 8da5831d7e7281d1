//! A question, and what ties it to the graph.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The longest question that is read.
pub const MAX_QUESTION_BYTES: usize = 8192;

/// A question as it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What the asker calls it; empty for a question typed by hand.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The words.
    pub text: String,
    /// Names of the entities it is about, where they are given (`--topic`, or a benchmark's gold
    /// topics). They win over linking.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// Which of the question's readings is meant, counted from 1; 0 where nobody said.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reading: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Question {
    /// A question without given topics.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// The same question about the given topics.
    #[must_use]
    pub fn about<S: Into<String>>(mut self, topics: impl IntoIterator<Item = S>) -> Self {
        self.topics = topics.into_iter().map(Into::into).collect();
        self
    }

    /// Refuses what cannot be a question: no letter or digit in it, or longer than
    /// [`MAX_QUESTION_BYTES`].
    pub fn check(&self) -> Result<()> {
        if self.text.len() > MAX_QUESTION_BYTES {
            return Err(Error::QuestionTooLong {
                length: self.text.len(),
                limit: MAX_QUESTION_BYTES,
            });
        }
        if !self.text.contains(char::is_alphanumeric) {
            return Err(Error::EmptyQuestion);
        }
        Ok(())
    }
}
