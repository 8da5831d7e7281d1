//! The question taken apart by a language model, and answered step by step.
//!
//! KG-RAG (training-free decomposition), in our own words:
//!
//! ```text
//! q → q₁ … q_n                         one call: a thought, a numbered list, <END>
//! q'_i = rewrite(q_i | a_1 … a_{i−1})  a call from the second on
//! F_i = the K facts nearest to q'_i    s(f) = (1 + cos(enc(q'_i), enc(f))) / 2
//! a_i = answer(q'_i | F_i)             a call
//! a = join(q, q_1, a_1, …, q_n, a_n)   a call, unless the question stays whole
//! ```
//!
//! The facts are chosen from the triples that the retriever and the selector hand over, so any of
//! them can come before. [`Choice::Relations`] and [`Choice::PickedRelations`] are what the
//! method's authors ask for next: relations are chosen first, and only their triples are fetched,
//! around the topics and then around all entities that the answer before named.
//!
//! Departures: answers come as `ans:` lines, so that they can be matched to entities; a question
//! that stays whole needs no joining call; triples that join an answer to a topic are added to the
//! evidence where the facts shown do not. Without evidence ([`StepsConfig::evidence`]) the model
//! answers the steps from what it knows.

mod decompose;
mod facts;

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, Triple};
use wherefore_model::language::{Decoding, Message, Prompt, Role};
use wherefore_model::{LanguageModel, encode};

use super::budget::{Budget, Meter, TEMPLATE_TOKENS, lines_that_fit};
use super::{Candidate, Conclusion, Reasoner, confidence, reply};
use crate::answer::{Refusal, SubQuestion, Trace};
use crate::error::{Error, Result};
use crate::ground::Names;
use crate::organize::{Context, Organizer, TripleLines, TripleLinesConfig, one_line};
use crate::question::Question;
use crate::rationale::{Step, rationales};
use crate::relations::RelationEncoder;
use crate::retrieve::TripleEncoder;
use crate::select::Selection;
use facts::Facts;

pub use facts::Choice;

/// Names of an answer that are told to later steps.
const TOLD_NAMES: usize = 20;

/// Settings of [`Steps`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepsConfig {
    /// K: facts for each step.
    pub k: usize,
    /// Who chooses them.
    pub choice: Choice,
    /// Relations for each step, where relations are chosen first.
    pub relations: usize,
    /// The encoder's name: `static`, `hashing`, a model folder or an added model.
    pub encoder: String,
    /// Steps, at most.
    pub max_steps: usize,
    /// Whether facts are shown at all; without them, only what the model knows is asked for.
    pub evidence: bool,
    /// What all calls for a question may cost.
    pub budget: Budget,
    /// How tokens are chosen; each kind of call has its own length and end.
    pub decoding: Decoding,
}

impl Default for StepsConfig {
    fn default() -> Self {
        Self {
            k: 30,
            choice: Choice::default(),
            relations: 2,
            encoder: "static".into(),
            max_steps: 4,
            evidence: true,
            budget: Budget::default(),
            decoding: Decoding {
                max_tokens: 256,
                temperature: 0.3,
                min_p: 0.05,
                top_k: 40,
                ..Decoding::default()
            },
        }
    }
}

impl StepsConfig {
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [
            ("k", self.k),
            ("relations", self.relations),
            ("max_steps", self.max_steps),
        ] {
            if value == 0 {
                return Err(Error::Config(format!("`reason.{name}` must be at least 1")));
            }
        }
        self.budget.check()?;
        Ok(self.decoding.check()?)
    }
}

/// Asks a language model step by step.
pub struct Steps {
    config: StepsConfig,
    model: Arc<dyn LanguageModel>,
    facts: Facts,
}

impl Steps {
    /// A reasoner that asks this model; opens the encoder.
    pub fn new(config: StepsConfig, model: Arc<dyn LanguageModel>) -> Result<Self> {
        let encoder = encode::open(&config.encoder)?;
        Ok(Self {
            facts: Facts {
                choice: config.choice,
                k: config.k,
                relations: config.relations,
                triples: TripleEncoder::new(Arc::clone(&encoder)),
                encoder: RelationEncoder::new(encoder),
            },
            config,
            model,
        })
    }

