//! The `wherefore` command: reads arguments, runs one command, reports what went wrong. Other
//! programs, such as the Python package, find here what it calls graphs, methods and errors.

mod args;
mod commands;
mod errors;
mod language;
mod library;
mod open;
mod output;
mod progress;
mod prompt;
mod world;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

use args::Global;
use errors::Exit;
use output::Output;
use wherefore_graph::Action;

pub use errors::Failure;
pub use library::{
    Program, checked_entity, folder_of, no_answer, no_folder, no_such_name, own_store, picture,
    pipeline, sparql_workers, start_by,
};
pub use open::open;

/// Answers plain-language questions over your own knowledge graph, and proves each answer with
/// triples that were looked up in the graph again.
#[derive(Debug, Parser)]
#[command(
    name = "wherefore",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Exit status: 0 done; 1 done, and the answer is no; 2 something is wrong with what was given;
3 wherefore itself failed. Results go to standard output, all else to standard error.

Try it:
  wherefore demo"
)]
struct Args {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::Demo),
    Ask(commands::ask::Ask),
    Load(commands::load::Load),
    /// Add triples to a graph, at once and for good
    ///
    /// The change is on the disk when the command ends, and whoever asks after it sees it.
    Add(commands::change::Change),
    /// Remove triples from a graph, at once and for good
    ///
    /// The change is on the disk when the command ends, and whoever asks after it sees it.
    Remove(commands::change::Change),
    Compact(commands::compact::Compact),
    Repair(commands::repair::Repair),
    Diff(commands::diff::Diff),
    Index(commands::index::Index),
    Info(commands::info::Info),
    Sparql(commands::sparql::Sparql),
    #[command(hide = true)]
    SparqlWorker(commands::sparql::SparqlWorker),
    Trust(commands::trust::TrustService),
    Logic(commands::logic::Logic),
    Link(commands::link::Link),
    Questions(commands::questions::Questions),
    Train(commands::train::Train),
    Adapt(commands::adapt::Adapt),
    Label(commands::label::Label),
    Eval(commands::eval::Eval),
    Score(commands::score::Score),
    Report(commands::report::Report),
    Calibrate(commands::calibrate::Calibrate),
    Conformal(commands::conformal::Conformal),
    Verify(commands::verify::Verify),
    Keygen(commands::keygen::Keygen),
    Model(commands::model::Model),
    Serve(commands::serve::Serve),
    Mcp(commands::serve::Mcp),
    Completions(commands::manual::Completions),
    Man(commands::manual::Man),
}

/// Runs the command that the arguments say, the program's name first; the exit status.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // known before the arguments are parsed, for they may be what is wrong
    let json = arguments.iter().any(|arg| arg == "--json");
    let exit = errors::guard(json, || match Args::try_parse_from(arguments) {
        Ok(args) => run_command(&args),
        Err(error) => errors::usage(&error, json),
    });
    exit as u8
}

fn run_command(args: &Args) -> Exit {
    let output = Output::new(&args.global);
    let done = match &args.command {
        Command::Demo(args) => commands::demo::run(args, &output),
        Command::Questions(args) => commands::questions::run(args, &output),
        Command::Completions(args) => commands::manual::completions(args, Args::command(), &output),
        Command::Man(args) => commands::manual::man(args, Args::command(), &output),
        Command::Ask(args) => commands::ask::run(args, &output),
        Command::Load(args) => commands::load::run(args, &output),
        Command::Add(args) => commands::change::run(args, Action::Add, &output),
        Command::Remove(args) => commands::change::run(args, Action::Remove, &output),
        Command::Compact(args) => commands::compact::run(args, &output),
        Command::Repair(args) => commands::repair::run(args, &output),
        Command::Diff(args) => commands::diff::run(args, &output),
        Command::Index(args) => commands::index::run(args, &output),
        Command::Info(args) => commands::info::run(args, &output),
        Command::Sparql(args) => commands::sparql::run(args, &output),
        Command::SparqlWorker(args) => commands::sparql::worker(args),
        Command::Trust(args) => commands::trust::run(args, &output),
        Command::Logic(args) => commands::logic::run(args, &output),
        Command::Link(args) => commands::link::run(args, &output),
        Command::Eval(args) => commands::eval::run_eval(args, &output),
        Command::Train(args) => commands::train::run(args, &output),
        Command::Adapt(args) => commands::adapt::run(args, &output),
        Command::Label(args) => commands::label::run(args, &output),
        Command::Score(args) => commands::score::run(args, &output),
        Command::Calibrate(args) => commands::calibrate::run(args, &output),
        Command::Conformal(args) => commands::conformal::run(args, &output),
        Command::Report(args) => commands::report::run(args, &output),
        Command::Verify(args) => commands::verify::run(args, &output),
        Command::Keygen(args) => commands::keygen::run(args, &output),
        Command::Model(args) => commands::model::run(args, &output),
        Command::Serve(args) => commands::serve::serve(args, &output),
        Command::Mcp(args) => commands::serve::mcp(args, &output),
    };
    match done {
        Ok(exit) => exit,
        Err(error) => errors::report(&error, &output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_well_formed() {
        Args::command().debug_assert();
    }
}
