//! `wherefore train`: a retriever learns from questions and answers.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use serde_json::{Map, json};
use wherefore::PipelineConfig;
use wherefore::confidence::CONFIDENCE_FILE;
use wherefore::graph::Graph;
use wherefore::method::Trained;
use wherefore::model::tensor::{Device, device};
use wherefore::model::{distance_mlp, pna, qr_gat};
use wherefore::read::Weights;
use wherefore_lab::atomic_write;
use wherefore_lab::calibrate::fit_to;
use wherefore_lab::questions::{self, GoldQuestion};
use wherefore_lab::supervise::ShortestPaths;
use wherefore_lab::sweep;
use wherefore_lab::train::{
    self, AmarTrainConfig, Gnn2rTrainConfig, Labels, ReadTrainConfig, ReadingDataset,
    RelationPlanTrainConfig, RelationTrainConfig, Settings, Task, TrainConfig, TrainableNetwork,
};

use crate::args::{Consent, question_format};
use crate::errors::Exit;
use crate::open::open_for;
use crate::output::Output;
use crate::progress::{Progress, Unit};

/// `pna` with relations in its messages.
pub(crate) const PNA_RELATIONS: &str = "pna-relations";

/// Train a retriever from questions and their answers
///
/// The best network so far is always in `--out`. A training that was stopped goes on where it was
/// when the same command is given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore train qr-gat --graph metaqa --questions qa_train.txt --valid qa_dev.txt --out ckpt
  wherefore train qr-gat --graph movies --questions mine.jsonl --out ckpt --set neighbourhood.hops=3
  wherefore train qr-gat --questions rog_webqsp_train.parquet --out ckpt --encoder minilm
  wherefore train gnn2r --graph 2h-kb --questions PQ-2H.train.txt --valid PQ-2H.valid.txt --out ckpt
  wherefore train relation-plan --graph metaqa --questions qa_dev.txt --out ckpt
  wherefore train amar --graph freebase --questions train.jsonl --llm smollm2.gguf --out ckpt
  wherefore train distance-mlp --graph freebase --questions train.jsonl --labels labels.jsonl --out ckpt
  wherefore train read --on geo geo.jsonl --on films films.jsonl --out weights.toml")]
pub(crate) struct Train {
    /// The method
    #[arg(value_name = "METHOD", value_parser = trained())]
    pub(crate) method: String,
    /// A graph folder, or `@toy`; none where each question brings its own graph
    #[arg(long)]
    pub(crate) graph: Option<String>,
    /// Questions to learn from, in any format of `wherefore eval`; repeatable
    #[arg(long, value_name = "FILE", required_unless_present = "on", num_args = 1..)]
    pub(crate) questions: Vec<PathBuf>,
    /// For `read`: a graph and questions over it; repeatable
    #[arg(long, num_args = 2, value_names = ["GRAPH", "FILE"], conflicts_with_all = ["graph", "questions"])]
    pub(crate) on: Vec<String>,
    /// Questions to judge by; a tenth of the others, drawn by the seed, if none are given
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) valid: Vec<PathBuf>,
    /// The questions' format, where it is not told by their content
    #[arg(long, value_parser = question_format)]
    pub(crate) format: Option<wherefore_lab::questions::Format>,
    /// Labels to learn instead of shortest paths, as `wherefore label` writes them: JSON lines with
    /// `id` and `paths`
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// The checkpoint's folder; for `read` a file of weights
    #[arg(long, value_name = "CKPT")]
    pub(crate) out: PathBuf,
    /// Settings, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Change a setting, as in `sizes.hidden=128`; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) set: Vec<(String, String)>,
    /// The encoder: `static`, `hashing`, a model folder or an added model
    #[arg(long, value_name = "E")]
    pub(crate) encoder: Option<String>,
    /// The language model that `amar` is trained around, a GGUF file
    #[arg(long, value_name = "FILE")]
    pub(crate) llm: Option<PathBuf>,
    /// Seed of weights, order and dropout
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Where to compute: `cpu`, `cuda` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,
    /// Begin with the weights of this checkpoint, or of this file for `read`
    #[arg(long, value_name = "CKPT")]
    pub(crate) init: Option<PathBuf>,
    /// Begin anew, whatever a stopped training left
    #[arg(long)]
    pub(crate) restart: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// What can be trained: checkpoints' names, and PNA with relations in its messages.
