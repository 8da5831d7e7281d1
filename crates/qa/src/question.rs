//! A question, and what ties it to the graph.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The longest question that is read.
pub const MAX_QUESTION_BYTES: usize = 8192;

/// A question as it was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// How many of the answers that are given are to be right, as a share: less sure ones are
    /// refused. 0 has all answered; none: answers that are more likely wrong than right are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f32>,
    /// How often the right reading is to be among those that are answered, as a share: as many are
    /// as that takes on this graph ([`crate::conformal`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f32>,
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
        for (name, value) in [("precision", self.precision), ("coverage", self.coverage)] {
            if let Some(value) = value.filter(|v| !(0.0..1.0).contains(v)) {
                return Err(Error::BadSetting {
                    name,
                    value: value.to_string(),
                    wanted: "a share from 0 to below 1",
                });
            }
        }
        Ok(())
    }
}
