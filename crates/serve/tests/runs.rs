//! Runs of `wherefore eval`, browsed over HTTP.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod served;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use served::{Served, serve, toy};
use wherefore::graph::{Graph, Input, LoadOptions, Store, load};

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn answer(id: &str, outcome: &str, more: &Value) -> Value {
    let mut line = json!({
        "id": id, "subgraph": [3, 2], "outcome": outcome, "f1": 0.0, "question": format!("What is {id}?"),
        "status": "answered", "answers": [], "evidence": [], "links": [], "timings_ms": { "total": 1.5 },
        "llm": { "calls": 0, "prompt_tokens": 0, "completion_tokens": 0 },
    });
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

/// A run as `wherefore eval` writes it: one question right, one wrong, one refused.
fn write_run(folder: &Path, graph: Option<&str>) {
    fs::create_dir_all(folder).unwrap();
    let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    let run = json!({
        "version": "0.1.0", "config": { "retrieve": { "kind": "read" } }, "models": {}, "graph": graph,
        "seed": 0, "topics": "linked", "ks": [50], "questions": ["q1", "q2", "q3"],
    });
    write("run.json", run.to_string());
    let entity =
        |name: &str| json!({ "name": name, "id": name, "confidence": 0.5, "rationale": [] });
    write(
        "answers.jsonl",
        lines(&[
            answer(
                "q1",
                "right",
                &json!({ "f1": 1.0, "answers": [entity("a")] }),
            ),
            answer("q2", "not-chosen", &json!({ "answers": [entity("x")] })),
            answer(
                "q3",
                "not-linked",
                &json!({ "status": "abstained", "refusal": "not-linked" }),
            ),
        ]),
    );
    let question = |id: &str| json!({ "id": id, "question": format!("What is {id}?"), "topics": [], "answers": ["a"] });
    write("questions.jsonl", lines(&["q1", "q2", "q3"].map(question)));
    let estimate = json!({ "value": 0.25, "interval": [0.0, 0.75], "questions": 3 });
    let metrics = json!({
        "counts": { "questions": 3, "scored": 3, "without_gold": 0, "unanswered": 1, "missing": 0 },
        "overall": { "questions": 3, "metrics": { "lenient.hit@1": estimate, "lenient.f1": estimate } },
        "by_hops": {}, "by_kind": {}, "cost": { "latency_ms": {}, "llm": {} },
        "bootstrap": { "resamples": 1000, "seed": 0, "level": 0.95 },
    });
    write("metrics.json", metrics.to_string());
}

fn over(folder: &Path) -> Served {
    toy(&format!("runs = {:?}", folder.display().to_string()))
}

fn names(list: &Value) -> Vec<&str> {
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|run| run["name"].as_str().unwrap()).collect()
}

