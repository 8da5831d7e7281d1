//! The lock of a graph folder: one writer of changes, or of another graph in its place, at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};

/// The lock file, beside the manifest.
pub(crate) const LOCK: &str = ".changes.lock";

/// Held while a log is written or a graph is put into the place of another.
#[derive(Debug)]
pub(crate) struct WriteLock {
    _file: File,
}

impl WriteLock {
    /// Waits until nobody else holds it.
    pub(crate) fn take(graph: &Path) -> Result<Self> {
        let path = graph.join(LOCK);
        let file = File::create(&path).map_err(Error::io("create", &path))?;
        file.lock().map_err(Error::io("lock", &path))?;
        Ok(Self { _file: file })
    }

    /// Whether somebody is writing now. Unknown counts as no.
    pub(crate) fn is_held(graph: &Path) -> bool {
        File::open(graph.join(LOCK))
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}
