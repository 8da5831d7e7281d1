//! What the forms of a graph can speak of: its classes, and its relations that have values.

use hashbrown::HashMap;
use wherefore_graph::{EntityId, Graph, RelationId};
use wherefore_model::{Embeddings, Encoder};

use crate::error::Result;
use crate::logic::{Sense, sense_of, type_relations};
use crate::relations::dot;
use crate::retrieve::relation_vectors;
use crate::words::{for_each_stem, opened};

/// Most classes that are looked up in questions.
const MAX_CLASSES: usize = 50_000;
/// Longest name of a class, in words.
const MAX_WORDS: usize = 4;
/// Triples of a type relation that are looked at.
const MAX_TYPED: usize = 5_000_000;

/// Classes and values of one graph.
pub(super) struct Vocabulary {
    /// Classes by the stems of their labels.
    classes: HashMap<Vec<String>, EntityId>,
    is_class: hashbrown::HashSet<EntityId>,
    pub(super) typed_by: Vec<RelationId>,
    pub(super) attributes: Vec<Attribute>,
    /// One row for each relation of the graph.
    relations: Embeddings,
}

/// A relation that has values.
pub(super) struct Attribute {
    pub(super) relation: RelationId,
    pub(super) sense: Sense,
    stems: Vec<String>,
}

/// A class in a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClassMention {
    pub(super) class: EntityId,
    pub(super) span: (usize, usize),
}

fn stems(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for_each_stem(text, |stem| found.push(stem.to_owned()));
    found
}

impl Vocabulary {
    pub(super) fn new(graph: &dyn Graph, encoder: &dyn Encoder) -> Result<Self> {
        let typed_by = type_relations(graph)?;
        let mut classes = HashMap::new();
        let mut is_class = hashbrown::HashSet::new();
        for &relation in &typed_by {
            for triple in graph.with_relation(relation)?.take(MAX_TYPED) {
                let class = triple?.tail;
                if is_class.len() >= MAX_CLASSES || !is_class.insert(class) {
                    continue;
                }
                let words = stems(&opened(&graph.entity_label(class)?));
                if !words.is_empty() {
                    classes.entry(words).or_insert(class);
                }
            }
        }
        let mut attributes = Vec::new();
        for id in 0..graph.relation_bound() {
            let relation = RelationId(id as u32);
            if graph.naming_relations().contains(&relation) || typed_by.contains(&relation) {
                continue;
            }
            if let Some(sense) = sense_of(relation, graph)? {
                attributes.push(Attribute {
                    relation,
                    sense,
                    stems: stems(&opened(&graph.relation_label(relation)?)),
                });
            }
        }
        Ok(Self {
            classes,
            is_class,
            typed_by,
            attributes,
            relations: relation_vectors(graph, encoder)?,
        })
    }

    pub(super) fn is_class(&self, entity: EntityId) -> bool {
        self.is_class.contains(&entity)
    }

    /// The first and longest class that the question names outside of the given ranges.
    pub(super) fn class_in(&self, text: &str, names: &[(usize, usize)]) -> Option<ClassMention> {
        let tokens = crate::words::tokens(text);
        for length in (1..=MAX_WORDS).rev() {
            for window in tokens.windows(length) {
                let span = (window[0].start, window[length - 1].bare_end);
                if names.iter().any(|&(s, e)| span.0 < e && s < span.1) {
                    continue;
                }
                let words = stems(&text[span.0..span.1]);
                if words.len() == length
                    && let Some(&class) = self.classes.get(&words)
                {
                    return Some(ClassMention { class, span });
                }
            }
        }
        None
    }

    /// The likeliest relations with values for some hints, best first, each with a score within 0
    /// and 1: named in the question, or a hint, or near to either.
    pub(super) fn attributes_for(
        &self,
        question: &str,
        hints: &[String],
        sense: Option<Sense>,
        encoder: &dyn Encoder,
    ) -> Result<Vec<(RelationId, f32)>> {
        let asked = stems(question);
        let hinted: Vec<Vec<String>> = hints.iter().map(|h| stems(h)).collect();
        let text = match hints.is_empty() {
            true => question.to_owned(),
            false => hints.join(" "),
        };
        let row = encoder.encode(&[&text])?;
        let mut found = Vec::new();
        for attribute in &self.attributes {
            if sense.is_some_and(|sense| sense != attribute.sense) {
                continue;
            }
            let near = dot(row.row(0), self.relations.row(attribute.relation.index()));
            let label = &attribute.stems;
            let shared = label.iter().filter(|stem| asked.contains(stem)).count();
            let named = shared as f32 / label.len().max(1) as f32;
            let hint = hinted
                .iter()
                .position(|hint| hint.iter().any(|stem| label.contains(stem)));
            let hint = hint.map_or(0.0, |place| 0.75 - 0.06 * place.min(6) as f32);
            // a word of the question counts more than what its words suggest
            let told = if shared > 0 { 0.8 + 0.2 * named } else { 0.0 };
            let score = told.max(hint).max(0.5 * near.clamp(0.0, 1.0)) + 0.02 * near;
            found.push((attribute.relation, score.clamp(0.0, 1.0)));
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(found)
    }

    /// How near a relation is to words, within 0 and 1. One half where there are no words.
    pub(super) fn affinity(
        &self,
        words: Option<&Words>,
        relation: RelationId,
        graph: &dyn Graph,
    ) -> Result<f32> {
        let Some(words) = words else { return Ok(0.5) };
        let label = stems(&opened(&graph.relation_label(relation)?));
        let near = dot(words.row.row(0), self.relations.row(relation.index())).clamp(0.0, 1.0);
        let shared = label.iter().any(|stem| words.stems.contains(stem));
        Ok(if shared { 0.6 + 0.4 * near } else { 0.6 * near })
    }
}

/// Some words of a question, ready to be compared.
pub(super) struct Words {
    stems: Vec<String>,
    row: Embeddings,
}

impl Words {
    /// None where no word says anything.
    pub(super) fn new(text: &str, encoder: &dyn Encoder) -> Result<Option<Self>> {
        let stems = stems(text);
        if stems.is_empty() {
            return Ok(None);
        }
        let row = encoder.encode(&[text.trim()])?;
        Ok(Some(Self { stems, row }))
    }
}
