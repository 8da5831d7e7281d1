//! Scores the triples around the topics with a trained network: QR-GAT, the distance scorer or PNA.
//!
//! The networks and their equations are in [`wherefore_model::qr_gat`],
//! [`wherefore_model::distance_mlp`] and [`wherefore_model::pna`]:
//!
//! ```text
//! s(t) = σ(logit of t)        s(e) = σ(max over ends of triples at e of their logit as an answer)
//! ```
//!
//! Topics and nodes without a name score 0 as answers. A network without answer logits, as the
//! paper has it, leaves s(e) to be the best s(t) at e.
//!
//! What does not depend on the question ([`Parts`]) is read from the graph's folder if `wherefore
//! index --model` wrote it there, in half precision; otherwise the labels of the neighbourhood are
//! encoded for each question, in full precision. Scores differ by that rounding.
//!
//! Departures: entities without a name have the zero vector; the neighbourhood is cut out by hops and
//! PageRank (`neighbourhood.rs`), where the papers' benchmarks bring theirs. Those of the networks
//! stand at the heads of their files.

mod parts;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};
use wherefore_model::checkpoint::Checkpoint;
use wherefore_model::qr_gat::{Rows, Subgraph, Table};
use wherefore_model::scoring::{TripleNetwork, TripleScorer};
use wherefore_model::tensor::Device;
use wherefore_model::vector::sigmoid;
use wherefore_model::{Encoder, distance_mlp, encode, pna, qr_gat};

use super::neighbourhood::{Neighbourhood, NeighbourhoodConfig};
use super::vectors::{entity_vectors, relation_vectors};
use super::{Retriever, ScoredTriples, best_of_ends};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::per_graph::PerGraph;
use crate::question::Question;

pub use parts::{Parts, PartsReport};

/// The key under which a checkpoint's training notes keep its neighbourhoods.
pub const NEIGHBOURHOOD: &str = "neighbourhood";

/// Settings of [`NetworkRetriever`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// The checkpoint's folder.
    pub model: PathBuf,
    /// The encoder, where it lies elsewhere than when the checkpoint was trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// What is looked at; what the network was trained on, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbourhood: Option<NeighbourhoodConfig>,
}

/// Retrieves with a trained QR-GAT.
pub type QrGat = NetworkRetriever<qr_gat::Network>;
/// Retrieves with a trained distance scorer, as SubgraphRAG does.
pub type DistanceMlp = NetworkRetriever<distance_mlp::Network>;
/// Retrieves with a trained PNA network over entities.
pub type Pna = NetworkRetriever<pna::Network>;

/// Room that a network's scorer needs.
type Room<N> = <<N as TripleNetwork>::Scorer as TripleScorer>::Scratch;

/// Retrieves with a trained network.
pub struct NetworkRetriever<N: TripleNetwork> {
    identity: String,
    scorer: N::Scorer,
    encoder: Arc<dyn Encoder>,
    neighbourhood: NeighbourhoodConfig,
    /// What lies in the graph's folder; none where nothing does.
    parts: PerGraph<Option<Parts>>,
    /// Parts of a graph's relations, where nothing lies in its folder.
    relations: PerGraph<Vec<f32>>,
    /// Rooms that no question is using.
    scratch: Mutex<Vec<Room<N>>>,
}

impl<N: TripleNetwork> NetworkRetriever<N> {
    /// Reads the checkpoint and opens its encoder.
    pub fn new(config: &NetworkConfig) -> Result<Self> {
        if config.model.as_os_str().is_empty() {
            return Err(Error::NoModel { method: N::METHOD });
        }
        let checkpoint: Checkpoint<N> = Checkpoint::load(&config.model, &Device::Cpu)?;
        let description = &checkpoint.description;
        let name = config.encoder.as_ref().unwrap_or(&description.encoder.name);
        let encoder = encode::open(name)?;
        checkpoint.check_encoder(&*encoder)?;
        let neighbourhood = match &config.neighbourhood {
            Some(given) => given.clone(),
            None => match description.training.get(NEIGHBOURHOOD) {
                Some(value) => serde_json::from_value(value.clone()).map_err(|e| {
                    Error::Config(format!("the checkpoint's `{NEIGHBOURHOOD}`: {e}"))
                })?,
                None => NeighbourhoodConfig::default(),
            },
        };
        neighbourhood.check()?;
        Ok(Self {
            identity: checkpoint.identity().to_owned(),
            scorer: checkpoint.network.scorer()?,
            encoder,
            neighbourhood,
            parts: PerGraph::default(),
            relations: PerGraph::default(),
            scratch: Mutex::default(),
        })
    }

