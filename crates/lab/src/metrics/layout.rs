//! Which columns a row of per-question values has, and which metrics are read off their sums.
//!
//! Every metric is `scale · Σ numerator / Σ denominator`: a mean has a 0/1 column as its
//! denominator that says for which questions it is defined, a micro average has counts.

use super::answers::{AnswerCounts, Matching, text_hit};
use super::forms::FormMatch;
use super::observation::Observation;
use super::options::Options;
use super::rationale::RationaleCounts;
use crate::questions::GoldQuestion;

/// One metric as a ratio of two column sums.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    pub(super) name: String,
    numerator: usize,
    denominator: usize,
    scale: f64,
    /// The value where the denominator is 0; none where the metric is then undefined.
    empty: Option<f64>,
}

impl Definition {
    /// The metric's value for given column sums.
    pub(super) fn value(&self, sums: &[f64]) -> Option<f64> {
        let denominator = sums[self.denominator];
        if denominator > 0.0 {
            Some(self.scale * sums[self.numerator] / denominator)
        } else {
            self.empty
        }
    }

    /// The columns it is read off.
    pub(super) fn columns(&self) -> [usize; 2] {
        [self.numerator, self.denominator]
    }

    /// Whether it is a mean over questions rather than a ratio of counts.
    pub(super) fn is_mean(&self) -> bool {
        self.empty.is_none()
    }

    /// Number of questions that it is taken over, for a mean.
    pub(super) fn defined(&self, sums: &[f64]) -> f64 {
        sums[self.denominator]
    }
}

/// Which families of metrics a run has values for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Families {
    pub(super) retrieval: bool,
    pub(super) rationale: bool,
    pub(super) forms: bool,
    pub(super) linking: bool,
}

impl Families {
    pub(super) fn of(observations: &[Option<Observation>]) -> Self {
        let any = |has: fn(&Observation) -> bool| observations.iter().flatten().any(has);
        Self {
            retrieval: any(|o| !o.retrieval.is_empty()),
            rationale: any(|o| o.rationale.is_some()),
            forms: any(|o| o.forms.is_some()),
            linking: any(|o| o.linked.is_some()),
        }
    }
}

/// Columns of one row, and the metrics over them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    families: Families,
    ks: Vec<usize>,
    /// Columns of a row.
    pub(super) width: usize,
    /// Metrics, in the order in which they are shown.
    pub(super) definitions: Vec<Definition>,
    /// Column that is 1 for questions with gold answers.
    pub(super) scored: usize,
    /// Column that is 1 for questions with a prediction.
    pub(super) answered: usize,
}

impl Layout {
    pub(super) fn new(families: Families, options: &Options) -> Self {
        let mut plan = Plan::default();
        let scored = plan.column();
        let answered = plan.column();
        for matching in ["strict", "lenient"] {
            for metric in ["hit", "hit@1", "exact_match", "precision", "recall", "f1"] {
                plan.mean(format!("{matching}.{metric}"), scored);
            }
            let [right, predicted, gold, both] = [(); 4].map(|()| plan.column());
            plan.micro(format!("{matching}.micro_precision"), right, predicted, 1.0);
            plan.micro(format!("{matching}.micro_recall"), right, gold, 1.0);
            plan.micro(format!("{matching}.micro_f1"), right, both, 2.0);
        }
        plan.mean("text.hit".into(), scored);
        if families.retrieval {
            let (triples, answers) = (plan.column(), plan.column());
            for k in &options.ks {
                plan.mean(format!("retrieval.triple_recall@{k}"), triples);
                plan.mean(format!("retrieval.triple_cover@{k}"), triples);
                plan.mean(format!("retrieval.answer_recall@{k}"), answers);
                plan.mean(format!("retrieval.answer_hit@{k}"), answers);
            }
        }
        for (present, names) in [
            (
                families.rationale,
                &["rationale.precision", "rationale.recall", "rationale.f1"][..],
            ),
            (families.forms, &["form.exact_match", "form.beam_match"]),
            (
                families.linking,
                &["linking.precision", "linking.recall", "linking.f1"],
            ),
        ] {
            if present {
                let defined = plan.column();
                for name in names {
                    plan.mean((*name).into(), defined);
                }
            }
        }
        Self {
            families,
            ks: options.ks.clone(),
            width: plan.columns,
            definitions: plan.definitions,
            scored,
            answered,
        }
    }

