//! A small BERT in one file: 8-bit weights, its vocabulary, and its sizes.
//!
//! The network is [`super::bert`]'s, the pooling the mean. The file is in the format safetensors:
//!
//! ```text
//! X.codes, X.scale     X.weight = codes · scale, a scale for each row; X of every product and of the words
//! vocabulary           WordPiece tokens, one a line, as bytes
//! anything else        f32, under its published name; the token type is added to the positions
//! metadata             format, name, language, heads, max_tokens
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use candle_core::{Device, Tensor};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::attention::Attention;
use super::bert::PostNormLayer;
use super::ops::{Activation, AddNorm, Linear, Norm};
use super::tokens::Tokens;
use super::{Batch, Network, Pooling, TransformerEncoder, gather};
use crate::{Error, Result};

const FORMAT: &str = "wherefore-matcher-1";
const BUILT_IN: &[u8] = include_bytes!("../../../data/matcher.safetensors");
const EPSILON: f32 = 1e-12;
/// Layers at most.
const MAX_LAYERS: usize = 64;
const BATCH_TOKENS: usize = 1024;

struct Compact {
    codes: Cow<'static, [u8]>, // [vocabulary, hidden], each an i8
    scales: Vec<f32>,          // [vocabulary]
    positions: Tensor,         // [positions, hidden]
    norm: Norm,
    layers: Vec<PostNormLayer>,
    attention: Attention,
    max_tokens: usize,
}

impl Network for Compact {
    fn hidden(&self) -> usize {
        self.norm.scale.len()
    }

    fn vocabulary(&self) -> usize {
        self.scales.len()
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn forward(&self, batch: &Batch) -> candle_core::Result<Tensor> {
        let hidden = self.hidden();
        let mut words = Vec::with_capacity(batch.ids.len() * hidden);
        for &id in &batch.ids {
            let id = id as usize;
            let codes = &self.codes[id * hidden..(id + 1) * hidden];
            let scale = self.scales[id];
            words.extend(codes.iter().map(|&code| f32::from(code as i8) * scale));
        }
        let mut h = Tensor::from_vec(words, (batch.ids.len(), hidden), &Device::Cpu)?;
        h.inplace_op2(
            &gather(&self.positions, &batch.positions(0))?,
            &AddNorm {
                bias: &[],
                norm: &self.norm,
            },
        )?;
        for layer in &self.layers {
            h = layer.forward(&h, &self.attention, None, Activation::Gelu, &batch.lengths)?;
        }
        Ok(h)
    }
}

/// The encoder that is compiled into this crate.
pub(in crate::encode) fn built_in() -> Result<Arc<TransformerEncoder>> {
    static LOADED: OnceLock<Arc<TransformerEncoder>> = OnceLock::new();
    if let Some(loaded) = LOADED.get() {
        return Ok(Arc::clone(loaded));
    }
    let loaded = parse(Path::new("matcher.safetensors"), Cow::Borrowed(BUILT_IN))?;
    Ok(Arc::clone(LOADED.get_or_init(|| Arc::new(loaded))))
}

/// Reads a file; `bytes` are all of it.
pub(in crate::encode) fn parse(
    path: &Path,
    bytes: Cow<'static, [u8]>,
) -> Result<TransformerEncoder> {
    let bad = |reason: String| Error::BadWeights {
        path: path.to_owned(),
        reason,
    };
    let damaged = |error: safetensors::SafeTensorError| bad(error.to_string());
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(damaged)?;
    let file = File {
        path,
        tensors,
        said: header.metadata().clone().unwrap_or_default(),
    };
    if file.said.get("format").map(String::as_str) != Some(FORMAT) {
        return Err(bad(format!("it is not of the format `{FORMAT}`")));
    }
    let words = file.tensor("embeddings.word_embeddings.codes", Dtype::I8)?;
    let &[vocabulary, hidden] = words.shape() else {
        return Err(bad("its words are no matrix".into()));
    };
    let (heads, max_tokens) = (file.number("heads")?, file.number("max_tokens")?);
    let positions = file.tensor("embeddings.position_embeddings.weight", Dtype::F32)?;
    let places = positions.shape().first().copied().unwrap_or(0);
    if hidden == 0 || heads == 0 || !hidden.is_multiple_of(heads) {
        return Err(bad(format!(
            "{hidden} numbers a token are no multiple of {heads} heads"
        )));
    }
    if !(3..=places).contains(&max_tokens) {
        return Err(bad(format!(
            "it reads {max_tokens} tokens and has {places} positions"
        )));
    }
    let inner = file
        .vector("encoder.layer.0.intermediate.dense.bias", None)?
        .len();
    if inner == 0 {
        return Err(bad("its layers have no inner width".into()));
    }
    let names = file.tensors.names();
    let of_layer = |i: usize| format!("encoder.layer.{i}.");
    let has_layer = |i: &usize| names.iter().any(|name| name.starts_with(&of_layer(*i)));
    let layers = (0..MAX_LAYERS).take_while(has_layer);
    let layers = layers.map(|i| file.layer(&of_layer(i), hidden, inner));
    let layers = layers.collect::<Result<Vec<_>>>()?;
    let text = file.tensor("vocabulary", Dtype::U8)?;
    let text = std::str::from_utf8(text.data()).map_err(|error| bad(error.to_string()))?;
    let tokens = Tokens::word_pieces(path, text, max_tokens)?;
    let name = file.said.get("name").cloned().unwrap_or_default();
    let start = words.data().as_ptr() as usize - bytes.as_ptr() as usize;
    let end = start + words.data().len();
    let scales = file.vector("embeddings.word_embeddings.scale", Some(vocabulary))?;
    let positions = values(&positions);
    let positions = Tensor::from_vec(positions, (places, hidden), &Device::Cpu)?;
    let norm = file.norm("embeddings.LayerNorm", hidden)?;
    let codes = match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[start..end]),
        Cow::Owned(bytes) => Cow::Owned(bytes[start..end].to_vec()),
    };
    let network = Compact {
        codes,
        scales,
        positions,
        norm,
        layers,
        attention: Attention::plain(heads, hidden / heads),
        max_tokens,
    };
    Ok(TransformerEncoder {
        name,
        folder: path.to_owned(),
        network: Box::new(network),
        tokens,
        pooling: Pooling::Mean,
        query_prefix: None,
        batch_tokens: BATCH_TOKENS,
    })
}

