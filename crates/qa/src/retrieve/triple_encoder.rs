//! How near triples are in meaning to a text.
//!
//! ```text
//! s(h, r, t) = (1 + cos(enc(text), enc("h r t"))) / 2
//! ```
//!
//! Vectors that `wherefore index --triples` keeps with the graph are used; without them, triples
//! are encoded when asked for, equal sentences once.

use std::collections::HashMap;
use std::sync::Arc;

use wherefore_graph::{Graph, Store, Triple};
use wherefore_model::Encoder;

use super::vectors::words_of;
use crate::error::{Error, Result};
use crate::index::{Part, Vectors};
use crate::per_graph::PerGraph;
use crate::relations::dot;

/// An encoder with the triples of the graph at hand.
pub(crate) struct TripleEncoder {
    encoder: Arc<dyn Encoder>,
    kept: PerGraph<Option<(Store, Vectors)>>,
}

impl TripleEncoder {
    pub(crate) fn new(encoder: Arc<dyn Encoder>) -> Self {
        Self {
            encoder,
            kept: PerGraph::default(),
        }
    }

    /// One score for each triple, within 0 and 1.
    pub(crate) fn scores(
        &self,
        text: &str,
        triples: &[Triple],
        graph: &dyn Graph,
    ) -> Result<Vec<f32>> {
        let asked = self.encoder.encode_queries(&[text])?;
        let asked = asked.row(0);
        let kept = self.kept.get(graph, || self.open(graph))?;
        let cosines = match &*kept {
            Some((store, vectors)) => {
                // a triple of this graph that has no number is a damaged index, and said to be
                let ids = (triples.iter())
                    .map(|t| Ok(store.triple_number(*t)?.unwrap_or(u32::MAX)))
                    .collect::<Result<Vec<u32>>>()?;
                vectors.similarities(asked, &ids)?
            }
            None => self.encoded(asked, triples, graph)?,
        };
        let score = |cosine: f32| (0.5 + 0.5 * cosine).clamp(0.0, 1.0);
        Ok(cosines.into_iter().map(score).collect())
    }

    /// What lies in the graph's folder, made by this encoder.
    fn open(&self, graph: &dyn Graph) -> Result<Option<(Store, Vectors)>> {
        let Some(folder) = graph.folder() else {
            return Ok(None);
        };
        let store = Store::open(folder)?;
        match Vectors::open(&store, &*self.encoder, Part::Triples) {
            Ok(vectors) => Ok(Some((store, vectors))),
            Err(
                Error::NoIndex { .. }
                | Error::IndexOfAnotherGraph { .. }
                | Error::IndexOfAnotherEncoder { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn encoded(&self, asked: &[f32], triples: &[Triple], graph: &dyn Graph) -> Result<Vec<f32>> {
        let mut relations: HashMap<u32, String> = HashMap::new();
        let mut sentences: Vec<String> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut sentence_of = Vec::with_capacity(triples.len());
        for triple in triples {
            let relation = match relations.entry(triple.relation.0) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => {
                    new.insert(graph.relation_label(triple.relation)?.into_owned())
                }
            };
            let words = words_of(graph, *triple, relation)?;
            sentence_of.push(*known.entry(words).or_insert_with_key(|words| {
                sentences.push(words.clone());
                sentences.len() - 1
            }));
        }
        let sentences: Vec<&str> = sentences.iter().map(String::as_str).collect();
        let cosines: Vec<f32> = (self.encoder.encode(&sentences)?.rows())
            .map(|row| dot(asked, row))
            .collect();
        Ok(sentence_of.into_iter().map(|s| cosines[s]).collect())
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{Input, LoadOptions, load};
    use wherefore_model::encode;

    use super::*;
    use crate::index::{self, IndexOptions};

    #[test]
    fn kept_vectors_give_the_scores_of_encoding_anew() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("films.txt");
        std::fs::write(
            &file,
            "Dawn|written_by|Ada\nDusk|written_by|Bob\nDawn|genre|Drama\n",
        )
        .unwrap();
        let folder = place.path().join("graph");
        load(
            &[Input::File(file)],
            &folder,
            &LoadOptions::default(),
            &|_| {},
        )
        .unwrap();
        let store = Store::open(&folder).unwrap();
        let triples: Vec<Triple> = store.triples().map(Result::unwrap).collect();
        for (i, triple) in (0..).zip(&triples) {
            assert_eq!(store.triple_number(*triple).unwrap(), Some(i));
        }
        assert_eq!(store.triple_number(Triple::new(0, 9, 0)).unwrap(), None);
        let encoder = encode::open("static").unwrap();
        let scores = || {
            let scorer = TripleEncoder::new(Arc::clone(&encoder));
            let kept = scorer.open(&store).unwrap().is_some();
            (
                scorer.scores("Who wrote Dawn?", &triples, &store).unwrap(),
                kept,
            )
        };
        let (anew, kept) = scores();
        assert!(!kept);
        let options = IndexOptions {
            triples: true,
            ..IndexOptions::default()
        };
        index::build(&store, &*encoder, &options, &|_| {}).unwrap();
        let (found, kept) = scores();
        assert!(kept);
        for (a, b) in anew.iter().zip(&found) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    }
}
