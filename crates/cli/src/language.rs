//! The language model of a command: what the flags say, and what people see while it works.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wherefore::PipelineConfig;
use wherefore::reason::Budget;
use wherefore::verify::Ungrounded;
use wherefore_model::LanguageModel;
use wherefore_model::language::{self, Cached, Progress as Told, Recording, Watched};

use crate::args::Llm;
use crate::errors::UserError;
use crate::output::Output;
use crate::progress::{Progress, Unit};

/// Puts what the flags say into the configuration.
pub(crate) fn configure(args: &Llm, config: &mut PipelineConfig) -> anyhow::Result<()> {
    if let Some(name) = &args.llm {
        config.set_llm(name);
    }
    if args.keep_ungrounded {
        config.ungrounded = Ungrounded::Mark;
    }
    let limits = Budget {
        max_calls: args.max_calls,
        max_tokens: args.max_tokens,
        max_ms: args.max_ms,
    };
    if limits == Budget::default() {
        return Ok(());
    }
    let Some(budget) = config.budget_mut() else {
        return Err(UserError {
            code: "usage",
            message: "a budget is given, and no language model".into(),
            hint: "name one with `--llm FILE.gguf` or `--llm URL#MODEL`".into(),
        }
        .into());
    };
    budget.max_calls = limits.max_calls.or(budget.max_calls);
    budget.max_tokens = limits.max_tokens.or(budget.max_tokens);
    budget.max_ms = limits.max_ms.or(budget.max_ms);
    Ok(())
}

/// Opens the model that the configuration names, with the cache and the record that the flags ask
/// for; none where the configuration needs none.
pub(crate) fn open(
    args: &Llm,
    config: &PipelineConfig,
) -> anyhow::Result<Option<Arc<dyn LanguageModel>>> {
    let (true, Some(name)) = (config.asks_model(), &config.llm) else {
        return Ok(None);
    };
    opened(name, !args.no_cache, args.record.as_deref()).map(Some)
}

/// A language model, which may keep its completions and record them.
pub(crate) fn opened(
    name: &str,
    is_cached: bool,
    record: Option<&Path>,
) -> anyhow::Result<Arc<dyn LanguageModel>> {
    let mut model = language::open(name)?;
    if is_cached {
        model = Arc::new(Cached::new(model, language::cache_folder()));
    }
    if let Some(path) = record {
        model = Arc::new(Recording::new(model, path)?);
    }
    Ok(model)
}

/// Whether people see the prose as it is written.
pub(crate) fn is_streamed(output: &Output) -> bool {
    !output.quiet && !output.json && io::stderr().is_terminal()
}

/// The same model; on a terminal, people see how far it has read and what it writes.
pub(crate) fn watched(model: Arc<dyn LanguageModel>, output: &Output) -> Arc<dyn LanguageModel> {
    let shown = Mutex::new(Shown {
        output: output.clone(),
        bar: None,
        prose: Prose::default(),
    });
    Arc::new(Watched::new(
        model,
        Box::new(move |told| {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.tell(told);
        }),
    ))
}

struct Shown {
    output: Output,
    bar: Option<Progress>,
    prose: Prose,
}

impl Shown {
    fn tell(&mut self, told: Told<'_>) {
        match told {
            Told::Reading { done, total } if done < total => {
                let output = &self.output;
                let bar = self
                    .bar
                    .get_or_insert_with(|| Progress::begin("reading", output));
                bar.at(done as u64, Some(total as u64), Unit::Count("tokens"));
            }
            Told::Reading { .. } => self.bar = None,
            Told::Text(text) => {
                self.bar = None;
                let prose = self.prose.of(text);
                if is_streamed(&self.output) && !prose.is_empty() {
                    // nobody is left to tell if this fails
                    let _ = io::stderr().write_all(prose.as_bytes());
                    let _ = io::stderr().flush();
                }
            }
        }
    }
}

/// Passes on what is written, but for the lines that begin `ans:`, and for what steers a terminal.
#[derive(Debug, Default)]
struct Prose {
    /// The beginning of a line, until it is known what it is.
    held: String,
    line: Line,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Begins,
    Prose,
    Answer,
}

impl Prose {
    fn of(&mut self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            if c == '\n' {
                if self.line != Line::Answer {
                    out += &std::mem::take(&mut self.held);
                    out.push('\n');
                }
                self.held.clear();
                self.line = Line::Begins;
                continue;
            }
            let c = if c.is_control() { ' ' } else { c };
            match self.line {
                Line::Answer => {}
                Line::Prose => out.push(c),
                Line::Begins => {
                    self.held.push(c);
                    let begin = self.held.trim_start().to_ascii_lowercase();
                    if begin.starts_with("ans:") {
                        self.line = Line::Answer;
                        self.held.clear();
                    } else if !"ans:".starts_with(&begin) {
                        self.line = Line::Prose;
                        out += &std::mem::take(&mut self.held);
                    }
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_left_to_the_table() {
        let mut prose = Prose::default();
        let mut out = String::new();
        for piece in [
            "It",
            " is so.\x1b[2J\nAn",
            "s: Lou",
            " Seal\nant",
            "s\n",
            " ans: x\nan",
        ] {
            out += &prose.of(piece);
        }
        assert_eq!(out, "It is so. [2J\nants\n");
    }
}
