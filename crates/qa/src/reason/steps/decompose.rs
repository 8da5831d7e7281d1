//! Reads how a language model takes a question apart.
//!
//! What is asked for is a thought, a numbered list and `<END>`; numbers, bullets, headings and
//! emphasis in any of their forms are forgiven.

use wherefore_model::language::{Message, Role};

use crate::organize::one_line;

/// Where the model is told to end.
pub(super) const END: &str = "<END>";

/// A question taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// What the model thought before.
    pub(super) thought: Option<String>,
    /// The smaller questions, in order.
    pub(super) questions: Vec<String>,
}

/// The prompt: the task, worked examples of one, two and three questions, the question.
pub(super) fn messages(question: &str) -> Vec<Message> {
    let system = include_str!("../prompts/steps-system.txt").trim();
    let mut messages = vec![Message::new(Role::System, system)];
    for example in include_str!("../prompts/steps-examples.txt")
        .trim()
        .split("\n\n")
    {
        let (asked, reply) = example.split_once('\n').unwrap_or((example, ""));
        messages.push(Message::new(Role::User, asked));
        messages.push(Message::new(Role::Assistant, reply));
    }
    let asked = format!("Question: {}", one_line(question));
    messages.push(Message::new(Role::User, asked));
    messages
}

/// What a reply says; no smaller question where it lists none.
pub(super) fn read(reply: &str, most: usize) -> Parts {
    let reply = reply.split(END).next().unwrap_or_default();
    let lines: Vec<&str> = reply.lines().map(str::trim).collect();
    // where a heading announces the list, what stands before it is thought, numbered or not
    let begin = lines
        .iter()
        .rposition(|line| is_heading(line))
        .map_or(0, |at| at + 1);
    let mut parts = Parts::default();
    let mut thought = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match listed(line).filter(|_| at >= begin) {
            Some(question)
                if parts.questions.len() < most
                    && !parts.questions.iter().any(|q| q == question) =>
            {
                parts.questions.push(question.to_owned());
            }
            None if parts.questions.is_empty() && !is_heading(line) && !line.is_empty() => {
                thought.push(without_label(line));
            }
            _ => {}
        }
    }
    parts.thought = Some(thought.join(" ")).filter(|t| !t.is_empty());
    parts
}

/// `Sub-questions:` and the like.
fn is_heading(line: &str) -> bool {
    let plain = line
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase();
    plain.ends_with("questions") && plain.split_whitespace().count() <= 4
}

/// The question on a line of a list.
fn listed(line: &str) -> Option<&str> {
    let bare = line.trim_start_matches(['*', '_', '#', ' ']);
    let rest = without_number(bare)
        .or_else(|| bare.strip_prefix(['-', '•']))
        .or_else(|| line.strip_prefix("* "))?;
    let rest = rest.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '"' | '`'));
    // a list may also be of thoughts; a question has at least a few words
    (rest.split_whitespace().count() >= 3).then_some(rest)
}

/// What follows `1.`, `2)`, `Q3:` or `Sub-question 4:`.
fn without_number(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    let word = ["sub-question", "subquestion", "question", "step", "q"]
        .into_iter()
        .find(|word| lower.starts_with(word))
        .map_or(0, str::len);
    let rest = line[word..].trim_start();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 {
        return None;
    }
    rest[digits..]
        .trim_start_matches(['*', '_'])
        .strip_prefix(['.', ')', ':'])
}

/// A thought without the word `Thought:` before it.
fn without_label(line: &str) -> &str {
    match line.split_once(':') {
        Some((label, rest)) if label.trim_matches('*').eq_ignore_ascii_case("thought") => {
            rest.trim_start_matches(['*', ' '])
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_read_however_they_are_dressed_up() {
        let wanted = ["Which films did she write?", "When were they released?"];
        for reply in [
            "Thought: first the films.\n1. Which films did she write?\n2. When were they released?\n<END> 3. Which more is there?",
            "First the films.\n\nSub-questions:\n1) **Which films did she write?**\n2) When were they released?",
            "**Thought:** first the films.\n- Which films did she write?\n- When were they released?",
            "Q1: Which films did she write?\nQ2: When were they released?\nQ3: When were they released?",
            "1. think of the films\n2. think of the dates\n**Sub-questions**\nSub-question 1: \"Which films did she write?\"\nSub-question 2: When were they released?",
        ] {
            assert_eq!(read(reply, 5).questions, wanted, "{reply}");
        }
        let read_one = read(
            "Thought: first the films.\n1. Which films did she write?",
            5,
        );
        assert_eq!(read_one.thought.as_deref(), Some("first the films."));
        assert!(read("It cannot be split.", 5).questions.is_empty());
        assert_eq!(
            read("1. one two three?\n2. four five six?", 1)
                .questions
                .len(),
            1
        );
    }

    #[test]
    fn the_examples_have_one_two_and_three_questions() {
        let messages = messages("Who\nwrote it?");
        assert_eq!(messages.len(), 1 + 6 + 1);
        let counts: Vec<usize> = (1..=3)
            .map(|i| read(&messages[2 * i].content, 9).questions.len())
            .collect();
        assert_eq!(counts, [1, 2, 3]);
        assert_eq!(messages[7].content, "Question: Who wrote it?");
    }

    proptest! {
        #[test]
        fn no_reply_breaks_the_reader(reply in "(?s).{0,200}") {
            read(&reply, 4);
        }
    }
}
