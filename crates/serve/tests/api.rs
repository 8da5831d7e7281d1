//! The API over real connections, on the toy graph.

mod served;

use serde_json::json;
use served::{serve, toy};

const MASCOT: &str = "Who is the mascot of the San Francisco Giants?";

#[test]
fn a_question_is_answered_with_its_evidence() {
    let served = toy("");
    let reply = served.post("/v1/ask", &json!({ "question": MASCOT }));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let answer = reply.json();
    assert_eq!(answer["status"], "answered");
    assert_eq!(answer["answers"][0]["name"], "Lou Seal");
    let first = answer["answers"][0]["rationale"][0].as_u64().unwrap() as usize;
    assert_eq!(answer["evidence"][first]["verified"], true);

    let abstained = served.post("/v1/ask", &json!({ "question": "Who wrote Hamlet?" }));
    assert_eq!(abstained.json()["status"], "abstained");

    let verified = served
        .post("/v1/verify", &json!({ "answer": answer }))
        .json();
    assert_eq!(verified["holds"], true);
    let body = json!({ "question": MASCOT, "top_k": 2 });
    let evidence = served.post("/v1/retrieve", &body).json();
    assert_eq!(evidence["evidence"].as_array().unwrap().len(), 1);
    let links = served
        .post("/v1/link", &json!({ "question": MASCOT }))
        .json();
    let candidate = &links["mentions"][0]["candidates"][0];
    assert_eq!(candidate["name"], "San Francisco Giants");
    served.end();
}

