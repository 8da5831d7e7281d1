//! `wherefore index`: vectors of labels and full text, for what is looked up by meaning.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use serde::Serialize;
use wherefore::index::{
    IndexOptions, IndexProgress, IndexReport, IndexStep, Part, PartReport, build,
};
use wherefore::method::Trained;
use wherefore::model::checkpoint::read_description;
use wherefore::model::encode;
use wherefore::model::scoring::TripleNetwork;
use wherefore::model::{distance_mlp, pna, qr_gat};
use wherefore::retrieve::{NetworkConfig, NetworkRetriever};
use wherefore_graph::{Adjacency, Service, ServiceConfig, Store, TrustedServices, index_labels};

use crate::args::Consent;
use crate::errors::{Exit, UserError};
use crate::open::{TOY, store, told};
use crate::output::{Output, shown};
use crate::progress::{Progress, Unit};

/// Make a graph searchable by meaning and by words
///
/// Writes vectors of its labels, and a full-text index, into the graph folder. When the graph
/// was loaded again, only new and changed labels are encoded. A build that was stopped goes on
/// where it was when the same command is given again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wherefore index movies
  wherefore index movies --encoder models/all-MiniLM-L6-v2 --triples")]
pub(crate) struct Index {
    /// A graph folder made by `wherefore load`, or `@world`
    pub(crate) graph: PathBuf,
    /// What turns texts into vectors: `static`, `hashing`, a model folder or an added model
    #[arg(long, value_name = "E", default_value = "static")]
    pub(crate) encoder: String,
    /// Also make a vector for each triple
    #[arg(long)]
    pub(crate) triples: bool,
    /// Leave the full-text index out
    #[arg(long)]
    pub(crate) no_text: bool,
    /// For a SPARQL service: the folder of its label index, by which it is then asked
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// For a SPARQL service: put the new label index into the place of the one that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// Instead, compute what this checkpoint needs of the graph whatever is asked
    #[arg(long, value_name = "CKPT", conflicts_with_all = ["triples", "no_text", "encoder"])]
    pub(crate) model: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

pub(crate) fn run(args: &Index, output: &Output) -> anyhow::Result<Exit> {
    let graph = args.graph.display();
    if let Some(config) = crate::open::service(&graph.to_string(), args.consent.trust())? {
        return labels(args, config, output);
    }
    if args.graph.as_os_str() == TOY {
        return Err(UserError {
            code: "built-in-graph",
            message: format!("the built-in graph `{TOY}` is held in memory and takes no index"),
            hint: "`@world` and graph folders can be indexed".into(),
        }
        .into());
    }
    let store = store(&args.graph)?;
    if let Some(model) = &args.model {
        return parts(&store, model, output);
    }
    let encoder = encode::open(&args.encoder)
        .map_err(wherefore::Error::from)
        .with_context(|| format!("cannot open the encoder `{}`", args.encoder))?;
    let options = IndexOptions {
        triples: args.triples,
        text: !args.no_text,
        ..IndexOptions::default()
    };
    let shown_step = Mutex::new(None::<((Part, IndexStep), Progress)>);
    let tell = |progress: IndexProgress| {
        let Ok(mut current) = shown_step.lock() else {
            return;
        };
        let step = (progress.part, progress.step);
        if !current.as_ref().is_some_and(|(shown, _)| *shown == step) {
            *current = None; // the old bar goes before the new one comes
            *current = Some((step, Progress::begin(label(step), output)));
        }
        if let Some((_, bar)) = current.as_ref() {
            bar.at(
                progress.done,
                Some(progress.total),
                Unit::Count(progress.part.name()),
            );
        }
    };
    let done = build(&store, &*encoder, &options, &tell);
    drop(shown_step);
    let report = done.with_context(|| format!("cannot index the graph `{graph}`"))?;
    if output.json {
        output.print_json(&Written {
            graph: graph.to_string(),
            report: &report,
        })?;
    } else {
        for part in &report.parts {
            output.note(part.part.name(), &summary(part));
        }
    }
    Ok(Exit::Done)
}

/// The label index of a service.
fn labels(args: &Index, config: ServiceConfig, output: &Output) -> anyhow::Result<Exit> {
    let Some(out) = &args.out else {
        return Err(UserError {
            code: "usage",
            message: "the label index of a service needs a folder".into(),
            hint: "name it with `--out FOLDER`".into(),
        }
        .into());
    };
    let url = config.url.clone();
    let bar = Progress::begin("streaming labels", output);
    let tell = |labels| bar.at(labels, None, Unit::Count("labels"));
    let report = index_labels(config, out, 1 << 30, args.replace, &tell, &|_| {})
        .with_context(|| format!("cannot index the service `{}`", told(&url)))?;
    drop(bar);
    // whoever made the folder knows what its file says
    let trusted = TrustedServices::of_user().and_then(|mut list| list.trust(out));
    if let Err(error) = trusted {
        output.note("note", &format!("{error}: `--trust` opens the folder"));
    }
    let bar = Progress::begin("counting classes and relations", output);
    let service = ServiceConfig::read(&out.join("service.toml")).and_then(Service::open)?;
    wherefore::read::count_schema(&service)
        .with_context(|| format!("cannot count what the service `{}` holds", told(&url)))?;
    let requests = report.requests + service.requests();
    drop(bar);
    let folder = out.display().to_string();
    if output.json {
        output.print_json(&serde_json::json!({
            "service": url,
            "folder": folder,
            "labels": report.labels,
            "entities": report.entities,
            "relations": report.relations,
            "requests": requests,
            "bytes": report.bytes,
        }))?;
        return Ok(Exit::Done);
    }
    let human = |n: u64| indicatif::HumanCount(n).to_string();
    output.print(&format!(
        "{} {}: {} labels of {} entities, {} relations, {}\n{}\n",
        output.green("✓"),
        output.bold(&shown(&folder)),
        human(report.labels),
        human(report.entities),
        human(report.relations),
        indicatif::HumanBytes(report.bytes),
        output.dim(&format!("next: wherefore ask {folder} 'your question'")),
    ))?;
    Ok(Exit::Done)
}

/// What a checkpoint needs of the graph whatever is asked.
fn parts(store: &Store, model: &Path, output: &Output) -> anyhow::Result<Exit> {
    let description = read_description(model).map_err(wherefore::Error::from)?;
    let kind: Trained = description.method.parse()?;
    match kind {
        Trained::DistanceMlp => parts_of::<distance_mlp::Network>(store, model, output),
        Trained::Pna => parts_of::<pna::Network>(store, model, output),
        // what these need depends on relations alone, and is made for the first question
        Trained::Gnn2r
        | Trained::RelationPlan
        | Trained::Relations
        | Trained::Amar
        | Trained::Read => {
            if output.json {
                output.print_json(
                    &serde_json::json!({ "entities": 0, "relations": 0, "bytes": 0 }),
                )?;
            } else {
                let why = "what depends on relations alone is computed with the first question";
                output.note("parts", &format!("`{}` needs none: {why}", kind.name()));
            }
            Ok(Exit::Done)
        }
        Trained::QrGat => parts_of::<qr_gat::Network>(store, model, output),
    }
}

fn parts_of<N: TripleNetwork>(
    store: &Store,
    model: &Path,
    output: &Output,
) -> anyhow::Result<Exit> {
    let config = NetworkConfig {
        model: model.to_owned(),
        ..NetworkConfig::default()
    };
    let retriever = NetworkRetriever::<N>::new(&config)
        .with_context(|| format!("cannot use the checkpoint `{}`", model.display()))?;
    let bar = Progress::begin("computing parts", output);
    let total = store.entity_bound() as u64;
    let report = retriever.index(store, &mut |done| {
        bar.at(done as u64, Some(total), Unit::Count("entities"));
    })?;
    drop(bar);
    if output.json {
        output.print_json(&report)?;
    } else {
        let human = |n: usize| indicatif::HumanCount(n as u64).to_string();
        output.note(
            "parts",
            &format!(
                "{} entities, {} relations, {}",
                human(report.entities),
                human(report.relations),
                indicatif::HumanBytes(report.bytes)
            ),
        );
    }
    Ok(Exit::Done)
}

/// The report as JSON; `checksum` is the graph's.
#[derive(Serialize)]
struct Written<'a> {
    graph: String,
    #[serde(flatten)]
    report: &'a IndexReport,
}

