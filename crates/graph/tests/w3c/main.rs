//! The W3C's test suites of RDF 1.1 syntaxes and of SPARQL 1.0 and 1.1 queries, over our loader and
//! our store.
//!
//! The suites are not part of the repository: `WHEREFORE_DATA` names the folder in which they lie as
//! `w3c/rdf-tests.tar.xz`, else `../shared/data` beside the repository is tried. Without them, the
//! test says that it was skipped.
//!
//! `unsupported.txt` lists the tests that we do not pass, by reason. The test fails if one of
//! these passes, or if another one fails.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod archive;
mod manifest;
mod results;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wherefore_graph::sparql::{self, QueryAnswer, ResultFormat, SparqlOptions};
use wherefore_graph::{Error, Format, Input, LoadOptions, Store, load};

use manifest::Test;
use results::{Results, Row};

/// Kinds of tests for which there is nothing to run, and why.
const NOT_RUN: [(&str, &str); 8] = [
    (
        "UpdateEvaluationTest",
        "graphs are changed by `wherefore add` and `remove`, not by SPARQL",
    ),
    (
        "PositiveUpdateSyntaxTest11",
        "graphs are changed by `wherefore add` and `remove`, not by SPARQL",
    ),
    (
        "NegativeUpdateSyntaxTest11",
        "graphs are changed by `wherefore add` and `remove`, not by SPARQL",
    ),
    ("ProtocolTest", "needs a server; `.ci/serve` tests ours"),
    (
        "GraphStoreProtocolTest",
        "the server has no graph store protocol",
    ),
    (
        "ServiceDescriptionTest",
        "the server has no service description",
    ),
    (
        "PositiveEntailmentTest",
        "nothing is inferred: a graph is what its files say",
    ),
    (
        "NegativeEntailmentTest",
        "nothing is inferred: a graph is what its files say",
    ),
];

fn archive_file() -> Option<PathBuf> {
    let folder = std::env::var_os("WHEREFORE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let file = folder.join("w3c/rdf-tests.tar.xz");
    file.exists().then_some(file)
}

/// The listed tests with the reason of each.
fn unsupported() -> BTreeMap<String, String> {
    let text = include_str!("unsupported.txt");
    let mut listed = BTreeMap::new();
    let mut reason = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("## ") {
            text.clone_into(&mut reason);
        } else if !line.is_empty() && !line.starts_with('#') {
            let before = listed.insert(line.to_owned(), reason.clone());
            assert!(before.is_none(), "`{line}` is listed twice");
        }
    }
    listed
}

#[derive(Default)]
struct Tally {
    passed: usize,
    listed: usize,
    not_run: usize,
}

