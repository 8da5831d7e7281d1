//! The `wherefore` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(wherefore_cli::run(std::env::args_os()))
}
