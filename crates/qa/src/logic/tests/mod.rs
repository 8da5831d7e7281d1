//! Forms run on graphs: against SPARQL, and by hand.

mod algebra;

use std::collections::BTreeSet;

use proptest::prelude::*;
use wherefore_graph::sparql::{self, QueryAnswer, RdfTerm, SparqlOptions};
use wherefore_graph::{
    EntityId, Graph, Input, Literal, LiteralKind, LoadOptions, NameMatch, Store, load, toy,
};

use super::*;
use crate::error::Error;

const NOW: &str = "2020-06-01";

fn now() -> Moment {
    Moment::parse(NOW).unwrap()
}

fn store(lines: &str, ending: &str) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("graph.{ending}"));
    std::fs::write(&file, lines).unwrap();
    let out = folder.path().join("graph");
    load(&[Input::File(file)], &out, &LoadOptions::default(), &|_| {}).unwrap();
    let store = Store::open(&out).unwrap();
    (folder, store)
}

fn plan(form: &str, graph: &dyn Graph) -> Plan {
    Plan::new(&form.parse().unwrap(), graph, now()).unwrap()
}

fn labels(graph: &dyn Graph, entities: &[EntityId]) -> Vec<String> {
    entities
        .iter()
        .map(|&e| graph.entity_label(e).unwrap().into_owned())
        .collect()
}

fn answers(form: &str, graph: &dyn Graph) -> Vec<String> {
    let outcome = run(&plan(form, graph), graph, &RunLimits::default()).unwrap();
    match (outcome.computed(), outcome) {
        (Some((text, _)), _) => vec![text],
        (None, Outcome::Table(rows)) => {
            let told = rows.told(graph, usize::MAX).unwrap();
            let row = |row: &Vec<Vec<String>>| row.iter().map(|c| c.join("+")).collect::<Vec<_>>();
            told.rows.iter().map(|r| row(r).join(" | ")).collect()
        }
        (None, Outcome::Number(..)) => vec![],
        (None, outcome) => labels(graph, outcome.entities()),
    }
}

/// What a form comes to, as both ways of running it show it.
#[derive(Clone, Debug, PartialEq)]
enum Shown {
    Terms(Vec<String>),
    Number(Option<Quantity>),
    Truth(bool),
    /// In their order; each with the sets of its cells.
    Rows(Vec<(String, Vec<BTreeSet<String>>)>),
}

