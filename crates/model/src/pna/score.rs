//! The network as it answers: no gradients, and only what depends on the question.
//!
//! Once per graph and checkpoint: `W_0·e` of every entity, `W_r·r` and `M_r·r` of every relation and
//! layer. Per question: one product for the messages and one for the updates of each layer, and one
//! pass over the edges.

use pulp::Arch;
use rayon::prelude::*;

use super::edges::Edges;
use super::{AGGREGATES, Config, EPSILON, NORM};
use crate::Result;
use crate::checkpoint::numbers;
use crate::qr_gat::{Rows, Subgraph};
use crate::scoring::{
    LabelWeights, Scored, TripleNetwork, TripleScorer, add_meetings, check_question,
};
use crate::tensor::panels::Panels;
use crate::tensor::{add_to, vectorise};
use crate::vector::sigmoid;

/// The entity scorer, ready to score the triples of a question.
pub struct Scorer {
    config: Config,
    labels: LabelWeights,
    question: Panels,
    /// W_0's columns of p with b_0, for other entities and for topics.
    flags: [Vec<f32>; 2],
    layers: Vec<Layer>,
    w_o: Vec<f32>, // [outputs, hidden]
    b_o: Vec<f32>,
}

struct Layer {
    w_m: Panels,
    b_m: Vec<f32>,
    m_q: Option<Panels>,
    w_u: Panels,
    b_u: Vec<f32>,
    scale: Vec<f32>,
    shift: Vec<f32>,
}

/// Room for one question at a time, kept from one to the next.
#[derive(Default)]
pub struct Scratch {
    states: Vec<f32>,    // [entities, hidden]
    heard: Vec<f32>,     // [entities, hidden]
    relations: Vec<f32>, // [relations, hidden]
    inputs: Vec<f32>,    // [entities, 13·hidden]
    logits: Vec<f32>,    // [1 or 3, triples]
}

impl Scorer {
    /// Takes over the weights of a network.
    pub fn new(network: &impl TripleNetwork<Sizes = Config>) -> Result<Self> {
        let config = network.sizes().clone();
        let weights = numbers(network.parameters())?;
        let Config { dim, hidden, .. } = config;
        let w_0 = &weights["w_0"];
        let columns = 2 * dim + 2;
        let flag = |column: usize| -> Vec<f32> {
            let of_flag = w_0.chunks_exact(columns).map(|row| row[column]);
            of_flag.zip(&weights["b_0"]).map(|(w, b)| w + b).collect()
        };
        let mut relation = Vec::new();
        let mut layers = Vec::new();
        for layer in 1..=config.layers {
            let get = |name: &str| &weights[&format!("{layer}.{name}")];
            let of_label = |name: &str| Panels::new(get(name), dim, 0..dim);
            if config.relations {
                relation.extend([of_label("w_r"), of_label("m_r")]);
            }
            layers.push(Layer {
                w_m: Panels::new(get("w_m"), hidden, 0..hidden),
                b_m: get("b_m").clone(),
                m_q: config.relations.then(|| of_label("m_q")),
                w_u: Panels::new(
                    get("w_u"),
                    (1 + AGGREGATES) * hidden,
                    0..(1 + AGGREGATES) * hidden,
                ),
                b_u: get("b_u").clone(),
                scale: get("norm.scale").clone(),
                shift: get("norm.shift").clone(),
            });
        }
        if relation.is_empty() {
            // a table of rows has at least one number in each
            relation.push(Panels::new(&vec![0.0; dim], dim, 0..dim));
        }
        Ok(Self {
            labels: LabelWeights {
                dim,
                entity: vec![Panels::new(w_0, columns, 0..dim)],
                relation,
            },
            question: Panels::new(w_0, columns, dim..2 * dim),
            flags: [flag(2 * dim), flag(2 * dim + 1)],
            layers,
            w_o: weights["w_o"].clone(),
            b_o: weights["b_o"].clone(),
            config,
        })
    }

    /// `h⁰` of every entity.
    fn first(&self, subgraph: &Subgraph<'_>, entities: &dyn Rows, states: &mut Vec<f32>) {
        let hidden = self.config.hidden;
        states.resize(subgraph.entities.len() * hidden, 0.0);
        entities.read(subgraph.entities, 0..hidden, states);
        let mut both = self.flags.clone();
        let mut of_question = vec![0.0; hidden];
        self.question.of_row(subgraph.question, &mut of_question);
        both.iter_mut().for_each(|sum| add_to(sum, &of_question));
        for (row, topic) in states.chunks_exact_mut(hidden).zip(subgraph.topics) {
            add_to(row, &both[usize::from(*topic)]);
            row.iter_mut().for_each(|x| *x = x.max(0.0));
        }
    }

