//! Loading: from files in any of eleven formats to a graph folder.
//!
//! One thread reads and unpacks; as many workers as there are cores parse and number terms, each
//! within its share of the memory, and spill sorted chunks to disk when it is full; then the
//! chunks' dictionaries are merged, the triples renumbered and laid out both ways. The result
//! depends only on the set of triples: the same input in any order gives the same bytes.

mod assemble;
pub(crate) mod blocks;
mod bounds;
pub(crate) mod chunk;
pub(crate) mod file;
mod json;
pub(crate) mod naming;
pub(crate) mod output;
pub(crate) mod rdf;
mod read;
pub(crate) mod source;
pub(crate) mod strings;
pub(crate) mod table;
mod wide;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oxrdfio::{RdfFormat, RdfParser};

use crate::error::{Error, Result};
use crate::graph::RelationId;
use crate::key;
use crate::manifest::{Counts, FORMAT, Manifest};
use crate::shape::Shape;
use crate::sums::Sums;

pub use read::Mistake;
pub use source::{Format, Input};
pub use table::TableOptions;
pub use wide::Wide;

/// How to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// The inputs' format; told by their names or first lines if none is given.
    pub format: Option<Format>,
    /// How to read tables.
    pub table: TableOptions,
    /// Predicates that give labels, before the well-known ones.
    pub labels: Vec<String>,
    /// Predicates that give further names, beside the well-known ones.
    pub aliases: Vec<String>,
    /// Tables of (entity, name) that give labels.
    pub names: Vec<PathBuf>,
    /// The language in which labels are preferred.
    pub language: String,
    /// Bytes of memory to keep to, more or less.
    pub memory: usize,
    /// Number of workers; all cores if 0.
    pub threads: usize,
    /// How many malformed lines to pass over before giving up.
    pub max_errors: u64,
    /// Whether a graph that is there already may be replaced.
    pub replace: bool,
    /// What relative IRIs of documents are relative to, until a document says it itself.
    pub base: Option<String>,
    /// Bytes of text that an input may have when it is unpacked. A few bytes can unpack to very
    /// many; those who load files of strangers set it.
    pub max_text: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            format: None,
            table: TableOptions::default(),
            labels: Vec::new(),
            aliases: Vec::new(),
            names: Vec::new(),
            language: "en".into(),
            memory: 4 << 30,
            threads: 0,
            max_errors: u64::MAX,
            replace: false,
            base: None,
            max_text: u64::MAX,
        }
    }
}

/// What a load did.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// What the graph holds.
    pub counts: Counts,
    /// The first ten malformed lines.
    pub mistakes: Vec<Mistake>,
    /// Things worth telling: label predicates that do not occur, and the like.
    pub notes: Vec<String>,
    /// Bytes of the graph on disk.
    pub bytes: u64,
    /// How many sorted chunks went through the disk.
    pub spilled: usize,
    /// How long it took.
    pub time: Duration,
}

/// What a load is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    /// Reading and parsing; counted in bytes of the input.
    Reading,
    /// Merging dictionaries.
    Merging,
    /// Laying triples out; counted in triples, both ways.
    Sorting,
    /// Choosing labels and sorting names.
    Naming,
}

/// Told again and again while a load runs.
#[derive(Clone, Copy, Debug)]
pub struct LoadProgress {
    /// What is going on.
    pub step: LoadStep,
    /// How much of it is done.
    pub done: u64,
    /// Out of how much, where known.
    pub total: Option<u64>,
    /// Triples read so far.
    pub triples: u64,
}

/// The least memory that a load works with.
pub const LEAST_MEMORY: usize = 1 << 20;

/// Loads files into a graph folder.
///
/// Nothing counts until all is done: the graph that was there before stays whole until the new
/// one takes its place in one step, whenever the process is stopped.
///
/// ```no_run
/// use wherefore_graph::{Input, LoadOptions, Store, load};
/// let inputs = [Input::File("movies.nt.gz".into())];
/// let report = load(&inputs, "movies".as_ref(), &LoadOptions::default(), &|_| {})?;
/// println!("{} triples", report.counts.triples);
/// let store = Store::open("movies")?;
/// # Ok::<(), wherefore_graph::Error>(())
/// ```
pub fn load(
    inputs: &[Input],
    out: &Path,
    options: &LoadOptions,
    progress: &(dyn Fn(LoadProgress) + Sync),
) -> Result<LoadReport> {
    let start = Instant::now();
    if let Some(base) = &options.base
        && (RdfParser::from_format(RdfFormat::Turtle).with_base_iri(base)).is_err()
    {
        return Err(Error::BadSetting {
            name: "base",
            value: format!("`{base}`"),
            wanted: "an absolute IRI such as `http://example.org/`",
        });
    }
    let output = output::Output::prepare(out, options.replace)?;
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| Error::io("start threads for", out)(std::io::Error::other(e)))?;
    pool.install(|| fill(inputs, output, options, threads, progress, start))
}