fn trained() -> clap::builder::PossibleValuesParser {
    use wherefore::method::Trained;
    Trained::ALL
        .map(Trained::name)
        .into_iter()
        .chain([PNA_RELATIONS])
        .collect::<Vec<_>>()
        .into()
}

/// Validation questions that confidences are fitted to at most.
const CALIBRATED: usize = 1000;

pub(crate) fn run(args: &Train, output: &Output) -> anyhow::Result<Exit> {
    let kind = match args.method.as_str() {
        PNA_RELATIONS => Trained::Pna,
        name => name.parse()?,
    };
    match kind {
        Trained::Gnn2r => {
            let config: Gnn2rTrainConfig = config(args)?;
            config.check()?;
            let weak = Labels::Weak(ShortestPaths::default());
            let what = (kind, config.trainer.seed, weak);
            run_with(args, output, what, |task, device, see| {
                let trained = train::gnn2r(task, &config, device, see)?;
                let (network, more) = (&trained.network, trained.sentence_epochs.len());
                let measured = format!("{}; both steps: {}", network.best, trained.answers);
                Report::of(&trained, network, more, measured)
            })
        }
        Trained::Relations => {
            let config: RelationTrainConfig = config(args)?;
            config.check()?;
            let unused = Labels::Weak(ShortestPaths::default());
            let what = (kind, config.trainer.seed, unused);
            run_with(args, output, what, |task, device, see| {
                let trained = train::relations(task, &config, device, see)?;
                let (matcher, more) = (&trained.matcher, trained.pair_epochs.len());
                let again = trained.pair_epochs.iter().rfind(|epoch| epoch.best);
                let measured = match again {
                    Some(epoch) => format!("{}; {}", matcher.best, epoch.valid),
                    None => matcher.best.to_string(),
                };
                Report::of(&trained, matcher, more, measured)
            })
        }
        Trained::Amar => {
            let mut config: AmarTrainConfig = config(args)?;
            if let Some(llm) = &args.llm {
                config.llm.clone_from(llm);
            }
            config.check()?;
            let unused = Labels::Weak(ShortestPaths::default());
            let what = (kind, config.trainer.seed, unused);
            run_with(args, output, what, |task, device, see| {
                let trained = train::amar(task, &config, device, see)?;
                let measured = format!(
                    "{}; {:.0} tokens a question, {} numbers learned",
                    trained.network.best, trained.tokens, trained.parameters
                );
                Report::of(&trained, &trained.network, 0, measured)
            })
        }
        Trained::RelationPlan => {
            let config: RelationPlanTrainConfig = config(args)?;
            config.check()?;
            let weak = config.supervision.labels(config.growth.max_length);
            let what = (kind, config.trainer.seed, weak);
            run_with(args, output, what, |task, device, see| {
                let trained = train::relation_plan(task, &config, device, see)?;
                Report::of(&trained, &trained, 0, trained.best.to_string())
            })
        }
        Trained::Read => reader(args, output),
        Trained::DistanceMlp => network::<distance_mlp::Network>(args, kind, config(args)?, output),
        Trained::Pna => {
            let mut config: TrainConfig<pna::Config> = config(args)?;
            config.sizes.relations |= args.method == PNA_RELATIONS;
            network::<pna::Network>(args, kind, config, output)
        }
        Trained::QrGat => network::<qr_gat::Network>(args, kind, config(args)?, output),
    }
}

