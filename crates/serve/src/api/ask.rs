//! `ask`, `retrieve`, `link`, `verify`.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use wherefore::verify::Saved;
use wherefore::{Follow, Question};

use crate::app::{App, Work};
use crate::config::Scope;
use crate::engine::{Asked, Event};
use crate::error::Result;
use crate::exchange::{in_range, json_bytes, read_json, read_query, to_json};
use crate::pool::Wanted;
use crate::problem::Problem;
use crate::stream::{Frames, event};

const MOST_TRIPLES: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskBody {
    question: String,
    #[serde(default)]
    graph: Option<String>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    topics: Vec<String>,
    #[serde(default)]
    reading: usize,
    #[serde(default)]
    precision: Option<f32>,
    #[serde(default)]
    coverage: Option<f32>,
    #[serde(default)]
    follow: Option<Follow>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    top_k: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskQuery {
    #[serde(default)]
    stream: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyBody {
    answer: Saved,
    #[serde(default)]
    graph: Option<String>,
}

impl AskBody {
    async fn read(app: &App, request: Request) -> Result<Self, Problem> {
        let query: AskQuery = read_query(request.uri())?;
        let mut body: Self = read_json(app, request).await?;
        body.stream |= query.stream;
        Ok(body)
    }

    /// Refuses what can be refused before it waits in a queue.
    fn asked(&self, app: &App) -> Result<Asked, Problem> {
        app.allow(Scope::Ask, self.graph.as_deref())?;
        let mut question = Question::new(&self.question).about(&self.topics);
        question.reading = self.reading;
        question.precision = self.precision;
        question.coverage = self.coverage;
        question.follow.clone_from(&self.follow);
        app.check_question(&question)?;
        let graph = app.engine.graph(self.graph.as_deref())?;
        graph.pipeline(self.method.as_deref())?;
        Ok(Asked {
            question,
            graph: self.graph.clone(),
            method: self.method.clone(),
        })
    }

    fn refuse(&self, unwanted: &[(&str, bool)]) -> Result<(), Problem> {
        match unwanted.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => Err(Problem::bad_request(
                "bad-body",
                format!("`{name}` means nothing here"),
            )),
        }
    }
}

pub(super) async fn ask(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let body = AskBody::read(&app, request).await?;
    body.refuse(&[("top_k", body.top_k.is_some())])?;
    let asked = body.asked(&app)?;
    if body.stream {
        return streamed(&app, asked);
    }
    let deadline = app.deadline();
    let work = app.work_of(asked.graph.as_deref(), asked.method.as_deref());
    let job = move |app: &App, wanted: &Wanted| {
        let wanted = wanted.clone();
        let tell = move |_| match wanted.is_wanted() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let answer = app.engine.ask(&asked, deadline, tell)?;
        app.metrics.answer(&answer);
        Ok(to_json(&answer))
    };
    Ok(json_bytes(app.run(work, job).await?))
}

/// Every stage as an event, then the answer.
fn streamed(app: &Arc<App>, asked: Asked) -> Result<Response, Problem> {
    let deadline = app.deadline();
    let (send, receive) = mpsc::unbounded_channel();
    let result = app.submit(
        app.work_of(asked.graph.as_deref(), asked.method.as_deref()),
        move |app| {
            let tell = move |told: Event| {
                let text = match told {
                    Event::Stage(stage) => event("stage", &stage),
                    Event::Text(text) if text.is_empty() => String::new(),
                    Event::Text(text) => event("text", &json!({ "text": text })),
                };
                // an empty text only asks whether anybody is there
                let heard = if text.is_empty() {
                    !send.is_closed()
                } else {
                    send.send(text).is_ok()
                };
                match heard {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            };
            let answer = app.engine.ask(&asked, deadline, tell)?;
            app.metrics.answer(&answer);
            Ok(answer)
        },
    )?;
    let log = Arc::clone(&app.log);
    let frames = Frames::new(receive, result, deadline, move |result| match result {
        Ok(answer) => event("answer", &answer),
        Err(problem) => {
            if let Some(line) = problem.log_line() {
                log(&line);
            }
            event("error", &problem)
        }
    });
    Ok(frames.into_response())
}

pub(super) async fn retrieve(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let body = AskBody::read(&app, request).await?;
    body.refuse(&[
        ("stream", body.stream),
        ("precision", body.precision.is_some()),
        ("coverage", body.coverage.is_some()),
    ])?;
    let top_k = match body.top_k {
        None => None,
        given => Some(in_range("top_k", given, 1, MOST_TRIPLES)?),
    };
    let asked = body.asked(&app)?;
    let work = app.work_of(asked.graph.as_deref(), asked.method.as_deref());
    let job = move |app: &App, _: &Wanted| Ok(to_json(&app.engine.retrieve(&asked, top_k)?));
    Ok(json_bytes(app.run(work, job).await?))
}

pub(super) async fn link(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let body = AskBody::read(&app, request).await?;
    body.refuse(&[
        ("stream", body.stream),
        ("top_k", body.top_k.is_some()),
        ("precision", body.precision.is_some()),
        ("coverage", body.coverage.is_some()),
        ("follow", body.follow.is_some()),
    ])?;
    let asked = body.asked(&app)?;
    let job = move |app: &App| Ok(to_json(&app.engine.link(&asked)?));
    Ok(json_bytes(app.look(job).await?))
}

pub(super) async fn verify(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let body: VerifyBody = read_json(&app, request).await?;
    app.allow(Scope::Ask, body.graph.as_deref())?;
    app.engine.graph(body.graph.as_deref())?;
    let job = move |app: &App, _: &Wanted| {
        let verification = app.engine.verify(body.graph.as_deref(), &body.answer)?;
        Ok(to_json(&verification))
    };
    Ok(json_bytes(app.run(Work::Ask, job).await?))
}
