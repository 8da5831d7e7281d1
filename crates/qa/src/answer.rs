//! What comes back: answers, each with the triples that prove it. This is the JSON of `--json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Whether there is an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// At least one answer is given.
    Answered,
    /// Nothing was good enough; `reason` says why.
    #[default]
    Abstained,
}

/// Why there is no answer, for programs; `reason` says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Nothing in the question names anything of the graph.
    NotLinked,
    /// A word of the question says something that was not understood.
    WordsNotUsed,
    /// The graph does not say what is asked about the topic.
    RelationAbsent,
    /// What was found does not prove an answer, or is not sure enough.
    EvidenceTooWeak,
    /// Two methods come to different answers, and neither is sure enough.
    RoutesContradict,
    /// Time, calls or tokens were used up.
    BudgetSpent,
}

impl Refusal {
    /// As it stands in JSON.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotLinked => "not-linked",
            Self::WordsNotUsed => "words-not-used",
            Self::RelationAbsent => "relation-absent",
            Self::EvidenceTooWeak => "evidence-too-weak",
            Self::RoutesContradict => "routes-contradict",
            Self::BudgetSpent => "budget-spent",
        }
    }
}

/// The reply to one question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The words of the question.
    pub question: String,
    /// Whether there is an answer.
    pub status: Status,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// The answers, best first.
    pub answers: Vec<AnswerEntity>,
    /// The answer in prose, where a language model wrote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Sentences of `text` that name or join things as no verified triple does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproved: Vec<String>,
    /// Answers that were held back, because nothing in the graph proves them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<Withheld>,
    /// The triples shown to the reasoner, best first. `rationale` points into them.
    pub evidence: Vec<Evidence>,
    /// The evidence as chains, where the organizer made some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<String>,
    /// The logical form that was run, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_form: Option<String>,
    /// The logical form in words, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// What was taken over from the question before it, in plain English: `its = Kenya`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<String>,
    /// Words of the question that the reading did not use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused_words: Vec<String>,
    /// What the words of the question stand for in the reading, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<WordMeaning>,
    /// Other ways to read the question, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// Other answers to the same question, each with its own proof: of the other readings that
    /// a promised coverage takes in, or of a method that contradicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Answer>,
    /// The answers as rows, where several things were asked of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    /// The SPARQL that was run, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparql: Option<String>,
    /// The forms that a model wrote, best first, before names were mended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written_forms: Vec<String>,
    /// The texts that they were written from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retrieved: Vec<RetrievedText>,
    /// The steps that were taken, where the question was taken apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// What the confidence was computed from, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub signals: BTreeMap<String, f32>,
    /// How the question was tied to the graph.
    pub links: Vec<LinkReport>,
    /// Milliseconds by stage.
    #[serde(default)]
    pub timings_ms: BTreeMap<String, f64>,
    /// What language models cost.
    #[serde(default)]
    pub llm: LlmUse,
    /// What a SPARQL service that holds the graph was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceUse>,
    /// What had to be left out or broken off, in words for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What shows that nobody changed the answer; the answer is complete before it is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

/// Evidence with scores, without reasoning: [`crate::Pipeline::retrieve`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retrieved {
    /// The words of the question.
    pub question: String,
    /// How the question was tied to the graph.
    pub links: Vec<LinkReport>,
    /// Entities and triples that were looked at.
    pub subgraph: [usize; 2],
    /// Triples, best first.
    pub evidence: Vec<Evidence>,
    /// What had to be left out, in words for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Milliseconds by stage.
    pub timings_ms: BTreeMap<String, f64>,
}

/// What some words of the question stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordMeaning {
    /// Where they begin and end, in Unicode code points of the question.
    pub from: usize,
    /// The first code point after them.
    pub to: usize,
    /// What they stand for, as the reading calls it where it can; empty where nothing was made of
    /// them.
    #[serde(rename = "as")]
    pub meaning: String,
    /// What that is.
    pub kind: WordKind,
    /// Its identity in the graph, where it is one thing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What words stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordKind {
    /// A thing.
    Entity,
    /// A class.
    Class,
    /// A relation, or several in a row.
    Relation,
    /// A value or a number.
    Value,
    /// What is done: counting, comparing, choosing the largest.
    Operator,
    /// Nothing: the reading does not use them.
    #[default]
    Unused,
}

