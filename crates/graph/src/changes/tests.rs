//! Files and changes together are held against the graph that a load of the same triples gives.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use super::compact::compact;
use super::edit::ChangeSet;
use super::log::{Action, LOG};
use super::repair::{RepairReport, repair};
use crate::error::Error;
use crate::graph::{Adjacency, EntityId, Graph, NameMatch, RelationId, edges_by_relation};
use crate::load::{Format, Input, LoadOptions, TableOptions, load};
use crate::names::normalise;
use crate::sparql::{ResultFormat, SparqlOptions, write};
use crate::store::Store;

const HEADS: [&str; 5] = [
    "<http://e/Ann_Bo>",
    "<http://e/m.0abc>",
    "_:x",
    "<http://e/Café>",
    "<http://r/likes>",
];
const RELATIONS: [&str; 5] = [
    "<http://r/likes>",
    "<http://r/knows>",
    "<http://www.w3.org/2000/01/rdf-schema#label>",
    "<http://xmlns.com/foaf/0.1/name>",
    "<http://www.w3.org/2004/02/skos/core#altLabel>",
];
const VALUES: [&str; 6] = [
    "\"Ann\"@en",
    "\"ann bo\"",
    "\"Bob\"@de",
    "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>",
    "\"a value of more than eighty bytes that is found as a name only where something is called so\"",
    "\"Café\"",
];

type Row = (usize, usize, usize);

fn line((head, relation, tail): Row) -> String {
    let tail = tail % (HEADS.len() + VALUES.len());
    let tail = match tail.checked_sub(HEADS.len()) {
        Some(value) => VALUES[value],
        None => HEADS[tail],
    };
    format!("{} {} {tail} .\n", HEADS[head], RELATIONS[relation])
}

fn loaded(folder: &Path, lines: &BTreeSet<String>) -> Store {
    let file = folder.with_extension("nt");
    std::fs::write(&file, lines.iter().cloned().collect::<String>()).unwrap();
    let options = LoadOptions {
        replace: true,
        threads: 1,
        ..LoadOptions::default()
    };
    load(&[Input::File(file)], folder, &options, &|_| {}).unwrap();
    Store::open(folder).unwrap()
}

/// All that can be seen of a graph, without its ids.
#[derive(Debug, PartialEq)]
struct Picture {
    counts: crate::Counts,
    triples: BTreeSet<String>,
    entities: BTreeSet<String>,
    relations: BTreeSet<String>,
    names: Vec<String>,
    rows: Vec<String>,
}

