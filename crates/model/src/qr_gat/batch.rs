//! Several questions' subgraphs joined into one graph without edges between them.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{Device, Tensor};

use super::{Config, Rows, Subgraph};
use crate::tensor::{Segments, dropout_mask};
use crate::{Error, Random, Result};

/// What one training step works on.
pub struct Batch {
    nodes: usize,
    dim: usize,
    /// `[nodes, inputs]`: `[e ‖ p ‖ question]`, the question as a one-hot index.
    inputs: Vec<f32>,
    width: usize,
    pub(super) questions: Tensor, // [questions, dim]
    pub(super) relations: Tensor, // [relations, dim]
    pub(super) forward: Arc<Edges>,
    pub(super) backward: Arc<Edges>,
    pub(super) triples: Arc<Triples>,
    /// Each question with each of its relations, where they meet in a product: then a row of these
    /// stands for the relation of a triple.
    pub(super) meetings: Option<Meetings>,
    ranges: Vec<Range<usize>>,
}

/// The edges of one direction, sorted by the node that hears.
pub(super) struct Edges {
    /// The node that hears (i), ascending.
    pub(super) target: Arc<Segments>,
    /// The node that is heard (j).
    pub(super) source: Arc<Segments>,
    /// Where nodes hear steps, a relation walked against its direction has the number of all
    /// relations added, and what a topic hears of itself has twice that number.
    pub(super) relation: Arc<Segments>,
    pub(super) question: Arc<Segments>,
    /// A row of `pairs`.
    pub(super) pair: Vec<u32>,
    /// Each question with each of its relations: `a_plus` is the same for all their edges.
    pub(super) pairs: Arc<Vec<Pair>>,
}

/// Questions with their relations.
pub(crate) struct Meetings {
    pub(crate) question: Arc<Segments>,
    pub(crate) relation: Arc<Segments>,
}

#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) question: u32,
    pub(crate) relation: u32,
}

/// The triples in the order in which the questions list them.
pub(crate) struct Triples {
    pub(crate) head: Arc<Segments>,
    pub(crate) relation: Arc<Segments>,
    pub(crate) tail: Arc<Segments>,
    pub(crate) question: Arc<Segments>,
}

impl Batch {
    /// Joins `subgraphs`, whose entities and relations are rows of the label vectors
    /// `entities` and `relations` (`[rows, dim]`). Relations that questions share are kept once.
    pub fn new(
        config: &Config,
        subgraphs: &[Subgraph<'_>],
        entities: &dyn Rows,
        relations: &dyn Rows,
        device: &Device,
    ) -> Result<Self> {
        let dim = config.dim;
        let used = used_relations(dim, subgraphs, entities, relations)?;
        let nodes = subgraphs.iter().map(|s| s.entities.len()).sum();
        let questions = subgraphs.len();
        let one_hot = match config.query_init() {
            0 => 0,
            _ => questions,
        };
        let width = dim + 2 + one_hot;
        let mut inputs = vec![0.0; nodes * width];
        let mut rows = inputs.chunks_exact_mut(width);
        for (question, subgraph) in subgraphs.iter().enumerate() {
            for (&entity, &topic) in subgraph.entities.iter().zip(subgraph.topics) {
                let row = rows.next().expect("one row for each entity");
                entities.read(&[entity], 0..dim, &mut row[..dim]);
                row[dim + usize::from(topic)] = 1.0;
                if one_hot > 0 {
                    row[dim + 2 + question] = 1.0;
                }
            }
        }
        if !inputs.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: "entity vector".into(),
            });
        }
        let joined = Joined::new(subgraphs, &used, config.steps);
        let sizes = (nodes, used.len(), questions);
        Ok(Self {
            nodes,
            dim,
            inputs,
            width,
            questions: question_rows(dim, subgraphs, device)?,
            relations: relation_rows(dim, &used, relations, device)?,
            forward: Arc::new(joined.edges(sizes, |[head, _, tail]| (head, tail))),
            backward: Arc::new(joined.edges(sizes, |[head, _, tail]| (tail, head))),
            triples: Arc::new(joined.triples(sizes, config.meets())),
            meetings: config.meets().then(|| joined.meetings(sizes)),
            ranges: joined.ranges,
        })
    }

    /// Number of triples of all questions: one score each.
    pub fn triples(&self) -> usize {
        self.triples.head.len()
    }

    /// Where each question's triples lie among the scores.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// `[nodes, inputs]` on `device`, with dropout over e and p if there is a generator.
    pub(super) fn inputs(
        &self,
        dropout: Option<(f32, &mut Random)>,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        let mut inputs = self.inputs.clone();
        if let Some((rate, random)) = dropout {
            let own = self.dim + 2;
            let mask = dropout_mask(self.nodes * own, rate, random);
            let rows = inputs.chunks_exact_mut(self.width);
            for (row, mask) in rows.zip(mask.chunks_exact(own)) {
                row.iter_mut().zip(mask).for_each(|(x, m)| *x *= m);
            }
        }
        Tensor::from_vec(inputs, (self.nodes, self.width), device)
    }
}

