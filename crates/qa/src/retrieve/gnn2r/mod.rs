//! Answers with the subgraphs that prove them, by a graph network and a sentence encoder.
//!
//! Wang et al., "GNN2R: Weakly-Supervised Rationale-Providing Question Answering over Knowledge
//! Graphs". Step I brings the entities around the topics nearer to the question or farther from it
//! ([`wherefore_model::gnn2r`]); the nearest are candidates. Step II joins them to the topics
//! (`trails.rs`), tells each way in words (`sentences.rs`), and takes the sentence that is most
//! like the question:
//!
//! ```text
//! candidates = the N entities with the least d(e) = ‖q − e‖, none ρ farther than the nearest
//! best       = argmax over sentences of cos(question, sentence) − λ · the least d of its candidates
//! answers    = what the best sentence tells of with d(e) ≤ θ · the least d among them, nearest first
//! confidence = ½(1 + cos) · least d / d(e)
//! ```
//!
//! N is `candidates`, θ is `threshold`. ρ is `reach`, and ours: the loss of step I wants answers
//! nearer than others by its margin, so what is much farther than the nearest was told apart already.
//! λ is `nearness`, and ours too: with 0 the sentence alone decides, as published.
//! All subgraphs behind the best sentence are the rationale;
//! its triples score ½(1 + cos), all others 0. The confidence is no probability, and ours.
//!
//! What depends on relations alone is computed once for a graph. Nodes without a name are no
//! candidates; topics can be, where a way leads back to them.
//!
//! Departures: ρ, λ and the confidence; with `complete` the best sentence is run as a query, and not
//! candidates alone are answers (`complete.rs`); trails may meet an entity again and pass nodes
//! without a name (`trails.rs`, `sentences.rs`). A training chooses θ and λ by the validation questions
//! from its `grid`. `docs/gnn2r.md` has all of them, with the settings that undo them.

mod complete;
mod explain;
mod explanation;
mod explored;
mod sentences;
mod trails;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, RelationId, Triple};
use wherefore_model::checkpoint::{self, Checkpoint, Checkpointable};
use wherefore_model::gnn2r::sentence::{SentenceEncoder, SentenceReader};
use wherefore_model::gnn2r::{Network, Reader, Relations, Shape};
use wherefore_model::tensor::Device;
use wherefore_model::vector::dot;
use wherefore_model::{Encoder, encode};

use super::neighbourhood::{Neighbourhood, NeighbourhoodConfig};
use super::network::NEIGHBOURHOOD;
use super::vectors::relation_texts_to_states;
use super::{Rationale, Rationales, Retriever, ScoredTriples};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::per_graph::PerGraph;
use crate::question::Question;

pub use explanation::{Explanation, LayerPicture, Place, Role};
pub use explored::Explored;
pub use sentences::{Sentence, Told};
use sentences::{Words, sentences};
use trails::Ground;
pub use trails::{Trail, TrailConfig};

/// The key under which a checkpoint's training notes keep how it answers.
pub const ANSWERING: &str = "answering";
/// The folder inside a checkpoint that holds what the sentence encoder learned.
pub const SENTENCES: &str = "sentences";

/// Settings of [`Gnn2r`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gnn2rConfig {
    /// The checkpoint's folder.
    pub model: PathBuf,
    /// The encoder, where it lies elsewhere than when the checkpoint was trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// What is looked at; what the network was trained on, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbourhood: Option<NeighbourhoodConfig>,
    /// How answers are drawn; what the checkpoint says, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answering: Option<Answering>,
    /// Whether what each layer did is kept for people.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub explain: bool,
}

/// How answers are drawn from distances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Answering {
    /// N: the nearest entities that are looked into.
    pub candidates: usize,
    /// ρ: how much farther than the nearest a candidate may be; any, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<f32>,
    /// θ: answers are at most so many times as far as the nearest.
    pub threshold: f32,
    /// λ: how much the distance of its nearest candidate counts against a sentence; 0 as published.
    pub nearness: f32,
    /// Whether all that the best sentence tells of can be an answer, and not candidates alone.
    pub complete: bool,
    /// The encoder of sentences, if it is not that of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// Whether the second step decides; without it the nearest candidates are the answers.
    pub sentences: bool,
    /// The ways from topics to candidates.
    pub trails: TrailConfig,
}

