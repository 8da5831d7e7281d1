//! Tables and JSON in which a row is one thing, from the command line.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("wherefore"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn triples(folder: &Path, graph: &str) -> Vec<String> {
    let query = "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o";
    let rows = run(folder, &["sparql", graph, query, "--results", "csv"]);
    let text = String::from_utf8(rows.stdout).unwrap();
    let rows = text.lines().skip(1);
    rows.map(|row| row.trim().replace("name:", "")).collect()
}

const BOOKS: &str = "title,written by,published,themes\n\
    Frankenstein,Mary Shelley,1818,science; ambition\n\
    \"Emma, a novel\",Jane Austen,1815-12-23,\n\
    \n";

#[test]
fn tables_and_json_of_things_become_the_same_graph() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("books.csv"), BOOKS).unwrap();
    let json = r#"[
        {"title": "Frankenstein", "written by": "Mary Shelley", "published": 1818, "themes": ["science", "ambition"]},
        {"title": "Emma, a novel", "written by": "Jane Austen", "published": "1815-12-23", "themes": null}
    ]"#;
    fs::write(folder.join("books.json"), json).unwrap();
    let lines: Vec<Value> = serde_json::from_str(json).unwrap();
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(folder.join("books.jsonl"), lines.join("\n")).unwrap();
    let expected = [
        "\"Emma,%20a%20novel\",published,1815-12-23",
        "\"Emma,%20a%20novel\",written%20by,Jane%20Austen",
        "Frankenstein,published,1818",
        "Frankenstein,themes,ambition",
        "Frankenstein,themes,science",
        "Frankenstein,written%20by,Mary%20Shelley",
    ];
    for (file, graph) in [
        ("books.csv", "a"),
        ("books.json", "b"),
        ("books.jsonl", "c"),
    ] {
        let named = ["--name-column", "title", "--split", ";", "--class", ""];
        let args = ["load", file, "--wide", "--out", graph, "--json"];
        let loaded = run(folder, &[&args[..], &named].concat());
        assert!(loaded.status.success(), "{loaded:?}");
        let report: Value = serde_json::from_slice(&loaded.stdout).unwrap();
        assert_eq!(report["triples"], 6, "{report}");
        assert_eq!(report["malformed"], 0);
        let unquoted = |rows: Vec<String>| -> Vec<String> {
            rows.into_iter().map(|row| row.replace('"', "")).collect()
        };
        let expected = expected.map(str::to_owned).to_vec();
        assert_eq!(
            unquoted(triples(folder, graph)),
            unquoted(expected),
            "{file}"
        );
    }
}

#[test]
fn mistakes_in_tables_of_things_are_told_with_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let load = |name: &str, text: &str, more: &[&str]| {
        fs::write(folder.join(name), text).unwrap();
        let args = ["load", name, "--wide", "--replace", "--out", "g"];
        let ended = run(folder, &[&args[..], more].concat());
        (
            ended.status.code(),
            String::from_utf8(ended.stderr).unwrap(),
        )
    };
    let (code, told) = load("a.csv", "name,,age\nAda,x,36\n,y,1\nAlan,,2,more\n", &[]);
    assert_eq!(code, Some(0), "{told}");
    for line in [
        "a.csv:3: no name: ",
        "a.csv:4: 4 cells, and the first line names 3 columns",
        "column 2 has no name in the first line, and was not read",
    ] {
        assert!(told.contains(line), "{told}");
    }
    let quiet = run(
        folder,
        &["load", "a.csv", "--wide", "--quiet", "--out", "q"],
    );
    assert!(
        quiet.stdout.is_empty() && quiet.stderr.is_empty(),
        "{quiet:?}"
    );
    let (code, told) = load("b.csv", "name;age\nAda;36\nAlan;2;\n", &[]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("names fewer than two columns"), "{told}");
    let (code, told) = load("c.csv", "name,age\nAda,36\n", &["--name-column", "title"]);
    assert_eq!(code, Some(2));
    assert!(
        told.contains("its first line names no column `title`"),
        "{told}"
    );
    let (code, told) = load(
        "d.json",
        "[{\"name\": \"Ada\", \"age\": 36},\n {\"name\"",
        &[],
    );
    assert_eq!(code, Some(2));
    assert!(told.contains("line 2: it is not a JSON array"), "{told}");
    let (code, told) = load(
        "e.json",
        "[{\"id\": 7, \"at\": {\"x\": 1}}, {\"id\": 8, \"n\": 1}]",
        &[],
    );
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("`at` is an object"), "{told}");
    let (code, told) = load("f.nt", "<a:a> <a:b> <a:c> .\n", &[]);
    assert_eq!(code, Some(2));
    assert!(told.contains("leave `--wide` out"), "{told}");
    let (code, _) = load("c.csv", "name,age\n", &["--columns", "1,2,3"]);
    assert_eq!(code, Some(2));
}

#[test]
fn arrays_of_triples_are_read_too_and_the_schema_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = r#"[["Ada", "type", "employee"], {"head": "Ada", "relation": "age", "tail": 36},
        ["London", "type", "office"], ["Ada", "works in", "London"]]"#;
    fs::write(folder.join("t.json"), text).unwrap();
    let loaded = run(folder, &["load", "t.json", "--out", "g", "--json"]);
    let report: Value = serde_json::from_slice(&loaded.stdout).unwrap();
    assert_eq!(
        (&report["triples"], &report["malformed"]),
        (&4.into(), &0.into())
    );
    let schema = run(folder, &["info", "g", "--schema", "--json"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert_eq!(schema["classes"][0]["name"], "employee", "{schema}");
    let works = schema["relations"].as_array().unwrap();
    let works = works.iter().find(|r| r["name"] == "works in").unwrap();
    assert_eq!(works["from"][0]["class"], "employee");
    assert_eq!(works["to"][0]["class"], "office");
    let told = run(folder, &["info", "g", "--schema"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("works in  employee → office"), "{told}");
    assert!(told.contains("age  employee → (number)"), "{told}");
}

#[test]
fn a_table_that_holds_no_triples_is_read_as_things() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let boats = "boat_id,boat_name,builder,length_m,owner\n\
        7,Dunlin,Lomax,8.7,Tom Ashlock\n\
        9,Tern,Vindholm,4,Ann Reed\n";
    fs::write(folder.join("export.csv"), boats).unwrap();
    let loaded = run(folder, &["load", "export.csv", "--out", "boats"]);
    let told = String::from_utf8(loaded.stderr).unwrap();
    assert!(
        told.contains("was read as one thing, called by its `boat_name`"),
        "{told}"
    );
    let all = triples(folder, "boats");
    assert!(
        all.contains(&"Dunlin,owner,Tom%20Ashlock".to_owned()),
        "{all:?}"
    );
    let asked = run(
        folder,
        &["ask", "boats", "Which boats are longer than 5 m?", "--json"],
    );
    let answer: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(answer["answers"][0]["name"], "Dunlin", "{answer}");
    // as triples, where that is said
    let args = ["load", "export.csv", "--columns", "2,3,5", "--out", "other"];
    assert!(run(folder, &args).status.success());
    assert!(triples(folder, "other").contains(&"Dunlin,Lomax,Tom%20Ashlock".to_owned()));
}
