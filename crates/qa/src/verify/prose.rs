//! Sentences of a language model's prose that the evidence does not bear out.
//!
//! A sentence is borne out if
//!
//! 1. every name (a word with a capital letter, but for the first) and every number in it stands in
//!    the verified evidence, in the question or in an answer, and
//! 2. each thing of the evidence that it names is joined to another that it names, by one verified
//!    triple or by the rationale of an answer; where it names only one, there is nothing to join.
//!
//! What a sentence says of the things that it names is not read: *Lou Seal hates the Giants* passes.

use hashbrown::{HashMap, HashSet};
use wherefore_graph::names::normalise;

use crate::answer::{Answer, Evidence};
use crate::words::tokens;

/// The sentences of `answer.text` that nothing bears out, as they stand there.
pub(super) fn unproved(answer: &Answer) -> Vec<String> {
    let Some(text) = &answer.text else {
        return Vec::new();
    };
    let verified: Vec<Option<&Evidence>> = (answer.evidence.iter())
        .map(|e| e.verified.then_some(e))
        .collect();
    let borne = Borne::new(answer, &verified);
    let sentences = sentences(text);
    let unproved = sentences.filter(|sentence| !borne.bears_out(sentence));
    unproved.map(str::to_owned).collect()
}

/// Words of a label by which it is looked for in a sentence, at most.
const MOST_WORDS: usize = 40;

/// What can be said. All of it takes as long as text and evidence are: files come from anybody.
#[derive(Default)]
struct Borne {
    words: HashSet<String>,
    /// The numbers of things, by their normalised labels.
    labels: HashMap<String, usize>,
    /// How many words the longest label has.
    longest: usize,
    /// Which things a triple joins.
    joined: HashSet<(usize, usize)>,
    /// Which rationales speak of a thing.
    used: HashMap<usize, HashSet<usize>>,
}

impl Borne {
    fn new(answer: &Answer, verified: &[Option<&Evidence>]) -> Self {
        let mut borne = Self::default();
        let mut ends = Vec::with_capacity(verified.len());
        for evidence in verified {
            let pair = evidence.map(|e| {
                borne.add_words(&e.relation);
                [&e.head, &e.tail].map(|label| borne.place(label))
            });
            if let Some([head, tail]) = pair {
                borne.joined.extend([(head, tail), (tail, head)]);
            }
            ends.push(pair);
        }
        borne.add_words(&answer.question);
        for link in &answer.links {
            borne.add_words(&link.name);
        }
        for (number, given) in answer.answers.iter().enumerate() {
            borne.add_words(&given.name);
            let of = given.rationale.iter().filter_map(|&i| *ends.get(i)?);
            for thing in of.flatten() {
                borne.used.entry(thing).or_default().insert(number);
            }
        }
        borne
    }

    fn add_words(&mut self, text: &str) {
        let normal = normalise(text);
        self.words.extend(normal.split(' ').map(str::to_owned));
    }

    fn place(&mut self, label: &str) -> usize {
        let normal = normalise(label);
        if let Some(&place) = self.labels.get(&normal) {
            return place;
        }
        self.add_words(label);
        let words = normal.split(' ').count().min(MOST_WORDS);
        self.longest = self.longest.max(words);
        self.labels.insert(normal, self.labels.len());
        self.labels.len() - 1
    }

    fn bears_out(&self, sentence: &str) -> bool {
        let words = tokens(sentence);
        let strange = words.iter().enumerate().any(|(i, word)| {
            let word = &sentence[word.start..word.end];
            let is_name = i > 0 && word.starts_with(char::is_uppercase);
            let is_number = word.contains(char::is_numeric);
            // of *Giants'* and *Seal's* the name counts
            let known = |word: &str| {
                let normal = normalise(word);
                normal.split(' ').all(|part| self.words.contains(part))
            };
            (is_name || is_number)
                && !known(word)
                && !known(word.trim_end_matches(['s', 'S']).trim_end_matches(['\'', '’']))
                // *I* is nobody's name
                && word != "I"
        });
        !strange && self.are_joined(&self.named(sentence))
    }

