//! Scores triples by how near they are to the question in meaning: a baseline without training.
//!
//! ```text
//! s(h, r, t) = (1 + cos(enc(q), enc("h r t"))) / 2
//! ```
//!
//! enc is an encoder, q the question, `h r t` the triple in words; nodes without a name are left
//! out of it. An entity scores as the best of its triples; topics score 0. The triples are those
//! of a neighbourhood; `wherefore index --triples` encodes them once. Without it they are encoded
//! when asked for: with the built-in table that is a millisecond for some hundred triples, with a
//! transformer seconds.

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, Triple};
use wherefore_model::encode;

use super::neighbourhood::{Neighbourhood, NeighbourhoodConfig};
use super::triple_encoder::TripleEncoder;
use super::{Retriever, ScoredTriples, best_of_ends};
use crate::error::Result;
use crate::link::Link;
use crate::question::Question;

/// Settings of [`Similarity`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimilarityConfig {
    /// The encoder's name: `static`, `hashing`, a model folder or an added model.
    pub encoder: String,
    /// What is looked at.
    pub neighbourhood: NeighbourhoodConfig,
}

impl Default for SimilarityConfig {
    fn default() -> Self {
        Self {
            encoder: "static".into(),
            neighbourhood: NeighbourhoodConfig::default(),
        }
    }
}

/// Retrieves by cosine.
pub struct Similarity {
    triples: TripleEncoder,
    neighbourhood: NeighbourhoodConfig,
}

impl Similarity {
    /// Opens the encoder.
    pub fn new(config: SimilarityConfig) -> Result<Self> {
        config.neighbourhood.check()?;
        Ok(Self {
            triples: TripleEncoder::new(encode::open(&config.encoder)?),
            neighbourhood: config.neighbourhood,
        })
    }
}

impl Retriever for Similarity {
    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let topics: Vec<EntityId> = links.iter().map(|link| link.entity).collect();
        let Neighbourhood {
            subgraph,
            topics,
            notes,
        } = Neighbourhood::cut(graph, &topics, &self.neighbourhood)?;
        let triples: Vec<Triple> = (0..subgraph.triples().len())
            .map(|i| subgraph.triple(i))
            .collect();
        let triple_scores = self.triples.scores(&question.text, &triples, graph)?;
        Ok(ScoredTriples {
            entity_scores: best_of_ends(&subgraph, &topics, &triple_scores),
            triple_scores,
            topics,
            notes,
            subgraph,
            ..ScoredTriples::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{NameMatch, toy};

    use super::*;

    #[test]
    fn the_triple_that_says_what_is_asked_scores_best() {
        let graph = toy::graph();
        let topic = graph
            .entities_named("San Francisco Giants", NameMatch::Exact)
            .unwrap()[0];
        let links = [Link {
            entity: topic,
            mention: String::new(),
            span: None,
            score: 1.0,
        }];
        let similarity = Similarity::new(SimilarityConfig::default()).unwrap();
        let question = Question::new("San Francisco Giants coach Bruce Bochy");
        let scored = similarity.retrieve(&question, &links, &graph).unwrap();
        let best = (0..scored.triple_scores.len())
            .max_by(|a, b| scored.triple_scores[*a].total_cmp(&scored.triple_scores[*b]))
            .unwrap();
        let triple = scored.subgraph.triple(best);
        assert_eq!(graph.entity_label(triple.tail).unwrap(), "Bruce Bochy");
        assert!(scored.triple_scores.iter().all(|s| (0.0..=1.0).contains(s)));
        assert_eq!(scored.entity_scores[scored.topics[0].index()], 0.0);
    }
}
