//! How sure it is that words mean an entity.
//!
//! ```text
//! score(m, e) = strength(m) · quality(m, e) · (1 − a − b + a·popularity(e) + b·fit(q, e))
//!
//! popularity(e) = min(1, ln(1 + triples of e) / ln 1001)
//! fit(q, e)     = max over the relations r of e of q·r, at least 0      q without the mentions
//! ```
//!
//! `quality` is 1 for a name written exactly, less for each departure from it; for some of the
//! words of a name it grows with their share. `strength` is below 1 for a single lower-case word,
//! which is more often a word than a name, and lower the more names hold it.

use std::collections::HashSet;
use std::sync::Arc;

use wherefore_graph::{Direction, EntityId, Graph};
use wherefore_model::Embeddings;
use wherefore_model::vector::dot;

use super::{Candidate, MatchKind};
use crate::error::Result;
use crate::relations::RelationEncoder;

/// a: what popularity can add.
const POPULARITY: f32 = 0.25;
/// b: what the fit to the question can add.
const FIT: f32 = 0.15;
/// Of the edges of an entity, at most this many are read for its relations.
const MAX_EDGES: usize = 4096;
/// Candidates whose fit is computed.
const FITTED: usize = 16;

/// A candidate before it is ranked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) entity: EntityId,
    pub(super) how: MatchKind,
    /// Between 0 and 1: see [`quality`] and [`partial_quality`].
    pub(super) quality: f32,
}

/// How much a whole name, recognised so, is worth.
pub(super) fn quality(how: MatchKind) -> f32 {
    match how {
        MatchKind::Given | MatchKind::Alias | MatchKind::Exact => 1.0,
        MatchKind::Normalised => 0.85,
        MatchKind::Inflected => 0.83,
        MatchKind::Misspelt => 0.7,
        MatchKind::Partial => partial_quality(1.0),
    }
}

/// How much a share of the words of a name is worth.
pub(super) fn partial_quality(share: f32) -> f32 {
    0.3 + 0.5 * share
}

/// Candidates that were all recognised in one way.
pub(super) fn found(entities: Vec<EntityId>, how: MatchKind, quality: f32) -> Vec<Found> {
    entities
        .into_iter()
        .map(|entity| Found {
            entity,
            how,
            quality,
        })
        .collect()
}

/// Ranks the candidates of mentions of one question.
pub(super) struct Ranker<'a> {
    pub(super) graph: &'a dyn Graph,
    /// What the question is compared with; see [`Ranker::asks`].
    question: Option<(Embeddings, Arc<Embeddings>)>,
    /// Candidates kept for each mention.
    keep: usize,
}

impl<'a> Ranker<'a> {
    pub(super) fn new(graph: &'a dyn Graph, keep: usize) -> Self {
        Self {
            graph,
            question: None,
            keep,
        }
    }

    /// From now on candidates are also weighed by their fit to `rest`, the question without its
    /// mentions.
    pub(super) fn asks(&mut self, rest: &str, encoder: &RelationEncoder) -> Result<()> {
        if !rest.trim().is_empty() {
            let row = encoder.encoder().encode_queries(&[rest])?;
            self.question = Some((row, encoder.rows(self.graph)?));
        }
        Ok(())
    }

    /// The best candidates of a mention, best first.
    pub(super) fn rank(&self, mut found: Vec<Found>, strength: f32) -> Result<Vec<Candidate>> {
        let mut scored = Vec::with_capacity(found.len());
        found.sort_by_key(|f| f.entity);
        let all: Vec<EntityId> = found.iter().map(|f| f.entity).collect();
        self.graph.prefetch(&all, Direction::Both)?;
        for f in found {
            let triples = self.graph.degree(f.entity)? as f32;
            let popularity = ((1.0 + triples).ln() / 1001f32.ln()).min(1.0);
            let base = 1.0 - POPULARITY - FIT + POPULARITY * popularity;
            scored.push((f.quality * base, f));
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.entity.cmp(&b.1.entity)));
        // an entity that was recognised in two ways counts by the better one
        let mut seen = HashSet::new();
        scored.retain(|(_, f)| seen.len() < FITTED && seen.insert(f.entity));
        let alone = scored.len() == 1;
        let mut candidates = Vec::with_capacity(scored.len());
        for (base, f) in scored {
            // nothing to choose between, or nothing to choose by: no reason to doubt it
            let fit = match &self.question {
                Some((row, relations)) if !alone => self.fit(f.entity, row.row(0), relations)?,
                _ => 1.0,
            };
            candidates.push(Candidate {
                entity: f.entity,
                score: strength * (base + f.quality * FIT * fit),
                how: f.how,
            });
        }
        candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
        candidates.truncate(self.keep);
        Ok(candidates)
    }

    fn fit(&self, entity: EntityId, question: &[f32], relations: &Embeddings) -> Result<f32> {
        let mut best = 0.0f32;
        for edges in [self.graph.outgoing(entity)?, self.graph.incoming(entity)?] {
            let mut last = None;
            for edge in edges.iter().take(MAX_EDGES) {
                // edges are sorted by relation
                if last.replace(edge.relation) != Some(edge.relation) {
                    best = best.max(dot(question, relations.row(edge.relation.index())));
                }
            }
        }
        Ok(best.min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use wherefore_graph::{MemoryGraph, NameMatch};
    use wherefore_model::encode;

    use super::*;

    #[test]
    fn the_namesake_whose_relations_fit_the_question_is_first() {
        let graph = MemoryGraph::from_names([
            ("Mercury", "discovered by", "Someone"),
            ("Mercury", "melting point", "-38.8"),
            ("mercury", "orbits", "Sun"),
            ("mercury", "moons", "none"),
        ]);
        let encoder = RelationEncoder::new(encode::open("static").unwrap());
        let named = |name: &str| graph.entities_named(name, NameMatch::Exact).unwrap()[0];
        let found: Vec<Found> = ["Mercury", "mercury"]
            .map(|name| Found {
                entity: named(name),
                how: MatchKind::Normalised,
                quality: quality(MatchKind::Normalised),
            })
            .into();
        for (rest, first) in [
            ("at which temperature does it melt", "Mercury"),
            ("how many moons does it have", "mercury"),
        ] {
            let mut ranker = Ranker::new(&graph, 5);
            ranker.asks(rest, &encoder).unwrap();
            let ranked = ranker.rank(found.clone(), 1.0).unwrap();
            assert_eq!(ranked[0].entity, named(first), "{rest}");
        }
        // popularity ln 3 / ln 1001 = 0.159017; 0.85 · (0.6 + 0.25 · 0.159017 + 0.15)
        let ranker = Ranker::new(&graph, 5);
        let alone = ranker.rank(found[..1].to_vec(), 1.0).unwrap();
        assert!((alone[0].score - 0.671_291).abs() < 1e-4);
    }
}
