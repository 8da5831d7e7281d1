//! Questions with what was retrieved for them, as tokens.

use std::collections::HashMap;

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use super::{Ablation, Aspect, Base, Config};
use crate::Result;

/// What a form is written from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asking {
    /// The question.
    pub question: String,
    /// Retrieved texts by aspect, best first, in the order of [`Aspect::ALL`].
    pub texts: [Vec<String>; 3],
}

/// Questions as tokens; every text is read once, however many questions it was retrieved for.
pub struct Prepared {
    pub(super) asked: Vec<Asked>,
    /// Mean embedding of each text, `[texts, width]`.
    pub(super) means: Tensor,
}

/// One question.
pub(super) struct Asked {
    /// Rows among the texts, by aspect.
    pub(super) texts: [Vec<u32>; 3],
    /// The question's tokens, in the context prompt with the texts before it.
    pub(super) question: Vec<u32>,
    /// What is to be written, with the end; empty where it is not known.
    pub(super) target: Vec<u32>,
}

impl Prepared {
    /// Reads questions, and what is to be written for each, where that is known. At most
    /// `context_tokens` of the texts stand in a context prompt.
    pub fn new(
        base: &Base,
        config: &Config,
        asking: &[Asking],
        targets: &[String],
        context_tokens: usize,
    ) -> Result<Self> {
        let in_context = config.lacks(Ablation::ContextPrompt);
        let mut rows: HashMap<String, u32> = HashMap::new();
        let mut texts: Vec<Vec<u32>> = Vec::new();
        let mut asked = Vec::with_capacity(asking.len());
        for (i, asking) in asking.iter().enumerate() {
            let mut question = Vec::new();
            let mut own: [Vec<u32>; 3] = Default::default();
            for (aspect, found) in Aspect::ALL.into_iter().zip(&asking.texts) {
                if !config.has(aspect) || found.is_empty() {
                    continue;
                }
                if in_context {
                    let text = format!("{}: {}\n", aspect.name(), found.join("; "));
                    question.extend(base.tokens(&text)?);
                    continue;
                }
                for text in found {
                    let row = match rows.get(text) {
                        Some(row) => *row,
                        None => {
                            let row = texts.len() as u32;
                            texts.push(base.tokens(text)?);
                            rows.insert(text.clone(), row);
                            row
                        }
                    };
                    own[aspect as usize].push(row);
                }
            }
            question.truncate(context_tokens);
            question.extend(base.tokens(&format!("question: {}\nform:", asking.question))?);
            let mut target = Vec::new();
            if let Some(text) = targets.get(i) {
                target = base.tokens(text)?;
                target.push(base.end());
            }
            asked.push(Asked {
                texts: own,
                question,
                target,
            });
        }
        Ok(Self {
            asked,
            means: base.means(&texts)?,
        })
    }

    /// How many questions there are.
    pub fn len(&self) -> usize {
        self.asked.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Tokens that question `i` takes in the prompt and in what is to be written.
    pub fn tokens(&self, i: usize, config: &Config) -> usize {
        let asked = &self.asked[i];
        let texts: usize = asked.texts.iter().map(Vec::len).sum();
        config.soft_prompt + texts + asked.question.len() + asked.target.len()
    }
}
