//! The next token out of the logits.
//!
//! ```text
//! repeat penalty → top k → top p → min p → softmax(logits / T) → draw
//! ```
//!
//! At temperature 0 the largest logit wins, the first among equals.

use super::super::Decoding;
use crate::Random;

/// Tokens that the repeat penalty looks back on.
const LOOKBACK: usize = 64;

pub(super) fn next(
    logits: &mut [f32],
    written: &[u32],
    decoding: &Decoding,
    random: &mut Random,
) -> u32 {
    if decoding.repeat_penalty != 1.0 {
        let mut recent = written[written.len().saturating_sub(LOOKBACK)..].to_vec();
        recent.sort_unstable();
        recent.dedup();
        for token in recent {
            let logit = &mut logits[token as usize];
            *logit = if *logit > 0.0 {
                *logit / decoding.repeat_penalty
            } else {
                *logit * decoding.repeat_penalty
            };
        }
    }
    if decoding.temperature <= 0.0 {
        return largest(logits);
    }
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    let by_logit = |a: &u32, b: &u32| {
        let of = |token: &u32| logits[*token as usize];
        of(b).total_cmp(&of(a)).then_with(|| a.cmp(b))
    };
    if (1..order.len()).contains(&decoding.top_k) {
        order.select_nth_unstable_by(decoding.top_k - 1, by_logit);
        order.truncate(decoding.top_k);
    }
    order.sort_unstable_by(by_logit);
    let top = logits[order[0] as usize];
    let mass = |temperature: f32| -> Vec<f32> {
        let mass: Vec<f32> = order
            .iter()
            .map(|&t| ((logits[t as usize] - top) / temperature).exp())
            .collect();
        let sum: f32 = mass.iter().sum();
        mass.into_iter().map(|m| m / sum).collect()
    };
    let plain = mass(1.0);
    let mut kept = plain.len();
    if decoding.top_p < 1.0 {
        let mut sum = 0.0;
        let enough = plain.iter().position(|m| {
            sum += m;
            sum >= decoding.top_p
        });
        kept = enough.map_or(kept, |i| i + 1);
    }
    kept = plain[..kept]
        .iter()
        .position(|m| *m < decoding.min_p * plain[0])
        .unwrap_or(kept)
        .max(1);
    let mass = mass(decoding.temperature);
    let mut left = random.uniform() * mass[..kept].iter().sum::<f32>();
    for (i, m) in mass[..kept].iter().enumerate() {
        left -= m;
        if left < 0.0 {
            return order[i];
        }
    }
    order[kept - 1]
}

fn largest(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (i, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = i;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 4] = [1.0, 3.0, 2.0, 3.0];

    fn drawn(decoding: &Decoding) -> Vec<u32> {
        let mut random = Random::new(7);
        let mut seen: Vec<u32> = (0..200)
            .map(|_| next(&mut LOGITS.clone(), &[], decoding, &mut random))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    #[test]
    fn without_temperature_the_largest_wins() {
        assert_eq!(drawn(&Decoding::default()), [1]);
    }

    #[test]
    fn cuts_leave_only_the_likely() {
        let warm = Decoding {
            temperature: 1.0,
            ..Decoding::default()
        };
        assert_eq!(drawn(&warm), [0, 1, 2, 3]);
        assert_eq!(
            drawn(&Decoding {
                top_k: 3,
                ..warm.clone()
            }),
            [1, 2, 3]
        );
        // e³, e³, e², e¹ over their sum 50.3: 0.40, 0.40, 0.15, 0.05
        assert_eq!(
            drawn(&Decoding {
                top_p: 0.7,
                ..warm.clone()
            }),
            [1, 3]
        );
        // e²/e³ = 0.37, e¹/e³ = 0.14
        assert_eq!(
            drawn(&Decoding {
                min_p: 0.3,
                ..warm.clone()
            }),
            [1, 2, 3]
        );
        assert_eq!(drawn(&Decoding { top_k: 1, ..warm }), [1]);
    }

    #[test]
    fn repetition_is_penalised() {
        let decoding = Decoding {
            repeat_penalty: 2.0,
            ..Decoding::default()
        };
        let mut random = Random::new(0);
        // 3 becomes 1.5, below 2 and the other 3
        assert_eq!(next(&mut LOGITS.clone(), &[1], &decoding, &mut random), 3);
        assert_eq!(
            next(&mut LOGITS.clone(), &[1, 3], &decoding, &mut random),
            2
        );
    }
}
