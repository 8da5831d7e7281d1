//! Metrics, all together: answers, retrieval, rationales, logical forms, confidence, cost.
//!
//! ```text
//! GoldQuestion + Observation ─► one row of values ─► Scores ─┬─► Metrics (means, intervals, groups)
//!                                                            └─► compare (paired, two runs)
//! ```
//!
//! `docs/metrics.md` defines every metric and names the paper it follows.

mod answers;
mod confidence;
mod cost;
mod forms;
mod layout;
mod observation;
mod options;
mod rationale;
mod resample;
mod retrieval;
mod significance;
mod summary;
mod table;

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::questions::GoldQuestion;

pub use answers::{AnswerCounts, Matching, text_hit};
pub use confidence::{Bin, Confidence};
pub use cost::{Cost, Latency, LlmCost};
pub use forms::{FormMatch, squeezed};
use layout::{Families, Layout};
pub use observation::{Observation, PredictedAnswer};
pub use options::Options;
pub use rationale::{RationaleCounts, ShownTriple};
use resample::Table;
pub use retrieval::{RecallAtK, recall_at};
pub use significance::{Comparison, Difference, compare};
pub use summary::{Bootstrap, Counts, Estimate, Estimates, Group, Metrics, TopicSource, evaluate};

/// Kinds of questions beyond this many are pooled, the rarest first.
const MAX_KINDS: usize = 100;
/// What the pooled kinds are called.
const OTHER_KINDS: &str = "other";

/// Per-question values of one run: what [`Metrics`] and comparisons are made of.
#[derive(Clone, Debug)]
pub struct Scores {
    layout: Layout,
    options: Options,
    table: Table,
    /// Ids in the order of the table's rows.
    ids: Vec<String>,
    /// (hops, kind) of each cell of the table.
    cells: Vec<(Option<u32>, Option<String>)>,
    missing: usize,
    confidence: BTreeMap<String, Confidence>,
    cost: Cost,
}

impl Scores {
    /// Scores what was observed for each question; `None` where the system never saw it, which
    /// counts as no answer.
    pub fn new(
        questions: &[GoldQuestion],
        observations: &[Option<Observation>],
        options: &Options,
    ) -> Result<Self> {
        if questions.len() != observations.len() {
            return Err(Error::BadSetting(format!(
                "{} questions were given with {} observations",
                questions.len(),
                observations.len()
            )));
        }
        if options.ks.contains(&0) {
            return Err(Error::BadSetting("`k` must be at least 1".into()));
        }
        let layout = Layout::new(Families::of(observations), options);
        let (order, cells, ranges) = arrange(questions);
        let mut values = vec![0f32; order.len() * layout.width];
        (values.par_chunks_exact_mut(layout.width))
            .zip(&order)
            .for_each(|(row, &at)| {
                layout.fill(&questions[at], observations[at].as_ref(), options, row);
            });
        Ok(Self {
            table: Table {
                width: layout.width,
                values,
                cells: ranges,
            },
            ids: order.iter().map(|&at| questions[at].id.clone()).collect(),
            cells,
            missing: observations.iter().filter(|o| o.is_none()).count(),
            cost: Cost::of(
                observations
                    .iter()
                    .flatten()
                    .map(|o| (&o.timings_ms, &o.llm)),
            ),
            confidence: confidences(questions, observations),
            layout,
            options: options.clone(),
        })
    }
}

/// How confidences and right answers go together, by what counts as right.
fn confidences(
    questions: &[GoldQuestion],
    observations: &[Option<Observation>],
) -> BTreeMap<String, Confidence> {
    let (mut exact, mut first) = (Vec::new(), Vec::new());
    for (question, observed) in questions.iter().zip(observations) {
        let Some(observed) = observed.as_ref().filter(|o| o.is_answered()) else {
            continue;
        };
        let scores = observed.answers.iter().filter_map(|a| a.score);
        let Some(confidence) = scores.reduce(f32::max).map(f64::from) else {
            continue;
        };
        let counts = AnswerCounts::of(&question.answers, &observed.answers, Matching::Lenient);
        exact.push((confidence, f64::from(u8::from(counts.exact()))));
        first.push((confidence, counts.hit_at_1));
    }
    let named = [("exact_match", exact), ("hit@1", first)];
    let told = named.into_iter().filter_map(|(name, rows)| {
        let of = Confidence::of(rows, questions.len())?;
        Some((name.to_owned(), of))
    });
    told.collect()
}

type Cell = (Option<u32>, Option<String>);

