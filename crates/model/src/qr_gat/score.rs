//! The network as it answers: no gradients, and only what depends on the question.
//!
//! Once per graph and checkpoint, for every entity and relation ([`TripleScorer::entity_parts`],
//! [`TripleScorer::relation_parts`], kept in a [`Table`](super::Table)):
//!
//! ```text
//! entity    W_s·e →, W_t·e →, W_s·e ←, W_t·e ←                of the first layer
//! relation  W_e·r, W_r·r for every layer → and ←,  W_1·r,  M_r·r
//! ```
//!
//! Per question: `W_s·q`, `W_t·q`, `W_q·q` and `W_1·q` once; sums for the first layer; products
//! over rows of states for the others (see `plan`); one pass over the edges of each layer; one pass
//! over the triples. The two directions run side by side, and their rows are shared out to all
//! threads.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::direction::{Question, Stack, Way, resize};
use super::parameters::Direction;
use super::plan::Grouped;
use super::{Ablation, Config, Rows, Subgraph};
use crate::Result;
use crate::checkpoint::numbers;
use crate::scoring::{
    LabelWeights, Scored, TripleNetwork, TripleScorer, add_meetings, check_question,
};
use crate::tensor::add_to;
use crate::tensor::lanes::relu_layer;
use crate::tensor::panels::Panels;

/// Triples that one thread takes at a time.
const TRIPLES: usize = 128;

/// QR-GAT, ready to score the triples of a question.
///
/// ```
/// use wherefore_model::qr_gat::{Config, Network, Scorer, Scratch, Subgraph, Table};
/// use wherefore_model::scoring::TripleScorer;
/// use wherefore_model::{Random, tensor::Device};
///
/// let config = Config { dim: 2, hidden: 4, heads: 2, ..Config::default() };
/// let network = Network::new(config, &mut Random::new(1), &Device::Cpu)?;
/// let scorer = Scorer::new(&network)?;
///
/// let labels = [0.6, 0.8, 1.0, 0.0, 0.0, 1.0]; // three entities
/// let entities = scorer.entity_parts(&Table::new(&labels, 2)?)?.to_f16();
/// let relations = scorer.relation_parts(&Table::new(&[0.8, 0.6], 2)?)?.to_f32();
/// let logits = scorer.score(
///     &Subgraph {
///         question: &[1.0, 0.0],
///         entities: &[0, 1, 2],
///         topics: &[true, false, false],
///         relations: &[0],
///         triples: &[[0, 0, 1], [0, 0, 2]],
///     },
///     &Table::new(&entities, scorer.entity_width())?,
///     &Table::new(&relations, scorer.relation_width())?,
///     &mut Scratch::default(),
/// )?.triples.to_vec();
/// assert_eq!(logits[0], logits[1]); // siblings that hear only their parent
/// # Ok::<(), wherefore_model::Error>(())
/// ```
pub struct Scorer {
    config: Config,
    labels: LabelWeights,
    forward: Stack,
    backward: Stack,
    /// q's part of W_1; none with `no-query-score`.
    w_1: Option<Panels>,
    /// M_q; none without `matching`.
    m_q: Option<Panels>,
    b_1: Vec<f32>,
    w_2: Vec<f32>, // [outputs, hidden]
    b_2: Vec<f32>,
}

/// Room for one question at a time, kept from one to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    forward: Way,
    backward: Way,
    of_question: Vec<f32>, // [hidden]: W_1·q + b_1
    of_relation: Vec<f32>, // [relations, hidden]: W_1·r
    by_head: Grouped,
    grouped: Vec<f32>, // [triples, outputs], by head
    logits: Vec<f32>,  // [outputs, triples]
}

impl Scorer {
    /// Takes over the weights of a network.
    pub fn new(network: &impl TripleNetwork<Sizes = Config>) -> Result<Self> {
        let config = network.sizes().clone();
        let weights = numbers(network.parameters())?;
        let hidden = config.hidden;
        let w_1 = &weights["w_1"];
        let width = w_1.len() / hidden;
        let q = config.query_score();
        let of_relation = q + 2 * hidden;
        let mut entity = vec![];
        let mut relation = vec![];
        let mut stack = |direction| {
            let own = match direction {
                Direction::Forward => 0,
                Direction::Backward => hidden,
            };
            let end = |start: usize| Panels::new(w_1, width, start + own..start + own + hidden);
            let (head, tail) = (end(q), end(of_relation + config.dim));
            Stack::new(
                &config,
                &weights,
                direction,
                [head, tail],
                &mut entity,
                &mut relation,
            )
        };
        let (forward, backward) = (stack(Direction::Forward), stack(Direction::Backward));
        relation.push(Panels::new(
            w_1,
            width,
            of_relation..of_relation + config.dim,
        ));
        let meeting = |name: &str| Panels::new(&weights[name], config.dim, 0..config.dim);
        if config.meets() {
            relation.push(meeting("m_r"));
        }
        Ok(Self {
            m_q: config.meets().then(|| meeting("m_q")),
            labels: LabelWeights {
                dim: config.dim,
                entity,
                relation,
            },
            forward,
            backward,
            w_1: config
                .keeps(Ablation::NoQueryScore)
                .then(|| Panels::new(w_1, width, 0..q)),
            b_1: weights["b_1"].clone(),
            w_2: weights["w_2"].clone(),
            b_2: weights["b_2"].clone(),
            config,
        })
    }

