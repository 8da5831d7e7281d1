//! One self-contained HTML page for one or several runs side by side.

mod answer;
mod layers;
mod network;
mod page;
mod svg;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;

use wherefore::answer::Evidence;
use wherefore::graph::names::normalise;

use crate::error::Result;
use crate::harness::{Run, RunLine};
use crate::metrics::{Comparison, Confidence, Estimate, Group, Metrics, TopicSource, compare};
use crate::outcome::Outcome;
use crate::questions::{GoldQuestion, Name};
use network::Part;
use page::{escape, page};
use svg::{Value, bars, lines, short, stacked};

pub use answer::{answer_html, write_answer};

/// Questions shown with their evidence.
const SHOWN_QUESTIONS: usize = 24;
/// Resamples of intervals and comparisons.
const RESAMPLES: usize = 1000;

/// Metrics in the first chart.
const MAIN: [(&str, &str); 5] = [
    ("lenient.hit@1", "Hit@1"),
    ("lenient.hit", "Hit"),
    ("lenient.f1", "macro F1"),
    ("lenient.micro_f1", "micro F1"),
    ("lenient.exact_match", "exact match"),
];

/// A run with its name and figures.
struct Shown<'a> {
    name: &'a str,
    run: &'a Run,
    metrics: Metrics,
}

/// Writes the page. Runs of the same questions are compared with the first one.
pub fn html(runs: &[(String, Run)]) -> Result<String> {
    let mut shown = Vec::new();
    let mut scores = Vec::new();
    for (name, run) in runs {
        let score = run.scores(RESAMPLES)?;
        let mut metrics = score.metrics();
        metrics.topics = Some(run.description.topics);
        shown.push(Shown { name, run, metrics });
        scores.push(score);
    }
    let mut comparisons = Vec::new();
    for other in scores.iter().skip(1) {
        // runs over other questions stand side by side, uncompared
        comparisons.push(compare(&scores[0], other).ok());
    }
    let names: Vec<&str> = shown.iter().map(|s| s.name).collect();
    let title = names.join(" · ");
    let mut body = head(&shown);
    body += &tiles(&shown);
    body += &charts(&shown);
    body += &figures(&shown, &comparisons);
    body += &outcomes(&shown);
    body += &confidence(&shown);
    body += &cost(&shown);
    body += &questions(&shown);
    body += &settings(&shown);
    Ok(page(&format!("Wherefore: {title}"), &body))
}

fn head(shown: &[Shown<'_>]) -> String {
    let mut out = String::from("<h1>Evaluation</h1>");
    for s in shown {
        let counts = &s.metrics.counts;
        let topics = match s.run.description.topics {
            TopicSource::Gold => "gold topics",
            TopicSource::Linked => "linked topics",
        };
        let unfinished = if s.run.lines.len() < s.run.questions.len() {
            format!(", <b>stopped after {}</b>", s.run.lines.len())
        } else {
            String::new()
        };
        let _ = write!(
            out,
            "<p><b>{}</b> <span class=\"dim\">{} questions, {} scored, {topics}, seed {}, wherefore {}{unfinished}</span></p>",
            escape(s.name),
            counts.questions,
            counts.scored,
            s.run.description.seed,
            escape(&s.run.description.version)
        );
    }
    out
}

fn tiles(shown: &[Shown<'_>]) -> String {
    let [one] = shown else { return String::new() };
    let mut out = String::from("<div class=\"tiles\">");
    for (name, label) in MAIN {
        if let Some(e) = one.metrics.overall.get(name) {
            let _ = write!(
                out,
                "<div class=\"tile\"><b>{:.1}%</b><span>{label}{}</span></div>",
                100.0 * e.value,
                e.interval.map_or(String::new(), |(l, h)| format!(
                    ", {:.1} to {:.1}",
                    100.0 * l,
                    100.0 * h
                ))
            );
        }
    }
    if let Some(total) = one.metrics.cost.latency_ms.get("total") {
        let _ = write!(
            out,
            "<div class=\"tile\"><b>{}</b><span>median time a question</span></div>",
            milliseconds(total.median)
        );
    }
    out + "</div>"
}

fn milliseconds(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.2} ms")
    } else {
        format!("{ms:.0} ms")
    }
}

fn value(group: &Group, name: &str) -> Option<Value> {
    group.get(name).map(|e| (e.value, e.interval))
}

