//! What stands in `metrics.json`: every metric with its interval, over all questions and by group.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::confidence::Confidence;
use super::cost::{Cost, quantile};
use super::layout::Layout;
use super::observation::Observation;
use super::options::Options;
use super::{Scores, resample};
use crate::error::Result;
use crate::questions::{Coverage, GoldQuestion};

/// All metrics of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// How many questions there were.
    pub counts: Counts,
    /// Where the topics came from, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<TopicSource>,
    /// Over all questions.
    pub overall: Group,
    /// By number of hops; `?` where unknown.
    pub by_hops: BTreeMap<String, Group>,
    /// By kind of question; `?` where unknown.
    pub by_kind: BTreeMap<String, Group>,
    /// How much of the questions the graph can answer at all, where a graph was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// How confidences and right answers go together, by what counts as right.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub confidence: BTreeMap<String, Confidence>,
    /// Time and language models.
    pub cost: Cost,
    /// How the intervals were made.
    pub bootstrap: Bootstrap,
}

/// How many questions there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All questions.
    pub questions: usize,
    /// Questions with gold answers: those that answer metrics are taken over.
    pub scored: usize,
    /// Questions without gold answers.
    pub without_gold: usize,
    /// Scored questions that got no answer.
    pub unanswered: usize,
    /// Questions that the system never saw.
    pub missing: usize,
}

/// Where a run's topic entities came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopicSource {
    /// Given with the question.
    Gold,
    /// Linked by the system.
    Linked,
}

/// How the intervals were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Number of resamples.
    pub resamples: usize,
    /// Their seed.
    pub seed: u64,
    /// Share of the resamples inside the interval.
    pub level: f64,
}

/// Metrics over some questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Scored questions.
    pub questions: usize,
    /// The metrics by name.
    pub metrics: Estimates,
}

impl Group {
    /// The estimate called `name`.
    pub fn get(&self, name: &str) -> Option<&Estimate> {
        self.metrics
            .0
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, e)| e)
    }

    /// The value called `name`.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.get(name).map(|e| e.value)
    }
}

/// One metric with its 95% interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value over the questions as they are.
    pub value: f64,
    /// The percentile bootstrap interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Questions that it is defined for; for micro averages, those of the group.
    pub questions: usize,
}

/// Metrics by name, in the order in which they are shown. A JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimates(pub Vec<(String, Estimate)>);

impl Serialize for Estimates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, estimate)| (name, estimate)))
    }
}

impl<'de> Deserialize<'de> for Estimates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Estimates;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of estimates")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Estimates, A::Error> {
                let mut estimates = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    estimates.push(entry);
                }
                Ok(Estimates(estimates))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

const LEVEL: f64 = 0.95;

impl Scores {
    /// The metrics with their intervals, over all questions and by group.
    pub fn metrics(&self) -> Metrics {
        summarise(self)
    }
}

/// Scores and sums up in one step.
///
/// ```
/// use wherefore_lab::GoldQuestion;
/// use wherefore_lab::metrics::{Observation, Options, PredictedAnswer, evaluate};
/// let question = GoldQuestion { answers: vec!["Oracle Park".into()], ..GoldQuestion::default() };
/// let observed = Observation {
///     answers: vec![PredictedAnswer::new("oracle park")],
///     ..Observation::default()
/// };
/// let metrics = evaluate(&[question], &[Some(observed)], &Options::default())?;
/// assert_eq!(metrics.overall.value("lenient.hit@1"), Some(1.0));
/// assert_eq!(metrics.overall.value("strict.hit@1"), Some(0.0));
/// # Ok::<(), wherefore_lab::Error>(())
/// ```
pub fn evaluate(
    questions: &[GoldQuestion],
    observations: &[Option<Observation>],
    options: &Options,
) -> Result<Metrics> {
    Ok(Scores::new(questions, observations, options)?.metrics())
}