fn fill(
    inputs: &[Input],
    output: output::Output,
    options: &LoadOptions,
    threads: usize,
    progress: &(dyn Fn(LoadProgress) + Sync),
    start: Instant,
) -> Result<LoadReport> {
    let memory = options.memory.max(LEAST_MEMORY);
    let read = read::read(
        inputs,
        options,
        threads,
        memory,
        output.temporary(),
        progress,
    )?;
    let read::Parsed {
        chunks,
        mistakes,
        malformed,
        spilled,
        mut notes,
        separator,
        is_rdf,
    } = read;
    let parsed: u64 = chunks.iter().map(|c| c.triples.len() as u64).sum();
    if parsed == 0 {
        if !is_rdf || malformed > 0 {
            let wide = options.table.wide.is_some();
            return Err(nothing_read(inputs, malformed, &mistakes, separator, wide));
        }
        notes.push("the input holds no triples".into());
    }
    let built = build(
        output,
        chunks,
        Origin {
            labels: &options.labels,
            aliases: &options.aliases,
            language: &options.language,
            malformed,
            duplicates: 0,
        },
        memory,
        progress,
        |_, _| Ok(()),
    )?;
    Ok(LoadReport {
        counts: built.counts,
        mistakes,
        notes: notes.into_iter().chain(built.notes).collect(),
        bytes: built.bytes,
        spilled,
        time: start.elapsed(),
    })
}

/// What a graph is told of where its triples come from.
pub(crate) struct Origin<'a> {
    pub(crate) labels: &'a [String],
    pub(crate) aliases: &'a [String],
    pub(crate) language: &'a str,
    pub(crate) malformed: u64,
    /// Duplicates that were met before.
    pub(crate) duplicates: u64,
}

/// A graph that was written.
pub(crate) struct Built {
    pub(crate) counts: Counts,
    pub(crate) notes: Vec<String>,
    pub(crate) bytes: u64,
}

