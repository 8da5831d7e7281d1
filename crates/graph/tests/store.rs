//! The store against plain sets: whatever is loaded must read back the same, in every format,
//! with and without spilling to disk.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use wherefore_graph::{
    Action, Adjacency, ChangeSet, Edge, EntityId, Error, Format, Graph, Input, Literal,
    LiteralKind, LoadOptions, LoadReport, NameMatch, RelationId, Store, TableOptions, Term, Triple,
    Wide, compact, load,
};

fn load_text(
    dir: &Path,
    name: &str,
    text: &[u8],
    options: &LoadOptions,
) -> Result<LoadReport, Error> {
    let file = dir.join(name);
    std::fs::write(&file, text).unwrap();
    let options = LoadOptions {
        replace: true,
        ..options.clone()
    };
    load(&[Input::File(file)], &dir.join("graph"), &options, &|_| {})
}

fn open(dir: &Path) -> Store {
    Store::open(dir.join("graph")).unwrap()
}

type Named = (String, String, String);

/// All triples of a store, by identity.
fn triples(store: &Store) -> BTreeSet<Named> {
    store
        .triples()
        .map(|t| {
            let t = t.unwrap();
            (
                store.entity_term(t.head).unwrap().to_string(),
                store.relation_term(t.relation).unwrap().to_string(),
                store.entity_term(t.tail).unwrap().to_string(),
            )
        })
        .collect()
}

/// Everything the store says of its shape, against the list of its triples.
fn shape_is_consistent(store: &Store) {
    let all: Vec<Triple> = store.triples().map(Result::unwrap).collect();
    assert!(all.is_sorted());
    assert_eq!(all.len() as u64, store.counts().triples);
    for id in 0..store.entity_bound() as u32 {
        let e = EntityId(id);
        let out: Vec<Edge> = all
            .iter()
            .filter(|t| t.head == e)
            .map(|t| Edge {
                relation: t.relation,
                entity: t.tail,
            })
            .collect();
        let mut incoming: Vec<Edge> = all
            .iter()
            .filter(|t| t.tail == e)
            .map(|t| Edge {
                relation: t.relation,
                entity: t.head,
            })
            .collect();
        incoming.sort();
        assert_eq!(store.outgoing(e).unwrap(), out);
        assert_eq!(store.incoming(e).unwrap(), incoming);
        assert_eq!(store.degree(e).unwrap(), out.len() + incoming.len());
        let term = store.entity_term(e).unwrap();
        assert_eq!(store.find_term(&term).unwrap(), Some(e));
    }
    for id in 0..store.relation_bound() as u32 {
        let r = wherefore_graph::RelationId(id);
        let of: Vec<Triple> = all.iter().copied().filter(|t| t.relation == r).collect();
        let read: Vec<Triple> = store
            .triples_by_relation(r)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(read, of);
        assert_eq!(store.relation_count(r).unwrap(), of.len());
    }
    for t in &all {
        assert!(store.contains(*t).unwrap());
        assert!(
            !store
                .contains(Triple {
                    relation: wherefore_graph::RelationId(9999),
                    ..*t
                })
                .unwrap()
        );
    }
    store.check().unwrap();
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{1,3}",
        "[A-C é_]{0,2}[a-z]",
        Just("m.0abc".to_owned())
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_table_reads_back_as_the_set_it_was(
        rows in prop::collection::vec((name(), "[p-r]", name()), 1..60),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let text: String = rows.iter().map(|(h, r, t)| format!("{h}\t{r}\t{t}\n")).collect();
        // where the columns are said, a first line `h r o` is a triple and not a header
        let table = TableOptions { columns: Some(["1", "2", "3"].map(str::to_owned)), ..TableOptions::default() };
        let options = LoadOptions { table, ..LoadOptions::default() };
        let report = load_text(dir.path(), "g.tsv", text.as_bytes(), &options).unwrap();
        let want: BTreeSet<Named> = rows
            .iter()
            .map(|(h, r, t)| (h.trim().to_owned(), r.clone(), t.trim().to_owned()))
            .collect();
        let store = open(dir.path());
        prop_assert_eq!(triples(&store), want.clone());
        prop_assert_eq!(report.counts.duplicates, (rows.len() - want.len()) as u64);
        shape_is_consistent(&store);
        // by name: every entity is found under its own name, normalised or not
        for id in 0..store.entity_bound() as u32 {
            let label = store.entity_label(EntityId(id)).unwrap().into_owned();
            if store.is_named(EntityId(id)).unwrap() {
                for how in [NameMatch::Exact, NameMatch::Normalised] {
                    prop_assert!(store.entities_named(&label, how).unwrap().contains(&EntityId(id)));
                }
                prop_assert!(store.entities_with_prefix(&label, 999).unwrap().contains(&EntityId(id)));
            }
        }
    }

    #[test]
    fn terms_of_every_kind_survive_n_triples(
        rows in prop::collection::vec((0u8..6, 0u8..3, 0u8..8, "[ -~é\n\"\\\\]{0,8}"), 1..40),
    ) {
        use oxrdf::{BlankNode, Literal as L, NamedNode, Triple as T, Term as Tm};
        let iri = |i: u8| NamedNode::new(format!("http://example.org/e{i}")).unwrap();
        let list: Vec<T> = rows
            .iter()
            .map(|(s, p, o, text)| {
                let object: Tm = match o {
                    0..3 => iri(*o).into(),
                    3 => BlankNode::new(format!("b{s}")).unwrap().into(),
                    4 => L::new_simple_literal(text).into(),
                    5 => L::new_language_tagged_literal(text, "fr").unwrap().into(),
                    6 => L::from(i64::from(*s)).into(),
                    _ => L::new_typed_literal(text, iri(9)).into(),
                };
                T::new(iri(*s), NamedNode::new(format!("http://example.org/p{p}")).unwrap(), object)
            })
            .collect();
        let text: String = list.iter().map(|t| format!("{t} .\n")).collect();
        let dir = tempfile::tempdir().unwrap();
        load_text(dir.path(), "g.nt", text.as_bytes(), &LoadOptions::default()).unwrap();
        let store = open(dir.path());
        let want: BTreeSet<Named> = list
            .iter()
            .map(|t| {
                let object = match &t.object {
                    Tm::NamedNode(n) => n.as_str().to_owned(),
                    Tm::BlankNode(b) => format!("_:{}", b.as_str()),
                    Tm::Literal(l) => Term::Literal(Literal {
                        value: l.value().to_owned(),
                        kind: match (l.language(), l.datatype()) {
                            (Some(tag), _) => LiteralKind::Language(tag.to_owned()),
                            (None, d) if d == oxrdf::vocab::xsd::STRING => LiteralKind::Plain,
                            (None, d) => LiteralKind::Typed(d.as_str().to_owned()),
                        },
                    })
                    .to_string(),
                };
                (t.subject.to_string().trim_matches(['<', '>']).to_owned(), t.predicate.as_str().to_owned(), object)
            })
            .collect();
        prop_assert_eq!(triples(&store), want);
        shape_is_consistent(&store);
    }
}

