//! Which parts a pipeline is made of, and their settings, as a file says it.
//!
//! ```toml
//! [select]
//! kind = "top-k"
//! k = 20
//! ```
//!
//! What a file leaves out is as the retriever needs it, and an empty file is the method `read`: no
//! language model, no training, no setting needed. Unknown keys are refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::confidence::{CONFIDENCE_FILE, Calibration};
use crate::error::{Error, Result};
use crate::link::{Names, NamesConfig};
use crate::method::{Method, Trained};
use crate::organize::{Chains, ChainsConfig, TripleLines, TripleLinesConfig};
use crate::pipeline::Pipeline;
use crate::reason::{
    BestPath, BestPathConfig, Budget, Candidates, CandidatesConfig, ChainEnds, ChainEndsConfig,
    Choice, LogicalForm, LogicalFormConfig, Rationale, RationaleConfig, SingleCall,
    SingleCallConfig, Steps, StepsConfig,
};
use crate::retrieve::relation_plan::PlannerKind;
use crate::retrieve::{
    Amar, AmarConfig, DistanceMlp, Gnn2r, Gnn2rConfig, NeighbourhoodConfig, NetworkConfig, Pna,
    QrGat, Read, ReadConfig, RelationPlan, RelationPlanConfig, Similarity, SimilarityConfig,
};
use crate::select::{Nucleus, NucleusConfig, Threshold, ThresholdConfig, TopK, TopKConfig};
use crate::verify::{Rules, Ungrounded};

pub use crate::toml_fault::toml_fault;
use wherefore_model::{LanguageModel, language};

/// A whole pipeline. The default is the method `read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct PipelineConfig {
    /// The language model, where a part needs one: a GGUF file, `URL#MODEL` or `script:FILE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm: Option<String>,
    /// What becomes of answers that nothing proves.
    pub ungrounded: Ungrounded,
    /// Triples that are handed out beside those of the rationales; 100 if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_evidence: Option<usize>,
    /// Share of answers that are to be right, where a question does not say it: less sure ones are
    /// refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f32>,
    /// How the question is tied to the graph.
    pub link: LinkerConfig,
    /// How triples are found and scored.
    pub retrieve: RetrieverConfig,
    /// How evidence is chosen.
    pub select: SelectorConfig,
    /// How evidence is written down.
    pub organize: OrganizerConfig,
    /// How answers are drawn from it.
    pub reason: ReasonerConfig,
    /// Other methods that are asked too, in this order: method `auto`, even where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Vec<PipelineConfig>>,
}

/// A pipeline as a file says it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    llm: Option<String>,
    ungrounded: Ungrounded,
    max_evidence: Option<usize>,
    precision: Option<f32>,
    link: LinkerConfig,
    retrieve: RetrieverConfig,
    select: Option<SelectorConfig>,
    organize: OrganizerConfig,
    reason: Option<ReasonerConfig>,
    beside: Option<Vec<PipelineConfig>>,
}

impl From<Written> for PipelineConfig {
    fn from(file: Written) -> Self {
        let usual = Self::around(file.retrieve);
        Self {
            llm: file.llm,
            ungrounded: file.ungrounded,
            max_evidence: file.max_evidence,
            precision: file.precision,
            link: file.link,
            select: file.select.unwrap_or(usual.select),
            organize: file.organize,
            reason: file.reason.unwrap_or(usual.reason),
            retrieve: usual.retrieve,
            beside: file.beside,
        }
    }
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self::around(RetrieverConfig::default())
    }
}

/// The linkers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LinkerConfig {
    /// By name.
    Names(NamesConfig),
}

/// The retrievers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RetrieverConfig {
    /// By a trained QR-GAT.
    QrGat(NetworkConfig),
    /// By distances from the topics and a trained two-layer network.
    DistanceMlp(NetworkConfig),
    /// By a trained PNA network over entities.
    Pna(NetworkConfig),
    /// Along relation paths that a planner writes.
    RelationPlan(RelationPlanConfig),
    /// By a trained GNN2R.
    Gnn2r(Gnn2rConfig),
    /// By cosine of question and triple.
    Similarity(SimilarityConfig),
    /// What the best reading of the question matches.
    Read(ReadConfig),
    /// What the first logical form matches that a trained language model writes.
    Amar(AmarConfig),
}