#[test]
fn a_stream_tells_every_stage_and_then_the_answer() {
    let served = toy("");
    for (path, body) in [
        ("/v1/ask", json!({ "question": MASCOT, "stream": true })),
        ("/v1/ask?stream=true", json!({ "question": MASCOT })),
    ] {
        let reply = served.post(path, &body);
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        let names: Vec<&str> = (reply.body.lines())
            .filter_map(|line| line.strip_prefix("event: "))
            .collect();
        assert_eq!(
            names,
            [
                "stage", "stage", "stage", "stage", "stage", "stage", "answer"
            ]
        );
        let last = reply
            .body
            .lines()
            .filter_map(|l| l.strip_prefix("data: "))
            .next_back();
        let answer: serde_json::Value = serde_json::from_str(last.unwrap()).unwrap();
        assert_eq!(answer["answers"][0]["name"], "Lou Seal");
        assert!(answer["timings_ms"]["total"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn what_is_wrong_with_a_request_is_told_as_a_problem() {
    let served = toy("limits = { question_bytes = 100, body_bytes = 1000 }");
    for (path, body, status, code) in [
        ("/v1/ask", json!({}), 400, "bad-body"),
        (
            "/v1/ask",
            json!({ "question": "x", "quest": 1 }),
            400,
            "bad-body",
        ),
        (
            "/v1/ask",
            json!({ "question": "?!" }),
            422,
            "empty-question",
        ),
        (
            "/v1/ask",
            json!({ "question": "x".repeat(101) }),
            422,
            "question-too-long",
        ),
        (
            "/v1/ask",
            json!({ "question": "x".repeat(1001) }),
            413,
            "body-too-large",
        ),
        (
            "/v1/ask",
            json!({ "question": "x", "graph": "y" }),
            404,
            "no-such-graph",
        ),
        (
            "/v1/ask",
            json!({ "question": "x", "method": "y" }),
            404,
            "no-such-method",
        ),
        (
            "/v1/ask",
            json!({ "question": "x", "topics": ["zz"] }),
            422,
            "no-such-topic",
        ),
        (
            "/v1/retrieve",
            json!({ "question": "x", "top_k": 0 }),
            400,
            "bad-value",
        ),
        (
            "/v1/feedback",
            json!({ "question": "x", "vote": "up" }),
            404,
            "no-feedback",
        ),
        ("/v1/graphs", json!({}), 405, "wrong-method"),
        ("/v2/ask", json!({}), 404, "no-such-page"),
    ] {
        let reply = served.post(path, &body);
        let problem = reply.json();
        assert_eq!(
            (reply.status, problem["code"].as_str()),
            (status, Some(code)),
            "{path} {body}"
        );
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(problem["status"], status);
    }
    let plain = served.send("POST", "/v1/ask", &["content-type: text/plain"], b"{}");
    assert_eq!(plain.status, 415);
    for path in [
        "/v1/entities",
        "/v1/entities?prefix=a&limit=0",
        "/v1/entities?prefix=a&limit=x",
        "/v1/complete?text=a&more=b",
        "/v1/sparql",
        "/v1/sparql?query=ASK%20%7B%7D&query=x",
        "/v1/sparql?query=SELECT",
        "/v1/runs/x/questions/y",
    ] {
        assert_eq!(served.get(path).status, 400, "{path}");
    }
    assert!(served.log.lock().unwrap().is_empty());
}

#[test]
fn names_are_completed_and_neighbourhoods_shown() {
    let served = toy("");
    let found = served.get("/v1/complete?text=who%20is%20lou%20s").json();
    assert_eq!(
        (&found["typed"], &found["entities"][0]["name"]),
        (&json!("lou s"), &json!("Lou Seal"))
    );
    let found = served.get("/v1/entities?prefix=world%20series").json();
    assert_eq!(found["entities"].as_array().unwrap().len(), 4);
    let around = served.get("/v1/neighbourhood?id=Lou%20Seal").json();
    assert_eq!(around["triples"][0]["relation"], "mascot of");
    assert_eq!(served.get("/v1/neighbourhood?id=Nobody").status, 404);
    let graphs = served.get("/v1/graphs").json();
    assert_eq!(graphs["graphs"][0]["triples"], 20);
    let relations = served.get("/v1/graphs/toy/relations?limit=1").json();
    assert_eq!(relations["relations"][0]["name"], "located in");
    let methods = served.get("/v1/methods").json();
    assert_eq!(methods["methods"].as_array().unwrap().len(), 3);
    assert_eq!(methods["methods"][0]["name"], "auto");
    assert_eq!(methods["methods"][0]["default"], true);
    let schema = served.get("/v1/graphs/toy/schema").json();
    let most = &schema["relations"][0];
    assert_eq!(
        (&most["name"], &most["count"]),
        (&json!("located in"), &json!(8))
    );
    assert_eq!(most["examples"].as_array().unwrap().len(), 3);
    assert_eq!(served.get("/v1/graphs/nothing/schema").status, 404);
    assert_eq!(served.get("/v1/graphs/toy/schema?more=1").status, 400);
}

#[test]
fn sparql_is_spoken_in_all_its_ways() {
    let served = toy("limits = { rows = 2 }");
    let query = "SELECT ?who WHERE { ?who :mascot_of ?club } ORDER BY ?who";
    let encoded = query
        .replace(' ', "%20")
        .replace('?', "%3F")
        .replace('{', "%7B")
        .replace('}', "%7D");
    let by_get = served.get(&format!("/v1/sparql?query={encoded}"));
    assert_eq!(
        by_get.header("content-type"),
        Some("application/sparql-results+json")
    );
    assert_eq!(
        by_get.json()["results"]["bindings"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let plain = ["content-type: application/sparql-query", "accept: text/csv"];
    let by_body = served.send("POST", "/v1/graphs/toy/sparql", &plain, query.as_bytes());
    assert_eq!(by_body.body.lines().next(), Some("who"));
    let form = ["content-type: application/x-www-form-urlencoded"];
    let by_form = served.send(
        "POST",
        "/v1/sparql?graph=toy",
        &form,
        format!("query={encoded}").as_bytes(),
    );
    assert_eq!(by_form.body, by_get.body);
    let all = "SELECT * { ?a ?b ?c }";
    let cut = served.send(
        "POST",
        "/v1/sparql",
        &["content-type: application/sparql-query"],
        all.as_bytes(),
    );
    assert_eq!(cut.header("wherefore-cut"), Some("2"));
    let triples = "CONSTRUCT WHERE { ?a :mascot_of ?b }";
    let turtle = served.send(
        "POST",
        "/v1/sparql",
        &["content-type: application/sparql-query"],
        triples.as_bytes(),
    );
    assert_eq!(turtle.header("content-type"), Some("text/turtle"));
    for refused in [
        "INSERT DATA { <a> <b> <c> }",
        "SELECT * { SERVICE <http://127.0.0.1/> { ?a ?b ?c } }",
        "SELECT * FROM <http://x/> { ?a ?b ?c }",
    ] {
        let reply = served.send(
            "POST",
            "/v1/sparql",
            &["content-type: application/sparql-query"],
            refused.as_bytes(),
        );
        assert_eq!(reply.status, 400, "{refused}: {}", reply.body);
    }
    let update = served.send("POST", "/v1/sparql", &form, b"update=CLEAR%20ALL");
    assert_eq!(update.json()["code"], "sparql-refused");
}

#[test]
fn many_graphs_are_served_side_by_side() {
    let served = serve(
        "default_graph = \"b\"\n[graphs.a]\npath = \"@toy\"\nmethods = [\"similarity\"]\n\
         [graphs.b]\npath = \"@toy\"\nexamples = [\"Who?\"]\n",
    );
    let graphs = served.get("/v1/graphs").json();
    assert_eq!(graphs["graphs"][0]["methods"], json!(["similarity"]));
    assert_eq!(graphs["graphs"][0]["default_method"], "similarity");
    assert_eq!(graphs["graphs"][1]["default"], true);
    assert_eq!(graphs["graphs"][1]["examples"], json!(["Who?"]));
    let body = json!({ "question": MASCOT, "graph": "a", "method": "read" });
    assert_eq!(served.post("/v1/ask", &body).status, 404);
    let models = served.get("/v1/models").json();
    let names: Vec<_> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].clone())
        .collect();
    assert_eq!(
        names,
        [
            "wherefore",
            "a/similarity",
            "b/auto",
            "b/read",
            "b/similarity"
        ]
    );
}

#[test]
fn a_question_may_follow_another_at_every_door() {
    let served = toy("");
    let (stadium, capacity) = (
        "Which stadium do the San Francisco Giants play in?",
        "And what is its capacity?",
    );
    assert_eq!(served.get("/v1/methods").json()["follow"], true);
    let first = served
        .post("/v1/ask", &json!({ "question": stadium }))
        .json();
    let follow = json!({
        "question": stadium,
        "logical_form": first["logical_form"],
        "answers": [{ "id": first["answers"][0]["id"], "name": first["answers"][0]["name"] }],
    });
    let body = json!({ "question": capacity, "follow": follow });
    let then = served.post("/v1/ask", &body).json();
    assert_eq!(then["carried"], "its = Oracle Park", "{then}");
    let number = then["answers"][0]["name"].clone();
    assert!(
        number.as_str().is_some_and(|n| n.starts_with("41")),
        "{then}"
    );
    let verified = served.post("/v1/verify", &json!({ "answer": then })).json();
    assert_eq!(verified["holds"], true);

    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": { "name": "ask", "arguments": body } });
    let told = served.post("/mcp", &call).json();
    let answer = &told["result"]["structuredContent"];
    assert_eq!(answer["answers"][0]["name"], number, "{told}");

    let message = |role: &str, text: &str| json!({ "role": role, "content": text });
    for stream in [false, true] {
        let messages = json!([
            message("user", stadium),
            message("assistant", "Candlestick Park, as anybody may write here"),
            message("user", capacity),
        ]);
        let body = json!({ "model": "wherefore", "messages": messages, "stream": stream });
        let reply = served.post("/v1/chat/completions", &body);
        assert!(reply.body.contains("its = Oracle Park"), "{}", reply.body);
    }
    let body = json!({ "question": capacity, "follow": { "answers": [] } });
    assert_eq!(served.post("/v1/ask", &body).status, 400);
    let body = json!({ "question": capacity, "follow": follow });
    assert_eq!(served.post("/v1/link", &body).status, 400);
    served.end();
}

#[test]
fn openai_and_mcp_have_doors_of_their_own() {
    let served = toy("");
    let chat = |model: &str, stream: bool| {
        let content = json!([{ "type": "text", "text": MASCOT }]);
        let messages =
            json!([{ "role": "system", "content": "x" }, { "role": "user", "content": content }]);
        let body =
            json!({ "model": model, "messages": messages, "stream": stream, "temperature": 0 });
        served.post("/v1/chat/completions", &body)
    };
    let reply = chat("toy/read", false).json();
    let text = reply["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(
        text.starts_with("Lou Seal (") && text.contains("[1] Lou Seal — mascot of →"),
        "{text}"
    );
    assert_eq!(reply["wherefore"]["answers"][0]["name"], "Lou Seal");
    let stream = chat("wherefore", true);
    assert!(stream.body.ends_with("data: [DONE]\n\n"));
    let unknown = chat("gpt-4", false);
    assert_eq!(
        (unknown.status, unknown.json()["error"]["code"].as_str()),
        (404, Some("model_not_found"))
    );
    assert_eq!(served.get("/v1/models/toy/read").json()["id"], "toy/read");
    assert_eq!(served.get("/v1/models/toy%2Fread").json()["id"], "toy/read");

    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let tools = served.post("/mcp", &list).json();
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 6);
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(served.post("/mcp", &notification).status, 202);
    assert_eq!(served.get("/mcp").status, 405);
}

#[test]
fn the_page_and_its_supervisors_find_what_they_need() {
    let served = toy("");
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/evidence.js", "text/javascript; charset=utf-8"),
        ("/vendor/d3.js", "text/javascript; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/docs", "text/html; charset=utf-8"),
        ("/docs.js", "text/javascript; charset=utf-8"),
        ("/openapi.json", "application/json"),
        ("/health", "application/json"),
    ] {
        let reply = served.get(path);
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some(kind)),
            "{path}"
        );
    }
    served.post("/v1/ask", &json!({ "question": MASCOT }));
    let metrics = served.get("/metrics").body;
    for line in [
        "wherefore_requests_total{route=\"/v1/ask\",status=\"200\"} 1",
        "wherefore_answers_total{status=\"answered\"} 1",
        "wherefore_stage_seconds_count{stage=\"link\"} 1",
        "wherefore_ready 1",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line}\n{metrics}");
    }
}

