//! What picks among the candidates: a language model that is shown all of them, or an encoder.
//!
//! ```text
//! c(path) = cos(question, Σ phrase(step))      topics in the question as `it`
//! picked  = paths to the answer with c ≥ max c − within
//! ```
//!
//! The encoder is the reader's matcher unless another is named; it reads no more than the relations
//! of a path. Ours: ReG's judge is GPT-4o.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use wherefore::answer::LlmUse;
use wherefore::graph::{Graph, Step};
use wherefore::model::language::{Decoding, Message, Prompt, Role};
use wherefore::model::vector::{dot, normalise};
use wherefore::model::{Encoder, LanguageModel};
use wherefore::organize::one_line;
use wherefore::read::step_in_words;

use super::pool::Candidate;
use super::reply;
use crate::error::Result;

/// What is to be judged.
pub struct Offer<'a> {
    /// The question.
    pub question: &'a str,
    /// Names of its topics.
    pub topics: &'a [String],
    /// The answer that stands for all.
    pub answer: &'a str,
    /// What may be picked.
    pub candidates: &'a [Candidate],
    /// The graph that they are of.
    pub graph: &'a dyn Graph,
}

/// Picks the candidates that are evidence.
pub trait Judge: Sync {
    /// What tells it from others.
    fn identity(&self) -> &str;

    /// The numbers of what it picks, and what a language model did for it.
    fn pick(&self, offer: &Offer<'_>) -> Result<(Vec<usize>, LlmUse)>;
}

/// A language model reads all candidates.
pub struct ModelJudge(pub Arc<dyn LanguageModel>);

impl Judge for ModelJudge {
    fn identity(&self) -> &str {
        self.0.identity()
    }

    fn pick(&self, offer: &Offer<'_>) -> Result<(Vec<usize>, LlmUse)> {
        let prompt = prompt(offer);
        let mut watch = |_: wherefore::model::language::Progress<'_>| ControlFlow::Continue(());
        let decoding = Decoding {
            max_tokens: 256,
            ..Decoding::default()
        };
        let said = self.0.complete(&prompt, &decoding, &mut watch)?;
        let used = LlmUse {
            calls: 1,
            cached: u32::from(said.cached),
            prompt_tokens: said.prompt_tokens as u64,
            completion_tokens: said.completion_tokens as u64,
        };
        Ok((reply::picked(&said.text, offer.candidates.len()), used))
    }
}

pub(super) fn prompt(offer: &Offer<'_>) -> Prompt {
    let asked = |paths: &str, question: &str, answer: &str| {
        include_str!("prompts/question.txt")
            .trim()
            .replacen("{answer}", answer, 1)
            .replacen("{question}", question, 1)
            .replacen("{paths}", paths.trim(), 1)
    };
    let numbered: Vec<String> = (offer.candidates.iter().enumerate())
        .map(|(i, candidate)| format!("Path {i}. {}", candidate.text))
        .collect();
    Prompt::Chat(vec![
        Message::new(Role::System, include_str!("prompts/system.txt").trim()),
        Message::new(
            Role::User,
            asked(
                include_str!("prompts/example-paths.txt"),
                include_str!("prompts/example-question.txt").trim(),
                "German",
            ),
        ),
        Message::new(
            Role::Assistant,
            include_str!("prompts/example-answer.txt").trim(),
        ),
        Message::new(
            Role::User,
            asked(
                &numbered.join("\n"),
                &one_line(offer.question),
                offer.answer,
            ),
        ),
    ])
}

/// An encoder compares each path's relations with the question.
pub struct EncoderJudge {
    encoder: Arc<dyn Encoder>,
    identity: String,
    within: f32,
    /// Vectors of phrases that were met.
    phrases: Mutex<HashMap<String, Arc<[f32]>>>,
}

impl EncoderJudge {
    /// Picks paths whose cosine is at most `within` below the best.
    pub fn new(encoder: Arc<dyn Encoder>, within: f32) -> Self {
        Self {
            identity: format!("{} within {within}", encoder.name()),
            encoder,
            within,
            phrases: Mutex::default(),
        }
    }

