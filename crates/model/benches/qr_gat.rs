//! How fast does QR-GAT answer and learn, beside PyTorch, and how does its time grow?
//!
//! ```text
//! PYTHON=python3 ANCHOR=torch_qrgat.py cargo bench -p wherefore-model --bench qr_gat \
//!     [-- --runs N --chart FILE.svg | --test]
//! ```
//!
//! - First part: the structure of 18 full-size neighbourhoods of WebQSP test (random label vectors,
//!   dim 384, hidden 256, 2 layers, 4 heads, 2 threads). Median over the questions of the median of
//!   N runs each (30 if not said): one question scored, and one training step (forward, backward, AdamW). Where
//!   `PYTHON` names a Python with torch and `ANCHOR` the script that does the same with it, that
//!   runs in between, and the ratios are printed.
//!   Then the same questions with the three switches that are not in the paper, and with these and
//!   half the hidden size.
//! - Second part: scoring 1,000 to 1,000,000 triples of a made-up graph of the same shape, as a
//!   picture if `--chart` names a file.
//!
//! Data: `freebase/webqsp_test_full_rog_subgraphs_18.jsonl` in `$WHEREFORE_DATA`, or else in
//! `../shared/data` beside the repository; without it the first part is skipped and says so.
//! `--test` is a short run on made-up graphs.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use half::f16;
use serde::Deserialize;
use wherefore_model::Random;
use wherefore_model::checkpoint::Checkpointable;
use wherefore_model::optimise::{AdamW, AdamWConfig, Schedule};
use wherefore_model::qr_gat::{
    Batch, Config, Network, Projected, Scorer, Scratch, Subgraph, Table, loss,
};
use wherefore_model::scoring::TripleScorer;
use wherefore_model::tensor::Device;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const THREADS: usize = 2;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let asked = |name: &str| arguments.iter().any(|argument| argument == name);
    // `cargo test` runs it too, without `--bench`
    let test = asked("--test") || !asked("--bench");
    let value = |name: &str| -> Outcome<Option<&String>> {
        match arguments.iter().position(|argument| argument == name) {
            Some(at) => match arguments.get(at + 1) {
                Some(value) => Ok(Some(value)),
                None => Err(format!("{name} needs a value").into()),
            },
            None => Ok(None),
        }
    };
    let runs = value("--runs")?.map_or(Ok(30), |runs| runs.parse())?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(THREADS)
        .build_global()?;
    let config = Config {
        dropout: 0.0,
        ..Config::default()
    };
    if test {
        let graph = Graph::made_up(300, 1);
        answering(&config, &[graph], 2)?;
        learning(&config, &[Graph::made_up(300, 1)], 2)?;
        let points = growth(&config, &[1_000, 3_000], 1)?;
        assert!(chart(&points).ends_with("</svg>\n"));
        return Ok(());
    }
    match data_file() {
        Some(path) => beside_torch(&config, &path, runs)?,
        None => println!("skipped the neighbourhoods of WebQSP: the data is not here"),
    }
    let sizes = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
    let points = growth(&config, &sizes, 3)?;
    if let Some(path) = value("--chart")? {
        fs::write(path, chart(&points))?;
    }
    Ok(())
}

fn beside_torch(config: &Config, path: &PathBuf, runs: usize) -> Outcome<()> {
    let graphs = Graph::read(path)?;
    let [first, halves] = answering(config, &graphs, runs)?;
    let torch = torch(path, runs)?;
    let [again, halves_again] = answering(config, &graphs, runs)?;
    let step = learning(config, &graphs, runs.min(10))?;
    // before and after the other side: what else the machine does is shared out
    let (full, half) = ((first + again) / 2.0, (halves + halves_again) / 2.0);
    println!(
        "ours   score {full:.2} ms with f32 parts, {half:.2} ms with f16 parts; step {step:.1} ms"
    );
    match torch {
        Some((score, train)) => println!(
            "torch  score {score:.2} ms; step {train:.1} ms\n\
             ratio  score {:.1} with f32 parts, {:.1} with f16 parts; step {:.2}",
            score / full,
            score / half,
            train / step
        ),
        None => println!("torch  skipped: set PYTHON and ANCHOR"),
    }
    for hidden in [config.hidden, config.hidden / 2] {
        let config = Config {
            hidden,
            steps: true,
            answers: true,
            matching: true,
            ..config.clone()
        };
        println!("with steps, answers and matching, hidden size {hidden}:");
        answering(&config, &graphs, runs)?;
    }
    Ok(())
}

