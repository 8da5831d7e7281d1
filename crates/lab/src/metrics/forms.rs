//! Generated logical forms against the gold one.
//!
//! AMAR (after ChatKBQA): EM asks whether the first form of the beam is the gold one, BM whether
//! any form of the beam is. Forms are compared as text in a normal form that the caller chooses.

/// Whether a beam holds the gold form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormMatch {
    /// The first form is the gold one.
    pub exact: bool,
    /// Some form is.
    pub in_beam: bool,
}

impl FormMatch {
    /// Compares a beam, best first, with the gold form.
    pub fn of(gold: &str, beam: &[String], normal_form: fn(&str) -> String) -> Self {
        let gold = normal_form(gold);
        let place = beam.iter().position(|form| normal_form(form) == gold);
        Self {
            exact: place == Some(0),
            in_beam: place.is_some(),
        }
    }
}

/// The plainest normal form: runs of white space are one space, none beside parentheses.
pub fn squeezed(form: &str) -> String {
    let mut out = String::with_capacity(form.len());
    for word in form.split_whitespace() {
        if !(out.is_empty() || out.ends_with(['(', '[']) || word.starts_with([')', ']'])) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_does_not_matter_and_the_place_in_the_beam_does() {
        let gold = "( JOIN ( R [ a , b ] ) [ X ] )";
        let beam = ["(JOIN a X)".to_owned(), "(JOIN (R [a , b]) [X])".to_owned()];
        assert_eq!(squeezed(gold), "(JOIN (R [a , b]) [X])");
        let second = FormMatch::of(gold, &beam, squeezed);
        assert_eq!(
            second,
            FormMatch {
                exact: false,
                in_beam: true
            }
        );
        assert!(FormMatch::of(gold, &beam[1..], squeezed).exact);
        assert_eq!(FormMatch::of(gold, &[], squeezed), FormMatch::default());
    }
}
