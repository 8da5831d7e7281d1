//! A file comes as the body of a request and becomes a graph: never whole in memory, and gone if
//! the request breaks off.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt;
use serde::Deserialize;
use wherefore::graph::{Format, LoadOptions, TableOptions, Wide};

use crate::app::App;
use crate::config::{Scope, is_name};
use crate::engine::{Upload, clipped};
use crate::error::Result;
use crate::exchange::{BODY_TIME, content_type, json_bytes, read_query, to_json};
use crate::problem::Problem;

/// How long a file may take to come in.
const UPLOAD_TIME: Duration = Duration::from_secs(600);
/// Bytes that are written at once.
const PIECE: usize = 1 << 20;
/// The longest name of a file, of a column, or of what separates values.
const LONGEST: usize = 256;
/// Bytes of a file's name before its endings; longer ones are not used.
const LONGEST_STEM: usize = 100;

/// Content types that any web page may send anywhere without being asked first.
const SIMPLE: [&str; 4] = [
    "",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    graph: String,
    file: Option<String>,
    format: Option<String>,
    columns: Option<String>,
    #[serde(default)]
    typed: bool,
    #[serde(default)]
    wide: bool,
    name_column: Option<String>,
    split: Option<String>,
    class: Option<String>,
}

impl Query {
    /// How the file is read; refuses what does not fit together.
    fn options(&self) -> Result<LoadOptions, Problem> {
        let bad = |message: String| Problem::bad_request("bad-value", message);
        let given = [
            &self.file,
            &self.format,
            &self.columns,
            &self.name_column,
            &self.split,
            &self.class,
        ];
        if given.into_iter().flatten().any(|text| text.len() > LONGEST) {
            return Err(bad(format!(
                "a value of the query has at most {LONGEST} bytes"
            )));
        }
        let format = match self.format.as_deref().filter(|name| !name.is_empty()) {
            None => None,
            Some(name) => Some(Format::named(name.trim_start_matches('.')).ok_or_else(|| {
                let names: Vec<_> = Format::NAMES.iter().map(|(f, _)| f.name()).collect();
                bad(format!("there is no format `{}`", clipped(name)))
                    .hint(format!("the formats are {}", names.join(", ")))
            })?),
        };
        let columns = match self.columns.as_deref().filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => {
                let parts: Vec<String> = text.split(',').map(|c| c.trim().to_owned()).collect();
                let parts = <[String; 3]>::try_from(parts);
                Some(parts.map_err(|parts| {
                    bad(format!(
                        "`columns` needs three columns, and has {}",
                        parts.len()
                    ))
                    .hint("write numbers or header names, as in `columns=1,2,3`")
                })?)
            }
        };
        let is_wide = self.wide;
        if is_wide && columns.is_some() {
            return Err(bad("`columns` and `wide` exclude each other".into())
                .hint("where each row is one thing, `name_column` says which column names it"));
        }
        let of_wide = [&self.name_column, &self.split, &self.class];
        if !is_wide && of_wide.into_iter().any(Option::is_some) {
            return Err(bad(
                "`name_column`, `split` and `class` go with `wide=true`".into(),
            ));
        }
        Ok(LoadOptions {
            format,
            table: TableOptions {
                columns,
                typed: self.typed,
                wide: is_wide.then(|| Wide {
                    name_column: self.name_column.clone().filter(|name| !name.is_empty()),
                    split: self.split.clone(),
                    class: self.class.clone(),
                }),
            },
            ..LoadOptions::default()
        })
    }

    /// What the file is called here: its rows' class is called by it.
    fn file_name(&self) -> String {
        let name = self.file.as_deref().unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let stem = match stem.trim() {
            "" => "upload",
            stem if stem.len() <= LONGEST_STEM && stem.chars().all(is_plain) => stem,
            _ => "upload",
        };
        format!("{stem}{}", self.endings())
    }

    /// The endings of the file's name, which tell its format: `.csv`, `.nt.gz`.
    fn endings(&self) -> String {
        let name = self.file.as_deref().unwrap_or_default();
        let mut endings: Vec<&str> = name.rsplit('.').take(2).collect();
        // what is before the first dot is no ending
        if endings.len() > name.matches('.').count() {
            endings.pop();
        }
        let is_ending =
            |e: &&&str| (1..=8).contains(&e.len()) && e.chars().all(|c| c.is_ascii_alphanumeric());
        let kept: Vec<&str> = endings.iter().take_while(is_ending).copied().collect();
        kept.iter()
            .rev()
            .map(|ending| format!(".{ending}"))
            .collect()
    }
}

