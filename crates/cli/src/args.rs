//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

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
  wherefore ask @toy 'Which stadium do the San Francisco Giants play in?'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Global {
    /// Write the result, and errors, as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Write nothing but the result and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ask(Ask),
    Verify(Verify),
}

/// Answer a question, with the triples that prove the answer
///
/// Exit status 1 means that there is no answer: nothing in the graph bears on the question.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore ask @toy 'Where was the coach of the San Francisco Giants born?'
  wherefore ask movies 'Who directed it?' --topic 'The Matrix' --json
  echo 'Whose mascot is Lou Seal?' | wherefore ask @toy -")]
pub(crate) struct Ask {
    /// A graph folder made by `wherefore load`, or `@toy`, the built-in sample
    pub(crate) graph: String,
    /// The question, or `-` to read it from standard input
    pub(crate) question: String,
    /// An entity that the question is about, instead of looking for names in it; repeatable
    #[arg(long = "topic", value_name = "NAME")]
    pub(crate) topics: Vec<String>,
    /// The method and its settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Read at most this many triples as evidence
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) top_k: Option<u32>,
}

/// Check a saved answer against a graph: is its evidence still there?
///
/// Exit status 1 means that an answer no longer holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore ask @toy 'Whose mascot is Lou Seal?' --json > answer.json
  wherefore verify answer.json --graph @toy")]
pub(crate) struct Verify {
    /// An answer saved from `wherefore ask --json`, or `-` to read it from standard input
    pub(crate) answer: PathBuf,
    /// A graph folder made by `wherefore load`, or `@toy`, the built-in sample
    #[arg(long)]
    pub(crate) graph: String,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn arguments_are_well_formed() {
        super::Args::command().debug_assert();
    }
}
