//! Training examples: the neighbourhood of each question with the labels of its triples, cut out
//! once and kept in a file that is mapped into memory.
//!
//! ```text
//! examples.json    what they were made of; another graph, file or setting makes them anew
//! examples         u32: for each example its head, entities, relations, triples and flags
//! labels.jsonl     the texts behind the rows of entities, `null` first: nodes without a name
//! relations.jsonl  the texts behind the rows of relations
//! ```
//!
//! Entities and relations are rows of lists of texts and not ids of a graph, so that questions
//! over one large graph and questions that bring their own are the same to the trainer. The flags
//! of a triple: 1 it is positive, 2 its head is an answer, 4 its tail is.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wherefore::graph::{EntityId, Graph, Mapped};
use wherefore::model::qr_gat::Subgraph;
use wherefore::retrieve::{Neighbourhood, NeighbourhoodConfig};

use super::labels::Labels;
use crate::atomic_write::write_json;
use crate::error::{Error, Result};
use crate::questions::{GoldQuestion, json_records, resolve, utf8};

/// The triple lies on a path to an answer.
pub(super) const POSITIVE: u32 = 1;
/// Its head is an answer.
pub(super) const HEAD: u32 = 2;
/// Its tail is an answer.
pub(super) const TAIL: u32 = 4;

/// Numbers before an example's lists.
const HEADER: usize = 6;
/// Questions that are cut out before their texts are numbered.
const BLOCK: usize = 512;

/// All examples of a training run: those to learn from, then those to validate by.
pub(super) struct Examples {
    data: Mapped<u32>,
    /// Where each example begins.
    starts: Vec<usize>,
    /// Texts of entities; the first row is that of nodes without a name.
    pub(super) labels: Vec<Option<String>>,
    pub(super) relations: Vec<String>,
}

/// One question's neighbourhood.
#[derive(Clone, Copy)]
pub(super) struct Example<'a> {
    /// Its place among the questions.
    pub(super) question: usize,
    /// How many of its entities, from the first, are topics.
    pub(super) topics: usize,
    /// How many gold answers it has, in the graph or not.
    pub(super) answers: usize,
    pub(super) entities: &'a [u32],
    pub(super) relations: &'a [u32],
    pub(super) triples: &'a [[u32; 3]],
    pub(super) flags: &'a [u32],
}

impl<'e> Example<'e> {
    /// Whether there is something to learn from it.
    pub(super) fn has_positives(&self) -> bool {
        self.flags.iter().any(|f| f & POSITIVE != 0)
    }

    /// For each entity whether it is a topic.
    pub(super) fn topic_flags(&self) -> Vec<bool> {
        (0..self.entities.len()).map(|i| i < self.topics).collect()
    }

    /// The example as networks over a neighbourhood take it.
    pub(super) fn subgraph(
        &self,
        topics: &'e [bool],
        questions: &'e [f32],
        dim: usize,
    ) -> Subgraph<'e> {
        Subgraph {
            question: &questions[self.question * dim..][..dim],
            entities: self.entities,
            topics,
            relations: self.relations,
            triples: self.triples,
        }
    }
}

/// What examples are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Origin {
    pub(super) graph: String,
    pub(super) questions: String,
    pub(super) labels: serde_json::Value,
    pub(super) neighbourhood: NeighbourhoodConfig,
}

/// An example before its texts are numbered.
#[derive(Default)]
struct Raw {
    around: Neighbourhood,
    flags: Vec<u32>,
    answers: usize,
    /// Texts of its entities and relations, where it has a graph of its own.
    texts: Option<(Vec<Option<String>>, Vec<String>)>,
}

impl Examples {
    /// Opens what `folder` keeps of `origin`, or cuts the examples out and keeps them there. `see`
    /// is told how many questions are done.
    pub(super) fn prepare(
        folder: &Path,
        origin: &Origin,
        graph: &dyn Graph,
        questions: &[GoldQuestion],
        labels: &Labels,
        see: &mut dyn FnMut(usize),
    ) -> Result<Self> {
        let manifest = folder.join("examples.json");
        let found = fs::read(&manifest).ok();
        let found = found.and_then(|bytes| serde_json::from_slice::<Origin>(&bytes).ok());
        if found.as_ref() != Some(origin) {
            // what was made of something else goes before anything new is written
            let _ = fs::remove_file(&manifest);
            cut_all(folder, origin, graph, questions, labels, see)?;
            write_json(&manifest, origin)?;
        }
        let examples = Self {
            data: Mapped::open(&folder.join("examples"))?,
            starts: Vec::new(),
            labels: read_lines(&folder.join("labels.jsonl"))?,
            relations: read_lines(&folder.join("relations.jsonl"))?,
        };
        examples.with_starts(&folder.join("examples"))
    }

