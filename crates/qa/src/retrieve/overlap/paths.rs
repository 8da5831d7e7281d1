//! Walks all paths from the topics and keeps the words they meet.

use wherefore_graph::{Adjacency, EntityId, Subgraph};

use super::{Masks, OverlapConfig, QuestionWords};

/// Paths to one entity, with different words on them, that are continued.
const KEPT_PATHS: usize = 4;

/// What a walk reads.
pub(super) struct Walk<'a> {
    pub(super) subgraph: &'a Subgraph,
    pub(super) words: &'a QuestionWords,
    pub(super) masks: &'a Masks,
    pub(super) config: &'a OverlapConfig,
}

/// One score for each triple and each entity of the subgraph.
pub(super) struct Scores {
    pub(super) triples: Vec<f32>,
    pub(super) entities: Vec<f32>,
}

/// A path from a topic: where it ends, how it came there, and the words on it.
#[derive(Clone, Copy, Debug)]
struct Path {
    end: EntityId,
    /// The triple of the last hop, and the path before it. None at the topic itself.
    last: Option<(usize, usize)>,
    relation_words: u64,
    entity_words: u64,
    idle: i32,
    /// Whether the hop into the unnamed node at its end brought a word.
    gained: bool,
    score: f32,
}

impl Walk<'_> {
    /// Scores everything within reach of the topics.
    pub(super) fn score(&self, topics: &[EntityId]) -> Scores {
        let count = self.subgraph.entity_bound();
        let mut triples = vec![0.0f32; self.subgraph.triples().len()];
        let mut reached = vec![Reached::default(); count];
        if self.words.total > 0.0 {
            let incidence = Incidence::new(self.subgraph);
            for &topic in topics {
                for path in self.walk(topic, &incidence, &mut triples) {
                    reached[path.end.index()].add(&path);
                }
            }
        }
        let mut entities: Vec<f32> = reached
            .iter()
            .zip(&self.masks.named)
            .map(|(r, &named)| {
                if named {
                    self.joint(r, topics.len())
                } else {
                    0.0
                }
            })
            .collect();
        for &topic in topics {
            entities[topic.index()] = 0.0;
        }
        Scores { triples, entities }
    }

    /// The score of an entity by all its paths together, or by the best of them alone.
    fn joint(&self, reached: &Reached, topics: usize) -> f32 {
        if reached.topics == 0 {
            return 0.0;
        }
        let share = |of: usize| (of as f32 / topics as f32).sqrt();
        let all = self.value(reached.relation_words, reached.entity_words, reached.idle);
        (all * share(reached.topics)).max(reached.best * share(1))
    }

    fn value(&self, relation_words: u64, entity_words: u64, idle: i32) -> f32 {
        let covered = self.words.sum(relation_words)
            + self.config.entity_weight * self.words.sum(entity_words & !relation_words);
        (covered / self.words.total * self.config.idle_factor.powi(idle)).min(1.0)
    }

    /// The best path from `topic` to each entity that shares a word with the question; raises
    /// the scores of the triples.
    fn walk(&self, topic: EntityId, incidence: &Incidence, triples: &mut [f32]) -> Vec<Path> {
        let count = self.subgraph.entity_bound();
        let mut best: Vec<Option<Path>> = vec![None; count];
        let mut paths = vec![Path {
            end: topic,
            last: None,
            relation_words: 0,
            entity_words: 0,
            idle: 0,
            gained: false,
            score: 0.0,
        }];
        let mut layer = 0..1;
        for _ in 0..self.config.hops {
            let from = paths.len();
            let mut kept: Vec<Vec<usize>> = vec![Vec::new(); count];
            for before in layer {
                for &(triple, end) in incidence.of(paths[before].end) {
                    if visits(&paths, before, end) {
                        continue;
                    }
                    let path = self.step(&paths, before, triple, end);
                    raise(triples, &paths, &path);
                    let best = &mut best[end.index()];
                    if path.score > best.map_or(0.0, |b| b.score) {
                        *best = Some(path);
                    }
                    keep(&mut kept[end.index()], &mut paths, path);
                }
            }
            layer = from..paths.len();
        }
        best.into_iter().flatten().collect()
    }

    fn step(&self, paths: &[Path], before: usize, triple: usize, end: EntityId) -> Path {
        let old = paths[before];
        let relation = self.subgraph.triples()[triple].relation;
        let relation_words = old.relation_words | self.masks.relations[relation.index()];
        let entity_words = old.entity_words | self.masks.entities[end.index()];
        let had = old.relation_words | old.entity_words;
        let gained = old.gained || (relation_words | entity_words) != had;
        let named = self.masks.named[end.index()];
        let idle = old.idle + i32::from(named && !gained);
        Path {
            end,
            last: Some((triple, before)),
            relation_words,
            entity_words,
            idle,
            gained: gained && !named,
            score: self.value(relation_words, entity_words, idle),
        }
    }
}

