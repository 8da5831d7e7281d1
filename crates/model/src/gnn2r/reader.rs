//! The network as it answers: no gradients, weights packed once, what depends on relations alone
//! computed once for a graph.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::network::Network;
use super::one_way::BothWays;
use super::plan::{Layer, Plan, TOPIC};
use super::{Config, SLOPE, Shape};
use crate::checkpoint::{Checkpointable, numbers};
use crate::encode::TokenStates;
use crate::encode::simd::{exp, sum_by};
use crate::tensor::gru::tanh;
use crate::tensor::lanes::leaky_dot;
use crate::tensor::panels::Panels;
use crate::tensor::{ROWS, vectorise};
use crate::{Error, Result};

/// A trained network, ready to read questions.
pub struct Reader {
    config: Config,
    relation: BothWays,
    /// What is added to a relation against its direction; none where a network does not tell.
    inverse: Option<Vec<f32>>,
    question: BothWays,
    other: Vec<f32>,
    layers: Vec<Weights>,
}

struct Weights {
    w_me: Panels,
    w_mr: Panels,
    b_m: Vec<f32>,
    attention: Option<Attention>,
    gate: Option<Scores>,
}

struct Attention {
    question: BothWays,
    scores: Scores,
}

/// `a·LeakyReLU(W·[x ‖ q] + b)`.
struct Scores {
    w_x: Panels,
    w_q: Panels,
    b: Vec<f32>,
    a: Vec<f32>,
}

/// What relations bring to each layer's messages, whatever is asked.
#[derive(Clone, Debug)]
pub struct Relations {
    /// For each layer, along and against the direction; equal where a network does not tell.
    layers: Vec<[Vec<f32>; 2]>, // [relations, hidden]
    hidden: usize,
    count: usize,
}

impl Relations {
    /// Adds others after these.
    pub fn extend(&mut self, others: &Self) {
        for (own, others) in self.layers.iter_mut().zip(&others.layers) {
            for (own, others) in own.iter_mut().zip(others) {
                own.extend_from_slice(others);
            }
        }
        self.count += others.count;
    }

    /// The given ones of these, in the given order.
    ///
    /// # Panics
    /// If there is no such relation.
    pub fn select(&self, rows: &[u32]) -> Self {
        let pick = |all: &Vec<f32>| -> Vec<f32> {
            let row = |row: &u32| &all[*row as usize * self.hidden..][..self.hidden];
            rows.iter().flat_map(row).copied().collect()
        };
        Self {
            layers: self
                .layers
                .iter()
                .map(|layer| layer.each_ref().map(pick))
                .collect(),
            hidden: self.hidden,
            count: rows.len(),
        }
    }

    fn row(&self, layer: usize, relation: usize, against: bool) -> &[f32] {
        &self.layers[layer][usize::from(against)][relation * self.hidden..][..self.hidden]
    }
}

/// How near the entities of a neighbourhood are to a question.
#[derive(Debug, Default)]
pub struct Near {
    /// For each entity, its distance.
    pub distances: Vec<f32>,
    /// The question, `[hidden]`.
    pub question: Vec<f32>,
    /// Every layer, if it was asked for.
    pub layers: Vec<LayerAttention>,
}

/// What one layer did.
#[derive(Debug)]
pub struct LayerAttention {
    layer: Layer,
    hidden: usize,
    /// Number of local relations to add against the direction.
    against: u32,
    states: Vec<f32>,  // [classes, hidden]
    weights: Vec<f32>, // [entries], of all times together
    before: Vec<u32>,  // [entities]
    after: Vec<u32>,   // [entities]
}

impl LayerAttention {
    /// The state of an entity after the layer.
    pub fn state(&self, entity: usize) -> &[f32] {
        &self.states[self.after[entity] as usize * self.hidden..][..self.hidden]
    }

