//! Values of terms: numbers and points in time, compared by what they mean and not how they are
//! written.
//!
//! - A number is what `xsd:double` makes of a term: every numeric datatype, booleans as 1 and 0,
//!   and text that spells a number.
//! - A time is a `date`, `dateTime`, `gYear` or `gYearMonth`, or text that spells one, and stands
//!   for its first moment: `1994` is the beginning of 1994. As XPath says, a time with a zone and
//!   one without are only compared where they lie more than 14 hours apart; only for the largest
//!   and the smallest of many, which must not depend on their order, is one without a zone in UTC.
//! - Text without a datatype, and the names that tables are full of, may be both: `1994`.
//! - Everything else (other datatypes, units among them, text in a language) is no value, and is
//!   left out wherever values are compared. A number is never compared with a time.

use std::cmp::Ordering;

use wherefore_graph::{Literal, LiteralKind, Term};

use super::form::{Comparison, Constant, Extreme, Form};

/// The namespace of the datatypes.
pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Datatypes of whole numbers.
const WHOLE: [&str; 13] = [
    "integer",
    "long",
    "int",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
];
pub(crate) const TEMPORAL: [&str; 5] = ["date", "dateTime", "dateTimeStamp", "gYear", "gYearMonth"];

/// As what values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sense {
    /// As numbers.
    Number,
    /// As points in time.
    Time,
}

/// What a term is worth; one of both, both, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    /// As a number.
    pub number: Option<f64>,
    /// As a point in time.
    pub time: Option<Moment>,
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970-01-01T00:00:00, in its zone or, where there is none, in UTC.
    seconds: i64,
    nanos: u32,
    zoned: bool,
    /// The last second that the text may mean: `1994` ends with its December.
    until: i64,
}

/// A value in one sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A number.
    Number(f64),
    /// A point in time.
    Time(Moment),
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        const ZONES: u64 = 14 * 3600;
        let order = (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos));
        let near = self.seconds.abs_diff(other.seconds) <= ZONES;
        (self.zoned == other.zoned || !near).then_some(order)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Quantity::Number(a), Quantity::Number(b)) => a.partial_cmp(b),
            (Quantity::Time(a), Quantity::Time(b)) => a.partial_cmp(b),
            _ => None,
        }
    }
}

impl Comparison {
    /// Whether values in this order compare so; those that do not compare never do.
    pub(super) fn holds(self, order: Option<Ordering>) -> bool {
        order.is_some_and(|order| match self {
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
        })
    }
}

impl Quantity {
    /// As what it is compared.
    pub fn sense(&self) -> Sense {
        match self {
            Quantity::Number(_) => Sense::Number,
            Quantity::Time(_) => Sense::Time,
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Quantity::Number(number) => Some(*number),
            Quantity::Time(_) => None,
        }
    }

    /// As a literal of RDF: its text and its datatype.
    pub fn literal(&self) -> (String, String) {
        let (text, local) = match self {
            Quantity::Number(number) => {
                let text = shown(*number);
                let whole = text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
                (text, if whole { "integer" } else { "double" })
            }
            Quantity::Time(time) => time.shortest(),
        };
        (text, format!("{XSD}{local}"))
    }

    /// The order of extremes, which leaves nothing undecided: a time without a zone is one in UTC.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Quantity::Time(a), Quantity::Time(b)) => {
                Some((a.seconds, a.nanos).cmp(&(b.seconds, b.nanos)))
            }
            (a, b) => a.partial_cmp(b),
        }
    }
}

impl std::fmt::Display for Quantity {
    /// A number with at most 15 significant digits; a time as long as its text said.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.literal().0)
    }
}

/// A number with at most 15 significant digits: what 64 bits hold of any decimal.
fn shown(number: f64) -> String {
    match number {
        n if n.is_infinite() => if n > 0.0 { "INF" } else { "-INF" }.to_owned(),
        n => {
            let rounded: f64 = format!("{n:.14e}").parse().unwrap_or(n);
            format!("{}", rounded + 0.0)
        }
    }
}

impl Value {
    /// The value of a term.
    pub fn of(term: &Term) -> Self {
        match term {
            Term::Name(text) => Self::of_text(text),
            Term::Iri(_) | Term::Blank(_) => Self::default(),
            Term::Literal(literal) => Self::of_literal(literal),
        }
    }

