//! From text to the token ids a network was trained on.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokenizers::models::ModelWrapper;
use tokenizers::{Tokenizer, TruncationParams};

use crate::encode::WordPiece;
use crate::{Error, Result};

/// A published tokenizer, or a bare WordPiece vocabulary.
pub(super) struct Tokens {
    path: PathBuf,
    kind: Kind,
}

enum Kind {
    Published(Box<Tokenizer>),
    WordPiece {
        pieces: WordPiece,
        first: u32,
        last: u32,
        longest: usize,
    },
}

/// The whole vocabulary of an uncased WordPiece tokenizer, and each token as a text of its own.
pub(crate) struct Vocabulary {
    /// Tokens in the order of their ids; continuations begin with `##`.
    pub(crate) tokens: Vec<String>,
    /// Ids that go around a text.
    pub(crate) first: u32,
    /// See `first`.
    pub(crate) last: u32,
}

impl Tokens {
    /// Reads `tokenizer.json`, or else `vocab.txt`; texts are cut after `longest` tokens.
    pub(super) fn read(folder: &Path, longest: usize) -> Result<Self> {
        let json = folder.join("tokenizer.json");
        if json.is_file() {
            let mut tokenizer = read_tokenizer(&json)?;
            tokenizer.with_padding(None);
            tokenizer
                .with_truncation(Some(TruncationParams {
                    max_length: longest,
                    ..TruncationParams::default()
                }))
                .map_err(|error| Error::BadOption {
                    option: "max_tokens",
                    given: longest.to_string(),
                    wanted: format!("enough for the special tokens ({error})"),
                })?;
            return Ok(Self {
                path: json,
                kind: Kind::Published(Box::new(tokenizer)),
            });
        }
        let path = folder.join("vocab.txt");
        if !path.is_file() {
            return Err(Error::MissingFile {
                folder: folder.to_owned(),
                file: "tokenizer.json",
            });
        }
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        Self::word_pieces(&path, &text, longest)
    }

    /// A vocabulary of WordPiece tokens, one a line; texts are cut after `longest` tokens.
    pub(super) fn word_pieces(path: &Path, text: &str, longest: usize) -> Result<Self> {
        let bad = |reason: String| Error::BadTokenizer {
            path: path.to_owned(),
            reason,
        };
        let pieces = WordPiece::new(text.lines(), "[UNK]").map_err(bad)?;
        let special = |token: &str| {
            pieces
                .id(token)
                .ok_or_else(|| bad(format!("it has no token `{token}`")))
        };
        let (first, last) = (special("[CLS]")?, special("[SEP]")?);
        Ok(Self {
            kind: Kind::WordPiece {
                pieces,
                first,
                last,
                longest,
            },
            path: path.to_owned(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Token ids of each text, special tokens included.
    pub(super) fn encode(&self, model: &str, texts: &[&str]) -> Result<Vec<Vec<u32>>> {
        match &self.kind {
            Kind::Published(tokenizer) => {
                let encodings =
                    tokenizer
                        .encode_batch_fast(texts.to_vec(), true)
                        .map_err(|error| Error::Tokenize {
                            model: model.to_owned(),
                            reason: error.to_string(),
                        })?;
                Ok(encodings.iter().map(|e| e.get_ids().to_vec()).collect())
            }
            Kind::WordPiece {
                pieces,
                first,
                last,
                longest,
            } => Ok(texts
                .iter()
                .map(|text| {
                    let mut ids = vec![*first];
                    pieces.tokenise(text, &mut ids);
                    ids.truncate(longest.saturating_sub(1).max(1));
                    ids.push(*last);
                    ids
                })
                .collect()),
        }
    }

    /// The vocabulary, if it is one of uncased WordPiece tokens.
    pub(super) fn vocabulary(&self) -> Result<Vocabulary> {
        let bad = |reason: &str| Error::BadTokenizer {
            path: self.path.clone(),
            reason: reason.to_owned(),
        };
        match &self.kind {
            Kind::WordPiece {
                pieces,
                first,
                last,
                ..
            } => Ok(Vocabulary {
                tokens: pieces.tokens().collect(),
                first: *first,
                last: *last,
            }),
            Kind::Published(tokenizer) => {
                if !matches!(tokenizer.get_model(), ModelWrapper::WordPiece(_)) {
                    return Err(bad("a static table is made from a WordPiece vocabulary"));
                }
                let around = tokenizer
                    .encode_fast("", true)
                    .map_err(|_| bad("it refuses the empty text"))?;
                let &[first, last] = around.get_ids() else {
                    return Err(bad("it does not put one token before and one after a text"));
                };
                let tokens = (0..tokenizer.get_vocab_size(true) as u32)
                    .map(|id| tokenizer.id_to_token(id).unwrap_or_default())
                    .collect();
                Ok(Vocabulary {
                    tokens,
                    first,
                    last,
                })
            }
        }
    }
}

/// Reads a published `tokenizer.json`.
pub(crate) fn read_tokenizer(path: &Path) -> Result<Tokenizer> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    let bad = |reason: String| Error::BadTokenizer {
        path: path.to_owned(),
        reason,
    };
    // the tokenizer's crate ends the program where what should be a decoder is no JSON
    serde_json::from_slice::<Value>(&bytes).map_err(|error| bad(error.to_string()))?;
    let tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| bad(error.to_string()))?;
    let processor = serde_json::to_value(tokenizer.get_post_processor());
    check_templates(&processor.map_err(|error| bad(error.to_string()))?).map_err(bad)?;
    Ok(tokenizer)
}

/// Whether what a tokenizer puts around a text is there: its crate looks when a text comes, and ends
/// the program where it is not.
fn check_templates(processor: &Value) -> std::result::Result<(), String> {
    for one in processor["processors"].as_array().into_iter().flatten() {
        check_templates(one)?;
    }
    if processor["type"] != "TemplateProcessing" {
        return Ok(());
    }
    for name in ["single", "pair"] {
        for piece in processor[name].as_array().into_iter().flatten() {
            if let Some(id) = piece["SpecialToken"]["id"].as_str()
                && processor["special_tokens"].get(id).is_none()
            {
                return Err(format!(
                    "it puts `{id}` around a text, and has no such token"
                ));
            }
            if name == "single" && piece["Sequence"]["id"] == "B" {
                return Err("it wants a second text where there is one".to_owned());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check_templates, read_tokenizer};

    #[test]
    fn a_decoder_that_is_no_json_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, r#"{"version": "1.0", "decoder": e}"#).unwrap();
        assert!(read_tokenizer(&path).is_err());
    }

    #[test]
    fn a_template_without_its_tokens_is_refused() {
        let with = |id: &str, of: &str| {
            let single = json!([{"SpecialToken": {"id": id, "type_id": 0}}, {"Sequence": {"id": of, "type_id": 0}}]);
            json!({"type": "Sequence", "processors": [
                {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {"[CLS]": {}}}
            ]})
        };
        assert_eq!(check_templates(&with("[CLS]", "A")), Ok(()));
        assert!(
            check_templates(&with("[.CLS]", "A"))
                .unwrap_err()
                .contains("[.CLS]")
        );
        assert!(check_templates(&with("[CLS]", "B")).is_err());
        assert_eq!(check_templates(&Value::Null), Ok(()));
    }
}