    fn decoding(&self, max_tokens: usize, stop: &[&str]) -> Decoding {
        Decoding {
            max_tokens,
            stop: stop.iter().map(|s| (*s).to_owned()).collect(),
            ..self.config.decoding.clone()
        }
    }

    /// The smaller questions; the question itself where the model lists none.
    fn take_apart(&self, question: &str, meter: &mut Meter<'_>) -> Result<decompose::Parts> {
        let prompt = Prompt::Chat(decompose::messages(question));
        let reply = meter.complete(&prompt, &self.decoding(256, &[decompose::END]))?;
        let mut parts = decompose::read(&reply.text, self.config.max_steps);
        if parts.questions.is_empty() {
            parts.questions.push(question.to_owned());
        }
        Ok(parts)
    }

    /// The question with the answers so far in place of the words that stand for them.
    fn rewrite(
        &self,
        question: &str,
        before: &[SubQuestion],
        meter: &mut Meter<'_>,
    ) -> Result<String> {
        let example = include_str!("../prompts/steps-rewrite-example.txt").trim();
        let (asked, reply) = example.split_once("\n\n").unwrap_or((example, ""));
        let mut text = String::new();
        for step in before {
            text += &format!("Earlier: {}\nAnswer: {}\n", step.asked, told(step));
        }
        text += &format!("Rewrite: {}", one_line(question));
        let prompt = Prompt::Chat(vec![
            Message::new(
                Role::System,
                include_str!("../prompts/steps-rewrite-system.txt").trim(),
            ),
            Message::new(Role::User, asked),
            Message::new(Role::Assistant, reply),
            Message::new(Role::User, text),
        ]);
        let reply = meter.complete(&prompt, &self.decoding(128, &["?"]))?;
        let line = reply.text.lines().map(str::trim).find(|l| !l.is_empty());
        // a model that says nothing leaves the question as it was
        Ok(line.map_or_else(|| question.to_owned(), |l| one_line(l) + "?"))
    }

    /// What the model says to a smaller question, from the facts alone.
    fn answer(
        &self,
        asked: &str,
        facts: &[(Triple, f32)],
        graph: &dyn Graph,
        meter: &mut Meter<'_>,
    ) -> Result<(String, usize)> {
        let system = match self.config.evidence {
            true => include_str!("../prompts/evidence-system.txt").trim(),
            false => include_str!("../prompts/memory-system.txt").trim(),
        };
        let decoding = Decoding {
            repeat_penalty: 1.1,
            ..self.decoding(256, &[])
        };
        let selection = Selection {
            triples: facts.to_vec(),
            ..Selection::default()
        };
        let lines = TripleLines::new(TripleLinesConfig { confidence: false }).organize(
            &Question::new(asked),
            &selection,
            graph,
        )?;
        let left = meter
            .tokens_left()
            .saturating_sub(TEMPLATE_TOKENS + decoding.max_tokens)
            .saturating_sub(self.model.count_tokens(system)? + self.model.count_tokens(asked)?);
        let count = lines_that_fit(self.model.as_ref(), &lines.lines, left)?;
        let shown: Vec<&str> = (lines.lines[..count].iter())
            .map(|line| line.text.as_str())
            .collect();
        let text = match self.config.evidence {
            true => include_str!("../prompts/question.txt")
                .trim()
                .replacen("{question}", &one_line(asked), 1)
                .replacen("{evidence}", &shown.join("\n"), 1),
            false => format!("Question: {}", one_line(asked)),
        };
        let prompt = Prompt::Chat(vec![
            Message::new(Role::System, system),
            Message::new(Role::User, text),
        ]);
        Ok((meter.complete(&prompt, &decoding)?.text, count))
    }

