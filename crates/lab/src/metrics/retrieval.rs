//! How much of the gold evidence stands among the first k retrieved triples.
//!
//! SubgraphRAG (Li et al., ICLR 2025) and QSRAG:
//!
//! ```text
//! Triple Recall@k = |T_k ∩ T⁺| / |T⁺|        Answer Recall@k = |{a ∈ A : a occurs in T_k}| / |A|
//! ```
//!
//! T_k are the k best distinct triples, T⁺ the positive ones (on shortest paths between topics
//! and answers), A the gold answers. QSRAG's text speaks of the share of retrieved triples that
//! lie on shortest paths; its figures (0.979 at k = 500) can only be the recall written here.
//!
//! Departures: where equal scores straddle the k-th place, the value is its expectation over all
//! orders of the tied triples (McSherry and Najork, ECIR 2008), so that no score depends on the
//! order in which a method happens to list ties. An answer that is not in the graph counts as
//! missed. Beside the recalls stand two shares of questions: all positives among the k (`cover`),
//! and any answer among them (`hit`, the most that a reader of the k triples can reach).

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use serde::{Deserialize, Serialize};

/// What the first k triples hold of one question's evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecallAtK {
    /// Triple recall and whether all positives are there; none where the question has none.
    pub triples: Option<(f64, f64)>,
    /// Answer recall and whether any answer is there; none where the question has none.
    pub answers: Option<(f64, f64)>,
}

/// Recall at each of `ks` of a ranking, best first, scores falling.
///
/// `answers` has, for each gold answer, the entities that it may be: none for an answer outside
/// the graph. Works on ids and on names alike. Duplicates in the ranking take no place.
pub fn recall_at<T, E>(
    ranked: &[(T, f32)],
    ends: impl Fn(&T) -> [E; 2],
    positives: &[T],
    answers: &[Vec<E>],
    ks: &[usize],
) -> Vec<RecallAtK>
where
    T: Eq + Hash,
    E: Eq + Hash,
{
    let positives: HashSet<&T> = positives.iter().collect();
    let mut owners: HashMap<&E, Vec<usize>> = HashMap::new();
    for (number, entities) in answers.iter().enumerate() {
        for entity in entities {
            owners.entry(entity).or_default().push(number);
        }
    }
    let mut seen = HashSet::with_capacity(ranked.len());
    let places: Vec<Place> = ranked
        .iter()
        .filter(|(triple, _)| seen.insert(triple))
        .map(|(triple, score)| {
            let mut found: Vec<usize> = ends(triple)
                .iter()
                .filter_map(|e| owners.get(e))
                .flatten()
                .copied()
                .collect();
            found.sort_unstable();
            found.dedup();
            Place {
                score: *score,
                positive: positives.contains(triple),
                answers: found,
            }
        })
        .collect();
    ks.iter()
        .map(|&k| at_k(&places, positives.len(), answers.len(), k))
        .collect()
}

/// One distinct triple of the ranking.
struct Place {
    score: f32,
    positive: bool,
    answers: Vec<usize>,
}

fn at_k(places: &[Place], positives: usize, answers: usize, k: usize) -> RecallAtK {
    let k = k.min(places.len());
    // the tied run around the k-th place: `sure` triples stand before it, `slots` of it fit
    let (sure, tied) = match k.checked_sub(1).and_then(|last| places.get(last)) {
        None => (0, 0..0),
        Some(last) => {
            let from = places.partition_point(|p| p.score > last.score).min(k);
            let to = from
                + places[from..]
                    .iter()
                    .take_while(|p| p.score == last.score)
                    .count();
            if to <= k { (k, k..k) } else { (from, from..to) }
        }
    };
    let slots = k - sure;
    let (certain, tied) = (&places[..sure], &places[tied]);
    let odds = Odds {
        tied: tied.len(),
        slots,
    };
    RecallAtK {
        triples: (positives > 0).then(|| {
            let before = certain.iter().filter(|p| p.positive).count();
            let among = tied.iter().filter(|p| p.positive).count();
            let expected = before as f64 + among as f64 * odds.one();
            let all = if before + among == positives {
                odds.all_of(among)
            } else {
                0.0
            };
            (expected / positives as f64, all)
        }),
        answers: (answers > 0).then(|| {
            let mut certainly = vec![false; answers];
            for place in certain {
                for &a in &place.answers {
                    certainly[a] = true;
                }
            }
            let mut maybe = vec![0usize; answers];
            for place in tied {
                for &a in &place.answers {
                    maybe[a] += 1;
                }
            }
            let expected: f64 = (0..answers)
                .map(|a| {
                    if certainly[a] {
                        1.0
                    } else {
                        odds.any_of(maybe[a])
                    }
                })
                .sum();
            let any = if certainly.contains(&true) {
                1.0
            } else {
                odds.any_of(tied.iter().filter(|p| !p.answers.is_empty()).count())
            };
            (expected / answers as f64, any)
        }),
    }
}

/// Drawing `slots` of `tied` triples at random.
struct Odds {
    tied: usize,
    slots: usize,
}

impl Odds {
    /// That one given triple is drawn.
    fn one(&self) -> f64 {
        if self.tied == 0 {
            0.0
        } else {
            self.slots as f64 / self.tied as f64
        }
    }

    /// That `count` given triples are all drawn.
    fn all_of(&self, count: usize) -> f64 {
        (0..count)
            .map(|i| self.slots.saturating_sub(i) as f64 / (self.tied - i) as f64)
            .product()
    }

