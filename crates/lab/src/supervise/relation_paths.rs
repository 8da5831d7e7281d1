//! Positive triples: those on the relation sequences that give the answers best.
//!
//! Ours, after the votes of GNN2R's Algorithm 2. A shortest path need not be what was asked: in a
//! graph with hubs an answer lies as near by a year or a genre as by the relation of the question.
//! So sequences are compared by all that they give. A sequence of steps, each a relation walked
//! along or against its direction, leads from a topic q to a set of entities:
//!
//! ```text
//! R(σ) = entities that walks from q along σ end at, q left out
//! v(σ) = F1(R(σ), A) − λ·(|σ| − 1)
//! T⁺   = ⋃_q { t : t on a walk from q along σ to an answer, v(σ) the highest for q }
//! ```
//!
//! A is the set of gold answers inside the subgraph, λ ([`RelationPaths::per_step`]) what a step
//! must gain: with few answers some long sequence hits them by chance. Sequences of equal v all
//! count. Walks do not come back to q. A question none of whose topics leads to an answer has no
//! such triple.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, Hop, RelationId, Subgraph};

/// How sequences are looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RelationPaths {
    /// Most steps of a sequence.
    pub max_length: usize,
    /// λ: by how much F1 must be higher for each step more.
    pub per_step: f64,
    /// Edges looked at for each topic, at most; what was found until then counts.
    pub max_edges: usize,
}

impl Default for RelationPaths {
    fn default() -> Self {
        Self {
            max_length: 3,
            per_step: 0.1,
            max_edges: 20_000_000,
        }
    }
}

/// Votes nearer than this are equal.
const EQUAL: f64 = 1e-9;

impl RelationPaths {
    /// Whether each triple of a question's subgraph is positive; none if no answer is reached.
    /// Topics and answers are entities of the larger graph.
    pub fn label(
        &self,
        subgraph: &Subgraph,
        topics: &[EntityId],
        answers: &[EntityId],
    ) -> Option<Vec<bool>> {
        let ground = Ground::new(subgraph);
        let mut positive = vec![false; subgraph.triples().len()];
        let mut found = false;
        self.search(&ground, topics, answers, |search| {
            for sequence in std::mem::take(&mut search.kept) {
                found = true;
                search.mark_walks(&sequence, &mut positive);
            }
        });
        found.then_some(positive)
    }

    /// The sequences themselves, topic by topic, in the ids of the larger graph.
    pub fn sequences(
        &self,
        ground: &Ground<'_>,
        topics: &[EntityId],
        answers: &[EntityId],
    ) -> Vec<(EntityId, Vec<Hop>)> {
        let mut found = Vec::new();
        let subgraph = ground.subgraph;
        self.search(ground, topics, answers, |search| {
            for sequence in &search.kept {
                let hop = |step: &Step| Hop {
                    relation: subgraph.relations()[*step as usize / 2],
                    forward: step.is_multiple_of(2),
                };
                let hops = sequence.iter().map(hop).collect();
                found.push((subgraph.entity(EntityId(search.topic)), hops));
            }
        });
        found
    }

    fn search(
        &self,
        ground: &Ground<'_>,
        topics: &[EntityId],
        answers: &[EntityId],
        mut done: impl FnMut(&mut Search<'_>),
    ) {
        let nodes = ground.subgraph.entities().len();
        let mut is_answer = vec![false; nodes];
        for answer in answers.iter().filter_map(|a| ground.own.get(a)) {
            is_answer[*answer as usize] = true;
        }
        let mut starts: Vec<u32> = topics
            .iter()
            .filter_map(|t| ground.own.get(t).copied())
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let away = ground.steps.distances(&is_answer);
        let count = is_answer.iter().filter(|a| **a).count();
        for topic in starts {
            let mut search = Search {
                steps: &ground.steps,
                is_answer: &is_answer,
                away: &away,
                answers: count - usize::from(is_answer[topic as usize]),
                topic,
                mark: vec![0; nodes],
                marks: 0,
                edges_left: self.max_edges,
                per_step: self.per_step,
                best: f64::NEG_INFINITY,
                kept: Vec::new(),
            };
            for length in 1..=self.max_length {
                // not even all answers and nothing else would be enough
                if 1.0 - self.per_step * (length - 1) as f64 + EQUAL < search.best {
                    break;
                }
                search.extend(&[topic], length, &mut Vec::new());
            }
            done(&mut search);
        }
    }
}

/// A subgraph made ready for many searches.
pub struct Ground<'a> {
    subgraph: &'a Subgraph,
    steps: Steps,
    own: HashMap<EntityId, u32>,
}

