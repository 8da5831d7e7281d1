//! What the targets share: a folder to work in, and a small graph on disk.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wherefore_graph::{Format, Input, LoadOptions, load};

/// A folder that is gone when the target ends. It is in memory where the system has such a place:
/// thousands of stores are written to it each minute.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => TempDir::new_in(memory),
        false => TempDir::new(),
    };
    made.expect("there is room for a folder")
}

/// Triples of every kind: names, IRIs, blank nodes, numbers, dates, languages.
pub const TRIPLES: &str = r#"<http://e/ann> <http://www.w3.org/2000/01/rdf-schema#label> "Ann"@en .
<http://e/ann> <http://e/born> "1970-01-02"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://e/ann> <http://e/knows> <http://e/bob> .
<http://e/ann> <http://e/lives> _:house .
_:house <http://e/in> <http://e/graz> .
_:house <http://e/rooms> "4"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://e/bob> <http://www.w3.org/2000/01/rdf-schema#label> "Bob" .
<http://e/bob> <http://www.w3.org/2004/02/skos/core#altLabel> "Robert" .
<http://e/bob> <http://e/knows> <http://e/cid> .
<http://e/cid> <http://e/height> "1.8"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<http://e/cid> <http://e/knows> <http://e/ann> .
<http://e/graz> <http://www.w3.org/2000/01/rdf-schema#label> "Graz"@de .
"#;

/// Loads [`TRIPLES`] into a folder inside `scratch`.
pub fn small_graph(scratch: &TempDir) -> PathBuf {
    let (file, graph) = (
        scratch.path().join("small.nt"),
        scratch.path().join("graph"),
    );
    std::fs::write(&file, TRIPLES).expect("there is room for a file");
    let options = LoadOptions {
        format: Some(Format::NTriples),
        threads: 1,
        ..LoadOptions::default()
    };
    load(&[Input::File(file)], &graph, &options, &|_| {}).expect("the triples are well-formed");
    graph
}
