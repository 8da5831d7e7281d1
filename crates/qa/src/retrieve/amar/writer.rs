//! Writes forms for questions: retrieval, prompt, and beam search inside a grammar.

use std::path::Path;

use rayon::prelude::*;
use wherefore_graph::{EntityId, Graph, NameMatch, RelationId};
use wherefore_model::amar::{Asking, Aspect, Base, Network, Prepared, Session};
use wherefore_model::checkpoint::Checkpoint;
use wherefore_model::tensor::device;

use super::{AmarConfig, NamesFrom, PROMPTING, Prompter, Prompting};
use crate::answer::RetrievedText;
use crate::error::{Error, Result};
use crate::logic::decode::{BeamConfig, Decoded, Grammar, Lexicon, Search, Vocabulary};
use crate::logic::relation_name;
use crate::logic::{Form, Notation, relation_called};
use crate::per_graph::PerGraph;
use crate::question::Question;

/// Entities whose names are kept as one tree, at most.
const MAX_NAMES: usize = 2_000_000;
/// A prefix so much less likely than the best form (e⁻¹²) is given up.
const SPREAD: f32 = 12.0;

/// A network with its language model, ready to write.
pub struct FormWriter {
    config: AmarConfig,
    base: Base,
    network: Network,
    prompting: Prompting,
    prompter: Prompter,
    vocabulary: Vocabulary,
    names: PerGraph<Names>,
}

/// What names there are in a graph, as forms write them.
struct Names {
    entities: Lexicon,
    relations: Lexicon,
}

/// The forms that were written for a question.
#[derive(Clone, Debug, Default)]
pub struct WrittenForms {
    /// Best first; the score is the logarithm of the form's probability.
    pub forms: Vec<Decoded>,
    /// What they were written from.
    pub retrieved: Vec<RetrievedText>,
    /// The entities among that.
    pub entities: Vec<EntityId>,
}

impl WrittenForms {
    /// The forms as texts.
    pub fn texts(&self) -> Vec<String> {
        self.forms.iter().map(|f| f.form.to_string()).collect()
    }
}

impl FormWriter {
    /// Opens a checkpoint and the language model that it was trained around.
    pub fn open(config: &AmarConfig) -> Result<Self> {
        if config.model.as_os_str().is_empty() {
            return Err(Error::NoModel { method: "amar" });
        }
        let device = device(&config.device)?;
        let checkpoint: Checkpoint<Network> = Checkpoint::load(&config.model, &device)?;
        let description = &checkpoint.description;
        let prompting: Prompting = match description.training.get(PROMPTING) {
            Some(value) => serde_json::from_value(value.clone())
                .map_err(|e| Error::Config(format!("the checkpoint's `{PROMPTING}`: {e}")))?,
            None => Prompting::default(),
        };
        let file = match &config.llm {
            Some(file) => file.as_path(),
            None => Path::new(&description.encoder.name),
        };
        let base = Base::open(file, &device)?;
        base.check(&description.sizes.base, &config.model)?;
        Ok(Self {
            vocabulary: Vocabulary::new(base.vocabulary(), base.end()),
            prompter: Prompter::open(&prompting, config.relations.as_deref())?,
            network: checkpoint.network,
            base,
            prompting,
            names: PerGraph::default(),
            config: config.clone(),
        })
    }

    pub(super) fn prompter(&self) -> &Prompter {
        &self.prompter
    }

    /// Writes forms for some questions, all at once.
    pub fn write(&self, questions: &[Question], graph: &dyn Graph) -> Result<Vec<WrittenForms>> {
        let found: Vec<(Asking, Vec<EntityId>)> = questions
            .par_iter()
            .map(|question| self.prompter.asking(question, graph))
            .collect::<Result<_>>()?;
        let asking: Vec<Asking> = found.iter().map(|(asking, _)| asking.clone()).collect();
        let config = self.network.config();
        let context = self.prompting.context_tokens;
        let prepared = Prepared::new(&self.base, config, &asking, &[], context)?;
        let mut grammars = Vec::with_capacity(questions.len());
        for (_, entities) in &found {
            grammars.push(self.grammar(entities, graph)?);
        }
        let beam = BeamConfig {
            beams: self.config.beams,
            max_tokens: self.config.max_tokens,
            // a form's score is its probability
            length_penalty: 0.0,
            spread: SPREAD,
        };
        let mut searches: Vec<Search<'_>> = grammars
            .iter()
            .map(|grammar| Search::new(grammar, &self.vocabulary, &beam))
            .collect();
        let all: Vec<usize> = (0..questions.len()).collect();
        let (mut session, mut scores) = Session::begin(&self.base, &self.network, &prepared, &all)?;
        let mut retrieved = Vec::with_capacity(questions.len());
        for (i, (asking, _)) in found.iter().enumerate() {
            retrieved.push(self.retrieved(i, asking, &session));
        }
        loop {
            // the prefixes of all searches lie one behind the other
            let mut parts = Vec::with_capacity(searches.len());
            let mut from = 0usize;
            for search in &searches {
                let count = search.open().len();
                parts.push(from..from + count);
                from += count;
            }
            let steps: Vec<Vec<(u32, u32)>> = searches
                .par_iter_mut()
                .zip(&parts)
                .map(|(search, part)| search.advance(&scores[part.clone()]))
                .collect();
            let (mut parents, mut tokens) = (Vec::new(), Vec::new());
            for (part, step) in parts.iter().zip(steps) {
                for (parent, token) in step {
                    parents.push(part.start as u32 + parent);
                    tokens.push(token);
                }
            }
            if parents.is_empty() {
                break;
            }
            scores = session.advance(&parents, &tokens)?;
        }
        let written = searches.into_iter().zip(retrieved).zip(found);
        Ok(written
            .map(|((search, retrieved), (_, entities))| WrittenForms {
                forms: search.finish(),
                retrieved,
                entities,
            })
            .collect())
    }

