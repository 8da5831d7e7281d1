//! A graph folder with bytes flipped, files cut and files lengthened, as the input says: whatever
//! is answered from it is what was loaded, or it is an error. With an odd first byte the checksums
//! are made to fit afterwards, as somebody would who wants to do harm: then it may answer what it
//! likes, but must not crash.
#![no_main]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::Value;
use tempfile::TempDir;
use wherefore_fuzz::{scratch, small_graph};
use wherefore_graph::sparql::{self, ResultFormat, SparqlOptions};
use wherefore_graph::{
    Action, Adjacency, ChangeSet, Format, Graph, NameMatch, Result, Store, Sums,
};

/// The folder, its files as they should be, and what is answered from them.
struct Whole {
    _scratch: TempDir,
    graph: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
    answers: Vec<String>,
}

static WHOLE: LazyLock<Whole> = LazyLock::new(|| {
    let scratch = scratch();
    let graph = small_graph(&scratch);
    for (text, action) in [
        (
            "<http://e/cid> <http://e/lives> <http://e/graz> .\n",
            Action::Add,
        ),
        (
            "<http://e/bob> <http://e/knows> <http://e/cid> .\n",
            Action::Remove,
        ),
    ] {
        let changes = ChangeSet::parse(text, action, Format::NTriples, false);
        let changes = changes.expect("the changes are well-formed");
        let store = Store::open(&graph).expect("a whole graph is opened");
        store.change(&changes).expect("a whole graph is changed");
    }
    let mut files = BTreeMap::new();
    read_all(&graph, &mut files);
    let mut answers = Vec::new();
    ask(&graph, &mut answers).expect("a whole graph answers");
    Whole {
        _scratch: scratch,
        graph,
        files,
        answers,
    }
});

fn read_all(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder is read").path();
        match path.is_dir() {
            true => read_all(&path, files),
            false => {
                let bytes = std::fs::read(&path).expect("the file is read");
                files.insert(path, bytes);
            }
        }
    }
}

/// Reads everything that can be read, until the first error.
fn ask(graph: &Path, answers: &mut Vec<String>) -> Result<()> {
    let store = Store::open(graph)?;
    if let Some(cut) = store.pending().and_then(|pending| pending.cut) {
        // it says itself that something is missing
        answers.push(format!("{cut:?}"));
        return Ok(());
    }
    answers.push(format!("{:?}", store.counts()));
    for triple in store.triples() {
        let triple = triple?;
        let (head, tail) = (
            store.entity_term(triple.head)?,
            store.entity_term(triple.tail)?,
        );
        let relation = store.relation_term(triple.relation)?;
        answers.push(format!("{head:?} {relation:?} {tail:?}"));
        for entity in [triple.head, triple.tail] {
            answers.push(store.entity_label(entity)?.into_owned());
            answers.push(format!("{:?}", store.outgoing(entity)?));
            answers.push(format!("{:?}", store.incoming(entity)?));
        }
        answers.push(format!("{:?}", store.triple_number(triple)?));
        answers.push(store.relation_label(triple.relation)?.into_owned());
    }
    for name in ["Ann", "Robert", "bob", "http://e/graz", "none"] {
        answers.push(format!(
            "{:?}",
            store.entities_named(name, NameMatch::Exact)?
        ));
        answers.push(format!("{:?}", store.entities_with_prefix(name, 5)?));
        answers.push(format!("{:?}", store.relation_named(name)?));
    }
    for query in [
        "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o",
        "SELECT * { ?s <http://e/knows>+ ?o } ORDER BY ?s ?o",
    ] {
        let mut out = Vec::new();
        let format = ResultFormat::Csv;
        sparql::write(&store, query, &SparqlOptions::default(), format, &mut out)?;
        answers.push(String::from_utf8_lossy(&out).into_owned());
    }
    Ok(())
}

/// Changes files as five bytes at a time say; those that were changed come back.
fn damage(whole: &Whole, mut orders: &[u8]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut changed = BTreeMap::new();
    while let [which, what, high, low, value, rest @ ..] = orders {
        orders = rest;
        let which = usize::from(*which) % whole.files.len();
        let (path, bytes) = whole.files.iter().nth(which).expect("it is one of them");
        let bytes = changed.entry(path.clone()).or_insert_with(|| bytes.clone());
        let place = usize::from(u16::from_be_bytes([*high, *low]));
        let place = place.checked_rem(bytes.len()).unwrap_or(0);
        match what % 5 {
            0 if !bytes.is_empty() => bytes[place] ^= (*value).max(1),
            1 if !bytes.is_empty() => bytes[place] = *value,
            2 => bytes.truncate(place),
            3 => bytes.insert(place, *value),
            4 => bytes.extend(std::iter::repeat_n(*value, place)),
            _ => {}
        }
    }
    changed.retain(|path, bytes| whole.files[path] != *bytes);
    changed
}

/// Makes all checksums fit to the files as they are.
fn forge(graph: &Path) -> Option<()> {
    let path = graph.join("graph.json");
    let envelope: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    let mut manifest = envelope.get("manifest")?.clone();
    let data = graph.join(manifest.get("folder")?.as_str()?);
    let mut names = Vec::new();
    for file in manifest.get_mut("files")?.as_array_mut()? {
        let name = file.get("name")?.as_str()?.to_owned();
        let bytes = std::fs::read(data.join(&name)).ok()?;
        file["bytes"] = bytes.len().into();
        file["checksum"] = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes)).into();
        names.push(name);
    }
    let sums = Sums::compute(&data, names).ok()?.write(&data).ok()?;
    manifest["sums"] = serde_json::to_value(sums).ok()?;
    let text = serde_json::to_string(&manifest).ok()?;
    let checksum = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
    let envelope = serde_json::json!({ "manifest": manifest, "checksum": checksum });
    std::fs::write(&path, envelope.to_string()).ok()
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((first, orders)) = data.split_first() else {
        return Corpus::Reject;
    };
    let whole = &*WHOLE;
    let changed = damage(whole, orders);
    if changed.is_empty() {
        return Corpus::Reject;
    }
    for (path, bytes) in &changed {
        std::fs::write(path, bytes).expect("there is room");
    }
    let is_forged = first & 1 == 1;
    if is_forged {
        forge(&whole.graph);
    }
    let mut answers = Vec::new();
    let asked = ask(&whole.graph, &mut answers);
    for (path, bytes) in &whole.files {
        if is_forged || changed.contains_key(path) {
            std::fs::write(path, bytes).expect("there is room");
        }
    }
    if !is_forged && asked.is_ok() && !answers[0].contains("LogCut") {
        // not damaged where it matters: spaces in the manifest, say
        assert_eq!(answers, whole.answers);
    }
    Corpus::Keep
});