/// Weights of the reader from a file.
pub(crate) fn weights(path: &Path) -> anyhow::Result<Weights> {
    Weights::read(&super::read_text(path, 1 << 20)?)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("cannot use the weights `{}`", path.display()))
}

/// Fits the weights of the reader.
fn reader(args: &Train, output: &Output) -> anyhow::Result<Exit> {
    let config: ReadTrainConfig = config(args)?;
    config.check()?;
    let mut lessons = Vec::new();
    match &args.graph {
        Some(graph) => lessons.push((graph.clone(), args.questions.clone())),
        None if args.on.is_empty() => {
            anyhow::bail!("`train read` needs a graph: `--graph GRAPH`, or `--on GRAPH FILE`")
        }
        None => {
            let pairs = args.on.chunks_exact(2);
            lessons.extend(pairs.map(|on| (on[0].clone(), vec![PathBuf::from(&on[1])])));
        }
    }
    let mut read_in = Vec::new();
    for (graph, files) in &lessons {
        let questions = read(files, args)?;
        let graph = open_for(
            Some(graph),
            questions.iter(),
            &files[0],
            args.consent.trust(),
        )?;
        read_in.push((graph, questions));
    }
    let lessons: Vec<ReadingDataset<'_>> = read_in
        .iter()
        .map(|(graph, questions)| ReadingDataset {
            graph: graph.as_ref(),
            questions,
        })
        .collect();
    let start = match &args.init {
        None => Weights::shipped().clone(),
        Some(path) => weights(path)?,
    };
    let mut bar = Some(Progress::begin("reading", output));
    let (weights, rounds) = train::reading(&lessons, &start, &config, |done, total, round| {
        if let Some(bar) = &bar {
            bar.at(done as u64, Some(total as u64), Unit::Count("questions"));
        }
        if let Some(r) = round {
            bar = None;
            output.note(
                &format!("round {}", r.round),
                &format!(
                    "the first reading is right for {} of {}, some reading for {}",
                    r.first, r.questions, r.found
                ),
            );
            if r.round < config.rounds {
                bar = Some(Progress::begin("reading", output));
            }
        }
    })?;
    drop(bar);
    atomic_write::write(&args.out, weights.written())
        .with_context(|| format!("cannot write the weights `{}`", args.out.display()))?;
    if output.json {
        output.print_json(&json!({ "out": args.out, "rounds": rounds }))?;
        return Ok(Exit::Done);
    }
    output.print(&format!("{}\n", args.out.display()))?;
    let weights = args.out.display();
    output.note(
        "next",
        &format!("set `retrieve.weights = \"{weights}\"` with the method `read`"),
    );
    Ok(Exit::Done)
}

/// Trains a network that scores neighbourhoods.
fn network<N: TrainableNetwork>(
    args: &Train,
    kind: Trained,
    config: TrainConfig<N::Sizes>,
    output: &Output,
) -> anyhow::Result<Exit> {
    config.check()?;
    let weak = config.supervision.labels(config.neighbourhood.hops);
    let what = (kind, config.trainer.seed, weak);
    run_with(args, output, what, |task, device, see| {
        let trained = train::network::<N>(task, &config, device, see)?;
        let report = Report::of(&trained, &trained, 0, trained.best.to_string())?;
        Ok(Report {
            index: true,
            ..report
        })
    })
}

/// What a training came to, for people and programs.
struct Report {
    json: serde_json::Value,
    /// Learned from, left out, passes, judged by.
    questions: [usize; 4],
    measured: String,
    /// Whether `wherefore index` makes asking faster.
    index: bool,
}

impl Report {
    /// Of a training whose loop came to `first`, with `more` passes behind it.
    fn of<J>(
        trained: &impl Serialize,
        first: &train::Trained<J>,
        more: usize,
        measured: String,
    ) -> anyhow::Result<Self> {
        let passes = first.epochs.len() + more;
        Ok(Self {
            json: serde_json::to_value(trained).context("cannot write JSON")?,
            questions: [first.questions, first.left_out, passes, first.valid],
            measured,
            index: false,
        })
    }
}

