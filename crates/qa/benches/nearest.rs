//! How long do the nearest vectors take, scanned and by links, and how many do links find?
//!
//! ```text
//! cargo bench -p wherefore --bench nearest             20,000 and 60,000 labels
//! cargo bench -p wherefore --bench nearest -- --smoke  3,000, for CI
//! cargo bench -p wherefore --bench nearest -- N        N labels
//! ```
//!
//! Data: labels of one to four words out of 4,000 that are made of syllables, seed fixed, encoded
//! by the built-in table (256 numbers). Queries are 500 further labels, k is 10. Recall is the
//! part of the scan's ten that links find. Each figure is a mean over the queries.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use wherefore::index::{IndexOptions, Part, Vectors, build};
use wherefore_graph::{Input, LoadOptions, Store, load};
use wherefore_model::encode;

const QUERIES: usize = 500;
const K: usize = 10;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asked = |flag: &str| args.iter().any(|a| a == flag);
    // `cargo bench` says `--bench`; `cargo test` runs benches too, and a short look is enough there
    let sizes: Vec<usize> = match args.iter().find_map(|a| a.parse().ok()) {
        Some(size) => vec![size],
        None if asked("--bench") && !asked("--smoke") => vec![20_000, 60_000],
        None => vec![3_000],
    };
    println!(
        "{:>9} {:>9} {:>10} {:>10} {:>10} {:>8}",
        "vectors", "build s", "MB", "scan ms", "links ms", "recall"
    );
    for size in sizes {
        run(size)?;
    }
    Ok(())
}

/// Pseudo-random numbers below a bound.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn word(&mut self) -> String {
        const HEAD: [&str; 20] = [
            "b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st",
            "tr", "ch", "sh",
        ];
        const TAIL: [&str; 10] = ["a", "e", "i", "o", "u", "an", "er", "in", "on", "ar"];
        // the smaller of two draws: few words are common and many rare
        let draw = self.below(4_000).min(self.below(4_000));
        let syllable = |n: usize| format!("{}{}", HEAD[n % 20], TAIL[n / 20 % 10]);
        syllable(draw) + &syllable(draw * 7 / 3)
    }

    fn label(&mut self) -> String {
        let words: Vec<String> = (0..1 + self.below(4)).map(|_| self.word()).collect();
        words.join(" ")
    }
}

fn store(folder: &Path, size: usize, random: &mut Random) -> Outcome<Store> {
    let mut table = String::new();
    for i in 0..size {
        // the number keeps labels apart
        writeln!(table, "{} {i}\tis\tthing", random.label())?;
    }
    let file = folder.join("labels.tsv");
    std::fs::write(&file, table)?;
    let graph = folder.join("graph");
    load(
        &[Input::File(file)],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )?;
    Ok(Store::open(&graph)?)
}

fn run(size: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let mut random = Random(42);
    let store = store(folder.path(), size, &mut random)?;
    let encoder = encode::open("static")?;
    let options = IndexOptions {
        relations: false,
        text: false,
        scanned: 0,
        ..IndexOptions::default()
    };
    let report = build(&store, &*encoder, &options, &|_| {})?;
    let part = &report.parts[0];
    let vectors = Vectors::open(&store, &*encoder, Part::Entities)?;
    let texts: Vec<String> = (0..QUERIES).map(|_| random.label()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let queries = encoder.encode(&texts)?;
    vectors.nearest_exact(queries.row(0), K)?; // the first touch of a mapped page is no search

    let start = Instant::now();
    let exact: Vec<_> = queries
        .rows()
        .map(|query| vectors.nearest_exact(query, K))
        .collect::<Result<_, _>>()?;
    let scan = start.elapsed().as_secs_f64() * 1000.0 / QUERIES as f64;
    let start = Instant::now();
    let linked: Vec<_> = queries
        .rows()
        .map(|query| vectors.nearest(query, K))
        .collect::<Result<_, _>>()?;
    let links = start.elapsed().as_secs_f64() * 1000.0 / QUERIES as f64;
    let hits: usize = exact
        .iter()
        .zip(&linked)
        .map(|(exact, linked)| exact.iter().filter(|e| linked.contains(e)).count())
        .sum();
    println!(
        "{:>9} {:>9.1} {:>10.1} {:>10.3} {:>10.3} {:>8.3}",
        part.vectors,
        part.seconds,
        part.bytes as f64 / 1e6,
        scan,
        links,
        hits as f64 / (QUERIES * K) as f64
    );
    Ok(())
}