    /// What follows from all answers.
    fn join(
        &self,
        question: &str,
        steps: &[SubQuestion],
        meter: &mut Meter<'_>,
    ) -> Result<reply::Reply> {
        let mut text = format!("Question: {}\n", one_line(question));
        for (number, step) in (1..).zip(steps) {
            text += &format!("{number}. {}\nAnswer: {}\n", step.asked, told(step));
        }
        let prompt = Prompt::Chat(vec![
            Message::new(
                Role::System,
                include_str!("../prompts/steps-join-system.txt").trim(),
            ),
            Message::new(Role::User, text.trim()),
        ]);
        let reply = meter.complete(&prompt, &self.decoding(512, &[]))?;
        Ok(reply::read(&reply.text))
    }
}

/// An answer in a line: its names, or what was said instead.
fn told(step: &SubQuestion) -> String {
    match step.answers.len() {
        0 => one_line(&step.text),
        n if n > TOLD_NAMES => step.answers[..TOLD_NAMES].join(", ") + " and others",
        _ => step.answers.join(", "),
    }
}

/// The facts shown so far, each once, in order.
struct Shown {
    selection: Selection,
}

impl Shown {
    /// Adds facts and says where they are.
    fn add(&mut self, facts: &[(Triple, f32)]) -> Vec<usize> {
        let triples = &mut self.selection.triples;
        (facts.iter())
            .map(|fact| {
                let at = triples.iter().position(|(t, _)| *t == fact.0);
                at.unwrap_or_else(|| {
                    triples.push(*fact);
                    triples.len() - 1
                })
            })
            .collect()
    }

    /// Adds what joins `entity` to a topic, where the facts do not and the retriever's triples do:
    /// `found_ways` leads through `found`.
    fn join(
        &mut self,
        entity: EntityId,
        found: &Selection,
        found_ways: &LazyCell<Ways, impl FnOnce() -> Ways>,
    ) {
        if !ways(&self.selection).contains_key(&entity) {
            let way = found_ways.get(&entity).map_or(&[][..], Vec::as_slice);
            let facts: Vec<_> = way.iter().map(|i| found.triples[*i]).collect();
            self.add(&facts);
        }
    }
}

/// From entities to the triples that join them to a topic.
type Ways = HashMap<EntityId, Vec<usize>>;

fn ways(selection: &Selection) -> Ways {
    let steps: Vec<Step<EntityId>> = (selection.triples.iter())
        .map(|(t, score)| Some((t.head, t.tail, *score)))
        .collect();
    rationales(selection.topics.iter().copied(), &steps)
}

