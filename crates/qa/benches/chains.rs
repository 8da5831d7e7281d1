//! How long do chains take, and how many tokens do they save beside triples?
//!
//! ```text
//! cargo bench -p wherefore --bench chains             500, 2,000 and 8,000 triples
//! cargo bench -p wherefore --bench chains -- --smoke  500, for CI
//! ```
//!
//! Data: the neighbourhood of a topic in a made-up graph, seed fixed: 40 relations, heads drawn so
//! that few entities have many triples; two topics. The figure is the median of 51 runs of the
//! organizer, lines of text included, with chains of two steps as the paper has them, with turns,
//! and with any length; beside it, triples one by one. Bytes are those of all lines.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::Instant;

use wherefore::Question;
use wherefore::organize::{Chains, ChainsConfig, Organizer, TripleLines, TripleLinesConfig};
use wherefore::select::Selection;
use wherefore_graph::{EntityId, MemoryGraph};
use wherefore_model::Random;

const RUNS: usize = 51;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asked = |flag: &str| args.iter().any(|a| a == flag);
    // `cargo bench` says `--bench`; `cargo test` runs benches too, and a short look is enough there
    let sizes: &[usize] = match asked("--bench") && !asked("--smoke") {
        true => &[500, 2_000, 8_000],
        false => &[500],
    };
    println!(
        "{:>8} {:>18} {:>9} {:>7} {:>9}",
        "triples", "form", "ms", "lines", "bytes"
    );
    let chains = |max_length, turns| {
        Chains::new(ChainsConfig {
            max_length,
            turns,
            tokens: 0,
            ..ChainsConfig::default()
        })
    };
    let plain = TripleLines::new(TripleLinesConfig { confidence: false });
    for &size in sizes {
        let (graph, selection) = made_up(size);
        let forms: [(&str, &dyn Organizer); 4] = [
            ("triples", &plain),
            ("chains", &chains(2, false)),
            ("chains, turns", &chains(2, true)),
            ("chains, any length", &chains(0, false)),
        ];
        for (name, organizer) in forms {
            let question = Question::new("?");
            let mut times = Vec::with_capacity(RUNS);
            let mut written = (0, 0);
            for _ in 0..RUNS {
                let begun = Instant::now();
                let context = organizer.organize(&question, &selection, &graph)?;
                times.push(begun.elapsed().as_secs_f64() * 1e3);
                let bytes = context.lines.iter().map(|line| line.text.len() + 1).sum();
                written = (context.lines.len(), bytes);
            }
            times.sort_by(f64::total_cmp);
            let (lines, bytes) = written;
            println!(
                "{size:>8} {name:>18} {:>9.3} {lines:>7} {bytes:>9}",
                times[RUNS / 2]
            );
        }
    }
    Ok(())
}

fn made_up(size: usize) -> (MemoryGraph, Selection) {
    let mut random = Random::new(7);
    let entities = size;
    let mut triples = Vec::with_capacity(size);
    while triples.len() < size {
        // the product of two draws: few entities are common and many rare
        let few =
            |random: &mut Random| (random.uniform() * random.uniform() * entities as f32) as usize;
        let (head, tail) = (few(&mut random), random.below(entities));
        let relation = random.below(40);
        triples.push((
            format!("entity number {head}"),
            format!("domain.type.relation_{relation}"),
            format!("entity number {tail}"),
        ));
    }
    let graph = MemoryGraph::from_names(triples);
    let scored = graph.triples().map(|t| (t, random.uniform())).collect();
    let selection = Selection {
        triples: scored,
        topics: vec![EntityId(0), EntityId(1)],
        ..Selection::default()
    };
    (graph, selection)
}
