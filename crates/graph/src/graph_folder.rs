//! Names in a graph folder, and which folder a file belongs to.

use std::path::Path;

/// Prefix of the folders with a graph's files; the manifest names the current one.
pub(crate) const DATA_PREFIX: &str = "data-";

/// The graph folder that a file belongs to: the file's own folder, or the parent of that if it is
/// a data folder.
pub(crate) fn graph_of(file: &Path) -> &Path {
    let folder = file.parent().unwrap_or(file);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match folder.parent() {
        Some(graph) if name.starts_with(DATA_PREFIX) && !graph.as_os_str().is_empty() => graph,
        _ => folder,
    }
}
