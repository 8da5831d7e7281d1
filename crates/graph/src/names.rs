//! Names as people write them: readable labels, and a normal form in which spelling habits vanish.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The normal form under which names are compared: lower case, no accents, every run of
/// punctuation, `_` and space a single space, apostrophes gone, none at the ends.
///
/// A name made of punctuation alone keeps it, so that it can still be found.
///
/// ```
/// use wherefore_graph::names::normalise;
/// assert_eq!(normalise("  Café_Volpini (Paris)"), "cafe volpini paris");
/// assert_eq!(normalise("Rock'n'Roll"), "rocknroll");
/// assert_eq!(normalise("!!!"), "!!!");
/// ```
pub fn normalise(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    if name.is_ascii() {
        normalise_ascii(name.as_bytes(), &mut out);
    } else {
        let mut gap = false;
        for c in name
            .nfkd()
            .filter(|c| !is_combining_mark(*c))
            .flat_map(char::to_lowercase)
        {
            // lower-casing can make combining marks of its own (Turkish dotted I)
            if is_combining_mark(c) || matches!(c, '\'' | '’' | 'ʼ') {
                continue;
            }
            if c.is_alphanumeric() {
                if gap && !out.is_empty() {
                    out.push(' ');
                }
                gap = false;
                out.push(c);
            } else {
                gap = true;
            }
        }
    }
    if out.is_empty() {
        out.push_str(name.trim());
    }
    out
}

fn normalise_ascii(name: &[u8], out: &mut String) {
    let mut gap = false;
    for &b in name {
        if b == b'\'' {
            continue;
        }
        if b.is_ascii_alphanumeric() {
            if gap && !out.is_empty() {
                out.push(' ');
            }
            gap = false;
            out.push(char::from(b.to_ascii_lowercase()));
        } else {
            gap = true;
        }
    }
}

/// A name made readable: `_` as space. Machine ids and names that are nothing but `_` stay.
pub fn readable(name: &str) -> Cow<'_, str> {
    if !name.contains('_') || is_machine_id(name) {
        return Cow::Borrowed(name);
    }
    let spaced = name.replace('_', " ");
    let trimmed = spaced.trim();
    if trimmed.is_empty() {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(trimmed.to_owned())
    }
}

/// The local part of an IRI: what follows the last `#`, `/` or `:`, percent signs decoded.
/// The whole IRI where nothing follows.
pub fn local_part(iri: &str) -> Cow<'_, str> {
    let trimmed = iri.trim_end_matches(['/', '#']);
    let local = trimmed.rsplit(['#', '/', ':']).next().unwrap_or(trimmed);
    let local = if local.is_empty() { iri } else { local };
    if local.contains('%') {
        Cow::Owned(percent_decode(local))
    } else {
        Cow::Borrowed(local)
    }
}

/// Decodes `%XX`, where `XX` are two hexadecimal digits. Other percent signs stay as they are, and
/// so does the whole text if the decoded bytes are not UTF-8.
pub fn percent_decode(text: &str) -> String {
    String::from_utf8(percent_decoded_bytes(text)).unwrap_or_else(|_| text.to_owned())
}

/// The bytes of a text with every `%XX` decoded.
pub(crate) fn percent_decoded_bytes(text: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(text).collect()
}

/// Whether a name is a bare machine id that tells people nothing: Freebase mids (`m.0abc`,
/// `g.1abc`, `/m/0abc`), letters with dotted numbers (`cvt.rra.10.1`) and skolemised blank nodes.
pub fn is_machine_id(name: &str) -> bool {
    let name = name.strip_prefix('/').unwrap_or(name);
    let Some((kind @ ("m" | "g"), id)) = name.split_once(['.', '/']) else {
        return name.contains(".well-known/genid/") || is_dotted_number(name);
    };
    let first = if kind == "m" { b'0' } else { b'1' };
    id.len() >= 2
        && id.as_bytes()[0] == first
        && id
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Letters, and after them at least two numbers, each after a dot.
fn is_dotted_number(name: &str) -> bool {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    let numbers = name.rsplit('.').take_while(is_number).count();
    let words = name.split('.').count() - numbers;
    numbers >= 2 && words >= 1 && name.split('.').take(words).all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_habits_vanish() {
        assert_eq!(normalise("Joy’s garden"), "joys garden");
        assert_eq!(normalise("İstanbul"), "istanbul");
        assert_eq!(normalise("__people__ethnicity__"), "people ethnicity");
        assert_eq!(normalise("東京 2020"), "東京 2020");
        assert_eq!(normalise("ﬁlm"), "film");
        assert_eq!(normalise(" ?! "), "?!");
        assert_eq!(normalise(""), "");
    }

    #[test]
    fn ascii_path_agrees_with_the_general_one() {
        for name in ["A_b-C", "  x  ", "it's", "(1994) Film!", "___"] {
            let general = normalise(&format!("{name}é"));
            let want = if normalise(name) == name.trim() && !name.contains(char::is_alphanumeric) {
                "e".to_owned()
            } else {
                format!(
                    "{}{}e",
                    normalise(name),
                    if name.ends_with(|c: char| c.is_alphanumeric()) {
                        ""
                    } else {
                        " "
                    }
                )
            };
            assert_eq!(general, want, "{name}");
        }
    }

    #[test]
    fn machine_ids_are_told_from_names() {
        for id in [
            "m.0abc",
            "g.11b71xnb4k",
            "/m/027rn",
            "m.0k3qy8",
            "m.08_x",
            "cvt.rra.10.1",
        ] {
            assert!(is_machine_id(id), "{id}");
        }
        for name in [
            "m.a.s.h", "M.0abc", "m.0 abc", "g.i. joe", "m", "m.", "1994", "g.0", "v1.2.3",
            "1.2.3", "st. 1.2",
        ] {
            assert!(!is_machine_id(name), "{name}");
        }
    }

    #[test]
    fn only_two_hexadecimal_digits_are_decoded() {
        assert_eq!(percent_decode("%41%c3%A9"), "Aé");
        for text in ["%+f", "%-1", "% 4", "%4", "%", "%%", "%g0", "%+41", "%ff"] {
            assert_eq!(percent_decode(text), text);
        }
        assert_eq!(percent_decode("%%41"), "%A");
    }

    #[test]
    fn local_parts_are_readable() {
        assert_eq!(local_part("http://example.org/Caf%C3%A9"), "Café");
        assert_eq!(
            local_part("http://www.w3.org/2000/01/rdf-schema#label"),
            "label"
        );
        assert_eq!(local_part("urn:isbn:123"), "123");
        assert_eq!(local_part("http://example.org/"), "example.org");
        assert_eq!(readable("starred_actors"), "starred actors");
        assert_eq!(readable("___"), "___");
        assert_eq!(readable("m.0_y736t"), "m.0_y736t");
    }
}
