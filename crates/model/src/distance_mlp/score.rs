//! The network as it answers: no gradients, and only what depends on the question.
//!
//! Once per graph and checkpoint: `W_1·e` of every entity as head and as tail, `W_1·r` and `M_r·r` of
//! every relation. Per question: `W_1·q`, a product of ten numbers for each entity, and one pass
//! over the triples:
//!
//! ```text
//! s = W_2·ReLU(Q + H[h] + R[r] + T[t])        H = W_1·e + W_1·d as head, T as tail
//! ```

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Config;
use super::encoding::encode;
use crate::Result;
use crate::checkpoint::numbers;
use crate::qr_gat::{Rows, Subgraph};
use crate::scoring::{
    LabelWeights, Scored, TripleNetwork, TripleScorer, add_meetings, check_question,
};
use crate::tensor::lanes::relu_layer;
use crate::tensor::panels::Panels;
use crate::tensor::{add_to, vectorise};

/// Rows that one thread takes at a time.
const ROWS: usize = 64;
/// Triples that one thread takes at a time.
const TRIPLES: usize = 256;

/// The distance scorer, ready to score the triples of a question.
pub struct Scorer {
    config: Config,
    labels: LabelWeights,
    /// W_1's columns of d, as head and as tail: `[2·hidden, distances]`.
    distances: Panels,
    question: Panels,
    m_q: Option<Panels>,
    b_1: Vec<f32>,
    w_2: Vec<f32>, // [outputs, hidden]
    b_2: Vec<f32>,
}

/// Room for one question at a time, kept from one to the next.
#[derive(Default)]
pub struct Scratch {
    d: Vec<f32>,
    nodes: Vec<f32>,     // [entities, 2·hidden]
    relations: Vec<f32>, // [relations, hidden]
    by_triple: Vec<f32>, // [triples, outputs]
    logits: Vec<f32>,    // [outputs, triples]
}

impl Scorer {
    /// Takes over the weights of a network.
    pub fn new(network: &impl TripleNetwork<Sizes = Config>) -> Result<Self> {
        let config = network.sizes().clone();
        let weights = numbers(network.parameters())?;
        let Config { dim, .. } = config;
        let w_1 = &weights["w_1"];
        let node = config.node();
        let columns = 2 * dim + 2 * node;
        let (head, relation, tail) = (dim, dim + node, 2 * dim + node);
        let part = |from: usize, count: usize| Panels::new(w_1, columns, from..from + count);
        // the two ends' columns of d, one below the other
        let d = config.distances();
        let mut both = Vec::with_capacity(2 * config.hidden * d);
        for from in [head + dim, tail + dim] {
            for row in w_1.chunks_exact(columns) {
                both.extend_from_slice(&row[from..from + d]);
            }
        }
        let meeting = |name: &str| Panels::new(&weights[name], dim, 0..dim);
        let mut relations = vec![part(relation, dim)];
        if config.matching {
            relations.push(meeting("m_r"));
        }
        Ok(Self {
            labels: LabelWeights {
                dim,
                entity: vec![part(head, dim), part(tail, dim)],
                relation: relations,
            },
            distances: Panels::new(&both, d, 0..d),
            question: part(0, dim),
            m_q: config.matching.then(|| meeting("m_q")),
            b_1: weights["b_1"].clone(),
            w_2: weights["w_2"].clone(),
            b_2: weights["b_2"].clone(),
            config,
        })
    }

    /// `W_1·[e ‖ d]` of every entity, as head and as tail.
    fn nodes(&self, subgraph: &Subgraph<'_>, entities: &dyn Rows, d: &[f32], out: &mut Vec<f32>) {
        let (width, hidden) = (self.config.distances(), self.config.hidden);
        out.resize(subgraph.entities.len() * 2 * hidden, 0.0);
        self.distances.product(|i| &d[i * width..][..width], out);
        let arch = Arch::new();
        out.par_chunks_mut(ROWS * 2 * hidden)
            .zip(subgraph.entities.par_chunks(ROWS))
            .for_each_init(Vec::new, |labels: &mut Vec<f32>, (out, rows)| {
                labels.resize(rows.len() * 2 * hidden, 0.0);
                entities.read(rows, 0..2 * hidden, labels);
                vectorise(
                    arch,
                    #[inline(always)]
                    || add_to(out, labels),
                );
            });
    }

