//! AMAR's three aspects of a question: entities, relations and subgraphs, as texts with scores.
//!
//! - **Entities**: the linker's candidates.
//! - **Relations**: the question with its mentions masked as `[BLANK]` against all relations of
//!   the graph, by a trained [`RelationMatcher`] or, without one, by the encoder's cosine; the first
//!   of them re-ranked by a [`PairScorer`], where the checkpoint has one.
//! - **Subgraphs**: the triples of each entity, cut into documents of at most 100 words
//!   (`Oceania location location contains Australia`), ranked by BM25 against the question:
//!
//! ```text
//! BM25(d, q) = Σ_w idf(w) · f_w·(k₁ + 1) / (f_w + k₁·(1 − b + b·|d| / mean|d|))     k₁ = 1.2, b = 0.75
//! ```
//!
//! Departures: documents are those of the linked entities, and idf is counted over them; a
//! relation's document has the triples of one entity and one relation together.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use wherefore_graph::{EntityId, Graph, RelationId, Triple};
use wherefore_model::checkpoint::{self, Checkpoint, Checkpointable};
use wherefore_model::relation_pairs::{PairScorer, Words};
use wherefore_model::relations::{Featured, Near, RelationMatcher, features};
use wherefore_model::tensor::{Device, Tensor};
use wherefore_model::vector::dot;
use wherefore_model::{Embeddings, Encoder, encode};

use crate::error::{Error, Result};
use crate::link::{Link, Linker};
use crate::per_graph::PerGraph;
use crate::question::Question;
use crate::words::{for_each_stem, opened};

/// What stands for a mention.
pub const BLANK: &str = "[BLANK]";
/// Most words of a document.
const DOCUMENT_WORDS: usize = 100;
/// Triples of an entity that become documents.
const MAX_TRIPLES: usize = 2000;
/// Neighbours by one relation that are looked at for relations two steps away.
const NEIGHBOURS: usize = 8;

/// A retrieved text.
#[derive(Clone, Debug, PartialEq)]
pub struct Retrieved<T> {
    /// What it is.
    pub item: T,
    /// What a language model reads.
    pub text: String,
    /// Higher is better.
    pub score: f32,
}

/// What was retrieved for a question, each aspect best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aspects {
    /// Entities that it may be about.
    pub entities: Vec<Retrieved<EntityId>>,
    /// Relations that its form may use.
    pub relations: Vec<Retrieved<RelationId>>,
    /// Documents of triples around the entities.
    pub subgraphs: Vec<Retrieved<Vec<Triple>>>,
}

/// Retrieves the three aspects.
pub struct AspectRetriever {
    linker: Arc<dyn Linker>,
    relations: RelationRetriever,
}

impl AspectRetriever {
    /// Entities from a linker, relations from a retriever.
    pub fn new(linker: Arc<dyn Linker>, relations: RelationRetriever) -> Self {
        Self { linker, relations }
    }

    /// The `k` best of each aspect.
    pub fn retrieve(&self, question: &Question, graph: &dyn Graph, k: usize) -> Result<Aspects> {
        let mut aspects = Aspects::default();
        let mut seen = std::collections::HashSet::new();
        for mention in self.linker.mentions(question, graph)? {
            for candidate in mention.candidates {
                if seen.insert(candidate.entity) {
                    aspects.entities.push(Retrieved {
                        item: candidate.entity,
                        text: graph.entity_label(candidate.entity)?.into_owned(),
                        score: candidate.score,
                    });
                }
            }
        }
        aspects.entities.sort_by(|a, b| b.score.total_cmp(&a.score));
        aspects.entities.truncate(k);
        let links = self.linker.link(question, graph)?;
        for (relation, score) in self
            .relations
            .rank(question, &links, graph)?
            .into_iter()
            .take(k)
        {
            aspects.relations.push(Retrieved {
                item: relation,
                text: opened(&graph.relation_label(relation)?),
                score,
            });
        }
        let around: Vec<EntityId> = aspects.entities.iter().map(|e| e.item).collect();
        aspects.subgraphs = documents(&question.text, &around, graph)?;
        aspects.subgraphs.truncate(k);
        Ok(aspects)
    }
}

