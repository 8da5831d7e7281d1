//! Writes relation paths for the question and follows those that the graph has.
//!
//! ReG's retriever of paths. A planner writes sequences of relations, and beam search grounds them
//! step by step: at each point only steps that the graph has there are offered (`front.rs`).
//!
//! ```text
//! s(ρ_1 … ρ_n) = Π_k p(ρ_k | q, ρ_1 … ρ_{k−1}) · p(stop | q, ρ_1 … ρ_n)        [`Planner`]
//! ```
//!
//! The `beam` best beginnings of each length are continued; the best `plans` of all lengths are
//! walked in full, and their triples and ends score as their plan does. The planner is a small
//! trained network ([`wherefore_model::relation_plan`]), or a language model through a prompt
//! (`relation_plan/asked.rs`), of which every line is one path, the first the surest.
//!
//! Departures: the paper fine-tunes a 7B language model, and grounds its paths afterwards.

mod asked;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, Hop};
use wherefore_model::checkpoint::Checkpoint;
use wherefore_model::qr_gat::Table;
use wherefore_model::relation_plan::{Network, Planner, Reading, State, Tokens, Vocabulary};
use wherefore_model::tensor::Device;
use wherefore_model::{Encoder, LanguageModel, encode};

use self::asked::Asked;
use super::follow::walk;
use super::front::steps;
use super::mention::label_span;
use super::vectors::relation_vectors;
use super::{Plan, Retriever, ScoredTriples};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::per_graph::PerGraph;
use crate::question::Question;

/// The key under which a checkpoint's training notes keep how paths are grown.
pub const GROWTH: &str = "growth";

/// Who writes the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlannerKind {
    /// The network of a checkpoint.
    #[default]
    Trained,
    /// A language model.
    Llm,
}

/// How paths are grown; a planner must grow them as it learned to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Growth {
    /// Steps of the longest path.
    pub max_length: usize,
    /// Entities of each step that are looked at.
    pub sample: usize,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            max_length: 3,
            sample: 64,
        }
    }
}

impl Growth {
    /// Refuses what grows nothing.
    pub fn check(&self) -> Result<()> {
        if !(1..=6).contains(&self.max_length) || self.sample == 0 {
            return Err(Error::Config(
                "`growth.max_length` must be from 1 to 6, and `growth.sample` at least 1".into(),
            ));
        }
        Ok(())
    }
}

/// Settings of [`RelationPlan`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelationPlanConfig {
    /// Who writes the paths.
    pub planner: PlannerKind,
    /// The checkpoint's folder, where a network writes them.
    pub model: PathBuf,
    /// The encoder, where it lies elsewhere than when the checkpoint was trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// How paths are grown; as the network learned to, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// Beginnings of each length that are continued.
    pub beam: usize,
    /// Paths that are walked in full.
    pub plans: usize,
    /// At most this many triples are walked.
    pub max_triples: usize,
    /// Relations that a language model chooses from, nearest to the question first.
    pub relations: usize,
}

impl Default for RelationPlanConfig {
    fn default() -> Self {
        Self {
            planner: PlannerKind::default(),
            model: PathBuf::new(),
            encoder: None,
            growth: None,
            beam: 10,
            plans: 3,
            max_triples: 5000,
            relations: 40,
        }
    }
}

impl RelationPlanConfig {
    fn check(&self) -> Result<()> {
        for (name, value) in [
            ("beam", self.beam),
            ("plans", self.plans),
            ("max_triples", self.max_triples),
            ("relations", self.relations),
        ] {
            if value == 0 {
                return Err(Error::Config(format!(
                    "`retrieve.{name}` must be at least 1"
                )));
            }
        }
        self.growth.as_ref().map_or(Ok(()), Growth::check)
    }
}

/// Retrieves along relation paths that a planner writes.
pub struct RelationPlan {
    config: RelationPlanConfig,
    growth: Growth,
    planner: Writer,
}

/// Who writes the paths, opened.
enum Writer {
    Trained(Box<Trained>),
    Asked(Asked),
}

/// A network with its encoder.
struct Trained {
    planner: Planner,
    encoder: Arc<dyn Encoder>,
    relations: PerGraph<Vocabulary>,
}

