//! Second stage of distillation: token vectors are moved until their sums point where the
//! teacher's vectors of whole texts point.
//!
//! ```text
//! L = mean_x (1 − s_x·y_x)        s_x = u_x/‖u_x‖      u_x = Σ_{t∈x} e_t
//! ∂L/∂e_t = Σ_{x∋t} (s_x(s_x·y_x) − y_x)/‖u_x‖
//! ```
//!
//! y_x is the teacher's unit vector in the student's coordinates. Steps are Adam's (Kingma and Ba,
//! 2015), taken only by rows that the batch touches, with a learning rate that falls to zero
//! in a straight line.
//!
//! Departures: a token that no text holds keeps its vector of the first stage.

use rayon::prelude::*;

/// How the second stage trains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Passes over the texts; 0 leaves the stage out.
    pub epochs: usize,
    /// Texts in a step.
    pub batch: usize,
    /// Step width at the start.
    pub learning_rate: f32,
    /// Seed of the order in which texts come.
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            epochs: 20,
            batch: 512,
            learning_rate: 3e-3,
            seed: 1,
        }
    }
}

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.99;
const EPSILON: f32 = 1e-8;

/// Token vectors in training, with Adam's moments.
struct Table<'a> {
    vectors: &'a mut [f32], // [tokens, dim]
    first: Vec<f32>,
    second: Vec<f32>,
    /// Steps each row has taken.
    steps: Vec<i32>,
    dim: usize,
}

/// Trains `vectors` (`[tokens, dim]`) on texts given as tokens and `targets` (`[texts, dim]`, unit
/// rows). Tells the mean loss after each epoch.
pub(super) fn train(
    vectors: &mut [f32],
    dim: usize,
    texts: &[Vec<u32>],
    targets: &[f32],
    training: &Training,
    progress: &mut dyn FnMut(usize, f32),
) {
    let rows = vectors.len() / dim;
    let mut table = Table {
        first: vec![0.0; vectors.len()],
        second: vec![0.0; vectors.len()],
        steps: vec![0; rows],
        vectors,
        dim,
    };
    let mut order: Vec<usize> = (0..texts.len()).filter(|&x| !texts[x].is_empty()).collect();
    let mut random = SplitMix(training.seed);
    let batch = training.batch.max(1);
    let total = (training.epochs * order.len().div_ceil(batch)) as f32;
    let mut step = 0.0;
    for epoch in 0..training.epochs {
        random.shuffle(&mut order);
        let mut loss = 0.0;
        for part in order.chunks(batch) {
            let rate = training.learning_rate * (1.0 - step / total);
            loss += table.step(part, texts, targets, rate);
            step += 1.0;
        }
        progress(epoch + 1, loss / order.len().max(1) as f32);
    }
}

impl Table<'_> {
    /// One step on the texts `part`; the sum of their losses.
    fn step(&mut self, part: &[usize], texts: &[Vec<u32>], targets: &[f32], rate: f32) -> f32 {
        let dim = self.dim;
        let vectors = &*self.vectors;
        let mut slopes = vec![0.0; part.len() * dim]; // ∂L/∂u of each text
        let losses: Vec<f32> = slopes
            .par_chunks_mut(dim)
            .zip(part)
            .map(|(slope, &x)| {
                slope_of(vectors, &texts[x], &targets[x * dim..(x + 1) * dim], slope)
            })
            .collect();
        let mut touched: Vec<(u32, u32)> = part
            .iter()
            .enumerate()
            .flat_map(|(at, &x)| texts[x].iter().map(move |token| (*token, at as u32)))
            .collect();
        touched.sort_unstable();
        let scale = 1.0 / part.len() as f32;
        let mut gradient = vec![0.0; dim];
        for group in touched.chunk_by(|a, b| a.0 == b.0) {
            gradient.fill(0.0);
            for (_, at) in group {
                let slope = &slopes[*at as usize * dim..(*at as usize + 1) * dim];
                gradient
                    .iter_mut()
                    .zip(slope)
                    .for_each(|(g, s)| *g += s * scale);
            }
            self.update(group[0].0 as usize, &gradient, rate);
        }
        losses.iter().sum()
    }

    fn update(&mut self, row: usize, gradient: &[f32], rate: f32) {
        self.steps[row] += 1;
        let steps = self.steps[row];
        let rate = rate * (1.0 - BETA_2.powi(steps)).sqrt() / (1.0 - BETA_1.powi(steps));
        let range = row * self.dim..(row + 1) * self.dim;
        let moments = self.first[range.clone()]
            .iter_mut()
            .zip(&mut self.second[range.clone()]);
        for ((x, (m, v)), g) in self.vectors[range].iter_mut().zip(moments).zip(gradient) {
            *m = BETA_1 * *m + (1.0 - BETA_1) * g;
            *v = BETA_2 * *v + (1.0 - BETA_2) * g * g;
            *x -= rate * *m / (v.sqrt() + EPSILON);
        }
    }
}

