//! The parts of an index, and the command that builds them.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Name of the folder inside a graph folder.
pub(crate) const FOLDER: &str = "index";

/// A part of an index; each is built and opened by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Vectors of entity labels.
    Entities,
    /// Vectors of relation labels.
    Relations,
    /// Vectors of whole triples.
    Triples,
    /// Full text.
    Text,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 4] = [Part::Entities, Part::Relations, Part::Triples, Part::Text];

    /// Its name, also of its files.
    pub fn name(self) -> &'static str {
        match self {
            Part::Entities => "entities",
            Part::Relations => "relations",
            Part::Triples => "triples",
            Part::Text => "text",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The command that builds a part.
pub(crate) fn command(graph: &Path, encoder: Option<&str>, part: Part) -> String {
    let mut command = format!("wherefore index {}", graph.display());
    if let Some(encoder) = encoder {
        command += &format!(" --encoder {encoder}");
    }
    if part == Part::Triples {
        command += " --triples";
    }
    command
}
