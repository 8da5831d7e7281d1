//! A static table: one vector for each token, and a text is the sum of its tokens.
//!
//! Tulkens and van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024:
//!
//! ```text
//! v = unit(Σ_t s_t·c_t)      over the tokens t of the text
//! ```
//!
//! c_t is a row of 8-bit numbers, s_t its scale, into which the weight by frequency is folded.
//! [`crate::distill`] makes such tables. Unknown words add nothing.
//!
//! File, little-endian: `WFTABLE1`, length of the header (u32), header (JSON), tokens (one a
//! line), scales (`[tokens]` f32), codes (`[tokens, dim]` i8), xxh3 of all before it (u64).
//!
//! Departures: a Model2Vec table keeps its published precision, tokenizer and `mapping` from
//! token to row.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use pulp::Arch;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;
use xxhash_rust::xxh3::xxh3_64;

use super::{Embeddings, Encoder, TokenStates, WordPiece, normalise};
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"WFTABLE1";
const BUILT_IN: &[u8] = include_bytes!("../../data/static.table");
/// Texts that one thread takes at a time.
const CHUNK: usize = 128;
/// A text's tokens beyond this many do not count: a paragraph says enough.
const MAX_TOKENS: usize = 512;

/// A vector for each token of a vocabulary.
pub struct StaticTable {
    name: String,
    dim: usize,
    tokens: Tokens,
    rows: Rows,
}

pub(super) enum Tokens {
    WordPiece(WordPiece),
    /// A tokenizer as published, the id of its unknown token, and the row of each token.
    Published {
        tokenizer: Box<Tokenizer>,
        unknown: Option<u32>,
        row_of: Option<Vec<u32>>,
    },
}

pub(super) enum Rows {
    /// 8 bits a number and a scale for each row.
    Coded {
        codes: Cow<'static, [u8]>, // [tokens, dim], each an i8
        scales: Vec<f32>,
    },
    /// As published, with a weight for each token.
    Plain {
        values: Vec<f32>, // [rows, dim]
        weights: Option<Vec<f32>>,
    },
}

/// What a table file says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    name: String,
    dim: usize,
    tokens: usize,
    token_bytes: usize,
    unknown: String,
}

impl StaticTable {
    /// The table compiled into this crate, `static`: 256 numbers for each of BERT's uncased tokens.
    pub fn built_in() -> Arc<Self> {
        static TABLE: OnceLock<Arc<StaticTable>> = OnceLock::new();
        let table = TABLE.get_or_init(|| {
            let table = parse(Path::new("built in"), Cow::Borrowed(BUILT_IN), Check::Trust)
                .expect("the tests open the table that is compiled in");
            Arc::new(table.renamed("static"))
        });
        Arc::clone(table)
    }

