//! Loading: from files in any of thirteen formats to a graph folder.
//!
//! One thread reads and unpacks; as many workers as there are cores parse and number terms, each
//! within its share of the memory, and spill sorted chunks to disk when it is full; then the
//! chunks' dictionaries are merged, the triples renumbered and laid out both ways. The result
//! depends only on the set of triples: the same input in any order gives the same bytes.

mod assemble;
pub(crate) mod blocks;
mod bounds;
pub(crate) mod chunk;
mod csv;
pub(crate) mod fields;
mod format;
mod json;
pub(crate) mod naming;
mod options;
pub(crate) mod output;
pub(crate) mod rdf;
mod read;
pub(crate) mod record;
pub(crate) mod source;
mod sqlite;
pub(crate) mod strings;
pub(crate) mod table;
mod wide;
mod xlsx;

use std::path::Path;
use std::time::{Duration, Instant};

use oxrdfio::{RdfFormat, RdfParser};

use crate::error::{Error, Result};
use crate::file;
use crate::graph::RelationId;
use crate::key;
use crate::manifest::{Counts, FORMAT, Manifest};
use crate::shape::Shape;
use crate::sums::Sums;

pub use format::Format;
pub use options::{LEAST_MEMORY, LoadOptions, LoadProgress, LoadStep};
pub use read::Mistake;
pub use source::Input;
pub use table::TableOptions;
pub use wide::Wide;

/// The result of a load.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// The number of triples, entities and so on.
    pub counts: Counts,
    /// The first ten malformed lines.
    pub mistakes: Vec<Mistake>,
    /// Notes for the user, such as label predicates that do not occur.
    pub notes: Vec<String>,
    /// Bytes of the graph on disk.
    pub bytes: u64,
    /// Number of sorted chunks that were spilled to disk.
    pub spilled: usize,
    /// How long it took.
    pub time: Duration,
}

/// Loads files into a graph folder.
///
/// The load is atomic: an existing graph stays intact until the new one replaces it in one step,
/// even if the process is killed.
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
    let output = output::OutputFolder::prepare(out, options.replace)?;
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
    output: output::OutputFolder,
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
    let read::ParsedInputs {
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
        notes.push("the input contains no triples".into());
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

/// Settings and counts of a graph that do not come from its triples.
pub(crate) struct Origin<'a> {
    pub(crate) labels: &'a [String],
    pub(crate) aliases: &'a [String],
    pub(crate) language: &'a str,
    pub(crate) malformed: u64,
    /// Duplicates that were dropped before.
    pub(crate) duplicates: u64,
}

/// A graph that was written.
pub(crate) struct Built {
    pub(crate) counts: Counts,
    pub(crate) notes: Vec<String>,
    pub(crate) bytes: u64,
}

/// Builds a graph from sorted chunks and publishes it. `before` is called with the folder of the
/// new files and their checksum just before that, while no changes can be written.
pub(crate) fn build(
    output: output::OutputFolder,
    mut chunks: Vec<chunk::SortedChunk>,
    origin: Origin<'_>,
    memory: usize,
    progress: &(dyn Fn(LoadProgress) + Sync),
    before: impl FnOnce(&Path, &str) -> Result<()>,
) -> Result<Built> {
    let parsed: u64 = chunks.iter().map(|c| c.triples.len() as u64).sum();
    let report = |step, done, total| {
        progress(LoadProgress {
            step,
            done,
            total,
            triples: parsed,
        });
    };

    report(LoadStep::Merging, 0, None);
    let data = output.data();
    let merged = assemble::merge_terms(data, &mut chunks)?;
    let mut files = merged.files;
    let sorting = |done| report(LoadStep::Sorting, done, Some(2 * parsed));
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
    let mut twins = file::FileWriter::create(&data.join("relation-entities"))?;
    twins.write(bytemuck::cast_slice(&merged.relation_entities))?;
    files.push(twins.finish()?);

    report(LoadStep::Naming, 0, None);
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
    for file::WrittenFile { info, sums: blocks } in files {
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
        let named = shape.relations.find(&fields::entity_key(name))?;
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
        "it has no valid lines; {malformed} are malformed, the first is line {}: {}",
        first.line, first.reason
    );
    let hint = if first.reason.starts_with(record::NOT_UTF8) {
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
        "name the format with `--format nt|nq|ttl|trig|rdf|jsonld|tsv|csv|pipe|jsonl|json|sqlite|xlsx`; where \
         each row is one thing and its columns are relations, add `--wide`"
    };
    Error::BadInput {
        path: inputs.first().map(Input::path).unwrap_or_default(),
        reason,
        hint: Some(hint.into()),
    }
}