    /// The network's sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// `W_1·r`, and what question and relation make together, of every relation.
    fn relations(&self, subgraph: &Subgraph<'_>, parts: &dyn Rows, out: &mut Vec<f32>) {
        let hidden = self.config.hidden;
        let mut end = self.relation_width();
        resize(out, subgraph.relations.len() * hidden);
        end -= hidden * usize::from(self.m_q.is_some());
        parts.read(subgraph.relations, end - hidden..end, out);
        if let Some(m_q) = &self.m_q {
            add_meetings(m_q, subgraph, parts, end, out);
        }
    }

    /// `W_2·ReLU(…) + b_2` of every triple, in the order of their heads.
    fn triples(
        &self,
        edges: &Grouped,
        [forward, backward]: [&Way; 2],
        of_question: &[f32],
        of_relation: &[f32],
        logits: &mut Vec<f32>,
    ) {
        resize(logits, edges.triple.len() * self.b_2.len());
        let arch = Arch::new();
        logits
            .par_chunks_mut(TRIPLES * self.b_2.len())
            .enumerate()
            .for_each(|(block, logits)| {
                arch.dispatch(Triples {
                    scorer: self,
                    edges,
                    forward,
                    backward,
                    of_question,
                    of_relation,
                    first: block * TRIPLES,
                    logits,
                });
            });
    }
}

impl TripleScorer for Scorer {
    type Scratch = Scratch;

    fn labels(&self) -> &LabelWeights {
        &self.labels
    }

    fn score<'s>(
        &self,
        subgraph: &Subgraph<'_>,
        entities: &dyn Rows,
        relations: &dyn Rows,
        scratch: &'s mut Scratch,
    ) -> Result<Scored<'s>> {
        check_question(self, subgraph, entities, relations)?;
        let Scratch {
            forward,
            backward,
            of_question,
            of_relation,
            by_head,
            grouped,
            logits,
        } = scratch;
        let question = Question {
            config: &self.config,
            subgraph,
            entities,
            relations,
        };
        rayon::join(
            || question.run(Direction::Backward, &self.backward, backward),
            || {
                of_question.clone_from(&self.b_1);
                if let Some(w_1) = &self.w_1 {
                    w_1.of_row(subgraph.question, of_question);
                    add_to(of_question, &self.b_1);
                }
                self.relations(subgraph, relations, of_relation);
                question.run(Direction::Forward, &self.forward, forward);
            },
        );
        let edges = match self.config.steps {
            // there the backward edges go both ways
            true => {
                by_head.build(subgraph.triples, subgraph.topics, Direction::Backward, None);
                &*by_head
            }
            false => &backward.edges,
        };
        self.triples(
            edges,
            [forward, backward],
            of_question,
            of_relation,
            grouped,
        );
        resize(logits, grouped.len());
        let count = subgraph.triples.len();
        let rows = grouped.chunks_exact(self.b_2.len());
        for (triple, row) in edges.triple.iter().zip(rows) {
            for (output, logit) in row.iter().enumerate() {
                logits[output * count + *triple as usize] = *logit;
            }
        }
        Scored::of(logits, count, self.config.answers)
    }
}

/// Some triples, in the order of their heads.
struct Triples<'a> {
    scorer: &'a Scorer,
    edges: &'a Grouped,
    forward: &'a Way,
    backward: &'a Way,
    of_question: &'a [f32],
    of_relation: &'a [f32],
    first: usize,
    logits: &'a mut [f32],
}

