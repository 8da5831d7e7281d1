//! Personalised PageRank by local push: which entities a restarting walk from the seeds visits
//! most, found without looking at the rest of the graph.
//!
//! Andersen, Chung and Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006:
//!
//! ```text
//! pr(s) = α·s + (1 − α)·pr(s)·W                        W = D⁻¹·A
//!
//! p ← 0, r ← s;  while some u has r(u) ≥ ε·d(u), push it:
//!     p(u) ← p(u) + α·r(u)
//!     r(v) ← r(v) + (1 − α)·r(u) / d(u)                for each edge u – v
//!     r(u) ← 0
//! ```
//!
//! α is `restart`, ε is `tolerance`, s is uniform over the seeds, d is the degree. What comes out
//! is p. It never exceeds pr(s), and falls short of it by less than ε·d(u) at each entity u: a
//! push keeps p + pr(r) = pr(s), and pr is symmetric up to degree. All pushes together walk at
//! most 1 / (α·ε) edges, whatever the size of the graph.
//!
//! Departures: the walk is not lazy (the paper's lazy walk with restart α is this one with
//! restart 2α / (1 + α)); edges are walked both ways, a loop counting twice, parallel relations
//! each for themselves; a seed without edges keeps its mass.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::graph::{Adjacency, Direction, Edge, EntityId, RelationId, Triple, edges_by_relation};
use crate::marks::Marks;

use crate::subgraph::Subgraph;

/// Options of a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageRank {
    /// α, the restart probability: above 0, at most 1.
    pub restart: f64,
    /// ε, the error allowed per edge of an entity: above 0.
    pub tolerance: f64,
    /// Maximum number of pushes; the ranking is coarser if it is reached.
    pub max_pushes: usize,
    /// Relations that are left out, such as those that only give names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<RelationId>,
}

impl Default for PageRank {
    fn default() -> Self {
        Self {
            restart: 0.15,
            tolerance: 1e-6,
            max_pushes: 1_000_000,
            skip: Vec::new(),
        }
    }
}

/// Entities by how often the walk visits them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// The entities visited, highest score first, equal ones by id. Scores sum to at most 1.
    pub scores: Vec<(EntityId, f32)>,
    /// Number of pushes made.
    pub pushes: usize,
    /// Whether the tolerance was reached. If not, `max_pushes` was too small.
    pub converged: bool,
}

/// Size limits of the subgraph of a ranking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RankBudget {
    /// Maximum number of entities. The seeds are always included.
    pub max_entities: usize,
    /// Maximum number of triples.
    pub max_triples: usize,
}

impl Default for RankBudget {
    fn default() -> Self {
        Self {
            max_entities: 2_000,
            max_triples: 20_000,
        }
    }
}

/// The best-ranked entities and the triples among them.
#[derive(Debug, Default)]
pub struct RankedSubgraph {
    /// The seeds come first (each once), then the others by score.
    pub subgraph: Subgraph,
    /// The score of each own entity.
    pub scores: Vec<f32>,
    /// Number of ranked entities that were left out.
    pub left_out: usize,
}

/// Ranks the entities around the seeds. For many rankings, reuse a [`Ranker`].
///
/// ```
/// use wherefore_graph::{Graph, NameMatch, PageRank, pagerank, toy};
/// let graph = toy::graph();
/// let seal = graph.entities_named("Lou Seal", NameMatch::Exact)?;
/// let ranking = pagerank(&graph, &seal, &PageRank::default())?;
/// assert_eq!(graph.entity_label(ranking.scores[0].0)?, "San Francisco Giants");
/// # Ok::<(), wherefore_graph::Error>(())
/// ```
pub fn pagerank(graph: &dyn Adjacency, seeds: &[EntityId], settings: &PageRank) -> Result<Ranking> {
    Ranker::default().rank(graph, seeds, settings)
}

