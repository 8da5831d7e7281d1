//! How fast does the distance scorer answer, beside QR-GAT and PNA?
//!
//! ```text
//! cargo bench -p wherefore-model --bench distance_mlp [-- --runs N | --test]
//! ```
//!
//! The structure of 18 full-size neighbourhoods of WebQSP test (1,444 entities, 288 relations and
//! 4,044 triples on average) with random label vectors (256 numbers, parts in f16), 2 threads, all
//! three outputs. Median over the questions of the median of N runs each (30 if not said). Sizes: the
//! distance scorer and QR-GAT with a hidden size of 256, PNA with 128; SubgraphRAG reports 11.5 ms on
//! a GPU.
//!
//! Data: `freebase/webqsp_test_full_rog_subgraphs_18.jsonl` in `$WHEREFORE_DATA`, or else in
//! `../shared/data` beside the repository; without it, and with `--test`, a made-up graph of that size.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde::Deserialize;
use wherefore_model::qr_gat::{Subgraph, Table};
use wherefore_model::scoring::{TripleNetwork, TripleScorer};
use wherefore_model::tensor::Device;
use wherefore_model::{Random, distance_mlp, pna, qr_gat};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const DIM: usize = 256;

/// One question of the file.
#[derive(Deserialize)]
struct Line {
    graph: Vec<[String; 3]>,
    #[serde(default)]
    q_entity: Vec<String>,
}

/// A neighbourhood in local ids.
struct Local {
    entities: usize,
    relations: usize,
    topics: Vec<bool>,
    triples: Vec<[u32; 3]>,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let asked = |name: &str| arguments.iter().any(|argument| argument == name);
    // `cargo test` runs it too, without `--bench`
    let test = asked("--test") || !asked("--bench");
    let runs = match arguments.iter().position(|a| a == "--runs") {
        Some(at) => arguments
            .get(at + 1)
            .ok_or("--runs needs a value")?
            .parse()?,
        None if test => 1,
        None => 30,
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build_global()?;
    let graphs = match read().filter(|_| !test) {
        Some(graphs) => graphs?,
        None => {
            println!("the file of neighbourhoods was not read; a made-up one stands for them");
            vec![made_up()]
        }
    };
    let mean = |of: &dyn Fn(&Local) -> usize| {
        graphs.iter().map(of).sum::<usize>() as f64 / graphs.len() as f64
    };
    println!(
        "{} neighbourhoods: {:.0} entities, {:.0} relations, {:.0} triples on average",
        graphs.len(),
        mean(&|g| g.entities),
        mean(&|g| g.relations),
        mean(&|g| g.triples.len()),
    );
    let distance = distance_mlp::Config {
        dim: DIM,
        answers: true,
        matching: true,
        ..distance_mlp::Config::default()
    };
    let entity = pna::Config {
        dim: DIM,
        answers: true,
        relations: true,
        ..pna::Config::default()
    };
    let attention = qr_gat::Config {
        dim: DIM,
        answers: true,
        matching: true,
        steps: true,
        ..qr_gat::Config::default()
    };
    measure::<distance_mlp::Network>("distance-mlp", distance, &graphs, runs)?;
    measure::<pna::Network>("pna, relations", entity, &graphs, runs)?;
    measure::<qr_gat::Network>("qr-gat", attention, &graphs, runs)
}

fn measure<N: TripleNetwork>(
    name: &str,
    sizes: N::Sizes,
    graphs: &[Local],
    runs: usize,
) -> Outcome<()> {
    let network = N::untrained(sizes, &mut Random::new(1), &Device::Cpu)?;
    let scorer = network.scorer()?;
    let mut scratch = Default::default();
    let mut medians = Vec::new();
    for (seed, graph) in graphs.iter().enumerate() {
        let mut random = Random::new(seed as u64);
        let mut rows = |count: usize| random.within(0.1, count * DIM);
        let (entities, relations, question) =
            (rows(graph.entities), rows(graph.relations), rows(1));
        let entities = scorer.entity_parts(&Table::new(&entities, DIM)?)?.to_f16();
        let relations = scorer
            .relation_parts(&Table::new(&relations, DIM)?)?
            .to_f16();
        let entities = Table::new(&entities, scorer.entity_width())?;
        let relations = Table::new(&relations, scorer.relation_width())?;
        let ids = |count: usize| -> Vec<u32> { (0..count as u32).collect() };
        let (own, of_relations) = (ids(graph.entities), ids(graph.relations));
        let subgraph = Subgraph {
            question: &question,
            entities: &own,
            topics: &graph.topics,
            relations: &of_relations,
            triples: &graph.triples,
        };
        let mut times = Vec::new();
        for _ in 0..=runs {
            let begun = Instant::now();
            scorer.score(&subgraph, &entities, &relations, &mut scratch)?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        // the first run grows the buffers
        medians.push(median(&mut times[1..]));
    }
    println!("{name:<16} {:.3} ms a question", median(&mut medians));
    Ok(())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn read() -> Option<Outcome<Vec<Local>>> {
    let data = std::env::var_os("WHEREFORE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = data.join("freebase/webqsp_test_full_rog_subgraphs_18.jsonl");
    let text = fs::read_to_string(path).ok()?;
    let local = |line: &str| -> Outcome<Local> {
        let line: Line = serde_json::from_str(line)?;
        let (mut entities, mut relations) = (HashMap::new(), HashMap::new());
        let id = |map: &mut HashMap<String, u32>, name: &String| {
            let next = map.len() as u32;
            *map.entry(name.clone()).or_insert(next)
        };
        let triples = (line.graph.iter())
            .map(|[h, r, t]| {
                [
                    id(&mut entities, h),
                    id(&mut relations, r),
                    id(&mut entities, t),
                ]
            })
            .collect();
        let mut topics = vec![false; entities.len()];
        for topic in line.q_entity.iter().filter_map(|t| entities.get(t)) {
            topics[*topic as usize] = true;
        }
        Ok(Local {
            entities: entities.len(),
            relations: relations.len(),
            topics,
            triples,
        })
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Some(lines.map(local).collect())
}

fn made_up() -> Local {
    let (entities, relations) = (1_444, 288);
    let mut random = Random::new(3);
    Local {
        entities,
        relations,
        topics: (0..entities).map(|i| i == 0).collect(),
        triples: (0..4_044)
            .map(|_| {
                let head = random.uniform() * random.uniform() * entities as f32;
                let (relation, tail) = (random.below(relations), random.below(entities));
                [head as u32, relation as u32, tail as u32]
            })
            .collect(),
    }
}
