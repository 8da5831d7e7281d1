//! How fast does a graph load, open, expand and give paths, and how large is it on disk?
//!
//! ```text
//! pip install pyoxigraph
//! cargo bench -p wherefore-graph --bench store            1 and 5 million triples
//! cargo bench -p wherefore-graph --bench store -- --smoke twenty thousand, for CI
//! cargo bench -p wherefore-graph --bench store -- N       N triples
//! ```
//!
//! Data: random graphs with Zipf degrees (`zipf/mod.rs`), fixed seeds, as N-Triples and TSV.
//! The other side is pyoxigraph's bulk loader and patterns, in the same run, on the same files,
//! by `benches/pyoxigraph_side.py`; without it (no Python, or not installed) its column is empty.
//! Expansion takes 2 hops in both directions around 20 entities of middling degree; paths are
//! all shortest paths between 20 pairs, at most three edges long.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints"
)]

mod zipf;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use wherefore_graph::{
    Adjacency, Direction, EntityId, Expander, Expansion, Graph, Input, LoadOptions, PathFinder,
    PathLimits, Store, load,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asked = |flag: &str| args.iter().any(|a| a == flag);
    // `cargo bench` says `--bench`; `cargo test` runs benches too, and a short look is enough there
    let sizes: Vec<u64> = match args.iter().find_map(|a| a.parse().ok()) {
        Some(size) => vec![size],
        None if asked("--bench") && !asked("--smoke") => vec![1_000_000, 5_000_000],
        None => vec![20_000],
    };
    for size in sizes {
        run(size)?;
    }
    Ok(())
}

/// One row: what, our figure, the other side's, and how many times better ours is.
fn row(what: &str, unit: &str, ours: f64, other: Option<f64>, more_is_better: bool) {
    let ratio = other.map(|o| if more_is_better { ours / o } else { o / ours });
    println!(
        "{what:<28} {ours:>14.3} {:>14} {unit:<10} {:>10}",
        other.map_or("-".into(), |o| format!("{o:.3}")),
        ratio.map_or("-".into(), |r| format!("{r:.1}x"))
    );
}