fn run_with(
    args: &Train,
    output: &Output,
    (kind, seed, weak): (Trained, u64, Labels),
    train: impl FnOnce(&Task<'_>, &Device, &mut dyn FnMut(train::Progress)) -> anyhow::Result<Report>,
) -> anyhow::Result<Exit> {
    let device = device(&args.device).map_err(wherefore::Error::from)?;
    let mut questions = read(&args.questions, args)?;
    let valid = match args.valid.is_empty() {
        false => read(&args.valid, args)?,
        true => {
            let count = (questions.len() / 10).max(1);
            let valid = sweep::sample(&questions, count, seed);
            // questions keep their order, and so do those that were drawn
            let mut drawn = valid.iter().peekable();
            questions.retain(|q| drawn.next_if(|d| *d == q).is_none());
            output.note(
                "valid",
                &format!(
                    "{} questions were set aside; `--valid FILE` names others",
                    valid.len()
                ),
            );
            valid
        }
    };
    let all = questions.iter().chain(&valid);
    let graph = open_for(
        args.graph.as_deref(),
        all,
        &args.questions[0],
        args.consent.trust(),
    )?;
    let labels = match &args.labels {
        Some(path) => Labels::read(path)
            .with_context(|| format!("cannot read the labels `{}`", path.display()))?,
        None => weak,
    };
    let names = |paths: &[PathBuf]| -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
        paths.iter().filter_map(name).collect()
    };
    let mut data = Map::new();
    data.insert("graph".into(), json!(graph.identity()));
    data.insert("questions".into(), json!(names(&args.questions)));
    data.insert("valid".into(), json!(names(&args.valid)));
    data.insert("train_questions".into(), json!(questions.len()));
    data.insert("valid_questions".into(), json!(valid.len()));
    let task = Task {
        graph: graph.as_ref(),
        train: &questions,
        valid: &valid,
        labels,
        data,
        out: &args.out,
        init: args.init.as_deref(),
        restart: args.restart,
    };
    let mut shown = Shown { bar: None, output };
    let report = train(&task, &device, &mut |progress| shown.see(&progress));
    drop(shown);
    let report =
        report.with_context(|| format!("cannot train the checkpoint `{}`", args.out.display()))?;
    // `relations` answers nothing by itself, and `amar` is slow around its language model
    if !matches!(kind, Trained::Relations | Trained::Amar) {
        calibrated(&args.out, &valid, graph.as_ref(), output)?;
    }
    if output.json {
        output.print_json(&report.json)?;
        return Ok(Exit::Done);
    }
    let [learned, left_out, passes, judged] = report.questions;
    let left_out = match left_out {
        0 => String::new(),
        n if kind == Trained::Relations => {
            format!(" ({n} more have no gold relation in the graph)")
        }
        n if kind == Trained::Amar => format!(" ({n} more have no known form)"),
        n => format!(" ({n} more have no path from a topic to an answer)"),
    };
    output.print(&format!(
        "{}\nlearned from {learned} questions{left_out} in {passes} passes; on {judged} validation \
         questions: {}\n",
        args.out.display(),
        report.measured,
    ))?;
    if kind == Trained::Relations {
        return Ok(Exit::Done);
    }
    if let Some(graph) = args.graph.as_ref().filter(|g| !g.starts_with('@')) {
        let model = args.out.display();
        let index = match report.index {
            true => format!("wherefore index {graph} --model {model}; "),
            false => String::new(),
        };
        let ask = format!("{index}wherefore ask {graph} 'QUESTION' --model {model}");
        output.note("next", &ask);
    }
    Ok(Exit::Done)
}

