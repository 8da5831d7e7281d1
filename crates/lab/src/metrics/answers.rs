//! Predicted answers against gold answers, as sets of names.
//!
//! ```text
//! P = |A ∩ Â| / |Â|      R = |A ∩ Â| / |A|      F1 = 2PR / (P + R)
//! Hit = [A ∩ Â ≠ ∅]      Hit@1 = [â₁ ∈ A]      EM = [A = Â]
//! ```
//!
//! A is the gold set, Â the predicted one, â₁ the first prediction. GNN2R and QSRAG (Hits@1, F1),
//! AMAR (Acc is EM), ReG (Hit, micro F1); `docs/metrics.md` has the conventions:
//!
//! - Names that match under the chosen [`Matching`] are one answer, in gold and in predictions;
//!   an answer that is predicted twice counts once.
//! - Where predictions carry scores and several share the best one, Hit@1 is the share of them
//!   that is right: what picking one of them at random gets on average. Without scores the first
//!   one counts.
//! - Nothing predicted for a question with gold answers: everything is 0.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use wherefore_graph::names::normalise;

use super::PredictedAnswer;
use crate::questions::Name;

/// How strictly names are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// Identical after trimming.
    Strict,
    /// Identical in normal form: case, accents, punctuation, `_` and spaces do not count.
    Lenient,
}

impl Matching {
    fn key(self, name: &str) -> Cow<'_, str> {
        match self {
            Matching::Strict => Cow::Borrowed(name.trim()),
            Matching::Lenient => Cow::Owned(normalise(name)),
        }
    }
}

/// What one question's predictions are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerCounts {
    /// Gold answers that were predicted.
    pub right: usize,
    /// Distinct predictions.
    pub predicted: usize,
    /// Distinct gold answers.
    pub gold: usize,
    /// Whether the best prediction is right; a share where several are best.
    pub hit_at_1: f64,
}

impl AnswerCounts {
    /// Counts the predictions, best first, against the gold answers.
    pub fn of(gold: &[Name], predicted: &[PredictedAnswer], matching: Matching) -> Self {
        let mut known = Known {
            matching,
            numbers: HashMap::with_capacity(gold.len() + predicted.len()),
        };
        let mut golds = 0;
        for name in gold {
            golds += usize::from(known.number(name, golds) == golds);
        }
        // predictions get the number of the gold answer they match, or a new number of their own
        let mut distinct: Vec<(usize, Option<f32>)> = Vec::with_capacity(predicted.len());
        let mut place: Vec<Option<usize>> = vec![None; golds + predicted.len()];
        let mut numbers = golds;
        for PredictedAnswer { name, score } in predicted {
            if name.name.trim().is_empty() {
                continue;
            }
            let number = known.number(name, numbers);
            numbers += usize::from(number == numbers);
            match place[number] {
                Some(at) => distinct[at].1 = better(distinct[at].1, *score),
                None => {
                    place[number] = Some(distinct.len());
                    distinct.push((number, *score));
                }
            }
        }
        let right = distinct.iter().filter(|(n, _)| *n < golds).count();
        Self {
            right,
            predicted: distinct.len(),
            gold: golds,
            hit_at_1: hit_at_1(&distinct, golds),
        }
    }

    /// Share of the predictions that is right; 0 where nothing was predicted.
    pub fn precision(&self) -> f64 {
        ratio(self.right, self.predicted)
    }

    /// Share of the gold answers that was predicted; 0 where there are none.
    pub fn recall(&self) -> f64 {
        ratio(self.right, self.gold)
    }

    /// Harmonic mean of the two, which is 2·right / (predicted + gold).
    pub fn f1(&self) -> f64 {
        ratio(2 * self.right, self.predicted + self.gold)
    }

    /// Whether any prediction is right.
    pub fn hit(&self) -> bool {
        self.right > 0
    }