/// The question with its linked mentions masked.
pub fn masked(question: &str, links: &[Link]) -> String {
    let mut spans: Vec<(usize, usize)> = links.iter().filter_map(|l| l.span).collect();
    spans.sort_unstable();
    spans.dedup();
    let mut text = String::with_capacity(question.len());
    let mut from = 0;
    for (start, end) in spans {
        if let Some(before) = question.get(from..start) {
            text.push_str(before);
            text.push_str(BLANK);
            from = end;
        }
    }
    text.push_str(question.get(from..).unwrap_or_default());
    text
}

/// Ranks the relations of a graph for questions.
pub struct RelationRetriever {
    encoder: Arc<dyn Encoder>,
    matcher: Option<RelationMatcher>,
    pairs: Option<PairScorer>,
    towers: PerGraph<Towers>,
}

/// The folder of the re-ranker inside a checkpoint of `wherefore train relations`.
pub const PAIRS: &str = "pairs";
/// The folder of the fine-tuned encoder inside such a checkpoint, where there is one.
pub const ENCODER: &str = "encoder";

/// What does not depend on the question.
struct Towers {
    rows: Embeddings,
    /// `[relations, width]` of the matcher.
    trained: Option<Tensor>,
    /// The words of the relations, where pairs are read.
    words: Words,
}

impl RelationRetriever {
    /// By the encoder's cosine alone.
    pub fn untrained(encoder: Arc<dyn Encoder>) -> Self {
        Self {
            encoder,
            matcher: None,
            pairs: None,
            towers: PerGraph::default(),
        }
    }

    /// By a checkpoint of `wherefore train relations`, with the encoder that it names.
    pub fn load(folder: &Path) -> Result<Self> {
        let checkpoint: Checkpoint<RelationMatcher> = Checkpoint::load(folder, &Device::Cpu)?;
        let pairs = folder.join(PAIRS);
        let pairs = match checkpoint::exists(&pairs) {
            true => Some(Checkpoint::<PairScorer>::load(&pairs, &Device::Cpu)?),
            false => None,
        };
        let tuned = checkpoint.network.sizes().tuned;
        let encoder = match tuned {
            true => {
                let own = checkpoint::in_place(folder).join(ENCODER);
                encode::open(&own.to_string_lossy())?
            }
            false => encode::open(&checkpoint.description.encoder.name)?,
        };
        check_encoder(&checkpoint, &*encoder, tuned)?;
        if let Some(pairs) = &pairs {
            check_encoder(pairs, &*encoder, tuned)?;
        }
        Ok(Self {
            encoder,
            matcher: Some(checkpoint.network),
            pairs: pairs.map(|pairs| pairs.network),
            towers: PerGraph::default(),
        })
    }