impl Default for Answering {
    /// N is the paper's on PQ-2H (elsewhere it has 5 to 25), θ that of most of the authors' released
    /// runs; `complete` is ours.
    fn default() -> Self {
        Self {
            candidates: 20,
            reach: None,
            threshold: 1.2,
            nearness: 0.0,
            complete: true,
            encoder: None,
            sentences: true,
            trails: TrailConfig::default(),
        }
    }
}

impl Answering {
    /// Refuses settings with which nothing is found.
    pub fn check(&self) -> Result<()> {
        if self.candidates == 0 {
            return Err(Error::Config("`candidates` must be at least 1".into()));
        }
        if !self.reach.is_none_or(|reach| reach >= 0.0) {
            return Err(Error::Config("`reach` must be at least 0".into()));
        }
        if !(self.threshold >= 1.0 && self.threshold.is_finite()) {
            return Err(Error::Config("`threshold` must be at least 1".into()));
        }
        if !(self.nearness >= 0.0 && self.nearness.is_finite()) {
            return Err(Error::Config("`nearness` must be at least 0".into()));
        }
        self.trails.check()
    }
}

/// The sentence that is taken, from each one's cosine with the question and the least distance of
/// its candidates: the greatest `cos − λ·d`, the first of equals.
pub fn best_sentence(
    sentences: impl IntoIterator<Item = (f32, f32)>,
    nearness: f32,
) -> Option<usize> {
    let scores = sentences
        .into_iter()
        .map(|(cosine, d)| cosine - nearness * d);
    let best = scores.enumerate();
    let best = best.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    best.map(|(sentence, _)| sentence)
}

/// All ways from topics to candidates of a neighbourhood, cheapest first; false if the limits left
/// some out. Triples are local `[head, relation, tail]`, and `named` says which entities have a name.
pub fn trails(
    triples: &[[u32; 3]],
    named: &[bool],
    topics: &[u32],
    candidates: &[u32],
    config: &TrailConfig,
) -> (Vec<Trail>, bool) {
    Ground::new(triples, named).trails(topics, candidates, config)
}

/// Retrieves answers with their rationales.
pub struct Gnn2r {
    reader: Reader,
    encoder: Arc<dyn Encoder>,
    sentences: Arc<dyn Encoder>,
    neighbourhood: NeighbourhoodConfig,
    answering: Answering,
    explain: bool,
    relations: PerGraph<Relations>,
    /// Relations of graphs that have no identity, by label.
    by_label: Mutex<ByLabel>,
}

#[derive(Default)]
struct ByLabel {
    rows: BTreeMap<String, u32>,
    relations: Option<Relations>,
}

/// The encoder of sentences of a checkpoint: what it learned, or else `base`.
fn open_sentences(model: &Path, base: Arc<dyn Encoder>) -> Result<Arc<dyn Encoder>> {
    let folder = model.join(SENTENCES);
    if !checkpoint::exists(&folder) {
        return Ok(base);
    }
    match checkpoint::read_description(&folder) {
        Ok(found) if found.method == SentenceReader::METHOD => {
            let learned: Checkpoint<SentenceReader> = Checkpoint::load(&folder, &Device::Cpu)?;
            learned.check_encoder(&*base)?;
            Ok(Arc::new(SentenceEncoder::new(base, &learned.network)?))
        }
        // a whole model, as a transformer that was fine-tuned is kept
        _ => Ok(encode::open(
            &checkpoint::in_place(&folder).to_string_lossy(),
        )?),
    }
}