impl Reasoner for Steps {
    fn reason(
        &self,
        question: &Question,
        context: &Context,
        graph: &dyn Graph,
    ) -> Result<Conclusion> {
        let mut meter = Meter::new(self.model.as_ref(), self.config.budget);
        if let Some(reason) = meter.spent() {
            return Ok(Conclusion {
                reason: Some(reason),
                refusal: Some(Refusal::BudgetSpent),
                ..Conclusion::default()
            });
        }
        let found = &context.selection;
        let mut shown = Shown {
            selection: Selection {
                topics: found.topics.clone(),
                ..Selection::default()
            },
        };
        let parts = self.take_apart(&question.text, &mut meter)?;
        let mut trace = Trace {
            thought: parts.thought,
            steps: Vec::new(),
        };
        let mut anchors = found.topics.clone();
        let mut last = reply::Reply::default();
        let count = parts.questions.len();
        for text in parts.questions {
            if let Some(reason) = meter.spent() {
                let done = trace.steps.len();
                let note = format!("{reason}: {done} of {count} steps were taken");
                meter.notes.push(note);
                break;
            }
            let asked = match trace.steps.is_empty() {
                true => text.clone(),
                false => self.rewrite(&text, &trace.steps, &mut meter)?,
            };
            if meter.spent().is_some() {
                continue;
            }
            let facts = match self.config.evidence {
                true => {
                    let decoding = self.decoding(128, &[]);
                    let ask = (&mut meter, &decoding);
                    self.facts
                        .find(&asked, &found.triples, &anchors, graph, ask)?
                }
                false => Vec::new(),
            };
            if meter.spent().is_some() {
                continue;
            }
            let (said, count) = self.answer(&asked, &facts, graph, &mut meter)?;
            last = reply::read(&said);
            let evidence = shown.add(&facts[..count]);
            let names = Names::of(
                &Selection {
                    triples: facts[..count].to_vec(),
                    ..Selection::default()
                },
                graph,
            )?;
            let mut reached = Vec::new();
            for name in &last.names {
                if let Some((entity, ..)) = names.find_any(&reply::forms(name))
                    && !reached.contains(&entity)
                {
                    reached.push(entity);
                }
            }
            if !reached.is_empty() {
                anchors = reached;
            }
            trace.steps.push(SubQuestion {
                question: text,
                asked,
                evidence,
                answers: last.names.clone(),
                text: said,
            });
        }
        if trace.steps.len() > 1 && meter.spent().is_none() {
            last = self.join(&question.text, &trace.steps, &mut meter)?;
        }
        let mut conclusion = Conclusion {
            text: Some(last.prose).filter(|prose| !prose.is_empty()),
            trace: Some(trace),
            ..Conclusion::default()
        };
        let names = Names::of(&shown.selection, graph)?;
        let found_ways = LazyCell::new(|| ways(found));
        for name in last.names {
            match names.find_any(&reply::forms(&name)) {
                Some((entity, score, how)) => {
                    if conclusion.answers.iter().all(|a| a.entity != entity) {
                        shown.join(entity, found, &found_ways);
                        conclusion.answers.push(Candidate {
                            entity,
                            confidence: confidence(score, how),
                            path: Vec::new(),
                        });
                    }
                }
                None => conclusion.unmatched.push(name),
            }
        }
        if conclusion.answers.is_empty() && conclusion.unmatched.is_empty() {
            conclusion.reason = Some(match last.unavailable {
                true => "the language model finds no answer in the evidence".into(),
                false => "the language model named no answer".into(),
            });
        }
        conclusion.llm = meter.used;
        conclusion.notes = meter.notes;
        conclusion.evidence = Some(shown.selection);
        Ok(conclusion)
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};
    use wherefore_model::language::Scripted;

    use super::*;

    /// Two films of a writer with their years, and a film of somebody else.
    fn graph() -> MemoryGraph {
        MemoryGraph::from_names([
            ("Dawn", "written_by", "Ada"),
            ("Dusk", "written_by", "Ada"),
            ("Noon", "written_by", "Bob"),
            ("Dawn", "release_year", "1999"),
            ("Dusk", "release_year", "2003"),
            ("Noon", "release_year", "2010"),
            ("Dawn", "has_genre", "Drama"),
        ])
    }

    /// Asks with a model that replies by the words in its prompt.
    fn ask(config: StepsConfig, replies: &[(&str, &str)]) -> (Conclusion, MemoryGraph) {
        let graph = graph();
        let script: Vec<String> = (replies.iter())
            .map(|(contains, text)| serde_json::json!({ "contains": contains, "text": text }))
            .map(|line| line.to_string())
            .collect();
        let model = Scripted::parse(&script.join("\n"), "script").unwrap();
        let ada = graph.entities_named("Ada", NameMatch::Exact).unwrap()[0];
        let context = Context {
            selection: Selection {
                triples: graph.triples().map(|t| (t, 0.5)).collect(),
                topics: vec![ada],
                ..Selection::default()
            },
            ..Context::default()
        };
        let steps = Steps::new(config, Arc::new(model)).unwrap();
        let question = Question::new("When were the films written by Ada released?");
        (steps.reason(&question, &context, &graph).unwrap(), graph)
    }

    const TWO_STEPS: [(&str, &str); 6] = [
        ("You pick the relations", "ans: Release_Year"),
        (
            "You split a question",
            "Thought: first the films.\n1. Which films were written by Ada?\n2. When were these films released?\n",
        ),
        ("You rewrite a question", "When were Dawn and Dusk released"),
        (
            "the smaller questions it was split into",
            "Dawn came out in 1999 and Dusk in 2003.\nans: 1999\nans: 2003\nans: 1850",
        ),
        ("Question: Which films", "ans: Dawn\nans: Dusk"),
        ("Question: When were Dawn and Dusk", "ans: 1999\nans: 2003"),
    ];

