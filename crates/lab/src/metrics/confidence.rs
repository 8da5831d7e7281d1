//! Whether confidences mean something: over the questions that were answered, those without gold
//! answers included, for which any answer is wrong.
//!
//! ```text
//! c              confidence of a question: that of its best answer; y: 1 where it is right
//! ECE            Σ_b (n_b / n) · |mean c − mean y| in b        ten bins of equal width
//! AUROC          P(c of a right one > c of a wrong one), ties counted half
//! risk(k)        share that is wrong among the k surest
//! AURC           mean of risk(k) over k = 1 … n
//! coverage@95    the most of all questions that can be answered, the surest first, with
//!                at least 95% of these right
//! ```
//!
//! Guo et al., "On Calibration of Modern Neural Networks", ICML 2017 (ECE); Geifman and El-Yaniv,
//! "Selective Classification for Deep Neural Networks", NeurIPS 2017 (risk and coverage). Equal
//! confidences are answered together or not at all: within such a group the risk is what it is on
//! average over its orders.

use serde::{Deserialize, Serialize};

const BINS: usize = 10;
/// Precision that coverage is told for.
const PRECISION: f64 = 0.95;
/// Points that are kept of the curve.
const POINTS: usize = 100;

/// How confidences and right answers go together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// Questions that were answered with a confidence.
    pub answered: usize,
    /// Expected calibration error.
    pub ece: f64,
    /// Area under the ROC curve; none where all are right or all wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auroc: Option<f64>,
    /// Area under the curve of risk over coverage.
    pub aurc: f64,
    /// Coverage at 95% precision, of all questions.
    pub coverage_at_95: f64,
    /// The least confidence that is answered then; none where nothing can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_at_95: Option<f64>,
    /// Bins that hold a question.
    pub bins: Vec<Bin>,
    /// The curve: coverage of all questions, and risk.
    pub curve: Vec<(f64, f64)>,
}

/// Questions of about the same confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Where it begins.
    pub from: f64,
    /// Its questions.
    pub questions: usize,
    /// Their mean confidence.
    pub confidence: f64,
    /// How many of them are right, as a share.
    pub right: f64,
}

