//! Whether one run is better than another on the same questions, or only luckier.
//!
//! Paired bootstrap (Efron and Tibshirani 1993) for the interval of the difference, approximate
//! randomisation (Noreen 1989) for its p-value:
//!
//! ```text
//! p = (1 + #{trials : |δ*| ≥ |δ|}) / (1 + trials)
//! ```
//!
//! δ is the difference of a metric between the runs, δ* the same after each question's two
//! results were swapped by the toss of a coin. Swapping by signs: with S = A + B and D = A − B,
//! the swapped sums are (S ± Σ±D) / 2, so one pass over D serves every metric, micro ones too.

use serde::{Deserialize, Serialize};

use super::cost::quantile;
use super::resample::{self, Table};
use super::{Bootstrap, Scores};
use crate::error::{Error, Result};

/// Two runs side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Every metric that both runs have.
    pub differences: Vec<Difference>,
    /// How intervals and p-values were made.
    pub bootstrap: Bootstrap,
}

/// One metric of two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The metric's name.
    pub metric: String,
    /// Its value in the first run.
    pub first: f64,
    /// Its value in the second run.
    pub second: f64,
    /// Second less first, as a 95% interval.
    pub interval: Option<(f64, f64)>,
    /// How likely a difference at least as large is if the runs are equally good.
    pub p_value: f64,
}

/// Compares two runs over the same questions, scored with the same options.
pub fn compare(first: &Scores, second: &Scores) -> Result<Comparison> {
    if first.ids != second.ids {
        return Err(Error::NotPaired(
            "they do not answer the same questions".into(),
        ));
    }
    if first.options.ks != second.options.ks {
        return Err(Error::NotPaired("their `k` differ".into()));
    }
    let pairs: Vec<_> = first
        .layout
        .definitions
        .iter()
        .filter_map(|a| {
            let b = second
                .layout
                .definitions
                .iter()
                .find(|b| b.name == a.name)?;
            Some((a, b))
        })
        .collect();
    let (a_width, b_width) = (first.layout.width, second.layout.width);
    let rows = first.table.rows();
    let one_cell = |width: usize, values: Vec<f32>| Table {
        width,
        values,
        // one cell of all rows, which groups do not matter to
        cells: std::iter::once(0..rows).collect(),
    };

    let mut beside = Vec::with_capacity(rows * (a_width + b_width));
    for (a, b) in first
        .table
        .values
        .chunks_exact(a_width)
        .zip(second.table.values.chunks_exact(b_width))
    {
        beside.extend_from_slice(a);
        beside.extend_from_slice(b);
    }
    let beside = one_cell(a_width + b_width, beside);
    let sums = beside.sums();
    let (trials, seed) = (first.options.resamples, first.options.seed);
    let drawn = beside.weighted_sums(trials, seed, resample::bootstrap);
    let swapped = swap_trials(
        &beside,
        a_width,
        b_width,
        &pairs_of_columns(first, second),
        trials,
        seed,
    );

    let differences = pairs
        .into_iter()
        .filter_map(|(a, b)| {
            let scored = first.layout.scored;
            let difference = |sums: &[f64]| {
                let change = b.value(&sums[a_width..])? - a.value(&sums[..a_width])?;
                (sums[scored] > 0.0).then_some(change)
            };
            let observed = difference(&sums)?;
            let mut values: Vec<f64> = drawn
                .chunks_exact(a_width + b_width)
                .filter_map(difference)
                .collect();
            values.sort_unstable_by(f64::total_cmp);
            let extreme = swapped
                .chunks_exact(a_width + b_width)
                .filter_map(difference)
                .filter(|d| d.abs() >= observed.abs() - 1e-9)
                .count();
            Some(Difference {
                metric: a.name.clone(),
                first: a.value(&sums[..a_width])?,
                second: b.value(&sums[a_width..])?,
                interval: (!values.is_empty())
                    .then(|| (quantile(&values, 0.025), quantile(&values, 0.975))),
                p_value: (1 + extreme) as f64 / (1 + trials) as f64,
            })
        })
        .collect();
    Ok(Comparison {
        differences,
        bootstrap: Bootstrap {
            resamples: trials,
            seed,
            level: 0.95,
        },
    })
}