impl RelationPlan {
    /// Opens the checkpoint, or takes the language model that `model` opens.
    pub fn new(
        config: RelationPlanConfig,
        model: impl FnOnce() -> Result<Arc<dyn LanguageModel>>,
    ) -> Result<Self> {
        config.check()?;
        let given = config.growth.clone();
        let (planner, growth) = match config.planner {
            PlannerKind::Llm => {
                let name = config.encoder.as_deref().unwrap_or("static");
                let asked = Asked::new(model()?, encode::open(name)?, config.relations);
                (Writer::Asked(asked), given.unwrap_or_default())
            }
            PlannerKind::Trained => {
                let (trained, learned) = Trained::open(&config)?;
                (Writer::Trained(Box::new(trained)), given.unwrap_or(learned))
            }
        };
        Ok(Self {
            config,
            growth,
            planner,
        })
    }

    /// A retriever around a network, as training judges it.
    pub fn from_parts(
        network: &Network,
        encoder: Arc<dyn Encoder>,
        growth: Growth,
        config: RelationPlanConfig,
    ) -> Result<Self> {
        config.check()?;
        growth.check()?;
        Ok(Self {
            config,
            growth,
            planner: Writer::Trained(Box::new(Trained {
                planner: Planner::new(network)?,
                encoder,
                relations: PerGraph::default(),
            })),
        })
    }
}

impl Trained {
    fn open(config: &RelationPlanConfig) -> Result<(Self, Growth)> {
        if config.model.as_os_str().is_empty() {
            return Err(Error::NoModel {
                method: "relation-plan",
            });
        }
        let checkpoint: Checkpoint<Network> = Checkpoint::load(&config.model, &Device::Cpu)?;
        let description = &checkpoint.description;
        let name = config.encoder.as_ref().unwrap_or(&description.encoder.name);
        let encoder = encode::open(name)?;
        checkpoint.check_encoder(&*encoder)?;
        let growth = match description.training.get(GROWTH) {
            Some(value) => serde_json::from_value(value.clone())
                .map_err(|e| Error::Config(format!("the checkpoint's `{GROWTH}`: {e}")))?,
            None => Growth::default(),
        };
        growth.check()?;
        let trained = Self {
            planner: Planner::new(&checkpoint.network)?,
            encoder,
            relations: PerGraph::default(),
        };
        Ok((trained, growth))
    }
}

impl Retriever for RelationPlan {
    fn retrieve(
        &self,
        question: &Question,
        links: &[Link],
        graph: &dyn Graph,
    ) -> Result<ScoredTriples> {
        let mut plans = Vec::new();
        let mut notes = Vec::new();
        let mut llm = crate::answer::LlmUse::default();
        match &self.planner {
            Writer::Trained(trained) => {
                let vocabulary = trained.relations.get(graph, |graph| {
                    let labels = relation_vectors(graph, &*trained.encoder)?;
                    let labels = Table::new(labels.values(), labels.dim())?;
                    Ok(trained.planner.vocabulary(&labels)?)
                })?;
                for link in links {
                    let reading = trained.read(question, link, graph)?;
                    let search = Search {
                        planner: &trained.planner,
                        vocabulary: &vocabulary,
                        reading: &reading,
                        topic: link.entity,
                        growth: &self.growth,
                        beam: self.config.beam,
                    };
                    let found = search.run(self.config.plans, graph)?;
                    plans.extend(found.into_iter().map(|(hops, ln)| Plan {
                        topic: link.entity,
                        hops,
                        // a doubtful topic makes a doubtful plan
                        score: ln.exp() * link.score.clamp(0.0, 1.0).sqrt(),
                    }));
                }
            }
            Writer::Asked(asked) => {
                let written = asked.write(question, graph)?;
                notes = written.notes;
                llm = written.llm;
                for link in links {
                    for (place, path) in written.paths.iter().enumerate() {
                        let grounded = ground(link.entity, path, &self.growth, graph)?;
                        plans.extend(grounded.into_iter().map(|hops| Plan {
                            topic: link.entity,
                            hops,
                            score: link.score.clamp(0.0, 1.0) * 0.9f32.powi(place as i32 + 1),
                        }));
                    }
                }
            }
        }
        plans.sort_by(|a, b| b.score.total_cmp(&a.score));
        // each topic has a word to say, however sure the others are
        let mut kept = vec![0usize; links.len()];
        plans.retain(|plan| {
            let of = links.iter().position(|link| link.entity == plan.topic);
            let count = &mut kept[of.unwrap_or_default()];
            *count += 1;
            *count <= self.config.plans
        });
        let walked = walk(links, plans, notes, self.config.max_triples, graph)?;
        Ok(ScoredTriples { llm, ..walked })
    }
}

