//! Questions: answered, or only linked, or only retrieved for; and answers looked up again.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wherefore::answer::{Answer, Retrieved};
use wherefore::graph::Graph;
use wherefore::link::{Linker, LinkingReport};
use wherefore::verify::{Saved, Verification, link_reports, seal, verify_saved};
use wherefore::{Follow, Observer, Question, Stage};

use super::Engine;
use crate::engine::overhear::overhearing;
use crate::error::Result;
use crate::problem::Problem;

/// A question with where and how it is to be answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) graph: Option<String>,
    pub(crate) method: Option<String>,
}

/// What a question tells on its way.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A stage ended: its name, and what it made.
    Stage(Value),
    /// A language model wrote this. It is not checked yet.
    Text(String),
}

impl Engine {
    /// Answers a question. `tell` hears of every stage as it ends; where it breaks, nobody listens
    /// any more. A language model is stopped then, and at the deadline.
    pub(crate) fn ask(
        &self,
        asked: &Asked,
        deadline: Instant,
        tell: impl FnMut(Event) -> ControlFlow<()> + Clone + 'static,
    ) -> Result<Answer, Problem> {
        let served = self.graph(asked.graph.as_deref())?;
        let pipeline = served.pipeline(asked.method.as_deref())?;
        let graph = served.current()?;
        let mut teller = Teller {
            graph: &*graph,
            tell: tell.clone(),
            last: Instant::now(),
            notes: Vec::new(),
        };
        let mut tell = tell;
        let listen = move |text: &str| {
            if Instant::now() > deadline {
                return ControlFlow::Break(());
            }
            tell(Event::Text(text.to_owned()))
        };
        let mut answer = overhearing(deadline, listen, || {
            pipeline.answer(&asked.question, &*graph, &mut teller)
        })?;
        // what the retriever left out is told on the command line beside the answer
        teller.notes.append(&mut answer.notes);
        answer.notes = teller.notes;
        answer.seal = Some(seal(&answer, &*graph, self.signer.as_ref()));
        Ok(answer)
    }

