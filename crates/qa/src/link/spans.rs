//! The spans of a question that are somebody's whole name.

use std::ops::Range;

use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Graph, NameMatch};

use super::MatchKind;
use super::aliases::Aliases;
use super::nationalities::country;
use crate::error::Result;
use crate::words::{is_stop_word, tokens};

/// Of many entities with one name, at most this many are compared.
const MAX_NAMESAKES: usize = 256;

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
    /// Whose name it is, the surest first; empty where the user said that the words mean nothing.
    pub(super) entities: Vec<(EntityId, MatchKind)>,
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
    /// The longest names, none overlapping: aliases of the user first, then by number of words,
    /// then by how surely they were recognised. Names inside them are found as well:
    /// `president of brazil` is also about Brazil.
    pub(super) fn longest(&self) -> Result<Vec<Full>> {
        if !self.graph.knows_all_names() {
            self.prefetch()?;
        }
        let mut taken = vec![false; self.words.len()];
        let mut found = Vec::new();
        for length in (1..=self.aliases.longest().min(self.words.len())).rev() {
            self.pass(length, &mut taken, &mut found, &|range| self.alias(range))?;
        }
        for length in (1..=self.max_words.min(self.words.len())).rev() {
            self.pass(length, &mut taken, &mut found, &|range| self.name(range))?;
        }
        self.nested(&mut found)?;
        Ok(found)
    }

    /// Has a graph that is far away look for all spans together.
    fn prefetch(&self) -> Result<()> {
        let count = self.words.len();
        let mut keys = Vec::new();
        for from in 0..count {
            for to in from + 1..=count.min(from + self.max_words) {
                if !self.words[from..to].iter().all(|w| w.stop) {
                    keys.extend([self.key(&(from..to), false), self.key(&(from..to), true)]);
                }
            }
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        Ok(self.graph.prefetch_names(&keys)?)
    }

    fn pass(
        &self,
        length: usize,
        taken: &mut [bool],
        found: &mut Vec<Full>,
        look: &dyn Fn(Range<usize>) -> Result<Option<Full>>,
    ) -> Result<()> {
        let mut hits = Vec::new();
        for start in 0..=self.words.len() - length {
            if !taken[start..start + length].contains(&true) {
                hits.extend(look(start..start + length)?);
            }
        }
        // of two that overlap, the surer one
        hits.sort_by_key(|full| full.entities.first().map(|&(_, how)| how));
        for full in hits {
            if !taken[full.from..full.to].contains(&true) {
                taken[full.from..full.to].fill(true);
                found.push(full);
            }
        }
        Ok(())
    }

    /// Names inside a longer one: after its last `of`, or after a stop word that it begins with.
    fn nested(&self, found: &mut Vec<Full>) -> Result<()> {
        let mut inner = Vec::new();
        for outer in found.iter() {
            let words = &self.words[outer.from..outer.to];
            let of = words.iter().rposition(|w| w.text == "of");
            let begins = words[0].stop && !words[0].marked;
            let Some(skipped) = of.or(begins.then_some(0)) else {
                continue;
            };
            for from in outer.from + skipped + 1..outer.to {
                if let Some(full) = self.name(from..outer.to)? {
                    inner.push(full);
                    break;
                }
            }
        }
        found.append(&mut inner);
        Ok(())
    }

    fn full(&self, range: &Range<usize>, end: usize, entities: Vec<(EntityId, MatchKind)>) -> Full {
        Full {
            from: range.start,
            to: range.end,
            span: (self.words[range.start].start, end),
            entities,
        }
    }

    /// The words joined, the last one without its possessive if `bare`.
    fn key(&self, range: &Range<usize>, bare: bool) -> String {
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

    fn alias(&self, range: Range<usize>) -> Result<Option<Full>> {
        let last = &self.words[range.end - 1];
        for (bare, end) in [(false, last.end), (true, last.bare_end)] {
            let key = self.key(&range, bare);
            if let Some(entities) = self.aliases.meaning(&key, self.graph)? {
                let entities = entities
                    .into_iter()
                    .map(|e| (e, MatchKind::Alias))
                    .collect();
                return Ok(Some(self.full(&range, end, entities)));
            }
        }
        Ok(None)
    }

    fn name(&self, range: Range<usize>) -> Result<Option<Full>> {
        let words = &self.words[range.clone()];
        let last = &words[words.len() - 1];
        let stop_words_only = words.iter().all(|w| w.stop);
        if stop_words_only && words.len() == 1 && (range.start == 0 || !last.marked) {
            return Ok(None);
        }
        let mut forms = vec![(last.end, self.key(&range, false))];
        if last.bare_end != last.end {
            forms.push((last.bare_end, self.key(&range, true)));
        }
        for (end, key) in &forms {
            let named = self.named(key)?;
            let exact = match named.is_empty() {
                true => Vec::new(),
                false => self.exact(words[0].start, *end)?,
            };
            if named.is_empty() || stop_words_only && exact.is_empty() {
                continue;
            }
            let others = named.into_iter().filter(|e| !exact.contains(e));
            let mut entities: Vec<_> = exact.iter().map(|&e| (e, MatchKind::Exact)).collect();
            entities.extend(others.map(|e| (e, MatchKind::Normalised)));
            self.add_country(key, &mut entities)?;
            return Ok(Some(self.full(&range, *end, entities)));
        }
        for (end, key) in &forms {
            let mut entities = Vec::new();
            if let Some(singular) = singular(key) {
                let named = self.named(&singular)?;
                entities.extend(named.into_iter().map(|e| (e, MatchKind::Inflected)));
            }
            self.add_country(key, &mut entities)?;
            if !entities.is_empty() {
                return Ok(Some(self.full(&range, *end, entities)));
            }
        }
        Ok(None)
    }

    fn add_country(&self, key: &str, entities: &mut Vec<(EntityId, MatchKind)>) -> Result<()> {
        for name in country(key).into_iter().flatten() {
            for entity in self.named(name)? {
                if entities.iter().all(|&(old, _)| old != entity) {
                    entities.push((entity, MatchKind::Inflected));
                }
            }
        }
        Ok(())
    }

    /// The entities called exactly as it is written, with the punctuation that follows (`What
    /// If...`) or else without.
    fn exact(&self, start: usize, end: usize) -> Result<Vec<EntityId>> {
        let rest = &self.text[end..];
        let marks = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_punctuation())
                .len();
        if marks > 0 {
            let named = &self.text[start..end + marks];
            let found = self.graph.entities_named(named, NameMatch::Exact)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let named = &self.text[start..end];
        Ok(self.graph.entities_named(named, NameMatch::Exact)?)
    }

    fn named(&self, key: &str) -> Result<Vec<EntityId>> {
        let mut named = self.graph.entities_named(key, NameMatch::Normalised)?;
        named.truncate(MAX_NAMESAKES);
        Ok(named)
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
