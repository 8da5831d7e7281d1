//! The question's words where they stand, and which of them a reading has to account for.

use super::lang::{Gap, Lang, Op, adverb};
use super::schema::number_of;
use crate::words::stem;

/// Most words that have to be accounted for; a longer text is no question.
pub(super) const MAX_SLOTS: usize = 40;

/// A word of the question.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) lower: String,
    pub(super) stem: String,
    /// Says nothing by itself.
    pub(super) is_silent: bool,
    /// Says little beside what it stands with: `performed`, `occurred`.
    pub(super) is_light: bool,
}

/// An operator phrase: words from, to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phrase {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) op: Op,
}

/// The words of a question. A slot is a word that a reading uses or passes over at a cost.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) all: Vec<Word>,
    pub(super) phrases: Vec<Phrase>,
    /// Words by slot.
    pub(super) slots: Vec<usize>,
    /// Quoted parts: words from, to.
    pub(super) quoted: Vec<(usize, usize)>,
    /// Words that stand for what was answered before: from, to.
    pub(super) referring: Vec<(usize, usize)>,
}

impl Words {
    pub(super) fn new(text: &str, lang: &Lang) -> Self {
        Self::referring(text, lang, &[])
    }

    /// The words of a text in which some stand for what was answered before.
    pub(super) fn referring(text: &str, lang: &Lang, referring: &[(usize, usize)]) -> Self {
        let mut words = Self {
            referring: referring.to_vec(),
            text: text.to_owned(),
            all: Vec::new(),
            phrases: Vec::new(),
            slots: Vec::new(),
            quoted: Vec::new(),
        };
        for (start, end) in spans(text) {
            let lower = text[start..end].to_lowercase().replace('’', "'");
            words.all.push(Word {
                start,
                end,
                stem: stem(adverb(&lower)).into_owned(),
                is_silent: lang.is_silent(&lower),
                is_light: lang.is_light(&stem(&lower)),
                lower,
            });
        }
        words.read_quotes();
        let lower: Vec<&str> = words.all.iter().map(|w| w.lower.as_str()).collect();
        let mut phrases = Vec::new();
        for from in 0..lower.len() {
            for (length, op) in lang.operators(&lower[from..]) {
                let to = from + length;
                phrases.push(Phrase { from, to, op });
            }
        }
        phrases.retain(|p: &Phrase| !words.refers(p.from, p.to));
        for at in 1..words.all.len() {
            if lang.is_particle(&words.all[at - 1].stem, &words.all[at].lower) {
                phrases.retain(|p| !(p.from..p.to).contains(&at));
                words.all[at].is_silent = true;
            }
        }
        for &(from, _) in referring {
            if let Some(word) = words.all.get_mut(from) {
                word.is_silent = false;
            }
        }
        // `at least` has nothing to do with `least`
        let all = phrases.clone();
        phrases.retain(|p: &Phrase| {
            let longer =
                |q: &Phrase| q.from <= p.from && p.to <= q.to && q.to - q.from > p.to - p.from;
            !all.iter().any(longer)
        });
        for phrase in phrases.extract_if(.., |p| p.op == Op::Idle) {
            let idle = &mut words.all[phrase.from..phrase.to];
            idle.iter_mut().for_each(|w| w.is_silent = true);
        }
        // `whose dog is Taffy` asks for the owner; `most kilometres` for what is measured in them
        if let Some(first) = words.all.first_mut()
            && lang.whose.contains(&first.lower)
        {
            first.is_silent = false;
        }
        // `which two stations`, but not `which two are the longest`
        let ranks = |p: &Phrase| matches!(p.op, Op::Best(..) | Op::Extreme(_) | Op::Order(_));
        if let [first, second, _, ..] = &mut words.all[..]
            && lang.picks(&first.lower)
            && lang.number(&second.lower).is_some()
            && !second.lower.starts_with(|c: char| c.is_ascii_digit())
            && !phrases.iter().any(ranks)
        {
            second.is_silent = true;
        }
        // `has been with us the longest`: since when
        if let Some(last) = phrases.iter_mut().find(|p| p.to == words.all.len())
            && matches!(last.op, Op::Best(true, _))
            && words.all[..last.from].iter().any(|w| w.lower == "been")
            && let Some(&(_, since)) = lang
                .operators(&["been", "the", &words.all[last.to - 1].lower])
                .iter()
                .find(|(length, _)| *length == 3)
        {
            last.op = since;
        }
        // `may 2021` is a month
        for at in 1..words.all.len() {
            let is_year = |w: &Word| w.lower.len() == 4 && number_of(&w.lower).is_some();
            if is_year(&words.all[at]) && lang.months.contains_key(&words.all[at - 1].lower) {
                words.all[at - 1].is_silent = false;
            }
        }
        for at in 1..words.all.len() {
            let counted = |p: &Phrase| p.to == at && matches!(p.op, Op::Extreme(_) | Op::Count);
            if lang.unit(&words.all[at].lower).is_some() && phrases.iter().any(counted) {
                words.all[at].is_silent = false;
            }
        }
        // `exactly one` is a number, `the longest one` is not; `what share of` asks for a share
        for at in 1..words.all.len() {
            let compared = |p: &Phrase| p.to == at && matches!(p.op, Op::Compare(_));
            if lang.number(&words.all[at].lower).is_some() && phrases.iter().any(compared) {
                words.all[at].is_silent = false;
            }
            if lang.picks(&words.all[at - 1].lower) {
                words.all[at].is_light = false;
            }
        }
        words.phrases = phrases;
        words.slots = (0..words.all.len())
            .filter(|&i| {
                let is_said = |p: &Phrase| (p.from..p.to).contains(&i);
                !words.all[i].is_silent
                    || words.phrases.iter().any(is_said)
                    || words.quoted.iter().any(|q| (q.0..q.1).contains(&i))
            })
            .collect();
        words
    }

