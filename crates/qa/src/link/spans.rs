//! The spans of a question that are somebody's whole name.

use std::borrow::Cow;

use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Graph, NameMatch};

use super::How;
use super::aliases::Aliases;
use super::nationalities::country;
use crate::error::Result;
use crate::words::{is_stop_word, tokens};

/// A word of the question.
#[derive(Debug)]
pub(super) struct Word {
    /// Byte where it begins.
    pub(super) start: usize,
    /// Byte after its end.
    pub(super) end: usize,
    /// Byte after its end, without a possessive.
    bare_end: usize,
    /// Normalised.
    pub(super) text: String,
    /// Normalised, without a possessive.
    pub(super) bare: String,
    /// Whether it says nothing about what is asked.
    pub(super) stop: bool,
    /// Whether it has a capital letter or a digit.
    pub(super) marked: bool,
}

/// The words of a question.
pub(super) fn words(text: &str) -> Vec<Word> {
    tokens(text)
        .into_iter()
        .map(|token| {
            let written = &text[token.start..token.end];
            let bare = normalise(&text[token.start..token.bare_end]);
            Word {
                start: token.start,
                end: token.end,
                bare_end: token.bare_end,
                text: normalise(written),
                stop: is_stop_word(&bare),
                bare,
                marked: written.contains(|c: char| c.is_uppercase() || c.is_numeric()),
            }
        })
        .collect()
}

/// Words that are a whole name.
#[derive(Debug)]
pub(super) struct Full {
    /// First word.
    pub(super) from: usize,
    /// After the last word.
    pub(super) to: usize,
    /// Byte range in the question.
    pub(super) span: (usize, usize),
    /// Whose name it is; empty where the user said that the words mean nothing.
    pub(super) entities: Vec<EntityId>,
    /// How it was recognised.
    pub(super) how: How,
}

/// Looks for whole names.
pub(super) struct Search<'a> {
    pub(super) text: &'a str,
    pub(super) words: &'a [Word],
    pub(super) aliases: &'a Aliases,
    pub(super) graph: &'a dyn Graph,
    /// Words in the longest name that is looked for.
    pub(super) max_words: usize,
}

impl Search<'_> {
    /// The longest names, none overlapping: aliases of the user first, then by number of words.
    pub(super) fn longest(&self) -> Result<Vec<Full>> {
        let mut taken = vec![false; self.words.len()];
        let mut found = Vec::new();
        for length in (1..=self.aliases.longest().min(self.words.len())).rev() {
            self.pass(length, &mut taken, &mut found, &|range| self.alias(range))?;
        }
        for length in (1..=self.max_words.min(self.words.len())).rev() {
            self.pass(length, &mut taken, &mut found, &|range| self.name(range))?;
        }
        Ok(found)
    }

    fn pass(
        &self,
        length: usize,
        taken: &mut [bool],
        found: &mut Vec<Full>,
        look: &dyn Fn(std::ops::Range<usize>) -> Result<Option<Full>>,
    ) -> Result<()> {
        for start in 0..=self.words.len() - length {
            let range = start..start + length;
            if taken[range.clone()].contains(&true) {
                continue;
            }
            if let Some(full) = look(range.clone())? {
                taken[range].fill(true);
                found.push(full);
            }
        }
        Ok(())
    }

    fn full(
        &self,
        range: &std::ops::Range<usize>,
        end: usize,
        entities: Vec<EntityId>,
        how: How,
    ) -> Full {
        Full {
            from: range.start,
            to: range.end,
            span: (self.words[range.start].start, end),
            entities,
            how,
        }
    }

    /// The words joined, the last one without its possessive if `bare`.
    fn key(&self, range: &std::ops::Range<usize>, bare: bool) -> String {
        let mut key = String::with_capacity(48);
        for (i, word) in (range.start..).zip(&self.words[range.clone()]) {
            if i > range.start {
                key.push(' ');
            }
            let last = i + 1 == range.end;
            key.push_str(if last && bare { &word.bare } else { &word.text });
        }
        key
    }

    fn alias(&self, range: std::ops::Range<usize>) -> Result<Option<Full>> {
        let last = &self.words[range.end - 1];
        for (bare, end) in [(false, last.end), (true, last.bare_end)] {
            let key = self.key(&range, bare);
            if let Some(entities) = self.aliases.meaning(&key, self.graph)? {
                return Ok(Some(self.full(&range, end, entities, How::Alias)));
            }
        }
        Ok(None)
    }

    fn name(&self, range: std::ops::Range<usize>) -> Result<Option<Full>> {
        let words = &self.words[range.clone()];
        let last = &words[words.len() - 1];
        let stop_words_only = words.iter().all(|w| w.stop);
        if stop_words_only && words.len() == 1 {
            return Ok(None);
        }
        let mut forms = vec![(last.end, self.key(&range, false))];
        if last.bare_end != last.end {
            forms.push((last.bare_end, self.key(&range, true)));
        }
        for (end, key) in &forms {
            let entities = self.named(key)?;
            if entities.is_empty() {
                continue;
            }
            let written = &self.text[words[0].start..*end];
            let exact = self.graph.entities_named(written, NameMatch::Exact)?;
            if stop_words_only && exact.is_empty() {
                continue;
            }
            let (entities, how) = if exact.is_empty() {
                (entities, How::Normalised)
            } else {
                (exact, How::Exact)
            };
            return Ok(Some(self.full(&range, *end, entities, how)));
        }
        for (end, key) in forms {
            let others = singular(&key).map(Cow::Owned).into_iter();
            for name in others.chain(country(&key).into_iter().flatten().map(Cow::Borrowed)) {
                let entities = self.named(&name)?;
                if !entities.is_empty() {
                    return Ok(Some(self.full(&range, end, entities, How::Inflected)));
                }
            }
        }
        Ok(None)
    }

    fn named(&self, key: &str) -> Result<Vec<EntityId>> {
        Ok(self.graph.entities_named(key, NameMatch::Normalised)?)
    }
}

/// The singular of the last word, where it looks like a plural.
fn singular(key: &str) -> Option<String> {
    let word = key.rsplit(' ').next()?;
    if word.len() < 4 || word.ends_with("ss") {
        return None;
    }
    if let Some(base) = key.strip_suffix("ies") {
        return Some(format!("{base}y"));
    }
    let plural_in_es = ["ches", "shes", "sses", "xes", "zes"];
    if plural_in_es.iter().any(|end| word.ends_with(end)) {
        return key.strip_suffix("es").map(str::to_owned);
    }
    key.strip_suffix('s').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_become_singular() {
        for (plural, one) in [
            ("big cities", Some("big city")),
            ("churches", Some("church")),
            ("films", Some("film")),
            ("boss", None),
            ("bus", None),
            ("film", None),
        ] {
            assert_eq!(singular(plural).as_deref(), one, "{plural}");
        }
    }
}
