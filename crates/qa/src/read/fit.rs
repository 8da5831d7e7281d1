//! Weights from questions and their answers alone.
//!
//! ```text
//! L(w) = Σ_q c_q (log Σ_{i ∈ good(q)} exp(w·f_i) − log Σ_i exp(w·f_i)) − λ/2 ‖w − w_0‖²
//! ```
//!
//! The readings of a question are those that the search found; good are those that come to the
//! answers. A question counts the less, the more of its readings are good: where nearly all come
//! to the same, it teaches nothing.

use super::features::{NAMES, Weights};

/// A reading: what it is weighed by, and whether it comes to the answers.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What it was weighed by.
    pub features: Vec<f32>,
    /// Whether it comes to the answers.
    pub is_good: bool,
}

/// A question with its readings.
#[derive(Clone, Debug)]
pub struct Example {
    /// Its readings.
    pub candidates: Vec<Candidate>,
    /// How much it counts.
    pub weight: f32,
    /// Whether it is about a graph without classes: such graphs have weights of their own.
    pub is_untyped: bool,
}

/// How weights are fitted.
#[derive(Clone, Copy, Debug)]
pub struct Fitting {
    /// λ: how much a weight is held at where it began.
    pub hold: f32,
    /// Steps over all questions.
    pub steps: usize,
    /// How far a step goes.
    pub rate: f32,
}

impl Default for Fitting {
    fn default() -> Self {
        Self {
            hold: 2e-3,
            steps: 150,
            rate: 0.02,
        }
    }
}

/// Weights under which the good readings of each question are likelier than its others.
pub fn fit(examples: &[Example], start: &Weights, how: Fitting) -> Weights {
    Weights::from_values([false, true].map(|is_untyped| {
        let own = examples.iter().filter(|e| e.is_untyped == is_untyped);
        let own: Vec<&Example> = own.collect();
        match own.is_empty() {
            true => start.values(is_untyped).to_vec(),
            false => fit_kind(&own, start.values(is_untyped), how),
        }
    }))
}

fn fit_kind(examples: &[&Example], begin: &[f32], how: Fitting) -> Vec<f32> {
    let mut w = begin.to_vec();
    let mut adam = Adam::new(w.len(), how.rate);
    let total: f32 = examples.iter().map(|e| e.weight).sum::<f32>().max(1e-6);
    for step in 1..=how.steps {
        let mut gradient = vec![0.0f32; w.len()];
        for example in examples {
            add_gradient(example, &w, example.weight / total, &mut gradient);
        }
        for i in 0..w.len() {
            gradient[i] -= how.hold * (w[i] - begin[i]);
            w[i] += adam.moved(i, gradient[i], step);
            if let Some(cost) = least_cost(NAMES[i]) {
                w[i] = w[i].min(-cost);
            }
        }
    }
    w
}

/// Adam, uphill: how far each number goes by its gradients so far.
pub(super) struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    rate: f32,
}

impl Adam {
    pub(super) fn new(numbers: usize, rate: f32) -> Self {
        Self {
            first: vec![0.0; numbers],
            second: vec![0.0; numbers],
            rate,
        }
    }

    /// How far the number at `i` goes in a step, counted from 1.
    pub(super) fn moved(&mut self, i: usize, gradient: f32, step: usize) -> f32 {
        self.first[i] = 0.9 * self.first[i] + 0.1 * gradient;
        self.second[i] = 0.999 * self.second[i] + 0.001 * gradient * gradient;
        let mean = self.first[i] / (1.0 - 0.9f32.powi(step as i32));
        let spread = self.second[i] / (1.0 - 0.999f32.powi(step as i32));
        self.rate * mean / (spread.sqrt() + 1e-6)
    }
}

/// What a feature costs at least that may only speak against a reading: to pass over a word is
/// never a merit.
fn least_cost(feature: &str) -> Option<f32> {
    match feature {
        "skip_silent" => Some(0.0),
        "skip_light" | "skip_asking" => Some(0.2),
        // the graph's own word for something is hardly there for nothing
        "skip_light_said" => Some(2.0),
        // a word that is only near stands for little
        "relation_soft" => Some(2.0),
        other => other.starts_with("skip_").then_some(1.0),
    }
}