/// A pseudo-random table, large enough to outgrow the least memory.
fn large_table(rows: u32) -> String {
    let mut state = 7u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    (0..rows)
        .map(|_| {
            format!(
                "entity_{}\trelation_{}\tentity_{}\n",
                next(20_000),
                next(7),
                next(20_000)
            )
        })
        .collect()
}

#[test]
fn a_hub_is_read_by_relation_as_it_is_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    let line = |i: u32| match i % 7 {
        0 => format!("hub\tfirst\tx{i}\n"),
        1 => format!("y{i}\tlast\thub\n"),
        _ => format!("hub\tsecond\tx{i}\nz{i}\tfirst\thub\n"),
    };
    let text: String = (0..12_000).map(line).collect();
    load_text(
        dir.path(),
        "g.tsv",
        text.as_bytes(),
        &LoadOptions::default(),
    )
    .unwrap();
    let store = open(dir.path());
    let hub = store.entities_named("hub", NameMatch::Exact).unwrap()[0];
    let (out, back) = (store.outgoing(hub).unwrap(), store.incoming(hub).unwrap());
    assert!(out.len() > 4096 && back.len() > 4096);
    for relation in (0..store.relation_bound() as u32).map(RelationId) {
        for (row, outgoing) in [(&out, true), (&back, false)] {
            let run = store.run(hub, relation, outgoing).unwrap();
            let wanted: Vec<_> = row.iter().filter(|e| e.relation == relation).collect();
            assert_eq!(run.iter().collect::<Vec<_>>(), wanted);
        }
    }
    for edge in out.iter() {
        let stated = Triple {
            head: hub,
            relation: edge.relation,
            tail: edge.entity,
        };
        assert!(store.contains(stated).unwrap());
        let turned = Triple {
            head: edge.entity,
            tail: hub,
            ..stated
        };
        assert!(!store.contains(turned).unwrap());
    }
}

