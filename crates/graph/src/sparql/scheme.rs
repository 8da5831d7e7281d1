//! Names as IRIs: how the names of tables, which are no IRIs, are written in SPARQL.
//!
//! ```text
//! name          IRI
//! Forrest Gump  <name:Forrest%20Gump>
//! 100%          <name:100%25>
//! Café          <name:Café>
//! ```
//!
//! The IRI is `name:` and the name, with `%` and what an IRI cannot hold there (space, control
//! characters, `<`, `>`, `"`, `{`, `}`, `[`, `]`, `|`, `\`, `^`, `#`, the backtick, and the first of
//! two slashes that begin a name) as `%XX`. Read back, any `%XX` is decoded, so in a triple
//! pattern a name may be escaped more than it must be.
//!
//! A graph without names has no use for the scheme, and its IRIs mean themselves. In a graph with
//! names, an IRI that itself begins with `name:` is written `name:%6Eame:…`: no name is written
//! so, hence no name can be mistaken for it.

use oxrdf::NamedNode;
use percent_encoding::percent_encode_byte;

use crate::graph::Term;
use crate::names::percent_decode;

/// What the IRIs of names begin with.
pub const NAME_SCHEME: &str = "name:";

/// What IRIs that begin with `name:` themselves are written with; `%6E` is `n`.
const ESCAPED_SCHEME: &str = "name:%6Eame:";

/// The IRI that stands for a name in SPARQL.
///
/// ```
/// use wherefore_graph::sparql::{iri_name, name_iri};
/// assert_eq!(name_iri("Forrest Gump"), "name:Forrest%20Gump");
/// assert_eq!(iri_name("name:Forrest%20Gump").as_deref(), Some("Forrest Gump"));
/// assert_eq!(iri_name("http://example.org/"), None);
/// ```
pub fn name_iri(name: &str) -> String {
    let mut iri = String::with_capacity(NAME_SCHEME.len() + name.len());
    iri.push_str(NAME_SCHEME);
    for (i, c) in name.chars().enumerate() {
        // two slashes in front would be a host
        let host = i == 0 && name.starts_with("//");
        match c == '%' || c == '#' || is_forbidden(c) || host {
            true => percent_encode(c, &mut iri),
            false => iri.push(c),
        }
    }
    iri
}

/// An IRI as it can stand between angle brackets: as it is, or with what no IRI can hold
/// percent-encoded.
///
/// ```
/// use wherefore_graph::sparql::writable_iri;
/// assert_eq!(writable_iri("http://e/a"), "http://e/a");
/// assert_eq!(writable_iri("http://e/50%<a b>%20%4"), "http://e/50%25%3Ca%20b%3E%20%254");
/// // one fragment, and no sign for another within it
/// assert_eq!(writable_iri("http://e#a#b"), "http://e#a%23b");
/// ```
pub fn writable_iri(iri: &str) -> String {
    if NamedNode::new(iri).is_ok() {
        return iri.to_owned();
    }
    let mut out = String::with_capacity(iri.len());
    let fragment = iri.find('#').unwrap_or(iri.len());
    for (at, c) in iri.char_indices() {
        let next = iri.as_bytes().get(at + 1..at + 3);
        let coded = next.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
        match is_forbidden(c) || (c == '%' && !coded) || (c == '#' && at > fragment) {
            true => percent_encode(c, &mut out),
            false => out.push(c),
        }
    }
    out
}

fn percent_encode(c: char, out: &mut String) {
    let mut bytes = [0; 4];
    out.extend((c.encode_utf8(&mut bytes).bytes()).map(percent_encode_byte));
}

/// The name that an IRI stands for; `None` for IRIs that stand for no name.
pub fn iri_name(iri: &str) -> Option<String> {
    if iri.starts_with(ESCAPED_SCHEME) {
        return None;
    }
    iri.strip_prefix(NAME_SCHEME).map(percent_decode)
}

/// The term that an IRI stands for in a graph that has names.
pub(super) fn term_of(iri: &str) -> Term {
    match (iri.strip_prefix(ESCAPED_SCHEME), iri_name(iri)) {
        (Some(rest), _) => Term::Iri(format!("{NAME_SCHEME}{rest}")),
        (None, Some(name)) => Term::Name(name),
        (None, None) => Term::Iri(iri.to_owned()),
    }
}

/// How an IRI of a graph that has names is written.
pub(super) fn escaped_iri(iri: String) -> String {
    match iri.strip_prefix(NAME_SCHEME) {
        Some(rest) => format!("{ESCAPED_SCHEME}{rest}"),
        None => iri,
    }
}

/// What SPARQL's IRIREF and RDF's IRIs cannot hold. Beside the characters of the grammar: those
/// of no meaning in text, which stricter readers refuse.
fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            ' ' | '<' | '>' | '"' | '{' | '}' | '[' | ']' | '|' | '\\' | '^' | '`'
        )
        || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fff0}'..='\u{ffff}')
        || c as u32 >= 0xe_0000
        || c as u32 & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::percent_decoded_bytes;

    #[test]
    fn odd_names_are_written_as_documented() {
        for (name, iri) in [
            ("starred_actors", "name:starred_actors"),
            ("100% \"pure\"", "name:100%25%20%22pure%22"),
            ("a|b\\c", "name:a%7Cb%5Cc"),
            ("Café 東京", "name:Café%20東京"),
            ("name:x", "name:name:x"),
            ("/m/0abc#1[2]", "name:/m/0abc%231%5B2%5D"),
            ("//x:y", "name:%2F/x:y"),
            ("%6Eame:x", "name:%256Eame:x"),
            ("\u{a0}\t", "name:\u{a0}%09"),
            ("", "name:"),
        ] {
            assert_eq!(name_iri(name), iri);
            assert_eq!(term_of(iri), Term::Name(name.to_owned()));
        }
        assert_eq!(iri_name("name:Caf%C3%A9").as_deref(), Some("Café"));
        assert_eq!(iri_name("name:%+f").as_deref(), Some("%+f"));
    }

    #[test]
    fn an_iri_that_looks_like_a_name_is_no_name() {
        let iri = "name:x".to_owned();
        let written = escaped_iri(iri.clone());
        assert_eq!(written, "name:%6Eame:x");
        assert_eq!(term_of(&written), Term::Iri(iri));
        assert_eq!(term_of("name:x"), Term::Name("x".into()));
    }

    proptest! {
        #[test]
        fn every_name_has_one_valid_iri_and_comes_back(name in "(?s:.*)|[/:#%?\\[a|]{0,8}", other in "(?s:.*)") {
            let iri = name_iri(&name);
            prop_assert!(NamedNode::new(iri.as_str()).is_ok(), "{}", iri);
            prop_assert_eq!(name == other, iri == name_iri(&other));
            prop_assert_eq!(term_of(&iri), Term::Name(name));
        }

        #[test]
        fn every_iri_with_a_scheme_can_be_written(rest in "(?s:.*)|[/:#%?\\[a|\u{7f}]{0,8}") {
            // what follows two slashes is a host, which has rules of its own
            let iri = format!("e:{}", rest.trim_start_matches('/'));
            let written = writable_iri(&iri);
            prop_assert!(NamedNode::new(written.as_str()).is_ok(), "{}", written);
            prop_assert_eq!(percent_decoded_bytes(&written), percent_decoded_bytes(&iri));
        }
    }
}
