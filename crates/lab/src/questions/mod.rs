//! Benchmark questions with what is known of their answers, in the formats they are published in.
//!
//! `docs/questions.md` describes every format; each has its file here. [`read`] tells them apart
//! by content. Nothing is dropped on reading: a question without topics or answers is kept, and
//! the metrics count it.

pub(crate) mod format;
mod gold;
mod jsonl;
mod metaqa;
mod nsm;
mod pathquestion;
mod resolve;
mod rog;
mod text;
mod wc2014;
mod webqsp;

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;

use crate::error::{Error, Result};

pub use format::Format;
pub use gold::{GoldQuestion, Name, NamedTriple, Proof};
pub use jsonl::{to_line, write};
pub use resolve::{Coverage, Resolved, coverage, resolve};
use text::Source;
pub(crate) use text::{id_text, json_records, read_file, utf8};

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Format::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .ok_or_else(|| {
                Error::BadSetting(format!(
                    "`{name}` is no question format; known are {}",
                    Format::ALL.map(Format::name).join(", ")
                ))
            })
    }
}

/// Reads a questions file; the format is told by content where it is not given.
///
/// ```no_run
/// use wherefore_lab::questions;
/// let questions = questions::read("metaqa/2-hop/qa_dev.txt".as_ref(), None)?;
/// println!("{} questions, first: {}", questions.len(), questions[0].question);
/// # Ok::<(), wherefore_lab::Error>(())
/// ```
pub fn read(path: &Path, format: Option<Format>) -> Result<Vec<GoldQuestion>> {
    let bytes = read_file(path)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::Empty { path: path.into() });
    }
    let numbered = if bytes.starts_with(b"PAR1") {
        rog::read_parquet(path)?
    } else {
        let source = Source::new(path, &bytes)?;
        let format = match format {
            Some(format) => format,
            None => detect(&source)?,
        };
        read_as(&source, format)?
    };
    if numbered.is_empty() {
        return Err(Error::Empty { path: path.into() });
    }
    with_unique_ids(path, numbered)
}

fn read_as(source: &Source<'_>, format: Format) -> Result<Vec<(usize, GoldQuestion)>> {
    match format {
        Format::MetaQa => metaqa::read(source),
        Format::PathQuestion => pathquestion::read(source),
        Format::Wc2014 => wc2014::read(source),
        Format::WebQsp => webqsp::read(source),
        Format::GrailQa => webqsp::read_grailqa(source),
        Format::Rog => rog::read(source),
        Format::Nsm => nsm::read(source),
        Format::Jsonl => jsonl::read(source),
    }
}