impl Gnn2r {
    /// Reads the checkpoint and opens its encoders.
    pub fn new(config: &Gnn2rConfig) -> Result<Self> {
        if config.model.as_os_str().is_empty() {
            return Err(Error::NoModel { method: "gnn2r" });
        }
        let checkpoint: Checkpoint<Network> = Checkpoint::load(&config.model, &Device::Cpu)?;
        let description = &checkpoint.description;
        let name = config.encoder.as_ref().unwrap_or(&description.encoder.name);
        let encoder = encode::open(name)?;
        checkpoint.check_encoder(&*encoder)?;
        let notes = &description.training;
        let neighbourhood = match &config.neighbourhood {
            Some(given) => given.clone(),
            None => noted(notes.get(NEIGHBOURHOOD), NEIGHBOURHOOD)?,
        };
        let answering = match &config.answering {
            Some(given) => given.clone(),
            None => noted(notes.get(ANSWERING), ANSWERING)?,
        };
        let base = match &answering.encoder {
            Some(name) => encode::open(name)?,
            None => Arc::clone(&encoder),
        };
        let sentences = open_sentences(&config.model, base)?;
        Ok(Self {
            explain: config.explain,
            ..Self::from_parts(
                Reader::new(checkpoint.network)?,
                encoder,
                sentences,
                neighbourhood,
                answering,
            )?
        })
    }

    /// Puts a network and its encoders together.
    pub fn from_parts(
        reader: Reader,
        encoder: Arc<dyn Encoder>,
        sentences: Arc<dyn Encoder>,
        neighbourhood: NeighbourhoodConfig,
        answering: Answering,
    ) -> Result<Self> {
        neighbourhood.check()?;
        answering.check()?;
        Ok(Self {
            reader,
            encoder,
            sentences,
            neighbourhood,
            answering,
            explain: false,
            relations: PerGraph::default(),
            by_label: Mutex::default(),
        })
    }

    /// Looks around the topics: distances, candidates, and what joins them to the topics. `also` are
    /// entities that are candidates however far they are.
    pub fn explore(
        &self,
        question: &str,
        topics: &[EntityId],
        also: &[EntityId],
        graph: &dyn Graph,
    ) -> Result<Explored> {
        let mut clock = Phases::start();
        let around = Neighbourhood::cut(graph, topics, &self.neighbourhood)?;
        let flags = around.topic_flags();
        let triples = around.plain_triples();
        let asked = self.encoder.token_states(&[question])?;
        clock.lap("retrieve.prepare");
        let (relations, rows) = self.relations(around.subgraph.relations(), graph)?;
        clock.lap("retrieve.relations");
        let shape = Shape {
            topics: &flags,
            relations: &rows,
            triples: &triples,
        };
        let near = self.reader.read(&asked, &shape, &relations, self.explain)?;
        clock.lap("retrieve.network");
        let subgraph = &around.subgraph;
        let named = subgraph.entities().iter();
        let named: Vec<bool> = named
            .map(|e| Ok(graph.is_named(*e)?))
            .collect::<Result<_>>()?;
        let mut candidates: Vec<u32> = (0..named.len() as u32)
            .filter(|i| named[*i as usize])
            .collect();
        let distance = |i: &u32| near.distances[*i as usize];
        candidates.sort_by(|a, b| distance(a).total_cmp(&distance(b)).then(a.cmp(b)));
        let far = candidates.split_off(candidates.len().min(self.answering.candidates));
        if let (Some(reach), Some(first)) = (self.answering.reach, candidates.first()) {
            let farthest = distance(first) + reach;
            candidates.retain(|i| distance(i) <= farthest);
        }
        let wanted = |i: &u32| also.contains(&subgraph.entity(EntityId(*i)));
        candidates.extend(far.into_iter().filter(|i| !also.is_empty() && wanted(i)));
        clock.lap("retrieve.candidates");
        let ground = Ground::new(&triples, &named);
        let topics: Vec<u32> = around.topics.iter().map(|t| t.0).collect();
        let (trails, all) = ground.trails(&topics, &candidates, &self.answering.trails);
        clock.lap("retrieve.subgraphs");
        let relations = subgraph.relations().iter();
        let words = Words {
            relations: relations
                .map(|r| Ok(Words::relation(&graph.relation_label(*r)?)))
                .collect::<Result<_>>()?,
            topics: topics
                .iter()
                .map(|t| {
                    Ok((
                        *t,
                        graph
                            .entity_label(subgraph.entity(EntityId(*t)))?
                            .into_owned(),
                    ))
                })
                .collect::<Result<_>>()?,
        };
        let limits = &self.answering.trails;
        let (sentences, all_said) = sentences(question, &words, &ground, &named, &trails, limits);
        clock.lap("retrieve.sentences");
        let mut notes = around.notes.clone();
        if !all || !all_said {
            notes.push("not every way between topics and candidates was looked at".into());
        }
        Ok(Explored {
            around,
            near,
            candidates,
            trails,
            sentences,
            notes,
            named,
            phases: clock.laps,
        })
    }