    /// The value of a literal.
    pub fn of_literal(literal: &Literal) -> Self {
        let text = literal.value.as_str();
        match &literal.kind {
            LiteralKind::Plain => Self::of_text(text),
            LiteralKind::Language(_) => Self::default(),
            LiteralKind::Typed(datatype) => match datatype.strip_prefix(XSD) {
                Some("string") => Self::of_text(text),
                Some("boolean") => Self {
                    number: match text {
                        "true" | "1" => Some(1.0),
                        "false" | "0" => Some(0.0),
                        _ => None,
                    },
                    time: None,
                },
                // what is not written as its datatype says has no value
                Some(local) => {
                    let is_whole = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-');
                    let written = match local {
                        "double" | "float" => true,
                        "decimal" => text.chars().all(|c| is_whole(c) || c == '.'),
                        local => WHOLE.contains(&local) && text.chars().all(is_whole),
                    };
                    Self {
                        number: number(text).filter(|_| written),
                        time: Moment::parse(text).filter(|_| TEMPORAL.contains(&local)),
                    }
                }
                None => Self::default(),
            },
        }
    }

    /// The value of text without a datatype.
    pub fn of_text(text: &str) -> Self {
        Self {
            number: number(text),
            time: Moment::parse(text),
        }
    }

    /// The value in one sense.
    pub fn in_sense(&self, sense: Sense) -> Option<Quantity> {
        match sense {
            Sense::Number => self.number.map(Quantity::Number),
            Sense::Time => self.time.map(Quantity::Time),
        }
    }

    /// The only sense that it has.
    pub fn sense(&self) -> Option<Sense> {
        match (self.number, self.time) {
            (Some(_), None) => Some(Sense::Number),
            (None, Some(_)) => Some(Sense::Time),
            _ => None,
        }
    }
}

/// `-3.5`, `1e6`, `INF`; not `NaN`, which compares with nothing.
fn number(text: &str) -> Option<f64> {
    match text {
        "INF" | "+INF" => return Some(f64::INFINITY),
        "-INF" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    plain.then(|| text.parse().ok()).flatten()
}

impl Moment {
    /// Reads `YYYY`, `YYYY-MM`, `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ss`, the last two with a zone if
    /// there is one.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (year, rest) = digits(rest, 4..=9)?;
        let year = if negative { -year } else { year };
        let begin = |month, day| days_from_civil(year, month, day) * 86_400;
        if rest.is_empty() {
            let next = days_from_civil(year + 1, 1, 1) * 86_400;
            return Some(Self::plain(begin(1, 1), next - 1));
        }
        let (month, rest) = digits(rest.strip_prefix('-')?, 2..=2)?;
        if !(1..=12).contains(&month) {
            return None;
        }
        if rest.is_empty() {
            let next = begin(month, 1) + days_in_month(year, month) * 86_400;
            return Some(Self::plain(begin(month, 1), next - 1));
        }
        let (day, rest) = digits(rest.strip_prefix('-')?, 2..=2)?;
        if !(1..=days_in_month(year, month)).contains(&day) {
            return None;
        }
        let Some(clock) = rest.strip_prefix('T') else {
            let zone = zone(rest)?;
            let seconds = begin(month, day) - zone.unwrap_or(0);
            return Some(Self {
                zoned: zone.is_some(),
                ..Self::plain(seconds, seconds + 86_399)
            });
        };
        let (hour, rest) = digits(clock, 2..=2)?;
        let (minute, rest) = digits(rest.strip_prefix(':')?, 2..=2)?;
        let (second, rest) = digits(rest.strip_prefix(':')?, 2..=2)?;
        // 24:00:00 is the beginning of the next day
        if hour > 24 || minute > 59 || second > 59 || hour == 24 && minute + second > 0 {
            return None;
        }
        let (nanos, rest) = match rest.strip_prefix('.') {
            Some(fraction) => {
                let end = fraction
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(fraction.len());
                let shown = fraction.get(..end.min(9)).filter(|d| !d.is_empty())?;
                (format!("{shown:0<9}").parse().ok()?, &fraction[end..])
            }
            None => (0, rest),
        };
        let zone = zone(rest)?;
        let clock = hour * 3600 + minute * 60 + second;
        let seconds = begin(month, day) + clock - zone.unwrap_or(0);
        Some(Self {
            nanos,
            zoned: zone.is_some(),
            ..Self::plain(seconds, seconds)
        })
    }

    /// The moment so many seconds after the beginning of 1970.
    pub fn from_seconds(seconds: i64) -> Self {
        Self::plain(seconds, seconds)
    }

    /// The present day.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seconds = since.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX));
        Self::plain(seconds, seconds)
    }

    fn plain(seconds: i64, until: i64) -> Self {
        Self {
            seconds,
            nanos: 0,
            zoned: false,
            until,
        }
    }

    /// In UTC where it has no zone.
    pub(super) fn in_utc(self) -> Self {
        Self {
            zoned: true,
            ..self
        }
    }

    /// As long as its text was, with the datatype of that: a year is `1994`.
    fn shortest(self) -> (String, &'static str) {
        let whole = self.to_string();
        let day = self.until - self.seconds == 86_399 && self.seconds.rem_euclid(86_400) == 0;
        let (_, month, date) = civil_from_days(self.seconds.div_euclid(86_400));
        let clock = self.seconds.rem_euclid(86_400) == 0 && !self.zoned && self.nanos == 0;
        // from the end: `T00:00:00`, then `-01` of the day, then `-01` of the month
        let cut = |letters: usize| whole[..whole.len() - letters].to_owned();
        let days = (self.until - self.seconds) / 86_400;
        match days {
            364.. if clock && month == 1 && date == 1 => (cut(15), "gYear"),
            27.. if clock && date == 1 => (cut(12), "gYearMonth"),
            0 if clock && day => (cut(9), "date"),
            _ => (whole, "dateTime"),
        }
    }

    /// The last moment that the text may mean: the end of the year for a year.
    #[must_use]
    pub fn last(self) -> Self {
        Self {
            seconds: self.until,
            ..self
        }
    }
}

