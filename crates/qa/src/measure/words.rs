//! Reads what is to be counted, compared or ranked off a question, and leaves the rest of it.
//!
//! ```text
//! How many countries in Europe have fewer than one million inhabitants?
//! which    countries in Europe have                                    ?   count, < 1,000,000 by `inhabitants`
//! ```
//!
//! What was read is blanked out, byte by byte, so that whatever else is known of the question by
//! place stays true. `highest point` is no superlative where a relation is called so.

use wherefore_graph::names::normalise;

use super::attributes::Attributes;
use super::tables::{COMPARATIVES, NUMBERS, SUPERLATIVES};
use super::{Comparison, Places};
use crate::words::{is_stop_word, tokens};

/// A bound as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    pub(crate) comparison: Comparison,
    pub(crate) number: f64,
}

/// A question as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Asked {
    /// What is left of it; every byte where it was.
    pub(crate) text: String,
    /// Whether things are to be counted.
    pub(crate) count: bool,
    /// Whether the greatest or the least is asked for.
    pub(crate) extreme: Option<bool>,
    /// Which of them, if not the first.
    pub(crate) places: Places,
    /// Whether it is one of two that are named.
    pub(crate) versus: bool,
    /// What values are to be compared with.
    pub(crate) bounds: Vec<Bound>,
    /// Words that ask about the relation that gives the values.
    pub(crate) hints: Vec<String>,
    /// The bytes that were read.
    pub(crate) taken: Vec<(usize, usize)>,
}

struct Word {
    text: String,
    start: usize,
    end: usize,
}

impl Asked {
    /// Reads a question. `names` are the bytes of the names in it, which are not read.
    pub(crate) fn read(text: &str, names: &[(usize, usize)], attributes: &Attributes) -> Self {
        let words: Vec<Word> = tokens(text)
            .iter()
            .map(|t| Word {
                text: normalise(&text[t.start..t.bare_end]),
                start: t.start,
                end: t.end,
            })
            .collect();
        let mut reader = Reader {
            free: (words.iter())
                .map(|w| !names.iter().any(|&(a, b)| w.start < b && w.end > a))
                .collect(),
            taken: vec![false; words.len()],
            asked: Asked::default(),
            attributes,
            words: &words,
        };
        let which = reader.counted();
        reader.bounds(text);
        reader.ranked();
        reader.finish(text, which)
    }

    /// Whether nothing is to be counted, compared or ranked.
    pub(crate) fn is_plain(&self) -> bool {
        !self.count && self.extreme.is_none() && self.bounds.is_empty()
    }
}

struct Reader<'a> {
    words: &'a [Word],
    /// Those outside of names.
    free: Vec<bool>,
    taken: Vec<bool>,
    asked: Asked,
    attributes: &'a Attributes,
}

