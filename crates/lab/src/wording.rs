//! A relation in everyday words, by what its name is: a noun, a participle or a verb.
//!
//! ```text
//! release year   noun         what is the release year of Alien    which films have the release year 1979
//! capital of     noun of      Paris is the capital of what         what is the capital of France
//! directed by    participle   who directed Alien                   which films were directed by Ridley Scott
//! flows through  verb         what does the Nile flow through      which rivers flow through Egypt
//! ```
//!
//! Classes are named where the graph has them. There is no dictionary: a name is told as its ending
//! lets it be.

use wherefore::model::Random;
use wherefore::phrase::{PREPOSITIONS, is_verb};

/// Participles that do not end in `ed`, with their past tenses.
const IRREGULAR: [(&str, &str); 10] = [
    ("built", "built"),
    ("drawn", "drew"),
    ("given", "gave"),
    ("held", "held"),
    ("led", "led"),
    ("made", "made"),
    ("sung", "sang"),
    ("taught", "taught"),
    ("won", "won"),
    ("written", "wrote"),
];

/// What the name of a relation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `release year`.
    Noun,
    /// `capital of`: a noun for the head.
    NounOf,
    /// `directed by`, `located in`.
    Participle,
    /// `flows through`, `borders`, `founded`.
    Verb,
}

/// A step of a path that is put into words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// The relation's name in words.
    pub name: &'a str,
    /// From head to tail.
    pub forward: bool,
    /// The class of what it leads to, where all of it is of one.
    pub class: Option<&'a str>,
    /// Whether it leads to more than one thing.
    pub is_many: bool,
}

impl Step<'_> {
    /// What the step leads to from `of`: `the capital of France`.
    pub(crate) fn phrase(&self, of: &str, random: &mut Random) -> String {
        use Shape::{Noun, NounOf, Participle, Verb};
        self.told(of, random, |shape, past| match (shape, self.forward) {
            (Noun, true) | (NounOf, false) => &["the {w} of {x}", "{x}'s {w}"],
            (Noun, false) => &[
                "the {ones} whose {w} is {x}",
                "the {ones} with the {w} {x}",
                "the {ones} that {have} the {w} {x}",
            ],
            (NounOf, true) => &["the {ones} that {x} is the {w} of"],
            (Participle, true) if past => &["the person who {past} {x}"],
            (Participle, true) => &["the {ones} that {x} was {w} {p}"],
            (Participle, false) => &[
                "the {ones} {w} {p} {x}",
                "the {ones} that {were} {w} {p} {x}",
            ],
            (Verb, true) => &["the {ones} that {x} {w} {p}"],
            (Verb, false) => &["the {ones} that {do} {p} {x}"],
        })
    }

    /// The question after what the step leads to from `of`.
    pub(crate) fn question(&self, of: &str, random: &mut Random) -> String {
        use Shape::{Noun, NounOf, Participle, Verb};
        self.agreeing()
            .told(of, random, |shape, past| match (shape, self.forward) {
                (Noun, true) | (NounOf, false) => &[
                    "what {is} the {w} of {x}",
                    "what {is} {x}'s {w}",
                    "which {w} does {x} have",
                    "tell me the {w} of {x}",
                ],
                (Noun, false) => &[
                    "{which} {have} the {w} {x}",
                    "{which} {have} {x} as {w}",
                    "{x} is the {w} of {which}",
                ],
                (NounOf, true) => &["{x} is the {w} of {which}"],
                (Participle, true) if past => &["who {past} {x}", "who was {x} {w} {p}"],
                (Participle, true) => &["{which} was {x} {w} {p}", "{x} was {w} {p} {which}"],
                (Participle, false) => &["{which} {were} {w} {p} {x}"],
                (Verb, true) => &["{which} does {x} {base} {p}", "{x} {w} {p} {which}"],
                (Verb, false) => &["{which} {do} {p} {x}"],
            })
    }

    /// The question after what the step leads to from `of`, so that another clause can follow:
    /// `which countries have the currency Euro`.
    pub(crate) fn question_by_clause(&self, of: &str, random: &mut Random) -> String {
        let clause = self.clause(of, random);
        match self.class {
            Some(_) => format!("which {} {clause}", self.ones()),
            None => format!("what {clause}"),
        }
    }

    /// A clause about things that the step leads to from `of`: `have the currency Euro`.
    pub(crate) fn clause(&self, of: &str, random: &mut Random) -> String {
        use Shape::{Noun, NounOf, Participle, Verb};
        self.agreeing()
            .told(of, random, |shape, past| match (shape, self.forward) {
                (Noun, true) | (NounOf, false) => &["{are} the {w} of {x}"],
                (Noun, false) => &["{have} the {w} {x}", "{have} {x} as {w}"],
                (NounOf, true) => &["{have} the {w} {x}"],
                (Participle, true) if past => &["{past} {x}"],
                (Participle, true) => &["{are} what {x} was {w} {p}"],
                (Participle, false) => &["{were} {w} {p} {x}"],
                (Verb, true) => &["{are} what {x} {w} {p}"],
                (Verb, false) => &["{do} {p} {x}"],
            })
    }

    /// The same for a question: `what` goes with the singular, whatever it asks after.
    fn agreeing(self) -> Self {
        Self {
            is_many: self.is_many && self.class.is_some(),
            ..self
        }
    }

    /// What it leads to, as a noun.
    fn ones(&self) -> String {
        match (self.class, self.is_many) {
            (None, true) => "ones".to_owned(),
            (None, false) => "one".to_owned(),
            (Some(class), true) => plural(class),
            (Some(class), false) => class.to_owned(),
        }
    }

    /// One of some templates, filled in. They are chosen by whether the name has a past tense with
    /// someone who did it: `directed by`, `wrote`.
    fn told<'t>(
        &self,
        of: &str,
        random: &mut Random,
        templates: impl FnOnce(Shape, bool) -> &'t [&'t str],
    ) -> String {
        let (shape, word, preposition) = parts(self.name);
        let past = past(word, preposition);
        let templates = templates(shape, past.is_some());
        let (many, ones) = (self.is_many, self.ones());
        let which = self
            .class
            .map_or_else(|| "what".into(), |_| format!("which {ones}"));
        let agrees = |one: &'static str, all: &'static str| match many {
            true => all,
            false => one,
        };
        let filled = templates[random.below(templates.len())]
            .replace("{ones}", &ones)
            .replace("{which}", &which)
            .replace("{have}", agrees("has", "have"))
            .replace("{are}", agrees("is", "are"))
            .replace("{were}", agrees("was", "were"))
            .replace("{is}", if word.ends_with('s') { "are" } else { "is" })
            .replace("{do}", if many { base(word) } else { word })
            .replace("{base}", base(word))
            .replace("{past}", past.unwrap_or_default())
            .replace("{w}", word)
            .replace("{p}", preposition)
            .replace("{x}", of);
        filled.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// What a name is, the words of it that say something, and its preposition.
fn parts(name: &str) -> (Shape, &str, &str) {
    for opening in ["has ", "have ", "is ", "was ", "in "] {
        if let Some(rest) = name.strip_prefix(opening) {
            return parts(rest);
        }
    }
    let Some((before, last)) = name
        .rsplit_once(' ')
        .filter(|(_, l)| PREPOSITIONS.contains(l))
    else {
        let shape = if is_verb(name) {
            Shape::Verb
        } else {
            Shape::Noun
        };
        return (shape, name, "");
    };
    let word = before.rsplit(' ').next().unwrap_or(before);
    let irregular = IRREGULAR.iter().any(|(participle, _)| *participle == word);
    if irregular || word.len() > 3 && word.ends_with("ed") || word == "born" {
        (Shape::Participle, before, last)
    } else if last == "of" {
        (Shape::NounOf, before, last)
    } else if word.ends_with('s') {
        (Shape::Verb, before, last)
    } else {
        (Shape::Noun, name, "")
    }
}

/// What someone did by whom something was done: `written`, `by` is `wrote`.
fn past<'w>(participle: &'w str, preposition: &str) -> Option<&'w str> {
    if preposition != "by" || participle.contains(' ') {
        return None;
    }
    let irregular = IRREGULAR.iter().find(|(of, _)| *of == participle);
    irregular.map_or(Some(participle), |(_, past)| Some(past))
}