fn picture(store: &Store) -> Picture {
    let term = |e: EntityId| store.entity_term(e).unwrap().to_string();
    let relation = |r: RelationId| store.relation_term(r).unwrap().to_string();
    let terms = |found: Vec<EntityId>| {
        let mut found: Vec<String> = found.into_iter().map(term).collect();
        found.sort();
        found.join(" | ")
    };
    let mut triples = BTreeSet::new();
    for t in store.triples() {
        let t = t.unwrap();
        assert!(store.contains(t).unwrap());
        triples.insert(format!(
            "{} {} {}",
            term(t.head),
            relation(t.relation),
            term(t.tail)
        ));
    }
    let mut entities = BTreeSet::new();
    for id in 0..store.entity_bound() as u32 {
        let e = EntityId(id);
        let (out, back) = (store.outgoing(e).unwrap(), store.incoming(e).unwrap());
        assert!(out.is_sorted() && back.is_sorted());
        assert_eq!(store.degree(e).unwrap(), out.len() + back.len());
        for relation in (0..store.relation_bound() as u32).map(RelationId) {
            for (row, outgoing) in [(&out, true), (&back, false)] {
                let run = store.run(e, relation, outgoing).unwrap();
                assert_eq!(run, edges_by_relation(row, relation));
            }
        }
        if store.degree(e).unwrap() > 0 {
            assert_eq!(
                store.find_term(&store.entity_term(e).unwrap()).unwrap(),
                Some(e)
            );
            let back: BTreeSet<String> = back
                .iter()
                .map(|b| format!("{} {}", term(b.entity), relation(b.relation)))
                .collect();
            entities.insert(format!(
                "{} `{}` {} {} {} {back:?}",
                term(e),
                store.entity_label(e).unwrap(),
                store.is_named(e).unwrap(),
                store.is_literal(e),
                store.is_blank(e),
            ));
        }
    }
    let mut relations = BTreeSet::new();
    for id in 0..store.relation_bound() as u32 {
        let r = RelationId(id);
        let of: Vec<_> = store
            .triples_by_relation(r)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(of.len(), store.relation_count(r).unwrap());
        assert!(of.is_sorted());
        if !of.is_empty() {
            let ends: BTreeSet<_> = of.iter().map(|t| (term(t.head), term(t.tail))).collect();
            let twin = store.relation_entity(r).unwrap();
            let twin = twin.filter(|&e| store.degree(e).unwrap() > 0).map(term);
            relations.insert(format!(
                "{} `{}` {twin:?} {ends:?}",
                relation(r),
                store.relation_label(r).unwrap()
            ));
        }
    }
    let mut names = Vec::new();
    for name in [
        "Ann",
        "ann bo",
        "Ann Bo",
        "cafe",
        "Café",
        "bob",
        "5",
        "likes",
        "m.0abc",
        "_:x",
        "http://e/Café",
        "a value of more than eighty bytes that is found as a name only where something is called so",
    ] {
        for how in [NameMatch::Exact, NameMatch::Normalised] {
            names.push(format!(
                "{name} {how:?}: {}",
                terms(store.entities_named(name, how).unwrap())
            ));
        }
        let prefix = normalise(name).chars().take(2).collect::<String>();
        let found = store.entities_with_prefix(&prefix, 100).unwrap();
        names.push(format!("{prefix}…: {}", terms(found)));
    }
    let mut rows = Vec::new();
    let queries = [
        "SELECT * WHERE { ?s ?p ?o }",
        "SELECT * WHERE { ?s <http://r/likes> ?o . ?o ?p ?x }",
        "SELECT * WHERE { <http://e/Ann_Bo> ?p ?o }",
        "SELECT * WHERE { ?s rdfs:label ?o }",
        "SELECT * WHERE { ?p rdfs:label ?l . ?s ?p ?o }",
        "SELECT * WHERE { ?s ?p <http://e/Ann_Bo> . ?s ?q <http://r/likes> }",
    ];
    for query in queries {
        let mut out = Vec::new();
        write(
            store,
            query,
            &SparqlOptions::default(),
            ResultFormat::Tsv,
            &mut out,
        )
        .unwrap();
        let mut lines: Vec<_> = String::from_utf8(out)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        rows.extend(lines);
    }
    Picture {
        counts: crate::Counts {
            duplicates: 0,
            ..store.counts().clone()
        },
        triples,
        entities,
        relations,
        names,
        rows,
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        0..HEADS.len(),
        0..RELATIONS.len(),
        0..HEADS.len() + VALUES.len(),
    );
    prop::collection::vec(row, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn files_and_changes_are_the_graph_of_the_plain_set(
        first in rows(),
        batches in prop::collection::vec((rows(), rows()), 1..5),
        folded in 0..6usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let graph = dir.path().join("graph");
        let mut set: BTreeSet<String> = first.into_iter().map(line).collect();
        let mut live = loaded(&graph, &set);
        for (i, (adds, removes)) in batches.into_iter().enumerate() {
            let (mut added, mut removed) = (0, 0);
            let text = |rows: &[Row]| rows.iter().copied().map(line).collect::<String>();
            let out = ChangeSet::parse(&text(&removes), Action::Remove, Format::NTriples, false);
            let come = ChangeSet::parse(&text(&adds), Action::Add, Format::NTriples, false);
            let changes = out.unwrap().then(come.unwrap());
            for row in &removes {
                removed += u64::from(set.remove(&line(*row)));
            }
            for row in &adds {
                added += u64::from(set.insert(line(*row)));
            }
            let before = picture(&live);
            let (next, report) = live.change(&changes).unwrap();
            prop_assert_eq!((report.added, report.removed), (added, removed));
            // whoever holds the old store sees the old graph
            prop_assert_eq!(picture(&live), before);
            let refreshed = live.refreshed().unwrap();
            prop_assert_eq!(refreshed.is_some(), added + removed > 0);
            let plain = loaded(&dir.path().join("plain"), &set);
            let wanted = picture(&plain);
            prop_assert_eq!(&picture(&next), &wanted);
            prop_assert_eq!(&picture(&Store::open(&graph).unwrap()), &wanted);
            if let Some(refreshed) = refreshed {
                prop_assert_eq!(&picture(&refreshed), &wanted);
                prop_assert_eq!(refreshed.identity(), next.identity());
            }
            live = next;
            if i == folded {
                let report = compact(&graph, 1 << 20, 1, &|_| {}).unwrap();
                prop_assert_eq!(report.is_some(), live.pending().is_some());
                prop_assert_eq!(picture(&live), wanted);
                if report.is_some() {
                    live = live.refreshed().unwrap().unwrap();
                    prop_assert_eq!(live.checksum(), plain.checksum());
                    prop_assert_eq!(live.pending(), None);
                }
            }
        }
    }
}

fn small(dir: &Path) -> Store {
    let lines = BTreeSet::from([line((0, 0, 1)), line((1, 2, 5)), line((3, 1, 0))]);
    loaded(&dir.join("graph"), &lines)
}

fn set(rows: &[Row], action: Action) -> ChangeSet {
    let text: String = rows.iter().copied().map(line).collect();
    ChangeSet::parse(&text, action, Format::NTriples, false).unwrap()
}

#[test]
fn a_change_that_was_never_acknowledged_is_told_and_the_next_one_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path());
    let (store, _) = store.change(&set(&[(0, 1, 3)], Action::Add)).unwrap();
    let whole = picture(&store);
    let log = store.base.data.join(LOG);
    // a writer that was killed in the middle
    let mut torn = std::fs::read(&log).unwrap();
    torn.extend_from_within(16..33);
    std::fs::write(&log, &torn).unwrap();
    let cut = Store::open(store.path()).unwrap();
    assert_eq!(picture(&cut), whole);
    let told = cut.pending().unwrap();
    assert_eq!((told.changes, told.cut.unwrap().bytes), (1, 17));
    cut.check().unwrap();
    // a change after it goes on from there
    let (mended, report) = cut.change(&set(&[(1, 1, 3)], Action::Add)).unwrap();
    assert_eq!((report.added, report.pending), (1, 2));
    assert_eq!(mended.pending().unwrap().cut, None);
    assert_eq!(
        picture(&Store::open(store.path()).unwrap()),
        picture(&mended)
    );
}

