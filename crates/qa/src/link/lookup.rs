//! What names are looked up in: the graph's names and their words, and the aliases of the user.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wherefore_graph::Graph;
use wherefore_model::encode;

use super::aliases::Aliases;
use super::lexicon::Lexicon;
use super::rank::Ranker;
use crate::error::{Error, Result};
use crate::per_graph::PerGraph;
use crate::relations::RelationEncoder;

/// In graphs with more entities they are not looked for at all.
const MAX_LEXICON_ENTITIES: usize = 20_000_000;

/// Settings of [`Names`](super::Names).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NamesConfig {
    /// At most this many links are made.
    pub max_links: usize,
    /// The longest name that is looked for, in words.
    pub max_words: usize,
    /// Candidates kept for each mention.
    pub candidates: usize,
    /// A link is made only if its score is at least this share of the best one's.
    pub keep: f32,
    /// Whether parts of names and misspelt names are linked.
    pub partial: bool,
    /// The encoder that weighs namesakes by what is asked; empty for none.
    pub encoder: String,
    /// A file of words and the entities that they mean.
    pub aliases: Option<PathBuf>,
}

impl Default for NamesConfig {
    fn default() -> Self {
        Self {
            max_links: 4,
            max_words: 16,
            candidates: 5,
            keep: 0.6,
            partial: true,
            encoder: "static".into(),
            aliases: None,
        }
    }
}

impl NamesConfig {
    fn check(&self) -> Result<()> {
        if self.max_links == 0 || self.max_words == 0 || self.candidates == 0 {
            return Err(Error::Config(
                "`link.max_links`, `link.max_words` and `link.candidates` must be at least 1"
                    .into(),
            ));
        }
        if !(0.0..=1.0).contains(&self.keep) {
            return Err(Error::Config("`link.keep` must be between 0 and 1".into()));
        }
        Ok(())
    }
}

/// Where the names of a question are looked up, and what ranks them.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) config: NamesConfig,
    pub(super) aliases: Aliases,
    encoder: Option<RelationEncoder>,
    lexicon: PerGraph<Lexicon>,
    /// Of a graph that was changed.
    changed: PerGraph<Lexicon>,
}

impl Lookup {
    /// Opens the encoder and reads the alias file.
    pub(super) fn new(config: NamesConfig) -> Result<Self> {
        config.check()?;
        let aliases = match &config.aliases {
            Some(path) => Aliases::read(path)?,
            None => Aliases::default(),
        };
        let encoder = match config.encoder.as_str() {
            "" => None,
            name => Some(RelationEncoder::new(encode::open(name)?)),
        };
        Ok(Self {
            config,
            aliases,
            encoder,
            lexicon: PerGraph::default(),
            changed: PerGraph::default(),
        })
    }

    pub(super) fn lexicon(&self, graph: &dyn Graph) -> Result<Option<Arc<Lexicon>>> {
        if !self.config.partial
            || !graph.knows_all_names()
            || graph.entity_bound() > MAX_LEXICON_ENTITIES
        {
            return Ok(None);
        }
        // the names of a large graph are not read again for a few that changed
        if let Some(store) = graph.store()
            && store.pending().is_some()
        {
            let files = store.files_only()?;
            let files = self.lexicon.get(&files, |files| Lexicon::build(files))?;
            let make = |_: &dyn Graph| Lexicon::changed(files, store);
            return self.changed.get(graph, make).map(Some);
        }
        self.lexicon.get(graph, Lexicon::build).map(Some)
    }

    pub(super) fn ranker<'a>(&self, rest: &str, graph: &'a dyn Graph) -> Result<Ranker<'a>> {
        let mut ranker = Ranker::new(graph, self.config.candidates);
        if let Some(encoder) = &self.encoder {
            ranker.asks(rest, encoder)?;
        }
        Ok(ranker)
    }
}
