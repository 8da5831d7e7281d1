//! WorldCup2014: PathQuestion lines with conjunctions and the answer set in a fourth column.
//!
//! Zhang et al., "Gaussian Attention Model and Its Application to Knowledge Base Embedding and
//! Question Answering", 2016, as released with IRN. Columns: question, one answer, paths joined
//! by `*`, answers as `a/b/`; what follows (a neighbourhood, the topics) repeats what is known.

use super::format::Format;
use super::gold::{GoldQuestion, Name, Proof};
use super::pathquestion::{parse_answers, parse_path};
use super::text::Source;
use crate::error::Result;

pub(super) fn read(source: &Source<'_>) -> Result<Vec<(usize, GoldQuestion)>> {
    source
        .lines()
        .map(|(number, line)| {
            parse(line)
                .map(|question| (number, question))
                .map_err(|reason| source.bad_line(number, Format::Wc2014, reason))
        })
        .collect()
}

fn parse(line: &str) -> Result<GoldQuestion, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [question, _, paths, answers, ..] = columns.as_slice() else {
        return Err(format!(
            "expected `question TAB answer TAB path*path TAB a/b/`, found {} columns",
            columns.len()
        ));
    };
    let paths = paths
        .split('*')
        .map(parse_path)
        .collect::<Result<Vec<_>, _>>()?;
    let mut topics: Vec<Name> = Vec::new();
    for path in &paths {
        let topic = Name::from(path[0][0].as_str());
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    let kind = if paths.len() > 1 {
        "conjunction"
    } else {
        "path"
    };
    Ok(GoldQuestion {
        question: question.trim().to_owned(),
        topics,
        answers: parse_answers(answers),
        hops: paths.iter().map(|p| p.len() as u32).max(),
        kind: Some(kind.into()),
        proof: Proof {
            paths,
            ..Proof::default()
        },
        ..GoldQuestion::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conjunctions_have_two_paths_and_two_topics() {
        let line =
            "name a M at C ?\tF\tM#p_inverse#F#<end>#F*C#c_inverse#F#<end>#F\tA/F/\tx#y#z\tM/C";
        let question = parse(line).unwrap();
        assert_eq!(question.topics, ["M".into(), "C".into()]);
        assert_eq!(question.answers, ["A".into(), "F".into()]);
        assert_eq!(question.proof.paths.len(), 2);
        assert_eq!(question.hops, Some(1));
        assert_eq!(question.kind.as_deref(), Some("conjunction"));
        assert!(parse("q\ta\ts#r#a").is_err());
        assert!(parse("q\ta\t\ta/").is_err());
    }
}
