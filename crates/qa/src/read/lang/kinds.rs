//! What things that are called by a noun have: courses have credits and a lecturer, and students
//! are enrolled in them.
//!
//! A line of the list is one kind: its nouns, words of relations that such things have, and words
//! of relations that lead to them. Everything is compared by its stem; a phrase says that its words
//! stand in one label.

use hashbrown::HashMap;

use super::phrases_of;

/// The word that turns a relation round: who directs is one that others are directed by.
const PASSIVE: &str = "by";

/// Words of relations, each as the stems of a phrase, and whether it is passive.
#[derive(Debug, Default)]
pub(in super::super) struct Profile {
    has: Vec<(Vec<String>, bool)>,
    led_to_by: Vec<(Vec<String>, bool)>,
}

impl Profile {
    /// Whether things of the kind have a relation of this label, which is passive or not, or one
    /// leads to them.
    pub(in super::super) fn has(&self, label: &[String], is_passive: bool, is_had: bool) -> bool {
        let words = if is_had { &self.has } else { &self.led_to_by };
        words.iter().any(|(all, passive)| {
            (is_had || *passive == is_passive) && all.iter().all(|w| label.contains(w))
        })
    }
}

/// The phrases between commas, and which are passive.
fn words_of(list: &str) -> Vec<(Vec<String>, bool)> {
    let split = |mut phrase: Vec<String>| {
        let is_passive = phrase.len() > 1 && phrase.last().is_some_and(|w| w == PASSIVE);
        phrase.truncate(phrase.len() - usize::from(is_passive));
        (phrase, is_passive)
    };
    phrases_of(list).into_iter().map(split).collect()
}

/// The list.
#[derive(Debug, Default)]
pub(in super::super) struct KindList {
    profiles: Vec<Profile>,
    by_noun: HashMap<Vec<String>, Vec<usize>>,
}

impl KindList {
    /// Reads lines `noun, noun | word, word | word, word`; lines that begin with `#` and empty ones
    /// say nothing.
    pub(super) fn read(list: &str) -> Self {
        let mut found = Self::default();
        let says = |line: &&str| !line.starts_with('#') && !line.trim().is_empty();
        for line in list.lines().filter(says) {
            let mut fields = line.splitn(3, '|');
            let mut next = || fields.next().unwrap_or_default();
            let nouns = next();
            let (has, led_to_by) = (words_of(next()), words_of(next()));
            found.profiles.push(Profile { has, led_to_by });
            for noun in phrases_of(nouns) {
                let of = found.by_noun.entry(noun).or_default();
                of.push(found.profiles.len() - 1);
            }
        }
        found
    }

    /// What things that are called by these words have; several where they mean several kinds.
    pub(in super::super) fn of(&self, stems: &[String]) -> Vec<&Profile> {
        let found = self.by_noun.get(stems).or_else(|| {
            // `start-ups`: short words keep their s
            let (last, before) = stems.split_last()?;
            let one = last.strip_suffix('s')?.to_owned();
            self.by_noun.get(&[before, &[one]].concat())
        });
        let all = found.into_iter().flatten();
        all.map(|at| &self.profiles[*at]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::stem;

    #[test]
    fn a_noun_has_what_its_line_says() {
        let list = "# x\nstart-up, firm | founder, round of funding | invested, funded by\n";
        let list = KindList::read(list);
        let stems = |words: &str| -> Vec<String> {
            words.split(' ').map(|w| stem(w).into_owned()).collect()
        };
        let of = list.of(&stems("start ups"));
        let [firm] = of[..] else { panic!("{of:?}") };
        assert!(firm.has(&stems("main founder"), false, true));
        assert!(!firm.has(&stems("founder"), false, false));
        assert!(firm.has(&stems("invested"), false, false));
        assert!(!firm.has(&stems("invested"), true, false), "invested by");
        assert!(firm.has(&stems("funded"), true, false));
        assert!(
            !firm.has(&stems("funding"), false, true),
            "a phrase is whole"
        );
        assert!(firm.has(&stems("funding rounds of"), false, true));
        assert!(list.of(&stems("ups")).is_empty());
    }
}
