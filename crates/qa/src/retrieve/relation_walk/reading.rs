//! The question as the walk reads it: what stands around the topic, nearest first, and what kind
//! of thing is asked for.

use wherefore_graph::names::normalise;

use crate::words::{is_past, is_stop_word, tokens};

/// Words that say that two things have something in common: they stand for a step and back.
const SAME: [&str; 10] = [
    "also", "both", "co", "common", "other", "same", "share", "shared", "shares", "together",
];

/// Words that ask for a kind of thing without naming it.
const ASKING: [&str; 9] = [
    "how", "man", "people", "person", "when", "where", "who", "whom", "woman",
];

/// Words that are stop words elsewhere, but tell something here.
const TELLING: [&str; 6] = ["about", "name", "when", "where", "who", "whom"];

/// Words of the question that are used.
const MAX_WORDS: usize = 16;

/// So many words and a topic are no sentence.
const FEW: usize = 5;

/// A word beside the topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) kind: Kind,
    /// Its place among all words of the question.
    pub(super) place: usize,
}

/// What a word does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It may name a relation or a kind of thing.
    Plain,
    /// It says that two things have something in common.
    Same,
    /// It asks.
    Asking,
}

/// A question read from one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// The words that tell something.
    pub(super) words: Vec<Word>,
    /// Words before the topic, nearest first: indices into `words`.
    pub(super) left: Vec<usize>,
    /// Words after the topic, nearest first.
    pub(super) right: Vec<usize>,
    /// The word for what is asked for, as an index into `words`.
    pub(super) target: Option<usize>,
    /// The words that it was chosen from, it being the last: `rivers flow` after `which`.
    pub(super) phrase: Vec<usize>,
    /// Whether the first word on the left touches the topic: `the film Alien`.
    pub(super) touching: bool,
    /// Whether the topic is in the possessive: `Alien's director`.
    pub(super) possessive: bool,
}

impl Reading {
    /// Reads `text` around the topic at `span` (bytes); without one the topic counts as standing
    /// at the end. Words inside `others`, the spans of further topics, are left out.
    pub(super) fn new(text: &str, span: Option<(usize, usize)>, others: &[(usize, usize)]) -> Self {
        let all = tokens(text);
        let (from, to) = span.unwrap_or((text.len(), text.len()));
        let normal: Vec<String> = all
            .iter()
            .map(|t| normalise(&text[t.start..t.bare_end]))
            .collect();
        let in_topic = |i: usize| all[i].start < to && all[i].end > from;
        let in_other = |i: usize| (others.iter()).any(|&(a, b)| all[i].start < b && all[i].end > a);
        let first_in = (0..all.len()).find(|&i| in_topic(i)).unwrap_or(all.len());
        let mut reading = Reading {
            possessive: span.is_some() && is_possessive(&text[to..]),
            ..Self::default()
        };
        let phrase = target(&normal, &|i| in_topic(i) || in_other(i));
        let target = phrase.map(|(_, last)| last);
        for (place, word) in normal.iter().enumerate() {
            let telling = TELLING.contains(&word.as_str()) && word != "name";
            let silent = is_stop_word(word) && !telling || word.chars().count() < 2;
            if in_topic(place) || in_other(place) || silent && target != Some(place) {
                continue;
            }
            if reading.words.len() == MAX_WORDS {
                break;
            }
            let index = reading.words.len();
            if target == Some(place) {
                reading.target = Some(index);
            }
            if phrase.is_some_and(|(first, last)| (first..=last).contains(&place)) {
                reading.phrase.push(index);
            }
            if all[place].start < from {
                reading.left.insert(0, index);
                reading.touching = place + 1 == first_in;
            } else {
                reading.right.push(index);
            }
            reading.words.push(Word {
                kind: kind(word),
                text: word.clone(),
                place,
            });
        }
        reading
    }

    /// The orders in which the words may be told from the topic on, the likelier first. What is
    /// asked for comes last.
    pub(super) fn orders(&self) -> Vec<Vec<usize>> {
        let joined = |a: &[usize], b: &[usize]| [a, b].concat();
        let asked_left = self.target.is_none_or(|t| self.left.contains(&t));
        if self.possessive {
            vec![joined(&self.right, &self.left)]
        } else if self.left.is_empty() || self.right.is_empty() {
            vec![joined(&self.left, &self.right)]
        } else if asked_left {
            vec![
                joined(&self.right, &self.left),
                joined(&self.left, &self.right),
            ]
        } else {
            vec![joined(&self.left, &self.right)]
        }
    }
}

fn kind(word: &str) -> Kind {
    if SAME.contains(&word) {
        Kind::Same
    } else if ASKING.contains(&word) {
        Kind::Asking
    } else {
        Kind::Plain
    }
}

fn is_possessive(after: &str) -> bool {
    let after = after.trim_start();
    ["'s", "’s", "ʼs", "' ", "’ "]
        .iter()
        .any(|mark| after.starts_with(mark))
}

