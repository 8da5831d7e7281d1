//! The frozen language model, from a GGUF file.

use std::path::Path;

use candle_core::{Device, Tensor};

use super::BaseModel;
use crate::language::local::frozen::Frozen;
use crate::{Error, Result};

/// Texts whose means are taken at once.
const BLOCK: usize = 64;

/// A language model whose weights stay as they are.
pub struct Base {
    pub(super) frozen: Frozen,
    model: BaseModel,
    name: String,
}

impl Base {
    /// Reads a GGUF file of the Llama or Qwen families, as plain numbers, into a device's memory.
    pub fn open(path: &Path, device: &Device) -> Result<Self> {
        let frozen = Frozen::open(path, device)?;
        Ok(Self {
            model: BaseModel {
                identity: frozen.identity().to_owned(),
                layers: frozen.layers(),
                width: frozen.width(),
                feed_forward: frozen.feed_forward(),
            },
            name: path.display().to_string(),
            frozen,
        })
    }

    /// What a checkpoint remembers of it.
    pub fn model(&self) -> &BaseModel {
        &self.model
    }

    /// Where it computes.
    pub fn device(&self) -> &Device {
        self.frozen.device()
    }

    /// Most tokens of a prompt and what follows it.
    pub fn context(&self) -> usize {
        self.frozen.context()
    }

    /// Refuses to be the base of an adapter that was made for another model.
    pub fn check(&self, wanted: &BaseModel, checkpoint: &Path) -> Result<()> {
        if self.model == *wanted {
            return Ok(());
        }
        Err(Error::OtherBase {
            path: checkpoint.to_path_buf(),
            wanted: wanted.identity.clone(),
            given: self.name.clone(),
            found: self.model.identity.clone(),
        })
    }

    /// The tokens of a text in which no control tokens are read.
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>> {
        self.frozen.tokenizer().encode(text, false, false)
    }

    /// The token that stands before every prompt, where the model has one.
    pub fn begin(&self) -> Option<u32> {
        self.frozen.tokenizer().begin
    }

    /// The token that ends what is written.
    pub fn end(&self) -> u32 {
        self.frozen.tokenizer().end()
    }

    /// What each token writes.
    pub fn vocabulary(&self) -> Vec<Vec<u8>> {
        let tokenizer = self.frozen.tokenizer();
        (0..tokenizer.len() as u32)
            .map(|token| {
                let mut bytes = Vec::new();
                tokenizer.say(token, &mut bytes);
                bytes
            })
            .collect()
    }

    /// How far the numbers of token embeddings spread: their root mean square, over some tokens.
    pub fn spread(&self) -> Result<f32> {
        let some: Vec<u32> = (0..self.frozen.tokenizer().len() as u32)
            .step_by(37)
            .collect();
        let square = self.frozen.embed(&some)?.sqr()?.mean_all()?;
        Ok(square.to_scalar::<f32>()?.sqrt())
    }

    /// The mean token embedding of each text, `[texts, width]`; 0 for one without tokens.
    pub(super) fn means(&self, texts: &[Vec<u32>]) -> Result<Tensor> {
        let width = self.model.width;
        let mut blocks = Vec::new();
        for block in texts.chunks(BLOCK) {
            let longest = block.iter().map(Vec::len).max().unwrap_or(0).max(1);
            let (mut ids, mut shares) = (Vec::new(), Vec::new());
            for text in block {
                let share = 1.0 / text.len().max(1) as f32;
                ids.extend_from_slice(text);
                ids.resize(ids.len() + longest - text.len(), 0);
                shares.extend(std::iter::repeat_n(share, text.len()));
                shares.resize(shares.len() + longest - text.len(), 0.0f32);
            }
            let count = block.len();
            let rows = self.frozen.embed(&ids)?.reshape((count, longest, width))?;
            let shares = Tensor::from_vec(shares, (count, 1, longest), self.device())?;
            blocks.push(shares.matmul(&rows)?.reshape((count, width))?);
        }
        if blocks.is_empty() {
            blocks.push(self.frozen.embed(&[0])?.zeros_like()?);
        }
        Ok(Tensor::cat(&blocks, 0)?)
    }
}
