//! Nouns and labels: what the words of a graph read as in a sentence.

use crate::words::is_past;

/// Words that a label ends in where its tail is to be said next.
const PREPOSITIONS: [&str; 12] = [
    "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "under", "with",
];

/// Past forms that say, with a preposition, what was done to something: *born in*.
const PARTICIPLES: [&str; 20] = [
    "based",
    "born",
    "buried",
    "built",
    "composed",
    "contained",
    "derived",
    "filmed",
    "found",
    "held",
    "headquartered",
    "located",
    "made",
    "named",
    "published",
    "recorded",
    "released",
    "situated",
    "spoken",
    "used",
];

/// Whether one thing is spoken of or several.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Of {
    One,
    Many,
}

impl Of {
    pub(super) fn pick(self, one: &'static str, many: &'static str) -> &'static str {
        match self {
            Of::One => one,
            Of::Many => many,
        }
    }

    pub(super) fn it(self) -> &'static str {
        self.pick("it", "them")
    }

    pub(super) fn its(self) -> &'static str {
        self.pick("its", "their")
    }

    pub(super) fn is(self) -> &'static str {
        self.pick("is", "are")
    }

    pub(super) fn has(self) -> &'static str {
        self.pick("has", "have")
    }

    pub(super) fn thing(self) -> &'static str {
        self.pick("thing", "things")
    }
}

/// What a relation's label reads as.
pub(super) enum Shape {
    /// `capital`.
    Noun,
    /// `borders`: a plural, or a verb.
    Several,
    /// `member of`: what stands before the *of*.
    NounOf(String),
    /// `located in`.
    Participle,
    /// `won`, `plays in`.
    Other,
}

pub(super) struct Label {
    pub(super) text: String,
    pub(super) shape: Shape,
}

impl Label {
    pub(super) fn new(text: String) -> Self {
        let first = text.split(' ').next().unwrap_or_default();
        let last = text.rsplit(' ').next().unwrap_or_default();
        let is_verb = |word: &str| is_past(word) && !word.ends_with("eed");
        let shape = match text.rsplit_once(' ') {
            Some((noun, "of")) if !is_verb(first) && !is_several(noun) => {
                Shape::NounOf(noun.to_owned())
            }
            Some((_, "by")) if is_verb(first) => Shape::Participle,
            Some((_, last)) if PREPOSITIONS.contains(&last) => match PARTICIPLES.contains(&first) {
                true => Shape::Participle,
                false => Shape::Other,
            },
            _ if first == "has" || is_verb(last) || PREPOSITIONS.contains(&last) => Shape::Other,
            _ if is_several(&text) => Shape::Several,
            _ => Shape::Noun,
        };
        Self { text, shape }
    }

    /// What is true of its head: `whose capital is Paris`.
    pub(super) fn is(&self, to: &str, of: Of) -> String {
        match &self.shape {
            Shape::NounOf(_) | Shape::Participle => self.owned(to, of),
            _ => self.stands(to),
        }
    }

    /// The same of its value: `whose area is more than 5`.
    pub(super) fn stands(&self, value: &str) -> String {
        match self.shape {
            Shape::Noun => format!("whose {} is {value}", self.text),
            _ => format!("with {}: {value}", self.text),
        }
    }

    /// The same, where the tail is the smaller part: `that have it as capital`.
    pub(super) fn owned(&self, to: &str, of: Of) -> String {
        let text = &self.text;
        match &self.shape {
            Shape::NounOf(noun) => match of {
                Of::One => format!("that is {} of {to}", with_article(noun)),
                Of::Many => {
                    let nouns = plural(noun).unwrap_or_else(|| noun.clone());
                    format!("that are {nouns} of {to}")
                }
            },
            Shape::Participle => format!("{text} {to}"),
            _ => format!("that {} {to} as {text}", of.has()),
        }
    }

    /// What is true of its tail, to be said after *that*: `Paris is located in`.
    pub(super) fn leads(&self, from: &str, of: Of) -> String {
        let text = &self.text;
        match &self.shape {
            Shape::NounOf(noun) => match of {
                Of::One => format!("{from} is {} of", with_article(noun)),
                Of::Many => {
                    let nouns = plural(noun).unwrap_or_else(|| noun.clone());
                    format!("{from} are {nouns} of")
                }
            },
            Shape::Participle => format!("{from} {} {text}", of.is()),
            _ => format!("{from} {} as {text}", of.has()),
        }
    }

