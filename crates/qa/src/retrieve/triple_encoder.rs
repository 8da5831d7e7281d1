//! How near triples are in meaning to a text.
//!
//! ```text
//! s(h, r, t) = (1 + cos(enc(text), enc("h r t"))) / 2
//! ```
//!
//! Vectors that `wherefore index --triples` keeps with the graph are used; without them, triples
//! are encoded when asked for, equal sentences once. So are triples that came after the vectors
//! were made, and those of which an end was called otherwise since.

use std::collections::HashMap;
use std::sync::Arc;

use wherefore_graph::{Graph, Store, Triple};
use wherefore_model::Encoder;
use wherefore_model::vector::dot;

use super::vectors::words_of;
use crate::error::{Error, Result};
use crate::index::{Part, Vectors};
use crate::per_graph::PerGraph;

/// An encoder with the triples of the graph at hand.
pub(crate) struct TripleEncoder {
    encoder: Arc<dyn Encoder>,
    kept: PerGraph<Option<Vectors>>,
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
        let kept = self.kept.get(graph, |graph| self.open(graph))?;
        let cosines = match (&*kept, graph.store()) {
            (Some(vectors), Some(store)) => self.looked_up(asked, triples, vectors, store)?,
            _ => self.encoded(asked, triples, graph)?,
        };
        let score = |cosine: f32| (0.5 + 0.5 * cosine).clamp(0.0, 1.0);
        Ok(cosines.into_iter().map(score).collect())
    }

    /// What lies in the graph's folder, made by this encoder.
    fn open(&self, graph: &dyn Graph) -> Result<Option<Vectors>> {
        let Some(store) = graph.store() else {
            return Ok(None);
        };
        match Vectors::open(store, &*self.encoder, Part::Triples) {
            Ok(vectors) => Ok(Some(vectors)),
            Err(
                Error::NoIndex { .. }
                | Error::IndexOfAnotherGraph { .. }
                | Error::IndexOfAnotherEncoder { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn looked_up(
        &self,
        asked: &[f32],
        triples: &[Triple],
        vectors: &Vectors,
        store: &Store,
    ) -> Result<Vec<f32>> {
        let renamed = store.renamed();
        let changed = |e| renamed.binary_search(&e).is_ok();
        let (mut kept, mut late) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        for (place, triple) in triples.iter().enumerate() {
            // a triple that the files have was given a vector
            match store.triple_number(*triple)? {
                Some(number)
                    if !changed(triple.head)
                        && !changed(triple.tail)
                        && !(store.relation_entity(triple.relation)?).is_some_and(changed) =>
                {
                    kept.0.push(place);
                    kept.1.push(number);
                }
                _ => {
                    late.0.push(place);
                    late.1.push(*triple);
                }
            }
        }
        let mut cosines = vec![0.0; triples.len()];
        let found = vectors.similarities(asked, &kept.1)?;
        let encoded = match late.1.is_empty() {
            true => Vec::new(),
            false => self.encoded(asked, &late.1, store)?,
        };
        for (place, cosine) in (kept.0.iter().zip(found)).chain(late.0.iter().zip(encoded)) {
            cosines[*place] = cosine;
        }
        Ok(cosines)
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
    use wherefore_graph::{Action, ChangeSet, Format, Input, LoadOptions, load};
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
        // a triple that came later is encoded, the others keep their vectors
        let come = ChangeSet::parse("Dusk|genre|Noir\n", Action::Add, Format::Pipe, false);
        let (changed, _) = store.change(&come.unwrap()).unwrap();
        let triples: Vec<Triple> = changed.triples().map(Result::unwrap).collect();
        assert_eq!(triples.len(), 4);
        let score = |kept: bool| {
            let scorer = TripleEncoder::new(Arc::clone(&encoder));
            let asked = encoder.encode_queries(&["Who wrote Dawn?"]).unwrap();
            match kept {
                true => scorer
                    .scores("Who wrote Dawn?", &triples, &changed)
                    .unwrap(),
                false => scorer
                    .encoded(asked.row(0), &triples, &changed)
                    .unwrap()
                    .iter()
                    .map(|c| 0.5 + 0.5 * c)
                    .collect(),
            }
        };
        for (a, b) in score(true).iter().zip(&score(false)) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    }
}
