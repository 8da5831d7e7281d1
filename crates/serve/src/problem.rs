//! What is wrong with a request, as problem details (RFC 9457): `code`, `message`, `hint`.
//!
//! Only what the asker can mend is told in full. Everything else is told as an id that stands in
//! the log, beside the whole story: errors of the engine name files of this machine.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use wherefore::graph;

/// What is wrong with a request.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The status in words.
    pub title: &'static str,
    /// A short word that programs can rely on.
    pub code: &'static str,
    /// One sentence for people.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where the log tells more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// What stands in the log, and nowhere else.
    #[serde(skip)]
    pub(crate) secret: Option<Box<str>>,
    /// Seconds after which trying again makes sense.
    #[serde(skip)]
    pub(crate) retry_after: Option<u16>,
}

impl Problem {
    /// A problem that the asker can mend.
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or("Error"),
            code,
            message: message.into(),
            hint: None,
            id: None,
            secret: None,
            retry_after: None,
        }
    }

    /// The same, with what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(crate) fn unprocessable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// More was asked than can be done now.
    pub(crate) fn busy(code: &'static str, message: impl Into<String>, seconds: u16) -> Self {
        let mut problem = Self::new(StatusCode::TOO_MANY_REQUESTS, code, message)
            .hint(format!("try again in {seconds} s"));
        problem.retry_after = Some(seconds);
        problem
    }

    /// Our own fault, or this machine's: the story goes to the log.
    pub(crate) fn internal(story: impl Into<String>) -> Self {
        Self::hidden(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the server failed",
            story,
        )
    }

    /// Something whose story goes to the log alone.
    pub(crate) fn hidden(
        status: StatusCode,
        code: &'static str,
        message: &str,
        story: impl Into<String>,
    ) -> Self {
        let mut problem = Self::new(status, code, message);
        problem.id = Some(next_id().into());
        problem.secret = Some(story.into().into_boxed_str());
        problem.hint = Some("whoever runs the server finds more in its log under the id".into());
        problem
    }

    /// The line for the log, if there is one.
    pub(crate) fn log_line(&self) -> Option<String> {
        let id = self.id.as_deref()?;
        let story = self.secret.as_deref().unwrap_or(&self.message);
        Some(format!("{id} {} {}: {story}", self.status, self.code))
    }
}

/// Unique in this process, and told apart from those of the last one by its start.
fn next_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let begun = *BEGUN.get_or_init(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| d.as_secs())
    });
    format!("{begun:x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

static BEGUN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();

/// The error with all its causes.
fn story(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

impl From<wherefore::Error> for Problem {
    fn from(error: wherefore::Error) -> Self {
        use wherefore::Error;
        match error {
            Error::Graph(error) => error.into(),
            Error::EmptyQuestion => Problem::unprocessable("empty-question", error.to_string())
                .hint("write a question with at least one word"),
            Error::QuestionTooLong { .. } => {
                Problem::unprocessable("question-too-long", error.to_string())
                    .hint("shorten the question")
            }
            Error::NoSuchTopic { .. }
            | Error::NoSuchReading { .. }
            | Error::NotCalibrated
            | Error::NoSuchPrecision { .. }
            | Error::NoSuchCoverage { .. }
            | Error::BadSetting {
                name: "precision" | "coverage",
                ..
            } => {
                let hint = error.hint();
                let mut problem = Problem::unprocessable(error.code(), error.to_string());
                problem.hint = hint;
                problem
            }
            // its hint names a folder of this machine
            Error::NoConformal { .. } => {
                Problem::unprocessable(error.code(), error.to_string()).hint(
                    "whoever runs this server can make it possible with `wherefore conformal GRAPH`",
                )
            }
            Error::FormSyntax { .. }
            | Error::FormNames { .. }
            | Error::FormValue { .. }
            | Error::FormTooLarge { .. }
            | Error::FormTooLong { .. } => Problem::unprocessable(error.code(), error.to_string()),
            Error::Model(error) => Problem::hidden(
                StatusCode::BAD_GATEWAY,
                error.code(),
                "a model of this server failed",
                story(&error),
            ),
            Error::NoIndex { .. }
            | Error::IndexOfAnotherGraph { .. }
            | Error::IndexOfAnotherEncoder { .. } => Problem::hidden(
                StatusCode::SERVICE_UNAVAILABLE,
                error.code(),
                "this method needs an index that the graph does not have",
                story(&error),
            ),
            error => Problem::internal(story(&error)),
        }
    }
}

impl From<graph::Error> for Problem {
    fn from(error: graph::Error) -> Self {
        use graph::Error;
        let message = error.to_string();
        let mut problem = match &error {
            Error::SparqlSyntax(_) => Problem::bad_request("sparql-syntax", message),
            Error::SparqlRefused { .. } => Problem::bad_request("sparql-refused", message),
            Error::SparqlEvaluation(_) => Problem::unprocessable("sparql-evaluation", message),
            Error::ServiceUnreachable { .. }
            | Error::ServiceRefused { .. }
            | Error::ServiceGaveUp { .. }
            | Error::BadReply { .. } => {
                return Problem::hidden(
                    StatusCode::BAD_GATEWAY,
                    "service-failed",
                    "the SPARQL service behind this graph failed",
                    story(&error),
                );
            }
            Error::Damaged { .. } | Error::DamagedLog { .. } => {
                return Problem::hidden(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    wherefore::graph_code(&error),
                    "a file of this graph is damaged",
                    story(&error),
                );
            }
            Error::BadChanges { .. } => Problem::unprocessable("bad-changes", message),
            Error::OutOfTime { .. } => {
                return Problem::unprocessable("out-of-time", message)
                    .hint("ask for less, with `LIMIT` or a narrower pattern");
            }
            Error::OutOfMemory { .. } => {
                return Problem::unprocessable("out-of-memory", message)
                    .hint("ask for less: sort, group or join fewer rows");
            }
            Error::AnswerTooLarge { .. } => Problem::unprocessable("answer-too-large", message),
            _ => return Problem::internal(story(&error)),
        };
        problem.hint = error.hint();
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).expect("texts and numbers are JSON");
        let mut response = (
            status,
            [(header::CONTENT_TYPE, "application/problem+json")],
            body,
        )
            .into_response();
        if let Some(seconds) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // middleware writes it to the log
        response.extensions_mut().insert(Told(self.log_line()));
        response
    }
}

/// Carries the line for the log out to the middleware.
#[derive(Clone, Debug)]
pub(crate) struct Told(pub(crate) Option<String>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_told() {
        let error = wherefore::Error::Io {
            path: "/secret/place".into(),
            source: std::io::Error::other("gone"),
        };
        let problem = Problem::from(error);
        let json = serde_json::to_string(&problem).unwrap();
        assert!(!json.contains("secret"), "{json}");
        assert_eq!(problem.status, 500);
        let line = problem.log_line().unwrap();
        assert!(line.contains("/secret/place") && line.contains("gone"));
        assert!(line.starts_with(problem.id.as_deref().unwrap()));
    }

    #[test]
    fn what_the_asker_can_mend_is_told_in_full() {
        let problem = Problem::from(wherefore::Error::NoSuchTopic {
            name: "Lou".into(),
            near: vec!["Lou Seal".into()],
        });
        assert_eq!((problem.status, problem.code), (422, "no-such-topic"));
        assert_eq!(problem.hint.as_deref(), Some("near it are: Lou Seal"));
        assert!(problem.id.is_none());
    }
}