    /// What each relation adds to a message of this layer.
    fn relations(
        &self,
        index: usize,
        subgraph: &Subgraph<'_>,
        parts: &dyn Rows,
        out: &mut Vec<f32>,
    ) {
        let hidden = self.config.hidden;
        let Some(m_q) = &self.layers[index].m_q else {
            return;
        };
        let from = 2 * index * hidden;
        out.resize(subgraph.relations.len() * hidden, 0.0);
        parts.read(subgraph.relations, from..from + hidden, out);
        add_meetings(m_q, subgraph, parts, from + hidden, out);
    }

    /// `[h ‖ A]` of every entity.
    fn aggregate(
        &self,
        layer: &Layer,
        triples: &[[u32; 3]],
        edges: &Edges,
        [states, heard, relations]: [&[f32]; 3],
        inputs: &mut [f32],
    ) {
        let hidden = self.config.hidden;
        let width = (1 + AGGREGATES) * hidden;
        let starts = starts(&edges.hearer, inputs.len() / width);
        let arch = Arch::new();
        inputs.par_chunks_mut(width).enumerate().for_each_init(
            || (vec![0.0f32; hidden], vec![0.0f32; hidden]),
            |(message, square), (node, row)| {
                let own = starts[node] as usize..starts[node + 1] as usize;
                let count = own.len();
                vectorise(
                    arch,
                    #[inline(always)]
                    || {
                        let (state, rest) = row.split_at_mut(hidden);
                        state.copy_from_slice(&states[node * hidden..][..hidden]);
                        let (plain, scaled) = rest.split_at_mut(4 * hidden);
                        let (mean, others) = plain.split_at_mut(hidden);
                        let (max, others) = others.split_at_mut(hidden);
                        let (min, std) = others.split_at_mut(hidden);
                        mean.fill(0.0);
                        square.fill(0.0);
                        let none = if count == 0 { 0.0 } else { f32::INFINITY };
                        max.fill(-none);
                        min.fill(none);
                        for edge in own.clone() {
                            self.message(
                                layer,
                                edges.triples_of(edge),
                                triples,
                                relations,
                                &heard[edges.source[edge] as usize * hidden..][..hidden],
                                message,
                            );
                            for i in 0..hidden {
                                let m = message[i];
                                mean[i] += m;
                                square[i] += m * m;
                                max[i] = max[i].max(m);
                                min[i] = min[i].min(m);
                            }
                        }
                        let share = 1.0 / count.max(1) as f32;
                        for i in 0..hidden {
                            mean[i] *= share;
                            let spread = square[i] * share - mean[i] * mean[i];
                            std[i] = (spread.max(0.0) + EPSILON).sqrt();
                        }
                        let factors = self.config.scalers(count);
                        let blocks = scaled.chunks_exact_mut(4 * hidden);
                        for (block, factor) in blocks.zip(factors) {
                            for (x, a) in block.iter_mut().zip(&*plain) {
                                *x = a * factor;
                            }
                        }
                    },
                );
            },
        );
    }

    /// The message of one edge.
    #[inline(always)]
    fn message(
        &self,
        layer: &Layer,
        own: &[(u32, bool)],
        triples: &[[u32; 3]],
        relations: &[f32],
        heard: &[f32],
        message: &mut [f32],
    ) {
        message.copy_from_slice(&layer.b_m);
        add_to(message, heard);
        if !self.config.relations {
            return;
        }
        let hidden = message.len();
        let share = 1.0 / own.len() as f32;
        for (triple, along) in own {
            let relation = triples[*triple as usize][1] as usize;
            let sign = if *along { share } else { -share };
            let row = &relations[relation * hidden..][..hidden];
            for (m, r) in message.iter_mut().zip(row) {
                *m += sign * r;
            }
        }
        message.iter_mut().for_each(|m| *m = m.max(0.0));
    }
}