#[test]
fn spilling_and_threads_do_not_change_a_byte() {
    let dir = tempfile::tempdir().unwrap();
    let text = large_table(60_000);
    let mut checksums = BTreeSet::new();
    for (memory, threads) in [(1 << 30, 1), (1 << 30, 3), (1 << 20, 1), (1 << 20, 4)] {
        let options = LoadOptions {
            memory,
            threads,
            ..LoadOptions::default()
        };
        let report = load_text(dir.path(), "g.tsv", text.as_bytes(), &options).unwrap();
        assert_eq!(report.spilled > 0, memory == 1 << 20, "{memory} {threads}");
        checksums.insert(open(dir.path()).checksum().to_owned());
    }
    assert_eq!(checksums.len(), 1);
    let lines: BTreeSet<&str> = text.lines().collect();
    assert_eq!(open(dir.path()).counts().triples, lines.len() as u64);
}

#[test]
fn labels_come_from_the_graph_in_the_wanted_language() {
    let text = r#"
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://example.org/> .
:q1 rdfs:label "Vienna"@en, "Wien"@de, "Vienne"@fr ; skos:altLabel "Vindobona" ; :in :q2 .
:q2 rdfs:label "Austria" .
:Graz_City :in :q2 ; :population 291072 .
:in rdfs:label "lies in"@en .
[] :in :q2 .
"#;
    let dir = tempfile::tempdir().unwrap();
    load_text(
        dir.path(),
        "g.ttl",
        text.as_bytes(),
        &LoadOptions::default(),
    )
    .unwrap();
    let store = open(dir.path());
    let one = |name: &str| {
        let found = store.entities_named(name, NameMatch::Normalised).unwrap();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found[0]
    };
    let vienna = one("vienna");
    assert_eq!(store.entity_label(vienna).unwrap(), "Vienna");
    for alias in ["Wien", "VIENNE", "Vindobona", "http://example.org/q1"] {
        assert_eq!(one(alias), vienna);
    }
    assert_eq!(store.entity_label(one("Graz City")).unwrap(), "Graz City");
    assert_eq!(store.entity_label(one("291072")).unwrap(), "291072");
    assert_eq!(
        store
            .relation_label(store.relation_named("lies in").unwrap().unwrap())
            .unwrap(),
        "lies in"
    );
    assert_eq!(store.counts().naming, 6);
    assert_eq!(store.counts().unnamed, 1);
    assert_eq!(store.counts().blanks, 1);
    assert_eq!(store.naming_relations().len(), 2);
    assert_eq!(store.entities_with_prefix("vi", 10).unwrap(), [vienna]);

    let german = LoadOptions {
        language: "DE".into(),
        ..LoadOptions::default()
    };
    load_text(dir.path(), "g.ttl", text.as_bytes(), &german).unwrap();
    let store = open(dir.path());
    let vienna = store.entities_named("Vienna", NameMatch::Exact).unwrap()[0];
    assert_eq!(store.entity_label(vienna).unwrap(), "Wien");
}

#[test]
fn a_table_of_names_and_a_label_predicate_give_labels() {
    let dir = tempfile::tempdir().unwrap();
    let names = dir.path().join("names.tsv");
    std::fs::write(&names, "/m/01\tAlpha\tsource\n/m/02\tBeta\tsource\n").unwrap();
    let options = LoadOptions {
        names: vec![names],
        ..LoadOptions::default()
    };
    load_text(
        dir.path(),
        "g.tsv",
        b"/m/01\t/a/b\t/m/02\n/m/01\t/a/b\t/m/03\n",
        &options,
    )
    .unwrap();
    let store = open(dir.path());
    let alpha = store
        .entities_named("alpha", NameMatch::Normalised)
        .unwrap();
    assert_eq!(alpha.len(), 1);
    assert_eq!(
        store.entity_term(alpha[0]).unwrap(),
        Term::Name("/m/01".into())
    );
    assert_eq!(store.counts().triples - store.counts().naming, 2);
    assert_eq!(store.counts().unnamed, 1);

    let options = LoadOptions {
        labels: vec!["title".into(), "absent".into()],
        ..LoadOptions::default()
    };
    let report = load_text(
        dir.path(),
        "g.tsv",
        b"x1\ttitle\tA Film\nx1\tby\tx2\n",
        &options,
    )
    .unwrap();
    assert_eq!(report.notes, ["the predicate `absent` does not occur"]);
    let store = open(dir.path());
    let film = store
        .entities_named("a film", NameMatch::Normalised)
        .unwrap();
    assert_eq!(film.len(), 1);
    assert_eq!(store.entity_term(film[0]).unwrap(), Term::Name("x1".into()));
}

