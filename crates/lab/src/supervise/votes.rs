//! Which sentences tell what a question asks, by votes of its answers.
//!
//! Wang et al., GNN2R, algorithm 2: each subgraph behind a sentence becomes a query by turning its
//! answer into a variable; the query is run on the graph, and
//!
//! ```text
//! vote(sentence) = |results ∩ gold| − |results \ gold|       over the results of all its subgraphs
//! positive       = the highest vote, and of these the fewest mentions
//! negative       = all others
//! ```
//!
//! Those that have the highest vote and more mentions are kept apart, so that a training may also
//! take them for what they might be: the longer way that the question spells out.
//!
//! A query holds every entity of its subgraph but the answer, so what can stand in the answer's place
//! is read off the last triple of each trail: one row of the graph. A subgraph with several trails
//! has the entities that all of them allow. All combinations of trails together allow what some trail
//! to each topic allows, so combinations need not be gone through one by one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wherefore::graph::{EntityId, Graph};
use wherefore::retrieve::gnn2r::{Explored, standing_in};

use crate::error::Result;

/// Sentences by what they are to a question: places in [`Explored::sentences`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    /// Those with the highest vote and the fewest mentions.
    pub positive: Vec<usize>,
    /// Those with the highest vote and more mentions.
    pub longer: Vec<usize>,
    /// Those with fewer votes.
    pub lower: Vec<usize>,
}

/// Votes on what was found for a question with these answers.
pub fn votes(found: &Explored, gold: &[EntityId], graph: &dyn Graph) -> Result<Votes> {
    let mut allowed: HashMap<usize, Vec<EntityId>> = HashMap::new();
    let mut counted = Vec::with_capacity(found.sentences.len());
    for sentence in &found.sentences {
        let mut results: BTreeSet<EntityId> = BTreeSet::new();
        for told in &sentence.answers {
            let mut by_topic: BTreeMap<u32, BTreeSet<EntityId>> = BTreeMap::new();
            for &at in &told.trails {
                let trail = &found.trails[at];
                let ends = match allowed.get(&at) {
                    Some(ends) => ends,
                    None => {
                        let ends = standing_in(found, trail, graph)?;
                        allowed.entry(at).or_insert(ends)
                    }
                };
                by_topic.entry(trail.topic).or_default().extend(ends);
            }
            let mut topics = by_topic.into_values();
            if let Some(first) = topics.next() {
                results.extend(topics.fold(first, |all, more| &all & &more));
            }
        }
        let right = results.iter().filter(|e| gold.contains(e)).count() as i64;
        counted.push((2 * right - results.len() as i64, sentence.mentions));
    }
    let top = counted.iter().map(|(vote, _)| *vote).max();
    let least = (counted.iter())
        .filter(|(vote, _)| Some(*vote) == top)
        .map(|(_, mentions)| *mentions)
        .min();
    let (best, lower): (Vec<usize>, _) =
        (0..counted.len()).partition(|i| Some(counted[*i].0) == top);
    let (positive, longer) = best.into_iter().partition(|i| Some(counted[*i].1) == least);
    Ok(Votes {
        positive,
        longer,
        lower,
    })
}

#[cfg(test)]
mod tests {
    use wherefore::graph::{MemoryGraph, NameMatch};
    use wherefore::model::gnn2r::{Config, Network, Reader};
    use wherefore::model::tensor::Device;
    use wherefore::model::{Random, encode};
    use wherefore::retrieve::NeighbourhoodConfig;
    use wherefore::retrieve::gnn2r::{Answering, Gnn2r};

    use super::*;

    /// What an untrained network explores, with sentences as texts.
    fn vote(
        graph: &MemoryGraph,
        topics: &[&str],
        gold: &[&str],
        length: usize,
    ) -> (Vec<String>, Vec<String>) {
        let encoder = encode::open("hashing").unwrap();
        let config = Config {
            dim: encoder.dim(),
            hidden: 4,
            ..Config::default()
        };
        let network = Network::new(config, &mut Random::new(1), &Device::Cpu).unwrap();
        let mut answering = Answering::default();
        answering.trails.max_length = length;
        let explorer = Gnn2r::from_parts(
            Reader::new(network).unwrap(),
            encoder.clone(),
            encoder,
            NeighbourhoodConfig::default(),
            answering,
        )
        .unwrap();
        let named = |name: &&str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let topics: Vec<EntityId> = topics.iter().map(named).collect();
        let gold: Vec<EntityId> = gold.iter().map(named).collect();
        let found = explorer.explore("who", &topics, &gold, graph).unwrap();
        let votes = votes(&found, &gold, graph).unwrap();
        let texts = |places: &[usize]| {
            let mut texts: Vec<String> = places
                .iter()
                .map(|i| found.sentences[*i].text.clone())
                .collect();
            texts.sort();
            texts
        };
        (
            texts(&votes.positive),
            texts(&[votes.longer, votes.lower].concat()),
        )
    }

    #[test]
    fn the_sentence_that_only_answers_fit_wins_and_the_shorter_of_two() {
        let graph = MemoryGraph::from_names([
            ("Ann", "spouse", "Bob"),
            ("Ann", "friend", "Bob"),
            ("Ann", "friend", "Cid"),
            ("Bob", "spouse", "Ann"),
        ]);
        let (positive, negative) = vote(&graph, &["Ann"], &["Bob"], 2);
        // spouse of Ann: 1. has the spouse Ann: 1. friend of Ann: Bob, Cid: 0
        assert_eq!(
            positive,
            ["who has the spouse Ann", "who is the spouse of Ann"]
        );
        assert!(negative.contains(&"who is the friend of Ann".to_owned()));
        // the longer ways to Bob and Cid have fewer votes, or as many and more mentions
        assert!(negative.iter().all(|text| text.len() > positive[0].len()));
    }

    #[test]
    fn two_topics_allow_what_both_allow() {
        let graph = MemoryGraph::from_names([
            ("x", "plays at", "Roma"),
            ("y", "plays at", "Roma"),
            ("x", "plays for", "Italy"),
            ("z", "plays for", "Italy"),
            ("x", "born in", "Italy"),
            ("y", "born in", "Italy"),
        ]);
        let (positive, negative) = vote(&graph, &["Italy", "Roma"], &["x"], 1);
        // plays for Italy and at Roma: x alone, 1. born in Italy and plays at Roma: x and y, 0
        assert_eq!(positive.len(), 1);
        assert!(
            positive[0].contains("has the plays for Italy"),
            "{positive:?}"
        );
        assert!(
            positive[0].contains("has the plays at Roma"),
            "{positive:?}"
        );
        assert_eq!(negative.len(), 1);
    }
}
