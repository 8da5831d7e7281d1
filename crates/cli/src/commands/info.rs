//! `wherefore info`: what a graph holds.

use anyhow::Context;
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use std::path::PathBuf;
use wherefore::index::{self, ListedPart};
use wherefore::schema::{Overview, Side, overview};
use wherefore_graph::{
    Adjacency, Counts, EntityId, Graph, Pending, RelationId, Store, Verification,
};

use crate::args::Consent;
use crate::errors::Exit;
use crate::open::open;
use crate::output::{Output, shown};
use crate::progress::{Progress, Unit};

/// Show what a graph holds: counts, relations with examples, degrees, sizes
#[derive(Debug, clap::Args)]
pub(crate) struct Info {
    /// A graph folder made by `wherefore load`, or a built-in sample: `@world`, `@toy`
    pub(crate) graph: PathBuf,
    /// Show instead what it speaks of: its classes, and which relations join them; of a SPARQL
    /// service too
    #[arg(long, conflicts_with = "check")]
    pub(crate) schema: bool,
    /// Read all files, the change log and the index, and verify their checksums
    #[arg(long)]
    pub(crate) check: bool,
    /// Show this many relations, the most frequent first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) relations: usize,
    /// Show all relations
    #[arg(long, conflicts_with = "relations")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

pub(crate) fn run(args: &Info, output: &Output) -> anyhow::Result<Exit> {
    if args.schema {
        return schema(args, output);
    }
    let store = crate::open::store(&args.graph)?;
    if args.check {
        let bar = Progress::begin("verifying checksums", output);
        bar.at(0, Some(store.bytes()), Unit::Bytes);
        store
            .check()
            .with_context(|| format!("the graph `{}` is damaged", args.graph.display()))?;
        for part in index::check(&store)
            .with_context(|| format!("the index of `{}` is damaged", args.graph.display()))?
        {
            let text = format!(
                "the {part} index is of a version that wrote no checksums, and was not verified"
            );
            output.note("note", &text);
        }
    }
    let report = Report::new(&store, args, output)?;
    if output.json {
        output.print_json(&report)?;
    } else {
        output.print(&report.written(args, output))?;
    }
    Ok(Exit::Done)
}

/// What the graph speaks of.
fn schema(args: &Info, output: &Output) -> anyhow::Result<Exit> {
    let graph = open(&args.graph.to_string_lossy(), args.consent.trust())?;
    let bar = Progress::begin("reading classes and relations", output);
    let overview = overview(graph.as_ref())?;
    drop(bar);
    if output.json {
        output.print_json(&overview)?;
    } else {
        output.print(&described(&overview, args, output))?;
    }
    Ok(Exit::Done)
}

fn described(overview: &Overview, args: &Info, output: &Output) -> String {
    let human = |n: usize| HumanCount(n as u64).to_string();
    let most = if args.all { usize::MAX } else { args.relations };
    let more = |left: usize| match left {
        0 => String::new(),
        left => {
            let line =
                format!("and {left} more: `--all` shows up to 500 classes and 2,000 relations");
            format!("  {}\n", output.dim(&line))
        }
    };
    let mut text = format!("{}\n", output.bold("Classes"));
    if overview.classes.is_empty() {
        text += &format!(
            "  {}\n",
            output.dim("the graph does not say what its things are")
        );
    }
    for class in overview.classes.iter().take(most) {
        let names: Vec<String> = (class.examples.iter())
            .map(|thing| cut(&thing.name, 30))
            .collect();
        text += &format!(
            "  {:>12}  {}  {}\n",
            human(class.count),
            cut(&class.name, 50),
            output.dim(&names.join(", "))
        );
    }
    text += &more(overview.classes.len().saturating_sub(most) + overview.left_out[0]);
    text += &format!("\n{}\n", output.bold("Relations"));
    for relation in overview.relations.iter().take(most) {
        let side = |sides: &[Side]| {
            let names: Vec<String> = sides.iter().take(3).map(|s| cut(&s.class, 30)).collect();
            names.join(", ")
        };
        let (from, mut to) = (side(&relation.from), side(&relation.to));
        if to.is_empty() && relation.kind != "thing" {
            to = format!("({})", relation.kind);
        }
        text += &format!(
            "  {:>12}  {}  {}\n",
            human(relation.count),
            cut(&relation.name, 50),
            output.dim(format!("{from} → {to}").trim())
        );
    }
    text + &more(overview.relations.len().saturating_sub(most) + overview.left_out[1])
}

#[derive(Serialize)]
struct Report<'a> {
    graph: String,
    checksum: &'a str,
    written_by: &'a str,
    #[serde(flatten)]
    counts: &'a Counts,
    bytes: u64,
    files: Vec<(&'a str, u64)>,
    /// Entities by degree: of degree 0, 1, 2 to 3, 4 to 7, …
    degrees: Vec<DegreeBin>,
    highest_degree: Option<(String, usize)>,
    relations: Vec<RelationReport>,
    /// What `wherefore index` made.
    indexes: Vec<ListedPart>,
    /// What the change log holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<Pending>,
    /// How its files are held against their checksums while they are read.
    verification: Verification,
    /// Whether all checksums were verified.
    checked: bool,
}

#[derive(Serialize)]
struct DegreeBin {
    from: usize,
    to: usize,
    entities: usize,
}

#[derive(Serialize)]
struct RelationReport {
    relation: String,
    id: String,
    triples: usize,
    example: [String; 2],
}

impl<'a> Report<'a> {
    fn new(store: &'a Store, args: &Info, output: &Output) -> anyhow::Result<Self> {
        let bar = Progress::begin("counting degrees", output);
        let mut bins = [0usize; 33];
        let mut highest: Option<(EntityId, usize)> = None;
        for id in 0..store.entity_bound() as u32 {
            let degree = store.degree(EntityId(id))?;
            bins[(usize::BITS - degree.leading_zeros()).min(32) as usize] += 1;
            if highest.is_none_or(|(_, most)| degree > most) {
                highest = Some((EntityId(id), degree));
            }
            if id % 100_000 == 0 {
                bar.at(
                    id.into(),
                    Some(store.entity_bound() as u64),
                    Unit::Count("entities"),
                );
            }
        }
        drop(bar);
        let last = bins.iter().rposition(|&n| n > 0).unwrap_or(0);
        let degrees = (0..=last)
            .map(|i| DegreeBin {
                from: if i == 0 { 0 } else { 1 << (i - 1) },
                to: if i == 0 { 0 } else { (1usize << i) - 1 },
                entities: bins[i],
            })
            .collect();
        let mut by_count = Vec::with_capacity(store.relation_bound());
        for id in 0..store.relation_bound() as u32 {
            let count = store.relation_count(RelationId(id))?;
            // a relation whose triples were all removed is none
            if count > 0 {
                by_count.push((count, RelationId(id)));
            }
        }
        by_count.sort_by_key(|&(count, id)| (std::cmp::Reverse(count), id));
        let shown = if args.all {
            by_count.len()
        } else {
            args.relations
        };
        let mut relations = Vec::new();
        for &(triples, id) in by_count.iter().take(shown) {
            // the first triple with named ends says more than the very first
            let mut example = None;
            for triple in store.triples_by_relation(id)?.take(50) {
                let triple = triple?;
                let named = store.is_named(triple.head)? && store.is_named(triple.tail)?;
                if named || example.is_none() {
                    example = Some(triple);
                }
                if named {
                    break;
                }
            }
            let label = |e: EntityId| store.entity_label(e).map(std::borrow::Cow::into_owned);
            let example = match example {
                Some(t) => [label(t.head)?, label(t.tail)?],
                None => [String::new(), String::new()],
            };
            relations.push(RelationReport {
                relation: store.relation_label(id)?.into_owned(),
                id: store.relation_term(id)?.to_string(),
                triples,
                example,
            });
        }
        Ok(Self {
            graph: args.graph.display().to_string(),
            checksum: store.checksum(),
            written_by: store.written_by(),
            counts: store.counts(),
            bytes: store.bytes(),
            files: store.files().collect(),
            degrees,
            highest_degree: match highest {
                Some((entity, degree)) => Some((store.entity_label(entity)?.into_owned(), degree)),
                None => None,
            },
            relations,
            indexes: index::list(store)?,
            pending: store.pending(),
            verification: store.verification(),
            checked: args.check,
        })
    }

