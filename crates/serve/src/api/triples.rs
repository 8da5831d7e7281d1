//! Changes: triples that come and go while the graph is served.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Deserialize;
use wherefore::graph::{Action, ChangeSet, Format};

use crate::app::App;
use crate::config::Scope;
use crate::error::Result;
use crate::exchange::{json_bytes, read_json, to_json};
use crate::problem::Problem;

/// Changes to one graph, made whole or not at all: what is removed goes first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changes {
    graph: Option<String>,
    #[serde(default)]
    format: LineFormat,
    /// Whether numbers, dates and quoted texts among a table's tails are literals.
    #[serde(default)]
    typed: bool,
    #[serde(default)]
    add: String,
    #[serde(default)]
    remove: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LineFormat {
    #[default]
    Nt,
    Tsv,
}

pub(super) async fn change(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let body: Changes = read_json(&app, request).await?;
    app.allow(Scope::Write, body.graph.as_deref())?;
    app.engine.graph(body.graph.as_deref())?;
    let job = move |app: &App| {
        let format = match body.format {
            LineFormat::Nt => Format::NTriples,
            LineFormat::Tsv => Format::Tsv,
        };
        let read = |text: &str, action| ChangeSet::parse(text, action, format, body.typed);
        let changes = read(&body.remove, Action::Remove)?.then(read(&body.add, Action::Add)?);
        let graph = app.engine.graph(body.graph.as_deref())?;
        let report = graph.change(&changes)?;
        graph.fold(report.pending, app.config.limits.pending_changes, &app.log);
        Ok(to_json(&report))
    };
    Ok(json_bytes(app.look(job).await?))
}
