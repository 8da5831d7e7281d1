//! MetaQA: `what movies did [Temuera Morrison] act in TAB Tracker|River Queen`.
//!
//! Zhang et al., "Variational Reasoning for Question Answering with Knowledge Graph", AAAI 2018.
//! The kind of line n is line n of the file beside it: `qa_dev_qtype.txt` for `qa_dev.txt` and
//! for its paraphrase `qa_dev_ntm.txt`. Hops are the steps of the kind (`actor_to_movie_to_year`
//! has 2), or those of the folder (`2-hop`) where there is no such file.

use std::path::{Path, PathBuf};

use super::format::Format;
use super::gold::{GoldQuestion, Name};
use super::text::Source;
use crate::error::{Error, Result};

pub(super) fn read(source: &Source<'_>) -> Result<Vec<(usize, GoldQuestion)>> {
    let kinds = read_kinds(source.path)?;
    let folder_hops = source.path.parent().and_then(folder_hops);
    let mut questions = Vec::new();
    for (number, line) in source.lines() {
        let bad = |reason: &str| source.bad_line(number, Format::MetaQa, reason);
        let (text, answers) = line
            .split_once('\t')
            .ok_or_else(|| bad("expected `question TAB answer|answer`, found no tab"))?;
        let topic = topic_of(text).ok_or_else(|| bad("expected the topic in `[brackets]`"))?;
        let kind = match &kinds {
            Some((path, kinds)) => {
                Some(kinds.get(number - 1).ok_or_else(|| Error::BadCompanion {
                    path: path.clone(),
                    beside: source.path.into(),
                    reason: format!("it has {} lines, and line {number} is wanted", kinds.len()),
                })?)
            }
            None => None,
        };
        questions.push((
            number,
            GoldQuestion {
                question: text.replacen(['[', ']'], "", 2),
                topics: vec![topic.into()],
                answers: answers.split('|').map(Name::from).collect(),
                hops: kind.map(|k| hops_of(k)).or(folder_hops),
                kind: kind.cloned(),
                ..GoldQuestion::default()
            },
        ));
    }
    if let Some((path, kinds)) = kinds
        && let Some((last, _)) = questions.last()
        && kinds.len() > *last
    {
        return Err(Error::BadCompanion {
            path,
            beside: source.path.into(),
            reason: format!("it has {} lines for {last} questions", kinds.len()),
        });
    }
    Ok(questions)
}

/// What stands in the first `[brackets]`.
pub(super) fn topic_of(question: &str) -> Option<&str> {
    let (_, rest) = question.split_once('[')?;
    let (topic, _) = rest.split_once(']')?;
    (!topic.is_empty()).then_some(topic)
}

fn hops_of(kind: &str) -> u32 {
    kind.matches("_to_").count() as u32
}

fn folder_hops(folder: &Path) -> Option<u32> {
    folder
        .file_name()?
        .to_str()?
        .strip_suffix("-hop")?
        .parse()
        .ok()
}

/// The kinds beside the file, if there are any.
fn read_kinds(path: &Path) -> Result<Option<(PathBuf, Vec<String>)>> {
    let Some(stem) = path.file_stem().and_then(|s| s.to_str()) else {
        return Ok(None);
    };
    let stem = stem.strip_suffix("_ntm").unwrap_or(stem);
    let beside = path.with_file_name(format!("{stem}_qtype.txt"));
    if !beside.is_file() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&beside).map_err(Error::io("read", &beside))?;
    let kinds = text.lines().map(|l| l.trim().to_owned()).collect();
    Ok(Some((beside, kinds)))
}

#[cfg(test)]
mod tests {
    use crate::questions;

    #[test]
    fn kinds_beside_the_file_give_hops() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("qa_dev.txt");
        std::fs::write(
            &path,
            "when did [Tom] act\t1967|1968\n[Ann] wrote what\tA (B)\n",
        )
        .unwrap();
        let read = questions::read(&path, None).unwrap();
        assert_eq!(read[0].hops, None);

        let kinds = folder.path().join("qa_dev_qtype.txt");
        std::fs::write(&kinds, "actor_to_movie_to_year\nwriter_to_movie\n").unwrap();
        let read = questions::read(&path, None).unwrap();
        assert_eq!(read[0].question, "when did Tom act");
        assert_eq!(read[0].topics, ["Tom".into()]);
        assert_eq!(read[0].answers, ["1967".into(), "1968".into()]);
        assert_eq!(read[0].hops, Some(2));
        assert_eq!(read[1].kind.as_deref(), Some("writer_to_movie"));
        assert_eq!(read[1].hops, Some(1));

        std::fs::write(&kinds, "actor_to_movie\n").unwrap();
        let error = questions::read(&path, None).unwrap_err();
        assert!(error.to_string().contains("line 2 is wanted"), "{error}");
        std::fs::write(&kinds, "a\nb\nc\n").unwrap();
        let error = questions::read(&path, None).unwrap_err();
        assert!(
            error.to_string().contains("3 lines for 2 questions"),
            "{error}"
        );
    }
}
