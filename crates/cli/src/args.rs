//! Options that several commands have.

use std::path::PathBuf;

use clap::ValueEnum;
use wherefore_graph::Trust;
use wherefore_lab::questions::Format;

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

/// Options of the commands that can ask a language model.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Language model")]
pub(crate) struct Llm {
    /// Let a language model answer from the evidence, with one call: a GGUF file, or URL#MODEL of
    /// an OpenAI-compatible server (its key comes from the environment, `WHEREFORE_API_KEY`)
    #[arg(long, value_name = "MODEL")]
    pub(crate) llm: Option<String>,
    /// Maximum calls of the language model per question
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u32>,
    /// Maximum tokens read and written per question
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Stop a language model after so many milliseconds on a question
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_ms: Option<u64>,
    /// Neither use nor keep completions on disk
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Append every completion to a file, which `--llm script:FILE` replays
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Give answers that nothing in the graph proves too, marked as such
    #[arg(long)]
    pub(crate) keep_ungrounded: bool,
}

/// Options of the commands that open a graph.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Consent {
    /// Trust the service file that the graph names or holds, for this once
    #[arg(long)]
    pub(crate) trust: bool,
}

impl Consent {
    pub(crate) fn trust(self) -> Trust {
        match self.trust {
            true => Trust::Given,
            false => Trust::Recorded,
        }
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// How sure answers have to be.
#[derive(Debug, clap::Args)]
pub(crate) struct Wished {
    /// Refuse what is not sure enough for this share of answers to be right, from 0 to 1; 0 refuses
    /// nothing that is found
    #[arg(long, value_name = "SHARE")]
    pub(crate) precision: Option<f32>,
}

/// For clap: a number of seconds. No number at all, and one without an end, are refused.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "write it like `2.5`")?;
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(seconds)
    } else {
        Err("seconds are a number from 0 on".into())
    }
}

/// The names of methods; former ones are taken and not shown.
pub(crate) fn methods() -> clap::builder::PossibleValuesParser {
    use clap::builder::PossibleValue;
    use wherefore::method::{FORMER_NAMES, Method};
    let former = FORMER_NAMES.map(|name| PossibleValue::new(name).hide(true));
    clap::builder::PossibleValuesParser::new(
        Method::ALL
            .map(|method| PossibleValue::new(method.name()))
            .into_iter()
            .chain(former),
    )
}

/// For clap: a number of bytes such as `512M` or `4G`.
pub(crate) fn parse_memory(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err("write it like `512M` or `4G`".into()),
    };
    let number: f64 = digits.parse().map_err(|_| "write it like `512M` or `4G`")?;
    let bytes = number * f64::from(1u32 << shift);
    if !(64.0 * 1024.0 * 1024.0..=1e15).contains(&bytes) {
        return Err("at least 64M are needed".into());
    }
    Ok(bytes as usize)
}

/// For clap: a question format by its name.
pub(crate) fn question_format(name: &str) -> Result<Format, String> {
    name.parse()
        .map_err(|e: wherefore_lab::Error| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_that_are_none_are_refused() {
        for bad in ["nan", "inf", "-inf", "-1", "1e999", "", "soon"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("0"), Ok(0.0));
        assert_eq!(seconds("1e300"), Ok(1e300));
    }

    #[test]
    fn memory_is_read_with_its_unit() {
        assert_eq!(parse_memory("4G"), Ok(4 << 30));
        assert_eq!(parse_memory("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_memory("100m"), Ok(100 << 20));
        assert_eq!(parse_memory("67108864"), Ok(64 << 20));
        for bad in ["", "G", "4T", "-1G", "63M", "NaNG", "1e99"] {
            assert!(parse_memory(bad).is_err(), "{bad}");
        }
    }
}