#[test]
fn every_format_and_compression_gives_the_same_graph() {
    let dir = tempfile::tempdir().unwrap();
    let iri = |x: &str| format!("http://example.org/{x}");
    let nt = format!(
        "<{0}> <{1}> <{2}> .\n<{2}> <{1}> \"5\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n",
        iri("a"),
        iri("r"),
        iri("b")
    );
    let nq = format!(
        "<{0}> <{1}> <{2}> <{0}> .\n<{2}> <{1}> \"5\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n",
        iri("a"),
        iri("r"),
        iri("b")
    );
    let ttl = "@prefix : <http://example.org/> . :a :r :b . :b :r 5 .";
    let trig = "@prefix : <http://example.org/> . :a :r :b . :g { :b :r 5 . }";
    let rdf = r#"<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://example.org/"><rdf:Description rdf:about="http://example.org/a"><r rdf:resource="http://example.org/b"/></rdf:Description><rdf:Description rdf:about="http://example.org/b"><r rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">5</r></rdf:Description></rdf:RDF>"#;
    let jsonld = r#"[{"@id":"http://example.org/a","http://example.org/r":[{"@id":"http://example.org/b"}]},{"@id":"http://example.org/b","http://example.org/r":[5]}]"#;
    let tsv = format!("{0}\t{1}\t{2}\n{2}\t{1}\t5\n", iri("a"), iri("r"), iri("b"));
    let csv = format!(
        "subject,predicate,object\n{0},{1},{2}\n{2},{1},\"5\"\n",
        iri("a"),
        iri("r"),
        iri("b")
    );
    let pipe = format!("{0}|{1}|{2}\n{2}|{1}|5\n", iri("a"), iri("r"), iri("b"));
    let jsonl = format!(
        "[\"{0}\",\"{1}\",\"{2}\"]\n{{\"head\":\"{2}\",\"relation\":\"{1}\",\"tail\":5}}\n",
        iri("a"),
        iri("r"),
        iri("b")
    );
    let typed = LoadOptions {
        table: TableOptions {
            typed: true,
            ..TableOptions::default()
        },
        ..LoadOptions::default()
    };
    let mut checksums = BTreeSet::new();
    let gzip = |text: &[u8]| {
        use std::io::Write;
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text).unwrap();
        out.finish().unwrap()
    };
    let xz = |text: &[u8]| {
        use std::io::Write;
        let mut out = liblzma::write::XzEncoder::new(Vec::new(), 1);
        out.write_all(text).unwrap();
        out.finish().unwrap()
    };
    for (name, text) in [
        ("g.nt", nt.as_str()),
        ("g.nq", &nq),
        ("g.ttl", ttl),
        ("g.trig", trig),
        ("g.rdf", rdf),
        ("g.jsonld", jsonld),
        ("g.tsv", &tsv),
        ("g.csv", &csv),
        ("g.txt", &pipe),
        ("g.jsonl", &jsonl),
    ] {
        let text = text.as_bytes();
        for (ending, bytes) in [
            ("", text.to_vec()),
            (".gz", gzip(text)),
            (".zst", zstd::encode_all(text, 1).unwrap()),
            (".xz", xz(text)),
        ] {
            load_text(dir.path(), &format!("{name}{ending}"), &bytes, &typed)
                .unwrap_or_else(|e| panic!("{name}{ending}: {e} {e:?}"));
            assert_eq!(open(dir.path()).counts().triples, 2, "{name}{ending}");
            checksums.insert(open(dir.path()).checksum().to_owned());
        }
    }
    assert_eq!(checksums.len(), 1);
}

