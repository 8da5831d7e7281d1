//! Text to vectors: the trait, the matrix that crosses it, and the encoders.
//!
//! | name | what | needs |
//! |---|---|---|
//! | `static` | [`StaticTable`], the table compiled into this crate | nothing |
//! | `matcher` | [`TransformerEncoder`] of two layers, compiled into this crate: questions and phrases of relations | nothing |
//! | `hashing` | [`HashingEncoder`], no meaning, only spelling | nothing |
//! | a folder, or a model that was added | [`TransformerEncoder`] or a Model2Vec table | its files |
//!
//! [`open`] takes such a name.

mod hashing;
mod model2vec;
mod recent;
pub(crate) mod simd;
mod static_table;
mod tokens;
pub(crate) mod transformer;
mod wordpiece;

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::models;
use crate::{Error, Result};

pub use hashing::HashingEncoder;
pub use recent::Recent;
pub use static_table::StaticTable;
pub use tokens::TokenStates;
pub use transformer::{Pooling, Precision, TransformerEncoder, TransformerOptions};
pub use wordpiece::WordPiece;

/// Turns texts into vectors that can be compared by their dot product.
///
/// The same text always gives the same row, alone or among others, but for rounding. A row has
/// length 1, or is all zero where the text holds nothing the encoder knows (an empty label).
pub trait Encoder: Send + Sync {
    /// The name under which [`open`] finds it again; vectors on disk are bound to it.
    fn name(&self) -> &str;

    /// Numbers in a row.
    fn dim(&self) -> usize;

    /// One row for each text, in their order.
    fn encode(&self, texts: &[&str]) -> Result<Embeddings>;

    /// One row for each question. Differs from [`Encoder::encode`] only where the model was
    /// trained with an instruction before the question.
    fn encode_queries(&self, texts: &[&str]) -> Result<Embeddings> {
        self.encode(texts)
    }

    /// The vectors of each text's tokens, in their order. An encoder that knows no tokens takes
    /// words for them.
    fn token_states(&self, texts: &[&str]) -> Result<TokenStates> {
        let mut states = TokenStates::new(self.dim());
        for text in texts {
            let words = text.split(|c: char| !c.is_alphanumeric());
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            states.push(self.encode(&words)?.values());
        }
        Ok(states)
    }

    /// Whether a word is one of the encoder's tokens, and not put together from pieces.
    fn is_token(&self, word: &str) -> Result<bool> {
        Ok(self.token_states(&[word])?.tokens().len() == 1)
    }
}

impl<E: Encoder + ?Sized> Encoder for Arc<E> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn dim(&self) -> usize {
        (**self).dim()
    }

    fn encode(&self, texts: &[&str]) -> Result<Embeddings> {
        (**self).encode(texts)
    }

    fn encode_queries(&self, texts: &[&str]) -> Result<Embeddings> {
        (**self).encode_queries(texts)
    }

    fn token_states(&self, texts: &[&str]) -> Result<TokenStates> {
        (**self).token_states(texts)
    }

    fn is_token(&self, word: &str) -> Result<bool> {
        (**self).is_token(word)
    }
}

/// Rows of numbers, one for each text.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    values: Vec<f32>, // [rows, dim]
    dim: usize,
}

impl Embeddings {
    /// Takes over `values`, row after row.
    ///
    /// # Panics
    /// If `values` is not made of whole rows of `dim` numbers.
    pub fn new(values: Vec<f32>, dim: usize) -> Self {
        assert!(
            dim > 0 && values.len().is_multiple_of(dim),
            "{} numbers are no rows of {dim}",
            values.len()
        );
        Self { values, dim }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The row of text `i`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }

    /// All rows, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim)
    }

    /// All numbers, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Gives the numbers away, row after row.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }
}