/// The best paths to one entity, one from each topic that has any.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    topics: usize,
    relation_words: u64,
    entity_words: u64,
    idle: i32,
    best: f32,
}

impl Reached {
    fn add(&mut self, path: &Path) {
        self.topics += 1;
        self.relation_words |= path.relation_words;
        self.entity_words |= path.entity_words;
        self.idle += path.idle;
        self.best = self.best.max(path.score);
    }
}

/// The triples of each entity, as (triple, entity at the other end).
struct Incidence {
    offsets: Vec<usize>,
    entries: Vec<(usize, EntityId)>,
}

impl Incidence {
    fn new(subgraph: &Subgraph) -> Self {
        let mut offsets = vec![0; subgraph.entity_bound() + 1];
        for t in subgraph.triples() {
            offsets[t.head.index() + 1] += 1;
            offsets[t.tail.index() + 1] += 1;
        }
        for i in 1..offsets.len() {
            offsets[i] += offsets[i - 1];
        }
        let mut next = offsets.clone();
        let mut entries = vec![(0, EntityId(0)); subgraph.triples().len() * 2];
        for (i, t) in subgraph.triples().iter().enumerate() {
            for (row, end) in [(t.head, t.tail), (t.tail, t.head)] {
                entries[next[row.index()]] = (i, end);
                next[row.index()] += 1;
            }
        }
        Self { offsets, entries }
    }

    fn of(&self, entity: EntityId) -> &[(usize, EntityId)] {
        let i = entity.index();
        &self.entries[self.offsets[i]..self.offsets[i + 1]]
    }
}

fn visits(paths: &[Path], mut at: usize, entity: EntityId) -> bool {
    loop {
        if paths[at].end == entity {
            return true;
        }
        match paths[at].last {
            Some((_, before)) => at = before,
            None => return false,
        }
    }
}

/// Raises the scores of all triples on the path to the path's own.
fn raise(triples: &mut [f32], paths: &[Path], path: &Path) {
    let mut last = path.last;
    while let Some((triple, before)) = last {
        triples[triple] = triples[triple].max(path.score);
        last = paths[before].last;
    }
}

