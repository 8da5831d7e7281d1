//! SPARQL over the store against Oxigraph's own store, over the folder `queries`; random patterns
//! against a naive evaluator; the limits; and the scheme for names.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use proptest::prelude::*;
use wherefore_graph::sparql::{
    self, MAX_TEXT, PREFIXES, QueryAnswer, RdfTerm, ResultFormat, SparqlOptions, name_iri,
};
use wherefore_graph::{Error, Input, LoadOptions, Store, load};

fn store_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let inputs: Vec<Input> = files
        .iter()
        .map(|(name, text)| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            Input::File(path)
        })
        .collect();
    let graph = dir.path().join("graph");
    load(&inputs, &graph, &LoadOptions::default(), &|_| {}).unwrap();
    let store = Store::open(&graph).unwrap();
    (dir, store)
}

/// An answer in the form in which two of them are compared. Rows hold one cell for each variable,
/// terms as in N-Triples.
#[derive(Debug, PartialEq)]
enum Answer {
    Rows(Vec<String>, Vec<Vec<String>>),
    Boolean(bool),
    Triples(Vec<Vec<String>>),
}

fn cell(term: Option<&RdfTerm>) -> String {
    term.map_or("-".into(), ToString::to_string)
}

fn ours(store: &Store, text: &str, options: &SparqlOptions) -> Result<Answer, Error> {
    sparql::query(store, text, options, |answer| {
        Ok(match answer {
            QueryAnswer::Boolean(value) => Answer::Boolean(value),
            QueryAnswer::Rows(rows) => {
                let names = rows.variables().iter().map(ToString::to_string).collect();
                let rows: Result<_, Error> = rows
                    .map(|row| Ok(row?.values().iter().map(|t| cell(t.as_ref())).collect()))
                    .collect();
                Answer::Rows(names, rows?)
            }
            QueryAnswer::Triples(triples) => {
                let triples: Result<_, Error> = triples
                    .map(|t| {
                        let t = t?;
                        Ok(vec![
                            t.subject.to_string(),
                            t.predicate.to_string(),
                            t.object.to_string(),
                        ])
                    })
                    .collect();
                Answer::Triples(triples?)
            }
        })
    })
}

fn rows(store: &Store, text: &str) -> Vec<Vec<String>> {
    match ours(store, text, &SparqlOptions::default()).unwrap() {
        Answer::Rows(_, rows) => rows,
        other => panic!("no rows: {other:?}"),
    }
}

fn theirs(store: &oxigraph::store::Store, text: &str) -> Answer {
    let mut evaluator = SparqlEvaluator::new();
    for (prefix, iri) in PREFIXES {
        evaluator = evaluator.with_prefix(prefix, iri).unwrap();
    }
    match evaluator
        .parse_query(text)
        .unwrap()
        .on_store(store)
        .execute()
        .unwrap()
    {
        QueryResults::Boolean(value) => Answer::Boolean(value),
        QueryResults::Solutions(rows) => Answer::Rows(
            rows.variables().iter().map(ToString::to_string).collect(),
            rows.map(|row| {
                row.unwrap()
                    .values()
                    .iter()
                    .map(|t| cell(t.as_ref()))
                    .collect()
            })
            .collect(),
        ),
        QueryResults::Graph(triples) => Answer::Triples(
            triples
                .map(|t| {
                    let t = t.unwrap();
                    vec![
                        t.subject.to_string(),
                        t.predicate.to_string(),
                        t.object.to_string(),
                    ]
                })
                .collect(),
        ),
    }
}