/// A question's words before and behind the mention of a topic; all before it, if it is not named.
pub fn around_mention(text: &str, span: Option<(usize, usize)>) -> [&str; 2] {
    match span {
        Some((from, to)) => match (text.get(..from), text.get(to..)) {
            (Some(before), Some(behind)) => [before, behind],
            _ => [text, ""],
        },
        None => [text, ""],
    }
}

impl Trained {
    fn read(&self, question: &Question, link: &Link, graph: &dyn Graph) -> Result<Reading> {
        let span = match link.span {
            Some(span) => Some(span),
            None => label_span(&question.text, &graph.entity_label(link.entity)?),
        };
        let states = self
            .encoder
            .token_states(&around_mention(&question.text, span))?;
        let [before, behind] = [0, 1].map(|text| states.text(text));
        Ok(self.planner.read(&Tokens {
            before: &before,
            behind: &behind,
        })?)
    }
}

/// A path while it grows.
struct Path {
    hops: Vec<Hop>,
    ends: Vec<EntityId>,
    before: Vec<EntityId>,
    state: State,
    ln: f32,
}

/// Beam search from one topic.
struct Search<'a> {
    planner: &'a Planner,
    vocabulary: &'a Vocabulary,
    reading: &'a Reading,
    topic: EntityId,
    growth: &'a Growth,
    beam: usize,
}

impl Search<'_> {
    /// The best paths with the logarithm of their probability, best first.
    fn run(&self, count: usize, graph: &dyn Graph) -> Result<Vec<(Vec<Hop>, f32)>> {
        let mut layer = vec![Path {
            hops: Vec::new(),
            ends: vec![self.topic],
            before: Vec::new(),
            state: self.planner.begin(self.reading),
            ln: 0.0,
        }];
        let mut done: Vec<(Vec<Hop>, f32)> = Vec::new();
        for length in 0..=self.growth.max_length {
            let mut longer = Vec::new();
            let mut grown = Vec::with_capacity(layer.len());
            for (at, path) in layer.iter().enumerate() {
                let last = path.hops.last().copied();
                let front = (path.ends.as_slice(), path.before.as_slice(), last);
                let offered = steps(front, self.topic, graph, self.growth.sample)?;
                let rows: Vec<(u32, bool)> = (offered.iter())
                    .map(|(hop, _)| (hop.relation.0, hop.forward))
                    .collect();
                let decision = self.planner.decide(self.reading, &path.state);
                let begun = length > 0;
                let (each, stop) = self
                    .planner
                    .choose(&decision, self.vocabulary, &rows, begun);
                if begun && answers(path, self.topic, graph)? {
                    done.push((path.hops.clone(), path.ln + stop));
                }
                if length < self.growth.max_length {
                    let each = each.iter().enumerate();
                    longer.extend(each.map(|(step, ln)| (path.ln + ln, at, step)));
                }
                grown.push((decision, offered));
            }
            longer.sort_by(|a, b| b.0.total_cmp(&a.0));
            longer.truncate(self.beam);
            done.sort_by(|a, b| b.1.total_cmp(&a.1));
            done.truncate(count);
            // a path is never likelier than its beginning
            let worst = done.get(count - 1).map_or(f32::NEG_INFINITY, |d| d.1);
            longer.retain(|(ln, ..)| *ln > worst);
            let mut next = Vec::with_capacity(longer.len());
            for (ln, at, step) in longer {
                let (decision, offered) = &mut grown[at];
                let (hop, taken) = &mut offered[step];
                let row = (hop.relation.0, hop.forward);
                next.push(Path {
                    hops: [layer[at].hops.as_slice(), &[*hop]].concat(),
                    ends: std::mem::take(&mut taken.ends),
                    before: layer[at].ends.clone(),
                    state: self.planner.advance(decision, self.vocabulary, row),
                    ln,
                });
            }
            layer = next;
            if layer.is_empty() {
                break;
            }
        }
        Ok(done)
    }
}