impl Reader<'_> {
    fn word(&self, i: usize) -> &str {
        match self.free.get(i) {
            Some(true) => &self.words[i].text,
            _ => "",
        }
    }

    fn take(&mut self, i: usize) {
        if i < self.words.len() && self.free[i] {
            self.taken[i] = true;
        }
    }

    fn hint(&mut self, i: usize) {
        let word = self.word(i).to_owned();
        if !word.is_empty() {
            self.asked.hints.push(word);
        }
    }

    /// `how many`, which becomes `which`, and `number of`.
    fn counted(&mut self) -> Option<(usize, usize)> {
        for i in 0..self.words.len() {
            if self.word(i) == "how" && self.word(i + 1) == "many" {
                self.asked.count = true;
                return Some((self.words[i].start, self.words[i + 1].end));
            }
            if self.word(i) == "number" && self.word(i + 1) == "of" {
                self.asked.count = true;
                self.take(i);
                self.take(i + 1);
            }
        }
        None
    }

    /// `more than 50 million inhabitants`, `before 1900`, `in 1960`.
    fn bounds(&mut self, text: &str) {
        let mut i = 0;
        while i < self.words.len() {
            if let Some(next) = self.between(text, i) {
                i = next;
                continue;
            }
            let Some((number, next)) = self.number(text, i) else {
                i += 1;
                continue;
            };
            let is_year = next == i + 1 && (1000.0..2200.0).contains(&number);
            if let Some((comparison, from)) = self.comparison(i, is_year) {
                for j in from..next {
                    self.take(j);
                    if j < i {
                        self.hint(j);
                    }
                }
                self.unit(next);
                self.asked.bounds.push(Bound { comparison, number });
            }
            i = next;
        }
    }

    /// `between 5 and 10 million inhabitants`, `between 1990 and 1992`.
    fn between(&mut self, text: &str, i: usize) -> Option<usize> {
        if self.word(i) != "between" {
            return None;
        }
        let (mut low, and) = self.number(text, i + 1)?;
        if self.word(and) != "and" {
            return None;
        }
        let (high, next) = self.number(text, and + 1)?;
        // what stands behind both multiplies both
        if and == i + 2 && next > and + 2 {
            let times = (and + 2..next).filter_map(|j| multiplier(self.word(j)));
            low *= times.product::<f64>();
        }
        for j in i..next {
            self.take(j);
        }
        self.unit(next);
        for (comparison, number) in [(Comparison::AtLeast, low), (Comparison::AtMost, high)] {
            self.asked.bounds.push(Bound { comparison, number });
        }
        Some(next)
    }

    /// The number that begins at a word, and the word after it.
    fn number(&self, text: &str, i: usize) -> Option<(f64, usize)> {
        let first = self.word(i);
        let (mut number, mut next) = if first.starts_with(|c: char| c.is_ascii_digit()) {
            // `30,000` is two words for those who split at commas
            let rest = &text[self.words[i].start..];
            let digits = rest
                .find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.')
                .unwrap_or(rest.len());
            let body = rest[..digits].trim_end_matches([',', '.']);
            let end = self.words[i].start + body.len();
            let next = (i..self.words.len())
                .find(|&j| self.words[j].start >= end)
                .unwrap_or(self.words.len());
            (body.replace(',', "").parse::<f64>().ok()?, next)
        } else if first == "a" && multiplier(self.word(i + 1)).is_some() {
            (1.0, i + 1)
        } else {
            (small_number(first)?, i + 1)
        };
        while let Some(times) = multiplier(self.word(next)) {
            number *= times;
            next += 1;
        }
        Some((number, next))
    }

    /// The words that compare, before the number at `i`.
    fn comparison(&self, i: usize, is_year: bool) -> Option<(Comparison, usize)> {
        let back = |n: usize| i.checked_sub(n).map_or("", |at| self.word(at));
        let greater = |word: &str| {
            (COMPARATIVES.iter())
                .find(|(w, _)| *w == word)
                .map(|(_, greater)| *greater)
        };
        let strict = |greater| {
            if greater {
                Comparison::More
            } else {
                Comparison::Less
            }
        };
        if back(1) == "than" {
            let turned = matches!(back(3), "no" | "not");
            return greater(back(2)).map(|g| match (turned, g) {
                (false, g) => (strict(g), i - 2),
                (true, true) => (Comparison::AtMost, i - 3),
                (true, false) => (Comparison::AtLeast, i - 3),
            });
        }
        match (back(2), back(1)) {
            ("at", "least") => return Some((Comparison::AtLeast, i - 2)),
            ("at", "most") => return Some((Comparison::AtMost, i - 2)),
            _ => {}
        }
        match back(1) {
            "in" if is_year => Some((Comparison::Equal, i - 1)),
            "since" if is_year => Some((Comparison::AtLeast, i - 1)),
            "before" | "after" if !is_year => None,
            word => greater(word).map(|g| (strict(g), i - 1)),
        }
    }

    /// Words after a number or a superlative that say what is measured.
    fn unit(&mut self, from: usize) {
        for i in from..from + 2 {
            let word = self.word(i).to_owned();
            if word.is_empty() || is_stop_word(&word) || !self.attributes.names(&word) {
                break;
            }
            self.hint(i);
            self.take(i);
            if word == "square" {
                self.take(i + 1);
                break;
            }
        }
    }

    /// `the largest`, `the most populous`, `which is longer, A or B`.
    fn ranked(&mut self) {
        let either = (0..self.words.len()).any(|i| self.word(i) == "or");
        for i in 0..self.words.len() {
            if self.taken[i] {
                continue;
            }
            let word = self.word(i);
            let of = |table: &[(&str, bool)]| {
                table
                    .iter()
                    .find(|(w, _)| *w == word)
                    .map(|(_, most)| *most)
            };
            let superlative = of(SUPERLATIVES);
            let most = superlative.or_else(|| of(COMPARATIVES).filter(|_| either));
            let Some(most) = most else { continue };
            if self.attributes.is_label(word, self.word(i + 1)) {
                continue;
            }
            self.asked.extreme = Some(most);
            self.asked.versus = either;
            if superlative.is_some()
                && let Some(before) = i.checked_sub(1)
                && let Some(places) = places(self.word(before))
            {
                self.asked.places = places;
                self.take(before);
                if before > 0 && self.word(before - 1) == "top" {
                    self.take(before - 1);
                }
            }
            self.hint(i);
            self.take(i);
            self.unit(i + 1);
            if self.word(i + 1) == "by" || self.word(i + 2) == "by" {
                let by = if self.word(i + 1) == "by" {
                    i + 1
                } else {
                    i + 2
                };
                self.unit(by + 1);
                self.take(by);
            }
            break;
        }
    }

    fn finish(mut self, text: &str, which: Option<(usize, usize)>) -> Asked {
        if self.asked.extreme.is_some() || !self.asked.bounds.is_empty() {
            // `became independent`, `were founded`
            for i in 0..self.words.len() {
                let word = self.word(i);
                if !self.taken[i]
                    && !word.is_empty()
                    && !is_stop_word(word)
                    && self.attributes.names(word)
                {
                    self.hint(i);
                    self.take(i);
                }
            }
        }
        let mut bytes = text.as_bytes().to_vec();
        let mut blank = |from: usize, to: usize| bytes[from..to].fill(b' ');
        if let Some((from, to)) = which {
            blank(from, to);
        }
        for (i, word) in self.words.iter().enumerate() {
            if !self.taken[i] {
                continue;
            }
            // what stands between two such words goes with them: the comma of `30,000`
            let end = match self.words.get(i + 1) {
                Some(next) if self.taken[i + 1] => next.start.max(word.end),
                _ => word.end,
            };
            blank(word.start, end);
            self.asked.taken.push((word.start, word.end));
        }
        if let Some((from, _)) = which {
            bytes[from..from + 5].copy_from_slice(b"which");
        }
        self.asked.text = String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned());
        self.asked
    }
}

