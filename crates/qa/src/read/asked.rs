//! Whether things are of the kind that is asked for: *who* asks for people, *where* for places.
//!
//! Which things are people or places is learned from the graph. People have a date of birth or a
//! spouse, places a latitude or a capital; a film is directed by people, and born in is what people
//! are in places. The language file names such relations; a thing that has one of them is of that
//! kind. A thing that has none is taken for what others are that stand at the same end of the
//! relation which leads to it.

use wherefore_graph::{Direction, EntityId, Graph, edges_by_relation};

use super::arena::{Id, Meaning, Node};
use super::kinds::Kinds;
use super::schema::{Schema, row};
use super::search::Search;
use super::vocabulary::{ClassIx, Step};
use crate::error::Result;

/// Members of a set that are looked at.
const LOOKED_AT: usize = 4;
/// Ends of a relation that are looked at.
const ENDS: usize = 24;

impl Schema {
    /// What a thing is, where its relations tell.
    fn kinds_of(&self, thing: EntityId, graph: &dyn Graph) -> Result<Option<Kinds>> {
        let rows = [row(graph, thing, false)?, row(graph, thing, true)?];
        let makes = |steps: &[Step]| {
            let mut all = steps.iter();
            all.any(|&(relation, on)| {
                !edges_by_relation(&rows[usize::from(on)], relation).is_empty()
            })
        };
        // what its class is called tells more than what it has
        let types = self.types_of(graph, thing)?;
        let is_of = |classes: &[ClassIx]| types.iter().any(|class| classes.contains(class));
        let (people, places) = match (
            is_of(&self.kind_steps.person_classes),
            is_of(&self.kind_steps.place_classes),
        ) {
            (false, false) => (
                makes(&self.kind_steps.people),
                makes(&self.kind_steps.places),
            ),
            told => told,
        };
        let share = |is: bool| f32::from(u8::from(is)) / if people && places { 2.0 } else { 1.0 };
        Ok((people || places).then(|| Kinds {
            people: share(people),
            places: share(places),
        }))
    }

    /// What the things are that a step leads to.
    fn kinds_at(&self, step: Step, graph: &dyn Graph) -> Result<Kinds> {
        let (first, second) = self.steps(step);
        let (relation, on) = second.unwrap_or(first);
        let (mut sum, mut known) = (Kinds::default(), 0.0f32);
        for triple in graph.with_relation(relation)?.take(ENDS) {
            let triple = triple?;
            let end = if on { triple.tail } else { triple.head };
            if let Some(kinds) = self.kinds_of(end, graph)? {
                sum.people += kinds.people;
                sum.places += kinds.places;
                known += 1.0;
            }
        }
        Ok(Kinds {
            people: sum.people / known.max(1.0),
            places: sum.places / known.max(1.0),
        })
    }
}

impl Search<'_> {
    /// What the members of a set are; none where nothing tells.
    pub(super) fn kinds(&mut self, node: Id) -> Result<Kinds> {
        let mut sum = Kinds::default();
        let kind_steps = &self.schema.kind_steps;
        if kind_steps.is_empty() {
            return Ok(sum);
        }
        let Meaning::Set(members) = self.arena.meaning(node)? else {
            return Ok(sum);
        };
        let some = &members[..members.len().min(LOOKED_AT)];
        self.graph.prefetch(some, Direction::Both)?;
        let mut add = |kinds: Kinds| {
            sum.people += kinds.people / some.len() as f32;
            sum.places += kinds.places / some.len() as f32;
        };
        for &member in some {
            match self.schema.kinds_of(member, self.graph)? {
                Some(kinds) => add(kinds),
                // a service would be asked for the rows of them all
                None if self.graph.service().is_some() => {}
                None => {
                    if let Some(step) = self.last_step(node) {
                        add(self.ends_are(step)?);
                    }
                }
            }
        }
        Ok(sum)
    }

    /// The step that leads to the members of a set.
    fn last_step(&self, node: Id) -> Option<Step> {
        match *self.arena.node(node) {
            Node::Join(step, _) => Some(step),
            Node::And(a, b) => self.last_step(a).or_else(|| self.last_step(b)),
            Node::Except(of, _) | Node::Top(of, ..) | Node::Where(of, ..) => self.last_step(of),
            _ => None,
        }
    }

    fn ends_are(&mut self, step: Step) -> Result<Kinds> {
        if let Some(&known) = self.known_kinds.get(&step) {
            return Ok(known);
        }
        let kinds = self.schema.kinds_at(step, self.graph)?;
        self.known_kinds.insert(step, kinds);
        Ok(kinds)
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::super::lang::english;
    use super::*;

    #[test]
    fn relations_tell_people_and_places() {
        let graph = MemoryGraph::from_names([
            ("Ann", "date_of_birth", "1950-01-02"),
            ("Ann", "lives_in", "Ghent"),
            ("Heat", "directed_by", "Bo"),
            ("Heat", "shown_to", "Ann"),
            ("Heat", "shown_to", "Bo"),
            ("Heat", "shown_to", "Cy"),
            ("Heat", "shown_to", "Ghent"),
        ]);
        let schema = Schema::new(&graph, english()).unwrap();
        let id = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let is = |name: &str| schema.kinds_of(id(name), &graph).unwrap();
        let (person, place) = (
            Kinds {
                people: 1.0,
                places: 0.0,
            },
            Kinds {
                people: 0.0,
                places: 1.0,
            },
        );
        assert_eq!(is("Ann"), Some(person));
        assert_eq!(is("Bo"), Some(person));
        assert_eq!(is("Ghent"), Some(place));
        assert_eq!(is("Heat"), None);
        assert_eq!(is("Cy"), None);
        // two of the three that are known are people
        let shown = graph.relation_named("shown_to").unwrap().unwrap();
        let ends = schema.kinds_at((shown, true), &graph).unwrap();
        assert!((ends.people - 2.0 / 3.0).abs() < 1e-6);
        assert!((ends.places - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(
            schema.kinds_at((shown, false), &graph).unwrap(),
            Kinds::default()
        );
    }
}