impl Confidence {
    /// Of the answered questions among `all`: each with its confidence and whether it is right, or
    /// how far.
    pub fn of(mut answered: Vec<(f64, f64)>, all: usize) -> Option<Self> {
        answered.retain(|(c, _)| c.is_finite());
        if answered.is_empty() {
            return None;
        }
        answered.sort_by(|a, b| b.0.total_cmp(&a.0));
        let n = answered.len() as f64;
        let mut bins = [Bin::default(); BINS];
        for &(c, y) in &answered {
            let bin = &mut bins[((c * BINS as f64) as usize).min(BINS - 1)];
            bin.questions += 1;
            bin.confidence += c;
            bin.right += y;
        }
        let mut ece = 0.0;
        for (place, bin) in bins.iter_mut().enumerate() {
            let questions = bin.questions.max(1) as f64;
            bin.from = place as f64 / BINS as f64;
            ece += (bin.confidence - bin.right).abs() / n;
            bin.confidence /= questions;
            bin.right /= questions;
        }
        let (positive, negative) = answered
            .iter()
            .fold((0.0, 0.0), |(p, q), (_, y)| (p + y, q + 1.0 - y));
        let (mut above, mut pairs, mut areas) = (0.0, 0.0, 0.0);
        let (mut asked, mut wrong) = (0.0, 0.0);
        let (mut curve, mut threshold, mut covered) = (Vec::new(), None, 0.0);
        for group in answered.chunk_by(|a, b| a.0 == b.0) {
            let size = group.len() as f64;
            let right: f64 = group.iter().map(|(_, y)| y).sum();
            // right ones of the group lie below `above` wrong ones, and beside half of its own
            pairs += right * (negative - above - (size - right) / 2.0);
            above += size - right;
            for k in 1..=group.len() {
                let part = k as f64 / size;
                areas += (wrong + part * (size - right)) / (asked + k as f64);
            }
            asked += size;
            wrong += size - right;
            curve.push((asked / all.max(1) as f64, wrong / asked));
            if 1.0 - wrong / asked >= PRECISION - 1e-12 {
                covered = asked;
                threshold = Some(group[0].0);
            }
        }
        let step = curve.len().div_ceil(POINTS).max(1);
        let last = curve.len() - 1;
        let mut place = 0..;
        curve.retain(|_| {
            let at = place.next().unwrap_or(0);
            at % step == 0 || at == last
        });
        Some(Self {
            answered: answered.len(),
            ece,
            auroc: (positive > 0.0 && negative > 0.0).then(|| pairs / (positive * negative)),
            aurc: areas / n,
            coverage_at_95: covered / all.max(1) as f64,
            threshold_at_95: threshold,
            bins: bins.into_iter().filter(|bin| bin.questions > 0).collect(),
            curve,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        // 0.95 ✓, 0.9 ✗ ✓ (one bin of three), 0.45 ✗, 0.05 ✓; one more question was not answered
        let rows = vec![
            (0.9, 0.0),
            (0.95, 1.0),
            (0.05, 1.0),
            (0.9, 1.0),
            (0.45, 0.0),
        ];
        let told = Confidence::of(rows, 6).unwrap();
        assert_eq!(told.answered, 5);
        // |2.75 − 2| + |0.45 − 0| + |0.05 − 1|, of 5
        assert!((told.ece - (0.75 + 0.45 + 0.95) / 5.0).abs() < 1e-12);
        // right 0.95, 0.9, 0.05 against wrong 0.9, 0.45: 2 + 1.5 + 0 of 6
        assert!((told.auroc.unwrap() - 3.5 / 6.0).abs() < 1e-12);
        // risks 0, (1/2)/2, 1/3, 2/4, 2/5
        let aurc = (0.0 + 0.25 + 1.0 / 3.0 + 0.5 + 0.4) / 5.0;
        assert!((told.aurc - aurc).abs() < 1e-12);
        assert!((told.coverage_at_95 - 1.0 / 6.0).abs() < 1e-12);
        assert_eq!(told.threshold_at_95, Some(0.95));
        let bins: Vec<_> = told.bins.iter().map(|b| (b.questions, b.from)).collect();
        assert_eq!(bins, [(1, 0.0), (1, 0.4), (3, 0.9)]);
        assert_eq!(told.curve.len(), 4);
        assert_eq!(told.curve[3], (5.0 / 6.0, 0.4));
        assert_eq!(Confidence::of(Vec::new(), 3), None);
        let alike = Confidence::of(vec![(1.0, 1.0)], 1).unwrap();
        assert_eq!((alike.auroc, alike.coverage_at_95), (None, 1.0));
    }

    proptest! {
        #[test]
        fn as_pairs_and_prefixes_say(rows in prop::collection::vec((0u8..6, any::<bool>()), 1..40)) {
            let rows: Vec<(f64, f64)> = rows
                .into_iter()
                .map(|(c, y)| (f64::from(c) / 5.0, f64::from(u8::from(y))))
                .collect();
            let told = Confidence::of(rows.clone(), rows.len()).unwrap();
            let (right, wrong): (Vec<(f64, f64)>, Vec<_>) = rows.iter().partition(|r| r.1 == 1.0);
            let mut pairs = 0.0;
            for a in &right {
                for b in &wrong {
                    pairs += if a.0 > b.0 { 1.0 } else if a.0 == b.0 { 0.5 } else { 0.0 };
                }
            }
            match told.auroc {
                Some(auroc) => {
                    let naive = pairs / (right.len() * wrong.len()) as f64;
                    prop_assert!((auroc - naive).abs() < 1e-9);
                }
                None => prop_assert!(right.is_empty() || wrong.is_empty()),
            }
            let covered = rows.iter().map(|r| r.0).filter_map(|t| {
                let kept: Vec<_> = rows.iter().filter(|r| r.0 >= t).collect();
                let good = kept.iter().filter(|r| r.1 == 1.0).count() as f64;
                (good / kept.len() as f64 >= PRECISION).then_some(kept.len() as f64)
            });
            let covered = covered.fold(0.0, f64::max) / rows.len() as f64;
            prop_assert!((told.coverage_at_95 - covered).abs() < 1e-9);
            prop_assert!((0.0..=1.0).contains(&told.aurc) && (0.0..=1.0).contains(&told.ece));
        }
    }
}