/// Puts the questions of one (hops, kind) side by side.
fn arrange(questions: &[GoldQuestion]) -> (Vec<usize>, Vec<Cell>, Vec<std::ops::Range<usize>>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in questions.iter().filter_map(|q| q.kind.as_deref()) {
        *counts.entry(kind).or_default() += 1;
    }
    let mut common: Vec<(&str, usize)> = counts.into_iter().collect();
    common.sort_by_key(|&(kind, count)| (std::cmp::Reverse(count), kind));
    common.truncate(MAX_KINDS);
    let mut common: Vec<&str> = common.into_iter().map(|(kind, _)| kind).collect();
    common.sort_unstable();

    let mut members: BTreeMap<(Option<u32>, Option<&str>), Vec<usize>> = BTreeMap::new();
    for (at, question) in questions.iter().enumerate() {
        let kind = question.kind.as_deref().map(|kind| {
            if common.binary_search(&kind).is_ok() {
                kind
            } else {
                OTHER_KINDS
            }
        });
        members.entry((question.hops, kind)).or_default().push(at);
    }
    let mut order = Vec::with_capacity(questions.len());
    let (mut cells, mut ranges) = (Vec::new(), Vec::new());
    for ((hops, kind), rows) in members {
        ranges.push(order.len()..order.len() + rows.len());
        cells.push((hops, kind.map(str::to_owned)));
        order.extend(rows);
    }
    (order, cells, ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn question(id: &str, answers: &[&str], hops: u32) -> GoldQuestion {
        GoldQuestion {
            id: id.into(),
            answers: answers.iter().map(|&a| a.into()).collect(),
            hops: Some(hops),
            kind: Some(if hops == 1 { "easy" } else { "hard" }.into()),
            ..GoldQuestion::default()
        }
    }

    pub(super) fn answers(names: &[&str]) -> Option<Observation> {
        Some(Observation {
            answers: names.iter().map(|&n| PredictedAnswer::new(n)).collect(),
            ..Observation::default()
        })
    }

    fn sample() -> (Vec<GoldQuestion>, Vec<Option<Observation>>) {
        (
            vec![
                question("1", &["a", "b"], 1),
                question("2", &["c"], 1),
                question("3", &["d", "e", "f"], 2),
                question("4", &["g"], 2),
                question("5", &[], 2),
            ],
            vec![
                answers(&["a", "x"]),
                answers(&["c"]),
                answers(&["y", "D "]),
                None,
                answers(&["z"]),
            ],
        )
    }

    #[test]
    fn a_hand_computed_run() {
        let (questions, observations) = sample();
        let metrics = evaluate(&questions, &observations, &Options::default()).unwrap();
        let near = |name: &str, value: f64| {
            let got = metrics.overall.value(name).unwrap();
            assert!(
                (got - value).abs() < 1e-6,
                "{name}: {got} instead of {value}"
            );
        };
        // strict      right predicted gold   P    R    F1
        // 1           1     2         2      1/2  1/2  1/2
        // 2           1     1         1      1    1    1
        // 3           0     2         3      0    0    0      (`D ` is not `d`)
        // 4           0     0         1      0    0    0
        near("strict.hit", 0.5);
        near("strict.hit@1", 0.5);
        near("strict.exact_match", 0.25);
        near("strict.precision", 1.5 / 4.0);
        near("strict.recall", 1.5 / 4.0);
        near("strict.f1", 1.5 / 4.0);
        near("strict.micro_precision", 2.0 / 5.0);
        near("strict.micro_recall", 2.0 / 7.0);
        near("strict.micro_f1", 4.0 / 12.0);
        // lenient: question 3 has 1 right: P 1/2, R 1/3, F1 2/5
        near("lenient.hit", 0.75);
        near("lenient.hit@1", 0.5);
        near("lenient.precision", 2.0 / 4.0);
        near("lenient.recall", (0.5 + 1.0 + 1.0 / 3.0) / 4.0);
        near("lenient.f1", (0.5 + 1.0 + 0.4) / 4.0);
        near("lenient.micro_f1", 6.0 / 12.0);
        near("text.hit", 0.75);
        assert_eq!(metrics.counts.questions, 5);
        assert_eq!(metrics.counts.without_gold, 1);
        assert_eq!(metrics.counts.scored, 4);
        assert_eq!(metrics.counts.unanswered, 1);
        assert_eq!(metrics.counts.missing, 1);
        // by group: hops 1 holds questions 1 and 2
        assert_eq!(metrics.by_hops["1"].value("strict.hit"), Some(1.0));
        assert_eq!(metrics.by_hops["2"].value("lenient.hit"), Some(0.5));
        assert_eq!(metrics.by_hops["2"].questions, 2);
        assert_eq!(metrics.by_kind["easy"], metrics.by_hops["1"]);
        assert_eq!(metrics.overall.value("retrieval.triple_recall@50"), None);
    }

    #[test]
    fn intervals_hold_the_value_and_repeat_with_the_seed() {
        let questions: Vec<_> = (0..200)
            .map(|i| question(&i.to_string(), &["a"], 1))
            .collect();
        let observations: Vec<_> = (0..200)
            .map(|i| answers(if i % 4 == 0 { &["a"] } else { &[] }))
            .collect();
        let run = |seed| {
            let options = Options {
                seed,
                ..Options::default()
            };
            evaluate(&questions, &observations, &options).unwrap()
        };
        let estimate = *run(1).overall.get("strict.hit").unwrap();
        assert_eq!(estimate.value, 0.25);
        // the normal interval is 0.25 ± 1.96·√(0.25·0.75/200) = 0.19 … 0.31
        let (low, high) = estimate.interval.unwrap();
        assert!(
            (low - 0.19).abs() < 0.01 && (high - 0.31).abs() < 0.01,
            "{low} {high}"
        );
        assert_eq!(run(1), run(1));
        assert_ne!(
            run(1).overall.get("strict.hit"),
            run(2).overall.get("strict.hit")
        );
    }

    #[test]
    fn rationales_forms_links_and_retrieval_appear_when_observed() {
        let mut asked = question("1", &["c"], 2);
        asked.topics = vec!["a".into()];
        asked.proof.logical_form = Some("(JOIN r a)".into());
        let triple = |h: &str, t: &str| [h.to_owned(), "r".to_owned(), t.to_owned()];
        asked.proof.paths = vec![vec![triple("a", "b"), triple("b", "c")]];
        let observed = Observation {
            rationale: Some(vec![triple("a", "b").into()]),
            forms: Some(vec!["x".into(), "( JOIN r a )".into()]),
            linked: Some(vec![PredictedAnswer::new("A"), PredictedAnswer::new("q")]),
            retrieval: recall_at(
                &[(("a", "b"), 0.9), (("q", "c"), 0.5)],
                |t| [t.0, t.1],
                &[("a", "b"), ("b", "c")],
                &[vec!["c"]],
                &[1, 2],
            ),
            ..Observation::default()
        };
        let options = Options {
            ks: vec![1, 2],
            ..Options::default()
        };
        let metrics = evaluate(&[asked.clone(), asked], &[Some(observed), None], &options).unwrap();
        // the second question was never seen: 0 everywhere but in retrieval, which is not known
        for (name, value) in [
            ("rationale.precision", 0.5),
            ("rationale.recall", 0.25),
            ("rationale.f1", 1.0 / 3.0),
            ("form.exact_match", 0.0),
            ("form.beam_match", 0.5),
            ("linking.precision", 0.25),
            ("linking.recall", 0.5),
            ("retrieval.triple_recall@1", 0.5),
            ("retrieval.triple_cover@2", 0.0),
            ("retrieval.answer_recall@1", 0.0),
            ("retrieval.answer_hit@2", 1.0),
        ] {
            let got = metrics.overall.value(name).unwrap();
            assert!((got - value).abs() < 1e-6, "{name}: {got}");
        }
        assert_eq!(
            metrics
                .overall
                .get("retrieval.answer_hit@2")
                .unwrap()
                .questions,
            1
        );
    }

    #[test]
    fn rare_kinds_are_pooled() {
        let questions: Vec<_> = (0..MAX_KINDS + 20)
            .map(|i| GoldQuestion {
                kind: Some(format!("kind {i}")),
                ..question(&i.to_string(), &["a"], 1)
            })
            .collect();
        let nothing = vec![None; questions.len()];
        let metrics = evaluate(
            &questions,
            &nothing,
            &Options {
                resamples: 10,
                ..Options::default()
            },
        )
        .unwrap();
        assert_eq!(metrics.by_kind.len(), MAX_KINDS + 1);
        assert_eq!(metrics.by_kind[OTHER_KINDS].questions, 20);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let (questions, observations) = sample();
        assert!(evaluate(&questions, &observations[1..], &Options::default()).is_err());
        let options = Options {
            ks: vec![0],
            ..Options::default()
        };
        assert!(evaluate(&questions, &observations, &options).is_err());
        let nothing = evaluate(&[], &[], &Options::default()).unwrap();
        assert_eq!(nothing.counts.questions, 0);
    }
}
