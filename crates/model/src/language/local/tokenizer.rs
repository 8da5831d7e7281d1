//! The tokenizer that a GGUF file carries.
//!
//! `gpt2` is byte-level BPE with the pre-tokenizer that the file names; `llama` is SentencePiece's
//! BPE, see `pieces.rs`. Whether the names of control tokens in a text mean those tokens is the
//! caller's choice: in the template's own words they do, in a user's words never.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, PreTokenizerWrapper, SplitDelimiterBehavior};

use super::gguf::Gguf;
use super::pieces::Pieces;
use crate::{Error, Result};

/// What a token is, in the file's numbers.
const CONTROL: usize = 3;
const USER_DEFINED: usize = 4;

/// Texts of tokens that end a turn in one family or another.
const ENDS: [&str; 9] = [
    "<|im_end|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<|end|>",
    "<end_of_turn>",
    "</s>",
    "<eos>",
];

/// From text to tokens and back.
pub(crate) struct Tokenizer {
    model: String,
    tokens: Vec<String>,
    kind: Kind,
    /// Put before every prompt.
    pub(crate) begin: Option<u32>,
    /// A completion ends with any of these.
    ends: Vec<u32>,
    control: Vec<bool>,
    begin_text: String,
    end_text: String,
}

enum Kind {
    // told at each call whether control tokens are read as such, and that takes it mutably
    Bytes(Box<Mutex<tokenizers::Tokenizer>>),
    Pieces(Pieces),
}

impl Tokenizer {
    pub(super) fn read(gguf: &Gguf) -> Result<Self> {
        let tokens: Vec<String> = gguf
            .texts("tokenizer.ggml.tokens")?
            .into_iter()
            .map(str::to_owned)
            .collect();
        if tokens.is_empty() || u32::try_from(tokens.len()).is_err() {
            return Err(gguf.bad("it has no usable list of tokens"));
        }
        let types = types(gguf, tokens.len());
        let special = |id: &usize| matches!(types[*id], CONTROL | USER_DEFINED);
        let specials: Vec<usize> = (0..tokens.len()).filter(special).collect();
        let id = |key: &str| {
            gguf.number_or_none(&format!("tokenizer.ggml.{key}"))
                .filter(|&id| id < tokens.len())
                .map(|id| id as u32)
        };
        let kind = gguf.text("tokenizer.ggml.model")?;
        let (kind, adds_begin) = match kind {
            "gpt2" => (
                Kind::Bytes(Box::new(Mutex::new(byte_level(
                    gguf, &tokens, &types, &specials,
                )?))),
                false,
            ),
            "llama" => {
                let scores = gguf.list("tokenizer.ggml.scores")?;
                let scores: Vec<f32> = scores.iter().filter_map(|s| s.to_f32().ok()).collect();
                if scores.len() != tokens.len() {
                    return Err(gguf.bad("it has not as many scores as tokens"));
                }
                let space = gguf.flag_or_none("tokenizer.ggml.add_space_prefix");
                let specials = specials
                    .iter()
                    .map(|&id| (id as u32, types[id] == CONTROL))
                    .collect();
                let unknown = id("unknown_token_id").unwrap_or(0);
                let pieces = Pieces::new(&tokens, scores, specials, unknown, space.unwrap_or(true));
                (Kind::Pieces(pieces), true)
            }
            other => {
                return Err(gguf.bad(format!(
                    "its tokenizer is of the kind `{other}`, and known here are `gpt2` and `llama`"
                )));
            }
        };
        let begin = id("bos_token_id");
        let adds_begin = gguf
            .flag_or_none("tokenizer.ggml.add_bos_token")
            .unwrap_or(adds_begin);
        let mut ends: Vec<u32> = ["eos_token_id", "eot_token_id", "eom_token_id"]
            .into_iter()
            .filter_map(id)
            .collect();
        for &id in &specials {
            if types[id] == CONTROL && ENDS.contains(&tokens[id].as_str()) {
                ends.push(id as u32);
            }
        }
        if ends.is_empty() {
            return Err(gguf.bad("it names no token that ends a text"));
        }
        let text_of = |id: Option<u32>| id.map_or(String::new(), |id| tokens[id as usize].clone());
        Ok(Self {
            model: gguf.path.display().to_string(),
            begin_text: text_of(begin),
            end_text: text_of(id("eos_token_id")),
            begin: begin.filter(|_| adds_begin),
            control: types.iter().map(|&t| t == CONTROL).collect(),
            ends,
            kind,
            tokens,
        })
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// The token that ends a text that is written.
    pub(crate) fn end(&self) -> u32 {
        // there is one: `read` refuses files without
        self.ends[0]
    }

    /// What a template calls `bos_token` and `eos_token`.
    pub(super) fn marks(&self) -> (&str, &str) {
        (&self.begin_text, &self.end_text)
    }

    /// The tokens of a text. `first` says that nothing stands before it.
    pub(crate) fn encode(&self, text: &str, with_control: bool, first: bool) -> Result<Vec<u32>> {
        match &self.kind {
            Kind::Bytes(tokenizer) => {
                let mut tokenizer = tokenizer.lock().unwrap_or_else(PoisonError::into_inner);
                tokenizer.set_encode_special_tokens(!with_control);
                let encoding = tokenizer.encode(text, false).map_err(|e| Error::Tokenize {
                    model: self.model.clone(),
                    reason: e.to_string(),
                })?;
                Ok(encoding.get_ids().to_vec())
            }
            Kind::Pieces(pieces) => Ok(pieces.encode(text, with_control, first)),
        }
    }

    /// Appends what a token says; control tokens say nothing.
    pub(crate) fn say(&self, token: u32, into: &mut Vec<u8>) {
        let id = token as usize;
        if self.control.get(id) != Some(&false) {
            return;
        }
        match &self.kind {
            Kind::Bytes(_) => {
                for c in self.tokens[id].chars() {
                    match byte_of(c) {
                        Some(byte) => into.push(byte),
                        // added tokens are written as they are
                        None => into.extend(c.to_string().bytes()),
                    }
                }
            }
            Kind::Pieces(_) => super::pieces::say(&self.tokens[id], into),
        }
    }
}

fn types(gguf: &Gguf, count: usize) -> Vec<usize> {
    let list = gguf.list("tokenizer.ggml.token_type").unwrap_or_default();
    let number = |value: &candle_core::quantized::gguf_file::Value| {
        value
            .to_i32()
            .map(i64::from)
            .or_else(|_| value.to_u64().map(|n| n as i64))
            .map_or(1, |n| n as usize)
    };
    let mut types: Vec<usize> = list.iter().map(number).collect();
    types.resize(count, 1);
    types
}

/// Byte-level BPE writes each byte as one of these characters: itself where it can be seen,
/// otherwise the next free one from U+0100 on.
fn byte_of(c: char) -> Option<u8> {
    let seen = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let code = u32::from(c);
    match u8::try_from(code) {
        Ok(byte) => seen(byte).then_some(byte),
        Err(_) => (0..=255u8)
            .filter(|&b| !seen(b))
            .nth(code.checked_sub(0x100)? as usize),
    }
}

fn byte_level(
    gguf: &Gguf,
    tokens: &[String],
    types: &[usize],
    specials: &[usize],
) -> Result<tokenizers::Tokenizer> {
    let bad = |e: tokenizers::Error| gguf.bad(format!("its tokenizer cannot be built: {e}"));
    let vocabulary: HashMap<String, u32> = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (token.clone(), id as u32))
        .collect();
    let mut merges = Vec::new();
    for merge in gguf.texts("tokenizer.ggml.merges")? {
        let parts = merge.split_once(' ');
        let (left, right) = parts.ok_or_else(|| gguf.bad(format!("`{merge}` is no merge")))?;
        merges.push((left.to_owned(), right.to_owned()));
    }
    let pre = gguf.text_or_none("tokenizer.ggml.pre").unwrap_or("default");
    let splitter = splitter(pre)
        .map_err(bad)?
        .ok_or_else(|| gguf.bad(format!("its pre-tokenizer `{pre}` is not known here")))?;
    let model = BPE::builder()
        .vocab_and_merges(
            vocabulary
                .into_iter()
                .collect::<tokenizers::models::bpe::Vocab>(),
            merges,
        )
        .ignore_merges(pre.starts_with("llama"))
        .build()
        .map_err(bad)?;
    let mut tokenizer = tokenizers::Tokenizer::new(model);
    if pre.contains("qwen") {
        tokenizer.with_normalizer(Some(NFC)).map_err(bad)?;
    }
    tokenizer.with_pre_tokenizer(Some(splitter));
    let added: Vec<AddedToken> = specials
        .iter()
        .map(|&id| AddedToken::from(tokens[id].clone(), types[id] == CONTROL).normalized(false))
        .collect();
    tokenizer.add_tokens(added).map_err(bad)?;
    Ok(tokenizer)
}