fn small_number(word: &str) -> Option<f64> {
    let found = NUMBERS.iter().find(|(known, _)| *known == word);
    found.map(|(_, number)| *number)
}

fn multiplier(word: &str) -> Option<f64> {
    small_number(word).filter(|n| *n >= 100.0)
}

/// `second`, `2nd`: which place.
fn ordinal(word: &str) -> Option<usize> {
    const WORDS: [&str; 9] = [
        "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    ];
    if let Some(place) = WORDS.iter().position(|known| *known == word) {
        return Some(place + 2);
    }
    let digits = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending))?;
    digits.parse().ok().filter(|n| (1..=1000).contains(n))
}

/// The places that the word before a superlative asks for.
pub(crate) fn places(word: &str) -> Option<Places> {
    if let Some(from) = ordinal(word) {
        return Some(Places { from, many: 1 });
    }
    let number = small_number(word).or_else(|| word.parse().ok())?;
    let many = (2.0..=1000.0).contains(&number) && number.fract() == 0.0;
    many.then_some(Places {
        from: 1,
        many: number as usize,
    })
}

#[cfg(test)]
mod tests {
    use wherefore_graph::MemoryGraph;

    use super::*;

    fn attributes() -> Attributes {
        Attributes::build(&MemoryGraph::from_names([
            ("France", "area", "643801"),
            ("France", "population", "66987244"),
            ("Nile", "length", "6650"),
            ("Etna", "elevation", "3357"),
            ("France", "highest_point", "Mont Blanc"),
            ("Kenya", "independence_date", "1963-12-12"),
            ("France", "calling_code", "+33"),
        ]))
        .unwrap()
    }

