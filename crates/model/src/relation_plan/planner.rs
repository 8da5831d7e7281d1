//! The network as it answers: plain rows, one question at a time.

use std::collections::HashMap;

use super::network::Tokens;
use super::{Config, Network};
use crate::checkpoint::{Checkpointable, numbers};
use crate::qr_gat::Rows;
use crate::scoring::check_width;
use crate::tensor::panels::Panels;
use crate::vector::{dot, softmax};
use crate::{Error, Result};

/// The path writer, ready to answer.
pub struct Planner {
    config: Config,
    w_x: Panels,
    w_v: Panels,
    squares: HashMap<&'static str, Panels>,
    w_u: Panels,
    w_n: Panels,
    p: Vec<f32>,
    d: Vec<f32>,
    stop: Vec<f32>,
    m: Vec<f32>,
    biases: HashMap<&'static str, Vec<f32>>,
}

/// The relations of a graph as the planner sees them.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    v: Vec<f32>, // [2·relations, hidden]: along, against
    r: Vec<f32>, // [relations, dim]
    hidden: usize,
    dim: usize,
}

/// A question that was read.
#[derive(Clone, Debug)]
pub struct Reading {
    c: Vec<f32>, // [tokens, hidden]
    x: Vec<f32>, // [tokens, dim]
}

/// How far a path has come.
#[derive(Clone, Debug)]
pub struct State(Vec<f32>);

/// What the planner would do next.
#[derive(Clone, Debug)]
pub struct Decision {
    s: Vec<f32>,
    g: Vec<f32>,
    u: Vec<f32>,
    like: Vec<f32>,
}

impl Planner {
    /// Takes over the weights of a network.
    pub fn new(network: &Network) -> Result<Self> {
        let config = network.config().clone();
        let weights = numbers(network.parameters())?;
        let Config { dim, hidden, .. } = config;
        let panels = |name: &str, width: usize| Panels::new(&weights[name], width, 0..width);
        let squares = ["w_l", "w_c", "w_r", "w_s", "w_a"];
        Ok(Self {
            w_x: panels("w_x", dim),
            w_v: panels("w_v", dim),
            squares: squares.map(|name| (name, panels(name, hidden))).into(),
            w_u: panels("w_u", 2 * hidden),
            w_n: panels("w_n", 3 * hidden),
            p: weights["p"].clone(),
            d: weights["d"].clone(),
            stop: weights["stop"].clone(),
            m: weights["m"].clone(),
            biases: ["b_c", "b_s", "b_u", "b_n"]
                .map(|name| (name, weights[name].clone()))
                .into(),
            config,
        })
    }

    /// The network's sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Relations with these label vectors.
    pub fn vocabulary(&self, labels: &dyn Rows) -> Result<Vocabulary> {
        let Config { dim, hidden, .. } = self.config;
        check_width("relation vector", labels, dim)?;
        let count = labels.len();
        let mut r = vec![0.0; count * dim];
        let all: Vec<u32> = (0..count as u32).collect();
        labels.read(&all, 0..dim, &mut r);
        let mut along = vec![0.0; count * hidden];
        self.w_v.product(|i| &r[i * dim..][..dim], &mut along);
        let mut v = along.clone();
        v.extend_from_slice(&along);
        let (along, against) = v.split_at_mut(count * hidden);
        for (part, d) in [along, against]
            .into_iter()
            .zip(self.d.chunks_exact(hidden))
        {
            for row in part.chunks_exact_mut(hidden) {
                row.iter_mut().zip(d).for_each(|(v, d)| *v += d);
            }
        }
        Ok(Vocabulary { v, r, hidden, dim })
    }

