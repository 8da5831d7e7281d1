//! SentencePiece's BPE, as `tokenizer.ggml.model = llama` means it.
//!
//! Spaces are written `▁`. The text begins as its characters; of all neighbours whose joint text
//! is a token, the pair with the best score is joined (the leftmost among equals), until no pair
//! is left. What is no token then is spelt as bytes, `<0xE6>`.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

const SPACE: &str = "▁";

pub(super) struct Pieces {
    ids: HashMap<String, u32>,
    scores: Vec<f32>,
    /// Control and user-defined tokens, the longest first; and whether each is a control token.
    specials: Vec<(String, u32, bool)>,
    unknown: u32,
    adds_space: bool,
}

/// Two neighbours that may be joined.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    length: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pair {}

/// A stretch of the text; empty once it was joined to its left neighbour.
struct Symbol {
    from: usize,
    length: usize,
    before: Option<usize>,
    after: Option<usize>,
}

impl Pieces {
    pub(super) fn new(
        tokens: &[String],
        scores: Vec<f32>,
        specials: Vec<(u32, bool)>,
        unknown: u32,
        adds_space: bool,
    ) -> Self {
        let ids = tokens
            .iter()
            .enumerate()
            .rev() // of equal texts the first one counts
            .map(|(id, token)| (token.clone(), id as u32))
            .collect();
        let mut specials: Vec<_> = specials
            .into_iter()
            .map(|(id, control)| (tokens[id as usize].clone(), id, control))
            .filter(|(text, _, _)| !text.is_empty())
            .collect();
        specials.sort_by_key(|(text, _, _)| std::cmp::Reverse(text.len()));
        Self {
            ids,
            scores,
            specials,
            unknown,
            adds_space,
        }
    }

    /// The tokens of a text; names of control tokens mean them only if `with_control`.
    pub(super) fn encode(&self, text: &str, with_control: bool, first: bool) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut rest = text;
        let mut at_start = first;
        while !rest.is_empty() {
            let next = self
                .specials
                .iter()
                .filter(|(_, _, control)| with_control || !control)
                .filter_map(|(name, id, _)| Some((rest.find(name.as_str())?, name, *id)))
                .min_by_key(|(at, name, _)| (*at, std::cmp::Reverse(name.len())));
            let (plain, special, after) = match next {
                Some((at, name, id)) => (&rest[..at], Some(id), &rest[at + name.len()..]),
                None => (rest, None, ""),
            };
            if !plain.is_empty() {
                let space = if self.adds_space && at_start { " " } else { "" };
                self.join(&format!("{space}{plain}").replace(' ', SPACE), &mut tokens);
            }
            tokens.extend(special);
            // what follows a special token begins anew
            at_start = true;
            rest = after;
        }
        tokens
    }

    fn join(&self, text: &str, tokens: &mut Vec<u32>) {
        let mut symbols: Vec<Symbol> = Vec::new();
        for (i, (from, c)) in text.char_indices().enumerate() {
            symbols.push(Symbol {
                from,
                length: c.len_utf8(),
                before: i.checked_sub(1),
                after: Some(i + 1),
            });
        }
        if let Some(last) = symbols.last_mut() {
            last.after = None;
        }
        let mut pairs = BinaryHeap::new();
        for right in 1..symbols.len() {
            self.offer(text, &symbols, right - 1, right, &mut pairs);
        }
        while let Some(pair) = pairs.pop() {
            let (left, right) = (&symbols[pair.left], &symbols[pair.right]);
            let stale = left.length == 0
                || right.length == 0
                || left.length + right.length != pair.length
                || left.after != Some(pair.right);
            if stale {
                continue;
            }
            let after = right.after;
            symbols[pair.right].length = 0;
            symbols[pair.left].length = pair.length;
            symbols[pair.left].after = after;
            if let Some(after) = after {
                symbols[after].before = Some(pair.left);
                self.offer(text, &symbols, pair.left, after, &mut pairs);
            }
            if let Some(before) = symbols[pair.left].before {
                self.offer(text, &symbols, before, pair.left, &mut pairs);
            }
        }
        for symbol in symbols.iter().filter(|s| s.length > 0) {
            let piece = &text[symbol.from..symbol.from + symbol.length];
            match self.ids.get(piece) {
                Some(&id) => tokens.push(id),
                None => tokens.extend(piece.bytes().map(|byte| {
                    let name = format!("<0x{byte:02X}>");
                    self.ids.get(&name).copied().unwrap_or(self.unknown)
                })),
            }
        }
    }

    fn offer(
        &self,
        text: &str,
        symbols: &[Symbol],
        left: usize,
        right: usize,
        pairs: &mut BinaryHeap<Pair>,
    ) {
        let from = symbols[left].from;
        let length = symbols[left].length + symbols[right].length;
        if let Some(&id) = self.ids.get(&text[from..from + length]) {
            pairs.push(Pair {
                score: self.scores[id as usize],
                left,
                right,
                length,
            });
        }
    }
}

/// Appends what a token says.
pub(super) fn say(token: &str, into: &mut Vec<u8>) {
    let byte = token
        .strip_prefix("<0x")
        .and_then(|rest| rest.strip_suffix('>'))
        .filter(|digits| digits.len() == 2)
        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
    match byte {
        Some(byte) => into.push(byte),
        None => into.extend(token.replace(SPACE, " ").bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(adds_space: bool) -> (Vec<String>, Pieces) {
        let mut tokens: Vec<String> = ["<unk>", "<s>", "▁", "a", "b", "ab", "▁ab", "ba"]
            .map(str::to_owned)
            .to_vec();
        tokens.extend((0..=255).map(|b| format!("<0x{b:02X}>")));
        let mut scores = vec![0.0; tokens.len()];
        // ▁ab joins last, ba is better than ab
        scores[5] = -2.0;
        scores[6] = -3.0;
        scores[7] = -1.0;
        let pieces = Pieces::new(&tokens, scores, vec![(1, true)], 0, adds_space);
        (tokens, pieces)
    }

    fn texts(text: &str, adds_space: bool, with_control: bool) -> Vec<String> {
        let (tokens, pieces) = pieces(adds_space);
        let ids = pieces.encode(text, with_control, true);
        ids.iter().map(|&id| tokens[id as usize].clone()).collect()
    }

    #[test]
    fn the_best_pair_is_joined_first() {
        assert_eq!(texts("ab", true, false), ["▁ab"]);
        // ba (−1) before ab (−2): a, ba and not ab, a
        assert_eq!(texts("aba", false, false), ["a", "ba"]);
        assert_eq!(texts("b ab", false, false), ["b", "▁ab"]);
    }

    #[test]
    fn what_is_no_token_is_spelt_in_bytes_and_said_again() {
        let (tokens, pieces) = pieces(true);
        let ids = pieces.encode("a é", false, true);
        let mut said = Vec::new();
        for id in ids {
            say(&tokens[id as usize], &mut said);
        }
        assert_eq!(String::from_utf8(said).unwrap(), " a é");
    }

    #[test]
    fn names_of_control_tokens_mean_them_only_where_asked() {
        assert_eq!(texts("<s>ab", false, true), ["<s>", "ab"]);
        assert_ne!(texts("<s>ab", false, false)[0], "<s>");
    }
}