    #[test]
    fn every_step_is_told_and_its_answers_are_entities() {
        for choice in [Choice::Nearest, Choice::Relations] {
            let config = StepsConfig {
                choice,
                relations: 1,
                ..StepsConfig::default()
            };
            let (conclusion, graph) = ask(config, &TWO_STEPS);
            let names: Vec<_> = (conclusion.answers.iter())
                .map(|a| graph.entity_label(a.entity).unwrap().into_owned())
                .collect();
            assert_eq!(names, ["1999", "2003"]);
            assert_eq!(conclusion.unmatched, ["1850"]);
            assert_eq!(conclusion.llm.calls, 5);
            let trace = conclusion.trace.unwrap();
            assert_eq!(trace.thought.as_deref(), Some("first the films."));
            assert_eq!(trace.steps[1].asked, "When were Dawn and Dusk released?");
            assert_eq!(trace.steps[0].answers, ["Dawn", "Dusk"]);
            // both answers are joined to Ada inside the evidence
            let evidence = conclusion.evidence.unwrap();
            let steps: Vec<Step<EntityId>> = (evidence.triples.iter())
                .map(|(t, s)| Some((t.head, t.tail, *s)))
                .collect();
            let ways = rationales(evidence.topics.iter().copied(), &steps);
            for answer in &conclusion.answers {
                assert_eq!(ways[&answer.entity].len(), 2);
            }
            if choice == Choice::Relations {
                // who wrote what, then the years of these two films and of no other
                assert_eq!(evidence.triples.len(), 2 + 2);
                assert_eq!(trace.steps[1].evidence, [2, 3]);
            }
        }
    }

    #[test]
    fn the_model_picks_relations_by_name_or_number() {
        let config = StepsConfig {
            choice: Choice::PickedRelations,
            ..StepsConfig::default()
        };
        // Ada has one relation: nothing to pick
        let (conclusion, _) = ask(config, &TWO_STEPS);
        assert_eq!(conclusion.answers.len(), 2);
        assert_eq!(conclusion.llm.calls, 6);
        assert_eq!(conclusion.evidence.unwrap().triples.len(), 2 + 2);
    }

    #[test]
    fn a_question_that_stays_whole_needs_two_calls() {
        let replies = [
            ("You split a question", "It is one relation."),
            ("Question: When were", "ans: Dawn"),
        ];
        let (conclusion, _) = ask(StepsConfig::default(), &replies);
        assert_eq!((conclusion.llm.calls, conclusion.answers.len()), (2, 1));
        let trace = conclusion.trace.unwrap();
        assert_eq!(
            trace.steps[0].question,
            "When were the films written by Ada released?"
        );
    }

    #[test]
    fn a_budget_ends_the_steps_and_that_is_said() {
        let config = StepsConfig {
            budget: Budget {
                max_calls: Some(2),
                ..Budget::default()
            },
            ..StepsConfig::default()
        };
        let (conclusion, _) = ask(config, &TWO_STEPS);
        assert_eq!(conclusion.llm.calls, 2);
        assert!(
            conclusion.notes[0].contains("1 of 2 steps"),
            "{:?}",
            conclusion.notes
        );
        // what the first step said is all there is
        assert_eq!(conclusion.answers.len(), 2);
    }

    #[test]
    fn without_evidence_nothing_is_shown_and_no_name_is_proved() {
        let config = StepsConfig {
            evidence: false,
            ..StepsConfig::default()
        };
        let (conclusion, _) = ask(config, &TWO_STEPS);
        assert!(conclusion.answers.is_empty());
        assert_eq!(conclusion.unmatched, ["1999", "2003", "1850"]);
        assert!(conclusion.evidence.unwrap().triples.is_empty());
    }
}
