//! A question with what is known to be right.

use serde::{Deserialize, Serialize};
use wherefore::Question;
use wherefore_graph::MemoryGraph;

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