#[test]
fn w3c_suites() {
    let Some(file) = archive_file() else {
        println!(
            "skipped: no W3C suites; set WHEREFORE_DATA to the folder with w3c/rdf-tests.tar.xz"
        );
        return;
    };
    // every graph is synced when it is made, and there are more than a thousand: in memory, if possible
    let memory = Path::new("/dev/shm");
    let folder = match tempfile::tempdir_in(memory) {
        Ok(folder) if memory.is_dir() => folder,
        _ => tempfile::tempdir().unwrap(),
    };
    let suites = folder.path().join("suites");
    archive::unpack(&file, &suites).unwrap();
    let mut listed = unsupported();
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for root in ["rdf/rdf11", "sparql/sparql10", "sparql/sparql11"] {
        for test in manifest::tests(&suites.join(root), &suites) {
            let suite = match root.starts_with("rdf") {
                true => test.id.split('#').next().unwrap_or(root).to_owned(),
                false => root.to_owned(),
            };
            let tally = tallies.entry(suite).or_default();
            if let Some(reason) = not_run(&test) {
                tally.not_run += 1;
                *reasons.entry(reason).or_default() += 1;
                continue;
            }
            let scratch = tempfile::tempdir_in(folder.path()).unwrap();
            match (run(&test, scratch.path()), listed.remove(&test.id)) {
                (Ok(()), None) => tally.passed += 1,
                (Err(_), Some(_)) => tally.listed += 1,
                (Ok(()), Some(reason)) => {
                    wrong.push(format!(
                        "{} passes; take it off the list ({reason})",
                        test.id
                    ));
                }
                (Err(reason), None) => {
                    let reason: String = reason.chars().take(600).collect();
                    wrong.push(format!("{} fails: {reason}", test.id));
                }
            }
        }
    }
    let mut sum = Tally::default();
    for (suite, tally) in &tallies {
        let all = tally.passed + tally.listed;
        println!(
            "{suite}: {} of {all} passed, {} not run",
            tally.passed, tally.not_run
        );
        sum.passed += tally.passed;
        sum.listed += tally.listed;
        sum.not_run += tally.not_run;
    }
    for (reason, count) in reasons {
        println!("not run: {count}, {reason}");
    }
    println!(
        "all: {} passed, {} listed as unsupported, {} not run, {} in all",
        sum.passed,
        sum.listed,
        sum.not_run,
        sum.passed + sum.listed + sum.not_run
    );
    wrong.extend(
        listed
            .keys()
            .map(|id| format!("{id} is listed, and there is none")),
    );
    assert!(
        wrong.is_empty(),
        "{} tests\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Why there is nothing to run.
fn not_run(test: &Test) -> Option<&'static str> {
    if let Some((_, reason)) = NOT_RUN.iter().find(|(kind, _)| *kind == test.kind) {
        return Some(reason);
    }
    if test.id.starts_with("sparql/sparql11/entailment#") {
        return Some("nothing is inferred: a graph is what its files say");
    }
    if test.has_named_graphs {
        return Some("a graph has no named graphs inside");
    }
    test.has_services
        .then_some("a query reads the graph that was opened, and no service")
}

fn run(test: &Test, scratch: &Path) -> Result<(), String> {
    let action = test.action.as_deref().ok_or("it has no action")?;
    match test.kind.as_str() {
        "QueryEvaluationTest" => evaluated(test, action, scratch),
        "CSVResultFormatTest" => written_as_csv(test, action, scratch),
        kind if kind.starts_with("PositiveSyntaxTest") => {
            parses(test, action, scratch).map_err(|e| e.to_string())
        }
        kind if kind.starts_with("NegativeSyntaxTest") => match parses(test, action, scratch) {
            Err(Error::SparqlSyntax(_) | Error::SparqlRefused { .. }) => Ok(()),
            Err(other) => Err(format!("another error: {other}")),
            Ok(()) => Err("it was taken".into()),
        },
        kind if kind.ends_with("NegativeSyntax") || kind.ends_with("NegativeEval") => {
            match loaded(&[action.to_owned()], &test.base, scratch) {
                Err(_) => Ok(()),
                Ok(_) => Err("it was loaded".into()),
            }
        }
        kind if kind.ends_with("PositiveSyntax") => {
            loaded(&[action.to_owned()], &test.base, scratch).map(|_| ())
        }
        kind if kind.ends_with("Eval") => same_triples(test, action, scratch),
        kind => Err(format!("nobody knows `{kind}`")),
    }
}

/// The files as a graph of ours.
fn loaded(files: &[PathBuf], base: &str, scratch: &Path) -> Result<Store, String> {
    let mut inputs: Vec<Input> = files.iter().cloned().map(Input::File).collect();
    let mut options = LoadOptions {
        max_errors: 0,
        threads: 1,
        ..LoadOptions::default()
    };
    if files.is_empty() {
        let empty = scratch.join("empty.nt");
        std::fs::write(&empty, "").unwrap();
        inputs.push(Input::File(empty));
    }
    options.base = Some(base.to_owned());
    let graph = scratch.join("graph");
    let report = load(&inputs, &graph, &options, &|_| {}).map_err(|e| e.to_string())?;
    if report.counts.malformed > 0 {
        return Err(format!("{:?}", report.mistakes));
    }
    Store::open(&graph).map_err(|e| e.to_string())
}

fn same_triples(test: &Test, action: &Path, scratch: &Path) -> Result<(), String> {
    let store = loaded(&[action.to_owned()], &test.base, scratch)?;
    let result = test.result.as_deref().ok_or("it has no result")?;
    let wanted = manifest::graph_of(result, &test.base);
    let all = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }";
    let Results::Graph(ours) = asked(&store, all).map_err(|e| e.to_string())? else {
        return Err("a `CONSTRUCT` gives no graph".into());
    };
    match results::is_same_graph(wanted.clone(), (*ours).clone()) {
        true => Ok(()),
        false => Err(format!("{ours}\nnot\n{wanted}")),
    }
}

fn query_of(test: &Test, action: &Path) -> String {
    let text = std::fs::read(action).unwrap_or_else(|e| panic!("{}: {e}", action.display()));
    let text = String::from_utf8_lossy(&text).into_owned();
    // a query has the address of its file as its base
    format!("BASE <{}>\n{text}", test.base)
}

