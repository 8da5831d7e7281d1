//! Errors as exceptions.

use pyo3::prelude::*;
use wherefore_cli::Failure;

/// An error as `wherefore.WhereforeError`, with its code and its hint.
pub(crate) fn raised(error: &anyhow::Error) -> PyErr {
    let failure = Failure::of(error);
    Python::attach(|py| {
        let made = py
            .import("wherefore._errors")
            .and_then(|module| module.getattr("WhereforeError"))
            .and_then(|class| {
                class.call1((failure.message, failure.code, failure.cause, failure.hint))
            });
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// What only Python can do wrong.
pub(crate) fn misused(code: &'static str, message: &str, hint: &str) -> PyErr {
    let failure = Failure {
        code,
        message: message.into(),
        cause: None,
        hint: Some(hint.into()),
    };
    raised(&failure.into())
}
