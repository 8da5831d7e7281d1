//! What the words of a question ask for beyond relations: counts, extremes, comparisons.
//!
//! ```text
//! how many rivers …                 count
//! the highest mountain …            best: largest by elevation or height
//! more than 5 million people        bound: > 5000000, by population
//! founded before 1990               bound: < 1990
//! between 1990 and 2000             two bounds
//! how high is …                     measure: elevation or height
//! the capital of the largest …      outer: `the capital`
//! which is older, X or Y            best, between the topics
//! ```
//!
//! Words inside names that were linked say nothing here. What was understood is blanked out of the
//! question, byte for byte, so that what is left can be read on with its spans.

use super::form::{Comparison, Constant, Extreme};

/// What was understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cues {
    /// A number of things is asked for.
    pub count: bool,
    /// The extreme that is asked for.
    pub best: Option<Best>,
    /// What values are bound to.
    pub bounds: Vec<Bound>,
    /// Words for the value that is asked for; empty where none is.
    pub measure: Vec<&'static str>,
    /// The words before `of the largest …`: what is asked of it.
    pub outer: Option<(usize, usize)>,
    /// The question without what was understood.
    pub rest: String,
}

/// An extreme.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// Largest or smallest.
    pub extreme: Extreme,
    /// Words for the value, likeliest first.
    pub hints: Vec<String>,
    /// It is about things named in the question: `which is older, X or Y`.
    pub between: bool,
}

/// A bound on a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// On which side.
    pub is: Comparison,
    /// Of what.
    pub than: Constant,
    /// Words for the value, likeliest first; empty where nothing is told.
    pub hints: Vec<String>,
}

const AREA: &[&str] = &["area", "size", "population"];
const HEIGHT: &[&str] = &["elevation", "height", "altitude"];
const LENGTH: &[&str] = &["length", "height", "duration"];
const DEPTH: &[&str] = &["depth"];
const WEIGHT: &[&str] = &["mass", "weight"];
const BEGUN: &[&str] = &[
    "birth",
    "inception",
    "founded",
    "foundation",
    "established",
    "start",
    "opened",
    "released",
    "date",
    "year",
];
const PEOPLE: &[&str] = &["population", "inhabitants"];
const WEALTH: &[&str] = &["gdp", "wealth", "income", "revenue"];
const SPEED: &[&str] = &["speed"];
const HEAT: &[&str] = &["temperature"];

/// Superlative, comparative, the value's extreme, words for the value.
const DEGREES: [(&str, &str, Extreme, &[&str]); 26] = [
    ("largest", "larger", Extreme::Largest, AREA),
    ("biggest", "bigger", Extreme::Largest, AREA),
    ("smallest", "smaller", Extreme::Smallest, AREA),
    ("greatest", "greater", Extreme::Largest, AREA),
    ("highest", "higher", Extreme::Largest, HEIGHT),
    ("tallest", "taller", Extreme::Largest, HEIGHT),
    ("lowest", "lower", Extreme::Smallest, HEIGHT),
    ("longest", "longer", Extreme::Largest, LENGTH),
    ("shortest", "shorter", Extreme::Smallest, LENGTH),
    ("deepest", "deeper", Extreme::Largest, DEPTH),
    ("shallowest", "shallower", Extreme::Smallest, DEPTH),
    ("heaviest", "heavier", Extreme::Largest, WEIGHT),
    ("lightest", "lighter", Extreme::Smallest, WEIGHT),
    ("oldest", "older", Extreme::Smallest, BEGUN),
    ("earliest", "earlier", Extreme::Smallest, BEGUN),
    ("first", "sooner", Extreme::Smallest, BEGUN),
    ("youngest", "younger", Extreme::Largest, BEGUN),
    ("newest", "newer", Extreme::Largest, BEGUN),
    ("latest", "later", Extreme::Largest, BEGUN),
    ("last", "last", Extreme::Largest, BEGUN),
    ("richest", "richer", Extreme::Largest, WEALTH),
    ("poorest", "poorer", Extreme::Smallest, WEALTH),
    ("fastest", "faster", Extreme::Largest, SPEED),
    ("slowest", "slower", Extreme::Smallest, SPEED),
    ("hottest", "hotter", Extreme::Largest, HEAT),
    ("coldest", "colder", Extreme::Smallest, HEAT),
];