    /// `W_1·r`, and what question and relation make together, of every relation.
    fn relations(&self, subgraph: &Subgraph<'_>, parts: &dyn Rows, out: &mut Vec<f32>) {
        let hidden = self.config.hidden;
        out.resize(subgraph.relations.len() * hidden, 0.0);
        parts.read(subgraph.relations, 0..hidden, out);
        if let Some(m_q) = &self.m_q {
            add_meetings(m_q, subgraph, parts, hidden, out);
        }
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
            d,
            nodes,
            relations: of_relation,
            by_triple,
            logits,
        } = scratch;
        encode(&self.config, subgraph.topics, subgraph.triples, d);
        self.nodes(subgraph, entities, d, nodes);
        self.relations(subgraph, relations, of_relation);
        let mut of_question = vec![0.0; self.config.hidden];
        self.question.of_row(subgraph.question, &mut of_question);
        add_to(&mut of_question, &self.b_1);

        let (count, outputs) = (subgraph.triples.len(), self.b_2.len());
        by_triple.resize(count * outputs, 0.0);
        let arch = Arch::new();
        by_triple
            .par_chunks_mut(TRIPLES * outputs)
            .zip(subgraph.triples.par_chunks(TRIPLES))
            .for_each(|(logits, triples)| {
                arch.dispatch(Pass {
                    scorer: self,
                    triples,
                    nodes,
                    of_relation,
                    of_question: &of_question,
                    logits,
                });
            });
        logits.resize(by_triple.len(), 0.0);
        for (triple, row) in by_triple.chunks_exact(outputs).enumerate() {
            for (output, logit) in row.iter().enumerate() {
                logits[output * count + triple] = *logit;
            }
        }
        Scored::of(logits, count, self.config.answers)
    }
}

/// Some triples.
struct Pass<'a> {
    scorer: &'a Scorer,
    triples: &'a [[u32; 3]],
    nodes: &'a [f32],
    of_relation: &'a [f32],
    of_question: &'a [f32],
    logits: &'a mut [f32],
}

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let hidden = self.of_question.len();
        let (w_2, b_2) = (&self.scorer.w_2, &self.scorer.b_2);
        let rows = self.logits.chunks_exact_mut(b_2.len());
        for ([head, relation, tail], logits) in self.triples.iter().zip(rows) {
            let parts = [
                &self.nodes[*head as usize * 2 * hidden..][..hidden],
                &self.of_relation[*relation as usize * hidden..][..hidden],
                &self.nodes[(*tail as usize * 2 + 1) * hidden..][..hidden],
                self.of_question,
            ];
            relu_layer(simd, w_2, b_2, parts, logits);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Random;
    use crate::distance_mlp::Network;
    use crate::distance_mlp::network::tests::numbers as random_numbers;
    use crate::qr_gat::Table;
    use crate::tensor::Device;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn answering_and_training_code_give_the_same_scores(
            nodes in 1usize..30,
            edges in 1usize..120,
            hidden in 1usize..40,
            rounds in (0usize..3, 0usize..3),
            departs in (proptest::bool::ANY, proptest::bool::ANY),
            seed in 0u64..10_000,
        ) {
            let config = Config {
                dim: 5,
                hidden,
                rounds: rounds.0,
                rounds_back: rounds.1,
                answers: departs.0,
                matching: departs.1,
            };
            let network = Network::untrained(config, &mut Random::new(seed), &Device::Cpu).unwrap();
            let mut random = Random::new(seed ^ 1);
            let triples: Vec<[u32; 3]> = (0..edges)
                .map(|_| [random.below(nodes) as u32, random.below(3) as u32, random.below(nodes) as u32])
                .collect();
            let topics: Vec<bool> = (0..nodes).map(|node| node % 5 == 0).collect();
            let entities: Vec<u32> = (0..nodes).map(|_| random.below(40) as u32).collect();
            let question = random_numbers(5, seed ^ 2);
            let labels = [random_numbers(200, seed ^ 3), random_numbers(15, seed ^ 4)];
            let subgraph = Subgraph {
                question: &question,
                entities: &entities,
                topics: &topics,
                relations: &[2, 0, 1],
                triples: &triples,
            };
            let [entities, relations] = [0, 1].map(|i| Table::new(&labels[i], 5).unwrap());
            let trained = network.logits(&[subgraph], [&entities, &relations], None, &Device::Cpu).unwrap();
            let trained: Vec<f32> = trained.t().unwrap().flatten_all().unwrap().to_vec1().unwrap();
            let scorer = network.scorer().unwrap();
            let mut scratch = Scratch::default();
            let scored = scorer.score(
                &subgraph,
                &scorer.entity_parts(&entities).unwrap(),
                &scorer.relation_parts(&relations).unwrap(),
                &mut scratch,
            ).unwrap();
            let ends = scored.answers.map_or(vec![], |ends| ends.concat());
            let answered = [scored.triples, &ends].concat();
            prop_assert_eq!(answered.len(), trained.len());
            for (a, t) in answered.iter().zip(&trained) {
                prop_assert!((a - t).abs() < 1e-4, "{} {}", a, t);
            }
        }
    }
}
