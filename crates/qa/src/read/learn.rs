//! Phrases of a graph's steps from questions and their answers alone.
//!
//! ```text
//! p(way | question) = exp(cos(question, Σ r(step)) / τ) / Σ      over the ways of its readings
//! L(r) = mean log Σ_{good ways} p − λ/2 Σ ‖r − r_0‖²
//! ```
//!
//! r are the vectors of the steps' phrases, of length 1 after each step of the descent; the
//! question's stays as the matcher gives it.

use std::sync::Arc;
use wherefore_model::vector::dot;

use super::fit::Adam;
use super::kept::LearnedPhrases;
use super::phrases::Phrases;
use crate::error::Result;

/// τ.
pub(super) const TEMPERATURE: f32 = 0.032;

/// A question with the ways of its readings.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its vector, names marked.
    pub question: Arc<[f32]>,
    /// The phrases of each reading's steps by their numbers, and whether it comes to the answers.
    pub ways: Vec<(Vec<u32>, bool)>,
}

/// How phrases are learned.
#[derive(Clone, Copy, Debug)]
pub struct Learning {
    /// λ: how much a phrase is held at what the matcher gives.
    pub hold: f32,
    /// Steps over all questions.
    pub steps: usize,
    /// How far a step goes.
    pub rate: f32,
}

impl Default for Learning {
    fn default() -> Self {
        Self {
            hold: 0.1,
            steps: 100,
            rate: 3e-3,
        }
    }
}

impl Phrases {
    /// The phrases under which the good ways of each question are likelier than its others.
    pub(super) fn learned(&self, asked: &[Asked], how: Learning) -> Result<LearnedPhrases> {
        let rows = learn(asked, &self.rows, self.encoder.dim(), how);
        LearnedPhrases::new(&self.texts, rows, &*self.encoder)
    }
}

/// Rows that begin with `begin`, after some steps of Adam.
fn learn(lessons: &[Asked], begin: &[f32], dim: usize, how: Learning) -> Vec<f32> {
    let mut rows = begin.to_vec();
    let mut adam = Adam::new(rows.len(), how.rate);
    let share = 1.0 / lessons.len().max(1) as f32;
    for step in 1..=how.steps {
        let mut gradient = vec![0.0f32; rows.len()];
        for lesson in lessons {
            add_gradient(lesson, &rows, dim, share, &mut gradient);
        }
        for i in 0..rows.len() {
            let g = gradient[i] - how.hold * (rows[i] - begin[i]);
            rows[i] += adam.moved(i, g, step);
        }
        for row in rows.chunks_mut(dim) {
            let length = dot(row, row).sqrt().max(1e-6);
            row.iter_mut().for_each(|x| *x /= length);
        }
    }
    rows
}

/// The sum of a way's rows, of length 1, and the length that it had.
fn whole(way: &[u32], rows: &[f32], dim: usize) -> (Vec<f32>, f32) {
    let mut sum = vec![0.0f32; dim];
    for &place in way {
        let at = place as usize * dim;
        let row = &rows[at..at + dim];
        sum.iter_mut().zip(row).for_each(|(s, x)| *s += x);
    }
    let length = dot(&sum, &sum).sqrt().max(1e-6);
    sum.iter_mut().for_each(|s| *s /= length);
    (sum, length)
}

