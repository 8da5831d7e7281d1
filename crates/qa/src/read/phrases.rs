//! The steps of a graph in words, each as a vector.
//!
//! ```text
//! along     R of the S, a O       population of the state
//! against   S with R the O        river with traverses the state
//!           S in the O            mountain in the country, where that is the relation
//! ```
//!
//! S and O are the classes that most of a relation's heads and tails are of, or for S another one
//! where a reading says which; where there are none: `R of it`, `it is R of`. A way of several steps is the sum of their vectors.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use wherefore_graph::{Graph, RelationId};
use wherefore_model::Encoder;
use wherefore_model::vector::dot;
use wherefore_model::vector::normalise;

use super::kept::{LearnedPhrases, vectors};
use super::lang::english;
use super::schema::Schema;
use super::vocabulary::{ClassIx, Step};
use crate::error::Result;
use crate::words::opened;

/// What the name of a relation ends with that says what another says, the other way round.
const INVERSE: &str = "_inverse";

/// Classes besides the first that a relation is told with, as what it is said of.
const OTHER_CLASSES: usize = 8;
/// Phrases with such classes at most.
const MAX_OTHERS: usize = 1000;

/// A step, and the class of what its relation is said of, where that is known.
pub(super) type Told = (Step, Option<ClassIx>);

/// The phrases of a graph's steps, each with a vector of length 1.
pub(super) struct Phrases {
    pub(super) encoder: Arc<dyn Encoder>,
    /// Along the first relation of the graph, against it, along the second; then those of the
    /// other classes that a relation is said of.
    pub(super) texts: Vec<String>,
    pub(super) rows: Vec<f32>,
    others: HashMap<Told, u32>,
    /// Vectors along and against relations of two steps.
    mediated: Vec<f32>,
}

impl fmt::Debug for Phrases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Phrases({})", self.encoder.name())
    }
}

impl Phrases {
    pub(super) fn new(
        graph: &dyn Graph,
        schema: &Schema,
        encoder: Arc<dyn Encoder>,
        learned: Option<&LearnedPhrases>,
    ) -> Result<Self> {
        let own = schema.relations.len() - schema.mediated.len();
        let mut texts = Vec::with_capacity(2 * own);
        for id in 0..own {
            for forward in [true, false] {
                let step = (RelationId(id as u32), forward);
                let first = schema.relation(step.0).domain.first().map(|d| d.0);
                texts.push(phrase((step, first), graph, schema)?);
            }
        }
        let mut others = HashMap::new();
        for id in 0..own {
            let relation = RelationId(id as u32);
            let domain = schema.relation(relation).domain.iter().skip(1);
            for &(class, _) in domain.take(OTHER_CLASSES) {
                for forward in [true, false] {
                    let told = ((relation, forward), Some(class));
                    if others.len() < MAX_OTHERS {
                        others.insert(told, texts.len() as u32);
                        texts.push(phrase(told, graph, schema)?);
                    }
                }
            }
        }
        let mut rows = vectors(&texts, &*encoder, graph.folder())?;
        if let Some(learned) = learned {
            learned.replace(&texts, &mut rows);
        }
        for row in rows.chunks_mut(encoder.dim()) {
            normalise(row);
        }
        let mut phrases = Self {
            encoder,
            texts,
            rows,
            others,
            mediated: Vec::new(),
        };
        for id in own..schema.relations.len() {
            for forward in [true, false] {
                let told = ((RelationId(id as u32), forward), None);
                let row = phrases.of(&phrases.places(&[told], schema));
                phrases.mediated.extend(row);
            }
        }
        Ok(phrases)
    }

    /// The numbers of the phrases of some steps.
    pub(super) fn places(&self, way: &[Told], schema: &Schema) -> Vec<u32> {
        let plain = |(relation, forward): Step| 2 * relation.0 + u32::from(!forward);
        let mut places = Vec::with_capacity(way.len());
        for told in way {
            match schema.steps(told.0) {
                (step, None) => {
                    let other = self.others.get(told).copied();
                    places.push(other.unwrap_or_else(|| plain(step)));
                }
                // the amount of a price is the price, its currency is more
                (first, Some(second)) => {
                    let two = [first, second];
                    let said = two.into_iter().filter(|step| !is_value(*step, schema));
                    places.extend(said.map(plain));
                }
            }
        }
        places
    }

    /// The vector of some steps, by the numbers of their phrases.
    pub(super) fn of(&self, places: &[u32]) -> Vec<f32> {
        let dim = self.encoder.dim();
        let mut sum = vec![0.0; dim];
        for &place in places {
            let at = place as usize * dim;
            let row = &self.rows[at..at + dim];
            sum.iter_mut().zip(row).for_each(|(s, v)| *s += v);
        }
        normalise(&mut sum);
        sum
    }

