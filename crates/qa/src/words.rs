//! Words as methods compare them: opened up, lower-cased, lightly stemmed, stop words known.

use std::borrow::Cow;

use wherefore_graph::names::normalise;

/// Words that say nothing about what is asked. Sorted; normalised but not stemmed.
const STOP_WORDS: [&str; 90] = [
    "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being",
    "but", "by", "can", "could", "did", "do", "does", "doing", "each", "for", "from", "had", "has",
    "have", "having", "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "isnt",
    "it", "its", "let", "many", "may", "me", "might", "much", "must", "my", "name", "no", "not",
    "of", "on", "or", "our", "please", "s", "shall", "she", "should", "so", "some", "such", "t",
    "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "was", "were", "what", "whats", "when", "where", "which", "who", "whom",
    "whose", "will", "with",
];

/// Irregular forms that questions and relations are full of. Sorted by the first.
const IRREGULAR: [(&str, &str); 72] = [
    ("ate", "eat"),
    ("began", "begin"),
    ("begun", "begin"),
    ("born", "birth"),
    ("bought", "buy"),
    ("bred", "breed"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("death", "die"),
    ("died", "die"),
    ("drank", "drink"),
    ("drawn", "draw"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("drunk", "drink"),
    ("eaten", "eat"),
    ("fed", "feed"),
    ("films", "film"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("gave", "give"),
    ("given", "give"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("held", "hold"),
    ("hung", "hang"),
    ("kept", "keep"),
    ("led", "lead"),
    ("lent", "lend"),
    ("lost", "lose"),
    ("made", "make"),
    ("men", "man"),
    ("met", "meet"),
    ("paid", "pay"),
    ("people", "person"),
    ("ran", "run"),
    ("ridden", "ride"),
    ("rode", "ride"),
    ("sang", "sing"),
    ("sent", "send"),
    ("sewn", "sew"),
    ("sold", "sell"),
    ("sown", "sow"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("stole", "steal"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("sung", "sing"),
    ("swam", "swim"),
    ("taken", "take"),
    ("taught", "teach"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("took", "take"),
    ("wives", "wife"),
    ("women", "woman"),
    ("won", "win"),
    ("wooden", "wood"),
    ("wore", "wear"),
    ("wove", "weave"),
    ("woven", "weave"),
    ("written", "write"),
    ("wrote", "write"),
];

/// Whether a normalised word says nothing about what is asked.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Whether a normalised word is a past form: `starred`, `wrote`.
pub(crate) fn is_past(word: &str) -> bool {
    const PAST: [&str; 16] = [
        "born", "bought", "built", "chose", "held", "led", "lost", "made", "sang", "sold", "spoke",
        "sung", "won", "wore", "written", "wrote",
    ];
    word.len() > 4 && word.ends_with("ed") || PAST.contains(&word)
}

/// Calls `each` with the stem of every word of a text that is not a stop word, in order.
///
/// Dots, underscores and camel case are opened up: `people.person.placeOfBirth` has the words
/// person, person, place and birth.
pub(crate) fn for_each_stem(text: &str, mut each: impl FnMut(&str)) {
    for word in normalise(&open_camel_case(text)).split(' ') {
        if !word.is_empty() && !is_stop_word(word) {
            each(&stem(word));
        }
    }
}

/// A label as words: dots, underscores and camel case opened up, lower case.
pub(crate) fn opened(label: &str) -> String {
    normalise(&open_camel_case(label))
}

/// A space at every `aB` and before the last capital of `ABc`.
fn open_camel_case(text: &str) -> Cow<'_, str> {
    let is_step = |a: char, b: char, next: Option<char>| {
        b.is_uppercase()
            && (a.is_lowercase() || a.is_uppercase() && next.is_some_and(char::is_lowercase))
    };
    let mut out = String::new();
    let mut copied = 0;
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, c)| c);
        if before.is_some_and(|a| is_step(a, c, next)) {
            out.push_str(&text[copied..at]);
            out.push(' ');
            copied = at;
        }
        before = Some(c);
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// A light stem: plural, past, `-ing`, and the doer and the deed of a verb (`director`,
/// `location`, `writer`). Both sides go through it, so it need not be a word.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    let word = match IRREGULAR.binary_search_by_key(&word, |&(form, _)| form) {
        Ok(at) => IRREGULAR[at].1,
        Err(_) => word,
    };
    if word.len() < 4 || !word.is_ascii() {
        return Cow::Borrowed(word);
    }
    if let Some(base) = word.strip_suffix("ies").filter(|b| b.len() >= 2) {
        return Cow::Owned(format!("{base}y"));
    }
    let singular = match word.strip_suffix('s') {
        Some(base) if !base.ends_with(['s', 'u', 'i']) => base,
        _ => word,
    };
    let cut = |suffix: &str, keep: usize| {
        singular
            .strip_suffix(suffix)
            .filter(|base| base.len() >= keep && base.contains(['a', 'e', 'i', 'o', 'u', 'y']))
    };
    let base = if let Some(base) = cut("ing", 3).or_else(|| cut("ed", 3)) {
        undoubled(base)
    } else if let Some(base) = cut("ion", 4).or_else(|| cut("or", 2)) {
        if base.ends_with('t') { base } else { singular }
    } else if let Some(base) = cut("er", 4) {
        undoubled(base)
    } else {
        singular
    };
    let base = match base.strip_suffix('e') {
        Some(bare) if bare.len() >= 3 => bare,
        _ => base,
    };
    Cow::Borrowed(base)
}

/// `starr` → `star`, but `coll` stays.
fn undoubled(base: &str) -> &str {
    let bytes = base.as_bytes();
    match bytes {
        [.., a, b] if a == b && !b"aeiouls".contains(b) => &base[..base.len() - 1],
        _ => base,
    }
}

/// UTF-8 that was read as Windows-1252 (`VÃ¡clav`), read again; any other text as it is.
pub(crate) fn repaired(text: &str) -> Cow<'_, str> {
    // the first bytes of two- and three-byte letters, read that way
    if !text.contains(['Ã', 'Â', 'Ä', 'Å', 'â', 'Ð', 'Ñ']) {
        return Cow::Borrowed(text);
    }
    let bytes: Option<Vec<u8>> = text.chars().map(windows_1252).collect();
    match bytes.map(String::from_utf8) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(text),
    }
}

fn windows_1252(c: char) -> Option<u8> {
    /// The letters of the bytes 0x80 to 0x9f; a space where there is none.
    const HIGH: &str = "€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ";
    if let Ok(byte) = u8::try_from(u32::from(c)) {
        return Some(byte);
    }
    let at = HIGH.chars().position(|high| high == c)?;
    u8::try_from(0x80 + at).ok()
}

/// A word of the question where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Byte where it begins.
    pub(crate) start: usize,
    /// Byte after its end.
    pub(crate) end: usize,
    /// Byte after its end without a possessive `'s`; the same as `end` where there is none.
    pub(crate) bare_end: usize,
}

