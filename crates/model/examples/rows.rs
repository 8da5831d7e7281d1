//! Writes the vector of every line of stdin to stdout (f32, little-endian), and the seconds that
//! encoding took to stderr: the other side of `experiments/encoders.py`.
//!
//! ```text
//! cargo run --release -p wherefore-model --example rows -- MODEL [REPEAT] [bf16] < texts > rows.f32
//! ```
#![expect(clippy::print_stderr, reason = "a program for people")]

use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use wherefore_model::Encoder;
use wherefore_model::encode::{self, Precision, TransformerEncoder, TransformerOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let model = arguments.first().ok_or("which model?")?;
    let repeat = arguments.get(1).map_or(Ok(1), |n| n.parse::<usize>())?;
    let encoder: Box<dyn Encoder> = if arguments.iter().any(|a| a == "bf16") {
        let options = TransformerOptions {
            precision: Precision::Bf16,
            ..TransformerOptions::default()
        };
        Box::new(TransformerEncoder::load(Path::new(model), &options)?)
    } else {
        Box::new(encode::open(model)?)
    };
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let texts: Vec<&str> = text.lines().collect();
    let mut rows = encoder.encode(&texts)?;
    for _ in 0..repeat {
        let start = Instant::now();
        rows = encoder.encode(&texts)?;
        eprintln!("{:.6}", start.elapsed().as_secs_f64());
    }
    let bytes: Vec<u8> = rows.values().iter().flat_map(|x| x.to_le_bytes()).collect();
    std::io::stdout().write_all(&bytes)?;
    Ok(())
}
