//! The whole way from question to checked answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wherefore_graph::{Error as GraphError, Graph, Service};

use crate::answer::{Alternative, Answer, Refusal, Retrieved, ServiceUse, Status};
use crate::auto;
use crate::confidence::{Calibration, best, signals};
use crate::error::{Error, Result};
use crate::link::{Link, Linker};
use crate::organize::{Context, Form, Organizer};
use crate::question::Question;
use crate::read::computes;
use crate::reason::{Conclusion, Reasoner, form_of};
use crate::retrieve::{Retriever, ScoredTriples};
use crate::select::{Selection, Selector};
use crate::verify::{Rules, evidence, link_reports, settle};

/// Other methods and other readings are begun within this time.
const BESIDE: Duration = Duration::from_secs(2);
/// From here on no language model is asked beside other methods.
const SURE: f32 = 0.5;

/// Five parts, a rule, and no state: the same pipeline answers any question over any graph.
///
/// ```
/// use wherefore::{PipelineConfig, Question, graph::toy};
/// let pipeline = PipelineConfig::default().build()?;
/// let question = Question::new("Which stadium do the San Francisco Giants play in?");
/// let answer = pipeline.answer(&question, &toy::graph(), &mut ())?;
/// assert_eq!(answer.answers[0].name, "Oracle Park");
/// assert!(answer.evidence[answer.answers[0].rationale[0]].verified);
/// # Ok::<(), wherefore::Error>(())
/// ```
pub struct Pipeline {
    /// From words to entities; pipelines over one graph can share it and what it keeps.
    pub linker: Arc<dyn Linker>,
    /// From entities to scored triples.
    pub retriever: Box<dyn Retriever>,
    /// From scored triples to evidence.
    pub selector: Box<dyn Selector>,
    /// From evidence to text.
    pub organizer: Box<dyn Organizer>,
    /// From text to answers.
    pub reasoner: Box<dyn Reasoner>,
    /// How conclusions become answers.
    pub rules: Rules,
    /// How sure they are; as the reasoner says, where there is none.
    pub calibration: Option<Calibration>,
    /// Other pipelines that are asked beside it, in this order (method `auto`).
    pub beside: Vec<Pipeline>,
    /// It asks a language model: beside others, only where these come to nothing that is sure.
    pub is_costly: bool,
    /// Share of answers that are to be right, where a question does not say it.
    pub precision: Option<f32>,
}

