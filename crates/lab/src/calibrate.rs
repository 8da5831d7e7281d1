//! Fits how sure answers are to how often they were right.
//!
//! ```text
//! L(b, w) = Σ_q y_q ln p_q + (1 − y_q) ln(1 − p_q) − ρ/2 ‖w̃‖²
//! ```
//!
//! p is that of [`Calibration`], y 1 where the set of answers is exactly the gold one, w̃ the
//! weights of signals that are centred and have variance 1, ρ = 1. Newton's method. Runs of one
//! group (of one graph, say) are left out together to see what the rest teaches about them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wherefore::confidence::Calibration;
use wherefore::graph::Graph;
use wherefore::{Answer, Pipeline};

use crate::each::each;
use crate::error::{Error, Result};
use crate::harness::Run;
use crate::metrics::{AnswerCounts, Confidence, Matching, Observation};
use crate::questions::GoldQuestion;

/// ρ.
const RIDGE: f64 = 1.0;
const ROUNDS: usize = 100;
/// Precisions that thresholds are told for.
const PRECISIONS: [f32; 12] = [
    0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99,
];
/// A precision is known from at least so many answers.
const FEWEST: f32 = 30.0;

/// An answered question.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its signals by name.
    pub signals: BTreeMap<String, f32>,
    /// What its confidence was.
    pub confidence: f64,
    /// Whether its answers are right.
    pub right: bool,
}

/// The answered questions of a run.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// What it is called.
    pub name: String,
    /// What it belongs to.
    pub group: String,
    /// All questions.
    pub questions: usize,
    /// The answered ones.
    pub answered: Vec<Sample>,
}

/// How far confidences of a run can be trusted: as they were, and by what the other groups teach.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationMetrics {
    /// The run.
    pub run: String,
    /// Its group.
    pub group: String,
    /// As they were.
    pub before: Option<Confidence>,
    /// By the calibration of the other groups.
    pub after: Option<Confidence>,
}

impl Samples {
    /// Those of a run.
    pub fn of(name: &str, group: &str, run: &Run) -> Self {
        let mut answered = Vec::new();
        for (question, line) in run.questions.iter().zip(&run.lines) {
            answered.extend(Sample::of(question, &line.answer));
        }
        Self {
            name: name.to_owned(),
            group: group.to_owned(),
            questions: run.questions.len(),
            answered,
        }
    }
}

impl Sample {
    /// Of an answer, where one was given.
    fn of(question: &GoldQuestion, answer: &Answer) -> Option<Self> {
        let given = answer.answers.iter().map(|a| f64::from(a.confidence));
        let confidence = given.reduce(f64::max)?;
        let observed = Observation::from(answer).answers;
        let counts = AnswerCounts::of(&question.answers, &observed, Matching::Lenient);
        Some(Self {
            signals: answer.signals.clone(),
            confidence,
            right: counts.exact(),
        })
    }
}

/// Fits a calibration to what a pipeline answers, names to be found in the questions; `see` is told
/// of so many more after some of them.
///
/// # Errors
/// As [`fit`], and where a question cannot be asked.
pub fn fit_to(
    pipeline: &Pipeline,
    questions: &[GoldQuestion],
    graph: &dyn Graph,
    see: impl FnMut(usize),
) -> Result<Calibration> {
    let one = |question: &GoldQuestion| -> Result<Option<Sample>> {
        let own = question.own_graph();
        let graph = own.as_ref().map_or(graph, |own| own as &dyn Graph);
        let answer = pipeline.answer(&question.without_topics(), graph, &mut ())?;
        Ok(Sample::of(question, &answer))
    };
    fit(each(questions, one, see)?.iter().flatten())
}