struct File<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
    said: HashMap<String, String>,
}

impl File<'_> {
    fn number(&self, key: &str) -> Result<usize> {
        let value = self.said.get(key).and_then(|value| value.parse().ok());
        value.ok_or_else(|| Error::BadWeights {
            path: self.path.to_owned(),
            reason: format!("its metadata has no number `{key}`"),
        })
    }

    fn tensor(&self, name: &str, dtype: Dtype) -> Result<TensorView<'_>> {
        match self.tensors.tensor(name) {
            Ok(found) if found.dtype() == dtype => Ok(found),
            Ok(found) => Err(Error::BadWeights {
                path: self.path.to_owned(),
                reason: format!("`{name}` holds {:?}, not {dtype:?}", found.dtype()),
            }),
            Err(_) => Err(Error::MissingTensor {
                path: self.path.to_owned(),
                tensor: name.to_owned(),
                wanted: vec![],
            }),
        }
    }

    fn shaped(&self, name: &str, dtype: Dtype, wanted: &[usize]) -> Result<TensorView<'_>> {
        let found = self.tensor(name, dtype)?;
        if found.shape() == wanted {
            return Ok(found);
        }
        Err(Error::TensorShape {
            path: self.path.to_owned(),
            tensor: name.to_owned(),
            wanted: wanted.to_vec(),
            found: found.shape().to_vec(),
        })
    }

    fn vector(&self, name: &str, len: Option<usize>) -> Result<Vec<f32>> {
        Ok(values(&match len {
            Some(len) => self.shaped(name, Dtype::F32, &[len])?,
            None => self.tensor(name, Dtype::F32)?,
        }))
    }

    /// Products with the same input, their outputs side by side.
    fn linear(&self, names: &[&str], input: usize, output: usize) -> Result<Linear> {
        let (mut codes, mut scales, mut bias) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let rows = self.shaped(&format!("{name}.codes"), Dtype::I8, &[output, input])?;
            codes.extend(rows.data());
            scales.extend(self.vector(&format!("{name}.scale"), Some(output))?);
            bias.extend(self.vector(&format!("{name}.bias"), Some(output))?);
        }
        Ok(Linear::coded(&codes, &scales, input, bias))
    }

    fn norm(&self, name: &str, width: usize) -> Result<Norm> {
        Ok(Norm {
            scale: self.vector(&format!("{name}.weight"), Some(width))?,
            shift: self.vector(&format!("{name}.bias"), Some(width))?,
            epsilon: EPSILON,
        })
    }

    fn layer(&self, at: &str, hidden: usize, inner: usize) -> Result<PostNormLayer> {
        let part = |name: &str| format!("{at}attention.self.{name}");
        let [query, key, value] = ["query", "key", "value"].map(part);
        let linear =
            |name: &str, input, output| self.linear(&[&format!("{at}{name}.dense")], input, output);
        let norm = |name: &str| self.norm(&format!("{at}{name}.LayerNorm"), hidden);
        Ok(PostNormLayer {
            qkv: self.linear(&[&query, &key, &value], hidden, hidden)?,
            attention_output: linear("attention.output", hidden, hidden)?,
            attention_norm: norm("attention.output")?,
            intermediate: linear("intermediate", hidden, inner)?,
            output: linear("output", inner, hidden)?,
            output_norm: norm("output")?,
        })
    }
}