    /// Reads a question.
    pub fn read(&self, tokens: &Tokens<'_>) -> Result<Reading> {
        let Config { dim, hidden, .. } = self.config;
        let before = tokens.before.len() / dim;
        let x = [tokens.before, &vec![0.0; dim], tokens.behind].concat();
        let count = x.len() / dim;
        if !x.len().is_multiple_of(dim) || !x.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite {
                what: "token vector".into(),
            });
        }
        let mut z = vec![0.0; count * hidden];
        self.w_x.product(|i| &x[i * dim..][..dim], &mut z);
        for (i, row) in z.chunks_exact_mut(hidden).enumerate() {
            let at = self.config.position(i as i64 - before as i64);
            let p = &self.p[at * hidden..][..hidden];
            row.iter_mut().zip(p).for_each(|(z, p)| *z += p);
        }
        let mut c = vec![0.0; count * hidden];
        let none = vec![0.0; hidden];
        for (name, shift) in [("w_l", -1i64), ("w_c", 0), ("w_r", 1)] {
            let mut part = vec![0.0; count * hidden];
            let row = |i: usize| {
                let at = i as i64 + shift;
                match (0..count as i64).contains(&at) {
                    true => &z[at as usize * hidden..][..hidden],
                    false => &none[..],
                }
            };
            self.squares[name].product(row, &mut part);
            c.iter_mut().zip(&part).for_each(|(c, x)| *c += x);
        }
        for row in c.chunks_exact_mut(hidden) {
            for (c, b) in row.iter_mut().zip(&self.biases["b_c"]) {
                *c = (*c + b).max(0.0);
            }
        }
        Ok(Reading { c, x })
    }

    /// The beginning of a path.
    pub fn begin(&self, reading: &Reading) -> State {
        let hidden = self.config.hidden;
        let mut mean = vec![0.0; hidden];
        let share = hidden as f32 / reading.c.len() as f32;
        for row in reading.c.chunks_exact(hidden) {
            mean.iter_mut().zip(row).for_each(|(m, c)| *m += c * share);
        }
        State(self.tanh(&self.squares["w_s"], "b_s", &mean))
    }

    /// What comes next.
    pub fn decide(&self, reading: &Reading, state: &State) -> Decision {
        let Config { dim, hidden, .. } = self.config;
        let s = &state.0;
        let mut asked = vec![0.0; hidden];
        self.squares["w_a"].of_row(s, &mut asked);
        let mut alpha: Vec<f32> = reading
            .c
            .chunks_exact(hidden)
            .map(|c| dot(c, &asked))
            .collect();
        softmax(&mut alpha);
        let mut g = vec![0.0; hidden];
        let mut like = vec![0.0; dim];
        for (i, alpha) in alpha.iter().enumerate() {
            let c = &reading.c[i * hidden..][..hidden];
            g.iter_mut().zip(c).for_each(|(g, c)| *g += alpha * c);
            let x = &reading.x[i * dim..][..dim];
            like.iter_mut().zip(x).for_each(|(l, x)| *l += alpha * x);
        }
        let scale = 1.0 / (dim as f32).sqrt();
        like.iter_mut()
            .zip(&self.m)
            .for_each(|(l, m)| *l *= m * scale);
        let u = self.tanh(&self.w_u, "b_u", &[s.as_slice(), &g].concat());
        Decision {
            s: s.clone(),
            g,
            u,
            like,
        }
    }

    /// ln p of each step that is offered (a relation's row, and whether along), and of stopping,
    /// unless the path has not begun.
    pub fn choose(
        &self,
        decision: &Decision,
        vocabulary: &Vocabulary,
        steps: &[(u32, bool)],
        begun: bool,
    ) -> (Vec<f32>, f32) {
        let mut logits: Vec<f32> = steps
            .iter()
            .map(|step| {
                let r = &vocabulary.r[step.0 as usize * vocabulary.dim..][..vocabulary.dim];
                dot(&decision.u, vocabulary.step(*step)) + dot(&decision.like, r)
            })
            .collect();
        if begun {
            logits.push(dot(&decision.u, &self.stop));
        }
        softmax(&mut logits);
        logits.iter_mut().for_each(|p| *p = p.max(1e-30).ln());
        let stop = match begun {
            true => logits.pop().unwrap_or(f32::NEG_INFINITY),
            false => f32::NEG_INFINITY,
        };
        (logits, stop)
    }

    /// The path after a step.
    pub fn advance(
        &self,
        decision: &Decision,
        vocabulary: &Vocabulary,
        step: (u32, bool),
    ) -> State {
        let all = [&decision.s, &decision.g, vocabulary.step(step)].concat();
        State(self.tanh(&self.w_n, "b_n", &all))
    }

    fn tanh(&self, weights: &Panels, bias: &str, x: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.config.hidden];
        weights.of_row(x, &mut out);
        for (out, b) in out.iter_mut().zip(&self.biases[bias]) {
            *out = (*out + b).tanh();
        }
        out
    }
}

impl Vocabulary {
    fn step(&self, (relation, along): (u32, bool)) -> &[f32] {
        let relations = self.r.len() / self.dim;
        let row = relation as usize + usize::from(!along) * relations;
        &self.v[row * self.hidden..][..self.hidden]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance_mlp::tests::numbers as random_numbers;
    use crate::qr_gat::Table;
    use crate::relation_plan::network::tests::{items, small};
    use crate::tensor::Device;

    #[test]
    fn answering_and_training_code_give_the_same_probabilities() {
        for seed in 0..20 {
            let network = small(seed);
            let labels = random_numbers(12, seed ^ 7);
            let relations = Table::new(&labels, 3).unwrap();
            let [a, b, c] = [9, 6, 3].map(|n| random_numbers(n, seed + n as u64));
            let questions = [
                Tokens {
                    before: &a,
                    behind: &b,
                },
                Tokens {
                    before: &[],
                    behind: &c,
                },
            ];
            let planner = Planner::new(&network).unwrap();
            let vocabulary = planner.vocabulary(&relations).unwrap();
            let mut sum = 0.0;
            for item in items() {
                let reading = planner.read(&questions[item.question]).unwrap();
                let mut state = planner.begin(&reading);
                for (k, (choices, taken)) in item.choices.iter().zip(&item.taken).enumerate() {
                    let decision = planner.decide(&reading, &state);
                    let (steps, stop) = planner.choose(&decision, &vocabulary, choices, k > 0);
                    let all: f32 = steps.iter().chain([&stop]).map(|l| l.exp()).sum();
                    assert!((all - 1.0).abs() < 1e-5);
                    sum -= item.weight * taken.map_or(stop, |i| steps[i]);
                    if let Some(i) = taken {
                        state = planner.advance(&decision, &vocabulary, choices[*i]);
                    }
                }
            }
            let loss = network
                .loss(&questions, &items(), &relations, None, &Device::Cpu)
                .unwrap();
            let loss = loss.to_scalar::<f32>().unwrap();
            assert!((loss - sum / 2.0).abs() < 1e-4, "{loss} {}", sum / 2.0);
        }
    }
}
