//! Transformer encoders, computed on packed tokens: one file for each family.
//!
//! ```text
//! row = unit(pool(network(tokens)))      pool = mean | first token | last token
//! ```
//!
//! | family | `model_type` | models |
//! |---|---|---|
//! | [`bert`] | `bert` | all-MiniLM, gte-small/base/large, bge, e5 |
//! | [`mpnet`] | `mpnet` | all-mpnet-base-v2, multi-qa-mpnet |
//! | [`gte`] | `new` | gte-base/large-en-v1.5, gte-multilingual-base |
//! | [`qwen3`] | `qwen3` | Qwen3-Embedding |
//! | [`compact`] | one file | the matcher that is built in |
//!
//! Departures from sentence-transformers: texts of a batch lie end to end, so there is no padding
//! and no mask; rows always have length 1. bf16 halves the memory of the weights; sums stay in f32.

mod attention;
mod batch;
mod bert;
pub(super) mod compact;
pub(crate) mod files;
mod gte;
mod mpnet;
mod ops;
mod qwen3;
mod tokens;

pub(super) use self::tokens::read_tokenizer;

use std::path::{Path, PathBuf};

use candle_core::Tensor;
use serde::Deserialize;

use self::batch::{Batch, batches};
use self::files::{SentenceConfig, read_config};
use self::ops::gather;
use self::tokens::Tokens;
use super::{Embeddings, Encoder, TokenStates, normalise};
use crate::{Error, Result};

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// The first token's.
    Cls,
    /// The last token's.
    LastToken,
}

/// In which precision the weights are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Four bytes a number.
    #[default]
    F32,
    /// Two bytes a number, and three significant digits.
    Bf16,
}

/// What can be chosen about a model; by default its folder decides.
#[derive(Clone, Debug)]
pub struct TransformerOptions {
    /// Precision of the weights.
    pub precision: Precision,
    /// Pooling, where the folder is wrong or silent.
    pub pooling: Option<Pooling>,
    /// What is put before a question (not before labels), where the folder is wrong or silent.
    pub query_prefix: Option<String>,
    /// Tokens after which a text is cut, the model's limit at most.
    pub max_tokens: Option<usize>,
    /// Tokens in a batch: bounds the memory.
    pub batch_tokens: usize,
}

impl Default for TransformerOptions {
    fn default() -> Self {
        Self {
            precision: Precision::F32,
            pooling: None,
            query_prefix: None,
            max_tokens: None,
            batch_tokens: 1024,
        }
    }
}

/// A network over packed tokens.
trait Network: Send + Sync {
    /// Numbers for each token.
    fn hidden(&self) -> usize;

    /// Token ids are below this.
    fn vocabulary(&self) -> usize;

    /// The longest text it was made for.
    fn max_tokens(&self) -> usize;

    /// One row for each token, `[tokens, hidden]`.
    fn forward(&self, batch: &Batch) -> candle_core::Result<Tensor>;
}

/// A transformer read from a folder.
pub struct TransformerEncoder {
    name: String,
    folder: PathBuf,
    network: Box<dyn Network>,
    tokens: Tokens,
    pooling: Pooling,
    query_prefix: Option<String>,
    batch_tokens: usize,
}

