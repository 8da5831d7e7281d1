//! The sample graphs that are compiled in, unpacked once into the user's cache folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use wherefore_graph::{Input, LoadOptions, Store, load, private, toy};
use wherefore_model::models::user_cache;

/// What it is called where a graph is asked for.
pub(crate) const NAME: &str = "@world";

/// Questions that the page offers, one of each kind, from `data/sample/dev.jsonl`.
pub(crate) const EXAMPLES: [&str; 5] = [
    "Which rivers flow through Hungary?",
    "What is the capital of the country where Lake Balaton lies?",
    "Which countries are members of both the G20 and ASEAN?",
    "How many mountains of the Alps are in Italy?",
    "What is the largest lake in Africa?",
];

/// The graph as Turtle, packed; `data/sample` says what it is made from.
const PACKED: &[u8] = include_bytes!("../../../data/sample/world.ttl.xz");

/// A graph that is compiled in.
struct Sample<'a> {
    /// The name of a file that would hold it.
    file: &'a str,
    bytes: &'a [u8],
}

const WORLD: Sample<'static> = Sample {
    file: "world.ttl.xz",
    bytes: PACKED,
};

/// The graph folder of `@world`; made on first use.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    folder_of(&WORLD)
}

/// The graph folder of `@toy`, for what reads folders only; made on first use.
pub(crate) fn toy_folder() -> anyhow::Result<PathBuf> {
    let lines: Vec<String> = (toy::FACTS.iter())
        .map(|(head, relation, tail)| format!("{head}\t{relation}\t{tail}\n"))
        .collect();
    folder_of(&Sample {
        file: "toy.tsv",
        bytes: lines.concat().as_bytes(),
    })
}

fn folder_of(sample: &Sample<'_>) -> anyhow::Result<PathBuf> {
    unpacked(&user_cache().join("wherefore-samples"), sample).or_else(|first| {
        // nowhere to keep it: a place that is there for this run
        let own = std::env::temp_dir().join(format!("wherefore-samples-{}", user()));
        match is_ours(&own) {
            true => unpacked(&own, sample).map_err(|_| first),
            // somebody else made it, and may have put another graph there
            false => Err(first),
        }
    })
}

/// Whether a folder in a place that all share is not there yet, or was made by us for us alone.
fn is_ours(folder: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let Ok(found) = fs::symlink_metadata(folder) else {
            return true;
        };
        // where the system does not say who we are, a folder that we can enter is ours
        let me = fs::metadata("/proc/self");
        let mine = me.map_or_else(|_| true, |me| me.uid() == found.uid());
        found.is_dir() && found.mode() & 0o077 == 0 && mine
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        true
    }
}

/// The graph in this folder of samples; a damaged or half-made one is made again.
fn unpacked(samples: &Path, sample: &Sample<'_>) -> anyhow::Result<PathBuf> {
    // another graph or another program has another name
    let sum = crc(sample.bytes);
    let (name, ending) = sample.file.split_once('.').unwrap_or((sample.file, ""));
    let folder = samples.join(format!("{name}-{}-{sum:08x}", env!("CARGO_PKG_VERSION")));
    if Store::open(&folder).is_ok() {
        return Ok(folder);
    }
    private::create_folder(samples)
        .with_context(|| format!("cannot make the folder `{}`", samples.display()))?;
    let source = samples.join(format!("{name}-{}.{ending}", std::process::id()));
    fs::write(&source, sample.bytes)
        .with_context(|| format!("cannot write `{}`", source.display()))?;
    let options = LoadOptions {
        replace: true,
        memory: 64 << 20,
        ..LoadOptions::default()
    };
    let made = load(&[Input::File(source.clone())], &folder, &options, &|_| {});
    // nothing is lost if it stays
    let _ = fs::remove_file(&source);
    match made {
        Ok(_) => Ok(folder),
        // another program may have made it in the meantime
        Err(_) if Store::open(&folder).is_ok() => Ok(folder),
        Err(error) => Err(error).context("cannot unpack the sample graph"),
    }
}