    pub(super) fn verb(&self) -> &'static str {
        match self.shape {
            Shape::Several => "are",
            _ => "is",
        }
    }

    /// Whether it can be said of its owner: *the capital of France*.
    pub(super) fn is_noun(&self) -> bool {
        matches!(self.shape, Shape::Noun | Shape::Several)
    }

    pub(super) fn plural(&self) -> String {
        match self.shape {
            Shape::Noun => plural(&self.text).unwrap_or_else(|| self.text.clone()),
            _ => self.text.clone(),
        }
    }
}

pub(super) fn with_article(noun: &str) -> String {
    match noun.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) {
        true => format!("an {noun}"),
        false => format!("a {noun}"),
    }
}

/// Whether a noun's last word looks like a plural, or like a verb of one.
fn is_several(noun: &str) -> bool {
    let last = noun.rsplit(' ').next().unwrap_or_default();
    let singular = ["ss", "us", "is", "ics", "species", "series"];
    matches!(last, "children" | "people" | "men" | "women")
        || last.len() > 2 && last.ends_with('s') && !singular.iter().any(|end| last.ends_with(end))
}

/// Several of a noun; none where it does not end like a word.
pub(super) fn plural(noun: &str) -> Option<String> {
    const IRREGULAR: [(&str, &str); 11] = [
        ("child", "children"),
        ("foot", "feet"),
        ("half", "halves"),
        ("knife", "knives"),
        ("leaf", "leaves"),
        ("life", "lives"),
        ("man", "men"),
        ("person", "people"),
        ("wife", "wives"),
        ("wolf", "wolves"),
        ("woman", "women"),
    ];
    // heads of state
    if let Some((head, of)) = noun.split_once(" of ") {
        return plural(head).map(|heads| format!("{heads} of {of}"));
    }
    let same = ["species", "series", "fish", "sheep"];
    if is_several(noun) || same.iter().any(|end| noun.ends_with(end)) {
        return Some(noun.to_owned());
    }
    if !noun.ends_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let at = noun.rfind(' ').map_or(0, |at| at + 1);
    let (before, last) = noun.split_at(at);
    let irregular = IRREGULAR
        .iter()
        .find(|(one, _)| *one == last.to_lowercase());
    if let Some((_, many)) = irregular {
        // as it was written: Person, People
        let first: String = last.chars().take(1).collect();
        return Some(format!("{before}{first}{}", &many[1..]));
    }
    let ends_in = |ends: &[&str]| ends.iter().any(|end| last.ends_with(end));
    let many = match last {
        _ if ends_in(&["ay", "ey", "oy", "uy"]) => format!("{last}s"),
        _ if last.ends_with('y') => format!("{}ies", &last[..last.len() - 1]),
        _ if last.ends_with("sis") => format!("{}es", &last[..last.len() - 2]),
        _ if ends_in(&["s", "x", "z", "ch", "sh"]) => format!("{last}es"),
        _ => format!("{last}s"),
    };
    Some(format!("{before}{many}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_have_plurals() {
        for (one, many) in [
            ("country", Some("countries")),
            ("city", Some("cities")),
            ("highway", Some("highways")),
            ("church", Some("churches")),
            ("Person", Some("People")),
            ("head of state", Some("heads of state")),
            ("bus", Some("buses")),
            ("borders", Some("borders")),
            ("TV series", Some("TV series")),
            ("analysis", Some("analyses")),
            ("Q515", None),
            ("", None),
        ] {
            assert_eq!(plural(one).as_deref(), many, "{one}");
        }
    }

    #[test]
    fn labels_are_told_as_what_they_read_as() {
        for (label, forward, backward) in [
            ("capital", "whose capital is X", None),
            ("place of birth", "whose place of birth is X", None),
            ("top speed", "whose top speed is X", None),
            ("borders", "with borders: X", None),
            ("won", "with won: X", Some("that X has as won")),
            (
                "plays in",
                "with plays in: X",
                Some("that X has as plays in"),
            ),
            (
                "has part",
                "with has part: X",
                Some("that X has as has part"),
            ),
            ("located in", "located in X", Some("that X is located in")),
            ("written by", "written by X", Some("that X is written by")),
            (
                "member of",
                "that are members of X",
                Some("that X is a member of"),
            ),
        ] {
            let label = Label::new(label.to_owned());
            assert_eq!(label.is("X", Of::Many), forward);
            let told = (!label.is_noun()).then(|| format!("that {}", label.leads("X", Of::One)));
            assert_eq!(told.as_deref(), backward);
        }
    }
}
