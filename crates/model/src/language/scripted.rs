//! Completions from a file, for tests and replay; and the wrapper that writes such a file.
//!
//! JSON lines. A line answers the prompt that it holds whole, or any prompt with the words in
//! `contains`, or, with neither, any prompt; the first line that fits is taken.
//!
//! ```json
//! {"contains": "mascot of the Giants", "text": "ans: Lou Seal"}
//! {"prompt": {"chat": [{"role": "user", "content": "Who?"}]}, "text": "ans: Lou Seal"}
//! {"text": "ans: not available"}
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Completion, Decoding, Finish, LanguageModel, Progress, Prompt, Watch};
use crate::{Error, Result};

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<Prompt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contains: Option<String>,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completion_tokens: Option<usize>,
}

impl Line {
    fn fits(&self, prompt: &Prompt, text: &str) -> bool {
        self.prompt.as_ref().is_none_or(|p| p == prompt)
            && self.contains.as_ref().is_none_or(|c| text.contains(c))
    }
}

/// Says what a file says. Tokens are words.
#[derive(Clone, Debug)]
pub struct Scripted {
    path: PathBuf,
    identity: String,
    context: usize,
    lines: Vec<Line>,
}

impl Scripted {
    /// Reads a script.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
        Self::parse(&text, path)
    }

    /// Takes a script's text; `path` is what errors call it.
    pub fn parse(text: &str, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let mut lines = Vec::new();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            lines.push(serde_json::from_str(line).map_err(|e| Error::BadScript {
                path: path.clone(),
                reason: format!("line {}: {e}", i + 1),
            })?);
        }
        let hash = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
        Ok(Self {
            identity: format!("script:{hash:032x}"),
            path,
            context: 8192,
            lines,
        })
    }

    /// The same script with another context, for tests of what does not fit.
    #[must_use]
    pub fn with_context(mut self, tokens: usize) -> Self {
        self.context = tokens;
        self
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

impl LanguageModel for Scripted {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn context(&self) -> usize {
        self.context
    }

    fn count_tokens(&self, text: &str) -> Result<usize> {
        Ok(words(text))
    }

    fn complete(
        &self,
        prompt: &Prompt,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> Result<Completion> {
        decoding.check()?;
        let text = prompt.text();
        let prompt_tokens = words(&text);
        if prompt_tokens > self.context {
            return Err(Error::PromptTooLong {
                tokens: prompt_tokens,
                context: self.context,
            });
        }
        let line = self
            .lines
            .iter()
            .find(|line| line.fits(prompt, &text))
            .ok_or_else(|| Error::BadScript {
                path: self.path.clone(),
                reason: "no line of it fits the prompt".into(),
            })?;
        let mut completion = Completion {
            text: String::new(),
            prompt_tokens: line.prompt_tokens.unwrap_or(prompt_tokens),
            completion_tokens: 0,
            finish: Finish::Stop,
            cached: false,
        };
        for word in line.text.split_inclusive(char::is_whitespace) {
            if completion.completion_tokens == decoding.max_tokens {
                completion.finish = Finish::Length;
                break;
            }
            completion.text += word;
            completion.completion_tokens += 1;
            if watch(Progress::Text(word)) == ControlFlow::Break(()) {
                completion.finish = Finish::Stopped;
                break;
            }
        }
        if completion.finish == Finish::Stop
            && let Some(tokens) = line.completion_tokens
        {
            completion.completion_tokens = tokens;
        }
        Ok(completion)
    }
}

/// Writes every completion of a model down, as lines that [`Scripted`] reads.
#[derive(Debug)]
pub struct Recording<M> {
    model: M,
    path: PathBuf,
    file: Mutex<File>,
}

impl<M: LanguageModel> Recording<M> {
    /// Appends to the file at `path`.
    pub fn new(model: M, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(Error::io("write", &path))?;
        Ok(Self {
            model,
            path,
            file: Mutex::new(file),
        })
    }
}

impl<M: LanguageModel> LanguageModel for Recording<M> {
    fn identity(&self) -> &str {
        self.model.identity()
    }

    fn context(&self) -> usize {
        self.model.context()
    }

    fn count_tokens(&self, text: &str) -> Result<usize> {
        self.model.count_tokens(text)
    }

    fn complete(
        &self,
        prompt: &Prompt,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> Result<Completion> {
        let completion = self.model.complete(prompt, decoding, watch)?;
        let line = Line {
            prompt: Some(prompt.clone()),
            contains: None,
            text: completion.text.clone(),
            prompt_tokens: Some(completion.prompt_tokens),
            completion_tokens: Some(completion.completion_tokens),
        };
        let mut json = serde_json::to_string(&line).expect("texts and numbers are JSON");
        json.push('\n');
        // one write for a line, so that a stop leaves no half of one
        self.file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(json.as_bytes())
            .map_err(Error::io("write", &self.path))?;
        Ok(completion)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Message, Role, unwatched};
    use super::*;

    fn chat(text: &str) -> Prompt {
        Prompt::Chat(vec![Message::new(Role::User, text)])
    }

    const SCRIPT: &str = r#"
        {"contains": "mascot", "text": "It is\nans: Lou Seal"}
        {"text": "ans: not available"}"#;

    #[test]
    fn the_first_line_that_fits_answers() {
        let model = Scripted::parse(SCRIPT, "x").unwrap();
        let mut heard = String::new();
        let completion = model
            .complete(&chat("the mascot?"), &Decoding::default(), &mut |p| {
                if let Progress::Text(text) = p {
                    heard += text;
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(completion.text, "It is\nans: Lou Seal");
        assert_eq!(completion.text, heard);
        assert_eq!(
            (completion.prompt_tokens, completion.completion_tokens),
            (2, 5)
        );
        let other = model.complete(&chat("who?"), &Decoding::default(), &mut unwatched);
        assert_eq!(other.unwrap().text, "ans: not available");
    }

    #[test]
    fn limits_are_kept() {
        let model = Scripted::parse(SCRIPT, "x").unwrap().with_context(2);
        let two = Decoding {
            max_tokens: 2,
            ..Decoding::default()
        };
        let completion = model
            .complete(&chat("mascot"), &two, &mut unwatched)
            .unwrap();
        assert_eq!(completion.text, "It is\n");
        assert_eq!(completion.finish, Finish::Length);
        let stopped = model
            .complete(&chat("mascot"), &two, &mut |_| ControlFlow::Break(()))
            .unwrap();
        assert_eq!(
            (stopped.text.as_str(), stopped.finish),
            ("It ", Finish::Stopped)
        );
        let long = model.complete(&chat("a b c"), &two, &mut unwatched);
        assert!(matches!(
            long,
            Err(Error::PromptTooLong {
                tokens: 3,
                context: 2
            })
        ));
    }

    #[test]
    fn what_was_recorded_replays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.jsonl");
        let model = Recording::new(Scripted::parse(SCRIPT, "x").unwrap(), &path).unwrap();
        let ask = |model: &dyn LanguageModel, text: &str| {
            model.complete(&chat(text), &Decoding::default(), &mut unwatched)
        };
        let said = ask(&model, "mascot?").unwrap();
        let replay = Scripted::read(&path).unwrap();
        assert_eq!(ask(&replay, "mascot?").unwrap(), said);
        let error = ask(&replay, "another").unwrap_err().to_string();
        assert!(error.contains("no line of it fits"), "{error}");
    }

    #[test]
    fn a_script_that_does_not_parse_names_its_line() {
        let error = Scripted::parse("{\"text\":\"a\"}\n{\"txt\":1}", "s.jsonl").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("`s.jsonl`") && text.contains("line 2"),
            "{text}"
        );
    }
}
