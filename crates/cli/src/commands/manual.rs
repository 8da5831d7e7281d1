//! `wherefore completions` and `wherefore man`: what packagers put beside the program.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;

use crate::errors::Exit;
use crate::output::Output;

/// Write the completions of a shell to standard output
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore completions bash > ~/.local/share/bash-completion/completions/wherefore")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages, one for each command, into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore man --out ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder; without one the main page goes to standard output
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

pub(crate) fn completions(
    args: &Completions,
    mut main: Command,
    output: &Output,
) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut main, "wherefore", &mut text);
    let text = String::from_utf8_lossy(&text);
    if output.json {
        let shell = args.shell.to_string();
        output.print_json(&serde_json::json!({ "shell": shell, "script": text }))?;
    } else {
        output.print(&text)?;
    }
    Ok(Exit::Done)
}

pub(crate) fn man(args: &Man, main: Command, output: &Output) -> anyhow::Result<Exit> {
    match &args.out {
        Some(folder) => {
            fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(main, folder))
                .with_context(|| format!("cannot write pages into `{}`", folder.display()))?;
            if output.json {
                output.print_json(&serde_json::json!({ "folder": folder }))?;
            }
            output.note("written", &folder.display().to_string());
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(main)
                .render(&mut text)
                .context("cannot write the manual page")?;
            let text = String::from_utf8_lossy(&text);
            if output.json {
                output.print_json(&serde_json::json!({ "page": text }))?;
            } else {
                output.print(&text)?;
            }
        }
    }
    Ok(Exit::Done)
}
