//! A question, and what ties it to the graph.

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Status};
use crate::error::{Error, Result};

/// The longest question that is read.
pub const MAX_QUESTION_BYTES: usize = 8192;

/// The most answers that are carried over from one question to the next.
pub const MAX_CARRIED: usize = 100;

/// What a question follows: the question before it, and what was answered. Whoever asks says so,
/// and nothing of it is believed: names are looked up in the graph, and the form is only run within
/// the limits of the question itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    /// The words of the last question.
    pub question: String,
    /// Its logical form, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_form: Option<String>,
    /// Its answers; the first [`MAX_CARRIED`] are read.
    #[serde(default)]
    pub answers: Vec<Carried>,
}

/// An answer that is carried over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Its identity in the graph.
    pub id: String,
    /// Its label.
    #[serde(default)]
    pub name: String,
}

impl Follow {
    /// What a question after this answer follows; none where nothing was answered.
    pub fn of(answer: &Answer) -> Option<Self> {
        let carried = answer.answers.iter().take(MAX_CARRIED).map(|a| Carried {
            id: a.id.clone(),
            name: a.name.clone(),
        });
        (answer.status == Status::Answered).then(|| Self {
            question: answer.question.clone(),
            logical_form: answer.logical_form.clone(),
            answers: carried.collect(),
        })
    }
}

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
    /// The question before it in a conversation: what it leaves out is read from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<Follow>,
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

    /// The same question after another.
    #[must_use]
    pub fn after(mut self, follow: Option<Follow>) -> Self {
        self.follow = follow;
        self
    }

    /// Refuses what cannot be a question: no letter or digit in it, or longer than
    /// [`MAX_QUESTION_BYTES`].
    pub fn check(&self) -> Result<()> {
        let last = self.follow.as_ref().map(|follow| &follow.question);
        for text in [Some(&self.text), last].into_iter().flatten() {
            if text.len() > MAX_QUESTION_BYTES {
                return Err(Error::QuestionTooLong {
                    length: text.len(),
                    limit: MAX_QUESTION_BYTES,
                });
            }
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
