//! Which words of a question stand for what was answered before.

use super::super::lang::{Gap, Lang, Op};
use super::super::tokens::Words;
use super::spoken::{Part, Spoken};

/// Words of a fragment that leaves out what it is asked of.
const FRAGMENT: usize = 3;
/// A question of more words that refers to nothing is whole in itself.
const SHORT: usize = 5;
/// Phrases that a question may begin with before it says anything.
const BEGINNINGS: usize = 3;

/// How a question begins.
pub(super) struct Cues {
    /// Where it says something: after `and`, `what about`.
    pub(super) from: usize,
}

/// What words may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    One,
    Many,
    /// `the two`.
    Pair,
}

/// Words that stand for what was answered before.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) words: (usize, usize),
    pub(super) text: String,
    pub(super) wanted: Wanted,
    /// `of these`: some are chosen.
    pub(super) is_partitive: bool,
    /// The words may as well stand for something in the question, or for nothing.
    pub(super) is_weak: bool,
}

/// Whether a question may follow another, by its words alone.
pub(super) fn may_follow(text: &str, lang: &Lang) -> bool {
    let words = Words::new(text, lang);
    let said = &lang.follow;
    let refers = |word: &str| {
        let all = [
            &said.one,
            &said.many,
            &said.place,
            &said.own_one,
            &said.own_many,
            &said.ones,
            &said.pairs,
        ];
        all.iter().any(|some| some.contains(word))
    };
    Cues::begin(text, lang).from > 0
        || words.slots.len() <= SHORT
        || words.all.iter().any(|word| refers(&word.lower))
}

impl Cues {
    pub(super) fn begin(text: &str, lang: &Lang) -> Self {
        let words = Words::new(text, lang);
        let lower: Vec<&str> = words.all.iter().map(|w| w.lower.as_str()).collect();
        let mut at = 0;
        for _ in 0..BEGINNINGS {
            let begins = |phrase: &String| {
                let length = phrase.split(' ').count();
                let said = lower.get(at..at + length)?;
                phrase.split(' ').eq(said.iter().copied()).then_some(length)
            };
            let joined = || {
                let word = lower.get(at)?;
                lang.follow.joined.contains(*word).then_some(1)
            };
            match (lang.follow.about.iter().filter_map(begins).max()).or_else(joined) {
                Some(length) => at += length,
                None => break,
            }
        }
        let from = words.all.get(at).map_or(0, |word| word.start);
        Self { from }
    }
}

impl Reference {
    /// Words that were put in.
    pub(super) fn left_out(words: (usize, usize), text: String, is_partitive: bool) -> Self {
        Self {
            words,
            text,
            wanted: Wanted::Many,
            is_partitive,
            is_weak: false,
        }
    }
}