/// Where each hearer's edges begin, and where the last ones end.
fn starts(hearers: &[u32], nodes: usize) -> Vec<u32> {
    let mut starts = vec![0u32; nodes + 1];
    for hearer in hearers {
        starts[*hearer as usize + 1] += 1;
    }
    for node in 0..nodes {
        starts[node + 1] += starts[node];
    }
    starts
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
        let hidden = self.config.hidden;
        let nodes = subgraph.entities.len();
        let edges = Edges::new(subgraph.triples, self.config.relations);
        let Scratch {
            states,
            heard,
            relations: of_relation,
            inputs,
            logits,
        } = scratch;
        self.first(subgraph, entities, states);
        let all = (1 + AGGREGATES) * hidden;
        heard.resize(nodes * hidden, 0.0);
        inputs.resize(nodes * all, 0.0);
        for (index, layer) in self.layers.iter().enumerate() {
            layer
                .w_m
                .product(|i| &states[i * hidden..][..hidden], heard);
            self.relations(index, subgraph, relations, of_relation);
            let before: [&[f32]; 3] = [states, heard, of_relation];
            self.aggregate(layer, subgraph.triples, &edges, before, inputs);
            layer.w_u.product(|i| &inputs[i * all..][..all], heard);
            let rows = states.chunks_exact_mut(hidden);
            for (state, update) in rows.zip(heard.chunks_exact(hidden)) {
                for ((h, u), b) in state.iter_mut().zip(update).zip(&layer.b_u) {
                    *h += (u + b).max(0.0);
                }
                norm(state, &layer.scale, &layer.shift);
            }
        }
        let of_entity = |node: u32, output: usize| -> f32 {
            let state = &states[node as usize * hidden..][..hidden];
            let weights = &self.w_o[output * hidden..][..hidden];
            let dot: f32 = state.iter().zip(weights).map(|(h, w)| h * w).sum();
            dot + self.b_o[output]
        };
        let told: Vec<Vec<f32>> = (0..self.b_o.len())
            .map(|output| (0..nodes as u32).map(|n| of_entity(n, output)).collect())
            .collect();
        let count = subgraph.triples.len();
        logits.clear();
        logits.extend(subgraph.triples.iter().map(|[head, _, tail]| {
            let p = |node: u32| sigmoid(told[0][node as usize]);
            let s = (0.5 * (p(*head) + p(*tail))).clamp(1e-6, 1.0 - 1e-6);
            (s / (1.0 - s)).ln()
        }));
        if let Some(answers) = told.get(1) {
            for end in [0, 2] {
                logits.extend(subgraph.triples.iter().map(|t| answers[t[end] as usize]));
            }
        }
        Scored::of(logits, count, self.config.answers)
    }
}

/// `γ·(x − mean x)/√(var x + ε) + β`
fn norm(x: &mut [f32], scale: &[f32], shift: &[f32]) {
    let width = x.len() as f32;
    let mean = x.iter().sum::<f32>() / width;
    let spread = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / width;
    let factor = 1.0 / (spread + NORM).sqrt();
    for ((x, scale), shift) in x.iter_mut().zip(scale).zip(shift) {
        *x = (*x - mean) * factor * scale + shift;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Random;
    use crate::distance_mlp::tests::numbers as random_numbers;
    use crate::pna::Network;
    use crate::qr_gat::Table;
    use crate::tensor::Device;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn answering_and_training_code_give_the_same_scores(
            nodes in 1usize..20,
            edges in 1usize..60,
            hidden in 1usize..20,
            layers in 1usize..3,
            departs in proptest::bool::ANY,
            seed in 0u64..10_000,
        ) {
            let config = Config {
                dim: 5,
                hidden,
                layers,
                relations: departs,
                answers: true,
                ..Config::default()
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
            let trained: Vec<Vec<f32>> = trained.to_vec2().unwrap();
            let scorer = network.scorer().unwrap();
            let mut scratch = Scratch::default();
            let scored = scorer.score(
                &subgraph,
                &scorer.entity_parts(&entities).unwrap(),
                &scorer.relation_parts(&relations).unwrap(),
                &mut scratch,
            ).unwrap();
            let [heads, tails] = scored.answers.unwrap();
            for (i, [h, _, t]) in triples.iter().enumerate() {
                let p = |n: u32| sigmoid(trained[n as usize][0]);
                let s = 0.5 * (p(*h) + p(*t));
                prop_assert!((sigmoid(scored.triples[i]) - s).abs() < 1e-4);
                prop_assert!((heads[i] - trained[*h as usize][1]).abs() < 1e-3);
                prop_assert!((tails[i] - trained[*t as usize][1]).abs() < 1e-3);
            }
        }
    }
}