#[test]
fn several_files_are_one_graph_with_their_blank_nodes_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut inputs = Vec::new();
    for i in 0..2 {
        let file = dir.path().join(format!("{i}.nt"));
        std::fs::write(
            &file,
            "_:x <http://a/p> \"v\" .\n<http://a/s> <http://a/p> \"v\" .\n",
        )
        .unwrap();
        inputs.push(Input::File(file));
    }
    let report = load(
        &inputs,
        &dir.path().join("graph"),
        &LoadOptions::default(),
        &|_| {},
    )
    .unwrap();
    assert_eq!(
        (
            report.counts.triples,
            report.counts.blanks,
            report.counts.duplicates
        ),
        (3, 2, 1)
    );
}

#[test]
fn quotes_inside_csv_fields_are_ordinary_characters() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "6\" pipe,is a,part\n\"3\"\" pipe\",made of,\"steel,\nzinc\"\n4\" pipe,is a,part\n";
    // more than one block
    let filler: String = (0..200_000)
        .map(|i| format!("{i}\" bolt,is a,part\n"))
        .collect();
    let text = rows.to_owned() + &filler;
    let plain = LoadOptions::default();
    let report = load_text(dir.path(), "parts.csv", text.as_bytes(), &plain).unwrap();
    assert_eq!(
        (report.counts.triples, report.counts.malformed),
        (200_003, 0)
    );
    let store = open(dir.path());
    let named = |name: &str| store.entities_named(name, NameMatch::Exact).unwrap().len();
    for name in [
        "6\" pipe",
        "3\" pipe",
        "4\" pipe",
        "steel,\nzinc",
        "199999\" bolt",
    ] {
        assert_eq!(named(name), 1, "{name}");
    }
    let wide = LoadOptions {
        table: TableOptions {
            wide: Some(Wide::default()),
            ..TableOptions::default()
        },
        ..LoadOptions::default()
    };
    let text = "part,size,use\npipe,6\",water\nbolt,\"1/2\"\"\",doors\nnut,4\",doors\n";
    let report = load_text(dir.path(), "wide.csv", text.as_bytes(), &wide).unwrap();
    // two columns of three things, and what they are: `wide`
    assert_eq!((report.counts.triples, report.counts.malformed), (9, 0));
    let changes = ChangeSet::parse(rows, Action::Add, Format::Csv, false).unwrap();
    assert_eq!(changes.len(), 3);
}

#[test]
fn bad_input_says_what_is_wrong_and_leaves_the_old_graph() {
    let dir = tempfile::tempdir().unwrap();
    load_text(
        dir.path(),
        "good.tsv",
        b"a\tr\tb\n",
        &LoadOptions::default(),
    )
    .unwrap();
    let before = open(dir.path()).checksum().to_owned();
    let long = [b"a\tr\t".to_vec(), vec![b'x'; 20 << 20], b"\n".to_vec()].concat();
    let cases: [(&str, &[u8], &str); 12] = [
        ("empty.tsv", b"", "it is empty"),
        ("blank.tsv", b"\n\n", "contains no triples"),
        (
            "no.txt",
            b"Dear all,\nhello\n",
            "its format cannot be detected",
        ),
        (
            "image.png",
            b"\x89PNG\r\n\x1a\n\0\0",
            "its format cannot be detected",
        ),
        (
            "cut.nt.gz",
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b],
            "truncated",
        ),
        (
            "false.nt.gz",
            b"<a:b> <a:c> <a:d> .\n",
            "its name says gzip",
        ),
        (
            "pack.tsv",
            b"PK\x03\x04xxxx",
            "zip archives are not supported",
        ),
        ("one.tsv", b"a\tb\n", "2 fields, and a triple needs three"),
        ("bytes.tsv", b"a\xff\tr\tb\n", "not UTF-8 at byte 2"),
        ("nul.tsv", b"a\0\tr\tb\n", "NUL byte"),
        ("bad.jsonld", b"{\"@id\": ", "line"),
        ("long.tsv", &long, "longer than 16 MiB"),
    ];
    for (name, text, want) in cases {
        let e = load_text(dir.path(), name, text, &LoadOptions::default()).unwrap_err();
        assert!(e.to_string().contains(want), "{name}: {e}");
        assert!(!e.is_internal());
        assert_eq!(open(dir.path()).checksum(), before, "{name}");
    }
    let mut left: Vec<_> = std::fs::read_dir(dir.path().join("graph"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    // two locks, the manifest, the data
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn malformed_lines_are_counted_shown_and_limited() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..50)
        .map(|i| {
            if i % 2 == 0 {
                format!("a{i}\tr\tb\n")
            } else {
                "bad\n".into()
            }
        })
        .collect();
    let report = load_text(
        dir.path(),
        "g.tsv",
        text.as_bytes(),
        &LoadOptions::default(),
    )
    .unwrap();
    assert_eq!((report.counts.malformed, report.counts.triples), (25, 25));
    assert_eq!(report.mistakes.len(), 10);
    assert_eq!(report.mistakes[0].line, 2);
    assert_eq!(report.mistakes[9].line, 20);
    for (allowed, fine) in [(25, true), (24, false), (0, false)] {
        let options = LoadOptions {
            max_errors: allowed,
            ..LoadOptions::default()
        };
        let result = load_text(dir.path(), "g.tsv", text.as_bytes(), &options);
        assert_eq!(result.is_ok(), fine);
        assert!(fine || matches!(result, Err(Error::TooManyErrors { .. })));
    }
}