    fn with_starts(mut self, path: &Path) -> Result<Self> {
        let mut at = 0;
        while at < self.data.len() {
            self.starts.push(at);
            let header = self.data.get(at..at + HEADER);
            let length = header.and_then(|header| {
                let [entities, relations, triples] = [2, 3, 4].map(|i| header[i] as usize);
                let end = at + HEADER + entities + relations + 4 * triples;
                (end <= self.data.len()).then_some(end - at)
            });
            at += length.ok_or_else(|| Error::BadLine {
                path: path.into(),
                line: self.starts.len(),
                format: "training examples".into(),
                reason: "the file is cut short; remove its folder".into(),
            })?;
        }
        Ok(self)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn get(&self, index: usize) -> Example<'_> {
        let data = &self.data[self.starts[index]..];
        let [question, topics, entities, relations, triples, answers] =
            [0, 1, 2, 3, 4, 5].map(|i| data[i] as usize);
        let (entities, rest) = data[HEADER..].split_at(entities);
        let (relations, rest) = rest.split_at(relations);
        let (numbers, rest) = rest.split_at(3 * triples);
        Example {
            question,
            topics,
            answers,
            entities,
            relations,
            triples: numbers.as_chunks().0,
            flags: &rest[..triples],
        }
    }
}

fn cut_all(
    folder: &Path,
    origin: &Origin,
    graph: &dyn Graph,
    questions: &[GoldQuestion],
    labels: &Labels,
    see: &mut dyn FnMut(usize),
) -> Result<()> {
    let path = folder.join("examples");
    let file = fs::File::create(&path).map_err(Error::io("create", &path))?;
    let mut file = std::io::BufWriter::with_capacity(1 << 20, file);
    let mut texts = Texts::default();
    for (number, block) in questions.chunks(BLOCK).enumerate() {
        let raw: Vec<Raw> = block
            .par_iter()
            .map(|question| cut(graph, question, &origin.neighbourhood, labels))
            .collect::<Result<_>>()?;
        for (i, raw) in raw.iter().enumerate() {
            let numbers = texts.numbered(number * BLOCK + i, raw, graph)?;
            file.write_all(bytemuck::cast_slice(&numbers))
                .map_err(Error::io("write", &path))?;
        }
        see(number * BLOCK + block.len());
    }
    file.flush().map_err(Error::io("write", &path))?;
    write_lines(&folder.join("labels.jsonl"), &texts.labels)?;
    write_lines(&folder.join("relations.jsonl"), &texts.relations)
}

/// The neighbourhood of one question with its labels.
fn cut(
    graph: &dyn Graph,
    question: &GoldQuestion,
    neighbourhood: &NeighbourhoodConfig,
    labels: &Labels,
) -> Result<Raw> {
    let own = question.own_graph();
    let graph = own.as_ref().map_or(graph, |own| own as &dyn Graph);
    let gold = resolve(question, graph)?;
    let (topics, answers) = (gold.topic_entities(), gold.answer_entities());
    let around = Neighbourhood::cut(graph, &topics, neighbourhood)?;
    let subgraph = &around.subgraph;
    let positive = labels.of(question, subgraph, &topics, &answers, graph)?;
    let is_answer: Vec<bool> = (subgraph.entities().iter())
        .map(|e| answers.binary_search(e).is_ok())
        .collect();
    let flags = (subgraph.triples().iter().zip(positive))
        .map(|(triple, positive)| {
            let bit = |on: bool, bit: u32| if on { bit } else { 0 };
            bit(positive, POSITIVE)
                | bit(is_answer[triple.head.index()], HEAD)
                | bit(is_answer[triple.tail.index()], TAIL)
        })
        .collect();
    let texts = match &own {
        None => None,
        Some(own) => Some((
            (subgraph.entities().iter())
                .map(|e| text(own, *e))
                .collect::<Result<_>>()?,
            (subgraph.relations().iter())
                .map(|r| Ok(own.relation_label(*r)?.into_owned()))
                .collect::<Result<_>>()?,
        )),
    };
    Ok(Raw {
        around,
        flags,
        answers: question.answers.len(),
        texts,
    })
}

fn text(graph: &dyn Graph, entity: EntityId) -> Result<Option<String>> {
    Ok(match graph.is_named(entity)? {
        true => Some(graph.entity_label(entity)?.into_owned()),
        false => None,
    })
}

/// Texts in the order in which they came, equal ones once.
struct Texts {
    labels: Vec<Option<String>>,
    relations: Vec<String>,
    row_of_label: HashMap<String, u32>,
    row_of_relation: HashMap<String, u32>,
    /// Rows by id, for the graph that most questions share.
    row_of_entity: HashMap<EntityId, u32>,
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            labels: vec![None],
            relations: Vec::new(),
            row_of_label: HashMap::new(),
            row_of_relation: HashMap::new(),
            row_of_entity: HashMap::new(),
        }
    }
}

impl Texts {
    fn label(&mut self, text: Option<String>) -> u32 {
        let Some(text) = text else {
            return 0;
        };
        let labels = &mut self.labels;
        *self.row_of_label.entry(text).or_insert_with_key(|text| {
            labels.push(Some(text.clone()));
            labels.len() as u32 - 1
        })
    }