    /// How much of what `hearer` hears comes from `source` over one edge of `relation`; `forward` if
    /// `source` is its head.
    pub fn attention(&self, hearer: usize, source: usize, relation: u32, forward: bool) -> f32 {
        let relation = relation + if forward { 0 } else { self.against };
        let message = (self.before[source], relation);
        let Ok(message) = self.layer.messages.binary_search(&message) else {
            return 0.0;
        };
        let class = self.after[hearer] as usize;
        let entries = self.layer.offsets[class] as usize..self.layer.offsets[class + 1] as usize;
        let found = entries
            .map(|entry| (self.layer.heard[entry], self.weights[entry]))
            .find(|((heard, _), _)| *heard as usize == message);
        found.map_or(0.0, |((_, times), weight)| weight / times as f32)
    }
}

impl Reader {
    /// Packs the weights of a network.
    pub fn new(network: Network) -> Result<Self> {
        let config = network.config().clone();
        let values = numbers(network.parameters())?;
        let Config { dim, hidden, .. } = config;
        let reading = |name: &str| BothWays::new(&values, name, dim, hidden);
        let left = |w: &[f32]| Panels::new(w, 2 * hidden, 0..hidden);
        let right = |w: &[f32]| Panels::new(w, 2 * hidden, hidden..2 * hidden);
        let scores = |layer: usize, part: &str, a: &str| {
            let w = &values[&format!("{layer}.w_{part}")];
            Scores {
                w_x: left(w),
                w_q: right(w),
                b: values[&format!("{layer}.b_{part}")].clone(),
                a: values[&format!("{layer}.{a}")].clone(),
            }
        };
        let layers = (1..=config.layers)
            .map(|layer| Weights {
                w_me: left(&values[&format!("{layer}.w_m")]),
                w_mr: right(&values[&format!("{layer}.w_m")]),
                b_m: values[&format!("{layer}.b_m")].clone(),
                attention: config.layerwise.then(|| Attention {
                    question: reading(&format!("{layer}.question")),
                    scores: scores(layer, "a", "a"),
                }),
                gate: config.gate.then(|| scores(layer, "u", "a_u")),
            })
            .collect();
        Ok(Self {
            relation: reading("relation"),
            inverse: config.inverse.then(|| values["inverse"].clone()),
            question: reading("question"),
            other: values["other"].clone(),
            layers,
            config,
        })
    }

    /// Its sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What relations of these labels bring to every question.
    pub fn relations(&self, labels: &TokenStates) -> Result<Relations> {
        if labels.dim() != self.config.dim {
            return Err(Error::Dimension {
                what: "relation token",
                wanted: self.config.dim,
                given: labels.dim(),
            });
        }
        let hidden = self.config.hidden;
        let count = labels.len();
        let along = self.relation.read(labels);
        let against: Option<Vec<f32>> = self.inverse.as_ref().map(|inverse| {
            let rows = along.chunks_exact(hidden);
            rows.flat_map(|row| row.iter().zip(inverse).map(|(x, y)| x + y))
                .collect()
        });
        let of_layer = |weights: &Weights| {
            let product = |rows: &[f32]| {
                let mut out = vec![0.0; rows.len()];
                let row = |i: usize| &rows[i * hidden..][..hidden];
                weights.w_mr.product(row, &mut out);
                for out in out.chunks_exact_mut(hidden) {
                    out.iter_mut().zip(&weights.b_m).for_each(|(x, b)| *x += b);
                }
                out
            };
            let along = product(&along);
            let against = against.as_deref().map(product);
            let against = against.unwrap_or_else(|| along.clone());
            [along, against]
        };
        Ok(Relations {
            layers: self.layers.iter().map(of_layer).collect(),
            hidden,
            count,
        })
    }

