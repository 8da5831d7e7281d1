//! The folder that a load writes: prepared aside, published in one step, cleaned up on failure.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::changes::log::{LOCK as CHANGES_LOCK, WriteLock};
use crate::error::{Error, Result};
use crate::manifest::{MANIFEST, Manifest, stays_inside, sync_folder};

const LOCK: &str = ".lock";
const WORK: &str = ".loading";
pub(crate) const DATA: &str = "data-";

/// A graph folder being written.
pub(crate) struct Output {
    graph: PathBuf,
    work: PathBuf,
    data: PathBuf,
    temporary: PathBuf,
    /// Whether the folder was made by us and is empty but for our files.
    fresh: bool,
    published: bool,
    /// Held until the end: one writer at a time.
    _lock: File,
}

impl Output {
    /// Makes the folder ready; what is there already stays as it is.
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
            // remains of a load that was stopped are ours; anything else is not
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

    /// Where the graph's files go.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Where anything else goes.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Puts the new graph into the place of the old one. Whoever writes changes waits meanwhile.
    pub(crate) fn publish(
        mut self,
        mut manifest: Manifest,
        before: impl FnOnce(&Path, &str) -> Result<()>,
    ) -> Result<()> {
        let _writing = WriteLock::take(&self.graph)?;
        before(&self.data, &manifest.checksum)?;
        let mut folder = format!("{DATA}{}", manifest.checksum);
        let mut number = 1;
        // the same graph may be there already, and perhaps it is being replaced because of damage
        while self.graph.join(&folder).exists() {
            number += 1;
            folder = format!("{DATA}{}-{number}", manifest.checksum);
        }
        let target = self.graph.join(&folder);
        std::fs::rename(&self.data, &target).map_err(Error::io("rename", &self.data))?;
        sync_folder(&self.graph)?;
        manifest.folder = folder;
        manifest.publish(&self.graph)?;
        self.published = true;
        self.clean()
    }

    /// Removes what no manifest leads to.
    fn clean(&self) -> Result<()> {
        let current = Manifest::read(&self.graph).ok().map(|m| m.folder);
        for name in entries(&self.graph)? {
            let stale =
                name == WORK || name.starts_with(DATA) && current.as_deref() != Some(name.as_str());
            // a damaged manifest may still be mended by hand: keep what it may lead to
            if stale && (current.is_some() || name == WORK || !self.graph.join(MANIFEST).exists()) {
                let path = self.graph.join(&name);
                std::fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

impl Drop for Output {
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
        || name.starts_with(DATA)
        || name == format!("{MANIFEST}.part")
}