    fn retrieved(&self, i: usize, asking: &Asking, session: &Session<'_>) -> Vec<RetrievedText> {
        let mut all = Vec::new();
        for (aspect, texts) in Aspect::ALL.into_iter().zip(&asking.texts) {
            if !self.network.config().has(aspect) {
                continue;
            }
            let gates = session.gates(i, aspect);
            for (place, text) in texts.iter().enumerate() {
                all.push(RetrievedText {
                    aspect: aspect.name().into(),
                    text: text.clone(),
                    gate: gates.and_then(|gates| gates.get(place).copied()),
                });
            }
        }
        all
    }

    fn grammar(&self, entities: &[EntityId], graph: &dyn Graph) -> Result<Grammar> {
        if self.config.names == NamesFrom::Any {
            return Ok(Grammar::default());
        }
        let from_graph = self.config.names == NamesFrom::Graph;
        let names = self
            .names
            .get(graph, |graph| Names::of(graph, from_graph))?;
        let entities = match from_graph {
            true => names.entities.clone(),
            false => {
                let mut labels = Vec::with_capacity(entities.len());
                for &entity in entities {
                    labels.push(graph.entity_label(entity)?.into_owned());
                }
                Lexicon::bracketed(labels)
            }
        };
        Ok(Grammar {
            classes: entities.clone(),
            entities,
            relations: names.relations.clone(),
            ..Grammar::default()
        })
    }
}

impl Names {
    fn of(graph: &dyn Graph, entities: bool) -> Result<Self> {
        let mut relations = Vec::new();
        for id in 0..graph.relation_bound() as u32 {
            relations.push(relation_name(RelationId(id), graph)?);
        }
        let mut labels = Vec::new();
        if entities {
            let count = graph.entity_bound();
            if count > MAX_NAMES {
                return Err(Error::BadSetting {
                    name: "retrieve.names",
                    value: "graph".into(),
                    wanted: "`retrieved` or `any` for a graph with more than 2,000,000 entities",
                });
            }
            for id in 0..count as u32 {
                if graph.is_named(EntityId(id))? {
                    labels.push(graph.entity_label(EntityId(id))?.into_owned());
                }
            }
        }
        Ok(Self {
            entities: Lexicon::bracketed(labels),
            relations: Lexicon::listed(relations),
        })
    }
}

/// A gold form as a model learns to write it: names as the graph's labels, in brackets, relations as
/// the graph's forms name them.
pub fn target(form: &Form, graph: &dyn Graph) -> Result<String> {
    let mut unknown = None;
    // a benchmark may write `otto_i` where the label, which alone may be written, is `otto i`
    let label = |name: &str| -> Result<String> {
        match graph.entities_named(name, NameMatch::Exact)?.first() {
            Some(entity) => Ok(graph.entity_label(*entity)?.into_owned()),
            None => Ok(name.to_owned()),
        }
    };
    let mut entity = |name: &str| match label(name) {
        Ok(label) => label,
        Err(error) => {
            unknown = Some(error);
            name.to_owned()
        }
    };
    let mut failed = None;
    let renamed = form.renamed(&mut entity, &mut |name| {
        let called = relation_called(name, graph);
        match called.and_then(|found| found.map(|r| relation_name(r, graph)).transpose()) {
            Ok(found) => found.unwrap_or_else(|| name.to_owned()),
            Err(error) => {
                failed = Some(error);
                name.to_owned()
            }
        }
    });
    match unknown.or(failed) {
        Some(error) => Err(error),
        None => Ok(renamed.written(Notation::Named)),
    }
}