    /// Reads one question, the only text of `question`. With `explain`, every layer is kept.
    pub fn read(
        &self,
        question: &TokenStates,
        shape: &Shape<'_>,
        relations: &Relations,
        explain: bool,
    ) -> Result<Near> {
        if question.dim() != self.config.dim || question.len() != 1 {
            return Err(Error::Dimension {
                what: "question token",
                wanted: self.config.dim,
                given: question.dim(),
            });
        }
        shape.check(relations.count)?;
        let hidden = self.config.hidden;
        let (q, readings) = self.questions(question);
        let plan = Plan::new(shape, self.config.layers, self.config.inverse);
        let mut e = [&self.other[..], &q].concat();
        debug_assert_eq!(TOPIC, 1);
        let mut seen = Vec::new();
        let mut class: Vec<u32> = shape.topics.iter().map(|t| u32::from(*t)).collect();
        let after = classes_by_layer(&plan);
        for (k, (layer, weights)) in plan.layers.into_iter().zip(&self.layers).enumerate() {
            let of_relation = |relation: u32| {
                let local = shape.relations.len() as u32;
                let against = relation >= local;
                let row = shape.relations[(relation - u32::from(against) * local) as usize];
                relations.row(k, row as usize, against)
            };
            let reading = readings.get(k).map_or(&[][..], Vec::as_slice);
            let (states, entry_weights) = weights.step(&layer, &e, &q, reading, of_relation);
            if explain {
                seen.push(LayerAttention {
                    hidden,
                    against: if self.config.inverse {
                        shape.relations.len() as u32
                    } else {
                        0
                    },
                    states: states.clone(),
                    weights: entry_weights,
                    before: std::mem::replace(&mut class, after[k].clone()),
                    after: after[k].clone(),
                    layer,
                });
            }
            e = states;
        }
        let by_class: Vec<f32> = e
            .chunks_exact(hidden)
            .map(|e| sum_by(hidden, |i| (e[i] - q[i]) * (e[i] - q[i])).sqrt())
            .collect();
        let last = &after[after.len() - 1];
        Ok(Near {
            distances: last.iter().map(|c| by_class[*c as usize]).collect(),
            question: q,
            layers: seen,
        })
    }

    /// q, and q^k of each layer.
    fn questions(&self, question: &TokenStates) -> (Vec<f32>, Vec<Vec<f32>>) {
        let hidden = self.config.hidden;
        let general = || -> [Vec<f32>; 2] {
            let [forward, backward] = self.question.ways();
            let (a, b) = rayon::join(
                || forward.read_one(question, vec![0.0; hidden]),
                || backward.read_one(question, vec![0.0; hidden]),
            );
            [a, b]
        };
        // each direction goes through the layers by itself
        let direction = |at: usize| -> Vec<Vec<f32>> {
            let mut h = vec![0.0; hidden];
            let layers = self.layers.iter().filter_map(|l| l.attention.as_ref());
            layers
                .map(|attention| {
                    h = attention.question.ways()[at].read_one(question, h.clone());
                    h.clone()
                })
                .collect()
        };
        let (general, (forward, backward)) =
            rayon::join(general, || rayon::join(|| direction(0), || direction(1)));
        let mean = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| 0.5 * (a + b)).collect();
        let layers = forward.iter().zip(&backward);
        (
            mean(&general[0], &general[1]),
            layers.map(|(a, b)| mean(a, b)).collect(),
        )
    }
}

/// The class of every entity after each layer.
fn classes_by_layer(plan: &Plan) -> Vec<Vec<u32>> {
    let mut class = plan.last.clone();
    let mut all = vec![class.clone()];
    for layer in plan.layers.iter().skip(1).rev() {
        class
            .iter_mut()
            .for_each(|c| *c = layer.before[*c as usize]);
        all.push(class.clone());
    }
    all.reverse();
    all
}