    /// Computes what does not depend on questions for a whole graph and keeps it in its folder.
    /// `see` is told how many entities are done.
    pub fn index(&self, graph: &dyn Graph, see: &mut dyn FnMut(usize)) -> Result<PartsReport> {
        let key = (N::METHOD, self.identity.as_str());
        parts::build(graph, key, &self.scorer, &*self.encoder, see)
    }
}

impl<N: TripleNetwork> Retriever for NetworkRetriever<N> {
    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let topics: Vec<EntityId> = links.iter().map(|link| link.entity).collect();
        let around = Neighbourhood::cut(graph, &topics, &self.neighbourhood)?;
        if around.subgraph.triples().is_empty() {
            return Ok(ScoredTriples {
                entity_scores: vec![0.0; around.subgraph.entities().len()],
                subgraph: around.subgraph,
                topics: around.topics,
                notes: around.notes,
                ..ScoredTriples::default()
            });
        }
        let asked = self.encoder.encode_queries(&[&question.text])?;
        let (flags, triples) = (around.topic_flags(), around.plain_triples());
        let subgraph = &around.subgraph;
        let relations: Vec<u32> = subgraph.relations().iter().map(|r| r.0).collect();
        let parts = self.parts.get(graph, |graph| self.kept(graph))?;

        let mut scratch = self.room();
        let mut score = |entities: &[u32], rows: &dyn Rows, of_relations: &dyn Rows| {
            let question = Subgraph {
                question: asked.row(0),
                entities,
                topics: &flags,
                relations: &relations,
                triples: &triples,
            };
            let scored = self
                .scorer
                .score(&question, rows, of_relations, &mut scratch)?;
            let confidence = scored.triples.iter().map(|l| sigmoid(*l)).collect();
            let answers = scored
                .answers
                .map(|ends| self.answers(&around, ends, graph))
                .transpose()?;
            Ok::<(Vec<f32>, Option<Vec<f32>>), Error>((confidence, answers))
        };
        let (triple_scores, answers) = match &*parts {
            Some(parts) => {
                let entities: Vec<u32> = subgraph.entities().iter().map(|e| e.0).collect();
                score(&entities, &parts.entities()?, &parts.relations()?)?
            }
            None => {
                let of_relations = self.relations.get(graph, |graph| {
                    let labels = relation_vectors(graph, &*self.encoder)?;
                    let labels = Table::new(labels.values(), labels.dim())?;
                    Ok(self.scorer.relation_parts(&labels)?.to_f32())
                })?;
                let of_relations = Table::new(&of_relations, self.scorer.relation_width())?;
                let labels =
                    entity_vectors(graph, &*self.encoder, subgraph.entities(), &mut |_| {})?;
                let labels = Table::new(&labels, self.encoder.dim())?;
                let own: Vec<u32> = (0..subgraph.entities().len() as u32).collect();
                score(&own, &self.scorer.entity_parts(&labels)?, &of_relations)?
            }
        };
        self.leave(scratch);
        Ok(ScoredTriples {
            entity_scores: match answers {
                Some(scores) => scores,
                None => best_of_ends(subgraph, &around.topics, &triple_scores),
            },
            triple_scores,
            topics: around.topics,
            notes: around.notes,
            subgraph: around.subgraph,
            ..ScoredTriples::default()
        })
    }
}

impl<N: TripleNetwork> NetworkRetriever<N> {
    /// How likely each entity is an answer.
    fn answers(
        &self,
        around: &Neighbourhood,
        [heads, tails]: [&[f32]; 2],
        graph: &dyn Graph,
    ) -> Result<Vec<f32>> {
        let subgraph = &around.subgraph;
        let mut best = vec![f32::NEG_INFINITY; subgraph.entities().len()];
        for ((triple, head), tail) in subgraph.triples().iter().zip(heads).zip(tails) {
            for (end, logit) in [(triple.head, head), (triple.tail, tail)] {
                let best = &mut best[end.index()];
                *best = best.max(*logit);
            }
        }
        for topic in &around.topics {
            best[topic.index()] = f32::NEG_INFINITY;
        }
        best.into_iter()
            .zip(subgraph.entities())
            .map(|(logit, entity)| {
                Ok(
                    match logit > f32::NEG_INFINITY && graph.is_named(*entity)? {
                        true => sigmoid(logit),
                        false => 0.0,
                    },
                )
            })
            .collect()
    }

    /// The parts that the graph's folder keeps.
    fn kept(&self, graph: &dyn Graph) -> Result<Option<Parts>> {
        Parts::open(graph, (N::METHOD, self.identity.as_str()), &self.scorer)
    }

    fn room(&self) -> Room<N> {
        // rooms are put back whole, so a panic elsewhere leaves them sound
        let mut rooms = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.pop().unwrap_or_default()
    }