    /// That at least one of `count` given triples is drawn.
    fn any_of(&self, count: usize) -> f64 {
        let none: f64 = (0..count)
            .map(|i| {
                let left = self.tied - i;
                left.saturating_sub(self.slots) as f64 / left as f64
            })
            .product();
        1.0 - none
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type T = (u32, u32, u32);

    fn recall(ranked: &[(T, f32)], positives: &[T], answers: &[Vec<u32>], k: usize) -> RecallAtK {
        recall_at(ranked, |t| [t.0, t.2], positives, answers, &[k])[0]
    }

    fn close(a: Option<(f64, f64)>, b: (f64, f64)) {
        let a = a.unwrap();
        assert!(
            (a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9,
            "{a:?} {b:?}"
        );
    }

    #[test]
    fn recall_grows_with_k_and_duplicates_take_no_place() {
        let (a, b, c) = ((0, 0, 1), (1, 0, 2), (1, 0, 3));
        let ranked = [(a, 0.9), (a, 0.9), (c, 0.8), (b, 0.7)];
        let answers = [vec![2], vec![9, 3], vec![]];
        // of the positives {a, b}: a in the first; a in the first two distinct; both in three
        close(recall(&ranked, &[a, b], &answers, 1).triples, (0.5, 0.0));
        close(recall(&ranked, &[a, b], &answers, 2).triples, (0.5, 0.0));
        close(recall(&ranked, &[a, b], &answers, 3).triples, (1.0, 1.0));
        // answers: none; the second by entity 3; the first too; the third is not in the graph
        close(recall(&ranked, &[a, b], &answers, 1).answers, (0.0, 0.0));
        close(
            recall(&ranked, &[a, b], &answers, 2).answers,
            (1.0 / 3.0, 1.0),
        );
        close(
            recall(&ranked, &[a, b], &answers, 99).answers,
            (2.0 / 3.0, 1.0),
        );
        assert_eq!(recall(&ranked, &[], &[], 2), RecallAtK::default());
        close(recall(&[], &[a], &answers, 5).triples, (0.0, 0.0));
        close(recall(&ranked, &[a], &answers, 0).triples, (0.0, 0.0));
    }

    #[test]
    fn ties_at_the_border_give_the_expected_recall() {
        let t = |i: u32| (10 + i, 0, 20 + i);
        // one sure triple, then four tied for two places; positives: the sure one and two tied
        let ranked = [
            (t(0), 0.9),
            (t(1), 0.5),
            (t(2), 0.5),
            (t(3), 0.5),
            (t(4), 0.5),
            (t(5), 0.1),
        ];
        let at3 = recall(&ranked, &[t(0), t(1), t(3)], &[vec![22], vec![23, 24]], 3);
        // (1 + 2·2/4) / 3; all three with probability 2/4·1/3
        close(at3.triples, (2.0 / 3.0, 1.0 / 6.0));
        // 22 by one of four: 1/2; 23 or 24 by two of four: 1 − 2/4·1/3 = 5/6; any by three: 1
        close(at3.answers, ((0.5 + 5.0 / 6.0) / 2.0, 1.0));
        // the tied run ends at the border: nothing is left to chance
        close(recall(&ranked, &[t(4)], &[], 5).triples, (1.0, 1.0));
    }

    fn orders(items: &[(T, f32)]) -> Vec<Vec<(T, f32)>> {
        // every order of the list that keeps scores falling
        let mut all = vec![vec![]];
        for _ in 0..items.len() {
            all = all
                .into_iter()
                .flat_map(|done: Vec<(T, f32)>| {
                    let left: Vec<_> = items
                        .iter()
                        .filter(|i| !done.contains(i))
                        .copied()
                        .collect();
                    let best = left.iter().map(|i| i.1).fold(f32::MIN, f32::max);
                    left.into_iter()
                        .filter(move |i| i.1 == best)
                        .map(move |i| {
                            let mut next = done.clone();
                            next.push(i);
                            next
                        })
                        .collect::<Vec<_>>()
                })
                .collect();
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn ties_equal_the_mean_over_all_orders(
            scores in prop::collection::vec(0u8..3, 1..6),
            positive in prop::collection::vec(any::<bool>(), 6),
            tails in prop::collection::vec(0u32..4, 6),
            k in 0usize..7,
        ) {
            let mut ranked: Vec<(T, f32)> = scores.iter().enumerate()
                .map(|(i, &s)| ((100 + i as u32, 0, tails[i]), f32::from(s))).collect();
            ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
            let positives: Vec<T> = ranked.iter().zip(&positive).filter(|(_, p)| **p).map(|(r, _)| r.0).collect();
            let answers = vec![vec![0], vec![1, 2], vec![9]];
            let ours = recall(&ranked, &positives, &answers, k);
            let orders = orders(&ranked);
            let (mut triples, mut cover, mut found, mut hit) = (0.0, 0.0, 0.0, 0.0);
            for order in &orders {
                let top: Vec<T> = order.iter().take(k).map(|i| i.0).collect();
                let right = positives.iter().filter(|p| top.contains(p)).count();
                triples += right as f64;
                cover += f64::from(u8::from(right == positives.len()));
                let got = answers.iter().filter(|a| top.iter().any(|t| a.contains(&t.0) || a.contains(&t.2))).count();
                found += got as f64;
                hit += f64::from(u8::from(got > 0));
            }
            let n = orders.len() as f64;
            let (expected, any) = ours.answers.unwrap();
            prop_assert!((expected - found / n / 3.0).abs() < 1e-9);
            prop_assert!((any - hit / n).abs() < 1e-9);
            if let Some((expected, all)) = ours.triples {
                prop_assert!((expected - triples / n / positives.len() as f64).abs() < 1e-9);
                prop_assert!((all - cover / n).abs() < 1e-9);
            } else {
                prop_assert!(positives.is_empty());
            }
        }
    }
}
