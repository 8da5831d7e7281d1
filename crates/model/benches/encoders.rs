//! How fast are the encoders, and how much of the teacher's ranking does the static table keep?
//!
//! ```text
//! cargo bench -p wherefore-model --bench encoders -- [--smoke] [--table FILE] [MODEL…]
//! ```
//!
//! - `labels/s`: 43,000 entity labels of MetaQA through the table, on all cores, best of five; and
//!   2,000 of them through every MODEL (a folder or an added model).
//! - `matcher`: a question of twelve words through the built-in matcher, and its cosines with 200
//!   phrases that were encoded before: median of 200.
//! - `top 10`: for each question of WebQSP train, whether a relation of its gold chain is among the
//!   ten nearest of all relations of the Freebase graph (dots and underscores opened up); ratio of
//!   the table to the first MODEL (`minilm`, if it was added).
//!
//! Data: `$WHEREFORE_DATA`, or else `../shared/data` beside the repository; what is absent is
//! skipped and said so. `--smoke` takes a few made-up labels and no data.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use wherefore_model::encode::{self, StaticTable};
use wherefore_model::{Embeddings, Encoder};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    // `cargo test` runs it too, and says nothing
    let mut smoke = true;
    let mut only_smoke = false;
    let mut table: Arc<dyn Encoder> = StaticTable::built_in();
    let mut names = vec![];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => smoke = false,
            "--smoke" => only_smoke = true,
            "--table" => {
                let path = arguments.next().ok_or("--table needs a file")?;
                table = Arc::new(StaticTable::load(Path::new(&path))?);
            }
            name => names.push(name.to_owned()),
        }
    }
    if smoke || only_smoke {
        let labels: Vec<String> = (0..2000)
            .map(|i| format!("label {i} of the film"))
            .collect();
        matching(20)?;
        return speed("static", &*table, &labels);
    }
    matching(200)?;
    if names.is_empty() {
        names.push("minilm".into());
    }
    let mut models: Vec<(String, Arc<dyn Encoder>)> = vec![];
    for name in names {
        match encode::open(&name) {
            Ok(model) => models.push((name, model)),
            Err(error) => println!("skipped {name}: {error}"),
        }
    }
    let data = data_folder();
    let labels = data.join("metaqa/kb_entity_dict.txt");
    if labels.is_file() {
        let text = fs::read_to_string(&labels)?;
        let labels: Vec<String> = text
            .lines()
            .filter_map(|line| Some(line.split('\t').nth(1)?.to_owned()))
            .collect();
        speed("static", &*table, &labels)?;
        let some: Vec<String> = labels
            .iter()
            .skip(20)
            .step_by(21)
            .take(2000)
            .cloned()
            .collect();
        for (name, model) in &models {
            speed(name, model, &some)?;
        }
    } else {
        println!("skipped labels/s: no `{}`", labels.display());
    }
    let freebase = data.join("freebase");
    if !freebase.join("triples.tsv").is_file() {
        println!("skipped top 10: no `{}`", freebase.display());
        return Ok(());
    }
    let relations = Relations::read(&freebase)?;
    let of_table = relations.top_10("static", &*table)?;
    for (name, model) in &models {
        let of_model = relations.top_10(name, model)?;
        println!("static / {name} = {:.4}", of_table / of_model);
    }
    Ok(())
}

fn data_folder() -> PathBuf {
    std::env::var_os("WHEREFORE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    )
}

fn speed(name: &str, encoder: &dyn Encoder, labels: &[String]) -> Outcome<()> {
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let rounds = if labels.len() > 2000 { 5 } else { 2 };
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        let rows = encoder.encode(&labels)?;
        assert_eq!(rows.len(), labels.len());
        best = best.min(start.elapsed().as_secs_f64());
    }
    let count = labels.len();
    println!(
        "{name}: {count} labels in {best:.4} s, {:.0} labels/s",
        count as f64 / best
    );
    Ok(())
}

/// What a question costs that is compared with 200 phrases.
fn matching(rounds: usize) -> Outcome<()> {
    let start = Instant::now();
    let matcher = encode::open("matcher")?;
    let loaded = start.elapsed().as_secs_f64() * 1e3;
    let phrases: Vec<String> = (0..200)
        .map(|i| format!("relation {i} of the film"))
        .collect();
    let phrases = matcher.encode(&phrases.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut times = vec![];
    for _ in 0..rounds {
        let start = Instant::now();
        let question =
            matcher.encode(&["which films were directed by it and released before 1990?"])?;
        let best = phrases.rows().map(|row| {
            let products = row.iter().zip(question.row(0)).map(|(x, y)| x * y);
            products.sum::<f32>()
        });
        assert!(best.fold(f32::MIN, f32::max).is_finite());
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "matcher: loaded in {loaded:.1} ms; a question and 200 phrases {:.2} ms, 95% within {:.2} ms",
        times[rounds / 2],
        times[rounds * 95 / 100]
    );
    Ok(())
}

/// Questions, the relations that answer them, and all relations.
struct Relations {
    labels: Vec<String>,
    questions: Vec<String>,
    gold: Vec<Vec<usize>>,
}

impl Relations {
    fn read(folder: &Path) -> Outcome<Self> {
        #[derive(Deserialize)]
        struct Question {
            question: String,
            relation_chain: Option<Vec<String>>,
        }
        let triples = fs::read_to_string(folder.join("triples.tsv"))?;
        let names: Vec<&str> = triples
            .lines()
            .filter_map(|line| line.split('\t').nth(1))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let mut built = Self {
            labels: names
                .iter()
                .map(|name| name.replace(['.', '_'], " "))
                .collect(),
            questions: vec![],
            gold: vec![],
        };
        for line in fs::read_to_string(folder.join("webqsp_train.jsonl"))?.lines() {
            let question: Question = serde_json::from_str(line)?;
            let gold: Vec<usize> = question
                .relation_chain
                .iter()
                .flatten()
                .filter_map(|name| names.binary_search(&name.as_str()).ok())
                .collect();
            if !gold.is_empty() {
                built.questions.push(question.question);
                built.gold.push(gold);
            }
        }
        Ok(built)
    }

    /// The part of the questions with a gold relation among the ten nearest.
    fn top_10(&self, name: &str, encoder: &dyn Encoder) -> Outcome<f64> {
        let borrow = |texts: &[String]| -> Outcome<Embeddings> {
            Ok(encoder.encode(&texts.iter().map(String::as_str).collect::<Vec<_>>())?)
        };
        let (relations, questions) = (borrow(&self.labels)?, borrow(&self.questions)?);
        let mut hits = 0;
        for (question, gold) in questions.rows().zip(&self.gold) {
            let scores: Vec<f32> = relations
                .rows()
                .map(|row| row.iter().zip(question).map(|(x, y)| x * y).sum())
                .collect();
            let best = gold.iter().map(|&g| scores[g]).fold(f32::MIN, f32::max);
            let above = scores.iter().filter(|score| **score > best).count();
            hits += usize::from(above < 10);
        }
        let part = hits as f64 / self.gold.len() as f64;
        let (asked, among) = (self.gold.len(), self.labels.len());
        println!(
            "{name}: a gold relation in the top 10 of {among} for {part:.4} of {asked} questions"
        );
        Ok(part)
    }
}