impl WithSimd for Triples<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let hidden = self.of_question.len();
        let (edges, b_2) = (self.edges, &self.scorer.b_2);
        let mut base = vec![0.0; hidden]; // the question's and the head's part
        let mut last = None;
        for (i, logits) in self.logits.chunks_exact_mut(b_2.len()).enumerate() {
            let edge = self.first + i;
            let triple = edges.triple[edge];
            if last != Some(edges.target[edge]) {
                last = Some(edges.target[edge]);
                base.copy_from_slice(self.of_question);
                add_to(&mut base, self.forward.head.row(triple, hidden));
                add_to(&mut base, self.backward.head.row(triple, hidden));
            }
            let relation = edges.relation[edge] as usize * hidden;
            let parts = [
                &base,
                &self.of_relation[relation..][..hidden],
                self.forward.tail.row(triple, hidden),
                self.backward.tail.row(triple, hidden),
            ];
            relu_layer(simd, &self.scorer.w_2, b_2, parts, logits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use crate::qr_gat::network::tests::{network, numbers as random_numbers};
    use crate::qr_gat::{Batch, Network, Table};
    use crate::tensor::Device;
    use proptest::prelude::*;

    /// Logits of the answering code and of the training code.
    fn both(network: &Network, subgraph: &Subgraph<'_>, labels: [&[f32]; 2]) -> [Vec<f32>; 2] {
        let dim = network.config().dim;
        let [entities, relations] = labels.map(|labels| Table::new(labels, dim).unwrap());
        let batch = Batch::new(
            network.config(),
            &[*subgraph],
            &entities,
            &relations,
            &Device::Cpu,
        )
        .unwrap();
        let logits = network.forward(&batch, None).unwrap();
        let trained = logits.t().unwrap().flatten_all().unwrap();
        let trained = trained.to_vec1().unwrap();
        let all = |scored: Scored<'_>| {
            let ends = scored.answers.map_or(vec![], |ends| ends.concat());
            [scored.triples, &ends].concat()
        };
        let scorer = Scorer::new(network).unwrap();
        let entities = scorer.entity_parts(&entities).unwrap();
        let relations = scorer.relation_parts(&relations).unwrap();
        let mut scratch = Scratch::default();
        let lazy = scorer
            .score(subgraph, &entities, &relations, &mut scratch)
            .unwrap();
        let lazy = all(lazy);
        let (entities, relations) = (entities.to_f32(), relations.to_f32());
        let answered = scorer
            .score(
                subgraph,
                &Table::new(&entities, scorer.entity_width()).unwrap(),
                &Table::new(&relations, scorer.relation_width()).unwrap(),
                &mut scratch,
            )
            .unwrap();
        assert_eq!(lazy, all(answered));
        [lazy, trained]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn answering_and_training_code_give_the_same_scores(
            nodes in 1usize..30,
            relations in 1usize..5,
            edges in 1usize..120,
            sizes in (1usize..4, 1usize..4, 1usize..7),
            departs in (proptest::bool::ANY, proptest::bool::ANY, proptest::bool::ANY),
            ablations in proptest::sample::subsequence(
                vec![Ablation::NoQueryInit, Ablation::NoQueryAttn, Ablation::NoQueryScore], 0..4),
            seed in 0u64..10_000,
        ) {
            let (layers, heads, width) = sizes;
            let config = Config {
                dim: 5,
                hidden: heads * width,
                layers,
                heads,
                dropout: 0.0,
                steps: departs.0,
                answers: departs.1,
                matching: departs.2,
                ablations: ablations.into_iter().collect(),
            };
            let network = network(config, seed);
            let mut random = Random::new(seed ^ 1);
            let triples: Vec<[u32; 3]> = (0..edges)
                .map(|_| {
                    // squared: few hubs, many leaves
                    let head = (random.uniform() * random.uniform() * nodes as f32) as u32;
                    [head, random.below(relations) as u32, random.below(nodes) as u32]
                })
                .collect();
            let topics: Vec<bool> = (0..nodes).map(|node| node % 5 == 0).collect();
            let entities: Vec<u32> = (0..nodes).map(|_| random.below(40) as u32).collect();
            let relation_rows: Vec<u32> = (0..relations as u32).rev().collect();
            let question = random_numbers(5, seed ^ 2);
            let labels = [random_numbers(200, seed ^ 3), random_numbers(25, seed ^ 4)];
            let subgraph = Subgraph {
                question: &question,
                entities: &entities,
                topics: &topics,
                relations: &relation_rows,
                triples: &triples,
            };
            let [answered, trained] = both(&network, &subgraph, [&labels[0], &labels[1]]);
            prop_assert_eq!(answered.len(), trained.len());
            for (a, t) in answered.iter().zip(&trained) {
                // norms over two or three nearly equal numbers make rounding 300 times larger
                prop_assert!((a - t).abs() < 2e-3, "{a} {t}");
            }
        }
    }

    fn small() -> (Network, [Vec<f32>; 2]) {
        let config = Config {
            dim: 4,
            hidden: 6,
            heads: 2,
            ..Config::default()
        };
        (
            network(config, 4),
            [random_numbers(20, 1), random_numbers(8, 2)],
        )
    }

    const GRAPH: Subgraph<'_> = Subgraph {
        question: &[0.1, 0.2, 0.3, 0.4],
        entities: &[0, 1, 2, 3, 4],
        topics: &[true, false, false, false, true],
        relations: &[0, 1],
        triples: &[[0, 0, 1], [2, 1, 1], [1, 0, 3]],
    };

    #[test]
    fn a_topic_without_edges_is_no_harm() {
        let (network, labels) = small();
        // entity 4 is a topic and touches nothing; 0 and 2 hear nobody
        let [answered, trained] = both(&network, &GRAPH, [&labels[0], &labels[1]]);
        for (a, t) in answered.iter().zip(&trained) {
            assert!((a - t).abs() < 1e-4, "{a} {t}");
        }
    }

    #[test]
    fn room_is_reused_by_smaller_and_larger_questions() -> Result<()> {
        let (network, labels) = small();
        let scorer = Scorer::new(&network)?;
        let (entities, relations) = (Table::new(&labels[0], 4)?, Table::new(&labels[1], 4)?);
        let entities = scorer.entity_parts(&entities)?;
        let relations = scorer.relation_parts(&relations)?;
        let less = Subgraph {
            triples: &GRAPH.triples[..1],
            ..GRAPH
        };
        let mut scratch = Scratch::default();
        let mut fresh = |graph| -> Result<Vec<f32>> {
            let own = scorer
                .score(graph, &entities, &relations, &mut Scratch::default())?
                .triples
                .to_vec();
            let shared = scorer.score(graph, &entities, &relations, &mut scratch)?;
            assert_eq!(own, shared.triples);
            Ok(own)
        };
        assert_eq!(fresh(&GRAPH)?.len(), 3);
        assert_eq!(fresh(&less)?.len(), 1);
        assert_eq!(fresh(&GRAPH)?.len(), 3);
        Ok(())
    }

    #[test]
    fn half_precision_parts_move_scores_little() -> Result<()> {
        let (network, labels) = small();
        let scorer = Scorer::new(&network)?;
        let (entities, relations) = (Table::new(&labels[0], 4)?, Table::new(&labels[1], 4)?);
        let entities = scorer.entity_parts(&entities)?;
        let relations = scorer.relation_parts(&relations)?;
        let mut scratch = Scratch::default();
        let full = scorer
            .score(&GRAPH, &entities, &relations, &mut scratch)?
            .triples
            .to_vec();
        let (entities, relations) = (entities.to_f16(), relations.to_f16());
        let half = scorer.score(
            &GRAPH,
            &Table::new(&entities, scorer.entity_width())?,
            &Table::new(&relations, scorer.relation_width())?,
            &mut scratch,
        )?;
        for (full, half) in full.iter().zip(half.triples) {
            assert!((full - half).abs() < 1e-2, "{full} {half}");
        }
        Ok(())
    }

    #[test]
    fn bad_input_is_named() -> Result<()> {
        let (network, labels) = small();
        let scorer = Scorer::new(&network)?;
        let (entities, relations) = (Table::new(&labels[0], 4)?, Table::new(&labels[1], 4)?);
        let (entities, relations) = (
            scorer.entity_parts(&entities)?,
            scorer.relation_parts(&relations)?,
        );
        let says = |graph: Subgraph<'_>, entities: &dyn Rows| {
            let mut scratch = Scratch::default();
            let scores = scorer.score(&graph, entities, &relations, &mut scratch);
            scores.unwrap_err().to_string()
        };
        let empty = Subgraph {
            triples: &[],
            ..GRAPH
        };
        assert_eq!(says(empty, &entities), "the subgraph has no triple");
        let narrow = Subgraph {
            question: &[1.0],
            ..GRAPH
        };
        assert_eq!(
            says(narrow, &entities),
            "the question vector has 1 numbers, and 4 were expected"
        );
        let raw = Table::new(&labels[0], 4)?;
        assert_eq!(
            says(GRAPH, &raw),
            "the row of entity parts has 4 numbers, and 24 were expected"
        );
        assert!(scorer.entity_parts(&Table::new(&labels[0], 5)?).is_err());
        Ok(())
    }
}
