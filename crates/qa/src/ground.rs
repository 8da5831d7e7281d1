//! From a name that a language model wrote to an entity of the evidence.
//!
//! ```text
//! strict      the name is the label, as it was shown
//! normalised  both are the same without case, accents and punctuation
//! fuzzy       at most one letter in eight differs, and no other entity is as near
//! ```
//!
//! The first rule that finds something counts. Of namesakes the one with the best score is meant.
//! Unnamed nodes are never meant.

use std::collections::HashMap;

use wherefore_graph::names::{is_machine_id, normalise};
use wherefore_graph::{EntityId, Graph};

use crate::error::Result;
use crate::link::edits;
use crate::organize::one_line;
use crate::select::Selection;

/// How sure a name was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// Nearly spelt so.
    Fuzzy,
    /// Spelt so but for case, accents and punctuation.
    Normalised,
    /// Spelt so.
    Strict,
}

/// The named entities of a selection.
pub(crate) struct Names {
    /// Best score first, so that of namesakes the first is meant.
    entities: Vec<Named>,
    strict: HashMap<String, usize>,
    normalised: HashMap<String, usize>,
}

struct Named {
    entity: EntityId,
    score: f32,
    normal: String,
}

impl Names {
    /// All that are heads or tails; a score is that of the candidate, or of the best triple.
    pub(crate) fn of(selection: &Selection, graph: &dyn Graph) -> Result<Self> {
        let mut scores: HashMap<EntityId, f32> = HashMap::new();
        let mut order = Vec::new();
        for (triple, score) in &selection.triples {
            for end in [triple.head, triple.tail] {
                let best = scores.entry(end).or_insert_with(|| {
                    order.push(end);
                    *score
                });
                *best = best.max(*score);
            }
        }
        for (entity, score) in &selection.candidates {
            scores.entry(*entity).and_modify(|s| *s = *score);
        }
        order.sort_by(|a, b| scores[b].total_cmp(&scores[a]));
        let mut names = Self {
            entities: Vec::with_capacity(order.len()),
            strict: HashMap::new(),
            normalised: HashMap::new(),
        };
        for entity in order {
            let label = graph.entity_label(entity)?;
            if !graph.is_named(entity)? || is_machine_id(&label) {
                continue;
            }
            let place = names.entities.len();
            let normal = normalise(&label);
            names.strict.entry(one_line(&label)).or_insert(place);
            names.normalised.entry(normal.clone()).or_insert(place);
            names.entities.push(Named {
                entity,
                score: scores[&entity],
                normal,
            });
        }
        Ok(names)
    }

    /// The entity that the first of these forms of a name means.
    pub(crate) fn find_any(&self, forms: &[&str]) -> Option<(EntityId, f32, Match)> {
        forms.iter().find_map(|form| self.find(form))
    }

    /// The entity that is meant, its score, and how sure that is.
    pub(crate) fn find(&self, name: &str) -> Option<(EntityId, f32, Match)> {
        let found = |place: usize, how| {
            let named = &self.entities[place];
            (named.entity, named.score, how)
        };
        if let Some(&place) = self.strict.get(&one_line(name)) {
            return Some(found(place, Match::Strict));
        }
        let normal = normalise(name);
        if let Some(&place) = self.normalised.get(&normal) {
            return Some(found(place, Match::Normalised));
        }
        let letters = normal.chars().count();
        let allowed = letters / 8;
        if allowed == 0 {
            return None;
        }
        let mut best: Option<(usize, usize)> = None;
        let mut ties = false;
        for (place, named) in self.entities.iter().enumerate() {
            // numbers are never nearly right
            if named.normal.chars().count().abs_diff(letters) > allowed
                || digits(&named.normal) != digits(&normal)
            {
                continue;
            }
            let distance = edits(&named.normal, &normal);
            if distance > allowed || best.is_some_and(|(d, _)| d < distance) {
                continue;
            }
            ties =
                best.is_some_and(|(d, p)| d == distance && self.entities[p].normal != named.normal);
            if best.is_none_or(|(d, _)| distance < d) {
                best = Some((distance, place));
            }
        }
        best.filter(|_| !ties)
            .map(|(_, place)| found(place, Match::Fuzzy))
    }
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;

    use super::*;

    fn found(name: &str) -> Option<(String, Match)> {
        let graph = MemoryGraph::from_names([
            ("San Francisco Giants", "won", "World Series 2010"),
            ("San Francisco Giants", "won", "World Series 2012"),
            ("San Francisco Giants", "stadium", "Café Royal"),
            ("m.0x1y", "of", "Forrest Gump"),
            ("m.0x1y", "of", "Forrest Gunp"),
        ]);
        let selection = Selection {
            triples: graph.triples().map(|t| (t, 0.5)).collect(),
            ..Selection::default()
        };
        let names = Names::of(&selection, &graph).unwrap();
        let (entity, _, how) = names.find(name)?;
        Some((graph.entity_label(entity).unwrap().into_owned(), how))
    }

    #[test]
    fn the_strictest_rule_counts() {
        let is = |name: &str, label: &str, how| {
            assert_eq!(found(name), Some((label.to_owned(), how)), "{name}");
        };
        is("Café Royal", "Café Royal", Match::Strict);
        is("cafe royal!", "Café Royal", Match::Normalised);
        // 20 letters: two may differ
        is("San Fransisco Giant", "San Francisco Giants", Match::Fuzzy);
    }

    #[test]
    fn what_is_too_far_or_could_be_another_is_nobody() {
        for name in [
            "Giants",
            "World Series 2011",
            "World Series",
            "m.0x1y",
            "?1",
            "",
            "Los Angeles Dodgers",
        ] {
            assert_eq!(found(name), None, "{name}");
        }
        // one letter from both films
        assert_eq!(found("Forrest Gurp"), None);
    }
}