/// Adds a path to those that are continued from its end, unless enough others are as good.
fn keep(kept: &mut Vec<usize>, paths: &mut Vec<Path>, path: Path) {
    // only of equal words: a hop adds less to a path that has more
    let covers = |a: &Path, b: &Path| {
        a.relation_words == b.relation_words
            && a.entity_words == b.entity_words
            && a.idle <= b.idle
            && a.gained >= b.gained
    };
    if kept.iter().any(|&k| covers(&paths[k], &path)) {
        return;
    }
    if kept.len() < KEPT_PATHS {
        kept.push(paths.len());
        paths.push(path);
        return;
    }
    let worst = kept
        .iter()
        .copied()
        .min_by(|&a, &b| paths[a].score.total_cmp(&paths[b].score));
    if let Some(worst) = worst.filter(|&w| paths[w].score < path.score) {
        // nothing continues it yet: only the next layer reads this one
        paths[worst] = path;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wherefore_graph::{Graph, MemoryGraph, NameMatch, Triple};

    use super::*;
    use crate::link::Link;
    use crate::question::Question;

    const ENTITIES: [&str; 6] = ["Topic", "plain", "alpha", "m.0aa", "beta too", "m.0bb"];
    const RELATIONS: [&str; 4] = ["alpha", "beta", "alpha_beta", "other"];

    /// Scores of every simple path from `path`'s end on, each computed from its whole length.
    fn naive(walk: &Walk<'_>, path: &mut Vec<(usize, EntityId)>, best: &mut Scores) {
        if path.len() > 1 {
            let (mut relations, mut entities, mut idle, mut gained) = (0, 0, 0, false);
            for &(triple, end) in &path[1..] {
                let before = relations | entities;
                let relation = walk.subgraph.triples()[triple].relation;
                relations |= walk.masks.relations[relation.index()];
                entities |= walk.masks.entities[end.index()];
                gained |= relations | entities != before;
                if walk.masks.named[end.index()] {
                    idle += i32::from(!gained);
                    gained = false;
                }
            }
            let score = walk.value(relations, entities, idle);
            for &(triple, _) in &path[1..] {
                best.triples[triple] = best.triples[triple].max(score);
            }
            let end = path[path.len() - 1].1.index();
            if walk.masks.named[end] {
                best.entities[end] = best.entities[end].max(score);
            }
        }
        if path.len() > walk.config.hops {
            return;
        }
        let at = path[path.len() - 1].1;
        for (i, t) in walk.subgraph.triples().iter().enumerate() {
            for (from, to) in [(t.head, t.tail), (t.tail, t.head)] {
                if from == at && path.iter().all(|(_, seen)| *seen != to) {
                    path.push((i, to));
                    naive(walk, path, best);
                    path.pop();
                }
            }
        }
    }

    proptest! {
        #[test]
        fn scores_are_those_of_all_paths(
            facts in prop::collection::vec((0..6usize, 0..4usize, 0..6usize), 1..14),
            hops in 1..=2usize,
        ) {
            let graph = MemoryGraph::from_names(
                facts
                    .iter()
                    .map(|&(h, r, t)| (ENTITIES[h], RELATIONS[r], ENTITIES[t]))
                    .chain([("Topic", "other", "plain")]),
            );
            let topic = graph.entities_named("Topic", NameMatch::Exact).unwrap()[0];
            let triples: Vec<Triple> = graph.triples().collect();
            let subgraph = Subgraph::from_triples(&[topic], &triples);
            let links = [Link {
                entity: topic,
                mention: "Topic".into(),
                span: Some((0, 5)),
                score: 1.0,
            }];
            let question = Question::new("Topic alpha beta gamma");
            let mut words = QuestionWords::new(&question, &links, &graph).unwrap();
            let masks = Masks::new(&subgraph, &mut words, &graph).unwrap();
            let config = OverlapConfig { hops, ..OverlapConfig::default() };
            let walk = Walk { subgraph: &subgraph, words: &words, masks: &masks, config: &config };

            let mut want = Scores {
                triples: vec![0.0; triples.len()],
                entities: vec![0.0; subgraph.entity_bound()],
            };
            naive(&walk, &mut vec![(0, EntityId(0))], &mut want);
            let got = walk.score(&[EntityId(0)]);
            // of triples between the same two entities with the same words, one is continued
            let by_ends = |scores: &[f32]| {
                let mut best = std::collections::BTreeMap::new();
                for (t, &score) in subgraph.triples().iter().zip(scores) {
                    let ends = (t.head.min(t.tail), t.head.max(t.tail));
                    let old = best.entry(ends).or_insert(0.0f32);
                    *old = old.max(score);
                }
                best
            };
            prop_assert_eq!(by_ends(&got.triples), by_ends(&want.triples));
            prop_assert!(got.triples.iter().zip(&want.triples).all(|(g, w)| g <= w));
            prop_assert_eq!(got.entities, want.entities);
        }
    }
}