    /// What relations sound like, and the row of each of `own`: computed once for a graph.
    fn relations(
        &self,
        own: &[RelationId],
        graph: &dyn Graph,
    ) -> Result<(Arc<Relations>, Vec<u32>)> {
        if graph.identity().is_some() {
            let relations = self.relations.get(graph, |graph| {
                let count = u32::try_from(graph.relation_bound()).expect("ids have 32 bits");
                let labels = (0..count)
                    .map(|id| Ok(graph.relation_label(RelationId(id))?.into_owned()))
                    .collect::<Result<Vec<String>>>()?;
                self.relations_of(&labels)
            })?;
            return Ok((relations, own.iter().map(|r| r.0).collect()));
        }
        // a small graph of its own: what other graphs had in common with it is known
        let labels = own
            .iter()
            .map(|r| Ok(graph.relation_label(*r)?.into_owned()))
            .collect::<Result<Vec<String>>>()?;
        let mut known = self.by_label.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<String> = labels.clone();
        new.retain(|label| !known.rows.contains_key(label));
        new.sort_unstable();
        new.dedup();
        if !new.is_empty() {
            let more = self.relations_of(&new)?;
            let first = known.rows.len() as u32;
            known.rows.extend(new.into_iter().zip(first..));
            match &mut known.relations {
                Some(relations) => relations.extend(&more),
                none => *none = Some(more),
            }
        }
        let rows: Vec<u32> = labels.iter().map(|label| known.rows[label]).collect();
        let picked = match &known.relations {
            Some(all) => all.select(&rows),
            None => self.relations_of(&[])?,
        };
        Ok((Arc::new(picked), (0..labels.len() as u32).collect()))
    }

    fn relations_of(&self, labels: &[String]) -> Result<Relations> {
        let states = relation_texts_to_states(&*self.encoder, labels)?;
        Ok(self.reader.relations(&states)?)
    }

    /// The cosine of the question with each sentence.
    pub fn similarities(&self, question: &str, sentences: &[&str]) -> Result<Vec<f32>> {
        let texts: Vec<&str> = sentences.iter().copied().chain([question]).collect();
        let rows = self.sentences.encode(&texts)?;
        let asked = rows.row(sentences.len());
        Ok((0..sentences.len())
            .map(|i| dot(asked, rows.row(i)))
            .collect())
    }

    /// The answers of what was explored, nearest first: the trails of each, and the confidence.
    fn answers(&self, question: &str, found: &mut Explored) -> Result<Option<Chosen>> {
        let (text, similarity, mut told) = match self.answering.sentences {
            true => {
                let texts: Vec<&str> = found.sentences.iter().map(|s| s.text.as_str()).collect();
                let similar = self.similarities(question, &texts)?;
                let least = found.sentences.iter().map(|sentence| {
                    let answers = sentence.answers.iter();
                    let all = answers.map(|told| found.near.distances[told.candidate as usize]);
                    all.fold(f32::INFINITY, f32::min)
                });
                let both = similar.iter().copied().zip(least);
                let Some(best) = best_sentence(both, self.answering.nearness) else {
                    return Ok(None);
                };
                let told = match self.answering.complete {
                    true => found.complete(best, &self.answering.trails),
                    false => found.sentences[best].answers.clone(),
                };
                let text = found.sentences[best].text.clone();
                (text, 0.5 * (1.0 + similar[best]), told)
            }
            false => {
                // all trails of each candidate, as the first step alone cannot tell them apart
                let mut told: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
                for (i, trail) in found.trails.iter().enumerate() {
                    told.entry(trail.end).or_default().push(i);
                }
                let told = told.into_iter().map(|(candidate, trails)| Told {
                    candidate,
                    trails: trails[..1].to_vec(),
                });
                (String::new(), 1.0, told.collect())
            }
        };
        let distance = |i: u32| found.near.distances[i as usize];
        told.sort_by(|a, b| distance(a.candidate).total_cmp(&distance(b.candidate)));
        let Some(least) = told.first().map(|told| distance(told.candidate)) else {
            return Ok(None);
        };
        told.retain(|told| distance(told.candidate) <= least * self.answering.threshold);
        Ok(Some(Chosen {
            sentence: text,
            similarity,
            answers: told
                .into_iter()
                .map(|told| {
                    let share = least / distance(told.candidate).max(f32::MIN_POSITIVE);
                    (told, (similarity * share.min(1.0)).clamp(0.0, 1.0))
                })
                .collect(),
        }))
    }
}