    /// All relations with their scores, best first.
    pub fn rank(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<Vec<(RelationId, f32)>> {
        let towers = self.towers.get(graph, |graph| self.towers_of(graph))?;
        let text = masked(&question.text, links);
        let row = self.encoder.encode(&[&text])?;
        let scores: Vec<f32> = match (&self.matcher, &towers.trained) {
            (Some(matcher), Some(relations)) => {
                let asked = Featured {
                    rows: row,
                    features: vec![features(&text, false, matcher.sizes().buckets)],
                };
                let near = near(0, links, graph)?;
                let scores = matcher.scores(&matcher.questions(&asked)?, relations, &near)?;
                scores
                    .flatten_all()
                    .and_then(|s| s.to_vec1())
                    .map_err(|error| Error::Model(error.into()))?
            }
            _ => towers.rows.rows().map(|r| dot(row.row(0), r)).collect(),
        };
        let mut ranked: Vec<(RelationId, f32)> = (0u32..).map(RelationId).zip(scores).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if let Some(pairs) = &self.pairs {
            self.reorder(pairs, &text, &towers.words, &mut ranked)?;
        }
        Ok(ranked)
    }

    /// Reads the question together with each of the first relations, and orders them anew.
    fn reorder(
        &self,
        pairs: &PairScorer,
        text: &str,
        words: &Words,
        ranked: &mut [(RelationId, f32)],
    ) -> Result<()> {
        let mix = pairs.mix()?;
        let count = pairs.sizes().candidates.min(ranked.len());
        if mix == 0.0 || count == 0 {
            return Ok(());
        }
        let asked = token_words(&*self.encoder, &[text])?;
        let first = &mut ranked[..count];
        let relations: Vec<u32> = first.iter().map(|(relation, _)| relation.0).collect();
        let scores = pairs
            .scores(&asked, &[0], words, &[relations])?
            .flatten_all()
            .and_then(|s| s.to_vec1::<f32>())
            .map_err(|error| Error::Model(error.into()))?;
        for ((_, score), more) in first.iter_mut().zip(scores) {
            *score += mix * more;
        }
        first.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        // what was not read stays behind
        let least = first[count - 1].1;
        for (_, score) in &mut ranked[count..] {
            *score = score.min(least);
        }
        Ok(())
    }

    fn towers_of(&self, graph: &dyn Graph) -> Result<Towers> {
        let texts = relation_texts(graph)?;
        let names: Vec<&str> = texts.iter().map(String::as_str).collect();
        let rows = self.encoder.encode(&names)?;
        let trained = match &self.matcher {
            Some(matcher) => {
                let featured = Featured {
                    rows: rows.clone(),
                    features: (texts.iter())
                        .map(|text| features(text, true, matcher.sizes().buckets))
                        .collect(),
                };
                Some(matcher.relations(&featured)?)
            }
            None => None,
        };
        let words = match &self.pairs {
            Some(_) => token_words(&*self.encoder, &names)?,
            None => Words::default(),
        };
        Ok(Towers {
            rows,
            trained,
            words,
        })
    }
}

/// Refuses an encoder other than the one a part of the checkpoint was trained with. A tuned one lies
/// in the checkpoint and is called after its folder, which may be moved: its rows must fit.
fn check_encoder<N: Checkpointable>(
    checkpoint: &Checkpoint<N>,
    encoder: &dyn Encoder,
    tuned: bool,
) -> Result<()> {
    if tuned && checkpoint.description.encoder.dim == encoder.dim() {
        return Ok(());
    }
    Ok(checkpoint.check_encoder(encoder)?)
}

/// The token vectors of texts, as a re-ranker reads them.
pub fn token_words(encoder: &dyn Encoder, texts: &[&str]) -> Result<Words> {
    let states = encoder.token_states(texts)?;
    Ok(Words {
        texts: (0..texts.len()).map(|i| states.text(i)).collect(),
    })
}

/// The relations of a graph as the towers read them.
pub fn relation_texts(graph: &dyn Graph) -> Result<Vec<String>> {
    (0..graph.relation_bound() as u32)
        .map(|id| Ok(opened(&graph.relation_label(RelationId(id))?)))
        .collect()
}

/// The relations that touch a linked entity (0) or one of its neighbours (1), for the question in
/// row `row` of a batch.
pub fn near(row: u32, links: &[Link], graph: &dyn Graph) -> Result<Near> {
    let mut steps: HashMap<RelationId, u8> = HashMap::new();
    let mut next = Vec::new();
    for link in links {
        for edges in [graph.outgoing(link.entity)?, graph.incoming(link.entity)?] {
            let mut rest = &edges[..];
            while let Some(first) = rest.first() {
                let relation = first.relation;
                let length = rest.partition_point(|e| e.relation <= relation);
                steps.insert(relation, 0);
                next.extend(rest[..length].iter().take(NEIGHBOURS).map(|e| e.entity));
                rest = &rest[length..];
            }
        }
    }
    next.sort_unstable();
    next.dedup();
    for entity in next {
        for edges in [graph.outgoing(entity)?, graph.incoming(entity)?] {
            let mut rest = &edges[..];
            while let Some(first) = rest.first() {
                let relation = first.relation;
                let length = rest.partition_point(|e| e.relation <= relation);
                steps.entry(relation).or_insert(1);
                rest = &rest[length..];
            }
        }
    }
    let mut near: Near = steps
        .into_iter()
        .map(|(relation, step)| (row, relation.0, step))
        .collect();
    near.sort_unstable();
    Ok(near)
}

/// The triples around entities as documents, best first.
pub fn documents(
    question: &str,
    entities: &[EntityId],
    graph: &dyn Graph,
) -> Result<Vec<Retrieved<Vec<Triple>>>> {
    let mut documents: Vec<Retrieved<Vec<Triple>>> = Vec::new();
    for &entity in entities {
        let mut triples = graph.triples_of(entity)?;
        triples.retain(|t| !graph.naming_relations().contains(&t.relation));
        triples.truncate(MAX_TRIPLES);
        let mut words = 0;
        let mut relation = None;
        for triple in triples {
            let text = format!(
                "{} {} {}",
                graph.entity_label(triple.head)?,
                opened(&graph.relation_label(triple.relation)?),
                graph.entity_label(triple.tail)?
            );
            let more = text.split_whitespace().count();
            let begin = relation != Some(triple.relation) || words + more > DOCUMENT_WORDS;
            match documents.last_mut().filter(|_| !begin) {
                Some(document) => {
                    document.text.push_str(". ");
                    document.text.push_str(&text);
                    document.item.push(triple);
                    words += more;
                }
                None => {
                    words = more;
                    documents.push(Retrieved {
                        item: vec![triple],
                        text,
                        score: 0.0,
                    });
                }
            }
            relation = Some(triple.relation);
        }
    }
    bm25(question, &mut documents);
    documents.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(documents)
}

fn bm25<T>(question: &str, documents: &mut [Retrieved<T>]) {
    const K1: f32 = 1.2;
    const B: f32 = 0.75;
    let mut asked = Vec::new();
    for_each_stem(question, |stem| asked.push(stem.to_owned()));
    asked.sort_unstable();
    asked.dedup();
    let mut counts: Vec<(Vec<f32>, f32)> = Vec::with_capacity(documents.len());
    let mut holding = vec![0f32; asked.len()];
    for document in documents.iter() {
        let mut found = vec![0f32; asked.len()];
        let mut length = 0f32;
        for_each_stem(&document.text, |stem| {
            length += 1.0;
            if let Ok(place) = asked.binary_search_by(|a| a.as_str().cmp(stem)) {
                found[place] += 1.0;
            }
        });
        for (sum, found) in holding.iter_mut().zip(&found) {
            *sum += f32::from(u8::from(*found > 0.0));
        }
        counts.push((found, length));
    }
    let total = documents.len() as f32;
    let mean = counts.iter().map(|c| c.1).sum::<f32>() / total.max(1.0);
    for (document, (found, length)) in documents.iter_mut().zip(counts) {
        document.score = (found.iter().zip(&holding))
            .map(|(&f, &n)| {
                let idf = (1.0 + (total - n + 0.5) / (n + 0.5)).ln();
                idf * f * (K1 + 1.0) / (f + K1 * (1.0 - B + B * length / mean.max(1.0)))
            })
            .sum();
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{NameMatch, toy};
    use wherefore_model::encode::HashingEncoder;

    use super::*;
    use crate::link::{Names, NamesConfig};

    #[test]
    fn a_checkpoint_of_another_encoder_is_refused() {
        use wherefore_model::checkpoint::{Description, save};
        use wherefore_model::{Random, relation_pairs, relations};

        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("relations");
        let sizes = |dim| relations::Sizes {
            dim,
            width: 4,
            buckets: 8,
            tuned: false,
        };
        let keep = |dim: usize, pairs: &str| {
            let mut random = Random::stream(0, 0);
            let matcher = RelationMatcher::new(sizes(dim), &mut random, &Device::Cpu).unwrap();
            let told = Description::of::<RelationMatcher>(sizes(dim), "hashing", 0);
            save(&folder, &told, &matcher, None).unwrap();
            let sizes = relation_pairs::Sizes {
                dim: 256,
                width: 4,
                hidden: 4,
                candidates: 2,
            };
            let scorer = PairScorer::new(sizes.clone(), &mut random, &Device::Cpu).unwrap();
            let told = Description::of::<PairScorer>(sizes, pairs, 0);
            save(&folder.join(PAIRS), &told, &scorer, None).unwrap();
            RelationRetriever::load(&folder).map(|_| ())
        };
        keep(256, "hashing").unwrap();
        for refused in [keep(16, "hashing"), keep(256, "static")] {
            let error = refused.unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::Model(wherefore_model::Error::OtherEncoder { .. })
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn mentions_are_masked_where_they_stand() {
        let link = |span| Link {
            entity: EntityId(0),
            mention: String::new(),
            span,
            score: 1.0,
        };
        let text = "who is Ann to Bob?";
        assert_eq!(
            masked(
                text,
                &[
                    link(Some((14, 17))),
                    link(Some((7, 10))),
                    link(None),
                    link(Some((7, 10)))
                ]
            ),
            "who is [BLANK] to [BLANK]?"
        );
        assert_eq!(masked(text, &[]), text);
    }

    #[test]
    fn near_relations_are_told_by_their_steps() {
        let graph = toy::graph();
        let lou = graph.entities_named("Lou Seal", NameMatch::Exact).unwrap()[0];
        let link = Link {
            entity: lou,
            mention: String::new(),
            span: None,
            score: 1.0,
        };
        let found = near(5, &[link], &graph).unwrap();
        let step = |name: &str| {
            let id = graph.relation_named(name).unwrap().unwrap();
            found.iter().find(|n| n.1 == id.0).map(|n| n.2)
        };
        assert_eq!(step("mascot_of"), Some(0));
        assert_eq!(step("coached_by"), Some(1));
        assert_eq!(step("born_in"), None);
        assert!(found.iter().all(|n| n.0 == 5));
    }

    #[test]
    fn three_aspects_are_retrieved_as_texts() {
        let graph = toy::graph();
        let linker = Arc::new(Names::new(NamesConfig::default()).unwrap());
        let encoder: Arc<dyn Encoder> = Arc::new(HashingEncoder::default());
        let retriever = AspectRetriever::new(linker, RelationRetriever::untrained(encoder));
        let question = Question::new("Which stadium do the San Francisco Giants plays in?");
        let aspects = retriever.retrieve(&question, &graph, 5).unwrap();
        assert_eq!(aspects.entities[0].text, "San Francisco Giants");
        assert!(
            aspects
                .relations
                .iter()
                .take(2)
                .any(|r| r.text == "plays in")
        );
        assert_eq!(
            aspects.subgraphs[0].text,
            "San Francisco Giants plays in Oracle Park"
        );
        assert_eq!(aspects.relations.len(), 5);
    }

    #[test]
    fn bm25_has_its_hand_made_value() {
        let document = |text: &str| Retrieved {
            item: (),
            text: text.into(),
            score: 0.0,
        };
        let mut documents = [document("lake river"), document("tree hill")];
        bm25("lake", &mut documents);
        // idf = ln(1 + 1.5/1.5) = ln 2; f = 1 and |d| = mean: 2.2 / 2.2 = 1
        assert!((documents[0].score - 2f32.ln()).abs() < 1e-6);
        assert_eq!(documents[1].score, 0.0);
    }
}
