//! Language models: the trait, what crosses it, and the models behind it.
//!
//! | name | what | needs |
//! |---|---|---|
//! | `http://…#MODEL`, `https://…#MODEL` | [`Remote`], any server that speaks as OpenAI's does | the server |
//! | `script:FILE` | [`Scripted`], completions from a file | the file |
//! | anything else | [`Local`], a GGUF file | the file |
//!
//! [`open`] takes such a name. Wrappers add to any of them: [`Cached`] keeps completions on disk,
//! [`Recording`] writes them down for replay, [`Watched`] lets somebody look on.

mod cache;
pub(crate) mod local;
mod remote;
mod scripted;
mod sse;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::tensor::{Device, device};
use crate::{Error, Result};

pub use cache::{Cached, cache_folder};
pub use local::Local;
pub use remote::{Remote, RemoteOptions};
pub use scripted::{Recording, Scripted};

/// Writes on where a prompt ends.
///
/// The same prompt and decoding give the same completion as long as the temperature is 0 and the
/// model's identity is the same. All of it is told to `watch` before [`LanguageModel::complete`]
/// returns; where `watch` breaks, what came so far is returned as [`Finish::Stopped`].
pub trait LanguageModel: Send + Sync {
    /// What tells its completions from another model's; the cache on disk is bound to it.
    fn identity(&self) -> &str;

    /// Tokens that prompt and completion may have together.
    fn context(&self) -> usize;

    /// How many tokens a text has: exact where the tokenizer is at hand, else estimated on the
    /// high side.
    fn count_tokens(&self, text: &str) -> Result<usize>;

    /// Completes the prompt.
    fn complete(
        &self,
        prompt: &Prompt,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> Result<Completion>;
}

/// Looks on while a model works, and may stop it.
pub type Watch<'a> = dyn FnMut(Progress<'_>) -> ControlFlow<()> + 'a;

/// What a model tells while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// So many tokens of the prompt are read.
    Reading {
        /// Tokens read.
        done: usize,
        /// Tokens of the prompt.
        total: usize,
    },
    /// The completion goes on with this text. No character is cut in two.
    Text(&'a str),
}

/// What a model is to go on from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prompt {
    /// Messages, brought into the model's own form by its chat template.
    Chat(Vec<Message>),
    /// A text, taken as it is.
    Plain(String),
}

impl Prompt {
    /// All words of it, message after message: what a script looks in.
    pub fn text(&self) -> String {
        match self {
            Prompt::Plain(text) => text.clone(),
            Prompt::Chat(messages) => {
                let texts: Vec<&str> = messages.iter().map(|m| m.content.as_str()).collect();
                texts.join("\n")
            }
        }
    }
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The words.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }
}

/// Who speaks in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Who sets the task.
    System,
    /// Who asks.
    User,
    /// The model.
    Assistant,
}

/// How the next token is chosen, and when to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Decoding {
    /// Tokens of the completion, at most.
    pub max_tokens: usize,
    /// 0 takes the likeliest token; above it, likelihoods are flattened by this.
    pub temperature: f32,
    /// Only the k likeliest tokens are drawn from; 0 means all.
    pub top_k: usize,
    /// Only the likeliest tokens that together have this mass are drawn from; 1 means all.
    pub top_p: f32,
    /// Only tokens with this share of the likeliest token's mass are drawn from; 0 means all.
    pub min_p: f32,
    /// Logits of tokens among the last 64 are divided by this; 1 means not.
    pub repeat_penalty: f32,
    /// Seed of the draws.
    pub seed: u64,
    /// The completion ends before any of these.
    pub stop: Vec<String>,
    /// The completion is stopped after this long. Not part of what the cache goes by: whatever is
    /// stopped is not kept.
    #[serde(skip)]
    pub time_limit: Option<Duration>,
}

impl Default for Decoding {
    fn default() -> Self {
        Self {
            max_tokens: 512,
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repeat_penalty: 1.0,
            seed: 42,
            stop: Vec::new(),
            time_limit: None,
        }
    }
}

impl Decoding {
    /// Refuses settings outside their range.
    pub fn check(&self) -> Result<()> {
        let check = |option, value: f32, good: bool, wanted: &str| {
            if good {
                return Ok(());
            }
            Err(Error::BadOption {
                option,
                given: value.to_string(),
                wanted: wanted.to_owned(),
            })
        };
        let unit = 0.0..=1.0;
        check(
            "temperature",
            self.temperature,
            (0.0..=10.0).contains(&self.temperature),
            "from 0 to 10",
        )?;
        check(
            "top_p",
            self.top_p,
            unit.contains(&self.top_p),
            "from 0 to 1",
        )?;
        check(
            "min_p",
            self.min_p,
            unit.contains(&self.min_p),
            "from 0 to 1",
        )?;
        check(
            "repeat_penalty",
            self.repeat_penalty,
            (0.1..=10.0).contains(&self.repeat_penalty),
            "from 0.1 to 10",
        )?;
        check(
            "max_tokens",
            self.max_tokens as f32,
            self.max_tokens > 0,
            "at least 1",
        )
    }
}