#[test]
fn every_reader_tells_of_a_damaged_log_and_repair_saves_what_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let first = small(dir.path());
    let graph = first.path().to_owned();
    let mut store = first.clone();
    let mut places = vec![16];
    let mut pictures = vec![picture(&store)];
    for row in [(0, 1, 3), (1, 1, 3), (3, 0, 2), (4, 1, 2)] {
        store = store.change(&set(&[row], Action::Add)).unwrap().0;
        places.push(store.changes.at.bytes as usize);
        pictures.push(picture(&store));
    }
    let right = picture(&store);
    assert_eq!(repair(&graph, true).unwrap(), RepairReport::default());
    let log = store.base.data.join(LOG);
    let commit = store.base.data.join(super::commit::COMMIT);
    let (bytes, committed) = (
        std::fs::read(&log).unwrap(),
        std::fs::read(&commit).unwrap(),
    );
    let is_damaged = |error: &Error| matches!(error, Error::DamagedLog { .. });
    let (mut found, mut harmless) = (0, 0);
    let mut state = 3u64;
    for _ in 0..200 {
        state = (state.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(7);
        let place = (state >> 33) as usize % (bytes.len() + 2 * 32);
        let (file, whole, place) = match place.checked_sub(bytes.len()) {
            None => (&log, &bytes, place),
            Some(slot) => (&commit, &committed, slot % 32 + slot / 32 * 4096),
        };
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (state >> 30 & 7);
        std::fs::write(file, &damaged).unwrap();
        match Store::open(&graph) {
            Ok(store) => {
                // the older of two commits
                assert_eq!((&picture(&store), file), (&right, &commit));
                harmless += 1;
            }
            Err(error) => {
                assert!(is_damaged(&error), "{error}");
                assert!(error.hint().unwrap().contains("wherefore repair"));
                let told = store.refreshed();
                assert!(told.is_err() || told.unwrap().is_none(), "byte {place}");
                assert!(is_damaged(&first.refreshed().unwrap_err()));
                assert!(is_damaged(&store.check().unwrap_err()));
                let change = set(&[(3, 3, 2)], Action::Add);
                assert!(is_damaged(&store.change(&change).unwrap_err()));
                assert!(is_damaged(
                    &compact(&graph, 1 << 20, 1, &|_| {}).unwrap_err()
                ));
                found += 1;
            }
        }
        assert_eq!(std::fs::read(file).unwrap(), damaged, "nobody writes to it");
        std::fs::write(file, whole).unwrap();
    }
    assert!(found > 150 && found + harmless == 200, "{found} {harmless}");

    // a payload: three of four can be saved
    let mut damaged = bytes.clone();
    damaged[places[1] + 30] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    let told = repair(&graph, false).unwrap().log.unwrap();
    assert_eq!(
        (told.whole, told.lost_changes, told.kept_as),
        (3, Some(1), None)
    );
    assert_eq!(told.lost[0].at as usize, places[1]);
    assert_eq!(std::fs::read(&log).unwrap(), damaged);
    let done = repair(&graph, true).unwrap().log.unwrap();
    let kept = store.base.data.join(done.kept_as.unwrap());
    assert_eq!(std::fs::read(&kept).unwrap(), damaged);
    assert!(repair(&graph, false).unwrap().is_whole());
    let mended = Store::open(&graph).unwrap();
    assert_eq!(mended.counts().triples + 1, store.counts().triples);
    let (again, _) = mended.change(&set(&[(1, 1, 3)], Action::Add)).unwrap();
    assert_eq!(picture(&again), right);
    // whoever had it open before goes on
    assert_eq!(picture(&store.refreshed().unwrap().unwrap()), right);

    // the end is missing: what stands before can be saved; the whole log: nothing
    std::fs::write(&log, &bytes[..places[2] + 5]).unwrap();
    std::fs::write(&commit, &committed).unwrap();
    let done = repair(&graph, true).unwrap().log.unwrap();
    assert_eq!((done.whole, done.lost_changes), (2, Some(2)));
    assert_eq!(picture(&Store::open(&graph).unwrap()), pictures[2]);
    std::fs::remove_file(&log).unwrap();
    let done = repair(&graph, true).unwrap().log.unwrap();
    assert_eq!(
        (done.whole, done.lost_changes, done.kept_as),
        (0, Some(2), None)
    );
    let empty = Store::open(&graph).unwrap();
    assert_eq!(
        (picture(&empty), empty.pending()),
        (pictures.remove(0), None)
    );
    // damaged logs are kept when changes are folded in
    empty.change(&set(&[(0, 1, 3)], Action::Add)).unwrap();
    compact(&graph, 1 << 20, 1, &|_| {}).unwrap().unwrap();
    let data = Store::open(&graph).unwrap().base.data.clone();
    assert!(data.join("changes.damaged-1").exists());
    assert!(!data.join(super::commit::COMMIT).exists());

    // a file that is damaged is told
    std::fs::write(data.join("labels"), [0; 8]).unwrap();
    let told = repair(&graph, true).unwrap();
    assert_eq!(told.files.len(), 1);
    assert_eq!(told.files[0].name, "labels");
}

