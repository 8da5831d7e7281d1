//! Two methods asked the same question: what they agree on is surer, and where they contradict each
//! other both are shown.
//!
//! ```text
//! J = |A ∩ B| / |A ∪ B|                      answers of the reader, and of the other method
//! ```
//!
//! The reader's are given unless the other is surer by far ([`LEAD`]). The confidence is computed anew ([`Calibration`]) from what it was, how
//! many answers there are, and
//!
//! | signal | what it is |
//! |---|---|
//! | `agreement` | J, where both answered |
//! | `reader` | 1 where only the reader did |
//! | `other` | 1 where only the other did |
//!
//! Counts, extremes, comparisons and the like are answered by the reader alone, which executes them:
//! a method that follows paths can only list what would have to be counted.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::answer::{Answer, Status};
use crate::confidence::{Calibration, best, odds, signals};
use crate::logic::Form;

/// How far, in log-odds, another method has to be ahead of the reader. On validation questions of
/// eleven sets 1 was better than 0 (0.940 against 0.937 in the mean) and as good as 2.
const LEAD: f32 = 1.0;

static JOINT: LazyLock<Calibration> = LazyLock::new(|| {
    let read = toml::from_str(include_str!("auto.toml"));
    read.expect("a test reads the file")
});

/// That of two methods together.
pub(crate) fn joint() -> &'static Calibration {
    &JOINT
}

/// Whether an answer was computed by more than following relations.
pub(crate) fn is_executed(answer: &Answer) -> bool {
    let form = answer.logical_form.as_ref();
    let form = form.and_then(|form| form.parse::<Form>().ok());
    answer.answers.iter().any(|a| a.computed) || form.is_some_and(|form| !is_followed(&form))
}

fn is_followed(form: &Form) -> bool {
    match form {
        Form::Name(_) | Form::Constant(_) => true,
        Form::Join(_, of) => is_followed(of),
        Form::And(all) | Form::Or(all) => all.iter().all(is_followed),
        _ => false,
    }
}

/// What two methods say together; the reader's comes first.
pub(crate) fn together(read: Answer, other: Answer) -> Answer {
    let answered = |a: &Answer| a.status == Status::Answered;
    let (mut given, own) = match (answered(&read), answered(&other)) {
        (false, false) => return read,
        (true, false) => return alone(read),
        (false, true) => {
            let mut given = other;
            if let Some(why) = &read.reason {
                given
                    .notes
                    .push(format!("the reader does not answer: {why}"));
            }
            given.unused_words = read.unused_words;
            given.alternatives = read.alternatives;
            (given, ("other", 1.0))
        }
        (true, true) => {
            let share = overlap(&read, &other);
            let ahead = |answer: &Answer| odds(best(answer).unwrap_or(0.0));
            let (mut given, mut left) = match ahead(&other) > ahead(&read) + LEAD {
                true => (other, read),
                false => (read, other),
            };
            if share < 1.0 {
                left.timings_ms.clear();
                // others are told side by side, not one inside the other
                let before = std::mem::take(&mut left.others);
                given.others.push(left);
                given.others.extend(before);
            }
            (given, ("agreement", share))
        }
    };
    given.signals = signals(&given, &[own]);
    joint().apply(&mut given);
    given
}

/// What the reader says alone.
pub(crate) fn alone(mut read: Answer) -> Answer {
    if read.status == Status::Abstained {
        return read;
    }
    read.signals = signals(&read, &[("reader", 1.0)]);
    joint().apply(&mut read);
    read
}

/// J.
fn overlap(a: &Answer, b: &Answer) -> f32 {
    let ids = |answer: &Answer| -> HashSet<String> {
        answer.answers.iter().map(|a| a.id.clone()).collect()
    };
    let (a, b) = (ids(a), ids(b));
    let common = a.intersection(&b).count();
    common as f32 / (a.len() + b.len() - common).max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{AnswerEntity, Refusal};

    fn answer(ids: &[&str], confidence: f32) -> Answer {
        let one = |id: &&str| AnswerEntity {
            id: (*id).to_owned(),
            name: (*id).to_owned(),
            confidence,
            ..AnswerEntity::default()
        };
        Answer {
            status: Status::Answered,
            answers: ids.iter().map(one).collect(),
            ..Answer::default()
        }
    }

    fn refused(refusal: Refusal) -> Answer {
        Answer {
            refusal: Some(refusal),
            reason: Some("`knit` was not understood".into()),
            ..Answer::default()
        }
    }

    #[test]
    fn agreement_is_surer_than_contradiction_and_both_are_shown() {
        let same = together(answer(&["a", "b"], 0.7), answer(&["b", "a"], 0.6));
        assert_eq!(same.signals["agreement"], 1.0);
        assert!(same.others.is_empty());
        let near = together(answer(&["a"], 0.7), answer(&["b"], 0.8));
        assert_eq!(near.answers[0].id, "a");
        // ln(0.9 / 0.1) − ln(0.7 / 0.3) = 1.35
        let apart = together(answer(&["a"], 0.7), answer(&["b"], 0.9));
        assert_eq!(apart.answers[0].id, "b");
        assert_eq!(apart.others[0].answers[0].id, "a");
        assert_eq!(apart.signals["agreement"], 0.0);
        assert!(best(&same) > best(&apart));
        // one of three is common
        let part = together(answer(&["a", "b"], 0.7), answer(&["b", "c"], 0.6));
        assert!((part.signals["agreement"] - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(part.answers[0].id, "a");
        let third = together(apart, answer(&["c"], 0.9));
        assert_eq!(third.others.len(), 2);
        assert!(third.others.iter().all(|other| other.others.is_empty()));
    }

    #[test]
    fn one_that_answers_alone_says_so() {
        let told = together(refused(Refusal::WordsNotUsed), answer(&["b"], 0.8));
        assert_eq!(told.answers[0].id, "b");
        assert!(told.notes[0].contains("knit"));
        assert_eq!(told.signals["other"], 1.0);
        let told = together(answer(&["a"], 0.8), refused(Refusal::EvidenceTooWeak));
        assert_eq!(told.answers[0].id, "a");
        assert_eq!(told.signals["reader"], 1.0);
        let told = together(
            refused(Refusal::NotLinked),
            refused(Refusal::EvidenceTooWeak),
        );
        assert_eq!(told.refusal, Some(Refusal::NotLinked));
    }

    #[test]
    fn what_is_computed_is_executed() {
        let formed = |form: &str| Answer {
            logical_form: Some(form.to_owned()),
            ..Answer::default()
        };
        assert!(!is_executed(&formed("(JOIN (R year) [A Day])")));
        assert!(is_executed(&formed("(COUNT (JOIN (R year) [A Day]))")));
        assert!(is_executed(&formed("(ARGMAX (JOIN director Ann) year)")));
    }
}
