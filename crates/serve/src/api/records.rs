//! Opinions about answers, and runs.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use wherefore::Question;

use crate::app::{App, Work};
use crate::config::Scope;
use crate::error::Result;
use crate::exchange::{in_range, json_bytes, read_json, read_query, to_json};
use crate::feedback::Opinion;
use crate::keys::Access;
use crate::pool::Wanted;
use crate::problem::Problem;
use crate::runs::{Filter, Runs, Verdict, Visible};

const MOST_QUESTIONS: usize = 500;
/// Lines of a run that may be left out; no run has more.
const MOST_OFFSET: usize = 1_000_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    only: Option<Verdict>,
    outcome: Option<String>,
    text: Option<String>,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

pub(super) async fn feedback(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let opinion: Opinion = read_json(&app, request).await?;
    app.allow(Scope::Feedback, opinion.graph.as_deref())?;
    app.check_question(&Question::new(&opinion.question))?;
    let job = move |app: &App| {
        let graph = app.engine.graph(opinion.graph.as_deref())?;
        let ids = app.feedback.keep(&opinion, &graph)?;
        Ok(to_json(&json!({ "ids": ids })))
    };
    Ok(json_bytes(app.look(job).await?))
}

/// What runs say, of those that whoever asks may see. A large one takes seconds to read: that is
/// no work for the threads of look-ups.
async fn read_runs(
    app: &Arc<App>,
    read: impl FnOnce(&Runs, &Visible) -> Result<Value, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let access = Access::current();
    let job = move |app: &App, _: &Wanted| {
        let mut graphs = app.engine.identities();
        graphs.retain(|(_, graph)| access.check(Scope::Ask, graph).is_ok());
        let visible = Visible {
            graphs: graphs.into_iter().collect(),
            others: access.is_unlimited(),
        };
        Ok(to_json(&read(&app.runs, &visible)?))
    };
    Ok(json_bytes(app.run(Work::Ask, job).await?))
}

pub(super) async fn runs(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    read_runs(&app, Runs::list).await
}

pub(super) async fn run(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
) -> Result<Response, Problem> {
    read_runs(&app, move |runs, visible| runs.describe(&run, visible)).await
}

pub(super) async fn questions(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query: Listed = read_query(&uri)?;
    if query.offset > MOST_OFFSET {
        let message = format!(
            "`offset` is {}, but must be at most {MOST_OFFSET}",
            query.offset
        );
        return Err(Problem::bad_request("bad-value", message));
    }
    let filter = Filter {
        limit: in_range("limit", query.limit, 50, MOST_QUESTIONS)?,
        offset: query.offset,
        only: query.only,
        outcome: query.outcome.filter(|outcome| !outcome.is_empty()),
        text: query.text,
    };
    read_runs(&app, move |runs, visible| {
        runs.questions(&run, &filter, visible)
    })
    .await
}

pub(super) async fn question(
    State(app): State<Arc<App>>,
    Path((run, index)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let number = index.parse().map_err(|_| {
        Problem::bad_request(
            "bad-value",
            "a question of a run goes by its number, from 0",
        )
    })?;
    read_runs(&app, move |runs, visible| {
        runs.question(&run, number, visible)
    })
    .await
}