    /// Whether any word of a range stands for what was answered before.
    pub(super) fn refers(&self, from: usize, to: usize) -> bool {
        self.referring.iter().any(|r| r.0 < to && from < r.1)
    }

    fn read_quotes(&mut self) {
        for (open, close) in [('"', '"'), ('“', '”'), ('\'', '\''), ('‘', '’')] {
            let mut from = None;
            for (at, c) in self.text.char_indices() {
                let before = self.text[..at].chars().next_back();
                let after = self.text[at + c.len_utf8()..].chars().next();
                let at_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                match from {
                    None if c == open && !at_word(before) => from = Some(at),
                    Some(begun) if c == close && !at_word(after) => {
                        let inside = |w: &Word| w.start > begun && w.end <= at;
                        let first = self.all.iter().position(inside);
                        let last = self.all.iter().rposition(inside);
                        if let (Some(first), Some(last)) = (first, last) {
                            self.quoted.push((first, last + 1));
                        }
                        from = None;
                    }
                    _ => {}
                }
            }
        }
    }

    /// The slots of a range of words; none where all of them are silent.
    pub(super) fn slots_of(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let first = self.slots.partition_point(|&w| w < from);
        let last = self.slots.partition_point(|&w| w < to);
        (first < last).then_some((first, last))
    }

    /// What stands between two words: the last that says something about how parts are joined.
    pub(super) fn gap(&self, from: usize, to: usize, lang: &Lang) -> Gap {
        let Some(between) = self.all.get(from..to) else {
            return Gap::None;
        };
        let said = between.iter().rev().find_map(|w| lang.between(&w.lower));
        said.unwrap_or(Gap::None)
    }

    /// Whether nothing but articles and the like stands between two words.
    pub(super) fn is_beside(&self, from: usize, to: usize, lang: &Lang) -> bool {
        let between = self.all.get(from..to).unwrap_or_default();
        between.iter().all(|w| lang.is_beside(&w.lower))
    }

    /// Whether a comma and nothing else stands between two words.
    pub(super) fn is_listed(&self, from: usize, to: usize) -> bool {
        match (
            from.checked_sub(1).and_then(|at| self.all.get(at)),
            self.all.get(to),
        ) {
            (Some(last), Some(next)) if from == to => self.text[last.end..next.start].trim() == ",",
            _ => false,
        }
    }

    /// Whether `their` or the like stands between two words.
    pub(super) fn is_told(&self, from: usize, to: usize, lang: &Lang) -> bool {
        let between = self.all.get(from..to).unwrap_or_default();
        between.iter().any(|w| lang.is_own(&w.lower))
    }

    /// The number at a word.
    pub(super) fn number_at(&self, at: usize, lang: &Lang) -> Option<f64> {
        let word = &self.all[at];
        number_of(&word.lower).or_else(|| lang.number(&word.lower))
    }

    /// The text of a range of words.
    pub(super) fn text_of(&self, from: usize, to: usize) -> &str {
        &self.text[self.all[from].start..self.all[to - 1].end]
    }
}

/// Whether a stroke after a unit is part of one: `km/h`.
fn is_rate(before: &str, after: Option<char>) -> bool {
    matches!(before, "km" | "m" | "mi") && matches!(after, Some('h' | 's'))
}

/// Words as byte ranges: letters, digits and what belongs inside (`1,000`, `3.5`, `don't`); a
/// possessive `'s` is a word.
fn spans(text: &str) -> Vec<(usize, usize)> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut found = Vec::new();
    let mut start = None;
    for (i, &(at, c)) in chars.iter().enumerate() {
        let next = chars.get(i + 1).map(|x| x.1);
        let before = i.checked_sub(1).map(|i| chars[i].1);
        let digits =
            before.is_some_and(|c| c.is_ascii_digit()) && next.is_some_and(|c| c.is_ascii_digit());
        let possessive = matches!(next, Some('s' | 'S'))
            && !chars.get(i + 2).is_some_and(|x| x.1.is_alphanumeric());
        let inside = match c {
            ',' | '.' | ':' => digits,
            // `km/h`
            '/' => start.is_some_and(|from| is_rate(&text[from..at], next)),
            '\'' | '’' => !possessive && next.is_some_and(char::is_alphabetic) && start.is_some(),
            c => c.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&c),
        };
        match (inside, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                found.push((from, at));
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        found.push((from, text.len()));
    }
    found
}
