//! Folders and files that only their owner reads: settings, caches, unpacked samples.

use std::fs::{DirBuilder, File, OpenOptions};
use std::path::Path;

use crate::error::{Error, Result};

/// Creates a folder and its parents, readable by the owner only. An existing folder is unchanged.
pub fn create_folder(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path).map_err(Error::io("create", path))
}

/// Creates a file, readable by the owner only. Replaces an existing file.
pub fn create_file(path: &Path) -> Result<File> {
    // an existing one may be readable by others, or a link to another file
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("replace", path)(e));
        }
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path).map_err(Error::io("create", path))
}
