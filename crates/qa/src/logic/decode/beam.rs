//! Beam search over the tokens of any tokenizer, inside a grammar.
//!
//! ```text
//! score(t₁ … tₙ) = (1 / nᵖ) · Σ log p(tᵢ | t₁ … tᵢ₋₁)
//! ```
//!
//! p is `length_penalty`. Tokens that the grammar forbids are left out before the best are chosen;
//! their share is not given to the others. A prefix ends where the form is whole and the end token
//! is among the best.

use super::grammar::{Grammar, State};
use super::trie::Trie;
use crate::error::Result;
use crate::logic::Form;

/// How many of the likeliest tokens are tried before all that may follow are listed.
const LIKELY: [usize; 2] = [64, 1024];

/// Gives scores for what comes next: a language model with its prompt, or a double in tests.
pub trait NextToken {
    /// For each prefix the logarithms of the probabilities of all tokens of the vocabulary, in
    /// order. Prefixes are what was written so far, without the prompt.
    fn scores(&mut self, prefixes: &[&[u32]]) -> Result<Vec<Vec<f32>>>;
}

/// The tokens of a tokenizer as the bytes that they write.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    tokens: Vec<Vec<u8>>,
    end: u32,
    /// All tokens that write something.
    trie: Trie,
    /// Tokens by the node of the trie in which they end.
    ends: std::collections::HashMap<u32, Vec<u32>>,
}

impl Vocabulary {
    /// The bytes of each token, in order of their ids; control tokens write nothing. `end` ends
    /// the text.
    pub fn new(tokens: Vec<Vec<u8>>, end: u32) -> Self {
        let trie = Trie::new(tokens.iter().filter(|bytes| !bytes.is_empty()));
        let mut ends = std::collections::HashMap::<u32, Vec<u32>>::new();
        for (id, bytes) in (0u32..).zip(&tokens) {
            let node = bytes
                .iter()
                .try_fold(Trie::ROOT, |node, &byte| trie.next(node, byte));
            if let Some(node) = node.filter(|_| !bytes.is_empty() && id != end) {
                ends.entry(node).or_default().push(id);
            }
        }
        Self {
            tokens,
            end,
            trie,
            ends,
        }
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// What tokens write, one after the other.
    pub fn text(&self, tokens: &[u32]) -> Vec<u8> {
        tokens
            .iter()
            .filter_map(|&token| self.tokens.get(token as usize))
            .flatten()
            .copied()
            .collect()
    }

    /// The tokens that may follow, each with the state after it; not the end.
    pub fn allowed(&self, grammar: &Grammar, state: &State) -> Vec<(u32, State)> {
        let mut found = Vec::new();
        let mut open = vec![(Trie::ROOT, state.clone())];
        while let Some((node, state)) = open.pop() {
            for &(byte, child) in self.trie.children(node) {
                let Some(next) = grammar.next(&state, byte) else {
                    continue;
                };
                for &token in self.ends.get(&child).into_iter().flatten() {
                    found.push((token, next.clone()));
                }
                open.push((child, next));
            }
        }
        found
    }

    /// The tokens with the highest scores among those that may follow, at most `count` and not in
    /// order: what [`Vocabulary::allowed`] gives, without looking at tokens that are too unlikely.
    fn best(
        &self,
        grammar: &Grammar,
        state: &State,
        scores: &[f32],
        count: usize,
    ) -> Vec<(u32, State)> {
        let score = |token: u32| scores.get(token as usize).copied().unwrap_or(f32::NAN);
        let mut order: Vec<u32> = (0..self.tokens.len().min(scores.len()) as u32).collect();
        for likely in LIKELY {
            if likely >= order.len() {
                break;
            }
            order.select_nth_unstable_by(likely, |&a, &b| score(b).total_cmp(&score(a)));
            let mut top = order[..likely].to_vec();
            top.sort_unstable_by(|&a, &b| score(b).total_cmp(&score(a)));
            let mut found = Vec::with_capacity(count);
            for token in top {
                let bytes = &self.tokens[token as usize];
                if bytes.is_empty() || token == self.end {
                    continue;
                }
                if let Some(state) = grammar.read(state, bytes) {
                    found.push((token, state));
                    if found.len() == count {
                        return found;
                    }
                }
            }
        }
        let mut all = self.allowed(grammar, state);
        all.sort_by(|a, b| score(b.0).total_cmp(&score(a.0)));
        all.truncate(count);
        all
    }
}

/// Settings of [`beam`].
#[derive(Clone, Debug, PartialEq)]
pub struct BeamConfig {
    /// Prefixes that are kept at each step, and most forms that are given.
    pub beams: usize,
    /// Most tokens of a form.
    pub max_tokens: usize,
    /// The power of the length by which scores are divided.
    pub length_penalty: f32,
    /// A prefix whose score cannot come nearer to the best form's than this is given up.
    pub spread: f32,
}

impl Default for BeamConfig {
    fn default() -> Self {
        Self {
            beams: 8,
            max_tokens: 256,
            length_penalty: 1.0,
            spread: f32::INFINITY,
        }
    }
}

/// A form that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The form.
    pub form: Form,
    /// Its score: a mean of logarithms, 0 at best.
    pub score: f32,
    /// The tokens, without the end.
    pub tokens: Vec<u32>,
}