impl RetrieverConfig {
    /// Where the checkpoint stands, if the retriever takes one.
    fn model_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::QrGat(config) | Self::DistanceMlp(config) | Self::Pna(config) => {
                Some(&mut config.model)
            }
            Self::RelationPlan(config) => Some(&mut config.model),
            Self::Gnn2r(config) => Some(&mut config.model),
            Self::Amar(config) => Some(&mut config.model),
            Self::Read(config) => Some(config.weights.get_or_insert_default()),
            Self::Similarity(_) => None,
        }
    }
}

/// The selectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SelectorConfig {
    /// The best triples.
    TopK(TopKConfig),
    /// As many as the scores call for.
    Nucleus(NucleusConfig),
    /// All above a threshold.
    Threshold(ThresholdConfig),
}

/// The organizers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OrganizerConfig {
    /// One line for each triple.
    Triples(TripleLinesConfig),
    /// Chains from the topics.
    Chains(ChainsConfig),
}

/// The reasoners.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ReasonerConfig {
    /// The best path, without a language model.
    BestPath(BestPathConfig),
    /// The retriever's candidates, without a language model.
    Candidates(CandidatesConfig),
    /// The ends of the best chains, without a language model.
    ChainEnds(ChainEndsConfig),
    /// The retriever's answers with their proofs, without a language model.
    Rationale(RationaleConfig),
    /// What the retriever's logical form gives.
    LogicalForm(LogicalFormConfig),
    /// One call of a language model.
    SingleCall(SingleCallConfig),
    /// Step by step, by a language model.
    Steps(StepsConfig),
}

impl ReasonerConfig {
    /// Whether it asks a language model.
    pub fn asks_model(&self) -> bool {
        matches!(self, Self::SingleCall(_) | Self::Steps(_))
    }
}

impl Default for LinkerConfig {
    fn default() -> Self {
        Self::Names(NamesConfig::default())
    }
}

impl Default for RetrieverConfig {
    fn default() -> Self {
        Self::Read(ReadConfig::default())
    }
}

impl Default for OrganizerConfig {
    fn default() -> Self {
        Self::Triples(TripleLinesConfig::default())
    }
}

/// Triples that KG-RAG chooses from.
const CANDIDATE_TRIPLES: usize = 20_000;

impl PipelineConfig {
    /// The method where nobody names one.
    pub const USUAL: Method = Method::Read;

    /// A retriever, and what it needs to come to answers where nothing else is said.
    fn around(retrieve: RetrieverConfig) -> Self {
        let (k, reason) = match &retrieve {
            // all that made the form match
            RetrieverConfig::Read(_) | RetrieverConfig::Amar(_) => (
                20_000,
                ReasonerConfig::LogicalForm(LogicalFormConfig::default()),
            ),
            _ => (
                TopKConfig::default().k,
                ReasonerConfig::BestPath(BestPathConfig::default()),
            ),
        };
        Self {
            llm: None,
            ungrounded: Ungrounded::default(),
            max_evidence: None,
            precision: None,
            link: LinkerConfig::default(),
            retrieve,
            select: SelectorConfig::TopK(TopKConfig { k }),
            organize: OrganizerConfig::default(),
            reason,
            beside: None,
        }
    }

