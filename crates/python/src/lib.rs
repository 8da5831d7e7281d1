//! The native part of the Python package `wherefore`. The package itself, with its classes and
//! their documentation, lies in `python/wherefore`. Without the feature `python` it is empty.
#![cfg(feature = "python")]

mod arrays;
mod errors;
mod graph;
mod many;
mod terms;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use wherefore_cli::Program;

#[pymodule]
fn _wherefore(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<graph::Answer>()?;
    module.add_class::<terms::Matches>()?;
    module.add_function(wrap_pyfunction!(graph::load, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)
}

/// The command line: its arguments, the program first; how it ends.
#[pyfunction]
fn command(py: Python<'_>, interpreter: PathBuf, arguments: Vec<OsString>) -> u8 {
    py.detach(|| {
        wherefore_cli::start_by(interpreted(interpreter));
        wherefore_cli::run(arguments)
    })
}

/// How an interpreter starts the command line.
fn interpreted(interpreter: PathBuf) -> Program {
    Program {
        path: interpreter,
        arguments: vec!["-m".into(), "wherefore".into()],
    }
}