#[test]
fn changes_written_while_others_are_folded_in_are_carried_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path());
    store.change(&set(&[(0, 1, 3)], Action::Add)).unwrap();
    // whoever makes progress also makes a change
    let written = std::sync::atomic::AtomicU64::new(0);
    let report = compact(store.path(), 1 << 20, 1, &|_| {
        let row = written.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as usize;
        store.change(&set(&[(3, 0, row % 4)], Action::Add)).unwrap();
    });
    let report = report.unwrap().unwrap();
    assert_eq!(report.changes, 1);
    assert!(report.carried > 0);
    let folded = Store::open(store.path()).unwrap();
    assert_eq!(folded.pending().unwrap().changes, report.carried);
    assert_eq!(folded.counts().triples, 3 + 1 + report.carried);
    assert_eq!(
        picture(&store.refreshed().unwrap().unwrap()),
        picture(&folded)
    );
}

#[test]
fn a_file_with_a_malformed_line_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("changes.tsv");
    std::fs::write(&file, "a\tb\tc\na\tb\n").unwrap();
    let input = Input::File(file);
    let options = TableOptions::default();
    let error = ChangeSet::read(&input, Action::Add, None, &options).unwrap_err();
    assert!(error.to_string().contains("line 2: 2 fields"), "{error}");
    assert!(error.hint().is_some());
    let error = ChangeSet::parse("a b c", Action::Add, Format::Turtle, false).unwrap_err();
    assert!(error.to_string().contains("line by line"), "{error}");
}

#[test]
fn a_graph_cannot_be_folded_into_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path());
    let all = set(&[(0, 0, 1), (1, 2, 5), (3, 1, 0)], Action::Remove);
    let (empty, report) = store.change(&all).unwrap();
    assert_eq!((report.removed, empty.counts().triples), (3, 0));
    assert_eq!(empty.triples().count(), 0);
    let error = compact(store.path(), 1 << 20, 1, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("remove every triple"), "{error}");
    assert_eq!(
        Store::open(store.path())
            .unwrap()
            .pending()
            .unwrap()
            .removed,
        3
    );
}