#[test]
fn a_run_is_listed_and_read_question_by_question() {
    let folder = tempfile::tempdir().unwrap();
    write_run(&folder.path().join("mine"), None);
    let served = over(folder.path());
    assert_eq!(served.get("/v1/graphs").json()["runs"], true);
    let list = served.get("/v1/runs").json();
    assert_eq!(names(&list), ["mine"]);
    let run = &list["runs"][0];
    assert_eq!(
        (&run["method"], &run["topics"], &run["questions"]),
        (&json!("read"), &json!("linked"), &json!(3))
    );
    assert_eq!(
        (&run["finished"], &run["graph"], &run["problem"]),
        (&json!(true), &Value::Null, &Value::Null)
    );
    assert!(run["modified"].is_u64());
    let hit = &run["metrics"]["metrics"]["lenient.hit@1"];
    assert_eq!(hit["interval"], json!([0.0, 0.75]));

    let run = served.get("/v1/runs/mine").json();
    let each_one = json!({ "right": 1, "wrong": 1, "refused": 1 });
    assert_eq!((&run["verdicts"], &run["done"]), (&each_one, &json!(3)));
    assert_eq!(run["description"]["version"], "0.1.0");
    let questions = |query: &str| served.get(&format!("/v1/runs/mine/questions?{query}"));
    for (query, id) in [
        ("only=right", "q1"),
        ("only=wrong", "q2"),
        ("only=refused", "q3"),
        ("outcome=not-linked", "q3"),
        ("text=Q2", "q2"),
    ] {
        let found = questions(query).json();
        assert_eq!(
            (&found["total"], &found["questions"][0]["id"]),
            (&json!(1), &json!(id)),
            "{query}"
        );
    }
    let page = questions("offset=1&limit=1").json();
    assert_eq!(page["total"], 3);
    let wrong = json!({
        "index": 1, "id": "q2", "question": "What is q2?", "verdict": "wrong", "outcome": "not-chosen",
        "status": "answered", "refusal": null, "f1": 0.0, "confidence": 0.5, "answers": ["x"], "expected": ["a"],
    });
    assert_eq!(page["questions"], json!([wrong]));
    assert_eq!(
        questions("").json()["questions"][2]["refusal"],
        "not-linked"
    );
    for query in ["only=maybe", "only=", "limit=0", "offset=-1", "more=1"] {
        assert_eq!(questions(query).status, 400, "{query}");
    }
    let one = served.get("/v1/runs/mine/questions/0").json();
    assert_eq!(
        (
            &one["expected"]["answers"],
            &one["answer"]["answers"][0]["name"]
        ),
        (&json!(["a"]), &json!("a"))
    );
    assert_eq!(served.get("/v1/runs/mine/questions/3").status, 404);
    served.end();
}

#[test]
fn without_a_folder_every_route_says_how_to_name_one() {
    let served = toy("");
    assert_eq!(served.get("/v1/graphs").json()["runs"], false);
    for path in [
        "/v1/runs",
        "/v1/runs/x",
        "/v1/runs/x/questions",
        "/v1/runs/x/questions/0",
    ] {
        let reply = served.get(path);
        let problem = reply.json();
        assert_eq!(
            (reply.status, &problem["code"], &problem["hint"]),
            (
                404,
                &json!("no-runs"),
                &json!("start it with `--runs FOLDER`")
            ),
            "{path}"
        );
    }
}