    /// The configuration of a method.
    pub fn of(method: Method) -> Self {
        match method {
            Method::Read => Self::default(),
            Method::Auto => Self {
                beside: Some(Vec::new()),
                ..Self::default()
            },
            Method::Amar => Self::around(RetrieverConfig::Amar(AmarConfig::default())),
            Method::Similarity => Self {
                select: SelectorConfig::TopK(TopKConfig { k: 100 }),
                ..Self::around(RetrieverConfig::Similarity(SimilarityConfig::default()))
            },
            Method::Qsrag => Self {
                select: SelectorConfig::TopK(TopKConfig { k: 100 }),
                reason: ReasonerConfig::Candidates(CandidatesConfig::default()),
                ..Self::around(RetrieverConfig::QrGat(NetworkConfig::default()))
            },
            Method::Gnn2r => Self {
                reason: ReasonerConfig::Rationale(RationaleConfig::default()),
                ..Self::around(RetrieverConfig::Gnn2r(Gnn2rConfig::default()))
            },
            Method::Reg => Self::chains(RetrieverConfig::QrGat(NetworkConfig::default()), 100),
            Method::DistanceMlp => {
                Self::chains(RetrieverConfig::DistanceMlp(NetworkConfig::default()), 100)
            }
            // entities know nothing of relations: more triples make up for it
            Method::Pna => Self::chains(RetrieverConfig::Pna(NetworkConfig::default()), 300),
            Method::RelationPlan => Self::chains(
                RetrieverConfig::RelationPlan(RelationPlanConfig::default()),
                5000,
            ),
            // KAPING
            Method::LlmKg => Self {
                select: SelectorConfig::TopK(TopKConfig { k: 30 }),
                ..Self::nearest_triples(ReasonerConfig::SingleCall(SingleCallConfig::default()))
            },
            Method::KgRag => Self::nearest_triples(ReasonerConfig::Steps(StepsConfig::default())),
            Method::KgRagRelations => Self::nearest_triples(ReasonerConfig::Steps(StepsConfig {
                choice: Choice::Relations,
                ..StepsConfig::default()
            })),
            Method::Llm => Self {
                ungrounded: Ungrounded::Mark,
                ..Self::nearest_triples(ReasonerConfig::SingleCall(SingleCallConfig {
                    evidence: false,
                    ..SingleCallConfig::default()
                }))
            },
            Method::LlmQd => Self {
                ungrounded: Ungrounded::Mark,
                ..Self::nearest_triples(ReasonerConfig::Steps(StepsConfig {
                    evidence: false,
                    ..StepsConfig::default()
                }))
            },
        }
    }

    /// The best `k` triples as chains, and the answers that these end in.
    fn chains(retrieve: RetrieverConfig, k: usize) -> Self {
        Self {
            select: SelectorConfig::TopK(TopKConfig { k }),
            organize: OrganizerConfig::Chains(ChainsConfig {
                turns: true,
                ..ChainsConfig::default()
            }),
            reason: ReasonerConfig::ChainEnds(ChainEndsConfig::default()),
            ..Self::around(retrieve)
        }
    }

    /// All triples within three hops, nearest to the question first.
    fn nearest_triples(reason: ReasonerConfig) -> Self {
        let retrieve = RetrieverConfig::Similarity(SimilarityConfig {
            neighbourhood: NeighbourhoodConfig {
                hops: 3,
                ..NeighbourhoodConfig::default()
            },
            ..SimilarityConfig::default()
        });
        Self {
            select: SelectorConfig::TopK(TopKConfig {
                k: CANDIDATE_TRIPLES,
            }),
            reason,
            ..Self::around(retrieve)
        }
    }

    /// The method whose retriever a checkpoint of this kind is.
    pub fn of_checkpoint(model: &Path) -> Result<Self> {
        let description = wherefore_model::checkpoint::read_description(model)?;
        let method = description.method.parse::<Trained>()?.method();
        let mut config = method.map(Self::of).ok_or_else(|| {
            Error::Config(format!(
                "no method uses a checkpoint of `{}`",
                description.method
            ))
        })?;
        config.set_model(model)?;
        if let RetrieverConfig::Read(config) = &mut config.retrieve {
            config.matcher = description.encoder.name;
        }
        Ok(config)
    }

    /// The checkpoint of the retriever, where it has one.
    pub fn model(&self) -> Option<&Path> {
        match &self.retrieve {
            RetrieverConfig::QrGat(config)
            | RetrieverConfig::DistanceMlp(config)
            | RetrieverConfig::Pna(config) => Some(&config.model),
            RetrieverConfig::RelationPlan(config) => Some(&config.model),
            RetrieverConfig::Gnn2r(config) => Some(&config.model),
            RetrieverConfig::Amar(config) => Some(&config.model),
            RetrieverConfig::Read(config) => config.weights.as_deref(),
            RetrieverConfig::Similarity(_) => None,
        }
    }

    /// What tells how sure answers are: the checkpoint's own file, or for the reader the built-in
    /// one. Answers of language models are as sure as their reasoner says.
    fn calibration(&self) -> Result<Option<Calibration>> {
        if self.reason.asks_model() {
            return Ok(None);
        }
        let own = self.model().map(|model| model.join(CONFIDENCE_FILE));
        match (own.filter(|path| path.exists()), &self.retrieve) {
            (Some(path), _) => Calibration::load(&path).map(Some),
            (None, RetrieverConfig::Read(_)) => Ok(Some(Calibration::of_reader().clone())),
            (None, _) => Ok(None),
        }
    }

