//! Benchmark questions with what is known of their answers, in the formats they are published in.
//!
//! `docs/questions.md` describes every format; each has its file here. [`read`] tells them apart
//! by content. Nothing is dropped on reading: a question without topics or answers is kept, and
//! the metrics count it.

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
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use wherefore::Question;
use wherefore_graph::MemoryGraph;

use crate::error::{Error, Result};

pub use jsonl::{to_line, write};
pub use resolve::{Coverage, Resolved, coverage, resolve};
use text::Source;
pub(crate) use text::{id_text, json_records, read_file, utf8};

/// Head, relation and tail by name.
pub type NamedTriple = [String; 3];

/// A question with what is known of its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoldQuestion {
    /// Unique within its file.
    pub id: String,
    /// The words.
    pub question: String,
    /// The entities it is about.
    pub topics: Vec<Name>,
    /// The right answers. Empty where the benchmark knows none.
    pub answers: Vec<Name>,
    /// How many steps lie between topic and answer, where known.
    pub hops: Option<u32>,
    /// What kind of question it is, in the benchmark's own words.
    pub kind: Option<String>,
    /// Why the answers are right, as far as known.
    pub proof: Proof,
    /// The question's own graph, where it brings one.
    pub triples: Vec<NamedTriple>,
}

/// What a benchmark knows of the way to the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// Gold paths, each from a topic to an answer.
    pub paths: Vec<Vec<NamedTriple>>,
    /// Gold paths by relation alone.
    pub relation_paths: Vec<Vec<String>>,
    /// Triples known to bear on the question, in no order.
    pub relevant: Vec<NamedTriple>,
    /// The question as an S-expression.
    pub logical_form: Option<String>,
    /// The question as SPARQL.
    pub sparql: Option<String>,
}

impl Proof {
    /// The triples of the gold paths, each once.
    pub fn path_triples(&self) -> Vec<&NamedTriple> {
        let mut triples: Vec<_> = self.paths.iter().flatten().collect();
        triples.sort_unstable();
        triples.dedup();
        triples
    }
}

/// An entity by name, with other names (ids, aliases) that mean the same.
///
/// As JSON a bare string, or `{"name","aliases"}` where there are other names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NameForm", into = "NameForm")]
pub struct Name {
    /// The name.
    pub name: String,
    /// Others that count as well.
    pub aliases: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum NameForm {
    Bare(String),
    Full {
        name: String,
        #[serde(default)]
        aliases: Vec<String>,
    },
}

impl From<NameForm> for Name {
    fn from(form: NameForm) -> Self {
        match form {
            NameForm::Bare(name) => name.into(),
            NameForm::Full { name, aliases } => Name { name, aliases },
        }
    }
}

impl From<Name> for NameForm {
    fn from(Name { name, aliases }: Name) -> Self {
        if aliases.is_empty() {
            NameForm::Bare(name)
        } else {
            NameForm::Full { name, aliases }
        }
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Name {
            name,
            aliases: Vec::new(),
        }
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

impl Name {
    /// A name and an id for the same thing; the id is left out where it is the name.
    pub fn with_id(name: impl Into<String>, id: impl Into<String>) -> Self {
        let (name, id) = (name.into(), id.into());
        let aliases = if id == name || id.is_empty() {
            Vec::new()
        } else {
            vec![id]
        };
        Name { name, aliases }
    }

    /// The name, then the others.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }
}

impl GoldQuestion {
    /// The question's own graph, where it brings one.
    pub fn own_graph(&self) -> Option<MemoryGraph> {
        let triples = self.triples.iter().map(|[h, r, t]| (h, r, t));
        (!self.triples.is_empty()).then(|| MemoryGraph::from_names(triples))
    }

    /// The question as the pipeline takes it, with its gold topics.
    pub fn with_gold_topics(&self) -> Question {
        Question {
            topics: self.topics.iter().map(|t| t.name.clone()).collect(),
            ..self.without_topics()
        }
    }

    /// The question as the pipeline takes it, topics to be linked.
    pub fn without_topics(&self) -> Question {
        Question {
            id: self.id.clone(),
            text: self.question.clone(),
            ..Question::default()
        }
    }
}

/// The format of a questions file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `question with [topic] TAB answer|answer`.
    MetaQa,
    /// `question TAB answer(a/b/) TAB s#r#e#r#e`.
    PathQuestion,
    /// PathQuestion with conjunctions and a fourth column of answers.
    Wc2014,
    /// WebQSP, CWQ and their like as JSON records with `topic_names`.
    WebQsp,
    /// GrailQA's JSON records.
    GrailQa,
    /// RoG's records with `q_entity` and `graph`, JSON or Parquet.
    Rog,
    /// NSM's and GraftNet's JSON records with `subgraph`.
    Nsm,
    /// Our own JSON lines.
    Jsonl,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 8] = [
        Format::MetaQa,
        Format::PathQuestion,
        Format::Wc2014,
        Format::WebQsp,
        Format::GrailQa,
        Format::Rog,
        Format::Nsm,
        Format::Jsonl,
    ];

    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        match self {
            Format::MetaQa => "metaqa",
            Format::PathQuestion => "pathquestion",
            Format::Wc2014 => "wc2014",
            Format::WebQsp => "webqsp",
            Format::GrailQa => "grailqa",
            Format::Rog => "rog",
            Format::Nsm => "nsm",
            Format::Jsonl => "jsonl",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
