//! A sentence as a query: all that it tells of, and not the candidates alone.
//!
//! The steps of a sentence's trails are walked from each topic; what every topic leads to is told of
//! too. This is ours: the published method answers with candidates only, of which there are few,
//! so a question with fifty answers could never be answered.

use std::collections::{BTreeMap, BTreeSet};

use super::Explored;
use super::sentences::{Sentence, Told};
use super::trails::{Ground, Trail, TrailConfig};

/// Entities with their trails.
type ByEnd = BTreeMap<u32, Vec<Trail>>;

impl Explored {
    /// What a sentence tells of beyond its candidates, with the trails to it.
    pub fn completed(&self, sentence: &Sentence, limits: &TrailConfig) -> Vec<(u32, Vec<Trail>)> {
        let triples = self.around.plain_triples();
        let ground = Ground::new(&triples, &self.named);
        let mut kinds: BTreeMap<u32, BTreeSet<Vec<(u32, bool)>>> = BTreeMap::new();
        let mut known = BTreeSet::new();
        for told in &sentence.answers {
            known.insert(told.candidate);
            for trail in told.trails.iter().map(|i| &self.trails[*i]) {
                let steps = trail.steps.iter();
                let steps = steps.map(|(t, forward)| (triples[*t as usize][1], *forward));
                let of_topic = kinds.entry(trail.topic).or_default();
                of_topic.insert(steps.collect());
            }
        }
        let mut left = limits.max_edges;
        let mut ends: Option<ByEnd> = None;
        for (topic, kinds) in kinds {
            let mut own = ByEnd::new();
            for steps in kinds {
                for trail in ground.along(topic, &steps, &mut left) {
                    let trails = own.entry(trail.end).or_default();
                    if trails.len() < limits.max_trails {
                        trails.push(trail);
                    }
                }
            }
            ends = Some(match ends {
                None => own,
                Some(mut all) => {
                    all.retain(|end, _| own.contains_key(end));
                    for (end, trails) in &mut all {
                        trails.extend(own.remove(end).into_iter().flatten());
                    }
                    all
                }
            });
        }
        let mut new = ends.unwrap_or_default();
        new.retain(|end, _| !known.contains(end) && self.named[*end as usize]);
        new.into_iter().collect()
    }

    /// A sentence's answers, all of them; trails that are new join the others.
    pub(super) fn complete(&mut self, sentence: usize, limits: &TrailConfig) -> Vec<Told> {
        let new = self.completed(&self.sentences[sentence], limits);
        let mut answers = self.sentences[sentence].answers.clone();
        for (candidate, trails) in new {
            let first = self.trails.len();
            self.trails.extend(trails);
            answers.push(Told {
                candidate,
                trails: (first..self.trails.len()).collect(),
            });
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{Graph, MemoryGraph, NameMatch};
    use wherefore_model::gnn2r::{Config, Network, Reader};
    use wherefore_model::tensor::Device;
    use wherefore_model::{Random, encode};

    use crate::retrieve::NeighbourhoodConfig;
    use crate::retrieve::gnn2r::{Answering, Gnn2r};

    #[test]
    fn a_sentence_tells_of_all_that_its_steps_lead_to_from_every_topic() {
        // Ann and Bob have two children, Ann one more; one candidate is looked into
        let graph = MemoryGraph::from_names([
            ("Ann", "child", "Cid"),
            ("Ann", "child", "Dan"),
            ("Bob", "child", "Cid"),
            ("Bob", "child", "Dan"),
            ("Ann", "child", "Eve"),
        ]);
        let encoder = encode::open("hashing").unwrap();
        let config = Config {
            dim: encoder.dim(),
            hidden: 4,
            ..Config::default()
        };
        let network = Network::new(config, &mut Random::new(1), &Device::Cpu).unwrap();
        let mut answering = Answering::default();
        answering.trails.max_length = 1;
        let limits = answering.trails.clone();
        let explorer = Gnn2r::from_parts(
            Reader::new(network).unwrap(),
            encoder.clone(),
            encoder,
            NeighbourhoodConfig::default(),
            answering,
        )
        .unwrap();
        let id = |name| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let name = |found: &super::Explored, local: u32| {
            let entity = found.around.subgraph.entities()[local as usize];
            graph.entity_label(entity).unwrap().into_owned()
        };
        let ask = |topics: &[&'static str]| {
            let topics: Vec<_> = topics.iter().map(|t| id(t)).collect();
            let mut found = explorer.explore("who?", &topics, &[], &graph).unwrap();
            // as if Cid alone had been near enough
            let sentence = &found.sentences[0];
            let of = |told: &super::Told| told.candidate;
            let cid = (sentence.answers.iter().map(of)).find(|c| name(&found, *c) == "Cid");
            found.sentences[0]
                .answers
                .retain(|told| Some(told.candidate) == cid);
            let answers = found.complete(0, &limits);
            let mut names: Vec<(String, usize)> = (answers.iter())
                .map(|told| (name(&found, told.candidate), told.trails.len()))
                .collect();
            names.sort();
            names
        };
        let wanted = |all: &[(&str, usize)]| -> Vec<(String, usize)> {
            all.iter()
                .map(|(name, n)| ((*name).to_owned(), *n))
                .collect()
        };
        assert_eq!(ask(&["Ann"]), wanted(&[("Cid", 1), ("Dan", 1), ("Eve", 1)]));
        // Eve is no child of Bob's; the others have a trail to each topic
        assert_eq!(ask(&["Ann", "Bob"]), wanted(&[("Cid", 2), ("Dan", 2)]));
    }
}