/// Cuts out the entities that rank best around the seeds, with all triples among them: a
/// neighbourhood for graphs in which a few hops reach everything.
///
/// Entities are taken from the best downwards, for as long as both budgets last.
pub fn pagerank_subgraph(
    graph: &dyn Adjacency,
    seeds: &[EntityId],
    settings: &PageRank,
    budget: &RankBudget,
) -> Result<RankedSubgraph> {
    Ranker::default().subgraph(graph, seeds, settings, budget)
}

/// Ranks entities, and reuses its working memory, so that the cost of a ranking does not grow with
/// the graph. It can be used with different graphs.
#[derive(Debug, Default)]
pub struct Ranker {
    /// Place in `visits` + 1.
    marks: Marks,
    visits: Vec<Visit>,
    queue: VecDeque<u32>,
}

#[derive(Debug)]
struct Visit {
    entity: EntityId,
    degree: usize,
    /// p
    score: f64,
    /// r
    residual: f64,
    queued: bool,
}

impl Ranker {
    /// Ranks the entities around the seeds. A seed outside the graph is an error.
    pub fn rank(
        &mut self,
        graph: &dyn Adjacency,
        seeds: &[EntityId],
        settings: &PageRank,
    ) -> Result<Ranking> {
        settings.check()?;
        let pushed = self.push_all(graph, seeds, settings);
        self.marks
            .wipe(self.visits.iter().map(|visit| visit.entity.index()));
        let mut scores: Vec<(EntityId, f64)> = self
            .visits
            .drain(..)
            .filter(|visit| visit.score > 0.0)
            .map(|visit| (visit.entity, visit.score))
            .collect();
        let converged = self.queue.is_empty();
        self.queue.clear();
        let pushes = pushed?;
        scores.sort_unstable_by(|(e, a), (f, b)| b.total_cmp(a).then(e.cmp(f)));
        Ok(Ranking {
            scores: scores.into_iter().map(|(e, p)| (e, p as f32)).collect(),
            pushes,
            converged,
        })
    }

    /// Cuts out the best-ranked entities; see [`pagerank_subgraph`].
    pub fn subgraph(
        &mut self,
        graph: &dyn Adjacency,
        seeds: &[EntityId],
        settings: &PageRank,
        budget: &RankBudget,
    ) -> Result<RankedSubgraph> {
        let ranking = self.rank(graph, seeds, settings)?;
        let (mut order, seeds) = seeds_first(ranking.scores, seeds);
        let ranked = order.len();
        order.truncate(budget.max_entities.max(seeds));
        for (own, &(entity, _)) in order.iter().enumerate() {
            *self.marks.entity(graph, entity)? = own as u32 + 1;
        }
        let among = self.triples_among(graph, &order, settings);
        self.marks.wipe(order.iter().map(|(e, _)| e.index()));
        let mut triples = among?;

        // a triple comes in with the later of its ends
        let last = |t: &Triple| t.head.max(t.tail).index();
        let mut coming = vec![0usize; order.len()];
        for triple in &triples {
            coming[last(triple)] += 1;
        }
        let mut total = 0;
        let fitting = coming.iter().take_while(|&&n| {
            total += n;
            total <= budget.max_triples
        });
        let kept = fitting.count().max(seeds);
        order.truncate(kept);
        triples.retain(|t| last(t) < kept);
        // seeds stay even where the triples among them are too many
        triples.truncate(budget.max_triples);

        let mut relations: Vec<RelationId> = triples.iter().map(|t| t.relation).collect();
        relations.sort_unstable();
        relations.dedup();
        for triple in &mut triples {
            let own = relations.partition_point(|&r| r < triple.relation);
            triple.relation = RelationId(own as u32);
        }
        let (entities, scores) = order.into_iter().unzip();
        Ok(RankedSubgraph {
            subgraph: Subgraph::new(entities, relations, triples),
            scores,
            left_out: ranked - kept,
        })
    }

