//! The seeded generator behind initial weights and dropout.
//!
//! Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014
//! (SplitMix64): one word of state, so that a resumed run draws what the killed one would have.

/// What is added to the state at each step: 2⁶⁴ over the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The state with its bits mixed.
fn scattered(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Pseudo-random numbers that a seed determines on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator; [`Random::state`] of another one continues where that one stands.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The generator of stream `number` of a seed: streams of one seed have nothing in common.
    pub fn stream(seed: u64, number: u64) -> Self {
        Self::new(scattered(seed.wrapping_add(number.wrapping_mul(GAMMA))))
    }

    /// What [`Random::new`] needs to go on from here.
    pub fn state(&self) -> u64 {
        self.state
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        scattered(self.state)
    }

    /// Uniform in `[0, 1)`, in steps of 2⁻²⁴.
    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f32::consts::TAU * self.uniform()).cos()
    }

    /// Uniform in `0..bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below 0");
        (self.bits() % bound as u64) as usize
    }

    /// `count` numbers, uniform in ±`bound`.
    pub fn within(&mut self, bound: f32, count: usize) -> Vec<f32> {
        (0..count)
            .map(|_| (2.0 * self.uniform() - 1.0) * bound)
            .collect()
    }

    /// A matrix as Glorot and Bengio (2010) begin it: uniform in `±√(6/(in + out))`.
    pub fn glorot(&mut self, out: usize, inner: usize) -> Vec<f32> {
        self.within((6.0 / (out + inner) as f32).sqrt(), out * inner)
    }

    /// Fisher and Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        // reference values of SplitMix64 for seed 1234567
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
        assert_eq!(random.bits(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn a_saved_state_goes_on_where_it_stood() {
        let mut random = Random::new(7);
        random.bits();
        let mut resumed = Random::new(random.state());
        assert_eq!(random.uniform(), resumed.uniform());
    }

    #[test]
    fn uniform_and_normal_have_their_means_and_spreads() {
        let mut random = Random::new(3);
        let n = 20_000;
        let uniform: f32 = (0..n).map(|_| random.uniform()).sum::<f32>() / n as f32;
        assert!((uniform - 0.5).abs() < 0.01, "{uniform}");
        let normal: Vec<f32> = (0..n).map(|_| random.normal()).collect();
        let mean = normal.iter().sum::<f32>() / n as f32;
        let square = normal.iter().map(|x| x * x).sum::<f32>() / n as f32;
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05);
    }
}
