//! Relation paths by a language model: the relations nearest to the question, one worked example,
//! a path on each `ans:` line.

use std::collections::HashMap;
use std::sync::Arc;

use wherefore_graph::{Graph, RelationId};
use wherefore_model::language::{Decoding, Message, Prompt, Role};
use wherefore_model::vector::dot;
use wherefore_model::{Encoder, LanguageModel};

use crate::answer::LlmUse;
use crate::error::Result;
use crate::organize::one_line;
use crate::question::Question;
use crate::reason::{Budget, Meter, reply};
use crate::relations::RelationEncoder;

/// Tokens that a reply may have.
const MAX_TOKENS: usize = 160;

/// A language model that writes paths.
pub(super) struct Asked {
    model: Arc<dyn LanguageModel>,
    encoder: RelationEncoder,
    shown: usize,
}

/// What it wrote.
#[derive(Default)]
pub(super) struct Written {
    /// Sequences of relations, the surest first.
    pub(super) paths: Vec<Vec<u32>>,
    pub(super) llm: LlmUse,
    pub(super) notes: Vec<String>,
}

impl Asked {
    pub(super) fn new(
        model: Arc<dyn LanguageModel>,
        encoder: Arc<dyn Encoder>,
        shown: usize,
    ) -> Self {
        Self {
            model,
            encoder: RelationEncoder::new(encoder),
            shown,
        }
    }

    pub(super) fn write(&self, question: &Question, graph: &dyn Graph) -> Result<Written> {
        let near = self.nearest(question, graph)?;
        let mut by_name: HashMap<String, u32> = HashMap::new();
        let mut list = String::new();
        for &relation in &near {
            let label = one_line(&graph.relation_label(RelationId(relation))?);
            list += &format!("{label}\n");
            by_name.entry(label.to_lowercase()).or_insert(relation);
        }
        let asked = |relations: &str, question: &str| {
            include_str!("../prompts/plan-question.txt")
                .trim()
                .replacen("{question}", question, 1)
                .replacen("{relations}", relations.trim(), 1)
        };
        let prompt = Prompt::Chat(vec![
            Message::new(
                Role::System,
                include_str!("../prompts/plan-system.txt").trim(),
            ),
            Message::new(
                Role::User,
                asked(
                    include_str!("../prompts/plan-example-relations.txt"),
                    include_str!("../prompts/plan-example-question.txt").trim(),
                ),
            ),
            Message::new(
                Role::Assistant,
                include_str!("../prompts/plan-example-answer.txt").trim(),
            ),
            Message::new(Role::User, asked(&list, &one_line(&question.text))),
        ]);
        let mut meter = Meter::new(self.model.as_ref(), Budget::default());
        let decoding = Decoding {
            max_tokens: MAX_TOKENS,
            ..Decoding::default()
        };
        let completion = meter.complete(&prompt, &decoding)?;
        let mut written = Written {
            llm: meter.used,
            notes: meter.notes,
            ..Written::default()
        };
        for line in reply::read(&completion.text).names {
            let path: Option<Vec<u32>> = line
                .split("->")
                .map(|name| {
                    let name = name.trim().trim_matches(['[', ']', '"', '`', '.']);
                    by_name.get(&name.to_lowercase()).copied()
                })
                .collect();
            match path {
                Some(path) if !written.paths.contains(&path) => written.paths.push(path),
                Some(_) => {}
                None => written.notes.push(format!(
                    "the path `{line}` names a relation that was not offered"
                )),
            }
        }
        Ok(written)
    }

    /// The relations nearest to the question, nearest first.
    fn nearest(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<u32>> {
        let rows = self.encoder.rows(graph)?;
        let asked = self.encoder.encoder().encode_queries(&[&question.text])?;
        let naming = graph.naming_relations();
        let mut near: Vec<(f32, u32)> = (0u32..)
            .zip(rows.rows())
            .filter(|(id, _)| !naming.contains(&RelationId(*id)))
            .map(|(id, row)| (dot(asked.row(0), row), id))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        near.truncate(self.shown);
        Ok(near.into_iter().map(|(_, id)| id).collect())
    }
}