    /// The vectors of some questions.
    pub(super) fn questions(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let rows = self.encoder.encode_queries(&texts)?;
        let rows = rows.rows().map(|row| {
            let mut row = row.to_vec();
            normalise(&mut row);
            row
        });
        Ok(rows.collect())
    }

    /// How much nearer to a question each step is than steps are on the whole, along and against
    /// each relation.
    pub(super) fn fits(&self, question: &[f32]) -> Vec<f32> {
        let dim = self.encoder.dim();
        let plain = &self.rows[..self.rows.len() - self.others.len() * dim];
        let rows = plain.chunks(dim).chain(self.mediated.chunks(dim));
        let mut cosines: Vec<f32> = rows.map(|row| dot(row, question)).collect();
        let mean = cosines.iter().sum::<f32>() / cosines.len().max(1) as f32;
        cosines.iter_mut().for_each(|c| *c -= mean);
        cosines
    }
}

/// Whether a step leads to the value of a node that nobody names: `amount` of a price.
fn is_value((relation, _): Step, schema: &Schema) -> bool {
    let (stems, values) = (&schema.relation(relation).stems, &english().values);
    !stems.is_empty() && stems.iter().all(|stem| values.contains(stem))
}

/// A step in words.
fn phrase(told: Told, graph: &dyn Graph, schema: &Schema) -> Result<String> {
    let ((relation, forward), head) = told;
    let label = graph.relation_label(relation)?;
    let class = |of: Option<ClassIx>| match of {
        Some(class) => {
            let entity = schema.classes[class as usize].entity;
            graph.entity_label(entity).map(|l| Some(opened(&l)))
        }
        None => Ok(None),
    };
    let of = schema.relation(relation);
    let (head, tail) = (class(head)?, class(of.range.first().map(|r| r.0))?);
    let places = &english().place_relations;
    match (&head, &tail) {
        // `country` between a mountain and a country says no more than `in`
        (Some(head), Some(tail))
            if !forward && of.is_noun && of.stems.iter().all(|stem| places.contains(stem)) =>
        {
            Ok(format!("{head} in the {tail}"))
        }
        _ => Ok(in_words(&label, forward, head, tail)),
    }
}

/// A step along or against a relation in words, as the matcher learned them: `place of birth of it`.
pub fn step_in_words(label: &str, forward: bool) -> String {
    in_words(label, forward, None, None)
}

/// A relation in words, along or against it, between things of two classes.
fn in_words(label: &str, forward: bool, head: Option<String>, tail: Option<String>) -> String {
    if let Some(base) = label.strip_suffix(INVERSE) {
        return in_words(base, !forward, tail, head);
    }
    // `people.person.place_of_birth`, `__people__person__gender`
    let parts: Vec<&str> = match label.contains(' ') {
        true => Vec::new(),
        false => {
            let parts = label.split('.').flat_map(|part| part.split("__"));
            parts.filter(|part| !part.is_empty()).collect()
        }
    };
    let (name, of) = match parts.as_slice() {
        [.., of, name] if parts.len() > 2 => (opened(name), Some(opened(of))),
        _ => (opened(label), None),
    };
    match (head.or(of), forward) {
        (Some(head), true) => match tail {
            Some(tail) => format!("{name} of the {head}, a {tail}"),
            None => format!("{name} of the {head}"),
        },
        (None, true) => match tail {
            Some(tail) => format!("{name} of it, a {tail}"),
            None => format!("{name} of it"),
        },
        (head, false) => {
            let tail = tail.map_or_else(String::new, |tail| format!(" the {tail}"));
            match head {
                Some(head) => format!("{head} with {name}{tail}"),
                None => format!("it is {name} of{tail}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_with_the_classes_at_both_ends() {
        let told = |label: &str, head: &str, tail: &str| {
            let class = |c: &str| (!c.is_empty()).then(|| c.to_owned());
            [true, false].map(|forward| in_words(label, forward, class(head), class(tail)))
        };
        let plain = told("population", "state", "");
        assert_eq!(plain, ["population of the state", "state with population"]);
        let both = told("traverses", "river", "state");
        assert_eq!(
            both,
            [
                "traverses of the river, a state",
                "river with traverses the state"
            ]
        );
        let none = told("starred_actors", "", "");
        assert_eq!(none, ["starred actors of it", "it is starred actors of"]);
        let dotted = told("people.person.place_of_birth", "", "");
        assert_eq!(
            dotted,
            ["place of birth of the person", "person with place of birth"]
        );
        let opened = told("__people__person__gender", "", "");
        assert_eq!(opened[0], "gender of the person");
        let inverse = told("parent_inverse", "", "");
        assert_eq!(inverse, ["it is parent of", "parent of it"]);
    }
}