    fn read(text: &str) -> Asked {
        let asked = Asked::read(text, &[], &attributes());
        assert_eq!(asked.text.len(), text.len());
        asked
    }

    fn left(asked: &Asked) -> String {
        asked.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn counts_become_which() {
        let asked = read("How many countries are there?");
        assert!(asked.count && asked.extreme.is_none());
        assert_eq!(left(&asked), "which countries are there?");
        assert_eq!(
            left(&read("what is the number of lakes")),
            "what is the lakes"
        );
    }

    #[test]
    fn bounds_are_read_with_their_units() {
        let bound = |comparison, number| vec![Bound { comparison, number }];
        for (text, bounds, rest) in [
            (
                "Which countries have fewer than one million inhabitants?",
                bound(Comparison::Less, 1e6),
                "Which countries have ?",
            ),
            (
                "Which lakes are larger than 30,000 square kilometres",
                bound(Comparison::More, 30_000.0),
                "Which lakes are",
            ),
            (
                "which countries became independent in 1991?",
                bound(Comparison::Equal, 1991.0),
                "which countries became ?",
            ),
            (
                "which rivers have at least 2.5 thousand km",
                bound(Comparison::AtLeast, 2500.0),
                "which rivers have",
            ),
        ] {
            let asked = read(text);
            assert_eq!(asked.bounds, bounds, "{text}");
            assert_eq!(left(&asked), rest);
        }
        assert!(read("who won the cup of 2014").bounds.is_empty());
        for (text, low, high) in [
            (
                "countries with between 5 and 10 million inhabitants",
                5e6,
                1e7,
            ),
            (
                "countries with between 500 and 2,000 inhabitants",
                500.0,
                2e3,
            ),
            (
                "which became independent between 1990 and 1992",
                1990.0,
                1992.0,
            ),
        ] {
            let found: Vec<f64> = read(text).bounds.iter().map(|b| b.number).collect();
            assert_eq!(found, [low, high], "{text}");
        }
        let asked = read("cities with no more than 1 thousand inhabitants");
        assert_eq!(asked.bounds, bound(Comparison::AtMost, 1e3));
        let asked = read("cities with more than a million inhabitants");
        assert_eq!(asked.bounds, bound(Comparison::More, 1e6));
    }

    #[test]
    fn superlatives_rank_unless_a_relation_is_called_so() {
        let asked = read("Which country has the largest population?");
        assert_eq!(asked.extreme, Some(true));
        assert_eq!(asked.hints, ["largest", "population"]);
        assert_eq!(left(&asked), "Which country has the ?");
        assert!(read("What is the highest point of France?").is_plain());
        for (text, from, many) in [
            ("What is the second largest country?", 2, 1),
            ("What is the 3rd longest river?", 3, 1),
            ("Which are the five largest countries?", 1, 5),
            ("Name the top 10 longest rivers", 1, 10),
            ("What is the largest country?", 1, 1),
        ] {
            let asked = read(text);
            assert_eq!(asked.places, Places { from, many }, "{text}");
            assert!(!asked.text.contains("second") && !asked.text.contains("top"));
        }
        let asked = read("which is smaller, France or Kenya");
        assert!(asked.versus && asked.extreme == Some(false));
        assert!(read("which is near, France or Kenya").is_plain());
    }

    #[test]
    fn names_are_not_read() {
        let asked = Asked::read("where is First Lake", &[(9, 19)], &attributes());
        assert!(asked.is_plain());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in "\\PC{0,40}( (more than|at least|in|largest) [0-9,.]{1,6})?") {
            let asked = Asked::read(&text, &[], &attributes());
            proptest::prop_assert_eq!(asked.text.len(), text.len());
        }
    }
}