fn summarise(scores: &Scores) -> Metrics {
    let options = &scores.options;
    let sums = scores.table.sums();
    let resampled =
        scores
            .table
            .weighted_sums(options.resamples, options.seed, resample::bootstrap);
    let cells = scores.cells.len();
    let group =
        |wanted: &[usize]| summarise_group(&scores.layout, wanted, cells, &sums, &resampled);
    let all: Vec<usize> = (0..cells).collect();
    let overall_sums = add_cells(&all, &sums, scores.layout.width);
    let count = |column: usize| overall_sums.get(column).map_or(0, |&n| n as usize);
    let scored = count(scores.layout.scored);
    let by = |name: &dyn Fn(usize) -> String| {
        let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for cell in 0..cells {
            members.entry(name(cell)).or_default().push(cell);
        }
        members
            .into_iter()
            .map(|(name, wanted)| (name, group(&wanted)))
            .collect()
    };
    let unknown = || "?".to_owned();
    Metrics {
        counts: Counts {
            questions: scores.ids.len(),
            scored,
            without_gold: scores.ids.len() - scored,
            unanswered: scored - scores.answered_and_scored(),
            missing: scores.missing,
        },
        topics: None,
        overall: group(&all),
        by_hops: by(&|cell| scores.cells[cell].0.map_or_else(unknown, |h| h.to_string())),
        by_kind: by(&|cell| scores.cells[cell].1.clone().unwrap_or_else(unknown)),
        coverage: None,
        confidence: scores.confidence.clone(),
        cost: scores.cost.clone(),
        bootstrap: Bootstrap {
            resamples: options.resamples,
            seed: options.seed,
            level: LEVEL,
        },
    }
}

impl Scores {
    fn answered_and_scored(&self) -> usize {
        self.table
            .values
            .chunks_exact(self.layout.width)
            .filter(|row| row[self.layout.scored] > 0.0 && row[self.layout.answered] > 0.0)
            .count()
    }
}

/// Column sums over some cells of `[cells, width]`.
fn add_cells(wanted: &[usize], sums: &[f64], width: usize) -> Vec<f64> {
    let mut total = vec![0.0; width];
    for &cell in wanted {
        for (t, s) in total.iter_mut().zip(&sums[cell * width..]) {
            *t += s;
        }
    }
    total
}

fn summarise_group(
    layout: &Layout,
    wanted: &[usize],
    cells: usize,
    sums: &[f64],
    resampled: &[f64],
) -> Group {
    let width = layout.width;
    let total = add_cells(wanted, sums, width);
    let questions = total[layout.scored] as usize;
    let trials: Vec<Vec<f64>> = if cells == 0 {
        Vec::new()
    } else {
        resampled
            .chunks_exact(cells * width)
            .map(|trial| add_cells(wanted, trial, width))
            // a small group may not have been drawn at all
            .filter(|trial| trial[layout.scored] > 0.0)
            .collect()
    };
    let mut metrics = Vec::new();
    for definition in &layout.definitions {
        // micro averages are 0 and not undefined without predictions, but not without questions
        let Some(value) = definition.value(&total).filter(|_| questions > 0) else {
            continue;
        };
        let mut values: Vec<f64> = trials.iter().filter_map(|t| definition.value(t)).collect();
        values.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - LEVEL) / 2.0;
        metrics.push((
            definition.name.clone(),
            Estimate {
                value,
                interval: (!values.is_empty())
                    .then(|| (quantile(&values, tail), quantile(&values, 1.0 - tail))),
                questions: if definition.is_mean() {
                    definition.defined(&total) as usize
                } else {
                    questions
                },
            },
        ));
    }
    Group {
        questions,
        metrics: Estimates(metrics),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answers, question};
    use super::super::{Options, evaluate};
    use super::*;

    #[test]
    fn resamples_without_a_question_of_the_group_do_not_count() {
        // the only 2-hop question is left out of about a third of the resamples
        let questions = [
            question("1", &["a"], 1),
            question("2", &["b"], 2),
            question("3", &["c"], 1),
        ];
        let observations = [answers(&["a"]), answers(&["b"]), None];
        let metrics = evaluate(&questions, &observations, &Options::default()).unwrap();
        for (name, estimate) in &metrics.by_hops["2"].metrics.0 {
            assert_eq!(estimate.interval, Some((1.0, 1.0)), "{name}");
        }
    }

    #[test]
    fn metrics_json_is_read_back_in_order() {
        let questions = [question("1", &["a"], 1), question("2", &["b"], 2)];
        let observations = [answers(&["a"]), answers(&["a"])];
        let metrics = evaluate(
            &questions,
            &observations,
            &Options {
                resamples: 50,
                ..Options::default()
            },
        )
        .unwrap();
        let json = serde_json::to_string_pretty(&metrics).unwrap();
        let back: Metrics = serde_json::from_str(&json).unwrap();
        assert_eq!(back, metrics);
        assert_eq!(back.overall.metrics.0[0].0, "strict.hit");
    }
}