#[test]
fn output_folders_are_respected() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("g.tsv");
    std::fs::write(&file, "a\tr\tb\n").unwrap();
    let try_load = |out: &str, replace| {
        let options = LoadOptions {
            replace,
            ..LoadOptions::default()
        };
        load(
            &[Input::File(file.clone())],
            &dir.path().join(out),
            &options,
            &|_| {},
        )
    };
    try_load("graph", false).unwrap();
    assert!(matches!(
        try_load("graph", false),
        Err(Error::OutputExists { is_graph: true, .. })
    ));
    try_load("graph", true).unwrap();
    std::fs::create_dir(dir.path().join("mine")).unwrap();
    std::fs::write(dir.path().join("mine/thesis.tex"), "x").unwrap();
    for replace in [false, true] {
        assert!(matches!(
            try_load("mine", replace),
            Err(Error::OutputExists {
                is_graph: false,
                ..
            })
        ));
        assert!(matches!(
            try_load("g.tsv", replace),
            Err(Error::OutputExists {
                is_graph: false,
                ..
            })
        ));
    }
    assert_eq!(
        std::fs::read_dir(dir.path().join("mine")).unwrap().count(),
        1
    );
    // a failed first load leaves nothing behind
    std::fs::write(&file, "").unwrap();
    assert!(try_load("new", false).is_err());
    assert!(!dir.path().join("new").exists());
    assert!(matches!(
        load(
            &[Input::File(dir.path().into())],
            &dir.path().join("new"),
            &LoadOptions::default(),
            &|_| {}
        ),
        Err(Error::BadInput { .. })
    ));
}

#[test]
fn a_flipped_byte_anywhere_is_found_when_the_graph_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    load_text(
        dir.path(),
        "g.tsv",
        large_table(300).as_bytes(),
        &LoadOptions::default(),
    )
    .unwrap();
    let graph = dir.path().join("graph");
    let mut files = vec![graph.join("graph.json")];
    for entry in std::fs::read_dir(&graph).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
        }
    }
    assert!(files.len() > 10);
    for file in files {
        let whole = std::fs::read(&file).unwrap();
        for at in [0, whole.len() / 2, whole.len().saturating_sub(1)] {
            if whole.is_empty() {
                continue;
            }
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&file, &flipped).unwrap();
            let e = Store::open(&graph).expect_err("damage must be found");
            assert!(!e.is_internal(), "{}: {e}", file.display());
        }
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        assert!(whole.is_empty() || Store::open(&graph).is_err());
        std::fs::write(&file, &whole).unwrap();
        Store::open(&graph).unwrap();
    }
}

#[test]
fn a_newer_format_says_so() {
    let dir = tempfile::tempdir().unwrap();
    load_text(dir.path(), "g.tsv", b"a\tr\tb\n", &LoadOptions::default()).unwrap();
    let path = dir.path().join("graph/graph.json");
    let mut json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    json["manifest"]["format"] = 99.into();
    json["checksum"] = format!(
        "{:016x}",
        xxhash_rust::xxh3::xxh3_64(json["manifest"].to_string().as_bytes())
    )
    .into();
    std::fs::write(&path, json.to_string()).unwrap();
    let e = Store::open(dir.path().join("graph")).unwrap_err();
    assert!(matches!(e, Error::NewerFormat { found: 99, .. }), "{e}");
    assert!(matches!(
        Store::open(dir.path().join("nothing")),
        Err(Error::NotAGraph { .. })
    ));
    assert!(matches!(
        Store::open(dir.path().join("g.tsv")),
        Err(Error::NotAGraph { .. })
    ));
}