/// Writes ∂(1 − s·y)/∂u to `slope` and returns 1 − s·y.
fn slope_of(vectors: &[f32], tokens: &[u32], target: &[f32], slope: &mut [f32]) -> f32 {
    let dim = target.len();
    for &token in tokens {
        let row = &vectors[token as usize * dim..(token as usize + 1) * dim];
        slope.iter_mut().zip(row).for_each(|(u, e)| *u += e);
    }
    let length = slope.iter().map(|u| u * u).sum::<f32>().sqrt().max(1e-6);
    let cosine = slope.iter().zip(target).map(|(u, y)| u * y).sum::<f32>() / length;
    for (u, y) in slope.iter_mut().zip(target) {
        *u = (*u / length * cosine - y) / length;
    }
    1.0 - cosine
}

/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Fisher and Yates.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, (self.next() % (i as u64 + 1)) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_is_the_finite_difference() {
        let vectors = [0.3f32, -0.2, 0.5, 0.1, 0.4, -0.6];
        let (tokens, target) = ([0u32, 1, 1], [0.6f32, 0.8]);
        let loss = |v: &[f32]| slope_of(v, &tokens, &target, &mut [0.0; 2]);
        let mut slope = [0.0; 2];
        slope_of(&vectors, &tokens, &target, &mut slope);
        for (k, slope) in slope.into_iter().enumerate() {
            let mut up = vectors;
            let mut down = vectors;
            up[k] += 1e-3;
            down[k] -= 1e-3;
            let difference = (loss(&up) - loss(&down)) / 2e-3;
            assert!((slope - difference).abs() < 1e-3, "{slope} {difference}");
        }
    }

    #[test]
    fn sums_learn_to_point_at_their_targets_and_strangers_stay() {
        // three tokens; texts {0}, {1}, {0, 1} with targets along x, y and the diagonal
        let mut vectors = vec![0.1, 0.9, 0.9, 0.1, 0.7, 0.7];
        let texts = vec![vec![0], vec![1], vec![0, 1]];
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let targets = [1.0, 0.0, 0.0, 1.0, half, half];
        let training = Training {
            epochs: 300,
            batch: 2,
            learning_rate: 0.05,
            seed: 3,
        };
        let mut last = f32::MAX;
        train(
            &mut vectors,
            2,
            &texts,
            &targets,
            &training,
            &mut |_, loss| last = loss,
        );
        assert!(last < 1e-3, "{last}");
        assert_eq!(vectors[4..], [0.7, 0.7]);
    }

    #[test]
    fn same_seed_gives_the_same_numbers() {
        let run = |seed| {
            let mut vectors = vec![0.5, 0.1, 0.2, 0.3];
            let texts = vec![vec![0], vec![1], vec![0, 1]];
            let targets = [1.0, 0.0, 0.0, 1.0, 0.6, 0.8];
            let training = Training {
                epochs: 3,
                batch: 1,
                learning_rate: 0.1,
                seed,
            };
            train(&mut vectors, 2, &texts, &targets, &training, &mut |_, _| {});
            vectors
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
