//! `graph.json`: what a graph folder holds, which files make it up, and their checksums.
//!
//! The files of one graph stand in a folder of their own beside the manifest. Replacing a graph
//! means writing a second such folder and renaming the new manifest over the old one, so at every
//! moment the manifest leads to one whole graph.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::file::{FileInfo, atomic_write, hex};

/// The newest format that this version reads, and the one it writes.
pub(crate) const FORMAT: u32 = 1;

pub(crate) const MANIFEST: &str = "graph.json";

/// Counts that need the whole graph to be known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Distinct triples.
    pub triples: u64,
    /// Distinct subjects and objects, literals included.
    pub entities: u64,
    /// Distinct predicates.
    pub relations: u64,
    /// Entities that are literals.
    pub literals: u64,
    /// Entities that are blank nodes.
    pub blanks: u64,
    /// Entities without a readable name, including blank nodes.
    pub unnamed: u64,
    /// Triples that only give a name or an alias.
    pub naming: u64,
    /// Duplicate triples in the input.
    pub duplicates: u64,
    /// Malformed lines in the input.
    pub malformed: u64,
}

/// The contents of `graph.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    /// Version of the program that wrote it.
    pub(crate) written_by: String,
    /// Folder of the files, beside the manifest.
    pub(crate) folder: String,
    /// Checksum over all files: the identity of the graph.
    pub(crate) checksum: String,
    pub(crate) counts: Counts,
    /// First entity id of each kind: blank, IRI, literal, name; then the end.
    pub(crate) kinds: [u32; 5],
    /// Relations that give labels, best first, and those that give aliases.
    pub(crate) label_relations: Vec<u32>,
    pub(crate) alias_relations: Vec<u32>,
    /// The language in which labels are preferred.
    #[serde(default = "english")]
    pub(crate) language: String,
    pub(crate) files: Vec<FileInfo>,
    /// The file with the checksums of the files' blocks; older graphs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sums: Option<FileInfo>,
}

/// The default of graphs written before the field existed.
fn english() -> String {
    "en".into()
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    manifest: serde_json::Value,
    /// Of the manifest, written without spaces.
    checksum: String,
}

impl Manifest {
    pub(crate) fn read(graph: &Path) -> Result<Self> {
        let path = graph.join(MANIFEST);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let reason = if graph.is_dir() {
                    format!("it has no `{MANIFEST}`")
                } else if graph.exists() {
                    "it is a file".to_owned()
                } else {
                    "it does not exist".to_owned()
                };
                return Err(Error::NotAGraph {
                    path: graph.to_owned(),
                    reason,
                });
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
                return Err(Error::NotAGraph {
                    path: graph.to_owned(),
                    reason: "it is a file".into(),
                });
            }
            Err(e) => return Err(Error::io("read", &path)(e)),
        };
        let damaged = |reason: String| Error::Damaged {
            path: path.clone(),
            reason,
        };
        let envelope: Envelope =
            serde_json::from_slice(&text).map_err(|e| damaged(format!("invalid JSON: {e}")))?;
        // the version first: a newer manifest may hold what this version cannot read
        let found = envelope
            .manifest
            .get("format")
            .and_then(serde_json::Value::as_u64);
        if checksum(&envelope.manifest) != envelope.checksum {
            return Err(damaged("its checksum does not match".into()));
        }
        match found {
            Some(found) if found > u64::from(FORMAT) => Err(Error::NewerFormat {
                path: graph.to_owned(),
                found: u32::try_from(found).unwrap_or(u32::MAX),
                supported: FORMAT,
            }),
            _ => {
                let manifest: Self = serde_json::from_value(envelope.manifest)
                    .map_err(|e| damaged(format!("invalid JSON: {e}")))?;
                let names = (manifest.files.iter()).map(|file| &file.name);
                if let Some(name) = names.chain([&manifest.folder]).find(|n| !is_plain(n)) {
                    return Err(damaged(format!(
                        "it names `{name}`, which is not a plain file name"
                    )));
                }
                stays_inside(graph, graph)?;
                stays_inside(graph, &manifest.data(graph))?;
                Ok(manifest)
            }
        }
    }

    /// Writes the manifest in one step: readers see the old one or the new one.
    pub(crate) fn publish(&self, graph: &Path) -> Result<()> {
        let path = graph.join(MANIFEST);
        let temporary = graph.join(format!("{MANIFEST}.part"));
        let manifest = serde_json::to_value(self).expect("a manifest is plain data");
        let envelope = Envelope {
            checksum: checksum(&manifest),
            manifest,
        };
        let text = serde_json::to_string_pretty(&envelope).expect("a manifest is plain data");
        atomic_write(&path, &temporary, text.as_bytes())
    }

    pub(crate) fn data(&self, graph: &Path) -> PathBuf {
        graph.join(&self.folder)
    }
}