/// CRC-32 as in zip: tells one version of the sample from another.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |mut sum, &byte| {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                (sum >> 1) ^ 0xedb8_8320
            } else {
                sum >> 1
            };
        }
        sum
    })
}

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "anyone".into())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use wherefore_graph::{Adjacency, EntityId, Graph, NameMatch, RelationId};

    use super::*;

    #[test]
    fn crc_is_the_usual_one() {
        // the check value of CRC-32/ISO-HDLC
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
    }

    #[cfg(unix)]
    #[test]
    fn samples_are_unpacked_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let samples = place.path().join("cache/samples");
        assert!(is_ours(&samples));
        private::create_folder(&samples).unwrap();
        for folder in [&samples, &place.path().join("cache")] {
            let mode = fs::metadata(folder).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        assert!(is_ours(&samples));
        fs::set_permissions(&samples, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_ours(&samples));
        let link = place.path().join("link");
        std::os::unix::fs::symlink(place.path().join("cache"), &link).unwrap();
        assert!(!is_ours(&link));
    }

    #[test]
    fn it_is_unpacked_once_and_mended_when_damaged() {
        let samples = tempfile::tempdir().unwrap();
        let folder = unpacked(samples.path(), &WORLD).unwrap();
        let written = fs::metadata(folder.join("graph.json")).unwrap().modified();
        assert_eq!(unpacked(samples.path(), &WORLD).unwrap(), folder);
        let again = fs::metadata(folder.join("graph.json")).unwrap().modified();
        assert_eq!(written.unwrap(), again.unwrap());
        fs::write(folder.join("graph.json"), "{").unwrap();
        assert_eq!(unpacked(samples.path(), &WORLD).unwrap(), folder);
        assert!(Store::open(&folder).is_ok());
        assert_eq!(fs::read_dir(samples.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_sample_holds_together() {
        let samples = tempfile::tempdir().unwrap();
        let store = Store::open(unpacked(samples.path(), &WORLD).unwrap()).unwrap();
        let relation = |name: &str| store.relation_named(name).unwrap().unwrap();
        let label = |e: EntityId| store.entity_label(e).unwrap().into_owned();
        let named = |name: &str| store.entities_named(name, NameMatch::Exact).unwrap()[0];
        let (borders, kind) = (relation("borders"), relation("type"));
        let mut triples = 0;
        let mut dangling = Vec::new();
        let mut seen: HashSet<RelationId> = HashSet::new();
        for id in 0..store.entity_bound() {
            let entity = EntityId(u32::try_from(id).unwrap());
            let edges = store.outgoing(entity).unwrap();
            triples += edges.len();
            for edge in edges.iter() {
                seen.insert(edge.relation);
                if edge.relation == borders {
                    let back = wherefore_graph::Triple {
                        head: edge.entity,
                        relation: borders,
                        tail: entity,
                    };
                    assert!(store.contains(back).unwrap(), "{}", label(entity));
                }
                // what is an IRI has a name of its own
                let term = store.entity_term(edge.entity).unwrap();
                if matches!(term, wherefore_graph::Term::Iri(_))
                    && store.outgoing(edge.entity).unwrap().is_empty()
                {
                    dangling.push(label(edge.entity));
                }
            }
        }
        assert!((20_000..=60_000).contains(&triples), "{triples}");
        assert!(dangling.is_empty(), "{dangling:?}");
        let countries = store.incoming(named("country")).unwrap();
        let countries = countries.iter().filter(|e| e.relation == kind);
        assert_eq!(countries.count(), 197);
        let number = |name: &str, by: &str| -> f64 {
            let edges = store.outgoing(named(name)).unwrap();
            let edge = edges.iter().find(|e| e.relation == relation(by)).unwrap();
            label(edge.entity).parse().unwrap()
        };
        assert_eq!(number("Mount Everest", "elevation"), 8849.0);
        assert!((8e7..9e7).contains(&number("Germany", "population")));
        assert!(PACKED.len() < 2_000_000);
        assert!(seen.len() >= 30);
    }
}
