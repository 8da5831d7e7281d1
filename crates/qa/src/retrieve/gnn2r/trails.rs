//! Ways from topics to candidates inside a neighbourhood, all candidates at once.
//!
//! ```text
//! cost(v₀ → … → vₙ) = number of named entities among v₁ … vₙ
//! b(v)              = least cost from v to any candidate
//! ```
//!
//! A trail walks no triple twice in a row, along or against its direction: it does not turn on its
//! heel. It may meet an entity again, and a triple, since a question may lead back to its topic (`who
//! is the child of her son's father?`). Nodes without a name are passed through: they cost nothing,
//! and no trail ends there. After cost c, v is entered only if c + b(v) stays within the limit, so
//! one search from a topic serves all candidates and hardly ever runs into dead ends. Cheaper trails
//! come first: the search is made once for each cost.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How far and how long trails are looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrailConfig {
    /// Most named entities after the topic.
    pub max_length: usize,
    /// Most trails between one topic and one candidate.
    pub max_trails: usize,
    /// Most sentences for one candidate.
    pub max_combinations: usize,
    /// Most edges looked at, for a question.
    pub max_edges: usize,
    /// Only the cheapest trails between a topic and a candidate: GNN2R-fast.
    pub shortest_only: bool,
}

impl Default for TrailConfig {
    fn default() -> Self {
        Self {
            max_length: 2,
            max_trails: 100,
            max_combinations: 1000,
            max_edges: 2_000_000,
            shortest_only: false,
        }
    }
}

impl TrailConfig {
    /// Refuses what finds nothing, or has no end.
    pub fn check(&self) -> Result<()> {
        if !(1..=4).contains(&self.max_length) {
            return Err(Error::Config(
                "`trails.max_length` must be from 1 to 4".into(),
            ));
        }
        if self.max_trails == 0 || self.max_combinations == 0 || self.max_edges == 0 {
            return Err(Error::Config(
                "`trails.max_trails`, `trails.max_combinations` and `trails.max_edges` must be at \
                 least 1"
                    .into(),
            ));
        }
        Ok(())
    }
}

/// A way from a topic to a candidate, in local ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trail {
    /// Where it begins.
    pub topic: u32,
    /// Where it ends.
    pub end: u32,
    /// Its triples in order, `true` where walked from head to tail.
    pub steps: Vec<(u32, bool)>,
}

/// A neighbourhood as the search walks it.
pub(super) struct Ground<'a> {
    triples: &'a [[u32; 3]],
    named: &'a [bool],
    offsets: Vec<u32>,
    edges: Vec<(u32, u32, bool)>, // triple, other end, forward
}

