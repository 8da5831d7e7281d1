//! Uncased WordPiece: words to the longest known pieces.
//!
//! Wu et al., "Google's Neural Machine Translation System", 2016, with BERT's basic tokenizer
//! before it: control characters dropped, lower case, accents off, every CJK character and every
//! punctuation mark a word of its own. A word whose rest matches no piece is unknown as a whole.
//!
//! Departures from the `tokenizers` crate, against which the tests hold it: special tokens written
//! out in a text (`[SEP]`) are read as text.
//!
//! Pieces are found by hash. FNV-1a grows byte by byte, so one pass over a word gives the hashes
//! of all its prefixes, and the longest match costs one probe for each length that fails.

use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// Words with more characters are unknown, as in BERT.
const LONGEST_WORD: usize = 100;

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
/// Pieces inside of a word hash from another start than those that open one.
const FNV_INNER: u64 = FNV_START ^ 0x9e37_79b9_7f4a_7c15;

/// A vocabulary of WordPiece tokens, and the splitting of texts into them.
pub struct WordPiece {
    /// All tokens end to end, without `##`.
    text: Vec<u8>,
    /// Token `i` is `text[ends[i - 1]..ends[i]]`.
    ends: Vec<u32>,
    inner: Vec<bool>,
    /// Open addressing: token id + 1, or 0.
    slots: Vec<u32>,
    longest: usize,
    unknown: u32,
}

