//! A GGUF file, read and run here: Llama, Qwen 2 and 3, Gemma.
//!
//! Tokenizer and chat template come from the file. What a prompt shares with the one before it is
//! not read again: the system text and the worked example are always the same.

mod attention;
mod blocks;
mod card;
mod decoder;
mod engine;
mod family;
pub(crate) mod frozen;
mod gguf;
mod gguf_header;
mod linear;
mod parallel;
mod pieces;
#[cfg(test)]
pub(crate) mod reference;
mod sample;
mod template;
mod tensor_decoder;
pub(crate) mod tokenizer;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use candle_core::Device;

use super::{Completion, Decoding, Finish, LanguageModel, Progress, Prompt, Watch};
use crate::{Error, Random, Result};
use card::Card;
use decoder::Decoder;
use engine::Engine;
use family::Shape;
use gguf::Gguf;
use template::Part;
use tokenizer::Tokenizer;

/// Tokens that are read at once.
const BATCH: usize = 256;

/// The longest context that is used unless more is asked for: keys and values take memory.
const DEFAULT_CONTEXT: usize = 8192;

/// A model in a file.
pub struct Local {
    path: PathBuf,
    identity: String,
    context: usize,
    tokenizer: Tokenizer,
    template: Option<String>,
    // one text at a time: each has all cores
    engine: Mutex<Box<dyn Engine>>,
}

impl Local {
    /// Opens a file with the context it was made for, but at most 8192 tokens.
    pub fn open(path: &Path) -> Result<Self> {
        Self::with(path, None, &Device::Cpu)
    }

    /// Opens a file with a context of at most so many tokens, run by a device.
    pub fn with(path: &Path, context: Option<usize>, device: &Device) -> Result<Self> {
        let mut gguf = Gguf::open(path)?;
        let shape = Shape::read(&gguf)?;
        let tokenizer = Tokenizer::read(&gguf)?;
        let template = gguf
            .text_or_none("tokenizer.chat_template")
            .map(str::to_owned);
        let mut identity = gguf.identity()?;
        if !device.is_cpu() {
            // other kernels round otherwise, and a close call may then fall otherwise
            identity.push_str(":card");
        }
        let context = context.unwrap_or(DEFAULT_CONTEXT).clamp(1, shape.context);
        let engine: Box<dyn Engine> = match device {
            Device::Cpu => Box::new(Decoder::read(&mut gguf, shape, tokenizer.len())?),
            _ => Box::new(Card::read(&mut gguf, shape, tokenizer.len(), device)?),
        };
        Ok(Self {
            path: path.into(),
            identity,
            context,
            tokenizer,
            template,
            engine: Mutex::new(engine),
        })
    }

    /// The tokens of a prompt, as the model reads them.
    pub fn tokens(&self, prompt: &Prompt) -> Result<Vec<u32>> {
        let parts = match prompt {
            Prompt::Plain(text) => vec![Part::Template(text.clone())],
            Prompt::Chat(messages) => {
                let bad = |reason: String| Error::BadTemplate {
                    path: self.path.clone(),
                    reason,
                };
                let template = self
                    .template
                    .as_ref()
                    .ok_or_else(|| bad("the file has none".into()))?;
                template::render(template, messages, self.tokenizer.marks()).map_err(bad)?
            }
        };
        let mut tokens = Vec::new();
        for part in &parts {
            let (text, with_control) = match part {
                Part::Template(text) => (text, true),
                Part::Words(text) => (text, false),
            };
            let first = tokens.is_empty();
            tokens.extend(self.tokenizer.encode(text, with_control, first)?);
        }
        if let Some(begin) = self.tokenizer.begin
            && tokens.first() != Some(&begin)
        {
            tokens.insert(0, begin);
        }
        Ok(tokens)
    }