/// The words of a question that stand for what was answered before.
pub(super) fn references(spoken: &Spoken, lang: &Lang) -> Vec<Reference> {
    let words = &spoken.words;
    let said = &lang.follow;
    let lower = |at: usize| words.all.get(at).map(|w| w.lower.as_str());
    let is_of = |word: &str| lang.between(word) == Some(Gap::Of) && !lang.is_possessive(word);
    let is_yes_no = lower(0).is_some_and(|first| lang.yes_no.contains(first));
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = lower(at) {
        let before = at.checked_sub(1).and_then(lower);
        let next = lower(at + 1);
        let is_quoted = words.quoted.iter().any(|q| (q.0..q.1).contains(&at));
        let is_inside = |n: &super::spoken::At| (n.words.0..n.words.1).contains(&at);
        if is_quoted || spoken.names().any(is_inside) {
            at += 1;
            continue;
        }
        let is_partitive = before.is_some_and(is_of);
        let after_verb = before.is_none_or(|w| lang.yes_no.contains(w));
        let is_own = said.own_one.contains(word) || said.own_many.contains(word);
        let many = said.many.contains(word) || said.own_many.contains(word);
        let mut wanted = if many { Wanted::Many } else { Wanted::One };
        let mut length = 1;
        let mut picks = is_partitive;
        let is_reference = if said.pointing.contains(word) {
            if next.is_some_and(|next| said.ones.contains(next)) {
                length = 2;
                true
            } else if next.is_some_and(|next| said.clauses.contains(next)) {
                false
            } else if many {
                true
            } else {
                let is_class =
                    |p: &super::spoken::At| p.words.0 == at + 1 && matches!(p.part, Part::Class(_));
                let noun_follows = spoken.parts.iter().any(is_class);
                let joined = before.is_none_or(|w| lang.between(w).is_some());
                next.is_none() || after_verb || noun_follows && joined
            }
        } else if said.place.contains(word) {
            wanted = Wanted::Many;
            !before.is_some_and(|before| said.being.contains(before)) && before.is_some()
        } else if is_own {
            next.is_some()
        } else if said.one.contains(word) || many {
            true
        } else if said.ones.contains(word) && before.is_some_and(|w| lang.picks(w)) {
            // `which one of the countries` says of which
            wanted = Wanted::Many;
            picks = true;
            let of = next.is_some_and(is_of);
            !of
        } else if said.pairs.contains(word) && next.is_none_or(|w| lang.yes_no.contains(w)) {
            wanted = Wanted::Pair;
            picks = true;
            let first = at.checked_sub(2).and_then(lower);
            first.is_some_and(is_of)
        } else {
            // `the population of which`
            picks = true;
            wanted = Wanted::Many;
            is_partitive && lang.picks(word) && next.is_none()
        };
        if is_reference {
            let named_before = spoken.names().any(|n| n.words.1 <= at);
            let named_after = spoken.names().any(|n| n.words.0 > at);
            // `countries with their capitals`; but `which currency do their neighbours use`
            let own_before = is_own
                && spoken.parts.iter().any(|p| {
                    let between = || (p.words.1..at).filter_map(lower);
                    matches!(p.part, Part::Class(_) | Part::Relation(_))
                        && p.words.1 <= at
                        && !between().any(|w| lang.yes_no.contains(w) && w != "has" && w != "have")
                });
            let impersonal = named_after && !is_yes_no && !is_own && !is_partitive && length == 1;
            let is_weak = !picks && (named_before || own_before || impersonal);
            found.push(Reference {
                words: (at, at + length),
                text: spoken.text((at, at + length)).to_lowercase(),
                wanted,
                is_partitive: picks,
                is_weak,
            });
        }
        at += length;
    }
    found
}

/// Where a question leaves out what it is asked of: the end of a fragment, or the place after its
/// question word where it has no noun.
pub(super) fn left_out(spoken: &Spoken, lang: &Lang) -> Option<usize> {
    let words = &spoken.words;
    let asks = |w: &&super::super::tokens::Word| lang.asks(&w.lower);
    let begins = words.all.first()?;
    if spoken.names().next().is_some() || lang.yes_no.contains(&begins.lower) {
        return None;
    }
    let covered = |slot: usize, by: &dyn Fn(&Part) -> bool| {
        let here = |p: &&super::spoken::At| (p.slots.0..p.slots.1).contains(&slot);
        spoken.parts.iter().filter(here).any(|p| by(&p.part))
    };
    let slots = 0..words.slots.len();
    let is_light = |slot: usize| words.all[words.slots[slot]].is_light;
    match words.all.iter().find(asks) {
        None => {
            let is_said = |slot| covered(slot, &|p| matches!(p, Part::Relation(_)));
            let some = slots.clone().any(is_said);
            let all = slots.clone().all(|slot| is_said(slot) || is_light(slot));
            (some && all && slots.len() <= FRAGMENT).then(|| words.all.last().map(|w| w.end))?
        }
        Some(asking) => {
            let says = |p: &Part| {
                matches!(
                    p,
                    Part::Superlative | Part::Number | Part::Compared | Part::Operator(_)
                )
            };
            let all = slots
                .clone()
                .all(|slot| covered(slot, &says) || is_light(slot));
            let counts = words.phrases.iter().filter(|p| p.op == Op::Count);
            let counted = counts.map(|p| words.all[p.to - 1].end).max();
            (all && !slots.is_empty()).then(|| counted.unwrap_or(asking.end))
        }
    }
}