impl WordPiece {
    /// Takes the tokens in the order of their ids; `##` marks pieces inside of a word.
    ///
    /// # Errors
    /// What is wrong with the vocabulary, in words.
    pub fn new<'a>(
        tokens: impl IntoIterator<Item = &'a str>,
        unknown: &str,
    ) -> Result<Self, String> {
        let mut built = Self {
            text: vec![],
            ends: vec![],
            inner: vec![],
            slots: vec![],
            longest: 0,
            unknown: 0,
        };
        for token in tokens {
            let inner = token.len() > 2 && token.starts_with("##");
            let piece = &token[if inner { 2 } else { 0 }..];
            built.longest = built.longest.max(piece.len());
            built.text.extend_from_slice(piece.as_bytes());
            let end = u32::try_from(built.text.len()).map_err(|_| "it is too long".to_owned())?;
            built.ends.push(end);
            built.inner.push(inner);
        }
        if built.ends.is_empty() {
            return Err("it has no tokens".into());
        }
        built.slots = vec![0; (built.ends.len() * 3).next_power_of_two()];
        for id in 0..built.ends.len() {
            let (piece, inner) = (built.piece(id), built.inner[id]);
            let mut slot = built.slot(hash(piece, inner));
            // of two equal tokens the first wins
            while built.slots[slot] != 0 {
                slot = (slot + 1) & (built.slots.len() - 1);
            }
            built.slots[slot] = id as u32 + 1;
        }
        built.unknown = built
            .id(unknown)
            .ok_or_else(|| format!("it has no token `{unknown}`"))?;
        Ok(built)
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no token: never.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The id that unknown words get.
    pub fn unknown(&self) -> u32 {
        self.unknown
    }

    /// The id of a token, written as in the vocabulary.
    pub fn id(&self, token: &str) -> Option<u32> {
        let inner = token.len() > 2 && token.starts_with("##");
        let piece = &token.as_bytes()[if inner { 2 } else { 0 }..];
        self.find(piece, inner, hash(piece, inner))
    }

    /// All tokens in the order of their ids, written as in the vocabulary.
    pub fn tokens(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.len()).map(|id| {
            let mark = if self.inner[id] { "##" } else { "" };
            format!("{mark}{}", String::from_utf8_lossy(self.piece(id)))
        })
    }

    /// Appends the ids of `text` to `ids`, without special tokens.
    pub fn tokenise(&self, text: &str, ids: &mut Vec<u32>) {
        if text.is_ascii() {
            self.tokenise_ascii(text.as_bytes(), ids);
            return;
        }
        let clean = normalised(text);
        for word in clean.split(char::is_whitespace) {
            let mut start = 0;
            for (at, c) in word.char_indices() {
                if is_punctuation(c) {
                    self.word(&word.as_bytes()[start..at], ids);
                    start = at + c.len_utf8();
                    self.word(&word.as_bytes()[at..start], ids);
                }
            }
            self.word(&word.as_bytes()[start..], ids);
        }
    }

    fn tokenise_ascii(&self, text: &[u8], ids: &mut Vec<u32>) {
        // longer words are unknown, so one byte more than the limit is enough to know
        let mut word = [0u8; LONGEST_WORD + 1];
        let mut len = 0;
        for &byte in text {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'A'..=b'Z' => {
                    if let Some(slot) = word.get_mut(len) {
                        *slot = byte.to_ascii_lowercase();
                        len += 1;
                    }
                }
                b' ' | b'\t' | b'\n' | b'\r' => {
                    self.word(&word[..len], ids);
                    len = 0;
                }
                _ if byte.is_ascii_punctuation() => {
                    self.word(&word[..len], ids);
                    self.word(&[byte], ids);
                    len = 0;
                }
                // control characters vanish and split nothing
                _ => {}
            }
        }
        self.word(&word[..len], ids);
    }

    /// Appends the pieces of one word.
    fn word(&self, word: &[u8], ids: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let chars = word.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        if chars > LONGEST_WORD {
            ids.push(self.unknown);
            return;
        }
        // most words are pieces themselves
        if let Some(id) = self.find(word, false, hash(word, false)) {
            ids.push(id);
            return;
        }
        let before = ids.len();
        let mut start = 0;
        let mut hashes = [0u64; 4 * LONGEST_WORD];
        while start < word.len() {
            let rest = &word[start..word.len().min(start + self.longest)];
            let inner = start > 0;
            let mut h = if inner { FNV_INNER } else { FNV_START };
            for (slot, byte) in hashes.iter_mut().zip(rest) {
                h = (h ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
                *slot = h;
            }
            let found = (1..=rest.len())
                .rev()
                .find_map(|len| Some((self.find(&rest[..len], inner, hashes[len - 1])?, len)));
            match found {
                Some((id, len)) => {
                    ids.push(id);
                    start += len;
                }
                None => {
                    ids.truncate(before);
                    ids.push(self.unknown);
                    return;
                }
            }
        }
    }

    fn piece(&self, id: usize) -> &[u8] {
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.text[start as usize..self.ends[id] as usize]
    }

    fn slot(&self, hash: u64) -> usize {
        // the high bits of FNV are the better mixed ones
        (hash >> 24) as usize & (self.slots.len() - 1)
    }

    fn find(&self, piece: &[u8], inner: bool, hash: u64) -> Option<u32> {
        let mut slot = self.slot(hash);
        loop {
            let id = self.slots[slot].checked_sub(1)?;
            if self.inner[id as usize] == inner && self.piece(id as usize) == piece {
                return Some(id);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}

fn hash(piece: &[u8], inner: bool) -> u64 {
    let start = if inner { FNV_INNER } else { FNV_START };
    piece.iter().fold(start, |h, byte| {
        (h ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

/// BERT's clean-up: no control characters, CJK apart, no accents, lower case.
fn normalised(text: &str) -> String {
    let spaced = text.chars().filter(|c| !is_dropped(*c)).flat_map(|c| {
        let c = if c.is_whitespace() { ' ' } else { c };
        let gap = is_cjk(c).then_some(' ');
        gap.into_iter().chain([c]).chain(gap)
    });
    spaced
        .nfd()
        .filter(|c| !c.is_mark_nonspacing())
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_dropped(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{fffd}' => true,
        _ => c.is_other(),
    }
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.is_punctuation()
}

fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::Tokenizer;
    use tokenizers::models::wordpiece::WordPiece as Reference;
    use tokenizers::normalizers::BertNormalizer;
    use tokenizers::pre_tokenizers::bert::BertPreTokenizer;

    use super::*;
    use crate::encode::StaticTable;

    fn toy() -> WordPiece {
        let tokens = [
            "[UNK]", "un", "##aff", "##able", "aff", "able", "a", "##b", ",", "東", "cafe",
        ];
        WordPiece::new(tokens, "[UNK]").unwrap()
    }

    fn ids(pieces: &WordPiece, text: &str) -> Vec<u32> {
        let mut ids = vec![];
        pieces.tokenise(text, &mut ids);
        ids
    }

    #[test]
    fn longest_piece_wins_and_a_lost_rest_loses_the_word() {
        let toy = toy();
        assert_eq!(ids(&toy, "Unaffable"), [1, 2, 3]);
        assert_eq!(ids(&toy, "able,ab"), [5, 8, 6, 7]);
        assert_eq!(ids(&toy, "unx able"), [0, 5]);
        assert_eq!(ids(&toy, " \u{0}\t"), [] as [u32; 0]);
        assert_eq!(ids(&toy, "CAFÉ東able"), [10, 9, 5]);
        assert_eq!(ids(&toy, &"a".repeat(101)), [0]);
    }

    #[test]
    fn vocabulary_without_the_unknown_token_is_an_error() {
        assert!(WordPiece::new(["a"], "[UNK]").is_err());
        assert!(WordPiece::new([], "[UNK]").is_err());
    }

    fn reference() -> &'static (WordPiece, Tokenizer) {
        static PAIR: std::sync::OnceLock<(WordPiece, Tokenizer)> = std::sync::OnceLock::new();
        PAIR.get_or_init(|| {
            let tokens: Vec<String> = StaticTable::built_in().vocabulary().collect();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("vocab.txt");
            std::fs::write(&path, tokens.join("\n")).unwrap();
            let model = Reference::from_file(path.to_str().unwrap())
                .unk_token("[UNK]".into())
                .build()
                .unwrap();
            let mut tokenizer = Tokenizer::new(model);
            tokenizer
                .with_normalizer(Some(BertNormalizer::default()))
                .unwrap();
            tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
            let own = WordPiece::new(tokens.iter().map(String::as_str), "[UNK]").unwrap();
            (own, tokenizer)
        })
    }

    fn agrees(text: &str) {
        let (own, published) = reference();
        let want = published.encode(text, false).unwrap();
        assert_eq!(
            ids(own, text),
            want.get_ids(),
            "{text:?} {:?}",
            want.get_tokens()
        );
    }

    #[test]
    fn hard_texts_agree_with_the_tokenizers_crate() {
        for text in [
            "",
            " ",
            "Where was Zoë Saldaña born?",
            "İstanbul ﬁlm ǅ ß ẞ",
            "北京 is 東京",
            "👩‍🚀 emoji 🙂",
            "שלום עולם",
            "مرحبا بالعالم",
            "a\u{0}b\u{200b}c\u{fffd}d\u{7f}e\u{b}f",
            "don't_stop-it",
            "¿qué?",
            "e\u{301}cole",
            "½ m² №5 ™",
            "नमस्ते दुनिया",
            "한국어",
            "\u{a0}x\u{3000}y",
            "people.person.place_of_birth",
        ] {
            agrees(text);
        }
        agrees(&"supercalifragilistic".repeat(6));
        agrees(&"x".repeat(100));
        agrees(&"é".repeat(101));
    }

    proptest! {
        #[test]
        fn any_text_agrees_with_the_tokenizers_crate(text in "\\PC{0,40}") {
            agrees(&text);
        }

        #[test]
        fn any_ascii_agrees_with_the_tokenizers_crate(text in "[ -~\\t\\n\u{1}]{0,60}") {
            agrees(&text);
        }
    }
}
