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
        let mut entities = vec![0.0f32; count];
        let total = self.words.sum(self.words.all());
        if total > 0.0 && !topics.is_empty() {
            let incidence = Incidence::new(self.subgraph);
            let mut sums = vec![0.0f32; count];
            for &topic in topics {
                let best = self.walk(topic, total, &incidence, &mut triples);
                for (i, score) in best.into_iter().enumerate() {
                    entities[i] = entities[i].max(score);
                    sums[i] += score;
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                let named = f32::from(u8::from(self.masks.named[i]));
                entities[i] = named * (entities[i] + sum / topics.len() as f32) / 2.0;
            }
            for &topic in topics {
                entities[topic.index()] = 0.0;
            }
        }
        Scores { triples, entities }
    }

    /// The best score of a path from `topic` to each entity; raises those of the triples.
    fn walk(
        &self,
        topic: EntityId,
        total: f32,
        incidence: &Incidence,
        triples: &mut [f32],
    ) -> Vec<f32> {
        let count = self.subgraph.entity_bound();
        let mut best = vec![0.0f32; count];
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
                    let path = self.step(&paths, before, triple, end, total);
                    raise(triples, &paths, &path);
                    best[end.index()] = best[end.index()].max(path.score);
                    keep(&mut kept[end.index()], &mut paths, path);
                }
            }
            layer = from..paths.len();
        }
        best
    }

    fn step(
        &self,
        paths: &[Path],
        before: usize,
        triple: usize,
        end: EntityId,
        total: f32,
    ) -> Path {
        let old = paths[before];
        let relation = self.subgraph.triples()[triple].relation;
        let relation_words = old.relation_words | self.masks.relations[relation.index()];
        let entity_words = old.entity_words | self.masks.entities[end.index()];
        let had = old.relation_words | old.entity_words;
        let gained = old.gained || (relation_words | entity_words) != had;
        let named = self.masks.named[end.index()];
        let idle = old.idle + i32::from(named && !gained);
        let covered = self.words.sum(relation_words)
            + self.config.entity_weight * self.words.sum(entity_words & !relation_words);
        Path {
            end,
            last: Some((triple, before)),
            relation_words,
            entity_words,
            idle,
            gained: gained && !named,
            score: (covered / total * self.config.idle_factor.powi(idle)).min(1.0),
        }
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
    let covers = |a: &Path, b: &Path| {
        a.relation_words | b.relation_words == a.relation_words
            && a.entity_words | b.entity_words == a.entity_words
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