/// Fits a calibration to answered questions.
///
/// Where all are right or all wrong, no signal tells anything: p is (right + 1) / (n + 2), after
/// Laplace.
///
/// # Errors
/// If there are none, or if runs have no signals.
pub fn fit<'s>(samples: impl Iterator<Item = &'s Sample>) -> Result<Calibration> {
    let samples: Vec<&Sample> = samples.collect();
    let right = samples.iter().filter(|s| s.right).count();
    if samples.is_empty() {
        return Err(Error::BadSetting("no question was answered".into()));
    }
    if right == 0 || right == samples.len() {
        let odds = (right + 1) as f32 / (samples.len() - right + 1) as f32;
        return Ok(Calibration {
            bias: odds.ln(),
            ..Calibration::default()
        });
    }
    let names: BTreeSet<&String> = samples.iter().flat_map(|s| s.signals.keys()).collect();
    if names.is_empty() {
        return Err(Error::BadSetting(
            "the runs tell no signals; make them again with `wherefore eval`".into(),
        ));
    }
    let names: Vec<&String> = names.into_iter().collect();
    let value = |s: &Sample, name: &String| f64::from(s.signals.get(name).copied().unwrap_or(0.0));
    let n = samples.len() as f64;
    let scales: Vec<(f64, f64)> = (names.iter())
        .map(|name| {
            let mean = samples.iter().map(|s| value(s, name)).sum::<f64>() / n;
            let squares = samples.iter().map(|s| (value(s, name) - mean).powi(2));
            (mean, (squares.sum::<f64>() / n).sqrt().max(1e-6))
        })
        .collect();
    // the last column is the bias
    let width = names.len() + 1;
    let rows: Vec<Vec<f64>> = (samples.iter())
        .map(|s| {
            let scaled = names.iter().zip(&scales);
            let scaled = scaled.map(|(name, (mean, spread))| (value(s, name) - mean) / spread);
            scaled.chain([1.0]).collect()
        })
        .collect();
    let mut weights = vec![0.0; width];
    for _ in 0..ROUNDS {
        let mut gradient: Vec<f64> = weights.iter().map(|w| -RIDGE * w).collect();
        let mut hessian = vec![vec![0.0; width]; width];
        (0..width).for_each(|i| hessian[i][i] = RIDGE);
        gradient[width - 1] = 0.0;
        hessian[width - 1][width - 1] = 1e-9;
        for (row, sample) in rows.iter().zip(&samples) {
            let logit: f64 = row.iter().zip(&weights).map(|(x, w)| x * w).sum();
            let p = 1.0 / (1.0 + (-logit).exp());
            let error = f64::from(u8::from(sample.right)) - p;
            for i in 0..width {
                gradient[i] += error * row[i];
                for j in 0..width {
                    hessian[i][j] += p * (1.0 - p) * row[i] * row[j];
                }
            }
        }
        let step = solved(hessian, gradient);
        weights.iter_mut().zip(&step).for_each(|(w, s)| *w += s);
        if step.iter().all(|s| s.abs() < 1e-9) {
            break;
        }
    }
    let mut bias = weights[width - 1];
    let mut told = BTreeMap::new();
    for ((name, (mean, spread)), weight) in names.iter().zip(&scales).zip(&weights) {
        bias -= weight * mean / spread;
        told.insert((*name).clone(), (weight / spread) as f32);
    }
    let mut calibration = Calibration {
        bias: bias as f32,
        weights: told,
        ..Calibration::default()
    };
    let sure = samples.iter().map(|s| {
        let p = calibration.probability(&s.signals);
        (p, s.right)
    });
    calibration.precision = precisions(sure.collect());
    Ok(calibration)
}

/// For rising precisions, the least confidence at which all that is at least as sure comes to it:
/// as few as possible are refused.
fn precisions(mut answered: Vec<(f32, bool)>) -> Vec<[f32; 2]> {
    answered.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut asked, mut right) = (0.0, 0.0);
    let mut reached: Vec<(f32, f32)> = Vec::new();
    for group in answered.chunk_by(|a, b| a.0 == b.0) {
        asked += group.len() as f32;
        right += group.iter().filter(|(_, right)| *right).count() as f32;
        if asked >= FEWEST {
            reached.push((group[0].0, right / asked));
        }
    }
    let mut told = Vec::new();
    for wished in PRECISIONS {
        // the last is the least sure
        let found = reached.iter().rev().find(|(_, p)| *p >= wished);
        told.extend(found.map(|(least, _)| [wished, *least]));
    }
    told
}

