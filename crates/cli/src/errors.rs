//! What went wrong: three lines for people, one JSON object for programs, one exit status.
//!
//! ```text
//! error: what failed
//!   cause: why
//!   hint: what to type next
//! ```

use std::fmt;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};

use serde::Serialize;

use crate::output::{Output, shown};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Done, and the answer is no.
    No = 1,
    /// Something is wrong with what the user gave.
    Input = 2,
    /// We failed.
    Fault = 3,
}

/// What only the command line can find wrong, with the step that mends it.
#[derive(Debug)]
pub(crate) struct UserError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UserError {}

/// The longest line of an error, in characters: names and lines of input can be of any length.
const MAX_LINE: usize = 600;

/// What went wrong, why, and what to do next.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// For programs.
    pub code: &'static str,
    /// What failed.
    pub message: String,
    /// Why.
    pub cause: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// What an error says.
    pub fn of(error: &anyhow::Error) -> Self {
        describe(error).0
    }

    fn write(&self, json: bool, color: bool) {
        let text = if json {
            #[derive(Serialize)]
            struct Wrapped<'a> {
                error: &'a Failure,
            }
            let text = serde_json::to_string(&Wrapped { error: self });
            text.expect("texts are JSON") + "\n"
        } else {
            self.lines(color)
        };
        // nobody is left to tell if this fails
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn lines(&self, color: bool) -> String {
        let (red, dim, off) = if color {
            ("\x1b[1;31m", "\x1b[2m", "\x1b[0m")
        } else {
            ("", "", "")
        };
        let mut text = format!("{red}error:{off} {}\n", line(&self.message));
        for (name, value) in [("cause", &self.cause), ("hint", &self.hint)] {
            if let Some(value) = value {
                text += &format!("  {dim}{name}:{off} {}\n", line(value));
            }
        }
        text
    }
}

/// One line, safe to show.
fn line(text: &str) -> String {
    let text = shown(text);
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Tells the user what failed, and how the run ends.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> Exit {
    let is_pipe = |e: &(dyn std::error::Error + 'static)| {
        e.downcast_ref::<io::Error>()
            .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(is_pipe) {
        // whoever read our output has seen enough
        return Exit::Done;
    }
    let (report, exit) = describe(error);
    report.write(output.json, output.color_errors);
    exit
}

fn describe(error: &anyhow::Error) -> (Failure, Exit) {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return (failure.clone(), Exit::Input);
    }
    let mut chain = error.chain().map(ToString::to_string);
    let message = chain.next().unwrap_or_default();
    let cause = chain.collect::<Vec<_>>().join(": ");
    // an error that is none of ours was expected by nobody
    let mut known = ("internal", None, Exit::Fault);
    for e in error.chain() {
        let exit = |internal| if internal { Exit::Fault } else { Exit::Input };
        if let Some(e) = e.downcast_ref::<wherefore_lab::Error>() {
            known = (e.code(), e.hint(), exit(e.is_internal()));
        } else if let Some(e) = e.downcast_ref::<wherefore_serve::Error>() {
            known = (e.code(), e.hint(), exit(e.is_internal()));
        } else if let Some(e) = e.downcast_ref::<wherefore::Error>() {
            known = (e.code(), e.hint(), exit(e.is_internal()));
        } else if let Some(e) = e.downcast_ref::<wherefore_graph::Error>() {
            known = (wherefore::graph_code(e), e.hint(), exit(e.is_internal()));
        } else if let Some(e) = e.downcast_ref::<wherefore_model::Error>() {
            known = (e.code(), e.hint(), exit(e.is_internal()));
        } else if let Some(e) = e.downcast_ref::<UserError>() {
            known = (e.code, Some(e.hint.clone()), Exit::Input);
        } else if e.is::<io::Error>() {
            known = ("io", None, Exit::Input);
        } else {
            continue;
        }
        break;
    }
    let (code, hint, exit) = known;
    let report = Failure {
        code,
        message,
        cause: Some(cause).filter(|c| !c.is_empty()),
        hint,
    };
    (report, exit)
}

/// Reports arguments that cannot be understood; prints help and version where they were asked for.
pub(crate) fn usage(error: &clap::Error, json: bool) -> Exit {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    };
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            // a closed pipe is no failure
            let _ = error.print();
            return Exit::Done;
        }
        DisplayHelpOnMissingArgumentOrSubcommand if !json => {
            let _ = error.print();
            return Exit::Input;
        }
        _ => {}
    }
    let text = error.render().to_string();
    let mut paragraphs = text
        .split("\n\n")
        .map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    let first = paragraphs.next().unwrap_or_default();
    let message = match error.kind() {
        DisplayHelpOnMissingArgumentOrSubcommand => "no command was given".to_owned(),
        _ => quoted(first.strip_prefix("error: ").unwrap_or(&first)),
    };
    let mut hint = None;
    for paragraph in paragraphs {
        if let Some(tip) = paragraph.strip_prefix("tip: ") {
            hint = Some(quoted(tip));
        } else if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            hint.get_or_insert_with(|| format!("the command is `{usage}`; `--help` tells more"));
        }
    }
    let report = Failure {
        code: "usage",
        message,
        cause: None,
        hint: hint.or_else(|| Some("`--help` shows what can be typed".into())),
    };
    report.write(json, false);
    Exit::Input
}

