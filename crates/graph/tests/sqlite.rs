//! SQLite databases as graphs. `tests/sqlite/make.py` makes the databases.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use wherefore_graph::{Error, Graph, Input, LoadOptions, Store, Term, load};

fn database(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sqlite")
        .join(name)
}

fn loaded(file: &Path, folder: &Path) -> (Store, Vec<String>) {
    let graph = folder.join("graph");
    let input = [Input::File(file.to_owned())];
    let report = load(&input, &graph, &LoadOptions::default(), &|_| {}).unwrap();
    (Store::open(&graph).unwrap(), report.notes)
}

/// All triples as text, relations by their last part.
fn triples(store: &Store) -> Vec<String> {
    let text = |term: Term| match term {
        Term::Name(name) => name,
        Term::Iri(iri) => iri.rsplit(['#', '/']).next().unwrap().to_owned(),
        Term::Literal(literal) => format!("'{}'", literal.value),
        Term::Blank(label) => label,
    };
    let mut all: Vec<String> = store
        .triples()
        .map(|triple| {
            let triple = triple.unwrap();
            let head = text(store.entity_term(triple.head).unwrap());
            let relation = text(store.relation_term(triple.relation).unwrap());
            format!(
                "{head} {relation} {}",
                text(store.entity_term(triple.tail).unwrap())
            )
        })
        .collect();
    all.sort();
    all
}

#[test]
fn rows_are_things_and_references_lead_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let (store, notes) = loaded(&database("shop.sqlite"), folder.path());
    let all = triples(&store);
    for expected in [
        "customers/7 type customers",
        "customers/7 label 'Ada Byron'",
        "customers/7 first_name Ada",
        "customers/7 born '1815-12-10'",
        "customers/9 label 'Mary'",
        "plants/p001 label 'Plant 1'",
        "plants/p001 code p001",
        "plants/p001 height '1.5'",
        "plants/p300 label 'Plant 300'",
        "orders/-3 label 'orders -3'",
        "orders/-3 customer customers/7",
        "orders/-3 placed_by customers/7",
        "orders/-3 paid '1'",
        "orders/201 customer customers/99",
        "orders/-3 order_plants plants/p011",
        "orders/200 order_plants plants/p299",
        "beds/North/1 soil clay",
        "beds/North/2 garden North",
        "beds/South/1 row '1'",
        "stands/2 since '40000000000'",
        "stands/1 beds beds/North/2",
        "stands/1 plant plants/p001",
    ] {
        let is_there = all.iter().any(|triple| triple == expected);
        assert_eq!(is_there, !expected.contains("p300"), "{expected}");
    }
    let long = format!("plants/p011 notes '{}'", "long ".repeat(500).trim());
    assert!(all.contains(&long), "a text that flows over three pages");
    let left_out = [
        "photo",
        "customers/7 id",
        "plants/p001 name",
        "plants/p000 height",
    ];
    for begin in left_out {
        assert!(
            !all.iter()
                .any(|t| t.starts_with(begin) || t.contains(" photo ")),
            "{begin}"
        );
    }
    assert_eq!(notes, ["the table `nothing` has no rows"]);
    // each plant as SQLite itself reads it
    let heights: BTreeMap<&str, &str> = (all.iter())
        .filter_map(|t| t.strip_prefix("plants/")?.split_once(" height "))
        .collect();
    let labels: BTreeMap<&str, &str> = (all.iter())
        .filter_map(|t| t.strip_prefix("plants/")?.split_once(" label "))
        .collect();
    let rows = fs::read_to_string(database("rows.txt")).unwrap();
    assert_eq!(rows.lines().count(), labels.len());
    for (row, (code, label)) in rows.lines().zip(&labels) {
        let (name, height) = row.split_once('\t').unwrap();
        assert_eq!(*label, format!("'{name}'"));
        let found = heights.get(code).map_or("", |h| h.trim_matches('\''));
        assert_eq!(found, height, "{name}");
    }
}

#[test]
fn other_encodings_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = loaded(&database("utf16.sqlite"), folder.path());
    assert_eq!(
        triples(&store),
        [
            "städte/1 einwohner '443037'",
            "städte/1 label 'Zürich 🏔'",
            "städte/1 type städte",
        ]
    );
}

#[test]
fn damaged_databases_are_errors_and_never_endless() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(database("shop.sqlite")).unwrap();
    let file = folder.path().join("shop.db");
    let graph = folder.path().join("graph");
    let options = LoadOptions {
        replace: true,
        ..LoadOptions::default()
    };
    let mut state = 7u64;
    let mut refused = 0;
    for round in 0..300 {
        let mut bytes = whole.clone();
        if round < 20 {
            bytes.truncate(whole.len() * (round + 1) / 21);
        } else {
            for _ in 0..8 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(5);
                let place = (state >> 33) as usize % bytes.len();
                // the magic is left: without it, it is no database
                bytes[place.max(16)] = (state >> 20) as u8;
            }
        }
        fs::write(&file, &bytes).unwrap();
        match load(&[Input::File(file.clone())], &graph, &options, &|_| {}) {
            Ok(_) => {}
            Err(Error::BadInput { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 50, "{refused}");
}
