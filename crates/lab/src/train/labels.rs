//! Which triples of a neighbourhood are positive: by the answers alone, or by a file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wherefore::graph::{EntityId, Graph, Subgraph};

use crate::error::Result;
use crate::questions::{GoldQuestion, NamedTriple, json_records, utf8};
use crate::supervise::{RelationPaths, ShortestPaths};

/// Where labels come from.
#[derive(Clone, Debug)]
pub enum Labels {
    /// Triples on shortest paths between topics and answers.
    Weak(ShortestPaths),
    /// Triples on the relation sequences that give the answers best; where none gives any, those
    /// on shortest paths.
    Sequences(RelationPaths),
    /// Triples by question, from a file. Questions that it leaves out have weak labels.
    Refined(Refined),
}

/// How labels are made of the answers alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Supervision {
    /// [`ShortestPaths`], as the published methods have it.
    #[default]
    ShortestPaths,
    /// [`RelationPaths`].
    RelationPaths,
}

impl Supervision {
    /// Labels made so, of sequences with at most `hops` steps.
    pub fn labels(self, hops: usize) -> Labels {
        match self {
            Supervision::ShortestPaths => Labels::Weak(ShortestPaths::default()),
            Supervision::RelationPaths => Labels::Sequences(RelationPaths {
                max_length: hops,
                ..RelationPaths::default()
            }),
        }
    }
}

/// Labels from a file: JSON lines `{"id", "paths": [[[head, relation, tail], …], …]}`, one for each
/// question.
#[derive(Clone, Debug)]
pub struct Refined {
    /// Checksum of the file.
    pub checksum: String,
    triples: HashMap<String, HashSet<NamedTriple>>,
    paths: HashMap<String, Vec<Vec<NamedTriple>>>,
    rest: ShortestPaths,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    #[serde(default)]
    paths: Vec<Vec<NamedTriple>>,
}

impl Labels {
    /// Reads labels from a file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = crate::questions::read_file(path)?;
        let records = json_records::<Line>(path, utf8(path, &bytes)?, "labels")?;
        Ok(Self::Refined(Refined {
            checksum: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes)),
            triples: (records.iter())
                .map(|(_, line)| {
                    let triples = line.paths.iter().flatten().cloned();
                    (line.id.clone(), triples.collect())
                })
                .collect(),
            paths: (records.into_iter())
                .map(|(_, line)| (line.id, line.paths))
                .collect(),
            rest: ShortestPaths::default(),
        }))
    }

    /// The paths that a file has for a question.
    pub(super) fn paths(&self, id: &str) -> Option<&[Vec<NamedTriple>]> {
        match self {
            Labels::Refined(refined) => refined.paths.get(id).map(Vec::as_slice),
            _ => None,
        }
    }

    /// What tells these labels from others.
    pub(super) fn origin(&self) -> serde_json::Value {
        #[derive(Serialize)]
        struct File<'a> {
            file: &'a str,
        }
        let value = match self {
            Labels::Weak(weak) => serde_json::to_value(weak),
            Labels::Sequences(sequences) => serde_json::to_value(sequences),
            Labels::Refined(refined) => serde_json::to_value(File {
                file: &refined.checksum,
            }),
        };
        value.expect("labels are described by texts and numbers")
    }

    /// Whether each triple of the subgraph is positive.
    pub(super) fn of(
        &self,
        question: &GoldQuestion,
        subgraph: &Subgraph,
        topics: &[EntityId],
        answers: &[EntityId],
        graph: &dyn Graph,
    ) -> Result<Vec<bool>> {
        let shortest = ShortestPaths::default();
        let weak = match self {
            Labels::Weak(weak) => weak,
            Labels::Sequences(sequences) => match sequences.label(subgraph, topics, answers) {
                Some(positive) => return Ok(positive),
                None => &shortest,
            },
            Labels::Refined(refined) => match refined.triples.get(&question.id) {
                None => &refined.rest,
                Some(picked) => {
                    return (0..subgraph.triples().len())
                        .map(|i| {
                            let t = subgraph.triple(i);
                            let label = |e| graph.entity_label(e).map(std::borrow::Cow::into_owned);
                            let relation = graph.relation_label(t.relation)?.into_owned();
                            Ok(picked.contains(&[label(t.head)?, relation, label(t.tail)?]))
                        })
                        .collect();
                }
            },
        };
        Ok(weak.label(subgraph, topics, answers)?.positive)
    }
}

#[cfg(test)]
mod tests {
    use wherefore::graph::{NameMatch, toy};
    use wherefore::retrieve::{Neighbourhood, NeighbourhoodConfig};

    use super::*;

    #[test]
    fn a_file_of_paths_says_what_is_positive_and_the_rest_is_weak() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("labels.jsonl");
        let line = r#"{"id":"a","paths":[[["Lou Seal","mascot of","San Francisco Giants"]]]}"#;
        std::fs::write(&file, format!("{line}\n")).unwrap();
        let labels = Labels::read(&file).unwrap();
        let graph = toy::graph();
        let named = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let (topic, answer) = (named("Lou Seal"), named("San Francisco"));
        let config = NeighbourhoodConfig::default();
        let around = Neighbourhood::cut(&graph, &[topic], &config).unwrap();
        let count = |id: &str| {
            let question = GoldQuestion {
                id: id.into(),
                ..GoldQuestion::default()
            };
            let positive = labels
                .of(&question, &around.subgraph, &[topic], &[answer], &graph)
                .unwrap();
            positive.iter().filter(|p| **p).count()
        };
        assert_eq!(count("a"), 1);
        assert_eq!(count("b"), 2);
        std::fs::write(&file, "{\"id\":3}\n").unwrap();
        assert!(Labels::read(&file).is_err());
    }
}