    fn phrase(&self, text: String) -> Result<Arc<[f32]>> {
        let phrases = || self.phrases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = phrases().get(&text) {
            return Ok(Arc::clone(known));
        }
        let rows = self.encoder.encode(&[&text])?;
        let mut row: Arc<[f32]> = rows.row(0).into();
        normalise(Arc::make_mut(&mut row));
        phrases().insert(text, Arc::clone(&row));
        Ok(row)
    }

    fn path(&self, steps: &[Step], graph: &dyn Graph) -> Result<Vec<f32>> {
        let mut sum = vec![0.0; self.encoder.dim()];
        for step in steps {
            let label = graph.relation_label(step.triple.relation)?;
            let row = self.phrase(step_in_words(&label, step.forward))?;
            sum.iter_mut().zip(row.iter()).for_each(|(s, v)| *s += v);
        }
        normalise(&mut sum);
        Ok(sum)
    }
}

impl Judge for EncoderJudge {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn pick(&self, offer: &Offer<'_>) -> Result<(Vec<usize>, LlmUse)> {
        let asked = marked(offer.question, offer.topics);
        let mut asked = self.encoder.encode_queries(&[&asked])?.row(0).to_vec();
        normalise(&mut asked);
        let mut cosines = Vec::new();
        for (i, candidate) in offer.candidates.iter().enumerate() {
            if let (true, Some(path)) = (candidate.is_path, candidate.paths.first()) {
                cosines.push((i, dot(&asked, &self.path(path, offer.graph)?)));
            }
        }
        let best = cosines.iter().map(|(_, c)| *c).fold(f32::MIN, f32::max);
        let near = cosines
            .into_iter()
            .filter(|(_, c)| *c >= best - self.within);
        Ok((near.map(|(i, _)| i).collect(), LlmUse::default()))
    }
}

/// The question with its topics as `it`, the longest first.
fn marked(question: &str, topics: &[String]) -> String {
    let mut topics: Vec<String> = topics.iter().map(|topic| topic.to_lowercase()).collect();
    topics.sort_by_key(|topic| std::cmp::Reverse(topic.len()));
    let mut text = question.to_lowercase();
    for topic in topics.iter().filter(|topic| !topic.is_empty()) {
        text = text.replace(topic.as_str(), "it");
    }
    text
}

#[cfg(test)]
mod tests {
    use wherefore::graph::{NameMatch, toy};
    use wherefore::model::encode;

    use super::super::{PoolConfig, pool};
    use super::*;

    #[test]
    fn topics_become_it() {
        let topics = ["Paris".to_owned(), "Paris Texas".to_owned()];
        assert_eq!(marked("Who made Paris Texas?", &topics), "who made it?");
    }

    #[test]
    fn the_matcher_picks_the_path_that_the_question_is_about() {
        let graph = toy::graph();
        let entity = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let (team, city) = (entity("San Francisco Giants"), entity("San Francisco"));
        let candidates = pool(&graph, &[team], &[city], &PoolConfig::default()).unwrap();
        let judge = EncoderJudge::new(encode::open("matcher").unwrap(), 0.0);
        let offer = Offer {
            question: "In which city do the San Francisco Giants play?",
            topics: &["San Francisco Giants".to_owned()],
            answer: "San Francisco",
            candidates: &candidates,
            graph: &graph,
        };
        let (picked, used) = judge.pick(&offer).unwrap();
        assert_eq!(picked.len(), 1);
        assert!(candidates[picked[0]].is_path);
        assert_eq!(used.calls, 0);
        // everything is near enough
        let all = EncoderJudge::new(encode::open("matcher").unwrap(), 2.0);
        let paths = candidates.iter().filter(|c| c.is_path).count();
        assert_eq!(all.pick(&offer).unwrap().0.len(), paths);
    }
}
