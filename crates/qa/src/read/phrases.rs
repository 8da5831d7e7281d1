//! The steps of a graph in words, each as a vector.
//!
//! ```text
//! along     R of the S, a O       population of the state
//! against   S with R the O        river with traverses the state
//! ```
//!
//! S and O are the classes that most of a relation's heads and tails are of; where there are none:
//! `R of it`, `it is R of`. A way of several steps is the sum of their vectors.

use std::fmt;
use std::sync::Arc;

use wherefore_graph::{Graph, RelationId};
use wherefore_model::Encoder;

use super::kept::{LearnedPhrases, vectors};
use super::lang::english;
use super::learn::{Asked, Learning, Lesson, learn};
use super::schema::{ClassIx, Schema, Step};
use crate::error::Result;
use crate::relations::dot;
use crate::words::opened;

/// What the name of a relation ends with that says what another says, the other way round.
const INVERSE: &str = "_inverse";

/// The phrase of each step of a graph as a vector of length 1.
pub(super) struct Phrases {
    encoder: Arc<dyn Encoder>,
    /// Along the first relation, against it, along the second.
    rows: Vec<f32>,
    /// Those of relations that are the graph's own; the others are pairs of these.
    texts: Vec<String>,
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
            let relation = RelationId(id as u32);
            texts.push(phrase((relation, true), graph, schema)?);
            texts.push(phrase((relation, false), graph, schema)?);
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
            rows,
            texts,
        };
        let values = &english().values;
        for &[first, second] in &schema.mediated {
            let back = |step: Step| (step.0, !step.1);
            // the amount of a price is the price, its currency is more
            let stems = &schema.relation(second.0).stems;
            let is_value = !stems.is_empty() && stems.iter().all(|stem| values.contains(stem));
            let (along, against) = ([first, second], [back(second), back(first)]);
            let told = match is_value {
                true => [&along[..1], &against[1..]],
                false => [&along[..], &against[..]],
            };
            for way in told {
                let row = phrases.of(way);
                phrases.rows.extend(row);
            }
        }
        Ok(phrases)
    }

    /// The vector of some steps.
    pub(super) fn of(&self, way: &[Step]) -> Vec<f32> {
        let dim = self.encoder.dim();
        let mut sum = vec![0.0; dim];
        for &(relation, forward) in way {
            let at = (2 * relation.index() + usize::from(!forward)) * dim;
            let row = &self.rows[at..at + dim];
            sum.iter_mut().zip(row).for_each(|(s, v)| *s += v);
        }
        normalise(&mut sum);
        sum
    }

    /// The vector of a question.
    pub(super) fn question(&self, text: &str) -> Result<Vec<f32>> {
        let mut row = self.encoder.encode_queries(&[text])?.row(0).to_vec();
        normalise(&mut row);
        Ok(row)
    }

    /// The phrases under which the good ways of each question are likelier than its others.
    pub(super) fn learned(
        &self,
        asked: &[Asked],
        schema: &Schema,
        how: Learning,
    ) -> Result<LearnedPhrases> {
        let own = self.texts.len() * self.encoder.dim();
        let places = |way: &[Step]| -> Vec<usize> {
            let steps = way.iter().flat_map(|&step| {
                let (first, second) = schema.steps(step);
                std::iter::once(first).chain(second)
            });
            let place = |(relation, forward): Step| 2 * relation.index() + usize::from(!forward);
            steps.map(place).collect()
        };
        let examples: Vec<Lesson<'_>> = asked
            .iter()
            .map(|asked| Lesson {
                question: &asked.question,
                ways: (asked.ways.iter())
                    .map(|(way, is_good)| (places(way), *is_good))
                    .collect(),
            })
            .collect();
        let rows = learn(&examples, &self.rows[..own], self.encoder.dim(), how);
        LearnedPhrases::new(&self.texts, rows, &*self.encoder)
    }

    /// How much nearer to a question each step is than steps are on the whole, along and against
    /// each relation.
    pub(super) fn fits(&self, question: &[f32]) -> Vec<f32> {
        let rows = self.rows.chunks(self.encoder.dim());
        let mut cosines: Vec<f32> = rows.map(|row| dot(row, question)).collect();
        let mean = cosines.iter().sum::<f32>() / cosines.len().max(1) as f32;
        cosines.iter_mut().for_each(|c| *c -= mean);
        cosines
    }
}

fn normalise(row: &mut [f32]) {
    let length = dot(row, row).sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|v| *v /= length);
    }
}

/// A step in words.
fn phrase((relation, forward): Step, graph: &dyn Graph, schema: &Schema) -> Result<String> {
    let label = graph.relation_label(relation)?;
    let class = |of: &[(ClassIx, f32)]| match of.first() {
        Some(&(class, _)) => {
            let entity = schema.classes[class as usize].entity;
            graph.entity_label(entity).map(|l| Some(opened(&l)))
        }
        None => Ok(None),
    };
    let of = schema.relation(relation);
    Ok(in_words(
        &label,
        forward,
        class(&of.domain)?,
        class(&of.range)?,
    ))
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
