//! `wherefore trust`: the user's list of service files that are trusted.

use anyhow::Context;
use serde::Serialize;
use std::path::PathBuf;
use wherefore_graph::{Trusted, TrustedServices};

use crate::errors::Exit;
use crate::output::{Output, counted, shown};

/// Trust the service file of a graph folder, or list those that are trusted
///
/// A service file says where questions are sent, and which environment variables go along; it may
/// lie in a folder that somebody else made. It counts once it is trusted, until it is changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore trust films
  wherefore trust films.toml
  wherefore trust films --revoke
  wherefore trust")]
pub(crate) struct TrustService {
    /// A folder with a `service.toml`, or a service file; without one, the list is shown
    pub(crate) graph: Option<PathBuf>,
    /// Trust it no longer
    #[arg(long, requires = "graph")]
    pub(crate) revoke: bool,
}

/// What was agreed to.
#[derive(Serialize)]
struct Agreed {
    file: String,
    host: String,
    /// Environment variables whose values are sent along.
    variables: Vec<String>,
}

#[derive(Serialize)]
struct Listed<'a> {
    services: &'a [Trusted],
}

pub(crate) fn run(args: &TrustService, output: &Output) -> anyhow::Result<Exit> {
    let mut list = TrustedServices::of_user()?;
    let Some(graph) = &args.graph else {
        if output.json {
            output.print_json(&Listed {
                services: list.services(),
            })?;
            return Ok(Exit::Done);
        }
        for service in list.services() {
            output.print(&format!("{}\n", shown(&service.file.to_string_lossy())))?;
        }
        if list.services().is_empty() {
            output.note("note", "no service file is trusted");
        }
        return Ok(Exit::Done);
    };
    let name = graph.display();
    if args.revoke {
        let gone = list
            .revoke(graph)
            .with_context(|| format!("cannot take `{name}` off the list"))?;
        if output.json {
            output.print_json(&serde_json::json!({ "revoked": gone }))?;
        } else if gone {
            output.note("revoked", &name.to_string());
        } else {
            output.note("note", &format!("`{name}` was not trusted"));
        }
        return Ok(if gone { Exit::Done } else { Exit::No });
    }
    let config = list
        .trust(graph)
        .with_context(|| format!("cannot trust `{name}`"))?;
    let agreed = Agreed {
        file: name.to_string(),
        host: config.host(),
        variables: config.variables(),
    };
    if output.json {
        output.print_json(&agreed)?;
        return Ok(Exit::Done);
    }
    let along = match agreed.variables.as_slice() {
        [] => "no secrets go along".to_owned(),
        names => format!(
            "{} along: {}",
            counted(
                names.len(),
                "environment variable goes",
                "environment variables go"
            ),
            names.join(", ")
        ),
    };
    output.print(&format!(
        "{} {}: questions go to {}, {}\n",
        output.green("✓"),
        output.bold(&shown(&agreed.file)),
        shown(&agreed.host),
        shown(&along),
    ))?;
    Ok(Exit::Done)
}