struct Chosen {
    sentence: String,
    similarity: f32,
    answers: Vec<(Told, f32)>,
}

impl Retriever for Gnn2r {
    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let topics: Vec<EntityId> = links.iter().map(|link| link.entity).collect();
        let mut found = self.explore(&question.text, &topics, &[], graph)?;
        let mut clock = Phases::start();
        let chosen = self.answers(&question.text, &mut found)?;
        clock.lap("retrieve.similarity");
        let subgraph = &found.around.subgraph;
        let mut triple_scores = vec![0.0f32; subgraph.triples().len()];
        let mut entity_scores = vec![0.0f32; subgraph.entities().len()];
        let mut rationales = None;
        if let Some(chosen) = chosen {
            let mut answers = Vec::with_capacity(chosen.answers.len());
            for (told, confidence) in &chosen.answers {
                entity_scores[told.candidate as usize] = *confidence;
                let mut paths = Vec::with_capacity(told.trails.len());
                for trail in told.trails.iter().map(|i| &found.trails[*i]) {
                    for (triple, _) in &trail.steps {
                        triple_scores[*triple as usize] = chosen.similarity;
                    }
                    let steps = trail.steps.iter();
                    paths.push(steps.map(|(t, _)| subgraph.triple(*t as usize)).collect());
                }
                answers.push(Rationale {
                    entity: subgraph.entity(EntityId(told.candidate)),
                    confidence: *confidence,
                    paths,
                });
            }
            rationales = Some(Rationales {
                sentence: chosen.sentence,
                answers,
            });
        }
        let explanation = match self.explain {
            true => Some(explain::explain(&found, rationales.as_ref(), graph)?),
            false => None,
        };
        found.phases.append(&mut clock.laps);
        Ok(ScoredTriples {
            triple_scores,
            entity_scores,
            topics: found.around.topics,
            subgraph: found.around.subgraph,
            notes: found.notes,
            phases: found.phases,
            rationales,
            explanation,
            ..ScoredTriples::default()
        })
    }
}

/// What the checkpoint's notes say under a key, or the default.
fn noted<T: Default + serde::de::DeserializeOwned>(
    value: Option<&serde_json::Value>,
    key: &str,
) -> Result<T> {
    match value {
        Some(value) => serde_json::from_value(value.clone())
            .map_err(|e| Error::Config(format!("the checkpoint's `{key}`: {e}"))),
        None => Ok(T::default()),
    }
}

struct Phases {
    last: Instant,
    laps: Vec<(&'static str, f64)>,
}

impl Phases {
    fn start() -> Self {
        Self {
            last: Instant::now(),
            laps: Vec::new(),
        }
    }

    fn lap(&mut self, phase: &'static str) {
        let now = Instant::now();
        self.laps
            .push((phase, (now - self.last).as_secs_f64() * 1e3));
        self.last = now;
    }
}

/// For each trail of a sentence's answer, the entities that stand in the answer's place: those that
/// the trail's last triple, its other end held, has in the graph.
pub fn standing_in(found: &Explored, trail: &Trail, graph: &dyn Graph) -> Result<Vec<EntityId>> {
    let Some(&(triple, forward)) = trail.steps.last() else {
        return Ok(Vec::new());
    };
    let Triple {
        head,
        relation,
        tail,
    } = found.around.subgraph.triple(triple as usize);
    let row = match forward {
        true => graph.outgoing(head)?,
        false => graph.incoming(tail)?,
    };
    let edges = wherefore_graph::edges_by_relation(&row, relation);
    Ok(edges.iter().map(|edge| edge.entity).collect())
}