impl<'a> Ground<'a> {
    /// Makes a subgraph ready.
    pub fn new(subgraph: &'a Subgraph) -> Self {
        Self {
            steps: Steps::new(subgraph),
            own: subgraph.entities().iter().copied().zip(0..).collect(),
            subgraph,
        }
    }
}

/// A whole graph as a subgraph of itself, for graphs that are small enough.
pub fn whole(graph: &dyn Graph) -> crate::error::Result<Subgraph> {
    let naming = graph.naming_relations();
    let mut triples = Vec::new();
    for head in (0..graph.entity_bound() as u32).map(EntityId) {
        for edge in graph.outgoing(head)?.iter() {
            if !naming.contains(&edge.relation) {
                triples.push(wherefore_graph::Triple {
                    head,
                    relation: edge.relation,
                    tail: edge.entity,
                });
            }
        }
    }
    Ok(Subgraph::new(
        (0..graph.entity_bound() as u32).map(EntityId).collect(),
        (0..graph.relation_bound() as u32).map(RelationId).collect(),
        triples,
    ))
}

/// A relation along (even) or against (odd) its direction.
type Step = u32;

/// Every edge of the subgraph from either end.
struct Steps {
    offsets: Vec<u32>,
    /// Step, node at its other end, triple; sorted by step within each node.
    edges: Vec<(Step, u32, u32)>,
}

impl Steps {
    fn new(subgraph: &Subgraph) -> Self {
        let mut all: Vec<(u32, (Step, u32, u32))> = Vec::new();
        for (i, t) in (0u32..).zip(subgraph.triples()) {
            all.push((t.head.0, (2 * t.relation.0, t.tail.0, i)));
            all.push((t.tail.0, (2 * t.relation.0 + 1, t.head.0, i)));
        }
        all.sort_unstable();
        let nodes = subgraph.entities().len() as u32;
        let offsets = (0..=nodes)
            .map(|node| all.partition_point(|(from, _)| *from < node) as u32)
            .collect();
        Self {
            offsets,
            edges: all.into_iter().map(|(_, edge)| edge).collect(),
        }
    }

    fn of(&self, node: u32) -> &[(Step, u32, u32)] {
        let [from, to] = [node, node + 1].map(|n| self.offsets[n as usize] as usize);
        &self.edges[from..to]
    }

    /// Steps from each node to the nearest answer.
    fn distances(&self, is_answer: &[bool]) -> Vec<usize> {
        let mut away: Vec<usize> = (is_answer.iter())
            .map(|a| if *a { 0 } else { usize::MAX })
            .collect();
        let mut queue: Vec<u32> = (0..is_answer.len() as u32)
            .filter(|n| is_answer[*n as usize])
            .collect();
        let mut next = 0;
        while next < queue.len() {
            let node = queue[next];
            next += 1;
            for &(_, other, _) in self.of(node) {
                if away[other as usize] == usize::MAX {
                    away[other as usize] = away[node as usize] + 1;
                    queue.push(other);
                }
            }
        }
        away
    }
}

struct Search<'a> {
    steps: &'a Steps,
    is_answer: &'a [bool],
    away: &'a [usize],
    answers: usize,
    topic: u32,
    /// Nodes seen in the set being made carry its number.
    mark: Vec<u32>,
    marks: u32,
    edges_left: usize,
    per_step: f64,
    best: f64,
    kept: Vec<Vec<Step>>,
}

