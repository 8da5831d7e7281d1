//! Mentions and candidates as people and programs read them: the JSON of `wherefore link`.

use serde::Serialize;
use wherefore_graph::Graph;

use super::{Linker, MatchKind};
use crate::error::Result;
use crate::question::Question;

/// What a question was found to be about.
#[derive(Clone, Debug, Serialize)]
pub struct LinkingReport {
    /// The words of the question.
    pub question: String,
    /// The mentions, the surest first.
    pub mentions: Vec<MentionReport>,
    /// Names that come near, where nothing links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
}

/// One mention.
#[derive(Clone, Debug, Serialize)]
pub struct MentionReport {
    /// The words, or the given topic.
    pub mention: String,
    /// Their byte range in the question; none for a given topic.
    pub span: Option<(usize, usize)>,
    /// What they may mean, best first.
    pub candidates: Vec<CandidateReport>,
}

/// One entity that a mention may mean.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateReport {
    /// Its label.
    pub name: String,
    /// Its identity in the graph.
    pub id: String,
    /// Between 0 and 1.
    pub score: f32,
    /// How the name was recognised.
    pub how: MatchKind,
    /// Triples that it is head or tail of.
    pub triples: usize,
}

impl LinkingReport {
    /// Links the question and writes down what was found.
    pub fn new(linker: &dyn Linker, question: &Question, graph: &dyn Graph) -> Result<Self> {
        let found = linker.mentions(question, graph)?;
        let mut mentions = Vec::with_capacity(found.len());
        for mention in found {
            let mut candidates = Vec::with_capacity(mention.candidates.len());
            for candidate in &mention.candidates {
                candidates.push(CandidateReport {
                    name: graph.entity_label(candidate.entity)?.into_owned(),
                    id: graph.entity_term(candidate.entity)?.to_string(),
                    score: candidate.score,
                    how: candidate.how,
                    triples: graph.degree(candidate.entity)?,
                });
            }
            mentions.push(MentionReport {
                mention: mention.text,
                span: mention.span,
                candidates,
            });
        }
        let nearest = match mentions.as_slice() {
            [] => linker.nearest(question, graph)?,
            _ => Vec::new(),
        };
        Ok(Self {
            question: question.text.clone(),
            mentions,
            nearest,
        })
    }
}
