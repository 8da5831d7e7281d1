//! Our own questions: one JSON object a line.
//!
//! ```text
//! {"id","question","topics":[..],"answers":[..],"hops"?,"kind"?,"paths"?,"relation_paths"?,
//!  "relevant"?,"logical_form"?,"sparql"?,"triples"?}
//! ```
//!
//! Topics and answers are names, or `{"name","aliases":[..]}`. Unknown keys are refused, so that
//! a misspelt one is not lost in silence. What [`write`] writes, reading gives back unchanged.

use std::io::Write;

use serde::{Deserialize, Serialize};

use super::format::Format;
use super::gold::{GoldQuestion, Name, NamedTriple, Proof};
use super::text::{Source, id_text};
use crate::error::Result;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, deserialize_with = "id_text")]
    id: String,
    question: String,
    #[serde(default)]
    topics: Vec<Name>,
    #[serde(default)]
    answers: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hops: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    paths: Vec<Vec<NamedTriple>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    relation_paths: Vec<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    relevant: Vec<NamedTriple>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logical_form: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sparql: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    triples: Vec<NamedTriple>,
}

impl From<Line> for GoldQuestion {
    fn from(line: Line) -> Self {
        GoldQuestion {
            id: line.id,
            question: line.question,
            topics: line.topics,
            answers: line.answers,
            hops: line.hops,
            kind: line.kind,
            proof: Proof {
                paths: line.paths,
                relation_paths: line.relation_paths,
                relevant: line.relevant,
                logical_form: line.logical_form,
                sparql: line.sparql,
            },
            triples: line.triples,
        }
    }
}

impl From<GoldQuestion> for Line {
    fn from(question: GoldQuestion) -> Self {
        Line {
            id: question.id,
            question: question.question,
            topics: question.topics,
            answers: question.answers,
            hops: question.hops,
            kind: question.kind,
            paths: question.proof.paths,
            relation_paths: question.proof.relation_paths,
            relevant: question.proof.relevant,
            logical_form: question.proof.logical_form,
            sparql: question.proof.sparql,
            triples: question.triples,
        }
    }
}

pub(super) fn read(source: &Source<'_>) -> Result<Vec<(usize, GoldQuestion)>> {
    let lines = source.records::<Line>(Format::Jsonl)?;
    Ok(lines
        .into_iter()
        .map(|(number, line)| (number, line.into()))
        .collect())
}

/// The question as one line of JSON, without the line's end.
pub fn to_line(question: &GoldQuestion) -> String {
    serde_json::to_string(&Line::from(question.clone()))
        .expect("a line holds texts and numbers, which JSON can always write")
}

/// Writes questions as JSON lines.
pub fn write(questions: &[GoldQuestion], out: &mut dyn Write) -> std::io::Result<()> {
    for question in questions {
        writeln!(out, "{}", to_line(question))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Vec<(usize, GoldQuestion)>> {
        read(&Source::new("f".as_ref(), text.as_bytes())?)
    }

    #[test]
    fn misspelt_keys_are_refused() {
        let error = parse(r#"{"id":"a","question":"q","topic":["x"],"answers":[]}"#).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `topic`"),
            "{error}"
        );
    }

    #[test]
    fn a_minimal_line_stays_minimal() {
        let line = r#"{"id":"a","question":"q","topics":["x"],"answers":["y",{"name":"z","aliases":["m.0z"]}]}"#;
        let question = &parse(line).unwrap()[0].1;
        assert_eq!(to_line(question), line);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            id in "\\PC{1,8}", text in "\\PC{0,20}",
            answers in prop::collection::vec(("\\PC{0,6}", prop::collection::vec("\\PC{0,4}", 0..3)), 0..3),
            path in prop::collection::vec(prop::array::uniform3("\\PC{0,4}"), 0..3),
            hops in prop::option::of(0u32..5), form in prop::option::of("\\PC{0,9}"),
        ) {
            let question = GoldQuestion {
                id,
                question: text,
                answers: answers.into_iter().map(|(name, aliases)| Name { name, aliases }).collect(),
                hops,
                triples: path.clone(),
                proof: Proof { paths: vec![path], logical_form: form, ..Proof::default() },
                ..GoldQuestion::default()
            };
            let mut bytes = Vec::new();
            write(std::slice::from_ref(&question), &mut bytes).unwrap();
            let read = parse(std::str::from_utf8(&bytes).unwrap()).unwrap();
            prop_assert_eq!(&read[0].1, &question);
        }
    }
}