#[test]
fn triples_come_and_go_with_a_key_that_may_write() {
    let served = toy(
        "[[keys]]\nname = \"reader\"\nsha256 = \"5ba309d97235eb63edd707f2f399c1010236e03b693e73e88d4b02e2743f8360\"\n\
         [[keys]]\nname = \"writer\"\nsha256 = \"ae3db19cd0df8b8f31a6b8d52225894af5e846760f64f4fc06ae858048a67df0\"\nwrite = true\n",
    );
    let send = |key: &str, path: &str, body: &serde_json::Value| {
        let key = format!("authorization: Bearer {key}");
        let headers = ["content-type: application/json", key.as_str()];
        served.send("POST", path, &headers, body.to_string().as_bytes())
    };
    let change = json!({
        "format": "tsv",
        "remove": "Lou Seal\tmascot_of\tSan Francisco Giants\n",
        "add": "Crazy Crab\tmascot_of\tSan Francisco Giants\n",
    });
    assert_eq!(send("wf-read", "/v1/triples", &change).status, 403);
    assert_eq!(send("wf-none", "/v1/triples", &change).status, 401);
    let question = json!({ "question": MASCOT });
    let mascot = || {
        let answer = send("wf-read", "/v1/ask", &question).json();
        answer["answers"][0]["name"].clone()
    };
    let before = mascot();
    assert_eq!(before, "Lou Seal");
    let reply = send("wf-write", "/v1/triples", &change);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let report = reply.json();
    assert_eq!(
        (&report["added"], &report["removed"], &report["pending"]),
        (&json!(1), &json!(1), &json!(2))
    );
    // at once: asked, completed, queried
    assert_eq!(mascot(), "Crazy Crab");
    let get = |path: &str| served.send("GET", path, &["authorization: Bearer wf-read"], b"");
    let found = get("/v1/entities?prefix=crazy").json();
    assert_eq!(found["entities"][0]["name"], "Crazy Crab");
    let query = "/v1/sparql?query=ASK%7B%3Cname%3ACrazy%2520Crab%3E%20%3Fp%20%3Fo%7D";
    assert_eq!(get(query).json()["boolean"], true);
    // malformed lines change nothing
    let bad = json!({ "format": "tsv", "add": "only one field\n" });
    let reply = send("wf-write", "/v1/triples", &bad);
    assert_eq!(
        (reply.status, reply.json()["code"].clone()),
        (422, json!("bad-changes"))
    );
    assert_eq!(mascot(), "Crazy Crab");
    served.end();
    // without keys nobody writes
    let served = toy("");
    assert_eq!(served.post("/v1/triples", &change).status, 403);
    served.end();
}