#[test]
fn documents_that_would_fill_the_memory_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions::default();
    let refused = |name: &str, text: &[u8]| {
        let error = load_text(dir.path(), name, text, &options).unwrap_err();
        assert!(matches!(error, Error::BadInput { .. }), "{error}");
        assert!(error.hint().is_some());
        error.to_string()
    };
    let mut laughs = String::from("<?xml version=\"1.0\"?>\n<!DOCTYPE r [\n<!ENTITY a \"ha\">\n");
    let names: Vec<char> = ('a'..='k').collect();
    for pair in names.windows(2) {
        let many = format!("&{};", pair[0]).repeat(10);
        laughs += &format!("<!ENTITY {} \"{many}\">\n", pair[1]);
    }
    laughs +=
        "]>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">&k;</rdf:RDF>";
    assert!(laughs.len() < 1000);
    assert!(refused("laughs.rdf", laughs.as_bytes()).contains("entities"));

    for deep in [
        "[".repeat(1000),
        "{\"a:b\":".repeat(1000),
        "{\"@context\":{\"@context\":".repeat(500),
        "{\"@list\":[".repeat(500),
    ] {
        assert!(refused("deep.jsonld", deep.as_bytes()).contains("nest deeper than 128"));
    }

    // seventy megabytes in one value, packed into some kilobytes
    let begin = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:a=\"http://a/\"><rdf:Description rdf:about=\"http://a/b\"><a:c>";
    let mut text = begin.as_bytes().to_vec();
    text.resize(70 << 20, b'x');
    let packed = zstd::encode_all(text.as_slice(), 1).unwrap();
    drop(text);
    assert!(packed.len() < 1 << 20);
    let options = LoadOptions {
        memory: 64 << 20,
        ..LoadOptions::default()
    };
    let error = load_text(dir.path(), "long.rdf.zst", &packed, &options).unwrap_err();
    let told = "more than 64 MiB lie between two of its triples";
    assert!(error.to_string().contains(told), "{error}");
}

#[test]
fn documents_nested_as_deep_as_they_may_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions::default();
    let deep = "{\"http://a/b\":".repeat(120) + "1" + &"}".repeat(120);
    let report = load_text(dir.path(), "deep.jsonld", deep.as_bytes(), &options).unwrap();
    assert_eq!(report.counts.triples, 120);
}

#[test]
fn relative_iris_are_relative_to_the_base() {
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions {
        base: Some("http://example.org/data/x.ttl".into()),
        ..LoadOptions::default()
    };
    let wanted = (
        "http://example.org/data/a".to_owned(),
        "http://example.org/p".to_owned(),
        "http://example.org/data/x.ttl#b".to_owned(),
    );
    for (name, text) in [
        ("x.ttl", "<a> </p> <#b> ."),
        ("x.trig", "{ <a> </p> <#b> . }"),
        (
            "x.jsonld",
            "{\"@id\":\"a\",\"http://example.org/p\":{\"@id\":\"#b\"}}",
        ),
        (
            "x.rdf",
            "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
             xmlns:e=\"http://example.org/\"><rdf:Description rdf:about=\"a\">\
             <e:p rdf:resource=\"#b\"/></rdf:Description></rdf:RDF>",
        ),
    ] {
        load_text(dir.path(), name, text.as_bytes(), &options).unwrap();
        let found = triples(&open(dir.path()));
        assert_eq!(found, BTreeSet::from([wanted.clone()]), "{name}");
    }
    // what a file says itself counts
    let own = "@base <http://own/> . <a> <p> <b> .";
    load_text(dir.path(), "x.ttl", own.as_bytes(), &options).unwrap();
    assert!(
        triples(&open(dir.path()))
            .iter()
            .all(|(s, ..)| s == "http://own/a")
    );
    let options = LoadOptions {
        base: Some("not an iri".into()),
        ..LoadOptions::default()
    };
    let error = load_text(dir.path(), "x.ttl", own.as_bytes(), &options).unwrap_err();
    assert!(error.to_string().contains("`base`"), "{error}");
}

