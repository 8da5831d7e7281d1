//! An encoder that keeps the vectors of the texts it was given last.
//!
//! People ask in few forms: once the names are marked, many questions are the same text, and graphs
//! of one source have the same relations. Texts lie in two halves: where the newer one is full it
//! becomes the older, and what the older one held is forgotten unless it was asked for since.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Embeddings, Encoder, TokenStates};
use crate::Result;

/// Texts of one half.
const MOST: usize = 4096;
/// Longer texts are no questions and no phrases.
const MAX_BYTES: usize = 512;

/// Keeps the vectors of the texts that were encoded last; otherwise the encoder that it is around.
pub struct Recent {
    encoder: Arc<dyn Encoder>,
    texts: Mutex<Halves>,
    queries: Mutex<Halves>,
}

#[derive(Default)]
struct Halves {
    newer: HashMap<Box<str>, Box<[f32]>>,
    older: HashMap<Box<str>, Box<[f32]>>,
}

impl Halves {
    /// Writes the vector of a text into `row` where it is known.
    fn find(&mut self, text: &str, row: &mut [f32]) -> bool {
        if let Some(known) = self.newer.get(text) {
            row.copy_from_slice(known);
            return true;
        }
        let Some((text, known)) = self.older.remove_entry(text) else {
            return false;
        };
        row.copy_from_slice(&known);
        self.keep(text, known);
        true
    }

    fn keep(&mut self, text: Box<str>, row: Box<[f32]>) {
        if self.newer.len() >= MOST {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(text, row);
    }
}

impl Recent {
    /// Around this encoder.
    pub fn new(encoder: Arc<dyn Encoder>) -> Self {
        Self {
            encoder,
            texts: Mutex::default(),
            queries: Mutex::default(),
        }
    }

    fn through(
        &self,
        halves: &Mutex<Halves>,
        texts: &[&str],
        encode: impl Fn(&[&str]) -> Result<Embeddings>,
    ) -> Result<Embeddings> {
        // more than it keeps: nothing would be left of the others
        if texts.len() >= MOST {
            return encode(texts);
        }
        let dim = self.dim();
        let mut values = vec![0.0; texts.len() * dim];
        // what is inside is replaced whole, so a panic elsewhere leaves it sound
        let lock = || halves.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = lock();
        let missing = texts.iter().zip(values.chunks_exact_mut(dim)).enumerate();
        let missing = missing.filter_map(|(at, (text, row))| (!kept.find(text, row)).then_some(at));
        let missing: Vec<usize> = missing.collect();
        drop(kept);
        if !missing.is_empty() {
            let made: Vec<&str> = missing.iter().map(|&at| texts[at]).collect();
            let made = encode(&made)?;
            let mut kept = lock();
            for (&at, row) in missing.iter().zip(made.rows()) {
                values[at * dim..(at + 1) * dim].copy_from_slice(row);
                if texts[at].len() <= MAX_BYTES {
                    kept.keep(texts[at].into(), row.into());
                }
            }
        }
        Ok(Embeddings::new(values, dim))
    }
}

impl Encoder for Recent {
    fn name(&self) -> &str {
        self.encoder.name()
    }

    fn dim(&self) -> usize {
        self.encoder.dim()
    }

    fn encode(&self, texts: &[&str]) -> Result<Embeddings> {
        self.through(&self.texts, texts, |texts| self.encoder.encode(texts))
    }

    fn encode_queries(&self, texts: &[&str]) -> Result<Embeddings> {
        self.through(&self.queries, texts, |texts| {
            self.encoder.encode_queries(texts)
        })
    }

    fn token_states(&self, texts: &[&str]) -> Result<TokenStates> {
        self.encoder.token_states(texts)
    }

    fn is_token(&self, word: &str) -> Result<bool> {
        self.encoder.is_token(word)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Its vectors tell how many texts were encoded before them, and whether as queries.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Counting {
        fn rows(&self, texts: &[&str], query: f32) -> Result<Embeddings> {
            let rows = texts.iter().flat_map(|_| {
                let before = self.0.fetch_add(1, Ordering::Relaxed);
                [before as f32, query]
            });
            Ok(Embeddings::new(rows.collect(), 2))
        }
    }

    impl Encoder for Counting {
        fn name(&self) -> &str {
            "counting"
        }

        fn dim(&self) -> usize {
            2
        }

        fn encode(&self, texts: &[&str]) -> Result<Embeddings> {
            self.rows(texts, 0.0)
        }

        fn encode_queries(&self, texts: &[&str]) -> Result<Embeddings> {
            self.rows(texts, 1.0)
        }
    }

    #[test]
    fn what_was_encoded_is_not_encoded_again() {
        let encoder = Recent::new(Arc::new(Counting::default()));
        let row = |texts: &[&str]| encoder.encode(texts).unwrap().into_values();
        assert_eq!(row(&["a", "b"]), [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(row(&["b", "c", "a"]), [1.0, 0.0, 2.0, 0.0, 0.0, 0.0]);
        let query = encoder.encode_queries(&["a"]).unwrap();
        assert_eq!(query.into_values(), [3.0, 1.0]);
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let encoder = Recent::new(Arc::new(Counting::default()));
        let first = |text: &str| encoder.encode(&[text]).unwrap().row(0)[0];
        assert_eq!(first("stays"), 0.0);
        assert_eq!(first("goes"), 1.0);
        for i in 0..3 * MOST {
            first(&i.to_string());
            if i % 1000 == 0 {
                assert_eq!(first("stays"), 0.0);
            }
        }
        let held = encoder.texts.lock().unwrap();
        assert!(held.newer.len() + held.older.len() <= 2 * MOST);
        drop(held);
        assert!(first("goes") > MOST as f32);
        let long = "x".repeat(MAX_BYTES + 1);
        assert_ne!(first(&long), first(&long));
    }
}
