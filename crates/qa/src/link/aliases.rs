//! What the user says that words mean: a file of aliases.
//!
//! ```text
//! # words <tab> entity
//! the big apple <tab> New York City
//! it <tab> -
//! ```
//!
//! Such words always mean that entity, whatever else bears the name; `-` says that they mean
//! none. Words are compared after normalisation. Empty lines and lines with `#` are skipped.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Graph};

use super::topics::surely_named;
use crate::error::{Error, Result};

/// An alias file is small; this is larger than any written by hand.
const MAX_BYTES: u64 = 64 << 20;

/// The aliases of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Aliases {
    /// Normalised words to the entity's name; none where they mean nothing.
    meanings: HashMap<String, Option<String>>,
    /// Words in the longest alias.
    longest: usize,
}

impl Aliases {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let bad = |line: usize, reason: &str| Error::BadAlias {
            path: path.to_owned(),
            line,
            reason: reason.into(),
        };
        if fs::metadata(path).map_err(io)?.len() > MAX_BYTES {
            return Err(bad(1, "the file has more than 64 MiB"));
        }
        let text = fs::read_to_string(path).map_err(io)?;
        let mut aliases = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((words, entity)) = line.split_once('\t') else {
                return Err(bad(number, "it has no tab"));
            };
            let (words, entity) = (normalise(words), entity.trim());
            if words.is_empty() || entity.is_empty() {
                return Err(bad(number, "words or entity are missing"));
            }
            let count = words.split(' ').count();
            aliases.longest = aliases.longest.max(count);
            let meaning = (entity != "-").then(|| entity.to_owned());
            aliases.meanings.insert(words, meaning);
        }
        Ok(aliases)
    }

    /// Words in the longest alias; 0 where there is none.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// What the normalised words mean: `None` if the file does not say, no entity if it says `-`.
    ///
    /// # Errors
    /// [`Error::NoSuchTopic`] if the file names an entity that the graph does not have.
    pub(super) fn meaning(&self, words: &str, graph: &dyn Graph) -> Result<Option<Vec<EntityId>>> {
        let Some(meaning) = self.meanings.get(words) else {
            return Ok(None);
        };
        let Some(name) = meaning else {
            return Ok(Some(Vec::new()));
        };
        surely_named(name, graph).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::toy;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn words_mean_what_the_file_says() {
        let graph = toy::graph();
        let file = file("# aliases\n\nThe Orange-and-Black\tSan Francisco Giants\nseal\t-\n");
        let aliases = Aliases::read(file.path()).unwrap();
        let giants = aliases.meaning("the orange and black", &graph).unwrap();
        assert_eq!(
            graph.entity_label(giants.unwrap()[0]).unwrap(),
            "San Francisco Giants"
        );
        assert_eq!(aliases.meaning("seal", &graph).unwrap(), Some(vec![]));
        assert_eq!(aliases.meaning("lou", &graph).unwrap(), None);
        assert_eq!(aliases.longest(), 4);
    }

    #[test]
    fn bad_lines_and_unknown_entities_are_named() {
        for (text, line) in [("a\tb\nno tab\n", 2), ("\t \n x\t\n", 2)] {
            let error = Aliases::read(file(text).path()).unwrap_err();
            assert!(
                matches!(error, Error::BadAlias { line: l, .. } if l == line),
                "{error}"
            );
        }
        let aliases = Aliases::read(file("x\tSan Fransisco\n").path()).unwrap();
        let error = aliases.meaning("x", &toy::graph()).unwrap_err();
        assert!(error.hint().unwrap().contains("San Francisco"));
        assert!(matches!(
            Aliases::read(Path::new("/nowhere/at/all")),
            Err(Error::Io { .. })
        ));
    }
}