/// After `how`.
const MEASURES: [(&str, &[&str]); 14] = [
    ("high", HEIGHT),
    ("tall", HEIGHT),
    ("long", LENGTH),
    ("deep", DEPTH),
    ("heavy", WEIGHT),
    ("large", &["area", "size"]),
    ("big", &["area", "size"]),
    ("old", BEGUN),
    ("populous", PEOPLE),
    ("populated", PEOPLE),
    ("rich", WEALTH),
    ("fast", SPEED),
    ("hot", HEAT),
    ("cold", HEAT),
];

/// Words beside a number that tell what it measures.
const UNITS: [(&str, &[&str]); 20] = [
    ("people", PEOPLE),
    ("inhabitants", PEOPLE),
    ("residents", PEOPLE),
    ("citizens", PEOPLE),
    ("m", HEIGHT),
    ("metres", HEIGHT),
    ("meters", HEIGHT),
    ("feet", HEIGHT),
    ("ft", HEIGHT),
    ("km", LENGTH),
    ("kilometres", LENGTH),
    ("kilometers", LENGTH),
    ("miles", LENGTH),
    ("square", &["area"]),
    ("km2", &["area"]),
    ("km²", &["area"]),
    ("sq", &["area"]),
    ("kg", WEIGHT),
    ("tonnes", WEIGHT),
    ("minutes", &["duration", "runtime", "length"]),
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

struct Word {
    start: usize,
    end: usize,
    /// Lower case.
    text: String,
    /// Inside a name.
    named: bool,
}

impl Cues {
    /// Reads a question; `names` are the byte ranges of linked names.
    ///
    /// ```
    /// use wherefore::logic::{Comparison, Cues};
    /// let cues = Cues::read("Which cities have more than 5 million inhabitants?", &[]);
    /// assert_eq!(cues.bounds[0].is, Comparison::Greater);
    /// assert_eq!(cues.bounds[0].than.to_string(), "5000000");
    /// assert_eq!(cues.bounds[0].hints[0], "population");
    /// ```
    pub fn read(question: &str, names: &[(usize, usize)]) -> Self {
        let words = words(question, names);
        let mut reader = Reader {
            words: &words,
            used: vec![false; words.len()],
            cues: Cues::default(),
        };
        reader.bounds();
        reader.count_and_measure();
        reader.best();
        let used = reader.used;
        let mut cues = reader.cues;
        let mut rest = question.as_bytes().to_vec();
        for (word, used) in words.iter().zip(&used) {
            if *used {
                rest[word.start..word.end].fill(b' ');
            }
        }
        cues.rest = String::from_utf8(rest).unwrap_or_else(|_| question.to_owned());
        cues
    }

    /// Whether the question asks for more than relations.
    pub fn is_plain(&self) -> bool {
        !self.count && self.best.is_none() && self.bounds.is_empty() && self.measure.is_empty()
    }
}

fn words(question: &str, names: &[(usize, usize)]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut from = 0;
    for part in question.split_inclusive(char::is_whitespace) {
        let bare = part.trim_end();
        let left = bare.trim_start_matches(|c: char| c.is_ascii_punctuation() && c != '-');
        let trimmed = left.trim_end_matches(|c: char| c.is_ascii_punctuation());
        if !trimmed.is_empty() {
            let start = from + bare.len() - left.len();
            let end = start + trimmed.len();
            words.push(Word {
                start,
                end,
                text: trimmed.to_lowercase(),
                named: names.iter().any(|&(s, e)| start < e && s < end),
            });
        }
        from += part.len();
    }
    words
}

fn owned(hints: &[&str]) -> Vec<String> {
    hints.iter().map(|&h| h.to_owned()).collect()
}

struct Reader<'a> {
    words: &'a [Word],
    used: Vec<bool>,
    cues: Cues,
}

