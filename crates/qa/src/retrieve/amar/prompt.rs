//! What a form is written from: the texts of the three aspects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};
use wherefore_model::amar::Asking;
use wherefore_model::{Encoder, encode};

use crate::error::Result;
use crate::link::{Linker, Names, NamesConfig};
use crate::logic::aspects::{AspectRetriever, RelationRetriever};
use crate::logic::relation_name;
use crate::question::Question;

/// Texts of each aspect that are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextsTaken {
    /// Entities.
    pub entities: usize,
    /// Relations.
    pub relations: usize,
    /// Documents.
    pub subgraphs: usize,
}

impl Default for TextsTaken {
    fn default() -> Self {
        Self {
            entities: 8,
            relations: 16,
            subgraphs: 8,
        }
    }
}

/// How prompts are made; a checkpoint must read such prompts as it learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prompting {
    /// Texts of each aspect.
    pub texts: TextsTaken,
    /// The encoder that compares relations and names.
    pub encoder: String,
    /// A checkpoint of `wherefore train relations`; relations are ranked by the encoder alone
    /// without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relations: Option<PathBuf>,
    /// Most tokens of texts in a context prompt.
    pub context_tokens: usize,
}

impl Default for Prompting {
    fn default() -> Self {
        Self {
            texts: TextsTaken::default(),
            encoder: "static".into(),
            relations: None,
            context_tokens: 1024,
        }
    }
}

/// Retrieves the texts of prompts.
pub struct Prompter {
    texts: TextsTaken,
    linker: Arc<dyn Linker>,
    encoder: Arc<dyn Encoder>,
    aspects: AspectRetriever,
}

impl Prompter {
    /// Opens encoder and relation retriever; the latter from `relations` where that is given.
    pub fn open(prompting: &Prompting, relations: Option<&Path>) -> Result<Self> {
        let encoder = encode::open(&prompting.encoder)?;
        let linker: Arc<dyn Linker> = Arc::new(Names::new(NamesConfig::default())?);
        let ranked = match relations.or(prompting.relations.as_deref()) {
            Some(folder) => RelationRetriever::load(folder)?,
            None => RelationRetriever::untrained(Arc::clone(&encoder)),
        };
        Ok(Self {
            texts: prompting.texts.clone(),
            aspects: AspectRetriever::new(Arc::clone(&linker), ranked),
            linker,
            encoder,
        })
    }

    pub(super) fn linker(&self) -> &dyn Linker {
        &*self.linker
    }

    pub(super) fn encoder(&self) -> &dyn Encoder {
        &*self.encoder
    }

    /// The texts for a question, and the entities among them. Topics that the question brings are
    /// its entities; otherwise they are looked for.
    pub fn asking(
        &self,
        question: &Question,
        graph: &dyn Graph,
    ) -> Result<(Asking, Vec<EntityId>)> {
        let taken = &self.texts;
        let most = taken.entities.max(taken.relations).max(taken.subgraphs);
        let mut found = self.aspects.retrieve(question, graph, most)?;
        found.entities.truncate(taken.entities);
        found.relations.truncate(taken.relations);
        found.subgraphs.truncate(taken.subgraphs);
        let mut relations = Vec::with_capacity(found.relations.len());
        for relation in &found.relations {
            // as a form writes it
            relations.push(relation_name(relation.item, graph)?);
        }
        let entities = found.entities.iter().map(|e| e.item).collect();
        let asking = Asking {
            question: question.text.clone(),
            texts: [
                found.entities.into_iter().map(|e| e.text).collect(),
                relations,
                found.subgraphs.into_iter().map(|s| s.text).collect(),
            ],
        };
        Ok((asking, entities))
    }
}
