//! NSM's and GraftNet's "simple" JSON: entities, answers and a subgraph for each question.
//!
//! Sun et al., EMNLP 2018 (GraftNet); He et al., WSDM 2021 (NSM). GraftNet writes entities as
//! `{"kb_id","text"}` and relations as `{"rel_id","text"}`; NSM writes numbers that count the
//! lines of `entities.txt` and `relations.txt` beside the file, from 0.

use std::path::Path;

use serde::Deserialize;

use super::format::Format;
use super::gold::{GoldQuestion, Name};
use super::text::{Source, id_text, list_or_null};
use crate::error::{Error, Result};

#[derive(Deserialize)]
struct Record {
    #[serde(default, deserialize_with = "id_text")]
    id: String,
    question: String,
    #[serde(default, deserialize_with = "list_or_null")]
    entities: Vec<Node>,
    #[serde(default, deserialize_with = "list_or_null")]
    answers: Vec<Node>,
    subgraph: Tuples,
}

#[derive(Deserialize)]
struct Tuples {
    #[serde(default, deserialize_with = "list_or_null")]
    tuples: Vec<[Node; 3]>,
}

/// An entity or relation, in one of the ways they are written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Node {
    Index(usize),
    Bare(String),
    Described {
        #[serde(alias = "rel_id")]
        kb_id: String,
        text: Option<String>,
    },
}

/// The lines that numbers count, read when the first number is met.
struct Vocabulary<'a> {
    beside: &'a Path,
    file: &'static str,
    lines: Option<Vec<String>>,
}

impl<'a> Vocabulary<'a> {
    fn new(beside: &'a Path, file: &'static str) -> Self {
        Self {
            beside,
            file,
            lines: None,
        }
    }

    fn line(&mut self, index: usize) -> Result<&str> {
        let path = self.beside.with_file_name(self.file);
        let wrong = |reason: String| Error::BadCompanion {
            path: path.clone(),
            beside: self.beside.into(),
            reason,
        };
        if self.lines.is_none() {
            let text = std::fs::read_to_string(&path).map_err(|e| {
                wrong(format!(
                    "the questions hold numbers that count its lines, and it cannot be read ({e})"
                ))
            })?;
            self.lines = Some(text.lines().map(|l| l.trim().to_owned()).collect());
        }
        let lines = self.lines.as_deref().unwrap_or_default();
        lines.get(index).map(String::as_str).ok_or_else(|| {
            wrong(format!(
                "it has {} lines, and number {index} is wanted",
                lines.len()
            ))
        })
    }

    fn name(&mut self, node: Node) -> Result<Name> {
        Ok(match node {
            Node::Index(index) => self.line(index)?.into(),
            Node::Bare(name) => name.into(),
            Node::Described { kb_id, text } => match text.filter(|t| !t.is_empty()) {
                Some(text) => Name::with_id(text, kb_id),
                None => kb_id.into(),
            },
        })
    }

    /// The identity rather than the text: in the graph, two entities may share a text.
    fn identity(&mut self, node: Node) -> Result<String> {
        Ok(match node {
            Node::Index(index) => self.line(index)?.to_owned(),
            Node::Bare(id) | Node::Described { kb_id: id, .. } => id,
        })
    }
}

pub(super) fn read(source: &Source<'_>) -> Result<Vec<(usize, GoldQuestion)>> {
    let mut entities = Vocabulary::new(source.path, "entities.txt");
    let mut relations = Vocabulary::new(source.path, "relations.txt");
    let mut questions = Vec::new();
    for (number, record) in source.records::<Record>(Format::Nsm)? {
        let triples = record
            .subgraph
            .tuples
            .into_iter()
            .map(|[head, relation, tail]| {
                Ok([
                    entities.identity(head)?,
                    relations.identity(relation)?,
                    entities.identity(tail)?,
                ])
            });
        let triples = triples.collect::<Result<Vec<_>>>()?;
        let mut names = |nodes: Vec<Node>| {
            nodes
                .into_iter()
                .map(|node| entities.name(node))
                .collect::<Result<Vec<_>>>()
        };
        questions.push((
            number,
            GoldQuestion {
                id: record.id,
                question: record.question,
                topics: names(record.entities)?,
                answers: names(record.answers)?,
                triples,
                ..GoldQuestion::default()
            },
        ));
    }
    Ok(questions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions;

    #[test]
    fn described_nodes_keep_their_ids() {
        let text = r#"{"id":"a","question":"q","entities":[{"kb_id":"m.0t","text":"Tom"}],
            "answers":[{"kb_id":"m.0x","text":null},{"kb_id":"m.0y","text":"Yes"}],
            "subgraph":{"tuples":[[{"kb_id":"m.0t","text":"Tom"},{"rel_id":"r","text":"r"},{"kb_id":"m.0x","text":"m.0x"}]],"entities":[]}}"#
            .replace('\n', " ");
        let source = Source::new("f".as_ref(), text.as_bytes()).unwrap();
        let question = &read(&source).unwrap()[0].1;
        assert_eq!(question.topics, [Name::with_id("Tom", "m.0t")]);
        assert_eq!(
            question.answers,
            ["m.0x".into(), Name::with_id("Yes", "m.0y")]
        );
        assert_eq!(question.triples, [["m.0t", "r", "m.0x"]]);
    }

    #[test]
    fn numbers_count_the_lines_of_the_files_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dev_simple.json");
        std::fs::write(
            &path,
            r#"{"id":"a","question":"q","entities":[1],"answers":[{"kb_id":"m.0a","text":null}],"subgraph":{"tuples":[[1,0,0]],"entities":[0,1]}}"#,
        )
        .unwrap();
        let error = questions::read(&path, None).unwrap_err();
        assert!(matches!(error, Error::BadCompanion { .. }), "{error}");
        std::fs::write(folder.path().join("entities.txt"), "m.0a\nm.0b\n").unwrap();
        std::fs::write(folder.path().join("relations.txt"), "r0\n").unwrap();
        let question = &questions::read(&path, None).unwrap()[0];
        assert_eq!(question.triples, [["m.0b", "r0", "m.0a"]]);
        assert_eq!(question.topics, ["m.0b".into()]);
    }
}