impl Weights {
    /// States of the classes after the layer, and the weight of each entry.
    fn step<'r>(
        &self,
        layer: &Layer,
        e: &[f32],
        q: &[f32],
        reading: &[f32],
        of_relation: impl Fn(u32) -> &'r [f32] + Sync,
    ) -> (Vec<f32>, Vec<f32>) {
        let hidden = q.len();
        let arch = Arch::new();
        let row = |of: &'_ [f32], i: usize| -> std::ops::Range<usize> {
            debug_assert!((i + 1) * hidden <= of.len());
            i * hidden..(i + 1) * hidden
        };
        let mut of_e = vec![0.0; e.len()];
        self.w_me.product(|i| &e[row(e, i)], &mut of_e);
        let mut messages = vec![0.0; layer.messages.len() * hidden];
        messages
            .par_chunks_mut(ROWS * hidden)
            .zip(layer.messages.par_chunks(ROWS))
            .for_each(|(rows, messages)| {
                for (out, &(class, relation)) in rows.chunks_exact_mut(hidden).zip(messages) {
                    let (x, r) = (&of_e[row(&of_e, class as usize)], of_relation(relation));
                    vectorise(
                        arch,
                        #[inline(always)]
                        || {
                            for ((out, x), r) in out.iter_mut().zip(x).zip(r) {
                                *out = tanh(x + r);
                            }
                        },
                    );
                }
            });
        let scores = match &self.attention {
            Some(attention) => attention.scores.of(&messages, reading),
            None => vec![0.0; layer.messages.len()],
        };
        let mut weights: Vec<f32> = (layer.heard.iter())
            .map(|&(message, times)| scores[message as usize] + (times as f32).ln())
            .collect();
        let mut heard = vec![0.0; layer.classes() * hidden];
        // what each class hears, beside its weights
        let mut by_class = Vec::with_capacity(layer.classes());
        let mut rest = &mut weights[..];
        for (class, out) in heard.chunks_exact_mut(hidden).enumerate() {
            let count = layer.offsets[class + 1] - layer.offsets[class];
            let (own, others) = rest.split_at_mut(count as usize);
            rest = others;
            by_class.push((class, own, out));
        }
        by_class
            .par_iter_mut()
            .with_min_len(ROWS)
            .for_each(|(class, weights, out)| {
                let top = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                weights.iter_mut().for_each(|w| *w = exp(*w - top));
                let sum: f32 = weights.iter().sum();
                for (weight, &(message, _)) in weights.iter_mut().zip(layer.of(*class)) {
                    *weight /= sum;
                    let message = &messages[row(&messages, message as usize)];
                    let weight = *weight;
                    vectorise(
                        arch,
                        #[inline(always)]
                        || {
                            for (out, m) in out.iter_mut().zip(message) {
                                *out += weight * m;
                            }
                        },
                    );
                }
            });
        if let Some(gate) = &self.gate {
            let of_heard = gate.of(&heard, q);
            let of_before = gate.of(e, q);
            for (class, out) in heard.chunks_exact_mut(hidden).enumerate() {
                let before = layer.before[class] as usize;
                let share = 1.0 / (1.0 + (of_before[before] - of_heard[class]).exp());
                for (out, e) in out.iter_mut().zip(&e[row(e, before)]) {
                    *out = e + share * (*out - e);
                }
            }
        }
        (heard, weights)
    }
}

impl Scores {
    /// One score for each row of `x`.
    fn of(&self, x: &[f32], q: &[f32]) -> Vec<f32> {
        let hidden = q.len();
        let mut of_q = vec![0.0; hidden];
        self.w_q.of_row(q, &mut of_q);
        let mut inner = vec![0.0; x.len()];
        self.w_x.product(|i| &x[i * hidden..][..hidden], &mut inner);
        let rows = inner.par_chunks(hidden).with_min_len(ROWS);
        rows.map(|inner| {
            Arch::new().dispatch(LeakyDot {
                a: &self.a,
                parts: [inner, &of_q, &self.b],
            })
        })
        .collect()
    }
}

struct LeakyDot<'a> {
    a: &'a [f32],
    parts: [&'a [f32]; 3],
}