impl App {
    /// Whether whoever sent this request may load graphs, under some name at least.
    pub(crate) fn may_load(&self) -> Result<(), Problem> {
        self.loads.check()?;
        match self.guard.keys().are_needed() {
            true => crate::keys::Access::current().check_somewhere(Scope::Write),
            false => Ok(()),
        }
    }
}

pub(super) async fn load(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let query: Query = read_query(request.uri())?;
    app.may_load()?;
    if app.guard.keys().are_needed() {
        app.allow(Scope::Write, Some(&query.graph))?;
    }
    check_sender(request.headers())?;
    // it becomes a folder, and those that begin with a dot are none of ours
    if !is_name(&query.graph) || query.graph.starts_with('.') {
        let message = format!("`{}` is no name for a graph", clipped(&query.graph));
        return Err(Problem::unprocessable("bad-name", message)
            .hint("letters, digits and `-_.+` make one, 64 at most, and no dot is the first"));
    }
    let limits = &app.config.limits;
    let most = limits.load_bytes;
    app.engine.check_new(&query.graph, limits.loaded_graphs)?;
    let options = query.options()?;
    check_length(request.headers(), most)?;
    let begun = app.loads.begin()?;
    let place = app.loads.upload()?;
    let path = place.path().join(query.file_name());
    let received = received(request.into_body(), &path, most);
    match tokio::time::timeout(UPLOAD_TIME, received).await {
        Ok(received) => received?,
        Err(_) => return Err(slow()),
    }
    let upload = Upload {
        called: query.file.unwrap_or_else(|| "the file".into()),
        graph: query.graph,
        path,
        options,
    };
    let folder = app.loads.folder()?;
    // it takes longer than any question may, and ends by itself
    let load = tokio::task::spawn_blocking(move || {
        let loaded = app.engine.load(upload, &folder, most);
        drop((place, begun));
        loaded.map(|loaded| to_json(&loaded))
    });
    let ended = load.await;
    Ok(json_bytes(ended.unwrap_or_else(|error| {
        Err(Problem::internal(format!("a load failed: {error}")))
    })?))
}

/// Refuses what a page of another site could send unasked: a request that says neither where it
/// comes from nor what it holds. Those that say it were judged before.
fn check_sender(headers: &HeaderMap) -> Result<(), Problem> {
    let is_told = [header::ORIGIN.as_str(), "sec-fetch-site"]
        .iter()
        .any(|name| headers.contains_key(*name));
    if is_told || !SIMPLE.contains(&content_type(headers).as_str()) {
        return Ok(());
    }
    let message = "the body must be the file itself";
    Err(
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-a-file", message)
            .hint("send it with `content-type: application/octet-stream`"),
    )
}

fn too_large(most: u64) -> Problem {
    let message = format!("a file has at most {most} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", message).hint(
        "pack it with gzip, zstd or xz, or load it with `wherefore load` and serve its folder",
    )
}

fn slow() -> Problem {
    let message = "the body did not come in time";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "slow-body", message)
}

fn check_length(headers: &HeaderMap, most: u64) -> Result<(), Problem> {
    let told = headers.get(header::CONTENT_LENGTH);
    let told = told.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match told {
        Some(told) if told > most => Err(too_large(most)),
        _ => Ok(()),
    }
}