    /// The things that a sentence names: at each word, that of the longest label.
    fn named(&self, sentence: &str) -> Vec<usize> {
        let words = tokens(sentence);
        let words = words
            .iter()
            .map(|word| normalise(&sentence[word.start..word.bare_end]));
        let words: Vec<String> = words.collect();
        let mut named = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let longest = self.longest.min(words.len() - at);
            let found = (1..=longest)
                .rev()
                .find_map(|n| Some((n, *self.labels.get(&words[at..at + n].join(" "))?)));
            if let Some((_, thing)) = found {
                named.push(thing);
            }
            at += found.map_or(1, |(n, _)| n);
        }
        named.sort_unstable();
        named.dedup();
        named
    }

    fn are_joined(&self, named: &[usize]) -> bool {
        let in_one = |a: &usize, b: &usize| match (self.used.get(a), self.used.get(b)) {
            (Some(a), Some(b)) => !a.is_disjoint(b),
            _ => false,
        };
        let is_joined = |a: &usize| {
            let joins = |b: &&usize| a != *b && (self.joined.contains(&(*a, **b)) || in_one(a, b));
            named.iter().any(|b| joins(&b))
        };
        named.len() < 2 || named.iter().all(is_joined)
    }
}

/// The sentences of a text: a line's end ends one, as do `.`, `!` and `?` before a space and a
/// capital letter, but for a dot behind a single letter (*J. Smith*).
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut parts = Vec::new();
        let mut start = 0;
        for (at, c) in line.char_indices() {
            let end = at + c.len_utf8();
            let mut behind = line[end..].chars();
            let ends = matches!(c, '.' | '!' | '?')
                && behind.next() == Some(' ')
                && behind.next().is_some_and(|c| !c.is_lowercase())
                && !is_initial(&line[start..at]);
            if ends {
                parts.push(&line[start..end]);
                start = end;
            }
        }
        parts.push(&line[start..]);
        parts.into_iter().map(str::trim).filter(|s| !s.is_empty())
    })
}

/// Whether a text ends with a single letter.
fn is_initial(before: &str) -> bool {
    let mut behind = before.chars().rev();
    behind.next().is_some_and(char::is_uppercase) && behind.next().is_none_or(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::AnswerEntity;

    fn fact(head: &str, relation: &str, tail: &str) -> Evidence {
        Evidence {
            head: head.into(),
            relation: relation.into(),
            tail: tail.into(),
            verified: true,
            ..Evidence::default()
        }
    }

    fn unproved_in(text: &str) -> Vec<String> {
        unproved(&Answer {
            question: "What is the capital of France?".into(),
            text: Some(text.into()),
            answers: vec![AnswerEntity {
                name: "Paris".into(),
                rationale: vec![0, 1],
                ..AnswerEntity::default()
            }],
            evidence: vec![
                fact("France", "capital", "Paris"),
                fact("Paris", "mayor", "Anne Hidalgo"),
                fact("Germany", "capital", "Berlin"),
                fact("Paris", "population", "2102650"),
                Evidence {
                    verified: false,
                    ..fact("France", "king", "EVIL CORP")
                },
            ],
            ..Answer::default()
        })
    }

    #[test]
    fn what_the_evidence_says_is_borne_out() {
        for text in [
            "Paris is the capital of France.",
            "The mayor of France's capital is Anne Hidalgo.",
            "I found that Paris has a population of 2102650.",
            "Berlin is not asked about.",
            "",
        ] {
            assert_eq!(unproved_in(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn other_names_numbers_and_things_that_nothing_joins_are_not() {
        for text in [
            "The capital was moved by Napoleon.",
            "It has 7 bridges.",
            "The capital of Germany is Paris.",
            "France is ruled by EVIL CORP.",
        ] {
            assert_eq!(unproved_in(text), [text]);
        }
        assert_eq!(
            unproved_in("Paris is the capital. It was founded by J. Smith in Berlin! Paris it is"),
            ["It was founded by J. Smith in Berlin!"]
        );
    }
}
