//! What answers cost: time per stage, language-model calls and tokens.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wherefore::answer::LlmUse;

/// Time of one stage over all questions that went through it, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Questions that went through the stage.
    pub questions: usize,
    /// Half took no longer.
    pub median: f64,
    /// 95 of 100 took no longer.
    pub p95: f64,
    /// All together.
    pub total: f64,
}

/// What language models cost over all questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LlmCost {
    /// Calls.
    pub calls: u64,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// Calls for one question, on average.
    pub calls_per_question: f64,
    /// Tokens read and written for one question, on average.
    pub tokens_per_question: f64,
}

/// What a run cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Time by stage.
    pub latency_ms: BTreeMap<String, Latency>,
    /// Language models.
    pub llm: LlmCost,
}

impl Cost {
    /// Sums up times by stage and language-model use of each question.
    pub fn of<'a>(
        questions: impl Iterator<Item = (&'a BTreeMap<String, f64>, &'a LlmUse)>,
    ) -> Self {
        let mut stages: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut llm = LlmCost::default();
        let mut count = 0usize;
        for (timings, used) in questions {
            count += 1;
            for (stage, &ms) in timings {
                stages.entry(stage).or_default().push(ms);
            }
            llm.calls += u64::from(used.calls);
            llm.prompt_tokens += used.prompt_tokens;
            llm.completion_tokens += used.completion_tokens;
        }
        if count > 0 {
            llm.calls_per_question = llm.calls as f64 / count as f64;
            llm.tokens_per_question =
                (llm.prompt_tokens + llm.completion_tokens) as f64 / count as f64;
        }
        let latency_ms = stages
            .into_iter()
            .map(|(stage, mut times)| {
                times.sort_unstable_by(f64::total_cmp);
                let latency = Latency {
                    questions: times.len(),
                    median: quantile(&times, 0.5),
                    p95: quantile(&times, 0.95),
                    total: times.iter().sum(),
                };
                (stage.to_owned(), latency)
            })
            .collect();
        Self { latency_ms, llm }
    }
}

/// The value below which a share of sorted values lies, between two of them by proportion.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(last);
    sorted[low] + part * (sorted[high] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        let values = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(quantile(&values, 0.5), 25.0);
        // place 2.85 of 0..3: 30 + 0.85·10
        assert!((quantile(&values, 0.95) - 38.5).abs() < 1e-9);
        assert_eq!(quantile(&[7.0], 0.95), 7.0);
    }

    #[test]
    fn stages_and_tokens_are_summed() {
        let use_of = |calls, prompt_tokens| LlmUse {
            calls,
            prompt_tokens,
            completion_tokens: 10,
            ..LlmUse::default()
        };
        let first = (
            BTreeMap::from([("link".to_owned(), 1.0), ("reason".to_owned(), 5.0)]),
            use_of(2, 90),
        );
        let second = (BTreeMap::from([("link".to_owned(), 3.0)]), use_of(0, 0));
        let cost = Cost::of([&first, &second].into_iter().map(|(t, l)| (t, l)));
        assert_eq!(cost.latency_ms["link"].median, 2.0);
        assert_eq!(cost.latency_ms["reason"].questions, 1);
        assert_eq!(cost.llm.calls_per_question, 1.0);
        assert_eq!(cost.llm.tokens_per_question, 55.0);
    }
}