    fn written(&self, args: &Info, output: &Output) -> String {
        let human = |n: u64| HumanCount(n).to_string();
        let counts = self.counts;
        let mut text = format!("{}\n", output.bold(&shown(&self.graph)));
        let mut line = |name: &str, value: String| text += &format!("  {name:<15} {value}\n");
        line("triples", human(counts.triples));
        let naming = match counts.naming {
            0 => String::new(),
            n => format!(", {} of the triples only give names", human(n)),
        };
        line(
            "entities",
            format!(
                "{} ({} literals, {} blank nodes, {} without a name{naming})",
                human(counts.entities),
                human(counts.literals),
                human(counts.blanks),
                human(counts.unnamed)
            ),
        );
        line("relations", human(counts.relations));
        line(
            "on disk",
            format!(
                "{}, {:.1} bytes a triple",
                HumanBytes(self.bytes),
                self.bytes as f64 / counts.triples.max(1) as f64
            ),
        );
        line(
            "checksum",
            self.checksum.to_owned()
                + match (self.checked, self.verification) {
                    (true, _) => ", all files verified",
                    (false, Verification::WhenOpened) => "",
                    (false, Verification::EachBlock) => ", each block verified when it is read",
                    (false, Verification::OnlyWhenAsked) => {
                        ", of a version without checksums of blocks: verified by `--check` only"
                    }
                },
        );
        if let Some((name, degree)) = &self.highest_degree {
            line(
                "largest hub",
                format!("{} with {} triples", cut(name, 40), human(*degree as u64)),
            );
        }
        if let Some(pending) = &self.pending {
            let mut value = format!(
                "{} added, {} removed since, {}",
                human(pending.added),
                human(pending.removed),
                HumanBytes(pending.bytes)
            );
            if let Some(cut) = pending.cut {
                value += &format!(
                    "; {} bytes from byte {} on were never acknowledged and are not used",
                    cut.bytes, cut.at
                );
            }
            line("changes", value);
        }
        for listed in &self.indexes {
            let part = &listed.report;
            let stale = if listed.current {
                String::new()
            } else {
                let graph = args.graph.display();
                let encoder = part.encoder.as_ref();
                let encoder = encoder.map_or(String::new(), |e| format!(" --encoder {e}"));
                format!("; of another graph, mended by `wherefore index {graph}{encoder}`")
            };
            let value = super::index::described(part) + &stale;
            line(&format!("{} index", part.part), value);
        }
        text += &format!("\n{}\n", output.bold("Degrees"));
        let most = self
            .degrees
            .iter()
            .map(|d| d.entities)
            .max()
            .unwrap_or(1)
            .max(1);
        for bin in &self.degrees {
            let range = if bin.from == bin.to {
                bin.from.to_string()
            } else {
                format!("{}–{}", bin.from, bin.to)
            };
            let width = (bin.entities * 40).div_ceil(most);
            text += &format!(
                "  {range:>15} {:<40} {}\n",
                "█".repeat(width),
                human(bin.entities as u64)
            );
        }
        text += &format!("\n{}\n", output.bold("Relations"));
        for r in &self.relations {
            text += &format!(
                "  {:>12}  {}  {}\n",
                human(r.triples as u64),
                cut(&r.relation, 50),
                output.dim(&format!(
                    "{} → {}",
                    cut(&r.example[0], 40),
                    cut(&r.example[1], 40)
                )),
            );
        }
        let left = counts.relations as usize - self.relations.len();
        if left > 0 {
            let more = format!(
                "and {left} more: `wherefore info {} --all`",
                args.graph.display()
            );
            text += &format!("  {}\n", output.dim(&more));
        }
        text
    }
}

/// A label on one line, not too long.
fn cut(text: &str, most: usize) -> String {
    let text = shown(text);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