/// What a model wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The text, without the stop string that ended it.
    pub text: String,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens written.
    pub completion_tokens: usize,
    /// Why it ended.
    pub finish: Finish,
    /// Whether it was found on disk, so that nothing was computed.
    #[serde(skip)]
    pub cached: bool,
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The model was done, or a stop string came.
    Stop,
    /// `max_tokens`, or the end of the context.
    Length,
    /// Whoever looked on stopped it.
    Stopped,
}

impl<M: LanguageModel + ?Sized> LanguageModel for Arc<M> {
    fn identity(&self) -> &str {
        (**self).identity()
    }

    fn context(&self) -> usize {
        (**self).context()
    }

    fn count_tokens(&self, text: &str) -> Result<usize> {
        (**self).count_tokens(text)
    }

    fn complete(
        &self,
        prompt: &Prompt,
        decoding: &Decoding,
        watch: &mut Watch<'_>,
    ) -> Result<Completion> {
        (**self).complete(prompt, decoding, watch)
    }
}

/// Opens a language model by name: `http://…#MODEL`, `script:FILE`, the path of a GGUF file, or
/// the name of a folder with a `model.gguf` in the models folder. A longer context than 8192
/// tokens, and a graphics card, follow a file's name: `FILE.gguf?context=32768&device=cuda`.
pub fn open(name: &str) -> Result<Arc<dyn LanguageModel>> {
    if name.starts_with("http://") || name.starts_with("https://") {
        return Ok(Arc::new(Remote::open(name)?));
    }
    if let Some(file) = name.strip_prefix("script:") {
        return Ok(Arc::new(Scripted::read(file)?));
    }
    let (plain, options) = match name.rsplit_once('?') {
        Some((plain, options)) if options.contains('=') => (plain, options),
        _ => (name, ""),
    };
    let (mut context, mut on) = (None, Device::Cpu);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("context", tokens)) => {
                let tokens = tokens.parse().map_err(|_| Error::BadOption {
                    option: "context",
                    given: tokens.to_owned(),
                    wanted: "a number of tokens".into(),
                })?;
                context = Some(tokens);
            }
            Some(("device", name)) => on = device(name)?,
            _ => {
                return Err(Error::BadOption {
                    option: "llm",
                    given: option.to_owned(),
                    wanted: "`context=TOKENS` or `device=NAME` behind the file's name".into(),
                });
            }
        }
    }
    let mut path = crate::models::locate(plain)?;
    if path.is_dir() {
        path = path.join("model.gguf");
        if !path.is_file() {
            return Err(Error::MissingFile {
                folder: path.parent().unwrap_or(&path).into(),
                file: "model.gguf",
            });
        }
    }
    Ok(Arc::new(Local::with(&path, context, &on)?))
}

/// Who looks on through a [`Watched`] model.
pub type Watcher = dyn Fn(Progress<'_>) + Send + Sync;

/// A model that somebody looks on, whoever calls it.
pub struct Watched<M> {
    model: M,
    watcher: Box<Watcher>,
}

impl<M: LanguageModel> Watched<M> {
    /// `watcher` is told all that `model` tells.
    pub fn new(model: M, watcher: Box<Watcher>) -> Self {
        Self { model, watcher }
    }
}

impl<M: LanguageModel> LanguageModel for Watched<M> {
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
        self.model.complete(prompt, decoding, &mut |progress| {
            (self.watcher)(progress);
            watch(progress)
        })
    }
}

/// For callers that neither look nor stop.
pub fn unwatched(_: Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_outside_their_range_are_refused() {
        assert!(Decoding::default().check().is_ok());
        let bad = |change: fn(&mut Decoding)| {
            let mut decoding = Decoding::default();
            change(&mut decoding);
            decoding.check().unwrap_err().to_string()
        };
        assert!(bad(|d| d.temperature = f32::NAN).contains("`temperature` is NaN"));
        assert!(bad(|d| d.top_p = 1.5).contains("`top_p`"));
        assert!(bad(|d| d.repeat_penalty = 0.0).contains("`repeat_penalty`"));
        assert!(bad(|d| d.max_tokens = 0).contains("`max_tokens`"));
    }

    #[test]
    fn a_prompt_is_json() {
        let prompt = Prompt::Chat(vec![Message::new(Role::User, "Who?")]);
        let json = serde_json::to_string(&prompt).unwrap();
        assert_eq!(json, r#"{"chat":[{"role":"user","content":"Who?"}]}"#);
        assert_eq!(serde_json::from_str::<Prompt>(&json).unwrap(), prompt);
    }
}
