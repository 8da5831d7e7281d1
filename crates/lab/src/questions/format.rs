//! The formats of question files.

use std::fmt;

use serde::{Deserialize, Serialize};

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