/// Median milliseconds of a question, with f32 and with f16 parts.
fn answering(config: &Config, graphs: &[Graph], runs: usize) -> Outcome<[f64; 2]> {
    let network = Network::new(config.clone(), &mut Random::new(1), &Device::Cpu)?;
    let scorer = Scorer::new(&network)?;
    let mut scratch = Scratch::default();
    let mut times = [vec![], vec![]];
    let mut worst = 0.0f32;
    for graph in graphs {
        let parts = Parts::new(&scorer, graph, config.dim)?;
        let entities = Table::new(&parts.entities, scorer.entity_width())?;
        let relations = Table::new(&parts.relations, scorer.relation_width())?;
        let subgraph = graph.subgraph();
        times[0].push(median(runs, || {
            scorer.score(&subgraph, &entities, &relations, &mut scratch)?;
            Ok(())
        })?);
        let full = scorer
            .score(&subgraph, &entities, &relations, &mut scratch)?
            .triples
            .to_vec();
        let entities = Table::new(&parts.half_entities, scorer.entity_width())?;
        let relations = Table::new(&parts.half_relations, scorer.relation_width())?;
        times[1].push(median(runs, || {
            scorer.score(&subgraph, &entities, &relations, &mut scratch)?;
            Ok(())
        })?);
        let half = scorer.score(&subgraph, &entities, &relations, &mut scratch)?;
        for (full, half) in full.iter().zip(half.triples) {
            worst = worst.max((full - half).abs());
        }
    }
    let [full, half] = times.map(middle);
    println!(
        "ours   questions={} score_ms f32={full:.2} f16={half:.2}, scores differ by at most {worst:.1e}",
        graphs.len()
    );
    Ok([full, half])
}

/// Median milliseconds of a training step.
fn learning(config: &Config, graphs: &[Graph], runs: usize) -> Outcome<f64> {
    let network = Network::new(config.clone(), &mut Random::new(1), &Device::Cpu)?;
    let schedule = Schedule {
        warm_up: 0,
        total: u64::MAX,
        floor: 1.0,
    };
    let mut adam = AdamW::new(network.parameters(), AdamWConfig::default(), schedule)?;
    let mut times = vec![];
    for graph in graphs {
        let entities = Table::new(&graph.entity_vectors, config.dim)?;
        let relations = Table::new(&graph.relation_vectors, config.dim)?;
        let batch = Batch::new(
            config,
            &[graph.subgraph()],
            &entities,
            &relations,
            &Device::Cpu,
        )?;
        let mut random = Random::new(2);
        let labels: Vec<bool> = (0..graph.triples.len())
            .map(|_| random.uniform() < 0.01)
            .collect();
        times.push(median(runs, || {
            let logits = network.forward(&batch, None)?;
            adam.step(&loss(&logits, &labels, vec![1.0; labels.len()])?)?;
            Ok(())
        })?);
    }
    let step = middle(times);
    println!("ours   questions={} step_ms={step:.1}", graphs.len());
    Ok(step)
}

/// Triples and the milliseconds that they take.
fn growth(config: &Config, sizes: &[usize], runs: usize) -> Outcome<Vec<(f64, f64)>> {
    let network = Network::new(config.clone(), &mut Random::new(1), &Device::Cpu)?;
    let scorer = Scorer::new(&network)?;
    let mut scratch = Scratch::default();
    let mut points = Vec::new();
    for &triples in sizes {
        let mut graph = Graph::made_up(triples, 3);
        // one label vector for all: only the time is asked for, and a million rows of parts
        // would not fit
        graph.entities.fill(0);
        graph.entity_vectors.truncate(config.dim);
        let parts = Parts::new(&scorer, &graph, config.dim)?;
        let entities = Table::new(&parts.half_entities, scorer.entity_width())?;
        let relations = Table::new(&parts.half_relations, scorer.relation_width())?;
        let subgraph = graph.subgraph();
        let ms = median(runs, || {
            scorer.score(&subgraph, &entities, &relations, &mut scratch)?;
            Ok(())
        })?;
        let each = ms * 1e6 / triples as f64;
        println!("ours   triples={triples} score_ms={ms:.2}, {each:.0} ns a triple");
        points.push((triples as f64, ms));
    }
    Ok(points)
}