    /// Whether exactly the gold answers were predicted.
    pub fn exact(&self) -> bool {
        self.right == self.gold && self.right == self.predicted
    }
}

/// Numbers for names: names that match have the same one.
struct Known<'a> {
    matching: Matching,
    numbers: HashMap<Cow<'a, str>, usize>,
}

impl<'a> Known<'a> {
    /// The number of a name, by any of its aliases; `new` if it has none yet.
    fn number(&mut self, name: &'a Name, new: usize) -> usize {
        let key = self.matching.key(&name.name);
        if name.aliases.is_empty() {
            return *self.numbers.entry(key).or_insert(new);
        }
        let mut keys = vec![key];
        keys.extend(name.aliases.iter().map(|n| self.matching.key(n)));
        let found = keys.iter().find_map(|key| self.numbers.get(key).copied());
        let number = found.unwrap_or(new);
        for key in keys {
            self.numbers.entry(key).or_insert(number);
        }
        number
    }
}

fn better(a: Option<f32>, b: Option<f32>) -> Option<f32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        _ => a,
    }
}

fn hit_at_1(distinct: &[(usize, Option<f32>)], golds: usize) -> f64 {
    let Some(first) = distinct.first() else {
        return 0.0;
    };
    let best = distinct
        .iter()
        .try_fold(f32::NEG_INFINITY, |best, (_, score)| {
            score.map(|s| best.max(s))
        });
    match best {
        Some(best) if best > f32::NEG_INFINITY => {
            let tied = distinct.iter().filter(|(_, s)| *s == Some(best));
            let (right, all) = tied.fold((0, 0), |(right, all), (number, _)| {
                (right + usize::from(*number < golds), all + 1)
            });
            ratio(right, all)
        }
        _ => f64::from(u8::from(first.0 < golds)),
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// KG-RAG's Hit@1 for generated text: whether a gold name occurs in it, letter case aside.
pub fn text_hit(gold: &[Name], text: &str) -> bool {
    let text = text.to_lowercase();
    gold.iter().any(|name| {
        let name = name.name.trim().to_lowercase();
        !name.is_empty() && text.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(names: &[&str]) -> Vec<Name> {
        names.iter().map(|&n| n.into()).collect()
    }

    fn listed(names: &[&str]) -> Vec<PredictedAnswer> {
        names.iter().map(|&n| PredictedAnswer::new(n)).collect()
    }

    fn scored(answers: &[(&str, f32)]) -> Vec<PredictedAnswer> {
        answers
            .iter()
            .map(|&(n, s)| PredictedAnswer {
                name: n.into(),
                score: Some(s),
            })
            .collect()
    }

    #[test]
    fn counts_follow_the_equations() {
        let gold = names(&["a", "b", "c", "d"]);
        // right {a, b}, predicted {x, a, b}: P 2/3, R 2/4, F1 4/7
        let counts = AnswerCounts::of(&gold, &listed(&["x", "a", "b"]), Matching::Strict);
        assert_eq!((counts.right, counts.predicted, counts.gold), (2, 3, 4));
        assert!((counts.precision() - 2.0 / 3.0).abs() < 1e-12);
        assert!((counts.recall() - 0.5).abs() < 1e-12);
        assert!((counts.f1() - 4.0 / 7.0).abs() < 1e-12);
        assert!(counts.hit() && !counts.exact());
        assert_eq!(counts.hit_at_1, 0.0);
        assert!(AnswerCounts::of(&gold, &listed(&["d", "c", "b", "a"]), Matching::Strict).exact());
    }

    #[test]
    fn duplicates_count_once_in_gold_and_predictions() {
        let gold = names(&["a", "a", "b"]);
        let counts = AnswerCounts::of(
            &gold,
            &listed(&["a", "a", "x", "x", "a "]),
            Matching::Strict,
        );
        // gold {a, b}, predicted {a, x}
        assert_eq!((counts.right, counts.predicted, counts.gold), (1, 2, 2));
        assert_eq!(counts.hit_at_1, 1.0);
    }

    #[test]
    fn tied_best_answers_share_the_first_place() {
        let gold = names(&["a"]);
        // x, a and y are tied: one of three is right; the repeated a does not add a place
        let tied = scored(&[("x", 0.9), ("a", 0.9), ("a", 0.5), ("y", 0.9), ("z", 0.1)]);
        let counts = AnswerCounts::of(&gold, &tied, Matching::Strict);
        assert!((counts.hit_at_1 - 1.0 / 3.0).abs() < 1e-12);
        // a later, better score decides, not the place in the list
        let late = scored(&[("x", 0.2), ("a", 0.9)]);
        assert_eq!(
            AnswerCounts::of(&gold, &late, Matching::Strict).hit_at_1,
            1.0
        );
    }

    #[test]
    fn lenient_matching_forgives_spelling_and_strict_does_not() {
        let gold = names(&["Café_Volpini", "X"]);
        let predicted = listed(&["cafe volpini", "Café Volpini"]);
        let strict = AnswerCounts::of(&gold, &predicted, Matching::Strict);
        assert_eq!((strict.right, strict.predicted), (0, 2));
        let lenient = AnswerCounts::of(&gold, &predicted, Matching::Lenient);
        assert_eq!((lenient.right, lenient.predicted), (1, 1));
    }

    #[test]
    fn an_alias_is_the_same_answer() {
        let gold = [Name::with_id("Egypt", "m.02k54"), "m.0x".into()];
        let predicted = listed(&["m.02k54", "Egypt"]);
        let counts = AnswerCounts::of(&gold, &predicted, Matching::Strict);
        assert_eq!((counts.right, counts.predicted, counts.gold), (1, 1, 2));
        // and the prediction may bring one too
        let predicted = [PredictedAnswer {
            name: Name::with_id("unnamed", "m.0x"),
            score: None,
        }];
        assert_eq!(
            AnswerCounts::of(&gold, &predicted, Matching::Strict).right,
            1
        );
    }

    #[test]
    fn nothing_predicted_is_worth_nothing() {
        let counts = AnswerCounts::of(&names(&["a"]), &listed(&["", " "]), Matching::Lenient);
        assert_eq!(counts.predicted, 0);
        assert_eq!(
            (
                counts.precision(),
                counts.recall(),
                counts.f1(),
                counts.hit_at_1
            ),
            (0.0, 0.0, 0.0, 0.0)
        );
        assert!(!counts.hit() && !counts.exact());
    }

    #[test]
    fn text_hit_looks_for_the_whole_name() {
        assert!(text_hit(
            &names(&["Brad Pitt"]),
            "It was BRAD PITT, I think."
        ));
        // the example of KG-RAG, section 4.2.1
        assert!(!text_hit(
            &names(&["Brad Pitt"]),
            "Pitt is the actor in question"
        ));
        assert!(!text_hit(&names(&[" "]), "anything"));
    }

    proptest! {
        #[test]
        fn counts_equal_those_of_plain_sets(
            gold in prop::collection::vec("[a-e]", 0..6),
            predicted in prop::collection::vec("[a-h]", 0..8),
        ) {
            use std::collections::BTreeSet;
            let counts = AnswerCounts::of(
                &names(&gold.iter().map(String::as_str).collect::<Vec<_>>()),
                &listed(&predicted.iter().map(String::as_str).collect::<Vec<_>>()),
                Matching::Strict,
            );
            let (g, p): (BTreeSet<_>, BTreeSet<_>) = (gold.iter().collect(), predicted.iter().collect());
            prop_assert_eq!(counts.gold, g.len());
            prop_assert_eq!(counts.predicted, p.len());
            prop_assert_eq!(counts.right, g.intersection(&p).count());
            prop_assert_eq!(counts.exact(), g == p);
        }
    }
}
