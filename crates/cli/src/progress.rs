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

/// The progress of one command. Whatever does the work calls [`Progress::at`], from any thread
/// and as often as it likes.
#[derive(Debug)]
pub(crate) struct Progress {
    show: Show,
}

#[derive(Debug)]
enum Show {
    Nothing,
    Bar(ProgressBar, Mutex<Step>),
    Lines(Mutex<Step>),
}

/// What is going on.
#[derive(Debug)]
struct Step {
    doing: &'static str,
    begun: Instant,
    /// When the last line was written.
    line: Instant,
}

impl Step {
    /// Turns to what is done now; true if that is new.
    fn turn(&mut self, doing: &'static str) -> bool {
        let new = self.doing != doing;
        if new {
            self.doing = doing;
            self.begun = Instant::now();
        }
        new
    }
}

impl Progress {
    /// Begins.
    pub(crate) fn begin(output: &Output) -> Self {
        let now = Instant::now();
        let step = Mutex::new(Step {
            doing: "",
            begun: now,
            line: now,
        });
        let show = if output.quiet || output.json {
            Show::Nothing
        } else if io::stderr().is_terminal() {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            Show::Bar(ProgressBar::with_draw_target(None, target), step)
        } else {
            Show::Lines(step)
        };
        Self { show }
    }

    /// Says what is being done (`reading`), how much of it is done, and of how much where that
    /// is known.
    pub(crate) fn at(&self, doing: &'static str, done: u64, total: Option<u64>, unit: Unit) {
        let (Show::Bar(_, step) | Show::Lines(step)) = &self.show else {
            return;
        };
        // a thread that finds another one writing has nothing to add
        let Ok(mut step) = step.try_lock() else {
            return;
        };
        let new = step.turn(doing);
        match &self.show {
            Show::Bar(bar, _) => {
                if new || bar.length() != total {
                    bar.set_style(style(total.is_some(), unit));
                    bar.set_message(doing);
                    match total {
                        Some(total) => bar.set_length(total),
                        None => bar.unset_length(),
                    }
                }
                if new {
                    // rate and time left are this step's own
                    bar.reset();
                }
                bar.set_position(done);
            }
            _ if step.line.elapsed() >= LINE_EVERY => {
                step.line = Instant::now();
                let line = line(doing, done, total, unit, step.begun.elapsed());
                // nobody is left to tell if this fails
                let _ = writeln!(io::stderr(), "{line}");
            }
            _ => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Show::Bar(bar, _) = &self.show {
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

fn line(doing: &str, done: u64, total: Option<u64>, unit: Unit, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-9);
    let mut text = format!("{doing}: {}", unit.amount(done));
    if let Some(total) = total {
        text += &format!(" of {}", unit.amount(total));
    }
    text += &format!(", {} a second", unit.amount(rate as u64));
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
