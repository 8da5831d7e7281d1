//! The door for programs that speak OpenAI's chat API: a method over a graph is a model.
//!
//! The last message of the user is the question. Where it may refer to what was said before (`And its
//! population?`), the messages of the user before it are asked again, [`EARLIER`] of them at most:
//! what the assistant said is not read, for anybody may have written it. The reply is text with numbered evidence, and `wherefore` holds the whole answer. A stream begins when the
//! answer is checked: nothing unproved is sent ahead.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wherefore::answer::{Answer, Status};
use wherefore::read::may_follow;
use wherefore::{Question, answer::Evidence};

use crate::app::App;
use crate::config::Scope;
use crate::engine::{Asked, Engine, clipped};
use crate::error::Result;
use crate::exchange::{json, read_json};
use crate::keys::Access;
use crate::problem::{Problem, Told};
use crate::stream::Frames;

/// The model that stands for the default graph and method.
const DEFAULT_MODEL: &str = "wherefore";

/// Earlier messages of the user that are asked again.
const EARLIER: usize = 3;

#[derive(Debug, Deserialize)]
struct Chat {
    model: String,
    messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

impl Content {
    fn text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => {
                let texts: Vec<&str> = parts.iter().filter_map(|p| p.text.as_deref()).collect();
                texts.join("\n")
            }
        }
    }
}

/// A problem in the form that OpenAI's clients read.
struct Refusal(Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Refusal(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let problem = self.0;
        let status = StatusCode::from_u16(problem.status).unwrap_or_default();
        let mut response = (status, json(&refusal(&problem))).into_response();
        if let Some(seconds) = problem.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(Told(problem.log_line()));
        response
    }
}

fn refusal(problem: &Problem) -> Value {
    let kind = match problem.status {
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let hint = problem.hint.as_deref().map(|hint| format!(" ({hint})"));
    let message = format!("{}{}", problem.message, hint.unwrap_or_default());
    json!({ "error": { "message": message, "type": kind, "param": null, "code": problem.code } })
}

/// Graph and method of a model's name: `GRAPH/METHOD`, or `wherefore`.
fn resolve(engine: &Engine, model: &str) -> Result<(String, String), Problem> {
    if model == DEFAULT_MODEL {
        let graph = engine.graph(None)?;
        return Ok((graph.name.clone(), graph.default_method().to_owned()));
    }
    let found = model.split_once('/').and_then(|(name, method)| {
        let graph = engine.graph(Some(name)).ok()?;
        let method = graph.methods().find(|m| *m == method)?;
        Some((graph.name.clone(), method.to_owned()))
    });
    found.ok_or_else(|| {
        Problem::not_found(
            "model_not_found",
            format!("there is no model `{}`", clipped(model)),
        )
        .hint("`/v1/models` lists them")
    })
}

fn model_report(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "wherefore" })
}

pub(crate) async fn models(State(app): State<Arc<App>>) -> Response {
    let mut data = vec![model_report(DEFAULT_MODEL)];
    let access = Access::current();
    let graphs = app.engine.graphs();
    for graph in graphs.iter().filter(|graph| access.sees(&graph.name)) {
        for method in graph.methods() {
            data.push(model_report(&format!("{}/{method}", graph.name)));
        }
    }
    json(&json!({ "object": "list", "data": data }))
}

pub(crate) async fn model(State(app): State<Arc<App>>, Path(model): Path<String>) -> Response {
    let resolved = resolve(&app.engine, &model);
    let allowed = resolved.and_then(|(graph, _)| app.allow(Scope::Ask, Some(&graph)));
    match allowed {
        Ok(()) => json(&model_report(&model)),
        Err(problem) => Refusal(problem).into_response(),
    }
}

pub(crate) async fn chat(State(app): State<Arc<App>>, request: Request) -> Response {
    match answered(&app, request).await {
        Ok(response) => response,
        Err(problem) => Refusal(problem).into_response(),
    }
}