fn options() -> SparqlOptions {
    SparqlOptions {
        timeout: Some(Duration::from_secs(60)),
        ..SparqlOptions::default()
    }
}

/// Whether the query can be asked at all.
fn parses(test: &Test, action: &Path, scratch: &Path) -> Result<(), Error> {
    let file = scratch.join("one.nt");
    std::fs::write(&file, "<http://a> <http://b> <http://c> .\n").unwrap();
    let graph = scratch.join("graph");
    load(
        &[Input::File(file)],
        &graph,
        &LoadOptions::default(),
        &|_| {},
    )?;
    let store = Store::open(&graph)?;
    sparql::query(&store, &query_of(test, action), &options(), |_| Ok(()))
}

fn asked(store: &Store, query: &str) -> Result<Results, Error> {
    sparql::query(store, query, &options(), |answer| {
        Ok(match answer {
            QueryAnswer::Boolean(value) => Results::Boolean(value),
            QueryAnswer::Rows(rows) => {
                let rows: Result<Vec<Row>, Error> = rows
                    .map(|row| {
                        let row = row?;
                        let bound = row.iter();
                        Ok(bound
                            .map(|(v, term)| (v.as_str().to_owned(), term.clone()))
                            .collect())
                    })
                    .collect();
                Results::Rows {
                    rows: rows?,
                    is_ordered: false,
                }
            }
            QueryAnswer::Triples(triples) => {
                let triples: Result<Vec<_>, Error> = triples.collect();
                Results::Graph(Box::new(triples?.into_iter().collect()))
            }
        })
    })
}

fn evaluated(test: &Test, action: &Path, scratch: &Path) -> Result<(), String> {
    let base = test.data.first().and_then(|file| file.file_name());
    let folder = test.base.rsplit_once('/').map_or("", |(folder, _)| folder);
    let base = base.map_or(test.base.clone(), |f| format!("{folder}/{}", f.display()));
    let store = loaded(&test.data, &base, scratch)?;
    let result = test.result.as_deref().ok_or("it has no result")?;
    let result_base = result
        .file_name()
        .map(|f| format!("{folder}/{}", f.display()));
    let wanted = results::expected(result, &result_base.unwrap_or_default())?;
    let query = query_of(test, action);
    let format = results::format_of(result);
    let ours = match (format, format.and_then(written_format)) {
        // through our own writers, where the suite shows such a file
        (Some(read), Some(write)) => {
            let mut bytes = Vec::new();
            sparql::write(&store, &query, &options(), write, &mut bytes)
                .map_err(|e| e.to_string())?;
            results::parsed(&bytes, read)?
        }
        _ => asked(&store, &query).map_err(|e| e.to_string())?,
    };
    match results::difference(wanted, ours, test.is_lax) {
        None => Ok(()),
        Some(difference) => Err(difference),
    }
}

fn written_format(format: sparesults::QueryResultsFormat) -> Option<ResultFormat> {
    match format {
        sparesults::QueryResultsFormat::Json => Some(ResultFormat::Json),
        sparesults::QueryResultsFormat::Xml => Some(ResultFormat::Xml),
        sparesults::QueryResultsFormat::Tsv => Some(ResultFormat::Tsv),
        _ => None,
    }
}

/// CSV has no types to read it by: its lines are compared.
fn written_as_csv(test: &Test, action: &Path, scratch: &Path) -> Result<(), String> {
    let store = loaded(&test.data, &test.base, scratch)?;
    let result = test.result.as_deref().ok_or("it has no result")?;
    let wanted = std::fs::read_to_string(result).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    let query = query_of(test, action);
    sparql::write(&store, &query, &options(), ResultFormat::Csv, &mut bytes)
        .map_err(|e| e.to_string())?;
    let ours = String::from_utf8_lossy(&bytes).into_owned();
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(|l| l.trim_end().to_owned()).collect();
        lines.sort();
        lines
    };
    match lines(&wanted) == lines(&ours) {
        true => Ok(()),
        false => Err(format!("{ours}\nnot\n{wanted}")),
    }
}

/// The formats that the suites speak of are told by the names of their files.
#[test]
fn endings_of_the_suites_are_known() {
    for ending in ["nt", "nq", "ttl", "trig", "rdf"] {
        assert!(Format::named(ending).is_some(), "{ending}");
    }
}
