//! What people say for the words of labels: `who looks after` for `keeper`.
//!
//! A line of the list is one meaning: its names, further words that labels have for it, and what is
//! said for it without being its name. Names are both on labels and said. Everything is compared by
//! its stem.

use hashbrown::HashMap;

use super::adverb;
use crate::words::stem;

/// The number of a line.
pub(crate) type Sense = u16;

/// Meanings by the words of labels, and by what is said.
#[derive(Debug, Default)]
pub(crate) struct Wording {
    labels: HashMap<String, Vec<Sense>>,
    said: HashMap<String, Vec<Sense>>,
    /// Phrases of several words by the stem of the first.
    phrases: HashMap<String, Vec<(Vec<String>, Sense)>>,
}

impl Wording {
    /// Reads a list: `name, name ; label, label | said, said of several words`; lines that begin
    /// with `#` and empty ones say nothing.
    pub(super) fn read(list: &str) -> Self {
        let mut found = Self::default();
        let says = |line: &&str| !line.starts_with('#') && !line.trim().is_empty();
        for (sense, line) in (0..).zip(list.lines().filter(says)) {
            let (names, said) = line.split_once('|').unwrap_or((line, ""));
            let (names, labels) = names.split_once(';').unwrap_or((names, ""));
            for name in phrases_of(names) {
                if let [one] = &name[..] {
                    note(&mut found.labels, one, sense);
                }
                found.say(name, sense);
            }
            for label in phrases_of(labels).iter().flatten() {
                note(&mut found.labels, label, sense);
            }
            for phrase in phrases_of(said) {
                found.say(phrase, sense);
            }
        }
        found
    }

    fn say(&mut self, phrase: Vec<String>, sense: Sense) {
        if let [one] = &phrase[..] {
            return note(&mut self.said, one, sense);
        }
        let mut words = phrase.into_iter();
        let of = self.phrases.entry(words.next().unwrap_or_default());
        let (of, rest) = (of.or_default(), words.collect());
        // one line after the other: what is said already stands at the end
        let mut here = of.iter().rev().take_while(|(_, of)| *of == sense);
        if !here.any(|(said, _)| *said == rest) {
            of.push((rest, sense));
        }
    }

    /// What a word of a label means.
    pub(crate) fn of_label(&self, stem: &str) -> &[Sense] {
        self.labels.get(stem).map_or(&[], Vec::as_slice)
    }

    /// What a word of a question may mean.
    pub(crate) fn of_said(&self, stem: &str) -> &[Sense] {
        self.said.get(stem).map_or(&[], Vec::as_slice)
    }

    /// Whether a word is said for the word of a label.
    pub(crate) fn may_mean(&self, said: &str, label: &str) -> bool {
        let of = self.of_label(label);
        !of.is_empty() && self.of_said(said).iter().any(|sense| of.contains(sense))
    }

    /// What phrases of several words that begin at the first of these stems mean, each with its
    /// length.
    pub(crate) fn of_phrase(&self, stems: &[&str]) -> Vec<(usize, Sense)> {
        let Some((first, rest)) = stems.split_first() else {
            return Vec::new();
        };
        let known = self.phrases.get(*first).into_iter().flatten();
        let said = known.filter(|(phrase, _)| {
            phrase.len() <= rest.len() && phrase.iter().zip(rest).all(|(a, b)| a == b)
        });
        said.map(|(phrase, sense)| (phrase.len() + 1, *sense))
            .collect()
    }
}

fn note(of: &mut HashMap<String, Vec<Sense>>, stem: &str, sense: Sense) {
    let senses = of.entry(stem.to_owned()).or_default();
    if !senses.contains(&sense) {
        senses.push(sense);
    }
}

/// The phrases between commas, each as the stems of its words.
pub(super) fn phrases_of(list: &str) -> Vec<Vec<String>> {
    let words = |phrase: &str| -> Vec<String> {
        let all = phrase.split([' ', '-']).filter(|word| !word.is_empty());
        all.map(|word| stem(adverb(word)).into_owned()).collect()
    };
    let all = list.split(',').map(words);
    all.filter(|phrase| !phrase.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_means_labels_and_no_label_means_what_is_said() {
        let list = "# people\nkeeper, warden ; guarded | look after, run\n\nprice | cost";
        let wording = Wording::read(list);
        assert!(wording.may_mean("run", "warden"));
        assert!(
            wording.may_mean(&stem("keeper"), "warden"),
            "a name of the same"
        );
        assert!(!wording.may_mean("warden", "run"), "`run` is no name of it");
        assert!(!wording.may_mean("cost", "warden"));
        let guarded = stem("guarded");
        assert!(wording.may_mean("run", &guarded) && !wording.may_mean(&guarded, "warden"));
        let phrase: Vec<_> = ["looks", "after", "it"].map(stem).to_vec();
        let phrase: Vec<&str> = phrase.iter().map(AsRef::as_ref).collect();
        assert_eq!(wording.of_phrase(&phrase), [(2, 0)]);
        assert_eq!(wording.of_phrase(&phrase[..1]), []);
    }
}
