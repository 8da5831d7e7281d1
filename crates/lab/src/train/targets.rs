//! What the network is to say, and how much each of its words counts.

use super::examples::{Example, HEAD, POSITIVE, TAIL};

/// Labels and weights of a batch's logits, `[triples, outputs]`.
pub(super) fn targets(
    examples: &[Example<'_>],
    outputs: usize,
    positive: f32,
) -> (Vec<bool>, Vec<f32>) {
    let mut labels = Vec::new();
    let mut weights = Vec::new();
    for example in examples {
        let from = weights.len();
        for flags in example.flags {
            let is_positive = flags & POSITIVE != 0;
            let weigh = |yes: bool| if yes { positive } else { 1.0 };
            labels.push(is_positive);
            weights.push(weigh(is_positive));
            if outputs > 1 {
                for end in [HEAD, TAIL] {
                    let is_answer = flags & end != 0;
                    labels.push(is_answer);
                    weights.push(match is_answer && !is_positive {
                        true => 0.0,
                        false => weigh(is_answer),
                    });
                }
            }
        }
        let own = &mut weights[from..];
        // the triple itself counts as much as both its ends
        for which in [0..1, 1..outputs] {
            let sum: f32 = own
                .chunks_exact(outputs)
                .flat_map(|w| &w[which.clone()])
                .sum();
            if sum > 0.0 {
                for w in own.chunks_exact_mut(outputs) {
                    w[which.clone()].iter_mut().for_each(|w| *w /= sum);
                }
            }
        }
    }
    (labels, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(flags: &'static [u32]) -> Example<'static> {
        Example {
            question: 0,
            topics: 1,
            answers: 1,
            entities: &[],
            relations: &[],
            triples: &[],
            flags,
        }
    }

    #[test]
    fn every_question_counts_alike_and_doubtful_ends_not_at_all() {
        // one positive triple that ends in an answer, one negative that begins at one
        let first = example(&[POSITIVE | TAIL, HEAD]);
        let (labels, weights) = targets(&[first], 3, 3.0);
        assert_eq!(labels, [true, false, true, false, true, false]);
        // triples 3 and 1 of 4; ends 1, 3, 0 (an answer of a negative triple) and 1, of 5
        assert_eq!(weights, [0.75, 0.2, 0.6, 0.25, 0.0, 0.2]);
        // without ends; the second question has as much weight with four triples as the first
        let second = example(&[0, 0, 0, POSITIVE]);
        let (labels, weights) = targets(&[example(&[POSITIVE]), second], 1, 1.0);
        assert_eq!(labels, [true, false, false, false, true]);
        assert_eq!(weights, [1.0, 0.25, 0.25, 0.25, 0.25]);
    }
}