impl Search<'_> {
    /// Tries every sequence that goes on from `here`, where `done` has led, for `left` more steps.
    fn extend(&mut self, here: &[u32], left: usize, done: &mut Vec<Step>) {
        for (step, reached) in self.next(here, left) {
            done.push(step);
            if left == 1 {
                self.judge(&reached, done);
            } else {
                self.extend(&reached, left - 1, done);
            }
            done.pop();
        }
    }

    /// What each step leads to from `here`, where an answer can still be reached in time.
    fn next(&mut self, here: &[u32], left: usize) -> Vec<(Step, Vec<u32>)> {
        let count: usize = here.iter().map(|n| self.steps.of(*n).len()).sum();
        if count > self.edges_left {
            self.edges_left = 0;
            return Vec::new();
        }
        self.edges_left -= count;
        let edges = || here.iter().flat_map(|n| self.steps.of(*n));
        let mut towards: Vec<Step> = edges()
            .filter(|(_, other, _)| *other != self.topic && self.away[*other as usize] < left)
            .map(|(step, ..)| *step)
            .collect();
        towards.sort_unstable();
        towards.dedup();
        let mut ends: Vec<(Step, u32)> = edges()
            .filter(|(step, other, _)| *other != self.topic && towards.binary_search(step).is_ok())
            .map(|&(step, other, _)| (step, other))
            .collect();
        ends.sort_unstable();
        ends.dedup();
        ends.chunk_by(|a, b| a.0 == b.0)
            .map(|group| (group[0].0, group.iter().map(|(_, node)| *node).collect()))
            .collect()
    }

    fn judge(&mut self, reached: &[u32], sequence: &[Step]) {
        let right = reached
            .iter()
            .filter(|n| self.is_answer[**n as usize])
            .count();
        let f1 = 2.0 * right as f64 / (reached.len() + self.answers) as f64;
        let vote = f1 - self.per_step * (sequence.len() - 1) as f64;
        if right == 0 || vote < self.best - EQUAL {
            return;
        }
        if vote > self.best + EQUAL {
            self.kept.clear();
            self.best = vote;
        }
        self.kept.push(sequence.to_vec());
    }

    /// Marks the triples on walks along `sequence` that end at answers.
    fn mark_walks(&mut self, sequence: &[Step], positive: &mut [bool]) {
        let mut sets = vec![vec![self.topic]];
        for step in sequence {
            let here = &sets[sets.len() - 1];
            let mut reached: Vec<u32> = (here.iter().flat_map(|n| self.steps.of(*n)))
                .filter(|(s, other, _)| s == step && *other != self.topic)
                .map(|(_, other, _)| *other)
                .collect();
            reached.sort_unstable();
            reached.dedup();
            sets.push(reached);
        }
        let mut wanted: Vec<u32> = sets.pop().unwrap_or_default();
        wanted.retain(|n| self.is_answer[*n as usize]);
        for (set, step) in sets.iter().zip(sequence).rev() {
            self.marks += 1;
            for node in &wanted {
                self.mark[*node as usize] = self.marks;
            }
            wanted = set.clone();
            wanted.retain(|node| {
                let mut leads = false;
                for &(s, other, triple) in self.steps.of(*node) {
                    if s == *step && self.mark[other as usize] == self.marks {
                        positive[triple as usize] = true;
                        leads = true;
                    }
                }
                leads
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wherefore_graph::Triple;

    use super::*;

    fn positives(triples: &[(u32, u32, u32)], topic: u32, answers: &[u32]) -> Vec<usize> {
        let triples: Vec<Triple> = triples.iter().map(|t| Triple::new(t.0, t.1, t.2)).collect();
        let subgraph = Subgraph::from_triples(&[EntityId(topic)], &triples);
        let answers: Vec<EntityId> = answers.iter().map(|a| EntityId(*a)).collect();
        let labels = RelationPaths::default().label(&subgraph, &[EntityId(topic)], &answers);
        let labels = labels.unwrap_or_default();
        (0..labels.len()).filter(|i| labels[*i]).collect()
    }

    #[test]
    fn the_sequence_that_gives_the_answers_and_little_else_wins_over_a_hub() {
        // film 0 has director 1, who made films 2 and 3 (relation 0); all films share genre 9
        // (relation 1), and so do films 4, 5 and 6
        let graph = [
            (0, 0, 1),
            (2, 0, 1),
            (3, 0, 1),
            (0, 1, 9),
            (2, 1, 9),
            (3, 1, 9),
            (4, 1, 9),
            (5, 1, 9),
            (6, 1, 9),
        ];
        // by the director: F1 1 − 0.1; by the genre: R = {2, …, 6}, F1 4/7 − 0.1
        assert_eq!(positives(&graph, 0, &[2, 3]), [0, 1, 2]);
        // with answers that only the genre gives, its walks to answers count, and no others:
        // F1 8/9 against the director's 4/6
        assert_eq!(positives(&graph, 0, &[2, 3, 4, 5]), [3, 4, 5, 6, 7]);
        // nobody to be reached
        assert!(positives(&graph, 0, &[77]).is_empty());
    }

    #[test]
    fn a_longer_sequence_must_pay_for_its_steps() {
        // 0 –0→ 1, 0 –0→ 2: the answer 1 has F1 2/3 in one step; 0 –1→ 3 –1→ 1 has 1 in two, and
        // wins with 0.9; but 0 –1→ 3 –1→ 4 –1→ 1 would have 0.8
        let short = [(0, 0, 1), (0, 0, 2), (0, 1, 3), (3, 1, 1)];
        assert_eq!(positives(&short, 0, &[1]), [2, 3]);
        let sure = [(0, 0, 1), (0, 1, 3), (3, 1, 1)];
        assert_eq!(positives(&sure, 0, &[1]), [0]);
        // equal votes all count
        let both = [(0, 0, 1), (0, 1, 1)];
        assert_eq!(positives(&both, 0, &[1]), [0, 1]);
    }

    /// All walks of at most three steps that do not come back to the topic: steps and triples.
    fn walks(triples: &[Triple], topic: u32) -> Vec<(Vec<Step>, Vec<usize>, u32)> {
        let mut all = Vec::new();
        let mut open = vec![(vec![], vec![], topic)];
        for _ in 0..3 {
            let mut longer = Vec::new();
            for (steps, over, at) in &open {
                for (i, t) in triples.iter().enumerate() {
                    let ways = [(t.head.0, 0, t.tail.0), (t.tail.0, 1, t.head.0)];
                    for (from, against, to) in ways {
                        if from == *at && to != topic {
                            let steps = [&steps[..], &[2 * t.relation.0 + against]].concat();
                            longer.push((steps, [&over[..], &[i]].concat(), to));
                        }
                    }
                }
            }
            all.extend(longer.clone());
            open = longer;
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn labels_equal_those_of_all_walks(
            edges in prop::collection::btree_set((0u32..6, 0u32..2, 0u32..6), 1..12),
            answers in prop::collection::btree_set(0u32..6, 1..4),
        ) {
            let edges: Vec<_> = edges.into_iter().collect();
            let triples: Vec<Triple> = edges.iter().map(|t| Triple::new(t.0, t.1, t.2)).collect();
            let answers: Vec<u32> = answers.into_iter().collect();
            let inside: Vec<u32> = answers.iter().copied()
                .filter(|a| *a != 0 && edges.iter().any(|e| e.0 == *a || e.2 == *a))
                .collect();
            let walks = walks(&triples, 0);
            let mut sequences: Vec<Vec<Step>> = walks.iter().map(|w| w.0.clone()).collect();
            sequences.sort();
            sequences.dedup();
            let vote = |sequence: &Vec<Step>| {
                let mut ends: Vec<u32> =
                    walks.iter().filter(|w| w.0 == *sequence).map(|w| w.2).collect();
                ends.sort_unstable();
                ends.dedup();
                let right = ends.iter().filter(|e| inside.contains(e)).count();
                let f1 = 2.0 * right as f64 / (ends.len() + inside.len()) as f64;
                (right > 0).then(|| f1 - 0.1 * (sequence.len() - 1) as f64)
            };
            let best = sequences.iter().filter_map(vote).fold(f64::NEG_INFINITY, f64::max);
            let mut plain: Vec<usize> = walks.iter()
                .filter(|w| inside.contains(&w.2))
                .filter(|w| vote(&w.0).is_some_and(|v| v > best - EQUAL))
                .flat_map(|w| w.1.clone())
                .collect();
            plain.sort_unstable();
            plain.dedup();
            prop_assert_eq!(positives(&edges, 0, &answers), plain);
        }
    }
}
