//! The methods that have a name, and what is trained for them: the only list of them.
//!
//! A new method is a variant here with its row in each `match`; the compiler names the others.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A method by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The reader beside what else there is.
    Auto,
    /// The reader: a question as a logical form.
    Read,
    /// A language model with an adapter writes logical forms.
    Amar,
    /// Triples nearest to the question, without training.
    Similarity,
    /// QR-GAT.
    Qsrag,
    /// GNN2R.
    Gnn2r,
    /// QR-GAT's triples as ReG's chains.
    Reg,
    /// SubgraphRAG's network over distances, and chains.
    DistanceMlp,
    /// Principal neighbourhood aggregation, and chains.
    Pna,
    /// Sequences of relations.
    RelationPlan,
    /// KG-RAG: a language model answers in steps.
    KgRag,
    /// The same, choosing relations first.
    KgRagRelations,
    /// A language model by itself.
    Llm,
    /// A language model by itself, in steps.
    LlmQd,
    /// One call of a language model over the nearest triples.
    LlmKg,
}

/// Former names of the reader.
pub const FORMER_NAMES: [&str; 3] = ["walk", "forms", "overlap"];

impl Method {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Auto,
        Self::Read,
        Self::Amar,
        Self::Similarity,
        Self::Qsrag,
        Self::Gnn2r,
        Self::Reg,
        Self::DistanceMlp,
        Self::Pna,
        Self::RelationPlan,
        Self::KgRag,
        Self::KgRagRelations,
        Self::Llm,
        Self::LlmQd,
        Self::LlmKg,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Read => "read",
            Self::Amar => "amar",
            Self::Similarity => "similarity",
            Self::Qsrag => "qsrag",
            Self::Gnn2r => "gnn2r",
            Self::Reg => "reg",
            Self::DistanceMlp => "distance-mlp",
            Self::Pna => "pna",
            Self::RelationPlan => "relation-plan",
            Self::KgRag => "kg-rag",
            Self::KgRagRelations => "kg-rag-relations",
            Self::Llm => "llm",
            Self::LlmQd => "llm+qd",
            Self::LlmKg => "llm+kg",
        }
    }

    /// All names, as a sentence lists them.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    /// The method of a name, or of a former one.
    fn from_str(name: &str) -> Result<Self, Error> {
        if FORMER_NAMES.contains(&name) {
            return Ok(Self::Read);
        }
        let found = Self::ALL.into_iter().find(|method| method.name() == name);
        found.ok_or_else(|| {
            let all = Self::names();
            Error::Config(format!(
                "there is no method `{name}`; the methods are {all}"
            ))
        })
    }
}

/// What is trained, as a checkpoint and `wherefore train` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trained {
    /// QR-GAT.
    QrGat,
    /// GNN2R.
    Gnn2r,
    /// SubgraphRAG's network over distances.
    DistanceMlp,
    /// Principal neighbourhood aggregation.
    Pna,
    /// Sequences of relations.
    RelationPlan,
    /// AMAR's retriever of relations.
    Relations,
    /// AMAR's adapter.
    Amar,
    /// The reader's matcher, adapted to a graph.
    Read,
}

impl Trained {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::QrGat,
        Self::Gnn2r,
        Self::DistanceMlp,
        Self::Pna,
        Self::RelationPlan,
        Self::Relations,
        Self::Amar,
        Self::Read,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QrGat => "qr-gat",
            Self::Gnn2r => "gnn2r",
            Self::DistanceMlp => "distance-mlp",
            Self::Pna => "pna",
            Self::RelationPlan => "relation-plan",
            Self::Relations => "relations",
            Self::Amar => "amar",
            Self::Read => "read",
        }
    }

    /// The method that answers with it; none where it only helps another.
    pub const fn method(self) -> Option<Method> {
        match self {
            Self::QrGat => Some(Method::Qsrag),
            Self::Gnn2r => Some(Method::Gnn2r),
            Self::DistanceMlp => Some(Method::DistanceMlp),
            Self::Pna => Some(Method::Pna),
            Self::RelationPlan => Some(Method::RelationPlan),
            Self::Relations => None,
            Self::Amar => Some(Method::Amar),
            Self::Read => Some(Method::Read),
        }
    }
}

impl FromStr for Trained {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| Error::Config(format!("no method uses a checkpoint of `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_is_whole_and_each_name_leads_back() {
        for (place, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(method as usize, place, "{method}");
            assert_eq!(method.name().parse::<Method>().unwrap(), method);
        }
        for (place, kind) in Trained::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{}", kind.name());
            assert_eq!(kind.name().parse::<Trained>().unwrap(), kind);
        }
        assert_eq!("walk".parse::<Method>().unwrap(), Method::Read);
        let unknown = "magic".parse::<Method>().unwrap_err().to_string();
        assert!(
            unknown.contains("`magic`") && unknown.contains("llm+kg"),
            "{unknown}"
        );
    }
}