/// Opens an encoder by name: `static`, `matcher`, `hashing`, the path of a model folder, or the name of a
/// model that was added to the models folder. What a transformer's folder leaves open or gets
/// wrong can follow the name: `minilm?precision=bf16&pooling=cls&prefix=query: &max_tokens=128`.
///
/// ```
/// let encoder = wherefore_model::encode::open("static")?;
/// let rows = encoder.encode(&["place of birth", "where was she born", "box office"])?;
/// let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
/// assert!(dot(rows.row(1), rows.row(0)) > dot(rows.row(1), rows.row(2)));
/// # Ok::<(), wherefore_model::Error>(())
/// ```
pub fn open(name: &str) -> Result<Arc<dyn Encoder>> {
    match name {
        "static" => Ok(StaticTable::built_in()),
        "matcher" => Ok(transformer::compact::built_in()?),
        "hashing" => Ok(Arc::new(HashingEncoder::default())),
        _ => {
            let (plain, options) = options(name)?;
            open_folder(name, &models::locate(plain)?, &options)
        }
    }
}

/// The name of a model without what follows a `?`, and that as options.
fn options(name: &str) -> Result<(&str, TransformerOptions)> {
    let mut options = TransformerOptions::default();
    let Some((plain, settings)) = name.split_once('?') else {
        return Ok((name, options));
    };
    for setting in settings.split('&') {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let bad = |option, wanted: &str| Error::BadOption {
            option,
            given: value.to_owned(),
            wanted: wanted.to_owned(),
        };
        match key {
            "precision" => {
                options.precision = match value {
                    "f32" => Precision::F32,
                    "bf16" => Precision::Bf16,
                    _ => return Err(bad("precision", "`f32` or `bf16`")),
                };
            }
            "pooling" => {
                options.pooling = Some(match value {
                    "mean" => Pooling::Mean,
                    "cls" => Pooling::Cls,
                    "last-token" => Pooling::LastToken,
                    _ => return Err(bad("pooling", "`mean`, `cls` or `last-token`")),
                });
            }
            "prefix" => options.query_prefix = Some(value.to_owned()),
            "max_tokens" => {
                let tokens = value.parse().map_err(|_| bad("max_tokens", "a number"))?;
                options.max_tokens = Some(tokens);
            }
            _ => {
                return Err(Error::BadOption {
                    option: "encoder",
                    given: setting.to_owned(),
                    wanted: "`precision=`, `pooling=`, `prefix=` or `max_tokens=`".into(),
                });
            }
        }
    }
    Ok((plain, options))
}

fn open_folder(name: &str, path: &Path, options: &TransformerOptions) -> Result<Arc<dyn Encoder>> {
    if path.is_file() && path.extension().is_some_and(|e| e == "safetensors") {
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        let encoder = transformer::compact::parse(path, Cow::Owned(bytes))?;
        return Ok(Arc::new(encoder.renamed(name)));
    }
    if path.is_file() {
        return Ok(Arc::new(StaticTable::load(path)?));
    }
    if model2vec::is_model2vec(path) {
        return Ok(Arc::new(model2vec::load(path)?.renamed(name)));
    }
    Ok(Arc::new(
        TransformerEncoder::load(path, options)?.renamed(name),
    ))
}

/// Scales `row` to length 1; a row of nothing but zeros stays.
#[inline(always)]
pub(crate) fn normalise(row: &mut [f32]) {
    let length = simd::sum_by(row.len(), |i| row[i] * row[i]).sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|x| *x /= length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order() {
        let rows = Embeddings::new(vec![1.0, 2.0, 3.0, 4.0], 2);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows.row(1), [3.0, 4.0]);
        assert_eq!(rows.rows().map(|row| row[0]).sum::<f32>(), 4.0);
    }

    #[test]
    fn options_follow_the_name_and_bad_ones_are_refused() {
        let (name, given) = options("mine?precision=bf16&pooling=cls&prefix=query: ").unwrap();
        assert_eq!(name, "mine");
        assert_eq!(given.precision, Precision::Bf16);
        assert_eq!(given.pooling, Some(Pooling::Cls));
        assert_eq!(given.query_prefix.as_deref(), Some("query: "));
        for bad in [
            "m?precision=f8",
            "m?pooling",
            "m?colour=red",
            "m?max_tokens=x",
        ] {
            assert!(
                matches!(options(bad), Err(Error::BadOption { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn normalised_rows_have_length_one_and_zero_stays_zero() {
        let mut row = [3.0, 4.0];
        normalise(&mut row);
        assert_eq!(row, [0.6, 0.8]); // 3, 4, 5
        let mut zero = [0.0; 3];
        normalise(&mut zero);
        assert_eq!(zero, [0.0; 3]);
    }
}