/// Whether a path leads to something that can be an answer.
fn answers(path: &Path, topic: EntityId, graph: &dyn Graph) -> Result<bool> {
    for &end in &path.ends {
        if end != topic && graph.is_named(end)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The ways in which a sequence of relations can be walked from a topic: each along or against its
/// direction, those that some entity has.
fn ground(
    topic: EntityId,
    path: &[u32],
    growth: &Growth,
    graph: &dyn Graph,
) -> Result<Vec<Vec<Hop>>> {
    type Front = (Vec<Hop>, Vec<EntityId>, Vec<EntityId>);
    let mut layer: Vec<Front> = vec![(Vec::new(), vec![topic], Vec::new())];
    for relation in path.iter().take(growth.max_length) {
        let mut next = Vec::new();
        for (hops, ends, before) in &layer {
            let front = (ends.as_slice(), before.as_slice(), hops.last().copied());
            for (hop, taken) in steps(front, topic, graph, growth.sample)? {
                if hop.relation.0 == *relation && !taken.only_back {
                    let longer = [hops.as_slice(), &[hop]].concat();
                    next.push((longer, taken.ends, ends.clone()));
                }
            }
        }
        layer = next;
    }
    Ok(layer.into_iter().map(|(hops, ..)| hops).collect())
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{NameMatch, RelationId};
    use wherefore_model::Random;
    use wherefore_model::language::Scripted;
    use wherefore_model::relation_plan::Config;

    use super::super::follow::tests::movies;
    use super::*;

    fn link(graph: &dyn Graph, name: &str) -> Link {
        Link {
            entity: graph.entities_named(name, NameMatch::Exact).unwrap()[0],
            mention: name.into(),
            span: None,
            score: 1.0,
        }
    }

    #[test]
    fn probabilities_of_all_paths_sum_to_one() {
        let encoder = encode::open("hashing").unwrap();
        let sizes = Config {
            dim: encoder.dim(),
            hidden: 8,
            ..Config::default()
        };
        let network = Network::new(sizes, &mut Random::new(4), &Device::Cpu).unwrap();
        let graph = movies();
        let config = RelationPlanConfig {
            beam: 10_000,
            plans: 10_000,
            ..RelationPlanConfig::default()
        };
        let growth = Growth {
            max_length: 2,
            ..Growth::default()
        };
        let retriever = RelationPlan::from_parts(&network, encoder, growth, config).unwrap();
        let question = Question::new("who directed Alien");
        let scored = retriever
            .retrieve(&question, &[link(&graph, "Alien")], &graph)
            .unwrap();
        // all paths of one and two steps; what is missing goes on after the second, or leads back
        let sum: f32 = scored.plans.iter().map(|plan| plan.score).sum();
        assert!(sum > 0.3 && sum < 1.0, "{sum}");
        assert!(scored.plans.windows(2).all(|p| p[0].score >= p[1].score));
        let best = scored.plans[0].score;
        let top = scored.triple_scores.iter().copied().fold(0.0, f32::max);
        assert_eq!(best, top);
        // a narrow beam finds the best of what it continues
        let few = scored.plans.iter().filter(|p| p.hops.len() == 1).count();
        assert_eq!(few, 4);
    }

    #[test]
    fn a_language_model_can_write_the_paths() {
        let graph = movies();
        let said = "ans: directed by -> directed by -> starred actors\nans: born in\n";
        let script = serde_json::json!({ "text": said }).to_string();
        let model: Arc<dyn LanguageModel> = Arc::new(Scripted::parse(&script, "script").unwrap());
        let config = RelationPlanConfig {
            planner: PlannerKind::Llm,
            ..RelationPlanConfig::default()
        };
        let retriever = RelationPlan::new(config, || Ok(model)).unwrap();
        let question = Question::new("who starred in films by the director of Alien");
        let scored = retriever
            .retrieve(&question, &[link(&graph, "Alien")], &graph)
            .unwrap();
        let directions: Vec<bool> = scored.plans[0].hops.iter().map(|h| h.forward).collect();
        assert_eq!(
            (scored.plans.len(), directions),
            (1, vec![true, false, true])
        );
        assert_eq!(scored.llm.calls, 1);
        assert!((scored.plans[0].score - 0.9).abs() < 1e-6);
        let crowe = graph
            .entities_named("Russell Crowe", NameMatch::Exact)
            .unwrap()[0];
        let own = scored.subgraph.find(crowe).unwrap();
        assert!(scored.entity_scores[own.index()] > 0.0);
        assert!(
            scored.plans[0]
                .hops
                .iter()
                .all(|h| h.relation < RelationId(9))
        );
    }

    #[test]
    fn a_missing_model_is_said() {
        let none = || -> Result<Arc<dyn LanguageModel>> { Err(Error::NoLanguageModel) };
        let error = RelationPlan::new(RelationPlanConfig::default(), none)
            .err()
            .unwrap();
        assert!(
            error
                .hint()
                .unwrap()
                .contains("wherefore train relation-plan")
        );
    }
}