/// Whether two lists of rows are the same up to order and to the labels of blank nodes.
fn same_rows(a: &[Vec<String>], b: &[Vec<String>]) -> bool {
    /// Renames blank nodes one row after another, and steps back where that fails.
    fn matched(
        a: &[&Vec<String>],
        b: &mut Vec<&Vec<String>>,
        names: &mut HashMap<String, String>,
        taken: &mut BTreeSet<String>,
    ) -> bool {
        let Some((first, rest)) = a.split_first() else {
            return b.is_empty();
        };
        for i in 0..b.len() {
            let candidate = b[i];
            let mut fresh = Vec::new();
            let fits = first.len() == candidate.len()
                && first.iter().zip(candidate).all(|(x, y)| {
                    if !(x.starts_with("_:") && y.starts_with("_:")) {
                        return x == y;
                    }
                    match names.get(x) {
                        Some(known) => known == y,
                        None if taken.contains(y) => false,
                        None => {
                            names.insert(x.clone(), y.clone());
                            taken.insert(y.clone());
                            fresh.push((x.clone(), y.clone()));
                            true
                        }
                    }
                });
            if fits {
                b.remove(i);
                if matched(rest, b, names, taken) {
                    return true;
                }
                b.insert(i, candidate);
            }
            for (x, y) in fresh {
                names.remove(&x);
                taken.remove(&y);
            }
        }
        false
    }
    let is_blank = |row: &&Vec<String>| row.iter().any(|c| c.starts_with("_:"));
    let split = |rows: &[Vec<String>]| {
        let (blank, mut plain): (Vec<_>, Vec<_>) =
            rows.iter().cloned().partition(|row| is_blank(&row));
        plain.sort();
        (blank, plain)
    };
    let ((blank_a, plain_a), (blank_b, plain_b)) = (split(a), split(b));
    // rows with fewer blank nodes first: they decide most
    let mut blank_a: Vec<_> = blank_a.iter().collect();
    blank_a.sort_by_key(|row| row.iter().filter(|c| c.starts_with("_:")).count());
    plain_a == plain_b
        && matched(
            &blank_a,
            &mut blank_b.iter().collect(),
            &mut HashMap::new(),
            &mut BTreeSet::new(),
        )
}

fn query_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/queries")
}

#[test]
fn answers_equal_those_of_oxigraph() {
    let turtle = std::fs::read_to_string(query_folder().join("graph.ttl")).unwrap();
    let (_dir, store) = store_of(&[("graph.ttl", &turtle)]);
    let oxigraph = oxigraph::store::Store::new().unwrap();
    oxigraph
        .load_from_reader(RdfParser::from_format(RdfFormat::Turtle), turtle.as_bytes())
        .unwrap();
    assert_eq!(store.counts().triples as usize, oxigraph.len().unwrap());
    assert!(store.counts().triples >= 150);

    let mut files: Vec<PathBuf> = std::fs::read_dir(query_folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "rq"))
        .collect();
    files.sort();
    let mut empty = Vec::new();
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(file).unwrap();
        let ours = ours(&store, &text, &SparqlOptions::default())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let theirs = theirs(&oxigraph, &text);
        let same = match (&ours, &theirs) {
            (Answer::Rows(a, x), Answer::Rows(b, y)) => {
                if x.is_empty() {
                    empty.push(name.clone());
                }
                // the keys of every ordered query in the folder leave no ties
                let ordered = text.contains("ORDER BY") && !text.contains("{ SELECT");
                a == b && same_rows(x, y) && (!ordered || x == y)
            }
            (Answer::Triples(x), Answer::Triples(y)) => same_rows(x, y),
            (a, b) => a == b,
        };
        if !same {
            wrong.push(format!("{name}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() >= 60, "only {} queries", files.len());
    // a query that finds nothing proves little: only those that are meant to
    assert_eq!(
        empty,
        [
            "limit-zero",
            "literal-in-subject",
            "named-graph",
            "named-graphs",
            "offset-beyond",
            "path-star-of-unknown",
            "unknown-terms",
        ]
    );
}

#[test]
fn spellings_of_a_value_are_terms_of_their_own() {
    let (_dir, store) = store_of(&[("a.ttl", "<a:s> <a:p> 1 , 01 , 1.0 , \"1\"^^<a:t> .")]);
    let count = |text: &str| rows(&store, text).len();
    assert_eq!(count("SELECT * { ?s ?p ?o }"), 4);
    assert_eq!(count("SELECT * { ?s ?p 01 }"), 1);
    assert_eq!(count("SELECT * { ?s ?p ?o FILTER(?o = 1) }"), 3);
    assert_eq!(count("SELECT * { ?s ?p ?o FILTER(sameTerm(?o, 1)) }"), 1);
}

#[test]
fn comparing_rows_knows_blank_nodes() {
    let rows = |text: &str| -> Vec<Vec<String>> {
        text.split(';')
            .map(|row| row.split(' ').map(str::to_owned).collect())
            .collect()
    };
    assert!(same_rows(&rows("_:a 1;_:b 2"), &rows("_:x 2;_:y 1")));
    assert!(!same_rows(&rows("_:a 1;_:a 2"), &rows("_:x 2;_:y 1")));
    assert!(!same_rows(&rows("_:a 1;_:b 2"), &rows("_:x 2;_:x 1")));
    assert!(!same_rows(&rows("a;a"), &rows("a")));
    assert!(same_rows(
        &rows("_:a _:b;_:b _:c;_:b 3"),
        &rows("_:z _:y;_:z 3;_:x _:z")
    ));
}

/// A term of a random pattern: a variable, or one of a few entities and relations. `n0` to `n3`
/// are entities, `p0` to `p2` relations, and `p0` is an entity too.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Variable(u8),
    Term(String),
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => (0u8..4).prop_map(Part::Variable),
        2 => prop::sample::select(vec!["n0", "n1", "n2", "n3", "p0", "p1", "p2"])
            .prop_map(|t| Part::Term(t.into())),
    ]
}

