//! What language models may cost for one question, and what they did cost.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wherefore_model::LanguageModel;
use wherefore_model::language::{Completion, Decoding, Finish, Prompt};

use crate::answer::LlmUse;
use crate::error::{Error, Result};
use crate::organize::ContextLine;

/// Limits for one question; none where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// Tokens read and written, over all calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Milliseconds, over all calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
}

/// Tokens that a chat template adds around messages, at most.
pub(super) const TEMPLATE_TOKENS: usize = 64;

/// How many lines, from the first, have at most `room` tokens together.
pub(super) fn lines_that_fit(
    model: &dyn LanguageModel,
    lines: &[ContextLine],
    mut room: usize,
) -> Result<usize> {
    for (shown, line) in lines.iter().enumerate() {
        // one more for the end of the line
        match room.checked_sub(model.count_tokens(&line.text)? + 1) {
            Some(rest) => room = rest,
            None => return Ok(shown),
        }
    }
    Ok(lines.len())
}

/// Makes calls and keeps to a budget.
pub(crate) struct Meter<'a> {
    model: &'a dyn LanguageModel,
    budget: Budget,
    begun: Instant,
    pub(crate) used: LlmUse,
    /// What had to be left out or broken off, in words for the user.
    pub(crate) notes: Vec<String>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(model: &'a dyn LanguageModel, budget: Budget) -> Self {
        Self {
            model,
            budget,
            begun: Instant::now(),
            used: LlmUse::default(),
            notes: Vec::new(),
        }
    }

    /// Why there can be no other call.
    pub(crate) fn spent(&self) -> Option<String> {
        if self
            .budget
            .max_calls
            .is_some_and(|most| self.used.calls >= most)
        {
            return Some("the budget allows no further call of the language model".into());
        }
        if self.time_left().is_some_and(|left| left.is_zero()) {
            return Some("the budget allows no more time for the language model".into());
        }
        None
    }

    fn time_left(&self) -> Option<Duration> {
        let most = Duration::from_millis(self.budget.max_ms?);
        Some(most.saturating_sub(self.begun.elapsed()))
    }

    /// Tokens that a prompt and its completion may still have.
    pub(crate) fn tokens_left(&self) -> usize {
        let used = self.used.prompt_tokens + self.used.completion_tokens;
        let left = self.budget.max_tokens.map(|most| most.saturating_sub(used));
        let left = left.map_or(usize::MAX, |left| {
            usize::try_from(left).unwrap_or(usize::MAX)
        });
        left.min(self.model.context())
    }

    /// Makes a call; none where its time was over before anything came.
    pub(crate) fn complete(&mut self, prompt: &Prompt, decoding: &Decoding) -> Result<Completion> {
        let decoding = Decoding {
            time_limit: self.time_left(),
            ..decoding.clone()
        };
        let mut watch = |_: wherefore_model::language::Progress<'_>| ControlFlow::Continue(());
        let completion = self.model.complete(prompt, &decoding, &mut watch)?;
        self.used.calls += 1;
        self.used.cached += u32::from(completion.cached);
        self.used.prompt_tokens += completion.prompt_tokens as u64;
        self.used.completion_tokens += completion.completion_tokens as u64;
        match completion.finish {
            Finish::Stop => {}
            Finish::Length => self.notes.push(format!(
                "the language model was cut off after {} tokens",
                completion.completion_tokens
            )),
            Finish::Stopped => self.notes.push(format!(
                "the language model was stopped after {} ms",
                self.begun.elapsed().as_millis()
            )),
        }
        Ok(completion)
    }
}

impl Budget {
    pub(crate) fn check(&self) -> Result<()> {
        if self.max_ms == Some(0) || self.max_tokens == Some(0) {
            return Err(Error::Config(
                "`reason.budget` must allow at least one token and one millisecond".into(),
            ));
        }
        Ok(())
    }
}