/// The same, but for the last digits of numbers.
fn agree(a: &Shown, b: &Shown) -> bool {
    match (a, b) {
        (Shown::Number(Some(Quantity::Number(a))), Shown::Number(Some(Quantity::Number(b)))) => {
            a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        (Shown::Number(Some(a)), Shown::Number(Some(b))) => {
            a.order(b).is_some_and(std::cmp::Ordering::is_eq)
        }
        (a, b) => a == b,
    }
}

/// A value as both show it.
fn cell(value: Quantity) -> String {
    match value {
        Quantity::Number(n) => format!("{:.8e}", n + 0.0),
        Quantity::Time(t) => t.in_utc().to_string(),
    }
}

fn term(entity: EntityId, store: &Store) -> String {
    match store.entity_term(entity).unwrap() {
        wherefore_graph::Term::Iri(iri) => format!("<{iri}>"),
        wherefore_graph::Term::Name(name) => format!("<{}>", sparql::name_iri(&name)),
        other => other.to_string(),
    }
}

/// What SPARQL makes of a plan. Nothing if its query is too long to be planned.
fn by_sparql(plan: &Plan, store: &Store) -> Option<Shown> {
    let query = plan.sparql();
    let value = |text: &str| {
        let value = Value::of_text(text);
        let time = value.time.filter(|_| text.contains('T'));
        time.map(Quantity::Time)
            .or(value.number.map(Quantity::Number))
    };
    let shown = sparql::query(store, &query, &SparqlOptions::default(), |answer| {
        let rows = match answer {
            QueryAnswer::Rows(rows) => rows,
            QueryAnswer::Boolean(yes) => return Ok(Shown::Truth(yes)),
            _ => panic!("no rows"),
        };
        let rows = rows
            .map(|row| Ok(row?.values().to_vec()))
            .collect::<wherefore_graph::Result<Vec<Vec<Option<RdfTerm>>>>>()?;
        Ok(match &plan.root {
            plan::Root::Number(_) => Shown::Number(rows.first().and_then(|row| match &row[0] {
                Some(RdfTerm::Literal(literal)) => value(literal.value()),
                _ => None,
            })),
            plan::Root::Table(table) => {
                let mut shown: Vec<(String, Vec<BTreeSet<String>>)> = Vec::new();
                for row in rows {
                    let member = row[0].clone().unwrap().to_string();
                    if shown.last().is_none_or(|(last, _)| *last != member) {
                        shown.push((member, vec![BTreeSet::new(); row.len() - 1]));
                    }
                    let (_, cells) = shown.last_mut().unwrap();
                    for (i, part) in row.iter().skip(1).enumerate() {
                        let is_path = matches!(table.columns[i].measure, plan::Measure::Path(..));
                        cells[i].extend(part.as_ref().map(|part| match part {
                            RdfTerm::Literal(literal) if !is_path => {
                                value(literal.value()).map(cell).unwrap()
                            }
                            part => part.to_string(),
                        }));
                    }
                }
                Shown::Rows(shown)
            }
            _ => {
                let mut terms: Vec<String> = (rows.into_iter())
                    .map(|row| row[0].clone().expect("the variable is bound").to_string())
                    .collect();
                terms.sort();
                Shown::Terms(terms)
            }
        })
    });
    match shown {
        Ok(shown) => Some(shown),
        Err(wherefore_graph::Error::SparqlRefused { .. }) => None,
        Err(error) => panic!("{error}\n{query}"),
    }
}

/// What running comes to.
fn by_running(plan: &Plan, store: &Store) -> Shown {
    shown(run(plan, store, &RunLimits::default()).unwrap(), store)
}

fn shown(outcome: Outcome, store: &Store) -> Shown {
    match outcome {
        Outcome::Number(number, _) => Shown::Number(number),
        Outcome::Truth(yes, _) => Shown::Truth(yes),
        Outcome::Table(rows) => {
            let cells = |row: &Vec<Vec<Cell>>| {
                let texts = |cell_of: &Vec<Cell>| {
                    let text = |part: &Cell| match part {
                        Cell::Entity(entity) => term(*entity, store),
                        Cell::Value(value) => cell(*value),
                    };
                    cell_of.iter().map(text).collect()
                };
                row.iter().map(texts).collect()
            };
            let members = rows.members.iter().map(|&member| term(member, store));
            Shown::Rows(members.zip(rows.cells.iter().map(cells)).collect())
        }
        Outcome::Entities(entities) => {
            let mut terms: Vec<String> = entities.iter().map(|&e| term(e, store)).collect();
            terms.sort();
            Shown::Terms(terms)
        }
    }
}

#[test]
fn forms_run_on_the_toy_graph() {
    let graph = toy::graph();
    for (form, wanted) in [
        (
            "(JOIN (R plays_in) [San Francisco Giants])",
            &["Oracle Park"][..],
        ),
        ("(JOIN mascot_of [San Francisco Giants])", &["Lou Seal"]),
        (
            "(JOIN (R won) (JOIN (R mascot_of) [Lou Seal]))",
            &[
                "World Series 2010",
                "World Series 2012",
                "World Series 2014",
            ],
        ),
        (
            "(AND (JOIN (R won) [san francisco giants]) (JOIN (R lost) [Kansas City Royals]))",
            &["World Series 2014"],
        ),
        ("(COUNT (JOIN (R won) [San Francisco Giants]))", &["3"]),
        ("(JOIN [located in] California)", &["San Francisco"]),
        // 41915 is a name here, and reads as a number
        ("(JOIN capacity 41915.0)", &["m.0seat"]),
        ("(gt (JOIN venue_record capacity) 40000)", &["Oracle Park"]),
        ("(lt capacity 40000)", &[]),
        (
            "(ARGMAX (JOIN located_in [San Francisco]) (JOIN venue_record capacity))",
            &["Oracle Park"],
        ),
        (
            "(AND (JOIN located_in [San Francisco]) (ge (JOIN venue_record capacity) 41915))",
            &["Oracle Park"],
        ),
    ] {
        assert_eq!(answers(form, &graph), wanted, "{form}");
    }
}

#[test]
fn names_that_the_graph_lacks_are_told_and_still_translate() {
    let graph = toy::graph();
    let plan = plan("(JOIN (R coached) [Lou Reed])", &graph);
    assert_eq!(plan.missing(), ["relation `coached`", "entity `Lou Reed`"]);
    assert!(
        plan.sparql()
            .contains("<name:Lou%20Reed> <name:coached> ?x")
    );
    let error = run(&plan, &graph, &RunLimits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the graph has no relation `coached`, no entity `Lou Reed`"
    );
}

#[test]
fn extremes_of_extremes_run_though_they_are_too_long_as_sparql() {
    let (_folder, store) = store(OFFICES, "nt");
    let nested = |n: usize| format!("{}Office{}", "(ARGMAX ".repeat(n), " votes)".repeat(n));
    assert!(plan(&nested(4), &store).query().is_ok());
    let plan = plan(&nested(31), &store);
    let told = "this form is too long as SPARQL: more than 1048576 bytes";
    assert_eq!(plan.query().unwrap_err().to_string(), told);
    assert_eq!(plan.sparql(), format!("# {told}"));
    assert_eq!(answers(&nested(31), &store), ["b"]);
    assert_eq!(
        answers(
            &format!("{}club{}", "(ARGMAX ".repeat(25), " (JOIN a b))".repeat(25)),
            &wherefore_graph::MemoryGraph::from_names([
                ("x", "a", "y"),
                ("y", "b", "7"),
                ("x", "type", "club"),
            ])
        ),
        ["x"]
    );
}

#[test]
fn evidence_is_the_triples_that_made_it_match() {
    let graph = toy::graph();
    let told = |form: &str, entity: &str| -> Vec<String> {
        let plan = plan(form, &graph);
        let limits = RunLimits::default();
        let mut runner = Runner::new(&plan, &graph, &limits).unwrap();
        let entity = graph.entities_named(entity, NameMatch::Exact).unwrap()[0];
        runner
            .evidence(entity)
            .unwrap()
            .iter()
            .map(|t| {
                format!(
                    "{} {} {}",
                    graph.entity_label(t.head).unwrap(),
                    graph.relation_label(t.relation).unwrap(),
                    graph.entity_label(t.tail).unwrap()
                )
            })
            .collect()
    };
    assert_eq!(
        told(
            "(JOIN (R won) (JOIN (R mascot_of) [Lou Seal]))",
            "World Series 2010"
        ),
        [
            "Lou Seal mascot of San Francisco Giants",
            "San Francisco Giants won World Series 2010"
        ]
    );
    assert_eq!(
        told(
            "(ARGMAX (JOIN located_in [San Francisco]) (JOIN venue_record capacity))",
            "Oracle Park"
        ),
        [
            "Oracle Park located in San Francisco",
            "Oracle Park venue record m.0seat",
            "m.0seat capacity 41915"
        ]
    );
    assert_eq!(
        told("(JOIN (R won) [San Francisco Giants])", "California"),
        [""; 0]
    );
}

#[test]
fn forms_are_spoken() {
    let graph = toy::graph();
    for (form, english) in [
        ("(JOIN (R capital) [France])", "the capital of France"),
        ("(JOIN capital [Paris])", "things whose capital is Paris"),
        (
            "(JOIN (R plays_in) [San Francisco Giants])",
            "things that San Francisco Giants has as plays in",
        ),
        (
            "(AND (JOIN (R won) [San Francisco Giants]) (JOIN lost_by X))",
            "things that San Francisco Giants has as won and lost by X",
        ),
        (
            "(COUNT (JOIN (R won) (JOIN mascot [Lou Seal])))",
            "how many things that (things whose mascot is Lou Seal) have as won",
        ),
        (
            "(JOIN (R mascot_of) [Lou Seal])",
            "things that Lou Seal is a mascot of",
        ),
        (
            "(JOIN mascot_of [San Francisco Giants])",
            "things that are mascots of San Francisco Giants",
        ),
        (
            "(ARGMAX (OR A B) capacity)",
            "the one with the largest capacity among A or B",
        ),
        (
            "(ARGMIN club capacity)",
            "the club with the smallest capacity",
        ),
        (
            "(lt (JOIN venue_record capacity) 5)",
            "things whose capacity of the venue record is less than 5",
        ),
        (
            "(TC (JOIN (R winner) X) from 2010)",
            "the winner of X, as of 2010",
        ),
        (
            "(JOIN borders (AND (JOIN borders Spain) (JOIN borders Germany)))",
            "things with borders: (things with borders: Spain and with borders: Germany)",
        ),
        (
            "(AND (JOIN borders (JOIN borders Spain)) (JOIN borders Germany))",
            "things with borders: (things with borders: Spain) and with borders: Germany",
        ),
        (
            "(AND (ARGMAX club capacity) (JOIN owner X))",
            "those of (the club with the largest capacity) whose owner is X",
        ),
        ("(JOIN (R winner) (OR A B))", "the winner of (A or B)"),
        ("(OR (JOIN (R winner) A) B)", "(the winner of A) or B"),
        (
            "(lt (JOIN (R owner) capacity) 5)",
            "things whose capacity of the one that has them as owner is less than 5",
        ),
        (
            "(ARGMAX club (JOIN venue (JOIN (R owner) capacity)))",
            "the club with the largest capacity of the one that has the venue as owner",
        ),
    ] {
        let form: Form = form.parse().unwrap();
        assert_eq!(form.english(&graph).unwrap(), english);
    }
}

/// Offices with their periods, in triples as RDF has them.
const OFFICES: &str = r#"
<http://e/p> <http://e/held> <http://e/a> .
<http://e/p> <http://e/held> <http://e/b> .
<http://e/p> <http://e/held> <http://e/c> .
<http://e/a> <http://e/from> "2001"^^<http://www.w3.org/2001/XMLSchema#gYear> .
<http://e/a> <http://e/to> "2009-01-20"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://e/b> <http://e/from> "2009-01-20"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://e/a> <http://e/votes> "5" .
<http://e/b> <http://e/votes> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://e/c> <http://e/votes> "9"^^<http://example.org/km> .
<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Office> .
<http://e/b> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Office> .
"#;

#[test]
fn periods_classes_and_units_are_minded() {
    let (_folder, store) = store(OFFICES, "nt");
    for (form, wanted) in [
        // begun by the end of 2009 and not ended before its beginning; c has no period at all
        ("(TC (JOIN (R held) p) from 2009)", &["a", "b", "c"][..]),
        ("(TC (JOIN (R held) p) from 2005)", &["a", "c"]),
        ("(TC (JOIN (R held) p) to NOW)", &["b", "c"]),
        ("(AND Office (JOIN (R held) p))", &["a", "b"]),
        ("(COUNT Office)", &["2"]),
        // 9 km is no number
        ("(ARGMAX (JOIN (R held) p) votes)", &["b"]),
        ("(ARGMIN Office from)", &["a"]),
        ("(JOIN from 2001)", &["a"]),
        ("(gt from 2001)", &["b"]),
        ("(ge votes 5)", &["a", "b"]),
    ] {
        assert_eq!(answers(form, &store), wanted, "{form}");
        let plan = plan(form, &store);
        assert_eq!(
            by_sparql(&plan, &store).unwrap(),
            by_running(&plan, &store),
            "{form}"
        );
    }
    let bad = Plan::new(&"(lt votes \"many\")".parse().unwrap(), &store, now());
    assert_eq!(
        bad.unwrap_err().to_string(),
        "`\"many\"` is not a number or a date"
    );
}

#[test]
fn the_counterpart_of_a_beginning_or_an_end_is_the_one_that_the_graph_has() {
    let reigns = |begin: &str, end: &str| {
        let lines: String = [("a", 1980, 1990), ("b", 1990, 2000), ("c", 2000, 2010)]
            .map(|(x, from, to)| {
                format!("{x}\ttype\treign\n{x}\t{begin}\t{from}\n{x}\t{end}\t{to}\n")
            })
            .concat();
        store(&lines, "tsv")
    };
    for (begin, end, asked) in [
        ("begin", "end", "end"),
        ("begin", "end", "begin"),
        ("start", "end", "end"),
        ("start_date", "end_date", "[End Date]"),
        ("start_date", "end_date", "[Start Date]"),
        ("reign.begin", "reign.end", "reign.end"),
        ("startDate", "endDate", "[startdate]"),
    ] {
        let (_folder, store) = reigns(begin, end);
        let form = format!("(TC reign {asked} 1995)");
        assert_eq!(answers(&form, &store), ["b"], "{form} with {begin}");
    }
}

#[test]
fn a_label_of_several_relations_is_told_with_their_identities() {
    let lines = r#"
<http://e/a> <http://e/p26> <http://e/b> .
<http://e/a> <http://f/p26> <http://e/c> .
<http://e/p26> <http://www.w3.org/2000/01/rdf-schema#label> "spouse" .
<http://f/p26> <http://www.w3.org/2000/01/rdf-schema#label> "spouse" .
"#;
    let (_folder, store) = store(lines, "nt");
    let several = plan("(JOIN (R spouse) a)", &store);
    let error = run(&several, &store, &RunLimits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the graph has no single relation `spouse` but 2: write `[http://e/p26]` or `[http://f/p26]`"
    );
    assert_eq!(answers("(JOIN (R [http://f/p26]) a)", &store), ["c"]);
}

#[test]
fn extremes_of_times_do_not_depend_on_their_order() {
    // with and without zones, hours apart; in UTC b is the latest and c the earliest
    let times = [
        ("a", "2000-01-01T12:00:00"),
        ("b", "2000-01-01T18:00:00Z"),
        ("c", "2000-01-01T08:00:00Z"),
        ("d", "2000-01-01T17:00:00"),
    ];
    for first in 0..times.len() {
        let mut lines = String::new();
        for (x, time) in times.iter().cycle().skip(first).take(times.len()) {
            lines += &format!(
                "<http://e/{x}> <http://e/of> <http://e/s> .\n<http://e/{x}> <http://e/at> \"{time}\"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
            );
        }
        let (_folder, store) = store(&lines, "nt");
        for (form, wanted) in [
            ("(ARGMAX (JOIN of s) at)", "b"),
            ("(ARGMIN (JOIN of s) at)", "c"),
        ] {
            assert_eq!(answers(form, &store), [wanted], "{form} from {first}");
            let plan = plan(form, &store);
            let run = by_running(&plan, &store);
            assert_eq!(by_sparql(&plan, &store).unwrap(), run, "{form}");
        }
    }
}

#[test]
fn languages_and_datatypes_of_constants_are_minded() {
    let lines = r#"
<http://e/a> <http://e/h> "5"^^<http://ex.org/km> .
<http://e/b> <http://e/h> "5"^^<http://ex.org/mile> .
<http://e/c> <http://e/h> "5"@en .
<http://e/d> <http://e/h> "hbo"@en .
<http://e/e> <http://e/h> "hbo"@de .
<http://e/f> <http://e/h> "hbo" .
<http://e/g> <http://e/h> "bbc" .
<http://e/i> <http://e/h> "itv"@de .
"#;
    let (_folder, typed) = store(lines, "nt");
    for (form, wanted) in [
        (r#"(JOIN h "5"^^<http://ex.org/km>)"#, &["a"][..]),
        (r#"(JOIN h "hbo"@en)"#, &["d"]),
        (r#"(JOIN h "hbo")"#, &["d", "e", "f"]),
        // text that says no language may be in any
        (r#"(JOIN h "bbc"@en)"#, &["g"]),
    ] {
        assert_eq!(answers(form, &typed), wanted, "{form}");
        let plan = plan(form, &typed);
        let run = by_running(&plan, &typed);
        assert_eq!(by_sparql(&plan, &typed).unwrap(), run, "{form}");
    }
    let other = plan(r#"(JOIN h "itv"@en)"#, &typed);
    assert_eq!(other.missing(), ["entity `\"itv\"@en`"]);
    let (_folder, names) = store("a\th\thbo\n", "tsv");
    assert_eq!(answers(r#"(JOIN h "hbo"@en)"#, &names), ["a"]);
}

#[test]
fn time_and_rows_are_limited() {
    let lines: String = (0..3000).map(|i| format!("hub\tr\te{i}\n")).collect();
    let (_folder, store) = store(&lines, "tsv");
    let plan = plan(
        "(JOIN (R r) (JOIN r (JOIN (R r) (JOIN r (JOIN (R r) hub)))))",
        &store,
    );
    let limits = RunLimits {
        rows: 100,
        ..RunLimits::default()
    };
    let error = run(&plan, &store, &limits).unwrap_err();
    assert!(matches!(error, Error::FormTooLarge { limit: 100 }));
    let limits = RunLimits {
        time: std::time::Duration::ZERO,
        ..RunLimits::default()
    };
    let error = run(&plan, &store, &limits).unwrap_err();
    assert_eq!(error.code(), "out-of-time");
}

#[test]
fn evidence_is_found_where_the_set_is() {
    // a ladder of 26 rungs, two wide, that leads nowhere, beside a chain from s to t
    let mut lines = String::new();
    for i in 0..26 {
        for (a, b) in [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")] {
            lines += &format!("{a}{i}\tr\t{b}{}\n", i + 1);
        }
        lines += &format!("c{i}\tr\tc{}\n", i + 1);
    }
    lines += "c0\tr\ta1\n";
    for i in 0..30_000 {
        lines += &format!("city {i}\ttype\tcity\ncity {i}\tpop\t7\n");
    }
    let (_folder, store) = store(&lines, "tsv");
    let limits = RunLimits::default();
    let chain = format!("{}c26{}", "(JOIN r ".repeat(26), ")".repeat(26));
    let chain = plan(&chain, &store);
    let mut runner = Runner::new(&chain, &store, &limits).unwrap();
    let found = runner.run().unwrap();
    assert_eq!(labels(&store, found.entities()), ["c0"]);
    assert_eq!(runner.evidence(found.entities()[0]).unwrap().len(), 26);
    assert!(runner.leads_on(found.entities()[0], &[]).unwrap());

    let ties = plan("(ARGMAX city pop)", &store);
    let mut runner = Runner::new(&ties, &store, &limits).unwrap();
    let found = runner.run().unwrap();
    assert_eq!(found.entities().len(), 30_000);
    for &city in found.entities() {
        assert_eq!(runner.evidence(city).unwrap().len(), 2);
    }
}

/// Few cases, as each loads a graph; `PROPTEST_CASES` asks for more.
fn cases() -> ProptestConfig {
    let config = ProptestConfig::default();
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig {
            cases: 96,
            ..config
        },
    }
}

/// Four entities with names, three relations between them and two with values.
fn any_lines() -> impl Strategy<Value = String> {
    let entity = 0..4u8;
    let edge = (entity.clone(), 0..3u8, entity.clone())
        .prop_map(|(h, r, t)| format!("<http://e/e{h}> <http://e/r{r}> <http://e/e{t}> .\n"));
    let xsd = "http://www.w3.org/2001/XMLSchema#";
    let value = prop_oneof![
        (0..6i32).prop_map(move |n| format!("\"{n}\"^^<{xsd}integer>")),
        (0..6i32).prop_map(move |n| format!("\"{n}.0\"^^<{xsd}decimal>")),
        (0..6i32).prop_map(move |n| format!("\"{n}e0\"^^<{xsd}double>")),
        (2000..2004i32).prop_map(move |n| format!("\"{n}\"^^<{xsd}gYear>")),
        (2000..2004i32).prop_map(move |n| format!("\"{n}-01\"^^<{xsd}gYearMonth>")),
        (2000..2004i32).prop_map(move |n| format!("\"{n}-01-01\"^^<{xsd}date>")),
        (2000..2004i32).prop_map(move |n| format!("\"{n}-06-01T12:00:00\"^^<{xsd}dateTime>")),
        (2000..2004i32).prop_map(move |n| format!("\"{n}-06-01T14:00:00Z\"^^<{xsd}dateTime>")),
        (0..2004i32).prop_map(|n| format!("\"{n}\"")),
        (0..6i32).prop_map(move |n| format!("\"{n}\"^^<{xsd}unsignedByte>")),
        (0..6i32).prop_map(move |n| format!("\"{n}.7\"^^<{xsd}integer>")),
        prop_oneof![Just("NaN"), Just("INF"), Just("-INF"), Just("nan")].prop_flat_map(
            move |n| prop_oneof![
                Just(format!("\"{n}\"^^<{xsd}double>")),
                Just(format!("\"{n}\""))
            ]
        ),
        Just("\" 3 \"".to_owned()),
        Just("\"true\"".to_owned()),
        Just(format!("\"true\"^^<{xsd}boolean>")),
        Just("\"5\"^^<http://example.org/km>".to_owned()),
        Just("\"2001\"@en".to_owned()),
        Just("\"many\"".to_owned()),
    ];
    let valued = (
        entity.clone(),
        prop_oneof![Just("from"), Just("to"), Just("p")],
        value,
    )
        .prop_map(|(h, r, v)| format!("<http://e/e{h}> <http://e/{r}> {v} .\n"));
    let typed = (entity, 0..2u8).prop_map(|(h, c)| {
        format!(
            "<http://e/e{h}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C{c}> .\n"
        )
    });
    (
        prop::collection::vec(edge, 1..12),
        prop::collection::vec(valued, 0..8),
        prop::collection::vec(typed, 0..4),
    )
        .prop_map(|(a, b, c)| {
            // every name of the forms is in the graph
            let mut lines = String::new();
            for i in 0..4 {
                lines += &format!("<http://e/e{i}> <http://e/r{}> <http://e/e0> .\n", i % 3);
            }
            for (r, v) in [("from", "2002"), ("to", "2003"), ("p", "3")] {
                lines += &format!("<http://e/e3> <http://e/{r}> \"{v}\" .\n");
            }
            for c in 0..2 {
                lines += &format!("<http://e/e{c}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C{c}> .\n");
            }
            lines + &a.concat() + &b.concat() + &c.concat()
        })
}

/// Forms over the names of [`any_lines`].
fn any_runnable() -> impl Strategy<Value = Form> {
    (any::<bool>(), any_set()).prop_map(|(count, set)| match count {
        true => set.counted(),
        false => set,
    })
}

/// Sets over the names of [`any_lines`].
fn any_set() -> impl Strategy<Value = Form> {
    let relation = ((0..3u8), any::<bool>()).prop_map(|(r, reversed)| Relation {
        name: format!("r{r}"),
        reversed,
    });
    let valued = prop_oneof![Just("from"), Just("to"), Just("p")].prop_map(Relation::new);
    let way = prop_oneof![
        valued.clone().prop_map(|v| vec![v]),
        (relation.clone(), valued.clone()).prop_map(|(r, v)| vec![r, v])
    ];
    let constant = prop_oneof![
        (0..6i32).prop_map(|n| Constant::Bare(n.to_string())),
        (2000..2004i32).prop_map(|n| Constant::Bare(n.to_string())),
        (2000..2004i32).prop_map(|n| Constant::Bare(format!("{n}-06-01"))),
        (2000..2004i32, 0..4usize).prop_map(|(n, kind)| Constant::Literal(Literal {
            value: n.to_string(),
            kind: LiteralKind::Typed(format!(
                "http://www.w3.org/2001/XMLSchema#{}",
                ["gYear", "integer", "double", "string"][kind]
            )),
        })),
    ];
    let time = prop_oneof![
        Just(Constant::Now),
        (2000..2004i32).prop_map(|n| Constant::Bare(n.to_string()))
    ];
    let is = prop_oneof![
        Just(Comparison::Less),
        Just(Comparison::AtMost),
        Just(Comparison::Greater),
        Just(Comparison::AtLeast)
    ];
    let entity = (0..4u8).prop_map(|e| Form::Name(format!("e{e}")));
    let class = (0..2u8).prop_map(|c| Form::Name(format!("C{c}")));
    let leaf = prop_oneof![
        (relation.clone(), entity).prop_map(|(r, e)| e.joined(r)),
        (is, way.clone(), constant.clone()).prop_map(|(is, by, c)| Form::Compare(
            is,
            by.into(),
            c.into()
        )),
        (valued.clone(), constant).prop_map(|(r, c)| Form::Constant(c).joined(r)),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let operand = prop_oneof![3 => inner.clone(), 1 => class.clone()];
        let extreme = prop_oneof![Just(Extreme::Largest), Just(Extreme::Smallest)];
        prop_oneof![
            (relation.clone(), inner.clone()).prop_map(|(r, of)| of.joined(r)),
            prop::collection::vec(operand.clone(), 2..4).prop_map(Form::And),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Form::Or),
            (extreme, operand.clone(), way.clone()).prop_map(|(e, of, by)| Form::Best(
                e.into(),
                Box::new(of),
                by.into()
            )),
            (operand, valued.clone(), time.clone()).prop_map(|(of, r, t)| Form::At(
                Box::new(of),
                r,
                t
            )),
        ]
    })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn running_and_sparql_agree(
        lines in any_lines(),
        forms in prop::collection::vec(any_runnable(), 8),
    ) {
        let (_folder, store) = store(&lines, "nt");
        for form in forms {
            let plan = Plan::new(&form, &store, now()).unwrap();
            prop_assert_eq!(plan.missing(), [""; 0]);
            let run = by_running(&plan, &store);
            if let Some(asked) = by_sparql(&plan, &store) {
                prop_assert_eq!(&run, &asked, "{}\n{}\n{}", form, plan.sparql(), lines);
            }
            let normal = Plan::new(&form.normal(), &store, now()).unwrap();
            prop_assert_eq!(&run, &by_running(&normal, &store), "{} as {}", form, form.normal());

            // every member is proved by triples of the graph, and nothing else is
            let limits = RunLimits::default();
            let mut runner = Runner::new(&plan, &store, &limits).unwrap();
            let members = runner.run().unwrap().entities().to_vec();
            for id in 0..wherefore_graph::Adjacency::entity_bound(&store) {
                let entity = EntityId(id as u32);
                let evidence = runner.evidence(entity).unwrap();
                prop_assert_eq!(!evidence.is_empty(), members.contains(&entity), "{}", form);
            }
        }
    }
}
