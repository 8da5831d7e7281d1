//! A text as the vectors of its tokens, in their order.

use std::collections::HashMap;

use crate::tensor::Sequences;

/// The token vectors of several texts. Rows are scaled to a mean square of 1 (a row of zeros
/// stays), so that networks over them see numbers of one size whatever the encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenStates {
    rows: Vec<f32>, // [rows, dim]
    dim: usize,
    /// The row of each token, text after text. Where a vector depends on the token alone, equal
    /// tokens share a row.
    tokens: Vec<u32>,
    lengths: Vec<usize>,
}

impl TokenStates {
    /// No text yet, of vectors of `dim` numbers.
    ///
    /// # Panics
    /// If `dim` is 0.
    pub fn new(dim: usize) -> Self {
        assert!(dim > 0, "a vector has at least one number");
        Self {
            rows: Vec::new(),
            dim,
            tokens: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Adds a text of tokens that each have a vector of their own, `[tokens, dim]`.
    pub fn push(&mut self, vectors: &[f32]) {
        let tokens = vectors.len() / self.dim;
        for vector in vectors.chunks_exact(self.dim) {
            let row = self.add_row(vector);
            self.tokens.push(row);
        }
        self.lengths.push(tokens);
    }

    /// Adds a text of tokens by id; `vector` writes the vector of one that is not among `known`.
    pub(crate) fn push_ids(
        &mut self,
        ids: &[u32],
        known: &mut HashMap<u32, u32>,
        vector: impl Fn(u32, &mut [f32]),
    ) {
        for &id in ids {
            let row = match known.get(&id) {
                Some(row) => *row,
                None => {
                    let mut values = vec![0.0; self.dim];
                    vector(id, &mut values);
                    let row = self.add_row(&values);
                    known.insert(id, row);
                    row
                }
            };
            self.tokens.push(row);
        }
        self.lengths.push(ids.len());
    }

    fn add_row(&mut self, vector: &[f32]) -> u32 {
        let square = vector.iter().map(|x| x * x).sum::<f32>() / self.dim as f32;
        let scale = if square > 0.0 {
            1.0 / square.sqrt()
        } else {
            0.0
        };
        self.rows.extend(vector.iter().map(|x| x * scale));
        (self.rows.len() / self.dim - 1) as u32
    }

    /// The given texts of these, in the given order.
    pub fn select(&self, texts: &[usize]) -> Self {
        let mut starts = Vec::with_capacity(self.lengths.len());
        let mut start = 0;
        for len in &self.lengths {
            starts.push(start);
            start += len;
        }
        let mut picked = Self::new(self.dim);
        let mut known = HashMap::new();
        for &text in texts {
            let tokens = &self.tokens[starts[text]..][..self.lengths[text]];
            for &token in tokens {
                let rows = &mut picked.rows;
                let dim = self.dim;
                let row = *known.entry(token).or_insert_with(|| {
                    rows.extend_from_slice(&self.rows[token as usize * dim..][..dim]);
                    (rows.len() / dim - 1) as u32
                });
                picked.tokens.push(row);
            }
            picked.lengths.push(tokens.len());
        }
        picked
    }

    /// The token vectors of one text, `[tokens, dim]`.
    pub fn text(&self, text: usize) -> Vec<f32> {
        let start: usize = self.lengths[..text].iter().sum();
        let tokens = &self.tokens[start..][..self.lengths[text]];
        let row = |token: &u32| &self.rows[*token as usize * self.dim..][..self.dim];
        tokens.iter().flat_map(row).copied().collect()
    }

    /// Numbers in a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The distinct vectors, `[rows, dim]`.
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// The row of each token, text after text.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Where the texts lie among the tokens.
    pub fn sequences(&self) -> Sequences {
        Sequences::new(&self.lengths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_scaled_shared_and_picked() {
        let mut states = TokenStates::new(2);
        let mut known = HashMap::new();
        // (3, 4) has a mean square of 12.5
        let vector = |id: u32, row: &mut [f32]| row.copy_from_slice(&[3.0 * id as f32, 4.0]);
        states.push_ids(&[1, 0, 1], &mut known, vector);
        states.push_ids(&[], &mut known, vector);
        states.push(&[0.0, 0.0]);
        assert_eq!(states.tokens(), [0, 1, 0, 2]);
        let scale = 1.0 / 12.5f32.sqrt();
        assert_eq!(states.rows()[..2], [3.0 * scale, 4.0 * scale]);
        assert_eq!(states.rows()[4..], [0.0, 0.0]);
        assert_eq!(states.text(2), [0.0, 0.0]);
        assert_eq!(states.text(0)[4..], states.rows()[..2]);
        let picked = states.select(&[2, 0]);
        assert_eq!(picked.tokens(), [0, 1, 2, 1]);
        assert_eq!(picked.rows()[2..4], states.rows()[..2]);
        assert_eq!((picked.len(), picked.sequences().tokens()), (2, 4));
    }
}