    /// What a question follows after earlier ones, the newest first: they are asked again, where the
    /// method reads one question after another. One that fails is passed over.
    pub(crate) fn followed(
        &self,
        asked: &Asked,
        earlier: &[String],
        deadline: Instant,
    ) -> Result<Option<Follow>, Problem> {
        let served = self.graph(asked.graph.as_deref())?;
        let pipeline = served.pipeline(asked.method.as_deref())?;
        if earlier.is_empty() || !pipeline.retriever.follows() {
            return Ok(None);
        }
        let graph = served.current()?;
        let listen = move |_: &str| match Instant::now() > deadline {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut follow = None;
        for text in earlier.iter().rev() {
            if Instant::now() > deadline {
                break;
            }
            let question = Question::new(text).after(follow.clone());
            let answer = overhearing(deadline, listen, || {
                pipeline.answer(&question, &*graph, &mut ())
            });
            if let Ok(answer) = answer {
                follow = Follow::of(&answer).or(follow);
            }
        }
        Ok(follow)
    }

    /// Scored evidence only. `top_k` asks for the best triples instead of the selector's choice.
    pub(crate) fn retrieve(
        &self,
        asked: &Asked,
        top_k: Option<usize>,
    ) -> Result<Retrieved, Problem> {
        let served = self.graph(asked.graph.as_deref())?;
        let pipeline = served.pipeline(asked.method.as_deref())?;
        let graph = served.current()?;
        Ok(pipeline.retrieve(&asked.question, &*graph, top_k)?)
    }

    /// What the question is about.
    pub(crate) fn link(&self, asked: &Asked) -> Result<LinkingReport, Problem> {
        let served = self.graph(asked.graph.as_deref())?;
        let pipeline = served.pipeline(asked.method.as_deref())?;
        asked.question.check()?;
        let linker: &dyn Linker = pipeline.linker.as_ref();
        Ok(LinkingReport::new(
            linker,
            &asked.question,
            &*served.current()?,
        )?)
    }

    /// Looks a saved answer up again.
    pub(crate) fn verify(
        &self,
        graph: Option<&str>,
        answer: &Saved,
    ) -> Result<Verification, Problem> {
        let served = self.graph(graph)?;
        Ok(verify_saved(answer, &*served.current()?, None)?)
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Tells each stage as it passes.
struct Teller<'a, F> {
    graph: &'a dyn Graph,
    tell: F,
    last: Instant,
    notes: Vec<String>,
}

impl<F: FnMut(Event) -> ControlFlow<()>> Observer for Teller<'_, F> {
    fn stage(&mut self, stage: Stage<'_>) {
        let ms = milliseconds(self.last.elapsed());
        let mut made = match stage {
            // a link whose name cannot be read is told when the answer is put together
            Stage::Linked(links) => json!({
                "links": link_reports(links, self.graph).unwrap_or_default(),
            }),
            Stage::Retrieved(scored) => {
                self.notes.clone_from(&scored.notes);
                json!({
                    "entities": scored.subgraph.entities().len(),
                    "triples": scored.subgraph.triples().len(),
                })
            }
            Stage::Selected(selection) => json!({ "triples": selection.triples.len() }),
            Stage::Organized(context) => json!({ "lines": context.lines.len() }),
            Stage::Reasoned(conclusion) => json!({
                "answers": conclusion.answers.len() + conclusion.unmatched.len(),
                "calls": conclusion.llm.calls,
            }),
            Stage::Verified(answer) => json!({
                "answers": answer.answers.len(),
                "verified": answer.evidence.iter().filter(|e| e.verified).count(),
            }),
        };
        made["stage"] = stage.name().into();
        made["ms"] = ms.into();
        // stages are not broken off: what they compute is bounded
        let _ = (self.tell)(Event::Stage(made));
        self.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::engine::{toy_engine, toy_engine_with};

    fn asked(text: &str) -> Asked {
        Asked {
            question: Question::new(text),
            ..Asked::default()
        }
    }

    #[test]
    fn every_stage_is_told_before_the_answer() {
        let engine = toy_engine();
        let told = Rc::new(RefCell::new(Vec::new()));
        let ear = Rc::clone(&told);
        let answer = engine
            .ask(
                &asked("Who is the mascot of the San Francisco Giants?"),
                Instant::now() + Duration::from_secs(60),
                move |event| {
                    if let Event::Stage(stage) = event {
                        ear.borrow_mut().push(stage);
                    }
                    ControlFlow::Continue(())
                },
            )
            .unwrap();
        assert_eq!(answer.answers[0].name, "Lou Seal");
        let names: Vec<_> = told.borrow().iter().map(|s| s["stage"].clone()).collect();
        assert_eq!(
            names,
            ["link", "retrieve", "select", "organize", "reason", "verify"]
        );
        assert_eq!(told.borrow()[0]["links"][0]["name"], "San Francisco Giants");
        let saved = Saved::from_json(&serde_json::to_string(&answer).unwrap()).unwrap();
        assert!(engine.verify(None, &saved).unwrap().holds);
    }

    #[test]
    fn answers_are_signed_where_there_is_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("answers.key");
        std::fs::write(&file, wherefore::verify::SigningKey::generate().unwrap()).unwrap();
        let engine = toy_engine_with(|config| config.sign = Some(file.clone()));
        let question = asked("Who is the mascot of the San Francisco Giants?");
        let deadline = Instant::now() + Duration::from_secs(60);
        let answer = engine
            .ask(&question, deadline, |_| ControlFlow::Continue(()))
            .unwrap();
        let saved = Saved::from_json(&serde_json::to_string(&answer).unwrap()).unwrap();
        let key = wherefore::verify::PublicKey::open(&file).unwrap();
        let graph = engine.graph(None).unwrap().current().unwrap();
        assert!(verify_saved(&saved, &*graph, Some(&key)).unwrap().holds);
        assert_eq!(answer.seal.unwrap().graph.as_deref(), graph.identity());
    }

    #[test]
    fn retrieval_gives_as_many_triples_as_are_asked_for() {
        let engine = toy_engine();
        let question = asked("Which World Series did the San Francisco Giants win?");
        let report = engine.retrieve(&question, Some(2)).unwrap();
        assert_eq!(report.evidence.len(), 2);
        assert!(report.evidence.iter().all(|e| e.verified));
        assert!(report.evidence[0].score >= report.evidence[1].score);
        let nothing = engine.retrieve(&asked("Who wrote Hamlet?"), None).unwrap();
        assert!(nothing.links.is_empty() && nothing.evidence.is_empty());
    }
}
