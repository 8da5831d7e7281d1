//! What closed-class words mean, from a language file, and which words people say for which, from
//! a list.

mod kinds;
mod wording;

use std::sync::OnceLock;

use hashbrown::{HashMap, HashSet};
use serde::Deserialize;

use self::kinds::KindList;
pub(super) use self::kinds::Profile;
pub(super) use self::wording::Sense;
use self::wording::{Wording, phrases_of};
use crate::logic::{Aggregate, Comparison};
use crate::words::stem;

/// `officially` as `official`, `monthly` as `month`.
pub(super) fn adverb(word: &str) -> &str {
    word.strip_suffix("ly")
        .filter(|w| w.len() >= 5)
        .unwrap_or(word)
}

/// Letters that an adjective has at the least, to be found at the beginning of another word.
const LEAST_ADJECTIVE: usize = 4;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    silent: Vec<String>,
    light: Vec<String>,
    place: Vec<String>,
    time: Vec<String>,
    person: Vec<String>,
    both: Vec<String>,
    reflexive: Vec<String>,
    amount: Vec<String>,
    place_relations: Vec<String>,
    people: Named,
    places: Named,
    years: Vec<String>,
    whens: HashSet<String>,
    yes: HashSet<String>,
    no: HashSet<String>,
    generic: HashSet<String>,
    scopes: HashSet<String>,
    whose: HashSet<String>,
    unlike: Vec<String>,
    century: HashSet<String>,
    decades: HashMap<String, f64>,
    months: HashMap<String, u32>,
    in_dates: HashSet<String>,
    ages: Vec<String>,
    values: Vec<String>,
    kinds: Vec<String>,
    than: Vec<String>,
    particles: Vec<String>,
    yes_no: Vec<String>,
    asking: Vec<String>,
    picking: Vec<String>,
    telling: Vec<String>,
    possessive: Vec<String>,
    own: Vec<String>,
    events: Vec<String>,
    ranking: Vec<String>,
    each: Vec<String>,
    ranges: Vec<[String; 2]>,
    beside: Vec<String>,
    polite: Vec<String>,
    present: Vec<String>,
    participles: Vec<String>,
    participle_ends: Vec<String>,
    superlative_end: String,
    no_superlatives: Vec<String>,
    count: Vec<String>,
    share: Vec<String>,
    difference: Vec<String>,
    percentage: Vec<String>,
    idle: Vec<String>,
    follow: FollowWords,
    between: Between,
    aggregates: Aggregates,
    logic: Logic,
    order: Order,
    ordinals: HashMap<String, Vec<String>>,
    numbers: HashMap<String, f64>,
    zeros: Vec<Zero>,
    degrees: Vec<Degree>,
    extreme: Extremes,
    compare: Compares,
    units: Vec<Units>,
    rate: HashSet<String>,
    begins: HashSet<String>,
    single: HashSet<String>,
    half: HashSet<String>,
    plus: HashSet<String>,
    groups: HashMap<String, Vec<String>>,
    chains: Vec<Chain>,
    inverse: HashMap<String, String>,
}

/// Relations that things of a kind have, and those that lead to them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    classes: Vec<String>,
    have: Vec<String>,
    led_to_by: Vec<String>,
}

/// Words of a question that follows another.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FollowWords {
    /// What it may begin with.
    pub(super) joined: HashSet<String>,
    /// What begins one that says a part of the last one anew.
    pub(super) about: Vec<String>,
    /// Words for one thing that was answered, and for several.
    pub(super) one: HashSet<String>,
    pub(super) many: HashSet<String>,
    pub(super) place: HashSet<String>,
    pub(super) own_one: HashSet<String>,
    pub(super) own_many: HashSet<String>,
    /// Those that may stand before a noun.
    pub(super) pointing: HashSet<String>,
    /// What follows them where they begin a clause.
    pub(super) clauses: HashSet<String>,
    /// What stands for a noun after them.
    pub(super) ones: HashSet<String>,
    pub(super) pairs: HashSet<String>,
    /// After these `there` says only that something is.
    pub(super) being: HashSet<String>,
    /// What is put in where nothing stands for what was answered.
    pub(super) left_out: String,
}

