//! Counters in Prometheus' text format.
//!
//! Kept by hand: the format is three kinds of lines, and a client library would bring a registry and
//! a type for each set of labels to write the same ones.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use wherefore::answer::{Answer, Status};

/// Upper bounds of the buckets, in seconds.
const BOUNDS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

/// What is counted.
pub(crate) struct Metrics {
    begun: Instant,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    requests: BTreeMap<(String, u16), u64>,
    durations: BTreeMap<String, Histogram>,
    stages: BTreeMap<String, Histogram>,
    answered: u64,
    abstained: u64,
    llm_calls: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
}

#[derive(Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        if let Some(place) = BOUNDS.iter().position(|&bound| seconds <= bound) {
            self.buckets[place] += 1;
        }
        self.count += 1;
        self.sum += seconds;
    }

    fn write(&self, out: &mut String, name: &str, label: &str) {
        let mut below = 0;
        for (bound, count) in BOUNDS.iter().zip(self.buckets) {
            below += count;
            let _ = writeln!(out, "{name}_bucket{{{label},le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(out, "{name}_bucket{{{label},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{name}_sum{{{label}}} {}", self.sum);
        let _ = writeln!(out, "{name}_count{{{label}}} {}", self.count);
    }
}

/// Values that are read when somebody asks.
pub(crate) struct Gauges {
    pub(crate) waiting: usize,
    pub(crate) running: usize,
    pub(crate) stuck: usize,
    pub(crate) connections: usize,
    pub(crate) ready: bool,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            counts: Mutex::default(),
        }
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was answered. Routes are those of the router, not what was typed.
    pub(crate) fn request(&self, route: &str, status: u16, time: Duration) {
        let mut counts = self.counts();
        match counts.requests.get_mut(&(route.to_owned(), status)) {
            Some(count) => *count += 1,
            None => drop(counts.requests.insert((route.to_owned(), status), 1)),
        }
        let seconds = time.as_secs_f64();
        match counts.durations.get_mut(route) {
            Some(histogram) => histogram.add(seconds),
            None => {
                let mut histogram = Histogram::default();
                histogram.add(seconds);
                counts.durations.insert(route.to_owned(), histogram);
            }
        }
    }

    /// A question was answered.
    pub(crate) fn answer(&self, answer: &Answer) {
        let mut counts = self.counts();
        match answer.status {
            Status::Answered => counts.answered += 1,
            Status::Abstained => counts.abstained += 1,
        }
        counts.llm_calls += u64::from(answer.llm.calls);
        counts.prompt_tokens += answer.llm.prompt_tokens;
        counts.completion_tokens += answer.llm.completion_tokens;
        for (stage, ms) in &answer.timings_ms {
            let stage = counts.stages.entry(stage.clone()).or_default();
            stage.add(ms / 1e3);
        }
    }

    /// The page for Prometheus.
    pub(crate) fn text(&self, gauges: &Gauges) -> String {
        let mut out = String::new();
        let counts = self.counts();
        head(
            &mut out,
            "requests_total",
            "counter",
            "Requests by route and status.",
        );
        for ((route, status), count) in &counts.requests {
            let labels = format!("route=\"{}\",status=\"{status}\"", quoted(route));
            let _ = writeln!(out, "wherefore_requests_total{{{labels}}} {count}");
        }
        head(
            &mut out,
            "request_seconds",
            "histogram",
            "Time until the reply begins, by route.",
        );
        for (route, histogram) in &counts.durations {
            let label = format!("route=\"{}\"", quoted(route));
            histogram.write(&mut out, "wherefore_request_seconds", &label);
        }
        head(
            &mut out,
            "stage_seconds",
            "histogram",
            "Time of each stage of a question.",
        );
        for (stage, histogram) in &counts.stages {
            let label = format!("stage=\"{}\"", quoted(stage));
            histogram.write(&mut out, "wherefore_stage_seconds", &label);
        }
        head(
            &mut out,
            "answers_total",
            "counter",
            "Questions by how they ended.",
        );
        for (status, count) in [
            ("answered", counts.answered),
            ("abstained", counts.abstained),
        ] {
            let _ = writeln!(
                out,
                "wherefore_answers_total{{status=\"{status}\"}} {count}"
            );
        }
        for (name, about, value) in [
            (
                "llm_calls_total",
                "Calls of language models.",
                counts.llm_calls,
            ),
            (
                "llm_prompt_tokens_total",
                "Tokens read by them.",
                counts.prompt_tokens,
            ),
            (
                "llm_completion_tokens_total",
                "Tokens written by them.",
                counts.completion_tokens,
            ),
        ] {
            head(&mut out, name, "counter", about);
            let _ = writeln!(out, "wherefore_{name} {value}");
        }
        drop(counts);
        for (name, about, value) in [
            (
                "queue_waiting",
                "Requests in the queue.",
                gauges.waiting as f64,
            ),
            ("workers_busy", "Threads at work.", gauges.running as f64),
            (
                "workers_stuck",
                "Threads that do not come back from their job.",
                gauges.stuck as f64,
            ),
            (
                "connections",
                "Open connections.",
                gauges.connections as f64,
            ),
            (
                "ready",
                "Whether everything is warmed up.",
                f64::from(u8::from(gauges.ready)),
            ),
            (
                "uptime_seconds",
                "Time since the start.",
                self.begun.elapsed().as_secs_f64(),
            ),
        ] {
            head(&mut out, name, "gauge", about);
            let _ = writeln!(out, "wherefore_{name} {value}");
        }
        if let Some(bytes) = resident_bytes() {
            head(
                &mut out,
                "resident_bytes",
                "gauge",
                "Memory in use, mapped files included.",
            );
            let _ = writeln!(out, "wherefore_resident_bytes {bytes}");
        }
        out
    }
}

fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(
        out,
        "# HELP wherefore_{name} {about}\n# TYPE wherefore_{name} {kind}"
    );
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Of Linux; other systems do not tell it in a file.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_everything_below_their_bound() {
        let metrics = Metrics::new();
        for ms in [1, 2, 700] {
            metrics.request("/v1/ask", 200, Duration::from_millis(ms));
        }
        let text = metrics.text(&Gauges {
            waiting: 4,
            running: 1,
            stuck: 0,
            connections: 2,
            ready: true,
        });
        for line in [
            "wherefore_requests_total{route=\"/v1/ask\",status=\"200\"} 3",
            "wherefore_request_seconds_bucket{route=\"/v1/ask\",le=\"0.001\"} 1",
            "wherefore_request_seconds_bucket{route=\"/v1/ask\",le=\"0.5\"} 2",
            "wherefore_request_seconds_bucket{route=\"/v1/ask\",le=\"1\"} 3",
            "wherefore_request_seconds_count{route=\"/v1/ask\"} 3",
            "wherefore_queue_waiting 4",
            "wherefore_ready 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