    fn leave(&self, scratch: Room<N>) {
        let mut rooms = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.push(scratch);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use wherefore_graph::{Adjacency, Input, LoadOptions, NameMatch, Store, load, toy};
    use wherefore_model::Random;
    use wherefore_model::checkpoint::{Description, save};
    use wherefore_model::qr_gat::{Config, Network};

    use super::*;

    /// An untrained network over the built-in table.
    fn checkpoint(folder: &Path, answers: bool) -> NetworkConfig {
        let encoder = encode::open("static").unwrap();
        let sizes = Config {
            dim: encoder.dim(),
            hidden: 8,
            heads: 2,
            steps: true,
            answers,
            ..Config::default()
        };
        let network = Network::new(sizes.clone(), &mut Random::new(1), &Device::Cpu).unwrap();
        save(
            folder,
            &Description::of::<qr_gat::Network>(sizes, "static", 1),
            &network,
            None,
        )
        .unwrap();
        NetworkConfig {
            model: folder.to_owned(),
            ..NetworkConfig::default()
        }
    }

    fn scores(retriever: &QrGat, graph: &dyn Graph) -> ScoredTriples {
        let links = [Link {
            entity: graph
                .entities_named("San Francisco Giants", NameMatch::Exact)
                .unwrap()[0],
            mention: String::new(),
            span: None,
            score: 1.0,
        }];
        let question = Question::new("Who coaches the San Francisco Giants?");
        retriever.retrieve(&question, &links, graph).unwrap()
    }

    #[test]
    fn topics_and_unnamed_nodes_are_no_answers() {
        let place = tempfile::tempdir().unwrap();
        for answers in [true, false] {
            let config = checkpoint(&place.path().join("model"), answers);
            let graph = toy::graph();
            let scored = scores(&QrGat::new(&config).unwrap(), &graph);
            assert_eq!(scored.triple_scores.len(), scored.subgraph.triples().len());
            assert!(scored.triple_scores.iter().all(|s| (0.0..=1.0).contains(s)));
            for (own, score) in scored.entity_scores.iter().enumerate() {
                let entity = scored.subgraph.entities()[own];
                let topic = scored.topics.contains(&EntityId(own as u32));
                let none = topic || answers && !graph.is_named(entity).unwrap();
                assert_eq!(*score == 0.0, none);
            }
        }
    }

    #[test]
    fn parts_in_the_folder_give_the_same_scores() {
        let place = tempfile::tempdir().unwrap();
        let config = checkpoint(&place.path().join("model"), true);
        let graph = toy::graph();
        let file = place.path().join("toy.txt");
        let label = |e| graph.entity_label(e).unwrap().into_owned();
        let lines: Vec<String> = graph
            .triples()
            .map(|t| {
                let relation = graph.relation_label(t.relation).unwrap();
                format!("{}|{relation}|{}", label(t.head), label(t.tail))
            })
            .collect();
        std::fs::write(&file, lines.join("\n")).unwrap();
        let folder = place.path().join("graph");
        let inputs = [Input::File(file)];
        load(&inputs, &folder, &LoadOptions::default(), &|_| {}).unwrap();
        let store = Store::open(&folder).unwrap();
        let before = scores(&QrGat::new(&config).unwrap(), &store);
        let retriever = QrGat::new(&config).unwrap();
        let report = retriever.index(&store, &mut |_| {}).unwrap();
        assert_eq!(report.entities, store.entity_bound());
        let after = scores(&retriever, &store);
        assert!(retriever.parts.get(&store, |_| Ok(None)).unwrap().is_some());
        for (a, b) in before.triple_scores.iter().zip(&after.triple_scores) {
            assert!((a - b).abs() < 1e-2, "{a} {b}");
        }
        // parts of another checkpoint are not taken
        let other = checkpoint(&place.path().join("other"), false);
        let other = QrGat::new(&other).unwrap();
        scores(&other, &store);
        assert!(other.parts.get(&store, |_| Ok(None)).unwrap().is_none());
        // a file cut short is named, with the command that mends it
        let cut = report.folder.join("entities");
        std::fs::write(&cut, [0u8; 8]).unwrap();
        let again = QrGat::new(&config).unwrap();
        let error = again.parts.get(&store, |_| again.kept(&store)).unwrap_err();
        assert!(error.hint().unwrap().contains("wherefore index"), "{error}");
    }

    #[test]
    fn a_missing_model_is_said() {
        let error = QrGat::new(&NetworkConfig::default()).err().unwrap();
        assert!(error.hint().unwrap().contains("wherefore train qr-gat"));
    }
}