    /// The triples among the marked entities: own ids of entities, relations of the larger graph.
    fn triples_among(
        &self,
        graph: &dyn Adjacency,
        order: &[(EntityId, f32)],
        settings: &PageRank,
    ) -> Result<Vec<Triple>> {
        let mut triples = Vec::new();
        let all: Vec<EntityId> = order.iter().map(|&(entity, _)| entity).collect();
        graph.prefetch(&all, Direction::Outgoing)?;
        for (own, &(entity, _)) in order.iter().enumerate() {
            for edge in graph.outgoing(entity)?.iter() {
                let mark = self.marks.get(edge.entity.index());
                if mark != 0 && !settings.skip.contains(&edge.relation) {
                    triples.push(Triple {
                        head: EntityId(own as u32),
                        relation: edge.relation,
                        tail: EntityId(mark - 1),
                    });
                }
            }
        }
        Ok(triples)
    }

    fn push_all(
        &mut self,
        graph: &dyn Adjacency,
        seeds: &[EntityId],
        settings: &PageRank,
    ) -> Result<usize> {
        let mut skip = settings.skip.clone();
        skip.sort_unstable();
        skip.dedup();
        for &seed in seeds {
            self.visit(graph, seed, &skip)?;
        }
        // a seed is pushed at least once: with very many edges it might never be otherwise
        let share = 1.0 / self.visits.len() as f64;
        for (i, visit) in self.visits.iter_mut().enumerate() {
            visit.residual = share;
            visit.queued = true;
            self.queue.push_back(i as u32);
        }
        let mut pushes = 0;
        while pushes < settings.max_pushes
            && let Some(i) = self.queue.pop_front()
        {
            pushes += 1;
            let visit = &mut self.visits[i as usize];
            visit.queued = false;
            let residual = std::mem::take(&mut visit.residual);
            if visit.degree == 0 {
                visit.score += residual;
                continue;
            }
            visit.score += settings.restart * residual;
            let spread = (1.0 - settings.restart) * residual / visit.degree as f64;
            let entity = visit.entity;
            for row in [graph.outgoing(entity)?, graph.incoming(entity)?] {
                // a graph that is far away hands out rows of its own
                if let Cow::Owned(edges) = &row {
                    let ends: Vec<EntityId> = edges.iter().map(|edge| edge.entity).collect();
                    graph.prefetch(&ends, Direction::Both)?;
                }
                for edges in row.chunk_by(|a, b| a.relation == b.relation) {
                    if skip.binary_search(&edges[0].relation).is_err() {
                        self.spread(graph, edges, spread, settings.tolerance, &skip)?;
                    }
                }
            }
        }
        Ok(pushes)
    }

    fn spread(
        &mut self,
        graph: &dyn Adjacency,
        edges: &[Edge],
        amount: f64,
        tolerance: f64,
        skip: &[RelationId],
    ) -> Result<()> {
        for edge in edges {
            let i = self.visit(graph, edge.entity, skip)?;
            let visit = &mut self.visits[i];
            visit.residual += amount;
            if !visit.queued && visit.residual >= tolerance * visit.degree as f64 {
                visit.queued = true;
                self.queue.push_back(i as u32);
            }
        }
        Ok(())
    }

    /// The place of an entity among the visits.
    #[inline]
    fn visit(
        &mut self,
        graph: &dyn Adjacency,
        entity: EntityId,
        skip: &[RelationId],
    ) -> Result<usize> {
        let mark = self.marks.entity(graph, entity)?;
        if *mark == 0 {
            self.visits.push(Visit {
                entity,
                degree: degree(graph, entity, skip)?,
                score: 0.0,
                residual: 0.0,
                queued: false,
            });
            *mark = self.visits.len() as u32;
        }
        Ok(*mark as usize - 1)
    }
}

impl PageRank {
    fn check(&self) -> Result<()> {
        if !(self.restart > 0.0 && self.restart <= 1.0) {
            return Err(Error::BadSetting {
                name: "restart",
                value: self.restart.to_string(),
                wanted: "above 0 and at most 1",
            });
        }
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(Error::BadSetting {
                name: "tolerance",
                value: self.tolerance.to_string(),
                wanted: "above 0",
            });
        }
        Ok(())
    }
}