impl TransformerEncoder {
    /// Reads a model folder; see the module for what it holds. Its name is the folder's.
    pub fn load(folder: &Path, options: &TransformerOptions) -> Result<Self> {
        #[derive(Deserialize)]
        struct Family {
            model_type: String,
        }
        let family: Family = read_config(folder)?;
        let precision = options.precision;
        let (network, pooling): (Box<dyn Network>, _) = match family.model_type.as_str() {
            "bert" => (
                Box::new(bert::Bert::load(folder, precision)?),
                Pooling::Mean,
            ),
            "mpnet" => (
                Box::new(mpnet::Mpnet::load(folder, precision)?),
                Pooling::Mean,
            ),
            "new" => (Box::new(gte::Gte::load(folder, precision)?), Pooling::Cls),
            "qwen3" => (
                Box::new(qwen3::Qwen3::load(folder, precision)?),
                Pooling::LastToken,
            ),
            _ => {
                return Err(Error::UnknownFamily {
                    path: folder.join("config.json"),
                    found: family.model_type,
                    known: "`bert`, `mpnet`, `new` and `qwen3`",
                });
            }
        };
        if options.batch_tokens == 0 {
            return Err(Error::BadOption {
                option: "batch_tokens",
                given: "0".into(),
                wanted: "at least 1".into(),
            });
        }
        let sentence = SentenceConfig::read(folder)?;
        let longest = [options.max_tokens, sentence.max_tokens]
            .into_iter()
            .flatten()
            .fold(network.max_tokens(), usize::min);
        if longest < 3 {
            return Err(Error::BadOption {
                option: "max_tokens",
                given: longest.to_string(),
                wanted: "at least 3: one token between the two special ones".into(),
            });
        }
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            folder: folder.to_owned(),
            tokens: Tokens::read(folder, longest)?,
            network,
            pooling: options.pooling.or(sentence.pooling).unwrap_or(pooling),
            query_prefix: options.query_prefix.clone().or(sentence.query_prefix),
            batch_tokens: options.batch_tokens,
        })
    }

    /// The same model under another name.
    pub fn renamed(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The folder it was read from.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How token vectors become one.
    pub fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// What is put before a question.
    pub fn query_prefix(&self) -> Option<&str> {
        self.query_prefix.as_deref()
    }

    /// [`Encoder::encode`] that tells after each batch how many texts are done.
    pub fn encode_with_progress(
        &self,
        texts: &[&str],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Embeddings> {
        self.encode_tokens(self.tokens.encode(&self.name, texts)?, progress)
    }

    /// The unit rows of token sequences that hold their special tokens already.
    pub(crate) fn encode_tokens(
        &self,
        tokens: Vec<Vec<u32>>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Embeddings> {
        let dim = self.network.hidden();
        self.check_tokens(&tokens)?;
        let mut values = vec![0.0; tokens.len() * dim];
        let mut done = 0;
        for batch in batches(tokens, self.batch_tokens) {
            if !batch.ids.is_empty() {
                let h = self
                    .network
                    .forward(&batch)?
                    .flatten_all()?
                    .to_vec1::<f32>()?;
                self.pool(&batch, &h, &mut values);
            }
            done += batch.texts.len();
            progress(done);
        }
        Ok(Embeddings::new(values, dim))
    }

    fn check_tokens(&self, tokens: &[Vec<u32>]) -> Result<()> {
        let rows = self.network.vocabulary();
        match tokens.iter().flatten().find(|&&id| id as usize >= rows) {
            Some(&token) => Err(Error::TokenOutside {
                path: self.tokens.path().to_owned(),
                token,
                rows,
            }),
            None => Ok(()),
        }
    }

    /// Token ids of each text, special tokens included, all of them in the vocabulary.
    pub(crate) fn token_ids(&self, texts: &[&str]) -> Result<Vec<Vec<u32>>> {
        let tokens = self.tokens.encode(&self.name, texts)?;
        self.check_tokens(&tokens)?;
        Ok(tokens)
    }

    /// Token ids of every token of the vocabulary between the special tokens, for distillation.
    pub(crate) fn vocabulary(&self) -> Result<tokens::Vocabulary> {
        self.tokens.vocabulary()
    }

    fn pool(&self, batch: &Batch, h: &[f32], values: &mut [f32]) {
        let dim = self.network.hidden();
        let mut rest = h;
        for (&len, &text) in batch.lengths.iter().zip(&batch.texts) {
            let (tokens, after) = rest.split_at(len * dim);
            rest = after;
            let row = &mut values[text * dim..(text + 1) * dim];
            let mut rows = tokens.chunks_exact(dim);
            match self.pooling {
                Pooling::Mean => rows.for_each(|token| {
                    row.iter_mut().zip(token).for_each(|(sum, x)| *sum += x);
                }),
                Pooling::Cls => rows.next().into_iter().for_each(|t| row.copy_from_slice(t)),
                Pooling::LastToken => rows.last().into_iter().for_each(|t| row.copy_from_slice(t)),
            }
            normalise(row);
        }
    }
}

impl Encoder for TransformerEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn dim(&self) -> usize {
        self.network.hidden()
    }

    fn encode(&self, texts: &[&str]) -> Result<Embeddings> {
        self.encode_with_progress(texts, &mut |_| {})
    }

    fn encode_queries(&self, texts: &[&str]) -> Result<Embeddings> {
        let Some(prefix) = &self.query_prefix else {
            return self.encode(texts);
        };
        let prefixed: Vec<String> = texts.iter().map(|text| format!("{prefix}{text}")).collect();
        self.encode(&prefixed.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn token_states(&self, texts: &[&str]) -> Result<TokenStates> {
        let dim = self.network.hidden();
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in batches(self.token_ids(texts)?, self.batch_tokens) {
            if batch.ids.is_empty() {
                continue;
            }
            let h = self.network.forward(&batch)?;
            let mut rest = &h.flatten_all()?.to_vec1::<f32>()?[..];
            for (&len, &text) in batch.lengths.iter().zip(&batch.texts) {
                let (own, after) = rest.split_at(len * dim);
                vectors[text] = own.to_vec();
                rest = after;
            }
        }
        let mut states = TokenStates::new(dim);
        vectors.iter().for_each(|own| states.push(own));
        Ok(states)
    }
}

fn bad_config(folder: &Path, reason: String) -> Error {
    Error::BadConfig {
        path: folder.join("config.json"),
        reason,
    }
}

/// Refuses sizes that no network can have.
fn check_sizes(folder: &Path, hidden: usize, heads: usize, positions: usize) -> Result<()> {
    if hidden == 0 || heads == 0 || !hidden.is_multiple_of(heads) {
        return Err(bad_config(
            folder,
            format!("`hidden_size` {hidden} is no multiple of {heads} attention heads"),
        ));
    }
    if !(3..=1 << 20).contains(&positions) {
        return Err(bad_config(
            folder,
            format!("`max_position_embeddings` gives room for {positions} tokens"),
        ));
    }
    Ok(())
}
