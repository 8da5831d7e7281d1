//! Graphs that come over HTTP: whether they may, where they lie, one at a time.
//!
//! ```text
//! FOLDER/NAME/               the graph
//! FOLDER/NAME/loaded.json    says that it came so: another graph is never replaced
//! FOLDER/.upload-…/          a file on its way; it goes when its request goes
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use tokio::sync::OwnedMutexGuard;
use wherefore::graph::Store;

use crate::config::{GraphConfig, ServeConfig, is_name};
use crate::error::{Error, Result};
use crate::problem::Problem;

/// Marks a graph that was loaded over HTTP.
pub(crate) const MARK: &str = "loaded.json";

/// Where graphs are loaded to.
#[derive(Debug)]
pub(crate) struct Loads {
    given: Option<PathBuf>,
    /// Made when the first file comes, where no folder was given.
    temporary: Mutex<Option<TempDir>>,
    is_allowed: bool,
    one: Arc<tokio::sync::Mutex<()>>,
}

impl Loads {
    /// By a resolved configuration. Where no keys are asked for, only this machine loads graphs,
    /// and a server that goes by other names stands behind a proxy, unless a folder says otherwise.
    pub(crate) fn new(config: &ServeConfig) -> Result<Self> {
        if let Some(folder) = &config.loads {
            std::fs::create_dir_all(folder).map_err(|source| Error::Io {
                action: "create the folder for loaded graphs",
                path: folder.clone(),
                source,
            })?;
        }
        let is_given = config.loads.is_some();
        let is_own = config.listen.ip().is_loopback() && config.hosts.is_empty();
        Ok(Self {
            given: config.loads.clone(),
            temporary: Mutex::default(),
            is_allowed: config.limits.load_bytes > 0 && (is_given || is_own && !config.has_keys()),
            one: Arc::default(),
        })
    }

    /// Refuses where this server loads no graphs.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.is_allowed {
            return Ok(());
        }
        let message = "this server loads no graphs";
        Err(
            Problem::new(axum::http::StatusCode::FORBIDDEN, "no-loads", message)
                .hint("whoever runs it can start it with `--loads FOLDER`"),
        )
    }

    /// Where graphs are loaded to.
    pub(crate) fn folder(&self) -> Result<PathBuf, Problem> {
        if let Some(folder) = &self.given {
            return Ok(folder.clone());
        }
        let mut kept = self
            .temporary
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = kept.as_ref() {
            return Ok(folder.path().to_owned());
        }
        let made = tempfile::Builder::new()
            .prefix("wherefore-loads-")
            .tempdir();
        let made = made.map_err(|e| Problem::internal(format!("a folder for graphs: {e}")))?;
        let path = made.path().to_owned();
        *kept = Some(made);
        Ok(path)
    }

    /// A place for a file on its way.
    pub(crate) fn upload(&self) -> Result<TempDir, Problem> {
        let folder = self.folder()?;
        let made = tempfile::Builder::new()
            .prefix(".upload-")
            .tempdir_in(&folder);
        made.map_err(|e| Problem::internal(format!("a folder in `{}`: {e}", folder.display())))
    }

    /// The right to load; one has it at a time.
    pub(crate) fn begin(&self) -> Result<OwnedMutexGuard<()>, Problem> {
        (Arc::clone(&self.one).try_lock_owned())
            .map_err(|_| Problem::busy("busy", "another graph is being loaded", 5))
    }
}

/// Adds the graphs that were loaded before and lie in the folder; their names. One that cannot be
/// opened is told and passed over, and so is one whose name the configuration has.
pub(crate) fn found_before(config: &mut ServeConfig, log: &dyn Fn(&str)) -> Vec<String> {
    let Some(folder) = &config.loads else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let mut names = Vec::new();
    for path in paths.into_iter().filter(|path| is_loaded(path)) {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| is_name(name)) else {
            continue;
        };
        if config.graphs.contains_key(name) {
            continue;
        }
        if let Err(error) = Store::open(&path) {
            log(&format!("`{}` is not served: {error}", path.display()));
            continue;
        }
        let graph = GraphConfig {
            path: path.to_string_lossy().into_owned(),
            ..GraphConfig::default()
        };
        config.graphs.insert(name.to_owned(), graph);
        names.push(name.to_owned());
    }
    names
}

/// Whether a graph in the folder came over HTTP.
pub(crate) fn is_loaded(graph: &Path) -> bool {
    graph.join(MARK).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_loads_unasked() {
        let allowed = |text: &str| {
            let config = ServeConfig::from_toml(text).unwrap();
            Loads::new(&config).unwrap().check().is_ok()
        };
        let folder = tempfile::tempdir().unwrap();
        let loads = format!("loads = {:?}\n", folder.path().display().to_string());
        let key = format!("[[keys]]\nname = \"a\"\nsha256 = \"{}\"\n", "0".repeat(64));
        assert!(allowed(""));
        assert!(allowed(&loads));
        assert!(!allowed("limits = { load_bytes = 0 }"));
        assert!(!allowed(&key));
        assert!(allowed(&format!("{loads}{key}")));
        // behind a proxy
        assert!(!allowed("hosts = [\"graph.example\"]"));
        assert!(allowed(&format!("{loads}hosts = [\"graph.example\"]")));
        assert!(!allowed("listen = \"0.0.0.0:80\""));
    }

    #[test]
    fn one_file_at_a_time_and_nothing_is_left_of_it() {
        let loads = Loads::new(&ServeConfig::default()).unwrap();
        let begun = loads.begin().unwrap();
        assert_eq!(loads.begin().unwrap_err().status, 429);
        drop(begun);
        loads.begin().unwrap();
        let upload = loads.upload().unwrap();
        let folder = loads.folder().unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        drop(upload);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        drop(loads);
        assert!(!folder.exists());
    }
}