#[test]
fn rdf_without_a_triple_is_a_graph_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions::default();
    for (name, text) in [
        ("a.nt", ""),
        ("a.nq", "# nothing\n"),
        ("a.ttl", ""),
        ("a.trig", "@prefix a: <http://a/> ."),
        (
            "a.rdf",
            "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>",
        ),
        ("a.jsonld", "[]"),
    ] {
        let report = load_text(dir.path(), name, text.as_bytes(), &options).unwrap();
        assert_eq!(report.counts.triples, 0, "{name}");
        assert_eq!(report.notes, ["the input contains no triples"]);
        let store = open(dir.path());
        assert_eq!(store.entity_bound(), 0);
        assert!(
            store
                .entities_named("x", NameMatch::Normalised)
                .unwrap()
                .is_empty()
        );
        assert!(store.entities_with_prefix("x", 5).unwrap().is_empty());
        store.check().unwrap();
        shape_is_consistent(&store);
    }
    // tables have no such thing, and what does not parse is no empty file
    for (name, text) in [
        ("a.tsv", ""),
        ("a.csv", ""),
        ("a.rdf", ""),
        ("a.nt", "oops\n"),
    ] {
        assert!(
            load_text(dir.path(), name, text.as_bytes(), &options).is_err(),
            "{name}"
        );
    }
}

/// A copy of a graph that an older version wrote.
fn written_before(from: &str, to: &Path) -> std::path::PathBuf {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            match entry.path().is_dir() {
                true => copy(&entry.path(), &target),
                false => drop(std::fs::copy(entry.path(), target).unwrap()),
            }
        }
    }
    let upgrade = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrade");
    let graph = to.join("graph");
    copy(&upgrade.join(from), &graph);
    graph
}

#[test]
fn a_graph_with_changes_of_an_older_version_is_read_changed_and_folded_in() {
    is_read_changed_and_folded_in("graph");
}

#[test]
fn a_graph_of_the_first_version_with_sums_of_blocks_is_read_changed_and_folded_in() {
    let upgrade = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrade/sums/graph");
    let manifest = std::fs::read_to_string(upgrade.join("graph.json")).unwrap();
    assert!(manifest.contains("\"blocks.sums\""));
    is_read_changed_and_folded_in("sums/graph");
}

fn is_read_changed_and_folded_in(from: &str) {
    let dir = tempfile::tempdir().unwrap();
    let graph = written_before(from, dir.path());
    let store = Store::open(&graph).unwrap();
    store.check().unwrap();
    assert_eq!(store.checksum(), "c88182ab1b444b1c");
    let pending = store.pending().unwrap();
    assert_eq!(
        (
            pending.changes,
            pending.added,
            pending.removed,
            pending.bytes
        ),
        (3, 2, 1, 235)
    );
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrade/input.nt");
    let mut lines: BTreeSet<String> = (std::fs::read_to_string(input).unwrap().lines())
        .map(str::to_owned)
        .collect();
    lines.retain(|line| !line.contains("population"));
    lines.insert("<http://e/q3> <http://r/born_in> <http://e/q1> .".into());
    lines.insert(
        "<http://e/q3> <http://www.w3.org/2000/01/rdf-schema#label> \"Wolfgang\"@en .".into(),
    );
    // what the same lines give when they are loaded now
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let now = dir.path().join("now");
    std::fs::create_dir(&now).unwrap();
    load_text(&now, "g.nt", text.as_bytes(), &LoadOptions::default()).unwrap();
    let now = open(&now);
    assert_eq!(triples(&store), triples(&now));
    assert_eq!(store.counts(), now.counts());
    for (name, label) in [("salzburg", "Salzburg"), ("Mozart city", "Salzburg")] {
        let found = store.entities_named(name, NameMatch::Normalised).unwrap();
        assert_eq!(store.entity_label(found[0]).unwrap(), label);
    }
    // it goes on with what this version writes
    let more = "<http://e/q3> <http://r/likes> <http://e/q2> .\n";
    let set = |action| ChangeSet::parse(more, action, Format::NTriples, false).unwrap();
    let (changed, report) = store.change(&set(Action::Add)).unwrap();
    assert_eq!((report.added, report.pending), (1, 4));
    assert_eq!(triples(&Store::open(&graph).unwrap()), triples(&changed));
    changed.change(&set(Action::Remove)).unwrap();
    compact(&graph, 1 << 20, 1, &|_| {}).unwrap().unwrap();
    let folded = Store::open(&graph).unwrap();
    assert_eq!(folded.checksum(), now.checksum());
    shape_is_consistent(&folded);
}
