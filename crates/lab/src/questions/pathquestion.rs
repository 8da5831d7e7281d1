//! PathQuestion: `question TAB answer(answer1/answer2/) TAB subject#r1#e1#r2#answer[#<end>#answer]`.
//!
//! Zhou et al., "An Interpretable Reasoning Network for Multi-Relation Question Answering",
//! COLING 2018. The answers are those in the parentheses; the subject is the topic; hops are the
//! length of the path.

use super::format::Format;
use super::gold::{GoldQuestion, Name, NamedTriple, Proof};
use super::text::Source;
use crate::error::Result;

pub(super) fn read(source: &Source<'_>) -> Result<Vec<(usize, GoldQuestion)>> {
    source
        .lines()
        .map(|(number, line)| {
            parse(line)
                .map(|question| (number, question))
                .map_err(|reason| source.bad_line(number, Format::PathQuestion, reason))
        })
        .collect()
}

fn parse(line: &str) -> Result<GoldQuestion, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [question, answers, path] = columns.as_slice() else {
        return Err(format!(
            "expected `question TAB answer(a/b/) TAB path`, found {} columns",
            columns.len()
        ));
    };
    let path = parse_path(path)?;
    let (Some(first), Some(last)) = (path.first(), path.last()) else {
        return Err("the path is empty".into());
    };
    // names may hold parentheses themselves, so the answer is taken from the path's end
    let listed = answers
        .strip_prefix(last[2].as_str())
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or_else(|| format!("expected `{}(…/)` in the second column", last[2]))?;
    Ok(GoldQuestion {
        question: question.trim().to_owned(),
        topics: vec![first[0].as_str().into()],
        answers: parse_answers(listed),
        hops: Some(path.len() as u32),
        proof: Proof {
            paths: vec![path],
            ..Proof::default()
        },
        ..GoldQuestion::default()
    })
}

/// `a/b/` as names.
pub(super) fn parse_answers(listed: &str) -> Vec<Name> {
    listed
        .split('/')
        .filter(|name| !name.is_empty())
        .map(Name::from)
        .collect()
}

/// `s#r#e#r#e`, with or without `#<end>#e`, as triples.
pub(super) fn parse_path(path: &str) -> Result<Vec<NamedTriple>, String> {
    let steps: Vec<&str> = path
        .split('#')
        .take_while(|step| *step != "<end>")
        .collect();
    if steps.len() < 3 || steps.len().is_multiple_of(2) {
        return Err(format!(
            "expected a path `entity#relation#entity…`, found `{path}`"
        ));
    }
    Ok(steps
        .windows(3)
        .step_by(2)
        .map(|w| [w[0], w[1], w[2]].map(str::to_owned))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_and_several_answers_are_read() {
        let line = " the versions of S ?\tS_(x)(S_(x)/T/)\tS#v#M#v#S_(x)#<end>#S_(x)";
        let question = parse(line).unwrap();
        assert_eq!(question.question, "the versions of S ?");
        assert_eq!(question.answers, ["S_(x)".into(), "T".into()]);
        assert_eq!(question.topics, ["S".into()]);
        assert_eq!(question.hops, Some(2));
        assert_eq!(question.proof.paths[0][1], ["M", "v", "S_(x)"]);
    }

    #[test]
    fn broken_lines_say_what_was_expected() {
        for (line, expected) in [
            ("q\ta(a/)", "found 2 columns"),
            ("q\ta(a/)\ts#r", "expected a path"),
            ("q\tb(b/)\ts#r#a", "expected `a(…/)`"),
            ("q\ta(a/\ts#r#a", "expected `a(…/)`"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