type Fact = [String; 3];

fn facts() -> impl Strategy<Value = BTreeSet<Fact>> {
    let entity = prop::sample::select(vec!["n0", "n1", "n2", "n3", "p0"]);
    let relation = prop::sample::select(vec!["p0", "p1", "p2"]);
    let fact = (entity.clone(), relation, entity)
        .prop_map(|(s, p, o)| [s.to_owned(), p.to_owned(), o.to_owned()]);
    prop::collection::btree_set(fact, 1..14)
}

/// Every way to choose one fact for each pattern, kept where the variables agree.
fn naive(facts: &BTreeSet<Fact>, patterns: &[[Part; 3]]) -> Vec<BTreeMap<u8, String>> {
    let mut found = vec![BTreeMap::new()];
    for pattern in patterns {
        let mut next = Vec::new();
        for bound in &found {
            for fact in facts {
                let mut bound = bound.clone();
                let fits = pattern.iter().zip(fact).all(|(part, term)| match part {
                    Part::Term(wanted) => wanted == term,
                    Part::Variable(v) => bound.entry(*v).or_insert_with(|| term.clone()) == term,
                });
                if fits {
                    next.push(bound);
                }
            }
        }
        found = next;
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn joins_agree_with_naive_ones(
        facts in facts(),
        queries in prop::collection::vec(
            prop::collection::vec(prop::array::uniform3(part()), 1..4), 8),
    ) {
        let table: String = facts.iter().map(|f| f.join("\t") + "\n").collect();
        let (_dir, store) = store_of(&[("facts.tsv", &table)]);
        for patterns in queries {
            let written = |part: &Part| match part {
                Part::Variable(v) => format!("?v{v}"),
                Part::Term(t) => format!(":{t}"),
            };
            let body: String = patterns
                .iter()
                .map(|p| p.iter().map(written).collect::<Vec<_>>().join(" ") + " . ")
                .collect();
            let text = format!("SELECT ?v0 ?v1 ?v2 ?v3 {{ {body} }}");
            let mut got = rows(&store, &text);
            got.sort();
            let mut want: Vec<Vec<String>> = naive(&facts, &patterns)
                .iter()
                .map(|row| {
                    (0..4)
                        .map(|v| row.get(&v).map_or("-".into(), |t| format!("<name:{t}>")))
                        .collect()
                })
                .collect();
            want.sort();
            prop_assert_eq!(got, want, "{}", text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A filter that lets everything through keeps the evaluator from being spared.
    #[test]
    fn counts_that_are_known_are_those_of_the_evaluator(facts in facts()) {
        let table: String = facts.iter().map(|f| f.join("\t") + "\n").collect();
        let (_dir, store) = store_of(&[("facts.tsv", &table)]);
        for (select, body, rest) in [
            ("?p (COUNT(*) AS ?n)", "?s ?p ?o", "GROUP BY ?p"),
            ("?p (COUNT(?o) AS ?n)", "?s ?p ?o", "GROUP BY ?p HAVING (?n > 1) ORDER BY DESC(?n) ?p LIMIT 2"),
            ("(COUNT(*) AS ?n)", "?s ?p ?o", ""),
            ("(COUNT(*) AS ?n) (COUNT(DISTINCT ?p) AS ?m)", "?s ?p ?o", ""),
            ("?p (COUNT(DISTINCT ?p) AS ?m) (COUNT(?s) + 1 AS ?n)", "?s ?p []", "GROUP BY ?p"),
            ("(COUNT(?s) AS ?n)", "?s :p0 ?o", ""),
            ("(COUNT(?s) AS ?n)", "?s :none ?o", ""),
            ("?s (COUNT(*) AS ?n)", "?s ?p ?o", "GROUP BY ?s"),
            ("?o (COUNT(?s) AS ?n) (COUNT(*) * 2 AS ?m)", "?s ?p ?o", "GROUP BY ?o ORDER BY DESC(?n) ?o LIMIT 2"),
            ("?o (COUNT(*) AS ?n)", "?s ?p ?o", "GROUP BY ?o ORDER BY DESC(?n) ?o LIMIT 2 OFFSET 1"),
            ("?o (COUNT(*) AS ?n)", "?s :p0 ?o", "GROUP BY ?o ORDER BY DESC(?n) ?o LIMIT 3"),
            ("?s (COUNT(?p) AS ?n)", "?s :p1 ?o", "GROUP BY ?s HAVING (COUNT(*) > 1) ORDER BY DESC(?n) ?s LIMIT 1"),
            ("?s (COUNT(*) AS ?n)", "?s :p1 ?o", "GROUP BY ?s ORDER BY DESC(COUNT(*)) ?s LIMIT 2"),
            ("?s (COUNT(*) AS ?n)", "?s :none ?o", "GROUP BY ?s"),
            ("?s (COUNT(*) AS ?n)", "?s ?p ?o", "GROUP BY ?s ORDER BY ?n ?s LIMIT 2"),
            ("(COUNT(*) AS ?n)", "?s ?p ?o", "GROUP BY ?s ORDER BY DESC(?n) LIMIT 3"),
            ("?o ?n", "{ SELECT ?o (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?o ORDER BY DESC(?n) }", "ORDER BY ?n ?o LIMIT 2"),
            ("?o ?n", "{ SELECT ?o (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?o ORDER BY ?n }", "ORDER BY DESC(?n) ?o LIMIT 2"),
            // these are left to the evaluator
            ("?p (COUNT(DISTINCT ?s) AS ?n)", "?s ?p ?o", "GROUP BY ?p"),
            ("(COUNT(?x) AS ?n)", "?s ?p ?o", ""),
            ("?s (COUNT(DISTINCT ?p) AS ?n)", "?s ?p ?o", "GROUP BY ?s"),
            ("?s (COUNT(DISTINCT ?o) AS ?n)", "?s :p0 ?o", "GROUP BY ?s"),
            ("(COUNT(*) AS ?n)", "?s ?p ?s", ""),
            ("(COUNT(*) AS ?n)", "?s ?s ?o", ""),
            ("(COUNT(*) AS ?n)", ":n0 ?p ?o", ""),
        ] {
            let text = |body: &str| format!("SELECT {select} WHERE {{ {body} }} {rest}");
            let mut known = rows(&store, &text(body));
            let mut evaluated = rows(&store, &text(&format!("{body} FILTER(true)")));
            if !rest.contains("ORDER") {
                known.sort();
                evaluated.sort();
            }
            prop_assert_eq!(known, evaluated, "{}", text(body));
        }
    }
}

const FILMS: &str = "Forrest Gump\tstarred_actors\tTom Hanks\n\
    Forrest Gump\trelease_year\t1994\n\
    Cast Away\tstarred_actors\tTom Hanks\n\
    100% \"Wolf\"\tstarred_actors\tIlai Swindells\n\
    starred_actors\tis_a\trelation\n";

#[test]
fn names_are_reached_by_their_iris() {
    let (_dir, store) = store_of(&[("films.tsv", FILMS)]);
    assert_eq!(
        rows(
            &store,
            "SELECT ?f { ?f :starred_actors <name:Tom%20Hanks> } ORDER BY ?f"
        ),
        [["<name:Cast%20Away>"], ["<name:Forrest%20Gump>"]]
    );
    // in a prefixed name, in a filter, and escaped more than it must be
    for pattern in [
        "?f :starred_actors :Tom%20Hanks",
        "?f :starred_actors ?who FILTER(?who = :Tom%20Hanks)",
        "?f :starred_actors <name:%54om%20Hanks>",
    ] {
        let text = format!("SELECT ?f {{ {pattern} }}");
        assert_eq!(rows(&store, &text).len(), 2, "{pattern}");
    }
    // a relation that is an entity is one term
    assert_eq!(
        rows(&store, "SELECT DISTINCT ?p ?o { ?s ?p ?x . ?p :is_a ?o }"),
        [["<name:starred_actors>", "<name:relation>"]]
    );
    assert_eq!(
        rows(
            &store,
            "PREFIX : <http://example.org/> SELECT ?s { ?s :starred_actors ?o }"
        )
        .len(),
        0
    );
}

#[test]
fn odd_names_lead_there_and_back() {
    let names = [
        "a b",
        "100%",
        "%41",
        "%6Eame:x",
        "name:x",
        "a|b",
        "\"quoted\"",
        "it's",
        "a\\b",
        "{x}",
        "[x]",
        "<x>",
        "a#b#c",
        "//host:port",
        "/m/0abc",
        "?q=1&r",
        "Café 東京 🎬",
        "a^b`c",
        ".",
        "a\u{a0}b",
        "\u{7f}",
        "\u{e000}",
        "::",
        "-1",
        "a, b; c",
    ];
    let table: String = names
        .iter()
        .map(|name| format!("{name}\tis\t{name}\n"))
        .collect();
    let options = LoadOptions::default();
    let dir = tempfile::tempdir().unwrap();
    let (file, graph) = (dir.path().join("odd.tsv"), dir.path().join("graph"));
    std::fs::write(&file, table).unwrap();
    load(&[Input::File(file)], &graph, &options, &|_| {}).unwrap();
    let store = Store::open(&graph).unwrap();
    for name in names {
        let iri = name_iri(name);
        assert_eq!(
            rows(&store, &format!("SELECT ?o {{ <{iri}> :is ?o }}")),
            [[format!("<{iri}>")]],
            "{name}"
        );
    }
    assert_eq!(rows(&store, "SELECT * { ?s ?p ?s }").len(), names.len());
    assert_eq!(rows(&store, r"SELECT * { :\/m\/0abc ?p ?o }").len(), 1);
}

#[test]
fn iris_of_the_scheme_are_kept_from_names() {
    // in a graph of IRIs alone, they mean themselves
    let triples = "<name:x> <name:is> \"an IRI\" .\n";
    let (_dir, store) = store_of(&[("a.nt", triples)]);
    assert_eq!(
        rows(&store, "SELECT ?s ?o { ?s :is ?o . <name:x> :is ?o }"),
        [["<name:x>", "\"an IRI\""]]
    );
    // beside names, they are escaped
    let (_dir, store) = store_of(&[("a.nt", triples), ("b.tsv", "x\tis\ty\n")]);
    assert_eq!(
        rows(&store, "SELECT ?p ?o { <name:x> ?p ?o }"),
        [["<name:is>", "<name:y>"]]
    );
    assert_eq!(
        rows(&store, "SELECT ?p ?o { <name:%6Eame:x> ?p ?o }"),
        [["<name:%6Eame:is>", "\"an IRI\""]]
    );
}

#[test]
fn the_time_limit_stops_joins_that_give_nothing() {
    let table: String = (0..400)
        .map(|i| format!("e{i}\tr{}\te{}\n", i % 7, i * 31 % 400))
        .collect();
    let (_dir, store) = store_of(&[("t.tsv", &table)]);
    let limit = Duration::from_millis(300);
    let options = SparqlOptions {
        timeout: Some(limit),
        ..SparqlOptions::default()
    };
    // 400 triples in four independent patterns: 2.56e10 combinations
    let all = "?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?s ?h";
    for text in [
        format!("SELECT (COUNT(*) AS ?n) {{ {all} }}"),
        format!("SELECT ?a {{ {all} FILTER(CONCAT(STR(?a), STR(?d), STR(?f)) = STR(?h)) }}"),
        format!("ASK {{ {all} FILTER(CONCAT(STR(?a), STR(?c), STR(?e)) = STR(?h)) }}"),
        format!("SELECT DISTINCT ?z {{ {all} BIND(1 AS ?z) }} ORDER BY ?z"),
        format!(
            "SELECT ?a {{ ?a :r0 ?x MINUS {{ {all} FILTER(CONCAT(STR(?a), STR(?c), STR(?e)) = STR(?h)) }} }}"
        ),
        format!(
            "SELECT ?a {{ ?a :r0 ?x FILTER NOT EXISTS {{ {all} FILTER(CONCAT(STR(?a), STR(?c), STR(?e)) = STR(?h)) }} }}"
        ),
        format!("SELECT ?a {{ ?a :r0 ?x OPTIONAL {{ {all} }} }}"),
        format!("CONSTRUCT {{ ?a :x ?b }} WHERE {{ {all} }}"),
        "SELECT (COUNT(*) AS ?n) { ?a (:r0|!:r0)* ?b . ?c (:r0|!:r0)* ?d . ?e (:r1|!:r1)* ?f }"
            .into(),
        // 1e12 combinations that read no triple
        format!(
            "SELECT (COUNT(*) AS ?n) {{ {} }}",
            ["?a", "?b", "?c", "?d"]
                .map(|v| format!("VALUES {v} {{ {} }}", "1 ".repeat(1000)))
                .concat()
        ),
        "SELECT (COUNT(*) AS ?n) {
            { SELECT ?a (COUNT(*) AS ?k) { ?a ?p ?b } GROUP BY ?a }
            { SELECT ?c (COUNT(*) AS ?l) { ?c ?p ?d } GROUP BY ?c }
            { SELECT ?e (COUNT(*) AS ?m) { ?e ?p ?f } GROUP BY ?e }
            { SELECT ?g (COUNT(*) AS ?n) { ?g ?p ?h } GROUP BY ?g } }"
            .into(),
    ] {
        let start = Instant::now();
        let result = ours(&store, &text, &options);
        let took = start.elapsed();
        assert!(
            matches!(result, Err(Error::OutOfTime { limit_ms: 300, .. })),
            "{text}: {result:?}"
        );
        // it takes some 0.4 s alone; other work on the machine may stretch that
        assert!(took < limit * 15, "{text} took {took:?}");
    }
}

#[test]
fn rows_beyond_the_limit_are_left_out_and_said_to_be() {
    let (_dir, store) = store_of(&[("films.tsv", FILMS)]);
    let run = |max_rows, text: &str| {
        let options = SparqlOptions {
            max_rows,
            ..SparqlOptions::default()
        };
        let mut out = Vec::new();
        let written = sparql::write(&store, text, &options, ResultFormat::Csv, &mut out).unwrap();
        (written.rows, written.is_cut)
    };
    for text in ["SELECT * { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }"] {
        assert_eq!(run(None, text), (5, false));
        assert_eq!(run(Some(5), text), (5, false));
        assert_eq!(run(Some(4), text), (4, true));
        assert_eq!(run(Some(0), text), (0, true));
    }
}

fn written(store: &Store, text: &str, format: ResultFormat) -> String {
    let mut out = Vec::new();
    sparql::write(store, text, &SparqlOptions::default(), format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn answers_are_written_in_every_format() {
    let (_dir, store) = store_of(&[("films.tsv", FILMS)]);
    let select =
        "SELECT ?f ?y { ?f :starred_actors ?a OPTIONAL { ?f :release_year ?y } } ORDER BY ?f";
    assert_eq!(
        written(&store, select, ResultFormat::Table { width: 11 }),
        "f            y\n\
         -----------  ----\n\
         100% \"Wolf\"\n\
         Cast Away\n\
         Forrest Gu…  1994\n"
    );
    assert_eq!(
        written(&store, select, ResultFormat::Csv),
        "f,y\r\nname:100%25%20%22Wolf%22,\r\nname:Cast%20Away,\r\nname:Forrest%20Gump,name:1994\r\n"
    );
    assert_eq!(
        written(&store, select, ResultFormat::Tsv),
        "?f\t?y\n<name:100%25%20%22Wolf%22>\t\n<name:Cast%20Away>\t\n<name:Forrest%20Gump>\t<name:1994>\n"
    );
    let one = "SELECT ?y { :Forrest%20Gump :release_year ?y }";
    assert_eq!(
        written(&store, one, ResultFormat::Json),
        "{\"head\":{\"vars\":[\"y\"]},\"results\":{\"bindings\":\
         [{\"y\":{\"type\":\"uri\",\"value\":\"name:1994\"}}]}}\n"
    );
    assert!(written(&store, one, ResultFormat::Xml).contains("<uri>name:1994</uri>"));

    for (format, yes) in [
        (ResultFormat::Table { width: 10 }, "yes\n"),
        (ResultFormat::Json, "{\"head\":{},\"boolean\":true}\n"),
        (ResultFormat::Csv, "true"),
    ] {
        assert_eq!(written(&store, "ASK { ?s ?p ?o }", format), yes);
    }

    let construct = "CONSTRUCT { ?a :in ?f } WHERE { ?f :starred_actors ?a . ?f :release_year ?y }";
    let triple = "<name:Tom%20Hanks> <name:in> <name:Forrest%20Gump> .\n";
    assert_eq!(written(&store, construct, ResultFormat::NTriples), triple);
    assert_eq!(written(&store, construct, ResultFormat::Turtle), triple);
    assert_eq!(
        written(&store, construct, ResultFormat::Table { width: 40 }),
        "subject    predicate  object\n\
         ---------  ---------  ------------\n\
         Tom Hanks  in         Forrest Gump\n"
    );
    assert!(
        written(&store, construct, ResultFormat::Csv).starts_with("subject,predicate,object\r\n")
    );

    let refused = sparql::write(
        &store,
        select,
        &SparqlOptions::default(),
        ResultFormat::Turtle,
        &mut Vec::new(),
    )
    .unwrap_err();
    assert!(
        refused.to_string().contains("cannot be Turtle"),
        "{refused}"
    );
}

#[test]
fn what_is_off_is_refused_in_words() {
    let (_dir, store) = store_of(&[("films.tsv", FILMS)]);
    for (text, words) in [
        ("INSERT DATA { :a :b :c }", "updates are not supported"),
        (
            "PREFIX x: <http://x/>\nDELETE WHERE { ?s ?p ?o }",
            "updates are not supported",
        ),
        ("SELECT * { SERVICE <http://x/> { ?s ?p ?o } }", "`SERVICE`"),
        ("SELECT * FROM <http://x/> { ?s ?p ?o }", "`FROM`"),
        ("SELECT * FROM NAMED <http://x/> { ?s ?p ?o }", "`FROM`"),
        ("SELECT ?x { ?x <http://x/f>(1) ?y }", "error at 1:"),
        ("SELECT ?x {\n  ?x :p\n}", "error at 3:"),
        ("", "error at 1:1"),
        ("SELECT ?x { ?x ex:p ?y }", "syntax error"),
        ("SELECT (<http://x/f>(1) AS ?x) { }", "custom function"),
    ] {
        let error = ours(&store, text, &SparqlOptions::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert!(error.to_string().len() < 400, "{error}");
    }
}

#[test]
fn large_and_deep_queries_end_in_an_answer_or_an_error() {
    let (_dir, store) = store_of(&[("films.tsv", FILMS)]);
    let nested = |open: &str, middle: &str, close: &str, n| {
        format!("ASK {{ {}{middle}{} }}", open.repeat(n), close.repeat(n))
    };
    for n in [1, 60, 120, 50_000] {
        for text in [
            nested("FILTER(", "1", ")", 1)
                .replace('1', &format!("{}1{}", "(".repeat(n), ")".repeat(n))),
            nested("{", "?s ?p ?o", "}", n),
            nested("{ SELECT * {", "?s ?p ?o", "} }", n),
            nested("?s ?p ?o OPTIONAL {", "?s ?p ?o", "}", n),
            nested("?s ?p ?o FILTER EXISTS {", "?s ?p ?o", "}", n),
            format!("ASK {{ ?s {}:p{} ?o }}", "(".repeat(n), ")*".repeat(n)),
            format!("ASK {{ ?s :p {}1{} }}", "[ :p ".repeat(n), "]".repeat(n)),
            format!("ASK {{ ?s :p {}1{} }}", "(".repeat(n), ")".repeat(n)),
        ] {
            let result = ours(&store, &text, &SparqlOptions::default());
            match result {
                Ok(_) => assert!(n <= 120),
                Err(Error::SparqlRefused { .. }) => assert!(n >= 60, "{n} {}", &text[..40]),
                Err(e) => panic!("{n} {}: {e}", &text[..40]),
            }
        }
    }
    // the longest chains that are let through, and longer ones
    let timed = SparqlOptions {
        timeout: Some(Duration::from_secs(5)),
        ..SparqlOptions::default()
    };
    for n in [30, 60, 250, 900, 1900, 100_000] {
        for text in [
            format!("ASK {{ FILTER(1{}) }}", "+1".repeat(n)),
            format!("ASK {{ FILTER({}1) }}", "!".repeat(n)),
            format!("ASK {{ FILTER(1{}) }}", "||0".repeat(n / 2)),
            format!("ASK {{ FILTER(?x IN ({})) }}", vec!["1"; n * 2].join(",")),
            format!("ASK {{ VALUES ?x {{ {} }} }}", "1 ".repeat(n * 2)),
            format!("ASK {{ ?s :p{} ?o }}", "/:p".repeat(n)),
            format!("ASK {{ ?s :p{} ?o }}", "|:p".repeat(n)),
            format!("ASK {{ {{}} {} }}", "UNION {}".repeat(n / 2)),
            format!("ASK {{ {} }}", "OPTIONAL {} ".repeat(n / 2)),
            format!("ASK {{ {} }}", "FILTER(1) ".repeat(n / 2)),
            format!("ASK {{ {} }}", "MINUS {} ".repeat(n / 2)),
            format!("ASK {{ {} }}", "?s ?p ?o.".repeat(n / 2)),
            format!("ASK {{ ?s ?p {} ?o }}", "?o,".repeat(n)),
            format!("ASK {{ ?s ?p ({}) }}", "1 ".repeat(n)),
            format!("ASK {{ {} }}", "VALUES ?x { 1 } ".repeat(n)),
            format!("ASK {{ {} }}", "{ SELECT * {} } ".repeat(n)),
            format!("ASK {{ {} }}", "?s :p* ?o.".repeat(n)),
            format!("ASK {{ {} }}", "OPTIONAL { ?s ?p ?o } ".repeat(n)),
            format!(
                "ASK {{ ?s ?p ?o {} }}",
                "FILTER EXISTS { ?s ?p ?o } ".repeat(n)
            ),
        ] {
            let start = Instant::now();
            let result = ours(&store, &text, &timed);
            let took = start.elapsed();
            assert!(
                took < Duration::from_secs(20),
                "{n} {} {took:?}",
                &text[..40]
            );
            if took > Duration::from_secs(1) {
                println!("{n} {} took {took:?}", &text[..40]);
            }
            assert!(
                matches!(
                    result,
                    Ok(_)
                        | Err(Error::SparqlRefused { .. }
                            | Error::SparqlSyntax(_)
                            | Error::OutOfTime { .. })
                ),
                "{n} {}: {result:?}",
                &text[..40]
            );
        }
    }
    let long = format!("ASK {{ }} #{}", "x".repeat(MAX_TEXT));
    assert!(matches!(
        ours(&store, &long, &SparqlOptions::default()),
        Err(Error::SparqlRefused { .. })
    ));
}
