//! Topics that the user is sure of, and the names that come near to one that is not there.

use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Graph, NameMatch};

use super::lexicon::edits;
use crate::error::{Error, Result};

/// Names offered when nothing is found.
pub(super) const NEAR_NAMES: usize = 3;

/// The entities with a name that the user is sure of: exactly as written, or else normalised.
///
/// # Errors
/// [`Error::NoSuchTopic`], with the names that come near.
pub(super) fn surely_named(name: &str, graph: &dyn Graph) -> Result<Vec<EntityId>> {
    for how in [NameMatch::Exact, NameMatch::Normalised] {
        let named = graph.entities_named(name, how)?;
        if !named.is_empty() {
            return Ok(named);
        }
    }
    Err(Error::NoSuchTopic {
        name: name.to_owned(),
        near: near(name, 1, graph)?,
    })
}

/// Names that share at least the first `least` letters with `name`, those with the fewest edits
/// first.
pub(super) fn near(name: &str, least: usize, graph: &dyn Graph) -> Result<Vec<String>> {
    let wanted: String = normalise(name).chars().take(64).collect();
    let letters = wanted.chars().count();
    // shorter and shorter beginnings: the first that anybody has
    for length in [letters, letters / 2, 3, 1] {
        if length < least || length > letters {
            continue;
        }
        let prefix: String = wanted.chars().take(length).collect();
        let mut found = Vec::new();
        for entity in graph.entities_with_prefix(&prefix, 500)? {
            let label = graph.entity_label(entity)?.into_owned();
            let other: String = normalise(&label).chars().take(64).collect();
            found.push((edits(&wanted, &other), label));
        }
        if !found.is_empty() {
            found.sort();
            found.dedup();
            found.truncate(NEAR_NAMES);
            return Ok(found.into_iter().map(|(_, label)| label).collect());
        }
    }
    Ok(Vec::new())
}