/// Makes the confidences of a checkpoint probabilities, by its validation questions.
fn calibrated(
    model: &Path,
    valid: &[GoldQuestion],
    graph: &dyn Graph,
    output: &Output,
) -> anyhow::Result<()> {
    let path = model.join(CONFIDENCE_FILE);
    if path.exists() {
        std::fs::remove_file(&path)
            .with_context(|| format!("cannot replace `{}`", path.display()))?;
    }
    let some = &valid[..valid.len().min(CALIBRATED)];
    let pipeline = PipelineConfig::of_checkpoint(model)?.build()?;
    let bar = Progress::begin("calibrating", output);
    let mut done = 0;
    let fitted = fit_to(&pipeline, some, graph, |more| {
        done += more as u64;
        bar.at(done, Some(some.len() as u64), Unit::Count("questions"));
    });
    drop(bar);
    match fitted {
        Ok(calibration) => atomic_write::write(&path, calibration.to_toml())
            .with_context(|| format!("cannot write `{}`", path.display()))?,
        Err(error) => output.note(
            "note",
            &format!("confidences are no probabilities: {error}"),
        ),
    }
    Ok(())
}

fn config<C: Settings + Default>(args: &Train) -> anyhow::Result<C> {
    let mut config = match &args.config {
        None => C::default(),
        Some(path) => {
            let text = super::read_text(path, 1 << 20)?;
            C::from_toml(&text)
                .with_context(|| format!("cannot use the settings `{}`", path.display()))?
        }
    };
    if let Some(encoder) = &args.encoder {
        config.set_encoder(encoder);
    }
    if let Some(seed) = args.seed {
        config.set_seed(seed);
    }
    for (setting, value) in &args.set {
        config.set(setting, value)?;
    }
    Ok(config)
}

fn read(paths: &[PathBuf], args: &Train) -> anyhow::Result<Vec<GoldQuestion>> {
    let mut all = Vec::new();
    for path in paths {
        let read = questions::read(path, args.format)
            .with_context(|| format!("cannot read the questions `{}`", path.display()))?;
        all.extend(read);
    }
    Ok(all)
}

/// What is going on, for people.
struct Shown<'a> {
    bar: Option<(&'static str, Progress)>,
    output: &'a Output,
}

impl Shown<'_> {
    fn see(&mut self, progress: &train::Progress) {
        match progress {
            train::Progress::Cutting { done, total } => {
                self.bar("cutting out neighbourhoods").at(
                    *done as u64,
                    Some(*total as u64),
                    Unit::Count("questions"),
                );
            }
            train::Progress::Exploring { done, total } => {
                self.bar("looking at candidates").at(
                    *done as u64,
                    Some(*total as u64),
                    Unit::Count("questions"),
                );
            }
            train::Progress::Encoding { done, total } => {
                self.bar("encoding labels").at(
                    *done as u64,
                    Some(*total as u64),
                    Unit::Count("labels"),
                );
            }
            train::Progress::Resumed { steps } => {
                self.bar = None;
                self.output
                    .note("resumed", &format!("after {steps} steps of a stopped run"));
            }
            train::Progress::Step {
                epoch,
                done,
                total,
                loss,
            } => {
                let bar = self.bar("learning");
                bar.note(&format!("pass {epoch}, loss {loss:.4}"));
                bar.at(*done as u64, Some(*total as u64), Unit::Count("steps"));
            }
            train::Progress::Epoch(pass) => {
                self.bar = None;
                let best = if pass.best { " (best)" } else { "" };
                self.output.note(
                    &format!("pass {}", pass.epoch),
                    &format!("loss {:.4}, {}{best}", pass.loss, pass.valid),
                );
            }
        }
    }

    fn bar(&mut self, label: &'static str) -> &Progress {
        if self.bar.as_ref().is_none_or(|(shown, _)| *shown != label) {
            self.bar = None; // the old bar goes before the new one comes
        }
        let output = self.output;
        let begin = || (label, Progress::begin(label, output));
        &self.bar.get_or_insert_with(begin).1
    }
}

/// For clap: `KEY=VALUE`.
pub(crate) fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write it like `sizes.hidden=128`")?;
    Ok((key.to_owned(), value.to_owned()))
}