impl std::fmt::Display for Moment {
    /// As an `xsd:dateTime`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let clock = self.seconds.rem_euclid(86_400);
        let sign = if year < 0 { "-" } else { "" };
        let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
        let year = year.abs();
        write!(
            f,
            "{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        if self.nanos > 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        if self.zoned { f.write_str("Z") } else { Ok(()) }
    }
}

impl Constant {
    /// What it is worth; `NOW` is the given moment.
    pub fn value(&self, now: Moment) -> Value {
        match self {
            Constant::Now => Value {
                number: None,
                time: Some(now),
            },
            Constant::Bare(text) => Value::of_text(text),
            Constant::Literal(literal) => Value::of_literal(&trimmed(literal)),
        }
    }

    /// Numbers and dates written one way; without their datatype where they mean the same then. A
    /// number that would be read as a year as well is a `double`, a year that would be read as a
    /// number a `gYear`.
    #[must_use]
    pub fn normal(&self) -> Self {
        let (text, value) = match self {
            Constant::Now => return Constant::Now,
            Constant::Bare(text) => (text.as_str(), Value::of_text(text)),
            Constant::Literal(literal) => {
                if !matches!(literal.kind, LiteralKind::Typed(_)) {
                    return self.clone();
                }
                (literal.value.trim(), Value::of_literal(&trimmed(literal)))
            }
        };
        let (text, datatype) = match (value.number, value.time) {
            (Some(number), _) if number.is_finite() => (format!("{number}"), "double"),
            (None, Some(_)) => (text.to_owned(), "gYear"),
            _ => return self.clone(),
        };
        let typed = Literal {
            value: text.clone(),
            kind: LiteralKind::Typed(format!("{XSD}{datatype}")),
        };
        if Value::of_text(&text) == value {
            Constant::Bare(text)
        } else if Value::of_literal(&typed) == value {
            Constant::Literal(typed)
        } else {
            self.clone()
        }
    }
}

/// A constant with spaces around it is what it is without.
fn trimmed(literal: &Literal) -> Literal {
    Literal {
        value: literal.value.trim().to_owned(),
        kind: literal.kind.clone(),
    }
}

impl From<Constant> for Form {
    fn from(constant: Constant) -> Self {
        Form::Constant(constant)
    }
}