    /// Gives the retriever its checkpoint, or `auto` another method. False if it takes none.
    pub fn set_model(&mut self, model: &Path) -> Result<bool> {
        if let Some(beside) = &mut self.beside {
            let other = Self::of_checkpoint(model)?;
            match other.retrieve {
                // the reader's own, adapted to a graph
                RetrieverConfig::Read(_) => self.retrieve = other.retrieve,
                _ => beside.push(other),
            }
            return Ok(true);
        }
        let place = self.retrieve.model_mut();
        Ok(place.map(|place| model.clone_into(place)).is_some())
    }

    /// Reads a configuration.
    pub fn from_toml(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|e| Error::Config(toml_fault(text, &e)))
    }

    /// The configuration as a file, with every setting.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("tables of numbers and texts are TOML")
    }

    /// The same with answers from a language model: the reasoner is `single-call` unless it asks
    /// one already. `auto` asks one after the others.
    pub fn set_llm(&mut self, name: impl Into<String>) {
        self.llm = Some(name.into());
        if let Some(beside) = &mut self.beside {
            if !beside.iter().any(Self::asks_model) {
                beside.push(Self::of(Method::LlmKg));
            }
        } else if !self.reason.asks_model() {
            self.reason = ReasonerConfig::SingleCall(SingleCallConfig::default());
        }
    }

    /// Whether any part asks a language model.
    pub fn asks_model(&self) -> bool {
        let plans = match &self.retrieve {
            RetrieverConfig::RelationPlan(config) => config.planner == PlannerKind::Llm,
            _ => false,
        };
        let beside = self.beside.iter().flatten().any(Self::asks_model);
        plans || self.reason.asks_model() || beside
    }

    /// What language models may cost for a question, where one is asked.
    pub fn budget_mut(&mut self) -> Option<&mut Budget> {
        let mut beside = self.beside.iter_mut().flatten();
        if let Some(budget) = beside.find_map(Self::budget_mut) {
            return Some(budget);
        }
        match &mut self.reason {
            ReasonerConfig::SingleCall(config) => Some(&mut config.budget),
            ReasonerConfig::Steps(config) => Some(&mut config.budget),
            ReasonerConfig::BestPath(_)
            | ReasonerConfig::Candidates(_)
            | ReasonerConfig::LogicalForm(_)
            | ReasonerConfig::ChainEnds(_)
            | ReasonerConfig::Rationale(_) => None,
        }
    }

    /// Makes the parts, and opens the language model where one is needed.
    pub fn build(&self) -> Result<Pipeline> {
        self.build_with(None)
    }

    /// Makes the parts around a language model that is open already.
    pub fn build_with(&self, model: Option<Arc<dyn LanguageModel>>) -> Result<Pipeline> {
        let open = || match (&model, &self.llm) {
            (Some(model), _) => Ok(Arc::clone(model)),
            (None, Some(name)) => Ok(language::open(name)?),
            (None, None) => Err(Error::NoLanguageModel),
        };
        Ok(Pipeline {
            beside: (self.beside.iter().flatten())
                .map(|other| {
                    // one model for all
                    let own = match other.asks_model() {
                        true => Some(open()?),
                        false => None,
                    };
                    other.build_with(own)
                })
                .collect::<Result<_>>()?,
            is_costly: self.asks_model(),
            precision: self.precision,
            calibration: self.calibration()?,
            rules: Rules {
                ungrounded: self.ungrounded,
                max_evidence: self.max_evidence.unwrap_or(Rules::MAX_EVIDENCE),
            },
            linker: match &self.link {
                LinkerConfig::Names(config) => Arc::new(Names::new(config.clone())?),
            },
            retriever: match &self.retrieve {
                RetrieverConfig::QrGat(config) => Box::new(QrGat::new(config)?),
                RetrieverConfig::DistanceMlp(config) => Box::new(DistanceMlp::new(config)?),
                RetrieverConfig::Pna(config) => Box::new(Pna::new(config)?),
                RetrieverConfig::RelationPlan(config) => {
                    Box::new(RelationPlan::new(config.clone(), open)?)
                }
                RetrieverConfig::Gnn2r(config) => Box::new(Gnn2r::new(config)?),
                RetrieverConfig::Read(config) => Box::new(Read::new(config.clone())?),
                RetrieverConfig::Amar(config) => Box::new(Amar::new(config.clone())?),
                RetrieverConfig::Similarity(config) => Box::new(Similarity::new(config.clone())?),
            },
            selector: match &self.select {
                SelectorConfig::TopK(config) => {
                    config.check()?;
                    Box::new(TopK::new(config.clone()))
                }
                SelectorConfig::Nucleus(config) => {
                    config.check()?;
                    Box::new(Nucleus::new(config.clone()))
                }
                SelectorConfig::Threshold(config) => {
                    config.check()?;
                    Box::new(Threshold::new(config.clone()))
                }
            },
            organizer: match &self.organize {
                OrganizerConfig::Triples(config) => Box::new(TripleLines::new(config.clone())),
                OrganizerConfig::Chains(config) => {
                    config.check()?;
                    Box::new(Chains::new(config.clone()))
                }
            },
            reasoner: match &self.reason {
                ReasonerConfig::BestPath(config) => {
                    config.check()?;
                    Box::new(BestPath::new(config.clone()))
                }
                ReasonerConfig::Candidates(config) => {
                    config.check()?;
                    Box::new(Candidates::new(config.clone()))
                }
                ReasonerConfig::LogicalForm(config) => Box::new(LogicalForm::new(config.clone())),
                ReasonerConfig::ChainEnds(config) => {
                    config.check()?;
                    Box::new(ChainEnds::new(config.clone()))
                }
                ReasonerConfig::Rationale(config) => Box::new(Rationale::new(config.clone())),
                ReasonerConfig::SingleCall(config) => {
                    config.check()?;
                    Box::new(SingleCall::new(config.clone(), open()?))
                }
                ReasonerConfig::Steps(config) => {
                    config.check()?;
                    Box::new(Steps::new(config.clone(), open()?)?)
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        PipelineConfig::from_toml(text)
            .and_then(|c| c.build().map(|_| ()))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_empty_file_is_the_default_and_a_written_one_reads_back() {
        assert_eq!(
            PipelineConfig::from_toml("").unwrap(),
            PipelineConfig::default()
        );
        let config = PipelineConfig {
            select: SelectorConfig::TopK(TopKConfig { k: 7 }),
            ..PipelineConfig::default()
        };
        assert_eq!(
            PipelineConfig::from_toml(&config.to_toml()).unwrap(),
            config
        );
    }

    #[test]
    fn an_unknown_key_of_a_table_with_a_kind_has_the_line_of_the_key() {
        let read = "# mine\n[retrieve]\nkind = \"read\"\n";
        let error = refused(&format!("{read}hopps = 2\n"));
        assert!(error.contains("line 4: unknown field `hopps`"), "{error}");
        let error = refused(&format!("{read}answers = 2 # hopps = 3\nhopps = 2\n"));
        assert!(error.contains("line 5: unknown field `hopps`"), "{error}");
        let error = refused("[select]\nkind = \"top-k\"\nk = 9\n\n[select.kay]\nx = 1\n");
        assert!(error.contains("line 5: unknown field `kay`"), "{error}");
    }

    #[test]
    fn unknown_keys_and_kinds_are_refused_with_their_line() {
        let text = refused("\n[select]\nkind = \"top-k\"\nkay = 3\n");
        assert!(text.contains("unknown field `kay`"), "{text}");
        assert!(text.contains("line "), "{text}");
        assert!(refused("[select]\nkind = \"best\"").contains("unknown variant `best`"));
        assert!(refused("[sellect]\n").contains("unknown field `sellect`"));
        assert!(refused("[select]\nkind = ").contains("line 2"));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        assert!(refused("select = { kind = \"top-k\", k = 0 }").contains("`select.k`"));
        assert!(
            refused("retrieve = { kind = \"read\", answers = 0 }").contains("`retrieve.answers`")
        );
        assert!(refused("reason = { kind = \"best-path\", keep = 2 }").contains("keep"));
        assert!(refused("link = { kind = \"names\", max_links = 0 }").contains("max_links"));
    }
}