fn values(tensor: &TensorView<'_>) -> Vec<f32> {
    let bytes = tensor.data().chunks_exact(4);
    bytes
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::Encoder;
    use crate::encode::normalise;

    /// What PyTorch makes of the same weights.
    #[derive(Deserialize)]
    struct Fixture {
        texts: Vec<Encoded>,
        scores: Vec<Scored>,
    }

    #[derive(Deserialize)]
    struct Encoded {
        text: String,
        ids: Vec<u32>,
        begins: Vec<f32>,
    }

    #[derive(Deserialize)]
    struct Scored {
        question: String,
        phrases: Vec<String>,
        score: f32,
    }

    #[test]
    fn the_built_in_matcher_agrees_with_pytorch() {
        let fixture = include_str!("../../../tests/data/matcher.json");
        let fixture: Fixture = serde_json::from_str(fixture).unwrap();
        let encoder = built_in().unwrap();
        assert_eq!((encoder.name(), encoder.dim()), ("matcher", 384));
        let texts: Vec<&str> = fixture.texts.iter().map(|t| t.text.as_str()).collect();
        let ids = encoder.token_ids(&texts).unwrap();
        let rows = encoder.encode(&texts).unwrap();
        for (i, wanted) in fixture.texts.iter().enumerate() {
            assert_eq!(ids[i], wanted.ids, "{}", wanted.text);
            for (got, want) in rows.row(i).iter().zip(&wanted.begins) {
                assert!((got - want).abs() < 1e-4, "{}: {got} {want}", wanted.text);
            }
        }
        for wanted in &fixture.scores {
            let phrases: Vec<&str> = wanted.phrases.iter().map(String::as_str).collect();
            let mut sum = vec![0.0; encoder.dim()];
            for row in encoder.encode(&phrases).unwrap().rows() {
                sum.iter_mut().zip(row).for_each(|(s, x)| *s += x);
            }
            normalise(&mut sum);
            let question = encoder.encode(&[&wanted.question]).unwrap();
            let score: f32 = question.row(0).iter().zip(&sum).map(|(x, y)| x * y).sum();
            assert!((score - wanted.score).abs() < 1e-4, "{}", wanted.question);
        }
    }

    #[test]
    fn damaged_files_are_errors() {
        let path = Path::new("m.safetensors");
        for cut in [0, 7, 100, 5000, 6000, 1_000_000, BUILT_IN.len() - 1] {
            assert!(
                parse(path, Cow::Borrowed(&BUILT_IN[..cut])).is_err(),
                "{cut}"
            );
        }
        // every byte of the header that says something, changed
        let header = u64::from_le_bytes(BUILT_IN[..8].try_into().unwrap()) as usize;
        for at in (0..8 + header).step_by(397) {
            let mut changed = BUILT_IN.to_vec();
            changed[at] ^= 0x15;
            // an error or an encoder, but no panic
            let _ = parse(path, Cow::Owned(changed));
        }
    }
}
