//! `wherefore completions` and `wherefore man`: what packagers put beside the program.

use std::fs;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Args, Completions, Man};
use crate::errors::Exit;
use crate::output::Output;

pub(crate) fn completions(args: &Completions, output: &Output) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "wherefore", &mut text);
    let text = String::from_utf8_lossy(&text);
    if output.json {
        let shell = args.shell.to_string();
        output.print_json(&serde_json::json!({ "shell": shell, "script": text }))?;
    } else {
        output.print(&text)?;
    }
    Ok(Exit::Done)
}

pub(crate) fn man(args: &Man, output: &Output) -> anyhow::Result<Exit> {
    let main = Args::command();
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