    fn relation(&mut self, text: &str) -> u32 {
        if let Some(row) = self.row_of_relation.get(text) {
            return *row;
        }
        self.relations.push(text.to_owned());
        let row = self.relations.len() as u32 - 1;
        self.row_of_relation.insert(text.to_owned(), row);
        row
    }

    /// The example as it stands in the file.
    fn numbered(&mut self, question: usize, raw: &Raw, graph: &dyn Graph) -> Result<Vec<u32>> {
        let subgraph = &raw.around.subgraph;
        let (entities, triples) = (subgraph.entities(), subgraph.triples());
        let mut numbers = vec![
            question as u32,
            raw.around.topics.len() as u32,
            entities.len() as u32,
            subgraph.relations().len() as u32,
            triples.len() as u32,
            raw.answers as u32,
        ];
        match &raw.texts {
            Some((labels, relations)) => {
                numbers.extend(labels.iter().map(|text| self.label(text.clone())));
                numbers.extend(relations.iter().map(|text| self.relation(text)));
            }
            None => {
                for entity in entities {
                    let row = match self.row_of_entity.get(entity) {
                        Some(row) => *row,
                        None => {
                            let row = self.label(text(graph, *entity)?);
                            self.row_of_entity.insert(*entity, row);
                            row
                        }
                    };
                    numbers.push(row);
                }
                for relation in subgraph.relations() {
                    numbers.push(self.relation(&graph.relation_label(*relation)?));
                }
            }
        }
        for t in triples {
            numbers.extend([t.head.0, t.relation.0, t.tail.0]);
        }
        numbers.extend(&raw.flags);
        Ok(numbers)
    }
}

fn write_lines<T: Serialize>(path: &Path, lines: &[T]) -> Result<()> {
    let mut bytes = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut bytes, line).expect("texts are JSON");
        bytes.push(b'\n');
    }
    fs::write(path, bytes).map_err(Error::io("write", path))
}

fn read_lines<T: DeserializeOwned + Send>(path: &Path) -> Result<Vec<T>> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    let records = json_records(path, utf8(path, &bytes)?, "texts of training examples")?;
    Ok(records.into_iter().map(|(_, text)| text).collect())
}

#[cfg(test)]
mod tests {
    use wherefore::graph::toy;

    use super::*;
    use crate::supervise::ShortestPaths;

    fn question(topic: &str, answer: &str) -> GoldQuestion {
        GoldQuestion {
            id: topic.into(),
            question: "?".into(),
            topics: vec![topic.into()],
            answers: vec![answer.into(), "nobody knows".into()],
            ..GoldQuestion::default()
        }
    }

    #[test]
    fn examples_come_back_from_their_file_and_are_cut_only_once() {
        let place = tempfile::tempdir().unwrap();
        let graph = toy::graph();
        let mut own = question("a", "c");
        own.triples = [["a", "r", "m.0x"], ["m.0x", "s", "c"], ["a", "t", "d"]]
            .map(|t| t.map(str::to_owned))
            .to_vec();
        let questions = [question("Lou Seal", "San Francisco"), own];
        let origin = Origin {
            graph: "toy".into(),
            questions: "two".into(),
            labels: serde_json::Value::Null,
            neighbourhood: NeighbourhoodConfig::default(),
        };
        let labels = Labels::Weak(ShortestPaths::default());
        let mut done = 0;
        let mut prepare = |origin: &Origin| {
            Examples::prepare(
                place.path(),
                origin,
                &graph,
                &questions,
                &labels,
                &mut |n| done = n,
            )
            .unwrap()
        };
        let examples = prepare(&origin);
        assert_eq!(examples.len(), 2);
        let seal = examples.get(0);
        assert_eq!((seal.question, seal.topics, seal.answers), (0, 1, 2));
        assert_eq!(
            examples.labels[seal.entities[0] as usize].as_deref(),
            Some("Lou Seal")
        );
        let positives = seal.flags.iter().filter(|f| **f & POSITIVE != 0).count();
        assert_eq!(positives, 2); // seal – club – city
        let own = examples.get(1);
        assert_eq!(own.triples.len(), 3);
        assert_eq!(own.entities.iter().filter(|row| **row == 0).count(), 1);
        let flags: Vec<u32> = own.flags.to_vec();
        assert_eq!(flags.iter().filter(|f| **f == POSITIVE).count(), 1);
        assert_eq!(flags.iter().filter(|f| **f == POSITIVE | TAIL).count(), 1);
        assert!(own.has_positives());
        let names: Vec<&str> = own
            .relations
            .iter()
            .map(|r| examples.relations[*r as usize].as_str())
            .collect();
        assert_eq!(names, ["r", "t", "s"]);
        drop(examples);
        assert_eq!(done, 2);
        done = 0;
        let mut prepare = |origin: &Origin| {
            let see = &mut |n| done = n;
            Examples::prepare(place.path(), origin, &graph, &questions, &labels, see).unwrap()
        };
        prepare(&origin);
        prepare(&Origin {
            graph: "another".into(),
            ..origin
        });
        assert_eq!(done, 2, "another graph makes them anew");
    }
}