    /// Reads a table file.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        parse(path, Cow::Owned(bytes), Check::Verify)
    }

    /// Codes `vectors` (`[tokens, dim]`, weights folded in) with 8 bits a number.
    ///
    /// # Errors
    /// What is wrong with the vocabulary, in words.
    pub fn from_vectors(
        name: &str,
        tokens: &[String],
        unknown: &str,
        vectors: &[f32],
        dim: usize,
    ) -> Result<Self, String> {
        if dim == 0 || vectors.len() != tokens.len() * dim {
            let (got, rows) = (vectors.len(), tokens.len());
            return Err(format!("{got} numbers are not {rows} rows of {dim}"));
        }
        if tokens.iter().any(|token| token.contains('\n')) {
            return Err("a token holds a line break".into());
        }
        let pieces = WordPiece::new(tokens.iter().map(String::as_str), unknown)?;
        let mut scales = Vec::with_capacity(tokens.len());
        let mut codes = Vec::with_capacity(vectors.len());
        for row in vectors.chunks_exact(dim) {
            let largest = row.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            let scale = largest / 127.0;
            scales.push(scale);
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            codes.extend(row.iter().map(|x| (x * inverse).round() as i8 as u8));
        }
        Ok(Self {
            name: name.to_owned(),
            dim,
            tokens: Tokens::WordPiece(pieces),
            rows: Rows::Coded {
                codes: Cow::Owned(codes),
                scales,
            },
        })
    }

    pub(super) fn from_parts(name: String, dim: usize, tokens: Tokens, rows: Rows) -> Self {
        Self {
            name,
            dim,
            tokens,
            rows,
        }
    }

    /// The table as the bytes of a file; `None` for a Model2Vec table, which has its own files.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let (Tokens::WordPiece(pieces), Rows::Coded { codes, scales }) = (&self.tokens, &self.rows)
        else {
            return None;
        };
        let tokens: Vec<String> = pieces.tokens().collect();
        let text = tokens.join("\n");
        let header = Header {
            name: self.name.clone(),
            dim: self.dim,
            tokens: tokens.len(),
            token_bytes: text.len(),
            unknown: tokens[pieces.unknown() as usize].clone(),
        };
        let header = serde_json::to_vec(&header).expect("a header is plain text and numbers");
        let mut bytes = MAGIC.to_vec();
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        bytes.extend(text.as_bytes());
        bytes.extend(scales.iter().flat_map(|scale| scale.to_le_bytes()));
        bytes.extend(codes.iter());
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        Some(bytes)
    }

    /// The same table under another name.
    pub fn renamed(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// All tokens in the order of their ids; none for a Model2Vec table.
    pub fn vocabulary(&self) -> impl Iterator<Item = String> + '_ {
        let pieces = match &self.tokens {
            Tokens::WordPiece(pieces) => Some(pieces),
            Tokens::Published { .. } => None,
        };
        pieces.into_iter().flat_map(WordPiece::tokens)
    }

    fn add_tokens(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        match &self.tokens {
            Tokens::WordPiece(pieces) => {
                pieces.tokenise(text, ids);
                let unknown = pieces.unknown();
                ids.retain(|id| *id != unknown);
            }
            Tokens::Published {
                tokenizer, unknown, ..
            } => {
                let encoding =
                    tokenizer
                        .encode_fast(text, false)
                        .map_err(|error| Error::Tokenize {
                            model: self.name.clone(),
                            reason: error.to_string(),
                        })?;
                ids.extend(
                    encoding
                        .get_ids()
                        .iter()
                        .filter(|id| Some(**id) != *unknown),
                );
            }
        }
        ids.truncate(MAX_TOKENS);
        Ok(())
    }

    #[inline(always)]
    fn sum(&self, ids: &[u32], row: &mut [f32]) {
        match &self.rows {
            Rows::Coded { codes, scales } => {
                for &id in ids {
                    let start = id as usize * self.dim;
                    let scale = scales[id as usize];
                    for (sum, code) in row.iter_mut().zip(&codes[start..start + self.dim]) {
                        *sum += scale * f32::from(*code as i8);
                    }
                }
            }
            Rows::Plain { values, weights } => {
                let row_of = match &self.tokens {
                    Tokens::Published { row_of, .. } => row_of.as_deref(),
                    Tokens::WordPiece(_) => None,
                };
                for &id in ids {
                    let at = row_of.map_or(id, |rows| rows[id as usize]) as usize * self.dim;
                    let weight = weights.as_ref().map_or(1.0, |w| w[id as usize]);
                    for (sum, value) in row.iter_mut().zip(&values[at..at + self.dim]) {
                        *sum += weight * value;
                    }
                }
            }
        }
    }
}

impl Encoder for StaticTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn encode(&self, texts: &[&str]) -> Result<Embeddings> {
        let mut values = vec![0.0; texts.len() * self.dim];
        let arch = Arch::new();
        values
            .par_chunks_mut(CHUNK * self.dim)
            .zip(texts.par_chunks(CHUNK))
            .try_for_each_init(Vec::new, |ids, (rows, texts)| {
                for (row, text) in rows.chunks_exact_mut(self.dim).zip(texts) {
                    ids.clear();
                    self.add_tokens(text, ids)?;
                    arch.dispatch(
                        #[inline(always)]
                        || {
                            self.sum(ids, row);
                            normalise(row);
                        },
                    );
                }
                Ok::<(), Error>(())
            })?;
        Ok(Embeddings::new(values, self.dim))
    }

    fn token_states(&self, texts: &[&str]) -> Result<TokenStates> {
        let mut states = TokenStates::new(self.dim);
        let (mut ids, mut known) = (Vec::new(), HashMap::new());
        for text in texts {
            ids.clear();
            self.add_tokens(text, &mut ids)?;
            states.push_ids(&ids, &mut known, |id, row| self.sum(&[id], row));
        }
        Ok(states)
    }

    fn is_token(&self, word: &str) -> Result<bool> {
        if let Tokens::WordPiece(pieces) = &self.tokens
            && word.bytes().all(|b| b.is_ascii_alphanumeric())
        {
            return Ok(pieces.id(&word.to_ascii_lowercase()).is_some());
        }
        let mut ids = Vec::new();
        self.add_tokens(word, &mut ids)?;
        Ok(ids.len() == 1)
    }
}

#[derive(PartialEq)]
enum Check {
    Verify,
    Trust,
}