#[test]
fn a_damaged_run_is_listed_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["answers", "metrics", "questions"] {
        write_run(&folder.path().join(name), None);
    }
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let first = answer("q1", "right", &json!({}));
    write("answers/answers.jsonl", &format!("{first}\n[\n"));
    write("metrics/metrics.json", "{");
    fs::remove_file(folder.path().join("questions/questions.jsonl")).unwrap();
    fs::create_dir(folder.path().join("description")).unwrap();
    write("description/run.json", "nonsense");
    let served = over(folder.path());
    let list = served.get("/v1/runs");
    let all = ["answers", "description", "metrics", "questions"];
    assert_eq!(names(&list.json()), all);
    for (name, file, done) in [
        ("answers", "`answers.jsonl` cannot be read: line 2", 1),
        ("description", "`run.json`", 0),
        ("metrics", "`metrics.json`", 3),
        ("questions", "`questions.jsonl`", 3),
    ] {
        let reply = served.get(&format!("/v1/runs/{name}"));
        assert_eq!(reply.status, 200, "{}", reply.body);
        let run = reply.json();
        let problem = run["problem"].as_str().unwrap();
        assert!(problem.contains(file), "{problem}");
        assert!(!reply.body.contains(folder.path().to_str().unwrap()));
        let questions = served.get(&format!("/v1/runs/{name}/questions")).json();
        assert_eq!(
            (&run["done"], &questions["total"]),
            (&json!(done), &json!(done))
        );
    }
    // no text, in a part that no list shows
    let path = folder.path().join("answers/answers.jsonl");
    fs::write(path, b"{\"id\":\"q1\",\"text\":\"\xff\"}\n").unwrap();
    assert_eq!(served.get("/v1/runs/answers").json()["done"], 1);
    let reply = served.get("/v1/runs/answers/questions/0");
    assert_eq!(
        (reply.status, &reply.json()["code"]),
        (422, &json!("damaged-run"))
    );
    assert!(served.log.lock().unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn links_and_names_lead_to_no_other_file() {
    use std::os::unix::fs::symlink;
    let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    write_run(&outside.path().join("secret"), None);
    symlink(outside.path(), folder.path().join("linked")).unwrap();
    symlink(outside.path().join("secret"), folder.path().join("run")).unwrap();
    write_run(&folder.path().join("inner"), None);
    for name in ["answers.jsonl", "metrics.json"] {
        let link = folder.path().join("inner").join(name);
        fs::remove_file(&link).unwrap();
        symlink(outside.path().join("secret").join(name), link).unwrap();
    }
    let served = over(folder.path());
    let list = served.get("/v1/runs").json();
    assert_eq!(names(&list), ["inner"]);
    let run = &list["runs"][0];
    let problem = run["problem"].as_str().unwrap();
    assert!(problem.contains("not a plain file"), "{problem}");
    assert_eq!(
        (&run["finished"], &run["metrics"]),
        (&json!(false), &Value::Null)
    );
    let questions = served.get("/v1/runs/inner/questions").json();
    assert_eq!(questions["total"], 0);
    let other = outside.path().file_name().unwrap().to_str().unwrap();
    for name in [
        "run".to_owned(),
        "linked%2Fsecret".to_owned(),
        format!("..%2F{other}%2Fsecret"),
        "%2Fetc".to_owned(),
        "inner%2Frun.json".to_owned(),
    ] {
        for path in [
            format!("/v1/runs/{name}"),
            format!("/v1/runs/{name}/questions/0"),
        ] {
            assert_eq!(served.get(&path).status, 404, "{path}");
        }
    }
}

#[test]
fn a_key_for_some_graphs_sees_their_runs_alone() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let mut config = format!("runs = {:?}\n", runs.display().to_string());
    for name in ["a", "b"] {
        let file = folder.path().join(format!("{name}.tsv"));
        fs::write(&file, format!("{name}\tknows\tsomebody\n")).unwrap();
        let out = folder.path().join(name);
        load(&[Input::File(file)], &out, &LoadOptions::default(), &|_| {}).unwrap();
        let store = Store::open(&out).unwrap();
        write_run(&runs.join(format!("of-{name}")), store.identity());
        config += &format!("[graphs.{name}]\npath = {:?}\n", out.display().to_string());
    }
    write_run(&runs.join("of-another"), Some("0123"));
    write_run(&runs.join("of-none"), None);
    let all = ["of-a", "of-another", "of-b", "of-none"];
    let mut keys = Vec::new();
    for (settings, seen) in [
        ("", &all[..]),
        ("graphs = [\"a\"]", &["of-a"]),
        (
            "scopes = [\"metrics\"]\ngraphs = { a = [\"sparql\"], b = [\"ask\"] }",
            &["of-b"],
        ),
    ] {
        let (key, sha256) = wherefore_serve::new_key().unwrap();
        config += &format!("[[keys]]\nname = \"k\"\nsha256 = \"{sha256}\"\n{settings}\n");
        keys.push((format!("authorization: Bearer {key}"), seen));
    }
    let served = serve(&config);
    for (key, seen) in &keys {
        let get = |path: &str| served.send("GET", path, &[key], b"");
        let list = get("/v1/runs").json();
        assert_eq!(names(&list), *seen);
        for run in list["runs"].as_array().unwrap() {
            let graph = match run["name"].as_str().unwrap() {
                "of-a" => json!("a"),
                "of-b" => json!("b"),
                _ => Value::Null,
            };
            assert_eq!(run["graph"], graph);
        }
        for name in all {
            let status = if seen.contains(&name) { 200 } else { 404 };
            for more in ["", "/questions", "/questions/0"] {
                let path = format!("/v1/runs/{name}{more}");
                assert_eq!(get(&path).status, status, "{path}");
            }
        }
    }
}