fn digits(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Option<(i64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    if !lengths.contains(&end) {
        return None;
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Seconds east of Greenwich: `Z`, `+01:00`; nothing is no zone.
fn zone(text: &str) -> Option<Option<i64>> {
    if text.is_empty() {
        return Some(None);
    }
    if text == "Z" {
        return Some(Some(0));
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, rest) = digits(text.strip_prefix(['+', '-'])?, 2..=2)?;
    let (minutes, rest) = digits(rest.strip_prefix(':')?, 2..=2)?;
    let whole = hours * 60 + minutes;
    (rest.is_empty() && minutes < 60 && whole <= 14 * 60).then_some(Some(sign * whole * 60))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar (Hinnant's algorithm).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// How many days a month of the proleptic Gregorian calendar has.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.rem_euclid(4) == 0
            && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) =>
        {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// The order of extremes, for sorting.
pub(super) fn order(a: &Quantity, b: &Quantity) -> Ordering {
    a.order(b).unwrap_or(Ordering::Equal)
}

/// The value by which something is ranked.
pub(super) fn first(sorted: &[Quantity], extreme: Extreme) -> Option<Quantity> {
    match extreme {
        Extreme::Largest => sorted.last().copied(),
        Extreme::Smallest => sorted.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(text: &str, local: &str) -> Value {
        Value::of_literal(&Literal {
            value: text.into(),
            kind: LiteralKind::Typed(format!("{XSD}{local}")),
        })
    }

    #[test]
    fn values_are_read_by_their_datatype_and_others_are_none() {
        assert_eq!(typed("1.50", "decimal").number, Some(1.5));
        assert_eq!(typed("1e3", "double").number, Some(1000.0));
        assert_eq!(typed("true", "boolean").number, Some(1.0));
        assert_eq!(typed("1994", "integer").time, None);
        assert_eq!(typed("1994", "gYear").number, None);
        assert!(typed("1994", "gYear").time.is_some());
        assert_eq!(typed("7", "unsignedByte").number, Some(7.0));
        for (text, local) in [
            ("abc", "integer"),
            ("3.7", "integer"),
            ("INF", "long"),
            ("1e3", "decimal"),
            (" 7 ", "double"),
            ("inf", "double"),
            ("5", "anyURI"),
        ] {
            assert_eq!(typed(text, local), Value::default(), "{text} {local}");
        }
        assert_eq!(typed("NaN", "double"), Value::default());
        let unit = Literal {
            value: "5".into(),
            kind: LiteralKind::Typed("http://example.org/km".into()),
        };
        assert_eq!(Value::of_literal(&unit), Value::default());
        let both = Value::of(&Term::Name("1994".into()));
        assert_eq!(both.number, Some(1994.0));
        assert_eq!(both.time, Moment::parse("1994"));
        assert_eq!(both.sense(), None);
    }

    #[test]
    fn times_stand_for_their_first_moment() {
        let at = |text: &str| Moment::parse(text).unwrap();
        assert_eq!(at("1994"), at("1994"));
        assert!(at("1994").partial_cmp(&at("1994-01-01")) == Some(Ordering::Equal));
        assert!(at("1994-05") < at("1994-05-02"));
        assert!(at("-0044-03-15") < at("0001"));
        // 12:00+02:00 is 10:00Z
        assert!(
            at("2000-01-01T12:00:00+02:00").partial_cmp(&at("2000-01-01T10:00:00Z"))
                == Some(Ordering::Equal)
        );
        assert!(at("2000-01-01T12:00:00.25") > at("2000-01-01T12:00:00.2"));
        // within 14 hours nobody knows which comes first
        assert_eq!(
            at("2000-01-01T12:00:00").partial_cmp(&at("2000-01-01T13:00:00Z")),
            None
        );
        assert!(at("2000-01-01") < at("2000-01-03Z"));
        // 1970-01-01 is day 0, and 2000 had a leap day
        assert_eq!(at("1970").seconds, 0);
        assert_eq!(at("2000-02-29").seconds - at("2000-02-28").seconds, 86_400);
        assert_eq!(at("2010").last().to_string(), "2010-12-31T23:59:59");
        assert_eq!(at("2012-02").last().to_string(), "2012-02-29T23:59:59");
        for bad in [
            "199",
            "1994-13",
            "1994-02-30",
            "1994-1-1",
            "1994-01-01T25:00:00",
            "x",
            "",
            "1994-01-01+15:00",
        ] {
            assert_eq!(Moment::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn constants_in_normal_form_mean_the_same() {
        let typed = |text: &str, local: &str| {
            Constant::Literal(Literal {
                value: text.into(),
                kind: LiteralKind::Typed(format!("{XSD}{local}")),
            })
        };
        let bare = |text: &str| Constant::Bare(text.into());
        for (constant, normal) in [
            (bare("5.0"), bare("5")),
            (typed("5", "integer"), bare("5")),
            (typed("1994-05-01", "date"), bare("1994-05-01")),
            (bare("1994"), bare("1994")),
            (typed("1994", "gYear"), typed("1994", "gYear")),
            (typed("1994", "integer"), typed("1994", "double")),
            (bare("1994.0"), typed("1994", "double")),
            // without its zeros it would be no year
            (bare("0044"), bare("0044")),
        ] {
            assert_eq!(constant.normal(), normal, "{constant}");
            assert_eq!(normal.normal(), normal);
        }
    }

    #[test]
    fn numbers_and_times_do_not_compare() {
        let [a, b] = [
            Quantity::Number(5.0),
            Quantity::Time(Moment::parse("1994").unwrap()),
        ];
        assert_eq!(a.partial_cmp(&b), None);
    }

    proptest! {
        #[test]
        fn moments_are_written_as_they_are_read(seconds in -100_000_000_000i64..100_000_000_000) {
            let moment = Moment::from_seconds(seconds);
            prop_assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
        }
    }
}
