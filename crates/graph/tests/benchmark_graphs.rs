//! Every benchmark graph loads, with the counts its publishers give.
//!
//! The data is not part of the repository: `WHEREFORE_DATA` names its folder, else `../shared/data`
//! beside the repository is tried. Without it, the test says that it was skipped.

use std::path::PathBuf;

use wherefore_graph::{Input, LoadOptions, Store, load};

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("WHEREFORE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    folder.join("metaqa/kb.txt").exists().then_some(folder)
}

struct Case {
    files: &'static [&'static str],
    triples: u64,
    entities: Option<u64>,
    relations: Option<u64>,
}

const CASES: [Case; 9] = [
    Case {
        files: &["pathquestion/2H-kb.txt"],
        triples: 1_211,
        entities: None,
        relations: Some(13),
    },
    Case {
        files: &["pathquestion/3H-kb.txt"],
        triples: 2_839,
        entities: None,
        relations: None,
    },
    Case {
        files: &["pathquestion/PQL2-KB.txt"],
        triples: 4_247,
        entities: None,
        relations: Some(363),
    },
    Case {
        files: &["pathquestion/PQL3-KB.txt"],
        triples: 5_597,
        entities: None,
        relations: Some(411),
    },
    Case {
        files: &["wc2014/WC2014.txt"],
        triples: 6_482,
        entities: None,
        relations: Some(10),
    },
    Case {
        files: &["metaqa/kb.txt"],
        triples: 132_654,
        entities: Some(43_074),
        relations: Some(9),
    },
    Case {
        files: &["freebase/triples.tsv"],
        triples: 204_087,
        entities: Some(112_352),
        relations: Some(3_217),
    },
    Case {
        files: &["freebase13/triples.tsv"],
        triples: 345_873,
        entities: Some(75_043),
        relations: Some(13),
    },
    Case {
        files: &[
            "fb15k-237/train.txt",
            "fb15k-237/valid.txt",
            "fb15k-237/test.txt",
        ],
        triples: 310_116,
        entities: None,
        relations: Some(237),
    },
];

#[test]
fn benchmark_graphs_load_with_their_published_counts() {
    let Some(data) = data() else {
        println!("skipped: no benchmark data; set WHEREFORE_DATA to its folder");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for (i, case) in CASES.iter().enumerate() {
        let inputs: Vec<_> = case
            .files
            .iter()
            .map(|f| Input::File(data.join(f)))
            .collect();
        let graph = dir.path().join(i.to_string());
        let report = load(&inputs, &graph, &LoadOptions::default(), &|_| {}).unwrap();
        let counts = &report.counts;
        println!(
            "{}: {} triples, {} entities, {} relations, {} duplicates, {} malformed, {} unnamed, {:.1} bytes a triple, {:?}",
            case.files[0],
            counts.triples,
            counts.entities,
            counts.relations,
            counts.duplicates,
            counts.malformed,
            counts.unnamed,
            report.bytes as f64 / counts.triples as f64,
            report.time,
        );
        for mistake in &report.mistakes {
            println!("  {mistake}");
        }
        assert_eq!(
            counts.triples + counts.duplicates,
            case.triples,
            "{:?}",
            case.files
        );
        assert_eq!(counts.malformed, 0, "{:?}", case.files);
        if let Some(entities) = case.entities {
            assert_eq!(counts.entities, entities, "{:?}", case.files);
        }
        if let Some(relations) = case.relations {
            assert_eq!(counts.relations, relations, "{:?}", case.files);
        }
        Store::open(&graph).unwrap().check().unwrap();
    }
    // with its table of names, FB15k-237's ids become readable and its triples stay
    let case = &CASES[8];
    let inputs: Vec<_> = case
        .files
        .iter()
        .map(|f| Input::File(data.join(f)))
        .collect();
    let options = LoadOptions {
        names: vec![data.join("fb15k-237/entity_names.tsv")],
        ..LoadOptions::default()
    };
    let counts = load(&inputs, &dir.path().join("named"), &options, &|_| {})
        .unwrap()
        .counts;
    assert_eq!(counts.triples - counts.naming, case.triples);
    assert!(counts.unnamed < 100, "{counts:?}");
}
