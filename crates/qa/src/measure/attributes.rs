//! Which relations of a graph give values, and which of them a word asks about.

use wherefore_graph::{EntityId, Graph, RelationId, edges_by_relation};

use super::tables::MEANT;
use super::value;
use crate::error::Result;
use crate::words::{opened, stem};

/// Entities whose values are looked at to learn which relations have values.
const MAX_LOOKED: usize = 200_000;

/// Values of one relation that are looked at.
const MAX_VALUES: usize = 40;

/// The relations of a graph that give values.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    /// Each with the words of its label.
    relations: Vec<(RelationId, Vec<String>)>,
    /// The words of the labels of all relations.
    labels: Vec<Vec<String>>,
}

impl Attributes {
    /// Looks at the graph: a relation gives values if most of the things that it leads to are
    /// numbers or dates.
    pub(crate) fn build(graph: &dyn Graph) -> Result<Self> {
        let mut seen = vec![(0usize, 0usize); graph.relation_bound()]; // looked at, values
        let bound = graph.entity_bound().min(MAX_LOOKED);
        for id in 0..u32::try_from(bound).expect("entity ids have 32 bits") {
            for edge in graph.outgoing(EntityId(id))?.iter() {
                // a damaged graph may name what it does not have
                let outside = || wherefore_graph::Error::NoSuchRelation {
                    id: edge.relation.0,
                    bound: graph.relation_bound(),
                };
                let (looked, values) = (seen.get_mut(edge.relation.index())).ok_or_else(outside)?;
                if *looked < MAX_VALUES {
                    *looked += 1;
                    let label = graph.entity_label(edge.entity)?;
                    *values += usize::from(value(&label).is_some());
                }
            }
        }
        let mut attributes = Self::default();
        for (id, (looked, values)) in (0..).zip(seen) {
            let relation = RelationId(id);
            let label = opened(&graph.relation_label(relation)?);
            let words: Vec<String> = label.split(' ').map(str::to_owned).collect();
            if values * 2 > looked && !graph.naming_relations().contains(&relation) {
                attributes.relations.push((relation, words.clone()));
            }
            attributes.labels.push(words);
        }
        Ok(attributes)
    }

    /// Whether a word asks about a relation that gives values.
    pub(super) fn names(&self, word: &str) -> bool {
        self.relations
            .iter()
            .any(|(_, words)| meant(word, words) > 0.0)
    }

    /// Whether some relation is called by both words: `highest point`.
    pub(super) fn is_label(&self, first: &str, second: &str) -> bool {
        let has = |words: &[String], word: &str| words.iter().any(|w| stem(w) == stem(word));
        (self.labels.iter()).any(|words| has(words, first) && has(words, second))
    }

    /// The relation that the words ask about, among those that most of the things have.
    pub(crate) fn choose(
        &self,
        hints: &[String],
        things: &[EntityId],
        graph: &dyn Graph,
    ) -> Result<Option<RelationId>> {
        let some = &things[..things.len().min(64)];
        let mut best: Option<(f32, RelationId)> = None;
        for (relation, words) in &self.relations {
            let score = (hints.iter())
                .map(|hint| meant(hint, words))
                .fold(0.0, f32::max);
            if score == 0.0 || best.is_some_and(|(b, _)| b >= score) {
                continue;
            }
            let mut have = 0;
            for &thing in some {
                have +=
                    usize::from(!edges_by_relation(&graph.outgoing(thing)?, *relation).is_empty());
            }
            // dates of independence are missing for some, and still meant
            if have * 4 >= some.len() && have > 0 {
                best = Some((score, *relation));
            }
        }
        Ok(best.map(|(_, relation)| relation))
    }
}

/// How well a word asks about a relation with these words: 1 where it is one of them, less for
/// what [`MEANT`] has, the first the most.
fn meant(word: &str, relation: &[String]) -> f32 {
    let asked = stem(word);
    if relation.iter().any(|w| stem(w) == asked) {
        return 1.0;
    }
    (MEANT.iter())
        .filter(|(words, _)| words.contains(&word))
        .flat_map(|(_, others)| others.iter().enumerate())
        .filter(|(_, other)| relation.iter().any(|w| w == *other))
        .map(|(place, _)| 0.9 - 0.1 * place as f32)
        .fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use wherefore_graph::{Adjacency, Edge, MemoryGraph, NameMatch, Result as GraphResult, Term};

    use super::*;

    #[test]
    fn the_relation_is_the_first_that_the_things_have() {
        let graph = MemoryGraph::from_names([
            ("Paris", "population", "2100000"),
            ("France", "population", "66987244"),
            ("France", "area", "643801"),
        ]);
        let attributes = Attributes::build(&graph).unwrap();
        let entity = |name: &str| {
            graph
                .entities_named(name, wherefore_graph::NameMatch::Exact)
                .unwrap()[0]
        };
        let chosen = |name: &str| {
            let relation = attributes
                .choose(&["largest".into()], &[entity(name)], &graph)
                .unwrap();
            relation.map(|r| graph.relation_label(r).unwrap().into_owned())
        };
        assert_eq!(chosen("France").as_deref(), Some("area"));
        assert_eq!(chosen("Paris").as_deref(), Some("population"));
    }

    /// A graph whose edges name a relation that it does not have, as a damaged file may.
    struct Damaged(MemoryGraph);

    impl Adjacency for Damaged {
        fn entity_bound(&self) -> usize {
            self.0.entity_bound()
        }

        fn relation_bound(&self) -> usize {
            self.0.relation_bound() - 1
        }

        fn outgoing(&self, entity: EntityId) -> GraphResult<Cow<'_, [Edge]>> {
            self.0.outgoing(entity)
        }

        fn incoming(&self, entity: EntityId) -> GraphResult<Cow<'_, [Edge]>> {
            self.0.incoming(entity)
        }
    }

    impl Graph for Damaged {
        fn entity_label(&self, entity: EntityId) -> GraphResult<Cow<'_, str>> {
            self.0.entity_label(entity)
        }

        fn relation_label(&self, relation: RelationId) -> GraphResult<Cow<'_, str>> {
            self.0.relation_label(relation)
        }

        fn entity_term(&self, entity: EntityId) -> GraphResult<Term> {
            self.0.entity_term(entity)
        }

        fn relation_term(&self, relation: RelationId) -> GraphResult<Term> {
            self.0.relation_term(relation)
        }

        fn is_named(&self, entity: EntityId) -> GraphResult<bool> {
            self.0.is_named(entity)
        }

        fn entities_named(&self, name: &str, how: NameMatch) -> GraphResult<Vec<EntityId>> {
            self.0.entities_named(name, how)
        }

        fn entities_with_prefix(&self, prefix: &str, limit: usize) -> GraphResult<Vec<EntityId>> {
            self.0.entities_with_prefix(prefix, limit)
        }

        fn relation_named(&self, name: &str) -> GraphResult<Option<RelationId>> {
            self.0.relation_named(name)
        }
    }

    #[test]
    fn a_relation_that_does_not_exist_is_an_error_and_no_panic() {
        let facts = [
            ("Paris", "population", "2100000"),
            ("Paris", "in", "France"),
        ];
        let graph = Damaged(MemoryGraph::from_names(facts));
        let error = Attributes::build(&graph).unwrap_err();
        assert!(
            error.to_string().contains("relation id 1 is outside"),
            "{error}"
        );
    }
}