/// Adds ∂/∂r of c log Σ_good p: with u the whole of a way, ∂cos/∂r = (question − cos u) / ‖Σ r‖.
fn add_gradient(lesson: &Asked, rows: &[f32], dim: usize, c: f32, gradient: &mut [f32]) {
    let wholes: Vec<(Vec<f32>, f32)> = (lesson.ways.iter())
        .map(|(way, _)| whole(way, rows, dim))
        .collect();
    let cosines: Vec<f32> = wholes
        .iter()
        .map(|(u, _)| dot(u, &lesson.question))
        .collect();
    let most = cosines.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let shares: Vec<f32> = cosines
        .iter()
        .map(|cos| ((cos - most) / TEMPERATURE).exp())
        .collect();
    let all: f32 = shares.iter().sum();
    let is_good = lesson.ways.iter().map(|(_, is_good)| *is_good);
    let good: f32 = is_good
        .zip(&shares)
        .filter(|(g, _)| *g)
        .map(|(_, s)| s)
        .sum();
    if good <= 0.0 {
        return;
    }
    for (at, (way, is_good)) in lesson.ways.iter().enumerate() {
        let wanted = if *is_good { shares[at] / good } else { 0.0 };
        let by = c * (wanted - shares[at] / all) / TEMPERATURE / wholes[at].1;
        for &place in way {
            let from = place as usize * dim;
            let own = gradient[from..from + dim].iter_mut();
            let unit = wholes[at].0.iter().zip(lesson.question.iter());
            own.zip(unit)
                .for_each(|(g, (u, q))| *g += by * (q - cosines[at] * u));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIM: usize = 3;

    fn unit(of: [f32; DIM]) -> [f32; DIM] {
        let length = of.iter().map(|x| x * x).sum::<f32>().sqrt();
        of.map(|x| x / length)
    }

    fn rows() -> Vec<f32> {
        [[1.0, 0.2, 0.1], [0.3, 1.0, -0.2], [-0.1, 0.4, 1.0]]
            .map(unit)
            .concat()
    }

    /// log Σ_good p.
    fn likelihood(lesson: &Asked, rows: &[f32]) -> f64 {
        let score = |way: &[u32]| {
            let (u, _) = whole(way, rows, DIM);
            f64::from(dot(&u, &lesson.question) / TEMPERATURE).exp()
        };
        let all: f64 = lesson.ways.iter().map(|(way, _)| score(way)).sum();
        let good = lesson.ways.iter().filter(|(_, good)| *good);
        (good.map(|(way, _)| score(way)).sum::<f64>() / all).ln()
    }

    fn lesson(question: &[f32]) -> Asked {
        let ways = vec![
            (vec![0], false),
            (vec![1], false),
            (vec![0, 2], true),
            (vec![1, 1, 2], false),
            (vec![1, 2], true),
        ];
        Asked {
            question: question.into(),
            ways,
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_likelihood() {
        let question = unit([0.5, 0.6, 0.4]);
        let (lesson, rows) = (lesson(&question), rows());
        let mut gradient = vec![0.0; rows.len()];
        add_gradient(&lesson, &rows, DIM, 1.0, &mut gradient);
        for (i, g) in gradient.iter().enumerate() {
            let at = |by: f32| {
                let mut moved = rows.clone();
                moved[i] += by;
                likelihood(&lesson, &moved)
            };
            let numeric = (at(1e-3) - at(-1e-3)) / 2e-3;
            assert!(
                (numeric - f64::from(*g)).abs() < 0.02 * numeric.abs().max(1.0),
                "{i}: {numeric} {g}"
            );
        }
    }

    #[test]
    fn what_is_learned_makes_good_ways_likelier_and_holding_keeps_the_rows() {
        let question = unit([0.9, 0.3, 0.1]);
        let (lesson, begin) = ([lesson(&question)], rows());
        let how = Learning::default();
        let learned = learn(&lesson, &begin, DIM, how);
        assert!(likelihood(&lesson[0], &learned) > likelihood(&lesson[0], &begin) + 0.5);
        for row in learned.chunks(DIM) {
            assert!((dot(row, row) - 1.0).abs() < 1e-4);
        }
        let moved =
            |rows: &[f32]| -> f32 { rows.iter().zip(&begin).map(|(a, b)| (a - b).abs()).sum() };
        let held = learn(
            &lesson,
            &begin,
            DIM,
            Learning {
                hold: 1000.0,
                ..how
            },
        );
        assert!(moved(&held) < moved(&learned));
        assert_eq!(learn(&[], &begin, DIM, Learning { steps: 0, ..how }), begin);
    }
}
