//! Constrained decoding: a language model that can only write forms.
//!
//! [`Grammar`] is a machine over bytes that reads what [`Form`](super::Form) prints, and knows
//! after each byte which may follow; names may be any, or only those that are listed (the graph's,
//! or what was retrieved for a question). [`Vocabulary`] lifts it to the tokens of any tokenizer.
//! [`beam`] searches with whatever gives scores for next tokens ([`NextToken`]).

mod beam;
mod grammar;
mod trie;

pub use beam::{BeamConfig, Decoded, NextToken, Search, Vocabulary, beam};
pub use grammar::{Grammar, Lexicon, State};
pub use trie::Trie;