struct Prefix {
    tokens: Vec<u32>,
    state: State,
    sum: f32,
}

/// A prefix and what comes after it: sum, parent, token and state; none is the end.
type Continued = (f32, usize, Option<(u32, State)>);

/// A beam search that is asked step by step, so that several can share one pass of a model.
pub struct Search<'a> {
    grammar: &'a Grammar,
    vocabulary: &'a Vocabulary,
    config: &'a BeamConfig,
    open: Vec<Prefix>,
    whole: Vec<Decoded>,
}

impl<'a> Search<'a> {
    /// A search with nothing written yet: one open prefix, the empty one.
    pub fn new(grammar: &'a Grammar, vocabulary: &'a Vocabulary, config: &'a BeamConfig) -> Self {
        Self {
            grammar,
            vocabulary,
            config,
            open: vec![Prefix {
                tokens: Vec::new(),
                state: grammar.start(),
                sum: 0.0,
            }],
            whole: Vec::new(),
        }
    }

    /// What is being written. None means that the search is over.
    pub fn open(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.open.iter().map(|prefix| prefix.tokens.as_slice())
    }

    /// Takes the scores of what follows each open prefix, in order. The prefixes that are open now:
    /// each with the place of the one that it continues, and its last token.
    pub fn advance(&mut self, scores: &[Vec<f32>]) -> Vec<(u32, u32)> {
        let config = self.config;
        let mut next: Vec<Continued> = Vec::new();
        for (i, (prefix, scores)) in self.open.iter().zip(scores).enumerate() {
            if self.grammar.is_whole(&prefix.state) {
                let end = scores.get(self.vocabulary.end as usize).copied();
                next.push((prefix.sum + end.unwrap_or(f32::NAN), i, None));
            }
            if prefix.tokens.len() < config.max_tokens {
                let best = self
                    .vocabulary
                    .best(self.grammar, &prefix.state, scores, config.beams);
                for (token, state) in best {
                    let score = scores.get(token as usize).copied().unwrap_or(f32::NAN);
                    next.push((prefix.sum + score, i, Some((token, state))));
                }
            }
        }
        next.retain(|(score, ..)| *score > f32::NEG_INFINITY);
        next.sort_by(|a, b| b.0.total_cmp(&a.0));
        next.truncate(config.beams);
        let mut following = Vec::with_capacity(next.len());
        let mut from = Vec::with_capacity(next.len());
        for (sum, parent, step) in next {
            let mut tokens = self.open[parent].tokens.clone();
            match step {
                Some((token, state)) => {
                    tokens.push(token);
                    following.push(Prefix { tokens, state, sum });
                    from.push((parent as u32, token));
                }
                None => {
                    // what the grammar lets through is text and parses, but for its limits
                    let bytes = self.vocabulary.text(&tokens);
                    let form = std::str::from_utf8(&bytes).ok().map(str::parse::<Form>);
                    if let Some(Ok(form)) = form {
                        self.whole.push(Decoded {
                            form,
                            score: self.rated(sum, tokens.len() + 1),
                            tokens,
                        });
                    }
                }
            }
        }
        self.whole.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.whole.truncate(config.beams);
        // a prefix only loses by going on, unless length is forgiven
        let reach = |sum: f32| self.rated(sum, config.max_tokens + 1);
        let is_full = self.whole.len() == config.beams;
        let worst = self.whole.last().map_or(f32::NEG_INFINITY, |w| w.score);
        let best = self.whole.first().map_or(f32::NEG_INFINITY, |w| w.score);
        let hopeless =
            |sum: f32| is_full && worst >= reach(sum) || best - reach(sum) > config.spread;
        let kept: Vec<bool> = following.iter().map(|p| !hopeless(p.sum)).collect();
        let mut keep = kept.iter();
        following.retain(|_| keep.next().copied().unwrap_or(true));
        let mut keep = kept.iter();
        from.retain(|_| keep.next().copied().unwrap_or(true));
        self.open = following;
        from
    }

