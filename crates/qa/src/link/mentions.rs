//! The mentions of one question: whole names, misspelt ones, parts of names; see `names.rs`.

use std::ops::Range;

use wherefore_graph::{Graph, NameMatch};

use super::lexicon::Lexicon;
use super::lookup::Lookup;
use super::rank::{Found, found, partial_quality, quality};
use super::spans::{Full, Search, Word};
use super::{MatchKind, Mention};
use crate::error::Result;

/// Words in the longest run that is looked for as part of a name.
const MAX_PART: usize = 6;

/// Stop words that may stand inside a part of a name.
const JOINING: [&str; 8] = ["and", "at", "for", "from", "in", "of", "on", "the"];

/// Words tried in the place of a misspelt one.
const SPELLINGS: usize = 4;

/// Unknown words of one question for which spellings are looked for: each costs a pass over all
/// words of the graph.
const MAX_UNKNOWN: usize = 8;

/// In graphs with more entities, parts of names and misspelt names are looked for only where no
/// whole name was found: reading the words of all names takes a second for each million.
const LARGE: usize = 500_000;

/// Strength of a single lower-case word, before its rarity counts.
const WEAK: f32 = 0.6;

/// One question being read.
pub(super) struct Reading<'a> {
    pub(super) text: &'a str,
    pub(super) words: Vec<Word>,
    pub(super) graph: &'a dyn Graph,
    pub(super) lookup: &'a Lookup,
}

/// Words of the question before their candidates are ranked.
struct Span {
    from: usize,
    to: usize,
    bytes: (usize, usize),
    found: Vec<Found>,
}

