//! Relations in words: which of them people ask about, and which are told as verbs.

use wherefore_graph::{Graph, RelationId, Result};

use crate::words;

/// Prepositions that end the name of a relation that is a verb.
pub const PREPOSITIONS: [&str; 14] = [
    "about", "at", "by", "for", "from", "in", "into", "of", "on", "over", "through", "to", "under",
    "with",
];

/// Whether a relation says nothing that is asked about: names and kinds.
///
/// # Errors
/// If the graph cannot be read.
pub fn is_silent(relation: RelationId, graph: &dyn Graph) -> Result<bool> {
    Ok(graph.naming_relations().contains(&relation) || is_kind(&graph.relation_label(relation)?))
}

/// Whether a relation of this name says what kind of thing something is.
pub fn is_kind(name: &str) -> bool {
    matches!(name, "type" | "instance of")
}

/// A label in lower-case words: dots, underscores and camel case opened up.
///
/// ```
/// assert_eq!(wherefore::phrase::opened("dateOfBirth"), "date of birth");
/// ```
pub fn opened(label: &str) -> String {
    words::opened(label)
}

/// Whether the name of a relation is told as a verb: `directed by`, `flows through`, `borders`.
///
/// ```
/// assert!(wherefore::phrase::is_verb("directed by"));
/// assert!(!wherefore::phrase::is_verb("release year"));
/// ```
pub fn is_verb(name: &str) -> bool {
    let mut words = name.split(' ');
    let first = words.next().unwrap_or_default();
    let last = words.next_back();
    match last {
        Some(last) => PREPOSITIONS.contains(&last),
        None => first.len() > 4 && (first.ends_with("ed") || first == "borders"),
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;

    use super::*;

    #[test]
    fn kinds_are_silent_and_facts_are_not() {
        let facts = [
            ("France", "type", "country"),
            ("France", "capital", "Paris"),
        ];
        let graph = MemoryGraph::from_names(facts);
        let silent = |name: &str| {
            let relation = graph.relation_named(name).unwrap().unwrap();
            is_silent(relation, &graph).unwrap()
        };
        assert!(silent("type"));
        assert!(!silent("capital"));
    }

    #[test]
    fn names_that_end_in_a_preposition_are_verbs() {
        for verb in [
            "directed by",
            "flows through",
            "borders",
            "located in",
            "founded",
        ] {
            assert!(is_verb(verb), "{verb}");
        }
        for noun in ["capital", "has genre", "starred actors", "red", ""] {
            assert!(!is_verb(noun), "{noun}");
        }
    }
}