impl WithSimd for LeakyDot<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let [x, y, z] = self.parts;
        leaky_dot(simd, SLOPE, self.a, x, y, z)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};
    use proptest::prelude::*;

    use super::super::encoders::Tokens;
    use super::super::network::Batch;
    use super::super::network::tests::{FIRST, SECOND, small, texts};
    use super::*;
    use crate::Random;

    fn compare(network: Network, shape: &Shape<'_>, words: usize) {
        let (question, labels) = (texts(&[words], 1), texts(&[1, 2, 0], 2));
        let batch = Batch::new(
            network.config(),
            &question,
            std::slice::from_ref(shape),
            &labels,
            &Device::Cpu,
        )
        .unwrap();
        let learned = network.distances(&batch).unwrap();
        let learned = learned.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let reader = Reader::new(network).unwrap();
        let relations = reader.relations(&labels).unwrap();
        let near = reader.read(&question, shape, &relations, true).unwrap();
        for (entity, distance) in near.distances.iter().enumerate() {
            let wanted = learned[batch.classes(0)[entity] as usize];
            assert!((distance - wanted).abs() < 1e-4, "{distance} {wanted}");
        }
        // the last layer's state is what the distance is measured to
        let last = near.layers.last().unwrap();
        for (entity, distance) in near.distances.iter().enumerate() {
            let away: f32 = (last.state(entity).iter().zip(&near.question))
                .map(|(e, q)| (e - q) * (e - q))
                .sum();
            assert!((away.sqrt() - distance).abs() < 1e-4);
        }
        // what an entity hears adds up to 1
        for layer in &near.layers {
            for entity in 0..shape.topics.len() {
                let heard: f32 = (shape.triples.iter())
                    .map(|&[h, r, t]| {
                        let (h, t) = (h as usize, t as usize);
                        let mut sum = 0.0;
                        if t == entity {
                            sum += layer.attention(t, h, r, true);
                        }
                        if h == entity {
                            sum += layer.attention(h, t, r, false);
                        }
                        sum
                    })
                    .sum();
                let any = shape
                    .triples
                    .iter()
                    .any(|[h, _, t]| [*h, *t].contains(&(entity as u32)));
                assert!((heard - f32::from(u8::from(any))).abs() < 1e-4, "{heard}");
            }
        }
    }

    #[test]
    fn relations_can_be_picked_and_added() {
        let reader = Reader::new(small(true, true, true)).unwrap();
        let all = reader.relations(&texts(&[1, 2, 3], 2)).unwrap();
        let mut picked = all.select(&[2]);
        picked.extend(&all.select(&[0, 1]));
        assert_eq!(picked.row(1, 0, true), all.row(1, 2, true));
        assert_eq!(picked.row(0, 2, false), all.row(0, 1, false));
    }

    #[test]
    fn answering_code_gives_the_distances_of_training_code() {
        for (gate, layerwise, inverse) in [
            (true, true, true),
            (false, true, true),
            (true, false, true),
            (false, false, true),
        ] {
            for shape in [FIRST, SECOND] {
                compare(small(gate, layerwise, inverse), &shape, 3);
            }
        }
        compare(small(true, true, true), &FIRST, 0);
    }

    /// The equations entity by entity and edge by edge, without classes.
    fn plain(
        network: &Network,
        question: &TokenStates,
        labels: &TokenStates,
        shape: &Shape<'_>,
    ) -> Vec<f32> {
        let hidden = network.config().hidden;
        let get = |name: &str| -> Vec<f32> {
            network.parameters()[name]
                .flatten_all()
                .unwrap()
                .to_vec1()
                .unwrap()
        };
        let tokens = |states| Tokens::new(states, &Device::Cpu).unwrap();
        let sound = network
            .relations(&tokens(labels))
            .unwrap()
            .to_vec2::<f32>()
            .unwrap();
        let read = |name: &str, first: Option<&[Tensor; 2]>| {
            super::super::encoders::read(network.parameters(), name, &tokens(question), first)
                .unwrap()
        };
        let mean = |r: &[Tensor; 2]| {
            super::super::encoders::mean(r)
                .unwrap()
                .to_vec2::<f32>()
                .unwrap()[0]
                .clone()
        };
        let q = mean(&read("question", None));
        let times = |w: &[f32], x: &[f32]| -> Vec<f32> {
            w.chunks_exact(x.len())
                .map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum())
                .collect()
        };
        let score = |layer: usize, part: &str, a: &str, x: &[f32], q: &[f32]| -> f32 {
            let u = times(&get(&format!("{layer}.w_{part}")), &[x, q].concat());
            (u.iter().zip(get(&format!("{layer}.b_{part}"))))
                .zip(get(&format!("{layer}.{a}")))
                .map(|((u, b), a)| {
                    let u = u + b;
                    a * u.max(SLOPE * u)
                })
                .sum()
        };
        let mut e: Vec<Vec<f32>> = shape
            .topics
            .iter()
            .map(|t| if *t { q.clone() } else { get("other") })
            .collect();
        let mut own = None;
        for layer in 1..=network.config().layers {
            let reading = read(&format!("{layer}.question"), own.as_ref());
            let q_k = mean(&reading);
            own = Some(reading);
            let mut next = vec![];
            for entity in 0..e.len() {
                let mut heard: Vec<(f32, Vec<f32>)> = vec![];
                for &[h, r, t] in shape.triples {
                    let r = shape.relations[r as usize] as usize;
                    for (hearer, source, r) in [(t, h, r), (h, t, r + labels.len())] {
                        if hearer as usize == entity {
                            let m = times(
                                &get(&format!("{layer}.w_m")),
                                &[&e[source as usize][..], &sound[r]].concat(),
                            );
                            let m: Vec<f32> = m
                                .iter()
                                .zip(get(&format!("{layer}.b_m")))
                                .map(|(m, b)| (m + b).tanh())
                                .collect();
                            heard.push((score(layer, "a", "a", &m, &q_k), m));
                        }
                    }
                }
                let sum: f32 = heard.iter().map(|(s, _)| s.exp()).sum();
                let mut m = vec![0.0; hidden];
                for (s, one) in &heard {
                    m.iter_mut()
                        .zip(one)
                        .for_each(|(m, x)| *m += s.exp() / sum * x);
                }
                let s_m = score(layer, "u", "a_u", &m, &q).exp();
                let s_e = score(layer, "u", "a_u", &e[entity], &q).exp();
                next.push(
                    m.iter()
                        .zip(&e[entity])
                        .map(|(m, e)| (s_m * m + s_e * e) / (s_m + s_e))
                        .collect(),
                );
            }
            e = next;
        }
        e.iter()
            .map(|e| {
                e.iter()
                    .zip(&q)
                    .map(|(e, q)| (e - q) * (e - q))
                    .sum::<f32>()
                    .sqrt()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn classes_give_the_distances_of_the_plain_equations(seed in 0u64..1000) {
            let mut random = Random::new(seed);
            let nodes = 2 + random.below(7);
            let topics: Vec<bool> = (0..nodes).map(|i| i == 0 || random.below(5) == 0).collect();
            let triples: Vec<[u32; 3]> = (0..random.below(12))
                .map(|_| [random.below(nodes) as u32, random.below(3) as u32, random.below(nodes) as u32])
                .collect();
            let shape = Shape { topics: &topics, relations: &[1, 2, 0], triples: &triples };
            let network = small(true, true, true);
            let (question, labels) = (texts(&[4], 1), texts(&[1, 2, 0], 2));
            let wanted = plain(&network, &question, &labels, &shape);
            let reader = Reader::new(network).unwrap();
            let relations = reader.relations(&labels).unwrap();
            let near = reader.read(&question, &shape, &relations, false).unwrap();
            for (ours, wanted) in near.distances.iter().zip(wanted) {
                prop_assert!((ours - wanted).abs() < 1e-4, "{} {}", ours, wanted);
            }
        }
    }
}
