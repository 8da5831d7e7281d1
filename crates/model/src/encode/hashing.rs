//! Feature hashing: vectors from spelling alone, without any data.
//!
//! Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009:
//!
//! ```text
//! v = unit(Σ_f w(f)·s(f)·e_{h(f)})
//! ```
//!
//! Features f are the words (weight 1) and the character trigrams of `<word>` (weight ⅓ each, so
//! that inflected forms come near); h picks one of `dim` places and s a sign, both from one hash.
//! Same text, same vector, on every machine.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Embeddings, Encoder, normalise};
use crate::Result;

const TRIGRAM_WEIGHT: f32 = 1.0 / 3.0;

/// Knows spelling, not meaning: for tests, and where nothing else is at hand.
#[derive(Clone, Debug)]
pub struct HashingEncoder {
    name: String,
    dim: usize,
}

impl HashingEncoder {
    /// Rows of `dim` numbers (at least one).
    pub fn new(dim: usize) -> Self {
        let dim = dim.max(1);
        let name = if dim == 256 {
            "hashing".to_owned()
        } else {
            format!("hashing-{dim}")
        };
        Self { name, dim }
    }

    fn add(&self, row: &mut [f32], feature: &[u8], seed: u64, weight: f32) {
        let hash = xxh3_64_with_seed(feature, seed);
        let sign = if hash >> 63 == 0 { weight } else { -weight };
        row[(hash & 0x7fff_ffff) as usize % self.dim] += sign;
    }
}

impl Default for HashingEncoder {
    fn default() -> Self {
        Self::new(256)
    }
}

impl Encoder for HashingEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn encode(&self, texts: &[&str]) -> Result<Embeddings> {
        let mut values = vec![0.0; texts.len() * self.dim];
        let mut around: Vec<char> = vec![];
        for (text, row) in texts.iter().zip(values.chunks_exact_mut(self.dim)) {
            let lower = text.to_lowercase();
            for word in lower.split(|c: char| !c.is_alphanumeric()) {
                if word.is_empty() {
                    continue;
                }
                self.add(row, word.as_bytes(), 0, 1.0);
                around.clear();
                around.push('<');
                around.extend(word.chars());
                around.push('>');
                for trigram in around.windows(3) {
                    let trigram: String = trigram.iter().collect();
                    self.add(row, trigram.as_bytes(), 1, TRIGRAM_WEIGHT);
                }
            }
            normalise(row);
        }
        Ok(Embeddings::new(values, self.dim))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(a: &str, b: &str) -> f32 {
        let rows = HashingEncoder::default().encode(&[a, b]).unwrap();
        rows.row(0)
            .iter()
            .zip(rows.row(1))
            .map(|(x, y)| x * y)
            .sum()
    }

    #[test]
    fn like_spelling_is_near_and_order_and_case_do_not_matter() {
        assert!((similarity("place of birth", "Birth of_place") - 1.0).abs() < 1e-6);
        // five trigrams shared: 5/9 over √(2 + 10/9)·√(1 + 8/9) = 0.229, but for chance collisions
        assert!((similarity("directed by", "director") - 0.229).abs() < 0.1);
        assert!(similarity("directed by", "zygote").abs() < 0.1);
    }

    #[test]
    fn one_letter_word_is_one_word_and_one_trigram() {
        // `a` at one place (±1), `<a>` at another or the same (±⅓): lengths 1 and ⅓ before the unit
        let rows = HashingEncoder::new(1 << 20).encode(&["a"]).unwrap();
        let mut parts: Vec<f32> = rows
            .row(0)
            .iter()
            .map(|x| x.abs())
            .filter(|x| *x > 0.0)
            .collect();
        parts.sort_by(f32::total_cmp);
        // √(1 + 1/9) = 1.054093
        assert_eq!(parts.len(), 2);
        assert!((parts[0] - 0.316_228).abs() < 1e-5 && (parts[1] - 0.948_683).abs() < 1e-5);
    }

    #[test]
    fn text_without_words_is_zero() {
        let rows = HashingEncoder::default().encode(&["", "?!"]).unwrap();
        assert!(rows.values().iter().all(|x| *x == 0.0));
    }
}