fn label((part, step): (Part, IndexStep)) -> &'static str {
    match (part, step) {
        (Part::Entities, IndexStep::Reading) => "reading entities",
        (Part::Relations, IndexStep::Reading) => "reading relations",
        (_, IndexStep::Reading) => "reading triples",
        (Part::Entities, IndexStep::Encoding) => "encoding entities",
        (Part::Relations, IndexStep::Encoding) => "encoding relations",
        (_, IndexStep::Encoding) => "encoding triples",
        (_, IndexStep::Linking) => "linking near vectors",
        (_, IndexStep::Writing) => "writing full text",
    }
}

/// One line on a part that was built, or that needed nothing.
fn summary(part: &PartReport) -> String {
    let human = |n: u64| indicatif::HumanCount(n).to_string();
    let mut text = described(part);
    if !part.built {
        return text + "; up to date";
    }
    let made = match part.part {
        Part::Text => "written",
        _ => "encoded",
    };
    text += &format!("; {} {made}", human(part.encoded));
    if part.kept > 0 {
        text += &format!(", {} kept", human(part.kept));
    }
    if part.resumed > 0 {
        text += &format!(", {} were done before", human(part.resumed));
    }
    text + &format!(", {:.1} s", part.seconds)
}

/// What a part holds: `112,352 vectors of 256 numbers by static, linked; 57.00 MiB`.
pub(crate) fn described(part: &PartReport) -> String {
    let human = |n: u64| indicatif::HumanCount(n).to_string();
    let what = match (&part.encoder, part.dim) {
        (Some(encoder), Some(dim)) => format!(
            "{} vectors of {dim} numbers by {}{}",
            human(part.vectors),
            shown(encoder),
            if part.linked { ", linked" } else { "" }
        ),
        _ => format!("{} documents", human(part.vectors)),
    };
    format!("{what}, {}", indicatif::HumanBytes(part.bytes))
}