fn parse(path: &Path, bytes: Cow<'static, [u8]>, check: Check) -> Result<StaticTable> {
    let bad = |reason: String| Error::BadTable {
        path: path.to_owned(),
        reason,
    };
    let total = bytes.len();
    let part = |start: usize, len: usize| -> Result<&[u8]> {
        start
            .checked_add(len)
            .and_then(|end| bytes.get(start..end))
            .ok_or_else(|| bad(format!("it is cut short at {total} bytes")))
    };
    if part(0, MAGIC.len())? != MAGIC {
        return Err(bad("it does not begin with `WFTABLE1`".into()));
    }
    let header_len: [u8; 4] = part(8, 4)?.try_into().expect("four bytes were asked for");
    let header_len = u32::from_le_bytes(header_len) as usize;
    let header: Header = serde_json::from_slice(part(12, header_len)?)
        .map_err(|error| bad(format!("its header does not parse: {error}")))?;
    let too_large = || bad("its header promises more than a file can hold".into());
    let (dim, tokens) = (header.dim, header.tokens);
    let scale_bytes = tokens.checked_mul(4).ok_or_else(too_large)?;
    let code_bytes = tokens.checked_mul(dim).ok_or_else(too_large)?;
    let token_start = 12 + header_len;
    let text = part(token_start, header.token_bytes)?;
    let scale_start = token_start + header.token_bytes;
    let scales: Vec<f32> = part(scale_start, scale_bytes)?
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let code_start = scale_start + scale_bytes;
    part(code_start, code_bytes)?;
    let sum_start = code_start + code_bytes;
    let sum: [u8; 8] = part(sum_start, 8)?
        .try_into()
        .expect("eight bytes were asked for");
    if dim == 0 || total != sum_start + 8 {
        return Err(bad(format!(
            "its header promises {} bytes and it has {total}",
            sum_start + 8
        )));
    }
    if check == Check::Verify && xxh3_64(&bytes[..sum_start]) != u64::from_le_bytes(sum) {
        return Err(bad("its checksum does not match".into()));
    }
    let text = std::str::from_utf8(text).map_err(|error| bad(error.to_string()))?;
    let pieces = WordPiece::new(text.split('\n'), &header.unknown).map_err(bad)?;
    if pieces.len() != tokens {
        let found = pieces.len();
        return Err(bad(format!(
            "its header promises {tokens} tokens and it has {found}"
        )));
    }
    let codes = match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[code_start..sum_start]),
        Cow::Owned(mut bytes) => {
            bytes.truncate(sum_start);
            bytes.drain(..code_start);
            Cow::Owned(bytes)
        }
    };
    Ok(StaticTable {
        name: header.name,
        dim,
        tokens: Tokens::WordPiece(pieces),
        rows: Rows::Coded { codes, scales },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toy() -> StaticTable {
        let tokens = ["[UNK]", "red", "blue", "##s"].map(String::from);
        let vectors = [0.0, 0.0, 1.27, 0.0, 0.0, 0.5, 0.02, 0.0];
        StaticTable::from_vectors("toy", &tokens, "[UNK]", &vectors, 2).unwrap()
    }

    #[test]
    fn text_is_the_unit_sum_of_its_tokens() {
        // red (1.27, 0) + blue (0, 0.5): length √(1.6129 + 0.25) = 1.364881
        let rows = toy().encode(&["Red blue", "reds", "green", ""]).unwrap();
        assert!((rows.row(0)[0] - 0.930_484).abs() < 1e-5);
        assert!((rows.row(0)[1] - 0.366_332).abs() < 1e-5);
        assert_eq!(rows.row(1), [1.0, 0.0]);
        assert_eq!(rows.row(2), [0.0, 0.0]);
        assert_eq!(rows.row(3), [0.0, 0.0]);
    }

    #[test]
    fn table_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toy.table");
        fs::write(&path, toy().to_bytes().unwrap()).unwrap();
        let back = StaticTable::load(&path).unwrap();
        assert_eq!(back.name(), "toy");
        let texts = ["red", "blues red"];
        assert_eq!(back.encode(&texts).unwrap(), toy().encode(&texts).unwrap());
    }

    #[test]
    fn damaged_files_are_errors_that_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toy.table");
        let whole = toy().to_bytes().unwrap();
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(
                matches!(StaticTable::load(&path), Err(Error::BadTable { .. })),
                "{len}"
            );
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x40;
            fs::write(&path, &flipped).unwrap();
            assert!(
                matches!(StaticTable::load(&path), Err(Error::BadTable { .. })),
                "{at}"
            );
        }
    }

    #[test]
    fn built_in_table_is_whole_small_and_knows_english() {
        parse(
            Path::new("built in"),
            Cow::Borrowed(BUILT_IN),
            Check::Verify,
        )
        .unwrap();
        assert!(BUILT_IN.len() <= 9_000_000);
        let table = StaticTable::built_in();
        assert_eq!((table.name(), table.dim()), ("static", 256));
        let rows = table
            .encode(&[
                "who directed the film",
                "directed by",
                "written by",
                "river mouth",
            ])
            .unwrap();
        let near = |i: usize| -> f32 {
            rows.row(0)
                .iter()
                .zip(rows.row(i))
                .map(|(x, y)| x * y)
                .sum()
        };
        assert!(near(1) > near(2) && near(2) > near(3));
    }

    #[test]
    fn long_and_odd_texts_are_encoded() {
        let long = "where is the river ".repeat(6000);
        let rows = StaticTable::built_in()
            .encode(&[&long, "\u{202e}שלום", "🙂🙂", "\u{0}\u{1}"])
            .unwrap();
        assert!((rows.row(0).iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-4);
        assert!(rows.values().iter().all(|x| x.is_finite()));
    }
}
