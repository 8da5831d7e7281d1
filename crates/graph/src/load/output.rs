//! The output folder of a load: written in a temporary folder, published in one step, cleaned up on
//! failure.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file::sync_folder;
use crate::graph_folder::DATA_PREFIX;
use crate::manifest::{MANIFEST, Manifest, stays_inside};
use crate::write_lock::{LOCK as CHANGES_LOCK, WriteLock};

const LOCK: &str = ".lock";
const WORK: &str = ".loading";

/// A graph folder being written.
pub(crate) struct OutputFolder {
    graph: PathBuf,
    work: PathBuf,
    data: PathBuf,
    temporary: PathBuf,
    /// Whether we created the folder.
    fresh: bool,
    published: bool,
    /// Held until the end: one writer at a time.
    _lock: File,
}

impl OutputFolder {
    /// Prepares the folder; an existing graph is not changed.
    pub(crate) fn prepare(graph: &Path, replace: bool) -> Result<Self> {
        let existed = graph.exists();
        if existed && !graph.is_dir() {
            return Err(Error::OutputExists {
                path: graph.to_owned(),
                is_graph: false,
            });
        }
        if existed {
            let is_graph = graph.join(MANIFEST).exists();
            if is_graph && !replace {
                return Err(Error::OutputExists {
                    path: graph.to_owned(),
                    is_graph,
                });
            }
            // leftovers of an interrupted load may be removed; other files may not
            if !is_graph && entries(graph)?.iter().any(|name| !is_ours(name)) {
                return Err(Error::OutputExists {
                    path: graph.to_owned(),
                    is_graph,
                });
            }
        }
        std::fs::create_dir_all(graph).map_err(Error::io("create", graph))?;
        stays_inside(graph, graph)?;
        let lock_path = graph.join(LOCK);
        let lock = File::create(&lock_path).map_err(Error::io("create", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked {
                    path: graph.to_owned(),
                });
            }
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", &lock_path)(e)),
        }
        let work = graph.join(WORK);
        let (data, temporary) = (work.join("data"), work.join("temporary"));
        let output = Self {
            graph: graph.to_owned(),
            fresh: !existed,
            published: false,
            _lock: lock,
            data,
            temporary,
            work,
        };
        output.clean()?;
        for folder in [&output.work, &output.data, &output.temporary] {
            std::fs::create_dir(folder).map_err(Error::io("create", folder))?;
        }
        Ok(output)
    }

    /// The folder for the graph's files.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The folder for temporary files.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Replaces the old graph by the new one. Writers of changes wait meanwhile.
    pub(crate) fn publish(
        mut self,
        mut manifest: Manifest,
        before: impl FnOnce(&Path, &str) -> Result<()>,
    ) -> Result<()> {
        let _writing = WriteLock::take(&self.graph)?;
        before(&self.data, &manifest.checksum)?;
        let mut folder = format!("{DATA_PREFIX}{}", manifest.checksum);
        let mut number = 1;
        // the same graph may be there already, and perhaps it is being replaced because of damage
        while self.graph.join(&folder).exists() {
            number += 1;
            folder = format!("{DATA_PREFIX}{}-{number}", manifest.checksum);
        }
        let target = self.graph.join(&folder);
        std::fs::rename(&self.data, &target).map_err(Error::io("rename", &self.data))?;
        sync_folder(&self.graph)?;
        manifest.folder = folder;
        manifest.publish(&self.graph)?;
        self.published = true;
        self.clean()
    }

    /// Removes files that the manifest does not refer to.
    fn clean(&self) -> Result<()> {
        let current = Manifest::read(&self.graph).ok().map(|m| m.folder);
        for name in entries(&self.graph)? {
            let stale = name == WORK
                || name.starts_with(DATA_PREFIX) && current.as_deref() != Some(name.as_str());
            // a damaged manifest may still be repaired by hand: keep what it may refer to
            if stale && (current.is_some() || name == WORK || !self.graph.join(MANIFEST).exists()) {
                let path = self.graph.join(&name);
                std::fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        // nothing more can be done about a failure here; the next load cleans up
        let _ = std::fs::remove_dir_all(&self.work);
        if !self.published && self.fresh {
            let _ = std::fs::remove_file(self.graph.join(LOCK));
            let _ = std::fs::remove_file(self.graph.join(CHANGES_LOCK));
            let _ = std::fs::remove_dir(&self.graph);
        }
    }
}

fn entries(folder: &Path) -> Result<Vec<String>> {
    let read = std::fs::read_dir(folder).map_err(Error::io("read", folder))?;
    read.map(|entry| {
        entry
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .map_err(Error::io("read", folder))
    })
    .collect()
}

fn is_ours(name: &str) -> bool {
    name == LOCK
        || name == CHANGES_LOCK
        || name == WORK
        || name.starts_with(DATA_PREFIX)
        || name == format!("{MANIFEST}.part")
}