/// Another way to read the question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// What to ask for: `--reading` and the question's `reading`.
    pub number: usize,
    /// In words.
    pub reading: String,
    /// Its share of all that the readings come to.
    #[serde(default)]
    pub share: f32,
    /// The logical form.
    pub logical_form: String,
    /// Words of the question that it does not use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused_words: Vec<String>,
}

/// What shows whether an answer was changed after it was written: see [`crate::verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// Checksum of the graph that was asked, where it lies in a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// SHA-256 of everything else in the answer.
    pub digest: String,
    /// The public key of whoever signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// The signature of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Rows about the answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The titles of the columns.
    pub columns: Vec<String>,
    /// For each row, for each column, the names and values that stand in it.
    pub rows: Vec<Vec<Vec<String>>>,
    /// Rows that the question does not ask for.
    #[serde(default, skip_serializing_if = "is_none_left")]
    pub left_out: usize,
}

/// A text that a form was written from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RetrievedText {
    /// `entities`, `relations` or `subgraphs`.
    pub aspect: String,
    /// The text.
    pub text: String,
    /// How much it counted, between 0 and 1; none where the network has no gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<f32>,
}

/// How a question was taken apart and answered step by step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// What the language model thought before it split the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// The smaller questions, in order.
    pub steps: Vec<SubQuestion>,
}

/// One smaller question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubQuestion {
    /// As the question was split.
    pub question: String,
    /// As it was asked, with earlier answers put in.
    pub asked: String,
    /// Indices into `evidence`: the triples it was answered from.
    pub evidence: Vec<usize>,
    /// The names that were given.
    pub answers: Vec<String>,
    /// All that was said.
    pub text: String,
}

/// An answer that was held back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Withheld {
    /// The name that was given.
    pub name: String,
    /// Why it is no answer.
    pub reason: String,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerEntity {
    /// Its label.
    pub name: String,
    /// Its identity in the graph.
    pub id: String,
    /// Between 0 and 1.
    pub confidence: f32,
    /// Indices into `evidence`: the triples that join it to the topics.
    pub rationale: Vec<usize>,
    /// It is no entity of the graph, but was computed from the triples of `rationale`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub computed: bool,
    /// Nothing in the evidence proves it. Such answers are held back unless they are asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ungrounded: bool,
}

/// One triple of the evidence, by labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Label of the head.
    pub head: String,
    /// Label of the relation.
    pub relation: String,
    /// Label of the tail.
    pub tail: String,
    /// Identities of head, relation and tail, so that the triple can be looked up again.
    pub ids: [String; 3],
    /// How relevant the retriever found it.
    pub score: f32,
    /// Whether the triple was looked up in the graph again and found.
    pub verified: bool,
}

/// A mention of the question and the entity that it was taken for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The words of the question, or the given topic.
    pub mention: String,
    /// Label of the entity.
    pub name: String,
    /// Its identity in the graph.
    pub id: String,
    /// Between 0 and 1.
    pub score: f32,
}

/// What language models cost for one question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlmUse {
    /// Number of calls.
    pub calls: u32,
    /// How many of them were answered from the cache on disk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u32,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
}

/// What a SPARQL service was asked for one question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceUse {
    /// Requests, those that were tried again included.
    pub requests: u64,
    /// How often the answer waited for some: requests side by side count once.
    pub rounds: u64,
}

impl LlmUse {
    /// Adds what was used elsewhere.
    pub fn add(&mut self, other: LlmUse) {
        self.calls += other.calls;
        self.cached += other.cached;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_none_left(count: &usize) -> bool {
    *count == 0
}