/// Time over triples, both axes logarithmic, and a dashed line of equal time a triple through the
/// middle point: what grows linearly runs along it.
fn chart(points: &[(f64, f64)]) -> String {
    const DECADE: f64 = 110.0;
    let at = |(triples, ms): (f64, f64)| {
        let x = 60.0 + (triples.log10() - 3.0) * DECADE;
        let y = 460.0 - (ms.log10() + 0.5) * DECADE;
        format!("{x:.1},{y:.1}")
    };
    let line: Vec<String> = points.iter().map(|p| at(*p)).collect();
    let middle = points[points.len() / 2];
    let ideal = [points[0], points[points.len() - 1]]
        .map(|(triples, _)| at((triples, middle.1 * triples / middle.0)));
    let text = |x: f64, y: f64, anchor: &str, text: &str| {
        format!("<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{text}</text>\n")
    };
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 440 520\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#555\">\n\
         <rect width=\"440\" height=\"520\" fill=\"#fff\"/>\n",
    );
    for (i, label) in ["1,000", "10,000", "100,000", "1,000,000"]
        .iter()
        .enumerate()
    {
        svg += &text(60.0 + i as f64 * DECADE, 478.0, "middle", label);
    }
    for (i, label) in ["1 ms", "10 ms", "100 ms", "1 s"].iter().enumerate() {
        let y = 460.0 - (i as f64 + 0.5) * DECADE;
        svg += &text(52.0, y + 4.0, "end", label);
        svg += &format!("<path d=\"M60 {y}H400\" stroke=\"#ddd\"/>\n");
    }
    svg += &text(230.0, 505.0, "middle", "triples of the neighbourhood");
    svg += &format!(
        "<path d=\"M{} L{}\" stroke=\"#999\" stroke-dasharray=\"5 4\" fill=\"none\"/>\n\
         <polyline points=\"{}\" stroke=\"#6a3d9a\" stroke-width=\"2\" fill=\"none\"/>\n",
        ideal[0],
        ideal[1],
        line.join(" ")
    );
    for (point, (_, ms)) in line.iter().zip(points) {
        let (x, y) = point.split_once(',').expect("a point is made with a comma");
        svg += &format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3.5\" fill=\"#6a3d9a\"/>\n");
        let shown = if *ms < 10.0 {
            format!("{ms:.1}")
        } else {
            format!("{ms:.0}")
        };
        svg += &format!("<text x=\"{x}\" y=\"{y}\" dx=\"8\" dy=\"14\">{shown}</text>\n");
    }
    svg + "</svg>\n"
}

/// Milliseconds of forward pass and training step in PyTorch, if it is there.
fn torch(path: &PathBuf, runs: usize) -> Outcome<Option<(f64, f64)>> {
    let (Ok(python), Ok(anchor)) = (std::env::var("PYTHON"), std::env::var("ANCHOR")) else {
        return Ok(None);
    };
    let output = Command::new(python)
        .arg(anchor)
        .args(["--threads", &THREADS.to_string()])
        .args(["--runs", &runs.to_string(), "--subgraphs"])
        .arg(path)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |name: &str| -> Outcome<f64> {
        let word = text
            .split_whitespace()
            .find_map(|word| word.strip_prefix(name));
        let word = word.ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("the anchor did not print {name}: {said}")
        })?;
        Ok(word.parse()?)
    };
    Ok(Some((number("forward_ms=")?, number("train_ms=")?)))
}