impl<'a> Ground<'a> {
    pub(super) fn new(triples: &'a [[u32; 3]], named: &'a [bool]) -> Self {
        let mut offsets = vec![0u32; named.len() + 1];
        for &[head, _, tail] in triples {
            offsets[head as usize + 1] += 1;
            offsets[tail as usize + 1] += u32::from(head != tail);
        }
        for i in 0..named.len() {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut edges = vec![(0, 0, true); offsets[named.len()] as usize];
        let mut put = |from: u32, edge| {
            let at = &mut next[from as usize];
            edges[*at as usize] = edge;
            *at += 1;
        };
        for (triple, &[head, _, tail]) in (0u32..).zip(triples) {
            put(head, (triple, tail, true));
            // a triple that leads back to its head is walked one way only
            if head != tail {
                put(tail, (triple, head, false));
            }
        }
        Self {
            triples,
            named,
            offsets,
            edges,
        }
    }

    fn edges(&self, of: u32) -> &[(u32, u32, bool)] {
        &self.edges[self.offsets[of as usize] as usize..self.offsets[of as usize + 1] as usize]
    }

    fn cost(&self, of: u32) -> usize {
        usize::from(self.named[of as usize])
    }

    /// b, up to `most`.
    fn costs_to(&self, candidates: &[bool], most: usize) -> Vec<usize> {
        let mut b = vec![usize::MAX; self.named.len()];
        let mut queue = VecDeque::new();
        for (v, _) in (0u32..).zip(candidates).filter(|(_, is)| **is) {
            b[v as usize] = 0;
            queue.push_back(v);
        }
        while let Some(v) = queue.pop_front() {
            let through = b[v as usize] + self.cost(v);
            if through > most {
                continue;
            }
            for &(_, u, _) in self.edges(v) {
                if through < b[u as usize] {
                    b[u as usize] = through;
                    match self.cost(v) {
                        0 => queue.push_front(u),
                        _ => queue.push_back(u),
                    }
                }
            }
        }
        b
    }

    /// All trails from the topics to the candidates, cheapest first, and whether these are all.
    pub(super) fn trails(
        &self,
        topics: &[u32],
        candidates: &[u32],
        config: &TrailConfig,
    ) -> (Vec<Trail>, bool) {
        let mut found = Vec::new();
        let mut left = config.max_edges;
        for &topic in topics {
            let mut open = vec![false; self.named.len()];
            for &candidate in candidates.iter().filter(|c| self.named[**c as usize]) {
                open[candidate as usize] = true;
            }
            let mut search = Search {
                ground: self,
                config,
                topic,
                b: Vec::new(),
                counts: vec![0; self.named.len()],
                open,
                steps: Vec::new(),
                found: &mut found,
                left: &mut left,
            };
            for cost in 1..=config.max_length {
                search.b = self.costs_to(&search.open, config.max_length);
                search.walk(topic, 0, cost);
                if config.shortest_only {
                    for (open, count) in search.open.iter_mut().zip(&search.counts) {
                        *open &= *count == 0;
                    }
                }
            }
        }
        (found, left > 0)
    }

    /// All trails from a topic that take these steps, relations and directions, in this order. Stops
    /// when `left` edges were looked at.
    pub(super) fn along(&self, topic: u32, steps: &[(u32, bool)], left: &mut usize) -> Vec<Trail> {
        let mut found = Vec::new();
        let mut open = vec![(topic, Vec::new())];
        while let Some((at, taken)) = open.pop() {
            let Some(&(relation, direction)) = steps.get(taken.len()) else {
                found.push(Trail {
                    topic,
                    end: at,
                    steps: taken,
                });
                continue;
            };
            for &(triple, next, forward) in self.edges(at) {
                if *left == 0 {
                    return found;
                }
                *left -= 1;
                let fits = self.triples[triple as usize][1] == relation && forward == direction;
                if fits && taken.last().is_none_or(|(t, _)| *t != triple) {
                    open.push((next, [&taken[..], &[(triple, forward)]].concat()));
                }
            }
        }
        found.sort();
        found
    }

    /// The triple in local ids.
    pub(super) fn triple(&self, index: u32) -> [u32; 3] {
        self.triples[index as usize]
    }
}

struct Search<'a> {
    ground: &'a Ground<'a>,
    config: &'a TrailConfig,
    topic: u32,
    b: Vec<usize>,
    /// Trails found to each entity.
    counts: Vec<usize>,
    /// Candidates to which trails are wanted.
    open: Vec<bool>,
    steps: Vec<(u32, bool)>,
    found: &'a mut Vec<Trail>,
    left: &'a mut usize,
}

