//! WebQSP, ComplexWebQuestions and GrailQA as JSON records.
//!
//! Yih et al., ACL 2016; Talmor and Berant, NAACL 2018; Gu et al., WWW 2021. The first two come
//! with `topic_names`, `answers` and, where known, `sparql`, `sexpr_amar` (an S-expression),
//! `gold_relation_paths_rog`, `relevant_triples_gpt_subgraphrag` or `triples` (gold triples),
//! `type` and `relation_chain`. GrailQA's records are the published ones.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::format::Format;
use super::gold::{GoldQuestion, Name, NamedTriple, Proof};
use super::text::{Source, id_text, list_or_null};
use crate::error::Result;

#[derive(Deserialize)]
struct Record {
    #[serde(default, alias = "i", deserialize_with = "id_text")]
    id: String,
    question: String,
    #[serde(deserialize_with = "list_or_null")]
    topic_names: Vec<Option<String>>,
    #[serde(default, deserialize_with = "list_or_null")]
    topic_mids: Vec<String>,
    #[serde(deserialize_with = "list_or_null")]
    answers: Vec<Option<String>>,
    #[serde(default, deserialize_with = "list_or_null")]
    answers_mid: Vec<String>,
    r#type: Option<String>,
    sparql: Option<String>,
    sexpr_amar: Option<String>,
    #[serde(default, deserialize_with = "list_or_null")]
    relation_chain: Vec<String>,
    #[serde(default, deserialize_with = "list_or_null")]
    gold_relation_paths_rog: Vec<Vec<String>>,
    #[serde(default, alias = "triples", deserialize_with = "list_or_null")]
    relevant_triples_gpt_subgraphrag: Vec<NamedTriple>,
}

pub(super) fn read(source: &Source<'_>) -> Result<Vec<(usize, GoldQuestion)>> {
    let records = source.records::<Record>(Format::WebQsp)?;
    Ok(records
        .into_iter()
        .map(|(number, record)| (number, record.into()))
        .collect())
}

impl From<Record> for GoldQuestion {
    fn from(record: Record) -> Self {
        GoldQuestion {
            id: record.id,
            question: record.question,
            topics: names_with_ids(record.topic_names, record.topic_mids),
            answers: names_with_ids(record.answers, record.answers_mid),
            hops: Some(record.relation_chain.len() as u32).filter(|&hops| hops > 0),
            kind: record.r#type,
            proof: Proof {
                relation_paths: record.gold_relation_paths_rog,
                relevant: record.relevant_triples_gpt_subgraphrag,
                logical_form: record.sexpr_amar,
                sparql: record.sparql,
                ..Proof::default()
            },
            triples: Vec::new(),
        }
    }
}

/// Pairs names with ids where there is one for each; otherwise it is unknown which is whose.
///
/// An entity without a name (`null`) is called by its id, and left out where it has none.
fn names_with_ids(names: Vec<Option<String>>, ids: Vec<String>) -> Vec<Name> {
    if names.len() == ids.len() {
        names
            .into_iter()
            .zip(ids)
            .map(|(name, id)| Name::with_id(name.unwrap_or_else(|| id.clone()), id))
            .collect()
    } else {
        names.into_iter().flatten().map(Name::from).collect()
    }
}

#[derive(Deserialize)]
struct GrailQa {
    #[serde(default, alias = "id", deserialize_with = "id_text")]
    qid: String,
    question: String,
    answer: Vec<GrailAnswer>,
    #[serde(default)]
    topic_entity: BTreeMap<String, String>,
    s_expression: Option<String>,
    sparql_query: Option<String>,
    level: Option<String>,
    hops: Option<u32>,
}

#[derive(Deserialize)]
struct GrailAnswer {
    answer_argument: String,
    entity_name: Option<String>,
}

pub(super) fn read_grailqa(source: &Source<'_>) -> Result<Vec<(usize, GoldQuestion)>> {
    let records = source.records::<GrailQa>(Format::GrailQa)?;
    Ok(records
        .into_iter()
        .map(|(number, record)| (number, record.into()))
        .collect())
}

impl From<GrailQa> for GoldQuestion {
    fn from(record: GrailQa) -> Self {
        GoldQuestion {
            id: record.qid,
            question: record.question,
            topics: record
                .topic_entity
                .into_iter()
                .map(|(id, name)| Name::with_id(name, id))
                .collect(),
            answers: record
                .answer
                .into_iter()
                .map(|a| match a.entity_name {
                    Some(name) => Name::with_id(name, a.answer_argument),
                    None => a.answer_argument.into(),
                })
                .collect(),
            hops: record.hops,
            kind: record.level,
            proof: Proof {
                logical_form: record.s_expression,
                sparql: record.sparql_query,
                ..Proof::default()
            },
            triples: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = fn(&Source<'_>) -> Result<Vec<(usize, GoldQuestion)>>;

    fn one(text: &str, read: Read) -> GoldQuestion {
        let source = Source::new("f".as_ref(), text.as_bytes()).unwrap();
        read(&source).unwrap().remove(0).1
    }

    #[test]
    fn ids_are_aliases_where_there_is_one_for_each_name() {
        let question = one(
            r#"{"id":"W-1","question":"q","type":"composition","topic_names":["Egypt"],"topic_mids":["m.02k54"],
                "answers":["Arabic","m.0x"],"answers_mid":["m.0jzc","m.0x"],"sexpr_amar":"( JOIN a b )",
                "gold_relation_paths_rog":[["r","s"]],"relevant_triples_gpt_subgraphrag":[["a","r","b"]]}"#
                .replace('\n', " ")
                .as_str(),
            read,
        );
        assert_eq!(question.topics, [Name::with_id("Egypt", "m.02k54")]);
        assert_eq!(question.answers[0].aliases, ["m.0jzc"]);
        assert!(question.answers[1].aliases.is_empty());
        assert_eq!(question.kind.as_deref(), Some("composition"));
        assert_eq!(question.proof.relevant, [["a", "r", "b"]]);
        let unpaired = one(
            r#"{"i":3,"question":"q","topic_names":[null],"answers":["x"],"answers_mid":[],"sexpr_amar":null,"relation_chain":["a","b"]}"#,
            read,
        );
        assert_eq!(unpaired.id, "3");
        assert_eq!(unpaired.answers, ["x".into()]);
        assert_eq!(unpaired.hops, Some(2));
        assert!(unpaired.topics.is_empty());
    }

    #[test]
    fn grailqa_answers_are_names_or_values() {
        let question = one(
            r#"[{"qid":7,"question":"q","level":"zero-shot","s_expression":"(COUNT x)","topic_entity":{"m.01":"Force"},
              "answer":[{"answer_type":"Entity","answer_argument":"m.02","entity_name":"Typhoon"},{"answer_type":"Value","answer_argument":"5"}]}]"#,
            read_grailqa,
        );
        assert_eq!(question.id, "7");
        assert_eq!(question.topics, [Name::with_id("Force", "m.01")]);
        assert_eq!(
            question.answers,
            [Name::with_id("Typhoon", "m.02"), "5".into()]
        );
    }
}