/// x of A x = b, A symmetric and positive: Gauss with the largest pivot.
fn solved(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&x, &y| a[x][i].abs().total_cmp(&a[y][i].abs()));
        let pivot = pivot.unwrap_or(i);
        a.swap(i, pivot);
        b.swap(i, pivot);
        let (above, below) = a.split_at_mut(i + 1);
        let pivot = &above[i];
        for (row, place) in below.iter_mut().zip(i + 1..) {
            let factor = row[i] / pivot[i];
            let cells = row.iter_mut().zip(pivot).skip(i);
            cells.for_each(|(cell, x)| *cell -= factor * x);
            b[place] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

/// How far confidences can be trusted, each group by what the others teach; and all together.
pub fn judge(runs: &[Samples]) -> Result<Vec<CalibrationMetrics>> {
    let groups: BTreeSet<&str> = runs.iter().map(|run| run.group.as_str()).collect();
    let mut judged = Vec::new();
    let (mut before, mut after, mut all) = (Vec::new(), Vec::new(), 0);
    for group in &groups {
        let others = runs.iter().filter(|run| run.group != *group);
        let calibration = fit(others.flat_map(|run| &run.answered))?;
        for run in runs.iter().filter(|run| run.group == *group) {
            let right = |s: &Sample| f64::from(u8::from(s.right));
            let was = run.answered.iter().map(|s| (s.confidence, right(s)));
            let was: Vec<(f64, f64)> = was.collect();
            let is = run.answered.iter().map(|s| {
                let p = calibration.probability(&s.signals);
                (f64::from(p), right(s))
            });
            let is: Vec<(f64, f64)> = is.collect();
            before.extend(&was);
            after.extend(&is);
            all += run.questions;
            judged.push(CalibrationMetrics {
                run: run.name.clone(),
                group: run.group.clone(),
                before: Confidence::of(was, run.questions),
                after: Confidence::of(is, run.questions),
            });
        }
    }
    judged.push(CalibrationMetrics {
        run: "all".into(),
        group: String::new(),
        before: Confidence::of(before, all),
        after: Confidence::of(after, all),
    });
    Ok(judged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(x: f32, right: bool) -> Sample {
        Sample {
            signals: [("x".to_owned(), x)].into(),
            confidence: 0.5,
            right,
        }
    }

    #[test]
    fn it_finds_the_odds_and_is_where_the_gradient_is_nothing() {
        // of x = 0 one in four is right, of x = 1 three in four, many of each
        let mut all = Vec::new();
        for i in 0..4000 {
            all.push(sample(0.0, i % 4 == 0));
            all.push(sample(1.0, i % 4 != 0));
        }
        let fitted = fit(all.iter()).unwrap();
        // ln(1/3), and ln 3 − ln(1/3); the ridge takes a little
        assert!((fitted.bias + 3f32.ln()).abs() < 0.01, "{fitted:?}");
        assert!((fitted.weights["x"] - 2.0 * 3f32.ln()).abs() < 0.01);
        let p = fitted.probability(&[("x".to_owned(), 1.0)].into());
        assert!((p - 0.75).abs() < 0.003);
        assert!(fit([].iter()).is_err());
        // two right: 3 to 1
        let sure = fit([sample(1.0, true), sample(0.0, true)].iter()).unwrap();
        assert!((sure.probability(&BTreeMap::new()) - 0.75).abs() < 1e-6);
        assert!(fit([sample(1.0, false)].iter()).unwrap().bias < 0.0);
        let bare = |right| Sample {
            signals: BTreeMap::new(),
            ..sample(0.0, right)
        };
        assert!(fit([bare(true), bare(false)].iter()).is_err());
    }

    #[test]
    fn a_group_is_judged_by_the_others() {
        let run = |name: &str, group: &str, odd: usize| Samples {
            name: name.into(),
            group: group.into(),
            questions: 120,
            answered: (0..100)
                .map(|i| sample((i % 2) as f32, (i % 2 == odd) != (i % 10 == 0)))
                .collect(),
        };
        // two groups in which 1 speaks for being right, and one in which it speaks against
        let runs = [
            run("a", "1", 1),
            run("b", "2", 1),
            run("c", "2", 1),
            run("d", "3", 0),
        ];
        let judged = judge(&runs).unwrap();
        let names: Vec<&str> = judged.iter().map(|j| j.run.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "all"]);
        let auroc = |at: usize| judged[at].after.as_ref().unwrap().auroc.unwrap();
        assert!(
            auroc(0) > 0.85 && auroc(3) < 0.15,
            "{} {}",
            auroc(0),
            auroc(3)
        );
        assert_eq!(judged[4].after.as_ref().unwrap().answered, 400);
    }
}