/// Whether a name is a plain file name. A graph of a stranger must not make us read or write
/// elsewhere.
fn is_plain(name: &str) -> bool {
    let path = Path::new(name);
    let mut parts = path.components();
    matches!(
        (parts.next(), parts.next()),
        (Some(std::path::Component::Normal(part)), None) if part == name
    ) && !name.contains(['/', '\\', '\0'])
}

/// Refuses links in `folder` that lead out of the graph, for the same reason. A missing folder is
/// fine.
pub(crate) fn stays_inside(graph: &Path, folder: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    let mut home = None;
    for entry in entries {
        let entry = entry.map_err(Error::io("read", folder))?;
        let kind = entry.file_type().map_err(Error::io("read", folder))?;
        if !kind.is_symlink() {
            continue;
        }
        let home = match &home {
            Some(home) => home,
            None => home.insert(std::fs::canonicalize(graph).map_err(Error::io("read", graph))?),
        };
        let path = entry.path();
        // a link to nothing would become something when it is written to
        if !std::fs::canonicalize(&path).is_ok_and(|target| target.starts_with(home)) {
            return Err(Error::Damaged {
                path,
                reason: "it is a link that leads out of the graph's folder".into(),
            });
        }
    }
    Ok(())
}

fn checksum(manifest: &serde_json::Value) -> String {
    hex(xxh3_64(manifest.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::load::{Input, LoadOptions, load};

    fn graph() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (file, graph) = (folder.path().join("a.tsv"), folder.path().join("graph"));
        std::fs::write(&file, "a\tr\tb\n").unwrap();
        load(
            &[Input::File(file)],
            &graph,
            &LoadOptions::default(),
            &|_| {},
        )
        .unwrap();
        (folder, graph)
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        let (_folder, graph) = graph();
        let good = Manifest::read(&graph).unwrap();
        let outside = graph.parent().unwrap().join("elsewhere");
        std::fs::rename(good.data(&graph), &outside).unwrap();
        let absolute = outside.to_string_lossy().into_owned();
        for name in [
            "../elsewhere",
            &absolute,
            "..",
            ".",
            "",
            "a/b",
            "a\\b",
            "./data",
        ] {
            let mut bad = good.clone();
            bad.folder = name.to_owned();
            bad.publish(&graph).unwrap();
            let error = Store::open(&graph).unwrap_err();
            assert!(
                error.to_string().contains("not a plain file name"),
                "{error}"
            );
            let mut bad = good.clone();
            bad.files[0].name = name.to_owned();
            bad.publish(&graph).unwrap();
            let error = Store::open(&graph).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_of_the_folder_are_refused() {
        use std::os::unix::fs::symlink;
        let (folder, graph) = graph();
        let manifest = Manifest::read(&graph).unwrap();
        let target = folder.path().join("target");
        std::fs::write(&target, "mine").unwrap();
        let data = manifest.data(&graph);
        for (link, target) in [
            (data.join("changes.log"), target.clone()),
            (graph.join("graph.json.part"), target.clone()),
            // made by whoever writes to it
            (graph.join("index"), folder.path().join("new")),
        ] {
            symlink(&target, &link).unwrap();
            let error = Store::open(&graph).unwrap_err();
            assert!(error.to_string().contains("leads out"), "{error}");
            let options = LoadOptions {
                replace: true,
                ..LoadOptions::default()
            };
            let source = Input::File(folder.path().join("a.tsv"));
            if !link.starts_with(&data) {
                load(&[source], &graph, &options, &|_| {}).unwrap_err();
            }
            std::fs::remove_file(&link).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine");
        // the folder of the files itself
        let moved = folder.path().join("moved");
        std::fs::rename(&data, &moved).unwrap();
        symlink(&moved, &data).unwrap();
        assert!(Store::open(&graph).is_err());
        // a link to a whole graph is the user's own
        std::fs::remove_file(&data).unwrap();
        std::fs::rename(&moved, &data).unwrap();
        symlink(&graph, folder.path().join("link")).unwrap();
        assert!(Store::open(folder.path().join("link")).is_ok());
        symlink("graph.json", graph.join("same")).unwrap();
        assert!(Store::open(&graph).is_ok());
    }
}