fn data_file() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var_os("WHEREFORE_DATA").map_or_else(|| beside.into(), PathBuf::from);
    let path = folder.join("freebase/webqsp_test_full_rog_subgraphs_18.jsonl");
    path.is_file().then_some(path)
}

/// A question with random vectors.
struct Graph {
    question: Vec<f32>,
    entities: Vec<u32>,
    topics: Vec<bool>,
    relations: Vec<u32>,
    triples: Vec<[u32; 3]>,
    entity_vectors: Vec<f32>,
    relation_vectors: Vec<f32>,
}

impl Graph {
    fn new(triples: Vec<[u32; 3]>, entities: usize, relations: usize, seed: u64) -> Self {
        let dim = Config::default().dim;
        let mut random = Random::new(seed);
        let mut numbers = |count: usize| (0..count).map(|_| random.normal()).collect();
        Self {
            question: numbers(dim),
            entities: (0..entities as u32).collect(),
            topics: (0..entities).map(|entity| entity == 0).collect(),
            relations: (0..relations as u32).collect(),
            triples,
            entity_vectors: numbers(entities * dim),
            relation_vectors: numbers(relations * dim),
        }
    }

    fn read(path: &PathBuf) -> Outcome<Vec<Self>> {
        #[derive(Deserialize)]
        struct Line {
            graph: Vec<[String; 3]>,
        }
        let mut graphs = vec![];
        for (seed, line) in fs::read_to_string(path)?.lines().enumerate() {
            let line: Line = serde_json::from_str(line)?;
            let (mut entities, mut relations) = (HashMap::new(), HashMap::new());
            let number = |ids: &mut HashMap<String, u32>, name: &String| {
                let next = ids.len() as u32;
                *ids.entry(name.clone()).or_insert(next)
            };
            let triples = line
                .graph
                .iter()
                .map(|[h, r, t]| {
                    let (h, r) = (number(&mut entities, h), number(&mut relations, r));
                    [h, r, number(&mut entities, t)]
                })
                .collect();
            graphs.push(Self::new(
                triples,
                entities.len(),
                relations.len(),
                seed as u64,
            ));
        }
        Ok(graphs)
    }

    /// Entities and triples as 1,811 to 4,402 (the median of the neighbourhoods), half of the
    /// entities no head, degrees that fall off as in a real graph.
    fn made_up(triples: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let entities = (triples * 1811 / 4402).max(2);
        let relations = 277.min(triples);
        let mut skewed = |count: usize| {
            let at = random.uniform() * random.uniform();
            ((at * count as f32) as usize).min(count - 1) as u32
        };
        let triples = (0..triples)
            .map(|_| [skewed(entities / 2), skewed(relations), skewed(entities)])
            .collect();
        Self::new(triples, entities, relations, seed)
    }

    fn subgraph(&self) -> Subgraph<'_> {
        Subgraph {
            question: &self.question,
            entities: &self.entities,
            topics: &self.topics,
            relations: &self.relations,
            triples: &self.triples,
        }
    }
}

/// What is computed once per graph and checkpoint.
struct Parts {
    entities: Vec<f32>,
    relations: Vec<f32>,
    half_entities: Vec<f16>,
    half_relations: Vec<f16>,
}

impl Parts {
    fn new(scorer: &Scorer, graph: &Graph, dim: usize) -> Outcome<Self> {
        let entities = Table::new(&graph.entity_vectors, dim)?;
        let relations = Table::new(&graph.relation_vectors, dim)?;
        let entities: Projected<'_> = scorer.entity_parts(&entities)?;
        let relations = scorer.relation_parts(&relations)?;
        Ok(Self {
            entities: entities.to_f32(),
            relations: relations.to_f32(),
            half_entities: entities.to_f16(),
            half_relations: relations.to_f16(),
        })
    }
}

/// Median milliseconds of `runs` calls, after some that do not count.
fn median(runs: usize, mut call: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    for _ in 0..runs.div_ceil(3).min(3) {
        call()?;
    }
    let mut times = vec![];
    for _ in 0..runs {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(middle(times))
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let half = times.len() / 2;
    match times.len() % 2 {
        1 => times[half],
        _ => (times[half - 1] + times[half]) / 2.0,
    }
}
