//! How good the forms are that a trained model writes for a benchmark's questions.
//!
//! ```text
//! exact      the likeliest form is the gold one, in normal form
//! in beam    some form is
//! answered   some form, mended or not, comes to something
//! Hits@1, F1 of its answers against the gold answers; nothing found counts 0
//! ```
//!
//! Told for all questions with a gold form, and for those whose gold form comes to something on the
//! graph: the others cannot be answered by any form.

use std::time::Instant;

use serde::Serialize;
use wherefore::Question;
use wherefore::logic::{Form, Moment, Plan, RunLimits, run};
use wherefore::retrieve::amar::target;
use wherefore::retrieve::{Amar, FormAnswer};
use wherefore_graph::Graph;

use crate::error::Result;
use crate::forms::known_form;
use crate::metrics::{AnswerCounts, Matching, PredictedAnswer};
use crate::questions::{GoldQuestion, Name, resolve};

/// What became of the written forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Questions.
    pub questions: usize,
    /// Share whose first form is the gold one.
    pub exact: f64,
    /// Share of which some form is.
    pub in_beam: f64,
    /// Share with an answer.
    pub answered: f64,
    /// Share whose first answer is right.
    pub hits_at_1: f64,
    /// Mean F1 of the answers.
    pub f1: f64,
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Written {
    /// Questions with a known gold form.
    pub all: Figures,
    /// Of them, those whose gold form comes to something.
    pub runnable: Figures,
    /// Questions without one, which were left out.
    pub without_form: usize,
    /// Seconds that it took.
    pub seconds: f64,
}

impl Figures {
    fn add(&mut self, other: &Figures) {
        self.questions += other.questions;
        self.exact += other.exact;
        self.in_beam += other.in_beam;
        self.answered += other.answered;
        self.hits_at_1 += other.hits_at_1;
        self.f1 += other.f1;
    }

    fn mean(mut self) -> Self {
        let count = self.questions.max(1) as f64;
        for sum in [
            &mut self.exact,
            &mut self.in_beam,
            &mut self.answered,
            &mut self.hits_at_1,
            &mut self.f1,
        ] {
            *sum /= count;
        }
        self
    }
}

/// Writes forms for all questions with a known form, `batch` at a time.
pub fn written(
    amar: &Amar,
    graph: &dyn Graph,
    questions: &[GoldQuestion],
    gold_entities: bool,
    batch: usize,
    see: &mut dyn FnMut(usize),
) -> Result<Written> {
    let begun = Instant::now();
    let mut sum = Written::default();
    let known: Vec<(&GoldQuestion, Form)> = questions
        .iter()
        .filter_map(|question| Some((question, known_form(question)?)))
        .collect();
    sum.without_form = questions.len() - known.len();
    let mut done = 0;
    for part in known.chunks(batch.max(1)) {
        let asked: Vec<Question> = part
            .iter()
            .map(|(question, _)| asked(question, gold_entities, graph))
            .collect::<Result<_>>()?;
        let found = amar.retrieve_all(&asked, graph)?;
        for ((question, gold), (scored, written)) in part.iter().zip(found) {
            let gold_text: Form = target(gold, graph)?.parse()?;
            let gold_text = gold_text.normal();
            let mut forms = written.forms.iter().map(|f| f.form.normal());
            let place = forms.position(|form| form == gold_text);
            let answers = match &scored.form {
                Some(form) => predicted(form, graph)?,
                None => Vec::new(),
            };
            let counts = AnswerCounts::of(&question.answers, &answers, Matching::Lenient);
            let one = Figures {
                questions: 1,
                exact: f64::from(u8::from(place == Some(0))),
                in_beam: f64::from(u8::from(place.is_some())),
                answered: f64::from(u8::from(!answers.is_empty())),
                hits_at_1: counts.hit_at_1,
                f1: counts.f1(),
            };
            sum.all.add(&one);
            if comes_to_something(gold, graph)? {
                sum.runnable.add(&one);
            }
        }
        done += part.len();
        see(done);
    }
    sum.all = sum.all.mean();
    sum.runnable = sum.runnable.mean();
    sum.seconds = begun.elapsed().as_secs_f64();
    Ok(sum)
}

/// The question as the method takes it: with its gold topics, as far as the graph has them, or with
/// none.
pub(crate) fn asked(
    question: &GoldQuestion,
    gold_entities: bool,
    graph: &dyn Graph,
) -> Result<Question> {
    let mut asked = question.without_topics();
    if gold_entities {
        let found = resolve(question, graph)?.topics;
        let known = question
            .topics
            .iter()
            .zip(found)
            .filter(|(_, found)| !found.is_empty());
        for (_, entities) in known {
            asked
                .topics
                .push(graph.entity_label(entities[0])?.into_owned());
        }
    }
    Ok(asked)
}

fn predicted(form: &FormAnswer, graph: &dyn Graph) -> Result<Vec<PredictedAnswer>> {
    if let Some((name, _)) = &form.computed {
        return Ok(vec![PredictedAnswer::new(name)]);
    }
    let mut answers = Vec::with_capacity(form.answers.len());
    for answer in &form.answers {
        let name = Name::with_id(
            graph.entity_label(answer.entity)?,
            graph.entity_term(answer.entity)?.to_string(),
        );
        answers.push(PredictedAnswer {
            name,
            score: Some(answer.confidence),
        });
    }
    Ok(answers)
}

fn comes_to_something(form: &Form, graph: &dyn Graph) -> Result<bool> {
    let plan = Plan::new(form, graph, Moment::now())?;
    Ok(run(&plan, graph, &RunLimits::default()).is_ok_and(|outcome| !outcome.is_empty()))
}
