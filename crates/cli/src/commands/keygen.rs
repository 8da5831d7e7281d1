//! `wherefore keygen`: a key that signs answers.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use wherefore::verify::SigningKey;

use crate::errors::Exit;
use crate::output::{Output, shown};

/// Make a key that signs answers, and the public key that verifies them
///
/// `FILE` is the key, for `ask --sign` and `serve --sign`: keep it secret. `FILE.pub` is for
/// everybody who verifies. Both are PEM files (Ed25519).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  wherefore keygen answers.key
  wherefore ask @toy 'Whose mascot is Lou Seal?' --json --sign answers.key > answer.json
  wherefore verify answer.json --graph @toy --key answers.key.pub")]
pub(crate) struct Keygen {
    /// The file to write; a file that is there stays
    pub(crate) file: PathBuf,
}

#[derive(Serialize)]
struct Made<'a> {
    key: &'a Path,
    public: &'a Path,
    signer: String,
}

pub(crate) fn run(args: &Keygen, output: &Output) -> anyhow::Result<Exit> {
    let text = SigningKey::generate()?;
    let key = SigningKey::from_pem(&text)?.public();
    let public = public_file(&args.file);
    write(&args.file, &text, true)?;
    write(&public, &key.to_pem(), false)?;
    if output.json {
        output.print_json(&Made {
            key: &args.file,
            public: &public,
            signer: key.to_string(),
        })?;
    } else {
        output.print(&format!(
            "{}: signs, keep it secret\n{}: verifies, for everybody\n{key}\n",
            shown(&args.file.to_string_lossy()),
            shown(&public.to_string_lossy()),
        ))?;
    }
    Ok(Exit::Done)
}

/// The file's name and `.pub`.
fn public_file(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".pub");
    PathBuf::from(name)
}

/// Writes a new file; a secret one is for its owner alone.
fn write(path: &Path, text: &str, secret: bool) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if secret {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = secret;
    options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write the key `{}`", path.display()))
}
