//! Model2Vec tables as published: `config.json`, `tokenizer.json`, `model.safetensors`.
//!
//! ```text
//! v = unit(mean_t w_t·E[m_t])      E = `embeddings`, w = `weights`, m = `mapping`
//! ```
//!
//! `weights` and `mapping` came with later versions; without them w = 1 and m is the identity.
//! Unknown tokens are left out, as Model2Vec does.
//!
//! Departures: rows are normalised whatever `normalize` says.

use std::path::Path;

use candle_core::safetensors::{BufferedSafetensors, Load};
use candle_core::{DType, Device};
use serde::Deserialize;
use tokenizers::Tokenizer;

use super::static_table::{Rows, StaticTable, Tokens};
use super::transformer::files::{open_weights, read_json};
use super::transformer::read_tokenizer;
use crate::{Error, Result};

#[derive(Deserialize)]
struct Config {
    model_type: Option<String>,
}

/// Whether a folder's configuration names Model2Vec.
pub(super) fn is_model2vec(folder: &Path) -> bool {
    matches!(
        read_json::<Config>(folder, "config.json"),
        Ok(Some(Config { model_type: Some(kind) })) if kind == "model2vec"
    )
}

/// Reads the table in `folder`.
pub(super) fn load(folder: &Path) -> Result<StaticTable> {
    let file = |name: &'static str| {
        let path = folder.join(name);
        if path.is_file() {
            Ok(path)
        } else {
            Err(Error::MissingFile {
                folder: folder.to_owned(),
                file: name,
            })
        }
    };
    let tokenizer_path = file("tokenizer.json")?;
    let mut tokenizer = read_tokenizer(&tokenizer_path)?;
    tokenizer.with_padding(None);
    // cannot fail: it is the length of a truncation that can be wrong, and there is none
    tokenizer.with_truncation(None).ok();
    let (path, weights) = open_weights(&file("model.safetensors")?)?;
    let wrong = |tensor: &str, wanted: Vec<usize>, found: Vec<usize>| Error::TensorShape {
        path: path.clone(),
        tensor: tensor.to_owned(),
        wanted,
        found,
    };
    let (shape, values) =
        read(&path, &weights, "embeddings")?.ok_or_else(|| Error::MissingTensor {
            path: path.clone(),
            tensor: "embeddings".into(),
            wanted: vec![tokenizer.get_vocab_size(true), 0],
        })?;
    let &[rows, dim] = &shape[..] else {
        return Err(wrong("embeddings", vec![0, 0], shape));
    };
    if rows == 0 || dim == 0 {
        return Err(wrong("embeddings", vec![1, 1], shape));
    }
    let mapping = read(&path, &weights, "mapping")?;
    let tokens = mapping.as_ref().map_or(rows, |(_, m)| m.len());
    let row_of: Option<Vec<u32>> = mapping.map(|(_, m)| m.iter().map(|row| *row as u32).collect());
    let outside = row_of.iter().flatten().find(|row| **row as usize >= rows);
    if let Some(&token) = outside {
        return Err(Error::TokenOutside { path, token, rows });
    }
    // ids may have gaps, so the largest counts and not their number
    let largest = tokenizer.get_vocab(true).into_values().max();
    if let Some(token) = largest.filter(|id| *id as usize >= tokens) {
        return Err(Error::TokenOutside {
            path: tokenizer_path,
            token,
            rows: tokens,
        });
    }
    let token_weights = match read(&path, &weights, "weights")? {
        Some((shape, w)) if w.len() != tokens => return Err(wrong("weights", vec![tokens], shape)),
        found => found.map(|(_, w)| w),
    };
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    let unknown = unknown_token(&tokenizer);
    Ok(StaticTable::from_parts(
        name.to_string_lossy().into_owned(),
        dim,
        Tokens::Published {
            tokenizer: Box::new(tokenizer),
            unknown,
            row_of,
        },
        Rows::Plain {
            values,
            weights: token_weights,
        },
    ))
}

/// A tensor's shape and numbers in f32; `None` where the file lacks it.
fn read(
    path: &Path,
    weights: &BufferedSafetensors,
    name: &str,
) -> Result<Option<(Vec<usize>, Vec<f32>)>> {
    let Ok(view) = weights.get(name) else {
        return Ok(None);
    };
    let shape = view.shape().to_owned();
    // the 8-bit tables that are published are signed, a type candle lacks
    let values = if view.dtype() == safetensors::Dtype::I8 {
        view.data()
            .iter()
            .map(|byte| f32::from(*byte as i8))
            .collect()
    } else {
        view.load(&Device::Cpu)
            .and_then(|t| t.to_dtype(DType::F32)?.flatten_all()?.to_vec1())
            .map_err(|error| Error::BadWeights {
                path: path.to_owned(),
                reason: format!("tensor `{name}`: {error}"),
            })?
    };
    Ok(Some((shape, values)))
}

/// The id of the token that unknown words get; its name differs between tokenizers.
fn unknown_token(tokenizer: &Tokenizer) -> Option<u32> {
    use tokenizers::models::ModelWrapper::{BPE, Unigram, WordLevel, WordPiece};
    match tokenizer.get_model() {
        WordPiece(model) => tokenizer.token_to_id(&model.unk_token),
        WordLevel(model) => tokenizer.token_to_id(&model.unk_token),
        BPE(model) => tokenizer.token_to_id(model.unk_token.as_deref()?),
        Unigram(_) => tokenizer.token_to_id("<unk>"),
    }
}