/// The words of a text as byte ranges. Whatever is no letter, digit or apostrophe (spaces,
/// punctuation, control characters, emoji) stands between words.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        // a combining mark is neither letter nor digit, but belongs to the letter before it
        let inside = c.is_alphanumeric() || start.is_some() && (is_apostrophe(c) || is_mark(c));
        match (inside, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                tokens.push(token(text, from, at));
                start = None;
            }
            _ => {}
        }
    }
    tokens
}

fn token(text: &str, start: usize, end: usize) -> Token {
    let end = start + text[start..end].trim_end_matches(is_apostrophe).len();
    let word = &text[start..end];
    let bare = word
        .strip_suffix(['s', 'S'])
        .and_then(|w| w.strip_suffix(is_apostrophe))
        .unwrap_or(word);
    Token {
        start,
        end,
        bare_end: start + bare.len(),
    }
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | 'ʼ')
}

/// Combining diacritical marks, the only ones that Latin, Greek and Cyrillic text carries loose.
fn is_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// The beginning of a text, at most `bytes` long, in whole characters.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for_each_stem(text, |s| found.push(s.to_owned()));
        found
    }

    #[test]
    fn tables_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(IRREGULAR.is_sorted());
    }

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for group in [
            "coach coached coaches coaching",
            "play plays played playing player",
            "locate located location locations",
            "direct directed director directors",
            "act acted actor actors acting",
            "star starred starring stars",
            "write writes wrote written writer writing",
            "win won wins winning winner",
            "city cities",
            "produce produced producer",
            "born birth",
        ] {
            let all = stems(group);
            assert!(all.iter().all(|s| *s == all[0]), "{all:?}");
        }
        assert_ne!(stems("capital"), stems("capacity"));
    }

    #[test]
    fn relation_names_are_opened_up() {
        assert_eq!(
            stems("people.person.placeOfBirth"),
            ["person", "person", "plac", "birth"]
        );
        assert_eq!(stems("starred_actors"), ["star", "act"]);
        assert_eq!(stems("hasHTTPPort"), ["http", "port"]);
        assert_eq!(stems("in of the"), [""; 0]);
    }

    #[test]
    fn misread_letters_are_read_again_and_others_left_alone() {
        assert_eq!(repaired("VÃ¡clav Klaus"), "Václav Klaus");
        assert_eq!(repaired("PetÅ‘fi"), "Petőfi"); // 0xC5 0x91, and 0x91 is ‘
        for right in ["São Paulo", "Ångström", "Ã la carte", "plain", "Ñandú"] {
            assert_eq!(repaired(right), right);
        }
    }

    #[test]
    fn tokens_are_byte_ranges_of_the_text() {
        let text = "Where’s  Lou Seal's\u{7}café🎉 boys'?";
        let found: Vec<_> = tokens(text)
            .iter()
            .map(|t| (&text[t.start..t.end], &text[t.start..t.bare_end]))
            .collect();
        assert_eq!(
            found,
            [
                ("Where’s", "Where"),
                ("Lou", "Lou"),
                ("Seal's", "Seal"),
                ("café", "café"),
                ("boys", "boys")
            ]
        );
        assert!(tokens("🎉 \u{0}!").is_empty());
    }
}
