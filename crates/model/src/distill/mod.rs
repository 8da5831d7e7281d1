//! Distillation: a transformer's knowledge of words, pressed into a [`StaticTable`].
//!
//! Tulkens and van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024, after
//! Arora et al., "A Simple but Tough-to-Beat Baseline for Sentence Embeddings", ICLR 2017:
//!
//! ```text
//! e_t = a/(a + p_t) · V·teacher([CLS] t [SEP])       p_t ∝ 1/rank(t)
//! ```
//!
//! V holds the first `dim` principal components of the teacher's vectors, a is `weight`, and the
//! rank of a token is its place in the vocabulary, which WordPiece sorts by frequency. Where texts
//! are given, a second stage ([`Training`]) moves e_t until the sums of token vectors point where
//! the teacher's vectors of those texts point.
//!
//! Departures from Model2Vec: components are taken of the texts' vectors, if there are any, and
//! without centring (see `pca.rs`); tokens that no text can hold (`[unused7]`, `[CLS]`) are left out.

mod pca;
mod train;

use crate::encode::{Encoder, StaticTable, TransformerEncoder, WordPiece};
use crate::{Error, Result};

pub(crate) use self::pca::Components;
pub use self::train::Training;

/// What can be chosen about a table.
#[derive(Clone, Debug, PartialEq)]
pub struct DistillOptions {
    /// The table's name.
    pub name: String,
    /// Numbers for each token.
    pub dim: usize,
    /// a of the frequency weight; larger is flatter.
    pub weight: f32,
    /// The second stage; needs texts.
    pub training: Training,
}

impl Default for DistillOptions {
    fn default() -> Self {
        Self {
            name: "static".into(),
            dim: 256,
            weight: 1e-3,
            training: Training::default(),
        }
    }
}

/// How far a distillation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DistillProgress {
    /// Tokens of the vocabulary that went through the teacher.
    Tokens {
        /// So many are done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// Texts that went through the teacher.
    Texts {
        /// So many are done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// The components were found; they hold this part of the teacher's spread.
    Components {
        /// Between 0 and 1.
        kept: f64,
    },
    /// A pass of the second stage ended with this mean loss (1 − cosine).
    Epoch {
        /// Counted from 1.
        epoch: usize,
        /// Mean over the texts.
        loss: f32,
    },
}

/// Presses `teacher`, which must have an uncased WordPiece vocabulary, into a table. `texts` are
/// short texts of the kind it will meet: labels, relations, questions; without them only the first
/// stage runs.
///
/// The same teacher, texts and options give the same table but for rounding.
pub fn distill(
    teacher: &TransformerEncoder,
    texts: &[&str],
    options: &DistillOptions,
    progress: &mut dyn FnMut(DistillProgress),
) -> Result<StaticTable> {
    let wide = teacher.dim();
    if options.dim == 0 || options.dim > wide {
        return Err(Error::BadOption {
            option: "dim",
            given: options.dim.to_string(),
            wanted: format!("between 1 and the teacher's {wide}"),
        });
    }
    let vocabulary = teacher.vocabulary()?;
    let unknown = "[UNK]";
    let kept: Vec<u32> = (0..vocabulary.tokens.len() as u32)
        .filter(|&id| is_text(&vocabulary.tokens[id as usize], unknown))
        .collect();
    let tokens: Vec<String> = kept
        .iter()
        .map(|&id| vocabulary.tokens[id as usize].clone())
        .collect();
    let framed = kept
        .iter()
        .map(|&id| vec![vocabulary.first, id, vocabulary.last])
        .collect();
    let total = kept.len();
    let of_tokens = teacher.encode_tokens(framed, &mut |done| {
        progress(DistillProgress::Tokens { done, total });
    })?;
    let of_texts = teacher.encode_with_progress(texts, &mut |done| {
        progress(DistillProgress::Texts {
            done,
            total: texts.len(),
        });
    })?;
    let spread = if texts.is_empty() {
        &of_tokens
    } else {
        &of_texts
    };
    let components = Components::of(spread.values(), wide, options.dim);
    progress(DistillProgress::Components {
        kept: components.kept,
    });

    let mut vectors = components.project(of_tokens.values(), wide);
    weigh(
        &mut vectors,
        options.dim,
        &kept,
        vocabulary.tokens.len(),
        options.weight,
    );
    let bad = |reason| Error::BadTokenizer {
        path: teacher.folder().to_owned(),
        reason,
    };
    let pieces = WordPiece::new(tokens.iter().map(String::as_str), unknown).map_err(bad)?;
    let bags: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| known_tokens(&pieces, text))
        .collect();
    let mut targets = components.project(of_texts.values(), wide);
    targets
        .chunks_exact_mut(options.dim)
        .for_each(crate::encode::normalise);
    train::train(
        &mut vectors,
        options.dim,
        &bags,
        &targets,
        &options.training,
        &mut |epoch, loss| progress(DistillProgress::Epoch { epoch, loss }),
    );
    // the unknown token is looked up but never added
    let unknown_row = pieces.unknown() as usize * options.dim;
    vectors[unknown_row..unknown_row + options.dim].fill(0.0);
    StaticTable::from_vectors(&options.name, &tokens, unknown, &vectors, options.dim).map_err(bad)
}

/// Whether a text can hold the token; the unknown token is kept for what is not known.
fn is_text(token: &str, unknown: &str) -> bool {
    let marked = token.len() > 2
        && (token.starts_with('[') && token.ends_with(']')
            || token.starts_with('<') && token.ends_with('>'));
    token == unknown || !(marked || token.is_empty() || token.contains('\n'))
}

/// Folds a/(a + p_t) into each row; p is Zipf's law over the places in the whole vocabulary.
fn weigh(vectors: &mut [f32], dim: usize, ids: &[u32], vocabulary: usize, a: f32) {
    let harmonic: f64 = (1..=vocabulary).map(|rank| 1.0 / rank as f64).sum();
    for (row, &id) in vectors.chunks_exact_mut(dim).zip(ids) {
        let p = (1.0 / (f64::from(id) + 1.0) / harmonic) as f32;
        row.iter_mut().for_each(|x| *x *= a / (a + p));
    }
}

fn known_tokens(pieces: &WordPiece, text: &str) -> Vec<u32> {
    let mut ids = vec![];
    pieces.tokenise(text, &mut ids);
    ids.retain(|id| *id != pieces.unknown());
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_tokens_weigh_less() {
        // two ranks: harmonic 1.5, p = 2/3 and 1/3; a = 1/3: weights 1/3 and 1/2
        let mut vectors = vec![3.0, 3.0];
        weigh(&mut vectors, 1, &[0, 1], 2, 1.0 / 3.0);
        assert!((vectors[0] - 1.0).abs() < 1e-6 && (vectors[1] - 1.5).abs() < 1e-6);
    }

    #[test]
    fn only_tokens_that_texts_can_hold_are_kept() {
        for token in ["the", "##ing", "[", "]", "[UNK]", "<", "東"] {
            assert!(is_text(token, "[UNK]"), "{token}");
        }
        for token in ["[unused7]", "[CLS]", "</s>", ""] {
            assert!(!is_text(token, "[UNK]"), "{token}");
        }
    }
}