/// The degree without the skipped relations.
fn degree(graph: &dyn Adjacency, entity: EntityId, skip: &[RelationId]) -> Result<usize> {
    if skip.is_empty() {
        return graph.degree(entity);
    }
    let (outgoing, incoming) = (graph.outgoing(entity)?, graph.incoming(entity)?);
    let skipped: usize = skip
        .iter()
        .map(|&r| edges_by_relation(&outgoing, r).len() + edges_by_relation(&incoming, r).len())
        .sum();
    Ok(outgoing.len() + incoming.len() - skipped)
}

/// The seeds, each once and whatever their score, then the other entities of a ranking; and how
/// many seeds there are.
fn seeds_first(ranking: Vec<(EntityId, f32)>, seeds: &[EntityId]) -> (Vec<(EntityId, f32)>, usize) {
    let mut scores_of_seeds: HashMap<EntityId, f32> = seeds.iter().map(|&s| (s, 0.0)).collect();
    let others: Vec<_> = ranking
        .into_iter()
        .filter(|&(entity, score)| match scores_of_seeds.get_mut(&entity) {
            Some(of_seed) => {
                *of_seed = score;
                false
            }
            None => true,
        })
        .collect();
    let mut order: Vec<_> = seeds
        .iter()
        .filter_map(|&seed| Some((seed, scores_of_seeds.remove(&seed)?)))
        .collect();
    let count = order.len();
    order.extend(others);
    (order, count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::MemoryGraph;

    fn exact(
        graph: &MemoryGraph,
        seeds: &[EntityId],
        restart: f64,
        skip: &[RelationId],
    ) -> Vec<f64> {
        let n = graph.entity_bound();
        let triples: Vec<_> = graph
            .triples()
            .filter(|t| !skip.contains(&t.relation))
            .collect();
        let mut degree = vec![0.0; n];
        for t in &triples {
            degree[t.head.index()] += 1.0;
            degree[t.tail.index()] += 1.0;
        }
        let mut start = vec![0.0; n];
        for seed in seeds {
            start[seed.index()] = 1.0;
        }
        let mass: f64 = start.iter().sum();
        start.iter_mut().for_each(|s| *s /= mass);
        let mut p = start.clone();
        for _ in 0..400 {
            let mut next: Vec<f64> = start.iter().map(|s| restart * s).collect();
            for t in &triples {
                let (h, t) = (t.head.index(), t.tail.index());
                next[t] += (1.0 - restart) * p[h] / degree[h];
                next[h] += (1.0 - restart) * p[t] / degree[t];
            }
            for i in (0..n).filter(|&i| degree[i] == 0.0) {
                next[i] += (1.0 - restart) * p[i];
            }
            p = next;
        }
        p
    }

    #[test]
    fn a_single_edge_has_the_known_solution() {
        // x = α + (1 − α)·y, y = (1 − α)·x, so x = 1 / (2 − α) = 2/3 and y = 1/3 at α = 1/2
        let graph = MemoryGraph::from_ids(2, 1, vec![Triple::new(1, 0, 0)]);
        let settings = PageRank {
            restart: 0.5,
            tolerance: 1e-9,
            ..PageRank::default()
        };
        let ranking = pagerank(&graph, &[EntityId(0)], &settings).unwrap();
        assert!(ranking.converged);
        let [(first, x), (second, y)] = ranking.scores[..] else {
            panic!("two entities, got {:?}", ranking.scores)
        };
        assert_eq!((first, second), (EntityId(0), EntityId(1)));
        assert!((x - 2.0 / 3.0).abs() < 1e-6 && (y - 1.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn too_few_pushes_are_told() {
        let settings = PageRank {
            max_pushes: 1,
            ..PageRank::default()
        };
        let graph = crate::toy::graph();
        let ranking = pagerank(&graph, &[EntityId(0)], &settings).unwrap();
        assert!(!ranking.converged);
        assert_eq!(ranking.scores, [(EntityId(0), 0.15)]);
    }

    #[test]
    fn settings_out_of_range_are_errors() {
        let graph = crate::toy::graph();
        for (restart, tolerance, text) in [
            (
                0.0,
                1e-6,
                "`restart` is 0, but must be above 0 and at most 1",
            ),
            (
                f64::NAN,
                1e-6,
                "`restart` is NaN, but must be above 0 and at most 1",
            ),
            (0.5, 0.0, "`tolerance` is 0, but must be above 0"),
        ] {
            let settings = PageRank {
                restart,
                tolerance,
                ..PageRank::default()
            };
            let error = pagerank(&graph, &[EntityId(0)], &settings).unwrap_err();
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn the_subgraph_keeps_both_budgets_and_all_seeds() {
        let graph = crate::toy::graph();
        let seeds = [EntityId(5), EntityId(0), EntityId(5)];
        for max_entities in 0..20 {
            for max_triples in 0..20 {
                let budget = RankBudget {
                    max_entities,
                    max_triples,
                };
                let near =
                    pagerank_subgraph(&graph, &seeds, &PageRank::default(), &budget).unwrap();
                let sub = &near.subgraph;
                assert_eq!(sub.entities()[..2], [EntityId(5), EntityId(0)]);
                assert!(sub.entities().len() <= max_entities.max(2));
                assert!(sub.triples().len() <= max_triples);
                assert_eq!(near.scores.len(), sub.entities().len());
                assert!(near.scores[2..].is_sorted_by(|a, b| a >= b));
                // all triples among them, and no more
                let among = graph
                    .triples()
                    .filter(|t| sub.find(t.head).is_some() && sub.find(t.tail).is_some());
                assert_eq!(among.count(), sub.triples().len());
                assert!((0..sub.triples().len()).all(|i| graph.contains(sub.triple(i)).unwrap()));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn push_keeps_the_error_bound_of_the_paper(
            triples in prop::collection::vec((0u32..10, 0u32..3, 0u32..10), 0..40),
            seeds in prop::collection::vec(0u32..10, 1..4),
            restart in 0.05f64..=1.0,
            exponent in 1.0f64..6.0,
            skip in prop::collection::vec(0u32..3, 0..3),
        ) {
            let triples = triples.into_iter().map(|(h, r, t)| Triple::new(h, r, t)).collect();
            let graph = MemoryGraph::from_ids(10, 3, triples);
            let seeds: Vec<_> = seeds.into_iter().map(EntityId).collect();
            let skip: Vec<_> = skip.into_iter().map(RelationId).collect();
            let settings = PageRank { restart, tolerance: 10f64.powf(-exponent), skip, ..PageRank::default() };
            let mut ranker = Ranker::default();
            let ranking = ranker.rank(&graph, &seeds, &settings).unwrap();
            prop_assert!(ranking.converged);
            prop_assert!(ranking.scores.is_sorted_by(|a, b| a.1 >= b.1));
            let mut found = [0.0; 10];
            for &(entity, score) in &ranking.scores {
                found[entity.index()] = f64::from(score);
            }
            let mut skip = settings.skip.clone();
            skip.sort_unstable();
            skip.dedup();
            for (i, want) in exact(&graph, &seeds, restart, &skip).into_iter().enumerate() {
                let degree = degree(&graph, EntityId(i as u32), &skip).unwrap() as f64;
                prop_assert!(found[i] <= want + 1e-6, "{i}: {} above {want}", found[i]);
                prop_assert!(want - found[i] <= settings.tolerance * degree + 1e-6, "{i}: {} for {want}", found[i]);
            }
            prop_assert_eq!(ranker.rank(&graph, &seeds, &settings).unwrap(), ranking);
        }
    }
}