/// Words that say that there is none of what something measures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Zero {
    words: Vec<String>,
    measures: Vec<String>,
}

/// Units of one kind, each with how many of the smallest it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Units {
    measures: Vec<String>,
    labels: HashMap<String, f64>,
    said: HashMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chain {
    words: Vec<String>,
    steps: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Between {
    of: Vec<String>,
    by: Vec<String>,
    #[serde(rename = "in")]
    inside: Vec<String>,
    with: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Aggregates {
    avg: Vec<String>,
    sum: Vec<String>,
    max: Vec<String>,
    min: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Logic {
    and: Vec<String>,
    or: Vec<String>,
    not: Vec<String>,
    except: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    asc: Vec<String>,
    desc: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Degree {
    most: Vec<String>,
    more: Vec<String>,
    least: Vec<String>,
    less: Vec<String>,
    how: Vec<String>,
    measures: Vec<String>,
    /// Whether any time that something has may be meant.
    #[serde(default)]
    times: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Extremes {
    most: Vec<String>,
    least: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compares {
    gt: Vec<String>,
    ge: Vec<String>,
    lt: Vec<String>,
    le: Vec<String>,
    eq: Vec<String>,
}

/// What an operator phrase says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    /// `how many`.
    Count,
    /// `average`.
    Aggregate(Aggregate),
    /// `and`.
    And,
    /// `or`.
    Or,
    /// `not`.
    Not,
    /// `except`.
    Except,
    /// `how much`, `difference`.
    Difference,
    /// `percentage of`.
    Percentage,
    /// `longest`: whether the greatest is meant, and the degree's number.
    Best(bool, u8),
    /// `most`, `highest`: by whatever follows.
    Extreme(bool),
    /// `longer`: whether greater is meant, and the degree's number.
    More(bool, u8),
    /// `more than`.
    Compare(Comparison),
    /// `how long`: the degree's number.
    How(u8),
    /// `second`: the place.
    Ordinal(u32),
    /// `sorted by`: whether the greatest comes first.
    Order(bool),
    /// `the same`: as something else has.
    Share,
    /// `built`, before a year.
    Event,
    /// `rank`, before what is to be put in order.
    Rank,
    /// `for each`.
    Each,
    /// Says nothing.
    Idle,
    /// `where`.
    Where,
    /// `when`.
    When,
    /// `free`: the number of the words for nothing.
    Zero(u8),
}

/// A unit: of what kind, and how many of the smallest of the kind it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) kind: u8,
    pub(super) times: f64,
}

/// What stands between two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Nothing that says anything.
    None,
    Of,
    By,
    In,
    With,
}

/// Relations that things of a kind have, and those that lead to them, each as its stems.
pub(super) struct Signs {
    /// The last words of classes of them, as stems.
    pub(super) classes: HashSet<String>,
    pub(super) have: Vec<HashSet<String>>,
    pub(super) led_to_by: Vec<HashSet<String>>,
}

/// A language.
pub(super) struct Lang {
    silent: HashSet<String>,
    light: HashSet<String>,
    pub(super) person: HashSet<String>,
    pub(super) both: HashSet<String>,
    pub(super) reflexive: HashSet<String>,
    amount: HashSet<String>,
    pub(super) yes_no: HashSet<String>,
    asking: HashSet<String>,
    picking: HashSet<String>,
    telling: HashSet<String>,
    possessive: HashSet<String>,
    own: HashSet<String>,
    ranges: Vec<[String; 2]>,
    beside: HashSet<String>,
    polite: HashSet<String>,
    present: HashSet<String>,
    participles: HashSet<String>,
    superlative_end: String,
    no_superlatives: HashSet<String>,
    participle_ends: Vec<String>,
    pub(super) place_relations: Vec<String>,
    /// What only people have, and only places.
    pub(super) people: Signs,
    pub(super) places: Signs,
    pub(super) years: HashSet<String>,
    /// Words of relations that say when something is, as they stand.
    pub(super) whens: HashSet<String>,
    yes: HashSet<String>,
    no: HashSet<String>,
    /// Nouns for whatever there is: `items`.
    pub(super) generic: HashSet<String>,
    /// Nouns for all that a graph holds.
    pub(super) scopes: HashSet<String>,
    pub(super) whose: HashSet<String>,
    /// How words begin that say that something is not so: `unsold`.
    pub(super) unlike: Vec<String>,
    pub(super) century: HashSet<String>,
    pub(super) decades: HashMap<String, f64>,
    pub(super) months: HashMap<String, u32>,
    pub(super) in_dates: HashSet<String>,
    /// What relations to ages are called.
    pub(super) ages: HashSet<String>,
    pub(super) values: HashSet<String>,
    /// Stems of relations that say what a thing is.
    pub(super) kinds: HashSet<String>,
    than: HashSet<String>,
    /// Verbs, by their stems, each with a word that belongs to it: `look after`.
    particles: HashSet<(String, String)>,
    pub(super) follow: FollowWords,
    /// Phrases by their first word.
    phrases: HashMap<String, Vec<(Vec<String>, Op)>>,
    /// Stems of what each degree measures.
    pub(super) measures: Vec<Vec<String>>,
    /// Stems of what words for nothing measure.
    pub(super) zeros: Vec<HashSet<String>>,
    /// Degrees that any time may be meant by.
    pub(super) timed: Vec<bool>,
    groups: HashMap<String, Vec<u16>>,
    /// What people say for the words of labels.
    pub(super) wording: Wording,
    /// What things that are called by a noun have.
    pub(super) things: KindList,
    /// The steps that one word means, by its stem.
    chains: HashMap<String, Vec<String>>,
    /// Stems of relations that say the same the other way round.
    inverse: HashMap<String, String>,
    numbers: HashMap<String, f64>,
    /// Units that labels end with, and those that are said.
    label_units: HashMap<String, Unit>,
    said_units: HashMap<String, Unit>,
    /// Stems of what each kind of units measures.
    unit_measures: Vec<HashSet<String>>,
    rate: HashSet<String>,
    begins: HashSet<String>,
    single: HashSet<String>,
    half: HashSet<String>,
    plus: HashSet<String>,
    between: HashMap<String, Gap>,
}

/// English.
pub(super) fn english() -> &'static Lang {
    static EN: OnceLock<Lang> = OnceLock::new();
    EN.get_or_init(|| {
        let file = toml::from_str(include_str!("en.toml"));
        Lang::new(file.expect("the language file is sound, a test reads it"))
    })
}

impl Lang {
    fn new(file: File) -> Self {
        let silent: HashSet<String> = file.silent.into_iter().collect();
        let stems = |labels: &[String]| -> Vec<HashSet<String>> {
            let of = |label: &String| {
                let says = |word: &str| !silent.contains(word);
                // as the words of relations: all of them where no other is left
                let all = label.split(' ');
                let some = label.split(' ').any(says);
                let kept = all.filter(|word| !some || says(word));
                kept.map(|word| stem(adverb(word)).into_owned()).collect()
            };
            labels.iter().map(of).collect()
        };
        let signs = |named: &Named| Signs {
            classes: named.classes.iter().map(|w| stem(w).into_owned()).collect(),
            have: stems(&named.have),
            led_to_by: stems(&named.led_to_by),
        };
        let (people, places) = (signs(&file.people), signs(&file.places));
        let mut lang = Lang {
            silent,
            people,
            places,
            light: file.light.iter().map(|w| stem(w).into_owned()).collect(),
            person: file.person.into_iter().collect(),
            both: file.both.into_iter().collect(),
            reflexive: file.reflexive.into_iter().collect(),
            amount: file.amount.into_iter().collect(),
            yes_no: file.yes_no.into_iter().collect(),
            asking: file.asking.into_iter().collect(),
            picking: file.picking.into_iter().collect(),
            telling: file.telling.into_iter().collect(),
            possessive: file.possessive.into_iter().collect(),
            own: file.own.into_iter().collect(),
            ranges: file.ranges,
            beside: file.beside.into_iter().collect(),
            polite: file.polite.into_iter().collect(),
            present: file.present.into_iter().collect(),
            participles: file.participles.into_iter().collect(),
            participle_ends: file.participle_ends,
            superlative_end: file.superlative_end,
            no_superlatives: file.no_superlatives.into_iter().collect(),
            place_relations: file
                .place_relations
                .iter()
                .map(|w| stem(w).into_owned())
                .collect(),
            whens: file.whens,
            yes: file.yes,
            no: file.no,
            generic: file.generic,
            scopes: file.scopes,
            whose: file.whose,
            unlike: file.unlike,
            century: file.century,
            decades: file.decades,
            months: file.months,
            in_dates: file.in_dates,
            years: file.years.iter().map(|w| stem(w).into_owned()).collect(),
            ages: file.ages.iter().map(|w| stem(w).into_owned()).collect(),
            values: file.values.iter().map(|w| stem(w).into_owned()).collect(),
            kinds: file.kinds.iter().map(|w| stem(w).into_owned()).collect(),
            than: file.than.into_iter().collect(),
            particles: (file.particles.iter())
                .filter_map(|words| words.split_once(' '))
                .map(|(verb, particle)| (stem(verb).into_owned(), particle.to_owned()))
                .collect(),
            follow: file.follow,
            phrases: HashMap::new(),
            measures: Vec::new(),
            zeros: Vec::new(),
            timed: Vec::new(),
            groups: HashMap::new(),
            wording: Wording::read(include_str!("en.words.tsv")),
            things: KindList::read(include_str!("en.kinds.tsv")),
            chains: HashMap::new(),
            inverse: (file.inverse.iter())
                .map(|(a, b)| (stem(a).into_owned(), stem(b).into_owned()))
                .collect(),
            numbers: file.numbers,
            label_units: HashMap::new(),
            said_units: HashMap::new(),
            unit_measures: Vec::new(),
            rate: file.rate,
            begins: file.begins,
            single: file.single,
            half: file.half,
            plus: file.plus,
            between: HashMap::new(),
        };
        let Between {
            of,
            by,
            inside,
            with,
        } = file.between;
        let gaps = [
            (of, Gap::Of),
            (by, Gap::By),
            (inside, Gap::In),
            (with, Gap::With),
        ];
        for (words, gap) in gaps {
            lang.between.extend(words.into_iter().map(|w| (w, gap)));
        }
        let Aggregates { avg, sum, max, min } = file.aggregates;
        let Compares { gt, ge, lt, le, eq } = file.compare;
        let plain = [
            (file.place, Op::Where),
            (file.time, Op::When),
            (file.count, Op::Count),
            (file.share, Op::Share),
            (file.events, Op::Event),
            (file.ranking, Op::Rank),
            (file.each, Op::Each),
            (file.idle, Op::Idle),
            (avg, Op::Aggregate(Aggregate::Average)),
            (sum, Op::Aggregate(Aggregate::Sum)),
            (max, Op::Aggregate(Aggregate::Largest)),
            (min, Op::Aggregate(Aggregate::Smallest)),
            (file.logic.and, Op::And),
            (file.logic.or, Op::Or),
            (file.logic.not, Op::Not),
            (file.logic.except, Op::Except),
            (file.difference, Op::Difference),
            (file.percentage, Op::Percentage),
            (file.order.asc, Op::Order(false)),
            (file.order.desc, Op::Order(true)),
            (file.extreme.most, Op::Extreme(true)),
            (file.extreme.least, Op::Extreme(false)),
            (gt, Op::Compare(Comparison::Greater)),
            (ge, Op::Compare(Comparison::AtLeast)),
            (lt, Op::Compare(Comparison::Less)),
            (le, Op::Compare(Comparison::AtMost)),
            (eq, Op::Compare(Comparison::Equal)),
        ];
        for (phrases, op) in plain {
            lang.say(&phrases, op);
        }
        for (place, words) in &file.ordinals {
            if let Ok(place) = place.parse() {
                lang.say(words, Op::Ordinal(place));
            }
        }
        for (n, degree) in (0..).zip(file.degrees) {
            lang.say(&degree.most, Op::Best(true, n));
            lang.say(&degree.least, Op::Best(false, n));
            lang.say(&degree.more, Op::More(true, n));
            lang.say(&degree.less, Op::More(false, n));
            let how: Vec<String> = degree.how.iter().map(|w| format!("how {w}")).collect();
            lang.say(&how, Op::How(n));
            let stems = degree.measures.iter().map(|m| stem(m).into_owned());
            lang.measures.push(stems.collect());
            lang.timed.push(degree.times);
        }
        for (n, zero) in (0..).zip(file.zeros) {
            lang.say(&zero.words, Op::Zero(n));
            let stems = zero.measures.iter().map(|m| stem(m).into_owned());
            lang.zeros.push(stems.collect());
        }
        for (kind, units) in (0..).zip(file.units) {
            let stems = units.measures.iter().map(|m| stem(m).into_owned());
            lang.unit_measures.push(stems.collect());
            for (word, times) in units.labels {
                let unit = Unit { kind, times };
                lang.label_units.insert(word.clone(), unit);
                lang.said_units.insert(word, unit);
            }
            for (word, times) in units.said {
                lang.said_units.insert(word, Unit { kind, times });
            }
        }
        for Chain { words, steps } in file.chains {
            let steps: Vec<String> = steps.iter().map(|s| stem(s).into_owned()).collect();
            for word in words {
                lang.chains.insert(stem(&word).into_owned(), steps.clone());
            }
        }
        for (n, words) in (0..).zip(file.groups.values()) {
            for word in words {
                let of = lang.groups.entry(stem(word).into_owned()).or_default();
                if !of.contains(&n) {
                    of.push(n);
                }
            }
        }
        lang
    }

    fn say(&mut self, phrases: &[String], op: Op) {
        for phrase in phrases {
            let words: Vec<String> = phrase.split(' ').map(str::to_owned).collect();
            let first = words[0].clone();
            self.phrases.entry(first).or_default().push((words, op));
        }
    }

    /// The operators whose phrases begin at the first of these words, with their lengths.
    pub(super) fn operators(&self, words: &[&str]) -> Vec<(usize, Op)> {
        let known = words.first().and_then(|first| self.phrases.get(*first));
        let said = |(phrase, op): &(Vec<String>, Op)| {
            let fits = phrase.len() <= words.len() && phrase.iter().zip(words).all(|(a, b)| a == b);
            fits.then_some((phrase.len(), *op))
        };
        known.into_iter().flatten().filter_map(said).collect()
    }

    /// Whether a word is a superlative by its form.
    pub(super) fn is_superlative(&self, word: &str) -> bool {
        word.len() > self.superlative_end.len() + 2
            && word.ends_with(&self.superlative_end)
            && !self.no_superlatives.contains(word)
    }

    /// What the words for its quality begin with, if a word is a superlative by its form: `salt` of
    /// `saltiest`, `big` of `biggest`.
    pub(super) fn adjective<'w>(&self, word: &'w str) -> Option<&'w str> {
        if !self.is_superlative(word) {
            return None;
        }
        let rest = word.strip_suffix(self.superlative_end.as_str())?;
        let shorter = rest.strip_suffix('i').or_else(|| {
            let mut last = rest.chars().rev();
            let last = last.next().filter(|c| Some(*c) == last.next())?;
            rest.strip_suffix(last)
        });
        Some(shorter.unwrap_or(rest)).filter(|adjective| adjective.len() >= LEAST_ADJECTIVE)
    }

    /// Whether two words ask for an amount.
    pub(super) fn is_amount(&self, words: [&str; 2]) -> bool {
        self.amount.contains(&words.join(" "))
    }

    /// Whether the word says nothing by itself.
    pub(super) fn is_silent(&self, word: &str) -> bool {
        self.silent.contains(word)
    }

    /// Whether a word asks for a thing, a person, a place or a time.
    pub(super) fn asks(&self, word: &str) -> bool {
        self.asking.contains(word)
    }

    /// Whether a word may stand between a name and its class.
    pub(super) fn is_beside(&self, word: &str) -> bool {
        self.beside.contains(word)
    }

    /// Whether a question that begins so asks for nothing: `could you`.
    pub(super) fn is_polite(&self, word: &str) -> bool {
        self.polite.contains(word)
    }

    /// Whether a word is what a verb makes of a noun before it: `films directed by`.
    /// Whether only people have a relation of this label, or are led to by one.
    pub(super) fn only_people_have(&self, label: &[String], is_had: bool) -> bool {
        let all = match is_had {
            true => &self.people.have,
            false => &self.people.led_to_by,
        };
        let is_whole = |one: &HashSet<String>| {
            one.len() == label.len() && label.iter().all(|word| one.contains(word))
        };
        all.iter().any(is_whole)
    }

    /// Whether a word is a participle.
    pub(super) fn is_participle(&self, word: &str) -> bool {
        let ends = |end: &String| word.len() > end.len() + 2 && word.ends_with(end.as_str());
        self.participle_ends.iter().any(ends) || self.participles.contains(word)
    }

    /// Whether a word says what is compared with: `than`.
    pub(super) fn is_than(&self, word: &str) -> bool {
        self.than.contains(word)
    }

    /// Whether a word belongs to the verb before it, by that one's stem: `look after`.
    pub(super) fn is_particle(&self, verb: &str, word: &str) -> bool {
        self.particles.contains(&(verb.to_owned(), word.to_owned()))
    }

    /// Whether a word says what something is: `is`.
    pub(super) fn is_present(&self, word: &str) -> bool {
        self.present.contains(word)
    }

    /// Whether a stem says no more than that something has a value.
    pub(super) fn is_value(&self, stem: &str) -> bool {
        self.values.contains(stem)
    }

    /// Whether a stem says little beside what it stands with.
    pub(super) fn is_light(&self, stem: &str) -> bool {
        self.light.contains(stem)
    }

    /// Whether the noun after a word is what is asked for: `which river`.
    pub(super) fn picks(&self, word: &str) -> bool {
        self.picking.contains(word)
    }

    /// Whether what follows a word is to be told: `list`.
    pub(super) fn tells(&self, word: &str) -> bool {
        self.telling.contains(word)
    }

    /// Whether a word makes the one before it a possessor.
    pub(super) fn is_possessive(&self, word: &str) -> bool {
        self.possessive.contains(word)
    }

    /// Whether a word says whose something is: `their`.
    pub(super) fn is_own(&self, word: &str) -> bool {
        self.own.contains(word)
    }

    /// Whether two words stand before the ends of a range: `between 3 and 5`.
    pub(super) fn is_range(&self, before: Option<&str>, between: &str) -> bool {
        self.ranges.iter().any(|[first, second]| {
            second == between && (first.is_empty() || before == Some(first.as_str()))
        })
    }

    /// The number that a word is.
    pub(super) fn number(&self, word: &str) -> Option<f64> {
        self.numbers.get(word).copied()
    }

    /// Whether a value says yes, or no.
    pub(super) fn says_yes(&self, value: &str) -> Option<bool> {
        let is_yes = self.yes.contains(value);
        (is_yes || self.no.contains(value)).then_some(is_yes)
    }

    /// The unit that a word of a question is.
    pub(super) fn unit(&self, word: &str) -> Option<Unit> {
        self.said_units.get(word).copied()
    }

    /// The unit that the last word of a label is.
    pub(super) fn unit_of_label(&self, word: &str) -> Option<Unit> {
        self.label_units.get(word).copied()
    }

    /// Whether a relation with this stem may be measured in units of a kind.
    pub(super) fn is_measured_in(&self, stem: &str, unit: Unit) -> bool {
        let of = self.unit_measures.get(usize::from(unit.kind));
        of.is_some_and(|measures| measures.contains(stem))
    }

    /// Whether a word says where a year begins: `start`.
    pub(super) fn is_begin(&self, word: &str) -> bool {
        self.begins.contains(word)
    }

    /// Whether a word makes a rate of a unit after it: `per kg`.
    pub(super) fn is_rate(&self, word: &str) -> bool {
        self.rate.contains(word)
    }

    /// Whether the measures of a degree are measured in units of a kind.
    pub(super) fn degree_measured_in(&self, degree: u8, unit: Unit) -> bool {
        let measures = &self.measures[usize::from(degree)];
        measures.iter().any(|stem| self.is_measured_in(stem, unit))
    }

    /// Whether a word before a unit means one of it: `an hour`.
    pub(super) fn is_single(&self, word: &str) -> bool {
        self.single.contains(word)
    }

    /// Whether a word means a half.
    pub(super) fn is_half(&self, word: &str) -> bool {
        self.half.contains(word)
    }

    /// Whether a word adds a part to a number: `two and a half`.
    pub(super) fn is_plus(&self, word: &str) -> bool {
        self.plus.contains(word)
    }

    /// How a word joins what stands on either side of it.
    pub(super) fn between(&self, word: &str) -> Option<Gap> {
        self.between.get(word).copied()
    }

    /// The groups of words for one thing that a stem is in.
    pub(super) fn groups_of(&self, stem: &str) -> &[u16] {
        self.groups.get(stem).map_or(&[], Vec::as_slice)
    }

    /// The steps that one word means: `grandmother`.
    pub(super) fn chain(&self, stem: &str) -> &[String] {
        self.chains.get(stem).map_or(&[], Vec::as_slice)
    }

    /// The stem of the relation that says the same the other way round: `parent` for `child`.
    pub(super) fn inverse(&self, stem: &str) -> Option<&String> {
        self.inverse.get(stem)
    }

    /// Whether two stems are words for one thing.
    pub(super) fn same_group(&self, a: &str, b: &str) -> bool {
        let of = self.groups_of(b);
        self.groups_of(a).iter().any(|group| of.contains(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superlatives_are_known_by_their_form() {
        let lang = english();
        let said = ["steepest", "busiest", "forest", "west", "steep"];
        let found: Vec<&str> = said
            .into_iter()
            .filter(|w| lang.is_superlative(w))
            .collect();
        assert_eq!(found, ["steepest", "busiest"]);
        let adjectives = ["steepest", "saltiest", "dimmest", "forest", "oldest"];
        let adjectives = adjectives.map(|word| lang.adjective(word));
        let expected = [Some("steep"), Some("salt"), None, None, None];
        assert_eq!(adjectives, expected, "short ones begin too many words");
    }

    #[test]
    fn the_language_file_is_sound_and_its_words_are_found() {
        let lang = english();
        assert!(lang.is_silent("the") && !lang.is_silent("capital"));
        let said = lang.operators(&["more", "than", "two"]);
        assert!(said.contains(&(2, Op::Compare(Comparison::Greater))));
        assert!(said.contains(&(1, Op::Compare(Comparison::Greater))));
        assert_eq!(lang.operators(&["how", "many"]), [(2, Op::Count)]);
        assert!(lang.same_group(&stem("neighbouring"), &stem("borders")));
        assert!(!lang.same_group(&stem("river"), &stem("borders")));
        assert_eq!(lang.between("of"), Some(Gap::Of));
    }
}