impl<'a> Reader<'a> {
    fn word(&self, at: usize) -> &'a str {
        match self.words.get(at) {
            Some(word) if !word.named => &word.text,
            _ => "",
        }
    }

    fn phrase(&self, at: usize, phrase: &str) -> Option<usize> {
        let mut end = at;
        for wanted in phrase.split(' ') {
            if self.word(end) != wanted {
                return None;
            }
            end += 1;
        }
        Some(end)
    }

    fn mark(&mut self, from: usize, to: usize) {
        self.used[from..to.min(self.words.len())].fill(true);
    }

    /// A number and the place after it: `1,500,000`, `2.5 million`. A number may be a name too.
    fn number(&self, at: usize) -> Option<(String, usize)> {
        let factor = |at: usize| match self.words.get(at).map(|w| w.text.as_str()) {
            Some("thousand") => Some(1e3),
            Some("million") => Some(1e6),
            Some("billion" | "bn") => Some(1e9),
            Some("trillion") => Some(1e12),
            _ => None,
        };
        let text = self.words.get(at)?.text.trim_start_matches(['$', '€', '£']);
        const SMALL: [&str; 10] = [
            "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        ];
        let small = SMALL
            .iter()
            .position(|word| *word == text)
            .map(|n| n as f64 + 1.0);
        // `a million`, but not `a`
        let small = small.or_else(|| factor(at + 1).filter(|_| text == "a").map(|_| 1.0));
        if let Some(small) = small {
            return Some(match factor(at + 1) {
                Some(factor) => (format!("{}", small * factor), at + 2),
                None => (format!("{small}"), at + 1),
            });
        }
        let digits = text.replace(',', "");
        let (digits, own) = match digits.strip_suffix(['k', 'm']) {
            Some(bare) if bare.parse::<f64>().is_ok() => {
                let factor = if digits.ends_with('k') { 1e3 } else { 1.0 };
                (bare.to_owned(), factor)
            }
            _ => (digits.trim_end_matches('%').to_owned(), 1.0),
        };
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return None;
        }
        let value: f64 = digits.parse().ok()?;
        let (factor, end) = match factor(at + 1) {
            Some(factor) => (factor, at + 2),
            None => (own, at + 1),
        };
        let value = value * factor;
        value.is_finite().then(|| (format!("{value}"), end))
    }

    /// A date and the place after it: `1990`, `1990-05-01`, `May 1990`, `1 May 1990`, `May 1, 1990`.
    fn date(&self, at: usize) -> Option<(String, usize)> {
        let text = |at: usize| self.words.get(at).map_or("", |w| w.text.as_str());
        let year = |at: usize| {
            let text = text(at);
            (text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.to_owned())
        };
        let month = |at: usize| MONTHS.iter().position(|m| *m == text(at)).map(|m| m + 1);
        let day = |at: usize| {
            let bare = text(at).trim_end_matches(|c: char| c.is_ascii_alphabetic());
            bare.parse::<u32>().ok().filter(|d| (1..=31).contains(d))
        };
        if let Some(year) = year(at) {
            return Some((year, at + 1));
        }
        if text(at).len() == 10 && super::Moment::parse(text(at)).is_some() {
            return Some((text(at).to_owned(), at + 1));
        }
        if let Some(month) = month(at) {
            if let Some(year) = year(at + 1) {
                return Some((format!("{year}-{month:02}"), at + 2));
            }
            let (day, year) = (day(at + 1)?, year(at + 2)?);
            return Some((format!("{year}-{month:02}-{day:02}"), at + 3));
        }
        let (day, month, year) = (day(at)?, month(at + 1)?, year(at + 2)?);
        Some((format!("{year}-{month:02}-{day:02}"), at + 3))
    }

    fn bounds(&mut self) {
        const NUMBERS: [(&str, Comparison); 20] = [
            ("more than", Comparison::Greater),
            ("greater than", Comparison::Greater),
            ("over", Comparison::Greater),
            ("above", Comparison::Greater),
            ("exceeding", Comparison::Greater),
            ("exceeds", Comparison::Greater),
            ("exceed", Comparison::Greater),
            ("no more than", Comparison::AtMost),
            ("not more than", Comparison::AtMost),
            ("at most", Comparison::AtMost),
            ("up to", Comparison::AtMost),
            ("no less than", Comparison::AtLeast),
            ("no fewer than", Comparison::AtLeast),
            ("at least", Comparison::AtLeast),
            ("less than", Comparison::Less),
            ("fewer than", Comparison::Less),
            ("under", Comparison::Less),
            ("below", Comparison::Less),
            ("minimum of", Comparison::AtLeast),
            ("maximum of", Comparison::AtMost),
        ];
        const DATES: [(&str, Comparison); 9] = [
            ("on or before", Comparison::AtMost),
            ("on or after", Comparison::AtLeast),
            ("earlier than", Comparison::Less),
            ("later than", Comparison::Greater),
            ("prior to", Comparison::Less),
            ("before", Comparison::Less),
            ("after", Comparison::Greater),
            ("since", Comparison::AtLeast),
            ("until", Comparison::AtMost),
        ];
        let mut at = 0;
        while at < self.words.len() {
            at = self
                .between(at)
                .or_else(|| self.dated(at, &DATES))
                .or_else(|| self.within(at))
                .or_else(|| self.compared(at))
                .or_else(|| self.counted(at, &NUMBERS))
                .unwrap_or(at + 1);
        }
    }

    fn bound(&mut self, is: Comparison, than: String, hints: Vec<String>) {
        self.cues.bounds.push(Bound {
            is,
            than: Constant::Bare(than),
            hints,
        });
    }

    /// `between 1990 and 2000`, numbers or dates.
    fn between(&mut self, at: usize) -> Option<usize> {
        let from = self.phrase(at, "between")?;
        let dates = self.date(from).and_then(|(low, and)| {
            let (high, end) = self.date(self.phrase(and, "and")?)?;
            Some((low, high, end, owned(BEGUN)))
        });
        let is_dates = dates.is_some();
        let (low, high, end, hints) = dates.or_else(|| {
            let (low, and) = self.number(from)?;
            let second = self.phrase(and, "and")?;
            let (high, end) = self.number(second)?;
            // `million` stands behind both
            let times = match (and == from + 1, end > second + 1) {
                (true, true) => {
                    high.parse::<f64>().ok()?
                        / self.words[second].text.parse::<f64>().unwrap_or(1.0)
                }
                _ => 1.0,
            };
            let low = low.parse::<f64>().ok()? * times;
            Some((format!("{low}"), high, end, Vec::new()))
        })?;
        let (unit, end) = self.unit(end);
        let hints = if unit.is_empty() { hints } else { unit };
        self.bound(Comparison::AtLeast, low, hints.clone());
        match after(&high).filter(|_| is_dates) {
            Some(next) => self.bound(Comparison::Less, next, hints),
            None => self.bound(Comparison::AtMost, high, hints),
        }
        self.mark(at, end);
        Some(end)
    }

    /// `before 1990`.
    fn dated(&mut self, at: usize, table: &[(&str, Comparison)]) -> Option<usize> {
        let (is, from) = table
            .iter()
            .find_map(|(phrase, is)| Some((*is, self.phrase(at, phrase)?)))?;
        let (date, end) = self.date(from)?;
        // a year lasts until the next
        let (is, date) = match (is, after(&date)) {
            (Comparison::Greater, Some(next)) => (Comparison::AtLeast, next),
            (Comparison::AtMost, Some(next)) => (Comparison::Less, next),
            _ => (is, date),
        };
        self.bound(is, date, owned(BEGUN));
        self.mark(at, end);
        Some(end)
    }

    /// `in 1990`: from its beginning to the next.
    fn within(&mut self, at: usize) -> Option<usize> {
        let from = self
            .phrase(at, "in")
            .or_else(|| self.phrase(at, "during"))?;
        let (date, end) = self.date(from)?;
        // a year that the graph knows as a thing is a topic
        if self.words[from..end].iter().any(|w| w.named) {
            return None;
        }
        let next = after(&date)?;
        self.bound(Comparison::AtLeast, date, owned(BEGUN));
        self.bound(Comparison::Less, next, owned(BEGUN));
        self.mark(at, end);
        Some(end)
    }

    /// `higher than 3000 m`.
    fn compared(&mut self, at: usize) -> Option<usize> {
        let (_, _, extreme, hints) = DEGREES
            .iter()
            .find(|(_, comparative, ..)| *comparative == self.word(at))?;
        let from = self.phrase(at + 1, "than")?;
        let (than, end) = self.number(from)?;
        // an older thing begins earlier
        let is = match extreme {
            Extreme::Largest => Comparison::Greater,
            Extreme::Smallest => Comparison::Less,
        };
        let (unit, end) = self.unit(end);
        let mut all = unit;
        all.extend(owned(hints));
        self.bound(is, than, all);
        self.mark(at, end);
        Some(end)
    }

    /// `more than 5 million people`.
    fn counted(&mut self, at: usize, table: &[(&str, Comparison)]) -> Option<usize> {
        let (is, from) = table
            .iter()
            .find_map(|(phrase, is)| Some((*is, self.phrase(at, phrase)?)))?;
        let (than, end) = self.number(from)?;
        let (unit, end) = self.unit(end);
        self.bound(is, than, unit);
        self.mark(at, end);
        Some(end)
    }

    /// What a number measures, by the word after it.
    fn unit(&self, at: usize) -> (Vec<String>, usize) {
        let found = UNITS.iter().find(|(unit, _)| *unit == self.word(at));
        match found {
            Some(("square" | "sq", hints)) => (owned(hints), at + 2),
            Some((_, hints)) => (owned(hints), at + 1),
            None => (Vec::new(), at),
        }
    }

    fn count_and_measure(&mut self) {
        for at in 0..self.words.len() {
            if let Some(end) = self.phrase(at, "how many") {
                let people = UNITS[..4].iter().any(|(unit, _)| *unit == self.word(end));
                self.cues.count = true;
                if people {
                    self.cues.measure = PEOPLE.to_vec();
                    self.mark(at, end + 1);
                } else {
                    self.mark(at, end);
                }
                return;
            }
            for phrase in ["the number of", "number of", "the total number of"] {
                if let Some(end) = self.phrase(at, phrase).filter(|_| at < 4) {
                    self.cues.count = true;
                    self.mark(at, end);
                    return;
                }
            }
            if self.word(at) == "how" {
                let asked = self.word(at + 1);
                if let Some((_, hints)) = MEASURES.iter().find(|(word, _)| *word == asked) {
                    self.cues.measure = hints.to_vec();
                    self.mark(at, at + 2);
                    return;
                }
            }
        }
    }

    fn best(&mut self) {
        let choice = (0..self.words.len())
            .any(|at| self.word(at) == "or" && at > 0 && at + 1 < self.words.len());
        for at in 0..self.words.len() {
            if self.used[at] {
                continue;
            }
            let word = self.word(at);
            let degree = DEGREES.iter().find(|(superlative, comparative, ..)| {
                *superlative == word || choice && *comparative == word
            });
            let found = match (word, degree) {
                ("most" | "fewest" | "least" | "more" | "fewer" | "less", _)
                    if choice || !matches!(word, "more" | "fewer" | "less") =>
                {
                    let extreme = match word {
                        "most" | "more" => Extreme::Largest,
                        _ => Extreme::Smallest,
                    };
                    match self.word(at + 1) {
                        "recent" => Some((Extreme::Largest, owned(BEGUN), at + 2)),
                        "populous" | "populated" => Some((extreme, owned(PEOPLE), at + 2)),
                        "" => None,
                        noun => {
                            let people = UNITS[..4].iter().any(|(unit, _)| *unit == noun);
                            let mut hints = if people { owned(PEOPLE) } else { Vec::new() };
                            hints.push(noun.to_owned());
                            Some((extreme, hints, at + 2))
                        }
                    }
                }
                (_, Some((_, _, extreme, hints))) => {
                    let town = matches!(
                        self.word(at + 1),
                        "city"
                            | "cities"
                            | "town"
                            | "towns"
                            | "metropolis"
                            | "village"
                            | "villages"
                            | "municipality"
                    );
                    let hints = match *hints == AREA && town {
                        true => owned(&["population", "area", "size"]),
                        false => owned(hints),
                    };
                    Some((*extreme, hints, at + 1))
                }
                _ => None,
            };
            let Some((extreme, hints, end)) = found else {
                continue;
            };
            // `the capital of the largest …`
            let before = at
                .checked_sub(2)
                .filter(|&of| self.word(of) == "of" && self.word(at - 1) == "the");
            if let Some(of) = before.filter(|&of| of > 0) {
                let first = (0..of).find(|&i| {
                    !matches!(
                        self.word(i),
                        "what" | "who" | "which" | "is" | "are" | "was" | "were" | "where" | "when"
                    )
                });
                if let Some(first) = first {
                    self.cues.outer = Some((self.words[first].start, self.words[of - 1].end));
                    self.mark(first, of + 1);
                }
            }
            self.cues.best = Some(Best {
                extreme,
                hints,
                between: choice,
            });
            self.mark(at, end);
            return;
        }
    }
}