/// Tells the format by the first record.
fn detect(source: &Source<'_>) -> Result<Format> {
    let unknown = |found: String| Error::UnknownFormat {
        path: source.path.into(),
        found,
    };
    if source.is_json() {
        let keys = source.first_keys()?;
        let has = |key: &str| keys.iter().any(|k| k == key);
        return if has("subgraph") {
            Ok(Format::Nsm)
        } else if has("q_entity") {
            Ok(Format::Rog)
        } else if has("topic_names") {
            Ok(Format::WebQsp)
        } else if has("topic_entity") || has("graph_query") {
            Ok(Format::GrailQa)
        } else if has("question") && (has("topics") || has("answers")) {
            Ok(Format::Jsonl)
        } else {
            Err(unknown(format!(
                "its first record has the keys {}",
                keys.iter()
                    .map(|k| format!("`{k}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )))
        };
    }
    let Some((_, line)) = source.lines().next() else {
        return Err(Error::Empty {
            path: source.path.into(),
        });
    };
    let columns: Vec<&str> = line.split('\t').collect();
    match columns.as_slice() {
        [question, _] if metaqa::topic_of(question).is_some() => Ok(Format::MetaQa),
        [_, answer, path] if path.contains('#') && answer.ends_with(')') => {
            Ok(Format::PathQuestion)
        }
        [_, _, path, _, ..] if path.contains('#') => Ok(Format::Wc2014),
        _ => Err(unknown(format!(
            "its first line has {} tab-separated {} and is no JSON",
            columns.len(),
            if columns.len() == 1 {
                "column"
            } else {
                "columns"
            }
        ))),
    }
}

/// Gives questions without an id the id `<stem>-<line>` and refuses repeated ones.
fn with_unique_ids(path: &Path, numbered: Vec<(usize, GoldQuestion)>) -> Result<Vec<GoldQuestion>> {
    let stem = path
        .file_stem()
        .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(numbered.len());
    let mut questions = Vec::with_capacity(numbered.len());
    for (line, mut question) in numbered {
        if question.id.is_empty() {
            question.id = format!("{stem}-{line}");
        }
        if let Some(first) = seen.insert(question.id.clone(), line) {
            return Err(Error::DuplicateId {
                path: path.into(),
                line,
                first,
                id: question.id,
            });
        }
        questions.push(question);
    }
    Ok(questions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: impl AsRef<[u8]>) -> Result<Vec<GoldQuestion>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.txt");
        std::fs::write(&path, text).unwrap();
        read(&path, None)
    }

    #[test]
    fn formats_are_told_apart_by_content() {
        let cases = [
            ("who made [Jaws]\tSpielberg\n", Format::MetaQa),
            ("a 's b ?\tc(c/)\ta#r#c\n", Format::PathQuestion),
            (
                "who plays X ?\ta\tX#r#a*Y#s#a\ta/b/\t\tX/Y\n",
                Format::Wc2014,
            ),
            (
                r#"{"id":"a","question":"q","topic_names":["x"],"answers":[]}"#,
                Format::WebQsp,
            ),
            (
                r#"{"qid":7,"question":"q","answer":[],"topic_entity":{}}"#,
                Format::GrailQa,
            ),
            (
                r#"{"id":"a","question":"q","q_entity":["x"],"answers":[]}"#,
                Format::Rog,
            ),
            (
                r#"{"id":"a","question":"q","entities":[],"answers":[],"subgraph":{"tuples":[]}}"#,
                Format::Nsm,
            ),
            (
                r#"{"id":"a","question":"q","topics":["x"],"answers":[]}"#,
                Format::Jsonl,
            ),
        ];
        for (text, format) in cases {
            let source = Source::new("f".as_ref(), text.as_bytes()).unwrap();
            assert_eq!(detect(&source).unwrap(), format, "{text}");
            assert_eq!(read_text(text).unwrap().len(), 1, "{text}");
            assert_eq!(format.name().parse::<Format>().unwrap(), format);
        }
    }

    #[test]
    fn unreadable_files_are_refused_with_the_place_and_a_hint() {
        for (text, message) in [
            (&b" \n\n"[..], "is empty"),
            (b"who made [Jaws]\tSpiel\nwho \xff[A]\tb\n", "line 2 is not UTF-8 text"),
            (b"some prose\n", "its first line has 1 tab-separated column"),
            (b"{\"name\":1}\n", "its first record has the keys `name`"),
            (b"who made [Jaws]\tSpiel\nwho made it\tb\n", "line 2 does not parse as metaqa"),
            (b"{\"question\":\"q\",\"topics\":[]}\n{\"question\":3}\n", "line 2 does not parse as jsonl"),
            (
                b"{\"id\":\"x\",\"question\":\"q\",\"topics\":[]}\n\n{\"id\":\"x\",\"question\":\"q\"}\n",
                "line 3 repeats the id `x` of line 1",
            ),
            (b"PAR1nonsense", "cannot be read as Parquet"),
        ] {
            let error = read_text(text).unwrap_err();
            let shown = error.to_string();
            assert!(shown.contains(message), "{shown}");
            assert!(matches!(error, Error::Parquet { .. }) || error.hint().is_some(), "{shown}");
        }
        assert!(
            read("no/such/file".as_ref(), None)
                .unwrap_err()
                .hint()
                .is_some()
        );
    }

    #[test]
    fn lines_without_ids_are_called_after_file_and_line() {
        let questions = read_text("\nwho made [Jaws]\tSpielberg\n").unwrap();
        assert_eq!(questions[0].id, "sample-2");
    }
}