impl Reading<'_> {
    /// Every mention with its candidates, in no order.
    pub(super) fn mentions(&self) -> Result<Vec<Mention>> {
        let config = &self.lookup.config;
        let search = Search {
            text: self.text,
            words: &self.words,
            aliases: &self.lookup.aliases,
            graph: self.graph,
            max_words: config.max_words,
        };
        let mut taken = vec![false; self.words.len()];
        let mut spans = Vec::new();
        let mut weak = Vec::new();
        for full in search.longest()? {
            let span = whole(full);
            // longer parts of names may still want a weak word
            if self.is_weak(&span) {
                weak.push(span);
            } else {
                taken[span.from..span.to].fill(true);
                spans.push(span);
            }
        }
        let sure = !spans.is_empty() && self.graph.entity_bound() > LARGE;
        let lexicon = match sure {
            true => None,
            false => self.lookup.lexicon(self.graph)?,
        };
        let Some(lexicon) = lexicon else {
            spans.append(&mut weak);
            return self.ranked(spans, None);
        };
        let ids: Vec<Option<usize>> = (self.words.iter())
            .map(|w| lexicon.find(&w.text).or_else(|| lexicon.find(&w.bare)))
            .collect();
        if spans.is_empty() {
            self.misspelt(&lexicon, &ids, &mut taken, &mut spans)?;
        }
        self.parts(&lexicon, &ids, 2, &mut taken.clone(), &mut spans);
        for span in &weak {
            taken[span.from..span.to].fill(true);
        }
        for span in &spans {
            // a whole name in another order, or a part of one, makes its words mentions no more
            if span
                .found
                .iter()
                .any(|f| f.quality >= quality(MatchKind::Partial))
            {
                taken[span.from..span.to].fill(true);
            }
        }
        self.parts(&lexicon, &ids, 1, &mut taken, &mut spans);
        spans.append(&mut weak);
        for span in &mut spans {
            self.longer(&lexicon, &ids, span);
        }
        self.ranked(spans, Some(&lexicon))
    }

    /// Whether it is a single word that may as well be no name.
    fn is_weak(&self, span: &Span) -> bool {
        let by_user = span.found.first().is_none_or(|f| f.how == MatchKind::Alias);
        span.to - span.from == 1 && !self.words[span.from].marked && !by_user
    }

    /// Whole names in which an unknown word is read as one that is spelt alike.
    fn misspelt(
        &self,
        lexicon: &Lexicon,
        ids: &[Option<usize>],
        taken: &mut [bool],
        spans: &mut Vec<Span>,
    ) -> Result<()> {
        let odd: Vec<usize> = (0..self.words.len())
            .filter(|&i| !taken[i] && !self.words[i].stop && ids[i].is_none())
            .take(MAX_UNKNOWN)
            .collect();
        for at in odd {
            let spellings = lexicon.spelt_like(&self.words[at].bare, SPELLINGS);
            'longest: for length in (1..=self.lookup.config.max_words.min(self.words.len())).rev() {
                let first = (at + 1).saturating_sub(length);
                for from in first..=at.min(self.words.len() - length) {
                    let range = from..from + length;
                    if taken[range.clone()].contains(&true) {
                        continue;
                    }
                    for &(spelling, distance) in &spellings {
                        let key: Vec<&str> = range
                            .clone()
                            .map(|i| match i == at {
                                true => spelling,
                                false => self.words[i].text.as_str(),
                            })
                            .collect();
                        let named = self
                            .graph
                            .entities_named(&key.join(" "), NameMatch::Normalised)?;
                        if named.is_empty() {
                            continue;
                        }
                        let quality = quality(MatchKind::Misspelt) - 0.1 * (distance as f32 - 1.0);
                        let found = found(named, MatchKind::Misspelt, quality);
                        spans.push(self.span(range.clone(), found));
                        taken[range].fill(true);
                        break 'longest;
                    }
                }
            }
        }
        Ok(())
    }

    /// The longest runs, of at least `least` words, that some names hold; none overlapping.
    fn parts(
        &self,
        lexicon: &Lexicon,
        ids: &[Option<usize>],
        least: usize,
        taken: &mut [bool],
        spans: &mut Vec<Span>,
    ) {
        let most = if least == 1 { 1 } else { MAX_PART };
        for length in (least..=most.min(self.words.len())).rev() {
            for from in 0..=self.words.len() - length {
                let range = from..from + length;
                let may_stand = |i: usize| {
                    let word = &self.words[i];
                    let inside = i > from && i + 1 < range.end;
                    !taken[i] && (!word.stop || inside && JOINING.contains(&word.text.as_str()))
                };
                if range.clone().all(may_stand) {
                    let found = self.holders(lexicon, ids, range.clone());
                    if !found.is_empty() {
                        taken[range.clone()].fill(true);
                        spans.push(self.span(range, found));
                    }
                }
            }
        }
    }

    /// The entities whose names hold all the words that are not stop words.
    fn holders(&self, lexicon: &Lexicon, ids: &[Option<usize>], range: Range<usize>) -> Vec<Found> {
        let told = range.filter(|&i| !self.words[i].stop);
        let Some(words) = told.map(|i| ids[i]).collect::<Option<Vec<usize>>>() else {
            return Vec::new();
        };
        let count = words.len() as f32;
        lexicon
            .holders(&words)
            .into_iter()
            .map(|(entity, all)| Found {
                entity,
                how: MatchKind::Partial,
                quality: partial_quality(count / f32::from(all).max(count)),
            })
            .collect()
    }

    /// Adds the names that hold all words of a span that is a whole name itself.
    fn longer(&self, lexicon: &Lexicon, ids: &[Option<usize>], span: &mut Span) {
        let settled = |how: MatchKind| matches!(how, MatchKind::Alias | MatchKind::Partial);
        if span.found.first().is_some_and(|f| !settled(f.how)) {
            let more = self.holders(lexicon, ids, span.from..span.to);
            span.found.extend(more);
        }
    }

    fn span(&self, range: Range<usize>, found: Vec<Found>) -> Span {
        Span {
            from: range.start,
            to: range.end,
            bytes: (self.words[range.start].start, self.words[range.end - 1].end),
            found,
        }
    }

    fn ranked(&self, spans: Vec<Span>, lexicon: Option<&Lexicon>) -> Result<Vec<Mention>> {
        let ranker = self.lookup.ranker(&self.rest(&spans), self.graph)?;
        let mut mentions = Vec::with_capacity(spans.len());
        for span in spans {
            let strength = if self.is_weak(&span) {
                let rarity = lexicon.map_or(0.5, |l| l.rarity(&self.words[span.from].bare));
                WEAK * (0.5 + 0.5 * rarity)
            } else {
                1.0
            };
            let (from, to) = span.bytes;
            let candidates = ranker.rank(span.found, strength)?;
            if !candidates.is_empty() {
                mentions.push(Mention {
                    text: self.text[from..to].to_owned(),
                    span: Some(span.bytes),
                    candidates,
                });
            }
        }
        Ok(mentions)
    }

    /// The question without the mentions that are surely names.
    fn rest(&self, spans: &[Span]) -> String {
        let mut taken = vec![false; self.words.len()];
        for span in spans.iter().filter(|span| !self.is_weak(span)) {
            taken[span.from..span.to].fill(true);
        }
        let rest: Vec<&str> = (self.words.iter().zip(&taken))
            .filter(|(_, taken)| !**taken)
            .map(|(word, _)| word.text.as_str())
            .collect();
        rest.join(" ")
    }
}

fn whole(full: Full) -> Span {
    Span {
        from: full.from,
        to: full.to,
        bytes: full.span,
        found: (full.entities.into_iter())
            .map(|(entity, how)| Found {
                entity,
                how,
                quality: quality(how),
            })
            .collect(),
    }
}