/// Literals in backticks, as in all our messages.
fn quoted(text: &str) -> String {
    text.replace('\'', "`")
}

/// Runs `work`; a panic in it becomes a short message and [`Exit::Fault`].
pub(crate) fn guard(json: bool, work: impl FnOnce() -> Exit) -> Exit {
    panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let what = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a panic without a message");
        let place = info
            .location()
            .map(|l| format!(" ({l})"))
            .unwrap_or_default();
        let report = Failure {
            code: "internal",
            message: "wherefore failed, and the fault is ours".into(),
            cause: Some(format!("{what}{place}")),
            hint: Some(
                "please report it with the command you typed and the output of `wherefore --version`"
                    .into(),
            ),
        };
        report.write(json, false);
    }));
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Exit::Fault)
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_panic_is_our_fault() {
        assert_eq!(guard(false, || panic!("a test of the hook")), Exit::Fault);
        assert_eq!(guard(true, || Exit::No), Exit::No);
        let _ = panic::take_hook();
    }

    #[test]
    fn causes_hints_and_codes_come_from_the_whole_chain() {
        let error = anyhow::Error::new(wherefore_graph::Error::NotAGraph {
            path: "data/movies".into(),
            reason: "there is no `triples.bin`".into(),
        })
        .context("cannot open the graph `data/movies`");
        let (report, exit) = describe(&error);
        assert_eq!(exit, Exit::Input);
        assert_eq!(report.code, "not-a-graph");
        assert_eq!(
            report.lines(false),
            "error: cannot open the graph `data/movies`\n  \
             cause: `data/movies` is not a graph folder: there is no `triples.bin`\n  \
             hint: build it with `wherefore load FILE --out data/movies`\n"
        );
    }

    #[test]
    fn broken_promises_and_unknown_errors_are_our_fault() {
        let internal = wherefore_graph::Error::NoSuchEntity { id: 7, bound: 3 };
        let error = anyhow::Error::new(wherefore::Error::from(internal));
        assert_eq!(describe(&error).1, Exit::Fault);
        assert_eq!(describe(&anyhow!("what is this")).1, Exit::Fault);
        let file: Result<(), _> = Err(io::Error::other("gone"));
        let error = file.context("cannot read `x`").unwrap_err();
        assert_eq!(describe(&error).1, Exit::Input);
    }

    #[test]
    fn lines_are_short_and_cannot_steer_the_terminal() {
        let text = line(&format!("a\x1b[2Jb\n{}", "x".repeat(10_000)));
        assert!(text.starts_with("a�[2Jb x"));
        assert_eq!(text.chars().count(), MAX_LINE + 1);
    }
}