/// The place of the word for what is asked for, and where its phrase begins: the noun after `which`
/// or `what`, or after `who is the`; else the word that asks, or the first noun of a few words
/// that ask nothing.
fn target(words: &[String], taken: &dyn Fn(usize) -> bool) -> Option<(usize, usize)> {
    let is = |i: usize, list: &[&str]| words.get(i).is_some_and(|w| list.contains(&w.as_str()));
    for i in (0..words.len()).filter(|&i| !taken(i)) {
        if is(i, &["which", "what", "whats"]) {
            return after_topic(words, i + 1, taken).or_else(|| noun(words, i + 1, taken));
        }
        if is(i, &["who", "whom"]) {
            let named = is(i + 1, &["is", "are", "was", "were"]);
            return named
                .then(|| noun(words, i + 2, taken))
                .flatten()
                .filter(|&(_, n)| !is_past(&words[n]))
                .or(Some((i, i)));
        }
        if is(i, &["when", "where"]) {
            return Some((i, i));
        }
        if i == 0 && is(i, &["give", "list", "name", "show"]) {
            return noun(words, i + 1, taken);
        }
        if is(i, &["describe", "list"]) {
            return noun(words, i, taken);
        }
    }
    // a few words that ask nothing, on one side of the topic: `rivers in Hungary`
    let free: Vec<usize> = (0..words.len()).filter(|&i| !taken(i)).collect();
    let together = free.windows(2).all(|two| two[0] + 1 == two[1]);
    let asks = free.iter().any(|&i| kind(&words[i]) == Kind::Asking);
    (together && !asks && free.len() <= FEW)
        .then(|| after_topic(words, 0, taken).or_else(|| noun(words, 0, taken)))?
}

/// The phrase behind a topic that comes first: `members` of `which OPEC members`.
fn after_topic(
    words: &[String],
    at: usize,
    taken: &dyn Fn(usize) -> bool,
) -> Option<(usize, usize)> {
    let joins = |i: &usize| !taken(*i) && matches!(words[*i].as_str(), "of" | "the");
    let topic = (at..words.len())
        .find(|i| !joins(i))
        .filter(|&i| taken(i))?;
    let next = (topic..words.len()).find(|&i| !taken(i))?;
    let is_noun = !is_stop_word(&words[next]) && !is_past(&words[next]);
    is_noun.then(|| noun(words, next, taken)).flatten()
}

/// The first and the last word of the phrase that begins at or after `at`.
fn noun(words: &[String], mut at: usize, taken: &dyn Fn(usize) -> bool) -> Option<(usize, usize)> {
    let silent = |i: usize| is_stop_word(&words[i]) || words[i] == "listed";
    while at < words.len() && silent(at) && !taken(at) {
        at += 1;
    }
    if at >= words.len() || taken(at) {
        return None;
    }
    let first = at;
    while !is_past(&words[at])
        && at + 1 < words.len()
        && !silent(at + 1)
        && !taken(at + 1)
        && kind(&words[at + 1]) != Kind::Same
        && !is_past(&words[at + 1])
    {
        at += 1;
    }
    Some((first, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, topic: &str) -> Reading {
        let from = text.find(topic).unwrap();
        Reading::new(text, Some((from, from + topic.len())), &[])
    }

    fn told(reading: &Reading) -> Vec<String> {
        reading.orders()[0]
            .iter()
            .map(|&i| reading.words[i].text.clone())
            .collect()
    }

    fn asked(reading: &Reading) -> Option<&str> {
        reading.target.map(|t| reading.words[t].text.as_str())
    }

    #[test]
    fn words_come_from_the_topic_outwards_and_what_is_asked_for_last() {
        let reading = read(
            "who starred in films directed by the director of Alien",
            "Alien",
        );
        assert_eq!(
            told(&reading),
            ["director", "directed", "films", "starred", "who"]
        );
        assert_eq!(asked(&reading), Some("who"));
        let reading = read(
            "the films acted by Eva Mendes were released in which years",
            "Eva Mendes",
        );
        assert_eq!(told(&reading), ["acted", "films", "released", "years"]);
        assert_eq!(asked(&reading), Some("years"));
        assert!(!reading.touching);
    }

    #[test]
    fn a_few_words_ask_for_their_noun() {
        let target = |text: &str, topic: &str| asked(&read(text, topic)).map(str::to_owned);
        assert_eq!(
            target("rivers in Hungary", "Hungary").as_deref(),
            Some("rivers")
        );
        assert_eq!(
            target("Hungary rivers", "Hungary").as_deref(),
            Some("rivers")
        );
        assert_eq!(
            target("list the rivers of Hungary", "Hungary").as_deref(),
            Some("rivers")
        );
        let both_sides = "the writer of Alien also wrote movies";
        assert_eq!(target(both_sides, "Alien"), None);
    }

    #[test]
    fn a_possessive_is_followed_first() {
        let reading = read(
            "what is the nationality of father of ann 's mother ?",
            "ann",
        );
        assert_eq!(told(&reading), ["mother", "father", "nationality"]);
        assert_eq!(asked(&reading), Some("nationality"));
    }

    #[test]
    fn what_is_asked_for_is_the_noun() {
        for (text, target) in [
            ("what is the main language in X1", "language"),
            ("which person wrote X1", "person"),
            ("who is the director that directed X1", "director"),
            ("which movies share actors with X1", "movies"),
            ("when was X1 released", "when"),
            ("what X1 is", "none"),
            ("which X1 members are rich", "members"),
            ("which of the X1 countries is the smallest", "countries"),
            ("what did X1 direct", "none"),
        ] {
            let reading = read(text, "X1");
            assert_eq!(asked(&reading).unwrap_or("none"), target, "{text}");
        }
        assert!(read("the film X1 starred whom", "X1").touching);
    }

    #[test]
    fn other_topics_and_missing_spans_are_no_obstacle() {
        let text = "which films of Spielberg star Hanks";
        let reading = Reading::new(text, Some((15, 24)), &[(30, 35)]);
        assert_eq!(told(&reading), ["star", "films"]);
        let none = Reading::new("who wrote it", None, &[]);
        assert_eq!(told(&none), ["wrote", "who"]);
        assert!(Reading::new("", None, &[]).words.is_empty());
    }
}