/// From sorted chunks to a graph that is in its place. `before` is called with the folder of the
/// new files and their checksum while nobody can write changes, just before they take the place
/// of the old ones.
pub(crate) fn build(
    output: output::Output,
    mut chunks: Vec<chunk::SortedChunk>,
    origin: Origin<'_>,
    memory: usize,
    progress: &(dyn Fn(LoadProgress) + Sync),
    before: impl FnOnce(&Path, &str) -> Result<()>,
) -> Result<Built> {
    let parsed: u64 = chunks.iter().map(|c| c.triples.len() as u64).sum();
    let told = |step, done, total| {
        progress(LoadProgress {
            step,
            done,
            total,
            triples: parsed,
        });
    };

    told(LoadStep::Merging, 0, None);
    let data = output.data();
    let merged = assemble::merge_terms(data, &mut chunks)?;
    let mut files = merged.files;
    let sorting = |done| told(LoadStep::Sorting, done, Some(2 * parsed));
    sorting(0);
    let budget = memory / 2;
    let (outgoing, triples) =
        assemble::write_outgoing(data, merged.entities, &chunks, budget, &sorting)?;
    drop(chunks);
    files.extend(outgoing);
    files.extend(assemble::write_incoming(
        data,
        merged.entities,
        merged.relations,
        budget,
        &|done| sorting(parsed + done),
    )?);
    let mut twins = file::Output::create(&data.join("relation-entities"))?;
    twins.write(bytemuck::cast_slice(&merged.relation_entities))?;
    files.push(twins.finish()?);

    told(LoadStep::Naming, 0, None);
    let kinds = merged.kinds;
    let mut counts = Counts {
        triples,
        entities: merged.entities as u64,
        relations: merged.relations as u64,
        literals: u64::from(kinds[3] - kinds[2]),
        blanks: u64::from(kinds[1] - kinds[0]),
        duplicates: origin.duplicates + parsed - triples,
        malformed: origin.malformed,
        ..Counts::default()
    };
    let shape = Shape::open(data, &counts, kinds, None)?;
    let mut notes = Vec::new();
    let labels = naming_relations(&shape, origin.labels, &naming::LABELS, &mut notes)?;
    let mut aliases = naming_relations(&shape, origin.aliases, &naming::ALIASES, &mut notes)?;
    aliases.retain(|r| !labels.contains(r));
    let language = origin.language.to_ascii_lowercase();
    let named = naming::write_names(
        data,
        output.temporary(),
        &shape,
        &labels,
        &aliases,
        &language,
        memory / 2,
    )?;
    drop(shape);
    files.extend(named.files);
    counts.unnamed = named.unnamed;
    counts.naming = named.naming;
    let mut sums = Sums::default();
    let mut infos = Vec::with_capacity(files.len());
    for file::Written { info, sums: blocks } in files {
        sums.insert(&info.name, blocks);
        infos.push(info);
    }
    let mut files = infos;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    // not one of the files that make up the identity: the same triples are the same graph
    let sums = sums.write(data)?;

    let all: String = files
        .iter()
        .map(|f| format!("{} {}\n", f.name, f.checksum))
        .collect();
    let ids = |relations: &[RelationId]| relations.iter().map(|r| r.0).collect();
    let bytes = files.iter().map(|f| f.bytes).sum();
    let manifest = Manifest {
        format: FORMAT,
        written_by: env!("CARGO_PKG_VERSION").to_owned(),
        folder: String::new(),
        checksum: file::hex(xxhash_rust::xxh3::xxh3_64(all.as_bytes())),
        counts: counts.clone(),
        kinds,
        label_relations: ids(&labels),
        alias_relations: ids(&aliases),
        language,
        files,
        sums: Some(sums),
    };
    output.publish(manifest, before)?;
    Ok(Built {
        counts,
        notes,
        bytes,
    })
}

/// The relations among `given` and then `known` that occur in the graph.
fn naming_relations(
    shape: &Shape,
    given: &[String],
    known: &[&str],
    notes: &mut Vec<String>,
) -> Result<Vec<RelationId>> {
    let mut found = Vec::new();
    for name in given {
        let named = shape.relations.find(&table::entity_key(name))?;
        let named = match named {
            Some(id) => Some(id),
            None => {
                let mut iri = Vec::new();
                key::push_iri(&mut iri, name);
                shape.relations.find(&iri)?
            }
        };
        match named {
            Some(id) => found.push(RelationId(id as u32)),
            None => notes.push(format!("the predicate `{name}` does not occur")),
        }
    }
    for iri in known {
        let mut bytes = Vec::new();
        key::push_iri(&mut bytes, iri);
        if let Some(id) = shape.relations.find(&bytes)? {
            found.push(RelationId(id as u32));
        }
    }
    let mut distinct = Vec::new();
    found.retain(|r| {
        let fresh = !distinct.contains(r);
        distinct.push(*r);
        fresh
    });
    Ok(found)
}

fn nothing_read(
    inputs: &[Input],
    malformed: u64,
    mistakes: &[Mistake],
    separator: Option<(&'static str, &'static str)>,
    is_wide: bool,
) -> Error {
    let Some(first) = mistakes.first() else {
        return Error::Empty;
    };
    let mut reason = format!(
        "none of its lines is a triple; {malformed} malformed, the first: line {}: {}",
        first.line, first.reason
    );
    let hint = if first.reason.starts_with(read::NOT_UTF8) {
        "its text has another encoding; where that is Latin-1, \
         `iconv -f latin1 -t utf-8 FILE > NEW` writes it as UTF-8"
    } else if let Some((name, advice)) = separator {
        reason += &format!("; there are {name} between its fields");
        advice
    } else if is_wide {
        "each row is one thing; `--name-column` says which column names it"
    } else if first.reason.starts_with("no `") {
        "where each object is one thing and its names are relations, add `--wide`"
    } else {
        "name the format with `--format nt|nq|ttl|trig|rdf|jsonld|tsv|csv|pipe|jsonl|json`; where \
         each row is one thing and its columns are relations, add `--wide`"
    };
    Error::BadInput {
        path: inputs.first().map(Input::path).unwrap_or_default(),
        reason,
        hint: Some(hint.into()),
    }
}