/// The year after a year, the month after a month. None after a day.
fn after(date: &str) -> Option<String> {
    let year: i32 = date.get(..4)?.parse().ok()?;
    match date.len() {
        4 => Some(format!("{}", year + 1)),
        7 => Some(match date.get(5..)?.parse::<u32>().ok()? {
            12 => format!("{}-01", year + 1),
            month => format!("{year}-{:02}", month + 1),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds(question: &str) -> Vec<String> {
        Cues::read(question, &[])
            .bounds
            .iter()
            .map(|b| {
                format!(
                    "{:?} {} {}",
                    b.is,
                    b.than,
                    b.hints.first().map_or("", |h| h)
                )
            })
            .collect()
    }

    #[test]
    fn bounds_are_read_with_their_numbers_and_dates() {
        assert_eq!(
            bounds("cities with more than 1,500,000 people"),
            ["Greater 1500000 population"]
        );
        assert_eq!(
            bounds("at least 2.5 million inhabitants"),
            ["AtLeast 2500000 population"]
        );
        assert_eq!(
            bounds("over a million people"),
            ["Greater 1000000 population"]
        );
        assert_eq!(
            bounds("mountains higher than 3000 m"),
            ["Greater 3000 elevation"]
        );
        assert_eq!(
            bounds("countries smaller than 1000 square kilometres"),
            ["Less 1000 area"]
        );
        assert_eq!(bounds("founded before 1990?"), ["Less 1990 birth"]);
        assert_eq!(bounds("founded after 1990?"), ["AtLeast 1991 birth"]);
        assert_eq!(bounds("until December 1990"), ["Less 1991-01 birth"]);
        assert_eq!(
            bounds("born after 14 March 1879"),
            ["Greater 1879-03-14 birth"]
        );
        assert_eq!(
            bounds("born since May 1, 1900"),
            ["AtLeast 1900-05-01 birth"]
        );
        assert_eq!(
            bounds("opened in 1999"),
            ["AtLeast 1999 birth", "Less 2000 birth"]
        );
        assert_eq!(
            bounds("in December 1999"),
            ["AtLeast 1999-12 birth", "Less 2000-01 birth"]
        );
        assert_eq!(
            bounds("between 1990 and 2000"),
            ["AtLeast 1990 birth", "Less 2001 birth"]
        );
        assert_eq!(
            bounds("between 5 and 10 million people"),
            ["AtLeast 5000000 population", "AtMost 10000000 population"]
        );
        assert_eq!(bounds("over the rainbow, after the war"), [""; 0]);
    }

    #[test]
    fn extremes_counts_and_measures_are_read() {
        let cues = Cues::read("What is the capital of the largest country?", &[]);
        let best = cues.best.unwrap();
        assert_eq!(
            (best.extreme, best.hints[0].as_str()),
            (Extreme::Largest, "area")
        );
        let (from, to) = cues.outer.unwrap();
        assert_eq!(
            &"What is the capital of the largest country?"[from..to],
            "the capital"
        );
        assert!(cues.rest.contains("country") && !cues.rest.contains("largest"));
        let cues = Cues::read("Which is the largest city?", &[]);
        assert_eq!(cues.best.unwrap().hints[0], "population");
        assert!(Cues::read("How many rivers are there?", &[]).count);
        let cues = Cues::read("How many people live in Oslo?", &[]);
        assert_eq!(cues.measure[0], "population");
        assert_eq!(Cues::read("How high is it?", &[]).measure[0], "elevation");
        let cues = Cues::read("Which is older, Oslo or Rome?", &[(16, 20), (24, 28)]);
        assert!(cues.best.unwrap().between);
        assert_eq!(
            Cues::read("Which state has the most lakes?", &[])
                .best
                .unwrap()
                .hints,
            ["lakes"]
        );
    }

    #[test]
    fn words_inside_names_say_nothing() {
        let question = "Who directed The Last Emperor?";
        let cues = Cues::read(question, &[(13, 29)]);
        assert!(cues.is_plain());
        assert_eq!(cues.rest, question);
    }

    proptest! {
        #[test]
        fn what_is_left_keeps_its_places(question in "(?s:.{0,60})|[a-z0-9 ,%$]{0,40}|how many (more than 5 )?é[0-9]{4}") {
            let cues = Cues::read(&question, &[(2, 5)]);
            prop_assert_eq!(cues.rest.len(), question.len());
        }
    }
}
