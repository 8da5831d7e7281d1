//! Files that are there whole or not at all: written aside, then renamed.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};

/// Writes a file.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".part");
    let aside = PathBuf::from(aside);
    std::fs::write(&aside, bytes).map_err(Error::io("write", &aside))?;
    std::fs::rename(&aside, path).map_err(Error::io("write", path))
}

/// Writes a value as JSON for people and programs.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .expect("descriptions and metrics are plain JSON with text keys");
    write(path, text + "\n")
}
