//! Lets a trained language model write the question as logical forms, and runs the best.
//!
//! AMAR: entities, relations and subgraphs are retrieved for the question (`prompt.rs`), a frozen
//! language model with a trained adapter reads them as one token each
//! ([`wherefore_model::amar`]), and beam search writes forms inside a grammar, by default with names
//! of the graph alone (`writer.rs`):
//!
//! ```text
//! forms       = beam(p(form | soft prompt, entities, relations, subgraphs, question))
//! tried       = the forms as written, best first; those with unknown names mended where they stand;
//!               then those that came to nothing, mended
//! confidence  = p(form) · likeness of mended names
//! ```
//!
//! The first form that comes to something answers.

mod prompt;
mod writer;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph};

pub use self::prompt::{Prompter, Prompting, TextsTaken};
pub use self::writer::{FormWriter, WrittenForms, target};
use super::running::{Candidate, Running};
use super::{Retriever, ScoredTriples};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::logic::repair::{RepairConfig, Repairer};
use crate::logic::{Form, Moment, Plan};
use crate::question::Question;

/// The key under which a checkpoint's training notes keep what prompts are made of.
pub const PROMPTING: &str = "prompting";

/// Which names a form may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamesFrom {
    /// Those of the graph's entities and relations.
    #[default]
    Graph,
    /// Relations of the graph, and the entities that were retrieved.
    Retrieved,
    /// Any, to be mended afterwards.
    Any,
}

/// Settings of [`Amar`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AmarConfig {
    /// The checkpoint's folder.
    pub model: PathBuf,
    /// The language model's file, where it lies elsewhere than when the checkpoint was trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm: Option<PathBuf>,
    /// The relation retriever's checkpoint, where it lies elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relations: Option<PathBuf>,
    /// Where to compute: `cpu`, `cuda` or `cuda:N`.
    pub device: String,
    /// Forms that are kept at each step of the search.
    pub beams: usize,
    /// Most tokens of a form.
    pub max_tokens: usize,
    /// Which names a form may hold.
    pub names: NamesFrom,
    /// Whether names of forms that come to nothing are replaced by similar ones.
    pub repair: bool,
    /// Answers that are given with their evidence at most.
    pub answers: usize,
    /// All forms together run for at most so many milliseconds.
    pub time_limit_ms: u64,
    /// Most entities of a set.
    pub max_rows: usize,
}

impl Default for AmarConfig {
    fn default() -> Self {
        Self {
            model: PathBuf::new(),
            llm: None,
            relations: None,
            device: "cpu".into(),
            beams: 8,
            max_tokens: 256,
            names: NamesFrom::default(),
            repair: true,
            answers: 200,
            time_limit_ms: 3000,
            max_rows: 200_000,
        }
    }
}

impl AmarConfig {
    fn check(&self) -> Result<()> {
        for (name, value) in [
            ("retrieve.beams", self.beams),
            ("retrieve.max_tokens", self.max_tokens),
            ("retrieve.answers", self.answers),
            ("retrieve.max_rows", self.max_rows),
        ] {
            if value == 0 {
                return Err(Error::BadSetting {
                    name,
                    value: "0".into(),
                    wanted: "at least 1",
                });
            }
        }
        Ok(())
    }
}

/// Retrieves what the first form matches that comes to something.
pub struct Amar {
    config: AmarConfig,
    writer: FormWriter,
}

impl Amar {
    /// Opens the checkpoint and its language model.
    pub fn new(config: AmarConfig) -> Result<Self> {
        config.check()?;
        Ok(Self {
            writer: FormWriter::open(&config)?,
            config,
        })
    }

    /// Writes forms for several questions at once, and runs those of each.
    pub fn retrieve_all(
        &self,
        questions: &[Question],
        graph: &dyn Graph,
    ) -> Result<Vec<(ScoredTriples, WrittenForms)>> {
        let written = self.writer.write(questions, graph)?;
        written
            .into_iter()
            .map(|written| Ok((self.run(&written, &[], graph)?, written)))
            .collect()
    }

    fn run(
        &self,
        written: &WrittenForms,
        topics: &[EntityId],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let running = Running {
            answers: self.config.answers,
            time: Duration::from_millis(self.config.time_limit_ms),
            max_rows: self.config.max_rows,
            own_names: true,
        };
        let repairer = Repairer {
            linker: self.writer.prompter().linker(),
            encoder: self.writer.prompter().encoder(),
            entities: &written.entities,
            config: RepairConfig::default(),
        };
        let mended = |form: &Form, score: f32| -> Result<Vec<Candidate>> {
            let all = repairer.repaired(form, graph)?.into_iter();
            Ok(all
                .filter(|(mended, _)| mended != form)
                .map(|(form, likeness)| Candidate {
                    form,
                    score: score * likeness.clamp(0.0, 1.0),
                })
                .collect())
        };
        // names are looked for only when their turn comes
        let as_written = written.forms.iter().flat_map(|decoded| {
            let score = decoded.score.exp();
            let known = Plan::new(&decoded.form, graph, Moment::now())
                .map(|plan| plan.missing().is_empty());
            match known {
                Ok(false) if self.config.repair => each(mended(&decoded.form, score)),
                Ok(_) => vec![Ok(Candidate {
                    form: decoded.form.clone(),
                    score,
                })],
                Err(error) => vec![Err(error)],
            }
        });
        let later = (written.forms.iter())
            .filter(|_| self.config.repair)
            .flat_map(|decoded| each(mended(&decoded.form, decoded.score.exp())));
        let mut scored = running.first(as_written.chain(later), topics, graph)?;
        let form = scored.form.get_or_insert_default();
        form.written = written.texts();
        form.retrieved.clone_from(&written.retrieved);
        Ok(scored)
    }
}

fn each(all: Result<Vec<Candidate>>) -> Vec<Result<Candidate>> {
    match all {
        Ok(all) => all.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    }
}

impl Retriever for Amar {
    fn needs_links(&self) -> bool {
        false
    }

    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let written = self.writer.write(std::slice::from_ref(question), graph)?;
        let topics: Vec<EntityId> = links.iter().map(|link| link.entity).collect();
        match written.first() {
            Some(written) => self.run(written, &topics, graph),
            None => Ok(ScoredTriples::default()),
        }
    }
}
