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

/// The same where entities are scored, `[entities, outputs]`: whether they lie at the end of a
/// positive triple, and whether they are answers. An answer that does not counts for nothing.
pub(super) fn entity_targets(
    examples: &[Example<'_>],
    outputs: usize,
    positive: f32,
) -> (Vec<bool>, Vec<f32>) {
    let (mut labels, mut weights) = (Vec::new(), Vec::new());
    for example in examples {
        let mut told = vec![[false; 2]; example.entities.len()];
        for ([head, _, tail], flags) in example.triples.iter().zip(example.flags) {
            for (end, bit) in [(*head, HEAD), (*tail, TAIL)] {
                let [on_path, answer] = &mut told[end as usize];
                *on_path |= flags & POSITIVE != 0;
                *answer |= flags & bit != 0;
            }
        }
        let weigh = |[on_path, answer]: [bool; 2], output: usize| match output {
            0 if on_path => positive,
            1 if answer && !on_path => 0.0,
            1 if answer => positive,
            _ => 1.0,
        };
        let sums: Vec<f32> = (0..outputs)
            .map(|output| told.iter().map(|t| weigh(*t, output)).sum())
            .collect();
        for own in &told {
            for (output, sum) in sums.iter().enumerate() {
                labels.push(own[output]);
                weights.push(weigh(*own, output) / sum.max(f32::MIN_POSITIVE));
            }
        }
    }
    (labels, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_positive_where_their_triples_are() {
        let example = Example {
            triples: &[[0, 0, 1], [1, 0, 2], [0, 0, 3]],
            entities: &[5, 6, 7, 8],
            // the answers are 1, at the end of a positive triple, and 3, which is not
            flags: &[POSITIVE | TAIL, HEAD, TAIL],
            ..example(&[])
        };
        let (labels, weights) = entity_targets(&[example], 2, 3.0);
        assert_eq!(labels, [true, false, true, true, false, false, false, true]);
        // on the path 3 + 3 + 1 + 1 = 8; answers 1 + 3 + 1 + 0 = 5
        assert_eq!(weights, [0.375, 0.2, 0.375, 0.6, 0.125, 0.2, 0.125, 0.0]);
    }

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
