//! One page for one answer: its names, its rationales, and the evidence as a picture.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use wherefore::Answer;
use wherefore::answer::{Evidence, Trace};
use wherefore::retrieve::gnn2r::Explanation;

use super::layers;
use super::network::{self, Part};
use super::page::{escape, page};
use crate::atomic_write;
use crate::error::Result;

/// Triples in the picture beside those of the rationales.
const DRAWN: usize = 24;
/// Triples in the table.
const LISTED: usize = 200;

/// Writes the page of an answer, aside and then renamed; with what a network did, if that is known.
pub fn write_answer(path: &Path, answer: &Answer, explanation: Option<&Explanation>) -> Result<()> {
    atomic_write::write(path, answer_html(answer, explanation))
}

/// The page of an answer.
pub fn answer_html(answer: &Answer, explanation: Option<&Explanation>) -> String {
    let mut body = format!("<h1>{}</h1>", escape(&answer.question));
    match &answer.reason {
        Some(reason) if answer.answers.is_empty() => {
            let _ = write!(body, "<p><b>No answer:</b> {}</p>", escape(reason));
        }
        _ => {
            body += "<table><tr><th>answer</th><th>confidence</th><th>because</th></tr>";
            for found in &answer.answers {
                let because: Vec<String> = (found.rationale.iter())
                    .filter_map(|i| answer.evidence.get(*i))
                    .map(|t| {
                        let mark = if t.verified { "✓" } else { "✗" };
                        escape(&format!("{mark} {} → {} → {}", t.head, t.relation, t.tail))
                    })
                    .collect();
                let _ = write!(
                    body,
                    "<tr><td><b>{}</b></td><td class=\"num\">{:.0}%</td><td>{}</td></tr>",
                    escape(&found.name),
                    100.0 * found.confidence,
                    because.join("<br>")
                );
            }
            body += "</table>";
        }
    }
    if let Some(text) = &answer.text {
        let _ = write!(body, "<p>{}</p>", escape(text));
    }
    if let Some(trace) = &answer.trace {
        body += &steps(trace, &answer.evidence);
    }
    body += "<h2>Evidence</h2>";
    body += &picture(answer);
    body += "<p class=\"dim\">Topics are purple, answers green; each edge has its confidence.</p>";
    body += &table(&answer.evidence);
    if let Some(explanation) = explanation {
        body += &layers::draw(explanation);
    }
    page(&format!("Wherefore: {}", answer.question), &body)
}

/// How the question was taken apart: each smaller question, what it was answered, and from what.
fn steps(trace: &Trace, evidence: &[Evidence]) -> String {
    let mut out = String::from("<h2>Step by step</h2>");
    if let Some(thought) = &trace.thought {
        let _ = write!(out, "<p class=\"dim\">{}</p>", escape(thought));
    }
    out += "<ol>";
    for step in &trace.steps {
        let said = match step.answers.is_empty() {
            true => step.text.trim().to_owned(),
            false => step.answers.join(", "),
        };
        let facts: Vec<String> = (step.evidence.iter())
            .filter_map(|i| evidence.get(*i))
            .map(|t| escape(&format!("{} → {} → {}", t.head, t.relation, t.tail)))
            .collect();
        let _ = write!(
            out,
            "<li>{}<br><b>{}</b><details><summary>{} facts</summary>{}</details></li>",
            escape(&step.asked),
            escape(&said),
            facts.len(),
            facts.join("<br>")
        );
    }
    out + "</ol>"
}

/// Rationales first, then the best of the rest.
fn picture(answer: &Answer) -> String {
    let mut places: Vec<usize> = (answer.answers.iter())
        .flat_map(|a| a.rationale.iter().copied())
        .chain(0..answer.evidence.len())
        .collect();
    let mut seen = HashSet::new();
    places.retain(|i| *i < answer.evidence.len() && seen.insert(*i));
    places.truncate(DRAWN);
    let drawn: Vec<&Evidence> = places.iter().map(|i| &answer.evidence[*i]).collect();
    let topics: HashSet<&str> = answer.links.iter().map(|l| l.id.as_str()).collect();
    let answers: HashSet<&str> = answer.answers.iter().map(|a| a.id.as_str()).collect();
    network::draw(&drawn, DRAWN, |id, _| {
        match (topics.contains(id), answers.contains(id)) {
            (true, _) => Part::Topic,
            (_, true) => Part::Right,
            _ => Part::Other,
        }
    })
}

fn table(evidence: &[Evidence]) -> String {
    let mut out = String::from(
        "<table><tr><th></th><th>head</th><th>relation</th><th>tail</th><th>confidence</th></tr>",
    );
    for t in evidence.iter().take(LISTED) {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"num\">{:.3}</td></tr>",
            if t.verified { "✓" } else { "✗" },
            escape(&t.head),
            escape(&t.relation),
            escape(&t.tail),
            t.score
        );
    }
    out += "</table>";
    if evidence.len() > LISTED {
        let _ = write!(
            out,
            "<p class=\"dim\">and {} more</p>",
            evidence.len() - LISTED
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use wherefore::answer::SubQuestion;
    use wherefore::graph::toy;
    use wherefore::{PipelineConfig, Question};

    use super::*;

    #[test]
    fn the_page_shows_topic_answer_and_confidence() {
        let pipeline = PipelineConfig::default().build().unwrap();
        let question = Question::new("Which stadium do the San Francisco Giants play in?");
        let answer = pipeline.answer(&question, &toy::graph(), &mut ()).unwrap();
        let html = answer_html(&answer, None);
        assert!(html.contains("class=\"topic\"") && html.contains("class=\"right\""));
        assert!(html.contains("Oracle Park"));
        let score = format!(
            "{:.2}",
            answer.evidence[answer.answers[0].rationale[0]].score
        );
        assert!(html.contains(&format!(" {score}<title>")), "{html}");
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("answer.html");
        write_answer(&file, &answer, None).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), html);
    }

    #[test]
    fn steps_are_told_with_their_facts() {
        let answer = Answer {
            question: "When?".into(),
            evidence: vec![Evidence {
                head: "Dawn".into(),
                relation: "year".into(),
                tail: "1999".into(),
                ..Evidence::default()
            }],
            trace: Some(Trace {
                thought: Some("first <this>".into()),
                steps: vec![SubQuestion {
                    asked: "When was Dawn released?".into(),
                    evidence: vec![0, 7],
                    answers: vec!["1999".into()],
                    ..SubQuestion::default()
                }],
            }),
            ..Answer::default()
        };
        let html = answer_html(&answer, None);
        assert!(html.contains("first &lt;this&gt;"));
        assert!(html.contains("<li>When was Dawn released?<br><b>1999</b>"));
        assert!(
            html.contains("1 facts</summary>Dawn → year → 1999"),
            "{html}"
        );
    }

    #[test]
    fn names_are_data_and_no_answer_is_said() {
        let answer = Answer {
            question: "<script>alert(1)</script>?".into(),
            reason: Some("nothing & nobody".into()),
            ..Answer::default()
        };
        let html = answer_html(&answer, None);
        assert!(!html.contains("<script>alert"));
        assert!(html.contains("nothing &amp; nobody"));
    }
}