/// The pre-tokenizer of a name, as the families define them.
fn splitter(pre: &str) -> tokenizers::Result<Option<PreTokenizerWrapper>> {
    const CONTRACTIONS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|";
    const REST: &str = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let by_words = |numbers: &str| -> tokenizers::Result<Option<PreTokenizerWrapper>> {
        let pattern = SplitPattern::Regex(format!("{CONTRACTIONS}{numbers}{REST}"));
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false)?;
        let bytes = ByteLevel::new(false, true, false);
        Ok(Some(Sequence::new(vec![split.into(), bytes.into()]).into()))
    };
    let gpt2 = || ByteLevel::new(false, true, true);
    match pre {
        "default" | "gpt-2" | "gpt2" => Ok(Some(gpt2().into())),
        "smollm" => Ok(Some(
            Sequence::new(vec![Digits::new(true).into(), gpt2().into()]).into(),
        )),
        "qwen2" | "deepseek-r1-qwen" => by_words(r"\p{N}"),
        "llama3" | "llama-v3" | "llama-bpe" => by_words(r"\p{N}{1,3}"),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_character() {
        // Radford and others' table: space is Ġ, newline Ċ
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of('a'), Some(b'a'));
        assert_eq!(byte_of(' '), None);
        assert_eq!(byte_of('東'), None);
        let mut found: Vec<u8> = (0..0x200)
            .filter_map(char::from_u32)
            .filter_map(byte_of)
            .collect();
        found.sort_unstable();
        assert_eq!(found, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn pre_tokenizers_are_well_formed_and_unknown_ones_are_none() {
        for pre in ["default", "smollm", "qwen2", "llama-bpe"] {
            assert!(splitter(pre).unwrap().is_some());
        }
        assert!(splitter("nosuch").unwrap().is_none());
    }
}