    /// The forms that were written, best first.
    pub fn finish(self) -> Vec<Decoded> {
        self.whole
    }

    fn rated(&self, sum: f32, length: usize) -> f32 {
        sum / (length.max(1) as f32).powf(self.config.length_penalty)
    }
}

/// The best forms that the grammar allows, best first. None where nothing came to an end within
/// `max_tokens`.
pub fn beam(
    grammar: &Grammar,
    vocabulary: &Vocabulary,
    model: &mut dyn NextToken,
    config: &BeamConfig,
) -> Result<Vec<Decoded>> {
    let mut search = Search::new(grammar, vocabulary, config);
    while search.open().len() > 0 {
        let prefixes: Vec<&[u32]> = search.open().collect();
        let scores = model.scores(&prefixes)?;
        search.advance(&scores);
    }
    Ok(search.finish())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    use super::*;
    use crate::logic::decode::Lexicon;
    use crate::logic::print::tests::any_form;

    /// Scores that depend on prefix and seed alone.
    struct Dice(u64, usize);

    impl NextToken for Dice {
        fn scores(&mut self, prefixes: &[&[u32]]) -> Result<Vec<Vec<f32>>> {
            let of = |prefix: &[u32], token: usize| {
                let bytes: Vec<u8> = prefix.iter().flat_map(|t| t.to_le_bytes()).collect();
                let hash = xxh3_64_with_seed(&bytes, self.0 ^ (token as u64) << 20);
                -((hash % 1000) as f32) / 100.0
            };
            Ok(prefixes
                .iter()
                .map(|prefix| (0..self.1).map(|token| of(prefix, token)).collect())
                .collect())
        }
    }

    /// Writes one text, token by token, whatever it has to write instead where that is forbidden.
    struct Dictated<'a>(&'a [u8], &'a Vocabulary);

    impl NextToken for Dictated<'_> {
        fn scores(&mut self, prefixes: &[&[u32]]) -> Result<Vec<Vec<f32>>> {
            let score = |prefix: &[u32], token: usize| {
                let written = self.1.text(prefix);
                let rest = self.0.strip_prefix(written.as_slice()).unwrap_or_default();
                let bytes = &self.1.tokens[token];
                let fits = match bytes.as_slice() {
                    [] => rest.is_empty() && written.len() == self.0.len(),
                    bytes => rest.starts_with(bytes),
                };
                if fits {
                    -0.1 / bytes.len().max(1) as f32
                } else {
                    -9.0
                }
            };
            Ok(prefixes
                .iter()
                .map(|prefix| (0..self.1.len()).map(|t| score(prefix, t)).collect())
                .collect())
        }
    }

    fn bytes_and(fragments: &[&str]) -> Vocabulary {
        let mut tokens: Vec<Vec<u8>> = vec![Vec::new()];
        tokens.extend((0..=255u8).map(|b| vec![b]));
        tokens.extend(fragments.iter().map(|f| f.as_bytes().to_vec()));
        Vocabulary::new(tokens, 0)
    }

    const FRAGMENTS: [&str; 14] = [
        "(JOIN ",
        "(R ",
        ")) ",
        "(AND (",
        "won",
        " [Lou",
        " Seal]",
        "2010",
        ") (",
        "))",
        "located_in",
        "(COUNT ",
        "ARG",
        "MAX (JOIN",
    ];

    #[test]
    fn the_best_form_is_written_and_a_forbidden_name_is_not() {
        let vocabulary = bytes_and(&FRAGMENTS);
        let grammar = Grammar {
            relations: Lexicon::listed(["won", "located_in"]),
            entities: Lexicon::listed(["Lou Seal", "Giants"]),
            classes: Lexicon::listed(["team"]),
            ..Grammar::default()
        };
        let write = |text: &str| {
            let mut model = Dictated(text.as_bytes(), &vocabulary);
            beam(&grammar, &vocabulary, &mut model, &BeamConfig::default()).unwrap()
        };
        for text in [
            "(JOIN (R won) [Lou Seal])",
            "(COUNT (AND team (JOIN won Giants)))",
            "(ARGMAX (JOIN won Giants) (JOIN (R won) located_in))",
            "(AND (lt located_in 2010) (JOIN won 1995-02-14) team)",
            "(TC (JOIN won \"x y\") located_in NOW)",
        ] {
            assert_eq!(write(text)[0].form.to_string(), text);
        }
        let instead = write("(JOIN (R lost) [Lou Seal])");
        assert!(instead.iter().all(|d| d.form.relations()[0].name != "lost"));
        assert_eq!(grammar.read(&grammar.start(), b"(JOIN (R lo)"), None);
    }

    #[test]
    fn prefixes_that_no_form_begins_with_are_refused() {
        let grammar = Grammar::default();
        let start = grammar.start();
        for bad in [
            "JOIN",
            "((",
            "(join",
            "(JOIN  r",
            "(JOIN (S",
            "(JOIN r [])",
            "(AND [a])",
            "(JOIN r (COUNT",
            "(JOIN r 1994-13",
            "(JOIN r 1994-02-4",
            "(lt r NOW",
            "(TC [a] r 19945",
            "(JOIN r x",
            "(JOIN r [ ]",
            "(JOIN 5",
            "(JOIN r [a\\",
        ] {
            assert_eq!(grammar.read(&start, bad.as_bytes()), None, "{bad}");
        }
        let whole = grammar.read(&start, b"(JOIN r [a b])").unwrap();
        assert!(grammar.is_whole(&whole));
        assert_eq!(grammar.next(&whole, b' '), None);
        let open = grammar.read(&start, b"(JOIN r [a b]").unwrap();
        assert!(!grammar.is_whole(&open));
    }

    proptest! {
        #[test]
        fn all_that_is_written_parses_and_names_what_is_listed(
            seed: u64,
            names in prop::collection::vec("[a-z0-9 ]{0,3}[a-z]", 1..5),
            fragments in prop::collection::vec("[()A-Z \\[\\]a-z0-9]{1,4}", 0..12),
        ) {
            let mut fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
            fragments.extend(FRAGMENTS);
            let vocabulary = bytes_and(&fragments);
            let grammar = Grammar {
                relations: Lexicon::listed(&names),
                entities: Lexicon::listed(&names),
                classes: Lexicon::listed(&names[..1]),
                max_depth: 4,
                ..Grammar::default()
            };
            let config = BeamConfig { beams: 4, max_tokens: 60, ..BeamConfig::default() };
            let mut model = Dice(seed, vocabulary.len());
            for decoded in beam(&grammar, &vocabulary, &mut model, &config).unwrap() {
                let text = decoded.form.to_string();
                prop_assert_eq!(vocabulary.text(&decoded.tokens), text.as_bytes());
                prop_assert!(decoded.form.names().iter().all(|n| names.iter().any(|m| m == n)), "{}", text);
                prop_assert!(decoded.form.relations().iter().all(|r| names.contains(&r.name)), "{}", text);
            }
        }

        #[test]
        fn the_best_tokens_are_those_of_the_whole_list(
            seed: u64,
            written in prop::sample::select(vec!["", "(", "(JOIN ", "(JOIN (R won) [", "(AND (JOIN won [a b]) "]),
            count in 1usize..12,
        ) {
            let mut tokens: Vec<Vec<u8>> = vec![Vec::new()];
            tokens.extend((0..=255u8).map(|b| vec![b]));
            tokens.extend(FRAGMENTS.iter().map(|f| f.as_bytes().to_vec()));
            tokens.extend((0..900u32).map(|i| format!("w{i}").into_bytes()));
            let vocabulary = Vocabulary::new(tokens, 0);
            let grammar = Grammar::default();
            let state = grammar.read(&grammar.start(), written.as_bytes()).unwrap();
            // no two scores are the same
            let scores: Vec<f32> = (0..vocabulary.len() as u64)
                .map(|t| ((xxh3_64_with_seed(&t.to_le_bytes(), seed) % 4096) * 2048 + t) as f32)
                .collect();
            let mut best: Vec<u32> = vocabulary
                .best(&grammar, &state, &scores, count).iter().map(|b| b.0).collect();
            let mut all: Vec<u32> = vocabulary.allowed(&grammar, &state).iter().map(|b| b.0).collect();
            all.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
            all.truncate(count);
            best.sort_unstable();
            all.sort_unstable();
            prop_assert_eq!(best, all);
        }

        #[test]
        fn what_is_accepted_parses(choices in prop::collection::vec(any::<u8>(), 1..120)) {
            // a walk of random allowed bytes
            let grammar = Grammar::default();
            let mut state = grammar.start();
            let mut text = Vec::new();
            for choice in choices {
                let open: Vec<u8> = (0..=255u8).filter(|&b| grammar.next(&state, b).is_some()).collect();
                if open.is_empty() {
                    break;
                }
                let byte = open[usize::from(choice) % open.len()];
                state = grammar.next(&state, byte).unwrap();
                text.push(byte);
                if grammar.is_whole(&state) {
                    let text = String::from_utf8(text.clone()).unwrap();
                    prop_assert!(text.parse::<Form>().is_ok(), "{}", text);
                }
            }
        }

        #[test]
        fn forms_over_listed_names_are_accepted(form in any_form()) {
            // quotes with escapes and typed constants are not offered; all else is
            let text = form.to_string();
            let offered = !text.contains(['\\', '^', '@']) && text.starts_with('(') && text.is_ascii()
                && !text.contains(|c: char| c.is_control());
            let relations: Vec<_> = form.relations().iter().map(|r| r.name.clone()).collect();
            let grammar = Grammar {
                relations: Lexicon::listed(&relations),
                entities: Lexicon::listed(form.names()),
                classes: Lexicon::listed(form.names()),
                max_depth: 32,
                ..Grammar::default()
            };
            let simple = offered && !has_odd_constant(&form);
            if simple {
                let state = grammar.read(&grammar.start(), text.as_bytes());
                prop_assert!(state.is_some_and(|s| grammar.is_whole(&s)), "{}", text);
            }
        }
    }

    /// Constants where the machine offers none: as operands, `NOW` outside of `TC`, quotes in
    /// comparisons, numbers as times.
    fn has_odd_constant(form: &Form) -> bool {
        use crate::logic::{Constant, Moment, Number, Than};
        let odd_here = match form {
            Form::Compare(_, _, c) => {
                !matches!(c, Than::Number(Number::Constant(Constant::Bare(_))))
            }
            Form::At(of, _, c) => {
                matches!(**of, Form::Constant(_))
                    || !match c {
                        Constant::Now => true,
                        Constant::Bare(text) => {
                            !text.starts_with('-')
                                && text.len() != 5
                                && Moment::parse(text).is_some()
                        }
                        Constant::Literal(_) => false,
                    }
            }
            Form::Join(_, of) => matches!(**of, Form::Constant(Constant::Now)),
            Form::And(all) => all.len() > 3 || all.iter().any(|f| matches!(f, Form::Constant(_))),
            Form::Or(_) => true,
            Form::Number(Number::Count(of)) | Form::Best(_, of, _) => {
                matches!(**of, Form::Constant(_))
            }
            Form::Name(_) | Form::Constant(_) => false,
            _ => true,
        };
        odd_here || form.operands().into_iter().any(has_odd_constant)
    }
}