async fn answered(app: &Arc<App>, request: Request) -> Result<Response, Problem> {
    let chat: Chat = read_json(app, request).await?;
    let (graph, method) = resolve(&app.engine, &chat.model)?;
    app.allow(Scope::Ask, Some(&graph))?;
    let said = chat.messages.iter().rev().filter(|m| m.role == "user");
    let mut said = said.map(|message| message.content.as_ref().map(Content::text));
    let Some(text) = said.next().flatten() else {
        return Err(Problem::bad_request(
            "no-question",
            "no message of the user has a text",
        ));
    };
    let question = Question::new(text.trim());
    app.check_question(&question)?;
    let asked = Asked {
        question,
        graph: Some(graph),
        method: Some(method),
    };
    // as far back as one may refer to the one before it
    let mut earlier: Vec<String> = Vec::new();
    for before in said.flatten().take(EARLIER) {
        let last = earlier.last().map_or(&*asked.question.text, |t| t.as_str());
        if !may_follow(last) {
            break;
        }
        earlier.push(before.trim().to_owned());
    }
    let deadline = app.deadline();
    let work = app.work_of(asked.graph.as_deref(), asked.method.as_deref());
    let job = move |app: &App| {
        let mut asked = asked;
        asked.question.follow = app.engine.followed(&asked, &earlier, deadline)?;
        let answer = (app.engine).ask(&asked, deadline, |_| ControlFlow::Continue(()))?;
        app.metrics.answer(&answer);
        Ok(answer)
    };
    let reply = Reply::new(chat.model);
    if chat.stream.unwrap_or(false) {
        let options = chat.stream_options.and_then(|o| o.include_usage);
        let (_nothing, receive) = mpsc::unbounded_channel();
        let result = app.submit(work, job)?;
        let log = Arc::clone(&app.log);
        let frames = Frames::new(receive, result, deadline, move |result| match result {
            Ok(answer) => reply.stream(&answer, options.unwrap_or(false)),
            Err(problem) => {
                if let Some(line) = problem.log_line() {
                    log(&line);
                }
                format!("data: {}\n\ndata: [DONE]\n\n", refusal(&problem))
            }
        });
        return Ok(frames.into_response());
    }
    let answer = app.run(work, move |app, _| job(app)).await?;
    Ok(json(&reply.whole(&answer)))
}

/// What all parts of one reply have in common.
struct Reply {
    id: String,
    created: u64,
    model: String,
}

impl Reply {
    fn new(model: String) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let created = now.map_or(0, |d| d.as_secs());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            id: format!("chatcmpl-{created:x}-{number}"),
            created,
            model,
        }
    }

    fn whole(&self, answer: &Answer) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": written(answer), "refusal": null },
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": usage(answer),
            "wherefore": answer,
        })
    }

    fn chunk(&self, delta: Value, finish: Option<&str>) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }],
        })
    }

    fn stream(&self, answer: &Answer, with_usage: bool) -> String {
        let mut chunks = vec![self.chunk(json!({ "role": "assistant", "content": "" }), None)];
        let text = written(answer);
        for line in text.split_inclusive('\n') {
            chunks.push(self.chunk(json!({ "content": line }), None));
        }
        let mut last = self.chunk(json!({}), Some("stop"));
        last["wherefore"] = json!(answer);
        chunks.push(last);
        if with_usage {
            let mut counted = self.chunk(json!({}), None);
            counted["choices"] = json!([]);
            counted["usage"] = usage(answer);
            chunks.push(counted);
        }
        let mut out: String = chunks.iter().map(|c| format!("data: {c}\n\n")).collect();
        out += "data: [DONE]\n\n";
        out
    }
}

fn usage(answer: &Answer) -> Value {
    let llm = &answer.llm;
    json!({
        "prompt_tokens": llm.prompt_tokens,
        "completion_tokens": llm.completion_tokens,
        "total_tokens": llm.prompt_tokens + llm.completion_tokens,
    })
}

