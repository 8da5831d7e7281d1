//! How far long work has come: a bar on a terminal, a line every ten seconds elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{
    HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle,
};

use crate::output::Output;

const LINE_EVERY: Duration = Duration::from_secs(10);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    /// Things, by their name in the plural: `triples`.
    Count(&'static str),
}

impl Unit {
    fn amount(self, amount: u64) -> String {
        match self {
            Unit::Bytes => HumanBytes(amount).to_string(),
            Unit::Count(name) => format!("{} {name}", HumanCount(amount)),
        }
    }
}

/// The progress of one piece of work. Hand `|done, total, unit| progress.at(done, total, unit)`
/// to whatever does it; it may be called from any thread and as often as one likes.
#[derive(Debug)]
pub(crate) struct Progress {
    label: &'static str,
    begun: Instant,
    /// Running figures, shown behind the label.
    note: Mutex<String>,
    show: Show,
}

#[derive(Debug)]
enum Show {
    Nothing,
    Bar(ProgressBar),
    /// When the last line was written.
    Lines(Mutex<Instant>),
}

impl Progress {
    /// Begins; `label` says what is done: `loading`.
    pub(crate) fn begin(label: &'static str, output: &Output) -> Self {
        let begun = Instant::now();
        let show = if output.quiet || output.json {
            Show::Nothing
        } else if io::stderr().is_terminal() {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            Show::Bar(ProgressBar::with_draw_target(None, target).with_message(label))
        } else {
            Show::Lines(Mutex::new(begun))
        };
        Self {
            label,
            begun,
            note: Mutex::default(),
            show,
        }
    }

    /// Shows running figures from now on.
    pub(crate) fn note(&self, text: &str) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.set_message(format!("{}, {text}", self.label)),
            Show::Lines(_) => {
                if let Ok(mut note) = self.note.lock() {
                    *note = format!(", {text}");
                }
            }
        }
    }

    /// Says how much is done, of how much where that is known.
    pub(crate) fn at(&self, done: u64, total: Option<u64>, unit: Unit) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => {
                if bar.position() == 0 || bar.length() != total {
                    bar.set_style(style(total.is_some(), unit));
                    match total {
                        Some(total) => bar.set_length(total),
                        None => bar.unset_length(),
                    }
                }
                bar.set_position(done);
            }
            Show::Lines(last) => {
                // a thread that finds another one writing has nothing to add
                let Ok(mut last) = last.try_lock() else {
                    return;
                };
                if last.elapsed() >= LINE_EVERY {
                    *last = Instant::now();
                    let note = self.note.lock().map(|n| n.clone()).unwrap_or_default();
                    let line = line(self.label, done, total, unit, self.begun.elapsed()) + &note;
                    // nobody is left to tell if this fails
                    let _ = writeln!(io::stderr(), "{line}");
                }
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }
}

fn style(has_total: bool, unit: Unit) -> ProgressStyle {
    let (done, all, rate) = match unit {
        Unit::Bytes => ("{bytes}", "{total_bytes}", "{bytes_per_sec}"),
        Unit::Count(_) => ("{human_pos}", "{human_len}", "{per_sec}"),
    };
    let name = match unit {
        Unit::Bytes => String::new(),
        Unit::Count(name) => format!(" {name}"),
    };
    let template = if has_total {
        format!("{{msg}} {{wide_bar}} {done} of {all}{name}  {rate}  {{eta}} left")
    } else {
        format!("{{msg}} {{spinner}} {done}{name}  {rate}  {{elapsed}}")
    };
    ProgressStyle::with_template(&template).expect("the templates above are well formed")
}

fn line(label: &str, done: u64, total: Option<u64>, unit: Unit, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-9);
    let mut text = format!("{label}: {}", unit.amount(done));
    if let Some(total) = total {
        text += &format!(" of {}", unit.amount(total));
    }
    text += &match unit {
        // what takes long has a rate too
        Unit::Count(name) if (0.0..10.0).contains(&rate) && done > 0 => {
            format!(", {rate:.2} {name} a second")
        }
        unit => format!(", {} a second", unit.amount(rate as u64)),
    };
    if let Some(left) = total.map(|t| t.saturating_sub(done)).filter(|_| rate > 0.0) {
        let left = Duration::try_from_secs_f64(left as f64 / rate).unwrap_or(Duration::MAX);
        text += &format!(", {} left", HumanDuration(left));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_amount_rate_and_time_left() {
        let unit = Unit::Count("triples");
        let ten = Duration::from_secs(10);
        // 2,000,000 in 10 s are 200,000 a second; 4,000,000 are left: 20 s
        assert_eq!(
            line("loading", 2_000_000, Some(6_000_000), unit, ten),
            "loading: 2,000,000 triples of 6,000,000 triples, 200,000 triples a second, 20 seconds left"
        );
        assert_eq!(
            line("loading", 10 << 20, None, Unit::Bytes, ten),
            "loading: 10.00 MiB, 1.00 MiB a second"
        );
        // 3 in 10 s are no 0 a second; 6 are left: 20 s
        assert_eq!(
            line("learning", 3, Some(9), Unit::Count("steps"), ten),
            "learning: 3 steps of 9 steps, 0.30 steps a second, 20 seconds left"
        );
        assert!(line("x", 0, Some(u64::MAX), Unit::Bytes, Duration::ZERO).starts_with("x: 0 B of"));
    }

    #[test]
    fn every_template_is_well_formed() {
        for has_total in [false, true] {
            for unit in [Unit::Bytes, Unit::Count("triples")] {
                style(has_total, unit);
            }
        }
    }
}