/// Sees every value that passes from stage to stage: traces, web page and tests.
pub trait Observer {
    /// Called after each stage with what it made.
    fn stage(&mut self, stage: Stage<'_>);
}

/// Nobody looks.
impl Observer for () {
    fn stage(&mut self, _stage: Stage<'_>) {}
}

/// What a stage made. Stages come in this order; after an abstention the last one comes at once.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    /// The entities that the question is about.
    Linked(&'a [Link]),
    /// Their neighbourhood, with scores.
    Retrieved(&'a ScoredTriples),
    /// The evidence.
    Selected(&'a Selection),
    /// The evidence as text.
    Organized(&'a Context),
    /// The answers, unchecked.
    Reasoned(&'a Conclusion),
    /// What is handed out.
    Verified(&'a Answer),
}

impl Stage<'_> {
    /// The stage's key in `timings_ms`.
    pub fn name(&self) -> &'static str {
        match self {
            Stage::Linked(_) => "link",
            Stage::Retrieved(_) => "retrieve",
            Stage::Selected(_) => "select",
            Stage::Organized(_) => "organize",
            Stage::Reasoned(_) => "reason",
            Stage::Verified(_) => "verify",
        }
    }
}

impl Pipeline {
    /// Answers the question, or abstains and says why.
    ///
    /// An answer is only given if triples that were looked up in the graph again join it to a
    /// topic.
    pub fn answer(
        &self,
        question: &Question,
        graph: &dyn Graph,
        observer: &mut dyn Observer,
    ) -> Result<Answer> {
        question.check()?;
        if let Some(service) = graph.service() {
            let service = service.for_question();
            let mut answer = self.answer_within(question, &service, observer)?;
            answer.service = Some(ServiceUse {
                requests: service.requests(),
                rounds: service.rounds(),
            });
            observer.stage(Stage::Verified(&answer));
            return Ok(answer);
        }
        let answer = self.answer_within(question, graph, observer)?;
        observer.stage(Stage::Verified(&answer));
        Ok(answer)
    }

    fn answer_within(
        &self,
        question: &Question,
        graph: &dyn Graph,
        observer: &mut dyn Observer,
    ) -> Result<Answer> {
        let begun = Instant::now();
        let least = self.least(question)?;
        let (mut answer, within) = self.timed(question, graph, observer)?;
        if let Some(coverage) = question.coverage.filter(|_| question.reading == 0) {
            let mut all_asked = true;
            for number in within {
                if begun.elapsed() > BESIDE {
                    all_asked = false;
                    break;
                }
                let other = Question {
                    reading: number,
                    coverage: None,
                    ..question.clone()
                };
                let (other, _) = self.timed(&other, graph, &mut ())?;
                if other.status == Status::Answered {
                    answer.others.push(other);
                }
            }
            if answer.status == Status::Abstained && !answer.others.is_empty() {
                let mut first = answer.others.remove(0);
                first.others = std::mem::take(&mut answer.others);
                answer = first;
            }
            let these = match answer.others.len() {
                0 => "this reading is".to_owned(),
                others => format!("one of these {} readings is", others + 1),
            };
            answer.notes.push(match all_asked {
                true => format!(
                    "{these} right with a probability of at least {coverage}, over questions like those that `wherefore conformal` saw"
                ),
                false => format!(
                    "not all readings could be run in time: {coverage} is not promised"
                ),
            });
        } else if question.reading == 0 {
            let mut heard = false;
            for beside in &self.beside {
                let sure = best(&answer).is_some_and(|sure| sure >= least.max(SURE));
                // others read each question by itself
                if auto::is_executed(&answer)
                    || answer.carried.is_some()
                    || beside.is_costly && sure
                    || answer.status == Status::Abstained && computes(&question.text)
                {
                    continue;
                }
                if begun.elapsed() > BESIDE {
                    let note = "not all methods could be asked in time";
                    answer.notes.push(note.into());
                    break;
                }
                let (other, _) = beside.timed(question, graph, &mut ())?;
                answer = auto::together(answer, other);
                heard = true;
            }
            if !self.beside.is_empty() && !heard {
                answer = auto::alone(answer);
            }
            if best(&answer).is_some_and(|sure| sure < least) {
                answer = too_unsure(answer, least);
            }
        }
        let total = begun.elapsed().as_secs_f64() * 1e3;
        answer.timings_ms.insert("total".into(), total);
        Ok(answer)
    }

    /// The triples that bear on the question, best first: what the selector takes, or the `top_k`
    /// with the best scores.
    pub fn retrieve(
        &self,
        question: &Question,
        graph: &dyn Graph,
        top_k: Option<usize>,
    ) -> Result<Retrieved> {
        question.check()?;
        let service = graph.service().map(Service::for_question);
        let graph = service.as_ref().map_or(graph, |service| service);
        let mut clock = Clock::start();
        let links = self.linker.link(question, graph)?;
        clock.lap("link");
        let mut found = Retrieved {
            question: question.text.clone(),
            links: link_reports(&links, graph)?,
            ..Retrieved::default()
        };
        if !links.is_empty() || !self.retriever.needs_links() {
            let scored = self.retriever.retrieve(question, &links, graph)?;
            clock.lap("retrieve");
            let selection = match top_k {
                None => self.selector.select(&scored)?,
                Some(k) => {
                    let scores = &scored.triple_scores;
                    let mut order: Vec<usize> = (0..scores.len()).collect();
                    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
                    order.truncate(k);
                    Selection::of(&scored, &order)
                }
            };
            clock.lap("select");
            let subgraph = &scored.subgraph;
            found.subgraph = [subgraph.entities().len(), subgraph.triples().len()];
            found.evidence = evidence(&selection, graph)?;
            found.notes = scored.notes;
            clock.lap("verify");
        }
        found.timings_ms = clock.timings();
        Ok(found)
    }

    /// The least confidence of an answer.
    fn least(&self, question: &Question) -> Result<f32> {
        let calibration = match self.beside.is_empty() {
            true => self.calibration.as_ref(),
            false => Some(auto::joint()),
        };
        match (calibration, question.precision.or(self.precision)) {
            (Some(calibration), wished) => calibration.least(wished),
            (None, None | Some(0.0)) => Ok(0.0),
            (None, Some(_)) => Err(Error::NotCalibrated),
        }
    }

    /// This pipeline's own answer, however sure, and other readings that a coverage takes in.
    fn timed(
        &self,
        question: &Question,
        graph: &dyn Graph,
        observer: &mut dyn Observer,
    ) -> Result<(Answer, Vec<usize>)> {
        let mut clock = Clock::start();
        let (mut phases, mut within) = (Vec::new(), Vec::new());
        let mut seen = |scored: &mut ScoredTriples| {
            phases.clone_from(&scored.phases);
            within = std::mem::take(&mut scored.within);
        };
        let mut answer = match self.run(question, graph, observer, &mut clock, &mut seen) {
            Err(Error::Graph(
                spent @ (GraphError::RequestsSpent { .. } | GraphError::ServiceTooSlow { .. }),
            )) => Answer {
                question: question.text.clone(),
                status: Status::Abstained,
                refusal: Some(Refusal::BudgetSpent),
                notes: spent.hint().into_iter().collect(),
                reason: Some(spent.to_string()),
                ..Answer::default()
            },
            ran => ran?,
        };
        clock.lap("verify");
        answer.timings_ms = clock.timings();
        let phases = phases.into_iter().map(|(phase, ms)| (phase.to_owned(), ms));
        answer.timings_ms.extend(phases);
        Ok((answer, within))
    }

    fn run(
        &self,
        question: &Question,
        graph: &dyn Graph,
        observer: &mut dyn Observer,
        clock: &mut Clock,
        seen: &mut dyn FnMut(&mut ScoredTriples),
    ) -> Result<Answer> {
        let mut pass = |stage: Stage<'_>| {
            clock.lap(stage.name());
            observer.stage(stage);
            // what the observer does is not the stage's time
            clock.last = Instant::now();
        };
        let abstain = |refusal: Refusal, reason: &str, links: &[Link]| -> Result<Answer> {
            Ok(Answer {
                question: question.text.clone(),
                status: Status::Abstained,
                reason: Some(reason.to_owned()),
                refusal: Some(refusal),
                links: link_reports(links, graph)?,
                ..Answer::default()
            })
        };

        let mut links = self.linker.link(question, graph)?;
        pass(Stage::Linked(&links));
        if links.is_empty() && self.retriever.needs_links() {
            let near = self.linker.nearest(question, graph)?;
            let reason = match near.as_slice() {
                [] => "no name in the question is in the graph".to_owned(),
                near => format!(
                    "no name in the question is in the graph; the nearest are {}",
                    near.join(", ")
                ),
            };
            return abstain(Refusal::NotLinked, &reason, &links);
        }
        let mut scored = self.retriever.retrieve(question, &links, graph)?;
        pass(Stage::Retrieved(&scored));
        seen(&mut scored);
        if let Some((refusal, reason)) = &scored.refused {
            return Ok(Answer {
                carried: scored.carried,
                words: scored.words,
                unused_words: scored.unused,
                alternatives: scored.alternatives,
                ..abstain(*refusal, reason, &links)?
            });
        }
        if scored.carried.is_some() {
            // the last answer says what it is about, beside the names that were used
            let topics: Vec<_> = (scored.topics.iter())
                .map(|&topic| scored.subgraph.entity(topic))
                .collect();
            links.retain(|link| topics.contains(&link.entity));
        }
        // a count of nothing has no triples
        let formed = scored.form.is_some();
        if scored.subgraph.triples().is_empty() && !formed {
            let mut known = false;
            for link in &links {
                known |= graph.degree(link.entity)? > 0;
            }
            let reason = if known {
                "no fact near the topic bears on the question"
            } else {
                "the graph says nothing about the topic"
            };
            return abstain(Refusal::RelationAbsent, reason, &links);
        }
        let selection = self.selector.select(&scored)?;
        pass(Stage::Selected(&selection));
        if selection.triples.is_empty() && !formed {
            let reason = "no fact near the topic bears on the question";
            return abstain(Refusal::RelationAbsent, reason, &links);
        }
        let context = self.organizer.organize(question, &selection, graph)?;
        pass(Stage::Organized(&context));
        let mut conclusion = self.reasoner.reason(question, &context, graph)?;
        pass(Stage::Reasoned(&conclusion));
        let looked_at = conclusion.evidence.take();
        let looked_at = looked_at.as_ref().unwrap_or(&context.selection);
        if conclusion.form.is_none() {
            conclusion.form = form_of(&conclusion, looked_at, graph)?;
        }
        let mut answer = settle(question, &links, looked_at, conclusion, self.rules, graph)?;
        answer.signals = signals(&answer, &scored.signals);
        if let Some(calibration) = &self.calibration {
            calibration.apply(&mut answer);
        }
        answer.llm.add(scored.llm);
        answer.carried = scored.carried;
        answer.words = scored.words;
        if question.follow.is_some() && !self.retriever.follows() {
            let note =
                "this method reads each question by itself: nothing of the last one was used";
            answer.notes.push(note.into());
        }
        answer.unused_words = scored.unused;
        answer.alternatives = scored.alternatives;
        if context.form == Form::Chains {
            answer.chains = context.lines.into_iter().map(|line| line.text).collect();
        }
        Ok(answer)
    }
}

/// A refusal in place of an answer that is not sure enough; what was read is offered.
fn too_unsure(mut answer: Answer, least: f32) -> Answer {
    let sure = best(&answer).unwrap_or(0.0);
    let contradicted = answer.signals.get("agreement") == Some(&0.0);
    let read = match &answer.reading {
        Some(reading) => format!("`{reading}`"),
        None => "the best answer".to_owned(),
    };
    let percent = |x: f32| format!("{:.0}%", 100.0 * x);
    let (refusal, why) = match contradicted {
        true => (
            Refusal::RoutesContradict,
            "two methods contradict each other, and ",
        ),
        false => (Refusal::EvidenceTooWeak, ""),
    };
    let reason = format!(
        "{why}{read} would be right with {}; answers are given from {} on",
        percent(sure),
        percent(least)
    );
    let mut alternatives = std::mem::take(&mut answer.alternatives);
    let is_of_other = ["other", "agreement"].map(|name| answer.signals.contains_key(name));
    if let (Some(reading), Some(form), [false, false]) =
        (&answer.reading, &answer.logical_form, is_of_other)
    {
        alternatives.insert(
            0,
            Alternative {
                number: 1,
                reading: reading.clone(),
                share: sure,
                logical_form: form.clone(),
                unused_words: Vec::new(),
            },
        );
    }
    let mut others = std::mem::take(&mut answer.others);
    if contradicted {
        // both sides with their proofs
        others.insert(0, answer.clone());
    }
    Answer {
        question: answer.question,
        status: Status::Abstained,
        reason: Some(reason),
        refusal: Some(refusal),
        carried: answer.carried,
        unused_words: answer.unused_words,
        alternatives,
        others,
        signals: answer.signals,
        links: answer.links,
        timings_ms: answer.timings_ms,
        llm: answer.llm,
        notes: answer.notes,
        ..Answer::default()
    }
}

struct Clock {
    begun: Instant,
    last: Instant,
    laps: Vec<(&'static str, f64)>,
}

impl Clock {
    fn start() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            last: now,
            laps: Vec::with_capacity(6),
        }
    }

    fn lap(&mut self, stage: &'static str) {
        let now = Instant::now();
        self.laps
            .push((stage, (now - self.last).as_secs_f64() * 1e3));
        self.last = now;
    }

    fn timings(&self) -> std::collections::BTreeMap<String, f64> {
        let total = ("total", self.begun.elapsed().as_secs_f64() * 1e3);
        self.laps
            .iter()
            .chain([&total])
            .map(|&(stage, ms)| (stage.to_owned(), ms))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::toy;

    use super::*;
    use crate::config::PipelineConfig;
    use crate::error::Error;
    use crate::method::Method;

    #[derive(Default)]
    struct Names(Vec<&'static str>);

    impl Observer for Names {
        fn stage(&mut self, stage: Stage<'_>) {
            self.0.push(stage.name());
        }
    }

    fn ask(text: &str, seen: &mut Names) -> Result<Answer> {
        ask_by(Method::Read, text, seen)
    }

    fn ask_by(method: Method, text: &str, seen: &mut Names) -> Result<Answer> {
        PipelineConfig::of(method).build().unwrap().answer(
            &Question::new(text),
            &toy::graph(),
            seen,
        )
    }

    #[test]
    fn the_observer_sees_every_stage_and_each_is_timed() {
        let mut seen = Names::default();
        let answer = ask("What is the capacity of Oracle Park?", &mut seen).unwrap();
        assert_eq!(
            seen.0,
            ["link", "retrieve", "select", "organize", "reason", "verify"]
        );
        let stages: f64 = seen.0.iter().map(|stage| answer.timings_ms[*stage]).sum();
        let total = answer.timings_ms["total"];
        assert!(stages > 0.0 && stages <= total, "{stages} {total}");
    }

    #[test]
    fn it_abstains_and_says_why() {
        let hamlet = "Who wrote Hamlet?";
        for (method, text, stages, reason) in [
            (Method::Similarity, hamlet, 2, "no name in the question"),
            (Method::Read, hamlet, 3, "nothing in the question names"),
            (
                Method::Read,
                "Do the San Francisco Giants knit?",
                3,
                "`knit`",
            ),
        ] {
            let mut seen = Names::default();
            let answer = ask_by(method, text, &mut seen).unwrap();
            assert_eq!(answer.status, Status::Abstained);
            assert!(answer.answers.is_empty());
            assert_eq!(seen.0.len(), stages, "{:?}", seen.0);
            let told = answer.reason.unwrap();
            assert!(told.contains(reason), "{told}");
        }
    }

    #[test]
    fn a_question_without_words_or_end_is_refused() {
        let mut seen = Names::default();
        assert!(matches!(
            ask(" \u{7}\n", &mut seen),
            Err(Error::EmptyQuestion)
        ));
        let long = "a".repeat(100_000);
        assert!(matches!(
            ask(&long, &mut seen),
            Err(Error::QuestionTooLong {
                length: 100_000,
                ..
            })
        ));
        assert!(seen.0.is_empty());
    }
}
