//! How long does it take to score 100,000 predictions with every metric and 1,000 resamples?
//!
//! Questions of one to eight answers, three hop counts and twelve kinds; two of three predictions
//! are right. Both files are written first; the clock runs from opening them to the table.
//!
//! `cargo bench -p wherefore-lab --bench score` (`-- --smoke` for a quick run of 2,000)

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use wherefore_lab::metrics::Options;
use wherefore_lab::questions;
use wherefore_lab::score::{read_predictions, score};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` says `--bench`; `cargo test` runs benches too, and a short look is enough there
    let asked = |flag: &str| std::env::args().any(|a| a == flag);
    let sizes: &[usize] = if asked("--bench") && !asked("--smoke") {
        &[10_000, 100_000]
    } else {
        &[2_000]
    };
    for &count in sizes {
        measure(count)?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn measure(count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let (gold, predicted) = (
        folder.path().join("gold.jsonl"),
        folder.path().join("predicted.jsonl"),
    );
    write(count, &gold, &predicted)?;

    let start = Instant::now();
    let questions = questions::read(&gold, None)?;
    let predictions = read_predictions(&predicted, None)?;
    let read = start.elapsed();
    let scores = score(
        &questions,
        predictions,
        &Options::default(),
        (&predicted, &gold),
    )?;
    let scored = start.elapsed();
    let metrics = scores.metrics();
    let table = metrics.to_string();
    let all = start.elapsed();
    println!(
        "{count} predictions: {:.3} s (reading {:.3}, scoring {:.3}, 1,000 resamples of {} metrics {:.3}); Hit@1 {:.4}, table of {} lines",
        all.as_secs_f64(),
        read.as_secs_f64(),
        (scored - read).as_secs_f64(),
        metrics.overall.metrics.0.len(),
        (all - scored).as_secs_f64(),
        metrics.overall.value("lenient.hit@1").unwrap_or_default(),
        table.lines().count(),
    );
    Ok(())
}

fn write(count: usize, gold: &Path, predicted: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let (mut questions, mut predictions) = (String::new(), String::new());
    for i in 0..count {
        let names: Vec<String> = (0..1 + i % 8)
            .map(|j| format!("\"The Café No. {i} in Town {j}\""))
            .collect();
        writeln!(
            questions,
            "{{\"id\":\"q{i}\",\"question\":\"what is the answer to number {i}\",\"topics\":[\"Topic {i}\"],\"answers\":[{}],\"hops\":{},\"kind\":\"kind {}\"}}",
            names.join(","),
            1 + i % 3,
            i % 12
        )?;
        let answers = if i % 3 == 0 {
            "\"something else\",\"and another thing\"".to_owned()
        } else {
            names.join(",").to_lowercase()
        };
        writeln!(predictions, "{{\"id\":\"q{i}\",\"answers\":[{answers}]}}")?;
    }
    std::fs::write(gold, questions)?;
    std::fs::write(predicted, predictions)?;
    Ok(())
}