/// ∂/∂w of c (log Σ_good exp − log Σ exp): expected features of good readings less those of all.
fn add_gradient(example: &Example, w: &[f32], c: f32, gradient: &mut [f32]) {
    let scores: Vec<f32> = example
        .candidates
        .iter()
        .map(|x| x.features.iter().zip(w).map(|(f, w)| f * w).sum())
        .collect();
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let shares: Vec<f32> = scores.iter().map(|s| (s - most).exp()).collect();
    let all: f32 = shares.iter().sum();
    let zipped = || example.candidates.iter().zip(&shares);
    let good: f32 = zipped().filter(|(x, _)| x.is_good).map(|(_, s)| s).sum();
    if good <= 0.0 || all <= 0.0 {
        return;
    }
    for (candidate, share) in zipped() {
        let is_good = if candidate.is_good { share / good } else { 0.0 };
        let by = c * (is_good - share / all);
        if by != 0.0 {
            for (g, f) in gradient.iter_mut().zip(&candidate.features) {
                *g += by * f;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(rows: &[(&[f32], bool)], width: usize) -> Example {
        let candidates = rows.iter().map(|(features, is_good)| {
            let mut features = features.to_vec();
            features.resize(width, 0.0);
            Candidate {
                features,
                is_good: *is_good,
            }
        });
        Example {
            candidates: candidates.collect(),
            weight: 1.0,
            is_untyped: true,
        }
    }

    /// c (log Σ_good exp(w·f) − log Σ exp(w·f)), written out.
    fn likelihood(example: &Example, w: &[f32]) -> f64 {
        let sum = |good: bool| -> f64 {
            let all = example.candidates.iter().filter(|x| x.is_good || !good);
            let score = |x: &Candidate| -> f64 {
                let zipped = x.features.iter().zip(w);
                zipped.map(|(f, w)| f64::from(f * w)).sum()
            };
            all.map(|x| score(x).exp()).sum()
        };
        sum(true).ln() - sum(false).ln()
    }

    #[test]
    fn the_gradient_is_that_of_the_likelihood() {
        let rows: &[(&[f32], bool)] = &[
            (&[1.0, 0.0, 2.0], true),
            (&[0.5, 1.0, 0.0], false),
            (&[0.0, 2.0, 1.0], true),
            (&[1.0, 1.0, 1.0], false),
        ];
        let example = example(rows, 3);
        let w = [0.3, -0.7, 0.2];
        let mut gradient = vec![0.0; 3];
        add_gradient(&example, &w, 1.0, &mut gradient);
        for i in 0..3 {
            let (mut up, mut down) = (w, w);
            up[i] += 1e-2;
            down[i] -= 1e-2;
            let slope = (likelihood(&example, &up) - likelihood(&example, &down)) / 2e-2;
            assert!(
                (slope - f64::from(gradient[i])).abs() < 1e-4,
                "{i}: {slope}"
            );
        }
    }

    #[test]
    fn weights_come_to_prefer_what_is_right_and_passing_over_stays_a_cost() {
        let place = |name| NAMES.iter().position(|n| *n == name).unwrap();
        let (bridge, skip) = (place("bridge"), place("skip_word"));
        let mut right = vec![0.0; NAMES.len()];
        right[bridge] = 1.0;
        right[skip] = 1.0;
        let rows: &[(&[f32], bool)] = &[(&right, true), (&[], false)];
        let start = Weights::from_values([(); 2].map(|()| vec![0.0; NAMES.len()]));
        let how = Fitting {
            hold: 0.0,
            ..Fitting::default()
        };
        let fitted = fit(&[example(rows, NAMES.len())], &start, how);
        assert!(fitted.values(true)[bridge] > 1.0);
        assert_eq!(fitted.values(true)[skip], -1.0);
        assert_eq!(fitted.values(false), start.values(false));
        // questions whose readings are all right, or all wrong, teach nothing
        let all: &[(&[f32], bool)] = &[(&right, true), (&[], true)];
        let none: &[(&[f32], bool)] = &[(&right, false)];
        let how = Fitting::default();
        for rows in [all, none] {
            let fitted = fit(&[example(rows, NAMES.len())], &start, how);
            assert!(fitted.values(true)[bridge].abs() < 1e-3);
        }
    }
}
