//! RoG's records: `q_entity`, `a_entity`, `answer` and the question's own `graph`, as JSON or Parquet.
//!
//! Luo et al., "Reasoning on Graphs", ICLR 2024; SubgraphRAG, GNN-RAG and ReG publish the same
//! records. `answer` (or `answers`) is what RoG scores against, so it is taken before `a_entity`.

use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde::Deserialize;

use super::format::Format;
use super::gold::{GoldQuestion, Name, NamedTriple};
use super::text::{Source, id_text, list_or_null};
use crate::error::{Error, Result};

#[derive(Default, Deserialize)]
struct Record {
    #[serde(default, deserialize_with = "id_text")]
    id: String,
    question: String,
    #[serde(deserialize_with = "list_or_null")]
    q_entity: Vec<String>,
    #[serde(default, deserialize_with = "list_or_null")]
    a_entity: Vec<String>,
    #[serde(default, alias = "answers", deserialize_with = "list_or_null")]
    answer: Vec<String>,
    #[serde(default, deserialize_with = "list_or_null")]
    graph: Vec<NamedTriple>,
}

impl From<Record> for GoldQuestion {
    fn from(record: Record) -> Self {
        let answers = if record.answer.is_empty() {
            record.a_entity
        } else {
            record.answer
        };
        GoldQuestion {
            id: record.id,
            question: record.question,
            topics: record.q_entity.into_iter().map(Name::from).collect(),
            answers: answers.into_iter().map(Name::from).collect(),
            triples: record.graph,
            ..GoldQuestion::default()
        }
    }
}

pub(super) fn read(source: &Source<'_>) -> Result<Vec<(usize, GoldQuestion)>> {
    let records = source.records::<Record>(Format::Rog)?;
    Ok(records
        .into_iter()
        .map(|(number, record)| (number, record.into()))
        .collect())
}

/// Reads the Parquet files in which RoG's data sets are published.
pub(super) fn read_parquet(path: &Path) -> Result<Vec<(usize, GoldQuestion)>> {
    let failed = |source| Error::Parquet {
        path: path.into(),
        source,
    };
    let file = File::open(path).map_err(Error::io("read", path))?;
    let reader = SerializedFileReader::new(file).map_err(failed)?;
    let rows = reader.get_row_iter(None).map_err(failed)?;
    let mut questions = Vec::new();
    for (number, row) in (1..).zip(rows) {
        let record = record_of(row.map_err(failed)?).map_err(|reason| Error::BadLine {
            path: path.into(),
            line: number,
            format: Format::Rog.name().into(),
            reason,
        })?;
        questions.push((number, record.into()));
    }
    Ok(questions)
}

fn record_of(row: parquet::record::Row) -> Result<Record, String> {
    let mut record = Record::default();
    let (mut question, mut topics) = (None, None);
    for (column, field) in row.into_columns() {
        match column.as_str() {
            "id" => record.id = text(field, &column)?,
            "question" => question = Some(text(field, &column)?),
            "q_entity" => topics = Some(texts(field, &column)?),
            "a_entity" => record.a_entity = texts(field, &column)?,
            "answer" | "answers" => record.answer = texts(field, &column)?,
            "graph" => record.graph = triples(field)?,
            _ => {}
        }
    }
    record.question = question.ok_or("expected a column `question`")?;
    record.q_entity = topics.ok_or("expected a column `q_entity`")?;
    Ok(record)
}

fn text(field: Field, column: &str) -> Result<String, String> {
    match field {
        Field::Str(text) => Ok(text),
        Field::Long(number) => Ok(number.to_string()),
        Field::Int(number) => Ok(number.to_string()),
        other => Err(format!("expected text in `{column}`, found {other}")),
    }
}

fn texts(field: Field, column: &str) -> Result<Vec<String>, String> {
    match field {
        Field::ListInternal(list) => list
            .elements()
            .iter()
            .map(|f| text(f.clone(), column))
            .collect(),
        Field::Null => Ok(Vec::new()),
        Field::Str(text) => Ok(vec![text]),
        other => Err(format!(
            "expected a list of texts in `{column}`, found {other}"
        )),
    }
}

fn triples(field: Field) -> Result<Vec<NamedTriple>, String> {
    match field {
        Field::ListInternal(list) => list
            .elements()
            .iter()
            .map(|f| {
                let names = texts(f.clone(), "graph")?;
                <NamedTriple>::try_from(names)
                    .map_err(|names| format!("expected triples in `graph`, found {names:?}"))
            })
            .collect(),
        Field::Null => Ok(Vec::new()),
        other => Err(format!(
            "expected a list of triples in `graph`, found {other}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::questions;

    /// Writes one column: values with their levels.
    type Column<'a> = (&'a [&'a str], &'a [i16], &'a [i16]);

    fn write_parquet(path: &Path, schema: &str, columns: &[Column<'_>]) {
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = WriterProperties::builder()
            .set_compression(parquet::basic::Compression::SNAPPY)
            .build();
        let file = std::fs::File::create(path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for (values, definition, repetition) in columns {
            let values: Vec<ByteArray> = values.iter().map(|v| ByteArray::from(*v)).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<ByteArrayType>()
                .write_batch(&values, Some(definition), Some(repetition))
                .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn parquet_rows_equal_json_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.parquet");
        let list = |name: &str| {
            format!(
                "optional group {name} (LIST) {{ repeated group list {{ optional binary element (UTF8); }} }}"
            )
        };
        let schema = format!(
            "message schema {{ optional binary id (UTF8); optional binary question (UTF8); {} {} \
             optional group graph (LIST) {{ repeated group list {{ optional group element (LIST) {{ \
             repeated group list {{ optional binary element (UTF8); }} }} }} }} }}",
            list("answer"),
            list("q_entity"),
        );
        // two rows; the second has no answer and no graph
        write_parquet(
            &path,
            &schema,
            &[
                (&["a", "b"], &[1, 1], &[0, 0]),
                (&["q1", "q2"], &[1, 1], &[0, 0]),
                (&["x", "y"], &[3, 3, 1], &[0, 1, 0]),
                (&["T", "U"], &[3, 3], &[0, 0]),
                (
                    &["T", "r", "x", "T", "r", "y"],
                    &[5, 5, 5, 5, 5, 5, 1],
                    &[0, 2, 2, 1, 2, 2, 0],
                ),
            ],
        );
        let json = folder.path().join("test.jsonl");
        std::fs::write(
            &json,
            "{\"id\":\"a\",\"question\":\"q1\",\"answer\":[\"x\",\"y\"],\"q_entity\":[\"T\"],\"graph\":[[\"T\",\"r\",\"x\"],[\"T\",\"r\",\"y\"]]}\n\
             {\"id\":\"b\",\"question\":\"q2\",\"answer\":[],\"q_entity\":[\"U\"],\"graph\":null}\n",
        )
        .unwrap();
        let from_parquet = questions::read(&path, None).unwrap();
        assert_eq!(from_parquet, questions::read(&json, None).unwrap());
        assert_eq!(from_parquet[0].triples[1], ["T", "r", "y"]);
    }

    #[test]
    fn answers_win_over_answer_entities() {
        let text = r#"{"id":"a","question":"q","q_entity":["T"],"a_entity":["x"],"answer":["y"]}"#;
        let source = Source::new("f".as_ref(), text.as_bytes()).unwrap();
        assert_eq!(read(&source).unwrap()[0].1.answers, ["y".into()]);
    }
}