/// Writes the body to a file, piece by piece.
async fn received(mut body: Body, path: &Path, most: u64) -> Result<(), Problem> {
    let failed = |e: std::io::Error| Problem::internal(format!("a file that was sent: {e}"));
    let mut file = File::create(path).map_err(failed)?;
    let mut piece = Vec::with_capacity(PIECE);
    let mut count = 0;
    loop {
        let frame = tokio::time::timeout(BODY_TIME, body.frame()).await;
        let data = match frame.map_err(|_| slow())? {
            None => break,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(_)) => return Err(Problem::bad_request("broken-body", "the body broke off")),
        };
        count += data.len() as u64;
        if count > most {
            return Err(too_large(most));
        }
        piece.extend_from_slice(&data);
        if piece.len() >= PIECE {
            (file, piece) = written(file, piece).await.map_err(failed)?;
        }
    }
    written(file, piece).await.map_err(failed)?;
    match count {
        0 => Err(Problem::bad_request("empty-body", "the body is empty")
            .hint("send the file as the body, as in `curl --data-binary @FILE`")),
        _ => Ok(()),
    }
}

/// Writes a piece where waiting for the disk keeps nobody else waiting.
async fn written(mut file: File, mut piece: Vec<u8>) -> std::io::Result<(File, Vec<u8>)> {
    let write = move || {
        file.write_all(&piece)?;
        piece.clear();
        Ok((file, piece))
    };
    let written = tokio::task::spawn_blocking(write).await;
    written.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn query(text: &str) -> Query {
        serde_urlencoded::from_str(text).unwrap()
    }

    #[test]
    fn endings_tell_the_format_and_nothing_else_of_the_name_is_used() {
        for (file, endings) in [
            ("facts.csv", ".csv"),
            ("dump.2024.nt.gz", ".nt.gz"),
            ("csv", ""),
            ("../../etc/passwd", ""),
            ("a.b/../c", ""),
            ("x.tar/..", ""),
            ("x..csv", ".csv"),
            (".csv", ".csv"),
            ("", ""),
        ] {
            let query = query(&format!("graph=g&file={file}"));
            assert_eq!(query.endings(), endings, "{file}");
            assert!(!query.file_name().contains('/') && !query.file_name().starts_with('.'));
        }
    }

    #[test]
    fn options_that_do_not_fit_together_are_refused() {
        let wide = query("graph=g&wide=true&name_column=title&split=%3B");
        let wide = wide.options().unwrap().table.wide.unwrap();
        assert_eq!(wide.name_column.as_deref(), Some("title"));
        assert_eq!(wide.split.as_deref(), Some(";"));
        let plain = query("graph=g&columns=a,%20b,c&format=.csv")
            .options()
            .unwrap();
        assert_eq!(plain.format, Some(Format::Csv));
        assert_eq!(plain.table.columns.unwrap()[1], "b");
        for bad in [
            "format=docx",
            "columns=a,b",
            "columns=a,b,c&wide=true",
            "name_column=a",
            "split=%3B",
            "class=book",
            &format!("file={}", "x".repeat(300)),
        ] {
            let refused = query(&format!("graph=g&{bad}")).options();
            assert_eq!(refused.unwrap_err().status, 400, "{bad}");
        }
    }

    #[test]
    fn what_any_page_may_send_is_refused_unless_it_says_where_it_comes_from() {
        let status = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                let name = header::HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            });
            check_sender(&pairs.collect()).map_err(|problem| problem.status)
        };
        assert_eq!(status(&[]), Err(415));
        assert_eq!(
            status(&[("content-type", "text/plain; charset=utf-8")]),
            Err(415)
        );
        assert_eq!(status(&[("content-type", "text/csv")]), Ok(()));
        assert_eq!(
            status(&[("content-type", "application/octet-stream")]),
            Ok(())
        );
        // the guard has judged it
        assert_eq!(status(&[("origin", "http://localhost:7878")]), Ok(()));
    }
}