fn run(size: u64) -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name);
    for (name, format) in [("g.nt", zipf::Format::Nt), ("g.tsv", zipf::Format::Tsv)] {
        zipf::write(
            size,
            format,
            1,
            &mut BufWriter::new(File::create(at(name))?),
        )?;
    }
    let timed_load = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
        let report = load(
            &[Input::File(at(name))],
            &at(&format!("{name}.graph")),
            &LoadOptions::default(),
            &|_| {},
        )?;
        Ok(report)
    };
    let tsv = timed_load("g.tsv")?;
    let nt = timed_load("g.nt")?;
    let triples = nt.counts.triples as f64;

    let start = Instant::now();
    let store = Store::open(at("g.nt.graph"))?;
    let open = start.elapsed();
    let seeds = middling(&store, 20)?;
    let pairs: Vec<(EntityId, EntityId)> = middling(&store, 40)?
        .chunks(2)
        .map(|p| (p[0], p[1]))
        .collect();
    let iri = |e: EntityId| store.entity_term(e).map(|t| t.to_string());
    let mut text = String::new();
    for &seed in &seeds {
        text += &format!("{}\n", iri(seed)?);
    }
    std::fs::write(at("seeds.txt"), text)?;
    let mut text = String::new();
    for &(a, b) in &pairs {
        text += &format!("{} {}\n", iri(a)?, iri(b)?);
    }
    std::fs::write(at("pairs.txt"), text)?;

    let how = Expansion {
        max_triples: usize::MAX,
        max_fan_out: usize::MAX,
        ..Expansion::default()
    };
    let mut expander = Expander::default();
    expander.expand(&store, &seeds[..1], &how)?;
    let start = Instant::now();
    let mut expanded = 0;
    for seed in &seeds {
        expanded += expander
            .expand(&store, &[*seed], &how)?
            .subgraph
            .triples()
            .len();
    }
    let expand = start.elapsed().as_secs_f64();
    let limits = PathLimits {
        max_length: 3,
        max_edges: usize::MAX,
        ..PathLimits::default()
    };
    let mut finder = PathFinder::default();
    let start = Instant::now();
    let mut on_paths = 0;
    for &(a, b) in &pairs {
        on_paths += finder
            .shortest_paths(&store, &[a], &[b], Direction::Both, &limits)?
            .triples()
            .len();
    }
    let paths = start.elapsed().as_secs_f64();

    let other = pyoxigraph(
        &at("g.nt"),
        &at("seeds.txt"),
        &at("pairs.txt"),
        &at("oxigraph"),
    );
    let figure = |name: &str| {
        other
            .as_ref()
            .and_then(|o| o.get(name))
            .and_then(serde_json::Value::as_f64)
    };
    if let (Some(theirs), Some(their_paths)) = (figure("expanded"), figure("on_paths")) {
        assert_eq!(
            theirs as usize, expanded,
            "both sides must find the same triples"
        );
        assert_eq!(
            their_paths as usize, on_paths,
            "both sides must find the same paths"
        );
        assert_eq!(
            figure("triples"),
            Some(triples),
            "both sides must hold the same graph"
        );
    }
    println!(
        "\n{size} lines, {triples} distinct triples, {} entities",
        nt.counts.entities
    );
    println!(
        "{:<28} {:>14} {:>14} {:<10} {:>10}",
        "", "wherefore", "pyoxigraph", "", "ratio"
    );
    let rate = figure("load_s").map(|s| size as f64 / s / 1e6);
    row(
        "load N-Triples",
        "M lines/s",
        size as f64 / nt.time.as_secs_f64() / 1e6,
        rate,
        true,
    );
    row(
        "load TSV",
        "M lines/s",
        size as f64 / tsv.time.as_secs_f64() / 1e6,
        None,
        true,
    );
    row(
        "on disk",
        "B/triple",
        nt.bytes as f64 / triples,
        figure("bytes").map(|b| b / triples),
        false,
    );
    let dictionary: u64 = store
        .files()
        .filter(|(name, _)| {
            ["entities.", "relations.", "names.", "labels"]
                .iter()
                .any(|p| name.starts_with(p))
        })
        .map(|(_, bytes)| bytes)
        .sum();
    row(
        "beside the dictionary",
        "B/triple",
        (nt.bytes - dictionary) as f64 / triples,
        None,
        false,
    );
    row(
        "open",
        "ms",
        open.as_secs_f64() * 1e3,
        figure("open_s").map(|s| s * 1e3),
        false,
    );
    row(
        "2-hop expansion",
        "M edges/s",
        expanded as f64 / expand / 1e6,
        figure("expand_s").map(|s| expanded as f64 / s / 1e6),
        true,
    );
    row(
        "shortest paths",
        "pairs/s",
        pairs.len() as f64 / paths,
        figure("paths_s").map(|s| pairs.len() as f64 / s),
        true,
    );
    Ok(())
}

/// Entities of middling degree, spread over the graph.
fn middling(store: &Store, count: usize) -> wherefore_graph::Result<Vec<EntityId>> {
    let mut random = zipf::Random(99);
    let mut found = Vec::new();
    while found.len() < count {
        let entity = EntityId((random.next() % store.entity_bound() as u64) as u32);
        if (3..=40).contains(&store.degree(entity)?) && !found.contains(&entity) {
            found.push(entity);
        }
    }
    Ok(found)
}

fn pyoxigraph(
    graph: &Path,
    seeds: &Path,
    pairs: &Path,
    folder: &Path,
) -> Option<serde_json::Value> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../benches/pyoxigraph_side.py");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let out = Command::new(python)
        .arg(script)
        .args([graph, seeds, pairs, folder])
        .output()
        .ok()?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr);
        eprintln!(
            "no pyoxigraph: {}",
            why.lines().last().unwrap_or("it did not run")
        );
        return None;
    }
    serde_json::from_slice(&out.stdout).ok()
}