#[test]
fn many_changes_are_folded_into_the_files() {
    let served = toy("[limits]\npending_changes = 3\n\
         [[keys]]\nname = \"writer\"\nsha256 = \"ae3db19cd0df8b8f31a6b8d52225894af5e846760f64f4fc06ae858048a67df0\"\nwrite = true\n");
    let headers = [
        "content-type: application/json",
        "authorization: Bearer wf-write",
    ];
    let add = |n: usize| {
        let change = json!({ "format": "tsv", "add": format!("Fan {n}\tfan_of\tLou Seal\n") });
        let reply = served.send(
            "POST",
            "/v1/triples",
            &headers,
            change.to_string().as_bytes(),
        );
        reply.json()["pending"].as_u64().unwrap()
    };
    let folded = || {
        served
            .log
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.contains("folded in"))
    };
    let pending: Vec<u64> = (0..4).map(add).collect();
    assert_eq!(pending, [1, 2, 3, 4]);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !folded() {
        assert!(std::time::Instant::now() < until, "{:?}", served.log);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // the log is empty again, and nothing is lost
    assert_eq!(add(4), 1);
    let query =
        "/v1/sparql?query=SELECT%28COUNT%28%2A%29AS%3Fn%29%7B%3Fs%3Cname%3Afan_of%3E%3Fo%7D";
    let rows = served.send("GET", query, &headers[1..], b"").json();
    assert_eq!(rows["results"]["bindings"][0]["n"]["value"], "5");
    served.end();
}