fn charts(shown: &[Shown<'_>]) -> String {
    let mut out = String::from("<h2>Answers</h2>");
    let labels: Vec<String> = MAIN.iter().map(|(_, label)| (*label).to_owned()).collect();
    let series: Vec<_> = shown
        .iter()
        .map(|s| {
            let values = MAIN
                .iter()
                .map(|(name, _)| value(&s.metrics.overall, name))
                .collect();
            (s.name.to_owned(), values)
        })
        .collect();
    out += &bars("answers", &labels, &series);
    out += "<p class=\"dim\">Names compared in normal form; bars are 95% bootstrap intervals.</p>";

    let hops: BTreeSet<&String> = shown
        .iter()
        .flat_map(|s| s.metrics.by_hops.keys())
        .filter(|h| *h != "?")
        .collect();
    if hops.len() > 1 {
        out += "<h2>By hops</h2><p class=\"dim\">Hit@1</p>";
        let labels: Vec<String> = hops.iter().map(|h| format!("{h} hops")).collect();
        let series: Vec<_> = shown
            .iter()
            .map(|s| {
                let group = |h: &&String| s.metrics.by_hops.get(*h);
                let values = hops
                    .iter()
                    .map(|h| group(h).and_then(|g| value(g, "lenient.hit@1")))
                    .collect();
                (s.name.to_owned(), values)
            })
            .collect();
        out += &bars("by hops", &labels, &series);
    }

    for (prefix, title) in [
        ("retrieval.triple_recall@", "Triple recall"),
        ("retrieval.answer_recall@", "Answer recall"),
    ] {
        let mut ks: Vec<usize> = shown
            .iter()
            .flat_map(|s| &s.metrics.overall.metrics.0)
            .filter_map(|(name, _)| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        ks.sort_unstable();
        ks.dedup();
        if ks.is_empty() {
            continue;
        }
        let _ = write!(out, "<h2>{title} at k</h2>");
        let labels: Vec<String> = ks.iter().map(usize::to_string).collect();
        let series: Vec<_> = shown
            .iter()
            .map(|s| {
                let values = ks
                    .iter()
                    .map(|k| value(&s.metrics.overall, &format!("{prefix}{k}")))
                    .collect();
                (s.name.to_owned(), values)
            })
            .collect();
        out += &lines(title, &labels, &series);
    }
    out
}

/// Every metric of every run; differences to the first run where they can be paired.
fn figures(shown: &[Shown<'_>], comparisons: &[Option<Comparison>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for s in shown {
        for (name, _) in &s.metrics.overall.metrics.0 {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let mut out = String::from("<h2>All figures</h2><div class=\"scroll\"><table><tr><th></th>");
    for (i, s) in shown.iter().enumerate() {
        let _ = write!(out, "<th class=\"n\">{}</th>", escape(s.name));
        if i > 0 {
            out += "<th class=\"n\">difference</th><th class=\"n\">p</th>";
        }
    }
    out += "</tr>";
    let mut family = "";
    for name in names {
        let (this, metric) = name.split_once('.').unwrap_or(("", name));
        if this != family {
            family = this;
            let _ = write!(out, "<tr class=\"family\"><td>{}</td></tr>", escape(this));
        }
        let _ = write!(out, "<tr><td>{}</td>", escape(metric));
        for (i, s) in shown.iter().enumerate() {
            out += &cell(s.metrics.overall.get(name));
            if i > 0 {
                out += &difference(comparisons[i - 1].as_ref(), name);
            }
        }
        out += "</tr>";
    }
    out += "</table></div>";
    if comparisons.iter().any(Option::is_some) {
        out += "<p class=\"dim\">Differences to the first run, by question; p by approximate randomisation. Coloured where p &lt; 0.05.</p>";
    }
    if comparisons.iter().any(Option::is_none) {
        out += "<p class=\"dim\">Runs over other questions than the first one's are not compared with it.</p>";
    }
    out
}

fn cell(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "<td class=\"n\">–</td>".into(),
        Some(e) => {
            let interval = e.interval.map_or(String::new(), |(l, h)| {
                format!(" <small>[{l:.3}, {h:.3}]</small>")
            });
            format!("<td class=\"n\">{:.3}{interval}</td>", e.value)
        }
    }
}

fn difference(comparison: Option<&Comparison>, name: &str) -> String {
    let found = comparison.and_then(|c| c.differences.iter().find(|d| d.metric == name));
    match found {
        None => "<td class=\"n\">–</td><td class=\"n\">–</td>".into(),
        Some(d) => {
            let delta = d.second - d.first;
            let class = match (d.p_value < 0.05, delta > 0.0) {
                (true, true) => "n better",
                (true, false) => "n worse",
                _ => "n",
            };
            format!(
                "<td class=\"{class}\">{delta:+.3}</td><td class=\"n\">{:.3}</td>",
                d.p_value
            )
        }
    }
}

fn outcomes(shown: &[Shown<'_>]) -> String {
    let rows: Vec<(String, Vec<usize>)> = shown
        .iter()
        .map(|s| {
            let counts = Outcome::ALL
                .iter()
                .map(|o| s.run.lines.iter().filter(|l| l.outcome == *o).count())
                .collect();
            (s.name.to_owned(), counts)
        })
        .collect();
    format!(
        "<h2>Where questions are lost</h2>{}",
        stacked("outcomes", &Outcome::ALL.map(Outcome::text), &rows)
    )
}

/// Reliability and risk over coverage, where confidences are known.
fn confidence(shown: &[Shown<'_>]) -> String {
    let told: Vec<(&str, &Confidence)> = shown
        .iter()
        .filter_map(|s| Some((s.name, s.metrics.confidence.get("exact_match")?)))
        .collect();
    if told.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>Confidence</h2><p class=\"dim\">Right: the set of answers is exactly the gold one. \
         The first chart is even where a confidence means what it says.</p>\
         <div class=\"scroll\"><table><tr><th></th><th class=\"n\">answered</th>\
         <th class=\"n\">calibration error</th><th class=\"n\">AUROC</th>\
         <th class=\"n\">risk over coverage, area</th>\
         <th class=\"n\">coverage at 95% precision</th></tr>",
    );
    for (name, c) in &told {
        let _ = write!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.3}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{:.3}</td><td class=\"n\">{:.3}</td></tr>",
            escape(name),
            c.answered,
            c.ece,
            c.auroc.map_or("–".to_owned(), |a| format!("{a:.3}")),
            c.aurc,
            c.coverage_at_95
        );
    }
    out += "</table></div>";
    let tenths: Vec<f64> = (0..10).map(|i| f64::from(i) / 10.0).collect();
    let labels: Vec<String> = tenths.iter().map(|t| format!("{:.2}", t + 0.05)).collect();
    let promised = tenths.iter().map(|t| Some((t + 0.05, None))).collect();
    let mut reliable = vec![("as promised".to_owned(), promised)];
    let steps: Vec<f64> = (1..=10).map(|i| f64::from(i) / 10.0).collect();
    let mut risks = Vec::new();
    for (name, c) in &told {
        let right = tenths.iter().map(|t| {
            let bin = c.bins.iter().find(|bin| (bin.from - t).abs() < 1e-9)?;
            Some((bin.right, None))
        });
        reliable.push(((*name).to_owned(), right.collect()));
        let risk = steps.iter().map(|step| {
            let reached = c
                .curve
                .iter()
                .find(|(coverage, _)| *coverage >= step - 1e-9)?;
            Some((reached.1, None))
        });
        risks.push(((*name).to_owned(), risk.collect()));
    }
    out += "<h3>Share that is right, by confidence</h3>";
    out += &lines("share that is right, by confidence", &labels, &reliable);
    out += "<h3>Share that is wrong, by how many of all questions are answered</h3>";
    let labels: Vec<String> = steps.iter().map(|s| format!("{s:.1}")).collect();
    out + &lines("risk by coverage", &labels, &risks)
}

fn cost(shown: &[Shown<'_>]) -> String {
    let stages: BTreeSet<&String> = shown
        .iter()
        .flat_map(|s| s.metrics.cost.latency_ms.keys())
        .collect();
    let mut out = String::from(
        "<h2>Cost</h2><div class=\"scroll\"><table><tr><th>milliseconds a question</th>",
    );
    for s in shown {
        let _ = write!(
            out,
            "<th class=\"n\">{0}, median</th><th class=\"n\">95th percentile</th>",
            escape(s.name)
        );
    }
    out += "</tr>";
    for stage in stages {
        let _ = write!(out, "<tr><td>{}</td>", escape(stage));
        for s in shown {
            match s.metrics.cost.latency_ms.get(stage) {
                Some(l) => {
                    let _ = write!(
                        out,
                        "<td class=\"n\">{:.3}</td><td class=\"n\">{:.3}</td>",
                        l.median, l.p95
                    );
                }
                None => out += "<td class=\"n\">–</td><td class=\"n\">–</td>",
            }
        }
        out += "</tr>";
    }
    out += "</table></div>";
    for s in shown.iter().filter(|s| s.metrics.cost.llm.calls > 0) {
        let llm = &s.metrics.cost.llm;
        let _ = write!(
            out,
            "<p>{}: {:.2} language-model calls and {:.0} tokens a question</p>",
            escape(s.name),
            llm.calls_per_question,
            llm.tokens_per_question
        );
    }
    out
}

/// Questions of the last run that went wrong, some of every bucket, with their evidence.
fn questions(shown: &[Shown<'_>]) -> String {
    let Some(last) = shown.last() else {
        return String::new();
    };
    let mut buckets: BTreeMap<Outcome, Vec<(&GoldQuestion, &RunLine)>> = BTreeMap::new();
    for pair in last.run.questions.iter().zip(&last.run.lines) {
        buckets.entry(pair.1.outcome).or_default().push(pair);
    }
    buckets.remove(&Outcome::Right);
    buckets.remove(&Outcome::NoGold);
    let mut chosen = Vec::new();
    let mut round = 0;
    while chosen.len() < SHOWN_QUESTIONS && buckets.values().any(|b| b.len() > round) {
        chosen.extend(buckets.values().filter_map(|b| b.get(round)));
        round += 1;
    }
    chosen.truncate(SHOWN_QUESTIONS);
    chosen.sort_by_key(|(_, line)| line.outcome);
    if chosen.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<h2>Questions that went wrong</h2><p class=\"dim\">{}; topics purple, right answers green, wrong ones orange</p>",
        escape(last.name)
    );
    for (question, line) in chosen {
        out += &one_question(question, line);
    }
    out
}

fn one_question(question: &GoldQuestion, line: &RunLine) -> String {
    let list = |names: &mut dyn Iterator<Item = &str>| {
        let all: Vec<String> = names.take(12).map(|n| escape(&short(n, 60))).collect();
        if all.is_empty() {
            "–".to_owned()
        } else {
            all.join(", ")
        }
    };
    let gold: HashSet<String> = question
        .answers
        .iter()
        .flat_map(|a: &Name| a.all().map(normalise))
        .collect();
    let answers: HashSet<&str> = line.answer.answers.iter().map(|a| a.id.as_str()).collect();
    let topics: HashSet<&str> = line.answer.links.iter().map(|l| l.id.as_str()).collect();
    let part = |id: &str, label: &str| {
        if topics.contains(id) {
            Part::Topic
        } else if gold.contains(&normalise(label)) || gold.contains(&normalise(id)) {
            Part::Right
        } else if answers.contains(id) {
            Part::Wrong
        } else {
            Part::Other
        }
    };
    // the triples behind the answers first, then those that touch a right one, then by score
    let rationale: HashSet<usize> = line
        .answer
        .answers
        .iter()
        .flat_map(|a| a.rationale.iter().copied())
        .collect();
    let mut evidence: Vec<(usize, &Evidence)> = line.answer.evidence.iter().enumerate().collect();
    evidence.sort_by_key(|(i, e)| {
        let [head, _, tail] = &e.ids;
        let right = part(head, &e.head) == Part::Right || part(tail, &e.tail) == Part::Right;
        (!right, !rationale.contains(i), *i)
    });
    let evidence: Vec<&Evidence> = evidence.into_iter().map(|(_, e)| e).collect();
    let mut out = format!(
        "<details><summary>{}<span class=\"bucket\">{}</span></summary><dl>",
        escape(&question.question),
        line.outcome.text()
    );
    let mut row = |name: &str, value: String| {
        let _ = write!(out, "<dt>{name}</dt><dd>{value}</dd>");
    };
    row(
        "expected",
        list(&mut question.answers.iter().map(|a| a.name.as_str())),
    );
    row(
        "given",
        list(&mut line.answer.answers.iter().map(|a| a.name.as_str())),
    );
    if let Some(reason) = &line.answer.reason {
        row("because", escape(reason));
    }
    row(
        "topics",
        list(&mut question.topics.iter().map(|a| a.name.as_str())),
    );
    row(
        "linked",
        list(&mut line.answer.links.iter().map(|l| l.name.as_str())),
    );
    row(
        "subgraph",
        format!("{} entities, {} triples", line.subgraph.0, line.subgraph.1),
    );
    out + "</dl>" + &network::draw(&evidence, network::MOST, part) + "</details>"
}

fn settings(shown: &[Shown<'_>]) -> String {
    let mut out = String::from("<h2>Settings</h2>");
    for s in shown {
        let text = serde_json::to_string_pretty(&s.run.description.config)
            .expect("a configuration is plain JSON");
        let _ = write!(
            out,
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escape(s.name),
            text.lines().map(escape).collect::<Vec<_>>().join("\n")
        );
    }
    out
}