/// The answer as text. Numbers in brackets lead to the evidence below.
pub(crate) fn written(answer: &Answer) -> String {
    if answer.status == Status::Abstained {
        let reason = answer.reason.as_deref().unwrap_or("nothing was found");
        return format!("No answer: {}.", line(reason));
    }
    let mut numbers: Vec<usize> = Vec::new();
    let mut text = String::new();
    if let Some(prose) = &answer.text {
        text += prose.trim();
        text += "\n\n";
    }
    for sentence in &answer.unproved {
        text += &format!("Not proved: {}\n\n", line(sentence));
    }
    for entity in &answer.answers {
        let marks: Vec<String> = (entity.rationale.iter())
            .map(|&i| {
                let known = numbers.iter().position(|&n| n == i);
                let place = known.unwrap_or_else(|| {
                    numbers.push(i);
                    numbers.len() - 1
                });
                format!("[{}]", place + 1)
            })
            .collect();
        let proved = if entity.ungrounded {
            ", not proved"
        } else {
            ""
        };
        text += &format!(
            "{} ({:.0}%{proved}) {}",
            line(&entity.name),
            entity.confidence * 100.0,
            marks.concat()
        );
        text = text.trim_end().to_owned();
        text.push('\n');
    }
    if !numbers.is_empty() {
        text += "\nEvidence:\n";
    }
    for (place, &i) in numbers.iter().enumerate() {
        if let Some(evidence) = answer.evidence.get(i) {
            text += &format!("[{}] {}\n", place + 1, fact(evidence));
        }
    }
    text.trim_end().to_owned()
}

fn fact(evidence: &Evidence) -> String {
    format!(
        "{} — {} → {}",
        line(&evidence.head),
        line(&evidence.relation),
        line(&evidence.tail)
    )
}

/// A label cannot make lines of its own, and so no evidence that is none.
fn line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use wherefore::answer::AnswerEntity;

    use super::*;

    fn answer() -> Answer {
        let evidence = |tail: &str| Evidence {
            head: "Lou Seal".into(),
            relation: "mascot of".into(),
            tail: tail.into(),
            ..Evidence::default()
        };
        Answer {
            status: Status::Answered,
            answers: vec![
                AnswerEntity {
                    name: "Giants".into(),
                    confidence: 0.734,
                    rationale: vec![1],
                    ..AnswerEntity::default()
                },
                AnswerEntity {
                    name: "a\n[9] forged".into(),
                    confidence: 0.5,
                    rationale: vec![1, 0],
                    ..AnswerEntity::default()
                },
            ],
            evidence: vec![evidence("b"), evidence("Giants")],
            ..Answer::default()
        }
    }

    #[test]
    fn evidence_is_numbered_in_the_order_it_is_used() {
        assert_eq!(
            written(&answer()),
            "Giants (73%) [1]\na [9] forged (50%) [1][2]\n\n\
             Evidence:\n[1] Lou Seal — mascot of → Giants\n[2] Lou Seal — mascot of → b"
        );
        let abstained = Answer {
            reason: Some("nothing links".into()),
            ..Answer::default()
        };
        assert_eq!(written(&abstained), "No answer: nothing links.");
    }

    #[test]
    fn a_stream_says_the_same_as_the_whole_reply() {
        let reply = Reply::new("toy/walk".into());
        let whole = reply.whole(&answer());
        let stream = reply.stream(&answer(), true);
        let mut said = String::new();
        for data in stream
            .split("\n\n")
            .filter_map(|l| l.strip_prefix("data: "))
        {
            if data != "[DONE]" {
                let chunk: Value = serde_json::from_str(data).unwrap();
                said += chunk["choices"][0]["delta"]["content"]
                    .as_str()
                    .unwrap_or_default();
            }
        }
        assert_eq!(said, whole["choices"][0]["message"]["content"]);
        assert!(stream.ends_with("data: [DONE]\n\n"));
    }
}