impl Search<'_> {
    /// Goes on from `at`, reached at cost `spent`, to candidates at exactly `cost`.
    fn walk(&mut self, at: u32, spent: usize, cost: usize) {
        let ends = spent == cost && self.open[at as usize] && !self.steps.is_empty();
        if ends && self.counts[at as usize] < self.config.max_trails {
            self.counts[at as usize] += 1;
            self.found.push(Trail {
                topic: self.topic,
                end: at,
                steps: self.steps.clone(),
            });
        }
        // nodes without a name cost nothing, and may follow each other
        if self.steps.len() >= 2 * self.config.max_length {
            return;
        }
        let ground = self.ground;
        for &(triple, next, forward) in ground.edges(at) {
            if *self.left == 0 {
                return;
            }
            *self.left -= 1;
            let then = spent + ground.cost(next);
            let hopeless = self.b[next as usize] > cost.saturating_sub(then);
            if then > cost || hopeless || self.steps.last().is_some_and(|(t, _)| *t == triple) {
                continue;
            }
            self.steps.push((triple, forward));
            self.walk(next, then, cost);
            self.steps.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config(max_length: usize, shortest_only: bool) -> TrailConfig {
        TrailConfig {
            max_length,
            shortest_only,
            // five entities and eight triples have more ways than are ever wanted
            max_trails: 1_000_000,
            ..TrailConfig::default()
        }
    }

    /// Every sequence of triples, tried.
    fn brute(
        triples: &[[u32; 3]],
        named: &[bool],
        topic: u32,
        candidates: &[u32],
        length: usize,
    ) -> Vec<Trail> {
        let mut all = Vec::new();
        let mut open = vec![(topic, 0usize, Vec::<(u32, bool)>::new())];
        while let Some((at, cost, steps)) = open.pop() {
            if !steps.is_empty() && named[at as usize] && candidates.contains(&at) {
                all.push(Trail {
                    topic,
                    end: at,
                    steps: steps.clone(),
                });
            }
            for (i, &[head, _, tail]) in (0u32..).zip(triples) {
                for (from, to, forward) in [(head, tail, true), (tail, head, false)] {
                    let loops = head == tail && !forward;
                    let then = cost + usize::from(named[to as usize]);
                    let fits = then <= length && steps.len() < 2 * length;
                    if from == at && fits && !loops && steps.last().is_none_or(|(t, _)| *t != i) {
                        open.push((to, then, [&steps[..], &[(i, forward)]].concat()));
                    }
                }
            }
        }
        all.sort();
        all
    }

    proptest! {
        #[test]
        fn trails_are_those_of_brute_force(
            triples in proptest::collection::vec((0u32..5, 0u32..2, 0u32..5), 0..8),
            unnamed in 1usize..6,
            length in 1usize..4,
        ) {
            let triples: Vec<[u32; 3]> = triples.into_iter().map(|(h, r, t)| [h, r, t]).collect();
            let named: Vec<bool> = (0..5).map(|i| i != unnamed).collect();
            let ground = Ground::new(&triples, &named);
            let candidates = [0, 2, 4];
            let (mut found, complete) = ground.trails(&[0], &candidates, &config(length, false));
            prop_assert!(complete);
            // cheapest first
            let cost = |trail: &Trail| -> usize {
                let mut at = trail.topic;
                trail.steps.iter().map(|(t, forward)| {
                    let [head, _, tail] = triples[*t as usize];
                    at = if *forward { tail } else { head };
                    usize::from(named[at as usize])
                }).sum()
            };
            prop_assert!(found.is_sorted_by_key(cost));
            found.sort();
            let wanted = brute(&triples, &named, 0, &candidates, length);
            prop_assert_eq!(&found, &wanted);
            // and the fast ones are the cheapest of these
            let (mut fast, _) = ground.trails(&[0], &candidates, &config(length, true));
            fast.sort();
            let least = |end: u32| wanted.iter().filter(|t| t.end == end).map(cost).min();
            let cheapest: Vec<Trail> = wanted.iter()
                .filter(|t| Some(cost(t)) == least(t.end)).cloned().collect();
            prop_assert_eq!(fast, cheapest);
        }

        #[test]
        fn steps_lead_where_brute_force_finds_them_to_lead(
            triples in proptest::collection::vec((0u32..5, 0u32..2, 0u32..5), 0..8),
            steps in proptest::collection::vec((0u32..2, any::<bool>()), 1..4),
        ) {
            let triples: Vec<[u32; 3]> = triples.into_iter().map(|(h, r, t)| [h, r, t]).collect();
            let named = [true; 5];
            let ground = Ground::new(&triples, &named);
            let mut wanted = brute(&triples, &named, 0, &[0, 1, 2, 3, 4], steps.len());
            wanted.retain(|trail| {
                let kinds = trail.steps.iter().map(|(t, f)| (triples[*t as usize][1], *f));
                kinds.eq(steps.iter().copied())
            });
            let mut left = 10_000;
            prop_assert_eq!(ground.along(0, &steps, &mut left), wanted);
            let mut none = 0;
            prop_assert!(ground.along(0, &steps, &mut none).is_empty());
        }
    }

    #[test]
    fn a_trail_may_lead_back_to_its_topic_and_through_unnamed_nodes() {
        // 0 -spouse-> 1 -spouse-> 0, and 0 -> (2 without a name) -> 3
        let triples = [[0, 0, 1], [1, 0, 0], [0, 1, 2], [2, 2, 3]];
        let named = [true, true, false, true];
        let ground = Ground::new(&triples, &named);
        let (found, _) = ground.trails(&[0], &[0], &config(2, false));
        let steps: Vec<_> = found.iter().map(|t| t.steps.clone()).collect();
        assert_eq!(
            steps,
            [vec![(0, true), (1, true)], vec![(1, false), (0, false)]]
        );
        let (found, _) = ground.trails(&[0], &[3, 2], &config(1, false));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].steps, [(2, true), (3, true)]);
        let few = TrailConfig {
            max_edges: 1,
            ..config(2, false)
        };
        assert!(!ground.trails(&[0], &[3], &few).1);
    }
}
