//! Metrics as a plain-text table.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::summary::{Estimate, Group, Metrics, TopicSource};

/// What stands in the columns of the group tables.
const IN_GROUPS: [(&str, &str); 5] = [
    ("Hit", "lenient.hit"),
    ("Hit@1", "lenient.hit@1"),
    ("EM", "lenient.exact_match"),
    ("F1", "lenient.f1"),
    ("micro F1", "lenient.micro_f1"),
];

impl fmt::Display for Metrics {
    /// A plain-text table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        write!(
            f,
            "{} questions, {} scored",
            counts.questions, counts.scored
        )?;
        for (count, what) in [
            (counts.without_gold, "without gold answers"),
            (counts.unanswered, "unanswered"),
            (counts.missing, "missing from the predictions"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        match self.topics {
            Some(TopicSource::Gold) => writeln!(f, "; gold topics")?,
            Some(TopicSource::Linked) => writeln!(f, "; linked topics")?,
            None => writeln!(f)?,
        }
        if let Some(coverage) = &self.coverage {
            writeln!(
                f,
                "an answer is in the graph for {:.1}% of them",
                100.0 * coverage.answer_share()
            )?;
        }

        writeln!(f, "\n{:<22}{:<24}lenient", "answers", "strict")?;
        for (name, strict) in &self.overall.metrics.0 {
            if let Some(metric) = name.strip_prefix("strict.") {
                let lenient = self.overall.get(&format!("lenient.{metric}"));
                let lenient = lenient.map(cell).unwrap_or_default();
                writeln!(f, "  {metric:<20}{:<24}{lenient}", cell(strict))?;
            }
        }
        let rest: Vec<_> = self
            .overall
            .metrics
            .0
            .iter()
            .filter(|(name, _)| !name.starts_with("strict.") && !name.starts_with("lenient."))
            .collect();
        if !rest.is_empty() {
            writeln!(f)?;
        }
        for (name, estimate) in rest {
            write!(f, "{name:<30}{}", cell(estimate))?;
            if estimate.questions != counts.scored {
                write!(f, "  over {} questions", estimate.questions)?;
            }
            writeln!(f)?;
        }
        groups("hops", &self.by_hops, f)?;
        groups("kind", &self.by_kind, f)?;
        confidence(self, f)?;
        cost(self, f)
    }
}

fn confidence(metrics: &Metrics, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if metrics.confidence.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "\n{:<16}{:>9}{:>9}{:>9}{:>9}{:>20}",
        "confidence", "answered", "ECE", "AUROC", "AURC", "coverage at 95%"
    )?;
    for (right, told) in &metrics.confidence {
        let auroc = told.auroc.map_or("–".to_owned(), |a| format!("{a:.3}"));
        writeln!(
            f,
            "{right:<16}{:>9}{:>9.3}{auroc:>9}{:>9.3}{:>20.3}",
            told.answered, told.ece, told.aurc, told.coverage_at_95
        )?;
    }
    Ok(())
}

fn cell(estimate: &Estimate) -> String {
    let mut text = format!("{:.3}", estimate.value);
    if let Some((low, high)) = estimate.interval {
        write!(text, " [{low:.3}, {high:.3}]").expect("writing to a string does not fail");
    }
    text
}

fn groups(
    title: &str,
    groups: &BTreeMap<String, Group>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    if groups.keys().all(|name| name == "?") {
        return Ok(());
    }
    let width = groups
        .keys()
        .map(|n| n.chars().count())
        .max()
        .unwrap_or(0)
        .max(8)
        + 2;
    write!(f, "\n{title:<width$}{:>9}", "questions")?;
    for (heading, _) in IN_GROUPS {
        write!(f, "{heading:>10}")?;
    }
    writeln!(f, "  (lenient)")?;
    for (name, group) in groups {
        write!(f, "{name:<width$}{:>9}", group.questions)?;
        for (_, metric) in IN_GROUPS {
            match group.value(metric) {
                Some(value) => write!(f, "{value:>10.3}")?,
                None => write!(f, "{:>10}", "–")?,
            }
        }
        writeln!(f)?;
    }
    Ok(())
}

fn cost(metrics: &Metrics, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if !metrics.cost.latency_ms.is_empty() {
        writeln!(f, "\n{:<16}{:>12}{:>12}  (ms)", "stage", "median", "95th")?;
        for (stage, latency) in &metrics.cost.latency_ms {
            writeln!(
                f,
                "{stage:<16}{:>12.3}{:>12.3}",
                latency.median, latency.p95
            )?;
        }
    }
    let llm = &metrics.cost.llm;
    if llm.calls > 0 {
        writeln!(
            f,
            "\n{} LLM calls ({:.2} a question), {} tokens read, {} written",
            llm.calls, llm.calls_per_question, llm.prompt_tokens, llm.completion_tokens
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answers, question};
    use super::super::{Options, evaluate};

    #[test]
    fn the_table_shows_counts_metrics_and_groups() {
        let questions = [
            question("1", &["a"], 1),
            question("2", &["b"], 2),
            question("3", &[], 2),
        ];
        let observations = [answers(&["A"]), None, None];
        let options = Options {
            resamples: 0,
            ..Options::default()
        };
        let metrics = evaluate(&questions, &observations, &options).unwrap();
        let shown = metrics.to_string();
        let expected = "\
3 questions, 2 scored, 1 without gold answers, 1 unanswered, 2 missing from the predictions

answers               strict                  lenient
  hit                 0.000                   0.500
  hit@1               0.000                   0.500
  exact_match         0.000                   0.500
  precision           0.000                   0.500
  recall              0.000                   0.500
  f1                  0.000                   0.500
  micro_precision     0.000                   1.000
  micro_recall        0.000                   0.500
  micro_f1            0.000                   0.667

text.hit                      0.500

hops      questions       Hit     Hit@1        EM        F1  micro F1  (lenient)
1                 1     1.000     1.000     1.000     1.000     1.000
2                 1     0.000     0.000     0.000     0.000     0.000

kind      questions       Hit     Hit@1        EM        F1  micro F1  (lenient)
easy              1     1.000     1.000     1.000     1.000     1.000
hard              1     0.000     0.000     0.000     0.000     0.000
";
        assert_eq!(shown, expected, "{shown}");
    }
}