    /// Reads the prompt, as far as it is not in memory; the logits of what follows, or none where
    /// it was stopped.
    fn read(
        &self,
        tokens: &[u32],
        engine: &mut dyn Engine,
        deadline: Option<Instant>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Vec<f32>>> {
        let same = engine.tokens().iter().zip(tokens);
        let shared = same.take_while(|(a, b)| a == b).count();
        // the last token is read in any case: its logits are asked for
        engine.truncate(shared.min(tokens.len() - 1));
        let total = tokens.len();
        let mut logits = None;
        while engine.tokens().len() < total {
            let done = engine.tokens().len();
            let progress = Progress::Reading { done, total };
            if watch(progress) == ControlFlow::Break(()) || is_over(deadline) {
                return Ok(None);
            }
            let batch = &tokens[done..total.min(done + BATCH)];
            logits = Some(engine.read_on(batch)?);
        }
        let progress = Progress::Reading { done: total, total };
        if watch(progress) == ControlFlow::Break(()) {
            return Ok(None);
        }
        Ok(logits)
    }
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

impl LanguageModel for Local {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn context(&self) -> usize {
        self.context
    }

    fn count_tokens(&self, text: &str) -> Result<usize> {
        Ok(self.tokenizer.encode(text, false, true)?.len())
    }

    fn complete(
        &self,
        prompt: &Prompt,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> Result<Completion> {
        decoding.check()?;
        let deadline = decoding.time_limit.map(|limit| Instant::now() + limit);
        let tokens = self.tokens(prompt)?;
        if tokens.is_empty() || tokens.len() >= self.context {
            return Err(Error::PromptTooLong {
                tokens: tokens.len(),
                context: self.context,
            });
        }
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let read = self.read(&tokens, &mut **engine, deadline, watch);
        if read.is_err() {
            // half a token may be in it
            engine.truncate(0);
        }
        let mut text = Text::new(&decoding.stop);
        let mut written = Vec::new();
        let mut finish = Finish::Stopped;
        if let Some(mut logits) = read? {
            let mut random = Random::new(decoding.seed);
            let room = (self.context - tokens.len()).min(decoding.max_tokens);
            finish = loop {
                let token = sample::next(&mut logits, &written, decoding, &mut random);
                if self.tokenizer.is_end(token) {
                    break Finish::Stop;
                }
                written.push(token);
                self.tokenizer.say(token, &mut text.bytes);
                if text.tell(watch) == ControlFlow::Break(()) {
                    break Finish::Stopped;
                }
                if text.stopped {
                    break Finish::Stop;
                }
                if written.len() == room {
                    break Finish::Length;
                }
                if is_over(deadline) {
                    break Finish::Stopped;
                }
                logits = engine.read_on(&[token])?;
            };
            text.tell_rest(watch);
        }
        Ok(Completion {
            text: text.into_string(),
            prompt_tokens: tokens.len(),
            completion_tokens: written.len(),
            finish,
            cached: false,
        })
    }
}

/// What was written, and how much of it was told.
struct Text<'a> {
    bytes: Vec<u8>,
    told: usize,
    stops: &'a [String],
    stopped: bool,
}

impl<'a> Text<'a> {
    fn new(stops: &'a [String]) -> Self {
        Self {
            bytes: Vec::new(),
            told: 0,
            stops,
            stopped: false,
        }
    }

    /// Tells what is whole: no half character, and nothing that may yet become a stop string.
    fn tell(&mut self, watch: &mut Watch<'_>) -> ControlFlow<()> {
        let stops = || self.stops.iter().filter(|s| !s.is_empty());
        let find = |stop: &String| {
            // a stop string may have begun in what was there before
            let from = self.told.saturating_sub(stop.len());
            let rest = &self.bytes[from..];
            let at = rest.windows(stop.len()).position(|w| w == stop.as_bytes());
            at.map(|at| from + at)
        };
        let mut end = self.bytes.len();
        if let Some(at) = stops().filter_map(find).min() {
            self.stopped = true;
            self.bytes.truncate(at);
            end = at;
        } else {
            for stop in stops() {
                let begun = (1..stop.len().min(self.bytes.len() + 1))
                    .rev()
                    .find(|&n| self.bytes.ends_with(&stop.as_bytes()[..n]));
                end = end.min(self.bytes.len() - begun.unwrap_or(0));
            }
        }
        self.tell_until(end, watch)
    }

    /// Tells what was held back.
    fn tell_rest(&mut self, watch: &mut Watch<'_>) {
        // it is all over: nobody can stop it now
        let _ = self.tell_until(self.bytes.len(), watch);
    }

    fn tell_until(&mut self, end: usize, watch: &mut Watch<'_>) -> ControlFlow<()> {
        let new = &self.bytes[self.told.min(end)..end];
        let whole = match std::str::from_utf8(new) {
            Ok(_) => new.len(),
            // bytes that can never become a character are passed on as such
            Err(e) if e.error_len().is_some() => new.len(),
            Err(e) => e.valid_up_to(),
        };
        if whole == 0 {
            return ControlFlow::Continue(());
        }
        let text = String::from_utf8_lossy(&new[..whole]).into_owned();
        self.told += whole;
        watch(Progress::Text(&text))
    }

    fn into_string(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told piece by piece as the pieces come, and what is there in the end.
    fn told(pieces: &[&[u8]], stops: &[&str]) -> (Vec<String>, String, bool) {
        let stops: Vec<String> = stops.iter().map(|&s| s.to_owned()).collect();
        let mut text = Text::new(&stops);
        let mut heard = vec![];
        let mut watch = |progress: Progress<'_>| {
            if let Progress::Text(text) = progress {
                heard.push(text.to_owned());
            }
            ControlFlow::Continue(())
        };
        for piece in pieces {
            text.bytes.extend_from_slice(piece);
            assert!(text.tell(&mut watch).is_continue());
            if text.stopped {
                break;
            }
        }
        text.tell_rest(&mut watch);
        let stopped = text.stopped;
        (heard, text.into_string(), stopped)
    }

    #[test]
    fn characters_are_told_whole() {
        let (heard, text, _) = told(&[b"a\xc3", b"\xa9", b"b"], &[]);
        assert_eq!(heard, ["a", "é", "b"]);
        assert_eq!(text, "aéb");
    }

    #[test]
    fn a_stop_string_is_never_told_even_in_pieces() {
        let (heard, text, stopped) = told(&[b"one ", b"\nQue", b"stion: x"], &["\nQuestion:"]);
        assert_eq!((heard.concat(), stopped), ("one ".to_owned(), true));
        assert_eq!(text, "one ");
        // what only began like one is told in the end
        let (heard, text, stopped) = told(&[b"one\nQu", b"ick", b"\nQ"], &["\nQuestion:"]);
        assert_eq!(
            (heard.concat(), stopped),
            ("one\nQuick\nQ".to_owned(), false)
        );
        assert_eq!(text, "one\nQuick\nQ");
    }
}
