//! Distils a static table: `distill TEACHER TEXTS OUT [EPOCHS] [LEARNING_RATE] [WEIGHT]`.
//!
//! TEXTS is a file with one text a line; `experiments/distill.md` says which.
#![expect(clippy::print_stderr, reason = "a program for people")]

use std::path::Path;
use std::time::{Duration, Instant};

use wherefore_model::distill::{DistillOptions, DistillProgress, distill};
use wherefore_model::encode::{TransformerEncoder, TransformerOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [teacher, texts, out, rest @ ..] = &arguments[..] else {
        return Err("distill TEACHER TEXTS OUT [EPOCHS] [LEARNING_RATE] [WEIGHT]".into());
    };
    let teacher = TransformerEncoder::load(Path::new(teacher), &TransformerOptions::default())?;
    let text = std::fs::read_to_string(texts)?;
    let texts: Vec<&str> = text.lines().collect();
    let mut options = DistillOptions::default();
    if let Some(epochs) = rest.first() {
        options.training.epochs = epochs.parse()?;
    }
    if let Some(rate) = rest.get(1) {
        options.training.learning_rate = rate.parse()?;
    }
    if let Some(weight) = rest.get(2) {
        options.weight = weight.parse()?;
    }
    let start = Instant::now();
    let mut told = Instant::now();
    let table = distill(&teacher, &texts, &options, &mut |progress| {
        let often = matches!(
            progress,
            DistillProgress::Tokens { .. } | DistillProgress::Texts { .. }
        );
        if !often || told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            eprintln!("{:7.1} s  {progress:?}", start.elapsed().as_secs_f64());
        }
    })?;
    std::fs::write(out, table.to_bytes().ok_or("a distilled table has bytes")?)?;
    Ok(())
}