#[test]
fn a_question_becomes_a_query_that_answers_it() {
    let served = toy("");
    let encoded = |text: &str| text.replace(' ', "%20").replace('?', "%3F");
    let ask = |dataset: &str, question: &str| {
        let question = encoded(question);
        served.get(&format!(
            "/text2sparql?dataset={dataset}&question={question}"
        ))
    };
    let reply = ask("http://example.org/data/toy/", MASCOT);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let translated = reply.json();
    assert_eq!(translated["dataset"], "http://example.org/data/toy/");
    assert_eq!(translated["question"], MASCOT);
    let query = translated["query"].as_str().unwrap();
    let headers = ["content-type: application/sparql-query"];
    let rows = served.send("POST", "/v1/sparql", &headers, query.as_bytes());
    let rows = rows.json();
    let row = &rows["results"]["bindings"][0]["x"]["value"];
    assert_eq!(row, "name:Lou%20Seal");

    let refused = ask("toy", "Who wrote Hamlet?");
    let problem = refused.json();
    assert_eq!(refused.status, 422);
    assert!(
        problem["message"]
            .as_str()
            .unwrap()
            .starts_with("the question is refused: ")
    );
    let unknown = ask("nothing", MASCOT);
    assert_eq!(
        (unknown.status, unknown.json()["code"].as_str()),
        (404, Some("no-such-dataset"))
    );
    assert!(
        unknown.json()["hint"]
            .as_str()
            .unwrap()
            .starts_with("there are: toy")
    );
    assert_eq!(served.get("/text2sparql?dataset=toy").status, 400);
    assert_eq!(
        served.get("/text2sparql?dataset=toy&question=%3F").status,
        422
    );
}
