//! The protocol of the TEXT2SPARQL challenge: a question in, a query out.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use wherefore::Question;

use crate::app::App;
use crate::config::Scope;
use crate::engine::Asked;
use crate::error::Result;
use crate::exchange::{json_bytes, read_query, to_json};
use crate::keys::Access;
use crate::pool::Wanted;
use crate::problem::Problem;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    dataset: String,
    question: String,
    method: Option<String>,
}

pub(super) async fn translate(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let query: Query = read_query(&uri)?;
    let access = Access::current();
    let found = (app.engine).data_set(&query.dataset, |name| access.sees(name));
    // a key for some graphs is not told whether there are others
    let name = found.as_ref().map_or(&query.dataset, |graph| &graph.name);
    app.allow(Scope::Ask, Some(name))?;
    let graph = found?;
    graph.pipeline(query.method.as_deref())?;
    let question = Question::new(&query.question);
    app.check_question(&question)?;
    let asked = Asked {
        question,
        graph: Some(graph.name.clone()),
        method: query.method,
    };
    let deadline = app.deadline();
    let work = app.work_of(asked.graph.as_deref(), asked.method.as_deref());
    let job = move |app: &App, wanted: &Wanted| {
        let translated = app
            .engine
            .translate(query.dataset, &asked, deadline, wanted)?;
        Ok(to_json(&translated))
    };
    Ok(json_bytes(app.run(work, job).await?))
}