/// The rows of all relations that some questions have, ascending; refuses what cannot be scored.
pub(crate) fn used_relations(
    dim: usize,
    subgraphs: &[Subgraph<'_>],
    entities: &dyn Rows,
    relations: &dyn Rows,
) -> Result<Vec<u32>> {
    for (what, rows) in [("entity vector", entities), ("relation vector", relations)] {
        if rows.width() != dim {
            return Err(Error::Dimension {
                what,
                wanted: dim,
                given: rows.width(),
            });
        }
    }
    if subgraphs.is_empty() {
        return Err(Error::EmptySubgraph);
    }
    for subgraph in subgraphs {
        subgraph.check(dim, entities.len(), relations.len())?;
    }
    let rows = subgraphs.iter().flat_map(|s| s.relations.iter().copied());
    let mut used: Vec<u32> = rows.collect();
    used.sort_unstable();
    used.dedup();
    Ok(used)
}

/// Their vectors, `[relations, dim]`.
pub(crate) fn relation_rows(
    dim: usize,
    used: &[u32],
    relations: &dyn Rows,
    device: &Device,
) -> Result<Tensor> {
    let mut rows = vec![0.0; used.len() * dim];
    relations.read(used, 0..dim, &mut rows);
    if !rows.iter().all(|x| x.is_finite()) {
        return Err(Error::NotFinite {
            what: "relation vector".into(),
        });
    }
    Ok(Tensor::from_vec(rows, (used.len(), dim), device)?)
}

/// The questions' vectors, `[questions, dim]`.
pub(crate) fn question_rows(
    dim: usize,
    subgraphs: &[Subgraph<'_>],
    device: &Device,
) -> Result<Tensor> {
    let rows = subgraphs.iter().flat_map(|s| s.question.iter().copied());
    let rows: Vec<f32> = rows.collect();
    Ok(Tensor::from_vec(rows, (subgraphs.len(), dim), device)?)
}

/// The joined graph, triple by triple.
pub(crate) struct Joined {
    pub(crate) triples: Vec<[u32; 3]>, // ids of the batch
    question: Vec<u32>,
    pub(crate) pair: Vec<u32>,
    pairs: Arc<Vec<Pair>>,
    pub(crate) ranges: Vec<Range<usize>>,
    /// Whether edges are walked both ways, and topics hear themselves.
    steps: bool,
    /// Topics with their questions.
    topics: Vec<(u32, u32)>,
}

impl Joined {
    pub(crate) fn new(subgraphs: &[Subgraph<'_>], used: &[u32], steps: bool) -> Self {
        let mut joined = Self {
            steps,
            topics: vec![],
            triples: vec![],
            question: vec![],
            pair: vec![],
            pairs: Arc::default(),
            ranges: vec![],
        };
        let mut pairs = vec![];
        let mut first_node = 0u32;
        for (question, subgraph) in subgraphs.iter().enumerate() {
            let first_pair = pairs.len() as u32;
            pairs.extend(subgraph.relations.iter().map(|relation| Pair {
                question: question as u32,
                relation: used.partition_point(|row| row < relation) as u32,
            }));
            let start = joined.triples.len();
            for [head, relation, tail] in subgraph.triples {
                let pair = first_pair + relation;
                joined.triples.push([
                    first_node + head,
                    pairs[pair as usize].relation,
                    first_node + tail,
                ]);
                joined.question.push(question as u32);
                joined.pair.push(pair);
            }
            joined.ranges.push(start..joined.triples.len());
            let topics = (0u32..).zip(subgraph.topics).filter(|(_, topic)| **topic);
            let named = topics.map(|(node, _)| (first_node + node, question as u32));
            joined.topics.extend(named);
            first_node += subgraph.entities.len() as u32;
        }
        if steps {
            for at in 0..pairs.len() {
                let Pair { question, relation } = pairs[at];
                let relation = relation + used.len() as u32;
                pairs.push(Pair { question, relation });
            }
            pairs.extend((0..subgraphs.len() as u32).map(|question| Pair {
                question,
                relation: 2 * used.len() as u32,
            }));
        }
        joined.pairs = Arc::new(pairs);
        joined
    }

    /// `ends` gives source and target of a triple.
    fn edges(
        &self,
        (nodes, relations, questions): (usize, usize, usize),
        ends: impl Fn([u32; 3]) -> (u32, u32),
    ) -> Edges {
        struct Edge {
            target: u32,
            source: u32,
            relation: u32,
            question: u32,
            pair: u32,
        }
        let way = |e: usize, against: bool| {
            let (source, target) = ends(self.triples[e]);
            let (source, target) = if against {
                (target, source)
            } else {
                (source, target)
            };
            let against = u32::from(against);
            Edge {
                target,
                source,
                relation: self.triples[e][1] + against * relations as u32,
                question: self.question[e],
                pair: self.pair[e] + against * self.pairs_along().len() as u32,
            }
        };
        let own = |&(node, question): &(u32, u32)| Edge {
            target: node,
            source: node,
            relation: 2 * relations as u32,
            question,
            pair: 2 * self.pairs_along().len() as u32 + question,
        };
        let ways: &[bool] = if self.steps { &[false, true] } else { &[false] };
        let edges: Vec<Edge> = ways
            .iter()
            .flat_map(|&against| (0..self.triples.len()).map(move |e| (e, against)))
            .map(|(e, against)| way(e, against))
            .chain(self.topics.iter().filter(|_| self.steps).map(own))
            .collect();
        let rows = if self.steps {
            2 * relations + 1
        } else {
            relations
        };
        let by_target = Segments::new(edges.iter().map(|e| e.target).collect(), nodes);
        let order: Vec<&Edge> = (0..nodes)
            .flat_map(|node| by_target.entries(node).iter().map(|e| &edges[*e as usize]))
            .collect();
        let segments = |of: &dyn Fn(&Edge) -> u32, count| {
            Arc::new(Segments::new(order.iter().map(|e| of(e)).collect(), count))
        };
        Edges {
            target: segments(&|e| e.target, nodes),
            source: segments(&|e| e.source, nodes),
            relation: segments(&|e| e.relation, rows),
            question: segments(&|e| e.question, questions),
            pair: order.iter().map(|e| e.pair).collect(),
            pairs: self.pairs.clone(),
        }
    }

    /// Pairs of questions and relations, walked along their direction.
    fn pairs_along(&self) -> &[Pair] {
        match self.steps {
            // then come as many walked against their direction, and one for each question
            true => &self.pairs[..(self.pairs.len() - self.ranges.len()) / 2],
            false => &self.pairs,
        }
    }

    pub(crate) fn meetings(&self, (_, relations, questions): (usize, usize, usize)) -> Meetings {
        let pairs = self.pairs_along();
        let segments = |of: fn(&Pair) -> u32, count| {
            Arc::new(Segments::new(pairs.iter().map(of).collect(), count))
        };
        Meetings {
            question: segments(|pair| pair.question, questions),
            relation: segments(|pair| pair.relation, relations),
        }
    }

    pub(crate) fn triples(
        &self,
        (nodes, relations, questions): (usize, usize, usize),
        by_pair: bool,
    ) -> Triples {
        let column = |i: usize, count| {
            let ids = self.triples.iter().map(|triple| triple[i]).collect();
            Arc::new(Segments::new(ids, count))
        };
        Triples {
            head: column(0, nodes),
            relation: match by_pair {
                true => Arc::new(Segments::new(self.pair.clone(), self.pairs_along().len())),
                false => column(1, relations),
            },
            tail: column(2, nodes),
            question: Arc::new(Segments::new(self.question.clone(), questions)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qr_gat::Table;

    #[test]
    fn questions_are_joined_without_edges_between_them() -> Result<()> {
        let config = Config {
            dim: 2,
            ..Config::default()
        };
        let (entities, relations): (Vec<f32>, Vec<f32>) =
            ((0..10).map(|x| x as f32).collect(), vec![0.5; 8]);
        let entities = Table::new(&entities, 2)?;
        let relations = Table::new(&relations, 2)?;
        let first = Subgraph {
            question: &[1.0, 2.0],
            entities: &[4, 1],
            topics: &[true, false],
            relations: &[3, 0],
            triples: &[[0, 0, 1], [1, 1, 0]],
        };
        let second = Subgraph {
            question: &[3.0, 4.0],
            entities: &[2, 4, 0],
            topics: &[false, true, false],
            relations: &[3],
            triples: &[[2, 0, 1], [0, 0, 1]],
        };
        let batch = Batch::new(
            &config,
            &[first, second],
            &entities,
            &relations,
            &Device::Cpu,
        )?;
        assert_eq!(batch.triples(), 4);
        assert_eq!(batch.ranges(), [0..2, 2..4]);
        // nodes 0, 1 | 2, 3, 4; relation rows 0 and 3 become 0 and 1
        assert_eq!(batch.triples.head.ids(), [0, 1, 4, 2]);
        assert_eq!(batch.triples.tail.ids(), [1, 0, 3, 3]);
        assert_eq!(batch.triples.relation.ids(), [1, 0, 1, 1]);
        // heard by node 0: triple 1; by 1: triple 0; by 3: triples 2 and 3
        assert_eq!(batch.forward.target.ids(), [0, 1, 3, 3]);
        assert_eq!(batch.forward.source.ids(), [1, 0, 4, 2]);
        assert_eq!(batch.forward.pair, [1, 0, 2, 2]);
        assert_eq!(batch.backward.target.ids(), [0, 1, 2, 4]);
        // entity 1 of the first question: e = [2, 3], no topic, question 0
        let inputs = batch.inputs(None, &Device::Cpu)?.to_vec2::<f32>()?;
        assert_eq!(inputs[1], [2.0, 3.0, 1.0, 0.0, 1.0, 0.0]);
        assert_eq!(inputs[3], [8.0, 9.0, 0.0, 1.0, 0.0, 1.0]);
        Ok(())
    }
}
