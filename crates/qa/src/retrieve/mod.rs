//! Stages two and three: cut out the question's subgraph and score its triples.

pub mod amar;
mod follow;
mod front;
pub mod gnn2r;
mod mention;
mod neighbourhood;
pub mod network;
mod read;
pub mod relation_plan;
mod running;
mod similarity;
mod triple_encoder;
pub(crate) mod vectors;

use wherefore_graph::{EntityId, Graph, Hop, Subgraph, Triple};

use crate::answer::{LlmUse, Refusal, RetrievedText};
use crate::error::Result;
use crate::link::Link;
use crate::question::Question;

pub use amar::{Amar, AmarConfig};
pub use front::{Taken, steps};
pub use gnn2r::{Gnn2r, Gnn2rConfig};
pub use mention::label_span;
pub use neighbourhood::{Neighbourhood, NeighbourhoodConfig};
pub use network::{DistanceMlp, NetworkConfig, NetworkRetriever, Pna, QrGat};
pub use read::{PHRASES_FILE, Read, ReadConfig, WEIGHTS_FILE};
pub use relation_plan::{RelationPlan, RelationPlanConfig};
pub use similarity::{Similarity, SimilarityConfig};
pub(crate) use triple_encoder::TripleEncoder;
pub use vectors::{entity_texts_to_vectors, relation_texts_to_states, relation_texts_to_vectors};

/// A question's subgraph with a score for every triple and every entity.
///
/// Whichever of the two a method does not make is derived from the other, so that any selector
/// can follow any retriever.
#[derive(Debug, Default)]
pub struct ScoredTriples {
    /// What was looked at.
    pub subgraph: Subgraph,
    /// The topics, in the subgraph's own ids.
    pub topics: Vec<EntityId>,
    /// One score for each triple of the subgraph: higher is better, within 0 and 1.
    pub triple_scores: Vec<f32>,
    /// One score for each entity of the subgraph: how likely it is an answer, within 0 and 1.
    pub entity_scores: Vec<f32>,
    /// The sequences of relations that were followed, best first, where a method follows some.
    pub plans: Vec<Plan>,
    /// The answers with what proves them, where a method knows.
    pub rationales: Option<Rationales>,
    /// The logical form that was run, where a method runs one.
    pub form: Option<FormAnswer>,
    /// What had to be left out to keep the budget, in words for the user.
    pub notes: Vec<String>,
    /// Words of the question that the method passed over.
    pub unused: Vec<String>,
    /// What its words stand for.
    pub words: Vec<crate::answer::WordMeaning>,
    /// Other ways to read the question.
    pub alternatives: Vec<crate::answer::Alternative>,
    /// What was taken over from the last question, in plain English.
    pub carried: Option<String>,
    /// Why nothing was looked for, where the question says what the method does not read.
    pub refused: Option<(Refusal, String)>,
    /// Other readings that the promised coverage takes in, by their numbers.
    pub within: Vec<usize>,
    /// A logical form was too large to be run, or there was no time for it.
    pub is_spent: bool,
    /// What speaks for the answers and against them, by name, beside their scores.
    pub signals: Vec<(&'static str, f32)>,
    /// Milliseconds by phase, where a method has phases.
    pub phases: Vec<(&'static str, f64)>,
    /// What a network did, where it was asked for.
    pub explanation: Option<gnn2r::Explanation>,
    /// What language models cost, where one was asked.
    pub llm: LlmUse,
}

/// Answers with the subgraphs that prove them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rationales {
    /// What the subgraphs say, as a sentence; empty where a method makes none.
    pub sentence: String,
    /// The answers, best first.
    pub answers: Vec<Rationale>,
}

/// One answer with its proof, in the ids of the whole graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rationale {
    /// The answer.
    pub entity: EntityId,
    /// Between 0 and 1.
    pub confidence: f32,
    /// Paths, each from a topic to the answer.
    pub paths: Vec<Vec<Triple>>,
}

/// A logical form and what it came to, in the ids of the whole graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormAnswer {
    /// The form; empty where none came to anything.
    pub form: String,
    /// The form in words.
    pub english: String,
    /// The form as SPARQL.
    pub sparql: String,
    /// Between 0 and 1.
    pub confidence: f32,
    /// The number, or yes or no: as it is shown, and as a literal. `answers` are what was counted
    /// or added up then.
    pub computed: Option<(String, String)>,
    /// The triples that prove a yes or no.
    pub grounds: Vec<Triple>,
    /// The rows, where it gives a table.
    pub table: Option<crate::answer::Table>,
    /// What matches, each with the triples that made it match.
    pub answers: Vec<FormedAnswer>,
    /// The forms that a model wrote, best first, before names were mended.
    pub written: Vec<String>,
    /// What the model wrote them from.
    pub retrieved: Vec<RetrievedText>,
}

/// An entity that a form matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormedAnswer {
    /// The entity.
    pub entity: EntityId,
    /// How sure it is: as sure as the form, or less where it is reached through the form's own
    /// entities alone.
    pub confidence: f32,
    /// The triples that made it match.
    pub evidence: Vec<Triple>,
}

/// A topic and the relations to follow from it, in the ids of the whole graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Where it begins.
    pub topic: EntityId,
    /// The relations, in order.
    pub hops: Vec<Hop>,
    /// Between 0 and 1.
    pub score: f32,
}

/// Finds and scores the triples that may bear on the question.
pub trait Retriever: Send + Sync {
    /// Whether there is nothing to do where the question names no entity of the graph.
    fn needs_links(&self) -> bool {
        true
    }

    /// Whether a question is read after the one before it.
    fn follows(&self) -> bool {
        false
    }

    /// Scores the neighbourhood of the links. An empty subgraph is legal.
    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples>;
}

/// Entity scores where a method makes none: the best of an entity's triples, and 0 for topics.
fn best_of_ends(subgraph: &Subgraph, topics: &[EntityId], triple_scores: &[f32]) -> Vec<f32> {
    let mut scores = vec![0.0f32; subgraph.entities().len()];
    for (triple, &score) in subgraph.triples().iter().zip(triple_scores) {
        for end in [triple.head, triple.tail] {
            let best = &mut scores[end.index()];
            *best = best.max(score);
        }
    }
    for topic in topics {
        scores[topic.index()] = 0.0;
    }
    scores
}