    /// Writes one question's values, in the order in which [`Layout::new`] planned the columns.
    pub(super) fn fill(
        &self,
        question: &GoldQuestion,
        observation: Option<&Observation>,
        options: &Options,
        row: &mut [f32],
    ) {
        let mut row = Row { row, next: 0 };
        let scored = !question.answers.is_empty();
        let none = Observation::default();
        let seen = observation.unwrap_or(&none);
        row.put([
            f64::from(u8::from(scored)),
            f64::from(u8::from(seen.is_answered())),
        ]);
        for matching in [Matching::Strict, Matching::Lenient] {
            let counts = if scored {
                AnswerCounts::of(&question.answers, &seen.answers, matching)
            } else {
                AnswerCounts::default()
            };
            row.put([
                f64::from(u8::from(counts.hit())),
                counts.hit_at_1,
                f64::from(u8::from(scored && counts.exact())),
                counts.precision(),
                counts.recall(),
                counts.f1(),
                counts.right as f64,
                counts.predicted as f64,
                counts.gold as f64,
                (counts.predicted + counts.gold) as f64,
            ]);
        }
        row.put([f64::from(u8::from(match &seen.text {
            Some(text) => text_hit(&question.answers, text),
            None => {
                let names: Vec<&str> = seen.answers.iter().map(|a| a.name.name.as_str()).collect();
                text_hit(&question.answers, &names.join("\n"))
            }
        }))]);
        if self.families.retrieval {
            let first = seen.retrieval.first();
            row.put([
                f64::from(u8::from(first.is_some_and(|r| r.triples.is_some()))),
                f64::from(u8::from(first.is_some_and(|r| r.answers.is_some()))),
            ]);
            for i in 0..self.ks.len() {
                let at = seen.retrieval.get(i).copied().unwrap_or_default();
                let (recall, cover) = at.triples.unwrap_or_default();
                let (found, hit) = at.answers.unwrap_or_default();
                row.put([recall, cover, found, hit]);
            }
        }
        if self.families.rationale {
            let given = seen.rationale.as_deref().unwrap_or_default();
            let counts = RationaleCounts::of(&question.proof, given);
            row.put(counts.map_or([0.0; 4], |c| [1.0, c.precision(), c.recall(), c.f1()]));
        }
        if self.families.forms {
            let beam = seen.forms.as_deref().unwrap_or_default();
            let found = question.proof.logical_form.as_ref().map(|gold| {
                let found = FormMatch::of(gold, beam, options.normal_form);
                [
                    1.0,
                    f64::from(u8::from(found.exact)),
                    f64::from(u8::from(found.in_beam)),
                ]
            });
            row.put(found.unwrap_or_default());
        }
        if self.families.linking {
            let linked = seen.linked.as_deref().unwrap_or_default();
            let counts = AnswerCounts::of(&question.topics, linked, Matching::Lenient);
            row.put(if question.topics.is_empty() {
                [0.0; 4]
            } else {
                [1.0, counts.precision(), counts.recall(), counts.f1()]
            });
        }
        assert_eq!(
            row.next, self.width,
            "a row fills the columns that were planned"
        );
    }
}

#[derive(Default)]
struct Plan {
    columns: usize,
    definitions: Vec<Definition>,
}

impl Plan {
    fn column(&mut self) -> usize {
        self.columns += 1;
        self.columns - 1
    }

    fn mean(&mut self, name: String, defined: usize) {
        let numerator = self.column();
        self.definitions.push(Definition {
            name,
            numerator,
            denominator: defined,
            scale: 1.0,
            empty: None,
        });
    }

    fn micro(&mut self, name: String, numerator: usize, denominator: usize, scale: f64) {
        self.definitions.push(Definition {
            name,
            numerator,
            denominator,
            scale,
            empty: Some(0.0),
        });
    }
}

struct Row<'a> {
    row: &'a mut [f32],
    next: usize,
}

impl Row<'_> {
    fn put<const N: usize>(&mut self, values: [f64; N]) {
        for (into, value) in self.row[self.next..].iter_mut().zip(values) {
            *into = value as f32;
        }
        self.next += N;
    }
}