/// A verb without the ending of the third person.
fn base(verb: &str) -> &str {
    match verb.strip_suffix("es") {
        Some(base)
            if ["ch", "sh", "ss", "x"]
                .iter()
                .any(|end| base.ends_with(end)) =>
        {
            base
        }
        _ => verb.strip_suffix('s').unwrap_or(verb),
    }
}

fn plural(noun: &str) -> String {
    let ends = |ends: &[&str]| ends.iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        Some(stem) if !ends(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
        _ if ends(&["s", "x", "ch", "sh"]) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a step is told as.
    fn told(name: &str, forward: bool, class: Option<&str>, is_many: bool) -> Vec<String> {
        let step = Step {
            name,
            forward,
            class,
            is_many,
        };
        let mut random = Random::new(1);
        let mut all: Vec<String> = (0..60)
            .flat_map(|_| {
                [
                    step.phrase("X", &mut random),
                    step.question("X", &mut random),
                ]
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn names_are_told_by_what_they_are() {
        let along = told("directed by", true, None, false);
        assert_eq!(
            along,
            [
                "the person who directed X",
                "who directed X",
                "who was X directed by"
            ]
        );
        let against = told("directed by", false, Some("film"), true);
        assert_eq!(
            against,
            [
                "the films directed by X",
                "the films that were directed by X",
                "which films were directed by X"
            ]
        );
        let wrote = told("written by", true, None, false);
        assert!(wrote.contains(&"who wrote X".into()), "{wrote:?}");
        let verb = told("flows through", false, Some("river"), true);
        assert_eq!(
            verb,
            [
                "the rivers that flow through X",
                "which rivers flow through X"
            ]
        );
        let of = told("capital of", false, Some("city"), false);
        assert!(of.contains(&"what is the capital of X".into()), "{of:?}");
        let noun = told("has genre", false, None, true);
        assert!(
            noun.contains(&"the ones with the genre X".into()),
            "{noun:?}"
        );
        let many = told("starred actors", true, None, true);
        assert!(
            many.contains(&"what are the starred actors of X".into()),
            "{many:?}"
        );
    }

    #[test]
    fn no_place_of_a_template_stays_open() {
        for name in [
            "",
            "of",
            "by",
            "is",
            "borders",
            "born in",
            "part of",
            "in language",
            "a b c",
        ] {
            for forward in [true, false] {
                for class in [None, Some("country")] {
                    for text in told(name, forward, class, forward) {
                        assert!(!text.contains(['{', '}']), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn endings_of_plurals_and_verbs() {
        let plurals = ["city", "bus", "day", "church"].map(plural);
        assert_eq!(plurals, ["cities", "buses", "days", "churches"]);
        assert_eq!(
            ["flows", "teaches", "founded"].map(base),
            ["flow", "teach", "founded"]
        );
    }
}