/// For each column of the second run, the same column of the first, if it has it.
fn pairs_of_columns(first: &Scores, second: &Scores) -> Vec<Option<usize>> {
    let mut partner = vec![None; second.layout.width];
    for b in &second.layout.definitions {
        if let Some(a) = first.layout.definitions.iter().find(|a| a.name == b.name) {
            for (from, to) in b.columns().into_iter().zip(a.columns()) {
                partner[from] = Some(to);
            }
        }
    }
    partner
}

/// Column sums of both runs, `[trials, a_width + b_width]`, after swapping questions at random.
fn swap_trials(
    beside: &Table,
    a_width: usize,
    b_width: usize,
    partner: &[Option<usize>],
    trials: usize,
    seed: u64,
) -> Vec<f64> {
    let width = a_width + b_width;
    let differences: Vec<f32> = beside
        .values
        .chunks_exact(width)
        .flat_map(|row| {
            partner.iter().enumerate().map(move |(b, a)| match a {
                Some(a) => row[*a] - row[a_width + b],
                None => 0.0,
            })
        })
        .collect();
    let table = Table {
        width: b_width,
        values: differences,
        cells: beside.cells.clone(),
    };
    let flipped = table.weighted_sums(trials, seed ^ 0x7369_676e, resample::signs);
    let sums = beside.sums();
    let mut swapped = Vec::with_capacity(trials * width);
    for trial in flipped.chunks_exact(b_width) {
        let start = swapped.len();
        swapped.extend_from_slice(&sums);
        for (b, (a, d)) in partner.iter().zip(trial).enumerate() {
            if let Some(a) = a {
                let both = sums[*a] + sums[a_width + b];
                swapped[start + a] = (both + d) / 2.0;
                swapped[start + a_width + b] = (both - d) / 2.0;
            }
        }
    }
    swapped
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answers, question};
    use super::super::{Options, Scores};
    use super::*;

    fn scores(right: impl Fn(usize) -> bool, count: usize) -> Scores {
        let questions: Vec<_> = (0..count)
            .map(|i| question(&i.to_string(), &["a"], 1))
            .collect();
        let seen: Vec<_> = (0..count)
            .map(|i| answers(if right(i) { &["a"] } else { &["x"] }))
            .collect();
        Scores::new(
            &questions,
            &seen,
            &Options {
                seed: 1,
                ..Options::default()
            },
        )
        .unwrap()
    }

    fn hit(comparison: &Comparison) -> &Difference {
        comparison
            .differences
            .iter()
            .find(|d| d.metric == "strict.hit")
            .unwrap()
    }

    #[test]
    fn equal_runs_do_not_differ() {
        let run = scores(|i| i % 3 == 0, 90);
        let comparison = compare(&run, &run).unwrap();
        let hit = hit(&comparison);
        assert_eq!((hit.p_value, hit.interval), (1.0, Some((0.0, 0.0))));
    }

    #[test]
    fn p_values_follow_the_binomial_sign_test() {
        // the runs differ on 6 questions, always to the same side: |δ*| ≥ |δ| needs six equal
        // coins, so p = 2/64
        let comparison = compare(&scores(|_| false, 40), &scores(|i| i < 6, 40)).unwrap();
        let hit = hit(&comparison);
        assert_eq!((hit.first, hit.second), (0.0, 0.15));
        assert!((hit.p_value - 2.0 / 64.0).abs() < 0.015, "{}", hit.p_value);
        let (low, high) = hit.interval.unwrap();
        assert!(
            low > 0.0 && low < 0.15 && high > 0.15 && high < 0.35,
            "{low} {high}"
        );
        // micro F1 = right / 40 here, so it must tell the same story
        let micro = comparison
            .differences
            .iter()
            .find(|d| d.metric == "strict.micro_f1")
            .unwrap();
        assert!((micro.p_value - hit.p_value).abs() < 1e-12);
    }

    #[test]
    fn runs_over_other_questions_cannot_be_compared() {
        let error = compare(&scores(|_| true, 4), &scores(|_| true, 5)).unwrap_err();
        assert!(matches!(error, Error::NotPaired(_)), "{error}");
    }
}
