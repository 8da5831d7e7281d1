//! Months and days in a question: `in January 2023`, `before 3 May 2021`.
//!
//! A time is a number of years: a month is a twelfth, a day a 372nd (31 days a month), so that the
//! number says which day it is.

use super::lang::Lang;
use super::schema::number_of;
use super::search::Search;
use crate::logic::days_in_month;

/// A month, in years.
const MONTH: f64 = 1.0 / 12.0;
/// A day, in years.
const DAY: f64 = MONTH / 31.0;
/// A hundredth of a day.
const CLOSE: f64 = DAY / 100.0;

/// A time in a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Date {
    /// Its first moment, and how long it lasts, in years.
    pub(super) from: f64,
    pub(super) lasts: f64,
    /// The word after it.
    pub(super) to: usize,
}

impl Search<'_> {
    /// The month or day that begins at a word.
    pub(super) fn date_from(&self, at: usize) -> Option<Date> {
        let words: Vec<&str> = self.words.all.iter().map(|w| w.lower.as_str()).collect();
        date(&words, at, self.lang)
    }
}

fn date(words: &[&str], at: usize, lang: &Lang) -> Option<Date> {
    let skip = |mut at: usize| {
        while words.get(at).is_some_and(|w| lang.in_dates.contains(*w)) {
            at += 1;
        }
        at
    };
    let month = |at: usize| lang.months.get(*words.get(at)?).copied();
    let day = |at: usize| {
        let word = words.get(at)?;
        let digits = ["st", "nd", "rd", "th"];
        let digits = digits.iter().find_map(|end| word.strip_suffix(end));
        let day = digits.unwrap_or(word).parse::<u32>().ok()?;
        (1..=31).contains(&day).then_some(day)
    };
    let year = |at: usize| {
        let year = words.get(at).filter(|w| w.len() == 4).copied()?;
        number_of(year).filter(|year| (1000.0..2200.0).contains(year))
    };
    // `2023-01-20` is a word of three
    let (day, month, next) = match (day(at), month(at)) {
        // `3 May 2021`, `the 3rd of May 2021`
        (Some(day), None) => {
            let next = skip(at + 1);
            (Some(day), month(next)?, next + 1)
        }
        // `May 3 2021`
        (None, Some(month)) => match day(at + 1) {
            Some(day) => (Some(day), month, at + 2),
            None => (None, month, at + 1),
        },
        _ => return None,
    };
    let next = skip(next);
    let first = year(next)? + f64::from(month - 1) * MONTH;
    Some(Date {
        from: first + day.map_or(0.0, |day| f64::from(day - 1) * DAY),
        lasts: if day.is_some() { DAY } else { MONTH },
        to: next + 1,
    })
}

/// A time in years as it is written, to the day; none where it is a whole year.
pub(super) fn written(years: f64) -> Option<String> {
    let year = (years + CLOSE).floor();
    let months = (years + CLOSE - year) / MONTH;
    let days = (months - months.floor()) * MONTH / DAY;
    let (month, day) = (months.floor() as u32 + 1, days.floor() as u32 + 1);
    let is_whole = (years - year).abs() < CLOSE;
    let is_day = i64::from(day) <= days_in_month(year as i64, i64::from(month));
    (!is_whole).then(|| match (is_day, month) {
        (true, _) => format!("{year:04}-{month:02}-{day:02}"),
        // the day after the last one
        (false, 12) => format!("{:04}-01-01", year + 1.0),
        (false, _) => format!("{year:04}-{:02}-01", month + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::super::lang::english;
    use super::*;

    fn read(text: &str) -> Option<(Option<String>, Option<String>, usize)> {
        let words: Vec<&str> = text.split(' ').collect();
        let date = date(&words, 0, english())?;
        Some((written(date.from), written(date.from + date.lasts), date.to))
    }

    #[test]
    fn months_and_days_begin_and_end() {
        let days = |from: &str, until: Option<&str>, to| {
            Some((Some(from.to_owned()), until.map(str::to_owned), to))
        };
        assert_eq!(
            read("february 2023"),
            days("2023-02-01", Some("2023-03-01"), 2)
        );
        assert_eq!(read("december 2023"), days("2023-12-01", None, 2));
        assert_eq!(
            read("3 may 2021"),
            days("2021-05-03", Some("2021-05-04"), 3)
        );
        assert_eq!(
            read("20th of june 1994"),
            days("1994-06-20", Some("1994-06-21"), 4)
        );
        assert_eq!(
            read("may 3 2021"),
            days("2021-05-03", Some("2021-05-04"), 3)
        );
        for (said, from, until) in [
            ("30 april 2021", "2021-04-30", "2021-05-01"),
            ("30 november 2021", "2021-11-30", "2021-12-01"),
            ("28 february 2021", "2021-02-28", "2021-03-01"),
            ("28 february 2024", "2024-02-28", "2024-02-29"),
            ("29 february 2024", "2024-02-29", "2024-03-01"),
            ("28 february 1900", "1900-02-28", "1900-03-01"),
            ("30 december 2021", "2021-12-30", "2021-12-31"),
        ] {
            assert_eq!(read(said), days(from, Some(until), 3));
        }
        assert_eq!(read("may"), None, "no year");
        assert_eq!(read("3 apples 2021"), None);
        assert_eq!(written(1994.0), None);
    }
}
